/* One program on every device, and the first difference.
 *
 * In: a program.  Out: a verdict.  The cpu device runs it once; the simulator with two orders of warps and programs,
 * for the program's num_warps on one target and, of some seeds, another number on the other; CUDA where there is a GPU.
 * Of some seeds cpu also runs it with every constant known at run time only: the compiler must have computed the same.
 * The one idea: all inputs are exact, so every device must write the same bits; nothing is compared with a tolerance.
 */
#include "run.h"
#include "random.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const verdict_names[] = {"agree", "differ", "not compiled", "reported", "crashed", "hung"};
static const char *const device_names[DEVICE_COUNT] = {"cpu", "sim:sm_80", "sim:sm_90a", "cuda"};
enum { GUARD = 64 };

typedef struct results {
	unsigned char *bytes[MAX_BUFFERS];
	size_t n[MAX_BUFFERS];
	bool filled;
} results;

static void results_free(results *r)
{
	for (int i = 0; i < MAX_BUFFERS; i++) free(r->bytes[i]);
	memset(r, 0, sizeof *r);
}

/* What is left of a message without its numbers and names: the same for the same mistake in another place. */
static void make_key(verdict *v)
{
	size_t at = 0;
	const char *from = v->what;
	const char *error = strstr(from, "error[");
	if (error) from = error;
	for (const char *c = from; *c && *c != '\n' && at + 1 < sizeof v->key; c++)
		if (*c < '0' || *c > '9' || (error && c - from < 12)) v->key[at++] = *c;
	v->key[at] = 0;
}

static void fail(verdict *v, verdict_kind kind, const char *what)
{
	v->kind = kind;
	snprintf(v->what, sizeof v->what, "%s", what);
	make_key(v);
}

static void fail_status(verdict *v, blk_status status)
{
	bool compiling = status == BLK_ERROR_COMPILE || status == BLK_ERROR_COMPILER || status == BLK_ERROR_RESOURCES ||
			 status == BLK_ERROR_INTERNAL;
	fail(v, compiling ? NOT_COMPILED : REPORTED, blk_error());
}

static blk_arg scalar_argument(const host_scalar *h)
{
	blk_arg a = {.bits = h->bits, .type = (uint32_t)h->var.type.s}; /* ORDER blk_type follows SCALARS */
	return a;
}

typedef struct launch {
	blk_device *device;
	blk_module *module;
	blk_kernel *kernel;
	blk_buffer *buffers[MAX_BUFFERS];
	size_t room[MAX_BUFFERS];
	blk_arg args[MAX_BUFFERS + MAX_SCALARS + 3];
	size_t nargs;
} launch;

static void launch_free(launch *l)
{
	for (int i = 0; i < MAX_BUFFERS; i++) blk_buffer_free(l->buffers[i]);
	blk_module_close(l->module);
}

/* Buffers end exactly where their elements do on the simulator, which sees what lies beyond; elsewhere behind a guard.
 */
static blk_status launch_make(launch *l, const program *p, const char *text, bool late, int num_warps, bool guard)
{
	char warps[8];
	snprintf(warps, sizeof warps, "%d", num_warps);
	blk_define define = {"num_warps", warps};
	blk_status status = blk_module_source(l->device, "fuzz.blk", text, &define, 1, &l->module);
	if (!status) status = blk_kernel_find(l->module, "k", &l->kernel);
	for (int i = 0; !status && i < p->nbuffers; i++) {
		const buffer *b = &p->buffers[i];
		size_t size = scalar_bytes(b->s), before = (size_t)b->off * size;
		l->room[i] = before + (size_t)b->n * size + (guard ? GUARD : 0);
		status = blk_buffer_create(l->device, l->room[i] ? l->room[i] : 1, &l->buffers[i]);
		if (status) break;
		l->args[l->nargs++] =
			before ? blk_ptr((char *)blk_buffer_pointer(l->buffers[i]) + before) : blk_buf(l->buffers[i]);
	}
	for (int i = 0; i < p->nscalars; i++) l->args[l->nargs++] = scalar_argument(&p->scalars[i]);
	if (late) l->args[l->nargs++] = blk_i8(0);
	l->args[l->nargs++] = blk_i32(p->n);
	l->args[l->nargs++] = blk_i32(p->region);
	return status;
}

