/* libblk on a real device: specialisations, streams, events, PTX, the cache, threads; on a GPU also beside a program
 * with its own context, stream and graph; last of all a failed assertion, after which a CUDA context is gone. */
#include "device_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static const char add_text[] =
	"kernel add(z: *f32, x: *const f32, y: *const f32, n: i32, const B: i32 = 128) grid(cdiv(n, B)) {\n"
	"let o = program_id(0) * B + arange(0, B);\n"
	"let m = o < n;\n"
	"store(z + o, load(x + o, mask = m) + load(y + o, mask = m), mask = m); }\n";

#define FILL_SAYS "kernel fill requires "

/* What a kernel requires is looked at before anything is launched, whatever the device. */
static const char requires_text[] =
	"kernel fill(z: *i32, n: i32, step: i32, const B: i32 = 128) grid(min(cdiv(n, step), 1)) requires step > 0\n"
	"requires n % step == 0 && n / step <= B, \"whole steps\" {\n"
	"let i = arange(0, B); store(z + i, i, mask = i < n / step); }\n";

static void must(blk_status s, const char *what)
{
	if (s == BLK_OK) return;
	printf("%s: %s\n", what, blk_error());
	exit(1);
}
#define MUST(call) must((call), #call)

static void verdict(suite *s, const char *name, bool good)
{
	if (!good) printf("%s: WRONG (last error: %s)\n", name, blk_error());
	good ? s->passed++ : s->failed++;
}

enum { N = 100000 };
typedef struct work {
	blk_module *m;
	blk_kernel *k;
	blk_buffer *z, *x, *y;
} work;

/* x[i] = i, y[i] = 1, exact in f32. */
static work begin_as(blk_device *d, const char *name)
{
	work w;
	float *h = suite_alloc(N * 4);
	MUST(blk_module_source(d, name, add_text, NULL, 0, &w.m));
	MUST(blk_kernel_find(w.m, NULL, &w.k));
	MUST(blk_buffer_create(d, N * 4, &w.z));
	MUST(blk_buffer_create(d, N * 4, &w.x));
	MUST(blk_buffer_create(d, N * 4, &w.y));
	for (int i = 0; i < N; i++) h[i] = (float)i;
	MUST(blk_buffer_write(w.x, 0, h, N * 4));
	for (int i = 0; i < N; i++) h[i] = 1;
	MUST(blk_buffer_write(w.y, 0, h, N * 4));
	free(h);
	return w;
}

static work begin(blk_device *d)
{
	return begin_as(d, "add.blk");
}

static void end(work *w)
{
	blk_module_close(w->m);
	blk_buffer_free(w->z);
	blk_buffer_free(w->x);
	blk_buffer_free(w->y);
}

/* What blk_bench_call times as one run. */
typedef struct pair {
	blk_kernel *k;
	const blk_arg *args;
	int calls;
} pair;

static blk_status launch_pair(void *context)
{
	pair *p = context;
	p->calls++;
	blk_status status = blk_launch(p->k, NULL, NULL, p->args, 4);
	return status ? status : blk_launch(p->k, NULL, NULL, p->args, 4);
}

static bool poison(work *w)
{
	return blk_buffer_fill(w->z, 0, 0xff, N * 4) == BLK_OK;
}

/* z[i] is i + add for the first n elements, and nan (the poison) behind. */
static bool right(work *w, int n, float add)
{
	float *h = suite_alloc(N * 4);
	bool good = blk_buffer_read(w->z, 0, h, N * 4) == BLK_OK;
	for (int i = 0; good && i < N; i++) good = i < n ? h[i] == (float)i + add : isnan(h[i]);
	free(h);
	return good;
}

static void specialisations(suite *s)
{
	static const int sizes[] = {1, 2, 16, 31, 128, 129, 4096, 99999, N};
	work w = begin(s->device);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		bool good = poison(&w);
		good = good && blk_launch(w.k, NULL, NULL,
				       BLK_ARGS(blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i32(sizes[i]))) == BLK_OK;
		verdict(s, "aligned", good && right(&w, sizes[i], 1));
		const float *x = blk_buffer_pointer(w.x), *y = blk_buffer_pointer(w.y);
		good = poison(&w) &&
		       blk_launch(w.k, NULL, NULL,
			       BLK_ARGS(blk_buf(w.z), blk_ptr(x + 1), blk_ptr(y), blk_i32(sizes[i] - 1))) == BLK_OK;
		verdict(s, "unaligned", good && right(&w, sizes[i] - 1, 2));
	}
	end(&w);
}

