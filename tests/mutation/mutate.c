/* Takes the PTX of a kernel, removes what keeps it right, one thing at a time, and asks the simulator to notice.
 *
 *   usage: mutate FILE PART PARTS EVERY [-v]     every EVERY-th mutant of the lines of FILE, of which there are PARTS
 * In: lines of blkrun's words; lists in them are launches ("n=781,1").  The code is what the runtime compiles
 * for the first launch; all launches must run clean.  Out: a line a kernel, the mutants that nothing was said about,
 * how many are right without a report, and "N passed, M failed" over mutants.
 *
 * A line that begins with "both" is two, for sim and for sim:sm_90a; the second one counts where its code is another.
 * Lines "equal N KIND: WHY" behind it: so many mutants of that kind are right at most, for that reason; KIND
 * "unreached" is any, where no launch comes to the line, which is looked at by a trap in its place.
 *
 * The one idea: a mutant is the text with one line changed (`kinds`).  It is launched with each launch's arguments, in
 * several orders, until the simulator reports it.  What counts beside a report stands at `excused`. */
#include "runtime/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT = 7 * 16, STEP = 8192, MOST_LAUNCHES = 6, MOST_WORDS = 64, LINE = 1024, MOST_KINDS = 16 };

typedef struct subject {
	sweep sweep;
	options options;
	sweep_point points[MOST_LAUNCHES];
	job *jobs[MOST_LAUNCHES];
	place places[MOST_LAUNCHES];
	array *outputs[MOST_LAUNCHES]; /* what the right code gives, by buffer */
	blk_sim_counters counters[MOST_LAUNCHES];
	blk_buffer *one[MOST_LAUNCHES]; /* that takes the place of all that are written */
	char bears[MOST_LAUNCHES][64];  /* by variation: yes, no, or 0: nobody has asked */
	blk_kernel *right;              /* the code as it was compiled */
	blk_module *module;
	blk_device *device;
	size_t n;
	char *ptx;
	char path[64];                                            /* of a file with it */
	const char *unfit;                                        /* why it cannot be tried; null: it is not known */
	unsigned mutants, survivors, redundant, wrong, explained; /* the last three: excused */
	unsigned equal[MOST_KINDS];                               /* by kind: how many more are explained */
} subject;

static blk_device *devices[2]; /* sim, sim:sm_90a */
static bool verbose;

static void quit(const char *what)
{
	fprintf(stderr, "mutate: %s: %s\n", what, blk_error());
	exit(2);
}

/* ---- What can be removed ---- */

/* Each takes a line without leading blanks and either writes what becomes of it or says no. */
typedef bool change(const char *line, char *out);

