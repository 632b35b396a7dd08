/* Sums over two arrays of elements.  See distance.h.
 *
 * In: arrays of results, and what was there before.  Out: a sum, the same bits on any number of cores.  The one idea:
 * the arrays are cut into parts of one size, cores take part after part, and the parts' sums are added in order. */
#include "distance.h"
#include "tune.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

static double squares(scalar s, const uint8_t *before, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	unsigned width = scalar_bytes(s);
	double sum = 0, u[RUN];
	(void)before, (void)b;
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

/* Most runs have equal bits. */
static double differences(scalar s, const uint8_t *before, const uint8_t *a, const uint8_t *b, size_t bytes)
{
	unsigned width = scalar_bytes(s);
	double sum = 0;
	(void)before;
	for (size_t i = 0, n = bytes / width; i < n; i += RUN) {
		const uint8_t *x = a + width * i, *y = b + width * i;
		size_t m = run_of(n - i);
		if (memcmp(x, y, m * width) == 0) continue;
		sum += scalar_is_float(s) ? float_distance(s, x, y, m) : integer_distance(s, x, y, m);
	}
	return sum;
}

static double changed_squares(scalar s, const uint8_t *before, const uint8_t *a, const uint8_t *b, size_t bytes)
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

/* ---- By all cores ---- */

typedef double (*part_sum)(scalar, const uint8_t *before, const uint8_t *a, const uint8_t *b, size_t bytes);

enum { PART = 1 << 18 }; /* bytes; RUNs of any type fill it */

typedef struct summing {
	part_sum sum;
	scalar s;
	const uint8_t *before, *a, *b; /* null: not asked for */
	size_t bytes;
	double *parts;
	atomic_size_t next;
} summing;

static double sum_part(const summing *j, size_t part)
{
	size_t at = part * PART, bytes = j->bytes - at < PART ? j->bytes - at : PART;
	return j->sum(j->s, j->before ? j->before + at : NULL, j->a + at, j->b ? j->b + at : NULL, bytes);
}

static size_t parts_of(size_t bytes)
{
	return bytes / PART + (bytes % PART != 0);
}

static void *sum_some(void *argument)
{
	summing *j = argument;
	size_t part, n = parts_of(j->bytes);
	while ((part = atomic_fetch_add(&j->next, 1)) < n) j->parts[part] = sum_part(j, part);
	return NULL;
}

/* Without memory for the parts' sums this thread makes one after the other. */
static double sum_all(summing *j)
{
	size_t n = parts_of(j->bytes);
	double sum = 0;
	j->parts = n > 1 ? calloc(n, sizeof *j->parts) : NULL;
	if (j->parts) tune_on_cores(n < UINT32_MAX ? (uint32_t)n : UINT32_MAX, sum_some, j);
	for (size_t i = 0; i < n; i++) sum += j->parts ? j->parts[i] : sum_part(j, i);
	free(j->parts);
	return sum;
}

double sum_of_differences(scalar s, const void *a, const void *b, size_t bytes)
{
	return sum_all(&(summing){.sum = differences, .s = s, .a = a, .b = b, .bytes = bytes});
}

double sum_of_squares(scalar s, const void *a, size_t bytes)
{
	return sum_all(&(summing){.sum = squares, .s = s, .a = a, .bytes = bytes});
}

double sum_of_changed_squares(scalar s, const void *before, const void *a, const void *b, size_t bytes)
{
	return sum_all(&(summing){.sum = changed_squares, .s = s, .before = before, .a = a, .b = b, .bytes = bytes});
}
