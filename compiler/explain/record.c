/* The facts of a kernel's record, each from the plan by which the code was made.  See explain.h. */
#include "explain.h"

#include "analysis/access.h"
#include "async/bulk.h"
#include "target/nvptx/mma/family.h"
#include "target/nvptx/mma/sync.h"
#include "async/scratch.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const explain_kind_names[] = {
	[EXPLAIN_LOAD] = "load",
	[EXPLAIN_STORE] = "store",
	[EXPLAIN_ATOMIC] = "atomic",
	[EXPLAIN_CONVERSION] = "conversion",
	[EXPLAIN_REDUCTION] = "reduction",
	[EXPLAIN_BARRIER] = "barrier",
	[EXPLAIN_COPY] = "copy ahead",
	[EXPLAIN_BULK] = "tensor copy",
	[EXPLAIN_PRODUCT] = "product",
	[EXPLAIN_EXCHANGE] = "exchange",
	[EXPLAIN_LIBERTY] = "liberty",
	[EXPLAIN_MASK] = "mask",
	[EXPLAIN_MAXIMUM] = "maximum",
	[EXPLAIN_ORDER] = "order",
};

typedef struct recorder {
	arena *arena;
	pass_context *pass;
	const ir_func *func;
	explain_kernel *kernel;
} recorder;

static const char *find_note(const pass_note *notes, uint32_t n, const ir_op *o)
{
	for (uint32_t i = 0; i < n; i++)
		if (notes[i].op == o) return notes[i].why;
	return NULL;
}

static const char *note_of(const recorder *r, const ir_op *o)
{
	return find_note(r->pass->notes.at, r->pass->notes.n, o);
}

/* ---- loads, stores, atomics ---- */

/* Elements that one instruction of a warp covers without a gap, along the dimension in which it is wide. */
static uint32_t warp_run(const pass_context *p, const ir_value *pointer, const access_plan *plan)
{
	const layout *l = pointer->layout;
	uint32_t covered = (plan->width - 1) << layout_shift(l, plan->dim), n = 0;
	for (unsigned i = 0; i < l->nin[LAYOUT_LANE]; i++) covered |= l->col[LAYOUT_LANE][i];
	covered >>= layout_shift(l, plan->dim);
	while (n < l->lg[plan->dim] && covered >> n & 1) n++;
	uint32_t contiguity = axis_get(p, pointer)->contiguity[plan->dim];
	return (UINT32_C(1) << n) < contiguity ? UINT32_C(1) << n : contiguity;
}

static const char *caching_of(recorder *r, const ir_op *o)
{
	static const char *const evict_names[] = {NULL, "evict first", "evict normal", "evict last"};
	text out = {.arena = r->arena};
	if (ir_is_atomic(o)) return NULL;
	bool load = o->kind == IR_LOAD;
	if (load && ir_get_volatile(o)) text_puts(&out, "volatile");
	if (load && !ir_get_volatile(o) && ir_arg(o, 0)->type.pointer == IR_CONST_POINTER) text_puts(&out, "read-only");
	if (ir_get_cache(o) != IR_CACHE_NONE)
		text_printf(&out, "%scache %s", out.n ? ", " : "", ir_cache_names[ir_get_cache(o)]);
	else if (ir_get_evict(o) != IR_EVICT_NONE)
		text_printf(&out, "%s%s", out.n ? ", " : "", evict_names[ir_get_evict(o)]);
	return out.at;
}

static void picture(explain_row *row, const ir_value *tile)
{
	row->tile = tile->type;
	row->layout = tile->layout;
}

