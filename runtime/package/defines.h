/* What one kernel of a source is compiled with.
 *
 * In: its signature, the caller's defines, and a configuration ("BLOCK=64,shape=[1,2]").  Out: the defines for the
 * compiler. A request names one kernel, and a define that belongs to another one would be an error, so each kernel is
 * asked with its own only.  libblk uses this as it compiles, blkc as it makes packages. */
#ifndef BLK_DEFINES_H
#define BLK_DEFINES_H

#include "blkc.h"
#include "signature.h"

typedef struct kernel_defines {
	blkc_define *list; /* those of the caller first */
	size_t n;
	char *text; /* the configuration's words */
} kernel_defines;

/* False: out of memory.  `text` may be null, and need not outlive the call; `given` must outlive the configuration. */
bool kernel_defines_make(
	const signature *, const blkc_define *given, size_t ngiven, const char *text, kernel_defines *);
/* What a package calls a kernel's code for one set of values that its launches compute: "NAME BLOCK=1024,HALF=512";
 * malloc'ed, null: out of memory.  A name has no space, so whoever does not know of this finds no such kernel. */
char *kernel_value_name(const char *kernel, const blkc_define *values, size_t n);
void kernel_defines_free(kernel_defines *);

/* The kernel's const parameter or option of this name, or null. */
const signature_constant *kernel_constant(const signature *, const char *name);
const uint32_t *kernel_option(const signature *, const char *name);

#endif
