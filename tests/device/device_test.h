/* What the device suites share.  A suite is a program that runs on any device of libblk, cpu and cuda alike:
 *     SUITE [--device=auto|cpu|sim|cuda:N] [--sim-seed=N] [--all] [--part=K/N] [name...]
 * Only cases whose name contains one of the words; --sim-seed: as blkrun has it, asynchronous copies land late if N is
 * odd; --all: more of them, for a machine with many cores; --part: the K-th of N parts of the cases, from 1 on, so that
 * several processes share a long suite.  ONE_CASE_IN=N in the environment: the first of the cases,
 * and of the others about one in N, the same ones each time; for builds that look at our own code, not at results.
 *
 * It builds kernels as text, runs them on poisoned outputs with a guard behind, and compares every element with a
 * reference computed here from scalar.h's exact rules or in double precision. */
#ifndef BLK_DEVICE_TEST_H
#define BLK_DEVICE_TEST_H

#include <blk.h>

#include "support/scalar.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct suite {
	blk_device *device;
	int passed, failed;
	char **words;
	int nwords;
	bool all;
	unsigned one_in, seen; /* ONE_CASE_IN; cases so far that had a wanted name */
	unsigned part, parts;  /* the cases of one part */
} suite;

static inline void suite_open(suite *s, int argc, char **argv)
{
	const char *device = "auto", *seed = NULL;
	char *end = NULL;
	int i = 1;
	const char *one_in = getenv("ONE_CASE_IN");
	*s = (suite){.one_in = one_in ? (unsigned)strtoul(one_in, NULL, 10) : 1, .part = 1, .parts = 1};
	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		if (strncmp(argv[i], "--device=", 9) == 0) {
			device = argv[i] + 9;
		} else if (strncmp(argv[i], "--sim-seed=", 11) == 0) {
			seed = argv[i] + 11;
		} else if (strcmp(argv[i], "--all") == 0) {
			s->all = true;
		} else if (sscanf(argv[i], "--part=%u/%u", &s->part, &s->parts) == 2 && s->part - 1 < s->parts) {
			continue;
		} else {
			fprintf(stderr, "%s is no option of a suite\n", argv[i]);
			exit(2);
		}
	}
	s->words = argv + i;
	s->nwords = argc - i;
	blk_sim_options options = {.seed = seed ? strtoull(seed, &end, 0) : 0};
	if (end && (end == seed || *end)) {
		fprintf(stderr, "--sim-seed is a number, not %s\n", seed);
		exit(2);
	}
	if (blk_device_open(device, &s->device) != BLK_OK ||
		(seed && blk_sim_configure(s->device, &options) != BLK_OK)) {
		fprintf(stderr, "%s\n", blk_error());
		exit(1);
	}
}

static inline bool suite_wants(suite *s, const char *name)
{
	bool wanted = s->nwords == 0;
	uint32_t hash = 2166136261u; /* FNV-1a */
	for (int i = 0; i < s->nwords; i++) wanted = wanted || strstr(name, s->words[i]);
	for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
	if (!wanted || (hash >> 16) % s->parts != s->part - 1) return false;
	return s->seen++ == 0 || s->one_in < 2 || (hash >> 8) % s->one_in == 0;
}

static inline int suite_close(suite *s)
{
	blk_device_close(s->device);
	printf("%d passed, %d failed\n", s->passed, s->failed);
	return s->failed != 0;
}

static inline void *suite_alloc(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);
	if (!p) exit(1);
	return p;
}

static inline uint64_t suite_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t container_at(scalar t, const void *p, size_t i)
{
	uint64_t v = 0;
	memcpy(&v, (const char *)p + i * scalar_bytes(t), scalar_bytes(t));
	return v;
}

static inline void container_put(scalar t, void *p, size_t i, uint64_t v)
{
	memcpy((char *)p + i * scalar_bytes(t), &v, scalar_bytes(t));
}

/* n elements as doubles: a product's reference reads each of them many times. */
static inline double *suite_doubles(scalar t, const void *p, size_t n)
{
	double *d = suite_alloc(n * sizeof *d);
	for (size_t i = 0; i < n; i++) d[i] = scalar_to_double(t, container_at(t, p, i));
	return d;
}

/* n random whole numbers from -3 to 3 in f16, of which sums of products are exact; the same as doubles. */
static inline double *suite_whole_numbers(uint16_t *to, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(suite_random(&seed) % 7) - 3);
	return suite_doubles(SCALAR_F16, to, n);
}

/* Distance in units in the last place of t between a result and the exact value; 0 when both are nan. */
static inline double ulps(scalar t, uint64_t got, double want)
{
	double g = scalar_to_double(t, got);
	if (isnan(g) || isnan(want)) return isnan(g) && isnan(want) ? 0 : INFINITY;
	if (g == want) return 0;
	double rounded = scalar_to_double(t, scalar_from_double(t, want));
	if (isinf(g) || isinf(rounded)) return g == rounded ? 0 : INFINITY;
	int e;
	frexp(want, &e);
	int lowest = t == SCALAR_F64 ? -1022 : 2 - (1 << (scalar_table[t].exponent - 1));
	if (e - 1 < lowest || want == 0) e = lowest + 1;
	return fabs(g - want) / ldexp(1, e - 1 - scalar_table[t].mantissa);
}

enum { SUITE_MAX_BUFFERS = 6, SUITE_GUARD = 64 };

/* One kernel `k`: buffers first (output 0 is poisoned here), then n as i32.  The grid comes from the clause.  Reads the
 * output back into `out` (n elements) and checks the guard. False after a message. */
