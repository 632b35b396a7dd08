/* Elementary functions become arithmetic, on targets that have no good instruction for them.
 *
 * Assumes: tile level.  Leaves: in f32, f16 and bf16 only EXP2, SQRT, RSQRT of the elementary functions, in f64 only
 * SQRT and RSQRT.  The arithmetic is written in the language itself (lib/math.blk, lib/math64.blk) and inlined in place
 * of the operation, so that it is also what the tests run on the cpu device.  16-bit types compute in f32 and round
 * once.
 *
 *     %2 = exp %1 : f32[1024]      becomes      %3 = mul %1, ..; ..; %9 = exp2 %3; ..; %2 = select .. : f32[1024]  */
#include "passes/passes.h"

#include "sema/library.h"

/* Names in the library: NAME_f32 and NAME_f64; null: the lowering has the instruction. */
static const struct {
	ir_kind kind;
	const char *f32, *f64;
} expansions[] = {
	{IR_EXP, "exp_f32", "exp_f64"},
	{IR_EXP2, NULL, "exp2_f64"},
	{IR_EXPM1, "expm1_f32", "expm1_f64"},
	{IR_LOG, "log_f32", "log_f64"},
	{IR_LOG2, "log2_f32", "log2_f64"},
	{IR_LOG1P, "log1p_f32", "log1p_f64"},
	{IR_SIN, "sin_f32", "sin_f64"},
	{IR_COS, "cos_f32", "cos_f64"},
	{IR_TANH, "tanh_f32", "tanh_f64"},
	{IR_ERF, "erf_f32", "erf_f64"},
	{IR_POW, "pow_f32", "pow_f64"},
};

typedef struct expander {
	pass_context *pass;
	ir_func *func;
	sema_library *library; /* opened when first needed */
	bool ok;
} expander;

static const char *function_for(const ir_op *o)
{
	scalar t = (scalar)ir_arg(o, 0)->type.elem;
	for (size_t i = 0; i < sizeof expansions / sizeof *expansions; i++) {
		if (expansions[i].kind != o->kind) continue;
		if (t == SCALAR_F64) return expansions[i].f64;
		return o->kind == IR_EXP && t != SCALAR_F32 ? "exp_half" : expansions[i].f32;
	}
	return NULL;
}

static void expand(ir_op *o, void *context)
{
	expander *e = context;
	const char *name = ir_has(o, IR_MATH) ? function_for(o) : NULL;
	if (!name || !e->ok) return;
	if (!e->library) e->library = sema_library_open(e->pass->arena, e->pass->diags, e->func);
	ir_builder b = {.func = e->func, .block = o->block, .before = o, .at = o->at};
	assert(o->nargs == 1 || o->nargs == 2);
	scalar own = (scalar)ir_result(o)->type.elem;
	ir_value *args[2];
	for (unsigned i = 0; i < o->nargs; i++)
		args[i] = own == SCALAR_F64 ? ir_arg(o, i) : ir_convert(&b, ir_arg(o, i), SCALAR_F32);
	ir_value *v =
		sema_library_call(e->library, &b, own == SCALAR_F64 ? "math64.blk" : "math.blk", name, o->nargs, args);
	if (!v) {
		e->ok = false;
		return;
	}
	ir_replace(ir_result(o), ir_convert(&b, v, own));
	ir_erase(o);
}

bool pass_expand_math(pass_context *p, ir_func *f)
{
	expander e = {.pass = p, .func = f, .ok = true};
	ir_walk(f->body, expand, &e);
	return e.ok;
}
