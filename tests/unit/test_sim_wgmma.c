/* wgmma on the simulator: every type, layout and form against sums of whole numbers, and what goes wrong around it.
 *
 * The operands' places in shared memory are computed here by rows and 16-byte pieces, the simulator's by addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_hopper.h"

#include <cmocka.h>

typedef struct side {  /* an operand */
	uint32_t span; /* of the swizzle; 0: none */
	bool transposed, negated;
} side;
typedef struct product {
	const char *d, *a, *b;
	uint32_t n;
	side left, right;
	bool registers;  /* the left operand's */
	bool overwrites; /* the second step does, too */
} product;

static scalar type_of(const char *name)
{
	static const struct {
		const char *name;
		scalar t;
	} types[] = {{"f16", SCALAR_F16}, {"bf16", SCALAR_BF16}, {"tf32", SCALAR_F32}, {"e4m3", SCALAR_F8E4M3},
		{"e5m2", SCALAR_F8E5M2}, {"s8", SCALAR_I8}, {"u8", SCALAR_U8}};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(types[i].name, name) == 0) return types[i].t;
	fail_msg("no type %s", name);
	return SCALAR_F16;
}

/* Where element (row, k) of an operand of `rows` rows and two steps of k lies. */
static uint32_t place(const side *s, uint32_t rows, uint32_t size, uint32_t row, uint32_t k)
{
	uint32_t byte = k * size, all = 64 / size;
	if (s->transposed) switch (s->span) {
		case 128: return row / 64 * all * 128 + k * 128 + ((row % 64 / 8) ^ (k & 7)) * 16 + row % 8 * 2;
		case 64: return row / 32 * all * 64 + k * 64 + ((row % 32 / 8) ^ (k >> 1 & 3)) * 16 + row % 8 * 2;
		case 32: return row / 16 * all * 32 + k * 32 + ((row % 16 / 8) ^ (k >> 2 & 1)) * 16 + row % 8 * 2;
		default: return row / 8 * all * 16 + k * 16 + row % 8 * 2;
		}
	switch (s->span) {
	case 128: return row * 128 + ((byte / 16) ^ (row & 7)) * 16 + byte % 16;
	case 64: return row * 64 + ((byte / 16) ^ (row >> 1 & 3)) * 16 + byte % 16;
	case 32: return byte / 32 * rows * 32 + row * 32 + ((byte % 32 / 16) ^ (row >> 2 & 1)) * 16 + byte % 16;
	default: return byte / 16 * rows * 16 + row * 16 + byte % 16;
	}
}

/* The descriptor's upper bits, and how far the second step's start is. */
static uint64_t descriptor(const side *s, uint32_t rows, uint32_t *step)
{
	uint64_t leading = 1, stride, mode = s->span == 128 ? 1 : s->span == 64 ? 2 : s->span == 32 ? 3 : 0;
	if (s->transposed) {
		leading = s->span ? 32 * s->span / 16 : 128 / 16;
		stride = s->span ? 8 * s->span / 16 : 32 * 16 / 16;
		*step = s->span ? 16 * s->span : 256;
	} else {
		stride = s->span ? 8 * s->span / 16 : 128 / 16;
		if (!s->span) leading = rows * 16 / 16;
		*step = s->span >= 64 ? 32 : rows * 32;
	}
	return mode << 62 | stride << 32 | leading << 16;
}

static int64_t left(const product *p, uint32_t row, uint32_t k)
{
	int64_t v = (row * 7 + k * 5 + row / 8) % 11;
	return p->a[0] == 'u' ? v : v - 5;
}
static int64_t right(const product *p, uint32_t column, uint32_t k)
{
	int64_t v = (column * 3 + k * 7 + column / 16) % 7;
	return p->b[0] == 'u' ? v : v - 3;
}

static void put(hopper *h, uint32_t offset, scalar t, int64_t v)
{
	uint64_t bits = scalar_is_float(t) ? scalar_from_double(t, (double)v) : (uint64_t)v;
	memcpy(h->in + offset, &bits, scalar_bytes(t));
}

enum { RIGHT = 8192 }; /* where b lies in shared memory */

static uint32_t sums_of(const product *p)
{
	return strcmp(p->d, "f16") == 0 ? p->n / 4 : p->n / 2;
}

static void registers(hopper *h, uint32_t n)
{
	hopper_add(h, "{");
	for (uint32_t i = 0; i < n; i++) hopper_add(h, "%s%%f%u", i ? ", " : "", i);
	hopper_add(h, "}");
}

