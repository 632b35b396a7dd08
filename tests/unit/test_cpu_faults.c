/* The cpu device's machinery where the system refuses, where the host's signal handlers are of every kind, and where
 * kernels do what the compiler's never do: kernels here are C functions.
 *
 * The seam is the linker's: --wrap=CALL (Makefile: CPU_CALLS). */
#include "cpu_fixture.h"
#include "faulty_malloc.h"

#include "runtime/internal.h"
#include "wrapped.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- What the system says ---- */

static struct {
	int inits, fail_init, live; /* of mutexes and conditions: asked for, the one that fails, those that are there */
	int actions, fail_action;   /* calls of sigaction */
	bool caught;                /* who sets a signal to its default gets `caught_default` */
	volatile sig_atomic_t raised;
	void (*behind)(int number); /* between a question about a handler and what follows; null: nothing */
	bool no_affinity, no_limit, no_name;
	const char *cpuinfo; /* null: the machine's; "": it cannot be opened */
	int nconf;
	const long (*conf)[2]; /* what sysconf() says of some */
} seam;

static int begun(int result)
{
	seam.live += result == 0;
	return result;
}

int __real_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __wrap_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
	return ++seam.inits == seam.fail_init ? ENOMEM : begun(__real_pthread_mutex_init(m, a));
}
int __real_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __wrap_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a)
{
	return ++seam.inits == seam.fail_init ? ENOMEM : begun(__real_pthread_cond_init(c, a));
}
int __real_pthread_mutex_destroy(pthread_mutex_t *);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
	seam.live--;
	return __real_pthread_mutex_destroy(m);
}
int __real_pthread_cond_destroy(pthread_cond_t *);
int __wrap_pthread_cond_destroy(pthread_cond_t *);
int __wrap_pthread_cond_destroy(pthread_cond_t *c)
{
	seam.live--;
	return __real_pthread_cond_destroy(c);
}

/* The system would now end the process. */
static void caught_default(int number)
{
	_exit(number == SIGSEGV ? 7 : 8);
}

int __real_sigaction(int, const struct sigaction *, struct sigaction *);
int __wrap_sigaction(int, const struct sigaction *, struct sigaction *);
int __wrap_sigaction(int number, const struct sigaction *to, struct sigaction *was)
{
	if (++seam.actions == seam.fail_action) return errno = EINVAL, -1;
	if (seam.caught && to && !(to->sa_flags & SA_SIGINFO) && to->sa_handler == SIG_DFL)
		return __real_sigaction(number, &(struct sigaction){.sa_handler = caught_default}, was);
	int result = __real_sigaction(number, to, was);
	if (!to && seam.behind) seam.behind(number);
	return result;
}
int __real_raise(int);
int __wrap_raise(int);
int __wrap_raise(int number)
{
	seam.raised = number;
	return 0;
}

int __real_sched_getaffinity(pid_t, size_t, cpu_set_t *);
int __wrap_sched_getaffinity(pid_t, size_t, cpu_set_t *);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
	return seam.no_affinity ? -1 : __real_sched_getaffinity(pid, n, set);
}
long __real_sysconf(int);
long __wrap_sysconf(int);
long __wrap_sysconf(int name)
{
	for (int i = 0; i < seam.nconf; i++)
		if (seam.conf[i][0] == name) return seam.conf[i][1];
	return __real_sysconf(name);
}
int __real_getrlimit(int, struct rlimit *);
int __wrap_getrlimit(int, struct rlimit *);
int __wrap_getrlimit(int what, struct rlimit *out)
{
	if (seam.no_limit) return *out = (struct rlimit){0, 0}, -1;
	return __real_getrlimit(what, out);
}
int __real_uname(struct utsname *);
int __wrap_uname(struct utsname *);
int __wrap_uname(struct utsname *u)
{
	return seam.no_name ? -1 : __real_uname(u);
}
FILE *__real_fopen(const char *, const char *);
FILE *__wrap_fopen(const char *, const char *);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!seam.cpuinfo || strcmp(path, "/proc/cpuinfo") != 0) return __real_fopen(path, mode);
	if (!*seam.cpuinfo) return errno = EACCES, NULL;
	return fmemopen((void *)(uintptr_t)seam.cpuinfo, strlen(seam.cpuinfo), "r");
}

static int setup(void **state)
{
	(void)state;
	if (!wraps((void *)cpu_pool_create)) return -1;
	memset(&seam, 0, sizeof seam);
	unsetenv("BLK_CPU");
	setenv("BLK_CPU_THREADS", "3", 1);
	setenv("BLK_CACHE", "off", 1);
	return 0;
}

/* The exit status of what a child does, 1000 and more: the signal that ended it. */
static int in_child(void (*what)(void))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit none = {0, 0};
		struct sigaction plain = {.sa_handler = SIG_DFL};
		alarm(60);
		setrlimit(RLIMIT_CORE, &none);
		__real_sigaction(SIGSEGV, &plain, NULL); /* not the test library's, nor a sanitizer's */
		__real_sigaction(SIGBUS, &plain, NULL);
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
#define EXPECT(condition)                                                                                              \
	if (!(condition)) { /* in a child */                                                                           \
		fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                \
		_exit(99);                                                                                             \
	}

/* ---- The pool ---- */

static _Atomic int programs_run;
static void counts(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)call, (void)scratch;
	programs_run += (int)(last - first);
}

