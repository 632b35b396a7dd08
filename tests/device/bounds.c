/* Masks that bound one number several times (transform/join_bounds.c), at the ends of its type's range. */
#include "device_test.h"

enum { ROWS = 32, COLUMNS = 64 };

typedef struct bounds_case {
	const char *name, *mask; /* x: a number a column, r: a number a row, n: one of all, m: another one */
	bool (*lets_through)(int64_t x, int64_t r, int64_t n, int64_t m); /* of u64, the lower half alone */
} bounds_case;

static bool below(int64_t x, int64_t r, int64_t n, int64_t m)
{
	(void)m;
	return x < n && x <= r;
}
static bool both_below(int64_t x, int64_t r, int64_t n, int64_t m)
{
	(void)m;
	return x < n && x < r;
}
static bool up_to(int64_t x, int64_t r, int64_t n, int64_t m)
{
	return x <= n && x <= r && x < m;
}
static bool above(int64_t x, int64_t r, int64_t n, int64_t m)
{
	(void)m;
	return x > n && x >= r;
}
static bool between(int64_t x, int64_t r, int64_t n, int64_t m)
{
	return x <= r && x > n && x < m && x >= r;
}

static const bounds_case cases[] = {
	{"below", "(x < n) & (x <= r)", below},
	{"both_below", "(r > x) & (n > x)", both_below},
	{"up_to", "(x <= r) & ((x <= n) & (x < m))", up_to},
	{"above", "(n < x) & (r <= x)", above},
	{"between", "(x <= r) & (x > n) & (x < m) & (r <= x)", between},
};

/* Few numbers, so that they meet: both ends of the type, and what lies next to them. */
static int64_t pick(scalar type, uint64_t *state)
{
	unsigned bits = 8 * scalar_bytes(type);
	bool is_signed = scalar_is_signed(type);
	int64_t high = (int64_t)(UINT64_MAX >> (is_signed || bits == 64 ? 65 - bits : 64 - bits));
	int64_t low = is_signed ? -high - 1 : 0;
	const int64_t numbers[] = {low, low + 1, low + 2, 3, 4, 5, high - 2, high - 1, high};
	return numbers[suite_random(state) % (sizeof numbers / sizeof numbers[0])];
}

static void fill(void *p, size_t n, scalar type, int64_t *wide, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		wide[i] = pick(type, state);
		memcpy((char *)p + i * scalar_bytes(type), &wide[i], scalar_bytes(type));
	}
}

static void run(suite *s, const bounds_case *c, scalar type, uint64_t state)
{
	char name[64], text[1024];
	snprintf(name, sizeof name, "bounds.%s.%s.%d", c->name, scalar_name(type), (int)state);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(out: *i32, columns: *const %s, rows: *const %s, limits: *const %s, size: i32) grid(1)\n"
		"{\n"
		"    let i = arange(0, %d); let j = arange(0, %d);\n"
		"    let x = load(columns + j)[None, :]; let r = load(rows + i)[:, None];\n"
		"    let n = load(limits); let m = load(limits + 1);\n"
		"    store(out + i[:, None] * %d + j[None, :], where(%s, 1, 2));\n"
		"}\n",
		scalar_name(type), scalar_name(type), scalar_name(type), ROWS, COLUMNS, COLUMNS, c->mask);
	int64_t x[COLUMNS], r[ROWS], limits[2];
	char of_x[8 * COLUMNS], of_r[8 * ROWS], of_limits[8 * 2];
	int32_t out[ROWS * COLUMNS];
	fill(of_x, COLUMNS, type, x, &state);
	fill(of_r, ROWS, type, r, &state);
	fill(of_limits, 2, type, limits, &state);
	const void *in[] = {of_x, of_r, of_limits};
	const size_t bytes[] = {COLUMNS * scalar_bytes(type), ROWS * scalar_bytes(type), 2 * scalar_bytes(type)};
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_I32, out, ROWS * COLUMNS, in, bytes, 3, 0);
	int wrong = 0;
	for (int k = 0; good && k < ROWS * COLUMNS; k++)
		wrong += out[k] != (c->lets_through(x[k % COLUMNS], r[k / COLUMNS], limits[0], limits[1]) ? 1 : 2);
	suite_verdict(s, good, wrong, text);
}

int main(int argc, char **argv)
{
	static const scalar types[] = {
		SCALAR_I32, SCALAR_U32, SCALAR_I64, SCALAR_U64, SCALAR_I16, SCALAR_U16, SCALAR_I8, SCALAR_U8};
	suite s;
	suite_open(&s, argc, argv);
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (unsigned t = 0; t < sizeof types / sizeof types[0]; t++)
			for (uint64_t state = 1; state <= 4; state++) run(&s, &cases[i], types[t], state);
	return suite_close(&s);
}
