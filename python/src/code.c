/* Source, opened: one libblk module for each device and set of defines that calls have asked for.
 *
 * A call with a set that is new opens a module, without the GIL; every later one finds it by comparing two texts.  What
 * is checked when the file is loaded is the first of them. */
#include "door.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEFINES = 256 };

/* ---- Defines as a text: "NAME=VALUE\n", sorted by name ---- */

typedef struct define_list {
	char *names[MOST_DEFINES], *values[MOST_DEFINES];
	size_t n;
} define_list;

static void list_free(define_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->names[i]);
		free(l->values[i]);
	}
	free(l);
}

static bool list_put(define_list *l, const char *name, const char *value)
{
	size_t i = 0;
	while (i < l->n && strcmp(l->names[i], name) < 0) i++;
	char *copy = text_copy(value);
	if (!copy) return false;
	if (i < l->n && strcmp(l->names[i], name) == 0) {
		free(l->values[i]);
		l->values[i] = copy;
		return true;
	}
	char *copied = l->n < MOST_DEFINES ? text_copy(name) : NULL;
	if (!copied) {
		free(copy);
		return false;
	}
	memmove(l->names + i + 1, l->names + i, (l->n - i) * sizeof *l->names);
	memmove(l->values + i + 1, l->values + i, (l->n - i) * sizeof *l->values);
	l->names[i] = copied;
	l->values[i] = copy;
	l->n++;
	return true;
}

static define_list *list_read(const char *text)
{
	define_list *l = calloc(1, sizeof *l);
	char *copy = text_copy(text), *rest = copy;
	bool fine = l && copy;
	for (char *line; fine && *rest; rest = line) {
		char *value = strchr(rest, '='), *end = strchr(value, '\n');
		*value++ = *end = 0;
		line = end + 1;
		fine = list_put(l, rest, value);
	}
	free(copy);
	if (fine) return l;
	if (l) list_free(l);
	return NULL;
}

static char *list_text(const define_list *l)
{
	size_t bytes = 1;
	for (size_t i = 0; i < l->n; i++) bytes += strlen(l->names[i]) + strlen(l->values[i]) + 2;
	char *text = malloc(bytes), *at = text;
	for (size_t i = 0; text && i < l->n; i++) at += sprintf(at, "%s=%s\n", l->names[i], l->values[i]);
	if (text) *at = 0;
	return text;
}

/* What a Python value is as the value of a const parameter; a new bytes object. */
static PyObject *value_bytes(PyObject *name, PyObject *value)
{
	PyObject *text = NULL;
	if (PyBool_Check(value))
		text = PyUnicode_FromString(value == Py_True ? "true" : "false");
	else if (PyUnicode_Check(value))
		text = PyObject_Str(value);
	else if (PyFloat_Check(value))
		text = PyObject_Repr(value);
	else {
		PyObject *index = PyNumber_Index(value);
		text = index ? PyObject_Str(index) : NULL;
		Py_XDECREF(index);
		if (!index && PyErr_ExceptionMatches(PyExc_TypeError))
			PyErr_Format(PyExc_TypeError, "%U takes an int, a float, a bool or a str, not %R", name,
				Py_TYPE(value));
	}
	PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
	Py_XDECREF(text);
	return bytes;
}

static bool list_add(define_list *l, PyObject *name, PyObject *value)
{
	PyObject *key = PyUnicode_AsUTF8String(name), *bytes = key ? value_bytes(name, value) : NULL;
	bool fine = bytes != NULL;
	if (fine) {
		const char *k = PyBytes_AsString(key), *v = PyBytes_AsString(bytes);
		if (strpbrk(k, "=\n") || strchr(v, '\n') || strlen(v) != (size_t)PyBytes_Size(bytes)) {
			PyErr_Format(PyExc_ValueError, "%U: the value of a const parameter is one line", name);
			fine = false;
		} else if (!list_put(l, k, v)) {
			PyErr_NoMemory();
			fine = false;
		}
	}
	Py_XDECREF(bytes);
	Py_XDECREF(key);
	return fine;
}

/* `base` with `extra`, a dict or null, over it.  Null with an exception. */
static char *defines_text(const char *base, PyObject *extra)
{
	define_list *l = list_read(base);
	if (!l) {
		PyErr_NoMemory();
		return NULL;
	}
	PyObject *name, *value;
	Py_ssize_t at = 0;
	bool fine = true;
	while (fine && extra && PyDict_Next(extra, &at, &name, &value)) fine = list_add(l, name, value);
	char *text = fine ? list_text(l) : NULL;
	if (fine && !text) PyErr_NoMemory();
	list_free(l);
	return text;
}

/* ---- Modules ---- */

