/* Atomics and tensors: every kind on every type, alone and with a thousand programs at once; locks; orders; accesses
 * that hang over the edges of an array.  Numbers are small integers or given bit patterns, so results compare exactly.
 */
#include "device_test.h"

typedef struct buffer {
	void *data; /* in and out */
	size_t bytes;
} buffer;

enum { MAX_BUFFERS = 6 };

/* Runs kernel `k` on the buffers and n; each comes back with what the kernel left. False after a message. */
static bool run(suite *s, const char *name, const char *text, buffer *b, int count, int n)
{
	blk_module *module = NULL;
	blk_kernel *kernel;
	blk_buffer *device[MAX_BUFFERS] = {0};
	blk_arg args[MAX_BUFFERS + 1];
	unsigned char guard[SUITE_GUARD], after[SUITE_GUARD];
	memset(guard, 0xa5, sizeof guard);
	bool good = blk_module_source(s->device, name, text, NULL, 0, &module) == BLK_OK &&
		    blk_kernel_find(module, "k", &kernel) == BLK_OK;
	for (int i = 0; good && i < count; i++) {
		good = blk_buffer_create(s->device, b[i].bytes + SUITE_GUARD, &device[i]) == BLK_OK &&
		       blk_buffer_write(device[i], 0, b[i].data, b[i].bytes) == BLK_OK &&
		       blk_buffer_write(device[i], b[i].bytes, guard, sizeof guard) == BLK_OK;
		args[i] = blk_buf(device[i]);
	}
	args[count] = blk_i32(n);
	good = good && blk_launch(kernel, NULL, NULL, args, (size_t)count + 1) == BLK_OK &&
	       blk_device_sync(s->device) == BLK_OK;
	for (int i = 0; good && i < count; i++)
		good = blk_buffer_read(device[i], 0, b[i].data, b[i].bytes) == BLK_OK &&
		       blk_buffer_read(device[i], b[i].bytes, after, sizeof after) == BLK_OK;
	if (!good) printf("%s: %s\n%s\n", name, blk_error(), text);
	if (good && memcmp(guard, after, sizeof guard) != 0) {
		printf("%s: wrote behind the end\n%s\n", name, text);
		good = false;
	}
	for (int i = 0; i < count; i++) blk_buffer_free(device[i]);
	blk_module_close(module);
	return good;
}

/* ---- every kind on every type ---- */

enum { ADD, MAX, MIN, AND, OR, XOR, XCHG, CAS, KINDS };
static const char *const kind_names[] = {"add", "max", "min", "and", "or", "xor", "xchg", "cas"};

static bool exists(int kind, scalar t)
{
	bool wide = scalar_bytes(t) >= 4;
	if (t == SCALAR_BOOL || scalar_is_fp8(t)) return false;
	if (kind == ADD) return wide || scalar_is_float(t);
	if (kind == AND || kind == OR || kind == XOR) return !scalar_is_float(t);
	return wide;
}

static bool is_nan(scalar t, uint64_t v)
{
	return scalar_is_float(t) && isnan(scalar_to_double(t, v));
}

/* -0 counts as less than +0. */
static bool less(scalar t, uint64_t a, uint64_t b)
{
	if (!scalar_is_float(t)) {
		uint64_t x = scalar_sign_extend(t, a), y = scalar_sign_extend(t, b);
		return scalar_is_signed(t) ? (int64_t)x < (int64_t)y : x < y;
	}
	double x = scalar_to_double(t, a), y = scalar_to_double(t, b);
	return x < y || (x == y && signbit(x) && !signbit(y));
}

static uint64_t combine(int kind, scalar t, uint64_t old, uint64_t compare, uint64_t v)
{
	switch (kind) {
	case ADD:
		if (!scalar_is_float(t)) return scalar_truncate(t, old + v);
		return scalar_from_double(t, scalar_to_double(t, old) + scalar_to_double(t, v));
	case MAX:
	case MIN:
		if (is_nan(t, v)) return old;
		if (is_nan(t, old)) return v;
		return less(t, old, v) == (kind == MAX) ? v : old;
	case AND: return old & v;
	case OR: return old | v;
	case XOR: return old ^ v;
	case XCHG: return v;
	default: return old == compare ? v : old;
	}
}

