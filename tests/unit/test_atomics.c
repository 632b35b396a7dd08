/* Atomics and tensors without a GPU: every kind on every type is assembled for every architecture, and the forms in the
 * PTX are those that the PTX manual gives for them; barriers stand where orders need them; tensor accesses become what
 * the comment of transform/expand_tensors.c says. */
#include "ir_text.h"

#include "../../compiler/blkc.h"
#include "../../compiler/passes/passes.h"

#include <unistd.h>

static const char *const gpu_targets[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};
enum { TARGETS = sizeof gpu_targets / sizeof gpu_targets[0], OLD_TARGETS = 3 };

static unsigned times(const char *s, const char *what)
{
	unsigned n = 0;
	for (const char *p = s; (p = strstr(p, what)); p += strlen(what)) n++;
	return n;
}

/* The artifact `kind` of the only kernel, copied; cubin too if there is an assembler. */
static const char *compile(
	const char *source, const char *target, const blkc_promise *promises, size_t n, unsigned kind)
{
	unsigned cubin = kind == BLKC_EMIT_PTX && access("/usr/local/cuda/bin/ptxas", X_OK) == 0 ? BLKC_EMIT_CUBIN : 0;
	blkc_request request = {.size = sizeof request,
		.name = "test.blk",
		.text = source,
		.text_bytes = strlen(source),
		.target = target,
		.promises = promises,
		.npromises = n,
		.emit = kind | cubin,
		.ptxas = "/usr/local/cuda/bin/ptxas",
		.verify_each = 1};
	blkc_result *r = blkc_compile(&request);
	const char *found = NULL;
	if (r->status) fail_msg("%s: %s\n%s", target, r->diagnostics, source);
	if (strstr(r->log, "warning")) fail_msg("%s: %s\n%s", target, r->log, source);
	for (size_t i = 0; i < r->nartifacts; i++)
		if (r->artifacts[i].kind == kind)
			found = arena_strndup(&memory, r->artifacts[i].bytes, r->artifacts[i].nbytes);
	blkc_result_free(r);
	assert_non_null(found);
	return found;
}

/* ---- forms ---- */

typedef struct form {
	const char *type, *kind, *name; /* "atom.relaxed.gpu.global." + name */
	int old_targets, new_targets;   /* that have it: a loop of compare-and-swap stands for those that do not */
} form;

static const form forms[] = {
	{"i32", "add", "add.s32", 1, 1},
	{"u32", "add", "add.u32", 1, 1},
	{"i64", "add", "add.u64", 1, 1},
	{"u64", "add", "add.u64", 1, 1},
	{"f16", "add", "add.noftz.f16", 1, 1},
	{"bf16", "add", "add.noftz.bf16", 0, 1},
	{"f32", "add", "add.f32", 1, 1},
	{"f64", "add", "add.f64", 1, 1},
	{"i32", "max", "max.s32", 1, 1},
	{"u32", "max", "max.u32", 1, 1},
	{"i64", "max", "max.s64", 1, 1},
	{"u64", "max", "max.u64", 1, 1},
	{"f32", "max", "max.s32", 1, 1},
	{"f64", "max", "max.s64", 1, 1},
	{"i32", "min", "min.s32", 1, 1},
	{"u32", "min", "min.u32", 1, 1},
	{"i64", "min", "min.s64", 1, 1},
	{"u64", "min", "min.u64", 1, 1},
	{"f32", "min", "max.u32", 1, 1},
	{"f64", "min", "max.u64", 1, 1},
	{"i8", "and", "and.b32", 1, 1},
	{"u8", "or", "or.b32", 1, 1},
	{"i16", "xor", "xor.b32", 1, 1},
	{"u16", "and", "and.b32", 1, 1},
	{"i32", "or", "or.b32", 1, 1},
	{"u32", "xor", "xor.b32", 1, 1},
	{"i64", "and", "and.b64", 1, 1},
	{"u64", "or", "or.b64", 1, 1},
	{"i32", "xchg", "exch.b32", 1, 1},
	{"f32", "xchg", "exch.b32", 1, 1},
	{"u64", "xchg", "exch.b64", 1, 1},
	{"f64", "xchg", "exch.b64", 1, 1},
	{"u32", "cas", "cas.b32", 1, 1},
	{"f32", "cas", "cas.b32", 1, 1},
	{"i64", "cas", "cas.b64", 1, 1},
	{"f64", "cas", "cas.b64", 1, 1},
};

