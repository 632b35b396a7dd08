/* The table of wgmma's forms, parts of sums, tiles in shared memory and their descriptors.  See wgmma.h. */
#include "wgmma.h"

#include <assert.h>
#include <string.h>

static const wgmma_form forms[] = {
	{SCALAR_F16, "f32.f16.f16", 16, true, true},
	{SCALAR_BF16, "f32.bf16.bf16", 16, true, true},
	{SCALAR_F32, "f32.tf32.tf32", 8, false, true},
	{SCALAR_F8E4M3, "f32.%s.%s", 32, false, true},
	{SCALAR_I8, "s32.s8.s8", 32, false, false},
};

const wgmma_form *wgmma_form_of(scalar s)
{
	if (scalar_is_fp8(s)) s = SCALAR_F8E4M3;
	for (unsigned i = 0; i < sizeof forms / sizeof forms[0]; i++)
		if (forms[i].type == s) return &forms[i];
	return NULL;
}

enum { WIDEST = 256, WIDEST_OF_GROUPS = 128, MOST_OF_GROUPS = 192, ROWS = 64, NARROWEST = 8 };

/* ptxas 13.0 holds an instruction to the registers with which a launch begins, 128 for 16 warps, whatever setmaxnreg
 * hands over later (C7602). */
uint32_t wgmma_widest(const ir_func *f)
{
	return f->row_groups > 1 ? WIDEST_OF_GROUPS : WIDEST;
}

/* Of three groups' 128 registers, 192 columns are 96.  i8 takes up to 32 columns by eights, more by sixteens; other
 * types all by eights. */
bool wgmma_takes_columns(const ir_func *f, const wgmma_form *form, uint32_t columns)
{
	if (columns > (f->row_groups > 1 ? MOST_OF_GROUPS : WIDEST)) return false;
	return columns % (form->type == SCALAR_I8 && columns > 32 ? 16 : NARROWEST) == 0;
}

bool wgmma_shape_of(ir_type sum, unsigned num_warps, uint32_t widest, wgmma_shape *s)
{
	unsigned m = sum.rank - 2u;
	if (sum.rank < 2 || sum.rank > 3 || num_warps < 4 || sum.dim[m] < ROWS) return false;
	uint32_t groups = num_warps / 4, batches = m ? sum.dim[0] : 1, whole = groups < batches ? groups : batches;
	s->batches = batches / whole;
	groups /= whole;
	uint32_t rows = sum.dim[m] / ROWS, along = groups < rows ? groups : rows;
	s->rows = rows / along;
	s->width = sum.dim[m + 1] / (groups / along); /* layout_wgmma_accumulator: then the columns are halved */
	s->n = s->width < widest ? s->width : widest;
	if (s->n < NARROWEST) return false;
	s->columns = s->width / s->n;
	assert(s->rows * along == rows && s->columns * s->n == s->width);
	return true;
}

/* ---- tiles in shared memory ---- */

/* The extent of one of the last two dimensions. */
static uint32_t extent(const ir_type *t, unsigned d)
{
	assert(t->rank >= 2 && d < 2);
	return t->dim[t->rank - 2u + d];
}

bool wgmma_swaps(const ir_op *permute)
{
	assert(permute->kind == IR_PERMUTE);
	unsigned rank = permute->results[0]->type.rank;
	int64_t order = ir_get_order(permute);
	return (rank == 2 && ir_unpack(order, 0) == 1) ||
	       (rank == 3 && ir_unpack(order, 0) == 0 && ir_unpack(order, 1) == 2);
}

wgmma_tile wgmma_tile_known(ir_type type, unsigned fast, unsigned k, unsigned swizzle)
{
	assert((type.rank == 2 || type.rank == 3) && fast < 2 && k < 2);
	uint32_t bytes = (uint32_t)ir_elements(type) * ir_element_bytes(type);
	wgmma_tile t = {.type = type, .fast = (uint8_t)fast, .k = (uint8_t)k, .swizzle = (uint8_t)swizzle};
	t.panel = (type.rank == 3 ? type.dim[0] : 1) * extent(&type, 1 - fast) * swizzle;
	t.bytes = (bytes + WGMMA_ALIGN - 1) & ~(uint32_t)(WGMMA_ALIGN - 1);
	return t;
}

