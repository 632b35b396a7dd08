/* Blocks of the next iteration are waited for while this one's last products run, and small ones are read ahead.
 *
 * In: a mapped function whose producer is apart; waits for products stand late.  Out: in loops whose products depend on
 * each other, waits for blocks are those of the next iteration, behind the product that is begun last, and so are
 * threads' reads of what an iteration needs first:
 *
 *     for i {                                   mbarrier_wait full, slot, parity          if there is an iteration
 *       mbarrier_wait full, slot, parity        l = multibuffer_read l[slot]
 *       s = wgmma k, q[slot]                    for i, l {
 *       s = wgmma_wait s                          s = wgmma k, q[slot]
 *       l = multibuffer_read l[slot]     ->       s = wgmma_wait s
 *       p = exp2 s - l                            p = exp2 s - l
 *       dk = wgmma p, q[slot], dk                 dk = wgmma p, q[slot], dk
 *       atomic_rmw ..                             mbarrier_wait full, next slot, its parity   if there is one
 *       dk = wgmma_wait dk                        l = multibuffer_read l[next slot]
 *     }                                           atomic_rmw ..
 *                                                 dk = wgmma_wait dk }
 *
 * The one idea: while nobody multiplies, nothing else should be waited for.  A wait takes a few dozen cycles even if
 * the block has come, and more behind atomics: the assembler makes it wait until they have read their registers.  A
 * read of shared memory takes hundreds beside a product that reads its own operands there.  Where a thread has
 * registers for half of a row only, half is read ahead (but not where the loop has atomics: the assembler would give
 * the next scores the registers that these still read).  What a later product needs is read in front of the wait for
 * that product.
 *
 * Only blocks with two slots or more can come while an iteration's own are held. */
#include "analysis/pressure.h"
#include "passes/passes.h"
#include "row_halves.h"
#include "target/nvptx/mma/wgmma.h"

#define READ_AHEAD "read an iteration ahead"
#define HALF_AHEAD "half of it is read an iteration ahead"

typedef struct loop {
	ir_func *func;
	ir_op *op;
	ir_block *body;
	ir_op *last; /* product */
} loop;

/* ---- which loops ---- */

static bool has_products(const ir_op *o)
{
	for (unsigned r = 0; r < o->nregions; r++)
		for (const ir_op *i = o->regions[r]->first; i; i = i->next)
			if (i->kind == IR_WGMMA || i->kind == IR_WGMMA_WAIT || ir_is_loop(i) || has_products(i))
				return true;
	return false;
}

/* A product is waited for, and then the last one is begun, and nothing runs any more when the iteration ends. */
static bool find_last(loop *l)
{
	const ir_op *seen = NULL;
	bool drained = false;
	for (ir_op *o = l->body->first; o; o = o->next) {
		if (has_products(o)) return false;
		if (o->kind == IR_WGMMA) l->last = o;
		if (o->kind == IR_WGMMA_WAIT && !seen) seen = o;
		if (o->kind == IR_WGMMA_WAIT) drained = ir_get_pending(o) == 0;
	}
	return l->last && seen && ir_precedes(seen, l->last) && drained;
}

/* ---- waits for blocks ---- */

static bool is_copied(const ir_value *barriers)
{
	for (const ir_use *u = barriers->uses; u; u = u->next)
		if (u->user->kind == IR_BULK_COPY) return true;
	return false;
}

/* The wait is for a block of this iteration. */
static bool waits_for_block(const loop *l, const ir_op *o)
{
	return o->kind == IR_MBARRIER_WAIT && is_copied(ir_arg(o, 0)) && !ir_defined_outside(ir_arg(o, 2), l->op);
}

typedef struct slots {
	const loop *l;
	bool two;
} slots;

/* Waits for these barriers in an iteration. */
static unsigned waits_of(const loop *l, const ir_value *barriers)
{
	unsigned n = 0;
	for (const ir_use *u = barriers->uses; u; u = u->next)
		n += u->user->kind == IR_MBARRIER_WAIT && ir_encloses(l->op, u->user);
	return n;
}

