/* The cpu device's buffers: each a mapping of its own, between pages that nobody may touch.
 *
 *	| no access: 4 MiB | canary |  the buffer  | canary | no access: 4 MiB |
 *	                   ^ page   ^ 256-aligned           ^ page
 *
 * In: sizes.  Out: addresses, the buffer around an address, and whether what lies around one is as it was.
 * The one idea: a buffer ends as near to the page behind it as its alignment of 256 lets it, so that an access behind
 * the end faults at once; what is left of the two pages holds a pattern, by which a write there is found later.
 * Address space is cheap: the guards are wide, so that a wrong stride meets them and not another's memory.  Mappings
 * are not: the system counts them, and code and threads need some too.  Beyond a number of buffers, and where the
 * system refuses, a buffer is plain memory, which is told once. */
#include "cpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ALIGN = 256, GUARD = 4 << 20, WORD = 8, FRESH = 0xff, FILLED = 64 << 10 };

typedef struct region {
	uint64_t base, span; /* with its guards */
	uint64_t begin, bytes;
	uint64_t inner, inner_end; /* what may be touched; equal to the buffer where there are no guards */
	uint64_t canary; /* each one's its own: what is copied from around one buffer is none around another */
	bool mapped;
} region;

/* Of all devices' regions.  A fork takes it, so that a child finds no list half changed, and the lock free: one lock
 * for all of them needs no list of the devices. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t guarded; /* how many of all devices' regions are mapped: the process has so many mappings, not a device */

typedef enum unguarded { NONE, TOO_MANY, REFUSED, TOLD } unguarded;

struct cpu_memory {
	cpu_mode mode;
	size_t guards;      /* as many buffers of the process have some */
	_Atomic int lacked; /* unguarded: why some buffer was not guarded */
	region *at;         /* by address */
	size_t n, room;
};

static uint64_t up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

static void before_fork(void)
{
	pthread_rwlock_wrlock(&lock);
}

static void in_parent(void)
{
	pthread_rwlock_unlock(&lock);
}

/* The thread that has the lock is another one here, by its number. */
static void in_child(void)
{
	pthread_rwlock_init(&lock, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static uint64_t mappings(const char *limit)
{
	enum { USUAL = 65530 };
	char line[32];
	FILE *f = fopen(limit, "re");
	unsigned long long n = f && fgets(line, sizeof line, f) ? strtoull(line, NULL, 10) : 0;
	if (f) fclose(f);
	return n ? n : USUAL;
}

/* Three mappings at most, the buffer and a guard on either side: a quarter is left to others.  Of a limited address
 * space guards take a quarter. */
size_t cpu_memory_guards(const char *limit)
{
	enum { PART = 4 };
	uint64_t n = mappings(limit) / PART;
	struct rlimit space;
	if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return n;
	uint64_t fit = space.rlim_cur / PART / (2 * (uint64_t)GUARD);
	return fit < n ? fit : n;
}

int cpu_memory_create(cpu_mode mode, size_t guards, cpu_memory **out)
{
	pthread_once(&once, watch_forks);
	cpu_memory *m = calloc(1, sizeof *m);
	*out = NULL;
	if (!m) return CPU_NO_MEMORY;
	m->mode = mode;
	m->guards = guards;
	*out = m;
	return CPU_OK;
}

void cpu_memory_destroy(cpu_memory *m)
{
	if (!m) return;
	free(m->at);
	free(m);
}

cpu_mode cpu_memory_mode(const cpu_memory *m)
{
	return m->mode;
}

/* ---- getting ---- */

static bool map(region *r, uint64_t bytes)
{
	long size = sysconf(_SC_PAGESIZE);
	uint64_t page = size > 0 ? (uint64_t)size : 4096, room = up(bytes, ALIGN), pages = up(room, page);
	if (bytes > SIZE_MAX / 2) return false;
	uint64_t span = pages + 2 * (uint64_t)GUARD;
	void *p = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) return false;
	uint64_t base = (uint64_t)(uintptr_t)p, inner = base + GUARD;
	if (pages && mprotect((void *)(uintptr_t)inner, pages, PROT_READ | PROT_WRITE) != 0) {
		munmap(p, span);
		return false;
	}
	*r = (region){base, span, inner + pages - room, bytes, inner, inner + pages,
		base * UINT64_C(0x9e3779b97f4a7c15) | 1, true};
	return true;
}

static bool plain(region *r, uint64_t bytes)
{
	void *p = NULL;
	if (posix_memalign(&p, ALIGN, bytes ? bytes : 1) != 0) return false;
	uint64_t at = (uint64_t)(uintptr_t)p;
	*r = (region){at, bytes ? bytes : 1, at, bytes, at, at + bytes, 0, false};
	return true;
}

static void set_canary(const region *r, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at++)
		*(unsigned char *)(uintptr_t)at = (unsigned char)(r->canary >> at % WORD * 8);
}

static void set_canaries(const region *r)
{
	set_canary(r, r->inner, r->begin);
	set_canary(r, r->begin + r->bytes, r->inner_end);
}

/* Fresh pages are zero, which hides that nobody wrote them; small buffers, and all under checks, are not. */
static void prepare(const cpu_memory *m, const region *r)
{
	set_canaries(r);
	if (m->mode == CPU_CHECKED || r->bytes <= FILLED) memset((void *)(uintptr_t)r->begin, FRESH, r->bytes);
}

