/* What every example shares: the device from the command line, random inputs, poisoned outputs, the comparison with a
 * double-precision reference, and the closing line.  Each example is a program a user could have written against blk.h.
 *
 *   usage: EXAMPLE [--device=auto|cpu|sim|cuda:N] [--sim-seed=N] [--quick]
 * --quick leaves the largest sizes and the timing out; --sim-seed is blkrun's: asynchronous copies land late if N is
 * odd.  Exit status 0 when every element of every case was right.
 *
 * A case is one size or form.  What these functions hand out during a case (host memory, buffers, kernels) lives until
 * example_end_case(), so that a case reads as: inputs, reference, launch, check. */
#ifndef BLK_EXAMPLE_H
#define BLK_EXAMPLE_H

#include <blk.h>

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with libblk's own sentence. */
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		if ((call) != BLK_OK) {                                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, blk_error());                               \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

enum {
	EXAMPLE_GUARD = 64,  /* elements behind an output that no kernel may touch */
	EXAMPLE_OUTPUTS = 4, /* that are compared launch by launch */
	EXAMPLE_MOST = 128   /* things of one kind that a case may make */
};

typedef struct example {
	blk_device *device;
	const char *source; /* path of the .blk file */
	bool quick;
	int passed, failed;
	/* what the running case has made */
	void *memory[EXAMPLE_MOST];
	blk_buffer *buffers[EXAMPLE_MOST];
	blk_type types[EXAMPLE_MOST]; /* of the buffers' elements */
	blk_module *modules[EXAMPLE_MOST];
	int nmemory, nbuffers, nmodules;
} example;

/* ---- The program ---- */

/* Finds "examples/NAME/NAME.blk" from the current folder, else from the program's own. */
static inline const char *example_source(const char *program, const char *name)
{
	static char path[4096];
	snprintf(path, sizeof path, "examples/%s/%s.blk", name, name);
	FILE *f = fopen(path, "r");
	const char *slash = strrchr(program, '/');
	int folder = slash ? (int)(slash - program) : 0;
	static const char *const up[] = {"../..", "../../.."};
	for (int i = 0; !f && i < 2; i++) {
		snprintf(path, sizeof path, "%.*s/%s/examples/%s/%s.blk", folder, folder ? program : ".", up[i], name,
			name);
		f = fopen(path, "r");
	}
	if (f) fclose(f);
	return path;
}

static inline example example_open(int argc, char **argv, const char *name)
{
	example e = {.source = example_source(argv[0], name)};
	const char *device = "auto", *seed = NULL;
	blk_sim_options options = {0};
	for (int i = 1; i < argc; i++) {
		bool known = true;
		if (strncmp(argv[i], "--device=", 9) == 0) {
			device = argv[i] + 9;
		} else if (strncmp(argv[i], "--sim-seed=", 11) == 0) {
			char *end;
			seed = argv[i] + 11;
			options.seed = strtoull(seed, &end, 0);
			known = end != seed && !*end;
		} else if (strcmp(argv[i], "--quick") == 0) {
			e.quick = true;
		} else {
			known = false;
		}
		if (!known) {
			fprintf(stderr, "usage: %s [--device=auto|cpu|sim|cuda:N] [--sim-seed=N] [--quick]\n", argv[0]);
			exit(2);
		}
	}
	TRY(blk_device_open(device, &e.device));
	if (seed) TRY(blk_sim_configure(e.device, &options));
	printf("%s on %s\n", name, blk_device_name(e.device));
	return e;
}

static inline void example_end_case(example *e)
{
	for (int i = 0; i < e->nmemory; i++) free(e->memory[i]);
	for (int i = 0; i < e->nbuffers; i++) blk_buffer_free(e->buffers[i]);
	for (int i = 0; i < e->nmodules; i++) blk_module_close(e->modules[i]);
	e->nmemory = e->nbuffers = e->nmodules = 0;
}

static inline int example_close(example *e)
{
	example_end_case(e);
	blk_device_close(e->device);
	printf("%d passed, %d failed\n", e->passed, e->failed);
	return e->failed != 0;
}

/* ---- Host memory and random numbers ---- */

static inline void *example_alloc(example *e, size_t bytes)
{
	void *p = e->nmemory < EXAMPLE_MOST ? calloc(1, bytes ? bytes : 1) : NULL;
	if (!p) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return e->memory[e->nmemory++] = p;
}

static inline double *example_doubles(example *e, size_t n)
{
	return example_alloc(e, n * sizeof(double));
}

/* splitmix64, and a normal number from the sum of twelve uniform ones. */
static inline uint64_t example_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline float *example_normal(example *e, size_t n, uint64_t seed)
{
	float *v = example_alloc(e, n * sizeof *v);
	for (size_t i = 0; i < n; i++) {
		double s = -6;
		for (int k = 0; k < 6; k++) {
			uint64_t r = example_random(&seed);
			s += (double)(r >> 32) * 0x1p-32 + (double)(r & 0xffffffffu) * 0x1p-32;
		}
		v[i] = (float)s;
	}
	return v;
}

