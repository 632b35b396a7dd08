/* Which loads of a loop run ahead, how far, and which of its products stay in flight.
 *
 * In: a loop of a mapped function.  Out: its loads that fit, the stages that shared memory holds, and the products for
 * which nobody waits inside.
 *
 * A load fits when it is through *const (nothing writes there, so running ahead changes nothing), has no hints, and
 * reads 0 where masked out.  It is used, permutations allowed, by conversions through shared memory in one piece, or by
 * products alone, which read it there: several may, where all of them want the same tile.  Of several conversions each
 * reads the slot for itself, where all can by matrix loads.  Or something is computed
 * from it, element by element, that a dot takes: then the multibuffer is read as the load's threads would have loaded,
 * and the rest stays as it is.  Its access must be 4, 8 or 16 bytes that lie together in the multibuffer too; its slice
 * must be computed from the loop's counter and carried values by operations inside threads.  The loop counts upwards in
 * i32 by a constant.
 *
 * Blocks by tensor maps fit whoever reads them, as far as their indices do.
 *
 * An iteration's products stay in flight where all of them read multibuffers and add to sums that this loop carries
 * from product to product and iteration to iteration, unseen by anything else.  With four stages the last iteration's
 * products may even run while a copy is begun: into the slot that the products of two iterations ago have left.  Where
 * all loads are bulk copies, which one thread begins, these come behind a barrier of their own and take the slot of the
 * products of one iteration ago. */
#include "analysis/access.h"
#include "bulk.h"
#include "pipeline.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>
#include <string.h>

enum { MOST_STAGES = 8, OVERLAP_STAGES = 4, PARTITION_STAGES = 3 };

static bool reads_plainly(const ir_op *o)
{
	uint64_t bits;
	return o->kind == IR_LOAD && !ir_is_scalar(ir_arg(o, 0)) && ir_arg(o, 0)->type.pointer == IR_CONST_POINTER &&
	       ir_get_cache(o) == IR_CACHE_NONE && ir_get_evict(o) == IR_EVICT_NONE && !ir_get_volatile(o) &&
	       (o->nargs < 3 || (ir_is_const(ir_arg(o, 2), &bits) && bits == 0));
}

static bool fits_plan(staged *s, const layout_plan *plan, const access_plan *access)
{
	assert(s->load && access->width);
	unsigned together = 0, width = access->width;
	if (plan->lg_passes) return false;
	while (together < plan->lg_vector_store && plan->store_bit[together] == together) together++;
	if (width > 1u << together) width = 1u << together;
	if (!s->width || width < s->width) s->width = width;
	if (s->bytes < plan->bytes) s->bytes = plan->bytes;
	return true;
}

/* The other conversions can read what conversion i wants to lie there: matrices have rows of 16 bytes both ways. */
static bool fits_others(const staged *s, unsigned i, const layout_plan *plan, unsigned element)
{
	layout own = pipeline_read_layout(s, i);
	for (unsigned k = 0; k < s->nby; k++) {
		layout to = pipeline_read_layout(s, k);
		layout_plan read;
		if (layout_equal(&to, &own)) continue;
		if (!layout_plain(&to)) return false;
		layout_plan_load(&plan->shared, &to, element, &read);
		if (!read.matrices) return false;
	}
	return true;
}

/* As the scratch of its conversions; whichever is asked for its plan, the others fit (multibuffer_plan). */
static bool fits_conversions(staged *s, const access_plan *access, unsigned element)
{
	assert(s->nby && element && !(element & (element - 1)));
	s->width = s->bytes = 0;
	for (unsigned i = 0; i < s->nby; i++) {
		if (s->by[i].op->kind != IR_CONVERT_LAYOUT) return false;
		layout to = pipeline_read_layout(s, i);
		layout_plan plan;
		layout_plan_conversion(s->load->results[0]->layout, &to, element, &plan);
		if (plan.kind < LAYOUT_WARP_SHARED) return false;
		layout_plan_exchange(s->load->results[0]->layout, &to, element, &plan);
		if (!fits_plan(s, &plan, access) || !fits_others(s, i, &plan, element)) return false;
	}
	return true;
}

