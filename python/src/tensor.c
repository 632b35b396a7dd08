/* Any object with memory behind it as an address, an element type and an extent, without a copy.
 *
 * Four ways lead there, the cheapest first: the type's DLPack exchange table (torch), the buffer protocol (NumPy,
 * bytearray, memoryview), __dlpack__ (everybody else), and NumPy's __array_interface__ for the element types that the
 * other two do not know.  A DLPack capsule is consumed as the standard asks: renamed at once, its deleter called when
 * the launch has been made. */
#include "door.h"

#include "support/scalar.h"

#include <string.h>

int PyObject_CheckBuffer(PyObject *);
int PyObject_GetBuffer(PyObject *, buffer_view *, int flags);
void PyBuffer_Release(buffer_view *);
enum { VIEW_FORMAT = 4, VIEW_STRIDES = 0x10 | 8 };

/* ---- Element types ---- */

static int integer_type(bool is_signed, size_t bytes)
{
	static const int types[2][4] = {{BLK_TYPE_U8, BLK_TYPE_U16, BLK_TYPE_U32, BLK_TYPE_U64},
		{BLK_TYPE_I8, BLK_TYPE_I16, BLK_TYPE_I32, BLK_TYPE_I64}};
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 ? types[is_signed][bytes == 8 ? 3 : bytes / 2] : -1;
}

static int float_type(size_t bytes)
{
	return bytes == 2 ? BLK_TYPE_F16 : bytes == 4 ? BLK_TYPE_F32 : bytes == 8 ? BLK_TYPE_F64 : -1;
}

static int dl_type(DLDataType t)
{
	if (t.lanes != 1 || t.bits % 8) return -1;
	switch (t.code) {
	case DL_INT: return integer_type(true, t.bits / 8);
	case DL_UINT: return integer_type(false, t.bits / 8);
	case DL_FLOAT: return float_type(t.bits / 8);
	case DL_BFLOAT: return t.bits == 16 ? BLK_TYPE_BF16 : -1;
	case DL_BOOL: return t.bits == 8 ? BLK_TYPE_BOOL : -1;
	case DL_F8E4M3FN: return BLK_TYPE_F8E4M3;
	case DL_F8E5M2: return BLK_TYPE_F8E5M2;
	default: return -1;
	}
}

/* A format of the struct module.  Its size is the view's, whatever "l" may be here. */
static int buffer_type(const char *format, size_t bytes)
{
	if (!format) return BLK_TYPE_U8;
	if (*format == '@' || *format == '=' || *format == '<') format++;
	if (!*format || format[1]) return -1;
	if (*format == '?') return BLK_TYPE_BOOL;
	if (strchr("bhilqn", *format)) return integer_type(true, bytes);
	if (strchr("BHILQNc", *format)) return integer_type(false, bytes);
	return strchr("efd", *format) ? float_type(bytes) : -1;
}

/* ---- Extents ---- */

/* Strides in units of `unit` bytes; null: contiguous.  False: more bytes than there are addresses. */
static bool measure(tensor *t, int ndim, const int64_t *shape, const int64_t *strides, int64_t unit, int64_t element)
{
	int64_t low = 0, high = 0, dense = element;
	bool contiguous = true, overflow = false;
	for (int i = 0; i < ndim; i++)
		if (shape[i] == 0) {
			t->contiguous = true;
			return true;
		}
	for (int i = ndim - 1; i >= 0; i--) {
		int64_t step = dense, reach;
		if (strides) overflow |= __builtin_mul_overflow(strides[i], unit, &step);
		if (shape[i] != 1 && step != dense) contiguous = false;
		overflow |= __builtin_mul_overflow(shape[i] - 1, step, &reach);
		overflow |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
		/* of what is not contiguous it means nothing */
		if (__builtin_mul_overflow(dense, shape[i], &dense)) contiguous = false;
	}
	overflow |= __builtin_add_overflow(high, element, &high);
	t->low = low;
	t->high = high;
	t->contiguous = contiguous;
	return !overflow;
}

static bool too_large(const char *kernel, const char *name)
{
	PyErr_Format(PyExc_ValueError, "argument %s of kernel %s: its strides lead beyond all memory", name, kernel);
	return false;
}

/* ---- DLPack ---- */

