/* blkrun when libblk, the system or memory refuses: each call of a whole run fails in turn, once.  The answer is exit
 * status 1 with a sentence that says what failed, or, where the run goes on without, 0 with the right results; never
 * half a file, and no descriptor and no memory is left.
 *
 * The seam is the linker's --wrap (Makefile: RUN_CALLS); blkrun runs in this process. */
#include "captured.h"
#include "faulty_malloc.h"
#include "wrapped.h"

#include "runtime/internal.h"

#include "runtime/run/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct {
	bool armed;
	int calls, fail_at;
	const char *name; /* of what failed; null: nothing did */
	const char *says; /* what the message about it holds */
	int reads, flip;  /* of buffers; the one, from 1 on, whose first element comes back changed */
} fault;

static bool refused(const char *name, const char *says)
{
	if (!fault.armed || ++fault.calls != fault.fail_at) return false;
	fault.name = name;
	fault.says = says;
	return true;
}

#define BLK_CALLS(X)                                                                                                   \
	X(device_open, (const char *a, blk_device **b), (a, b))                                                        \
	X(device_sync, (blk_device * a), (a))                                                                          \
	X(buffer_create, (blk_device * a, size_t b, blk_buffer * *c), (a, b, c))                                       \
	X(buffer_write, (blk_buffer * a, size_t b, const void *c, size_t d), (a, b, c, d))                             \
	X(module_open, (blk_device * a, const char *b, const blk_define *c, size_t d, blk_module **e),                 \
		(a, b, c, d, e))                                                                                       \
	X(kernel_find, (blk_module * a, const char *b, blk_kernel **c), (a, b, c))                                     \
	X(kernel_parameters, (blk_kernel * a, const blk_parameter **b, size_t *c), (a, b, c))                          \
	X(kernel_grid, (blk_kernel * a, const blk_arg *b, size_t c, blk_grid *d), (a, b, c, d))                        \
	X(kernel_cost, (blk_kernel * a, const blk_arg *b, size_t c, double *d, double *e), (a, b, c, d, e))            \
	X(launch, (blk_kernel * a, blk_stream * b, const blk_grid *c, const blk_arg *d, size_t e), (a, b, c, d, e))    \
	X(event_create, (blk_device * a, blk_event * *b), (a, b))                                                      \
	X(event_record, (blk_event * a, blk_stream * b), (a, b))                                                       \
	X(event_elapsed, (blk_event * a, blk_event * b, double *c), (a, b, c))                                         \
	X(tune_export, (const char *a, uint32_t *b), (a, b))                                                           \
	X(tune_import, (const char *a, uint32_t *b), (a, b))                                                           \
	X(cache_list, (int (*a)(void *, const blk_cache_entry *), void *b), (a, b))                                    \
	X(cache_clear, (uint64_t * a), (a))                                                                            \
	X(sim_configure, (blk_device * a, const blk_sim_options *b), (a, b))                                           \
	X(sim_count, (blk_device * a, blk_sim_counters * b), (a, b))

