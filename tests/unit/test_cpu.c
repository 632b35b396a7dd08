/* The cpu device end to end: IR -> object -> loader -> threads -> numbers.  Elementwise operations and casts have their
 * own file (test_cpu_elements.c); what surrounds programs (reports, threads, the
 * compiler's manners) stands in test_cpu_run.c; here are memory, shapes, reductions and control flow. */
#include "cpu_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

static void vector_add(void **state)
{
	(void)state;
	fixture t;
	enum { BLOCK = 1024, N = 98432 };
	compile_text(&t, "func @add(%y: *f32, %a: *const f32, %b: *const f32, %n: i32) {\n"
			 "  %pid = program_id {axis=0} : i32\n"
			 "  %block = const {value=1024} : i32\n"
			 "  %start = mul %pid, %block : i32\n"
			 "  %range = arange {lo=0} : i32[1024]\n"
			 "  %s = splat %start : i32[1024]\n"
			 "  %at = add %s, %range : i32[1024]\n"
			 "  %ns = splat %n : i32[1024]\n"
			 "  %mask = lt %at, %ns : bool[1024]\n"
			 "  %as = splat %a : (*const f32)[1024]\n"
			 "  %pa = ptr_add %as, %at : (*const f32)[1024]\n"
			 "  %bs = splat %b : (*const f32)[1024]\n"
			 "  %pb = ptr_add %bs, %at : (*const f32)[1024]\n"
			 "  %ys = splat %y : (*f32)[1024]\n"
			 "  %py = ptr_add %ys, %at : (*f32)[1024]\n"
			 "  %va = load %pa, %mask" LOAD "f32[1024]\n"
			 "  %vb = load %pb, %mask" LOAD "f32[1024]\n"
			 "  %sum = add %va, %vb : f32[1024]\n"
			 "  store %py, %sum, %mask" STORE "  return\n}\n");
	assert_int_equal(t.out.scratch_bytes, 0); /* everything joins the store's loop */
	float *x0 = malloc(N * 4), *x1 = malloc(N * 4), *r = malloc((N + 8) * 4);
	for (int i = 0; i < N; i++) x0[i] = (float)i * 0.5f, x1[i] = 3.25f - (float)i;
	for (int i = 0; i < N + 8; i++) r[i] = -77;
	uint64_t args[] = {address(r), address(x0), address(x1), N};
	assert_int_equal(run(&t, args, (N + BLOCK - 1) / BLOCK, 1, 1), CPU_OK);
	for (int i = 0; i < N; i++) assert_true(r[i] == x0[i] + x1[i]);
	for (int i = N; i < N + 8; i++) assert_true(r[i] == -77);
	free(x0), free(x1), free(r);
	end(&t);
}

/* A page that may be used between two that may not. */
static char *guarded(size_t *page)
{
	*page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 3 * *page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + *page, *page, PROT_READ | PROT_WRITE), 0);
	return p + *page;
}

/* Copies the elements at places lo..hi-1 of 256, the rest are masked out and point into forbidden pages. */
static void masks_of(scalar s)
{
	fixture t;
	begin(&t);
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	enum { BLOCK = 256, COUNT = 100, LO = 77 };
	ir_value *y = parameter(&t, "y", s, IR_POINTER), *x = parameter(&t, "x", s, IR_POINTER);
	ir_value *lo = parameter(&t, "lo", SCALAR_I32, 0), *hi = parameter(&t, "hi", SCALAR_I32, 0);
	ir_value *z = parameter(&t, "z", s, IR_POINTER), *at = arange(&t, BLOCK);
	ir_value *mask = ir_binary(&t.b, IR_AND, ir_binary(&t.b, IR_GE, at, ir_splat(&t.b, lo, at->type)),
		ir_binary(&t.b, IR_LT, at, ir_splat(&t.b, hi, at->type)));
	ir_value *other = constant(&t, tile(s, BLOCK), 1);
	ir_value *p = pointers(&t, x, ir_binary(&t.b, IR_SUB, at, ir_splat(&t.b, lo, at->type)));
	ir_value *q = pointers(&t, y, ir_binary(&t.b, IR_SUB, at, ir_splat(&t.b, lo, at->type)));
	ir_value *v = build(&t, IR_LOAD, tile(s, BLOCK), 2, p, mask);
	ir_value *w = build(&t, IR_LOAD, tile(s, BLOCK), 3, p, mask, other);
	store(&t, q, v, mask);
	store(&t, pointers(&t, z, at), w, NULL);
	compile(&t);
	size_t page, bytes = scalar_bytes(s) * COUNT;
	char *in = guarded(&page), *out = guarded(&page), rest[BLOCK * 8];
	for (int side = 0; side < 2; side++) {
		/* the elements touch one end of the page, and are aligned to their size only */
		char *from = side ? in + page - bytes : in, *to = side ? out + page - bytes : out;
		uint64_t seed = 5;
		memset(out, 0xa5, page);
		for (int i = 0; i < COUNT; i++) put(s, from, (size_t)i, scalar_truncate(s, random_bits(&seed)));
		uint64_t args[] = {address(to), address(from), LO, LO + COUNT, address(rest)};
		assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
		assert_memory_equal(from, to, bytes);
		for (size_t i = 0; i < page; i++)
			if (out + i < to || out + i >= to + bytes) assert_int_equal((uint8_t)out[i], 0xa5);
		for (int i = 0; i < BLOCK; i++) {
			bool masked = i < LO || i >= LO + COUNT;
			uint64_t want = masked ? scalar_from_double(s, 1) : get(s, from, (size_t)(i - LO));
			assert_int_equal(get(s, rest, (size_t)i), want);
		}
	}
	munmap(in - page, 3 * page);
	munmap(out - page, 3 * page);
	end(&t);
}

