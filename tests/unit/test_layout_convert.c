/* Conversion plans: worked examples, the bank model, and every plan executed on a model of the machine: each element
 * must arrive in each place of the result that wants it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "layout_random.h"

static ir_type tile2(uint32_t a, uint32_t b)
{
	uint32_t dim[] = {a, b};
	return ir_tile_type(SCALAR_F32, 2, dim);
}

static layout parse(const char *s, ir_type shape)
{
	layout l;
	const char *at = s;
	assert_true(layout_parse(&at, shape, &l));
	assert_int_equal(*at, 0);
	return l;
}

static layout blocked2(uint32_t m, uint32_t n, uint32_t p0, uint32_t p1, uint32_t t0, uint32_t t1, uint32_t w0,
	uint32_t w1, bool rows_first)
{
	uint32_t p[] = {p0, p1}, t[] = {t0, t1}, w[] = {w0, w1};
	uint8_t order[] = {!rows_first, rows_first};
	return layout_blocked(tile2(m, n), p, t, w, order);
}

/* ---- the machine ---- */

enum { MAX_THREADS = 1024, MAX_REGISTERS = 256, NOBODY = -1 };
static uint32_t argument[MAX_THREADS][MAX_REGISTERS], result[MAX_THREADS][MAX_REGISTERS];
static uint32_t scratch[65536];
static int writer[65536];

static bool odd(uint32_t v)
{
	return __builtin_parity(v);
}

static void run_stages(
	uint32_t (*v)[MAX_REGISTERS], unsigned threads, unsigned registers, const layout_stage *stage, unsigned n)
{
	uint32_t old[MAX_REGISTERS];
	for (unsigned k = 0; k < n; k++)
		for (unsigned t = 0; t < threads; t++) {
			if (odd((t & 31 & stage[k].lane_mask)) == odd(t >> 5 & stage[k].warp_mask)) continue;
			memcpy(old, v[t], registers * sizeof old[0]);
			for (unsigned x = 0; x < registers; x++) v[t][x] = old[x ^ stage[k].reg_xor];
		}
}

static void run_registers(const layout_plan *p, unsigned threads, unsigned from, unsigned to)
{
	run_stages(argument, threads, from, p->before, p->nbefore);
	for (unsigned t = 0; t < threads; t++) {
		uint32_t lane = 0;
		for (unsigned i = 0; i < 5; i++)
			if (t >> i & 1) lane ^= p->lane_from_lane[i];
		for (unsigned i = 0; t >> (5 + i); i++)
			if (t >> (5 + i) & 1) lane ^= p->lane_from_warp[i];
		if (p->lanes_stay) assert_int_equal(lane, t & 31);
		for (unsigned r = 0; r < to; r++) {
			uint32_t sender = (lane ^ layout_plan_lane_xor(p, r)) | (t & ~31u);
			if (p->kind <= LAYOUT_REGISTERS) assert_int_equal(sender, t);
			result[t][r] = argument[sender][layout_plan_register(p, r)];
		}
	}
	run_stages(result, threads, to, p->after, p->nafter);
}

/* Whether a place takes part in a pass, read off the bits one by one. */
static bool in_pass(const layout_place *place, unsigned n, uint32_t pass, unsigned t, uint32_t reg)
{
	for (unsigned k = 0; k < n; k++) {
		uint32_t index = place[k].in == LAYOUT_REG ? reg : place[k].in == LAYOUT_LANE ? t & 31 : t >> 5;
		if ((index >> place[k].bit & 1) != (pass >> k & 1)) return false;
	}
	return true;
}

/* One ldmatrix of a warp, as the PTX manual has it: thread T's word of a matrix is elements of row T / 4, or,
 * transposed, two elements of column T / 4. */
static void run_matrices(const layout_plan *p, uint32_t r, unsigned warp, unsigned element)
{
	unsigned each = 4 / element, across = 16 / element;
	for (unsigned matrix = 0; matrix < 1u << p->lg_matrices; matrix++) {
		uint32_t row[8];
		for (unsigned i = 0; i < 8; i++) {
			row[i] = layout_map_apply(&p->load, r, 8 * matrix + i, warp);
			assert_int_equal(row[i] * element % 16, 0);
		}
		for (unsigned t = 0; t < 32; t++)
			for (unsigned k = 0; k < each; k++) {
				bool trans = p->matrices == LAYOUT_MATRICES_TRANSPOSED;
				unsigned column = trans ? t / 4 : t % 4 * each + k;
				uint32_t at = row[trans ? t % 4 * 2 + k : t / 4] + column;
				assert_true(column < across && writer[at] != NOBODY);
				if (p->kind == LAYOUT_WARP_SHARED) assert_int_equal(writer[at] >> 5, warp);
				uint32_t reg = r | layout_spread(p->load_bit, p->lg_vector_load, matrix * each + k);
				result[32 * warp + t][reg] = scratch[at];
			}
	}
}

