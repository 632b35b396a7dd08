/* A kernel as a Python callable: what a call passes is sorted into run-time arguments, const parameters, grid and
 * stream; checked; and launched without the GIL.
 *
 * Everything that a launch uses is held until it returns: the caller's tuple holds the tensors, `call` what was asked
 * of them. */
#include "door.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sorting ---- */

typedef struct sorted {
	PyObject *values[MOST_PARAMETERS]; /* borrowed, one for each run-time parameter */
	PyObject *grid, *stream;           /* borrowed, or null */
	define_set defines;                /* borrowed */
} sorted;

/* "softmax_rows(y, x, n)" */
static PyObject *outline(const py_kernel *k)
{
	PyObject *text = PyUnicode_FromFormat("%s(", k->name);
	for (size_t i = 0; text && i < k->first->nparameters; i++) {
		PyObject *more = PyUnicode_FromFormat("%U%s%s", text, i ? ", " : "", k->first->parameters[i].name);
		Py_DECREF(text);
		text = more;
	}
	PyObject *whole = text ? PyUnicode_FromFormat("%U)", text) : NULL;
	Py_XDECREF(text);
	return whole;
}

static bool complain(const py_kernel *k, const char *what, PyObject *about)
{
	PyObject *text = outline(k);
	if (text) PyErr_Format(PyExc_TypeError, "%U %s %S", text, what, about);
	Py_XDECREF(text);
	return false;
}

static bool put_define(sorted *s, PyObject *name, PyObject *value)
{
	if (s->defines.n == MOST_PARAMETERS) {
		PyErr_NoMemory();
		return false;
	}
	s->defines.names[s->defines.n] = name;
	s->defines.values[s->defines.n++] = value;
	return true;
}

static bool sort_keyword(const py_kernel *k, PyObject *name, PyObject *value, sorted *s)
{
	if (keyword_known(k, name)) return put_define(s, name, value);
	if (PyUnicode_CompareWithASCIIString(name, "grid") == 0) {
		s->grid = value == Py_None ? NULL : value;
		return true;
	}
	if (PyUnicode_CompareWithASCIIString(name, "stream") == 0) {
		s->stream = value == Py_None ? NULL : value;
		return true;
	}
	for (size_t i = 0; i < k->first->nparameters; i++) {
		if (PyUnicode_CompareWithASCIIString(name, k->first->parameters[i].name)) continue;
		if (s->values[i]) return complain(k, "got twice the argument", name);
		s->values[i] = value;
		return true;
	}
	if (keyword_is_define(k, name)) return put_define(s, name, value);
	return PyErr_Occurred() ? false : complain(k, "has no parameter", name);
}

static bool sort(const py_kernel *k, PyObject *args, PyObject *keywords, sorted *s)
{
	size_t given = (size_t)PyTuple_Size(args), n = k->first->nparameters;
	if (given > n) {
		PyObject *count = PyLong_FromSize_t(given);
		if (count) complain(k, "takes fewer arguments than", count);
		Py_XDECREF(count);
		return false;
	}
	for (size_t i = 0; i < n; i++) s->values[i] = i < given ? PyTuple_GetItem(args, (Py_ssize_t)i) : NULL;
	PyObject *name, *value;
	Py_ssize_t at = 0;
	while (keywords && PyDict_Next(keywords, &at, &name, &value))
		if (!sort_keyword(k, name, value, s)) return false;
	for (size_t i = given; i < n; i++)
		if (!s->values[i]) {
			PyObject *missing = PyUnicode_FromString(k->first->parameters[i].name);
			if (missing) complain(k, "misses the argument", missing);
			Py_XDECREF(missing);
			return false;
		}
	return true;
}

/* ---- Grid and stream ---- */

static bool grid_axis(PyObject *o, uint32_t *out)
{
	PyObject *index = PyNumber_Index(o);
	if (!index) return false;
	unsigned long long v = PyLong_AsUnsignedLongLong(index);
	Py_DECREF(index);
	if (!PyErr_Occurred() && v <= UINT32_MAX) {
		*out = (uint32_t)v;
		return true;
	}
	PyErr_Clear();
	PyErr_Format(PyExc_ValueError, "grid=: %S programs along an axis", o);
	return false;
}

