/* What blkc makes of whole compiles (compiler/tool), of a compiler that is played: which compiles it asks for, what it
 * says of those that fail, and each allocation failing in turn.  What real packages hold: test_package.
 *
 * The seam is the linker's: --wrap=CALL for the compiler and the calls below (Makefile: PACK_CALLS). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/tool/tool.h"
#include "faulty_malloc.h"
#include "runtime/package/package.h"
#include "wrapped.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- The compiler ---- */

enum { CALLS = 32 };

static struct {
	blkc_result as[CALLS]; /* what the calls return, in order; the last one from then on */
	int n;                 /* of these; 0: a good compile */
	const char *none;      /* of the configuration with this define null is returned */
	char asked[CALLS][256];
	int calls;
	const blkc_kernel *kernels; /* a good compile's are the asked one of these */
	bool no_threads, no_affinity;
} play;
static pthread_mutex_t playing = PTHREAD_MUTEX_INITIALIZER;

static char code[] = "// blk: kernel k\n// blk: fits 1\ncode\n// a comment";
static blkc_artifact artifacts[] = {{"k", BLKC_EMIT_PTX, code, sizeof code - 1}, {"k", BLKC_EMIT_OBJECT, "object", 6}};
static const blkc_result good = {.diagnostics = "", .nkernels = 1, .artifacts = artifacts, .nartifacts = 2};

static void note(const blkc_request *r, char *out, size_t room)
{
	size_t n = (size_t)snprintf(
		out, room, "%s %s%s%s:", r->kernel, r->target, r->cpu ? " " : "", r->cpu ? r->cpu : "");
	for (size_t i = 0; i < r->ndefines; i++)
		n += (size_t)snprintf(out + n, room - n, " %s=%s", r->defines[i].name, r->defines[i].value);
	n += (size_t)snprintf(out + n, room - n, ";");
	for (size_t i = 0; i < r->npromises; i++) {
		const blkc_promise *p = &r->promises[i];
		n += (size_t)snprintf(out + n, room - n, p->is_one ? " %s=1" : " %s%%%u", p->name, p->divisible);
	}
}

blkc_result *__wrap_blkc_compile(const blkc_request *r);
blkc_result *__wrap_blkc_compile(const blkc_request *r)
{
	static blkc_result results[CALLS];
	pthread_mutex_lock(&playing);
	int call = play.calls++, kept = call < CALLS ? call : CALLS - 1;
	note(r, play.asked[kept], sizeof play.asked[kept]);
	results[kept] = !play.n ? good : play.as[call < play.n ? call : play.n - 1];
	if (!results[kept].kernels)
		results[kept].kernels = (blkc_kernel *)&play.kernels[strcmp(r->kernel, "second") == 0];
	bool none = play.none && strstr(play.asked[kept], play.none);
	pthread_mutex_unlock(&playing);
	return none ? NULL : &results[kept];
}
void __wrap_blkc_result_free(blkc_result *r);
void __wrap_blkc_result_free(blkc_result *r)
{
	(void)r;
}
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *c);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *c)
{
	return play.no_threads ? EAGAIN : __real_pthread_create(t, a, f, c);
}
int __real_sched_getaffinity(pid_t, size_t, cpu_set_t *);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
	return play.no_affinity ? (errno = EINVAL, -1) : __real_sched_getaffinity(pid, n, set);
}

/* ---- Packing ---- */

#define KERNEL                                                                                                         \
	"kernel k\nparam y *f32\nparam x *const f16\nparam a f32\nparam n i32\nparam m i64\nconst B i32 64\ngrid 0 "   \
	"1\n"

static char said[4096]; /* on standard error */
static FILE *aside;
static int was_error;

static void begin_to_listen(void)
{
	fflush(stderr);
	aside = tmpfile();
	was_error = dup(STDERR_FILENO);
	assert_true(aside && was_error >= 0);
	assert_true(dup2(fileno(aside), STDERR_FILENO) >= 0);
}
static void listen(void)
{
	fflush(stderr);
	dup2(was_error, STDERR_FILENO);
	close(was_error);
	rewind(aside);
	said[fread(said, 1, sizeof said - 1, aside)] = 0;
	fclose(aside);
}

static struct {
	blkc_promise promises[4];
	size_t npromises;
	unsigned threads;
	const char *name; /* null: the text is given */
} given;

