/* PTX instructions one by one: each form on the same operands, its results held against what a GPU gave.
 *
 *	instructions [--device=sim|cuda] [--record | --text=TARGET]
 *
 * tests/data/instructions.txt has a line a form: its text and a result for each of the 32 lanes.  `--record` prints
 *these lines instead of comparing; they are to be recorded on a GPU.  `--text` prints the PTX of a target.  A form that
 *the device is too old for, or that has no line, is counted as skipped.  Results are compared bit by bit, those of the
 * approximate functions within the bound that stands beside them.
 *
 * The forms are tables (instruction_forms.h, instruction_lanes.h).  Some dozens run as one kernel; one that does not
 *run is looked for by halves. */
#include "device_test.h"

#include "instruction_forms.h"
#include "instruction_lanes.h"

#include <inttypes.h>

enum { LANES = 32, WORDS = 16, CHUNK = 48, SCRATCH = 64 };

typedef struct form {
	const char *text;
	unsigned bytes; /* of the result */
	double ulps;    /* 0: exact */
	unsigned since; /* 80, 90, or 91: sm_90a and four warps, whose results are added up */
} form;

static const form forms[] = {INTEGER_FORMS, CHOICE_FORMS, FLOAT_FORMS, CONVERSION_FORMS, EXCHANGE_FORMS, MEMORY_FORMS,
	ATOMIC_FORMS, ASYNC_FORMS, MATRIX_FORMS, WARPGROUP_FORMS};
enum { FORMS = sizeof forms / sizeof forms[0], TABLE = FORMS * LANES };

/* ---- operands ---- */

/* Numbers that matter, of each width. */
static const uint64_t special64[] = {0, 1, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
	0xfff0000000000000, 0x7ff8000000000000, 0x0010000000000000, 0x000fffffffffffff, 0x7fefffffffffffff,
	0x8000000000000000, UINT64_MAX, 0x7fffffffffffffff, 0xbf800000bf800000, 0xfff8000000012345, 0x7ff0000000000001,
	0x4093480000000000, 0x3e70000000000001, 0x40f0000000000000, 0x8000000080000000, 0x3fe0000000000000,
	0x3ff8000000000000, 0xc004000000000000, 0x47f0000000000000, 0x41dfffffffc00000, 0x41e0000000000000,
	0xc1e0000000200000, 0x43e0000000000000, 0x3fb999999999999a, 0x4009000040490fdb, 0x47efffffe0000001,
	0x36a0000000000001};
static const uint32_t special32[] = {0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x807fffff, 0x3f800000,
	0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0xffffffff,
	0x7fffffff, 0x4f000000, 0x4effffff, 0xcf000000, 0xcf000001, 0x5f000000, 0x3f000000, 0x3fc00000, 0x40200000,
	0x40490fdb, 0xc2c80000, 0x33800001, 0x3c003c00, 0x7c00fc00, 0x03ff8400};
static const uint16_t special16[] = {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00,
	0xfe00, 0xffff, 0x7fff, 0x3c00, 0xbc00, 0x4248, 0x3555, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 0x80, 0x7f, 0x3f80,
	0xbf80, 0x4049, 0xc2f7, 0x5bff, 0x64ff, 0x38};
enum { SPECIALS = 32 };

typedef struct operands { /* of a lane, in the order in which the kernel loads them */
	uint64_t wide[3];
	uint32_t word[3], words[WORDS];
	uint16_t half[3], pad[3];
} operands;

static void make_operands(operands in[LANES])
{
	uint64_t state = 42;
	memset(in, 0, LANES * sizeof *in);
	for (unsigned i = 0; i < LANES; i++) {
		for (unsigned k = 0; k < 3; k++) {
			unsigned pick = (unsigned)(suite_random(&state) % (2 * SPECIALS));
			uint64_t r = suite_random(&state);
			bool is_special = k == 0 || pick < SPECIALS;
			if (k == 0) pick = i;
			in[i].wide[k] = is_special ? special64[pick] : r;
			in[i].word[k] = is_special ? special32[pick] : (uint32_t)r;
			in[i].half[k] = is_special ? special16[pick] : (uint16_t)r;
		}
		for (unsigned k = 0; k < WORDS; k++) in[i].words[k] = (uint32_t)suite_random(&state);
	}
}

/* ---- kernels ---- */

static const char *target_of(unsigned since)
{
	return since == 80 ? "sm_80" : since == 90 ? "sm_90" : "sm_90a";
}

