/* assign_layouts: the layouts that the typical kernels get, where conversions stand, and that after the pass every
 * operation finds its operands as its own layout wants them. */
#include "kernel_builder.h"

/* ---- what holds for every mapped function ---- */

static void check_value(const ir_value *v, unsigned num_warps)
{
	if (ir_is_scalar(v)) {
		assert_null(v->layout);
		return;
	}
	assert_non_null(v->layout);
	assert_int_equal(v->layout->rank, v->type.rank);
	for (unsigned d = 0; d < v->type.rank; d++) assert_int_equal(1u << v->layout->lg[d], v->type.dim[d]);
	assert_true(layout_plain(v->layout) && layout_surjective(v->layout));
	assert_int_equal(v->layout->nin[LAYOUT_LANE], 5);
	assert_int_equal(1u << v->layout->nin[LAYOUT_WARP], num_warps);
}

static void check_equal(const ir_value *a, const ir_value *b)
{
	assert_int_equal(ir_is_scalar(a), ir_is_scalar(b));
	if (!ir_is_scalar(a)) assert_true(layout_equal(a->layout, b->layout));
}

static void check_source(const ir_op *o)
{
	const ir_value *from = ir_arg(o, 0), *to = o->results[0];
	layout l;
	uint8_t order[IR_MAX_RANK];
	if (ir_is_scalar(from) || ir_is_scalar(to)) return;
	switch (o->kind) {
	case IR_EXPAND_DIMS: l = layout_expand(from->layout, ir_get_axis(o)); break;
	case IR_BROADCAST:
		l = layout_unbroadcast(to->layout, from->type);
		assert_true(layout_equal(&l, from->layout));
		return;
	case IR_RESHAPE: l = layout_reshape(from->layout, to->type); break;
	case IR_PERMUTE:
		for (unsigned i = 0; i < IR_MAX_RANK; i++) order[i] = (uint8_t)ir_unpack(ir_get_order(o), i);
		l = layout_permute(from->layout, order);
		break;
	default: return;
	}
	assert_true(layout_equal(&l, to->layout));
}

static void check_op(ir_op *o, void *context)
{
	const ir_func *f = context;
	for (unsigned i = 0; i < o->nresults; i++) check_value(o->results[i], f->num_warps);
	for (unsigned r = 0; r < o->nregions; r++)
		for (unsigned i = 0; i < o->regions[r]->nargs; i++) check_value(o->regions[r]->args[i], f->num_warps);
	for (unsigned i = 0; i < o->nargs; i++) check_value(ir_arg(o, i), f->num_warps);
	if (ir_has(o, IR_SHAPE)) check_source(o);
	if (ir_has(o, IR_ELEMENTWISE) || o->kind == IR_LOAD || o->kind == IR_HINT)
		for (unsigned i = 0; i < o->nargs; i++) check_equal(ir_arg(o, i), o->results[0]);
	if (o->kind == IR_STORE)
		for (unsigned i = 1; i < o->nargs; i++) check_equal(ir_arg(o, i), ir_arg(o, 0));
	if (o->kind == IR_REDUCE)
		for (unsigned i = 0; i < o->nargs; i++) {
			layout l = layout_slice(ir_arg(o, i)->layout, ir_get_axis(o));
			check_equal(ir_arg(o, i), ir_arg(o, 0));
			if (!ir_is_scalar(o->results[i])) assert_true(layout_equal(&l, o->results[i]->layout));
		}
	if (o->kind == IR_FOR)
		for (unsigned i = 0; i < o->nresults; i++) {
			check_equal(ir_arg(o, 3 + i), o->results[i]);
			check_equal(o->regions[0]->args[1 + i], o->results[i]);
			check_equal(ir_arg(o->regions[0]->last, i), o->results[i]);
		}
	if (o->kind == IR_IF)
		for (unsigned i = 0; i < o->nresults; i++)
			for (unsigned r = 0; r < 2; r++) check_equal(ir_arg(o->regions[r]->last, i), o->results[i]);
	if (o->kind == IR_WHILE) {
		for (unsigned i = 0; i < o->nargs; i++) {
			check_equal(ir_arg(o, i), o->regions[0]->args[i]);
			check_equal(ir_arg(o->regions[1]->last, i), o->regions[0]->args[i]);
		}
		for (unsigned i = 0; i < o->nresults; i++) {
			check_equal(ir_arg(o->regions[0]->last, 1 + i), o->results[i]);
			check_equal(o->regions[1]->args[i], o->results[i]);
		}
	}
	if (o->kind == IR_CONVERT_LAYOUT) assert_false(layout_equal(ir_arg(o, 0)->layout, o->results[0]->layout));
}

