/* Packages: every variant of a source's kernels compiled, side by side on all processors, and put into one file.
 *
 *   kernels x configurations (the defaults first) x targets x promises  --jobs-->  entries  --package_encode-->  bytes
 *
 * A job is one call of blkc_compile(); jobs share nothing but the counter that deals them out, and entries are taken in
 * the jobs' order, so that the bytes do not depend on how many threads there were. */
#include "tool.h"

#include "package/defines.h"
#include "package/package.h"
#include "package/signature.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64, LEAVE_OUT_AT_MOST = 4 };

/* A kernel, for one set of values where its launches compute some. */
typedef struct packed_kernel {
	signature *sig;
	char *name; /* as kernel_value_name() has it, malloc'ed; null: the signature's */
	blkc_define *values;
	size_t nvalues;
	bool usual; /* nobody named the values */
} packed_kernel;

typedef struct job {
	const packed_kernel *packed;
	const signature *kernel; /* its */
	const char *configuration, *target;
	uint64_t promises;
	int status; /* of the compile */
	char *signature, *diagnostics;
	void *payload;
	size_t payload_bytes;
	bool left_out; /* its configuration does not compile for this target */
} job;

typedef struct build {
	const tool_package_request *request;
	char *text;
	size_t text_bytes;
	packed_kernel *kernels;
	size_t nkernels, kernels_room;
	job *jobs;
	size_t njobs, room;
	atomic_size_t next;
	bool failed; /* out of memory */
} build;

/* ---- Which variants ---- */

static bool is_pointer(const signature_parameter *p)
{
	return p->code == BLK_TYPE_POINTER;
}
static bool is_integer(const signature_parameter *p)
{
	return p->code >= BLK_TYPE_I8 && p->code <= BLK_TYPE_U64;
}

/* The bit of each parameter, 255 where there is none. */
static void deal_bits(const signature *s, uint8_t *bits)
{
	unsigned next = 0;
	for (uint32_t i = 0; i < s->nparameters; i++)
		bits[i] = (uint8_t)package_promise_bit(
			is_pointer(&s->parameters[i]), is_integer(&s->parameters[i]), &next);
}

static void add_mask(uint64_t *masks, uint32_t *n, uint64_t mask)
{
	for (uint32_t i = 0; i < *n; i++)
		if (masks[i] == mask) return;
	masks[(*n)++] = mask;
}

/* What --specialize says of this kernel's parameters. */
static uint64_t promised(const blkc_request *r, const signature *s, const uint8_t *bits)
{
	uint64_t mask = 0;
	unsigned step = signature_step(s);
	for (size_t k = 0; k < r->npromises; k++)
		for (uint32_t i = 0; i < s->nparameters; i++) {
			const signature_parameter *p = &s->parameters[i];
			uint32_t by = r->promises[k].divisible;
			if (bits[i] == 255 || strcmp(p->name, r->promises[k].name) != 0) continue;
			uint64_t said = by % step == 0 ? PROMISE_STEP : 0;
			if (by == 16) said = PROMISE_16;
			if (r->promises[k].is_one) said = PROMISE_ONE;
			if (is_pointer(p)) said = 1;
			mask |= said << bits[i];
		}
	return mask;
}

/* The usual promises: none; pointers aligned; that and all integers divisible by 16, or by the step, which leaves the
 * widest accesses; and, of a few integers, all but one by the step, because a number of rows is rarely as round as the
 * rows are.  One more for --specialize. */
static uint32_t choose_masks(const blkc_request *r, const signature *s, bool cpu, uint64_t *masks)
{
	uint8_t bits[SIGNATURE_PARAMETERS];
	uint64_t pointers = 0, first = 0; /* the lowest bits of the integers */
	uint32_t n = 0;
	deal_bits(s, bits);
	for (uint32_t i = 0; i < s->nparameters; i++) {
		if (bits[i] == 255) continue;
		*(is_pointer(&s->parameters[i]) ? &pointers : &first) |= UINT64_C(1) << bits[i];
	}
	uint64_t by_16 = first * PROMISE_16, by_step = signature_step(s) < 16 ? first * PROMISE_STEP : by_16;
	add_mask(masks, &n, 0);
	if (!cpu) add_mask(masks, &n, pointers);
	add_mask(masks, &n, pointers | by_16);
	if (!cpu) add_mask(masks, &n, pointers | by_step);
	if (!cpu && __builtin_popcountll(first) <= LEAVE_OUT_AT_MOST)
		for (uint64_t left = first; left; left &= left - 1)
			add_mask(masks, &n, pointers | (by_step & ~((left & (0 - left)) * PROMISE_16)));
	add_mask(masks, &n, promised(r, s, bits));
	return n;
}

