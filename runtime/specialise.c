/* From a kernel and a set of promises to loaded code: the cache first, the compiler where it must be.
 *
 * A cache key is the digest of a list of facts, each with its length: what is asked for, the source, the defines, the
 * target, the compiler, the driver or processor.  Files that the source imports are facts too, but only the compiler
 * knows which they are; so an entry names them with their digests, and holds only while they read the same. */
#include "package/defines.h"
#include "base/growing.h"
#include "cache/image.h"
#include "internal.h"
#include "base/said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IMPORT = 16 << 20 };

/* ---- Keys ---- */

/* A fact: its length, then itself. */
static void add_bytes(growing *f, const void *bytes, size_t n)
{
	uint64_t length = n;
	grow_bytes(f, &length, sizeof length);
	grow_bytes(f, bytes, n);
}
static void add_text(growing *f, const char *s)
{
	add_bytes(f, s, strlen(s));
}
static void add_number(growing *f, uint64_t v)
{
	add_bytes(f, &v, sizeof v);
}

static void add_defines(growing *f, const blk_define *defines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		add_text(f, defines[i].name);
		add_text(f, defines[i].value);
	}
}

typedef struct wanted {     /* of a module: */
	const char *kernel; /* null: its check */
	uint64_t promises;
	const char *configuration; /* null: none */
	const blk_define *values;  /* of const parameters that a launch computes */
	size_t nvalues;
	bool is_check; /* of the kernel, for its values */
	const package_entry *packed;
} wanted;

/* False: this cannot be cached. */
static bool make_key(const blk_module *m, const wanted *w, cache_key *out)
{
	const blk_device *d = m->head.device;
	const package_entry *packed = w->packed;
	growing f = {0};
	bool compiled = m->is_ptx || packed;
	if (!d->cache.folder || (!d->compiler.identity && !compiled)) return false;
	cache_key source =
		packed ? cache_digest(packed->payload, packed->payload_bytes) : cache_digest(m->text, m->text_bytes);
	add_text(&f, BLK_VERSION);
	add_text(&f, w->kernel ? w->kernel : "");
	add_number(&f, w->kernel ? 1 : 0);
	add_number(&f, w->promises);
	add_text(&f, m->name);
	add_bytes(&f, source.bytes, sizeof source.bytes);
	add_defines(&f, m->defines, m->ndefines);
	if (w->values) add_text(&f, w->is_check ? "check" : "values");
	add_defines(&f, w->values, w->nvalues);
	if (w->configuration) add_text(&f, w->configuration);
	add_text(&f, d->info.target);
	if (d->info.kind == BLK_DEVICE_SIM) add_text(&f, "checks");
	add_number(&f, compiled ? 0 : d->compiler.identity);
	add_number(&f, d->identity);
	if (d->checked && !packed) add_text(&f, "checked");
	if (packed) add_text(&f, packed->signature); /* the same code may be stored for several promises */
	if (!f.failed) *out = cache_digest(f.at, f.n);
	free(f.at);
	return !f.failed;
}

/* ---- Imports ---- */

/* What the file at `path` is now: an import's bytes count, of a library its build does. */
static bool file_now(const blk_device *d, uint32_t kind, const char *path, cache_key *now)
{
	char *bytes = NULL;
	size_t n = 0;
	if (kind == CACHE_LIBRARY) return image_identity(path, now);
	if (!file_read(d->cache.files, path, MAX_IMPORT, &bytes, &n)) return false;
	*now = cache_digest(bytes, n);
	free(bytes);
	return true;
}

/* Every file that the entry depends on is as it was. */
static bool files_hold(const blk_device *d, const cache_entry *e)
{
	for (size_t i = 0; i < e->nsections; i++) {
		const cache_section *s = &e->sections[i];
		cache_key now;
		if (s->kind != CACHE_DEPENDENCY && s->kind != CACHE_LIBRARY) continue;
		if (s->nbytes <= sizeof now) return false;
		const char *path = (const char *)s->bytes + sizeof now;
		if (!file_now(d, s->kind, path, &now) || memcmp(&now, s->bytes, sizeof now) != 0) return false;
	}
	return true;
}