static void assign(kernel *k)
{
	finish(k);
	assert_true(pass_assign_layouts(&k->context, k->func));
	assert_int_equal(k->func->level, IR_LEVEL_MAPPED);
	ir_walk(k->func->body, check_op, k->func);
}

/* ---- kernels ---- */

static void test_vector_add(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, true, 16);
	ir_value *z = pointer_param(k, "z", SCALAR_F32, false, 16), *n = param(k, "n", ir_scalar_type(SCALAR_I32), 16);
	ir_value *o = arange(k, 1024), *m = ir_binary(&k->at, IR_LT, o, splat(k, n, o));
	ir_value *a = load(k, offset_pointer(k, x, o), m), *b = load(k, offset_pointer(k, y, o), m);
	ir_op *s = store(k, offset_pointer(k, z, o), ir_binary(&k->at, IR_ADD, a, b), m);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
	assert_int_equal(count(k, IR_ARANGE), 1); /* computed once, in one layout */
	check_layout(k, a, "reg (1)(2)(512) lane (4)(8)(16)(32)(64) warp (128)(256)");
	check_layout(k, ir_arg(s, 1), "reg (1)(2)(512) lane (4)(8)(16)(32)(64) warp (128)(256)");
	kernel_free(k);
}

/* Unknown alignment: nothing wider than an element; lanes side by side. A narrow store bounds the loads of its class.
 */
static void test_widths(void **state)
{
	(void)state;
	for (unsigned k2 = 0; k2 < 3; k2++) {
		kernel *k = kernel_new(4);
		ir_value *x = pointer_param(k, "x", SCALAR_F16, true, k2 == 0 ? 2 : 16);
		ir_value *z = pointer_param(k, "z", k2 == 2 ? SCALAR_F32 : SCALAR_F16, false, 16), *o = arange(k, 2048);
		ir_value *a = load(k, offset_pointer(k, x, o), NULL), *v = a;
		if (k2 == 0) z = x;
		if (k2 == 2) v = ir_build1(&k->at, IR_CONVERT, ir_with_elem(a->type, SCALAR_F32), 1, &a);
		store(k, offset_pointer(k, z, o), v, NULL);
		assign(k);
		static const char *const expected[] = {
			"reg (128)(256)(512)(1024) lane (1)(2)(4)(8)(16) warp (32)(64)",
			"reg (1)(2)(4)(1024) lane (8)(16)(32)(64)(128) warp (256)(512)",
			"reg (1)(2)(512)(1024) lane (4)(8)(16)(32)(64) warp (128)(256)",
		};
		check_layout(k, a, expected[k2]);
		assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
		kernel_free(k);
	}
}

static void test_softmax(void **state)
{
	(void)state;
	kernel *k = kernel_new(8);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *stride = param(k, "stride", ir_scalar_type(SCALAR_I32), 16);
	ir_value *o = arange(k, 4096);
	ir_value *args[] = {x, stride};
	ir_value *row = ir_build1(&k->at, IR_PTR_ADD, x->type, 2, args);
	ir_value *v = load(k, offset_pointer(k, row, o), NULL);
	ir_value *top = reduce(k, v, 0, IR_MAXIMUM);
	ir_value *e = ir_unary(&k->at, IR_EXP, ir_binary(&k->at, IR_SUB, v, splat(k, top, v)));
	ir_value *sum = reduce(k, e, 0, IR_SUM);
	store(k, offset_pointer(k, y, o), ir_binary(&k->at, IR_DIV, e, splat(k, sum, e)), NULL);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
	check_layout(k, v, "reg (1)(2)(1024)(2048) lane (4)(8)(16)(32)(64) warp (128)(256)(512)");
	kernel_free(k);
}

