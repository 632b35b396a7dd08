/* Products whose operands are loaded by pointers and masks, in all the ways in which people write them: most are
 * windows of an array, which sm_90a copies by tensor maps, some only look like it.  Each is compared with sums in
 * double precision over the elements that the pointers name and the mask lets in; what lies around the arrays is not 0.
 * Sizes divisible by 16 take maps where the target has them, others never do. */
#include "device_test.h"

enum { ROWS = 72, BLOCK = 64, STEP = 32, AROUND = 5 }; /* AROUND: rows in front of what is passed as an array */

/* Element (i, k) of the first operand or (k, j) of the second, whose arrays begin at x; n: columns. */
typedef double (*element)(const double *x, int row, int column, int n);

typedef struct window_case {
	const char *name, *x, *y; /* parameters' types */
	const char *setup, *range, *loads, *advance;
	element a, b;
	const char *grid; /* null: over all blocks */
} window_case;

static double a_plain(const double *x, int i, int k, int n)
{
	return i < ROWS && k < n ? x[(long)i * n + k] : 0;
}

static double b_plain(const double *x, int k, int j, int n)
{
	return k < n && j < n ? x[(long)k * n + j] : 0;
}

static double a_one_less(const double *x, int i, int k, int n)
{
	return i < ROWS && k < n - 1 ? x[(long)i * n + k] : 0;
}

/* A mask that is one too wide: the next row's first element, as the pointer says. */
static double a_one_more(const double *x, int i, int k, int n)
{
	return i < ROWS && k <= n ? x[(long)i * n + k] : 0;
}

static double b_one_more(const double *x, int k, int j, int n)
{
	return k <= n && j < n ? x[(long)k * n + j] : 0;
}

static double a_from_zero(const double *x, int i, int k, int n)
{
	return i >= 3 && i - 3 < ROWS && k < n ? x[(long)(i - 3) * n + k] : 0;
}

static double a_before(const double *x, int i, int k, int n)
{
	return i - 3 < ROWS && k < n ? x[(long)(i - 3) * n + k] : 0;
}

static double a_column_before(const double *x, int i, int k, int n)
{
	return i < ROWS && k - 8 < n ? x[(long)i * n + k - 8] : 0;
}

static double a_other(const double *x, int i, int k, int n)
{
	return i < ROWS && k < n - 8 ? x[(long)i * n + k] : 1;
}

static double a_transposed(const double *x, int i, int k, int n)
{
	return i < ROWS && k < n ? x[(long)k * ROWS + i] : 0;
}

static double a_every_other(const double *x, int i, int k, int n)
{
	return i < ROWS / 2 && k < n ? x[(long)2 * i * n + k] : 0;
}

static double a_overlapping(const double *x, int i, int k, int n)
{
	return i < ROWS && k < n ? x[(long)16 * i + k] : 0;
}

static double a_around(const double *x, int i, int k, int n)
{
	return k < n ? x[(long)(i % ROWS) * n + k] : 0;
}

static double a_third(const double *x, int i, int k, int n)
{
	return i < ROWS && k < n ? x[2L * n * n + (long)i * n + k] : 0;
}

static double a_first_block(const double *x, int i, int k, int n)
{
	return i < BLOCK ? a_plain(x, i, k, n) : 0;
}

static double a_unmasked(const double *x, int i, int k, int n)
{
	return x[(long)i * n + k];
}

static double b_half(const double *x, int k, int j, int n)
{
	return k < n && j < n ? x[(long)k * n + j] * 0.5 : 0;
}

/* Times a row: the array's first one, that of the block of rows, as it goes on behind the array's columns. */
static double a_by_first(const double *x, int i, int k, int n)
{
	return a_plain(x, i, k, n) * x[k];
}

static double a_by_own(const double *x, int i, int k, int n)
{
	return a_plain(x, i, k, n) * x[(long)(i / BLOCK) * n + k];
}

static double a_by_window(const double *x, int i, int k, int n)
{
	return i < ROWS && k < n ? x[(long)i * n + k] + x[8L + k] : x[8L + k];
}

#define PA "var pa = x + i[:, None] * n + l[None, :]; "
#define PB "var pb = y + l[:, None] * n + j[None, :];"
#define MASK_A "mask = (i < 72)[:, None] & (l < n - k)[None, :]"
#define MASK_B "mask = (l < n - k)[:, None] & (j < n)[None, :]"
#define LOAD_A "let a = load(pa, " MASK_A "); "
#define LOAD_B "let b = load(pb, " MASK_B ");"
#define NEW_A(i, k, mask) "let a = load(x + (" i ")[:, None] * n + (" k ")[None, :], mask = " mask "); "
#define BOTH "pa += 32; pb += 32 * n;"