static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel"};
static const char *const scopes[] = {"cta", "gpu", "sys"};

/* A scalar and a tile whose old values are used, and one whose are not; order and scope change from form to form. */
static void test_forms(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		const form *f = &forms[i];
		const char *order = orders[i % 4], *scope = scopes[i % 3], *cas = strcmp(f->kind, "cas") ? "" : "0, ";
		const char *source = arena_printf(&memory,
			"kernel k(p: *%s, o: *%s, v: *const %s, n: i32) {\n"
			"let i = arange(0, 64);\n"
			"store(o, atomic_%s(p, %sload(v), sem = \"%s\", scope = \"%s\"));\n"
			"store(o + 1 + i, atomic_%s(p + i, %sload(v + i), i < n, sem = \"%s\", scope = \"%s\"));\n"
			"atomic_%s(p + i, %sload(v + 64 + i), i < n, sem = \"%s\", scope = \"%s\");\n}\n",
			f->type, f->type, f->type, f->kind, cas, order, scope, f->kind, cas, order, scope, f->kind, cas,
			order, scope);
		const char *atom = arena_printf(&memory, " atom.%s.%s.global.%s ", order, scope, f->name);
		const char *red = arena_printf(&memory, " red.%s.%s.global.%s ", order, scope, f->name);
		for (unsigned t = 0; t < TARGETS; t++) {
			const char *ptx = compile(source, gpu_targets[t], NULL, 0, BLKC_EMIT_PTX);
			bool native = t < OLD_TARGETS ? f->old_targets : f->new_targets;
			if (!native) {
				assert_int_equal(times(ptx, " atom.") + times(ptx, "\tatom."), 3);
				assert_int_equal(times(ptx, ".global.cas.b16 "), 3);
				continue;
			}
			unsigned atoms = times(ptx, atom), reds = times(ptx, red);
			if (atoms + reds != 3 || atoms < 2)
				fail_msg("%s: %u of '%s', %u of '%s' in\n%s", gpu_targets[t], atoms, atom, reds, red,
					ptx);
			bool extreme = f->type[0] == 'f' && f->kind[0] == 'm',
			     plain = strncmp(f->kind, "xchg", 4) && strncmp(f->kind, "cas", 3) && !extreme;
			bool may_reduce = plain && (i % 4 == 0 || i % 4 == 2);
			assert_int_equal(reds, may_reduce);
			if (strstr(ptx, ".local")) fail_msg("local memory in\n%s", ptx);
		}
	}
}

static void test_vectors(void **state)
{
	(void)state;
	static const struct {
		const char *type, *sem;
		const char *name[2]; /* below sm_90, from it on */
		int times[2];
	} rows[] = {
		{"f32", "relaxed", {"add.f32 ", "add.v4.f32 "}, {8, 2}},
		{"f32", "release", {"add.f32 ", "add.v4.f32 "}, {8, 2}},
		{"f16", "relaxed", {"add.noftz.f16x2 ", "add.noftz.v4.f16x2 "}, {4, 1}},
		{"bf16", "relaxed", {"cas.b16 ", "add.noftz.v4.bf16x2 "}, {8, 1}},
		{"f32", "acq_rel", {"add.f32 ", "add.f32 "}, {8, 8}},
		{"f64", "relaxed", {"add.f64 ", "add.f64 "}, {8, 8}},
		{"i32", "relaxed", {"add.s32 ", "add.s32 "}, {8, 8}},
	};
	static const blkc_promise promises[] = {{"p", 16, 0}, {"v", 16, 0}, {"n", 16, 0}};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *source = arena_printf(&memory,
			"kernel k(p: *%s, v: *const %s, n: i32) {\n"
			"let i = program_id(0) * 1024 + arange(0, 1024);\n"
			"atomic_add(p + i, load(v + i, mask = i < n), mask = i < n, sem = \"%s\");\n}\n",
			rows[i].type, rows[i].type, rows[i].sem);
		for (unsigned t = 0; t < TARGETS; t++) {
			bool new = t >= OLD_TARGETS;
			const char *ptx = compile(source, gpu_targets[t], promises, 3, BLKC_EMIT_PTX);
			if (times(ptx, rows[i].name[new]) != (unsigned)rows[i].times[new])
				fail_msg("%s: '%s' is not there %d times:\n%s", gpu_targets[t], rows[i].name[new],
					rows[i].times[new], ptx);
		}
	}
}

