/* Every elementwise operation of every type on the cpu device, against C on the host; casts against scalar.c, all
 * patterns of the types that have few.  Everything twice: with this processor's instructions and with the oldest's. */
#include "cpu_fixture.h"

enum { N = 512 };

static const struct machine {
	const char *cpu, *features;
} machines[] = {{NULL, NULL}, {"x86-64", ""}};

/* Special patterns first, then random ones of all magnitudes. */
static uint64_t sample(scalar s, size_t i, uint64_t *state)
{
	static const double special[] = {0, -0.0, 1, -1, 2, 0.5, 1.5, 2.5, -2.5, 3, INFINITY, -INFINITY, NAN, 65504,
		65520, 448, 464, 57344, 1e-7, 6e-8, 2147483647, 2147483648., -2147483648., 4294967296., 9.3e18, -9.3e18,
		1.9e19, 1e30, -1e30, 1e-40, 255, 256, 127, -128, -129, 1e300, 5e-324, 1e-310};
	static const uint64_t bits[] = {0, 1, 2, 3, 7, 8, 31, 32, 63, 64, UINT64_MAX, UINT64_MAX - 1, INT64_MAX,
		(uint64_t)INT64_MIN, INT32_MAX, (uint64_t)INT32_MIN, 0x80, 0x7f, 0x8000, 0x7fff};
	uint64_t r = random_bits(state);
	if (scalar_is_float(s)) {
		size_t n = sizeof special / sizeof special[0];
		if (i < n * n) return scalar_from_double(s, special[r % 3 ? r % n : i % n]);
		if (i % 4 == 0) return scalar_truncate(s, r);
		return scalar_from_double(s, ((double)(r % 2001) - 1000) / (double)(1 << r % 7));
	}
	if (i % 3 == 0) return scalar_truncate(s, bits[r % (sizeof bits / sizeof bits[0])]);
	return scalar_truncate(s, i % 3 == 1 ? r : r % 100);
}

static ir_kind kinds[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_REM, IR_NEG, IR_MAX, IR_MIN, IR_UMULHI, IR_MAX_NAN,
	IR_MIN_NAN, IR_POPCOUNT, IR_CLZ, IR_BREV, IR_AND, IR_OR, IR_XOR, IR_NOT, IR_SHL, IR_SHR, IR_EQ, IR_NE, IR_LT,
	IR_LE, IR_GT, IR_GE, IR_SELECT, IR_ABS, IR_SQRT, IR_RSQRT, IR_FLOOR, IR_CEIL, IR_ROUND, IR_DIV_RN, IR_SQRT_RN,
	IR_FMA, IR_EXP, IR_EXP2, IR_EXPM1, IR_LOG, IR_LOG2, IR_LOG1P, IR_SIN, IR_COS, IR_TANH, IR_ERF, IR_POW};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

static bool applies(ir_kind k, scalar s)
{
	bool is_float = scalar_is_float(s), is_bool = s == SCALAR_BOOL, fp8 = scalar_is_fp8(s);
	switch (k) {
	case IR_EQ:
	case IR_NE:
	case IR_LT:
	case IR_LE:
	case IR_GT:
	case IR_GE:
	case IR_SELECT: return true;
	case IR_MAX:
	case IR_MIN: return !fp8;
	case IR_AND:
	case IR_OR:
	case IR_XOR:
	case IR_NOT: return !is_float;
	case IR_REM:
	case IR_POPCOUNT:
	case IR_CLZ:
	case IR_BREV:
	case IR_SHL:
	case IR_SHR: return !is_float && !is_bool;
	case IR_UMULHI: return !is_float && scalar_bytes(s) >= 4;
	case IR_ADD:
	case IR_SUB:
	case IR_MUL:
	case IR_DIV:
	case IR_NEG:
	case IR_ABS: return !is_bool && !fp8;
	case IR_DIV_RN:
	case IR_SQRT_RN: return s == SCALAR_F32 || s == SCALAR_F64;
	default: return is_float && !fp8;
	}
}

static unsigned arity(ir_kind k)
{
	return ir_ops[k].args;
}

