/* Memory that runs out inside LLVM is a result with status 3 and no signal, wherever it happens; the same process then
 * compiles what it would have compiled without.
 *
 * Two ways: a limit on the process's addresses, as a system sets it, at many sizes, in processes that have never used
 * LLVM before; and malloc, which C++'s new stands on, failing from its k-th call on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "blkc.h"
#include "support/llvm_memory.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#ifdef SANITIZED
/* What LLVM holds when it is left is lost, by design: support/llvm_memory.h. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libLLVM\n";
}
#endif

#ifndef SANITIZED
/* Of the thread that arms it: calls so far, the first from which on memory is out, and bytes that are there all the
 * same.  A system that has just given 32 MiB, or taken the reserve back, has a little more: so it is here, with 1 MiB.
 */
static _Thread_local struct {
	bool armed;
	long calls, fail_from;
	size_t left;
} faults __attribute__((tls_model("initial-exec")));
enum { LITTLE = 256 << 10 };

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/* Seen by LLVM's library too. */
#pragma GCC visibility push(default)
static bool is_out(void)
{
	return faults.armed && faults.calls >= faults.fail_from;
}
static bool refused(size_t n)
{
	bool there = n <= faults.left;
	if (!faults.armed) return false;
	faults.calls++;
	faults.left = there ? faults.left - n : 0;
	if (!is_out() || there) return false;
	errno = ENOMEM;
	return true;
}
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	if (n == LLVM_ROOM && is_out()) return errno = ENOMEM, MAP_FAILED;
	if (n == LLVM_ROOM) faults.left = LITTLE;
	return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}
int munmap(void *at, size_t n)
{
	if (n == LLVM_RESERVE) faults.left = LITTLE;
	return (int)syscall(SYS_munmap, at, n);
}
void *malloc(size_t n)
{
	return refused(n) ? NULL : __libc_malloc(n);
}
void *calloc(size_t a, size_t b)
{
	return refused(a * b) ? NULL : __libc_calloc(a, b);
}
#undef realloc /* of tests/mean.h */
void *realloc(void *p, size_t n)
{
	return refused(n) ? NULL : __libc_realloc(p, n);
}
void *aligned_alloc(size_t alignment, size_t n)
{
	return refused(n) ? NULL : __libc_memalign(alignment, n);
}
int posix_memalign(void **out, size_t alignment, size_t n)
{
	*out = refused(n) ? NULL : __libc_memalign(alignment, n);
	return *out ? 0 : ENOMEM;
}
#pragma GCC visibility pop
#endif

static const char *const targets[] = {"sm_90a", "cpu"};
enum { TARGETS = sizeof targets / sizeof targets[0] };

/* Status, and a digest of what was made; -1: not even a result. */
typedef struct made {
	int status;
	uint64_t digest;
} made;

static made answer(const blkc_request *q)
{
	blkc_result *r = blkc_compile(q);
	made m = {r ? r->status : -1, 1469598103934665603u};
	for (size_t i = 0; r && i < r->nartifacts; i++)
		for (size_t k = 0; k < r->artifacts[i].nbytes; k++)
			m.digest = (m.digest ^ ((const uint8_t *)r->artifacts[i].bytes)[k]) * 1099511628211u;
	if (r && r->status == 3 && strcmp(r->diagnostics, "out of memory\n") != 0) m.status = -2;
	if (r && r->status == 1 && strstr(r->diagnostics, "ptxas: Cannot allocate memory"))
		m.status = 3; /* to start it */
	blkc_result_free(r);
	return m;
}

static made compile(const char *source, const char *target)
{
	unsigned emit = strcmp(target, "cpu") == 0 ? BLKC_EMIT_OBJECT : BLKC_EMIT_PTX;
	return answer(&(blkc_request){.size = sizeof(blkc_request),
		.name = "k.blk",
		.text = source,
		.text_bytes = strlen(source),
		.target = target,
		.emit = emit});
}

/* ---- Files and programs ---- */

/* A folder with a file that imports another, and an assembler that is a script: its cubin is the PTX behind a word. */
static char folder[64], main_file[96], library_file[96], assembler[96], temporary[96];