static bool add_jobs(build *b, const packed_kernel *packed, const char *configuration)
{
	const tool_package_request *r = b->request;
	const signature *kernel = packed->sig;
	for (size_t t = 0; t < r->ntargets; t++) {
		uint64_t masks[PACKAGE_MAX_MASKS];
		uint32_t n = choose_masks(r->base, kernel, strcmp(r->targets[t], "cpu") == 0, masks);
		for (uint32_t i = 0; i < n; i++) {
			if (b->njobs == b->room) {
				size_t room = b->room ? 2 * b->room : 64;
				job *more = realloc(b->jobs, room * sizeof *more);
				if (!more) return false;
				b->jobs = more;
				b->room = room;
			}
			b->jobs[b->njobs++] = (job){.packed = packed,
				.kernel = kernel,
				.configuration = configuration,
				.target = r->targets[t],
				.promises = masks[i],
				.status = -1};
		}
	}
	return true;
}

/* ---- For which values ---- */

/* Takes the signature and the values, on failure too. */
static bool add_kernel(build *b, signature *s, blkc_define *values, const char *name)
{
	packed_kernel *more = b->kernels;
	char *copy = name ? strdup(name) : NULL;
	if (b->nkernels == b->kernels_room) {
		size_t room = b->kernels_room ? 2 * b->kernels_room : 16;
		if ((more = realloc(b->kernels, room * sizeof *more))) b->kernels_room = room;
	}
	if (more) b->kernels = more;
	if (!more || (name && !copy)) {
		signature_free(s);
		free(values);
		free(copy);
		b->failed = true;
		return false;
	}
	b->kernels[b->nkernels++] =
		(packed_kernel){.sig = s, .name = copy, .values = values, .nvalues = values ? s->ncomputed : 0};
	return true;
}

enum { VALUE_ROOM = 24, MOST_VALUES = 64 }; /* of one constant, beside those that are named */

typedef struct value_list {
	char at[MOST_VALUES][VALUE_ROOM];
	size_t n;
	bool named;
} value_list;

/* What --values names; else both of a bool, and the powers of two within bounds; else what follows from the others. */
static bool list_values(const tool_package_request *r, const signature_computed *c, value_list *l)
{
	l->n = 0;
	l->named = false;
	for (size_t i = 0; i < r->nvalues; i++) {
		if (strcmp(r->values[i].name, c->name) != 0) continue;
		l->named = true;
		if (l->n == MOST_VALUES || strlen(r->values[i].value) >= VALUE_ROOM) return false;
		snprintf(l->at[l->n++], VALUE_ROOM, "%s", r->values[i].value);
	}
	if (l->named) return true;
	if (c->type == BLK_TYPE_BOOL) {
		l->n = 2;
		strcpy(l->at[0], "true");
		strcpy(l->at[1], "false");
	}
	for (int64_t v = 1; c->bounded && v > 0 && v <= c->high; v = v <= INT64_MAX / 2 ? 2 * v : 0)
		if (v >= c->low) snprintf(l->at[l->n++], VALUE_ROOM, "%lld", (long long)v);
	return true;
}

static const char *constant_of(const signature *s, const char *name)
{
	const signature_constant *c = kernel_constant(s, name);
	return c ? c->value : "";
}

/* The values that a check has found, those included that follow from what was asked for. */
static blkc_define *values_of(const signature *s)
{
	blkc_define *out = calloc(s->ncomputed + 1, sizeof *out);
	for (uint32_t i = 0; out && i < s->ncomputed; i++)
		out[i] = (blkc_define){s->computed[i].name, constant_of(s, s->computed[i].name)};
	return out;
}

static bool is_known(const build *b, const char *name)
{
	for (size_t i = 0; i < b->nkernels; i++)
		if (b->kernels[i].name && strcmp(b->kernels[i].name, name) == 0) return true;
	return false;
}

