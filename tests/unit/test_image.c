/* Where the process's own files are and which build they are: code that somebody planted in the current folder never
 * runs, whatever folder the process stands in and however libblk was loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "blk.h"
#include "cache/image.h"
#include "faulty_malloc.h"
#include "wrapped.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define COMPILER "libblkc.so." BLK_ABI_MAJOR

static char folder[64], here[PATH_MAX], libraries[PATH_MAX + 16], self[PATH_MAX];

/* ---- What the system says, by the linker's --wrap (Makefile: IMAGE_CALLS) ---- */

static struct {
	const char *name; /* of the call that fails, at the at-th */
	int at, calls, error;
	const char *maps; /* instead of /proc/self/maps; null: that */
} seam;

static bool refused(const char *name)
{
	if (!seam.name || strcmp(seam.name, name) != 0 || ++seam.calls != seam.at) return false;
	errno = seam.error;
	return true;
}
static void refuse(const char *name, int at, int error)
{
	seam.name = name;
	seam.at = at;
	seam.calls = 0;
	seam.error = error;
}
void *__real_dlopen(const char *, int);
void *__wrap_dlopen(const char *, int);
void *__wrap_dlopen(const char *name, int flags)
{
	return refused("dlopen") ? NULL : __real_dlopen(name, flags);
}
int __real_dlinfo(void *, int, void *);
int __wrap_dlinfo(void *, int, void *);
int __wrap_dlinfo(void *image, int what, void *out)
{
	return refused("dlinfo") ? -1 : __real_dlinfo(image, what, out);
}
ssize_t __real_pread(int, void *, size_t, off_t);
ssize_t __wrap_pread(int, void *, size_t, off_t);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
	return refused("pread") ? -1 : __real_pread(fd, to, n, at);
}
FILE *__real_fopen(const char *, const char *);
FILE *__wrap_fopen(const char *, const char *);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!seam.maps || strcmp(path, "/proc/self/maps") != 0) return __real_fopen(path, mode);
	return fmemopen((void *)(uintptr_t)seam.maps, strlen(seam.maps), "r");
}

static const char *in(const char *name)
{
	static char paths[8][PATH_MAX];
	static int next;
	char *p = paths[next++ % 8];
	snprintf(p, PATH_MAX, "%s/%s", folder, name);
	return p;
}
static void put(const char *path, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}
static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char line[4 * PATH_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	if (system(line) != 0) fail_msg("%s", line);
}

static int setup(void **state)
{
	(void)state;
	memset(&seam, 0, sizeof seam);
	strcpy(folder, "/tmp/blk_image_XXXXXX");
	if (!mkdtemp(folder) || mkdir(in("app"), 0755) || mkdir(in("evil"), 0755) || mkdir(in("evil/app"), 0755))
		return -1;
	setenv("BLK_CACHE", "off", 1);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	char line[128];
	snprintf(line, sizeof line, "rm -rf %s", folder);
	return chdir(here) || system(line);
}

/* A library that leaves a mark when it is loaded, and a program that does when it is run. */
static void plant(const char *path)
{
	shell("cd %s && echo '#include <fcntl.h>\n__attribute__((constructor)) static void ran(void) { "
	      "open(\"%s/ran\", "
	      "O_CREAT | O_WRONLY, 0600); }' >planted.c && cc -shared -fPIC -o %s planted.c",
		folder, folder, path);
}
static void plant_program(const char *path)
{
	char text[256];
	int n = snprintf(text, sizeof text, "#!/bin/sh\n: >%s/ran\n", folder);
	put(path, text, (size_t)n);
}
#define assert_nothing_ran() assert_int_equal(access(in("ran"), F_OK), -1)

/* ---- A process of its own, with a copy of libblk or with the objects ---- */

typedef struct api {
	blk_status (*open)(const char *, blk_device **);
	blk_status (*source)(blk_device *, const char *, const char *, const blk_define *, size_t, blk_module **);
	blk_status (*find)(blk_module *, const char *, blk_kernel **);
	blk_status (*create)(blk_device *, size_t, blk_buffer **);
	blk_status (*launch)(blk_kernel *, blk_stream *, const blk_grid *, const blk_arg *, size_t);
	blk_status (*info)(blk_kernel *, const blk_arg *, size_t, blk_info *);
	void (*close)(blk_device *);
	const char *(*error)(void);
} api;
static const api ours = {blk_device_open, blk_module_source, blk_kernel_find, blk_buffer_create, blk_launch,
	blk_kernel_info, blk_device_close, blk_error};

