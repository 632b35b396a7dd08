/* Expressions: one walk that checks, computes what is known, and emits the rest.
 *
 * A chain of binary operators leans to the left and may be 10,000 long: its spine is walked in a loop, everything else
 * by recursion, whose depth sema_enter() limits.  The short-circuit operators emit their right side into a region
 * first; if it turns out to have no effects the region is dissolved again into plain code. */
#include "internal.h"

#include <math.h>
#include <string.h>

bool sema_enter(sema *s, span at)
{
	struct sema_private *p = s->private;
	if (p->work >= SEMA_MAX_WORK) {
		if (!p->work_reported)
			sema_error(s, 705, at, "more than 1,000,000 operations after unrolling and inlining");
		p->work_reported = true;
		return false;
	}
	if (p->depth >= SEMA_MAX_DEPTH) {
		sema_error(s, 707, at, "expressions, statements and calls nest deeper than %d after inlining",
			SEMA_MAX_DEPTH);
		return false;
	}
	p->work++;
	p->depth++;
	return true;
}

void sema_leave(sema *s)
{
	s->private->depth--;
}

/* ---- && || ?: ---- */

static bool is_plain(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next)
		if (!ir_has(o, IR_PURE)) return false;
	return true;
}

static void dissolve(ir_block *b, ir_op *before)
{
	while (b->first) ir_move_before(b->first, before->block, before);
}

static sval logic_check(sema *s, sval v, span at, ast_op op)
{
	if (sval_is_poison(v) || (v.kind == SVAL_NUMBER && v.number.type == SCALAR_BOOL)) return v;
	if (v.kind == SVAL_VALUE && !v.value->type.pointer && v.value->type.elem == SCALAR_BOOL &&
		v.value->type.rank == 0)
		return v;
	bool tile = v.kind == SVAL_VALUE && v.value->type.rank;
	diag *d = sema_diag(
		s, tile ? 212 : 211, at, "'%s' is for scalar bools, found %s", ast_op_text[op], sema_type_text(s, v));
	if (tile)
		diag_set_hint(s->diags, d, "'%s' works element by element", op == AST_OP_LAND ? "&" : "|");
	else if (v.kind == SVAL_VALUE || v.kind == SVAL_NUMBER)
		diag_set_hint(s->diags, d, "compare: %s != 0", sema_source_text(s, at));
	return sval_poison(at);
}

static sval logic_operand(sema *s, const ast *n, ast_op op)
{
	return logic_check(s, sema_expression(s, n), n->at, op);
}

/* Emits into a fresh arm of an IF on `condition`. */
static sval logic(sema *s, const ast *n, sval a)
{
	bool and = n->op == AST_OP_LAND;
	if (sval_is_poison(a)) {
		logic_operand(s, n->kids[1], n->op);
		return a;
	}
	if (a.kind == SVAL_NUMBER) {
		if ((a.number.i != 0) != and) return sval_bool(!and, n->at);
		sval b = logic_operand(s, n->kids[1], n->op);
		b.at = n->at;
		return b;
	}
	if (!region_enter(s, n->at)) return sval_poison(n->at);
	ir_builder saved = s->b;
	ir_type boolean = ir_scalar_type(SCALAR_BOOL);
	s->b.at = n->at;
	ir_op *op = ir_build(&s->b, IR_IF, 1, &a.value, 1, &boolean, 2);
	s->b.before = NULL;
	s->b.block = op->regions[and? 0 : 1];
	sval b = logic_operand(s, n->kids[1], n->op);
	region_leave(s);
	ir_value *right = sval_is_poison(b) ? ir_constant_int(&s->b, SCALAR_BOOL, 0) : flag_value(s, b);
	if (is_plain(op->regions[and? 0 : 1])) {
		dissolve(op->regions[and? 0 : 1], op);
		ir_erase(op);
		s->b = saved;
		if (sval_is_poison(b)) return b;
		s->b.at = n->at;
		if (b.kind == SVAL_NUMBER && (b.number.i != 0) == and) return a;
		return sval_value(ir_binary(&s->b, and? IR_AND : IR_OR, a.value, right), n->at);
	}
	ir_yield(&s->b, 1, &right);
	s->b.block = op->regions[and? 1 : 0];
	ir_value *other = ir_constant_int(&s->b, SCALAR_BOOL, !and);
	ir_yield(&s->b, 1, &other);
	s->b = saved;
	return sval_value(op->results[0], n->at);
}

