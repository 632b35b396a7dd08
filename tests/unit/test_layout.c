/* The layout algebra against worked examples (fragment formulas of the PTX manual, swizzle formulas of the TMA) and
 * exhaustively over small layouts. */
#include "memory.h"
#include "../../compiler/layout/layout.h"

static ir_type tile(unsigned rank, uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t dim[] = {a, b, c};
	return ir_tile_type(SCALAR_F32, rank, dim);
}

static void check_text(const layout *l, const char *expected)
{
	text out = {.arena = &memory};
	layout_print(&out, l);
	assert_string_equal(out.at, expected);
}

/* The layout that prints like this; also tests that text goes in and comes out the same. */
static layout parse(const char *s, ir_type shape)
{
	layout l;
	const char *at = s;
	assert_true(layout_parse(&at, shape, &l));
	assert_int_equal(*at, 0);
	check_text(&l, s);
	return l;
}

static void check_place(const layout *l, uint32_t reg, uint32_t lane, uint32_t warp, unsigned row, unsigned column)
{
	uint32_t flat = layout_apply(l, reg, lane, warp);
	assert_int_equal(layout_coordinate(l, flat, 0), row);
	assert_int_equal(layout_coordinate(l, flat, 1), column);
}

/* T1: the m16n8 accumulator and the operand fragments, by the formulas of the PTX manual. */
static void test_fragments(void **state)
{
	(void)state;
	layout c = layout_mma_accumulator(tile(2, 16, 8, 0), (mma_warps){1, 1, 1});
	check_text(&c, "reg (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp ()");
	layout a16 = layout_mma_operand(tile(2, 16, 16, 0), false, 2, (mma_warps){1, 1, 1});
	layout b16 = layout_mma_operand(tile(2, 16, 8, 0), true, 2, (mma_warps){1, 1, 1});
	layout a32 = layout_mma_operand(tile(2, 16, 8, 0), false, 1, (mma_warps){1, 1, 1});
	layout b32 = layout_mma_operand(tile(2, 8, 8, 0), true, 1, (mma_warps){1, 1, 1});
	layout a8 = layout_mma_operand(tile(2, 16, 32, 0), false, 4, (mma_warps){1, 1, 1});
	layout b8 = layout_mma_operand(tile(2, 32, 8, 0), true, 4, (mma_warps){1, 1, 1});
	for (unsigned lane = 0; lane < 32; lane++) {
		unsigned g = lane / 4, t = lane % 4;
		for (unsigned i = 0; i < 4; i++) check_place(&c, i, lane, 0, g + (i >= 2 ? 8 : 0), 2 * t + (i & 1));
		for (unsigned i = 0; i < 8; i++) /* a0 a1 rows g, a2 a3 rows g+8, a4.. columns + 8 */
			check_place(&a16, i, lane, 0, g + (i & 2 ? 8 : 0), 2 * t + (i & 1) + (i >= 4 ? 8 : 0));
		for (unsigned i = 0; i < 4; i++) check_place(&b16, i, lane, 0, 2 * t + (i & 1) + (i >= 2 ? 8 : 0), g);
		for (unsigned i = 0; i < 4; i++)
			check_place(&a32, i, lane, 0, g + (i & 1 ? 8 : 0), t + (i >= 2 ? 4 : 0));
		for (unsigned i = 0; i < 2; i++) check_place(&b32, i, lane, 0, t + 4 * i, g);
		for (unsigned i = 0; i < 16; i++)
			check_place(&a8, i, lane, 0, g + (i & 4 ? 8 : 0), 4 * t + (i & 3) + (i >= 8 ? 16 : 0));
		for (unsigned i = 0; i < 8; i++) check_place(&b8, i, lane, 0, 4 * t + (i & 3) + (i >= 4 ? 16 : 0), g);
	}
	assert_true(layout_injective(&a8) && layout_surjective(&a8));
	/* Warps along M repeat B, warps along N repeat A. */
	layout a = layout_mma_operand(tile(2, 64, 32, 0), false, 2, (mma_warps){1, 2, 2});
	layout b = layout_mma_operand(tile(2, 32, 64, 0), true, 2, (mma_warps){1, 2, 2});
	check_text(&a, "reg (0,1)(8,0)(0,8)(0,16)(32,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(0,0)");
	check_text(&b, "reg (1,0)(8,0)(0,16)(0,32)(16,0) lane (2,0)(4,0)(0,1)(0,2)(0,4) warp (0,0)(0,8)");
	assert_int_equal(layout_free_mask(&a, LAYOUT_WARP), 2);
	assert_int_equal(layout_free_mask(&b, LAYOUT_WARP), 1);
}

