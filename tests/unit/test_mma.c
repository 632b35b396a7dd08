/* Which instruction multiplies, how warps share its sum, and what pass_prepare_dots leaves. */
#include "compiler/target/nvptx/mma/sync.h"
#include "compiler/passes/passes.h"
#include "ir_text.h"

static ir_op *find_dot(const ir_func *f, unsigned number)
{
	ir_op *o = f->body->first;
	for (; o; o = o->next)
		if (o->kind == IR_DOT && number-- == 0) break;
	assert_non_null(o);
	return o;
}

#define HEAD                                                                                                           \
	"func @f(%h: f16, %g: bf16, %e: f8e4m3, %w: f8e5m2, %c: i8, %x: f32, %d: f64) num_warps=4 num_stages=3 "       \
	"num_ctas=1 {\n"

static ir_func *in_function(const char *body)
{
	return read_text(arena_printf(&memory, "%s%s  return\n}\n", HEAD, body));
}

static const char *form_name(const char *target, const char *x, const char *type, const char *result, int precision)
{
	ir_func *f = in_function(arena_printf(&memory,
		"%%a = splat %s : %s[16,16]\n%%r = dot %%a, %%a {precision=%s} : %s[16,16]\nprint %%r {text=\"\"}\n", x,
		type, ir_precision_names[precision], result));
	const mma_form *form = mma_form_of(target_find(target), find_dot(f, 0));
	return !form ? "none" : form->name ? form->name : "fma";
}

static void forms(void **state)
{
	(void)state;
	assert_string_equal(form_name("sm_80", "%h", "f16", "f32", 0), "m16n8k16.row.col.f32.f16.f16.f32");
	assert_string_equal(form_name("sm_80", "%h", "f16", "f32", 2), "m16n8k16.row.col.f32.f16.f16.f32");
	assert_string_equal(form_name("sm_120a", "%g", "bf16", "f32", 0), "m16n8k16.row.col.f32.bf16.bf16.f32");
	assert_string_equal(form_name("sm_80", "%c", "i8", "i32", 0), "m16n8k32.row.col.s32.s8.s8.s32");
	assert_string_equal(form_name("sm_80", "%d", "f64", "f64", 0), "m8n8k4.row.col.f64.f64.f64.f64");
	assert_string_equal(form_name("sm_80", "%x", "f32", "f32", 0), "m16n8k8.row.col.f32.tf32.tf32.f32");
	assert_string_equal(form_name("sm_80", "%x", "f32", "f32", 2), "fma");
	assert_string_equal(form_name("sm_86", "%e", "f8e4m3", "f32", 0), "none");
	assert_string_equal(form_name("sm_89", "%w", "f8e5m2", "f32", 0), "m16n8k32.row.col.f32.%s.%s.f32");
}

/* The two coordinates of a column of a layout of rank 2 or 3, and the batch. */
static void check_column(const layout *sum, const layout *a, const layout *b, layout_in in, unsigned i)
{
	unsigned r = sum->rank;
	uint32_t s = sum->col[in][i], x = a->col[in][i], y = b->col[in][i];
	assert_int_equal(layout_coordinate(sum, s, r - 2), layout_coordinate(a, x, r - 2));
	assert_int_equal(layout_coordinate(sum, s, r - 1), layout_coordinate(b, y, r - 1));
	assert_int_equal(layout_coordinate(a, x, r - 1), 0);
	assert_int_equal(layout_coordinate(b, y, r - 2), 0);
	if (r == 2) return;
	assert_int_equal(layout_coordinate(sum, s, 0), layout_coordinate(a, x, 0));
	assert_int_equal(layout_coordinate(sum, s, 0), layout_coordinate(b, y, 0));
}

/* Every warp holds the rows and columns, and all of k, that its part of the sum needs; both operands' lanes step k
 * alike. */
static void check_shares(scalar type, unsigned rank, uint32_t batch, uint32_t m, uint32_t n, uint32_t k, unsigned warps)
{
	uint32_t da[] = {batch, m, k}, db[] = {batch, k, n}, ds[] = {batch, m, n};
	scalar result = type == SCALAR_I8 ? SCALAR_I32 : type == SCALAR_F64 ? SCALAR_F64 : SCALAR_F32;
	ir_func *f = ir_func_new(&memory, "f");
	ir_builder build = {.func = f, .block = f->body};
	ir_value *args[] = {ir_constant(&build, ir_tile_type(type, rank, da + 3 - rank), 0),
		ir_constant(&build, ir_tile_type(type, rank, db + 3 - rank), 0)};
	ir_value *sum = ir_build1(&build, IR_DOT, ir_tile_type(result, rank, ds + 3 - rank), 2, args);
	const mma_form *form = mma_form_of(target_find("sm_90a"), sum->def);
	mma_layouts l;
	mma_layouts_of(sum->def, form, warps, &l);
	const layout *all[] = {&l.sum, &l.a, &l.b};
	for (unsigned i = 0; i < 3; i++) {
		assert_true(layout_plain(all[i]) && layout_surjective(all[i]));
		assert_int_equal(1u << all[i]->nin[LAYOUT_WARP], warps);
		assert_int_equal(all[i]->nin[LAYOUT_LANE], 5);
	}
	for (unsigned i = 0; i < l.sum.nin[LAYOUT_WARP]; i++) check_column(&l.sum, &l.a, &l.b, LAYOUT_WARP, i);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(layout_coordinate(&l.a, l.a.col[LAYOUT_LANE][i], rank - 1),
			layout_coordinate(&l.b, l.b.col[LAYOUT_LANE][i], rank - 2));
	for (unsigned i = 2; i < 5; i++) /* rows of the sum are rows of a, in the same lanes */
		assert_int_equal(layout_coordinate(&l.a, l.a.col[LAYOUT_LANE][i], rank - 2),
			layout_coordinate(&l.sum, l.sum.col[LAYOUT_LANE][i], rank - 2));
	uint32_t most = batch * m * n / (32 * warps);
	if (m >= 16 && n >= 8 && batch * (m / 16) * (n / 8) >= warps) /* nothing is computed twice */
		assert_int_equal(layout_registers(&l.sum), most);
}

