/* Differential fuzzing of whole programs.
 *
 *     fuzz-programs [--programs=N] [--seed=S] [--jobs=N] [--out=FOLDER] [--stop=FAILURES] [--reduce=SECONDS]
 *                                        N programs from seeds S, S + 1, ..; jobs of as many seeds each, side by side
 *     fuzz-programs --replay=FILE        a seed, or a range, a line; what follows it is a comment
 *     fuzz-programs --print --seed=S     the program of a seed
 *
 * Each program runs on cpu and sim (and cuda where there is one); a failure is reduced, printed and written to FOLDER.
 * The one idea: a worker process runs seed after seed and notes in shared memory where it is; when it dies, that seed
 * is a failure like any other and a new worker goes on behind it. */
#include "generate.h"
#include "run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FEATURES = 400, MAX_SEEDS = 100000, MAX_JOBS = 256, SECONDS = 60, REDUCTION_SECONDS = 90 };

typedef struct feature {
	char name[32];
	uint64_t programs, uses, last;
} feature;

typedef struct shared { /* between the worker and the one that watches it */
	uint64_t done, failed, at;
	bool running;
	feature features[MAX_FEATURES];
	int nfeatures;
	verdict failure;
} shared;

typedef struct options {
	uint64_t programs, seed, jobs, stop, reduction; /* the last in seconds */
	const char *out, *replay;
	bool print, quiet, spoil;
	uint64_t *seeds; /* of a replay */
} options;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- what the programs reach ---- */

static void count_feature(shared *s, const char *name)
{
	int i = 0;
	while (i < s->nfeatures && strcmp(s->features[i].name, name) != 0) i++;
	if (i == MAX_FEATURES) return;
	if (i == s->nfeatures) snprintf(s->features[s->nfeatures++].name, sizeof s->features->name, "%.31s", name);
	feature *f = &s->features[i];
	f->uses++;
	if (f->last != s->at + 1) f->programs++;
	f->last = s->at + 1;
}

static void count_node(shared *s, const node *n)
{
	count_feature(s, n->rule->name);
	for (int i = 0; i < n->nkids; i++) count_node(s, n->kid[i]);
	for (int b = 0; b < n->nbodies; b++)
		for (int i = 0; i < n->body[b].n; i++) count_node(s, n->body[b].at[i]);
}

static void count_features(shared *s, const program *p)
{
	char name[32];
	for (int i = 0; i < p->body.n; i++) count_node(s, p->body.at[i]);
	for (int i = 0; i < p->functions.n; i++) count_node(s, p->functions.at[i]);
	snprintf(name, sizeof name, "num_warps %d", p->num_warps);
	count_feature(s, name);
	for (int i = 0; i < p->nbuffers; i++) {
		snprintf(name, sizeof name, "buffer of %s", scalar_name(p->buffers[i].s));
		count_feature(s, name);
	}
}

static int by_uses(const void *a, const void *b)
{
	const feature *x = a, *y = b;
	return x->programs == y->programs ? strcmp(x->name, y->name) : x->programs < y->programs ? 1 : -1;
}

/* ---- the worker ---- */

static uint64_t seed_of(const options *o, uint64_t i)
{
	return o->seeds ? o->seeds[i] : o->seed + i;
}

static void work(shared *s, const options *o)
{
	devices d = {0};
	for (; s->at < o->programs; s->at++) {
		program p;
		s->running = true;
		limit_time(SECONDS);
		program_generate(&p, seed_of(o, s->at));
		p.spoil = o->spoil;
		count_features(s, &p);
		run_program(&d, &p, NULL, &s->failure);
		limit_time(0);
		program_free(&p);
		s->running = false;
		if (s->failure.kind != AGREE) _exit(3);
		s->done++;
	}
	devices_close(&d);
	_exit(0);
}

