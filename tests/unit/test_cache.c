/* The cache on disk: what was stored comes back or nothing does, whatever happened to the file, the folder, the calls
 * in between and the processes beside us. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "faulty_malloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64];

static void empty_folder(const char *path)
{
	char inner[512];
	DIR *d = opendir(path);
	if (!d) return;
	for (struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
		snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
		if (unlink(inner) != 0) {
			chmod(inner, 0700);
			empty_folder(inner);
			rmdir(inner);
		}
	}
	closedir(d);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk_cache_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	setenv("BLK_CACHE_DIR", folder, 1);
	unsetenv("BLK_CACHE");
	unsetenv("BLK_CACHE_SIZE");
	note_clear();
	fake_reset();
	fake_compiles = fake_checks = fake_status = 0;
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	chmod(folder, 0700);
	empty_folder(folder);
	return rmdir(folder);
}

static cache_key key_of(const char *text)
{
	return cache_digest(text, strlen(text));
}

static char *entry_file(const char *key_text)
{
	static char path[256];
	cache_key k = key_of(key_text);
	int n = snprintf(path, sizeof path, "%s/code/", folder);
	for (int i = 0; i < 16; i++) n += snprintf(path + n, sizeof path - (size_t)n, "%02x", k.bytes[i]);
	return path;
}

static bool store(cache *c, const char *key_text, const char *text)
{
	cache_key k = key_of(key_text);
	cache_section parts[] = {
		{CACHE_LABEL, "add\nsm_90a", 10}, {CACHE_SIGNATURE, text, strlen(text)}, {CACHE_CUBIN, "\0\1\2", 3}};
	return cache_put(c, &k, parts, 3);
}

/* Null: a miss.  Anything but the stored bytes fails the test. */
static bool fetch(cache *c, const char *key_text, const char *expected)
{
	cache_key k = key_of(key_text);
	cache_entry e;
	if (!cache_get(c, &k, &e)) return false;
	assert_int_equal(e.nsections, 3);
	const cache_section *s = cache_find(&e, CACHE_SIGNATURE), *b = cache_find(&e, CACHE_CUBIN);
	assert_non_null(s);
	assert_int_equal(s->nbytes, strlen(expected));
	assert_string_equal(s->bytes, expected);
	assert_int_equal(b->nbytes, 3);
	assert_memory_equal(b->bytes, "\0\1\2", 3);
	assert_null(cache_find(&e, CACHE_OBJECT));
	cache_entry_free(&e);
	return true;
}

static char *slurp(const char *path, size_t *n)
{
	char *bytes = NULL;
	assert_true(file_read(&cache_system_files, path, 1 << 20, &bytes, n));
	return bytes;
}
static void spill(const char *path, const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

static int count_files(void)
{
	char path[128];
	snprintf(path, sizeof path, "%s/code", folder);
	DIR *d = opendir(path);
	int n = 0;
	if (!d) return 0;
	for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void test_round_trip(void **state)
{
	(void)state;
	cache c;
	cache_open(&c, NULL);
	assert_false(fetch(&c, "a", ""));
	assert_string_equal(blk_note(), "");
	assert_true(store(&c, "a", "some text"));
	assert_true(fetch(&c, "a", "some text"));
	assert_false(fetch(&c, "b", ""));
	assert_true(store(&c, "a", "another text"));
	assert_true(fetch(&c, "a", "another text"));
	assert_int_equal(count_files(), 1);
	assert_string_equal(blk_note(), "");
	cache_close(&c);
}

static void test_environment(void **state)
{
	(void)state;
	cache c;
	char expected[128];
	cache_open(&c, NULL);
	snprintf(expected, sizeof expected, "%s/code", folder);
	assert_string_equal(c.folder, expected);
	assert_int_equal(c.limit, 1 << 30);
	cache_close(&c);
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {{"64K", 65536}, {"64k", 65536}, {"7", 7}, {"3M", 3 << 20}, {"3m", 3 << 20},
		{"5G", UINT64_C(5) << 30}, {"5g", UINT64_C(5) << 30}};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		setenv("BLK_CACHE_SIZE", sizes[i].text, 1);
		cache_open(&c, NULL);
		assert_int_equal(c.limit, sizes[i].bytes);
		cache_close(&c);
	}
	static const char *const odd[] = {"", "x", "12Q", "64KK", "99999999999999999999", "99999999999999999G", "-1"};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		setenv("BLK_CACHE_SIZE", odd[i], 1);
		cache_open(&c, NULL);
		assert_int_equal(c.limit, 1 << 30);
		cache_close(&c);
	}
	setenv("BLK_CACHE_SIZE", "0", 1);
	cache_open(&c, NULL);
	assert_null(c.folder);
	unsetenv("BLK_CACHE_SIZE");
	setenv("BLK_CACHE", "off", 1);
	cache_open(&c, NULL);
	assert_null(c.folder);
	assert_null(blk_cache_folder());
	assert_false(store(&c, "a", "x"));
	assert_false(fetch(&c, "a", "x"));
	setenv("BLK_CACHE", "0", 1);
	assert_null(blk_cache_folder());
	setenv("BLK_CACHE", "on", 1);
	assert_string_equal(blk_cache_folder(), folder);
	unsetenv("BLK_CACHE");
	assert_string_equal(blk_cache_folder(), folder);
	char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
	unsetenv("BLK_CACHE_DIR");
	setenv("XDG_CACHE_HOME", "/xdg", 1);
	cache_open(&c, NULL);
	assert_string_equal(c.folder, "/xdg/blk/code");
	cache_close(&c);
	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", "/home/someone", 1);
	cache_open(&c, NULL);
	assert_string_equal(c.folder, "/home/someone/.cache/blk/code");
	cache_close(&c);
	setenv("BLK_CACHE_DIR", "", 1); /* as if it were not set */
	cache_open(&c, NULL);
	assert_string_equal(c.folder, "/home/someone/.cache/blk/code");
	cache_close(&c);
	unsetenv("BLK_CACHE_DIR");
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "relative", 1);
	cache_open(&c, NULL);
	assert_null(c.folder);
	unsetenv("HOME");
	cache_open(&c, NULL);
	assert_null(c.folder);
	setenv("HOME", home, 1);
	free(home);
}

