/* What the report is made of, without an assembler: occupancy against numbers worked out by hand from the CUDA
 * programming guide's limits, the estimate of registers by line, reasons, and a report that does not know registers. */
#include "ir_text.h"

#include "../../compiler/explain/explain.h"

static void check_occupancy(
	const char *target, unsigned warps, unsigned registers, unsigned shared, unsigned ctas, const char *limit)
{
	target_occupancy o = target_fill_sm(target_find(target), warps, registers, shared);
	if (o.ctas != ctas || o.warps != ctas * warps)
		fail_msg("%s, %u warps, %u registers, %u bytes: %u CTAs", target, warps, registers, shared, o.ctas);
	if (limit)
		assert_string_equal(o.limit, limit);
	else
		assert_null(o.limit);
}

static void occupancy(void **state)
{
	(void)state;
	check_occupancy("sm_80", 4, 32, 0, 16, "warps");
	check_occupancy("sm_80", 1, 16, 0, 32, "CTAs");
	check_occupancy("sm_86", 1, 16, 0, 16, "CTAs");
	check_occupancy("sm_89", 4, 32, 0, 12, "warps");
	/* 32 * 128 registers a warp: 4 warps in a quarter of 16384, 16 in all */
	check_occupancy("sm_80", 8, 128, 0, 2, "registers");
	/* one register more: 32 * 129 rounds up to 4352, 3 warps in a quarter */
	check_occupancy("sm_80", 8, 129, 0, 1, "registers");
	/* 48 KiB and the system's 1 KiB, of 164 and of 228 KiB */
	check_occupancy("sm_80", 4, 32, 48 * 1024, 3, "shared memory");
	check_occupancy("sm_90a", 4, 32, 48 * 1024, 4, "shared memory");
	check_occupancy("sm_90a", 4, 32, 227 * 1024, 1, "shared memory");
	check_occupancy("sm_90a", 4, 32, 227 * 1024 + 1, 0, NULL);
	check_occupancy("sm_80", 16, 255, 0, 0, NULL);
}

/* A scheduled function from text. */
static ir_func *schedule(pass_context *p, const char *s)
{
	ir_func *f = read_text(s);
	assert_non_null(f);
	*p = (pass_context){.arena = &memory, .diags = &messages, .target = target_find("sm_80")};
	assert_true(pass_assign_layouts(p, f) && pass_allocate_shared(p, f) && pass_barriers(p, f));
	return f;
}

#define OPEN "func @k(%x: *f32 {align=16}, %y: *f32 {align=16}, %n: i32) num_warps=4 {\n"
#define POLICY ""
#define POINTERS                                                                                                       \
	"%i = arange {lo=0} : i32[1024]\n%a = splat %x : (*f32)[1024]\n%p = ptr_add %a, %i : (*f32)[1024]\n"           \
	"%b = splat %y : (*f32)[1024]\n%q = ptr_add %b, %i : (*f32)[1024]\n"

#define READ_ONLY "func @k(%x: *const f32 {align=16}, %y: *f32 {align=16}, %n: i32) num_warps=4 {\n"
#define CONST_POINTERS                                                                                                 \
	"%i = arange {lo=0} : i32[1024]\n%a = splat %x : (*const f32)[1024]\n%p = ptr_add %a, %i : (*const "           \
	"f32)[1024]\n"                                                                                                 \
	"%b = splat %y : (*f32)[1024]\n%q = ptr_add %b, %i : (*f32)[1024]\n"

/* Tests' texts have no file for operations to stand in: lines are those of the one operation given a place. */
static void place_all(ir_op *o, void *context)
{
	o->at = *(span *)context;
}

