/* Loops: run-time `for` and `while`, and the unrolled static_range.
 *
 * The variables that a body assigns are found first (by name, in the tree) and become block arguments of the loop.  The
 * body is then emitted as if nothing could leave it.  If it turns out that something did (a flag is not the constant
 * false at the body's end), the loop is rewritten: a FOR becomes a WHILE that counts trips, and the flags and the
 * function's result become further carried values.  So a `break` that a compile-time condition removed costs nothing.
 *
 *     for i in range(lo, hi, step) { body }             becomes, with exits,
 *
 *     while (k = 0, stop = false, ...) { !stop && k < trips }
 *         { i = lo + k * step; body; yield k + 1, broken|returned, ... } */
#include "internal.h"

#include <assert.h>
#include <string.h>

/* ---- which variables a body assigns ---- */

typedef VEC(uint32_t) slot_vec;

static void note_target(sema *s, const ast *target, slot_vec *out)
{
	if (!target) return;
	if (target->kind == AST_TUPLE) {
		for (uint32_t i = 0; i < target->nkids; i++) note_target(s, target->kids[i], out);
		return;
	}
	if (target->kind != AST_NAME) return;
	binding *b = scope_find(s, target->text);
	if (!b || b->kind != BINDING_VAR) return;
	for (uint32_t i = 0; i < out->n; i++)
		if (out->at[i] == b->slot) return;
	vec_push(s->arena, out, b->slot);
}

static void find_assigned(sema *s, const ast *n, slot_vec *out, unsigned depth)
{
	if (!n || depth > SEMA_MAX_DEPTH) return;
	if (n->kind == AST_ASSIGN && n->nkids) note_target(s, n->kids[0], out);
	switch (n->kind) {
	case AST_BLOCK:
	case AST_IF:
	case AST_FOR:
	case AST_WHILE:
		for (uint32_t i = 0; i < n->nkids; i++) find_assigned(s, n->kids[i], out, depth + 1);
		break;
	default: break;
	}
}

/* ---- a loop body ---- */

typedef struct body {
	slot_vec carried;
	loop loop;
	frame *frame;
	sval was_returned, was_result; /* of the frame, before the loop */
	sval *before;                  /* carried svals before the loop */
	value_list inits;
	sval broken, returned; /* flags at the end of the body */
	sval result;
	value_list yields, results; /* carried leaves at the end; leaves of the result, when one was set */
	span at;
} body;

static void body_find(sema *s, body *b, const ast *n)
{
	assert(s->private->frame);
	*b = (body){.frame = s->private->frame, .at = mark_of(n)};
	find_assigned(s, n->kids[1], &b->carried, 0);
	b->before = ARENA_ARRAY(s->arena, sval, b->carried.n + 1);
	for (uint32_t i = 0; i < b->carried.n; i++) {
		b->before[i] = slot_get(s, b->carried.at[i]);
		leaves_collect(s, b->before[i], &b->inits);
	}
}

/* Block arguments for the carried values; the slots hold them from here on. */
static void body_arguments(sema *s, body *b, ir_block *block, bool set)
{
	VEC(ir_value *) args = {0};
	for (uint32_t i = 0; i < b->inits.n; i++)
		vec_push(s->arena, &args, ir_block_arg(block, b->inits.at[i]->type, b->inits.at[i]->name));
	uint32_t next = 0;
	for (uint32_t i = 0; set && i < b->carried.n; i++)
		slot_set(s, b->carried.at[i], leaves_rebuild(s, b->before[i], args.at, &next));
}

static void body_open(sema *s, body *b)
{
	frame *f = b->frame;
	b->was_returned = slot_get(s, f->returned);
	b->was_result = slot_get(s, f->result);
	slot_set(s, f->returned, sval_bool(false, b->at));
	slot_set(s, f->result, (sval){.kind = SVAL_UNDEFINED, .at = b->at});
	b->loop = (loop){.up = f->loop, .broken = slot_new(s, sval_bool(false, b->at))};
	b->loop.left = slot_new(s, sval_bool(false, b->at));
	f->loop = &b->loop;
}

