/* How much code a kernel becomes, before any of it is made.
 *
 * In: a scheduled function.  Out: LLVM instructions of one thread, as the lowering will emit them, about; with the
 * operations that most of them are of.
 * The one idea: an operation becomes some instructions for each register of its tile, so code is layouts times a
 * number.  The number is in one table for elementwise operations, and for those that move data between threads it is
 * counted on the plans by which they are lowered.  tests/run/budget.sh compares with what was emitted. */
#include "code_size.h"

#include "target/nvptx/mma/sync.h"
#include "async/scratch.h"
#include "target/nvptx/mma/wgmma.h"

#include <assert.h>
#include <string.h>

enum {
	ENTRY = 10,        /* of a kernel: coordinates */
	ACCESS = 4,        /* of shared memory: address and all */
	SHUFFLE = 3,       /* of 32 bits, with what makes a word of an element */
	MOST_WORDS = 128,  /* beyond, sorts are loops (sort.c) */
	ROLLED_STEP = 250, /* a register, of such loops */
	FP8_BY_HAND = 25,  /* a conversion below sm_89 */
};

/* Per register, in the types that have instructions; 0 in the table is 1. */
static const uint8_t per_register[IR_KIND_COUNT] = {
	[IR_DIV] = 6,
	[IR_REM] = 4,
	[IR_SHL] = 3,
	[IR_SHR] = 3,
	[IR_UMULHI] = 4,
	[IR_PTR_ADD] = 2,
	[IR_CONVERT] = 3,
	[IR_WGMMA_WAIT] = 2,
	[IR_ASSERT] = 12,
	[IR_INLINE_ASM] = 5,
	[IR_ASYNC_COPY] = 3,
	[IR_MULTIBUFFER_READ] = 4,
	[IR_BULK_LOAD] = 4,
	[IR_BULK_STORE] = 6,
	[IR_ATOMIC_RMW] = 6,
	[IR_ATOMIC_CAS] = 6,
	[IR_WGMMA] = 6,
};

typedef struct counter {
	const blk_target *target;
	const ir_func *func;
	code_size *size;
} counter;

static uint64_t registers(const ir_value *v)
{
	return v->layout ? layout_registers(v->layout) : 1;
}

static uint64_t words(const ir_value *v)
{
	return ir_element_bytes(v->type) > 4 ? 2 : 1;
}

static scalar type_of(const ir_value *v)
{
	return v->type.pointer ? SCALAR_U64 : (scalar)v->type.elem;
}

static bool is_half(scalar s)
{
	return s == SCALAR_F16 || s == SCALAR_BF16;
}

static uint64_t of_convert(const counter *c, const ir_op *o)
{
	scalar from = type_of(ir_arg(o, 0)), to = type_of(o->results[0]);
	uint64_t hard = scalar_is_fp8(from) || scalar_is_fp8(to)
				? (target_can(c->target, TARGET_CONVERTS_FP8) ? 6 : FP8_BY_HAND)
				: 3;
	if (from == SCALAR_BF16 || to == SCALAR_BF16) hard += 2;
	if (!scalar_is_float(from) && !scalar_is_float(to)) hard = 1;
	return hard * registers(o->results[0]);
}

static uint64_t of_elementwise(const counter *c, const ir_op *o)
{
	assert(ir_has(o, IR_ELEMENTWISE));
	scalar s = type_of(o->results[0]);
	uint64_t n = per_register[o->kind] ? per_register[o->kind] : 1;
	int64_t known;
	if (o->kind == IR_CONVERT) return of_convert(c, o);
	if (o->kind == IR_BITCAST) return registers(o->results[0]);
	if (o->kind == IR_DIV && scalar_is_float(s)) n = 1;
	if ((o->kind == IR_SHL || o->kind == IR_SHR) && ir_arg(o, 1)->def && ir_is_const_int(ir_arg(o, 1), &known))
		n = 1;
	if (is_half(s) && (ir_has(o, IR_MATH) || o->kind == IR_DIV)) n = s == SCALAR_BF16 ? 8 : 4;
	return n * registers(o->results[0]);
}

/* The access's elements come in and go out by words; masks and addresses are other operations'. */
static uint64_t of_access(const ir_op *o)
{
	const ir_value *v = o->kind == IR_STORE ? ir_arg(o, 1) : o->results[0];
	return registers(v) * (ir_element_bytes(v->type) < 4 ? 3 : 2);
}