/* A thread with one element lets the instruction order memory; with several, fences stand around relaxed instructions:
 * one in front of the first where the order releases, one behind the last where it acquires. */
static void test_order_of_several(void **state)
{
	(void)state;
	for (unsigned used = 0; used < 2; used++)
		for (unsigned several = 0; several < 2; several++)
			for (unsigned order = 0; order < 4; order++)
				for (unsigned scope = 0; scope < 3; scope++) {
					const char *ptx = compile(
						arena_printf(&memory,
							"kernel k(p: *i32, o: *i32) grid(1) options(num_warps = 4) {\n"
							"let i = arange(0, %u);\n"
							"%satomic_add(p + i, 3, sem = \"%s\", scope = \"%s\")%s;\n}\n",
							several ? 512 : 128, used ? "store(o + i, " : "", orders[order],
							scopes[scope], used ? ")" : ""),
						"sm_90a", NULL, 0, BLKC_EMIT_PTX);
					bool acquires = order & 1, releases = order & 2;
					bool reds = !used && !acquires;
					const char *act = arena_printf(&memory, "%s.%s.%s.global.add.s32 ",
						reds ? "red" : "atom", orders[several ? 0 : order], scopes[scope]);
					const char *fence = arena_printf(&memory, "fence.acq_rel.%s;", scopes[scope]);
					if (times(ptx, act) != (several ? 4u : 1u))
						fail_msg("no '%s' in:\n%s", act, ptx);
					assert_int_equal(times(ptx, "fence."), several ? acquires + releases : 0);
					if (!several) continue;
					const char *first = strstr(ptx, act), *last = first, *next;
					while ((next = strstr(last + 1, act))) last = next;
					const char *before = strstr(ptx, fence), *behind = strstr(last, fence);
					assert_true(releases == (before && before < first));
					assert_true(acquires == (behind != NULL));
				}
}

/* ---- barriers ---- */

/* Bodies of kernel k(p, q: *i32, x: *const i32, n), i = 0..255; how many CTA barriers the pass has to place. */
static void test_barriers(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		unsigned warps, barriers;
	} rows[] = {
		/* nobody can tell the order of two sums */
		{"atomic_add(p + i, 1, sem = \"relaxed\"); atomic_add(q + i, 2, sem = \"relaxed\");", 4, 0},
		{"for r in range(n) { atomic_add(p + i, 1, sem = \"relaxed\"); }", 4, 0},
		/* but of a sum and a maximum, or where old values tell */
		{"atomic_add(p + i, 1, sem = \"relaxed\"); atomic_max(q + i, 2, sem = \"relaxed\");", 4, 1},
		{"atomic_add(p + i, 1, sem = \"relaxed\"); store(q + 2 * i, atomic_add(q + i, 2, sem = \"relaxed\"));",
			4, 2},
		/* each thread meets its own elements */
		{"store(p + i, 1); atomic_add(p + i, 1, sem = \"relaxed\");", 4, 0},
		{"store(p + i, 1); atomic_add(q + i, 1, sem = \"relaxed\");", 4, 1},
		/* a release comes after all that the program did, even that of the own thread's neighbours */
		{"store(p + i, 1); atomic_add(p + i, 1, sem = \"release\");", 4, 1},
		{"store(p + i, 1); atomic_xchg(q, 1, sem = \"release\");", 4, 1},
		{"store(p + i, load(x + i)); atomic_xchg(q, 1, sem = \"relaxed\");", 4, 1},
		{"store(p, 1); atomic_xchg(q, 1, sem = \"release\");", 4, 0}, /* thread 0 both times */
		{"store(p + i, 1); atomic_xchg(q, 1, sem = \"release\");", 1, 1},
		/* an acquire comes before all that follows; handing on the old value is a barrier */
		{"store(p + i, load(q + i) + atomic_add(p, 0, sem = \"acquire\"));", 4, 1},
		{"let t = atomic_add(p, 0, sem = \"acquire\"); store(q + i, load(q + i) + t);", 4, 0},
		{"let t = atomic_add(p, 0, sem = \"acquire\"); store(q + i, load(q + i) + t);", 1, 1},
		{"atomic_add(p, 1, sem = \"acquire\"); store(q + i, load(q + i) + 1);", 4, 1},
		{"atomic_add(p, 1, sem = \"acquire\"); store(q, load(x + n));", 4, 0},
		/* a lock: one a round of the loop, and one before the release */
		{"while atomic_cas(p, 0, 1, sem = \"acquire\") != 0 { } store(q + i, load(q + i) + 1); atomic_xchg(p, "
		 "0, sem = \"release\");",
			4, 2},
		/* memory that nothing writes does not matter */
		{"let v = load(x + i); atomic_add(p, sum(v, axis = 0), sem = \"release\");", 4, 0},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *source = arena_printf(&memory,
			"kernel k(p: *i32, q: *i32, x: *const i32, n: i32) options(num_warps = %u) {\n"
			"let i = arange(0, 256);\n%s\n}\n",
			rows[i].warps, rows[i].body);
		const char *mapped = compile(source, "sm_90a", NULL, 0, BLKC_EMIT_LAYOUT);
		if (times(mapped, "cta_barrier") != rows[i].barriers)
			fail_msg("row %u: not %u barriers\n%s", i, rows[i].barriers, mapped);
	}
}

