/* Tuning records: what was learnt for one key, as text, one file a key in the cache's folder `tune`.
 *
 *	blk tuning 1
 *	kernel add / device NVIDIA H200 / target sm_90a / compiler 0.1.0 / source DIGEST / define NAME VALUE /
 *	promises HEX / key NAME VALUE                                                 (the head, a line each)
 *	good 0.012345 BLOCK=1024                                          (a line for each configuration)
 *	wrong 0 BLOCK=2048 # y differs ...
 *	checksum HEX
 *
 * The file's name is the digest of the head, the checksum that of all lines above it.  A record that does not verify is
 * noted and written anew.  Before writing, what another process has added meanwhile is read and kept. */
#include "base/growing.h"
#include "support/numbers.h"
#include "support/scalar.h"
#include "tune.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "blk tuning 1\n"
#define LAST_FACT "checksum "

static const char *const verdicts[] = {
	"unknown", "good", "compile", "resources", "wrong", "failed", "pruned", "suspect"}; /* ORDER blk_tune_verdict */
enum { VERDICTS = sizeof verdicts / sizeof verdicts[0], HEX = 33 };

/* A fact's line; what would end the line stands as a space. */
static void fact(growing *t, const char *name, const char *value)
{
	grow_text(t, name);
	grow_text(t, " ");
	size_t start = t->n;
	grow_text(t, value);
	for (size_t i = start; !t->failed && i < t->n; i++)
		if ((unsigned char)t->at[i] < ' ') t->at[i] = ' ';
	grow_text(t, "\n");
}

static void hex(cache_key k, char out[HEX])
{
	for (int i = 0; i < 16; i++) snprintf(out + 2 * i, 3, "%02x", k.bytes[i]);
}

/* What all records of a kernel on this device begin with. */
static void add_defines(growing *t, const blk_define *defines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		grow_text(t, "define ");
		fact(t, defines[i].name, defines[i].value);
	}
}

static void head_of_kernel(const blk_kernel *k, growing *t)
{
	const blk_module *m = k->module;
	const blk_device *d = k->head.device;
	char line[300];
	grow_text(t, FIRST_LINE);
	fact(t, "kernel", k->sig->kernel);
	fact(t, "device", d->info.name);
	fact(t, "target", d->info.target);
	fact(t, "compiler", BLK_VERSION);
	if (k->sig->source) /* a package's code is for any machine of its kind, so its times are its own */
		snprintf(line, sizeof line, "%.64s%s", k->sig->source, k->packaged ? " packaged" : "");
	else
		hex(cache_digest(m->text, m->text_bytes), line);
	fact(t, "source", line);
	add_defines(t, m->defines, m->ndefines);
	add_defines(t, k->values, k->nvalues);
}

static void head(const blk_kernel *k, const uint64_t *bits, uint64_t promises, growing *t)
{
	char line[300];
	head_of_kernel(k, t);
	snprintf(line, sizeof line, "%" PRIx64, promises);
	fact(t, "promises", line);
	for (uint32_t i = 0; i < k->tuner->nkeys; i++) {
		snprintf(line, sizeof line, "%.250s %" PRIu64, tune_key_name(k, i), tune_key_value(k, i, bits));
		fact(t, "key", line);
	}
}

size_t tune_record_verified(const char *s, size_t n, size_t *whole)
{
	char sum[HEX];
	if (n < strlen(FIRST_LINE) || memcmp(s, FIRST_LINE, strlen(FIRST_LINE)) != 0) return 0;
	const char *mark = strstr(s, "\n" LAST_FACT);
	if (!mark) return 0;
	size_t body = (size_t)(mark - s) + 1, tail = strlen(LAST_FACT) + HEX; /* HEX counts the newline */
	if (n - body < tail) return 0;
	hex(cache_digest(s, body), sum);
	if (memcmp(s + body + strlen(LAST_FACT), sum, HEX - 1) != 0 || s[body + tail - 1] != '\n') return 0;
	*whole = body + tail;
	return body;
}

/* ---- Lines of configurations ---- */

typedef struct line {
	unsigned verdict;
	double ms;
	const char *name, *reason; /* reason: null or its text, not ended */
	size_t nname, nreason;
} line;

