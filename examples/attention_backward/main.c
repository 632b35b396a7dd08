/* Attention backward on lengths that no tile divides: dk and dv with dq by atomic sums, and the same bits every time
 * with dq by a kernel of its own; full and causal, heads that share keys, head dims that do not fill a tile, rows that
 * see nothing.
 *
 * Bounds: a weight is off as in the forward pass; g v^T and delta are sums in f32, delta of an output that was rounded;
 * ds and p are rounded to 16 bits for the products in which they stand. */
#include "../attention.h"

typedef struct gradients {
	float *g;
	double *dq, *dk, *dv, *dq_bound, *dk_bound, *dv_bound;
} gradients;

/* What one score adds to the gradients: p and ds, and how far each may be off. */
static void add_score(
	const attention *a, gradients *r, int head, int row, int key, double p, double p_off, double ds, double ds_off)
{
	size_t query = (size_t)head * (size_t)a->nq + (size_t)row, at = attention_key(a, head, key);
	size_t dk = (size_t)a->dk, dv = (size_t)a->dv;
	const float *q = a->q + query * dk, *k = a->k + at * dk, *g = r->g + query * dv;
	double sums = (a->nk + 8) * 0x1p-24, more = (a->nq * a->group + 8) * 0x1p-24;
	for (size_t i = 0; i < dk; i++) {
		r->dq[query * dk + i] += a->scale * ds * k[i];
		r->dk[at * dk + i] += a->scale * ds * q[i];
		r->dq_bound[query * dk + i] += a->scale * fabs((double)k[i]) * (ds_off + sums * fabs(ds));
		r->dk_bound[at * dk + i] += a->scale * fabs((double)q[i]) * (ds_off + more * fabs(ds));
	}
	for (size_t i = 0; i < dv; i++) {
		r->dv[at * dv + i] += p * g[i];
		r->dv_bound[at * dv + i] += fabs((double)g[i]) * (p_off + more * p);
	}
}

static void backward_row(const attention *a, gradients *r, int head, int row, double *s, double *off)
{
	size_t query = (size_t)head * (size_t)a->nq + (size_t)row, dv = (size_t)a->dv;
	const float *g = r->g + query * dv;
	double u = attention_unit(a->type), least = attention_least(a->type), sums = (a->dv + 8) * 0x1p-24;
	double delta = 0, delta_size = 0;
	attention_scores(a, head, row, s, off);
	attention_weights(a, s);
	for (size_t i = 0; i < dv; i++) {
		delta += g[i] * a->o[query * dv + i];
		delta_size += fabs(g[i] * a->o[query * dv + i]);
	}
	for (int j = 0; j < a->nk; j++) {
		const float *v = a->v + attention_key(a, head, j) * dv;
		double dp = 0, dp_size = 0, p = s[j];
		if (!(p > 0)) continue;
		for (size_t i = 0; i < dv; i++) {
			dp += (double)g[i] * v[i];
			dp_size += fabs((double)g[i] * v[i]);
		}
		double ds = p * (dp - delta), wrong = off[j] + 0x1p-21 * (1 + fabs(a->lse[query]));
		double ds_off =
			(wrong + u + 0x1p-22) * fabs(ds) + p * (sums * (dp_size + delta_size) + u * delta_size) + least;
		add_score(a, r, head, row, j, p, (wrong + u) * p + least, ds, ds_off);
	}
}

static void add_rounding(const attention *a, const double *want, double *bound, size_t n)
{
	for (size_t i = 0; i < n; i++) bound[i] += attention_unit(a->type) * fabs(want[i]) + attention_least(a->type);
}

static gradients reference(example *e, attention *a)
{
	size_t nq = attention_queries(a), nk = attention_keys(a), dk = (size_t)a->dk, dv = (size_t)a->dv;
	gradients r = {example_normal(e, nq * dv, 54), example_doubles(e, nq * dk), example_doubles(e, nk * dk),
		example_doubles(e, nk * dv), example_doubles(e, nq * dk), example_doubles(e, nk * dk),
		example_doubles(e, nk * dv)};
	double *s = example_doubles(e, (size_t)a->nk), *off = example_doubles(e, (size_t)a->nk);
	attention_reference(e, a);
	for (size_t i = 0; i < nq * dv; i++) /* what the device sees */
		r.g[i] = (float)(a->type == BLK_TYPE_F16 ? example_from_f16(example_to_f16(r.g[i]))
							 : example_from_bf16(example_to_bf16(r.g[i])));
	for (int h = 0; h < a->heads; h++)
		for (int i = 0; i < a->nq; i++) backward_row(a, &r, h, i, s, off);
	add_rounding(a, r.dq, r.dq_bound, nq * dk);
	add_rounding(a, r.dk, r.dk_bound, nk * dk);
	add_rounding(a, r.dv, r.dv_bound, nk * dv);
	return r;
}

