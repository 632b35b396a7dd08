/* join, split, gather, histogram and inline assembly on their way to the GPU: layouts, scratch, barriers, and the text
 * of inline assembly. */
#include "kernel_builder.h"
#include "../../compiler/ir/inline_asm.h"
#include "async/scratch.h"

static void assign(kernel *k)
{
	text why = {.arena = &k->memory};
	finish(k);
	if (!ir_verify(k->func, &why)) fail_msg("%s", why.at);
	assert_true(pass_assign_layouts(&k->context, k->func));
	if (!ir_verify(k->func, &why)) fail_msg("%s", why.at);
}

static void schedule(kernel *k)
{
	assign(k);
	assert_true(pass_allocate_shared(&k->context, k->func));
	assert_true(pass_barriers(&k->context, k->func));
}

static ir_value *join(kernel *k, ir_value *a, ir_value *b)
{
	ir_type t = a->type;
	t.dim[t.rank++] = 2;
	return ir_build1(&k->at, IR_JOIN, t, 2, (ir_value *[]){a, b});
}

static ir_op *split(kernel *k, ir_value *v)
{
	ir_type t = v->type;
	t.dim[--t.rank] = 0;
	return ir_build(&k->at, IR_SPLIT, 1, &v, 2, (ir_type[]){t, t}, 0);
}

static ir_value *reshape(kernel *k, ir_value *v, ir_type shape)
{
	return ir_build1(&k->at, IR_RESHAPE, ir_with_shape(ir_element(v->type), shape), 1, &v);
}

static ir_value *gather(kernel *k, ir_value *x, ir_value *index)
{
	return ir_build1(&k->at, IR_GATHER, ir_with_elem(index->type, x->type.elem), 2, (ir_value *[]){x, index});
}

static ir_value *histogram(kernel *k, ir_value *x, uint32_t bins)
{
	return ir_build1(&k->at, IR_HISTOGRAM, shaped(SCALAR_I32, 1, bins, 0), 1, &x);
}

typedef struct world {
	kernel *k;
	ir_value *x, *y, *i, *n; /* *const f32, *f32, *const i32, i32 */
} world;

static world world_new(unsigned warps)
{
	world w = {.k = kernel_new(warps)};
	w.x = pointer_param(w.k, "x", SCALAR_F32, true, 16);
	w.y = pointer_param(w.k, "y", SCALAR_F32, false, 16);
	w.i = pointer_param(w.k, "i", SCALAR_I32, true, 16);
	w.n = param(w.k, "n", ir_scalar_type(SCALAR_I32), 16);
	return w;
}

/* Two loads of four elements a thread, joined and flattened: eight neighbours a thread, and no conversion. */
static void test_interleave(void **state)
{
	(void)state;
	world w = world_new(4);
	ir_value *o = arange(w.k, 512);
	ir_value *v = load(w.k, offset_pointer(w.k, w.x, o), NULL);
	ir_value *j = join(w.k, v, ir_unary(&w.k->at, IR_NEG, v));
	ir_value *flat = reshape(w.k, j, shaped(SCALAR_F32, 1, 1024, 0));
	store(w.k, offset_pointer(w.k, w.y, arange(w.k, 1024)), flat, NULL);
	assign(w.k);
	check_layout(w.k, v, "reg (1)(2) lane (4)(8)(16)(32)(64) warp (128)(256)");
	check_layout(w.k, j, "reg (0,1)(1,0)(2,0) lane (4,0)(8,0)(16,0)(32,0)(64,0) warp (128,0)(256,0)");
	check_layout(w.k, flat, "reg (1)(2)(4) lane (8)(16)(32)(64)(128) warp (256)(512)");
	assert_int_equal(count(w.k, IR_CONVERT_LAYOUT), 0);
	kernel_free(w.k);
}

/* Computed halves lie as the loads beside their join want it, and nothing is converted; where neighbours lie in other
 * lanes (nothing is promised of x and y, so an element a lane) they are joined in one thread and converted once. */
