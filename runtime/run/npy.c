/* NumPy's .npy files: a magic number, a Python dictionary as text (descr, fortran_order, shape), then the elements.
 *
 * Read: versions 1 to 3, either byte order, row-major.  Written: version 1, little-endian.  NumPy has no bf16 and no
 * fp8, so bf16 is written as V2 (what ml_dtypes writes) and fp8 as u1; both are read back as the parameter's type. */
#include "runtime/run/run.h"
#include "runtime/run/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(char *why, size_t room, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static bool fail(char *why, size_t room, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, room, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- The header ---- */

/*      NumPy's kind and size, our type */
static const struct {
	char kind, size;
	scalar type;
} kinds[] = {{'b', '1', SCALAR_BOOL}, {'i', '1', SCALAR_I8}, {'i', '2', SCALAR_I16}, {'i', '4', SCALAR_I32},
	{'i', '8', SCALAR_I64}, {'u', '1', SCALAR_U8}, {'u', '2', SCALAR_U16}, {'u', '4', SCALAR_U32},
	{'u', '8', SCALAR_U64}, {'f', '2', SCALAR_F16}, {'f', '4', SCALAR_F32}, {'f', '8', SCALAR_F64}};

/* Types without a name in NumPy come as raw bytes or as unsigned integers of their size. */
static bool is_raw(char kind, char size, scalar wanted)
{
	bool fits = (wanted == SCALAR_BF16 && size == '2') || (scalar_is_fp8(wanted) && size == '1');
	return fits && (kind == 'V' || kind == 'u');
}

static bool find_type(const char *descr, scalar wanted, scalar *type, bool *swapped)
{
	if (strlen(descr) != 3 || !strchr("<>|=", descr[0])) return false;
	char order = descr[0], kind = descr[1], size = descr[2];
	*swapped = order == '>' && size != '1';
	if (is_raw(kind, size, wanted)) return *type = wanted, true;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i].kind == kind && kinds[i].size == size) return *type = kinds[i].type, true;
	return false;
}

/* The text after 'key': in the dictionary; null: not there. */
static const char *entry(const char *dictionary, const char *key)
{
	char quoted[32];
	snprintf(quoted, sizeof quoted, "'%s'", key);
	const char *p = strstr(dictionary, quoted);
	if (!p) return NULL;
	p += strlen(quoted);
	while (*p == ' ') p++;
	if (*p++ != ':') return NULL;
	while (*p == ' ') p++;
	return p;
}

static bool read_shape(const char *p, array *a)
{
	if (!p || *p++ != '(') return false;
	for (a->rank = 0;;) {
		while (*p == ' ' || *p == ',') p++;
		if (*p == ')') return true;
		if (*p < '0' || *p > '9' || a->rank == RUN_RANK) return false;
		char *end;
		errno = 0;
		a->extent[a->rank++] = strtoull(p, &end, 10);
		if (errno) return false;
		p = end;
		if (*p == 'L') p++; /* Python 2 */
	}
}

static bool read_dictionary(const char *text, scalar wanted, array *a, bool *swapped, char *why, size_t room)
{
	char descr[8] = "";
	const char *p = entry(text, "descr"), *order = entry(text, "fortran_order");
	if (!p || !order || *p != '\'') return fail(why, room, "its header has no simple descr and fortran_order");
	size_t n = strcspn(p + 1, "'");
	if (n < sizeof descr) memcpy(descr, p + 1, n);
	if (!find_type(descr, wanted, &a->type, swapped))
		return fail(why, room, "elements of type '%.*s' have no type in blk", (int)(n < 20 ? n : 20), p + 1);
	if (!read_shape(entry(text, "shape"), a))
		return fail(why, room, "its header has no shape of at most %d extents", (int)RUN_RANK);
	if (strncmp(order, "True", 4) == 0 && a->rank > 1)
		return fail(why, room, "it is in Fortran order; save numpy.ascontiguousarray(x)");
	return true;
}

bool npy_parse(const unsigned char *bytes, size_t n, scalar wanted, array *a, size_t *data, bool *swapped, char *why,
	size_t room)
{
	memset(a, 0, sizeof *a);
	if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) return fail(why, room, "it is no .npy file");
	size_t start = bytes[6] == 1 ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
	if (bytes[6] < 1 || bytes[6] > 3) return fail(why, room, "it is of the unknown version %d", bytes[6]);
	if (n < start) return fail(why, room, "it is truncated");
	if (start == 12) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
	if (length > n - start) return fail(why, room, "it is truncated");
	if (length > 1 << 20) return fail(why, room, "its header is longer than 1 MiB");
	char *text = malloc(length + 1);
	if (!text) return fail(why, room, "out of memory");
	memcpy(text, bytes + start, length);
	text[length] = 0;
	bool good = read_dictionary(text, wanted, a, swapped, why, room);
	free(text);
	*data = start + length;
	return good;
}