static void find_slots(ir_op *o, void *context)
{
	slots *s = context;
	if (!waits_for_block(s->l, o)) return;
	s->two &= ir_get_count(ir_arg(o, 0)->def) >= 2 * waits_of(s->l, ir_arg(o, 0));
}

/* The producer copies blocks in order: each can come while an iteration's own are held, or none may be waited for
 * then. */
static bool has_slots(const loop *l)
{
	slots s = {l, true};
	ir_walk(l->body, find_slots, &s);
	return s.two;
}

/* A number that the loop carries: what it is in the next iteration, if that is known where the last product is
 * begun. */
static ir_value *next_of(const loop *l, const ir_value *v)
{
	if (v->def || v->block != l->body || v->index == 0) return NULL;
	ir_value *next = ir_arg(l->body->last, v->index - 1u);
	if (next->def && next->def->block == l->body && !ir_precedes(next->def, l->last)) return NULL;
	return next;
}

static bool can_hoist(const loop *l, const ir_op *o)
{
	return waits_for_block(l, o) && next_of(l, ir_arg(o, 1)) && next_of(l, ir_arg(o, 2));
}

typedef struct ahead {
	pass_context *context;
	const loop *loop;
	ir_op *any, *more;          /* branches in front of the loop and in it: there is an iteration */
	VEC(const ir_value *) come; /* barriers that are waited for in them */
} ahead;

static void wait_for(const loop *l, ir_block *block, const ir_op *wait, ir_value *slot, ir_value *parity)
{
	ir_value *args[] = {ir_arg(wait, 0), slot, parity};
	ir_builder b = {.func = l->func, .block = block, .at = wait->at};
	ir_build(&b, IR_MBARRIER_WAIT, 3, args, 0, NULL, 0);
}

static ir_value *wide(ir_builder *b, ir_value *v)
{
	return ir_build1(b, IR_CONVERT, ir_scalar_type(SCALAR_I64), 1, &v);
}

static ir_op *branch(ir_builder *b, ir_value *condition)
{
	return ir_build(b, IR_IF, 1, &condition, 0, NULL, 2);
}

static void end_branch(const loop *l, const ir_op *branch)
{
	for (unsigned r = 0; r < 2; r++) {
		ir_builder b = {.func = l->func, .block = branch->regions[r], .at = branch->at};
		ir_yield(&b, 0, NULL);
	}
}

/* In front of the loop for the first iteration, and in it for the next one; where there is none, nobody may wait: the
 * producer may have filled the slot for another loop by then. */
static void hoist_waits(ahead *a)
{
	const loop *l = a->loop;
	ir_builder in = {.func = l->func, .block = l->body, .before = l->last->next, .at = l->op->at};
	ir_builder front = {.func = l->func, .block = l->op->block, .before = l->op, .at = l->op->at};
	for (ir_op *o = l->body->first, *next; o != l->last; o = next) {
		next = o->next;
		if (!can_hoist(l, o)) continue;
		if (!a->any) {
			ir_value *hi = ir_arg(l->op, 1), *i = wide(&in, l->body->args[0]);
			i = ir_binary(&in, IR_ADD, i, wide(&in, ir_arg(l->op, 2)));
			a->more = branch(&in, ir_binary(&in, IR_LT, i, wide(&in, hi)));
			a->any = branch(&front, ir_binary(&front, IR_LT, ir_arg(l->op, 0), hi));
		}
		const ir_value *slot = ir_arg(o, 1), *parity = ir_arg(o, 2);
		wait_for(l, a->any->regions[0], o, ir_arg(l->op, 2u + slot->index), ir_arg(l->op, 2u + parity->index));
		wait_for(l, a->more->regions[0], o, next_of(l, slot), next_of(l, parity));
		vec_push(a->context->arena, &a->come, ir_arg(o, 0));
		ir_erase(o);
	}
	if (!a->any) return;
	end_branch(l, a->any);
	end_branch(l, a->more);
}

/* ---- registers ---- */

static unsigned registers_of(const ir_value *v)
{
	if (!v->layout || v->type.pointer) return 0;
	if (v->def && (v->def->kind == IR_MULTIBUFFER || ir_has(v->def, IR_SHAPE))) return 0;
	return (layout_registers(v->layout) * ir_element_bytes(v->type) + 3) / 4;
}