/* Integers of all sizes; floats that add exactly, and for the others also zeros, infinities and nans of both signs. */
static uint64_t operand(int kind, scalar t, uint64_t *state)
{
	static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 1.5, -2.0};
	uint64_t r = suite_random(state);
	if (!scalar_is_float(t)) return scalar_truncate(t, r % 3 ? r >> 32 : (uint64_t)((int64_t)(r >> 40) % 5 - 2));
	if (kind != ADD && r % 2) return scalar_from_double(t, special[r >> 8 & 7]);
	return scalar_from_double(t, (double)((int)(r >> 8 & 31) - 16));
}

typedef struct form {
	int elements, warps; /* 0 elements: a scalar */
	bool masked, used;
} form;

static void run_kind(suite *s, int kind, scalar t, form f)
{
	char name[96], text[1024], where[32] = "", mask[48] = "", compare[32] = "", old[64] = "";
	const char *type = scalar_name(t), *k = kind_names[kind];
	snprintf(name, sizeof name, "%s.%s.%d.warps%d%s%s", k, type, f.elements, f.warps, f.masked ? ".masked" : "",
		f.used ? "" : ".unused");
	if (!suite_wants(s, name)) return;
	int count = f.elements ? f.elements : 1, n = f.masked ? count * 2 / 3 : count;
	if (f.elements) snprintf(where, sizeof where, " + arange(0, %d)", count);
	if (f.masked) snprintf(mask, sizeof mask, ", mask = %s < n", f.elements ? where + 3 : "0");
	if (kind == CAS) snprintf(compare, sizeof compare, "load(c%s), ", where);
	if (f.used) snprintf(old, sizeof old, "store(o%s, ", where);
	snprintf(text, sizeof text,
		"kernel k(p: *%s, o: *%s, v: *const %s, c: *const %s, n: i32) grid(1) options(num_warps = %d) {\n"
		"%satomic_%s(p%s, %sload(v%s)%s)%s;\n}\n",
		type, type, type, type, f.warps, old, k, where, compare, where, mask, f.used ? ")" : "");
	size_t bytes = (size_t)count * scalar_bytes(t);
	buffer b[4];
	for (int i = 0; i < 4; i++) b[i] = (buffer){suite_alloc(bytes), bytes};
	uint64_t *before = suite_alloc((size_t)count * sizeof *before), state = (uint64_t)(kind * 100 + t);
	for (int i = 0; i < count; i++) {
		before[i] = operand(kind, t, &state);
		container_put(t, b[0].data, (size_t)i, before[i]);
		container_put(t, b[1].data, (size_t)i, scalar_from_double(t, 77));
		container_put(t, b[2].data, (size_t)i, operand(kind, t, &state));
		container_put(t, b[3].data, (size_t)i, i % 3 ? before[i] : operand(kind, t, &state));
	}
	bool good = run(s, name, text, b, 4, n);
	int wrong = 0;
	for (int i = 0; good && i < count; i++) {
		uint64_t v = container_at(t, b[2].data, (size_t)i), c = container_at(t, b[3].data, (size_t)i);
		uint64_t want = i < n ? combine(kind, t, before[i], c, v) : before[i];
		uint64_t returned = !f.used ? scalar_from_double(t, 77) : i < n ? before[i] : 0;
		uint64_t have = container_at(t, b[0].data, (size_t)i), was = container_at(t, b[1].data, (size_t)i);
		bool same = have == want || (is_nan(t, have) && is_nan(t, want));
		if ((!same || was != returned) && wrong++ < 3)
			printf("%s: element %d, old %llx, v %llx: is %llx, expected %llx; returned %llx, expected "
			       "%llx\n",
				name, i, (unsigned long long)before[i], (unsigned long long)v, (unsigned long long)have,
				(unsigned long long)want, (unsigned long long)was, (unsigned long long)returned);
	}
	suite_verdict(s, good, wrong, text);
	for (int i = 0; i < 4; i++) free(b[i].data);
	free(before);
}