static void *pack(const char *targets, const char *signature, const char *second, size_t *bytes, int *status)
{
	const char *names[TOOL_MAX_TARGETS];
	blkc_kernel kernels[2] = {{"k", signature}, {"second", second}};
	blkc_result checked = {.kernels = kernels, .nkernels = second ? 2 : signature ? 1 : 0};
	blkc_define defines[] = {{"D", "7"}};
	blkc_request base = {.size = sizeof base,
		.name = given.name ? given.name : "t.blk",
		.text = given.name ? NULL : "source",
		.text_bytes = given.name ? 0 : 6,
		.promises = given.promises,
		.npromises = given.npromises,
		.defines = defines,
		.ndefines = signature && strstr(signature, "const D ") != NULL};
	tool_package_request q = {.base = &base, .checked = &checked, .targets = names, .threads = given.threads};
	assert_true(tool_targets(targets, names, &q.ntargets));
	begin_to_listen();
	play.kernels = kernels;
	faulty.armed = faulty.fail_at != 0;
	void *out = tool_package(&q, bytes, status);
	faulty.armed = false;
	listen();
	assert_int_equal(out == NULL, *status != 0);
	return out;
}

static int setup(void **state)
{
	(void)state;
	memset(&play, 0, sizeof play);
	memset(&given, 0, sizeof given);
	memset(&faulty, 0, sizeof faulty);
	given.threads = 1;
	return 0;
}

static void asks_for(const char *const *wanted, int n)
{
	for (int i = 0; i < n && i < play.calls; i++) assert_string_equal(play.asked[i], wanted[i]);
	assert_int_equal(play.calls, n);
}

/* ---- Which compiles ---- */

static void test_variants(void **state)
{
	(void)state;
	size_t bytes;
	int status;
	static const char *const usual[] = {"k sm_80:;", "k sm_80:; y%16 x%16", "k sm_80:; y%16 x%16 n%16 m%16",
		"k sm_80:; y%16 x%16 n%8 m%8", "k sm_80:; y%16 x%16 m%8", "k sm_80:; y%16 x%16 n%8", "k cpu x86-64:;",
		"k cpu x86-64:; y%16 x%16 n%16 m%16"};
	void *out = pack("sm_80,cpu", KERNEL, NULL, &bytes, &status);
	assert_int_equal(status, 0);
	assert_string_equal(said, "");
	asks_for(usual, 8);
	package p;
	assert_null(package_decode(out, bytes, &p));
	assert_int_equal(p.nentries, 8);
	assert_string_equal(p.entries[0].signature, /* without configurations */
		"kernel k\nparam y *f32\nparam x *const f16\nparam a f32\nparam n i32\nparam m i64\n"
		"const B i32 64\ngrid 0 1\n");
	assert_string_equal(p.entries[0].payload, "code\n// a comment");
	assert_int_equal(p.entries[7].payload_bytes, 6);
	assert_memory_equal(p.entries[7].payload, "object", 6);
	package_free(&p);
	free(out);
}

/* One more variant for what --specialize says, of the parameters that a kernel has, by the step that it has. */
static void test_specialised(void **state)
{
	(void)state;
	static const char *const wanted[] = {"k sm_80:;", "k sm_80:; y%16 x%16", "k sm_80:; y%16 x%16 n%16 m%16",
		"k sm_80:; y%16 x%16 n%8 m%8", "k sm_80:; y%16 x%16 m%8", "k sm_80:; y%16 x%16 n%8",
		"k sm_80:; x%16 n=1 m%8", "second sm_80:;", "second sm_80:; y%16", "second sm_80:; y%16 n%16 m%16",
		"second sm_80:; y%16 n%4 m%4", "second sm_80:; y%16 m%4", "second sm_80:; y%16 n%4",
		"second sm_80:; n=1 m%4"};
	size_t bytes;
	int status;
	given.promises[0] = (blkc_promise){"n", 0, 1};
	given.promises[1] = (blkc_promise){"m", 8, 0};
	given.promises[2] = (blkc_promise){"x", 16, 0};
	given.promises[3] = (blkc_promise){"a", 16, 0}; /* of a float nothing is promised */
	given.npromises = 4;
	free(pack("sm_80", KERNEL, "kernel second\nparam y *f32\nparam n i32\nparam m i32\n", &bytes, &status));
	assert_int_equal(status, 0);
	asks_for(wanted, 14);
	play.calls = 0; /* 4 is the second kernel's step, and says nothing of the first one's m */
	given.promises[0] = (blkc_promise){"m", 4, 0};
	given.npromises = 1;
	free(pack("sm_80", KERNEL, "kernel second\nparam y *f32\nparam n i32\nparam m i32\n", &bytes, &status));
	assert_int_equal(status, 0);
	assert_int_equal(play.calls, 6 + 6 + 1);
	assert_string_equal(play.asked[12], "second sm_80:; m%4");
	static const struct {
		const char *name;
		unsigned by;
	} unknown[] = {{"m", 3}, {"y", 4}, {"z", 4}};
	for (size_t i = 0; i < 3; i++) {
		play.calls = 0;
		given.promises[0] = (blkc_promise){unknown[i].name, unknown[i].by, 0};
		assert_null(pack("sm_80", KERNEL, NULL, &bytes, &status));
		assert_int_equal(status, 2);
		assert_int_equal(play.calls, 0);
		assert_non_null(strstr(said, "a package knows NAME%16, NAME=1 and"));
	}
}