static bool is_compare(ir_kind k)
{
	return k >= IR_EQ && k <= IR_GE;
}

static uint64_t integer_reference(ir_kind k, scalar s, uint64_t x, uint64_t y)
{
	__int128 a = scalar_is_signed(s) ? scalar_sign_extend(s, x) : (__int128)x;
	__int128 b = scalar_is_signed(s) ? scalar_sign_extend(s, y) : (__int128)y;
	unsigned width = scalar_bits(s);
	switch (k) {
	case IR_ADD: return scalar_truncate(s, (uint64_t)(a + b));
	case IR_SUB: return scalar_truncate(s, (uint64_t)(a - b));
	case IR_MUL: return scalar_truncate(s, x * y);
	case IR_DIV: return b ? scalar_truncate(s, (uint64_t)(a / b)) : 0;
	case IR_REM: return b ? scalar_truncate(s, (uint64_t)(a % b)) : 0;
	case IR_NEG: return scalar_truncate(s, (uint64_t)-a);
	case IR_ABS: return scalar_truncate(s, (uint64_t)(a < 0 ? -a : a));
	case IR_MAX: return a > b ? x : y;
	case IR_MIN: return a < b ? x : y;
	case IR_UMULHI:
		if (scalar_is_signed(s)) return scalar_truncate(s, (uint64_t)((a * b) >> width));
		return scalar_truncate(s, (uint64_t)(((unsigned __int128)x * y) >> width));
	case IR_POPCOUNT:
	case IR_CLZ:
	case IR_BREV: {
		uint64_t ones = 0, high = 0, reversed = 0;
		for (unsigned i = 0; i < width; i++) {
			uint64_t bit = x >> i & 1;
			ones += bit, high = bit ? i + 1 : high, reversed |= bit << (width - 1 - i);
		}
		return k == IR_POPCOUNT ? ones : k == IR_CLZ ? width - high : reversed;
	}
	case IR_AND: return x & y;
	case IR_OR: return x | y;
	case IR_XOR: return x ^ y;
	case IR_NOT: return scalar_truncate(s, ~x);
	case IR_SHL: return y >= width ? 0 : scalar_truncate(s, x << y);
	case IR_SHR:
		if (y >= width) return a < 0 ? scalar_truncate(s, UINT64_MAX) : 0;
		return scalar_truncate(s, (uint64_t)(a >> y));
	case IR_EQ: return a == b;
	case IR_NE: return a != b;
	case IR_LT: return a < b;
	case IR_LE: return a <= b;
	case IR_GT: return a > b;
	default: return a >= b;
	}
}

static double maximum(double a, double b)
{
	if (isnan(a)) return b;
	if (isnan(b)) return a;
	if (a == b) return signbit(a) ? b : a;
	return a > b ? a : b;
}

/* a * b + c rounded once. */
static uint64_t fma_reference(scalar s, double a, double b, double c)
{
	if (s == SCALAR_F64) return scalar_from_double(s, fma(a, b, c));
	if (s == SCALAR_F32) return scalar_from_double(s, fmaf((float)a, (float)b, (float)c));
	if (!isfinite(a) || !isfinite(b) || !isfinite(c)) return scalar_from_double(s, a * b + c);
	__float128 p = (__float128)a * b, sum = p + c, part = sum - p; /* p is exact; two-sum gives what the sum lost */
	__float128 lost = (p - (sum - part)) + (c - part);
	double near = (double)sum;
	__float128 rest = sum - near + lost;
	if (rest != 0) { /* to odd, so that the second rounding is the right one */
		uint64_t bits = scalar_from_double(SCALAR_F64, near);
		bool away = near > 0 ? rest < 0 : rest > 0;
		if (!(bits & 1)) bits += away ? UINT64_MAX : 1;
		near = scalar_to_double(SCALAR_F64, bits);
	}
	return scalar_from_double(s, near);
}

