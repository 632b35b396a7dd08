/* Random programs on the cpu device against an evaluator that stores every tile and knows nothing of fusion.
 *
 * The programs use i32, so that every result is exact; their loads and stores overlap in one buffer; values are used
 * again and again, across regions, through shape operations, carried around loops and traded between them.
 * $BLK_TEST_SEED and $BLK_TEST_COUNT choose others. */
#include "cpu_fixture.h"

enum { MEMORY = 2048, MAX_POOL = 4000, MAX_CARRIED = 4 };

/* ---- the evaluator ---- */

typedef struct machine {
	arena *arena;
	uint64_t **value; /* by id: an element a word */
	uint64_t pid;
} machine;

static void evaluate_block(machine *m, const ir_block *b);

static uint64_t *new_value(machine *m, const ir_value *v)
{
	return m->value[v->id] = ARENA_ARRAY(m->arena, uint64_t, ir_elements(v->type));
}

static void copy_value(machine *m, const ir_value *to, const uint64_t *from)
{
	uint64_t *fresh = ARENA_ARRAY(m->arena, uint64_t, ir_elements(to->type));
	memcpy(fresh, from, ir_elements(to->type) * sizeof *fresh);
	m->value[to->id] = fresh;
}

static void unflatten(ir_type t, uint64_t linear, uint64_t *index)
{
	for (unsigned d = t.rank; d-- > 0; linear /= t.dim[d]) index[d] = linear % t.dim[d];
}

static uint64_t flatten(ir_type t, const uint64_t *index)
{
	uint64_t linear = 0;
	for (unsigned d = 0; d < t.rank; d++) linear = linear * t.dim[d] + index[d];
	return linear;
}

/* Which element of the operand an element of a shape operation's result is. */
static uint64_t source_element(const ir_op *o, uint64_t linear)
{
	ir_type from = ir_arg(o, 0)->type, to = o->results[0]->type;
	uint64_t index[IR_MAX_RANK], inner[IR_MAX_RANK];
	unflatten(to, linear, index);
	for (unsigned d = 0; d < from.rank; d++)
		if (o->kind == IR_BROADCAST)
			inner[d] = from.dim[d] == 1 ? 0 : index[d];
		else if (o->kind == IR_PERMUTE)
			inner[ir_unpack(ir_get_order(o), d)] = index[d];
	if (o->kind == IR_SPLAT) return 0;
	return o->kind == IR_BROADCAST || o->kind == IR_PERMUTE ? flatten(from, inner) : linear;
}

static uint64_t apply(const ir_op *o, uint64_t x, uint64_t y, uint64_t z)
{
	int32_t a = (int32_t)x, b = (int32_t)y;
	switch (o->kind) {
	case IR_ADD: return (uint32_t)(x + y);
	case IR_SUB: return (uint32_t)(x - y);
	case IR_MUL: return (uint32_t)(x * y);
	case IR_DIV: return b == 0 ? 0 : (uint32_t)((int64_t)a / b);
	case IR_XOR: return x ^ y;
	case IR_AND: return x & y;
	case IR_MAX: return (uint32_t)(a > b ? a : b);
	case IR_LT: return a < b;
	case IR_SELECT: return x ? y : z;
	case IR_CONVERT: return x != 0;
	case IR_PTR_ADD: return x + (uint64_t)((int64_t)b * 4);
	default: fail_msg("the evaluator lacks %s", ir_info(o)->name); return 0;
	}
}

static uint64_t combine(ir_combine c, uint64_t x, uint64_t y)
{
	return c == IR_SUM ? (uint32_t)(x + y) : c == IR_XOR_SUM ? x ^ y : (int32_t)x > (int32_t)y ? x : y;
}

