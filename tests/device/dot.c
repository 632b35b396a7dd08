/* dot on every type, extents from 1 to 256, both orders of each operand's memory, batches, accumulators, numbers of
 * warps, small whole products with a loop over k, and dots among other work.  The reference is a sum in double
 * precision of the operands' exact values; a result may differ from it by (K + 8) * u * sum(|a * b|), u the unit of the
 * coarsest rounding that the type and the precision allow, and by the rounding of the result itself. */
#include "device_test.h"

typedef struct kind {
	const char *name;
	scalar a, b, out;
	const char *options; /* after the operands: precision, out */
	double u;
} kind;

static const kind kinds[] = {
	{"f16", SCALAR_F16, SCALAR_F16, SCALAR_F32, "", 0x1p-24},
	{"bf16", SCALAR_BF16, SCALAR_BF16, SCALAR_F32, "", 0x1p-24},
	{"f16_f16", SCALAR_F16, SCALAR_F16, SCALAR_F16, ", out = f16", 0x1p-24},
	{"tf32", SCALAR_F32, SCALAR_F32, SCALAR_F32, "", 0x1p-11},
	{"tf32x3", SCALAR_F32, SCALAR_F32, SCALAR_F32, ", precision = \"tf32x3\"", 0x1p-21},
	{"ieee", SCALAR_F32, SCALAR_F32, SCALAR_F32, ", precision = \"ieee\"", 0x1p-24},
	{"f64", SCALAR_F64, SCALAR_F64, SCALAR_F64, "", 0x1p-53},
	{"i8", SCALAR_I8, SCALAR_I8, SCALAR_I32, "", 0},
	{"e4m3", SCALAR_F8E4M3, SCALAR_F8E4M3, SCALAR_F32, "", 0x1p-13},
	{"e5m2", SCALAR_F8E5M2, SCALAR_F8E5M2, SCALAR_F32, "", 0x1p-13},
	{"e4m3_e5m2", SCALAR_F8E4M3, SCALAR_F8E5M2, SCALAR_F32, "", 0x1p-13},
	{"e5m2_e4m3", SCALAR_F8E5M2, SCALAR_F8E4M3, SCALAR_F32, "", 0x1p-13},
};

static uint64_t random_element(scalar t, uint64_t *state)
{
	double v = (double)(int64_t)(suite_random(state) >> 11) * 0x1p-52 - 1;
	if (t == SCALAR_I8) return scalar_truncate(t, suite_random(state));
	return scalar_from_double(t, v);
}

/* One product of [batch, m, k] with [batch, k, n], run-time extents below the tile's. */
typedef struct problem {
	int batch, m, n, k;
	bool trans_a, trans_b; /* the operand is stored the other way round */
	const void *a, *b, *c; /* c: the accumulator, or null */
} problem;

static size_t a_at(const problem *p, int t, int i, int l)
{
	return p->trans_a ? ((size_t)t * p->k + l) * p->m + i : ((size_t)t * p->m + i) * p->k + l;
}

static size_t b_at(const problem *p, int t, int l, int j)
{
	return p->trans_b ? ((size_t)t * p->n + j) * p->k + l : ((size_t)t * p->k + l) * p->n + j;
}

static int compare(const kind *d, const problem *p, const char *name, const void *got)
{
	int wrong = 0;
	double *a = suite_doubles(d->a, p->a, (size_t)p->batch * p->m * p->k);
	double *b = suite_doubles(d->b, p->b, (size_t)p->batch * p->k * p->n);
	for (int t = 0; t < p->batch; t++)
		for (int i = 0; i < p->m; i++)
			for (int j = 0; j < p->n; j++) {
				size_t at = ((size_t)t * p->m + i) * p->n + j;
				double sum = p->c ? scalar_to_double(d->out, container_at(d->out, p->c, at)) : 0;
				double size = fabs(sum);
				for (int l = 0; l < p->k; l++) {
					double product = a[a_at(p, t, i, l)] * b[b_at(p, t, l, j)];
					sum += product;
					size += fabs(product);
				}
				double have = scalar_to_double(d->out, container_at(d->out, got, at));
				double bound = (p->k + 8) * d->u * size;
				if (d->out == SCALAR_F16) bound += fabs(sum) * 0x1p-11 + 0x1p-25;
				if (!(fabs(have - sum) <= bound) && wrong++ < 3)
					printf("%s: (%d, %d, %d) is %.9g, expected %.9g within %.3g\n", name, t, i, j,
						have, sum, bound);
			}
	free(a);
	free(b);
	return wrong;
}

static void *random_buffer(scalar t, size_t n, uint64_t seed)
{
	void *p = suite_alloc(n * scalar_bytes(t));
	for (size_t i = 0; i < n; i++) container_put(t, p, i, random_element(t, &seed));
	return p;
}

/* Text of the offsets of a [rows, columns] tile, rows the slower dimension in memory or not. */
static const char *operand_offsets(char *out, size_t room, const char *rows, const char *columns, int pitch, bool trans)
{
	if (trans)
		snprintf(out, room, "%s[:, None] + %s[None, :] * %d", rows, columns, pitch);
	else
		snprintf(out, room, "%s[:, None] * %d + %s[None, :]", rows, pitch, columns);
	return out;
}

static void run(suite *s, const kind *d, const problem *p, const char *name, const char *text)
{
	size_t na = (size_t)p->batch * p->m * p->k, nb = (size_t)p->batch * p->k * p->n;
	size_t nc = (size_t)p->batch * p->m * p->n;
	problem q = *p;
	void *a = random_buffer(d->a, na, 1), *b = random_buffer(d->b, nb, 2), *c = random_buffer(d->out, nc, 3);
	void *got = suite_alloc(nc * scalar_bytes(d->out));
	size_t bytes[] = {na * scalar_bytes(d->a), nb * scalar_bytes(d->b), nc * scalar_bytes(d->out)};
	const void *in[] = {a, b, c};
	q.a = a;
	q.b = b;
	if (p->c) q.c = c;
	bool good = suite_run(s, name, text, NULL, 0, d->out, got, nc, in, bytes, 3, p->k);
	int wrong = good ? compare(d, &q, name, got) : 0;
	suite_verdict(s, good, wrong, text);
	free(a);
	free(b);
	free(c);
	free(got);
}