/* Both arms without effects: computed both, and selected. */
static sval select_arm(sema *s, const ast *n, ir_op *op, const sval arms[2], ir_builder saved)
{
	ir_value *condition = ir_arg(op, 0), *v[3];
	dissolve(op->regions[0], op);
	dissolve(op->regions[1], op);
	ir_erase(op);
	s->b = saved;
	s->b.at = n->at;
	if (!sema_unify(s, arms, 2, n->at, v + 1)) return sval_poison(n->at);
	v[0] = ir_splat(&s->b, condition, v[1]->type);
	return sval_value(ir_build1(&s->b, IR_SELECT, v[1]->type, 3, v), n->at);
}

/* Both arms of a run-time ?: as values of one type; they stand in the two regions of `op`. */
static sval join_arms(sema *s, const ast *n, ir_op *op, sval a, sval b, ir_builder saved)
{
	ir_type ta, tb;
	const sval arms[] = {a, b};
	bool values = sval_type_of(a, &ta) && sval_type_of(b, &tb), ok;
	if (values && is_plain(op->regions[0]) && is_plain(op->regions[1])) return select_arm(s, n, op, arms, saved);
	ir_builder where[] = {{.func = s->func, .block = op->regions[0], .at = n->at},
		{.func = s->func, .block = op->regions[1], .at = n->at}};
	if (values) {
		ir_value *v[2];
		ok = sema_unify_at(s, arms, 2, n->at, where, v);
		if (ok) {
			a = sval_value(v[0], a.at);
			b = sval_value(v[1], b.at);
		}
	} else {
		ok = sema_merge(s, &a, &where[0], &b, &where[1], n->at, "the result of '?:'");
	}
	value_list left = {0}, right = {0};
	if (ok) {
		leaves_collect(s, a, &left);
		leaves_collect(s, b, &right);
		for (uint32_t i = 0; i < left.n; i++) ir_add_result(s->func, op, left.at[i]->type);
	}
	ir_yield(&where[0], left.n, left.at);
	ir_yield(&where[1], right.n, right.at);
	s->b = saved;
	uint32_t next = 0;
	if (!ok) return sval_poison(n->at);
	a = leaves_rebuild(s, a, op->results, &next);
	a.at = n->at;
	return a;
}

static sval ternary(sema *s, const ast *n)
{
	int known;
	sval c = sema_expression(s, n->kids[0]);
	ir_value *condition = sema_condition(s, c, n->kids[0]->at, &known, "?:");
	if (!condition && known >= 0) {
		sval v = sema_expression(s, n->kids[known ? 1 : 2]);
		v.at = n->at;
		return v;
	}
	if (!condition) { /* an error: look for more in the arms */
		sema_expression(s, n->kids[1]);
		sema_expression(s, n->kids[2]);
		return sval_poison(n->at);
	}
	if (!region_enter(s, n->at)) return sval_poison(n->at);
	ir_builder saved = s->b;
	s->b.at = n->at;
	ir_op *op = ir_build(&s->b, IR_IF, 1, &condition, 0, NULL, 2);
	s->b.before = NULL;
	s->b.block = op->regions[0];
	sval a = sema_expression(s, n->kids[1]);
	s->b.block = op->regions[1];
	sval b = sema_expression(s, n->kids[2]);
	region_leave(s);
	if (sval_is_poison(a) || sval_is_poison(b)) {
		dissolve(op->regions[0], op);
		dissolve(op->regions[1], op);
		ir_erase(op);
		s->b = saved;
		return sval_poison(n->at);
	}
	return join_arms(s, n, op, a, b, saved);
}

/* ---- operators ---- */

static bool is_chain(const ast *n)
{
	return n->kind == AST_BINARY;
}

static sval binary(sema *s, const ast *n)
{
	uint32_t length = 0;
	const ast *leaf = n;
	for (; is_chain(leaf); leaf = leaf->kids[0]) length++;
	const ast **spine = ARENA_ARRAY(s->arena, const ast *, length + 1);
	uint32_t i = length;
	for (const ast *p = n; is_chain(p); p = p->kids[0]) spine[--i] = p;
	sval v = sema_expression(s, leaf);
	for (i = 0; i < length; i++) {
		const ast *p = spine[i];
		if (p->op == AST_OP_LAND || p->op == AST_OP_LOR) {
			v = logic(s, p, logic_check(s, v, p->kids[0]->at, p->op));
		} else {
			sval right = sema_expression(s, p->kids[1]);
			s->b.at = p->at;
			v = sema_emit_binary(s, p->op, v, right, p->at, mark_of(p));
		}
		if (!sema_enter(s, p->at)) return sval_poison(n->at);
		sema_leave(s);
	}
	return v;
}