static void body_close(sema *s, body *b)
{
	assert(b->frame == s->private->frame);
	b->broken = slot_get(s, b->loop.broken);
	b->returned = slot_get(s, b->frame->returned);
	b->result = slot_get(s, b->frame->result);
	b->frame->loop = b->loop.up;
	for (uint32_t i = 0; i < b->carried.n; i++) {
		sval now = slot_get(s, b->carried.at[i]);
		/* poison after an error: keep the shape */
		leaves_collect(s, sval_is_poison(now) ? b->before[i] : now, &b->yields);
	}
	if (b->yields.n != b->inits.n) b->yields = b->inits; /* only after an error */
	if (!flag_is(b->returned, false) && b->result.kind != SVAL_UNDEFINED && b->result.kind != SVAL_VOID &&
		b->result.kind != SVAL_POISON) {
		b->result = sema_run_time(s, b->result, "the result");
		leaves_collect(s, b->result, &b->results);
	}
}

/* After the loop: slots hold its results, which start at `results`. */
static flow body_finish(sema *s, body *b, ir_value *const *results)
{
	assert(b->frame == s->private->frame);
	uint32_t next = 0;
	for (uint32_t i = 0; i < b->carried.n; i++)
		slot_set(s, b->carried.at[i], leaves_rebuild(s, b->before[i], results, &next));
	frame *f = b->frame;
	if (flag_is(b->returned, false)) {
		slot_set(s, f->returned, b->was_returned);
		slot_set(s, f->result, b->was_result);
		return FLOW_NEXT;
	}
	sval returned = sval_value(results[next++], b->at);
	if (b->results.n) b->result = leaves_rebuild(s, b->result, results, &next);
	slot_set(s, f->returned, returned);
	slot_set(s, f->result, b->result);
	if (f->loop) slot_set(s, f->loop->left, flag_or(s, slot_get(s, f->loop->left), returned));
	return FLOW_MAYBE;
}

/* ---- for ---- */

typedef struct range {
	sval lo, hi, step;
	int64_t num_stages, unroll, flatten;
	bool is_static, ok;
} range;

static ir_value *op2(sema *s, ir_kind k, ir_value *a, ir_value *b)
{
	return ir_binary(&s->b, k, a, b);
}

static ir_value *bits_as(sema *s, ir_value *v, scalar t)
{
	if (v->type.elem == t) return v;
	return ir_build1(&s->b, IR_BITCAST, ir_scalar_type(t), 1, &v);
}

static ir_value *select3(sema *s, ir_value *c, ir_value *a, ir_value *b)
{
	ir_value *args[] = {c, a, b};
	return ir_build1(&s->b, IR_SELECT, a->type, 3, args);
}

/* How often the range runs, as an unsigned number of the same width: nothing overflows. */
static ir_value *trip_count(sema *s, ir_value *lo, ir_value *hi, ir_value *step, scalar u)
{
	assert(scalar_is_integer((scalar)lo->type.elem) && lo->type.elem == hi->type.elem);
	scalar t = (scalar)lo->type.elem;
	int64_t known = 0;
	bool constant = ir_is_const_int(step, &known);
	ir_value *zero = ir_constant_int(&s->b, u, 0), *one = ir_constant_int(&s->b, u, 1);
	ir_value *ulo = bits_as(s, lo, u), *uhi = bits_as(s, hi, u), *ustep = bits_as(s, step, u);
	ir_value *up = NULL, *down = NULL;
	if (!constant || known > 0 || !scalar_is_signed(t)) {
		ir_value *width = op2(s, IR_SUB, op2(s, IR_SUB, uhi, ulo), one);
		ir_value *by = constant ? ustep : op2(s, IR_MAX, ustep, one);
		ir_value *n = op2(s, IR_ADD, op2(s, IR_DIV, width, by), one);
		ir_value *some = op2(s, IR_LT, lo, hi);
		if (!constant) some = op2(s, IR_AND, some, op2(s, IR_GT, step, ir_constant_int(&s->b, t, 0)));
		up = select3(s, some, n, zero);
	}
	if (scalar_is_signed(t) && (!constant || known < 0)) {
		ir_value *width = op2(s, IR_SUB, op2(s, IR_SUB, ulo, uhi), one);
		ir_value *by = ir_unary(&s->b, IR_NEG, ustep);
		if (!constant) by = op2(s, IR_MAX, by, one);
		ir_value *n = op2(s, IR_ADD, op2(s, IR_DIV, width, by), one);
		ir_value *some = op2(s, IR_GT, lo, hi);
		if (!constant) some = op2(s, IR_AND, some, op2(s, IR_LT, step, ir_constant_int(&s->b, t, 0)));
		down = select3(s, some, n, zero);
	}
	return up && down ? op2(s, IR_ADD, up, down) : up ? up : down;
}

