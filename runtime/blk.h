/* libblk: run kernels of the blk language on a GPU or on the CPU.
 *
 *	blk_device *gpu; blk_module *code; blk_kernel *add; blk_buffer *x;
 *	blk_device_open("auto", &gpu);
 *	blk_module_open(gpu, "add.blk", NULL, 0, &code);
 *	blk_kernel_find(code, "add", &add);
 *	blk_buffer_create(gpu, n * sizeof(float), &x); ...
 *	blk_launch(add, NULL, NULL, BLK_ARGS(blk_buf(x), blk_buf(y), blk_buf(z), blk_i32(n)));
 *	blk_buffer_read(z, 0, host, n * sizeof(float));
 *	blk_device_close(gpu);
 *
 * Conventions of every call, not repeated below:
 *  - It returns a blk_status; on anything but BLK_OK nothing was changed, what a result pointer points to is NULL (or
 *    untouched where it is no handle), and blk_error() holds one sentence, or the compiler's diagnostics.
 *  - Sizes and offsets are in bytes unless the name says otherwise; times carry their unit in their name.
 *  - Handles are opaque.  What a `_create`, `_open`, `_find` or `_wrap` call hands out belongs to the caller until the
 *    matching `_free` or `_close`; a kernel belongs to its module; whatever is left on a device goes with
 *    blk_device_close().  A null handle given to `_free` or `_close` is ignored.  A freed buffer, stream, event, kernel
 *    or module of an open device is recognised and refused with BLK_ERROR_HANDLE.
 *  - Every call may be made from any thread.  Freeing a handle that another thread is using is the caller's mistake.
 *  - Nothing prints but a kernel's own device_print, to standard output.  Nothing exits or raises a signal, but a
 *    kernel on "cpu:fast" may fault. */
#ifndef BLK_H
#define BLK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

#ifndef BLK_API
#define BLK_API __attribute__((visibility("default")))
#endif

/* ---- Errors ---- */

/*      enumerator  text */
#define BLK_STATUSES(X)                                                                                                \
	X(BLK_OK, "success")                                                                                           \
	X(BLK_ERROR_ARGUMENT, "a wrong argument")                                                                      \
	X(BLK_ERROR_HANDLE, "a handle that was freed or is of another kind or device")                                 \
	X(BLK_ERROR_TYPE, "a kernel argument of the wrong type, or the wrong number of them")                          \
	X(BLK_ERROR_ALIGNMENT,                                                                                         \
		"a pointer not aligned to its elements, or an argument that breaks a promise the code relies on")      \
	X(BLK_ERROR_GRID, "a grid that is missing, zero or too large")                                                 \
	X(BLK_ERROR_RANGE, "an offset or a size outside the buffer")                                                   \
	X(BLK_ERROR_MEMORY, "out of memory")                                                                           \
	X(BLK_ERROR_IO, "a file that cannot be read or written")                                                       \
	X(BLK_ERROR_FORMAT, "a file or text of the wrong form")                                                        \
	X(BLK_ERROR_NOT_FOUND, "no such device, file or kernel")                                                       \
	X(BLK_ERROR_COMPILE, "the source has errors")                                                                  \
	X(BLK_ERROR_COMPILER, "the compiler library is missing, of another version, or failed")                        \
	X(BLK_ERROR_DRIVER, "the device's driver refused a call")                                                      \
	X(BLK_ERROR_RESOURCES, "the kernel needs more than the device has")                                            \
	X(BLK_ERROR_KERNEL, "a kernel failed while it ran")                                                            \
	X(BLK_ERROR_ASSERT, "a device_assert failed")                                                                  \
	X(BLK_ERROR_UNSUPPORTED, "not in this version yet, or not on this device")                                     \
	X(BLK_ERROR_INTERNAL, "a bug in blk")

typedef enum blk_status {
#define BLK_X(name, text) name,
	BLK_STATUSES(BLK_X)
#undef BLK_X
		BLK_STATUS_COUNT
} blk_status;

