/* Attention of 1 to 16 new queries over keys of different lengths, split over programs: caches in rows and in pages,
 * values in fp8; lengths of 1, and fewer keys than queries.  What lies behind a sequence's end is nan. */
#include "../attention.h"

enum { BATCH = 3 };

typedef struct decode {
	blk_type type, values; /* of q, k, o; of v */
	int key_heads, group, nq, dk, dv, most, page, split;
	int lengths[BATCH];
	const char *tile;
	bool again; /* is launched again, for the same bits */
	bool whole; /* one part, which is the output */
} decode;

typedef struct cache {
	float *k, *v; /* as the device has them: behind the ends is nan */
	int32_t *table;
	int pages, most_pages;
} cache;

static void round_to(blk_type type, float *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (type == BLK_TYPE_F8E4M3)
			attention_to_e4m3(&v[i]);
		else
			v[i] = (float)(type == BLK_TYPE_F16 ? example_from_f16(example_to_f16(v[i]))
							    : example_from_bf16(example_to_bf16(v[i])));
	}
}

/* Where position `at` of a sequence's key head lies: row of the cache. */
static size_t row_of(const decode *d, const cache *c, int sequence, int head, int at)
{
	if (!d->page) return ((size_t)sequence * (size_t)d->key_heads + (size_t)head) * (size_t)d->most + (size_t)at;
	int number = c->table[sequence * c->most_pages + at / d->page];
	return ((size_t)number * (size_t)d->key_heads + (size_t)head) * (size_t)d->page + (size_t)(at % d->page);
}

static cache make_cache(example *e, const decode *d)
{
	cache c = {.most_pages = d->page ? (d->most + d->page - 1) / d->page : 0};
	c.pages = BATCH * c.most_pages + 1; /* the first one is nobody's */
	size_t rows = (size_t)d->key_heads * (size_t)(d->page ? c.pages * d->page : BATCH * d->most);
	c.k = example_alloc(e, rows * (size_t)d->dk * sizeof *c.k);
	c.v = example_alloc(e, rows * (size_t)d->dv * sizeof *c.v);
	for (size_t i = 0; i < rows * (size_t)d->dk; i++) c.k[i] = (float)NAN;
	for (size_t i = 0; i < rows * (size_t)d->dv; i++) c.v[i] = (float)NAN;
	c.table = example_alloc(e, (size_t)(BATCH * c.most_pages + 1) * sizeof *c.table);
	for (int i = 0; i < BATCH * c.most_pages; i++) /* from the last page to the first, in turns */
		c.table[i] = BATCH * c.most_pages - (i % c.most_pages * BATCH + i / c.most_pages);
	return c;
}

/* One sequence: its inputs, into the cache as well, and its reference. */
static attention make_sequence(example *e, const decode *d, cache *c, int number)
{
	attention a = {d->type, .heads = d->key_heads * d->group, .group = d->group, .nq = d->nq,
		.nk = d->lengths[number], .dk = d->dk, .dv = d->dv, .causal = true};
	size_t dk = (size_t)a.dk, dv = (size_t)a.dv;
	attention_inputs(e, &a);
	for (size_t i = 0; i < attention_queries(&a) * dk; i++) a.q[i] += 0.1F * (float)number;
	round_to(d->type, a.q, attention_queries(&a) * dk);
	round_to(d->type, a.k, attention_keys(&a) * dk);
	round_to(d->values, a.v, attention_keys(&a) * dv);
	for (int h = 0; h < d->key_heads; h++)
		for (int i = 0; i < a.nk; i++) {
			size_t from = (size_t)h * (size_t)a.nk + (size_t)i, to = row_of(d, c, number, h, i);
			memcpy(c->k + to * dk, a.k + from * dk, dk * sizeof *c->k);
			memcpy(c->v + to * dv, a.v + from * dv, dv * sizeof *c->v);
		}
	attention_reference(e, &a);
	return a;
}