static void wrong_use(suite *s)
{
	work w = begin(s->device);
	blk_buffer *huge;
	blk_grid zero = {1, 0, 1};
	blk_arg args[] = {blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i64(N)};
	verdict(s, "type", blk_launch(w.k, NULL, NULL, args, 4) == BLK_ERROR_TYPE);
	verdict(s, "count", blk_launch(w.k, NULL, NULL, args, 3) == BLK_ERROR_TYPE);
	args[3] = blk_i32(N);
	verdict(s, "grid", blk_launch(w.k, NULL, &zero, args, 4) == BLK_ERROR_GRID);
	verdict(s, "memory", blk_buffer_create(s->device, (size_t)1 << 50, &huge) == BLK_ERROR_MEMORY);
	verdict(s, "poison", poison(&w));
	args[3] = blk_i32(0);
	verdict(s, "empty", blk_launch(w.k, NULL, NULL, args, 4) == BLK_OK && right(&w, 0, 0));
	args[3] = blk_i32(N);
	verdict(s, "and then a right one", blk_launch(w.k, NULL, NULL, args, 4) == BLK_OK && right(&w, N, 1));
	end(&w);
}

/* The arguments after n: what is refused says so and writes nothing, with the clause's grid and with the host's. */
static void requirements(suite *s)
{
	static const struct {
		int n, step;
		const char *says; /* null: it runs */
	} cases[] = {{100, 2, NULL}, {0, 5, NULL}, {100, 0, FILL_SAYS "step > 0, which does not hold: step = 0"},
		{100, 3,
			FILL_SAYS
			"n % step == 0 && n / step <= B (whole steps), which does not hold: n = 100, step = 3, B = 64"},
		{130, 2,
			FILL_SAYS
			"n % step == 0 && n / step <= B (whole steps), which does not hold: n = 130, step = 2, B = 64"},
		{128, 2, NULL}};
	blk_define define = {"B", "64"};
	blk_module *m;
	blk_kernel *k;
	blk_buffer *z;
	int32_t h[64];
	MUST(blk_module_source(s->device, "fill.blk", requires_text, &define, 1, &m));
	MUST(blk_kernel_find(m, NULL, &k));
	MUST(blk_buffer_create(s->device, sizeof h, &z));
	for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
		int n = cases[i / 2].n, step = cases[i / 2].step, wrong = 0;
		const char *says = cases[i / 2].says;
		blk_grid one = {1, 1, 1};
		memset(h, 0xff, sizeof h);
		MUST(blk_buffer_write(z, 0, h, sizeof h));
		blk_status status =
			blk_launch(k, NULL, i % 2 ? &one : NULL, BLK_ARGS(blk_buf(z), blk_i32(n), blk_i32(step)));
		bool good = says ? status == BLK_ERROR_ARGUMENT && strcmp(blk_error(), says) == 0 : status == BLK_OK;
		MUST(blk_buffer_read(z, 0, h, sizeof h));
		for (int j = 0; j < 64; j++) wrong += h[j] != (says || j >= n / step ? -1 : j);
		verdict(s, says ? "a requirement that fails" : "a requirement that holds", good && !wrong);
	}
	blk_grid grid;
	verdict(s, "a requirement and the grid",
		blk_kernel_grid(k, BLK_ARGS(blk_buf(z), blk_i32(8), blk_i32(0)), &grid) == BLK_ERROR_ARGUMENT);
	blk_buffer_free(z);
	blk_module_close(m);
}