static void run_kinds(suite *s)
{
	static const form forms[] = {{256, 4, false, true}, {256, 4, true, false}, {0, 4, false, true},
		{0, 1, false, false}, {16, 4, true, true}, {32, 1, true, true}, {1024, 8, true, true},
		{0, 8, true, true}, {8, 1, false, true}, {2048, 2, false, false}};
	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned t = 0; t < SCALAR_COUNT; t++)
			for (unsigned f = 0; f < sizeof forms / sizeof forms[0]; f++)
				if (exists(kind, (scalar)t)) run_kind(s, kind, (scalar)t, forms[f]);
}

/* ---- many programs ---- */

/* A thousand programs add: a scalar each, and a tile whose elements meet in seven places. */
static void run_counter(suite *s, scalar t, int warps, const char *sem)
{
	char name[64], text[1024];
	const char *type = scalar_name(t);
	snprintf(name, sizeof name, "counter.%s.warps%d.%s", type, warps, sem);
	if (!suite_wants(s, name)) return;
	int programs = t == SCALAR_BF16 ? 4 : t == SCALAR_F16 ? 100 : 1000; /* exact up to 256 and 2048 */
	snprintf(text, sizeof text,
		"kernel k(p: *%s, n: i32) grid(n) options(num_warps = %d) {\n"
		"atomic_add(p, 1, sem = \"%s\");\n"
		"atomic_add(p + 1 + arange(0, 64) %% 7, 1, mask = arange(0, 64) < 63, sem = \"%s\", scope = \"sys\");\n"
		"}\n",
		type, warps, sem, sem);
	unsigned char data[8 * 8] = {0};
	buffer b = {data, 8 * scalar_bytes(t)};
	bool good = run(s, name, text, &b, 1, programs);
	int wrong = 0;
	for (int i = 0; good && i < 8; i++) {
		double have = scalar_to_double(t, container_at(t, data, (size_t)i)), want = programs * (i ? 9 : 1);
		if (have != want && ++wrong) printf("%s: counter %d is %g, expected %g\n", name, i, have, want);
	}
	suite_verdict(s, good, wrong, text);
}

