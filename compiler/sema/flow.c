/* Run-time branches and early exits as structured control flow.
 *
 * Mutable variables live in slots.  A branch emits each arm into its region, sets back what the arm wrote, and merges
 * what both left into results of the IF; a log of writes says which slots those are.  An exit (return, break, continue)
 * sets flags, which are slots too and so merge by the same rule; statements after a conditional exit are emitted under
 * "not left".  Where one arm of an `if` surely exits and the other surely goes on, the following statements move into
 * the other arm instead:
 *
 *     if n <= i { return; }  rest;      becomes      if n <= i { } else { rest }
 *
 * A flag that is known at compile time stays an sval number, so straight-line code costs nothing. */
#include "internal.h"

#include <assert.h>
#include <string.h>

bool region_enter(sema *s, span at)
{
	if (s->private->regions >= SEMA_MAX_REGIONS) {
		sema_error(s, 706, at, "run-time control flow nests deeper than %d after inlining", SEMA_MAX_REGIONS);
		return false;
	}
	s->private->regions++;
	return true;
}

void region_leave(sema *s)
{
	s->private->regions--;
}

/* ---- flags ---- */

bool flag_is(sval flag, bool value)
{
	return flag.kind == SVAL_NUMBER && (flag.number.i != 0) == value;
}

ir_value *flag_value(sema *s, sval flag)
{
	if (flag.kind == SVAL_VALUE) return flag.value;
	return ir_constant_int(&s->b, SCALAR_BOOL, flag.kind == SVAL_NUMBER && flag.number.i);
}

sval flag_or(sema *s, sval a, sval b)
{
	if (flag_is(a, true) || flag_is(b, false)) return a;
	if (flag_is(b, true) || flag_is(a, false)) return b;
	if (a.kind != SVAL_VALUE || b.kind != SVAL_VALUE || a.value == b.value) return a;
	return sval_value(ir_binary(&s->b, IR_OR, a.value, b.value), a.at);
}

ir_value *flag_not(sema *s, sval a)
{
	if (a.kind != SVAL_VALUE) return ir_constant_int(&s->b, SCALAR_BOOL, !flag_is(a, true));
	return ir_unary(&s->b, IR_NOT, a.value);
}

uint32_t left_slot(sema *s)
{
	frame *f = s->private->frame;
	return f->loop ? f->loop->left : f->returned;
}

/* ---- a branch ---- */

/* What was written since `mark`, each slot once, and what stood there before; the slots are set back to that. */
static void take_changes(sema *s, uint32_t mark, uint32_t end, slot_changes *out)
{
	assert(mark <= s->private->log.n && end <= s->private->slots.n);
	struct sema_private *p = s->private;
	uint32_t stamp = ++p->stamp;
	*out = (slot_changes){0};
	for (uint32_t i = mark; i < p->log.n; i++) {
		slot_change *w = &p->log.at[i];
		if (w->slot >= end || p->stamps.at[w->slot] == stamp) continue;
		p->stamps.at[w->slot] = stamp;
		vec_push(s->arena, out, ((slot_change){w->slot, w->value}));
	}
	for (uint32_t i = 0; i < out->n; i++) {
		sval before = out->at[i].value;
		out->at[i].value = p->slots.at[out->at[i].slot];
		p->slots.at[out->at[i].slot] = before;
	}
	p->log.n = mark;
}

static void apply_changes(sema *s, const slot_changes *c)
{
	for (uint32_t i = 0; i < c->n; i++) slot_set(s, c->at[i].slot, c->at[i].value);
}

void branch_begin(sema *s, branch *b, ir_value *condition, span at)
{
	assert(ir_is_scalar(condition) && condition->type.elem == SCALAR_BOOL);
	*b = (branch){.saved = s->b, .mark = s->private->log.n, .end = s->private->slots.n};
	s->b.at = at;
	b->op = ir_build(&s->b, IR_IF, 1, &condition, 0, NULL, 2);
	s->b.before = NULL;
	s->b.block = b->op->regions[0];
}

void branch_other(sema *s, branch *b)
{
	assert(b->op->kind == IR_IF && b->op->nregions == 2);
	take_changes(s, b->mark, b->end, &b->then);
	s->b.block = b->op->regions[1];
	s->b.before = NULL;
}

typedef struct join {
	branch *branch;
	ir_builder x, y;
	value_list left, right;
} join;

