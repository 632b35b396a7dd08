/* The plan: where each tile's elements live, before any LLVM is written.
 *
 * In: a function at the tile level.  Out: a place for every value (lower.h), and the offsets of the buffers in the
 * thread's scratch memory.
 * The one idea: a tile is stored only where recomputing it would cost more.  Cheap expressions (indices, masks,
 * addresses) are computed by everyone who asks; an expensive one whose every reader is the same loop is computed there;
 * everything else gets a buffer, filled at its place in the program.  A load through *T may not move past a write, so
 * it joins a later loop only if nothing between them, and not the loop itself, writes memory.
 *
 * Operations are visited last to first, so that all readers of a value have been placed before it is.
 *
 * A tile that slides, p = p + splat(s) around a loop, as addresses and offsets do, is not stored either: it is what it
 * was before the loop plus a carried scalar. */
#include "lower.h"

#include <assert.h>
#include <string.h>

enum { CHEAP = 10, DEAREST = 1 << 20, MAX_FUSED = 400, MAX_DEPTH = 120 };

static uint32_t slot_of(const cpu_plan *p, const ir_op *o)
{
	uint64_t h = (uint64_t)(uintptr_t)o;
	h = (h >> 4) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i = (uint32_t)(h >> 32) & (p->table_room - 1);
	while (p->table[i].op && p->table[i].op != o) i = (i + 1) & (p->table_room - 1);
	return i;
}

cpu_op_plan *cpu_plan_op(const cpu_plan *p, const ir_op *o)
{
	return &p->table[slot_of(p, o)];
}

static cpu_value_plan *of(const cpu_plan *p, const ir_value *v)
{
	return &p->value[v->id];
}

bool cpu_unit_reshape(const ir_op *o)
{
	assert(o->kind == IR_RESHAPE);
	ir_type a = ir_arg(o, 0)->type, b = o->results[0]->type;
	unsigned i = 0, j = 0;
	for (;;) {
		while (i < a.rank && a.dim[i] == 1) i++;
		while (j < b.rank && b.dim[j] == 1) j++;
		if (i == a.rank || j == b.rank) return i == a.rank && j == b.rank;
		if (a.dim[i++] != b.dim[j++]) return false;
	}
}

scalar cpu_accumulator(const ir_op *o, unsigned i)
{
	scalar s = o->results[i]->type.elem;
	return ir_get_combine(o) != IR_CUSTOM && scalar_is_float(s) && scalar_bytes(s) < 4 ? SCALAR_F32 : s;
}

scalar cpu_dot_type(const ir_op *o)
{
	scalar s = ir_arg(o, 0)->type.elem;
	return s == SCALAR_I8 ? SCALAR_I32 : s == SCALAR_F64 ? SCALAR_F64 : SCALAR_F32;
}

/* Rows of the extents behind the axis are combined whole, where they are long enough to fill vectors. */
bool cpu_reduce_by_rows(const ir_op *o)
{
	assert(o->kind == IR_REDUCE);
	ir_type t = ir_arg(o, 0)->type;
	uint64_t inner = 1;
	for (unsigned d = ir_get_axis(o) + 1; d < t.rank; d++) inner *= t.dim[d];
	return inner >= 8;
}

/* ---- positions, effects and costs, in program order ---- */

static uint32_t count_ops(const ir_block *b)
{
	uint32_t n = 0;
	for (const ir_op *o = b->first; o; o = o->next) {
		n++;
		for (unsigned r = 0; r < o->nregions; r++) n += count_ops(o->regions[r]);
	}
	return n;
}

static bool is_narrow_float(ir_type t)
{
	return !t.pointer && scalar_is_float(t.elem) && scalar_bytes(t.elem) < 4;
}

