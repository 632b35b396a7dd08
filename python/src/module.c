/* The extension module blk._blk: load() and compile(), the devices that were opened, and how a failed call of libblk
 * becomes an exception. */
#include "door.h"

#include <stdlib.h>
#include <string.h>

char *text_copy(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = malloc(n);
	return copy ? memcpy(copy, text, n) : NULL;
}

/* ---- Errors ---- */

static PyObject *class_of(door *d, blk_status status)
{
	switch (status) {
	case BLK_ERROR_MEMORY: return PyExc_MemoryError;
	case BLK_ERROR_TYPE: return PyExc_TypeError;
	case BLK_ERROR_ARGUMENT:
	case BLK_ERROR_ALIGNMENT:
	case BLK_ERROR_GRID:
	case BLK_ERROR_RANGE: return d->argument_error;
	default: return d->error;
	}
}

void *door_raise(door *d, blk_status status, const char *text)
{
	static const char *const names[] = {
#define BLK_X(name, meaning) #name,
		BLK_STATUSES(BLK_X)
#undef BLK_X
	};
	PyObject *class = class_of(d, status);
	PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	PyObject *e = message ? PyObject_CallFunctionObjArgs(class, message, NULL) : NULL;
	PyObject *name = e ? PyUnicode_FromString(names[status]) : NULL;
	if (name && PyObject_SetAttr(e, d->status, name) == 0) PyErr_SetObject(class, e);
	Py_XDECREF(name);
	Py_XDECREF(e);
	Py_XDECREF(message);
	return NULL;
}

/* A note stands until the thread's next slow call, so the same one is said once. */
bool door_note(door *d)
{
	const char *note = blk_note();
	if (!note[0] || (d->said && strcmp(note, d->said) == 0)) return true;
	free(d->said);
	d->said = text_copy(note);
	PyObject *text = PyUnicode_DecodeUTF8(note, (Py_ssize_t)strlen(note), "replace");
	if (!text) return false;
	int failed = PyErr_WarnFormat(d->note, 1, "%U", text);
	Py_DECREF(text);
	return failed == 0;
}

/* ---- Devices ---- */

static opened_device *find_device(door *d, const char *name)
{
	for (opened_device *o = d->devices; o; o = o->next)
		if (strcmp(o->name, name) == 0) return o;
	return NULL;
}

static void forget_device(opened_device *o)
{
	if (o) {
		blk_device_close(o->handle);
		free(o->name);
	}
	free(o);
}

opened_device *door_device(door *d, const char *name)
{
	opened_device *o = find_device(d, name);
	if (o) return o;
	if (!(o = calloc(1, sizeof *o)) || !(o->name = text_copy(name))) {
		free(o);
		PyErr_NoMemory();
		return NULL;
	}
	blk_status status;
	blk_device_info info;
	PyThreadState *gil = PyEval_SaveThread();
	status = blk_device_open(name, &o->handle);
	if (!status) status = blk_device_query(o->handle, &info);
	PyEval_RestoreThread(gil);
	if (status) {
		door_raise(d, status, blk_error());
		forget_device(o);
		return NULL;
	}
	o->kind = info.kind;
	o->ordinal = info.ordinal;
	opened_device *other = find_device(d, name); /* of another thread, meanwhile */
	if (other) {
		forget_device(o);
		return other;
	}
	o->next = d->devices;
	d->devices = o;
	return o;
}

/* ---- Functions ---- */

static const char *utf8(PyObject *text, PyObject **bytes)
{
	*bytes = PyUnicode_AsUTF8String(text);
	const char *s = *bytes ? PyBytes_AsString(*bytes) : NULL;
	if (s && strlen(s) != (size_t)PyBytes_Size(*bytes)) {
		PyErr_SetString(PyExc_ValueError, "a null character in a text");
		return NULL;
	}
	return s;
}

/* The keyword arguments without those that are the function's own; a new dict. */
static PyObject *defines_of(PyObject *keywords, const char *const *own, PyObject **values)
{
	PyObject *rest = keywords ? PyDict_Copy(keywords) : PyDict_New();
	for (int i = 0; rest && own[i]; i++) {
		values[i] = PyDict_GetItemString(rest, own[i]);
		if (!values[i]) continue;
		Py_INCREF(values[i]);
		if (PyDict_DelItemString(rest, own[i])) Py_CLEAR(rest);
	}
	return rest;
}

