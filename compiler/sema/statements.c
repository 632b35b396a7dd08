/* Statements: bindings, assignments, blocks.  Control flow is in flow.c and loops.c. */
#include "internal.h"

#include <assert.h>
#include <string.h>

/* ---- const, let, var ---- */

static void name_value(sval v, const char *name)
{
	if (v.kind == SVAL_VALUE && !v.value->name && v.value->def) v.value->name = name;
}

static void bind_one(sema *s, const ast *pattern, const ast *statement, sval v)
{
	assert(statement->kind == AST_BIND && pattern->kind == AST_NAME);
	ast_op op = statement->op;
	binding_kind kind = op == AST_OP_BIND_VAR ? BINDING_VAR : op == AST_OP_BIND_CONST ? BINDING_CONST : BINDING_LET;
	span at = mark_of(pattern);
	name_value(v, pattern->text);
	scope_bind(s, pattern->text, at, kind, v)->start = statement;
}

static void bind_pattern(sema *s, const ast *pattern, const ast *statement, sval v)
{
	if (!pattern) return;
	if (pattern->kind == AST_NAME) {
		bind_one(s, pattern, statement, v);
		return;
	}
	if (pattern->kind != AST_TUPLE) return;
	bool fits = v.kind == SVAL_TUPLE && v.tuple.n == pattern->nkids;
	if (!fits && !sval_is_poison(v)) {
		diag *d = sema_diag(s, 215, pattern->at, "%u names for %s", pattern->nkids,
			v.kind == SVAL_TUPLE ? arena_printf(s->arena, "%u values", v.tuple.n) : sema_type_text(s, v));
		diag_add_label(s->diags, d, v.at, "%s", sema_type_text(s, v));
	}
	for (uint32_t i = 0; i < pattern->nkids; i++)
		bind_pattern(s, pattern->kids[i], statement, fits ? v.tuple.items[i] : sval_poison(pattern->at));
}

static void sema_bind(sema *s, const ast *n)
{
	assert(n->kind == AST_BIND);
	if (n->nkids < 3 || !n->kids[0]) return;
	const ast *type = n->kids[1];
	sval v = n->op == AST_OP_BIND_CONST ? sema_constant_expression(s, n->kids[2], "the value of a 'const'")
					    : sema_expression(s, n->kids[2]);
	if (v.kind == SVAL_VOID) {
		sema_error(s, 407, v.at, "this call returns no value");
		v = sval_poison(v.at);
	}
	if (type) {
		const stype *t = sema_as_stype(s, sema_expression(s, type), "the type of a binding");
		v = t ? sema_coerce(s, v, t, "the value") : sval_poison(v.at);
	}
	s->b.at = n->at;
	if (n->op == AST_OP_BIND_VAR && !sval_is_poison(v)) v = sema_run_time(s, v, "a 'var'");
	bind_pattern(s, n->kids[0], n, v);
}

/* ---- assignment ---- */

static const char *kind_text(binding_kind k)
{
	switch (k) {
	case BINDING_LET: return "a 'let'";
	case BINDING_CONST: return "a 'const'";
	case BINDING_PARAMETER: return "a parameter";
	case BINDING_LOOP: return "a loop variable";
	case BINDING_VAR: return "a 'var'";
	}
	return "";
}

static binding *find_target(sema *s, const ast *target)
{
	binding *b = scope_find(s, target->text);
	if (b && b->kind == BINDING_VAR) return b;
	if (!b) {
		sval v = scope_lookup_target(s, target->text, target->at);
		if (!sval_is_poison(v)) sema_error(s, 213, target->at, "'%s' cannot be assigned to", target->text);
		return NULL;
	}
	diag *d =
		sema_diag(s, 213, target->at, "'%s' is %s and cannot be assigned to", target->text, kind_text(b->kind));
	diag_add_label(s->diags, d, b->at, "declared here");
	diag_set_hint(s->diags, d,
		b->kind == BINDING_LET || b->kind == BINDING_CONST ? "declare it with 'var'" : "copy it: var %s_ = %s;",
		target->text, target->text);
	return NULL;
}

/* "0.0", "zeros([64], f32)", or with a type that is said, "f64 = 0.0": what the variable could start from to hold `to`;
 * null where the text it starts from now is no number. */