static bool read_line(const char *s, size_t n, line *l)
{
	char word[16], *end;
	size_t length = 0;
	while (length < n && length < sizeof word - 1 && s[length] != ' ') length++;
	memcpy(word, s, length);
	word[length] = 0;
	for (l->verdict = 1; l->verdict < VERDICTS && strcmp(verdicts[l->verdict], word) != 0;) l->verdict++;
	if (l->verdict == VERDICTS || length >= n) return false;
	errno = 0;
	l->ms = numbers_read(s + length + 1, &end);
	if (errno || !isfinite(l->ms) || l->ms < 0 || *end != ' ' || end >= s + n) return false;
	l->name = end + 1;
	size_t left = n - (size_t)(l->name - s), cut = 0;
	while (cut < left && l->name[cut] != ' ') cut++;
	l->nname = cut;
	l->reason = left > cut + 3 && memcmp(l->name + cut, " # ", 3) == 0 ? l->name + cut + 3 : NULL;
	l->nreason = left - cut - 3; /* if there is one */
	return cut > 0 && (l->verdict != BLK_TUNE_GOOD || l->ms > 0);
}

static void put_line(
	growing *t, unsigned verdict, double ms, const char *name, size_t nname, const char *reason, size_t n)
{
	char number[64];
	plain_numbers plain;
	numbers_begin(&plain);
	int length = snprintf(number, sizeof number, "%s %.6g ", verdicts[verdict], ms);
	numbers_end(&plain);
	grow_bytes(t, number, (size_t)length);
	grow_bytes(t, name, nname);
	if (reason && n) {
		grow_text(t, " # ");
		size_t start = t->n;
		grow_bytes(t, reason, n < 400 ? n : 400);
		for (size_t i = start; !t->failed && i < t->n; i++)
			if ((unsigned char)t->at[i] < ' ') t->at[i] = ' ';
	}
	grow_text(t, "\n");
}

static void finish(growing *t)
{
	char sum[HEX];
	if (t->failed) return;
	hex(cache_digest(t->at, t->n), sum);
	fact(t, "checksum", sum);
}

/* ---- Reading ---- */

static void take_line(const blk_kernel *k, const line *l, tune_result *results)
{
	for (uint32_t i = 0; i < k->sig->nconfigurations; i++) {
		const char *name = k->sig->configurations[i];
		if (strlen(name) != l->nname || memcmp(name, l->name, l->nname) != 0) continue;
		if (results[i].verdict != BLK_TUNE_UNKNOWN) return;
		free(results[i].reason);
		results[i].verdict = (blk_tune_verdict)l->verdict;
		results[i].ms = l->ms;
		results[i].reason = l->reason ? strndup(l->reason, l->nreason) : NULL;
	}
}

/* The body after the head of the record of this key, malloc'ed as a whole; null: none. */
static char *load(cache *c, const growing *h, size_t *from, size_t *to)
{
	cache_key key = cache_digest(h->at, h->n);
	char *record = NULL;
	size_t n = 0, whole = 0;
	if (!cache_get_text(c, &key, &record, &n)) return NULL;
	size_t body = strlen(record) == n ? tune_record_verified(record, n, &whole) : 0;
	if (body && whole == n && body >= h->n && memcmp(record, h->at, h->n) == 0) {
		*from = h->n;
		*to = body;
		return record;
	}
	char name[HEX];
	hex(key, name);
	note_add("tuning record %s/%s is not used: damaged", c->folder, name);
	free(record);
	return NULL;
}

static bool next_line(const char *record, size_t *from, size_t to, const char **at, size_t *n)
{
	if (*from >= to) return false;
	const char *end = memchr(record + *from, '\n', to - *from);
	*at = record + *from;
	*n = end ? (size_t)(end - *at) : to - *from;
	*from += *n + 1;
	return true;
}

bool tune_record_key(const blk_kernel *k, const uint64_t *bits, uint64_t promises, cache_key *out)
{
	growing h = {0};
	head(k, bits, promises, &h);
	if (!h.failed) *out = cache_digest(h.at, h.n);
	free(h.at);
	return !h.failed;
}

void tune_record_read(const blk_kernel *k, const uint64_t *bits, uint64_t promises, tune_result *results)
{
	growing h = {0};
	cache c;
	if (!cache_beside(&k->head.device->cache, "tune", &c)) return;
	head(k, bits, promises, &h);
	size_t from = 0, to = 0, n;
	const char *at;
	line l;
	char *record = h.failed ? NULL : load(&c, &h, &from, &to);
	while (record && next_line(record, &from, to, &at, &n))
		if (read_line(at, n, &l)) take_line(k, &l, results);
	free(record);
	free(h.at);
	cache_close(&c);
}

/* ---- The nearest record ---- */

typedef struct nearest {
	const blk_kernel *kernel;
	const uint64_t *bits;
	uint64_t promises;
	const tune_result *results; /* what is known to be no good for this key is not taken */
	cache *cache;
	growing head; /* of the kernel */
	uint32_t configuration;
	double distance;
	bool same_promises;
	cache_key file;
	char *where; /* "n=4096", malloc'ed */
} nearest;