static int run_with(cpu_pool *p, blk_cpu_kernel *k, uint64_t scratch, cpu_watch *w, char *error, size_t room)
{
	programs_run = 0;
	return cpu_pool_run(p, k, scratch, NULL, (uint32_t[]){40, 1, 1}, w, error, room);
}

static cpu_pool *make_pool(void)
{
	cpu_pool *p;
	assert_int_equal(cpu_pool_create(&p), CPU_OK);
	return p;
}

/* Each lock of a pool, and that of a launch: what was made before is unmade. */
static void locks_fail(void **state)
{
	(void)state;
	char error[64];
	cpu_pool *p;
	for (seam.fail_init = 1; seam.fail_init <= 4; seam.fail_init++) {
		seam.inits = 0;
		p = (cpu_pool *)state;
		assert_int_equal(cpu_pool_create(&p), CPU_NO_MEMORY);
		assert_null(p);
		assert_int_equal(seam.inits, seam.fail_init);
		assert_int_equal(seam.live, 0);
	}
	seam.fail_init = 0;
	p = make_pool();
	assert_int_equal(seam.live, 4);
	seam.inits = 0;
	seam.fail_init = 1;
	assert_int_equal(run_with(p, counts, 0, NULL, error, sizeof error), CPU_NO_MEMORY);
	assert_int_equal(programs_run, 0);
	assert_int_equal(run_with(p, counts, 0, NULL, error, sizeof error), CPU_OK);
	assert_int_equal(programs_run, 40);
	assert_int_equal(seam.live, 4);
	cpu_pool_destroy(p);
	cpu_pool_destroy(NULL);
	assert_int_equal(seam.live, 0);
}

static cpu_pool *inherited;
static void leave_it(void)
{
	int live = seam.live;
	cpu_pool_destroy(inherited); /* whose threads and locks are the parent's */
	EXPECT(seam.live == live);
}
static void take_it(void)
{
	char error[64];
	for (seam.fail_init = 1; seam.fail_init <= 5; seam.fail_init++) {
		seam.inits = 0;
		EXPECT(run_with(inherited, counts, 0, NULL, error, sizeof error) == CPU_NO_MEMORY);
		EXPECT(programs_run == 0);
	}
	seam.fail_init = 0;
	EXPECT(run_with(inherited, counts, 0, NULL, error, sizeof error) == CPU_OK && programs_run == 40);
	cpu_pool_destroy(inherited);
}
static void in_children(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__ /* which knows no threads after a fork of several */
	skip();
#endif
	char error[64];
	inherited = make_pool();
	assert_int_equal(run_with(inherited, counts, 64, NULL, error, sizeof error), CPU_OK);
	assert_int_equal(in_child(leave_it), 0);
	assert_int_equal(in_child(take_it), 0);
	assert_int_equal(run_with(inherited, counts, 64, NULL, error, sizeof error), CPU_OK);
	assert_int_equal(programs_run, 40);
	cpu_pool_destroy(inherited);
}

static unsigned threads(const char *wanted)
{
	if (wanted)
		setenv("BLK_CPU_THREADS", wanted, 1);
	else
		unsetenv("BLK_CPU_THREADS");
	cpu_pool *p = make_pool();
	unsigned n = cpu_pool_threads(p);
	cpu_pool_destroy(p);
	return n;
}
static void how_many_threads(void **state)
{
	(void)state;
	static const long seven[][2] = {{_SC_NPROCESSORS_ONLN, 7}}, none[][2] = {{_SC_NPROCESSORS_ONLN, -1}};
	cpu_set_t set;
	assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
	unsigned mine = (unsigned)CPU_COUNT(&set);
	assert_int_equal(threads("5"), 5);
	assert_int_equal(threads("5000"), 1024);
	assert_int_equal(threads("-1"), mine);
	assert_int_equal(threads(NULL), mine);
	seam.no_affinity = true;
	seam.conf = seven;
	seam.nconf = 1;
	assert_int_equal(threads(NULL), 7);
	seam.conf = none;
	assert_int_equal(threads(NULL), 1);
}

/* Two failures: the first is told, where there is room. */
static void fails_twice(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	static const uint32_t at[] = {1, 2, 3}, index[] = {4, 5};
	(void)first, (void)last, (void)scratch;
	call->host->element_failed(call->host->context, "the first", "", 7, at, 2, index);
	call->host->assert_failed(call->host->context, "the second", "b.blk", 8, at);
}
static void fails_nowhere(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)first, (void)last, (void)scratch;
	call->host->assert_failed(call->host->context, "no line", "", 0, (uint32_t[]){3, 0, 0});
}
static void room_for_errors(void **state)
{
	(void)state;
	char error[128] = "as it was";
	cpu_pool *p = make_pool();
	assert_int_equal(run_with(p, fails_twice, 0, NULL, error, 0), CPU_ASSERT_FAILED);
	assert_string_equal(error, "as it was");
	assert_int_equal(run_with(p, fails_twice, 0, NULL, error, sizeof error), CPU_ASSERT_FAILED);
	assert_string_equal(error, "?:7: assertion failed in program (1, 2, 3), element (4, 5): the first");
	assert_int_equal(run_with(p, fails_nowhere, 0, NULL, error, sizeof error), CPU_ASSERT_FAILED);
	assert_string_equal(error, "?:0: assertion failed in program (3, 0, 0): no line");
	static const uint32_t vast[] = {UINT32_MAX, UINT32_MAX, 2}, large[] = {1 << 31, 1 << 31, 1};
	assert_int_equal(cpu_pool_run(p, counts, 0, NULL, vast, NULL, error, sizeof error), CPU_UNSUPPORTED);
	assert_string_equal(error, "a grid of more than 2^62 programs");
	assert_int_equal(cpu_pool_run(p, counts, 0, NULL, large, NULL, error, 0), CPU_UNSUPPORTED);
	assert_string_equal(error, "a grid of more than 2^62 programs"); /* of before */
	cpu_pool_destroy(p);
}

