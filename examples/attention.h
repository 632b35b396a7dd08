/* What the attention examples share: attention in double precision, and how far a kernel may be from it.
 *
 * A score is a sum of DK products in f32, which misses the exact one by (DK + 8) 2^-24 sum |q k| at most, times the
 * scale; its difference to the maximum, in units of log2, is rounded as well.  That much a weight exp(s - lse) is off,
 * relative to itself, and by half a unit of the 16-bit type, to which it is rounded for the product with the values
 * (below 2^-14 an f16 is off by 2^-25 at most instead).  exp2 and the factors of a running maximum have 2^-22 each,
 * sums of n terms (n + 8) 2^-24.  The bounds add these up for each element, with the exact weights. */
#ifndef BLK_EXAMPLE_ATTENTION_H
#define BLK_EXAMPLE_ATTENTION_H

#include "example.h"

typedef struct attention {
	blk_type type;
	int heads, group, nq, nk, dk, dv;
	bool causal;
	int window; /* 0: none */
	/* The score that a kernel makes of scale q k, -inf where the query does not see the key; null: as it is. */
	double (*score)(const struct attention *, double s, int head, int row, int key);
	const float *with; /* what such a function reads */
	float *q, *k, *v;
	double scale, *o, *lse, *o_bound, *lse_bound;
	bool narrow;   /* values are f8e4m3 */
	double v_unit; /* how far a value may be off, relative; 0 where the kernel multiplies the values it is given */
	bool again;    /* is launched again, for the same bits */
} attention;

static inline const char *attention_type(blk_type type)
{
	return type == BLK_TYPE_BF16 ? "bf16" : "f16";
}

/* Half a unit in the last place. */
static inline double attention_unit(blk_type type)
{
	return type == BLK_TYPE_BF16 ? 0x1p-8 : 0x1p-11;
}

/* What rounding of small numbers costs. */
static inline double attention_least(blk_type type)
{
	return type == BLK_TYPE_BF16 ? 0 : 0x1p-25;
}

static inline size_t attention_queries(const attention *a)
{
	return (size_t)a->heads * (size_t)a->nq;
}

static inline size_t attention_keys(const attention *a)
{
	return (size_t)(a->heads / a->group) * (size_t)a->nk;
}

static inline bool attention_sees(const attention *a, int row, int key)
{
	int last = row + a->nk - a->nq;
	return (!a->causal || key <= last) && (!a->window || key > last - a->window);
}

/* The row of q, and a row of k or v that goes with a query's head. */
static inline const float *attention_q(const attention *a, int head, int row)
{
	return a->q + ((size_t)head * (size_t)a->nq + (size_t)row) * (size_t)a->dk;
}

static inline size_t attention_key(const attention *a, int head, int key)
{
	return (size_t)(head / a->group) * (size_t)a->nk + (size_t)key;
}

/* The scores of a row and how far f32 may be off; -inf where the query does not see the key. */
static inline void attention_scores(const attention *a, int head, int row, double *s, double *off)
{
	const float *q = attention_q(a, head, row);
	double most = 0;
	for (int j = 0; j < a->nk; j++) {
		const float *k = a->k + attention_key(a, head, j) * (size_t)a->dk;
		double sum = 0, size = 0;
		s[j] = -INFINITY;
		off[j] = 0;
		if (!attention_sees(a, row, j)) continue;
		for (int i = 0; i < a->dk; i++) {
			double p = (double)q[i] * k[i];
			sum += p;
			size += fabs(p);
		}
		s[j] = a->score ? a->score(a, sum * a->scale, head, row, j) : sum * a->scale;
		off[j] = (a->dk + 8) * 0x1p-24 * a->scale * size + 0x1p-22 * fabs(sum * a->scale);
		if (isfinite(s[j]) && fabs(s[j]) > most) most = fabs(s[j]);
	}
	for (int j = 0; j < a->nk; j++) off[j] += 0x1p-20 * most;
}

