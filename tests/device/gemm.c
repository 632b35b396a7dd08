/* The library's products (blk/gemm.blk): operands by rows and by columns, batches, what is added, epilogues, two
 * products of one operand, K in parts, clusters; on sizes that no tile divides, against sums in double precision. */
#include "device_test.h"

enum { BATCH = 2 };

/* The second: rows of 16 bytes, whose blocks the hardware copies; the third for tiles of 160 and 192 rows; the last for
 * clusters, whose blocks it copies too: 5 rows of tiles and 3 columns. */
static const int sizes[][3] = {{77, 51, 70}, {72, 56, 104}, {208, 200, 176}, {296, 88, 104}};

typedef struct form {
	const char *name, *type;
	int batch;           /* 0: matrices without a batch */
	bool ta, tb, shared; /* stored as [K, M], [N, K]; B is one matrix for all */
	const char *epilogue;
	const char *options; /* of call and kernel: Persistent, Split, Waves, 2 products, Row groups, Odd rows */
	int num_ctas, group; /* 0: no clusters, GROUP as it is */
	const char *grid;    /* null: gemm_grid's */
} form;

/* Fewer programs than gemm_grid rounds up to, some of them in clusters all the same. */
static const char plain_grid[] = "cdiv(M, BM) * cdiv(N, BN) + 1", other_group[] = "gemm_grid(M, N, BM, BN)";
/* For gemm_waves, which has no clusters: so many programs, full waves, and the rest in parts. */
static const char four[] = "4", eight[] = "8";

static const form forms[] = {
	{"nn", "f16", 0, false, false, false, "gemm_plain", ""},
	{"nt.bias.gelu", "f16", 0, false, true, false, "bias_gelu", ""},
	{"tn.add.persistent", "f16", 0, true, false, false, "gemm_add", "P"},
	{"tt.scale", "f16", 0, true, true, false, "gemm_scale", ""},
	{"nn.gate.batch", "bf16", BATCH, false, false, false, "gated", ""},
	{"nt.add.batch.persistent", "bf16", BATCH, false, true, true, "gemm_add", "P"},
	{"tn.bias.gelu.batch", "bf16", BATCH, true, false, true, "bias_gelu", "P"},
	{"tt.add", "bf16", 0, true, true, false, "gemm_add", ""},
	{"tt.batch", "f16", BATCH, true, true, false, "gemm_plain", ""},
	{"nt.f32", "f32", 0, false, true, false, "bias_gelu", ""},
	{"nt.f8", "f8e4m3", 0, false, true, false, "bias_gelu", ""},
	{"nn.split.add", "f16", 0, false, false, false, "gemm_add", "S"},
	{"nt.split.batch", "bf16", BATCH, false, true, false, "bias_gelu", "S"},
	{"nt.pair", "f16", 0, false, true, false, "pair", "2"},
	{"nn.pair.batch", "bf16", BATCH, false, false, true, "pair", "2P"},
	{"rows.nn", "f16", 0, false, false, false, "gemm_plain", "R"},
	{"rows.nt.bias.gelu.persistent", "bf16", 0, false, true, false, "bias_gelu", "RP"},
	{"rows.tn.add", "f16", 0, true, false, false, "gemm_add", "R"},
	{"rows.tt.gate.batch.persistent", "bf16", BATCH, true, true, false, "gated", "RP"},
	{"rows.nt.f32", "f32", 0, false, true, false, "gemm_scale", "R"},
	{"rows.nt.f8", "f8e4m3", 0, false, true, false, "bias_gelu", "R"},
	{"rows.nn.split.add", "f16", 0, false, false, false, "gemm_add", "RS"},
	{"rows.nt.pair.persistent", "f16", 0, false, true, false, "pair", "R2P"},
	{"odd.nn", "f16", 0, false, false, false, "gemm_plain", "O"},
	{"odd.nt.bias.gelu.persistent", "bf16", 0, false, true, false, "bias_gelu", "OP"},
	{"odd.tn.add", "f16", 0, true, false, false, "gemm_add", "O"},
	{"odd.tt.gate.batch", "bf16", BATCH, true, true, false, "gated", "O"},
	{"odd.nt.f8", "f8e4m3", 0, false, true, false, "bias_gelu", "O"},
	{"clusters.2x1.nn", "f16", 0, false, false, false, "gemm_add", "", 2, 8, NULL},
	{"clusters.1x2.nt", "f16", 0, false, true, false, "bias_gelu", "", 2, 1, NULL},
	{"clusters.4x1.tn", "bf16", 0, true, false, false, "gemm_plain", "", 4, 8, NULL},
	{"clusters.2x2.nn", "f16", 0, false, false, false, "gemm_add", "", 4, 2, NULL},
	{"clusters.1x4.nt", "f16", 0, false, true, false, "gemm_plain", "", 4, 1, NULL},
	{"clusters.4x2.nn", "f16", 0, false, false, false, "gemm_plain", "", 8, 4, NULL},
	{"clusters.cut.nn", "f16", 0, false, false, false, "gemm_add", "", 4, 6, NULL},
	{"clusters.2x1.batch.persistent", "bf16", BATCH, false, true, false, "gated", "P", 2, 8, NULL},
	{"clusters.2x2.batch", "f16", BATCH, false, false, true, "gemm_add", "", 4, 2, NULL},
	{"clusters.2x1.split", "f16", 0, false, false, false, "gemm_add", "S", 2, 8, NULL},
	{"clusters.2x2.split.batch", "bf16", BATCH, false, true, false, "bias_gelu", "S", 4, 2, NULL},
	{"clusters.2x1.waves", "f16", 0, false, false, false, "gemm_add", "W", 2, 8, four},
	{"clusters.2x2.waves.batch", "bf16", BATCH, false, true, false, "gated", "W", 4, 2, eight},
	{"clusters.2x1.pair", "f16", 0, false, true, false, "pair", "2", 2, 8, NULL},
	{"clusters.2x1.plain.grid", "f16", 0, false, false, false, "gemm_add", "", 2, 8, plain_grid},
	{"clusters.1x2.other.grid", "f16", 0, false, false, false, "gemm_plain", "", 2, 1, other_group},
};

