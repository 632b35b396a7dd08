/* What the tuner's files share.
 *
 *	tune.c            from a launch's arguments to a choice: the table, the records, or trials
 *	tune/record.c     what was learnt, on disk; tune/ship.c moves it
 *	tune/key.c        what a key is made of
 *	tune/search.c     which configurations are tried at all
 *	tune/mark.c       what is being tried, on disk, for whoever comes after a crash
 *	tune/trial.c      trials in this process: compiled (tune/compile.c), on copies (tune/memory.c), their results
 *	                  compared (tune/results.c) where they changed (tune/changes.c), timed (tune/time.c)
 *	tune/isolated.c   trials in a process of their own (trial/blk-trial.c), over the memory of tune/share.h */
#ifndef BLK_TUNE_H
#define BLK_TUNE_H

#include "internal.h"

#include <time.h>

enum { TUNE_KEYS = 32, TUNE_BUCKETS = 256 };
#define TUNE_KEEP_NS UINT64_C(500000000) /* what has been learnt is on disk so soon */
#define TUNE_NONE UINT32_MAX             /* in place of a configuration's number: the defaults, or none at all */

typedef struct tune_result {
	blk_tune_verdict verdict;
	double ms;
	char *reason;    /* malloc'ed or null */
	bool checked;    /* unknown as yet, but it ran, and its results were the first one's */
	double whole_ms; /* what its last run took, with all around it */
} tune_result;

/* What is known for one key: what to launch.  Published once, then never changed. */
typedef struct tune_choice {
	struct tune_choice *next;
	uint64_t promises;
	variant *v;
	uint32_t configuration;
	double ms;    /* of the configuration; infinite: not known */
	bool unsized; /* not tuned, as a bare pointer hid the size of its memory: blk_buffers change that */
	uint64_t values[TUNE_KEYS];
} tune_choice;

typedef struct tune_code { /* a configuration's code for a set of promises */
	struct tune_code *next;
	uint64_t promises;
	uint32_t configuration;
	variant *v;
} tune_code;

typedef struct tune_key {
	uint32_t parameter; /* UINT32_MAX: an expression */
	const signature_key *computed;
} tune_key;

typedef struct tuner {
	uint32_t nkeys;
	tune_key keys[TUNE_KEYS];
	bool coarse; /* some key is an expression: arguments that differ may have one key */
	bool reset[SIGNATURE_PARAMETERS], restore[SIGNATURE_PARAMETERS], scratch[SIGNATURE_PARAMETERS];
	double tolerance; /* below 0: by type */
	pthread_mutex_t lock;
	tune_code *code;
	_Atomic(tune_choice *) buckets[TUNE_BUCKETS];
} tuner;

/* One tuning under way. */
typedef struct tune_job {
	blk_kernel *kernel;
	const blk_grid *given;
	const blk_arg *args;
	uint64_t *bits, promises;
	tune_result *results; /* one a configuration */
	variant **variants;   /* the same; null: not compiled */
	uint32_t *ranking;    /* configurations, the most promising first; null: all are tried, in their order */
	blk_tune_progress progress;
	void *context;
	uint32_t done, total, timed;
	/* Told before a configuration runs, with what the runs should take as far as one knows, and (TUNE_NONE) after.
	 */
	void (*running)(struct tune_job *, uint32_t configuration, double expected_ms);
	/* Told whenever there is more to know of a configuration. */
	void (*learnt)(struct tune_job *, uint32_t configuration);
	void *watcher;
	bool isolated; /* its trials run in another process, which has copies of the arguments and nothing else */
	bool poisoned; /* a configuration failed in a way that leaves nothing to the process but to end */
	bool untried;  /* the error says why no trial can be made; nothing is lost by going on without */
} tune_job;