/* Names that are none, what is no file, an entry under another's name, one that grew or shrank while it was read. */
static ssize_t read_nothing(int fd, void *to, size_t n)
{
	(void)fd, (void)to, (void)n;
	return 0;
}
static int interruptions;
static ssize_t read_interrupted(int fd, void *to, size_t n)
{
	if (interruptions++ % 2 == 0) return errno = EINTR, -1;
	return read(fd, to, n < 7 ? n : 7);
}
static void test_odd_entries(void **state)
{
	(void)state;
	cache c;
	cache_listing l;
	cache_entry e;
	char path[256], *bytes;
	size_t n;
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "some text"));
	static const char *const names[] = {"0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0",
		"0123456789ABCDEF0123456789ABCDEF", "0123456789abcdefg123456789abcdef"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/code/%s", folder, names[i]);
		spill(path, "x", 1);
	}
	snprintf(path, sizeof path, "%s/code/0123456789abcdef0123456789abcdef", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(cache_list(&c, &l));
	assert_int_equal(l.n, 1);
	assert_true(cache_look(&c, l.files[0].name, &e));
	cache_entry_free(&e);
	free(l.files);
	bytes = slurp(entry_file("a"), &n);
	spill(entry_file("b"), bytes, n); /* whole, but not what its name says */
	snprintf(path, sizeof path, "%s", strrchr(entry_file("b"), '/') + 1);
	assert_false(cache_look(&c, path, &e));
	assert_false(fetch(&c, "b", "some text"));
	free(bytes);
	cache_files files = cache_system_files;
	c.files = &files;
	files.read = read_nothing;
	note_clear();
	assert_false(fetch(&c, "a", "some text"));
	assert_false(file_read(&files, entry_file("a"), 1 << 20, &bytes, &n));
	assert_int_equal(errno, EIO);
	files.read = read_interrupted;
	assert_true(fetch(&c, "a", "some text"));
	assert_true(interruptions > 4);
	/* more sections than a file holds are not stored */
	static cache_section many[100000];
	cache_key k = key_of("many");
	for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) many[i] = (cache_section){CACHE_LABEL, "", 0};
	assert_false(cache_put(&c, &k, many, sizeof many / sizeof many[0]));
	assert_true(cache_put(&c, &k, many, 2)); /* and empty ones are */
	assert_true(cache_get(&c, &k, &e));
	assert_int_equal(e.sections[1].nbytes, 0);
	cache_entry_free(&e);
	cache_close(&c);
	assert_false(cache_put_text(&c, &k, "text", 4)); /* into no folder */
	assert_false(cache_get_text(&c, &k, &bytes, &n));
}

static void test_every_truncation(void **state)
{
	(void)state;
	cache c;
	size_t n;
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "some text"));
	char *bytes = slurp(entry_file("a"), &n);
	for (size_t i = 0; i < n; i++) {
		spill(entry_file("a"), bytes, i);
		note_clear();
		assert_false(fetch(&c, "a", "some text"));
		assert_non_null(strstr(blk_note(), "is not used: "));
	}
	char longer[1024];
	memcpy(longer, bytes, n);
	longer[n] = 0;
	spill(entry_file("a"), longer, n + 1);
	assert_false(fetch(&c, "a", "some text"));
	spill(entry_file("a"), bytes, n);
	assert_true(fetch(&c, "a", "some text"));
	free(bytes);
	cache_close(&c);
}

static void test_every_bit_flip(void **state)
{
	(void)state;
	cache c;
	size_t n;
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "some text"));
	char *bytes = slurp(entry_file("a"), &n);
	assert_true(n < 4096);
	for (size_t i = 0; i < 8 * n; i++) {
		bytes[i / 8] ^= (char)(1 << i % 8);
		spill(entry_file("a"), bytes, n);
		bytes[i / 8] ^= (char)(1 << i % 8);
		note_clear();
		if (fetch(&c, "a", "some text")) fail_msg("bit %zu is not noticed", i);
		assert_non_null(strstr(blk_note(), "is not used: "));
	}
	free(bytes);
	cache_close(&c);
}

