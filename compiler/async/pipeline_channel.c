/* A loop whose copies another warp shall make: its loads go by a channel.
 *
 * In: a loop whose loads are all bulk copies, mostly with a loop around it.  Out: one fill of a channel an iteration,
 * of all its loads, with copies, waits and arrivals in an order in which one thread could do all of them:
 *
 *     for t {                                   multibuffers, full, empty
 *       for k, s {                              for t, slot, parity {
 *         %x = bulk_load ..        ->             for k, s, slot, parity {
 *         %u = wgmma_wait (wgmma ..)                mbarrier_wait empty[slot], the other parity     {producer}
 *         yield %u                                  mbarrier_expect full[slot]; bulk_copy ..        {producer}
 *       }                                           mbarrier_wait full[slot], parity
 *     }                                             %t = wgmma r[slot], .., %s
 *                                                   wgmma_wait {pending=1}
 *                                                   mbarrier_arrive empty[slot before], not in the first iteration
 *                                                   yield %t, next slot, next parity }
 *                                                 %u = wgmma_wait %t
 *                                                 mbarrier_arrive empty[last slot], if there was an iteration
 *                                                 yield next slot, next parity }
 *
 * The one idea: nothing but products sees the sums, so all blocks of an iteration have one life: they come together,
 * and what has been read is released an iteration later, as products run on.  Without products in flight an iteration
 * releases its own slot, at its end.  Then there need not be a loop around; in a cluster neither, and behind all loops
 * the producer waits until each slot has come back.  The last slot is released where somebody takes it: a loop around,
 * or those waits.
 *
 * Where the program runs the loop once, and what it stores in the end would take a slot's room, that lies where the
 * slots were (`ends`): they have been filled and read for the last time.
 *
 * A loop that stands behind such a one and loads the same goes on by its channel: as if both were one.  But for one
 * whose last slot nobody releases, as no loop is around it (groups of rows). */
#include "pipeline.h"

#include <assert.h>
#include <string.h>

static ir_op *outermost(ir_op *o)
{
	while (o->block->parent) o = o->block->parent;
	return o;
}

static channel *make_channel(pipeline *p, staged *loads)
{
	channel *ch = ARENA_NEW(p->context->arena, channel);
	*ch = (channel){
		.loads = loads, .nloads = p->nloads, .stages = p->stages, .expected = p->expected, .loops = true};
	vec_push(p->context->arena, &p->channels.at, ch);
	return ch;
}

void pipeline_find_site(pipeline *p)
{
	assert(p->nbulk == p->nloads && p->stages >= 2);
	site *s = p->site = ARENA_NEW(p->context->arena, site);
	staged *loads = ARENA_ARRAY(p->context->arena, staged, p->nloads);
	memcpy(loads, p->loads, p->nloads * sizeof *loads);
	for (unsigned i = 0; i < p->nloads; i++)
		if (!loads[i].nby) loads[i].first_read = loads[i].load;
	*s = (site){.loads = loads, .at = p->loop->at, .loop = p->loop, .in_flight = p->nwaits};
	s->of = p->goes_on ? p->before->of : make_channel(p, loads);
	vec_push(p->context->arena, &p->channels.sites, s);
	if (!p->goes_on) multicast_find(&p->channels, s);
}

static void make(pipeline *p, site *s)
{
	ir_builder head = {.func = p->func, .block = p->func->body, .before = outermost(p->loop), .at = s->at};
	channel_make_multibuffers(&p->channels, s->of, &head);
	channel_make_barriers(&p->channels, s->of, &head);
	if (s->of->cluster) multicast_build(&p->channels, s, &head);
}

void pipeline_open_site(pipeline *p)
{
	site *s = p->site;
	ir_op *end = p->body->last;
	ir_builder after = {.func = p->func, .block = p->loop->block, .before = p->loop->next, .at = s->at};
	if (!p->goes_on) make(p, s);
	pipeline_leave_in_flight(p, &after);
	s->fill = s->first_use = p->body->first;
	s->last_use = p->nwaits ? pipeline_behind_products(p)->prev : end->prev;
	s->advance = end;
	s->released = !p->nwaits || ir_loop_around(p->loop) || s->of->cluster;
	channel_open(&p->channels, s);
	pipeline_hoist(p, s->marker);
	channel_erase_loads(s);
	if (p->ends) { /* `empty` goes on: neighbours release slots there, and the producer waits for them */
		ir_build(&after, IR_MBARRIERS_END, 1, &s->of->full, 0, NULL, 0);
		ir_build(&after, IR_MULTIBUFFER_END, 0, NULL, 0, NULL, 0);
	}
	p->before = s;
	p->sent_before = p->sent;
	p->wanted_before = pipeline_wanted_stages(p);
}