/* Scratch memory that cannot be had. */
static void scratch_memory(void **state)
{
	(void)state;
	char error[128];
	cpu_pool *p = make_pool();
	static const uint64_t vast[] = {UINT64_MAX, UINT64_MAX - 64, UINT64_C(1) << 63};
	for (size_t i = 0; i < sizeof vast / sizeof vast[0]; i++) {
		char want[128];
		snprintf(want, sizeof want, "out of memory: a thread needs %llu bytes for its tiles",
			(unsigned long long)vast[i]);
		assert_int_equal(run_with(p, counts, vast[i], NULL, error, sizeof error), CPU_NO_MEMORY);
		assert_string_equal(error, want);
		assert_int_equal(programs_run, 0);
	}
#if FAULTY_MALLOC
	setenv("BLK_CPU_THREADS", "1", 1);
	cpu_pool *alone = make_pool();
	faulty.calls = 0;
	faulty.fail_at = 1;
	faulty.armed = true;
	int status = run_with(alone, counts, 100, NULL, error, sizeof error);
	faulty.armed = false;
	assert_int_equal(status, CPU_NO_MEMORY);
	assert_string_equal(error, "out of memory: a thread needs 100 bytes for its tiles");
	assert_int_equal(run_with(alone, counts, 100, NULL, error, sizeof error), CPU_OK);
	assert_int_equal(programs_run, 40);
	cpu_pool_destroy(alone);
#endif
	cpu_pool_destroy(p);
}

/* A line that no memory is there for is left out, and the launch goes on. */
static void prints_without_memory(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const blk_cpu_line line = {.text = "unseen"};
	(void)first, (void)last, (void)scratch;
	faulty.calls = 0;
	faulty.fail_at = 1;
	faulty.forever = faulty.armed = true;
	call->host->print(call->host->context, &line);
	faulty.forever = faulty.armed = false;
	call->host->print(call->host->context, &(blk_cpu_line){.text = "seen"});
}
static void printing(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	char error[64], shown[256] = "";
	cpu_pool *p = make_pool();
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	FILE *f = tmpfile();
	assert_true(saved >= 0 && f);
	dup2(fileno(f), STDOUT_FILENO);
	int status = cpu_pool_run(p, prints_without_memory, 0, NULL, (uint32_t[]){1, 1, 1}, NULL, error, sizeof error);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(f);
	shown[fread(shown, 1, sizeof shown - 1, f)] = 0;
	fclose(f);
	assert_int_equal(status, CPU_OK);
	assert_string_equal(shown, "pid (0, 0, 0) seen\n");
	cpu_pool_destroy(p);
}

static void identities(void **state)
{
	(void)state;
	char whole[400], part[12], one = 'x';
	cpu_identity(whole, sizeof whole);
	assert_true(strlen(whole) >= sizeof part);
	cpu_identity(part, sizeof part);
	assert_memory_equal(part, whole, sizeof part - 1);
	assert_int_equal(part[sizeof part - 1], 0);
	cpu_identity(&one, 0);
	assert_int_equal(one, 'x');
}

/* ---- Watched launches ---- */

static cpu_object *load_object(fixture *t)
{
	cpu_object *o;
	char error[100];
	compile_text(t, "func @f(%y: *i32) {\n  %c = const {value=5} : i32\n  store %y, %c" STORE "  return\n}\n");
	if (cpu_object_load(t->out.object, t->out.object_bytes, "f", &o, error, sizeof error)) fail_msg("%s", error);
	return o;
}

static blk_cpu_range asked;
static void asks(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)first, (void)last, (void)scratch;
	blk_cpu_range found = {1, 2};
	call->host->find(call->host->context, 4096, &found);
	asked = found;
}
static void touches_null(blk_cpu_call *call, uint64_t first, uint64_t last, void *scratch)
{
	(void)call, (void)first, (void)last, (void)scratch;
	volatile uintptr_t nowhere = 8;
	*(volatile char *)nowhere = 1;
}

/* Nobody who knows buffers, nobody who wants to know the end, and code that says nothing of its programs. */
static void watched(void **state)
{
	(void)state;
	fixture t;
	char error[100];
	cpu_watch w = {.object = load_object(&t)};
	cpu_pool *p = make_pool();
	asked = (blk_cpu_range){3, 4};
	assert_int_equal(run_with(p, asks, 0, &w, error, sizeof error), CPU_OK);
	assert_true(asked.begin == 0 && asked.bytes == 0);
	assert_int_equal(run_with(p, touches_null, 0, &w, error, sizeof error), CPU_FAULT);
	assert_true(w.fault.at.in_page && w.fault.at.writes && w.fault.address == 8);
	assert_false(w.fault.has_program);
	seam.actions = 0;
	seam.fail_action = 1;
	assert_int_equal(run_with(p, counts, 0, &w, error, sizeof error), CPU_SYSTEM);
	assert_string_equal(error, "the system does not let faults be handled");
	assert_int_equal(programs_run, 0);
	assert_int_equal(run_with(p, counts, 0, &w, error, sizeof error), CPU_OK);
	assert_int_equal(programs_run, 40);
	cpu_pool_destroy(p);
	cpu_object_free((cpu_object *)(uintptr_t)w.object);
	end(&t);
}