/* One step; `scale`: the text of scale-d. */
static void multiply(hopper *h, const product *p, uint32_t step, const char *scale)
{
	scalar t = type_of(p->a);
	uint32_t size = scalar_bytes(t), far_a, far_b;
	uint64_t da = descriptor(&p->left, 64, &far_a), db = descriptor(&p->right, p->n, &far_b);
	hopper_add(h,
		"add.s32 %%r10, %%smem, %u;\nshr.u32 %%r10, %%r10, 4;\ncvt.u64.u32 %%rd10, %%r10;\nor.b64 %%rd10, "
		"%%rd10, %llu;\n",
		step * far_a, (unsigned long long)da);
	hopper_add(h,
		"add.s32 %%r10, %%smem, %u;\nshr.u32 %%r10, %%r10, 4;\ncvt.u64.u32 %%rd11, %%r10;\nor.b64 %%rd11, "
		"%%rd11, %llu;\n",
		RIGHT + step * far_b, (unsigned long long)db);
	if (step == 0) hopper_add(h, "wgmma.fence.sync.aligned;\n");
	hopper_add(h, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s ", p->n, 32 / size, p->d, p->a, p->b);
	registers(h, sums_of(p));
	if (p->registers)
		hopper_add(h, ", {%%r%u, %%r%u, %%r%u, %%r%u}", 20 + 4 * step, 21 + 4 * step, 22 + 4 * step,
			23 + 4 * step);
	else
		hopper_add(h, ", %%rd10");
	hopper_add(h, ", %%rd11, %s", scale);
	if (scalar_is_float(t)) hopper_add(h, ", %d, %d", p->left.negated ? -1 : 1, p->right.negated ? -1 : 1);
	if (size == 2 && !p->registers) hopper_add(h, ", %d", p->left.transposed);
	if (size == 2) hopper_add(h, ", %d", p->right.transposed);
	hopper_add(h, ";\n");
}

/* Loads the fragments of a, which then lies row by row, 64 bytes each. */
static void load_fragments(hopper *h)
{
	hopper_add(h, "shr.u32 %%r10, %%tid, 5;\nand.b32 %%r11, %%tid, 31;\nshr.u32 %%r12, %%r11, 2;\nmad.lo.s32 "
		      "%%r12, %%r10, 16, "
		      "%%r12;\nmad.lo.s32 %%r12, %%r12, 64, %%smem;\nand.b32 %%r11, %%r11, 3;\nmad.lo.s32 %%r12, "
		      "%%r11, 4, %%r12;\n");
	for (uint32_t i = 0; i < 8; i++)
		hopper_add(
			h, "ld.shared.b32 %%r%u, [%%r12+%u];\n", 20 + i, i % 2 * 8 * 64 + i / 2 % 2 * 16 + i / 4 * 32);
}

static void store(hopper *h, uint32_t n)
{
	hopper_add(h, "mad.wide.u32 %%rd1, %%tid, %u, %%out;\n", 4 * n);
	for (uint32_t i = 0; i < n; i++) hopper_add(h, "st.global.b32 [%%rd1+%u], %%f%u;\n", 4 * i, i);
}

static hopper *set_up(const product *p)
{
	hopper *h = hopper_new();
	scalar ta = type_of(p->a), tb = type_of(p->b);
	uint32_t size = scalar_bytes(ta);
	for (uint32_t k = 0; k < 64 / size; k++) {
		for (uint32_t row = 0; row < 64; row++)
			put(h, p->registers ? row * 64 + k * size : place(&p->left, 64, size, row, k), ta,
				left(p, row, k));
		for (uint32_t column = 0; column < p->n; column++)
			put(h, RIGHT + place(&p->right, p->n, size, column, k), tb, right(p, column, k));
	}
	h->image = RIGHT + 256 * 128;
	h->shared = h->image;
	return h;
}

static double value_at(const hopper *h, const product *p, uint32_t row, uint32_t column)
{
	uint32_t thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2,
		 i = column / 8 * 4 + row % 16 / 8 * 2 + column % 2, word;
	bool half = strcmp(p->d, "f16") == 0;
	memcpy(&word, h->out + 4 * (thread * sums_of(p) + (half ? i / 2 : i)), 4);
	if (half) return scalar_to_double(SCALAR_F16, word >> 16 * (i % 2) & 0xffff);
	return p->d[0] == 's' ? (double)(int32_t)word : scalar_to_double(SCALAR_F32, word);
}

static void check(const product *p, int line)
{
	hopper *h = set_up(p);
	uint32_t deep = 32 / scalar_bytes(type_of(p->a));
	if (p->registers) load_fragments(h);
	multiply(h, p, 0, "0");
	hopper_add(h, "setp.%s.u32 %%p5, %%tid, 128;\n", p->overwrites ? "ge" : "lt");
	multiply(h, p, 1, "%p5");
	hopper_add(h, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
	store(h, sums_of(p));
	if (!hopper_run(h)) fail_msg("line %d: %s.%s.%s n%u: %s", line, p->d, p->a, p->b, p->n, h->problem);
	for (uint32_t row = 0; row < 64; row++)
		for (uint32_t column = 0; column < p->n; column++) {
			int64_t sum = 0;
			for (uint32_t k = p->overwrites ? deep : 0; k < 2 * deep; k++)
				sum += left(p, row, k) * right(p, column, k);
			if (p->left.negated != p->right.negated) sum = -sum;
			if (value_at(h, p, row, column) != (double)sum)
				fail_msg("line %d: %s.%s.%s n%u: (%u, %u) is %g, not %lld", line, p->d, p->a, p->b,
					p->n, row, column, value_at(h, p, row, column), (long long)sum);
		}
	free(h);
}
#define CHECK(...) check(&(const product){__VA_ARGS__}, __LINE__)

static void test_layouts(void **state)
{
	(void)state;
	static const uint32_t spans[] = {0, 32, 64, 128};
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++) {
			CHECK("f32", "f16", "f16", 64, {spans[i], i == 1}, {spans[k], k == 2});
			CHECK("f32", "bf16", "bf16", 24 + 32 * k, {spans[k], true}, {spans[i], true});
			CHECK("f32", "f16", "f16", 8, {spans[k], k == 3}, {spans[i], i == 3});
			CHECK("f32", "e4m3", "e4m3", 40, {spans[i]}, {spans[k]});
		}
}

static void test_types(void **state)
{
	(void)state;
	static const char *const all[][3] = {{"f32", "f16", "f16"}, {"f16", "f16", "f16"}, {"f32", "bf16", "bf16"},
		{"f32", "tf32", "tf32"}, {"f32", "e4m3", "e4m3"}, {"f32", "e4m3", "e5m2"}, {"f32", "e5m2", "e4m3"},
		{"f16", "e5m2", "e5m2"}, {"s32", "s8", "s8"}, {"s32", "u8", "u8"}, {"s32", "s8", "u8"},
		{"s32", "u8", "s8"}};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		bool whole = all[i][0][0] == 's';
		CHECK(all[i][0], all[i][1], all[i][2], 32, {128}, {128});
		CHECK(all[i][0], all[i][1], all[i][2], 256, {64}, {128});
		CHECK(all[i][0], all[i][1], all[i][2], 16, {128, false, !whole}, {32, false, false}, true);
		CHECK(all[i][0], all[i][1], all[i][2], 24, {128, false, !whole}, {64, false, !whole}, false, true);
		CHECK(all[i][0], all[i][1], all[i][2], 208, {0}, {0, false, !whole}, true, i % 2 == 0);
	}
	for (uint32_t n = 8; n <= 256; n += 8) CHECK("f32", "f16", "f16", n, {128}, {128, true}, n % 16 == 0);
}

