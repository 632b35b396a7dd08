/* See cache.h.  A file is
 *
 *	head      magic "blkcache", schema, number of sections, key, bytes of the whole file, checksum
 *	sections  kind, length, bytes, one to eight NULs up to a multiple of eight; each
 *
 * in the machine's byte order (the magic number would not fit another's).  The checksum is over all of the file with
 * its own field zero, so no byte can change unseen; the key in the head catches a file under another's name.
 *
 * Writing: new_file.c, then fsync of the folder.  A crash leaves either the old state or the new one, or a temporary
 * file that the next clean-up removes. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "internal.h"
#include "base/new_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "blkcache"
enum { SCHEMA = 1, MAX_SECTIONS = 65536 };

typedef struct head {
	char magic[8];
	uint32_t schema, nsections;
	cache_key key;
	uint64_t bytes;
	cache_key checksum;
} head;
_Static_assert(sizeof(head) == 56, "the head has no holes");
typedef struct section_head {
	uint32_t kind, zero;
	uint64_t nbytes;
} section_head;

cache_key cache_digest(const void *bytes, size_t n)
{
	XXH128_canonical_t c;
	XXH128_canonicalFromHash(&c, XXH3_128bits(bytes, n));
	cache_key k;
	memcpy(k.bytes, c.digest, sizeof k.bytes);
	return k;
}

/* ---- Where ---- */

static char *join(const char *a, const char *b)
{
	size_t n = strlen(a) + strlen(b) + 2;
	char *s = malloc(n);
	if (s) snprintf(s, n, "%s/%s", a, b);
	return s;
}

static uint64_t read_size(const char *text, uint64_t otherwise)
{
	char *end;
	if (!text || *text < '0' || *text > '9') return otherwise;
	errno = 0;
	uint64_t v = strtoull(text, &end, 10);
	unsigned shift = *end == 'K' || *end == 'k'   ? 10
			 : *end == 'M' || *end == 'm' ? 20
			 : *end == 'G' || *end == 'g' ? 30
						      : 0;
	if (errno || (*end && (!shift || end[1])) || (shift && v >> (64 - shift))) return otherwise;
	return v << shift;
}

void cache_open(cache *c, const cache_files *files)
{
	memset(c, 0, sizeof *c);
	c->files = files ? files : &cache_system_files;
	c->limit = read_size(getenv("BLK_CACHE_SIZE"), UINT64_C(1) << 30);
	c->total = UINT64_MAX; /* not known */
	const char *off = getenv("BLK_CACHE"), *at = getenv("BLK_CACHE_DIR");
	if ((off && (strcmp(off, "off") == 0 || strcmp(off, "0") == 0)) || c->limit == 0) return;
	char *base = NULL;
	if (at && *at)
		base = strdup(at);
	else if ((at = getenv("XDG_CACHE_HOME")) && *at == '/')
		base = join(at, "blk"); /* XDG: relative ones do not count */
	else if ((at = getenv("HOME")) && *at == '/')
		base = join(at, ".cache/blk");
	if (base) c->folder = join(base, "code");
	free(base);
}

void cache_close(cache *c)
{
	free(c->folder);
	c->folder = NULL;
}

static char *entry_path(const cache *c, const cache_key *key)
{
	char name[33];
	for (int i = 0; i < 16; i++) snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
	return join(c->folder, name);
}

/* ---- Reading ---- */

static bool read_all(const cache_files *f, int fd, char *to, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = f->read(fd, to + done, n - done);
		if (got < 0 && errno == EINTR) continue;
		if (got == 0) errno = EIO; /* it shrank under us */
		if (got <= 0) return false;
		done += (size_t)got;
	}
	return true;
}

static bool read_open(const cache_files *f, int fd, size_t limit, char **bytes, size_t *n, struct stat *st)
{
	if (f->fstat(fd, st) != 0) return false;
	if (!S_ISREG(st->st_mode)) return errno = S_ISDIR(st->st_mode) ? EISDIR : EINVAL, false;
	if ((uint64_t)st->st_size > limit) return errno = EFBIG, false;
	char *to = malloc((size_t)st->st_size + 1);
	if (!to) return errno = ENOMEM, false;
	if (!read_all(f, fd, to, (size_t)st->st_size)) {
		int why = errno;
		free(to);
		return errno = why, false;
	}
	to[st->st_size] = 0;
	*bytes = to;
	*n = (size_t)st->st_size;
	return true;
}

