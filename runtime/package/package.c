/* See package.h; docs/package.md describes the file.
 *
 * The reader trusts nothing: the checksum over the whole file catches accidents, and every number is checked all the
 * same, since whoever writes a file on purpose can compute a checksum. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "package.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEMA = 2, HEAD_BYTES = 96, ENTRY_BYTES = 56, PAYLOAD_ALIGN = 16 };
/* Offsets in the head and in an entry. */
enum {
	AT_SCHEMA = 8,
	AT_ENTRIES = 12,
	AT_BYTES = 16,
	AT_CHECKSUM = 24,
	AT_STRINGS = 40,
	AT_STRING_BYTES = 48,
	AT_SOURCE = 56,
	AT_PRODUCER = 72,
	ENTRY_KERNEL = 0,
	ENTRY_CONFIGURATION = 4,
	ENTRY_TARGET = 8,
	ENTRY_SIGNATURE = 12,
	ENTRY_PROMISES = 16,
	ENTRY_KIND = 24,
	ENTRY_ZERO = 28,
	ENTRY_OFFSET = 32,
	ENTRY_SIZE = 40,
	ENTRY_CHECKSUM = 48,
};

static void put(uint8_t *at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) at[i] = (uint8_t)(v >> (8 * i));
}
static uint64_t get(const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)at[i] << (8 * i);
	return v;
}

void package_hash(const void *bytes, size_t n, uint8_t out[16])
{
	XXH128_canonical_t c;
	XXH128_canonicalFromHash(&c, XXH3_128bits(bytes, n));
	memcpy(out, c.digest, 16);
}

unsigned package_promise_bit(bool is_pointer, bool is_integer, unsigned *next)
{
	unsigned need = is_pointer ? 1 : is_integer ? 3 : 0, bit = *next;
	if (!need || bit + need > 64) return 255;
	*next += need;
	return bit;
}

/* ---- Writing ---- */

/* Bytes that are stored once: an open-addressed table of where each distinct piece went. */
typedef struct piece {
	const void *bytes;
	size_t n;
	uint64_t hash, offset;
} piece;
typedef struct pool {
	piece *slots;
	size_t mask;
	uint64_t used; /* bytes dealt out */
	unsigned align;
} pool;

static bool pool_init(pool *p, size_t most, unsigned align)
{
	size_t size = 16;
	while (size < 2 * most) size *= 2;
	*p = (pool){.slots = calloc(size, sizeof *p->slots), .mask = size - 1, .align = align};
	return p->slots != NULL;
}

static piece *pool_put(pool *p, const void *bytes, size_t n)
{
	uint64_t hash = XXH3_64bits(bytes, n);
	size_t i = (size_t)hash & p->mask;
	for (; p->slots[i].bytes; i = (i + 1) & p->mask) {
		piece *old = &p->slots[i];
		if (old->hash == hash && old->n == n && memcmp(old->bytes, bytes, n) == 0) return old;
	}
	p->slots[i] = (piece){bytes, n, hash, p->used};
	p->used += (n + p->align - 1) / p->align * p->align;
	return &p->slots[i];
}

static uint64_t round_up(uint64_t n)
{
	return (n + PAYLOAD_ALIGN - 1) / PAYLOAD_ALIGN * PAYLOAD_ALIGN;
}

/* The entries' records, with offsets relative to their pools; `payloads` is added once the strings are known. */
static void put_entries(const package *p, pool *strings, pool *payloads, uint8_t *to)
{
	for (size_t i = 0; i < p->nentries; i++, to += ENTRY_BYTES) {
		const package_entry *e = &p->entries[i];
		const char *const texts[] = {e->kernel, e->configuration, e->target, e->signature};
		for (unsigned k = 0; k < 4; k++)
			put(to + ENTRY_KERNEL + 4 * k, pool_put(strings, texts[k], strlen(texts[k]) + 1)->offset, 4);
		const piece *code = pool_put(payloads, e->payload, e->payload_bytes);
		put(to + ENTRY_PROMISES, e->promises, 8);
		put(to + ENTRY_KIND, e->kind, 4);
		put(to + ENTRY_OFFSET, code->offset, 8);
		put(to + ENTRY_SIZE, code->n, 8);
		put(to + ENTRY_CHECKSUM, code->hash, 8);
	}
}