/* x - max(x)[:, None], and the row maxima stored: nothing is converted. */
static void test_row_statistics(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *m = pointer_param(k, "m", SCALAR_F32, false, 16),
		 *pitch = param(k, "pitch", ir_scalar_type(SCALAR_I32), 16);
	ir_value *o = offsets2(k, 64, 128, pitch);
	ir_value *v = load(k, offset_pointer(k, x, o), NULL), *top = reduce(k, v, 1, IR_MAXIMUM);
	ir_value *d = ir_binary(&k->at, IR_SUB, v, broadcast(k, expand(k, top, 1), v->type));
	store(k, offset_pointer(k, y, o), d, NULL);
	store(k, offset_pointer(k, m, arange(k, 64)), top, NULL);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
	check_layout(k, v, "reg (0,1)(0,2)(4,0)(8,0)(16,0)(32,0) lane (0,4)(0,8)(0,16)(0,32)(0,64) warp (1,0)(2,0)");
	check_layout(k, top, "reg (4)(8)(16)(32) lane (0)(0)(0)(0)(0) warp (1)(2)");
	kernel_free(k);
}

/* Warps go where the reduction does not: rows of 1 KiB stay inside a warp, columns are not split at all. */
static void test_warps_avoid_reductions(void **state)
{
	(void)state;
	for (unsigned axis = 0; axis < 2; axis++) {
		kernel *k = kernel_new(4);
		ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16),
			 *y = pointer_param(k, "y", SCALAR_F32, false, 16);
		ir_value *pitch = param(k, "pitch", ir_scalar_type(SCALAR_I32), 16),
			 *o = offsets2(k, 32, axis ? 256 : 512, pitch);
		ir_value *v = load(k, offset_pointer(k, x, o), NULL), *top = reduce(k, v, axis, IR_MAXIMUM);
		store(k, offset_pointer(k, y, arange(k, axis ? 32 : 512)), top, NULL);
		assign(k);
		check_layout(k, v,
			axis ? "reg (0,1)(0,2)(0,128)(4,0)(8,0)(16,0) lane (0,4)(0,8)(0,16)(0,32)(0,64) warp (1,0)(2,0)"
			     : "reg (0,1)(0,2)(1,0)(2,0)(4,0)(8,0)(16,0) lane (0,4)(0,8)(0,16)(0,32)(0,64) warp "
			       "(0,128)(0,256)");
		assert_true(pass_allocate_shared(&k->context, k->func));
		assert_int_equal(k->func->shared_bytes, 0);
		kernel_free(k);
	}
}

/* y = transpose(x): one conversion, both sides in wide accesses. */
static void test_transposed_copy(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *pitch = param(k, "pitch", ir_scalar_type(SCALAR_I32), 16), *o = offsets2(k, 64, 64, pitch);
	ir_value *v = load(k, offset_pointer(k, x, o), NULL), *t = transpose(k, v);
	ir_op *s = store(k, offset_pointer(k, y, o), t, NULL);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 1);
	check_layout(k, v, "reg (0,1)(0,2)(8,0)(16,0)(32,0) lane (0,4)(0,8)(0,16)(0,32)(1,0) warp (2,0)(4,0)");
	check_layout(
		k, ir_arg(s, 1), "reg (0,1)(0,2)(8,0)(16,0)(32,0) lane (0,4)(0,8)(0,16)(0,32)(1,0) warp (2,0)(4,0)");
	kernel_free(k);
}

/* The same through a pointer tile whose rows are the contiguous dimension: the store's class has the other order. */
static void test_orders(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *pitch = param(k, "pitch", ir_scalar_type(SCALAR_I32), 16), *o = offsets2(k, 64, 64, pitch);
	ir_value *v = load(k, offset_pointer(k, x, o), NULL);
	ir_op *s = store(k, transpose(k, offset_pointer(k, y, o)), v, NULL);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 1);
	check_layout(
		k, ir_arg(s, 0), "reg (1,0)(2,0)(0,8)(0,16)(0,32) lane (4,0)(8,0)(16,0)(32,0)(0,1) warp (0,2)(0,4)");
	kernel_free(k);
}

