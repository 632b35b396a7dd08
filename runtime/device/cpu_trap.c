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

enum { SIGNALS = 2, LAYERS = 8 };
static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};

/* Our handler, and what was there before it.  A host may install its own over ours while a launch runs, and call ours
 * as its predecessor for ever: the next launch then installs another of ours over the host's, and the host's calls lead
 * to the one below, with what was there before that. */
typedef struct layer {
	struct sigaction before;
	_Atomic bool spent; /* it was there for one signal (SA_RESETHAND), and that came */
	bool covered;       /* some other handler may call it */
} layer;
static layer layers[SIGNALS][LAYERS];
static unsigned top[SIGNALS]; /* the layer that the launches that run installed; LAYERS: none */
static unsigned running;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `running` and of changes to `layers` */
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
static void pass_on(layer *l, int number, siginfo_t *info, void *context)
{
	const struct sigaction *to = &l->before;
	bool handled = to->sa_flags & SA_SIGINFO || (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN);
	if (handled && (unsigned)to->sa_flags & SA_RESETHAND) handled = !atomic_exchange(&l->spent, true);
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

static void on_fault(unsigned which, int number, siginfo_t *info, void *context)
{
	cpu_trap *t = inside;
	if (t && info->si_code > 0) { /* not sent by a process */
		inside = NULL;
		look(t, info, context);
		/* a handler of the host's that led here may have blocked some */
		pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
		siglongjmp(t->back, 1);
	}
	pass_on(&layers[number == SIGBUS][which], number, info, context); /* ORDER numbers */
}

#define HANDLER(N)                                                                                                     \
	static void on_fault_##N(int number, siginfo_t *info, void *context)                                           \
	{                                                                                                              \
		on_fault(N, number, info, context);                                                                    \
	}
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
HANDLER(4)
HANDLER(5)
HANDLER(6)
HANDLER(7)
static void (*const handlers[LAYERS])(int, siginfo_t *, void *) = {
	on_fault_0, on_fault_1, on_fault_2, on_fault_3, on_fault_4, on_fault_5, on_fault_6, on_fault_7};

/* ---- arming ---- */

/* Which of ours it is; LAYERS: none. */
static unsigned ours_in(const struct sigaction *a)
{
	unsigned i = a->sa_flags & SA_SIGINFO ? 0 : LAYERS;
	while (i < LAYERS && a->sa_sigaction != handlers[i]) i++;
	return i;
}

static bool same_handler(const struct sigaction *a, const struct sigaction *b)
{
	bool informed = a->sa_flags & SA_SIGINFO;
	return a->sa_flags == b->sa_flags &&
	       (informed ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler);
}

/* One for what is there now: that which was over it before, else one that nobody calls. */
static unsigned choose_layer(const layer *of, const struct sigaction *now)
{
	unsigned i = 0;
	while (i < LAYERS && !(of[i].covered && same_handler(&of[i].before, now))) i++;
	if (i < LAYERS) return i;
	for (i = 0; i < LAYERS && of[i].covered;) i++;
	return i;
}

/* What was there is known before ours can be called.  Where all of ours are below handlers of the host's, they are
 * called by those or not at all. */
static bool install_one(int i)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, was;
	if (sigaction(numbers[i], NULL, &was) != 0) return false;
	unsigned which = ours_in(&was);
	if (which < LAYERS) return top[i] = which, true;
	if ((which = choose_layer(layers[i], &was)) == LAYERS) return true;
	layer *l = &layers[i][which];
	l->before = was;
	atomic_store(&l->spent, false);
	ours.sa_sigaction = handlers[which];
	sigemptyset(&ours.sa_mask);
	if (sigaction(numbers[i], &ours, &was) != 0) return false;
	top[i] = which;
	if (ours_in(&was) == LAYERS) l->before = was; /* the host was quicker */
	return true;
}

static bool install(void)
{
	for (int i = 0; i < SIGNALS; i++) top[i] = LAYERS;
	for (int i = 0; i < SIGNALS; i++)
		if (!install_one(i)) return false;
	return true;
}

/* One that the process has put in the place of ours since then stays, and may call ours. */
static void remove_ours(void)
{
	struct sigaction was;
	for (int i = 0; i < SIGNALS; i++) {
		if (sigaction(numbers[i], NULL, &was) != 0) continue;
		unsigned which = ours_in(&was);
		if (which != top[i] && top[i] != LAYERS) layers[i][top[i]].covered = true;
		if (which == LAYERS) continue;
		struct sigaction plain = {.sa_handler = SIG_DFL};
		layer *l = &layers[i][which];
		sigaction(numbers[i], atomic_load(&l->spent) ? &plain : &l->before, NULL);
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
	if (running && --running == 0) remove_ours();
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
