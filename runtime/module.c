/* Modules: source that has passed the compiler's check, PTX whose head says what it holds, or a package (packaged.c).
 * Each way a module is a
 * list of kernels with signatures; code comes later, in specialise.c. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = PACKAGE_MAX_BYTES };

/* ---- PTX ---- */

#define MARK "// blk: "

static bool starts(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/* Copies the lines behind the marks; `kernel` lines begin a new signature.  Returns the number of kernels. */
static size_t gather(const char *text, char *out, size_t *offsets)
{
	size_t n = 0, at = 0;
	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		if (!starts(line, MARK)) continue;
		const char *fact = line + strlen(MARK), *end = strchr(fact, '\n');
		size_t length = end ? (size_t)(end - fact) : strlen(fact);
		if (length && fact[length - 1] == '\r') length--;
		if (starts(fact, "kernel ")) {
			if (n) out[at++] = 0;
			offsets[n++] = at;
		}
		if (!n) continue;
		memcpy(out + at, fact, length);
		at += length;
		out[at++] = '\n';
	}
	out[at] = 0;
	return n;
}

blk_status module_add_kernel(blk_module *m, const char *signature_text, size_t bytes)
{
	signature *s;
	blk_status status = signature_parse(signature_text, bytes, &s);
	if (status) return status;
	blk_kernel **more = realloc(m->kernels, (m->nkernels + 1) * sizeof *more);
	if (!more) {
		signature_free(s);
		return error_memory();
	}
	m->kernels = more;
	status = kernel_make(m, s, false, &m->kernels[m->nkernels]);
	if (!status) m->nkernels++;
	return status;
}

/* Comment lines stand first, a kernel's signature among them. */
static bool looks_like_ptx(const char *name, const char *text)
{
	size_t length = strlen(name);
	if (length > 4 && strcmp(name + length - 4, ".ptx") == 0) return true;
	for (const char *line = text; line && starts(line, "//");
		line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (starts(line, MARK "kernel ")) return true;
	return false;
}

static bool looks_like_package(const char *name, const char *text, size_t bytes)
{
	size_t length = strlen(name);
	return (length > 7 && strcmp(name + length - 7, ".blkpkg") == 0) ||
	       (bytes >= 8 && memcmp(text, PACKAGE_MAGIC, 8) == 0);
}

static blk_status open_ptx(blk_module *m)
{
	if (m->head.device->info.kind == BLK_DEVICE_CPU)
		return error_set(BLK_ERROR_UNSUPPORTED,
			"%s is PTX, which only a CUDA device and the simulator run; give the .blk source instead",
			m->name);
	if (m->ndefines)
		return error_set(BLK_ERROR_ARGUMENT,
			"%s is PTX: its const parameters are bound already, so it takes no defines", m->name);
	size_t marks = 1;
	for (const char *p = m->text; (p = strstr(p, MARK)); p++) marks++;
	char *lines = malloc(m->text_bytes + marks + 1);
	size_t *offsets = calloc(marks, sizeof *offsets);
	blk_status status = lines && offsets ? BLK_OK : error_memory();
	size_t n = status ? 0 : gather(m->text, lines, offsets);
	if (!status && n == 0)
		status = error_set(BLK_ERROR_FORMAT,
			"%s has no kernel signature: it has no \"" MARK "kernel\" line as blkc writes it", m->name);
	for (size_t i = 0; !status && i < n; i++)
		status = module_add_kernel(m, lines + offsets[i], strlen(lines + offsets[i]));
	free(lines);
	free(offsets);
	return status;
}

/* ---- Opening ---- */

/* One block with the array and all strings. */
static blk_define *copy_defines(const blk_define *d, size_t n)
{
	size_t bytes = (n ? n : 1) * sizeof *d;
	for (size_t i = 0; i < n; i++) bytes += strlen(d[i].name) + strlen(d[i].value) + 2;
	blk_define *out = malloc(bytes);
	char *at = out ? (char *)(out + n) : NULL;
	for (size_t i = 0; out && i < n; i++) {
		out[i].name = strcpy(at, d[i].name);
		at += strlen(at) + 1;
		out[i].value = strcpy(at, d[i].value);
		at += strlen(at) + 1;
	}
	return out;
}

static blk_status check_request(blk_device *d, const blk_define *defines, size_t n, blk_module **out)
{
	blk_status status = device_check(d);
	if (status) return status;
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "no place for the module");
	note_clear();
	*out = NULL;
	if (n && !defines) return error_set(BLK_ERROR_ARGUMENT, "the defines are null");
	for (size_t i = 0; i < n; i++)
		if (!defines[i].name || !defines[i].value)
			return error_set(
				BLK_ERROR_ARGUMENT, "define %zu has no %s", i, defines[i].name ? "value" : "name");
	return BLK_OK;
}

