/* Sizes and order of what operations exchange through shared memory.  See scratch.h. */
#include "scratch.h"
#include "bulk.h"

#include "target/nvptx/mma/wgmma.h"

#include <assert.h>
#include <string.h>

/* Appends a step for one bit; a warp bit joins a warp step that stands directly before it. */
static void add_bit(reduce_plan *p, layout_in in, unsigned bit)
{
	assert(in != LAYOUT_LANE || bit < 5);
	reduce_step *last = p->nsteps ? &p->step[p->nsteps - 1] : NULL;
	if (in != LAYOUT_WARP || !last || last->in != LAYOUT_WARP) {
		last = &p->step[p->nsteps++];
		last->in = (uint8_t)in;
	}
	assert(last->nbits < sizeof last->bit && p->nsteps <= LAYOUT_MAX_BITS);
	last->bit[last->nbits++] = (uint8_t)bit;
}

/* The first place, in the order registers, lanes, warps, that steps this coordinate; later ones hold copies. */
static bool home(const layout *l, uint32_t coordinate, layout_in *in, unsigned *bit)
{
	assert(coordinate && !(coordinate & (coordinate - 1)));
	for (unsigned k = LAYOUT_REG; k <= LAYOUT_WARP; k++)
		for (unsigned i = 0; i < l->nin[k]; i++)
			if (l->col[k][i] == coordinate) {
				*in = (layout_in)k;
				*bit = i;
				return true;
			}
	return false;
}

/* Axis bits by rising coordinate; only those at home in `only`, or all when it is LAYOUT_INPUTS. */
static void add_in_order(reduce_plan *p, const layout *l, uint32_t axis, layout_in only)
{
	for (; axis; axis &= axis - 1) {
		layout_in in;
		unsigned bit;
		if (home(l, axis & -axis, &in, &bit) && (only == LAYOUT_INPUTS || only == in)) add_bit(p, in, bit);
	}
}

/* Of the values that still tell apart, and those of all warps. */
static void size_step(reduce_step *step, const ir_op *reduce)
{
	step->bytes = 0;
	assert(reduce->nargs <= REDUCE_MAX_OPERANDS);
	for (unsigned k = 0; k < reduce->nargs && k < REDUCE_MAX_OPERANDS; k++) {
		uint32_t bytes = ir_element_bytes(ir_arg(reduce, k)->type)
				 << (__builtin_popcount(step->live) + step->nbits);
		step->operand_offset[k] = step->bytes;
		step->bytes += (bytes + SCRATCH_ALIGN - 1) & ~(uint32_t)(SCRATCH_ALIGN - 1);
	}
}

/* What each warp step exchanges, given what the steps before it have combined already. */
static void size_steps(reduce_plan *p, const layout *l, const ir_op *reduce)
{
	uint32_t live = (UINT32_C(1) << layout_bits(l)) - 1, combined_lanes = 0, combined_warps = 0;
	for (uint32_t s = 0; s < p->nsteps; s++) {
		reduce_step *step = &p->step[s];
		for (unsigned i = 0; i < step->nbits; i++) live &= ~l->col[step->in][step->bit[i]];
		if (step->in == LAYOUT_LANE) combined_lanes |= 1u << step->bit[0];
		if (step->in != LAYOUT_WARP) continue;
		step->live = live;
		step->skip_lane = layout_free_mask(l, LAYOUT_LANE) | combined_lanes;
		step->skip_warp = layout_free_mask(l, LAYOUT_WARP) | combined_warps;
		for (unsigned i = 0; i < step->nbits; i++) combined_warps |= 1u << step->bit[i];
		size_step(step, reduce);
		for (unsigned i = l->nin[LAYOUT_REG]; i-- > 0 && step->bytes > EXCHANGE_MOST;) {
			if (!(step->live & l->col[LAYOUT_REG][i])) continue;
			step->pass[step->npasses++] = (uint8_t)i;
			step->live &= ~l->col[LAYOUT_REG][i];
			size_step(step, reduce);
		}
		if (step->bytes > p->bytes) p->bytes = step->bytes;
	}
}

