/* The libraries that libblk loads: the CUDA driver, where there is none, or one that lacks a call, or one that refuses
 * any of them; and the compiler's, where it is none or another version's.  Each ends in a sentence that names what is
 * missing or which call failed, and leaves nothing behind.
 *
 * They are the fakes of fake_device.h; dlopen(), dlsym() and dlclose() are this program's own, in front of libc's, and
 * know them by the names that libblk asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_device.h"
#include "faulty_malloc.h"

#include <dlfcn.h>
#include <unistd.h>
#include <cmocka.h>

#define OK(call) check_ok((call), #call, __LINE__)
static void check_ok(blk_status s, const char *what, int line)
{
	if (s != BLK_OK) fail_msg("line %d: %s: %s (%s)", line, what, blk_error(), blk_status_text(s));
}
#define FAILS(status, says, call) check_fails((call), (status), (says), #call, __LINE__)
static void check_fails(blk_status got, blk_status wanted, const char *says, const char *what, int line)
{
	if (got != wanted || !strstr(blk_error(), says))
		fail_msg("line %d: %s: status %d, not %d; says: %s", line, what, got, wanted, blk_error());
}

/* ---- The library ---- */

static struct {
	bool there;
	const char *lacks[4]; /* calls; null: no more */
	int opened, closed;
	const char *version; /* of the compiler's library; null: the true one */
} library;
static int library_itself, compiler_itself;

static const char *version_now(void)
{
	return library.version;
}

static void *real(const char *name)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
	void *found = NULL;
	for (size_t i = 0; !found && i < sizeof versions / sizeof versions[0]; i++)
		found = dlvsym(RTLD_NEXT, name, versions[i]);
	if (!found) abort();
	return found;
}

#if !FAULTY_MALLOC /* a sanitizer asks dlsym() before this program has begun: there it keeps libc's, and nothing is    \
		      tested */
#define dlopen not_dlopen
#define dlclose not_dlclose
#define dlsym not_dlsym
void *dlopen(const char *name, int flags);
int dlclose(void *of);
void *dlsym(void *restrict of, const char *restrict name);
#endif
#pragma GCC visibility push(default)
void *dlopen(const char *name, int flags)
{
	void *(*open_it)(const char *, int);
	*(void **)&open_it = real("dlopen");
	if (name && library.version && strstr(name, "libblkc.so")) return library.opened++, &compiler_itself;
	if (!name || strcmp(name, "libcuda.so.1") != 0) return open_it(name, flags);
	if (!library.there) return open_it("/nowhere/libcuda.so.1", flags); /* for its dlerror() */
	library.opened++;
	return &library_itself;
}
int dlclose(void *of)
{
	int (*close_it)(void *);
	*(void **)&close_it = real("dlclose");
	if (of != &library_itself && of != &compiler_itself) return close_it(of);
	library.closed++;
	return 0;
}
void *dlsym(void *restrict of, const char *restrict name)
{
	static const struct {
		const char *name;
		void (*call)(void);
	} calls[] = {
#define X(name, parameters) {#name, (void (*)(void))fake_##name},
		CUDA_CALLS(X) CUDA_LATER_CALLS(X)
#undef X
			{"blkc_compile", (void (*)(void))fake_compile},
		{"blkc_result_free", (void (*)(void))fake_result_free}, {"blkc_version", (void (*)(void))version_now}};
	void *(*find_it)(void *, const char *), *found = NULL;
	*(void **)&find_it = real("dlsym");
	if (of != &library_itself && of != &compiler_itself) return find_it(of, name);
	for (int i = 0; i < 4 && library.lacks[i]; i++)
		if (strcmp(library.lacks[i], name) == 0) return NULL;
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (strcmp(calls[i].name, name) == 0) *(void (**)(void)) & found = calls[i].call;
	return found;
}
#pragma GCC visibility pop

static const device_seams seams = {.compiler = &fake_compiler}; /* and no driver: libblk has to find it */

static int setup(void **state)
{
	(void)state;
	setenv("BLK_CACHE", "off", 1);
	fake_reset();
	fake_status = 0;
	memset(&library, 0, sizeof library);
	library.there = true;
	return 0;
}
/* Closed as often as opened, and all is released. */
static int teardown(void **state)
{
	(void)state;
	assert_int_equal(library.closed, library.opened);
	if (fake_leak()) fail_msg("left behind: %s", fake_leak());
	return 0;
}

