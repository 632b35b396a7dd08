/* C for TVM's FFI: each kernel as a function that frameworks built on it load and call (apache-tvm-ffi).
 *
 *   int __tvm_ffi_add(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result)
 *
 * What is written is one C11 file over blk.h.  The few structs of the ABI that it needs are written out, so TVM's
 * headers are not; its two functions are weak, so that its library is not linked.  The source goes with it as a string,
 * opened by the first call on each device: what was launched before is a table's look-up and blk_launch_on(). */
#include "tool.h"

#include "base/growing.h"
#include "package/signature.h"
#include "support/scalar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What every file has ---- */

/* clang-format off */
static const char includes[] =
	"#include <blk.h>\n"
	"#include <pthread.h>\n"
	"#include <stdatomic.h>\n"
	"#include <stddef.h>\n"
	"#include <stdint.h>\n"
	"#include <stdio.h>\n"
	"\n";

/* Behind source_name, source and defines, which it uses. */
static const char common[] =
	"#define API __attribute__((visibility(\"default\")))\n"
	"\n"
	"/* Of the ABI: tvm/ffi/c_api.h, dlpack.h. */\n"
	"enum { FFI_NONE = 0, FFI_INT = 1, FFI_BOOL = 2, FFI_FLOAT = 3, FFI_DLTENSOR = 7, FFI_TENSOR = 70 };\n"
	"typedef struct ffi_any {\n"
	"\tint32_t type_index;\n"
	"\tuint32_t zero;\n"
	"\tunion {\n"
	"\t\tint64_t v_int64;\n"
	"\t\tdouble v_float64;\n"
	"\t\tvoid *v_ptr;\n"
	"\t};\n"
	"} ffi_any;\n"
	"typedef struct ffi_object {\n"
	"\tuint64_t references;\n"
	"\tint32_t type_index;\n"
	"\tuint32_t padding;\n"
	"\tvoid (*deleter)(void *self, int flags);\n"
	"} ffi_object;\n"
	"typedef struct dl_tensor {\n"
	"\tvoid *data;\n"
	"\tint32_t device_type, device_id, ndim;\n"
	"\tuint8_t code, bits;\n"
	"\tuint16_t lanes;\n"
	"\tint64_t *shape, *strides;\n"
	"\tuint64_t byte_offset;\n"
	"} dl_tensor;\n"
	"/* Of the library that loads this one. */\n"
	"__attribute__((weak)) void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);\n"
	"__attribute__((weak)) void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);\n"
	"\n"
	"enum { DEVICES = 65, MOST_ARGUMENTS = 256 }; /* the processor, and 64 GPUs */\n"
	"typedef struct parameter {\n"
	"\tconst char *name, *type;\n"
	"\tuint8_t is_pointer, code, bits; /* blk_type of a number; "
	"DLPack's code and bits of what a pointer points to */\n"
	"} parameter;\n"
	"typedef struct kernel {\n"
	"\tconst char *name;\n"
	"\tconst parameter *parameters;\n"
	"\tint nparameters, has_grid;\n"
	"\t_Atomic(blk_kernel *) on[DEVICES]; /* found once for each device */\n"
	"} kernel;\n"
	"\n"
	"static int fail(const char *kind, const char *message)\n"
	"{\n"
	"\tif (TVMFFIErrorSetRaisedFromCStr) TVMFFIErrorSetRaisedFromCStr(kind, message);\n"
	"\treturn -1;\n"
	"}\n"
	"\n"
	"static int wrong(const char *kind, const kernel *k, const parameter *p, const char *what)\n"
	"{\n"
	"\tchar text[512];\n"
	"\tsnprintf(text, sizeof text, \"argument %s of kernel %s, %s, %s\", p->name, k->name, p->type, what);\n"
	"\treturn fail(kind, text);\n"
	"}\n"
	"\n"
	"/* The kernel on a device: the source is opened there by the first call. */\n"
	"static blk_kernel *find(kernel *k, int place)\n"
	"{\n"
	"\tstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
	"\tstatic blk_module *modules[DEVICES];\n"
	"\tblk_kernel *found = atomic_load_explicit(&k->on[place], memory_order_acquire);\n"
	"\tif (found) return found;\n"
	"\tblk_device *device;\n"
	"\tchar name[32] = \"cpu\";\n"
	"\tif (place) snprintf(name, sizeof name, \"cuda:%d\", place - 1);\n"
	"\tpthread_mutex_lock(&lock);\n"
	"\tblk_status status = BLK_OK;\n"
	"\tif (!modules[place]) {\n"
	"\t\tstatus = blk_device_open(name, &device);\n"
	"\t\tif (!status)\n"
	"\t\t\tstatus = blk_module_source(\n"
	"\t\t\t\tdevice, source_name, source, defines, sizeof defines / sizeof defines[0] - 1, &modules[place]);\n"
	"\t}\n"
	"\tif (!status) status = blk_kernel_find(modules[place], k->name, &found);\n"
	"\tpthread_mutex_unlock(&lock);\n"
	"\tif (status) {\n"
	"\t\tfail(\"RuntimeError\", blk_error());\n"
	"\t\treturn NULL;\n"
	"\t}\n"
	"\tatomic_store_explicit(&k->on[place], found, memory_order_release);\n"
	"\treturn found;\n"
	"}\n"
	"\n"
	"static int contiguous(const dl_tensor *t)\n"
	"{\n"
	"\tint64_t dense = 1;\n"
	"\tfor (int i = 0; i < t->ndim; i++)\n"
	"\t\tif (t->shape[i] == 0) return 1;\n"
	"\tfor (int i = t->ndim - 1; t->strides && i >= 0; i--) {\n"
	"\t\tif (t->shape[i] != 1 && t->strides[i] != dense) return 0;\n"
	"\t\tdense *= t->shape[i];\n"
	"\t}\n"
	"\treturn 1;\n"
	"}\n"
	"\n"
	"/* `place` is the device of the tensors before, -1: none yet. */\n"
	"static int put_pointer(const kernel *k, const parameter *p, const ffi_any *a, int *place, blk_arg *out)\n"
	"{\n"
	"\t*out = blk_ptr(NULL);\n"
	"\tif (a->type_index == FFI_NONE) return 0;\n"
	"\tif (a->type_index != FFI_DLTENSOR && a->type_index != FFI_TENSOR) return wrong("
	"\"TypeError\", k, p, \"takes a tensor\");\n"
	"\tconst dl_tensor *t = a->v_ptr;\n"
	"\tif (a->type_index == FFI_TENSOR) t = (const dl_tensor *)((const char *)a->v_ptr + sizeof(ffi_object));\n"
	"\tif (t->code != p->code || t->bits != p->bits || t->lanes != 1)\n"
	"\t\treturn wrong(\"TypeError\", k, p, \"takes no tensor of another element type\");\n"
	"\tif (!contiguous(t)) return wrong(\"ValueError\", k, p, \"takes a contiguous tensor\");\n"
	"\tint here = t->device_type == 1 || t->device_type == 3    ? 0\n"
	"\t\t   : t->device_type == 2 || t->device_type == 13 ? t->device_id + 1\n"
	"\t\t\t\t\t\t\t\t : -1;\n"
	"\tif (here < 0 || here >= DEVICES) return wrong("
	"\"ValueError\", k, p, \"is neither on the processor nor on a CUDA GPU\");\n"
	"\tif (*place >= 0 && *place != here) return wrong("
	"\"ValueError\", k, p, \"is on another device than those before\");\n"
	"\t*place = here;\n"
	"\t*out = blk_ptr((const char *)t->data + t->byte_offset);\n"
	"\treturn 0;\n"
	"}\n"
	"\n"
	"static int put_integer(const kernel *k, const parameter *p, const ffi_any *a, blk_arg *out)\n"
	"{\n"
	"\tstatic const struct {\n"
	"\t\tuint8_t bits, is_signed;\n"
	"\t} forms[] = {{1, 0}, {8, 1}, {16, 1}, {32, 1}, {64, 1}, {8, 0}, {16, 0}, {32, 0}, {64, 0}, {8, 0}, {8, 0}, "
	"{16, 0},\n"
	"\t\t{16, 0}}; /* ORDER blk_type; floats of 8 and 16 bits are passed as bits */\n"
	"\tif (a->type_index != FFI_INT && a->type_index != FFI_BOOL) return wrong("
	"\"TypeError\", k, p, \"takes an int\");\n"
	"\tint64_t v = a->v_int64;\n"
	"\tunsigned bits = forms[p->code].bits;\n"
	"\tint fits = forms[p->code].is_signed ? bits == 64 || (v >= -(INT64_C(1) << (bits - 1)) && "
	"v < INT64_C(1) << (bits - 1))\n"
	"\t\t\t\t\t    : v >= 0 && (bits == 64 || v >> bits == 0);\n"
	"\tif (!fits) return wrong(\"ValueError\", k, p, \"does not hold that number\");\n"
	"\t*out = blk_arg_make((blk_type)p->code, bits == 64 ? (uint64_t)v : "
	"(uint64_t)v & ((UINT64_C(1) << bits) - 1));\n"
	"\treturn 0;\n"
	"}\n"
	"\n"
	"static int put_float(const kernel *k, const parameter *p, const ffi_any *a, blk_arg *out)\n"
	"{\n"
	"\tif (a->type_index != FFI_FLOAT && a->type_index != FFI_INT) return wrong("
	"\"TypeError\", k, p, \"takes a float\");\n"
	"\tdouble v = a->type_index == FFI_INT ? (double)a->v_int64 : a->v_float64;\n"
	"\t*out = p->code == BLK_TYPE_F64 ? blk_f64(v) : blk_f32((float)v);\n"
	"\treturn 0;\n"
	"}\n"
	"\n"
	"static int read_grid(const kernel *k, const ffi_any *a, blk_grid *grid)\n"
	"{\n"
	"\tuint32_t *axes[3] = {&grid->x, &grid->y, &grid->z};\n"
	"\tchar text[256];\n"
	"\tsnprintf(text, sizeof text, \"kernel %s takes the programs along x, y and z as its last three arguments\", "
	"k->name);\n"
	"\tfor (int i = 0; i < 3; i++) {\n"
	"\t\tif (a[i].type_index != FFI_INT) return fail(\"TypeError\", text);\n"
	"\t\tif (a[i].v_int64 < 1 || a[i].v_int64 > INT32_MAX) return fail(\"ValueError\", text);\n"
	"\t\t*axes[i] = (uint32_t)a[i].v_int64;\n"
	"\t}\n"
	"\treturn 0;\n"
	"}\n"
	"\n"
	"static int call(kernel *k, const ffi_any *a, int32_t n)\n"
	"{\n"
	"\tblk_arg args[MOST_ARGUMENTS];\n"
	"\tblk_grid grid;\n"
	"\tint place = -1, wanted = k->nparameters + (k->has_grid ? 0 : 3);\n"
	"\tif (n != wanted) {\n"
	"\t\tchar text[256];\n"
	"\t\tsnprintf(text, sizeof text, \"kernel %s takes %d arguments, not %d\", k->name, wanted, (int)n);\n"
	"\t\treturn fail(\"TypeError\", text);\n"
	"\t}\n"
	"\tfor (int i = 0; i < k->nparameters; i++) {\n"
	"\t\tconst parameter *p = &k->parameters[i];\n"
	"\t\tint failed = p->is_pointer                ? put_pointer(k, p, &a[i], &place, &args[i])\n"
	"\t\t\t     : p->code >= BLK_TYPE_F32 ? put_float(k, p, &a[i], &args[i])\n"
	"\t\t\t\t\t\t       : put_integer(k, p, &a[i], &args[i]);\n"
	"\t\tif (failed) return failed;\n"
	"\t}\n"
	"\tif (!k->has_grid && read_grid(k, a + k->nparameters, &grid)) return -1;\n"
	"\tif (place < 0) place = 0; /* no tensor says */\n"
	"\tblk_kernel *on = find(k, place);\n"
	"\tif (!on) return -1;\n"
	"\tvoid *stream = place && TVMFFIEnvGetStream ? TVMFFIEnvGetStream(2, place - 1) : NULL;\n"
	"\tblk_status status = blk_launch_on(on, stream, k->has_grid ? NULL : &grid, args, (size_t)k->nparameters);\n"
	"\tif (!status) return 0;\n"
	"\tint theirs = status == BLK_ERROR_ARGUMENT || status == BLK_ERROR_ALIGNMENT || status == BLK_ERROR_GRID;\n"
	"\treturn fail(theirs ? \"ValueError\" : \"RuntimeError\", blk_error());\n"
	"}\n";
