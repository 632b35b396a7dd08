/* Code for GPUs, without one: small functions built by hand go through LLVM and ptxas for every architecture that the
 * compiler knows, and the text is held against what a careful hand would have written (16-byte accesses, one shuffle a
 * lane bit, no spills, no local memory).  Without ptxas only the texts are checked. */
#include "memory.h"
#include "target/nvptx/nvptx.h"
#include "async/scratch.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

/* ---- building ---- */

typedef struct kernel {
	ir_func *f;
	ir_builder b;
} kernel;

static kernel new_kernel(const char *name, unsigned warps)
{
	kernel k = {.f = ir_func_new(&memory, name)};
	k.f->num_warps = warps;
	k.b = (ir_builder){.func = k.f, .block = k.f->body};
	return k;
}

static ir_value *param(kernel *k, const char *name, scalar s, int pointer, uint32_t divisible)
{
	ir_type t = ir_scalar_type(s);
	t.pointer = (uint8_t)pointer;
	ir_value *v = ir_add_param(k->f, name, t, (span){0});
	k->f->params[k->f->nparams - 1].divisible = divisible;
	return v;
}

static ir_value *op1(kernel *k, ir_kind kind, ir_value *a)
{
	return ir_unary(&k->b, kind, a);
}

static ir_value *op2(kernel *k, ir_kind kind, ir_value *a, ir_value *b)
{
	return ir_binary(&k->b, kind, a, b);
}

static ir_value *arange(kernel *k, unsigned n)
{
	uint32_t dim[1] = {n};
	return ir_build1(&k->b, IR_ARANGE, ir_tile_type(SCALAR_I32, 1, dim), 0, NULL);
}

static ir_value *splat(kernel *k, ir_value *v, ir_value *like)
{
	return ir_splat(&k->b, v, like->type);
}

static ir_value *pointers(kernel *k, ir_value *base, ir_value *offsets)
{
	ir_value *args[2] = {splat(k, base, offsets), offsets};
	return ir_build1(&k->b, IR_PTR_ADD, args[0]->type, 2, args);
}

static ir_value *load(kernel *k, ir_value *p, ir_value *mask, ir_value *other)
{
	ir_value *args[3] = {p, mask, other};
	return ir_build1(
		&k->b, IR_LOAD, ir_with_elem(p->type, p->type.elem), 1 + (mask != NULL) + (other != NULL), args);
}

static ir_op *store(kernel *k, ir_value *p, ir_value *v, ir_value *mask)
{
	ir_value *args[3] = {p, v, mask};
	return ir_build(&k->b, IR_STORE, mask ? 3 : 2, args, 0, NULL, 0);
}

static ir_value *to_type(kernel *k, ir_kind kind, ir_value *v, scalar s)
{
	return ir_build1(&k->b, kind, ir_with_elem(v->type, s), 1, &v);
}

static ir_type without_axis(ir_type t, unsigned axis)
{
	for (unsigned d = axis; d + 1 < t.rank; d++) t.dim[d] = t.dim[d + 1];
	t.dim[--t.rank] = 0;
	return t;
}

static ir_value *reduce(kernel *k, ir_combine how, ir_value *v, unsigned axis)
{
	ir_type t = without_axis(v->type, axis);
	ir_op *o = ir_build(&k->b, IR_REDUCE, 1, &v, 1, &t, 0);
	ir_set_axis(o, axis);
	ir_set_combine(o, how);
	return ir_result(o);
}

static ir_value *index_of_program(kernel *k)
{
	return ir_build1(&k->b, IR_PROGRAM_ID, ir_scalar_type(SCALAR_I32), 0, NULL);
}

static void scratch_of_its_own(ir_op *o, void *f)
{
	ir_func *func = f;
	o->shared_offset = func->shared_bytes;
	o->shared_bytes = scratch_bytes(func, o);
	func->shared_bytes += (o->shared_bytes + SCRATCH_ALIGN - 1) & ~(uint32_t)(SCRATCH_ALIGN - 1);
}