static void test_no_library(void **state)
{
	(void)state;
	blk_device *d;
	library.there = false;
	FAILS(BLK_ERROR_NOT_FOUND, "there is no CUDA driver here (/nowhere/libcuda.so.1: cannot open",
		device_open_with("cuda", &seams, &d));
	assert_null(d);
	FAILS(BLK_ERROR_NOT_FOUND, "there is no CUDA driver here", device_wrap_with(fake_foreign, &seams, &d));
	OK(device_open_with("auto", &seams, &d)); /* which is no failure: there is the processor */
	assert_string_equal(blk_note(), "");
	assert_null(blk_device_context(d));
	blk_device_close(d);
	assert_int_equal(library.opened, 0);
}

/* Without any one of the calls that every driver has, the sentence names it; "auto" says why it takes the processor. */
static void test_too_old(void **state)
{
	static const char *const names[] = {
#define X(name, parameters) #name,
		CUDA_CALLS(X)
#undef X
	};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		blk_device *d;
		char says[128];
		library.lacks[0] = names[i];
		snprintf(says, sizeof says, "the CUDA driver is too old: it has no %s", names[i]);
		assert_int_equal(device_open_with("cuda", &seams, &d), BLK_ERROR_DRIVER);
		assert_string_equal(blk_error(), says);
		OK(device_open_with("auto", &seams, &d));
		assert_non_null(strstr(blk_note(), "no GPU is used: the CUDA driver is too old"));
		assert_non_null(strstr(blk_note(), names[i]));
		blk_device_close(d);
	}
	assert_int_equal(fake.calls, 0);
}

static blk_status add_100(blk_device *d, const blk_grid *grid, const char *source, float *out)
{
	blk_module *m;
	blk_kernel *k;
	blk_buffer *b[3];
	float x[100];
	for (int i = 0; i < 100; i++) x[i] = (float)i;
	blk_status s = blk_module_source(d, "add.blk", source, NULL, 0, &m);
	if (!s) s = blk_kernel_find(m, "add", &k);
	for (int i = 0; !s && i < 3; i++) {
		s = blk_buffer_create(d, sizeof x, &b[i]);
		if (!s) s = blk_buffer_write(b[i], 0, x, sizeof x);
	}
	if (!s) s = blk_launch(k, NULL, grid, BLK_ARGS(blk_buf(b[0]), blk_buf(b[1]), blk_buf(b[2]), blk_i32(100)));
	return s ? s : blk_buffer_read(b[0], 0, out, sizeof x);
}

/* Drivers before 12.0 launch without clusters, and run the code that takes no tensor maps. */
static void test_before_12(void **state)
{
	(void)state;
	static const struct {
		const char *source;
		const char *lacks;
		unsigned cluster;
		int encodes;
	} rows[] = {{FAKE_ADD "cluster 2\n", NULL, 2, 0}, {FAKE_ADD "cluster 2\n", "cuLaunchKernelEx", 0, 0},
		{FAKE_ADD "map f32 0 8 8 ; p1 ; 100 ; 1 ; 512\n", NULL, 0, 1},
		{FAKE_ADD "map f32 0 8 8 ; p1 ; 100 ; 1 ; 512\n", "cuTensorMapEncodeTiled", 0, 0}};
	const blk_grid grid = {2, 1, 1};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_device *d;
		float z[100];
		fake_reset();
		library.lacks[0] = rows[i].lacks;
		OK(device_open_with("cuda", &seams, &d));
		OK(add_100(d, &grid, rows[i].source, z));
		for (int k = 0; k < 100; k++) assert_true(z[k] == 2 * (float)k);
		assert_int_equal(fake.cluster, rows[i].cluster);
		assert_int_equal(fake.encodes, rows[i].encodes);
		blk_device_close(d);
	}
}

/* Code that waits for the kernel before it may begin early, in a cluster or not, if the driver can say so in a graph
 * too; other code may not. */
