/* Operands of products that a loop does not change stay in shared memory where registers are short.
 *
 * In: a mapped function with products by mma.sync, or by fma, whose operands are registers.  Out: where a loop's sums
 * and such operands are more than a thread has registers, the largest of these is copied to shared memory once, and
 * each product reads it there:
 *
 *     %x = load %p, %mask                       %r = multibuffer {stages=1 stays=1}
 *     %q = convert_layout %x                    async_copy %r, 0, %p, %mask; async_commit; async_wait; cta_barrier
 *     for {                            ->       for {
 *       %s = dot %q, %k                           %q = multibuffer_read %r, 0
 *     }                                           %s = dot %q, %k
 *                                               }
 *
 * The one idea: an instruction of 16 rows needs a few registers of an operand at a time, and a product's instructions
 * wait for each other longer than for shared memory; but what spills is stored and read again, by way of L1.  So
 * queries of attention with 32 rows a warp stay where flash-attention has them, and every block of keys that a warp
 * reads serves twice as many rows.
 *
 * By wgmma, operands are in shared memory anyway (channels.c). */
#include "analysis/pressure.h"
#include "bulk.h"
#include "pipeline.h"
#include "scratch.h"

#include <assert.h>

enum { MOST_OPERANDS = 8, FEW_REGISTERS = 16 };

/* A load whose tile products in loops take, by conversions, and nobody else. */
typedef struct operand {
	staged of;
	unsigned registers;
} operand;

typedef struct finder {
	pass_context *context;
	ir_func *func;
	operand found[MOST_OPERANDS];
	unsigned n;
} finder;

/* ---- which operands ---- */

/* Through permutations, conversions alone take the tile. */
static bool find_conversions(operand *x, const ir_value *v)
{
	for (const ir_use *u = v->uses; u; u = u->next) {
		ir_op *o = u->user;
		if (o->block != x->of.load->block) return false;
		if (o->kind == IR_PERMUTE) {
			if (!find_conversions(x, o->results[0])) return false;
			continue;
		}
		if (o->kind != IR_CONVERT_LAYOUT || x->of.nby == MOST_PRODUCTS) return false;
		x->of.by[x->of.nby++] = (consumer){.op = o, .tile = v};
	}
	return true;
}

/* Products in loops alone take what it converts to. */
static bool serves_loops(const ir_op *conversion)
{
	for (const ir_use *u = conversion->results[0]->uses; u; u = u->next) {
		const ir_op *product = u->user, *around = ir_in_block(conversion->block, u->user);
		bool sum = product->nargs > 2 && product->args[2] == u;
		if (product->kind != IR_DOT || sum || !around || !ir_is_loop(around)) return false;
	}
	return true;
}

static void find_operand(ir_op *load, void *context)
{
	finder *f = context;
	if (load->kind != IR_LOAD || f->n == MOST_OPERANDS || ir_is_scalar(load->results[0])) return;
	operand x = {.of = {.load = load, .block = load->results[0]->type, .parts = 1}};
	bool serves = find_conversions(&x, load->results[0]) && x.of.nby;
	for (unsigned i = 0; i < x.of.nby && serves; i++) {
		serves = serves_loops(x.of.by[i].op);
		x.registers += pressure_registers(x.of.by[i].op->results[0]);
	}
	if (serves && x.registers >= FEW_REGISTERS && pipeline_copies_operand(f->context, &x.of)) f->found[f->n++] = x;
}

/* ---- whether registers are short ---- */

static bool takes(const operand *x, const ir_op *loop)
{
	for (unsigned i = 0; i < x->of.nby; i++)
		for (const ir_use *u = x->of.by[i].op->results[0]->uses; u; u = u->next)
			if (ir_encloses(loop, u->user)) return true;
	return false;
}

/* It is carried on: by what ends the block, or by a product that adds to it. */
static bool goes_on(const ir_op *product)
{
	const ir_op *user = ir_only_user(product->results[0]);
	return user && (ir_has(user, IR_TERMINATOR) ||
			       (user->kind == IR_DOT && user->nargs > 2 && ir_arg(user, 2) == product->results[0]));
}

/* Sums that are made anew in an iteration: the loop carries the others.  Loops inside count for themselves. */
static unsigned sums_of(const ir_block *b)
{
	unsigned n = 0;
	for (const ir_op *o = b->first; o; o = o->next) {
		if (o->kind == IR_DOT && !goes_on(o)) n += pressure_registers(o->results[0]);
		if (o->kind != IR_IF) continue;
		unsigned yes = sums_of(o->regions[0]), no = sums_of(o->regions[1]);
		n += yes > no ? yes : no;
	}
	return n;
}

/* What a thread holds in the loop: what it carries, sums, and operands from outside. */
static unsigned registers_in(const finder *f, const ir_op *loop)
{
	unsigned n =
		PRESSURE_OTHERS + sums_of(loop->regions[loop->nregions - 1u]); /* a while's second one is its body */
	for (unsigned i = 0; i < loop->nresults; i++) n += pressure_registers(loop->results[i]);
	for (unsigned i = 0; i < f->n; i++)
		if (takes(&f->found[i], loop)) n += f->found[i].registers;
	return n;
}