static void run_shared(const layout_plan *p, unsigned threads, unsigned from, unsigned to, unsigned element)
{
	uint32_t store_bits = layout_spread(p->store_bit, p->lg_vector_store, ~0u);
	uint32_t load_bits = layout_spread(p->load_bit, p->lg_vector_load, ~0u);
	for (uint32_t pass = 0; pass < 1u << p->lg_passes; pass++) {
		for (uint32_t i = 0; i < p->bytes / element; i++) writer[i] = NOBODY;
		for (unsigned t = 0; t < threads; t++) {
			if ((t & 31 & p->store_free_lane) || (t >> 5 & p->store_free_warp)) continue;
			for (uint32_t r = 0; r < from; r++) {
				if (r & store_bits || !in_pass(p->pass_store, p->lg_passes, pass, t, r)) continue;
				uint32_t base = layout_map_apply(&p->store, r, t & 31, t >> 5);
				assert_int_equal(base % (1u << p->lg_vector_store), 0);
				for (uint32_t k = 0; k < 1u << p->lg_vector_store; k++) {
					uint32_t reg = r | layout_spread(p->store_bit, p->lg_vector_store, k);
					assert_true((base + k) * element < p->bytes);
					assert_int_equal(writer[base + k], NOBODY); /* every element is written once */
					writer[base + k] = (int)t;
					scratch[base + k] = argument[t][reg];
				}
			}
		}
		for (unsigned t = 0; t < threads; t++)
			for (uint32_t r = 0; r < to; r++) {
				if (r & load_bits || !in_pass(p->pass_load, p->lg_passes, pass, t, r)) continue;
				if (p->matrices) {
					if (t % 32 == 0) run_matrices(p, r, t >> 5, element);
					continue;
				}
				uint32_t base = layout_map_apply(&p->load, r, t & 31, t >> 5);
				assert_int_equal(base % (1u << p->lg_vector_load), 0);
				for (uint32_t k = 0; k < 1u << p->lg_vector_load; k++) {
					assert_true(writer[base + k] != NOBODY);
					if (p->kind == LAYOUT_WARP_SHARED)
						assert_int_equal(writer[base + k] >> 5, t >> 5);
					result[t][r | layout_spread(p->load_bit, p->lg_vector_load, k)] =
						scratch[base + k];
				}
			}
	}
}

static layout_plan check(const layout *src, const layout *dst, unsigned element)
{
	layout_plan p;
	layout_plan_conversion(src, dst, element, &p);
	unsigned threads = 32u << src->nin[LAYOUT_WARP], from = layout_registers(src), to = layout_registers(dst);
	assert_true(threads <= MAX_THREADS && from <= MAX_REGISTERS && to <= MAX_REGISTERS);
	for (unsigned t = 0; t < threads; t++) {
		for (unsigned r = 0; r < from; r++) argument[t][r] = layout_apply(src, r, t & 31, t >> 5);
		for (unsigned r = 0; r < to; r++) result[t][r] = UINT32_MAX;
	}
	if (p.kind <= LAYOUT_SHUFFLES) {
		assert_int_equal(p.bytes, 0);
		run_registers(&p, threads, from, to);
	} else {
		assert_true(layout_surjective(&p.shared) || p.lg_passes);
		assert_true(layout_injective(&p.shared));
		run_shared(&p, threads, from, to, element);
	}
	for (unsigned t = 0; t < threads; t++)
		for (unsigned r = 0; r < to; r++) assert_int_equal(result[t][r], layout_apply(dst, r, t & 31, t >> 5));
	return p;
}

/* ---- wavefronts of a whole plan ---- */

static unsigned wavefronts(const layout_map *m, const uint8_t *bit, unsigned lg_vector, unsigned element)
{
	unsigned total = 0;
	uint32_t vector = layout_spread(bit, lg_vector, ~0u), address[32];
	for (uint32_t w = 0; w < 1u << m->nin[LAYOUT_WARP]; w++)
		for (uint32_t r = 0; r < 1u << m->nin[LAYOUT_REG]; r++) {
			if (r & vector) continue;
			for (uint32_t t = 0; t < 32; t++) address[t] = layout_map_apply(m, r, t, w) * element;
			total += layout_wavefronts(address, 32, element << lg_vector);
		}
	return total;
}

/* Of the matrix loads: each matrix's 8 rows are one access. */
static unsigned matrix_wavefronts(const layout_plan *p, unsigned element)
{
	unsigned total = 0;
	uint32_t inside = layout_spread(p->load_bit, p->lg_vector_load, ~0u), address[8];
	for (uint32_t w = 0; w < 1u << p->load.nin[LAYOUT_WARP]; w++)
		for (uint32_t r = 0; r < 1u << p->load.nin[LAYOUT_REG]; r++)
			for (uint32_t matrix = 0; matrix < 1u << p->lg_matrices && !(r & inside); matrix++) {
				for (uint32_t i = 0; i < 8; i++)
					address[i] = layout_map_apply(&p->load, r, 8 * matrix + i, w) * element;
				total += layout_wavefronts(address, 8, 16);
			}
	return total;
}

/* The same accesses on a row-major buffer. */
static unsigned plain_wavefronts(const layout *l, unsigned lg_vector, unsigned element)
{
	layout_map m = {0};
	memcpy(m.nin, l->nin, sizeof m.nin);
	memcpy(m.col, l->col, sizeof m.col);
	uint8_t bit[] = {0, 1, 2, 3};
	return wavefronts(&m, bit, lg_vector, element);
}