static uint32_t own_cost(const ir_op *o)
{
	assert(o->nresults == 1);
	ir_type t = o->results[0]->type;
	uint32_t cost = 1;
	switch (o->kind) {
	case IR_CONST:
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_RESHAPE:
	case IR_PERMUTE:
	case IR_FLIP:
	case IR_HINT: return 0;
	case IR_ARANGE:
	case IR_PTR_ADD:
	case IR_SELECT: return 1;
	case IR_LOAD: return DEAREST;
	case IR_REM: return 20;
	case IR_DIV: cost = scalar_is_float(t.elem) ? 8 : 20; break;
	case IR_DIV_RN:
	case IR_SQRT_RN: cost = 8; break;
	default: cost = ir_has(o, IR_MATH) ? 40 : 1; break;
	}
	bool narrow = is_narrow_float(t);
	for (unsigned i = 0; i < o->nargs; i++) narrow |= is_narrow_float(ir_arg(o, i)->type);
	return narrow && o->kind != IR_BITCAST ? cost + 6 : cost;
}

static bool is_lazy_kind(const ir_op *o)
{
	if (o->nresults != 1) return false;
	return o->kind == IR_LOAD || o->kind == IR_HINT || o->kind == IR_CONST || o->kind == IR_ARANGE ||
	       o->kind == IR_FLIP || ir_has(o, IR_ELEMENTWISE | IR_SHAPE);
}

static void set_cost(cpu_plan *p, const ir_op *o)
{
	for (unsigned i = 0; i < o->nresults; i++) of(p, o->results[i])->cost = 1;
	if (!is_lazy_kind(o)) return;
	uint32_t cost = own_cost(o);
	for (unsigned i = 0; i < o->nargs; i++)
		if (!ir_is_scalar(ir_arg(o, i))) cost += of(p, ir_arg(o, i))->cost;
	of(p, o->results[0])->cost = cost < DEAREST ? cost : DEAREST;
}

static void number(cpu_plan *p, const ir_block *b, uint32_t *position, uint32_t *epoch)
{
	for (uint32_t i = 0; i < b->nargs; i++) of(p, b->args[i])->cost = 1;
	for (const ir_op *o = b->first; o; o = o->next) {
		cpu_op_plan *q = cpu_plan_op(p, o);
		q->op = o;
		q->position = ++*position;
		q->epoch = *epoch;
		set_cost(p, o);
		for (unsigned r = 0; r < o->nregions; r++) number(p, o->regions[r], position, epoch);
		if (ir_touches(o, IR_EFFECTS)) ++*epoch;
		q->end = o->nregions ? ++*position : q->position;
	}
}

/* ---- places, last to first ---- */

static uint32_t new_buffer(cpu_plan *p, ir_type t, uint32_t start, uint32_t end)
{
	assert(start <= end);
	cpu_buffer b = {.bytes = ir_elements(t) * ir_element_bytes(t), .start = start, .end = end};
	vec_push(p->arena, &p->buffers, b);
	return p->buffers.n - 1;
}

static bool changes_index(const ir_op *o)
{
	return o->kind == IR_EXPAND_DIMS || o->kind == IR_PERMUTE || o->kind == IR_RESHAPE || o->kind == IR_FLIP ||
	       (o->kind == IR_BROADCAST && !cpu_trivial_broadcast(o));
}

static bool is_uniform(const ir_value *v)
{
	if (!v->def) return false;
	switch (v->def->kind) {
	case IR_CONST:
	case IR_SPLAT: return true;
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_PERMUTE:
	case IR_RESHAPE:
	case IR_HINT: return ir_is_scalar(ir_arg(v->def, 0)) || is_uniform(ir_arg(v->def, 0));
	default: return false;
	}
}

/* Does value k that goes around this loop only ever grow by the same number in each element? */
static bool slides(const ir_op *loop, unsigned k)
{
	assert(loop->kind == IR_FOR);
	const ir_value *arg = loop->regions[0]->args[k + 1];
	const ir_op *next = ir_arg(loop->regions[0]->last, k)->def;
	if (ir_is_scalar(arg) || !next || (!arg->type.pointer && scalar_is_float(arg->type.elem))) return false;
	if (next->kind == IR_PTR_ADD || next->kind == IR_SUB)
		return ir_arg(next, 0) == arg && is_uniform(ir_arg(next, 1));
	if (next->kind != IR_ADD) return false;
	return (ir_arg(next, 0) == arg && is_uniform(ir_arg(next, 1))) ||
	       (ir_arg(next, 1) == arg && is_uniform(ir_arg(next, 0)));
}