static sval pointer_type(sema *s, const ast *n)
{
	sval v = sema_expression(s, n->kids[0]);
	ir_type t;
	if (!sval_is_poison(v) && v.kind != SVAL_TYPE) {
		diag *d = sema_diag(
			s, 208, n->at, "prefix '*' makes a pointer type, and %s is no type", sema_type_text(s, v));
		if (v.kind == SVAL_NUMBER || (v.kind == SVAL_VALUE && !v.value->type.pointer))
			diag_set_hint(s->diags, d, "a power is pow(x, y), of floats, or x * x; load(p) reads memory");
		else
			diag_set_hint(s->diags, d, "there is no dereference operator; load(%s) reads memory",
				v.kind == SVAL_VALUE ? sema_source_text(s, n->kids[0]->at) : "p");
		return sval_poison(n->at);
	}
	if (!sema_as_type(s, v, &t, "what a pointer points to")) return sval_poison(n->at);
	if (t.pointer || t.rank) {
		diag *d = sema_diag(
			s, 208, n->at, "a pointer points to a scalar type, not to %s", ir_type_name(s->arena, t));
		if (t.pointer)
			diag_set_hint(s->diags, d, "an address in memory is a u64: load it and cast, load(p).to(*f32)");
		else
			diag_set_hint(
				s->diags, d, "a tile of pointers is written (*%s)[N]", scalar_name((scalar)t.elem));
		return sval_poison(n->at);
	}
	t.pointer = n->flag ? IR_CONST_POINTER : IR_POINTER;
	return sval_type(s, t, n->at);
}

/* ---- index ---- */

/* f32[BM, BN]: a tile type. */
static sval tile_type(sema *s, const ast *n, sval object)
{
	ir_type t, shape;
	sval *items = ARENA_ARRAY(s->arena, sval, n->nkids);
	uint32_t count = n->nkids - 1;
	for (uint32_t i = 0; i < count; i++) {
		if (n->kids[1 + i]->kind == AST_SLICE || n->kids[1 + i]->kind == AST_NONE)
			return sema_error(s, 210, n->kids[1 + i]->at, "a tile type needs its extents");
		items[i] = sema_expression(s, n->kids[1 + i]);
		if (sval_is_poison(items[i])) return sval_poison(n->at);
	}
	if (!sema_as_type(s, object, &t, "the element of a tile type")) return sval_poison(n->at);
	sval extents = count == 1 && items[0].kind == SVAL_TUPLE ? items[0] : sval_tuple(s, items, count, n->at);
	if (!sema_as_shape(s, extents, &shape, "a tile type")) return sval_poison(n->at);
	if (t.rank) return sema_error(s, 208, n->at, "%s is a tile type already", ir_type_name(s->arena, t));
	return sval_type(s, ir_with_shape(t, shape), n->at);
}

static sval pick(sema *s, const ast *n, sval object)
{
	int64_t i;
	if (n->nkids != 2) return sema_error(s, 210, n->at, "a tuple takes one index");
	sval index = sema_expression(s, n->kids[1]);
	if (!sema_as_const_int(s, index, &i, "the index of a tuple")) return sval_poison(n->at);
	int64_t size = object.tuple.n;
	if (i < -size || i >= size) {
		sema_error(s, 210, n->kids[1]->at, "index %lld is out of range: the tuple has %lld item%s",
			(long long)i, (long long)size, size == 1 ? "" : "s");
		return sval_poison(n->at);
	}
	sval v = object.tuple.items[i < 0 ? i + size : i];
	v.at = n->at;
	return v;
}

/* x[i] where x is no tuple. */
static sval report_index(sema *s, const ir_value *v, const ast *n, const ast *index)
{
	const char *object = sema_source_text(s, n->kids[0]->at), *i = sema_postfix_text(s, index->at);
	bool memory = v->type.pointer && v->type.rank == 0;
	diag *d =
		sema_diag(s, 210, index->at, memory ? "a pointer is not indexed" : "an index of a tile is ':' or None");
	if (memory && n->nkids == 2)
		diag_set_hint(s->diags, d, "load(%s + %s) reads that element%s", object, i,
			v->type.pointer == IR_CONST_POINTER
				? ""
				: arena_printf(s->arena, ", store(%s + %s, v) writes it", object, i));
	else if (memory)
		diag_set_hint(s->diags, d, "load(%s + i * stride + j) reads the element of row i and column j", object);
	else
		diag_set_hint(
			s->diags, d, "single elements are picked by gather, or by a sum over where(i == k, x, 0)");
	return sval_poison(n->at);
}