typedef struct blk_device blk_device;
typedef struct blk_module blk_module;
typedef struct blk_kernel blk_kernel;
typedef struct blk_buffer blk_buffer;
typedef struct blk_stream blk_stream;
typedef struct blk_event blk_event;

/* The last failed call of this thread, diagnostics included; "" before the first.  Never null; valid until this
 * thread's next failing call. */
BLK_API const char *blk_error(void);
/* What the last module or launch call of this thread had to say beside its status: compiler warnings, a damaged cache
 * entry that was rebuilt, a kernel that could not be tuned; and since then the first buffer of a cpu device that got no
 * guard pages.  "" when nothing; valid until the next such call. */
BLK_API const char *blk_note(void);
BLK_API const char *blk_status_text(blk_status); /* "out of memory"; never null */
BLK_API const char *blk_version(void);           /* "0.1.0" */

/* ---- Devices ---- */

/* `name`: "auto" (or NULL: the first CUDA device, else the CPU), "cuda" (the first), "cuda:1", "cpu", "sim"
 * (the PTX for sm_80 simulated on the host and checked) or "sim:sm_90a".
 * "cpu:guarded" lays pages around buffers that nobody may touch, "cpu:checked" also checks each access, "cpu:fast" does
 * neither; "cpu" is what BLK_CPU says (fast, guarded, checked), else guarded.  Where a kernel on the first two touches
 * what is not its, its launch returns BLK_ERROR_KERNEL and blk_error() has the place: SIGSEGV and SIGBUS are handled
 * while launches run, and passed on to the handlers that were there unless a kernel's thread caused them. */
BLK_API blk_status blk_device_open(const char *name, blk_device **);
/* A device for a CUcontext that the caller owns and keeps alive. */
BLK_API blk_status blk_device_wrap(void *cu_context, blk_device **);
/* Waits for everything launched on the device; a kernel's failure is reported here at the latest. */
BLK_API blk_status blk_device_sync(blk_device *);
/* Waits, then frees the device and all that was made on it. */
BLK_API void blk_device_close(blk_device *);

typedef enum blk_device_kind { BLK_DEVICE_CUDA, BLK_DEVICE_CPU, BLK_DEVICE_SIM } blk_device_kind;
typedef struct blk_device_info {
	blk_device_kind kind;
	int ordinal;                    /* N of cuda:N; 0 elsewhere */
	char name[128];                 /* "NVIDIA H200", the processor's model */
	char target[16];                /* what modules are compiled for: "sm_90a", "cpu" */
	uint32_t compute_capability;    /* 90 for 9.0; 0 elsewhere */
	uint32_t driver_version;        /* CUDA: 13000 for 13.0; 0 elsewhere */
	uint32_t num_sms;               /* multiprocessors; worker threads on cpu */
	uint32_t warp_size;             /* 32; 1 on cpu */
	uint32_t max_threads_per_sm;    /* 0 on cpu */
	uint32_t max_shared_per_block;  /* bytes that one program may use; 0 on cpu */
	uint64_t total_memory;          /* bytes */
	uint64_t l2_bytes;              /* the last cache before memory; 0: unknown */
	double theoretical_bytes_per_s; /* from memory clock and bus width; 0: unknown */
} blk_device_info;
BLK_API blk_status blk_device_query(blk_device *, blk_device_info *);
BLK_API const char *blk_device_name(blk_device *); /* blk_device_info.name; "" for a bad handle */
BLK_API uint32_t blk_device_num_sms(blk_device *); /* blk_device_info.num_sms; 0 for a bad handle */
/* The device's CUcontext; NULL on other devices. */
BLK_API void *blk_device_context(blk_device *);
/* Bytes a second that a large device-to-device copy moves, read and written bytes both counted: what a memory-bound
 * kernel can reach.  Measured by the first call (some ten milliseconds), then remembered. */
BLK_API blk_status blk_device_bandwidth(blk_device *, double *bytes_per_s);

