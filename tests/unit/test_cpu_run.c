/* What surrounds programs on the cpu device: prints and asserts, the pool of threads, and the compiler's manners with
 * large tiles, repeated runs and lack of memory. */
#include "cpu_fixture.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- reports ---- */

/* What a launch writes to stdout. */
static char *captured(fixture *t, const uint64_t *args, uint32_t gx, int *status)
{
	static char buffer[4096];
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	FILE *f = tmpfile();
	assert_true(saved >= 0 && f);
	dup2(fileno(f), STDOUT_FILENO);
	*status = run(t, args, gx, 1, 1);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(f);
	size_t n = fread(buffer, 1, sizeof buffer - 1, f);
	buffer[n] = 0;
	fclose(f);
	return buffer;
}

static void prints(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, "func @prints(%x: f32, %h: f16, %b: bool, %u: u8, %p: *f32, %i: i64) {\n"
			 "  %r = arange {lo=-1} : i32[2]\n"
			 "  %c = const {value=0.1} : f64[2]\n  %d = const {value=0.5} : f32[1,2]\n"
			 "  print %x, %h, %b, %u, %i, %p {text=\"some % values\"}\n"
			 "  print %u, %r, %c {text=\"a line an element\"}\n"
			 "  print %d {text=\"two dimensions\"}\n"
			 "  print {text=\"nothing\"}\n"
			 "  return\n}\n");
	float x = -1234567;
	uint32_t bits;
	int status;
	memcpy(&bits, &x, 4);
	uint64_t args[] = {bits, scalar_from_double(SCALAR_F16, NAN) | 0x8000, 1, 200, 0xabc, (uint64_t)-5};
	assert_string_equal(captured(&t, args, 1, &status),
		"pid (0, 0, 0) some % values: -1.23457e+06 nan 1 200 -5 0xabc\n"
		"pid (0, 0, 0) idx (0) a line an element: 200 -1 0.1\n"
		"pid (0, 0, 0) idx (1) a line an element: 200 0 0.1\n"
		"pid (0, 0, 0) idx (0, 0) two dimensions: 0.5\n"
		"pid (0, 0, 0) idx (0, 1) two dimensions: 0.5\n"
		"pid (0, 0, 0) nothing\n");
	assert_int_equal(status, CPU_OK);
	end(&t);
	/* the greatest integers, which only their sign tells apart */
	compile_text(&t, "func @prints(%u: u64, %i: i64, %b: u32, %c: i32) {\n  print %u, %i, %b, %c {text=\"\"}\n  "
			 "return\n}\n");
	const uint64_t ends[] = {UINT64_MAX - 4, UINT64_MAX - 4, UINT32_MAX - 4, UINT32_MAX - 4};
	assert_string_equal(captured(&t, ends, 1, &status), "pid (0, 0, 0) : 18446744073709551611 -5 4294967291 -5\n");
	assert_int_equal(status, CPU_OK);
	end(&t);
}

static void asserts(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, "func @asserts(%y: *i32, %n: i32) {\n"
			 "  %r = arange {lo=0} : i32[8]\n  %ns = splat %n : i32[8]\n"
			 "  %c = lt %r, %ns : bool[8]\n"
			 "  assert %c {text=\"all below\"}\n"
			 "  %five = const {value=5} : i32\n"
			 "  store %y, %five" STORE "  return\n}\n");
	int32_t y = 0;
	uint64_t args[] = {address(&y), 8};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	assert_int_equal(y, 5);
	y = 0;
	args[1] = 7;
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_ASSERT_FAILED);
	assert_int_equal(y, 0); /* the program ended there */
	assert_string_equal(t.error, "test.ir:5: assertion failed in program (0, 0, 0), element (7): all below");
	end(&t);
}

/* ---- the pool ---- */

static const char counting[] = "func @count(%y: *i32) {\n"
			       "  %a = program_id {axis=0} : i32\n  %b = program_id {axis=1} : i32\n"
			       "  %c = program_id {axis=2} : i32\n  %ga = num_programs {axis=0} : i32\n"
			       "  %gb = num_programs {axis=1} : i32\n"
			       "  %d = mul %c, %gb : i32\n  %e = add %d, %b : i32\n  %f = mul %e, %ga : i32\n"
			       "  %g = add %f, %a : i32\n  %p = ptr_add %y, %g : *i32\n"
			       "  %old = load %p" LOAD "i32\n  %h = add %old, %g : i32\n"
			       "  store %p, %h" STORE "  return\n}\n";

static void every_program_once(void **state)
{
	(void)state;
	fixture t;
	static const uint32_t grids[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 3, 1}, {1, 1, 5}, {37, 11, 3}, {1000, 1, 7}};
	compile_text(&t, counting);
	for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
		uint32_t n = grids[i][0] * grids[i][1] * grids[i][2];
		int32_t *y = calloc(n + 1, 4);
		uint64_t args[] = {address(y)};
		for (uint32_t k = 0; k <= n; k++) y[k] = 1000000;
		assert_int_equal(run(&t, args, grids[i][0], grids[i][1], grids[i][2]), CPU_OK);
		for (uint32_t k = 0; k < n; k++) assert_int_equal(y[k], 1000000 + (int32_t)k);
		assert_int_equal(y[n], 1000000);
		free(y);
	}
	end(&t);
}