/* T2 */
static void test_wgmma(void **state)
{
	(void)state;
	for (uint32_t n = 8; n <= 256; n *= 2) {
		layout l = layout_wgmma_accumulator(tile(2, 64, n, 0), 4);
		assert_true(layout_injective(&l) && layout_surjective(&l));
		assert_int_equal(layout_bits(&l), 6 + __builtin_ctz(n));
		for (unsigned warp = 0; warp < 4; warp++)
			for (unsigned lane = 0; lane < 32; lane++)
				for (unsigned i = 0; i < n / 2; i++)
					check_place(&l, i, lane, warp, 16 * warp + lane / 4 + 8 * (i >> 1 & 1),
						8 * (i >> 2) + 2 * (lane % 4) + (i & 1));
	}
	layout two = layout_wgmma_accumulator(tile(2, 128, 16, 0), 8);
	check_text(&two, "reg (0,1)(8,0)(0,8) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(32,0)(64,0)");
	layout columns = layout_wgmma_accumulator(tile(2, 64, 16, 0), 8);
	check_text(&columns, "reg (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(32,0)(0,8)");
}

static layout blocked2(
	uint32_t m, uint32_t n, uint32_t p0, uint32_t p1, uint32_t t0, uint32_t t1, uint32_t w0, uint32_t w1)
{
	uint32_t p[] = {p0, p1}, t[] = {t0, t1}, w[] = {w0, w1};
	uint8_t order[] = {1, 0};
	return layout_blocked(tile(2, m, n, 0), p, t, w, order);
}

/* T3 */
static void test_blocked(void **state)
{
	(void)state;
	layout l = blocked2(16, 16, 1, 8, 16, 2, 1, 1);
	check_text(&l, "reg (0,1)(0,2)(0,4) lane (0,8)(1,0)(2,0)(4,0)(8,0) warp ()");
	l = blocked2(64, 64, 1, 8, 4, 8, 4, 1);
	check_text(&l, "reg (0,1)(0,2)(0,4)(16,0)(32,0) lane (0,8)(0,16)(0,32)(1,0)(2,0) warp (4,0)(8,0)");
	layout rows = layout_slice(&l, 1), columns = layout_slice(&l, 0);
	check_text(&rows, "reg (16)(32) lane (0)(0)(0)(1)(2) warp (4)(8)");
	check_text(&columns, "reg (1)(2)(4) lane (8)(16)(32)(0)(0) warp (0)(0)");
	assert_int_equal(layout_free_mask(&rows, LAYOUT_LANE), 7);
	assert_int_equal(layout_free_mask(&columns, LAYOUT_LANE), 24);
	assert_int_equal(layout_free_mask(&columns, LAYOUT_WARP), 3);
	/* Row statistics of the accumulator live in every fourth lane. */
	layout c = layout_wgmma_accumulator(tile(2, 64, 64, 0), 4);
	layout s = layout_slice(&c, 1);
	check_text(&s, "reg (8) lane (0)(0)(1)(2)(4) warp (16)(32)");
	assert_int_equal(layout_free_mask(&s, LAYOUT_LANE), 3);
	/* Fewer elements than threads. */
	l = blocked2(2, 8, 1, 4, 2, 16, 4, 1);
	check_text(&l, "reg (0,1)(0,2) lane (0,4)(0,0)(0,0)(0,0)(1,0) warp (0,0)(0,0)");
	assert_true(layout_surjective(&l) && !layout_injective(&l));
}