static void test_early_launch(void **state)
{
	(void)state;
	static const struct {
		const char *source, *lacks;
		int driver;
		bool no_clusters, early;
		unsigned cluster;
	} rows[] = {{FAKE_ADD "gdc_wait 1\n", NULL, 12030, false, true, 0},
		{FAKE_ADD "gdc_wait 1\n", NULL, 12020, false, false, 0},
		{FAKE_ADD "gdc_wait 1\n", "cuLaunchKernelEx", 0, false, false, 0}, {FAKE_ADD, NULL, 0, false, false, 0},
		{FAKE_ADD "gdc_wait 1\ncluster 2\n", NULL, 0, false, true, 2},
		{FAKE_ADD "gdc_wait 1\ncluster 2\n", NULL, 0, true, true, 0},
		{FAKE_ADD "gdc_wait 1\ncluster 2\n", NULL, 12020, false, false, 2}};
	const blk_grid grid = {2, 1, 1};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_device *d;
		float z[100];
		fake_reset();
		library.lacks[0] = rows[i].lacks;
		fake.driver_version = rows[i].driver;
		fake.no_clusters = rows[i].no_clusters;
		OK(device_open_with("cuda", &seams, &d));
		OK(add_100(d, &grid, rows[i].source, z));
		for (int k = 0; k < 100; k++) assert_true(z[k] == 2 * (float)k);
		assert_int_equal(fake.early, rows[i].early);
		assert_int_equal(fake.cluster, rows[i].cluster);
		blk_device_close(d);
	}
}

/* What a bench is asked for decides whether the code without maps is told of: the sentence is blk_kernel_info's. */
static void test_why_no_maps(void **state)
{
	(void)state;
	blk_device *d;
	blk_module *m;
	blk_kernel *k;
	blk_info info;
	library.lacks[0] = "cuTensorMapEncodeTiled";
	OK(device_open_with("cuda", &seams, &d));
	OK(blk_module_source(d, "add.blk", FAKE_ADD "map f32 0 8 8 ; p1 ; 100 ; 1 ; 512\n", NULL, 0, &m));
	OK(blk_kernel_find(m, "add", &k));
	OK(blk_kernel_info(
		k, BLK_ARGS(blk_ptr((void *)256), blk_ptr((void *)512), blk_ptr((void *)1024), blk_i32(100)), &info));
	assert_non_null(strstr(info.fallback, "the CUDA driver is too old: it has no cuTensorMapEncodeTiled"));
	assert_int_equal(info.tensor_maps, 0);
	blk_device_close(d);
}

/* ---- Calls that fail ---- */

#define SHARED_ADD                                                                                                     \
	"kernel add\nsymbol add\nparam z *f32\nparam x *const f32\nparam y *const f32\nparam n i32\nwritten 0\n"       \
	"grid 0 2\ncost bytes p3 12 *\nnum_warps 4\nthreads 128\nshared 65536\ncluster 2\n"                            \
	"map f32 0 8 8 ; p1 ; 100 ; 1 ; 512\n"

/* One of each call that a program makes.  `d` stays open where it failed. */
static blk_status life(blk_device **d, void *context)
{
	blk_module *m;
	blk_kernel *k;
	blk_buffer *b = NULL, *c = NULL;
	blk_stream *s, *w;
	blk_event *e, *f;
	blk_info info;
	blk_timing t;
	char bytes[64] = {0};
	double ms, rate;
	const blk_bench_options o = {.min_runs = 1, .max_runs = 1};
	blk_status st = context ? device_wrap_with(context, &seams, d) : device_open_with("cuda", &seams, d);
	if (!st) (*d)->info.total_memory = 1 << 16; /* what is measured is a part of it */
	if (!st) st = blk_module_source(*d, "add.blk", SHARED_ADD, NULL, 0, &m);
	if (!st) st = blk_kernel_find(m, "add", &k);
	if (!st) st = blk_buffer_create(*d, 64, &b);
	if (!st) st = blk_buffer_create(*d, 64, &c);
	if (!st) st = blk_buffer_write(b, 0, bytes, 64);
	if (!st) st = blk_stream_create(*d, &s);
	if (!st) st = blk_stream_wrap(*d, (void *)0x9999, &w);
	if (!st) st = blk_buffer_write(b, 0, bytes, 64); /* waits for everything now */
	if (!st) st = blk_event_create(*d, &e);
	if (!st) st = blk_event_create(*d, &f);
	if (!st) st = blk_event_record(e, s);
	const blk_arg args[] = {blk_buf(b), blk_buf(b), blk_buf(b), blk_i32(3)};
	if (!st) st = blk_launch(k, s, NULL, args, 4);
	if (!st) st = blk_launch_on(k, (void *)0x9999, NULL, args, 4);
	if (!st) st = blk_event_record(f, s);
	if (!st) st = blk_event_elapsed(e, f, &ms);
	if (!st) st = blk_stream_sync(s);
	if (!st) st = blk_kernel_info(k, args, 4, &info);
	if (!st) st = blk_bench(k, NULL, args, 4, &o, &t);
	if (!st) st = blk_device_bandwidth(*d, &rate);
	if (!st) st = blk_buffer_fill(b, 0, 1, 64);
	if (!st) st = blk_buffer_copy(c, 0, b, 0, 64);
	if (!st) st = blk_buffer_read(b, 0, bytes, 64);
	if (!st) st = blk_device_sync(*d);
	return st;
}

