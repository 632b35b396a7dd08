/* gemm_waves (blk/gemm.blk): tiles in whole waves, the K of those that are left in parts.
 *
 * In: products on sizes that no tile divides, of so many tiles and programs that none, one, or all but one of a wave
 * are left.  Every launch writes upon poison, the first one finds poison in `parts` and the later ones what was left
 * there.
 * Out: the first is compared with sums in double precision, the others with its bits; `arrived` is zeros after each,
 * and nothing is written behind the blocks that the programs have.  The simulator has another order for each launch. */
#include "device_test.h"

enum { LAUNCHES = 4, BM = 64, BN = 32, BK = 32, MOST_PROGRAMS = 16, GUARD = 1024 };

typedef struct form {
	const char *name, *type, *out;
	int m, n, k, batch; /* batch 0: matrices without one */
	int programs, part;
	bool ta, tb; /* stored as [K, M], [N, K] */
	const char *epilogue;
	int rest, split; /* what is expected of these sizes; said here so that each form is what its name says */
} form;

static const form forms[] = {
	{"none left", "f16", "f16", 120, 50, 104, 0, 4, 32, false, false, "gemm_plain", 0, 1},
	{"one left", "f16", "f16", 77, 70, 200, 0, 5, 32, false, true, "gemm_add", 1, 4},
	{"one left behind two waves", "f16", "f32", 190, 72, 264, 0, 4, 64, true, false, "gemm_plain", 1, 3},
	{"all but one left", "f16", "f16", 120, 120, 264, 0, 9, 32, false, false, "gemm_add", 8, 1},
	{"half left", "bf16", "bf16", 72, 88, 264, 0, 4, 32, true, true, "gemm_scale", 2, 2},
	{"three parts in two turns", "f16", "f16", 180, 24, 200, 0, 5, 32, false, true, "gemm_add", 3, 3},
	{"two turns behind two waves", "bf16", "f32", 500, 60, 136, 0, 7, 32, false, false, "gemm_scale", 2, 3},
	{"two turns of a batch", "f16", "f16", 130, 60, 136, 3, 11, 32, true, false, "gemm_add", 7, 3},
	{"some do nothing", "f16", "f16", 77, 40, 328, 0, 13, 32, false, false, "gemm_plain", 4, 3},
	{"fewer tiles than programs", "f16", "f16", 56, 24, 504, 0, 7, 64, false, true, "gemm_scale", 1, 6},
	{"part shorter than a block", "f16", "f16", 56, 24, 77, 0, 7, 1, false, false, "gemm_plain", 1, 2},
	{"K shorter than a block", "f16", "f16", 130, 51, 3, 0, 5, 1, false, false, "gemm_add", 1, 1},
	{"no K", "f16", "f16", 77, 24, 0, 0, 3, 1, false, false, "gemm_add", 2, 1},
	{"one K", "f16", "f16", 130, 51, 1, 0, 5, 1, true, false, "gemm_plain", 1, 1},
	{"uneven parts", "f16", "f16", 56, 24, 136, 0, 4, 32, false, false, "gemm_plain", 1, 3},
	{"batch", "bf16", "bf16", 72, 40, 136, 3, 7, 32, false, true, "gemm_add", 5, 1},
	{"batch in parts", "f16", "f16", 72, 40, 136, 3, 11, 32, false, true, "gemm_scale", 1, 3},
	{"rows of any place", "f16", "f16", 67, 33, 99, 0, 9, 32, false, false, "gemm_add", 4, 2},
	{"not cut", "f16", "f16", 77, 70, 200, 0, 5, 0, false, false, "gemm_plain", 1, 1},
	{"f32", "f32", "f32", 67, 33, 100, 0, 9, 32, false, true, "gemm_add", 4, 2},
	{"f8", "f8e4m3", "f32", 77, 40, 208, 0, 9, 32, false, true, "gemm_plain", 4, 2},
	{"i8", "i8", "i32", 77, 40, 208, 0, 9, 32, false, true, "gemm_plain", 4, 2},
};

typedef struct products {
	scalar in, out;
	size_t n, a, b, c; /* products, and elements */
} products;

static int ceil_div(int a, int b)
{
	return (a + b - 1) / b;
}

/* What the form says of itself, from its sizes. */
static bool is_what_it_says(const form *f)
{
	int tiles = (f->batch ? f->batch : 1) * ceil_div(f->m, BM) * ceil_div(f->n, BN), rest = tiles % f->programs;
	int least = f->part > BK ? f->part : BK, split = rest && f->part ? f->programs / rest : 1,
	    steps = ceil_div(f->k, BK);
	if (split > f->k / least) split = f->k / least;
	if (f->part && 2 * rest > f->programs) split = 3 * rest <= 2 * f->programs && f->k / least >= 3 ? 3 : 1;
	split = split < 2 ? 1 : ceil_div(steps, ceil_div(steps, split));
	if (rest == f->rest && (split == f->split || rest == 0)) return true;
	printf("%s: %d tiles are left, in %d parts each\n", f->name, rest, split);
	return false;
}

