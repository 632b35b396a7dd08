/* Scans, sorts, topk and flip: every operation along every axis of tiles of 1 to 16384 elements, over the element types
 * and numbers of warps. */
#include "scan_forms.h"

static void run(suite *s, const form *f, const shape *sh, int axis, scalar t, int warps, unsigned kind)
{
	/* beyond 128 keys a thread code generation for a GPU takes minutes */
	while ((f->operation == SORT || f->operation == TOPK) && product(sh) > 128 * 32 * warps) warps *= 2;
	run_form(s, f, sh, axis, t, warps, kind);
}

static bool takes(const form *f, scalar t)
{
	if (f->operation == AFFINE) return t == SCALAR_I32 || t == SCALAR_U32 || t == SCALAR_I64 || t == SCALAR_U64;
	if (f->operation == LAST) return t != SCALAR_BOOL;
	if (f->operation == CUMSUM || f->operation == CUMPROD) return t != SCALAR_BOOL;
	return true;
}

enum { MOST_WARPS_STEPS = 3 };
static const int warp_counts[MOST_WARPS_STEPS] = {1, 4, 8};

static void run_all(suite *s)
{
	static const shape shapes[] = {
		{1, {1}},
		{1, {2}},
		{1, {32}},
		{1, {64}},
		{1, {256}},
		{1, {1024}},
		{1, {4096}},
		{1, {16384}},
		{2, {1, 64}},
		{2, {16, 64}},
		{2, {64, 16}},
		{2, {4, 512}},
		{2, {512, 8}},
		{3, {4, 8, 16}},
		{3, {8, 1, 64}},
		{4, {2, 4, 8, 16}},
		{1, {3}},
		{1, {192}},
		{1, {2560}},
		{2, {96, 40}},
		{2, {4, 640}},
		{3, {5, 6, 16}},
		{4, {2, 3, 4, 10}},
	};
	static const scalar types[] = {SCALAR_F32, SCALAR_I32, SCALAR_F16, SCALAR_U8, SCALAR_F64, SCALAR_BF16,
		SCALAR_U32, SCALAR_I8, SCALAR_I64, SCALAR_BOOL, SCALAR_U16, SCALAR_U64, SCALAR_I16};
	const unsigned ntypes = sizeof types / sizeof types[0];
	unsigned turn = 0;
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
		for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
			for (int axis = 0; axis < shapes[k].rank; axis++) {
				int kept = 0; /* two types a case; all of them meet every operation */
				for (unsigned i = 0; i < ntypes && kept < 2; i++) {
					scalar t = types[turn++ % ntypes];
					if (!takes(&forms[f], t)) continue;
					run(s, &forms[f], &shapes[k], axis, t, warp_counts[(turn + k) % 3],
						(unsigned)(turn / 2 + f) % KINDS);
					kept++;
				}
			}
}

/* The sizes at which lanes, warps and registers begin to take part, with each number of warps, and the types whose keys
 * have each width. */
static void run_lines(suite *s)
{
	static const char *const names[] = {"cumsum", "affine_reverse", "sort", "topk_8", "topk_half", "flip"};
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
		bool wanted = false;
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			wanted |= strcmp(forms[f].name, names[i]) == 0;
		for (int lg = 0; wanted && lg <= 13; lg++)
			for (int w = 0; w < MOST_WARPS_STEPS; w++) {
				shape sh = {1, {1 << lg}};
				scalar t = (lg + w) % 3 == 0 ? SCALAR_I64 : SCALAR_I32;
				run(s, &forms[f], &sh, 0, t, warp_counts[w], 0);
			}
	}
}

/* Lines of more elements than a thread has registers: in one warp, in four, beside other lines. */
static void run_long(suite *s)
{
	static const char *const names[] = {"cumsum", "cumsum_reverse", "affine", "affine_reverse"};
	static const struct {
		shape sh;
		int axis, warps;
		scalar elem;
	} cases[] = {
		{{1, {16384}}, 0, 1, SCALAR_I32},
		{{1, {8192}}, 0, 1, SCALAR_I64},
		{{1, {65536}}, 0, 4, SCALAR_I32},
		{{2, {2048, 8}}, 0, 1, SCALAR_I32},
		{{2, {8, 2048}}, 1, 1, SCALAR_U32},
		{{3, {4, 1024, 4}}, 1, 2, SCALAR_U64},
	};
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			for (size_t c = 0; strcmp(forms[f].name, names[i]) == 0 && c < sizeof cases / sizeof cases[0];
				c++)
				run(s, &forms[f], &cases[c].sh, cases[c].axis, cases[c].elem, cases[c].warps, 0);
}