static bool begins(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

static bool without_line(char *out)
{
	*out = 0;
	return true;
}

static bool barrier(const char *line, char *out)
{
	return (begins(line, "bar.") || begins(line, "barrier.")) && without_line(out);
}

static bool copy_wait(const char *line, char *out)
{
	return (begins(line, "cp.async.wait") || begins(line, "cp.async.bulk.wait") || begins(line, "wgmma.wait")) &&
	       without_line(out);
}

static bool copy_commit(const char *line, char *out)
{
	return (begins(line, "cp.async.commit") || begins(line, "cp.async.bulk.commit") ||
		       begins(line, "wgmma.commit")) &&
	       without_line(out);
}

static bool fence(const char *line, char *out)
{
	return (begins(line, "fence.") || begins(line, "membar.") || begins(line, "wgmma.fence")) && without_line(out);
}

/* "mbarrier.try_wait.parity.shared::cta.b64 complete, [%r68], %r9;": as if the phase had ended. */
static bool phase_wait(const char *line, char *out)
{
	const char *name = strchr(line, ' '), *comma = strchr(line, ',');
	if (!begins(line, "mbarrier.try_wait") && !begins(line, "mbarrier.test_wait")) return false;
	if (!name || !comma) return false;
	sprintf(out, "setp.eq.b32%.*s, 0, 0;", (int)(comma - name), name);
	return true;
}

/* "@%p3 st.global..": behind the predicate; null: there is none. */
static const char *behind_mask(const char *line)
{
	const char *rest = begins(line, "@%p") ? strchr(line, ' ') : NULL;
	return rest ? rest + strspn(rest, " \t") : NULL;
}

static bool arrival(const char *line, char *out)
{
	const char *rest = behind_mask(line);
	if (rest) line = rest;
	return (begins(line, "mbarrier.arrive") || begins(line, "mbarrier.init")) && without_line(out);
}

static bool mask(const char *line, char *out)
{
	const char *rest = behind_mask(line);
	if (!rest) return false;
	static const char *const forms[] = {"ld.", "st.", "cp.async", "atom.", "red.", "mbarrier."};
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
		if (begins(rest, forms[i])) return strcpy(out, rest), true;
	return false;
}

/* "cp.async.cg.shared.global [a], [b], 16, %r3;": how much of it is read is a register. */
static bool copy_mask(const char *line, char *out)
{
	const char *copy = strstr(line, "cp.async.c"), *last = strrchr(line, ',');
	if (!copy || !last || !strstr(last, "%r")) return false;
	sprintf(out, "%.*s;", (int)(last - line), line);
	return true;
}

/* "atom.global.gpu.acq_rel.add.u32": the order that it makes. */
static bool atomic_order(const char *line, char *out)
{
	static const char *const orders[] = {".acq_rel", ".acquire", ".release"};
	if (!strstr(line, "atom.") && !strstr(line, "red.")) return false;
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		const char *at = strstr(line, orders[i]);
		if (!at) continue;
		sprintf(out, "%.*s.relaxed%s", (int)(at - line), line, at + strlen(orders[i]));
		return true;
	}
	return false;
}

static bool grid_wait(const char *line, char *out)
{
	return begins(line, "griddepcontrol.wait") && without_line(out);
}

static const struct {
	const char *name;
	change *change;
} kinds[] = {
	{"barrier", barrier},
	{"wait", copy_wait},
	{"commit", copy_commit},
	{"fence", fence},
	{"wait for a phase", phase_wait},
	{"arrival", arrival},
	{"mask", mask},
	{"mask of a copy", copy_mask},
	{"order", atomic_order},
	{"wait for a kernel", grid_wait},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], UNREACHED = KINDS };
_Static_assert((int)UNREACHED < (int)MOST_KINDS, "a place for each kind");

/* ---- Launches ---- */

/* How a launch of the list is varied, where the right code bears it. */
typedef enum variation {
	AS_GIVEN,
	ONE_BUFFER, /* one program, and what it may write lies in one buffer, SHIFT bytes from one argument to the next:
		     * the language allows it, and its accesses stay in the source's order */
	ONE_A_TYPE, /* the same with a buffer for the type of the first such argument */
	MORE,       /* one program more than there is work for */
	PAIRS, /* two of the first three buffers that it may write are one, at one of DISTANCES from each other; with
		* all programs, or with one that is launched REPEATS times from one memory, so that it arrives last, too
		*/
	EXACTLY = 7, /* 2 STEP, no SHIFT, so that blocks that go by such steps lie upon each other */
	SAME,        /* the last distance: none, no SHIFT, so that blocks of one number do */
	DISTANCES,
	VARIATIONS = PAIRS + 2 * 3 * DISTANCES
} variation;
typedef struct pair {
	unsigned first, second,
		distance; /* the second begins the last bytes behind the first, or, if it is 0, SHIFT in front */
	bool alone, same;
} pair;
enum { REPEATS = 3 };

static const blk_sim_options orders[] = {
	{.schedules = 1, .counters = 1, .steps = 1 << 24},
	{.seed = 1, .schedules = 4, .counters = 1, .steps = 1 << 24},
};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static bool may_write(const job *j, size_t k)
{
	return j->parameters[k].is_pointer && strncmp(j->parameters[k].type, "*const", 6) != 0;
}

