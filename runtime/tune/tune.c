/* The tuner's side of a launch: from arguments to the variant of the best configuration.
 *
 * A key is the values of the clause's key arguments and the promises that hold.  A key that was seen is found in a
 * table of lists that only grow at their heads, so that a launch reads it without a lock.  Another one is settled under
 * the tuner's lock: by the record on disk, by trials (tune/trial.c), or by the defaults, as BLK_TUNE says. */
#include "support/numbers.h"
#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The clause ---- */

static char *word(char **line)
{
	char *p = *line + strspn(*line, " ");
	if (!*p) return NULL;
	char *end = p + strcspn(p, " ");
	*line = end + (*end != 0);
	*end = 0;
	return p;
}

static uint32_t parameter_number(const signature *s, const char *name)
{
	uint32_t i = 0;
	while (i < s->nparameters && strcmp(s->parameters[i].name, name) != 0) i++;
	return i;
}

static void read_names(const blk_kernel *k, char *list, bool *flags)
{
	tuner *t = k->tuner;
	char *rest = NULL;
	for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		uint32_t i = parameter_number(k->sig, name);
		if (i == k->sig->nparameters) continue;
		if (flags)
			flags[i] = true;
		else if (t->nkeys < TUNE_KEYS && !k->sig->nkeys)
			t->keys[t->nkeys++] = (tune_key){.parameter = i};
	}
}

/* Of a clause with expressions, which stand in lines of their own. */
static void read_keys(const blk_kernel *k)
{
	tuner *t = k->tuner;
	for (uint32_t i = 0; i < k->sig->nkeys && t->nkeys < TUNE_KEYS; i++) {
		const signature_key *key = &k->sig->keys[i];
		t->keys[t->nkeys] = (tune_key){signature_key_parameter(key), key};
		t->coarse = t->coarse || t->keys[t->nkeys].parameter == UINT32_MAX;
		t->nkeys++;
	}
}

static void read_clause(const blk_kernel *k, char *line)
{
	tuner *t = k->tuner;
	for (char *w; (w = word(&line)) && strcmp(w, "where") != 0;) {
		char *next;
		if (strcmp(w, "key") == 0 && (next = word(&line)))
			read_names(k, next, NULL);
		else if (strcmp(w, "reset") == 0 && (next = word(&line)))
			read_names(k, next, t->reset);
		else if (strcmp(w, "restore") == 0 && (next = word(&line)))
			read_names(k, next, t->restore);
		else if (strcmp(w, "scratch") == 0 && (next = word(&line)))
			read_names(k, next, t->scratch);
		else if (strcmp(w, "tolerance") == 0 && (next = word(&line)))
			t->tolerance = numbers_read(next, NULL);
		else if (strcmp(w, "axis") == 0 || strcmp(w, "config") == 0)
			word(&line); /* a name, which may look like a word of ours */
	}
}

blk_status tune_make(blk_kernel *k)
{
	if (k->module->is_ptx || !k->sig->nconfigurations || !k->sig->autotune) return BLK_OK;
	char *line = strdup(k->sig->autotune);
	k->tuner = line ? calloc(1, sizeof *k->tuner) : NULL;
	if (!k->tuner) {
		free(line);
		return error_memory();
	}
	k->tuner->tolerance = -1;
	pthread_mutex_init(&k->tuner->lock, NULL);
	read_clause(k, line);
	read_keys(k);
	free(line);
	return BLK_OK;
}

void tune_destroy(blk_kernel *k)
{
	tuner *t = k->tuner;
	if (!t) return;
	for (tune_code *c = t->code, *next; c; c = next) {
		next = c->next;
		variant_free(k->head.device, c->v);
		free(c);
	}
	for (int i = 0; i < TUNE_BUCKETS; i++)
		for (tune_choice *c = atomic_load(&t->buckets[i]), *next; c; c = next) {
			next = c->next;
			free(c);
		}
	pthread_mutex_destroy(&t->lock);
	free(t);
	k->tuner = NULL;
}

/* ---- The table ---- */

/* The key's values, and the list that it is in. */
static inline uint32_t bucket_of(const blk_kernel *k, const uint64_t *bits, uint64_t promises, uint64_t *values)
{
	uint64_t h = promises * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < k->tuner->nkeys; i++) {
		values[i] = tune_key_value(k, i, bits);
		h = (h ^ values[i]) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return (uint32_t)(h >> 56) % TUNE_BUCKETS;
}