/* The kernel: c, a, b, d (a bias, what is added, a gate) and, for parts, their places. */
static void kernel_text(char *out, size_t room, const form *f, int m, int n, int k)
{
	const char *batch = f->batch ? "2, " : "", *b_batch = f->batch && !f->shared ? "2, " : "";
	bool parts = strchr(f->options, 'S'), waves = strchr(f->options, 'W'), pair = strchr(f->options, '2'),
	     bias = strncmp(f->epilogue, "bias", 4) == 0, rows = strchr(f->options, 'R'), odd = strchr(f->options, 'O');
	char a_strides[64], b_strides[64], with[32] = "D";
	int a_row = f->ta ? 1 : k, a_column = f->ta ? m : 1, b_row = f->tb ? 1 : n, b_column = f->tb ? k : 1;
	snprintf(a_strides, sizeof a_strides, f->batch ? "[%d, %d, %d]" : "[%.0d%d, %d]", f->batch ? m * k : 0, a_row,
		a_column);
	snprintf(b_strides, sizeof b_strides, *b_batch ? "[%d, %d, %d]" : "[%.0d%d, %d]", *b_batch ? n * k : 0, b_row,
		b_column);
	if (strcmp(f->epilogue, "gemm_scale") == 0) snprintf(with, sizeof with, "(0.5, 2.0, D)");
	bool persistent = strchr(f->options, 'P');
	char grid[128], group[32] = "";
	int num_ctas = f->num_ctas ? f->num_ctas : 1, products = f->batch ? f->batch : 1;
	if (f->group) snprintf(group, sizeof group, ", GROUP = %d", f->group);
	snprintf(
		grid, sizeof grid, "gemm_grid(M, N, BM, BN, %s, %d%s)", persistent ? "true" : "false", products, group);
	snprintf(out, room,
		"import \"blk/gemm.blk\";\n"
		"const M: i32 = %d; const N: i32 = %d; const K: i32 = %d;\n"
		"fn bias_gelu(v, z, i, j, bias: tensor) { return gelu(v + bias.load([j], [v.shape[1]])[None, "
		":].to(f32)); }\n"
		"fn gated(v, z, i, j, D: tensor) { return v * gemm_block(D, z, i, j, v.shape).to(f32); }\n"
		"fn pair(v, w, z, i, j, with) { return silu(v) + w; }\n"
		"kernel k(const T: type, const OUT: type, c: *OUT, a: *const T, b: *const T, d: *OUT, parts: *f32,\n"
		"    arrived: *i32, n: i32, const BM: i32 = %d, const BN: i32 = %d, const BK: i32 = 32)\n"
		"    grid(%s%s) options(num_warps = %d, num_ctas = %d)\n"
		"{\n"
		"    let A = tensor(a, shape = [%sM, K], strides = %s);\n"
		"    let B = tensor(b, shape = [%sK, N], strides = %s);\n"
		"    let C = tensor(c, shape = [%sM, n]);\n"
		"    let D = tensor(d, shape = [%s]);\n"
		"    %s(C, A, B%s, %s%s, %s, BM = BM, BN = BN, BK = BK%s%s);\n"
		"}\n",
		m, n, k,
		rows  ? 192
		: odd ? 160
		      : 64,
		odd             ? 128
		: !rows         ? 32
		: parts || pair ? 64
				: 192,
		f->grid ? f->grid : grid, parts ? ", 3" : "",
		rows  ? 12
		: odd ? 8
		      : 4,
		num_ctas, batch, a_strides, b_batch, b_strides, batch,
		bias       ? "N"
		: f->batch ? "2, M, N"
			   : "M, N",
		parts   ? "gemm_split"
		: waves ? "gemm_waves"
		: pair  ? "gemm_pair"
			: "gemm",
		pair ? ", B" : "", parts || waves ? "parts, arrived, " : "", f->epilogue, with,
		parts        ? ", SPLIT = 3"
		: waves      ? ", PART = 32"
		: persistent ? ", PERSISTENT = true"
			     : "",
		group);
}

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(0.79788456080286541 * (x + 0.044715 * x * x * x)));
}

