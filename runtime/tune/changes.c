/* Where the copies of trials have changed, so that the host reads and compares that alone.
 *
 * In: the copy of an allocation, and what it was before the trial.  Out: a byte for each TRIAL_CHUNK of it, which is 0
 * where nothing changed.  The one idea: a kernel of our own looks, on the device, as a pointer from another library's
 * pool may lie in an allocation that is a hundred times what the launch writes.  Whatever else is the case, all counts
 * as changed: in small allocations, whole buffers, zeroed or unaligned copies, on the simulator, for kernels of a
 * package, which need no compiler, or where the kernel cannot be had. */
#include "tune.h"

#include <stdlib.h>
#include <string.h>

static const char source[] =
	"kernel blk_changes(changed: *u8, now: *const u32, before: *const u32, words: i64, const CHUNK: i32,\n"
	"    const BLOCK: i32 = 2048)\n"
	"    grid(cdiv(words, CHUNK))\n"
	"{\n"
	"    let start = program_id(0).to(i64) * CHUNK;\n"
	"    var any = zeros([BLOCK], bool);\n"
	"    for i in range(0, CHUNK, BLOCK) {\n"
	"        let at = start + i + arange(0, BLOCK);\n"
	"        let inside = at < words;\n"
	"        any = any | (load(now + at, mask = inside) != load(before + at, mask = inside));\n"
	"    }\n"
	"    store(changed + program_id(0), max(any.to(i32), axis = 0).to(u8));\n"
	"}\n";

enum { WORD = 4, ALIGNED = 16, STEP = 16 * WORD }; /* bytes: what makes accesses wide */
enum { LEAST = 4 << 20 };                          /* bytes; below them the host is as fast */
_Static_assert(TRIAL_CHUNK == 16384 * WORD, "CHUNK below says so too");
static const blk_define chunk = {"CHUNK", "16384"};

/* Made once for a device, or by two threads that ask at once: each is freed with the device. */
static blk_status find_kernel(blk_device *d, blk_kernel **out)
{
	pthread_mutex_lock(&d->lock);
	blk_module *m = d->changes;
	pthread_mutex_unlock(&d->lock);
	if (!m) {
		char *text = strdup(source);
		if (!text) return error_memory();
		blk_status status = module_open_text(d, "changes.blk", text, strlen(text), &chunk, 1, &m);
		if (status) return status;
		m->own = true;
		pthread_mutex_lock(&d->lock);
		d->changes = m;
		pthread_mutex_unlock(&d->lock);
	}
	*out = m->kernels[0];
	return BLK_OK;
}

/* The code and the arguments for one copy. */
static blk_status prepare(const trial *t, const trial_copy *c, variant **v, uint64_t *bits)
{
	const blk_arg args[] = {blk_ptr((void *)(uintptr_t)c->flags), blk_ptr((void *)(uintptr_t)c->at),
		blk_ptr((void *)(uintptr_t)c->kept), blk_i64((int64_t)(c->of.bytes / STEP * (STEP / WORD)))};
	blk_kernel *k = NULL;
	uint64_t key;
	blk_status status = find_kernel(t->device, &k);
	if (!status) status = launch_arguments(k, args, sizeof args / sizeof args[0], bits, &key);
	return status ? status : variant_get(k, key, v);
}

static bool worth_it(const trial *t, const trial_copy *c)
{
	if (t->device->info.kind == BLK_DEVICE_SIM || t->job->kernel->packaged) return false;
	if (!c->kept || c->of.bytes < LEAST) return false;
	for (uint32_t i = 0; i < t->nsections; i++)
		if (t->sections[i].copy == c && !t->sections[i].is_whole) return (c->at | c->kept) % ALIGNED == 0;
	return false;
}

/* What cannot be had is done without. */
static void make(const trial *t, trial_copy *c)
{
	uint64_t bits[SIGNATURE_PARAMETERS];
	variant *v;
	blk_status status = t->device->backend->allocate(t->device, trial_chunks(c), &c->flags);
	if (!status) status = prepare(t, c, &v, bits);
	if (!status && !(c->changed = malloc(trial_chunks(c)))) status = error_memory();
	if (status) free(error_take());
}

void changes_make(trial *t)
{
	for (uint32_t i = 0; i < t->ncopies; i++)
		if (worth_it(t, &t->copies[i])) make(t, &t->copies[i]);
}

static blk_status look(trial *t, const trial_copy *c)
{
	uint64_t bits[SIGNATURE_PARAMETERS], chunks = trial_chunks(c);
	variant *v;
	blk_status status = prepare(t, c, &v, bits);
	const uint32_t grid[3] = {(uint32_t)chunks, 1, 1};
	if (!status) status = launch_variant(t->device, v, trial_stream(t), grid, bits);
	if (!status) status = trial_read(t, c->changed, c->flags, chunks);
	if (c->of.bytes % STEP) c->changed[chunks - 1] = 1; /* an end that the kernel does not look at */
	return status;
}

/* A device that is lost says so when results are read. */
void changes_find(trial *t)
{
	for (uint32_t i = 0; i < t->ncopies; i++) {
		const trial_copy *c = &t->copies[i];
		if (!c->changed || look(t, c) == BLK_OK) continue;
		free(error_take());
		memset(c->changed, 1, trial_chunks(c));
	}
}