/* src bit -> dst bit, of places packed as reg, lane, warp. */
static void check_arrows(const layout *src, const layout *dst, const char *expected)
{
	layout_map m;
	char got[512] = "";
	static const char *const names[] = {"reg", "lane", "warp"};
	assert_true(layout_invert_and_compose(dst, src, &m));
	for (unsigned in = 0; in < 3; in++)
		for (unsigned i = 0; i < m.nin[in]; i++) {
			unsigned to = (unsigned)__builtin_ctz(m.col[in][i]), at = 0;
			assert_int_equal(m.col[in][i], 1u << to);
			while (to >= m.nout[at]) to -= m.nout[at++];
			if (at == in && to == i) continue;
			size_t n = strlen(got);
			snprintf(got + n, sizeof got - n, "%s%s%u->%s%u", n ? " " : "", names[in], i, names[at], to);
		}
	assert_string_equal(got, expected);
}

/* T5: the accumulator of S is the A operand of the second product, for 16-bit types as it is, for 8-bit ones after a
 * permutation of the keys. */
static void test_attention(void **state)
{
	(void)state;
	layout s = layout_wgmma_accumulator(tile2(64, 64), 4);
	layout a16 = layout_mma_operand(tile2(64, 64), false, 2, (mma_warps){1, 4, 1});
	layout_plan p = check(&s, &a16, 2);
	assert_int_equal(p.kind, LAYOUT_SAME);
	layout a8 = layout_mma_operand(tile2(64, 64), false, 4, (mma_warps){1, 4, 1});
	check_arrows(&s, &a8, "reg1->reg2 reg2->lane1 lane0->reg1 lane1->lane0");
	p = check(&s, &a8, 1);
	assert_int_equal(p.kind, LAYOUT_SHUFFLES);
	assert_int_equal(p.nbefore + p.nafter, 2); /* one mixed transposition */
	/* Operand position b3 b2 b1 b0 holds column b1 b3 b2 b0: k0->c0 k1->c3 k2->c1 k3->c2. */
	static const unsigned column_of_key[] = {0, 3, 1, 2};
	layout keys = a8;
	for (unsigned in = 0; in < 3; in++)
		for (unsigned i = 0; i < a8.nin[in]; i++)
			for (unsigned k = 0; k < 4; k++)
				if (a8.col[in][i] == 1u << k) keys.col[in][i] = 1u << column_of_key[k];
	p = check(&s, &keys, 1);
	assert_int_equal(p.kind, LAYOUT_REGISTERS); /* nothing moves between lanes */
}

/* T6 */
static void test_worked_conversions(void **state)
{
	(void)state;
	layout a = blocked2(16, 16, 1, 8, 16, 2, 1, 1, false);
	layout b = layout_mma_operand(tile2(16, 16), false, 2, (mma_warps){1, 1, 1});
	check_arrows(&a, &b, "reg1->lane0 reg2->lane1 lane0->reg2 lane1->lane2 lane2->lane3 lane3->lane4 lane4->reg1");
	assert_int_equal(check(&a, &b, 2).kind, LAYOUT_WARP_SHARED); /* m = 2 */
	a = blocked2(16, 16, 1, 4, 8, 4, 1, 1, false);
	b = blocked2(16, 16, 4, 1, 4, 8, 1, 1, true);
	check_arrows(&a, &b,
		"reg0->lane2 reg1->lane3 reg2->lane1 lane0->lane4 lane1->reg2 lane2->reg0 lane3->reg1 lane4->lane0");
	assert_int_equal(check(&a, &b, 4).kind, LAYOUT_WARP_SHARED); /* m = 3 */
	a = layout_wgmma_accumulator(tile2(64, 64), 4);
	b = blocked2(64, 64, 1, 8, 4, 8, 4, 1, false);
	layout_map m;
	assert_true(layout_invert_and_compose(&b, &a, &m));
	assert_int_equal(m.col[LAYOUT_REG][1], 1u << (5 + 5 + 1)); /* reg1 -> warp1 */
	assert_int_equal(m.col[LAYOUT_WARP][0], 1u << 3);          /* warp0 -> reg3 */
	assert_int_equal(m.col[LAYOUT_WARP][1], 1u << 4);          /* warp1 -> reg4 */
	assert_int_equal(check(&a, &b, 2).kind, LAYOUT_CTA_SHARED);
}

