/* Which configurations are tried: where the autotune block says how many, those that its order puts first.
 *
 * In: the predicted times, which are expressions over the arguments, and what is known of each configuration.  Out: the
 * field, those that are to be known before a choice is made.  It is a walk down the ranking until `try` of them can be
 * used.  One that does not compile, does not fit or spills costs a compile and lets the next one in, but no more than
 * as many again once there is one that can be used; so the field of the same arguments is the same in every process,
 * and grows as more is learnt.
 *
 * A prediction decides what is tried, never what is right: nan and negative ones are last. */
#include "tune.h"

#include <math.h>
#include <stdlib.h>

typedef struct predicted {
	double time;
	uint32_t configuration;
} predicted;

/* Smaller first, then in the block's order. */
static int by_time(const void *a, const void *b)
{
	const predicted *x = a, *y = b;
	if (x->time != y->time) return x->time < y->time ? -1 : 1;
	return x->configuration < y->configuration ? -1 : x->configuration > y->configuration;
}

double search_time(const tune_job *j, uint32_t i)
{
	const signature *s = j->kernel->sig;
	if (!s->times[i].ntokens) return NAN;
	return signature_number(s, &s->times[i], j->bits, j->kernel->head.device->info.num_sms);
}

static double time_of(const tune_job *j, uint32_t i)
{
	double t = search_time(j, i);
	return t >= 0 ? t : (double)INFINITY;
}

bool search_ordered(const blk_kernel *k)
{
	const signature *s = k->sig;
	for (uint32_t i = 0; i < s->nconfigurations; i++)
		if (s->times[i].ntokens) return true;
	return false;
}

/* Without an order as many as are tried, spread evenly over all, and then the rest. */
static void spread(predicted *list, uint32_t n, uint32_t tries)
{
	uint32_t step = (n + tries - 1) / tries;
	for (uint32_t i = 0; i < n; i++) list[i].time = i % step ? 1 + i : 0;
}

blk_status search_rank(tune_job *j)
{
	const blk_kernel *k = j->kernel;
	uint32_t n = k->sig->nconfigurations, tries = k->sig->tries;
	bool ordered = search_ordered(k);
	if (!tries && !ordered) return BLK_OK;
	predicted *list = calloc(n, sizeof *list);
	j->ranking = calloc(n, sizeof *j->ranking);
	if (!list || !j->ranking) {
		free(list);
		return error_memory();
	}
	for (uint32_t i = 0; i < n; i++) list[i] = (predicted){ordered ? time_of(j, i) : 0, i};
	if (!ordered) spread(list, n, tries);
	qsort(list, n, sizeof *list, by_time);
	for (uint32_t i = 0; i < n; i++) j->ranking[i] = list[i].configuration;
	free(list);
	return BLK_OK;
}

typedef struct walk {
	uint32_t next, usable, walked;
} walk;

/* The next one of the field; false: there is none. */
static bool walk_on(const tune_job *j, walk *w, uint32_t *configuration)
{
	const signature *s = j->kernel->sig;
	uint32_t n = s->nconfigurations, tries = j->ranking && s->tries && s->tries < n ? s->tries : n;
	while (w->next < n && w->usable < tries && (w->walked < 2 * tries || !w->usable)) {
		uint32_t at = j->ranking ? j->ranking[w->next] : w->next;
		blk_tune_verdict v = j->results[at].verdict;
		w->next++;
		if (v == BLK_TUNE_MISFIT) continue;
		w->walked++;
		w->usable += v != BLK_TUNE_COMPILE && v != BLK_TUNE_RESOURCES;
		*configuration = at;
		return true;
	}
	return false;
}

void search_field(const tune_job *j, bool *field)
{
	uint32_t at;
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++) field[i] = false;
	for (walk w = {0}; walk_on(j, &w, &at);) field[at] = true;
}

/* Where a key stands for several values, their fields differ: as many as are tried of any one are enough. */
static bool enough_known(const tune_job *j)
{
	const signature *s = j->kernel->sig;
	uint32_t known = 0;
	if (!j->ranking || !j->kernel->tuner->coarse) return false;
	for (uint32_t i = 0; i < s->nconfigurations; i++)
		known += j->results[i].verdict == BLK_TUNE_GOOD || j->results[i].verdict == BLK_TUNE_WRONG ||
			 j->results[i].verdict == BLK_TUNE_PRUNED;
	return known >= s->tries;
}

bool search_complete(const tune_job *j)
{
	uint32_t at;
	if (enough_known(j)) return true;
	for (walk w = {0}; walk_on(j, &w, &at);)
		if (j->results[at].verdict == BLK_TUNE_UNKNOWN) return false;
	return true;
}
