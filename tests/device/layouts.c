/* Tiles that change their layout, statistics that are used across it, and accesses of one program that meet in memory:
 * many shapes, element sizes and numbers of warps.  Everything is integer arithmetic that wraps, so results are exact.
 */
#include "device_test.h"

enum { MAX = 65536 };

typedef struct size {
	int rows, columns, n;
	scalar type;
} size;

typedef struct program {
	const char *name, *body; /* of kernel k(y: *T, x: *const T, n: i32, const R, C, T); e: flattened offsets */
	void (*want)(const size *, const int64_t *x, int64_t *y);
	bool square;
} program;

static int64_t wrap(const size *z, int64_t v)
{
	return scalar_sign_extend(z->type, scalar_truncate(z->type, (uint64_t)v));
}

static void want_transpose(const size *z, const int64_t *x, int64_t *y)
{
	for (int r = 0; r < z->rows; r++)
		for (int c = 0; c < z->columns; c++) y[c * z->rows + r] = x[r * z->columns + c];
}

static void want_turns(const size *z, const int64_t *x, int64_t *y)
{
	int64_t old[MAX];
	int n = z->rows;
	memcpy(y, x, (size_t)(n * n) * sizeof *y);
	for (int i = 0; i < z->n; i++) {
		memcpy(old, y, (size_t)(n * n) * sizeof *y);
		for (int r = 0; r < n; r++)
			for (int c = 0; c < n; c++) y[r * n + c] = wrap(z, old[c * n + r] + 2 * old[r * n + c]);
	}
}

static void want_statistics(const size *z, const int64_t *x, int64_t *y)
{
	for (int r = 0; r < z->rows; r++)
		for (int c = 0; c < z->columns; c++) {
			int64_t row = 0, top = INT64_MIN;
			for (int i = 0; i < z->columns; i++) row += x[r * z->columns + i];
			for (int i = 0; i < z->rows; i++)
				if (x[i * z->columns + c] > top) top = x[i * z->columns + c];
			y[r * z->columns + c] = wrap(z, x[r * z->columns + c] + 3 * wrap(z, row) + 5 * top);
		}
}

/* Row sums used along the columns: the sums themselves change their layout. */
static void want_crossed(const size *z, const int64_t *x, int64_t *y)
{
	int n = z->rows;
	for (int r = 0; r < n; r++)
		for (int c = 0; c < n; c++) {
			int64_t row = 0;
			for (int i = 0; i < n; i++) row += x[c * n + i];
			y[r * n + c] = wrap(z, x[r * n + c] + wrap(z, row));
		}
}

static void want_reversed(const size *z, const int64_t *x, int64_t *y)
{
	int64_t old[MAX];
	int n = z->rows * z->columns;
	memcpy(y, x, (size_t)n * sizeof *y);
	for (int i = 0; i < z->n; i++) {
		memcpy(old, y, (size_t)n * sizeof *y);
		for (int e = 0; e < n; e++) y[n - 1 - e] = wrap(z, old[e] + 1);
	}
}

static void want_stencil(const size *z, const int64_t *x, int64_t *y)
{
	int64_t old[MAX];
	int n = z->rows * z->columns;
	memcpy(y, x, (size_t)n * sizeof *y);
	for (int i = 0; i < z->n; i++) {
		memcpy(old, y, (size_t)n * sizeof *y);
		for (int e = 0; e < n; e++) y[e] = wrap(z, old[e] + old[(e + 1) % n]);
	}
}

static void want_prefix(const size *z, const int64_t *x, int64_t *y)
{
	int64_t sum = 0;
	for (int e = 0; e < z->rows * z->columns; e++) y[e] = sum = wrap(z, sum + x[e]);
}

/* y[i + 1] = y[i] + 1 by scalars, between two accesses of the whole tile. */
static void want_scalars(const size *z, const int64_t *x, int64_t *y)
{
	int n = z->rows * z->columns;
	memcpy(y, x, (size_t)n * sizeof *y);
	for (int i = 0; i < z->n && i + 1 < n; i++) y[i + 1] = wrap(z, y[i] + 1);
	for (int e = 0; e < n; e++) y[e] = wrap(z, 2 * y[e]);
}