static void test_roads(void **state)
{
	(void)state;
	ir_type t = tile2(4, 32);
	layout a = parse("reg (0,1)(0,2) lane (0,4)(0,8)(0,16)(1,0)(2,0) warp ()", t);
	assert_int_equal(check(&a, &a, 4).kind, LAYOUT_SAME);
	layout b = parse("reg (0,2)(0,1) lane (0,4)(0,8)(0,16)(1,0)(2,0) warp ()", t);
	assert_int_equal(check(&a, &b, 4).kind, LAYOUT_REGISTERS);
	b = parse(
		"reg (0,1)(0,2) lane (1,0)(2,0)(0,4)(0,8)(0,16) warp ()", t); /* lanes turn: one shfl.idx a register */
	layout_plan p = check(&a, &b, 4);
	assert_int_equal(p.kind, LAYOUT_SHUFFLES);
	assert_int_equal(p.nbefore + p.nafter, 0);
	assert_false(p.lanes_stay);
	b = parse("reg (0,4)(0,2) lane (0,1)(0,8)(0,16)(1,0)(2,0) warp ()", t); /* a swap: select, bfly, select */
	p = check(&a, &b, 4);
	assert_int_equal(p.kind, LAYOUT_SHUFFLES);
	assert_true(p.lanes_stay && p.nbefore == 1 && p.nafter == 1);
	assert_int_equal(p.before[0].lane_mask, 1);
	assert_int_equal(p.after[0].reg_xor, 1);
	unsigned shuffles = 0;
	for (uint32_t r = 0; r < 4; r++) shuffles += layout_plan_lane_xor(&p, r) != 0;
	assert_int_equal(shuffles, 2);                                          /* half of the registers stay */
	b = parse("reg (0,4)(0,8) lane (0,1)(0,2)(0,16)(1,0)(2,0) warp ()", t); /* two swaps */
	assert_int_equal(check(&a, &b, 4).kind, LAYOUT_WARP_SHARED);
	/* Every lane holds all: selects in the own lane, no shuffle. */
	a = parse("reg (1)(2) lane (0)(0)(4)(0)(0) warp (8)", ir_tile_type(SCALAR_F32, 1, (uint32_t[]){16}));
	b = parse("reg () lane (1)(2)(4)(0)(0) warp (8)", ir_tile_type(SCALAR_F32, 1, (uint32_t[]){16}));
	p = check(&a, &b, 4);
	assert_int_equal(p.kind, LAYOUT_SHUFFLES);
	assert_true(p.lanes_stay);
	assert_int_equal(layout_plan_lane_xor(&p, 0), 0);
	assert_int_equal(p.nbefore, 2);
	/* The inverse reads other lanes. */
	p = check(&b, &a, 4);
	assert_int_equal(p.kind, LAYOUT_SHUFFLES);
	assert_int_equal(p.nbefore + p.nafter, 0);
	/* Warps that repeat a tile may use their own copy. */
	a = parse("reg (1) lane (2)(4)(8)(0)(0) warp (0)(0)", ir_tile_type(SCALAR_F32, 1, (uint32_t[]){16}));
	b = parse("reg (1) lane (0)(0)(2)(4)(8) warp (0)(0)", ir_tile_type(SCALAR_F32, 1, (uint32_t[]){16}));
	assert_int_equal(check(&a, &b, 4).kind, LAYOUT_SHUFFLES);
}

/* T9 */
static void test_swizzle_choice(void **state)
{
	(void)state;
	/* Dimensions transposed, so that row bits are the low ones, as in the worked example. */
	layout a = parse("reg (1,0)(2,0)(0,8) lane (4,0)(8,0)(0,1)(0,2)(0,4) warp ()", tile2(16, 16));
	layout b = parse("reg (0,1)(0,2)(8,0) lane (0,4)(0,8)(1,0)(2,0)(4,0) warp ()", tile2(16, 16));
	layout_plan p = check(&a, &b, 4);
	static const uint32_t expected[] = {34, 68, 1, 2, 4, 144, 8, 16}; /* r1 r2 r4 r8 c1 c2 c4 c8 */
	for (unsigned bit = 0; bit < 8; bit++)
		for (unsigned in = 0; in < 2; in++)
			for (unsigned i = 0; i < a.nin[in]; i++)
				if (a.col[in][i] == 1u << bit) assert_int_equal(p.store.col[in][i], expected[bit]);
	assert_int_equal(p.bytes, 1024);
	assert_int_equal(wavefronts(&p.store, p.store_bit, p.lg_vector_store, 4), 8);
	assert_int_equal(wavefronts(&p.load, p.load_bit, p.lg_vector_load, 4), 8);
	assert_int_equal(plain_wavefronts(&a, 0, 4), 32);
	assert_int_equal(plain_wavefronts(&b, 0, 4), 32);
	a = layout_wgmma_accumulator(tile2(64, 64), 4);
	b = blocked2(64, 64, 1, 8, 4, 8, 4, 1, false);
	p = check(&a, &b, 2);
	assert_int_equal(p.matrices, LAYOUT_MATRICES);
	assert_int_equal(p.lg_vector_store, 3);
	assert_int_equal(wavefronts(&p.store, p.store_bit, 3, 2), 64);
	assert_int_equal(matrix_wavefronts(&p, 2), 64);
	assert_int_equal(plain_wavefronts(&a, 1, 2), 512);
	assert_int_equal(plain_wavefronts(&b, 1, 2), 256);
}

/* T8: eight rows of 16 bytes at one column, as a matrix load reads them. */
static unsigned column_read(unsigned pitch, unsigned swizzle)
{
	uint32_t address[32];
	unsigned mask = swizzle ? swizzle / 16 - 1 : 0, most = 0;
	for (unsigned chunk = 0; chunk * 16 + 16 <= pitch; chunk++) {
		for (unsigned row = 0; row < 8; row++) {
			uint32_t a = row * pitch + chunk * 16;
			address[row] = a ^ (a >> 7 & mask) << 4;
		}
		unsigned n = layout_wavefronts(address, 8, 16);
		if (n > most) most = n;
	}
	return most;
}