static void masks(void **state)
{
	(void)state;
	for (int s = 0; s < SCALAR_COUNT; s++) masks_of((scalar)s);
}

/* Through *T a store sees none of its own tile's writes: y[i + 1] = x[i], x and y being one buffer. */
static void overlapping(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t,
		"func @shift(%y: *i32, %x: *i32) {\n"
		"  %r = arange {lo=0} : i32[64]\n"
		"  %one = arange {lo=1} : i32[64]\n"
		"  %xs = splat %x : (*i32)[64]\n"
		"  %px = ptr_add %xs, %r : (*i32)[64]\n"
		"  %ys = splat %y : (*i32)[64]\n"
		"  %py = ptr_add %ys, %one : (*i32)[64]\n"
		"  %a = load %px" LOAD "i32[64]\n"
		"  %b = add %a, %a : i32[64]\n"
		"  store %py, %b" STORE "  %c = load %px" LOAD "i32[64]\n" /* after the store: the new contents */
		"  %d = sub %c, %a : i32[64]\n"
		"  store %px, %d" STORE "  return\n}\n");
	int32_t x[66], old[66], want[66];
	for (int i = 0; i < 66; i++) x[i] = old[i] = want[i] = 3 * i + 1;
	for (int i = 0; i < 64; i++) want[i + 1] = 2 * old[i];
	for (int i = 0; i < 64; i++) want[i] -= old[i];
	uint64_t args[] = {address(x), address(x)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	assert_memory_equal(x, want, sizeof x);
	end(&t);
	/* a load with one reader only, which comes after another store, or is itself the store that overlaps */
	compile_text(&t, "func @late(%y: *i32, %x: *i32, %z: *i32) {\n"
			 "  %r = arange {lo=0} : i32[64]\n"
			 "  %one = arange {lo=1} : i32[64]\n"
			 "  %xs = splat %x : (*i32)[64]\n"
			 "  %px = ptr_add %xs, %r : (*i32)[64]\n"
			 "  %ys = splat %y : (*i32)[64]\n"
			 "  %py = ptr_add %ys, %one : (*i32)[64]\n"
			 "  %zs = splat %z : (*i32)[64]\n"
			 "  %pz = ptr_add %zs, %r : (*i32)[64]\n"
			 "  %early = load %px" LOAD "i32[64]\n"
			 "  %b = load %px" LOAD "i32[64]\n"
			 "  %a = load %px" LOAD "i32[64]\n"
			 "  store %py, %a" STORE "  %sum = reduce %b {axis=0 combine=sum} : i32\n"
			 "  %end = const {value=64} : i32\n"
			 "  %zend = ptr_add %z, %end : *i32\n"
			 "  store %zend, %sum" STORE "  store %pz, %early" STORE "  return\n}\n");
	int32_t z[65], sum = 0;
	for (int i = 0; i < 66; i++) x[i] = old[i] = 3 * i + 1;
	for (int i = 0; i < 64; i++) sum += old[i];
	uint64_t three[] = {address(x), address(x), address(z)};
	assert_int_equal(run(&t, three, 1, 1, 1), CPU_OK);
	assert_memory_equal(z, old, 64 * sizeof z[0]);
	assert_int_equal(z[64], sum);
	assert_memory_equal(x + 1, old, 64 * sizeof z[0]);
	assert_int_equal(x[65], old[65]);
	end(&t);
}

static void softmax(void **state)
{
	(void)state;
	fixture t;
	enum { ROWS = 7, COLUMNS = 781 };
	compile_text(&t, "func @softmax(%y: *f32, %x: *f32, %stride: i32, %n: i32) {\n"
			 "  %row = program_id {axis=0} : i32\n"
			 "  %cols = arange {lo=0} : i32[1024]\n"
			 "  %ns = splat %n : i32[1024]\n"
			 "  %mask = lt %cols, %ns : bool[1024]\n"
			 "  %start = mul %row, %stride : i32\n"
			 "  %px = ptr_add %x, %start : *f32\n"
			 "  %pxs = splat %px : (*f32)[1024]\n"
			 "  %pxc = ptr_add %pxs, %cols : (*f32)[1024]\n"
			 "  %low = const {value=-inf} : f32[1024]\n"
			 "  %v = load %pxc, %mask, %low" LOAD "f32[1024]\n"
			 "  %m = reduce %v {axis=0 combine=max} : f32\n"
			 "  %ms = splat %m : f32[1024]\n"
			 "  %d = sub %v, %ms : f32[1024]\n"
			 "  %e = exp %d : f32[1024]\n"
			 "  %s = reduce %e {axis=0 combine=sum} : f32\n"
			 "  %ss = splat %s : f32[1024]\n"
			 "  %q = div %e, %ss : f32[1024]\n"
			 "  %py = ptr_add %y, %start : *f32\n"
			 "  %pys = splat %py : (*f32)[1024]\n"
			 "  %pyc = ptr_add %pys, %cols : (*f32)[1024]\n"
			 "  store %pyc, %q, %mask" STORE "  return\n}\n");
	float x[ROWS * COLUMNS], y[ROWS * COLUMNS + 1];
	uint64_t seed = 3;
	for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(random_bits(&seed) % 1000) / 50;
	y[ROWS * COLUMNS] = 123;
	uint64_t args[] = {address(y), address(x), COLUMNS, COLUMNS};
	assert_int_equal(run(&t, args, ROWS, 1, 1), CPU_OK);
	for (int r = 0; r < ROWS; r++) {
		double sum = 0, max = -INFINITY;
		for (int i = 0; i < COLUMNS; i++) max = fmax(max, x[r * COLUMNS + i]);
		for (int i = 0; i < COLUMNS; i++) sum += exp(x[r * COLUMNS + i] - max);
		for (int i = 0; i < COLUMNS; i++) {
			double want = exp(x[r * COLUMNS + i] - max) / sum;
			assert_true(fabs(y[r * COLUMNS + i] - want) <= 4e-6 * want);
		}
	}
	assert_true(y[ROWS * COLUMNS] == 123);
	end(&t);
}