/* Wide tiles whose axis steps warps first: more than shared memory holds, as it lies, with any number of them. */
static void run_wide(suite *s)
{
	static const char *const names[] = {"cumsum", "cumsum_reverse", "affine", "last_reverse"};
	static const scalar types[] = {SCALAR_F32, SCALAR_I64, SCALAR_I64, SCALAR_F16};
	static const shape shapes[] = {{2, {128, 128}}, {2, {256, 256}}};
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			for (int turn = 0; strcmp(forms[f].name, names[i]) == 0 && turn < 20; turn++) {
				int warps = 1 << turn % 5, axis = turn / 5 % 2, large = turn / 10;
				if (large && warps < 8) continue;
				run(s, &forms[f], &shapes[large], axis, types[i], warps, 0);
			}
}

/* Along both axes: every element is the sum of those above and to the left. */
static void want_both(const float *x, double *z, int n)
{
	(void)n;
	for (int i = 0; i < 256; i++)
		for (int j = 0; j < 256; j++)
			z[i * 256 + j] = (double)x[i * 256 + j] + (i ? z[(i - 1) * 256 + j] : 0) +
					 (j ? z[i * 256 + j - 1] : 0) - (i && j ? z[(i - 1) * 256 + j - 1] : 0);
}

/* ---- whole programs ---- */

/* A prefix sum over a long array, a block at a time with a carry. */
static void want_carry(const float *x, double *z, int n)
{
	float sum = 0;
	for (int i = 0; i < n * 256; i++) z[i] = sum += x[i];
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* Sorts every block, reverses it, and sorts it again the other way, adding as it goes. */
static void want_mixed(const float *x, double *z, int n)
{
	float line[256], sum[256];
	for (int b = 0; b < n; b++) {
		memcpy(line, x + b * 256, sizeof line);
		qsort(line, 256, sizeof line[0], by_value);
		for (int i = 0; i < 256; i++) sum[i] = (i ? sum[i - 1] : 0) + line[i];
		for (int i = 0; i < 256; i++) z[b * 256 + i] = line[255 - i] + sum[255 - i] + line[i];
	}
}

/* The greatest 4 of each row beside the row's running maximum. */
static void want_rows(const float *x, double *z, int n)
{
	(void)n;
	float row[64];
	for (int r = 0; r < 16; r++) {
		memcpy(row, x + r * 64, sizeof row);
		qsort(row, 64, sizeof row[0], by_value);
		float top = -INFINITY;
		for (int i = 0; i < 4; i++) {
			if (x[r * 64 + i] > top) top = x[r * 64 + i];
			z[r * 4 + i] = row[63 - i];
		}
	}
}

/* A flip carried round a loop, odd and even numbers of times. */
static void want_turns(const float *x, double *z, int n)
{
	for (int i = 0; i < 2048; i++) z[i] = x[n % 2 ? 2047 - i : i] + (float)(n % 2 ? 2047 - i : i);
}

#define BOTH(warps)                                                                                                    \
	"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = " warps ") {\n"                          \
	"let p = arange(0, 256)[:, None] * 256 + arange(0, 256)[None, :];\n"                                           \
	"store(z + p, cumsum(cumsum(load(x + p), axis = 0), axis = 1));\n}\n"

static const f32_program programs[] = {
	{"both.1", BOTH("1"), 65536, 65536, 0, want_both},
	{"both.2", BOTH("2"), 65536, 65536, 0, want_both},
	{"both.4", BOTH("4"), 65536, 65536, 0, want_both},
	{"both.8", BOTH("8"), 65536, 65536, 0, want_both},
	{"both.16", BOTH("16"), 65536, 65536, 0, want_both},
	{"carry",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 8) {\nlet o = arange(0, 256);\n"
		"var c = 0.0;\nfor b in range(n) {\nlet v = load(x + b * 256 + o);\nstore(z + b * 256 + o, cumsum(v) + "
		"c);\n"
		"c += sum(v);\n}\n}\n",
		1280, 1280, 5, want_carry},
	{"mixed",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 4) {\nlet o = arange(0, 256);\n"
		"for b in range(n) {\nlet v = sort(load(x + b * 256 + o));\nlet w = flip(cumsum(v)) + flip(v);\n"
		"store(z + b * 256 + o, w + sort(v, descending = true).flip());\n}\n}\n",
		1024, 1024, 4, want_mixed},
	{"rows",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) {\nlet r = arange(0, 16)[:, None];\n"
		"let v = load(x + r * 64 + arange(0, 64)[None, :]);\nstore(z + r * 4 + arange(0, 4)[None, :], topk(v, "
		"4));\n}\n",
		1024, 64, 0, want_rows},
	{"turns",
		"kernel k(z: *f32, x: *const f32, n: i32) grid(1) options(num_warps = 4) {\nlet o = arange(0, 2048);\n"
		"var v = load(x + o) + o.to(f32);\nfor i in range(n) { v = flip(v); }\nstore(z + o, v);\n}\n",
		2048, 2048, 3, want_turns},
};

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) suite_run_f32(&s, &programs[i]);
	run_lines(&s);
	run_long(&s);
	run_wide(&s);
	run_all(&s);
	return suite_close(&s);
}
