/* What can be asked of a kernel beside launching it: its signature, its code, the compiler's report, what a launch
 * would use, and the tuner's table.
 *
 * libblk answers all but the report, which is the compiler's; that library is opened here for it alone, beside
 * libblk. */
#include "door.h"

#include "compiler/blkc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static PyObject *text_object(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* ---- The signature ---- */

/* Where a launch computes the constant: its line behind the name, "i32 16 65536 p2 next_pow2 ; n=p2 ; next_pow2(n)". */
static const char *computed_line(const char *facts, const char *name, size_t n)
{
	for (const char *line = facts; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (strncmp(line, "computed ", 9) == 0 && strncmp(line + 9, name, n) == 0 && line[9 + n] == ' ')
			return line + 9 + n + 1;
	return NULL;
}

/* "next_pow2(n) in 16..65536" */
static char *put_computed(char *at, const char *line)
{
	const char *end = line + strcspn(line, "\n"), *low = strchr(line, ' ') + 1, *high = strchr(low, ' ') + 1;
	const char *source = strstr(strstr(line, " ; ") + 3, " ; ") + 3;
	at += sprintf(at, "%.*s", (int)(end - source), source);
	if (*high == '-' && high[1] == ' ') return at;
	return at + sprintf(at, " in %.*s..%.*s", (int)(high - 1 - low), low, (int)strcspn(high, " "), high);
}

/* "softmax_rows(y: *f32, n: i32, BLOCK: i32 = 1024)", malloc'ed; null: no memory. */
static char *signature_text(const py_kernel *k)
{
	const bound *b = k->first;
	const char *facts = blk_kernel_signature(b->handle);
	size_t bytes = strlen(k->name) + strlen(facts) + 8;
	for (size_t i = 0; i < b->nparameters; i++)
		bytes += strlen(b->parameters[i].name) + strlen(b->parameters[i].text) + 4;
	char *text = malloc(bytes), *at = text;
	if (!text) return NULL;
	at += sprintf(at, "%s(", k->name);
	const char *between = "";
	for (size_t i = 0; i < b->nparameters; i++, between = ", ")
		at += sprintf(at, "%s%s: %s", between, b->parameters[i].name, b->parameters[i].text);
	for (const char *line = facts, *next; *line; line = next) {
		size_t n = strcspn(line, "\n");
		next = line + n + (line[n] != 0);
		if (strncmp(line, "const ", 6)) continue;
		const char *name = line + 6, *type = strchr(name, ' ') + 1, *value = strchr(type, ' ') + 1;
		const char *computed = computed_line(facts, name, (size_t)(type - 1 - name));
		at += sprintf(
			at, "%s%.*s: %.*s = ", between, (int)(type - 1 - name), name, (int)(value - 1 - type), type);
		at = computed ? put_computed(at, computed) : at + sprintf(at, "%.*s", (int)(line + n - value), value);
		between = ", ";
	}
	strcpy(at, ")");
	return text;
}

PyObject *kernel_signature(py_kernel *k, void *unused)
{
	(void)unused;
	char *text = signature_text(k);
	PyObject *object = text ? text_object(text) : PyErr_NoMemory();
	free(text);
	return object;
}

/* ---- The compiler ---- */

typedef struct compiler_calls {
	void *library;
	blkc_result *(*compile)(const blkc_request *);
	void (*result_free)(blkc_result *);
} compiler_calls;

/* The version of the binary interface is in the name. */
#define COMPILER "libblkc.so." BLK_ABI_MAJOR

/* Beside libblk's own file, else as the dynamic linker finds it. */
static bool open_compiler(compiler_calls *to)
{
	Dl_info where;
	char path[4096] = COMPILER;
	if (dladdr((void *)(uintptr_t)blk_version, &where) && where.dli_fname) {
		char *real = realpath(where.dli_fname, NULL), *slash = real ? strrchr(real, '/') : NULL;
		if (slash) {
			slash[1] = 0;
			PyOS_snprintf(path, sizeof path, "%s%s", real, COMPILER);
		}
		free(real);
	}
	/* NODELETE: LLVM does not survive being unloaded and loaded again. */
	to->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!to->library) return false;
	*(void **)&to->compile = dlsym(to->library, "blkc_compile");
	*(void **)&to->result_free = dlsym(to->library, "blkc_result_free");
	return to->compile && to->result_free;
}