/* ---- Faults in functions that a kernel calls ---- */

#define IN(name) __attribute__((noinline, section(#name)))
extern const char __start_blk_caller[], __stop_blk_caller[], __start_blk_callee[], __stop_blk_callee[];

static volatile uintptr_t nowhere = 16;
static void *volatile returns_to;
IN(blk_callee) static void callee(void)
{
	returns_to = __builtin_return_address(0);
	*(volatile char *)nowhere = 1;
}
static void (*volatile called)(void) = callee;
IN(blk_caller) static void caller(void)
{
	called();
	returns_to = NULL; /* so that the call is not the last thing */
}

/* Where the fault of `what` is said to be, when the kernel's code is [begin, end). */
static uint64_t place_of(cpu_trap *t, const char *begin, const char *end_of, void (*what)(void))
{
	*t = (cpu_trap){.code = address(begin), .code_bytes = (uint64_t)(end_of - begin)};
	EXPECT(cpu_traps_arm());
	if (sigsetjmp(t->back, 0) == 0) {
		cpu_trap_set(t);
		what();
		cpu_trap_set(NULL);
	}
	cpu_traps_disarm();
	EXPECT(t->in_page && t->writes && t->address == 16);
	return t->pc;
}
static void from_deep_below(void)
{
	volatile char frame[8192];
	memset((void *)(uintptr_t)frame, 0, sizeof frame);
	called();
	frame[0] = 1;
}
static void in_callees(void)
{
	cpu_trap t;
	/* the call in the kernel's code, which is in front of where it returns to */
	EXPECT(place_of(&t, __start_blk_caller, __stop_blk_caller, caller) == address(returns_to) - 1);
	uint64_t pc = place_of(&t, __start_blk_callee, __stop_blk_callee, caller);
	EXPECT(pc - address(__start_blk_callee) < (uint64_t)(__stop_blk_callee - __start_blk_callee));
	/* nothing on the stack leads into the code: the place is the fault's own */
	EXPECT(place_of(&t, "", "", caller) == pc);
	EXPECT(place_of(&t, "", "", from_deep_below) == pc);
	static cpu_trap apart; /* the stack ends nowhere near */
	EXPECT(place_of(&apart, "", "", caller) == pc);
}

static void callees(void **state)
{
	(void)state;
	assert_int_equal(in_child(in_callees), 0);
}

/* ---- Handlers of the host's ---- */

static volatile sig_atomic_t handled;
static volatile bool handler_has_segv, handler_has_usr1;
static void note_mask(int number)
{
	sigset_t now;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	handled = number;
	handler_has_segv = sigismember(&now, SIGSEGV);
	handler_has_usr1 = sigismember(&now, SIGUSR1);
}
static struct sigaction installed(void (*handler)(int), int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
	sigemptyset(&a.sa_mask);
	sigaddset(&a.sa_mask, SIGUSR1);
	EXPECT(__real_sigaction(SIGSEGV, &a, NULL) == 0);
	EXPECT(__real_sigaction(SIGSEGV, NULL, &a) == 0); /* as the system says it */
	return a;
}
static struct sigaction now_there(void)
{
	struct sigaction a;
	EXPECT(__real_sigaction(SIGSEGV, NULL, &a) == 0);
	return a;
}
static bool is_there(const struct sigaction *a)
{
	struct sigaction now = now_there();
	return now.sa_handler == a->sa_handler && now.sa_flags == a->sa_flags;
}
static void send(void)
{
	kill(getpid(), SIGSEGV);
}