/* Carried pointers, an accumulator that starts as a constant, and one that starts in another layout than it yields. */
static void test_loops(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *n = param(k, "n", ir_scalar_type(SCALAR_I32), 1),
		 *pitch = param(k, "pitch", ir_scalar_type(SCALAR_I32), 16);
	ir_value *o = offsets2(k, 64, 64, pitch), *p = offset_pointer(k, x, o);
	ir_value *zero = ir_constant(&k->at, shaped(SCALAR_F32, 2, 64, 64), 0);
	ir_value *transposed = transpose(k, load(k, p, NULL));
	ir_value *inits[] = {p, zero, transposed};
	ir_op *loop = begin_for(k, n, 3, inits);
	ir_value **in = loop->regions[0]->args;
	ir_value *v = load(k, in[1], NULL), *step = number(k, SCALAR_I32, 64);
	ir_value *args[] = {in[1], splat(k, step, o)};
	ir_value *next = ir_build1(&k->at, IR_PTR_ADD, p->type, 2, args);
	ir_value *yields[] = {next, ir_binary(&k->at, IR_ADD, in[2], v), v};
	end_region(k, 3, yields);
	ir_value *sum = ir_binary(&k->at, IR_ADD, loop->results[1], loop->results[2]);
	store(k, offset_pointer(k, y, o), sum, NULL);
	assign(k);
	/* Only the transposed initial value is converted, outside the loop. */
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 1);
	assert_int_equal(ir_arg(loop, 5)->def->kind, IR_CONVERT_LAYOUT);
	for (unsigned i = 0; i < 3; i++)
		check_layout(k, loop->results[i],
			"reg (0,1)(0,2)(8,0)(16,0)(32,0) lane (0,4)(0,8)(0,16)(0,32)(1,0) warp (2,0)(4,0)");
	kernel_free(k);
}

static void test_branches(void **state)
{
	(void)state;
	kernel *k = kernel_new(2);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *c = param(k, "c", ir_scalar_type(SCALAR_BOOL), 1), *o = arange(k, 256);
	ir_type t = shaped(SCALAR_F32, 1, 256, 0), types[] = {t, t, ir_scalar_type(SCALAR_I32)};
	ir_op *branch = ir_build(&k->at, IR_IF, 1, &c, 3, types, 2);
	k->at.block = branch->regions[0];
	ir_value *yes[] = {load(k, offset_pointer(k, x, o), NULL), ir_constant(&k->at, t, 0), number(k, SCALAR_I32, 1)};
	end_region(k, 3, yes);
	k->at.block = branch->regions[1];
	ir_value *no[] = {ir_constant(&k->at, t, 7), ir_constant(&k->at, t, 8), number(k, SCALAR_I32, 2)};
	end_region(k, 3, no);
	store(k, offset_pointer(k, y, o), branch->results[0], NULL);
	store(k, offset_pointer(k, y, o), branch->results[1], NULL);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
	kernel_free(k);
}

static void test_while(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *o = arange(k, 512);
	ir_type t = shaped(SCALAR_F32, 1, 512, 0), types[] = {t, t};
	ir_value *inits[] = {ir_constant(&k->at, t, 0), number(k, SCALAR_I32, 0)};
	ir_op *loop = ir_build(&k->at, IR_WHILE, 2, inits, 2, types, 2);
	ir_value *a = ir_block_arg(loop->regions[0], t, "a"), *i = ir_block_arg(loop->regions[0], inits[1]->type, "i");
	k->at.block = loop->regions[0];
	ir_value *v = ir_binary(&k->at, IR_ADD, a, load(k, offset_pointer(k, x, o), NULL));
	ir_value *condition[] = {ir_binary(&k->at, IR_LT, i, number(k, SCALAR_I32, 9)), v, ir_constant(&k->at, t, 1)};
	ir_build(&k->at, IR_CONDITION, 3, condition, 0, NULL, 0);
	k->at.block = loop->regions[1];
	ir_value *b = ir_block_arg(loop->regions[1], t, "b");
	ir_block_arg(loop->regions[1], t, "c");
	ir_value *yields[] = {b, number(k, SCALAR_I32, 3)};
	end_region(k, 2, yields);
	store(k, offset_pointer(k, y, o), ir_binary(&k->at, IR_MUL, loop->results[0], loop->results[1]), NULL);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
	kernel_free(k);
}

/* A vector along the columns of a tile is loaded the way the product wants it. Offsets that two layouts want are
 * computed twice, not converted. */
static void test_narrow_operand(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16), *y = pointer_param(k, "y", SCALAR_F32, false, 16);
	ir_value *w = pointer_param(k, "w", SCALAR_F32, true, 16),
		 *pitch = param(k, "pitch", ir_scalar_type(SCALAR_I32), 16);
	ir_value *o = offsets2(k, 32, 64, pitch);
	ir_value *v = load(k, offset_pointer(k, x, o), NULL), *u = load(k, offset_pointer(k, w, arange(k, 64)), NULL);
	ir_value *product = ir_binary(&k->at, IR_MUL, v, broadcast(k, expand(k, u, 0), v->type));
	store(k, offset_pointer(k, y, o), product, NULL);
	assign(k);
	assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
	check_layout(k, u, "reg (1)(2) lane (4)(8)(16)(32)(0) warp (0)(0)");
	check_layout(k, v, "reg (0,1)(0,2)(8,0)(16,0) lane (0,4)(0,8)(0,16)(0,32)(1,0) warp (2,0)(4,0)");
	kernel_free(k);
}

