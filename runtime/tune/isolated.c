/* Trials in another process.  In: a job with results that are unknown.  Out: the same job with verdicts, whatever its
 * configurations did.
 *
 * The job goes into a block of shared memory, and blk-trial (a program beside libblk, started by exec, as a CUDA
 * context does not survive a fork) does with it what tune/trial.c does.  When that process ends early, or runs one
 * configuration for longer than it may, the configuration that it was running has failed, and a new one does the rest.
 */
#include "cache/image.h"
#include "support/numbers.h"
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- The helper ---- */

static blk_status find_helper(char *path, size_t room)
{
	static const char *const places[] = {"blk-trial", "../lib/blk-trial"};
	const char *given = getenv("BLK_TRIAL");
	if (given && *given) {
		if ((size_t)snprintf(path, room, "%s", given) >= room)
			errno = ENAMETOOLONG;
		else if (access(path, X_OK) == 0)
			return BLK_OK;
		return error_set(BLK_ERROR_NOT_FOUND, "BLK_TRIAL=%s: %s", given, strerror(errno));
	}
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
		if (image_beside(places[i], path, room) && access(path, X_OK) == 0) return BLK_OK;
	if (!image_beside("", path, room)) path[0] = 0;
	return error_set(BLK_ERROR_NOT_FOUND,
		"tuning in isolation needs the program blk-trial, which is not beside libblk (%s): install it there, "
		"name it by BLK_TRIAL, or tune in this process (BLK_TUNE=auto)",
		path);
}

static double limit_s(void)
{
	const char *text = getenv("BLK_TUNE_LIMIT");
	char *end;
	double v = text ? numbers_read(text, &end) : 0;
	return text && *text && !*end && v > 0 && v < 1e6 ? v : 10;
}

/* ---- The block ---- */

typedef struct block {
	int fd;
	tune_share *share; /* null while the size is being counted */
	uint64_t used, bytes, slots;
	uint32_t nslots; /* kept here too: a kernel that writes anywhere may write into the block */
} block;

/* Room for `n` bytes, filled when there is a block; its offset. */
static uint64_t add(block *b, const void *from, uint64_t n)
{
	uint64_t at = (b->used + 63) & ~UINT64_C(63);
	b->used = at + n;
	if (b->share && from && n) memcpy((char *)b->share + at, from, n);
	return at;
}

static uint64_t add_string(block *b, const char *s)
{
	return add(b, s, strlen(s) + 1);
}

typedef struct span_list {
	memory_span at[SIGNATURE_PARAMETERS];
	uint32_t n;
} span_list;

static uint32_t number_of(span_list *l, memory_span wanted)
{
	uint32_t i = 0;
	while (i < l->n && (l->at[i].base != wanted.base || l->at[i].bytes != wanted.bytes)) i++;
	if (i == l->n) l->at[l->n++] = wanted;
	return i;
}

/* A pointer becomes its place in one of the spans. */
static blk_status share_argument(tune_job *j, uint32_t i, span_list *l, tune_shared_arg *out)
{
	const blk_arg *a = &j->args[i];
	memory_span s;
	*out = (tune_shared_arg){.type = a->type, .buffer = TUNE_NONE, .bits = a->bits};
	if ((a->type != BLK_TYPE_BUFFER && a->type != BLK_TYPE_POINTER) || !a->bits) return BLK_OK;
	if (!memory_behind(j->kernel->head.device, a, &s)) return trial_unknown_memory(j, i);
	out->buffer = number_of(l, s);
	out->offset = j->bits[i] - s.base;
	return BLK_OK;
}

/* Reads what lies behind each argument into the block; what two of them share is there once. */
static blk_status add_arguments(block *b, tune_job *j)
{
	span_list list = {.n = 0};
	tune_shared_arg args[SIGNATURE_PARAMETERS];
	tune_shared_buffer shared[SIGNATURE_PARAMETERS];
	blk_device *d = j->kernel->head.device;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < j->kernel->nparameters; i++) status = share_argument(j, i, &list, &args[i]);
	for (uint32_t i = 0; !status && i < list.n; i++) {
		const memory_span *s = &list.at[i];
		shared[i] = (tune_shared_buffer){add(b, NULL, s->bytes), s->bytes};
		if (b->share && s->bytes)
			status = d->backend->read(d, (char *)b->share + shared[i].at, s->base, s->bytes);
	}
	uint64_t at_buffers = add(b, shared, list.n * sizeof *shared);
	uint64_t at_args = add(b, args, j->kernel->nparameters * sizeof *args);
	if (b->share) {
		b->share->nbuffers = list.n;
		b->share->nargs = j->kernel->nparameters;
		b->share->buffers = at_buffers;
		b->share->args = at_args;
	}
	return status;
}