/* ---- Memory ---- */

/* Uninitialised memory, aligned to at least 256 bytes.  Zero bytes make a valid empty buffer. */
BLK_API blk_status blk_buffer_create(blk_device *, size_t bytes, blk_buffer **);
BLK_API void blk_buffer_free(blk_buffer *);
BLK_API blk_status blk_buffer_write(blk_buffer *, size_t offset, const void *, size_t bytes);
/* Waits for what was launched before; so does blk_buffer_write. */
BLK_API blk_status blk_buffer_read(blk_buffer *, size_t offset, void *, size_t bytes);
BLK_API blk_status blk_buffer_fill(blk_buffer *, size_t offset, uint8_t value, size_t bytes);
/* Between two buffers of one device, which may be one buffer where the ranges do not overlap. */
BLK_API blk_status blk_buffer_copy(
	blk_buffer *to, size_t to_offset, blk_buffer *from, size_t from_offset, size_t bytes);
BLK_API void *blk_buffer_pointer(
	blk_buffer *);                        /* a CUdeviceptr, or host memory on cpu and sim; NULL for a bad handle */
BLK_API size_t blk_buffer_size(blk_buffer *); /* bytes; 0 for a bad handle */

/* ---- Modules and kernels ---- */

typedef struct {
	const char *name, *value;
} blk_define; /* const parameters and options: {"BLOCK", "2048"}, {"num_warps", "8"}, {"T", "f16"} */

/* A file: .blk source, a .blkpkg package, or .ptx as blkc writes it (its head carries the kernels' signatures).  Source
 * is checked here and compiled when a launch first needs it, once for each specialisation.  A package needs no
 * compiler; its defines choose among the configurations that it holds.  The strings are copied. */
BLK_API blk_status blk_module_open(blk_device *, const char *path, const blk_define *, size_t n, blk_module **);
/* The same from memory; `name` stands in messages and is what imports are relative to.  Text whose
 * first comment lines hold a signature, as blkc's PTX does ("// blk: kernel NAME"), is PTX. */
BLK_API blk_status blk_module_source(
	blk_device *, const char *name, const char *text, const blk_define *, size_t n, blk_module **);
BLK_API void blk_module_close(blk_module *);                   /* waits for its running kernels */
BLK_API const char *blk_module_kernel(blk_module *, size_t i); /* the i-th kernel's name; NULL past the end */
BLK_API blk_status blk_kernel_find(blk_module *, const char *name, blk_kernel **); /* NULL: the only one */

typedef struct blk_parameter {
	const char *name;
	const char *type; /* "i32", "*f32", "*const f16" */
	int is_pointer;
	int written; /* a pointer whose buffer the kernel may write */
} blk_parameter;
/* The run-time parameters in order; they live as long as the module. */
BLK_API blk_status blk_kernel_parameters(blk_kernel *, const blk_parameter **, size_t *n);
BLK_API const char *blk_kernel_name(blk_kernel *);
/* The launch signature of the defaults, one fact a line (docs/api.md): const parameters and options too; "" for a bad
 * handle.  It lives as long as the module. */
BLK_API const char *blk_kernel_signature(blk_kernel *);

/* ---- Arguments ---- */

typedef enum blk_type { /* ORDER scalar.h's SCALARS, then the two ways to pass a pointer */
	BLK_TYPE_BOOL,
	BLK_TYPE_I8,
	BLK_TYPE_I16,
	BLK_TYPE_I32,
	BLK_TYPE_I64,
	BLK_TYPE_U8,
	BLK_TYPE_U16,
	BLK_TYPE_U32,
	BLK_TYPE_U64,
	BLK_TYPE_F8E4M3,
	BLK_TYPE_F8E5M2,
	BLK_TYPE_F16,
	BLK_TYPE_BF16,
	BLK_TYPE_F32,
	BLK_TYPE_F64,
	BLK_TYPE_POINTER,
	BLK_TYPE_BUFFER
} blk_type;