static scalar unsigned_of(scalar t)
{
	switch (t) {
	case SCALAR_I8: return SCALAR_U8;
	case SCALAR_I16: return SCALAR_U16;
	case SCALAR_I32: return SCALAR_U32;
	case SCALAR_I64: return SCALAR_U64;
	default: return t;
	}
}

/* Rewrites the finished FOR `old` (body in its region, no terminator yet) as a WHILE that can be left. */
static ir_op *for_with_exits(sema *s, body *b, ir_op *old, ir_value *lo, ir_value *hi, ir_value *step)
{
	assert(old->kind == IR_FOR && old->nregions == 1);
	arena *a = s->arena;
	scalar t = (scalar)lo->type.elem, u = unsigned_of(t);
	bool returns = !flag_is(b->returned, false);
	ir_builder after_loop = s->b;
	s->b.block = old->block;
	s->b.before = old;
	ir_value *trips = trip_count(s, lo, hi, step, u);
	VEC(ir_value *) inits = {0};
	vec_push(a, &inits, ir_constant_int(&s->b, u, 0));
	vec_push(a, &inits, ir_constant_int(&s->b, SCALAR_BOOL, 0));
	for (uint32_t i = 0; i < b->inits.n; i++) vec_push(a, &inits, b->inits.at[i]);
	if (returns) vec_push(a, &inits, ir_constant_int(&s->b, SCALAR_BOOL, 0));
	for (uint32_t i = 0; i < b->results.n; i++) vec_push(a, &inits, sema_zero(s, b->results.at[i]->type));
	VEC(ir_type) types = {0};
	for (uint32_t i = 0; i < inits.n; i++) vec_push(a, &types, inits.at[i]->type);
	ir_op *w = ir_build(&s->b, IR_WHILE, inits.n, inits.at, inits.n, types.at, 2);
	w->at = old->at;
	ir_block *head = w->regions[0], *tail = w->regions[1];
	VEC(ir_value *) condition = {0};
	vec_push(a, &condition, NULL);
	for (uint32_t i = 0; i < inits.n; i++) {
		const char *name = i >= 2 && i < 2 + b->inits.n ? b->inits.at[i - 2]->name : NULL;
		vec_push(a, &condition, ir_block_arg(head, types.at[i], name));
		ir_block_arg(tail, types.at[i], name);
	}
	s->b.block = head;
	s->b.before = NULL;
	ir_value *going = ir_unary(&s->b, IR_NOT, head->args[1]);
	condition.at[0] = op2(s, IR_AND, going, op2(s, IR_LT, head->args[0], trips));
	ir_build(&s->b, IR_CONDITION, condition.n, condition.at, 0, NULL, 0);
	s->b.block = tail;
	ir_value *i = op2(s, IR_ADD, lo, op2(s, IR_MUL, bits_as(s, tail->args[0], t), step));
	i->name = old->regions[0]->args[0]->name;
	while (old->regions[0]->first) ir_move_before(old->regions[0]->first, tail, NULL);
	ir_replace(old->regions[0]->args[0], i);
	for (uint32_t k = 0; k < b->inits.n; k++) ir_replace(old->regions[0]->args[1 + k], tail->args[2 + k]);
	VEC(ir_value *) next = {0};
	vec_push(a, &next, op2(s, IR_ADD, tail->args[0], ir_constant_int(&s->b, u, 1)));
	sval stop = flag_or(s, b->broken, b->returned);
	vec_push(a, &next, flag_value(s, stop));
	for (uint32_t k = 0; k < b->yields.n; k++) { /* an argument yielded as it came now has another name */
		ir_value *v = b->yields.at[k];
		bool argument = !v->def && v->block == old->regions[0];
		vec_push(a, &next, argument ? (v->index ? tail->args[1 + v->index] : i) : v);
	}
	if (returns) vec_push(a, &next, flag_value(s, b->returned));
	for (uint32_t k = 0; k < b->results.n; k++) {
		ir_value *v = b->results.at[k];
		bool argument = !v->def && v->block == old->regions[0];
		vec_push(a, &next, argument ? (v->index ? tail->args[1 + v->index] : i) : v);
	}
	ir_yield(&s->b, next.n, next.at);
	ir_erase(old);
	s->b = after_loop;
	return w;
}