static void test_copies_are_bounded(void **state)
{
	(void)state;
	kernel *k = kernel_new(1);
	ir_value *y = pointer_param(k, "y", SCALAR_I32, false, 16), *o = arange(k, 4096), *v = o;
	for (unsigned i = 0; i < 100000; i++)
		v = ir_binary(&k->at, IR_ADD, v, o); /* deep, and each wants two operands */
	store(k, offset_pointer(k, y, o), v, NULL);
	/* The same value in 12 shapes, each with its own layout. */
	for (unsigned lg = 0; lg < 12; lg++) {
		ir_type t = shaped(SCALAR_I32, 2, 1u << lg, 4096u >> lg);
		ir_value *r = ir_build1(&k->at, IR_RESHAPE, t, 1, &o);
		ir_value *c = ir_build1(&k->at, IR_CONVERT, ir_with_elem(t, SCALAR_I32), 1, &r);
		store(k,
			transpose(
				k, offset_pointer(k, y, offsets2(k, 4096u >> lg, 1u << lg, number(k, SCALAR_I32, 64)))),
			c, NULL);
	}
	assign(k);
	assert_true(count(k, IR_ARANGE) < 60);
	assert_true(count(k, IR_ADD) < 100100);
	kernel_free(k);
}

static void test_big_and_small(void **state)
{
	(void)state;
	for (unsigned lg = 0; lg <= 20; lg++) {
		kernel *k = kernel_new(1u << lg % 5);
		ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16),
			 *y = pointer_param(k, "y", SCALAR_F32, false, 4);
		ir_value *o = arange(k, 1u << lg);
		ir_value *v = load(k, offset_pointer(k, x, o), NULL), *sum = reduce(k, v, 0, IR_SUM);
		store(k, offset_pointer(k, y, o), ir_binary(&k->at, IR_SUB, v, splat(k, sum, v)), NULL);
		assign(k);
		assert_int_equal(count(k, IR_CONVERT_LAYOUT), 0);
		kernel_free(k);
	}
}

/* ---- random programs: the rules hold whatever meets whatever ---- */

typedef struct program {
	kernel *k;
	ir_value *pointer, *n, *c, *pool[256];
	unsigned npool, left;
} program;

static void keep(program *p, ir_value *v)
{
	if (p->npool < 256) p->pool[p->npool++] = v;
}

static ir_value *any(program *p)
{
	return p->pool[(unsigned)rand() % p->npool];
}

static ir_value *same_shape(program *p, const ir_value *v)
{
	for (unsigned i = 0; i < 8; i++) {
		ir_value *other = any(p);
		if (ir_type_equal(other->type, v->type)) return other;
	}
	return NULL;
}

/* A pointer tile of v's shape, in one of a few ways. */
static ir_value *some_pointer(program *p, const ir_value *v)
{
	kernel *k = p->k;
	uint32_t n = (uint32_t)ir_elements(v->type);
	ir_value *o = arange(k, n);
	ir_type t = ir_with_elem(v->type, SCALAR_I32);
	if (v->type.rank == 2 && rand() % 3 == 0) {
		ir_type transposed = t;
		transposed.dim[0] = t.dim[1];
		transposed.dim[1] = t.dim[0];
		return offset_pointer(k, p->pointer, transpose(k, ir_build1(&k->at, IR_RESHAPE, transposed, 1, &o)));
	}
	if (rand() % 4 == 0) { /* addresses that come from memory */
		ir_value *from = same_shape(p, v);
		if (from) {
			ir_value *i = ir_build1(&k->at, IR_BITCAST, t, 1, &from);
			return offset_pointer(k, p->pointer, i);
		}
	}
	return offset_pointer(k, p->pointer, ir_build1(&k->at, IR_RESHAPE, t, 1, &o));
}

static void random_block(program *p, unsigned depth);