/* Is operand `slot` of a yield the next place of a sliding value? */
static bool is_slid(const cpu_plan *p, const ir_op *o, unsigned slot)
{
	const ir_op *loop = o->kind == IR_YIELD ? o->block->parent : NULL;
	return loop && loop->kind == IR_FOR && of(p, loop->results[slot])->base;
}

/* What one use says about who evaluates the value. False: nobody, the user is dead. */
static bool context_of_use(const cpu_plan *p, const ir_use *u, cpu_value_plan *c)
{
	assert(u->user);
	const ir_op *o = u->user;
	bool tile_result = o->nresults == 1 && o->results[0]->type.rank;
	unsigned slot = 0;
	if (ir_has(o, IR_CONTROL | IR_TERMINATOR) || o->kind == IR_DOT)
		while (o->args[slot] != u) slot++;
	if (is_slid(p, o, slot)) return false; /* by adding to the scalar */
	if (tile_result && is_lazy_kind(o)) {
		const cpu_value_plan *r = of(p, o->results[0]);
		if (r->place == CPU_UNUSED) return false;
		if (r->place == CPU_LAZY) {
			*c = *r;
			c->stored = false;
			c->depth++;
			if (changes_index(o)) c->via = o;
			if (o->kind == IR_BROADCAST && !cpu_trivial_broadcast(o)) c->repeated = true;
			if (o->kind == IR_RESHAPE && !cpu_unit_reshape(o)) c->stored = true;
			return true;
		}
	}
	*c = (cpu_value_plan){.root = o, .slot = slot, .unique = true};
	if (o->kind == IR_FOR && slot >= 3 && of(p, o->results[slot - 3])->base) c->repeated = true;
	if (o->kind == IR_GATHER && u == o->args[0]) c->repeated = true; /* at any place, any number of times */
	if (tile_result && changes_index(o)) {
		c->via = o;
		c->repeated = o->kind == IR_BROADCAST;
		c->stored = o->kind == IR_RESHAPE && !cpu_unit_reshape(o);
	}
	return true;
}

/* Joins what all uses say. */
static void gather_context(cpu_plan *p, const ir_value *v)
{
	cpu_value_plan *mine = of(p, v), c;
	mine->root = NULL;
	bool first = true;
	for (const ir_use *u = v->uses; u; u = u->next) {
		if (!context_of_use(p, u, &c)) continue;
		if (first) {
			mine->root = c.root;
			mine->slot = c.slot;
			mine->via = c.via;
			mine->unique = c.unique;
			mine->repeated = c.repeated;
			mine->stored = c.stored;
			mine->depth = c.depth;
			first = false;
			continue;
		}
		if (c.root != mine->root || c.slot != mine->slot || c.via != mine->via) mine->unique = false;
		mine->unique &= c.unique;
		mine->repeated |= c.repeated;
		mine->stored |= c.stored;
		if (c.depth > mine->depth) mine->depth = c.depth;
	}
}

/* Its loop writes memory while it runs. */
static bool writes_elements(const ir_op *o)
{
	return o->kind == IR_STORE || o->kind == IR_ATOMIC_RMW || o->kind == IR_ATOMIC_CAS;
}

/* May this be computed inside the loop of the one who asks? */
static bool may_join(cpu_plan *p, const ir_op *o, cpu_value_plan *v)
{
	switch (o->kind) {
	case IR_CONST:
	case IR_ARANGE:
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_PERMUTE:
	case IR_RESHAPE:
	case IR_FLIP:
	case IR_HINT: return v->depth < MAX_DEPTH;
	default: break;
	}
	if (v->stored || v->depth >= MAX_DEPTH) return false;
	if (v->cost <= CHEAP) return true;
	if (!v->unique || v->repeated || v->root->block != o->block) return false;
	cpu_op_plan *root = cpu_plan_op(p, v->root);
	if (root->fused >= MAX_FUSED) return false;
	if (o->kind == IR_LOAD) {
		if (ir_get_volatile(o)) return false;
		bool constant = ir_arg(o, 0)->type.pointer == IR_CONST_POINTER;
		bool moves = root->epoch != cpu_plan_op(p, o)->epoch || writes_elements(v->root);
		if (!constant && moves) return false;
	}
	root->fused++;
	return true;
}