static void record_access(recorder *r, const ir_op *o, explain_row *row)
{
	assert(ir_arg(o, 0)->type.pointer);
	const ir_value *pointer = ir_arg(o, 0);
	const layout *l = pointer->layout;
	access_plan plan = access_plan_make(r->pass, o);
	unsigned bytes = scalar_bytes(pointer->type.elem);
	row->name = explain_base(r->func, pointer);
	row->type = ir_type_name(r->arena, ir_with_elem(pointer->type, pointer->type.elem));
	row->access_bytes = plan.width * bytes;
	row->accesses =
		l ? (layout_registers(l) >> __builtin_popcount(layout_free_mask(l, LAYOUT_REG))) / plan.width : 1;
	row->warp_bytes = l ? warp_run(r->pass, pointer, &plan) * bytes : 0;
	picture(row, pointer);
	row->along = plan.dim;
	row->contiguous = axis_get(r->pass, pointer)->contiguity[plan.dim];
	row->masked = ir_mask(o) != NULL;
	bool acts = ir_touches(o, IR_WRITES_GLOBAL);
	row->once = !l && (acts || scalar_load_needs_broadcast(o));
	row->owners = (l && acts && (layout_free_mask(l, LAYOUT_LANE) || layout_free_mask(l, LAYOUT_WARP))) ||
		      tile_load_needs_sharing(o);
	row->why = explain_blame(r->pass, r->func, o, &row->promise);
	row->why_not = note_of(r, o);
	row->caching = caching_of(r, o);
	row->sent = ir_is_atomic(o) && ir_get_partition(o) == IR_PARTITION_PRODUCER;
	if (row->sent) return;
	bool hands_on = scalar_load_needs_broadcast(o) || (ir_is_atomic(o) && o->results[0]->uses && !l);
	if (hands_on && r->func->num_warps > 1)
		row->barriers = 1;
	else if (hands_on)
		row->shuffles = bytes == 8 ? 2 : 1;
	else if (o->shared_bytes)
		row->barriers = 1;
}

/* ---- conversions ---- */

/* One access of warp 0, of its first register, on one side of an exchange. */
static explain_bank bank_use(const layout_map *map, unsigned lg_vector, uint32_t skip, unsigned element_bytes)
{
	uint32_t address[32], n = 0;
	unsigned bytes = element_bytes << lg_vector;
	uint32_t seen[32], distinct = 0;
	for (uint32_t lane = 0; lane < 32; lane++) {
		if (lane & skip) continue;
		uint32_t a = layout_map_apply(map, 0, lane, 0) * element_bytes, k = 0;
		address[n++] = a;
		while (k < distinct && seen[k] != a) k++;
		if (k == distinct) seen[distinct++] = a;
	}
	return (explain_bank){layout_wavefronts(address, n, bytes), (distinct * bytes + 127) / 128};
}

static void record_shuffles(const layout_plan *p, const layout *to, unsigned bytes, explain_row *row)
{
	for (uint32_t x = 0; x < layout_registers(to); x++)
		if (!p->lanes_stay || layout_plan_lane_xor(p, x)) row->shuffles += bytes == 8 ? 2 : 1;
}

static void record_conversion(recorder *r, const ir_op *o, explain_row *row)
{
	assert(o->kind == IR_CONVERT_LAYOUT);
	static const char *const names[] = {"nothing", "registers", "shuffles", "shared memory of each warp",
		"shared memory"}; /* ORDER layout_conversion */
	const ir_value *from = ir_arg(o, 0), *to = o->results[0];
	unsigned bytes = ir_element_bytes(from->type);
	layout_plan *p = ARENA_NEW(r->arena, layout_plan);
	layout_plan_conversion(from->layout, to->layout, bytes, p);
	row->name = to->name;
	row->type = ir_type_name(r->arena, to->type);
	row->how = names[p->kind];
	picture(row, to);
	row->from = from->layout;
	if (p->kind == LAYOUT_SHUFFLES) record_shuffles(p, to->layout, bytes, row);
	if (p->kind != LAYOUT_WARP_SHARED && p->kind != LAYOUT_CTA_SHARED) return;
	row->passes = UINT32_C(1) << p->lg_passes;
	row->moved_bytes = (uint32_t)ir_elements(from->type) * bytes;
	row->store = bank_use(&p->store, p->lg_vector_store, p->store_free_lane, bytes);
	row->load = bank_use(&p->load, p->lg_vector_load, 0, bytes);
	if (p->kind == LAYOUT_CTA_SHARED) row->barriers = 2 * row->passes - 1;
}

/* ---- reductions ---- */