static void make_plan(const ir_op *reduce, const layout *l, reduce_plan *p)
{
	assert(l && ir_get_axis(reduce) < l->rank);
	uint32_t axis = layout_dim_bits(l, ir_get_axis(reduce));
	bool by_thread = reduce->kind == IR_REDUCE && ir_get_by_thread(reduce);
	memset(p, 0, sizeof *p);
	if (ir_get_combine(reduce) == IR_CUSTOM || reduce->kind == IR_SCAN)
		add_in_order(p, l, axis, LAYOUT_INPUTS);
	else
		for (unsigned in = LAYOUT_REG; in <= (by_thread ? LAYOUT_REG : LAYOUT_WARP); in++)
			add_in_order(p, l, axis, (layout_in)in);
	for (unsigned i = 0; i < l->nin[LAYOUT_REG]; i++)
		if (l->col[LAYOUT_REG][i] & axis) p->registers |= UINT32_C(1) << i;
	size_steps(p, l, reduce);
}

void reduce_plan_make(const ir_op *reduce, reduce_plan *p)
{
	make_plan(reduce, ir_arg(reduce, 0)->layout, p);
}

/* Registers that a thread writes and reads at the steps between warps; *bytes: of all threads, at the largest. */
static uint64_t exchanged(const ir_op *reduce, const layout *l, uint64_t *bytes)
{
	assert(reduce->kind == IR_REDUCE || reduce->kind == IR_SCAN);
	reduce_plan p;
	uint64_t n = 0;
	make_plan(reduce, l, &p);
	*bytes = 0;
	for (uint32_t s = 0; s < p.nsteps; s++) {
		const reduce_step *step = &p.step[s];
		uint64_t all = (uint64_t)step->bytes << step->npasses;
		if (all > *bytes) *bytes = all;
		unsigned live = step->npasses;
		for (unsigned i = 0; i < l->nin[LAYOUT_REG]; i++) live += (step->live & l->col[LAYOUT_REG][i]) != 0;
		if (step->in == LAYOUT_WARP) n += ((UINT64_C(1) << step->nbits) + 1) << live;
	}
	return n;
}

bool scan_wants_lines(const ir_op *scan, const layout *l, unsigned num_warps)
{
	assert(scan->kind == IR_SCAN);
	layout lines = layout_lines(ir_arg(scan, 0)->type, ir_get_axis(scan), num_warps);
	uint64_t there_and_back = 4 * (uint64_t)layout_registers(l), bytes, unused;
	uint64_t as_it_lies = exchanged(scan, l, &bytes);
	if (bytes <= LAYOUT_SCRATCH_LIMIT) return false;
	return exchanged(scan, &lines, &unused) + there_and_back < as_it_lies;
}

bool reduce_in_pass(const reduce_step *s, uint32_t pass, uint32_t r)
{
	assert(pass < UINT32_C(1) << s->npasses);
	for (unsigned i = 0; i < s->npasses; i++)
		if ((r >> s->pass[i] & 1) != (pass >> i & 1)) return false;
	return true;
}

uint32_t reduce_slot(const reduce_step *s, uint32_t element)
{
	uint32_t slot = 0, n = 0;
	for (uint32_t rest = s->live; rest; rest &= rest - 1, n++) slot |= (element >> __builtin_ctz(rest) & 1) << n;
	return slot;
}

uint32_t exchange_bits(const layout *l, unsigned axis, layout_in in)
{
	assert(axis < l->rank);
	uint32_t bits = layout_dim_bits(l, axis), mask = 0;
	for (unsigned i = 0; i < l->nin[in]; i++)
		if (l->col[in][i] & bits) mask |= UINT32_C(1) << i;
	return mask;
}

void exchange_plan_make(const ir_func *f, const ir_op *o, exchange_plan *p)
{
	assert(ir_arg(o, 0)->layout);
	enum { LIMIT = 16 * 1024 }; /* bytes of a buffer; beyond, more barriers cost less than the occupancy */
	const layout *l = ir_arg(o, 0)->layout;
	uint32_t element = ir_element_bytes(ir_arg(o, 0)->type);
	if (o->kind == IR_SORT && element < 4) element = 4; /* keys */
	*p = (exchange_plan){.registers = layout_registers(l), .buffers = o->kind == IR_SORT ? 2 : 1};
	if (!exchange_bits(l, ir_get_axis(o), LAYOUT_WARP)) return;
	p->bytes = p->registers * element * 32 * f->num_warps;
	for (; p->bytes > LIMIT && p->registers > 1; p->bytes /= 2) {
		p->registers /= 2;
		p->buffers = 2;
	}
	assert(p->bytes && !(p->bytes & (p->bytes - 1)));
}