enum { MOST_WORDS = 256 };

typedef struct request {
	blkc_request c;
	char *defines, *promises;
	blkc_define define[MOST_WORDS];
	blkc_promise promise[MOST_WORDS];
} request;

static void add_defines(request *r)
{
	for (char *line = r->defines; *line && r->c.ndefines < MOST_WORDS;) {
		char *value = strchr(line, '='), *end = strchr(value, '\n');
		*value++ = *end = 0;
		r->define[r->c.ndefines++] = (blkc_define){line, value};
		line = end + 1;
	}
}

/* "x%16,n%8,m=1", as blk_info writes it */
static void add_promises(request *r)
{
	for (char *at = r->promises; *at && r->c.npromises < MOST_WORDS;) {
		char *sign = strpbrk(at, "%="), *end = at + strcspn(at, ",");
		if (!sign || sign > end) break;
		bool is_one = *sign == '=';
		*sign = 0;
		r->promise[r->c.npromises++] =
			(blkc_promise){at, is_one ? 0 : (uint32_t)strtoul(sign + 1, NULL, 10), is_one};
		at = end + (*end != 0);
	}
}

/* Compiles the kernel for one artifact.  Null with an exception. */
static PyObject *compile_for(py_kernel *k, const bound *b, const char *target, const char *promises, unsigned emit)
{
	const code *c = k->code;
	compiler_calls with = {0};
	request *r = calloc(1, sizeof *r);
	if (!r) return PyErr_NoMemory();
	r->defines = text_copy(b->defines);
	r->promises = text_copy(promises);
	PyObject *text = NULL;
	blkc_result *got = NULL;
	if (!r->defines || !r->promises)
		PyErr_NoMemory();
	else {
		r->c = (blkc_request){.size = sizeof r->c,
			.name = c->name,
			.text = c->text,
			.target = target,
			.kernel = k->name,
			.emit = emit,
			.defines = r->define,
			.promises = r->promise,
			.text_bytes = c->text ? strlen(c->text) : 0};
		add_defines(r);
		add_promises(r);
		bool fine;
		PyThreadState *gil = PyEval_SaveThread();
		fine = open_compiler(&with);
		if (fine) got = with.compile(&r->c);
		PyEval_RestoreThread(gil);
		if (!fine)
			door_raise(
				c->door, BLK_ERROR_COMPILER, "the compiler library " COMPILER " is not beside libblk");
		else if (!got)
			PyErr_NoMemory();
		else if (got->status)
			door_raise(c->door, got->status == 3 ? BLK_ERROR_MEMORY : BLK_ERROR_COMPILE, got->diagnostics);
	}
	for (size_t i = 0; got && !got->status && i < got->nartifacts; i++)
		if (got->artifacts[i].kind == emit && !text) text = text_object(got->artifacts[i].bytes);
	if (got && !got->status && !text && !PyErr_Occurred())
		door_raise(c->door, BLK_ERROR_INTERNAL, "the compiler made no text");
	if (got) with.result_free(got);
	if (with.library) dlclose(with.library);
	free(r->defines);
	free(r->promises);
	free(r);
	return text;
}

static bool is_source(const py_kernel *k)
{
	const char *name = k->code->name;
	size_t n = strlen(name);
	return k->code->text ||
	       !((n > 4 && strcmp(name + n - 4, ".ptx") == 0) || (n > 7 && strcmp(name + n - 7, ".blkpkg") == 0));
}

/* Of the last launch; false without an exception where there was none. */
static bool last_info(py_kernel *k, blk_info *info)
{
	if (!k->last) return false;
	const bound *b = k->last;
	blk_arg *args = malloc(b->nparameters * sizeof *args + 1);
	if (!args) return PyErr_NoMemory() != NULL;
	memcpy(args, k->last_args, b->nparameters * sizeof *args);
	blk_status status;
	PyThreadState *gil = PyEval_SaveThread();
	status = blk_kernel_info(b->handle, args, b->nparameters, info);
	PyEval_RestoreThread(gil);
	free(args);
	if (status) door_raise(k->code->door, status, blk_error());
	return status == BLK_OK;
}