/* Of what combines two values: an instruction, or a region of them. */
static uint64_t of_combining(const counter *c, const ir_op *o)
{
	uint64_t n = 0;
	if (ir_get_combine(o) != IR_CUSTOM) return is_half(type_of(ir_arg(o, 0))) ? 2 : 1;
	for (const ir_op *p = o->regions[0]->first; p; p = p->next)
		n += ir_has(p, IR_ELEMENTWISE) ? of_elementwise(c, p) : 1;
	return n;
}

static uint64_t all_words(const ir_op *o)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < o->nargs; i++) n += words(ir_arg(o, i));
	return n;
}

static uint64_t of_reduce(const counter *c, const ir_op *o)
{
	assert(o->kind == IR_REDUCE);
	reduce_plan plan;
	uint64_t live = registers(ir_arg(o, 0)), each = of_combining(c, o), n = 0, operands = all_words(o);
	uint64_t ordered = ir_get_combine(o) == IR_CUSTOM ? 2 : 0;
	reduce_plan_make(o, &plan);
	for (uint32_t s = 0; s < plan.nsteps; s++) {
		const reduce_step *step = &plan.step[s];
		if (step->in == LAYOUT_REG) n += (live /= 2) * each;
		if (step->in == LAYOUT_LANE)
			n += live * (each + operands * (SHUFFLE + ordered) + (operands > o->nargs) * 5);
		if (step->in == LAYOUT_WARP)
			n += live * ((each + operands) << step->nbits) + 2 * live * operands * ACCESS;
	}
	return n;
}

/* The steps at a scan's end that are rolled up where its registers are too many: all of a thread are moved to memory
 * and back, and code is made for those of a piece (scan.c). */
static uint32_t rolled_steps(const ir_op *o, const reduce_plan *plan)
{
	uint32_t n = 0;
	while (n < plan->nsteps && plan->step[plan->nsteps - 1 - n].in == LAYOUT_REG) n++;
	return n < plan->nsteps && registers(ir_arg(o, 0)) * all_words(o) > MOST_WORDS ? n : 0;
}

/* Runs of steps: totals, and what stands before them, which every group of registers gets. */
static uint64_t of_scan(const counter *c, const ir_op *o)
{
	assert(o->kind == IR_SCAN);
	reduce_plan plan;
	uint64_t held = registers(ir_arg(o, 0)), operands = all_words(o), n = 0;
	uint64_t each = of_combining(c, o), before = each + 3 * operands;
	reduce_plan_make(o, &plan);
	uint32_t rolled = rolled_steps(o, &plan), nsteps = plan.nsteps - rolled;
	uint64_t all = held >> rolled, live = all, groups = all;
	for (uint32_t s = 0; s < nsteps; s++) {
		const reduce_step *step = &plan.step[s];
		bool begins = s == 0 || plan.step[s - 1].in != step->in;
		if (step->in == LAYOUT_REG) {
			live /= 2;
			groups /= plan.step[0].in == LAYOUT_REG && live * 2 == groups ? 2 : 1;
			n += live * (each + (groups > live ? before : 0));
			continue;
		}
		if (step->in == LAYOUT_LANE) n += live * (2 * each + operands * (SHUFFLE + 6));
		if (step->in == LAYOUT_WARP) n += live * (((each + 2 * operands) << step->nbits) + 2 * ACCESS);
		if (begins) n += groups * before;
	}
	return n + all * before + (rolled ? 4 * held * operands + 2 * all * before : 0);
}

static uint64_t of_sort(const ir_op *o)
{
	assert(o->kind == IR_SORT);
	const ir_value *v = ir_arg(o, 0);
	uint64_t n = registers(v), room = n * words(v), bits = 0, steps;
	while (UINT64_C(1) << bits < v->type.dim[ir_get_axis(o)]) bits++;
	steps = bits * (bits + 1) / 2;
	if (room > MOST_WORDS && ir_get_k(o) == 0) return n * (2 * ACCESS) + 8192 + bits * ROLLED_STEP;
	return n * steps * 4 * words(v) + n * 8;
}

