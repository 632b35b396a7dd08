/* Loads that go through shared memory are copied there ahead of time: cp.async into a multibuffer of stages.
 *
 * In: a mapped function.  Out: in loops that fit, loads have become asynchronous copies that run some iterations ahead,
 * and products whose operands they bring overlap with what follows.  The one idea: an iteration's addresses and masks,
 * its *slice*, depend on little: the counter, carried pointers, values from outside.  The slice is cloned for the
 * iterations before the loop, and once into the loop for an iteration ahead, where it runs on carried values of its
 * own; what was the load and its conversion becomes a read of the multibuffer, what was an operand of a wgmma the
 * multibuffer's slot itself.
 *
 *     for k, p {                                multibuffer r; for the first iterations: if it exists { copy }; commit
 *       %x = load %p, %mask                     for k, p, ahead, slot, fill {
 *       %y = convert_layout %x          ->        wait until this iteration's copy is there, for all threads
 *       dot ..                                    if iteration k + distance exists { copy %ahead into r[fill] }; commit
 *       yield %p + s                              %y = multibuffer_read r[slot]; dot ..
 *     }                                           yield .., %ahead + s, next slot, next fill }
 *                                               multibuffer_end
 *
 * The wait's barrier also says that everybody has read the slot that this iteration fills: it was read an iteration
 * ago.  So copies run stages - 1 iterations ahead.  The last iteration's wait is for all copies that there are: groups
 * behind it are empty.
 *
 *     for k, p, s {                             multibuffer r ..
 *       %x = load %p, %mask                     for k, p, s, ahead, slot, fill {
 *       %t = wgmma %x, .., %s           ->        wait until this iteration's copy is there, for all threads and wgmma
 *       %u = wgmma_wait %t                        %t = wgmma r[slot], .., %s
 *       yield %p + s, %u                          if iteration k + distance exists { copy %ahead into r[fill] }; commit
 *     }                                           wgmma_wait {pending=1}
 *                                                 yield .., %t, .. }
 *                                               %u = wgmma_wait %t; cta_barrier; multibuffer_end
 *
 * A product that is still running when the next iteration begins reads a slot for an iteration longer, so copies run an
 * iteration less ahead (`overlaps`); without that the wait at the end of an iteration is for all products.  latencies.c
 * says what fits. */
#include "pipeline.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

static ir_value *widened(ir_builder *b, ir_value *v)
{
	return ir_build1(b, IR_CONVERT, ir_scalar_type(SCALAR_I64), 1, &v);
}

/* Copies of one iteration into a slot, if there is such an iteration: counter + distance * step < hi. */
static void copy_iteration(
	pipeline *p, ir_builder *b, ir_value *counter, int64_t distance, ir_value *slot, ir_value **map)
{
	assert(p->hi);
	ir_value *at = ir_binary(b, IR_ADD, widened(b, counter), ir_constant_int(b, SCALAR_I64, distance * p->step));
	ir_value *exists = ir_binary(b, IR_LT, at, p->hi);
	ir_op *guard = ir_build(b, IR_IF, 1, &exists, 0, NULL, 2);
	ir_builder inside = {.func = p->func, .block = guard->regions[0]};
	if (p->nbulk) pipeline_copy_blocks(p, &inside, slot, map);
	for (unsigned i = 0; i < p->nloads; i++) {
		const staged *s = &p->loads[i];
		if (s->bulk) continue;
		ir_value *args[] = {s->multibuffer, slot, ir_mapped(map, ir_arg(s->load, 0)), NULL};
		if (s->load->nargs > 1) args[3] = ir_mapped(map, ir_arg(s->load, 1));
		inside.at = s->load->at;
		ir_op *copy = ir_build(&inside, IR_ASYNC_COPY, args[3] ? 4 : 3, args, 0, NULL, 0);
		ir_set_width(copy, s->width);
	}
	ir_yield(&inside, 0, NULL);
	inside.block = guard->regions[1];
	ir_yield(&inside, 0, NULL);
	if (p->nbulk < p->nloads) ir_build(b, IR_ASYNC_COMMIT, 0, NULL, 0, NULL, 0);
}