static void test_floating_join(void **state)
{
	(void)state;
	for (int aligned = 0; aligned < 2; aligned++) {
		world w = world_new(4);
		ir_value *x = aligned ? w.x : pointer_param(w.k, "narrow_x", SCALAR_F32, true, 4);
		ir_value *y = aligned ? w.y : pointer_param(w.k, "narrow_y", SCALAR_F32, false, 4);
		ir_value *o = arange(w.k, 512), *j = join(w.k, o, ir_unary(&w.k->at, IR_NEG, o));
		ir_value *flat = reshape(w.k, j, shaped(SCALAR_I32, 1, 1024, 0));
		ir_value *number = ir_build1(&w.k->at, IR_CONVERT, shaped(SCALAR_F32, 1, 1024, 0), 1, &flat);
		ir_value *p = arange(w.k, 1024), *v = load(w.k, offset_pointer(w.k, x, p), NULL);
		store(w.k, offset_pointer(w.k, y, p), ir_binary(&w.k->at, IR_ADD, v, number), NULL);
		assign(w.k);
		assert_int_equal(count(w.k, IR_JOIN), 1);
		assert_int_equal(count(w.k, IR_CONVERT_LAYOUT), !aligned);
		if (aligned) {
			check_layout(w.k, v, "reg (1)(2)(512) lane (4)(8)(16)(32)(64) warp (128)(256)");
			check_layout(
				w.k, j, "reg (0,1)(1,0)(256,0) lane (2,0)(4,0)(8,0)(16,0)(32,0) warp (64,0)(128,0)");
		}
		kernel_free(w.k);
	}
}

/* The pairs lie in a thread: nothing moves. */
static void test_split(void **state)
{
	(void)state;
	world w = world_new(4);
	ir_value *v = load(w.k, offset_pointer(w.k, w.x, arange(w.k, 512)), NULL);
	ir_op *s = split(w.k, reshape(w.k, v, shaped(SCALAR_F32, 2, 256, 2)));
	ir_value *sum = ir_binary(&w.k->at, IR_ADD, s->results[0], s->results[1]);
	store(w.k, offset_pointer(w.k, w.y, arange(w.k, 256)), sum, NULL);
	assign(w.k);
	check_layout(w.k, s->results[0], "reg (1) lane (2)(4)(8)(16)(32) warp (64)(128)");
	check_layout(w.k, s->results[1], "reg (1) lane (2)(4)(8)(16)(32) warp (64)(128)");
	assert_int_equal(count(w.k, IR_CONVERT_LAYOUT), 0);
	kernel_free(w.k);
}

/* An element a thread: the pairs lie in neighbouring lanes, and one conversion brings them together. */
static void test_split_of_lanes(void **state)
{
	(void)state;
	world w = world_new(1);
	ir_value *v = load(w.k, offset_pointer(w.k, w.x, arange(w.k, 32)), NULL);
	ir_op *s = split(w.k, reshape(w.k, v, shaped(SCALAR_F32, 2, 16, 2)));
	ir_value *sum = ir_binary(&w.k->at, IR_ADD, s->results[0], s->results[1]);
	store(w.k, offset_pointer(w.k, w.y, arange(w.k, 16)), sum, NULL);
	assign(w.k);
	check_layout(w.k, ir_arg(s, 0), "reg (0,1) lane (0,0)(1,0)(2,0)(4,0)(8,0) warp ()");
	check_layout(w.k, s->results[0], "reg () lane (0)(1)(2)(4)(8) warp ()");
	kernel_free(w.k);
}