/* One tile each, straight from memory. */
static void run_tile_as(suite *s, const kind *d, problem p, int warps, bool acc, const char *prefix)
{
	char name[128], text[2048], at_a[128], at_b[128];
	snprintf(name, sizeof name, "%s.%s.%dx%dx%d.%s%s.warps%d%s", prefix, d->name, p.m, p.n, p.k,
		p.trans_a ? "t" : "n", p.trans_b ? "t" : "n", warps, acc ? ".acc" : "");
	if (!suite_wants(s, name)) return;
	static const char acc_text[] = ", acc = load(c + o)";
	if (acc) p.c = name;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(1) options(num_warps = %d) {\n"
		"let i = arange(0, %d); let j = arange(0, %d); let l = arange(0, %d);\n"
		"let o = i[:, None] * %d + j[None, :];\nlet x = load(a + (%s)); let y = load(b + (%s));\n"
		"store(z + o, dot(x, y%s%s));\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), warps, p.m, p.n, p.k,
		p.n, operand_offsets(at_a, sizeof at_a, "i", "l", p.trans_a ? p.m : p.k, p.trans_a),
		operand_offsets(at_b, sizeof at_b, "l", "j", p.trans_b ? p.k : p.n, p.trans_b), acc ? acc_text : "",
		d->options);
	run(s, d, &p, name, text);
}

static void run_tile(suite *s, const kind *d, problem p, int warps, bool acc)
{
	run_tile_as(s, d, p, warps, acc, "tile");
}

/* 128 registers a thread for the sum. */
static int enough_warps(const kind *d, const problem *p, int warps)
{
	while (warps < 16 && p->m * p->n * (d->out == SCALAR_F64 ? 2 : 1) > 32 * warps * 128) warps *= 2;
	return warps;
}

static void run_tiles(suite *s)
{
	static const int extents[][3] = {{16, 16, 16}, {32, 32, 32}, {64, 64, 64}, {128, 128, 32}, {128, 64, 128},
		{16, 256, 16}, {256, 16, 16}, {16, 16, 256}, {32, 128, 16}, {64, 32, 256}};
	static const int small[][3] = {{1, 1, 1}, {2, 4, 8}, {8, 8, 8}, {4, 2, 16}, {16, 1, 4}, {1, 16, 32}, {16, 8, 2},
		{32, 16, 1}, {8, 64, 4}, {64, 4, 16}, {2, 128, 2}};
	static const int warps[] = {4, 1, 8, 2, 16};
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++) {
		for (size_t e = 0; e < sizeof extents / sizeof extents[0]; e++)
			for (int order = 0; order < 4; order++) {
				problem p = {1, extents[e][0], extents[e][1], extents[e][2], order & 1, order >> 1};
				int w = enough_warps(&kinds[d], &p, warps[(e + d + (size_t)order) % 5]);
				run_tile(s, &kinds[d], p, w, (e + (size_t)order) % 3 == 0);
			}
		for (size_t e = 0; e < sizeof small / sizeof small[0]; e++)
			for (int order = (int)(e & 1); order < 4; order += 2) {
				problem p = {1, small[e][0], small[e][1], small[e][2], order & 1, order >> 1};
				run_tile(s, &kinds[d], p, warps[(e + d) % 4], (e + (size_t)order) % 3 == 0);
			}
	}
	for (size_t d = 0; d < 2; d++)
		for (size_t w = 0; w < 5; w++)
			for (int order = 0; order < 4; order++)
				run_tile(s, &kinds[d], (problem){1, 64, 64, 32, order & 1, order >> 1}, warps[w], true);
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++) { /* the largest, once a type and side */
		bool wide = d & 1, order = d & 2;
		if (kinds[d].out == SCALAR_F64) continue; /* more registers than a thread has */
		run_tile(s, &kinds[d], (problem){1, wide ? 128 : 256, wide ? 256 : 128, 32, order, !order}, 16, false);
	}
	problem large = {1, 256, 256, 16, false, false}, long_k = {1, 64, 64, 256, true, false};
	run_tile(s, &kinds[0], large, 8, false);
	run_tile(s, &kinds[0], long_k, 4, false);
	run_tile(s, &kinds[8], (problem){1, 128, 256, 64, false, true}, 8, false);
}

/* Extents that are no powers of two: tiles of 192 rows, of 160 and 96 columns, of 80 along k. */
static void run_odd(suite *s)
{
	static const int extents[][3] = {{192, 128, 32}, {128, 160, 64}, {96, 192, 48}, {80, 96, 80}, {64, 224, 16},
		{24, 40, 72}, {3, 5, 7}, {48, 12, 20}};
	static const int warps[] = {8, 4, 4, 1, 8, 2, 1, 4};
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++)
		for (size_t e = 0; e < sizeof extents / sizeof extents[0]; e++) {
			int order = (int)(e + d) % 4;
			problem p = {1, extents[e][0], extents[e][1], extents[e][2], order & 1, order >> 1};
			if (kinds[d].out == SCALAR_F64 && p.m * p.n > 128 * 64) continue;
			if (strcmp(kinds[d].name, "ieee") == 0 && p.m * p.n * p.k > 96 * 96 * 80) continue;
			run_tile_as(s, &kinds[d], p, enough_warps(&kinds[d], &p, warps[e]), e % 2 == 0, "odd");
		}
}

/* Kinds, extents, orders of the operands and numbers of warps, every two of them in every combination: 60 cases of
 * 24000.  `all`: every kind with every order and every two of m and n.  What registers cannot hold gets more warps or
 * less k: that of operands, and of code without instructions for the product. */
