/* libFuzzer's entry for the simulator's reader of PTX: any bytes are an answer or an error, never more. */
#include "runtime/sim/sim.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char error[640], *text = malloc(n + 1);
	sim_code *c;
	if (!text) return 0;
	memcpy(text, bytes, n);
	text[n] = 0;
	if (sim_code_parse(text, "k", &c, error, sizeof error)) sim_code_free(c);
	free(text);
	return 0;
}