static inline bool suite_run(suite *s, const char *name, const char *text, const blk_define *defines, size_t ndefines,
	scalar out_type, void *out, size_t nout, const void *const *in, const size_t *in_bytes, int nin, int n)
{
	blk_module *module = NULL;
	blk_kernel *kernel;
	blk_buffer *buffers[SUITE_MAX_BUFFERS] = {0};
	blk_arg args[SUITE_MAX_BUFFERS + 1];
	size_t bytes = (nout + SUITE_GUARD) * scalar_bytes(out_type);
	unsigned char *poison = suite_alloc(bytes);
	memset(poison, 0xa5, bytes);
	bool good = blk_module_source(s->device, name, text, defines, ndefines, &module) == BLK_OK &&
		    blk_kernel_find(module, "k", &kernel) == BLK_OK &&
		    blk_buffer_create(s->device, bytes, &buffers[0]) == BLK_OK &&
		    blk_buffer_write(buffers[0], 0, poison, bytes) == BLK_OK;
	args[0] = blk_buf(buffers[0]);
	for (int i = 0; good && i < nin; i++) {
		good = blk_buffer_create(s->device, in_bytes[i] ? in_bytes[i] : 1, &buffers[i + 1]) == BLK_OK &&
		       blk_buffer_write(buffers[i + 1], 0, in[i], in_bytes[i]) == BLK_OK;
		args[i + 1] = blk_buf(buffers[i + 1]);
	}
	args[nin + 1] = blk_i32(n);
	good = good && blk_launch(kernel, NULL, NULL, args, (size_t)nin + 2) == BLK_OK &&
	       blk_device_sync(s->device) == BLK_OK && blk_buffer_read(buffers[0], 0, poison, bytes) == BLK_OK;
	if (!good) printf("%s: %s\n%s\n", name, blk_error(), text);
	for (size_t i = nout * scalar_bytes(out_type); good && i < bytes; i++)
		if (poison[i] != 0xa5) {
			printf("%s: wrote behind the end\n%s\n", name, text);
			good = false;
		}
	if (good) memcpy(out, poison, nout * scalar_bytes(out_type));
	for (int i = 0; i <= nin; i++) blk_buffer_free(buffers[i]);
	blk_module_close(module);
	free(poison);
	return good;
}

/* Counts a case.  `text`: what is said of a wrong one, its program mostly (suite_run has printed that of one that did
 * not run). */
static inline void suite_verdict(suite *s, bool good, int wrong, const char *text)
{
	if (wrong) printf("%d wrong\n%s\n", wrong, text);
	good && !wrong ? s->passed++ : s->failed++;
}

/* ---- tiles of a shape ---- */

typedef struct shape {
	int rank, dim[4];
} shape;

static inline int product(const shape *s)
{
	int n = 1;
	for (int i = 0; i < s->rank; i++) n *= s->dim[i];
	return n;
}

/* Text of the flattened offset tile of a shape: "arange(0, 4)[:, None] * 8 + arange(0, 8)[None, :] * 1". */
static inline const char *offsets(char *out, size_t room, const shape *s)
{
	size_t at = 0;
	int stride = product(s);
	for (int d = 0; d < s->rank; d++) {
		stride /= s->dim[d];
		at += (size_t)snprintf(out + at, room - at, "%sarange(0, %d)", d ? " + " : "", s->dim[d]);
		for (int k = 0; s->rank > 1 && k < s->rank; k++)
			at += (size_t)snprintf(out + at, room - at, "%s%s%s", k ? ", " : "[", k == d ? ":" : "None",
				k + 1 == s->rank ? "]" : "");
		at += (size_t)snprintf(out + at, room - at, " * %d", stride);
	}
	return out;
}

static inline const char *shape_name(char *out, size_t room, const shape *s)
{
	size_t at = 0;
	*out = 0;
	for (int d = 0; d < s->rank; d++) at += (size_t)snprintf(out + at, room - at, "%s%d", d ? "x" : "", s->dim[d]);
	return out;
}

/* ---- whole programs: f32 in, f32 out, n run-time ---- */

/* The reference fills `z` from `x`, small integers; NAN stands for an element that must stay untouched. */
typedef struct f32_program {
	const char *name, *text;
	int nin, nout, n;
	void (*want)(const float *x, double *z, int n);
} f32_program;

static inline void suite_run_f32(suite *s, const f32_program *p)
{
	if (!suite_wants(s, p->name)) return;
	float *x = suite_alloc((size_t)p->nin * 4), *got = suite_alloc((size_t)p->nout * 4);
	double *want = suite_alloc((size_t)p->nout * sizeof *want);
	uint64_t state = 99;
	for (int i = 0; i < p->nin; i++) x[i] = (float)((int)(suite_random(&state) % 9) - 4);
	size_t bytes = (size_t)p->nin * 4;
	const void *inputs[] = {x};
	bool good = suite_run(s, p->name, p->text, NULL, 0, SCALAR_F32, got, (size_t)p->nout, inputs, &bytes, 1, p->n);
	p->want(x, want, p->n);
	int wrong = 0;
	for (int i = 0; good && i < p->nout; i++) {
		uint32_t bits;
		memcpy(&bits, &got[i], 4);
		bool untouched = bits == 0xa5a5a5a5u;
		if ((isnan(want[i]) ? !untouched : !((double)got[i] == want[i])) && wrong++ < 4)
			printf("%s: element %d is %g, expected %g\n", p->name, i, (double)got[i], want[i]);
	}
	suite_verdict(s, good, wrong, p->text);
	free(x);
	free(got);
	free(want);
}

#endif
