/* blk-trial: the process that tunes in isolation (tune/isolated.c starts it, and nobody else).
 *
 * In: the job in shared memory (tune/share.h).  Out: the verdicts there, and at any moment which configuration is
 * running.  The one idea: it does what the tuner does in any process (tune/trial.c), on its own device and on copies of
 * the arguments, so its end costs nothing. */
#include "tune/share.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static void *at(tune_share *s, uint64_t offset)
{
	return (char *)s + offset;
}

static tune_share *map_block(void)
{
	struct stat st;
	if (fstat(TUNE_SHARE_FD, &st) != 0 || st.st_size < (off_t)sizeof(tune_share)) return NULL;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, TUNE_SHARE_FD, 0);
	tune_share *s = p;
	if (p == MAP_FAILED) return NULL;
	if (memcmp(s->magic, "blk trial ", 10) == 0 && s->bytes == (uint64_t)st.st_size) return s;
	munmap(p, (size_t)st.st_size);
	return NULL;
}

static void refuse(tune_share *s, blk_status status)
{
	s->status = status;
	snprintf(s->error, sizeof s->error, "%s", blk_error());
	atomic_store(&s->state, TUNE_REFUSED);
}

/* ---- What the other side is told ---- */

static void running(tune_job *j, uint32_t configuration, double expected_ms)
{
	tune_share *s = j->watcher;
	if (configuration == TUNE_NONE) {
		atomic_store(&s->running, TUNE_NONE);
		return;
	}
	atomic_store(&s->until_ns, tune_now_ns() + (uint64_t)((s->limit_s + 20e-3 * expected_ms) * 1e9));
	atomic_store(&s->running, configuration);
}

static void learnt(tune_job *j, uint32_t i)
{
	tune_share *s = j->watcher;
	const tune_result *r = &j->results[i];
	tune_slot *to = (tune_slot *)at(s, s->slots) + i;
	snprintf(to->reason, sizeof to->reason, "%s", r->reason ? r->reason : "");
	to->ms = 0; /* until all is timed */
	to->so_far = r->ms;
	to->checked = r->checked;
	to->verdict = r->verdict;
	atomic_fetch_add(&s->learnt, 1);
}

static void progress(void *context, uint32_t done, uint32_t total, double best_ms)
{
	tune_share *s = context;
	atomic_store(&s->best_ns, (uint64_t)(best_ms * 1e6));
	atomic_store(&s->done, done);
	atomic_store(&s->total, total);
}

/* ---- The job ---- */

static blk_status open_module(tune_share *s, blk_device *d, blk_kernel **k)
{
	const tune_shared_define *shared = at(s, s->defines);
	blk_define *defines = calloc(s->ndefines + 1, sizeof *defines);
	char *text = malloc(s->text_bytes + 1);
	blk_module *m = NULL;
	blk_status status = defines && text ? BLK_OK : error_memory();
	if (!status) {
		for (uint32_t i = 0; i < s->ndefines; i++)
			defines[i] = (blk_define){at(s, shared[i].name), at(s, shared[i].value)};
		memcpy(text, at(s, s->text), s->text_bytes);
		text[s->text_bytes] = 0;
		status = module_open_text(d, at(s, s->module), text, s->text_bytes, defines, s->ndefines, &m);
	} else
		free(text);
	free(defines);
	return status ? status : blk_kernel_find(m, at(s, s->kernel), k);
}

static blk_status check_configurations(const tune_share *s, const blk_kernel *k)
{
	if (k->tuner && k->sig->nconfigurations == s->nslots) return BLK_OK;
	return error_set(BLK_ERROR_INTERNAL, "blk-trial sees other configurations of kernel %s", k->sig->kernel);
}