/* One set of values, checked; what does not compile is an error only where somebody named it. */
static int add_checked(build *b, const signature *kernel, const blkc_define *asked, size_t n, bool named)
{
	kernel_defines c;
	blkc_request r = *b->request->base;
	if (!kernel_defines_make(kernel, r.defines, r.ndefines, NULL, &c)) return b->failed = true, 1;
	r.text = b->text;
	r.text_bytes = b->text_bytes;
	r.kernel = kernel->kernel;
	r.defines = c.list;
	r.ndefines = c.n;
	r.values = asked;
	r.nvalues = n;
	r.emit = BLKC_EMIT_CHECK;
	r.npromises = 0;
	blkc_result *result = blkc_compile(&r);
	signature *s = NULL;
	int status = 1;
	if (!result || result->status > 1)
		b->failed = true;
	else if (result->status && named)
		fprintf(stderr, "%s", result->diagnostics);
	else if (result->status)
		status = 0;
	else if (signature_parse(result->kernels[0].signature, strlen(result->kernels[0].signature), &s) == BLK_OK)
		status = 0;
	blkc_result_free(result);
	kernel_defines_free(&c);
	if (!s) return status;
	blkc_define *values = values_of(s);
	char *name = values ? kernel_value_name(s->kernel, values, s->ncomputed) : NULL;
	bool good =
		name && (is_known(b, name) ? (signature_free(s), free(values), true) : add_kernel(b, s, values, name));
	if (good && b->kernels[b->nkernels - 1].values == values) b->kernels[b->nkernels - 1].usual = !named;
	free(name);
	if (!good) b->failed = true;
	return !good;
}

/* The product of the lists, the last one fastest. */
static int add_product(build *b, const signature *s, const value_list *lists)
{
	blkc_define asked[SIGNATURE_COMPUTED];
	size_t at[SIGNATURE_COMPUTED] = {0};
	for (;;) {
		size_t n = 0;
		bool named = false;
		for (uint32_t i = 0; i < s->ncomputed; i++) {
			if (lists[i].n) asked[n++] = (blkc_define){s->computed[i].name, lists[i].at[at[i]]};
			named |= lists[i].named;
		}
		int status = add_checked(b, s, asked, n, named);
		if (status) return status;
		uint32_t i = s->ncomputed;
		while (i > 0 && (!lists[i - 1].n || ++at[i - 1] == lists[i - 1].n)) at[--i] = 0;
		if (i == 0) return 0;
	}
}

/* Takes the signature. */
static int add_values(build *b, signature *s)
{
	value_list *lists = calloc(s->ncomputed, sizeof *lists);
	size_t product = 1, known = 0;
	int status = lists ? 0 : (b->failed = true, 1);
	for (uint32_t i = 0; !status && i < s->ncomputed; i++) {
		if (!list_values(b->request, &s->computed[i], &lists[i]))
			status = (fprintf(stderr, "blkc: more than %d values of %s, or a long one\n", MOST_VALUES,
					  s->computed[i].name),
				2);
		known += lists[i].n > 0;
		if (lists[i].n) product *= lists[i].n;
		if (product > TOOL_MAX_VARIANTS) product = TOOL_MAX_VARIANTS + 1;
	}
	if (!status && (!known || product > TOOL_MAX_VARIANTS)) {
		fprintf(stderr,
			"blkc: %s: launches of kernel %s compute %s, so a package holds code for chosen values of it: "
			"--values=%s=256,512, or bounds in the source, whose powers of two are the usual ones\n",
			b->request->base->name, s->kernel, s->computed[0].name, s->computed[0].name);
		status = 1;
	}
	size_t before = b->nkernels;
	if (!status) status = add_product(b, s, lists);
	if (!status && b->nkernels == before)
		status = (fprintf(stderr, "blkc: kernel %s compiles for none of the values of %s\n", s->kernel,
				  s->computed[0].name),
			1);
	free(lists);
	signature_free(s);
	return status;
}

/* What --values names must be known. */
static int check_values(const tool_package_request *r)
{
	for (size_t i = 0; i < r->nvalues; i++) {
		bool known = false;
		for (size_t k = 0; k < r->checked->nkernels && !known; k++) {
			char fact[300];
			snprintf(fact, sizeof fact, "\ncomputed %.256s ", r->values[i].name);
			known = strstr(r->checked->kernels[k].signature, fact) != NULL;
		}
		if (known) continue;
		fprintf(stderr, "blkc: --values=%s=%s: no kernel computes %s at a launch\n", r->values[i].name,
			r->values[i].value, r->values[i].name);
		return 2;
	}
	return 0;
}

/* ---- All ---- */