static bool take_dl(const DLTensor *d, const char *kernel, const char *name, tensor *t)
{
	int type = d->device.device_type;
	t->on_gpu = type == DL_CUDA || type == DL_CUDA_MANAGED;
	t->ordinal = t->on_gpu ? d->device.device_id : 0;
	if (!t->on_gpu && type != DL_CPU && type != DL_CUDA_HOST) {
		PyErr_Format(PyExc_ValueError,
			"argument %s of kernel %s is on a device (DLPack's number %d) that is neither the processor "
			"nor a "
			"CUDA GPU",
			name, kernel, type);
		return false;
	}
	t->type = dl_type(d->dtype);
	t->data = d->data ? (char *)d->data + d->byte_offset : NULL;
	int64_t bytes = ((int64_t)d->dtype.bits * d->dtype.lanes + 7) / 8;
	return measure(t, d->ndim, d->shape, d->strides, bytes, bytes) || too_large(kernel, name);
}

/* Takes the capsule's tensor.  The capsule's own destructor does nothing once its name is the one of a used one. */
static bool take_capsule(PyObject *capsule, const char *kernel, const char *name, tensor *t)
{
	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		DLManagedTensorVersioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
		if (PyCapsule_SetName(capsule, "used_dltensor_versioned")) return false;
		t->held = HELD_VERSIONED;
		t->by.versioned = m;
		if (m->version.major != 1) {
			PyErr_Format(PyExc_BufferError, "argument %s of kernel %s: DLPack of version %u, not 1", name,
				kernel, (unsigned)m->version.major);
			return false;
		}
		t->read_only = (m->flags & DL_READ_ONLY) != 0;
		return take_dl(&m->dl_tensor, kernel, name, t);
	}
	if (PyCapsule_IsValid(capsule, "dltensor")) {
		DLManagedTensor *m = PyCapsule_GetPointer(capsule, "dltensor");
		if (PyCapsule_SetName(capsule, "used_dltensor")) return false;
		t->held = HELD_MANAGED;
		t->by.managed = m;
		return take_dl(&m->dl_tensor, kernel, name, t);
	}
	PyErr_Format(PyExc_TypeError,
		"argument %s of kernel %s: its __dlpack__() returned no DLPack capsule, or one that was used", name,
		kernel);
	return false;
}

static bool is_of_jax(PyTypeObject *type)
{
	PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
	PyObject *name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8String(module) : NULL;
	bool yes = name && strncmp(PyBytes_AsString(name), "jax", 3) == 0;
	Py_XDECREF(name);
	Py_XDECREF(module);
	PyErr_Clear();
	return yes;
}

/* What is known of a type.  It is remembered, as asking costs more than the use; where there are too many, it is in
 * `spare`. */
static exchange *known_type(door *d, PyTypeObject *type, exchange *spare)
{
	for (unsigned i = 0; i < d->nexchanges; i++)
		if (d->exchanges[i].type == type) return &d->exchanges[i];
	const DLPackExchangeAPI *api = NULL;
	PyObject *capsule = PyObject_GetAttr((PyObject *)type, d->exchange);
	if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
		api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
	while (api && api->version.major != 1) api = api->previous;
	if (api && !api->tensor_from_object) api = NULL;
	PyErr_Clear();
	Py_XDECREF(capsule);
	*spare = (exchange){.type = type, .api = api, .constant = is_of_jax(type)};
	if (d->nexchanges == EXCHANGES) return spare;
	/* The table lives as long as its type, so what is remembered keeps both. */
	Py_INCREF(type);
	d->exchanges[d->nexchanges] = *spare;
	return &d->exchanges[d->nexchanges++];
}

static PyObject *capsule_for(PyObject *method, const door *d, int stream)
{
	PyObject *keywords = Py_BuildValue("{s:(ii),s:i}", "max_version", 1, 0, "stream", stream);
	PyObject *capsule = keywords ? PyObject_Call(method, d->no_arguments, keywords) : NULL;
	Py_XDECREF(keywords);
	return capsule;
}

/* stream=-1: nobody waits; the launch is on the stream that the caller says.  JAX takes real streams only: 1 is the
 * default one, which waits there until the array is written. */
