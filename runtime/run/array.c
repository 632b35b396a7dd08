/* Arrays on the host: elements by number, as containers (scalar.h). */
#include "runtime/run/run.h"

#include <stdlib.h>
#include <string.h>

bool array_allocate(array *a)
{
	size_t count = 1;
	for (unsigned i = 0; i < a->rank; i++)
		if (__builtin_mul_overflow(count, a->extent[i], &count)) return false;
	if (__builtin_mul_overflow(count, (size_t)scalar_bytes(a->type), &a->bytes) || a->bytes > PTRDIFF_MAX)
		return false;
	a->count = count;
	a->data = malloc(a->bytes ? a->bytes : 1);
	return a->data != NULL;
}

void array_free(array *a)
{
	free(a->data);
	a->data = NULL;
}

uint64_t array_bits(const array *a, size_t i)
{
	uint64_t bits = 0;
	unsigned n = scalar_bytes(a->type);
	memcpy(&bits, (const char *)a->data + i * n, n); /* little-endian, as every target of ours */
	return bits;
}

double array_value(const array *a, size_t i)
{
	return scalar_to_double(a->type, array_bits(a, i));
}

void array_set(array *a, size_t i, uint64_t bits)
{
	unsigned n = scalar_bytes(a->type);
	memcpy((char *)a->data + i * n, &bits, n);
}