static void run_histogram(suite *s, int warps)
{
	enum { PROGRAMS = 100, EACH = 256, BINS = 37 };
	char name[64], text[512];
	snprintf(name, sizeof name, "histogram.warps%d", warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(h: *i32, x: *const i32, n: i32) grid(cdiv(n, 256)) options(num_warps = %d) {\n"
		"let i = program_id(0) * 256 + arange(0, 256);\n"
		"atomic_add(h + load(x + i, mask = i < n), 1, mask = i < n, sem = \"relaxed\");\n}\n",
		warps);
	int32_t h[BINS] = {0}, want[BINS] = {0}, *x = suite_alloc(PROGRAMS * EACH * sizeof *x);
	uint64_t state = 5;
	int n = PROGRAMS * EACH - 100;
	for (int i = 0; i < PROGRAMS * EACH; i++) {
		x[i] = (int32_t)(suite_random(&state) % BINS);
		if (i < n) want[x[i]]++;
	}
	buffer b[] = {{h, sizeof h}, {x, PROGRAMS * EACH * sizeof *x}};
	bool good = run(s, name, text, b, 2, n);
	int wrong = 0;
	for (int i = 0; good && i < BINS; i++) wrong += h[i] != want[i];
	suite_verdict(s, good, wrong, text);
	free(x);
}

/* Whole programs on buffers of i32 that start at 0: buffer 0 has `nout` elements, each must become want(i, n). */
typedef struct program {
	const char *name, *text;
	int nout, nother, n;
	int64_t (*want)(int i, int n); /* of buffer 0, as i32 bits */
} program;

static int64_t one(int i, int n)
{
	(void)i, (void)n;
	return 1;
}
static int64_t all_programs(int i, int n)
{
	(void)i;
	return n;
}
static int64_t sixteen(int i, int n)
{
	(void)i, (void)n;
	return 16;
}
static int64_t chain(int i, int n) /* x -> 3 x + t in order of the tickets */
{
	uint32_t x = 0;
	for (int t = 0; t < n; t++) x = 3 * x + (uint32_t)t + (uint32_t)i;
	return (int64_t)(int32_t)x;
}
static int64_t by_group(int i, int n) /* 7 locks, 256 elements each */
{
	int group = i / 256, members = n / 7 + (group < n % 7);
	return members * (i % 256);
}
static int64_t first_then_second(int i, int n)
{
	(void)n;
	return i + 5;
}
static int64_t bytes_set(int i, int n)
{
	(void)i, (void)n;
	return -1;
}

#define LOCK "while atomic_cas(w, 0, 1, sem = \"acquire\") != 0 { }\n"
#define UNLOCK "atomic_xchg(w, 0, sem = \"release\");\n"
/* WARPS is set by the runner: 1, 2, 4 and 8. */
static const program programs[] = {
	{"ticket", "let t = atomic_add(w, 1);\natomic_add(z + t, 1);\n", 1000, 1, 1000, one},
	{"ticket_tile", "let t = atomic_add(w + zeros([64], i32), 1);\natomic_add(z + t, 1, sem = \"relaxed\");\n",
		6400, 1, 100, one},
	{"ticket_few", /* fewer elements than threads */
		"let t = atomic_add(w + zeros([4], i32), 1);\natomic_add(z + t, 1);\n", 4 * 300, 1, 300, one},
	{"ticket_copies", /* every thread that holds a copy of the old value has the same */
		"let t = atomic_add(w + zeros([8], i32), 1);\n"
		"let j = arange(0, 16);\n"
		"atomic_add(z + (t[:, None] + 0 * j[None, :]), 1);\n",
		800, 1, 100, sixteen},
	{"ticket_scalar_copies",
		"let t = atomic_add(w, 1);\nstore(z + t * 256 + arange(0, 256), load(z + t * 256 + arange(0, 256)) + "
		"1);\n",
		256 * 100, 1, 100, one},
	{"spin_lock", "let p = z + arange(0, 256);\n" LOCK "store(p, load(p) + 1);\n" UNLOCK, 256, 1, 500,
		all_programs},
	{"spin_lock_acq_rel",
		"let p = z + arange(0, 256);\nwhile atomic_cas(w, 0, 1) == 1 { }\nstore(p, load(p) + 1);\n"
		"atomic_xchg(w, 0);\n",
		256, 1, 500, all_programs},
	{"spin_lock_shuffled", /* the next holder's threads meet other elements */
		"let i = arange(0, 256);\nlet p = z + (i ^ program_id(0)) % 256;\n" LOCK
		"store(p, load(p) + 1);\n" UNLOCK,
		256, 1, 500, all_programs},
	{"spin_lock_scalar", LOCK "store(z, load(z) + 1);\n" UNLOCK, 1, 1, 500, all_programs},
	{"spin_lock_xchg",
		"let p = z + arange(0, 256);\nwhile atomic_xchg(w, 1) != 0 { }\nstore(p, load(p) + 1);\n" UNLOCK, 256,
		1, 500, all_programs},
	{"spin_lock_groups",
		"let g = program_id(0) % 7;\nlet i = arange(0, 256);\nlet p = z + g * 256 + i;\n"
		"while atomic_cas(w + g, 0, 1, sem = \"acquire\") != 0 { }\n"
		"store(p, load(p) + i);\natomic_xchg(w + g, 0, sem = \"release\");\n",
		7 * 256, 7, 500, by_group},
	{"spin_lock_first", /* the first one in stores, the others add: as layer norm's backward pass does */
		"let p = z + arange(0, 256);\n" LOCK "if load(w + 1) == 0 { store(p, 1); atomic_xchg(w + 1, 1); } "
		"else { store(p, load(p) + 1); }\n" UNLOCK,
		256, 2, 500, all_programs},
	{"in_order", /* each waits for its ticket's turn */
		"let p = z + arange(0, 64);\nlet t = atomic_add(w, 1, sem = \"relaxed\");\n"
		"while atomic_add(w + 1, 0, sem = \"acquire\") != t { }\n"
		"store(p, load(p) * 3 + t + arange(0, 64));\natomic_xchg(w + 1, t + 1, sem = \"release\");\n",
		64, 2, 300, chain},
	{"message", /* what was stored before a release is there after the acquire; other threads store and load */
		"let t = atomic_add(w, 1);\nlet i = arange(0, 512);\n"
		"if t == 0 { store(w + 64 + i, i + 5); atomic_xchg(w + 1, 1, sem = \"release\"); }\n"
		"if t == 1 { while atomic_or(w + 1, 0, sem = \"acquire\") == 0 { }\n"
		"store(z + 511 - i, load(w + 64 + 511 - i)); }\n",
		512, 64 + 512, 2, first_then_second},
	{"message_tile", /* flags in a tile, one a row */
		"let t = atomic_add(w, 1);\nlet i = arange(0, 512);\nlet f = w + 1 + arange(0, 4);\n"
		"if t == 0 { store(w + 64 + i, i + 5); atomic_xchg(f, 1, sem = \"release\"); }\n"
		"if t == 1 { while min(atomic_or(f, 0, sem = \"acquire\"), axis = 0) == 0 { }\n"
		"store(z + 511 - i, load(w + 64 + 511 - i)); }\n",
		512, 64 + 512, 2, first_then_second},
	{"program_order", /* stores, atomics and loads of one program meet in other threads */
		"let i = arange(0, 512);\nstore(w + i, i);\natomic_add(w + 511 - i, 5);\n"
		"store(z + i, load(w + i));\n",
		512, 512, 1, first_then_second},
	{"program_order_relaxed",
		"let i = arange(0, 512);\nstore(w + i, 2 * i, mask = i < 512);\n"
		"let a = atomic_xchg(w + 511 - i, 511 - i, sem = \"relaxed\");\n"
		"atomic_add(w + (i + 7) % 512, 5, sem = \"relaxed\");\nstore(z + 511 - i, load(w + 511 - i));\n",
		512, 512, 1, first_then_second},
	{"narrow", /* every bit of every byte by its own program */
		"let p = z.to(i64, bitcast = true).to(*u8, bitcast = true);\nlet t = program_id(0);\n"
		"atomic_or(p + t / 8, (1 << t % 8).to(u8), sem = \"relaxed\");\n",
		25, 1, 800, bytes_set},
	{"loop_of_atomics", "for i in range(4) { atomic_add(z + arange(0, 128), 4, sem = \"relaxed\"); }\n", 128, 1, 1,
		sixteen},
};

static void run_program(suite *s, const program *p, int warps)
{
	char name[96], text[2048];
	snprintf(name, sizeof name, "%s.warps%d", p->name, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text, "kernel k(z: *i32, w: *i32, n: i32) grid(n) options(num_warps = %d) {\n%s}\n",
		warps, p->text);
	int32_t *z = suite_alloc((size_t)p->nout * 4), *w = suite_alloc((size_t)p->nother * 4);
	buffer b[] = {{z, (size_t)p->nout * 4}, {w, (size_t)p->nother * 4}};
	bool good = run(s, name, text, b, 2, p->n);
	int wrong = 0;
	for (int i = 0; good && i < p->nout; i++)
		if (z[i] != p->want(i, p->n) && wrong++ < 4)
			printf("%s: element %d is %d, expected %lld\n", name, i, z[i], (long long)p->want(i, p->n));
	suite_verdict(s, good, wrong, text);
	free(z);
	free(w);
}

/* ---- tensors ---- */

/* f32 in and out.  The reference fills `want`, which starts as the output does: 1000 + i. */
typedef struct tensor_case {
	const char *name, *text;
	int nout, nin, n;
	void (*want)(float *z, const float *x, int n);
} tensor_case;
#define WANT(name) static void name(float *z, const float *x, int n)

static float at2(const float *x, int i, int j, int rows, int columns, int row_stride, int column_stride)
{
	return i < 0 || j < 0 || i >= rows || j >= columns ? 0 : x[i * row_stride + j * column_stride];
}

WANT(w_shifted) /* a 16 x 32 block of a 20 x 37 array at every corner, the middle, and far away */
{
	static const int corner[][2] = {{0, 0}, {-5, -7}, {10, 20}, {-16, 0}, {0, 37}, {3, 4}, {-2000000000, 5}};
	(void)n;
	for (int c = 0; c < 7; c++)
		for (int i = 0; i < 16; i++)
			for (int j = 0; j < 32; j++)
				z[c * 512 + i * 32 + j] = at2(x, corner[c][0] + i, corner[c][1] + j, 20, 37, 37, 1);
}
WANT(w_stored) /* the same blocks, stored over 20 x 37 */
{
	(void)n;
	for (int i = 0; i < 20; i++)
		for (int j = 0; j < 37; j++) {
			if (i < 11 && j < 25) z[i * 37 + j] = x[(i + 5) * 32 + j + 7];
			if (i >= 10 && j >= 20) z[i * 37 + j] = x[(i - 10) * 32 + j - 20];
		}
}
WANT(w_added)
{
	(void)n;
	for (int i = 0; i < 20; i++)
		for (int j = 0; j < 37; j++)
			if (i < 11 && j < 25) z[i * 37 + j] += 50 * x[(i + 5) * 32 + j + 7];
}
WANT(w_transposed) /* strides [1, 23]: column-major; rows beyond are there in memory but outside */
{
	(void)n;
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 32; j++) z[i * 32 + j] = at2(x, i - 3, j, 20, 29, 1, 23);
}
WANT(w_reversed) /* a negative and a wide stride */
{
	(void)n;
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 16; j++) z[i * 16 + j] = i < 6 && j < 11 ? x[100 - 20 * i + 3 * j] : 0;
}
WANT(w_row_sums) /* 37 x 100, blocks of 16 x 32 */
{
	(void)n;
	for (int i = 0; i < 37; i++) {
		z[i] = 0;
		for (int j = 0; j < 100; j++) z[i] += x[i * 100 + j];
	}
}
WANT(w_copy)
{
	for (int i = 0; i < n; i++) z[i] = x[i];
}
WANT(w_four) /* [3, 5, 7, 9] in blocks of [2, 4, 8, 16] */
{
	(void)n;
	for (int i = 0; i < 3 * 5 * 7 * 9; i++) z[i] = 2 * x[i];
}
WANT(w_repeated) /* stride 0: one row for all */
{
	(void)n;
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 16; j++) z[i * 16 + j] = i < 5 && j < 13 ? x[j] : 0;
}
WANT(w_empty)
{
	(void)n;
	for (int i = 0; i < 64; i++) z[i] = 0;
	(void)x;
}

