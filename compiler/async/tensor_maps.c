/* Accesses of tensors become bulk copies by maps that the host makes.
 *
 * In: a tensor_load or tensor_store at the tile level.  Out, where everything below holds, a tensor_map at the head of
 * the function and a bulk_load or bulk_store:
 *   - the target has such copies (sm_90 on); a load is through *const: the copy does not keep order with stores;
 *   - one dimension has stride 1; it becomes the last one (a transposed array: a permutation of what is loaded).  The
 *     other strides are known to be multiples of 16 bytes, and the array's address too, and where in a line the block
 *     begins (the hardware calls anything else an illegal instruction);
 *   - a store begins nowhere in front of the array (also an illegal instruction; loads may);
 *   - address, extents and strides are made of parameters and constants by arithmetic that the host can repeat; what
 *     the program adds to the address is a multiple of such a stride (pointer_base.c);
 *   - indices are i32; the block fits a few copies (bulk.h); it has two dimensions or more (rows: raise_to_tma.c).
 * The one idea: the map is named by text, the line of the launch signature from which the host makes it:
 *     f16 128 64 64 ; p1 ; p4 ; p3 ; p4 2 *
 * element, swizzle, box (last dimension first); address; extents; strides in bytes of all but the last dimension.  So
 * equal maps are equal text, cse keeps one, and nothing of the map is left to optimise for the device.
 *
 * Alignment must follow from what the host promised of parameters, not from hints alone.  A launch for which no map
 * can be made (a negative stride, an extent of 0) then has a way out: the variant without promises. */
#include "ir/tensor_map.h"
#include "bulk.h"
#include "analysis/host_value.h"
#include "analysis/pointer_analysis.h"

#include <assert.h>
#include <string.h>

enum { MOST_MAPS = 16 /* signature.h */ };

unsigned tensor_stride_one(const ir_op *o, ir_type block)
{
	assert(o->nargs >= block.rank);
	unsigned first = o->nargs - block.rank, d = block.rank;
	while (d-- > 0)
		if (ir_is_one(ir_arg(o, first + d))) return d;
	return block.rank;
}

uint32_t tensor_thin(const ir_op *o, ir_type block)
{
	assert(block.rank && block.rank <= IR_MAX_RANK);
	unsigned left = block.rank, last = tensor_stride_one(o, block);
	uint32_t thin = 0;
	for (unsigned d = 0; d < block.rank && left > 2; d++)
		if (block.dim[d] == 1 && d != last) thin |= UINT32_C(1) << d, left--;
	return thin;
}

/* The operands, with a dimension of stride 1 moved to the end, and thin ones to the front. */
static bool read_access(const ir_op *o, bulk_access *t)
{
	assert(o->kind == IR_TENSOR_LOAD || o->kind == IR_TENSOR_STORE);
	bool loads = o->kind == IR_TENSOR_LOAD;
	ir_type block = loads ? o->results[0]->type : ir_arg(o, 1)->type;
	unsigned rank = block.rank, first = loads ? 1 : 2, last = tensor_stride_one(o, block), n = 0, front;
	unsigned from[IR_MAX_RANK], kept[IR_MAX_RANK], nkept = 0; /* the array's dimension i is from[i] */
	uint32_t thin = tensor_thin(o, block);
	if (last == rank) return false;
	for (unsigned d = 0; d < rank; d++)
		if (thin >> d & 1)
			from[n++] = d;
		else
			kept[d] = nkept++;
	front = n;
	for (unsigned d = 0; d < rank; d++)
		if (!(thin >> d & 1) && d != last) from[n++] = d;
	from[n] = last;
	assert(n + 1 == rank && nkept + front == rank);
	t->base = ir_arg(o, 0);
	t->block = block;
	t->block.rank = (uint8_t)nkept;
	t->rank = rank;
	for (unsigned i = 0; i < rank; i++) {
		unsigned d = from[i];
		t->index[i] = ir_arg(o, first + d);
		t->shape[i] = ir_arg(o, first + rank + d);
		t->stride[i] = ir_arg(o, first + 2 * rank + d);
		if (i < front) continue;
		t->order[i - front] = kept[d];
		t->block.dim[i - front] = block.dim[d];
	}
	return true;
}

