/* Several kernels' PTX modules joined into one; see ptx_join.c. */
#ifndef BLK_PTX_JOIN_H
#define BLK_PTX_JOIN_H

#include "support/arena.h"

const char *ptx_join(arena *, const char *const *ptx, size_t n, size_t *bytes);

#endif
