/* A bulk copy that is under way, in the 16-byte pieces that it moves (bulk.c), and where they are (box.c). */
#ifndef BLK_SIM_BULK_H
#define BLK_SIM_BULK_H

#include "sim.h"

typedef enum sim_bulk_kind { BULK_LOAD, BULK_STORE, BULK_SHARE } sim_bulk_kind; /* to shared memory; from; within */

struct sim_bulk {
	sim_warp *w;
	const sim_instr *in;
	unsigned lane;
	uint8_t kind;
	bool moved;     /* its bytes have */
	uint32_t group; /* of its thread; BULK_STORE */
	uint32_t clock; /* of its warp's copies; BULK_STORE */
	uint32_t bytes;
	uint64_t global;   /* of a copy without a tensor map */
	uint32_t from, to; /* offsets in shared memory */
	uint32_t targets;  /* programs of the cluster, a bit each */
	uint32_t bar;      /* offset of their mbarriers */
	bool has_map;
	tensor_map_request map;
	int64_t at[TENSOR_MAP_RANK];
};

typedef struct sim_piece {
	uint32_t shared;    /* offset, swizzled */
	uint64_t global;    /* address of byte 0, which may lie outside the tensor */
	uint32_t low, high; /* its bytes inside */
} sim_piece;

sim_piece sim_bulk_piece(const sim_bulk *, uint32_t place, uint32_t i);
/* The map that an address names is one, fits the instruction, and its tensor lies in its buffer; fills in the map, how
 * many bytes the copy moves, and the range.  False: reported. */
bool sim_bulk_map(sim_bulk *, uint64_t address, const sim_range **range);

#endif