/* Each call of that life fails once: the status is the error's, the sentence names the call. */
static void test_each_call_is_named(void **state)
{
	(void)state;
	static const struct {
		int code;
		blk_status status;
		const char *says;
	} codes[] = {{1, BLK_ERROR_DRIVER, "a made-up failure"}, {2, BLK_ERROR_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
		{100, BLK_ERROR_NOT_FOUND, "no such CUDA device"}, {700, BLK_ERROR_KERNEL, "a kernel failed"}};
	void *const contexts[] = {NULL, fake_foreign};
	int named = 0, maps = 0, ranges = 0;
	for (size_t w = 0; w < 2; w++)
		for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
			for (int at = 1;; at++) {
				blk_device *d = NULL;
				fake_reset();
				fake.fail_at = at;
				fake.fail_with = codes[c].code;
				blk_status st = life(&d, contexts[w]);
				const char *call = fake.failed_call ? fake.failed_call + strlen("fake_") : NULL;
				if (!call) assert_int_equal(st, BLK_OK);
				bool push = call && strcmp(call, "cuCtxPushCurrent_v2") == 0;
				/* other code runs then, or nobody is the wiser */
				bool harmless = call && (strcmp(call, "cuTensorMapEncodeTiled") == 0 ||
								strcmp(call, "cuMemGetAddressRange_v2") == 0 ||
								(push && st == BLK_OK));
				maps += call && strcmp(call, "cuTensorMapEncodeTiled") == 0;
				ranges += call && strcmp(call, "cuMemGetAddressRange_v2") == 0;
				if (call && !harmless &&
					(st != (push ? BLK_ERROR_DRIVER : codes[c].status) ||
						!strstr(blk_error(), call) || !strstr(blk_error(), codes[c].says)))
					fail_msg("call %d, %s, failing with %d gives %s: %s", at, call, codes[c].code,
						blk_status_text(st), blk_error());
				if (harmless) assert_int_equal(st, BLK_OK);
				named += call && !harmless;
				blk_device_close(d);
				if (fake_leak())
					fail_msg("call %d, %s, failing with %d leaves %s", at, call, codes[c].code,
						fake_leak());
				if (!call) break;
			}
	assert_true(named > 500 && maps >= 4);
	assert_int_equal(ranges, 0); /* all memory of this life is in buffers */
}

/* A driver that knows no name or no text for its own error. */
static CUresult unknown_name(CUresult r, const char **s)
{
	(void)r;
	*s = "not to be used";
	return 1;
}
static CUresult no_text(CUresult r, const char **s)
{
	(void)r;
	*s = NULL;
	return 0;
}
static void test_unknown_errors(void **state)
{
	(void)state;
	static const struct {
		CUresult (*name)(CUresult, const char **), (*text)(CUresult, const char **);
		const char *says;
	} rows[] = {{fake_cuGetErrorName, fake_cuGetErrorString, "cuInit: a made-up failure (CUDA_ERROR_FAKE)"},
		{unknown_name, fake_cuGetErrorString, "cuInit: a made-up failure (an unknown error)"},
		{no_text, fake_cuGetErrorString, "cuInit: a made-up failure (an unknown error)"},
		{fake_cuGetErrorName, unknown_name, "cuInit: CUDA_ERROR_FAKE (CUDA_ERROR_FAKE)"},
		{fake_cuGetErrorName, no_text, "cuInit: CUDA_ERROR_FAKE (CUDA_ERROR_FAKE)"},
		{no_text, no_text, "cuInit: an unknown error (an unknown error)"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cuda_api api = fake_api;
		blk_device *d;
		api.cuGetErrorName = rows[i].name;
		api.cuGetErrorString = rows[i].text;
		fake_reset();
		fake.fail_at = 1;
		fake.fail_with = 999;
		const device_seams given = {.cuda = &api, .compiler = &fake_compiler};
		assert_int_equal(device_open_with("cuda", &given, &d), BLK_ERROR_DRIVER);
		assert_string_equal(blk_error(), rows[i].says);
	}
}

/* The table of calls, then the device's own: without memory for either nothing stays open. */
static void test_no_memory(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	blk_device *d = NULL;
	blk_device_sync(NULL); /* this thread's messages have their memory */
	faulty.fail_at = 0;
	for (blk_status s = BLK_ERROR_MEMORY; s;) {
		long live = faulty.live;
		faulty.calls = 0;
		faulty.fail_at++;
		faulty.armed = true;
		s = device_open_with("cuda", &seams, &d);
		faulty.armed = false;
		if (!s) break;
		assert_int_equal(s, BLK_ERROR_MEMORY);
		assert_string_equal(blk_error(), "out of memory");
		assert_int_equal(library.closed, library.opened);
		assert_true(faulty.live <= live);
		assert_null(d);
	}
	assert_in_range(faulty.fail_at, 3, 20);
	blk_device_close(d);
}

/* Several devices, and which of them there are. */
static void test_ordinals(void **state)
{
	(void)state;
	blk_device *d;
	blk_device_info info;
	fake.devices = 2;
	OK(device_open_with("cuda:1", &seams, &d));
	OK(blk_device_query(d, &info));
	assert_int_equal(info.ordinal, 1);
	blk_device_close(d);
	FAILS(BLK_ERROR_NOT_FOUND, "there is no cuda:2; the driver sees 2 devices",
		device_open_with("cuda:2", &seams, &d));
	fake.devices = 0;
	FAILS(BLK_ERROR_NOT_FOUND, "the CUDA driver sees no device", device_open_with("cuda:0", &seams, &d));
}

/* A context of the thread's that cannot be asked for is no reason not to use ours. */
static CUresult no_current(CUcontext *c)
{
	*c = fake_primary;
	return 201;
}
static void test_current_unknown(void **state)
{
	(void)state;
	cuda_api api = fake_api;
	api.cuCtxGetCurrent = no_current;
	const device_seams given = {.cuda = &api, .compiler = &fake_compiler};
	blk_device *d;
	blk_buffer *b;
	OK(device_open_with("cuda", &given, &d));
	OK(blk_buffer_create(d, 16, &b));
	assert_ptr_equal(fake.current, NULL);
	blk_device_close(d);
}

/* Code without the facts that blkc always gives: 4 warps, and a device that does not say what it holds. */
static void test_bare_signatures(void **state)
{
	(void)state;
	static const struct {
		const char *facts;
		unsigned threads;
	} rows[] = {{"", 128}, {"num_warps 2\n", 64}, {"num_warps 2\nthreads 96\n", 96}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char source[128];
		blk_device *d;
		blk_module *m;
		blk_kernel *k;
		blk_info info;
		snprintf(source, sizeof source, "kernel k\n%sgrid 0 1\n", rows[i].facts);
		OK(device_open_with("cuda", &seams, &d));
		d->info.max_threads_per_sm = 0;
		OK(blk_module_source(d, "k.blk", source, NULL, 0, &m));
		OK(blk_kernel_find(m, NULL, &k));
		OK(blk_kernel_info(k, NULL, 0, &info));
		assert_int_equal(info.threads, rows[i].threads);
		assert_true(info.occupancy == 0);
		blk_device_close(d);
	}
}

/* ---- The compiler's library ---- */

static void test_compiler_library(void **state)
{
	(void)state;
	static const struct {
		const char *version, *lacks;
		const char *says; /* null: it is taken */
	} rows[] = {{"blk " BLK_VERSION, NULL, NULL}, {"blk " BLK_VERSION ", LLVM 22", NULL, NULL},
		{"blk " BLK_VERSION "1", NULL, "is \"blk " BLK_VERSION "1\", but libblk is version " BLK_VERSION},
		{"blk 9.9", NULL, "is \"blk 9.9\", but libblk is version"},
		{"", NULL, "is \"\", but libblk is version"},
		{"blk " BLK_VERSION, "blkc_compile", "libblkc.so." BLK_ABI_MAJOR " is no blk compiler library"},
		{"blk " BLK_VERSION, "blkc_result_free", "libblkc.so." BLK_ABI_MAJOR " is no blk compiler library"},
		{"blk " BLK_VERSION, "blkc_version", "libblkc.so." BLK_ABI_MAJOR " is no blk compiler library"}};
	char myself[4096] = "";
	assert_true(readlink("/proc/self/exe", myself, sizeof myself - 1) > 0);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		compiler c = {.identity = 0};
		library.version = rows[i].version;
		library.lacks[0] = rows[i].lacks;
		blk_status s = compiler_load(&c);
		if (rows[i].says) {
			assert_int_equal(s, BLK_ERROR_COMPILER);
			if (!strstr(blk_error(), rows[i].says)) fail_msg("%zu: %s", i, blk_error());
			assert_true(!c.library && !c.api.compile);
		} else {
			OK(s);
			OK(compiler_load(&c));               /* which it is already */
			assert_string_equal(c.path, myself); /* where its functions are: what keys are made of */
			assert_true(c.identity != 0);
		}
		compiler_unload(&c);
		assert_int_equal(library.closed, library.opened);
	}
	library.version = NULL;
}

/* What a compiler may answer that is no code, or odd. */
typedef struct odd_answers {
	bool nothing, no_code, no_kernel, quiet;
	unsigned kind;
	int dependencies;
} odd_answers;
static odd_answers answers;
static blkc_result *odd_compile(const blkc_request *q)
{
	static const char *dependencies[40];
	if (answers.nothing && q->emit) return NULL;
	blkc_result *r = fake_compile(q);
	if (answers.quiet) r->diagnostics = NULL;
	if (answers.no_code) r->nartifacts = 0;
	if (answers.no_kernel && q->emit) r->nkernels = 0;
	if (answers.kind && r->nartifacts) ((fake_result *)r)->artifact.kind = answers.kind;
	for (int i = 0; i < answers.dependencies; i++) dependencies[i] = "/proc/self/exe";
	if (answers.dependencies) r->dependencies = dependencies, r->ndependencies = (size_t)answers.dependencies;
	return r;
}

static void test_odd_answers(void **state)
{
	(void)state;
	static const compiler_api odd = {odd_compile, fake_result_free, fake_version};
	const device_seams given = {.compiler = &odd};
	static const struct {
		const char *what;
		size_t field;
		blk_status status;
		const char *says;
	} rows[] = {{"nothing", offsetof(odd_answers, nothing), BLK_ERROR_MEMORY, "out of memory"},
		{"no code", offsetof(odd_answers, no_code), BLK_ERROR_COMPILER,
			"the compiler made no code for kernel add"},
		{"no kernel", offsetof(odd_answers, no_kernel), BLK_ERROR_COMPILER,
			"the compiler made no code for kernel add"},
		{"quiet", offsetof(odd_answers, quiet), BLK_OK, ""}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_device *d;
		float z[100];
		memset(&answers, 0, sizeof answers);
		*((bool *)&answers + rows[i].field) = true;
		OK(device_open_with("cuda", &given, &d));
		blk_status s = add_100(d, NULL, FAKE_ADD, z);
		if (s != rows[i].status || (s && !strstr(blk_error(), rows[i].says)))
			fail_msg("%s: %s: %s", rows[i].what, blk_status_text(s), blk_error());
		blk_device_close(d);
	}
	blk_device *d;
	float z[100];
	memset(&answers, 0, sizeof answers);
	answers.kind = BLKC_EMIT_OBJECT; /* which was not asked for */
	OK(device_open_with("cuda", &given, &d));
	FAILS(BLK_ERROR_COMPILER, "the compiler made no code for kernel add", add_100(d, NULL, FAKE_ADD, z));
	blk_device_close(d);
}

/* What the environment may say of the compiler's limits. */
static void test_limits(void **state)
{
	(void)state;
	static const char *const names[] = {"BLK_MAX_CODE", "BLK_PTXAS_SECONDS", "BLK_PTXAS_MEMORY"},
				 *const bad[] = {"0", "x", "5x", "-1", " 7", "4294967295", "99999999999999999999",
					 "non"},
				 *const good[] = {"1", "4294967294", "none", ""};
	for (size_t n = 0; n < 3; n++) {
		blk_device *d;
		blk_module *m;
		char says[128];
		OK(device_open_with("cuda", &seams, &d));
		for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
			setenv(names[n], bad[i], 1);
			snprintf(says, sizeof says, "%s=%s: a number above 0, or none", names[n], bad[i]);
			FAILS(BLK_ERROR_ARGUMENT, says, blk_module_source(d, "add.blk", FAKE_ADD, NULL, 0, &m));
		}
		for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
			setenv(names[n], good[i], 1);
			OK(blk_module_source(d, "add.blk", FAKE_ADD, NULL, 0, &m));
		}
		unsetenv(names[n]);
		blk_device_close(d);
	}
}