/* Two scalars and back: every thread has both. */
static void test_scalars(void **state)
{
	(void)state;
	world w = world_new(2);
	ir_value *j = join(w.k, w.n, w.n);
	ir_op *s = split(w.k, ir_unary(&w.k->at, IR_NEG, j));
	store(w.k, w.y, ir_build1(&w.k->at, IR_CONVERT, ir_scalar_type(SCALAR_F32), 1, &s->results[1]), NULL);
	assign(w.k);
	check_layout(w.k, j, "reg (1) lane (0)(0)(0)(0)(0) warp (0)");
	check_layout(w.k, ir_arg(s, 0), "reg (1) lane (0)(0)(0)(0)(0) warp (0)");
	kernel_free(w.k);
}

/* The result lies as the index does; x is not converted, whatever its layout; x's bytes are the scratch. */
static void test_gather(void **state)
{
	(void)state;
	world w = world_new(4);
	ir_value *v = load(w.k, offset_pointer(w.k, w.x, arange(w.k, 2048)), NULL);
	ir_value *i = load(w.k, offset_pointer(w.k, w.i, arange(w.k, 512)), NULL);
	ir_value *g = gather(w.k, v, i);
	store(w.k, offset_pointer(w.k, w.y, arange(w.k, 512)), g, NULL);
	schedule(w.k);
	check_layout(w.k, g, "reg (1)(2) lane (4)(8)(16)(32)(64) warp (128)(256)");
	assert_int_equal(count(w.k, IR_CONVERT_LAYOUT), 0);
	assert_int_equal(g->def->shared_bytes, 2048 * 4);
	assert_int_equal(count(w.k, IR_CTA_BARRIER), 0);
	kernel_free(w.k);
}

/* Round a loop the write of the scratch meets the reads of the round before: one barrier. */
static void test_gather_in_loop(void **state)
{
	(void)state;
	world w = world_new(4);
	ir_value *i = load(w.k, offset_pointer(w.k, w.i, arange(w.k, 512)), NULL);
	ir_op *loop = begin_for(w.k, w.n, 1, &i);
	ir_value *arg = loop->regions[0]->args[1], *next = gather(w.k, arg, arg);
	end_region(w.k, 1, &next);
	ir_value *f = ir_build1(&w.k->at, IR_CONVERT, shaped(SCALAR_F32, 1, 512, 0), 1, &loop->results[0]);
	store(w.k, offset_pointer(w.k, w.y, arange(w.k, 512)), f, NULL);
	schedule(w.k);
	assert_int_equal(count(w.k, IR_CTA_BARRIER), 1);
	assert_ptr_equal(next->def->prev->kind == IR_CTA_BARRIER ? loop->regions[0] : NULL, next->def->block);
	kernel_free(w.k);
}

/* Small scratches side by side need no barrier between them; a large one is reused behind one. */
static void test_scratch_is_shared(void **state)
{
	(void)state;
	for (unsigned large = 0; large < 2; large++) {
		world w = world_new(4);
		uint32_t n = large ? 2048 : 256;
		ir_value *i = load(w.k, offset_pointer(w.k, w.i, arange(w.k, n)), NULL);
		ir_value *h = histogram(w.k, i, 64), *a = gather(w.k, h, i), *g = gather(w.k, a, a);
		ir_value *f = ir_build1(&w.k->at, IR_CONVERT, shaped(SCALAR_F32, 1, n, 0), 1, &g);
		store(w.k, offset_pointer(w.k, w.y, arange(w.k, n)), f, NULL);
		schedule(w.k);
		assert_int_equal(h->def->shared_bytes, 256);
		assert_int_equal(a->def->shared_bytes, 256);
		assert_int_equal(g->def->shared_bytes, 4 * n);
		assert_int_equal(count(w.k, IR_CTA_BARRIER), large);
		assert_int_equal(w.k->func->shared_bytes, large ? 4 * n : 4 * n + 256);
		kernel_free(w.k);
	}
}