static blk_status open_it(const code *c, const opened_device *device, const char *defines, blk_module **out)
{
	define_list *l = list_read(defines);
	blk_define *list = l ? calloc(l->n + 1, sizeof *list) : NULL;
	blk_status status = BLK_ERROR_MEMORY;
	if (list) {
		for (size_t i = 0; i < l->n; i++) list[i] = (blk_define){l->names[i], l->values[i]};
		status = c->text ? blk_module_source(device->handle, c->name, c->text, list, l->n, out)
				 : blk_module_open(device->handle, c->name, list, l->n, out);
	}
	free(list);
	if (l) list_free(l);
	return status;
}

static opened *find_opened(const code *c, const opened_device *device, const char *defines)
{
	for (opened *o = c->modules; o; o = o->next)
		if (o->device == device && strcmp(o->defines, defines) == 0) return o;
	return NULL;
}

static void close_module(blk_module *m)
{
	PyThreadState *gil = PyEval_SaveThread();
	blk_module_close(m);
	PyEval_RestoreThread(gil);
}

/* Null with the status where libblk refuses, and with an exception where *status is BLK_OK. */
static opened *open_with(code *c, opened_device *device, const char *defines, blk_status *status)
{
	opened *o = find_opened(c, device, defines);
	*status = BLK_OK;
	if (o) return o;
	if (!(o = calloc(1, sizeof *o)) || !(o->defines = text_copy(defines))) {
		free(o);
		PyErr_NoMemory();
		return NULL;
	}
	o->device = device;
	PyThreadState *gil = PyEval_SaveThread();
	*status = open_it(c, device, defines, &o->module);
	PyEval_RestoreThread(gil);
	opened *other = *status ? NULL : find_opened(c, device, defines); /* of another thread, meanwhile */
	if (!*status && !other) {
		o->next = c->modules;
		c->modules = o;
		if (door_note(c->door)) return o;
		return NULL; /* it stays: the next call finds it */
	}
	if (other) close_module(o->module);
	free(o->defines);
	free(o);
	return other;
}

/* ---- Kernels of them ---- */

static bool read_parameters(bound *b)
{
	const blk_parameter *p;
	if (blk_kernel_parameters(b->handle, &p, &b->nparameters)) return false;
	b->parameters = calloc(b->nparameters + 1, sizeof *b->parameters);
	for (size_t i = 0; b->parameters && i < b->nparameters; i++) {
		const char *type = p[i].type + (p[i].is_pointer ? 1 : 0); /* "*const f32" */
		if (strncmp(type, "const ", 6) == 0) type += 6;
		b->parameters[i] = (parameter){p[i].name, p[i].type, p[i].is_pointer != 0, p[i].written != 0,
			(blk_type)type_parse(type, strlen(type))};
	}
	return b->parameters != NULL;
}

void bound_free(bound *b)
{
	for (bound *next; b; b = next) {
		next = b->next;
		asked_forget(b);
		free(b->parameters);
		free(b);
	}
}

static bound *bind(code *c, const char *kernel, opened *o)
{
	bound *b = calloc(1, sizeof *b);
	if (!b) {
		PyErr_NoMemory();
		return NULL;
	}
	b->device = o->device;
	b->defines = o->defines;
	b->module = o->module;
	blk_status status = blk_kernel_find(o->module, kernel, &b->handle);
	if (!status && read_parameters(b)) return b;
	if (status)
		door_raise(c->door, status, blk_error());
	else
		PyErr_NoMemory();
	bound_free(b);
	return NULL;
}

bool code_bind(code *c, const char *kernel, opened_device *device, PyObject *extra, bound **list, bound **out)
{
	char *made = extra ? defines_text(c->base, extra) : NULL;
	if (extra && !made) return false;
	const char *defines = made ? made : c->base;
	for (*out = *list; *out; *out = (*out)->next)
		if ((*out)->device == device && ((*out)->defines == defines || strcmp((*out)->defines, defines) == 0))
			break;
	if (!*out) {
		blk_status status;
		opened *o = open_with(c, device, defines, &status);
		if (!o && status) door_raise(c->door, status, blk_error());
		if (o && (*out = bind(c, kernel, o))) {
			(*out)->next = *list;
			*list = *out;
		}
	}
	free(made);
	return *out != NULL;
}

/* ---- The object ---- */

/* Without a device: source is checked for the processor; of what the processor cannot run the names are read by a
 * simulator, which needs no GPU. */
