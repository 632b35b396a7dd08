/* dot: registers of two operands and of the sum through mma.sync.
 *
 * In: tiles in the layouts of mma/sync.h.  Out: the sum's registers.
 * The one idea: the layouts have put every element where the instruction wants it, so a step is named by its place in
 * the tile: row, column and k of its first element say which registers it takes.  Lanes that a small tile does not fill
 * repeat its rows or columns, which gives them copies of the result as their layout says; along k a repetition would be
 * counted twice, so there what lies beyond the tile is 0.
 *
 * f32 in full precision has no instruction: shuffles hand the elements of the same fragments round, and each lane adds
 * up its own products.  tf32x3 splits an element into two: a1 b1 + a1 b2 + a2 b1. */
#include "target/nvptx/lower.h"

#include "sync.h"

#include <assert.h>
#include <string.h>

typedef struct operand {
	tile v;
	late_tile late; /* where what v lacks is */
	const layout *y;
	scalar type;
	unsigned k;               /* its dimension of k; the other one is the sum's row or column */
	uint32_t register_of[32]; /* flattened bit -> register bit, or 0 */
	LLVMValueRef *word[2];    /* by first register: what the instruction takes; [1] the rest of an f32 */
} operand;

typedef struct product {
	lower *l;
	const mma_form *form;
	operand a, b;
	tile sum;
	const layout *y; /* of the sum */
	uint32_t register_of[32];
	unsigned k;          /* extent */
	LLVMValueRef inside; /* null, or: this lane's k are of the tile */
} product;

/* A place of the sum, without what lanes and warps add to it. */
typedef struct place {
	uint32_t batch, row, column;
} place;

static place place_of(const layout *y, uint32_t r)
{
	assert(y->rank == 2 || y->rank == 3);
	uint32_t flat = layout_apply(y, r, 0, 0);
	place p = {0, layout_coordinate(y, flat, y->rank - 2u), layout_coordinate(y, flat, y->rank - 1u)};
	if (y->rank == 3) p.batch = layout_coordinate(y, flat, 0);
	return p;
}

static uint32_t register_for(const operand *o, uint32_t batch, uint32_t other, uint32_t k)
{
	unsigned r = o->y->rank;
	uint32_t flat = k << layout_shift(o->y, o->k) | other << layout_shift(o->y, o->k == r - 1u ? r - 2u : r - 1u);
	if (r == 3) flat |= batch << layout_shift(o->y, 0);
	return lower_register_at(o->register_of, flat);
}

static LLVMValueRef element_at(lower *l, const operand *o, uint32_t r)
{
	if (!o->v.at[r]) lower_plan_load_one(l, o->late.plan, o->late.base, ir_scalar_type(o->type), r, o->v);
	assert(o->v.at[r]);
	return o->v.at[r];
}

static LLVMTypeRef word_type(lower *l, scalar s)
{
	return s == SCALAR_F64 ? l->f64 : l->i32;
}

LLVMValueRef lower_round_tf32(lower *l, LLVMValueRef v)
{
	return lower_asm(l, "cvt.rna.tf32.f32 $0, $1;", "=r,f", l->i32, 1, &v, LOWER_ASM_PURE);
}

static void make_word(product *p, operand *o, uint32_t r)
{
	lower *l = p->l;
	LLVMValueRef element[4], zero = LLVMConstNull(word_type(l, o->type));
	ir_type t = ir_scalar_type(o->type);
	unsigned n = p->form->elements;
	uint32_t shift = layout_shift(o->y, o->k);
	assert(n <= 4 && r < o->v.n);
	for (unsigned i = 0; i < n; i++)
		element[i] = i < p->k ? element_at(l, o, r | lower_register_at(o->register_of, i << shift))
				      : lower_zero(l, t);
	LLVMValueRef v = element[0], rest = NULL;
	if (o->type == SCALAR_F32) {
		v = lower_round_tf32(l, element[0]);
		if (p->form->precision == IR_TF32X3) {
			LLVMValueRef most = LLVMBuildBitCast(l->builder, v, l->f32, "");
			rest = lower_round_tf32(l, LLVMBuildFSub(l->builder, element[0], most, ""));
		}
	} else if (o->type != SCALAR_F64) {
		v = lower_pack(l, t, n, element).at[0];
	}
	if (p->inside) v = LLVMBuildSelect(l->builder, p->inside, v, zero, "");
	if (p->inside && rest) rest = LLVMBuildSelect(l->builder, p->inside, rest, zero, "");
	o->word[0][r] = v;
	o->word[1][r] = rest;
}

