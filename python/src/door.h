/* What the files of the extension module share.
 *
 * In: Python objects.  Out: calls of libblk.  A call goes through three steps, a file each: tensor.c and number.c turn
 * objects into arguments, code.c finds the module that was opened for a device and its defines, kernel.c launches.
 *
 * The stable ABI of CPython 3.9 is all that is used, so one file serves every later version.  There is no state but the
 * Python module's own (`door`), which whatever was made of it keeps alive. */
#ifndef BLK_PYTHON_DOOR_H
#define BLK_PYTHON_DOOR_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "blk.h"
#include "dlpack.h"

#include <stdbool.h>

/* ---- module.c ---- */

typedef struct opened_device {
	struct opened_device *next;
	blk_device *handle;
	char *name; /* as it was asked for: "cuda:1", "sim:sm_90a" */
	blk_device_kind kind;
	int ordinal; /* N of cuda:N */
} opened_device;

enum { EXCHANGES = 8 };
/* A type of tensors that was seen. */
typedef struct exchange {
	PyTypeObject *type; /* owned */
	const DLPackExchangeAPI *api;
	bool waits;    /* its __dlpack__() takes no stream=-1 */
	bool constant; /* JAX's: nothing may write to it, which its capsule does not say on a GPU */
} exchange;

typedef struct door {
	PyObject *module; /* borrowed: it holds this */
	PyTypeObject *code_type, *kernel_type, *strided_type;
	PyObject *error, *argument_error, *note;                                                 /* classes */
	PyObject *dlpack, *dlpack_device, *exchange, *interface, *cuda_stream, *status, *is_neg; /* attributes' names */
	PyObject *host_keywords, *device_keywords; /* of __dlpack__: max_version, and stream=-1 with it */
	PyObject *no_arguments;
	PyObject *current_stream;      /* torch's, once torch is there */
	PyObject *torch;               /* its name */
	opened_device *devices;        /* the latest first */
	char *said;                    /* the last note that became a warning */
	exchange exchanges[EXCHANGES]; /* of types that were seen; api null: it has none */
	unsigned nexchanges;
} door;

/* The device of that name, opened by the first call; null with an exception. */
opened_device *door_device(door *, const char *name);
/* The exception for a failed call of libblk on this thread, whose text is `text`.  Returns null. */
void *door_raise(door *, blk_status, const char *text);
/* blk_note() as a warning; false with an exception where warnings are errors. */
bool door_note(door *);

/* A copy of blk_error() or blk_note() that outlives other calls; null and no exception where there is no memory. */
char *text_copy(const char *);

/* ---- tensor.c ---- */

/* Py_buffer: part of the stable ABI from 3.11 on only, though it has been the same before. */
typedef struct buffer_view {
	void *buf;
	PyObject *obj;
	Py_ssize_t len, itemsize;
	int readonly, ndim;
	char *format;
	Py_ssize_t *shape, *strides, *suboffsets;
	void *internal;
} buffer_view;

typedef struct tensor {
	void *data;        /* of its first element */
	int64_t low, high; /* bytes from there to the lowest one, and behind the highest one */
	int type;          /* blk_type of an element; -1: none of blk's */
	bool read_only, contiguous, on_gpu;
	int ordinal;                       /* on_gpu: of the GPU */
	const DLPackExchangeAPI *exchange; /* by which it came, or null */
	enum { HELD_NOTHING, HELD_BUFFER, HELD_MANAGED, HELD_VERSIONED } held;
	union {
		buffer_view buffer;
		DLManagedTensor *managed;
		DLManagedTensorVersioned *versioned;
	} by;
} tensor;

/* What lies behind an object, held until tensor_release().  `name` is the parameter's, for messages.  None is a null
 * pointer.  False with an exception. */
bool tensor_get(door *, PyObject *, const char *kernel, const char *name, tensor *);
void tensor_release(tensor *);
PyObject *strided_new(PyTypeObject *, PyObject *args, PyObject *keywords);
extern PyType_Spec strided_spec;

/* ---- number.c ---- */

/* False with an exception: TypeError, or OverflowError for what the type cannot hold. */
bool number_get(PyObject *, blk_type, const char *kernel, const char *name, blk_arg *);
const char *type_name(int type);                 /* "f32" */
int type_parse(const char *name, size_t length); /* -1: none */

