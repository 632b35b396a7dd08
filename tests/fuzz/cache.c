/* libFuzzer's entry for the readers of the cache: compiled code and tuning records.
 *
 * The bytes are the one file of a file system in memory.  They are read as they are, and once more under a right
 * checksum, behind which the rest of a reader lies. */
#include "runtime/internal.h"
#include "runtime/tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint8_t *file;
static size_t file_bytes, file_at;

static int memory_open(const char *path, int flags, unsigned mode)
{
	(void)path, (void)flags, (void)mode;
	file_at = 0;
	return 1000;
}
static ssize_t memory_read(int fd, void *to, size_t n)
{
	(void)fd;
	if (n > file_bytes - file_at) n = file_bytes - file_at;
	if (n) memcpy(to, file + file_at, n);
	file_at += n;
	return (ssize_t)n;
}
static ssize_t memory_write(int fd, const void *from, size_t n)
{
	(void)fd, (void)from;
	return (ssize_t)n;
}
static int memory_no(int fd)
{
	(void)fd;
	return 0;
}
static int memory_stat(int fd, struct stat *st)
{
	(void)fd;
	*st = (struct stat){.st_mode = S_IFREG | 0600, .st_uid = geteuid(), .st_size = (off_t)file_bytes};
	st->st_mtime = time(NULL);
	return 0;
}
static int memory_rename(const char *from, const char *to)
{
	(void)from, (void)to;
	return 0;
}
static int memory_unlink(const char *path)
{
	(void)path;
	return 0;
}
static int memory_mkdir(const char *path, unsigned mode)
{
	(void)path, (void)mode;
	return 0;
}
static const cache_files memory_files = {memory_open, memory_read, memory_write, memory_no, memory_no, memory_stat,
	memory_rename, memory_unlink, memory_mkdir};

static void read_as_entry(cache *c)
{
	cache_entry e;
	size_t sum = 0;
	if (!cache_look(c, "00000000000000000000000000000000", &e)) return;
	for (size_t i = 0; i < e.nsections; i++)
		for (size_t k = 0; k <= e.sections[i].nbytes; k++) sum += ((const uint8_t *)e.sections[i].bytes)[k];
	if (sum == 1) abort(); /* never: it keeps the reads */
	cache_entry_free(&e);
}

static void read_as_record(cache *c)
{
	char *text = NULL;
	size_t n = 0, whole = 0;
	cache_key key = {{0}};
	free(tune_record_label(c, "00000000000000000000000000000000"));
	if (!cache_get_text(c, &key, &text, &n)) return;
	size_t body = strlen(text) == n ? tune_record_verified(text, n, &whole) : 0;
	if (body) {
		const char *head = strchr(strchr(text, '\n') + 1, '\n');
		tune_record_merge(
			c, text, head && (size_t)(head - text) < body ? (size_t)(head - text) + 1 : body, body);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	enum { CHECKSUM = 40, HEAD = 56 };
	char folder[] = "/nowhere";
	cache c = {.files = &memory_files, .folder = folder, .limit = 1 << 20};
	uint8_t *copy = malloc(n + 64);
	if (!copy) return 0;
	if (n) memcpy(copy, bytes, n);
	file = copy;
	file_bytes = n;
	read_as_entry(&c);
	read_as_record(&c);
	if (n >= HEAD) {
		uint64_t all = n;
		memcpy(copy + 32, &all, 8);
		memset(copy + CHECKSUM, 0, 16);
		cache_key sum = cache_digest(copy, n);
		memcpy(copy + CHECKSUM, &sum, 16);
		read_as_entry(&c);
	}
	if (n && bytes[n - 1] == '\n') {
		memcpy(copy, bytes, n);
		cache_key sum = cache_digest(copy, n);
		file_bytes += (size_t)sprintf((char *)copy + n, "checksum ");
		for (int i = 0; i < 16; i++)
			file_bytes += (size_t)sprintf((char *)copy + file_bytes, "%02x", sum.bytes[i]);
		copy[file_bytes++] = '\n';
		read_as_record(&c);
	}
	free(copy);
	return 0;
}