/* A file with a right checksum whose insides lie: the sums are made again after each change. */
static void test_hostile_insides(void **state)
{
	(void)state;
	cache c;
	size_t n;
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "some text"));
	char *bytes = slurp(entry_file("a"), &n), *copy = malloc(n);
	for (size_t at = 8; at < n; at++)
		for (int v = 0; v < 3; v++) {
			memcpy(copy, bytes, n);
			copy[at] = (char)(v == 0 ? 0xff : v == 1 ? 0x7f : copy[at] + 1);
			memset(copy + 40, 0, 16);
			cache_key sum = cache_digest(copy, n);
			memcpy(copy + 40, &sum, 16);
			spill(entry_file("a"), copy, n);
			cache_key k = key_of("a");
			cache_entry e;
			if (cache_get(&c, &k, &e)) { /* texts may have changed; every section lies inside the file */
				for (size_t i = 0; i < e.nsections; i++) {
					const char *s = e.sections[i].bytes;
					assert_true(s >= (char *)e.memory &&
						    s + e.sections[i].nbytes < (char *)e.memory + n);
					assert_int_equal(s[e.sections[i].nbytes], 0);
				}
				cache_entry_free(&e);
			}
		}
	free(bytes);
	free(copy);
	cache_close(&c);
}

/* An entry whose digest is right and whose sections do not end where it does. */
static void test_odd_ends(void **state)
{
	(void)state;
	cache c;
	size_t n;
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "some text"));
	char *bytes = slurp(entry_file("a"), &n), *copy = calloc(1, n + 8);
	for (int by = -7; by <= 8; by++) { /* bytes more than there are sections for, or fewer */
		uint64_t size = n + (uint64_t)by;
		memset(copy, 0, n + 8);
		memcpy(copy, bytes, by < 0 ? size : n);
		memcpy(copy + 32, &size, 8);
		memset(copy + 40, 0, 16);
		cache_key sum = cache_digest(copy, size);
		memcpy(copy + 40, &sum, 16);
		spill(entry_file("a"), copy, size);
		note_clear();
		if (by == 0) {
			assert_true(fetch(&c, "a", "some text"));
			continue;
		}
		assert_false(fetch(&c, "a", ""));
		assert_non_null(strstr(blk_note(), "damaged"));
	}
	free(bytes);
	free(copy);
	cache_close(&c);
}

static void test_foreign_files(void **state)
{
	(void)state;
	cache c;
	size_t n;
	char other[256];
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "text of a"));
	assert_true(store(&c, "b", "text of b"));
	strcpy(other, entry_file("b"));
	char *bytes = slurp(other, &n);
	spill(entry_file("a"), bytes, n); /* b's file under a's name */
	assert_false(fetch(&c, "a", ""));
	assert_non_null(strstr(blk_note(), "another entry under this name"));
	free(bytes);
	unlink(entry_file("a"));
	assert_int_equal(symlink(other, entry_file("a")), 0);
	assert_false(fetch(&c, "a", ""));
	assert_true(store(&c, "a", "text of a")); /* replaces the link, not what it points to */
	assert_true(fetch(&c, "a", "text of a") && fetch(&c, "b", "text of b"));
	unlink(entry_file("a"));
	assert_int_equal(mkdir(entry_file("a"), 0700), 0);
	note_clear();
	assert_false(fetch(&c, "a", ""));
	assert_non_null(strstr(blk_note(), "Is a directory"));
	assert_false(store(&c, "a", "text of a"));
	assert_int_equal(count_files(), 2); /* no temporary file is left */
	rmdir(entry_file("a"));
	assert_int_equal(mkfifo(entry_file("a"), 0600), 0);
	assert_false(fetch(&c, "a", "")); /* and does not wait for a writer */
	assert_true(store(&c, "a", "text of a"));
	assert_true(fetch(&c, "a", "text of a"));
	chmod(entry_file("a"), 0666);
	note_clear();
	assert_false(fetch(&c, "a", ""));
	assert_non_null(strstr(blk_note(), "writable by others"));
	chmod(entry_file("a"), 0600);
	if (geteuid() == 0) {
		assert_int_equal(chown(entry_file("a"), 12345, 12345), 0);
		note_clear();
		assert_false(fetch(&c, "a", ""));
		assert_non_null(strstr(blk_note(), "owned by someone else"));
	}
	cache_close(&c);
}

/* What others may write is neither code nor a record of tuning; what they may only read, and our own bits, are no
 * matter. */
