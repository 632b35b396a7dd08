/* What blkrun's files share: the command line as data, arrays on the host, and what is done with them.
 *
 * blkrun stands on blk.h alone; of the compiler's sources it uses scalar.h, for the numbers' formats. */
#ifndef BLK_RUN_H
#define BLK_RUN_H

#include "runtime/blk.h"
#include "compiler/support/scalar.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUN_RANK = 8, RUN_LIST = 64, RUN_PARAMETERS = 256, RUN_BUFFERS = 1024, RUN_NAME = 160 };

typedef struct array {
	scalar type;
	unsigned rank;
	uint64_t extent[RUN_RANK];
	size_t count, bytes;
	bool poisoned; /* filled so */
	void *data;    /* malloc'ed, row-major */
} array;

/* Counts and allocates for type, rank and extents.  False: too large. */
bool array_allocate(array *);
void array_free(array *);
uint64_t array_bits(const array *, size_t i); /* an element's container */
double array_value(const array *, size_t i);
void array_set(array *, size_t i, uint64_t bits);

/* npy.c: NumPy's format.  `wanted` is what a bf16 or fp8 file, which NumPy has no name for, is read as. `why` gets a
 * sentence without the path. */
bool npy_read(const char *path, scalar wanted, array *, char *why, size_t room);
bool npy_write(const char *path, const array *, char *why, size_t room);
/* The header's part, for tests: false with `why`, or the descr and shape in `a` and where the data begins. */
bool npy_parse(const unsigned char *bytes, size_t n, scalar wanted, array *, size_t *data, bool *swapped, char *why,
	size_t room);

/* fill.c: "zeros ones randn rand arange poison". */
bool fill_known(const char *kind);
void fill_array(array *, const char *kind, uint64_t seed);
uint64_t fill_poison(scalar, bool other); /* an element's bits; `other`: those that differ from them */

/* check.c */
typedef struct check_result {
	double worst, largest, tolerance; /* absolute error, the reference's magnitude, what was allowed */
	size_t at, wrong;                 /* the worst element; how many are out of tolerance */
	bool good;
} check_result;
double check_default_rtol(scalar);
check_result check_arrays(const array *got, const array *want, double rtol, double atol);

/* print.c */
void print_array(const char *name, const array *);
void print_element(const array *, size_t i);
void print_index(const array *, size_t i); /* "[3, 17]" */
/* "12.3 us", "1.84 GB/s": a number with three digits and its unit's prefix. */
void print_quantity(double v, const char *unit);

/* failed.c: a message on stderr and the exit status, which is returned. */
int run_failed(void);                              /* libblk's last error: 1 */
int run_wrong(const char *name, const char *what); /* 2 */
int run_no_memory(const char *name);               /* 1 */

/* options.c */
typedef struct run_value {
	const char *name, *text;
} run_value;
typedef struct options {
	const char *path, *kernel, *device, *check, *check_name, *cache, *plot;
	char *path_copy;
	run_value values[RUN_PARAMETERS], outs[RUN_LIST];
	blk_define defines[RUN_LIST];
	size_t nvalues, nouts, ndefines;
	blk_grid grid;
	char which[48]; /* of a list of sizes, "3 of 12"; set by sweep_at() */
	bool has_grid, bench, tune, verbose, help, version, allow_unwritten;
	blk_sim_options sim;
	bool page;         /* of the counters */
	double rtol, atol; /* negative: not given */
} options;
/* 0, or the exit status after a message on stderr. */
int options_parse(int argc, char **argv, options *);
void options_free(options *);
void options_usage(void);

/* ---- sweep.c: lists of sizes ---- */

/* Values and defines that are lists ("n=256,1024", "n=2..64") advance in step; each point is a run of its own.  In a
 * buffer's extents the name of a scalar stands for its value. */
typedef struct sweep {
	const options *options;
	const char *name; /* the first list's; null: there is none, and one point */
	size_t n;
} sweep;
typedef struct sweep_point {
	options options;
	char *owned[2 * RUN_PARAMETERS + RUN_LIST];
	size_t nowned;
	char label[64]; /* the first list's value */
	double x;       /* as a number; its place, from 1, where it is none */
} sweep_point;
/* 0, or the exit status after a message on stderr. */
int sweep_open(const options *, sweep *);
int sweep_at(const sweep *, size_t i, sweep_point *);
void sweep_point_free(sweep_point *);

/* ---- job.c: what the kernel gets, and the job on one device ---- */