/* One run-time argument; made by the functions below only.  A wrong type is an error at launch, never a conversion. */
typedef struct blk_arg {
	uint64_t bits; /* a number zero-extended, a float's bits, a pointer or a blk_buffer's address */
	uint32_t type; /* blk_type */
} blk_arg;

static inline blk_arg blk_arg_make(blk_type type, uint64_t bits)
{
	blk_arg a;
	a.bits = bits;
	a.type = (uint32_t)type;
	return a;
}
static inline blk_arg blk_buf(blk_buffer *b)
{
	return blk_arg_make(BLK_TYPE_BUFFER, (uint64_t)(uintptr_t)b);
}
/* A CUdeviceptr (as a pointer), or host memory on cpu.  Not checked beyond its alignment; may be null.  On sim it must
 * point into a blk_buffer.  Kernels are tuned with pointers as with buffers where the size of the memory is known: see
 * Autotuning. */
static inline blk_arg blk_ptr(const void *device_pointer)
{
	return blk_arg_make(BLK_TYPE_POINTER, (uint64_t)(uintptr_t)device_pointer);
}
static inline blk_arg blk_bool(int v)
{
	return blk_arg_make(BLK_TYPE_BOOL, v != 0);
}
static inline blk_arg blk_i8(int8_t v)
{
	return blk_arg_make(BLK_TYPE_I8, (uint8_t)v);
}
static inline blk_arg blk_i16(int16_t v)
{
	return blk_arg_make(BLK_TYPE_I16, (uint16_t)v);
}
static inline blk_arg blk_i32(int32_t v)
{
	return blk_arg_make(BLK_TYPE_I32, (uint32_t)v);
}
static inline blk_arg blk_i64(int64_t v)
{
	return blk_arg_make(BLK_TYPE_I64, (uint64_t)v);
}
static inline blk_arg blk_u8(uint8_t v)
{
	return blk_arg_make(BLK_TYPE_U8, v);
}
static inline blk_arg blk_u16(uint16_t v)
{
	return blk_arg_make(BLK_TYPE_U16, v);
}
static inline blk_arg blk_u32(uint32_t v)
{
	return blk_arg_make(BLK_TYPE_U32, v);
}
static inline blk_arg blk_u64(uint64_t v)
{
	return blk_arg_make(BLK_TYPE_U64, v);
}
static inline blk_arg blk_f8e4m3(uint8_t bits)
{
	return blk_arg_make(BLK_TYPE_F8E4M3, bits);
}
static inline blk_arg blk_f8e5m2(uint8_t bits)
{
	return blk_arg_make(BLK_TYPE_F8E5M2, bits);
}
static inline blk_arg blk_f16(uint16_t bits)
{
	return blk_arg_make(BLK_TYPE_F16, bits);
}
static inline blk_arg blk_bf16(uint16_t bits)
{
	return blk_arg_make(BLK_TYPE_BF16, bits);
}
static inline blk_arg blk_f32(float v)
{
	union {
		float f;
		uint32_t u;
	} b;
	b.f = v;
	return blk_arg_make(BLK_TYPE_F32, b.u);
}
static inline blk_arg blk_f64(double v)
{
	union {
		double f;
		uint64_t u;
	} b;
	b.f = v;
	return blk_arg_make(BLK_TYPE_F64, b.u);
}

/* An argument array and its length, for the calls that take both:
 *	blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(x), blk_i32(n)));
 * A kernel without run-time parameters is given NULL, 0. */