static bool find_entry(blk_device *d, const cache_key *key, cache_entry *e)
{
	if (!cache_get(&d->cache, key, e)) return false;
	if (files_hold(d, e)) return true;
	cache_entry_free(e);
	return false;
}

/* ---- What is stored ---- */

/* Sections under construction; the dependencies' bytes are its own. */
typedef struct parts {
	cache_section *sections;
	size_t n, room;
	bool failed;
} parts;

static void add_part(parts *p, cache_kind kind, const void *bytes, size_t n)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 16;
		cache_section *more = p->failed ? NULL : realloc(p->sections, room * sizeof *more);
		if (!more) {
			p->failed = true;
			return;
		}
		p->sections = more;
		p->room = room;
	}
	p->sections[p->n++] = (cache_section){kind, bytes, n};
}

static void add_file(parts *p, const blk_device *d, cache_kind kind, const char *path)
{
	cache_key now;
	size_t length = strlen(path), before = p->n;
	char *part = malloc(sizeof now + length + 1);
	if (!part || !file_now(d, kind, path, &now)) {
		free(part);
		p->failed = true;
		return;
	}
	memcpy(part, &now, sizeof now);
	memcpy(part + sizeof now, path, length + 1);
	add_part(p, kind, part, sizeof now + length);
	if (p->n == before) free(part);
}

static void add_dependencies(parts *p, const blk_device *d, const blkc_result *r)
{
	for (size_t i = 0; i < r->ndependencies; i++) add_file(p, d, CACHE_DEPENDENCY, r->dependencies[i]);
	if (d->compiler.llvm) add_file(p, d, CACHE_LIBRARY, d->compiler.llvm);
}

/* Puts the entry away and frees the parts; whether that works changes nothing but the next start's time. */
static void store(blk_device *d, const cache_key *key, parts *p, const char *kernel)
{
	char label[512];
	int n = snprintf(label, sizeof label, "%s\n%s", kernel, d->info.target);
	if (n > 0 && (size_t)n < sizeof label) add_part(p, CACHE_LABEL, label, (size_t)n);
	if (key && !p->failed) cache_put(&d->cache, key, p->sections, p->n);
	for (size_t i = 0; i < p->n; i++)
		if (p->sections[i].kind == CACHE_DEPENDENCY || p->sections[i].kind == CACHE_LIBRARY)
			free((void *)p->sections[i].bytes);
	free(p->sections);
}

/* ---- The compiler ---- */

static void add_note(void *context, const char *message)
{
	(void)context;
	note_add("%s\n", message);
}

/* The check of a source and each compile of a kernel say the same of it: what a note has held is not said again. */
static void note_diagnostics(blk_module *m, const char *text)
{
	pthread_mutex_lock(&m->head.device->lock);
	said_tell(&m->said, text, add_note, NULL);
	pthread_mutex_unlock(&m->head.device->lock);
}

/* A limit of the compiler that the environment sets: a number above 0, or "none". */
static blk_status limit_from(const char *name, uint32_t *out)
{
	const char *text = getenv(name);
	char *end = NULL;
	if (!text || !*text) return BLK_OK;
	if (strcmp(text, "none") == 0) return *out = BLKC_NO_LIMIT, BLK_OK;
	unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
	if (!end || *end || n == 0 || n >= BLKC_NO_LIMIT)
		return error_set(BLK_ERROR_ARGUMENT, "%s=%s: a number above 0, or none", name, text);
	*out = (uint32_t)n;
	return BLK_OK;
}

static blk_status set_limits(blkc_request *request)
{
	blk_status status = limit_from("BLK_MAX_CODE", &request->max_code);
	if (!status) status = limit_from("BLK_PTXAS_SECONDS", &request->ptxas_seconds);
	return status ? status : limit_from("BLK_PTXAS_MEMORY", &request->ptxas_megabytes);
}