static bool aligned(const pass_context *p, const bulk_access *t)
{
	assert(t->base->type.pointer);
	uint64_t bytes = scalar_bytes((scalar)t->block.elem);
	if (axis_get(p, t->base)->divisibility[0] % 16 != 0) return false;
	for (unsigned i = 0; i + 1u < t->rank; i++)
		if (axis_get(p, t->stride[i])->divisibility[0] * bytes % 16 != 0) return false;
	return axis_get(p, t->index[t->rank - 1])->divisibility[0] * bytes % 16 == 0;
}

/* Indices as i32, without building anything: what was widened is taken before. */
static bool narrow_indices(bulk_access *t)
{
	assert(t->rank <= IR_MAP_RANK);
	for (unsigned i = 0; i < t->rank; i++) {
		ir_value *v = t->index[i];
		int64_t n;
		while (v->type.elem != SCALAR_I32 && v->def && v->def->kind == IR_CONVERT &&
			ir_arg(v->def, 0)->type.elem == SCALAR_I32)
			v = ir_arg(v->def, 0);
		t->index[i] = v;
		if (v->type.elem != SCALAR_I32 && !(ir_is_const_int(v, &n) && n == (int32_t)n)) return false;
	}
	return true;
}

/* The parameter that the array begins with; null: the host cannot make the map, or its line is too long. */
static ir_value *describe(const host_values *h, const bulk_access *t, const bulk_shape *s, ir_tensor_map *m)
{
	assert(t->rank >= t->block.rank && t->rank <= IR_MAP_RANK);
	unsigned rank = t->rank, before = rank - t->block.rank;
	text line = {.arena = h->arena};
	assert(t->block.rank <= rank && rank <= IR_MAP_RANK);
	*m = (ir_tensor_map){.elem = (scalar)t->block.elem, .swizzle = s->swizzle, .rank = rank};
	ir_value *root = host_value_address(h, t->base, &m->address);
	if (!root || h->func->params[root->index].divisible % 16 != 0) return NULL;
	for (unsigned i = 0; i < rank; i++) {
		unsigned d = rank - 1 - i; /* the array's dimension: maps have the fastest first */
		m->box[i] = d < before ? 1 : s->box[d - before];
		if (!(m->extent[i] = host_value_text(h, t->shape[d]))) return NULL;
		if (i + 1 < rank && !(m->stride[i] = host_value_text(h, t->stride[d - 1]))) return NULL;
	}
	ir_tensor_map_print(&line, m);
	return line.n <= HOST_MOST_TEXT ? root : NULL;
}

/* Null: a kernel takes no more of them. */
static ir_value *build_map(ir_func *f, ir_value *root, const ir_tensor_map *m, span at)
{
	assert(root->type.pointer);
	unsigned n = 0;
	for (ir_op *o = f->body->first; o; o = o->next) {
		if (o->kind != IR_TENSOR_MAP) continue;
		if (ir_tensor_map_equal(o->map, m)) return o->results[0];
		if (++n == MOST_MAPS) return NULL;
	}
	ir_builder head = {.func = f, .block = f->body, .before = f->body->first, .at = at};
	ir_value *map = ir_build1(&head, IR_TENSOR_MAP, root->type, 1, &root);
	map->def->map = m;
	return map;
}