static void test_bank_model(void **state)
{
	(void)state;
	assert_int_equal(column_read(128, 0), 8);
	assert_int_equal(column_read(64, 0), 4);
	assert_int_equal(column_read(32, 0), 2);
	assert_int_equal(column_read(128, 128), 1);
	assert_int_equal(column_read(64, 64), 1);
	assert_int_equal(column_read(32, 32), 1);
	assert_int_equal(column_read(144, 0), 1);
	uint32_t address[32];
	for (unsigned i = 0; i < 32; i++) address[i] = 2 * i; /* two lanes share a word */
	assert_int_equal(layout_wavefronts(address, 32, 2), 1);
	for (unsigned i = 0; i < 32; i++) address[i] = 16 * i;
	assert_int_equal(layout_wavefronts(address, 32, 16), 4); /* the least for 512 bytes */
	for (unsigned i = 0; i < 32; i++) address[i] = 128 * i;
	assert_int_equal(layout_wavefronts(address, 32, 4), 32);
	/* stmatrix of a wgmma accumulator: rows of 128 bytes, swizzled, every eight lanes one wavefront. */
	for (unsigned i = 0; i < 32; i++) address[i] = (i & 15) * 128 + (((i & 7) ^ (i >> 4)) << 4);
	assert_int_equal(layout_wavefronts(address, 32, 16), 4);
}

static void test_passes(void **state)
{
	(void)state;
	layout a = blocked2(64, 256, 1, 4, 1, 32, 8, 1, false);
	layout b = blocked2(64, 256, 4, 1, 1, 32, 8, 1, true);
	for (unsigned element = 1; element <= 8; element *= 2) {
		layout_plan p = check(&a, &b, element);
		assert_true(p.kind == LAYOUT_CTA_SHARED);
		assert_true(p.bytes <= LAYOUT_SCRATCH_LIMIT);
		assert_int_equal(p.bytes << p.lg_passes, 64 * 256 * element);
	}
}

/* Layouts without a common register bit: passes in which only some threads take part. */
static void test_passes_of_some_threads(void **state)
{
	(void)state;
	static const uint32_t tiles[][3] = {{256, 256, 16}, {512, 128, 8}, {128, 512, 8}, {256, 256, 32}, {32, 128, 1}};
	unsigned by_some = 0;
	for (unsigned k = 0; k < sizeof tiles / sizeof tiles[0]; k++)
		for (unsigned element = 1; element <= 8; element *= 2) {
			uint32_t rows = tiles[k][0], columns = tiles[k][1];
			uint8_t forward[] = {1, 0}, backward[] = {0, 1};
			layout a = layout_coalesced(tile2(rows, columns), 4 - element / 2, forward, tiles[k][2]);
			layout b = layout_coalesced(tile2(rows, columns), 4 - element / 2, backward, tiles[k][2]);
			layout_plan p = check(&a, &b, element);
			assert_true(p.bytes <= LAYOUT_SCRATCH_MOST);
			assert_int_equal(p.bytes << p.lg_passes, rows * columns * element);
			for (unsigned i = 0; i < p.lg_passes; i++)
				by_some += p.pass_store[i].in != LAYOUT_REG || p.pass_load[i].in != LAYOUT_REG;
			/* registers on one side, whole warps on the other, wherever there are such bits */
			for (unsigned i = 0; i < p.lg_passes && tiles[k][2] >= 8; i++) {
				assert_true(p.pass_store[i].in == LAYOUT_REG || p.pass_load[i].in == LAYOUT_REG);
				assert_true(p.pass_store[i].in != LAYOUT_LANE && p.pass_load[i].in != LAYOUT_LANE);
			}
		}
	assert_true(by_some > 8);
	/* One side's registers are the other's lanes, and warps stay apart. */
	layout a = parse("reg (1)(2)(4)(8)(16) lane (32)(64)(128)(256)(512) warp (1024)(2048)(4096)(8192)(16384)",
		ir_tile_type(SCALAR_F32, 1, (uint32_t[]){32768}));
	layout b = parse("reg (32)(64)(128)(256)(512) lane (1)(2)(4)(8)(16) warp (1024)(2048)(4096)(8192)(16384)",
		ir_tile_type(SCALAR_F32, 1, (uint32_t[]){32768}));
	layout_plan p = check(&a, &b, 8);
	assert_int_equal(p.kind, LAYOUT_WARP_SHARED);
	assert_int_equal(p.lg_passes, 2);
	assert_int_equal(p.bytes, 65536);
	/* of registers against lanes the highest register */
	assert_true(p.pass_store[0].in == LAYOUT_REG && p.pass_store[0].bit == 4);
	assert_true(p.pass_load[0].in == LAYOUT_LANE && p.pass_load[0].bit == 4);
	assert_true(p.pass_store[1].in == LAYOUT_LANE && p.pass_store[1].bit == 4);
	assert_true(p.pass_load[1].in == LAYOUT_REG && p.pass_load[1].bit == 4);
	/* Of bits of all kinds, registers against whole warps: 16, a's highest register, then 1024, b's lowest. */
	b = parse("reg (1024)(32)(64)(128)(256) lane (1)(2)(4)(8)(2048) warp (16)(512)(4096)(8192)(16384)",
		ir_tile_type(SCALAR_F32, 1, (uint32_t[]){32768}));
	p = check(&a, &b, 8);
	assert_int_equal(p.kind, LAYOUT_CTA_SHARED);
	assert_int_equal(p.lg_passes, 2);
	assert_true(p.pass_store[0].in == LAYOUT_REG && p.pass_store[0].bit == 4);
	assert_true(p.pass_load[0].in == LAYOUT_WARP && p.pass_load[0].bit == 0);
	assert_true(p.pass_store[1].in == LAYOUT_WARP && p.pass_store[1].bit == 0);
	assert_true(p.pass_load[1].in == LAYOUT_REG && p.pass_load[1].bit == 0);
}