static double wide(ir_kind k, double a, double b)
{
	switch (k) {
	case IR_SQRT:
	case IR_SQRT_RN: return sqrt(a);
	case IR_FLOOR: return floor(a);
	case IR_CEIL: return ceil(a);
	case IR_ROUND: return nearbyint(a);
	case IR_EXP: return exp(a);
	case IR_EXP2: return exp2(a);
	case IR_EXPM1: return expm1(a);
	case IR_LOG: return log(a);
	case IR_LOG2: return log2(a);
	case IR_LOG1P: return log1p(a);
	case IR_RSQRT: return 1 / sqrt(a);
	case IR_SIN: return sin(a);
	case IR_COS: return cos(a);
	case IR_TANH: return tanh(a);
	case IR_ERF: return erf(a);
	default: return pow(a, b);
	}
}

static uint64_t float_reference(ir_kind k, scalar s, uint64_t x, uint64_t y, uint64_t z)
{
	double a = scalar_to_double(s, x), b = scalar_to_double(s, y), c = scalar_to_double(s, z);
	uint64_t sign = UINT64_C(1) << (scalar_bits(s) - 1);
	float fa = (float)a, fb = (float)b;
	bool f64 = s == SCALAR_F64;
	switch (k) {
	case IR_EQ: return a == b;
	case IR_NE: return a != b;
	case IR_LT: return a < b;
	case IR_LE: return a <= b;
	case IR_GT: return a > b;
	case IR_GE: return a >= b;
	case IR_NEG: return x ^ sign;
	case IR_ABS: return x & ~sign;
	case IR_MAX: return scalar_from_double(s, maximum(a, b));
	case IR_MIN: return scalar_from_double(s, -maximum(-a, -b));
	case IR_MAX_NAN: return scalar_from_double(s, isnan(a) || isnan(b) ? NAN : maximum(a, b));
	case IR_MIN_NAN: return scalar_from_double(s, isnan(a) || isnan(b) ? NAN : -maximum(-a, -b));
	case IR_ADD: return scalar_from_double(s, f64 ? a + b : fa + fb);
	case IR_SUB: return scalar_from_double(s, f64 ? a - b : fa - fb);
	case IR_MUL: return scalar_from_double(s, f64 ? a * b : fa * fb);
	case IR_DIV:
	case IR_DIV_RN: return scalar_from_double(s, f64 ? a / b : fa / fb);
	case IR_FMA: return fma_reference(s, a, b, c);
	default: return scalar_from_double(s, wide(k, a, b));
	}
}

/* Elementary functions may differ in the last places of what they are computed in. */
static bool close_enough(ir_kind k, scalar s, uint64_t got, uint64_t want)
{
	if (same(s, got, want)) return true;
	if (!(ir_ops[k].flags & IR_MATH) || k == IR_SQRT) return false;
	double g = scalar_to_double(s, got), w = scalar_to_double(s, want);
	double unit = ldexp(1, -(int)scalar_table[s].mantissa), least = s == SCALAR_F16   ? 6e-8
									: s == SCALAR_F64 ? 5e-324
											  : 1.5e-45;
	if (s == SCALAR_BF16) least = 1e-40;
	if (isinf(g) != isinf(w) || isnan(g) || isnan(w)) return false;
	return fabs(g - w) <= 2 * unit * fabs(w) + least;
}

static void check_kind(ir_kind k, scalar s, const void *a, const void *b, const void *c, const void *y)
{
	scalar rs = is_compare(k) ? SCALAR_BOOL : s;
	for (size_t i = 0; i < N; i++) {
		uint64_t x = get(s, a, i), z = get(s, c, i), w = get(s, b, i), want, got = get(rs, y, i);
		if (k == IR_SELECT)
			want = i % 2 ? x : w;
		else if (scalar_is_float(s))
			want = float_reference(k, s, x, w, z);
		else
			want = integer_reference(k, s, x, w);
		if (!close_enough(k, rs, got, want))
			fail_msg("%s %s [%zu]: (%llx, %llx, %llx) gives %llx, not %llx", ir_ops[k].name, scalar_name(s),
				i, (unsigned long long)x, (unsigned long long)w, (unsigned long long)z,
				(unsigned long long)got, (unsigned long long)want);
	}
}