static void run_one(suite *s, const kind *d, problem p, int warps, const char *prefix)
{
	int bytes = (int)scalar_bytes(d->a);
	if (d->out == SCALAR_F64 && p.m * p.n > 128 * 256) p.n /= 2;
	warps = enough_warps(d, &p, warps);
	while (p.k > 16 && (p.m + p.n) * p.k * bytes > 4 * 32 * warps * 128) p.k /= 2;
	while (p.k > 16 && strcmp(d->name, "ieee") == 0 && p.m * p.n * p.k > 32 * warps * 4096) p.k /= 2;
	run_tile_as(s, d, p, warps, false, prefix);
}

static void run_matrix(suite *s)
{
	static const int extents[] = {16, 32, 64, 128, 256}, warps[] = {1, 2, 4, 8, 16};
	for (int d = 0; d < (int)(sizeof kinds / sizeof kinds[0]); d++)
		for (int r = 0; r < 5; r++) {
			int order = (r + d / 3) % 4;
			problem p = {
				1, extents[r], extents[(r + d) % 5], extents[(r + 2 * d) % 5], order & 1, order >> 1};
			run_one(s, &kinds[d], p, warps[(r + 3 * d + d / 5) % 5], "pairs");
		}
	for (int i = 0; s->all && i < (int)(sizeof kinds / sizeof kinds[0]) * 100; i++) {
		int d = i / 100, m = i / 20 % 5, n = i / 4 % 5, order = i % 4;
		problem p = {1, extents[m], extents[n], extents[(d + m + n + order) % 5], order & 1, order >> 1};
		run_one(s, &kinds[d], p, warps[(m + 2 * n + order) % 5], "all");
	}
}

/* [batch, m, k] times [batch, k, n]. */
static void run_batch(suite *s, const kind *d, problem p, int warps)
{
	char name[128], text[2048];
	snprintf(name, sizeof name, "batch.%s.%dx%dx%dx%d.warps%d", d->name, p.batch, p.m, p.n, p.k, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(1) options(num_warps = %d) {\n"
		"let t = arange(0, %d)[:, None, None];\nlet x = load(a + reshape(arange(0, %d), [%d, %d, %d]));\n"
		"let y = load(b + reshape(arange(0, %d), [%d, %d, %d]));\n"
		"store(z + (t * %d + reshape(arange(0, %d), [1, %d, %d])), dot(x, y%s));\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), warps, p.batch,
		p.batch * p.m * p.k, p.batch, p.m, p.k, p.batch * p.k * p.n, p.batch, p.k, p.n, p.m * p.n, p.m * p.n,
		p.m, p.n, d->options);
	run(s, d, &p, name, text);
}

static void run_batches(suite *s)
{
	static const int extents[][4] = {{2, 16, 16, 16}, {4, 32, 16, 32}, {8, 16, 8, 16}, {16, 4, 4, 8},
		{2, 64, 32, 32}, {1, 16, 32, 16}, {3, 24, 40, 16}};
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++)
		for (size_t e = 0; e < sizeof extents / sizeof extents[0]; e++) {
			problem p = {extents[e][0], extents[e][1], extents[e][2], extents[e][3], false, false};
			run_batch(s, &kinds[d], p, 1 << (d + e) % 4);
		}
}

static void *filled(scalar t, size_t n, double v)
{
	uint8_t *to = suite_alloc(n * scalar_bytes(t));
	uint64_t bits = scalar_from_double(t, v);
	for (size_t i = 0; i < n; i++) memcpy(to + i * scalar_bytes(t), &bits, scalar_bytes(t));
	return to;
}

/* A sum starts from +0 and stays it where the products, and what it is added to, are all -0. */
static void run_zeros(suite *s, const kind *d, int m, int k, const char *form, const char *body)
{
	char name[128], text[2048];
	snprintf(name, sizeof name, "zeros.%s.%s.%dx16x%d", form, d->name, m, k);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(1) {\n"
		"let o = arange(0, %d)[:, None] * 16 + arange(0, 16)[None, :];\n"
		"let x = load(a + reshape(arange(0, %d), [%d, %d])); let y = load(b + reshape(arange(0, %d), [%d, "
		"16]));\n"
		"var acc = load(c + o);\n%s\nstore(z + o, acc);\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), m, m * k, m, k, k * 16,
		k, body);
	size_t na = (size_t)m * (size_t)k, nb = 16 * (size_t)k, nc = 16 * (size_t)m;
	void *a = filled(d->a, na, 0), *b = filled(d->b, nb, -1), *c = filled(d->out, nc, -0.0);
	void *got = suite_alloc(nc * scalar_bytes(d->out));
	size_t bytes[] = {na * scalar_bytes(d->a), nb * scalar_bytes(d->b), nc * scalar_bytes(d->out)};
	const void *in[] = {a, b, c};
	bool good = suite_run(s, name, text, NULL, 0, d->out, got, nc, in, bytes, 3, 3);
	int wrong = 0;
	for (size_t i = 0; good && i < nc; i++)
		if (container_at(d->out, got, i) != 0 && wrong++ < 3) printf("%s: element %zu is not +0\n", name, i);
	suite_verdict(s, good, wrong, text);
	free(a);
	free(b);
	free(c);
	free(got);
}

static void run_all_zeros(suite *s)
{
	static const char *const bodies[][2] = {{"added", "acc = dot(x, y OPTIONS) + acc;"},
		{"from", "acc = dot(x, y, acc OPTIONS);"},
		{"loop", "for i in range(0, n) { acc += dot(x, y OPTIONS); }"}};
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++)
		for (size_t i = 0; i < 6 && kinds[d].out != SCALAR_I32; i++) {
			const char *text = bodies[i / 2][1], *options = strstr(text, " OPTIONS");
			char body[256];
			snprintf(body, sizeof body, "%.*s%s%s", (int)(options - text), text, kinds[d].options,
				options + strlen(" OPTIONS"));
			run_zeros(s, &kinds[d], i % 2 ? 64 : 16, i % 2 ? 32 : 1, bodies[i / 2][0], body);
		}
}

