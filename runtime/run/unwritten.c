/* Which elements of poisoned outputs a kernel did not write.
 *
 * In: a job that has run.  Out: a line for each buffer that it left poison in.
 * The one idea: bits that look like poison may have been written, a nan or a byte of 0xa5, so where some do the kernel
 * runs again from the same inputs over another poison: what holds its poison after both was not written.  What the
 * first run wrote is put back. */
#include "runtime/run/run.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct outputs { /* by a buffer's number; data null for those that say nothing */
	array now[RUN_BUFFERS];
	bool suspect[RUN_BUFFERS];
} outputs;

static void outputs_free(outputs *o, const job *j)
{
	for (size_t i = 0; o && i < j->nbuffers; i++) array_free(&o->now[i]);
	free(o);
}

/* What was poisoned, or the rest of what the kernel may write. */
static int download(const place *p, const job *j, bool wanted, outputs *o)
{
	int status = 0;
	for (size_t i = 0; !status && i < j->nbuffers; i++)
		if (job_may_write(j, i) && j->arrays[i].poisoned == wanted)
			status = place_download(p, j, i, &o->now[i]);
	return status;
}

static bool holds_poison(const array *a)
{
	uint64_t bits = fill_poison(a->type, false);
	size_t i = 0;
	while (i < a->count && array_bits(a, i) != bits) i++;
	return i < a->count;
}

/* Elements that hold the poison of each run; in `at` the first of them. */
static size_t count_unwritten(const array *one, const array *two, size_t *at)
{
	size_t n = 0;
	uint64_t first = fill_poison(one->type, false), second = fill_poison(one->type, true);
	for (size_t i = 0; i < one->count; i++)
		if (array_bits(one, i) == first && array_bits(two, i) == second && !n++) *at = i;
	return n;
}

static bool find_suspects(const job *j, outputs *o)
{
	bool any = false;
	for (size_t i = 0; i < j->nbuffers; i++) {
		const array *a = &o->now[i];
		o->suspect[i] = a->data && job_wrote(j, i, a) && holds_poison(a);
		any = any || o->suspect[i];
	}
	return any;
}

static int write_other_poison(const place *p, const job *j, size_t i)
{
	array a = j->arrays[i];
	a.data = NULL;
	if (!array_allocate(&a)) return run_wrong("a buffer", "out of memory");
	for (size_t k = 0; k < a.count; k++) array_set(&a, k, fill_poison(a.type, true));
	bool written = !blk_buffer_write(p->buffers[i], 0, a.data, a.bytes);
	array_free(&a);
	return written ? 0 : run_failed();
}

static int run_again(const place *p, const job *j, const outputs *o)
{
	const options *given = j->options;
	if (place_write(p, j)) return run_failed();
	for (size_t i = 0; i < j->nbuffers; i++) {
		int status = o->suspect[i] ? write_other_poison(p, j, i) : 0;
		if (status) return status;
	}
	blk_status status = blk_launch(p->kernel, NULL, given->has_grid ? &given->grid : NULL, p->args, j->n);
	if (!status) status = blk_device_sync(p->device);
	return status ? run_failed() : 0;
}

static int put_back(const place *p, const job *j, const outputs *o)
{
	blk_status status = BLK_OK;
	for (size_t i = 0; !status && i < j->nbuffers; i++)
		if (o->now[i].data) status = blk_buffer_write(p->buffers[i], 0, o->now[i].data, o->now[i].bytes);
	return status ? run_failed() : 0;
}

static int report(const place *p, const job *j, const outputs *o, size_t i, bool *any)
{
	char room[RUN_NAME];
	array after = {0};
	size_t first = 0, n;
	int status = place_download(p, j, i, &after);
	if (status) return status;
	n = count_unwritten(&o->now[i], &after, &first);
	array_free(&after);
	if (!n) return 0;
	bool counts = j->options->check && !j->options->allow_unwritten;
	printf("%s%s: %s%zu of %zu elements were not written (they still hold poison), the first at ",
		counts ? "check " : "", job_name(j, i, room), counts ? "WRONG, " : "", n, j->arrays[i].count);
	print_index(&j->arrays[i], first);
	printf("%s\n", counts ? "; --allow-unwritten takes that" : "");
	*any = true;
	return 0;
}

int unwritten_report(const place *p, const job *j, bool *any)
{
	*any = false;
	if (!p->launched) return 0; /* which has been said */
	outputs *o = calloc(1, sizeof *o);
	if (!o) return run_wrong("a buffer", "out of memory");
	int status = download(p, j, true, o);
	if (!status && find_suspects(j, o)) {
		status = download(p, j, false, o);
		if (!status) status = run_again(p, j, o);
		for (size_t i = 0; !status && i < j->nbuffers; i++)
			if (o->suspect[i]) status = report(p, j, o, i, any);
		if (!status) status = put_back(p, j, o);
	}
	outputs_free(o, j);
	return status;
}