#define WRAP_BLK(name, parameters, arguments)                                                                          \
	blk_status __real_blk_##name parameters;                                                                       \
	blk_status __wrap_blk_##name parameters;                                                                       \
	blk_status __wrap_blk_##name parameters                                                                        \
	{                                                                                                              \
		if (refused("blk_" #name, "no " #name)) return error_set(BLK_ERROR_DRIVER, "no " #name);               \
		return __real_blk_##name arguments;                                                                    \
	}
BLK_CALLS(WRAP_BLK)

blk_status __real_blk_buffer_read(blk_buffer *b, size_t offset, void *to, size_t n);
blk_status __wrap_blk_buffer_read(blk_buffer *b, size_t offset, void *to, size_t n);
blk_status __wrap_blk_buffer_read(blk_buffer *b, size_t offset, void *to, size_t n)
{
	if (refused("blk_buffer_read", "no buffer_read")) return error_set(BLK_ERROR_DRIVER, "no buffer_read");
	blk_status status = __real_blk_buffer_read(b, offset, to, n);
	if (++fault.reads == fault.flip) ((unsigned char *)to)[3] ^= 0x40; /* of the exponent */
	return status;
}

/* A device that says that it is a GPU, and what its code is like; null: as it is. */
static const blk_info *gpu;

blk_status __real_blk_device_query(blk_device *d, blk_device_info *info);
blk_status __wrap_blk_device_query(blk_device *d, blk_device_info *info);
blk_status __wrap_blk_device_query(blk_device *d, blk_device_info *info)
{
	if (refused("blk_device_query", "no device_query")) return error_set(BLK_ERROR_DRIVER, "no device_query");
	blk_status status = __real_blk_device_query(d, info);
	if (gpu) info->kind = BLK_DEVICE_CUDA;
	return status;
}
blk_status __real_blk_kernel_info(blk_kernel *k, const blk_arg *args, size_t n, blk_info *info);
blk_status __wrap_blk_kernel_info(blk_kernel *k, const blk_arg *args, size_t n, blk_info *info);
blk_status __wrap_blk_kernel_info(blk_kernel *k, const blk_arg *args, size_t n, blk_info *info)
{
	if (refused("blk_kernel_info", "no kernel_info")) return error_set(BLK_ERROR_DRIVER, "no kernel_info");
	blk_status status = __real_blk_kernel_info(k, args, n, info);
	if (gpu) *info = *gpu;
	return status;
}

/* What takes long is played. */
blk_status __wrap_blk_device_bandwidth(blk_device *d, double *rate);
blk_status __wrap_blk_device_bandwidth(blk_device *d, double *rate)
{
	(void)d;
	if (refused("blk_device_bandwidth", "")) return error_set(BLK_ERROR_DRIVER, "no bandwidth");
	*rate = 1e9;
	return BLK_OK;
}
blk_status __wrap_blk_bench(
	blk_kernel *k, const blk_grid *g, const blk_arg *a, size_t n, const blk_bench_options *o, blk_timing *t);
blk_status __wrap_blk_bench(
	blk_kernel *k, const blk_grid *g, const blk_arg *a, size_t n, const blk_bench_options *o, blk_timing *t)
{
	(void)k, (void)g, (void)a, (void)n, (void)o;
	if (refused("blk_bench", "no bench")) return error_set(BLK_ERROR_DRIVER, "no bench");
	*t = (blk_timing){.runs = 5, .median_ms = 2, .p20_ms = 1, .p80_ms = 4};
	return BLK_OK;
}
blk_status __wrap_blk_kernel_tune(
	blk_kernel *k, const blk_grid *g, const blk_arg *a, size_t n, const blk_tune_options *o, uint32_t *timed);
blk_status __wrap_blk_kernel_tune(
	blk_kernel *k, const blk_grid *g, const blk_arg *a, size_t n, const blk_tune_options *o, uint32_t *timed)
{
	static const blk_tune_trial good = {"B=64", BLK_TUNE_GOOD, 1.5, "", 1};
	(void)k, (void)g, (void)a, (void)n;
	if (refused("blk_kernel_tune", "no tune")) return error_set(BLK_ERROR_DRIVER, "no tune");
	assert_int_equal(o->visit(o->context, &good), 0);
	*timed = 1;
	return BLK_OK;
}

/* What a call gives that fails, and errno. */
#define SYSTEM(X)                                                                                                      \
	X(int, -1, EMFILE, open, (const char *a, int b, mode_t c), (a, b, c))                                          \
	X(ssize_t, -1, EIO, read, (int a, void *b, size_t c), (a, b, c))                                               \
	X(ssize_t, -1, ENOSPC, write, (int a, const void *b, size_t c), (a, b, c))                                     \
	X(int, -1, EIO, fstat, (int a, struct stat *b), (a, b))                                                        \
	X(int, -1, EIO, rename, (const char *a, const char *b), (a, b))                                                \
	X(FILE *, NULL, EMFILE, tmpfile, (void), ())                                                                   \
	X(FILE *, NULL, ENOMEM, open_memstream, (char **a, size_t *b), (a, b))                                         \
	X(off_t, -1, ESPIPE, lseek, (int a, off_t b, int c), (a, b, c))                                                \
	X(int, -1, ENOMEM, setenv, (const char *a, const char *b, int c), (a, b, c))                                   \
	X(pid_t, -1, ECHILD, waitpid, (pid_t a, int *b, int c), (a, b, c))                                             \
	X(int, ENOMEM, ENOMEM, posix_spawn_file_actions_init, (posix_spawn_file_actions_t * a), (a))                   \
	X(int, ENOMEM, ENOMEM, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t * a, int b, int c),       \
		(a, b, c))                                                                                             \
	X(int, EAGAIN, EAGAIN, posix_spawnp,                                                                           \
		(pid_t * a, const char *b, const posix_spawn_file_actions_t *c, const posix_spawnattr_t *d,            \
			char *const *e, char *const *f),                                                               \
		(a, b, c, d, e, f))

#define WRAP(type, failure, error, name, parameters, arguments)                                                        \
	type __real_##name parameters;                                                                                 \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		if (!refused(#name, error == ENOMEM ? "memory" : strerror(error))) return __real_##name arguments;     \
		errno = error;                                                                                         \
		return failure;                                                                                        \
	}