static bool read_grid(PyObject *o, blk_grid *g)
{
	*g = (blk_grid){1, 1, 1};
	if (!PyTuple_Check(o) && !PyList_Check(o)) return grid_axis(o, &g->x);
	Py_ssize_t n = PySequence_Size(o);
	uint32_t *axes[3] = {&g->x, &g->y, &g->z};
	if (n < 1 || n > 3) {
		PyErr_SetString(PyExc_ValueError, "grid= takes one to three numbers");
		return false;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *axis = PySequence_GetItem(o, i);
		bool fine = axis && grid_axis(axis, axes[i]);
		Py_XDECREF(axis);
		if (!fine) return false;
	}
	return true;
}

static bool take_address(PyObject *number, void **out)
{
	*out = number ? PyLong_AsVoidPtr(number) : NULL;
	Py_XDECREF(number);
	return !PyErr_Occurred();
}

/* An int, an object of torch's (.cuda_stream), or any with __cuda_stream__(). */
static bool read_stream(door *d, PyObject *o, void **out)
{
	if (PyLong_Check(o)) {
		Py_INCREF(o);
		return take_address(o, out);
	}
	if (PyObject_HasAttr(o, d->cuda_stream)) return take_address(PyObject_GetAttr(o, d->cuda_stream), out);
	PyObject *pair = PyObject_CallMethod(o, "__cuda_stream__", NULL);
	if (pair && PyTuple_Check(pair) && PyTuple_Size(pair) == 2) {
		PyObject *number = PyTuple_GetItem(pair, 1);
		Py_INCREF(number);
		Py_DECREF(pair);
		return take_address(number, out);
	}
	Py_XDECREF(pair);
	PyErr_Clear();
	PyErr_Format(PyExc_TypeError, "stream= takes an int or an object with cuda_stream, not %R", Py_TYPE(o));
	return false;
}

/* Torch's current stream, where torch is there: its C function, which costs a tenth of the public one. */
static bool torch_stream(door *d, int ordinal, void **out)
{
	*out = NULL;
	if (!d->current_stream) {
		PyObject *torch = PyImport_GetModule(d->torch);
		if (!torch) return !PyErr_Occurred();
		PyObject *inside = PyObject_GetAttrString(torch, "_C");
		d->current_stream = inside ? PyObject_GetAttrString(inside, "_cuda_getCurrentRawStream") : NULL;
		Py_XDECREF(inside);
		Py_DECREF(torch);
		PyErr_Clear(); /* a torch without CUDA, or one that is still being imported */
		if (!d->current_stream) return true;
	}
	PyObject *index = PyLong_FromLong(ordinal);
	PyObject *number = index ? PyObject_CallFunctionObjArgs(d->current_stream, index, NULL) : NULL;
	Py_XDECREF(index);
	return take_address(number, out);
}

static bool find_stream(door *d, const call *c, PyObject *given, void **out)
{
	const opened_device *on = c->to->device;
	*out = NULL;
	if (given) {
		if (!read_stream(d, given, out)) return false;
		if (!*out || on->kind == BLK_DEVICE_CUDA) return true;
		PyErr_Format(PyExc_ValueError, "stream=: the launch is on %s, and only a GPU has streams", on->name);
		return false;
	}
	if (on->kind != BLK_DEVICE_CUDA) return true;
	const DLPackExchangeAPI *api = c->ntensors ? c->tensors[0].exchange : NULL;
	if (api && api->current_stream) {
		if (api->current_stream(DL_CUDA, on->ordinal, out) == 0) return true;
		PyErr_Clear();
	}
	return torch_stream(d, on->ordinal, out);
}

/* ---- Arguments ---- */

static bool get_tensors(py_kernel *k, const sorted *s, call *c)
{
	const bound *b = k->first;
	for (size_t i = 0; i < b->nparameters; i++) {
		if (!b->parameters[i].is_pointer) continue;
		if (!tensor_get(k->code->door, s->values[i], k->name, b->parameters[i].name, &c->tensors[c->ntensors]))
			return false;
		c->ntensors++;
	}
	return true;
}

static const char *place(const tensor *t, char room[32])
{
	if (t->on_gpu)
		PyOS_snprintf(room, 32, "cuda:%d", t->ordinal);
	else
		PyOS_snprintf(room, 32, "cpu");
	return room;
}