/* To the scheduled level: layouts by the pass, scratch that nothing shares, so that no further barrier is needed. */
static void finish(kernel *k)
{
	pass_context p = {.arena = &memory, .diags = &messages, .target = target_find("sm_80")};
	ir_build(&k->b, IR_RETURN, 0, NULL, 0, NULL, 0);
	assert_true(pass_axis(&p, k->f));
	assert_true(pass_assign_layouts(&p, k->f));
	assert_true(pass_cse(&p, k->f));
	assert_true(pass_dce(&p, k->f));
	ir_walk(k->f->body, scratch_of_its_own, k->f);
	k->f->level = IR_LEVEL_SCHEDULED;
	if (getenv("BLK_SHOW")) {
		text t = {.arena = &memory};
		ir_print(&t, k->f);
		fprintf(stderr, "%s\n", t.at);
	}
}

/* ---- emitting ---- */

static bool have_ptxas(void)
{
	return access("/usr/local/cuda/bin/ptxas", X_OK) == 0;
}

/* The kernel for one target; asserts that it assembles without a warning and without spills. */
static nvptx_output emit_for(kernel *k, const char *target)
{
	nvptx_options options = {.line_info = true, .want_llvm = true, .want_ptx = true, .want_cubin = have_ptxas()};
	nvptx_output out;
	pass_context p = {.arena = &memory, .diags = &messages, .target = target_find(target)};
	bool good = nvptx_emit(&p, k->f, &options, &out);
	text said = {.arena = &memory};
	if (messages.first) diag_render_text(&messages, &said);
	if (!good) fail_msg("%s: %s\n%s", target, said.at ? said.at : "no message", out.ptx ? out.ptx : "");
	if (getenv("BLK_SHOW")) fprintf(stderr, "%s\n%s\n%s\n", out.llvm, out.ptx, out.ptxas_log ? out.ptxas_log : "");
	assert_null(strstr(out.ptx, ".debug_"));
	assert_null(strstr(out.ptx, ".local"));
	if (!out.assembled) return out;
	assert_int_equal(out.spill_bytes, 0);
	assert_true(out.registers > 0);
	if (out.ptxas_log) fail_msg("%s", out.ptxas_log);
	assert_memory_equal(out.cubin, "\177ELF", 4);
	return out;
}

static nvptx_output emit_all(kernel *k)
{
	nvptx_output first = {0};
	for (unsigned i = 0; target_at(i); i++) {
		if (target_at(i)->kind != TARGET_NVPTX) continue;
		nvptx_output out = emit_for(k, target_at(i)->name);
		if (!first.ptx) first = out;
	}
	return first;
}

static unsigned count(const char *s, const char *what)
{
	unsigned n = 0;
	for (const char *p = s; (p = strstr(p, what)); p += strlen(what)) n++;
	return n;
}

/* ---- tests ---- */

/* y = x0 + x1 over 1024 elements a program, the mask's constancy proved by n % 16. */
static void add(void **state)
{
	(void)state;
	kernel k = new_kernel("add", 4);
	ir_value *x = param(&k, "x", SCALAR_F32, IR_CONST_POINTER, 16),
		 *y = param(&k, "y", SCALAR_F32, IR_CONST_POINTER, 16);
	ir_value *z = param(&k, "z", SCALAR_F32, IR_POINTER, 16), *n = param(&k, "n", SCALAR_I32, IR_NUMBER, 16);
	ir_value *pid = ir_build1(&k.b, IR_PROGRAM_ID, ir_scalar_type(SCALAR_I32), 0, NULL);
	ir_value *base = ir_binary(&k.b, IR_MUL, pid, ir_constant_int(&k.b, SCALAR_I32, 1024));
	ir_value *tile = arange(&k, 1024), *offsets = op2(&k, IR_ADD, splat(&k, base, tile), tile);
	ir_value *mask = op2(&k, IR_LT, offsets, splat(&k, n, offsets));
	ir_value *a = load(&k, pointers(&k, x, offsets), mask, NULL),
		 *b = load(&k, pointers(&k, y, offsets), mask, NULL);
	store(&k, pointers(&k, z, offsets), op2(&k, IR_ADD, a, b), mask);
	finish(&k);
	nvptx_output out = emit_all(&k);
	assert_int_equal(count(out.ptx, "ld.global.nc.v4.b32"), 4);
	assert_int_equal(count(out.ptx, "st.global.v4.b32"), 2);
	assert_int_equal(count(out.ptx, "ld.global"), 4);
	assert_int_equal(count(out.ptx, "st.global"), 2);
	assert_non_null(strstr(out.ptx, ".reqntid 128, 1, 1"));
	assert_non_null(strstr(out.ptx, ".version 7.0"));
	assert_int_equal(count(out.ptx, "bra"), 0);
	assert_int_equal(count(out.ptx, "mul.wide"), 1); /* one offset for all accesses; the rest are constants */
	assert_int_equal(count(out.ptx, ", 2048;"), 3);
}