static const tensor_case tensors[] = {
	{"load",
		"let A = tensor(x, shape = [20, n]);\nlet C = tensor(z, [7, 512]);\nlet c = program_id(0);\n"
		"let i = c == 1 ? -5 : c == 2 ? 10 : c == 3 ? -16 : c == 5 ? 3 : c == 6 ? -2000000000 : 0;\n"
		"let j = c == 1 ? -7 : c == 2 ? 20 : c == 4 ? 37 : c == 5 ? 4 : c == 6 ? 5 : 0;\n"
		"C.store([c, 0], reshape(A.load([i, j], [16, 32]), [1, 512]));\n",
		7 * 512, 20 * 37, 37, w_shifted},
	{"store",
		"let C = tensor(z, [20, n]);\nlet X = tensor(x, [16, 32]);\nlet v = X.load([0, 0], [16, 32]);\n"
		"if program_id(0) == 0 { C.store([-5, -7], v); C.store([10, 20], v); }\n"
		"C.store([20, 0], v);\nC.store([0, -32], v);\n",
		20 * 37, 512, 37, w_stored},
	{"atomic_add",
		"let C = tensor(z, [20, n]);\nlet X = tensor(x, [16, 32]);\nlet v = X.load([0, 0], [16, 32]);\n"
		"if program_id(0) < 50 { C.atomic_add([-5, -7], v); }\n",
		20 * 37, 512, 37, w_added},
	{"column_major",
		"let A = tensor(x, [20, 29], strides = [1, n]);\nlet C = tensor(z, [32, 32]);\n"
		"if program_id(0) == 0 { C.store([0, 0], A.load([-3, 0], [32, 32])); }\n",
		1024, 23 * 29, 23, w_transposed},
	{"strides",
		"let A = tensor(x + 100, [n, 11], strides = [-20, 3]);\nlet C = tensor(z, [8, 16]);\n"
		"if program_id(0) == 0 { C.store([0, 0], A.load([0, 0], [8, 16])); }\n",
		128, 256, 6, w_reversed},
	{"stride_0",
		"let A = tensor(x, [5, 13], strides = [0, 1]);\nlet C = tensor(z, [n, 16]);\n"
		"if program_id(0) == 0 { C.store([0, 0], A.load([0, 0], [8, 16])); }\n",
		128, 13, 8, w_repeated},
	{"block_ptr",
		"let A = tensor(x, [37, n]);\nlet C = tensor(z, [37]);\nvar bp = block_ptr(A, [program_id(0) * 16, 0], "
		"[16, 32]);\nvar s = zeros([16], f32);\nfor k in range(0, n, 32) {\ns += sum(load(bp), axis = 1);\n"
		"bp = advance(bp, [0, 32]);\n}\nC.store([program_id(0) * 16], s);\n",
		37, 3700, 100, w_row_sums},
	{"block_ptr_store",
		"let A = tensor(x, [n]);\nlet C = tensor(z, [n]);\nvar from = block_ptr(A, [-64], [128]);\n"
		"var to = block_ptr(C, [-64], [128]);\nfor k in range(0, n + 64, 128) {\n"
		"if program_id(0) == 0 { store(to, load(from)); }\n"
		"from = advance(from, [128]);\nto = advance(to, [128]);\n}\n",
		1000, 1000, 777, w_copy},
	{"block_ptr_aligned",
		"let A = tensor(x, [n]);\nlet C = tensor(z, [n]);\nlet i = program_id(0) * 256;\n"
		"store(block_ptr(C, [i], [256]), load(block_ptr(A, [i], [256])));\n",
		4096, 4096, 4096, w_copy},
	{"i64",
		"let A = tensor(x, [n.to(i64)]);\nlet C = tensor(z, [n]);\nlet i = program_id(0).to(i64) * 256;\n"
		"C.store([i], A.load([i], [256]));\nC.store([4611686018427387904], A.load([-4611686018427387904], "
		"[256]));\n",
		4000, 4000, 3999, w_copy},
	{"rank4",
		"let A = tensor(x, [3, 5, 7, n]);\nlet C = tensor(z, [3, 5, 7, n]);\nlet t = program_id(0);\n"
		"let i = [t / 2 * 2, t % 2 * 4, 0, 0];\nlet v = A.load(i, [2, 4, 8, 16]);\n"
		"if t < 4 { C.store(i, v + v); }\n",
		3 * 5 * 7 * 9, 3 * 5 * 7 * 9, 9, w_four},
	{"empty",
		"let A = tensor(x, [n, 16]);\nlet C = tensor(z, [4, 16]);\n"
		"if program_id(0) == 0 { C.store([0, 0], A.load([0, 0], [4, 16])); }\n",
		64, 16, -3, w_empty},
};