static void test_coalesced(void **state)
{
	(void)state;
	uint8_t one[] = {0}, order[] = {1, 0}, transposed[] = {0, 1};
	layout l = layout_coalesced(tile(1, 1024, 0, 0), 2, one, 4);
	check_text(&l, "reg (1)(2)(512) lane (4)(8)(16)(32)(64) warp (128)(256)");
	l = layout_coalesced(tile(1, 16, 0, 0), 0, one, 4);
	check_text(&l, "reg () lane (1)(2)(4)(8)(0) warp (0)(0)");
	l = layout_coalesced(tile(2, 64, 128, 0), 2, order, 4);
	check_text(&l, "reg (0,1)(0,2)(4,0)(8,0)(16,0)(32,0) lane (0,4)(0,8)(0,16)(0,32)(0,64) warp (1,0)(2,0)");
	l = layout_coalesced(tile(2, 64, 16, 0), 2, order, 2);
	check_text(&l, "reg (0,1)(0,2)(16,0)(32,0) lane (0,4)(0,8)(1,0)(2,0)(4,0) warp (8,0)");
	l = layout_coalesced(tile(2, 64, 16, 0), 2, transposed, 2);
	check_text(&l, "reg (1,0)(2,0)(0,4)(0,8) lane (4,0)(8,0)(16,0)(32,0)(0,1) warp (0,2)");
	uint32_t big[] = {1024, 1024};
	l = layout_coalesced(ir_tile_type(SCALAR_F32, 2, big), 2, order, 1);
	assert_int_equal(l.nin[LAYOUT_REG], 15);
	assert_true(layout_surjective(&l) && layout_injective(&l) && layout_plain(&l));
}

/* T4 */
static void test_inverse(void **state)
{
	(void)state;
	srand(7);
	for (unsigned round = 0; round < 200; round++) {
		layout l = layout_of_shape(tile(1, 512, 0, 0));
		l.nin[LAYOUT_REG] = 3;
		l.nin[LAYOUT_LANE] = 5;
		l.nin[LAYOUT_WARP] = 1;
		do
			for (unsigned in = 0; in < 3; in++)
				for (unsigned i = 0; i < l.nin[in]; i++) l.col[in][i] = (uint32_t)rand() & 511;
		while (!layout_injective(&l));
		layout_map m;
		assert_true(layout_invert_and_compose(&l, &l, &m));
		for (unsigned i = 0; i < 3; i++) assert_int_equal(m.col[LAYOUT_REG][i], 1u << i);
		for (unsigned i = 0; i < 5; i++) assert_int_equal(m.col[LAYOUT_LANE][i], 8u << i);
		assert_int_equal(m.col[LAYOUT_WARP][0], 256);
		layout offsets = layout_of_shape(tile(1, 512, 0, 0));
		offsets.nin[LAYOUT_REG] = 9;
		for (unsigned i = 0; i < 9; i++) offsets.col[LAYOUT_REG][i] = 1u << i;
		assert_true(layout_invert_and_compose(&l, &offsets, &m)); /* the inverse itself */
		for (uint32_t e = 0; e < 512; e++) {
			uint32_t place = layout_map_apply(&m, e, 0, 0);
			assert_int_equal(layout_apply(&l, place & 7, place >> 3 & 31, place >> 8), e);
		}
	}
	/* Two places hold (1): the register is preferred, and the lane to the warp. */
	layout l = parse("reg (1)(2) lane (1)(2)(4)(0)(4) warp (8)(4)", tile(1, 16, 0, 0));
	layout_map m;
	assert_true(layout_invert_and_compose(&l, &l, &m));
	assert_int_equal(m.col[LAYOUT_LANE][0], 1);
	assert_int_equal(m.col[LAYOUT_LANE][3], 0);
	assert_int_equal(m.col[LAYOUT_LANE][4], 1u << (2 + 2));
	assert_int_equal(m.col[LAYOUT_WARP][1], 1u << (2 + 2));
	/* The nearest source leaves every lane and warp where it is. */
	assert_true(layout_nearest_source(&l, &l, &m));
	for (unsigned i = 0; i < 5; i++) assert_int_equal(m.col[LAYOUT_LANE][i], 4u << i);
	for (unsigned i = 0; i < 2; i++) assert_int_equal(m.col[LAYOUT_WARP][i], 128u << i);
	layout half = parse("reg (1) lane (1)(2)(4)(0)(0) warp ()", tile(1, 16, 0, 0));
	assert_false(layout_invert_and_compose(&half, &l, &m));
	assert_false(layout_nearest_source(&half, &l, &m));
	/* tiles of other sizes, although every element of the one is somewhere in the other */
	layout eight = parse("reg () lane (1)(2)(4)(0)(0) warp ()", tile(1, 8, 0, 0));
	assert_false(layout_invert_and_compose(&l, &eight, &m));
}