/* Its nth form leaves its results at out[n * LANES]. */
static char *make_text(const unsigned *which, unsigned count, unsigned since)
{
	unsigned threads = since == 91 ? 4 * LANES : LANES;
	size_t room = 8192, n = 0;
	for (unsigned f = 0; f < count; f++) room += strlen(forms[which[f]].text) + 200;
	char *t = suite_alloc(room);
	n += (size_t)snprintf(t, room,
		"// blk: kernel k\n// blk: symbol k\n// blk: param out *u64\n// blk: param in *const u64\n"
		"// blk: param scratch *u64\n// blk: grid 0 1\n// blk: num_warps %u\n// blk: target %s\n"
		"// blk: written 0 2\n// blk: threads %u\n// blk: shared 0\n"
		".version %s\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 k_param_0, .param .u64 "
		"k_param_1, .param .u64 k_param_2)\n"
		".reqntid %u, 1, 1\n{\n.shared .align 1024 .b8 room[11264];\n"
		".reg .pred %%p<4>;\n.reg .b16 %%h<8>;\n.reg .b32 %%r<14>, %%w<16>, %%x<8>, %%l, %%t, %%s;\n"
		".reg .b64 %%d<8>, %%out, %%in, %%g;\n"
		"ld.param.b64 %%out, [k_param_0];\nld.param.b64 %%in, [k_param_1];\nld.param.b64 %%g, [k_param_2];\n"
		"mov.u32 %%t, %%tid.x;\nand.b32 %%l, %%t, 31;\nmov.b32 %%s, room;\n"
		"mad.wide.u32 %%in, %%l, %u, %%in;\nmad.wide.u32 %%out, %%l, 8, %%out;\nmad.wide.u32 %%g, %%t, %u, "
		"%%g;\n",
		threads / LANES, target_of(since), threads, since == 80 ? "7.8" : "8.4", target_of(since), threads,
		(unsigned)sizeof(operands), SCRATCH);
	for (unsigned k = 0; k < 3; k++)
		n += (size_t)snprintf(t + n, room - n,
			"ld.global.b64 %%d%u, [%%in+%u];\nld.global.b32 %%r%u, [%%in+%u];\nld.global.b16 %%h%u, "
			"[%%in+%u];\n",
			k + 1, (unsigned)offsetof(operands, wide) + 8 * k, k + 1,
			(unsigned)offsetof(operands, word) + 4 * k, k + 1, (unsigned)offsetof(operands, half) + 2 * k);
	for (unsigned k = 0; k < WORDS; k++)
		n += (size_t)snprintf(t + n, room - n, "ld.global.b32 %%w%u, [%%in+%u];\n", k,
			(unsigned)offsetof(operands, words) + 4 * k);
	for (unsigned f = 0; f < count; f++) {
		const form *a = &forms[which[f]];
		const char *widen = a->bytes == 2   ? "cvt.u64.u16 %d0, %h0;\n"
				    : a->bytes == 4 ? "cvt.u64.u32 %d0, %r0;\n"
						    : "";
		n += (size_t)snprintf(t + n, room - n, "%s\n%s%s.global.%s64 [%%out+%u], %%d0;\n", a->text, widen,
			since == 91 ? "red" : "st", since == 91 ? "add.u" : "b", 8 * LANES * f);
	}
	snprintf(t + n, room - n, "ret;\n}\n");
	return t;
}

static bool run_kernel(suite *s, const unsigned *which, unsigned count, unsigned since, uint64_t *out)
{
	operands in[LANES];
	blk_module *m = NULL;
	blk_kernel *k;
	blk_buffer *to = NULL, *from = NULL, *scratch = NULL;
	size_t bytes = (size_t)count * LANES * 8;
	uint64_t *nothing = suite_alloc(bytes > 4 * LANES * SCRATCH ? bytes : 4 * LANES * SCRATCH),
		 *got = suite_alloc(bytes);
	char *text = make_text(which, count, since);
	make_operands(in);
	bool good = blk_module_source(s->device, "instructions.ptx", text, NULL, 0, &m) == BLK_OK &&
		    blk_kernel_find(m, "k", &k) == BLK_OK && blk_buffer_create(s->device, bytes, &to) == BLK_OK &&
		    blk_buffer_create(s->device, sizeof in, &from) == BLK_OK &&
		    blk_buffer_create(s->device, 4 * LANES * SCRATCH, &scratch) == BLK_OK &&
		    blk_buffer_write(to, 0, nothing, bytes) == BLK_OK &&
		    blk_buffer_write(from, 0, in, sizeof in) == BLK_OK &&
		    blk_buffer_write(scratch, 0, nothing, 4 * LANES * SCRATCH) == BLK_OK &&
		    blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(to), blk_buf(from), blk_buf(scratch))) == BLK_OK &&
		    blk_buffer_read(to, 0, got, bytes) == BLK_OK;
	for (unsigned f = 0; good && f < count; f++) memcpy(&out[which[f] * LANES], &got[f * LANES], LANES * 8);
	free(text);
	free(nothing);
	free(got);
	blk_module_close(m);
	blk_buffer_free(to);
	blk_buffer_free(from);
	blk_buffer_free(scratch);
	return good;
}