const char *file_refusal(int error)
{
	return error == EINVAL ? "it is a pipe or a device and no regular file" : strerror(error);
}

bool file_read(const cache_files *f, const char *path, size_t limit, char **bytes, size_t *n)
{
	struct stat st;
	int fd = f->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0) return false;
	bool good = read_open(f, fd, limit, bytes, n, &st);
	int why = errno;
	f->close(fd);
	errno = why;
	return good;
}

/* Null: valid, and the sections are in the entry. */
static const char *verify(cache_entry *e, size_t n, const cache_key *key)
{
	char *memory = e->memory;
	head h, *in_place = e->memory;
	if (n < sizeof h) return "truncated";
	memcpy(&h, memory, sizeof h);
	if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0) return "not a cache entry";
	if (h.schema != SCHEMA) return "of another version's form";
	if (h.bytes != n) return "truncated";
	memset(&in_place->checksum, 0, sizeof h.checksum);
	cache_key sum = cache_digest(memory, n);
	if (memcmp(&sum, &h.checksum, sizeof sum) != 0) return "damaged";
	if (key && memcmp(&h.key, key, sizeof h.key) != 0) return "another entry under this name";
	if (h.nsections > MAX_SECTIONS) return "damaged";
	e->sections = calloc(h.nsections ? h.nsections : 1, sizeof *e->sections);
	if (!e->sections) return "too large for memory";
	size_t at = sizeof h;
	for (uint32_t i = 0; i < h.nsections; i++) {
		section_head s;
		if (n - at < sizeof s) return "damaged";
		memcpy(&s, memory + at, sizeof s);
		at += sizeof s;
		if (s.nbytes >= n - at || ((s.nbytes + 8) & ~UINT64_C(7)) > n - at) return "damaged";
		if (memory[at + s.nbytes] != 0) return "damaged";
		e->sections[i] = (cache_section){s.kind, memory + at, (size_t)s.nbytes};
		at += (size_t)((s.nbytes + 8) & ~UINT64_C(7));
	}
	e->nsections = h.nsections;
	return at == n ? NULL : "damaged";
}

/* Only files that this user (or root) wrote and no one else may change are code that we would run. */
static const char *distrust(const struct stat *st)
{
	if (st->st_uid != geteuid() && st->st_uid != 0) return "owned by someone else";
	if (st->st_mode & 022) return "writable by others";
	return NULL;
}

static bool read_entry(
	cache *c, const char *path, const cache_key *key, cache_entry *e, struct stat *st, const char **why)
{
	const cache_files *f = c->files;
	size_t n = 0;
	memset(e, 0, sizeof *e);
	int fd = f->open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0) {
		*why = errno == ENOENT || errno == ENOTDIR ? NULL : strerror(errno);
		return false;
	}
	if (!read_open(f, fd, c->limit, (char **)&e->memory, &n, st))
		*why = strerror(errno);
	else
		*why = distrust(st);
	if (!*why) *why = verify(e, n, key);
	if (!*why && key && time(NULL) - st->st_mtime > 60) futimens(fd, NULL); /* used now; a failure only ages it */
	f->close(fd);
	if (*why) cache_entry_free(e);
	return !*why;
}

bool cache_get(cache *c, const cache_key *key, cache_entry *e)
{
	memset(e, 0, sizeof *e);
	char *path = c->folder ? entry_path(c, key) : NULL;
	if (!path) return false;
	struct stat st;
	const char *why = NULL;
	bool good = read_entry(c, path, key, e, &st, &why);
	if (why) note_add("cache entry %s is not used: %s", path, why);
	free(path);
	return good;
}