/* ---- tensors ---- */

static const char *expanded(const char *source)
{
	ir_func *f = read_text(source);
	pass_context p = {.arena = &memory, .diags = &messages};
	assert_true(pass_expand_tensors(&p, f));
	check_verifies(f);
	assert_null(strstr(print(f), "tensor_"));
	assert_true(pass_canonicalise(&p, f) && pass_cse(&p, f) && pass_dce(&p, f));
	check_verifies(f);
	return print(f);
}

static void expect(const char *source, const char *wanted)
{
	const char *got = expanded(source);
	if (strcmp(got, wanted) != 0) fail_msg("got\n%s\nexpected\n%s", got, wanted);
}

static void test_expansion(void **state)
{
	(void)state;
	/* known to be inside: no mask */
	expect("func @f(%x: *const f32, %y: *f32) num_warps=4 num_stages=3 num_ctas=1 {\n"
	       "  %i = const {value=8} : i32\n"
	       "  %n = const {value=72} : i32\n"
	       "  %s = const {value=1} : i32\n"
	       "  %v = tensor_load %x, %i, %n, %s : f32[64]\n"
	       "  %c = arange {lo=0} : i32[64]\n"
	       "  %p = splat %y : (*f32)[64]\n"
	       "  %q = ptr_add %p, %c : (*f32)[64]\n"
	       "  store %q, %v\n"
	       "  return\n"
	       "}\n",
		"func @f(%x: *const f32, %y: *f32) num_warps=4 num_stages=3 num_ctas=1 {\n"
		"  %c = arange {lo=0} : i32[64]\n"
		"  %0 = const {value=8} : i64\n"
		"  %1 = ptr_add %x, %0 : *const f32\n"
		"  %2 = splat %1 : (*const f32)[64]\n"
		"  %3 = ptr_add %2, %c : (*const f32)[64]\n"
		"  %v = load %3 : f32[64]\n"
		"  %p = splat %y : (*f32)[64]\n"
		"  %q = ptr_add %p, %c : (*f32)[64]\n"
		"  store %q, %v\n"
		"  return\n"
		"}\n");
	/* one more, and the last element may be outside; a negative extent is an empty array */
	expect("func @f(%y: *f32, %n: i32, %v: f32) num_warps=4 num_stages=3 num_ctas=1 {\n"
	       "  %i = const {value=9} : i32\n"
	       "  %s = const {value=1} : i32\n"
	       "  %t = splat %v : f32[64]\n"
	       "  tensor_store %y, %t, %i, %n, %s\n"
	       "  return\n"
	       "}\n",
		"func @f(%y: *f32, %n: i32, %v: f32) num_warps=4 num_stages=3 num_ctas=1 {\n"
		"  %t = splat %v : f32[64]\n"
		"  %0 = arange {lo=0} : i32[64]\n"
		"  %1 = const {value=9} : i64\n"
		"  %2 = ptr_add %y, %1 : *f32\n"
		"  %3 = splat %2 : (*f32)[64]\n"
		"  %4 = ptr_add %3, %0 : (*f32)[64]\n"
		"  %5 = const {value=0} : i32\n"
		"  %6 = max %n, %5 : i32\n"
		"  %7 = const {value=9} : i32[64]\n"
		"  %8 = add %0, %7 : i32[64]\n"
		"  %9 = bitcast %8 : u32[64]\n"
		"  %10 = bitcast %6 : u32\n"
		"  %11 = splat %10 : u32[64]\n"
		"  %12 = lt %9, %11 : bool[64]\n"
		"  store %4, %t, %12\n"
		"  return\n"
		"}\n");
}