static bool has_effect(const ir_op *o)
{
	return ir_has(o, IR_CONTROL | IR_TERMINATOR) || ir_touches(o, IR_EFFECTS) || ir_is_volatile(o);
}

/* The carried value of a loop that this dot adds to and nobody else sees: the sum grows where it lies. */
static const ir_value *grown_in_place(const ir_op *o)
{
	assert(o->kind == IR_DOT);
	const ir_op *loop = o->block->parent;
	const ir_value *acc = o->nargs > 2 ? ir_arg(o, 2) : NULL, *sum = o->results[0];
	if (!acc || acc->def || acc->block != o->block || !loop || loop->kind != IR_FOR || acc->index == 0) return NULL;
	if (acc->uses->next || !sum->uses || sum->uses->next) return NULL;
	return ir_arg(o->block->last, acc->index - 1) == sum ? acc : NULL;
}

static void place_results(cpu_plan *p, const ir_op *o)
{
	const cpu_op_plan *q = cpu_plan_op(p, o);
	for (unsigned i = 0; i < o->nresults; i++) {
		const ir_value *v = o->results[i];
		cpu_value_plan *plan = of(p, v);
		plan->buffer = CPU_NO_BUFFER;
		gather_context(p, v);
		if (ir_is_scalar(v)) {
			plan->place = CPU_SCALAR;
		} else if (o->kind == IR_FOR && slides(o, i)) {
			cpu_value_plan *arg = of(p, o->regions[0]->args[i + 1]);
			plan->place = arg->place = CPU_LAZY;
			plan->base = arg->base = ir_arg(o, 3 + i);
		} else if (ir_is_loop(o)) {
			plan->place = CPU_BUFFER; /* shared with the carried value: place_carried */
		} else if (!plan->root && o->nresults == 1 && (!has_effect(o) || writes_elements(o))) {
			plan->place = CPU_UNUSED;
		} else if (is_lazy_kind(o) && plan->root && may_join(p, o, plan)) {
			plan->place = CPU_LAZY;
		} else {
			const ir_value *carried = o->kind == IR_DOT ? grown_in_place(o) : NULL;
			plan->place = CPU_BUFFER;
			plan->buffer = carried ? of(p, carried)->buffer : new_buffer(p, v->type, q->position, q->end);
		}
	}
}

static void place_carried_value(cpu_plan *p, const ir_op *loop, ir_value *arg, ir_value *result)
{
	assert(loop->kind == IR_FOR || loop->kind == IR_WHILE);
	const cpu_op_plan *q = cpu_plan_op(p, loop);
	cpu_value_plan *plan = of(p, arg);
	plan->place = ir_is_scalar(arg) ? CPU_SCALAR : CPU_BUFFER;
	plan->buffer = ir_is_scalar(arg) ? CPU_NO_BUFFER : new_buffer(p, arg->type, q->position, q->end);
	if (result) of(p, result)->buffer = plan->buffer;
}

/* Loop-carried tiles: one buffer for the carried value and the result.  A while whose condition passes a carried value
 * on unchanged needs no second buffer for it. */
static void place_carried(cpu_plan *p, const ir_op *o)
{
	assert(o->kind == IR_FOR || o->kind == IR_WHILE);
	if (o->kind == IR_FOR) {
		of(p, o->regions[0]->args[0])->place = CPU_SCALAR;
		for (unsigned i = 0; i < o->nresults; i++) {
			if (!of(p, o->results[i])->base)
				place_carried_value(p, o, o->regions[0]->args[i + 1], o->results[i]);
		}
		return;
	}
	const ir_block *before = o->regions[0], *after = o->regions[1];
	for (uint32_t i = 0; i < before->nargs; i++) place_carried_value(p, o, before->args[i], NULL);
	for (uint32_t i = 0; i < after->nargs; i++) {
		const ir_value *passed = ir_arg(before->last, i + 1);
		if (ir_is_scalar(passed) || passed->def || passed->block != before) {
			place_carried_value(p, o, after->args[i], o->results[i]);
			continue;
		}
		of(p, after->args[i])->place = CPU_BUFFER;
		of(p, after->args[i])->buffer = of(p, o->results[i])->buffer = of(p, passed)->buffer;
	}
}