static void test_who_may_write(void **state)
{
	(void)state;
	cache c, beside;
	cache_open(&c, NULL);
	assert_true(cache_beside(&c, "tune", &beside));
	cache_key k = key_of("record");
	char record[256], *text;
	size_t n;
	assert_true(store(&c, "a", "some text"));
	assert_true(cache_put_text(&beside, &k, "a record", 8));
	snprintf(record, sizeof record, "%s/tune/%s", folder, strrchr(entry_file("record"), '/') + 1);
	for (unsigned bit = 1; bit <= 0400; bit <<= 1) {
		bool good = bit != 02 && bit != 020;
		note_clear();
		assert_int_equal(chmod(entry_file("a"), 0600 | bit), 0);
		assert_int_equal(chmod(record, 0600 | bit), 0);
		if (fetch(&c, "a", "some text") != good) fail_msg("an entry of mode %o", 0600 | bit);
		assert_true(!strstr(blk_note(), "writable by others") == good);
		bool got = cache_get_text(&beside, &k, &text, &n);
		if (got != good) fail_msg("a record of mode %o", 0600 | bit);
		if (got) {
			assert_int_equal(n, 8);
			assert_string_equal(text, "a record");
			free(text);
		}
	}
	assert_int_equal(chmod(record, 0600), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(record, 12345, 12345), 0);
		assert_false(cache_get_text(&beside, &k, &text, &n));
	}
	cache_close(&beside);
	cache_close(&c);
}

static void as_another(void)
{
	cache c;
	if (setegid(12345) || seteuid(12345)) _exit(9);
	cache_open(&c, NULL);
	bool found = fetch(&c, "a", "some text");
	cache_close(&c);
	if (seteuid(0)) _exit(10); /* so that what it reached is counted */
	_exit(found ? 0 : 1);
}

/* Whoever is not the system's owner trusts what is his own. */
static void test_own_cache(void **state)
{
	(void)state;
	char own[128];
	int status;
	if (geteuid() != 0) skip();
	snprintf(own, sizeof own, "%s/own", folder);
	assert_int_equal(chmod(folder, 0755) | mkdir(own, 0700) | chown(own, 12345, 12345), 0);
	pid_t child = fork();
	if (child == 0) {
		cache c;
		setenv("BLK_CACHE_DIR", own, 1);
		if (setegid(12345) || seteuid(12345)) _exit(9);
		cache_open(&c, NULL);
		bool good = store(&c, "b", "of my own") && fetch(&c, "b", "of my own");
		cache_close(&c);
		_exit(seteuid(0) ? 10 : good ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* What the system's owner has put there is trusted, by whomever. */
static void test_roots_cache(void **state)
{
	(void)state;
	if (geteuid() != 0) skip();
	cache c;
	int status;
	char code[128];
	snprintf(code, sizeof code, "%s/code", folder);
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "some text"));
	cache_close(&c);
	assert_int_equal(chmod(folder, 0755) | chmod(code, 0755) | chmod(entry_file("a"), 0644), 0);
	pid_t child = fork();
	if (child == 0) as_another();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_no_folder_to_write(void **state)
{
	(void)state;
	cache c;
	char path[128];
	snprintf(path, sizeof path, "%s/file", folder);
	spill(path, "x", 1);
	setenv("BLK_CACHE_DIR", path, 1); /* a file where the folder should be */
	cache_open(&c, NULL);
	assert_false(store(&c, "a", "x"));
	assert_false(fetch(&c, "a", "x"));
	assert_string_equal(blk_note(), "");
	cache_close(&c);
	setenv("BLK_CACHE_DIR", "/proc/none", 1);
	cache_open(&c, NULL);
	assert_false(store(&c, "a", "x"));
	assert_false(fetch(&c, "a", "x"));
	cache_close(&c);
	if (geteuid() != 0) {
		snprintf(path, sizeof path, "%s/readonly", folder);
		mkdir(path, 0500);
		setenv("BLK_CACHE_DIR", path, 1);
		cache_open(&c, NULL);
		assert_false(store(&c, "a", "x"));
		cache_close(&c);
	}
	assert_string_equal(blk_note(), "");
}

/* ---- Faults of the file calls ---- */

static struct {
	int calls, fail_at, error; /* error 0: a short count; -1: the process is killed instead */
	const char *name;
	char order[512]; /* the names of the calls so far */
} fault;

static bool faulted(const char *name)
{
	size_t n = strlen(fault.order);
	snprintf(fault.order + n, sizeof fault.order - n, "%s ", name);
	if (++fault.calls != fault.fail_at) return false;
	fault.name = name;
	if (fault.error < 0) _exit(42);
	errno = fault.error;
	return true;
}
static int f_open(const char *p, int flags, unsigned mode)
{
	return faulted("open") ? -1 : cache_system_files.open(p, flags, mode);
}
static ssize_t f_read(int fd, void *to, size_t n)
{
	if (faulted("read")) return fault.error ? -1 : read(fd, to, n / 2);
	return read(fd, to, n);
}
static ssize_t f_write(int fd, const void *from, size_t n)
{
	if (faulted("write")) {
		ssize_t half = write(fd, from, n / 2); /* a full disk takes some */
		errno = fault.error;
		return fault.error ? -1 : half;
	}
	return write(fd, from, n);
}
static int f_fsync(int fd)
{
	return faulted("fsync") ? -1 : fsync(fd);
}
static int f_close(int fd)
{
	bool bad = faulted("close");
	int r = close(fd);
	errno = fault.error;
	return bad ? -1 : r;
}
static int f_fstat(int fd, struct stat *st)
{
	return faulted("fstat") ? -1 : fstat(fd, st);
}
static int f_rename(const char *a, const char *b)
{
	return faulted("rename") ? -1 : rename(a, b);
}
static int f_unlink(const char *p)
{
	return faulted("unlink") ? -1 : unlink(p);
}
static int f_mkdir(const char *p, unsigned mode)
{
	return faulted("mkdir") ? -1 : mkdir(p, (mode_t)mode);
}
static const cache_files faulty_files = {
	f_open, f_read, f_write, f_fsync, f_close, f_fstat, f_rename, f_unlink, f_mkdir};

static void test_call_faults(void **state)
{
	(void)state;
	static const int errors[] = {EIO, ENOSPC, EACCES, EMFILE, EINTR, 0};
	cache c;
	cache_open(&c, &faulty_files);
	for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++)
		for (int at = 1;; at++) {
			empty_folder(folder);
			memset(&fault, 0, sizeof fault);
			fault.fail_at = at;
			fault.error = errors[e];
			bool stored = store(&c, "a", "some text");
			bool found = fetch(&c, "a", "some text");
			if (found && !stored) fail_msg("an entry that was not stored is found");
			int calls = fault.calls;
			fault.fail_at = 0;
			fetch(&c, "a", "some text"); /* right or a miss, checked inside */
			assert_true(store(&c, "a", "some text"));
			assert_true(fetch(&c, "a", "some text"));
			if (calls < at) break;
		}
	cache_close(&c);
}

/* A name must never stand for bytes that a power cut can take: they are synced before the name is theirs, the folder
 * after. */
static void test_synced_before_named(void **state)
{
	(void)state;
	cache c;
	cache_open(&c, &faulty_files);
	assert_true(store(&c, "a", "some text")); /* makes the folder */
	memset(&fault, 0, sizeof fault);
	assert_true(store(&c, "a", "another text"));
	assert_string_equal(fault.order, "open write fsync close rename open fsync close ");
	memset(&fault, 0, sizeof fault);
	fault.fail_at = 3;
	fault.error = EIO;
	assert_false(store(&c, "a", "a text that is not on the disk"));
	assert_string_equal(fault.order, "open write fsync close unlink ");
	assert_true(fetch(&c, "a", "another text"));
	cache_close(&c);
}

/* The process dies at each call of a store that replaces an entry: afterwards the old one or the new one is there. */
static void test_kills(void **state)
{
	(void)state;
	cache c;
	cache_open(&c, &faulty_files);
	for (int at = 1;; at++) {
		empty_folder(folder);
		memset(&fault, 0, sizeof fault);
		assert_true(store(&c, "a", "the old text"));
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			memset(&fault, 0, sizeof fault);
			fault.fail_at = at;
			fault.error = -1;
			store(&c, "a", "a newer text");
			_exit(0);
		}
		int status = 0;
		assert_int_equal(waitpid(child, &status, 0), child);
		note_clear();
		cache_key k = key_of("a");
		cache_entry e;
		assert_true(cache_get(&c, &k, &e));
		const char *s = cache_find(&e, CACHE_SIGNATURE)->bytes;
		if (strcmp(s, "the old text") && strcmp(s, "a newer text"))
			fail_msg("after a kill at call %d: %s", at, s);
		cache_entry_free(&e);
		assert_string_equal(blk_note(), "");
		assert_true(store(&c, "a", "the last text"));
		assert_true(fetch(&c, "a", "the last text"));
		if (WEXITSTATUS(status) == 0) break;
		assert_int_equal(WEXITSTATUS(status), 42);
	}
	cache_close(&c);
}

