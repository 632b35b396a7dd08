/* Tuning over memory of every kind: buffers, pointers into them, pointers into an allocation that holds other things
 * too, on a GPU one that the driver alone knows, and memory of nobody's.  Whatever is tried, and wherever, a launch
 * adds once, and not a byte of anybody's changes besides. */
#include "device_test.h"

#include <dlfcn.h>

/* Each of them changes what it was given, so that a second run, or a trial that leaves a trace, shows. */
static const char text[] =
	"kernel hist(y: *i32, m: *f16, x: *const i32, n: i32, const BLOCK: i32 = 64) grid(cdiv(n, BLOCK)) {\n"
	"let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
	"atomic_add(y + load(x + i, mask = i < n, other = 0), 1, mask = i < n); }\n"
	"autotune hist key(n) { BLOCK: [128, 32, 256]; }\n"
	"kernel add(y: *f32, m: *f16, x: *const i32, n: i32, const BLOCK: i32 = 64, const OFF: f32 = 0.0)\n"
	"grid(cdiv(n, BLOCK)) {\n"
	"let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
	"let v = load(x + i, mask = i < n, other = 0).to(f32);\n"
	"store(y + i, load(y + i, mask = i < n) + v + OFF, mask = i < n);\n"
	"store(m + i, (load(m + i, mask = i < n).to(f32) * 2.0).to(f16), mask = i < n); }\n"
	"autotune add key(n) { config(BLOCK = 128); config(BLOCK = 32, OFF = 0.0078125); config(BLOCK = 256); CLAUSE "
	"}\n";

/* Its defaults leave m alone; some configurations do not. */
static const char more_text[] = "kernel more(y: *f32, m: *f16, x: *const i32, n: i32, const MORE: i32 = 0) grid(1) {\n"
				"store(y, load(y) + 1.0);\n"
				"if MORE > 0 { store(m, load(m) + 1.0); } }\n"
				"autotune more key(n) { MORE: [0, 1, 2]; }\n";

/* The addresses of what is written stand in a table. */
static const char far_text[] = "kernel far(at: *const i64, n: i32, const BLOCK: i32 = 64) grid(cdiv(n, BLOCK)) {\n"
			       "let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
			       "let y = load(at).to(*f32);\n"
			       "store(y + i, load(y + i, mask = i < n) + 1.0, mask = i < n); }\n"
			       "autotune far key(n) { BLOCK: [128, 32, 256]; CLAUSE }\n";

/* A few elements, the first and the last of more memory than results come to the host in at a time; one configuration
 * also stores where no other does. */
static const char large_text[] =
	"kernel large(y: *f32, n: i32, const FIRST: f32 = 0.0, const LAST: f32 = 0.0, const ALSO: f32 = 0.0) grid(1) "
	"{\n"
	"store(y, 1.0 + FIRST); store(y + n - 1, 1.0 + LAST); store(y + n / 2, ALSO, mask = ALSO != 0.0); }\n"
	"autotune large key(n) { config(FIRST = 0.0); config(FIRST = 0.0078125);\n"
	"config(LAST = 0.0078125); config(ALSO = 0.0078125); config(ALSO = 0.0); }\n";

enum { N = 1000, BINS = 16, ROOM = 16384, TRIALS = 3 };
enum { Y = 4096, M = 4096 + 4 * N + 4, X = 12288 - 4, BEHIND = N + 3 }; /* where the arrays lie in one allocation */

typedef enum memory { BUFFERS, POINTERS, ARENA, DRIVER, NOBODYS, MEMORIES } memory;
static const char *const memories[] = {"buffers", "pointers", "one allocation", "the driver's", "nobody's"};

typedef struct place {
	memory kind;
	blk_buffer *buffers[3];
	char *base[3]; /* of the arrays */
	void *raw;     /* nobody's, or the driver's */
	char before[3][ROOM], now[3][ROOM];
} place;

static void *driver;

static int cuda(const char *name, void *a, void *b, void *c)
{
	int (*f)(void *, void *, void *);
	*(void **)&f = dlsym(driver, name);
	return f ? f(a, b, c) : -1;
}

static void must(blk_status s, const char *what)
{
	if (s == BLK_OK) return;
	printf("%s: %s\n", what, blk_error());
	exit(1);
}
#define MUST(call) must((call), #call)

static void verdict(suite *s, bool good, const char *name, const place *p, const char *how)
{
	if (!good)
		printf("%s, %s, %s: WRONG (note \"%s\", last error: %s)\n", name, memories[p->kind], how, blk_note(),
			blk_error());
	good ? s->passed++ : s->failed++;
}