/* ---- small-scope exhaustion ---- */

/* Deals `bits` coordinates to registers, lanes and warps in every order; calls use() on each plain layout. */
typedef struct all_layouts {
	VEC(layout) found;
	arena *arena;
} all_layouts;

static void deal(all_layouts *all, layout *l, unsigned bit, unsigned bits, unsigned warps)
{
	if (bit == bits) {
		vec_push(all->arena, &all->found, *l);
		return;
	}
	for (unsigned at = 0; at <= l->nin[LAYOUT_REG]; at++) { /* register orders */
		layout next = *l;
		memmove(&next.col[0][at + 1], &next.col[0][at], (l->nin[0] - at) * sizeof next.col[0][0]);
		next.col[0][at] = 1u << bit;
		next.nin[0]++;
		deal(all, &next, bit + 1, bits, warps);
	}
	for (unsigned place = 0; place < 5 + warps; place++) {
		unsigned in = place < 5 ? LAYOUT_LANE : LAYOUT_WARP, i = place < 5 ? place : place - 5;
		if (l->col[in][i]) continue;
		layout next = *l;
		next.col[in][i] = 1u << bit;
		deal(all, &next, bit + 1, bits, warps);
	}
}

static void test_small_scope(void **state)
{
	static jmp_buf out;
	arena memory = {.recover = &out};
	(void)state;
	if (setjmp(out)) fail();
	unsigned seen[5] = {0};
	for (unsigned bits = 1; bits <= 4; bits++) {
		unsigned warps = bits < 4;
		all_layouts all = {.arena = &memory};
		uint32_t dim[] = {1u << bits};
		layout l = layout_of_shape(ir_tile_type(SCALAR_F32, 1, dim));
		l.nin[LAYOUT_LANE] = 5;
		l.nin[LAYOUT_WARP] = (uint8_t)warps;
		deal(&all, &l, 0, bits, warps);
		for (uint32_t i = 0; i < all.found.n; i++)
			for (uint32_t k = 0; k < all.found.n; k++)
				seen[check(&all.found.at[i], &all.found.at[k], 4).kind]++;
	}
	arena_free(&memory);
	for (unsigned kind = LAYOUT_SAME; kind <= LAYOUT_CTA_SHARED; kind++) assert_true(seen[kind] > 100);
}

static layout random_copies(unsigned bits, unsigned warps)
{
	uint32_t dim[] = {1u << bits};
	layout l = random_layout(ir_tile_type(SCALAR_F32, 1, dim), warps);
	for (unsigned i = 0; i < 5 + warps; i++) { /* some copies that are not plain repetition */
		uint32_t *c = i < 5 ? &l.col[LAYOUT_LANE][i] : &l.col[LAYOUT_WARP][i - 5];
		if (!*c && rand() % 4 == 0) *c = 1u << (unsigned)rand() % bits;
	}
	return l;
}

static void test_random(void **state)
{
	(void)state;
	srand(11);
	unsigned seen[5] = {0};
	for (unsigned round = 0; round < 20000; round++) {
		unsigned bits = 3 + (unsigned)rand() % 6, warps = (unsigned)rand() % 4;
		layout a = random_copies(bits, warps), b = random_copies(bits, warps);
		if (rand() % 2) { /* near relatives: a swap of two places */
			b = a;
			unsigned i = (unsigned)rand() % (b.nin[0] + 5), k = (unsigned)rand() % (b.nin[0] + 5);
			uint32_t *x = i < b.nin[0] ? &b.col[0][i] : &b.col[1][i - b.nin[0]];
			uint32_t *y = k < b.nin[0] ? &b.col[0][k] : &b.col[1][k - b.nin[0]];
			uint32_t old = *x;
			*x = *y;
			*y = old;
			if (!layout_plain(&b)) continue;
		}
		seen[check(&a, &b, 1u << rand() % 4).kind]++;
	}
	for (unsigned kind = LAYOUT_SAME; kind <= LAYOUT_CTA_SHARED; kind++) assert_true(seen[kind] > 100);
}

/* Accesses of a whole tile times the wavefronts that 32 lanes cost at least. */
static unsigned ideal(const layout *l, unsigned lg_vector, unsigned element)
{
	unsigned bytes = element << lg_vector, accesses = layout_registers(l) >> lg_vector << l->nin[LAYOUT_WARP];
	return accesses * (bytes > 4 ? bytes / 4 : 1);
}