static int set_up_files(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/blk_memory_XXXXXX");
	if (!mkdtemp(folder)) return -1;
	snprintf(main_file, sizeof main_file, "%s/main.blk", folder);
	snprintf(library_file, sizeof library_file, "%s/half.blk", folder);
	snprintf(assembler, sizeof assembler, "%s/assembler", folder);
	snprintf(temporary, sizeof temporary, "%s/temporary", folder);
	const struct {
		const char *path, *text;
	} files[] = {{main_file, "import \"half.blk\";\nkernel k(x: *f32) grid(1) { store(x, half(load(x))); }\n"},
		{library_file, "fn half(a: f32) -> f32 { return a * 0.5; }\n"},
		{assembler, "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
			    "{ printf cubin; cat \"$1\"; } >\"$out\"\n"
			    "echo 'ptxas info    : Used 12 registers, 16 bytes smem'\necho 'ptxas warning : odd'\n"}};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		FILE *f = fopen(files[i].path, "w");
		if (!f || fputs(files[i].text, f) < 0 || fclose(f)) return -1;
	}
	return chmod(assembler, 0700) || mkdir(temporary, 0700) || setenv("TMPDIR", temporary, 1);
}
static int tear_down_files(void **state)
{
	(void)state;
	unsetenv("TMPDIR");
	unlink(main_file);
	unlink(library_file);
	unlink(assembler);
	rmdir(temporary);
	return rmdir(folder);
}

static int count(const char *path)
{
	int n = 0;
	DIR *d = opendir(path);
	while (d && readdir(d)) n++;
	if (d) closedir(d);
	return n;
}

static made assemble(size_t limit)
{
	return answer(&(blkc_request){.size = sizeof(blkc_request),
		.name = main_file,
		.target = "sm_90a",
		.emit = BLKC_EMIT_CUBIN,
		.ptxas = assembler,
		.memory_limit = limit});
}

static void check_end(made m, made whole, int descriptors, const char *what, size_t at)
{
	if (m.status != 3 && !(m.status == 0 && m.digest == whole.digest))
		fail_msg("%s %zu: status %d", what, at, m.status);
	if (count("/proc/self/fd") != descriptors) fail_msg("%s %zu leaves a descriptor", what, at);
	if (count(temporary) != 2) fail_msg("%s %zu leaves a temporary file", what, at);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) fail_msg("%s %zu leaves a process", what, at);
}

/* The compiler's own limit, wherever it is met: in reading the file and what it imports, in running the assembler. */
static void test_limit_of_a_compile(void **state)
{
	(void)state;
	enum { LOADING = 24 << 10, POINTS = 40 };
	made whole = assemble(0);
	assert_int_equal(whole.status, 0);
	int descriptors = count("/proc/self/fd");
	for (size_t limit = 16; limit < LOADING; limit += 80)
		check_end(assemble(limit), whole, descriptors, "limit", limit);
	size_t low = LOADING, high = 64 << 20; /* the least that is enough, to 16 bytes */
	assert_int_equal(assemble(high).status, 0);
	while (high - low > 16) {
		size_t middle = low + (high - low) / 2;
		made m = assemble(middle);
		check_end(m, whole, descriptors, "limit", middle);
		if (m.status)
			low = middle;
		else
			high = middle;
	}
	/* the assembler's part is the last of it: its file names and its log, what it made, its report */
	for (size_t i = 1; i <= POINTS; i++) {
		size_t limit = high - i * (i <= POINTS / 2 ? 16 : 1200);
		check_end(assemble(limit), whole, descriptors, "limit", limit);
	}
	assert_true(assemble(0).digest == whole.digest);
}

#ifndef SANITIZED
static char *unrolled(int statements)
{
	char *source = malloc(64 * (size_t)statements + 256), *at = source;
	at += sprintf(at, "kernel k(x: *f32) grid(1) { var a = 0.0;\n");
	for (int i = 0; i < statements; i++) at += sprintf(at, "a = a * 1.5 + load(x + %d);\n", i);
	sprintf(at, "store(x, a); }\n");
	return source;
}

/* ---- A limit on addresses ---- */

typedef struct found {
	made first, second;
} found;