/* ---- Memory ---- */

static const int places[3] = {Y, M, X};

static bool shared(const place *p)
{
	return p->kind == ARENA || p->kind == DRIVER || p->kind == NOBODYS;
}

static void make(suite *s, place *p, memory kind)
{
	memset(p, 0, sizeof *p);
	p->kind = kind;
	if (kind == DRIVER && cuda("cuMemAlloc_v2", &p->raw, (void *)(uintptr_t)ROOM, NULL) != 0) exit(1);
	if (kind == NOBODYS) p->raw = suite_alloc(ROOM);
	for (int i = 0; i < 3 && kind <= ARENA; i++)
		if (kind != ARENA || i == 0) MUST(blk_buffer_create(s->device, ROOM, &p->buffers[i]));
	for (int i = 0; i < 3; i++) {
		char *start = p->raw ? p->raw : blk_buffer_pointer(p->buffers[kind == ARENA ? 0 : i]);
		p->base[i] = start + (shared(p) ? places[i] : 0);
	}
}

static void drop(place *p)
{
	for (int i = 0; i < 3; i++) blk_buffer_free(p->buffers[i]);
	if (p->kind == DRIVER) cuda("cuMemFree_v2", p->raw, NULL, NULL);
	if (p->kind == NOBODYS) free(p->raw);
}

static void move(place *p, int i, char *host, bool in)
{
	if (p->kind == NOBODYS)
		memcpy(in ? p->raw : host, in ? host : p->raw, ROOM);
	else if (p->kind == DRIVER && in)
		cuda("cuMemcpyHtoD_v2", p->raw, host, (void *)(uintptr_t)ROOM);
	else if (p->kind == DRIVER)
		cuda("cuMemcpyDtoH_v2", host, p->raw, (void *)(uintptr_t)ROOM);
	else if (in)
		MUST(blk_buffer_write(p->buffers[i], 0, host, ROOM));
	else
		MUST(blk_buffer_read(p->buffers[i], 0, host, ROOM));
}

static int blocks(const place *p)
{
	return shared(p) ? 1 : 3;
}

/* The place of an array in the host's image. */
static void *image(place *p, char (*of)[ROOM], int i)
{
	return shared(p) ? of[0] + places[i] : of[i];
}

/* Large numbers around, so that a difference drowns in them unless one looks at the right place. */
static void fill(place *p, bool floats)
{
	for (int b = 0; b < blocks(p); b++)
		for (int i = 0; i < ROOM / 4; i++) {
			float big = p->kind == BUFFERS ? 0 : 1e6f + (float)i; /* a buffer is compared as a whole */
			memcpy(p->before[b] + 4 * i, &big, 4);
		}
	for (int i = 0; i < N; i++) {
		int32_t count = 7 * i, x = i % BINS;
		float y = 0.5f + (float)(i % 8);
		uint16_t m = (uint16_t)scalar_from_double(SCALAR_F16, 1 + i % 5);
		memcpy((char *)image(p, p->before, 0) + 4 * i, floats ? (void *)&y : (void *)&count, 4);
		memcpy((char *)image(p, p->before, 1) + 2 * i, &m, 2);
		memcpy((char *)image(p, p->before, 2) + 4 * i, &x, 4);
	}
	for (int b = 0; b < blocks(p); b++) move(p, b, p->before[b], true);
}

/* What one launch makes of p->before. */
static void expect(place *p, bool floats)
{
	char *y = image(p, p->before, 0), *m = image(p, p->before, 1);
	for (int i = 0; i < N && floats; i++) {
		float v;
		memcpy(&v, y + 4 * i, 4);
		v += (float)(i % BINS);
		memcpy(y + 4 * i, &v, 4);
		uint64_t twice = scalar_from_double(
			SCALAR_F16, 2 * scalar_to_double(SCALAR_F16, container_at(SCALAR_F16, m, (size_t)i)));
		container_put(SCALAR_F16, m, (size_t)i, twice);
	}
	for (int i = 0; i < N && !floats; i++) {
		int32_t count;
		memcpy(&count, y + 4 * (i % BINS), 4);
		count++;
		memcpy(y + 4 * (i % BINS), &count, 4);
	}
}

static bool as_expected(place *p)
{
	bool same = true;
	for (int b = 0; b < blocks(p); b++) {
		move(p, b, p->now[b], false);
		same = same && memcmp(p->now[b], p->before[b], ROOM) == 0;
	}
	return same;
}

/* ---- Launches ---- */