static void sent_to_ignored(void)
{
	struct sigaction was = installed(SIG_IGN, 0);
	EXPECT(cpu_traps_arm() && !is_there(&was));
	send();
	EXPECT(seam.raised == 0);
	cpu_traps_disarm();
	EXPECT(is_there(&was));
}
static void sent_to_default(void)
{
	struct sigaction was = installed(SIG_DFL, 0);
	EXPECT(cpu_traps_arm() && !is_there(&was));
	send(); /* it is raised again, with nobody to handle it */
	EXPECT(seam.raised == SIGSEGV && now_there().sa_handler == SIG_DFL);
	cpu_traps_disarm();
}
static void fault_by_default(void)
{
	installed(SIG_DFL, 0);
	EXPECT(cpu_traps_arm());
	seam.caught = true;
	callee(); /* the default is there when the instruction is tried again */
}
static void fault_ignored(void)
{
	installed(SIG_IGN, 0);
	EXPECT(cpu_traps_arm());
	seam.caught = true;
	callee(); /* nobody can ignore it */
}
static void sent_to_handlers(void)
{
	static const int flags[] = {0, SA_NODEFER, SA_RESTART};
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		struct sigaction was = installed(note_mask, flags[i]);
		handled = 0;
		EXPECT(cpu_traps_arm() && !is_there(&was));
		send();
		cpu_traps_disarm();
		EXPECT(handled == SIGSEGV && handler_has_usr1 && handler_has_segv == (flags[i] != SA_NODEFER));
		EXPECT(is_there(&was));
		sigset_t mask;
		pthread_sigmask(SIG_BLOCK, NULL, &mask);
		EXPECT(!sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGUSR1));
	}
}
/* In a thread that is inside a kernel. */
static void sent_to_kernel(void)
{
	cpu_trap t = {.pc = 1};
	installed(note_mask, 0);
	EXPECT(cpu_traps_arm());
	if (sigsetjmp(t.back, 0)) _exit(5);
	cpu_trap_set(&t);
	send();
	EXPECT(cpu_trap_set(NULL) == &t);
	EXPECT(handled == SIGSEGV && t.pc == 1);
	cpu_traps_disarm();
}
/* It was there for one signal, and that came: the default is there afterwards. */
static void sent_twice(void)
{
	installed(note_mask, (int)SA_RESETHAND);
	EXPECT(cpu_traps_arm());
	send();
	EXPECT(handled == SIGSEGV && seam.raised == 0);
	cpu_traps_disarm();
	EXPECT(now_there().sa_handler == SIG_DFL);
	handled = 0;
	installed(note_mask, (int)SA_RESETHAND);
	EXPECT(cpu_traps_arm());
	send();
	EXPECT(handled == SIGSEGV && seam.raised == 0);
	handled = 0;
	send();
	EXPECT(handled == 0 && seam.raised == SIGSEGV);
	cpu_traps_disarm();
}
static void disarmed_too_often(void)
{
	struct sigaction was = installed(note_mask, 0);
	cpu_traps_disarm();
	EXPECT(is_there(&was));
	EXPECT(cpu_traps_arm() && !is_there(&was));
	EXPECT(cpu_traps_arm());
	cpu_traps_disarm();
	EXPECT(!is_there(&was)); /* one is still armed */
	cpu_traps_disarm();
	EXPECT(is_there(&was));
}
static void kinds_of_handlers(void **state)
{
	(void)state;
	assert_int_equal(in_child(sent_to_ignored), 0);
	assert_int_equal(in_child(sent_to_default), 0);
	assert_int_equal(in_child(fault_by_default), 7);
	assert_int_equal(in_child(fault_ignored), 7);
	assert_int_equal(in_child(sent_to_handlers), 0);
	assert_int_equal(in_child(sent_to_kernel), 0);
	assert_int_equal(in_child(sent_twice), 0);
	assert_int_equal(in_child(disarmed_too_often), 0);
}

/* ---- Handlers over ours ---- */

enum { HOSTS = 9 };
static struct sigaction below[HOSTS]; /* what each of the host's found there */
static volatile sig_atomic_t called_host[HOSTS];
static void host(int i, int number, siginfo_t *info, void *context)
{
	called_host[i]++;
	if (below[i].sa_flags & SA_SIGINFO) below[i].sa_sigaction(number, info, context);
}
#define HOST(i)                                                                                                        \
	static void host_##i(int number, siginfo_t *info, void *context)                                               \
	{                                                                                                              \
		host(i, number, info, context);                                                                        \
	}
HOST(0)
HOST(1)
HOST(2)
HOST(3)
HOST(4)
HOST(5)
HOST(6)
HOST(7)
HOST(8)
static void (*const hosts[HOSTS])(int, siginfo_t *, void *) = {
	host_0, host_1, host_2, host_3, host_4, host_5, host_6, host_7, host_8};
static void install_host(int i, int flags)
{
	struct sigaction a = {.sa_flags = SA_SIGINFO | flags};
	a.sa_sigaction = hosts[i];
	sigemptyset(&a.sa_mask);
	EXPECT(__real_sigaction(SIGSEGV, &a, &below[i]) == 0);
}

/* While each launch runs, the host installs a handler that calls the one before it for ever. */
static void many_layers(void)
{
	cpu_trap t = {.pc = 0};
	install_host(0, 0);
	for (int at = 1; at <= 4; at++) { /* what fails uses none up */
		seam.actions = 0;
		seam.fail_action = at;
		EXPECT(!cpu_traps_arm());
	}
	for (int i = 1; i < HOSTS; i++) {
		EXPECT(cpu_traps_arm());
		install_host(i, 0);
		EXPECT(below[i].sa_sigaction != hosts[i - 1]); /* ours is between */
		for (int k = 1; k < i; k++) EXPECT(below[k].sa_sigaction != below[i].sa_sigaction);
		cpu_traps_disarm();
	}
	for (int times = 1; times <= 2; times++) {
		if (times == 2) EXPECT(cpu_traps_arm()); /* there is no other of ours: the host's newest stays */
		EXPECT(now_there().sa_sigaction == hosts[HOSTS - 1]);
		send();
		for (int i = 0; i < HOSTS; i++) EXPECT(called_host[i] == times);
	}
	if (sigsetjmp(t.back, 1) == 0) {
		cpu_trap_set(&t);
		callee();
	}
	EXPECT(t.in_page && t.address == 16);
	EXPECT(called_host[HOSTS - 1] == 3 && called_host[0] == 2); /* the first of ours took it */
	EXPECT(__real_sigaction(SIGSEGV, &below[1], NULL) == 0);    /* ours, which this launch did not install */
	cpu_traps_disarm();
	EXPECT(now_there().sa_sigaction == hosts[0]);
}

/* A handler that ours was over before gets the same of ours, one with other flags another. */
static void handlers_again(void)
{
	struct sigaction first, second = installed(note_mask, 0);
	EXPECT(cpu_traps_arm());
	first = now_there();
	install_host(1, 0);
	cpu_traps_disarm();
	installed(note_mask, 0);
	EXPECT(cpu_traps_arm() && is_there(&first));
	cpu_traps_disarm();
	EXPECT(is_there(&second));
	installed(note_mask, SA_NODEFER);
	EXPECT(cpu_traps_arm() && !is_there(&first) && now_there().sa_flags & SA_SIGINFO);
	cpu_traps_disarm();
	installed(SIG_IGN, 0);
	EXPECT(cpu_traps_arm() && !is_there(&first));
	cpu_traps_disarm();
}