/* T7: the bytes that a swizzle moves, by the address formula. */
static void check_swizzle(unsigned rows, unsigned columns, unsigned element, unsigned mode, const char *expected)
{
	layout l = layout_swizzled_shared(tile(2, rows, columns, 0), element, mode);
	char full[256];
	snprintf(full, sizeof full, "reg %s lane () warp ()", expected);
	check_text(&l, full);
	unsigned mask = mode / 16 - 1;
	for (uint32_t offset = 0; offset < rows * columns; offset++) {
		uint32_t physical = offset * element;
		uint32_t a = physical ^ (physical >> 7 & mask) << 4;
		uint32_t flat = layout_apply(&l, offset, 0, 0);
		assert_int_equal(layout_coordinate(&l, flat, 0), a / element / columns);
		assert_int_equal(layout_coordinate(&l, flat, 1), a / element % columns);
		/* The same as (vec, perPhase, maxPhase) with 16-byte vectors. */
		unsigned per_phase = 128 / mode, max_phase = mode / 16, chunk = 16 / element;
		unsigned row = offset / columns, column = offset % columns;
		unsigned phase = row / per_phase % max_phase;
		assert_int_equal(layout_coordinate(&l, flat, 1), ((column / chunk) ^ phase) * chunk + column % chunk);
	}
}

static void test_swizzles(void **state)
{
	(void)state;
	check_swizzle(8, 64, 2, 128, "(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)");
	check_swizzle(8, 32, 2, 64, "(0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,8)(4,16)");
	check_swizzle(8, 16, 2, 32, "(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8)");
	check_swizzle(8, 128, 1, 128, "(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(0,64)(1,16)(2,32)(4,64)");
	check_swizzle(8, 32, 4, 128, "(0,1)(0,2)(0,4)(0,8)(0,16)(1,4)(2,8)(4,16)");
	/* More rows append unit rows, more columns are panels above them. */
	layout l = layout_swizzled_shared(tile(2, 16, 128, 0), 2, 128);
	check_text(&l, "reg (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(0,64) lane () warp ()");
}

/* T12: which bits a reduction touches. */
static void test_reduction_bits(void **state)
{
	(void)state;
	layout c = layout_wgmma_accumulator(tile(2, 64, 64, 0), 4);
	layout b = blocked2(64, 64, 1, 8, 4, 8, 4, 1);
	const layout *both[] = {&c, &b};
	unsigned expected[] = {3, 7};
	for (unsigned k = 0; k < 2; k++) {
		unsigned lanes = 0, warps = 0;
		for (unsigned i = 0; i < 5; i++)
			if (both[k]->col[LAYOUT_LANE][i] & layout_dim_bits(both[k], 1)) lanes |= 1u << i;
		for (unsigned i = 0; i < 2; i++)
			if (both[k]->col[LAYOUT_WARP][i] & layout_dim_bits(both[k], 1)) warps |= 1u << i;
		assert_int_equal(lanes, expected[k]);
		assert_int_equal(warps, 0);
	}
}

static void test_text(void **state)
{
	(void)state;
	parse("reg (0,1)(3,1) lane (1,0)(2,0)(0,2)(0,0)(0,0) warp ()", tile(2, 4, 4, 0));
	parse("reg () lane (1)(2)(0)(0)(0) warp (0)(0) cta (4)", tile(1, 8, 0, 0));
	parse("reg (0,0,1) lane (0,1,0)(1,0,0)(0,0,0)(0,0,0)(0,0,0) warp ()", tile(3, 2, 2, 2));
	const char *bad[] = {"", "reg", "reg (1)", "reg (1) lane (1) warp (8)", "reg (1) lane (1,2) warp ()",
		"reg (1 lane () warp ()", "reg (1)() lane () warp ()", "reg (-1) lane () warp ()",
		"reg () lane (1)(1)(1)(1)(1)(1) warp ()", "lane () reg () warp ()",
		"reg (99999999999999999999) lane () warp ()"};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		layout l;
		const char *at = bad[i];
		assert_false(layout_parse(&at, tile(1, 8, 0, 0), &l));
	}
	layout l;
	const char *at = "reg (1) lane (2)(4)(0)(0)(0) warp ()} rest";
	assert_true(layout_parse(&at, tile(1, 8, 0, 0), &l));
	assert_string_equal(at, "} rest");
	at = "reg (0,1,1) lane () warp ()"; /* more elements than a flattened index counts */
	assert_false(layout_parse(&at, tile(3, 1 << 20, 1 << 20, 1 << 20), &l));
}