static void kernel_text(char *out, size_t room, const form *f)
{
	const char *batch = f->batch ? "3, " : "";
	char a[64], b[64];
	int n = 0;
	n = f->batch ? snprintf(a, sizeof a, "%d, ", f->m * f->k) : 0;
	snprintf(a + n, sizeof a - (size_t)n, f->ta ? "1, M" : "K, 1");
	n = f->batch ? snprintf(b, sizeof b, "%d, ", f->n * f->k) : 0;
	snprintf(b + n, sizeof b - (size_t)n, f->tb ? "1, K" : "N, 1");
	snprintf(out, room,
		"import \"blk/gemm.blk\";\n"
		"const M: i32 = %d; const N: i32 = %d; const K: i32 = %d;\n"
		"kernel k(const T: type, const OUT: type, c: *OUT, a: *const T, b: *const T, d: *const OUT,\n"
		"    parts: *%s, arrived: *i32, n: i32) grid(%d) options(num_warps = 4, num_stages = 3)\n"
		"{\n"
		"    let A = tensor(a, shape = [%sM, K], strides = [%s]);\n"
		"    let B = tensor(b, shape = [%sK, N], strides = [%s]);\n"
		"    let C = tensor(c, shape = [%sM, n]);\n"
		"    let D = tensor(d, shape = [%sM, n]);\n"
		"    gemm_waves(C, A, B, parts, arrived, %s, %s, BM = %d, BN = %d, BK = %d, PART = %d);\n"
		"}\n",
		f->m, f->n, f->k, strcmp(f->type, "i8") == 0 ? "i32" : "f32", f->programs, batch, a, batch, b, batch,
		batch, f->epilogue, strcmp(f->epilogue, "gemm_scale") == 0 ? "(0.5, 2.0, D)" : "D", BM, BN, BK,
		f->part);
}

static double finished(const form *f, double v, double d)
{
	if (strcmp(f->epilogue, "gemm_add") == 0) return v + d;
	return strcmp(f->epilogue, "gemm_scale") == 0 ? 0.5 * v + 2 * d : v;
}

static void *values(scalar t, size_t n, uint64_t seed, double **exact)
{
	void *p = suite_alloc((n ? n : 1) * scalar_bytes(t));
	bool whole = t == SCALAR_I8 || t == SCALAR_I32;
	for (size_t i = 0; i < n; i++) {
		double x = (double)(suite_random(&seed) >> 40) / (1 << 24) - 0.5;
		uint64_t bits = whole ? (uint64_t)(int64_t)lrint(x * 200) : scalar_from_double(t, x * 2);
		container_put(t, p, i, bits);
	}
	*exact = suite_alloc((n ? n : 1) * sizeof **exact);
	for (size_t i = 0; i < n; i++) (*exact)[i] = scalar_to_double(t, container_at(t, p, i));
	return p;
}

/* How many elements of the first launch's results are wrong. */
static int compare(const form *f, const products *p, const void *got, const double *a, const double *b, const double *d)
{
	int wrong = 0;
	double u = p->in == SCALAR_F8E4M3 ? 0x1p-13 : p->in == SCALAR_F32 ? 0x1p-11 : 0x1p-24;
	double half = p->out == SCALAR_F16 ? 0x1p-11 : p->out == SCALAR_BF16 ? 0x1p-8 : 0x1p-23;
	for (size_t at = 0; at < p->c; at++) {
		size_t cell = (size_t)f->m * (size_t)f->n, z = at / cell;
		int i = (int)(at % cell) / f->n, j = (int)(at % (size_t)f->n);
		double v = 0, size = 0;
		for (int l = 0; l < f->k; l++) {
			double x = a[z * (size_t)(f->m * f->k) + (size_t)(f->ta ? l * f->m + i : i * f->k + l)];
			double y = b[z * (size_t)(f->n * f->k) + (size_t)(f->tb ? j * f->k + l : l * f->n + j)];
			v += x * y;
			size += fabs(x * y);
		}
		double want = finished(f, v, d[at]), is = scalar_to_double(p->out, container_at(p->out, got, at));
		double bound = p->out == SCALAR_I32
				       ? 0
				       : 2.2 * (f->k + 8) * u * size + fabs(want) * half + (fabs(want) + 4) * 0x1p-20;
		if (!(fabs(is - want) <= bound) && wrong++ < 3)
			printf("%s: element (%zu, %d, %d) is %g, expected %g +- %g\n", f->name, z, i, j, is, want,
				bound);
	}
	return wrong;
}

typedef enum buffer_of { C, A, B, D, PARTS, ARRIVED, BUFFERS } buffer_of;