/* The host puts back what it found, which was ours, when nothing runs. */
static void put_back(void)
{
	struct sigaction was = installed(note_mask, 0);
	EXPECT(cpu_traps_arm());
	install_host(1, 0);
	cpu_traps_disarm();
	EXPECT(__real_sigaction(SIGSEGV, &below[1], NULL) == 0);
	send();
	EXPECT(handled == SIGSEGV); /* it leads on */
	EXPECT(cpu_traps_arm() && is_there(&below[1]));
	handled = 0;
	send();
	EXPECT(handled == SIGSEGV);
	cpu_traps_disarm();
	EXPECT(is_there(&was));
}

static void quicker(int number)
{
	seam.behind = NULL;
	if (number == SIGSEGV) install_host(2, 0);
}
static struct sigaction ours;
static void puts_ours(int number)
{
	seam.behind = NULL;
	if (number == SIGSEGV) EXPECT(__real_sigaction(SIGSEGV, &ours, NULL) == 0);
}
/* Between our look at what is there and our own, the host installs another. */
static void races(void)
{
	struct sigaction was = installed(note_mask, 0);
	seam.behind = quicker;
	EXPECT(cpu_traps_arm());
	ours = now_there();
	send();
	EXPECT(called_host[2] == 1 && handled == 0);
	cpu_traps_disarm();
	EXPECT(now_there().sa_sigaction == hosts[2]);
	installed(note_mask, 0);
	seam.behind = puts_ours;
	EXPECT(cpu_traps_arm());
	send();
	EXPECT(called_host[2] == 1 && handled == SIGSEGV); /* no circle of our own */
	cpu_traps_disarm();
	EXPECT(is_there(&was));
}

/* Each question about a handler and each change of one fails in turn: what was there stays, and all is well later. */
static void actions_fail(void)
{
	struct sigaction was = installed(note_mask, 0);
	for (int at = 1; at <= 4; at++) {
		seam.actions = 0;
		seam.fail_action = at;
		EXPECT(!cpu_traps_arm());
		EXPECT(is_there(&was));
		EXPECT(cpu_traps_arm() && !is_there(&was));
		cpu_traps_disarm();
		EXPECT(is_there(&was));
	}
	EXPECT(cpu_traps_arm());
	struct sigaction mine = now_there();
	seam.actions = 0;
	seam.fail_action = 1;
	cpu_traps_disarm(); /* it cannot be taken away */
	EXPECT(is_there(&mine));
	send();
	EXPECT(handled == SIGSEGV);
	EXPECT(cpu_traps_arm() && is_there(&mine));
	cpu_traps_disarm();
	EXPECT(is_there(&was));
}

static void handlers_over_ours(void **state)
{
	(void)state;
	assert_int_equal(in_child(many_layers), 0);
	assert_int_equal(in_child(handlers_again), 0);
	assert_int_equal(in_child(put_back), 0);
	assert_int_equal(in_child(races), 0);
	assert_int_equal(in_child(actions_fail), 0);
}

/* ---- The device ---- */

static const compiler_api linked = {blkc_compile, blkc_result_free, blkc_version};
static const device_seams seams = {.compiler = &linked};

#define OK(call) check_ok((call), __LINE__)
static void check_ok(blk_status s, int line)
{
	if (s != BLK_OK) fail_msg("line %d: %s (%s)", line, blk_error(), blk_status_text(s));
}
static blk_device *open_device(const char *name)
{
	blk_device *d = NULL;
	OK(device_open_with(name, &seams, &d));
	return d;
}

static void names(void **state)
{
	(void)state;
	struct utsname u;
	assert_int_equal(uname(&u), 0);
	static const struct {
		const char *cpuinfo, *name; /* null: the machine's kind */
		bool no_name;
	} rows[] = {{"processor\t: 0\nmodel name\t: A processor @ 3 GHz\nmodel name\t: another\n",
			    "A processor @ 3 GHz", false},
		{"a line without a colon\nHardware:Board\n", "Board", false},
		{"Processor :  two spaces\n", " two spaces", false}, {"flags\t: fpu\n", NULL, false}, {"", NULL, false},
		{"flags\t: fpu\n", "cpu", true}, {"model name\t: \n", "cpu", true}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		seam.cpuinfo = rows[i].cpuinfo;
		seam.no_name = rows[i].no_name;
		blk_device *d = open_device("cpu");
		blk_device_info info;
		OK(blk_device_query(d, &info));
		assert_string_equal(info.name, rows[i].name ? rows[i].name : u.machine);
		blk_device_close(d);
	}
}

