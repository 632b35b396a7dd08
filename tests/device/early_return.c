/* Programs that end early where others work: what these do stands in a branch then, and is as good as without it.
 * Their multibuffers fill shared memory, and the store's scratch lies where they did.  Programs that end would store
 * other rows.  Numbers are small and whole, so every sum is exact. */
#include "device_test.h"

enum { ROWS = 300, COLUMNS = 128, DEPTH = 328, KEYS = 200 };

/* a b, in five stages of 20,480 bytes, of 143,360; the store takes 49,152. */
static const char one_product[] = "kernel k(c: *f32, a: *const f16, b: *const f16, n: i32)\n"
				  "    grid(3) options(num_warps = 12, num_stages = 5, max_shared = 143360)\n{\n"
				  "    let i = program_id(0) * 192;\n"
				  "    if i >= n { return; }\n"
				  "    let A = tensor(a, shape = [300, 328]);\n"
				  "    let B = tensor(b, shape = [328, 128]);\n"
				  "    var acc = zeros([192, 128], f32);\n"
				  "    for k in range(0, 328, 32) {\n"
				  "        acc = dot(A.load([i, k], [192, 32]), B.load([k, 0], [32, 128]), acc);\n"
				  "    }\n"
				  "    tensor(c, shape = [300, 128]).store([i, 0], acc);\n}\n";

/* (a b^T) b, in three stages of two blocks of 32,768 bytes beside one of a; the store takes 32,768. */
static const char two_products[] = "kernel k(c: *f32, a: *const f16, b: *const f16, n: i32)\n"
				   "    grid(4) options(num_warps = 8, num_stages = 3)\n{\n"
				   "    let i = program_id(0) * 128;\n"
				   "    if i < n {\n"
				   "        let A = tensor(a, shape = [300, 128]);\n"
				   "        let B = tensor(b, shape = [200, 128]);\n"
				   "        let x = A.load([i, 0], [128, 128]);\n"
				   "        var acc = zeros([128, 128], f32);\n"
				   "        for j in range(0, 200, 128) {\n"
				   "            let s = dot(x, trans(B.load([j, 0], [128, 128])));\n"
				   "            acc = dot(s.to(f16), B.load([j, 0], [128, 128]), acc);\n"
				   "        }\n"
				   "        tensor(c, shape = [300, 128]).store([i, 0], acc);\n"
				   "    }\n}\n";

typedef struct early_case {
	const char *name, *text;
	int block;                                                 /* rows of a program */
	int n;                                                     /* programs from this row on end */
	int columns;                                               /* of a */
	int rows;                                                  /* of b */
	void (*want)(const double *a, const double *b, double *c); /* a row of c */
} early_case;

static void add_row(double *c, double factor, const double *b)
{
	for (int j = 0; j < COLUMNS; j++) c[j] += factor * b[j];
}

static void want_product(const double *a, const double *b, double *c)
{
	for (int l = 0; l < DEPTH; l++) add_row(c, a[l], b + l * COLUMNS);
}

static void want_chain(const double *a, const double *b, double *c)
{
	for (int key = 0; key < KEYS; key++) {
		double s = 0;
		for (int l = 0; l < COLUMNS; l++) s += a[l] * b[key * COLUMNS + l];
		add_row(c, s, b + key * COLUMNS);
	}
}

static const early_case cases[] = {
	{"product.all", one_product, 192, ROWS, DEPTH, DEPTH, want_product},
	{"product.some", one_product, 192, 100, DEPTH, DEPTH, want_product},
	{"product.none", one_product, 192, 0, DEPTH, DEPTH, want_product},
	{"chain.all", two_products, 128, ROWS, COLUMNS, KEYS, want_chain},
	{"chain.some", two_products, 128, 130, COLUMNS, KEYS, want_chain},
	{"chain.none", two_products, 128, -1, COLUMNS, KEYS, want_chain},
};

/* Rows of programs that ended have the bytes that were there before. */
static bool is_poison(const float *row)
{
	for (size_t i = 0; i < COLUMNS * sizeof *row; i++)
		if (((const unsigned char *)row)[i] != 0xa5) return false;
	return true;
}

static void run(suite *s, const early_case *c)
{
	size_t na = (size_t)ROWS * c->columns, nb = (size_t)c->rows * COLUMNS, nc = (size_t)ROWS * COLUMNS;
	uint16_t *pa = suite_alloc(na * sizeof *pa), *pb = suite_alloc(nb * sizeof *pb);
	double *a = suite_whole_numbers(pa, na, 1), *b = suite_whole_numbers(pb, nb, 2);
	float *got = suite_alloc(nc * sizeof *got);
	const void *in[] = {pa, pb};
	const size_t bytes[] = {na * sizeof *pa, nb * sizeof *pb};
	bool good = suite_run(s, c->name, c->text, NULL, 0, SCALAR_F32, got, nc, in, bytes, 2, c->n);
	int wrong = 0;
	for (int i = 0; good && i < ROWS; i++) {
		double want[COLUMNS] = {0};
		if (i / c->block * c->block >= c->n) {
			wrong += !is_poison(got + i * COLUMNS);
			continue;
		}
		c->want(a + (size_t)i * c->columns, b, want);
		for (int j = 0; j < COLUMNS; j++) wrong += (double)got[i * COLUMNS + j] != want[j];
	}
	suite_verdict(s, good, wrong, c->text);
	free(pa), free(pb), free(a), free(b), free(got);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (suite_wants(&s, cases[i].name)) run(&s, &cases[i]);
	return suite_close(&s);
}