/* One slot at the end of both arms: its value after the branch. */
static void join_slot(sema *s, join *j, uint32_t slot, sval a, sval b)
{
	assert(slot < s->private->slots.n);
	ir_op *op = j->branch->op;
	const char *what = slot == s->private->frame->result ? "the result" : "the variable";
	if (sema_same_value(a, b)) {
		slot_set(s, slot, a);
		return;
	}
	if (!sema_merge(s, &a, &j->x, &b, &j->y, op->at, what)) {
		slot_set(s, slot, sval_poison(op->at));
		return;
	}
	uint32_t from = j->right.n;
	leaves_collect(s, a, &j->left);
	leaves_collect(s, b, &j->right);
	for (uint32_t k = from; k < j->right.n; k++) {
		ir_value *r = ir_add_result(s->func, op, j->right.at[k]->type);
		r->name = j->right.at[k]->name ? j->right.at[k]->name : j->left.at[k]->name;
	}
	slot_set(s, slot, leaves_rebuild(s, b, op->results, &from));
}

void branch_end(sema *s, branch *b, uint32_t merged_end)
{
	assert(b->op->kind == IR_IF && b->op->nregions == 2);
	struct sema_private *p = s->private;
	slot_changes other;
	take_changes(s, b->mark, b->end, &other);
	join j = {.branch = b};
	j.x = (ir_builder){.func = s->func, .block = b->op->regions[0], .at = b->op->at};
	j.y = (ir_builder){.func = s->func, .block = b->op->regions[1], .at = b->op->at};
	uint32_t stamp = p->stamp + 1;
	p->stamp += 1 + other.n; /* a stamp beyond the first is the number of the slot's entry in other[] */
	for (uint32_t i = 0; i < other.n; i++) p->stamps.at[other.at[i].slot] = stamp + i;
	for (uint32_t i = 0; i < b->then.n; i++) {
		uint32_t slot = b->then.at[i].slot, entry = p->stamps.at[slot] - stamp;
		bool both = entry < other.n && other.at[entry].slot == slot;
		sval second = both ? other.at[entry].value : p->slots.at[slot];
		if (both) p->stamps.at[slot] = 0;
		if (slot < merged_end) join_slot(s, &j, slot, b->then.at[i].value, second);
	}
	for (uint32_t i = 0; i < other.n; i++) {
		uint32_t slot = other.at[i].slot;
		if (p->stamps.at[slot] == stamp + i && slot < merged_end)
			join_slot(s, &j, slot, p->slots.at[slot], other.at[i].value);
	}
	ir_yield(&j.x, j.left.n, j.left.at);
	ir_yield(&j.y, j.right.n, j.right.at);
	s->b = b->saved;
}

/* ---- exits ---- */

flow sema_return(sema *s, const ast *n)
{
	assert(s->private->frame);
	frame *f = s->private->frame;
	sval v = n->nkids && n->kids[0] ? sema_expression(s, n->kids[0]) : sval_void(n->at);
	if (!f->fn && v.kind != SVAL_VOID) {
		sema_error(s, 404, v.at, "a kernel returns no value");
		v = sval_poison(n->at);
	}
	if (f->fn && f->type) {
		if (v.kind == SVAL_VOID) {
			diag *d = sema_diag(s, 404, n->at, "'%s' returns %s", f->fn->name, sema_stype_text(s, f->type));
			diag_set_hint(s->diags, d, "give the value after 'return'");
			v = sval_poison(n->at);
		}
		span at = v.at;
		v = sema_coerce(s, v, f->type, "the result");
		v.at = at;
	}
	slot_set(s, f->result, v);
	slot_set(s, f->returned, sval_bool(true, n->at));
	if (f->loop) slot_set(s, f->loop->left, sval_bool(true, n->at));
	return FLOW_LEFT;
}

flow sema_break(sema *s, const ast *n)
{
	assert(n->kind == AST_BREAK || n->kind == AST_CONTINUE);
	frame *f = s->private->frame;
	const char *what = n->kind == AST_BREAK ? "break" : "continue";
	if (!f->loop) {
		sema_error(s, 401, n->at, "'%s' outside of a loop", what);
		return FLOW_NEXT;
	}
	if (n->kind == AST_BREAK) slot_set(s, f->loop->broken, sval_bool(true, n->at));
	slot_set(s, f->loop->left, sval_bool(true, n->at));
	return FLOW_LEFT;
}

/* ---- if ---- */