static blk_buffer *from_doubles(example *e, blk_type type, const double *v, size_t n)
{
	float *f = example_alloc(e, n * sizeof *f);
	for (size_t i = 0; i < n; i++) f[i] = (float)v[i];
	return example_input(e, type, f, n);
}

/* atomics: dq by atomic sums; else by a walk over keys, in tiles of its own. */
static void run(example *e, attention a, bool atomics, const char *tile, const char *tile_of_dq)
{
	attention_inputs(e, &a);
	size_t nq = attention_queries(&a), nk = attention_keys(&a), dk = (size_t)a.dk, dv = (size_t)a.dv;
	int padded = (a.nq + 127) / 128 * 128, heads = a.heads;
	const char *type = attention_type(a.type), *causal = a.causal ? "true" : "false",
		   *form = atomics ? "atomics" : "same bits";
	blk_buffer *q = example_input(e, a.type, a.q, nq * dk), *k = example_input(e, a.type, a.k, nk * dk);
	blk_buffer *v = example_input(e, a.type, a.v, nk * dv);
	gradients r = reference(e, &a);
	blk_buffer *g = example_input(e, a.type, r.g, nq * dv), *o = from_doubles(e, a.type, a.o, nq * dv);
	blk_buffer *lse = from_doubles(e, BLK_TYPE_F32, a.lse, nq);
	blk_buffer *dq = example_output_of(e, a.type, nq * dk), *gk = example_output_of(e, a.type, nk * dk);
	blk_buffer *gv = example_output_of(e, a.type, nk * dv);
	size_t rows = (size_t)heads * (size_t)padded;
	blk_buffer *lse2 = example_output(e, rows), *delta = example_output(e, rows);
	blk_buffer *sums =
		example_output(e, 2 * rows * dk); /* rows of a power of two, which is less than twice as many */
	const char *sum = atomics ? "true" : "false";
	blk_kernel *kernel =
		example_kernel(e, "attention_backward_rows", "T=%s DK=%d DV=%d SUM_DQ=%s", type, a.dk, a.dv, sum);
	TRY(blk_launch(kernel, NULL, NULL,
		BLK_ARGS(blk_buf(lse2), blk_buf(delta), blk_buf(sums), blk_buf(o), blk_buf(g), blk_buf(lse),
			blk_i32(heads), blk_i32(a.nq), blk_i32(padded))));
	kernel = example_kernel(e, "attention_backward", "T=%s DK=%d DV=%d GROUP=%d CAUSAL=%s SUM_DQ=%s %s", type, a.dk,
		a.dv, a.group, causal, sum, tile);
	const blk_arg of_keys[] = {blk_buf(gk), blk_buf(gv), blk_buf(sums), blk_buf(q), blk_buf(k), blk_buf(v),
		blk_buf(g), blk_buf(lse2), blk_buf(delta), blk_f32((float)a.scale), blk_i32(heads), blk_i32(a.nq),
		blk_i32(a.nk), blk_i32(padded)};
	size_t n = sizeof of_keys / sizeof of_keys[0];
	/* Without atomics dk, dv and dq need nothing of each other: on streams of their own one fills the processors
	 * that the other's last programs leave idle.  The default stream waits for both. */
	blk_stream *beside[2] = {NULL, NULL};
	for (int i = 0; i < 2 && !atomics; i++) TRY(blk_stream_create(e->device, &beside[i]));
	TRY(blk_launch(kernel, beside[0], NULL, of_keys, n));
	if (a.again && !atomics) example_same_bits(e, kernel, of_keys, n, (blk_buffer *[]){gk, gv}, 2, tile);
	if (atomics) {
		kernel = example_kernel(e, "attention_backward_convert", "T=%s DK=%d", type, a.dk);
		TRY(blk_launch(kernel, NULL, NULL,
			BLK_ARGS(blk_buf(dq), blk_buf(sums), blk_f32((float)a.scale), blk_i32(heads), blk_i32(a.nq),
				blk_i32(padded))));
	} else {
		kernel = example_kernel(e, "attention_backward_dq", "T=%s DK=%d DV=%d GROUP=%d CAUSAL=%s %s", type,
			a.dk, a.dv, a.group, causal, tile_of_dq);
		const blk_arg args[] = {blk_buf(dq), blk_buf(q), blk_buf(k), blk_buf(v), blk_buf(g), blk_buf(lse2),
			blk_buf(delta), blk_f32((float)a.scale), blk_i32(heads), blk_i32(a.nq), blk_i32(a.nk),
			blk_i32(padded)};
		TRY(blk_launch(kernel, beside[1], NULL, args, sizeof args / sizeof args[0]));
		if (a.again) example_same_bits(e, kernel, args, sizeof args / sizeof args[0], &dq, 1, tile_of_dq);
	}
	for (int i = 0; i < 2; i++) blk_stream_free(beside[i]);
	char what[128];
	snprintf(what, sizeof what, "dq, %s, %s %d x %d, d %d/%d, group %d%s", form, type, a.nq, a.nk, a.dk, a.dv,
		a.group, a.causal ? ", causal" : "");
	example_compare(e, dq, r.dq, r.dq_bound, nq * dk, 0, what);
	example_compare(e, gk, r.dk, r.dk_bound, nk * dk, 0, "  dk");
	example_compare(e, gv, r.dv, r.dv_bound, nk * dv, 0, "  dv");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "attention_backward");