PyObject *kernel_ptx(py_kernel *k, void *unused)
{
	(void)unused;
	blk_info info;
	if (last_info(k, &info)) {
		if (info.ptx) return text_object(info.ptx);
	} else if (PyErr_Occurred())
		return NULL;
	if (is_source(k)) return compile_for(k, k->last ? k->last : k->first, "sm_80", "", BLKC_EMIT_PTX);
	return door_raise(k->code->door, BLK_ERROR_UNSUPPORTED,
		"there is no source to compile: the code of a package is known once it was launched on a GPU");
}

PyObject *kernel_explain(py_kernel *k, PyObject *args, PyObject *keywords)
{
	PyObject *rest = keywords ? PyDict_Copy(keywords) : NULL, *target = NULL;
	if (keywords && !rest) return NULL;
	if (!PyArg_ParseTuple(args, "|U:explain", &target)) {
		Py_XDECREF(rest);
		return NULL;
	}
	if (!target && rest && (target = PyDict_GetItemString(rest, "target")) && !PyUnicode_Check(target)) {
		PyErr_SetString(PyExc_TypeError, "target= takes a str");
		target = NULL;
	}
	PyObject *name = target && target != Py_None ? PyUnicode_AsUTF8String(target) : NULL;
	if (!PyErr_Occurred() && rest && PyDict_GetItemString(rest, "target")) PyDict_DelItemString(rest, "target");
	blk_info info = {.target = "sm_80"};
	bound *b = k->last ? k->last : k->first;
	PyObject *text = NULL, *page = NULL;
	bool known = !PyErr_Occurred() && last_info(k, &info);
	if (!PyErr_Occurred() && !is_source(k))
		door_raise(k->code->door, BLK_ERROR_UNSUPPORTED, "only source can be explained, not a package or PTX");
	if (!PyErr_Occurred() &&
		(!rest || PyDict_Size(rest) == 0 || code_bind(k->code, k->name, b->device, rest, &k->list, &b))) {
		const char *on = name ? PyBytes_AsString(name) : strcmp(info.target, "cpu") ? info.target : "sm_80";
		text = compile_for(k, b, on, known ? info.promises : "", BLKC_EMIT_EXPLAIN);
	}
	Py_XDECREF(name);
	Py_XDECREF(rest);
	PyObject *module = text ? PyImport_ImportModule("blk._report") : NULL;
	if (module) page = PyObject_CallMethod(module, "Report", "O", text);
	Py_XDECREF(module);
	Py_XDECREF(text);
	return page;
}

/* ---- What a launch would use ---- */

PyObject *kernel_info(py_kernel *k, PyObject *args, PyObject *keywords)
{
	call c;
	blk_info i;
	if (!call_begin(k, args, keywords, &c)) return NULL;
	blk_status status;
	PyThreadState *gil = PyEval_SaveThread();
	status = blk_kernel_info(c.to->handle, c.args, c.to->nparameters, &i);
	PyEval_RestoreThread(gil);
	call_end(&c);
	if (status) return door_raise(k->code->door, status, blk_error());
	if (!door_note(k->code->door)) return NULL;
	return Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:d,s:I,s:I,s:O,s:z}", "target",
		i.target, "configuration", i.configuration ? i.configuration : "", "promises", i.promises, "fallback",
		i.fallback, "signature", i.signature, "num_warps", i.num_warps, "threads", i.threads, "registers",
		i.registers, "spill_bytes", i.spill_bytes, "shared_bytes", i.shared_bytes, "programs_per_sm",
		i.programs_per_sm, "num_sms", i.num_sms, "occupancy", (double)i.occupancy, "tensor_maps", i.tensor_maps,
		"cluster", i.cluster, "from_cache", i.from_cache ? Py_True : Py_False, "ptx", i.ptx);
}

/* ---- Const parameters ---- */

static PyObject *constant_object(bool is_bool, int64_t v)
{
	return is_bool ? PyBool_FromLong(v != 0) : PyLong_FromLongLong(v);
}

/* The names are those of the signature's lines "const NAME TYPE VALUE". */
static bool put_constants(PyObject *all, const call *c, blk_status *status)
{
	for (const char *line = blk_kernel_signature(c->to->handle), *next; *line && !*status; line = next) {
		size_t n = strcspn(line, "\n");
		next = line + n + (line[n] != 0);
		if (strncmp(line, "const ", 6)) continue;
		const char *at = line + 6, *type = strchr(at, ' ') + 1;
		char name[300];
		int64_t v;
		if (snprintf(name, sizeof name, "%.*s", (int)(type - 1 - at), at) >= (int)sizeof name) continue;
		if (!strchr("iub", *type) || strncmp(type, "bf", 2) == 0) continue;
		*status = blk_kernel_constant(c->to->handle, name, c->args, c->to->nparameters, &v);
		PyObject *value = *status ? NULL : constant_object(*type == 'b', v);
		if (!*status && (!value || PyDict_SetItemString(all, name, value))) return Py_XDECREF(value), false;
		Py_XDECREF(value);
	}
	return true;
}