/* x[:, None] */
static sval insert_axes(sema *s, const ast *n, sval object)
{
	ir_value *v = sema_value(s, object, "the operand of '[]'");
	if (!v) return sval_poison(n->at);
	unsigned slices = 0, items = n->nkids - 1;
	for (unsigned i = 0; i < items; i++) {
		const ast *k = n->kids[1 + i];
		if (k->kind == AST_SLICE) {
			slices++;
		} else if (k->kind != AST_NONE) {
			return report_index(s, v, n, k);
		}
	}
	if (slices != v->type.rank)
		return sema_error(s, 210, n->at, "%u ':' for the %u dimension%s of %s", slices, v->type.rank,
			v->type.rank == 1 ? "" : "s", ir_type_name(s->arena, v->type));
	if (items > IR_MAX_RANK) return sema_error(s, 207, n->at, "a tile has at most %d dimensions", IR_MAX_RANK);
	s->b.at = n->at;
	for (unsigned i = 0; i < items; i++) {
		if (n->kids[1 + i]->kind != AST_NONE) continue;
		ir_type t = v->type;
		memmove(t.dim + i + 1, t.dim + i, (t.rank - i) * sizeof *t.dim);
		t.dim[i] = 1;
		t.rank++;
		if (v->type.rank == 0) {
			v = ir_splat(&s->b, v, t);
			continue;
		}
		v = ir_build1(&s->b, IR_EXPAND_DIMS, t, 1, &v);
		ir_set_axis(v->def, i);
	}
	return sval_value(v, n->at);
}

sval sema_index(sema *s, const ast *n, sval object)
{
	switch (object.kind) {
	case SVAL_POISON: return object;
	case SVAL_TYPE: return tile_type(s, n, object);
	case SVAL_TUPLE:
		for (uint32_t i = 1; i < n->nkids; i++)
			if (n->kids[i]->kind != AST_SLICE && n->kids[i]->kind != AST_NONE) return pick(s, n, object);
		break;
	case SVAL_NUMBER:
	case SVAL_VALUE: return insert_axes(s, n, object);
	default: break;
	}
	return sema_error(s, 210, n->at, "%s cannot be indexed", sema_type_text(s, object));
}

/* ---- members ---- */

static sval shape_of(sema *s, ir_type t, span at)
{
	sval extents[IR_MAX_RANK];
	for (unsigned i = 0; i < t.rank; i++) extents[i] = sval_int(t.dim[i], at);
	return sval_tuple(s, extents, t.rank, at);
}

static sval type_member(sema *s, const char *name, ir_type t, span at, bool *known)
{
	*known = true;
	if (strcmp(name, "bytes") == 0) return sval_int((sema_int)ir_elements(t) * ir_element_bytes(t), at);
	if (strcmp(name, "shape") == 0) return shape_of(s, t, at);
	if (strcmp(name, "rank") == 0) return sval_int(t.rank, at);
	if (strcmp(name, "dtype") == 0) return sval_type(s, ir_element(t), at);
	if (strcmp(name, "elem") == 0 && t.pointer) return sval_type(s, ir_scalar_type((scalar)t.elem), at);
	*known = false;
	return sval_poison(at);
}

sval sema_member(sema *s, const ast *n, sval v, bool *known)
{
	const char *name = n->text;
	ir_type t;
	*known = false;
	if (v.kind == SVAL_TYPE && v.type->kind == STYPE_VALUE)
		return type_member(s, name, v.type->value, n->at, known);
	if (sval_type_of(v, &t)) {
		if (strcmp(name, "bytes") == 0) return sval_poison(n->at);
		return type_member(s, name, t, n->at, known);
	}
	if (v.kind != SVAL_TENSOR) return sval_poison(n->at);
	*known = true;
	if (strcmp(name, "shape") == 0) return sval_tuple(s, v.tensor->shape, v.tensor->rank, n->at);
	if (strcmp(name, "rank") == 0) return sval_int(v.tensor->rank, n->at);
	if (strcmp(name, "strides") == 0) return sval_tuple(s, v.tensor->strides, v.tensor->rank, n->at);
	if (strcmp(name, "base") == 0) return sval_value(v.tensor->base, n->at);
	if (strcmp(name, "dtype") == 0 || strcmp(name, "elem") == 0)
		return sval_type(s, ir_scalar_type((scalar)v.tensor->base->type.elem), n->at);
	*known = false;
	return sval_poison(n->at);
}

/* Whether x.name(..) would call something. */
static bool names_function(sema *s, const char *name)
{
	const binding *b = scope_find(s, name);
	const declaration *d = name_table_find(&s->private->program->user, name);
	if (b) return b->value.kind == SVAL_FN || b->value.kind == SVAL_BUILTIN;
	return d ? d->kind == DECLARES_FN : sema_builtin_find(name) != NULL;
}