/* ---- reductions ---- */

static double combine(ir_combine c, double a, double b)
{
	switch (c) {
	case IR_SUM: return a + b;
	case IR_PROD: return a * b;
	case IR_MAXIMUM: return isnan(a) ? b : isnan(b) ? a : a > b || (a == b && !signbit(a)) ? a : b;
	case IR_MINIMUM: return isnan(a) ? b : isnan(b) ? a : a < b || (a == b && signbit(a)) ? a : b;
	case IR_MAXIMUM_NAN: return isnan(a) || isnan(b) ? NAN : combine(IR_MAXIMUM, a, b);
	case IR_MINIMUM_NAN: return isnan(a) || isnan(b) ? NAN : combine(IR_MINIMUM, a, b);
	case IR_XOR_SUM: return (double)((int64_t)a ^ (int64_t)b);
	case IR_ALL: return a != 0 && b != 0;
	default: return a != 0 || b != 0;
	}
}

/* Small integers as elements, so that every order of summation is exact; a few nans and zeros for max and min. */
static void reduce_shape(scalar s, ir_combine c, unsigned rank, const uint32_t *dim, unsigned axis)
{
	fixture t;
	begin(&t);
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	ir_type type = ir_tile_type(s, rank, dim), result = {.elem = (uint8_t)s, .rank = (uint8_t)(rank - 1)};
	for (unsigned d = 0; d + 1 < rank; d++) result.dim[d] = dim[d + (d >= axis)];
	ir_value *y = parameter(&t, "y", s, IR_POINTER), *x = parameter(&t, "x", s, IR_CONST_POINTER);
	ir_value *v = load_tile(&t, x, type);
	ir_op *o = ir_build(&t.b, IR_REDUCE, 1, &v, 1, &result, 0);
	ir_set_axis(o, axis);
	ir_set_combine(o, c);
	if (result.rank)
		store_tile(&t, y, o->results[0]);
	else
		store(&t, y, o->results[0], NULL);
	compile(&t);
	uint64_t n = ir_elements(type), m = n / dim[axis], inner = 1, seed = n;
	for (unsigned d = axis + 1; d < rank; d++) inner *= dim[d];
	char *in = malloc(n * 8), *out = malloc(m * 8 + 8);
	bool is_float = scalar_is_float(s), extreme = c >= IR_MAXIMUM && c <= IR_MINIMUM_NAN;
	for (uint64_t i = 0; i < n; i++) {
		int64_t r = (int64_t)(random_bits(&seed) % 7) - (scalar_is_signed(s) ? 3 : 0);
		double e = c == IR_PROD ? (r < 0 ? -1 : 1) : s == SCALAR_BOOL ? r > 0 : (double)r;
		if (extreme && is_float && random_bits(&seed) % 4 == 0) e = random_bits(&seed) % 2 ? NAN : -0.0;
		put(s, in, i, scalar_from_double(s, e));
	}
	memset(out, 0xa5, m * 8 + 8);
	uint64_t args[] = {address(out), address(in)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (uint64_t i = 0; i < m; i++) {
		uint64_t first = i / inner * inner * dim[axis] + i % inner;
		double want = scalar_to_double(s, get(s, in, first));
		for (uint64_t k = 1; k < dim[axis]; k++)
			want = combine(c, want, scalar_to_double(s, get(s, in, first + k * inner)));
		uint64_t bits = is_float ? scalar_from_double(s, want) : scalar_truncate(s, (uint64_t)(int64_t)want);
		uint64_t got = get(s, out, i);
		if (c == IR_SUM && want == 0) got = scalar_to_double(s, got) == 0 ? bits : got; /* either zero */
		if (!same(s, got, bits))
			fail_msg("%s of %s, axis %u of %s: [%llu] is %llx, not %llx", ir_combine_names[c],
				scalar_name(s), axis, ir_type_name(&t.arena, type), (unsigned long long)i,
				(unsigned long long)got, (unsigned long long)bits);
	}
	assert_int_equal(*(uint8_t *)(out + m * scalar_bytes(s)), 0xa5);
	free(in);
	free(out);
	end(&t);
}

static void reductions(void **state)
{
	(void)state;
	static const struct {
		unsigned rank;
		uint32_t dim[4];
	} shapes[] = {{1, {1}}, {1, {256}}, {1, {4096}}, {2, {16, 32}}, {2, {64, 2}}, {2, {1, 8}}, {3, {4, 8, 16}},
		{4, {2, 4, 2, 8}}};
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (unsigned axis = 0; axis < shapes[i].rank; axis++) {
			reduce_shape(SCALAR_F32, IR_SUM, shapes[i].rank, shapes[i].dim, axis);
			reduce_shape(SCALAR_F32, IR_MAXIMUM, shapes[i].rank, shapes[i].dim, axis);
			reduce_shape(SCALAR_F32, IR_MINIMUM_NAN, shapes[i].rank, shapes[i].dim, axis);
			reduce_shape(SCALAR_I32, IR_MINIMUM, shapes[i].rank, shapes[i].dim, axis);
		}
	static const scalar floats[] = {SCALAR_F16, SCALAR_BF16, SCALAR_F64},
			    ints[] = {SCALAR_I32, SCALAR_U64, SCALAR_I8};
	for (unsigned axis = 0; axis < 2; axis++) {
		const uint32_t *dim = shapes[3].dim;
		for (int i = 0; i < 3; i++) {
			reduce_shape(floats[i], IR_SUM, 2, dim, axis);
			reduce_shape(floats[i], IR_PROD, 2, dim, axis);
			reduce_shape(floats[i], IR_MAXIMUM, 2, dim, axis);
			reduce_shape(floats[i], IR_MINIMUM, 2, dim, axis);
			reduce_shape(floats[i], IR_MAXIMUM_NAN, 2, dim, axis);
			reduce_shape(floats[i], IR_MINIMUM_NAN, 2, dim, axis);
			reduce_shape(ints[i], IR_SUM, 2, dim, axis);
			reduce_shape(ints[i], IR_MAXIMUM, 2, dim, axis);
			reduce_shape(ints[i], IR_XOR_SUM, 2, dim, axis);
		}
		reduce_shape(SCALAR_BOOL, IR_ALL, 2, shapes[4].dim, axis);
		reduce_shape(SCALAR_BOOL, IR_SOME, 2, shapes[3].dim, axis);
		reduce_shape(SCALAR_BOOL, IR_MAXIMUM, 2, shapes[4].dim, axis);
	}
}

/* The sum of a long row of one sign stays within a few units of the exact one. */
static void long_sum(void **state)
{
	(void)state;
	fixture t;
	enum { N = 1 << 20 };
	begin(&t);
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	ir_value *y = parameter(&t, "y", SCALAR_F32, IR_POINTER), *x = parameter(&t, "x", SCALAR_F32, IR_CONST_POINTER);
	ir_value *v = load_tile(&t, x, tile(SCALAR_F32, N));
	ir_type result = ir_scalar_type(SCALAR_F32);
	ir_op *o = ir_build(&t.b, IR_REDUCE, 1, &v, 1, &result, 0);
	store(&t, y, o->results[0], NULL);
	compile(&t);
	float *in = malloc(N * 4), out = 0;
	double want = 0;
	uint64_t seed = 1;
	for (int i = 0; i < N; i++) want += in[i] = (float)(random_bits(&seed) % 100000) / 1000;
	uint64_t args[] = {address(&out), address(in)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	assert_true(fabs(out - want) < 1e-6 * want);
	free(in);
	end(&t);
}

/* argmax with ties and nans, along each axis of [8, 16, 2]; and affine maps composed in index order. */
static void custom_reductions(void **state)
{
	(void)state;
	for (unsigned axis = 0; axis < 3; axis++) {
		fixture t;
		static const uint32_t dim[] = {8, 16, 2};
		static const char *const results[] = {"[16,2]", "[8,2]", "[8,16]"};
		begin(&t);
		if (setjmp(t.out_of_memory)) fail_msg("out of memory");
		const char *s = arena_printf(&t.arena,
			"func @argmax(%%y: *i32, %%x: *const i32) {\n"
			"  %%r = arange {lo=0} : i32[256]\n"
			"  %%ps = splat %%x : (*const i32)[256]\n"
			"  %%p = ptr_add %%ps, %%r : (*const i32)[256]\n"
			"  %%v = load %%p" LOAD "i32[256]\n"
			"  %%t = reshape %%v : i32[8,16,2]\n"
			"  %%i = reshape %%r : i32[8,16,2]\n"
			"  %%m, %%k = reduce %%t, %%i {axis=%u combine=custom} : i32%s, i32%s "
			"(%%a: i32, %%b: i32, %%c: i32, %%d: i32) {\n"
			"    %%q = ge %%a, %%c : bool\n"
			"    %%w = if %%q : i32 {\n      yield %%b\n    } else {\n      yield %%d\n    }\n"
			"    %%e = max %%a, %%c : i32\n"
			"    yield %%e, %%w\n"
			"  }\n"
			"  %%f = reshape %%k : i32[%u]\n"
			"  %%rr = arange {lo=0} : i32[%u]\n"
			"  %%ys = splat %%y : (*i32)[%u]\n"
			"  %%py = ptr_add %%ys, %%rr : (*i32)[%u]\n"
			"  store %%py, %%f" STORE "  return\n}\n",
			axis, results[axis], results[axis], 256 / dim[axis], 256 / dim[axis], 256 / dim[axis],
			256 / dim[axis]);
		fixture inner;
		compile_text(&inner, s);
		int32_t x[256], y[256];
		uint64_t seed = axis, stride = axis == 0 ? 32 : axis == 1 ? 2 : 1;
		for (int i = 0; i < 256; i++) x[i] = (int32_t)(random_bits(&seed) % 5);
		uint64_t args[] = {address(y), address(x)};
		assert_int_equal(run(&inner, args, 1, 1, 1), CPU_OK);
		for (uint32_t i = 0; i < 256 / dim[axis]; i++) {
			uint64_t first = i / stride * stride * dim[axis] + i % stride, best = first;
			for (uint32_t k = 1; k < dim[axis]; k++)
				if (x[first + k * stride] > x[best]) best = first + k * stride;
			assert_int_equal(y[i], best);
		}
		end(&inner);
		end(&t);
	}
	fixture t;
	compile_text(&t, "func @compose(%y: *u32, %x: *const u32) {\n"
			 "  %r = arange {lo=0} : i32[32]\n"
			 "  %r2 = arange {lo=32} : i32[32]\n"
			 "  %ps = splat %x : (*const u32)[32]\n"
			 "  %p = ptr_add %ps, %r : (*const u32)[32]\n"
			 "  %q = ptr_add %ps, %r2 : (*const u32)[32]\n"
			 "  %v = load %p" LOAD "u32[32]\n"
			 "  %w = load %q" LOAD "u32[32]\n"
			 "  %m, %k = reduce %v, %w {axis=0 combine=custom} : u32, u32 "
			 "(%a: u32, %b: u32, %c: u32, %d: u32) {\n"
			 "    %e = mul %a, %c : u32\n"
			 "    %f = mul %b, %c : u32\n"
			 "    %g = add %f, %d : u32\n"
			 "    yield %e, %g\n"
			 "  }\n"
			 "  %one = const {value=1} : i32\n"
			 "  %y1 = ptr_add %y, %one : *u32\n"
			 "  store %y, %m" STORE "  store %y1, %k" STORE "  return\n}\n");
	uint32_t x[64], y[2], a, b;
	uint64_t seed = 8;
	for (int i = 0; i < 64; i++) x[i] = (uint32_t)random_bits(&seed) | 1;
	a = x[0], b = x[32];
	for (int i = 1; i < 32; i++) b = b * x[i] + x[32 + i], a *= x[i];
	uint64_t args[] = {address(y), address(x)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	assert_int_equal(y[0], a);
	assert_int_equal(y[1], b);
	end(&t);
}

/* ---- shapes ---- */

static void shapes(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, "func @shapes(%y: *i32, %x: *const i32) {\n"
			 "  %r = arange {lo=0} : i32[32]\n"
			 "  %ps = splat %x : (*const i32)[32]\n"
			 "  %p = ptr_add %ps, %r : (*const i32)[32]\n"
			 "  %v = load %p" LOAD "i32[32]\n"
			 "  %sq = mul %v, %v : i32[32]\n"
			 "  %c = expand_dims %sq {axis=1} : i32[32,1]\n"
			 "  %cb = broadcast %c : i32[32,16]\n"
			 "  %r16 = arange {lo=5} : i32[16]\n"
			 "  %e = expand_dims %r16 {axis=0} : i32[1,16]\n"
			 "  %eb = broadcast %e : i32[32,16]\n"
			 "  %o = add %cb, %eb : i32[32,16]\n" /* o[i,j] = v[i]^2 + 5 + j */
			 "  %t = permute %o {order=[1,0]} : i32[16,32]\n"
			 "  %d = reshape %t : i32[4,4,2,16]\n"
			 "  %u = permute %d {order=[2,0,3,1]} : i32[2,4,16,4]\n"
			 "  %f = reshape %u : i32[512]\n"
			 "  %g = reshape %f : i32[1,512]\n"
			 "  %h = reshape %g : i32[512,1,1]\n"
			 "  %k = add %h, %h : i32[512,1,1]\n"
			 "  %l = reshape %k : i32[512]\n"
			 "  %rr = arange {lo=0} : i32[512]\n"
			 "  %ys = splat %y : (*i32)[512]\n"
			 "  %py = ptr_add %ys, %rr : (*i32)[512]\n"
			 "  store %py, %l" STORE "  return\n}\n");
	int32_t x[32], y[512], flat[512];
	for (int i = 0; i < 32; i++) x[i] = 7 * i - 40;
	for (int j = 0; j < 16; j++)
		for (int i = 0; i < 32; i++) flat[j * 32 + i] = x[i] * x[i] + 5 + j; /* t, then d row-major */
	uint64_t args[] = {address(y), address(x)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (int a = 0, n = 0; a < 2; a++)
		for (int b = 0; b < 4; b++)
			for (int c = 0; c < 16; c++)
				for (int d = 0; d < 4; d++, n++)
					assert_int_equal(y[n], 2 * flat[((b * 4 + d) * 2 + a) * 16 + c]);
	end(&t);
}

/* Bits that change their type, an address read from a table, and pointers carried around a loop. */
static void bitcasts(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, "func @bits(%y: *u32, %h: *u16, %x: *const f32, %table: *const i64, %n: i32, %one: u8) {\n"
			 "  %r = arange {lo=0} : i32[8]\n"
			 "  %xs = splat %x : (*const f32)[8]\n"
			 "  %px = ptr_add %xs, %r : (*const f32)[8]\n"
			 "  %lo = const {value=0} : i32\n  %step = const {value=1} : i32\n"
			 "  %eight = const {value=8} : i32[8]\n  %zero = const {value=0.0} : f32[8]\n"
			 "  %end, %sum = for %lo, %n, %step, %px, %zero" FOR "(*const f32)[8], f32[8] "
			 "(%i: i32, %p: (*const f32)[8], %s: f32[8]) {\n"
			 "    %v = load %p" LOAD "f32[8]\n    %s2 = add %s, %v : f32[8]\n"
			 "    %p2 = ptr_add %p, %eight : (*const f32)[8]\n    yield %p2, %s2\n  }\n"
			 "  %b = bitcast %sum : u32[8]\n"
			 "  %ys = splat %y : (*u32)[8]\n  %py = ptr_add %ys, %r : (*u32)[8]\n  store %py, %b" STORE
			 "  %a = load %table" LOAD "i64\n  %ph = bitcast %a : *const f16\n"
			 "  %phs = splat %ph : (*const f16)[8]\n  %pp = ptr_add %phs, %r : (*const f16)[8]\n"
			 "  %c = load %pp" LOAD "f16[8]\n  %d = bitcast %c : u16[8]\n"
			 "  %hs = splat %h : (*u16)[8]\n  %hh = ptr_add %hs, %r : (*u16)[8]\n  store %hh, %d" STORE
			 "  %back = bitcast %ph : i64\n  %same = eq %back, %a : bool\n"
			 "  assert %same {text=\"the address came back\"}\n"
			 "  %truth = bitcast %one : f8e5m2\n  %wide = convert %truth : f32\n"
			 "  %wb = bitcast %wide : u32\n  %ye = bitcast %y : *u32\n"
			 "  %off = const {value=8} : i32\n  %y8 = ptr_add %ye, %off : *u32\n  store %y8, %wb" STORE
			 "  return\n}\n");
	float x[24], y[9];
	uint16_t halves[8] = {0x3c00, 0xc000, 1, 0x7c00, 0xfbff, 0x8000, 0, 0x1234}, h[8];
	for (int i = 0; i < 24; i++) x[i] = (float)(i * i) / 4;
	uint64_t table = address(halves), args[] = {address(y), address(h), address(x), address(&table), 3, 0x3c};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (int i = 0; i < 8; i++) assert_true(y[i] == x[i] + x[i + 8] + x[i + 16]);
	assert_true(y[8] == 1);
	assert_memory_equal(h, halves, sizeof h);
	end(&t);
}

/* ---- control flow ---- */

/* Counts the trips and sums the values of a loop of the given type. */
static void count_trips(scalar s, int64_t lo, int64_t hi, int64_t step, uint64_t trips)
{
	fixture t;
	begin(&t);
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	const char *n = scalar_name(s);
	const char *source = arena_printf(&t.arena,
		"func @trips(%%y: *u64, %%lo: %s, %%hi: %s, %%step: %s) {\n"
		"  %%zero = const {value=0} : u64\n  %%one = const {value=1} : u64\n"
		"  %%k, %%sum = for %%lo, %%hi, %%step, %%zero, %%zero" FOR "u64, u64 "
		"(%%i: %s, %%a: u64, %%b: u64) {\n"
		"    %%c = add %%a, %%one : u64\n    %%d = convert %%i : u64\n    %%e = add %%b, %%d : u64\n"
		"    yield %%c, %%e\n  }\n"
		"  %%p = ptr_add %%y, %%one : *u64\n  store %%y, %%k" STORE "  store %%p, %%sum" STORE "  return\n}\n",
		n, n, n, n);
	fixture inner;
	compile_text(&inner, source);
	uint64_t y[2] = {77, 77}, sum = 0;
	uint64_t args[] = {address(y), scalar_truncate(s, (uint64_t)lo), scalar_truncate(s, (uint64_t)hi),
		scalar_truncate(s, (uint64_t)step)};
	assert_int_equal(run(&inner, args, 1, 1, 1), CPU_OK);
	for (uint64_t k = 0; k < trips; k++) sum += (uint64_t)lo + k * (uint64_t)step;
	assert_int_equal(y[0], trips);
	assert_int_equal(y[1], sum);
	end(&inner);
	end(&t);
}

static void ranges(void **state)
{
	(void)state;
	count_trips(SCALAR_I32, 0, 10, 3, 4);
	count_trips(SCALAR_I32, 0, 9, 3, 3);
	count_trips(SCALAR_I32, 5, 5, 1, 0);
	count_trips(SCALAR_I32, 5, 4, 1, 0);
	count_trips(SCALAR_I32, 10, 0, -3, 4);
	count_trips(SCALAR_I32, 0, 10, -1, 0);
	count_trips(SCALAR_I32, 0, 10, 0, 0);
	count_trips(SCALAR_I32, INT32_MAX - 7, INT32_MAX, 4, 2);
	count_trips(SCALAR_I32, INT32_MIN, INT32_MAX, INT32_MAX, 3);
	count_trips(SCALAR_I32, INT32_MAX, INT32_MIN, INT32_MIN, 2);
	count_trips(SCALAR_I64, INT64_MAX - 1, INT64_MIN, INT64_MIN, 2);
	count_trips(SCALAR_I64, -5, 5, 5, 2);
	count_trips(SCALAR_I8, -128, 127, 100, 3);
	count_trips(SCALAR_I8, -128, 127, 1, 255);
	count_trips(SCALAR_U32, 0xfffffff0, 0xffffffff, 0x10, 1);
	count_trips(SCALAR_U64, 3, -1, INT64_MAX, 2);
}

/* Carried tiles that trade places, are read through a permutation, grow from each other, and stay. */
static void carried_tiles(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, "func @carried(%y: *i32, %n: i32) {\n"
			 "  %lo = const {value=0} : i32\n  %one = const {value=1} : i32\n"
			 "  %r = arange {lo=0} : i32[16]\n"
			 "  %a0 = reshape %r : i32[4,4]\n"
			 "  %b0 = const {value=1} : i32[4,4]\n"
			 "  %c0 = const {value=3} : i32[4,4]\n"
			 "  %a, %b, %c, %d, %s = for %lo, %n, %one, %a0, %b0, %c0, %a0, %lo" FOR
			 "i32[4,4], i32[4,4], i32[4,4], i32[4,4], i32 "
			 "(%i: i32, %a1: i32[4,4], %b1: i32[4,4], %c1: i32[4,4], %d1: i32[4,4], %s1: i32) {\n"
			 "    %is = splat %i : i32[4,4]\n"
			 "    %t = permute %a1 {order=[1,0]} : i32[4,4]\n"
			 "    %a2 = add %b1, %is : i32[4,4]\n" /* a' = b + i */
			 "    %b2 = sub %t, %c1 : i32[4,4]\n"  /* b' = transpose(a) - c */
			 "    %c2 = add %c1, %c1 : i32[4,4]\n" /* c' = 2c, in place */
			 "    %sum = reduce %b1 {axis=0 combine=sum} : i32[4]\n"
			 "    %ss = reduce %sum {axis=0 combine=sum} : i32\n"
			 "    %s2 = add %s1, %ss : i32\n"
			 "    yield %a2, %b2, %c2, %d1, %s2\n  }\n"
			 "  %16 = const {value=16} : i32\n"
			 "  %f = reshape %a : i32[16]\n  %g = reshape %b : i32[16]\n  %h = reshape %c : i32[16]\n"
			 "  %k = reshape %d : i32[16]\n"
			 "  %y1 = ptr_add %y, %16 : *i32\n  %y2 = ptr_add %y1, %16 : *i32\n"
			 "  %y3 = ptr_add %y2, %16 : *i32\n  %y4 = ptr_add %y3, %16 : *i32\n"
			 "  %p0 = splat %y : (*i32)[16]\n  %q0 = ptr_add %p0, %r : (*i32)[16]\n  store %q0, %f" STORE
			 "  %p1 = splat %y1 : (*i32)[16]\n  %q1 = ptr_add %p1, %r : (*i32)[16]\n  store %q1, %g" STORE
			 "  %p2 = splat %y2 : (*i32)[16]\n  %q2 = ptr_add %p2, %r : (*i32)[16]\n  store %q2, %h" STORE
			 "  %p3 = splat %y3 : (*i32)[16]\n  %q3 = ptr_add %p3, %r : (*i32)[16]\n  store %q3, %k" STORE
			 "  store %y4, %s" STORE "  return\n}\n");
	for (int n = 0; n < 6; n++) {
		int32_t y[66], a[16], b[16], c[16], a2[16], sum = 0;
		for (int k = 0; k < 16; k++) a[k] = k, b[k] = 1, c[k] = 3;
		for (int i = 0; i < n; i++) {
			for (int k = 0; k < 16; k++) sum += b[k];
			for (int k = 0; k < 16; k++) a2[k] = b[k] + i;
			for (int k = 0; k < 16; k++) b[k] = a[k % 4 * 4 + k / 4] - c[k];
			for (int k = 0; k < 16; k++) a[k] = a2[k], c[k] *= 2;
		}
		y[65] = 99;
		uint64_t args[] = {address(y), (uint64_t)n};
		assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
		assert_memory_equal(y, a, sizeof a);
		assert_memory_equal(y + 16, b, sizeof b);
		assert_memory_equal(y + 32, c, sizeof c);
		for (int k = 0; k < 16; k++) assert_int_equal(y[48 + k], k);
		assert_int_equal(y[64], sum);
		assert_int_equal(y[65], 99);
	}
	end(&t);
}

/* while: Collatz steps of a scalar, and a tile that is halved until its largest element is small; if on tiles. */
static void while_and_if(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t,
		"func @loops(%y: *i32, %n: i32) {\n"
		"  %zero = const {value=0} : i32\n  %one = const {value=1} : i32\n"
		"  %two = const {value=2} : i32\n  %three = const {value=3} : i32\n"
		"  %m, %steps = while %n, %zero : i32, i32 (%a: i32, %s: i32) {\n"
		"    %c = ne %a, %one : bool\n    condition %c, %a, %s\n"
		"  } do (%b: i32, %u: i32) {\n"
		"    %odd = and %b, %one : i32\n    %q = ne %odd, %zero : bool\n"
		"    %next = if %q : i32 {\n      %w = mul %b, %three : i32\n      %x = add %w, %one : i32\n"
		"      yield %x\n    } else {\n      %v = div %b, %two : i32\n      yield %v\n    }\n"
		"    %u2 = add %u, %one : i32\n    yield %next, %u2\n  }\n"
		"  store %y, %steps" STORE "  %r = arange {lo=100} : i32[8]\n  %sixteen = const {value=16} : i32\n"
		"  %ns = splat %n : i32[8]\n  %start = mul %r, %ns : i32[8]\n"
		"  %big, %k = while %start, %zero : i32[8], i32 (%a.1: i32[8], %s.1: i32) {\n"
		"    %mx = reduce %a.1 {axis=0 combine=max} : i32\n    %c.1 = gt %mx, %sixteen : bool\n"
		"    condition %c.1, %a.1, %s.1\n"
		"  } do (%b.1: i32[8], %u.1: i32) {\n"
		"    %twos = splat %two : i32[8]\n    %h = div %b.1, %twos : i32[8]\n"
		"    %odd.1 = and %u.1, %one : i32\n    %q.1 = ne %odd.1, %zero : bool\n"
		"    %pick = if %q.1 : i32[8] {\n      %ones = splat %one : i32[8]\n"
		"      %h2 = add %h, %ones : i32[8]\n      yield %h2\n    } else {\n      yield %h\n    }\n"
		"    %u3 = add %u.1, %one : i32\n    yield %pick, %u3\n  }\n"
		"  %y1 = ptr_add %y, %one : *i32\n  store %y1, %k" STORE
		"  %off = arange {lo=2} : i32[8]\n  %ys = splat %y : (*i32)[8]\n"
		"  %py = ptr_add %ys, %off : (*i32)[8]\n  store %py, %big" STORE "  return\n}\n");
	for (int n = 1; n < 40; n += 13) {
		int32_t y[10], steps = 0, k = 0, tile[8];
		for (int64_t a = n; a != 1; steps++) a = a % 2 ? 3 * a + 1 : a / 2;
		for (int i = 0; i < 8; i++) tile[i] = (100 + i) * n;
		for (; tile[7] > 16; k++)
			for (int i = 0; i < 8; i++) tile[i] = tile[i] / 2 + k % 2;
		uint64_t args[] = {address(y), (uint64_t)n};
		assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
		assert_int_equal(y[0], steps);
		assert_int_equal(y[1], k);
		assert_memory_equal(y + 2, tile, sizeof tile);
	}
	end(&t);
}