static blk_status fill_buffers(launch *l, const program *p)
{
	blk_status status = BLK_OK;
	for (int i = 0; !status && i < p->nbuffers; i++) {
		const buffer *b = &p->buffers[i];
		size_t bytes;
		unsigned char *data = buffer_data(p, i, &bytes);
		status = l->room[i] ? blk_buffer_fill(l->buffers[i], 0, 0xa5, l->room[i]) : BLK_OK;
		if (!status && bytes)
			status = blk_buffer_write(l->buffers[i], (size_t)b->off * scalar_bytes(b->s), data, bytes);
		free(data);
	}
	return status;
}

static blk_status launch_run(launch *l, const program *p, results *out)
{
	blk_grid grid = {(uint32_t)p->grid[0], (uint32_t)p->grid[1], (uint32_t)p->grid[2]};
	blk_status status = fill_buffers(l, p);
	if (!status) status = blk_launch(l->kernel, NULL, &grid, l->args, l->nargs);
	if (!status) status = blk_device_sync(l->device);
	for (int i = 0; !status && i < p->nbuffers; i++) {
		if (p->buffers[i].kind == INPUT) continue;
		out->n[i] = l->room[i];
		out->bytes[i] = malloc(l->room[i] + 1);
		if (!out->bytes[i]) exit(2);
		if (l->room[i]) status = blk_buffer_read(l->buffers[i], 0, out->bytes[i], l->room[i]);
	}
	return status;
}

/* ---- comparing ---- */

static void spoil(const program *p, results *r)
{
	for (int i = 0; i < p->nbuffers; i++)
		for (size_t k = 0; p->buffers[i].kind == OUTPUT && k < r->n[i]; k++)
			if (r->bytes[i][k] != 0xa5) {
				r->bytes[i][k] ^= 1;
				return;
			}
}

static void first_difference(const program *p, const results *want, const results *got, verdict *v)
{
	for (int i = 0; i < p->nbuffers; i++) {
		const buffer *b = &p->buffers[i];
		unsigned size = scalar_bytes(b->s);
		if (b->kind == INPUT) continue;
		for (int k = 0; k < b->n; k++) {
			size_t at = (size_t)(b->off + k) * size;
			uint64_t x = 0, y = 0;
			memcpy(&x, want->bytes[i] + at, size);
			memcpy(&y, got->bytes[i] + at, size);
			if (x == y) continue;
			char text[300];
			snprintf(text, sizeof text,
				"%s[%d] (program %d, element %d): cpu %#llx = %.17g, here %#llx = %.17g", b->name, k,
				b->kind == SHARED ? -1 : k / p->region, b->kind == SHARED ? k : k % p->region,
				(unsigned long long)x, scalar_to_double(b->s, x), (unsigned long long)y,
				scalar_to_double(b->s, y));
			fail(v, DIFFER, text);
			snprintf(v->key, sizeof v->key, "differ");
			return;
		}
	}
}

static bool guard_holds(const program *p, const results *r, verdict *v)
{
	for (int i = 0; i < p->nbuffers; i++) {
		const buffer *b = &p->buffers[i];
		size_t before = (size_t)b->off * scalar_bytes(b->s),
		       behind = before + (size_t)b->n * scalar_bytes(b->s);
		for (size_t k = 0; k < r->n[i]; k++)
			if ((k < before || k >= behind) && r->bytes[i][k] != 0xa5) {
				char text[100];
				snprintf(text, sizeof text, "a byte outside of %s is written", b->name);
				fail(v, DIFFER, text);
				return false;
			}
	}
	return true;
}

static bool open_device(devices *d, int which, verdict *v)
{
	if (d->at[which]) return true;
	if (blk_device_open(device_names[which], &d->at[which]) == BLK_OK) return true;
	fail(v, REPORTED, blk_error());
	return false;
}

