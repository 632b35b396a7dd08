/* Ranges around launches for profilers, by NVTX; see nvtx.c. */
#ifndef BLK_NVTX_H
#define BLK_NVTX_H

#include "package/signature.h"

typedef struct nvtx nvtx;

/* The profiler that the environment names, opened at the first call; null where there is none. */
const nvtx *nvtx_open(void);

/* Opens a range of the calling thread, named after kernel, configuration and grid; nvtx_end() closes it. */
void nvtx_begin(const nvtx *, const signature *, const uint32_t grid[3]);
void nvtx_end(const nvtx *);

#endif