/* What the block's conditions say of arguments that differ within a key. */
static bool admits(const blk_kernel *k, const tune_choice *c, const uint64_t *bits)
{
	return c->configuration == TUNE_NONE ||
	       !signature_misfit(k->sig, c->configuration, bits, k->head.device->info.num_sms);
}

/* One key may have several choices, where what a configuration requires depends on more than the key: the newest one
 * counts, or, where a key stands for several arguments, the fastest that these can use. */
static const tune_choice *find(const blk_kernel *k, const uint64_t *bits, uint64_t promises)
{
	tuner *t = k->tuner;
	uint32_t sms = k->head.device->info.num_sms;
	uint64_t values[TUNE_KEYS];
	uint32_t at = bucket_of(k, bits, promises, values);
	const tune_choice *c = atomic_load_explicit(&t->buckets[at], memory_order_acquire), *best = NULL;
	for (; c; c = c->next) {
		bool same = c->promises == promises;
		for (uint32_t i = 0; same && i < t->nkeys; i++) same = c->values[i] == values[i];
		if (!same || signature_unmet(c->v->sig, bits, sms)) continue;
		if (!t->coarse) return c;
		if (admits(k, c, bits) && (!best || c->ms < best->ms)) best = c;
	}
	return best;
}

static bool all_buffers(const blk_kernel *k, const blk_arg *args)
{
	for (uint32_t i = 0; i < k->nparameters; i++)
		if (args[i].type == BLK_TYPE_POINTER && args[i].bits) return false;
	return true;
}

/* A newer choice for a key stands before the older one, which readers may still hold. */
static blk_status publish(const tune_job *j, uint32_t configuration, variant *v)
{
	tuner *t = j->kernel->tuner;
	tune_choice *c = calloc(1, sizeof *c);
	if (!c) return error_memory();
	_Atomic(tune_choice *) *head = &t->buckets[bucket_of(j->kernel, j->bits, j->promises, c->values)];
	c->promises = j->promises;
	c->configuration = configuration;
	c->ms = configuration != TUNE_NONE && j->results[configuration].ms > 0 ? j->results[configuration].ms
									       : (double)INFINITY;
	c->v = v;
	c->unsized = j->untried && !all_buffers(j->kernel, j->args);
	c->next = atomic_load_explicit(head, memory_order_relaxed);
	atomic_store_explicit(head, c, memory_order_release);
	return BLK_OK;
}

/* ---- Deciding ---- */

typedef enum tune_mode {
	MODE_FIRST,
	MODE_AUTO,
	MODE_CACHED,
	MODE_OFF,
	MODE_ALWAYS,
	MODE_ISOLATED,
	MODE_NEAREST
} tune_mode;

static const char *const modes[] = {
	"first", "auto", "cached", "off", "always", "isolated", "nearest"}; /* ORDER tune_mode */

/* Times on a processor or of a simulation are no reason to wait before each first launch. */
static tune_mode mode_now(const blk_device *d)
{
	const char *m = getenv("BLK_TUNE");
	if (!m || !*m) return d->info.kind == BLK_DEVICE_CUDA ? MODE_AUTO : MODE_FIRST;
	for (int i = MODE_FIRST; i <= MODE_NEAREST; i++)
		if (strcmp(m, modes[i]) == 0) return (tune_mode)i;
	note_add("BLK_TUNE=%s is not known to this version (auto, first, cached, off, always, isolated, nearest): "
		 "tuning "
		 "as with auto",
		m);
	return MODE_AUTO;
}

static bool tries(tune_mode m)
{
	return m == MODE_AUTO || m == MODE_ALWAYS || m == MODE_ISOLATED;
}

static uint32_t best_of(const tune_job *j)
{
	uint32_t best = TUNE_NONE;
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++)
		if (j->results[i].verdict == BLK_TUNE_GOOD &&
			(best == TUNE_NONE || j->results[i].ms < j->results[best].ms))
			best = i;
	return best;
}

/* Nothing is launched for an empty grid, so nothing can be learnt from it. */
static bool can_try(const tune_job *j)
{
	uint32_t grid[3];
	bool empty;
	if (!j->given && !j->kernel->sig->ngrid) return false;
	char *before = error_take();
	blk_status status = launch_grid(j->kernel, j->kernel->sig, j->bits, j->given, grid, &empty);
	error_give(before);
	return !status && !empty;
}