/* One row a program: y = exp2(x - max) / sum, the row as wide as the tile. */
static void softmax(void **state)
{
	(void)state;
	kernel k = new_kernel("softmax", 4);
	ir_value *x = param(&k, "x", SCALAR_F32, IR_CONST_POINTER, 16), *y = param(&k, "y", SCALAR_F32, IR_POINTER, 16);
	ir_value *stride = param(&k, "stride", SCALAR_I32, IR_NUMBER, 16),
		 *n = param(&k, "n", SCALAR_I32, IR_NUMBER, 16);
	ir_value *start = ir_binary(&k.b, IR_MUL, index_of_program(&k), stride), *columns = arange(&k, 2048);
	ir_value *mask = op2(&k, IR_LT, columns, splat(&k, n, columns));
	ir_value *row[2];
	for (unsigned i = 0; i < 2; i++) {
		ir_value *args[2] = {i ? y : x, start};
		row[i] = pointers(&k, ir_build1(&k.b, IR_PTR_ADD, args[0]->type, 2, args), columns);
	}
	ir_value *none = ir_constant(&k.b, ir_with_elem(columns->type, SCALAR_F32), 0xff800000);
	ir_value *v = load(&k, row[0], mask, none);
	ir_value *e = op1(&k, IR_EXP2, op2(&k, IR_SUB, v, splat(&k, reduce(&k, IR_MAXIMUM, v, 0), v)));
	store(&k, row[1], op2(&k, IR_DIV, e, splat(&k, reduce(&k, IR_SUM, e, 0), v)), mask);
	finish(&k);
	nvptx_output out = emit_all(&k);
	assert_int_equal(count(out.ptx, "shfl.sync.bfly"), 10);
	assert_int_equal(count(out.ptx, "ld.global.nc.v4.b32"), 4);
	assert_int_equal(count(out.ptx, "st.global.v4.b32"), 4);
	assert_int_equal(count(out.ptx, "ld.shared.v4.b32"), 2);
	assert_int_equal(count(out.ptx, "bar.sync"), 2);
	assert_int_equal(count(out.ptx, "bra"), 0);
}

/* ---- casts: LLVM folds the code of a constant's cast, which is then held against the host's exact one ---- */

enum { MAX_PATTERNS = 96 };

static unsigned interesting(scalar s, uint64_t *out)
{
	static const double values[] = {0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.9999, 448, 464, 465, 480, 57344, 61440,
		61441, 65504, 65519.9, 65520, 1e-3, 0.0009765625, 0.00146484375, 6.1e-5, 5.9e-8, 2.9e-8, 1e-10,
		1.0039062, 1.00390625, 1.0058594, 127.5, 128, -128.5, -129, 255.5, 256, 32767.5, 65535.5, 2147483520,
		2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0, 9.2233720368547e18, 9.3e18,
		-9.3e18, 1.85e19, 3e38, 3.4e38, 1e300, -1e300, 1e-40, 1e-45, 1e-310, 16777217, 33554435, 0.017578125,
		0.0146484375, 0.001953125, 0.0029296875};
	unsigned n = 0;
	if (scalar_is_float(s)) {
		for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
			uint64_t bits = scalar_from_double(s, values[i]);
			if (s == SCALAR_F64 || s == SCALAR_F32 || n == 0 || out[n - 1] != bits) out[n++] = bits;
		}
		out[n++] = scalar_from_double(s, __builtin_nan(""));
		if (!scalar_is_fp8(s)) out[n++] = scalar_from_double(s, __builtin_inf());
		if (!scalar_is_fp8(s)) out[n++] = scalar_from_double(s, -__builtin_inf());
		return n;
	}
	unsigned width = scalar_bits(s);
	for (unsigned i = 0; i < width; i++) {
		uint64_t bit = UINT64_C(1) << i;
		if (n + 4 > MAX_PATTERNS) break;
		if (width > 16 && i % 3 == 1) continue;
		out[n++] = scalar_truncate(s, bit);
		out[n++] = scalar_truncate(s, 0 - bit - (i > 12 ? 1 : 0));
		out[n++] = scalar_truncate(s, bit | bit >> 9 | 1);
	}
	out[n++] = 0;
	return n;
}