/* Until the copies of all threads are there; `proxy`: they are read by wgmma. */
static void wait(ir_builder *b, unsigned pending, bool proxy)
{
	ir_set_pending(ir_build(b, IR_ASYNC_WAIT, 0, NULL, 0, NULL, 0), pending);
	if (proxy) ir_set_proxy(ir_build(b, IR_PROXY_FENCE, 0, NULL, 0, NULL, 0), IR_PROXY_SHARED);
	ir_build(b, IR_CTA_BARRIER, 0, NULL, 0, NULL, 0);
}

/* As early in the loop's block as nothing else has shared memory or goes on in order: a barrier for bulk copies is set
 * up while addresses are computed. */
static ir_op *earliest(const pipeline *p)
{
	ir_op *o = p->loop;
	while (o->prev && ir_has(o->prev, IR_PURE) && o->prev->kind != IR_TENSOR_MAP &&
		!scratch_bytes(p->func, o->prev))
		o = o->prev;
	return o;
}

/* The iterations before the loop; leaves in ahead[k] the carried values of the iteration that the loop will copy
 * first. */
static void prologue(pipeline *p, ir_value **ahead, unsigned ncarried)
{
	ir_builder b = {.func = p->func, .block = p->loop->block, .before = p->loop, .at = p->loop->at};
	ir_value *counter = ir_arg(p->loop, 0);
	p->hi = widened(&b, ir_arg(p->loop, 1));
	if (p->nbulk) b.before = earliest(p);
	pipeline_make_multibuffers(p, &b);
	b.before = p->loop;
	for (unsigned k = 0; k < ncarried; k++) ahead[k] = ir_arg(p->loop, 3 + k);
	for (unsigned iteration = 0; iteration < p->distance; iteration++) {
		ir_value **map = ARENA_ARRAY(p->context->arena, ir_value *, p->nvalues);
		map[p->body->args[0]->id] = counter;
		for (unsigned k = 0; k < ncarried; k++) map[p->body->args[1 + k]->id] = ahead[k];
		pipeline_clone(p, &b, map);
		b.at = p->loop->at;
		copy_iteration(p, &b, ir_arg(p->loop, 0), iteration, ir_constant_int(&b, SCALAR_I32, iteration), map);
		for (unsigned k = 0; k < ncarried; k++)
			if (p->sliced[p->body->args[1 + k]->id]) ahead[k] = ir_mapped(map, ir_arg(p->body->last, k));
		counter = ir_binary(&b, IR_ADD, counter, ir_arg(p->loop, 2));
	}
	b.at = p->loop->at;
	if (p->nbulk) ir_build(&b, IR_CTA_BARRIER, 0, NULL, 0, NULL, 0); /* the mbarriers are there, for all threads */
}