/* ---- Reading ---- */

/* Does not wait for a pipe's other end.  -1: none that can be read. */
static int open_file(const char *path, size_t *n, char *why, size_t room)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool good = fd >= 0 && fstat(fd, &st) == 0;
	*n = good ? (size_t)st.st_size : 0;
	if (good && S_ISREG(st.st_mode)) return fd;
	if (!good || S_ISDIR(st.st_mode))
		fail(why, room, "%s", strerror(good ? EISDIR : errno));
	else
		fail(why, room, "it is a pipe or a device and no regular file");
	if (fd >= 0) close(fd);
	return -1;
}

static bool read_bytes(int fd, unsigned char *to, size_t n, char *why, size_t room)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = read(fd, to + done, n - done);
		if (got < 0 && errno == EINTR) continue;
		if (got <= 0) return fail(why, room, "%s", got ? strerror(errno) : "it shrank while it was read");
		done += (size_t)got;
	}
	return true;
}

/* `*bytes` is the caller's to free, whatever is returned. */
static bool read_file(const char *path, unsigned char **bytes, size_t *n, char *why, size_t room)
{
	int fd = open_file(path, n, why, room);
	if (fd < 0) return false;
	*bytes = malloc(*n + 1);
	bool good = *bytes ? read_bytes(fd, *bytes, *n, why, room) : fail(why, room, "it is too large for memory");
	close(fd);
	return good;
}

static void swap_elements(array *a)
{
	unsigned n = scalar_bytes(a->type);
	unsigned char *p = a->data;
	for (size_t i = 0; i < a->count; i++, p += n)
		for (unsigned j = 0; j < n / 2; j++) {
			unsigned char t = p[j];
			p[j] = p[n - 1 - j];
			p[n - 1 - j] = t;
		}
}

bool npy_read(const char *path, scalar wanted, array *a, char *why, size_t room)
{
	unsigned char *bytes = NULL;
	size_t n = 0, data = 0;
	bool swapped = false;
	memset(a, 0, sizeof *a);
	bool good =
		read_file(path, &bytes, &n, why, room) && npy_parse(bytes, n, wanted, a, &data, &swapped, why, room);
	if (good && !array_allocate(a)) good = fail(why, room, "it is too large for memory");
	if (good && a->bytes != n - data)
		good = fail(why, room, "its shape needs %zu bytes, and %zu are there", a->bytes, n - data);
	if (good) memcpy(a->data, bytes + data, a->bytes);
	if (good && swapped) swap_elements(a);
	if (!good) array_free(a);
	free(bytes);
	return good;
}

/* ---- Writing ---- */

static const char *descr_of(scalar type)
{
	switch (type) {
	case SCALAR_BOOL: return "|b1";
	case SCALAR_I8: return "|i1";
	case SCALAR_I16: return "<i2";
	case SCALAR_I32: return "<i4";
	case SCALAR_I64: return "<i8";
	case SCALAR_U16: return "<u2";
	case SCALAR_U32: return "<u4";
	case SCALAR_U64: return "<u8";
	case SCALAR_F16: return "<f2";
	case SCALAR_BF16: return "<V2";
	case SCALAR_F32: return "<f4";
	case SCALAR_F64: return "<f8";
	default: return "|u1";
	}
}

static size_t make_header(const array *a, char *out, size_t room)
{
	char shape[RUN_RANK * 24] = "";
	size_t at = 0;
	for (unsigned i = 0; i < a->rank; i++)
		at += (size_t)snprintf(shape + at, sizeof shape - at, "%llu,%s", (unsigned long long)a->extent[i],
			i + 1 < a->rank ? " " : "");
	if (a->rank > 1) shape[at - 1] = 0; /* only (3,) keeps its comma */
	int n = snprintf(out + 10, room - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
		descr_of(a->type), shape);
	size_t total = (10 + (size_t)n + 1 + 63) / 64 * 64;
	memset(out + 10 + n, ' ', total - 10 - (size_t)n);
	out[total - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (char)((total - 10) & 255);
	out[9] = (char)((total - 10) >> 8);
	return total;
}

bool npy_write(const char *path, const array *a, char *why, size_t room)
{
	char header[1024];
	size_t n = make_header(a, header, sizeof header);
	if (whole_open(path) && whole_write(header, n) && whole_write(a->data, a->bytes) && whole_commit()) return true;
	return fail(why, room, "%s", strerror(errno));
}
