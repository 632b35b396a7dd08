/* blk.h's calls for the cache on disk as a whole: where it is, what is in it, away with it.
 *
 * In: the environment, which names the folder.  Out: its entries, compiled code first, then tuning records. */
#include "tune/tune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *blk_cache_folder(void)
{
	cache c;
	cache_open(&c, NULL);
	if (!c.folder) return NULL;
	char *slash = strrchr(c.folder, '/');
	*slash = 0; /* the folder that the user named; ours is inside */
	const char *kept = thread_keep(c.folder);
	cache_close(&c);
	return kept;
}

/* ---- Listing ---- */

typedef int visitor(void *context, const blk_cache_entry *);

/* Cuts "KERNEL\nTARGET" up in place. */
static void read_label(char *label, blk_cache_entry *out)
{
	char *cut = label ? strchr(label, '\n') : NULL;
	if (!cut) return;
	*cut = 0;
	out->kernel = label;
	out->target = cut + 1;
}

static int visit_code(cache *c, const cache_file *f, visitor *visit, void *context)
{
	blk_cache_entry out = {
		.file = f->name, .kernel = "", .target = "", .bytes = f->bytes, .used = f->used / 1000000000};
	cache_entry e = {0};
	char *label = NULL;
	if (cache_look(c, f->name, &e)) {
		const cache_section *s = cache_find(&e, CACHE_LABEL);
		out.valid = 1;
		label = s ? strdup(s->bytes) : NULL;
		read_label(label, &out);
	}
	int stop = visit(context, &out);
	cache_entry_free(&e);
	free(label);
	return stop;
}

static int visit_record(cache *c, const cache_file *f, visitor *visit, void *context)
{
	blk_cache_entry out = {.file = f->name,
		.kernel = "",
		.target = "",
		.bytes = f->bytes,
		.used = f->used / 1000000000,
		.tuning = 1};
	char *label = tune_record_label(c, f->name);
	out.valid = label != NULL;
	read_label(label, &out);
	int stop = visit(context, &out);
	free(label);
	return stop;
}

static int visit_all(
	cache *c, int (*one)(cache *, const cache_file *, visitor *, void *), visitor *visit, void *context)
{
	cache_listing l;
	int stop = 0;
	if (!cache_list(c, &l)) return 0;
	for (size_t i = 0; i < l.n && !stop; i++) stop = one(c, &l.files[i], visit, context);
	free(l.files);
	return stop;
}

blk_status blk_cache_list(int (*visit)(void *context, const blk_cache_entry *), void *context)
{
	if (!visit) return error_set(BLK_ERROR_ARGUMENT, "blk_cache_list: no function to call");
	cache code, records;
	cache_open(&code, NULL);
	int stop = visit_all(&code, visit_code, visit, context);
	if (!stop && cache_beside(&code, "tune", &records)) {
		visit_all(&records, visit_record, visit, context);
		cache_close(&records);
	}
	cache_close(&code);
	return BLK_OK;
}

/* ---- Emptying ---- */

static void clear(cache *c, uint64_t *gone, uint64_t *left)
{
	cache_listing l;
	if (!cache_list(c, &l)) return;
	for (size_t i = 0; i < l.n; i++) {
		if (cache_remove(c, l.files[i].name))
			++*gone;
		else if (errno != ENOENT)
			++*left;
	}
	free(l.files);
}

blk_status blk_cache_clear(uint64_t *removed)
{
	cache code, records;
	uint64_t gone = 0, left = 0;
	cache_open(&code, NULL);
	clear(&code, &gone, &left);
	int why = errno;
	if (cache_beside(&code, "tune", &records)) {
		clear(&records, &gone, &left);
		if (left) why = errno;
		tune_marks_clear(&records);
		cache_close(&records);
	}
	if (removed) *removed = gone;
	blk_status status = BLK_OK;
	if (left)
		status = error_set(BLK_ERROR_IO, "%llu cache entries in %s could not be removed: %s",
			(unsigned long long)left, code.folder, strerror(why));
	cache_close(&code);
	return status;
}