/* Code whose elements' type a configuration chose has another step, and is asked for again by that. */
static void test_steps(void **state)
{
	(void)state;
	static const char signature[] = "kernel k\nparam y *f32\nparam n i32\n";
	blkc_kernel half = {"k", "kernel k\nparam y *f16\nparam n i32\n"};
	static const char *const wanted[] = {
		"k cpu x86-64:;", "k cpu x86-64:;", "k cpu x86-64:; y%16 n%16", "k cpu x86-64:; y%16 n%16"};
	size_t bytes;
	int status;
	play.as[0] = good;
	play.as[0].kernels = &half;
	play.n = 1;
	free(pack("cpu", signature, NULL, &bytes, &status));
	assert_int_equal(status, 0);
	asks_for(wanted, 4);
	/* a compiler that changes its mind */
	play.as[1] = good;
	play.n = 2;
	play.calls = 0;
	assert_null(pack("cpu", signature, NULL, &bytes, &status));
	assert_int_equal(status, 1);
}

/* The caller's defines, where the kernel has them, and a configuration's. */
static void test_defines(void **state)
{
	(void)state;
	size_t bytes;
	int status;
	static const char *const wanted[] = {"k cpu x86-64: D=7;", "k cpu x86-64: D=7; n%16", "k cpu x86-64: D=7 B=32;",
		"k cpu x86-64: D=7 B=32; n%16", "second cpu x86-64:;"};
	free(pack("cpu", "kernel k\nparam n i32\nconst B i32 64\nconst D i32 1\nconfiguration B=32\n",
		"kernel second\n", &bytes, &status));
	assert_int_equal(status, 0);
	asks_for(wanted, 5);
}

/* As many threads as there are, or fewer, make the same package. */
static void test_threads(void **state)
{
	(void)state;
	size_t bytes, more;
	int status;
	void *one = pack("sm_80,cpu", KERNEL, NULL, &bytes, &status);
	for (int i = 0; i < 4; i++) {
		given.threads = i < 2 ? 64 : 0;
		play.no_threads = i == 1;
		play.no_affinity = i == 3;
		play.calls = 0;
		void *many = pack("sm_80,cpu", KERNEL, NULL, &more, &status);
		assert_int_equal(status, 0);
		assert_int_equal(play.calls, 8);
		assert_int_equal(more, bytes);
		assert_memory_equal(many, one, bytes);
		free(many);
	}
	free(one);
}

/* ---- What fails ---- */

#define PLAIN "kernel k\nparam n i32\nconst B i32 64\n" /* two compiles a target and configuration */

static int packs_with(int from, const blkc_result *then, const char *signature)
{
	size_t bytes;
	int status;
	for (int i = 0; i < CALLS; i++) play.as[i] = i < from ? good : *then;
	play.as[from + 1] = good;
	play.n = from + 2;
	play.calls = 0;
	free(pack("sm_80,cpu", signature, NULL, &bytes, &status));
	return status;
}

