/* The memory of trials.
 *
 * In: the arguments of a launch.  Out: the same arguments, but every pointer into memory that a trial may write points
 * into a copy of it, fresh before each trial from one that is taken before the first; so each sees what the launch will
 * see, whatever others write beside it meanwhile, and nothing has to be put back, whatever ends the trials.  The one
 * idea: what is copied is all that may lie behind a pointer (memory_behind()), as a kernel's masks are not known; where
 * that is not known either, or there is no room, nothing is tried.
 *
 *	the caller's   |....y.......m....|      one allocation, two parameters
 *	the copy       |....y'......m'...|      the same distances, the same alignment
 *
 * What a reset clause names is zeroed in the copy, what a scratch clause names is used as it is: what a launch leaves
 * there means nothing. */
#include "support/scalar.h"
#include "tune.h"

#include <stdlib.h>

/* The low bits of an address that code may rely on: no tile or tensor map asks for more. */
enum { ALIGNED = 256 };

static bool is_pointer(const blk_kernel *k, uint32_t i)
{
	return k->sig->parameters[i].code == BLK_TYPE_POINTER;
}

static bool inside(memory_span s, uint64_t address)
{
	return address - s.base < s.bytes;
}

/* Nothing was tried: the launch goes on without. */
static blk_status give_up(trial *t, blk_status status)
{
	t->job->untried = status != BLK_ERROR_KERNEL && status != BLK_ERROR_ASSERT;
	return status;
}

blk_status trial_unknown_memory(tune_job *j, uint32_t i)
{
	j->untried = true;
	return error_set(BLK_ERROR_ARGUMENT,
		"kernel %s cannot be tuned: %s is a bare pointer, and how much memory lies behind it is not known to "
		"libblk or the driver; pass a blk_buffer, or a pointer into one",
		j->kernel->sig->kernel, j->kernel->sig->parameters[i].name);
}

/* ---- Copies ---- */

/* A configuration may do what the defaults do not. */
static bool one_says(const tune_job *j, uint32_t i, bool (*says)(const signature *, uint32_t))
{
	bool yes = says(j->kernel->sig, i);
	for (uint32_t c = 0; c < j->kernel->sig->nconfigurations; c++)
		yes = yes || (j->variants[c] && says(j->variants[c]->sig, i));
	return yes;
}

static bool is_written(const signature *s, uint32_t i)
{
	return s->parameters[i].written;
}

static bool trial_writes(const trial *t, uint32_t i)
{
	return one_says(t->job, i, is_written);
}

static bool to_be_copied(const trial *t, uint32_t i)
{
	const blk_kernel *k = t->job->kernel;
	bool named = k->tuner->reset[i] || k->tuner->restore[i];
	return is_pointer(k, i) && (named || (trial_writes(t, i) && !k->tuner->scratch[i]));
}

static trial_copy *copy_of(const trial *t, uint64_t address)
{
	for (uint32_t i = 0; i < t->ncopies; i++)
		if (inside(t->copies[i].of, address)) return &t->copies[i];
	return NULL;
}

static blk_status add_copy(trial *t, uint32_t i)
{
	memory_span s;
	if (!memory_behind(t->device, &t->job->args[i], &s)) return trial_unknown_memory(t->job, i);
	if (!s.bytes || copy_of(t, t->job->bits[i])) return BLK_OK;
	uint64_t low = s.base % ALIGNED, room = 0;
	blk_status status = t->device->backend->allocate(t->device, s.bytes + low, &room);
	if (status) return give_up(t, status);
	t->copies[t->ncopies++] = (trial_copy){.of = s, .room = room, .at = room + low};
	return BLK_OK;
}

/* A pointer's part of its allocation is not known, unless it has all of it. */
static bool alone(const trial *t, uint32_t i, const trial_copy *c)
{
	const tune_job *j = t->job;
	for (uint32_t other = 0; other < j->kernel->nparameters; other++)
		if (other != i && is_pointer(j->kernel, other) && inside(c->of, j->bits[other])) return false;
	return j->bits[i] == c->of.base;
}

static void choose_zeroed(trial *t, uint32_t i)
{
	const blk_kernel *k = t->job->kernel;
	trial_copy *c = copy_of(t, t->job->bits[i]);
	if (!c) return;
	if (t->job->args[i].type == BLK_TYPE_BUFFER || alone(t, i, c))
		c->zeroed = true;
	else
		note_add(
			"kernel %s: trials find %s as it is and not zeroed (reset): it is a pointer into an allocation "
			"that holds more",
			k->sig->kernel, k->sig->parameters[i].name);
}