static void evaluate_reduce(machine *m, const ir_op *o)
{
	ir_type t = ir_arg(o, 0)->type;
	unsigned axis = ir_get_axis(o);
	uint64_t inner = 1, n = t.dim[axis], count = ir_elements(t) / n;
	for (unsigned d = axis + 1; d < t.rank; d++) inner *= t.dim[d];
	for (unsigned i = 0; i < o->nresults; i++) new_value(m, o->results[i]);
	for (uint64_t e = 0; e < count; e++) {
		uint64_t first = e / inner * inner * n + e % inner, acc[2], next[2];
		for (uint64_t k = 0; k < n; k++) {
			for (unsigned i = 0; i < o->nargs; i++) next[i] = m->value[ir_arg(o, i)->id][first + k * inner];
			if (k == 0) {
				memcpy(acc, next, sizeof acc);
			} else if (ir_get_combine(o) != IR_CUSTOM) {
				acc[0] = combine(ir_get_combine(o), acc[0], next[0]);
			} else {
				ir_block *r = o->regions[0];
				for (unsigned i = 0; i < 2; i++) {
					*new_value(m, r->args[i]) = acc[i];
					*new_value(m, r->args[2 + i]) = next[i];
				}
				evaluate_block(m, r);
				for (unsigned i = 0; i < 2; i++) acc[i] = *m->value[ir_arg(r->last, i)->id];
			}
		}
		for (unsigned i = 0; i < o->nresults; i++) m->value[o->results[i]->id][e] = acc[i];
	}
}

static void yield_to(machine *m, const ir_op *y, unsigned from, ir_value *const *to, unsigned n)
{
	const uint64_t *old[MAX_CARRIED + 2];
	for (unsigned i = 0; i < n; i++) old[i] = m->value[ir_arg(y, from + i)->id];
	for (unsigned i = 0; i < n; i++) copy_value(m, to[i], old[i]);
}

static void evaluate_loop(machine *m, const ir_op *o)
{
	ir_block *first = o->regions[0];
	if (o->kind == IR_FOR) {
		int64_t lo = (int32_t)*m->value[ir_arg(o, 0)->id], hi = (int32_t)*m->value[ir_arg(o, 1)->id];
		int64_t step = (int32_t)*m->value[ir_arg(o, 2)->id];
		yield_to(m, o, 3, first->args + 1, o->nresults);
		for (int64_t i = lo; step > 0 ? i < hi : i > hi; i += step) {
			*new_value(m, first->args[0]) = (uint32_t)i;
			evaluate_block(m, first);
			yield_to(m, first->last, 0, first->args + 1, o->nresults);
		}
		for (unsigned i = 0; i < o->nresults; i++)
			copy_value(m, o->results[i], m->value[first->args[i + 1]->id]);
		return;
	}
	yield_to(m, o, 0, first->args, first->nargs);
	for (;;) {
		evaluate_block(m, first);
		yield_to(m, first->last, 1, o->regions[1]->args, o->regions[1]->nargs);
		if (!*m->value[ir_arg(first->last, 0)->id]) break;
		evaluate_block(m, o->regions[1]);
		yield_to(m, o->regions[1]->last, 0, first->args, first->nargs);
	}
	yield_to(m, first->last, 1, o->results, o->nresults);
}

static void evaluate_memory(machine *m, const ir_op *o)
{
	uint64_t n = ir_elements(ir_arg(o, 0)->type);
	const uint64_t *at = m->value[ir_arg(o, 0)->id];
	unsigned mask_at = o->kind == IR_LOAD ? 1 : 2;
	const uint64_t *mask = o->nargs > mask_at ? m->value[ir_arg(o, mask_at)->id] : NULL;
	uint64_t *r = o->kind == IR_LOAD ? new_value(m, o->results[0]) : NULL;
	for (uint64_t i = 0; i < n; i++) {
		int32_t *p = (int32_t *)(uintptr_t)at[i];
		bool on = !mask || mask[i];
		if (r)
			r[i] = on ? (uint32_t)*p : o->nargs > 2 ? m->value[ir_arg(o, 2)->id][i] : 0;
		else if (on)
			*p = (int32_t)m->value[ir_arg(o, 1)->id][i];
	}
}