static void test_failures(void **state)
{
	(void)state;
	static const char other[] = PLAIN "configuration B=32\n",
			  note_of[] = "blkc: note: configuration B=32 of kernel k is left out for sm_80: t.blk:1: no\n";
	static blkc_kernel garbage = {"k", ""};
	const blkc_result no = {.status = 1, .diagnostics = "t.blk:1: no\nmore\n"},
			  broken = {.status = 4, .diagnostics = "why\n"}, full = {.status = 3, .diagnostics = ""},
			  empty = {.diagnostics = ""};
	blkc_result unsigned_ = good, codeless = good;
	unsigned_.kernels = &garbage;
	codeless.nartifacts = 0;
	const struct {
		const blkc_result *result;
		int at, status;
		const char *says;
	} rows[] = {{&no, 0, 1, "t.blk:1: no\nmore\nblkc: kernel k does not compile for sm_80\n"},
		{&no, 2, 1, "t.blk:1: no\nmore\nblkc: kernel k does not compile for cpu\n"}, {&no, 4, 0, note_of},
		{&broken, 4, 1, "why\nblkc: kernel k does not compile for sm_80\n"},
		{&full, 4, 1, "blkc: out of memory\n"}, {&empty, 0, 1, "blkc: out of memory\n"},
		{&unsigned_, 0, 1, "blkc: out of memory\n"}, {&codeless, 0, 1, "blkc: out of memory\n"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int status = packs_with(rows[i].at, rows[i].result, other);
		if (status != rows[i].status || strcmp(said, rows[i].says) != 0)
			fail_msg("row %zu: %d: %s", i, status, said);
	}
	play.n = 0;
	play.none = "B=32";
	size_t bytes;
	int status;
	assert_null(pack("cpu", other, NULL, &bytes, &status));
	assert_string_equal(said, "blkc: out of memory\n");
}

/* A configuration that compiles for one promise only is left out with all, and told once. */
static void test_left_out(void **state)
{
	(void)state;
	const blkc_result no = {.status = 1, .diagnostics = "no"};
	size_t bytes;
	int status;
	for (int i = 0; i < 8; i++) play.as[i] = i == 4 || i == 5 ? no : good;
	play.n = 8;
	void *out = pack("sm_80,cpu", PLAIN "configuration B=32\n", NULL, &bytes, &status);
	assert_int_equal(status, 0);
	assert_string_equal(said, "blkc: note: configuration B=32 of kernel k is left out for sm_80: no\n");
	package p;
	assert_null(package_decode(out, bytes, &p));
	assert_int_equal(p.nentries, 6);
	for (size_t i = 0; i < 6; i++) assert_string_equal(p.entries[i].target, i < 2 ? "sm_80" : "cpu");
	for (size_t i = 0; i < 6; i++) assert_string_equal(p.entries[i].configuration, i < 4 ? "" : "B=32");
	package_free(&p);
	free(out);
}

/* What is asked for makes no package: nothing is compiled. */
static void test_refused(void **state)
{
	(void)state;
	size_t bytes;
	int status;
	char *many = malloc(1 << 20);
	assert_null(pack("cpu", NULL, NULL, &bytes, &status));
	assert_string_equal(said, "blkc: t.blk has no kernel to pack\n");
	assert_null(pack("cpu", "kernel k\n", "param n i32\n", &bytes, &status));
	assert_non_null(strstr(said, "blkc: "));
	assert_int_equal(status, 1);
	static const struct {
		const char *parameters;
		int configurations;
		const char *says;
	} rows[] = {{"param y *f32\nparam n i32\nparam m i32\n", 4000,
			    "32008 variants are too many for one package (at most 20000)"},
		{"", 12000, "12001 configurations of 1 kernels for 2 targets are too many"}};
	for (size_t i = 0; i < 2; i++) {
		int n = sprintf(many, "kernel k\n%sconst B i32 64\n", rows[i].parameters);
		for (int k = 0; k < rows[i].configurations; k++) n += sprintf(many + n, "configuration B=%d\n", k);
		assert_null(pack("sm_80,cpu", many, NULL, &bytes, &status));
		assert_int_equal(status, 1);
		if (!strstr(said, rows[i].says)) fail_msg("no '%s' in %s", rows[i].says, said);
	}
	assert_int_equal(play.calls, 0);
	free(many);
}

static void test_files(void **state)
{
	(void)state;
	enum { LONG = 200000 };
	char path[] = "/tmp/blk_pack_XXXXXX", *text = malloc(LONG);
	size_t bytes;
	int status, fd = mkstemp(path);
	uint8_t hash[16];
	package p;
	assert_true(fd >= 0 && text);
	for (int i = 0; i < LONG; i++) text[i] = (char)('a' + i % 19);
	assert_int_equal(write(fd, text, LONG), LONG);
	close(fd);
	given.name = path;
	void *out = pack("cpu", PLAIN, NULL, &bytes, &status);
	assert_int_equal(status, 0);
	assert_null(package_decode(out, bytes, &p));
	package_hash(text, LONG, hash);
	assert_memory_equal(p.source_hash, hash, 16); /* all of it was read */
	package_free(&p);
	free(out);
	unlink(path);
	const char *const bad[][2] = {{path, "No such file"}, {"/tmp", "Is a directory"}};
	for (int i = 0; i < 2; i++) {
		given.name = bad[i][0];
		assert_null(pack("cpu", PLAIN, NULL, &bytes, &status));
		assert_int_equal(status, 1);
		if (!strstr(said, bad[i][1])) fail_msg("%s", said);
	}
	free(text);
}

/* ---- Memory ---- */

/* Each allocation fails in turn: no package, or what there would be, and nothing is left. */
static void no_memory(const char *name)
{
	static const char signature[] = KERNEL "configuration B=32\nconfiguration B=16\n";
	const blkc_result no = {.status = 1, .diagnostics = "no"};
	size_t bytes, again;
	int status;
	given.name = name;
	for (int i = 0; i < 24; i++) play.as[i] = i >= 16 && i < 22 ? no : good; /* B=16 for sm_80 */
	play.n = 24;
	uint8_t *whole = pack("sm_80,cpu", signature, NULL, &bytes, &status);
	assert_int_equal(status, 0);
	assert_int_equal(play.calls, 24);
	bool hit = true;
	int failed = 0;
	for (faulty.fail_at = 1; hit; faulty.fail_at++) {
		long live = faulty.live;
		faulty.calls = play.calls = 0;
		void *out = pack("sm_80,cpu", signature, NULL, &again, &status);
		hit = faulty.calls >= faulty.fail_at;
		if (out) {
			assert_int_equal(again, bytes);
			assert_memory_equal(out, whole, bytes);
		} else {
			assert_int_equal(status, 1);
			if (!strstr(said, "out of memory") && !strstr(said, "Cannot allocate memory"))
				fail_msg("%ld: %s", faulty.fail_at, said);
			failed++;
		}
		free(out);
		if (faulty.live != live) fail_msg("allocation %ld: %ld are left", faulty.fail_at, faulty.live - live);
	}
	assert_true(failed > 50);
	faulty.fail_at = 0;
	free(whole);
}

static void test_no_memory(void **state)
{
	if (!FAULTY_MALLOC) skip();
	char path[] = "/tmp/blk_pack_XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "source", 6), 6);
	close(fd);
	no_memory(NULL);
	setup(state);
	no_memory(path);
	unlink(path);
}

/* ---- Headers ---- */

static char *header(const char *path, const char *signature, size_t *n)
{
	blkc_kernel kernel = {"k", signature};
	blkc_result checked = {.kernels = &kernel, .nkernels = 1};
	faulty.calls = 0;
	faulty.armed = faulty.fail_at != 0;
	char *out = tool_header(path, &checked, n);
	faulty.armed = false;
	return out;
}

static void test_header(void **state)
{
	(void)state;
	size_t n;
	char path[400] = "folder.d/", *end = path + strlen(path), letter[600];
	memset(end, 'a', 300);
	strcpy(end + 300, "-b.blk");
	snprintf(letter, sizeof letter,
		"kernel k\nparam int_ i32\nparam __ i32\nparam %.*s bool\nconst A i32 1\nconst B f32 2.5\n", 290, end);
	char *out = header(path, letter, &n);
	assert_int_equal(strlen(out), n);
	assert_non_null(strstr(out, ": bool); by default A = 1, B = 2.5\n * It has no grid clause: "));
	assert_non_null(strstr(out, "\tint32_t int__,\n\tint32_t __,\n\tbool aaaa")); /* two names stay two */
	assert_null(strstr(out, "k_launch_buffers"));
	assert_null(strstr(out, "folder.d"));
	const char *guard = strstr(out, "#ifndef BLK_HEADER_A");
	assert_non_null(guard);
	assert_int_equal(
		strcspn(guard + strlen("#ifndef BLK_HEADER_"), "\n"), 127); /* as long as they are told apart */
	free(out);
	out = header("x-1.blk", "kernel k\nparam y *const f16\ngrid 0 1\n", &n);
	assert_non_null(strstr(out, "#ifndef BLK_HEADER_X_1_BLK\n"));
	assert_non_null(
		strstr(out, "k_launch(blk_module *blk_m, struct CUstream_st *blk_stream_,\n\tconst uint16_t *y)\n"));
	assert_non_null(strstr(
		out, "k_launch_buffers(blk_module *blk_m, struct CUstream_st *blk_stream_,\n\tblk_buffer *y)\n"));
	free(out);
	assert_null(header("x.blk", "no kernel\n", &n));
	for (faulty.fail_at = 1; FAULTY_MALLOC; faulty.fail_at++) {
		long live = faulty.live;
		out = header("x.blk", KERNEL, &n);
		bool hit = faulty.calls >= faulty.fail_at;
		assert_int_equal(out == NULL, hit);
		free(out);
		assert_int_equal(faulty.live, live);
		if (!hit) break;
	}
}

/* ---- Functions for TVM's FFI ---- */

static char *functions(const char *signature, size_t *n)
{
	blkc_kernel kernel = {"k", signature};
	blkc_result checked = {.kernels = &kernel, .nkernels = 1};
	const blkc_define define = {"T", "f16"};
	const blkc_request request = {.defines = &define, .ndefines = 1};
	static const char text[] = "a \"b\"\\\t\xce\xa9?\nend";
	faulty.calls = 0;
	faulty.armed = faulty.fail_at != 0;
	char *out = tool_tvm_ffi("folder/x.blk", &request, &checked, text, sizeof text - 1, n);
	faulty.armed = false;
	return out;
}

static void test_functions(void **state)
{
	(void)state;
	size_t n;
	char *out = functions("kernel k\nparam b *bool\nparam u *u8\nparam i *const i64\nparam h *f16\nparam f *bf16\n"
			      "param e *f8e4m3\nparam g *f8e5m2\nparam v f32\n",
		&n);
	assert_int_equal(strlen(out), n);
	assert_non_null(strstr(out, "/* The kernels of x.blk "));
	assert_non_null(strstr(out, "source[] =\n\t\"a \\\"b\\\"\\\\\\011\\316\\251\\077\\n\"\n\t\"end\";\n"));
	assert_non_null(strstr(out, "defines[] = {\n\t{\"T\", \"f16\"},\n\t{0},\n};\n"));
	assert_non_null(strstr(out, "of_k[] = {\n\t{\"b\", \"*bool\", 1, 6, 8},\n\t{\"u\", \"*u8\", 1, 1, 8},\n"
				    "\t{\"i\", \"*const i64\", 1, 0, 64},\n\t{\"h\", \"*f16\", 1, 2, 16},\n"
				    "\t{\"f\", \"*bf16\", 1, 4, 16},\n\t{\"e\", \"*f8e4m3\", 1, 10, 8},\n"
				    "\t{\"g\", \"*f8e5m2\", 1, 12, 8},\n\t{\"v\", \"f32\", 0, 13, 0},\n\t{0},\n};\n"));
	assert_non_null(strstr(out, ".nparameters = 8, .has_grid = 0}"));
	free(out);
	assert_null(functions("no kernel\n", &n));
	for (faulty.fail_at = 1; FAULTY_MALLOC; faulty.fail_at++) {
		long live = faulty.live;
		out = functions(KERNEL, &n);
		bool hit = faulty.calls >= faulty.fail_at;
		assert_int_equal(out == NULL, hit);
		free(out);
		assert_int_equal(faulty.live, live);
		if (!hit) break;
	}
}

int main(void)
{
	if (!wraps((void *)tool_package)) return puts("[  SKIPPED ] 12 tests") < 0;
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {T(test_variants), T(test_specialised), T(test_steps), T(test_defines),
		T(test_threads), T(test_failures), T(test_left_out), T(test_refused), T(test_files), T(test_no_memory),
		T(test_header), T(test_functions)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
