/* The built-in library: .blk sources of this folder, embedded in the binary (generated table, see the Makefile). */
#ifndef BLK_LIB_H
#define BLK_LIB_H
#include <stddef.h>
typedef struct lib_source {
	const char *name;
	const char *text;
	size_t bytes;
} lib_source;                          /* name "std.blk" */
extern const lib_source lib_sources[]; /* ends with a null name */
const lib_source *lib_find(const char *name);
#endif