static blk_status compile(blk_module *m, blkc_request *request, blkc_result **out)
{
	blk_device *d = m->head.device;
	pthread_mutex_lock(&d->lock);
	blk_status status = compiler_load(&d->compiler);
	pthread_mutex_unlock(&d->lock);
	if (!status) status = set_limits(request);
	if (status) return status;
	blkc_result *r = d->compiler.api.compile(request);
	if (!r) return error_memory();
	*out = r;
	switch (r->status) {
	case 0: break;
	case 1: status = error_set(BLK_ERROR_COMPILE, "%s", r->diagnostics); break;
	case 2: status = error_set(BLK_ERROR_ARGUMENT, "the compiler refuses the request: %s", r->diagnostics); break;
	case 3: status = error_set(BLK_ERROR_MEMORY, "the compiler ran out of memory"); break;
	default: status = error_set(BLK_ERROR_COMPILER, "the compiler failed: %s", r->diagnostics); break;
	}
	if (!status) note_diagnostics(m, r->diagnostics);
	if (status) {
		d->compiler.api.result_free(r);
		*out = NULL;
	}
	return status;
}

static blkc_request base_request(const blk_module *m)
{
	return (blkc_request){.size = sizeof(blkc_request),
		.name = m->name,
		.text = m->text,
		.text_bytes = m->text_bytes,
		.check_bounds = m->head.device->checked,
		.target = m->head.device->info.target,
		.checks = m->head.device->info.kind == BLK_DEVICE_SIM};
}

/* ---- The check of a module, and of a kernel for the values that a launch computes ---- */

typedef blk_status (*take_signature)(void *context, const char *text, size_t bytes);

static blk_status check_from_cache(blk_module *m, const cache_entry *e, take_signature take, void *context)
{
	blk_status status = BLK_OK;
	for (size_t i = 0; !status && i < e->nsections; i++) {
		const cache_section *s = &e->sections[i];
		if (s->kind == CACHE_SIGNATURE) status = take(context, s->bytes, s->nbytes);
		if (s->kind == CACHE_NOTES) note_diagnostics(m, s->bytes);
	}
	return status;
}

static blk_status check(blk_module *m, const wanted *w, blkc_request *request, take_signature take, void *context)
{
	blk_device *d = m->head.device;
	cache_key key;
	cache_entry entry;
	bool cached = make_key(m, w, &key);
	if (cached && find_entry(d, &key, &entry)) {
		blk_status status = check_from_cache(m, &entry, take, context);
		cache_entry_free(&entry);
		return status;
	}
	request->emit = BLKC_EMIT_CHECK;
	blkc_result *r = NULL;
	blk_status status = compile(m, request, &r);
	if (status) return status;
	parts p = {0};
	for (size_t i = 0; !status && i < r->nkernels; i++) {
		const char *s = r->kernels[i].signature;
		status = take(context, s, strlen(s));
		add_part(&p, CACHE_SIGNATURE, s, strlen(s));
	}
	if (r->diagnostics && r->diagnostics[0]) add_part(&p, CACHE_NOTES, r->diagnostics, strlen(r->diagnostics));
	add_dependencies(&p, d, r);
	store(d, cached && !status ? &key : NULL, &p, w->kernel ? w->kernel : "");
	d->compiler.api.result_free(r);
	return status;
}

static blk_status add_kernel(void *m, const char *text, size_t bytes)
{
	return module_add_kernel(m, text, bytes);
}

blk_status specialise_check(blk_module *m)
{
	blkc_request request = base_request(m);
	request.defines = (const blkc_define *)m->defines;
	request.ndefines = m->ndefines;
	return check(m, &(wanted){.kernel = NULL}, &request, add_kernel, m);
}

static blk_status read_signature(void *out, const char *text, size_t bytes)
{
	signature **s = out;
	return *s ? BLK_OK : signature_parse(text, bytes, s);
}