static api of_library(const char *path)
{
	api a;
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!l) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(90);
	}
	*(void **)&a.open = dlsym(l, "blk_device_open");
	*(void **)&a.source = dlsym(l, "blk_module_source");
	*(void **)&a.find = dlsym(l, "blk_kernel_find");
	*(void **)&a.create = dlsym(l, "blk_buffer_create");
	*(void **)&a.launch = dlsym(l, "blk_launch");
	*(void **)&a.info = dlsym(l, "blk_kernel_info");
	*(void **)&a.close = dlsym(l, "blk_device_close");
	*(void **)&a.error = dlsym(l, "blk_error");
	return a;
}

static const char tuned[] = "kernel twice(y: *f32, n: i32, const BLOCK: i32 = 64) grid(cdiv(n, BLOCK)) {\n"
			    "let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
			    "store(y + i, 2.0, mask = i < n); }\n"
			    "autotune twice key(n) { BLOCK: [64, 128]; }\n";

/* Compiles and runs a kernel on the cpu; *cached: its code came from the cache. */
static blk_status use(const api *a, bool *cached)
{
	blk_device *d = NULL;
	blk_module *m;
	blk_kernel *k;
	blk_buffer *b;
	blk_info info;
	blk_status s = a->open("cpu", &d);
	if (!s) s = a->source(d, "twice.blk", tuned, NULL, 0, &m);
	if (!s) s = a->find(m, "twice", &k);
	if (!s) s = a->create(d, 400, &b);
	if (!s) s = a->launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(100)));
	if (!s) s = a->info(k, BLK_ARGS(blk_buf(b), blk_i32(100)), &info);
	if (!s && cached) *cached = info.from_cache;
	if (s) fprintf(stderr, "%s\n", a->error());
	a->close(d);
	return s;
}

enum { CACHED = 100 };
/* 0, a status, or CACHED. */
static int child(void (*body)(void), char *said, size_t room)
{
	int ends[2], status;
	size_t n = 0;
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		body();
		_exit(99);
	}
	close(ends[1]);
	for (ssize_t got; n + 1 < room && (got = read(ends[0], said + n, room - 1 - n)) > 0;) n += (size_t)got;
	said[n] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status)) fail_msg("signal %d: %s", WTERMSIG(status), said);
	return WEXITSTATUS(status);
}

/* ---- Planted code ---- */

static void relative_then_away(void)
{
	if (chdir(folder)) _exit(91);
	api a = of_library("app/libblk.so");
	if (chdir(in("evil"))) _exit(92);
	_exit((int)use(&a, NULL));
}

static void test_relative_library_after_chdir(void **state)
{
	(void)state;
	char said[4096];
	shell("cp %s/libblk.so %s && ln -s %s/" COMPILER " %s", libraries, in("app"), libraries, in("app"));
	plant(in("evil/app/" COMPILER));
	if (child(relative_then_away, said, sizeof said) != BLK_OK) fail_msg("%s", said);
	assert_nothing_ran();
}

/* Nothing is beside libblk; the relative folder that the loader would search holds the planted one. */
static void searched(void)
{
	setenv("LD_LIBRARY_PATH", "app:", 1);
	if (chdir(folder)) _exit(91);
	execl(self, self, "--library", "libblk.so", in("evil"), NULL);
}

static void test_relative_search(void **state)
{
	(void)state;
	char said[4096];
	shell("cp %s/libblk.so %s", libraries, in("app"));
	plant(in("evil/" COMPILER));
	assert_int_equal(child(searched, said, sizeof said), BLK_ERROR_COMPILER);
	assert_non_null(strstr(said, "relative folder"));
	assert_nothing_ran();
	shell("ln -s %s/" COMPILER " %s", libraries, in("app"));
	if (child(searched, said, sizeof said) != BLK_OK) fail_msg("%s", said);
	assert_nothing_ran();
}

