/* Dots that the warpgroup's instruction makes.
 *
 * In: a dot at the tile level, after prepare_dots.  Out: whether its shape allows wgmma (family.h); then a product that
 * is begun and waited for.
 *     %c = dot %a, %b, %acc      ->      %s = wgmma %a, %b, %acc
 *                                        %c = wgmma_wait %s {pending=0}
 * The one idea: begun and at once waited for is always right; pipeline.c, which knows what runs ahead, moves the wait.
 */
#include "analysis/pressure.h"
#include "ir/tensor_map.h"
#include "async/bulk.h"
#include "passes/passes.h"
#include "family.h"
#include "wgmma.h"

#include <assert.h>

/* The load that an operand is, perhaps transposed; and which of the operand's dimensions its memory runs along. */
static const ir_op *loaded(const pass_context *p, const ir_value *v, unsigned *fast)
{
	unsigned turns = 0;
	for (; v->def && v->def->kind == IR_PERMUTE; v = ir_arg(v->def, 0)) {
		if (v->type.rank == 3 && ir_unpack(ir_get_order(v->def), 0) != 0) return NULL;
		turns ^= wgmma_swaps(v->def);
	}
	if (v->def && v->def->kind == IR_BULK_LOAD) return *fast = 1 ^ turns, v->def;
	if (!v->def || v->def->kind != IR_LOAD) return NULL;
	const axis_info *info = axis_get(p, ir_arg(v->def, 0));
	const uint32_t *runs = info->contiguity + v->type.rank - 2;
	*fast = (info->known && runs[0] > runs[1] ? 0 : 1) ^ turns;
	return v->def;
}

/* Registers that hold operand i on its way from where it was loaded to where, and as what, the instruction reads it;
 * bytes that are transposed are there before and after. */
static uint32_t on_the_way(const pass_context *p, const ir_op *dot, unsigned i)
{
	assert(i < 2);
	const ir_value *v = ir_arg(dot, i);
	unsigned fast, bytes = ir_element_bytes(v->type);
	const ir_op *load = loaded(p, v, &fast);
	bool transposed = load && fast != (i ? 0 : 1), rounded = load && bytes == 4 && load->kind == IR_LOAD;
	if (wgmma_form_of(v->type.elem)->turns || (!transposed && !rounded)) return 0;
	uint32_t words = (uint32_t)ir_elements(v->type) * bytes / (4 * 32 * dot->block->func->num_warps);
	return bytes == 1 ? 2 * words : words;
}

enum { OTHERS = 24 }; /* registers beside sums and operands, of a product alone: see PRESSURE_OTHERS */

/* What has been computed lies in the warps that multiply it: those of a product's sum have 16 rows each, whole ones
 * where there are as many.  Else it goes by shared memory, and the instruction may as well read it there. */
static bool is_fragment(const ir_value *computed, unsigned num_warps)
{
	bool transposed = computed->def && computed->def->kind == IR_PERMUTE;
	return !transposed && computed->type.dim[0] >= 16 * num_warps;
}

/* The second operand is a tile that is computed, transposed: as the first one of the transposed product it is there in
 * registers. */
static bool is_transposed_fragment(const pass_context *p, const ir_op *dot)
{
	const ir_value *v = ir_arg(dot, 1);
	unsigned fast;
	if (!v->def || v->def->kind != IR_PERMUTE || v->type.rank != 2 || loaded(p, v, &fast)) return false;
	return is_fragment(ir_arg(v->def, 0), dot->block->func->num_warps);
}

/* Why an operand cannot be read in place, in half a sentence; null: both can, or the second one is held in registers
 * and the first one can.  One that is computed, or that stays round a loop, would be written to shared memory for each
 * product, where mma.sync has it in registers. */