/* The register of a fragment that starts at (other, k); zero beyond the tile. */
static LLVMValueRef word(product *p, operand *o, unsigned part, uint32_t batch, uint32_t other, uint32_t k)
{
	unsigned dim = o->k == o->y->rank - 1u ? o->y->rank - 2u : o->y->rank - 1u;
	if (k >= p->k || other >> o->y->lg[dim]) return LLVMConstNull(word_type(p->l, o->type));
	uint32_t r = register_for(o, batch, other, k);
	if (!o->word[0][r]) make_word(p, o, r);
	return o->word[part][r];
}

static const char *instruction(product *p)
{
	lower *l = p->l;
	const char *name = p->form->name, *kind[2];
	const operand *o[] = {&p->a, &p->b};
	if (!scalar_is_fp8(p->a.type)) return name;
	for (unsigned i = 0; i < 2; i++) kind[i] = o[i]->type == SCALAR_F8E4M3 ? "e4m3" : "e5m2";
	return arena_printf(l->arena, "m16n8k32.row.col.f32.%s.%s.f32", kind[0], kind[1]);
}

static void put_list(text *out, unsigned first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) text_printf(out, "%s$%u", i ? ", " : "{", first + i);
	text_puts(out, "}");
}

/* A factor that is known gets a register that nothing else is given: ptxas 13, which makes fp8 products of f16 ones on
 * sm_90, mistakes what is written to it later for the second half of it. */
static LLVMValueRef own_register(lower *l, LLVMValueRef v)
{
	assert(LLVMTypeOf(v) == l->i32);
	if (!LLVMIsAConstantInt(v)) return v;
	unsigned bits = (unsigned)LLVMConstIntGetZExtValue(v);
	return lower_asm(l, arena_printf(l->arena, "mov.b32 $0, %u;", bits), "=r", l->i32, 0, NULL, LOWER_ASM_PURE);
}

/* sum = a * b + sum, on the registers of one instruction. */
static void multiply(
	product *p, unsigned na, LLVMValueRef *a, unsigned nb, LLVMValueRef *b, unsigned nsum, LLVMValueRef *sum)
{
	lower *l = p->l;
	text code = {.arena = l->arena}, constraints = {.arena = l->arena};
	LLVMTypeRef type = LLVMTypeOf(sum[0]), types[4];
	LLVMValueRef args[10];
	unsigned n = 0;
	assert(na + nb + nsum <= 10 && nsum <= 4);
	char out = type == l->f64 ? 'd' : type == l->f32 ? 'f' : 'r', in = type == l->f64 ? 'd' : 'r';
	text_printf(&code, "mma.sync.aligned.%s ", instruction(p));
	put_list(&code, 0, nsum);
	text_puts(&code, ", ");
	put_list(&code, nsum, na);
	text_puts(&code, ", ");
	put_list(&code, nsum + na, nb);
	text_puts(&code, ", ");
	put_list(&code, nsum + na + nb, nsum);
	text_puts(&code, ";");
	for (unsigned i = 0; i < nsum; i++) {
		types[i] = type;
		text_printf(&constraints, "%s=%c", i ? "," : "", out);
	}
	for (unsigned i = 0; i < na; i++) args[n++] = a[i];
	for (unsigned i = 0; i < nb; i++) args[n++] = b[i];
	for (unsigned i = 0; i < n && scalar_is_fp8(p->a.type); i++) args[i] = own_register(l, args[i]);
	for (unsigned i = 0; i < n; i++) text_printf(&constraints, ",%c", in);
	for (unsigned i = 0; i < nsum; i++) {
		args[n++] = sum[i];
		text_printf(&constraints, ",%c", out);
	}
	LLVMTypeRef result = LLVMStructTypeInContext(l->context, types, nsum, false);
	LLVMValueRef made = lower_asm(l, code.at, constraints.at, result, n, args, LOWER_ASM_WARP);
	for (unsigned i = 0; i < nsum; i++) sum[i] = LLVMBuildExtractValue(l->builder, made, i, "");
}