/* `configuration`'s code, or where it cannot be had the defaults'. */
static blk_status code_for(const tune_job *j, uint32_t *configuration, variant **out)
{
	if (*configuration != TUNE_NONE) {
		char *before = error_take();
		if (tune_compiled(j->kernel, j->promises, *configuration, out) == BLK_OK) {
			free(before);
			return BLK_OK;
		}
		note_add("the tuned configuration %s cannot be used: %s",
			j->kernel->sig->configurations[*configuration], blk_error());
		error_give(before);
	}
	*configuration = TUNE_NONE;
	return variant_get(j->kernel, j->promises, out);
}

typedef struct watch {
	tune_mark mark;
	uint64_t kept_ns;
} watch;

static void mark_running(tune_job *j, uint32_t configuration, double expected_ms)
{
	watch *w = j->watcher;
	(void)expected_ms;
	tune_mark_set(&w->mark, configuration == TUNE_NONE ? NULL : j->kernel->sig->configurations[configuration]);
}

/* What a process that is ended has measured is kept. */
static void keep_learnt(tune_job *j, uint32_t configuration)
{
	watch *w = j->watcher;
	uint64_t now = tune_now_ns();
	(void)configuration;
	if (now - w->kept_ns < TUNE_KEEP_NS) return;
	w->kept_ns = now;
	tune_record_write(j->kernel, j->bits, j->promises, j->results);
}

/* In this process, with a mark on disk for what may end it. */
static blk_status trials_here(tune_job *j)
{
	watch w = {.kept_ns = tune_now_ns()};
	tune_mark_open(j, &w.mark);
	j->running = mark_running;
	j->learnt = keep_learnt;
	j->watcher = &w;
	blk_status status = tune_trials(j);
	tune_mark_close(&w.mark);
	return status;
}

/* Where a fault stays in a process of its own, what is only suspected can be tried after all. */
static void clear_suspects(tune_job *j)
{
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++) {
		tune_result *r = &j->results[i];
		if (r->verdict != BLK_TUNE_SUSPECT) continue;
		r->verdict = BLK_TUNE_UNKNOWN;
		free(r->reason);
		r->reason = NULL;
	}
}

/* The defaults are what is left where no configuration fits, and may fit no better. */
static blk_status meets(const tune_job *j, const variant *v)
{
	uint32_t n = j->kernel->sig->nconfigurations, misfits = 0;
	blk_status status = launch_requires(j->kernel, v->sig, j->bits);
	for (uint32_t i = 0; i < n; i++) misfits += j->results[i].verdict == BLK_TUNE_MISFIT;
	if (!status || misfits < n) return status;
	char *why = error_take();
	status = error_set(status, "%s; none of its %u configurations fits either", why ? why : "", n);
	free(why);
	return status;
}

/* Whether a launch can use it as it is. */
static bool fits(const tune_job *j, const variant *v)
{
	uint32_t grid[3];
	bool empty;
	if (trial_can_reside(j->kernel->head.device, v) || launch_requires(j->kernel, v->sig, j->bits)) return false;
	if (!j->given && !v->sig->ngrid) return true;
	return launch_grid(j->kernel, v->sig, j->bits, j->given, grid, &empty) == BLK_OK && !empty;
}

/* The first configuration, the most promising one where there is an order, that compiles and fits, and of which nothing
 * bad is known. */
static uint32_t first_fitting(const tune_job *j)
{
	uint32_t n = j->kernel->sig->nconfigurations, i = 0, at = TUNE_NONE;
	char *before = error_take();
	blk_status status = BLK_OK;
	for (; i < n; i++) {
		variant *v;
		at = j->ranking ? j->ranking[i] : i;
		if (j->results[at].verdict != BLK_TUNE_UNKNOWN && j->results[at].verdict != BLK_TUNE_GOOD) continue;
		status = tune_compiled(j->kernel, j->promises, at, &v);
		if ((!status && fits(j, v)) || (status && !tune_lasting(status))) break;
	}
	error_give(before);
	return i < n && !status ? at : TUNE_NONE;
}