static const char *start_text(sema *s, const binding *b, ir_type to)
{
	const ast *start = b->start && b->start->kind == AST_BIND && b->start->nkids > 2 ? b->start->kids[2] : NULL;
	if (!start || b->start->kids[0]->kind != AST_NAME || to.pointer) return NULL;
	bool literal = start->kind == AST_INT || start->kind == AST_FLOAT;
	bool zero = start->kind == AST_INT ? start->u64 == 0 : start->kind == AST_FLOAT && start->f64 == 0;
	const char *elem = scalar_name((scalar)to.elem);
	if (!literal) return NULL;
	if (to.rank && zero)
		return arena_printf(s->arena, "var %s = zeros(%s, %s);", b->name, sema_shape_text(s, to), elem);
	const char *number = sema_source_text(s, start->at);
	if (start->kind == AST_INT && scalar_is_float((scalar)to.elem))
		number = arena_printf(s->arena, "%llu.0", (unsigned long long)start->u64);
	if (to.rank)
		return arena_printf(
			s->arena, "var %s = full(%s, %s, %s);", b->name, sema_shape_text(s, to), number, elem);
	if (to.elem == SCALAR_F32) return arena_printf(s->arena, "var %s = %s;", b->name, number);
	return arena_printf(s->arena, "var %s: %s = %s;", b->name, elem, number);
}

/* The way out that keeps every value: a cast where the variable's type is the wider one, else another start. */
static void hint_variable(sema *s, diag *d, const binding *b, ir_type to, sval v, ir_type from)
{
	const char *start = start_text(s, b, from), *source = sema_postfix_text(s, v.at);
	scalar have = (scalar)to.elem, get = (scalar)from.elem, common;
	bool numbers = !from.pointer && !to.pointer, same_shape = ir_same_shape(from, to);
	bool keeps = numbers && promote(have, get, &common) && common == have;
	if (numbers && same_shape && (keeps || have == SCALAR_BOOL || get == SCALAR_BOOL))
		diag_set_hint(s->diags, d, "write the cast: %s.to(%s)", source, scalar_name(have));
	else if (same_shape && start)
		diag_set_hint(s->diags, d, "let it start as %s: %s", scalar_name(get), start);
	else if (numbers && same_shape)
		diag_set_hint(s->diags, d, "let it start as %s, or round each time: %s.to(%s)", scalar_name(get),
			source, scalar_name(have));
	else if (from.rank == 0 && to.rank)
		diag_set_hint(s->diags, d, "fill the tile: full_like(%s, %s)", b->name, sema_source_text(s, v.at));
	else if (!same_shape && start)
		diag_set_hint(s->diags, d, "start from a value of shape %s: %s", sema_shape_text(s, from), start);
	else if (!same_shape)
		diag_set_hint(s->diags, d, "start from a value of shape %s", sema_shape_text(s, from));
}

/* The value in the type that the variable has; error 214. */
static sval keep_type(sema *s, const binding *b, sval old, sval v)
{
	assert(b->kind == BINDING_VAR);
	if (sval_is_poison(v) || sval_is_poison(old)) return sval_poison(v.at);
	const stype *t = sema_stype_of(s, old);
	if (!t || t->kind == STYPE_TENSOR || old.kind == SVAL_BLOCK_PTR) { /* compared as they are, part by part */
		bool same = v.kind == old.kind;
		if (same && v.kind == SVAL_BLOCK_PTR)
			same = ir_type_equal(v.block_ptr->block, old.block_ptr->block) &&
			       v.block_ptr->tensor->rank == old.block_ptr->tensor->rank;
		if (same && v.kind == SVAL_TENSOR) same = v.tensor->rank == old.tensor->rank;
		if (same) return sema_run_time(s, v, "a 'var'");
	} else if (t->kind == STYPE_VALUE && (v.kind == SVAL_NUMBER || v.kind == SVAL_VALUE)) {
		ir_type from = {0};
		sval_type_of(v, &from);
		bool adapts = v.kind == SVAL_NUMBER && t->value.rank == 0 && !t->value.pointer &&
			      (number_fits(v.number, (scalar)t->value.elem) || scalar_is_integer(v.number.type) ||
				      scalar_is_float((scalar)t->value.elem));
		if (adapts || ir_type_equal(from, t->value))
			return sema_run_time(s, sema_coerce(s, v, t, "the value"), "a 'var'");
	} else if (t->kind == STYPE_TUPLE) {
		v = sema_coerce(s, v, t, "the value");
		return sval_is_poison(v) ? v : sema_run_time(s, v, "a 'var'");
	}
	diag *d = sema_diag(s, 214, v.at, "'%s' is %s and keeps its type; the value is %s", b->name,
		t ? sema_stype_text(s, t) : sema_type_text(s, old), sema_type_text(s, v));
	diag_add_label(s->diags, d, b->at, "declared here");
	ir_type from;
	if (t && t->kind == STYPE_VALUE && sval_type_of(v, &from)) hint_variable(s, d, b, t->value, v, from);
	return sval_poison(v.at);
}