static uint64_t of_conversion(const ir_op *o)
{
	assert(o->kind == IR_CONVERT_LAYOUT);
	layout_plan plan;
	const ir_value *from = ir_arg(o, 0);
	uint64_t in = registers(from), out = registers(o->results[0]);
	layout_plan_conversion(from->layout, o->results[0]->layout, ir_element_bytes(from->type), &plan);
	if (plan.kind == LAYOUT_SAME || plan.kind == LAYOUT_REGISTERS) return 0;
	if (plan.kind == LAYOUT_SHUFFLES)
		return in * plan.nbefore +
		       out * (plan.nafter + (SHUFFLE + (ir_element_bytes(from->type) < 4)) * words(from));
	return in * ACCESS + out * ACCESS;
}

static uint64_t of_dot(const counter *c, const ir_op *o)
{
	assert(o->kind == IR_DOT);
	const mma_form *form = mma_form_of(c->target, o);
	const ir_value *a = ir_arg(o, 0), *b = ir_arg(o, 1);
	uint64_t k = a->type.dim[a->type.rank - 1], sum = registers(o->results[0]);
	uint64_t in = registers(a) + registers(b), late = 0;
	for (unsigned i = 0; i < 2; i++) late += multibuffer_read_by_dot(o, i) ? registers(ir_arg(o, i)) * 3 : 0;
	if (!form) return 0;
	if (!form->name) return k * sum + SHUFFLE * (4 * registers(a) + 8 * registers(b)) + late;
	uint64_t steps = (k + form->k - 1u) / form->k, each = form->m / 4u,
		 parts = form->precision == IR_TF32X3 ? 3 : 1;
	uint64_t starts = (sum + each - 1) / each;
	return starts * steps * parts * (1 + each) + in * (parts > 1 ? 4 : 2) + late;
}

static uint64_t of_region_values(const ir_op *o)
{
	uint64_t n = 12;
	for (unsigned i = 0; i < o->nresults; i++) n += 2 * registers(o->results[i]);
	return n;
}

static uint64_t of_print(const ir_op *o)
{
	uint64_t most = 1;
	for (unsigned i = 0; i < o->nargs; i++)
		if (registers(ir_arg(o, i)) > most) most = registers(ir_arg(o, i));
	return most * (20 + 4 * (uint64_t)o->nargs) + 20;
}

static uint64_t most_registers(const ir_op *o)
{
	uint64_t n = 1;
	for (unsigned i = 0; i < o->nargs; i++)
		if (registers(ir_arg(o, i)) > n) n = registers(ir_arg(o, i));
	for (unsigned i = 0; i < o->nresults; i++)
		if (registers(o->results[i]) > n) n = registers(o->results[i]);
	return n;
}

static uint64_t of_op(const counter *c, const ir_op *o)
{
	if (ir_has(o, IR_ELEMENTWISE)) return of_elementwise(c, o);
	switch (o->kind) {
	case IR_CONST:
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_RESHAPE:
	case IR_PERMUTE:
	case IR_HINT:
	case IR_JOIN:
	case IR_SPLIT:
	case IR_YIELD:
	case IR_CONDITION:
	case IR_RETURN: return 0;
	case IR_LOAD:
	case IR_STORE: return of_access(o);
	case IR_REDUCE: return of_reduce(c, o);
	case IR_SCAN: return of_scan(c, o);
	case IR_SORT: return of_sort(o);
	case IR_FLIP: return most_registers(o) * 2 * ACCESS;
	case IR_GATHER: return registers(ir_arg(o, 0)) * ACCESS + registers(o->results[0]) * 2 * ACCESS;
	case IR_HISTOGRAM: return registers(ir_arg(o, 0)) * 2 * ACCESS + registers(o->results[0]) * 2 * ACCESS + 150;
	case IR_CONVERT_LAYOUT: return of_conversion(o);
	case IR_DOT: return of_dot(c, o);
	case IR_PRINT: return of_print(o);
	case IR_IF:
	case IR_FOR:
	case IR_WHILE: return of_region_values(o);
	default: return most_registers(o) * (per_register[o->kind] ? per_register[o->kind] : 1);
	}
}

static void note(code_size *s, const ir_op *o, uint64_t n)
{
	unsigned i = CODE_SIZE_WORST;
	s->all += n;
	while (i > 0 && s->worst[i - 1].instructions < n) i--;
	if (i == CODE_SIZE_WORST) return;
	memmove(&s->worst[i + 1], &s->worst[i], (CODE_SIZE_WORST - 1 - i) * sizeof s->worst[0]);
	s->worst[i] = (code_size_part){o, n};
}