/* clang-format on */

/* ---- What differs ---- */

/* A C string literal, a line a line. */
static void put_string(growing *w, const char *text, size_t n)
{
	grow_format(w, "\"");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '\n')
			grow_format(w, "\\n%s", i + 1 < n ? "\"\n\t\"" : "");
		else if (c == '"' || c == '\\')
			grow_format(w, "\\%c", c);
		else if (c < ' ' || c >= 127 || c == '?') /* ? begins trigraphs */
			grow_format(w, "\\%03o", c);
		else
			grow_format(w, "%c", c);
	}
	grow_format(w, "\"");
}

/* DLPack's code for an element; its bits are the scalar's. */
static unsigned dl_code(scalar s)
{
	if (s == SCALAR_BOOL) return 6;
	if (s == SCALAR_BF16) return 4;
	if (s == SCALAR_F8E4M3) return 10;
	if (s == SCALAR_F8E5M2) return 12;
	return scalar_is_float(s) ? 2 : !scalar_is_signed(s);
}

static void put_kernel(growing *w, const signature *s)
{
	grow_format(w, "\nstatic const parameter of_%s[] = {\n", s->kernel);
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		bool is_pointer = p->code == BLK_TYPE_POINTER;
		grow_format(w, "\t{\"%s\", \"%s\", %d, %u, %u},\n", p->name, p->type, is_pointer,
			is_pointer ? dl_code((scalar)p->element) : p->code,
			is_pointer ? 8 * scalar_bytes((scalar)p->element) : 0);
	}
	grow_format(w,
		"\t{0},\n};\nAPI int __tvm_ffi_%s(void *self, const ffi_any *args, int32_t n, ffi_any *result);\n",
		s->kernel);
	grow_format(
		w, "API int __tvm_ffi_%s(void *self, const ffi_any *args, int32_t n, ffi_any *result)\n{\n", s->kernel);
	grow_format(w,
		"\tstatic kernel k = {.name = \"%s\", .parameters = of_%s, .nparameters = %u, .has_grid = %d};\n",
		s->kernel, s->kernel, s->nparameters, s->ngrid != 0);
	grow_format(w, "\t(void)self, (void)result;\n\treturn call(&k, args, n);\n}\n");
}