/* Steps of a sort's network that compare warps: those of stages that reach beyond `near` bits, and of a topk's merges.
 */
static uint32_t warp_steps(const layout *l, const ir_op *sort)
{
	assert(sort->kind == IR_SORT);
	unsigned axis = ir_get_axis(sort), bits = l->lg[axis], sorted = bits;
	unsigned near = bits - (unsigned)__builtin_popcount(exchange_bits(l, axis, LAYOUT_WARP));
	uint32_t n = 0;
	assert(!(ir_get_k(sort) & (ir_get_k(sort) - 1)) && ir_get_k(sort) <= UINT32_C(1) << bits);
	if (ir_get_k(sort)) sorted = (unsigned)__builtin_ctz(ir_get_k(sort));
	for (unsigned s = near + 1; s <= sorted; s++) n += s - near;
	for (unsigned j = sorted > near ? sorted : near; j < bits; j++) n += 1 + (sorted > near ? sorted - near : 0);
	return n;
}

bool scalar_load_needs_broadcast(const ir_op *o)
{
	return o->kind == IR_LOAD && ir_is_scalar(ir_arg(o, 0)) && ir_arg(o, 0)->type.pointer == IR_POINTER;
}

bool tile_load_needs_sharing(const ir_op *o)
{
	if (o->kind != IR_LOAD || !ir_get_volatile(o)) return false;
	const layout *l = ir_arg(o, 0)->layout;
	return l && (layout_free_mask(l, LAYOUT_LANE) || layout_free_mask(l, LAYOUT_WARP));
}

/* Of what one thread hands on to those who hold copies: the result of an atomic or of a load that happens once. */
static uint32_t handed_on_bytes(const ir_func *f, const ir_op *o)
{
	const ir_value *result = o->results[0];
	if (ir_is_scalar(result)) return f->num_warps > 1 ? 8 : 0;
	if (!layout_free_mask(ir_arg(o, 0)->layout, LAYOUT_WARP)) return 0;
	return (uint32_t)ir_elements(result->type) * ir_element_bytes(result->type);
}

static uint32_t rounded(uint32_t bytes)
{
	return (bytes + BULK_ALIGN - 1) / BULK_ALIGN * BULK_ALIGN;
}

bool multibuffer_is_bulk(const ir_op *multibuffer)
{
	assert(multibuffer->kind == IR_MULTIBUFFER);
	for (const ir_use *u = multibuffer->results[0]->uses; u; u = u->next)
		if (u->user->kind == IR_BULK_COPY) return true;
	return false;
}

/* How a read loads what a copy has brought. */
static void plan_bulk_read(const ir_op *read, layout_plan *plan)
{
	const ir_value *tile = read->results[0];
	layout shared = bulk_layout(tile->type);
	layout_plan_load(&shared, tile->layout, ir_element_bytes(tile->type), plan);
}

/* The size, which is all that a wgmma needs to know, and how one of those who read it does. */
static bool bulk_multibuffer_plan(const ir_op *multibuffer, layout_plan *plan)
{
	const ir_value *tile = multibuffer->results[0];
	memset(plan, 0, sizeof *plan);
	for (const ir_use *u = tile->uses; u; u = u->next)
		if (u->user->kind == IR_MULTIBUFFER_READ) plan_bulk_read(u->user, plan);
	plan->bytes = rounded((uint32_t)ir_elements(tile->type) * ir_element_bytes(tile->type));
	return true;
}

static const ir_op *first_read(const ir_op *multibuffer)
{
	for (const ir_use *u = multibuffer->results[0]->uses; u; u = u->next)
		if (u->user->kind == IR_MULTIBUFFER_READ) return u->user;
	return NULL;
}

bool multibuffer_plan(const ir_op *multibuffer, layout_plan *plan)
{
	assert(multibuffer->kind == IR_MULTIBUFFER);
	const ir_value *tile = multibuffer->results[0];
	if (multibuffer_is_bulk(multibuffer)) return bulk_multibuffer_plan(multibuffer, plan);
	if (ir_get_swizzle(multibuffer)) {
		unsigned fast = ir_get_fast(multibuffer);
		wgmma_tile t = wgmma_tile_known(tile->type, fast, fast, ir_get_swizzle(multibuffer));
		layout shared = wgmma_tile_layout(&t);
		layout_plan_store(tile->layout, &shared, ir_element_bytes(tile->type), plan);
		plan->bytes = t.bytes;
		return true;
	}
	const ir_op *read = first_read(multibuffer);
	if (!read) return false;
	layout_plan_exchange(tile->layout, read->results[0]->layout, ir_element_bytes(tile->type), plan);
	return true;
}