/* All jobs; the count is checked before memory grows with it. */
static int plan(build *b)
{
	const blkc_result *checked = b->request->checked;
	size_t total = 0;
	int status = 0;
	for (size_t i = 0; !status && i < checked->nkernels; i++) {
		const char *s = checked->kernels[i].signature;
		signature *kernel;
		if (signature_parse(s, strlen(s), &kernel)) return fprintf(stderr, "blkc: %s\n", blk_error()), 1;
		status = kernel->ncomputed ? add_values(b, kernel) : add_kernel(b, kernel, NULL, NULL) ? 0 : 1;
	}
	if (status) return status;
	for (size_t i = 0; i < b->nkernels; i++) total += b->kernels[i].sig->nconfigurations + 1;
	if (total * b->request->ntargets > TOOL_MAX_VARIANTS) {
		fprintf(stderr,
			"blkc: %s: %zu configurations of %zu kernels for %zu targets are too many for one package (at "
			"most %d "
			"variants); choose with --kernel, -D, --values or --target\n",
			b->request->base->name, total, b->nkernels, b->request->ntargets, TOOL_MAX_VARIANTS);
		return 1;
	}
	for (size_t i = 0; i < b->nkernels; i++) {
		const packed_kernel *k = &b->kernels[i];
		if (!add_jobs(b, k, "")) return b->failed = true, 1;
		for (uint32_t c = 0; c < k->sig->nconfigurations; c++)
			if (!add_jobs(b, k, k->sig->configurations[c])) return b->failed = true, 1;
	}
	if (b->njobs > TOOL_MAX_VARIANTS) {
		fprintf(stderr,
			"blkc: %s: %zu variants are too many for one package (at most %d); choose with --kernel, -D, "
			"--values or "
			"--target\n",
			b->request->base->name, b->njobs, TOOL_MAX_VARIANTS);
		return 1;
	}
	return 0;
}

/* ---- One variant ---- */

static size_t promises_of(const job *j, unsigned step, blkc_promise *out)
{
	uint8_t bits[SIGNATURE_PARAMETERS];
	size_t n = 0;
	deal_bits(j->kernel, bits);
	for (uint32_t i = 0; i < j->kernel->nparameters; i++) {
		const signature_parameter *p = &j->kernel->parameters[i];
		if (bits[i] == 255) continue;
		uint64_t said = j->promises >> bits[i];
		if (said & 1)
			out[n++] = (blkc_promise){.name = p->name, .divisible = 16};
		else if (is_integer(p) && said & PROMISE_STEP)
			out[n++] = (blkc_promise){.name = p->name, .divisible = step};
		if (is_integer(p) && said & PROMISE_ONE) out[n++] = (blkc_promise){.name = p->name, .is_one = 1};
	}
	return n;
}

/* A copy without the lines that begin with one of the marks: a signature without the source's configurations, PTX
 * without the signature, which stands beside it.  Variants that differ in nothing else are then stored once. */
static char *without_lines(const char *text, const char *const *marks, size_t *bytes)
{
	size_t n = strlen(text), used = 0;
	char *out = malloc(n + 1);
	for (const char *line = text; out && *line;) {
		const char *end = strchr(line, '\n');
		size_t whole = end ? (size_t)(end - line) + 1 : strlen(line);
		bool goes = false;
		for (const char *const *m = marks; *m; m++) goes = goes || strncmp(line, *m, strlen(*m)) == 0;
		if (!goes) {
			memcpy(out + used, line, whole);
			used += whole;
		}
		line += whole;
	}
	if (out) out[used++] = 0;
	if (bytes) *bytes = used;
	return out;
}

static bool keep(job *j, const blkc_result *r, unsigned kind)
{
	const blkc_artifact *a = NULL;
	for (size_t i = 0; i < r->nartifacts; i++)
		if (r->artifacts[i].kind == kind) a = &r->artifacts[i];
	if (!a) return false;
	static const char *const choices[] = {"configuration ", "fits ", "time ", NULL};
	static const char *const head[] = {"// blk: ", NULL};
	j->signature = without_lines(r->kernels[0].signature, choices, NULL);
	if (kind == BLKC_EMIT_PTX) {
		j->payload = without_lines(a->bytes, head, &j->payload_bytes);
	} else {
		j->payload = malloc(a->nbytes + 1);
		if (j->payload) memcpy(j->payload, a->bytes, a->nbytes);
		j->payload_bytes = a->nbytes;
	}
	return j->signature && j->payload;
}