/* What an instruction takes; [1] the rest of an f32. */
typedef struct fragments {
	LLVMValueRef a[2][4], b[2][2];
} fragments;

static bool in_two_parts(const product *p)
{
	return p->form->precision == IR_TF32X3 && p->a.type == SCALAR_F32;
}

static void fetch(product *p, uint32_t r, uint32_t k, fragments *f)
{
	unsigned rows = p->form->m / 8, steps = p->form->k / (4 * p->form->elements);
	place w = place_of(p->y, r);
	assert(rows * steps <= 4 && steps <= 2);
	for (unsigned part = 0; part <= in_two_parts(p); part++)
		for (unsigned i = 0; i < steps; i++) {
			uint32_t here = k + i * 4 * p->form->elements;
			for (unsigned half = 0; half < rows; half++)
				f->a[part][i * rows + half] = word(p, &p->a, part, w.batch, w.row + 8 * half, here);
			f->b[part][i] = word(p, &p->b, part, w.batch, w.column, here);
		}
}

/* One instruction: k from `k` on, the part of the sum whose first register is r. */
static void step(product *p, uint32_t r, uint32_t k)
{
	unsigned rows = p->form->m / 8, nsum = 2 * rows, steps = p->form->k / (4 * p->form->elements);
	unsigned column_shift = layout_shift(p->y, p->y->rank - 1u), row_shift = layout_shift(p->y, p->y->rank - 2u);
	LLVMValueRef sum[4];
	uint32_t at[4];
	fragments f;
	fetch(p, r, k, &f);
	for (unsigned i = 0; i < nsum; i++) { /* what the tile lacks is computed for nobody */
		uint32_t row = 8 * (i >> 1), column = i & 1;
		bool exists = !(row >> p->y->lg[p->y->rank - 2u] || column >> p->y->lg[p->y->rank - 1u]);
		at[i] = exists ? r | lower_register_at(p->register_of, row << row_shift | column << column_shift)
			       : UINT32_MAX;
		assert(!exists || at[i] < p->sum.n);
		sum[i] = exists ? p->sum.at[at[i]] : LLVMConstNull(LLVMTypeOf(p->sum.at[r]));
	}
	if (in_two_parts(p)) {
		multiply(p, rows * steps, f.a[1], steps, f.b[0], nsum, sum);
		multiply(p, rows * steps, f.a[0], steps, f.b[1], nsum, sum);
	}
	multiply(p, rows * steps, f.a[0], steps, f.b[0], nsum, sum);
	for (unsigned i = 0; i < nsum; i++)
		if (at[i] != UINT32_MAX) p->sum.at[at[i]] = sum[i];
}

/* Registers of the sum that start an instruction: without the bits of its own rows and column. */
static bool starts(const product *p, uint32_t r)
{
	place w = place_of(p->y, r);
	return !(w.column & 7) && !(w.row & (p->form->m - 1u));
}

static void fetch_all(product *p, uint32_t k)
{
	fragments f;
	for (uint32_t r = 0; r < p->sum.n; r++)
		if (starts(p, r)) fetch(p, r, k, &f);
}

/* The fragments of a step are loaded before the instructions of the step in front of it, so that one waits for the
 * other only once. */
static void by_instructions(product *p)
{
	fetch_all(p, 0);
	for (uint32_t k = 0; k < p->k; k += p->form->k) {
		if (k + p->form->k < p->k) fetch_all(p, k + p->form->k);
		for (uint32_t r = 0; r < p->sum.n; r++)
			if (starts(p, r)) step(p, r, k);
	}
}

/* ---- full precision ---- */

/* Lane numbers: of a's element (own row, k) and of b's (k, own column), for the two lowest bits of k. */
static LLVMValueRef lane_of(product *p, bool is_b, uint32_t k, uint32_t column)
{
	tid_map m = {{0}};
	if (is_b)
		m.col[0] = 8, m.col[1] = 16; /* lane bits 0, 1 are column bits 1, 2; b has them in lane bits 3, 4 */
	else
		for (unsigned i = 2; i < 5; i++) m.col[i] = 1u << i;
	uint32_t constant = (k & 3) | (is_b ? column << 2 : 0);
	return lower_combine(p->l, lower_tid_map(p->l, &m), lower_map_bits(&m), constant);
}

