/* PTX instructions one by one: each form on the same triples of operands, its results held against what a GPU gave.
 *
 *	instructions [--device=sim|cuda] [--record | --text | --text=sm_90]
 *
 * tests/data/instructions.txt has a line a form: its text and a result for every triple.  `--record` prints these lines
 * instead of comparing; they are to be recorded on a GPU.  `--text` prints the PTX.  A form without a line is counted
 *as skipped.  Results are compared bit by bit, those of the approximate functions within the bound that stands beside
 *them. */
#include "device_test.h"

#include <inttypes.h>

enum { TRIPLES = 32 };

typedef struct form {
	const char *text;  /* x, y, z in %h1.. %r1.. %d1.. by width; the result in %h0, %r0 or %d0 */
	unsigned bytes;    /* of the result */
	double ulps;       /* 0: exact */
	const char *needs; /* a later target; null: sm_80 */
} form;

#define INT(op, t)                                                                                                     \
	{op "." t "32 %r0, %r1, %r2;", 4, 0, NULL},                                                                    \
	{                                                                                                              \
		op "." t "64 %d0, %d1, %d2;", 8, 0, NULL                                                               \
	}
#define SHIFT(t)                                                                                                       \
	{t "32 %r0, %r1, %r3;", 4, 0, NULL},                                                                           \
	{                                                                                                              \
		t "64 %d0, %d1, %r3;", 8, 0, NULL                                                                      \
	}
#define F2(op)                                                                                                         \
	{op ".f32 %r0, %r1, %r2;", 4, 0, NULL},                                                                        \
	{                                                                                                              \
		op ".f64 %d0, %d1, %d2;", 8, 0, NULL                                                                   \
	}
#define HALF2(op)                                                                                                      \
	{op ".f16 %h0, %h1, %h2;", 2, 0, NULL},                                                                        \
	{                                                                                                              \
		op ".f16x2 %r0, %r1, %r2;", 4, 0, NULL                                                                 \
	}
#define TO(f, t, r, n)                                                                                                 \
	{                                                                                                              \
		"cvt." r "." t "." f, n, 0, NULL                                                                       \
	}
#define COMPARE(op, t, r)                                                                                              \
	{                                                                                                              \
		"setp." op "." t " %p1, %" r "1, %" r "2; selp.b32 %r0, 1, 0, %p1;", 4, 0, NULL                        \
	}
#define COMPARES(t, r)                                                                                                 \
	COMPARE("eq", t, r), COMPARE("ne", t, r), COMPARE("lt", t, r), COMPARE("le", t, r), COMPARE("gt", t, r),       \
		COMPARE("ge", t, r)
#define UNORDERED(t, r)                                                                                                \
	COMPARE("equ", t, r), COMPARE("neu", t, r), COMPARE("ltu", t, r), COMPARE("leu", t, r), COMPARE("gtu", t, r),  \
		COMPARE("geu", t, r), COMPARE("num", t, r), COMPARE("nan", t, r)
#define FLOAT_TO_INT(f, r)                                                                                             \
	{"cvt.rzi.s32." f " %r0, %" r "1;", 4, 0, NULL}, {"cvt.rzi.u32." f " %r0, %" r "1;", 4, 0, NULL},              \
		{"cvt.rzi.s64." f " %d0, %" r "1;", 8, 0, NULL}, {"cvt.rzi.u64." f " %d0, %" r "1;", 8, 0, NULL},      \
		{"cvt.rni.s32." f " %r0, %" r "1;", 4, 0, NULL}, {"cvt.rmi.s32." f " %r0, %" r "1;", 4, 0, NULL},      \
	{                                                                                                              \
		"cvt.rpi.u32." f " %r0, %" r "1;", 4, 0, NULL                                                          \
	}
