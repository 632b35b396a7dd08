/* Registers by source line, estimated.
 *
 * In: a mapped function.  Out: for each source line how many registers of a thread hold values there, and which ones.
 * The one idea: a tile occupies its layout's registers from its definition to its last use, round a loop to the loop's
 * end.  Some values are not counted for what they look like, because the generated code does not hold them:
 * shape operations are their argument under another name, and what is computed from aranges and scalars alone (offsets,
 * pointers, masks) is one run-time part and constants folded into addresses.  Steps inside one expression pass through
 * element by element.
 *
 * ptxas decides in the end; the estimate is for telling which lines to look at. */
#include "pressure.h"

#include <stdlib.h>
#include <string.h>

typedef struct life {
	uint32_t first, last; /* positions; first == last: never read again */
	uint32_t registers;   /* 0: not counted */
} life;

typedef struct loop {
	uint32_t begin, end;
} loop;

typedef struct place {
	const ir_op *op;
	uint32_t loop; /* the innermost one around it, plus 1; 0: none */
} place;

typedef struct estimate {
	arena *arena;
	VEC(place) positions;
	VEC(loop) loops;
	VEC(uint32_t) outer; /* by loop: the one around it, plus 1 */
	uint32_t *at_loop;   /* by value: the loop in which it is defined, plus 1 */
	life *lives;         /* by value */
	bool *index;         /* by value: an offset, pointer or mask */
	const ir_value **values;
} estimate;

/* The value that holds what this one shows under another shape. */
static const ir_value *root(const ir_value *v)
{
	while (v->def && (ir_has(v->def, IR_SHAPE) || v->def->kind == IR_HINT) && v->def->nargs == 1)
		v = ir_arg(v->def, 0);
	return v;
}

/* Made of aranges and scalars alone; operands come before their users, so each value is looked at once. */
static bool is_index(const estimate *e, const ir_value *v)
{
	if (ir_is_scalar(v)) return true;
	if (!v->def) return false;
	if (v->def->kind == IR_CONST || v->def->kind == IR_ARANGE) return true;
	if (!ir_has(v->def, IR_ELEMENTWISE) || (!v->type.pointer && scalar_is_float(v->type.elem))) return false;
	for (unsigned i = 0; i < v->def->nargs; i++)
		if (!e->index[root(ir_arg(v->def, i))->id]) return false;
	return true;
}

/* A step inside one expression, as of an exponential's polynomial: computed element by element. */
static bool is_step(const ir_value *v)
{
	if (!v->def || !ir_has(v->def, IR_ELEMENTWISE) || !v->uses) return false;
	span at = v->def->at;
	for (const ir_use *u = v->uses; u; u = u->next)
		if (!ir_has(u->user, IR_ELEMENTWISE) || u->user->at.file != at.file || u->user->at.begin > at.begin ||
			u->user->at.end < at.end)
			return false;
	return true;
}

static uint32_t registers_of(const estimate *e, const ir_value *v)
{
	unsigned bytes = ir_element_bytes(v->type), words = bytes > 4 ? 2 : 1;
	if (v->def && v->def->kind == IR_CONST) return 0;
	if (ir_is_scalar(v) || !v->layout || e->index[v->id] || is_step(v)) return words;
	if (v->type.elem == SCALAR_BOOL && !v->type.pointer) return (layout_registers(v->layout) + 31) / 32;
	uint32_t all = layout_registers(v->layout) * bytes / 4;
	return all ? all : 1;
}

static void define(estimate *e, const ir_value *v, uint32_t position, uint32_t in_loop)
{
	assert(!e->values[v->id]);
	e->values[v->id] = v;
	e->at_loop[v->id] = in_loop;
	e->index[v->id] = is_index(e, v);
	e->lives[v->id] = (life){position, position, root(v) == v ? registers_of(e, v) : 0};
}

static void use(estimate *e, const ir_value *v, uint32_t position, uint32_t in_loop)
{
	v = root(v);
	assert(e->values[v->id]); /* operands come before their users */
	for (; in_loop && in_loop != e->at_loop[v->id]; in_loop = e->outer.at[in_loop - 1])
		if (e->lives[v->id].first < e->loops.at[in_loop - 1].begin) position = e->loops.at[in_loop - 1].end;
	if (e->lives[v->id].last < position) e->lives[v->id].last = position;
}

static void number(estimate *e, const ir_block *b, uint32_t in_loop);

static void number_op(estimate *e, const ir_op *o, uint32_t in_loop)
{
	uint32_t here = e->positions.n, inside = in_loop;
	assert(in_loop <= e->loops.n);
	vec_push(e->arena, &e->positions, ((place){o, in_loop}));
	if (ir_is_loop(o)) {
		vec_push(e->arena, &e->loops, ((loop){here, here}));
		vec_push(e->arena, &e->outer, in_loop);
		inside = e->loops.n;
	}
	if (o->kind != IR_REDUCE && o->kind != IR_SCAN)
		for (unsigned r = 0; r < o->nregions; r++) number(e, o->regions[r], inside);
	if (inside != in_loop) e->loops.at[inside - 1].end = e->positions.n;
	for (unsigned i = 0; i < o->nresults; i++)
		define(e, o->results[i], inside != in_loop ? e->positions.n - 1 : here, in_loop);
}

static void number(estimate *e, const ir_block *b, uint32_t in_loop)
{
	for (uint32_t i = 0; i < b->nargs; i++) define(e, b->args[i], e->positions.n, in_loop);
	for (const ir_op *o = b->first; o; o = o->next) number_op(e, o, in_loop);
}