#define TILE "BM=64 BN=64 num_warps=8 num_stages=2"
	static const int lengths[][2] = {{1, 1}, {63, 63}, {65, 257}, {257, 65}, {128, 128}};
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (int causal = 0; causal < 2; causal++)
			run(&e,
				(attention){i % 2 ? BLK_TYPE_BF16 : BLK_TYPE_F16, .heads = 2, .group = 1,
					.nq = lengths[i][0], .nk = lengths[i][1], .dk = 64, .dv = 64, .causal = causal},
				(i + (size_t)causal) % 2, TILE, TILE);
	for (int atomics = 0; atomics < 2; atomics++) {
		run(&e,
			(attention){BLK_TYPE_F16, .heads = 4, .group = 2, .nq = 70, .nk = 90, .dk = 64, .dv = 64,
				.causal = true},
			atomics, TILE, TILE);
		run(&e, (attention){BLK_TYPE_BF16, .heads = 3, .group = 3, .nq = 90, .nk = 33, .dk = 96, .dv = 40},
			atomics, "BM=32 BN=32 num_warps=4 num_stages=2", "BM=32 BN=32 num_warps=4 num_stages=2");
		run(&e,
			(attention){BLK_TYPE_F16, .heads = 1, .group = 1, .nq = 130, .nk = 130, .dk = 128, .dv = 128,
				.causal = true},
			atomics, "BM=32 BN=64 num_warps=4 num_stages=2", "BM=32 BN=64 num_warps=4 num_stages=2");
		run(&e,
			(attention){BLK_TYPE_BF16, .heads = 2, .group = 2, .nq = 70, .nk = 40, .dk = 192, .dv = 128,
				.causal = true},
			atomics, "BM=32 BN=32 num_warps=4 num_stages=2", "BM=32 BN=32 num_warps=4 num_stages=2");
	}
	for (int atomics = 0; atomics < 2; atomics++) /* of keys five heads side by side, then four */
		run(&e,
			(attention){BLK_TYPE_BF16, .heads = 18, .group = 2, .nq = 70, .nk = 40, .dk = 64, .dv = 64,
				.causal = true},
			atomics, TILE " FEW=0", TILE " FEW=0");
	/* Large tiles, where shared memory holds them: 100 to 160 KiB. */
	static const struct {
		int d;
		bool causal, atomics;
		const char *tile, *tile_of_dq;
	} wide[] = {{64, false, true, "BM=128 BN=128 num_warps=8 num_stages=2", ""},
		{64, true, true, "BM=128 BN=128 num_warps=8 num_stages=2", ""},
		{128, true, true, "BM=64 BN=128 num_warps=8 num_stages=2", ""},
		{64, true, false, "BM=64 BN=192 num_warps=12 num_stages=2", "BM=128 BN=128 num_warps=8 num_stages=2"},
		{64, false, false, "BM=128 BN=128 num_warps=8 num_stages=2", "BM=192 BN=64 num_warps=12 num_stages=2"},
		{64, true, false, "BM=128 BN=128 num_warps=8 num_stages=2", "BM=128 BN=64 num_warps=8 num_stages=2"},
		{256, true, false, "BM=64 BN=64 num_warps=8 num_stages=2", "BM=128 BN=32 num_warps=8 num_stages=2"},
		{128, false, false, "BM=64 BN=128 num_warps=8 num_stages=2", "BM=128 BN=64 num_warps=8 num_stages=2"},
		{128, true, false, "BM=64 BN=128 num_warps=8 num_stages=2", "BM=192 BN=64 num_warps=12 num_stages=2"}};
	blk_device_info info;
	TRY(blk_device_query(e.device, &info));
	for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
		if (info.max_shared_per_block && info.max_shared_per_block < 160 * 1024) continue;
		run(&e,
			(attention){i % 2 ? BLK_TYPE_F16 : BLK_TYPE_BF16, .heads = 2, .group = 1, .nq = 200, .nk = 150,
				.dk = wide[i].d, .dv = wide[i].d, .causal = wide[i].causal, .again = true},
			wide[i].atomics, wide[i].tile, wide[i].tile_of_dq);
	}
	return example_close(&e);
}