/* The best that is known of this key, or what was tuned for another, or nothing; says so, after the sentence `why`. */
static uint32_t without_trials(const tune_job *j, uint32_t best, const char *why)
{
	char *where = NULL;
	uint32_t near = best;
	if (best == TUNE_NONE) near = tune_record_nearest(j->kernel, j->bits, j->promises, j->results, &where);
	bool predicted = near == TUNE_NONE && search_ordered(j->kernel) && (near = first_fitting(j)) != TUNE_NONE;
	if (best != TUNE_NONE)
		note_add("%s; it runs with the best that is known: %s", why, j->kernel->sig->configurations[best]);
	else if (near == TUNE_NONE)
		note_add("%s; it runs with its defaults", why);
	else if (predicted)
		note_add("%s; it runs with what its block puts first: %s", why, j->kernel->sig->configurations[near]);
	else
		note_add("%s; it runs with what is best for %s: %s", why, where ? where : "other arguments",
			j->kernel->sig->configurations[near]);
	free(where);
	return near;
}

/* Of a key that was never tuned: what is best for the nearest one that was, if these arguments can use it. */
static uint32_t from_nearest(const tune_job *j)
{
	char *where = NULL, *before = error_take();
	variant *v;
	uint32_t near = tune_record_nearest(j->kernel, j->bits, j->promises, j->results, &where);
	if (near != TUNE_NONE && (tune_compiled(j->kernel, j->promises, near, &v) || !fits(j, v))) near = TUNE_NONE;
	error_give(before);
	free(where);
	return near;
}

/* What went wrong but may go right another time. */
static void note_put_off(const tune_job *j)
{
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++)
		if (j->results[i].verdict == BLK_TUNE_UNKNOWN && j->results[i].reason)
			note_add("kernel %s: configuration %s was not tried to the end: %s", j->kernel->sig->kernel,
				j->kernel->sig->configurations[i], j->results[i].reason);
}

static blk_status run_trials(tune_job *j, bool isolated)
{
	if (!search_complete(j) && tune_marks_read(j)) tune_record_write(j->kernel, j->bits, j->promises, j->results);
	if (isolated) clear_suspects(j);
	if (search_complete(j)) return BLK_OK;
	blk_status status = isolated ? tune_isolated(j) : trials_here(j);
	note_put_off(j);
	tune_record_write(j->kernel, j->bits, j->promises, j->results);
	return status;
}

/* Under the tuner's lock.  `asked`: for nothing but trials. */
static blk_status decide(tune_job *j, tune_mode mode, bool isolated, bool asked, variant **out)
{
	blk_status status = BLK_OK;
	bool can = can_try(j), lasting = can || mode == MODE_OFF;
	char *why = NULL;
	uint32_t near = TUNE_NONE;
	if (mode != MODE_OFF && mode != MODE_ALWAYS) tune_record_read(j->kernel, j->bits, j->promises, j->results);
	if (mode == MODE_NEAREST && (near = best_of(j)) == TUNE_NONE && (near = from_nearest(j)) == TUNE_NONE)
		mode = MODE_AUTO;
	if (tries(mode) && can) status = run_trials(j, isolated);
	if (status && j->untried && !asked && (why = error_take())) status = BLK_OK;
	if (status) return status;
	uint32_t best = mode == MODE_OFF ? TUNE_NONE : mode == MODE_NEAREST ? near : best_of(j);
	if (why) best = without_trials(j, best, why);
	if (best == TUNE_NONE && mode == MODE_FIRST && (can || (!j->given && !j->kernel->sig->ngrid)))
		best = first_fitting(j);
	free(why);
	if ((status = code_for(j, &best, out))) return status;
	if ((status = meets(j, *out))) return status;
	return lasting || best != TUNE_NONE ? publish(j, best, *out) : BLK_OK;
}

/* What cannot be used for these arguments is known before anything is compiled. */
static blk_status mark_misfits(tune_job *j)
{
	const signature *s = j->kernel->sig;
	for (uint32_t i = 0; i < s->nconfigurations; i++) {
		const signature_requirement *q = signature_misfit(s, i, j->bits, j->kernel->head.device->info.num_sms);
		char text[512], reason[544];
		if (!q) continue;
		signature_requirement_text(q, text, sizeof text);
		snprintf(reason, sizeof reason, q->condition.ntokens ? "the kernel requires %s" : "%s", text);
		j->results[i] = (tune_result){.verdict = BLK_TUNE_MISFIT, .reason = strdup(reason)};
		if (!j->results[i].reason) return error_memory();
	}
	return BLK_OK;
}