static void test_too_large(void **state)
{
	(void)state;
	world w = world_new(8);
	ir_value *i = load(w.k, offset_pointer(w.k, w.i, arange(w.k, 65536)), NULL), *g = gather(w.k, i, i);
	ir_value *f = ir_build1(&w.k->at, IR_CONVERT, shaped(SCALAR_F32, 1, 65536, 0), 1, &g);
	store(w.k, offset_pointer(w.k, w.y, arange(w.k, 65536)), f, NULL);
	assign(w.k);
	assert_false(pass_allocate_shared(&w.k->context, w.k->func));
	assert_int_equal(w.k->found.first->code, 720);
	assert_non_null(strstr(w.k->found.first->message, "needs 262144 bytes of shared memory"));
	kernel_free(w.k);
}

/* The bins' layout is their own, whatever x's is; a mask comes in x's. */
static void test_histogram(void **state)
{
	(void)state;
	world w = world_new(4);
	ir_value *o = offsets2(w.k, 32, 64, number(w.k, SCALAR_I32, 64));
	ir_value *v = load(w.k, offset_pointer(w.k, w.i, o), NULL);
	ir_value *mask = ir_binary(&w.k->at, IR_LT, o, splat(w.k, w.n, o));
	ir_value *h = ir_build1(&w.k->at, IR_HISTOGRAM, shaped(SCALAR_I32, 1, 16, 0), 2, (ir_value *[]){v, mask});
	ir_value *f = ir_build1(&w.k->at, IR_CONVERT, shaped(SCALAR_F32, 1, 16, 0), 1, &h);
	store(w.k, offset_pointer(w.k, w.y, arange(w.k, 16)), f, NULL);
	schedule(w.k);
	assert_true(layout_equal(ir_arg(h->def, 0)->layout, ir_arg(h->def, 1)->layout));
	assert_true(layout_equal(v->layout, ir_arg(h->def, 0)->layout));
	check_layout(w.k, h, "reg () lane (1)(2)(4)(8)(0) warp (0)(0)");
	assert_int_equal(h->def->shared_bytes, 64);
	kernel_free(w.k);
}

/* ---- the text of inline assembly ---- */

static ir_asm parsed(const char *text_, unsigned pack, scalar result, scalar arg, unsigned nargs, const char *fault)
{
	arena memory = {0};
	jmp_buf out_of_memory;
	memory.recover = &out_of_memory;
	if (setjmp(out_of_memory)) fail_msg("out of memory");
	text why = {.arena = &memory};
	ir_type results[1] = {ir_scalar_type(result)}, args[4];
	for (unsigned i = 0; i < nargs; i++) args[i] = ir_scalar_type(arg);
	ir_asm a;
	ir_asm_fault found = ir_asm_parse(text_, pack, 1, results, nargs, args, &a, &why);
	if (!fault && found) fail_msg("%s: %s", text_, why.at);
	if (fault && (!found || !strstr(why.at, fault))) fail_msg("%s: %s", text_, found ? why.at : "accepted");
	arena_free(&memory);
	return a;
}

static void check_register(const ir_asm_register *r, unsigned value, unsigned first, unsigned n, char letter)
{
	assert_int_equal(r->value, value);
	assert_int_equal(r->first, first);
	assert_int_equal(r->n, n);
	assert_int_equal(r->letter, letter);
}