/* ---- What goes wrong ---- */

static const product small = {"f32", "f16", "f16", 8, {128}, {128}};

static void reports(hopper *h, int line, const char *const *says)
{
	if (hopper_run(h)) fail_msg("line %d: nothing is reported", line);
	for (; *says; says++)
		if (!strstr(h->problem, *says)) fail_msg("line %d: no \"%s\" in: %s", line, *says, h->problem);
	free(h);
}
#define REPORTS(h, ...) reports(h, __LINE__, (const char *const[]){__VA_ARGS__, NULL})
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define DONE COMMIT "wgmma.wait_group.sync.aligned 0;\n"

/* `before`; a wgmma of the small product with fence; `after`; its sums are stored. */
static hopper *around(const char *before, const char *after)
{
	hopper *h = set_up(&small);
	hopper_add(h, "%s", before);
	multiply(h, &small, 0, "0");
	hopper_add(h, "%s", after);
	store(h, 4);
	return h;
}

static void test_registers(void **state)
{
	(void)state;
	hopper *h = around("", DONE);
	assert_true(hopper_run(h));
	free(h);
	REPORTS(around("", COMMIT), "a register is read that holds the sum of a wgmma", "wgmma.wait_group comes first");
	REPORTS(around("", "wgmma.wait_group.sync.aligned 0;\n"),
		"a register is read that holds the sum"); /* not committed */
	REPORTS(around("", COMMIT "wgmma.wait_group.sync.aligned 1;\n"), "a register is read that holds the sum");
	REPORTS(around("", COMMIT "mov.b32 %f3, 0;\nwgmma.wait_group.sync.aligned 0;\n"),
		"a register is written that holds the sum");
	h = around("", DONE);
	char *fence = strstr(h->body, "wgmma.fence.sync.aligned;");
	memset(fence, ' ', strlen("wgmma.fence.sync.aligned;"));
	REPORTS(h, "a wgmma comes before any wgmma.fence");
	h = around("", DONE "add.f32 %f1, %f1, %f1;\n");
	multiply(h, &small, 1, "1"); /* which has no fence of its own */
	hopper_add(h, DONE);
	REPORTS(h, "touched since the last wgmma.fence: sum 0");
	/* a's registers may be read, not written */
	product p = small;
	p.registers = true;
	for (int writes = 0; writes < 2; writes++) {
		h = set_up(&p);
		load_fragments(h);
		multiply(h, &p, 0, "0");
		hopper_add(h, COMMIT "%s", writes ? "mov.b32 %r22, %tid;\n" : "mov.b32 %r30, %r22;\n");
		hopper_add(h, "wgmma.wait_group.sync.aligned 0;\n");
		if (writes)
			REPORTS(h, "a register is written that holds a factor");
		else {
			assert_true(hopper_run(h));
			free(h);
		}
	}
}

