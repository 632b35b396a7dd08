/* Programs that draw their tiles from a counter in memory, in the ways in which people write it: each takes the next
 * one when it is done with the last.  On sm_90a a warp of its own copies the tiles' blocks, so there it draws the
 * numbers too and sends them to the others.
 *
 * Two kinds of tiles: products that depend on each other, as in attention, and one product.  Sizes that no tile
 * divides, fewer tiles than programs, none at all; launches in a row, each of which has to leave 0 in the counter. */
#include "device_test.h"

enum { HEADS = 3, WIDE = 64, ROWS = 64, LAUNCHES = 2 };

typedef struct counter_case {
	const char *name;
	const char *walk; /* over `total` tiles */
	const char *last; /* who puts the counter back to 0; null: the host */
	bool wide;        /* i64 */
} counter_case;

#define TILE(u) "tile(" u ", z, x, y, n); "
#define DRAW "atomic_add(counter, 1, sem = \"relaxed\")"
#define NEXT "num_programs(0) + " DRAW
#define LAST "u == total + num_programs(0) - 1"

static const counter_case cases[] = {
	{"behind", "var u = program_id(0); while u < total { " TILE("u") "u = " NEXT "; }", LAST},
	{"in_front", "var u = program_id(0); while u < total { let next = " NEXT "; " TILE("u") "u = next; }", LAST},
	{"all", "var u = " DRAW "; while u < total { " TILE("u") "u = " DRAW "; }", LAST},
	{"i64",
		"var u = program_id(0).to(i64); while u < total { " TILE("u.to(i32)") "u = num_programs(0) + " DRAW
										      "; }",
		LAST, true},
	{"pairs", "var u = 2 * program_id(0); while u < total { " TILE(
			  "u") "if u % 2 == 0 { u += 1; } else { u = 2 * (" NEXT "); } }"},
	{"for",
		"var u = -1; for i in range(0, total + 1) { if u < total { u = " DRAW
		"; if u < total { " TILE("u") "} } }",
		LAST},
	{"once", "let u = " DRAW "; for t in range(u, total, num_programs(0)) { " TILE("t") "}",
		"u == num_programs(0) - 1"},
	/* those that the warp that copies cannot draw */
	{"ordered",
		"var u = program_id(0); while u < total { " TILE("u") "u = num_programs(0) + atomic_add(counter, 1); }",
		LAST},
	{"also_read",
		"var u = program_id(0); while u < total { " TILE(
			"u") "u = " NEXT "; assume(load(counter, volatile = true) >= 0); }",
		LAST},
};

static const char tiles[] =
	"fn tile(u, z, x, y, n) {\n"
	"assume(u >= 0);\n"
	"let tiles = cdiv(n, 64); let h = u / tiles; let i = u % tiles * 64;\n"
	"let X = tensor(x, [3, n, 64]); let Y = tensor(y, [2, n, 64]); let Z = tensor(z, [3, n, 64]);\n"
	"var s = zeros([64, 64], f32);\n"
	"if ONE {\n"
	"for k in range(0, 64, 16) {\n"
	"s = dot(X.load([h, i, k], [1, 64, 16]).reshape([64, 16]),\n"
	"trans(Y.load([0, 0, k], [1, 64, 16]).reshape([64, 16])), s); }\n"
	"} else {\n"
	"let q = X.load([h, i, 0], [1, 64, 64]).reshape([64, 64]);\n"
	"for j in range(0, n, 32) {\n"
	"let p = dot(q, trans(Y.load([0, j, 0], [1, 32, 64]).reshape([32, 64])));\n"
	"s = dot(p.to(f16), Y.load([1, j, 0], [1, 32, 64]).reshape([32, 64]), s * (n > 0 ? 1.0 : 2.0)); }\n"
	"}\n"
	"Z.store([h, i, 0], s.reshape([1, 64, 64]));\n"
	"}\n";

/* Row i of head h of what is expected. */
static void reference(const double *x, const double *y, bool one, int n, int h, int i, double s[WIDE])
{
	const double *q = x + ((size_t)h * n + i) * WIDE;
	for (int c = 0; c < WIDE; c++) s[c] = 0;
	for (int j = 0; j < (one ? WIDE : n); j++) { /* of one product: column j, which is row j of y */
		double p = 0;
		for (int d = 0; d < WIDE && j < n; d++) p += q[d] * y[(size_t)j * WIDE + d];
		if (one) s[j] = p;
		for (int c = 0; c < WIDE && !one; c++) s[c] += p * y[((size_t)n + j) * WIDE + c];
	}
}

typedef struct launched {
	suite *suite;
	blk_module *module;
	blk_kernel *kernel;
	blk_buffer *z, *x, *y, *counter;
	size_t nz; /* elements */
} launched;