typedef struct launcher {
	cpu_pool *pool;
	blk_cpu_kernel *kernel;
	int32_t y[600];
} launcher;

static void *launch_often(void *argument)
{
	launcher *l = argument;
	char error[64];
	uint64_t args[] = {address(l->y)};
	for (int i = 0; i < 50; i++)
		if (cpu_pool_run(l->pool, l->kernel, 64, args, (uint32_t[]){600, 1, 1}, NULL, error, sizeof error))
			return l;
	return NULL;
}

static void shared_pool(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, counting);
	cpu_object *o;
	cpu_pool *pool;
	setenv("BLK_CPU_THREADS", "5", 1);
	assert_int_equal(cpu_pool_create(&pool), CPU_OK);
	unsetenv("BLK_CPU_THREADS");
	assert_int_equal(cpu_pool_threads(pool), 5);
	assert_int_equal(cpu_object_load(t.out.object, t.out.object_bytes, "count", &o, NULL, 0), CPU_OK);
	launcher *l = calloc(3, sizeof *l);
	pthread_t threads[3];
	for (int i = 0; i < 3; i++) {
		l[i].pool = pool;
		l[i].kernel = cpu_object_kernel(o);
		assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &l[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		assert_null(failed);
		for (int k = 0; k < 600; k++) assert_int_equal(l[i].y[k], 50 * k);
	}
#ifndef __SANITIZE_THREAD__   /* which knows no threads after a fork of several */
	pid_t child = fork(); /* the child has none of the threads, and must not wait for them */
	if (child == 0) {
		alarm(20);
		bool ok = launch_often(&l[0]) == NULL && l[0].y[3] == 300;
		cpu_pool_destroy(pool);
		_exit(ok ? 0 : 1);
	}
	int status = 1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
#endif
	cpu_pool_destroy(pool);
	cpu_object_free(o);
	free(l);
	end(&t);
}

/* ---- the compiler's behaviour ---- */

/* Tiles of 2^20 elements are loops like any other; several live ones share the scratch memory where they can. */
static void large_tiles(void **state)
{
	(void)state;
	fixture t;
	enum { N = 1 << 20, CHAIN = 40 };
	begin(&t);
	if (setjmp(t.out_of_memory)) fail_msg("out of memory");
	ir_value *y = parameter(&t, "y", SCALAR_F32, IR_POINTER), *x = parameter(&t, "x", SCALAR_F32, IR_POINTER);
	ir_value *v = load_tile(&t, x, tile2(SCALAR_F32, 1024, 1024));
	for (int i = 0; i < CHAIN; i++) {
		ir_value *e = ir_unary(&t.b, i % 4 ? IR_SQRT : IR_ABS, v);
		ir_value *p = build(&t, IR_PERMUTE, e->type, 1, e);
		ir_set_order(p->def, ir_pack(2, (uint16_t[]){1, 0}));
		v = ir_binary(&t.b, IR_ADD, ir_binary(&t.b, IR_ADD, e, p), v);
	}
	store_tile(&t, y, v);
	clock_t start = clock();
	compile(&t);
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 2);
	assert_true(t.out.scratch_bytes <= (uint64_t)4 * N * 4);
	float *in = malloc(N * 4), *out = malloc(N * 4), *next = malloc(N * 4);
	for (int i = 0; i < N; i++) in[i] = (float)(i % 1013);
	uint64_t args[] = {address(out), address(in)};
	assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
	for (int i = 0; i < CHAIN; i++) {
		for (int k = 0; k < N; k++) {
			float a = in[k], b = in[k % 1024 * 1024 + k / 1024];
			next[k] = ((i % 4 ? sqrtf(a) : fabsf(a)) + (i % 4 ? sqrtf(b) : fabsf(b))) + a;
		}
		memcpy(in, next, N * 4);
	}
	assert_memory_equal(in, out, N * 4);
	free(in), free(out), free(next);
	end(&t);
}