static bool open_first(code *c)
{
	static const char *const tries[] = {"cpu", "sim", "sim:sm_90a", "auto"};
	char *why = NULL;
	blk_status first = BLK_OK, status = BLK_OK;
	for (size_t i = 0; i < (c->device ? 1 : sizeof tries / sizeof tries[0]); i++) {
		opened_device *device = c->device ? c->device : door_device(c->door, tries[i]);
		if (!device) break;
		if ((c->first = open_with(c, device, c->base, &status)) || !status) break;
		if (!first || status != BLK_ERROR_UNSUPPORTED) {
			free(why);
			first = status;
			why = text_copy(blk_error());
		}
		if (status != BLK_ERROR_UNSUPPORTED) break;
	}
	if (!c->first && first) {
		const char *text = why ? why : blk_status_text(first);
		PyErr_Clear();
		if (first == BLK_ERROR_NOT_FOUND)
			PyErr_SetString(PyExc_FileNotFoundError, text);
		else
			door_raise(c->door, first, text);
	}
	free(why);
	return c->first != NULL;
}

code *code_new(door *d, const char *name, const char *text, const char *device, PyObject *defines)
{
	code *c = calloc(1, sizeof *c);
	if (!c) return (code *)PyErr_NoMemory();
	c->references = 1;
	c->door = d;
	c->owner = d->module;
	Py_INCREF(c->owner);
	c->name = text_copy(name);
	c->text = text ? text_copy(text) : NULL;
	bool fine = c->name && (!text || c->text);
	if (!fine) PyErr_NoMemory();
	fine = fine && (c->base = defines_text("", defines)) && (!device || (c->device = door_device(d, device))) &&
	       open_first(c);
	if (fine) return c;
	code_free(c);
	return NULL;
}

void code_free(code *c)
{
	if (--c->references) return;
	for (opened *next; c->modules; c->modules = next) {
		next = c->modules->next;
		close_module(c->modules->module);
		free(c->modules->defines);
		free(c->modules);
	}
	free(c->name);
	free(c->text);
	free(c->base);
	Py_DECREF(c->owner);
	free(c);
}

typedef struct object {
	PyObject_HEAD code *code;
	PyObject *kernels; /* name -> Kernel, in the source's order */
} object;

PyObject *code_object(code *c)
{
	object *o = (object *)PyType_GenericAlloc(c->door->code_type, 0);
	if (!o) {
		code_free(c);
		return NULL;
	}
	o->code = c;
	o->kernels = PyDict_New();
	const char *name;
	for (size_t i = 0; o->kernels && (name = blk_module_kernel(c->first->module, i)); i++) {
		PyObject *k = kernel_new(c, name);
		if (!k || PyDict_SetItemString(o->kernels, name, k)) Py_CLEAR(o->kernels);
		Py_XDECREF(k);
	}
	if (o->kernels) return (PyObject *)o;
	Py_DECREF(o);
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
	object *o = (object *)self;
	PyTypeObject *type = Py_TYPE(self);
	Py_CLEAR(o->kernels);
	if (o->code) code_free(o->code);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
	PyObject *k = PyDict_GetItemWithError(((object *)self)->kernels, name);
	if (!k) return PyErr_Occurred() ? NULL : PyObject_GenericGetAttr(self, name);
	Py_INCREF(k);
	return k;
}

static PyObject *get_item(PyObject *self, PyObject *name)
{
	PyObject *k = PyDict_GetItemWithError(((object *)self)->kernels, name);
	if (!k && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, name);
	Py_XINCREF(k);
	return k;
}

static Py_ssize_t length(PyObject *self)
{
	return PyDict_Size(((object *)self)->kernels);
}

static PyObject *iterate(PyObject *self)
{
	return PyObject_GetIter(((object *)self)->kernels);
}

static PyObject *list_names(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyDict_Keys(((object *)self)->kernels);
}

static PyObject *represent(PyObject *self)
{
	object *o = (object *)self;
	PyObject *names = PyDict_Keys(o->kernels);
	PyObject *text = names ? PyUnicode_FromFormat("<blk.Module %s: %S>", o->code->name, names) : NULL;
	Py_XDECREF(names);
	return text;
}

static PyMethodDef methods[] = {
	{"__dir__", list_names, METH_NOARGS, "The kernels' names."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
	{Py_tp_doc,
		"The kernels of a file, each an attribute: dir() lists them, module[\"name\"] finds one, len() and\n"
		"iteration go over their names."},
	{Py_tp_new, refuse_new},
	{Py_tp_dealloc, dealloc},
	{Py_tp_getattro, get_attribute},
	{Py_tp_repr, represent},
	{Py_tp_iter, iterate},
	{Py_mp_subscript, get_item},
	{Py_mp_length, length},
	{Py_tp_methods, methods},
	{0, NULL},
};
PyType_Spec code_spec = {
	.name = "blk.Module", .basicsize = sizeof(object), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