/* Returns the step of the code's own parameters; 0: there is no code. */
static unsigned compile(build *b, job *j, unsigned step)
{
	const blkc_request *base = b->request->base;
	bool cpu = strcmp(j->target, "cpu") == 0;
	blkc_promise promises[2 * SIGNATURE_PARAMETERS];
	kernel_defines c;
	bool good = kernel_defines_make(j->kernel, base->defines, base->ndefines, j->configuration, &c);
	blkc_request r = *base;
	r.text = b->text;
	r.text_bytes = b->text_bytes;
	r.target = j->target;
	r.cpu = cpu ? "x86-64" : NULL;
	r.kernel = j->kernel->kernel;
	r.defines = c.list;
	r.ndefines = c.n;
	r.values = j->packed->values;
	r.nvalues = j->packed->nvalues;
	r.promises = promises;
	r.npromises = promises_of(j, step, promises);
	r.emit = cpu ? BLKC_EMIT_OBJECT : BLKC_EMIT_PTX;
	r.print_after = NULL;
	r.time_passes = 0;
	blkc_result *result = good ? blkc_compile(&r) : NULL;
	j->status = result ? result->status : 3;
	unsigned own = 0;
	signature *s = NULL;
	if (result && result->status) j->diagnostics = strdup(result->diagnostics);
	if (result && !result->status) {
		const char *text = result->nkernels ? result->kernels[0].signature : "";
		if (signature_parse(text, strlen(text), &s) == 0) own = signature_step(s);
		if (!own || (own == step && !keep(j, result, r.emit))) j->status = 3;
	}
	signature_free(s);
	blkc_result_free(result);
	kernel_defines_free(&c);
	return own;
}

/* A configuration may name the elements' type, and with it the step. */
static void run(build *b, job *j)
{
	unsigned step = signature_step(j->kernel), own = compile(b, j, step);
	if (own && own != step && compile(b, j, own) != own) j->status = 3;
}

static void *work(void *context)
{
	build *b = context;
	for (size_t i; (i = atomic_fetch_add(&b->next, 1)) < b->njobs;) run(b, &b->jobs[i]);
	return NULL;
}