/* Arguments of trials, and what they touch: the callers of bench_variant() want to know. */
static void redirect(trial *t)
{
	const tune_job *j = t->job;
	t->all_known = true;
	for (uint32_t i = 0; i < j->kernel->nparameters; i++) {
		t->bits[i] = j->bits[i];
		if (!is_pointer(j->kernel, i)) continue;
		const trial_copy *c = copy_of(t, j->bits[i]);
		memory_span s = {0};
		if (c) {
			t->bits[i] = c->at + (j->bits[i] - c->of.base);
			s = (memory_span){c->at, c->of.bytes};
		} else if (!memory_behind(t->device, &j->args[i], &s))
			t->all_known = false;
		t->touched[t->ntouched++] = s;
	}
}

blk_status trial_refresh(const trial *t)
{
	const backend *b = t->device->backend;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < t->ncopies; i++) {
		const trial_copy *c = &t->copies[i];
		status = c->zeroed ? b->fill(t->device, c->at, 0, c->of.bytes, NULL)
				   : b->copy(t->device, c->at, c->kept, c->of.bytes, NULL);
	}
	return status;
}

/* What all trials find.  The caller's memory is read once: others may write to it, beside what the kernel uses. */
static blk_status keep_all(trial *t)
{
	const backend *b = t->device->backend;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < t->ncopies; i++) {
		trial_copy *c = &t->copies[i];
		if (c->zeroed) continue;
		status = b->allocate(t->device, c->of.bytes, &c->kept);
		if (!status) status = b->copy(t->device, c->kept, c->of.base, c->of.bytes, NULL);
	}
	return status;
}

/* ---- Addresses ---- */

static bool is_written_through(const signature *s, uint32_t i)
{
	return s->parameters[i].written_through;
}

static bool writes_anywhere(const signature *s, uint32_t unused)
{
	(void)unused;
	return s->writes_addresses;
}

static bool uses_addresses(const signature *s, uint32_t unused)
{
	(void)unused;
	return s->uses_addresses;
}

static blk_status isolated_addresses(tune_job *j)
{
	if (!j->isolated || !one_says(j, 0, uses_addresses)) return BLK_OK;
	j->untried = true;
	return error_set(BLK_ERROR_ARGUMENT,
		"kernel %s cannot be tuned in isolation: it reads or writes at addresses that it loads or is given "
		"as integers, which mean nothing in another process; tune it in this one (BLK_TUNE=auto)",
		j->kernel->sig->kernel);
}

/* Where the numbers are no parameter's, no clause can name it. */
static blk_status foreign_addresses(tune_job *j)
{
	if (!one_says(j, 0, writes_anywhere)) return BLK_OK;
	j->untried = true;
	return error_set(BLK_ERROR_ARGUMENT,
		"kernel %s cannot be tuned: it writes at addresses that come of no parameter, or of memory that it "
		"writes itself, and what lies there is not known; pass the addresses, or a table of them",
		j->kernel->sig->kernel);
}

/* What lies behind an address in memory is not copied; `scratch` says that a trial may leave there what it likes. */
static blk_status parameter_addresses(tune_job *j, uint32_t i)
{
	const blk_kernel *k = j->kernel;
	const char *name = k->sig->parameters[i].name;
	if (k->tuner->scratch[i] || !one_says(j, i, is_written_through)) return BLK_OK;
	j->untried = true;
	if (!is_pointer(k, i))
		return error_set(BLK_ERROR_ARGUMENT,
			"kernel %s cannot be tuned: it writes where %s says, which is an address, and what lies there "
			"is not known; pass it in a table that a scratch clause names, or a pointer",
			k->sig->kernel, name);
	return error_set(BLK_ERROR_ARGUMENT,
		"kernel %s cannot be tuned: it writes at addresses that %s holds, and what lies there is not known; "
		"where a launch writes all of it anew, say so in the autotune block: scratch %s",
		k->sig->kernel, name, name);
}

blk_status trial_addresses_known(tune_job *j)
{
	blk_status status = isolated_addresses(j);
	if (!status) status = foreign_addresses(j);
	for (uint32_t i = 0; !status && i < j->kernel->nparameters; i++) status = parameter_addresses(j, i);
	return status;
}

/* ---- Sections ---- */

/* Where the next written parameter's memory begins in the same copy, or the copy ends. */
static uint64_t end_of(const trial *t, uint32_t i, const trial_copy *c, bool *first)
{
	const tune_job *j = t->job;
	uint64_t end = c->of.base + c->of.bytes;
	*first = true;
	for (uint32_t other = 0; other < j->kernel->nparameters; other++) {
		uint64_t at = j->bits[other];
		if (!is_pointer(j->kernel, other) || !trial_writes(t, other) || !inside(c->of, at)) continue;
		if (at > j->bits[i] && at < end) end = at;
		if (at < j->bits[i]) *first = false;
	}
	return end;
}