static void registers_by_line(void **state)
{
	(void)state;
	pass_context p;
	ir_func *f =
		schedule(&p, OPEN POINTERS "%v = load %p " POLICY " : f32[1024]\n%w = load %q " POLICY " : f32[1024]\n"
					   "%s = add %v, %w : f32[1024]\n%e = sub %s, %v : f32[1024]\n"
					   "store %q, %e\nreturn\n}\n");
	source_file file = {.name = "k.blk", .text = "one line\n", .size = 9};
	span at = {&file, 0, 3};
	ir_walk(f->body, place_all, &at);
	pressure e = pressure_estimate(&memory, f);
	assert_int_equal(e.lines.n, 1);
	assert_int_equal(e.lines.at[0].line, 1);
	/* v and w, 1024 elements over 128 threads each, and a few of addresses: s takes w's place */
	assert_true(e.lines.at[0].registers >= 16 && e.lines.at[0].registers <= 24);
	assert_int_equal(e.lines.at[0].most[0].registers, 8);
	assert_int_equal(e.lines.at[0].most[1].registers, 8);
}

static void loops_keep_what_they_read(void **state)
{
	(void)state;
	pass_context p;
	ir_func *f = schedule(&p, OPEN POINTERS
		"%v = load %p " POLICY " : f32[1024]\n%zero = const {value=0} : i32\n%one = const {value=1} : i32\n"
		"%r = for %zero, %n, %one, %v : f32[1024] (%k: i32, %c: "
		"f32[1024]) "
		"{\n"
		"%d = add %c, %v : f32[1024]\n%g = mul %d, %d : f32[1024]\nyield %g\n}\n"
		"store %q, %r\nreturn\n}\n");
	source_file file = {.name = "k.blk", .text = "one line\n", .size = 9};
	span at = {&file, 0, 3};
	ir_walk(f->body, place_all, &at);
	pressure e = pressure_estimate(&memory, f);
	assert_int_equal(e.lines.n, 1);
	/* v is read again in the next round: it lives beside the carried value, though nothing reads it after the add
	 */
	assert_true(e.lines.at[0].registers >= 16 && e.lines.at[0].registers <= 28);
}

static void not_assembled(void **state)
{
	(void)state;
	pass_context p;
	ir_func *f =
		schedule(&p, READ_ONLY CONST_POINTERS "%m.0 = splat %n : i32[1024]\n%m = lt %i, %m.0 : bool[1024]\n"
						      "%v = load %p, %m " POLICY " : f32[1024]\n"
						      "store %q, %v, %m\nreturn\n}\n");
	nvptx_output code = {.ptx = "", .ptx_bytes = 1234};
	explain_kernel *k = explain_make(&p, f, &code);
	assert_int_equal(k->rows.n, 2);
	assert_int_equal(k->rows.at[0].kind, EXPLAIN_LOAD);
	assert_string_equal(k->rows.at[0].name, "x");
	assert_string_equal(k->rows.at[1].name, "y");
	assert_string_equal(k->rows.at[0].promise, "n%16");
	assert_int_equal(k->rows.at[0].access_bytes, 4);
	assert_int_equal(k->rows.at[0].accesses, 8);
	text out = {.arena = &memory}, json = {.arena = &memory};
	explain_text(&out, &memory, k);
	assert_non_null(strstr(out.at, "registers unknown: no ptxas"));
	assert_non_null(strstr(out.at, "PTX 1234 bytes, cubin unknown: no ptxas"));
	assert_non_null(strstr(out.at, "'n' is not known to be divisible by 4"));
	explain_json(&json, &memory, "k.blk", (const explain_kernel *const *)&k, 1);
	assert_non_null(strstr(json.at, "\"registers\": null"));
	assert_non_null(strstr(json.at, "\"promise\": \"n%16\""));
	f->params[2].divisible = 16;
	p.axis_of = NULL; /* what was known of the function no longer holds */
	k = explain_make(&p, f, &code);
	assert_null(strstr(k->rows.at[0].why, "mask")); /* now it is the layout, which was chosen before */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(occupancy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(registers_by_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(loops_keep_what_they_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(not_assembled, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