/* A copy moves 4, 8 or 16 bytes. */
static bool copies_accesses(const staged *s)
{
	unsigned bytes = s->width * scalar_bytes(s->load->results[0]->type.elem);
	return bytes == 4 || bytes == 8 || bytes == 16;
}

bool pipeline_copies_operand(const pass_context *c, staged *s)
{
	if (!reads_plainly(s->load)) return false;
	access_plan access = access_plan_make(c, s->load);
	return fits_conversions(s, &access, scalar_bytes(s->load->results[0]->type.elem)) && copies_accesses(s);
}

/* As the load itself. */
static bool fits_itself(staged *s, const access_plan *access, unsigned element)
{
	assert(s->load->results[0]->layout);
	const layout *l = s->load->results[0]->layout;
	layout_plan plan;
	s->nby = s->width = s->bytes = 0;
	layout_plan_exchange(l, l, element, &plan);
	return fits_plan(s, &plan, access);
}

/* What all products that take the tile read in shared memory, which runs along `fast` there; false: they differ. */
static bool common_tile(const pipeline *p, staged *s, unsigned fast, wgmma_tile *tile)
{
	assert(s->nby);
	for (unsigned i = 0; i < s->nby; i++) {
		consumer *t = &s->by[i];
		wgmma_plan plan;
		wgmma_tile one;
		if (t->op->kind != IR_WGMMA || !wgmma_plan_make(t->op, p->func->num_warps, &plan)) return false;
		t->arg = plan.operand[1].value == t->tile ? 1 : 0;
		const wgmma_operand *o = &plan.operand[t->arg];
		if (o->value != t->tile || plan.operand[1 - t->arg].value == t->tile || o->place != WGMMA_SCRATCH)
			return false;
		unsigned k = (t->arg ? 0 : 1) ^ t->transposed;
		if (!wgmma_tile_make(s->load->results[0]->type, fast, k, t->arg ? plan.shape.n : 64, &one))
			return false;
		if (i && one.swizzle != tile->swizzle) return false;
		*tile = one;
	}
	return s->nby != 0;
}

/* As an operand of products in shared memory. */
static bool fits_product(pipeline *p, staged *s, const access_plan *access)
{
	assert(s->load->kind == IR_LOAD);
	wgmma_tile tile;
	unsigned m = s->load->results[0]->type.rank - 2u; /* of m and n; in front a batch */
	if (access->dim < m || !common_tile(p, s, access->dim - m, &tile)) return false;
	s->width = access->width;
	s->swizzle = tile.swizzle;
	s->fast = tile.fast;
	s->bytes = tile.bytes;
	return true;
}

/* The operations of the loop that take a tile, through permutations.  False: there are too many, or others. */
static bool find_consumers(const pipeline *p, staged *s, const ir_value *v, bool transposed)
{
	assert(s->load && v->uses);
	for (const ir_use *u = v->uses; u; u = u->next) {
		ir_op *o = u->user;
		if (o->block != p->body) return false;
		if (o->kind == IR_PERMUTE) {
			if (!find_consumers(p, s, o->results[0], transposed ^ wgmma_swaps(o))) return false;
			continue;
		}
		if (s->nby == MOST_PRODUCTS) return false;
		s->by[s->nby++] = (consumer){.op = o, .tile = v, .transposed = transposed};
	}
	return true;
}

/* Half a sentence; null: it fits. */
static const char *fits_multibuffer(pipeline *p, staged *s)
{
	assert(s->load->nresults == 1);
	const ir_value *v = s->load->results[0];
	unsigned element = scalar_bytes(v->type.elem);
	access_plan access = access_plan_make(p->context, s->load);
	if (!find_consumers(p, s, v, false)) s->nby = 0;
	ir_kind kind = s->nby ? s->by[0].op->kind : IR_YIELD;
	bool rounds = v->type.elem == SCALAR_F32; /* to tf32, which these copies cannot */
	bool fits = false, converted = kind == IR_CONVERT_LAYOUT;
	if (kind == IR_WGMMA && !rounds)
		fits = fits_product(p, s, &access);
	else if (converted)
		fits = fits_conversions(s, &access, element);
	if (!fits && !(converted && s->nby == 1) && (kind != IR_WGMMA || rounds))
		fits = ir_leads_to_product(p->body, v, IR_MOST_STEPS) && fits_itself(s, &access, element);
	if (!fits) return "what takes it does not read shared memory as copies would write it";
	return copies_accesses(s) ? NULL : "its accesses have less than 4 bytes";
}