static bool same_number(scalar s, uint64_t a, uint64_t b)
{
	if (!scalar_is_float(s)) return a == b;
	double x = scalar_to_double(s, a), y = scalar_to_double(s, b);
	return (x != x && y != y) || a == b;
}

/* The constants that the stores of the optimised LLVM text write, in order: `... "(ptr addrspace(1) %5, i32 77, i1
 * %2)`. */
static unsigned stored(const char *llvm, uint64_t *out)
{
	unsigned n = 0;
	for (const char *p = llvm; (p = strstr(p, "asm sideeffect")); p++) {
		const char *v = strstr(strstr(p, "(ptr "), ", i");
		v = strchr(v + 2, ' ') + 1;
		if (*v == '%') fail_msg("not a constant: %.200s", p);
		out[n++] = *v == '-' ? (uint64_t)strtoll(v, NULL, 10) : strtoull(v, NULL, 10);
	}
	return n;
}

/* Some intrinsics (directed rounding, fp8) are not folded: their casts are checked on the device. */
static bool folds(const char *target, scalar from, scalar to)
{
	bool odd = (from == SCALAR_F64 && (to == SCALAR_BF16 || to == SCALAR_F16 || scalar_is_fp8(to))) ||
		   (!scalar_is_float(from) && scalar_bits(from) > 16 && (to == SCALAR_BF16 || scalar_is_fp8(to)));
	bool hardware =
		strcmp(target, "sm_80") != 0 && ((scalar_is_fp8(to) && from != SCALAR_BOOL) || from == SCALAR_F8E4M3);
	return !odd && !hardware;
}

static void casts_to(const char *target, scalar from, scalar to)
{
	uint64_t in[MAX_PATTERNS], got[2 * MAX_PATTERNS];
	unsigned n = interesting(from, in);
	assert_true(n <= MAX_PATTERNS);
	kernel k = new_kernel("casts", 1);
	ir_value *y = param(&k, "y", to, IR_POINTER, 16);
	for (unsigned i = 0; i < n; i++) {
		ir_value *args[2] = {y, ir_constant_int(&k.b, SCALAR_I32, i)};
		ir_value *p = ir_build1(&k.b, IR_PTR_ADD, y->type, 2, args);
		ir_value *v = ir_constant(&k.b, ir_scalar_type(from), in[i]);
		store(&k, p, to_type(&k, IR_CONVERT, v, to), NULL);
	}
	ir_build(&k.b, IR_RETURN, 0, NULL, 0, NULL, 0);
	k.f->level = IR_LEVEL_SCHEDULED;
	nvptx_options options = {.want_llvm = true};
	nvptx_output out;
	pass_context p = {.arena = &memory, .diags = &messages, .target = target_find(target)};
	assert_true(nvptx_emit(&p, k.f, &options, &out));
	assert_int_equal(stored(out.llvm, got), n);
	for (unsigned i = 0; i < n; i++) {
		uint64_t want = scalar_convert(to, from, in[i]);
		if (!same_number(to, scalar_truncate(to, got[i]), want))
			fail_msg("%s: %s 0x%llx to %s gives 0x%llx, not 0x%llx", target, scalar_name(from),
				(unsigned long long)in[i], scalar_name(to), (unsigned long long)got[i],
				(unsigned long long)want);
	}
}

static void casts(void **state)
{
	(void)state;
	for (scalar from = 0; from < SCALAR_COUNT; from++)
		for (scalar to = 0; to < SCALAR_COUNT; to++)
			if (folds("sm_80", from, to)) casts_to("sm_80", from, to);
}

/* Every pair assembles everywhere, tiles in wide accesses. */
static void casts_assemble(void **state)
{
	(void)state;
	for (scalar from = 0; from < SCALAR_COUNT; from++) {
		kernel k = new_kernel(arena_printf(&memory, "casts_from_%s", scalar_name(from)), 1);
		ir_value *x = param(&k, "x", from, IR_CONST_POINTER, 16), *offsets = arange(&k, 512);
		ir_value *v = load(&k, pointers(&k, x, offsets), NULL, NULL);
		for (scalar to = 0; to < SCALAR_COUNT; to++) {
			ir_value *y = param(&k, arena_printf(&memory, "y%d", to), to, IR_POINTER, 16);
			store(&k, pointers(&k, y, offsets), to_type(&k, IR_CONVERT, v, to), NULL);
		}
		finish(&k);
		emit_all(&k);
	}
}