static void streams(suite *s)
{
	work w = begin(s->device);
	blk_stream *a, *b;
	blk_event *start, *stop;
	double ms = -1;
	blk_arg args[] = {blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i32(N)};
	MUST(blk_stream_create(s->device, &a));
	MUST(blk_stream_create(s->device, &b));
	MUST(blk_event_create(s->device, &start));
	MUST(blk_event_create(s->device, &stop));
	bool good = poison(&w) && blk_event_record(start, a) == BLK_OK;
	for (int i = 0; i < 50; i++) good = good && blk_launch(w.k, i & 1 ? a : b, NULL, args, 4) == BLK_OK;
	good = good && blk_event_record(stop, a) == BLK_OK && blk_event_elapsed(start, stop, &ms) == BLK_OK;
	verdict(s, "two streams", good && right(&w, N, 1)); /* the read waits for both */
	verdict(s, "elapsed", ms >= 0 && ms < 60000);
	verdict(s, "stream sync", blk_stream_sync(a) == BLK_OK && blk_stream_sync(b) == BLK_OK);
	blk_event_free(start);
	blk_event_free(stop);
	blk_stream_free(a);
	blk_stream_free(b);
	end(&w);
}

static void information(suite *s)
{
	work w = begin(s->device);
	blk_info info;
	blk_device_info d;
	blk_timing t;
	double rate = 0;
	blk_bench_options o = {.warmup_ms = 1, .measure_ms = 5};
	blk_arg args[] = {blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i32(N)};
	MUST(blk_device_query(s->device, &d));
	MUST(blk_kernel_info(w.k, args, 4, &info));
	bool gpu = d.kind == BLK_DEVICE_CUDA, host = d.kind == BLK_DEVICE_CPU;
	verdict(s, "info",
		info.programs_per_sm >= 1 && info.num_sms == d.num_sms && info.occupancy > 0 && info.occupancy <= 1);
	verdict(s, "registers",
		gpu ? info.registers >= 8 && info.spill_bytes == 0 && info.threads == 128
		    : info.threads == (host ? 1u : 128u));
	verdict(s, "bench",
		blk_bench(w.k, NULL, args, 4, &o, &t) == BLK_OK && t.runs >= 5 && t.min_ms > 0 &&
			t.min_ms <= t.p20_ms && t.p20_ms <= t.median_ms && t.median_ms <= t.p80_ms &&
			t.p80_ms <= t.max_ms);
	pair both = {w.k, args, 0};
	verdict(s, "bench of two launches",
		poison(&w) && blk_bench_call(s->device, launch_pair, &both, &o, &t) == BLK_OK && t.runs >= 5 &&
			both.calls > (int)t.runs && t.min_ms > 0 && right(&w, N, 1));
	verdict(s, "bench without a call",
		blk_bench_call(s->device, NULL, NULL, &o, &t) == BLK_ERROR_ARGUMENT &&
			blk_bench_call(NULL, launch_pair, &both, &o, &t) == BLK_ERROR_ARGUMENT);
	args[3] = blk_arg_make(BLK_TYPE_I64, N);
	verdict(s, "bench of a failing call", blk_bench_call(s->device, launch_pair, &both, &o, &t) == BLK_ERROR_TYPE);
	args[3] = blk_i32(N);
	verdict(s, "bandwidth", blk_device_bandwidth(s->device, &rate) == BLK_OK && rate > 1e8);
	verdict(s, "PTX text", host == !info.ptx);
	if (info.ptx) { /* the text that the driver got is a module of its own */
		blk_module *m;
		blk_kernel *k;
		char *text = strdup(info.ptx);
		bool good = text && blk_module_source(s->device, "again", text, NULL, 0, &m) == BLK_OK &&
			    blk_kernel_find(m, "add", &k) == BLK_OK && poison(&w) &&
			    blk_launch(k, NULL, NULL, args, 4) == BLK_OK && right(&w, N, 1);
		verdict(s, "PTX", good);
		args[3] = blk_i32(N - 1); /* it was compiled for n divisible by 16 */
		verdict(s, "broken promise", good && blk_launch(k, NULL, NULL, args, 4) == BLK_ERROR_ALIGNMENT);
		free(text);
	}
	end(&w);
}

static void caches(suite *s, const char *device)
{
	for (int round = 0; round < 2; round++) {
		blk_device *d;
		blk_info info;
		MUST(blk_device_open(device, &d));
		work w = begin_as(d, "cache.blk");
		blk_arg args[] = {blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i32(77)};
		bool good = poison(&w) && blk_launch(w.k, NULL, NULL, args, 4) == BLK_OK && right(&w, 77, 1);
		verdict(s, "second device", good && blk_kernel_info(w.k, args, 4, &info) == BLK_OK);
		verdict(s, "cache", good && info.from_cache == round);
		end(&w);
		blk_device_close(d);
	}
}