static void random_loop(program *p, unsigned depth)
{
	kernel *k = p->k;
	unsigned n = (unsigned)rand() % 4, known = p->npool;
	ir_value *inits[4], *yields[4];
	for (unsigned i = 0; i < n; i++) inits[i] = any(p);
	ir_op *loop = begin_for(k, p->n, n, inits);
	for (unsigned i = 0; i < n; i++) keep(p, loop->regions[0]->args[1 + i]);
	random_block(p, depth - 1);
	for (unsigned i = 0; i < n; i++) {
		yields[i] = same_shape(p, inits[i]);
		if (!yields[i]) yields[i] = loop->regions[0]->args[1 + i];
	}
	end_region(k, n, yields);
	p->npool = known;
	for (unsigned i = 0; i < n; i++) keep(p, loop->results[i]);
}

static void random_while(program *p, unsigned depth)
{
	kernel *k = p->k;
	unsigned known = p->npool;
	ir_value *init = any(p), *out = any(p);
	ir_op *loop = ir_build(&k->at, IR_WHILE, 1, &init, 1, &out->type, 2);
	k->at.block = loop->regions[0];
	keep(p, ir_block_arg(loop->regions[0], init->type, NULL));
	random_block(p, depth - 1);
	ir_value *end = same_shape(p, out), *condition[] = {p->c, end ? end : out};
	ir_build(&k->at, IR_CONDITION, 2, condition, 0, NULL, 0);
	p->npool = known;
	k->at.block = loop->regions[1];
	keep(p, ir_block_arg(loop->regions[1], out->type, NULL));
	random_block(p, depth - 1);
	ir_value *again = same_shape(p, init);
	end_region(k, 1, again ? &again : &init);
	p->npool = known;
	keep(p, loop->results[0]);
}

static void random_branch(program *p, unsigned depth)
{
	kernel *k = p->k;
	unsigned known = p->npool;
	ir_value *like = any(p);
	ir_op *branch = ir_build(&k->at, IR_IF, 1, &p->c, 1, &like->type, 2);
	for (unsigned r = 0; r < 2; r++) {
		k->at.block = branch->regions[r];
		random_block(p, depth - 1);
		ir_value *v = same_shape(p, like);
		end_region(k, 1, v ? &v : &like);
		p->npool = known;
	}
	keep(p, branch->results[0]);
}

static void random_shape_operation(program *p)
{
	kernel *k = p->k;
	ir_value *v = any(p);
	ir_type t = v->type;
	switch ((unsigned)rand() % 4) {
	case 0:
		if (t.rank == 1) keep(p, expand(k, v, (unsigned)rand() % 2));
		break;
	case 1:
		if (t.rank != 2 || (t.dim[0] != 1 && t.dim[1] != 1)) return;
		t.dim[t.dim[0] != 1] = 1u << (unsigned)rand() % 6;
		keep(p, broadcast(k, v, t));
		break;
	case 2:
		if (t.rank == 2) keep(p, transpose(k, v));
		break;
	default: {
		uint32_t n = (uint32_t)ir_elements(t), rows = 1u << (unsigned)rand() % 5;
		ir_type to =
			rand() % 2 || rows > n ? shaped(SCALAR_F32, 1, n, 0) : shaped(SCALAR_F32, 2, rows, n / rows);
		keep(p, ir_build1(&k->at, IR_RESHAPE, to, 1, &v));
	}
	}
}

static void random_block(program *p, unsigned depth)
{
	kernel *k = p->k;
	for (unsigned n = 2 + (unsigned)rand() % 6; n && p->left; n--, p->left--) {
		ir_value *v = any(p), *w;
		if (ir_elements(v->type) > 4096) continue;
		switch ((unsigned)rand() % (depth ? 13 : 10)) {
		case 0:
		case 1: keep(p, load(k, some_pointer(p, v), NULL)); break;
		case 2: store(k, some_pointer(p, v), v, NULL); break;
		case 3:
			if (v->type.rank == 2) keep(p, reduce(k, v, (unsigned)rand() % 2, IR_SUM));
			break;
		case 4:
		case 5:
			w = same_shape(p, v);
			if (w) keep(p, ir_binary(&k->at, IR_ADD, v, w));
			break;
		case 6: keep(p, ir_constant(&k->at, v->type, 0)); break;
		case 7:
		case 8:
		case 9: random_shape_operation(p); break;
		case 10: random_loop(p, depth); break;
		case 11: random_branch(p, depth); break;
		case 12: random_while(p, depth); break;
		}
	}
}