static void arguments(const place *p, blk_arg args[4])
{
	for (int i = 0; i < 3; i++) args[i] = p->kind == BUFFERS ? blk_buf(p->buffers[i]) : blk_ptr(p->base[i]);
	args[3] = blk_i32(N);
}

typedef struct seen {
	int good, wrong, all;
} seen;

static int count(void *context, const blk_tune_trial *t)
{
	seen *s = context;
	s->all++;
	s->good += t->verdict == BLK_TUNE_GOOD;
	s->wrong += t->verdict == BLK_TUNE_WRONG && strstr(t->configuration, "OFF=0.0078125") != NULL;
	return 0;
}

static blk_kernel *open_source(suite *s, const char *from, const char *name, const char *clause, blk_module **m)
{
	char source[sizeof text + 64];
	const char *end = strstr(from, "CLAUSE");
	blk_kernel *k;
	snprintf(source, sizeof source, "%.*s%s%s", end ? (int)(end - from) : (int)strlen(from), from, clause,
		end ? " }\n" : "");
	MUST(blk_module_source(s->device, "tuning.blk", source, NULL, 0, m));
	MUST(blk_kernel_find(*m, name, &k));
	return k;
}

static blk_kernel *open_kernel(suite *s, const char *name, const char *clause, blk_module **m)
{
	return open_source(s, text, name, clause, m);
}

/* Tuning asked for, then a launch; then one that decides for itself, as `how` tells it. */
static void try_kernel(suite *s, place *p, const char *name, const char *clause, const char *how)
{
	bool floats = strcmp(name, "add") == 0;
	char what[96];
	blk_module *m;
	blk_arg args[4];
	seen found = {0};
	blk_kernel *k = open_kernel(s, name, floats ? clause : "", &m);
	blk_tune_options o = {.visit = count, .context = &found, .isolated = strcmp(how, "isolated") == 0};
	uint32_t timed = 9;
	snprintf(what, sizeof what, "%s %s", name, clause);
	arguments(p, args);
	fill(p, floats);
	blk_status status = blk_kernel_tune(k, NULL, args, 4, &o, &timed);
	if (p->kind == NOBODYS)
		verdict(s, status == BLK_ERROR_ARGUMENT && timed == 0 && strstr(blk_error(), "y is a bare pointer"),
			what, p, "asked");
	else
		verdict(s,
			status == BLK_OK && timed == TRIALS && found.all == TRIALS && found.good == (floats ? 2 : 3) &&
				found.wrong == (floats ? 1 : 0),
			what, p, "verdicts");
	verdict(s, as_expected(p), what, p, "no trace");
	blk_module_close(m);

	k = open_kernel(s, name, floats ? clause : "", &m);
	setenv("BLK_TUNE", how, 1);
	status = blk_launch(k, NULL, NULL, args, 4);
	bool told = strstr(blk_note(), "runs with its defaults") != NULL;
	expect(p, floats);
	verdict(s, status == BLK_OK && as_expected(p), what, p, how);
	verdict(s, told == (p->kind == NOBODYS && strcmp(how, "") != 0), what, p, "told");
	MUST(blk_launch(k, NULL, NULL, args, 4));
	expect(p, floats);
	verdict(s, as_expected(p), what, p, "the second launch");
	unsetenv("BLK_TUNE");
	blk_module_close(m);
}

/* A pointer into an allocation with more in it is not zeroed, and one is told; y alone in its own is. */
static void reset(suite *s, place *p)
{
	blk_module *m;
	blk_arg args[4];
	blk_kernel *k = open_kernel(s, "add", "reset y;", &m);
	arguments(p, args);
	fill(p, true);
	verdict(s, blk_kernel_tune(k, NULL, args, 4, NULL, NULL) == BLK_OK && as_expected(p), "reset", p, "tuned");
	verdict(s, (strstr(blk_note(), "find y as it is") != NULL) == shared(p), "reset", p, "told");
	blk_module_close(m);
}

static void more(suite *s, place *p)
{
	blk_module *m;
	blk_arg args[4];
	seen found = {0};
	blk_tune_options o = {.visit = count, .context = &found};
	blk_kernel *k = open_source(s, more_text, "more", "", &m);
	arguments(p, args);
	fill(p, true);
	verdict(s, blk_kernel_tune(k, NULL, args, 4, &o, NULL) == BLK_OK && found.all == 3, "more", p, "tuned");
	verdict(s, as_expected(p), "more", p, "no trace");
	blk_module_close(m);
}

static bool all_are(blk_buffer *b, float wanted)
{
	static float host[N];
	bool good = blk_buffer_read(b, 0, host, sizeof host) == BLK_OK;
	for (int i = 0; i < N; i++) good = good && host[i] == wanted;
	return good;
}