/* A product with a loop over k and masks, on sizes that no tile divides. */
typedef enum made { AS_LOADED, A_MADE, B_MADE, BOTH_MADE } made; /* operands that are computed from what is loaded */

static void run_loop(suite *s, const kind *d, problem p, int bm, int bn, int bk, int warps, made how)
{
	char name[128], text[2048], at_a[128], at_b[128];
	static const char *const tags[] = {"", ".a_made", ".b_made", ".both_made"};
	snprintf(name, sizeof name, "loop.%s.%dx%dx%d.%s%s.warps%d%s", d->name, p.m, p.n, p.k, p.trans_a ? "t" : "n",
		p.trans_b ? "t" : "n", warps, tags[how]);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(cdiv(%d, %d), cdiv(%d, %d)) "
		"options(num_warps = %d) {\n"
		"let i = program_id(0) * %d + arange(0, %d); let j = program_id(1) * %d + arange(0, %d);\n"
		"var sum = zeros([%d, %d], %s);\nfor at in range(0, n, %d) {\nlet l = at + arange(0, %d);\n"
		"let x = load(a + (%s), mask = (i < %d)[:, None] & (l < n)[None, :]);\n"
		"let y = load(b + (%s), mask = (l < n)[:, None] & (j < %d)[None, :]);\nsum += dot(%s, %s%s);\n}\n"
		"store(z + i[:, None] * %d + j[None, :], sum, mask = (i < %d)[:, None] & (j < %d)[None, :]);\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), p.m, bm, p.n, bn, warps,
		bm, bm, bn, bn, bm, bn, scalar_name(d->out), bk, bk,
		operand_offsets(at_a, sizeof at_a, "i", "l", p.trans_a ? p.m : p.k, p.trans_a), p.m,
		operand_offsets(at_b, sizeof at_b, "l", "j", p.trans_b ? p.k : p.n, p.trans_b), p.n,
		how & A_MADE ? "x + x - x" : "x", how & B_MADE ? "y + y - y" : "y", d->options, p.n, p.m, p.n);
	run(s, d, &p, name, text);
}

/* Rounds fewer than, as many as and more than the stages; twice over, so that a multibuffer is filled again while it
 * may still be read. */
static void run_stages(suite *s, const kind *d, int rounds, int stages, int warps, int rows)
{
	char name[128], text[2048];
	problem p = {1, 4 * rows, 64, 32 * rounds, false, false};
	snprintf(name, sizeof name, "stages.%s.rows%d.rounds%d.stages%d.warps%d", d->name, rows, rounds, stages, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(2) "
		"options(num_warps = %d, num_stages = %d) {\n"
		"let j = arange(0, 64);\nfor t in range(0, %d, %d) {\n"
		"let i = program_id(0) * %d + t + arange(0, %d); var sum = zeros([%d, 64], %s);\n"
		"for at in range(0, n, 32) {\nlet l = at + arange(0, 32);\n"
		"sum += dot(load(a + i[:, None] * n + l[None, :]), load(b + l[:, None] * 64 + j[None, :]));\n}\n"
		"store(z + i[:, None] * 64 + j[None, :], sum);\n}\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), warps, stages, 2 * rows,
		rows, 2 * rows, rows, rows, scalar_name(d->out));
	run(s, d, &p, name, text);
}

/* Tiles of few rows, whose transposed product is one for warpgroups, where there are any. */
static void run_few_rows(suite *s)
{
	static const int tiles[][3] = {
		{8, 64, 32}, {16, 128, 64}, {24, 192, 64}, {32, 64, 96}, {48, 128, 32}, {16, 96, 64}};
	static const size_t types[] = {0, 1, 3, 7, 8}; /* f16, bf16, tf32, i8, e4m3 */
	for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++)
		for (size_t d = 0; d < sizeof types / sizeof types[0]; d++) {
			int order = (int)(t + d / 2) % 4, warps = t % 3 == 1 ? 8 : 4;
			problem even = {1, 50, 208, 160, order & 1, order >> 1 || d > 1};
			problem odd = {1, 50, 107, 75, order & 1, order >> 1};
			run_loop(s, &kinds[types[d]], even, tiles[t][0], tiles[t][1], tiles[t][2], warps, AS_LOADED);
			if (d == 0)
				run_loop(
					s, &kinds[0], odd, tiles[t][0], tiles[t][1], tiles[t][2], warps, (made)(t % 4));
		}
}

/* The same of a batch: [batch, m, k] times [batch, k, n]. */
static void run_batch_loop(suite *s, const kind *d, problem p, int bm, int bn, int bk, int warps)
{
	char name[128], text[2048], at_a[128], at_b[128];
	snprintf(name, sizeof name, "loop.batch%d.%s.%dx%dx%d.%s%s.warps%d", p.batch, d->name, bm, bn, bk,
		p.trans_a ? "t" : "n", p.trans_b ? "t" : "n", warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(cdiv(%d, %d), cdiv(%d, %d)) "
		"options(num_warps = %d) {\n"
		"let t = arange(0, %d)[:, None, None];\n"
		"let i = program_id(0) * %d + arange(0, %d); let j = program_id(1) * %d + arange(0, %d);\n"
		"var sum = zeros([%d, %d, %d], %s);\nfor at in range(0, n, %d) {\nlet l = at + arange(0, %d);\n"
		"let x = load(a + t * %d + (%s)[None, :, :], mask = ((i < %d)[:, None] & (l < n)[None, :])[None, :, "
		":]);\n"
		"let y = load(b + t * %d + (%s)[None, :, :], mask = ((l < n)[:, None] & (j < %d)[None, :])[None, :, "
		":]);\nsum = dot(x, y, sum%s);\n}\n"
		"store(z + t * %d + (i[:, None] * %d + j[None, :])[None, :, :], sum, mask = ((i < %d)[:, None] & (j < "
		"%d)[None, :])[None, :, :]);\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), p.m, bm, p.n, bn, warps,
		p.batch, bm, bm, bn, bn, p.batch, bm, bn, scalar_name(d->out), bk, bk, p.m * p.k,
		operand_offsets(at_a, sizeof at_a, "i", "l", p.trans_a ? p.m : p.k, p.trans_a), p.m, p.k * p.n,
		operand_offsets(at_b, sizeof at_b, "l", "j", p.trans_b ? p.k : p.n, p.trans_b), p.n, d->options,
		p.m * p.n, p.n, p.m, p.n);
	run(s, d, &p, name, text);
}