static void record_reduction(recorder *r, const ir_op *o, explain_row *row)
{
	assert(o->kind == IR_REDUCE);
	reduce_plan *p = ARENA_NEW(r->arena, reduce_plan);
	const layout *l = ir_arg(o, 0)->layout;
	reduce_plan_make(o, p);
	row->name = o->results[0]->name;
	row->type = ir_type_name(r->arena, ir_arg(o, 0)->type);
	row->how = ir_combine_names[ir_get_combine(o)];
	picture(row, ir_arg(o, 0));
	const char *whole = nvptx_warp_reduction(o);
	uint32_t values = layout_registers(l);
	for (uint32_t i = 0; i < p->nsteps; i++) {
		const reduce_step *s = &p->step[i];
		if (s->in == LAYOUT_REG) row->in_registers++, values /= 2;
		if (s->in == LAYOUT_LANE) {
			row->between_lanes++;
			for (unsigned k = 0; k < o->nargs; k++)
				row->shuffles += values * (ir_element_bytes(ir_arg(o, k)->type) == 8 ? 2 : 1);
		}
		if (s->in != LAYOUT_WARP) continue;
		row->barriers += (row->between_warps ? 2u : 1u) + 2 * ((1u << s->npasses) - 1);
		row->between_warps += s->nbits;
		for (unsigned k = 0; k < o->nargs; k++)
			row->moved_bytes += ir_element_bytes(ir_arg(o, k)->type)
					    << (__builtin_popcount(s->live) + s->nbits + s->npasses);
	}
	if (!whole || row->between_lanes < 5) return;
	row->instruction = whole + strlen("llvm.nvvm.");
	row->shuffles = 0;
}

/* ---- multibuffers and blocks ---- */

/* The parts in which a block comes. */
static unsigned shares_of(const ir_op *o)
{
	if (o->kind == IR_BULK_LOAD) return ir_get_shares(o);
	for (const ir_use *u = o->kind == IR_MULTIBUFFER ? o->results[0]->uses : NULL; u; u = u->next)
		if (u->user->kind == IR_BULK_COPY) return ir_get_shares(u->user);
	return 1;
}

/* The loop that fills it. */
static uint32_t loop_of_copies(const recorder *r, const ir_op *multibuffer)
{
	for (const ir_use *u = multibuffer->results[0]->uses; u; u = u->next) {
		const ir_op *o = u->user;
		if (o->kind != IR_BULK_COPY && o->kind != IR_ASYNC_COPY) continue;
		while (o && !ir_is_loop(o)) o = o->block->parent;
		if (o) return source_locate(r->arena, o->at).line;
	}
	return 0;
}

static void record_sharing(const recorder *r, const ir_op *multibuffer, explain_row *row)
{
	row->unshared = find_note(r->pass->alone.at, r->pass->alone.n, multibuffer);
	row->shared = r->func->cluster && !row->unshared;
}

/* Of the copies into a multibuffer; they are all alike. */
static void record_copies(recorder *r, const ir_op *o, explain_row *row)
{
	const ir_value *tile = o->results[0];
	layout_plan plan;
	row->type = ir_type_name(r->arena, tile->type);
	picture(row, tile);
	row->stages = ir_get_stages(o);
	row->kept = ir_get_stays(o);
	row->lowered = row->kept ? 0 : pipeline_lowered(r->func, o);
	if (multibuffer_plan(o, &plan) && plan.matrices) row->how = "matrix loads";
	if (ir_get_swizzle(o)) row->how = "wgmma";
	record_sharing(r, o, row);
	for (const ir_use *u = tile->uses; u; u = u->next) {
		const ir_op *copy = u->user;
		if (copy->kind != IR_ASYNC_COPY) continue;
		row->name = explain_base(r->func, ir_arg(copy, 2));
		row->access_bytes = ir_get_width(copy) * scalar_bytes(tile->type.elem);
		row->accesses = layout_registers(tile->layout) / ir_get_width(copy);
		row->masked = copy->nargs > 3;
	}
}

