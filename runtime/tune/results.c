/* Whether a configuration computes what the first one does.
 *
 * A written parameter's part of the copies (tune/memory.c) is compared as elements of its type: by the relative
 * Frobenius norm of the difference.  Of a blk_buffer the norm is over all of it.  Behind a bare pointer there may be
 * memory of others, so the norm there is over what the trials have changed, or left different: that never lets more
 * pass. */
#include "support/scalar.h"
#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double allowed(const tuner *t, scalar s)
{
	if (t->tolerance >= 0) return t->tolerance;
	if (!scalar_is_float(s)) return 0;
	return scalar_bytes(s) == 1 ? 0.1 : scalar_bytes(s) == 2 ? 1e-2 : s == SCALAR_F32 ? 1e-4 : 1e-10;
}

static uint64_t container(scalar s, const uint8_t *at)
{
	uint64_t bits = 0;
	memcpy(&bits, at, scalar_bytes(s));
	return bits;
}

static double element(scalar s, const uint8_t *at)
{
	return scalar_to_double(s, container(s, at));
}

static double square_sum(scalar s, const uint8_t *a, size_t bytes)
{
	double sum = 0;
	for (size_t i = 0; i + scalar_bytes(s) <= bytes; i += scalar_bytes(s)) {
		double u = element(s, a + i);
		if (isfinite(u)) sum += u * u;
	}
	return sum;
}

/* How far two elements of a type lie apart: 0 where both are NaN, and of integers exactly, as a double takes large
 * neighbours for one. */
static double apart(scalar s, uint64_t x, uint64_t y)
{
	if (scalar_is_float(s)) {
		double u = scalar_to_double(s, x), v = scalar_to_double(s, y);
		return isnan(u) && isnan(v) ? 0 : u - v;
	}
	uint64_t a = scalar_is_signed(s) ? (uint64_t)scalar_sign_extend(s, x) : x;
	uint64_t b = scalar_is_signed(s) ? (uint64_t)scalar_sign_extend(s, y) : y;
	bool less = scalar_is_signed(s) ? (int64_t)a < (int64_t)b : a < b;
	return (double)(less ? b - a : a - b);
}

/* The same of the differences; elements of equal bits, NaN or not, are equal, and most stretches are. */
static double square_distance(scalar s, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	enum { STRETCH = 64 };
	unsigned width = scalar_bytes(s);
	double sum = 0;
	for (size_t from = 0; from < bytes; from += STRETCH) {
		size_t to = bytes - from < STRETCH ? bytes : from + STRETCH;
		if (memcmp(a + from, b + from, to - from) == 0) continue;
		for (size_t i = from; i + width <= to; i += width) {
			uint64_t x = container(s, a + i), y = container(s, b + i);
			double d = x == y ? 0 : apart(s, x, y);
			sum += d * d;
		}
	}
	return sum;
}

/* The same of those that one of two runs has changed, or that differ between them. */
static double changed_square_sum(scalar s, const uint8_t *before, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	unsigned width = scalar_bytes(s);
	double sum = 0;
	for (size_t i = 0; i + width <= bytes; i += width) {
		if (memcmp(a + i, before + i, width) == 0 && memcmp(b + i, before + i, width) == 0) continue;
		double u = element(s, a + i);
		if (isfinite(u)) sum += u * u;
	}
	return sum;
}

/* What a trial finds in a section, into t->before. */
static blk_status read_before(trial *t, const trial_section *s)
{
	memset(t->before, 0, s->bytes);
	return s->copy->zeroed ? BLK_OK : trial_read(t, t->before, s->copy->kept + s->from, s->bytes);
}

/* Relative Frobenius distance of what is in t->got from the first configuration's results. */
static blk_status distance(trial *t, trial_section *at, scalar s, double *far)
{
	double difference = square_distance(s, at->reference, t->got, at->bytes), norm = 0;
	*far = 0;
	if (difference == 0) return BLK_OK;
	if (at->is_whole) {
		if (at->square_sum == 0) at->square_sum = square_sum(s, at->reference, at->bytes);
		norm = at->square_sum;
	} else {
		blk_status status = read_before(t, at);
		if (status) return status;
		norm = changed_square_sum(s, t->before, at->reference, t->got, at->bytes);
	}
	*far = norm > 0 ? sqrt(difference / norm) : (double)INFINITY;
	return BLK_OK;
}

static char *sentence(const char *format, const char *name, double a, double b)
{
	char text[256];
	snprintf(text, sizeof text, format, name, a, b);
	return strdup(text);
}

/* Compares with the reference, or becomes it. */
blk_status trial_judge(trial *t, tune_result *r)
{
	const blk_kernel *k = t->job->kernel;
	for (uint32_t i = 0; i < t->nsections; i++) {
		trial_section *s = &t->sections[i];
		const signature_parameter *p = &k->sig->parameters[s->parameter];
		void *to = t->has_reference ? t->got : s->reference;
		blk_status status = trial_read(t, to, s->copy->at + s->from, s->bytes);
		if (status) return status;
		if (!t->has_reference) continue;
		double limit = allowed(k->tuner, (scalar)p->element), far;
		if ((status = distance(t, s, (scalar)p->element, &far))) return status;
		if (!(far <= limit)) {
			r->verdict = BLK_TUNE_WRONG;
			free(r->reason);
			r->reason = sentence("%s differs from the first configuration's by %.3g (allowed %.3g)",
				p->name, far, limit);
			return BLK_OK;
		}
	}
	t->has_reference = true;
	r->verdict = BLK_TUNE_GOOD;
	return BLK_OK;
}