static void run_batch_loops(suite *s)
{
	static const int tiles[][5] = {{2, 64, 64, 32, 4}, {4, 64, 32, 64, 8}, {3, 16, 64, 32, 4}, {2, 24, 128, 64, 8},
		{1, 128, 64, 32, 8}, {2, 64, 64, 64, 16}};
	static const size_t types[] = {0, 1, 7, 8, 3}; /* f16, bf16, i8, e4m3, tf32 */
	for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++)
		for (size_t d = 0; d < sizeof types / sizeof types[0]; d++) {
			const int *e = tiles[t];
			int order = (int)(t + d) % 4;
			problem p = {e[0], 72, 112, 144, order & 1, order >> 1}, odd = {e[0], 37, 43, 75, false, false};
			if (d > 1) p.trans_a = false, p.trans_b = true;
			if (d == 0 || (t + d) % 2) run_batch_loop(s, &kinds[types[d]], p, e[1], e[2], e[3], e[4]);
			if (d == 0 && t % 2) run_batch_loop(s, &kinds[0], odd, e[1], e[2], e[3], e[4]);
		}
}

static void run_loops(suite *s)
{
	static const size_t staged[] = {0, 3, 7}; /* f16, tf32, i8 */
	for (size_t d = 0; d < 3; d++)
		for (int rounds = 1; rounds <= 7; rounds += 2)
			for (int stages = 1; stages <= 5; stages++)
				if (d == 0 || (rounds + stages) % 3 == 0)
					run_stages(
						s, &kinds[staged[d]], rounds, stages, 1 << (rounds + stages) % 4, 16);
	for (int rounds = 1; rounds <= 7; rounds += 2) /* 64 rows are for warpgroups, where there are any */
		for (int stages = 2; stages <= 5; stages++)
			run_stages(s, &kinds[(rounds + stages) % 4 == 0], rounds, stages,
				4 << (rounds / 2 + stages) % 2, 64);
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++)
		for (int order = 0; order < 4; order++) {
			problem p = {1, 100, 76, 90, order & 1, order >> 1},
				even = {1, 128, 192, 160, order & 1, order >> 1},
				thirds = {1, 400, 72, 200, order & 1, order >> 1};
			if (kinds[d].out == SCALAR_F16) continue; /* rounds once a step */
			run_loop(s, &kinds[d], p, 32, 64, 32, 4, AS_LOADED);
			run_loop(s, &kinds[d], even, 64, 64, 32, 8, AS_LOADED);
			run_loop(s, &kinds[d], p, 48, 40, 96, 4, AS_LOADED);
			if (d > 1) continue;
			run_loop(s, &kinds[d], even, 192, 96, 64, 8, AS_LOADED);
			run_loop(s, &kinds[d], thirds, 192, 64, 64, 12, order < 3 ? AS_LOADED : B_MADE); /* 3 x 64 */
			run_loop(s, &kinds[d], even, 64, 160, 64, 4, AS_LOADED);
			run_loop(s, &kinds[d], even, 192, 64, 64, 4, A_MADE + (made)((unsigned)order + d) % 3);
			run_loop(s, &kinds[d], p, 64, 32, 64, 4, AS_LOADED);
			run_loop(s, &kinds[d], even, 128, 64, 64, 8, AS_LOADED);
			run_loop(s, &kinds[d], even, 64, 128, 64, 4, A_MADE + (made)((unsigned)order + d) % 3);
		}
}

/* ---- programs in which a dot is not alone ---- */

/* A matrix of what is expected and of how far each element may be off. */
typedef struct matrix {
	int rows, columns;
	double *v, *e;
} matrix;

static matrix new_matrix(int rows, int columns)
{
	size_t bytes = (size_t)rows * (size_t)columns * sizeof(double);
	return (matrix){rows, columns, suite_alloc(bytes), suite_alloc(bytes)};
}

static void free_matrix(matrix *x)
{
	free(x->v);
	free(x->e);
}

static size_t place(const matrix *x, int i, int j)
{
	return (size_t)i * (size_t)x->columns + (size_t)j;
}

/* z += x y, or with y transposed. */
static void add_product(matrix *z, const matrix *x, const matrix *y, bool trans, double u)
{
	for (int i = 0; i < z->rows; i++)
		for (int j = 0; j < z->columns; j++) {
			double sum = 0, size = 0, error = 0;
			for (int l = 0; l < x->columns; l++) {
				size_t p = place(x, i, l), q = trans ? place(y, j, l) : place(y, l, j);
				sum += x->v[p] * y->v[q];
				size += (fabs(x->v[p]) + x->e[p]) * (fabs(y->v[q]) + y->e[q]);
				error += fabs(x->v[p]) * y->e[q] + (fabs(y->v[q]) + y->e[q]) * x->e[p];
			}
			size_t at = place(z, i, j);
			z->v[at] += sum;
			z->e[at] += error + (x->columns + 8) * u * size + fabs(z->v[at]) * u;
		}
}

static void change(matrix *x, double (*f)(double), double slope, double rounding)
{
	for (int i = 0; i < x->rows * x->columns; i++) {
		x->v[i] = f(x->v[i]);
		x->e[i] = x->e[i] * slope + fabs(x->v[i]) * rounding + (rounding > 0 ? 0x1p-25 : 0);
	}
}

