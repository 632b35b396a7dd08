/* Buffers that overlap: what threads store, load and add to, and blocks that go by copies, in the order of the program.
 * One program goes over tiles; the second buffer lies inside the first one, in front of it or behind it. */
#include "device_test.h"

enum { BM = 64, BN = 64, TILES = 5, ROWS = TILES * BM - 8, AROUND = 4096, ALL = AROUND + 2 * ROWS * BN };

typedef struct aliases_case {
	const char *name, *body; /* of the loop over tiles t */
	int far;                 /* elements from c to d */
	int warps;               /* 12: three groups of rows */
	/* What the body does to memory: m is where c begins; values are t + 1. */
	void (*does)(float *m, float *d, int t);
} aliases_case;

static void put_block(float *c, int t, float v)
{
	for (int i = t * BM; i < (t + 1) * BM && i < ROWS; i++)
		for (int j = 0; j < BN; j++) c[i * BN + j] = v;
}

static void put_part(float *d, int t, float v)
{
	for (int i = 0; i < 256; i++) d[t * 1000 + i] = v;
}

static void stored_before(float *c, float *d, int t)
{
	put_part(d, t, -1 - (float)t);
	put_block(c, t, 1 + (float)t);
}
static void stored_behind(float *c, float *d, int t)
{
	put_block(c, t, 1 + (float)t);
	put_part(d, t, -1 - (float)t);
}
static void stored_around(float *c, float *d, int t)
{
	put_part(d, t, -1 - (float)t);
	put_block(c, t, 1 + (float)t);
	put_part(d, t, -100 - (float)t);
}
/* The sum of what is there goes behind everything. */
static void loaded(float *c, float *d, int t)
{
	float sum = 0;
	put_block(c, t, 1 + (float)t);
	for (int i = 0; i < 256; i++) sum += d[t * 1000 + i];
	d[t * 1000] = sum;
}
static void added(float *c, float *d, int t)
{
	put_block(c, t, 1 + (float)t);
	for (int i = 0; i < 256; i++) d[t * 1000 + i] += 8;
}
/* Blocks of a second array, of the same rows. */
static void two_arrays(float *c, float *d, int t)
{
	put_block(c, t, 1 + (float)t);
	put_block(d, t, -1 - (float)t);
}
/* Each block meets half of the one before. */
static void moved(float *c, float *d, int t)
{
	(void)d;
	for (int i = t * 32; i < t * 32 + BM && i < ROWS; i++)
		for (int j = 0; j < BN; j++) c[i * BN + j] = 1 + (float)t;
}

#define BLOCK "C.store([t * 64, 0], full([64, 64], (t + 1).to(f32)));\n"
#define PART(v) "store(d + t * 1000 + arange(0, 256), full([256], (" v " - t).to(f32)));\n"
#define SECOND "tensor(d, shape = [n, 64]).store([t * 64, 0], full([64, 64], (-1 - t).to(f32)));\n"
#define SUM                                                                                                            \
	"let s = sum(load(d + t * 1000 + arange(0, 256)), 0); "                                                        \
	"store(d + t * 1000, s);\n"

static const aliases_case cases[] = {
	{"before.inside", PART("-1") BLOCK, 100, 8, stored_before},
	{"before.first", PART("-1") BLOCK, 0, 8, stored_before},
	{"before.end", PART("-1") BLOCK, -4096 + 64, 8, stored_before},
	{"before.behind", PART("-1") BLOCK, ROWS *BN - 4 * 1000 - 128, 8, stored_before},
	{"behind.inside", BLOCK PART("-1"), 100, 8, stored_behind},
	{"behind.last", BLOCK PART("-1"), ROWS *BN - 4 * 1000 - 256, 8, stored_behind},
	{"around.inside", PART("-1") BLOCK PART("-100"), 1000, 8, stored_around},
	{"loaded.inside", BLOCK SUM, 64, 8, loaded},
	{"loaded.apart", BLOCK SUM, -4096, 8, loaded},
	{"added.inside", BLOCK "atomic_add(d + t * 1000 + arange(0, 256), 8.0, sem = \"relaxed\");\n", 500, 8, added},
	{"groups.before", PART("-1") BLOCK, 100, 12, stored_before},
	{"groups.around", PART("-1") BLOCK PART("-100"), -64, 12, stored_around},
	{"blocks.inside", BLOCK SECOND, 32 * BN, 8, two_arrays},
	{"blocks.behind", BLOCK SECOND, (ROWS - 4) * BN, 8, two_arrays},
	{"blocks.same", BLOCK SECOND, 0, 8, two_arrays},
	{"moved", "C.store([t * 32, 0], full([64, 64], (t + 1).to(f32)));\n", 0, 8, moved},
};

static bool launched(const suite *s, const aliases_case *c, const char *text, blk_buffer *memory)
{
	blk_module *module = NULL;
	blk_kernel *kernel;
	float *at = (float *)blk_buffer_pointer(memory) + AROUND; /* the device's */
	bool good =
		blk_module_source(s->device, c->name, text, NULL, 0, &module) == BLK_OK &&
		blk_kernel_find(module, "k", &kernel) == BLK_OK &&
		blk_launch(kernel, NULL, NULL, BLK_ARGS(blk_ptr(at), blk_ptr(at + c->far), blk_i32(ROWS))) == BLK_OK &&
		blk_device_sync(s->device) == BLK_OK;
	if (!good) printf("%s: %s\n", c->name, blk_error());
	blk_module_close(module);
	return good;
}

static void run(suite *s, const aliases_case *c)
{
	float *want = suite_alloc(ALL * sizeof *want), *got = suite_alloc(ALL * sizeof *got);
	blk_buffer *memory = NULL;
	char text[1024];
	snprintf(text, sizeof text,
		"kernel k(c: *f32, d: *f32, n: i32) grid(1) options(num_warps = %d) {\n"
		"    let C = tensor(c, shape = [n, 64]);\n"
		"    for t in range(program_id(0), cdiv(n, 64), num_programs(0)) {\n%s    }\n}\n",
		c->warps, c->body);
	for (int i = 0; i < ALL; i++) want[i] = (float)(i % 97);
	bool good = blk_buffer_create(s->device, ALL * sizeof *want, &memory) == BLK_OK &&
		    blk_buffer_write(memory, 0, want, ALL * sizeof *want) == BLK_OK && launched(s, c, text, memory) &&
		    blk_buffer_read(memory, 0, got, ALL * sizeof *got) == BLK_OK;
	for (int t = 0; t < TILES; t++) c->does(want + AROUND, want + AROUND + c->far, t);
	int wrong = 0;
	for (int i = 0; good && i < ALL; i++)
		if (got[i] != want[i] && wrong++ < 3)
			printf("%s: element %d is %g, expected %g\n", c->name, i - AROUND, (double)got[i],
				(double)want[i]);
	suite_verdict(s, good, wrong, text);
	blk_buffer_free(memory);
	free(want), free(got);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (suite_wants(&s, cases[i].name)) run(&s, &cases[i]);
	return suite_close(&s);
}