static void *launches(void *p)
{
	blk_device *d = p;
	work w = begin(d);
	blk_stream *stream;
	bool good = blk_stream_create(d, &stream) == BLK_OK;
	for (int i = 0; good && i < 20; i++) {
		int n = i % 2 ? N : 1000 + i;
		good = poison(&w) &&
		       blk_launch(w.k, stream, NULL, BLK_ARGS(blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i32(n))) ==
			       BLK_OK &&
		       right(&w, n, 1);
	}
	blk_stream_free(stream);
	end(&w);
	return good ? p : NULL;
}

static void threads(suite *s)
{
	pthread_t t[6];
	for (int i = 0; i < 6; i++) pthread_create(&t[i], NULL, launches, s->device);
	for (int i = 0; i < 6; i++) {
		void *good = NULL;
		pthread_join(t[i], &good);
		verdict(s, "thread", good != NULL);
	}
}

/* ---- Beside a CUDA program ---- */

static void *driver;
static int cuda(const char *name, void *a, void *b, void *c)
{
	int (*f)(void *, void *, void *) = (int (*)(void *, void *, void *))dlsym(driver, name);
	return f ? f(a, b, c) : -1;
}

/* The program's own context is current; a device wraps another of its contexts. */
static void foreign_context(suite *s)
{
	void *mine = blk_device_context(s->device), *current = NULL;
	blk_device *d;
	MUST(blk_device_wrap(mine, &d));
	work w = begin(d);
	blk_arg args[] = {blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i32(N)};
	verdict(s, "no context is left current", cuda("cuCtxGetCurrent", &current, NULL, NULL) == 0 && current == NULL);
	verdict(s, "wrapped", poison(&w) && blk_launch(w.k, NULL, NULL, args, 4) == BLK_OK && right(&w, N, 1));
	end(&w);
	blk_device_close(d);
	verdict(s, "set current", cuda("cuCtxSetCurrent", mine, NULL, NULL) == 0);
	w = begin(s->device);
	args[0] = blk_buf(w.z), args[1] = blk_buf(w.x), args[2] = blk_buf(w.y);
	verdict(s, "still usable", poison(&w) && blk_launch(w.k, NULL, NULL, args, 4) == BLK_OK && right(&w, N, 1));
	verdict(s, "still current", cuda("cuCtxGetCurrent", &current, NULL, NULL) == 0 && current == mine);
	end(&w);
}

/* A stream that does not wait for the default one, and a graph captured from it.  The context is current. */
static void foreign_stream(suite *s)
{
	work w = begin(s->device);
	void *raw = NULL, *graph = NULL, *ready = NULL;
	blk_stream *stream;
	blk_arg args[] = {blk_buf(w.z), blk_buf(w.x), blk_buf(w.y), blk_i32(N)};
	bool good = cuda("cuStreamCreate", &raw, (void *)1, NULL) == 0 &&
		    blk_stream_wrap(s->device, raw, &stream) == BLK_OK;
	verdict(s, "wrapped stream", good);
	if (!good) return;
	for (int i = 0; i < 20; i++) {
		good = good && poison(&w) && blk_device_sync(s->device) == BLK_OK;
		good = good && blk_launch(w.k, stream, NULL, args, 4) == BLK_OK && right(&w, N, 1);
	}
	verdict(s, "reads wait for it", good);
	good = poison(&w) && blk_device_sync(s->device) == BLK_OK &&
	       cuda("cuStreamBeginCapture_v2", raw, (void *)0, NULL) == 0;
	good = good && blk_launch(w.k, stream, NULL, args, 4) == BLK_OK;
	good = cuda("cuStreamEndCapture", raw, &graph, NULL) == 0 && good;
	verdict(s, "captured", good && right(&w, 0, 0));
	good = good && cuda("cuGraphInstantiateWithFlags", &ready, graph, NULL) == 0;
	good = good && cuda("cuGraphLaunch", ready, raw, NULL) == 0;
	verdict(s, "graph", good && right(&w, N, 1));
	if (ready) cuda("cuGraphExecDestroy", ready, NULL, NULL);
	if (graph) cuda("cuGraphDestroy", graph, NULL, NULL);
	blk_stream_free(stream);
	verdict(s, "the stream is the program's", cuda("cuStreamDestroy_v2", raw, NULL, NULL) == 0);
	end(&w);
}