#ifdef __cplusplus
} /* extern "C" */
template <class... T> char (&blk_args_count(T...))[sizeof...(T)];
#define BLK_ARGS(...) (std::initializer_list<blk_arg>({__VA_ARGS__}).begin()), sizeof(blk_args_count(__VA_ARGS__))
extern "C" {
#else
#define BLK_ARGS(...) ((const blk_arg[]){__VA_ARGS__}), (sizeof((const blk_arg[]){__VA_ARGS__}) / sizeof(blk_arg))
#endif

/* ---- Launching ---- */

typedef struct {
	uint32_t x, y, z;
} blk_grid; /* programs along each axis; all at least 1; on CUDA at most 2^31-1, 65535, 65535 */

/* Starts the kernel and returns; on cpu and sim it has then ended.  `stream` NULL: the device's default stream.  `grid`
 * NULL: the kernel's grid clause, where a 0 means that there is no work: success, and nothing is launched.  Arguments
 * that a requires clause of the kernel does not allow are BLK_ERROR_ARGUMENT, and nothing is launched either.  The
 * values of the arguments (pointers aligned to 16, integers divisible by 16 or by a vector's elements, or equal to 1)
 * choose what is compiled; a combination that was launched before takes no lock and allocates nothing.  While a CUDA
 * graph is being captured only such combinations should be launched, as loading code is no part of a graph. */
BLK_API blk_status blk_launch(blk_kernel *, blk_stream *, const blk_grid *grid, const blk_arg *, size_t n);
/* The same on a CUstream of the caller's, without a blk_stream around it; NULL: the default stream. */
BLK_API blk_status blk_launch_on(blk_kernel *, void *cu_stream, const blk_grid *grid, const blk_arg *, size_t n);
/* What the grid clause says for these arguments (may hold zeros), and the cost clause: NAN where it says nothing. */
BLK_API blk_status blk_kernel_grid(blk_kernel *, const blk_arg *, size_t n, blk_grid *);
BLK_API blk_status blk_kernel_cost(blk_kernel *, const blk_arg *, size_t n, double *bytes, double *flops);
/* The value of a const parameter, an integer or a bool, for these arguments where nothing is tuned: what a launch
 * computes, or what a define or the default says.  Compiles nothing, and looks behind no pointer: they may be null. */
BLK_API blk_status blk_kernel_constant(blk_kernel *, const char *name, const blk_arg *, size_t n, int64_t *value);

typedef struct blk_info {
	uint32_t num_warps;       /* as compiled; 1 on cpu */
	uint32_t threads;         /* of one program; 1 on cpu */
	uint32_t registers;       /* of one thread; 0 on cpu */
	uint32_t spill_bytes;     /* local memory of one thread: spills and stack */
	uint32_t shared_bytes;    /* of one program, static and dynamic */
	uint32_t programs_per_sm; /* that can be resident together; 1 on cpu */
	uint32_t num_sms;         /* the device's; times programs_per_sm is a persistent grid */
	float occupancy;          /* resident warps over the most that an SM holds; 1 on cpu */
	const char *target;       /* "sm_90a" */
	const char *ptx;          /* its text; NULL on cpu; both live as long as the module */
	const char *signature;    /* the launch signature, one fact a line (docs/api.md) */
	int from_cache;           /* the code came from the cache on disk */
	uint32_t tensor_maps;     /* that each launch makes and passes */
	char promises[256];       /* what the code assumes: "x%16,n%8,m=1"; "" nothing; cut short it ends in ",..." */
	char fallback[256];       /* why these arguments get code that assumes nothing though there is better; "" */
	uint32_t cluster; /* neighbours along x that run as one cluster, where the grid divides by it; 1: none */
	/* Of the autotune clause: "BM=64,num_warps=4"; "": the defaults.  Lives as long as the module. */
	const char *configuration;
} blk_info;
/* Compiles what a launch with these arguments would use, if need be, and describes it.  Where the code for what the
 * arguments promise copies by tensor maps and none can be made of them, a launch uses the code for which nothing is
 * promised; that is then what is described, and `fallback` says why in a sentence. */
BLK_API blk_status blk_kernel_info(blk_kernel *, const blk_arg *, size_t n, blk_info *);

typedef struct blk_bench_options {
	double warmup_ms;   /* run for about this long first; 0: 25 */
	double measure_ms;  /* then time runs for about this long; 0: 100 */
	uint32_t min_runs;  /* 0: 5 */
	uint32_t max_runs;  /* 0: 1000 */
	int keep_cache;     /* nonzero: do not flush the device's L2 cache before each run */
	blk_stream *stream; /* NULL: the default stream */
} blk_bench_options;
typedef struct blk_timing { /* milliseconds of one launch on the device */
	uint32_t runs;
	double median_ms, mean_ms, min_ms, max_ms;
	double p20_ms, p80_ms; /* one run in five was faster, one in five slower */
} blk_timing;
/* Times launches by events (by clock on cpu).  `options` NULL: all defaults.  The kernel runs many times on the same
 * buffers. */
BLK_API blk_status blk_bench(
	blk_kernel *, const blk_grid *, const blk_arg *, size_t n, const blk_bench_options *, blk_timing *);
/* The same for what `call` launches on options->stream, several kernels perhaps: a run is one call. A failed call ends
 * it. */
BLK_API blk_status blk_bench_call(
	blk_device *, blk_status (*call)(void *context), void *context, const blk_bench_options *, blk_timing *);

/* ---- Autotuning ---- */

/* A launch of a kernel with an autotune clause uses the best configuration known for its key arguments, specialisation
 * and device; BLK_TUNE says what happens when a key is new:
 *	auto      every configuration, or those that its order puts first, is compiled, checked and timed, then the
 *	          best is used; the default on CUDA
 *	isolated  as auto, but in another process
 *	always    as auto, but nothing is taken from the cache
 *	first     the first configuration that compiles and fits is used; the default on cpu and sim
 *	nearest   what the cache knows of the key is used, else what is best for the nearest key that was tuned, else
 *	          as auto
 *	cached    what the cache knows is used, else the defaults
 *	off       the defaults are used
 * So on cpu and sim nothing is timed unless it is asked for: by BLK_TUNE, or by blk_kernel_tune(), whose answers later
 * launches use.  Defines that a module was opened with are not tuned.  blk_info.configuration tells what is used.
 *
 * Trials work on copies of all memory that may lie behind a pointer which the kernel writes: the whole blk_buffer, of a
 * blk_ptr into one too, or the driver's allocation that holds the address.  So they change nothing, whatever ends them.
 * Where that size is not known, or there is no memory for copies, nothing is tried: a launch then uses the best
 * configuration that is known for the key, else that of the nearest key in the cache (docs/api.md says what is near),
 * else what its order puts first, else the defaults, and says so in blk_note(); blk_kernel_tune() fails with
 * BLK_ERROR_ARGUMENT or BLK_ERROR_MEMORY.
 *
 * A configuration that faults takes a CUDA context, and on a cpu device that is fast the process, with it, and one
 * that hangs never returns.  In this process the first is an error that names it, and what a process was trying when it
 * ended is skipped by the next one.  Isolated tuning survives both: copies of what lies behind every pointer go to a
 * helper, blk-trial, which is looked for beside libblk and in ../lib from there; it is ended when a configuration runs
 * longer than BLK_TUNE_LIMIT seconds (10) and twenty times what is to be expected. */
typedef enum blk_tune_verdict {
	BLK_TUNE_UNKNOWN, /* not tried */
	BLK_TUNE_GOOD,
	BLK_TUNE_COMPILE,   /* it does not compile */
	BLK_TUNE_RESOURCES, /* it needs more than the device has, or its grid or tensor maps cannot be made; where there
			     * is an order, it spills and another does not */
	BLK_TUNE_WRONG,     /* its results differ from the first configuration's */
	BLK_TUNE_FAILED,    /* it failed while it ran, or did not end */
	BLK_TUNE_PRUNED,    /* not timed: by its spills, or by the cost clause, it cannot be the best */
	BLK_TUNE_SUSPECT,   /* a process ended while it tried it; only isolated tuning tries it again */
	BLK_TUNE_MISFIT     /* a requires clause, or the block's where, does not hold with it for these arguments: not
			     * compiled, not recorded */
} blk_tune_verdict;
typedef struct blk_tune_trial {
	const char *configuration; /* "BM=64,num_warps=4" */
	blk_tune_verdict verdict;
	double ms;          /* the 0.2 quantile of the best round of timing it took part in; 0 unless good */
	const char *reason; /* why it is not good; "" */
	int chosen;
	double predicted; /* what the block's order says of it, in its unit; nan: it has none */
} blk_tune_trial;
typedef int (*blk_tune_visit)(void *context, const blk_tune_trial *);
/* Called while it works: steps done of all, the best time so far (0: none yet). */
typedef void (*blk_tune_progress)(void *context, uint32_t done, uint32_t total, double best_ms);
typedef struct blk_tune_options {
	blk_tune_progress progress; /* may be NULL */
	blk_tune_visit visit;       /* called for each configuration at the end; may be NULL; nonzero stops */
	void *context;
	int again;    /* nonzero: also what the cache knows is timed again */
	int isolated; /* nonzero: in another process, as with BLK_TUNE=isolated */
} blk_tune_options;
/* Tunes for these arguments now; `timed` (may be NULL) gets how many configurations were tried, 0 when the cache knew
 * them all or the kernel has no autotune clause. */
BLK_API blk_status blk_kernel_tune(
	blk_kernel *, const blk_grid *, const blk_arg *, size_t n, const blk_tune_options *, uint32_t *timed);
/* All tuning records of the cache as one readable file, and back: records of one key are merged. */
BLK_API blk_status blk_tune_export(const char *path, uint32_t *records);
BLK_API blk_status blk_tune_import(const char *path, uint32_t *records);

/* ---- Streams and events ---- */

/* Work on one stream happens in order; the default stream waits for these and they for it. */
BLK_API blk_status blk_stream_create(blk_device *, blk_stream **);
BLK_API blk_status blk_stream_wrap(blk_device *, void *cu_stream, blk_stream **); /* a CUstream of the caller's */
BLK_API blk_status blk_stream_sync(blk_stream *);
BLK_API void blk_stream_free(blk_stream *);
BLK_API void *blk_stream_handle(blk_stream *); /* the CUstream */

BLK_API blk_status blk_event_create(blk_device *, blk_event **);
BLK_API blk_status blk_event_record(blk_event *, blk_stream *); /* NULL: the default stream */
/* Time between two recorded events, for both of which it waits. */
BLK_API blk_status blk_event_elapsed(blk_event *start, blk_event *end, double *milliseconds);
BLK_API void blk_event_free(blk_event *);

/* ---- The simulator ---- */

/* How a "sim" device runs its launches from now on. */
typedef struct blk_sim_options {
	uint64_t seed;      /* of the order in which warps and programs run; 0: as they are numbered */
	uint32_t schedules; /* each launch runs this often, with seed, seed + 1, ..; what it wrote is put back between;
			       0: 1 */
	int counters;       /* nonzero: blk_sim_count() has the last launch's numbers */
	int json;           /* nonzero: what is found is one JSON object */
	uint64_t steps;     /* a program that has not ended after this many instructions of its warps; 0: 2^30 */
	uint64_t budget;    /* a launch is given up (BLK_ERROR_RESOURCES) after this many of all programs; 0: never */
} blk_sim_options;
BLK_API blk_status blk_sim_configure(blk_device *, const blk_sim_options *); /* NULL: the defaults, all 0 */

/*      enumerator  name; docs/sim.md says what each holds */
#define BLK_SIM_CLASSES(X)                                                                                             \
	X(BLK_SIM_INTEGER, "integer")                                                                                  \
	X(BLK_SIM_FLOAT, "float")                                                                                      \
	X(BLK_SIM_HALF, "half")                                                                                        \
	X(BLK_SIM_DOUBLE, "double")                                                                                    \
	X(BLK_SIM_SPECIAL, "special function")                                                                         \
	X(BLK_SIM_CONVERT, "conversion")                                                                               \
	X(BLK_SIM_MOVE, "move")                                                                                        \
	X(BLK_SIM_PREDICATE, "predicate, select")                                                                      \
	X(BLK_SIM_BRANCH, "branch")                                                                                    \
	X(BLK_SIM_LOAD, "load")                                                                                        \
	X(BLK_SIM_STORE, "store")                                                                                      \
	X(BLK_SIM_COPY, "copy")                                                                                        \
	X(BLK_SIM_ATOMIC, "atomic")                                                                                    \
	X(BLK_SIM_EXCHANGE, "shuffle, vote")                                                                           \
	X(BLK_SIM_BARRIER, "barrier")                                                                                  \
	X(BLK_SIM_FENCE, "fence, wait")                                                                                \
	X(BLK_SIM_MATRIX, "tensor core")
typedef enum blk_sim_class {
#define BLK_X(name, text) name,
	BLK_SIM_CLASSES(BLK_X)
#undef BLK_X
		BLK_SIM_CLASS_COUNT
} blk_sim_class;
typedef struct blk_sim_counters {
	uint64_t programs;
	uint64_t instructions[BLK_SIM_CLASS_COUNT]; /* of warps */
	uint64_t lanes;                             /* that took part, all instructions together */
	uint64_t load_requests, load_sectors,
		load_bytes; /* global memory: warps' accesses, 32-byte sectors, bytes asked for */
	uint64_t store_requests, store_sectors, store_bytes;
	uint64_t atomic_lanes;
	uint64_t shared_requests, shared_conflicts; /* turns beyond the least that each request takes */
	uint64_t barriers;                          /* that programs passed */
	uint64_t shared_bytes;                      /* of a program */
} blk_sim_counters;
BLK_API blk_status blk_sim_count(blk_device *, blk_sim_counters *); /* of the last launch */

/* What one line of the PTX did in it. */
typedef struct blk_sim_line {
	const char *file; /* the source line that it is of; NULL: none */
	uint32_t line, ptx_line;
	uint64_t instructions, lanes;      /* of warps; that took part */
	uint64_t requests, sectors, bytes; /* of global memory, as above */
	uint64_t shared_requests, shared_conflicts;
} blk_sim_line;
/* The lines that ran in the last launch, in the PTX's order.  They are the device's, until its next counted launch. */
BLK_API blk_status blk_sim_lines(blk_device *, const blk_sim_line **, size_t *n);
/* The report of the code that was launched last, the kernel's, as a page (blkc --explain=html) with these numbers
 * beside its lines.  NUL-terminated beyond *bytes; it goes back by free(). */
BLK_API blk_status blk_sim_page(blk_kernel *, char **page, size_t *bytes);

/* ---- The cache on disk ---- */

/* Compiled code is kept in $BLK_CACHE_DIR, else $XDG_CACHE_HOME/blk, else ~/.cache/blk, up to $BLK_CACHE_SIZE bytes
 * (suffixes K, M, G; default 1G), least recently used goes first.  BLK_CACHE=off turns it off. */
typedef struct blk_cache_entry {
	const char *file;   /* its name in the folder */
	const char *kernel; /* "" for a module's check */
	const char *target;
	uint64_t bytes;
	int64_t used; /* seconds since 1970 */
	int valid;    /* 0: damaged or foreign */
	int tuning;   /* nonzero: a tuning record, not compiled code */
} blk_cache_entry;
/* Calls `visit` for each entry, tuning records last; the strings live during the call.  A nonzero return stops. */
BLK_API blk_status blk_cache_list(int (*visit)(void *context, const blk_cache_entry *), void *context);
BLK_API blk_status blk_cache_clear(uint64_t *removed); /* entries; may be NULL */
/* The folder in use, or NULL where there is none; valid until this thread's next call of it. */
BLK_API const char *blk_cache_folder(void);

#ifdef __cplusplus
}
#endif
#endif
