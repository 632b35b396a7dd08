/* blkrun's options for the simulator, and what it counted as a table. */
#include "runtime/run/run.h"
#include "runtime/run/whole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

blk_status simulator_configure(blk_device *device, const options *o)
{
	blk_device_info info;
	blk_status status = blk_device_query(device, &info);
	if (status || info.kind != BLK_DEVICE_SIM) return status;
	return blk_sim_configure(device, &o->sim);
}

static void row(const char *name, uint64_t v)
{
	printf("  %-22s %14" PRIu64 "\n", name, v);
}

static void memory(const char *name, uint64_t requests, uint64_t sectors, uint64_t bytes)
{
	printf("  %-22s %14" PRIu64, name, requests);
	if (requests)
		printf("   %.2f sectors a request, %.0f%% of their bytes used", (double)sectors / (double)requests,
			100.0 * (double)bytes / (32.0 * (double)sectors));
	printf("\n");
}

blk_status simulator_print(blk_device *device)
{
	static const char *const names[] = {
#define X(name, text) text,
		BLK_SIM_CLASSES(X)
#undef X
	};
	blk_sim_counters c;
	blk_status status = blk_sim_count(device, &c);
	if (status) return status;
	printf("counters\n");
	row("programs", c.programs);
	for (int i = 0; i < BLK_SIM_CLASS_COUNT; i++)
		if (c.instructions[i]) row(names[i], c.instructions[i]);
	row("lanes that took part", c.lanes);
	memory("global loads", c.load_requests, c.load_sectors, c.load_bytes);
	memory("global stores", c.store_requests, c.store_sectors, c.store_bytes);
	row("atomics of lanes", c.atomic_lanes);
	row("shared accesses", c.shared_requests);
	row("bank conflicts", c.shared_conflicts);
	row("barriers passed", c.barriers);
	row("shared bytes", c.shared_bytes);
	return BLK_OK;
}

int simulator_page(blk_kernel *k)
{
	char *page, path[RUN_NAME + 8];
	size_t n;
	if (blk_sim_page(k, &page, &n)) return run_failed();
	snprintf(path, sizeof path, "%s.html", blk_kernel_name(k));
	bool good = whole_open(path) && whole_write(page, n) && whole_commit();
	if (good)
		printf("page: %s\n", path);
	else
		fprintf(stderr, "blkrun: cannot write %s: %s\n", path, strerror(errno));
	free(page);
	return !good;
}
