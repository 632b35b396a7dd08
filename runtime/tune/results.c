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

/* Whether this trial or one before changed it: where none did all are equal, and what was there before.  The norm of a
 * whole buffer is of all of it. */
static bool is_changed(const piece *p, uint64_t at)
{
	const uint8_t *changed = p->of->is_whole ? NULL : p->of->copy->changed;
	uint64_t i = chunk_at(p, at);
	return !changed || changed[i] || p->of->have[i] & TRIAL_REFERENCE;
}

/* Goes on to the next one.  False: there is none. */
static bool next_piece(piece *p)
{
	uint64_t all = p->of->bytes, end;
	p->from += p->bytes;
	while (p->from < all && !is_changed(p, p->from)) p->from = chunk_end(p, p->from);
	for (end = p->from; end < all && end - p->from < TRIAL_PIECE && is_changed(p, end);) end = chunk_end(p, end);
	p->bytes = end - p->from < TRIAL_PIECE ? end - p->from : TRIAL_PIECE;
	return p->bytes > 0;
}

/* The first place from `at` on where it is (is not) known that `what` is there, or the piece ends. */
static uint64_t next_place(const piece *p, uint64_t at, uint8_t what, bool there)
{
	uint64_t end = p->from + p->bytes;
	while (at < end && ((p->of->have[chunk_at(p, at)] & what) != 0) != there) at = chunk_end(p, at);
	return at;
}

/* What all trials find, of those chunks of the piece that `to` does not have yet. */
static blk_status fetch_before(const trial *t, const piece *p, uint8_t what, char *to)
{
	const trial_section *s = p->of;
	blk_status status = BLK_OK;
	uint64_t at = next_place(p, p->from, what, false), end, all = p->from + p->bytes;
	for (; !status && at < all; at = next_place(p, end, what, false)) {
		end = next_place(p, at, what, true);
		if (s->copy->zeroed)
			memset(to + at, 0, end - at);
		else
			status = trial_read(t, to + at, s->copy->kept + s->from + at, end - at);
		for (uint64_t i = at; !status && i < end; i = chunk_end(p, i)) s->have[chunk_at(p, i)] |= what;
	}
	return status;
}

static blk_status keep_piece(const trial *t, const piece *p, double *sum)
{
	uint64_t end = p->from + p->bytes;
	(void)sum;
	memcpy((char *)p->of->reference + p->from, t->got, p->bytes);
	for (uint64_t at = p->from; at < end; at = chunk_end(p, at)) p->of->have[chunk_at(p, at)] |= TRIAL_REFERENCE;
	return BLK_OK;
}

/* Chunks that the reference has not changed are what they were. */
static blk_status difference_of_piece(const trial *t, const piece *p, double *sum)
{
	blk_status status = fetch_before(t, p, TRIAL_REFERENCE, p->of->reference);
	if (!status) *sum += sum_of_differences(p->type, (char *)p->of->reference + p->from, t->got, p->bytes);
	return status;
}

static blk_status change_of_piece(const trial *t, const piece *p, double *sum)
{
	const char *before = p->of->before, *reference = p->of->reference;
	blk_status status = fetch_before(t, p, TRIAL_BEFORE, p->of->before);
	if (!status) *sum += sum_of_changed_squares(p->type, before + p->from, reference + p->from, t->got, p->bytes);
	return status;
}

/* Reads what has changed of a section, piece by piece; `look` takes each, and adds to the sum. */
static blk_status each_piece(const trial *t, trial_section *s, scalar type,
	blk_status (*look)(const trial *, const piece *, double *sum), double *sum)
{
	*sum = 0;
	for (piece p = {s, type, 0, 0}; next_piece(&p);) {
		blk_status status = trial_read(t, t->got, s->copy->at + s->from + p.from, p.bytes);
		if (!status) status = look(t, &p, sum);
		if (status) return status;
	}
	return BLK_OK;
}

/* Relative Frobenius distance of what is in a section from the first configuration's results. */
static blk_status distance(const trial *t, trial_section *at, scalar s, double *far)
{
	double difference, norm = 0;
	*far = 0;
	blk_status status = each_piece(t, at, s, difference_of_piece, &difference);
	if (status || difference == 0) return status;
	if (at->is_whole) {
		if (at->square_sum == 0) at->square_sum = sum_of_squares(s, at->reference, at->bytes);
		norm = at->square_sum;
	} else
		status = each_piece(t, at, s, change_of_piece, &norm);
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
			t->has_reference ? distance(t, s, type, &far) : each_piece(t, s, type, keep_piece, &far);
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
