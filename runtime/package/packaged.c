/* Modules from packages: which of a file's variants this device and these defines mean.
 *
 *   .blkpkg --kernel--> --configuration (the first that agrees with the defines)--> --target (the best that the device
 *   runs)--> a handful of promises, the best of which is chosen at each launch
 *
 * Nothing here compiles: a machine without the compiler library runs packages.  The file's bytes stay in the module, as
 * the entries point into them. */
#include "defines.h"
#include "base/growing.h"
#include "internal.h"
#include "support/numbers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Targets ---- */

/* How well a device runs an entry's code; 0: not at all.  Forms with a letter ("sm_90a") run on their own chip only. */
static unsigned rank(const blk_device_info *d, const package_entry *e)
{
	unsigned sm = 0;
	int used = 0;
	if (d->kind == BLK_DEVICE_CPU) return e->kind == PACKAGE_OBJECT && strcmp(e->target, "cpu") == 0;
	if (e->kind != PACKAGE_PTX || sscanf(e->target, "sm_%3u%n", &sm, &used) != 1) return 0;
	const char *letter = e->target + used;
	if (*letter == 0) return sm <= d->compute_capability ? 2 * sm : 0;
	return strcmp(letter, "a") == 0 && sm == d->compute_capability ? 2 * sm + 1 : 0;
}

/* ---- Groups ---- */

typedef struct group { /* neighbours in the file: of one kernel, or of one configuration of it */
	const package_entry *at;
	size_t n;
} group;

static group leading(group in, bool by_configuration)
{
	group out = {in.at, 1};
	while (out.n < in.n && strcmp(in.at[out.n].kernel, in.at->kernel) == 0 &&
		(!by_configuration || strcmp(in.at[out.n].configuration, in.at->configuration) == 0))
		out.n++;
	return out;
}

/* Of the kernel, without the values of what its launches compute (kernel_value_name). */
static size_t name_length(const package_entry *e)
{
	return strcspn(e->kernel, " ");
}

static group behind(group in, group taken)
{
	return (group){in.at + taken.n, in.n - taken.n};
}

/* The entry without promises that suits the device best; null: none does. */
static const package_entry *best(const blk_device_info *d, group configuration)
{
	const package_entry *found = NULL;
	for (size_t i = 0; i < configuration.n; i++) {
		const package_entry *e = &configuration.at[i];
		if (e->promises == 0 && rank(d, e) > (found ? rank(d, found) : 0)) found = e;
	}
	return found;
}

/* ---- Defines ---- */

/* The same number, or the same words; a package can hold no expression against which to compute another. */
static bool same_value(const char *a, const char *b)
{
	char *end_a, *end_b;
	long long x = strtoll(a, &end_a, 0), y = strtoll(b, &end_b, 0);
	if (*a && *b && !*end_a && !*end_b) return x == y;
	double f = numbers_read(a, &end_a), g = numbers_read(b, &end_b);
	if (*a && *b && !*end_a && !*end_b) return f == g;
	for (;; a++, b++) {
		while (isspace((unsigned char)*a)) a++;
		while (isspace((unsigned char)*b)) b++;
		if (*a != *b || !*a) return *a == *b;
	}
}

/* Whether some configuration of the kernel sets the name. */
static bool tuned(group kernel, const char *name)
{
	size_t n = strlen(name);
	for (; kernel.n; kernel = behind(kernel, leading(kernel, true)))
		for (const char *at = kernel.at->configuration; (at = strstr(at, name)); at++)
			if (at[n] == '=' && (at == kernel.at->configuration || at[-1] == ',')) return true;
	return false;
}

static bool has_option(const signature *s, const blk_define *d)
{
	const uint32_t *o = kernel_option(s, d->name);
	char number[16];
	if (!o) return false;
	snprintf(number, sizeof number, "%u", *o);
	if (strcmp(d->value, "true") == 0 || strcmp(d->value, "false") == 0) return *o == (d->value[0] == 't');
	return same_value(number, d->value);
}

/* An option is for the kernels that come with several values of it. */
static bool agrees(const signature *s, const blk_define *d, bool is_tuned)
{
	const signature_constant *c = kernel_constant(s, d->name);
	if (c) return same_value(c->value, d->value);
	return !kernel_option(s, d->name) || !is_tuned || has_option(s, d);
}

static bool agrees_with_all(const signature *s, const blk_module *m, const bool *is_tuned)
{
	for (size_t i = 0; i < m->ndefines; i++)
		if (!agrees(s, &m->defines[i], is_tuned[i])) return false;
	return true;
}