static const char *in_place(const pass_context *p, const ir_op *dot, bool is_second_held)
{
	const wgmma_form *form = wgmma_form_of(ir_arg(dot, 0)->type.elem);
	for (unsigned i = 0; i < (is_second_held ? 1 : 2); i++) {
		unsigned fast;
		const ir_op *load = loaded(p, ir_arg(dot, i), &fast);
		if (!load) return "an operand is computed";
		if (load->block != dot->block) return "an operand stays the same round the loop";
		if (!form->turns && fast != 1 - i) return "wgmma reads operands of this type along k only";
		if (form->type == SCALAR_F32 && load->kind == IR_LOAD)
			return "no tensor map rounds an operand to tf32 on its way";
	}
	return NULL;
}

const char *wgmma_refusal(const pass_context *p, const ir_op *dot)
{
	assert(dot->kind == IR_DOT);
	const ir_func *f = dot->block->func;
	unsigned num_warps = f->num_warps;
	ir_type a = ir_arg(dot, 0)->type, b = ir_arg(dot, 1)->type, sum = dot->results[0]->type;
	const wgmma_form *form = wgmma_form_of(a.elem);
	wgmma_shape shape;
	wgmma_tile tile[2];
	unsigned fast = 0;
	if (!form || (a.elem == SCALAR_F32 && ir_get_precision(dot) != IR_TF32))
		return "wgmma does not multiply this type in this precision";
	if (num_warps < 4) return "wgmma takes four warps together";
	if (!wgmma_shape_of(sum, num_warps, wgmma_widest(f), &shape))
		return "wgmma wants 64 rows, and 8 columns for every four warps";
	/* an instruction has its part of the sum in registers at once, and there must be others */
	if (ir_elements(sum) / (32 * num_warps) + OTHERS > pressure_most(f))
		return "a thread's part of the sum leaves too few of its registers";
	if (a.dim[a.rank - 1u] < form->k) return "wgmma takes more along k at once";
	if (sum.rank == 3) return in_place(p, dot, false);
	wgmma_tile_make(a, 1, 1, 0, &tile[0]); /* what an instruction takes along k are rows of 32 bytes */
	wgmma_tile_make(b, 0, 0, 0, &tile[1]);
	if (tile[0].bytes + tile[1].bytes > LAYOUT_SCRATCH_MOST) return "the operands are too large for shared memory";
	if (!form->turns && !loaded(p, ir_arg(dot, 1), &fast))
		return "wgmma reads operands of this type along k only, and the second one is computed";
	if (ir_elements(sum) / (32 * num_warps) + on_the_way(p, dot, 0) + on_the_way(p, dot, 1) + OTHERS >
		pressure_most(f))
		return "its operands have to go through registers, of which the sum leaves too few";
	return NULL;
}

enum { ROWS = 64 }; /* of a warpgroup */

bool wgmma_may_swap_beside(const pass_context *p, const ir_op *dot)
{
	assert(dot->kind == IR_DOT);
	ir_type sum = dot->results[0]->type;
	scalar s = ir_arg(dot, 0)->type.elem;
	bool multiplies = wgmma_form_of(s) && (s != SCALAR_F32 || ir_get_precision(dot) == IR_TF32);
	if (!target_can(p->target, TARGET_WGMMA) || !multiplies || dot->block->func->num_warps < 4) return false;
	return sum.dim[sum.rank - 1u] >= ROWS;
}

bool wgmma_may_swap(const pass_context *p, const ir_op *dot)
{
	if (!wgmma_may_swap_beside(p, dot)) return false;
	ir_type sum = dot->results[0]->type;
	return sum.dim[sum.rank - 2u] < ROWS || (is_transposed_fragment(p, dot) && !in_place(p, dot, true));
}

const char *wgmma_swap_refusal(const pass_context *p, const ir_op *dot)
{
	assert(wgmma_may_swap_beside(p, dot));
	const ir_func *f = dot->block->func;
	ir_type a = ir_arg(dot, 0)->type, sum = dot->results[0]->type, turned = sum;
	const wgmma_form *form = wgmma_form_of(a.elem);
	wgmma_shape shape;
	turned.dim[sum.rank - 2u] = sum.dim[sum.rank - 1u];
	turned.dim[sum.rank - 1u] = sum.dim[sum.rank - 2u];
	if (!wgmma_shape_of(turned, f->num_warps, wgmma_widest(f), &shape))
		return "wgmma wants 8 rows for every four warps that share 64 columns";
	if (a.dim[a.rank - 1u] < form->k) return "wgmma takes more along k at once";
	return in_place(p, dot, is_transposed_fragment(p, dot));
}