/* The results of a FOR that runs to its end; what the body left unchanged is no longer carried. */
static ir_value **plain_results(sema *s, ir_op *op)
{
	assert(op->nregions == 1);
	ir_block *b = op->regions[0];
	ir_value **results = ARENA_ARRAY(s->arena, ir_value *, op->nresults + 1);
	for (unsigned i = op->nresults; i-- > 0;) {
		results[i] = op->results[i];
		if (ir_arg(b->last, i) != b->args[1 + i]) continue;
		ir_value *init = results[i] = ir_arg(op, 3 + i);
		ir_remove_arg(b->last, i);
		ir_replace(b->args[1 + i], init);
		ir_block_remove_arg(b, 1 + i);
		ir_remove_arg(op, 3 + i);
		ir_remove_result(op, i);
	}
	return results;
}

static flow run_time_for(sema *s, const ast *n, const range *r)
{
	const sval bounds[] = {r->lo, r->hi, r->step};
	ir_value *v[3];
	if (!sema_unify(s, bounds, 3, n->kids[0]->at, v) || !region_enter(s, n->kids[0]->at)) return FLOW_NEXT;
	body b;
	body_find(s, &b, n);
	VEC(ir_value *) args = {0};
	VEC(ir_type) types = {0};
	for (int i = 0; i < 3; i++) vec_push(s->arena, &args, v[i]);
	for (uint32_t i = 0; i < b.inits.n; i++) {
		vec_push(s->arena, &args, b.inits.at[i]);
		vec_push(s->arena, &types, b.inits.at[i]->type);
	}
	s->b.at = n->at;
	ir_op *op = ir_build(&s->b, IR_FOR, args.n, args.at, b.inits.n, types.at, 1);
	ir_set_num_stages(op, r->num_stages);
	ir_set_unroll(op, r->unroll);
	ir_set_flatten(op, r->flatten);
	ir_builder saved = s->b;
	s->b.block = op->regions[0];
	s->b.before = NULL;
	ir_value *i = ir_block_arg(op->regions[0], v[0]->type, n->text);
	body_arguments(s, &b, op->regions[0], true);
	scope_mark m = scope_open(s);
	body_open(s, &b);
	scope_bind(s, n->text, n->mark, BINDING_LOOP, sval_value(i, n->mark));
	sema_block(s, n->kids[1]);
	body_close(s, &b);
	scope_close(s, m);
	region_leave(s);
	if (flag_is(b.broken, false) && flag_is(b.returned, false)) {
		ir_yield(&s->b, b.yields.n, b.yields.at);
		s->b = saved;
		return body_finish(s, &b, plain_results(s, op));
	}
	s->b = saved;
	op = for_with_exits(s, &b, op, v[0], v[1], v[2]);
	return body_finish(s, &b, op->results + 2);
}

/* ---- static_range ---- */

static flow iteration(sema *s, const ast *n, int64_t i, body *b)
{
	slot_set(s, b->loop.left, sval_bool(false, b->at));
	scope_mark m = scope_open(s);
	bool narrow = i >= INT32_MIN && i <= INT32_MAX;
	scope_bind(s, n->text, n->mark, BINDING_LOOP, sval_typed_int(narrow ? SCALAR_I32 : SCALAR_I64, i, n->mark));
	flow f = sema_block(s, n->kids[1]);
	scope_close(s, m);
	return f;
}

static bool may_leave(const ast *n, unsigned depth)
{
	if (!n) return false;
	if (n->kind == AST_BREAK || n->kind == AST_RETURN || depth > SEMA_MAX_DEPTH) return true;
	for (uint32_t i = 0; i < n->nkids; i++)
		if (may_leave(n->kids[i], depth + 1)) return true;
	return false;
}

/* Whether unrolling goes on behind the iteration that has just been unrolled: not where that had errors, which the
 * others would repeat, and not where so many are left, each an operation at least, that the limit will be met. */
