/* The .blkpkg file: compiled variants of a source's kernels in one file (docs/package.md has the bytes).
 *
 * Written by blkc, read by libblk; both use this one source, which needs libc only.  In: entries.  Out: bytes, the same
 * for the same entries.  And back: any bytes become either entries whose every offset, string and checksum holds, or a
 * sentence that says why not. */
#ifndef BLK_PACKAGE_H
#define BLK_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKAGE_MAGIC "blkpkg\r\n" /* eight bytes, which a transfer as text breaks */
enum { PACKAGE_MAX_ENTRIES = 1 << 20, PACKAGE_MAX_BYTES = 1 << 30, PACKAGE_MAX_MASKS = 16 };

typedef enum package_kind { /* of a payload; part of the form: never renumber */
	PACKAGE_PTX = 1,    /* text, its NUL included */
	PACKAGE_OBJECT = 2, /* relocatable object of target cpu */
} package_kind;

/* One compiled variant.  A reader's pointers lie in the file's bytes. */
typedef struct package_entry {
	const char *kernel;
	const char *configuration; /* "BLOCK=1024,num_warps=4"; "": the defaults, and what the package was made with */
	const char *target;        /* "sm_80", "cpu" */
	const char *signature;     /* of this variant, one fact a line */
	uint64_t promises;         /* bits as package_promise_bits() deals them; a launch must keep them all */
	uint32_t kind;             /* package_kind */
	const void *payload;
	size_t payload_bytes;
	uint64_t checksum; /* of the payload; package_encode computes its own */
} package_entry;

typedef struct package {
	const char *producer;    /* blkc_version() */
	uint8_t source_hash[16]; /* of the source's text */
	package_entry *entries;  /* in the writer's order: kernels, then configurations, targets, promises */
	size_t nentries;
} package;

/* Bytes of the file, malloc'ed; null: out of memory, or over the limits (*why says so, else null). */
void *package_encode(const package *, size_t *bytes, const char **why);
/* Null on success; else why the bytes are no package ("out of memory" too).  The bytes must outlive the package. */
const char *package_decode(const void *bytes, size_t n, package *);
bool package_payload_holds(const package_entry *);               /* of a decoded one, before its bytes are used */
void package_free(package *);                                    /* what package_decode allocated */
void package_hash(const void *bytes, size_t n, uint8_t out[16]); /* XXH3, 128 bits */

/* A parameter's place in the promises: a pointer has one bit (aligned to 16 bytes), an integer three (divisible by 16;
 * equal to 1; divisible by signature_step()), dealt in order as long as there are 64.  Returns the lowest bit, or 255
 * for a parameter without one; *next begins at 0. */
unsigned package_promise_bit(bool is_pointer, bool is_integer, unsigned *next);

/* The bits of an integer, from its lowest.  Divisible by 16 is divisible by the step too. */
enum { PROMISE_16 = 1 | 4, PROMISE_ONE = 2, PROMISE_STEP = 4 };

#endif
