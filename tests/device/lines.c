/* Lines that a thread's registers do not hold, are barely held by, or share with other lines: each way in which a sort
 * or a scan is put together, once. */
#include "scan_forms.h"

typedef struct line_case {
	const char *form;
	shape sh;
	int axis, warps;
	scalar elem;
	unsigned kind;
} line_case;

static const line_case cases[] = {
	/* more than 128 words of keys a thread: in memory, between registers, lanes and warps */
	{"sort", {1, {8192}}, 0, 1, SCALAR_I32, 0},
	{"sort_descending", {1, {16384}}, 0, 2, SCALAR_U32, 0},
	{"sort", {1, {4096}}, 0, 1, SCALAR_F64, 2},
	/* up to 128: stages of the network in loops, with and without warps */
	{"sort", {1, {4096}}, 0, 1, SCALAR_I32, 0},
	{"sort", {1, {8192}}, 0, 4, SCALAR_U64, 0},
	{"topk_half", {1, {4096}}, 0, 1, SCALAR_F32, 2},
	/* few: straight code; several lines beside each other in a thread */
	{"sort", {2, {16, 64}}, 1, 1, SCALAR_I64, 0},
	{"sort", {2, {64, 16}}, 0, 1, SCALAR_I8, 0},
	{"sort", {1, {512}}, 0, 4, SCALAR_BOOL, 0},
	{"sort_descending", {1, {256}}, 0, 2, SCALAR_BOOL, 0},
	{"topk_8", {2, {4, 512}}, 1, 4, SCALAR_I64, 0},
	{"sort_descending", {1, {64}}, 0, 4, SCALAR_BF16, 2},
	{"sort", {2, {512, 8}}, 1, 1, SCALAR_I32, 0},
	{"topk_1", {2, {512, 8}}, 1, 1, SCALAR_I32, 0},
	{"topk_half", {2, {64, 16}}, 0, 4, SCALAR_I16, 0},
	{"topk_1", {3, {4, 8, 16}}, 1, 1, SCALAR_F16, 0},
	{"topk_8", {1, {64}}, 0, 1, SCALAR_U8, 0},
	/* scans in pieces: a thread's registers of the axis, and those beside it */
	{"affine", {2, {512, 8}}, 0, 1, SCALAR_I32, 0},
	{"affine_reverse", {2, {256, 8}}, 0, 1, SCALAR_U64, 0},
	{"cumsum_reverse", {1, {16384}}, 0, 1, SCALAR_I32, 0},
	{"last", {3, {4, 1024, 4}}, 1, 2, SCALAR_F64, 0},
	/* scans in registers: first, later, between lanes and warps */
	{"affine", {1, {1024}}, 0, 4, SCALAR_I32, 0},
	{"affine_reverse", {2, {64, 16}}, 0, 4, SCALAR_I64, 0},
	{"affine", {3, {8, 16, 8}}, 1, 1, SCALAR_U32, 0},
	{"last_reverse", {2, {4, 512}}, 1, 8, SCALAR_F16, 0},
	{"flip", {1, {512}}, 0, 4, SCALAR_F16, 0},
	{"flip", {2, {16, 64}}, 1, 1, SCALAR_U8, 0},
};

int main(int argc, char **argv)
{
	suite s;
	suite_open(&s, argc, argv);
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
		for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
			if (strcmp(forms[f].name, cases[c].form) == 0)
				run_form(&s, &forms[f], &cases[c].sh, cases[c].axis, cases[c].elem, cases[c].warps,
					cases[c].kind);
	return suite_close(&s);
}
