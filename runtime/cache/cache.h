/* The cache on disk: named sections of bytes under a 16-byte key, one file an entry.
 *
 * In: a key that covers everything the bytes depend on.  Out: exactly the bytes that were stored, or a miss.  Nothing
 * here fails a caller: a cache that cannot be read or written is an empty one.  Safe for many processes without locks,
 * because an entry appears by rename and is never changed. */
#ifndef BLK_CACHE_H
#define BLK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The file calls, so that tests can make each of them fail. */
typedef struct cache_files {
	int (*open)(const char *path, int flags, unsigned mode);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*write)(int, const void *, size_t);
	int (*fsync)(int);
	int (*close)(int);
	int (*fstat)(int, struct stat *);
	int (*rename)(const char *from, const char *to);
	int (*unlink)(const char *path);
	int (*mkdir)(const char *path, unsigned mode);
} cache_files;
extern const cache_files cache_system_files;

typedef struct cache_key {
	uint8_t bytes[16];
} cache_key;
cache_key cache_digest(const void *, size_t); /* XXH3, 128 bits */

typedef struct cache {
	const cache_files *files;
	char *folder; /* "~/.cache/blk/code", malloc'ed; null: no cache */
	uint64_t limit;
	/* Bytes of the folder's entries when it was last scanned, and those stored through this cache since. */
	_Atomic uint64_t total, since;
} cache;

/* Reads the environment (blk.h says which variables); touches no file. */
void cache_open(cache *, const cache_files *);
void cache_close(cache *);

typedef enum cache_kind {    /* of a section; part of the files' form: never renumber */
	CACHE_LABEL = 1,     /* "KERNEL\nTARGET", for listings */
	CACHE_SIGNATURE = 2, /* a kernel's signature; several in a module's check */
	CACHE_NOTES = 3,     /* the compiler's warnings */
	CACHE_PTX = 4,
	CACHE_CUBIN = 5,
	CACHE_OBJECT = 6,
	CACHE_DEPENDENCY = 7, /* 16 bytes of digest, then the path of a file that the source imports */
	CACHE_LIBRARY = 8,    /* 16 bytes of identity, then the path of a library that the compiler stands on */
} cache_kind;

typedef struct cache_section {
	uint32_t kind;
	const void *bytes; /* followed by a NUL */
	size_t nbytes;
} cache_section;

typedef struct cache_entry {
	void *memory;
	cache_section *sections;
	size_t nsections;
} cache_entry;

/* False: no valid entry.  A file that is there and not valid is noted (note_add). */
bool cache_get(cache *, const cache_key *, cache_entry *);
const cache_section *cache_find(const cache_entry *, cache_kind); /* the first; null: none */
void cache_entry_free(cache_entry *);
/* Stores, and removes the least recently used entries beyond the limit.  False: it could not; nothing is left behind.
 */
bool cache_put(cache *, const cache_key *, const cache_section *, size_t n);

/* The folder of tuning records beside `c`'s, whose files are text under the same kind of name. */
bool cache_beside(const cache *c, const char *name, cache *out);
bool cache_make_folder(const cache *);
bool cache_put_text(cache *, const cache_key *, const char *text, size_t n);
bool cache_get_text(cache *, const cache_key *, char **text, size_t *n); /* malloc'ed; false: none, or not ours */

/* The entries' files, least recently used first; free(files) after. */
typedef struct cache_file {
	char name[40];
	int64_t used; /* nanoseconds since 1970 */
	uint64_t bytes;
} cache_file;
typedef struct cache_listing {
	cache_file *files;
	size_t n, room;
} cache_listing;
bool cache_list(cache *, cache_listing *); /* false: there is no folder */
bool cache_remove(cache *, const char *name);
/* As cache_get, but it counts as no use and nothing is noted. */
bool cache_look(cache *, const char *name, cache_entry *);
/* Every entry's key, damaged ones included. */
void cache_each(cache *, void (*visit)(void *context, const cache_key *), void *context);

/* A whole file; malloc'ed and followed by a NUL.  False: errno says why. */
bool file_read(const cache_files *, const char *path, size_t limit, char **bytes, size_t *n);
const char *file_refusal(int error); /* what errno said after it, in words; EINVAL: it is no regular file */

#endif
