/* Functions of the built-in library for passes: a pass that lacks an instruction inlines a `fn` in its place. */
#ifndef BLK_SEMA_LIBRARY_H
#define BLK_SEMA_LIBRARY_H

#include "../ir/ir.h"

typedef struct sema_library sema_library;

/* Open it when first needed, and once for a function. */
sema_library *sema_library_open(arena *, diags *, ir_func *);
/* Inlines function `name` of the library's file on the arguments where the builder stands; new operations carry the
 * builder's position in the source.  The function's value, or null after a diagnostic. */
ir_value *sema_library_call(
	sema_library *, ir_builder *, const char *file, const char *name, unsigned n, ir_value *const *args);

#endif