const cache_section *cache_find(const cache_entry *e, cache_kind kind)
{
	for (size_t i = 0; i < e->nsections; i++)
		if (e->sections[i].kind == kind) return &e->sections[i];
	return NULL;
}

void cache_entry_free(cache_entry *e)
{
	free(e->memory);
	free(e->sections);
	memset(e, 0, sizeof *e);
}

/* ---- Writing ---- */

bool cache_make_folder(const cache *c)
{
	char *path = strdup(c->folder);
	if (!path) return false;
	bool good = true;
	for (char *p = path + 1; good; p++) {
		if (*p && *p != '/') continue;
		char was = *p;
		*p = 0;
		good = c->files->mkdir(path, 0700) == 0 || errno == EEXIST;
		*p = was;
		if (!was) break;
	}
	free(path);
	return good;
}

static char *compose(const cache_key *key, const cache_section *sections, size_t n, size_t *bytes)
{
	size_t total = sizeof(head);
	for (size_t i = 0; i < n; i++) total += sizeof(section_head) + ((sections[i].nbytes + 8) & ~(size_t)7);
	char *out = calloc(1, total);
	if (!out) return NULL;
	head h = {.magic = MAGIC, .schema = SCHEMA, .nsections = (uint32_t)n, .key = *key, .bytes = total};
	memcpy(out, &h, sizeof h);
	size_t at = sizeof h;
	for (size_t i = 0; i < n; i++) {
		section_head s = {sections[i].kind, 0, sections[i].nbytes};
		memcpy(out + at, &s, sizeof s);
		at += sizeof s;
		if (s.nbytes) memcpy(out + at, sections[i].bytes, sections[i].nbytes);
		at += (sections[i].nbytes + 8) & ~(size_t)7;
	}
	h.checksum = cache_digest(out, total);
	memcpy(out, &h, sizeof h);
	*bytes = total;
	return out;
}

static bool publish(cache *c, const char *bytes, size_t n, const char *path)
{
	const cache_files *f = c->files;
	new_file new;
	bool good = new_file_open(&new, f, path, 0600);
	if (!good && errno == ENOENT && cache_make_folder(c)) good = new_file_open(&new, f, path, 0600);
	if (!good || !new_file_write(&new, bytes, n) || !new_file_commit(&new)) return false;
	int folder = f->open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (folder >= 0) {
		f->fsync(folder); /* lost at worst: the entry, never a half of it */
		f->close(folder);
	}
	return true;
}

/* ---- Keeping it small ---- */

static bool is_entry_name(const char *s)
{
	return strlen(s) == 32 && strspn(s, "0123456789abcdef") == 32;
}

/* Temporary files that a crash left an hour ago are removed on the way. */
static bool list(cache *c, cache_listing *l)
{
	memset(l, 0, sizeof *l);
	DIR *d = opendir(c->folder);
	if (!d) return false;
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		bool temporary = strstr(e->d_name, ".tmp-");
		if (!temporary && !is_entry_name(e->d_name)) continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) continue;
		if (temporary) {
			if (time(NULL) - st.st_mtime > 3600) unlinkat(dirfd(d), e->d_name, 0);
			continue;
		}
		if (l->n == l->room) {
			size_t room = l->room ? 2 * l->room : 64;
			cache_file *more = realloc(l->files, room * sizeof *more);
			if (!more) break;
			l->files = more;
			l->room = room;
		}
		cache_file *f = &l->files[l->n++];
		memcpy(f->name, e->d_name, 33); /* an entry's name */
		f->used = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		f->bytes = (uint64_t)st.st_size;
	}
	closedir(d);
	return true;
}

static int by_use(const void *a, const void *b)
{
	const cache_file *x = a, *y = b;
	return x->used != y->used ? (x->used < y->used ? -1 : 1) : strcmp(x->name, y->name);
}

bool cache_list(cache *c, cache_listing *l)
{
	if (!c->folder || !list(c, l)) return false;
	if (l->n) qsort(l->files, l->n, sizeof *l->files, by_use);
	return true;
}

static cache_key key_of_name(const char *name)
{
	cache_key key = {{0}};
	for (int b = 0; b < 16; b++) sscanf(name + 2 * b, "%2hhx", &key.bytes[b]);
	return key;
}