static void add_module(block *b, const tune_job *j)
{
	const blk_module *m = j->kernel->module;
	const blk_device_info *d = &j->kernel->head.device->info;
	char device[32];
	snprintf(device, sizeof device, "cpu:%s", host_mode(j->kernel->head.device));
	if (d->kind == BLK_DEVICE_CUDA) snprintf(device, sizeof device, "cuda:%d", d->ordinal);
	if (d->kind == BLK_DEVICE_SIM) snprintf(device, sizeof device, "sim:%s", d->target);
	tune_share s = {.device = add_string(b, device),
		.module = add_string(b, m->name),
		.kernel = add_string(b, j->kernel->sig->kernel),
		.text = add(b, m->text, m->text_bytes),
		.defines = add(b, NULL, m->ndefines * sizeof(tune_shared_define))};
	for (size_t i = 0; i < m->ndefines; i++) {
		tune_shared_define one = {add_string(b, m->defines[i].name), add_string(b, m->defines[i].value)};
		if (b->share) memcpy((char *)b->share + s.defines + i * sizeof one, &one, sizeof one);
	}
	if (!b->share) return;
	b->share->device = s.device;
	b->share->module = s.module;
	b->share->kernel = s.kernel;
	b->share->text = s.text;
	b->share->text_bytes = m->text_bytes;
	b->share->defines = s.defines;
	b->share->ndefines = (uint32_t)m->ndefines;
}

/* Once to count and once to write. */
static blk_status compose(block *b, tune_job *j)
{
	b->used = sizeof(tune_share);
	b->nslots = j->kernel->sig->nconfigurations;
	b->slots = add(b, NULL, b->nslots * sizeof(tune_slot));
	if (b->share) {
		snprintf(b->share->magic, sizeof b->share->magic, "%s", TUNE_SHARE_MAGIC);
		b->share->bytes = b->bytes;
		b->share->parent = getpid();
		b->share->limit_s = limit_s();
		b->share->promises = j->promises;
		b->share->slots = b->slots;
		b->share->nslots = b->nslots;
		if (j->given) b->share->grid = *j->given;
	}
	add_module(b, j);
	return add_arguments(b, j);
}

static blk_status make_block(block *b, tune_job *j)
{
	*b = (block){.fd = -1};
	blk_status status = compose(b, j);
	if (status) return status;
	b->bytes = b->used;
	int made = memfd_create("blk-trial", MFD_CLOEXEC), why = 0;
	b->fd = made >= 0 ? fcntl(made, F_DUPFD_CLOEXEC, 16) : -1; /* clear of the numbers that the helper gets */
	if (made >= 0) close(made);
	if (b->fd < 0) return error_set(BLK_ERROR_IO, "no shared memory for trials: %s", strerror(errno));
	if ((why = posix_fallocate(b->fd, 0, (off_t)b->bytes)) != 0)
		return error_set(BLK_ERROR_MEMORY, "no shared memory for copies of the arguments (%llu bytes): %s",
			(unsigned long long)b->bytes, strerror(why));
	void *p = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (p == MAP_FAILED)
		return error_set(BLK_ERROR_MEMORY, "no room for copies of the arguments: %s", strerror(errno));
	b->share = p;
	return compose(b, j);
}

static void free_block(block *b)
{
	if (b->share) munmap(b->share, b->bytes);
	if (b->fd >= 0) close(b->fd);
}

static tune_slot *slot(const block *b, uint32_t i)
{
	return (tune_slot *)((char *)b->share + b->slots) + i;
}

/* ---- One process ---- */

typedef struct process {
	pid_t pid;
	int life;      /* reads the end of it */
	uint32_t late; /* what ran for too long, and was ended for it */
	int unseen;    /* why it could not be watched, and was ended for that; 0: it could */
	int status;
} process;