static void report(shared *s, const options *o, uint64_t seed)
{
	program p;
	verdict v = s->failure;
	program_generate(&p, seed);
	p.spoil = o->spoil;
	printf("seed %" PRIu64 ": %s on %s\n%s\n", seed, verdict_names[v.kind], v.device, v.what);
	if (o->reduction) {
		printf("reducing ..\n");
		fflush(stdout);
		reduce_program(&p, &v, (unsigned)o->reduction);
		verdict like = v;
		run_isolated(&p, like.kind == CRASHED ? NULL : &like, SECONDS, &v);
		printf("reduced: %s on %s\n%s\n", verdict_names[v.kind], v.device, v.what);
	}
	program_print(&p, false, stdout);
	char prefix[400];
	snprintf(prefix, sizeof prefix, "%s/%" PRIu64, o->out, seed);
	write_case(&p, &v, prefix, stdout);
	program_free(&p);
	fflush(stdout);
}

static void progress(const shared *s, const options *o, double start, bool end)
{
	double t = now() - start;
	if (o->quiet) return;
	bool terminal = isatty(2);
	fprintf(stderr, "%s%" PRIu64 " of %" PRIu64 " programs, %" PRIu64 " failed, %.1f a second%s",
		terminal ? "\r" : "", s->at, o->programs, s->failed, t > 0 ? (double)s->at / t : 0,
		terminal && !end ? "" : "\n");
}

static void watch(shared *s, const options *o)
{
	double start = now(), told = start;
	while (s->at < o->programs && s->failed < o->stop) {
		int status;
		fflush(NULL);
		pid_t parent = getpid(), child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody watches it then */
			if (getppid() != parent) _exit(2);
			work(s, o);
		}
		if (child < 0) exit(2);
		while (waitpid(child, &status, WNOHANG) == 0) {
			struct timespec t = {0, 50 * 1000000};
			nanosleep(&t, NULL);
			if (now() - told < (isatty(2) ? 1 : 60)) continue;
			told = now();
			progress(s, o, start, false);
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 3) {
			bool hung = is_time_limit(status);
			s->failure = (verdict){.kind = hung ? HUNG : CRASHED};
			snprintf(s->failure.what, sizeof s->failure.what, "%s", hung ? "no end" : "the process died");
			snprintf(s->failure.key, sizeof s->failure.key, "%s", hung ? "no end" : "the process died");
		}
		s->failed++;
		report(s, o, seed_of(o, s->at));
		s->at++;
	}
	progress(s, o, start, true);
}

/* ---- jobs: each watches a worker of its own, over a part of the seeds ---- */

static bool start_job(shared *s, const options *o, uint64_t job)
{
	options part = *o;
	uint64_t first = o->programs * job / o->jobs;
	part.programs = o->programs * (job + 1) / o->jobs - first;
	part.seed += first;
	if (part.seeds) part.seeds += first;
	part.quiet = true;
	fflush(NULL);
	pid_t parent = getpid(), child = fork();
	if (child) return child > 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) _exit(2);
	watch(s, &part);
	fflush(NULL);
	_exit(0);
}

static void add_up(shared *sum, const shared *s, uint64_t jobs)
{
	*sum = s[0];
	for (uint64_t j = 1; j < jobs; j++) {
		sum->done += s[j].done;
		sum->failed += s[j].failed;
		sum->at += s[j].at;
		for (int i = 0; i < s[j].nfeatures; i++) {
			const feature *f = &s[j].features[i];
			int k = 0;
			while (k < sum->nfeatures && strcmp(sum->features[k].name, f->name) != 0) k++;
			if (k == MAX_FEATURES) continue;
			if (k == sum->nfeatures) sum->features[sum->nfeatures++] = (feature){0};
			strcpy(sum->features[k].name, f->name);
			sum->features[k].programs += f->programs;
			sum->features[k].uses += f->uses;
		}
	}
}

