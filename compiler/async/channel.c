/* What a channel is in code.
 *
 * In: a channel's loads and stages; a site, a place where its slots are filled and read.  Out: multibuffers, barriers,
 * and for each site
 *
 *     mbarrier_wait empty[slot], the other parity                      {producer}
 *     mbarrier_expect full[slot]; bulk_copy .. for each of its loads   {producer}
 *     mbarrier_wait full[slot], parity
 *     %p = wgmma r[slot], ..; %x = multibuffer_read r[slot]
 *     mbarrier_arrive empty[slot]
 *
 * or, where n products are left running, and read their slots, when the next iteration begins:
 *
 *     for i, s {
 *       ..
 *       %p = wgmma r[slot], ..
 *       wgmma_wait {pending=n}
 *       mbarrier_arrive empty[slot before], not in the first iteration
 *     }
 *     wgmma_wait %p; mbarrier_arrive empty[last slot], if there was an iteration
 *
 * The one idea: in an order in which one thread could do all of it; what is the producer's has its partition, and
 * specialise_warps.c gives each half to its warps.  Slot and parity are placeholders (cursor.c). */
#include "bulk.h"
#include "channel.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>

/* ---- multibuffers and barriers ---- */

/* For reports: what was said of a load is said of its multibuffer. */
static void hand_on_note(pass_context *c, const ir_op *load, const ir_op *multibuffer)
{
	for (uint32_t i = 0; i < c->not_raised.n; i++)
		if (c->not_raised.at[i].op == load) c->not_raised.at[i].op = multibuffer;
}

/* Who would hold what: of a block that has more than the load's columns, nobody asks. */
static const layout *layout_of_block(pass_context *c, const ir_func *f, const staged *s)
{
	const ir_value *tile = s->load->results[0];
	if (ir_type_equal(s->block, tile->type)) return tile->layout;
	layout *l = ARENA_NEW(c->arena, layout);
	*l = layout_coalesced(s->block, lg2(16 / ir_element_bytes(s->block)), (const uint8_t[]){1, 0}, f->num_warps);
	return l;
}

void staged_make_multibuffer(pass_context *c, staged *s, unsigned stages, ir_builder *b)
{
	b->at = s->load->at;
	s->multibuffer = ir_build1(b, IR_MULTIBUFFER, s->block, 0, NULL);
	s->multibuffer->layout = layout_of_block(c, b->func, s);
	ir_set_stages(s->multibuffer->def, stages * s->parts);
	ir_set_swizzle(s->multibuffer->def, s->swizzle);
	ir_set_fast(s->multibuffer->def, s->fast);
	hand_on_note(c, s->load, s->multibuffer->def);
	if (s->unshared) vec_push(c->arena, &c->alone, ((pass_note){.op = s->multibuffer->def, .why = s->unshared}));
}

void channel_make_multibuffers(const channels *c, channel *ch, ir_builder *b)
{
	for (unsigned i = 0; i < ch->nloads; i++) staged_make_multibuffer(c->context, &ch->loads[i], ch->stages, b);
}

void channel_make_barriers(const channels *c, channel *ch, ir_builder *b)
{
	b->at = ch->loads[0].load->at;
	for (unsigned i = 0; i < 2; i++) {
		if (i && !ch->loops) break;
		ir_value *v = ir_build1(b, IR_MBARRIERS, ir_scalar_type(SCALAR_I32), 0, NULL);
		ir_set_count(v->def, ch->stages);
		ir_set_arrivals(v->def, i ? ir_warps(c->func) * (ch->cluster ? ch->cluster : 1) : 1);
		*(i ? &ch->empty : &ch->full) = v;
	}
}

/* ---- copies ---- */

static ir_op *producers(ir_op *o)
{
	ir_set_partition(o, IR_PARTITION_PRODUCER);
	return o;
}

static void build_copies(const site *s, ir_builder *b)
{
	const channel *ch = s->of;
	for (unsigned i = 0; i < ch->nloads; i++) {
		const staged *l = &s->loads[i];
		ir_value *args[5 + IR_MAP_RANK] = {ch->loads[i].multibuffer, s->here.slot, ch->full};
		unsigned n = 3;
		for (unsigned k = 0; k < l->load->nargs; k++) args[n++] = ir_arg(l->load, k);
		b->at = l->load->at;
		if (ir_get_shares(l->load) > 1)
			args[n++] = l->multicast ? l->multicast : ir_constant_int(b, SCALAR_I32, 1);
		row_group_copies(b, l->load, l->parts, n, args);
	}
}