static PyObject *ask_capsule(door *d, PyObject *o, exchange *known, bool on_gpu)
{
	PyObject *method = PyObject_GetAttr(o, d->dlpack);
	if (!method) return NULL;
	PyObject *capsule = on_gpu && known->waits ? capsule_for(method, d, 1)
						   : PyObject_Call(method, d->no_arguments,
							     on_gpu ? d->device_keywords : d->host_keywords);
	if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* from before max_version */
		PyErr_Clear();
		PyObject *keywords = on_gpu ? Py_BuildValue("{s:i}", "stream", -1) : NULL;
		if (!on_gpu || keywords) capsule = PyObject_Call(method, d->no_arguments, keywords);
		Py_XDECREF(keywords);
	} else if (!capsule && on_gpu && PyErr_ExceptionMatches(PyExc_Exception)) {
		PyErr_Clear();
		capsule = capsule_for(method, d, 1);
		known->waits = capsule != NULL;
	}
	Py_DECREF(method);
	return capsule;
}

static bool ask_device(door *d, PyObject *o, const char *kernel, const char *name, bool *on_gpu)
{
	PyObject *pair = PyObject_CallMethodObjArgs(o, d->dlpack_device, NULL);
	if (!pair) return false;
	PyObject *kind = PyTuple_Check(pair) && PyTuple_Size(pair) == 2 ? PyTuple_GetItem(pair, 0) : NULL;
	PyObject *number = kind ? PyNumber_Index(kind) : NULL;
	long v = number ? PyLong_AsLong(number) : -1;
	Py_XDECREF(number);
	Py_DECREF(pair);
	if (v == -1) {
		PyErr_Format(PyExc_TypeError,
			"argument %s of kernel %s: its __dlpack_device__() returned no pair of ints", name, kernel);
		return false;
	}
	*on_gpu = v == DL_CUDA || v == DL_CUDA_MANAGED;
	return true;
}

static bool by_dlpack(door *d, PyObject *o, const char *kernel, const char *name, tensor *t)
{
	bool on_gpu;
	if (!ask_device(d, o, kernel, name, &on_gpu)) return false;
	exchange spare, *known = known_type(d, Py_TYPE(o), &spare);
	PyObject *capsule = ask_capsule(d, o, known, on_gpu);
	if (!capsule) return false;
	bool fine = take_capsule(capsule, kernel, name, t);
	Py_DECREF(capsule);
	t->read_only = t->read_only || (on_gpu && known->constant);
	return fine;
}

static bool by_exchange(const DLPackExchangeAPI *api, PyObject *o, const char *kernel, const char *name, tensor *t)
{
	DLTensor d;
	memset(&d, 0, sizeof d);
	if (api->tensor_from_object(o, &d)) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_BufferError, "argument %s of kernel %s gives no tensor", name, kernel);
		return false;
	}
	t->exchange = api;
	return take_dl(&d, kernel, name, t);
}

/* ---- Buffers, arrays ---- */

static bool by_buffer(PyObject *o, const char *kernel, const char *name, tensor *t)
{
	buffer_view *v = &t->by.buffer;
	if (PyObject_GetBuffer(o, v, VIEW_STRIDES | VIEW_FORMAT)) return false;
	t->held = HELD_BUFFER;
	t->data = v->buf;
	t->type = buffer_type(v->format, (size_t)v->itemsize);
	t->read_only = v->readonly != 0;
	int64_t few[16], *shape = few;
	if (v->ndim > 8 && !(shape = PyMem_Malloc(2 * (size_t)v->ndim * sizeof *shape)))
		return PyErr_NoMemory() != NULL;
	for (int i = 0; i < v->ndim; i++) {
		shape[i] = v->shape[i];
		shape[v->ndim + i] = v->strides[i];
	}
	bool fine = measure(t, v->ndim, shape, shape + v->ndim, 1, v->itemsize) || too_large(kernel, name);
	if (shape != few) PyMem_Free(shape);
	return fine;
}

/* The element types of ml_dtypes, which NumPy calls void: its dtype's name tells them apart. */
static int array_type(PyObject *o)
{
	static const struct {
		const char *name;
		int type;
	} names[] = {{"bfloat16", BLK_TYPE_BF16}, {"float8_e4m3fn", BLK_TYPE_F8E4M3}, {"float8_e5m2", BLK_TYPE_F8E5M2}};
	PyObject *dtype = PyObject_GetAttrString(o, "dtype");
	PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
	int type = -1;
	for (size_t i = 0; name && PyUnicode_Check(name) && i < sizeof names / sizeof names[0]; i++)
		if (PyUnicode_CompareWithASCIIString(name, names[i].name) == 0) type = names[i].type;
	Py_XDECREF(name);
	Py_XDECREF(dtype);
	PyErr_Clear();
	return type;
}

