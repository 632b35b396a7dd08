/* Colours of diagnostics on terminals. */
#ifndef BLK_COLOUR_H
#define BLK_COLOUR_H
#include <stdio.h>

/* Writes rendered diagnostics (diag_render_text): as they are, or in colours where `out` is a terminal, TERM is not
 * "dumb", and NO_COLOR is not set or empty (no-color.org). */
void colour_diagnostics(FILE *out, const char *text);
#endif
