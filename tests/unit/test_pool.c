/* The pool of the cpu device's threads, with kernels that are functions of this file: who runs what, which of several
 * reports counts, and that nothing stays behind. */
#include "cpu_fixture.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic int joined;

int pthread_join(pthread_t thread, void **result)
{
	int (*real)(pthread_t, void **) = (int (*)(pthread_t, void **))(uintptr_t)dlsym(RTLD_NEXT, "pthread_join");
	joined++;
	return real(thread, result);
}

static cpu_pool *pool_of(const char *threads)
{
	cpu_pool *p;
	setenv("BLK_CPU_THREADS", threads, 1);
	assert_int_equal(cpu_pool_create(&p), CPU_OK);
	unsetenv("BLK_CPU_THREADS");
	return p;
}

static void none(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)call, (void)first, (void)last, (void)scratch;
}

static int launch(
	cpu_pool *p, blk_cpu_kernel *kernel, uint64_t scratch, const uint32_t grid[3], cpu_watch *w, char error[256])
{
	return cpu_pool_run(p, kernel, scratch, NULL, grid, w, error, 256);
}

/* ---- threads ---- */

static void how_many(void **state)
{
	(void)state;
	static const struct {
		const char *asked;
		unsigned threads;
	} rows[] = {{"1", 1}, {"3", 3}, {"1023", 1023}, {"1024", 1024}, {"1025", 1024}, {"1000000", 1024}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cpu_pool *p = pool_of(rows[i].asked);
		assert_int_equal(cpu_pool_threads(p), rows[i].threads);
		cpu_pool_destroy(p);
	}
}

/* Each waits for the other, which must be another thread's. */
static _Atomic int met;
static void meet(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)call, (void)first, (void)last, (void)scratch;
	met++;
	for (int i = 0; i < 10000 && met < 2; i++) nanosleep(&(struct timespec){0, 1000000}, NULL);
	if (met < 2) met = -100; /* after ten seconds */
}

static void two_at_once(void **state)
{
	(void)state;
	char error[256];
	cpu_pool *p = pool_of("2");
	met = 0;
	assert_int_equal(launch(p, meet, 0, (uint32_t[]){2, 1, 1}, NULL, error), CPU_OK);
	assert_int_equal(met, 2);
	cpu_pool_destroy(p);
}

/* All threads that were started have ended, and their memory is free: here 24 pools of 3 MiB. */
static void nothing_stays(void **state)
{
	(void)state;
	char error[256];
	struct mallinfo2 before = mallinfo2();
	joined = 0;
	for (int i = 0; i < 24; i++) {
		cpu_pool *p = pool_of("3");
		assert_int_equal(launch(p, none, 1 << 20, (uint32_t[]){64, 1, 1}, NULL, error), CPU_OK);
		cpu_pool_destroy(p);
		assert_int_equal(joined, 2 * (i + 1));
	}
	struct mallinfo2 after = mallinfo2();
	assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + (8 << 20));
}

/* A child has none of the threads, and waits for none of them. */
static void destroyed_in_a_child(void **state)
{
	(void)state;
	char error[256];
	int status;
	cpu_pool *p = pool_of("3");
	assert_int_equal(launch(p, none, 64, (uint32_t[]){64, 1, 1}, NULL, error), CPU_OK);
	nanosleep(&(struct timespec){0, 20000000}, NULL); /* they wait for the next launch */
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		cpu_pool_destroy(p);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cpu_pool_destroy(p);
}

/* ---- reports ---- */

static void asserting(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)first, (void)last, (void)scratch;
	const uint32_t program[3] = {7, 8, 9}, index[3] = {1, 22, 333};
	call->host->element_failed(call->host->context, "an element", "", 0, program, 3, index);
	call->host->assert_failed(call->host->context, "the second", "b.blk", 6, program);
}

static void failing(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)first, (void)last, (void)scratch;
	call->host->assert_failed(call->host->context, "a sum", "a.blk", 5, (const uint32_t[]){7, 8, 9});
}

static void which_assert(void **state)
{
	(void)state;
	char error[256];
	cpu_pool *p = pool_of("1");
	assert_int_equal(launch(p, failing, 0, (uint32_t[]){1, 1, 1}, NULL, error), CPU_ASSERT_FAILED);
	assert_string_equal(error, "a.blk:5: assertion failed in program (7, 8, 9): a sum");
	assert_int_equal(launch(p, asserting, 0, (uint32_t[]){1, 1, 1}, NULL, error), CPU_ASSERT_FAILED);
	assert_string_equal(error, "?:0: assertion failed in program (7, 8, 9), element (1, 22, 333): an element");
	cpu_pool_destroy(p);
}

static const blk_cpu_access read_access = {"a.blk", 1, 4, BLK_CPU_READS, -1},
			    write_access = {"a.blk", 2, 8, BLK_CPU_WRITES, 0};

static void outside_twice(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)first, (void)last, (void)scratch;
	const blk_cpu_host *h = call->host;
	h->outside(h->context, &write_access, 0x1234, (const uint32_t[]){1, 2, 3});
	h->outside(h->context, &read_access, 0x5678, (const uint32_t[]){4, 5, 6});
	h->assert_failed(h->context, "too late", "a.blk", 5, (const uint32_t[]){7, 8, 9});
}

static void which_fault(void **state)
{
	(void)state;
	fixture t;
	char error[256];
	cpu_object *o;
	cpu_pool *p = pool_of("1");
	compile_text(&t, "func @f(%y: *i32) {\n  %c = const {value=1} : i32\n  store %y, %c" STORE "  return\n}\n");
	assert_int_equal(cpu_object_load(t.out.object, t.out.object_bytes, "f", &o, NULL, 0), CPU_OK);
	cpu_watch w = {.object = o};
	assert_int_equal(launch(p, outside_twice, 0, (uint32_t[]){1, 1, 1}, &w, error), CPU_FAULT);
	assert_ptr_equal(w.fault.access, &write_access);
	assert_int_equal(w.fault.address, 0x1234);
	assert_true(
		w.fault.has_program && w.fault.program[0] == 1 && w.fault.program[1] == 2 && w.fault.program[2] == 3);
	assert_string_equal(error, "");
	cpu_object_free(o);
	cpu_pool_destroy(p);
	end(&t);
}

static void printing(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)first, (void)last, (void)scratch;
	const uint64_t values[] = {5, 0xabc};
	const uint8_t kinds[] = {SCALAR_I32, BLK_CPU_POINTER};
	const blk_cpu_line line = {"at", values, kinds, {7, 8, 9}, 3, {1, 22, 333}, 2};
	call->host->print(call->host->context, &line);
}

static void a_line(void **state)
{
	(void)state;
	char error[256], got[128] = "";
	cpu_pool *p = pool_of("1");
	FILE *f = tmpfile();
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	assert_true(saved >= 0 && f);
	dup2(fileno(f), STDOUT_FILENO);
	int status = launch(p, printing, 0, (uint32_t[]){1, 1, 1}, NULL, error);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(f);
	assert_non_null(fgets(got, sizeof got, f));
	fclose(f);
	assert_int_equal(status, CPU_OK);
	assert_string_equal(got, "pid (7, 8, 9) idx (1, 22, 333) at: 5 0xabc\n");
	cpu_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(how_many), cmocka_unit_test(two_at_once),
		cmocka_unit_test(nothing_stays), cmocka_unit_test(destroyed_in_a_child), cmocka_unit_test(which_assert),
		cmocka_unit_test(which_fault), cmocka_unit_test(a_line)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