enum { MAX_RANK = 64 }; /* NumPy's */

/* A tuple of ints; its length, -1 with an exception. */
static int read_ints(PyObject *tuple, int64_t *out)
{
	Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : MAX_RANK + 1;
	if (n > MAX_RANK) {
		PyErr_SetString(PyExc_TypeError, "__array_interface__: no tuple, or a rank over 64");
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
		if (out[i] == -1 && PyErr_Occurred()) return -1;
	}
	return (int)n;
}

static bool read_interface(PyObject *d, PyObject *o, const char *kernel, const char *name, tensor *t)
{
	PyObject *data = PyDict_GetItemString(d, "data"), *shape = PyDict_GetItemString(d, "shape");
	PyObject *strides = PyDict_GetItemString(d, "strides"), *kind = PyDict_GetItemString(d, "typestr");
	int64_t extents[MAX_RANK], steps[MAX_RANK];
	if (!data || !shape || !kind || !PyTuple_Check(data) || PyTuple_Size(data) != 2 || !PyUnicode_Check(kind)) {
		PyErr_Format(PyExc_TypeError,
			"argument %s of kernel %s: an __array_interface__ without address, shape or type", name,
			kernel);
		return false;
	}
	t->type = array_type(o);
	t->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
	if (PyErr_Occurred()) return false;
	t->read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1)) != 0;
	int rank = read_ints(shape, extents);
	if (rank < 0) return false;
	bool has_strides = strides && strides != Py_None;
	if (has_strides && read_ints(strides, steps) != rank) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_ValueError, "__array_interface__: strides of another rank");
		return false;
	}
	int64_t bytes = t->type >= 0 ? (int64_t)scalar_bytes((scalar)t->type) : 1;
	return measure(t, rank, extents, has_strides ? steps : NULL, 1, bytes) || too_large(kernel, name);
}

static bool by_interface(door *d, PyObject *o, const char *kernel, const char *name, tensor *t)
{
	PyObject *interface = PyObject_GetAttr(o, d->interface);
	bool fine = interface && PyDict_Check(interface);
	if (interface && !fine)
		PyErr_Format(
			PyExc_TypeError, "argument %s of kernel %s: its __array_interface__ is no dict", name, kernel);
	fine = fine && read_interface(interface, o, kernel, name, t);
	Py_XDECREF(interface);
	return fine;
}

/* ---- The choice ---- */

/* Whether what failed is that the buffer protocol does not know the element type, or the memory, and the object has
 * another way; the exception is then gone.  Nothing may be asked of the object while it stands. */
static bool may_go_on(door *d, PyObject *o)
{
	if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
		!PyErr_ExceptionMatches(PyExc_TypeError)) /* CuPy's */
		return false;
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	PyObject *of = (PyObject *)Py_TYPE(o);
	bool may = PyObject_HasAttr(of, d->interface) || PyObject_HasAttr(of, d->dlpack);
	if (!may) {
		PyErr_Restore(type, value, trace);
		return false;
	}
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return true;
}

static bool is_on_gpu(door *d, PyObject *o, const char *kernel, const char *name)
{
	bool on_gpu = false;
	if (PyObject_HasAttr((PyObject *)Py_TYPE(o), d->dlpack_device) && ask_device(d, o, kernel, name, &on_gpu))
		return on_gpu;
	PyErr_Clear();
	return false;
}

static bool by_any(door *d, PyObject *o, const char *kernel, const char *name, tensor *t)
{
	if (PyObject_CheckBuffer(o)) {
		if (by_buffer(o, kernel, name, t)) return true;
		if (t->held || !may_go_on(d, o)) return false;
		/* NumPy's array of ml_dtypes; or JAX's of them, or JAX's or CuPy's on a GPU */
		bool described =
			PyObject_HasAttr((PyObject *)Py_TYPE(o), d->interface) && !is_on_gpu(d, o, kernel, name);
		return described ? by_interface(d, o, kernel, name, t) : by_dlpack(d, o, kernel, name, t);
	}
	exchange spare;
	const DLPackExchangeAPI *api = known_type(d, Py_TYPE(o), &spare)->api;
	if (api) return by_exchange(api, o, kernel, name, t);
	if (PyObject_HasAttr(o, d->dlpack)) return by_dlpack(d, o, kernel, name, t);
	if (PyObject_HasAttr(o, d->interface)) return by_interface(d, o, kernel, name, t);
	PyErr_Format(PyExc_TypeError,
		"argument %s of kernel %s is a pointer, which takes a tensor (by DLPack or the buffer protocol) or "
		"None, not %R",
		name, kernel, Py_TYPE(o));
	return false;
}