/* The first result of the if is used by nobody, yet both arms write it: not over what the second one needs. */
static void unused_result(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, "func @unused(%y: *i32, %n: i32) {\n"
			 "  %r = arange {lo=20} : i32[8]\n  %at = arange {lo=0} : i32[8]\n"
			 "  %zero = const {value=0} : i32\n  %c = gt %n, %zero : bool\n"
			 "  %u, %v = if %c : i32[8], i32[8] {\n"
			 "    %ns = splat %n : i32[8]\n    %w = div %r, %ns : i32[8]\n"
			 "    %x = add %w, %r : i32[8]\n    yield %x, %w\n"
			 "  } else {\n    yield %r, %r\n  }\n"
			 "  %ys = splat %y : (*i32)[8]\n  %py = ptr_add %ys, %at : (*i32)[8]\n"
			 "  store %py, %v" STORE "  return\n}\n");
	int32_t y[8];
	uint64_t args[] = {address(y), 3};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (int i = 0; i < 8; i++) assert_int_equal(y[i], (20 + i) / 3);
	end(&t);
}

/* Tiles that slide: addresses up, offsets down, and what is left of them after the loop. */
static void sliding_tiles(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t,
		"func @sliding(%y: *i32, %x: *const i32, %n: i32) {\n"
		"  %lo = const {value=0} : i32\n  %one = const {value=1} : i32\n"
		"  %r = arange {lo=0} : i32[8]\n  %down = arange {lo=100} : i32[8]\n"
		"  %step = const {value=8} : i32[8]\n  %sum0 = const {value=0} : i32[8]\n"
		"  %xs = splat %x : (*const i32)[8]\n  %p0 = ptr_add %xs, %r : (*const i32)[8]\n"
		"  %p, %d, %sum = for %lo, %n, %one, %p0, %down, %sum0" FOR
		"(*const i32)[8], i32[8], i32[8] (%i: i32, %p1: (*const i32)[8], %d1: i32[8], %s: i32[8]) {\n"
		"    %v = load %p1" LOAD "i32[8]\n    %q = mul %v, %d1 : i32[8]\n"
		"    %s2 = add %s, %q : i32[8]\n    %p2 = ptr_add %p1, %step : (*const i32)[8]\n"
		"    %is = splat %i : i32[8]\n    %d2 = sub %d1, %is : i32[8]\n"
		"    yield %p2, %d2, %s2\n  }\n"
		"  %last = load %p" LOAD "i32[8]\n  %a = add %sum, %last : i32[8]\n  %b = sub %a, %d : i32[8]\n"
		"  %ys = splat %y : (*i32)[8]\n  %py = ptr_add %ys, %r : (*i32)[8]\n"
		"  store %py, %b" STORE "  return\n}\n");
	assert_true(t.out.scratch_bytes <= 64); /* the sum alone */
	int32_t x[48], y[8];
	for (int i = 0; i < 48; i++) x[i] = i * i - 300;
	for (int n = 0; n < 6; n++) {
		uint64_t args[] = {address(y), address(x), (uint64_t)n};
		assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
		for (int k = 0; k < 8; k++) {
			int32_t sum = 0, d = 100 + k;
			for (int i = 0; i < n; i++) sum += x[8 * i + k] * d, d -= i;
			assert_int_equal(y[k], sum + x[8 * n + k] - d);
		}
	}
	end(&t);
	/* what slides was loaded before the loop, which writes there */
	compile_text(&t, "func @loaded(%y: *i32, %n: i32) {\n"
			 "  %lo = const {value=0} : i32\n  %one = const {value=1} : i32\n"
			 "  %r = arange {lo=0} : i32[8]\n  %ys = splat %y : (*i32)[8]\n"
			 "  %py = ptr_add %ys, %r : (*i32)[8]\n  %v0 = load %py" LOAD "i32[8]\n"
			 "  %v = for %lo, %n, %one, %v0" FOR "i32[8] (%i: i32, %v1: i32[8]) {\n"
			 "    %w = mul %v1, %v1 : i32[8]\n    store %py, %w" STORE
			 "    %ones = splat %one : i32[8]\n    %v2 = add %ones, %v1 : i32[8]\n"
			 "    yield %v2\n  }\n  return\n}\n");
	for (int k = 0; k < 8; k++) y[k] = k - 3;
	uint64_t args[] = {address(y), 4};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (int k = 0; k < 8; k++) assert_int_equal(y[k], (k - 3 + 3) * (k - 3 + 3));
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(vector_add), cmocka_unit_test(masks),
		cmocka_unit_test(overlapping), cmocka_unit_test(softmax), cmocka_unit_test(reductions),
		cmocka_unit_test(long_sum), cmocka_unit_test(custom_reductions), cmocka_unit_test(shapes),
		cmocka_unit_test(bitcasts), cmocka_unit_test(ranges), cmocka_unit_test(carried_tiles),
		cmocka_unit_test(while_and_if), cmocka_unit_test(unused_result), cmocka_unit_test(sliding_tiles)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
