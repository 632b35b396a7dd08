/* Operations that need more than one thread or more than one block: IR text through the GPU passes, LLVM and ptxas for
 * every architecture; how often a form stands in the PTX is counted against what the operation needs by hand. */
#include "ir_text.h"

#include "target/nvptx/nvptx.h"

#include <unistd.h>

typedef struct expected {
	const char *what;
	int times; /* -1: at least once */
} expected;

typedef struct sample {
	const char *name, *text;
	bool local; /* a local buffer is allowed: prints */
	expected count[8];
} sample;

static const sample samples[] = {
	{"row sums, warps share rows",
		"func @f(%x: *const f32 {align=16}, %y: *f32 {align=16}) num_warps=16 num_stages=3 num_ctas=1 {\n"
		"  %c = arange {lo=0} : i32[512]\n"
		"  %c.1 = expand_dims %c {axis=0} : i32[1,512]\n"
		"  %r = arange {lo=0} : i32[8]\n"
		"  %r.1 = expand_dims %r {axis=1} : i32[8,1]\n"
		"  %w = const {value=512} : i32[8,1]\n"
		"  %r.2 = mul %r.1, %w : i32[8,1]\n"
		"  %r.3 = broadcast %r.2 : i32[8,512]\n"
		"  %c.2 = broadcast %c.1 : i32[8,512]\n"
		"  %o = add %r.3, %c.2 : i32[8,512]\n"
		"  %p = splat %x : (*const f32)[8,512]\n"
		"  %p.1 = ptr_add %p, %o : (*const f32)[8,512]\n"
		"  %v = load %p.1 : f32[8,512]\n"
		"  %s = reduce %v {axis=1 combine=sum} : f32[8]\n"
		"  %q = splat %y : (*f32)[8]\n"
		"  %q.1 = ptr_add %q, %r : (*f32)[8]\n"
		"  store %q.1, %s\n"
		"  return\n"
		"}\n",
		false, {{"ld.global.nc.v4.b32", 2}, {"bar.sync", 1}, {"ld.shared.v2.b32", -1}}},
	{"column sums of a transposed tile",
		"func @f(%x: *const f16 {align=16}, %y: *f16 {align=16}) num_warps=4 num_stages=3 num_ctas=1 {\n"
		"  %c = arange {lo=0} : i32[64]\n"
		"  %c.1 = expand_dims %c {axis=0} : i32[1,64]\n"
		"  %r.1 = expand_dims %c {axis=1} : i32[64,1]\n"
		"  %w = const {value=64} : i32[64,1]\n"
		"  %r.2 = mul %r.1, %w : i32[64,1]\n"
		"  %r.3 = broadcast %r.2 : i32[64,64]\n"
		"  %c.2 = broadcast %c.1 : i32[64,64]\n"
		"  %o = add %r.3, %c.2 : i32[64,64]\n"
		"  %p = splat %x : (*const f16)[64,64]\n"
		"  %p.1 = ptr_add %p, %o : (*const f16)[64,64]\n"
		"  %v = load %p.1 : f16[64,64]\n"
		"  %t = permute %v {order=[1,0]} : f16[64,64]\n"
		"  %q = splat %y : (*f16)[64,64]\n"
		"  %q.1 = ptr_add %q, %o : (*f16)[64,64]\n"
		"  store %q.1, %t\n"
		"  return\n"
		"}\n",
		false, {{"ld.global.nc.v4.b32", 4}, {"st.global.v4.b32", 4}, {"bar.sync", 1}}},
	{"argmax, two operands, order kept",
		"func @f(%x: *const f32 {align=16}, %y: *i32 {align=16}) num_warps=2 num_stages=3 num_ctas=1 {\n"
		"  %c = arange {lo=0} : i32[1024]\n"
		"  %p = splat %x : (*const f32)[1024]\n"
		"  %p.1 = ptr_add %p, %c : (*const f32)[1024]\n"
		"  %v = load %p.1 : f32[1024]\n"
		"  %m, %i = reduce %v, %c {axis=0 combine=custom} : f32, i32 (%a: f32, %ai: i32, %b: f32, %bi: i32) {\n"
		"    %g = ge %a, %b : bool\n"
		"    %k = select %g, %a, %b : f32\n"
		"    %ki = select %g, %ai, %bi : i32\n"
		"    yield %k, %ki\n"
		"  }\n"
		"  store %y, %i\n"
		"  return\n"
		"}\n",
		false, {{"shfl.sync.bfly", 2 * 5 * 4}, {"st.global", 1}}},
	{"integers and bools of a whole warp",
		"func @f(%x: *const i32 {align=16}, %y: *i32 {align=16}) num_warps=1 num_stages=3 num_ctas=1 {\n"
		"  %c = arange {lo=0} : i32[128]\n"
		"  %p = splat %x : (*const i32)[128]\n"
		"  %p.1 = ptr_add %p, %c : (*const i32)[128]\n"
		"  %v = load %p.1 : i32[128]\n"
		"  %s = reduce %v {axis=0 combine=sum} : i32\n"
		"  %b = lt %c, %v : bool[128]\n"
		"  %a = reduce %b {axis=0 combine=all} : bool\n"
		"  %a.1 = convert %a : i32\n"
		"  %r = add %s, %a.1 : i32\n"
		"  store %y, %r\n"
		"  return\n"
		"}\n",
		false, {{"redux.sync.add.s32", 1}, {"vote.sync.all.pred", 1}, {"shfl", 0}, {"bar", 0}}},
	{"control flow",
		"func @f(%n: i32, %p: *i32, %s: i32) num_warps=8 num_stages=1 num_ctas=1 {\n"
		"  %lo = const {value=0} : i32\n"
		"  %one = const {value=1} : i32\n"
		"  %x = const {value=0.5} : f32[256]\n"
		"  %c = arange {lo=0} : i32[256]\n"
		"  %q = splat %p : (*i32)[256]\n"
		"  %q.1 = ptr_add %q, %c : (*i32)[256]\n"
		"  %x.1, %s.2 = for %lo, %n, %s, %x, %n {num_stages=3} : f32[256], i32 "
		"(%i: i32, %x.2: f32[256], %s.1: i32) {\n"
		"    %c.1 = lt %i, %s.1 : bool\n"
		"    %0 = if %c.1 : f32[256] {\n"
		"      %x.3 = add %x.2, %x.2 : f32[256]\n"
		"      yield %x.3\n"
		"    } else {\n"
		"      yield %x.2\n"
		"    }\n"
		"    %w = while %s.1 : f32 (%a: i32) {\n"
		"      %1 = ge %a, %i : bool\n"
		"      %2 = convert %a : f32\n"
		"      condition %1, %2\n"
		"    } do (%b: f32) {\n"
		"      %3 = convert %b : i32\n"
		"      %5 = sub %3, %one : i32\n"
		"      yield %5\n"
		"    }\n"
		"    %4 = convert %w : i32\n"
		"    yield %0, %4\n"
		"  }\n"
		"  %z = convert %x.1 : i32[256]\n"
		"  store %q.1, %z\n"
		"  store %p, %s.2\n"
		"  return\n"
		"}\n",
		false, {{"bra", -1}, {"div.u32", 1}}},
	{"a loop with a constant step, unrolled",
		"func @f(%n: i32, %x: *const f32 {align=16}, %y: *f32 {align=16}) num_warps=4 num_stages=1 num_ctas=1 "
		"{\n"
		"  %lo = const {value=0} : i32\n"
		"  %step = const {value=512} : i32\n"
		"  %zero = const {value=0.0} : f32[512]\n"
		"  %c = arange {lo=0} : i32[512]\n"
		"  %p = splat %x : (*const f32)[512]\n"
		"  %r = for %lo, %n, %step, %zero {num_stages=1 unroll=4} : f32[512] (%i: i32, %s: "
		"f32[512]) "
		"{\n"
		"    %i.1 = splat %i : i32[512]\n"
		"    %o = add %i.1, %c : i32[512]\n"
		"    %q = ptr_add %p, %o : (*const f32)[512]\n"
		"    %v = load %q : f32[512]\n"
		"    %s.1 = add %s, %v : f32[512]\n"
		"    yield %s.1\n"
		"  }\n"
		"  %t = reduce %r {axis=0 combine=sum} : f32\n"
		"  store %y, %t\n"
		"  return\n"
		"}\n",
		false, {{"ld.global.nc.v4.b32", -1}, {"st.global.b32", 1}, {"bar.sync", 1}}},
	{"hints",
		"func @f(%x: *const f32 {align=16}, %z: *f32 {align=16}, %n: i32) num_warps=4 num_stages=1 num_ctas=1 "
		"{\n"
		"  %c = arange {lo=0} : i32[512]\n"
		"  %m = splat %n : i32[512]\n"
		"  %m.1 = lt %c, %m : bool[512]\n"
		"  %p = splat %x : (*const f32)[512]\n"
		"  %q = ptr_add %p, %c : (*const f32)[512]\n"
		"  %p.1 = splat %z : (*f32)[512]\n"
		"  %q.1 = ptr_add %p.1, %c : (*f32)[512]\n"
		"  %a = load %q {cache=cg} : f32[512]\n"
		"  %b = load %q {evict=first} : f32[512]\n"
		"  %d = load %q.1 {cache=cv} : f32[512]\n"
		"  %e = load %q.1, %m.1 {volatile=1} : f32[512]\n"
		"  %f = add %a, %b : f32[512]\n"
		"  %g = add %d, %e : f32[512]\n"
		"  %h = add %f, %g : f32[512]\n"
		"  store %q.1, %h {cache=cs}\n"
		"  store %q.1, %h {evict=last}\n"
		"  return\n"
		"}\n",
		false,
		{{"ld.global.cg.nc.v4.b32", 1}, {"ld.global.nc.L1::evict_first.v4.b32", 1}, {"ld.global.cv.v4.b32", 1},
			{"ld.volatile.global.b32", 4}, {"st.global.cs.v4.b32", 1},
			{"st.global.L1::evict_last.v4.b32", 1}}},
	{"a scalar that others may write",
		"func @f(%x: *i32 {align=16}, %k: *const i32) num_warps=4 num_stages=1 num_ctas=1 {\n"
		"  %a = load %x : i32\n"
		"  %b = load %k : i32\n"
		"  %d = add %a, %b : i32\n"
		"  store %x, %d\n"
		"  return\n"
		"}\n",
		false,
		{{"ld.global.b32", 1}, {"ld.global.nc.b32", 1}, {"bar.sync", 1}, {"ld.shared.b32", 1},
			{"st.global.b32", 1}}},
	{"prints and asserts",
		"func @f(%x: *const f32 {align=16}, %n: i32) num_warps=1 num_stages=1 num_ctas=1 {\n"
		"  %c = arange {lo=0} : i32[16]\n"
		"  %m = splat %n : i32[16]\n"
		"  %m.1 = lt %c, %m : bool[16]\n"
		"  %p = splat %x : (*const f32)[16]\n"
		"  %q = ptr_add %p, %c : (*const f32)[16]\n"
		"  %a = load %q : f32[16]\n"
		"  assert %m.1 {text=\"in bounds\"}\n"
		"  print %n {text=\"n\"}\n"
		"  print %a, %n, %m.1, %q {text=\"100%\"}\n"
		"  return\n"
		"}\n",
		true, {{"vprintf,", 3}, {"__assertfail,", 1}}}, /* an assert of a tile prints where it failed */
};

