/* May two elements of one tile of pointers be at one place?
 *
 * In: a tile of pointers.  Out: false where each points to another place.  The one idea: along each dimension the steps
 * are longer than all before it reach together,
 *     arange(0, 16)[:, None] * 64 + arange(0, 64)[None, :]   ->   steps of 1 reach 63, steps of 64 are longer
 * or that all are one run; and all of them lie less than 2^32 from each other: offsets of 32 bits, which wrap around,
 * are distinct then too. */
#include "affine.h"
#include "alias.h"

#include <stdlib.h>

static int by_factor(const void *x, const void *y)
{
	const affine_term *a = x, *b = y;
	int64_t m = llabs(a->factor), n = llabs(b->factor);
	return (m > n) - (m < n);
}

static bool are_distinct(pass_context *p, ir_func *f, ir_value *pointers)
{
	affine_context ac = {.pass = p, .func = f};
	affine s = {0};
	affine_term term[IR_MAX_RANK];
	unsigned n = 0, seen = 0;
	int64_t reach = 0, far;
	if (!affine_of(&ac, pointers, &s)) return false;
	for (unsigned i = 0; i < s.n; i++) {
		if (s.term[i].place < 0) continue;
		assert(s.term[i].place < pointers->type.rank);
		if (s.term[i].natoms || n == IR_MAX_RANK) return false;
		seen |= 1u << s.term[i].place;
		term[n++] = s.term[i];
	}
	for (unsigned d = 0; d < pointers->type.rank; d++)
		if (pointers->type.dim[d] > 1 && !(seen >> d & 1)) return false;
	qsort(term, n, sizeof term[0], by_factor);
	for (unsigned i = 0; i < n; i++) {
		int64_t step = llabs(term[i].factor), last = (int64_t)pointers->type.dim[term[i].place] - 1;
		if (step <= reach) return false;
		if (__builtin_mul_overflow(step, last, &far) || __builtin_add_overflow(reach, far, &reach) ||
			reach > UINT32_MAX)
			return false;
	}
	return true;
}

bool may_alias_itself(pass_context *p, ir_func *f, ir_value *pointers)
{
	assert(pointers->type.pointer);
	const axis_info *info = axis_get(p, pointers);
	if (pointers->type.rank == 1 && info->known && info->contiguity[0] >= pointers->type.dim[0]) return false;
	return !are_distinct(p, f, pointers);
}