static void run(example *e, decode d)
{
	cache c = make_cache(e, &d);
	size_t rows = (size_t)d.key_heads * (size_t)d.group * (size_t)d.nq, all = BATCH * rows, dk = (size_t)d.dk;
	size_t dv = (size_t)d.dv, keys = (size_t)d.key_heads * (size_t)(d.page ? c.pages * d.page : BATCH * d.most);
	float *q = example_alloc(e, all * dk * sizeof *q);
	double *o = example_doubles(e, all * dv), *bound = example_doubles(e, all * dv);
	double *lse = example_doubles(e, all), *lse_bound = example_doubles(e, all);
	for (int i = 0; i < BATCH; i++) {
		attention a = make_sequence(e, &d, &c, i);
		size_t at = (size_t)i * rows;
		memcpy(q + at * dk, a.q, rows * dk * sizeof *q);
		memcpy(o + at * dv, a.o, rows * dv * sizeof *o);
		memcpy(bound + at * dv, a.o_bound, rows * dv * sizeof *bound);
		memcpy(lse + at, a.lse, rows * sizeof *lse);
		memcpy(lse_bound + at, a.lse_bound, rows * sizeof *lse_bound);
	}
	size_t parts = (size_t)d.split * all;
	blk_buffer *part = example_output(e, parts * dv), *log = example_output(e, parts);
	blk_buffer *out = example_output_of(e, d.type, all * dv), *out_lse = example_output(e, all);
	if (d.whole) part = out, log = out_lse;
	blk_buffer *bq = example_input(e, d.type, q, all * dk), *bk = example_input(e, d.type, c.k, keys * dk);
	blk_buffer *bv = attention_values(e, d.values, c.v, keys * dv);
	blk_buffer *lengths = example_buffer_of(e, BLK_TYPE_I32, d.lengths, BATCH);
	const char *whole = d.whole ? " WHOLE=true" : "";
	const char *type = attention_type(d.type), *values = d.values == BLK_TYPE_F8E4M3 ? "f8e4m3" : type;
	float scale = (float)(1 / sqrt(d.dk));
	if (d.page) {
		blk_buffer *table = example_buffer_of(e, BLK_TYPE_I32, c.table, (size_t)(BATCH * c.most_pages));
		blk_kernel *kernel = example_kernel(e, "attention_decode_paged",
			"T=%s DK=%d DV=%d PAGE=%d SPLIT=%d %s%s", type, d.dk, d.dv, d.page, d.split, d.tile, whole);
		TRY(blk_launch(kernel, NULL, NULL,
			BLK_ARGS(blk_buf(part), blk_buf(log), blk_buf(bq), blk_buf(bk), blk_buf(bv), blk_buf(lengths),
				blk_buf(table), blk_f32(scale), blk_i32(BATCH), blk_i32(d.key_heads), blk_i32(d.group),
				blk_i32(d.nq), blk_i32(c.pages), blk_i32(c.most_pages))));
	} else {
		blk_kernel *kernel = example_kernel(e, "attention_decode", "T=%s TV=%s DK=%d DV=%d SPLIT=%d %s%s", type,
			values, d.dk, d.dv, d.split, d.tile, whole);
		const blk_arg args[] = {blk_buf(part), blk_buf(log), blk_buf(bq), blk_buf(bk), blk_buf(bv),
			blk_buf(lengths), blk_f32(scale), blk_i32(BATCH), blk_i32(d.key_heads), blk_i32(d.group),
			blk_i32(d.nq), blk_i32(d.most)};
		size_t n = sizeof args / sizeof args[0];
		TRY(blk_launch(kernel, NULL, NULL, args, n));
		if (d.again) example_same_bits(e, kernel, args, n, (blk_buffer *[]){part, log}, 2, d.tile);
	}
	if (!d.whole) {
		blk_kernel *combine =
			example_kernel(e, "attention_combine", "T=%s DV=%d SPLIT=%d", type, d.dv, d.split);
		TRY(blk_launch(combine, NULL, NULL,
			BLK_ARGS(blk_buf(out), blk_buf(out_lse), blk_buf(part), blk_buf(log), blk_i32((int)all))));
	}
	char what[128], pages[32] = "";
	if (d.page) snprintf(pages, sizeof pages, ", pages of %d", d.page);
	snprintf(what, sizeof what, "%s, %d heads a key head, %d queries, %d parts%s%s", values, d.group, d.nq, d.split,
		pages, d.whole ? ", at once" : "");
	example_compare(e, out, o, bound, all * dv, 0, what);
	example_compare(e, out_lse, lse, lse_bound, all, 0, "  its logarithm of the sum");
	example_end_case(e);
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "attention_decode");
#define TILE "BM=16 BN=64 num_warps=4 num_stages=2"
	const blk_type f16 = BLK_TYPE_F16, bf16 = BLK_TYPE_BF16;
	run(&e, (decode){f16, f16, 2, 1, 1, 64, 64, 333, 0, 4, {1, 64, 333}, TILE});
	run(&e, (decode){bf16, bf16, 1, 8, 1, 128, 128, 301, 0, 3, {300, 65, 2}, TILE});
	run(&e, (decode){f16, f16, 2, 3, 5, 96, 40, 200, 0, 4, {200, 3, 129}, TILE, .again = true});
	run(&e, (decode){bf16, bf16, 1, 4, 16, 64, 64, 257, 0, 2, {257, 16, 100},
			"BM=64 BN=64 num_warps=4 num_stages=2"});
	run(&e, (decode){f16, BLK_TYPE_F8E4M3, 2, 4, 2, 64, 64, 200, 0, 4, {199, 64, 1}, TILE});
	run(&e, (decode){bf16, BLK_TYPE_F8E4M3, 1, 8, 8, 128, 128, 150, 0, 1, {150, 20, 128},
			"BM=64 BN=64 num_warps=4 num_stages=2"});
	run(&e, (decode){bf16, bf16, 2, 4, 3, 64, 64, 300, 0, 1, {300, 2, 65}, TILE, .again = true, .whole = true});
	run(&e, (decode){f16, f16, 2, 4, 1, 128, 128, 200, 64, 1, {200, 1, 64}, TILE, .whole = true});
	run(&e, (decode){f16, f16, 2, 4, 1, 64, 64, 300, 64, 4, {300, 1, 128}, TILE});
	run(&e, (decode){bf16, bf16, 2, 2, 3, 128, 128, 300, 128, 2, {299, 130, 3}, TILE});
	run(&e, (decode){f16, f16, 1, 8, 2, 64, 64, 100, 16, 2, {100, 17, 64}, TILE});
	run(&e, (decode){bf16, bf16, 2, 1, 1, 96, 96, 40, 1, 3, {40, 1, 7}, TILE});
	run(&e, (decode){
			f16, f16, 1, 4, 1, 256, 256, 150, 0, 2, {150, 1, 129}, "BM=16 BN=32 num_warps=4 num_stages=2"});
	return example_close(&e);
}
