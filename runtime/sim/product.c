/* The arithmetic of wgmma: both operands become plain arrays once, then it is one loop over them.
 *
 * Products of two elements are exact in f32.  Their sum over k is taken in f32 one after another, then added to D; the
 * hardware's order and the bits that it drops on the way are not specified.  Integers are exact. */
#include "warpgroup.h"

#include <math.h>
#include <string.h>

static inline float from_bits(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static inline float half(uint32_t h)
{
	uint32_t rest = h & 0x7fff;
	float f = rest >= 0x7c00 ? from_bits(0x7f800000 | rest << 13) : from_bits(rest << 13) * 0x1p112f;
	return h & 0x8000 ? -f : f;
}

static inline float element(scalar t, uint32_t v)
{
	switch (t) {
	case SCALAR_F16: return half(v);
	case SCALAR_BF16: return from_bits(v << 16);
	case SCALAR_F8E5M2: return half(v << 8);
	case SCALAR_F8E4M3: {
		float f = (v & 0x7f) == 0x7f ? NAN : from_bits((v & 0x7f) << 20) * 0x1p120f;
		return v & 0x80 ? -f : f;
	}
	default: return from_bits(v & ~0x1fffu); /* tf32 */
	}
}

static int32_t integer(scalar t, uint32_t v)
{
	return t == SCALAR_I8 ? (int8_t)v : (int32_t)v;
}

void sim_product_piece(const sim_product *m, sim_operands *o, const sim_tile *t, bool of_a, uint32_t i,
	const uint8_t *bytes, const uint8_t *undefined)
{
	static const uint8_t none[16];
	scalar type = (scalar)(of_a ? m->a : m->b);
	uint32_t size = scalar_bytes(type), each = 16 / size;
	bool negative = of_a ? m->negates_a : m->negates_b, all_good = memcmp(undefined, none, sizeof none) == 0;
	for (uint32_t e = 0; e < each; e++) {
		uint32_t v = 0, row = t->transposed ? i / t->k * 8 + e : i / 2,
			 k = t->transposed ? i % t->k : i % 2 * each + e;
		assert(row < (of_a ? PRODUCT_M : m->n) && k < m->k);
		memcpy(&v, bytes + e * size, size);
		if (!all_good && memcmp(undefined + e * size, none, size) != 0)
			*(of_a ? &o->bad_a[row] : &o->bad_b[row]) = o->any_bad = true;
		if (m->d == SCALAR_I32)
			*(of_a ? &o->a.i[row][k] : &o->b.i[k][row]) = integer(type, v);
		else {
			float f = element(type, v);
			*(of_a ? &o->a.f[row][k] : &o->b.f[k][row]) = negative ? -f : f;
		}
	}
}

/* As mma.sync's: register i of lane 4 g + t holds of row g + 8 (i mod 2) the elements t E + 4 E (i / 2) .. along k. */
void sim_product_registers(const sim_product *m, sim_operands *o, const sim_instr *in, const sim_warp *leader)
{
	scalar type = (scalar)m->a;
	uint32_t size = scalar_bytes(type), each = 4 / size;
	assert(m->k == 8 * each);
	for (uint32_t w = 0; w < 4; w++)
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t *at = (const uint32_t *)sim_at(leader + w, in->regs[i]);
			for (uint32_t lane = 0; lane < SIM_LANES; lane++) {
				uint32_t row = 16 * w + lane / 4 + 8 * (i % 2), k = (lane % 4 + 4 * (i / 2)) * each;
				if (leader[w].bad[in->regs[i]] >> lane & 1) o->bad_a[row] = o->any_bad = true;
				for (uint32_t e = 0; e < each; e++) {
					uint32_t v = (uint32_t)scalar_truncate(type, at[lane] >> (8 * size * e % 32));
					if (m->d == SCALAR_I32)
						o->a.i[row][k + e] = integer(type, v);
					else
						o->a.f[row][k + e] = (m->negates_a ? -1 : 1) * element(type, v);
				}
			}
		}
}

/* ---- D in registers ---- */

/* Element i of a lane's row of registers (halves: two of them in each). */
static inline void place(uint32_t w, uint32_t lane, uint32_t i, uint32_t *row, uint32_t *column)
{
	*row = 16 * w + lane / 4 + 8 * (i >> 1 & 1);
	*column = 8 * (i >> 2) + 2 * (lane % 4) + (i & 1);
}