static const window_case cases[] = {
	{"advance", "*const f16", "*const f16", PA PB, "0, n, 32", LOAD_A LOAD_B, BOTH, a_plain, b_plain, NULL},
	{"wide", "*const f16", "*const f16",
		"var pa = x + i[:, None].to(i64) * n + l[None, :]; var pb = y + l[:, None].to(i64) * n + j[None, :];",
		"0, n, 32", LOAD_A LOAD_B, "pa += 32; pb += 32 * n.to(i64);", a_plain, b_plain, NULL},
	{"anew", "*const f16", "*const f16", "", "0, n, 32",
		NEW_A("i", "k + l", "(i < 72)[:, None] & (k + l < n)[None, :]") "let b = load(y + (k + l)[:, None] * n "
										"+ j[None, :], mask = (k + l < n)[:, "
										"None] & (j < n)[None, :]);",
		"", a_plain, b_plain, NULL},
	{"rounds", "*const f16", "*const f16", PA PB, "cdiv(n, 32)",
		"let a = load(pa, mask = (i < 72)[:, None] & (l < n - k * 32)[None, :]); "
		"let b = load(pb, mask = (l < n - k * 32)[:, None] & (j < n)[None, :]);",
		BOTH, a_plain, b_plain, NULL},
	{"compared", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, mask = (72 > i)[:, None] & (l + k <= n - 1)[None, :]); " LOAD_B, BOTH, a_plain,
		b_plain, NULL},
	{"unsigned", "*const f16", "*const f16", "", "0, n, 32",
		NEW_A("i - 3", "k + l",
			"((i - 3).to(u32) < 72)[:, None] & ((k + l).to(u32) < n.to(u32))[None, :]") "let b = load(y + "
												    "(k + l)[:, None] "
												    "* n + j[None, :], "
												    "mask = (n.to(u32) "
												    "> (k + "
												    "l).to(u32))[:, "
												    "None] & "
												    "(j.to(u32) < "
												    "maximum(n, "
												    "0).to(u32))[None, "
												    ":]);",
		"", a_from_zero, b_plain, NULL},
	{"unsigned_rest", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, mask = (i < 72)[:, None] & (l.to(u32) < (n - k).to(u32))[None, :]); " LOAD_B, BOTH,
		a_plain, b_plain, NULL},
	{"one_less", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, mask = (i < 72)[:, None] & (l < n - 1 - k)[None, :]); " LOAD_B, BOTH, a_one_less,
		b_plain, NULL},
	{"one_more", "*const f16", "*const f16", PA PB, "0, n + 1, 32",
		"let a = load(pa, mask = (i < 72)[:, None] & (l <= n - k)[None, :]); "
		"let b = load(pb, mask = (l <= n - k)[:, None] & (j < n)[None, :]);",
		BOTH, a_one_more, b_one_more, NULL},
	{"from_zero", "*const f16", "*const f16", PB, "0, n, 32",
		NEW_A("i - 3", "k + l", "(i - 3 >= 0)[:, None] & (i - 3 < 72)[:, None] & (k + l < n)[None, :]") LOAD_B,
		"pb += 32 * n;", a_from_zero, b_plain, NULL},
	{"rows_before", "*const f16", "*const f16", PB, "0, n, 32",
		NEW_A("i - 3", "k + l", "(i - 3 < 72)[:, None] & (k + l < n)[None, :]") LOAD_B, "pb += 32 * n;",
		a_before, b_plain, NULL},
	{"columns_before", "*const f16", "*const f16", PB, "0, n, 32",
		NEW_A("i", "k + l - 8", "(i < 72)[:, None] & (k + l - 8 < n)[None, :]") LOAD_B, "pb += 32 * n;",
		a_column_before, b_plain, NULL},
	{"other", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, mask = (i < 72)[:, None] & (l < n - 8 - k)[None, :], other = 1.0); " LOAD_B, BOTH,
		a_other, b_plain, NULL},
	{"other_zero", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, " MASK_A ", other = 0.0); " LOAD_B, BOTH, a_plain, b_plain, NULL},
	{"transposed", "*const f16", "*const f16", "var pa = x + i[:, None] + l[None, :] * 72; " PB, "0, n, 32",
		LOAD_A LOAD_B, "pa += 32 * 72; pb += 32 * n;", a_transposed, b_plain, NULL},
	{"transposed_tile", "*const f16", "*const f16", "var pa = x + i[None, :] + l[:, None] * 72; " PB, "0, n, 32",
		"let a = trans(load(pa, mask = (i < 72)[None, :] & (l < n - k)[:, None])); " LOAD_B,
		"pa += 32 * 72; pb += 32 * n;", a_transposed, b_plain, NULL},
	{"every_other_row", "*const f16", "*const f16", PB, "0, n, 32",
		NEW_A("2 * i", "k + l", "(i < 36)[:, None] & (k + l < n)[None, :]") LOAD_B, "pb += 32 * n;",
		a_every_other, b_plain, NULL},
	{"overlapping_rows", "*const f16", "*const f16", "var pa = x + i[:, None] * 16 + l[None, :]; " PB, "0, n, 32",
		LOAD_A LOAD_B, BOTH, a_overlapping, b_plain, NULL},
	{"rows_around", "*const f16", "*const f16", PB, "0, n, 32",
		NEW_A("i % 72", "k + l", "(k + l < n)[None, :]") LOAD_B, "pb += 32 * n;", a_around, b_plain, NULL},
	{"batch", "*const f16", "*const f16",
		"let t = program_id(2).to(i64) + 2; var pa = x + t * n * n + i[:, None] * n + l[None, :]; " PB,
		"0, n, 32", LOAD_A LOAD_B, BOTH, a_third, b_plain, NULL},
	{"batch_of_programs", "*const f16", "*const f16",
		"let t = num_programs(2) * 2; var pa = x + t * n * n + i[:, None] * n + l[None, :]; " PB, "0, n, 32",
		LOAD_A LOAD_B, BOTH, a_third, b_plain, NULL},
	{"parts", "*const f16", "*const f16", "let part = cdiv(cdiv(n, 3), 32) * 32;", "0, 3",
		"let first = min(k * part, n); let last = min(first + part, n); let q = first + l;\n"
		"var pa = x + i[:, None] * n + q[None, :]; var pb = y + q[:, None] * n + j[None, :];\n"
		"for o in range(first, last, 32) {\n"
		"let a = load(pa, mask = (i < 72)[:, None] & (l < last - o)[None, :]);\n"
		"let b = load(pb, mask = (l < last - o)[:, None] & (j < n)[None, :]);",
		"s = dot(a, b, s);\npa += 32; pb += 32 * n; }", a_plain, b_plain, NULL},
	{"row", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, " MASK_A ") * load(x + k + l, mask = k + l < n)[None, :]; " LOAD_B, BOTH, a_by_first,
		b_plain, NULL},
	{"row_of_block", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, " MASK_A ") * load(x + program_id(0) * n + k + l)[None, :]; " LOAD_B, BOTH, a_by_own,
		b_plain, NULL},
	{"row_of_tensor", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let t = tensor(x + 0, [n]); let a = load(pa, " MASK_A ") * t.load([k], [32])[None, :]; " LOAD_B, BOTH,
		a_by_first, b_plain, NULL},
	{"row_of_matrix", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let t = tensor(x + 0, [2, n]); let a = load(pa, " MASK_A
		") * t.load([program_id(0), k], [1, 32]); " LOAD_B,
		BOTH, a_by_own, b_plain, NULL},
	{"row_further", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, " MASK_A ") + load(x + 8 + k + l)[None, :]; " LOAD_B, BOTH, a_by_window, b_plain,
		NULL},
	{"row_shifted", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, " MASK_A ") + load(x + 7 + k + l + 1)[None, :]; " LOAD_B, BOTH, a_by_window, b_plain,
		NULL},
	{"may_change", "*f16", "*const f16", PA PB, "0, n, 32", LOAD_A LOAD_B " store(pa, a * 0.0 + 7.0, " MASK_A ");",
		BOTH, a_first_block, b_plain, "1"},
	{"computed", "*const f16", "*const f16", PA PB, "0, n, 32", LOAD_A "let b = load(pb, " MASK_B ") * 0.5;", BOTH,
		a_plain, b_half, NULL},
	{"hinted", "*const f16", "*const f16", PA PB, "0, n, 32",
		"let a = load(pa, " MASK_A ", evict = \"first\"); " LOAD_B, BOTH, a_plain, b_plain, NULL},
	{"condition", "*const f16", "*const f16", PA PB "let on = n > 0;", "0, n, 32",
		"let a = load(pa, " MASK_A " & on); " LOAD_B, BOTH, a_plain, b_plain, NULL},
};

