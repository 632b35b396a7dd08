/* dot on every type, extents from 1 to 256, both orders of each operand's memory, batches, accumulators, numbers of
 * warps, and small whole products with a loop over k.  The reference is a sum in double precision of the operands'
 * exact values; a result may differ from it by (K + 8) * u * sum(|a * b|), u the unit of the coarsest rounding that the
 * type and the precision allow, and by the rounding of the result itself. */
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
	for (int t = 0; t < p->batch; t++)
		for (int i = 0; i < p->m; i++)
			for (int j = 0; j < p->n; j++) {
				size_t at = ((size_t)t * p->m + i) * p->n + j;
				double sum = p->c ? scalar_to_double(d->out, container_at(d->out, p->c, at)) : 0;
				double size = fabs(sum);
				for (int l = 0; l < p->k; l++) {
					double x = scalar_to_double(d->a, container_at(d->a, p->a, a_at(p, t, i, l)));
					double y = scalar_to_double(d->b, container_at(d->b, p->b, b_at(p, t, l, j)));
					sum += x * y;
					size += fabs(x * y);
				}
				double have = scalar_to_double(d->out, container_at(d->out, got, at));
				double bound = (p->k + 8) * d->u * size;
				if (d->out == SCALAR_F16) bound += fabs(sum) * 0x1p-11 + 0x1p-25;
				if (!(fabs(have - sum) <= bound) && wrong++ < 3)
					printf("%s: (%d, %d, %d) is %.9g, expected %.9g within %.3g\n", name, t, i, j,
						have, sum, bound);
			}
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
	if (wrong) printf("%s: %d wrong\n%s\n", name, wrong, text);
	good && !wrong ? s->passed++ : s->failed++;
	free(a);
	free(b);
	free(c);
	free(got);
}

/* One tile each, straight from memory. */
static void run_tile(suite *s, const kind *d, problem p, int warps, bool acc)
{
	char name[128], text[2048], at_a[128], at_b[128];
	snprintf(name, sizeof name, "tile.%s.%dx%dx%d.%s%s.warps%d%s", d->name, p.m, p.n, p.k, p.trans_a ? "t" : "n",
		p.trans_b ? "t" : "n", warps, acc ? ".acc" : "");
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
				int w = warps[(e + d + (size_t)order) % 5];
				if (w == 1 && p.m * p.n > 64 * 64) w = 8; /* the accumulator in one warp's registers */
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
	problem large = {1, 256, 256, 16, false, false}, long_k = {1, 64, 64, 256, true, false};
	run_tile(s, &kinds[0], large, 8, false);
	run_tile(s, &kinds[0], long_k, 4, false);
	run_tile(s, &kinds[8], (problem){1, 128, 256, 64, false, true}, 8, false);
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
	static const int extents[][4] = {
		{2, 16, 16, 16}, {4, 32, 16, 32}, {8, 16, 8, 16}, {16, 4, 4, 8}, {2, 64, 32, 32}, {1, 16, 32, 16}};
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++)
		for (size_t e = 0; e < sizeof extents / sizeof extents[0]; e++) {
			problem p = {extents[e][0], extents[e][1], extents[e][2], extents[e][3], false, false};
			run_batch(s, &kinds[d], p, 1 << (d + e) % 4);
		}
}

/* A product with a loop over k and masks, on sizes that no tile divides. */
static void run_loop(suite *s, const kind *d, problem p, int bm, int bn, int bk, int warps)
{
	char name[128], text[2048], at_a[128], at_b[128];
	snprintf(name, sizeof name, "loop.%s.%dx%dx%d.%s%s.warps%d", d->name, p.m, p.n, p.k, p.trans_a ? "t" : "n",
		p.trans_b ? "t" : "n", warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(cdiv(%d, %d), cdiv(%d, %d)) "
		"options(num_warps = %d) {\n"
		"let i = program_id(0) * %d + arange(0, %d); let j = program_id(1) * %d + arange(0, %d);\n"
		"var sum = zeros([%d, %d], %s);\nfor at in range(0, n, %d) {\nlet l = at + arange(0, %d);\n"
		"let x = load(a + (%s), mask = (i < %d)[:, None] & (l < n)[None, :]);\n"
		"let y = load(b + (%s), mask = (l < n)[:, None] & (j < %d)[None, :]);\nsum += dot(x, y%s);\n}\n"
		"store(z + i[:, None] * %d + j[None, :], sum, mask = (i < %d)[:, None] & (j < %d)[None, :]);\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), p.m, bm, p.n, bn, warps,
		bm, bm, bn, bn, bm, bn, scalar_name(d->out), bk, bk,
		operand_offsets(at_a, sizeof at_a, "i", "l", p.trans_a ? p.m : p.k, p.trans_a), p.m,
		operand_offsets(at_b, sizeof at_b, "l", "j", p.trans_b ? p.k : p.n, p.trans_b), p.n, d->options, p.n,
		p.m, p.n);
	run(s, d, &p, name, text);
}

/* Rounds fewer than, as many as and more than the stages; twice over, so that a ring is filled again while it may still
 * be read. */
static void run_stages(suite *s, const kind *d, int rounds, int stages, int warps)
{
	char name[128], text[2048];
	problem p = {1, 64, 64, 32 * rounds, false, false};
	snprintf(name, sizeof name, "stages.%s.rounds%d.stages%d.warps%d", d->name, rounds, stages, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *%s, a: *const %s, b: *const %s, c: *const %s, n: i32) grid(2) "
		"options(num_warps = %d, num_stages = %d) {\n"
		"let j = arange(0, 64);\nfor t in range(0, 32, 16) {\n"
		"let i = program_id(0) * 32 + t + arange(0, 16); var sum = zeros([16, 64], %s);\n"
		"for at in range(0, n, 32) {\nlet l = at + arange(0, 32);\n"
		"sum += dot(load(a + i[:, None] * n + l[None, :]), load(b + l[:, None] * 64 + j[None, :]));\n}\n"
		"store(z + i[:, None] * 64 + j[None, :], sum);\n}\n}\n",
		scalar_name(d->out), scalar_name(d->a), scalar_name(d->b), scalar_name(d->out), warps, stages,
		scalar_name(d->out));
	run(s, d, &p, name, text);
}

static void run_loops(suite *s)
{
	static const size_t staged[] = {0, 3, 7}; /* f16, tf32, i8 */
	for (size_t d = 0; d < 3; d++)
		for (int rounds = 1; rounds <= 7; rounds += 2)
			for (int stages = 1; stages <= 5; stages++)
				if (d == 0 || (rounds + stages) % 3 == 0)
					run_stages(s, &kinds[staged[d]], rounds, stages, 1 << (rounds + stages) % 4);
	for (size_t d = 0; d < sizeof kinds / sizeof kinds[0]; d++)
		for (int order = 0; order < 4; order++) {
			problem p = {1, 100, 76, 90, order & 1, order >> 1},
				even = {1, 128, 192, 160, order & 1, order >> 1};
			if (kinds[d].out == SCALAR_F16) continue; /* rounds once a step */
			run_loop(s, &kinds[d], p, 32, 64, 32, 4);
			run_loop(s, &kinds[d], even, 64, 64, 32, 8);
		}
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	run_tiles(&s);
	run_batches(&s);
	run_loops(&s);
	return suite_close(&s);
}