/* ---- Failing kernels ---- */

/* Of a tile the first element that fails is named; the second program alone has one. */
static void element_assertion(suite *s)
{
	static const struct {
		const char *name, *text, *says;
	} rows[] = {
		{"element of a row",
			"kernel k(x: *const i32, n: i32) grid(2) {\nlet o = program_id(0) * 256 + arange(0, 256);\n"
			"device_assert(load(x + o, mask = o < n) >= 0, \"no debts\"); }\n",
			"assert.blk:3: assertion failed in program (1, 0, 0), element (44): no debts"},
		{"element of a square",
			"kernel k(x: *const i32, n: i32) grid(2) {\nlet o = program_id(0) * 256 + arange(0, 8)[:, "
			"None] * 32 + "
			"arange(0, 32)[None, :];\n"
			"device_assert(load(x + o, mask = o < n) >= 0, \"100%\"); }\n",
			"assert.blk:3: assertion failed in program (1, 0, 0), element (1, 12): 100%"},
	};
	int32_t x[300] = {0}; /* what fails stands behind: 300 is 256 + 44 */
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		blk_module *m;
		blk_kernel *k;
		blk_buffer *b;
		MUST(blk_module_source(s->device, "assert.blk", rows[i].text, NULL, 0, &m));
		MUST(blk_kernel_find(m, "k", &k));
		MUST(blk_buffer_create(s->device, 1300, &b));
		MUST(blk_buffer_write(b, 0, x, sizeof x));
		int32_t bad[4] = {-5, -6, 0, -7};
		MUST(blk_buffer_write(b, sizeof x, bad, sizeof bad));
		verdict(s, "no element fails",
			blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(300))) == BLK_OK &&
				blk_device_sync(s->device) == BLK_OK);
		blk_status launched = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(b), blk_i32(304)));
		bool told = launched == BLK_OK && blk_device_sync(s->device) == BLK_ERROR_ASSERT;
		verdict(s, rows[i].name, told && strcmp(blk_error(), rows[i].says) == 0);
		if (told) printf("  as it should: %s\n", blk_error());
		blk_buffer_free(b);
		blk_module_close(m);
	}
}

static void assertion(suite *s)
{
	blk_module *m;
	blk_kernel *k;
	MUST(blk_module_source(s->device, "assert.blk",
		"kernel k(n: i32) grid(4) { device_assert(arange(0, 8) + n < 11, \"n is three\"); }\n", NULL, 0, &m));
	MUST(blk_kernel_find(m, "k", &k));
	verdict(s, "assertion holds",
		blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(3))) == BLK_OK && blk_device_sync(s->device) == BLK_OK);
	blk_status launched = blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(4)));
	verdict(s, "assertion fails", launched == BLK_OK && blk_device_sync(s->device) == BLK_ERROR_ASSERT);
	printf("  as it should: %s\n", blk_error());
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/blk_device_XXXXXX";
	suite s;
	blk_device_info d;
	if (!mkdtemp(folder)) return 1;
	setenv("BLK_CACHE_DIR", folder, 1);
	unsetenv("BLK_CACHE");
	suite_open(&s, argc, argv);
	MUST(blk_device_query(s.device, &d));
	specialisations(&s);
	wrong_use(&s);
	requirements(&s);
	streams(&s);
	information(&s);
	caches(&s, d.kind == BLK_DEVICE_CUDA ? "cuda" : d.kind == BLK_DEVICE_CPU ? "cpu" : "sim");
	threads(&s);
	driver = d.kind == BLK_DEVICE_CUDA ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
	if (driver) foreign_context(&s);
	if (driver) foreign_stream(&s);
	if (d.kind != BLK_DEVICE_CUDA) element_assertion(&s); /* there the first one costs the context */
	assertion(&s);
	int status = suite_close(&s);
	char path[64];
	blk_cache_clear(NULL);
	snprintf(path, sizeof path, "%s/code", folder);
	rmdir(path);
	rmdir(folder);
	return status;
}