static void record_block_copy(recorder *r, const ir_op *o, explain_row *row)
{
	bool load = o->kind == IR_BULK_LOAD, multibuffer = o->kind == IR_MULTIBUFFER;
	const ir_value *tile = load || multibuffer ? o->results[0] : ir_arg(o, 1),
		       *map = multibuffer ? NULL : ir_arg(o, 0);
	bulk_shape s;
	bulk_shape_of(tile->type, &s);
	for (const ir_use *u = tile->uses; multibuffer && u; u = u->next)
		if (u->user->kind == IR_BULK_COPY) map = ir_arg(u->user, 3);
	if (map) row->name = explain_base(r->func, ir_arg(map->def, 0));
	if (multibuffer) {
		row->blocks = row_group_blocks(r->func, o);
		row->stages = ir_get_stages(o) / row->blocks;
		row->lowered = pipeline_lowered(r->func, o);
		row->why_not = note_of(r, o);
		row->producer = !row->why_not;
		record_sharing(r, o, row);
	}
	row->type = ir_type_name(r->arena, tile->type);
	row->how = multibuffer ? "load ahead" : load ? "load" : "store";
	if (shares_of(o) > 1) bulk_shape_divide(tile->type, shares_of(o), &s);
	row->accesses = s.panels * s.pieces;
	row->access_bytes = s.copy_bytes;
	row->swizzle = s.swizzle;
	row->barriers = multibuffer ? 0 : load ? 2 : 1;
	bulk_parts parts;
	if (load || multibuffer || !ir_get_by_warps(o) || !bulk_parts_of(o, &parts)) return;
	row->by_warps = true;
	row->accesses = parts.copies;
	row->access_bytes = parts.copy_bytes;
	row->barriers = 0;
	if (!ir_get_by_rows(o)) return;
	row->by_rows = true;
	row->accesses *= parts.box[0];
	row->access_bytes = parts.box[1] * scalar_bytes((scalar)tile->type.elem);
	row->swizzle = 0;
}

static void record_multibuffer(recorder *r, const ir_op *o, explain_row *row)
{
	assert(o->kind == IR_MULTIBUFFER);
	layout_plan plan;
	if (multibuffer_plan(o, &plan)) row->shared_bytes = plan.bytes * ir_get_stages(o); /* not its neighbours' */
	row->loop_line = loop_of_copies(r, o);
	if (row->kind == EXPLAIN_BULK)
		record_block_copy(r, o, row);
	else
		record_copies(r, o, row);
}

/* ---- products ---- */

static const char *place_of(const wgmma_operand *o)
{
	static const char *const names[] = {"registers", "shared memory", "multibuffer"}; /* ORDER wgmma_place */
	return names[o->place];
}

/* Of an instruction, which makes joined products too (async/join_mma.c). */
static uint32_t columns_of(const ir_op *wgmma, unsigned num_warps)
{
	wgmma_plan plan;
	uint32_t columns = 0;
	while (ir_get_joined(wgmma) && wgmma->prev) wgmma = wgmma->prev;
	do {
		if (wgmma_plan_make(wgmma, num_warps, &plan)) columns += plan.shape.n;
		wgmma = wgmma->next;
	} while (wgmma && wgmma->kind == IR_WGMMA && ir_get_joined(wgmma));
	return columns;
}

/* Of the sum, or of one that products of the block go on adding to it; or null. */
static const ir_op *own_wait(const ir_op *wgmma)
{
	while (wgmma) {
		const ir_op *adds = NULL;
		for (const ir_use *u = wgmma->results[0]->uses; u; u = u->next) {
			if (u->user->block != wgmma->block) continue;
			if (u->user->kind == IR_WGMMA_WAIT) return u->user;
			if (u->user->kind == IR_WGMMA) adds = u->user;
		}
		wgmma = adds;
	}
	return NULL;
}

/* Groups of instructions begun behind it, as `pending` counts them. */
static uint32_t begun_between(const ir_op *wgmma, const ir_op *wait)
{
	uint32_t n = 0;
	for (const ir_op *o = wgmma->next; o != wait; o = o->next) n += o->kind == IR_WGMMA && !ir_get_joined(o);
	return n;
}

/* One that is for no sum, behind which the product is done all the same; or null. */
static const ir_op *wait_for_all(const ir_op *wgmma)
{
	for (const ir_op *o = wgmma->next; o; o = o->next)
		if (o->kind == IR_WGMMA_WAIT && !o->nargs && ir_get_pending(o) <= begun_between(wgmma, o)) return o;
	return NULL;
}

