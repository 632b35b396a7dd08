/* The compiler library as the runtime sees it: found and identified when a device is opened, loaded (LLVM and all) only
 * when something has to be compiled. */
#ifndef BLK_COMPILER_H
#define BLK_COMPILER_H

#include "blk.h"
#include "cache/cache.h"
#include "compiler/blkc.h"

#include <stdbool.h>

typedef struct compiler_api {
	blkc_result *(*compile)(const blkc_request *);
	void (*result_free)(blkc_result *);
	const char *(*version)(void);
} compiler_api;

typedef struct compiler {
	compiler_api api; /* all null until compiler_load() */
	void *library;
	char *path;        /* of the library's file; null: not found beside libblk */
	char *llvm;        /* the file of the LLVM that it stands on, when it is loaded; null: it has its own inside */
	uint64_t identity; /* of that file's build; 0: unknown, so nothing compiled may be cached */
} compiler;

void compiler_locate(compiler *, const compiler_api *given); /* `given`: stands in for the library (tests) */
blk_status compiler_load(compiler *);                        /* the caller holds the device's lock */
void compiler_unload(compiler *);

#endif