/* One device and number of warps, each order once; compares with `want` unless it is still empty, then fills it. */
static void run_on(devices *d, int which, const program *p, bool late, int num_warps, results *want, verdict *v)
{
	launch l = {0};
	bool sim = which == DEVICE_SM80 || which == DEVICE_SM90;
	if (!open_device(d, which, v)) return;
	l.device = d->at[which];
	v->which = which;
	v->num_warps = num_warps;
	v->late = late;
	snprintf(v->device, sizeof v->device, "%s%s, num_warps = %d", device_names[which],
		late ? ", late constants" : "", num_warps);
	char *text = program_text(p, late);
	if (!text) exit(2);
	blk_status status = launch_make(&l, p, text, late, num_warps, !sim);
	free(text);
	if (status) fail_status(v, status);
	for (int round = 0; v->kind == AGREE && round < (sim ? 2 : 1); round++) {
		results got = {0};
		blk_sim_options options = {.seed = round ? (p->seed << 1 | 1) : 0, .schedules = 1};
		if (sim) {
			snprintf(v->device, sizeof v->device, "%s, num_warps = %d, seed %llu", device_names[which],
				num_warps, (unsigned long long)options.seed);
			blk_sim_configure(l.device, &options);
		}
		status = launch_run(&l, p, &got);
		if (!status && sim && p->spoil) spoil(p, &got);
		if (status)
			fail_status(v, status);
		else if (!sim && !guard_holds(p, &got, v))
			;
		else if (!want->filled) {
			*want = got;
			want->filled = true;
			memset(&got, 0, sizeof got);
		} else
			first_difference(p, want, &got, v);
		results_free(&got);
	}
	launch_free(&l);
}

static const struct {
	int device;
	bool same_warps; /* as the program says */
	bool late;
} turns[] = {{DEVICE_CPU, true, false}, {DEVICE_SM80, true, false}, {DEVICE_SM90, true, false},
	{DEVICE_SM80, false, false}, {DEVICE_SM90, false, false}, {DEVICE_CUDA, true, false}, {DEVICE_CPU, true, true}};

/* Which of the turns a seed takes: one target with the program's num_warps, and one in four the other with others. */
static unsigned turns_of(const program *p, const verdict *like)
{
	rng r = {p->seed + 5};
	int target = rng_below(&r, 2);
	unsigned all = 1u | 2u << target | 32u;
	if (rng_percent(&r, 25)) all |= 8u << (1 - target);
	if (rng_percent(&r, 30)) all |= 64u;
	if (like && like->which > DEVICE_CPU)
		all = (like->kind == DIFFER) | (like->which == DEVICE_CUDA ? 32u : 1u << like->which);
	if (like && like->which == DEVICE_CPU) all = like->late ? 65 : 1;
	return all;
}

void run_program(devices *d, const program *p, const verdict *like, verdict *v)
{
	static const int warps[] = {1, 2, 4, 8};
	results want = {0};
	unsigned all = turns_of(p, like);
	rng r = {p->seed + 6};
	int other = warps[rng_below(&r, 4)];
	memset(v, 0, sizeof *v);
	for (unsigned i = 0; i < sizeof turns / sizeof *turns && !v->kind; i++) {
		int which = turns[i].device;
		if (!(all >> i & 1)) continue;
		if (which == DEVICE_CUDA && !d->no_cuda && !d->at[which])
			d->no_cuda = blk_device_open(device_names[which], &d->at[which]) != BLK_OK;
		if (which == DEVICE_CUDA && d->no_cuda) continue;
		run_on(d, which, p, turns[i].late, turns[i].same_warps ? p->num_warps : other, &want, v);
	}
	results_free(&want);
}

void devices_close(devices *d)
{
	for (int i = 0; i < DEVICE_COUNT; i++) blk_device_close(d->at[i]);
	memset(d, 0, sizeof *d);
}

void limit_time(unsigned seconds)
{
	struct itimerval t = {.it_value = {.tv_sec = seconds}};
	setitimer(ITIMER_PROF, &t, NULL);
	alarm(10 * seconds);
}

bool is_time_limit(int status)
{
	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF);
}

void run_isolated(const program *p, const verdict *like, unsigned seconds, verdict *v)
{
	int ends[2], status = 0;
	memset(v, 0, sizeof *v);
	fflush(NULL);
	if (pipe(ends)) exit(2);
	pid_t child = fork();
	if (child == 0) {
		devices d = {0};
		close(ends[0]);
		limit_time(seconds);
		run_program(&d, p, like, v);
		_exit(write(ends[1], v, sizeof *v) != (ssize_t)sizeof *v);
	}
	close(ends[1]);
	size_t got = 0;
	ssize_t n;
	while (got < sizeof *v && (n = read(ends[0], (char *)v + got, sizeof *v - got)) > 0) got += (size_t)n;
	close(ends[0]);
	waitpid(child, &status, 0);
	if (got == sizeof *v) return;
	memset(v, 0, sizeof *v);
	bool hung = is_time_limit(status);
	fail(v, hung ? HUNG : CRASHED, hung ? "no end" : "the process died");
}