static bool run_jobs(shared *sum, const options *o)
{
	size_t bytes = o->jobs * sizeof(shared);
	shared *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double start = now(), told = start;
	bool good = s != MAP_FAILED;
	uint64_t running = 0;
	for (; good && running < o->jobs; running++) good = start_job(&s[running], o, running);
	if (!good) return false;
	while (running) {
		struct timespec t = {0, 50 * 1000000};
		int status;
		while (running && waitpid(-1, &status, WNOHANG) > 0) {
			running--;
			good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
		}
		nanosleep(&t, NULL);
		if (now() - told < (isatty(2) ? 1 : 60)) continue;
		told = now();
		add_up(sum, s, o->jobs);
		progress(sum, o, start, false);
	}
	add_up(sum, s, o->jobs);
	progress(sum, o, start, true);
	munmap(s, bytes);
	return good;
}

/* ---- the command line ---- */

static bool read_seeds(options *o)
{
	FILE *f = fopen(o->replay, "r");
	char line[400];
	if (!f) {
		perror(o->replay);
		return false;
	}
	uint64_t n = 0;
	o->seeds = calloc(MAX_SEEDS, sizeof *o->seeds);
	while (o->seeds && n < MAX_SEEDS && fgets(line, sizeof line, f)) {
		char *end;
		uint64_t lo = strtoull(line, &end, 10), hi = lo;
		if (end == line) continue; /* a comment, an empty line */
		if (*end == '-') hi = strtoull(end + 1, NULL, 10);
		for (; lo <= hi && n < MAX_SEEDS; lo++) o->seeds[n++] = lo;
	}
	fclose(f);
	if (o->programs > n) o->programs = n;
	return o->seeds != NULL;
}

static bool number_option(const char *arg, const char *name, uint64_t *out)
{
	size_t n = strlen(name);
	if (strncmp(arg, name, n) != 0) return false;
	*out = strtoull(arg + n, NULL, 10);
	return true;
}

int main(int argc, char **argv)
{
	options o = {
		.programs = UINT64_MAX, .seed = 1, .jobs = 1, .stop = 20, .reduction = REDUCTION_SECONDS, .out = "."};
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if (number_option(a, "--programs=", &o.programs) || number_option(a, "--seed=", &o.seed) ||
			number_option(a, "--jobs=", &o.jobs) || number_option(a, "--stop=", &o.stop) ||
			number_option(a, "--reduce=", &o.reduction))
			continue;
		if (strncmp(a, "--out=", 6) == 0)
			o.out = a + 6;
		else if (strncmp(a, "--replay=", 9) == 0)
			o.replay = a + 9;
		else if (strcmp(a, "--print") == 0)
			o.print = true;
		else if (strcmp(a, "--quiet") == 0)
			o.quiet = true;
		else if (strcmp(a, "--spoil") == 0)
			o.spoil = true;
		else {
			fprintf(stderr,
				"usage: %s [--programs=N] [--seed=S] [--jobs=N] [--replay=FILE] [--out=FOLDER] "
				"[--stop=FAILURES] "
				"[--reduce=SECONDS] [--quiet] [--print]\n",
				argv[0]);
			return 2;
		}
	}
	if (o.print) {
		program p;
		program_generate(&p, o.seed);
		program_print(&p, false, stdout);
		program_free(&p);
		return 0;
	}
	setenv("BLK_CACHE", "off", 1);
	if (o.replay && !read_seeds(&o)) return 2;
	if (!o.replay && o.programs == UINT64_MAX) o.programs = 1000;
	mkdir(o.out, 0777);
	shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED) return 2;
	if (o.jobs == 0 || o.jobs > MAX_JOBS) o.jobs = 1;
	if (o.jobs == 1)
		watch(s, &o);
	else if (!run_jobs(s, &o)) {
		fprintf(stderr, "fuzz-programs: a job could not be started, or died\n");
		return 2;
	}
	if (!o.quiet) {
		printf("programs that use a feature, and how often:\n");
		qsort(s->features, (size_t)s->nfeatures, sizeof *s->features, by_uses);
		for (int i = 0; i < s->nfeatures; i++)
			printf("  %-32s %8" PRIu64 " %10" PRIu64 "\n", s->features[i].name, s->features[i].programs,
				s->features[i].uses);
	}
	free(o.seeds);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", s->done, s->failed);
	return s->failed != 0;
}