/* Where several read it in different layouts, it lies as one of them wants it (latencies.c). */
bool multibuffer_read_plan(const ir_op *read, layout_plan *plan)
{
	const ir_op *multibuffer = ir_arg(read, 0)->def;
	const ir_value *tile = read->results[0];
	if (multibuffer_is_bulk(multibuffer)) {
		plan_bulk_read(read, plan);
		return true;
	}
	const ir_op *first = first_read(multibuffer);
	if (!multibuffer_plan(multibuffer, plan)) return false;
	if (!first || layout_equal(first->results[0]->layout, tile->layout)) return true;
	layout shared = plan->shared;
	layout_plan_load(&shared, tile->layout, ir_element_bytes(tile->type), plan);
	return true;
}

static uint32_t slot_bytes(const ir_op *multibuffer)
{
	layout_plan plan;
	return multibuffer_plan(multibuffer, &plan) ? plan.bytes : 0;
}

/* Where its tile begins in a slot. */
static uint32_t offset_in_slot(const ir_op *multibuffer)
{
	uint32_t offset = 0;
	for (; multibuffer->nargs; offset += slot_bytes(multibuffer)) multibuffer = ir_arg(multibuffer, 0)->def;
	return offset;
}

const ir_op *multibuffer_next_in_slot(const ir_op *multibuffer)
{
	for (const ir_use *u = multibuffer->results[0]->uses; u; u = u->next)
		if (u->user->kind == IR_MULTIBUFFER) return u->user;
	return NULL;
}

uint32_t multibuffer_pitch(const ir_op *multibuffer)
{
	assert(multibuffer->kind == IR_MULTIBUFFER);
	uint32_t pitch = offset_in_slot(multibuffer);
	for (; multibuffer; multibuffer = multibuffer_next_in_slot(multibuffer)) pitch += slot_bytes(multibuffer);
	return pitch;
}

const ir_op *multibuffer_read_by_dot(const ir_op *o, unsigned operand)
{
	if (o->kind != IR_DOT) return NULL;
	const ir_op *d = ir_arg(o, operand)->def;
	while (d && d->kind == IR_PERMUTE) d = ir_arg(d, 0)->def;
	return d && d->kind == IR_MULTIBUFFER_READ ? d : NULL;
}

/* ---- the rules ---- */

/* What the column scratch of ops.def names: scratch_NAME, below. */
typedef struct rule {
	uint32_t (*bytes)(const ir_func *, const ir_op *);    /* null: none */
	uint32_t (*align)(const ir_op *);                     /* null: SCRATCH_ALIGN */
	uint32_t (*barriers)(const ir_func *, const ir_op *); /* of an exchange: exchange_barriers */
	bool lasts;
	const char *purpose; /* of what does not last */
} rule;

static uint32_t align_block(const ir_op *o)
{
	(void)o;
	return BULK_ALIGN;
}

static uint32_t align_wgmma(const ir_op *o)
{
	(void)o;
	return WGMMA_ALIGN;
}

static uint32_t align_multibuffer(const ir_op *o)
{
	if (multibuffer_is_bulk(o)) return BULK_ALIGN;
	return ir_get_swizzle(o) ? WGMMA_ALIGN : SCRATCH_ALIGN;
}

static uint32_t load_bytes(const ir_func *f, const ir_op *o)
{
	return scalar_load_needs_broadcast(o) || tile_load_needs_sharing(o) ? handed_on_bytes(f, o) : 0;
}

static uint32_t atomic_bytes(const ir_func *f, const ir_op *o)
{
	return o->results[0]->uses && !ir_get_partition(o) ? handed_on_bytes(f, o) : 0;
}

static uint32_t convert_bytes(const ir_func *f, const ir_op *o)
{
	assert(o->kind == IR_CONVERT_LAYOUT);
	(void)f;
	layout_plan plan;
	const ir_value *from = ir_arg(o, 0);
	layout_plan_conversion(from->layout, o->results[0]->layout, ir_element_bytes(from->type), &plan);
	return plan.bytes;
}

