/* Attention forward on lengths that no tile divides: full and causal, with fewer and with more keys than queries,
 * heads that share keys, head dims that fill a tile and that do not, sliding windows, sequences of different lengths,
 * keys in pages, values in 8 bits, other scores, tiles from a counter, the form of Triton's tutorial; rows that see
 * nothing, infinities and nan. */
#include "../attention.h"

#define TILE "BM=64 BN=64 num_warps=4 num_stages=2"

/* As words for a const list: "DK=64 DV=64 CAUSAL=true ..". */
static void defines(const attention *a, const char *tile, char *text, size_t room)
{
	snprintf(text, room, "T=%s DK=%d DV=%d CAUSAL=%s WINDOW=%s %s%s", attention_type(a->type), a->dk, a->dv,
		a->causal ? "true" : "false", a->window ? "true" : "false", tile, a->narrow ? " TV=f8e4m3" : "");
}

static blk_type values_type(const attention *a)
{
	return a->narrow ? BLK_TYPE_F8E4M3 : a->type;
}

static void name(const attention *a, char *text, size_t room)
{
	char heads[32] = "", window[32] = "";
	if (a->group > 1) snprintf(heads, sizeof heads, ", %d heads a key head", a->group);
	if (a->window) snprintf(window, sizeof window, ", window %d", a->window);
	snprintf(text, room, "%s %d x %d, d %d", attention_type(a->type), a->nq, a->nk, a->dk);
	if (a->dv != a->dk) snprintf(text + strlen(text), room - strlen(text), "/%d", a->dv);
	snprintf(text + strlen(text), room - strlen(text), "%s%s%s%s", a->narrow ? ", values f8e4m3" : "",
		a->causal ? ", causal" : "", window, heads);
}

/* Launches a kernel of the forward pass, whose last arguments are `more`, and returns what it wrote. */
static void launch(example *e, attention *a, const char *kernel, const char *tile, const blk_arg *more, size_t nmore,
	blk_buffer **o, blk_buffer **lse)
{
	char words[256];
	size_t nargs = 11;
	blk_arg args[16];
	*o = example_output_of(e, a->type, attention_queries(a) * (size_t)a->dv);
	*lse = example_output(e, attention_queries(a));
	blk_buffer *q = example_input(e, a->type, a->q, attention_queries(a) * (size_t)a->dk);
	blk_buffer *k = example_input(e, a->type, a->k, attention_keys(a) * (size_t)a->dk);
	blk_buffer *v = attention_values(e, values_type(a), a->v, attention_keys(a) * (size_t)a->dv);
	const blk_arg first[] = {blk_buf(*o), blk_buf(*lse), blk_buf(q), blk_buf(k), blk_buf(v),
		blk_f32((float)a->scale), blk_i32(a->heads), blk_i32(a->group), blk_i32(a->nq), blk_i32(a->nk),
		blk_i32(a->window)};
	memcpy(args, first, sizeof first);
	for (size_t i = 0; i < nmore; i++) args[nargs++] = more[i];
	defines(a, tile, words, sizeof words);
	blk_kernel *made = example_kernel(e, kernel, "%s", words);
	TRY(blk_launch(made, NULL, NULL, args, nargs));
	if (a->again) example_same_bits(e, made, args, nargs, (blk_buffer *[]){*o, *lse}, 2, words);
}

static void check(example *e, attention *a, blk_buffer *o, blk_buffer *lse, const char *form)
{
	char what[128], text[160];
	name(a, what, sizeof what);
	snprintf(text, sizeof text, "%s%s", form, what);
	attention_reference(e, a);
	example_compare(e, o, a->o, a->o_bound, attention_queries(a) * (size_t)a->dv, 0, text);
	example_compare(e, lse, a->lse, a->lse_bound, attention_queries(a), 0, "  its logarithm of the sum");
	example_end_case(e);
}

static void run(example *e, attention a, const char *tile)
{
	blk_buffer *o, *lse;
	attention_inputs(e, &a);
	launch(e, &a, "attention", tile, NULL, 0, &o, &lse);
	check(e, &a, o, lse, "");
}