/* ---- f16 and bf16 on the host ---- */

static inline double example_from_f16(uint16_t h)
{
	int exponent = h >> 10 & 31, mantissa = h & 1023;
	double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
				  : ldexp(exponent ? mantissa + 1024 : mantissa, (exponent ? exponent : 1) - 25);
	return h >> 15 ? -v : v;
}

/* To the nearest, ties to even; for numbers that f16 can hold, infinities and nan. */
static inline uint16_t example_to_f16(double v)
{
	if (!isfinite(v)) return isnan(v) ? 0x7e00 : v > 0 ? 0x7c00 : 0xfc00;
	int exponent;
	frexp(v, &exponent);
	if (exponent < -13) exponent = -13;
	int units = (int)nearbyint(ldexp(fabs(v), 11 - exponent)); /* 0 to 2048: carries into the exponent by itself */
	return (uint16_t)((signbit(v) ? 0x8000 : 0) + ((exponent + 13) << 10) + units);
}

/* bf16 is the upper half of f32. */
static inline double example_from_bf16(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float v;
	memcpy(&v, &bits, sizeof v);
	return (double)v;
}

static inline uint16_t example_to_bf16(float v)
{
	uint32_t bits;
	if (isnan(v)) return 0x7fc0;
	memcpy(&bits, &v, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* ---- Buffers ---- */

static inline size_t example_size(blk_type type)
{
	static const uint8_t bytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 2, 2, 4, 8, 8, 8}; /* ORDER blk_type */
	return bytes[type];
}

static inline blk_buffer *example_buffer_of(example *e, blk_type type, const void *elements, size_t n)
{
	blk_buffer *b;
	size_t bytes = n * example_size(type);
	if (e->nbuffers == EXAMPLE_MOST) exit(1);
	TRY(blk_buffer_create(e->device, bytes ? bytes : 1, &b));
	if (bytes) TRY(blk_buffer_write(b, 0, elements, bytes));
	e->types[e->nbuffers] = type;
	return e->buffers[e->nbuffers++] = b;
}

/* n floats; as f16 or bf16 they are rounded first, in place, so that the reference sees what the kernel sees. */
static inline blk_buffer *example_input(example *e, blk_type type, float *values, size_t n)
{
	if (type != BLK_TYPE_F16 && type != BLK_TYPE_BF16) return example_buffer_of(e, BLK_TYPE_F32, values, n);
	uint16_t *halves = example_alloc(e, n * sizeof *halves);
	for (size_t i = 0; i < n; i++) {
		bool half = type == BLK_TYPE_F16;
		halves[i] = half ? example_to_f16(values[i]) : example_to_bf16(values[i]);
		values[i] = (float)(half ? example_from_f16(halves[i]) : example_from_bf16(halves[i]));
	}
	return example_buffer_of(e, type, halves, n);
}

static inline blk_buffer *example_buffer(example *e, float *values, size_t n)
{
	return example_input(e, BLK_TYPE_F32, values, n);
}

/* n zeros, 32 bits each: locks and counters. */
static inline blk_buffer *example_zeros(example *e, size_t n)
{
	return example_buffer_of(e, BLK_TYPE_I32, example_alloc(e, n * 4), n);
}

/* An output of n elements and a guard behind it, all of it poisoned: as floats these bytes are nan. */
static inline blk_buffer *example_output_of(example *e, blk_type type, size_t n)
{
	size_t bytes = (n + EXAMPLE_GUARD) * example_size(type);
	return example_buffer_of(e, type, memset(example_alloc(e, bytes), 0xff, bytes), n + EXAMPLE_GUARD);
}

static inline blk_buffer *example_output(example *e, size_t n)
{
	return example_output_of(e, BLK_TYPE_F32, n);
}

/* ---- Kernels ---- */

/* A kernel of the example's file, compiled with the const values and options that the format spells:
 *	example_kernel(e, "softmax_split", "BLOCK=%d", 256) */
static inline blk_kernel *example_kernel(example *e, const char *name, const char *format, ...)
{
	char text[256];
	blk_define defines[16];
	size_t n = 0;
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	for (char *word = text + strspn(text, " "); *word && n < 16;) {
		char *equals = strchr(word, '='), *end = word + strcspn(word, " ");
		if (!equals || equals > end || e->nmodules == EXAMPLE_MOST) exit(1);
		defines[n++] = (blk_define){word, equals + 1};
		word = *end ? end + 1 : end;
		*equals = *end = 0;
	}
	blk_kernel *kernel;
	TRY(blk_module_open(e->device, e->source, defines, n, &e->modules[e->nmodules]));
	TRY(blk_kernel_find(e->modules[e->nmodules++], name, &kernel));
	return kernel;
}

/* ---- Checking and timing ---- */

static inline double example_value(blk_type type, const void *elements, size_t i)
{
	switch (type) {
	case BLK_TYPE_I32: return ((const int32_t *)elements)[i];
	case BLK_TYPE_F16: return example_from_f16(((const uint16_t *)elements)[i]);
	case BLK_TYPE_BF16: return example_from_bf16(((const uint16_t *)elements)[i]);
	default: return (double)((const float *)elements)[i];
	}
}

/* Compares every element of an output with the reference, which it may miss by `bound`, or where that is null by
 * `tolerance` of the largest magnitude; nan never passes; the guard must stay.  Prints the worst element's error as
 * a part of its bound, or relative to the largest magnitude. */
static inline bool example_compare(example *e, blk_buffer *output, const double *want, const double *bound, size_t n,
	double tolerance, const char *what)
{
	int which = 0;
	while (e->buffers[which] != output) which++;
	blk_type type = e->types[which];
	size_t size = example_size(type), bytes = (n + EXAMPLE_GUARD) * size, at = 0;
	unsigned char *got = malloc(bytes);
	if (!got) exit(1);
	TRY(blk_buffer_read(output, 0, got, bytes));
	double worst = 0, largest = 0;
	for (size_t i = 0; i < n; i++)
		if (fabs(want[i]) > largest) largest = fabs(want[i]);
	if (!(largest > 0)) largest = 1;
	for (size_t i = 0; i < n; i++) {
		double error = want[i] == example_value(type, got, i) ? 0 : fabs(example_value(type, got, i) - want[i]);
		if (error != 0) error /= bound ? bound[i] : largest;
		if (!(error <= worst)) worst = error, at = i;
		if (isnan(error)) break;
	}
	bool good = worst <= (bound ? 1 : tolerance);
	for (size_t i = n * size; good && i < bytes; i++)
		if (got[i] != 0xff) good = false, at = i / size;
	if (bound)
		printf("  %-44s largest error %.3f of its bound%s\n", what, worst, good ? "" : "  WRONG");
	else
		printf("  %-44s largest error %.2e%s\n", what, worst, good ? "" : "  WRONG");
	if (!good)
		printf("    at %zu: %.9g, expected %.9g\n", at, example_value(type, got, at),
			at < n ? want[at] : (double)NAN);
	e->passed += good;
	e->failed += !good;
	free(got);
	return good;
}

/* The same launch again, 1000 times on a GPU (100 where quick) and once elsewhere, over poison: outputs have the same
 * bits each time. */
static inline void example_same_bits(example *e, blk_kernel *kernel, const blk_arg *args, size_t nargs,
	blk_buffer *const *outputs, size_t n, const char *what)
{
	blk_device_info info;
	TRY(blk_device_query(e->device, &info));
	int launches = info.kind != BLK_DEVICE_CUDA ? 1 : e->quick ? 100 : 1000, differ = 0;
	void *first[EXAMPLE_OUTPUTS], *now[EXAMPLE_OUTPUTS];
	if (n > EXAMPLE_OUTPUTS) exit(1);
	for (size_t k = 0; k < n; k++) {
		size_t bytes = blk_buffer_size(outputs[k]);
		first[k] = example_alloc(e, bytes);
		now[k] = example_alloc(e, bytes);
		TRY(blk_buffer_read(outputs[k], 0, first[k], bytes));
	}
	for (int i = 0; i < launches; i++) {
		bool same = true;
		for (size_t k = 0; k < n; k++) TRY(blk_buffer_fill(outputs[k], 0, 0xff, blk_buffer_size(outputs[k])));
		TRY(blk_launch(kernel, NULL, NULL, args, nargs));
		for (size_t k = 0; k < n; k++) {
			size_t bytes = blk_buffer_size(outputs[k]);
			TRY(blk_buffer_read(outputs[k], 0, now[k], bytes));
			same &= memcmp(first[k], now[k], bytes) == 0;
		}
		differ += !same;
	}
	printf("  %-60s %d launches more, %d with other bits%s\n", what, launches, differ, differ ? "  WRONG" : "");
	e->passed += !differ;
	e->failed += differ != 0;
}

/* The format names the case. */
static inline bool example_check(
	example *e, blk_buffer *output, const double *want, size_t n, double tolerance, const char *format, ...)
{
	char what[128];
	va_list list;
	va_start(list, format);
	vsnprintf(what, sizeof what, format, list);
	va_end(list);
	return example_compare(e, output, want, NULL, n, tolerance, what);
}

/* Times a launch and prints it with the bytes it must move. */
static inline void example_time(example *e, blk_kernel *kernel, const blk_grid *grid, const blk_arg *args, size_t nargs,
	double bytes, const char *what)
{
	if (e->quick) return;
	blk_timing t;
	TRY(blk_bench(kernel, grid, args, nargs, NULL, &t));
	printf("  %-44s %.3f ms, %.0f GB/s\n", what, t.median_ms, bytes / t.median_ms * 1e-6);
}

#endif
