/* Const parameters and options of a call: the kernel that was opened with them.
 *
 * In: the call's keywords that are neither argument, grid nor stream.  Out: what libblk calls a kernel.  The one idea:
 * a loop passes the same objects again, so what they led to is found by comparing them with those that led there last;
 * only a set that is new becomes a text. */
#include "door.h"

#include <string.h>

static bool is_option(PyObject *name)
{
	static const char *const options[] = {"num_warps", "num_stages", "num_ctas", "maxnreg", "max_registers",
		"max_spills", "max_shared", "strict", "launch_pdl"};
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		if (PyUnicode_CompareWithASCIIString(name, options[i]) == 0) return true;
	return false;
}

static bool is_const_parameter(const py_kernel *k, PyObject *name)
{
	const char *signature = blk_kernel_signature(k->first->handle);
	PyObject *bytes = PyUnicode_AsUTF8String(name);
	bool found = false;
	if (!bytes) return false;
	size_t n = (size_t)PyBytes_Size(bytes);
	for (const char *at = signature; !found && (at = strstr(at, "const ")); at += 6)
		found = (at == signature || at[-1] == '\n') && strncmp(at + 6, PyBytes_AsString(bytes), n) == 0 &&
			at[6 + n] == ' ';
	Py_DECREF(bytes);
	return found;
}

bool keyword_known(const py_kernel *k, PyObject *name)
{
	for (const bound *b = k->list; b; b = b->next)
		for (size_t i = 0; i < b->asked.n; i++)
			if (b->asked.names[i] == name) return true;
	return false;
}

bool keyword_is_define(const py_kernel *k, PyObject *name)
{
	return is_option(name) || is_const_parameter(k, name);
}

/* Values that stay what they are; a float's text says more than its comparison does. */
static bool is_lasting(PyObject *value)
{
	PyTypeObject *t = Py_TYPE(value);
	return t == &PyLong_Type || t == &PyUnicode_Type || t == &PyBool_Type || t == &PyFloat_Type;
}

static bool is_same(PyObject *a, PyObject *b)
{
	if (a == b) return true;
	bool compares = Py_TYPE(a) == Py_TYPE(b) && (Py_TYPE(a) == &PyLong_Type || Py_TYPE(a) == &PyUnicode_Type);
	return compares && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

static bool was_asked(const bound *b, const define_set *d)
{
	if (b->asked.n != d->n) return false;
	for (size_t i = 0; i < d->n; i++)
		if (b->asked.names[i] != d->names[i] || !is_same(b->asked.values[i], d->values[i])) return false;
	return true;
}

void asked_forget(bound *b)
{
	for (size_t i = 0; i < b->asked.n; i++) {
		Py_DECREF(b->asked.names[i]);
		Py_DECREF(b->asked.values[i]);
	}
	b->asked.n = 0;
}

static void remember(bound *b, const define_set *d)
{
	if (d->n > MOST_ASKED) return;
	for (size_t i = 0; i < d->n; i++)
		if (!is_lasting(d->values[i])) return;
	asked_forget(b);
	for (size_t i = 0; i < d->n; i++) {
		Py_INCREF(b->asked.names[i] = d->names[i]);
		Py_INCREF(b->asked.values[i] = d->values[i]);
	}
	b->asked.n = d->n;
}

static PyObject *as_dict(const define_set *d)
{
	PyObject *all = PyDict_New();
	for (size_t i = 0; all && i < d->n; i++)
		if (PyDict_SetItem(all, d->names[i], d->values[i])) Py_CLEAR(all);
	return all;
}

bool keywords_bind(py_kernel *k, opened_device *device, const define_set *d, bound **out)
{
	if (!d->n) return code_bind(k->code, k->name, device, NULL, &k->list, out);
	for (*out = k->list; *out; *out = (*out)->next)
		if ((*out)->device == device && was_asked(*out, d)) return true;
	PyObject *all = as_dict(d);
	bool fine = all && code_bind(k->code, k->name, device, all, &k->list, out);
	Py_XDECREF(all);
	if (fine) remember(*out, d);
	return fine;
}
