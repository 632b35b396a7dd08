/* Where the copies of trials have changed, so that the host reads and compares that alone.
 *
 * In: the copy of an allocation, and what it was before the trial.  Out: a byte for each TRIAL_CHUNK of it, which is 0
 * where nothing changed.  The one idea: a kernel of our own looks, on the device, as a pointer from another library's
 * pool may lie in an allocation that is a hundred times what the launch writes.  Where there is no compiler, no room,
 * or not enough memory to be worth it, all counts as changed. */
#include "tune.h"

#include <stdlib.h>
#include <string.h>

static const char source[] =
	"kernel changes(changed: *u8, now: *const u32, before: *const u32, words: i64, const CHUNK: i32,\n"
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

/* The device's own kernel, made once. */
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
		pthread_mutex_lock(&d->lock);
		d->changes = m;
		pthread_mutex_unlock(&d->lock);
	}
	*out = m->kernels[0];
	return BLK_OK;
}

static uint64_t chunks_of(const trial_copy *c)
{
	return (c->of.bytes + TRIAL_CHUNK - 1) / TRIAL_CHUNK;
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
	if (t->device->info.kind == BLK_DEVICE_SIM || !c->kept || c->of.bytes < LEAST) return false;
	for (uint32_t i = 0; i < t->nsections; i++)
		if (t->sections[i].copy == c && !t->sections[i].is_whole) return (c->at | c->kept) % ALIGNED == 0;
	return false;
}

/* What cannot be had is done without. */
static void make(const trial *t, trial_copy *c)
{
	uint64_t bits[SIGNATURE_PARAMETERS];
	variant *v;
	blk_status status = t->device->backend->allocate(t->device, chunks_of(c), &c->flags);
	if (!status) status = prepare(t, c, &v, bits);
	if (!status && !(c->changed = malloc(chunks_of(c)))) status = error_memory();
	if (status) free(error_take());
}

blk_status changes_make(trial *t)
{
	for (uint32_t i = 0; i < t->ncopies; i++)
		if (worth_it(t, &t->copies[i])) make(t, &t->copies[i]);
	for (uint32_t i = 0; i < t->nsections; i++) {
		trial_section *s = &t->sections[i];
		if (!s->copy->changed || s->is_whole) continue;
		if (!(s->held = calloc(chunks_of(s->copy), 1))) return error_memory();
		s->has_before = true;
	}
	return BLK_OK;
}

static blk_status look(trial *t, const trial_copy *c)
{
	uint64_t bits[SIGNATURE_PARAMETERS], chunks = chunks_of(c);
	variant *v;
	blk_status status = prepare(t, c, &v, bits);
	const uint32_t grid[3] = {(uint32_t)chunks, 1, 1};
	if (!status) status = launch_variant(t->device, v, trial_stream(t), grid, bits);
	if (!status) status = trial_read(t, c->changed, c->flags, chunks);
	if (c->of.bytes % STEP) c->changed[chunks - 1] = 1; /* an end that the kernel does not look at */
	return status;
}

blk_status changes_find(trial *t)
{
	blk_status status = BLK_OK;
	for (uint32_t i = 0; !status && i < t->ncopies; i++)
		if (t->copies[i].changed) status = look(t, &t->copies[i]);
	return status;
}