static void test_shape_operations(void **state)
{
	(void)state;
	layout l = blocked2(64, 32, 1, 4, 8, 4, 2, 2), out;
	layout row = layout_slice(&l, 1);
	layout wide = layout_expand(&row, 1);
	check_text(&wide, "reg (16,0)(32,0) lane (0,0)(0,0)(1,0)(2,0)(4,0) warp (0,0)(8,0)");
	assert_true(layout_unexpand(&wide, 1, &out));
	assert_true(layout_equal(&out, &row));
	assert_false(layout_unexpand(&l, 1, &out));
	layout narrow = layout_unbroadcast(&l, tile(2, 64, 1, 0));
	assert_true(layout_equal(&narrow, &wide));
	uint8_t order[] = {1, 0}, cycle[] = {2, 0, 1};
	layout transposed = layout_permute(&l, order);
	layout back = layout_unpermute(&transposed, order);
	assert_true(layout_equal(&back, &l));
	layout cube = parse("reg (0,0,1)(0,0,2) lane (0,1,0)(0,2,0)(0,4,0)(1,0,0)(0,0,0) warp ()", tile(3, 2, 8, 4));
	layout moved = layout_permute(&cube, cycle);
	check_text(&moved, "reg (1,0,0)(2,0,0) lane (0,0,1)(0,0,2)(0,0,4)(0,1,0)(0,0,0) warp ()");
	back = layout_unpermute(&moved, cycle);
	assert_true(layout_equal(&back, &cube));
	layout flat = layout_reshape(&cube, tile(1, 64, 0, 0));
	for (uint32_t reg = 0; reg < 4; reg++)
		for (uint32_t lane = 0; lane < 32; lane++)
			assert_int_equal(layout_apply(&flat, reg, lane, 0), layout_apply(&cube, reg, lane, 0));
}

/* ---- small-scope exhaustion: every blocked or coalesced layout of these kinds up to 8 bits ---- */

static void check_ownership(const layout *l)
{
	uint32_t elements = 1u << layout_bits(l), owners[256] = {0}, copies = 1;
	assert_true(elements <= 256);
	uint32_t free[3];
	for (unsigned in = 0; in < 3; in++) {
		free[in] = layout_free_mask(l, (layout_in)in);
		copies <<= __builtin_popcount(free[in]);
	}
	uint32_t total[256] = {0};
	for (uint32_t w = 0; w < 1u << l->nin[LAYOUT_WARP]; w++)
		for (uint32_t t = 0; t < 1u << l->nin[LAYOUT_LANE]; t++)
			for (uint32_t r = 0; r < 1u << l->nin[LAYOUT_REG]; r++) {
				uint32_t e = layout_apply(l, r, t, w);
				assert_true(e < elements);
				total[e]++;
				if (!((r & free[0]) | (t & free[1]) | (w & free[2]))) owners[e]++;
			}
	for (uint32_t e = 0; e < elements; e++) {
		assert_int_equal(owners[e], 1);
		assert_int_equal(total[e], copies);
	}
}

/* The register that a narrower layout keeps holds the element that the wide register holds, coordinates dropped. */
static void check_narrowing(const layout *l, const layout *narrow, uint32_t dropped)
{
	uint32_t kept = ((1u << layout_bits(l)) - 1) & ~dropped;
	for (uint32_t r = 0; r < layout_registers(l); r++)
		for (uint32_t t = 0; t < 1u << l->nin[LAYOUT_LANE]; t++)
			for (uint32_t w = 0; w < 1u << l->nin[LAYOUT_WARP]; w++) {
				uint32_t wide = layout_apply(l, r, t, w), expected = 0;
				for (unsigned i = 0, n = 0; i < layout_bits(l); i++)
					if (kept >> i & 1) expected |= (wide >> i & 1) << n++;
				uint32_t reg = layout_narrow_register(l, dropped, r);
				assert_true(reg < layout_registers(narrow));
				assert_int_equal(layout_apply(narrow, reg, t, w), expected);
			}
}