/* A tile with its dimensions in another order: dimension i of the result is order[i] of v. */
static ir_value *transposed(ir_builder *b, ir_value *v, const unsigned *order)
{
	ir_type type = v->type;
	uint16_t packed[IR_MAX_RANK] = {0};
	bool moves = false;
	for (unsigned i = 0; i < type.rank; i++) {
		type.dim[i] = v->type.dim[order[i]];
		packed[i] = (uint16_t)order[i];
		moves |= order[i] != i;
	}
	if (!moves) return v;
	v = ir_build1(b, IR_PERMUTE, type, 1, &v);
	ir_set_order(v->def, ir_pack(type.rank, packed));
	return v;
}

ir_value *tensor_reshape(ir_builder *b, ir_value *v, ir_type shape)
{
	return ir_same_shape(v->type, shape) ? v : ir_build1(b, IR_RESHAPE, ir_with_shape(v->type, shape), 1, &v);
}

static void rewrite(ir_func *f, ir_op *o, const bulk_access *t, ir_value *map, unsigned shares)
{
	assert(map->def && map->def->kind == IR_TENSOR_MAP);
	bool loads = o->kind == IR_TENSOR_LOAD || o->kind == IR_LOAD;
	ir_builder b = {.func = f, .block = o->block, .before = o, .at = o->at};
	ir_value *args[2 + IR_MAP_RANK];
	ir_type before = t->block; /* in the access's order */
	unsigned n = 0, back[IR_MAX_RANK] = {0};
	for (unsigned i = 0; i < t->block.rank; i++) {
		back[t->order[i]] = i;
		before.dim[t->order[i]] = t->block.dim[i];
	}
	args[n++] = map;
	if (!loads) args[n++] = transposed(&b, tensor_reshape(&b, ir_arg(o, 1), before), t->order);
	for (unsigned i = 0; i < t->rank; i++) {
		int64_t known;
		ir_value *v = t->index[i];
		args[n++] = v->type.elem == SCALAR_I32 || !ir_is_const_int(v, &known)
				    ? v
				    : ir_constant_int(&b, SCALAR_I32, known);
	}
	if (!loads)
		ir_build(&b, IR_BULK_STORE, n, args, 0, NULL, 0);
	else {
		ir_value *v = ir_build1(&b, IR_BULK_LOAD, t->block, n, args);
		ir_set_shares(v->def, shares);
		v->name = o->results[0]->name;
		ir_replace(o->results[0], tensor_reshape(&b, transposed(&b, v, back), o->results[0]->type));
	}
	ir_erase(o);
}

/* A tile that products take as it is, in a loop inside of the load's: what one copy brings, many iterations need. */
static bool serves_loop(const ir_op *load, const ir_value *tile)
{
	for (const ir_use *u = tile->uses; u; u = u->next) {
		const ir_op *o = u->user;
		bool moves = o->kind == IR_PERMUTE || o->kind == IR_RESHAPE;
		if (moves ? serves_loop(load, o->results[0])
			  : o->kind == IR_DOT && ir_loop_around(o) != ir_loop_around(load))
			return true;
	}
	return false;
}

bool bulk_serves_loop(const pass_context *p, const ir_op *load)
{
	return target_can(p->target, TARGET_SETMAXNREG) && serves_loop(load, load->results[0]);
}

/* Inside of a loop a copy that everybody waits for at once is worse than loads: it has to run ahead (latencies.c).
 */
bool bulk_runs_ahead(const ir_func *f, const ir_op *o)
{
	const ir_op *loop = ir_loop_around(o);
	if (!loop) return true;
	int64_t step;
	return loop->kind == IR_FOR && o->block->parent == loop && ir_arg(loop, 0)->type.elem == SCALAR_I32 &&
	       ir_is_const_int(ir_arg(loop, 2), &step) && step > 0 &&
	       (ir_get_num_stages(loop) ? ir_get_num_stages(loop) : f->num_stages) > 1;
}

bool bulk_possible(const pass_context *p)
{
	return target_can(p->target, TARGET_TMA);
}