/* Bytes of the slots of what the loop itself may copy ahead, as many as the user wants. */
static uint64_t slots_of(const finder *f, const operand *x, const ir_op *loop)
{
	if (loop->kind != IR_FOR) return 0;
	unsigned stages = ir_get_num_stages(loop) ? ir_get_num_stages(loop) : f->func->num_stages;
	const ir_block *body = loop->regions[0];
	uint64_t bytes = 0;
	for (const ir_op *o = body->first; o; o = o->next) {
		bool load = o->kind == IR_LOAD || o->kind == IR_BULK_LOAD;
		if (!load || o == x->of.load || ir_is_scalar(o->results[0])) continue;
		if (o->kind == IR_LOAD && !ir_leads_to_product(body, o->results[0], IR_MOST_STEPS)) continue;
		ir_type t = o->results[0]->type;
		uint64_t one = (uint64_t)ir_elements(t) * ir_element_bytes(t) * row_group_parts(f->func, o);
		bytes += (one + BULK_ALIGN - 1) / BULK_ALIGN * BULK_ALIGN;
	}
	return stages < 2 || !bytes ? 0 : stages * bytes + SCRATCH_SLACK;
}

/* The most that is needed at a time in the block, beside what stays. */
static uint64_t peak_of(const finder *f, const operand *x, const ir_block *b)
{
	uint64_t peak = 0;
	for (const ir_op *o = b->first; o; o = o->next) {
		uint64_t inside = 0, here = scratch_lasts(o) ? 0 : scratch_bytes(f->func, o);
		for (unsigned r = 0; r < o->nregions && ir_has(o, IR_CONTROL); r++) {
			uint64_t one = peak_of(f, x, o->regions[r]);
			if (one > inside) inside = one;
		}
		here += inside + (ir_is_loop(o) ? slots_of(f, x, o) : 0);
		if (here > peak) peak = here;
	}
	return peak;
}

/* Shared memory holds the operand beside whatever the program needs of it, before and behind the loops too: nothing
 * that fits without it shall have fewer stages. */
static bool has_room(const finder *f, const operand *x)
{
	uint32_t most = f->context->target->shared_bytes;
	if (f->func->max_shared < most) most = f->func->max_shared;
	return scratch_place_lasting(f->func) + (uint64_t)x->of.bytes + peak_of(f, x, f->func->body) <= most;
}

typedef struct search {
	finder *f;
	operand *largest; /* that the loop with too much takes */
} search;

static void look(ir_op *o, void *context)
{
	search *s = context;
	const finder *f = s->f;
	if (s->largest || !ir_is_loop(o) || registers_in(f, o) <= pressure_most(f->func)) return;
	for (unsigned i = 0; i < f->n; i++) {
		operand *x = &s->f->found[i];
		bool larger = !s->largest || x->registers > s->largest->registers;
		if (larger && takes(x, o) && has_room(f, x)) s->largest = x;
	}
}

/* ---- what becomes of them ---- */

/* In front of each product, which reads what it needs while it multiplies. */
static void read_again(finder *f, const operand *x, unsigned i, ir_value *slot)
{
	ir_value *kept = x->of.by[i].op->results[0];
	while (kept->uses) {
		ir_op *product = kept->uses->user;
		ir_builder b = {.func = f->func, .block = product->block, .before = product, .at = product->at};
		ir_value *read = staged_read(f->context->arena, &x->of, i, &b, slot);
		for (unsigned k = 0; k < product->nargs; k++)
			if (ir_arg(product, k) == kept) ir_set_arg(product, k, read);
	}
}

static void keep(finder *f, operand *x)
{
	ir_op *load = x->of.load;
	ir_builder b = {.func = f->func, .block = load->block, .before = load, .at = load->at};
	staged_make_multibuffer(f->context, &x->of, 1, &b);
	ir_set_stays(x->of.multibuffer->def, true);
	ir_value *zero = ir_constant_int(&b, SCALAR_I32, 0);
	ir_value *copied[] = {x->of.multibuffer, zero, ir_arg(load, 0), load->nargs > 1 ? ir_arg(load, 1) : NULL};
	ir_set_width(ir_build(&b, IR_ASYNC_COPY, copied[3] ? 4 : 3, copied, 0, NULL, 0), x->of.width);
	ir_build(&b, IR_ASYNC_COMMIT, 0, NULL, 0, NULL, 0);
	ir_build(&b, IR_ASYNC_WAIT, 0, NULL, 0, NULL, 0);
	ir_build(&b, IR_CTA_BARRIER, 0, NULL, 0, NULL, 0);
	for (unsigned i = 0; i < x->of.nby; i++) {
		read_again(f, x, i, zero);
		pipeline_erase_chain(x->of.by[i].op, load);
	}
}

bool pass_shared_operands(pass_context *c, ir_func *func)
{
	finder f = {.context = c, .func = func};
	if (!pass_axis(c, func)) return false;
	ir_walk(func->body, find_operand, &f);
	while (f.n) {
		search s = {.f = &f};
		ir_walk(func->body, look, &s);
		if (!s.largest) break;
		keep(&f, s.largest);
		*s.largest = f.found[--f.n];
	}
	return true;
}