static double eighth(double v)
{
	return v / 8;
}
static double half_of_positive(double v)
{
	return v > 0 ? v / 2 : 0;
}
static double minus_three(double v)
{
	return v - 3;
}
static double negated(double v)
{
	return -v;
}

/* Matrices: a [M, n], b [n, N], c [N, n], all of T but where a form says otherwise; z [M, N] f32.  Nothing divides
 * the tiles of 64 by 64, n in steps of 32. */
enum { FORM_M = 43, FORM_N = 57, FORM_K = 90 };

typedef struct dot_form {
	const char *name, *body; /* x, y: tiles of a and b at l; yt: of c, transposed into b's place */
	bool loop;               /* the body stands in a loop over l */
	scalar b;                /* of b and c, where it is not T */
	bool square;             /* wants 64 rows */
	void (*want)(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding);
} dot_form;

static void want_product(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	(void)c, (void)rounding;
	add_product(z, a, b, false, u);
}

static void want_negated(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	want_product(z, a, b, c, u, rounding);
	change(z, negated, 1, 0);
}

static void want_two(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	(void)rounding;
	add_product(z, a, b, false, u);
	add_product(z, a, c, true, u);
}

static void want_positive(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	(void)c, (void)rounding;
	change(a, half_of_positive, 1, 0);
	add_product(z, a, b, false, u);
}

static void want_shifted(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	(void)b, (void)rounding;
	change(c, minus_three, 1, 0);
	add_product(z, a, c, true, u);
}

/* (a b / 8, rounded) c, as attention has it */
static void want_chain(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	matrix s = new_matrix(FORM_M, FORM_N), t = new_matrix(FORM_N, FORM_N);
	add_product(&s, a, b, false, u);
	change(&s, eighth, 0.125, rounding);
	add_product(&t, c, b, false, u);
	change(&t, eighth, 0.125, rounding);
	add_product(z, &s, &t, false, u);
	free_matrix(&s);
	free_matrix(&t);
}

static void want_square(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	(void)b, (void)c, (void)rounding;
	matrix own = new_matrix(FORM_M, FORM_M);
	add_product(&own, a, a, true, u);
	for (int i = 0; i < FORM_M; i++)
		for (int j = 0; j < FORM_M && j < FORM_N; j++) {
			z->v[place(z, i, j)] = own.v[place(&own, i, j)];
			z->e[place(z, i, j)] = own.e[place(&own, i, j)];
		}
	free_matrix(&own);
}

/* Half of the sum so far in each round of 32, then what a row and a column add. */
static void want_scaled(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	(void)c, (void)rounding;
	for (int i = 0; i < FORM_M; i++)
		for (int j = 0; j < FORM_N; j++) {
			double sum = 0, size = 0;
			for (int l = 0; l < FORM_K; l++) {
				double product = a->v[place(a, i, l)] * b->v[place(b, l, j)];
				if (l && l % 32 == 0) sum /= 2;
				sum += product;
				size += fabs(product);
			}
			sum += a->v[place(a, i, 0)] - b->v[place(b, 0, j)];
			z->v[place(z, i, j)] = sum;
			z->e[place(z, i, j)] = (FORM_K + 8) * u * (size + fabs(sum) + 2);
		}
}

static void want_copy(matrix *z, matrix *a, matrix *b, matrix *c, double u, double rounding)
{
	(void)a, (void)c, (void)rounding;
	for (int i = 0; i < FORM_M; i++)
		for (int j = 0; j < FORM_N; j++) {
			z->v[place(z, i, j)] = b->v[place(b, i, j)];
			z->e[place(z, i, j)] = fabs(b->v[place(b, i, j)]) * u;
		}
}

static const dot_form dot_forms[] = {
	{"acc", "s = dot(x, y, s);", true, SCALAR_COUNT, false, want_product},
	{"two", "s = dot(x, y, s); r += dot(x, yt);", true, SCALAR_COUNT, false, want_two},
	{"two_into_one", "s = dot(x, yt, dot(x, y, s));", true, SCALAR_COUNT, false, want_two},
	{"computed", "s += dot((maximum(x.to(f32), 0.0) * 0.5).to(T), y);", true, SCALAR_COUNT, false, want_positive},
	{"dequantised",
		"s = dot(x, (trans(load(c + j[:, None] * n + l[None, :], mask = (j < N)[:, None] & (l < n)[None, :]))"
		".to(f32) - 3.0).to(T), s);",
		true, SCALAR_I8, false, want_shifted},
	{"if", "if n > 50 { s -= dot(x, y); } else { s += dot(x, y) * 3.0; }", true, SCALAR_COUNT, false, want_negated},
	{"if_one_side", "if at < n { s = dot(x, y, s); }", true, SCALAR_COUNT, false, want_product},
	{"same_twice", "s = dot(x, trans(x), s);", true, SCALAR_COUNT, true, want_square},
	{"scaled",
		"for at in range(0, n, 32) {\nlet l = at + arange(0, 32);\ns = dot(LOAD_A, LOAD_B, s * 0.5);\n}\n"
		"s += load(a + i * n, mask = i < M).to(f32)[:, None] - load(b + j, mask = j < N).to(f32)[None, :];",
		false, SCALAR_COUNT, false, want_scaled},
	{"while", "var at = 0; while at < n { let l = at + arange(0, 32); s += dot(LOAD_A, LOAD_B); at += 32; }", false,
		SCALAR_COUNT, false, want_product},
	{"one_hot", "let l = arange(0, 64); s = dot((i[:, None] == l[None, :]).to(T), LOAD_B);", false, SCALAR_COUNT,
		false, want_copy},
	{"chain",
		"var t = zeros([64, 64], f32);\nfor at in range(0, n, 32) {\nlet l = at + arange(0, 32);\n"
		"s = dot(LOAD_A, LOAD_B, s);\n"
		"t = dot(load(c + j[:, None] * n + l[None, :], mask = (j < N)[:, None] & (l < n)[None, :]), LOAD_B, "
		"t);\n}\n"
		"s = dot((s * 0.125).to(T), (t * 0.125).to(T));",
		false, SCALAR_COUNT, true, want_chain},
};

