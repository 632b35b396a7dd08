/* Arrays and numbers for people. */
#include "runtime/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 4, COLUMNS = 8 };

void print_element(const array *a, size_t i)
{
	uint64_t bits = array_bits(a, i);
	if (a->type == SCALAR_BOOL)
		printf("%s", bits ? "true" : "false");
	else if (!scalar_is_float(a->type) && scalar_is_signed(a->type))
		printf("%" PRId64, scalar_sign_extend(a->type, bits));
	else if (!scalar_is_float(a->type))
		printf("%" PRIu64, bits);
	else {
		double v = scalar_to_double(a->type, bits);
		if (isnan(v))
			printf("nan");
		else
			printf("%.*g", a->type == SCALAR_F64 ? 10 : a->type == SCALAR_F32 ? 7 : 4, v);
	}
}

void print_index(const array *a, size_t i)
{
	size_t where[RUN_RANK] = {0};
	for (unsigned d = a->rank; d-- > 0;) {
		where[d] = a->extent[d] ? i % a->extent[d] : 0;
		i = a->extent[d] ? i / a->extent[d] : 0;
	}
	printf("[");
	for (unsigned d = 0; d < a->rank; d++) printf("%s%zu", d ? ", " : "", where[d]);
	printf("]");
}

void print_array(const char *name, const array *a)
{
	printf("%s: %s[", name, scalar_name(a->type));
	for (unsigned d = 0; d < a->rank; d++) printf("%s%" PRIu64, d ? ", " : "", a->extent[d]);
	printf("]\n");
	if (a->count == 0) return;
	size_t columns = a->rank ? a->extent[a->rank - 1] : 1, rows = a->count / columns;
	for (size_t r = 0; r < rows && r < ROWS; r++) {
		printf("  ");
		if (a->rank > 1) {
			print_index(a, r * columns);
			printf(" ");
		}
		for (size_t c = 0; c < columns && c < COLUMNS; c++) {
			if (c) printf("  ");
			print_element(a, r * columns + c);
		}
		printf("%s\n", columns > COLUMNS ? "  ..." : "");
	}
	if (rows > ROWS) printf("  ...\n");
}

void print_quantity(double v, const char *unit)
{
	static const struct {
		double scale;
		const char *prefix;
	} steps[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
	size_t i = 0;
	while (i + 1 < sizeof steps / sizeof steps[0] && v < steps[i].scale) i++;
	v /= steps[i].scale;
	printf("%.*f %s%s", v < 10 ? 2 : v < 100 ? 1 : 0, v, steps[i].prefix, unit);
}