/* Neither a factor a row nor what indices and masks are made of is called work. */
static bool computes_between(const ir_op *wgmma, const ir_op *wait)
{
	enum { FEW_REGISTERS = 4 };
	for (const ir_op *o = wgmma->next; o != wait; o = o->next) {
		const ir_value *v = o->nresults ? o->results[0] : NULL;
		if (ir_touches(o, IR_WRITES_GLOBAL)) return true;
		if (!v || !v->layout || wgmma_is_product(o) || ir_has(o, IR_FREE | IR_SHAPE)) continue;
		bool number = scalar_is_float((scalar)v->type.elem) && !v->type.pointer;
		if (number && layout_registers(v->layout) > FEW_REGISTERS) return true;
	}
	return false;
}

static void record_flight(const ir_op *o, explain_row *row)
{
	const ir_op *wait = own_wait(o), *around = o->block->parent;
	if (!wait) wait = wait_for_all(o);
	row->flies = !wait;
	row->round = row->flies && around && ir_is_loop(around);
	if (!wait) return;
	row->pending = ir_get_pending(wait);
	row->begun = begun_between(o, wait);
	row->apart = computes_between(o, wait);
}

static void record_wgmma(recorder *r, const ir_op *o, explain_row *row)
{
	assert(o->kind == IR_WGMMA);
	wgmma_plan plan;
	if (!wgmma_plan_make(o, r->func->num_warps, &plan)) return;
	row->joined = ir_get_joined(o);
	row->how = arena_printf(r->arena, "wgmma m64n%uk%u", columns_of(o, r->func->num_warps), plan.form->k);
	if (!row->joined)
		row->instructions = plan.shape.batches * plan.shape.rows * plan.shape.columns * (plan.k / plan.form->k);
	row->first = place_of(&plan.operand[0]);
	row->second = place_of(&plan.operand[1]);
	row->barriers = plan.scratch_bytes ? 1 : 0;
	row->swapped = ir_get_swapped(o);
	row->alternates = ir_get_alternates(o);
	record_flight(o, row);
	for (const ir_use *u = o->results[0]->uses; u && !row->name; u = u->next)
		if (u->user->nresults) row->name = u->user->results[0]->name;
}

static void record_dot(recorder *r, const ir_op *o, explain_row *row)
{
	assert(o->kind == IR_DOT);
	const mma_form *form = mma_form_of(r->pass->target, o);
	if (form && form->name)
		row->how = arena_printf(r->arena, "mma.sync m%un8k%u", form->m, form->k);
	else
		row->how = "shuffles and fma";
	row->why_not = mma_why_not_faster(r->pass, o);
	row->not_swapped = find_note(r->pass->not_swapped.at, r->pass->not_swapped.n, o);
}

static void record_product(recorder *r, const ir_op *o, explain_row *row)
{
	assert(o->kind == IR_WGMMA || o->kind == IR_DOT);
	row->name = o->results[0]->name;
	row->type = ir_type_name(r->arena, o->results[0]->type);
	picture(row, o->results[0]);
	if (o->kind == IR_WGMMA)
		record_wgmma(r, o, row);
	else
		record_dot(r, o, row);
}

/* ---- barriers and other exchanges ---- */

/* The barrier behind a wait for copies, which makes them everybody's. */
static bool of_wait(const ir_op *o)
{
	const ir_op *before = o->prev;
	if (before && before->kind == IR_PROXY_FENCE) before = before->prev;
	return before && before->kind == IR_ASYNC_WAIT;
}

/* One of check_aliases.c's, which stands under a branch that is hardly ever taken; null: it is another one. */
static const char *of_check(const ir_op *o)
{
	const ir_op *before = o->prev, *parent = o->block->parent;
	if (o->kind != IR_CTA_BARRIER || !parent || parent->kind != IR_IF || !before || before->prev) return NULL;
	if (before->kind == IR_BULK_WAIT) return "access or block, where it shares memory with stored blocks";
	return before->kind == IR_PROXY_FENCE ? "next stored block, in that case" : NULL;
}

/* What the column explain of ops.def names: explain_NAME, below. */
typedef struct rule {
	explain_kind kind;
	void (*record)(recorder *, const ir_op *, explain_row *); /* null: it is not shown */
} rule;

static const rule *rule_of(const ir_op *);

static explain_kind kind_of(const ir_op *o)
{
	if (o->kind == IR_MULTIBUFFER && multibuffer_is_bulk(o)) return EXPLAIN_BULK;
	return rule_of(o)->kind;
}