static void test_eight_processes(void **state)
{
	(void)state;
	pid_t children[8];
	fflush(NULL);
	for (int p = 0; p < 8; p++)
		if ((children[p] = fork()) == 0) {
			cache c;
			cache_open(&c, NULL);
			for (int i = 0; i < 200; i++) {
				char key[16], text[64];
				snprintf(key, sizeof key, "key %d", (i * 7 + p) % 5);
				snprintf(text, sizeof text, "the text of %s", key);
				cache_key k = key_of(key);
				cache_entry e;
				if (cache_get(&c, &k, &e)) {
					const cache_section *s = cache_find(&e, CACHE_SIGNATURE);
					if (!s || strcmp(s->bytes, text) != 0) _exit(1);
					cache_entry_free(&e);
				}
				cache_section part = {CACHE_SIGNATURE, text, strlen(text)};
				if (i % 3 == 0 && !cache_put(&c, &k, &part, 1)) _exit(2);
				if (blk_note()[0]) _exit(3);
			}
			_exit(0);
		}
	for (int p = 0; p < 8; p++) {
		int status;
		assert_int_equal(waitpid(children[p], &status, 0), children[p]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_files(), 5);
}

/* ---- Size ---- */

static void age(const char *path, long seconds)
{
	struct timespec now, t[2];
	clock_gettime(CLOCK_REALTIME, &now);
	t[0] = t[1] = (struct timespec){now.tv_sec - seconds, 0};
	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void test_least_recently_used_goes(void **state)
{
	(void)state;
	cache c;
	char big[4000], key[8];
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = 0;
	setenv("BLK_CACHE_SIZE", "20K", 1);
	cache_open(&c, NULL);
	for (int i = 0; i < 4; i++) {
		snprintf(key, sizeof key, "%d", i);
		assert_true(store(&c, key, big));
		age(entry_file(key), 4000 - 100 * i);
	}
	assert_true(fetch(&c, "0", big)); /* the oldest is used again */
	assert_true(store(&c, "4", big));
	assert_int_equal(count_files(), 4); /* 5 do not fit; below nine tenths after cleaning */
	assert_false(fetch(&c, "1", big));
	assert_true(fetch(&c, "0", big) && fetch(&c, "2", big) && fetch(&c, "3", big) && fetch(&c, "4", big));
	char *huge = malloc(30000);
	memset(huge, 'y', 29999);
	huge[29999] = 0;
	assert_false(store(&c, "huge", huge));
	assert_int_equal(count_files(), 4);
	free(huge);
	cache_close(&c);
}

/* How many bytes a text of n bytes takes as an entry. */
static uint64_t entry_bytes(cache *c, size_t n)
{
	struct stat st;
	char text[8192];
	memset(text, 'z', n);
	text[n] = 0;
	assert_true(store(c, "measured", text));
	assert_int_equal(stat(entry_file("measured"), &st), 0);
	assert_int_equal(unlink(entry_file("measured")), 0);
	return (uint64_t)st.st_size;
}

static char stays[256];
static int unlink_others(const char *path)
{
	return strcmp(path, stays) == 0 ? (errno = EPERM, -1) : unlink(path);
}
/* What cannot be removed makes no room, so that the next one goes. */
static void test_one_that_stays(void **state)
{
	(void)state;
	cache c;
	char text[1001], key[8];
	cache_files files = cache_system_files;
	memset(text, 'x', 1000);
	text[1000] = 0;
	files.unlink = unlink_others;
	cache_open(&c, &files);
	c.limit = 4 * entry_bytes(&c, 1000) - 1;
	for (int i = 0; i < 3; i++) {
		snprintf(key, sizeof key, "%d", i);
		assert_true(store(&c, key, text));
		age(entry_file(key), 300 - 100 * i);
	}
	strcpy(stays, entry_file("0"));
	assert_true(store(&c, "3", text));
	assert_true(fetch(&c, "0", text) && fetch(&c, "2", text) && fetch(&c, "3", text));
	assert_false(fetch(&c, "1", text));
	cache_close(&c);
}

/* At the limit nothing goes; one byte over it the oldest go, down to nine tenths, but never what was just stored. */
static void test_limit_to_the_byte(void **state)
{
	(void)state;
	cache c;
	char small[1001], large[6001];
	memset(small, 'x', 1000);
	memset(large, 'y', 6000);
	small[1000] = large[6000] = 0;
	cache_open(&c, NULL);
	const uint64_t s = entry_bytes(&c, 1000), l = entry_bytes(&c, 6000);
	c.limit = 3 * s;
	const char *const keys[] = {"0", "1", "2"};
	for (int i = 0; i < 3; i++) {
		assert_true(store(&c, keys[i], small));
		age(entry_file(keys[i]), 300 - 100 * i);
	}
	assert_int_equal(count_files(), 3); /* exactly the limit */
	c.limit = 4 * s - 1;
	assert_true(store(&c, "3", small)); /* one byte over it */
	assert_int_equal(count_files(), 3);
	assert_false(fetch(&c, "0", small));
	assert_true(fetch(&c, "1", small) && fetch(&c, "2", small) && fetch(&c, "3", small));
	/* alone above nine tenths of the limit: the others make room for it and it stays */
	age(entry_file("3"), -60); /* as of another's clock: what was just stored need not have the latest time */
	c.limit = l + l / 20;
	assert_true(store(&c, "large", large));
	assert_int_equal(count_files(), 1);
	assert_true(fetch(&c, "large", large));
	c.limit = l;
	assert_true(store(&c, "large", large)); /* as large as the whole cache */
	assert_true(fetch(&c, "large", large));
	c.limit = l - 1;
	assert_false(store(&c, "larger", large));
	assert_false(fetch(&c, "large", large)); /* nor is it read beyond the limit */
	cache_close(&c);
}

static void test_leftovers_go(void **state)
{
	(void)state;
	cache c;
	char path[128];
	cache_open(&c, NULL);
	assert_true(store(&c, "a", "x"));
	snprintf(path, sizeof path, "%s/code/.tmp-1-0", folder);
	spill(path, "half", 4);
	assert_true(store(&c, "b", "x"));
	assert_int_equal(access(path, F_OK), 0); /* may be another process at work */
	age(path, 7200);
	cache_close(&c);
	cache_open(&c, NULL);
	assert_true(store(&c, "c", "x"));
	assert_int_equal(access(path, F_OK), -1);
	cache_close(&c);
}

/* A scan of the folder removes leftovers.  There is one at the first store, and then when more was stored than an
 * eighth of what was free; not at each, which would cost more the fuller the folder is. */
static void test_scans_are_few(void **state)
{
	(void)state;
	cache c;
	char path[128], big[4096];
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = 0;
	assert_int_equal(blk_cache_clear(NULL), BLK_OK);
	cache_open(&c, NULL);
	uint64_t bytes = entry_bytes(&c, sizeof big - 1);
	cache_close(&c);
	cache_open(&c, NULL);
	c.limit = 17 * bytes;
	snprintf(path, sizeof path, "%s/code/.tmp-1-0", folder);
	/* with one entry 16 are free, of which an eighth is 2; with four entries 13, of which it is 1.6 */
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
	static const bool scans[] = {true, false, false, true, false, true};
	for (int i = 0; i < 6; i++) {
		spill(path, "half", 4);
		age(path, 7200);
		assert_true(store(&c, keys[i], big));
		assert_int_equal(access(path, F_OK), scans[i] ? -1 : 0);
	}
	cache_close(&c);
}

static int visit(void *context, const blk_cache_entry *e)
{
	int *seen = context;
	assert_int_equal(strlen(e->file), 32);
	seen[e->valid]++;
	if (e->valid) {
		assert_string_equal(e->kernel, "add");
		assert_string_equal(e->target, "sm_90a");
	}
	return 0;
}

static void test_list_and_clear(void **state)
{
	(void)state;
	cache c;
	int seen[2] = {0, 0};
	uint64_t removed = 99;
	cache_open(&c, NULL);
	assert_int_equal(blk_cache_list(visit, seen), BLK_OK);
	assert_true(store(&c, "a", "x") && store(&c, "b", "y"));
	spill(entry_file("c"), "rubbish", 7);
	assert_int_equal(blk_cache_list(visit, seen), BLK_OK);
	assert_true(seen[1] == 2 && seen[0] == 1);
	/* to be listed is not to be used */
	const struct timespec then[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	struct stat st;
	assert_int_equal(utimensat(AT_FDCWD, entry_file("a"), then, 0), 0);
	assert_int_equal(blk_cache_list(visit, seen), BLK_OK);
	assert_int_equal(stat(entry_file("a"), &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000000);
	assert_true(fetch(&c, "a", "x"));
	assert_int_equal(stat(entry_file("a"), &st), 0);
	assert_true(st.st_mtim.tv_sec > 1000000);
	assert_int_equal(blk_cache_clear(&removed), BLK_OK);
	assert_int_equal(removed, 3);
	assert_int_equal(count_files(), 0);
	assert_int_equal(blk_cache_list(NULL, NULL), BLK_ERROR_ARGUMENT);
	cache_close(&c);
}

static int visit_unlabelled(void *context, const blk_cache_entry *e)
{
	assert_true(e->valid);
	assert_string_equal(e->kernel, "");
	assert_string_equal(e->target, "");
	++*(int *)context;
	return 0;
}
/* Entries of no label, or of half of one; no cache at all; no memory for a name. */
static void test_odd_lists(void **state)
{
	(void)state;
	cache c;
	int seen = 0;
	uint64_t removed = 99;
	const cache_section half = {CACHE_LABEL, "add", 3}, none = {CACHE_SIGNATURE, "x", 1};
	cache_key a = key_of("a"), b = key_of("b");
	cache_open(&c, NULL);
	assert_true(cache_put(&c, &a, &half, 1) && cache_put(&c, &b, &none, 1));
	assert_int_equal(blk_cache_list(visit_unlabelled, &seen), BLK_OK);
	assert_int_equal(seen, 2);
	if (FAULTY_MALLOC) {
		const char *name = strrchr(entry_file("a"), '/') + 1;
		faulty.calls = 0;
		faulty.fail_at = 1;
		faulty.armed = true;
		bool gone = cache_remove(&c, name);
		faulty.armed = false;
		assert_false(gone);
		assert_int_equal(access(entry_file("a"), F_OK), 0);
		assert_true(cache_remove(&c, name));
		assert_int_equal(access(entry_file("a"), F_OK), -1);
	}
	cache_close(&c);
	setenv("BLK_CACHE", "off", 1);
	seen = 0;
	assert_int_equal(blk_cache_list(visit_unlabelled, &seen), BLK_OK);
	assert_int_equal(seen, 0);
	assert_int_equal(blk_cache_clear(&removed), BLK_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(access(entry_file("b"), F_OK), 0);
}

/* ---- In the runtime ---- */

static const char *stands_on; /* the LLVM that the compiler is said to stand on */

static blk_status once(const char *source, bool *from_cache)
{
	blk_device *d = NULL;
	blk_module *m;
	blk_kernel *k;
	blk_buffer *b;
	blk_info info;
	blk_status s = device_open_with("cuda", &fake_seams, &d);
	if (!s && stands_on) d->compiler.llvm = strdup(stands_on);
	if (!s) s = blk_module_source(d, "add.blk", source, NULL, 0, &m);
	if (!s) s = blk_kernel_find(m, "add", &k);
	if (!s) s = blk_buffer_create(d, 64, &b);
	blk_arg n = blk_i32(3);
	if (!s) s = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), n));
	if (!s) s = blk_kernel_info(k, BLK_ARGS(blk_buf(b), blk_buf(b), blk_buf(b), n), &info);
	if (!s) {
		*from_cache = info.from_cache;
		assert_string_equal(info.ptx, "// PTX of add for sm_90a\n");
		assert_string_equal(blk_module_kernel(m, 0), "add");
	}
	blk_device_close(d);
	return s;
}

static void test_warm_start(void **state)
{
	(void)state;
	bool cached = true;
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_false(cached);
	assert_true(fake_checks == 1 && fake_compiles == 1 && fake.links_made == 1);
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_true(cached);
	assert_true(fake_checks == 1 && fake_compiles == 1 && fake.links_made == 1); /* neither compiler was asked */
	fake.capability = 100;
	blk_device *d;
	assert_int_equal(device_open_with("cuda", &fake_seams, &d), BLK_OK);
	blk_module *m;
	assert_int_equal(blk_module_source(d, "add.blk", FAKE_ADD, NULL, 0, &m), BLK_OK);
	assert_int_equal(fake_checks, 2); /* another target, another key */
	assert_int_equal(blk_module_source(d, "other.blk", FAKE_ADD, NULL, 0, &m), BLK_OK);
	assert_int_equal(fake_checks, 3); /* messages and line info would name another file */
	blk_device_close(d);
}

static void test_rebuilds_damaged_code(void **state)
{
	(void)state;
	bool cached;
	char path[600], name[300] = "";
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	snprintf(path, sizeof path, "%s/code", folder);
	DIR *d = opendir(path);
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] == '.') continue;
		snprintf(name, sizeof name, "%s", e->d_name);
		snprintf(path, sizeof path, "%s/code/%s", folder, name);
		int fd = open(path, O_WRONLY);
		assert_int_equal(pwrite(fd, "\xee", 1, 100), 1);
		close(fd);
	}
	closedir(d);
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_false(cached);
	assert_int_equal(fake_compiles, 2);
	assert_non_null(strstr(blk_note(), "damaged"));
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_true(cached);
}