blk_status specialise_instance(blk_kernel *k, const blk_define *values, blk_kernel **out)
{
	blk_module *m = k->module;
	kernel_defines c;
	signature *s = NULL;
	wanted w = {.kernel = k->sig->kernel, .values = values, .nvalues = k->sig->ncomputed, .is_check = true};
	if (!kernel_defines_make(k->sig, (const blkc_define *)m->defines, m->ndefines, NULL, &c)) return error_memory();
	blkc_request request = base_request(m);
	request.kernel = k->sig->kernel;
	request.defines = c.list;
	request.ndefines = c.n;
	request.values = (const blkc_define *)values;
	request.nvalues = k->sig->ncomputed;
	blk_status status = check(m, &w, &request, read_signature, &s);
	kernel_defines_free(&c);
	if (!status && !s) status = error_set(BLK_ERROR_COMPILER, "the compiler found no kernel %s", k->sig->kernel);
	if (status) {
		signature_free(s);
		return status;
	}
	return kernel_make(m, s, true, out);
}
_Static_assert(sizeof(blk_define) == sizeof(blkc_define), "a module's defines are the compiler's");

/* ---- Code ---- */

static size_t promises_of(const blk_kernel *k, uint64_t key, blkc_promise *out)
{
	size_t n = 0;
	for (uint32_t i = 0; i < k->nparameters; i++) {
		const launch_parameter *p = &k->launch[i];
		if (p->bit == 255 || (p->code != BLK_TYPE_POINTER && !p->is_integer)) continue;
		const char *name = k->sig->parameters[i].name;
		uint64_t holds = key >> p->bit;
		if (holds & 1)
			out[n++] = (blkc_promise){.name = name, .divisible = 16};
		else if (p->is_integer && holds & PROMISE_ONE)
			out[n++] = (blkc_promise){.name = name, .is_one = 1};
		else if (p->is_integer && holds & PROMISE_STEP)
			out[n++] = (blkc_promise){.name = name, .divisible = p->below_step + 1u};
	}
	return n;
}

enum { KNOWN_OPTIONS = 9 };

/* What code was compiled with, from what it says of itself: its const parameters, its options, its promises. */
typedef struct known_request {
	blkc_define *defines;
	blkc_promise *promises;
	size_t ndefines, npromises;
	char numbers[KNOWN_OPTIONS][16];
} known_request;

static void know_options(known_request *q, const signature *s)
{
	static const struct {
		const char *name;
		uint32_t absent; /* what the signature has where it says nothing */
		bool is_flag;
	} options[KNOWN_OPTIONS] = {{"num_warps", 0, false}, {"num_stages", 0, false}, {"num_ctas", 0, false},
		{"maxnreg", 0, false}, {"max_registers", UINT32_MAX, false}, {"max_spills", UINT32_MAX, false},
		{"max_shared", UINT32_MAX, false}, {"strict", 0, true}, {"launch_pdl", 1, true}};
	for (size_t i = 0; i < KNOWN_OPTIONS; i++) {
		uint32_t v = *kernel_option(s, options[i].name);
		if (v == options[i].absent) continue;
		if (options[i].is_flag)
			snprintf(q->numbers[i], sizeof q->numbers[i], "%s", v ? "true" : "false");
		else
			snprintf(q->numbers[i], sizeof q->numbers[i], "%u", v);
		q->defines[q->ndefines++] = (blkc_define){options[i].name, q->numbers[i]};
	}
}

static bool know_request(known_request *q, const signature *s)
{
	*q = (known_request){.defines = calloc(s->nconstants + KNOWN_OPTIONS, sizeof *q->defines),
		.promises = calloc(2 * s->nparameters + 1, sizeof *q->promises)};
	if (!q->defines || !q->promises) return false;
	for (uint32_t i = 0; i < s->nconstants; i++)
		q->defines[q->ndefines++] = (blkc_define){s->constants[i].name, s->constants[i].value};
	know_options(q, s);
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		if (p->divisible > 1)
			q->promises[q->npromises++] = (blkc_promise){.name = p->name, .divisible = p->divisible};
		if (p->is_one) q->promises[q->npromises++] = (blkc_promise){.name = p->name, .is_one = 1};
	}
	return true;
}