/* A kernel of a long name, code that hangs on many files, and entries of the cache that lack what they should hold. */
static void test_cached(void **state)
{
	(void)state;
	static const compiler_api odd = {odd_compile, fake_result_free, fake_version};
	const device_seams given = {.compiler = &odd};
	char folder[] = "/tmp/blk_driver_XXXXXX", code[64], path[128];
	assert_non_null(mkdtemp(folder));
	setenv("BLK_CACHE_DIR", folder, 1);
	unsetenv("BLK_CACHE");
	memset(&answers, 0, sizeof answers);
	answers.dependencies = 40;
	static const struct {
		int without, short_of; /* sections of the entries, left out or cut to 3 bytes before the second start */
		int compiles;
	} rows[] = {{0, 0, 0}, {CACHE_CUBIN, 0, 1}, {0, CACHE_DEPENDENCY, 1}, {0, CACHE_SIGNATURE, 1}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		blk_device *d;
		float z[100];
		OK(device_open_with("cuda", &given, &d));
		OK(add_100(d, NULL, FAKE_ADD, z));
		blk_device_close(d);
		cache c;
		cache_listing l;
		cache_open(&c, NULL);
		assert_true(cache_list(&c, &l));
		int changed = 0;
		for (size_t f = 0; f < l.n; f++) {
			cache_entry e;
			cache_key key;
			cache_section kept[64];
			size_t n = 0;
			assert_true(cache_look(&c, l.files[f].name, &e));
			for (int b = 0; b < 16; b++) sscanf(l.files[f].name + 2 * b, "%2hhx", &key.bytes[b]);
			for (size_t k = 0; k < e.nsections; k++) {
				if ((int)e.sections[k].kind == rows[i].without) continue;
				kept[n] = e.sections[k];
				if ((int)kept[n].kind == rows[i].short_of) kept[n].nbytes = 3;
				n++;
			}
			if (cache_find(&e, CACHE_CUBIN)) { /* that of the code, not of the check */
				changed++;
				assert_true(cache_put(&c, &key, kept, n));
			}
			cache_entry_free(&e);
		}
		assert_int_equal(changed, 1);
		fake_compiles = 0;
		OK(device_open_with("cuda", &given, &d));
		OK(add_100(d, NULL, FAKE_ADD, z));
		for (int k = 0; k < 100; k++) assert_true(z[k] == 2 * (float)k);
		if (fake_compiles != rows[i].compiles) fail_msg("row %zu: %d compiles", i, fake_compiles);
		blk_device_close(d);
		for (size_t f = 0; f < l.n; f++) assert_true(cache_remove(&c, l.files[f].name));
		free(l.files);
		cache_close(&c);
	}
	char source[900];
	snprintf(source, sizeof source, "kernel %0600d\ngrid 0 1\n", 7);
	blk_device *d;
	blk_module *m;
	OK(device_open_with("cuda", &seams, &d));
	OK(blk_module_source(d, "long.blk", source, NULL, 0, &m));
	blk_device_close(d);
	uint64_t removed;
	OK(blk_cache_clear(&removed));
	assert_int_equal(removed, 1);
	setenv("BLK_CACHE", "off", 1);
	snprintf(code, sizeof code, "%s/code", folder);
	snprintf(path, sizeof path, "%s/tune", folder);
	rmdir(code);
	rmdir(path);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_no_library),
		T(test_too_old),
		T(test_before_12),
		T(test_early_launch),
		T(test_why_no_maps),
		T(test_each_call_is_named),
		T(test_unknown_errors),
		T(test_no_memory),
		T(test_ordinals),
		T(test_current_unknown),
		T(test_bare_signatures),
		T(test_compiler_library),
		T(test_odd_answers),
		T(test_limits),
		T(test_cached),
	};
	if (!FAULTY_MALLOC) return printf("[  SKIPPED ] %zu tests\n", sizeof tests / sizeof tests[0]) < 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