/* For reports: operands of products are what one expects to be copied ahead. */
static void note(pipeline *p, const ir_op *load, const char *why)
{
	if (!ir_leads_to_product(p->body, load->results[0], IR_MOST_STEPS)) return;
	vec_push(p->context->arena, &p->context->notes, ((pass_note){.op = load, .why = why}));
}

static void note_all(pipeline *p, const char *why)
{
	for (const ir_op *o = p->body->first; o; o = o->next)
		if (o->kind == IR_LOAD && !ir_is_scalar(o->results[0])) note(p, o, why);
}

/* A block that a tensor map leads to: as an operand of a wgmma, or read by whoever wants it. */
static const char *fits_block(pipeline *p, staged *s)
{
	assert(s->load->kind == IR_BULK_LOAD);
	const ir_value *v = s->load->results[0];
	bulk_shape shape;
	wgmma_tile tile;
	if (!bulk_shape_of(v->type, &shape)) return "no copy is of this shape";
	s->bulk = true;
	s->fast = v->type.rank > 1;
	s->swizzle = shape.swizzle;
	s->parts = row_group_parts(p->func, s->load);
	s->bytes = bulk_slot_bytes(&shape) * s->parts;
	bool rounded = v->type.elem != SCALAR_F32 || bulk_rounds(s->load);
	if (!rounded || !find_consumers(p, s, v, false) || !common_tile(p, s, s->fast, &tile) ||
		tile.swizzle != shape.swizzle)
		s->nby = 0;
	if (v->type.rank != 2 && !s->nby) s->swizzle = 0, s->fast = v->type.rank - 1u;
	return NULL;
}

static bool slices(pipeline *p, const ir_op *load)
{
	assert(load->kind == IR_BULK_LOAD || load->kind == IR_LOAD);
	unsigned n = load->kind == IR_BULK_LOAD || load->nargs < 2 ? load->nargs : 2;
	for (unsigned i = 0; i < n; i++)
		if (!pipeline_slice(p, ir_arg(load, i))) return false;
	return true;
}

static void find_loads(pipeline *p)
{
	bool *before = ARENA_ARRAY(p->context->arena, bool, p->nvalues);
	for (ir_op *o = p->body->first; o && p->nloads < MOST_LOADS; o = o->next) {
		staged s = {.load = o, .parts = 1};
		bool bulk = o->kind == IR_BULK_LOAD;
		if ((o->kind != IR_LOAD && !bulk) || ir_is_scalar(o->results[0])) continue;
		s.block = o->results[0]->type;
		const char *why = bulk               ? fits_block(p, &s)
				  : reads_plainly(o) ? fits_multibuffer(p, &s)
						     : "it is not through *const, or has hints or an other";
		memcpy(before, p->sliced, p->nvalues);
		if (!why && !slices(p, o))
			why = "its addresses or mask depend on more than the loop's counter and pointers";
		if (!why) {
			p->loads[p->nloads++] = s;
			p->nbulk += bulk;
			if (bulk)
				p->expected += (uint32_t)ir_elements(o->results[0]->type) *
					       ir_element_bytes(o->results[0]->type) * s.parts;
			continue;
		}
		note(p, o, why);
		memcpy(p->sliced, before, p->nvalues);
	}
}

/* ---- products in flight ---- */

static void count_products(ir_op *o, void *context)
{
	unsigned *n = context;
	*n += o->kind == IR_WGMMA;
}

/* Where the sum that goes into a product comes from: the carried value's number, through the products before it. */
static bool carried_from(const pipeline *p, const ir_op *wgmma, uint32_t *number)
{
	assert(wgmma->kind == IR_WGMMA);
	const ir_value *v = wgmma->nargs > 2 ? ir_arg(wgmma, 2) : NULL;
	if (!v || !ir_only_user(v)) return false;
	if (!v->def) {
		*number = v->index - 1u;
		return v->block == p->body && v->index > 0;
	}
	return v->def->kind == IR_WGMMA_WAIT && v->def->block == p->body &&
	       carried_from(p, ir_arg(v->def, 0)->def, number);
}

