/* What a loop is rewritten with: carried values, multibuffers, copies, reads, products that run on.
 *
 * In: a loop of which latencies.c has found what it loads and multiplies.  Out: pieces of the loop that it becomes.
 * The one idea: pipeline.c says in what order they stand, here is what each of them is. */
#include "pipeline.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>

/* They stand together, so that the branch is one. */
void pipeline_copy_blocks(pipeline *p, ir_builder *b, ir_value *slot, ir_value **map)
{
	ir_value *expect[] = {p->barriers, slot};
	ir_set_bytes(ir_build(b, IR_MBARRIER_EXPECT, 2, expect, 0, NULL, 0), p->expected);
	for (unsigned i = 0; i < p->nloads; i++) {
		const staged *s = &p->loads[i];
		ir_value *args[5 + IR_MAP_RANK] = {s->multibuffer, slot, p->barriers};
		unsigned n = 3;
		if (!s->bulk) continue;
		unsigned shares = ir_get_shares(s->load);
		for (unsigned k = 0; k < s->load->nargs; k++) args[n++] = ir_mapped(map, ir_arg(s->load, k));
		b->at = s->load->at;
		if (shares > 1) args[n++] = ir_constant_int(b, SCALAR_I32, 1);
		ir_set_shares(ir_build(b, IR_BULK_COPY, n, args, 0, NULL, 0), shares);
	}
}

ir_value *pipeline_carry(pipeline *p, ir_value *start, const layout *l)
{
	assert(start->block != p->body);
	ir_add_arg(p->func, p->loop, start);
	ir_value *result = ir_add_result(p->func, p->loop, start->type),
		 *arg = ir_block_arg(p->body, start->type, NULL);
	result->layout = arg->layout = l;
	return arg;
}

void pipeline_make_multibuffers(pipeline *p, ir_builder *b)
{
	assert(p->stages > 1 && p->nloads);
	for (unsigned i = 0; i < p->nloads; i++) {
		if (p->func->num_ctas > 1) p->loads[i].unshared = "no producer warp makes its copies";
		staged_make_multibuffer(p->context, &p->loads[i], p->stages, b);
	}
	if (p->nbulk) {
		p->barriers = ir_build1(b, IR_MBARRIERS, ir_scalar_type(SCALAR_I32), 0, NULL);
		ir_set_count(p->barriers->def, p->stages);
		ir_set_arrivals(p->barriers->def, 1);
	}
	for (unsigned i = 0; p->nbulk && i < p->nloads; i++)
		vec_push(p->context->arena, &p->context->notes,
			((pass_note){.op = p->loads[i].multibuffer->def, .why = p->alone}));
}

void pipeline_erase_chain(ir_op *last, const ir_op *load)
{
	assert(load->nresults == 1);
	for (ir_op *o = last, *source; o && !o->results[0]->uses; o = source) {
		source = o == load ? NULL : ir_arg(o, 0)->def;
		ir_erase(o);
	}
}

ir_value *staged_read(arena *a, const staged *s, unsigned i, ir_builder *b, ir_value *slot)
{
	assert(s->multibuffer);
	ir_value *args[] = {s->multibuffer, slot}, *tile = s->load->results[0];
	ir_value *read = ir_build1(b, IR_MULTIBUFFER_READ, tile->type, 2, args);
	read->name = tile->name;
	read->layout = tile->layout;
	if (!s->nby) return read;
	layout *l = ARENA_NEW(a, layout);
	*l = pipeline_read_layout(s, i);
	read->layout = l;
	ir_value *result = read;
	ir_op *order[IR_MAX_RANK * 4];
	unsigned n = 0;
	for (ir_op *o = s->by[i].tile->def; o != s->load && n < IR_MAX_RANK * 4; o = ir_arg(o, 0)->def) order[n++] = o;
	while (n-- > 0) { /* the permutations again, on what was read */
		const ir_op *o = order[n];
		uint8_t transposed[IR_MAX_RANK];
		for (unsigned d = 0; d < IR_MAX_RANK; d++) transposed[d] = (uint8_t)ir_unpack(ir_get_order(o), d);
		layout *m = ARENA_NEW(a, layout);
		*m = layout_permute(result->layout, transposed);
		result = ir_build1(b, IR_PERMUTE, o->results[0]->type, 1, &result);
		ir_set_order(result->def, ir_get_order(o));
		result->layout = m;
	}
	return result;
}

