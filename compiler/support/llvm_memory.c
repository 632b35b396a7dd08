/* See llvm_memory.h.
 *
 * LLVM is built without exceptions and asks three handlers of the whole process when it cannot go on: C++'s new
 * handler, its own for malloc, and its own for fatal errors.  Ours leave it by longjmp to the compile's begin.  Each
 * compile has an LLVM context, module and machine of its own, and no later one sees what was left half made.
 *
 * What all compiles share is filled once, under locks: registries of passes, tables behind first uses.  Nobody may
 * leave there.  So memory is asked for before each phase (llvm_room); and the first time that it is out, a reserve is
 * given back, on which LLVM goes on to the end of whatever small thing it was at.  Leaving is for the second time.
 *
 * The stack counts as memory too, and grows by a fault that no handler gets: the main thread's is grown beforehand. */
#include "llvm_memory.h"

#include <llvm-c/ErrorHandling.h>
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK = 4 << 20 };

/* C++'s and LLVM's functions that have no name in C. */
typedef void new_handler(void);
typedef void error_handler(void *context, const char *reason, bool diagnose);
new_handler *cxx_set_new_handler(new_handler *) __asm__("_ZSt15set_new_handlerPFvvE");
_Noreturn void cxx_throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");
void llvm_install_bad_alloc_handler(error_handler *, void *context) __asm__(
	"_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");

/* The thread's compile: a handler is told nothing else.  initial-exec: an access must not allocate. */
static _Thread_local llvm_guard *active __attribute__((tls_model("initial-exec")));
/* The host's new handler, where it shares the C++ library with us: it is asked for all that is no compile of ours. */
static _Atomic(new_handler *) hosts;

static void give_back(llvm_guard *g)
{
	if (g->reserve) munmap(g->reserve, LLVM_RESERVE);
	g->reserve = NULL;
}

/* Returning means: try again. */
static void on_new(void)
{
	llvm_guard *g = active;
	new_handler *other = atomic_load(&hosts);
	if (g && g->reserve)
		give_back(g);
	else if (g)
		longjmp(*g->out, LLVM_OUT_OF_MEMORY);
	else if (other)
		other();
	else
		cxx_throw_bad_alloc();
}

static void on_bad_alloc(void *context, const char *reason, bool diagnose)
{
	static const char said[] = "LLVM ERROR: out of memory\n";
	(void)context, (void)reason, (void)diagnose;
	if (active) longjmp(*active->out, LLVM_OUT_OF_MEMORY);
	/* another user's of this LLVM: what it does without a handler */
	if (write(STDERR_FILENO, said, sizeof said - 1) < 0) abort();
	abort();
}

static void on_fatal(const char *reason)
{
	if (!active) return; /* LLVM ends the process then */
	snprintf(active->complaint, sizeof active->complaint, "%s", reason);
	longjmp(*active->out, LLVM_GAVE_UP);
}

static void install(void)
{
	llvm_install_bad_alloc_handler(on_bad_alloc, NULL);
	LLVMInstallFatalErrorHandler(on_fatal);
}

/* Each time, as the host may have set its own since. */
static void install_all(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, install);
	new_handler *before = cxx_set_new_handler(on_new);
	if (before != on_new) atomic_store(&hosts, before);
}

/* ---- Room ---- */

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static bool make_room(llvm_guard *g)
{
	if (!g->reserve) g->reserve = map(LLVM_RESERVE);
	void *room = g->reserve ? map(LLVM_ROOM) : NULL;
	return room && munmap(room, LLVM_ROOM) == 0;
}

/* One touch maps all that lies between.  Other threads' stacks are mapped whole when they start. */
static __attribute__((noinline)) void grow_stack(void)
{
	volatile char far[STACK];
	far[0] = 0;
	(void)far[0];
}

extern void *__libc_stack_end; /* the dynamic linker's: where the main thread's stack began */

static bool main_stack_has_room(void)
{
	struct rlimit limit;
	uintptr_t top = (uintptr_t)__libc_stack_end, at = (uintptr_t)__builtin_frame_address(0);
	if (getpid() != gettid() || getrlimit(RLIMIT_STACK, &limit) != 0) return false;
	return at < top && (limit.rlim_cur == RLIM_INFINITY || top - at + STACK + (256 << 10) < limit.rlim_cur);
}

void llvm_room(arena *a)
{
	if (active && !make_room(active)) arena_out_of_memory(a);
}

bool llvm_guard_begin(llvm_guard *g, jmp_buf *out)
{
	assert(!active);
	*g = (llvm_guard){.out = out};
	if (!make_room(g)) return false;
	if (main_stack_has_room()) grow_stack();
	install_all();
	active = g;
	return true;
}

void llvm_guard_end(llvm_guard *g)
{
	assert(!active || active == g); /* none where llvm_guard_begin() found no room */
	give_back(g);
	active = NULL;
}
