/* Kernels behind each other in a stream: each reads what the one before has written, at places of other programs.
 *
 * In: kernels that write y from x: by pointers, by blocks of tensors, by products whose operands a producer copies, and
 * one that takes no part (launch_pdl = false), in turns with one that does.  x and y change places from launch to
 * launch, so that a program that begins too early, or sees what a cache kept, reads what was there two launches ago.
 * Out: after many launches without a wait of the host every element is compared with what so many steps make of it, all
 * in integers. */
#include "device_test.h"

enum { SHIFT = 4099, SIDE = 208, LARGE = 1040, PRODUCT = 256 };

typedef struct chain {
	const char *name, *kernels[2]; /* launched in turns */
	scalar type;
	int n;        /* given to the kernel */
	int elements; /* of each buffer */
	long long (*start)(int i);
	long long (*want)(int i, int launches, int n);
} chain;

static long long rising(int i)
{
	return 3LL * i;
}

/* f16 has these. */
static long long small(int i)
{
	return (long long)i % 2039;
}

static long long rotated(int i, int launches, int n)
{
	return rising((int)((i + (long long)launches * SHIFT) % n)) + launches;
}

static long long turned(int i, int launches, int n)
{
	return rising(launches % 2 ? i % n * n + i / n : i) + launches;
}

static long long moved(int i, int launches, int n)
{
	return small((i / n + launches) % n * n + i % n);
}

#define ROTATE(options)                                                                                                \
	"kernel k(y: *i32, x: *const i32, n: i32) grid(cdiv(n, 256)) " options "{\n"                                   \
	"let i = program_id(0) * 256 + arange(0, 256); let m = i < n;\n"                                               \
	"store(y + i, load(x + (i + 4099) % n, mask = m) + 1, mask = m);\n}\n"
#define TURN                                                                                                           \
	"kernel k(y: *i32, x: *const i32, n: i32) grid(cdiv(n, 32), cdiv(n, 32)) {\n"                                  \
	"let A = tensor(x, [n, n]); let C = tensor(y, [n, n]);\n"                                                      \
	"let i = program_id(0) * 32; let j = program_id(1) * 32;\n"                                                    \
	"C.store([i, j], trans(A.load([j, i], [32, 32])) + 1);\n}\n"
/* Times the matrix that moves row i + 1 to row i. */
#define MOVE                                                                                                           \
	"kernel k(y: *f16, x: *const f16, n: i32) grid(cdiv(n, 64), cdiv(n, 64)) options(num_stages = 3) {\n"          \
	"let A = tensor(x, [n, n]); let C = tensor(y, [n, n]);\n"                                                      \
	"let i = program_id(0) * 64; let j = program_id(1) * 64;\n"                                                    \
	"let rows = (i + arange(0, 64))[:, None]; var acc = zeros([64, 64], f32);\n"                                   \
	"for k in range(0, n, 64) {\n"                                                                                 \
	"let P = ((rows + 1) % n == (k + arange(0, 64))[None, :]).to(f16);\n"                                          \
	"acc += dot(P, A.load([k, j], [64, 64]));\n}\n"                                                                \
	"C.store([i, j], acc.to(f16));\n}\n"

static const chain chains[] = {
	{"pointers, one wave", {ROTATE(""), ROTATE("")}, SCALAR_I32, 5003, 5003, rising, rotated},
	{"pointers, many waves", {ROTATE(""), ROTATE("")}, SCALAR_I32, 700001, 700001, rising, rotated},
	{"in turns with one that does not begin early",
		{ROTATE("options(launch_pdl = false)"), ROTATE("options(num_warps = 2)")}, SCALAR_I32, 90001, 90001,
		rising, rotated},
	{"tensors, one wave", {TURN, TURN}, SCALAR_I32, SIDE, SIDE *SIDE, rising, turned},
	{"tensors, many waves", {TURN, TURN}, SCALAR_I32, LARGE, LARGE *LARGE, rising, turned},
	{"products", {MOVE, MOVE}, SCALAR_F16, PRODUCT, PRODUCT *PRODUCT, small, moved},
};

static bool check(blk_status status)
{
	if (status) printf("%s\n", blk_error());
	return !status;
}

static bool launch_all(suite *s, const chain *c, int launches, blk_buffer *const at[2])
{
	blk_module *modules[2] = {NULL};
	blk_kernel *kernels[2];
	bool good = true;
	for (int i = 0; good && i < 2; i++)
		good = check(blk_module_source(s->device, c->name, c->kernels[i], NULL, 0, &modules[i])) &&
		       check(blk_kernel_find(modules[i], "k", &kernels[i]));
	for (int i = 0; good && i < launches; i++)
		good = check(blk_launch(kernels[i % 2], NULL, NULL,
			BLK_ARGS(blk_buf(at[(i + 1) % 2]), blk_buf(at[i % 2]), blk_i32(c->n))));
	for (int i = 0; i < 2; i++)
		if (modules[i]) blk_module_close(modules[i]);
	return good;
}

static void run(suite *s, const chain *c)
{
	if (!suite_wants(s, c->name)) return;
	blk_device_info info;
	bool good = check(blk_device_query(s->device, &info));
	int launches = info.kind == BLK_DEVICE_CUDA ? 4001 : 5;
	size_t bytes = scalar_bytes(c->type) * (size_t)c->elements;
	unsigned char *data = suite_alloc(bytes);
	for (int i = 0; i < c->elements; i++)
		container_put(c->type, data, (size_t)i, scalar_from_double(c->type, (double)c->start(i)));
	blk_buffer *at[2] = {NULL};
	for (int i = 0; good && i < 2; i++)
		good = check(blk_buffer_create(s->device, bytes, &at[i])) &&
		       check(blk_buffer_write(at[i], 0, data, bytes));
	good = good && launch_all(s, c, launches, at) && check(blk_buffer_read(at[launches % 2], 0, data, bytes));
	for (int i = 0; good && i < c->elements; i++) {
		double got = scalar_to_double(c->type, container_at(c->type, data, (size_t)i)),
		       want = (double)c->want(i, launches, c->n);
		good = got == want;
		if (!good) printf("%s: element %d is %g, not %g\n", c->name, i, got, want);
	}
	suite_verdict(s, good, !good, c->name);
	for (int i = 0; i < 2; i++)
		if (at[i]) blk_buffer_free(at[i]);
	free(data);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) run(&s, &chains[i]);
	return suite_close(&s);
}
