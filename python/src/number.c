/* Python's numbers as blk's: an int for an integer that can hold it, a float or an int for a float, True or False for a
 * bool.  Nothing is cut off: what does not fit is an error.  Floats of 16 and 8 bits are rounded to nearest. */
#include "door.h"

#include "support/scalar.h"

#include <math.h>
#include <string.h>

const char *type_name(int type)
{
	return type >= 0 && type < SCALAR_COUNT ? scalar_name((scalar)type) : "another type";
}

int type_parse(const char *name, size_t length)
{
	for (int i = 0; i < SCALAR_COUNT; i++)
		if (strlen(scalar_name((scalar)i)) == length && memcmp(scalar_name((scalar)i), name, length) == 0)
			return i;
	return -1;
}

static bool wrong_type(PyObject *o, blk_type type, const char *kernel, const char *name)
{
	PyErr_Format(PyExc_TypeError, "argument %s of kernel %s is %s, which takes no %R", name, kernel,
		type_name((int)type), Py_TYPE(o));
	return false;
}

static bool too_large(PyObject *o, blk_type type, const char *kernel, const char *name)
{
	PyErr_Format(PyExc_OverflowError, "argument %s of kernel %s: %S does not fit %s", name, kernel, o,
		type_name((int)type));
	return false;
}

static bool get_integer(PyObject *o, blk_type type, const char *kernel, const char *name, blk_arg *out)
{
	PyObject *index = PyLong_Check(o) ? (Py_INCREF(o), o) : PyNumber_Index(o);
	if (!index) {
		if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
		PyErr_Clear();
		return wrong_type(o, type, kernel, name);
	}
	bool is_signed = scalar_is_signed((scalar)type);
	unsigned bits = scalar_bits((scalar)type);
	int overflow = 0;
	bool fits;
	uint64_t v;
	long long s = PyLong_AsLongLongAndOverflow(index, &overflow);
	if (is_signed) {
		fits = !overflow && (bits == 64 || (s >= -(1LL << (bits - 1)) && s < 1LL << (bits - 1)));
		v = (uint64_t)s;
	} else if (overflow > 0) {
		v = PyLong_AsUnsignedLongLong(index);
		fits = bits == 64 && !PyErr_Occurred();
		PyErr_Clear();
	} else {
		v = (uint64_t)s;
		fits = !overflow && s >= 0 && (bits == 64 || v >> bits == 0);
	}
	Py_DECREF(index);
	if (!fits) return too_large(o, type, kernel, name);
	*out = blk_arg_make(type, scalar_truncate((scalar)type, v));
	return true;
}

static bool get_float(PyObject *o, blk_type type, const char *kernel, const char *name, blk_arg *out)
{
	double v = PyFloat_AsDouble(o);
	if (v == -1.0 && PyErr_Occurred()) {
		if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
		PyErr_Clear();
		return wrong_type(o, type, kernel, name);
	}
	uint64_t bits = scalar_from_double((scalar)type, v);
	double back = scalar_to_double((scalar)type, bits);
	/* Those of 8 bits have no infinity to become, or do not. */
	double most = type == BLK_TYPE_F8E4M3 ? 448 : type == BLK_TYPE_F8E5M2 ? 57344 : HUGE_VAL;
	if (isfinite(v) && (!isfinite(back) || fabs(v) > most)) return too_large(o, type, kernel, name);
	*out = blk_arg_make(type, bits);
	return true;
}

bool number_get(PyObject *o, blk_type type, const char *kernel, const char *name, blk_arg *out)
{
	if (scalar_is_float((scalar)type)) return get_float(o, type, kernel, name, out);
	if (type != BLK_TYPE_BOOL) return get_integer(o, type, kernel, name, out);
	/* NumPy's bool is no index, but has a truth, and is a number in that it has an item(). */
	blk_arg byte;
	if (!PyLong_Check(o) && PyObject_HasAttrString(o, "__bool__") && PyObject_HasAttrString(o, "item")) {
		int truth = PyObject_IsTrue(o);
		if (truth < 0) return false;
		byte.bits = (uint64_t)truth;
	} else if (!get_integer(o, BLK_TYPE_U8, kernel, name, &byte))
		return false;
	if (byte.bits > 1) return too_large(o, type, kernel, name);
	*out = blk_bool((int)byte.bits);
	return true;
}