static pair pair_of(variation v)
{
	static const unsigned who[3][2] = {{0, 1}, {0, 2}, {1, 2}};
	unsigned k = (unsigned)v - PAIRS, n = k / 6, distance = n && n != SAME ? STEP * (n - 1) + SHIFT : 0;
	return (pair){who[k / 2 % 3][0], who[k / 2 % 3][1], n == EXACTLY ? 2 * STEP : distance, k % 2, n == SAME};
}

/* Where the k-th argument that may be written, the n-th that shares, lies in the one buffer; SIZE_MAX: not there. */
static size_t place_in_one(variation v, unsigned k, unsigned n, bool same_type)
{
	if (v == ONE_BUFFER || (v == ONE_A_TYPE && same_type)) return n * SHIFT;
	if (v < PAIRS) return SIZE_MAX;
	const pair p = pair_of(v);
	if (k == p.first) return p.distance;
	return k != p.second ? SIZE_MAX : p.distance || p.same ? 0 : SHIFT;
}

/* True: the launch ended without a report. */
static bool launch(const subject *s, size_t i, variation v, size_t order, blk_kernel *kernel)
{
	const job *j = s->jobs[i];
	const place *p = &s->places[i];
	blk_grid grid = p->grid;
	blk_arg args[256];
	const char *type = NULL;
	unsigned written = 0, shared = 0;
	bool alone = v >= PAIRS && pair_of(v).alone;
	if (blk_sim_configure(s->device, &orders[order])) quit("options");
	if (place_write(p, j)) quit("inputs");
	for (size_t k = 0; k < j->n; k++) {
		args[k] = p->args[k];
		if (!may_write(j, k)) continue;
		if (!type) type = j->parameters[k].type;
		size_t at = place_in_one(v, written++, shared, strcmp(type, j->parameters[k].type) == 0);
		if (at == SIZE_MAX) continue;
		args[k] = blk_ptr((char *)blk_buffer_pointer(s->one[i]) + at);
		shared++;
	}
	if (shared && blk_buffer_fill(s->one[i], 0, 0, blk_buffer_size(s->one[i]))) quit("inputs");
	if (v == ONE_BUFFER || v == ONE_A_TYPE || alone) grid = (blk_grid){1, 1, 1};
	if (v == MORE) grid.x++;
	for (int k = 0; k < (alone ? REPEATS : 1); k++)
		if (blk_launch(kernel, NULL, &grid, args, j->n) || blk_device_sync(s->device)) return false;
	return true;
}

/* The right code bears it, in every order, and it says something: a pair needs two buffers, or three.  Those far from
 * each other, or upon each other, are for the last launch. */
static bool bears(subject *s, size_t i, variation v)
{
	unsigned n = 0;
	if (s->bears[i][v]) return s->bears[i][v] == 'y';
	for (size_t k = 0; k < s->jobs[i]->n; k++) n += may_write(s->jobs[i], k);
	bool near = v < PAIRS || (pair_of(v).distance <= SHIFT && !pair_of(v).same);
	bool good = v < PAIRS || (n > pair_of(v).second && (i + 1 == s->n || near));
	for (size_t o = 0; good && o < ORDERS; o++) good = launch(s, i, v, o, s->right);
	s->bears[i][v] = good ? 'y' : 'n';
	return good;
}

static bool same_outputs(const subject *s, size_t i)
{
	const job *j = s->jobs[i];
	bool same = true;
	for (size_t k = 0; same && k < j->nbuffers; k++) {
		array now;
		if (!job_may_write(j, k)) continue;
		if (place_download(&s->places[i], j, k, &now)) exit(2);
		same = memcmp(now.data, s->outputs[i][k].data, now.bytes) == 0;
		array_free(&now);
	}
	return same;
}

/* ---- Verdicts ---- */

/* What is right without a report:
 *
 * An atomic more than needed is a program like any other, but a wrong one: its results differ.
 *
 * Where several threads hold one element, a mask lets one of them store it, exchange it or read it for all.  Without it
 * they do the same to the same word, which the language allows (the order of one statement's stores is open), so there
 * is nothing to report.  It is there for the memory's sake, and the counters show it: every byte as before, more of
 * them moved.  Of atomics this holds for those that may be made twice; how many there are in a loop that waits for
 * others, tells nothing.  Of loads only those that others may write are read once.
 *
 * Programs run beside each other on the host's cores, so a launch that was clean may be reported the next time. */
