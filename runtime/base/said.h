/* The compiler's messages, each told once. */
#ifndef BLK_SAID_H
#define BLK_SAID_H

#include "growing.h"

/* Calls `tell` with each message of a diagnostics text that is not among those told before with the same `said`, which
 * starts as zeros and whose `at` the owner frees.  What is no diagnostics counts as one message. */
void said_tell(growing *said, const char *text, void (*tell)(void *context, const char *message), void *context);

#endif