static uint32_t reduce_bytes(const ir_func *f, const ir_op *o)
{
	(void)f;
	reduce_plan plan;
	reduce_plan_make(o, &plan);
	return plan.bytes;
}

static uint32_t scan_barriers(const ir_func *f, const ir_op *o)
{
	(void)f;
	reduce_plan plan;
	uint32_t n = 0;
	reduce_plan_make(o, &plan);
	for (uint32_t s = 0; s < plan.nsteps; s++)
		if (plan.step[s].in == LAYOUT_WARP) n += (n ? 2u : 1u) + 2 * ((1u << plan.step[s].npasses) - 1);
	return n;
}

static uint32_t passes_bytes(const ir_func *f, const ir_op *o)
{
	exchange_plan plan;
	exchange_plan_make(f, o, &plan);
	return plan.bytes * plan.buffers;
}

/* The barriers of one exchange of `live` registers: one a pass, in which plan.registers of them go through scratch.  64
 * registers by 16 take 4. */
static uint32_t passes_barriers(const ir_func *f, const ir_op *o, uint32_t live)
{
	exchange_plan plan;
	exchange_plan_make(f, o, &plan);
	if (!plan.bytes) return 0;
	return live > plan.registers ? live / plan.registers : 1;
}

/* A topk drops others before it exchanges. */
static uint32_t sort_barriers(const ir_func *f, const ir_op *o)
{
	return passes_barriers(f, o, layout_registers(o->results[0]->layout)) * warp_steps(ir_arg(o, 0)->layout, o);
}

static uint32_t flip_barriers(const ir_func *f, const ir_op *o)
{
	return passes_barriers(f, o, layout_registers(ir_arg(o, 0)->layout));
}

static uint32_t gather_bytes(const ir_func *f, const ir_op *o)
{
	(void)f;
	return (uint32_t)ir_elements(ir_arg(o, 0)->type) * ir_element_bytes(ir_arg(o, 0)->type);
}

/* The tile is there. */
static uint32_t gather_barriers(const ir_func *f, const ir_op *o)
{
	(void)f, (void)o;
	return 1;
}

static uint32_t histogram_bytes(const ir_func *f, const ir_op *o)
{
	(void)f;
	return (uint32_t)ir_elements(o->results[0]->type) * 4;
}

/* The counters are 0; all has been counted. */
static uint32_t histogram_barriers(const ir_func *f, const ir_op *o)
{
	(void)f, (void)o;
	return 2;
}

static uint32_t block_bytes(ir_type block)
{
	bulk_shape s;
	return bulk_shape_of(block, &s) ? s.bytes : 0;
}

static uint32_t bulk_load_bytes(const ir_func *f, const ir_op *o)
{
	assert(o->kind == IR_BULK_LOAD);
	(void)f;
	uint32_t bytes = block_bytes(o->results[0]->type);
	return bytes ? bytes + BULK_BARRIER_BYTES : 0;
}

static uint32_t bulk_store_bytes(const ir_func *f, const ir_op *o)
{
	assert(o->kind == IR_BULK_STORE);
	bulk_parts parts;
	if (ir_get_by_warps(o) && bulk_parts_of(o, &parts)) return f->num_warps * parts.buffers * parts.copy_bytes;
	return block_bytes(ir_arg(o, 1)->type);
}

static uint32_t wgmma_bytes(const ir_func *f, const ir_op *o)
{
	wgmma_plan plan;
	return wgmma_plan_make(o, f->num_warps, &plan) ? plan.scratch_bytes << ir_get_alternates(o) : 0;
}

static uint32_t multibuffer_bytes(const ir_func *f, const ir_op *o)
{
	assert(o->kind == IR_MULTIBUFFER);
	(void)f;
	return multibuffer_pitch(o) * ir_get_stages(o) - offset_in_slot(o);
}

static uint32_t scalars_bytes(const ir_func *f, const ir_op *o)
{
	(void)f;
	return 8 * ir_get_count(o);
}

static uint32_t mbarriers_bytes(const ir_func *f, const ir_op *o)
{
	(void)f;
	return 8 * ir_get_count(o);
}

