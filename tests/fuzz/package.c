/* libFuzzer's entry for the reader of packages: any bytes are entries whose every string lies inside, or a sentence.
 * They are read as they are, and once more under a right length and checksum. */
#include "runtime/package/package.h"

#include <stdlib.h>
#include <string.h>

static void read_package(const uint8_t *bytes, size_t n)
{
	package p;
	size_t sum = 0;
	if (package_decode(bytes, n, &p)) return;
	sum += strlen(p.producer);
	for (size_t i = 0; i < p.nentries; i++) {
		const package_entry *e = &p.entries[i];
		sum += strlen(e->kernel) + strlen(e->configuration) + strlen(e->target) + strlen(e->signature);
		sum += package_payload_holds(e);
		for (size_t k = 0; k < e->payload_bytes; k++) sum += ((const uint8_t *)e->payload)[k];
	}
	if (sum == 1) abort(); /* never: it keeps the reads */
	package_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	enum { AT_BYTES = 16, AT_CHECKSUM = 24, HEAD = 96 };
	uint8_t *copy = malloc(n ? n : 1);
	if (!copy) return 0;
	if (n) memcpy(copy, bytes, n);
	read_package(copy, n);
	if (n >= HEAD) {
		for (int i = 0; i < 8; i++) copy[AT_BYTES + i] = (uint8_t)((uint64_t)n >> (8 * i));
		memset(copy + AT_CHECKSUM, 0, 16);
		uint8_t sum[16];
		package_hash(copy, n, sum);
		memcpy(copy + AT_CHECKSUM, sum, 16);
		read_package(copy, n);
	}
	free(copy);
	return 0;
}
