/* Random layouts for the tests that run plans on them. */
#ifndef TESTS_UNIT_LAYOUT_RANDOM_H
#define TESTS_UNIT_LAYOUT_RANDOM_H

#include "../../compiler/layout/layout.h"

#include <stdlib.h>
#include <string.h>

/* A plain layout with its coordinates dealt at random to registers, lanes and 1 << warps warps. */
static inline layout random_layout(ir_type shape, unsigned warps)
{
	layout l = layout_of_shape(shape);
	l.nin[LAYOUT_LANE] = 5;
	l.nin[LAYOUT_WARP] = (uint8_t)warps;
	for (unsigned bit = 0; bit < layout_bits(&l); bit++) {
		unsigned place = (unsigned)rand() % (8 + warps);
		unsigned in = place < 5 ? LAYOUT_LANE : LAYOUT_WARP, i = place < 5 ? place : place - 5;
		if (place < 5 + warps && !l.col[in][i]) {
			l.col[in][i] = 1u << bit;
			continue;
		}
		unsigned n = l.nin[LAYOUT_REG]++, at = (unsigned)rand() % (n + 1);
		memmove(&l.col[0][at + 1], &l.col[0][at], (n - at) * sizeof l.col[0][0]);
		l.col[0][at] = 1u << bit;
	}
	return l;
}

#endif