/* Somebody at `at` or behind it takes the value, under any shape. */
static bool lives_at(const loop *l, const ir_value *v, const ir_op *at)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		const ir_op *o = ir_in_block(l->body, u->user);
		if (!o) continue;
		if (ir_precedes(at, o)) return true;
		if (o == u->user && ir_has(o, IR_SHAPE) && lives_at(l, o->results[0], at)) return true;
		const ir_op *wait = o->kind == IR_WGMMA ? ir_only_user(o->results[0]) : NULL; /* a factor until then */
		if (wait && wait->block == l->body && ir_precedes(at, wait)) return true;
	}
	return false;
}

/* Registers that are taken in front of `at`: what lives there, and what the loop carries. */
static unsigned taken_at(const loop *l, const ir_op *at)
{
	unsigned n = 0;
	for (unsigned i = 1; i < l->body->nargs; i++) n += registers_of(l->body->args[i]);
	for (const ir_op *o = l->body->first; o != at; o = o->next) {
		wgmma_plan p;
		bool adds = o->kind == IR_WGMMA && wgmma_parts(o, &p) && p.sum; /* to registers that are counted */
		for (unsigned i = 0; i < o->nresults && !adds; i++)
			if (lives_at(l, o->results[i], at)) n += registers_of(o->results[i]);
	}
	return n;
}

/* ---- reads of the next iteration ---- */

/* The copies into it have been waited for. */
static bool has_come(const ahead *a, const ir_value *multibuffer)
{
	for (const ir_use *u = multibuffer->uses; u; u = u->next)
		for (uint32_t i = 0; u->user->kind == IR_BULK_COPY && i < a->come.n; i++)
			if (ir_arg(u->user, 2) == a->come.at[i]) return true;
	return false;
}

/* It is needed behind the first wait of an iteration, and there are so many registers from the last product of the one
 * before on. */
static bool should_read_ahead(const loop *l, const ir_op *read, unsigned registers)
{
	const ir_op *wait = NULL;
	for (const ir_op *o = l->body->first; o != read; o = o->next) {
		if (o->kind != IR_WGMMA_WAIT) continue;
		if (wait) return false;
		wait = o;
	}
	if (!wait) return false;
	unsigned most = pressure_most_beside_producer(l->func), more = registers + PRESSURE_OTHERS;
	return taken_at(l, wait) + more <= most && taken_at(l, l->last->next) + more <= most;
}

static void find_atomic(ir_op *o, void *context)
{
	bool *found = context;
	*found |= ir_is_atomic(o);
}

static bool has_atomics(const loop *l)
{
	bool found = false;
	ir_walk(l->body, find_atomic, &found);
	return found;
}

/* Of a row what is read: of half of it the back end leaves out the other loads, which nobody takes. */
typedef enum part { FIRST_HALF, SECOND_HALF, ALL } part;

static ir_value *read_slot(arena *a, ir_builder *b, const ir_op *read, ir_value *slot, part what)
{
	const ir_value *wanted = read->results[0];
	ir_value *args[] = {ir_arg(read, 0), slot};
	ir_value *v = ir_build1(b, IR_MULTIBUFFER_READ, wanted->type, 2, args);
	v->layout = wanted->layout;
	return what == ALL ? v : row_half(a, b, v, what);
}

/* One result more of the branch: what is read where there is an iteration. */
static ir_value *read_in(const ahead *a, ir_op *branch, const ir_op *read, ir_value *slot, part what)
{
	ir_func *f = a->loop->func;
	ir_op *yes = branch->regions[0]->last, *no = branch->regions[1]->last;
	ir_builder there = {.func = f, .block = yes->block, .before = yes, .at = read->at};
	ir_builder otherwise = {.func = f, .block = no->block, .before = no, .at = read->at};
	ir_value *v = read_slot(a->context->arena, &there, read, slot, what);
	ir_value *none = ir_constant(&otherwise, v->type, 0), *out = ir_add_result(f, branch, v->type);
	none->layout = out->layout = v->layout;
	ir_add_arg(f, yes, v);
	ir_add_arg(f, no, none);
	return out;
}

