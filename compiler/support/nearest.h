/* What a mistyped name could have meant. */
#ifndef BLK_NEAREST_H
#define BLK_NEAREST_H
#include <stddef.h>

/* The candidate nearest to `name` by edit distance, or null when none is near; names of up to 63 bytes. */
const char *nearest_name(const char *name, const char *const *candidates, size_t n);

/* The option of a help text nearest to `argument`, "--check" to "--chekc" or "--chekc=cpu"; false when none is near.
 * Options of the text begin with '-' behind white space and end in front of white space, '=', ',', '|' or ')'. */
enum { NEAREST_OPTION = 64 };
int nearest_option(const char *help, const char *argument, char found[NEAREST_OPTION]);
#endif
