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
#include <string.h>
#include <sys/ucontext.h>

enum { SIGNALS = 2 };
static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};
static struct sigaction before[SIGNALS];
static unsigned running;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `running` and of changes to `before` */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Initial-exec: the handler may be the first on its thread to look, and must not allocate. */
static _Thread_local cpu_trap *volatile inside __attribute__((tls_model("initial-exec")));

cpu_trap *cpu_trap_set(cpu_trap *t)
{
	cpu_trap *was = inside;
	inside = t;
	return was;
}

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
static void pass_on(const struct sigaction *to, int number, siginfo_t *info, void *context)
{
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
	pass_on(&before[number == SIGBUS], number, info, context); /* ORDER numbers */
}

/* ---- arming ---- */

static bool is_ours(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO && a->sa_sigaction == on_fault;
}

static bool install(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, was;
	ours.sa_sigaction = on_fault;
	sigemptyset(&ours.sa_mask);
	for (int i = 0; i < SIGNALS; i++) {
		if (sigaction(numbers[i], &ours, &was) != 0) return false;
		if (!is_ours(&was)) before[i] = was;
	}
	return true;
}

/* One that the process has put in the place of ours since then stays. */
static void remove_ours(void)
{
	struct sigaction was;
	for (int i = 0; i < SIGNALS; i++)
		if (sigaction(numbers[i], &before[i], &was) == 0 && !is_ours(&was)) sigaction(numbers[i], &was, NULL);
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
	if (running && --running == 0) remove_ours();
	pthread_mutex_unlock(&lock);
}

void cpu_traps_unblock(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++) sigaddset(&set, numbers[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