static void count_loops(cpu_plan *p, const ir_op *o)
{
	if (is_lazy_kind(o)) {
		p->loops += of(p, o->results[0])->place == CPU_BUFFER;
	} else if (ir_has(o, IR_CONTROL | IR_TERMINATOR)) {
		for (unsigned i = 0; i < o->nargs; i++) p->loops += !ir_is_scalar(ir_arg(o, i));
	} else {
		p->loops += o->nargs && !ir_is_scalar(ir_arg(o, 0));
	}
	p->scalar_accesses +=
		o->nargs && ir_is_scalar(ir_arg(o, 0)) && ir_touches(o, IR_READS_GLOBAL | IR_WRITES_GLOBAL);
}

/* Of operations that combine: the regions' arguments are scalars; further buffers. */
static void place_inside(cpu_plan *p, const ir_op *o)
{
	cpu_op_plan *q = cpu_plan_op(p, o);
	for (unsigned r = 0; r < o->nregions; r++)
		for (uint32_t i = 0; i < o->regions[r]->nargs; i++) of(p, o->regions[r]->args[i])->place = CPU_SCALAR;
	q->extra = ARENA_ARRAY(p->arena, uint32_t, o->nresults);
	for (unsigned i = 0; i < o->nresults; i++) {
		ir_type t = o->results[i]->type;
		scalar s = o->kind == IR_REDUCE ? cpu_accumulator(o, i) : t.elem;
		q->extra[i] = of(p, o->results[i])->buffer;
		if (s != t.elem && cpu_reduce_by_rows(o))
			q->extra[i] = new_buffer(p, ir_with_elem(t, s), q->position, q->end);
		if (o->kind == IR_SORT && !ir_same_shape(t, ir_arg(o, 0)->type))
			q->extra[i] = new_buffer(p, ir_arg(o, 0)->type, q->position, q->end);
	}
}

/* Of a dot: the operands, and the sum where it is not the result, in the type that it computes in. */
static void place_dot(cpu_plan *p, const ir_op *o)
{
	assert(o->kind == IR_DOT);
	cpu_op_plan *q = cpu_plan_op(p, o);
	scalar s = cpu_dot_type(o);
	if (of(p, o->results[0])->place == CPU_UNUSED) return;
	q->extra = ARENA_ARRAY(p->arena, uint32_t, 3);
	for (unsigned i = 0; i < 2; i++)
		q->extra[i] = new_buffer(p, ir_with_elem(ir_arg(o, i)->type, s), q->position, q->end);
	ir_type t = ir_with_elem(o->results[0]->type, s);
	bool direct = t.elem == o->results[0]->type.elem;
	q->extra[2] = direct ? of(p, o->results[0])->buffer : new_buffer(p, t, q->position, q->end);
}

static void place_block(cpu_plan *p, const ir_block *b)
{
	for (const ir_op *o = b->last; o; o = o->prev) {
		place_results(p, o);
		count_loops(p, o);
		if (ir_is_loop(o)) place_carried(p, o);
		if (o->kind == IR_REDUCE || o->kind == IR_SCAN || o->kind == IR_SORT) place_inside(p, o);
		if (o->kind == IR_DOT) place_dot(p, o);
		for (unsigned r = o->nregions; r-- > 0;) place_block(p, o->regions[r]);
	}
}

/* ---- the yield of a loop: which carried buffers may be written in place ---- */

typedef struct reader {
	cpu_plan *plan;
	uint32_t buffer, stamp, *seen; /* by value id: stamp * 4, a bit for each way it was visited */
	bool plain, moved;             /* found: with the loop's own indices, with others */
} reader;