/* ---- integers: LLVM folds these too ---- */

static int64_t divided(ir_kind kind, int64_t a, int64_t b)
{
	if (b == -1) return kind == IR_DIV ? (int64_t)(0 - (uint64_t)a) : 0;
	return kind == IR_DIV ? a / b : a % b;
}

static uint64_t by_hand(ir_kind kind, scalar s, uint64_t a, uint64_t b)
{
	int64_t x = scalar_sign_extend(s, a), y = scalar_sign_extend(s, b);
	unsigned width = scalar_bits(s);
	switch (kind) {
	case IR_DIV:
	case IR_REM:
		if (scalar_is_signed(s)) return scalar_truncate(s, (uint64_t)divided(kind, x, y));
		return kind == IR_DIV ? a / b : a % b;
	case IR_SHL: return b >= width ? 0 : scalar_truncate(s, a << b);
	case IR_SHR:
		if (scalar_is_signed(s)) return scalar_truncate(s, (uint64_t)(x >> (b >= width ? width - 1 : b)));
		return b >= width ? 0 : a >> b;
	case IR_MAX: return scalar_is_signed(s) ? x > y ? a : b : a > b ? a : b;
	case IR_MIN: return scalar_is_signed(s) ? x < y ? a : b : a < b ? a : b;
	case IR_MUL: return scalar_truncate(s, a * b);
	case IR_SUB: return scalar_truncate(s, a - b);
	default: return 0;
	}
}

static void integers_of(ir_kind kind, scalar s)
{
	unsigned width = scalar_bits(s), n = 0;
	uint64_t values[10] = {0, 1, 3, 7, width - 1, width, width + 1, UINT64_C(1) << (width - 1), UINT64_MAX, 100};
	uint64_t want[100], got[200];
	kernel k = new_kernel("integers", 1);
	ir_value *y = param(&k, "y", s, IR_POINTER, 16);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t a = scalar_truncate(s, values[i / 10]), b = scalar_truncate(s, values[i % 10]);
		if ((kind == IR_DIV || kind == IR_REM) && b == 0) continue;
		ir_value *args[2] = {y, ir_constant_int(&k.b, SCALAR_I32, n)};
		ir_value *p = ir_build1(&k.b, IR_PTR_ADD, y->type, 2, args);
		ir_value *x = ir_constant(&k.b, ir_scalar_type(s), a), *z = ir_constant(&k.b, ir_scalar_type(s), b);
		store(&k, p, op2(&k, kind, x, z), NULL);
		want[n++] = by_hand(kind, s, a, b);
	}
	ir_build(&k.b, IR_RETURN, 0, NULL, 0, NULL, 0);
	k.f->level = IR_LEVEL_SCHEDULED;
	nvptx_options options = {.want_llvm = true};
	nvptx_output out;
	pass_context p = {.arena = &memory, .diags = &messages, .target = target_find("sm_80")};
	assert_true(nvptx_emit(&p, k.f, &options, &out));
	assert_int_equal(stored(out.llvm, got), n);
	for (unsigned i = 0; i < n; i++)
		if (scalar_truncate(s, got[i]) != want[i])
			fail_msg("%s of %s, case %u: 0x%llx, not 0x%llx", ir_ops[kind].name, scalar_name(s), i,
				(unsigned long long)got[i], (unsigned long long)want[i]);
}

static void integers(void **state)
{
	static const ir_kind kinds[] = {IR_DIV, IR_REM, IR_SHL, IR_SHR, IR_MAX, IR_MIN, IR_MUL, IR_SUB};
	(void)state;
	for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		for (scalar s = SCALAR_I8; s <= SCALAR_U64; s++) integers_of(kinds[i], s);
}

/* ---- memory that runs out at every step, and many threads ---- */

static ir_func *small_softmax(void)
{
	kernel k = new_kernel("small", 2);
	ir_value *x = param(&k, "x", SCALAR_F32, IR_POINTER, 16), *columns = arange(&k, 256);
	ir_value *p = pointers(&k, x, columns), *v = load(&k, p, NULL, NULL);
	store(&k, p, op2(&k, IR_SUB, v, splat(&k, reduce(&k, IR_MAXIMUM, v, 0), v)), NULL);
	finish(&k);
	return k.f;
}