static int spawn(const char *path, int share, int life, pid_t *pid)
{
	char name[] = "blk-trial", *arguments[] = {name, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	arguments[0] = (char *)path;
	int why = posix_spawn_file_actions_init(&files);
	if (why) return why;
	if (!(why = posix_spawnattr_init(&attributes))) {
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setsigdefault(&attributes, &all);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		for (int fd = 0; !why && fd <= 2; fd++)
			why = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
		if (!why) why = posix_spawn_file_actions_adddup2(&files, share, TUNE_SHARE_FD);
		if (!why) why = posix_spawn_file_actions_adddup2(&files, life, TUNE_LIFE_FD);
		if (!why) why = posix_spawn(pid, path, &files, &attributes, arguments, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return why;
}

static blk_status start(const char *path, const block *b, process *p)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_set(BLK_ERROR_IO, "%s cannot be started: %s", path, strerror(errno));
	int life = fcntl(ends[1], F_DUPFD_CLOEXEC, 16);
	close(ends[1]);
	int why = life < 0 ? errno : spawn(path, b->fd, life, &p->pid);
	if (life >= 0) close(life);
	p->life = ends[0];
	if (!why) return BLK_OK;
	close(p->life);
	return error_set(BLK_ERROR_IO, "%s cannot be started: %s", path, strerror(why));
}

/* False: not even after being killed, within half a minute. */
static bool reap(pid_t pid, int *status)
{
	struct timespec wait = {0, 5000000};
	*status = 0;
	for (int i = 0; i < 6000; i++) {
		pid_t got = waitpid(pid, status, WNOHANG);
		if (got == pid || (got < 0 && errno != EINTR)) return true; /* or someone else has asked for it */
		nanosleep(&wait, NULL);
	}
	return false;
}

static void show_progress(tune_job *j, const tune_share *s)
{
	uint32_t done = atomic_load(&s->done), total = atomic_load(&s->total);
	if (!j->progress || !total || (done == j->done && total == j->total)) return;
	j->done = done;
	j->total = total;
	j->progress(j->context, done, total, (double)atomic_load(&s->best_ns) * 1e-6);
}

/* What has been learnt up to now goes to disk, so that it is kept if this process is ended.  A configuration that has
 * been timed, but not to the end, has the time that it has. */
static void keep_so_far(const tune_job *j, const block *b)
{
	tune_result *r = calloc(b->nslots, sizeof *r);
	for (uint32_t i = 0; r && i < b->nslots; i++) {
		const tune_slot *s = slot(b, i);
		bool good = s->verdict == BLK_TUNE_GOOD;
		double ms = good && s->ms <= 0 ? s->so_far : s->ms;
		if (s->verdict > BLK_TUNE_MISFIT || (good && !(ms > 0))) continue;
		r[i] = (tune_result){.verdict = (blk_tune_verdict)s->verdict, .ms = ms};
		if (s->reason[0]) r[i].reason = strndup(s->reason, sizeof s->reason - 1);
	}
	if (r) tune_record_write(j->kernel, j->bits, j->promises, r);
	for (uint32_t i = 0; r && i < b->nslots; i++) free(r[i].reason);
	free(r);
}

/* Until it ends; false: it does not. */
static bool watch(tune_job *j, const block *b, process *p)
{
	const tune_share *s = b->share;
	uint64_t kept = tune_now_ns();
	uint32_t known = 0;
	p->late = TUNE_NONE;
	p->unseen = 0;
	for (struct pollfd life = {.fd = p->life, .events = POLLIN};;) {
		int got = poll(&life, 1, 20);
		if (got > 0) break;
		if (got < 0 && errno != EINTR) {
			p->unseen = errno;
			kill(p->pid, SIGKILL);
			break;
		}
		show_progress(j, s);
		if (tune_now_ns() - kept >= TUNE_KEEP_NS && atomic_load(&s->learnt) != known) {
			known = atomic_load(&s->learnt);
			keep_so_far(j, b);
			kept = tune_now_ns();
		}
		uint32_t running = atomic_load(&s->running);
		uint64_t until = atomic_load(&s->until_ns);
		if (running == TUNE_NONE || until == 0 || tune_now_ns() < until) continue;
		p->late = running;
		kill(p->pid, SIGKILL);
		break;
	}
	show_progress(j, s); /* it may have ended before the first look */
	return reap(p->pid, &p->status);
}

/* ---- What became of it ---- */

static void blame(const block *b, uint32_t i, bool late, int status)
{
	tune_slot *s = slot(b, i);
	s->verdict = BLK_TUNE_FAILED;
	s->checked = 0;
	s->ms = 0;
	if (late)
		snprintf(s->reason, sizeof s->reason, "it did not end in time (BLK_TUNE_LIMIT, %.3g s)",
			b->share->limit_s);
	else if (WIFSIGNALED(status))
		snprintf(s->reason, sizeof s->reason, "it ended the process that tried it: %s",
			strsignal(WTERMSIG(status)));
	else
		snprintf(s->reason, sizeof s->reason, "it ended the process that tried it: exit status %d",
			WEXITSTATUS(status));
}

/* What has no time is not settled, unless all was. */
static uint32_t unsettle(const block *b)
{
	uint32_t unknown = 0;
	for (uint32_t i = 0; i < b->nslots; i++) {
		tune_slot *s = slot(b, i);
		if (s->verdict == BLK_TUNE_GOOD && s->ms <= 0) s->verdict = BLK_TUNE_UNKNOWN;
		unknown += s->verdict == BLK_TUNE_UNKNOWN;
	}
	return unknown;
}

static blk_status judge_end(const block *b, const process *p, bool *again)
{
	tune_share *s = b->share;
	bool is_late = p->late != TUNE_NONE;
	uint32_t state = atomic_load(&s->state), running = is_late ? p->late : atomic_load(&s->running);
	*again = true;
	if (p->unseen)
		return error_set(
			BLK_ERROR_IO, "tuning in isolation: blk-trial cannot be watched: %s", strerror(p->unseen));
	if ((is_late || state == TUNE_WORKING) && running < b->nslots)
		blame(b, running, is_late, p->status);
	else if (state == TUNE_DONE)
		*again = false;
	else if (state == TUNE_REFUSED) {
		s->error[sizeof s->error - 1] = 0;
		return error_set(s->status && s->status < BLK_STATUS_COUNT ? (blk_status)s->status : BLK_ERROR_INTERNAL,
			"tuning in isolation: %s", s->error);
	} else if (state != TUNE_AGAIN)
		return error_set(BLK_ERROR_INTERNAL,
			"tuning in isolation: blk-trial ended (%s) before it tried anything",
			WIFSIGNALED(p->status) ? strsignal(WTERMSIG(p->status)) : "by itself");
	return BLK_OK;
}

static blk_status run_helpers(tune_job *j, const block *b, const char *path)
{
	blk_status status = BLK_OK;
	bool again = true;
	for (uint32_t left = unsettle(b), before = left + 1; !status && again; before = left, left = unsettle(b)) {
		process p;
		if (left == 0) return BLK_OK;
		if (left >= before)
			return error_set(BLK_ERROR_INTERNAL, "tuning in isolation: no trial comes to an end");
		atomic_store(&b->share->state, TUNE_STARTING);
		atomic_store(&b->share->running, TUNE_NONE);
		if ((status = start(path, b, &p))) return status;
		bool ended = watch(j, b, &p);
		close(p.life);
		if (!ended)
			status = error_set(BLK_ERROR_DRIVER,
				"tuning in isolation: a trial cannot be ended: process %ld", (long)p.pid);
		else
			status = judge_end(b, &p, &again);
	}
	return status;
}

static void give(const tune_job *j, const block *b)
{
	for (uint32_t i = 0; i < b->nslots; i++) {
		const tune_result *r = &j->results[i];
		*slot(b, i) = (tune_slot){.verdict = r->verdict, .ms = r->ms};
		if (r->reason) snprintf(slot(b, i)->reason, sizeof slot(b, i)->reason, "%s", r->reason);
	}
}

static void take(tune_job *j, const block *b)
{
	for (uint32_t i = 0; i < b->nslots; i++) {
		tune_result *r = &j->results[i];
		tune_slot *s = slot(b, i);
		s->reason[sizeof s->reason - 1] = 0;
		free(r->reason);
		r->reason = s->reason[0] ? strdup(s->reason) : NULL;
		r->verdict = s->verdict <= BLK_TUNE_MISFIT ? (blk_tune_verdict)s->verdict : BLK_TUNE_UNKNOWN;
		r->ms = s->ms;
	}
}

/* Those that are to be tried, and after all the others that were. */
static void mark_unknown(const tune_job *j, bool *unknown)
{
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++)
		unknown[i] = j->results[i].verdict == BLK_TUNE_UNKNOWN;
}

static void count_tried(tune_job *j, bool *unknown)
{
	uint32_t n = j->kernel->sig->nconfigurations;
	for (uint32_t i = 0; i < n; i++) j->timed += unknown[i] && j->results[i].verdict != BLK_TUNE_UNKNOWN;
	search_field(j, unknown);
	for (uint32_t i = 0; i < n; i++) j->timed += unknown[i] && j->results[i].verdict == BLK_TUNE_UNKNOWN;
}

blk_status tune_isolated(tune_job *j)
{
	bool *unknown = calloc(j->kernel->sig->nconfigurations, sizeof *unknown);
	char path[4096];
	block b = {.fd = -1};
	blk_device *d = j->kernel->head.device;
	blk_status status = unknown ? find_helper(path, sizeof path) : error_memory();
	j->isolated = true;
	if (!status) status = trial_addresses_known(j);
	if (!status) status = d->backend->sync(d);
	if (!status) status = make_block(&b, j);
	if (status == BLK_ERROR_MEMORY) j->untried = true;
	if (!status) {
		mark_unknown(j, unknown);
		give(j, &b);
		status = run_helpers(j, &b, path);
		j->untried = status == BLK_ERROR_MEMORY || status == BLK_ERROR_ARGUMENT;
		unsettle(&b);
		take(j, &b); /* after an error too: it is known of those that were settled */
		count_tried(j, unknown);
		if (j->progress) j->progress(j->context, j->total, j->total, tune_best_ms(j));
	}
	free_block(&b);
	free(unknown);
	return status;
}