static void run_tensor(suite *s, const tensor_case *c, int warps)
{
	char name[96], text[2048];
	snprintf(name, sizeof name, "tensor_%s.warps%d", c->name, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *f32, x: *const f32, n: i32) grid(64) options(num_warps = %d) {\n%s}\n", warps, c->text);
	size_t out_bytes = (size_t)c->nout * 4, in_bytes = (size_t)c->nin * 4;
	float *z = suite_alloc(out_bytes), *x = suite_alloc(in_bytes), *want = suite_alloc(out_bytes);
	for (int i = 0; i < c->nin; i++) x[i] = (float)(i % 97 + 1);
	for (int i = 0; i < c->nout; i++) z[i] = want[i] = (float)(1000 + i);
	buffer b[] = {{z, out_bytes}, {x, in_bytes}};
	bool good = run(s, name, text, b, 2, c->n);
	c->want(want, x, c->n);
	int wrong = 0;
	for (int i = 0; good && i < c->nout; i++)
		if (z[i] != want[i] && wrong++ < 4)
			printf("%s: element %d is %g, expected %g\n", name, i, (double)z[i], (double)want[i]);
	suite_verdict(s, good, wrong, text);
	free(z);
	free(x);
	free(want);
}

/* Every program waits until the 64 before it have shown what they found, and shows one more: a chain through all
 * programs, of which far more start than run at once. The tile that they watch is small, so warps hold copies of it,
 * and must agree on when to stop. */
