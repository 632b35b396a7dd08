/* The layout of sorts, and what a topk leaves of it: over shapes of up to four dimensions, every axis and number of
 * warps, against what the header promises, place by place. */
#include "layout/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Bits of the axis by rising place must be 1, 2, 4 ..: registers, then lanes, then warps, each from bit 0. */
static void check_order(const layout *l, unsigned axis)
{
	uint32_t next = 1;
	for (unsigned in = LAYOUT_REG; in <= LAYOUT_WARP; in++) {
		bool ended = false;
		for (unsigned i = 0; i < l->nin[in]; i++) {
			uint32_t step = layout_coordinate(l, l->col[in][i], axis);
			if (!step) {
				ended = true;
				continue;
			}
			assert_false(ended);
			assert_int_equal(step, next);
			next <<= 1;
		}
	}
	assert_int_equal(next, 1u << l->lg[axis]);
}

static void check_shape(ir_type shape, unsigned axis, unsigned warps)
{
	layout l = layout_lines(shape, axis, warps);
	assert_true(layout_plain(&l));
	assert_true(layout_surjective(&l));
	assert_int_equal(l.nin[LAYOUT_LANE], 5);
	assert_int_equal(l.nin[LAYOUT_WARP], lg2(warps));
	check_order(&l, axis);
	for (unsigned lg = 0; lg <= l.lg[axis]; lg++) {
		layout t = layout_truncate(&l, axis, lg);
		assert_true(layout_plain(&t));
		assert_true(layout_surjective(&t));
		/* Places without the dropped bits hold what they held. */
		uint32_t registers = layout_registers(&l), kept = 0;
		for (uint32_t r = 0; r < registers; r++) {
			if (layout_coordinate(&l, layout_apply(&l, r, 0, 0), axis) >> lg) continue;
			for (uint32_t thread = 0; thread < 32 * warps; thread++) {
				uint32_t e = layout_apply(&l, r, thread & 31, thread >> 5);
				uint32_t f = layout_apply(&t, kept, thread & 31, thread >> 5);
				for (unsigned d = 0; d < l.rank; d++) {
					unsigned x = layout_coordinate(&l, e, d);
					if (d == axis) x &= (1u << lg) - 1;
					assert_int_equal(layout_coordinate(&t, f, d), x);
				}
			}
			kept++;
		}
		assert_int_equal(kept, layout_registers(&t));
	}
}

static void lines_lie_in_order(void **state)
{
	(void)state;
	static const uint32_t shapes[][4] = {{1}, {2}, {32}, {256}, {512}, {4096}, {1, 64}, {64, 1}, {16, 64}, {64, 16},
		{4, 512}, {2, 256}, {4, 8, 16}, {8, 1, 64}, {2, 4, 8, 16}};
	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
		unsigned rank = 0;
		while (rank < 4 && shapes[s][rank]) rank++;
		ir_type shape = ir_tile_type(SCALAR_F32, rank, shapes[s]);
		for (unsigned axis = 0; axis < rank; axis++)
			for (unsigned warps = 1; warps <= 16; warps *= 2) check_shape(shape, axis, warps);
	}
}

/* Where it can, a line stays in a thread, then in a warp. */
static void lines_stay_together(void **state)
{
	(void)state;
	layout threads = layout_lines(ir_tile_type(SCALAR_F32, 2, (uint32_t[]){1024, 16}), 1, 4);
	for (unsigned in = LAYOUT_LANE; in <= LAYOUT_WARP; in++)
		for (unsigned i = 0; i < threads.nin[in]; i++) assert_int_equal(threads.col[in][i] & 15, 0);
	layout warp = layout_lines(ir_tile_type(SCALAR_F32, 1, (uint32_t[]){256}), 0, 4);
	assert_int_equal(layout_registers(&warp), 8);
	assert_int_equal(layout_free_mask(&warp, LAYOUT_WARP), 3);
	layout far = layout_lines(ir_tile_type(SCALAR_F32, 1, (uint32_t[]){512}), 0, 4);
	assert_int_equal(layout_registers(&far), 4);
	assert_int_equal(layout_free_mask(&far, LAYOUT_WARP), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_lie_in_order),
		cmocka_unit_test(lines_stay_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