/* In how many parts programs of a cluster may bring what runs ahead in a loop: multicast.c. */
static unsigned shares_of(const pass_context *p, const ir_func *f, const ir_op *o)
{
	bool loads = o->kind == IR_TENSOR_LOAD || o->kind == IR_LOAD;
	bool ahead = o->block->parent && o->block->parent->kind == IR_FOR;
	return loads && ahead && target_can(p->target, TARGET_MULTICAST) && f->num_ctas <= BULK_SHARES ? f->num_ctas
												       : 1;
}

bool bulk_make(pass_context *p, ir_func *f, ir_op *o, bulk_access *t)
{
	assert(t->rank <= IR_MAP_RANK);
	bulk_shape s;
	host_values h = {p->arena, f};
	ir_tensor_map *described = ARENA_NEW(p->arena, ir_tensor_map);
	if (!bulk_shape_of(t->block, &s) || !aligned(p, t) || !narrow_indices(t)) return false;
	unsigned shares = shares_of(p, f, o);
	while (!bulk_shape_divide(t->block, shares, &s)) shares /= 2; /* 1 always does */
	ir_value *root = describe(&h, t, &s, described);
	ir_value *map = root ? build_map(f, root, described, o->at) : NULL;
	if (!map) return false;
	rewrite(f, o, t, map, shares);
	return true;
}

/* Nothing of it lies in front of the array, as far as the host can be asked: then its first extent is 0. */
static bool begins_inside(pass_context *p, ir_func *f, const ir_op *o, bulk_access *t)
{
	int_range s = {.context = {.pass = p, .func = f}, .at = o};
	for (unsigned i = 0; i < t->rank; i++)
		if (!int_range_never_negative(&s, t->index[i])) return false;
	if (!s.nguards) return true;
	ir_builder b = {.func = f, .block = o->block, .before = (ir_op *)o, .at = o->at};
	t->shape[0] = int_range_extent(&b, &s, t->shape[0]);
	return true;
}

/* A base that only the device knows: dimensions in front, in which the block is 1 wide.  Null, or why it cannot be. */
static const char *split_base(pass_context *p, ir_func *f, ir_op *o, bulk_access *t)
{
	window w = {.range = {.context = {.pass = p, .func = f}, .at = o}, .load = o, .loop = o->block->parent};
	const char *expression, *why;
	if (host_value_address(&(host_values){p->arena, f}, t->base, &expression)) return NULL;
	if ((why = window_of_base(&w, t->base))) return why;
	if (t->rank + w.n > IR_MAP_RANK) return WINDOW_TOO_MANY;
	ir_builder b = {.func = f, .block = o->block, .before = o, .at = o->at};
	for (unsigned i = t->rank; i-- > 0;) {
		t->index[i + w.n] = t->index[i];
		t->shape[i + w.n] = t->shape[i];
		t->stride[i + w.n] = t->stride[i];
	}
	t->rank += w.n;
	for (unsigned i = 0; i < w.n; i++) window_build_side(&b, &w.side[i], &t->index[i], &t->shape[i], &t->stride[i]);
	t->shape[0] = int_range_extent(&b, &w.range, t->shape[0]);
	t->base = window_build_base(&b, &w);
	return pass_axis(p, f) ? NULL : "internal: no facts about its base";
}

bool bulk_access_make(pass_context *p, ir_func *f, ir_op *o, const char **why)
{
	bulk_access t;
	*why = NULL;
	if (!bulk_possible(p)) return false;
	if (o->kind == IR_TENSOR_LOAD ? ir_arg(o, 0)->type.pointer != IR_CONST_POINTER : o->kind != IR_TENSOR_STORE)
		return false;
	if (o->kind == IR_TENSOR_LOAD && !bulk_runs_ahead(f, o) && !bulk_serves_loop(p, o)) return false;
	if (!read_access(o, &t) || t.block.rank < 2 || (*why = split_base(p, f, o, &t))) return false;
	if (o->kind == IR_TENSOR_STORE && !begins_inside(p, f, o, &t)) return false;
	return bulk_make(p, f, o, &t);
}
