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

/* ---- In pieces ---- */

typedef struct piece {
	trial_section *of;
	scalar type;
	uint64_t from, bytes; /* within the section; what was computed there is in t->got */
} piece;

static double keep_piece(const trial *t, const piece *p)
{
	memcpy((char *)p->of->reference + p->from, t->got, p->bytes);
	return 0;
}

static double difference_of_piece(const trial *t, const piece *p)
{
	return sum_of_differences(p->type, (char *)p->of->reference + p->from, t->got, p->bytes);
}

static double change_of_piece(const trial *t, const piece *p)
{
	return sum_of_changed_squares(
		p->type, (char *)p->of->before + p->from, (char *)p->of->reference + p->from, t->got, p->bytes);
}

/* Reads all of a section, piece by piece, and adds up what `sum` makes of each. */
static blk_status sum_pieces(
	const trial *t, trial_section *s, scalar type, double (*sum)(const trial *, const piece *), double *total)
{
	*total = 0;
	for (uint64_t from = 0; from < s->bytes; from += TRIAL_PIECE) {
		piece p = {s, type, from, s->bytes - from < TRIAL_PIECE ? s->bytes - from : TRIAL_PIECE};
		blk_status status = trial_read(t, t->got, s->copy->at + s->from + from, p.bytes);
		if (status) return status;
		*total += sum(t, &p);
	}
	return BLK_OK;
}

/* Relative Frobenius distance of what is in a section from the first configuration's results. */
static blk_status distance(const trial *t, trial_section *at, scalar s, double *far)
{
	double difference, norm = 0;
	*far = 0;
	blk_status status = sum_pieces(t, at, s, difference_of_piece, &difference);
	if (status || difference == 0) return status;
	if (at->is_whole) {
		if (at->square_sum == 0) at->square_sum = sum_of_squares(s, at->reference, at->bytes);
		norm = at->square_sum;
	} else {
		status = read_before(t, at);
		if (!status) status = sum_pieces(t, at, s, change_of_piece, &norm);
	}
	*far = norm > 0 ? sqrt(difference / norm) : (double)INFINITY;
	return status;
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
		const scalar type = (scalar)p->element;
		double limit = allowed(k->tuner, type), far = 0;
		blk_status status =
			t->has_reference ? distance(t, s, type, &far) : sum_pieces(t, s, type, keep_piece, &far);
		if (status) return status;
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