#define INT_TO_FLOAT(t, r)                                                                                             \
	{"cvt.rn.f32." t " %r0, %" r "1;", 4, 0, NULL}, {"cvt.rz.f32." t " %r0, %" r "1;", 4, 0, NULL},                \
		{"cvt.rn.f64." t " %d0, %" r "1;", 8, 0, NULL}, {"cvt.rn.f16." t " %h0, %" r "1;", 2, 0, NULL},        \
		{"cvt.rm.f32." t " %r0, %" r "1;", 4, 0, NULL},                                                        \
	{                                                                                                              \
		"cvt.rp.f32." t " %r0, %" r "1;", 4, 0, NULL                                                           \
	}

static const form forms[] = {INT("add", "s"), INT("sub", "s"), INT("mul.lo", "s"), INT("mul.hi", "s"),
	INT("mul.hi", "u"), INT("min", "s"), INT("min", "u"), INT("max", "s"), INT("max", "u"), INT("and", "b"),
	INT("or", "b"), INT("xor", "b"), SHIFT("shl.b"), SHIFT("shr.u"), SHIFT("shr.s"),
	{"mad.lo.s32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"mad.lo.s64 %d0, %d1, %d2, %d3;", 8, 0, NULL},
	{"mad.hi.u32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"mul.wide.s32 %d0, %r1, %r2;", 8, 0, NULL},
	{"mul.wide.u32 %d0, %r1, %r2;", 8, 0, NULL}, {"mad.wide.s32 %d0, %r1, %r2, %d3;", 8, 0, NULL},
	{"mul.wide.s16 %r0, %h1, %h2;", 4, 0, NULL}, {"mul.lo.s16 %h0, %h1, %h2;", 2, 0, NULL},
	{"add.s16 %h0, %h1, %h2;", 2, 0, NULL}, {"shr.s16 %h0, %h1, %r3;", 2, 0, NULL},
	{"max.s16 %h0, %h1, %h2;", 2, 0, NULL}, {"not.b32 %r0, %r1;", 4, 0, NULL}, {"not.b64 %d0, %d1;", 8, 0, NULL},
	{"neg.s32 %r0, %r1;", 4, 0, NULL}, {"abs.s32 %r0, %r1;", 4, 0, NULL}, {"abs.s64 %d0, %d1;", 8, 0, NULL},
	{"neg.s64 %d0, %d1;", 8, 0, NULL}, {"or.b32 %r4, %r2, 1; div.u32 %r0, %r1, %r4;", 4, 0, NULL},
	{"or.b32 %r4, %r2, 1; rem.u32 %r0, %r1, %r4;", 4, 0, NULL},
	{"and.b32 %r4, %r2, 0x7fffffff; or.b32 %r4, %r4, 1; div.s32 %r0, %r1, %r4;", 4, 0, NULL},
	{"and.b32 %r4, %r2, 0x7fffffff; or.b32 %r4, %r4, 1; rem.s32 %r0, %r1, %r4;", 4, 0, NULL},
	{"or.b64 %d4, %d2, 1; div.u64 %d0, %d1, %d4;", 8, 0, NULL},
	{"or.b64 %d4, %d2, 1; rem.u64 %d0, %d1, %d4;", 8, 0, NULL}, {"popc.b32 %r0, %r1;", 4, 0, NULL},
	{"popc.b64 %r0, %d1;", 4, 0, NULL}, {"clz.b32 %r0, %r1;", 4, 0, NULL}, {"clz.b64 %r0, %d1;", 4, 0, NULL},
	{"brev.b32 %r0, %r1;", 4, 0, NULL}, {"brev.b64 %d0, %d1;", 8, 0, NULL}, {"bfind.u32 %r0, %r1;", 4, 0, NULL},
	{"bfind.s32 %r0, %r1;", 4, 0, NULL}, {"bfind.s64 %r0, %d1;", 4, 0, NULL},
	{"bfe.u32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"bfe.s32 %r0, %r1, %r2, %r3;", 4, 0, NULL},
	{"bfe.u64 %d0, %d1, %r2, %r3;", 8, 0, NULL}, {"bfe.s64 %d0, %d1, %r2, %r3;", 8, 0, NULL},
	{"bfe.s32 %r0, %r1, 5, 7;", 4, 0, NULL}, {"bfi.b32 %r0, %r1, %r2, 9, 11;", 4, 0, NULL},
	{"bfi.b32 %r0, %r1, %r2, %r3, 12;", 4, 0, NULL}, {"bfi.b64 %d0, %d1, %d2, 20, 30;", 8, 0, NULL},
	{"prmt.b32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"prmt.b32 %r0, %r1, %r2, 0x5410U;", 4, 0, NULL},
	{"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"shf.r.wrap.b32 %r0, %r1, %r2, %r3;", 4, 0, NULL},
	{"shf.l.clamp.b32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", 4, 0, NULL},
	{"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 4, 0, NULL}, {"lop3.b32 %r0, %r1, %r2, %r3, 0x1b;", 4, 0, NULL},
	{"dp4a.s32.s32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"dp4a.u32.u32 %r0, %r1, %r2, %r3;", 4, 0, NULL},
	{"dp4a.s32.u32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"set.lt.u32.s32 %r0, %r1, %r2;", 4, 0, NULL},
	{"set.lt.f32.f32 %r0, %r1, %r2;", 4, 0, NULL}, F2("add"), F2("sub"), F2("mul"), F2("min"), F2("max"),
	F2("div.rn"), {"fma.rn.f32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"fma.rn.f64 %d0, %d1, %d2, %d3;", 8, 0, NULL},
	{"min.NaN.f32 %r0, %r1, %r2;", 4, 0, NULL}, {"max.NaN.f32 %r0, %r1, %r2;", 4, 0, NULL},
	{"add.ftz.f32 %r0, %r1, %r2;", 4, 0, NULL}, {"mul.ftz.f32 %r0, %r1, %r2;", 4, 0, NULL},
	{"fma.rn.ftz.f32 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"neg.f32 %r0, %r1;", 4, 0, NULL},
	{"abs.f32 %r0, %r1;", 4, 0, NULL}, {"neg.f64 %d0, %d1;", 8, 0, NULL}, {"abs.f64 %d0, %d1;", 8, 0, NULL},
	{"copysign.f32 %r0, %r1, %r2;", 4, 0, NULL}, {"copysign.f64 %d0, %d1, %d2;", 8, 0, NULL},
	{"rcp.rn.f32 %r0, %r1;", 4, 0, NULL}, {"rcp.rn.f64 %d0, %d1;", 8, 0, NULL},
	{"sqrt.rn.f32 %r0, %r1;", 4, 0, NULL}, {"sqrt.rn.f64 %d0, %d1;", 8, 0, NULL},
	{"div.full.f32 %r0, %r1, %r2;", 4, 2, NULL}, {"rcp.approx.f32 %r0, %r1;", 4, 1, NULL},
	{"sqrt.approx.f32 %r0, %r1;", 4, 2, NULL}, {"rsqrt.approx.f32 %r0, %r1;", 4, 3, NULL},
	{"ex2.approx.f32 %r0, %r1;", 4, 2, NULL}, HALF2("add"), HALF2("sub"), HALF2("mul"), HALF2("min"), HALF2("max"),
	HALF2("max.NaN"), {"fma.rn.f16 %h0, %h1, %h2, %h3;", 2, 0, NULL},
	{"fma.rn.f16x2 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"fma.rn.bf16 %h0, %h1, %h2, %h3;", 2, 0, NULL},
	{"fma.rn.bf16x2 %r0, %r1, %r2, %r3;", 4, 0, NULL}, {"min.bf16 %h0, %h1, %h2;", 2, 0, NULL},
	{"max.bf16x2 %r0, %r1, %r2;", 4, 0, NULL}, {"neg.f16 %h0, %h1;", 2, 0, NULL},
	{"abs.f16x2 %r0, %r1;", 4, 0, NULL}, COMPARES("s32", "r"), COMPARES("u32", "r"), COMPARES("s64", "d"),
	COMPARES("u64", "d"), COMPARES("s16", "h"), COMPARES("f32", "r"), UNORDERED("f32", "r"), COMPARES("f64", "d"),
	UNORDERED("f64", "d"), COMPARES("f16", "h"), UNORDERED("f16", "h"), FLOAT_TO_INT("f32", "r"),
	FLOAT_TO_INT("f64", "d"), FLOAT_TO_INT("f16", "h"), INT_TO_FLOAT("s32", "r"), INT_TO_FLOAT("u32", "r"),
	INT_TO_FLOAT("s64", "d"), INT_TO_FLOAT("u64", "d"), {"cvt.f64.f32 %d0, %r1;", 8, 0, NULL},
	{"cvt.rn.f32.f64 %r0, %d1;", 4, 0, NULL}, {"cvt.rz.f32.f64 %r0, %d1;", 4, 0, NULL},
	{"cvt.rm.f32.f64 %r0, %d1;", 4, 0, NULL}, {"cvt.rp.f32.f64 %r0, %d1;", 4, 0, NULL},
	{"cvt.f32.f16 %r0, %h1;", 4, 0, NULL}, {"cvt.rn.f16.f32 %h0, %r1;", 2, 0, NULL},
	{"cvt.rz.f16.f32 %h0, %r1;", 2, 0, NULL}, {"cvt.rn.f16.f64 %h0, %d1;", 2, 0, NULL},
	{"cvt.rn.bf16.f32 %h0, %r1;", 2, 0, NULL}, {"cvt.rz.bf16.f32 %h0, %r1;", 2, 0, NULL},
	{"cvt.rn.f16x2.f32 %r0, %r1, %r2;", 4, 0, NULL}, {"cvt.rn.bf16x2.f32 %r0, %r1, %r2;", 4, 0, NULL},
	{"cvt.rn.relu.f16x2.f32 %r0, %r1, %r2;", 4, 0, NULL}, {"cvt.rna.tf32.f32 %r0, %r1;", 4, 0, NULL},
	{"cvt.rni.f32.f32 %r0, %r1;", 4, 0, NULL}, {"cvt.rmi.f32.f32 %r0, %r1;", 4, 0, NULL},
	{"cvt.rpi.f64.f64 %d0, %d1;", 8, 0, NULL}, {"cvt.rzi.f16.f16 %h0, %h1;", 2, 0, NULL},
	{"cvt.sat.f32.f32 %r0, %r1;", 4, 0, NULL}, {"cvt.s64.s32 %d0, %r1;", 8, 0, NULL},
	{"cvt.u64.u32 %d0, %r1;", 8, 0, NULL}, {"cvt.u32.u64 %r0, %d1;", 4, 0, NULL},
	{"cvt.s32.s16 %r0, %h1;", 4, 0, NULL}, {"cvt.u32.u16 %r0, %h1;", 4, 0, NULL},
	{"cvt.s32.s8 %r0, %r1;", 4, 0, NULL}, {"cvt.u32.u8 %r0, %r1;", 4, 0, NULL},
	{"cvt.s16.s8 %h0, %h1;", 2, 0, NULL}, {"cvt.sat.s8.s32 %r0, %r1;", 4, 0, NULL},
	{"cvt.sat.u8.s32 %r0, %r1;", 4, 0, NULL}, {"cvt.sat.u16.s64 %h0, %d1;", 2, 0, NULL},
	{"cvt.rn.satfinite.e4m3x2.f32 %h0, %r1, %r2;", 2, 0, "sm_90"},
	{"cvt.rn.satfinite.e5m2x2.f32 %h0, %r1, %r2;", 2, 0, "sm_90"}, {"cvt.rn.f16x2.e4m3x2 %r0, %h1;", 4, 0, "sm_90"},
	{"cvt.rn.f16x2.e5m2x2 %r0, %h1;", 4, 0, "sm_90"}, {"add.bf16 %h0, %h1, %h2;", 2, 0, "sm_90"},
	{"mul.bf16x2 %r0, %r1, %r2;", 4, 0, "sm_90"}};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* Numbers that matter in some type, as 64-bit patterns whose low halves matter in a narrower one. */
static const uint64_t special[] = {0, 1, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
	0x7ff8000000000000, 0x0010000000000000, 0x000fffffffffffff, 0x7fefffffffffffff, 0x8000000000000000, UINT64_MAX,
	0x3f8000003f800000, 0xbf800000bf800000, 0x7f8000007f800000, 0xff800000ff800000, 0x7fc000007fc12345,
	0x00800000007fffff, 0x7f7fffff7f7fffff, 0x8000000080000000, 0x3c003c003c003c00, 0x7c00fc007c00fc00,
	0x7e007bff03ff0400, 0x4f0000004effffff, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000200000,
	0x43e0000000000000, 0x3fb999999999999a, 0x4009000040490fdb, 0x47efffffe0000001, 0x36a0000000000001};
enum { SPECIALS = sizeof special / sizeof special[0] };

static void make_triples(uint64_t in[3 * TRIPLES])
{
	uint64_t state = 42;
	for (unsigned i = 0; i < TRIPLES; i++)
		for (unsigned k = 0; k < 3; k++) {
			unsigned pick = (unsigned)(suite_random(&state) % (2 * SPECIALS));
			in[3 * i + k] = k == 0            ? special[i % SPECIALS]
					: pick < SPECIALS ? special[pick]
							  : suite_random(&state);
		}
}

static char *make_text(const char *needs, const char *target, const char *version)
{
	size_t room = 4096 + FORMS * 400, n = 0;
	char *t = suite_alloc(room);
	n += (size_t)snprintf(t, room,
		"// blk: kernel k\n// blk: symbol k\n// blk: param out *u64\n// blk: param in *const u64\n// blk: grid "
		"0 1\n"
		"// blk: num_warps 1\n// blk: target %s\n// blk: written 0\n// blk: threads 32\n// blk: shared 0\n"
		".version %s\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 k_param_0, .param .u64 "
		"k_param_1)\n"
		".reqntid 32, 1, 1\n{\n.reg .pred %%p<2>;\n.reg .b16 %%h<5>;\n.reg .b32 %%r<6>;\n.reg .b64 %%d<5>, "
		"%%out, %%in;\n"
		"ld.param.b64 %%out, [k_param_0];\nld.param.b64 %%in, [k_param_1];\nmov.u32 %%r5, %%tid.x;\n"
		"mad.wide.u32 %%in, %%r5, 24, %%in;\nmad.wide.u32 %%out, %%r5, 8, %%out;\n",
		target, version, target);
	for (int k = 1; k <= 3; k++)
		n += (size_t)snprintf(t + n, room - n,
			"ld.global.b64 %%d%d, [%%in+%d];\ncvt.u32.u64 %%r%d, %%d%d;\ncvt.u16.u64 %%h%d, %%d%d;\n", k,
			8 * (k - 1), k, k, k, k);
	for (unsigned f = 0; f < FORMS; f++) {
		if ((forms[f].needs != NULL) != (needs != NULL)) continue;
		const char *widen = forms[f].bytes == 2   ? "cvt.u64.u16 %d0, %h0;\n"
				    : forms[f].bytes == 4 ? "cvt.u64.u32 %d0, %r0;\n"
							  : "";
		n += (size_t)snprintf(t + n, room - n, "%s\n%sst.global.b64 [%%out+%u], %%d0;\n", forms[f].text, widen,
			8 * TRIPLES * f);
	}
	snprintf(t + n, room - n, "ret;\n}\n");
	return t;
}

/* Runs the forms that need no more than the target, results by form and triple. */
static bool run_forms(suite *s, const char *needs, uint64_t *out)
{
	uint64_t in[3 * TRIPLES];
	blk_module *m = NULL;
	blk_kernel *k;
	blk_buffer *to = NULL, *from = NULL;
	make_triples(in);
	char *text = make_text(needs, needs ? needs : "sm_80", needs ? "8.1" : "7.1");
	bool good = blk_module_source(s->device, "instructions.ptx", text, NULL, 0, &m) == BLK_OK &&
		    blk_kernel_find(m, "k", &k) == BLK_OK &&
		    blk_buffer_create(s->device, FORMS * TRIPLES * 8, &to) == BLK_OK &&
		    blk_buffer_create(s->device, sizeof in, &from) == BLK_OK &&
		    blk_buffer_write(to, 0, out, FORMS * TRIPLES * 8) == BLK_OK &&
		    blk_buffer_write(from, 0, in, sizeof in) == BLK_OK &&
		    blk_launch(k, NULL, NULL, BLK_ARGS(blk_buf(to), blk_buf(from))) == BLK_OK &&
		    blk_buffer_read(to, 0, out, FORMS * TRIPLES * 8) == BLK_OK;
	if (!good) printf("%s\n", blk_error());
	free(text);
	blk_module_close(m);
	blk_buffer_free(to);
	blk_buffer_free(from);
	return good;
}

static void record(const uint64_t *out)
{
	for (unsigned f = 0; f < FORMS; f++) {
		printf("%s |", forms[f].text);
		for (unsigned i = 0; i < TRIPLES; i++) printf(" %" PRIx64, out[f * TRIPLES + i]);
		printf("\n");
	}
}

/* The recorded results of a form; false: there are none. */
static bool recorded(const char *file, const char *form_text, uint64_t want[TRIPLES])
{
	size_t n = strlen(form_text);
	for (const char *line = file; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		if (strncmp(line, form_text, n) != 0 || strncmp(line + n, " |", 2) != 0) continue;
		char *at = (char *)line + n + 2;
		for (unsigned i = 0; i < TRIPLES; i++) want[i] = strtoull(at, &at, 16);
		return true;
	}
	return false;
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	if (!f) return NULL;
	size_t room = 1 << 20;
	char *text = suite_alloc(room);
	text[fread(text, 1, room - 1, f)] = 0;
	fclose(f);
	return text;
}

static int compare(suite *s, const uint64_t *out)
{
	char *file = read_file("tests/data/instructions.txt");
	int skipped = 0;
	for (unsigned f = 0; f < FORMS; f++) {
		uint64_t want[TRIPLES];
		if (!file || !recorded(file, forms[f].text, want)) {
			skipped++;
			continue;
		}
		bool good = true;
		for (unsigned i = 0; i < TRIPLES && good; i++) {
			uint64_t got = out[f * TRIPLES + i];
			good = got == want[i];
			if (!good && forms[f].ulps > 0)
				good = ulps(SCALAR_F32, got, scalar_to_double(SCALAR_F32, want[i])) <= forms[f].ulps;
			if (!good)
				printf("%s triple %u: %" PRIx64 ", a GPU gave %" PRIx64 "\n", forms[f].text, i, got,
					want[i]);
		}
		*(good ? &s->passed : &s->failed) += 1;
	}
	free(file);
	return skipped;
}

int main(int argc, char **argv)
{
	suite s;
	blk_device_info info = {.kind = BLK_DEVICE_CPU};
	if (argc > 1 && strncmp(argv[argc - 1], "--text", 6) == 0) {
		char *text = strcmp(argv[argc - 1], "--text=sm_90") == 0 ? make_text("sm_90", "sm_90", "8.1")
									 : make_text(NULL, "sm_80", "7.1");
		printf("%s", text);
		free(text);
		return 0;
	}
	bool records = argc > 1 && strcmp(argv[argc - 1], "--record") == 0;
	suite_open(&s, records ? argc - 1 : argc, argv);
	uint64_t *out = suite_alloc(FORMS * TRIPLES * 8);
	int skipped = FORMS;
	bool good = blk_device_query(s.device, &info) == BLK_OK;
	if (good && info.kind != BLK_DEVICE_CPU) {
		good = run_forms(&s, NULL, out) && (info.compute_capability < 89 || run_forms(&s, "sm_90", out));
		skipped = 0;
		if (good && records) record(out);
		if (good && !records) skipped = compare(&s, out);
	}
	if (!good) s.failed++;
	free(out);
	blk_device_close(s.device);
	if (!records) printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, skipped);
	return s.failed != 0;
}