/* Poison, a launch, and what it left; false where it did not run. */
static bool launch(launched *l, const counter_case *c, int n, float *z, int64_t *count)
{
	size_t bytes = (l->nz + SUITE_GUARD) * sizeof *z;
	unsigned char *poison = suite_alloc(bytes);
	memset(poison, 0xa5, bytes);
	int64_t zero = 0;
	bool good = (c->last || blk_buffer_write(l->counter, 0, &zero, sizeof zero) == BLK_OK) &&
		    blk_buffer_write(l->z, 0, poison, bytes) == BLK_OK &&
		    blk_launch(l->kernel, NULL, NULL,
			    BLK_ARGS(blk_buf(l->z), blk_buf(l->x), blk_buf(l->y), blk_buf(l->counter), blk_i32(n))) ==
			    BLK_OK &&
		    blk_device_sync(l->suite->device) == BLK_OK && blk_buffer_read(l->z, 0, poison, bytes) == BLK_OK &&
		    blk_buffer_read(l->counter, 0, count, sizeof *count) == BLK_OK;
	memcpy(z, poison, l->nz * sizeof *z);
	for (size_t i = l->nz * sizeof *z; i < bytes; i++) *count += poison[i] != 0xa5;
	free(poison);
	return good;
}

static void fill(uint16_t *x, size_t n, uint64_t state)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (uint16_t)scalar_from_double(SCALAR_F16, (double)(int)(suite_random(&state) % 3) - 1);
}

static void run(suite *s, const counter_case *c, bool one, int programs, int n)
{
	char name[96], text[4096];
	snprintf(name, sizeof name, "%s.%s.%dprograms.n%d", c->name, one ? "product" : "products", programs, n);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"const ONE = %s;\n%s"
		"kernel k(z: *f32, x: *const f16, y: *const f16, counter: *%s, n: i32) grid(%d) options(num_warps = "
		"%d) "
		"{\n"
		"let total = cdiv(n, 64) * 3;\n%s\n%s%s%s}\n",
		one ? "true" : "false", tiles, c->wide ? "i64" : "i32", programs, n % 2 ? 8 : 4, c->walk,
		c->last ? "if " : "", c->last ? c->last : "",
		c->last ? " { atomic_xchg(counter, 0, sem = \"relaxed\"); }\n" : "");
	size_t nx = (size_t)HEADS * n * WIDE, ny = (size_t)2 * n * WIDE;
	uint16_t *x = suite_alloc(2 * nx), *y = suite_alloc(2 * ny);
	float *z = suite_alloc(sizeof *z * nx);
	int64_t count = 0;
	fill(x, nx, 1);
	fill(y, ny, 2);
	launched l = {.suite = s, .nz = nx};
	bool good = blk_module_source(s->device, name, text, NULL, 0, &l.module) == BLK_OK &&
		    blk_kernel_find(l.module, "k", &l.kernel) == BLK_OK &&
		    blk_buffer_create(s->device, (nx + SUITE_GUARD) * sizeof *z, &l.z) == BLK_OK &&
		    blk_buffer_create(s->device, 2 * nx + 1, &l.x) == BLK_OK &&
		    blk_buffer_create(s->device, 2 * ny + 1, &l.y) == BLK_OK &&
		    blk_buffer_create(s->device, sizeof count, &l.counter) == BLK_OK &&
		    blk_buffer_write(l.x, 0, x, 2 * nx) == BLK_OK && blk_buffer_write(l.y, 0, y, 2 * ny) == BLK_OK &&
		    blk_buffer_write(l.counter, 0, &count, sizeof count) == BLK_OK;
	double *dx = suite_doubles(SCALAR_F16, x, nx), *dy = suite_doubles(SCALAR_F16, y, ny), sum[WIDE];
	int wrong = 0;
	for (int times = 0; good && times < LAUNCHES; times++) {
		good = launch(&l, c, n, z, &count);
		wrong += c->last && count != 0;
		for (int row = 0; good && row < HEADS * n; row++) {
			reference(dx, dy, one, n, row / n, row % n, sum);
			for (int d = 0; d < WIDE; d++) wrong += z[(size_t)row * WIDE + d] != sum[d];
		}
	}
	if (!good) printf("%s: %s\n%s\n", name, blk_error(), text);
	suite_verdict(s, good, wrong, text);
	blk_buffer_free(l.z);
	blk_buffer_free(l.x);
	blk_buffer_free(l.y);
	blk_buffer_free(l.counter);
	blk_module_close(l.module);
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
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int one = 0; one < 2; one++) {
			run(&s, &cases[i], one, 2, one ? 132 : 67);
			if (i == 0 || s.all) run(&s, &cases[i], one, 9, 4); /* fewer tiles than programs */
			if (i == 0 || s.all) run(&s, &cases[i], one, 2, 0);
		}
	return suite_close(&s);
}