static void put_source(growing *w, const char *input, const blkc_request *request, const blkc_result *checked,
	const char *text, size_t n)
{
	/* Imports are found from where the source lies; without them its place is nobody's matter. */
	char *path = checked->ndependencies ? realpath(input, NULL) : NULL;
	grow_format(w, "\nstatic const char source_name[] = ");
	put_string(w, path ? path : input, strlen(path ? path : input));
	grow_format(w, ";\nstatic const char source[] =\n\t");
	put_string(w, text, n);
	grow_format(w, ";\nstatic const blk_define defines[] = {\n");
	for (size_t i = 0; i < request->ndefines; i++) {
		grow_format(w, "\t{\"%s\", ", request->defines[i].name);
		put_string(w, request->defines[i].value, strlen(request->defines[i].value));
		grow_format(w, "},\n");
	}
	grow_format(w, "\t{0},\n};\n\n");
	free(path);
}

char *tool_tvm_ffi(const char *input, const blkc_request *request, const blkc_result *checked, const char *text,
	size_t n, size_t *bytes)
{
	growing w = {0};
	const char *slash = strrchr(input, '/');
	grow_format(&w,
		"/* The kernels of %s for TVM's FFI, written by blkc:\n *	cc -shared -fPIC THIS.c -lblk -o "
		"kernels.so\n"
		" *	tvm_ffi.load_module(\"kernels.so\").NAME(tensor, .., number, ..)\n"
		" * A kernel without a grid clause takes three ints more, the programs along x, y and z.  Floats of 16 "
		"and 8 bits that\n"
		" * are no tensor's are passed as their bits. */\n",
		slash ? slash + 1 : input);
	grow_format(&w, "%s", includes);
	put_source(&w, input, request, checked, text, n);
	grow_format(&w, "%s", common);
	for (size_t i = 0; i < checked->nkernels && !w.failed; i++) {
		signature *s;
		const char *facts = checked->kernels[i].signature;
		w.failed = signature_parse(facts, strlen(facts), &s) != BLK_OK;
		if (w.failed) break;
		put_kernel(&w, s);
		signature_free(s);
	}
	if (w.failed) {
		free(w.at);
		return NULL;
	}
	*bytes = w.n;
	return w.at;
}
