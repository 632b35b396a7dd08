/* Files that are embedded in the binary, by generated tables (see the Makefile): the built-in library, .blk sources of
 * this folder, and the page of reports, compiler/explain/page.*. */
#ifndef BLK_LIB_H
#define BLK_LIB_H
#include <stddef.h>
typedef struct lib_source {
	const char *name;
	const char *text;
	size_t bytes;
} lib_source;                          /* name "std.blk", or "blk/gemm.blk": in a folder, seen where it is imported */
extern const lib_source lib_sources[]; /* ends with a null name */
const lib_source *lib_find(const char *name);
extern const lib_source page_sources[];
const lib_source *page_find(const char *name);
#endif