/* A program that was found by PATH has no folder in its name, and one may call it what he likes. */
static void by_path(void)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%.*s", (int)(strrchr(self, '/') - self), self);
	setenv("PATH", path, 1);
	if (chdir(in("evil"))) _exit(91);
	execlp(strrchr(self, '/') + 1, strrchr(self, '/') + 1, "--objects", NULL);
}
static void by_another_name(void)
{
	execl(self, in("evil/program"), "--objects", NULL);
}

static void test_program_without_folder(void **state)
{
	(void)state;
	char said[4096];
	plant(in("evil/" COMPILER));
	if (child(by_path, said, sizeof said) != BLK_OK) fail_msg("%s", said);
	if (child(by_another_name, said, sizeof said) != BLK_OK) fail_msg("%s", said);
	assert_nothing_ran();
}

static void isolated(void)
{
	setenv("BLK_TUNE", "isolated", 1);
	relative_then_away();
}

static void test_helper(void **state)
{
	(void)state;
	char said[4096];
	shell("cp %s/libblk.so %s && ln -s %s/" COMPILER " %s", libraries, in("app"), libraries, in("app"));
	plant_program(in("evil/app/blk-trial"));
	plant_program(in("evil/blk-trial"));
	int status = child(isolated, said, sizeof said);
	assert_nothing_ran();
	assert_int_equal(status, BLK_ERROR_NOT_FOUND);
	assert_non_null(strstr(said, in("app/")));
}

static void test_paths(void **state)
{
	(void)state;
	char path[PATH_MAX];
	assert_true(image_path((void *)test_paths, path, sizeof path));
	assert_string_equal(path, self);
	/* of another library; a sanitizer has a strlen of its own */
	assert_true(image_path((void *)gnu_get_libc_version, path, sizeof path));
	assert_true(path[0] == '/' && strstr(path, "libc"));
	assert_true(image_beside("x", path, sizeof path));
	assert_string_equal(path + strlen(path) - 8, "/tests/x");
	for (size_t room = 1; room <= strlen(self); room++) assert_false(image_path((void *)test_paths, path, room));
	assert_true(image_path((void *)test_paths, path, strlen(self) + 1));
	assert_false(image_path((void *)16, path, sizeof path));
	int on_heap;
	assert_false(image_path(&on_heap, path, sizeof path)); /* "[stack]" is no file */
}

/* A library that was replaced on disk since keeps the name that it had; one that fits no room has none. */
static void test_removed_file(void **state)
{
	(void)state;
	char path[PATH_MAX], was[PATH_MAX];
	snprintf(was, sizeof was, "%s", in("removed"));
	put(was, "some bytes", 10);
	int fd = open(was, O_RDONLY);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	assert_true(p != MAP_FAILED);
	assert_true(image_path(p, path, sizeof path));
	assert_string_equal(path, was);
	unlink(was);
	assert_true(image_path(p, path, sizeof path));
	assert_string_equal(path, was);
	munmap(p, 4096);
	assert_false(image_path(p, path, sizeof path));
	const char *name = "a-name-that-is-longer-than-this-program's";
	size_t folder_length = (size_t)(strrchr(self, '/') - self) + 1, room = folder_length + strlen(name) + 1;
	assert_true(image_beside(name, path, room));
	if (room - 1 > strlen(self)) assert_false(image_beside(name, path, room - 1));
}