/* What the kernel gets, independent of any device. */
typedef struct job {
	const options *options;
	size_t n, nbuffers;                       /* parameters; these and the buffers whose addresses some hold */
	blk_parameter parameters[RUN_PARAMETERS]; /* names and types of the first device's module */
	array arrays[RUN_BUFFERS];                /* inputs; data null for scalars */
	uint64_t bits[RUN_PARAMETERS];            /* scalars */
	scalar types[RUN_PARAMETERS];             /* element or scalar type */
	size_t outs[RUN_LIST];                    /* the buffers of --out */
	size_t held[RUN_PARAMETERS]; /* the first of the buffers whose addresses it holds; 0: it holds none */
} job;

/* The job on one device. */
typedef struct place {
	blk_device *device;
	blk_module *module;
	blk_kernel *kernel;
	blk_buffer *buffers[RUN_BUFFERS];
	blk_arg args[RUN_PARAMETERS];
	blk_grid grid;
	double ms;         /* of the one launch */
	blk_status failed; /* what it returned */
	bool launched;
} place;

/* These return exit statuses, after a message on stderr where they are not 0. */
int device_open(const char *name, blk_device **);
int job_make(job *, const options *, blk_kernel *);
void job_free(job *);
/* "x", or "x[2]" of a buffer whose address x holds; may be written to `room`. */
const char *job_name(const job *, size_t i, char room[RUN_NAME]);
/* The buffer of this name that is no table of addresses. */
int job_buffer(const job *, const char *name, size_t *i);
/* A buffer that the kernel may write, as far as is known: what it does with addresses from memory is not.  A table of
 * addresses is none, as it says nothing beside another device's. */
bool job_may_write(const job *, size_t i);
/* Of one that it may: it did, as far as is known. */
bool job_wrote(const job *, size_t i, const array *now);
int place_open(place *, const options *, blk_device *);
int place_run(place *, const job *, bool tune);     /* uploads, tunes, launches once */
blk_status place_write(const place *, const job *); /* the inputs, again */
void place_close(place *);                          /* the device stays open */
/* A buffer's contents after the run, in the shape of what went in. */
int place_download(const place *, const job *, size_t i, array *out);

/* unwritten.c: says of each buffer that was filled with poison how many elements the run left so; *any: there are some.
 * May run the kernel more than once, whose outputs are then as they were before. */
int unwritten_report(const place *, const job *, bool *any);

/* compare.c: --check. */
int check_job(const place *, const job *);
int check_possible(const options *); /* before the run: a file to compare with is there, or the run writes it */

/* measure.c: --bench and --plot. */
typedef struct measured {
	double ms, p20_ms, p80_ms; /* 0: nothing was launched */
	double bytes, flops;       /* of one launch; nan: not known */
	bool clause;               /* the bytes are the cost clause's, not the buffers' */
} measured;
void launch_cost(const place *, const job *, measured *);
void print_rates(const measured *, double peak); /* bytes a second of a copy; 0: not measured */
/* `peak` is measured where it is 0. */
int measure_job(const place *, const job *, double *peak, measured *);
int print_measured(const sweep *, const measured *, double peak);
int plot_measured(const sweep *, const measured *, const char *kernel, const char *device, double peak);

/* cache.c: --cache=list|clear */
int manage_cache(const char *what);

/* simulator.c: nothing on other devices. */
blk_status simulator_configure(blk_device *, const options *);
blk_status simulator_print(blk_device *);
/* KERNEL.html: the numbers beside the source, its IR and its code.  An exit status. */
int simulator_page(blk_kernel *);

/* tuning.c */
/* Tunes for these arguments and prints a row for each configuration. */
/* `which`: of a list of sizes, "3 of 12", or "". */
blk_status tune_kernel(blk_kernel *, const blk_grid *, const blk_arg *, size_t n, const char *which);
/* What the launch would do anyhow, with progress on a terminal. */
blk_status tune_shown(blk_device *, blk_kernel *, const blk_grid *, const blk_arg *, size_t n);
int ship_records(const char *export_or_import, const char *path); /* an exit status */

/* A scalar argument from text.  Null, or a sentence on what is wrong. */
const char *parse_scalar(const char *text, scalar type, uint64_t *bits);
/* Behind "to:", the prefix of buffers whose addresses are meant; null: there is none. */
const char *parse_addresses(const char *text);
/* "f32[4,5]:randn:7".  The seed is left alone where none is given.  Null, or a sentence. */
const char *parse_buffer(const char *text, array *, char kind[16], uint64_t *seed);

/* program.c: the whole of it.  The exit status. */
int blkrun(int argc, char **argv);

#endif