/* All elements that the masks would leave out are there, and no mask stands. */
static const window_case unmasked = {"unmasked", "*const f16", "*const f16", PA PB, "0, n / 32 * 32, 32",
	"let a = load(pa); let b = load(pb);", BOTH, a_unmasked, b_plain, NULL};

static void run(suite *s, const window_case *c, int warps, int n)
{
	char name[96], text[4096];
	snprintf(name, sizeof name, "%s.%dwarps.n%d", c->name, warps, n);
	if (!suite_wants(s, name)) return;
	bool one = c->grid != NULL;
	snprintf(text, sizeof text,
		"kernel k(z: *f32, x: %s, y: %s, n: i32) grid(%s) options(num_warps = %d, num_stages = 3) {\n"
		"let i = program_id(0) * 64 + arange(0, 64); let j = program_id(1) * 64 + arange(0, 64);\n"
		"let l = arange(0, 32);\n%s\nvar s = zeros([64, 64], f32);\n"
		"for k in range(%s) {\n%s\n%s%s\n}\n"
		"store(z + i[:, None] * n + j[None, :], s, mask = (i < 72)[:, None] & (j < n)[None, :]);\n}\n",
		c->x, c->y, one ? c->grid : "2, cdiv(n, 64)", warps, c->setup, c->range, c->loads,
		strstr(c->advance, "dot") ? "" : "s = dot(a, b, s);\n", c->advance);
	size_t before = (size_t)AROUND * n, na = before + (size_t)(2 * BLOCK + 2 * n + AROUND) * n + 4096,
	       nb = (size_t)(n + BLOCK + AROUND) * n + 4096, nc = (size_t)ROWS * n;
	uint16_t *x = suite_alloc(2 * na), *y = suite_alloc(2 * nb);
	float *z = suite_alloc(4 * nc);
	uint64_t state = (uint64_t)n;
	for (size_t i = 0; i < na; i++)
		x[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(int)(suite_random(&state) % 17) - 8);
	for (size_t i = 0; i < nb; i++)
		y[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(int)(suite_random(&state) % 17) - 8);
	for (char *at = text; (at = strstr(at, "= x + ")); at++) at[2] = 'X'; /* what is passed begins in a buffer */
	for (char *at = text; (at = strstr(at, "load(x + ")); at++) at[5] = 'X';
	for (char *at = text; (at = strstr(at, "tensor(x + ")); at++) at[7] = 'X';
	char whole[4200], *body = strstr(text, "{\nlet i");
	snprintf(whole, sizeof whole, "%.*s{\nlet X = x + %d * n;\n%s", (int)(body - text), text, AROUND, body + 2);
	const void *in[] = {x, y};
	const size_t bytes[] = {2 * na, 2 * nb};
	bool good = suite_run(s, name, whole, NULL, 0, SCALAR_F32, z, nc, in, bytes, 2, n);
	double *dx = suite_doubles(SCALAR_F16, x, na), *dy = suite_doubles(SCALAR_F16, y, nb);
	int wrong = 0, last = strstr(c->range, "/ 32") ? n / 32 * 32 : n + STEP;
	for (int i = 0; good && i < (one ? BLOCK : ROWS); i++)
		for (int j = 0; j < (one && n > BLOCK ? BLOCK : n); j++) {
			double sum = 0;
			for (int k = 0; k < last; k++) sum += c->a(dx + before, i, k, n) * c->b(dy, k, j, n);
			if ((double)z[(size_t)i * n + j] != sum && wrong++ < 3)
				printf("%s: [%d, %d] is %g, expected %g\n", name, i, j, (double)z[(size_t)i * n + j],
					sum);
		}
	suite_verdict(s, good, wrong, whole);
	free(dx);
	free(dy);
	free(x);
	free(y);
	free(z);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	static const int sizes[] = {144, 80, 16, 75};
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (unsigned k = 0; k < 4; k++) run(&s, &cases[i], k == 1 ? 2 : 4, sizes[k]);
	for (int warps = 2; warps <= 8; warps *= 2) run(&s, &unmasked, warps, 96);
	return suite_close(&s);
}