/* Lines of the system's list as it might write them too: each says what is at address 0x1800. */
static void test_lists_of_mappings(void **state)
{
	(void)state;
	static const struct {
		const char *maps, *path; /* null: none */
	} rows[] = {{"1000-2000 r-xp 00000000 08:01 17 /usr/lib/a.so\n", "/usr/lib/a.so"},
		{"1000-2000 r-xp 00000000 08:01 17 /usr/lib/a.so (deleted)\n", "/usr/lib/a.so"},
		{"1000-2000 r-xp 00000000 08:01 17 /short\n", "/short"},
		{"1000-2000 r-xp 00000000 08:01 17 /longer than eleven\n", "/longer than eleven"},
		{"1000-1800 r-xp 00000000 08:01 17 /before\n1800-2000 r--p 0 08:01 17 /it\n", "/it"},
		{"nothing of that form\n1000-2000 r-xp 0 08:01 17 /second\n", "/second"},
		{"1000 r-xp 0 08:01 17 /first\n1000-2000 r-xp 0 08:01 17 /second\n", "/second"},
		{"1000-2000 r-xp\n1000-2000 r-xp 0 08:01 17 /second\n", "/second"},
		{"1000-2000 rw-p 00000000 00:00 0 [heap]\n", NULL}, {"1000-2000 rw-p 00000000 00:00 0 \n", NULL},
		{"2000-3000 r-xp 00000000 08:01 17 /behind\n", NULL}};
	if (!wraps((void *)image_path)) skip();
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char path[PATH_MAX];
		seam.maps = rows[i].maps;
		bool found = image_path((void *)(uintptr_t)0x1800, path, sizeof path);
		seam.maps = NULL;
		if (found != (rows[i].path != NULL)) fail_msg("row %zu: %d", i, found);
		if (found) assert_string_equal(path, rows[i].path);
	}
}

/* Where the loader does not tell its folders none is known to be relative. */
static void told_nothing(void)
{
	char *found = image_relative_search();
	if (!found || strcmp(found, "app") != 0) _exit(1); /* of LD_LIBRARY_PATH */
	free(found);
	refuse("dlopen", 1, 0);
	if (image_relative_search()) _exit(2);
	for (int at = 1; at <= 3; at++) {
		refuse("dlinfo", at, 0);
		if (image_relative_search() || seam.calls != at) _exit(3);
	}
	if (FAULTY_MALLOC) {
		seam.name = NULL;
		faulty.fail_at = 1; /* what dlopen() and dlinfo() do with theirs is not ours */
		for (bool all = false; !all; faulty.fail_at++) {
			faulty.calls = 0;
			faulty.armed = true;
			found = image_relative_search();
			faulty.armed = false;
			all = faulty.calls < faulty.fail_at;
			if (all != (found != NULL)) _exit(4);
			free(found);
		}
	}
	_exit(0);
}
static void relative_folders(void)
{
	setenv("LD_LIBRARY_PATH", "/usr/lib:app", 1);
	execl(self, self, "--told", NULL);
}
static void test_loader_tells_nothing(void **state)
{
	(void)state;
	char said[4096];
	if (!wraps((void *)image_path)) skip();
	assert_int_equal(child(relative_folders, said, sizeof said), 0);
}

/* ---- Builds ---- */

static bool same(const char *a, const char *b)
{
	cache_key k, l;
	assert_true(image_identity(a, &k) && image_identity(b, &l));
	return memcmp(&k, &l, sizeof k) == 0;
}

static void test_builds(void **state)
{
	(void)state;
	shell("cd %s && echo 'int f(void) { return 1; }' >a.c && for n in 1122334455667788 1122334455667789; do "
	      "cc -shared -Wl,--build-id=0x$n -o $n.so a.c; done && cc -shared -Wl,--build-id=none -o none.so a.c && "
	      "cp none.so other.so && cp 1122334455667788.so copy.so && "
	      "touch -d 2001-01-01 copy.so && touch -r none.so 112233445566778?.so other.so",
		folder);
	assert_true(same(in("1122334455667788.so"), in("copy.so")));
	assert_false(same(in("1122334455667788.so"), in("1122334455667789.so"))); /* as long, as old */
	assert_true(same(in("none.so"), in("other.so")));
	assert_false(same(in("none.so"), in("copy.so")));
	int fd = open(in("other.so"), O_RDWR);
	assert_int_equal(pwrite(fd, "x", 1, lseek(fd, 0, SEEK_END) - 1), 1);
	close(fd);
	assert_false(same(in("none.so"), in("other.so")));
	cache_key k;
	assert_false(image_identity(in("nowhere.so"), &k));
	assert_false(image_identity(folder, &k));
	assert_int_equal(mkfifo(in("fifo"), 0600), 0);
	assert_false(image_identity(in("fifo"), &k)); /* and does not wait for a writer */
}

