/* Bytes or text that grow at the end.  Running out of memory is remembered and asked for once, when all is written. */
#ifndef BLK_RUNTIME_GROWING_H
#define BLK_RUNTIME_GROWING_H

#include <stdbool.h>
#include <stddef.h>

typedef struct growing { /* starts as zeros; whoever owns it frees `at` */
	char *at;        /* ended by a NUL that n does not count; null while nothing was added */
	size_t n, room;
	bool failed; /* memory ran out: what stands there is cut, and nothing more is added */
} growing;

void grow_bytes(growing *, const void *, size_t);
void grow_text(growing *, const char *);
void grow_format(growing *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