static void find_flight(pipeline *p)
{
	unsigned all = 0, n = 0;
	ir_walk(p->body, count_products, &all);
	for (ir_op *o = p->body->first; o; o = o->next) {
		if (o->kind != IR_WGMMA) continue;
		uint32_t from = 0;
		ir_op *wait = ir_only_user(o->results[0]);
		if (n == MOST_PRODUCTS || pipeline_multibuffers_of(p, o) != 2 || !carried_from(p, o, &from) || !wait ||
			wait->kind != IR_WGMMA_WAIT || wait->block != p->body)
			return;
		const ir_op *next = ir_only_user(wait->results[0]);
		bool adds = next && next->kind == IR_WGMMA && next->block == p->body &&
			    wait->results[0] == ir_arg(next, next->nargs - 1u);
		bool yields = next && next == p->body->last && ir_arg(next, from) == wait->results[0];
		if (!adds && !yields) return;
		p->waits[n++] = wait;
	}
	if (n == all) p->nwaits = n;
}

/* ---- stages ---- */

static bool counts_upwards(pipeline *p)
{
	ir_type t = ir_arg(p->loop, 0)->type;
	return t.elem == SCALAR_I32 && ir_is_const_int(ir_arg(p->loop, 2), &p->step) && p->step > 0;
}

static void add_scratch(ir_op *o, void *context)
{
	pipeline *p = context;
	uint32_t bytes = o->kind == IR_MULTIBUFFER ? 0 : scratch_bytes(p->func, o), multibuffers = 0;
	for (unsigned i = 0; i < p->nloads; i++) {
		if (p->loads[i].load == o) bytes = 0;
		if (pipeline_takes(&p->loads[i], o)) /* without copies each group of rows would have its own */
			multibuffers += p->loads[i].bytes / p->loads[i].parts * p->func->row_groups;
	}
	if (o->kind == IR_WGMMA && bytes > multibuffers)
		bytes -= multibuffers; /* what its operands need that are not copied ahead */
	else if (multibuffers)
		bytes = 0;
	if (bytes > p->scratch) p->scratch = bytes;
	if (bytes) p->all_scratch += bytes + scratch_align(o);
	p->nscratch += bytes > 0;
}

/* Multibuffers of other loops that live together with this loop's, which last as long as what `around` holds: the
 * program, or the loop. */
static uint32_t of_others(const pipeline *p, const ir_block *around)
{
	return p->lasting + (around == p->func->body ? p->peak : p->nested);
}

uint32_t pipeline_wanted_stages(const pipeline *p)
{
	uint32_t wanted = ir_get_num_stages(p->loop) ? ir_get_num_stages(p->loop) : p->func->num_stages;
	return wanted < MOST_STAGES ? wanted : MOST_STAGES;
}

/* What stays free beside all multibuffers, this loop's and those that last. */
static uint32_t reserve_of(const pipeline *p)
{
	return p->reserve > p->lasting_reserve ? p->reserve : p->lasting_reserve;
}

/* As many slots as there is room for beside the scratch of what `around` holds. */
static void fill_shared(pipeline *p, ir_block *around)
{
	assert(p->nloads);
	uint32_t wanted = pipeline_wanted_stages(p), bytes = 0, most = p->context->target->shared_bytes;
	if (p->func->max_shared < most) most = p->func->max_shared;
	for (unsigned i = 0; i < p->nloads; i++) bytes += p->loads[i].bytes;
	p->scratch = p->nscratch = 0;
	p->all_scratch = 0;
	ir_walk(around, add_scratch, p);
	p->reserve = p->scratch + (p->nscratch > 1 ? SCRATCH_SLACK : 0);
	if (p->nscratch > 1 && p->all_scratch < p->reserve) p->reserve = (uint32_t)p->all_scratch;
	if (p->nbulk) p->reserve += 2 * MOST_STAGES * 8 + BULK_ALIGN; /* barriers, and what they shift */
	p->reserve += p->sent.n * SENT_BYTES;
	p->stages = wanted;
	uint64_t others = of_others(p, around) + reserve_of(p);
	while (p->stages > 1 && (uint64_t)p->stages * bytes + others > most) p->stages--;
	assert(p->stages >= 1);
	p->multibuffers = p->stages * bytes;
}

