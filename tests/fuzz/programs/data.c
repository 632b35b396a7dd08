/* The elements of a program's buffers, from its seed: exact in every use that the generator makes of them. */
#include "random.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t integer(rng *r, scalar s, int style)
{
	static const int64_t special[] = {
		0, 1, -1, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 127, -128, 32767, -32768};
	int64_t v = style == 0 ? (int64_t)rng_next(r) : rng_between(r, style == 1 ? -4 : -100, style == 1 ? 9 : 100);
	if (rng_percent(r, 5)) v = special[rng_below(r, (int)(sizeof special / sizeof *special))];
	return scalar_truncate(s, (uint64_t)v);
}

static uint64_t element(rng *r, const buffer *b, int style)
{
	if (b->s == SCALAR_BOOL) return (uint64_t)rng_below(r, 2);
	if (!scalar_is_float(b->s)) return integer(r, b->s, style);
	int most = 1 << (b->mag + b->frac);
	if (style == 1 && most > 2) most = 2;
	double v = ldexp(rng_between(r, -most, most), -b->frac);
	if (v == 0 && rng_percent(r, 30)) v = -0.0;
	return scalar_from_double(b->s, v);
}

unsigned char *buffer_data(const program *p, int index, size_t *bytes)
{
	const buffer *b = &p->buffers[index];
	rng r = {p->seed ^ (uint64_t)(b->name[1] + 1000 * b->name[2] + 7) * 0x9e3779b97f4a7c15u};
	unsigned size = scalar_bytes(b->s);
	*bytes = (size_t)b->n * size;
	unsigned char *at = malloc(*bytes + 1);
	if (!at) exit(2);
	int style = rng_below(&r, 3);
	memset(at, 0xa5, *bytes);
	for (int i = 0; b->kind != OUTPUT && i < b->n; i++) {
		uint64_t v = element(&r, b, style);
		if (b->kind == SHARED && scalar_is_float(b->s) && v == scalar_from_double(b->s, -0.0)) v = 0;
		memcpy(at + (size_t)i * size, &v, size);
	}
	return at;
}

/* ---- a case that blkrun can repeat ---- */

static const char *numpy_name(scalar s)
{
	static const char *const names[SCALAR_COUNT] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8",
		"|u1", "|u1", "<f2", "<V2", "<f4", "<f8"}; /* ORDER SCALARS */
	return names[s];
}

static void write_numpy(const program *p, int i, const char *path)
{
	char head[129];
	size_t bytes;
	unsigned char *data = buffer_data(p, i, &bytes);
	FILE *f = fopen(path, "wb");
	int n = snprintf(head, sizeof head, "%*s", 128, "\n");
	n = snprintf(head, sizeof head,
		"\x93NUMPY\x01%c\x76%c{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", 0, 0,
		numpy_name(p->buffers[i].s), p->buffers[i].n);
	memset(head + n, ' ', sizeof head - (size_t)n);
	head[127] = '\n';
	if (f) {
		fwrite(head, 1, 128, f);
		fwrite(data, 1, bytes, f);
		fclose(f);
	}
	free(data);
}

void write_case(const program *p, const verdict *v, const char *prefix, FILE *out)
{
	char path[512];
	snprintf(path, sizeof path, "%s.blk", prefix);
	char device[sizeof v->device];
	snprintf(device, sizeof device, "%s", v->device);
	device[strcspn(device, ",")] = 0;
	if (!strncmp(device, "cpu", 3) || !device[0]) snprintf(device, sizeof device, "sim:sm_80");
	fprintf(out,
		"blkrun %s --device=%s --rtol 0 --atol 0 --check cpu --allow-unwritten --grid=%d,%d,%d -D num_warps=%d "
		"n=%d r=%d",
		path, device, p->grid[0], p->grid[1], p->grid[2], p->num_warps, p->n, p->region);
	for (int i = 0; i < p->nscalars; i++) {
		const host_scalar *h = &p->scalars[i];
		scalar s = h->var.type.s;
		fprintf(out, " %s=", h->var.name);
		if (scalar_is_float(s))
			fprintf(out, "%.17g", scalar_to_double(s, h->bits));
		else if (scalar_is_signed(s))
			fprintf(out, "%lld", (long long)scalar_sign_extend(s, h->bits));
		else
			fprintf(out, "%llu", (unsigned long long)h->bits);
	}
	if (v->late) fprintf(out, " late=0");
	FILE *f = fopen(path, "w");
	if (!f) {
		perror(path);
		return;
	}
	program_print(p, v->late, f);
	fclose(f);
	for (int i = 0; i < p->nbuffers; i++) {
		const buffer *b = &p->buffers[i];
		if (b->kind == OUTPUT)
			fprintf(out, " %s=%s[%d]:poison", b->name, scalar_name(b->s), b->n);
		else {
			snprintf(path, sizeof path, "%s-%s.npy", prefix, b->name);
			write_numpy(p, i, path);
			fprintf(out, " %s=@%s", b->name, path);
		}
	}
	fprintf(out, "\n");
}