static void sizes(void **state)
{
	(void)state;
	static const struct {
		long conf[4][2];
		uint64_t memory, cache;
	} rows[] = {{{{_SC_PHYS_PAGES, 10}, {_SC_PAGESIZE, 8192}, {_SC_LEVEL3_CACHE_SIZE, 300},
			     {_SC_LEVEL2_CACHE_SIZE, 20}},
			    81920, 300},
		{{{_SC_PHYS_PAGES, -1}, {_SC_PAGESIZE, 4096}, {_SC_LEVEL3_CACHE_SIZE, 0}, {_SC_LEVEL2_CACHE_SIZE, 20}},
			0, 20},
		{{{_SC_PHYS_PAGES, 10}, {_SC_PAGESIZE, -1}, {_SC_LEVEL3_CACHE_SIZE, -1}, {_SC_LEVEL2_CACHE_SIZE, -1}},
			0, 0}};
	seam.nconf = 4;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		seam.conf = rows[i].conf;
		blk_device *d = open_device("cpu");
		blk_device_info info;
		OK(blk_device_query(d, &info));
		assert_int_equal(info.total_memory, rows[i].memory);
		assert_int_equal(info.l2_bytes, rows[i].cache);
		blk_device_close(d);
	}
}

/* Pages of an unknown size, limits that nobody knows, and more than there is. */
static void pages(void **state)
{
	(void)state;
	static const long unknown[][2] = {{_SC_PAGESIZE, -1}};
	const char *limit = "/proc/sys/vm/max_map_count";
	unsigned long mappings = 0;
	FILE *f = fopen(limit, "re");
	assert_true(f && fscanf(f, "%lu", &mappings) == 1);
	fclose(f);
	seam.no_limit = true;
	assert_int_equal(cpu_memory_guards(limit), mappings / 4);
	cpu_memory *m;
	uint64_t at, where;
	assert_int_equal(cpu_memory_create(CPU_GUARDED, 10, &m), CPU_OK);
	seam.conf = unknown;
	seam.nconf = 1;
	assert_true(cpu_memory_allocate(m, 300, &at));
	assert_int_equal((at + 512) % 4096, 0); /* it ends where a page does, but for its alignment of 256 */
	*(volatile char *)(uintptr_t)(at + 511) ^= 1;
	assert_false(cpu_memory_intact(m, at, &where));
	assert_int_equal(where, at + 511);
	cpu_memory_release(m, at);
	fixture t;
	cpu_object_free(load_object(&t)); /* which fails where it cannot be loaded */
	end(&t);
	if (FAULTY_MALLOC) { /* elsewhere such a malloc is a fault */
		assert_false(cpu_memory_allocate(m, UINT64_MAX, &at));
	}
	cpu_memory_destroy(m);
}

static blk_kernel *make(blk_device *d, const char *source)
{
	blk_module *m;
	blk_kernel *k;
	OK(blk_module_source(d, "k.blk", source, NULL, 0, &m));
	OK(blk_kernel_find(m, NULL, &k));
	return k;
}
static blk_buffer *buffer(blk_device *d, size_t bytes)
{
	blk_buffer *b;
	OK(blk_buffer_create(d, bytes, &b));
	return b;
}

/* Both buffers are written behind their ends, not as far as the guards: the first is told, both are put right. */
static void two_spoilt(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, "kernel k(y: *f32, z: *f32, n: i64) grid(1) { store(y + n, 3.0); store(z + n, 4.0); }");
	blk_buffer *y = buffer(d, 4), *z = buffer(d, 4);
	assert_int_equal(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(z), blk_i64(2))), BLK_ERROR_KERNEL);
	const char *want = "memory was written outside y, which has 4 bytes: at offset 8\n  by kernel k, ";
	if (strncmp(blk_error(), want, strlen(want)) != 0) fail_msg("%s", blk_error());
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y), blk_buf(z), blk_i64(0))));
	blk_device_close(d);
}

/* A launch that the system lets nobody watch does not run. */
static void unwatched(void **state)
{
	(void)state;
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, "kernel k(y: *f32) grid(1) { store(y, 3.0); }");
	blk_buffer *y = buffer(d, 4);
	float v = 0;
	OK(blk_buffer_write(y, 0, &v, sizeof v));
	for (int bad = 1; bad >= 0; bad--) {
		seam.actions = 0;
		seam.fail_action = bad;
		blk_status status = blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(y)));
		assert_int_equal(status, bad ? BLK_ERROR_DRIVER : BLK_OK);
		if (bad) assert_string_equal(blk_error(), "the system does not let faults be handled");
		OK(blk_buffer_read(y, 0, &v, sizeof v));
		assert_true(v == (bad ? 0 : 3));
	}
	blk_device_close(d);
}

/* The text of an assert that failed needs memory: without it the launch says so, with it the next call that waits. */
static void asserts_without_memory(void **state)
{
	(void)state;
	if (!FAULTY_MALLOC) skip();
	setenv("BLK_CPU_THREADS", "1", 1);
	blk_device *d = open_device("cpu:guarded");
	blk_kernel *k = make(d, "kernel k(n: i32) grid(1) { device_assert(n < 6, \"few\"); }");
	OK(blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(5)))); /* it is compiled for such numbers */
	bool failed = false, done = false;
	for (long at = 1; !done; at++) {
		faulty.calls = 0;
		faulty.fail_at = at;
		faulty.armed = true;
		blk_status status = blk_launch(k, NULL, NULL, BLK_ARGS(blk_i32(7)));
		faulty.armed = false;
		done = faulty.calls < at;
		if (status != BLK_OK) assert_int_equal(status, BLK_ERROR_MEMORY);
		failed |= status != BLK_OK;
		assert_int_equal(blk_device_sync(d), status ? BLK_OK : BLK_ERROR_ASSERT);
	}
	assert_true(failed);
	blk_device_close(d);
}

/* ---- What is said of a fault ---- */