static void read_multibuffer(pipeline *p, staged *s, ir_value *slot)
{
	assert(s->load->block == p->body);
	ir_builder b = {.func = p->func, .block = p->body, .at = s->load->at};
	if (!s->nby) {
		b.before = s->load;
		ir_replace(s->load->results[0], staged_read(p->context->arena, s, 0, &b, slot));
		ir_erase(s->load);
	}
	for (unsigned i = 0; i < s->nby; i++) {
		b.before = s->by[i].op;
		ir_replace(b.before->results[0], staged_read(p->context->arena, s, i, &b, slot));
		pipeline_erase_chain(b.before, s->load);
	}
}

/* Other loads know the old product. */
static void take_from_multibuffer(pipeline *p, const staged *s, const consumer *t, ir_value *slot)
{
	ir_op *old = t->op;
	wgmma_plan plan;
	wgmma_parts(old, &plan);
	ir_op *source = ir_arg(old, plan.operand[t->arg].arg)->def;
	ir_op *again = channel_read_slot(p->func, t, s->multibuffer, slot);
	pipeline_erase_chain(source, s->load);
	for (unsigned i = 0; i < p->nloads; i++)
		for (unsigned k = 0; k < p->loads[i].nby; k++)
			if (p->loads[i].by[k].op == old) p->loads[i].by[k].op = again;
}

void pipeline_read_multibuffers(pipeline *p, ir_value *slot)
{
	for (unsigned i = 0; i < p->nloads; i++) {
		staged *s = &p->loads[i];
		ir_builder b = {.func = p->func, .block = p->body, .before = s->load, .at = s->load->at};
		ir_value *own = row_group_slot(&b, slot, s->parts);
		if (!s->nby || s->by[0].op->kind != IR_WGMMA)
			read_multibuffer(p, s, own);
		else
			for (unsigned k = 0; k < s->nby; k++) take_from_multibuffer(p, s, &s->by[k], own);
	}
}

/* Products whose sums only other products see: their waits go behind the loop. */
void pipeline_leave_in_flight(pipeline *p, ir_builder *after)
{
	assert(p->nwaits <= MOST_PRODUCTS);
	for (unsigned i = 0; i < p->nwaits; i++) {
		ir_op *w = p->waits[i];
		ir_replace(w->results[0], ir_arg(w, 0));
		ir_erase(w);
	}
	for (unsigned k = 0; k < p->loop->nresults; k++) {
		ir_value *sum = p->loop->results[k], *next = ir_arg(p->body->last, k);
		if (!p->nwaits || !next->def || next->def->kind != IR_WGMMA) continue;
		ir_value *done = ir_build1(after, IR_WGMMA_WAIT, sum->type, 1, &sum);
		done->layout = sum->layout;
		done->name = sum->name;
		ir_replace(sum, done);
		ir_set_arg(done->def, 0, sum);
	}
}

/* Behind the last product that reads a multibuffer; null: there is none, copies stand at the top.  While a product runs
 * that takes an operand from registers, nothing shall be computed that might be given the same ones: behind its
 * wait. */
ir_op *pipeline_behind_products(const pipeline *p)
{
	for (ir_op *o = p->body->last; o; o = o->prev) {
		unsigned multibuffers = o->kind == IR_WGMMA ? pipeline_multibuffers_of(p, o) : 0;
		if (multibuffers) return multibuffers == 1 && o->next->kind == IR_WGMMA_WAIT ? o->next->next : o->next;
	}
	return NULL;
}

layout pipeline_read_layout(const staged *s, unsigned i)
{
	assert(i < s->nby && s->by[i].op->results[0]->layout);
	const consumer *t = &s->by[i];
	layout l = *t->op->results[0]->layout;
	uint8_t order[IR_MAX_RANK];
	for (const ir_op *o = t->tile->def; o != s->load; o = ir_arg(o, 0)->def) {
		for (unsigned d = 0; d < IR_MAX_RANK; d++) order[d] = (uint8_t)ir_unpack(ir_get_order(o), d);
		l = layout_unpermute(&l, order);
	}
	return l;
}

bool pipeline_takes(const staged *s, const ir_op *o)
{
	for (unsigned i = 0; i < s->nby; i++)
		if (s->by[i].op == o) return true;
	return false;
}

unsigned pipeline_multibuffers_of(const pipeline *p, const ir_op *o)
{
	assert(o->kind == IR_WGMMA || o->kind == IR_DOT);
	unsigned n = 0;
	for (unsigned i = 0; i < p->nloads; i++) n += pipeline_takes(&p->loads[i], o);
	return n;
}