/* The loop carries what an iteration reads of a block, or the first half of it. */
static void read_ahead(ahead *a, ir_op *read)
{
	const loop *l = a->loop;
	ir_value *v = read->results[0], *slot = ir_arg(read, 1);
	if (!next_of(l, slot) || !has_come(a, ir_arg(read, 0))) return;
	part what = should_read_ahead(l, read, registers_of(v)) ? ALL : FIRST_HALF;
	if (what == FIRST_HALF && !(row_has_halves(v) && should_read_ahead(l, read, (registers_of(v) + 1) / 2))) return;
	if (what == FIRST_HALF && has_atomics(l)) return;
	ir_value *next = read_in(a, a->more, read, next_of(l, slot), what);
	ir_value *front = read_in(a, a->any, read, ir_arg(l->op, 2u + slot->index), what);
	ir_value *carried = ir_block_arg(l->body, next->type, v->name);
	ir_add_arg(l->func, l->op, front);
	ir_add_arg(l->func, l->body->last, next);
	ir_add_result(l->func, l->op, next->type)->layout = carried->layout = next->layout;
	if (what == FIRST_HALF) {
		ir_builder b = {.func = l->func, .block = l->body, .before = read, .at = read->at};
		ir_value *halves[] = {carried, read_slot(a->context->arena, &b, read, slot, SECOND_HALF)};
		carried = row_join(a->context->arena, &b, halves, v);
	}
	vec_push(a->context->arena, &a->context->order,
		((pass_remark){read->at, what == ALL ? READ_AHEAD : HALF_AHEAD}));
	ir_replace(v, carried);
	ir_erase(read);
}

/* ---- reads in front of a wait ---- */

/* All that the operation takes is known in front of `at`, or moves there with what it is computed of. */
static void hoist_before(const loop *l, ir_op *o, ir_op *at)
{
	for (unsigned i = 0; i < o->nargs; i++) {
		ir_op *def = ir_arg(o, i)->def;
		if (def && def->block == l->body && ir_precedes(at, def)) hoist_before(l, def, at);
	}
	ir_move_before(o, l->body, at);
}

static bool needs(const loop *l, const ir_op *o, const ir_value *v)
{
	for (unsigned i = 0; i < o->nargs; i++) {
		const ir_op *def = ir_arg(o, i)->def;
		if (ir_arg(o, i)->def == v->def ||
			(def && def->block == l->body && ir_precedes(v->def, def) && needs(l, def, v)))
			return true;
	}
	return false;
}

/* In front of the wait for a product that stands in front of the read with nothing but arithmetic between. */
static void hoist_read(const loop *l, ir_op *read)
{
	ir_op *wait = read->prev;
	while (wait && ir_has(wait, IR_PURE)) wait = wait->prev;
	if (!wait || wait->kind != IR_WGMMA_WAIT || (wait->nresults && needs(l, read, wait->results[0]))) return;
	unsigned most = pressure_most_beside_producer(l->func), taken = taken_at(l, wait) + PRESSURE_OTHERS;
	if (taken + registers_of(read->results[0]) <= most) hoist_before(l, read, wait);
}

static void try_loop(pass_context *c, ir_func *f, ir_op *o)
{
	loop l = {.func = f, .op = o, .body = o->regions[0]};
	ahead a = {.context = c, .loop = &l};
	if (!ir_counts_upwards(o) || !find_last(&l)) return;
	if (has_slots(&l)) hoist_waits(&a);
	for (ir_op *i = l.body->first, *next; i && a.any; i = next) {
		next = i->next;
		if (i->kind == IR_MULTIBUFFER_READ) read_ahead(&a, i);
	}
	for (ir_op *i = l.body->first, *next; i; i = next) {
		next = i->next;
		if (i->kind == IR_MULTIBUFFER_READ) hoist_read(&l, i);
	}
}

static void find_loops(pass_context *c, ir_func *f, ir_block *b)
{
	for (ir_op *o = b->first; o; o = o->next) {
		for (unsigned r = 0; r < o->nregions; r++) find_loops(c, f, o->regions[r]);
		if (o->kind == IR_FOR) try_loop(c, f, o);
	}
}

bool pass_early_waits(pass_context *c, ir_func *f)
{
	if (f->producer_warps) find_loops(c, f, f->body);
	return true;
}