SYSTEM(WRAP)

/* These have done their work where they say that they failed. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int r = __real_close(fd);
	return refused("close", strerror(EIO)) ? errno = EIO, -1 : r;
}
int __real_fclose(FILE *f);
int __wrap_fclose(FILE *f);
int __wrap_fclose(FILE *f)
{
	int r = __real_fclose(f);
	return refused("fclose", "memory") ? errno = ENOMEM, -1 : r;
}
/* Nothing here is so precious; the disk is slow. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	(void)fd;
	return refused("fsync", strerror(EIO)) ? errno = EIO, -1 : 0;
}

/* ---- Runs ---- */

enum { N = 100, WORDS = 24 };

static char folder[64], old_path[4096];

static const char source[] = "kernel scale(y: *f32, x: *const f32, n: i32, const B: i32 = 64) grid(cdiv(n, B)) {\n"
			     "  let i = program_id(0) * B + arange(0, B);\n"
			     "  store(y + i, 2.0 * load(x + i, mask = i < n), mask = i < n);\n"
			     "}\n"
			     "kernel pair(y: *f32, z: *f32, x: *const f32, n: i32) grid(1) {\n"
			     "  let i = arange(0, 4);\n"
			     "  store(y + i, load(x + i), mask = i < n);\n"
			     "  store(z + i, 3.0 * load(x + i), mask = i < n);\n"
			     "}\n"
			     "kernel twice(at: *const i64, n: i32) grid(1) {\n"
			     "  let i = arange(0, 128);\n"
			     "  let x = load(at).to(*const f32);\n"
			     "  store(load(at + 1).to(*f32) + i, 2.0 * load(x + i, mask = i < n), mask = i < n);\n"
			     "}\n";

typedef struct run {
	const char *words[WORDS];
	const char *prints; /* where the run is a good one */
	bool writes;        /* y.npy */
	const char *draws;  /* the plot */
} run;

static const run runs[] = {
	{{"--device=cpu", "s.blk:scale", "n=100", "x=@x.npy", "y=f32[100]", "--out", "y=y.npy", "--check", "y=want.npy",
		 "--verbose"},
		"check y against want.npy: good, equal\n", true, NULL},
	{{"--device=cpu", "s.blk:scale", "n=100", "x=f32[100]:arange", "y=f32[n]:poison", "--check", "cpu", "--bench",
		 "--out=y=y.npy"},
		"check y against simulator of sm_80: good, equal\ntime 2.00 ms", true, NULL},
	{{"--device=sim", "s.blk:scale", "n=100", "x=f32[n]:arange", "y=f32[128]:poison", "--check=cpu", "--counters",
		 "--allow-unwritten"},
		"28 of 128 elements were not written", false, NULL},
	{{"--device=cpu", "s.blk:scale", "n=50,100", "-D", "B=64,128", "x=f32[n]:arange", "y=f32[n]", "--plot=p.csv"},
		"\nn                        us   spread       GB/s", false, "p.csv"},
	{{"--device=cpu", "s.blk:scale", "n=50,100", "x=f32[n]", "y=f32[n]", "--plot=p.svg"},
		"\nn                        us   spread       GB/s", false, "p.svg"},
	{{"--device=cpu", "s.blk:twice", "n=100", "at=to:f32[100]:arange+f32[100]", "--check", "at[1]=want.npy",
		 "--out=at[1]=y.npy"},
		"check at[1] against want.npy: good, equal\n", true, NULL},
	{{"--device=cpu", "s.blk:scale", "n=100", "x=@x.npy", "y=f32[100]", "--tune", "--out", "y=y.npy"},
		"\n1 configuration tried\n", true, NULL},
	{{"--device=cpu", "--grid=1", "s.blk:pair", "n=3", "x=f32[4]:ones", "y=f32[4]:poison", "z=f32[4]"},
		"y: 1 of 4 elements were not written", false, NULL},
	{{"--device=cpu", "s.blk:twice", "n=3", "at=to:f32[4]:ones+f32[4]:poison+f32[4]:poison"},
		"at[1]: 1 of 4 elements were not written", false, NULL},
	{{"--cache=list"}, " entries, ", false, NULL},
	{{"--cache=export", "records"}, "tuning records written to records\n", false, NULL},
	{{"--cache=import", "records"}, "tuning records read from records\n", false, NULL},
};
enum { RUNS = sizeof runs / sizeof runs[0] };

