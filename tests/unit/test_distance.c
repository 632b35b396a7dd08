/* Sums of results that differ, against sums worked out element by element: all numbers are small integers, so every
 * order of adding is exact, and parts that overlap or leave a gap are seen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../runtime/tune/distance.h"

enum { N = 300007 }; /* several parts of any type, the last one cut */

typedef struct arrays {
	scalar s;
	uint8_t *before, *a, *b;
	double difference, squares, changed; /* what the sums are */
} arrays;

static unsigned draw(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 20;
}

static void put(const arrays *x, uint8_t *to, size_t i, double v)
{
	uint64_t bits = scalar_from_double(x->s, v);
	memcpy(to + i * scalar_bytes(x->s), &bits, scalar_bytes(x->s));
}

/* A third of the elements as they were before, of the others a few that differ. */
static void draw_arrays(arrays *x)
{
	unsigned seed = 7;
	for (size_t i = 0; i < N; i++) {
		double before = draw(&seed) % 8, a = draw(&seed) % 3 ? draw(&seed) % 8 : before;
		double b = draw(&seed) % 16 ? a : draw(&seed) % 8;
		put(x, x->before, i, before);
		put(x, x->a, i, a);
		put(x, x->b, i, b);
		x->difference += (a - b) * (a - b);
		x->squares += a * a;
		if (a != before || b != before) x->changed += a * a;
	}
}

static void every_element_counts_once(void **state)
{
	static const scalar types[] = {SCALAR_I8, SCALAR_U16, SCALAR_I32, SCALAR_I64, SCALAR_F8E4M3, SCALAR_F16,
		SCALAR_BF16, SCALAR_F32, SCALAR_F64};
	(void)state;
	for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
		size_t bytes = (size_t)N * scalar_bytes(types[t]);
		arrays x = {.s = types[t], .before = malloc(bytes), .a = malloc(bytes), .b = malloc(bytes)};
		assert_non_null(x.before);
		assert_non_null(x.a);
		assert_non_null(x.b);
		draw_arrays(&x);
		assert_true(sum_of_differences(x.s, x.a, x.b, bytes) == x.difference);
		assert_true(sum_of_squares(x.s, x.a, bytes) == x.squares);
		assert_true(sum_of_changed_squares(x.s, x.before, x.a, x.b, bytes) == x.changed);
		assert_true(sum_of_differences(x.s, x.a, x.b, 0) == 0);
		free(x.before);
		free(x.a);
		free(x.b);
	}
}

static void what_is_not_finite(void **state)
{
	const float a[] = {NAN, INFINITY, -INFINITY, 3, INFINITY}, b[] = {NAN, INFINITY, -INFINITY, 1, 2};
	(void)state;
	assert_true(sum_of_differences(SCALAR_F32, a, b, 4 * sizeof *a) == 4);
	assert_true(isinf(sum_of_differences(SCALAR_F32, a, b, sizeof a)));
	assert_true(sum_of_squares(SCALAR_F32, a, sizeof a) == 9);
}

/* A double holds no neighbours of 2^60. */
static void integers_are_subtracted_exactly(void **state)
{
	const int64_t a[] = {INT64_C(1) << 60, -5, INT64_MAX}, b[] = {(INT64_C(1) << 60) + 3, 5, INT64_MAX - 1};
	(void)state;
	assert_true(sum_of_differences(SCALAR_I64, a, b, sizeof a) == 9 + 100 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_counts_once),
		cmocka_unit_test(what_is_not_finite),
		cmocka_unit_test(integers_are_subtracted_exactly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