/* Those that do not run are found, said and counted; the others' results are in `out` and `ran`. */
static void run_forms(suite *s, const unsigned *which, unsigned count, unsigned since, uint64_t *out, bool *ran)
{
	if (run_kernel(s, which, count, since, out)) {
		for (unsigned f = 0; f < count; f++) ran[which[f]] = true;
	} else if (count == 1) {
		fprintf(stderr, "%s\n  %s\n", forms[*which].text, blk_error());
		s->failed++;
	} else {
		run_forms(s, which, count / 2, since, out, ran);
		run_forms(s, which + count / 2, count - count / 2, since, out, ran);
	}
}

static unsigned forms_of(unsigned since, unsigned which[FORMS])
{
	unsigned n = 0;
	for (unsigned f = 0; f < FORMS; f++)
		if (forms[f].since == since) which[n++] = f;
	return n;
}

/* ---- what a GPU gave ---- */

static void record(const uint64_t *out, const bool *ran)
{
	for (unsigned f = 0; f < FORMS; f++) {
		if (!ran[f]) continue;
		printf("%s |", forms[f].text);
		for (unsigned i = 0; i < LANES; i++) printf(" %" PRIx64, out[f * LANES + i]);
		printf("\n");
	}
}

/* The recorded results of a form; false: there are none. */
static bool recorded(const char *file, const char *form_text, uint64_t want[LANES])
{
	size_t n = strlen(form_text);
	for (const char *line = file; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		if (strncmp(line, form_text, n) != 0 || strncmp(line + n, " |", 2) != 0) continue;
		char *at = (char *)line + n + 2;
		for (unsigned i = 0; i < LANES; i++) want[i] = strtoull(at, &at, 16);
		return true;
	}
	return false;
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	if (!f) return NULL;
	size_t room = 1 << 21;
	char *text = suite_alloc(room);
	text[fread(text, 1, room - 1, f)] = 0;
	fclose(f);
	return text;
}

static bool near(const form *a, uint64_t got, uint64_t want)
{
	scalar t = a->bytes == 4 ? SCALAR_F32 : strstr(a->text, ".bf16 ") ? SCALAR_BF16 : SCALAR_F16;
	return got == want || (a->ulps > 0 && ulps(t, got, scalar_to_double(t, want)) <= a->ulps);
}

static int compare(suite *s, const uint64_t *out, const bool *ran)
{
	char *file = read_file("tests/data/instructions.txt");
	int skipped = 0;
	for (unsigned f = 0; f < FORMS; f++) {
		uint64_t want[LANES];
		unsigned wrong = 0;
		if (!ran[f] || !file || !recorded(file, forms[f].text, want)) {
			skipped++;
			continue;
		}
		for (unsigned i = 0; i < LANES; i++) {
			if (near(&forms[f], out[f * LANES + i], want[i])) continue;
			if (!wrong++) printf("%s\n", forms[f].text);
			printf("  lane %u: %" PRIx64 ", a GPU gave %" PRIx64 "\n", i, out[f * LANES + i], want[i]);
		}
		*(wrong ? &s->failed : &s->passed) += 1;
	}
	free(file);
	return skipped;
}

/* ---- the command line ---- */

static int print_text(const char *target)
{
	for (unsigned since = 80; since <= 91; since += since == 80 ? 10 : 1) {
		unsigned which[FORMS], n = forms_of(since, which);
		if (strcmp(target, target_of(since)) != 0) continue;
		char *text = make_text(which, n, since);
		printf("%s", text);
		free(text);
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	suite s;
	blk_device_info info = {.kind = BLK_DEVICE_CPU};
	const char *last = argc > 1 ? argv[argc - 1] : "";
	if (strncmp(last, "--text=", 7) == 0) return print_text(last + 7);
	bool records = strcmp(last, "--record") == 0;
	suite_open(&s, records ? argc - 1 : argc, argv);
	uint64_t *out = suite_alloc(TABLE * sizeof *out);
	bool *ran = suite_alloc(FORMS * sizeof *ran);
	int skipped = FORMS;
	if (blk_device_query(s.device, &info) != BLK_OK) s.failed++;
	if (info.kind != BLK_DEVICE_CPU) {
		unsigned newest = info.compute_capability < 90 ? 80 : info.compute_capability == 90 ? 91 : 90;
		for (unsigned since = 80; since <= newest; since += since == 80 ? 10 : 1) {
			unsigned which[FORMS], n = forms_of(since, which);
			/* ptxas mixes up the wgmmas of one kernel whose sums begin with the same constants */
			unsigned chunk = since == 91 ? 1 : CHUNK;
			for (unsigned at = 0; at < n; at += chunk)
				run_forms(&s, which + at, n - at < chunk ? n - at : chunk, since, out, ran);
		}
		if (records) record(out, ran);
		if (!records) skipped = compare(&s, out, ran);
	}
	free(out);
	free(ran);
	blk_device_close(s.device);
	if (!records) printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, skipped);
	return s.failed != 0;
}