/* Doublings between two values of a key; what is no integer is near only where it is the same. */
static double apart(unsigned code, uint64_t a, uint64_t b)
{
	enum { OTHER = 64 };
	if (a == b) return 0;
	if (code < BLK_TYPE_I8 || code > BLK_TYPE_U64) return OTHER;
	scalar s = (scalar)code;
	double x = scalar_is_signed(s) ? (double)scalar_sign_extend(s, a) : (double)a;
	double y = scalar_is_signed(s) ? (double)scalar_sign_extend(s, b) : (double)b;
	return fabs(log2(x < 1 ? 1 : x) - log2(y < 1 ? 1 : y));
}

/* The rest of a head: the promises and a value for each key.  False: it has other keys. */
static bool read_place(
	const nearest *at, const char *record, size_t *from, size_t to, double *distance, bool *same, growing *where)
{
	const blk_kernel *k = at->kernel;
	const char *l;
	size_t n;
	if (!next_line(record, from, to, &l, &n) || strncmp(l, "promises ", 9) != 0) return false;
	*same = strtoull(l + 9, NULL, 16) == at->promises;
	*distance = 0;
	for (uint32_t i = 0; i < k->tuner->nkeys; i++) {
		uint32_t parameter = k->tuner->keys[i].parameter;
		unsigned code = parameter == UINT32_MAX ? BLK_TYPE_I64 : k->sig->parameters[parameter].code;
		char name[300];
		int length = snprintf(name, sizeof name, "key %.250s ", tune_key_name(k, i));
		if (!next_line(record, from, to, &l, &n) || strncmp(l, name, (size_t)length) != 0) return false;
		*distance += apart(code, tune_key_value(k, i, at->bits), strtoull(l + length, NULL, 10));
		grow_text(where, i ? "," : "");
		grow_bytes(where, l + 4, (size_t)length - 5);
		grow_text(where, "=");
		grow_bytes(where, l + length, n - (size_t)length);
	}
	return !where->failed;
}

static uint32_t best_listed(const nearest *at, const char *record, size_t from, size_t to)
{
	const signature *s = at->kernel->sig;
	uint32_t best = TUNE_NONE;
	double ms = INFINITY;
	const char *text;
	size_t n;
	line l;
	while (next_line(record, &from, to, &text, &n)) {
		if (!read_line(text, n, &l) || l.verdict != BLK_TUNE_GOOD || !(l.ms < ms)) continue;
		for (uint32_t i = 0; i < s->nconfigurations; i++) {
			const char *name = s->configurations[i];
			if (strlen(name) != l.nname || memcmp(name, l.name, l.nname) != 0) continue;
			if (at->results[i].verdict != BLK_TUNE_UNKNOWN && at->results[i].verdict != BLK_TUNE_GOOD)
				continue;
			best = i;
			ms = l.ms;
		}
	}
	return best;
}

/* Near, then of the same promises, then by the file's name: one answer, in whatever order they are met. */
static bool nearer(const nearest *at, double distance, bool same, const cache_key *file)
{
	if (at->configuration == TUNE_NONE || distance != at->distance)
		return at->configuration == TUNE_NONE || distance < at->distance;
	if (same != at->same_promises) return same;
	return memcmp(file->bytes, at->file.bytes, sizeof file->bytes) < 0;
}

static void look_at(void *context, const cache_key *file)
{
	nearest *at = context;
	char *record = NULL;
	growing where = {0};
	size_t n = 0, whole = 0, from = at->head.n;
	double distance;
	bool same;
	if (!cache_get_text(at->cache, file, &record, &n)) return;
	size_t body = strlen(record) == n ? tune_record_verified(record, n, &whole) : 0;
	if (body && strncmp(record, at->head.at, from) == 0 &&
		read_place(at, record, &from, body, &distance, &same, &where) && nearer(at, distance, same, file)) {
		uint32_t best = best_listed(at, record, from, body);
		if (best != TUNE_NONE) {
			at->configuration = best;
			at->distance = distance;
			at->same_promises = same;
			at->file = *file;
			free(at->where);
			at->where = where.at;
			where.at = NULL;
		}
	}
	free(where.at);
	free(record);
}

