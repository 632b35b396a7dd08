/* Whether a configuration computes what the first one does.
 *
 * A written parameter's part of the copies (tune/memory.c) is compared as elements of its type: by the relative
 * Frobenius norm of the difference.  Of a blk_buffer the norm is over all of it.  Behind a bare pointer there may be
 * memory of others, so the norm there is over what the trials have changed, or left different: that never lets more
 * pass. */
#include "distance.h"
#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double allowed(const tuner *t, scalar s)
{
	if (t->tolerance >= 0) return t->tolerance;
	if (!scalar_is_float(s)) return 0;
	return scalar_bytes(s) == 1 ? 0.1 : scalar_bytes(s) == 2 ? 1e-2 : s == SCALAR_F32 ? 1e-4 : 1e-10;
}

/* What all trials find in a section: read when it is first asked for. */
static blk_status read_before(const trial *t, trial_section *s)
{
	blk_status status = BLK_OK;
	if (s->has_before) return BLK_OK;
	if (s->copy->zeroed)
		memset(s->before, 0, s->bytes);
	else
		status = trial_read(t, s->before, s->copy->kept + s->from, s->bytes);
	s->has_before = !status;
	return status;
}

/* Relative Frobenius distance of what is in t->got from the first configuration's results. */
static blk_status distance(const trial *t, trial_section *at, scalar s, double *far)
{
	double difference = sum_of_differences(s, at->reference, t->got, at->bytes), norm = 0;
	*far = 0;
	if (difference == 0) return BLK_OK;
	if (at->is_whole) {
		if (at->square_sum == 0) at->square_sum = sum_of_squares(s, at->reference, at->bytes);
		norm = at->square_sum;
	} else {
		blk_status status = read_before(t, at);
		if (status) return status;
		norm = sum_of_changed_squares(s, at->before, at->reference, t->got, at->bytes);
	}
	*far = norm > 0 ? sqrt(difference / norm) : (double)INFINITY;
	return BLK_OK;
}

static char *sentence(const char *format, const char *name, double a, double b)
{
	char text[256];
	snprintf(text, sizeof text, format, name, a, b);
	return strdup(text);
}

/* Compares with the reference, or becomes it. */
blk_status trial_judge(trial *t, tune_result *r)
{
	const blk_kernel *k = t->job->kernel;
	for (uint32_t i = 0; i < t->nsections; i++) {
		trial_section *s = &t->sections[i];
		const signature_parameter *p = &k->sig->parameters[s->parameter];
		void *to = t->has_reference ? t->got : s->reference;
		blk_status status = trial_read(t, to, s->copy->at + s->from, s->bytes);
		if (status) return status;
		if (!t->has_reference) continue;
		double limit = allowed(k->tuner, (scalar)p->element), far;
		if ((status = distance(t, s, (scalar)p->element, &far))) return status;
		if (!(far <= limit)) {
			r->verdict = BLK_TUNE_WRONG;
			free(r->reason);
			r->reason = sentence("%s differs from the first configuration's by %.3g (allowed %.3g)",
				p->name, far, limit);
			return BLK_OK;
		}
	}
	t->has_reference = true;
	r->verdict = BLK_TUNE_GOOD;
	return BLK_OK;
}