/* What is joined comes apart again; the nearest layout that comes apart moves the last dimension's bit only. */
static void check_halves(const layout *l)
{
	layout half;
	if (l->rank < IR_MAX_RANK) {
		layout j = layout_join(l);
		assert_true(layout_plain(&j) && layout_surjective(&j));
		for (uint32_t r = 0; r < layout_registers(&j); r++)
			for (uint32_t t = 0; t < 1u << l->nin[LAYOUT_LANE]; t++)
				assert_int_equal(
					layout_apply(&j, r, t, 0), layout_apply(l, r >> 1, t, 0) << 1 | (r & 1));
		assert_true(layout_unjoin(&j, &half));
		assert_true(layout_equal(&half, l));
	}
	if (l->rank == 0 || l->lg[l->rank - 1] != 1) {
		assert_false(layout_unjoin(l, &half));
		return;
	}
	layout s = layout_split_source(l);
	assert_true(layout_plain(&s) && layout_surjective(&s));
	assert_true(layout_unjoin(&s, &half));
	check_ownership(&half);
	assert_int_equal(layout_bits(&half) + 1, layout_bits(l));
	unsigned moved = 0;
	for (unsigned in = 0; in < LAYOUT_CTA; in++) {
		moved += s.nin[in] - l->nin[in];
		for (unsigned i = 0; i < l->nin[in]; i++) moved += s.col[in][i] != l->col[in][i];
	}
	assert_true(moved <= 2);
	if (layout_unjoin(l, &half)) assert_int_equal(moved, 0);
}

static void check_everything(const layout *l)
{
	check_halves(l);
	assert_true(layout_surjective(l));
	assert_true(layout_plain(l));
	check_ownership(l);
	for (unsigned axis = 0; axis < l->rank; axis++) {
		layout s = layout_slice(l, axis);
		check_ownership(&s);
		check_narrowing(l, &s, layout_dim_bits(l, axis));
		ir_type stretched = {.rank = l->rank};
		for (unsigned d = 0; d < l->rank; d++) stretched.dim[d] = d == axis ? 1 : 1u << l->lg[d];
		layout u = layout_unbroadcast(l, stretched), e = layout_expand(&s, axis);
		assert_true(layout_equal(&u, &e));
		check_narrowing(l, &u, layout_stretched_bits(l, stretched));
	}
	if (l->rank) {
		text out = {.arena = &memory};
		layout_print(&out, l);
		const char *at = out.at;
		layout again;
		ir_type shape = {.rank = l->rank};
		for (unsigned d = 0; d < l->rank; d++) shape.dim[d] = 1u << l->lg[d];
		assert_true(layout_parse(&at, shape, &again));
		assert_true(layout_equal(&again, l));
	}
}

static void test_small_scope(void **state)
{
	(void)state;
	unsigned count = 0;
	uint8_t orders[][2] = {{1, 0}, {0, 1}};
	for (unsigned m = 0; m <= 4; m++)
		for (unsigned n = 0; n + m <= 8 && n <= 5; n++)
			for (unsigned o = 0; o < 2; o++)
				for (unsigned p = 0; p < 9; p++)
					for (unsigned t = 0; t <= 5; t++)
						for (unsigned w = 0; w <= 2; w++) {
							uint32_t per[] = {1u << p / 3, 1u << p % 3};
							uint32_t threads[] = {1u << t, 32u >> t},
								 warps[] = {1u << w, 4u >> w};
							ir_type shape = tile(2, 1u << m, 1u << n, 0);
							layout l =
								layout_blocked(shape, per, threads, warps, orders[o]);
							if (!layout_surjective(&l)) fail();
							check_everything(&l);
							l = layout_coalesced(shape, p % 4, orders[o], 1u << w);
							check_everything(&l);
							count += 2;
						}
	for (unsigned n = 0; n <= 8; n++)
		for (unsigned v = 0; v <= 4; v++)
			for (unsigned w = 0; w <= 3; w++) {
				uint8_t order[] = {0};
				layout l = layout_coalesced(tile(1, 1u << n, 0, 0), v, order, 1u << w);
				check_everything(&l);
				count++;
			}
	assert_true(count > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_wgmma),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_coalesced),
		cmocka_unit_test(test_inverse),
		cmocka_unit_test(test_swizzles),
		cmocka_unit_test(test_reduction_bits),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_shape_operations),
		cmocka_unit_test(test_small_scope),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
