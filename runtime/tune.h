/* What the tuner's files share.
 *
 *	tune.c            from a launch's arguments to a choice: the table, the records, or trials
 *	tune_record.c     what was learnt, on disk; tune_ship.c moves it
 *	tune_mark.c       what is being tried, on disk, for whoever comes after a crash
 *	tune_trial.c      trials in this process: compiled (tune_compile.c), checked, timed (tune_time.c)
 *	tune_isolated.c   trials in a process of their own (trial/blk-trial.c), over the memory of tune_share.h */
#ifndef BLK_TUNE_H
#define BLK_TUNE_H

#include "internal.h"

#include <time.h>

enum { TUNE_KEYS = 32, TUNE_BUCKETS = 256 };
#define TUNE_NONE UINT32_MAX /* in place of a configuration's number: the defaults, or none at all */

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
	uint64_t values[TUNE_KEYS];
} tune_choice;

typedef struct tune_code { /* a configuration's code for a set of promises */
	struct tune_code *next;
	uint64_t promises;
	uint32_t configuration;
	variant *v;
} tune_code;

typedef struct tuner {
	uint32_t nkeys;
	uint32_t keys[TUNE_KEYS];
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
	blk_tune_progress progress;
	void *context;
	uint32_t done, total, timed;
	/* Told before a configuration runs, with what the runs should take as far as one knows, and (TUNE_NONE) after.
	 */
	void (*running)(struct tune_job *, uint32_t configuration, double expected_ms);
	/* Told whenever there is more to know of a configuration. */
	void (*learnt)(struct tune_job *, uint32_t configuration);
	void *watcher;
	bool poisoned; /* a configuration failed in a way that leaves nothing to the process but to end */
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

/* tune_compile.c */
blk_status tune_compile_all(tune_job *, const bool *wanted);
blk_status tune_compiled(blk_kernel *, uint64_t promises, uint32_t configuration, variant **);

/* tune_trial.c: fills in results that are still BLK_TUNE_UNKNOWN.  An error: nothing can be said of the others. */
blk_status tune_trials(tune_job *);

typedef struct trial_buffer {
	const blk_buffer *buffer; /* null: not one, or not touched */
	uint64_t copy;            /* its contents */
	bool reset;
	void *reference;   /* the first configuration's results */
	double square_sum; /* of those; 0: not asked for yet */
} trial_buffer;

typedef struct trial {
	tune_job *job;
	blk_device *device;
	trial_buffer *buffers; /* one a parameter */
	void *got;             /* room for one buffer's results */
	bool has_reference;
} trial;
blk_status trial_put_back(const trial *, bool for_trial);
blk_status trial_grid(const tune_job *, uint32_t configuration, uint32_t grid[3]);
/* The failure of a launch, as a verdict; what cannot be survived is returned and names the configuration. */
blk_status trial_failed(trial *, uint32_t configuration, blk_status);

/* tune_time.c: times those that are left and drops the slower ones; what the estimates rule out is never timed. */
blk_status tune_time(trial *, uint32_t *left, uint32_t n);

/* tune_isolated.c: the same as tune_trials(), but a configuration that takes its process with it is a failed one. */
blk_status tune_isolated(tune_job *);

/* tune_record.c */
void tune_record_read(const blk_kernel *, const uint64_t *bits, uint64_t promises, tune_result *);
void tune_record_write(const blk_kernel *, const uint64_t *bits, uint64_t promises, tune_result *);
/* The length of the verified record that `s` starts with, without its checksum line; 0: none.  *whole: with it. */
size_t tune_record_verified(const char *s, size_t n, size_t *whole);
/* Stores a verified record; where the cache knows a configuration already, that stays. */
bool tune_record_merge(cache *, const char *record, size_t head_bytes, size_t body);
/* "KERNEL\nTARGET" of the record in this file, malloc'ed; null: it is damaged. */
char *tune_record_label(cache *, const char *name);
bool tune_record_key(const blk_kernel *, const uint64_t *bits, uint64_t promises, cache_key *);

/* tune_mark.c */
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