static bool goes_on(sema *s, const ast *n, sema_int left, uint32_t errors)
{
	assert(left >= 0);
	struct sema_private *p = s->private;
	if (left > SEMA_MAX_WORK - (sema_int)p->work && !p->work_reported && !may_leave(n->kids[1], 0)) {
		sema_error(s, 705, n->kids[0]->at, "more than 1,000,000 operations after unrolling and inlining");
		p->work_reported = true;
	}
	return s->diags->errors == errors;
}

static flow static_for(sema *s, const ast *n, const range *r)
{
	int64_t lo, hi, step;
	if (!sema_as_const_int(s, r->lo, &lo, "a bound of static_range") ||
		!sema_as_const_int(s, r->hi, &hi, "a bound of static_range") ||
		!sema_as_const_int(s, r->step, &step, "the step of static_range"))
		return FLOW_NEXT;
	frame *f = s->private->frame;
	scope_mark m = scope_open(s);
	body b = {.frame = f, .at = n->mark};
	b.loop = (loop){.up = f->loop, .broken = slot_new(s, sval_bool(false, b.at))};
	b.loop.left = slot_new(s, sval_bool(false, b.at));
	f->loop = &b.loop;
	uint32_t errors = s->diags->errors;
	for (sema_int i = lo; step > 0 ? i < hi : i > hi; i += step) {
		if (i != lo && !goes_on(s, n, ((sema_int)hi - i) / step, errors)) break;
		sval stop = flag_or(s, slot_get(s, b.loop.broken), slot_get(s, f->returned));
		if (flag_is(stop, true) || !sema_enter(s, n->at)) break;
		if (flag_is(stop, false)) {
			iteration(s, n, (int64_t)i, &b);
		} else if (region_enter(s, n->at)) {
			branch guard;
			branch_begin(s, &guard, flag_not(s, stop), n->at);
			iteration(s, n, (int64_t)i, &b);
			branch_other(s, &guard);
			branch_end(s, &guard, guard.end);
			region_leave(s);
		}
		sema_leave(s);
	}
	f->loop = b.loop.up;
	sval returned = slot_get(s, f->returned);
	scope_close(s, m);
	if (flag_is(returned, false)) return FLOW_NEXT;
	if (f->loop) slot_set(s, f->loop->left, flag_or(s, slot_get(s, f->loop->left), returned));
	return flag_is(returned, true) ? FLOW_LEFT : FLOW_MAYBE;
}

/* ---- the range of a for ---- */

static bool range_attribute(sema *s, const ast *arg, range *r)
{
	const char *name = arg->text;
	sval v = sema_expression(s, arg->kids[0]);
	if (strcmp(name, "step") == 0) return r->step = v, !sval_is_poison(v);
	if (strcmp(name, "num_stages") == 0 || strcmp(name, "unroll") == 0) {
		int64_t *out = name[0] == 'n' ? &r->num_stages : &r->unroll;
		if (!sema_as_const_int(s, v, out, name)) return false;
		if (*out >= 1 && *out <= 1024) return true;
		sema_error(s, 403, v.at, "%s must be 1 to 1024, found %lld", name, (long long)*out);
		return false;
	}
	if (strcmp(name, "flatten") == 0) {
		bool flatten;
		if (!sema_as_const_bool(s, v, &flatten, name)) return false;
		r->flatten = flatten;
		return true;
	}
	diag *d = sema_diag(s, 306, mark_of(arg), "range has no attribute '%s'", name);
	diag_set_hint(s->diags, d, "step, num_stages, unroll, flatten");
	return false;
}

static bool is_zero_number(sval v)
{
	return sval_is_int(v) && v.number.i == 0;
}

static bool check_bound(sema *s, sval v)
{
	ir_type t;
	if (sval_is_poison(v)) return false;
	if (sval_type_of(v, &t) && t.rank == 0 && !t.pointer && scalar_is_integer((scalar)t.elem)) return true;
	diag *d =
		sema_diag(s, 403, v.at, "a bound of a range must be a scalar integer, found %s", sema_type_text(s, v));
	if (t.rank == 0 && !t.pointer && (v.kind == SVAL_VALUE || v.kind == SVAL_NUMBER))
		diag_set_hint(s->diags, d, "convert: %s.to(i32)", sema_postfix_text(s, v.at));
	return false;
}