PyObject *kernel_constants(py_kernel *k, PyObject *args, PyObject *keywords)
{
	call c;
	blk_status status = BLK_OK;
	if (!call_begin(k, args, keywords, &c)) return NULL;
	PyObject *all = PyDict_New();
	bool fine = all && put_constants(all, &c, &status);
	call_end(&c);
	if (fine && !status) return all;
	Py_XDECREF(all);
	return status ? door_raise(k->code->door, status, blk_error()) : NULL;
}

/* ---- Tuning ---- */

typedef struct trials {
	blk_tune_trial *at;
	size_t n;
	bool failed;
} trials;

static int visit(void *context, const blk_tune_trial *t)
{
	trials *all = context;
	blk_tune_trial *more = realloc(all->at, (all->n + 1) * sizeof *more);
	if (more) all->at = more;
	blk_tune_trial copy = *t;
	copy.configuration = text_copy(t->configuration);
	copy.reason = text_copy(t->reason);
	if (!more || !copy.configuration || !copy.reason) {
		free((char *)copy.configuration);
		free((char *)copy.reason);
		all->failed = true;
		return 1;
	}
	all->at[all->n++] = copy;
	return 0;
}

static PyObject *trial_object(const blk_tune_trial *t)
{
	static const char *const verdicts[] = {"unknown", "good", "compile", "resources", "wrong", "failed", "pruned",
		"suspect", "misfit"}; /* ORDER blk_tune_verdict */
	return Py_BuildValue("{s:s,s:s,s:d,s:s,s:O,s:d}", "configuration", t->configuration, "verdict",
		verdicts[t->verdict], "ms", t->ms, "reason", t->reason, "chosen", t->chosen ? Py_True : Py_False,
		"predicted", t->predicted);
}

static PyObject *trials_object(trials *all)
{
	PyObject *list = all->failed ? PyErr_NoMemory() : PyList_New(0);
	for (size_t i = 0; i < all->n; i++) {
		PyObject *one = list ? trial_object(&all->at[i]) : NULL;
		if (list && (!one || PyList_Append(list, one))) Py_CLEAR(list);
		Py_XDECREF(one);
		free((char *)all->at[i].configuration);
		free((char *)all->at[i].reason);
	}
	free(all->at);
	return list;
}

/* Takes `name` out of the keywords; -1 with an exception, else its truth. */
static int take_flag(PyObject *keywords, const char *name)
{
	PyObject *value = PyDict_GetItemString(keywords, name);
	int truth = value ? PyObject_IsTrue(value) : 0;
	if (value && truth >= 0 && PyDict_DelItemString(keywords, name)) return -1;
	return truth;
}

PyObject *kernel_tune(py_kernel *k, PyObject *args, PyObject *keywords)
{
	trials all = {0};
	blk_tune_options how = {.visit = visit, .context = &all};
	PyObject *rest = keywords ? PyDict_Copy(keywords) : PyDict_New();
	call c;
	bool fine = rest && (how.again = take_flag(rest, "again")) >= 0 &&
		    (how.isolated = take_flag(rest, "isolated")) >= 0 && call_begin(k, args, rest, &c);
	Py_XDECREF(rest);
	if (!fine) return NULL;
	/* The tuner must know how much memory there is, which is so of a GPU's and of buffers. */
	bool copies = c.to->device->kind != BLK_DEVICE_CUDA;
	blk_status status = BLK_OK;
	PyThreadState *gil = PyEval_SaveThread();
	if (copies) status = copies_make(&c);
	if (!status)
		status = blk_kernel_tune(
			c.to->handle, c.has_grid ? &c.grid : NULL, c.args, c.to->nparameters, &how, NULL);
	if (copies) copies_free(&c);
	PyEval_RestoreThread(gil);
	call_end(&c);
	PyObject *list = trials_object(&all);
	if (!status) return list;
	Py_XDECREF(list);
	PyErr_Clear();
	return door_raise(k->code->door, status, blk_error());
}