static const char *excused(subject *s, const char *line, blk_kernel *kernel)
{
	bool twice = strstr(line, ".exch.") || strstr(line, ".or.") || strstr(line, ".cas."),
	     atomic = strstr(line, "atom.") || strstr(line, "red."), same = true, more = false;
	if (line[0] != '@' || (!atomic && !strstr(line, " st.global") && !strstr(line, " ld.global."))) return NULL;
	if (strstr(line, ".nc")) return NULL;
	for (size_t i = 0; i < s->n; i++) {
		blk_sim_counters c;
		if (!launch(s, i, AS_GIVEN, 0, kernel)) return blk_error();
		if (blk_sim_count(s->device, &c)) quit("counters");
		same = same && same_outputs(s, i);
		more = more || c.store_bytes > s->counters[i].store_bytes || c.load_bytes > s->counters[i].load_bytes;
	}
	if (same && (more || twice)) return s->redundant++, "one thread does it for all";
	if (atomic && !same) return s->wrong++, "the results differ";
	return NULL;
}

static blk_kernel *open_kernel(blk_device *device, const char *text, blk_module **module)
{
	blk_kernel *kernel = NULL;
	if (blk_module_source(device, "mutant.ptx", text, NULL, 0, module) || blk_kernel_find(*module, NULL, &kernel))
		quit("a mutant is no PTX");
	return kernel;
}

/* Null: nothing was said. */
static const char *verdict(subject *s, const char *text, const char *line)
{
	blk_module *module = NULL;
	blk_kernel *kernel = open_kernel(s->device, text, &module);
	const char *found = NULL;
	for (variation from = AS_GIVEN, to = PAIRS; !found && from < to; from = to, to = VARIATIONS) /* pairs last */
		for (size_t o = 0; !found && o < ORDERS; o++)
			for (size_t i = 0; !found && i < s->n; i++)
				for (variation v = from; !found && v < to; v++)
					if (bears(s, i, v) && !launch(s, i, v, o, kernel)) found = blk_error();
	if (!found) found = excused(s, line, kernel);
	blk_module_close(module);
	return found;
}

/* The code with another line in the place of the one at `at`. */
static char *with_line(const subject *s, const char *at, size_t length, const char *line)
{
	size_t room = strlen(s->ptx) + LINE;
	char *text = malloc(room);
	if (!text) quit("memory");
	snprintf(text, room, "%.*s%s%s", (int)(at - s->ptx), s->ptx, line, at + length);
	return text;
}

static bool is_reached(const subject *s, const char *at, size_t length)
{
	char *text = with_line(s, at, length, "trap;");
	blk_module *module = NULL;
	blk_kernel *kernel = open_kernel(s->device, text, &module);
	bool clean = true;
	for (size_t i = 0; clean && i < s->n; i++) clean = launch(s, i, AS_GIVEN, 0, kernel);
	blk_module_close(module);
	free(text);
	return !clean;
}

/* What the list says of a mutant that nothing was said about; null: nothing. */
static const char *explained(subject *s, size_t kind, const char *at, size_t length)
{
	bool unreached = s->equal[UNREACHED] && !is_reached(s, at, length);
	if (!unreached && !s->equal[kind]) return NULL;
	s->equal[unreached ? UNREACHED : kind]--;
	s->explained++;
	return unreached ? "no launch reaches it" : "it is explained";
}

static void try_line(subject *s, const char *at, size_t length, unsigned number, unsigned every, unsigned *counter)
{
	char line[LINE], out[LINE];
	size_t blanks = strspn(at, " \t");
	if (length >= LINE || blanks > length) return;
	snprintf(line, sizeof line, "%.*s", (int)(length - blanks), at + blanks);
	for (size_t k = 0; k < KINDS; k++) {
		if (!kinds[k].change(line, out) || (*counter)++ % every) continue;
		char *text = with_line(s, at, length, out);
		const char *found = verdict(s, text, line);
		if (!found) found = explained(s, k, at, length);
		s->mutants++;
		s->survivors += !found;
		if (!found || verbose)
			printf("%s: line %u: %s %s: %.*s\n", found ? "  found" : "FAILED", number, kinds[k].name, line,
				found ? (int)strcspn(found, "\n") : 20, found ? found : "nothing is said");
		free(text);
	}
}

