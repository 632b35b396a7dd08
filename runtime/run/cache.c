/* --cache=list|clear: the cache of compiled code as a table. */
#include "runtime/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int show_entry(void *context, const blk_cache_entry *e)
{
	char when[32] = "";
	time_t used = (time_t)e->used;
	struct tm t;
	uint64_t *total = context;
	if (localtime_r(&used, &t)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &t);
	printf("%.12s  %-19s  %8" PRIu64 "  %-8s %s%s\n", e->file, when, e->bytes, e->target,
		!e->valid      ? "(damaged)"
		: e->kernel[0] ? e->kernel
			       : "(check of a source)",
		e->tuning ? " (tuning record)" : "");
	total[0] += e->bytes;
	total[1]++;
	return 0;
}

int manage_cache(const char *what)
{
	uint64_t total[2] = {0, 0}, removed;
	errno = 0;
	const char *folder = blk_cache_folder();
	if (!folder && errno == ENOMEM) return run_no_memory("--cache");
	if (!folder) {
		printf("there is no cache: BLK_CACHE or BLK_CACHE_SIZE turns it off, or neither BLK_CACHE_DIR nor HOME "
		       "names a folder\n");
		return 0;
	}
	printf("%s\n", folder);
	if (strcmp(what, "clear") == 0) {
		blk_status status = blk_cache_clear(&removed);
		printf("%" PRIu64 " entries removed\n", removed);
		return status ? run_failed() : 0;
	}
	if (blk_cache_list(show_entry, total)) return run_failed();
	printf("%" PRIu64 " entries, %" PRIu64 " bytes\n", total[1], total[0]);
	return 0;
}