/* Nan where the reference has nan, written there: the poison of an output is nan with all bits set. */
static void compare_special(example *e, blk_buffer *output, const double *want, size_t n, size_t size, const char *what)
{
	unsigned char *got = example_alloc(e, n * size);
	static const unsigned char poison[4] = {0xff, 0xff, 0xff, 0xff};
	int which = 0;
	size_t wrong = 0, nans = 0;
	while (e->buffers[which] != output) which++;
	TRY(blk_buffer_read(output, 0, got, n * size));
	for (size_t i = 0; i < n; i++) {
		double v = example_value(e->types[which], got, i), w = want[i];
		bool good = isnan(w) ? isnan(v) && memcmp(got + i * size, poison, size) != 0
				     : v == w || fabs(v - w) <= 2e-3 + 2e-2 * fabs(w);
		wrong += !good;
		nans += isnan(w);
		if (!good && wrong == 1) printf("    at %zu: %.9g, expected %.9g\n", i, v, w);
	}
	printf("  %-44s %zu of %zu are nan%s\n", what, nans, n, wrong ? "  WRONG" : "");
	e->passed += !wrong;
	e->failed += wrong != 0;
}

/* Infinities and nan in queries, keys and values go where IEEE 754 sends them, and to no other row. */
static void special(example *e, attention a, const char *tile)
{
	blk_buffer *o, *lse;
	attention_inputs(e, &a);
	size_t dk = (size_t)a.dk, dv = (size_t)a.dv;
	a.q[3 * dk] = (float)INFINITY;     /* scores of row 3 are inf and -inf: nan */
	a.q[5 * dk + 1] = (float)NAN;      /* row 5 */
	a.v[7 * dv + 2] = (float)INFINITY; /* column 2 of every row that sees key 7, which all do */
	a.v[8 * dv + 3] = -(float)INFINITY;
	a.v[9 * dv + 3] = (float)INFINITY; /* -inf + inf */
	a.v[10 * dv + 4] = (float)NAN;
	for (size_t i = 0; i < dk; i++) a.k[(size_t)a.nk * dk + 11 * dk + i] = i ? 0 : (float)INFINITY;
	for (int i = 0; i < a.nq; i++) { /* the second head: one score is inf or -inf; the latter has no weight */
		float *q = a.q + ((size_t)a.nq + (size_t)i) * dk;
		q[0] = fabsf(q[0]) + 1;
		if (i % 2) q[0] = -q[0];
		for (size_t j = 1; j < dk; j++) q[j] *= 0.25F;
	}
	launch(e, &a, "attention", tile, NULL, 0, &o, &lse);
	attention_reference(e, &a);
	char what[128];
	snprintf(what, sizeof what, "%s, d %d, infinities and nan%s", attention_type(a.type), a.dk,
		a.causal ? ", causal" : "");
	compare_special(e, o, a.o, attention_queries(&a) * dv, 2, what);
	compare_special(e, lse, a.lse, attention_queries(&a), 4, "  its logarithm of the sum");
	example_end_case(e);
}