static void record_barrier(recorder *r, const ir_op *o, explain_row *row)
{
	(void)r;
	row->how = of_check(o);
	row->barriers = !row->how;
	if (row->how) return;
	if (o->kind == IR_PARTITIONS) row->how = explain_kind_names[EXPLAIN_BULK];
	if (o->kind == IR_CTA_BARRIER && !of_wait(o) && o->next &&
		(kind_of(o->next) != EXPLAIN_EXCHANGE || o->next->shared_bytes))
		row->how = explain_kind_names[kind_of(o->next)];
}

static void record_exchange(recorder *r, const ir_op *o, explain_row *row)
{
	row->barriers = exchange_barriers(r->func, o);
	row->name = ir_info(o)->name;
	if (o->nresults) row->type = ir_type_name(r->arena, o->results[0]->type);
}

/* ---- order ---- */

static void record_hold(recorder *r, const ir_op *o, explain_row *row)
{
	(void)r;
	assert(o->kind == IR_SCHED_BARRIER && o->nargs);
	const ir_value *held = ir_arg(o, 0);
	row->how = ir_is_scalar(held) ? "held in front of the wait for the products that the loop leaves running"
				      : "held in front of the wait for the product beside it";
	row->loops = 0; /* as remarks say it */
	if (held->def) row->at = held->def->at;
}

static void record_turn(recorder *r, const ir_op *o, explain_row *row)
{
	(void)r;
	(void)o;
	row->how = "begun in turns of the warpgroups, with the products up to the first wait";
	row->loops = 0;
}

/* ---- the walk ---- */

static const rule explain_none = {.kind = EXPLAIN_EXCHANGE}; /* to a barrier in front of it */
static const rule explain_load = {EXPLAIN_LOAD, record_access};
static const rule explain_store = {EXPLAIN_STORE, record_access};
static const rule explain_atomic = {EXPLAIN_ATOMIC, record_access};
static const rule explain_conversion = {EXPLAIN_CONVERSION, record_conversion};
static const rule explain_reduction = {EXPLAIN_REDUCTION, record_reduction};
static const rule explain_multibuffer = {EXPLAIN_COPY, record_multibuffer};
static const rule explain_block = {EXPLAIN_BULK, record_block_copy};
static const rule explain_product = {EXPLAIN_PRODUCT, record_product};
static const rule explain_barrier = {EXPLAIN_BARRIER, record_barrier};
static const rule explain_hold = {EXPLAIN_ORDER, record_hold};
static const rule explain_turn = {EXPLAIN_ORDER, record_turn};
static const rule explain_exchange = {EXPLAIN_EXCHANGE, record_exchange};

static const rule *rule_of(const ir_op *o)
{
	static const rule *const rules[IR_KIND_COUNT] = {
#define OP(e, name, args, results, regions, flags, types, layouts, scratch, explain, ...) &explain_##explain,
#include "ir/ops.def"
#undef OP
	};
	return rules[o->kind];
}

static bool is_recorded(const recorder *r, const explain_row *row)
{
	for (uint32_t k = 0; k < r->kernel->rows.n; k++) {
		const explain_row *o = &r->kernel->rows.at[k];
		if (o->kind == row->kind && o->at.file == row->at.file && o->line == row->line && o->how == row->how)
			return true;
	}
	return false;
}

static void record_op(recorder *r, const ir_op *o, uint32_t loops)
{
	assert(o->kind < IR_KIND_COUNT);
	explain_row row = {.kind = kind_of(o), .at = o->at, .loops = loops, .shared_bytes = o->shared_bytes};
	if (!rule_of(o)->record || (row.kind == EXPLAIN_EXCHANGE && !o->shared_bytes)) return;
	row.no_tensor_copy = find_note(r->pass->not_raised.at, r->pass->not_raised.n, o);
	rule_of(o)->record(r, o, &row);
	if (r->func->num_warps == 1) row.barriers = 0; /* of one warp: no barrier of the CTA */
	source_position at = source_locate(r->arena, row.at);
	row.line = at.line;
	row.column = at.column;
	if (row.kind == EXPLAIN_ORDER && is_recorded(r, &row)) return;
	r->kernel->barriers += row.barriers;
	vec_push(r->arena, &r->kernel->rows, row);
}