static int runs_with(const run *r)
{
	char *argv[WORDS + 2] = {"blkrun"};
	int argc = 1, status;
	for (; r->words[argc - 1]; argc++) argv[argc] = (char *)r->words[argc - 1];
	unlink("y.npy");
	unlink("p.csv");
	unlink("p.svg");
	unsetenv("BLK_CPU");
	capture_begin();
	fault.armed = fault.fail_at != 0;
	faulty.armed = faulty.fail_at != 0;
	status = blkrun(argc, argv);
	fault.armed = faulty.armed = false;
	capture_end();
	return status;
}

static size_t content(const char *path, char *to, size_t room)
{
	FILE *f = fopen(path, "rb");
	if (!f) return 0;
	size_t n = fread(to, 1, room, f);
	fclose(f);
	return n;
}

/* y is 0 2 4 ..: there and right, or, where that is allowed, not there. */
static bool written(bool may_lack)
{
	char bytes[1024];
	float y[N];
	size_t n = content("y.npy", bytes, sizeof bytes);
	if (!n && access("y.npy", F_OK) != 0) return may_lack;
	if (n != 128 + sizeof y) return false;
	memcpy(y, bytes + 128, sizeof y);
	for (int i = 0; i < N; i++)
		if (y[i] != 2 * (float)i) return false;
	return true;
}

/* 400 bytes in 2 ms are 0.0002 GB/s: twice with n=50, as x and y of it have 200 each, and 100. */
static bool drawn(const char *path, bool may_lack)
{
	char text[1024];
	size_t n = content(path, text, sizeof text - 1);
	text[n] = 0;
	if (!n && access(path, F_OK) != 0) return may_lack;
	if (strcmp(path, "p.svg") == 0) return strcmp(text, "<svg/>\n") == 0;
	return strncmp(text, "series,label,x,y,low,high,ceiling\n\"scale\",\"50\",50,0.0002,0.0001,0.0004,", 70) == 0;
}

static int descriptors(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d)) n++;
	if (d) closedir(d);
	return n;
}

/* Nothing half written. */
static bool tidy(void)
{
	bool good = true;
	DIR *d = opendir(".");
	for (struct dirent *e; d && (e = readdir(d));) good = good && !strstr(e->d_name, ".tmp");
	if (d) closedir(d);
	return good;
}

static void check_results(const run *r, int status, const char *name)
{
	if (status && (status != 1 || !captured.err[0])) fail_msg("%s: status %d, says %s", name, status, captured.err);
	if (!status && !strstr(captured.out, r->prints)) fail_msg("%s: it prints\n%s", name, captured.out);
	if (r->writes && !written(status)) fail_msg("%s: y.npy is not there or wrong", name);
	if (r->draws && !drawn(r->draws, status))
		fail_msg("%s: %s is not there or wrong, status %d: %s", name, r->draws, status,
			(content(r->draws, captured.out, 900), captured.out));
	if (!tidy()) fail_msg("%s: a temporary file is left", name);
}

/* libblk may also miss its compiler, whose file it looks into with calls of its own. */
static bool tells(const char *words)
{
	return strstr(captured.err, words) || strstr(captured.err, "the compiler library cannot be loaded");
}

static void good_run(const run *r, const char *after)
{
	fault.fail_at = 0;
	faulty.fail_at = 0;
	int status = runs_with(r);
	if (status) fail_msg("%s %s after %s: %s", r->words[0], r->words[1], after, captured.err);
	check_results(r, status, after);
}

/* Each call of libblk and of the system. */
static void each_call(const run *r)
{
	good_run(r, "nothing");
	int open_ones = descriptors(), tried = 0;
	for (int at = 1;; at++) {
		fault.calls = 0;
		fault.fail_at = at;
		fault.name = NULL;
		int status = runs_with(r);
		if (!fault.name) break;
		tried++;
		check_results(r, status, fault.name);
		if (status && !tells(fault.says))
			fail_msg("%s (call %d) fails, and that is said to be: %s", fault.name, at, captured.err);
		if (descriptors() != open_ones) fail_msg("%s (call %d) leaves a descriptor", fault.name, at);
	}
	fault.fail_at = 0;
	print_message("%s %s: %d calls failed\n", r->words[0], r->words[1] ? r->words[1] : "", tried);
	assert_true(tried > 0);
}