/* A written parameter's results: from its pointer to the next one's, and what lies below the first. */
static blk_status add_section(trial *t, uint32_t i)
{
	const tune_job *j = t->job;
	const trial_copy *c = copy_of(t, j->bits[i]);
	if (!c || !j->kernel->sig->parameters[i].written || j->kernel->tuner->scratch[i]) return BLK_OK;
	bool first;
	uint64_t from = j->bits[i] - c->of.base, end = end_of(t, i, c, &first) - c->of.base;
	if (first) from %= scalar_bytes((scalar)j->kernel->sig->parameters[i].element);
	trial_section *s = &t->sections[t->nsections++];
	*s = (trial_section){.parameter = i,
		.copy = c,
		.from = from,
		.bytes = end - from,
		.is_whole = j->args[i].type == BLK_TYPE_BUFFER,
		.reference = malloc(end - from + 1),
		.have = calloc(trial_chunks(c) + 1, 1)};
	if (!s->is_whole) s->before = malloc(s->bytes + 1);
	return s->reference && s->have && (s->before || s->is_whole) ? BLK_OK : give_up(t, error_memory());
}

/* For pieces of all sections. */
static blk_status add_room(trial *t)
{
	const backend *b = t->device->backend;
	uint64_t bytes = 1;
	for (uint32_t i = 0; i < t->nsections; i++)
		if (t->sections[i].bytes > bytes) bytes = t->sections[i].bytes;
	if (bytes > TRIAL_PIECE) bytes = TRIAL_PIECE;
	blk_status status = BLK_OK;
	if (b->allocate_pinned)
		status = b->allocate_pinned(t->device, bytes, &t->got);
	else if (!(t->got = malloc(bytes)))
		status = error_memory();
	return status ? give_up(t, status) : BLK_OK;
}

static void free_room(trial *t)
{
	const backend *b = t->device->backend;
	if (!t->got) return;
	if (b->allocate_pinned)
		b->release_pinned(t->device, t->got);
	else
		free(t->got);
}

static blk_status add_sections(trial *t)
{
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < t->job->kernel->nparameters; i++)
		if (is_pointer(t->job->kernel, i)) status = add_section(t, i);
	if (!status) changes_make(t);
	return status ? status : add_room(t);
}

/* ---- All of it ---- */

static blk_status make_copies(trial *t)
{
	const tune_job *j = t->job;
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < j->kernel->nparameters; i++)
		if (to_be_copied(t, i)) status = add_copy(t, i);
	for (uint32_t i = 0; !status && i < j->kernel->nparameters; i++)
		if (j->kernel->tuner->reset[i]) choose_zeroed(t, i);
	if (!status) redirect(t);
	if (status || !t->ncopies) return status;
	if (!(status = keep_all(t)) && !(status = trial_refresh(t))) status = trial_wait(t);
	return status ? give_up(t, status) : BLK_OK;
}

blk_status trial_memory_known(trial *t)
{
	const tune_job *j = t->job;
	memory_span s;
	blk_status status = trial_addresses_known(t->job);
	for (uint32_t i = 0; !status && i < j->kernel->nparameters; i++)
		if (to_be_copied(t, i) && !memory_behind(t->device, &j->args[i], &s))
			status = trial_unknown_memory(t->job, i);
	return status;
}

blk_status trial_memory_make(trial *t)
{
	uint32_t n = t->job->kernel->nparameters;
	t->copies = calloc(n + 1, sizeof *t->copies);
	t->sections = calloc(n + 1, sizeof *t->sections);
	if (!t->copies || !t->sections) return give_up(t, error_memory());
	blk_status status = trial_addresses_known(t->job);
	if (!status) status = make_copies(t);
	return status ? status : add_sections(t);
}

void trial_memory_free(trial *t)
{
	for (uint32_t i = 0; i < t->ncopies; i++) {
		if (t->copies[i].kept) t->device->backend->release(t->device, t->copies[i].kept);
		if (t->copies[i].flags) t->device->backend->release(t->device, t->copies[i].flags);
		free(t->copies[i].changed);
		t->device->backend->release(t->device, t->copies[i].room);
	}
	for (uint32_t i = 0; i < t->nsections; i++) {
		free(t->sections[i].reference);
		free(t->sections[i].before);
		free(t->sections[i].have);
	}
	free(t->copies);
	free(t->sections);
	free_room(t);
	free(atomic_exchange(&t->failure, NULL));
}