static void record_block(recorder *r, const ir_block *b, uint32_t loops)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		record_op(r, o, loops);
		bool loop = ir_is_loop(o);
		if (ir_has(o, IR_CONTROL))
			for (unsigned i = 0; i < o->nregions; i++) record_block(r, o->regions[i], loops + loop);
	}
}

/* One row a line and text. */
static void record_remarks(recorder *r, explain_kind kind, const pass_remark *remarks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		source_position at = source_locate(r->arena, remarks[i].at);
		explain_row row = {.kind = kind,
			.at = remarks[i].at,
			.how = remarks[i].what,
			.line = at.line,
			.column = at.column};
		if (!is_recorded(r, &row)) vec_push(r->arena, &r->kernel->rows, row);
	}
}

/* Rows by file and line; within a line the program's order, which the row's place in memory still tells. */
static int by_line(const void *x, const void *y)
{
	const explain_row *a = *(const explain_row *const *)x, *b = *(const explain_row *const *)y;
	uint32_t fa = a->at.file ? a->at.file->index : UINT32_MAX, fb = b->at.file ? b->at.file->index : UINT32_MAX;
	if (fa != fb) return fa < fb ? -1 : 1;
	if (a->line != b->line) return a->line < b->line ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void sort_rows(recorder *r)
{
	uint32_t n = r->kernel->rows.n;
	explain_row **order = ARENA_ARRAY(r->arena, explain_row *, n + 1u);
	explain_row *sorted = ARENA_ARRAY(r->arena, explain_row, n + 1u);
	for (uint32_t i = 0; i < n; i++) order[i] = &r->kernel->rows.at[i];
	qsort(order, n, sizeof order[0], by_line);
	for (uint32_t i = 0; i < n; i++) sorted[i] = *order[i];
	r->kernel->rows.at = sorted;
	r->kernel->rows.room = n + 1;
}

explain_kernel *explain_make(pass_context *p, ir_func *f, const nvptx_output *code)
{
	assert(f->level == IR_LEVEL_SCHEDULED);
	explain_kernel *k = ARENA_NEW(p->arena, explain_kernel);
	recorder r = {.arena = p->arena, .pass = p, .func = f, .kernel = k};
	pass_axis(p, f);
	*k = (explain_kernel){.name = f->name,
		.at = f->at,
		.line = source_locate(p->arena, f->at).line,
		.target = p->target,
		.num_warps = ir_warps(f),
		.producer_warps = f->producer_warps,
		.row_groups = f->row_groups,
		.rows_together = p->rows_together,
		.maxnreg = f->maxnreg,
		.num_ctas = f->num_ctas,
		.cluster = f->cluster,
		.shared_bytes = f->shared_bytes,
		.ptx_bytes = code->ptx_bytes,
		.cubin_bytes = code->cubin_bytes,
		.assembled = code->assembled,
		.not_assembled = code->not_assembled,
		.registers = code->registers,
		.spill_bytes = code->spill_bytes,
		.consumer_registers = code->consumer_registers,
		.producer_registers = code->producer_registers,
		.code = {[EXPLAIN_PTX] = {code->ptx, code->ptx_bytes, code->ptx_marks},
			[EXPLAIN_SASS] = {code->sass, code->sass_bytes, code->sass_marks}},
		.no_sass = code->no_sass,
		.live = code->live.at,
		.nlive = code->live.n};
	record_block(&r, f->body, 0);
	record_remarks(&r, EXPLAIN_LIBERTY, p->liberties.at, p->liberties.n);
	record_remarks(&r, EXPLAIN_MASK, p->masks.at, p->masks.n);
	record_remarks(&r, EXPLAIN_MAXIMUM, p->maxima.at, p->maxima.n);
	record_remarks(&r, EXPLAIN_ORDER, p->order.at, p->order.n);
	sort_rows(&r);
	k->pressure = pressure_estimate(p->arena, f);
	if (k->pressure.lines.n) k->live_registers = k->pressure.lines.at[0].registers;
	k->all_shared = f->shared_bytes + code->static_shared;
	if (k->assembled)
		k->occupancy = target_fill_sm(p->target, ir_warps(f) + f->producer_warps, k->registers, k->all_shared);
	return k;
}