uint32_t tune_record_nearest(
	const blk_kernel *k, const uint64_t *bits, uint64_t promises, const tune_result *results, char **where)
{
	cache c;
	nearest at = {.kernel = k,
		.bits = bits,
		.promises = promises,
		.results = results,
		.cache = &c,
		.configuration = TUNE_NONE};
	*where = NULL;
	if (!cache_beside(&k->head.device->cache, "tune", &c)) return TUNE_NONE;
	head_of_kernel(k, &at.head);
	if (!at.head.failed) cache_each(&c, look_at, &at);
	free(at.head.at);
	cache_close(&c);
	*where = at.where;
	return at.configuration;
}

/* ---- Writing ---- */

typedef struct span_of_lines {
	const char *at;
	size_t n;
} span_of_lines;

static bool among(span_of_lines lines, const line *wanted)
{
	size_t from = 0, n;
	const char *at;
	line l;
	while (next_line(lines.at, &from, lines.n, &at, &n))
		if (read_line(at, n, &l) && l.nname == wanted->nname && memcmp(l.name, wanted->name, l.nname) == 0)
			return true;
	return false;
}

/* The lines of `add` that are whole and that `unless` has not. */
static void put_lines(growing *t, span_of_lines add, span_of_lines unless)
{
	size_t from = 0, n;
	const char *at;
	line l;
	while (next_line(add.at, &from, add.n, &at, &n))
		if (read_line(at, n, &l) && !among(unless, &l))
			put_line(t, l.verdict, l.ms, l.name, l.nname, l.reason, l.nreason);
}

/* Stores lines under a head, with those that the file has besides; where both know one, `ours` says who is right. */
static bool merge(cache *c, const growing *h, span_of_lines lines, bool ours)
{
	size_t from = 0, to = 0;
	growing out = {0};
	char *old = load(c, h, &from, &to);
	span_of_lines there = {old ? old + from : "", to - from}, none = {"", 0};
	grow_bytes(&out, h->at, h->n);
	put_lines(&out, ours ? lines : there, none);
	put_lines(&out, ours ? there : lines, ours ? lines : there);
	finish(&out);
	cache_key key = cache_digest(h->at, h->n);
	bool good = !out.failed && cache_put_text(c, &key, out.at, out.n);
	free(old);
	free(out.at);
	return good;
}

void tune_record_write(const blk_kernel *k, const uint64_t *bits, uint64_t promises, tune_result *results)
{
	growing h = {0}, lines = {0};
	cache c;
	if (!cache_beside(&k->head.device->cache, "tune", &c)) return;
	head(k, bits, promises, &h);
	grow_text(&lines, "");
	for (uint32_t i = 0; i < k->sig->nconfigurations; i++) {
		const tune_result *r = &results[i];
		const char *name = k->sig->configurations[i];
		/* A misfit is said of these arguments, not of their key. */
		if (r->verdict != BLK_TUNE_UNKNOWN && r->verdict != BLK_TUNE_MISFIT)
			put_line(&lines, r->verdict, r->ms, name, strlen(name), r->reason,
				r->reason ? strlen(r->reason) : 0);
	}
	if (!h.failed && !lines.failed && lines.n) merge(&c, &h, (span_of_lines){lines.at, lines.n}, true);
	free(lines.at);
	free(h.at);
	cache_close(&c);
}

bool tune_record_merge(cache *c, const char *record, size_t head_bytes, size_t body)
{
	growing h = {0};
	grow_bytes(&h, record, head_bytes);
	bool good = !h.failed && merge(c, &h, (span_of_lines){record + head_bytes, body - head_bytes}, false);
	free(h.at);
	return good;
}

/* The value of the head's fact; *n: its length. */
static const char *head_fact(const char *record, const char *name, size_t *n)
{
	char mark[32];
	int length = snprintf(mark, sizeof mark, "\n%s ", name);
	const char *found = strstr(record, mark);
	*n = found ? strcspn(found + length, "\n") : 0;
	return found ? found + length : "";
}

char *tune_record_label(cache *c, const char *name)
{
	char *record = NULL, *label = NULL;
	size_t n = 0, whole = 0, nkernel, ntarget;
	cache_key key = {{0}};
	for (int i = 0; i < 16; i++) sscanf(name + 2 * i, "%2hhx", &key.bytes[i]);
	if (!cache_get_text(c, &key, &record, &n)) return NULL;
	if (strlen(record) == n && tune_record_verified(record, n, &whole) && whole == n) {
		const char *kernel = head_fact(record, "kernel", &nkernel);
		const char *target = head_fact(record, "target", &ntarget);
		if ((label = malloc(nkernel + ntarget + 2)))
			sprintf(label, "%.*s\n%.*s", (int)nkernel, kernel, (int)ntarget, target);
	}
	free(record);
	return label;
}