/* Each define has had its effect on some kernel. */
static blk_status check_defines(const blk_module *m)
{
	for (size_t i = 0; i < m->ndefines; i++) {
		const blk_define *d = &m->defines[i];
		bool known = false, used = false;
		for (size_t j = 0; j < m->nkernels; j++) {
			const signature *s = m->kernels[j]->sig;
			known = known || kernel_constant(s, d->name) || kernel_option(s, d->name);
			used = used || kernel_constant(s, d->name) || has_option(s, d);
		}
		if (known && !used)
			return error_set(
				BLK_ERROR_ARGUMENT, "%s: no kernel has code with %s=%s", m->name, d->name, d->value);
		if (!known)
			return error_set(BLK_ERROR_ARGUMENT, "%s: no kernel has a const parameter or option '%s'",
				m->name, m->defines[i].name);
	}
	return BLK_OK;
}

/* ---- Choosing ---- */

static int more_promises(const void *a, const void *b)
{
	uint64_t x = (*(const package_entry *const *)a)->promises, y = (*(const package_entry *const *)b)->promises;
	int n = __builtin_popcountll(x), m = __builtin_popcountll(y);
	return n != m ? m - n : x < y ? -1 : x > y;
}

/* Gathers the variants of one configuration for one target, most promises first, so that the first whose promises all
 * hold is the best. */
static void gather(packaged *p, group configuration, const package_entry *base)
{
	for (size_t i = 0; i < configuration.n && p->nvariants < PACKAGE_MAX_MASKS; i++) {
		const package_entry *e = &configuration.at[i];
		if (e->kind == base->kind && strcmp(e->target, base->target) == 0 && (e->promises || e == base))
			p->variants[p->nvariants++] = e;
	}
	qsort(p->variants, p->nvariants, sizeof p->variants[0], more_promises);
}

static void append(char *list, size_t room, const char *word)
{
	size_t used = strlen(list);
	if (used + strlen(word) + 8 < room)
		snprintf(list + used, room - used, "%s%s", used ? "; " : "", word);
	else if (used && list[used - 1] != '.')
		snprintf(list + used, room - used, "; ...");
}

static blk_status nothing_fits(const blk_module *m, group kernel, bool runs)
{
	const blk_device *d = m->head.device;
	char list[512] = "", wanted[256] = "";
	for (size_t i = 0; i < kernel.n; i++) {
		const char *word = runs ? kernel.at[i].configuration : kernel.at[i].target;
		bool seen = false;
		for (size_t j = 0; j < i && !seen && i < 4096; j++)
			seen = strcmp(word, runs ? kernel.at[j].configuration : kernel.at[j].target) == 0;
		if (!seen && i < 4096) append(list, sizeof list, *word ? word : "the defaults");
	}
	if (!runs)
		return error_set(BLK_ERROR_UNSUPPORTED, "%s: kernel %s has no code that %s (%s) runs; it has %s",
			m->name, kernel.at->kernel, d->info.name, d->info.target, list);
	for (size_t i = 0; i < m->ndefines; i++) {
		char one[128];
		snprintf(one, sizeof one, "%s=%s", m->defines[i].name, m->defines[i].value);
		append(wanted, sizeof wanted, one);
	}
	return error_set(BLK_ERROR_ARGUMENT, "%s: kernel %s has no configuration with %s; it has %s", m->name,
		kernel.at->kernel, wanted, list);
}

/* The facts of this name in a configuration's own signature, up to `end`, as facts of the configuration. */
static void add_facts(const package_entry *e, const char *name, const char *end, const char *as, growing *text)
{
	size_t n = strlen(name);
	for (const char *line = e->signature; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *postfix = line + n, *to = strncmp(line, name, n) == 0 ? strstr(postfix, end) : NULL;
		if (to) grow_format(text, "%s %.*s\n", as, (int)(to - postfix), postfix);
	}
}

/* What it requires is what it fits, as are the block's conditions; then its predicted time. */
static void add_fits(const package_entry *e, growing *text)
{
	add_facts(e, "requires ", " ; ", "fits", text);
	add_facts(e, "where ", "\n", "fits", text);
	add_facts(e, "order ", "\n", "time", text);
}

/* The signature of what is used by default, with the configurations that may be used instead: those that this device
 * runs and that agree with the defines.  One alone is no choice. */
static blk_status list_configurations(
	const blk_module *m, group kernel, const package_entry *base, const bool *is_tuned, growing *text)
{
	const blk_device_info *d = &m->head.device->info;
	size_t listed = 0;
	grow_text(text, base->signature);
	size_t without = text->n;
	for (group rest = kernel; rest.n; rest = behind(rest, leading(rest, true))) {
		const package_entry *e = best(d, leading(rest, true));
		if (!e || !e->configuration[0] || strchr(e->configuration, '\n')) continue;
		signature *s = NULL;
		blk_status status = m->ndefines ? signature_parse(e->signature, strlen(e->signature), &s) : BLK_OK;
		if (status) return status;
		bool agreed = !s || agrees_with_all(s, m, is_tuned);
		signature_free(s);
		if (!agreed) continue;
		grow_text(text, "configuration ");
		grow_text(text, e->configuration);
		grow_text(text, "\n");
		add_fits(e, text);
		listed++;
	}
	if (listed == 1 && base->configuration[0]) text->n = without;
	return text->failed ? error_memory() : BLK_OK;
}

