/* Which elements of poisoned outputs a kernel did not write.
 *
 * In: a job that has run.  Out: a line for each buffer that it left poison in.
 * The one idea: bits that look like poison may have been written, a nan or a byte of 0xa5, or copied from another
 * buffer's poison.  So where some do the kernel runs again from the same inputs, in some of these buffers over another
 * poison.  In which of them a run has it says a binary digit of the buffer's number, so that no two buffers look alike
 * in all runs, nor does one look like an input: what followed its own buffer's poison in all was not written.  What the
 * first run wrote is put back. */
#include "runtime/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct outputs { /* by a buffer's number; data null for those that say nothing */
	array now[RUN_BUFFERS];
	unsigned number[RUN_BUFFERS]; /* of those that hold poison, from 1; 0: the others */
	bool *kept[RUN_BUFFERS];      /* of them: the elements that held their buffer's poison in each run so far */
	unsigned suspects;
} outputs;

static void outputs_free(outputs *o, const job *j)
{
	for (size_t i = 0; i < j->nbuffers; i++) {
		array_free(&o->now[i]);
		free(o->kept[i]);
	}
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

/* Run 0 is the one that has been; no buffer has the other poison there. */
static bool has_other(const outputs *o, size_t i, unsigned run)
{
	return run && o->number[i] >> (run - 1) & 1;
}

static size_t keep_poison(outputs *o, size_t i, unsigned run, const array *after)
{
	uint64_t bits = fill_poison(after->type, has_other(o, i, run));
	size_t n = 0;
	for (size_t k = 0; k < after->count; k++) n += o->kept[i][k] = o->kept[i][k] && array_bits(after, k) == bits;
	return n;
}

static int find_suspects(const job *j, outputs *o)
{
	for (size_t i = 0; i < j->nbuffers; i++) {
		const array *a = &o->now[i];
		if (!a->data || !job_wrote(j, i, a)) continue;
		if (!(o->kept[i] = malloc(a->count + 1))) return run_no_memory("a buffer");
		memset(o->kept[i], true, a->count);
		if (keep_poison(o, i, 0, a)) o->number[i] = ++o->suspects;
	}
	return 0;
}

static int write_other_poison(const place *p, const job *j, size_t i)
{
	array a = j->arrays[i];
	a.data = NULL;
	if (!array_allocate(&a)) return run_no_memory("a buffer");
	for (size_t k = 0; k < a.count; k++) array_set(&a, k, fill_poison(a.type, true));
	bool written = !blk_buffer_write(p->buffers[i], 0, a.data, a.bytes);
	array_free(&a);
	return written ? 0 : run_failed();
}

static int launch_over_poison(const place *p, const job *j, const outputs *o, unsigned run)
{
	const options *given = j->options;
	if (place_write(p, j)) return run_failed();
	for (size_t i = 0; i < j->nbuffers; i++) {
		int status = has_other(o, i, run) ? write_other_poison(p, j, i) : 0;
		if (status) return status;
	}
	blk_status status = blk_launch(p->kernel, NULL, given->has_grid ? &given->grid : NULL, p->args, j->n);
	if (!status) status = blk_device_sync(p->device);
	return status ? run_failed() : 0;
}

static int run_again(const place *p, const job *j, outputs *o, unsigned run)
{
	int status = launch_over_poison(p, j, o, run);
	for (size_t i = 0; !status && i < j->nbuffers; i++) {
		array after = {0};
		if (!o->number[i]) continue;
		status = place_download(p, j, i, &after);
		if (!status) keep_poison(o, i, run, &after);
		array_free(&after);
	}
	return status;
}

static int run_for_each_digit(const place *p, const job *j, outputs *o)
{
	int status = 0;
	for (unsigned run = 1; !status && o->suspects >> (run - 1); run++) status = run_again(p, j, o, run);
	return status;
}

static int put_back(const place *p, const job *j, const outputs *o)
{
	blk_status status = BLK_OK;
	for (size_t i = 0; !status && i < j->nbuffers; i++)
		if (o->now[i].data) status = blk_buffer_write(p->buffers[i], 0, o->now[i].data, o->now[i].bytes);
	return status ? run_failed() : 0;
}

static bool report(const job *j, const outputs *o, size_t i)
{
	char room[RUN_NAME];
	size_t first = 0, n = 0;
	for (size_t k = 0; k < j->arrays[i].count; k++)
		if (o->kept[i][k] && !n++) first = k;
	if (!n) return false;
	bool counts = j->options->check && !j->options->allow_unwritten;
	printf("%s%s: %s%zu of %zu elements were not written (they still hold poison), the first at ",
		counts ? "check " : "", job_name(j, i, room), counts ? "WRONG, " : "", n, j->arrays[i].count);
	print_index(&j->arrays[i], first);
	printf("%s\n", counts ? "; --allow-unwritten takes that" : "");
	return true;
}

int unwritten_report(const place *p, const job *j, bool *any)
{
	*any = false;
	if (!p->launched) return 0; /* which has been said */
	outputs *o = calloc(1, sizeof *o);
	if (!o) return run_no_memory("a buffer");
	int status = download(p, j, true, o);
	if (!status) status = find_suspects(j, o);
	if (!status && o->suspects) {
		status = download(p, j, false, o);
		if (!status) status = run_for_each_digit(p, j, o);
		for (size_t i = 0; !status && i < j->nbuffers; i++)
			if (o->number[i] && report(j, o, i)) *any = true;
		if (!status) status = put_back(p, j, o);
	}
	outputs_free(o, j);
	return status;
}