#define MOVES "moving this tile"
static const rule scratch_none = {0};
static const rule scratch_load = {.bytes = load_bytes, .purpose = "this load"};
static const rule scratch_atomic = {.bytes = atomic_bytes, .purpose = "handing on what this atomic returns"};
static const rule scratch_convert = {.bytes = convert_bytes, .purpose = MOVES};
static const rule scratch_reduce = {.bytes = reduce_bytes, .purpose = "this reduction"};
static const rule scratch_scan = {.bytes = reduce_bytes, .barriers = scan_barriers, .purpose = "this scan"};
static const rule scratch_sort = {.bytes = passes_bytes, .barriers = sort_barriers, .purpose = "this sort"};
static const rule scratch_flip = {.bytes = passes_bytes, .barriers = flip_barriers, .purpose = MOVES};
static const rule scratch_gather = {
	.bytes = gather_bytes, .barriers = gather_barriers, .purpose = "the tile that this gathers from"};
static const rule scratch_histogram = {
	.bytes = histogram_bytes, .barriers = histogram_barriers, .purpose = "this histogram"};
static const rule scratch_bulk_load = {.bytes = bulk_load_bytes, .align = align_block, .purpose = "this load"};
static const rule scratch_bulk_store = {.bytes = bulk_store_bytes, .align = align_block, .purpose = "this store"};
static const rule scratch_wgmma = {
	.bytes = wgmma_bytes, .align = align_wgmma, .purpose = "the operands of this product"};
static const rule scratch_multibuffer = {.bytes = multibuffer_bytes, .align = align_multibuffer, .lasts = true};
static const rule scratch_scalars = {.bytes = scalars_bytes, .lasts = true};
static const rule scratch_mbarriers = {.bytes = mbarriers_bytes, .lasts = true};

static const rule *rule_of(const ir_op *o)
{
	static const rule *const rules[IR_KIND_COUNT] = {
#define OP(e, name, args, results, regions, flags, types, layouts, scratch, ...) &scratch_##scratch,
#include "ir/ops.def"
#undef OP
	};
	return rules[o->kind];
}

uint32_t scratch_bytes(const ir_func *f, const ir_op *o)
{
	uint32_t bytes = rule_of(o)->bytes ? rule_of(o)->bytes(f, o) : 0;
	if (!bytes || f->row_groups == 1 || scratch_lasts(o)) return bytes;
	uint32_t align = scratch_align(o) > SCRATCH_ALIGN ? scratch_align(o) : SCRATCH_ALIGN;
	return (bytes + align - 1) / align * align * f->row_groups; /* each group has its own */
}

bool scratch_meets(const ir_func *f, const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (o->kind == IR_CTA_BARRIER || o->kind == IR_DEBUG_BARRIER || scratch_bytes(f, o)) return true;
	return false;
}

/* From `end` on; behind a block's end of multibuffers there is room again for what that block needs next. */
static void place_lasting(const ir_func *f, ir_block *b, uint32_t end, uint32_t *most)
{
	uint32_t start = end;
	for (ir_op *o = b->first; o; o = o->next) {
		if (o->kind == IR_MULTIBUFFER && o->nargs) { /* in the other one's bytes */
			const ir_op *front = ir_arg(o, 0)->def;
			o->shared_offset = front->shared_offset + slot_bytes(front);
		} else if (scratch_lasts(o)) {
			uint32_t align = scratch_align(o), bytes = scratch_bytes(f, o);
			o->shared_offset = (end + align - 1) / align * align;
			end = o->shared_offset + (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
			if (end > *most) *most = end;
			if (o->kind == IR_MULTIBUFFER && ir_get_stays(o)) start = end;
		} else if (o->kind == IR_MULTIBUFFER_END)
			end = start;
		for (unsigned r = 0; r < o->nregions; r++) place_lasting(f, o->regions[r], end, most);
	}
}

uint32_t scratch_place_lasting(ir_func *f)
{
	uint32_t most = 0;
	place_lasting(f, f->body, 0, &most);
	return most;
}

uint32_t scratch_align(const ir_op *o)
{
	return rule_of(o)->align ? rule_of(o)->align(o) : SCRATCH_ALIGN;
}

bool scratch_lasts(const ir_op *o)
{
	return rule_of(o)->lasts;
}

const char *scratch_purpose(const ir_op *o)
{
	return o->kind == IR_SORT && ir_get_k(o) ? "this topk" : rule_of(o)->purpose;
}

uint32_t exchange_barriers(const ir_func *f, const ir_op *o)
{
	assert(rule_of(o)->barriers);
	return rule_of(o)->barriers(f, o);
}