/* Returns its first operation. */
static ir_op *build_fill(site *s, ir_builder *b)
{
	const channel *ch = s->of;
	const ir_op *before = b->before->prev;
	const ir_block *block = b->before->block;
	if (ch->empty) {
		ir_value *other = ir_binary(b, IR_XOR, s->here.parity, ir_constant_int(b, SCALAR_I32, 1));
		ir_value *free[] = {ch->empty, s->here.slot, other};
		producers(ir_build(b, IR_MBARRIER_WAIT, 3, free, 0, NULL, 0));
	}
	ir_value *come[] = {ch->full, s->here.slot};
	s->marker = producers(ir_build(b, IR_MBARRIER_EXPECT, 2, come, 0, NULL, 0));
	ir_set_bytes(s->marker, ch->expected);
	build_copies(s, b);
	return before ? before->next : block->first;
}

/* ---- reads ---- */

ir_op *channel_read_slot(ir_func *f, const consumer *t, ir_value *multibuffer, ir_value *slot)
{
	assert(t->op->block && multibuffer);
	ir_op *old = t->op;
	ir_builder b = {.func = f, .block = old->block, .before = old, .at = old->at};
	ir_value *args[8];
	wgmma_plan plan;
	unsigned n = 0;
	wgmma_parts(old, &plan);
	for (unsigned i = 0; i < old->nargs; i++) {
		bool this = i == plan.operand[t->arg].arg;
		args[n++] = this ? multibuffer : ir_arg(old, i);
		if (this) args[n++] = slot;
	}
	ir_value *result = ir_build1(&b, IR_WGMMA, old->results[0]->type, n, args);
	result->layout = old->results[0]->layout;
	unsigned transposed = t->transposed ? t->arg ? WGMMA_TRANSPOSED_B : WGMMA_TRANSPOSED_A : 0;
	ir_copy_attributes(result->def, old);
	ir_set_transposed(result->def, ir_get_transposed(old) | transposed);
	ir_replace(old->results[0], result);
	ir_erase(old);
	return result->def;
}

/* Other loads know the old product. */
static void read_from(channels *c, const consumer *r, ir_value *multibuffer, ir_value *slot)
{
	const ir_op *old = r->op;
	ir_op *again = channel_read_slot(c->func, r, multibuffer, slot);
	for (uint32_t i = 0; i < c->sites.n; i++) {
		site *s = c->sites.at[i];
		if (s->first_use == old) s->first_use = again;
		if (s->last_use == old) s->last_use = again;
		for (unsigned l = 0; l < s->of->nloads; l++) {
			staged *load = &s->loads[l];
			if (load->first_read == old) load->first_read = again;
			for (unsigned k = 0; k < load->nby; k++)
				if (load->by[k].op == old) load->by[k].op = again;
		}
	}
}

/* Only products took what o makes, and they read the slot by now. */
static bool is_unused(const ir_op *o)
{
	if (o->kind != IR_PERMUTE && o->kind != IR_CONVERT_LAYOUT) return false;
	for (const ir_use *u = o->results[0]->uses; u; u = u->next)
		if (!is_unused(u->user)) return false;
	return true;
}

static void take_instead(const ir_use *u, ir_value *v)
{
	unsigned i = 0;
	while (u->user->args[i] != u) i++;
	ir_set_arg(u->user, i, v);
}

/* The tile, in the layout in which the load would have given it; all lanes have read it then. */
static void read_tile(site *s, const staged *l, ir_builder *b, ir_value *multibuffer, ir_value *slot)
{
	ir_value *tile = l->load->results[0], *args[] = {multibuffer, slot};
	ir_value *read = ir_build1(b, IR_MULTIBUFFER_READ, tile->type, 2, args);
	read->name = tile->name;
	read->layout = tile->layout;
	for (const ir_use *u = tile->uses, *next; u; u = next) {
		next = u->next;
		if (!is_unused(u->user)) take_instead(u, read);
	}
	if (s->read_is_last) s->last_use = read->def;
}