/* One allocation; `more` gets how many blocks there are more than before. */
static int without(const run *r, long allocation, long *more)
{
	long before = faulty.live;
	faulty.calls = 0;
	faulty.fail_at = allocation;
	int status = runs_with(r);
	faulty.fail_at = 0;
	*more = faulty.live - before;
	return status;
}

static void each_allocation(const run *r)
{
	good_run(r, "nothing");
	int tried = 0;
	for (long at = 1;; at++) {
		char name[64];
		long more;
		int status = without(r, at, &more);
		if (faulty.calls < at) break;
		tried++;
		snprintf(name, sizeof name, "allocation %ld", at);
		check_results(r, status, name);
		if (status && !tells("memory")) fail_msg("%s fails, and that is said to be: %s", name, captured.err);
		if (more > 0) without(r, at, &more); /* what a thread keeps, as its last message, it keeps once */
		if (more > 0) fail_msg("%s leaks %ld blocks: %s", name, more, captured.err);
	}
	print_message("%s %s: %d allocations failed\n", r->words[0], r->words[1] ? r->words[1] : "", tried);
	assert_true(tried > 0);
}

static void test_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < RUNS; i++) each_call(&runs[i]);
	for (size_t i = 0; i < RUNS; i++) good_run(&runs[i], "all");
}

static void test_memory(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	for (size_t i = 0; i < RUNS; i++) each_allocation(&runs[i]);
	for (size_t i = 0; i < RUNS; i++) good_run(&runs[i], "all");
}

/* Each buffer that a device releases differs in turn: that is seen in what is compared, of each buffer by its name,
 * and of those by addresses also where only one of the devices changed them. */
static void test_differences(void **state)
{
	(void)state;
	static const struct {
		run run;
		int reads; /* of the whole run */
		struct {
			int from, to; /* these differ .. */
			const char *says, *stays;
		} rows[3];
	} kinds[] = {{{{"--device=cpu", "s.blk:pair", "n=3", "x=f32[4]:ones", "y=f32[4]", "z=f32[4]", "--check=cpu"},
			      "check z against simulator of sm_80: good, equal\n", false, NULL},
			     6, /* first what is printed, then y, the other y, z and the other z */
			     {{3, 4, "check y against simulator of sm_80: WRONG, largest error ",
				      "check z against simulator of sm_80: good, equal\n"},
				     {5, 6, "check z against simulator of sm_80: WRONG, largest error ",
					     "check y against simulator of sm_80: good, equal\n"}}},
		{{{"--device=cpu", "s.blk:twice", "n=3", "at=to:f32[4]:ones+f32[4]", "--check=cpu"},
			 "check at[1] against simulator of sm_80: good, equal\n", false, NULL},
			6,
			{{3, 4, "check at[0] against simulator of sm_80: WRONG, largest error ",
				 "check at[1] against simulator of sm_80: good, equal\n"},
				{5, 6, "check at[1] against simulator of sm_80: WRONG, largest error ", NULL}}}};
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		fault.reads = 0;
		good_run(&kinds[k].run, "nothing");
		assert_int_equal(fault.reads, kinds[k].reads);
		for (int i = 0; kinds[k].rows[i].from; i++)
			for (int at = kinds[k].rows[i].from; at <= kinds[k].rows[i].to; at++) {
				fault.reads = 0;
				fault.flip = at;
				int status = runs_with(&kinds[k].run);
				fault.flip = 0;
				assert_int_equal(status, 1);
				captured_has(captured.out, kinds[k].rows[i].says);
				captured_has(captured.out, "; 1 of 4 elements are out\n");
				if (kinds[k].rows[i].stays) captured_has(captured.out, kinds[k].rows[i].stays);
			}
	}
}

