/* The cursors of channels: slot and parity of the next fill, through all control flow.
 *
 * In: channels whose sites are open: each says by placeholders what slot it fills and reads, and in front of what its
 * cursor goes on.  Out: the cursors are variables that branches and loops carry:
 *
 *     for i {                                   for i, s, p (0, 0) {
 *       if c {                                    s', p' = if c {
 *         .. slot ?                     ->          .. slot s; next s, p
 *       }                                           yield next s, p } else { yield s, p }
 *     }                                           yield s', p' }
 *     .. slot ?                                 .. slot s
 *
 * The one idea: one walk in the order of the program, in which each fill takes the cursor as it stands and leaves it
 * one further, whatever is around.  Channels that take turns everywhere have the same cursor. */
#include "channel.h"

ir_value *cursor_next_slot(ir_builder *b, ir_value *slot, unsigned stages)
{
	assert(stages > 1 && ir_is_scalar(slot));
	ir_value *last = ir_constant_int(b, SCALAR_I32, stages - 1), *zero = ir_constant_int(b, SCALAR_I32, 0);
	ir_value *args[] = {
		ir_binary(b, IR_EQ, slot, last), zero, ir_binary(b, IR_ADD, slot, ir_constant_int(b, SCALAR_I32, 1))};
	return ir_build1(b, IR_SELECT, slot->type, 3, args);
}

ir_value *cursor_next_parity(ir_builder *b, ir_value *slot, ir_value *parity, unsigned stages)
{
	assert(ir_is_scalar(parity) && ir_is_scalar(slot));
	ir_value *last = ir_constant_int(b, SCALAR_I32, stages - 1), *one = ir_constant_int(b, SCALAR_I32, 1);
	ir_value *args[] = {ir_binary(b, IR_EQ, slot, last), ir_binary(b, IR_XOR, parity, one), parity};
	return ir_build1(b, IR_SELECT, slot->type, 3, args);
}

static cursor next(const channel *ch, ir_builder *b, cursor at)
{
	if (!ch->loops) return at;
	if (ch->stages == 1)
		return (cursor){at.slot, ir_binary(b, IR_XOR, at.parity, ir_constant_int(b, SCALAR_I32, 1))};
	ir_value *slot = cursor_next_slot(b, at.slot, ch->stages);
	return (cursor){slot, cursor_next_parity(b, at.slot, at.parity, ch->stages)};
}

/* ---- channels in step ---- */

static site *site_of(const channels *c, const ir_op *o)
{
	for (uint32_t i = 0; o->kind == IR_MBARRIER_EXPECT && i < c->sites.n; i++)
		if (c->sites.at[i]->marker == o) return c->sites.at[i];
	return NULL;
}

/* The operation, or one in its regions, fills the channel. */
static bool holds_site(const channels *c, const channel *ch, const ir_op *o)
{
	for (uint32_t i = 0; i < c->sites.n; i++)
		if (c->sites.at[i]->of == ch && ir_encloses(o, c->sites.at[i]->marker)) return true;
	return false;
}

/* The next operation, from `o` on, that the channel's cursor meets. */
static const ir_op *next_met(const channels *c, const channel *ch, const ir_op *o)
{
	while (o && !holds_site(c, ch, o)) o = o->next;
	return o;
}

/* Fills of two channels take turns everywhere, so that a cursor serves both. */
static bool in_step(const channels *c, const channel *x, const channel *y, const ir_block *b)
{
	const ir_op *o = next_met(c, x, b->first), *p = next_met(c, y, b->first);
	for (; o && p; o = next_met(c, x, o->next), p = next_met(c, y, p->next)) {
		if (!o->nregions != !p->nregions || (o->nregions && o != p)) return false;
		for (unsigned r = 0; r < o->nregions; r++)
			if (!in_step(c, x, y, o->regions[r])) return false;
	}
	return !o && !p;
}

static void find_steps(const channels *c)
{
	for (uint32_t i = 0; i < c->at.n; i++) {
		channel *ch = c->at.at[i];
		ch->steps = ch;
		for (uint32_t k = 0; k < i && ch->steps == ch; k++) {
			const channel *first = c->at.at[k];
			if (first->steps == first && first->stages == ch->stages &&
				in_step(c, first, ch, c->func->body))
				ch->steps = first;
		}
	}
}

/* ---- the walk ---- */

static cursor as_arguments(ir_block *b)
{
	ir_type t = ir_scalar_type(SCALAR_I32);
	ir_value *slot = ir_block_arg(b, t, NULL);
	return (cursor){slot, ir_block_arg(b, t, NULL)};
}

static void pass_on(const channels *c, ir_op *o, cursor at)
{
	ir_add_arg(c->func, o, at.slot);
	ir_add_arg(c->func, o, at.parity);
}