static void assign(sema *s, const ast *target, sval v)
{
	if (!target) return;
	if (target->kind == AST_TUPLE) {
		bool fits = v.kind == SVAL_TUPLE && v.tuple.n == target->nkids;
		if (!fits && !sval_is_poison(v))
			sema_error(s, 215, target->at, "%u names for %s", target->nkids, sema_type_text(s, v));
		for (uint32_t i = 0; i < target->nkids; i++)
			assign(s, target->kids[i], fits ? v.tuple.items[i] : sval_poison(target->at));
		return;
	}
	if (target->kind != AST_NAME) {
		sema_error(s, 213, target->at, "only a variable or a tuple of variables can be assigned to");
		return;
	}
	binding *b = find_target(s, target);
	if (!b) return;
	if (v.kind == SVAL_VOID) {
		sema_error(s, 407, v.at, "this call returns no value");
		v = sval_poison(v.at);
	}
	v = keep_type(s, b, slot_get(s, b->slot), v);
	if (sval_is_poison(v)) return; /* the old value keeps the type for what follows */
	name_value(v, b->name);
	slot_set(s, b->slot, v);
}

static void sema_assign(sema *s, const ast *n)
{
	assert(n->kind == AST_ASSIGN);
	if (n->nkids < 2 || !n->kids[0]) return;
	sval v = sema_expression(s, n->kids[1]);
	s->b.at = n->at;
	if (n->op != AST_OP_NO_OP) {
		if (n->kids[0]->kind != AST_NAME) {
			sema_error(s, 213, n->kids[0]->at, "a compound assignment needs one variable");
			return;
		}
		if (!find_target(s, n->kids[0])) return;
		sval old = sema_expression(s, n->kids[0]);
		span right = v.at;
		v = sema_emit_binary(s, n->op, old, v, n->at, mark_of(n));
		v.at = right; /* what a message about the variable's type points to */
	}
	assign(s, n->kids[0], v);
}

/* ---- blocks ---- */

static flow statement(sema *s, const ast *n, ast *const *rest, uint32_t nrest, bool *consumed)
{
	s->b.at = n->at;
	switch (n->kind) {
	case AST_BIND: sema_bind(s, n); return FLOW_NEXT;
	case AST_ASSIGN: sema_assign(s, n); return FLOW_NEXT;
	case AST_EXPRESSION: sema_expression(s, n->nkids ? n->kids[0] : NULL); return FLOW_NEXT;
	case AST_BLOCK: return sema_block(s, n);
	case AST_RETURN: return sema_return(s, n);
	case AST_BREAK:
	case AST_CONTINUE: return sema_break(s, n);
	case AST_IF: return sema_if(s, n, rest, nrest, consumed);
	case AST_FOR: return sema_for(s, n);
	case AST_WHILE: return sema_while(s, n);
	default: return FLOW_NEXT;
	}
}

/* The rest of a block after something that may have left it: under "not left". */
static flow guarded(sema *s, ast *const *rest, uint32_t n)
{
	assert(s->private->frame);
	frame *f = s->private->frame;
	uint32_t flags[3] = {
		f->returned, f->loop ? f->loop->left : f->returned, f->loop ? f->loop->broken : f->returned};
	sval was[3];
	branch b;
	if (!region_enter(s, rest[0]->at)) return FLOW_MAYBE;
	branch_begin(s, &b, flag_not(s, slot_get(s, left_slot(s))), rest[0]->at);
	for (int i = 0; i < 3; i++) was[i] = slot_get(s, flags[i]);
	for (int i = 0; i < 3; i++) slot_set(s, flags[i], sval_bool(false, rest[0]->at));
	flow way = sema_statements(s, rest, n);
	for (int i = 0; i < 3; i++) /* still false: then the old value, false on this way too, says the same */
		if (flag_is(slot_get(s, flags[i]), false)) slot_set(s, flags[i], was[i]);
	uint32_t end = b.end < s->private->block_slots ? b.end : s->private->block_slots;
	branch_other(s, &b);
	branch_end(s, &b, end);
	region_leave(s);
	return way == FLOW_LEFT ? FLOW_LEFT : FLOW_MAYBE;
}

flow sema_statements(sema *s, ast *const *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		bool consumed = false;
		if (!list[i]) continue;
		if (!sema_enter(s, list[i]->at)) return FLOW_NEXT;
		flow way = statement(s, list[i], list + i + 1, n - i - 1, &consumed);
		sema_leave(s);
		if (consumed || way == FLOW_LEFT) return way;
		while (way == FLOW_MAYBE && i + 1 < n && !list[i + 1]) i++;
		if (way == FLOW_MAYBE) return i + 1 < n ? guarded(s, list + i + 1, n - i - 1) : way;
	}
	return FLOW_NEXT;
}

flow sema_block(sema *s, const ast *n)
{
	if (!n || !sema_enter(s, n->at)) return FLOW_NEXT;
	scope_mark m = scope_open(s);
	flow way = n->kind == AST_BLOCK ? sema_statements(s, n->kids, n->nkids) : FLOW_NEXT;
	scope_close(s, m);
	sema_leave(s);
	return way;
}