static void find_reads(reader *r, const ir_value *v, bool moved)
{
	const cpu_value_plan *plan = of(r->plan, v);
	if (plan->place == CPU_BUFFER && plan->buffer == r->buffer) *(moved ? &r->moved : &r->plain) = true;
	if (plan->base) {
		find_reads(r, plan->base, moved);
		return;
	}
	if (plan->place != CPU_LAZY) return;
	uint32_t *seen = &r->seen[v->id];
	if (*seen / 4 != r->stamp) *seen = r->stamp * 4;
	if (*seen & 1u << moved) return;
	*seen |= 1u << moved;
	moved |= changes_index(v->def);
	for (unsigned i = 0; i < v->def->nargs; i++) find_reads(r, ir_arg(v->def, i), moved);
}

static reader reads(cpu_plan *p, uint32_t *seen, uint32_t *stamp, const ir_value *v, uint32_t buffer)
{
	reader r = {.plan = p, .buffer = buffer, .stamp = ++*stamp, .seen = seen};
	find_reads(&r, v, false);
	return r;
}

/* Yielded value k goes straight into carried buffer k when it reads that buffer at most element for element, and no
 * other value that goes straight reads it.  The others are staged: all staged ones are computed first, copied last. */
static void stage_yield(cpu_plan *p, const ir_op *loop, uint32_t *seen, uint32_t *stamp)
{
	assert(loop->kind == IR_FOR || loop->kind == IR_WHILE);
	const ir_op *y = loop->regions[loop->nregions - 1]->last;
	ir_value **args = loop->regions[0]->args + (loop->kind == IR_FOR);
	cpu_op_plan *q = cpu_plan_op(p, y), *l = cpu_plan_op(p, loop);
	q->extra = ARENA_ARRAY(p->arena, uint32_t, y->nargs);
	for (unsigned k = 0; k < y->nargs; k++) q->extra[k] = CPU_NO_BUFFER;
	for (unsigned k = 0; k < y->nargs; k++) {
		if (ir_is_scalar(args[k]) || of(p, args[k])->base) continue;
		uint32_t buffer = of(p, args[k])->buffer;
		bool stage = reads(p, seen, stamp, ir_arg(y, k), buffer).moved;
		for (unsigned j = 0; j < y->nargs && !stage; j++) {
			if (j == k || ir_is_scalar(args[j]) || of(p, args[j])->base) continue;
			if (q->extra[j] != CPU_NO_BUFFER) continue;
			reader r = reads(p, seen, stamp, ir_arg(y, j), buffer);
			stage = r.plain || r.moved;
		}
		if (stage) q->extra[k] = new_buffer(p, args[k]->type, l->position, l->end);
	}
}

static void stage_block(cpu_plan *p, const ir_block *b, uint32_t *seen, uint32_t *stamp)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		for (unsigned r = 0; r < o->nregions; r++) stage_block(p, o->regions[r], seen, stamp);
		if (ir_is_loop(o)) stage_yield(p, o, seen, stamp);
	}
}

/* ---- lifetimes and offsets ---- */

/* The last position that reads the value; a read inside a loop that the value was made outside of lasts as long as the
 * loop. */
static uint32_t last_need(cpu_plan *p, const ir_value *v)
{
	cpu_value_plan *plan = of(p, v);
	if (plan->need) return plan->need;
	const ir_block *home = v->def ? v->def->block : v->block;
	uint32_t need = v->def ? cpu_plan_op(p, v->def)->position : 1;
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = u->user;
		uint32_t end = cpu_plan_op(p, o)->end;
		for (unsigned i = 0; i < o->nresults; i++) {
			const cpu_value_plan *r = of(p, o->results[i]);
			bool reads = o->kind == IR_FOR ? r->base == v : r->place == CPU_LAZY;
			uint32_t later = reads ? last_need(p, o->results[i]) : 0;
			if (later > end) end = later;
		}
		const ir_op *around = o;
		while (around->block != home) around = around->block->parent;
		if (around != o && cpu_plan_op(p, around)->end > end) end = cpu_plan_op(p, around)->end;
		if (end > need) need = end;
	}
	return plan->need = need;
}