static void shares(void **state)
{
	(void)state;
	static const scalar types[] = {SCALAR_F16, SCALAR_I8, SCALAR_F32, SCALAR_F64};
	for (unsigned t = 0; t < 4; t++)
		for (uint32_t m = 1; m <= 256; m *= 2)
			for (uint32_t n = 1; n <= 256; n *= 2)
				for (unsigned warps = 1; warps <= 16; warps *= 2) {
					check_shares(types[t], 2, 1, m, n, 1u << (t + (m >> 3 & 1)), warps * 1u);
					for (uint32_t batch = 1; batch <= 8; batch *= 4)
						check_shares(types[t], 3, batch, m / 4 + !(m / 4), n, 16, warps);
				}
}

/* Square parts; all along the rows where one sum is the next one's operand. */
static void directions(void **state)
{
	(void)state;
	mma_layouts l;
	const blk_target *target = target_find("sm_80");
	ir_func *f = in_function("%a = splat %h : f16[128,32]\n%b = splat %h : f16[32,128]\n"
				 "%r = dot %a, %b : f32[128,128]\nprint %r {text=\"\"}\n");
	mma_layouts_of(find_dot(f, 0), mma_form_of(target, find_dot(f, 0)), 4, &l);
	assert_int_equal(l.sum.col[LAYOUT_WARP][0], 16u << 7);
	assert_int_equal(l.sum.col[LAYOUT_WARP][1], 8);
	f = in_function("%a = splat %h : f16[128,32]\n%b = splat %h : f16[32,128]\n%c2 = splat %h : f16[128,64]\n"
			"%r = dot %a, %b : f32[128,128]\n%s = exp %r : f32[128,128]\n"
			"%p = convert %s : f16[128,128]\n%o = dot %p, %c2 : f32[128,64]\n"
			"print %o {text=\"\"}\n");
	for (unsigned i = 0; i < 2; i++) {
		mma_layouts_of(find_dot(f, i), mma_form_of(target, find_dot(f, i)), 4, &l);
		assert_int_equal(layout_coordinate(&l.sum, l.sum.col[LAYOUT_WARP][0], 0), 16);
		assert_int_equal(layout_coordinate(&l.sum, l.sum.col[LAYOUT_WARP][1], 0), 32);
	}
}

static void check_prepared(const char *target, const char *before, const char *after)
{
	ir_func *f = in_function(before), *g = in_function(after);
	pass_context c = {.arena = &memory, .diags = &messages, .target = target_find(target)};
	assert_true(pass_prepare_dots(&c, f) && pass_dce(&c, f));
	check_verifies(f);
	for (unsigned side = 0; side < 2; side++)
		for (ir_op *o = (side ? g : f)->body->first; o; o = o->next)
			for (unsigned i = 0; i < o->nresults; i++) o->results[i]->name = NULL;
	assert_string_equal(print(f), print(g));
}

static void prepared(void **state)
{
	(void)state;
#define FP8 "%a = splat %e : f8e4m3[16,32]\n%b = splat %w : f8e5m2[32,16]\n"
#define DOT "%r = dot %a, %b : f32[16,16]\nprint %r {text=\"\"}\n"
	check_prepared("sm_89", FP8 DOT, FP8 DOT);
	check_prepared("sm_86", FP8 DOT,
		FP8 "%k = convert %a : f16[16,32]\n%l = convert %b : f16[32,16]\n%r = dot %k, %l : "
		    "f32[16,16]\nprint %r {text=\"\"}\n");
#define F16 "%a = splat %h : f16[16,32]\n%b = splat %h : f16[32,16]\n%z = splat %h : f16[16,16]\n"
	check_prepared("sm_80", F16 "%r = dot %a, %b, %z : f16[16,16]\nprint %r {text=\"\"}\n",
		F16 "%k = convert %z : f32[16,16]\n%l = dot %a, %b, %k : f32[16,16]\n%r = convert %l : "
		    "f16[16,16]\nprint %r {text=\"\"}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(forms), TEST(shares), TEST(directions), TEST(prepared)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