/* One launch; False after a message. */
static bool launch(
	suite *s, const form *f, blk_kernel *kernel, blk_buffer **buffers, size_t parts, void *out, size_t bytes)
{
	static unsigned char left[(MOST_PROGRAMS * BM * BN + GUARD) * 4];
	blk_arg args[BUFFERS + 1];
	for (int i = 0; i < BUFFERS; i++) args[i] = blk_buf(buffers[i]);
	args[BUFFERS] = blk_i32(f->n);
	if (blk_buffer_fill(buffers[C], 0, 0xa5, bytes + SUITE_GUARD) ||
		blk_launch(kernel, NULL, NULL, args, BUFFERS + 1) || blk_device_sync(s->device) ||
		blk_buffer_read(buffers[C], 0, out, bytes + SUITE_GUARD)) {
		printf("%s: %s\n", f->name, blk_error());
		return false;
	}
	for (size_t i = bytes; i < bytes + SUITE_GUARD; i++)
		if (((unsigned char *)out)[i] != 0xa5) return printf("%s: wrote behind the end\n", f->name), false;
	if (blk_buffer_read(buffers[ARRIVED], 0, left, MOST_PROGRAMS * 4)) return printf("%s\n", blk_error()), false;
	for (int i = 0; i < MOST_PROGRAMS * 4; i++)
		if (left[i]) return printf("%s: arrived[%d] is not 0 again\n", f->name, i / 4), false;
	if (blk_buffer_read(buffers[PARTS], parts, left, GUARD * 4)) return printf("%s\n", blk_error()), false;
	for (int i = 0; i < GUARD * 4; i++)
		if (left[i] != 0xff) return printf("%s: wrote behind the last program's part\n", f->name), false;
	return true;
}

static void run(suite *s, const form *f, scalar in, scalar out)
{
	products p = {.in = in, .out = out, .n = f->batch ? (size_t)f->batch : 1};
	p.a = p.n * (size_t)(f->m * f->k), p.b = p.n * (size_t)(f->n * f->k), p.c = p.n * (size_t)(f->m * f->n);
	double *a, *b, *d;
	void *from[] = {values(in, p.a, 1, &a), values(in, p.b, 2, &b), values(out, p.c, 3, &d)};
	const size_t bytes[] = {p.a * scalar_bytes(in), p.b * scalar_bytes(in), p.c * scalar_bytes(out)};
	size_t parts = (size_t)f->programs * 2 * BM * BN * 4;
	void *first = suite_alloc(bytes[2] + SUITE_GUARD), *again = suite_alloc(bytes[2] + SUITE_GUARD);
	char text[4096];
	blk_module *module = NULL;
	blk_kernel *kernel = NULL;
	blk_buffer *buffers[BUFFERS] = {0};
	const blk_define defines[] = {{"T", f->type}, {"OUT", f->out}};
	kernel_text(text, sizeof text, f);
	bool good = is_what_it_says(f);
	bool made = !blk_module_source(s->device, f->name, text, defines, 2, &module) &&
		    !blk_kernel_find(module, "k", &kernel) &&
		    !blk_buffer_create(s->device, bytes[2] + SUITE_GUARD, &buffers[C]) &&
		    !blk_buffer_create(s->device, parts + GUARD * 4, &buffers[PARTS]) &&
		    !blk_buffer_fill(buffers[PARTS], 0, 0xff, parts + GUARD * 4) &&
		    !blk_buffer_create(s->device, MOST_PROGRAMS * 4, &buffers[ARRIVED]) &&
		    !blk_buffer_fill(buffers[ARRIVED], 0, 0, MOST_PROGRAMS * 4);
	for (int i = 0; made && i < 3; i++)
		made = !blk_buffer_create(s->device, bytes[i] ? bytes[i] : 1, &buffers[A + i]) &&
		       !blk_buffer_write(buffers[A + i], 0, from[i], bytes[i]);
	if (!made) printf("%s: %s\n", f->name, blk_error());
	good = good && made;
	int wrong = 0;
	for (int i = 0; good && !wrong && i < LAUNCHES; i++) {
		blk_sim_options order = {.seed = (uint64_t)i, .schedules = 1};
		if (strncmp(blk_device_name(s->device), "simulator", 9) == 0)
			good = !blk_sim_configure(s->device, &order);
		good = good && launch(s, f, kernel, buffers, parts, i ? again : first, bytes[2]);
		if (good && i == 0) wrong = compare(f, &p, first, a, b, d);
		if (good && i && memcmp(first, again, bytes[2]) != 0)
			wrong = printf("%s: launch %d wrote other bits than the first\n", f->name, i);
	}
	suite_verdict(s, good, wrong, text);
	for (int i = 0; i < BUFFERS; i++) blk_buffer_free(buffers[i]);
	blk_module_close(module);
	for (int i = 0; i < 3; i++) free(from[i]);
	free(a), free(b), free(d), free(first), free(again);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		scalar in = SCALAR_F16, out = SCALAR_F16;
		for (int k = 0; k < SCALAR_COUNT; k++) {
			if (strcmp(scalar_name((scalar)k), forms[i].type) == 0) in = (scalar)k;
			if (strcmp(scalar_name((scalar)k), forms[i].out) == 0) out = (scalar)k;
		}
		if (suite_wants(&s, forms[i].name)) run(&s, &forms[i], in, out);
	}
	return suite_close(&s);
}