static void forward(example *e)
{
	static const int lengths[][2] = {
		{1, 1}, {63, 63}, {65, 257}, {257, 65}, {1, 100}, {128, 128}, {70, 1}, {70, 0}, {1, 0}};
	const blk_type f16 = BLK_TYPE_F16, bf16 = BLK_TYPE_BF16;
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (int causal = 0; causal < 2; causal++)
			run(e,
				(attention){i % 2 ? bf16 : f16, .heads = 2, .group = 1, .nq = lengths[i][0],
					.nk = lengths[i][1], .dk = 64, .dv = 64, .causal = causal},
				TILE);
	static const int dims[][2] = {{96, 96}, {128, 128}, {192, 128}, {256, 256}, {40, 24}};
	for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
		run(e,
			(attention){i % 2 ? f16 : bf16, .heads = 1, .group = 1, .nq = 70, .nk = 131, .dk = dims[i][0],
				.dv = dims[i][1], .causal = i % 2 == 0},
			dims[i][0] > 128 ? "BM=64 BN=32 num_warps=4 num_stages=2" : TILE);
	for (size_t i = 0; i < 4; i++) /* with more than a tile of rows, and 8 warps */
		run(e,
			(attention){i % 2 ? bf16 : f16, .heads = 1, .group = 1, .nq = 150, .nk = 100, .dk = dims[i][0],
				.dv = dims[i][1], .causal = i % 2},
			"BM=128 BN=32 num_warps=8 num_stages=2");
	run(e, (attention){f16, .heads = 2, .group = 1, .nq = 1, .nk = 300, .dk = 64, .dv = 64, .causal = true},
		"BM=128 BN=64 num_warps=8 num_stages=2");
	run(e, (attention){bf16, .heads = 2, .group = 1, .nq = 150, .nk = 0, .dk = 128, .dv = 128},
		"BM=128 BN=64 num_warps=8 num_stages=2");
	run(e, (attention){f16, .heads = 6, .group = 3, .nq = 33, .nk = 90, .dk = 64, .dv = 64, .causal = true}, TILE);
	run(e, (attention){bf16, .heads = 8, .group = 8, .nq = 17, .nk = 63, .dk = 64, .dv = 64}, TILE);
	run(e,
		(attention){f16, .heads = 2, .group = 1, .nq = 140, .nk = 200, .dk = 64, .dv = 64, .causal = true,
			.again = true},
		"BM=128 BN=128 num_warps=8 num_stages=2");
	for (int causal = 0; causal < 2; causal++)
		run(e,
			(attention){causal ? f16 : bf16, .heads = 1, .group = 1, .nq = 270, .nk = 140, .dk = 64,
				.dv = 64, .causal = causal},
			"BM=256 BN=64 num_warps=16 num_stages=2");
	for (int causal = 0; causal < 2; causal++)
		run(e,
			(attention){causal ? bf16 : f16, .heads = 2, .group = 2, .nq = 400, .nk = 330, .dk = 64,
				.dv = 64, .causal = causal},
			"BM=192 BN=128 num_warps=12 num_stages=2");
	run(e, (attention){f16, .heads = 1, .group = 1, .nq = 200, .nk = 140, .dk = 128, .dv = 128, .causal = true},
		"BM=128 BN=32 num_warps=8 num_stages=2");
	run(e, (attention){f16, .heads = 2, .group = 2, .nq = 90, .nk = 90, .dk = 64, .dv = 64, .causal = true},
		"BM=16 BN=16 num_warps=1 num_stages=3");
	for (int causal = 0; causal < 2; causal++) /* 32 rows a warp: by mma.sync, queries stay in shared memory */
		run(e,
			(attention){bf16, .heads = 2, .group = 1, .nq = 200, .nk = 150, .dk = 128, .dv = 128,
				.causal = causal},
			"BM=128 BN=32 num_warps=4 num_stages=2");
	run(e, (attention){f16, .heads = 22, .group = 2, .nq = 140, .nk = 90, .dk = 64, .dv = 64, .causal = true},
		TILE " FEW=0"); /* eight heads side by side, eight others, then six */
	static const int windows[] = {1, 40, 64, 130, 1000};
	for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
		run(e,
			(attention){i % 2 ? bf16 : f16, .heads = 1, .group = 1, .nq = 200, .nk = 230, .dk = 64,
				.dv = 64, .causal = i != 1, .window = windows[i]},
			TILE);
	for (int causal = 0; causal < 2; causal++) { /* in one tile, and where sums are scaled in a branch */
		special(e,
			(attention){causal ? bf16 : f16, .heads = 2, .group = 1, .nq = 70, .nk = 90, .dk = 32, .dv = 32,
				.causal = causal},
			TILE);
		special(e,
			(attention){causal ? f16 : bf16, .heads = 2, .group = 1, .nq = 140, .nk = 150, .dk = 64,
				.dv = 64, .causal = causal},
			causal ? "BM=128 BN=64 num_warps=8 num_stages=2" : "BM=128 BN=128 num_warps=8 num_stages=2");
	}
}

/* ---- Values in 8 bits ---- */