/* ---- code.c ---- */

typedef struct parameter {
	const char *name; /* libblk's, as is `text` */
	const char *text; /* "*const f32" */
	bool is_pointer, written;
	blk_type type; /* of a number, or of what a pointer points to */
} parameter;

/* A kernel on a device with its defines: what libblk calls a kernel. */
enum { MOST_ASKED = 8 };
typedef struct bound {
	struct bound *next;
	opened_device *device;
	char *defines; /* "BLOCK=2048\nT=f16\n", sorted */
	blk_module *module;
	blk_kernel *handle;
	parameter *parameters;
	size_t nparameters;
	struct {
		PyObject *names[MOST_ASKED], *values[MOST_ASKED]; /* owned */
		size_t n;
	} asked; /* the keywords that led here last; n 0: none, or not to be compared */
} bound;

typedef struct opened {
	struct opened *next;
	opened_device *device;
	char *defines;
	blk_module *module;
} opened;

/* Source, a package or PTX, and all modules that were opened of it.  Counted, under the GIL. */
typedef struct code {
	size_t references;
	door *door;
	PyObject *owner;         /* the Python module */
	char *name, *text;       /* text null: the file `name` */
	opened_device *device;   /* null: the tensors say */
	char *base;              /* defines of load() */
	opened *modules, *first; /* first: what it was checked with */
} code;

code *code_new(door *, const char *name, const char *text, const char *device, PyObject *defines);
PyObject *code_object(code *); /* takes the reference */
void code_free(code *);        /* drops one reference */
/* `extra`: defines of this call, may be null. */
bool code_bind(code *, const char *kernel, opened_device *, PyObject *extra, bound **list, bound **out);
void bound_free(bound *); /* the whole list */
extern PyType_Spec code_spec;

typedef struct py_kernel {
	PyObject_HEAD code *code;
	char *name;
	bound *list, *first; /* first: of `code->first` */
	bound *last;         /* of the last launch, and its arguments: what `.ptx` shows */
	blk_arg *last_args;
} py_kernel;

/* ---- keywords.c ---- */

enum { MOST_PARAMETERS = 256 };
typedef struct define_set {
	PyObject *names[MOST_PARAMETERS], *values[MOST_PARAMETERS]; /* borrowed */
	size_t n;
} define_set;

/* Whether an earlier call had it as a const parameter or an option; a name that is none of its arguments'. */
bool keyword_known(const py_kernel *, PyObject *name);
bool keyword_is_define(const py_kernel *, PyObject *name);
/* The kernel with these defines, opened where that is new.  False with an exception. */
bool keywords_bind(py_kernel *, opened_device *, const define_set *, bound **);
void asked_forget(bound *);

/* ---- kernel.c ---- */

/* A call whose arguments have been looked at. */
enum { FEW = 16 };
typedef struct call {
	bound *to;
	blk_arg *args;
	tensor *tensors; /* one for each parameter that is a pointer, in order */
	size_t ntensors;
	void *stream;
	blk_grid grid;
	bool has_grid;
	blk_arg few_args[FEW];
	tensor few_tensors[FEW];
	struct piece *copies; /* of tensors, where the device cannot read them in place */
	size_t ncopies;
} call;

PyObject *kernel_new(code *, const char *name);
/* False with an exception, and nothing to end. */
bool call_begin(py_kernel *, PyObject *args, PyObject *keywords, call *);
void call_end(call *);
extern PyType_Spec kernel_spec;

/* ---- copies.c ---- */

/* Tensors on the host as buffers of the call's device; overlapping ones stay so.  Without the GIL. */
blk_status copies_make(call *);
blk_status copies_take_back(call *); /* what the kernel may have written */
void copies_free(call *);

/* ---- report.c ---- */

PyObject *kernel_signature(py_kernel *, void *);
PyObject *kernel_ptx(py_kernel *, void *);
PyObject *kernel_explain(py_kernel *, PyObject *args, PyObject *keywords);
PyObject *kernel_constants(py_kernel *, PyObject *args, PyObject *keywords);
PyObject *kernel_info(py_kernel *, PyObject *args, PyObject *keywords);
PyObject *kernel_tune(py_kernel *, PyObject *args, PyObject *keywords);

#endif
