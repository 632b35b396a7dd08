/* Small kernels for the tests of the passes: a builder with short names, and the rules that a mapped function obeys. */
#ifndef KERNEL_BUILDER_H
#define KERNEL_BUILDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../compiler/passes/passes.h"

typedef struct kernel {
	arena memory;
	jmp_buf out;
	diags found;
	pass_context context;
	ir_func *func;
	ir_builder at;
} kernel;

/* Heap memory, so that nothing of it is lost when the arena gives up. */
static inline kernel *kernel_new(unsigned num_warps)
{
	kernel *k = calloc(1, sizeof *k);
	assert_non_null(k);
	k->memory.recover = &k->out;
	k->memory.limit = (size_t)1 << 30;
	diags_init(&k->found, &k->memory);
	k->func = ir_func_new(&k->memory, "test");
	k->func->num_warps = num_warps;
	k->at = (ir_builder){.func = k->func, .block = k->func->body};
	k->context = (pass_context){.arena = &k->memory, .diags = &k->found, .target = target_find("sm_90a")};
	return k;
}

static inline void kernel_free(kernel *k)
{
	arena_free(&k->memory);
	free(k);
}

static inline ir_value *param(kernel *k, const char *name, ir_type t, uint32_t divisible)
{
	ir_value *v = ir_add_param(k->func, name, t, (span){0});
	k->func->params[k->func->nparams - 1].divisible = divisible;
	return v;
}

static inline ir_value *pointer_param(kernel *k, const char *name, scalar elem, bool constant, uint32_t align)
{
	ir_type t = {.elem = (uint8_t)elem, .pointer = constant ? IR_CONST_POINTER : IR_POINTER};
	return param(k, name, t, align);
}

static inline ir_type shaped(scalar s, unsigned rank, uint32_t a, uint32_t b)
{
	uint32_t dim[] = {a, b};
	return ir_tile_type(s, rank, dim);
}

static inline ir_value *arange(kernel *k, uint32_t n)
{
	return ir_build1(&k->at, IR_ARANGE, shaped(SCALAR_I32, 1, n, 0), 0, NULL);
}

static inline ir_value *number(kernel *k, scalar s, int64_t v)
{
	return ir_constant_int(&k->at, s, v);
}

static inline ir_value *splat(kernel *k, ir_value *v, ir_value *like)
{
	return ir_splat(&k->at, v, like->type);
}

static inline ir_value *offset_pointer(kernel *k, ir_value *pointer, ir_value *offsets)
{
	ir_value *args[] = {splat(k, pointer, offsets), offsets};
	return ir_build1(&k->at, IR_PTR_ADD, args[0]->type, 2, args);
}

static inline ir_value *load(kernel *k, ir_value *pointer, ir_value *mask)
{
	ir_value *args[] = {pointer, mask};
	return ir_build1(&k->at, IR_LOAD, ir_with_elem(pointer->type, pointer->type.elem), mask ? 2 : 1, args);
}

static inline ir_op *store(kernel *k, ir_value *pointer, ir_value *v, ir_value *mask)
{
	ir_value *args[] = {pointer, v, mask};
	return ir_build(&k->at, IR_STORE, mask ? 3 : 2, args, 0, NULL, 0);
}

static inline ir_value *reduce(kernel *k, ir_value *v, unsigned axis, ir_combine combine)
{
	ir_type t = v->type;
	for (unsigned d = axis; d + 1u < t.rank; d++) t.dim[d] = t.dim[d + 1];
	t.dim[--t.rank] = 0;
	ir_op *o = ir_build(&k->at, IR_REDUCE, 1, &v, 1, &t, 0);
	ir_set_axis(o, axis);
	ir_set_combine(o, combine);
	return o->results[0];
}

static inline ir_value *expand(kernel *k, ir_value *v, unsigned axis)
{
	ir_type t = v->type;
	for (unsigned d = t.rank++; d > axis; d--) t.dim[d] = t.dim[d - 1];
	t.dim[axis] = 1;
	ir_value *out = ir_build1(&k->at, IR_EXPAND_DIMS, t, 1, &v);
	ir_set_axis(out->def, axis);
	return out;
}

static inline ir_value *broadcast(kernel *k, ir_value *v, ir_type shape)
{
	return ir_build1(&k->at, IR_BROADCAST, ir_with_shape(v->type, shape), 1, &v);
}

static inline ir_value *transpose(kernel *k, ir_value *v)
{
	ir_type t = v->type;
	t.dim[0] = v->type.dim[1];
	t.dim[1] = v->type.dim[0];
	ir_value *out = ir_build1(&k->at, IR_PERMUTE, t, 1, &v);
	ir_set_order(out->def, ir_pack(2, (uint16_t[]){1, 0}));
	return out;
}

/* [rows, columns] of offsets row * pitch + column. */
static inline ir_value *offsets2(kernel *k, uint32_t rows, uint32_t columns, ir_value *pitch)
{
	ir_type t = shaped(SCALAR_I32, 2, rows, columns);
	ir_value *r = arange(k, rows);
	r = ir_binary(&k->at, IR_MUL, r, splat(k, pitch, r));
	ir_value *a = broadcast(k, expand(k, r, 1), t), *b = broadcast(k, expand(k, arange(k, columns), 0), t);
	return ir_binary(&k->at, IR_ADD, a, b);
}

/* for i in range(0, n, 1) carrying `inits`; the builder goes into the body. */
static inline ir_op *begin_for(kernel *k, ir_value *n, unsigned carried, ir_value *const *inits)
{
	ir_value *args[8] = {number(k, SCALAR_I32, 0), n, number(k, SCALAR_I32, 1)};
	ir_type types[5];
	for (unsigned i = 0; i < carried; i++) {
		args[3 + i] = inits[i];
		types[i] = inits[i]->type;
	}
	ir_op *o = ir_build(&k->at, IR_FOR, 3 + carried, args, carried, types, 1);
	ir_block_arg(o->regions[0], ir_scalar_type(SCALAR_I32), "i");
	for (unsigned i = 0; i < carried; i++) ir_block_arg(o->regions[0], types[i], NULL);
	k->at.block = o->regions[0];
	return o;
}

static inline void end_region(kernel *k, unsigned n, ir_value *const *yields)
{
	ir_yield(&k->at, n, yields);
	k->at.block = k->at.block->parent->block;
}

static inline void finish(kernel *k)
{
	ir_build(&k->at, IR_RETURN, 0, NULL, 0, NULL, 0);
}

static inline void count_kind(ir_op *o, void *context)
{
	unsigned *n = context;
	if (o->kind == (ir_kind)n[0]) n[1]++;
}

static inline unsigned count(const kernel *k, ir_kind kind)
{
	unsigned n[] = {kind, 0};
	ir_walk(k->func->body, count_kind, n);
	return n[1];
}

static inline void check_layout(kernel *k, const ir_value *v, const char *expected)
{
	text out = {.arena = &k->memory};
	assert_non_null(v->layout);
	layout_print(&out, v->layout);
	assert_string_equal(out.at, expected);
}

#endif
