/* The simulator's part of a blk_device: its buffers by address, and how launches run. */
#ifndef BLK_SIM_DEVICE_H
#define BLK_SIM_DEVICE_H

#include "../internal.h"
#include "sim.h"

typedef struct sim_buffer {
	sim_range range;
	uint64_t written; /* the host has written all bytes before this one */
	void *memory;
} sim_buffer;

/* The last counted launch, by line; with the signature of its code. */
typedef struct sim_lines {
	blk_sim_line *at;
	size_t n;
	char **files;
	size_t nfiles;
	char *signature; /* null: there was none */
} sim_lines;

struct sim_device {
	pthread_mutex_t lock;
	sim_buffer **buffers; /* by address */
	size_t n, room;
	blk_sim_options options;
	blk_sim_counters counters; /* of the last launch */
	sim_lines lines;
};

/* device.c: a simulator that is open. */
blk_status sim_check(const blk_device *);
/* lines.c: keeps a launch's numbers. */
blk_status sim_lines_keep(sim_device *, const sim_launch *, const variant *);
void sim_lines_drop(sim_device *);

/* launch.c */
blk_status sim_launch_kernel(
	blk_device *, const variant *, void *stream, const uint32_t grid[3], uint64_t *bits, const tensor_map *maps);

#endif