bool wgmma_tile_make(ir_type type, unsigned fast, unsigned k, uint32_t run, wgmma_tile *t)
{
	assert(fast < 2 && k < 2);
	const wgmma_form *form = wgmma_form_of(type.elem);
	unsigned element = ir_element_bytes(type);
	if (type.rank < 2 || type.rank > 3 || !form || extent(&type, k) < form->k || (fast != k && !form->turns))
		return false;
	uint32_t row = (fast == k ? extent(&type, k) : run) * element;
	if (row > 128) row = 128;
	*t = wgmma_tile_known(type, fast, k, row);
	return row >= 32;
}

layout wgmma_tile_layout(const wgmma_tile *t)
{
	unsigned element = ir_element_bytes(t->type);
	if (t->fast == 1) return layout_swizzled_shared(t->type, element, t->swizzle);
	ir_type transposed = t->type;
	unsigned m = t->type.rank - 2u;
	transposed.dim[m] = t->type.dim[m + 1];
	transposed.dim[m + 1] = t->type.dim[m];
	layout l = layout_swizzled_shared(transposed, element, t->swizzle);
	return layout_permute(&l, m ? (uint8_t[]){0, 2, 1} : (uint8_t[]){1, 0});
}

uint32_t wgmma_tile_offset(const wgmma_tile *t, uint32_t batch, uint32_t other, uint32_t k)
{
	assert(k < extent(&t->type, t->k) && other < extent(&t->type, 1 - t->k));
	uint32_t along = (t->fast == t->k ? k : other) * ir_element_bytes(t->type), row = t->fast == t->k ? other : k;
	row += batch * extent(&t->type, 1 - t->fast);
	return along / t->swizzle * t->panel + row * t->swizzle + along % t->swizzle;
}

uint64_t wgmma_descriptor(const wgmma_tile *t)
{
	assert(t->swizzle == 128 || t->swizzle == 64 || t->swizzle == 32);
	uint64_t mode = t->swizzle == 128 ? 1 : t->swizzle == 64 ? 2 : 3;
	uint64_t leading = t->fast == t->k ? 1 : t->panel >> 4; /* unused: k never leaves its panel in an instruction */
	uint64_t stride = 8u * t->swizzle >> 4;
	return mode << 62 | stride << 32 | leading << 16;
}

layout wgmma_register_layout(ir_type a, unsigned num_warps)
{
	return layout_mma_operand(a, false, 4 / ir_element_bytes(a), (mma_warps){1, num_warps, 1});
}

layout wgmma_turning_layout(ir_type t, unsigned k, unsigned spread, unsigned num_warps)
{
	uint32_t element = ir_element_bytes(t), across = 4 / element, along = 16 / element;
	uint32_t per_thread[2], threads[2], warps[2] = {1, 1};
	if (along > t.dim[k]) along = t.dim[k];
	if (across > t.dim[1 - k]) across = t.dim[1 - k];
	while (along * spread > t.dim[k]) spread /= 2;
	per_thread[k] = along;
	per_thread[1 - k] = across;
	threads[k] = spread;
	threads[1 - k] = 32 / spread;
	while (threads[k] * along < t.dim[k] && threads[1 - k] * across > t.dim[1 - k]) {
		threads[1 - k] /= 2;
		threads[k] *= 2;
	}
	uint32_t left = t.dim[1 - k] / (threads[1 - k] * across);
	while (warps[1 - k] < num_warps && warps[1 - k] < left) warps[1 - k] *= 2;
	warps[k] = num_warps / warps[1 - k];
	assert(threads[0] * threads[1] == 32 && warps[0] * warps[1] == num_warps);
	uint8_t order[] = {(uint8_t)k, (uint8_t)(1 - k)};
	return layout_blocked(t, per_thread, threads, warps, order);
}

