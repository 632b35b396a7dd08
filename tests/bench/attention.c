/* Attention forward and backward: full and causal, over lengths and head dims.
 *
 *   usage: attention [of bench.h ..] [--pass=forward|backward] [--mask=full|causal] [--type=f16|bf16] [--dim=N]
 *                    [--length=N] [--heads=N] [--configuration=BM=128,BN=128,num_warps=8,num_stages=2]
 * Each leaves out what it does not name.  FLOPs are those of the products, halved where causal; backward has 2.5 times
 * the forward pass's, and its time includes row statistics and the conversion of dq.
 * Rows of outputs are checked in double precision: all of small ones, else every so many. */
#include "bench.h"

#define MOST_CHECKED 512 /* rows of an output */

static struct {
	const char *pass, *mask, *type, *configuration;
	int dim, length, heads;
} only;

typedef struct job {
	bench_launch launch, before, after; /* of the backward pass: statistics come first, the conversion last */
	bench_array q, k, v, g, o, lse, dq, dk, dv, lse2, delta, sums;
	scalar type;
	int heads, n, d, padded;
	bool causal;
	double scale;
} job;

static bool is_checked(const job *j, size_t row)
{
	size_t every = (size_t)j->heads * (size_t)j->n / MOST_CHECKED + 1;
	return row % every == 0 || row % (size_t)j->n == (size_t)j->n - 1;
}

/* What is not checked is taken as it is; nan is found all the same. */
static void taken(const bench_array *a, size_t first, size_t count, double *want)
{
	for (size_t i = 0; i < count; i++) want[i] = bench_at(a, first + i);
}

static double product(const job *j, const bench_array *a, size_t x, const bench_array *b, size_t y)
{
	double sum = 0;
	size_t d = (size_t)j->d;
	for (size_t i = 0; i < d; i++) sum += bench_at(a, x * d + i) * bench_at(b, y * d + i);
	return sum;
}

/* The row's scores, and the logarithm of the sum of their exponentials. */
static double scores(const job *j, size_t row, double *s)
{
	size_t n = (size_t)j->n, head = row / n, keys = j->causal ? row % n + 1 : n;
	double largest = -INFINITY, total = 0;
	for (size_t i = 0; i < keys; i++) {
		s[i] = j->scale * product(j, &j->q, row, &j->k, head * n + i);
		if (s[i] > largest) largest = s[i];
	}
	for (size_t i = 0; i < keys; i++) total += exp(s[i] - largest);
	return largest + log(total);
}

static void want_o(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	size_t d = (size_t)j->d, n = (size_t)j->n, row = first / d, head = row / n;
	if (!is_checked(j, row)) {
		taken(&j->o, first, count, want);
		return;
	}
	double *s = bench_alloc(n * sizeof *s), lse = scores(j, row, s);
	memset(want, 0, count * sizeof *want);
	for (size_t i = 0; i < (j->causal ? row % n + 1 : n); i++)
		for (size_t c = 0; c < count; c++) want[c] += exp(s[i] - lse) * bench_at(&j->v, (head * n + i) * d + c);
	free(s);
}

/* One score's weight and its gradient, by the forward pass's own lse and o. */
static double gradient(const job *j, size_t row, size_t key, double *p)
{
	*p = exp(j->scale * product(j, &j->q, row, &j->k, key) - bench_at(&j->lse, row));
	return *p * (product(j, &j->g, row, &j->v, key) - product(j, &j->g, row, &j->o, row));
}

static void want_dq(const void *context, size_t first, size_t count, double *want)
{
	const job *j = context;
	size_t d = (size_t)j->d, n = (size_t)j->n, row = first / d, head = row / n;
	if (!is_checked(j, row)) {
		taken(&j->dq, first, count, want);
		return;
	}
	memset(want, 0, count * sizeof *want);
	for (size_t i = 0; i < (j->causal ? row % n + 1 : n); i++) {
		double p, ds = gradient(j, row, head * n + i, &p);
		for (size_t c = 0; c < count; c++) want[c] += j->scale * ds * bench_at(&j->k, (head * n + i) * d + c);
	}
}

static void want_of_key(const job *j, bool values, size_t first, size_t count, double *want)
{
	size_t d = (size_t)j->d, n = (size_t)j->n, key = first / d, head = key / n;
	if (!is_checked(j, key)) {
		taken(values ? &j->dv : &j->dk, first, count, want);
		return;
	}
	memset(want, 0, count * sizeof *want);
	for (size_t i = j->causal ? key % n : 0; i < n; i++) {
		size_t row = head * n + i;
		double p, ds = gradient(j, row, key, &p);
		for (size_t c = 0; c < count; c++)
			want[c] += values ? p * bench_at(&j->g, row * d + c)
					  : j->scale * ds * bench_at(&j->q, row * d + c);
	}
}

static void want_dk(const void *context, size_t first, size_t count, double *want)
{
	want_of_key(context, false, first, count, want);
}

static void want_dv(const void *context, size_t first, size_t count, double *want)
{
	want_of_key(context, true, first, count, want);
}