/* tune.c */
blk_status tune_job_begin(tune_job *);
void tune_job_end(tune_job *);
void tune_step(tune_job *); /* progress */
double tune_best_ms(const tune_job *);
static inline void tune_running(tune_job *j, uint32_t configuration, double expected_ms)
{
	if (j->running) j->running(j, configuration, expected_ms);
}
static inline void tune_learnt(tune_job *j, uint32_t configuration)
{
	if (j->learnt) j->learnt(j, configuration);
}

static inline uint64_t tune_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* tune/key.c */
const char *tune_key_name(const blk_kernel *, uint32_t key);                        /* "n", "next_pow2(n)" */
uint64_t tune_key_computed(const blk_kernel *, uint32_t key, const uint64_t *bits); /* of an expression */
static inline uint64_t tune_key_value(const blk_kernel *k, uint32_t key, const uint64_t *bits)
{
	uint32_t parameter = k->tuner->keys[key].parameter;
	return parameter != UINT32_MAX ? bits[parameter] : tune_key_computed(k, key, bits);
}

/* tune/search.c */
bool search_ordered(const blk_kernel *);
double search_time(const tune_job *, uint32_t configuration); /* predicted; nan: there is no order */
blk_status search_rank(tune_job *);                           /* fills in job->ranking */
void search_field(const tune_job *, bool *field);             /* which are to be known, one a configuration */
bool search_complete(const tune_job *);                       /* all of the field are */

/* tune/compile.c */
blk_status tune_compile_all(tune_job *, const bool *wanted);
blk_status tune_compiled(blk_kernel *, uint64_t promises, uint32_t configuration, variant **);
bool tune_lasting(blk_status); /* only what would fail again is a verdict */

/* tune/trial.c: fills in results that are still BLK_TUNE_UNKNOWN.  An error: nothing can be said of the others. */
blk_status tune_trials(tune_job *);

/* ---- Trials ---- */

typedef struct trial_copy {
	memory_span of;    /* the caller's memory */
	uint64_t room, at; /* what was allocated; where the copy begins there */
	uint64_t kept;     /* as it was before the first trial; 0: not asked for */
	bool zeroed;       /* in trials */
	uint8_t *changed;  /* of each TRIAL_CHUNK, whether the last trial changed it; null: all may have changed */
	uint64_t flags;    /* the same on the device */
} trial_copy;

typedef struct trial_section { /* a written parameter's part of a copy */
	uint32_t parameter;
	const trial_copy *copy;
	uint64_t from, bytes; /* within the copy */
	bool is_whole;        /* the parameter's own buffer, all of it */
	void *reference;      /* the first configuration's results */
	void *before;         /* what trials find there; null: is_whole */
	uint8_t *have;        /* of each TRIAL_CHUNK of the copy, what is there: TRIAL_REFERENCE, TRIAL_BEFORE */
	double square_sum;    /* of those; 0: not asked for yet */
} trial_section;

/* Results come to the host in pieces of so many bytes at most, through pinned memory; what changed is known of chunks.
 */
enum { TRIAL_PIECE = 32 << 20, TRIAL_CHUNK = 64 << 10 };
enum { TRIAL_REFERENCE = 1, TRIAL_BEFORE = 2 };
static inline uint64_t trial_chunks(const trial_copy *c)
{
	return (c->of.bytes + TRIAL_CHUNK - 1) / TRIAL_CHUNK;
}

typedef struct trial {
	tune_job *job;
	blk_device *device;
	trial_copy *copies;
	trial_section *sections;
	uint32_t ncopies, nsections, ntouched;
	uint64_t bits[SIGNATURE_PARAMETERS];       /* the arguments of trials */
	memory_span touched[SIGNATURE_PARAMETERS]; /* what lies behind them */
	bool all_known;                            /* which is all of it */
	void *got;                                 /* room for one piece of results */
	bool has_reference;
	failed_assert failure; /* of its own launches, where the device has ended them when they return */
} trial;