static void test_imports(void **state)
{
	(void)state;
	bool cached;
	char source[1024], path[128];
	snprintf(path, sizeof path, "%s/common.blk", folder);
	snprintf(source, sizeof source, "import %s\n%s", path, FAKE_ADD);
	spill(path, "fn f() {}", 9);
	assert_int_equal(once(source, &cached), BLK_OK);
	assert_int_equal(once(source, &cached), BLK_OK);
	assert_true(cached && fake_checks == 1 && fake_compiles == 1);
	spill(path, "fn g() {}", 9);
	assert_int_equal(once(source, &cached), BLK_OK);
	assert_true(!cached && fake_checks == 2 && fake_compiles == 2);
	assert_int_equal(once(source, &cached), BLK_OK);
	assert_true(cached);
	unlink(path);
	assert_int_equal(once(source, &cached), BLK_OK);
	assert_true(!cached && fake_compiles == 3);
}

/* An upgrade of a shared LLVM changes the compiler, whose own file stays. */
static void test_shared_llvm(void **state)
{
	(void)state;
	bool cached;
	char path[128];
	snprintf(path, sizeof path, "%s/libLLVM.so", folder);
	spill(path, "version 1", 9);
	stands_on = path;
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_true(cached && fake_checks == 1 && fake_compiles == 1);
	age(path, 50); /* the same bytes, installed at another time */
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_true(cached && fake_checks == 1 && fake_compiles == 1);
	spill(path, "version 2", 9); /* others, as many, and as old */
	age(path, 50);
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_true(!cached && fake_checks == 2 && fake_compiles == 2);
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_true(cached);
	unlink(path);
	stands_on = NULL; /* a warm start has loaded no compiler and so knows of none */
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	assert_true(!cached && fake_compiles == 3);
}