/* Null for *instance: a kernel of the module is made; else one beside it. */
static blk_status make(blk_module *m, const growing *text, blk_kernel **instance, blk_kernel **out)
{
	signature *s;
	blk_status status;
	if (!instance) {
		status = module_add_kernel(m, text->at, text->n);
		if (!status) *out = m->kernels[m->nkernels - 1];
		return status;
	}
	status = signature_parse(text->at, text->n, &s);
	if (!status) status = kernel_make(m, s, true, instance);
	if (!status) *out = *instance;
	return status;
}

static blk_status use(blk_module *m, group kernel, group configuration, const package_entry *base, const bool *is_tuned,
	blk_kernel **instance)
{
	growing text = {0};
	blk_kernel *k;
	blk_status status = list_configurations(m, kernel, base, is_tuned, &text);
	if (!status) status = make(m, &text, instance, &k);
	free(text.at);
	if (status) return status;
	size_t n = name_length(base);
	k->packaged = calloc(1, sizeof *k->packaged);
	status = k->packaged ? BLK_OK : error_memory();
	if (!status && (k->promised || strlen(k->sig->kernel) != n || memcmp(k->sig->kernel, base->kernel, n) != 0))
		status = error_set(
			BLK_ERROR_FORMAT, "%s: the signature of kernel %s is another one's", m->name, base->kernel);
	if (status) {
		if (instance) kernel_destroy(k);
		return status;
	}
	k->packaged->all = kernel.at;
	k->packaged->nall = kernel.n;
	gather(k->packaged, configuration, base);
	return BLK_OK;
}

static blk_status choose(blk_module *m, group kernel, const bool *is_tuned, blk_kernel **instance)
{
	const blk_device_info *d = &m->head.device->info;
	bool runs = false;
	for (group rest = kernel; rest.n; rest = behind(rest, leading(rest, true))) {
		group configuration = leading(rest, true);
		const package_entry *base = best(d, configuration);
		signature *s;
		if (!base) continue;
		runs = true;
		blk_status status = signature_parse(base->signature, strlen(base->signature), &s);
		if (status) return status;
		bool agreed = agrees_with_all(s, m, is_tuned);
		signature_free(s);
		if (agreed) return use(m, kernel, configuration, base, is_tuned, instance);
	}
	return nothing_fits(m, kernel, runs);
}

static blk_status add_kernel(blk_module *m, group kernel, blk_kernel **instance)
{
	bool *is_tuned = calloc(m->ndefines + 1, sizeof *is_tuned); /* the name of each define */
	if (!is_tuned) return error_memory();
	for (size_t i = 0; i < m->ndefines; i++) is_tuned[i] = tuned(kernel, m->defines[i].name);
	blk_status status = choose(m, kernel, is_tuned, instance);
	free(is_tuned);
	return status;
}

/* ---- Values that launches compute ---- */

/* The neighbours that have code of one kernel, for whatever values. */
static group of_one_name(group in)
{
	group out = {in.at, 1};
	size_t n = name_length(in.at);
	while (out.n < in.n && name_length(&in.at[out.n]) == n && memcmp(in.at[out.n].kernel, in.at->kernel, n) == 0)
		out.n++;
	return out;
}

static blk_status check_not_given(const blk_module *m, const blk_kernel *k)
{
	for (size_t i = 0; i < m->ndefines; i++)
		for (uint32_t j = 0; j < k->sig->ncomputed; j++)
			if (strcmp(k->sig->computed[j].name, m->defines[i].name) == 0)
				return error_set(BLK_ERROR_ARGUMENT,
					"%s: launches of kernel %s compute %s, as it was packed: a define cannot give "
					"it",
					m->name, k->sig->kernel, m->defines[i].name);
	return BLK_OK;
}

/* The kernel as the first values have it, whose launches look for theirs among all. */
static blk_status add_computed(blk_module *m, group kernel)
{
	blk_status status = add_kernel(m, leading(kernel, false), NULL);
	if (status) return status;
	blk_kernel *k = m->kernels[m->nkernels - 1];
	k->packaged->all = kernel.at;
	k->packaged->nall = kernel.n;
	if (!k->instances)
		return error_set(BLK_ERROR_FORMAT,
			"%s: kernel %s computes nothing at a launch, but has code for values of it", m->name,
			k->sig->kernel);
	return check_not_given(m, k);
}