static PyObject *open_code(PyObject *module, PyObject *path, PyObject *text, PyObject *device, PyObject *defines)
{
	PyObject *bytes[3] = {NULL, NULL, NULL};
	const char *at_name = NULL, *at_text = NULL, *at_device = NULL;
	bool fine = (at_name = utf8(path, &bytes[0])) && (!text || (at_text = utf8(text, &bytes[1])));
	if (fine && device && device != Py_None) {
		fine = PyUnicode_Check(device) && (at_device = utf8(device, &bytes[2]));
		if (!fine && !PyErr_Occurred())
			PyErr_SetString(PyExc_TypeError, "device= takes a name as \"cpu\", \"cuda:0\" or \"sim\"");
	}
	code *c = fine ? code_new(PyModule_GetState(module), at_name, at_text, at_device, defines) : NULL;
	for (int i = 0; i < 3; i++) Py_XDECREF(bytes[i]);
	return c ? code_object(c) : NULL;
}

static PyObject *load(PyObject *module, PyObject *args, PyObject *keywords)
{
	static const char *const own[] = {"device", NULL};
	PyObject *values[1] = {NULL}, *given, *path = NULL, *rest = NULL;
	PyObject *c = NULL;
	if (PyArg_ParseTuple(args, "O:load", &given) && (rest = defines_of(keywords, own, values)) &&
		(path = PyOS_FSPath(given))) {
		if (PyBytes_Check(path)) { /* a path may be bytes; in messages it is a text */
			PyObject *text = PyUnicode_DecodeFSDefault(PyBytes_AsString(path));
			Py_DECREF(path);
			path = text;
		}
		if (path) c = open_code(module, path, NULL, values[0], rest);
	}
	Py_XDECREF(path);
	Py_XDECREF(rest);
	Py_XDECREF(values[0]);
	return c;
}

static PyObject *compile(PyObject *module, PyObject *args, PyObject *keywords)
{
	static const char *const own[] = {"device", "name", NULL};
	PyObject *values[2] = {NULL, NULL}, *text, *rest = NULL;
	PyObject *c = NULL;
	if (PyArg_ParseTuple(args, "U:compile", &text) && (rest = defines_of(keywords, own, values))) {
		PyObject *name = values[1] ? values[1] : PyUnicode_FromString("source.blk");
		if (name && !PyUnicode_Check(name))
			PyErr_SetString(PyExc_TypeError, "name= takes a str");
		else if (name)
			c = open_code(module, name, text, values[0], rest);
		if (!values[1]) Py_XDECREF(name);
	}
	Py_XDECREF(rest);
	Py_XDECREF(values[0]);
	Py_XDECREF(values[1]);
	return c;
}

static PyMethodDef functions[] = {
	{"load", (PyCFunction)(void (*)(void))load, METH_VARARGS | METH_KEYWORDS,
		"load(path, *, device=None, **defines)\n--\n\n"
		"The kernels of a .blk source, a .blkpkg package or PTX by blkc.\n\n"
		"device: \"cpu\", \"cuda:0\", \"sim\", ..: where they run; None: where the tensors of a call are.\n"
		"defines: const parameters and options, for all kernels that have them."},
	{"compile", (PyCFunction)(void (*)(void))compile, METH_VARARGS | METH_KEYWORDS,
		"compile(source, *, name='source.blk', device=None, **defines)\n--\n\n"
		"The same from a text. `name` stands in messages, and imports are relative to it."},
	{NULL, NULL, 0, NULL},
};

/* ---- The module ---- */

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
	PyObject *type = PyType_FromSpec(spec);
	if (!type) return NULL;
	Py_INCREF(type); /* the state's */
	if (PyModule_AddObject(module, name, type) == 0) return (PyTypeObject *)type;
	Py_DECREF(type);
	Py_DECREF(type);
	return NULL;
}

static PyObject *add_error(PyObject *module, const char *name, const char *doc, PyObject *bases)
{
	PyObject *class = bases ? PyErr_NewExceptionWithDoc(name, doc, bases, NULL) : NULL;
	if (!class) return NULL;
	Py_INCREF(class);
	if (PyModule_AddObject(module, strrchr(name, '.') + 1, class) == 0) return class;
	Py_DECREF(class);
	Py_DECREF(class);
	return NULL;
}