ir_value *sema_condition(sema *s, sval v, span at, int *known, const char *of)
{
	*known = -1;
	if (sval_is_poison(v)) return NULL;
	if (v.kind == SVAL_NUMBER && v.number.type == SCALAR_BOOL) return *known = v.number.i != 0, NULL;
	if (v.kind == SVAL_VALUE && !v.value->type.pointer && v.value->type.elem == SCALAR_BOOL) {
		if (v.value->type.rank == 0) return v.value;
		diag *d = sema_diag(s, 212, at, "the condition of '%s' is a tile, %s", of, sema_type_text(s, v));
		diag_set_hint(s->diags, d,
			"where(c, a, b) selects element by element; any(c) and all(c) make one bool of it");
		return NULL;
	}
	diag *d = sema_diag(s, 211, at, "the condition of '%s' must be a bool, found %s", of, sema_type_text(s, v));
	if (v.kind == SVAL_NUMBER || v.kind == SVAL_VALUE)
		diag_set_hint(s->diags, d, "compare: %s != 0", sema_source_text(s, at));
	return NULL;
}

static flow arm(sema *s, const ast *n, ast *const *rest, uint32_t nrest, bool *consumed)
{
	if (!n) return FLOW_NEXT;
	if (n->kind == AST_IF) return sema_if(s, n, rest, nrest, consumed);
	return sema_block(s, n);
}

/* Moves the statements after the `if` into the arm that goes on. */
static flow rest_in_arm(sema *s, branch *b, unsigned region, ast *const *rest, uint32_t nrest)
{
	assert(region < 2);
	slot_changes other;
	if (region == 1) return sema_statements(s, rest, nrest);
	take_changes(s, b->mark, b->end, &other); /* the then arm is closed: open it again */
	apply_changes(s, &b->then);
	s->b.block = b->op->regions[0];
	flow f = sema_statements(s, rest, nrest);
	take_changes(s, b->mark, b->end, &b->then);
	apply_changes(s, &other);
	s->b.block = b->op->regions[1];
	return f;
}

static flow run_time_if(sema *s, const ast *n, ir_value *c, ast *const *rest, uint32_t nrest, bool *consumed)
{
	branch b;
	bool inner = false;
	if (!region_enter(s, n->kids[0]->at)) return FLOW_NEXT;
	branch_begin(s, &b, c, n->at);
	flow x = arm(s, n->kids[1], NULL, 0, &inner);
	branch_other(s, &b);
	flow y = arm(s, n->nkids > 2 ? n->kids[2] : NULL, NULL, 0, &inner);
	uint32_t end = b.end;
	if (nrest && x != y && (x == FLOW_LEFT || y == FLOW_LEFT) && (x == FLOW_NEXT || y == FLOW_NEXT)) {
		*consumed = true; /* the block ends here: what it declared before the `if` is dead after it */
		if (s->private->block_slots < end) end = s->private->block_slots;
		if (x == FLOW_NEXT)
			x = rest_in_arm(s, &b, 0, rest, nrest);
		else
			y = rest_in_arm(s, &b, 1, rest, nrest);
	}
	branch_end(s, &b, end);
	region_leave(s);
	return x == y ? x : FLOW_MAYBE;
}

flow sema_if(sema *s, const ast *n, ast *const *rest, uint32_t nrest, bool *consumed)
{
	assert(n->kind == AST_IF);
	if (n->nkids < 2 || !n->kids[0] || !sema_enter(s, n->at)) return FLOW_NEXT;
	bool inner = false;
	int known;
	sval v = sema_expression(s, n->kids[0]);
	ir_value *c = sema_condition(s, v, n->kids[0]->at, &known, "if");
	flow f = FLOW_NEXT;
	if (c)
		f = run_time_if(s, n, c, rest, nrest, consumed);
	else if (known < 0) { /* both arms may hold independent errors */
		slot_changes dropped;
		uint32_t mark = s->private->log.n, end = s->private->slots.n;
		arm(s, n->kids[1], NULL, 0, &inner);
		take_changes(s, mark, end, &dropped);
		if (n->nkids > 2) arm(s, n->kids[2], NULL, 0, &inner);
		take_changes(s, mark, end, &dropped);
	} else
		f = arm(s, known ? n->kids[1] : n->nkids > 2 ? n->kids[2] : NULL, rest, nrest, consumed);
	sema_leave(s);
	return f;
}