/* Where the tensors are.  A null pointer is anywhere, and so is what has no elements on the host. */
static opened_device *find_device(py_kernel *k, const call *c)
{
	const tensor *first = NULL;
	char one[32], two[32];
	for (size_t i = 0; i < c->ntensors; i++) {
		const tensor *t = &c->tensors[i];
		if (!t->data && !t->on_gpu) continue;
		if (!first) first = t;
		if (t->on_gpu == first->on_gpu && t->ordinal == first->ordinal) continue;
		PyErr_Format(PyExc_ValueError, "kernel %s: its tensors are on several devices, %s and %s", k->name,
			place(first, one), place(t, two));
		return NULL;
	}
	opened_device *given = k->code->device;
	if (!first) {
		if (!given)
			PyErr_Format(PyExc_ValueError,
				"kernel %s: no tensor says on which device; give one to blk.load(.., device=)",
				k->name);
		return given;
	}
	if (!given) return door_device(k->code->door, place(first, one));
	bool same = given->kind == BLK_DEVICE_CUDA ? first->on_gpu && first->ordinal == given->ordinal : !first->on_gpu;
	if (same) return given;
	PyErr_Format(PyExc_ValueError, "kernel %s was loaded for the device %s, but its tensors are on %s", k->name,
		given->name, place(first, one));
	return NULL;
}

/* 16 and 8 bits of a float may be passed as bits, as NumPy has no such types; a bool is a byte. */
static bool same_type(int of_tensor, blk_type wanted)
{
	if (of_tensor == (int)wanted) return true;
	if (of_tensor == BLK_TYPE_U16) return wanted == BLK_TYPE_BF16;
	return of_tensor == BLK_TYPE_U8 &&
	       (wanted == BLK_TYPE_F8E4M3 || wanted == BLK_TYPE_F8E5M2 || wanted == BLK_TYPE_BOOL);
}

static bool put_pointer(const py_kernel *k, const parameter *p, const tensor *t, blk_arg *out)
{
	if (t->data && !same_type(t->type, p->type)) {
		PyErr_Format(PyExc_TypeError, "argument %s of kernel %s is %s, which takes no tensor of %s", p->name,
			k->name, p->text, type_name(t->type));
		return false;
	}
	if (t->read_only && p->written) {
		PyErr_Format(PyExc_ValueError, "argument %s of kernel %s is written, but the tensor is read-only",
			p->name, k->name);
		return false;
	}
	*out = blk_ptr(t->data);
	return true;
}

static bool put_arguments(const py_kernel *k, const sorted *s, call *c)
{
	const bound *b = c->to;
	size_t next = 0;
	for (size_t i = 0; i < b->nparameters; i++) {
		const parameter *p = &b->parameters[i];
		bool fine = p->is_pointer ? put_pointer(k, p, &c->tensors[next++], &c->args[i])
					  : number_get(s->values[i], p->type, k->name, p->name, &c->args[i]);
		if (!fine) return false;
	}
	return true;
}

static bool make_room(call *c, size_t n)
{
	c->args = c->few_args;
	c->tensors = c->few_tensors;
	if (n <= FEW) return true;
	c->args = malloc(n * sizeof *c->args);
	c->tensors = malloc(n * sizeof *c->tensors);
	if (c->args && c->tensors) return true;
	PyErr_NoMemory();
	return false;
}

bool call_begin(py_kernel *k, PyObject *args, PyObject *keywords, call *c)
{
	sorted s;
	c->ntensors = c->ncopies = 0;
	c->copies = NULL;
	opened_device *device;
	s.grid = s.stream = NULL;
	s.defines.n = 0;
	bool fine = make_room(c, k->first->nparameters) && sort(k, args, keywords, &s);
	fine = fine && get_tensors(k, &s, c) && (device = find_device(k, c)) &&
	       keywords_bind(k, device, &s.defines, &c->to) && put_arguments(k, &s, c) &&
	       find_stream(k->code->door, c, s.stream, &c->stream) && (!s.grid || read_grid(s.grid, &c->grid));
	c->has_grid = s.grid != NULL;
	if (!fine) call_end(c);
	return fine;
}

void call_end(call *c)
{
	for (size_t i = 0; i < c->ntensors; i++) tensor_release(&c->tensors[i]);
	if (c->args != c->few_args) free(c->args);
	if (c->tensors != c->few_tensors) free(c->tensors);
}

/* ---- Launching ---- */

/* What `.ptx` is asked of; without memory for it there is none. */
static void remember(py_kernel *k, const call *c)
{
	size_t bytes = c->to->nparameters * sizeof *c->args;
	if (!k->last_args) k->last_args = malloc(bytes + 1);
	k->last = k->last_args ? c->to : NULL;
	if (k->last) memcpy(k->last_args, c->args, bytes);
}