static void run_all(build *b)
{
	pthread_t threads[MAX_THREADS];
	cpu_set_t set;
	unsigned n = b->request->threads, started = 0;
	if (!n) n = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
	if (n > MAX_THREADS) n = MAX_THREADS;
	if (n > b->njobs) n = (unsigned)b->njobs;
	while (started + 1 < n && pthread_create(&threads[started], NULL, work, b) == 0) started++;
	work(b);
	for (unsigned i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* ---- The file ---- */

static const char *name_of(const packed_kernel *k)
{
	return k->name ? k->name : k->sig->kernel;
}

static bool same_code(const job *a, const job *b, bool any_configuration)
{
	return a->packed == b->packed && (any_configuration || a->configuration == b->configuration) &&
	       a->target == b->target;
}

/* The defaults must compile; another configuration that does not is left out, with all its variants for that target,
 * and so is a value that nobody named, with all its configurations. */
static int judge(build *b)
{
	for (size_t i = 0; i < b->njobs; i++) {
		job *j = &b->jobs[i];
		if (j->status == 0) continue;
		if (j->status == 3) return b->failed = true, 1;
		bool usual = j->packed->usual && !j->configuration[0];
		if (j->status != 1 || (!j->configuration[0] && !usual)) {
			fprintf(stderr, "%s", j->diagnostics ? j->diagnostics : "");
			return fprintf(stderr, "blkc: kernel %s does not compile for %s\n", j->kernel->kernel,
				       j->target),
			       1;
		}
		if (!j->left_out)
			fprintf(stderr, "blkc: note: %s%s%s%s is left out for %s: %.*s\n",
				usual ? "" : "configuration ", usual ? "" : j->configuration,
				usual ? "kernel " : " of kernel ", name_of(j->packed), j->target,
				(int)strcspn(j->diagnostics ? j->diagnostics : "", "\n"),
				j->diagnostics ? j->diagnostics : "");
		for (size_t k = 0; k < b->njobs; k++)
			if (same_code(&b->jobs[k], j, usual)) b->jobs[k].left_out = true;
	}
	return 0;
}

/* Every kernel has some code left. */
static int check_kernels(const build *b)
{
	for (size_t i = 0; i < b->nkernels; i++) {
		const char *name = b->kernels[i].sig->kernel;
		bool any = false;
		for (size_t k = 0; k < b->njobs && !any; k++)
			any = !b->jobs[k].left_out && strcmp(b->jobs[k].kernel->kernel, name) == 0;
		if (!any) return fprintf(stderr, "blkc: kernel %s compiles for none of its values\n", name), 1;
	}
	return 0;
}

static void *assemble(build *b, size_t *bytes, int *status)
{
	package p = {.producer = blkc_version()};
	const char *why = NULL;
	p.entries = calloc(b->njobs + 1, sizeof *p.entries);
	for (size_t i = 0; p.entries && i < b->njobs; i++) {
		const job *j = &b->jobs[i];
		if (j->left_out) continue;
		p.entries[p.nentries++] = (package_entry){.kernel = name_of(j->packed),
			.configuration = j->configuration,
			.target = j->target,
			.signature = j->signature,
			.promises = j->promises,
			.kind = strcmp(j->target, "cpu") == 0 ? PACKAGE_OBJECT : PACKAGE_PTX,
			.payload = j->payload,
			.payload_bytes = j->payload_bytes};
	}
	package_hash(b->text, b->text_bytes, p.source_hash);
	void *out = p.entries ? package_encode(&p, bytes, &why) : NULL;
	free(p.entries);
	if (!out && why) fprintf(stderr, "blkc: %s: no package: %s\n", b->request->base->name, why);
	if (!out && !why) b->failed = true;
	*status = out ? 0 : 1;
	return out;
}

static int read_source(build *b)
{
	const blkc_request *r = b->request->base;
	if (r->text) {
		b->text = malloc(r->text_bytes + 1);
		if (b->text) memcpy(b->text, r->text, r->text_bytes);
		b->text_bytes = r->text_bytes;
		return b->text ? 0 : (b->failed = true, 1);
	}
	FILE *f = fopen(r->name, "rb");
	size_t room = 0, got = 1;
	while (f && got) {
		if (b->text_bytes + 1 >= room) {
			char *more = realloc(b->text, room = room ? 2 * room : 65536);
			if (!more) break;
			b->text = more;
		}
		got = fread(b->text + b->text_bytes, 1, room - b->text_bytes - 1, f);
		b->text_bytes += got;
	}
	bool good = f && !got && !ferror(f);
	if (!good) fprintf(stderr, "blkc: cannot read '%s': %s\n", r->name, strerror(errno));
	if (f) fclose(f);
	return !good;
}

/* What a package can say of a parameter is aligned to 16, divisible by 16 or by the kernel's step, equal to 1. */
static bool packs(const signature *s, const blkc_promise *q)
{
	if (q->is_one || q->divisible == 16) return true;
	for (uint32_t i = 0; i < s->nparameters; i++)
		if (is_integer(&s->parameters[i]) && strcmp(s->parameters[i].name, q->name) == 0)
			return q->divisible == signature_step(s);
	return false;
}

static int check_promises(const build *b)
{
	const blkc_request *r = b->request->base;
	for (size_t i = 0; i < r->npromises; i++) {
		bool known = false;
		for (size_t k = 0; k < b->nkernels && !known; k++) known = packs(b->kernels[k].sig, &r->promises[i]);
		if (known) continue;
		fprintf(stderr,
			"blkc: --specialize=%s%%%u: a package knows NAME%%16, NAME=1 and, of integers, how many of the "
			"smallest elements make 16 bytes\n",
			r->promises[i].name, r->promises[i].divisible);
		return 2;
	}
	return 0;
}

void *tool_package(const tool_package_request *request, size_t *bytes, int *status)
{
	build b = {.request = request};
	void *out = NULL;
	*status = 0;
	if (!request->checked->nkernels)
		*status = (fprintf(stderr, "blkc: %s has no kernel to pack\n", request->base->name), 1);
	if (!*status) *status = read_source(&b);
	if (!*status) *status = check_values(request);
	if (!*status) *status = plan(&b);
	if (!*status) *status = check_promises(&b);
	if (!*status) {
		run_all(&b);
		*status = judge(&b);
		if (!*status) *status = check_kernels(&b);
	}
	if (!*status) out = assemble(&b, bytes, status);
	if (b.failed) fprintf(stderr, "blkc: out of memory\n");
	for (size_t i = 0; i < b.njobs; i++) {
		free(b.jobs[i].signature);
		free(b.jobs[i].diagnostics);
		free(b.jobs[i].payload);
	}
	for (size_t i = 0; i < b.nkernels; i++) {
		signature_free(b.kernels[i].sig);
		free(b.kernels[i].name);
		free(b.kernels[i].values);
	}
	free(b.jobs);
	free(b.kernels);
	free(b.text);
	return out;
}