static void replace(char *out, size_t room, const char *text)
{
	static const char *const words[][2] = {
		{"LOAD_A", "load(a + i[:, None] * n + l[None, :], mask = (i < M)[:, None] & (l < n)[None, :])"},
		{"LOAD_B", "load(b + l[:, None] * N + j[None, :], mask = (l < n)[:, None] & (j < N)[None, :])"}};
	size_t at = 0;
	while (*text && at + 1 < room) {
		unsigned w = 0;
		while (w < 2 && strncmp(text, words[w][0], 6) != 0) w++;
		if (w < 2) {
			at += (size_t)snprintf(out + at, room - at, "%s", words[w][1]);
			text += 6;
		} else {
			out[at++] = *text++;
		}
	}
	out[at < room ? at : room - 1] = 0;
}

static void fill(matrix *x, scalar t, const void *elements)
{
	for (size_t i = 0; i < (size_t)x->rows * (size_t)x->columns; i++)
		x->v[i] = scalar_to_double(t, container_at(t, elements, i));
}

static void run_form(suite *s, const dot_form *f, const kind *d, int rows, int warps, int stages)
{
	char name[128], text[4096], body[3072];
	scalar tb = f->b == SCALAR_COUNT ? d->b : f->b;
	snprintf(name, sizeof name, "form.%s.%s.rows%d.warps%d.stages%d", f->name, d->name, rows, warps, stages);
	if (!suite_wants(s, name)) return;
	char source[3072];
	snprintf(source, sizeof source,
		f->loop ? "for at in range(0, n, 32) {\nlet l = at + arange(0, 32);\nlet x = LOAD_A; %s"
			  "\n%s\n}\n"
			: "%s%s",
		!f->loop               ? ""
		: f->b == SCALAR_COUNT ? "let y = LOAD_B;\nlet yt = trans(load(c + j[:, None] * n + l[None, :], "
					 "mask = (j < N)[:, None] & (l < n)[None, :]));"
				       : "",
		f->body);
	replace(body, sizeof body, source);
	snprintf(text, sizeof text,
		"const T = %s; const M = %d; const N = %d;\n"
		"kernel k(z: *f32, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(%d) "
		"options(num_warps = %d, num_stages = %d) {\n"
		"let i = program_id(0) * %d + arange(0, %d); let j = arange(0, 64);\n"
		"var s = zeros([%d, 64], f32); var r = zeros([%d, 64], f32);\n%s\n"
		"store(z + i[:, None] * N + j[None, :], s + r, mask = (i < M)[:, None] & (j < N)[None, :]);\n}\n",
		scalar_name(d->a), FORM_M, FORM_N, scalar_name(d->a), scalar_name(tb), scalar_name(tb), 64 / rows,
		warps, stages, rows, rows, rows, rows, body);
	matrix a = new_matrix(FORM_M, FORM_K), b = new_matrix(FORM_K, FORM_N), c = new_matrix(FORM_N, FORM_K);
	matrix z = new_matrix(FORM_M, FORM_N);
	size_t na = (size_t)FORM_M * FORM_K, nb = (size_t)FORM_K * FORM_N, nz = (size_t)FORM_M * FORM_N;
	void *ea = random_buffer(d->a, na, 1), *eb = random_buffer(tb, nb, 2), *ec = random_buffer(tb, nb, 3);
	float *got = suite_alloc(nz * 4);
	const void *in[] = {ea, eb, ec};
	size_t bytes[] = {na * scalar_bytes(d->a), nb * scalar_bytes(tb), nb * scalar_bytes(tb)};
	fill(&a, d->a, ea);
	fill(&b, tb, eb);
	fill(&c, tb, ec);
	f->want(&z, &a, &b, &c, d->u, d->a == SCALAR_F16 ? 0x1p-11 : d->a == SCALAR_BF16 ? 0x1p-8 : 0);
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_F32, got, nz, in, bytes, 3, FORM_K);
	int wrong = 0;
	for (size_t i = 0; good && i < nz; i++)
		if (!(fabs((double)got[i] - z.v[i]) <= z.e[i]) && wrong++ < 3)
			printf("%s: element %zu is %.9g, expected %.9g within %.3g\n", name, i, (double)got[i], z.v[i],
				z.e[i]);
	suite_verdict(s, good, wrong, text);
	matrix *all[] = {&a, &b, &c, &z};
	for (unsigned i = 0; i < 4; i++) free_matrix(all[i]);
	free(ea);
	free(eb);
	free(ec);
	free(got);
}

static void run_forms(suite *s)
{
	static const size_t types[] = {0, 1, 3}; /* f16, bf16, tf32 */
	size_t n = sizeof dot_forms / sizeof dot_forms[0];
	for (size_t f = 0; f < n; f++)
		for (size_t t = 0; t < 3; t++)
			if (t == 0 || (f + t) % 2 == 0)
				run_form(
					s, &dot_forms[f], &kinds[types[t]], 64, 4 << (f + t) % 2, 1 + (int)(f + t) % 4);
	for (size_t f = 0; f < n; f++)
		if (!dot_forms[f].square) run_form(s, &dot_forms[f], &kinds[f % 2], 16, 4, 1 + (int)f % 4);
}

/* Loops over k that may have no round, sums in flight: with tensors, so that sm_90a has copies by tensor maps.  c [100,
 * 72] from a [100, n] and b [n, 72], or [72, n], in four tiles.  Where there is no round nothing of a and b is read:
 * they are NaN, or 127; and where all products are -0 the sum is +0. */
enum { ROUNDS_M = 100, ROUNDS_N = 72, ROUNDS_K = 128 };

typedef struct rounds {
	const char *name, *from, *to;
	int first, last;
	const char *at; /* where along k a round is, if it is not l */
	size_t bytes;   /* of each of a and b, where they do not have what their shapes say; then */
	int k;          /* n */
} rounds;