/* tune/memory.c: the device has done all that was asked of it before.  An error with job->untried: no trial can be
 * made, and nothing has happened. */
blk_status trial_memory_make(trial *);
void trial_memory_free(trial *); /* after a failed make too */
/* The same question before anything is compiled, as far as the defaults tell what is written. */
blk_status trial_memory_known(trial *);
blk_status trial_refresh(const trial *);
blk_status trial_unknown_memory(tune_job *, uint32_t parameter); /* the error, with job->untried */
/* Whether what the job's code does at addresses lets it be tried, as far as the code is there. */
blk_status trial_addresses_known(tune_job *);

/* tune/changes.c */
void changes_make(trial *); /* for the copies that there are */
void changes_find(trial *); /* behind a trial that has ended: each copy's `changed` */

/* tune/results.c */
blk_status trial_judge(trial *, tune_result *);

/* tune/cores.c: `work` on this thread and on others, as many as there are cores, `most` in all. */
void tune_on_cores(uint32_t most, void *(*work)(void *), void *argument);

/* What the launches of trials are made on.  Beside them others' asserts may fail: a configuration answers for its own,
 * and what is found of theirs is left to them. */
void *trial_stream(trial *);
blk_status trial_wait(trial *); /* until what was launched there has ended */
blk_status trial_read(const trial *, void *to, uint64_t from, size_t bytes);

/* Whether the device can hold a program of it at all. */
blk_status trial_can_reside(blk_device *, const variant *);
blk_status trial_grid(const tune_job *, uint32_t configuration, uint32_t grid[3]);
/* The failure of a launch, as a verdict if it would fail again; what cannot be survived is returned and names the
 * configuration. */
blk_status trial_failed(trial *, uint32_t configuration, blk_status);

/* tune/time.c: times those that are left and drops the slower ones; what the estimates rule out is never timed. */
blk_status tune_time(trial *, uint32_t *left, uint32_t n);

/* tune/isolated.c: the same as tune_trials(), but a configuration that takes its process with it is a failed one. */
blk_status tune_isolated(tune_job *);

/* tune/record.c */
void tune_record_read(const blk_kernel *, const uint64_t *bits, uint64_t promises, tune_result *);
void tune_record_write(const blk_kernel *, const uint64_t *bits, uint64_t promises, tune_result *);
/* The best configuration of the record whose key is nearest: of all records of this kernel on such a device, the least
 * sum of |log2 a - log2 b| over integer keys (below 1 they count as 1), 64 for another one that differs.  TUNE_NONE:
 * there is none.  *where: its key, "M=64,N=4096", malloc'ed or null. */
uint32_t tune_record_nearest(
	const blk_kernel *, const uint64_t *bits, uint64_t promises, const tune_result *, char **where);
/* The length of the verified record that `s` starts with, without its checksum line; 0: none.  *whole: with it. */
size_t tune_record_verified(const char *s, size_t n, size_t *whole);
/* Stores a verified record; where the cache knows a configuration already, that stays. */
bool tune_record_merge(cache *, const char *record, size_t head_bytes, size_t body);
/* "KERNEL\nTARGET" of the record in this file, malloc'ed; null: it is damaged. */
char *tune_record_label(cache *, const char *name);
bool tune_record_key(const blk_kernel *, const uint64_t *bits, uint64_t promises, cache_key *);

/* tune/mark.c */
typedef struct tune_mark {
	int fd; /* -1: none could be had, which is nobody's error */
	char *path;
} tune_mark;
/* What dead processes tried last becomes BLK_TUNE_SUSPECT; true: there was one, which must be recorded at once. */
bool tune_marks_read(const tune_job *);
void tune_mark_open(const tune_job *, tune_mark *);         /* for this process */
void tune_mark_set(tune_mark *, const char *configuration); /* null: nothing is being tried */
void tune_mark_close(tune_mark *);
void tune_marks_clear(const cache *); /* those of dead processes, of any key */

#endif