static int by_place(const void *x, const void *y)
{
	const pressure_line *a = x, *b = y;
	if (a->file != b->file) return a->file->index < b->file->index ? -1 : 1;
	if (a->line != b->line) return a->line < b->line ? -1 : 1;
	if (a->registers != b->registers) return a->registers < b->registers ? 1 : -1;
	return (a->position > b->position) - (a->position < b->position);
}

static int by_registers(const void *x, const void *y)
{
	const pressure_line *a = x, *b = y;
	if (a->registers != b->registers) return a->registers < b->registers ? 1 : -1;
	return by_place(x, y);
}

static void add_value(pressure_line *l, const ir_value *v, uint32_t registers)
{
	assert(registers);
	unsigned i = PRESSURE_VALUES;
	while (i > 0 && l->most[i - 1].registers < registers) i--;
	if (i == PRESSURE_VALUES) return;
	memmove(&l->most[i + 1], &l->most[i], (PRESSURE_VALUES - 1 - i) * sizeof l->most[0]);
	l->most[i] = (pressure_value){v, registers};
}

/* One entry a line, at its worst operation. */
static void fill_lines(estimate *e, pressure *p, const uint32_t *live)
{
	pressure_line *all = ARENA_ARRAY(e->arena, pressure_line, e->positions.n + 1);
	uint32_t n = 0;
	for (uint32_t i = 0; i < e->positions.n; i++) {
		span at = e->positions.at[i].op->at;
		if (!at.file || !live[i]) continue;
		uint32_t line = source_locate(e->arena, at).line;
		all[n++] =
			(pressure_line){.file = at.file, .line = line, .at = at, .position = i, .registers = live[i]};
	}
	qsort(all, n, sizeof all[0], by_place);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || all[i].file != all[i - 1].file || all[i].line != all[i - 1].line)
			vec_push(e->arena, &p->lines, all[i]);
	if (n) qsort(p->lines.at, p->lines.n, sizeof all[0], by_registers);
}

pressure pressure_estimate(arena *a, const ir_func *f)
{
	enum { NAMED_LINES = 3 };
	pressure p = {0};
	estimate e = {.arena = a};
	e.at_loop = ARENA_ARRAY(a, uint32_t, f->nvalues);
	e.index = ARENA_ARRAY(a, bool, f->nvalues);
	e.lives = ARENA_ARRAY(a, life, f->nvalues);
	e.values = ARENA_ARRAY(a, const ir_value *, f->nvalues);
	number(&e, f->body, 0);
	uint32_t *live = ARENA_ARRAY(a, uint32_t, e.positions.n + 1u);
	for (uint32_t i = 0; i < e.positions.n; i++)
		for (unsigned k = 0; k < e.positions.at[i].op->nargs; k++)
			use(&e, ir_arg(e.positions.at[i].op, k), i, e.positions.at[i].loop);
	for (uint32_t v = 0; v < f->nvalues; v++) {
		assert(e.lives[v].first <= e.lives[v].last && e.lives[v].last <= e.positions.n);
		live[e.lives[v].first] += e.lives[v].registers;
		live[e.lives[v].last] -= e.lives[v].registers;
	}
	for (uint32_t i = 1; i < e.positions.n; i++) live[i] += live[i - 1];
	fill_lines(&e, &p, live);
	for (uint32_t i = 0; i < p.lines.n && i < NAMED_LINES; i++)
		for (uint32_t v = 0; v < f->nvalues; v++)
			if (e.lives[v].registers && e.lives[v].first <= p.lines.at[i].position &&
				p.lines.at[i].position < e.lives[v].last)
				add_value(&p.lines.at[i], e.values[v], e.lives[v].registers);
	return p;
}

uint32_t pressure_most(const ir_func *f)
{
	assert(f->num_warps && f->row_groups);
	uint32_t most = TARGET_SM_REGISTERS / (32 * ir_warps(f));
	if (most > TARGET_THREAD_REGISTERS) most = TARGET_THREAD_REGISTERS;
	return f->maxnreg && f->maxnreg < most ? f->maxnreg : most;
}

uint32_t pressure_most_beside_producer(const ir_func *f)
{
	uint32_t left = TARGET_SM_REGISTERS / 32 - 4 * TARGET_PRODUCER_REGISTERS;
	uint32_t most = left / ir_warps(f) / TARGET_REGISTER_UNIT * TARGET_REGISTER_UNIT;
	return most > TARGET_CONSUMER_REGISTERS ? TARGET_CONSUMER_REGISTERS : most;
}

uint32_t pressure_registers(const ir_value *v)
{
	return v->layout ? (layout_registers(v->layout) * ir_element_bytes(v->type) + 3) / 4 : 1;
}

void pressure_label(diags *ds, diag *d, arena *a, const ir_func *f)
{
	enum { LABELS = 3, FEW = 4 };
	pressure p = pressure_estimate(a, f);
	for (uint32_t i = 0; i < p.lines.n && i < LABELS; i++) {
		const pressure_line *l = &p.lines.at[i];
		text what = {.arena = a};
		if (2 * l->registers < p.lines.at[0].registers) break;
		for (unsigned k = 0; k < PRESSURE_VALUES && l->most[k].value; k++) {
			if (l->most[k].registers < FEW) break;
			const ir_value *v = l->most[k].value;
			text_printf(&what, "%s%s%s%s in %u", k ? ", " : ": ", v->name ? v->name : "",
				v->name ? " " : "", ir_type_name(a, v->type), l->most[k].registers);
		}
		diag_add_label(
			ds, d, l->at, "about %u registers hold values here%s", l->registers, what.at ? what.at : "");
	}
}
