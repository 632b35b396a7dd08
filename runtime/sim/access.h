/* What loads, stores and atomics share. */
#ifndef BLK_SIM_ACCESS_H
#define BLK_SIM_ACCESS_H

#include "sim.h"

/* False: one of them is undefined, which has been reported. */
bool sim_addresses(sim_warp *, const sim_instr *, uint32_t unit, uint8_t wide, int64_t offset, uint32_t mask,
	uint64_t out[SIM_LANES]);

#endif
