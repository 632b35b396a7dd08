/* Tensor descriptors: their text, and what two of them have in common.  See tensor_map.h. */
#include "tensor_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char between[] = " ; ", tf32[] = "tf32";

void ir_tensor_map_print(text *out, const ir_tensor_map *m)
{
	assert(m->rank && m->rank <= IR_MAP_RANK && m->address);
	text_printf(out, "%s %u", m->rounds ? tf32 : scalar_name(m->elem), m->swizzle);
	for (unsigned i = 0; i < m->rank; i++) text_printf(out, " %u", m->box[i]);
	text_printf(out, "%s%s", between, m->address);
	for (unsigned i = 0; i < m->rank; i++) text_printf(out, "%s%s", between, m->extent[i]);
	for (unsigned i = 0; i + 1 < m->rank; i++)
		text_printf(out, "%s%s %u *", between, m->stride[i], scalar_bytes(m->elem));
}

/* The part up to the next " ; ", which *s is moved behind; null where the text has ended. */
static char *take_part(arena *a, const char **s)
{
	if (!*s) return NULL;
	const char *end = strstr(*s, between), *part = *s;
	*s = end ? end + sizeof between - 1 : NULL;
	return arena_strndup(a, part, end ? (size_t)(end - part) : strlen(part));
}

static bool take_element(const char *word, size_t n, ir_tensor_map *m)
{
	m->rounds = n == sizeof tf32 - 1 && memcmp(word, tf32, n) == 0;
	m->elem = m->rounds ? SCALAR_F32 : SCALAR_COUNT;
	assert(n);
	for (unsigned s = 0; s < SCALAR_COUNT && !m->rounds; s++)
		if (strlen(scalar_name((scalar)s)) == n && memcmp(scalar_name((scalar)s), word, n) == 0)
			m->elem = (scalar)s;
	return m->elem != SCALAR_COUNT;
}

/* "f16 128 64 32" */
static bool read_box(const char *s, ir_tensor_map *m)
{
	size_t n = strcspn(s, " ");
	if (!s[n] || !take_element(s, n, m)) return false;
	char *end;
	unsigned long v = strtoul(s + n, &end, 10);
	m->swizzle = (unsigned)v;
	for (s = end; *s && m->rank < IR_MAP_RANK; s = end) {
		m->box[m->rank] = (uint32_t)strtoul(s, &end, 10);
		if (end == s || m->box[m->rank++] == 0) return false;
	}
	return !*s && m->rank > 0;
}

/* Without the factor behind it that makes bytes of elements. */
static bool in_elements(char *stride, unsigned bytes)
{
	char factor[16];
	int n = snprintf(factor, sizeof factor, " %u *", bytes);
	size_t length = strlen(stride);
	if (n < 0 || length <= (size_t)n || strcmp(stride + length - (size_t)n, factor) != 0) return false;
	stride[length - (size_t)n] = 0;
	return true;
}

bool ir_tensor_map_read(arena *a, const char *s, ir_tensor_map *m)
{
	*m = (ir_tensor_map){0};
	if (!read_box(take_part(a, &s), m) || !(m->address = take_part(a, &s))) return false;
	for (unsigned i = 0; i < m->rank; i++)
		if (!(m->extent[i] = take_part(a, &s))) return false;
	for (unsigned i = 0; i + 1 < m->rank; i++) {
		char *part = take_part(a, &s);
		if (!part || !in_elements(part, scalar_bytes(m->elem))) return false;
		m->stride[i] = part;
	}
	return !s;
}

bool ir_tensor_map_same_array(const ir_tensor_map *a, const ir_tensor_map *b)
{
	assert(a->rank && a->rank <= IR_MAP_RANK && b->rank && b->rank <= IR_MAP_RANK);
	bool same = a->elem == b->elem && a->rank == b->rank && strcmp(a->address, b->address) == 0;
	for (unsigned i = 0; same && i < a->rank; i++) same = strcmp(a->extent[i], b->extent[i]) == 0;
	for (unsigned i = 0; same && i + 1 < a->rank; i++) same = strcmp(a->stride[i], b->stride[i]) == 0;
	return same;
}

bool ir_tensor_map_equal(const ir_tensor_map *a, const ir_tensor_map *b)
{
	return ir_tensor_map_same_array(a, b) && a->rounds == b->rounds && a->swizzle == b->swizzle &&
	       memcmp(a->box, b->box, sizeof a->box) == 0;
}

/* "1 p4 *", then "1 p4 * p3 *": each the one before times an extent. */
static bool is_times(const char *stride, const char *before, const char *extent)
{
	size_t n = strlen(before), m = strlen(extent);
	return strncmp(stride, before, n) == 0 && stride[n] == ' ' && strncmp(stride + n + 1, extent, m) == 0 &&
	       strcmp(stride + n + 1 + m, " *") == 0;
}

bool ir_tensor_map_is_dense(const ir_tensor_map *m)
{
	bool dense = true;
	for (unsigned d = 0; dense && d + 1 < m->rank; d++)
		dense = is_times(m->stride[d], d ? m->stride[d - 1] : "1", m->extent[d]) ||
			(d == 0 && strcmp(m->stride[0], m->extent[0]) == 0);
	return dense;
}