bool cache_look(cache *c, const char *name, cache_entry *e)
{
	struct stat st;
	const char *why = NULL;
	cache_key key = key_of_name(name);
	char *path = join(c->folder, name);
	bool good = path && read_entry(c, path, NULL, e, &st, &why);
	free(path);
	if (good && memcmp(&((head *)e->memory)->key, &key, sizeof key) == 0) return true;
	if (good) cache_entry_free(e);
	return false;
}

bool cache_remove(cache *c, const char *name)
{
	char *path = join(c->folder, name);
	bool gone = path && c->files->unlink(path) == 0;
	free(path);
	return gone;
}

/* A scan of the folder reads all entries' sizes, so one at each store would cost more the fuller the folder is.  Until
 * the next one an eighth of what was free may be stored: processes do not see each other's stores between scans, and
 * eight of them stay within the limit so. */
static bool may_be_full(cache *c, uint64_t bytes)
{
	uint64_t since = atomic_fetch_add(&c->since, bytes) + bytes, total = c->total;
	return total >= c->limit || since > (c->limit - total) / 8;
}

/* Down to nine tenths of the limit, so that not every store has to clean up.  What was just stored at `path` stays: its
 * time may be that of others, since file systems count in ticks. */
static void trim(cache *c, const char *path)
{
	const char *stored = strrchr(path, '/') + 1;
	cache_listing l;
	uint64_t total = 0;
	c->since = 0; /* what others store during the scan counts twice at worst */
	if (!list(c, &l)) return;
	for (size_t i = 0; i < l.n; i++) total += l.files[i].bytes;
	if (total > c->limit) {
		qsort(l.files, l.n, sizeof *l.files, by_use);
		for (size_t i = 0; i < l.n && total > c->limit - c->limit / 10; i++)
			if (strcmp(l.files[i].name, stored) != 0 && cache_remove(c, l.files[i].name))
				total -= l.files[i].bytes;
	}
	c->total = total;
	free(l.files);
}

bool cache_put(cache *c, const cache_key *key, const cache_section *sections, size_t n)
{
	if (!c->folder || n > MAX_SECTIONS) return false;
	size_t bytes;
	char *image = compose(key, sections, n, &bytes);
	char *path = image && bytes <= c->limit ? entry_path(c, key) : NULL;
	bool good = path && publish(c, image, bytes, path);
	if (good && may_be_full(c, bytes)) trim(c, path);
	free(path);
	free(image);
	return good;
}

/* ---- Texts ---- */

bool cache_beside(const cache *c, const char *name, cache *out)
{
	*out = (cache){.files = c->files, .limit = c->limit, .total = UINT64_MAX};
	char *base = c->folder ? strdup(c->folder) : NULL;
	if (!base) return false;
	*strrchr(base, '/') = 0;
	out->folder = join(base, name);
	free(base);
	return out->folder != NULL;
}

bool cache_put_text(cache *c, const cache_key *key, const char *text, size_t n)
{
	char *path = c->folder ? entry_path(c, key) : NULL;
	bool good = path && publish(c, text, n, path);
	if (good && may_be_full(c, n)) trim(c, path);
	free(path);
	return good;
}

bool cache_get_text(cache *c, const cache_key *key, char **text, size_t *n)
{
	enum { MOST = 16 << 20 };
	struct stat st;
	char *path = c->folder ? entry_path(c, key) : NULL;
	if (!path) return false;
	int fd = c->files->open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
	free(path);
	if (fd < 0) return false;
	bool good = read_open(c->files, fd, MOST, text, n, &st);
	if (good && distrust(&st)) {
		free(*text);
		good = false;
	}
	c->files->close(fd);
	return good;
}

void cache_each(cache *c, void (*visit)(void *, const cache_key *), void *context)
{
	cache_listing l;
	if (!cache_list(c, &l)) return;
	for (size_t i = 0; i < l.n; i++) {
		cache_key key = key_of_name(l.files[i].name);
		visit(context, &key);
	}
	free(l.files);
}