/* ---- One kernel ---- */

static bool prepare(subject *s, char *words)
{
	char *argv[MOST_WORDS] = {"mutate"};
	int argc = 1;
	for (char *w = strtok(words, " "); w && argc < MOST_WORDS; w = strtok(NULL, " ")) argv[argc++] = w;
	if (options_parse(argc, argv, &s->options) || sweep_open(&s->options, &s->sweep)) return false;
	s->n = s->sweep.n;
	s->device = devices[strcmp(s->options.device, "sim:sm_90a") == 0];
	if (s->n > MOST_LAUNCHES) return false;
	for (size_t i = 0; i < s->n; i++) {
		place *p = &s->places[i];
		job *j = s->jobs[i] = calloc(1, sizeof *j);
		if (!j || sweep_at(&s->sweep, i, &s->points[i])) return false;
		options *o = &s->points[i].options;
		o->sim = orders[0];
		if (i) o->path = s->path, o->ndefines = 0;
		if (place_open(p, o, s->device) || job_make(j, o, p->kernel) || place_run(p, j, false)) return false;
		blk_info info;
		if (!p->launched || blk_kernel_info(p->kernel, p->args, j->n, &info)) return false;
		if (blk_sim_count(s->device, &s->counters[i])) return false;
		s->outputs[i] = calloc(j->nbuffers, sizeof(array));
		size_t bytes = 0;
		for (size_t k = 0; k < j->n; k++)
			if (may_write(j, k)) bytes = (bytes > j->arrays[k].bytes ? bytes : j->arrays[k].bytes) + SHIFT;
		if (blk_buffer_create(s->device, bytes + DISTANCES * STEP, &s->one[i])) return false;
		for (size_t k = 0; k < j->nbuffers; k++)
			if (job_may_write(j, k) && place_download(p, j, k, &s->outputs[i][k])) return false;
		if (i) continue;
		s->ptx = strdup(info.ptx);
		FILE *f = fopen(s->path, "w");
		if (!f || fputs(s->ptx, f) < 0 || fclose(f)) return false;
	}
	s->right = open_kernel(s->device, s->ptx, &s->module);
	for (size_t i = 0; i < s->n; i++) {
		if (!bears(s, i, AS_GIVEN)) return s->unfit = blk_error(), false;
		if (!same_outputs(s, i)) return s->unfit = "its results depend on the order", false;
	}
	return true;
}

static void forget(subject *s)
{
	for (size_t i = 0; i < s->n && s->jobs[i]; i++) {
		for (size_t k = 0; s->outputs[i] && k < s->jobs[i]->nbuffers; k++) array_free(&s->outputs[i][k]);
		free(s->outputs[i]);
		blk_buffer_free(s->one[i]);
		place_close(&s->places[i]);
		job_free(s->jobs[i]);
		free(s->jobs[i]);
		sweep_point_free(&s->points[i]);
	}
	remove(s->path);
	blk_module_close(s->module);
	free(s->ptx);
	options_free(&s->options);
}

typedef struct totals {
	unsigned passed, failed, redundant, wrong, explained, every, counter, part;
	char *code; /* of the last line, behind its target */
} totals;

/* Behind ".target": what is the same for all targets, if it is. */
static const char *code_of(const char *ptx)
{
	const char *at = strstr(ptx, "\n.target ");
	return at ? strchr(at + 1, '\n') : ptx;
}

