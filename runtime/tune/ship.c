/* Tuning records in one readable file, and back: export for a project to ship, import on the machine where it runs.
 *
 * The file is the records one after the other, as they stand in the cache (tune/record.c), with an empty line between
 * two; so each carries its own checksum, and a damaged one is refused by number. */
#include "base/output.h"
#include "tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long the head of a record is: up to the first configuration. */
static size_t head_length(const char *record, size_t n)
{
	static const char *const facts[] = {
		"blk tuning ", "kernel ", "device ", "target ", "compiler ", "source ", "define ", "promises ", "key "};
	size_t at = 0;
	while (at < n) {
		bool ours = false;
		for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
			ours = ours || strncmp(record + at, facts[i], strlen(facts[i])) == 0;
		const char *end = ours ? memchr(record + at, '\n', n - at) : NULL;
		if (!end) break;
		at = (size_t)(end - record) + 1;
	}
	return at;
}

static blk_status open_records(cache *base, cache *c)
{
	errno = 0;
	cache_open(base, NULL);
	if (cache_beside(base, "tune", c)) return BLK_OK;
	bool no_memory = errno == ENOMEM;
	cache_close(base);
	if (no_memory) return error_memory();
	return error_set(BLK_ERROR_NOT_FOUND, "there is no cache: BLK_CACHE turns it off, or no folder is known");
}

typedef struct exporting {
	cache *cache;
	output to;
	uint32_t n;
	bool good;
} exporting;

static void export_one(void *context, const cache_key *key)
{
	exporting *e = context;
	char *record;
	size_t n, whole = 0;
	if (!e->good || !cache_get_text(e->cache, key, &record, &n)) return;
	if (strlen(record) == n && tune_record_verified(record, n, &whole) && whole == n) {
		e->good = output_write(&e->to, record, n) && output_write(&e->to, "\n", 1);
		e->n++;
	}
	free(record);
}

blk_status blk_tune_export(const char *path, uint32_t *records)
{
	cache base, c;
	if (records) *records = 0;
	if (!path) return error_set(BLK_ERROR_ARGUMENT, "blk_tune_export: the path is null");
	blk_status status = open_records(&base, &c);
	if (status) return status;
	exporting e = {.cache = &c};
	e.good = output_open(&e.to, path);
	if (e.good) cache_each(&c, export_one, &e);
	if (!e.good || !output_commit(&e.to)) status = error_set(BLK_ERROR_IO, "%s: %s", path, strerror(errno));
	if (!status && records) *records = e.n;
	cache_close(&c);
	cache_close(&base);
	return status;
}

static blk_status import_all(cache *c, const char *path, const char *all, size_t n, uint32_t *records)
{
	size_t at = 0, whole, number = 1;
	while (at < n && all[at] == '\n') at++;
	for (; at < n; number++) {
		size_t body = tune_record_verified(all + at, n - at, &whole);
		if (!body)
			return error_set(
				BLK_ERROR_FORMAT, "%s: record %zu is damaged or of another form", path, number);
		size_t length = head_length(all + at, body);
		bool good = tune_record_merge(c, all + at, length, body);
		if (!good)
			return error_set(
				BLK_ERROR_IO, "%s: record %zu cannot be stored in %s", path, number, c->folder);
		if (records) ++*records;
		at += whole;
		while (at < n && all[at] == '\n') at++;
	}
	return BLK_OK;
}

blk_status blk_tune_import(const char *path, uint32_t *records)
{
	enum { MOST = 256 << 20 };
	cache base, c;
	char *all = NULL;
	size_t n = 0;
	if (records) *records = 0;
	if (!path) return error_set(BLK_ERROR_ARGUMENT, "blk_tune_import: the path is null");
	blk_status status = open_records(&base, &c);
	if (status) return status;
	if (!file_read(base.files, path, MOST, &all, &n))
		status = error_set(
			errno == ENOENT ? BLK_ERROR_NOT_FOUND : BLK_ERROR_IO, "%s: %s", path, file_refusal(errno));
	else if (strlen(all) != n)
		status = error_set(BLK_ERROR_FORMAT, "%s: no text", path);
	else
		status = import_all(&c, path, all, n, records);
	free(all);
	cache_close(&c);
	cache_close(&base);
	return status;
}