static void test_conflict_free(void **state)
{
	(void)state;
	for (unsigned element = 1; element <= 8; element *= 2)
		for (unsigned k = 0; k < 4; k++) {
			unsigned rows = k & 2 ? 8 : 4;
			layout a = blocked2(64, 64, 1, k & 1 ? 8 : 4, rows, 32 / rows, 4, 1, false);
			layout b = blocked2(64, 64, 4, 1, 8, 4, 1, 4, true);
			layout_plan p = check(&a, &b, element);
			unsigned v = p.lg_vector_store, w = p.lg_vector_load;
			assert_int_equal(wavefronts(&p.store, p.store_bit, v, element), ideal(&a, v, element));
			assert_int_equal(wavefronts(&p.load, p.load_bit, w, element), ideal(&b, w, element));
		}
}

/* Operands of products, from coalesced loads of both orders of memory: always right, and by matrix loads without
 * conflicts wherever the instruction has the order. */
static void test_operands(void **state)
{
	(void)state;
	unsigned found = 0;
	for (unsigned lg_element = 0; lg_element <= 3; lg_element++)
		for (uint32_t m = 1; m <= 128; m *= 2)
			for (uint32_t k = 1; k <= 64; k *= 2)
				for (unsigned variant = 0; variant < 16; variant++) {
					unsigned element = 1u << lg_element, warps = 1u << variant % 4;
					bool is_b = variant >> 2 & 1, across = variant >> 3;
					mma_warps split = {1, warps > 2 ? 2 : warps, warps > 2 ? warps / 2 : 1};
					uint8_t order[] = {1, 0}, crossed[] = {0, 1};
					ir_type shape = is_b ? tile2(k, m) : tile2(m, k);
					layout a = layout_coalesced(
						shape, 4 - lg_element, across ? crossed : order, warps);
					layout b =
						layout_mma_operand(shape, is_b, element < 4 ? 4 / element : 1, split);
					if (layout_registers(&b) > MAX_REGISTERS) continue;
					layout_plan p = check(&a, &b, element);
					bool along_k = is_b == across;
					bool fits = m >= 8 && k >= 16 / element && element <= 4 &&
						    (along_k || element == 2);
					if (fits && (along_k || m * 2 >= 16) && p.kind >= LAYOUT_WARP_SHARED) {
						assert_int_not_equal(p.matrices, LAYOUT_NO_MATRICES);
						found++;
					}
					if (!p.matrices) continue;
					unsigned v = p.lg_vector_store, n = layout_registers(&b) * element / 4;
					assert_int_equal(matrix_wavefronts(&p, element), n << b.nin[LAYOUT_WARP]);
					if (!p.store_free_lane && !p.store_free_warp)
						assert_int_equal(wavefronts(&p.store, p.store_bit, v, element),
							ideal(&a, v, element));
				}
	assert_true(found > 500);
	/* With a batch in front, which warps share first. */
	ir_type shape = ir_tile_type(SCALAR_F16, 3, (uint32_t[]){4, 16, 32});
	layout a = layout_coalesced(shape, 3, (uint8_t[]){2, 1, 0}, 4);
	layout b = layout_mma_operand(shape, false, 2, (mma_warps){4, 1, 1});
	assert_int_equal(check(&a, &b, 2).matrices, LAYOUT_MATRICES);
}

/* A sum, turned round, becomes an operand (ds of attention for dq): a thread stores a word of a row of 16 bytes, four
 * lanes the row; matrix loads turn it.  Nobody puts halves of words together, and no banks meet. */
static void test_turned_sums(void **state)
{
	(void)state;
	unsigned found = 0;
	for (uint32_t m = 16; m <= 128; m *= 2)
		for (uint32_t n = 16; n <= 128; n *= 2)
			for (unsigned k = 0; k < 8; k++) {
				unsigned warps = 1u << k % 4;
				bool is_b = k >> 2;
				mma_warps split = {1, warps > 2 ? 2 : warps, warps > 2 ? warps / 2 : 1};
				layout sum = layout_mma_accumulator(tile2(m, n), split);
				layout turned = layout_permute(&sum, (uint8_t[]){1, 0});
				layout operand = layout_mma_operand(tile2(n, m), is_b, 2, split);
				if (layout_registers(&turned) > MAX_REGISTERS ||
					layout_registers(&operand) > MAX_REGISTERS)
					continue;
				layout_plan p = check(&turned, &operand, 2);
				if (p.kind < LAYOUT_WARP_SHARED || p.matrices != LAYOUT_MATRICES_TRANSPOSED) continue;
				found++;
				unsigned words = layout_registers(&operand) / 2;
				assert_int_equal(matrix_wavefronts(&p, 2), words << operand.nin[LAYOUT_WARP]);
				if (!p.store_free_lane && !p.store_free_warp && p.lg_vector_store)
					assert_int_equal(wavefronts(&p.store, p.store_bit, p.lg_vector_store, 2),
						ideal(&turned, p.lg_vector_store, 2));
			}
	assert_true(found > 40);
}