static bool is_wanted(const char *flag, const char *value)
{
	return !flag || strcmp(flag, value) == 0;
}

static void begin(bench *b, const job *j, const char *pass, double products, double arrays)
{
	double elements = (double)j->heads * j->n * j->d;
	char work[64];
	snprintf(work, sizeof work, "%s %s d%d %s", pass, scalar_name(j->type), j->d, j->causal ? "causal" : "full");
	bench_begin(b, work, elements, arrays * 2 * elements, "%d x %d", j->heads, j->n);
	b->now.flops = (j->causal ? 1 : 2) * products * elements * j->n;
}

static blk_module *module_of(bench *b, const char *name, const job *j, const char *configuration)
{
	char define[256];
	snprintf(define, sizeof define, "T=%s,DK=%d,CAUSAL=%s%s%s", scalar_name(j->type), j->d,
		j->causal ? "true" : "false", *configuration ? "," : "", configuration);
	return bench_module(b, name, define);
}

static void set_forward(job *j, blk_module *m)
{
	j->launch.kernel = bench_kernel(m, "attention");
	bench_arguments(&j->launch, BLK_ARGS(blk_buf(j->o.buffer), blk_buf(j->lse.buffer), blk_buf(j->q.buffer),
					    blk_buf(j->k.buffer), blk_buf(j->v.buffer), blk_f32((float)j->scale),
					    blk_i32(j->heads), blk_i32(1), blk_i32(j->n), blk_i32(j->n), blk_i32(0)));
}

static void forward(bench *b, job *j)
{
	static const char *const configurations[] = {"BM=128,BN=128,num_warps=8,num_stages=2",
		"BM=128,BN=64,num_warps=8,num_stages=2", "BM=128,BN=64,num_warps=8,num_stages=3",
		"BM=64,BN=64,num_warps=4,num_stages=2", "BM=64,BN=32,num_warps=4,num_stages=2"};
	bench_check check = {&j->o, (size_t)j->d, want_o, j->type == SCALAR_F16 ? 2e-3 : 1.6e-2};
	begin(b, j, "attention", 2, 4);
	for (size_t i = 0; i < sizeof configurations / sizeof configurations[0]; i++) {
		const char *c = only.configuration ? only.configuration : configurations[i];
		int bn = atoi(strstr(c, "BN=") ? strstr(c, "BN=") + 3 : "64");
		if (!only.configuration && bn * j->d > 128 * 128) continue;
		blk_module *m = module_of(b, "attention", j, c);
		set_forward(j, m);
		bench_try(b, c, j, &check, 1);
		blk_module_close(m);
		if (only.configuration) break;
	}
	bench_end(b);
}

static void backward(bench *b, job *j)
{
	static const char *const configurations[] = {"BM=64,BN=64,num_warps=8,num_stages=2",
		"BM=64,BN=64,num_warps=4,num_stages=2", "BM=64,BN=128,num_warps=8,num_stages=2",
		"BM=32,BN=64,num_warps=8,num_stages=2", "BM=128,BN=128,num_warps=8,num_stages=2"};
	double tolerance = j->type == SCALAR_F16 ? 2e-3 : 1.6e-2;
	size_t d = (size_t)j->d, rows = (size_t)j->heads * (size_t)j->n;
	bench_check checks[] = {
		{&j->dq, d, want_dq, tolerance}, {&j->dk, d, want_dk, tolerance}, {&j->dv, d, want_dv, tolerance}};
	blk_module *m = module_of(b, "attention", j, "BM=64,BN=32,num_warps=4,num_stages=2");
	set_forward(j, m); /* its output and lse, for the device and for the reference */
	TRY(bench_run(&j->launch));
	TRY(blk_buffer_read(j->o.buffer, 0, j->o.host, bench_bytes(&j->o, rows * d)));
	TRY(blk_buffer_read(j->lse.buffer, 0, j->lse.host, bench_bytes(&j->lse, rows)));
	blk_module_close(m);
	begin(b, j, "attention backward", 5, 8);
	blk_module *plain = module_of(b, "attention_backward", j, "");
	for (size_t i = 0; i < sizeof configurations / sizeof configurations[0]; i++) {
		const char *c = only.configuration ? only.configuration : configurations[i];
		if (!only.configuration && strncmp(c, "BM=128", 6) == 0 && j->d > 64) continue;
		m = module_of(b, "attention_backward", j, c);
		j->launch.kernel = bench_kernel(plain, "attention_backward_rows");
		bench_arguments(
			&j->launch, BLK_ARGS(blk_buf(j->lse2.buffer), blk_buf(j->delta.buffer), blk_buf(j->sums.buffer),
					    blk_buf(j->o.buffer), blk_buf(j->g.buffer), blk_buf(j->lse.buffer),
					    blk_i32(j->heads), blk_i32(j->n), blk_i32(j->padded)));
		j->before.kernel = bench_kernel(m, "attention_backward");
		bench_arguments(&j->before,
			BLK_ARGS(blk_buf(j->dk.buffer), blk_buf(j->dv.buffer), blk_buf(j->sums.buffer),
				blk_buf(j->q.buffer), blk_buf(j->k.buffer), blk_buf(j->v.buffer), blk_buf(j->g.buffer),
				blk_buf(j->lse2.buffer), blk_buf(j->delta.buffer), blk_f32((float)j->scale),
				blk_i32(j->heads), blk_i32(j->n), blk_i32(j->n), blk_i32(j->padded)));
		j->after.kernel = bench_kernel(plain, "attention_backward_convert");
		bench_arguments(
			&j->after, BLK_ARGS(blk_buf(j->dq.buffer), blk_buf(j->sums.buffer), blk_f32((float)j->scale),
					   blk_i32(j->heads), blk_i32(j->n), blk_i32(j->padded)));
		j->launch.next = &j->before;
		j->before.next = &j->after;
		bench_try(b, c, j, checks, 3);
		j->launch.next = j->before.next = NULL;
		blk_module_close(m);
		if (only.configuration) break;
	}
	blk_module_close(plain);
	bench_end(b);
}