typedef struct strided {
	PyObject_HEAD PyObject *tensor;
} strided;

/* z.conj().imag of torch: memory holds the numbers of the other sign, and DLPack has no word for it.  Such a view has
 * strides, unless it is a single number. */
static bool is_negated(door *d, PyObject *o)
{
	if (!PyObject_HasAttr(o, d->is_neg)) return false;
	PyObject *ask = PyObject_GetAttr(o, d->is_neg);
	PyObject *answer = ask ? PyObject_CallFunctionObjArgs(ask, NULL) : NULL;
	bool negated = answer == Py_True;
	Py_XDECREF(answer);
	Py_XDECREF(ask);
	PyErr_Clear();
	return negated;
}

bool tensor_get(door *d, PyObject *o, const char *kernel, const char *name, tensor *t)
{
	t->data = NULL;
	t->low = t->high = 0;
	t->type = -1;
	t->read_only = t->on_gpu = false;
	t->contiguous = true;
	t->ordinal = 0;
	t->held = HELD_NOTHING;
	t->exchange = NULL;
	if (o == Py_None) return true;
	bool any_strides = Py_TYPE(o) == d->strided_type;
	if (any_strides) o = ((strided *)o)->tensor;
	if (any_strides && is_negated(d, o)) {
		PyErr_Format(PyExc_ValueError,
			"argument %s of kernel %s is a view whose memory holds its numbers negated: pass "
			".resolve_neg()",
			name, kernel);
		return false;
	}
	if (!by_any(d, o, kernel, name, t)) {
		tensor_release(t);
		return false;
	}
	if (t->contiguous || any_strides) return true;
	tensor_release(t);
	PyErr_Format(PyExc_ValueError,
		"argument %s of kernel %s is not contiguous: pass a copy that is, or blk.strided(%s) where the kernel "
		"is given "
		"its strides",
		name, kernel, name);
	return false;
}

void tensor_release(tensor *t)
{
	/* Deleters may run Python; an exception that stands is not theirs. */
	if (t->held == HELD_BUFFER)
		PyBuffer_Release(&t->by.buffer);
	else if (t->held != HELD_NOTHING) {
		PyObject *type, *value, *trace;
		PyErr_Fetch(&type, &value, &trace);
		if (t->held == HELD_MANAGED && t->by.managed->deleter) t->by.managed->deleter(t->by.managed);
		if (t->held == HELD_VERSIONED && t->by.versioned->deleter) t->by.versioned->deleter(t->by.versioned);
		PyErr_Restore(type, value, trace);
	}
	t->held = HELD_NOTHING;
}

/* ---- blk.strided ---- */

PyObject *strided_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"tensor", NULL};
	PyObject *of;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:strided", names, &of)) return NULL;
	strided *s = (strided *)PyType_GenericAlloc(type, 0);
	if (!s) return NULL;
	Py_INCREF(of);
	s->tensor = of;
	return (PyObject *)s;
}

static int strided_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(((strided *)self)->tensor);
	return 0;
}

static int strided_clear(PyObject *self)
{
	Py_CLEAR(((strided *)self)->tensor);
	return 0;
}

static void strided_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	PyObject_GC_UnTrack(self);
	strided_clear(self);
	PyObject_GC_Del(self);
	Py_DECREF(type);
}

static PyType_Slot strided_slots[] = {
	{Py_tp_doc, "strided(tensor)\n--\n\n"
		    "A tensor whose memory is not contiguous, for a kernel that is given its strides:\n"
		    "the pointer is that of the first element."},
	{Py_tp_new, strided_new},
	{Py_tp_traverse, strided_traverse},
	{Py_tp_clear, strided_clear},
	{Py_tp_dealloc, strided_dealloc},
	{0, NULL},
};
PyType_Spec strided_spec = {
	.name = "blk.strided",
	.basicsize = sizeof(strided),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.slots = strided_slots,
};