static int execute(PyObject *module)
{
	door *d = PyModule_GetState(module);
	d->module = module;
	d->error = add_error(module, "blk.Error",
		"A call that failed; its text is the sentence, or the compiler's diagnostics.\n"
		"`status` names the kind: \"BLK_ERROR_COMPILE\", ..",
		PyExc_RuntimeError);
	PyObject *bases = d->error ? PyTuple_Pack(2, d->error, PyExc_ValueError) : NULL;
	d->argument_error = add_error(module, "blk.ArgumentError",
		"Arguments that a kernel does not allow: its requires clause, an alignment, a grid.", bases);
	Py_XDECREF(bases);
	d->note = add_error(
		module, "blk.Note", "What blk has to say without failing: compiler warnings, ..", PyExc_UserWarning);
	struct {
		PyObject **to;
		const char *text;
	} names[] = {{&d->dlpack, "__dlpack__"}, {&d->dlpack_device, "__dlpack_device__"},
		{&d->exchange, "__dlpack_c_exchange_api__"}, {&d->interface, "__array_interface__"},
		{&d->cuda_stream, "cuda_stream"}, {&d->status, "status"}, {&d->is_neg, "is_neg"}, {&d->torch, "torch"}};
	bool fine = d->error && d->argument_error && d->note;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		fine = fine && (*names[i].to = PyUnicode_InternFromString(names[i].text));
	fine = fine && (d->host_keywords = Py_BuildValue("{s:(ii)}", "max_version", 1, 0)) &&
	       (d->device_keywords = Py_BuildValue("{s:(ii),s:i}", "max_version", 1, 0, "stream", -1)) &&
	       (d->no_arguments = PyTuple_New(0)) && (d->code_type = add_type(module, &code_spec, "Module")) &&
	       (d->kernel_type = add_type(module, &kernel_spec, "Kernel")) &&
	       (d->strided_type = add_type(module, &strided_spec, "strided")) &&
	       PyModule_AddStringConstant(module, "__version__", blk_version()) == 0;
	return fine ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	door *d = PyModule_GetState(module);
	if (!d) return 0;
	Py_VISIT(d->code_type);
	Py_VISIT(d->kernel_type);
	Py_VISIT(d->strided_type);
	Py_VISIT(d->error);
	Py_VISIT(d->argument_error);
	Py_VISIT(d->note);
	Py_VISIT(d->current_stream);
	for (unsigned i = 0; i < d->nexchanges; i++) Py_VISIT(d->exchanges[i].type);
	return 0;
}

static int clear(PyObject *module)
{
	door *d = PyModule_GetState(module);
	if (!d) return 0;
	Py_CLEAR(d->code_type);
	Py_CLEAR(d->kernel_type);
	Py_CLEAR(d->strided_type);
	Py_CLEAR(d->error);
	Py_CLEAR(d->argument_error);
	Py_CLEAR(d->note);
	Py_CLEAR(d->current_stream);
	unsigned n = d->nexchanges;
	d->nexchanges = 0;
	for (unsigned i = 0; i < n; i++) Py_CLEAR(d->exchanges[i].type);
	return 0;
}

static void destroy(void *module)
{
	door *d = PyModule_GetState(module);
	if (!d) return;
	clear(module);
	PyObject **names[] = {&d->dlpack, &d->dlpack_device, &d->exchange, &d->interface, &d->cuda_stream, &d->status,
		&d->is_neg, &d->torch, &d->host_keywords, &d->device_keywords, &d->no_arguments};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) Py_CLEAR(*names[i]);
	for (opened_device *next; d->devices; d->devices = next) {
		next = d->devices->next;
		forget_device(d->devices);
	}
	free(d->said);
	d->said = NULL;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "blk._blk",
	.m_doc = "Kernels of the blk language on tensors; see the package blk.",
	.m_size = sizeof(door),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
	.m_free = destroy,
};

PyMODINIT_FUNC PyInit__blk(void);
PyMODINIT_FUNC PyInit__blk(void)
{
	return PyModuleDef_Init(&definition);
}