/* ---- an evaluator in which every operation is a hash of its operands: the pass must not change what is stored ---- */

typedef struct evaluation {
	uint64_t **value; /* by id, one number an element */
	uint32_t nvalues;
	uint64_t trace; /* of all stores in order */
	uint64_t branches;
} evaluation;

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 29;
}

static uint64_t *room(evaluation *e, const ir_value *v)
{
	free(e->value[v->id]);
	e->value[v->id] = malloc(ir_elements(v->type) * sizeof(uint64_t));
	assert_non_null(e->value[v->id]);
	return e->value[v->id];
}

static void copy_value(evaluation *e, const ir_value *to, const ir_value *from)
{
	if (to == from) return;
	uint64_t *out = room(e, to);
	memcpy(out, e->value[from->id], ir_elements(to->type) * sizeof *out);
}

/* Values move at once, as a loop's carried ones do. */
static void copy_values(evaluation *e, ir_value *const *to, const ir_op *from, unsigned first, unsigned n)
{
	uint64_t *moved[8];
	assert_true(n <= 8);
	for (unsigned i = 0; i < n; i++) {
		size_t bytes = ir_elements(to[i]->type) * sizeof(uint64_t);
		moved[i] = malloc(bytes);
		assert_non_null(moved[i]);
		memcpy(moved[i], e->value[ir_arg(from, first + i)->id], bytes);
	}
	for (unsigned i = 0; i < n; i++) {
		free(e->value[to[i]->id]);
		e->value[to[i]->id] = moved[i];
	}
}

static void coordinates(ir_type t, uint32_t flat, uint32_t *at)
{
	for (unsigned d = t.rank; d-- > 0; flat /= t.dim[d]) at[d] = flat % t.dim[d];
}

static uint32_t flatten(ir_type t, const uint32_t *at)
{
	uint32_t flat = 0;
	for (unsigned d = 0; d < t.rank; d++) flat = flat * t.dim[d] + (t.dim[d] == 1 ? 0 : at[d]);
	return flat;
}

static void evaluate(evaluation *e, const ir_block *b);

static void evaluate_control(evaluation *e, const ir_op *o)
{
	if (o->kind == IR_IF) {
		const ir_block *taken = o->regions[mix(++e->branches, 1) & 1];
		evaluate(e, taken);
		copy_values(e, o->results, taken->last, 0, o->nresults);
	} else if (o->kind == IR_FOR) {
		ir_block *body = o->regions[0];
		copy_values(e, body->args + 1, o, 3, o->nresults);
		for (unsigned i = 0; i < 2; i++) {
			room(e, body->args[0])[0] = i;
			evaluate(e, body);
			copy_values(e, body->args + 1, body->last, 0, o->nresults);
		}
		for (unsigned i = 0; i < o->nresults; i++) copy_value(e, o->results[i], body->args[1 + i]);
	} else {
		ir_block *before = o->regions[0], *after = o->regions[1];
		copy_values(e, before->args, o, 0, before->nargs);
		evaluate(e, before);
		copy_values(e, after->args, before->last, 1, after->nargs);
		evaluate(e, after);
		copy_values(e, before->args, after->last, 0, before->nargs);
		evaluate(e, before);
		copy_values(e, o->results, before->last, 1, o->nresults);
	}
}