blk_status specialise_page(const blk_kernel *k, const signature *s, blkc_result **out)
{
	known_request q;
	blk_module *m = k->module;
	if (m->is_ptx || m->package)
		return error_set(
			BLK_ERROR_UNSUPPORTED, "a page of kernel %s needs its source, not compiled code", s->kernel);
	blkc_request request = base_request(m);
	blk_status status = know_request(&q, s) ? BLK_OK : error_memory();
	request.kernel = s->kernel;
	request.defines = q.defines;
	request.ndefines = q.ndefines;
	request.promises = q.promises;
	request.npromises = q.npromises;
	request.emit = BLKC_EMIT_HTML;
	if (!status) status = compile(m, &request, out);
	free(q.defines);
	free(q.promises);
	if (!status && !(*out)->nartifacts) {
		m->head.device->compiler.api.result_free(*out);
		*out = NULL;
		status = error_set(BLK_ERROR_COMPILER, "the compiler made no page of kernel %s", s->kernel);
	}
	return status;
}

static const blkc_artifact *artifact(const blkc_result *r, unsigned kind)
{
	for (size_t i = 0; i < r->nartifacts; i++)
		if (r->artifacts[i].kind == kind) return &r->artifacts[i];
	return NULL;
}

static blk_status load_entry(blk_device *d, variant *v, const cache_entry *e)
{
	static const struct {
		cache_kind section;
		unsigned kind;
	} codes[] = {{CACHE_CUBIN, BLKC_EMIT_CUBIN}, {CACHE_OBJECT, BLKC_EMIT_OBJECT},
		{CACHE_PTX, BLKC_EMIT_PTX}}; /* ORDER blk_device_kind */
	const cache_section *s = cache_find(e, CACHE_SIGNATURE), *ptx = cache_find(e, CACHE_PTX);
	const cache_section *code = cache_find(e, codes[d->info.kind].section);
	void *linked = NULL;
	size_t nlinked = 0;
	if (!s || !code) return error_set(BLK_ERROR_FORMAT, "a cache entry without code");
	blk_status status = signature_parse(s->bytes, s->nbytes, &v->sig);
	if (status) return status;
	if (ptx && !(v->ptx = strdup(ptx->bytes))) return error_memory();
	v->from_cache = true;
	if ((status = tensor_maps_prepare(v))) return status;
	return d->backend->load(d, v, codes[d->info.kind].kind, code->bytes, code->nbytes, &linked, &nlinked);
}

/* What a failed attempt left, so that the next can start afresh. */
static void reset(blk_device *d, variant *v)
{
	d->backend->unload(d, v);
	tensor_maps_free(v);
	signature_free(v->sig);
	free(v->ptx);
	*v = (variant){.key = v->key};
}

static bool build_from_cache(blk_kernel *k, const cache_key *key, variant *v)
{
	blk_device *d = k->head.device;
	cache_entry e;
	if (!find_entry(d, key, &e)) return false;
	blk_status status = load_entry(d, v, &e);
	const cache_section *notes = cache_find(&e, CACHE_NOTES);
	if (!status && notes) note_diagnostics(k->module, notes->bytes);
	cache_entry_free(&e);
	if (!status) return true;
	note_add("the cached code of kernel %s is not used: %s", k->sig->kernel, blk_error());
	reset(d, v);
	return false;
}

/* Loads freshly made code and stores what the next start needs. */
static blk_status load_and_store(blk_kernel *k, const cache_key *key, variant *v, const char *signature_text,
	unsigned kind, const void *code, size_t bytes, const blkc_result *r)
{
	blk_device *d = k->head.device;
	void *linked = NULL;
	size_t nlinked = 0;
	blk_status status = signature_parse(signature_text, strlen(signature_text), &v->sig);
	if (status) return status;
	if (kind == BLKC_EMIT_PTX && !(v->ptx = strdup(code))) return error_memory();
	if ((status = tensor_maps_prepare(v))) return status;
	status = d->backend->load(d, v, kind, code, bytes, &linked, &nlinked);
	if (!status && key) {
		parts p = {0};
		add_part(&p, CACHE_SIGNATURE, signature_text, strlen(signature_text));
		if (v->ptx) add_part(&p, CACHE_PTX, v->ptx, strlen(v->ptx));
		if (linked) add_part(&p, CACHE_CUBIN, linked, nlinked);
		if (kind == BLKC_EMIT_OBJECT) add_part(&p, CACHE_OBJECT, code, bytes);
		if (r && r->diagnostics && r->diagnostics[0])
			add_part(&p, CACHE_NOTES, r->diagnostics, strlen(r->diagnostics));
		if (r) add_dependencies(&p, d, r);
		store(d, key, &p, k->sig->kernel);
	}
	free(linked);
	return status;
}