static void gather(const sim_product *m, sim_operands *o, const sim_warp *leader)
{
	assert(m->nunits == m->n / (m->d == SCALAR_F16 ? 4 : 2));
	uint32_t row, column;
	for (uint32_t w = 0; w < 4; w++)
		for (uint32_t i = 0; i < m->n / 2u; i++) {
			bool packed = m->d == SCALAR_F16;
			const uint32_t *at = (const uint32_t *)sim_at(leader + w, m->units[packed ? i / 2 : i]);
			for (uint32_t lane = 0; lane < SIM_LANES; lane++) {
				place(w, lane, i, &row, &column);
				if (packed)
					o->d.f[row][column] = half(at[lane] >> 16 * (i % 2) & 0xffff);
				else
					o->d.i[row][column] = (int32_t)at[lane]; /* of either type */
			}
		}
}

/* ---- The loops ---- */

enum { ROWS = 4, WIDE = 8 }; /* that are summed side by side */

static void multiply_floats(const sim_product *m, sim_operands *o)
{
	for (uint32_t row = 0; row < PRODUCT_M; row += ROWS)
		for (uint32_t at = 0; at < m->n; at += WIDE) {
			float sum[ROWS][WIDE] = {{0}};
			for (uint32_t k = 0; k < m->k; k++) {
				const float *b = &o->b.f[k][at];
				for (uint32_t r = 0; r < ROWS; r++) {
					float a = o->a.f[row + r][k];
					for (uint32_t i = 0; i < WIDE; i++) sum[r][i] += a * b[i];
				}
			}
			for (uint32_t r = 0; r < ROWS; r++)
				for (uint32_t i = 0; i < WIDE; i++) o->d.f[row + r][at + i] += sum[r][i];
		}
}

static void multiply_integers(const sim_product *m, sim_operands *o)
{
	for (uint32_t row = 0; row < PRODUCT_M; row++)
		for (uint32_t column = 0; column < m->n; column++) {
			int64_t sum = o->d.i[row][column];
			for (uint32_t k = 0; k < m->k; k++) sum += o->a.i[row][k] * o->b.i[k][column];
			if (m->saturates) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
			o->d.i[row][column] = (int32_t)(uint32_t)sum;
		}
}

void sim_product_compute(const sim_product *m, sim_operands *o, const sim_warp *leader, bool adds)
{
	assert(m->n % WIDE == 0 && m->n <= PRODUCT_N && m->k <= PRODUCT_K);
	if (adds)
		gather(m, o, leader);
	else
		memset(&o->d, 0, sizeof o->d);
	if (m->d == SCALAR_I32)
		multiply_integers(m, o);
	else
		multiply_floats(m, o);
}

static uint32_t result(const sim_product *m, const sim_operands *o, uint32_t row, uint32_t column)
{
	float f = o->d.f[row][column];
	if (m->d == SCALAR_I32) return (uint32_t)o->d.i[row][column];
	if (m->d == SCALAR_F16) return f != f ? 0x7fff : (uint32_t)scalar_from_double(SCALAR_F16, (double)f);
	return f != f ? 0x7fffffff : (uint32_t)o->d.i[row][column];
}

void sim_product_store(const sim_product *m, const sim_operands *o, sim_warp *leader, bool adds)
{
	bool packed = m->d == SCALAR_F16;
	uint32_t row, column;
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t u = 0; u < m->nunits; u++) {
			sim_warp *w = leader + k;
			uint32_t unit = m->units[u], bad = adds ? w->bad[unit] : 0;
			uint32_t *to = (uint32_t *)sim_at(w, unit);
			for (uint32_t lane = 0; lane < SIM_LANES; lane++) {
				place(k, lane, packed ? 2 * u : u, &row, &column);
				to[lane] = packed ? result(m, o, row, column) | result(m, o, row, column + 1) << 16
						  : result(m, o, row, column);
				if (o->any_bad &&
					(o->bad_a[row] || o->bad_b[column] || (packed && o->bad_b[column + 1])))
					bad |= UINT32_C(1) << lane;
			}
			sim_set_defined(w, unit, SIM_ALL);
			for (; bad; bad &= bad - 1)
				sim_shadow_write(w, unit, 4, (unsigned)__builtin_ctz(bad), UINT64_MAX);
		}
}