static void copy_pool(const pool *p, uint8_t *to)
{
	for (size_t i = 0; i <= p->mask; i++)
		if (p->slots[i].bytes && p->slots[i].n)
			memcpy(to + p->slots[i].offset, p->slots[i].bytes, p->slots[i].n);
}

static void *encode(const package *p, pool *strings, pool *payloads, uint8_t *records, size_t *bytes, const char **why)
{
	uint64_t producer = pool_put(strings, p->producer, strlen(p->producer) + 1)->offset;
	put_entries(p, strings, payloads, records);
	uint64_t strings_at = HEAD_BYTES + (uint64_t)p->nentries * ENTRY_BYTES;
	uint64_t payloads_at = round_up(strings_at + strings->used), total = payloads_at + payloads->used;
	if (total > PACKAGE_MAX_BYTES) return *why = "it would be larger than 1 GiB", NULL;
	uint8_t *out = calloc(1, (size_t)total);
	if (!out) return NULL;
	for (size_t i = 0; i < p->nentries; i++) {
		uint8_t *offset = records + i * ENTRY_BYTES + ENTRY_OFFSET;
		put(offset, get(offset, 8) + payloads_at, 8);
	}
	memcpy(out, PACKAGE_MAGIC, 8);
	put(out + AT_SCHEMA, SCHEMA, 4);
	put(out + AT_ENTRIES, p->nentries, 4);
	put(out + AT_BYTES, total, 8);
	put(out + AT_STRINGS, strings_at, 8);
	put(out + AT_STRING_BYTES, strings->used, 8);
	memcpy(out + AT_SOURCE, p->source_hash, 16);
	put(out + AT_PRODUCER, producer, 4);
	if (p->nentries) memcpy(out + HEAD_BYTES, records, p->nentries * ENTRY_BYTES);
	copy_pool(strings, out + strings_at);
	copy_pool(payloads, out + payloads_at);
	package_hash(out, (size_t)total, out + AT_CHECKSUM);
	*bytes = (size_t)total;
	return out;
}

void *package_encode(const package *p, size_t *bytes, const char **why)
{
	*why = NULL;
	if (p->nentries > PACKAGE_MAX_ENTRIES) return *why = "it would have more than 1048576 entries", NULL;
	pool strings = {0}, payloads = {0};
	uint8_t *records = calloc(p->nentries + 1, ENTRY_BYTES);
	void *out = NULL;
	if (records && pool_init(&strings, 4 * p->nentries + 1, 1) && pool_init(&payloads, p->nentries, PAYLOAD_ALIGN))
		out = encode(p, &strings, &payloads, records, bytes, why);
	free(records);
	free(strings.slots);
	free(payloads.slots);
	return out;
}

/* ---- Reading ---- */

typedef struct reader {
	const uint8_t *file;
	uint64_t n;
	const char *strings;
	uint64_t nstrings; /* the last byte is a NUL */
} reader;

static const char *string_at(const reader *r, uint64_t offset)
{
	return offset < r->nstrings ? r->strings + offset : NULL;
}

