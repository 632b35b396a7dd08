/* Matrix instructions of a warp: mma.sync, and ldmatrix and stmatrix, which bring its operands to where it wants them.
 *
 * Where an element is: with E elements a register (two of 16 bits, four of 8, else one), lane 4 g + t holds of an
 * operand's register i the places t E + 4 E (i / rows) .. along k in row g + 8 (i mod rows), rows being m / 8 (for b:
 * 1, and a column instead of a row); of the sum two neighbours in row g + 8 (i / 2).
 * A sum is computed in double precision (integers: in theirs) and rounded once; the hardware's order and the bits that
 * it drops on the way are not specified. */
#include "access.h"

#include <math.h>
#include <string.h>

enum { MOST_M = 16, MOST_N = 8, MOST_K = 64 };

typedef struct matrix { /* of one operand, rows first; columns of b are its rows */
	double v[MOST_M][MOST_K];
	bool undefined[MOST_M];
} matrix;

static bool whole_warp(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	if (mask == SIM_ALL) return true;
	return sim_report(w, in, (unsigned)__builtin_ctz(mask),
		"the instruction stands where only some lanes of the warp come",
		"a matrix instruction is reached by some lanes of a warp only: 0x%08x", mask);
}

static double element(scalar t, bool tf32, uint64_t bits)
{
	if (tf32) bits &= ~UINT64_C(0x1fff);
	return scalar_is_float(t) ? scalar_to_double(t, bits) : (double)scalar_sign_extend(t, bits);
}

/* `rows`: of 8. */
static void gather(const sim_warp *w, const uint32_t *regs, unsigned n, unsigned rows, scalar t, bool tf32, matrix *m)
{
	unsigned bytes = scalar_bytes(t), each = bytes < 4 ? 4 / bytes : 1, wide = bytes < 4 ? 4 : bytes;
	assert(rows && rows <= MOST_M / 8 && n % rows == 0 && 4 * each * (n / rows) <= MOST_K);
	memset(m->undefined, 0, sizeof m->undefined);
	for (unsigned i = 0; i < n; i++)
		for (unsigned lane = 0; lane < SIM_LANES; lane++) {
			unsigned row = lane / 4 + 8 * (i % rows), at = lane % 4 * each + 4 * each * (i / rows);
			uint64_t bits = sim_register_read(sim_at(w, regs[i]), (uint8_t)wide, lane);
			if (w->bad[regs[i]] >> lane & 1) m->undefined[row] = true;
			for (unsigned e = 0; e < each; e++)
				m->v[row][at + e] = element(t, tf32, scalar_truncate(t, bits >> 8 * bytes * e));
		}
}

static uint64_t product(
	const sim_instr *in, const matrix *a, const matrix *b, unsigned row, unsigned column, unsigned k, uint64_t c)
{
	scalar t = (scalar)in->to;
	if (!scalar_is_float(t)) {
		int64_t sum = scalar_sign_extend(t, c);
		for (unsigned i = 0; i < k; i++) sum += (int64_t)a->v[row][i] * (int64_t)b->v[column][i];
		if (in->saturates) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
		return scalar_truncate(t, (uint64_t)sum);
	}
	double sum = t == SCALAR_F64 ? scalar_to_double(t, c) : 0;
	for (unsigned i = 0; i < k; i++)
		sum = t == SCALAR_F64 ? fma(a->v[row][i], b->v[column][i], sum) : sum + a->v[row][i] * b->v[column][i];
	if (t != SCALAR_F64) sum += scalar_to_double(t, c);
	if (sum != sum && t != SCALAR_F64) return scalar_truncate(t, UINT64_MAX) >> 1;
	return scalar_from_double(t, sum);
}

/* regs: from 0 the result's, from 4 a's, from 8 b's, from 12 the sum's; nregs: of the result; mode: of a; bytes: of b.
 */
bool sim_step_multiply(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	matrix a, b;
	if (!whole_warp(w, in, mask)) return false;
	unsigned rows = in->wide[1], na = in->mode, nb = in->bytes, k = in->wide[2];
	scalar ta = (scalar)in->from, tb = (scalar)in->space, t = (scalar)in->to;
	assert(in->nregs <= 4 && na <= 4 && nb <= 4 && k <= MOST_K);
	gather(w, in->regs + 4, na, rows, ta, in->exchanges, &a);
	gather(w, in->regs + 8, nb, 1, tb, in->exchanges, &b);
	bool packed = t == SCALAR_F16; /* two of the sum in a register */
	unsigned wide = t == SCALAR_F64 ? 8 : 4;
	uint64_t made[4][SIM_LANES]; /* the result may lie where an operand does */
	uint32_t bad[4] = {0};
	for (unsigned i = 0; i < in->nregs; i++)
		for (unsigned lane = 0; lane < SIM_LANES; lane++) {
			uint64_t c = sim_register_read(sim_at(w, in->regs[12 + i]), (uint8_t)wide, lane), out = 0;
			bool undefined = w->bad[in->regs[12 + i]] >> lane & 1;
			for (unsigned e = 0; e < (packed ? 2u : 1u); e++) {
				unsigned row = lane / 4 + 8 * (packed ? i : i / 2),
					 column = lane % 4 * 2 + (packed ? e : i % 2);
				undefined = undefined || a.undefined[row] || b.undefined[column];
				out |= product(in, &a, &b, row, column, k, packed ? c >> 16 * e & 0xffff : c) << 16 * e;
			}
			made[i][lane] = out;
			bad[i] |= (uint32_t)undefined << lane;
		}
	for (unsigned i = 0; i < in->nregs; i++)
		for (unsigned lane = 0; lane < SIM_LANES; lane++) {
			sim_register_write(sim_at(w, in->regs[i]), (uint8_t)wide, lane, made[i][lane]);
			sim_shadow_write(w, in->regs[i], (uint8_t)wide, lane, bad[i] >> lane & 1 ? UINT64_MAX : 0);
		}
	return true;
}