/* Where a bulk copy of rows puts an element, in bytes, as the PTX manual has it: panels of `wide` bytes, one row after
 * the other, and the 16-byte chunk of a row flipped by bits 7.. of the address. */
static uint32_t copied_to(
	uint32_t row, uint32_t column, uint32_t rows, uint32_t columns, unsigned element, unsigned wide)
{
	if (!wide) return (row * columns + column) * element;
	uint32_t byte = column * element, width = wide;
	uint32_t address = byte / width * rows * width + row * width + byte % width;
	return address ^ ((address >> 7 & 7) & (width / 16 - 1)) << 4;
}

static void check_copied(
	ir_type shape, const layout *src, const layout *dst, uint32_t rows, unsigned element, unsigned wide)
{
	layout shared = layout_swizzled_shared(shape, element, wide);
	layout_plan p, store;
	layout_plan_load(&shared, dst, element, &p);
	layout_plan_store(src, &shared, element, &store);
	p.store = store.store;
	p.lg_vector_store = store.lg_vector_store;
	memcpy(p.store_bit, store.store_bit, sizeof p.store_bit);
	p.store_free_lane = store.store_free_lane;
	p.store_free_warp = store.store_free_warp;
	unsigned threads = 32u << src->nin[LAYOUT_WARP], from = layout_registers(src), to = layout_registers(dst);
	for (unsigned t = 0; t < threads; t++) {
		for (unsigned r = 0; r < from; r++) argument[t][r] = layout_apply(src, r, t & 31, t >> 5);
		for (unsigned r = 0; r < to; r++) result[t][r] = UINT32_MAX;
	}
	run_shared(&p, threads, from, to, element);
	unsigned columns = 1u << dst->lg[dst->rank - 1];
	for (uint32_t e = 0; e < p.bytes / element; e++)
		assert_int_equal(
			scratch[copied_to(e / columns, e % columns, rows, columns, element, wide) / element], e);
	for (unsigned t = 0; t < threads; t++)
		for (unsigned r = 0; r < to; r++) assert_int_equal(result[t][r], layout_apply(dst, r, t & 31, t >> 5));
}

/* Every small block, read and written by coalesced layouts along and across, and by operands of products. */
static void test_copied_blocks(void **state)
{
	(void)state;
	unsigned matrices = 0;
	for (unsigned lg_element = 0; lg_element < 4; lg_element++)
		for (uint32_t rows = 1; rows <= 64; rows *= 2)
			for (uint32_t columns = 16u >> lg_element; columns <= 256u >> lg_element; columns *= 2)
				for (unsigned variant = 0; variant < 16; variant++) {
					unsigned element = 1u << lg_element, warps = 1u << variant % 4;
					unsigned bytes = columns * element, wide = bytes >= 128  ? 128
										   : bytes >= 32 ? bytes
												 : 0;
					if (bytes > 128 && rows < 8) wide = 0;
					uint8_t along[] = {1, 0}, across[] = {0, 1};
					ir_type shape = tile2(rows, columns);
					layout a =
						layout_coalesced(shape, variant & 4 ? 0 : 4 - lg_element, along, warps);
					layout b = layout_coalesced(shape, 4 - lg_element, across, warps);
					if (variant & 8 && rows >= 8)
						b = layout_mma_operand(shape, variant & 4,
							element < 4 ? 4 / element : 1, (mma_warps){1, warps, 1});
					if (layout_registers(&a) > MAX_REGISTERS ||
						layout_registers(&b) > MAX_REGISTERS)
						continue;
					check_copied(shape, &a, &b, rows, element, wide);
					check_copied(shape, &b, &a, rows, element, wide);
					layout_plan p;
					layout shared = layout_swizzled_shared(shape, element, wide);
					layout_plan_load(&shared, &b, element, &p);
					matrices += p.matrices != LAYOUT_NO_MATRICES;
				}
	assert_true(matrices > 100);
	ir_type shape = ir_tile_type(SCALAR_F16, 3, (uint32_t[]){2, 8, 128});
	layout a = layout_coalesced(shape, 3, (uint8_t[]){2, 1, 0}, 4),
	       b = layout_coalesced(shape, 0, (uint8_t[]){0, 2, 1}, 4);
	check_copied(shape, &a, &b, 16, 2, 128);
}

static void test_contiguous(void **state)
{
	(void)state;
	layout l = blocked2(64, 64, 2, 4, 8, 4, 4, 1, false);
	assert_int_equal(layout_lg_contiguous(&l, 1), 2);
	assert_int_equal(layout_lg_contiguous(&l, 0), 0);
	l = blocked2(64, 64, 2, 4, 8, 4, 4, 1, true);
	assert_int_equal(layout_lg_contiguous(&l, 0), 1);
	l = layout_coalesced(tile2(1, 8), 3, (uint8_t[]){1, 0}, 4);
	assert_int_equal(layout_lg_contiguous(&l, 1), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_worked_conversions),
		cmocka_unit_test(test_roads),
		cmocka_unit_test(test_swizzle_choice),
		cmocka_unit_test(test_bank_model),
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_passes_of_some_threads),
		cmocka_unit_test(test_small_scope),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_conflict_free),
		cmocka_unit_test(test_contiguous),
		cmocka_unit_test(test_copied_blocks),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_turned_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