/* The user's own number is not lowered behind his back, but for a producer's sake.  False: it is too high for groups of
 * rows, whose scratch is their own; without them the program is compiled again. */
static bool check_stages(pipeline *p)
{
	assert(p->nloads);
	uint32_t wanted = pipeline_wanted_stages(p), bytes = 0, most = p->context->target->shared_bytes;
	if (p->func->max_shared < most) most = p->func->max_shared;
	fill_shared(p, p->body);
	if (p->stages >= wanted || !(ir_get_num_stages(p->loop) || p->func->stages_given)) return true;
	if (p->func->row_groups > 1) return false;
	for (unsigned i = 0; i < p->nloads; i++) bytes += p->loads[i].bytes;
	uint32_t others = of_others(p, p->body) + reserve_of(p);
	diag *d = diag_error(p->context->diags, 722, p->loop->at,
		"num_stages = %u: an iteration of this loop copies %u bytes to shared memory, of which target '%s' has "
		"%u "
		"left",
		wanted, bytes, p->context->target->name, others < most ? most - others : 0);
	if (p->stages > 1)
		diag_set_hint(p->context->diags, d, "num_stages = %u fits; or a smaller tile", p->stages);
	else
		diag_set_hint(p->context->diags, d, "a smaller tile, or num_stages = 1: loads that do not run ahead");
	return true;
}

static bool fills(const staged *s, const staged *before)
{
	return ir_type_equal(s->block, before->block) && s->swizzle == before->swizzle && s->fast == before->fast &&
	       s->parts == before->parts;
}

static bool has_sent(const pipeline *p, const ir_op *atomic)
{
	for (uint32_t i = 0; i < p->sent_before.n; i++)
		if (p->sent_before.at[i] == atomic) return true;
	return false;
}

/* The loop stands behind that of `before`, and loads as many blocks of the same kinds in as many stages.  In a cluster
 * the last slots are waited for behind all loops: once. */
static bool may_go_on(const pipeline *p)
{
	const site *s = p->before;
	bool may = s && s->released && s->loop->block == p->loop->block && p->func->num_ctas == 1;
	may = may && s->of->nloads == p->nloads && p->wanted_before == pipeline_wanted_stages(p);
	for (unsigned i = 0; may && i < p->nloads; i++) may = fills(&p->loads[i], &s->of->loads[i]);
	for (uint32_t i = 0; may && i < p->sent.n; i++) may = has_sent(p, p->sent.at[i]);
	return may;
}

enum { REGISTERS = 128 }; /* that a thread of a product has, about */

/* Programs that an SM holds at a time, as far as multibuffers, `others` beside them and warps say. */
static unsigned programs_at_once(const pipeline *p, uint32_t others)
{
	unsigned warps = ir_warps(p->func) + (p->alone ? 0 : 4); /* of a producer */
	return target_fill_sm(p->context->target, warps, REGISTERS, p->multibuffers + others).ctas;
}

static void count_loads(ir_op *o, void *context)
{
	unsigned *n = context;
	*n += o->kind == IR_BULK_LOAD || (o->kind == IR_LOAD && ir_loop_around(o) && !ir_is_scalar(ir_arg(o, 0)));
}

typedef struct front {
	const pipeline *p;
	bool passed, scratch;
} front;

static void find_scratch(ir_op *o, void *context)
{
	front *f = context;
	f->passed |= o == f->p->loop;
	f->scratch |= !f->passed && !scratch_lasts(o) && scratch_bytes(f->p->func, o);
}

/* What stands in front of the loop has scratch, which lies beside a producer's slots. */
static bool has_scratch_in_front(const pipeline *p)
{
	front f = {.p = p};
	ir_walk(p->func->body, find_scratch, &f);
	return f.scratch;
}

/* The program runs the loop once at most, and no other one has tiles to copy: then its slots are free behind it. */
static bool may_end(const pipeline *p)
{
	unsigned here = 0, all = 0;
	if (!ir_is_tail(p->func, p->loop->block) || p->lasting || p->peak || p->before || p->sent.n ||
		has_scratch_in_front(p))
		return false;
	ir_walk(p->body, count_loads, &here);
	ir_walk(p->func->body, count_loads, &all);
	return here == all;
}