static PyObject *launch(PyObject *self, PyObject *args, PyObject *keywords)
{
	py_kernel *k = (py_kernel *)self;
	call c;
	if (!call_begin(k, args, keywords, &c)) return NULL;
	remember(k, &c);
	bool copies = c.to->device->kind == BLK_DEVICE_SIM;
	blk_status status = BLK_OK;
	PyThreadState *gil = PyEval_SaveThread();
	if (copies) status = copies_make(&c);
	if (!status)
		status = blk_launch_on(c.to->handle, c.stream, c.has_grid ? &c.grid : NULL, c.args, c.to->nparameters);
	if (copies && !status) status = copies_take_back(&c);
	if (copies) copies_free(&c);
	PyEval_RestoreThread(gil);
	call_end(&c);
	if (status) return door_raise(k->code->door, status, blk_error());
	if (!door_note(k->code->door)) return NULL;
	Py_RETURN_NONE;
}

/* ---- The object ---- */

PyObject *kernel_new(code *c, const char *name)
{
	py_kernel *k = (py_kernel *)PyType_GenericAlloc(c->door->kernel_type, 0);
	if (!k) return NULL;
	k->code = c;
	c->references++;
	k->name = text_copy(name);
	if (!k->name) PyErr_NoMemory();
	/* as it was loaded: found, not opened anew */
	if (k->name && code_bind(c, k->name, c->first->device, NULL, &k->list, &k->first)) return (PyObject *)k;
	Py_DECREF(k);
	return NULL;
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "blk.load() and blk.compile() make these");
	return NULL;
}

static void dealloc(PyObject *self)
{
	py_kernel *k = (py_kernel *)self;
	PyTypeObject *type = Py_TYPE(self);
	bound_free(k->list);
	free(k->last_args);
	free(k->name);
	code_free(k->code);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *get_name(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(((py_kernel *)self)->name);
}

static PyObject *represent(PyObject *self)
{
	PyObject *signature = kernel_signature((py_kernel *)self, NULL);
	PyObject *text = signature ? PyUnicode_FromFormat("<blk.Kernel %U>", signature) : NULL;
	Py_XDECREF(signature);
	return text;
}

#define METHOD(f) (PyCFunction)(void (*)(void))(f)
static PyMethodDef methods[] = {
	{"explain", METHOD(kernel_explain), METH_VARARGS | METH_KEYWORDS,
		"explain(target='sm_80', **defines)\n--\n\nWhat became of each line, as text; a notebook shows it as a "
		"page."},
	{"constants", METHOD(kernel_constants), METH_VARARGS | METH_KEYWORDS,
		"constants(*args, **keywords)\n--\n\n"
		"The integers and bools among the const parameters, as a dict: what a launch with these arguments "
		"computes, "
		"or\nwhat is given or by default. Compiles nothing; None will do for a tensor."},
	{"info", METHOD(kernel_info), METH_VARARGS | METH_KEYWORDS,
		"info(*args, **keywords)\n--\n\n"
		"What a launch with these arguments would use, as a dict: registers, shared memory, promises, .."},
	{"tune", METHOD(kernel_tune), METH_VARARGS | METH_KEYWORDS,
		"tune(*args, again=False, isolated=False, **keywords)\n--\n\n"
		"Times the configurations of the kernel's autotune clause for these arguments, on copies of them.\n"
		"Returns a list of dicts, one a configuration."},
	{NULL, NULL, 0, NULL},
};
static PyGetSetDef attributes[] = {
	{"name", get_name, NULL, "The kernel's name.", NULL},
	{"__name__", get_name, NULL, NULL, NULL},
	{"signature", (getter)kernel_signature, NULL,
		"The parameters with their types, the const ones with their values.", NULL},
	{"ptx", (getter)kernel_ptx, NULL,
		"The code of the last launch on a GPU or a simulator; before one, what blkc writes for sm_80.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
	{Py_tp_doc, "kernel(*args, grid=None, stream=None, **defines)\n--\n\n"
		    "Launches the kernel: tensors for its pointers, numbers for the rest, in order or by name.\n\n"
		    "grid: programs along x, y, z; None: the kernel's grid clause.\n"
		    "stream: a CUDA stream, as an int or an object with cuda_stream; None: torch's current one where "
		    "torch is\n"
		    "loaded, else the default one.\n"
		    "defines: const parameters and options of this call."},
	{Py_tp_new, refuse_new},
	{Py_tp_dealloc, dealloc},
	{Py_tp_call, launch},
	{Py_tp_repr, represent},
	{Py_tp_methods, methods},
	{Py_tp_getset, attributes},
	{0, NULL},
};
PyType_Spec kernel_spec = {
	.name = "blk.Kernel", .basicsize = sizeof(py_kernel), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
