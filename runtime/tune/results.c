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

static uint64_t chunk_at(const piece *p, uint64_t at)
{
	return (p->of->from + at) / TRIAL_CHUNK;
}

/* Where the chunk ends that `at` lies in, or the section does. */
static uint64_t chunk_end(const piece *p, uint64_t at)
{
	uint64_t end = (chunk_at(p, at) + 1) * TRIAL_CHUNK - p->of->from;
	return end < p->of->bytes ? end : p->of->bytes;
}

/* Whether this trial or one before changed it: where none did all are equal, and what was there before. */
static bool is_changed(const piece *p, uint64_t at)
{
	uint64_t i = chunk_at(p, at);
	return !p->of->held || p->of->held[i] || p->of->copy->changed[i];
}

/* Goes on to the next one.  False: there is none. */
static bool next_piece(piece *p)
{
	uint64_t all = p->of->bytes, end;
	p->from += p->bytes;
	while (p->from < all && !is_changed(p, p->from)) p->from = chunk_end(p, p->from);
	for (end = p->from; end < all && is_changed(p, end);) end = chunk_end(p, end);
	p->bytes = end - p->from < TRIAL_PIECE ? end - p->from : TRIAL_PIECE;
	return p->bytes > 0;
}

/* What is compared with, of chunks that no trial before has changed. */
static blk_status hold_piece(const trial *t, const piece *p)
{
	trial_section *s = p->of;
	blk_status status = BLK_OK;
	for (uint64_t at = p->from; s->held && !status && at < p->from + p->bytes; at = chunk_end(p, at)) {
		if (s->held[chunk_at(p, at)]) continue;
		uint64_t bytes = chunk_end(p, at) - at;
		status = trial_read(t, (char *)s->before + at, s->copy->kept + s->from + at, bytes);
		memcpy((char *)s->reference + at, (char *)s->before + at, bytes);
		s->held[chunk_at(p, at)] = !status;
	}
	return status;
}

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

/* Reads what has changed of a section, piece by piece, and adds up what `sum` makes of each. */
static blk_status sum_pieces(
	const trial *t, trial_section *s, scalar type, double (*sum)(const trial *, const piece *), double *total)
{
	*total = 0;
	for (piece p = {s, type, 0, 0}; next_piece(&p);) {
		blk_status status = trial_read(t, t->got, s->copy->at + s->from + p.from, p.bytes);
		if (!status) status = hold_piece(t, &p);
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