static bool emit_within(ir_func *f, size_t limit, text *ptx)
{
	jmp_buf out;
	arena a = {.limit = limit, .recover = &out};
	diags own;
	volatile bool good = false;
	if (!setjmp(out)) {
		diags_init(&own, &a);
		nvptx_options options = {.line_info = true, .want_ptx = true};
		nvptx_output made;
		pass_context p = {.arena = &a, .diags = &own, .target = target_find("sm_90a")};
		good = nvptx_emit(&p, f, &options, &made);
		if (good && ptx) text_add(ptx, made.ptx, made.ptx_bytes);
	}
	arena_free(&a);
	return good;
}

static void out_of_memory(void **state)
{
	(void)state;
	ir_func *f = small_softmax();
	size_t limit = 512;
	unsigned refused = 0;
	for (; limit < 16 << 20 && !emit_within(f, limit, NULL); limit += limit / 16) refused++;
	assert_true(refused > 20);
	assert_true(limit < 16 << 20);
}

static void *one_of_many(void *f)
{
	static const char *const failure = "";
	arena *a = calloc(1, sizeof *a);
	jmp_buf out;
	if (!a) return (void *)failure;
	a->recover = &out;
	if (setjmp(out)) return (void *)failure;
	text *ptx = ARENA_NEW(a, text);
	ptx->arena = a;
	for (unsigned i = 0; i < 3; i++) {
		ptx->n = 0;
		if (!emit_within(f, 0, ptx)) return (void *)failure;
	}
	char *copy = strdup(ptx->at);
	arena_free(a);
	free(a);
	return copy;
}

/* ---- assemblers that are not there, fail, say too much; nothing stays behind ---- */

typedef struct assembling {
	const char *program;
	uint32_t max_registers;
	bool cubin, good;
	unsigned code; /* of the diagnostic; 0: none */
} assembling;

static unsigned entries(const char *folder)
{
	unsigned n = 0;
	DIR *d = opendir(folder);
	assert_non_null(d);
	while (readdir(d)) n++;
	closedir(d);
	return n - 2; /* . and .. */
}

static void assemblers(void **state)
{
	static const assembling cases[] = {
		{"/nonexistent/ptxas", UINT32_MAX, true, false, 813},
		{"/nonexistent/ptxas", 16, false, false, 813},
		{"/", UINT32_MAX, true, false, 813},
		{"/bin/false", UINT32_MAX, true, false, 812},
		{"/bin/true", UINT32_MAX, true, false, 812},
		{"/usr/local/cuda/bin/ptxas", 255, true, true, 0},
		{"/usr/local/cuda/bin/ptxas", 4, false, false, 815},
	};
	char folder[] = "/tmp/blk-test-XXXXXX";
	(void)state;
	ir_func *f = small_softmax();
	assert_non_null(mkdtemp(folder));
	setenv("TMPDIR", folder, 1);
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const assembling *c = &cases[i];
		if (strstr(c->program, "cuda") && !have_ptxas()) continue;
		nvptx_options options = {
			.want_cubin = c->cubin, .ptxas = c->program, .check_budgets = c->max_registers != UINT32_MAX};
		nvptx_output out;
		diags_init(&messages, &memory);
		pass_context p = {.arena = &memory, .diags = &messages, .target = target_find("sm_80")};
		f->max_registers = c->max_registers;
		assert_int_equal(nvptx_emit(&p, f, &options, &out), c->good);
		assert_int_equal(messages.first ? messages.first->code : 0, c->code);
		assert_int_equal(entries(folder), 0);
	}
	unsetenv("TMPDIR");
	rmdir(folder);
}

/* Each thread has its own function: reading one is const, source positions are not. */
static void many_threads(void **state)
{
	enum { THREADS = 4 };
	pthread_t id[THREADS];
	char *ptx[THREADS];
	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&id[i], NULL, one_of_many, small_softmax()), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *result;
		assert_int_equal(pthread_join(id[i], &result), 0);
		ptx[i] = result;
		assert_non_null(strstr(ptx[i], ".entry small"));
		assert_string_equal(ptx[i], ptx[0]);
	}
	for (unsigned i = 0; i < THREADS; i++) free(ptx[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(add),
		TEST(softmax),
		TEST(casts),
		TEST(integers),
		TEST(out_of_memory),
		TEST(many_threads),
		TEST(assemblers),
		TEST(casts_assemble),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