static const char *read_entry(const reader *r, const uint8_t *from, package_entry *e)
{
	*e = (package_entry){.kernel = string_at(r, get(from + ENTRY_KERNEL, 4)),
		.configuration = string_at(r, get(from + ENTRY_CONFIGURATION, 4)),
		.target = string_at(r, get(from + ENTRY_TARGET, 4)),
		.signature = string_at(r, get(from + ENTRY_SIGNATURE, 4)),
		.promises = get(from + ENTRY_PROMISES, 8),
		.kind = (uint32_t)get(from + ENTRY_KIND, 4)};
	uint64_t offset = get(from + ENTRY_OFFSET, 8), size = get(from + ENTRY_SIZE, 8);
	if (!e->kernel || !e->configuration || !e->target || !e->signature) return "damaged: a string lies outside";
	if (!e->kernel[0] || !e->target[0]) return "damaged: an entry without a name";
	if (offset > r->n || size > r->n - offset || size == 0) return "damaged: a payload lies outside";
	e->payload = r->file + offset;
	e->payload_bytes = (size_t)size;
	if (get(from + ENTRY_ZERO, 4) != 0) return "damaged";
	if (e->kind == PACKAGE_PTX && r->file[offset + size - 1] != 0) return "damaged: a text without an end";
	e->checksum = get(from + ENTRY_CHECKSUM, 8);
	return NULL;
}

bool package_payload_holds(const package_entry *e)
{
	return XXH3_64bits(e->payload, e->payload_bytes) == e->checksum;
}

/* The checksum is over the whole file, its own sixteen bytes taken as zero. */
static bool checksum_holds(const uint8_t *file, size_t n)
{
	static const uint8_t zero[16];
	XXH3_state_t s;
	XXH128_canonical_t c;
	XXH3_INITSTATE(&s);
	XXH3_128bits_reset(&s);
	XXH3_128bits_update(&s, file, AT_CHECKSUM);
	XXH3_128bits_update(&s, zero, sizeof zero);
	XXH3_128bits_update(&s, file + AT_CHECKSUM + 16, n - AT_CHECKSUM - 16);
	XXH128_canonicalFromHash(&c, XXH3_128bits_digest(&s));
	return memcmp(c.digest, file + AT_CHECKSUM, 16) == 0;
}

const char *package_decode(const void *bytes, size_t n, package *p)
{
	reader r = {.file = bytes, .n = n};
	memset(p, 0, sizeof *p);
	if (n < 8 || memcmp(bytes, PACKAGE_MAGIC, 8) != 0) return "not a blk package";
	if (n < HEAD_BYTES) return "truncated";
	if (get(r.file + AT_SCHEMA, 4) != SCHEMA) return "of another version's form";
	if (get(r.file + AT_BYTES, 8) > n) return "truncated";
	if (get(r.file + AT_BYTES, 8) < n) return "damaged: it is longer than it says";
	if (!checksum_holds(r.file, n)) return "damaged: its checksum does not hold";
	uint64_t entries = get(r.file + AT_ENTRIES, 4), strings_at = get(r.file + AT_STRINGS, 8);
	r.nstrings = get(r.file + AT_STRING_BYTES, 8);
	if (entries == 0 || entries > PACKAGE_MAX_ENTRIES || entries * ENTRY_BYTES > n - HEAD_BYTES)
		return "damaged: its number of entries";
	if (strings_at > n || r.nstrings > n - strings_at || r.nstrings == 0) return "damaged: its strings lie outside";
	r.strings = (const char *)r.file + strings_at;
	if (r.strings[r.nstrings - 1] != 0) return "damaged: a string without an end";
	p->producer = string_at(&r, get(r.file + AT_PRODUCER, 4));
	if (!p->producer) return "damaged: a string lies outside";
	memcpy(p->source_hash, r.file + AT_SOURCE, 16);
	p->entries = calloc((size_t)entries, sizeof *p->entries);
	if (!p->entries) return "out of memory";
	p->nentries = (size_t)entries;
	const char *why = NULL;
	for (size_t i = 0; i < p->nentries && !why; i++)
		why = read_entry(&r, r.file + HEAD_BYTES + i * ENTRY_BYTES, &p->entries[i]);
	if (why) package_free(p);
	return why;
}

void package_free(package *p)
{
	free(p->entries);
	p->entries = NULL;
	p->nentries = 0;
}
