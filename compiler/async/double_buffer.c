/* Scratch of a product's operands in a loop becomes two buffers, which iterations take in turns.
 *
 * In: a mapped function, before scratch has places.  Out: the product of a loop in which nothing else needs scratch or
 * a barrier gets the attribute `alternates`: one barrier an iteration, the one inside of the product, is enough.
 *
 *     one buffer     write | barrier | multiply, wait | barrier | write | barrier | multiply, wait ..
 *     two            write 0 | barrier | multiply, wait | write 1 | barrier | multiply, wait | write 0 ..
 *
 * The one idea: who has passed the barrier of this iteration knows that all have waited for the product of the last
 * one, so that the next one's buffer is free.  So the wait has to stand in the product's own iteration.
 *
 * Where the other buffer has no room, or would cost a program on each SM (as far as shared memory and warps go), there
 * is one.  Which buffer it is, says a bit of the counter that changes each time round; so the step is a power of
 * two. */
#include "passes/passes.h"
#include "scratch.h"
#include "target/nvptx/mma/wgmma.h"

typedef struct found {
	const ir_func *func;
	ir_op *product; /* with scratch */
	bool others;    /* operations with scratch, or barriers */
} found;

static void look(ir_op *o, void *context)
{
	found *f = context;
	if (o->kind == IR_CTA_BARRIER || o->kind == IR_DEBUG_BARRIER) f->others = true;
	if (!scratch_bytes(f->func, o)) return;
	f->others |= f->product != NULL || o->kind != IR_WGMMA;
	f->product = o;
}

static bool counts_by_power_of_two(const ir_op *loop)
{
	int64_t step;
	return ir_arg(loop, 0)->type.elem == SCALAR_I32 && ir_is_const_int(ir_arg(loop, 2), &step) && step > 0 &&
	       !(step & (step - 1));
}

/* Programs on an SM, as far as shared memory and warps go. */
static uint32_t resident(const blk_target *t, const ir_func *f, uint32_t bytes)
{
	return target_fill_sm(t, ir_warps(f), 1, bytes).ctas;
}

static bool has_room(const pass_context *c, ir_func *f, const ir_op *product)
{
	uint32_t align = scratch_align(product), bytes = scratch_bytes(f, product);
	uint32_t one = (scratch_place_lasting(f) + align - 1) / align * align + bytes, two = one + bytes;
	return two <= c->target->shared_bytes && two <= f->max_shared &&
	       resident(c->target, f, one) == resident(c->target, f, two);
}

static void visit(ir_op *o, void *context)
{
	const pass_context *c = ((void **)context)[0];
	ir_func *f = ((void **)context)[1];
	if (o->kind != IR_FOR || !counts_by_power_of_two(o)) return;
	found in = {.func = f};
	ir_walk(o->regions[0], look, &in);
	if (!in.product || in.others || in.product->block != o->regions[0]) return;
	const ir_op *wait = ir_only_user(in.product->results[0]);
	if (wait && wgmma_waited_for(wait) == in.product && has_room(c, f, in.product))
		ir_set_alternates(in.product, true);
}

bool pass_double_buffer(pass_context *c, ir_func *f)
{
	if (f->row_groups == 1) ir_walk(f->body, visit, (void *[]){c, f});
	return true;
}