static void test_memory(void **state)
{
	(void)state;
	hopper *h = around("", DONE);
	h->no_fence = true;
	REPORTS(h, "is read by an asynchronous engine", "no fence.proxy.async is between", "thread");
	h = around("fence.proxy.async;\n", DONE); /* by those who read: as good */
	h->no_fence = true;
	assert_true(hopper_run(h));
	free(h);
	REPORTS(around("", COMMIT "setp.eq.b32 %p1, %tid, 77;\n@%p1 st.shared.b32 [%smem+8192], 0;\n"),
		"is written while a wgmma or a bulk copy reads it", "offset 8192", "thread 77");
	REPORTS(around("", DONE "setp.eq.b32 %p1, %tid, 77;\n@%p1 st.shared.b32 [%smem+8192], 0;\n"), /* the last warp
													 has not */
		"is written while a wgmma or a bulk copy reads it", "thread 77");
	REPORTS(around("", DONE "bar.sync 0;\nsetp.eq.b32 %p1, %tid, 77;\n@%p1 st.shared.b32 [%smem+8192], 0;\n"
				"fence.proxy.async;\n"
				"wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, "
				"%f1, %f2, %f3}, "
				"%rd10, %rd11, 1, 1, 1, 0, 0;\n"),
		"a race on shared memory at offset 8192", "read here and was written by thread 77");
	REPORTS(around("add.s32 %smem, %smem, 229376;\n", DONE), "a of a wgmma reads 16 bytes outside shared memory");
	h = around("", DONE);
	h->image = 8192; /* b is not there */
	REPORTS(h, "an undefined value is stored");
}

static void test_warpgroup(void **state)
{
	(void)state;
	hopper *h = around("setp.ge.u32 %p1, %tid, 96;\n@%p1 ret;\n", DONE);
	REPORTS(h, "wait for ever", "the other warps of its warpgroup", "all four warps");
	h = around("setp.eq.b32 %p1, %tid, 5;\n@%p1 ret;\n", DONE);
	REPORTS(h, "reached by some lanes of a warp only");
	h = around("", DONE);
	h->threads = 96;
	REPORTS(h, "a warpgroup that is not whole");
	for (uint32_t step = 0; step < 2; step++) { /* each with a fence; without */
		h = set_up(&small);
		hopper_add(h, "%ssetp.ge.u32 %%p1, %%tid, 64;\n@%%p1 bra OTHER;\n",
			step ? "wgmma.fence.sync.aligned;\n" : "");
		multiply(h, &small, step, "0");
		hopper_add(h, DONE "bra.uni END;\nOTHER:\n");
		multiply(h, &small, step, "0");
		hopper_add(h, DONE "END:\n");
		REPORTS(h, step ? "comes to this wgmma while another waits at the one at"
				: "comes to this wgmma instruction where another came to the one at");
	}
	h = around("shr.u32 %r40, %tid, 6;\nmad.lo.s32 %smem, %r40, 1024, %smem;\n", DONE);
	REPORTS(h, "the descriptor of b of a wgmma is", "in the group's first thread");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts), cmocka_unit_test(test_types),
		cmocka_unit_test(test_registers), cmocka_unit_test(test_memory), cmocka_unit_test(test_warpgroup)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