static size_t addresses(void)
{
	size_t pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%zu", &pages) != 1) pages = 0;
	if (f) fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* In a process of its own: a compile with `room` bytes of addresses more than it has, and one without a limit. */
static found in_a_child(const char *source, const char *target, size_t room)
{
	int status;
	found *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f != MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit whole, less;
		alarm(120); /* a lock that was left held would hang it */
		getrlimit(RLIMIT_AS, &whole);
		less = whole;
		less.rlim_cur = addresses() + room;
		if (room && setrlimit(RLIMIT_AS, &less)) _exit(1);
		f->first = compile(source, target);
		if (setrlimit(RLIMIT_AS, &whole)) _exit(2);
		f->second = compile(source, target);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("%s with %zu KiB: %s %d", target, room >> 10, WIFSIGNALED(status) ? "signal" : "exit",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	found result = *f;
	munmap(f, sizeof *f);
	return result;
}

static void test_limits(void **state)
{
	(void)state;
	char *source = unrolled(300);
	for (int t = 0; t < TARGETS; t++) {
		found whole = in_a_child(source, targets[t], 0);
		assert_true(whole.first.status == 0 && whole.first.digest == whole.second.digest);
		int out = 0, good = 0;
		for (size_t room = 30 << 20; good < 3; room += 3 << 19) {
			found f = in_a_child(source, targets[t], room);
			out += f.first.status == 3;
			good += f.first.status == 0;
			if (f.first.status != 0 && f.first.status != 3)
				fail_msg("%s with %zu KiB: status %d", targets[t], room >> 10, f.first.status);
			if (f.first.status == 0) assert_true(f.first.digest == whole.first.digest);
			assert_true(f.second.status == 0 && f.second.digest == whole.first.digest);
			assert_true(room < 1 << 30);
		}
		print_message("%s: %d limits were too low\n", targets[t], out);
		assert_true(out >= 4);
	}
	free(source);
}

/* ---- malloc failing from its k-th call on ---- */

typedef struct task {
	const char *source, *target;
	long fail_from, calls;
	made made;
} task;

static void *run(void *context)
{
	task *t = context;
	bool files = !t->source;
	faults.calls = 0;
	faults.fail_from = t->fail_from;
	faults.left = 0;
	faults.armed = t->fail_from != 0;
	t->made = files ? assemble(0) : compile(t->source, t->target);
	faults.armed = false;
	t->calls = faults.calls;
	return NULL;
}

/* On a thread of its own, so that a lock that was left held hangs it. */
static task on_a_thread(const char *source, const char *target, long fail_from)
{
	task t = {.source = source, .target = target, .fail_from = fail_from};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, run, &t), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return t;
}

static const char add[] = "kernel k(x: *f32, y: *const f32, n: i32, const B: i32 = 256) grid(cdiv(n, B)) {\n"
			  "  let i = program_id(0) * B + arange(0, B); var s = load(y + i, mask = i < n);\n"
			  "  for j in range(0, n) { s += exp(s); } store(x + i, s + sum(s), mask = i < n); }\n";

static void test_each_part_of_malloc(void **state)
{
	(void)state;
	enum { POINTS = 60 };
	char *source = unrolled(60);
	alarm(200);
	for (int t = 0; t < TARGETS; t++) {
		task whole = on_a_thread(source, targets[t], 0), warm = on_a_thread(source, targets[t], LONG_MAX);
		assert_true(whole.made.status == 0 && warm.made.digest == whole.made.digest && warm.calls > 1000);
		int out = 0;
		for (long k = 1; k <= POINTS; k++) {
			long from = k <= 6 ? k : warm.calls * k / POINTS;
			task f = on_a_thread(source, targets[t], from);
			bool good = f.made.status == 0 && f.made.digest == whole.made.digest; /* a little was enough */
			if (f.made.status != 3 && f.made.status != -1 && !good)
				fail_msg("%s: malloc failing from call %ld of %ld on: status %d", targets[t], from,
					warm.calls, f.made.status);
			out += f.made.status == 3;
			task after = on_a_thread(source, targets[t], 0);
			if (after.made.status || after.made.digest != whole.made.digest)
				fail_msg("%s: after malloc failed from call %ld on: status %d", targets[t], from,
					after.made.status);
		}
		print_message("%s: %d of %d ends were within the compile\n", targets[t], out, POINTS);
		assert_true(out > POINTS / 2);
	}
	alarm(0);
	free(source);
}

/* The same where files are read and a program is run. */
static void test_malloc_around_files(void **state)
{
	(void)state;
	enum { POINTS = 30 };
	alarm(200);
	task whole = on_a_thread(NULL, "", 0), warm = on_a_thread(NULL, "", LONG_MAX);
	assert_true(whole.made.status == 0 && warm.made.digest == whole.made.digest);
	int descriptors = count("/proc/self/fd"), out = 0;
	for (long k = 1; k <= POINTS; k++) { /* the first calls are those of the files, the last those of the program */
		long from = k <= POINTS / 2 ? k : warm.calls - (POINTS - k);
		task f = on_a_thread(NULL, "", from);
		if (f.made.status == -1) f.made.status = 3; /* not even memory to say so */
		out += f.made.status == 3;
		check_end(f.made, whole.made, descriptors, "call", (size_t)from);
	}
	print_message("%d of %d ends were within the compile\n", out, POINTS);
	assert_true(out > 2);
	assert_true(on_a_thread(NULL, "", 0).made.digest == whole.made.digest);
	alarm(0);
}

/* As many compiles as there are threads, each with its own end; one's lack of memory is no other's. */
static void test_beside_others(void **state)
{
	(void)state;
	enum { THREADS = 4, ROUNDS = 6 };
	task reference = on_a_thread(add, "cpu", 0);
	int out_of_memory = 0;
	for (int round = 0; round < ROUNDS; round++) {
		task t[THREADS];
		pthread_t thread[THREADS];
		for (int i = 0; i < THREADS; i++) {
			t[i] = (task){.source = add, .target = "cpu", .fail_from = i % 2 ? 2000 + 900 * round : 0};
			assert_int_equal(pthread_create(&thread[i], NULL, run, &t[i]), 0);
		}
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(thread[i], NULL), 0);
			out_of_memory += t[i].made.status == 3;
			if (i % 2)
				assert_true(t[i].made.status == 3 || t[i].calls < t[i].fail_from);
			else
				assert_true(t[i].made.status == 0 && t[i].made.digest == reference.made.digest);
		}
	}
	assert_true(out_of_memory > ROUNDS);
}
#endif