/* Whatever the file's head says, nothing outside of it is read: each byte of the head and of the notes changed. */
static void test_hostile_heads(void **state)
{
	(void)state;
	char bytes[1024];
	cache_key k;
	shell("cd %s && echo 'int f(void) { return 1; }' >a.c && cc -shared -Wl,--build-id -o a.so a.c", folder);
	int fd = open(in("a.so"), O_RDONLY);
	assert_int_equal(read(fd, bytes, sizeof bytes), sizeof bytes);
	close(fd);
	for (size_t n = 0; n < sizeof bytes; n += 7) {
		put(in("cut"), bytes, n);
		assert_true(image_identity(in("cut"), &k));
	}
	for (size_t at = 0; at < sizeof bytes; at++) {
		char was = bytes[at];
		bytes[at] = (char)0xff;
		put(in("cut"), bytes, sizeof bytes);
		assert_true(image_identity(in("cut"), &k));
		bytes[at] = was;
	}
}

/* Of all notes of a library the one that is its build's counts; where there is none, all bytes do. */
static void test_notes(void **state)
{
	(void)state;
	enum { AT = 512 };
	static const struct {
		const char *what;
		uint32_t type, name_bytes, bytes;
		const char *name;
		bool counts;
	} rows[] = {{"a build id", NT_GNU_BUILD_ID, 4, 20, "GNU", true},
		{"a short one", NT_GNU_BUILD_ID, 4, 8, "GNU", true}, {"too short", NT_GNU_BUILD_ID, 4, 7, "GNU", false},
		{"another type", NT_GNU_ABI_TAG, 4, 20, "GNU", false},
		{"another name", NT_GNU_BUILD_ID, 4, 20, "CNU", false},
		{"a longer name", NT_GNU_BUILD_ID, 5, 20, "GNUX", false},
		{"no name", NT_GNU_BUILD_ID, 0, 20, "", false},
		{"past the end", NT_GNU_BUILD_ID, 4, 1000, "GNU", false},
		{"a name past the end", NT_GNU_BUILD_ID, 5000, 20, "GNU", false}};
	unsigned char id[20];
	for (int i = 0; i < 20; i++) id[i] = (unsigned char)(7 * i + 1);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int second = 0; second < 2; second++) { /* alone, or behind a note that does not count */
			unsigned char bytes[1024] = {0};
			cache_key k, whole = cache_digest(bytes, 0), wanted;
			size_t at = AT;
			ElfW(Ehdr) h = {.e_phoff = sizeof h, .e_phentsize = sizeof(ElfW(Phdr)), .e_phnum = 2};
			ElfW(Nhdr) first = {4, 3, 1}, note = {rows[i].name_bytes, rows[i].bytes, rows[i].type};
			memcpy(h.e_ident, ELFMAG, SELFMAG);
			h.e_ident[EI_CLASS] = ELFCLASS64;
			if (second) {
				memcpy(bytes + at, &first, sizeof first);
				at += sizeof first + 4 + 4;
			}
			memcpy(bytes + at, &note, sizeof note);
			at += sizeof note;
			memcpy(bytes + at, rows[i].name, strlen(rows[i].name));
			at += (rows[i].name_bytes + 3) & ~3u;
			if (at < 900) memcpy(bytes + at, id, sizeof id);
			at += (rows[i].bytes + 3) & ~3u;
			if (at > AT + 100) at = AT + 60;
			ElfW(Phdr)
				p[2] = {{.p_type = PT_LOAD}, {.p_type = PT_NOTE, .p_offset = AT, .p_filesz = at - AT}};
			memcpy(bytes, &h, sizeof h);
			memcpy(bytes + sizeof h, p, sizeof p);
			put(in("notes"), (char *)bytes, sizeof bytes);
			assert_true(image_identity(in("notes"), &k));
			whole = cache_digest(bytes, sizeof bytes);
			wanted = rows[i].counts ? cache_digest(id, rows[i].bytes) : whole;
			if (memcmp(&k, &wanted, sizeof k) != 0) fail_msg("%s, %d", rows[i].what, second);
		}
}

