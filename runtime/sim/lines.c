/* What each line of a launch's PTX did, and the page that shows it.
 *
 * In: how often each instruction ran and what it touched, from the launch.  Out: blk_sim_lines(); and the compiler's
 * report of the same code, into which these numbers are put.
 * The one idea: the page is the compiler's, whole; in it stands one empty place for a launch's numbers, as JSON by line
 * of the PTX, and the page's own script does the rest. */
#include "device.h"
#include "base/growing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char place[] = "id=\"counters\">null<"; /* compiler/explain/page.html */

static void drop(sim_lines *l)
{
	for (size_t i = 0; l->files && i < l->nfiles; i++) free(l->files[i]);
	free(l->files);
	free(l->at);
	free(l->signature);
	*l = (sim_lines){0};
}

static bool copy_files(sim_lines *l, const sim_code *c)
{
	l->nfiles = c->nfiles;
	l->files = calloc(c->nfiles + 1, sizeof *l->files);
	for (size_t i = 0; l->files && i < c->nfiles; i++)
		if (c->files[i] && !(l->files[i] = strdup(c->files[i]))) return false;
	return l->files != NULL;
}

static void add_hits(blk_sim_line *to, const sim_hits *h)
{
	to->instructions += h->instructions;
	to->lanes += h->lanes;
	to->requests += h->requests;
	to->sectors += h->sectors;
	to->bytes += h->bytes;
	to->shared_requests += h->shared_requests;
	to->shared_conflicts += h->shared_conflicts;
}

static void copy_lines(sim_lines *l, const sim_code *c, const sim_hits *hits)
{
	for (size_t i = 0; i < c->n; i++) {
		const sim_instr *in = &c->code[i];
		if (!hits[i].instructions) continue;
		if (!l->n || l->at[l->n - 1].ptx_line != in->line)
			l->at[l->n++] = (blk_sim_line){.file = in->file < l->nfiles ? l->files[in->file] : NULL,
				.line = in->source_line,
				.ptx_line = in->line};
		add_hits(&l->at[l->n - 1], &hits[i]);
	}
}

blk_status sim_lines_keep(sim_device *d, const sim_launch *launch, const variant *v)
{
	const sim_code *c = launch->code;
	sim_lines l = {.at = calloc(c->n + 1, sizeof *l.at), .signature = strdup(v->sig->text)};
	if (!l.at || !l.signature || !copy_files(&l, c)) {
		drop(&l);
		return error_memory();
	}
	copy_lines(&l, c, launch->hits);
	pthread_mutex_lock(&d->lock);
	sim_lines old = d->lines;
	d->lines = l;
	d->counters = launch->counters;
	pthread_mutex_unlock(&d->lock);
	drop(&old);
	return BLK_OK;
}

void sim_lines_drop(sim_device *d)
{
	drop(&d->lines);
}

blk_status blk_sim_lines(blk_device *d, const blk_sim_line **out, size_t *n)
{
	blk_status status = sim_check(d);
	if (status) return status;
	if (!out || !n) return error_set(BLK_ERROR_ARGUMENT, "blk_sim_lines: no place for the result");
	pthread_mutex_lock(&d->sim->lock);
	*out = d->sim->lines.at;
	*n = d->sim->lines.n;
	pthread_mutex_unlock(&d->sim->lock);
	return BLK_OK;
}

/* ---- The page ---- */

static void put_counters(growing *out, const blk_sim_counters *c)
{
	static const char *const names[] = {
#define X(name, text) text,
		BLK_SIM_CLASSES(X)
#undef X
	};
	grow_format(out, "{\"programs\": %" PRIu64 ", \"instructions\": {", c->programs);
	for (int i = 0; i < BLK_SIM_CLASS_COUNT; i++)
		grow_format(out, "%s\"%s\": %" PRIu64, i ? ", " : "", names[i], c->instructions[i]);
	grow_format(out,
		"}, \"lanes\": %" PRIu64 ", \"load_requests\": %" PRIu64 ", \"load_sectors\": %" PRIu64
		", \"load_bytes\": %" PRIu64 ", \"store_requests\": %" PRIu64 ", \"store_sectors\": %" PRIu64
		", \"store_bytes\": %" PRIu64 ", \"shared_requests\": %" PRIu64 ", \"shared_conflicts\": %" PRIu64
		", \"barriers\": %" PRIu64,
		c->lanes, c->load_requests, c->load_sectors, c->load_bytes, c->store_requests, c->store_sectors,
		c->store_bytes, c->shared_requests, c->shared_conflicts, c->barriers);
}

static void put_lines(growing *out, const sim_lines *l)
{
	grow_text(out, ", \"lines\": [");
	for (size_t i = 0; i < l->n; i++) {
		const blk_sim_line *at = &l->at[i];
		grow_format(out,
			"%s[%u, %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
			"]",
			i ? ", " : "", at->ptx_line, at->instructions, at->lanes, at->requests, at->sectors, at->bytes,
			at->shared_requests, at->shared_conflicts);
	}
	grow_text(out, "]}");
}

/* The page with the numbers of the last launch in their place. */
static blk_status fill_in(sim_device *d, const char *made, size_t n, growing *out)
{
	const char *at = memmem(made, n, place, sizeof place - 1);
	if (!at) return error_set(BLK_ERROR_COMPILER, "the compiler's page has no place for counters");
	at += strlen("id=\"counters\">");
	grow_bytes(out, made, (size_t)(at - made));
	pthread_mutex_lock(&d->lock);
	put_counters(out, &d->counters);
	put_lines(out, &d->lines);
	pthread_mutex_unlock(&d->lock);
	at += strlen("null");
	grow_bytes(out, at, (size_t)(made + n - at));
	return out->failed ? error_memory() : BLK_OK;
}

/* The facts of the code that was launched; null with a status. */
static blk_status launched(sim_device *d, const blk_kernel *k, signature **out)
{
	pthread_mutex_lock(&d->lock);
	char *text = d->lines.signature ? strdup(d->lines.signature) : NULL;
	bool none = !d->lines.signature;
	pthread_mutex_unlock(&d->lock);
	blk_status status = BLK_OK;
	if (!none && !text) return error_memory();
	if (text) status = signature_parse(text, strlen(text), out);
	free(text);
	if (status) return status;
	if (none || strcmp((*out)->kernel, k->sig->kernel) != 0) {
		signature_free(*out);
		return error_set(
			BLK_ERROR_ARGUMENT, "kernel %s is not the one whose launch was counted last", k->sig->kernel);
	}
	return BLK_OK;
}

blk_status blk_sim_page(blk_kernel *k, char **page, size_t *bytes)
{
	blk_status status = kernel_check(k);
	if (!status) status = sim_check(k->head.device);
	if (status) return status;
	if (!page || !bytes) return error_set(BLK_ERROR_ARGUMENT, "blk_sim_page: no place for the result");
	signature *s = NULL;
	blk_device *d = k->head.device;
	growing out = {0};
	blkc_result *r = NULL;
	status = launched(d->sim, k, &s);
	if (status) return status;
	status = specialise_page(k, s, &r);
	signature_free(s);
	if (!status) status = fill_in(d->sim, r->artifacts[0].bytes, r->artifacts[0].nbytes, &out);
	if (r) d->compiler.api.result_free(r);
	if (status) {
		free(out.at);
		return status;
	}
	*page = out.at;
	*bytes = out.n;
	return BLK_OK;
}