/* With a producer: slots beside all scratch of the program, or, where that gives more of them or more programs at a
 * time, below what follows the loop.  A barrier stands between then. */
static void fill(pipeline *p)
{
	fill_shared(p, p->alone ? p->body : p->func->body);
	p->ends = false;
	if (p->alone || !may_end(p)) return;
	unsigned stages = p->stages, programs = programs_at_once(p, p->reserve);
	uint64_t rest = p->all_scratch;
	fill_shared(p, p->body);
	bool more = p->stages > stages || (p->stages == stages && programs_at_once(p, p->reserve) > programs);
	p->ends = more && rest <= p->multibuffers; /* the barriers behind them stay */
	if (!p->ends) fill_shared(p, p->func->body);
}

/* Whole panels, where all products of the function stay in flight, as else they are no one instruction, or want the
 * room for another loop, and where they cost neither a stage nor a program at a time. */
static void widen(pipeline *p)
{
	ir_block *around = p->alone ? p->body : p->func->body;
	unsigned products = 0;
	if (!p->nwaits) return;
	ir_walk(p->func->body, count_products, &products);
	if (products != p->nwaits) return;
	fill(p);
	unsigned stages = p->stages, programs = programs_at_once(p, of_others(p, around));
	if (!pipeline_widen(p)) return;
	fill(p);
	if (p->stages < stages || programs_at_once(p, of_others(p, around)) < programs) pipeline_narrow(p);
}

/* A producer's multibuffers last as long as the program. */
static bool choose_stages(pipeline *p)
{
	unsigned least = p->nwaits ? PARTITION_STAGES : 2;
	widen(p);
	if (!p->alone && may_go_on(p) && p->before->of->stages >= least) {
		p->goes_on = true;
		p->stages = p->before->of->stages;
		return true;
	}
	if (!check_stages(p)) return false;
	if (!p->alone) {
		fill(p);
		if (p->stages < least)
			p->alone = "shared memory has no room for three stages beside the rest of the program";
	}
	if (p->alone && p->func->row_groups > 1) return false;
	if (p->alone) fill(p);
	if (p->stages < 2) return false;
	if (!p->alone) {
		p->lasting += p->multibuffers;
		p->lasting_reserve = reserve_of(p);
	} else
		p->nested += p->multibuffers;
	return true;
}

bool pipeline_fits(pipeline *p)
{
	assert(p->loop->kind == IR_FOR);
	const char *why = NULL;
	if (pipeline_wanted_stages(p) < 2)
		why = "the loop has one stage";
	else if (!counts_upwards(p))
		why = "the loop does not count upwards in i32 by a constant";
	if (why) {
		note_all(p, why);
		return false;
	}
	find_loads(p);
	if (!p->nloads) return false;
	find_flight(p);
	p->alone = pipeline_refuses_partitions(p);
	if (p->alone && p->func->row_groups > 1) return false; /* only a producer's multibuffers are all groups' */
	if (!choose_stages(p)) {
		note_all(p, "shared memory has no room for two stages");
		return false;
	}
	pipeline_bring_whole_panels(p);
	bool all_bulk = p->nbulk == p->nloads;
	p->overlaps = p->nwaits && (all_bulk || p->stages >= OVERLAP_STAGES);
	p->distance = p->stages - 1 - (p->overlaps && !all_bulk);
	assert(p->distance >= 1 && p->distance < p->stages);
	return true;
}

unsigned pipeline_lowered(const ir_func *f, const ir_op *multibuffer)
{
	assert(multibuffer->kind == IR_MULTIBUFFER);
	const ir_op *loop = multibuffer;
	while (loop && loop->kind != IR_FOR) loop = loop->next;
	if (!loop && multibuffer->results[0]
			     ->uses) /* for a producer it stands in front of everything, and is used in its loop */
		for (loop = multibuffer->results[0]->uses->user; loop && loop->kind != IR_FOR;)
			loop = loop->block->parent;
	unsigned wanted = !loop ? 0 : ir_get_num_stages(loop) ? ir_get_num_stages(loop) : f->num_stages;
	return wanted > ir_get_stages(multibuffer) / row_group_blocks(f, multibuffer) ? wanted : 0;
}