static void count(counter *c, const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		note(c->size, o, of_op(c, o));
		if (ir_has(o, IR_CONTROL))
			for (unsigned r = 0; r < o->nregions; r++) count(c, o->regions[r]);
	}
}

code_size code_size_estimate(const pass_context *p, const ir_func *f)
{
	code_size s = {.all = ENTRY};
	counter c = {.target = p->target, .func = f, .size = &s};
	count(&c, f->body);
	return s;
}

/* ---- the budget ---- */

/* A consumer of a whole tile with all that it is made of. */
static uint64_t with_origins(const counter *c, const ir_op *consumer, arena *a)
{
	bool *seen = ARENA_ARRAY(a, bool, c->func->nvalues);
	VEC(const ir_op *) work = {0};
	uint64_t n = 0;
	if (!consumer->block || !ir_arg(consumer, 0)) return 0; /* has become another operation */
	for (vec_push(a, &work, consumer); work.n;) {
		const ir_op *o = work.at[--work.n];
		n += of_op(c, o);
		for (unsigned i = 0; i < o->nargs; i++) {
			const ir_value *v = ir_arg(o, i);
			const ir_op *from = v->def ? v->def : v->block->parent;
			if (from && !seen[v->id]) vec_push(a, &work, from);
			seen[v->id] = true;
		}
	}
	return n;
}

/* Those of much code, most first. */
static void label_whole(pass_context *p, diag *d, const ir_func *f, uint64_t all)
{
	code_size_part worst[CODE_SIZE_WORST + 1] = {{0}};
	const char *why[CODE_SIZE_WORST + 1];
	counter c = {.target = p->target, .func = f};
	for (uint32_t i = 0; i < p->whole.n; i++) {
		uint64_t n = with_origins(&c, p->whole.at[i].op, p->arena);
		unsigned k = CODE_SIZE_WORST;
		if (n && 10 * n < all) continue;
		for (; k > 0 && worst[k - 1].instructions < n; k--) worst[k] = worst[k - 1], why[k] = why[k - 1];
		worst[k] = (code_size_part){p->whole.at[i].op, n};
		why[k] = p->whole.at[i].why;
	}
	for (unsigned i = 0; i < CODE_SIZE_WORST && worst[i].op; i++)
		diag_add_label(p->diags, d, worst[i].op->at, "no loop over parts of this tile: %s", why[i]);
}

static void label(pass_context *p, diag *d, const ir_func *f, const code_size *s)
{
	for (unsigned i = 0; i < CODE_SIZE_WORST && s->worst[i].op; i++) {
		const ir_op *o = s->worst[i].op;
		if (10 * s->worst[i].instructions < s->all) break;
		const ir_value *v = o->nresults    ? o->results[0]
				    : o->nargs > 1 ? ir_arg(o, 1)
				    : o->nargs     ? ir_arg(o, 0)
						   : NULL;
		const char *of = v ? arena_printf(p->arena, " %s, %llu elements a thread",
					     ir_type_name(p->arena, v->type), (unsigned long long)registers(v))
				   : "";
		diag_add_label(p->diags, d, o->at, "about %u in 100 of them: %s%s",
			(unsigned)(100 * s->worst[i].instructions / s->all), ir_info(o)->name, of);
	}
	label_whole(p, d, f, s->all);
}

bool code_size_check(pass_context *p, const ir_func *f, const code_size *s, uint64_t most)
{
	enum { WARNS_AT = 5 };
	if (!most || s->all <= most / WARNS_AT) return true;
	bool fits = s->all <= most;
	span at = s->worst[0].op ? s->worst[0].op->at : f->at; /* none: nothing but the entry */
	diag *d = diag_add(p->diags, fits ? DIAG_WARNING : DIAG_ERROR, 723, at,
		"kernel '%s' becomes about %llu instructions a thread%s", f->name, (unsigned long long)s->all,
		fits ? "" : arena_printf(p->arena, ", more than %llu", (unsigned long long)most));
	label(p, d, f, s);
	diag_set_hint(p->diags, d,
		fits ? "smaller tiles, more warps or a loop over parts make less, and compile sooner"
		     : "smaller tiles, more warps or a loop over parts make less; --max-code=N allows more");
	return fits;
}