static range read_range(sema *s, const ast *n)
{
	range r = {0};
	const ast *call = n->kids[0];
	const char *callee =
		call->kind == AST_CALL && call->nkids && call->kids[0]->kind == AST_NAME ? call->kids[0]->text : "";
	r.is_static = strcmp(callee, "static_range") == 0;
	if (!r.is_static && strcmp(callee, "range") != 0) {
		diag *d = sema_diag(s, 403, call->at, "a 'for' runs over range(...) or static_range(...)");
		diag_set_hint(s->diags, d, "for %s in range(n) { ... }", n->text ? n->text : "i");
		return r;
	}
	sval v[3] = {{0}};
	uint32_t nv = 0;
	r.ok = true;
	r.step = sval_int(1, call->at);
	for (uint32_t i = 1; i < call->nkids; i++) {
		const ast *arg = call->kids[i];
		if (!arg || arg->nkids == 0 || !arg->kids[0]) return (range){0};
		if (arg->text) {
			r.ok = range_attribute(s, arg, &r) && r.ok;
		} else if (nv < 3) {
			v[nv] = sema_expression(s, arg->kids[0]);
			r.ok = check_bound(s, v[nv]) && r.ok;
			nv++;
		} else {
			sema_error(s, 304, arg->at, "%s takes at most three bounds: lo, hi, step", callee);
			r.ok = false;
		}
	}
	if (nv == 0) {
		diag *d = sema_diag(s, 305, call->at, "%s needs a bound", callee);
		diag_set_hint(s->diags, d, "%s(hi), %s(lo, hi) or %s(lo, hi, step)", callee, callee, callee);
		r.ok = false;
		return r;
	}
	r.lo = nv == 1 ? sval_int(0, call->at) : v[0];
	r.hi = nv == 1 ? v[0] : v[1];
	if (nv == 3) r.step = v[2];
	if (r.ok) r.ok = check_bound(s, r.step);
	if (r.ok && is_zero_number(r.step)) {
		sema_error(s, 402, r.step.at, "the step of a range is zero");
		r.ok = false;
	}
	return r;
}

flow sema_for(sema *s, const ast *n)
{
	assert(n->kind == AST_FOR);
	if (n->nkids < 2 || !n->kids[0] || !n->kids[1] || !sema_enter(s, n->at)) return FLOW_NEXT;
	range r = read_range(s, n);
	flow f = FLOW_NEXT;
	if (!r.ok) { /* the body may hold independent errors: check it with a poisoned variable */
		scope_mark m = scope_open(s);
		body b = {.frame = s->private->frame, .at = n->at};
		sval returned = slot_get(s, b.frame->returned), result = slot_get(s, b.frame->result);
		b.loop = (loop){.up = b.frame->loop, .broken = slot_new(s, sval_bool(false, b.at))};
		b.loop.left = slot_new(s, sval_bool(false, b.at));
		b.frame->loop = &b.loop;
		scope_bind(s, n->text, n->mark, BINDING_LOOP, sval_poison(n->mark));
		sema_block(s, n->kids[1]);
		b.frame->loop = b.loop.up;
		slot_set(s, b.frame->returned, returned);
		slot_set(s, b.frame->result, result);
		scope_close(s, m);
	} else {
		f = r.is_static ? static_for(s, n, &r) : run_time_for(s, n, &r);
	}
	sema_leave(s);
	return f;
}

/* ---- while ---- */

/* In the head: the condition's operations go under "not stopped", because a loop that was left must not compute it. */
static ir_value *guard_head(sema *s, ir_block *head, ir_value *c, ir_value *stop)
{
	assert(c->type.elem == SCALAR_BOOL && stop->type.elem == SCALAR_BOOL);
	ir_builder b = {.func = s->func, .block = head, .before = head->first, .at = s->b.at};
	ir_value *going = ir_unary(&b, IR_NOT, stop);
	ir_type boolean = ir_scalar_type(SCALAR_BOOL);
	b.before = going->def->next;
	ir_op *op = ir_build(&b, IR_IF, 1, &going, 1, &boolean, 2);
	while (op->next) ir_move_before(op->next, op->regions[0], NULL);
	ir_builder then = {.func = s->func, .block = op->regions[0], .at = s->b.at};
	ir_builder other = {.func = s->func, .block = op->regions[1], .at = s->b.at};
	ir_yield(&then, 1, &c);
	ir_value *no = ir_constant_int(&other, SCALAR_BOOL, 0);
	ir_yield(&other, 1, &no);
	return op->results[0];
}