static blk_status build_from_source(
	blk_kernel *k, const cache_key *cache_at, uint64_t key, const char *configuration, variant *v)
{
	blk_device *d = k->head.device;
	blkc_request request = base_request(k->module);
	blkc_promise *promises = calloc(k->nparameters + 1, sizeof *promises);
	const blkc_define *given = (const blkc_define *)k->module->defines;
	kernel_defines c;
	blkc_result *r = NULL;
	request.kernel = k->sig->kernel;
	request.promises = promises;
	request.emit = d->info.kind == BLK_DEVICE_CPU ? BLKC_EMIT_OBJECT : BLKC_EMIT_PTX;
	blk_status status = kernel_defines_make(k->sig, given, k->module->ndefines, configuration, &c) && promises
				    ? BLK_OK
				    : error_memory();
	if (!status) {
		request.npromises = promises_of(k, key, promises);
		request.defines = c.list;
		request.ndefines = c.n;
		request.values = (const blkc_define *)k->values;
		request.nvalues = k->nvalues;
		status = compile(k->module, &request, &r);
	}
	free(promises);
	kernel_defines_free(&c);
	if (status) return status;
	const blkc_artifact *a = artifact(r, request.emit);
	if (!a || r->nkernels == 0)
		status = error_set(BLK_ERROR_COMPILER, "the compiler made no code for kernel %s", k->sig->kernel);
	else
		status = load_and_store(k, cache_at, v, r->kernels[0].signature, request.emit, a->bytes,
			a->nbytes + (request.emit == BLKC_EMIT_PTX), r); /* PTX goes with its NUL */
	d->compiler.api.result_free(r);
	return status;
}

static wanted of_kernel(const blk_kernel *k, uint64_t key, const char *configuration)
{
	return (wanted){.kernel = k->sig->kernel,
		.promises = key,
		.configuration = configuration,
		.values = k->values,
		.nvalues = k->nvalues};
}

/* The package's own code; what the driver links from its PTX is cached, an object needs no work. */
static blk_status build_from_package(blk_kernel *k, uint64_t key, const char *configuration, variant *v)
{
	const package_entry *e;
	cache_key at;
	blk_status status = packaged_find(k, key, configuration, &e);
	if (status) return status;
	bool ptx = e->kind == PACKAGE_PTX;
	if (k->head.device->checked)
		note_add("kernel %s comes from a package: its accesses are guarded, but not checked", k->sig->kernel);
	wanted w = of_kernel(k, e->promises, configuration);
	w.packed = e;
	const cache_key *cached = ptx && make_key(k->module, &w, &at) ? &at : NULL;
	if (cached && build_from_cache(k, cached, v)) return BLK_OK;
	return load_and_store(
		k, cached, v, e->signature, ptx ? BLKC_EMIT_PTX : BLKC_EMIT_OBJECT, e->payload, e->payload_bytes, NULL);
}

blk_status specialise_build(blk_kernel *k, uint64_t key, const char *configuration, variant *v)
{
	cache_key at;
	if (k->packaged) return build_from_package(k, key, configuration, v);
	const blk_module *m = k->module;
	wanted w = of_kernel(k, key, configuration);
	const cache_key *cached = make_key(m, &w, &at) ? &at : NULL;
	if (cached && build_from_cache(k, cached, v)) return BLK_OK;
	if (m->is_ptx)
		return load_and_store(k, cached, v, k->sig->text, BLKC_EMIT_PTX, m->text, m->text_bytes + 1, NULL);
	return build_from_source(k, cached, key, configuration, v);
}
