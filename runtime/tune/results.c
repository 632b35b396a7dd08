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

/* An element's bits. */
static uint64_t container(scalar s, const uint8_t *at)
{
	uint64_t bits = 0;
	switch (scalar_bytes(s)) { /* a copy of a known size is one load */
	case 1: return *at;
	case 2: memcpy(&bits, at, 2); return bits;
	case 4: memcpy(&bits, at, 4); return bits;
	default: memcpy(&bits, at, 8); return bits;
	}
}

enum { RUN = 64 }; /* elements that are read at a time */

static size_t run_of(size_t left)
{
	return left < RUN ? left : RUN;
}

static double square(double u)
{
	return isfinite(u) ? u * u : 0;
}

static double square_sum(scalar s, const uint8_t *a, size_t bytes)
{
	unsigned width = scalar_bytes(s);
	double sum = 0, u[RUN];
	for (size_t i = 0, n = bytes / width; i < n; i += RUN) {
		scalar_read(s, a + width * i, run_of(n - i), u);
		for (size_t j = 0; j < run_of(n - i); j++) sum += square(u[j]);
	}
	return sum;
}

/* How far two integers of a type lie apart: exactly, as a double takes large neighbours for one. */
static double apart(scalar s, uint64_t x, uint64_t y)
{
	uint64_t a = scalar_is_signed(s) ? (uint64_t)scalar_sign_extend(s, x) : x;
	uint64_t b = scalar_is_signed(s) ? (uint64_t)scalar_sign_extend(s, y) : y;
	bool less = scalar_is_signed(s) ? (int64_t)a < (int64_t)b : a < b;
	return (double)(less ? b - a : a - b);
}

static double integer_distance(scalar s, const uint8_t *a, const uint8_t *b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		double d = apart(s, container(s, a + i * scalar_bytes(s)), container(s, b + i * scalar_bytes(s)));
		sum += d * d;
	}
	return sum;
}

/* Two NaNs are equal, and so are two infinities. */
static double float_distance(scalar s, const uint8_t *a, const uint8_t *b, size_t n)
{
	double sum = 0, u[RUN], v[RUN];
	scalar_read(s, a, n, u);
	scalar_read(s, b, n, v);
	for (size_t i = 0; i < n; i++) {
		double d = u[i] == v[i] || (isnan(u[i]) && isnan(v[i])) ? 0 : u[i] - v[i];
		sum += d * d;
	}
	return sum;
}

/* Sum of the squares of the differences; most runs have equal bits. */
static double square_distance(scalar s, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	unsigned width = scalar_bytes(s);
	double sum = 0;
	for (size_t i = 0, n = bytes / width; i < n; i += RUN) {
		const uint8_t *x = a + width * i, *y = b + width * i;
		size_t m = run_of(n - i);
		if (memcmp(x, y, m * width) == 0) continue;
		sum += scalar_is_float(s) ? float_distance(s, x, y, m) : integer_distance(s, x, y, m);
	}
	return sum;
}

/* Of those that one of two runs has changed, or that differ between them, the sum of a's squares. */
static double changed_square_sum(scalar s, const uint8_t *before, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	unsigned width = scalar_bytes(s);
	double sum = 0, u[RUN];
	for (size_t i = 0, n = bytes / width; i < n; i += RUN) {
		size_t m = run_of(n - i), at = width * i;
		if (memcmp(a + at, before + at, m * width) == 0 && memcmp(b + at, before + at, m * width) == 0)
			continue;
		scalar_read(s, a + at, m, u);
		for (size_t j = 0; j < m; j++, at += width) {
			uint64_t old = container(s, before + at);
			if (container(s, a + at) != old || container(s, b + at) != old) sum += square(u[j]);
		}
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