/* Scores to weights: the exact ones, and their logarithm of the sum. */
static inline double attention_weights(const attention *a, double *s)
{
	double largest = -INFINITY, total = 0;
	bool nan = false;
	for (int j = 0; j < a->nk; j++) {
		if (s[j] > largest) largest = s[j];
		nan |= isnan(s[j]);
	}
	if (nan) largest = (double)NAN;
	for (int j = 0; j < a->nk; j++) total += largest == -INFINITY ? 0 : exp(s[j] - largest);
	for (int j = 0; j < a->nk; j++) s[j] = largest == -INFINITY ? 0 : exp(s[j] - largest) / total;
	return largest + log(total);
}

/* One head's row of o and lse, with bounds. */
static inline void attention_row(attention *a, int head, int row, double *s, double *off)
{
	size_t at = (size_t)head * (size_t)a->nq + (size_t)row, out = at * (size_t)a->dv;
	double u = attention_unit(a->type), least = attention_least(a->type);
	double sums = (a->nk + 8) * 0x1p-24 + (a->nk / 16 + 2) * 0x1p-22, mean = 0;
	attention_scores(a, head, row, s, off);
	a->lse[at] = attention_weights(a, s);
	for (int j = 0; j < a->nk; j++) mean += s[j] * off[j];
	a->lse_bound[at] = mean + sums + 0x1p-21 * (1 + fabs(a->lse[at]));
	for (int d = 0; d < a->dv; d++) {
		double sum = 0, size = 0, all = 0;
		for (int j = 0; j < a->nk; j++) {
			double v = a->v[attention_key(a, head, j) * (size_t)a->dv + (size_t)d];
			if (!(s[j] > 0) && !isnan(s[j]) && !isnan(v) && !isinf(v)) continue;
			sum += s[j] * v;
			size += s[j] * fabs(v) * (u + off[j] + mean + 2 * sums + a->v_unit);
			all += fabs(v);
		}
		a->o[out + (size_t)d] = sum;
		a->o_bound[out + (size_t)d] = size + least * (all + 1) + u * fabs(sum);
	}
}

/* The output of the whole problem. */
static inline void attention_reference(example *e, attention *a)
{
	double *s = example_doubles(e, (size_t)a->nk + 1), *off = example_doubles(e, (size_t)a->nk + 1);
	a->o = example_doubles(e, attention_queries(a) * (size_t)a->dv);
	a->o_bound = example_doubles(e, attention_queries(a) * (size_t)a->dv);
	a->lse = example_doubles(e, attention_queries(a));
	a->lse_bound = example_doubles(e, attention_queries(a));
	for (int h = 0; h < a->heads; h++)
		for (int i = 0; i < a->nq; i++) attention_row(a, h, i, s, off);
}

/* Inputs: normal numbers, and the scale that goes with the head dim. */
static inline void attention_inputs(example *e, attention *a)
{
	a->scale = 1 / sqrt(a->dk);
	a->q = example_normal(e, attention_queries(a) * (size_t)a->dk, 51);
	a->k = example_normal(e, attention_keys(a) * (size_t)a->dk, 52);
	a->v = example_normal(e, attention_keys(a) * (size_t)a->dv, 53);
}

/* The value of an e4m3 code without a sign. */
static inline double attention_from_e4m3(int code)
{
	return code >> 3 ? ldexp((code & 7) + 8, (code >> 3) - 10) : ldexp(code & 7, -9);
}

/* To the next code towards zero; `value` becomes what it stands for. */
static inline uint8_t attention_to_e4m3(float *value)
{
	int code = 0;
	if (isnan(*value)) return 0x7f;
	for (int step = 64; step; step /= 2)
		if (code + step <= 126 && attention_from_e4m3(code + step) <= fabs((double)*value)) code += step;
	uint8_t sign = signbit(*value) ? 0x80 : 0;
	*value = (float)copysign(attention_from_e4m3(code), (double)*value);
	return (uint8_t)(sign | code);
}

/* Values, which may be f8e4m3; as example_input does, rounded in place. */
static inline blk_buffer *attention_values(example *e, blk_type type, float *v, size_t n)
{
	if (type != BLK_TYPE_F8E4M3) return example_input(e, type, v, n);
	uint8_t *codes = example_alloc(e, n);
	for (size_t i = 0; i < n; i++) codes[i] = attention_to_e4m3(&v[i]);
	return example_buffer_of(e, type, codes, n);
}

#endif