static void read_slot(channels *c, site *s, ir_builder *b)
{
	for (unsigned i = 0; i < s->of->nloads; i++) {
		staged *l = &s->loads[i];
		ir_value *multibuffer = s->of->loads[i].multibuffer;
		b->before = s->first_use;
		ir_value *own = row_group_slot(b, s->here.slot, l->parts);
		for (unsigned k = 0; k < l->nby; k++) read_from(c, &l->by[k], multibuffer, own);
		b->before = l->first_read;
		if (l->first_read) read_tile(s, l, b, multibuffer, own);
	}
}

static void erase_unused(ir_op *o)
{
	for (const ir_use *u = o->results[0]->uses, *next; u; u = next) {
		next = u->next;
		erase_unused(u->user);
	}
	if (!o->results[0]->uses) ir_erase(o);
}

void channel_erase_loads(const site *s)
{
	for (unsigned i = 0; i < s->of->nloads; i++) erase_unused(s->loads[i].load);
}

/* ---- releases ---- */

/* Each warp releases a slot, where `only_if` holds (null: always). */
static void release(const channel *ch, ir_builder *b, ir_value *slot, ir_value *only_if)
{
	assert(ch->empty && slot->type.elem == SCALAR_I32);
	ir_value *args[4] = {ch->empty, slot};
	unsigned n = 2;
	if (ch->cluster && !only_if) only_if = ir_constant_int(b, SCALAR_BOOL, 1);
	if (only_if) args[n++] = only_if;
	if (ch->cluster) args[n++] = ch->in_step;
	ir_set_programs(ir_build(b, IR_MBARRIER_ARRIVE, n, args, 0, NULL, 0), ch->cluster);
}

static ir_value *slot_before(const channel *ch, ir_builder *b, ir_value *slot)
{
	ir_value *zero = ir_constant_int(b, SCALAR_I32, 0), *one = ir_constant_int(b, SCALAR_I32, 1);
	ir_value *args[] = {ir_binary(b, IR_EQ, slot, zero), ir_constant_int(b, SCALAR_I32, ch->stages - 1),
		ir_binary(b, IR_SUB, slot, one)};
	return ir_build1(b, IR_SELECT, slot->type, 3, args);
}

/* The products of this iteration run on: those of the last one are done. */
static void release_before(const site *s, ir_builder *b)
{
	ir_set_pending(ir_build(b, IR_WGMMA_WAIT, 0, NULL, 0, NULL, 0), s->in_flight);
	ir_value *later = ir_binary(b, IR_NE, s->loop->regions[0]->args[0], ir_arg(s->loop, 0));
	release(s->of, b, slot_before(s->of, b, s->here.slot), later);
}

static ir_value *placeholder(const channels *c)
{
	ir_builder b = {.func = c->func, .block = c->func->body, .before = c->func->body->first, .at = c->func->at};
	return ir_constant_int(&b, SCALAR_I32, 0);
}

/* Behind the loop, and behind the waits for its products. */
static void release_last(const channels *c, site *s)
{
	ir_op *o = s->loop->next;
	while (o->kind == IR_WGMMA_WAIT) o = o->next;
	ir_builder b = {.func = c->func, .block = o->block, .before = o, .at = s->at};
	bool once = ir_get_accumulator_init(s->loop);
	ir_value *any = once ? NULL : ir_binary(&b, IR_LT, ir_arg(s->loop, 0), ir_arg(s->loop, 1));
	s->behind = placeholder(c);
	release(s->of, &b, slot_before(s->of, &b, s->behind), any);
}

void channel_open(channels *c, site *s)
{
	const channel *ch = s->of;
	ir_builder b = {.func = c->func, .block = s->fill->block, .before = s->fill, .at = s->at};
	s->here = (cursor){placeholder(c), placeholder(c)};
	ir_op *first = build_fill(s, &b);
	if (!s->advance) s->advance = first;
	b.at = s->at;
	b.before = s->first_use;
	ir_value *come[] = {ch->full, s->here.slot, s->here.parity};
	ir_build(&b, IR_MBARRIER_WAIT, 3, come, 0, NULL, 0);
	read_slot(c, s, &b);
	b.before = s->last_use->next;
	if (s->in_flight)
		release_before(s, &b);
	else if (ch->empty)
		release(ch, &b, s->here.slot, NULL);
	if (s->in_flight && s->released) release_last(c, s);
}