/* Widths that the axis analysis has to find behind the expansion: 16 bytes a thread. */
static void test_widths(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		const char *what;
		unsigned times;
	} rows[] = {
		/* 64 x 32 halves for 128 threads: 16 each, in two accesses */
		{"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		 "C.store([i * 64, j * 32], A.load([i * 64, j * 32], [64, 32]));",
			".v4.b32 ", 4},
		/* an advancing block pointer */
		{"let A = tensor(a, [m, n]); let C = tensor(c, [m, 32]); var p = block_ptr(A, [i * 64, 0], [64, 32]);\n"
		 "var s = zeros([64, 32], f16);\n"
		 "for k in range(0, n, 32) { s = maximum(s, load(p)); p = advance(p, [0, 32]); }\n"
		 "C.store([i * 64, 0], s);",
			"ld.global.nc.v4.b32 ", 2},
		/* column-major on both sides */
		{"let A = tensor(a, [m, n], strides = [1, m]); let C = tensor(c, [m, n], strides = [1, m]);\n"
		 "C.store([i * 64, j * 32], A.load([i * 64, j * 32], [64, 32]));",
			".v4.b32 ", 4},
		/* an odd start is single halves */
		{"let A = tensor(a, [m, n]); let C = tensor(c, [m, n]);\n"
		 "C.store([i * 64, j * 32 + 1], A.load([i * 64, j * 32 + 1], [64, 32]));",
			".v4.b32 ", 0},
		/* i64 indices and extents are no worse */
		{"let A = tensor(a, [n.to(i64)]); let C = tensor(c, [n.to(i64)]); let at = i.to(i64) * 1024;\n"
		 "C.store([at], A.load([at], [1024]));",
			".v4.b32 ", 2},
	};
	static const blkc_promise promises[] = {{"a", 16, 0}, {"c", 16, 0}, {"m", 16, 0}, {"n", 16, 0}};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *source = arena_printf(&memory,
			"kernel k(c: *f16, a: *const f16, m: i32, n: i32) {\n"
			"let i = program_id(0);\nlet j = program_id(1);\n%s\n}\n",
			rows[i].body);
		const char *ptx = compile(source, "sm_89", promises, 4, BLKC_EMIT_PTX);
		if (times(ptx, rows[i].what) != rows[i].times)
			fail_msg("row %u: '%s' is not there %u times\n%s", i, rows[i].what, rows[i].times, ptx);
	}
}

/* What the verifier has to refuse. */
static void test_verifier(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"  %r = atomic_rmw %p, %v {rmw=add sem=relaxed scope=gpu} : f32\n", /* f32 into i32 */
		"  %r = atomic_rmw %p, %n {rmw=7 sem=relaxed scope=gpu} : i32\n",
		"  %r = atomic_rmw %p, %n {rmw=add sem=4 scope=gpu} : i32\n",
		"  %r = atomic_rmw %p, %n {rmw=add sem=relaxed scope=3} : i32\n",
		"  %r = atomic_rmw %c, %n {rmw=add sem=relaxed scope=gpu} : i32\n", /* through *const */
		"  %r = atomic_rmw %p, %n, %n {rmw=add sem=relaxed scope=gpu} : i32\n",
		"  %r = atomic_cas %p, %n {sem=relaxed scope=gpu} : i32\n",
		"  %r = atomic_cas %p, %v, %n {sem=relaxed scope=gpu} : i32\n",
		"  %r = tensor_load %p, %n, %n : i32[64]\n",
		"  %r = tensor_load %p, %n, %n, %v : i32[64]\n",
		"  %r = tensor_load %p, %n, %n, %n : f32[64]\n",
		"  tensor_store %c, %t, %n, %n, %n\n",
	};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const char *source = arena_printf(&memory,
			"func @f(%%p: *i32, %%c: *const i32, %%n: i32, %%v: f32) num_warps=4 num_stages=3 num_ctas=1 "
			"{\n  %%t = splat %%n : i32[64]\n%s  return\n}\n",
			bad[i]);
		ir_func *f = read_bytes(source, strlen(source));
		text why = {.arena = &memory};
		if (f && ir_verify(f, &why)) fail_msg("passes: %s", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_expansion),
		TEST(test_widths),
		TEST(test_barriers),
		TEST(test_vectors),
		TEST(test_order_of_several),
		TEST(test_forms),
		TEST(test_verifier),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