static void run_rounds(suite *s, const kind *d, const rounds *r, bool persistent, bool two, bool minus, int stages)
{
	char name[128], text[2048];
	snprintf(name, sizeof name, "rounds.%s.%s%s%s%s.stages%d", d->name, r->name, persistent ? ".persistent" : "",
		two ? ".two" : "", minus ? ".minus" : "", stages);
	if (!suite_wants(s, name)) return;
	const char *b = scalar_bytes(d->b) == 1 ? "trans(B.load([j, q], [64, 64]))" : "B.load([q, j], [64, 64])";
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, n: i32) grid(%d) options(num_warps = %d, num_stages = "
		"%d) {\n"
		"let A = tensor(a, [%d, n]); let B = tensor(b, %s); let C = tensor(z, [%d, %d]);\n"
		"for t in range(program_id(0), 4, num_programs(0)) {\nlet i = t / 2 * 64; let j = t %% 2 * 64;\n"
		"var s = zeros([64, 64], %s);\n%s"
		"for l in range(%s, %s, 64) {\nlet q = %s;\ns = dot(A.load([i, q], [64, 64]), %s, "
		"s);\n%s%s%s}\nC.store([i, j], "
		"s);\n%s}\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), persistent ? 2 : 4, two ? 8 : 4, stages,
		ROUNDS_M, scalar_bytes(d->b) == 1 ? "[72, n]" : "[n, 72]", ROUNDS_M, ROUNDS_N, scalar_name(d->out),
		two ? "var u = zeros([64, 64], f32);\n" : "", r->from, r->to, r->at ? r->at : "l", b,
		two ? "u = dot(A.load([i, q], [64, 64]), " : "", two ? b : "", two ? ", u);\n" : "",
		two ? "C.store([i, j], u);\n" : "");
	size_t na = (size_t)ROUNDS_M * ROUNDS_K, nb = (size_t)ROUNDS_K * ROUNDS_N, nz = (size_t)ROUNDS_M * ROUNDS_N;
	bool none = r->first >= r->last, whole = d->a == SCALAR_I8;
	double one = minus ? 0 : none ? (whole ? 127 : NAN) : 1;
	void *ea = none || minus ? filled(d->a, na, one) : random_buffer(d->a, na, 4);
	void *eb = none || minus ? filled(d->b, nb, minus ? -1 : one) : random_buffer(d->b, nb, 5);
	void *got = suite_alloc(nz * scalar_bytes(d->out));
	double *va = suite_doubles(d->a, ea, na), *vb = suite_doubles(d->b, eb, nb);
	double *vz = NULL;
	const void *in[] = {ea, eb};
	size_t bytes[] = {na * scalar_bytes(d->a), nb * scalar_bytes(d->b)};
	if (r->bytes) bytes[0] = bytes[1] = r->bytes;
	int k = r->bytes ? r->k : ROUNDS_K;
	bool good = suite_run(s, name, text, NULL, 0, d->out, got, nz, in, bytes, 2, k);
	if (good) vz = suite_doubles(d->out, got, nz);
	int wrong = 0;
	for (int at = 0; good && at < (int)nz; at++) {
		int i = at / ROUNDS_N, j = at % ROUNDS_N;
		double sum = 0, size = 0;
		for (int l = r->first; l < r->last; l++) {
			double x = va[i * ROUNDS_K + l];
			double y = vb[scalar_bytes(d->b) == 1 ? j * ROUNDS_K + l : l * ROUNDS_N + j];
			sum += x * y;
			size += fabs(x * y);
		}
		bool right = none || minus ? container_at(d->out, got, (size_t)at) == 0
					   : fabs(vz[at] - sum) <= (ROUNDS_K + 8) * d->u * size;
		if (!right && wrong++ < 3) printf("%s: element %d is %.9g, expected %.9g\n", name, at, vz[at], sum);
	}
	suite_verdict(s, good, wrong, text);
	void *all[] = {ea, eb, got, va, vb, vz};
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

static void run_all_rounds(suite *s)
{
	static const rounds all[] = {{"none", "0", "n - 128", 0, 0}, {"below", "0", "-n", 0, -128},
		{"behind", "n", "n / 2", 128, 64}, {"last", "n / 2", "n", 64, 128}, {"all", "0", "n", 0, 128},
		{"known", "0", "128", 0, 128},
		/* a copy that begins elsewhere than at 16 bytes is illegal, also in a round that there is not */
		{"none_shifted", "n / 8 - 11", "n / 32", 0, 0, "multiple_of(l - (n / 8 - 11), 64)"},
		{"shifted", "n / 8 - 11", "n + 5", 0, 128, "multiple_of(l - (n / 8 - 11), 64)"},
		/* of buffers that hold next to nothing, which nobody reads; and of no k at all */
		{"nothing", "0", "n - 128", 0, 0, NULL, 16, ROUNDS_K}, {"no_k", "0", "n", 0, 0, NULL, 16, 0}};
	static const size_t types[] = {0, 1, 7, 8}; /* f16, bf16, i8, e4m3 */
	for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
		for (size_t r = 0; r < sizeof all / sizeof all[0]; r++) {
			run_rounds(s, &kinds[types[t]], &all[r], true, false, false, 3 + (int)(r % 2));
			run_rounds(s, &kinds[types[t]], &all[r], false, false, false, 4 - (int)(r % 3));
			if (t == 0) run_rounds(s, &kinds[types[t]], &all[r], r % 2 == 0, true, false, 3);
			if (all[r].last == 128) run_rounds(s, &kinds[types[t]], &all[r], r % 2 == 0, false, true, 3);
		}
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	run_tiles(&s);
	run_odd(&s);
	run_matrix(&s);
	run_batches(&s);
	run_all_zeros(&s);
	run_loops(&s);
	run_few_rows(&s);
	run_batch_loops(&s);
	run_forms(&s);
	run_all_rounds(&s);
	return suite_close(&s);
}