static double finished(const form *f, double v, const double *d, size_t at, int j)
{
	if (strcmp(f->epilogue, "gemm_add") == 0) return v + d[at];
	if (strcmp(f->epilogue, "gemm_scale") == 0) return 0.5 * v + 2 * d[at];
	if (strcmp(f->epilogue, "gated") == 0) return v * d[at];
	if (strcmp(f->epilogue, "bias_gelu") == 0) return gelu(v + d[j]);
	if (strcmp(f->epilogue, "pair") == 0) return v / (1 + exp(-v)) + v;
	return v;
}

static void *values(scalar t, size_t n, uint64_t seed, double **exact)
{
	void *p = suite_alloc(n * scalar_bytes(t));
	for (size_t i = 0; i < n; i++)
		container_put(
			t, p, i, scalar_from_double(t, ((double)(suite_random(&seed) >> 40) / (1 << 24) - 0.5) * 2));
	*exact = suite_doubles(t, p, n);
	return p;
}

static void run(suite *s, const form *f, scalar t, int m, int n, int k)
{
	scalar out = t == SCALAR_F8E4M3 ? SCALAR_F32 : t;
	size_t products = f->batch ? (size_t)f->batch : 1, cell = (size_t)m * (size_t)n, nc = products * cell,
	       na = products * (size_t)(m * k), nb = (f->shared ? 1 : products) * (size_t)(n * k);
	char text[4096];
	double *a, *b, *d;
	void *pa = values(t, na, 1, &a), *pb = values(t, nb, 2, &b), *pd = values(out, nc, 3, &d);
	/* of each tile, no more in clusters: three parts of 64 x 32 there (more than two for each of four or eight
	 * programs) */
	size_t tiles = f->num_ctas ? products * (size_t)((m + 63) / 64 * ((n + 31) / 32)) : 64;
	size_t parts_bytes = f->num_ctas ? tiles * 3 * 64 * 32 * 4 : (size_t)2 * 4 * 3 * 192 * 64 * 4;
	void *parts = suite_alloc(parts_bytes), *arrived = suite_alloc(tiles * 4),
	     *got = suite_alloc(nc * scalar_bytes(out));
	memset(parts, 0xff, parts_bytes);
	kernel_text(text, sizeof text, f, m, n, k);
	const blk_define defines[] = {{"T", f->type}, {"OUT", scalar_name(out)}};
	const void *in[] = {pa, pb, pd, parts, arrived};
	const size_t bytes[] = {
		na * scalar_bytes(t), nb * scalar_bytes(t), nc * scalar_bytes(out), parts_bytes, tiles * 4};
	bool good = suite_run(s, f->name, text, defines, 2, out, got, nc, in, bytes, 5, n);
	int wrong = 0;
	double u = t == SCALAR_F8E4M3 ? 0x1p-13 : t == SCALAR_F32 ? 0x1p-11 : 0x1p-24;
	double half = out == SCALAR_F16 ? 0x1p-11 : out == SCALAR_BF16 ? 0x1p-8 : 0x1p-23;
	for (size_t at = 0; good && at < nc; at++) {
		size_t z = at / cell;
		int i = (int)(at % cell) / n, j = (int)(at % (size_t)n);
		double v = 0, size = 0;
		for (int l = 0; l < k; l++) {
			double x = a[z * (size_t)(m * k) + (size_t)(f->ta ? l * m + i : i * k + l)];
			double y = b[(f->shared ? 0 : z * (size_t)(n * k)) + (size_t)(f->tb ? j * k + l : l * n + j)];
			v += x * y;
			size += fabs(x * y);
		}
		double want = finished(f, v, d, at, j), is = scalar_to_double(out, container_at(out, got, at));
		double bound = 2.2 * (k + 8) * u * size + fabs(want) * half + (fabs(want) + fabs(v) + 4) * 0x1p-20;
		if (!(fabs(is - want) <= bound) && wrong++ < 3)
			printf("%s: element (%zu, %d, %d) is %g, expected %g +- %g\n", f->name, z, i, j, is, want,
				bound);
	}
	suite_verdict(s, good, wrong, text);
	free(pa), free(pb), free(pd), free(a), free(b), free(d), free(parts), free(arrived), free(got);
}

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		scalar t = SCALAR_F16;
		for (int k = 0; k < SCALAR_COUNT; k++)
			if (strcmp(scalar_name((scalar)k), forms[i].type) == 0) t = (scalar)k;
		bool large = strpbrk(forms[i].options, "RO"), clusters = forms[i].num_ctas;
		int first = clusters ? 3 : large ? 1 : 0, last = clusters ? 3 : large ? 2 : 1;
		if (suite_wants(&s, forms[i].name))
			for (int k = first; k <= last; k++)
				run(&s, &forms[i], t, sizes[k][0], sizes[k][1], sizes[k][2]);
	}
	return suite_close(&s);
}