static const uint32_t third[] = {1, 2, 3};
static cpu_fault by_access(const blk_cpu_access *a, uint64_t at)
{
	cpu_fault f = {.access = a, .address = at, .has_program = true};
	memcpy(f.program, third, sizeof third);
	return f;
}
static cpu_fault by_processor(uint64_t at, bool writes)
{
	return (cpu_fault){.at = {.in_page = true, .writes = writes, .address = at}, .address = at};
}

typedef struct reported {
	blk_device *device;
	cpu_object *object;
	const signature_parameter *parameters;
	const uint64_t *bits;
	uint32_t n;
} reported;

static blk_status report_it(const reported *r, const cpu_fault *f)
{
	signature s = {.kernel = "k", .nparameters = r->n};
	s.parameters = (signature_parameter *)(uintptr_t)r->parameters;
	const variant v = {.sig = &s, .module = r->object};
	return cpu_report_fault(r->device, &v, r->bits, f);
}
static void says(const reported *r, cpu_fault f, const char *want)
{
	assert_int_equal(report_it(r, &f), BLK_ERROR_KERNEL);
	assert_string_equal(blk_error(), want);
}

#define BEHIND "compare the mask with the number of elements: the last program's tile may end behind it"
#define CHECKED "BLK_CPU=checked finds the first element outside"
static void reports(void **state)
{
	(void)state;
	fixture t;
	reported r = {.device = open_device("cpu:guarded"), .object = load_object(&t)};
	uint64_t x = address(blk_buffer_pointer(buffer(r.device, 16))),
		 other = address(blk_buffer_pointer(buffer(r.device, 8)));
	const signature_parameter p[] = {{.name = "x", .code = BLK_TYPE_POINTER},
		{.name = "y", .code = BLK_TYPE_POINTER, .written = true},
		{.name = "z", .code = BLK_TYPE_POINTER, .written = true}, {.name = "n", .code = BLK_TYPE_I32}};
	const uint64_t same_buffer[] = {x, x, x, 5}, of_null[] = {0, 0, 0, 5};
	r.parameters = p;
	r.bits = same_buffer;
	r.n = 1;
	blk_cpu_access a = {.file = "", .line = 5, .bytes = 1, .kind = BLK_CPU_READS, .parameter = 0};
	says(&r, by_access(&a, x + 16),
		"1 byte is read outside x, which has 16 bytes: at offset 16\n  in kernel k, program (1, 2, 3)");
	/* a kind and a parameter that no code of ours has */
	a = (blk_cpu_access){.file = "k.blk", .line = 5, .bytes = 4, .kind = 3 | BLK_CPU_TILE, .parameter = 99};
	says(&r, by_access(&a, x - 4),
		"k.blk:5: 4 bytes are read outside x, which has 16 bytes: at offset -4\n  in kernel k, program (1, 2, "
		"3)\n  hint: the index is negative: a mask of i < n alone lets it through");
	/* several parameters with one buffer: who writes it, if it was written, else the first */
	a = (blk_cpu_access){.file = "", .bytes = 4, .kind = BLK_CPU_WRITES, .parameter = -1};
	r.n = 2;
	says(&r, by_access(&a, x + 16),
		"4 bytes are written outside y, which has 16 bytes: at offset 16\n  in kernel k, program (1, 2, 3)");
	r.n = 4;
	says(&r, by_access(&a, x + 16),
		"4 bytes are written outside z, which has 16 bytes: at offset 16\n  in kernel k, program (1, 2, 3)");
	a.kind = BLK_CPU_READS;
	says(&r, by_access(&a, x + 16),
		"4 bytes are read outside x, which has 16 bytes: at offset 16\n  in kernel k, program (1, 2, 3)");
	says(&r, by_processor(other + 8, true),
		"memory is written outside a buffer that is no argument, which has 8 bytes: at offset 8\n  in kernel "
		"k\n  hint: " BEHIND "; " CHECKED);
	/* no buffer at all */
	r.parameters = p + 3;
	r.bits = same_buffer + 3;
	r.n = 1;
	says(&r, by_processor(0x1000, false),
		"memory is read at 0x1000, where no memory of the kernel's is\n  in kernel k\n  hint: " BEHIND
		"; " CHECKED);
	says(&r, (cpu_fault){.at = {.in_page = false}},
		"memory is touched at an address that none can have\n  in kernel k\n  hint: " CHECKED);
	/* null pointers reach so far, and no further */
	r.parameters = p;
	r.bits = of_null;
	r.n = 4;
	says(&r, by_processor((1 << 28) - 4, true),
		"memory is written through x, which is null, at offset 268435452\n  in kernel k\n  hint: " BEHIND
		"; " CHECKED);
	says(&r, by_processor(1 << 28, true),
		"memory is written at 0x10000000, where no memory of the kernel's is\n  in kernel k\n  hint: " BEHIND
		"; " CHECKED);
#if FAULTY_MALLOC
	const cpu_fault f = by_processor(other + 8, true);
	faulty.calls = 0;
	faulty.fail_at = 1;
	faulty.armed = true;
	blk_status status = report_it(&r, &f);
	faulty.armed = false;
	assert_int_equal(status, BLK_ERROR_MEMORY);
#endif
	blk_device_close(r.device);
	cpu_object_free(r.object);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, setup)
		T(locks_fail), T(in_children), T(how_many_threads), T(room_for_errors), T(scratch_memory), T(printing),
		T(identities), T(watched), T(callees), T(kinds_of_handlers), T(handlers_over_ours), T(names), T(sizes),
		T(pages), T(two_spoilt), T(unwatched), T(asserts_without_memory), T(reports)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