/* A cubin that this driver refuses is made again. */
static void test_refused_cubin(void **state)
{
	(void)state;
	bool cached;
	assert_int_equal(once(FAKE_ADD, &cached), BLK_OK);
	int calls = fake.calls, loads = 0;
	for (int at = 1; at < calls; at++) {
		fake.calls = 0;
		fake.fail_at = at;
		fake.fail_with = 209;
		blk_status s = once(FAKE_ADD, &cached);
		if (!strcmp(fake.failed_call, "fake_cuModuleLoadDataEx")) {
			assert_int_equal(s, BLK_OK);
			assert_false(cached);
			loads++;
			break;
		}
	}
	assert_int_equal(loads, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_round_trip),
		T(test_environment),
		T(test_odd_entries),
		T(test_every_truncation),
		T(test_every_bit_flip),
		T(test_hostile_insides),
		T(test_foreign_files),
		T(test_who_may_write),
		T(test_no_folder_to_write),
		T(test_call_faults),
		T(test_synced_before_named),
		T(test_kills),
		T(test_eight_processes),
		T(test_least_recently_used_goes),
		T(test_limit_to_the_byte),
		T(test_leftovers_go),
		T(test_scans_are_few),
		T(test_list_and_clear),
		T(test_warm_start),
		T(test_rebuilds_damaged_code),
		T(test_imports),
		T(test_shared_llvm),
		T(test_refused_cubin),
		T(test_odd_ends),
		T(test_own_cache),
		T(test_roots_cache),
		T(test_one_that_stays),
		T(test_odd_lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