/* ---- the operation ---- */

static bool part(const ir_op *o, unsigned *at, wgmma_operand *p)
{
	if (*at >= o->nargs) return false;
	p->arg = *at;
	p->value = ir_arg(o, (*at)++);
	p->place = WGMMA_SCRATCH;
	if (!p->value->def || p->value->def->kind != IR_MULTIBUFFER) return true;
	p->place = WGMMA_MULTIBUFFER;
	if (*at >= o->nargs) return false;
	p->slot = ir_arg(o, (*at)++);
	return true;
}

bool wgmma_parts(const ir_op *o, wgmma_plan *p)
{
	assert(o->kind == IR_WGMMA);
	unsigned at = 0;
	memset(p, 0, sizeof *p);
	if (!part(o, &at, &p->operand[0]) || !part(o, &at, &p->operand[1])) return false;
	if (at < o->nargs) p->sum = ir_arg(o, at++);
	return at == o->nargs;
}

/* An instruction of n columns takes n / 2 cycles for 64 rows. */
uint32_t wgmma_cycles(const wgmma_plan *p)
{
	const wgmma_shape *s = &p->shape;
	return s->batches * s->rows * s->columns * (p->k / p->form->k) * (s->n / 2);
}

const ir_op *wgmma_waited_for(const ir_op *wait)
{
	const ir_op *product = wait->kind == IR_WGMMA_WAIT && wait->nargs == 1 ? ir_arg(wait, 0)->def : NULL;
	return product && product->block == wait->block ? product : NULL;
}

bool wgmma_others_see(const ir_op *wait)
{
	for (const ir_use *u = wait->results[0]->uses; u; u = u->next)
		if (u->user->kind != IR_WGMMA && u->user != wait->block->last) return true;
	return false;
}

/* The dimension of the last two along which a thread holds the longer run of neighbours; k among equals. */
static unsigned fast_of(const layout *l, unsigned k, bool turns)
{
	unsigned m = l->rank - 2u;
	return turns && layout_lg_contiguous(l, m + 1 - k) > layout_lg_contiguous(l, m + k) ? 1 - k : k;
}

bool wgmma_plan_make(const ir_op *o, unsigned num_warps, wgmma_plan *p)
{
	if (!wgmma_parts(o, p)) return false;
	p->form = wgmma_form_of(p->operand[0].value->type.elem);
	if (!p->form || !wgmma_shape_of(o->results[0]->type, num_warps, wgmma_widest(o->block->func), &p->shape))
		return false;
	for (unsigned i = 0; i < 2; i++) {
		wgmma_operand *x = &p->operand[i];
		ir_type t = x->value->type;
		unsigned k = i == 0 ? 1 : 0;
		if (x->place == WGMMA_MULTIBUFFER) {
			if (ir_get_transposed(o) & (i ? WGMMA_TRANSPOSED_B : WGMMA_TRANSPOSED_A)) k = 1 - k;
			const ir_op *multibuffer = x->value->def;
			x->tile = wgmma_tile_known(t, ir_get_fast(multibuffer), k, ir_get_swizzle(multibuffer));
		} else {
			const layout *l = x->value->layout;
			layout registers = wgmma_register_layout(t, num_warps);
			unsigned fast = fast_of(l, k, p->form->turns);
			if (i == 0 && t.rank == 2 && layout_equal(l, &registers)) {
				x->place = WGMMA_REGISTERS;
			} else {
				if (!wgmma_tile_make(t, fast, k, i ? p->shape.n : ROWS, &x->tile) &&
					!wgmma_tile_make(t, k, k, 0, &x->tile))
					return false;
				x->scratch = p->scratch_bytes;
				p->scratch_bytes += x->tile.bytes;
			}
		}
		assert(i == 0 || p->k == extent(&t, k));
		p->k = extent(&t, k);
	}
	return true;
}