static void run_chain(suite *s, int warps)
{
	enum { PROGRAMS = 3001 };
	char text[1024], name[32];
	static int32_t zeros[PROGRAMS + 1], out[PROGRAMS];
	const void *in[] = {zeros};
	const size_t bytes[] = {sizeof zeros};
	snprintf(name, sizeof name, "chain, %d warps", warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(y: *i32, state: *i32, n: i32) grid(n) options(num_warps = %d) {\n"
		"let t = atomic_add(state, 1, sem = \"relaxed\");\nlet at = t - 1 - arange(0, 64);\n"
		"var seen = zeros([64], i32);\n"
		"while any(seen == 0) {\n"
		"seen = load(state + 1 + at, mask = at >= 0, other = 1, volatile = true);\n}\n"
		"let m = max(seen) + 1;\natomic_xchg(state + 1 + t, m, sem = \"relaxed\");\nstore(y + t, m);\n}\n",
		warps);
	bool good = suite_run(s, name, text, NULL, 0, SCALAR_I32, out, PROGRAMS, in, bytes, 1, PROGRAMS);
	for (int i = 0; good && i < PROGRAMS; i++)
		if (out[i] != i + 2) {
			printf("%s: program %d has %d, expected %d\n", name, i, out[i], i + 2);
			good = false;
		}
	s->passed += good;
	s->failed += !good;
}

int main(int argc, char **argv)
{
	static const scalar sums[] = {
		SCALAR_I32, SCALAR_U32, SCALAR_I64, SCALAR_U64, SCALAR_F16, SCALAR_BF16, SCALAR_F32, SCALAR_F64};
	static const int warps[] = {1, 2, 4, 8};
	suite s;
	suite_open(&s, argc, argv);
	for (unsigned w = 0; w < 4; w++) {
		for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++)
			run_program(&s, &programs[i], warps[w]);
		for (unsigned i = 0; i < sizeof tensors / sizeof tensors[0]; i++) run_tensor(&s, &tensors[i], warps[w]);
		run_histogram(&s, warps[w]);
		run_chain(&s, warps[w]);
	}
	for (unsigned i = 0; i < sizeof sums / sizeof sums[0]; i++) {
		run_counter(&s, sums[i], 4, "acq_rel");
		run_counter(&s, sums[i], 1, "relaxed");
	}
	run_kinds(&s);
	return suite_close(&s);
}