bool wgmma_wants_registers(const pass_context *p, const ir_op *wgmma)
{
	const ir_value *a = ir_arg(wgmma, 0);
	unsigned fast;
	if (a->type.rank == 3) return false;
	const ir_op *load = loaded(p, a, &fast);
	if (!load) return is_fragment(a, wgmma->block->func->num_warps);
	if (load->block != wgmma->block) return true;
	/* to be rounded: on the way through registers, if not by the copy */
	return a->type.elem == SCALAR_F32 && load->kind == IR_LOAD && fast == 1;
}

enum { SPREAD_BLOCK = 2, SPREAD_LOAD = 8 };

bool wgmma_transposes(const pass_context *p, const ir_op *wgmma, unsigned i, layout *l)
{
	assert(wgmma->kind == IR_WGMMA && i < 2);
	const ir_value *v = ir_arg(wgmma, i);
	unsigned fast, k = i ? 0 : 1;
	if (wgmma_form_of(v->type.elem)->turns) return false;
	const ir_op *load = loaded(p, v, &fast);
	if (!load || fast == k) return false;
	/* a block lies in shared memory as it was copied, where lanes along k get in each other's way */
	*l = wgmma_turning_layout(
		v->type, k, load->kind == IR_BULK_LOAD ? SPREAD_BLOCK : SPREAD_LOAD, wgmma->block->func->num_warps);
	return true;
}

enum { MOST_MAPS = 16 }; /* that a launch passes */

static void count_maps(ir_op *o, void *context)
{
	*(unsigned *)context += o->kind == IR_TENSOR_MAP;
}

/* A block that nothing but the product takes is rounded to tf32 as it is copied. */
static void round_copy(const pass_context *p, ir_func *f, ir_value *v)
{
	unsigned maps = 0;
	while (!v->uses->next && v->def && v->def->kind == IR_PERMUTE) v = ir_arg(v->def, 0);
	if (v->uses->next || !v->def || v->def->kind != IR_BULK_LOAD || bulk_rounds(v->def)) return;
	ir_value *map = ir_arg(v->def, 0), *array = ir_arg(map->def, 0);
	assert(map->def->kind == IR_TENSOR_MAP && map->def->map);
	ir_walk(f->body, count_maps, &maps);
	if (map->uses->next && maps >= MOST_MAPS) return;
	ir_tensor_map *rounds = ARENA_NEW(p->arena, ir_tensor_map);
	*rounds = *map->def->map;
	rounds->rounds = true;
	if (map->uses->next) {
		ir_builder b = {.func = f, .block = map->def->block, .before = map->def, .at = map->def->at};
		ir_set_arg(v->def, 0, ir_build1(&b, IR_TENSOR_MAP, map->type, 1, &array));
	}
	ir_arg(v->def, 0)->def->map = rounds;
}

void wgmma_select(const pass_context *p, ir_op *o)
{
	assert(o->kind == IR_DOT && o->nresults == 1);
	ir_builder b = {.func = o->block->func, .block = o->block, .before = o, .at = o->at};
	ir_value *args[3] = {ir_arg(o, 0), ir_arg(o, 1), o->nargs > 2 ? ir_arg(o, 2) : NULL}, *result = o->results[0];
	ir_value *begun = ir_build1(&b, IR_WGMMA, result->type, o->nargs, args);
	ir_value *done = ir_build1(&b, IR_WGMMA_WAIT, result->type, 1, &begun);
	done->name = result->name;
	ir_set_swapped(begun->def, ir_get_swapped(o));
	ir_replace(result, done);
	ir_erase(o);
	for (unsigned i = 0; i < 2 && args[i]->type.elem == SCALAR_F32; i++) round_copy(p, b.func, args[i]);
}