static void evaluate(machine *m, const ir_op *o)
{
	switch (o->kind) {
	case IR_LOAD:
	case IR_STORE: evaluate_memory(m, o); return;
	case IR_REDUCE: evaluate_reduce(m, o); return;
	case IR_FOR:
	case IR_WHILE: evaluate_loop(m, o); return;
	case IR_IF: {
		const ir_block *r = o->regions[*m->value[ir_arg(o, 0)->id] ? 0 : 1];
		evaluate_block(m, r);
		yield_to(m, r->last, 0, o->results, o->nresults);
		return;
	}
	case IR_YIELD:
	case IR_CONDITION:
	case IR_RETURN: return;
	default: break;
	}
	uint64_t *r = new_value(m, o->results[0]), n = ir_elements(o->results[0]->type);
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t *a[3] = {NULL};
		for (unsigned k = 0; k < o->nargs; k++) a[k] = m->value[ir_arg(o, k)->id];
		if (o->kind == IR_CONST)
			r[i] = ir_get_value(o);
		else if (o->kind == IR_ARANGE)
			r[i] = (uint32_t)(ir_get_lo(o) + (int64_t)i);
		else if (o->kind == IR_PROGRAM_ID)
			r[i] = m->pid;
		else if (ir_has(o, IR_SHAPE))
			r[i] = a[0][source_element(o, i)];
		else
			r[i] = apply(o, a[0][i], a[1] ? a[1][i] : 0, a[2] ? a[2][i] : 0);
	}
}

static void evaluate_block(machine *m, const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next) evaluate(m, o);
}

/* ---- the generator ---- */

typedef struct generator {
	fixture t;
	uint64_t state;
	ir_value *pool[MAX_POOL]; /* i32 values that are visible here */
	unsigned n, budget;
	ir_value *writable, *constant;
} generator;

static unsigned pick(generator *g, unsigned n)
{
	return (unsigned)(random_bits(&g->state) % n);
}

static void add(generator *g, ir_value *v)
{
	if (g->n < MAX_POOL) g->pool[g->n++] = v;
}

static ir_value *any(generator *g)
{
	/* recent values more often, so that chains grow */
	unsigned back = pick(g, 3) ? pick(g, g->n < 6 ? g->n : 6) : pick(g, g->n);
	return g->pool[g->n - 1 - back];
}

static ir_value *any_scalar(generator *g)
{
	for (int i = 0; i < 20; i++) {
		ir_value *v = any(g);
		if (ir_is_scalar(v)) return v;
	}
	return i32(&g->t, (int64_t)pick(g, 9) - 4);
}

static ir_value *any_of(generator *g, ir_type type)
{
	for (int i = 0; i < 20; i++) {
		ir_value *v = any(g);
		if (ir_type_equal(v->type, type)) return v;
	}
	return type.rank ? ir_splat(&g->t.b, any_scalar(g), type) : any_scalar(g);
}

static ir_type any_shape(generator *g)
{
	static const ir_type shapes[] = {{SCALAR_I32, 0, 1, {8}}, {SCALAR_I32, 0, 1, {16}}, {SCALAR_I32, 0, 2, {4, 4}},
		{SCALAR_I32, 0, 2, {2, 8}}, {SCALAR_I32, 0, 2, {8, 1}}, {SCALAR_I32, 0, 2, {1, 8}},
		{SCALAR_I32, 0, 3, {2, 2, 4}}, {SCALAR_I32, 0, 1, {64}}, {SCALAR_I32, 0, 2, {8, 8}},
		{SCALAR_I32, 0, 1, {1}}, {SCALAR_I32, 0, 1, {24}}, {SCALAR_I32, 0, 2, {3, 8}},
		{SCALAR_I32, 0, 2, {4, 6}}, {SCALAR_I32, 0, 1, {3}}};
	return shapes[pick(g, sizeof shapes / sizeof shapes[0])];
}

static ir_value *any_mask(generator *g, ir_type type)
{
	return ir_binary(&g->t.b, IR_LT, any_of(g, type), any_of(g, type));
}

static ir_value *address_of(generator *g, ir_type type, bool constant)
{
	ir_value *at = type.rank ? row_major(&g->t, type) : i32(&g->t, 0);
	ir_value *start = i32(&g->t, pick(g, constant ? 100 : 400)), *base = constant ? g->constant : g->writable;
	at = ir_binary(&g->t.b, IR_ADD, at, ir_splat(&g->t.b, start, type));
	return type.rank ? pointers(&g->t, base, at) : build(&g->t, IR_PTR_ADD, base->type, 2, base, at);
}

static void make_load(generator *g)
{
	ir_type type = pick(g, 5) ? any_shape(g) : ir_scalar_type(SCALAR_I32);
	ir_value *args[] = {address_of(g, type, pick(g, 2)), NULL, NULL};
	unsigned n = 1 + pick(g, 3);
	if (n > 1) args[1] = any_mask(g, type);
	if (n > 2) args[2] = any_of(g, type);
	add(g, ir_build1(&g->t.b, IR_LOAD, type, n, args));
}