static blk_status no_such_values(const blk_kernel *k, const char *wanted)
{
	char list[512] = "";
	for (group rest = {k->packaged->all, k->packaged->nall}; rest.n; rest = behind(rest, leading(rest, false)))
		append(list, sizeof list,
			rest.at->kernel[name_length(rest.at)] ? rest.at->kernel + name_length(rest.at) + 1 : "");
	return error_set(BLK_ERROR_ARGUMENT, "%s: kernel %s has no code for %s; it has %s", k->module->name,
		k->sig->kernel, wanted + strlen(k->sig->kernel) + 1, list);
}

blk_status packaged_instance(blk_kernel *k, const blk_define *values, blk_kernel **out)
{
	char *name = kernel_value_name(k->sig->kernel, (const blkc_define *)values, k->sig->ncomputed);
	blk_status status = BLK_ERROR_NOT_FOUND;
	if (!name) return error_memory();
	for (group rest = {k->packaged->all, k->packaged->nall}; rest.n; rest = behind(rest, leading(rest, false)))
		if (strcmp(rest.at->kernel, name) == 0) {
			status = add_kernel(k->module, leading(rest, false), out);
			break;
		}
	if (status == BLK_ERROR_NOT_FOUND) status = no_such_values(k, name);
	free(name);
	return status;
}

/* ---- Opening ---- */

blk_status packaged_open(blk_module *m)
{
	m->package = calloc(1, sizeof *m->package);
	if (!m->package) return error_memory();
	const char *why = package_decode(m->text, m->text_bytes, m->package);
	if (why && strcmp(why, "out of memory") == 0) return error_memory();
	if (why) return error_set(BLK_ERROR_FORMAT, "%s is not used: %s", m->name, why);
	blk_status status = BLK_OK;
	group rest = {m->package->entries, m->package->nentries};
	for (; rest.n && !status; rest = behind(rest, of_one_name(rest)))
		status = rest.at->kernel[name_length(rest.at)] ? add_computed(m, of_one_name(rest))
							       : add_kernel(m, leading(rest, false), NULL);
	return status ? status : check_defines(m);
}

void packaged_close(blk_module *m)
{
	if (m->package) package_free(m->package);
	free(m->package);
	m->package = NULL;
}

/* ---- Launching ---- */

uint64_t packaged_key(const packaged *p, uint64_t key)
{
	for (uint32_t i = 0; i < p->nvariants; i++)
		if ((p->variants[i]->promises & ~key) == 0) return p->variants[i]->promises;
	return 0;
}

/* A variant takes what the kernel takes, and relies on no more: a launch has looked at its arguments with the kernel's
 * signature only. */
static bool same_parameters(const signature *code, const signature *kernel)
{
	if (code->nparameters != kernel->nparameters) return false;
	for (uint32_t i = 0; i < code->nparameters; i++) {
		const signature_parameter *a = &code->parameters[i], *b = &kernel->parameters[i];
		if (a->code != b->code || a->element != b->element) return false;
		if (a->divisible > 1 && a->divisible != 16 && a->divisible != signature_step(kernel)) return false;
	}
	return true;
}

/* The variants of another configuration than the one in use. */
static bool gather_other(const blk_kernel *k, const char *configuration, packaged *out)
{
	for (group rest = {k->packaged->all, k->packaged->nall}; rest.n; rest = behind(rest, leading(rest, true))) {
		group g = leading(rest, true);
		if (strcmp(g.at->configuration, configuration) != 0) continue;
		const package_entry *base = best(&k->head.device->info, g);
		if (base) gather(out, g, base);
		return base != NULL;
	}
	return false;
}

blk_status packaged_find(const blk_kernel *k, uint64_t key, const char *configuration, const package_entry **out)
{
	packaged other = {.nvariants = 0};
	const packaged *p = configuration ? &other : k->packaged;
	if (configuration && !gather_other(k, configuration, &other))
		return error_set(BLK_ERROR_ARGUMENT, "%s: kernel %s has no configuration %s for this device",
			k->module->name, k->sig->kernel, configuration);
	uint64_t promises = packaged_key(p, key);
	const package_entry *e = NULL;
	for (uint32_t i = 0; i < p->nvariants && !e; i++)
		if (p->variants[i]->promises == promises) e = p->variants[i];
	signature *s = NULL;
	if (!e || !package_payload_holds(e))
		return error_set(
			BLK_ERROR_FORMAT, "%s: the code of kernel %s is damaged", k->module->name, k->sig->kernel);
	blk_status status = signature_parse(e->signature, strlen(e->signature), &s);
	if (!status && !same_parameters(s, k->sig))
		status = error_set(BLK_ERROR_FORMAT, "%s: the variants of kernel %s take different parameters",
			k->module->name, k->sig->kernel);
	signature_free(s);
	if (!status) *out = e;
	return status;
}