static blk_status make_arguments(tune_share *s, blk_device *d, blk_arg *args)
{
	const tune_shared_buffer *shared = at(s, s->buffers);
	blk_buffer *buffers[SIGNATURE_PARAMETERS] = {NULL};
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < s->nbuffers; i++) {
		status = blk_buffer_create(d, shared[i].bytes, &buffers[i]);
		if (!status) status = blk_buffer_write(buffers[i], 0, at(s, shared[i].at), shared[i].bytes);
	}
	const tune_shared_arg *given = at(s, s->args);
	for (uint32_t i = 0; !status && i < s->nargs; i++) {
		args[i] = blk_arg_make((blk_type)given[i].type, given[i].bits);
		if (given[i].buffer == TUNE_NONE) continue;
		blk_buffer *b = buffers[given[i].buffer];
		char *pointer = blk_buffer_pointer(b);
		args[i] = given[i].type == BLK_TYPE_BUFFER ? blk_buf(b) : blk_ptr(pointer + given[i].offset);
	}
	return status;
}

static void read_slots(tune_share *s, tune_job *j)
{
	const tune_slot *slots = at(s, s->slots);
	for (uint32_t i = 0; i < s->nslots; i++) {
		free(j->results[i].reason);
		j->results[i] = (tune_result){.verdict = (blk_tune_verdict)slots[i].verdict,
			.ms = slots[i].ms,
			.checked = slots[i].checked,
			.reason = slots[i].reason[0] ? strdup(slots[i].reason) : NULL};
	}
}

static void write_slots(tune_share *s, const tune_job *j)
{
	tune_slot *slots = at(s, s->slots);
	for (uint32_t i = 0; i < s->nslots; i++) {
		const tune_result *r = &j->results[i];
		slots[i] = (tune_slot){.verdict = r->verdict, .checked = r->checked, .ms = r->ms};
		snprintf(slots[i].reason, sizeof slots[i].reason, "%s", r->reason ? r->reason : "");
	}
}

static blk_status work(tune_share *s, blk_device *d, bool *again)
{
	uint64_t bits[SIGNATURE_PARAMETERS];
	blk_arg args[SIGNATURE_PARAMETERS];
	tune_job j = {.given = s->grid.x ? &s->grid : NULL,
		.args = args,
		.bits = bits,
		.progress = progress,
		.context = s,
		.running = running,
		.learnt = learnt,
		.watcher = s,
		.isolated = true};
	blk_status status = open_module(s, d, &j.kernel);
	if (!status) status = make_arguments(s, d, args);
	if (!status) status = launch_arguments(j.kernel, args, s->nargs, bits, &j.promises);
	if (!status) status = computed_resolve(&j.kernel, bits);
	if (!status) status = check_configurations(s, j.kernel);
	if (!status && j.promises != s->promises)
		status = error_set(BLK_ERROR_INTERNAL, "blk-trial's copies of the arguments keep other promises");
	if (status) return status;
	if (!(status = tune_job_begin(&j))) {
		read_slots(s, &j);
		atomic_store(&s->state, TUNE_WORKING);
		status = tune_trials(&j);
		*again = j.poisoned;
		if (!status) write_slots(s, &j);
	}
	tune_job_end(&j);
	return status;
}

int main(void)
{
	static const struct rlimit no_core = {0, 0};
	tune_share *s = map_block();
	if (!s) {
		fprintf(stderr, "blk-trial is started by libblk, to tune kernels in isolation\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != (pid_t)s->parent) return 1;
	setrlimit(RLIMIT_CORE, &no_core);
	blk_device *d = NULL;
	bool again = false;
	blk_status status = strcmp(s->magic, TUNE_SHARE_MAGIC) == 0
				    ? blk_device_open(at(s, s->device), &d)
				    : error_set(BLK_ERROR_UNSUPPORTED,
					      "blk-trial is version " BLK_VERSION ", but libblk is another");
	if (!status) status = work(s, d, &again);
	if (again)
		atomic_store(&s->state, TUNE_AGAIN);
	else if (status)
		refuse(s, status);
	else
		atomic_store(&s->state, TUNE_DONE);
	_exit(0); /* the system frees faster, and a context that is lost may not be closed at all */
}