static void run(bench *b, scalar type, int heads, int n, int d, bool causal)
{
	size_t rows = (size_t)heads * (size_t)n, all = rows * (size_t)d;
	job j = {.type = type, .heads = heads, .n = n, .d = d, .causal = causal, .padded = (n + 127) / 128 * 128};
	size_t padded = (size_t)heads * (size_t)j.padded;
	j.scale = 1 / sqrt(d);
	bench_array *inputs[] = {&j.q, &j.k, &j.v, &j.g}, *outputs[] = {&j.o, &j.dq, &j.dk, &j.dv};
	bench_array *others[] = {&j.lse, &j.lse2, &j.delta, &j.sums};
	for (size_t i = 0; i < 4; i++) *inputs[i] = bench_input(b, type, all, 1, 0);
	for (size_t i = 0; i < 4; i++) *outputs[i] = bench_output(b, type, all);
	j.lse = bench_output(b, SCALAR_F32, rows);
	j.lse2 = bench_output(b, SCALAR_F32, padded);
	j.delta = bench_output(b, SCALAR_F32, padded);
	j.sums = bench_output(b, SCALAR_F32, padded * (size_t)bench_block(d));
	if (is_wanted(only.pass, "forward")) forward(b, &j);
	if (is_wanted(only.pass, "backward")) backward(b, &j);
	for (size_t i = 0; i < 4; i++) {
		bench_free(inputs[i]);
		bench_free(outputs[i]);
		bench_free(others[i]);
	}
}

static void sizes(bench *b)
{
	static const int quick[] = {63, 130}, usual[] = {512, 1024, 2048, 4096, 8192, 16384}, dims[] = {64, 128, 256};
	static const scalar types[] = {SCALAR_F16, SCALAR_BF16};
	size_t n = b->quick ? 2 : sizeof usual / sizeof usual[0];
	const int *lengths = b->quick ? quick : usual;
	for (size_t t = 0; t < (b->quick && !only.type ? 1 : 2); t++)
		for (size_t d = 0; d < (b->quick && !only.dim ? 1 : 3); d++)
			for (int causal = 0; causal < 2; causal++)
				for (size_t i = 0; i < n; i++) {
					int length = only.length ? only.length : lengths[i];
					/* as many tokens in each case; a model's width is 2048 */
					int heads = only.heads ? only.heads
						    : b->quick ? 2
							       : (length < 16384 ? 16384 / length : 1) * 2048 / dims[d];
					if (!is_wanted(only.type, scalar_name(types[t])) ||
						!is_wanted(only.mask, causal ? "causal" : "full") ||
						(only.dim && only.dim != dims[d]) || (only.length && i))
						continue;
					run(b, types[t], heads, length, dims[d], causal);
				}
}

/* Takes this program's own flags out of the list. */
static int own_flags(int argc, char **argv)
{
	static const struct {
		const char *name, **text;
		int *number;
	} flags[] = {{"--pass=", &only.pass, NULL}, {"--mask=", &only.mask, NULL}, {"--type=", &only.type, NULL},
		{"--configuration=", &only.configuration, NULL}, {"--dim=", NULL, &only.dim},
		{"--length=", NULL, &only.length}, {"--heads=", NULL, &only.heads}};
	int n = 1;
	for (int i = 1; i < argc; i++) {
		bool own = false;
		for (size_t f = 0; f < sizeof flags / sizeof flags[0] && !own; f++) {
			size_t length = strlen(flags[f].name);
			own = strncmp(argv[i], flags[f].name, length) == 0;
			if (own && flags[f].text) *flags[f].text = argv[i] + length;
			if (own && flags[f].number) *flags[f].number = atoi(argv[i] + length);
		}
		if (!own) argv[n++] = argv[i];
	}
	return n;
}

int main(int argc, char **argv)
{
	argc = own_flags(argc, argv);
	bench b = bench_open(argc, argv, "attention");
	sizes(&b);
	return bench_close(&b);
}