static void make_store(generator *g)
{
	ir_value *v = any(g);
	store(&g->t, address_of(g, v->type, false), v, pick(g, 2) ? any_mask(g, v->type) : NULL);
}

static void make_elementwise(generator *g)
{
	static const ir_kind kinds[] = {IR_ADD, IR_SUB, IR_MUL, IR_XOR, IR_MAX, IR_AND, IR_DIV, IR_DIV, IR_SELECT};
	ir_kind k = kinds[pick(g, sizeof kinds / sizeof kinds[0])];
	ir_value *a = any(g), *b = any_of(g, a->type);
	if (k == IR_SELECT)
		add(g, build(&g->t, IR_SELECT, a->type, 3, any_mask(g, a->type), a, b));
	else
		add(g, ir_binary(&g->t.b, k, a, b));
}

static void make_shape(generator *g)
{
	ir_value *v = any(g), *r;
	ir_type t = v->type;
	unsigned which = pick(g, 4);
	if (t.rank == 0 && which == 0) {
		add(g, build(&g->t, IR_RESHAPE, pick(g, 2) ? tile(SCALAR_I32, 1) : tile2(SCALAR_I32, 1, 1), 1, v));
	} else if (t.rank && ir_elements(t) == 1) {
		add(g, build(&g->t, IR_RESHAPE, ir_scalar_type(SCALAR_I32), 1, v));
	} else if (t.rank == 0) {
		add(g, ir_splat(&g->t.b, v, any_shape(g)));
	} else if (which == 0 && t.rank == 2) {
		ir_type p = tile2(SCALAR_I32, t.dim[1], t.dim[0]);
		r = build(&g->t, IR_PERMUTE, p, 1, v);
		ir_set_order(r->def, ir_pack(2, (uint16_t[]){1, 0}));
		add(g, r);
	} else if (which == 1 && t.rank == 1) {
		unsigned axis = pick(g, 2);
		ir_type e = axis ? tile2(SCALAR_I32, t.dim[0], 1) : tile2(SCALAR_I32, 1, t.dim[0]);
		r = build(&g->t, IR_EXPAND_DIMS, e, 1, v);
		ir_set_axis(r->def, axis);
		add(g, r);
		e.dim[!axis ? 0 : 1] = 8;
		if (t.dim[0] <= 8) add(g, build(&g->t, IR_BROADCAST, e, 1, r));
	} else if (t.rank == 2 && (t.dim[0] == 1 || t.dim[1] == 1) && which == 2) {
		t.dim[t.dim[0] == 1 ? 0 : 1] = 4;
		add(g, build(&g->t, IR_BROADCAST, t, 1, v));
	} else {
		for (int i = 0; i < 10; i++) {
			ir_type s = any_shape(g);
			if (ir_elements(s) != ir_elements(v->type)) continue;
			add(g, build(&g->t, IR_RESHAPE, s, 1, v));
			return;
		}
	}
}

static void make_reduce(generator *g)
{
	ir_value *v = any(g), *args[2] = {v, NULL};
	if (v->type.rank == 0) return;
	unsigned axis = pick(g, v->type.rank), custom = pick(g, 3) == 0;
	ir_type result = {.elem = SCALAR_I32, .rank = v->type.rank - 1}, results[2];
	for (unsigned d = 0; d < result.rank; d++) result.dim[d] = v->type.dim[d + (d >= axis)];
	results[0] = results[1] = result;
	args[1] = custom ? any_of(g, v->type) : NULL;
	ir_op *o = ir_build(&g->t.b, IR_REDUCE, 1 + custom, args, 1 + custom, results, custom);
	static const ir_combine builtin[] = {IR_SUM, IR_MAXIMUM, IR_XOR_SUM};
	ir_set_axis(o, axis);
	ir_set_combine(o, custom ? IR_CUSTOM : builtin[pick(g, 3)]);
	if (custom) { /* (a1, a2) then (b1, b2): maps x -> a1 x + a2 composed, which is associative and not commutative
		       */
		ir_value *a[4];
		for (int i = 0; i < 4; i++) a[i] = ir_block_arg(o->regions[0], ir_scalar_type(SCALAR_I32), NULL);
		ir_builder outer = g->t.b;
		g->t.b.block = o->regions[0];
		ir_value *out[] = {ir_binary(&g->t.b, IR_MUL, a[0], a[2]),
			ir_binary(&g->t.b, IR_ADD, ir_binary(&g->t.b, IR_MUL, a[1], a[2]), a[3])};
		ir_yield(&g->t.b, 2, out);
		g->t.b = outer;
		add(g, o->results[1]);
	}
	add(g, o->results[0]);
}