static unsigned times(const char *s, const char *what)
{
	unsigned n = 0;
	for (const char *p = s; (p = strstr(p, what)); p += strlen(what)) n++;
	return n;
}

static bool (*const passes[])(pass_context *, ir_func *) = {pass_axis, pass_assign_layouts, pass_cse, pass_licm,
	pass_dce, pass_allocate_shared, pass_barriers, pass_synchronise};

static void report_and_fail(const char *what)
{
	text t = {.arena = &memory};
	if (messages.first) diag_render_text(&messages, &t);
	fail_msg("%s: %s", what, t.at ? t.at : "no message");
}

static nvptx_output assemble(const sample *s, const blk_target *target)
{
	ir_func *f = read_text(s->text);
	bool show = getenv("BLK_SHOW") && strstr(s->name, getenv("BLK_SHOW"));
	pass_context p = {.arena = &memory, .diags = &messages, .target = target};
	for (unsigned i = 0; i < sizeof passes / sizeof passes[0]; i++)
		if (!passes[i](&p, f)) report_and_fail(s->name);
	if (show) fprintf(stderr, "%s\n", print(f));
	nvptx_options options = {.line_info = true, .want_llvm = true, .want_ptx = true};
	options.want_cubin = access("/usr/local/cuda/bin/ptxas", X_OK) == 0;
	nvptx_output out;
	bool good = nvptx_emit(&p, f, &options, &out);
	if (show)
		fprintf(stderr, "%s\n%s\n%s\n", out.llvm ? out.llvm : "", out.ptx ? out.ptx : "",
			out.ptxas_log ? out.ptxas_log : "");
	if (!good) report_and_fail(s->name);
	if (out.assembled) {
		assert_int_equal(out.spill_bytes, 0);
		if (out.ptxas_log) fail_msg("%s: %s", s->name, out.ptxas_log);
	}
	return out;
}

static void all_samples(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		const sample *s = &samples[i];
		if (getenv("BLK_ONLY") && !strstr(s->name, getenv("BLK_ONLY"))) continue;
		for (unsigned t = 0; target_at(t); t++) {
			if (target_at(t)->kind != TARGET_NVPTX) continue;
			nvptx_output out = assemble(s, target_at(t));
			if (!s->local && strstr(out.ptx, ".local")) fail_msg("%s: local memory", s->name);
			for (const expected *e = s->count; e->what; e++) {
				int n = (int)times(out.ptx, e->what);
				if (e->times < 0 ? n == 0 : n != e->times)
					fail_msg("%s, %s: '%s' stands %d times, not %d", s->name, target_at(t)->name,
						e->what, n, e->times);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_samples, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