blk_status module_open_text(blk_device *d, const char *name, char *text, size_t bytes, const blk_define *defines,
	size_t n, blk_module **out)
{
	blk_module *m = handle_new(d, HANDLE_MODULE, sizeof *m);
	if (!m) {
		free(text);
		return BLK_ERROR_MEMORY;
	}
	m->text = text;
	m->text_bytes = bytes;
	m->name = strdup(name);
	m->defines = copy_defines(defines, n);
	m->ndefines = n;
	blk_status status = m->name && m->defines ? BLK_OK : error_memory();
	bool packed = looks_like_package(name, text, bytes);
	m->is_ptx = !packed && looks_like_ptx(name, text);
	if (!status) status = packed ? packaged_open(m) : m->is_ptx ? open_ptx(m) : specialise_check(m);
	if (status) {
		blk_module_close(m);
		return status;
	}
	*out = m;
	return BLK_OK;
}

blk_status blk_module_source(
	blk_device *d, const char *name, const char *text, const blk_define *defines, size_t n, blk_module **out)
{
	blk_status status = check_request(d, defines, n, out);
	if (status) return status;
	if (!text) return error_set(BLK_ERROR_ARGUMENT, "blk_module_source: the text is null");
	char *copy = strdup(text);
	if (!copy) return error_memory();
	return module_open_text(d, name ? name : "source.blk", copy, strlen(copy), defines, n, out);
}

blk_status blk_module_open(blk_device *d, const char *path, const blk_define *defines, size_t n, blk_module **out)
{
	blk_status status = check_request(d, defines, n, out);
	if (status) return status;
	if (!path) return error_set(BLK_ERROR_ARGUMENT, "blk_module_open: the path is null");
	char *text = NULL;
	size_t bytes = 0;
	if (!file_read(d->cache.files, path, MAX_FILE, &text, &bytes)) {
		int why = errno;
		if (why == ENOMEM) return error_memory();
		return error_set(why == ENOENT || why == ENOTDIR ? BLK_ERROR_NOT_FOUND : BLK_ERROR_IO, "%s: %s", path,
			file_refusal(why));
	}
	return module_open_text(d, path, text, bytes, defines, n, out);
}

/* ---- The end ---- */

void blk_module_close(blk_module *m)
{
	if (!m || !handle_retire(&m->head)) return;
	blk_device *d = m->head.device;
	if (m->nkernels) d->backend->sync(d); /* its code may still be running; a failure is reported by later calls */
	for (size_t i = 0; i < m->nkernels; i++) kernel_destroy(m->kernels[i]);
	packaged_close(m);
	free(m->kernels);
	free(m->defines);
	free(m->name);
	free(m->text);
	free(m->said.at);
	m->kernels = NULL;
	m->nkernels = 0;
	handle_bury(&m->head, HANDLE_MODULE);
}

const char *blk_module_kernel(blk_module *m, size_t i)
{
	if (handle_is(m, HANDLE_MODULE)) return i < m->nkernels ? m->kernels[i]->sig->kernel : NULL;
	handle_error(m, "module");
	return NULL;
}
