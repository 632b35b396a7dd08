/* Runs a grid of programs on all cores.
 *
 * In: a kernel (cpu_abi.h), its arguments, a grid.  Out: when every program has ended, a status.
 * The one idea: the linearised grid is handed out in chunks by one atomic counter, so that a slow program delays
 * nobody; the calling thread works too.  A launch is synchronous: streams, events and order come for free.  Threads
 * sleep between launches and live as long as the pool; after a fork the child starts its own. */
#include "cpu.h"
#include "base/growing.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "support/numbers.h"
#include "support/scalar.h"

enum { MAX_THREADS = 1024, CHUNKS_A_THREAD = 8, SCRATCH_ALIGN = 64 };
#define NO_PROGRAM UINT64_MAX /* of code that does not say which one runs */

typedef struct worker {
	cpu_pool *pool;
	pthread_t thread;
	void *scratch;
	uint64_t scratch_bytes;
	uint64_t seen; /* launches that it has taken part in */
} worker;

typedef struct launch {
	blk_cpu_kernel *kernel;
	blk_cpu_call call; /* each thread has a copy */
	cpu_watch *watch;  /* null: none */
	uint64_t programs, chunk, scratch_bytes;
	_Atomic uint64_t next;
	_Atomic int status;
	char *error;
	size_t room;
	pthread_mutex_t lock; /* of `error` and the watch's fault */
} launch;

struct cpu_pool {
	pthread_mutex_t turn; /* held by the thread whose launch runs */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work, done;
	uint64_t launches; /* number of the present one */
	unsigned busy;     /* workers that have not finished with it */
	bool stop;
	launch *launch;
	unsigned wanted, started; /* threads, the caller's included; workers started */
	pid_t owner;
	worker *workers; /* [0]: the caller's scratch */
};