/* A signal while a file is read is no end of it; an error is, and a file without memory to read it has no identity. */
static void test_reading_fails(void **state)
{
	(void)state;
	char bytes[300];
	cache_key whole, k;
	if (!wraps((void *)image_path)) skip();
	for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)i;
	put(in("plain"), bytes, sizeof bytes);
	whole = cache_digest(bytes, sizeof bytes);
	for (int at = 1; at <= 4; at++) { /* the head; what there is; the end */
		refuse("pread", at, EINTR);
		assert_true(image_identity(in("plain"), &k));
		assert_memory_equal(&k, &whole, sizeof k);
		assert_true(seam.calls >= 3);
	}
	refuse("pread", 1, EIO); /* no ELF file then, but bytes */
	assert_true(image_identity(in("plain"), &k));
	assert_memory_equal(&k, &whole, sizeof k);
	for (int at = 2; at <= 3; at++) {
		refuse("pread", at, EIO);
		assert_false(image_identity(in("plain"), &k));
	}
	if (FAULTY_MALLOC) {
		seam.name = NULL;
		faulty.fail_at = 1;
		for (bool all = false; !all; faulty.fail_at++) {
			faulty.calls = 0;
			faulty.armed = true;
			bool good = image_identity(in("plain"), &k);
			faulty.armed = false;
			all = faulty.calls < faulty.fail_at;
			assert_int_equal(good, all);
		}
		assert_true(faulty.fail_at > 3); /* both were asked for */
		assert_memory_equal(&k, &whole, sizeof k);
	}
}

static void with_cache(void)
{
	bool cached = false;
	setenv("BLK_CACHE", "on", 1);
	setenv("BLK_CACHE_DIR", in("cache"), 1);
	setenv("BLK_TUNE", "off", 1);
	api a = of_library(in("app/libblk.so"));
	blk_status s = use(&a, &cached);
	_exit(s ? (int)s : cached ? CACHED : 0);
}

/* A cache outlives an installation of the same build, and no other. */
static void test_cache_knows_the_build(void **state)
{
	(void)state;
	char said[4096];
	cache_key k;
	shell("cp %s/libblk.so %s/" COMPILER " %s", libraries, libraries, in("app"));
	assert_int_equal(child(with_cache, said, sizeof said), 0);
	assert_int_equal(child(with_cache, said, sizeof said), CACHED);
	shell("cd %s && cp " COMPILER " new && mv new " COMPILER " && touch -d 2001-01-01 " COMPILER, in("app"));
	assert_int_equal(child(with_cache, said, sizeof said), CACHED);
	/* the build id's own bytes, found through what readelf tells */
	assert_true(image_identity(in("app/" COMPILER), &k));
	shell("cd %s && id=$(readelf -n " COMPILER " | sed -n 's/.*Build ID: //p') && [ ${#id} = 40 ] && python3 -c \""
	      "import sys; b = open('" COMPILER "', 'rb').read(); i = bytes.fromhex(sys.argv[1]); assert i in b; "
	      "open('" COMPILER "', 'wb').write(b.replace(i, bytes(20)))\" $id && touch -d 2001-01-01 " COMPILER,
		in("app"));
	assert_int_equal(child(with_cache, said, sizeof said), 0);
	assert_int_equal(child(with_cache, said, sizeof said), CACHED);
}

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0 || !getcwd(here, sizeof here)) return 1;
	self[n] = 0;
	if (argc == 2 && strcmp(argv[1], "--objects") == 0) return (int)use(&ours, NULL);
	if (argc == 2 && strcmp(argv[1], "--told") == 0) told_nothing();
	if (argc == 4 && strcmp(argv[1], "--library") == 0) {
		api a = of_library(argv[2]);
		return chdir(argv[3]) ? 91 : (int)use(&a, NULL);
	}
	snprintf(libraries, sizeof libraries, "%.*s/../lib", (int)(strrchr(self, '/') - self), self);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {T(test_paths), T(test_removed_file), T(test_relative_library_after_chdir),
		T(test_relative_search), T(test_program_without_folder), T(test_helper), T(test_builds), T(test_notes),
		T(test_hostile_heads), T(test_cache_knows_the_build), T(test_lists_of_mappings),
		T(test_loader_tells_nothing), T(test_reading_fails)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
