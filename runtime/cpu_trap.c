/* Faults of kernels: a thread that touches memory which is not there leaves its kernel, and the process goes on.
 *
 * In: threads that say when they are inside a kernel.  Out: where such a thread was, and what it touched.
 * The one idea: the handler is armed only while a launch runs, and takes only faults of threads that are inside a
 * kernel; every other goes to the handler that was there before, as if ours were not. A handler belongs to the process,
 * so this file has what no other of the library has: state outside of a device, which is the handler that was there,
 * how many launches run, and each thread's way back. */
#include "cpu.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ucontext.h>

enum { SIGNALS = 2 };
static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};
static struct sigaction before[SIGNALS];
/* Where `before` was installed while ours was there, it may call ours as its predecessor: what ours stood for then. */
static struct sigaction older[SIGNALS];
static bool follows[SIGNALS];
static atomic_uint running;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of changes to all of these; the handler reads without */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Initial-exec: the handler may be the first on its thread to look, and must not allocate. */
static _Thread_local cpu_trap *volatile inside __attribute__((tls_model("initial-exec")));

cpu_trap *cpu_trap_set(cpu_trap *t)
{
	cpu_trap *was = inside;
	inside = t;
	return was;
}

/* The fault that this thread passes on: a handler that calls ours again has the same context. */
static _Thread_local void *volatile passing __attribute__((tls_model("initial-exec")));

/* ---- the handler ---- */

#if defined(__x86_64__)
enum { ERROR_WRITES = 2, TRAP_PAGE = 14, MAX_WORDS = 128 };

/* In a function that the kernel called the place is the call: the first word of the stack that leads into the code;
 * which frames it passes on the way nobody knows, the address sanitizer included. */
__attribute__((no_sanitize_address)) static void look(cpu_trap *t, const siginfo_t *info, const ucontext_t *c)
{
	uint64_t pc = (uint64_t)c->uc_mcontext.gregs[REG_RIP], end = (uint64_t)(uintptr_t)t;
	t->in_page = c->uc_mcontext.gregs[REG_TRAPNO] == TRAP_PAGE;
	t->writes = t->in_page && c->uc_mcontext.gregs[REG_ERR] & ERROR_WRITES;
	t->address = (uint64_t)(uintptr_t)info->si_addr;
	const uint64_t *stack = (const uint64_t *)(uintptr_t)(c->uc_mcontext.gregs[REG_RSP] & ~(greg_t)7);
	for (int i = 0; i < MAX_WORDS && pc - t->code >= t->code_bytes; i++, stack++) {
		if ((uint64_t)(uintptr_t)stack >= end) break;
		if (*stack - t->code < t->code_bytes) pc = *stack - 1;
	}
	t->pc = pc;
}
#else
static void look(cpu_trap *t, const siginfo_t *info, const ucontext_t *c)
{
	(void)c;
	t->in_page = true;
	t->address = (uint64_t)(uintptr_t)info->si_addr;
}
#endif

/* As the kernel would have it without us.  What a fault's default does it does when the instruction is tried again. */
static void pass_on(struct sigaction *kept, int number, siginfo_t *info, void *context)
{
	struct sigaction now = *kept, *to = &now;
	if (now.sa_flags & SA_RESETHAND) *kept = (struct sigaction){.sa_handler = SIG_DFL};
	bool handled = to->sa_flags & SA_SIGINFO || (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN);
	if (!handled) {
		if (to->sa_handler == SIG_IGN && info->si_code <= 0) return;
		struct sigaction plain = {.sa_handler = SIG_DFL};
		sigaction(number, &plain, NULL);
		if (info->si_code <= 0) raise(number);
		return;
	}
	sigset_t blocked = to->sa_mask;
	if (!(to->sa_flags & SA_NODEFER)) sigaddset(&blocked, number);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL); /* until we return, which puts the thread's mask back */
	if (to->sa_flags & SA_SIGINFO)
		to->sa_sigaction(number, info, context);
	else
		to->sa_handler(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	cpu_trap *t = inside;
	if (t && info->si_code > 0) { /* not sent by a process */
		inside = NULL;
		look(t, info, context);
		siglongjmp(t->back, 1); /* the mask is as it was: nothing is blocked here */
	}
	int i = number == SIGBUS; /* ORDER numbers */
	bool again = follows[i] && (passing == context || !atomic_load(&running));
	void *was = passing;
	passing = context;
	pass_on(again ? &older[i] : &before[i], number, info, context);
	passing = was;
}

/* ---- arming ---- */

static bool is_ours(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO && a->sa_sigaction == on_fault;
}

static bool same_handler(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_flags == b->sa_flags &&
	       (a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler);
}

static bool install(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, was;
	ours.sa_sigaction = on_fault;
	sigemptyset(&ours.sa_mask);
	for (int i = 0; i < SIGNALS; i++) {
		if (sigaction(numbers[i], &ours, &was) != 0) return false;
		if (is_ours(&was)) continue;
		follows[i] = follows[i] && same_handler(&was, &before[i]);
		before[i] = was;
	}
	return true;
}

/* One that the process has put in the place of ours since then stays. */
static void remove_ours(void)
{
	struct sigaction was;
	for (int i = 0; i < SIGNALS; i++) {
		if (sigaction(numbers[i], &before[i], &was) != 0 || is_ours(&was)) continue;
		sigaction(numbers[i], &was, NULL);
		if (same_handler(&was, &before[i])) continue;
		older[i] = before[i];
		before[i] = was;
		follows[i] = true;
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The launches of the other threads do not run in the child. */
static void in_child(void)
{
	if (running) remove_ours();
	running = 0;
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

bool cpu_traps_arm(void)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	bool good = running || install();
	if (good)
		running++;
	else
		remove_ours();
	pthread_mutex_unlock(&lock);
	return good;
}

void cpu_traps_disarm(void)
{
	pthread_mutex_lock(&lock);
	if (running && atomic_fetch_sub(&running, 1) == 1) remove_ours();
	pthread_mutex_unlock(&lock);
}

static sigset_t ours_as_set(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++) sigaddset(&set, numbers[i]);
	return set;
}

void cpu_traps_unblock(sigset_t *was)
{
	sigset_t set = ours_as_set();
	pthread_sigmask(SIG_UNBLOCK, &set, was);
}

void cpu_traps_block(const sigset_t *was)
{
	bool any = false;
	for (int i = 0; i < SIGNALS; i++) any |= sigismember(was, numbers[i]) == 1;
	if (any) pthread_sigmask(SIG_SETMASK, was, NULL);
}