/* What is told of the launch: by kind of device, by checks, and of the code. */
static void test_launch_lines(void **state)
{
	(void)state;
	static const blk_info plain = {.num_warps = 4,
		.registers = 40,
		.shared_bytes = 1024,
		.spill_bytes = 8,
		.occupancy = 0.75f,
		.configuration = ""};
	static const blk_info rich = {.num_warps = 8,
		.registers = 255,
		.occupancy = 1,
		.promises = "x%16,n=1",
		.tensor_maps = 1,
		.from_cache = 1,
		.configuration = "BM=64",
		.fallback = "no map"};
	static const blk_info maps = {.tensor_maps = 2, .configuration = ""};
	static const struct {
		const char *device, *more;
		const blk_info *gpu;
		const char *says, *silent;
	} rows[] = {
		{"--device=cpu", NULL, &plain,
			"grid 2 x 1 x 1, 4 warps, 40 registers, 1024 bytes of shared memory, 8 spilled, occupancy "
			"75%\ntime ",
			"code for"},
		{"--device=cpu", "--verbose", &plain,
			"occupancy 75%\ncode for any arguments, 0 tensor maps, compiled now\n", "though"},
		{"--device=cpu", "--verbose", &rich,
			"grid 2 x 1 x 1, 8 warps, 255 registers, 0 bytes of shared memory, 0 spilled, occupancy 100%\n"
			"code for x%16,n=1, 1 tensor map, from the cache, BM=64\n"
			"code for any arguments, though these promise more: no map\ntime ",
			"checked"},
		{"--device=cpu", "--verbose", &maps, "code for any arguments, 2 tensor maps, compiled now\n", "though"},
		{"--device=cpu", "--bench", &plain, "occupancy 75%\ny: f32[100]\n", "without checks"},
		{"--device=cpu", NULL, NULL, " (one launch, each access checked)\n", "without checks"},
		{"--device=cpu:checked", NULL, NULL, " (one launch, each access checked)\n", "without checks"},
		{"--device=cpu:guarded", NULL, NULL, " (one launch)\n", "checked"},
		{"--device=cpu:fast", "--bench", NULL,
			"timed without checks of bounds (BLK_CPU=checked times with them)\n", "one launch"},
		{"--device=cpu", "--bench", NULL, "timed without checks of bounds (BLK_CPU=checked times with them)\n",
			"one launch"},
		{"--device=cpu:checked", "--bench", NULL, "grid 2 x 1 x 1\ny: f32[100]\n", "without checks"},
		{"--device=sim", NULL, NULL, " (one launch)\n", "checked"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const run r = {{rows[i].device, "s.blk:scale", "n=100", "x=f32[100]", "y=f32[100]", rows[i].more}, "",
			false, NULL};
		gpu = rows[i].gpu;
		int status = runs_with(&r);
		gpu = NULL;
		assert_int_equal(status, 0);
		captured_has(captured.out, rows[i].says);
		if (strstr(captured.out, rows[i].silent)) fail_msg("`%s` in:\n%s", rows[i].silent, captured.out);
	}
}

/* ---- Where ---- */

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void put_npy(const char *path, float factor)
{
	array a = {.type = SCALAR_F32, .rank = 1, .extent = {N}};
	char why[256];
	assert_true(array_allocate(&a));
	for (int i = 0; i < N; i++) array_set(&a, (size_t)i, scalar_from_double(SCALAR_F32, factor * (float)i));
	assert_true(npy_write(path, &a, why, sizeof why));
	array_free(&a);
}

static int setup(void **state)
{
	(void)state;
	char path[4200];
	strcpy(folder, "/tmp/blk_run_faults_XXXXXX");
	if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
	put("s.blk", source, 0644);
	put("gnuplot", "#!/bin/sh\ncat >/dev/null\necho '<svg/>'\n", 0755);
	put_npy("x.npy", 1);
	put_npy("want.npy", 2);
	snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
	snprintf(path, sizeof path, "%s:%s", folder, old_path);
	setenv("PATH", path, 1);
	setenv("BLK_TUNE", "off", 1);
	setenv("BLK_CPU_THREADS", "1", 1); /* what is allocated is counted by one thread */
	snprintf(path, sizeof path, "%s/cache", folder);
	setenv("BLK_CACHE_DIR", path, 1);
	const run records = {{"--cache=export", "records"}, "tuning records written to records\n", false, NULL};
	good_run(&records, "nothing");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	setenv("PATH", old_path, 1);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return chdir("/") || system(command);
}

int main(void)
{
	if (!wraps((void *)print_rates)) return puts("[  SKIPPED ] 4 tests") < 0;
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {T(test_calls), T(test_memory), T(test_differences), T(test_launch_lines)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