static void rewrite(pipeline *p)
{
	ir_op *end = p->body->last;
	unsigned ncarried = p->loop->nresults, distance = p->distance;
	ir_value **ahead = ARENA_ARRAY(p->context->arena, ir_value *, ncarried + 1u);
	ir_value **map = ARENA_ARRAY(p->context->arena, ir_value *, p->nvalues);
	prologue(p, ahead, ncarried);
	ir_builder before = {.func = p->func, .block = p->loop->block, .before = p->loop, .at = p->loop->at};
	ir_builder top = {.func = p->func, .block = p->body, .before = p->body->first, .at = p->loop->at};
	ir_builder bottom = {.func = p->func, .block = p->body, .before = end, .at = p->loop->at};
	ir_builder after = {.func = p->func, .block = p->loop->block, .before = p->loop->next, .at = p->loop->at};
	pipeline_leave_in_flight(p, &after);
	ir_op *products = pipeline_behind_products(p);
	ir_builder filling = {.func = p->func, .block = p->body, .at = p->loop->at};
	filling.before = products ? products : top.before;
	ir_value *counter = p->body->args[0];
	ir_value *slot = pipeline_carry(p, ir_constant_int(&before, SCALAR_I32, 0), NULL);
	ir_value *fill = pipeline_carry(p, ir_constant_int(&before, SCALAR_I32, distance), NULL);
	for (unsigned k = 0; k < ncarried; k++) {
		ir_value *arg = p->body->args[1 + k];
		if (p->sliced[arg->id]) map[arg->id] = ahead[k] = pipeline_carry(p, ahead[k], arg->layout);
	}
	if (p->nbulk) {
		p->parity = pipeline_carry(p, ir_constant_int(&before, SCALAR_I32, 0), NULL);
		ir_value *args[] = {p->barriers, slot, p->parity};
		ir_build(&top, IR_MBARRIER_WAIT, 3, args, 0, NULL, 0);
	}
	bool all_bulk = p->nbulk == p->nloads;
	if (!all_bulk)
		wait(&top, distance - 1, products != NULL);
	else { /* the products of one iteration ago are done, for all threads: their slot is free */
		if (p->nwaits) ir_set_pending(ir_build(&filling, IR_WGMMA_WAIT, 0, NULL, 0, NULL, 0), p->nwaits);
		ir_build(p->nwaits ? &filling : &top, IR_CTA_BARRIER, 0, NULL, 0, NULL, 0);
	}
	map[counter->id] = ir_binary(
		&filling, IR_ADD, counter, ir_constant_int(&filling, SCALAR_I32, (int64_t)distance * p->step));
	pipeline_clone(p, &filling, map);
	filling.at = p->loop->at;
	copy_iteration(p, &filling, counter, distance, fill, map);
	if (p->nwaits && !all_bulk)
		ir_set_pending(ir_build(&filling, IR_WGMMA_WAIT, 0, NULL, 0, NULL, 0), p->overlaps ? p->nwaits : 0);
	ir_add_arg(p->func, end, cursor_next_slot(&bottom, slot, p->stages));
	ir_add_arg(p->func, end, cursor_next_slot(&bottom, fill, p->stages));
	for (unsigned k = 0; k < ncarried; k++)
		if (p->sliced[p->body->args[1 + k]->id]) ir_add_arg(p->func, end, ir_mapped(map, ir_arg(end, k)));
	if (p->nbulk) ir_add_arg(p->func, end, cursor_next_parity(&bottom, slot, p->parity, p->stages));
	assert(end->nargs == p->loop->nresults);
	pipeline_read_multibuffers(p, slot);
	/* Else all have met: each has waited for its products, and in the last iteration for all copies. */
	if (products && !all_bulk) ir_build(&after, IR_CTA_BARRIER, 0, NULL, 0, NULL, 0);
	if (p->nbulk) ir_build(&after, IR_MBARRIERS_END, 1, &p->barriers, 0, NULL, 0);
	ir_build(&after, IR_MULTIBUFFER_END, 0, NULL, 0, NULL, 0);
}

/* Bytes of multibuffers that live at a time in the loop as a whole; `nested`: in the loops inside it. */
static uint32_t try_loop(pipeline *p, ir_op *loop, uint32_t nested)
{
	const pipeline b = *p;
	*p = (pipeline){.context = b.context,
		.func = b.func,
		.loop = loop,
		.body = loop->regions[0],
		.lasting = b.lasting,
		.nested = nested,
		.peak = b.peak,
		.lasting_reserve = b.lasting_reserve,
		.channels = b.channels,
		.before = b.before,
		.sent_before = b.sent_before,
		.wanted_before = b.wanted_before};
	p->nvalues = p->func->nvalues;
	p->sliced = ARENA_ARRAY(p->context->arena, bool, p->nvalues);
	if (!pipeline_fits(p)) return nested;
	if (!p->alone) pipeline_find_site(p);
	pipeline_init_accumulators(p);
	if (p->site)
		pipeline_open_site(p);
	else
		rewrite(p);
	return p->nested;
}

/* Inner loops first: what they leave behind does not fit any more.  Loops one behind the other take the same bytes. */
static uint32_t find_loops(pipeline *p, ir_block *b)
{
	uint32_t peak = 0;
	for (ir_op *o = b->first, *next; o; o = next) {
		uint32_t nested = 0;
		next = o->next;
		for (unsigned r = 0; r < o->nregions; r++) {
			uint32_t there = find_loops(p, o->regions[r]);
			if (there > nested) nested = there;
		}
		if (o->kind == IR_FOR) nested = try_loop(p, o, nested);
		if (nested > peak) peak = nested;
		if (peak > p->peak) p->peak = peak;
	}
	return peak;
}

bool pass_pipeline(pass_context *c, ir_func *f)
{
	if (!pass_axis(c, f)) return false;
	pipeline p = {.context = c, .func = f, .lasting = scratch_place_lasting(f)};
	p.channels = (channels){.context = c, .func = f};
	find_loops(&p, f->body);
	cursor_thread(&p.channels);
	return true;
}