static void report(launch *l, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void report(launch *l, int status, const char *fmt, ...)
{
	va_list list;
	pthread_mutex_lock(&l->lock);
	if (atomic_load(&l->status) == CPU_OK) {
		va_start(list, fmt);
		if (l->room) vsnprintf(l->error, l->room, fmt, list);
		va_end(list);
		atomic_store(&l->status, status);
	}
	pthread_mutex_unlock(&l->lock);
}

static void report_fault(launch *l, const cpu_fault *f)
{
	pthread_mutex_lock(&l->lock);
	if (atomic_load(&l->status) == CPU_OK) {
		l->watch->fault = *f;
		atomic_store(&l->status, CPU_FAULT);
	}
	pthread_mutex_unlock(&l->lock);
}

/* ---- what kernels call ---- */

static void outside(void *context, const blk_cpu_access *a, uint64_t address, const uint32_t program[3])
{
	cpu_fault f = {.access = a, .address = address, .has_program = true};
	memcpy(f.program, program, sizeof f.program);
	report_fault(context, &f);
}

static void find(void *context, uint64_t address, blk_cpu_range *out)
{
	const cpu_watch *w = ((launch *)context)->watch;
	*out = (blk_cpu_range){0};
	if (w->find) w->find(w->context, address, out);
}

static void assert_failed(
	void *context, const char *message, const char *file, uint32_t line, const uint32_t program[3])
{
	report(context, CPU_ASSERT_FAILED, "%s:%u: assertion failed in program (%u, %u, %u): %s", *file ? file : "?",
		line, program[0], program[1], program[2], message);
}

static void element_failed(void *context, const char *message, const char *file, uint32_t line,
	const uint32_t program[3], uint32_t rank, const uint32_t *index)
{
	char at[64];
	size_t n = 0;
	for (uint32_t d = 0; d < rank && n < sizeof at; d++)
		n += (size_t)snprintf(at + n, sizeof at - n, "%s%u", d ? ", " : "", index[d]);
	report(context, CPU_ASSERT_FAILED, "%s:%u: assertion failed in program (%u, %u, %u), element (%s): %s",
		*file ? file : "?", line, program[0], program[1], program[2], at, message);
}

static void add_value(growing *t, uint8_t kind, uint64_t bits)
{
	if (kind == BLK_CPU_POINTER || kind >= SCALAR_COUNT) {
		grow_format(t, " 0x%" PRIx64, bits);
	} else if (scalar_is_float((scalar)kind)) {
		double v = scalar_to_double((scalar)kind, bits);
		if (isnan(v))
			grow_format(t, " nan"); /* without the sign that the library would print */
		else
			grow_format(t, " %g", v);
	} else if (scalar_is_signed((scalar)kind)) {
		grow_format(t, " %" PRId64, scalar_sign_extend((scalar)kind, bits));
	} else {
		grow_format(t, " %" PRIu64, scalar_truncate((scalar)kind, bits));
	}
}

static void print_line(void *context, const blk_cpu_line *line)
{
	growing t = {0};
	plain_numbers n;
	(void)context;
	cpu_trap *way_back = cpu_trap_set(NULL); /* out of stdio, which holds locks, is none */
	numbers_begin(&n);
	grow_format(&t, "pid (%u, %u, %u)", line->program[0], line->program[1], line->program[2]);
	for (uint32_t d = 0; d < line->rank; d++) grow_format(&t, "%s%u", d ? ", " : " idx (", line->index[d]);
	if (line->rank) grow_format(&t, ")");
	grow_format(&t, line->count ? " %s:" : " %s", line->text);
	for (uint32_t i = 0; i < line->count; i++) add_value(&t, line->kinds[i], line->values[i]);
	grow_format(&t, "\n");
	numbers_end(&n);
	if (t.n) fwrite(t.at, 1, t.n, stdout); /* one call: stdio's lock keeps the line whole */
	free(t.at);
	cpu_trap_set(way_back);
}

/* ---- workers ---- */

static bool grow_scratch(worker *w, uint64_t bytes)
{
	if (bytes <= w->scratch_bytes) return true;
	uint64_t size = (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
	if (size < bytes || size > SIZE_MAX / 2) return false;
	free(w->scratch);
	w->scratch_bytes = 0;
	w->scratch = aligned_alloc(SCRATCH_ALIGN, (size_t)size);
	if (!w->scratch) return false;
	memset(w->scratch, 0, (size_t)size < 65536 ? (size_t)size : 65536);
	w->scratch_bytes = size;
	return true;
}

static void run_chunks(worker *w, launch *l, blk_cpu_call *call)
{
	*call = l->call;
	while (atomic_load_explicit(&l->status, memory_order_relaxed) == CPU_OK) {
		uint64_t first = atomic_fetch_add(&l->next, l->chunk);
		if (first >= l->programs) return;
		uint64_t last = l->programs - first > l->chunk ? first + l->chunk : l->programs;
		l->kernel(call, first, last, w->scratch);
	}
}

static void report_trap(launch *l, const cpu_trap *t, uint64_t program)
{
	cpu_fault f = {.at = *t, .address = t->address, .has_program = program != NO_PROGRAM};
	const uint32_t *grid = l->call.grid;
	f.program[0] = (uint32_t)(program % grid[0]);
	f.program[1] = (uint32_t)(program / grid[0] % grid[1]);
	f.program[2] = (uint32_t)(program / grid[0] / grid[1]);
	report_fault(l, &f);
}

/* A fault ends the thread's part of the launch.  The processor's mode for floats is the handler's then: put back. */
static void watched(worker *w, launch *l)
{
	blk_cpu_call call;
	cpu_trap t = {.pc = 0};
	fenv_t mode;
	sigset_t blocked;
	fegetenv(&mode);
	cpu_traps_unblock(&blocked);
	cpu_object_code(l->watch->object, &t.code, &t.code_bytes);
	if (sigsetjmp(t.back, 0)) {
		fesetenv(&mode);
		cpu_traps_block(&blocked);
		report_trap(l, &t, *(volatile uint64_t *)&call.program);
		return;
	}
	cpu_trap_set(&t);
	run_chunks(w, l, &call);
	cpu_trap_set(NULL);
	cpu_traps_block(&blocked);
}

static void take_chunks(worker *w, launch *l)
{
	if (!grow_scratch(w, l->scratch_bytes)) {
		report(l, CPU_NO_MEMORY, "out of memory: a thread needs %" PRIu64 " bytes for its tiles",
			l->scratch_bytes);
		return;
	}
	if (l->watch)
		watched(w, l);
	else
		run_chunks(w, l, &(blk_cpu_call){0});
}

static void *work(void *argument)
{
	worker *w = argument;
	cpu_pool *p = w->pool;
	cpu_traps_unblock(NULL);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->stop && w->seen == p->launches) pthread_cond_wait(&p->work, &p->lock);
		if (p->stop) break;
		w->seen = p->launches;
		launch *l = p->launch;
		pthread_mutex_unlock(&p->lock);
		take_chunks(w, l);
		pthread_mutex_lock(&p->lock);
		if (--p->busy == 0) pthread_cond_signal(&p->done);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Starts what is missing; fewer threads than wanted is not an error. */
static void start_workers(cpu_pool *p)
{
	while (p->started + 1 < p->wanted) {
		worker *w = &p->workers[p->started + 1];
		w->pool = p;
		w->seen = p->launches;
		if (pthread_create(&w->thread, NULL, work, w) != 0) {
			p->wanted = p->started + 1;
			return;
		}
		p->started++;
	}
}

static unsigned count_processors(void)
{
	const char *s = getenv("BLK_CPU_THREADS");
	long n = s ? strtol(s, NULL, 10) : 0;
	cpu_set_t set;
	if (n <= 0 && sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
	if (n <= 0) n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

static bool init_locks(cpu_pool *p)
{
	if (pthread_mutex_init(&p->turn, NULL) != 0) return false;
	if (pthread_mutex_init(&p->lock, NULL) != 0) goto no_lock;
	if (pthread_cond_init(&p->work, NULL) != 0) goto no_work;
	if (pthread_cond_init(&p->done, NULL) == 0) return true;
	pthread_cond_destroy(&p->work);
no_work:
	pthread_mutex_destroy(&p->lock);
no_lock:
	pthread_mutex_destroy(&p->turn);
	return false;
}

int cpu_pool_create(cpu_pool **out)
{
	cpu_pool *p = calloc(1, sizeof *p);
	*out = NULL;
	if (!p) return CPU_NO_MEMORY;
	p->wanted = count_processors();
	p->owner = getpid();
	p->workers = calloc(p->wanted, sizeof *p->workers);
	if (!p->workers || !init_locks(p)) {
		free(p->workers);
		free(p);
		return CPU_NO_MEMORY;
	}
	*out = p;
	return CPU_OK;
}

unsigned cpu_pool_threads(const cpu_pool *p)
{
	return p->wanted;
}

void cpu_pool_destroy(cpu_pool *p)
{
	if (!p) return;
	bool mine = p->owner == getpid(); /* a forked child has none of the threads */
	if (mine) {
		pthread_mutex_lock(&p->lock);
		p->stop = true;
		pthread_cond_broadcast(&p->work);
		pthread_mutex_unlock(&p->lock);
	}
	for (unsigned i = 1; mine && i <= p->started; i++) pthread_join(p->workers[i].thread, NULL);
	for (unsigned i = 0; i < p->started + 1; i++) free(p->workers[i].scratch);
	if (mine) {
		pthread_cond_destroy(&p->work);
		pthread_cond_destroy(&p->done);
		pthread_mutex_destroy(&p->lock);
		pthread_mutex_destroy(&p->turn);
	}
	free(p->workers);
	free(p);
}

/* In a child of the process that started the threads: they, and whoever held the locks, are gone. */
static bool adopt(cpu_pool *p)
{
	if (!init_locks(p)) return false;
	for (unsigned i = 1; i <= p->started; i++) free(p->workers[i].scratch);
	memset(p->workers + 1, 0, p->started * sizeof *p->workers);
	p->started = 0;
	p->busy = 0;
	p->owner = getpid();
	return true;
}

static void run_with_workers(cpu_pool *p, launch *l)
{
	pthread_mutex_lock(&p->lock);
	start_workers(p);
	p->launch = l;
	p->launches++;
	p->busy = p->started;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	take_chunks(&p->workers[0], l);
	pthread_mutex_lock(&p->lock);
	while (p->busy) pthread_cond_wait(&p->done, &p->lock);
	p->launch = NULL;
	pthread_mutex_unlock(&p->lock);
}

int cpu_pool_run(cpu_pool *p, blk_cpu_kernel *kernel, uint64_t scratch_bytes, const uint64_t *args,
	const uint32_t grid[3], cpu_watch *watch, char *error, size_t room)
{
	launch l = {.kernel = kernel, .watch = watch, .scratch_bytes = scratch_bytes, .error = error, .room = room};
	blk_cpu_host host = {&l, print_line, assert_failed, element_failed, outside, find};
	unsigned __int128 programs = (unsigned __int128)grid[0] * grid[1] * grid[2];
	if (room) error[0] = 0;
	if (programs >> 62) {
		if (room) snprintf(error, room, "a grid of more than 2^62 programs");
		return CPU_UNSUPPORTED;
	}
	if (pthread_mutex_init(&l.lock, NULL) != 0) return CPU_NO_MEMORY;
	if (watch) watch->fault = (cpu_fault){0};
	l.programs = (uint64_t)programs;
	l.call = (blk_cpu_call){args, {grid[0], grid[1], grid[2]}, &host, watch ? watch->ranges : NULL, NO_PROGRAM};
	if (p->owner != getpid() && !adopt(p)) {
		pthread_mutex_destroy(&l.lock);
		return CPU_NO_MEMORY;
	}
	pthread_mutex_lock(&p->turn);
	if (watch && !cpu_traps_arm()) {
		report(&l, CPU_SYSTEM, "the system does not let faults be handled");
		l.watch = NULL;
	}
	l.chunk = l.programs / ((uint64_t)p->wanted * CHUNKS_A_THREAD);
	if (l.chunk == 0) l.chunk = 1;
	if (l.programs == 1 || p->wanted == 1)
		take_chunks(&p->workers[0], &l);
	else
		run_with_workers(p, &l);
	if (l.watch) cpu_traps_disarm();
	if (watch && watch->end) watch->end(watch->context);
	pthread_mutex_unlock(&p->turn);
	pthread_mutex_destroy(&l.lock);
	return atomic_load(&l.status);
}

void cpu_identity(char *buffer, size_t room)
{
	if (room == 0) return;
	buffer[0] = 0;
#if defined(__x86_64__)
	static const unsigned leaf[][2] = {{0, 0}, {1, 0}, {7, 0}, {7, 1}, {13, 1}, {0x80000001, 0}};
	size_t n = 0;
	for (unsigned i = 0; i < sizeof leaf / sizeof leaf[0]; i++) {
		unsigned r[4] = {0, 0, 0, 0};
		bool known = __get_cpuid_count(leaf[i][0], leaf[i][1], &r[0], &r[1], &r[2], &r[3]);
		if (!known) continue;          /* not reached: processors of these years have all of the leaves */
		if (leaf[i][0] == 1) r[1] = 0; /* the number of the core that happens to ask */
		if (leaf[i][0] == 13) r[1] = r[2] = r[3] = 0; /* sizes that follow what is switched on */
		int k = snprintf(buffer + n, room - n, "%s%x.%x.%x.%x", i ? "-" : "", r[0], r[1], r[2], r[3]);
		if ((size_t)k >= room - n) return;
		n += (size_t)k;
	}
#else
	snprintf(buffer, room, "generic");
#endif
}