static void make_block(generator *g, unsigned depth, unsigned count);

/* Fills a region that starts with `visible` values and ends by yielding values of the given types. */
static void fill_region(generator *g, ir_block *r, unsigned depth, const ir_type *types, unsigned n)
{
	ir_builder outer = g->t.b;
	unsigned visible = g->n;
	g->t.b.block = r;
	for (uint32_t i = 0; i < r->nargs; i++) add(g, r->args[i]);
	make_block(g, depth + 1, 1 + pick(g, 6));
	ir_value *out[MAX_CARRIED + 1];
	for (unsigned i = 0; i < n; i++) {
		out[i] = any_of(g, types[i]);
		if (r->parent->kind != IR_FOR || !types[i].rank || pick(g, 3)) continue;
		ir_value *by = ir_splat(&g->t.b, any_scalar(g), types[i]); /* a sliding tile */
		out[i] = ir_binary(&g->t.b, pick(g, 3) ? IR_ADD : IR_SUB, r->args[i + 1], by);
	}
	ir_yield(&g->t.b, n, out);
	g->n = visible;
	g->t.b = outer;
}

static unsigned any_values(generator *g, ir_value **v, ir_type *types)
{
	unsigned n = 1 + pick(g, MAX_CARRIED - 1);
	for (unsigned i = 0; i < n; i++) {
		v[i] = i && pick(g, 2) ? any_of(g, v[0]->type) : any(g); /* like types, so that they can trade places */
		types[i] = v[i]->type;
	}
	return n;
}

static void make_if(generator *g, unsigned depth)
{
	ir_value *v[MAX_CARRIED], *c = ir_binary(&g->t.b, IR_LT, any_scalar(g), any_scalar(g));
	ir_type types[MAX_CARRIED];
	unsigned n = any_values(g, v, types);
	ir_op *o = ir_build(&g->t.b, IR_IF, 1, &c, n, types, 2);
	for (int r = 0; r < 2; r++) fill_region(g, o->regions[r], depth, types, n);
	for (unsigned i = 0; i < n; i++) add(g, o->results[i]);
}

static void make_for(generator *g, unsigned depth)
{
	ir_value *args[3 + MAX_CARRIED];
	ir_type types[MAX_CARRIED];
	bool down = pick(g, 2);
	args[0] = i32(&g->t, down ? 4 : -1);
	args[1] = i32(&g->t, down ? (int)pick(g, 4) : (int)pick(g, 4) - 1);
	args[2] = i32(&g->t, down ? -2 : 1);
	unsigned n = any_values(g, args + 3, types);
	ir_op *o = ir_build(&g->t.b, IR_FOR, 3 + n, args, n, types, 1);
	ir_block_arg(o->regions[0], ir_scalar_type(SCALAR_I32), "i");
	for (unsigned i = 0; i < n; i++) ir_block_arg(o->regions[0], types[i], NULL);
	fill_region(g, o->regions[0], depth, types, n);
	for (unsigned i = 0; i < n; i++) add(g, o->results[i]);
}