/* Kernels with more loops than LLVM's best passes are given. */
static void many_loops(void **state)
{
	(void)state;
	static const int counts[] = {450, 1300};
	for (int c = 0; c < 2; c++) {
		fixture t;
		enum { N = 16, MOST = 1300 };
		begin(&t);
		if (setjmp(t.out_of_memory)) fail_msg("out of memory");
		ir_value *y = parameter(&t, "y", SCALAR_F32, IR_POINTER),
			 *x = parameter(&t, "x", SCALAR_F32, IR_POINTER);
		for (int i = 0; i < counts[c]; i++) {
			ir_value *v = load_tile(&t, x, tile(SCALAR_F32, N));
			ir_value *start = i32(&t, i * N);
			ir_value *at =
				ir_binary(&t.b, IR_ADD, arange(&t, N), ir_splat(&t.b, start, tile(SCALAR_I32, N)));
			v = ir_binary(&t.b, IR_ADD, v, constant(&t, v->type, i));
			store(&t, pointers(&t, y, at), v, NULL);
		}
		compile(&t);
		float in[N], *out = calloc(MOST * N + 1, 4);
		for (int i = 0; i < N; i++) in[i] = 0.5f * (float)i;
		uint64_t args[] = {address(out), address(in)};
		assert_int_equal(run(&t, args, 1, 1, 1), CPU_OK);
		for (int i = 0; i < counts[c] * N; i++) assert_true(out[i] == in[i % N] + (float)(i / N));
		assert_true(out[counts[c] * N] == 0);
		free(out);
		end(&t);
	}
}

/* So are those with as many checks of scalars: two thousand took the optimising code generator a minute. */
static void many_checks(void **state)
{
	(void)state;
	enum { MANY = 1300 };
	for (int checked = 0; checked < 2; checked++) {
		fixture t;
		begin(&t);
		if (setjmp(t.out_of_memory)) fail_msg("out of memory");
		ir_value *x = parameter(&t, "x", SCALAR_F32, IR_POINTER), *sum = load(&t, x);
		for (int i = 1; i < MANY; i++) sum = ir_binary(&t.b, IR_ADD, sum, load(&t, x));
		store(&t, x, sum, NULL);
		ir_build(&t.b, IR_RETURN, 0, NULL, 0, NULL, 0);
		cpu_options options = {.want_object = true, .check_bounds = checked};
		assert_true(cpu_emit(&t.arena, &t.diags, t.f, &options, &t.out));
		assert_int_equal(t.out.quick, checked);
		end(&t);
	}
}

static void same_bytes(void **state)
{
	(void)state;
	fixture a, b;
	compile_text(&a, counting);
	compile_text(&b, counting);
	assert_int_equal(a.out.object_bytes, b.out.object_bytes);
	assert_memory_equal(a.out.object, b.out.object, a.out.object_bytes);
	end(&a);
	end(&b);
	cpu_options options = {.want_object = true, .want_asm = true, .want_llvm = true};
	compile_text(&a, counting);
	assert_true(cpu_emit(&a.arena, &a.diags, a.f, &options, &a.out));
	assert_non_null(strstr(a.out.llvm, "define void @count("));
	assert_non_null(strstr(a.out.assembly, "count:"));
	assert_true(a.out.llvm_bytes == strlen(a.out.llvm) && a.out.assembly_bytes == strlen(a.out.assembly));
	int32_t y[3] = {0};
	uint64_t args[] = {address(y)};
	assert_int_equal(run(&a, args, 3, 1, 1), CPU_OK);
	assert_int_equal(y[2], 2);
	end(&a);
}

/* Threads that compile at once do not disturb one another. */
static void *compile_often(void *expected)
{
	const fixture *want = expected;
	for (int i = 0; i < 4; i++) {
		fixture t;
		compile_text(&t, counting);
		bool ok = t.out.object_bytes == want->out.object_bytes &&
			  memcmp(t.out.object, want->out.object, t.out.object_bytes) == 0;
		end(&t);
		if (!ok) return expected;
	}
	return NULL;
}

static void compiling_threads(void **state)
{
	(void)state;
	fixture t;
	pthread_t threads[4];
	compile_text(&t, counting);
	for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, compile_often, &t), 0);
	for (int i = 0; i < 4; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_non_null(cpu_host_name(&t.arena));
	assert_string_equal(cpu_host_name(&t.arena), cpu_host_name(&t.arena));
	char identity[400], again[400];
	cpu_identity(identity, sizeof identity);
	cpu_identity(again, sizeof again);
	assert_true(identity[0] != 0);
	assert_string_equal(identity, again);
	end(&t);
}

/* Memory runs out at every place in turn: always the arena's escape, never a leak (the sanitizer build looks). */
static void out_of_memory(void **state)
{
	(void)state;
	fixture t;
	compile_text(&t, counting);
	cpu_options options = {.want_object = true, .want_asm = true, .want_llvm = true};
	volatile bool done = false;
	volatile unsigned failures = 0;
	for (volatile size_t room = 0; !done; room += 600) {
		if (setjmp(t.out_of_memory)) {
			failures++;
			continue;
		}
		t.arena.limit = t.arena.used + 64 + room;
		done = cpu_emit(&t.arena, &t.diags, t.f, &options, &t.out);
	}
	assert_true(failures > 5);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(prints), cmocka_unit_test(asserts),
		cmocka_unit_test(every_program_once), cmocka_unit_test(shared_pool), cmocka_unit_test(large_tiles),
		cmocka_unit_test(many_loops), cmocka_unit_test(many_checks), cmocka_unit_test(same_bytes),
		cmocka_unit_test(compiling_threads), cmocka_unit_test(out_of_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