static sval member(sema *s, const ast *n)
{
	static const char *const members[] = {"shape", "dtype", "elem", "rank", "bytes", "strides", "base"};
	bool known;
	sval v = sema_expression(s, n->kids[0]);
	if (sval_is_poison(v)) return sval_poison(n->at);
	sval r = sema_member(s, n, v, &known);
	if (known) return r;
	span at = mark_of(n);
	diag *d = sema_diag(s, 209, at, "%s has no member '%s'", sema_type_text(s, v), n->text);
	const char *near = nearest_name(n->text, members, 5);
	if (near && strcmp(near, n->text) == 0) near = NULL;
	if (near)
		diag_set_hint(s->diags, d, "did you mean '.%s'?", near);
	else if (strcmp(n->text, "bytes") == 0)
		diag_set_hint(s->diags, d, "a type has a size: .dtype.bytes");
	else if (names_function(s, n->text))
		diag_set_hint(s->diags, d, "to call the function, add parentheses: .%s()", n->text);
	return sval_poison(n->at);
}

/* ---- all of them ---- */

static sval tuple(sema *s, const ast *n)
{
	sval *items = ARENA_ARRAY(s->arena, sval, n->nkids + 1);
	bool poison = false;
	for (uint32_t i = 0; i < n->nkids; i++) {
		items[i] = sema_expression(s, n->kids[i]);
		poison = poison || sval_is_poison(items[i]);
		if (items[i].kind == SVAL_VOID) {
			sema_error(s, 407, items[i].at, "this call returns no value");
			poison = true;
		}
	}
	return poison ? sval_poison(n->at) : sval_tuple(s, items, n->nkids, n->at);
}

static sval expression(sema *s, const ast *n)
{
	switch (n->kind) {
	case AST_INT: return sval_int((sema_int)n->u64, n->at);
	case AST_FLOAT: return sval_float(n->f64, n->at);
	case AST_STRING: return (sval){.kind = SVAL_STRING, .at = n->at, .string = {n->text, n->ntext}};
	case AST_BOOL: return sval_bool(n->u64 != 0, n->at);
	case AST_NONE: return sval_none(n->at);
	case AST_INF: return sval_float(INFINITY, n->at);
	case AST_NAN: return sval_float(NAN, n->at);
	case AST_NAME: return scope_lookup(s, n->text, n->at);
	case AST_UNARY: {
		sval v = sema_expression(s, n->kids[0]);
		s->b.at = n->at;
		return sema_emit_unary(s, n->op, v, n->at, mark_of(n));
	}
	case AST_BINARY: return binary(s, n);
	case AST_TERNARY: return ternary(s, n);
	case AST_POINTER: return pointer_type(s, n);
	case AST_CALL: return sema_call(s, n);
	case AST_MEMBER: return member(s, n);
	case AST_INDEX: return sema_index(s, n, sema_expression(s, n->kids[0]));
	case AST_TUPLE: return tuple(s, n);
	default: return sval_poison(n->at); /* not reached: the rest are parts of expressions and statements */
	}
}

sval sema_expression(sema *s, const ast *n)
{
	if (n->nkids == 0) return expression(s, n); /* names and literals are no operations */
	if (!sema_enter(s, n->at)) return sval_poison(n->at);
	span at = s->b.at;
	s->b.at = n->at;
	sval v = expression(s, n);
	s->b.at = at;
	sema_leave(s);
	return v;
}

ir_builder scratch_open(sema *s, span at)
{
	ir_builder saved = s->b;
	s->b = (ir_builder){.func = s->func, .block = ir_block_new(s->func, NULL), .at = at};
	return saved;
}

void scratch_close(sema *s, ir_builder saved)
{
	while (s->b.block->last) ir_erase(s->b.block->last); /* what it used must not count as used */
	s->b = saved;
}

sval sema_constant_expression(sema *s, const ast *n, const char *what)
{
	ir_builder saved = scratch_open(s, n->at);
	sval v = sema_expression(s, n);
	const char *found = sval_is_compile_time(v) ? "" : sema_type_text(s, v);
	scratch_close(s, saved);
	if (sval_is_poison(v) || sval_is_compile_time(v)) return v;
	diag *d = sema_diag(s, 301, n->at, "%s must be known at compile time, found %s", what, found);
	diag_set_hint(s->diags, d, "a 'const' parameter makes a value known");
	return sval_poison(n->at);
}