static LLVMValueRef fetched(product *p, operand *o, bool is_b, place w, uint32_t k, LLVMValueRef *known)
{
	uint32_t r = register_for(o, w.batch, is_b ? w.column & ~1u : w.row, k & ~3u);
	uint32_t column = is_b ? w.column & 1 : 0, slot = 2 * r + column;
	assert(slot < 2 * o->v.n);
	if (!known[slot])
		known[slot] = lower_shuffle(
			p->l, "idx", ir_scalar_type(o->type), element_at(p->l, o, r), lane_of(p, is_b, k, column));
	return known[slot];
}

static void by_shuffles(product *p)
{
	lower *l = p->l;
	for (uint32_t k = 0; k < p->k; k++) {
		/* The assembler's time grows with the square of what it may order freely. */
		if (k && k % 8 == 0) lower_warp_barrier(l);
		LLVMValueRef *a = ARENA_ARRAY(l->arena, LLVMValueRef, 2 * p->a.v.n);
		LLVMValueRef *b = ARENA_ARRAY(l->arena, LLVMValueRef, 2 * p->b.v.n);
		for (uint32_t r = 0; r < p->sum.n; r++) {
			place w = place_of(p->y, r);
			LLVMValueRef args[] = {
				fetched(p, &p->a, false, w, k, a), fetched(p, &p->b, true, w, k, b), p->sum.at[r]};
			p->sum.at[r] = lower_intrinsic(l, "llvm.fma.f32", l->f32, 3, args);
		}
	}
}

/* ---- both ---- */

static void open_operand(product *p, const ir_op *dot, unsigned i, operand *o)
{
	const ir_value *v = ir_arg(dot, i);
	*o = (operand){.late = lower_late(p->l, v), .y = v->layout, .type = v->type.elem};
	o->v = o->late.plan ? lower_new_tile(p->l, v) : lower_arg(p->l, dot, i);
	o->k = v->type.rank - (i == 0 ? 1u : 2u);
	lower_index_registers(o->y, o->register_of);
	for (unsigned part = 0; part < 2; part++) o->word[part] = ARENA_ARRAY(p->l->arena, LLVMValueRef, o->v.n);
}

/* Lane bits 0 and 1 that step k beyond the tile. */
static void mask_lanes(product *p)
{
	lower *l = p->l;
	uint32_t mask = 0;
	for (unsigned i = 0; i < 2; i++)
		if (p->k <= (unsigned)p->form->elements << i) mask |= 1u << i;
	if (!mask || !p->form->name) return;
	LLVMValueRef bits = LLVMBuildAnd(l->builder, l->tid, lower_i32(l, mask), "");
	p->inside = LLVMBuildICmp(l->builder, LLVMIntEQ, bits, lower_i32(l, 0), "");
}

void lower_dot(lower *l, ir_op *o)
{
	assert(o->kind == IR_DOT && o->nargs >= 2);
	product p = {.l = l, .form = mma_form_of(l->pass->target, o), .y = ir_result(o)->layout};
	ir_type t = ir_element(ir_result(o)->type);
	if (!p.form) {
		lower_fail(l, o, "no instruction for a dot of %s", scalar_name(ir_arg(o, 0)->type.elem));
		return;
	}
	if (l->ptx_version < p.form->ptx) l->ptx_version = p.form->ptx;
	open_operand(&p, o, 0, &p.a);
	open_operand(&p, o, 1, &p.b);
	p.k = ir_arg(o, 0)->type.dim[p.a.k];
	assert(p.k == ir_arg(o, 1)->type.dim[p.b.k]);
	lower_index_registers(p.y, p.register_of);
	mask_lanes(&p);
	p.sum = lower_new_tile(l, ir_result(o));
	for (uint32_t r = 0; r < p.sum.n; r++) p.sum.at[r] = o->nargs > 2 ? lower_arg(l, o, 2).at[r] : lower_zero(l, t);
	if (p.form->name)
		by_instructions(&p);
	else
		by_shuffles(&p);
	lower_set(l, ir_result(o), p.sum);
}