static void narrow_values(example *e)
{
	static const struct {
		int d, nq, nk;
		const char *tile;
	} cases[] = {{64, 70, 90, TILE}, {64, 140, 90, "BM=128 BN=64 num_warps=8 num_stages=2"},
		{128, 70, 130, "BM=128 BN=32 num_warps=8 num_stages=2"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int causal = 0; causal < 2; causal++)
			run(e,
				(attention){(i + (size_t)causal) % 2 ? BLK_TYPE_BF16 : BLK_TYPE_F16, .heads = 2,
					.group = 2, .nq = cases[i].nq, .nk = cases[i].nk, .dk = cases[i].d,
					.dv = cases[i].d, .causal = causal, .narrow = true},
				cases[i].tile);
}

/* ---- Tiles from a counter ---- */

/* Two launches with one counter, the second of which finds what the first one left. */
static void dynamic(example *e, attention a, const char *tile)
{
	blk_buffer *o, *lse;
	int32_t count = 0;
	attention_inputs(e, &a);
	blk_buffer *counter = example_buffer_of(e, BLK_TYPE_I32, &count, 1);
	for (int i = 0; i < 2; i++) launch(e, &a, "attention_dynamic", tile, BLK_ARGS(blk_buf(counter)), &o, &lse);
	TRY(blk_buffer_read(counter, 0, &count, sizeof count));
	if (count != 0) printf("    the counter is left at %d  WRONG\n", (int)count);
	e->failed += count != 0;
	check(e, &a, o, lse, "from a counter, ");
}

static void dynamics(example *e)
{
	static const char *const tiles[] = {
		"BM=128 BN=64 num_warps=8 num_stages=2", "BM=128 BN=32 num_warps=8 num_stages=2 FEW=0"};
	for (int causal = 0; causal < 2; causal++)
		dynamic(e,
			(attention){causal ? BLK_TYPE_BF16 : BLK_TYPE_F16, .heads = causal ? 9 : 3, .group = 1,
				.nq = causal ? 150 : 300, .nk = causal ? 130 : 230, .dk = 64, .dv = 64,
				.causal = causal},
			tiles[causal]);
	dynamic(e,
		(attention){
			BLK_TYPE_F16, .heads = 2, .group = 2, .nq = 70, .nk = 90, .dk = 128, .dv = 128, .causal = true},
		tiles[0]);
	dynamic(e,
		(attention){BLK_TYPE_BF16, .heads = 1, .group = 1, .nq = 270, .nk = 140, .dk = 64, .dv = 64,
			.causal = true, .again = true},
		"BM=256 BN=64 num_warps=16 num_stages=2");
}

/* ---- As Triton's tutorial writes it ---- */

/* The kernel's second output has units of log2. */
static void tutorial(example *e, attention a, const char *tile)
{
	char path[4096];
	const char *source = e->source;
	snprintf(path, sizeof path, "%.*stutorial.blk", (int)(strrchr(source, '/') + 1 - source), source);
	attention_inputs(e, &a);
	size_t rows = attention_queries(&a), n = rows * (size_t)a.dk;
	blk_buffer *o = example_output_of(e, a.type, n), *m = example_output(e, rows);
	blk_buffer *q = example_input(e, a.type, a.q, n), *k = example_input(e, a.type, a.k, n);
	blk_buffer *v = example_input(e, a.type, a.v, n);
	e->source = path;
	blk_kernel *kernel = example_kernel(e, "attention_tutorial", "T=%s D=%d CAUSAL=%s %s", attention_type(a.type),
		a.dk, a.causal ? "true" : "false", tile);
	e->source = source;
	const blk_arg args[] = {blk_buf(o), blk_buf(m), blk_buf(q), blk_buf(k), blk_buf(v), blk_f32((float)a.scale),
		blk_i32(a.heads), blk_i32(a.nq)};
	TRY(blk_launch(kernel, NULL, NULL, args, sizeof args / sizeof args[0]));
	if (a.again)
		example_same_bits(
			e, kernel, args, sizeof args / sizeof args[0], (blk_buffer *[]){o, m}, 2, "of the tutorial");
	attention_reference(e, &a);
	for (size_t i = 0; i < rows; i++) {
		a.lse[i] /= log(2);
		a.lse_bound[i] /= log(2);
	}
	char what[128], text[160];
	name(&a, what, sizeof what);
	snprintf(text, sizeof text, "of the tutorial, %s", what);
	example_compare(e, o, a.o, a.o_bound, n, 0, text);
	example_compare(e, m, a.lse, a.lse_bound, rows, 0, "  its logarithm of the sum");
	example_end_case(e);
}

static void tutorials(example *e)
{
	static const struct {
		int d, n;
		const char *tile;
	} cases[] = {{64, 90, TILE}, {64, 1, TILE}, {64, 140, "BM=128 BN=128 num_warps=8 num_stages=2"},
		{64, 210, "BM=192 BN=64 num_warps=12 num_stages=2"},
		{128, 150, "BM=128 BN=32 num_warps=8 num_stages=2"},
		{128, 70, "BM=128 BN=64 num_warps=8 num_stages=2"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int causal = 0; causal < 2; causal++)
			tutorial(e,
				(attention){(i + (size_t)causal) % 2 ? BLK_TYPE_BF16 : BLK_TYPE_F16,
					.heads = 1 + (i == 0), .group = 1, .nq = cases[i].n, .nk = cases[i].n,
					.dk = cases[i].d, .dv = cases[i].d, .causal = causal, .again = i == 2},
				cases[i].tile);
}

/* ---- Sequences of different lengths ---- */

enum { MOST_SEQUENCES = 11 };
typedef struct sequences {
	int n, nq[MOST_SEQUENCES], nk[MOST_SEQUENCES];
} sequences;

/* Short ones, each length up to 10 once. */
static sequences many_sequences(void)
{
	sequences all = {.n = MOST_SEQUENCES};
	for (int z = 0; z < all.n; z++) {
		all.nq[z] = z * 7 % 11;
		all.nk[z] = z * 5 % 13;
	}
	return all;
}

/* Rows of one sequence, [heads, n, d], to or from their place among all, [all, heads, d]. */
static size_t packed_place(int heads, int n, int d, int first, size_t i)
{
	size_t row = i / (size_t)d, h = row / (size_t)n, at = row % (size_t)n + (size_t)first;
	return (at * (size_t)heads + h) * (size_t)d + i % (size_t)d;
}

static void packed(example *e, attention like, const char *tile, const sequences *all)
{
	const int batch = all->n, *nq = all->nq, *nk = all->nk;
	int32_t first_q[MOST_SEQUENCES + 1] = {0}, first_k[MOST_SEQUENCES + 1] = {0}, longest = 0;
	for (int z = 0; z < batch; z++) {
		first_q[z + 1] = first_q[z] + nq[z];
		first_k[z + 1] = first_k[z] + nk[z];
		if (nq[z] > longest) longest = nq[z];
	}
	int key_heads = like.heads / like.group;
	size_t queries = (size_t)first_q[batch], rows = queries * (size_t)like.heads, dk = (size_t)like.dk;
	size_t keys = (size_t)first_k[batch] * (size_t)key_heads, dv = (size_t)like.dv;
	float *q = example_normal(e, rows * dk, 61), *k = example_normal(e, keys * dk, 62);
	float *v = example_normal(e, keys * dv, 63);
	double *o = example_doubles(e, rows * dv), *bound = example_doubles(e, rows * dv);
	double *lse = example_doubles(e, rows), *lse_bound = example_doubles(e, rows);
	for (int z = 0; z < batch; z++) /* values that nobody asks for */
		for (size_t i = 0; i < (size_t)nk[z] * (size_t)key_heads * dv && nq[z] == 0; i++)
			v[(size_t)first_k[z] * (size_t)key_heads * dv + i] = (float)NAN;
	blk_buffer *bq = example_input(e, like.type, q, rows * dk), *bk = example_input(e, like.type, k, keys * dk);
	blk_buffer *bv = attention_values(e, values_type(&like), v, keys * dv);
	for (int z = 0; z < batch; z++) {
		attention a = like;
		a.nq = nq[z];
		a.nk = nk[z];
		a.scale = 1 / sqrt(a.dk);
		size_t nqs = attention_queries(&a), nks = attention_keys(&a);
		a.q = example_alloc(e, nqs * dk * sizeof *a.q);
		a.k = example_alloc(e, nks * dk * sizeof *a.k);
		a.v = example_alloc(e, nks * dv * sizeof *a.v);
		for (size_t i = 0; i < nqs * dk; i++) a.q[i] = q[packed_place(a.heads, a.nq, a.dk, first_q[z], i)];
		for (size_t i = 0; i < nks * dk; i++) a.k[i] = k[packed_place(key_heads, a.nk, a.dk, first_k[z], i)];
		for (size_t i = 0; i < nks * dv; i++) a.v[i] = v[packed_place(key_heads, a.nk, a.dv, first_k[z], i)];
		attention_reference(e, &a);
		for (size_t i = 0; i < nqs * dv; i++) {
			o[packed_place(a.heads, a.nq, a.dv, first_q[z], i)] = a.o[i];
			bound[packed_place(a.heads, a.nq, a.dv, first_q[z], i)] = a.o_bound[i];
		}
		for (size_t i = 0; i < nqs; i++) {
			size_t to = i / (size_t)a.nq * queries + (size_t)first_q[z] + i % (size_t)a.nq;
			lse[to] = a.lse[i];
			lse_bound[to] = a.lse_bound[i];
		}
	}
	blk_buffer *out = example_output_of(e, like.type, rows * dv), *out_lse = example_output(e, rows);
	blk_buffer *tq = example_buffer_of(e, BLK_TYPE_I32, first_q, (size_t)batch + 1);
	blk_buffer *tk = example_buffer_of(e, BLK_TYPE_I32, first_k, (size_t)batch + 1);
	char words[256], what[128];
	defines(&like, tile, words, sizeof words);
	TRY(blk_launch(example_kernel(e, "attention_packed", "%s", words), NULL, NULL,
		BLK_ARGS(blk_buf(out), blk_buf(out_lse), blk_buf(bq), blk_buf(bk), blk_buf(bv), blk_buf(tq),
			blk_buf(tk), blk_f32((float)(1 / sqrt(like.dk))), blk_i32(batch), blk_i32(like.heads),
			blk_i32(like.group), blk_i32(longest), blk_i32((int)queries), blk_i32(first_k[batch]),
			blk_i32(like.window))));
	snprintf(what, sizeof what, "packed, %s%s%s%s", attention_type(like.type), like.narrow ? ", values f8e4m3" : "",
		like.causal ? ", causal" : "", like.window ? ", window" : "");
	example_compare(e, out, o, bound, rows * dv, 0, what);
	example_compare(e, out_lse, lse, lse_bound, rows, 0, "  its logarithm of the sum");
	example_end_case(e);
}

static void packed_all(example *e)
{
	static const sequences few = {.n = 5, .nq = {1, 63, 0, 130, 20}, .nk = {100, 63, 30, 300, 0}};
	const sequences many = many_sequences();
	packed(e, (attention){BLK_TYPE_F16, .heads = 4, .group = 2, .dk = 64, .dv = 64}, TILE, &few);
	packed(e, (attention){BLK_TYPE_BF16, .heads = 3, .group = 1, .dk = 96, .dv = 40, .causal = true}, TILE, &few);
	packed(e, (attention){BLK_TYPE_BF16, .heads = 9, .group = 3, .dk = 64, .dv = 64, .causal = true}, TILE " FEW=0",
		&few); /* five heads side by side, then four */
	packed(e, (attention){BLK_TYPE_F16, .heads = 2, .group = 2, .dk = 64, .dv = 64, .causal = true, .window = 40},
		"BM=128 BN=32 num_warps=8 num_stages=2", &few);
	for (int causal = 0; causal < 2; causal++) /* blocks of 128 keys, the last ones of 64 */
		packed(e, (attention){BLK_TYPE_BF16, .heads = 2, .group = 1, .dk = 64, .dv = 64, .causal = causal},
			"BM=192 BN=128 num_warps=12 num_stages=2", &few);
	packed(e,
		(attention){BLK_TYPE_BF16, .heads = 2, .group = 2, .dk = 64, .dv = 64, .causal = true, .narrow = true},
		TILE, &few);
	packed(e, (attention){BLK_TYPE_F16, .heads = 2, .group = 1, .dk = 32, .dv = 32, .causal = true},
		"BM=64 BN=16 num_warps=4 num_stages=2", &many);
}

/* ---- Keys in pages ---- */

enum { PAGED = 3 };

/* Where position `at` of a key head lies: row of the cache. */
static size_t page_row(const int32_t *table, int key_heads, int page, int head, int at)
{
	return (size_t)((table[at / page] * key_heads + head) * page + at % page);
}

/* What nobody asks for is nan: behind each sequence's end, and all of the first page, which no table names. */
static void paged(example *e, attention like, const int *lengths, int page, const char *tile)
{
	int32_t pages = 1, most = 0, table[64] = {0};
	int key_heads = like.heads / like.group;
	for (int z = 0; z < PAGED; z++) {
		int n = (lengths[z] + page - 1) / page;
		if (n > most) most = n;
	}
	for (int z = 0; z < PAGED; z++) /* in turns, from the last page to the first */
		for (int i = 0; i < most; i++) table[z * most + i] = PAGED * most - (i * PAGED + z);
	pages += PAGED * most;
	size_t dk = (size_t)like.dk, dv = (size_t)like.dv, rows = (size_t)pages * (size_t)(key_heads * page);
	size_t each = attention_queries(&like), all = PAGED * each;
	float *q = example_normal(e, all * dk, 71), *k = example_normal(e, rows * dk, 72);
	float *v = example_normal(e, rows * dv, 73);
	bool *used = example_alloc(e, rows * sizeof *used);
	for (int z = 0; z < PAGED; z++)
		for (int i = 0; i < key_heads * lengths[z]; i++)
			used[page_row(table + z * most, key_heads, page, i / lengths[z], i % lengths[z])] = true;
	for (size_t i = 0; i < rows * dk; i++)
		if (!used[i / dk]) k[i] = (float)NAN;
	for (size_t i = 0; i < rows * dv; i++)
		if (!used[i / dv]) v[i] = (float)NAN;
	blk_buffer *bq = example_input(e, like.type, q, all * dk), *bk = example_input(e, like.type, k, rows * dk);
	blk_buffer *bv = attention_values(e, values_type(&like), v, rows * dv);
	double *o = example_doubles(e, all * dv), *bound = example_doubles(e, all * dv);
	double *lse = example_doubles(e, all), *lse_bound = example_doubles(e, all);
	for (int z = 0; z < PAGED; z++) {
		attention a = like;
		size_t at = (size_t)z * each;
		a.nk = lengths[z];
		a.scale = 1 / sqrt(a.dk);
		a.q = q + at * dk;
		a.k = example_alloc(e, attention_keys(&a) * dk * sizeof *a.k);
		a.v = example_alloc(e, attention_keys(&a) * dv * sizeof *a.v);
		for (size_t i = 0; i < attention_keys(&a); i++) {
			size_t from = page_row(table + z * most, key_heads, page, (int)i / a.nk, (int)i % a.nk);
			memcpy(a.k + i * dk, k + from * dk, dk * sizeof *k);
			memcpy(a.v + i * dv, v + from * dv, dv * sizeof *v);
		}
		attention_reference(e, &a);
		memcpy(o + at * dv, a.o, each * dv * sizeof *o);
		memcpy(bound + at * dv, a.o_bound, each * dv * sizeof *o);
		memcpy(lse + at, a.lse, each * sizeof *lse);
		memcpy(lse_bound + at, a.lse_bound, each * sizeof *lse);
	}
	blk_buffer *out = example_output_of(e, like.type, all * dv), *out_lse = example_output(e, all);
	blk_buffer *tables = example_buffer_of(e, BLK_TYPE_I32, table, (size_t)(PAGED * most));
	blk_buffer *ends = example_buffer_of(e, BLK_TYPE_I32, lengths, PAGED);
	char words[256], what[128], text[160];
	defines(&like, tile, words, sizeof words);
	TRY(blk_launch(example_kernel(e, "attention_paged", "%s PAGE=%d", words, page), NULL, NULL,
		BLK_ARGS(blk_buf(out), blk_buf(out_lse), blk_buf(bq), blk_buf(bk), blk_buf(bv), blk_buf(ends),
			blk_buf(tables), blk_f32((float)(1 / sqrt(like.dk))), blk_i32(PAGED), blk_i32(like.heads),
			blk_i32(like.group), blk_i32(like.nq), blk_i32(pages), blk_i32(most), blk_i32(like.window))));
	like.nk = lengths[0];
	name(&like, what, sizeof what);
	snprintf(text, sizeof text, "pages of %d, %s", page, what);
	example_compare(e, out, o, bound, all * dv, 0, text);
	example_compare(e, out_lse, lse, lse_bound, all, 0, "  its logarithm of the sum");
	example_end_case(e);
}

static void paged_all(example *e)
{
	static const int lengths[][PAGED] = {{150, 3, 129}, {65, 200, 64}, {90, 1, 33}};
	const blk_type f16 = BLK_TYPE_F16, bf16 = BLK_TYPE_BF16;
	for (int causal = 0; causal < 2; causal++)
		paged(e,
			(attention){causal ? bf16 : f16, .heads = 4, .group = 2, .nq = 70, .dk = 64, .dv = 64,
				.causal = causal},
			lengths[causal], 64, TILE);
	paged(e, (attention){f16, .heads = 2, .group = 1, .nq = 140, .dk = 64, .dv = 64, .causal = true}, lengths[0],
		128, "BM=128 BN=64 num_warps=8 num_stages=2");
	paged(e, (attention){bf16, .heads = 2, .group = 2, .nq = 130, .dk = 128, .dv = 128, .causal = true}, lengths[2],
		32, "BM=128 BN=32 num_warps=8 num_stages=2");
	paged(e,
		(attention){f16, .heads = 2, .group = 2, .nq = 33, .dk = 96, .dv = 40, .causal = true, .window = 40,
			.narrow = true},
		lengths[1], 64, "BM=64 BN=32 num_warps=4 num_stages=2");
	paged(e, (attention){bf16, .heads = 2, .group = 1, .nq = 70, .dk = 64, .dv = 64, .causal = true}, lengths[2],
		16, TILE); /* a block lies in four pages */
}

/* ---- Other scores ---- */

static double capped(const attention *a, double s, int head, int row, int key)
{
	(void)head, (void)row, (void)key;
	return a->with[0] * tanh(s / a->with[0]);
}

static void soft_cap(example *e, attention a)
{
	const float cap = 1.5F; /* normal scores reach beyond it */
	blk_buffer *o, *lse;
	attention_inputs(e, &a);
	a.score = capped;
	a.with = &cap;
	launch(e, &a, "attention_soft_cap", TILE, BLK_ARGS(blk_f32(cap)), &o, &lse);
	check(e, &a, o, lse, "soft cap, ");
}

static double sloped(const attention *a, double s, int head, int row, int key)
{
	return s + (double)a->with[head] * (key - row - (a->nk - a->nq));
}

static void alibi(example *e, attention a)
{
	blk_buffer *o, *lse;
	float *slopes = example_alloc(e, (size_t)a.heads * sizeof *slopes);
	attention_inputs(e, &a);
	for (int h = 0; h < a.heads; h++) slopes[h] = (float)exp2(-8.0 * (h + 1) / a.heads);
	a.score = sloped;
	a.with = slopes;
	launch(e, &a, "attention_alibi", TILE, BLK_ARGS(blk_buf(example_buffer(e, slopes, (size_t)a.heads))), &o, &lse);
	check(e, &a, o, lse, "ALiBi, ");
}

/* The numbers of the queries' documents, then those of the keys'. */
static double of_documents(const attention *a, double s, int head, int row, int key)
{
	(void)head;
	return a->with[row] == a->with[a->nq + key] ? s : -(double)INFINITY;
}

static void documents(example *e, attention a)
{
	blk_buffer *o, *lse, *tables[2];
	size_t n = (size_t)a.nq, all = n + (size_t)a.nk;
	float *with = example_alloc(e, all * sizeof *with);
	int32_t *numbers = example_alloc(e, all * sizeof *numbers);
	attention_inputs(e, &a);
	for (size_t i = 0; i < all; i++) {
		numbers[i] = i < n ? (int)i / 30 : (int)(i - n) / 41; /* the last documents have no key, or no query */
		with[i] = (float)numbers[i];
	}
	a.score = of_documents;
	a.with = with;
	tables[0] = example_buffer_of(e, BLK_TYPE_I32, numbers, n);
	tables[1] = example_buffer_of(e, BLK_TYPE_I32, numbers + n, all - n);
	launch(e, &a, "attention_documents", TILE, BLK_ARGS(blk_buf(tables[0]), blk_buf(tables[1])), &o, &lse);
	check(e, &a, o, lse, "documents, ");
}

static void scores(example *e)
{
	for (int causal = 0; causal < 2; causal++) {
		attention a = {causal ? BLK_TYPE_BF16 : BLK_TYPE_F16, .heads = 4, .group = 2, .nq = 70, .nk = 90,
			.dk = 64, .dv = 64, .causal = causal};
		soft_cap(e, a);
		alibi(e, a);
		documents(e, a);
	}
}

int main(int argc, char **argv)
{
	example e = example_open(argc, argv, "attention");
	forward(&e);
	narrow_values(&e);
	dynamics(&e);
	tutorials(&e);
	packed_all(&e);
	paged_all(&e);
	scores(&e);
	return example_close(&e);
}