static void append_carried(sema *s, ir_op *w, ir_value *init, ir_value *next, value_list *passes, value_list *yields)
{
	assert(w->kind == IR_WHILE);
	ir_add_arg(s->func, w, init);
	ir_value *h = ir_block_arg(w->regions[0], init->type, NULL);
	ir_block_arg(w->regions[1], init->type, NULL);
	ir_add_result(s->func, w, init->type);
	vec_push(s->arena, passes, h);
	vec_push(s->arena, yields, next);
}

static flow run_time_while(sema *s, const ast *n)
{
	body b;
	if (!region_enter(s, n->kids[0]->at)) return FLOW_NEXT;
	body_find(s, &b, n);
	VEC(ir_type) types = {0};
	for (uint32_t i = 0; i < b.inits.n; i++) vec_push(s->arena, &types, b.inits.at[i]->type);
	s->b.at = n->at;
	ir_op *w = ir_build(&s->b, IR_WHILE, b.inits.n, b.inits.at, b.inits.n, types.at, 2);
	ir_builder saved = s->b;
	ir_block *head = w->regions[0], *tail = w->regions[1];
	s->b.block = head;
	s->b.before = NULL;
	body_arguments(s, &b, head, true);
	int known;
	ir_value *c = sema_condition(s, sema_expression(s, n->kids[0]), n->kids[0]->at, &known, "while");
	bool endless = !c && known == 1, never = !c && known == 0;
	if (!c) c = ir_constant_int(&s->b, SCALAR_BOOL, known == 1);
	s->b.block = tail;
	body_arguments(s, &b, tail, true);
	scope_mark m = scope_open(s);
	body_open(s, &b);
	if (!never) sema_block(s, n->kids[1]);
	body_close(s, &b);
	scope_close(s, m);
	region_leave(s);
	value_list passes = {0}, yields = b.yields;
	for (uint32_t i = 0; i < head->nargs; i++) vec_push(s->arena, &passes, head->args[i]);
	bool returns = !flag_is(b.returned, false), exits = returns || !flag_is(b.broken, false);
	ir_builder before = {.func = s->func, .block = w->block, .before = w, .at = n->at};
	if (returns)
		append_carried(
			s, w, ir_constant_int(&before, SCALAR_BOOL, 0), flag_value(s, b.returned), &passes, &yields);
	for (uint32_t i = 0; i < b.results.n; i++) {
		ir_builder here = s->b;
		s->b = before;
		ir_value *zero = sema_zero(s, b.results.at[i]->type);
		s->b = here;
		append_carried(s, w, zero, b.results.at[i], &passes, &yields);
	}
	if (exits) {
		ir_value *stop = flag_value(s, flag_or(s, b.broken, b.returned));
		append_carried(s, w, ir_constant_int(&before, SCALAR_BOOL, 0), stop, &passes, &yields);
		c = guard_head(s, head, c, head->args[head->nargs - 1]);
	}
	ir_yield(&s->b, yields.n, yields.at);
	VEC(ir_value *) condition = {0};
	vec_push(s->arena, &condition, c);
	for (uint32_t i = 0; i < passes.n; i++) vec_push(s->arena, &condition, passes.at[i]);
	s->b.block = head;
	ir_build(&s->b, IR_CONDITION, condition.n, condition.at, 0, NULL, 0);
	s->b = saved;
	flow f = body_finish(s, &b, w->results);
	if (endless && flag_is(b.broken, false) && returns) { /* the only way out is a return */
		slot_set(s, b.frame->returned, sval_bool(true, n->at));
		if (b.frame->loop) slot_set(s, b.frame->loop->left, sval_bool(true, n->at));
		return FLOW_LEFT;
	}
	return f;
}

flow sema_while(sema *s, const ast *n)
{
	assert(n->kind == AST_WHILE);
	if (n->nkids < 2 || !n->kids[0] || !n->kids[1] || !sema_enter(s, n->at)) return FLOW_NEXT;
	flow f = run_time_while(s, n);
	sema_leave(s);
	return f;
}