static void extend(cpu_plan *p, const ir_value *v)
{
	if (of(p, v)->place != CPU_BUFFER) return;
	assert(of(p, v)->buffer < p->buffers.n);
	cpu_buffer *b = &p->buffers.at[of(p, v)->buffer];
	uint32_t need = last_need(p, v);
	if (need > b->end) b->end = need;
}

static void extend_block(cpu_plan *p, const ir_block *b)
{
	for (uint32_t i = 0; i < b->nargs; i++) extend(p, b->args[i]);
	for (const ir_op *o = b->first; o; o = o->next) {
		for (unsigned r = 0; r < o->nregions; r++) extend_block(p, o->regions[r]);
		for (unsigned i = 0; i < o->nresults; i++) extend(p, o->results[i]);
	}
}

static void sort_by_start(const cpu_plan *p, uint32_t *order, uint32_t *room, uint32_t n)
{
	assert(order != room);
	for (uint32_t width = 1; width < n; width *= 2) {
		for (uint32_t at = 0; at < n; at += 2 * width) {
			uint32_t i = at, mid = at + width < n ? at + width : n, j = mid;
			uint32_t end = mid + width < n ? mid + width : n;
			for (uint32_t k = at; k < end; k++) {
				bool left = j >= end ||
					    (i < mid && p->buffers.at[order[i]].start <= p->buffers.at[order[j]].start);
				room[k] = left ? order[i++] : order[j++];
			}
		}
		memcpy(order, room, n * sizeof *order);
	}
}

/* First fit in order of birth.  `alive` is kept sorted by offset. */
static void assign_offsets(cpu_plan *p)
{
	assert(!p->scratch_bytes);
	uint32_t n = p->buffers.n, nalive = 0;
	uint32_t *order = ARENA_ARRAY(p->arena, uint32_t, n), *alive = ARENA_ARRAY(p->arena, uint32_t, n);
	for (uint32_t i = 0; i < n; i++) order[i] = i;
	sort_by_start(p, order, alive, n);
	for (uint32_t k = 0; k < n; k++) {
		cpu_buffer *b = &p->buffers.at[order[k]];
		uint64_t size = (b->bytes + 63) / 64 * 64, at = 0;
		uint32_t kept = 0, place = UINT32_MAX;
		for (uint32_t i = 0; i < nalive; i++)
			if (p->buffers.at[alive[i]].end >= b->start) alive[kept++] = alive[i];
		nalive = kept;
		for (uint32_t i = 0; i < nalive && place == UINT32_MAX; i++) {
			const cpu_buffer *a = &p->buffers.at[alive[i]];
			if (a->offset >= at + size)
				place = i;
			else if (at < a->offset + (a->bytes + 63) / 64 * 64)
				at = a->offset + (a->bytes + 63) / 64 * 64;
		}
		if (place == UINT32_MAX) place = nalive;
		memmove(alive + place + 1, alive + place, (nalive - place) * sizeof *alive);
		alive[place] = order[k];
		nalive++;
		b->offset = at;
		if (at + size > p->scratch_bytes) p->scratch_bytes = at + size;
	}
}

cpu_plan *cpu_plan_make(arena *a, ir_func *f)
{
	cpu_plan *p = ARENA_NEW(a, cpu_plan);
	p->arena = a;
	p->func = f;
	p->value = ARENA_ARRAY(a, cpu_value_plan, f->nvalues);
	p->table_room = 64;
	while (p->table_room < 2 * count_ops(f->body)) p->table_room *= 2;
	p->table = ARENA_ARRAY(a, cpu_op_plan, p->table_room);
	uint32_t position = 0, epoch = 0, stamp = 0;
	number(p, f->body, &position, &epoch);
	for (uint32_t i = 0; i < f->body->nargs; i++) of(p, f->body->args[i])->place = CPU_SCALAR;
	place_block(p, f->body);
	stage_block(p, f->body, ARENA_ARRAY(a, uint32_t, f->nvalues), &stamp);
	extend_block(p, f->body);
	assign_offsets(p);
	return p;
}