static void evaluate_op(evaluation *e, const ir_op *o)
{
	if (o->kind == IR_STORE) {
		uint64_t sum = 0, n = ir_elements(ir_arg(o, 0)->type);
		const uint64_t *p = e->value[ir_arg(o, 0)->id], *v = e->value[ir_arg(o, 1)->id];
		for (uint64_t i = 0; i < n; i++) sum += mix(p[i], v[i]);
		e->trace = mix(e->trace, sum);
		return;
	}
	if (!o->nresults) return;
	ir_type t = o->results[0]->type, from = o->nargs ? ir_arg(o, 0)->type : t;
	const uint64_t *a = o->nargs ? e->value[ir_arg(o, 0)->id] : NULL;
	uint64_t *out = room(e, o->results[0]);
	uint32_t at[IR_MAX_RANK] = {0}, to[IR_MAX_RANK] = {0};
	for (uint32_t i = 0; i < ir_elements(t); i++) {
		coordinates(t, i, at);
		switch (o->kind) {
		case IR_CONST: out[i] = ir_get_value(o); break;
		case IR_ARANGE: out[i] = (uint64_t)ir_get_lo(o) + i; break;
		case IR_SPLAT: out[i] = a[0]; break;
		case IR_BROADCAST: out[i] = a[flatten(from, at)]; break;
		case IR_EXPAND_DIMS:
		case IR_RESHAPE:
		case IR_CONVERT_LAYOUT: out[i] = a[i]; break;
		case IR_PERMUTE:
			for (unsigned d = 0; d < t.rank; d++) to[ir_unpack(ir_get_order(o), d)] = at[d];
			out[i] = a[flatten(from, to)];
			break;
		case IR_LOAD: out[i] = mix(a[i], e->trace); break;
		case IR_REDUCE:
			out[i] = 0;
			for (unsigned d = 0, k = 0; d < from.rank; d++)
				if (d != ir_get_axis(o)) to[d] = at[k++];
			for (uint32_t k = 0; k < from.dim[ir_get_axis(o)]; k++) {
				to[ir_get_axis(o)] = k;
				out[i] += mix(a[flatten(from, to)], 3);
			}
			break;
		default:
			out[i] = mix((uint64_t)o->kind, ir_has_attribute(o, IR_ATTR_axis) ? ir_get_axis(o) : 0);
			for (unsigned k = 0; k < o->nargs; k++) out[i] = mix(out[i], e->value[ir_arg(o, k)->id][i]);
		}
	}
}

static void evaluate(evaluation *e, const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (ir_has(o, IR_CONTROL))
			evaluate_control(e, o);
		else
			evaluate_op(e, o);
}

static uint64_t stores_of(const kernel *k)
{
	evaluation e = {.value = calloc(k->func->nvalues, sizeof(uint64_t *)), .nvalues = k->func->nvalues};
	assert_non_null(e.value);
	for (unsigned i = 0; i < k->func->nparams; i++) room(&e, k->func->body->args[i])[0] = mix(i, 99);
	evaluate(&e, k->func->body);
	for (uint32_t i = 0; i < e.nvalues; i++) free(e.value[i]);
	free(e.value);
	return e.trace;
}

static void test_random_programs(void **state)
{
	(void)state;
	unsigned conversions = 0;
	for (unsigned round = 0; round < 2000; round++) {
		srand(round);
		kernel *k = kernel_new(1u << (unsigned)rand() % 4);
		program p = {.k = k, .left = 60};
		p.pointer = pointer_param(k, "p", SCALAR_F32, false, 16);
		p.n = param(k, "n", ir_scalar_type(SCALAR_I32), 1);
		p.c = param(k, "c", ir_scalar_type(SCALAR_BOOL), 1);
		keep(&p, ir_constant(&k->at, shaped(SCALAR_F32, 1, 16, 0), 0));
		keep(&p, ir_constant(&k->at, shaped(SCALAR_F32, 2, 16, 32), 0));
		keep(&p, load(k, some_pointer(&p, p.pool[1]), NULL));
		random_block(&p, 3);
		for (unsigned i = 0; i < p.npool; i++) store(k, some_pointer(&p, p.pool[i]), p.pool[i], NULL);
		text why = {.arena = &k->memory};
		finish(k);
		if (!ir_verify(k->func, &why)) fail_msg("round %u before: %s", round, why.at);
		uint64_t before = round % 4 ? 0 : stores_of(k);
		assert_true(pass_assign_layouts(&k->context, k->func));
		ir_walk(k->func->body, check_op, k->func);
		if (round % 4 == 0 && stores_of(k) != before) fail_msg("round %u stores something else", round);
		if (!ir_verify(k->func, &why)) fail_msg("round %u: %s", round, why.at);
		conversions += count(k, IR_CONVERT_LAYOUT);
		assert_true(pass_allocate_shared(&k->context, k->func));
		assert_true(pass_barriers(&k->context, k->func));
		if (!ir_verify(k->func, &why)) fail_msg("round %u, scheduled: %s", round, why.at);
		kernel_free(k);
	}
	assert_true(conversions > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_add),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_softmax),
		cmocka_unit_test(test_row_statistics),
		cmocka_unit_test(test_warps_avoid_reductions),
		cmocka_unit_test(test_transposed_copy),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_while),
		cmocka_unit_test(test_narrow_operand),
		cmocka_unit_test(test_copies_are_bounded),
		cmocka_unit_test(test_big_and_small),
		cmocka_unit_test(test_random_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