blk_status tune_job_begin(tune_job *j)
{
	uint32_t n = j->kernel->sig->nconfigurations;
	j->results = calloc(n, sizeof *j->results);
	j->variants = calloc(n, sizeof *j->variants);
	blk_status status = j->results && j->variants ? mark_misfits(j) : error_memory();
	return status ? status : search_rank(j);
}

void tune_job_end(tune_job *j)
{
	for (uint32_t i = 0; j->results && i < j->kernel->sig->nconfigurations; i++) free(j->results[i].reason);
	free(j->results);
	free(j->variants);
	free(j->ranking);
}

double tune_best_ms(const tune_job *j)
{
	double best = 0;
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++)
		if (j->results[i].verdict == BLK_TUNE_GOOD && j->results[i].ms > 0 &&
			(best == 0 || j->results[i].ms < best))
			best = j->results[i].ms;
	return best;
}

void tune_step(tune_job *j)
{
	if (j->done < j->total) j->done++;
	if (j->progress) j->progress(j->context, j->done, j->total, tune_best_ms(j));
}

blk_status tune_get(
	blk_kernel *k, const blk_grid *given, const blk_arg *args, uint64_t *bits, uint64_t key, variant **out)
{
	const tune_choice *c = find(k, bits, key);
	if (c && !(c->unsized && all_buffers(k, args))) {
		*out = c->v;
		return BLK_OK;
	}
	tune_job j = {.kernel = k, .given = given, .args = args, .bits = bits, .promises = key};
	pthread_mutex_lock(&k->tuner->lock);
	blk_status status = BLK_OK;
	c = find(k, bits, key);
	if (c && !(c->unsized && all_buffers(k, args)))
		*out = c->v;
	else if (!(status = tune_job_begin(&j))) {
		note_clear();
		tune_mode mode = mode_now(k->head.device);
		status = decide(&j, mode, mode == MODE_ISOLATED, false, out);
	}
	tune_job_end(&j);
	pthread_mutex_unlock(&k->tuner->lock);
	return status;
}

const char *tune_configuration(const blk_kernel *k, const uint64_t *bits, uint64_t key)
{
	const tune_choice *c = k->tuner ? find(k, bits, key) : NULL;
	return c && c->configuration != TUNE_NONE ? k->sig->configurations[c->configuration] : "";
}

/* ---- blk.h's calls ---- */

static void show(const tune_job *j, uint32_t best, blk_tune_visit visit, void *context)
{
	for (uint32_t i = 0; i < j->kernel->sig->nconfigurations; i++) {
		const tune_result *r = &j->results[i];
		blk_tune_trial t = {.configuration = j->kernel->sig->configurations[i],
			.verdict = r->verdict,
			.ms = r->ms,
			.reason = r->reason ? r->reason : "",
			.chosen = i == best,
			.predicted = search_time(j, i)};
		if (visit(context, &t)) return;
	}
}

blk_status blk_kernel_tune(blk_kernel *k, const blk_grid *grid, const blk_arg *args, size_t n,
	const blk_tune_options *options, uint32_t *timed)
{
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	blk_tune_options o = options ? *options : (blk_tune_options){0};
	variant *v;
	blk_status status = kernel_check(k);
	if (timed) *timed = 0;
	if (!status) status = launch_arguments(k, args, n, bits, &key);
	if (!status) status = computed_resolve(&k, bits);
	if (status || !k->tuner) return status;
	tune_job j = {.kernel = k,
		.given = grid,
		.args = args,
		.bits = bits,
		.promises = key,
		.progress = o.progress,
		.context = o.context};
	pthread_mutex_lock(&k->tuner->lock);
	note_clear();
	status = tune_job_begin(&j);
	tune_mode mode = mode_now(k->head.device);
	bool isolated = o.isolated || mode == MODE_ISOLATED;
	if (o.again)
		mode = MODE_ALWAYS;
	else if (mode == MODE_OFF || mode == MODE_FIRST || mode == MODE_NEAREST)
		mode = MODE_AUTO;
	if (!status) status = decide(&j, mode, isolated, true, &v);
	if (!status && o.visit) show(&j, best_of(&j), o.visit, o.context);
	if (timed) *timed = j.timed;
	tune_job_end(&j);
	pthread_mutex_unlock(&k->tuner->lock);
	return status;
}