static void elements_of(scalar s, const struct machine *m)
{
	fixture t;
	begin(&t);
	t.cpu = m->cpu;
	t.features = m->features;
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	ir_value *a = parameter(&t, "a", s, IR_CONST_POINTER), *b = parameter(&t, "b", s, IR_CONST_POINTER);
	ir_value *c = parameter(&t, "c", s, IR_CONST_POINTER), *y = parameter(&t, "y", s, IR_POINTER);
	ir_value *z = parameter(&t, "z", SCALAR_BOOL, IR_POINTER);
	ir_type type = tile(s, N);
	ir_value *v[3] = {load_tile(&t, a, type), load_tile(&t, b, type), load_tile(&t, c, type)};
	ir_value *odd = ir_binary(&t.b, IR_AND, arange(&t, N), ir_constant(&t.b, tile(SCALAR_I32, N), 1));
	odd = build(&t, IR_CONVERT, tile(SCALAR_BOOL, N), 1, odd);
	for (unsigned i = 0; i < NKINDS; i++) {
		ir_kind k = kinds[i];
		if (!applies(k, s)) continue;
		ir_value *args[] = {v[0], v[1], v[2]};
		if (k == IR_SELECT) args[0] = odd, args[1] = v[0], args[2] = v[1];
		ir_value *r = ir_build1(&t.b, k, is_compare(k) ? tile(SCALAR_BOOL, N) : type, arity(k), args);
		ir_value *at =
			ir_binary(&t.b, IR_ADD, arange(&t, N), ir_splat(&t.b, i32(&t, i * N), tile(SCALAR_I32, N)));
		store(&t, pointers(&t, is_compare(k) ? z : y, at), r, NULL);
	}
	compile(&t);
	static uint64_t buffer[3][N];
	uint64_t *results = malloc(NKINDS * N * 8), state = s + 1;
	uint8_t *truths = malloc(NKINDS * N);
	memset(results, 0xa5, NKINDS * N * 8);
	memset(truths, 0xa5, NKINDS * N);
	for (size_t i = 0; i < N; i++)
		for (int k = 0; k < 3; k++) put(s, buffer[k], i, sample(s, i, &state));
	uint64_t args[] = {
		address(buffer[0]), address(buffer[1]), address(buffer[2]), address(results), address(truths)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (unsigned i = 0; i < NKINDS; i++) {
		if (!applies(kinds[i], s)) continue;
		const void *at = is_compare(kinds[i]) ? (void *)(truths + i * N)
						      : (void *)((char *)results + (size_t)i * N * scalar_bytes(s));
		check_kind(kinds[i], s, buffer[0], buffer[1], buffer[2], at);
	}
	free(results);
	free(truths);
	end(&t);
}

static void elements(void **state)
{
	(void)state;
	for (int m = 0; m < 2; m++)
		for (int s = 0; s < SCALAR_COUNT; s++) elements_of((scalar)s, &machines[m]);
}

static void casts_from(scalar from, const struct machine *m)
{
	fixture t;
	begin(&t);
	t.cpu = m->cpu;
	t.features = m->features;
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	uint32_t n = from == SCALAR_BOOL ? 2 : scalar_bytes(from) == 1 ? 256 : scalar_bytes(from) == 2 ? 65536 : 8192;
	ir_value *x = parameter(&t, "x", from, IR_CONST_POINTER);
	ir_value *v = load_tile(&t, x, tile(from, n));
	for (int to = 0; to < SCALAR_COUNT; to++) {
		ir_value *y = parameter(&t, "y", (scalar)to, IR_POINTER);
		store_tile(&t, y, to == (int)from ? v : build(&t, IR_CONVERT, tile((scalar)to, n), 1, v));
	}
	compile(&t);
	uint64_t *in = malloc(n * 8), args[SCALAR_COUNT + 1], state = 99;
	for (uint32_t i = 0; i < n; i++) put(from, in, i, scalar_bytes(from) <= 2 ? i : sample(from, i, &state));
	args[0] = address(in);
	for (int to = 0; to < SCALAR_COUNT; to++) {
		void *out = malloc(n * 8);
		memset(out, 0xa5, n * 8);
		args[to + 1] = address(out);
	}
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (int to = 0; to < SCALAR_COUNT; to++) {
		void *out = (void *)(uintptr_t)args[to + 1];
		for (uint32_t i = 0; i < n; i++) {
			uint64_t bits = get(from, in, i), got = get((scalar)to, out, i);
			uint64_t want = scalar_convert((scalar)to, from, bits);
			bool exact = to == SCALAR_BF16 || scalar_is_fp8((scalar)to); /* nans too */
			if (exact && from != (scalar)to ? got != want : !same((scalar)to, got, want))
				fail_msg("%s %llx to %s gives %llx, not %llx", scalar_name(from),
					(unsigned long long)bits, scalar_name((scalar)to), (unsigned long long)got,
					(unsigned long long)want);
		}
		free(out);
	}
	free(in);
	end(&t);
}

static void casts(void **state)
{
	(void)state;
	for (int m = 0; m < 2; m++)
		for (int s = 0; s < SCALAR_COUNT; s++) casts_from((scalar)s, &machines[m]);
}

/* f32 functions computed in line: the distance from the double result in units of the result's last place. */
static double worst_of(ir_kind k, const struct machine *m, uint64_t *where)
{
	enum { COUNT = 1 << 16 };
	fixture t;
	begin(&t);
	t.cpu = m->cpu;
	t.features = m->features;
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	ir_value *x = parameter(&t, "x", SCALAR_F32, IR_CONST_POINTER), *y = parameter(&t, "y", SCALAR_F32, IR_POINTER);
	store_tile(&t, y, ir_unary(&t.b, k, load_tile(&t, x, tile(SCALAR_F32, COUNT))));
	compile(&t);
	static const uint32_t special[12] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000,
		1, 0x80000001, 0x7fffff, 0x800000, 0x7f7fffff};
	float *in = malloc(COUNT * 4), *out = malloc(COUNT * 4);
	uint64_t state = 11;
	for (int i = 0; i < COUNT; i++) {
		uint64_t r = random_bits(&state);
		double around = i % 3 == 0 ? 1 : 0; /* near 1, where logarithms vanish; else the whole useful range */
		if (i % 3 == 1)
			put(SCALAR_F32, in, (size_t)i, r & UINT32_MAX);
		else if (i < 3 * 12)
			put(SCALAR_F32, in, (size_t)i, special[i / 3]);
		else
			in[i] = (float)(around + ((double)(r >> 12) / 0x1p51 - 1) * (i % 3 == 0 ? 0.5 : 110));
	}
	uint64_t args[] = {address(in), address(out)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	double worst = 0;
	for (int i = 0; i < COUNT; i++) {
		double want = wide(k, in[i], 0);
		float near = (float)want;
		int exponent;
		frexp(want, &exponent);
		double unit = ldexp(1, (exponent < -125 ? -125 : exponent) - 24), off = fabs(out[i] - want) / unit;
		if (isnan(want) || isinf(near))
			off = isnan(want) ? (isnan(out[i]) ? 0 : INFINITY) : out[i] == near ? 0 : INFINITY;
		if (want == 0 && !signbit(want) != !signbit(out[i])) off = INFINITY;
		if (off > worst) worst = off, *where = get(SCALAR_F32, in, (size_t)i);
	}
	free(in);
	free(out);
	end(&t);
	return worst;
}

static void math_accuracy(void **state)
{
	(void)state;
	static const ir_kind inlined[] = {IR_EXP, IR_EXP2, IR_LOG, IR_LOG2, IR_TANH, IR_ERF};
	for (int m = 0; m < 2; m++)
		for (size_t i = 0; i < sizeof inlined / sizeof inlined[0]; i++) {
			uint64_t where = 0;
			double worst = worst_of(inlined[i], &machines[m], &where);
			if (getenv("BLK_TEST_VERBOSE"))
				print_message("%s: %.2f ulp at %llx\n", ir_ops[inlined[i]].name, worst,
					(unsigned long long)where);
			if (worst > 2)
				fail_msg("%s is %g units off at %llx", ir_ops[inlined[i]].name, worst,
					(unsigned long long)where);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements), cmocka_unit_test(casts), cmocka_unit_test(math_accuracy)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