/* A counter and other values go around; the condition passes on a mixture of carried and fresh ones. */
static void make_while(generator *g, unsigned depth)
{
	ir_value *args[1 + MAX_CARRIED], *passed[2 + MAX_CARRIED];
	ir_type types[1 + MAX_CARRIED];
	unsigned visible = g->n;
	args[0] = i32(&g->t, 0);
	types[0] = args[0]->type;
	unsigned n = 1 + any_values(g, args + 1, types + 1);
	ir_op *o = ir_build(&g->t.b, IR_WHILE, n, args, n, types, 2);
	ir_block *before = o->regions[0], *after = o->regions[1];
	for (unsigned i = 0; i < n; i++) {
		ir_block_arg(before, types[i], NULL);
		ir_block_arg(after, types[i], NULL);
	}
	ir_builder outer = g->t.b;
	g->t.b.block = before;
	for (unsigned i = 1; i < n; i++) add(g, before->args[i]);
	make_block(g, depth + 1, pick(g, 4));
	passed[0] = ir_binary(&g->t.b, IR_LT, before->args[0], i32(&g->t, 3));
	passed[1] = before->args[0];
	for (unsigned i = 1; i < n; i++) passed[i + 1] = pick(g, 2) ? before->args[i] : any_of(g, types[i]);
	ir_build(&g->t.b, IR_CONDITION, n + 1, passed, 0, NULL, 0);
	g->n = visible;
	g->t.b.block = after;
	for (unsigned i = 1; i < n; i++) add(g, after->args[i]);
	make_block(g, depth + 1, 1 + pick(g, 4));
	ir_value *out[1 + MAX_CARRIED];
	out[0] = ir_binary(&g->t.b, IR_ADD, after->args[0], i32(&g->t, 1));
	for (unsigned i = 1; i < n; i++) out[i] = any_of(g, types[i]);
	ir_yield(&g->t.b, n, out);
	g->n = visible;
	g->t.b = outer;
	for (unsigned i = 0; i < n; i++) add(g, o->results[i]);
}

static void make_block(generator *g, unsigned depth, unsigned count)
{
	for (unsigned i = 0; i < count && g->budget; i++, g->budget--) {
		switch (pick(g, depth < 3 ? 16 : 12)) {
		case 0:
		case 1: make_load(g); break;
		case 2:
		case 3: make_shape(g); break;
		case 4: make_reduce(g); break;
		case 5: make_store(g); break;
		case 12:
		case 13: make_for(g, depth); break;
		case 14: make_if(g, depth); break;
		case 15: make_while(g, depth); break;
		default: make_elementwise(g); break;
		}
	}
}

static void one_program(uint64_t seed)
{
	generator *g = calloc(1, sizeof *g);
	begin(&g->t);
	if (setjmp(g->t.out_of_memory)) fail_msg("out of memory");
	g->state = seed;
	g->budget = 70;
	g->writable = parameter(&g->t, "y", SCALAR_I32, IR_POINTER);
	g->constant = parameter(&g->t, "c", SCALAR_I32, IR_CONST_POINTER);
	add(g, build(&g->t, IR_PROGRAM_ID, ir_scalar_type(SCALAR_I32), 0));
	add(g, arange(&g->t, 8));
	make_load(g);
	make_block(g, 0, 40);
	for (int i = 0; i < 6; i++) make_store(g);
	compile(&g->t);
	int32_t *got = calloc(MEMORY, 4), *want = calloc(MEMORY, 4), *constant = calloc(MEMORY, 4);
	for (int i = 0; i < MEMORY; i++) got[i] = want[i] = i * 7 % 23 - 11, constant[i] = i % 31 - 15;
	uint64_t args[] = {address(got), address(constant)};
	assert_int_equal(run(&g->t, args, 1, 1, 1), CPU_OK);
	machine m = {.arena = &g->t.arena, .value = ARENA_ARRAY(&g->t.arena, uint64_t *, g->t.f->nvalues)};
	*new_value(&m, g->writable) = address(want);
	*new_value(&m, g->constant) = address(constant);
	evaluate_block(&m, g->t.f->body);
	for (int i = 0; i < MEMORY; i++) {
		if (got[i] == want[i]) continue;
		text program = {.arena = &g->t.arena};
		ir_print(&program, g->t.f);
		fprintf(stderr, "%s\n", program.at); /* longer than a message may be */
		fail_msg("seed %llu: y[%d] is %d, not %d", (unsigned long long)seed, i, got[i], want[i]);
	}
	free(got);
	free(want);
	free(constant);
	end(&g->t);
	free(g);
}

static void random_programs(void **state)
{
	(void)state;
	const char *seed = getenv("BLK_TEST_SEED"), *count = getenv("BLK_TEST_COUNT");
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1, n = count ? strtoull(count, NULL, 10) : 20;
	for (uint64_t i = 0; i < n; i++) one_program(first + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