static cursor as_results(const channels *c, ir_op *o)
{
	ir_value *slot = ir_add_result(c->func, o, ir_scalar_type(SCALAR_I32));
	return (cursor){slot, ir_add_result(c->func, o, ir_scalar_type(SCALAR_I32))};
}

static cursor thread_block(channels *c, const channel *steps, ir_block *b, cursor at);

/* The cursor through the regions of an if or a loop, as they run. */
static cursor thread_regions(channels *c, const channel *steps, ir_op *o, cursor at)
{
	if (o->kind == IR_IF) {
		for (unsigned r = 0; r < 2; r++) {
			cursor end = thread_block(c, steps, o->regions[r], at);
			pass_on(c, o->regions[r]->last, end);
		}
		return as_results(c, o);
	}
	pass_on(c, o, at);
	for (unsigned r = 0; r < o->nregions; r++) {
		cursor end = thread_block(c, steps, o->regions[r], as_arguments(o->regions[r]));
		pass_on(c, o->regions[r]->last, end);
	}
	return as_results(c, o);
}

static void supply(ir_value *placeholder, ir_value *v)
{
	ir_replace(placeholder, v);
	ir_erase(placeholder->def);
}

/* Sites that release behind the loop what its last iteration has filled. */
static void leave_loop(const channels *c, const channel *steps, const ir_op *loop, cursor behind)
{
	for (uint32_t i = 0; i < c->sites.n; i++) {
		site *s = c->sites.at[i];
		if (s->loop == loop && s->behind && s->of->steps == steps) supply(s->behind, behind.slot);
	}
}

static void begin_again(const channels *c)
{
	for (uint32_t i = 0; i < c->at.n; i++) c->at.at[i]->filled = 0;
}

/* The cursor through a block, of all channels in step: `at` in front of it, the result behind it.
 * stands[n] is the cursor after n advances, so a channel's fill number k here, from 0, takes stands[k], and the first
 * channel to come to its fill k makes stands[k + 1].  Of two channels x and y:
 *     fill x    stands[0], advances to stands[1]
 *     fill y    stands[0]
 *     fill x    stands[1], advances to stands[2] */
static cursor thread_block(channels *c, const channel *steps, ir_block *b, cursor at)
{
	cursor *stands = ARENA_ARRAY(c->context->arena, cursor, c->sites.n + 1u);
	unsigned n = 0;
	stands[0] = at;
	begin_again(c);
	for (ir_op *o = b->first; o; o = o->next) {
		site *s = site_of(c, o);
		if (s && s->of->steps == steps) {
			unsigned k = s->of->filled++;
			if (k == n) {
				ir_builder here = {.func = c->func, .block = b, .before = s->advance, .at = s->at};
				stands[++n] = next(steps, &here, stands[k]);
			}
			supply(s->here.slot, stands[k].slot);
			supply(s->here.parity, stands[k].parity);
		} else if (o->nregions && holds_site(c, steps, o)) {
			stands[0] = thread_regions(c, steps, o, stands[n]);
			leave_loop(c, steps, o, stands[0]);
			n = 0;
			begin_again(c);
		}
	}
	return stands[n];
}

/* In a cluster a program ends when its neighbours have released all slots: nobody speaks to it any more, and what it
 * brought them has been read.  As if it filled each slot once more. */
static void wait_for_neighbours(const channels *c, const channel *ch, cursor at)
{
	const ir_op *last = NULL;
	for (const ir_op *o = c->func->body->first; o; o = o->next)
		if (holds_site(c, ch, o)) last = o;
	ir_builder b = {.func = c->func, .block = c->func->body, .before = last->next, .at = last->at};
	for (unsigned i = 0; i < ch->stages; i++) {
		ir_value *other = ir_binary(&b, IR_XOR, at.parity, ir_constant_int(&b, SCALAR_I32, 1));
		ir_value *free[] = {ch->empty, at.slot, other};
		ir_set_partition(ir_build(&b, IR_MBARRIER_WAIT, 3, free, 0, NULL, 0), IR_PARTITION_PRODUCER);
		at = next(ch, &b, at);
	}
}

void cursor_thread(channels *c)
{
	find_steps(c);
	for (uint32_t i = 0; i < c->at.n; i++) {
		channel *ch = c->at.at[i];
		ir_op *behind = ch->full->def;
		while (behind->kind == IR_MBARRIERS) behind = behind->next;
		ir_builder head = {.func = c->func, .block = c->func->body, .before = behind, .at = c->func->at};
		if (ch->steps != ch) continue;
		ir_value *zero = ir_constant_int(&head, SCALAR_I32, 0);
		cursor end = thread_block(c, ch, c->func->body, (cursor){zero, zero});
		if (ch->cluster) wait_for_neighbours(c, ch, end);
	}
}