/* The rows of matrices in shared memory: lane 8 i + r names row r of matrix i. */
static bool find_rows(sim_warp *w, const sim_instr *in, bool writes, uint8_t *at[SIM_LANES], uint8_t *shadow[SIM_LANES])
{
	assert(in->nregs == 1 || in->nregs == 2 || in->nregs == 4);
	uint64_t address[SIM_LANES];
	uint32_t lanes = in->nregs == 4 ? SIM_ALL : (UINT32_C(1) << 8 * in->nregs) - 1;
	if (!sim_addresses(w, in, in->a, in->wide[1], in->offset, lanes, address)) return false;
	for (unsigned i = 0; i < 8u * in->nregs; i++) {
		at[i] = sim_memory(w, in, i, (sim_space)in->space, address[i], 16, writes, &shadow[i]);
		if (!at[i]) return false;
	}
	if (w->program->launch->counts) sim_count_shared(w, in, lanes, address, 16);
	return sim_races(w, in, lanes, at, 16, writes, false);
}

/* movmatrix: a matrix of 8 rows of 8 halves, row i in lanes 4 i to 4 i + 3, becomes its transpose. */
bool sim_step_transpose(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint32_t v[SIM_LANES], undefined[SIM_LANES];
	if (!whole_warp(w, in, mask)) return false;
	for (unsigned lane = 0; lane < SIM_LANES; lane++) {
		v[lane] = undefined[lane] = 0;
		for (unsigned e = 0; e < 2; e++) {
			unsigned row = lane % 4 * 2 + e, column = lane / 4, from = 4 * row + column / 2,
				 at = column % 2 * 16;
			v[lane] |= ((uint32_t)sim_register_read(sim_at(w, in->a), 4, from) >> at & 0xffff) << 16 * e;
			undefined[lane] |= ((uint32_t)sim_shadow_read(w, in->a, 4, from) >> at & 0xffff) << 16 * e;
		}
	}
	sim_cause_none(w); /* several are mixed here */
	for (unsigned lane = 0; lane < SIM_LANES; lane++) {
		sim_register_write(sim_at(w, in->d), 4, lane, v[lane]);
		sim_shadow_write(w, in->d, 4, lane, undefined[lane]);
	}
	return true;
}

/* Which two halves of a matrix lane l holds. */
static void place(const sim_instr *in, unsigned lane, unsigned e, unsigned *row, unsigned *column)
{
	*row = in->exchanges ? lane % 4 * 2 + e : lane / 4;
	*column = in->exchanges ? lane / 4 : lane % 4 * 2 + e;
}

bool sim_step_load_matrix(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint8_t *at[SIM_LANES], *shadow[SIM_LANES];
	if (!whole_warp(w, in, mask) || !find_rows(w, in, false, at, shadow)) return false;
	for (unsigned i = 0; i < in->nregs; i++)
		for (unsigned lane = 0; lane < SIM_LANES; lane++) {
			uint32_t v = 0, undefined = 0;
			for (unsigned e = 0; e < 2; e++) {
				unsigned row, column;
				uint16_t half, bits;
				place(in, lane, e, &row, &column);
				memcpy(&half, at[8 * i + row] + 2 * column, 2);
				memcpy(&bits, shadow[8 * i + row] + 2 * column, 2);
				if (bits) sim_cause_load(w, shadow[8 * i + row] + 2 * column, 2);
				v |= (uint32_t)half << 16 * e;
				undefined |= (uint32_t)bits << 16 * e;
			}
			sim_register_write(sim_at(w, in->regs[i]), 4, lane, v);
			sim_shadow_write(w, in->regs[i], 4, lane, undefined);
		}
	return true;
}

bool sim_step_store_matrix(sim_warp *w, const sim_instr *in, uint32_t mask)
{
	uint8_t *at[SIM_LANES], *shadow[SIM_LANES];
	if (!whole_warp(w, in, mask) || !find_rows(w, in, true, at, shadow)) return false;
	for (unsigned i = 0; i < in->nregs; i++)
		for (unsigned lane = 0; lane < SIM_LANES; lane++) {
			uint32_t v = (uint32_t)sim_register_read(sim_at(w, in->regs[i]), 4, lane);
			uint32_t undefined = (uint32_t)sim_shadow_read(w, in->regs[i], 4, lane);
			for (unsigned e = 0; e < 2; e++) {
				unsigned row, column;
				uint16_t half = (uint16_t)(v >> 16 * e), bits = (uint16_t)(undefined >> 16 * e);
				place(in, lane, e, &row, &column);
				memcpy(at[8 * i + row] + 2 * column, &half, 2);
				memcpy(shadow[8 * i + row] + 2 * column, &bits, 2);
				if (bits) sim_cause_store(w, shadow[8 * i + row] + 2 * column, 2);
			}
		}
	return true;
}