/* What addresses in memory lead to is not known, so nothing is tried, unless one is told that it does not matter. */
static void far(suite *s)
{
	place p = {.kind = BUFFERS};
	blk_module *m;
	blk_buffer *y, *at;
	MUST(blk_buffer_create(s->device, N * sizeof(float), &y));
	MUST(blk_buffer_create(s->device, sizeof(uint64_t), &at));
	uint64_t address = (uint64_t)(uintptr_t)blk_buffer_pointer(y);
	MUST(blk_buffer_write(at, 0, &address, sizeof address));
	MUST(blk_buffer_fill(y, 0, 0, N * sizeof(float)));
	blk_kernel *k = open_source(s, far_text, "far", "", &m);
	blk_arg args[] = {blk_buf(at), blk_i32(N)};
	verdict(s, blk_kernel_tune(k, NULL, args, 2, NULL, NULL) == BLK_ERROR_ARGUMENT && all_are(y, 0), "far", &p,
		"asked");
	verdict(s, strstr(blk_error(), "it writes at addresses that at holds") != NULL, "far", &p, "says why");
	setenv("BLK_TUNE", "auto", 1);
	verdict(s, blk_launch(k, NULL, NULL, args, 2) == BLK_OK && all_are(y, 1), "far", &p, "launched");
	verdict(s, strstr(blk_note(), "runs with its defaults") != NULL, "far", &p, "told");
	unsetenv("BLK_TUNE");
	blk_module_close(m);
	uint32_t timed = 0;
	k = open_source(s, far_text, "far", "scratch at;", &m);
	verdict(s, blk_kernel_tune(k, NULL, args, 2, NULL, &timed) == BLK_OK && timed == 3, "far", &p, "scratch");
	blk_tune_options apart = {.isolated = 1, .again = 1};
	verdict(s, blk_kernel_tune(k, NULL, args, 2, &apart, &timed) == BLK_ERROR_ARGUMENT, "far", &p, "isolated");
	blk_module_close(m);
	blk_buffer_free(at);
	blk_buffer_free(y);
}

static void large(suite *s)
{
	enum { ELEMENTS = (68 << 20) / sizeof(float) };
	blk_buffer *y;
	MUST(blk_buffer_create(s->device, ELEMENTS * sizeof(float), &y));
	MUST(blk_buffer_fill(y, 0, 0, ELEMENTS * sizeof(float)));
	for (int bare = 0; bare < 2; bare++) {
		place p = {.kind = bare ? POINTERS : BUFFERS};
		blk_module *m;
		seen found = {0};
		blk_tune_options o = {.visit = count, .context = &found};
		blk_kernel *k = open_source(s, large_text, "large", "", &m);
		blk_arg args[] = {bare ? blk_ptr(blk_buffer_pointer(y)) : blk_buf(y), blk_i32(ELEMENTS)};
		blk_status status = blk_kernel_tune(k, NULL, args, 2, &o, NULL);
		verdict(s, status == BLK_OK && found.all == 5 && found.good == 2, "large", &p, "verdicts");
		blk_module_close(m);
	}
	blk_buffer_free(y);
}

int main(int argc, char **argv)
{
	static const char *const clauses[] = {"", "restore y;", "reset y;", "restore y, x; reset m;"};
	static const char *const ways[] = {"auto", "isolated", "always", ""};
	static place p;
	suite s;
	blk_device_info d;
	setenv("BLK_CACHE", "off", 1);
	unsetenv("BLK_TUNE");
	suite_open(&s, argc, argv);
	MUST(blk_device_query(s.device, &d));
	driver = d.kind == BLK_DEVICE_CUDA ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
	if (driver && cuda("cuCtxSetCurrent", blk_device_context(s.device), NULL, NULL) != 0) exit(1);
	for (int kind = 0; kind < MEMORIES; kind++) {
		if (!suite_wants(&s, memories[kind]) || (kind == DRIVER && !driver)) continue;
		if (kind == NOBODYS && d.kind != BLK_DEVICE_CPU) continue; /* no kernel could reach it */
		make(&s, &p, (memory)kind);
		for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
			try_kernel(&s, &p, "hist", "", ways[way]);
			try_kernel(&s, &p, "add", clauses[way], ways[way]);
		}
		if (kind != NOBODYS) {
			reset(&s, &p);
			more(&s, &p);
		}
		drop(&p);
	}
	if (suite_wants(&s, "addresses")) far(&s);
	if (suite_wants(&s, "large")) large(&s);
	return suite_close(&s);
}