static void test_asm_registers(void **state)
{
	(void)state;
	ir_asm a = parsed("=r,r,r\nx $0, $1, $2;", 1, SCALAR_I8, SCALAR_F16, 2, NULL);
	assert_string_equal(a.code, "x $0, $1, $2;");
	assert_int_equal(a.noutputs, 1);
	assert_int_equal(a.ninputs, 2);
	check_register(&a.at[0], 0, 0, 1, 'r');
	check_register(&a.at[2], 1, 0, 1, 'r');
	a = parsed("=&r,h,h\n", 4, SCALAR_I8, SCALAR_I8, 2, "'h' does not hold 4 of i8: 'r' does");
	a = parsed("=&r,=r,r\n", 8, SCALAR_I8, SCALAR_BOOL, 1,
		"the constraints have 2 outputs and 1 input, the call has 2 and 2");
	a = parsed("=&r,=r,r,r\n", 8, SCALAR_I8, SCALAR_BOOL, 1, NULL);
	assert_int_equal(a.noutputs, 2);
	assert_true(a.at[0].early && !a.at[1].early);
	check_register(&a.at[1], 0, 4, 4, 'r');
	check_register(&a.at[3], 0, 4, 4, 'r');
	a = parsed("=d,l,l\n$$ $2", 1, SCALAR_F64, SCALAR_U64, 2, NULL);
	a = parsed("=h,f,f\n", 2, SCALAR_I8, SCALAR_F32, 1, NULL);
	check_register(&a.at[0], 0, 0, 2, 'h');
	check_register(&a.at[2], 0, 1, 1, 'f');
	a = parsed("=b,b\n", 1, SCALAR_BOOL, SCALAR_BOOL, 1, NULL);
}

static void test_asm_faults(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned pack;
		scalar result, arg;
		const char *fault;
	} rows[] = {
		{"popc", 1, SCALAR_I32, SCALAR_I32, "no line of constraints"},
		{"=r,\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{",=r,r\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"r,=r\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"=&,r\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"=r,&r\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"=rr,r\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"=r,0\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"=r,~{memory}\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"=r, r\n", 1, SCALAR_I32, SCALAR_I32, "constraints are letters"},
		{"=r\n", 1, SCALAR_I32, SCALAR_I32, "1 output and 0 inputs, the call has 1 and 1"},
		{"\n", 1, SCALAR_I32, SCALAR_I32, "0 outputs and 0 inputs"},
		{"=r,r,r\n", 1, SCALAR_I32, SCALAR_I32, "1 output and 2 inputs"},
		{"=f,r\n", 1, SCALAR_I32, SCALAR_I32, "'f' does not hold i32: 'r' does"},
		{"=r,l\n", 1, SCALAR_I32, SCALAR_U32, "'l' does not hold u32: 'r' does"},
		{"=r,d\n", 1, SCALAR_I32, SCALAR_I64, "'d' does not hold i64: 'l' does"},
		{"=r,r\n", 1, SCALAR_I32, SCALAR_F64, "'r' does not hold f64: 'd' does"},
		{"=h,r\n", 1, SCALAR_F32, SCALAR_F32, "'h' does not hold f32: 'f' does"},
		{"=b,r\n", 1, SCALAR_I8, SCALAR_I32, "'b' does not hold i8: 'h' does"},
		{"=b,h\n", 2, SCALAR_BOOL, SCALAR_I8, "'b' does not hold 2 of bool: 'h' does"},
		{"=r,r\n$", 1, SCALAR_I32, SCALAR_I32, "'$' is followed by"},
		{"=r,r\n$0 $(x$|y$)", 1, SCALAR_I32, SCALAR_I32, "'$' is followed by"},
		{"=r,r\n${0:x}", 1, SCALAR_I32, SCALAR_I32, "'$' is followed by"},
		{"=r,r\n$$$", 1, SCALAR_I32, SCALAR_I32, "'$' is followed by"},
		{"=r,r\n$2", 1, SCALAR_I32, SCALAR_I32, "there is no '$2': the constraints list 2 registers"},
		{"=r,r\n$99999999999", 1, SCALAR_I32, SCALAR_I32, "there is no '$9999'"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		parsed(rows[i].text, rows[i].pack, rows[i].result, rows[i].arg, 1, rows[i].fault);
	parsed("\n", 16, SCALAR_I32, SCALAR_I32, 3, "more than 32 registers for arguments");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interleave),
		cmocka_unit_test(test_floating_join),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_split_of_lanes),
		cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_gather_in_loop),
		cmocka_unit_test(test_scratch_is_shared),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_asm_registers),
		cmocka_unit_test(test_asm_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