/* ---- The handlers ---- */

_Noreturn void llvm_fatal(const char *reason, bool diagnose) __asm__("_ZN4llvm18report_fatal_errorEPKcb");
_Noreturn void llvm_bad_alloc(const char *reason, bool diagnose) __asm__("_ZN4llvm22report_bad_alloc_errorEPKcb");
typedef void new_handler(void);
new_handler *cxx_set_new_handler(new_handler *) __asm__("_ZSt15set_new_handlerPFvvE");
new_handler *cxx_get_new_handler(void) __asm__("_ZSt15get_new_handlerv");

static void test_handlers(void **state)
{
	(void)state;
	llvm_guard g;
	jmp_buf out;
	volatile int which = 0;
	int left = setjmp(out);
	if (left) llvm_guard_end(&g);
	switch (which++) {
	case 0: assert_true(llvm_guard_begin(&g, &out)); llvm_fatal("cannot select", false);
	case 1:
		assert_int_equal(left, LLVM_GAVE_UP);
		assert_string_equal(g.complaint, "cannot select");
		assert_true(llvm_guard_begin(&g, &out));
		llvm_bad_alloc("allocation failed", false);
	case 2:
		assert_int_equal(left, LLVM_OUT_OF_MEMORY);
		assert_true(llvm_guard_begin(&g, &out));
		assert_non_null(g.reserve);
		cxx_get_new_handler()(); /* the first time the reserve goes, the second we do */
		assert_null(g.reserve);
		llvm_room(NULL);
		assert_non_null(g.reserve);
		cxx_get_new_handler()();
		cxx_get_new_handler()();
		fail();
	default: assert_int_equal(left, LLVM_OUT_OF_MEMORY);
	}
}

static int asked;
static void hosts_handler(void)
{
	asked++;
}

/* A host that shares the C++ library keeps its own handler for all that is not ours. */
static void test_hosts_handler(void **state)
{
	(void)state;
	new_handler *before = cxx_set_new_handler(hosts_handler);
	assert_int_equal(compile("kernel k(x: *f32) grid(1) { store(x, 1.0); }", "sm_80").status, 0);
	asked = 0;
	cxx_get_new_handler()();
	assert_int_equal(asked, 1);
	cxx_set_new_handler(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifndef SANITIZED
		cmocka_unit_test(test_limits), /* first: no process of it has used LLVM */
		cmocka_unit_test(test_each_part_of_malloc),
		cmocka_unit_test(test_beside_others),
		cmocka_unit_test_setup_teardown(test_malloc_around_files, set_up_files, tear_down_files),
#endif
		cmocka_unit_test_setup_teardown(test_limit_of_a_compile, set_up_files, tear_down_files),
		cmocka_unit_test(test_handlers),
		cmocka_unit_test(test_hosts_handler),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