static void drop(const region *r)
{
	if (r->mapped)
		munmap((void *)(uintptr_t)r->base, r->span);
	else
		free((void *)(uintptr_t)r->base);
}

/* How many lie below the address. */
static size_t below(const cpu_memory *m, uint64_t address)
{
	size_t low = 0, high = m->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->at[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool insert(cpu_memory *m, const region *r)
{
	if (m->n == m->room) {
		size_t room = m->room ? 2 * m->room : 16;
		region *more = realloc(m->at, room * sizeof *more);
		if (!more) return false;
		m->at = more;
		m->room = room;
	}
	size_t i = below(m, r->base);
	memmove(m->at + i + 1, m->at + i, (m->n - i) * sizeof *r);
	m->at[i] = *r;
	m->n++;
	guarded += r->mapped;
	return true;
}

/* Threads that come at once may go beyond the number: it is no edge. */
static bool room_for_guards(const cpu_memory *m)
{
	pthread_rwlock_rdlock(&lock);
	bool room = guarded < m->guards;
	pthread_rwlock_unlock(&lock);
	return room;
}

static bool guard(cpu_memory *m, region *r, uint64_t bytes)
{
	if (m->mode == CPU_FAST) return false;
	bool room = room_for_guards(m);
	if (room && map(r, bytes)) return true;
	int none = NONE;
	atomic_compare_exchange_strong(&m->lacked, &none, room ? REFUSED : TOO_MANY);
	return false;
}

bool cpu_memory_allocate(cpu_memory *m, uint64_t bytes, uint64_t *address)
{
	region r;
	if (!guard(m, &r, bytes) && !plain(&r, bytes)) return false;
	if (m->mode != CPU_FAST) prepare(m, &r);
	pthread_rwlock_wrlock(&lock);
	bool good = insert(m, &r);
	pthread_rwlock_unlock(&lock);
	if (!good) drop(&r);
	*address = good ? r.begin : 0;
	return good;
}

bool cpu_memory_warning(cpu_memory *m, char *text, size_t room)
{
	int why = atomic_load(&m->lacked);
	if (why != TOO_MANY && why != REFUSED) return false;
	if (!atomic_compare_exchange_strong(&m->lacked, &why, TOLD)) return false;
	char limit[64] = "the system refuses the mapping";
	if (why == TOO_MANY) snprintf(limit, sizeof limit, "%zu buffers have some", m->guards);
	snprintf(text, room,
		"a buffer lies without guard pages: %s (vm.max_map_count and ulimit -v limit them); accesses outside "
		"of such "
		"buffers %s; raise the limit, or make fewer and larger buffers%s",
		limit, m->mode == CPU_CHECKED ? "are found by checked code alone" : "may go unnoticed",
		m->mode == CPU_CHECKED ? "" : ", or use the device cpu:checked, which needs no guards");
	return true;
}

void cpu_memory_release(cpu_memory *m, uint64_t address)
{
	pthread_rwlock_wrlock(&lock);
	size_t i = below(m, address) - 1;
	region r = m->at[i];
	m->n--;
	guarded -= r.mapped;
	memmove(m->at + i, m->at + i + 1, (m->n - i) * sizeof r);
	pthread_rwlock_unlock(&lock);
	drop(&r);
}

/* ---- asking ---- */

/* The region around an address, its guards included; null: none.  The lock is held. */
static const region *around(const cpu_memory *m, uint64_t address)
{
	size_t i = below(m, address);
	return i && address - m->at[i - 1].base < m->at[i - 1].span ? &m->at[i - 1] : NULL;
}

bool cpu_memory_find(cpu_memory *m, uint64_t address, blk_cpu_range *out)
{
	pthread_rwlock_rdlock(&lock);
	const region *r = around(m, address);
	if (r) *out = (blk_cpu_range){r->begin, r->bytes};
	pthread_rwlock_unlock(&lock);
	return r != NULL;
}

/* The first byte of [from, to) that is no canary; `to`, which is a whole word's begin: there is none. */
static uint64_t first_other(const region *r, uint64_t from, uint64_t to)
{
	uint64_t at = from, word;
	while (at < to) {
		if (at % WORD == 0) {
			memcpy(&word, (const void *)(uintptr_t)at, WORD);
			if (word == r->canary) {
				at += WORD;
				continue;
			}
		}
		if (*(const unsigned char *)(uintptr_t)at != (unsigned char)(r->canary >> at % WORD * 8)) break;
		at++;
	}
	return at;
}

bool cpu_memory_intact(cpu_memory *m, uint64_t address, uint64_t *where)
{
	bool good = true;
	pthread_rwlock_rdlock(&lock);
	const region *r = around(m, address);
	if (r && r->mapped) {
		uint64_t end = r->begin + r->bytes;
		uint64_t behind = first_other(r, end, r->inner_end), front = first_other(r, r->inner, r->begin);
		good = behind == r->inner_end && front == r->begin;
		*where = behind != r->inner_end ? behind : front;
		if (!good) set_canaries(r);
	}
	pthread_rwlock_unlock(&lock);
	return good;
}