static void take_apart(const char *words, const unsigned *equal, totals *t, bool if_new)
{
	char copy[4096];
	subject *s = calloc(1, sizeof *s);
	if (!s) quit("memory");
	memcpy(s->equal, equal, sizeof s->equal);
	snprintf(copy, sizeof copy, "%s", words);
	snprintf(s->path, sizeof s->path, "kernel%u.ptx", t->part);
	if (!prepare(s, copy)) {
		printf("FAILED: %.200s does not run as compiled: %s\n", words, s->unfit ? s->unfit : "see above");
		t->failed++;
	} else if (!if_new || strcmp(code_of(s->ptx), t->code) != 0) {
		unsigned line = 1;
		for (const char *at = s->ptx; *at; line++) {
			size_t length = strcspn(at, "\n");
			try_line(s, at, length, line, t->every, &t->counter);
			at += length + (at[length] == '\n');
		}
		printf("%4u mutants, %u survive, %u right without a report: %.200s\n", s->mutants, s->survivors,
			s->redundant + s->wrong + s->explained, words);
		fflush(stdout);
	}
	t->passed += s->mutants - s->survivors;
	t->failed += s->survivors;
	t->redundant += s->redundant;
	t->wrong += s->wrong;
	t->explained += s->explained;
	free(t->code);
	t->code = strdup(s->ptx ? code_of(s->ptx) : "");
	if (!t->code) quit("memory");
	forget(s);
	free(s);
}

/* "equal N KIND: WHY" */
static void read_equal(const char *line, unsigned *equal)
{
	char *rest;
	unsigned n = (unsigned)strtoul(line, &rest, 10);
	const char *name = rest + 1, *end = strchr(rest, ':');
	size_t k = 0, length = *rest == ' ' && end ? (size_t)(end - name) : 0;
	while (k < KINDS && (strlen(kinds[k].name) != length || strncmp(kinds[k].name, name, length) != 0)) k++;
	if (k == KINDS && (length != strlen("unreached") || strncmp(name, "unreached", length) != 0)) {
		fprintf(stderr, "mutate: of what kind is 'equal %s'\n", line);
		exit(2);
	}
	equal[k] += n;
}

/* The next kernel's words and what is said behind them; `held` is a line that was read too far. */
static bool next_words(FILE *f, char *held, char *words, size_t room, unsigned *equal)
{
	bool some = *held;
	memset(equal, 0, MOST_KINDS * sizeof *equal);
	strcpy(words, held);
	*held = 0;
	while (fgets(held, (int)room, f)) {
		held[strcspn(held, "\n")] = 0;
		if (some && strncmp(held, "equal ", 6) == 0)
			read_equal(held + 6, equal);
		else if (*held && *held != '#') {
			if (some) return true;
			some = true;
			strcpy(words, held);
		}
		*held = 0;
	}
	return some;
}

int main(int argc, char **argv)
{
	char words[4000], other[4096], held[4000] = "";
	unsigned number = 0, equal[MOST_KINDS];
	FILE *f = argc > 4 ? fopen(argv[1], "r") : NULL;
	if (!f) {
		fprintf(stderr, "usage: mutate FILE PART PARTS EVERY [-v]\n");
		return 2;
	}
	totals t = {.part = (unsigned)atoi(argv[2]), .every = (unsigned)atoi(argv[4])};
	unsigned parts = (unsigned)atoi(argv[3]);
	verbose = argc > 5;
	if (blk_device_open("sim", &devices[0]) || blk_device_open("sim:sm_90a", &devices[1])) quit("sim");
	while (next_words(f, held, words, sizeof words, equal)) {
		if (number++ % parts != t.part) continue;
		bool both = strncmp(words, "both ", 5) == 0;
		take_apart(both ? words + 5 : words, equal, &t, false);
		if (!both) continue;
		snprintf(other, sizeof other, "%s --device=sim:sm_90a", words + 5);
		take_apart(other, equal, &t, true);
	}
	fclose(f);
	free(t.code);
	for (int i = 0; i < 2; i++) blk_device_close(devices[i]);
	printf("right without a report: one thread does it for all %u, the results differ %u, explained %u\n",
		t.redundant, t.wrong, t.explained);
	printf("%u passed, %u failed\n", t.passed, t.failed);
	return t.failed != 0;
}