static const program programs[] = {
	{"transpose", "store(y + c[:, None] * R + r[None, :], trans(load(x + e)));", want_transpose, false},
	{"reshaped",
		"let v = reshape(load(x + e), [R * C]);\n"
		"store(y + c[:, None] * R + r[None, :], trans(reshape(v, [R, C])));",
		want_transpose, false},
	{"turns", "var v = load(x + e);\nfor i in range(0, n) { v = trans(v) + v * 2; }\nstore(y + e, v);", want_turns,
		true},
	{"statistics",
		"let v = load(x + e);\n"
		"store(y + e, v + (sum(v, axis = 1) * 3).to(T)[:, None] + (max(v, axis = 0) * 5)[None, :]);",
		want_statistics, false},
	{"crossed", "let v = load(x + e);\nstore(y + e, v + sum(v, axis = 1).to(T)[None, :]);", want_crossed, true},
	{"reversed",
		"store(y + e, load(x + e));\n"
		"for i in range(0, n) { let v = load(y + e); store(y + (R * C - 1) - e, v + 1); }",
		want_reversed, false},
	{"stencil",
		"store(y + e, load(x + e));\n"
		"for i in range(0, n) { let v = load(y + e) + load(y + (e + 1) % (R * C)); store(y + e, v); }",
		want_stencil, false},
	{"prefix",
		"store(y + e, load(x + e));\n"
		"for s in static_range(0, 13) {\n"
		"    const D: i32 = 1 << s;\n"
		"    if D < R * C { let v = load(y + e) + load(y + e - D, mask = e >= D); store(y + e, v); }\n"
		"}",
		want_prefix, false},
	{"scalars",
		"store(y + e, load(x + e));\n"
		"for i in range(0, n) { if i + 1 < R * C { store(y + i + 1, load(y + i) + 1); } }\n"
		"store(y + e, load(y + e) * 2);",
		want_scalars, false},
};

static void run(suite *s, const program *p, const size *z, int warps)
{
	int count = z->rows * z->columns, wrong = 0;
	char name[96], text[1024], rows[16], columns[16], w[16];
	snprintf(name, sizeof name, "%s_%s_%dx%d_w%d", p->name, scalar_name(z->type), z->rows, z->columns, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(const R: i32, const C: i32, const T: type, y: *T, x: *const T, n: i32) grid(1)\n{\n"
		"let r = arange(0, R);\nlet c = arange(0, C);\nlet e = r[:, None] * C + c[None, :];\n%s\n}\n",
		p->body);
	snprintf(rows, sizeof rows, "%d", z->rows);
	snprintf(columns, sizeof columns, "%d", z->columns);
	snprintf(w, sizeof w, "%d", warps);
	blk_define defines[] = {{"R", rows}, {"C", columns}, {"T", scalar_name(z->type)}, {"num_warps", w}};
	static int64_t x[MAX], want[MAX];
	static unsigned char in[MAX * 8], out[MAX * 8];
	uint64_t state = (uint64_t)count + (uint64_t)warps;
	for (int i = 0; i < count; i++) {
		x[i] = wrap(z, (int64_t)(suite_random(&state) % 201) - 100);
		container_put(z->type, in, (size_t)i, (uint64_t)x[i]);
	}
	size_t bytes = (size_t)count * scalar_bytes(z->type);
	const void *inputs[] = {in};
	bool good = suite_run(s, name, text, defines, 4, z->type, out, (size_t)count, inputs, &bytes, 1, z->n);
	p->want(z, x, want);
	for (int i = 0; good && i < count; i++) {
		int64_t got = scalar_sign_extend(z->type, container_at(z->type, out, (size_t)i));
		if (got != want[i] && wrong++ < 4)
			printf("%s: element %d is %lld, expected %lld\n", name, i, (long long)got, (long long)want[i]);
	}
	suite_verdict(s, good, wrong, text);
}

int main(int argc, char **argv)
{
	static const int sizes[][2] = {{1, 1}, {1, 64}, {2, 4}, {16, 16}, {8, 128}, {64, 32}, {64, 64}, {128, 64}};
	static const scalar types[] = {SCALAR_I32, SCALAR_I8, SCALAR_I64, SCALAR_I16};
	suite s;
	suite_open(&s, argc, argv);
	for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++)
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
			for (int warps = 1; warps <= 8; warps += warps == 1 ? 1 : 6) { /* 1, 2, 8 */
				size z = {sizes[i][0], sizes[i][1], 5, types[(p + i + (unsigned)warps % 3) % 4]};
				if (!programs[p].square || z.rows == z.columns) run(&s, &programs[p], &z, warps);
			}
	/* Larger than shared memory, or than what all targets have of it: several passes, of some threads each. */
	static const size large[] = {{128, 256, 1, SCALAR_I32}, {256, 256, 1, SCALAR_I32}, {256, 256, 1, SCALAR_I16},
		{512, 128, 1, SCALAR_I16}, {128, 128, 1, SCALAR_I64}, {64, 512, 1, SCALAR_I64}};
	for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
		for (int warps = 8; warps <= 16; warps *= 2) run(&s, &programs[0], &large[i], warps);
	return suite_close(&s);
}
