/* What the files of libblk share: the handles behind blk.h's names, the table through which they reach one kind of
 * device, and the thread's error text.
 *
 * A device owns everything: handles live in its pool (handle.c), code is reached through its compiler and its cache.
 * What differs between kinds of device is behind one `backend` table, so the rest of the runtime is written once. */
#ifndef BLK_INTERNAL_H
#define BLK_INTERNAL_H

#include "blk.h"
#include "cache/cache.h"
#include "compiler.h"
#include "base/growing.h"
#include "package/package.h"
#include "package/signature.h"
#include "device/tensor_map.h"

#include <pthread.h>
#include <stdatomic.h>

struct cuda_api;
typedef struct sim_device sim_device;

/* ---- error.c ---- */
void error_record(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline blk_status error_status(blk_status s)
{
	return s;
}
/* Records a sentence for blk_error(); its value is the status.  A macro, so that a checker sees that a failing path
 * does not go on as BLK_OK. */
#define error_set(status, ...) (error_record(__VA_ARGS__), error_status(status))
#define error_memory() error_set(BLK_ERROR_MEMORY, "out of memory")
/* The thread's text as it was, for a failure that is no one's business: take it before, give it back after. */
char *error_take(void); /* malloc'ed or null */
void error_give(char *);
void note_clear(void);
void note_add(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* one line, without its newline */

const char *thread_keep(const char *text); /* a copy until this thread's next call of it; null: out of memory */

/* ---- handle.c ---- */
typedef enum handle_kind {
	HANDLE_BUFFER,
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_MODULE,
	HANDLE_KERNEL,
	HANDLE_KINDS
} handle_kind;
enum { HANDLE_DEVICE_MAGIC = 0x626c6b44, HANDLE_MAGIC = 0x626c6b00, HANDLE_FREED = 0x64656164 };

typedef struct handle {         /* the head of each struct that a caller may hold */
	_Atomic uint32_t magic; /* HANDLE_MAGIC + kind, or HANDLE_FREED */
	blk_device *device;
	struct handle *next, *previous; /* among the live of its kind, or in the queue of freed ones */
} handle;

typedef struct handle_pool {
	pthread_mutex_t lock;
	handle *live[HANDLE_KINDS], *freed_first[HANDLE_KINDS], *freed_last[HANDLE_KINDS];
	unsigned nfreed[HANDLE_KINDS];
} handle_pool;

/* Zeroed struct of the kind's size, or null with blk_error() set.  `size` is the same for all of a kind. */
void *handle_new(blk_device *, handle_kind, size_t size);
/* Marks it freed at once, so that later uses are refused.  False: it was freed already.  Once its insides are
 * destroyed, handle_bury() puts its memory into the queue. */
bool handle_retire(handle *);
void handle_bury(handle *, handle_kind);
void handle_pool_free(handle_pool *);
static inline bool handle_is(const void *h, handle_kind kind)
{
	return h && atomic_load_explicit(&((handle *)h)->magic, memory_order_relaxed) == HANDLE_MAGIC + (uint32_t)kind;
}
blk_status handle_error(const void *h, const char *what); /* says "null" or "freed" */

/* ---- The handles ---- */
typedef struct backend backend;

typedef _Atomic(char *) failed_assert; /* what is said of it, malloc'ed; null: none */

struct blk_device {
	uint32_t magic;
	const backend *backend;
	blk_device_info info;
	handle_pool handles;
	pthread_mutex_t lock; /* for what follows up to `cache` */
	compiler compiler;
	double bandwidth;    /* bytes a second; 0: not measured */
	blk_buffer *flush;   /* for blk_bench */
	blk_module *changes; /* for tune/changes.c; null: not made */
	cache cache;
	const struct nvtx *profiler;  /* null: none watches */
	bool checked;                 /* cpu: its code checks each access */
	uint64_t identity;            /* hash of what compiled code depends on beside its target: driver, processor */
	_Atomic bool foreign_streams; /* a stream of the caller's may not order itself after the default one */
	/* cuda.c */
	const struct cuda_api *cuda;
	void *context;
	bool primary; /* the context is the device's primary one, retained by us */
	/* host.c, and the simulator */
	struct cpu_pool *pool;
	struct cpu_memory *memory;                       /* host.c alone */
	double (*tune_clock)(const char *configuration); /* tests: milliseconds of a run, instead of a measurement */
	failed_assert failure;                           /* first one since the last synchronisation */
	sim_device *sim;                                 /* sim/device.c */
};

struct blk_buffer {
	handle head;
	uint64_t address;
	size_t bytes;
};

struct blk_stream {
	handle head;
	void *stream;
	bool wrapped;
};

struct blk_event {
	handle head;
	void *event;
	double time_ms; /* host.c: when it was recorded */
	bool recorded;
};

struct blk_module {
	handle head;
	char *name, *text;
	size_t text_bytes;
	blk_define *defines; /* with their strings, one block */
	size_t ndefines;
	bool is_ptx;
	bool own;             /* of libblk itself, made within another call */
	package *package;     /* `text` is its file; null: source or PTX */
	blk_kernel **kernels; /* in the source's order; made when the module is opened */
	size_t nkernels;
	growing said; /* the compiler's messages that a note has held, under the device's lock */
};

/* Code for one combination of promises, ready to launch; immutable once published. */
typedef struct variant {
	uint64_t key;
	signature *sig;
	char *ptx; /* or null */
	bool from_cache;
	uint32_t threads, shared;
	void *module, *function; /* the backend's */
	void *library;           /* whose the module is; null: its own */
	tensor_map_cache *maps;  /* null: the code takes none */
} variant;

/* Open-addressed by key; slots are written once, under the kernel's lock, and read without one. */
typedef struct variant_table {
	uint32_t mask, used;
	struct variant_table *outgrown; /* readers may still be inside: freed with the kernel */
	_Atomic(variant *) slots[];
} variant_table;

typedef struct launch_parameter { /* what a launch looks at, packed */
	uint8_t code, bit; /* bit: the lowest of the key (package.h); 255: beyond the key's end, never promised */
	bool is_integer;
	uint8_t misaligned; /* bits of an address that a pointer to this element must not have */
	uint8_t below_step; /* bits of an integer that a multiple of the kernel's step has not */
} launch_parameter;

typedef struct packaged {                                 /* the part of a package that a kernel uses */
	const package_entry *variants[PACKAGE_MAX_MASKS]; /* most promises first; the last has none */
	uint32_t nvariants;
	const package_entry *all; /* the kernel's entries for every configuration and target */
	size_t nall;
} packaged;

struct blk_kernel {
	handle head;
	blk_module *module;
	signature *sig; /* of the check: names, types, clauses */
	blk_parameter *parameters;
	launch_parameter *launch;
	uint32_t nparameters;
	packaged *packaged; /* null: not from a package */
	struct instance_table
		*instances; /* where a launch computes const parameters: kernels for their values; or null */
	blk_define *values; /* of such a kernel, one block; else null */
	size_t nvalues;
	bool promised; /* PTX that was compiled with promises: each launch must keep them */
	_Atomic(variant_table *) variants;
	struct tuner *tuner;  /* null: the kernel has no autotune clause, or none that applies */
	pthread_mutex_t lock; /* compiling, growing the table */
};

typedef struct memory_span {
	uint64_t base, bytes;
} memory_span;

/* ---- The kinds of device ---- */
/* Every function but launch may be slow.  `stream` is the backend's own, null for the default one. */
struct backend {
	void (*close)(blk_device *); /* everything on it is already freed */
	blk_status (*sync)(blk_device *);
	blk_status (*allocate)(blk_device *, size_t bytes, uint64_t *address); /* 0 bytes have an address too */
	void (*release)(blk_device *, uint64_t address);
	blk_status (*write)(blk_device *, uint64_t to, const void *from, size_t bytes);
	blk_status (*read)(blk_device *, void *to, uint64_t from, size_t bytes);
	blk_status (*fill)(blk_device *, uint64_t to, uint8_t value, size_t bytes, void *stream);
	blk_status (*copy)(blk_device *, uint64_t to, uint64_t from, size_t bytes, void *stream);
	/* `code` is PTX text, a cubin or an object; on success *linked (malloc'ed, may stay null) is what to cache. */
	blk_status (*load)(
		blk_device *, variant *, unsigned kind, const void *code, size_t bytes, void **linked, size_t *nlinked);
	void (*unload)(blk_device *, variant *);
	/* `maps`: as many as the signature lists. */
	blk_status (*launch)(blk_device *, const variant *, void *stream, const uint32_t grid[3], uint64_t *bits,
		const tensor_map *maps);
	blk_status (*describe)(blk_device *, const variant *, blk_info *); /* registers, occupancy */
	blk_status (*stream_create)(blk_device *, void **);
	blk_status (*stream_sync)(blk_device *, void *);
	void (*stream_free)(blk_device *, void *);
	blk_status (*event_create)(blk_device *, blk_event *);
	blk_status (*event_record)(blk_device *, blk_event *, void *stream);
	blk_status (*event_elapsed)(blk_device *, blk_event *start, blk_event *end, double *ms);
	void (*event_free)(blk_device *, blk_event *);
	blk_status (*encode)(blk_device *, const tensor_map_request *, tensor_map *); /* null: no code takes maps */
	void (*evict)(uint64_t address, size_t bytes); /* from all caches; null: only a flush helps */
	/* The allocation, whoever made it, that holds this address; null, or false: not known. */
	bool (*range)(blk_device *, uint64_t address, memory_span *);
	/* Pinned memory of the host's, which read() fills at the full rate of the bus; both null: malloc's is as
	 * fast. */
	blk_status (*allocate_pinned)(blk_device *, size_t bytes, void **);
	void (*release_pinned)(blk_device *, void *);
};

/* device.c: `seams` null, or tables that stand in for the outside world (tests). */
typedef struct device_seams {
	const struct cuda_api *cuda;
	const compiler_api *compiler;
	const cache_files *files;
} device_seams;
blk_status device_open_with(const char *name, const device_seams *, blk_device **);
blk_status device_wrap_with(void *cu_context, const device_seams *, blk_device **);
blk_status device_check(const blk_device *); /* a handle error, or BLK_OK */

/* cuda.c, host.c, sim/device.c: fill in a fresh device. */
blk_status cuda_open(blk_device *, int ordinal, void *context, const struct cuda_api *);
blk_status host_open(blk_device *, const char *mode); /* mode: "fast", "guarded", "checked"; null: $BLK_CPU's */
blk_status sim_open(blk_device *, const char *target);
/* cpu_report.c: the sentence about a launch that failed; its value is the status. */
struct cpu_fault;
blk_status cpu_report_fault(blk_device *, const variant *, const uint64_t *bits, const struct cpu_fault *);
/* What lies around a parameter's buffer was written, at that address first. */
blk_status cpu_report_canary(blk_device *, const variant *, const uint64_t *bits, uint32_t parameter, uint64_t address);

const char *host_mode(const blk_device *); /* of a cpu device: "fast", "guarded" or "checked" */
/* host.c: what any device does that has ended a launch when the call returns. */
void host_close(blk_device *);
blk_status host_sync(blk_device *); /* a failed assert, if there was one since */
/* These devices have no streams: a failed_assert in place of one gets that of the launch, of which nobody else then
 * learns. */
blk_status host_asserted(failed_assert *);        /* it is taken, and told */
void host_assert_failed(failed_assert *, char *); /* keeps a malloc'ed text, if it is the first */
blk_status host_stream_create(blk_device *, void **);
blk_status host_stream_sync(blk_device *, void *);
void host_stream_free(blk_device *, void *);
blk_status host_event_create(blk_device *, blk_event *);
blk_status host_event_record(blk_device *, blk_event *, void *stream);
blk_status host_event_elapsed(blk_device *, blk_event *start, blk_event *end, double *ms);
void host_event_free(blk_device *, blk_event *);

/* The backend's stream behind a handle; null handle: null stream. */
blk_status stream_resolve(const blk_device *, const blk_stream *, void **);

/* memory.c: all memory that may lie behind a pointer argument, which launch_arguments() has checked: the buffer's, that
 * of the buffer that holds the address, or the driver's allocation; nothing behind null.  False: its size is not known.
 */
bool memory_behind(blk_device *, const blk_arg *, memory_span *);

/* module.c: what blk_module_open() does with a file's bytes.  Takes `text` (malloc'ed, NUL-terminated). */
blk_status module_open_text(
	blk_device *, const char *name, char *text, size_t bytes, const blk_define *, size_t n, blk_module **);

/* kernel.c */
/* Takes the signature, on failure too.  `is_instance`: it is for one value of what the launch computes. */
blk_status kernel_make(blk_module *, signature *, bool is_instance, blk_kernel **);
void kernel_destroy(blk_kernel *);
blk_status kernel_check(const blk_kernel *);

/* computed.c: for a kernel with `instances`, which this makes where its signature asks for them. */
blk_status computed_prepare(blk_kernel *);
void computed_free(blk_kernel *);
/* *kernel becomes its instance for these arguments, made if need be. */
blk_status computed_instance(blk_kernel **kernel, const uint64_t *bits);
static inline blk_status computed_resolve(blk_kernel **kernel, const uint64_t *bits)
{
	return __builtin_expect(!(*kernel)->instances, 1) ? BLK_OK : computed_instance(kernel, bits);
}
size_t computed_text(const signature_computed *, int64_t value, char *to, size_t room); /* as source */

/* launch.c: checks arguments; `bits` gets each one's 8-byte container and *key the promises that hold. */
blk_status launch_arguments(const blk_kernel *, const blk_arg *, size_t n, uint64_t *bits, uint64_t *key);
/* `sig`: whose grid clause, as a tuned configuration has its own. */
/* BLK_ERROR_ARGUMENT with a sentence where a requires clause of `sig`, the kernel's or a configuration's, does not
 * hold. */
blk_status launch_requires(const blk_kernel *, const signature *sig, const uint64_t *bits);
blk_status launch_grid(const blk_kernel *, const signature *sig, const uint64_t *bits, const blk_grid *given,
	uint32_t grid[3], bool *empty);

/* The code for arguments of which no tensor map can be made, after a failure `first` with the sentence `why`: that for
 * those of which nothing is promised has none.  Its failure, or that it has some after all, is the first failure. */
blk_status launch_without_maps(blk_kernel *, blk_status first, char *why, variant **);

/* One variant, whatever a launch would choose. */
blk_status launch_variant(blk_device *, const variant *, void *stream, const uint32_t grid[3], uint64_t *bits);

/* tensor_map.c: what a variant's code takes beside the user's arguments.  `maps` has room for SIGNATURE_MAPS. */
blk_status tensor_maps_prepare(variant *); /* when code has been loaded */
void tensor_maps_free(variant *);
blk_status tensor_maps_get(blk_device *, const variant *, const uint64_t *bits, tensor_map *maps);

/* variant.c: the code for a combination, made if need be. */
blk_status variant_get(blk_kernel *, uint64_t key, variant **);
void variant_free(blk_device *, variant *);

/* specialise.c: runs the compiler, or takes what it said before from the cache. */
blk_status specialise_check(blk_module *); /* adds the kernels of a source to its module */
/* `configuration`: of the autotune clause, "BM=64,num_warps=4"; null: the defaults. */
blk_status specialise_build(blk_kernel *, uint64_t key, const char *configuration, variant *);
/* The report, as a page, of the kernel's code that has this signature: the result's only artifact. */
blk_status specialise_page(const blk_kernel *, const signature *, blkc_result **);
/* The kernel for these values of what its launches compute, one for each in the signature's order. */
blk_status specialise_instance(blk_kernel *, const blk_define *values, blk_kernel **);
blk_status module_add_kernel(blk_module *, const char *signature_text, size_t bytes);

/* packaged.c: modules from packages.  A kernel's signature lists the configurations that the package holds for this
 * device and that agree with the module's defines, as a source's does; the tuner sees no difference. */
blk_status packaged_open(blk_module *); /* decodes the file in `text` and adds the kernels */
void packaged_close(blk_module *);
blk_status packaged_instance(blk_kernel *, const blk_define *values, blk_kernel **); /* as specialise_instance() */
uint64_t packaged_key(const packaged *, uint64_t key); /* the promises of the best variant for these arguments */
/* The code of a configuration (null: the one in use) for arguments of these promises: checked, ready to load. */
blk_status packaged_find(const blk_kernel *, uint64_t key, const char *configuration, const package_entry **);

/* bench.c: `n` runs of one variant, each with the data flushed from the cache; *whole_ms: what one took in all.
 * `touched`: all memory behind the arguments; null: not known. */
blk_status bench_variant(blk_device *, const variant *, void *stream, const uint32_t grid[3], uint64_t *bits,
	const memory_span *touched, uint32_t ntouched, uint32_t n, double *whole_ms, blk_timing *);

void bench_summarise(double *ms, uint32_t n, blk_timing *); /* sorts `ms` */

/* tune.c: which configuration of its autotune clause a launch uses. */
blk_status tune_make(blk_kernel *); /* fills in kernel->tuner where the signature has configurations */
void tune_destroy(blk_kernel *);
/* What tune_get() chose for them before: a configuration's text, "" for the defaults. */
const char *tune_configuration(const blk_kernel *, const uint64_t *bits, uint64_t key);
/* The variant for these arguments, tuned first if it must be; `given` may be null. */
blk_status tune_get(blk_kernel *, const blk_grid *given, const blk_arg *, uint64_t *bits, uint64_t key, variant **);

#endif
