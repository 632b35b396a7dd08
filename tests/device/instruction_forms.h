/* The arithmetic of instructions.c: one instruction on registers, at most with what makes its operands legal.
 * x, y and z are in %h1.., %r1.. and %d1.. by width; the result goes to %h0, %r0 or %d0. */
#ifndef BLK_INSTRUCTION_FORMS_H
#define BLK_INSTRUCTION_FORMS_H

/* one to three operands in registers of a letter; what follows: bytes, ulps, since which GPU */
#define FORM1(op, r, ...)                                                                                              \
	{                                                                                                              \
		op " %" r "0, %" r "1;", __VA_ARGS__                                                                   \
	}
#define FORM2(op, r, ...)                                                                                              \
	{                                                                                                              \
		op " %" r "0, %" r "1, %" r "2;", __VA_ARGS__                                                          \
	}
#define FORM3(op, r, ...)                                                                                              \
	{                                                                                                              \
		op " %" r "0, %" r "1, %" r "2, %" r "3;", __VA_ARGS__                                                 \
	}
#define H1(op) FORM1(op, "h", 2, 0, 80)
#define H2(op) FORM2(op, "h", 2, 0, 80)
#define H3(op) FORM3(op, "h", 2, 0, 80)
#define R1(op) FORM1(op, "r", 4, 0, 80)
#define R2(op) FORM2(op, "r", 4, 0, 80)
#define R3(op) FORM3(op, "r", 4, 0, 80)
#define D1(op) FORM1(op, "d", 8, 0, 80)
#define D2(op) FORM2(op, "d", 8, 0, 80)
#define D3(op) FORM3(op, "d", 8, 0, 80)
#define HOPPER_H1(op) FORM1(op, "h", 2, 0, 90)
#define HOPPER_H2(op) FORM2(op, "h", 2, 0, 90)
#define HOPPER_R1(op) FORM1(op, "r", 4, 0, 90)
#define HOPPER_R2(op) FORM2(op, "r", 4, 0, 90)
/* within so many units of the last place of what the GPU gave */
#define NEAR1(op, ulps) FORM1(op ".f32", "r", 4, ulps, 80)
#define NEAR2(op, ulps) FORM2(op ".f32", "r", 4, ulps, 80)

/* ---- integers ---- */

#define BOTH_SIGNS(op) R2(op ".s32"), R2(op ".u32"), D2(op ".s64"), D2(op ".u64"), H2(op ".s16"), H2(op ".u16")
#define LOGIC(op) H2(op ".b16"), R2(op ".b32"), D2(op ".b64")
#define SHIFT(op, t)                                                                                                   \
	{op "." t "16 %h0, %h1, %r3;", 2, 0, 80}, {op "." t "32 %r0, %r1, %r3;", 4, 0, 80},                            \
		{op "." t "64 %d0, %d1, %r3;", 8, 0, 80},                                                              \
		{"and.b32 %r4, %r3, 15; " op "." t "16 %h0, %h1, %r4;", 2, 0, 80},                                     \
		{"and.b32 %r4, %r3, 31; " op "." t "32 %r0, %r1, %r4;", 4, 0, 80},                                     \
	{                                                                                                              \
		"and.b32 %r4, %r3, 63; " op "." t "64 %d0, %d1, %r4;", 8, 0, 80                                        \
	}
/* no divisor is 0 */
#define DIVIDE(op)                                                                                                     \
	{"or.b32 %r4, %r2, 1; " op ".u32 %r0, %r1, %r4;", 4, 0, 80},                                                   \
		{"and.b32 %r4, %r2, 0x7fffffff; or.b32 %r4, %r4, 1; " op ".s32 %r0, %r1, %r4;", 4, 0, 80},             \
		{"or.b64 %d4, %d2, 1; " op ".u64 %d0, %d1, %d4;", 8, 0, 80},                                           \
		{"shr.u64 %d4, %d2, 1; or.b64 %d4, %d4, 1; " op ".s64 %d0, %d1, %d4;", 8, 0, 80},                      \
		{"shr.u64 %d4, %d2, 40; or.b64 %d4, %d4, 1; " op ".u64 %d0, %d1, %d4;", 8, 0, 80},                     \
		{"or.b16 %h4, %h2, 1; " op ".u16 %h0, %h1, %h4;", 2, 0, 80},                                           \
	{                                                                                                              \
		"and.b16 %h4, %h2, 0x7fff; or.b16 %h4, %h4, 1; " op ".s16 %h0, %h1, %h4;", 2, 0, 80                    \
	}
#define LOOKUP(table)                                                                                                  \
	{                                                                                                              \
		"lop3.b32 %r0, %r1, %r2, %r3, " table ";", 4, 0, 80                                                    \
	}
#define FUNNEL(how)                                                                                                    \
	{"shf." how ".b32 %r0, %r1, %r2, %r3;", 4, 0, 80},                                                             \
	{                                                                                                              \
		"shf." how ".b32 %r0, %r1, %r2, 7;", 4, 0, 80                                                          \
	}
#define PERMUTE(mode)                                                                                                  \
	{                                                                                                              \
		"prmt.b32" mode " %r0, %r1, %r2, %r3;", 4, 0, 80                                                       \
	}
/* positions and lengths are bytes: what a GPU makes of more is its own business */
#define FIELDS(t, r, bytes)                                                                                            \
	{"and.b32 %r4, %w0, 255; and.b32 %r6, %w1, 255; bfe." t " %" r "0, %" r "1, %r4, %r6;", bytes, 0, 80},         \
		{"and.b32 %r4, %w0, 31; and.b32 %r6, %w1, 31; bfe." t " %" r "0, %" r "1, %r4, %r6;", bytes, 0, 80},   \
	{                                                                                                              \
		"bfe." t " %" r "0, %" r "1, 5, 7;", bytes, 0, 80                                                      \
	}
#define INSERT(t, r, bytes)                                                                                            \
	{"and.b32 %r4, %w0, 255; and.b32 %r6, %w1, 255; bfi." t " %" r "0, %" r "1, %" r "2, %r4, %r6;", bytes, 0,     \
		80},                                                                                                   \
		{"and.b32 %r4, %w0, 31; and.b32 %r6, %w1, 31; bfi." t " %" r "0, %" r "1, %" r "2, %r4, %r6;", bytes,  \
			0, 80},                                                                                        \
	{                                                                                                              \
		"bfi." t " %" r "0, %" r "1, %" r "2, 9, 11;", bytes, 0, 80                                            \
	}
#define COUNT(op)                                                                                                      \
	{op ".b32 %r0, %r1;", 4, 0, 80},                                                                               \
	{                                                                                                              \
		op ".b64 %r0, %d1;", 4, 0, 80                                                                          \
	}
#define FIND(op)                                                                                                       \
	{op ".u32 %r0, %r1;", 4, 0, 80}, {op ".s32 %r0, %r1;", 4, 0, 80}, {op ".u64 %r0, %d1;", 4, 0, 80},             \
	{                                                                                                              \
		op ".s64 %r0, %d1;", 4, 0, 80                                                                          \
	}

#define INTEGER_FORMS                                                                                                  \
	BOTH_SIGNS("add"), BOTH_SIGNS("sub"), BOTH_SIGNS("mul.lo"), BOTH_SIGNS("mul.hi"), BOTH_SIGNS("min"),           \
		BOTH_SIGNS("max"), LOGIC("and"), LOGIC("or"), LOGIC("xor"), SHIFT("shl", "b"), SHIFT("shr", "u"),      \
		SHIFT("shr", "s"), DIVIDE("div"), DIVIDE("rem"), R3("mad.lo.s32"), R3("mad.lo.u32"), D3("mad.lo.s64"), \
		H3("mad.lo.u16"), R3("mad.hi.s32"), R3("mad.hi.u32"), D3("mad.hi.s64"), D3("mad.hi.u64"),              \
		H3("mad.hi.s16"), {"mul.wide.s32 %d0, %r1, %r2;", 8, 0, 80},                                           \
		{"mul.wide.u32 %d0, %r1, %r2;", 8, 0, 80}, {"mad.wide.s32 %d0, %r1, %r2, %d3;", 8, 0, 80},             \
		{"mad.wide.u32 %d0, %r1, %r2, %d3;", 8, 0, 80}, {"mul.wide.s16 %r0, %h1, %h2;", 4, 0, 80},             \
		{"mul.wide.u16 %r0, %h1, %h2;", 4, 0, 80}, {"mad.wide.s16 %r0, %h1, %h2, %r3;", 4, 0, 80},             \
		{"mad.wide.u16 %r0, %h1, %h2, %r3;", 4, 0, 80}, R2("add.sat.s32"), R2("sub.sat.s32"),                  \
		R2("mul24.lo.s32"), R2("mul24.lo.u32"), R2("mul24.hi.s32"), R2("mul24.hi.u32"), R3("mad24.lo.s32"),    \
		R3("mad24.lo.u32"), R3("mad24.hi.u32"), R3("sad.s32"), R3("sad.u32"), D3("sad.s64"), H3("sad.u16"),    \
		H1("not.b16"), R1("not.b32"), D1("not.b64"), H1("cnot.b16"), R1("cnot.b32"), D1("cnot.b64"),           \
		H1("neg.s16"), R1("neg.s32"), D1("neg.s64"), H1("abs.s16"), R1("abs.s32"), D1("abs.s64"),              \
		COUNT("popc"), COUNT("clz"), R1("brev.b32"), D1("brev.b64"), FIND("bfind"), FIND("bfind.shiftamt"),    \
		FIELDS("u32", "r", 4), FIELDS("s32", "r", 4), FIELDS("u64", "d", 8), FIELDS("s64", "d", 8),            \
		INSERT("b32", "r", 4), INSERT("b64", "d", 8), PERMUTE(""), PERMUTE(".f4e"), PERMUTE(".b4e"),           \
		PERMUTE(".rc8"), PERMUTE(".ecl"), PERMUTE(".ecr"), PERMUTE(".rc16"),                                   \
		{"prmt.b32 %r0, %r1, %r2, 0x5410U;", 4, 0, 80}, {"prmt.b32 %r0, %r1, %r2, 0x9bdfU;", 4, 0, 80},        \
		{"prmt.b32 %r0, %r1, 0, 0x4442U;", 4, 0, 80}, FUNNEL("l.wrap"), FUNNEL("r.wrap"), FUNNEL("l.clamp"),   \
		FUNNEL("r.clamp"), LOOKUP("0x96"), LOOKUP("0x1b"), LOOKUP("0xe8"), LOOKUP("0xca"), LOOKUP("0x01"),     \
		LOOKUP("0xf8"), LOOKUP("0x2d"), R3("dp4a.s32.s32"), R3("dp4a.u32.u32"), R3("dp4a.s32.u32"),            \
		R3("dp4a.u32.s32"), HOPPER_R2("min.relu.s32"), HOPPER_R2("max.relu.s32"), HOPPER_R2("add.u16x2"),      \
		HOPPER_R2("add.s16x2"), HOPPER_R2("min.u16x2"), HOPPER_R2("max.u16x2"), HOPPER_R2("min.s16x2"),        \
		HOPPER_R2("max.s16x2"), HOPPER_R2("min.relu.s16x2"), HOPPER_R2("max.relu.s16x2")

/* ---- comparisons and choices ---- */

#define COMPARE(op, t, r, since)                                                                                       \
	{                                                                                                              \
		"setp." op "." t " %p1, %" r "1, %" r "2; selp.b32 %r0, 1, 0, %p1;", 4, 0, since                       \
	}
#define COMPARES(t, r, since)                                                                                          \
	COMPARE("eq", t, r, since), COMPARE("ne", t, r, since), COMPARE("lt", t, r, since),                            \
		COMPARE("le", t, r, since), COMPARE("gt", t, r, since), COMPARE("ge", t, r, since)
#define UNORDERED(t, r, since)                                                                                         \
	COMPARE("equ", t, r, since), COMPARE("neu", t, r, since), COMPARE("ltu", t, r, since),                         \
		COMPARE("leu", t, r, since), COMPARE("gtu", t, r, since), COMPARE("geu", t, r, since),                 \
		COMPARE("num", t, r, since), COMPARE("nan", t, r, since)
#define UNSIGNED_NAMES(t, r)                                                                                           \
	COMPARE("lo", t, r, 80), COMPARE("ls", t, r, 80), COMPARE("hi", t, r, 80), COMPARE("hs", t, r, 80)
/* x against y, joined with y against z; both results */
#define JOINED(join, op, t)                                                                                            \
	{                                                                                                              \
		"setp.lt." t " %p3, %r2, %r3; setp." op "." join "." t " %p1|%p2, %r1, %r2, %p3; selp.b32 %r4, 1, "    \
		"0, %p1; selp.b32 %r0, 3, 1, %p2; mad.lo.u32 %r0, %r4, 4, %r0;",                                       \
			4, 0, 80                                                                                       \
	}
#define PREDICATES(op)                                                                                                 \
	{                                                                                                              \
		"setp.lt.s32 %p1, %r1, %r2; setp.lt.s32 %p2, %r2, %r3; " op                                            \
		".pred %p3, %p1, %p2; selp.b32 %r0, 1, 0, %p3;",                                                       \
			4, 0, 80                                                                                       \
	}
#define TEST(what)                                                                                                     \
	{"testp." what ".f32 %p1, %r1; selp.b32 %r0, 1, 0, %p1;", 4, 0, 80},                                           \
	{                                                                                                              \
		"testp." what ".f64 %p1, %d1; selp.b32 %r0, 1, 0, %p1;", 4, 0, 80                                      \
	}

#define CHOICE_FORMS                                                                                                   \
	COMPARES("s16", "h", 80), COMPARES("u16", "h", 80), COMPARES("s32", "r", 80), COMPARES("u32", "r", 80),        \
		COMPARES("s64", "d", 80), COMPARES("u64", "d", 80), COMPARES("f16", "h", 80),                          \
		UNORDERED("f16", "h", 80), COMPARES("f32", "r", 80), UNORDERED("f32", "r", 80),                        \
		COMPARES("f64", "d", 80), UNORDERED("f64", "d", 80), COMPARES("bf16", "h", 90),                        \
		UNORDERED("bf16", "h", 90), UNSIGNED_NAMES("u32", "r"), UNSIGNED_NAMES("u64", "d"),                    \
		COMPARE("eq", "b16", "h", 80), COMPARE("ne", "b32", "r", 80), COMPARE("eq", "b64", "d", 80),           \
		COMPARE("lt", "ftz.f32", "r", 80), COMPARE("eq", "ftz.f32", "r", 80), JOINED("and", "lt", "s32"),      \
		JOINED("or", "gt", "s32"), JOINED("xor", "ne", "u32"), JOINED("and", "leu", "f32"), PREDICATES("and"), \
		PREDICATES("or"), PREDICATES("xor"), R2("set.lt.u32.s32"), R2("set.gt.s32.u32"), R2("set.lt.f32.f32"), \
		R2("set.ne.u32.f32"), {"setp.lt.s32 %p1, %r2, %r3; selp.b16 %h0, %h1, %h2, %p1;", 2, 0, 80},           \
		{"setp.lt.s32 %p1, %r2, %r3; selp.f32 %r0, %r1, %r2, !%p1;", 4, 0, 80},                                \
		{"setp.lt.s32 %p1, %r2, %r3; selp.b64 %d0, %d1, %d2, %p1;", 8, 0, 80}, R3("slct.b32.s32"),             \
		R3("slct.u32.f32"), {"slct.b64.s32 %d0, %d1, %d2, %r3;", 8, 0, 80},                                    \
		{"slct.f64.f32 %d0, %d1, %d2, %r3;", 8, 0, 80}, TEST("finite"), TEST("infinite"), TEST("number"),      \
		TEST("notanumber"), TEST("normal"), TEST("subnormal"),                                                 \
	{                                                                                                              \
		"setp.gt.f16x2 %p1|%p2, %r1, %r2; selp.b32 %r4, 1, 0, %p1; selp.b32 %r0, 3, 1, %p2; mad.lo.u32 %r0, "  \
		"%r4, 4, %r0;",                                                                                        \
			4, 0, 80                                                                                       \
	}

/* ---- floats ---- */

#define FLOAT2(op) R2(op ".f32"), D2(op ".f64")
#define MODES2(op) FLOAT2(op ".rn"), FLOAT2(op ".rz"), FLOAT2(op ".rm"), FLOAT2(op ".rp")
#define MODES1(op)                                                                                                     \
	R1(op ".rn.f32"), D1(op ".rn.f64"), R1(op ".rz.f32"), D1(op ".rz.f64"), R1(op ".rm.f32"), D1(op ".rm.f64"),    \
		R1(op ".rp.f32"), D1(op ".rp.f64")
#define MODES3(op)                                                                                                     \
	R3(op ".rn.f32"), D3(op ".rn.f64"), R3(op ".rz.f32"), D3(op ".rz.f64"), R3(op ".rm.f32"), D3(op ".rm.f64"),    \
		R3(op ".rp.f32"), D3(op ".rp.f64")
#define HALVES2(op) H2(op ".f16"), R2(op ".f16x2")
#define LATER_HALVES2(op) HOPPER_H2(op ".bf16"), HOPPER_R2(op ".bf16x2")
#define ALL_HALVES2(op) HALVES2(op), H2(op ".bf16"), R2(op ".bf16x2")
#define ALL_HALVES1(op) H1(op ".f16"), R1(op ".f16x2"), H1(op ".bf16"), R1(op ".bf16x2")

#define FLOAT_FORMS                                                                                                    \
	FLOAT2("add"), FLOAT2("sub"), FLOAT2("mul"), FLOAT2("min"), FLOAT2("max"), MODES2("add"), MODES2("sub"),       \
		MODES2("mul"), MODES2("div"), MODES3("fma"), MODES1("rcp"), MODES1("sqrt"), R2("min.NaN.f32"),         \
		R2("max.NaN.f32"), R2("min.ftz.f32"), R2("max.ftz.f32"), R2("min.ftz.NaN.f32"), R2("add.ftz.f32"),     \
		R2("sub.ftz.f32"), R2("mul.ftz.f32"), R3("fma.rn.ftz.f32"), R2("div.rn.ftz.f32"),                      \
		R1("rcp.rn.ftz.f32"), R1("sqrt.rn.ftz.f32"), R2("add.sat.f32"), R2("mul.sat.f32"),                     \
		R3("fma.rn.sat.f32"), R2("add.rz.ftz.f32"), R2("mul.rp.ftz.f32"), R1("neg.f32"), R1("abs.f32"),        \
		R1("neg.ftz.f32"), R1("abs.ftz.f32"), D1("neg.f64"), D1("abs.f64"), R2("copysign.f32"),                \
		D2("copysign.f64"), HALVES2("add"), HALVES2("sub"), HALVES2("mul"), HALVES2("add.rn"),                 \
		HALVES2("sub.rn"), HALVES2("mul.rn"), HALVES2("add.sat"), HALVES2("mul.sat"), HALVES2("add.ftz"),      \
		HALVES2("mul.ftz"), ALL_HALVES2("min"), ALL_HALVES2("max"), ALL_HALVES2("min.NaN"),                    \
		ALL_HALVES2("max.NaN"), ALL_HALVES1("neg"), ALL_HALVES1("abs"), LATER_HALVES2("add"),                  \
		LATER_HALVES2("sub"), LATER_HALVES2("mul"), H3("fma.rn.f16"), R3("fma.rn.f16x2"), H3("fma.rn.bf16"),   \
		R3("fma.rn.bf16x2"), H3("fma.rn.relu.f16"), R3("fma.rn.relu.f16x2"), H3("fma.rn.relu.bf16"),           \
		R3("fma.rn.relu.bf16x2"), H3("fma.rn.sat.f16"), H3("fma.rn.ftz.f16"), NEAR2("div.full", 2),            \
		NEAR2("div.approx", 2), NEAR1("rcp.approx", 1), NEAR1("rcp.approx.ftz", 1), NEAR1("sqrt.approx", 2),   \
		NEAR1("sqrt.approx.ftz", 2), NEAR1("rsqrt.approx", 3), NEAR1("rsqrt.approx.ftz", 3),                   \
		NEAR1("ex2.approx", 2), NEAR1("ex2.approx.ftz", 2), NEAR1("lg2.approx", 4),                            \
		NEAR1("lg2.approx.ftz", 4), NEAR1("tanh.approx", 8192),                                                \
		{"cvt.rn.f32.s32 %r4, %w0; mul.f32 %r4, %r4, 0f30c90fdb; sin.approx.f32 %r0, %r4;", 4, 1024, 80},      \
		{"cvt.rn.f32.s32 %r4, %w0; mul.f32 %r4, %r4, 0f30c90fdb; cos.approx.f32 %r0, %r4;", 4, 1024, 80},      \
		{"ex2.approx.f16 %h0, %h1;", 2, 2, 80}, {"tanh.approx.f16 %h0, %h1;", 2, 2, 80},                       \
		{"ex2.approx.ftz.bf16 %h0, %h1;", 2, 2, 90},                                                           \
	{                                                                                                              \
		"tanh.approx.bf16 %h0, %h1;", 2, 2, 90                                                                 \
	}

/* ---- conversions ---- */

#define CVT(how, to, from, d, a, bytes, since)                                                                         \
	{                                                                                                              \
		"cvt." how to "." from " %" d "0, %" a "1;", bytes, 0, since                                           \
	}
#define TO_INTEGERS(how, from, a)                                                                                      \
	CVT(how, "s8", from, "r", a, 4, 80), CVT(how, "u8", from, "r", a, 4, 80),                                      \
		CVT(how, "s16", from, "h", a, 2, 80), CVT(how, "u16", from, "h", a, 2, 80),                            \
		CVT(how, "s32", from, "r", a, 4, 80), CVT(how, "u32", from, "r", a, 4, 80),                            \
		CVT(how, "s64", from, "d", a, 8, 80), CVT(how, "u64", from, "d", a, 8, 80)
#define FROM_INTEGERS(how, to, d, bytes, since)                                                                        \
	CVT(how, to, "s8", d, "r", bytes, since), CVT(how, to, "u8", d, "r", bytes, since),                            \
		CVT(how, to, "s16", d, "h", bytes, since), CVT(how, to, "u16", d, "h", bytes, since),                  \
		CVT(how, to, "s32", d, "r", bytes, since), CVT(how, to, "u32", d, "r", bytes, since),                  \
		CVT(how, to, "s64", d, "d", bytes, since), CVT(how, to, "u64", d, "d", bytes, since)
#define WIDE_INTEGERS(how, to, d, bytes)                                                                               \
	CVT(how, to, "s32", d, "r", bytes, 80), CVT(how, to, "s64", d, "d", bytes, 80),                                \
		CVT(how, to, "u64", d, "d", bytes, 80)
#define INTEGRAL(t, r, bytes)                                                                                          \
	CVT("rni.", t, t, r, r, bytes, 80), CVT("rzi.", t, t, r, r, bytes, 80), CVT("rmi.", t, t, r, r, bytes, 80),    \
		CVT("rpi.", t, t, r, r, bytes, 80), CVT("rni.", "s32", t, "r", r, 4, 80),                              \
		CVT("rmi.", "s32", t, "r", r, 4, 80), CVT("rpi.", "u32", t, "r", r, 4, 80),                            \
		CVT("rni.", "s64", t, "d", r, 8, 80)
#define NARROWING(to, from, d, a, bytes)                                                                               \
	CVT("rn.", to, from, d, a, bytes, 80), CVT("rz.", to, from, d, a, bytes, 80),                                  \
		CVT("rm.", to, from, d, a, bytes, 80), CVT("rp.", to, from, d, a, bytes, 80),                          \
		CVT("rn.sat.", to, from, d, a, bytes, 80)
#define PAIR(how, to, since)                                                                                           \
	{                                                                                                              \
		"cvt." how to ".f32 %r0, %r1, %r2;", 4, 0, since                                                       \
	}
#define FP8(how, to)                                                                                                   \
	{"cvt." how to ".f32 %h0, %r1, %r2;", 2, 0, 90},                                                               \
	{                                                                                                              \
		"cvt." how to ".f16x2 %h0, %r1;", 2, 0, 90                                                             \
	}

#define SATURATING                                                                                                     \
	CVT("sat.", "s8", "s16", "r", "h", 4, 80), CVT("sat.", "u8", "s16", "r", "h", 4, 80),                          \
		CVT("sat.", "u16", "s16", "h", "h", 2, 80), CVT("sat.", "u32", "s16", "r", "h", 4, 80),                \
		CVT("sat.", "u64", "s16", "d", "h", 8, 80), CVT("sat.", "s8", "u16", "r", "h", 4, 80),                 \
		CVT("sat.", "u8", "u16", "r", "h", 4, 80), CVT("sat.", "s16", "u16", "h", "h", 2, 80),                 \
		CVT("sat.", "s8", "s32", "r", "r", 4, 80), CVT("sat.", "u8", "s32", "r", "r", 4, 80),                  \
		CVT("sat.", "s16", "s32", "h", "r", 2, 80), CVT("sat.", "u16", "s32", "h", "r", 2, 80),                \
		CVT("sat.", "u32", "s32", "r", "r", 4, 80), CVT("sat.", "u64", "s32", "d", "r", 8, 80),                \
		CVT("sat.", "s8", "u32", "r", "r", 4, 80), CVT("sat.", "u8", "u32", "r", "r", 4, 80),                  \
		CVT("sat.", "s16", "u32", "h", "r", 2, 80), CVT("sat.", "u16", "u32", "h", "r", 2, 80),                \
		CVT("sat.", "s32", "u32", "r", "r", 4, 80), CVT("sat.", "s8", "s64", "r", "d", 4, 80),                 \
		CVT("sat.", "u8", "s64", "r", "d", 4, 80), CVT("sat.", "s16", "s64", "h", "d", 2, 80),                 \
		CVT("sat.", "u16", "s64", "h", "d", 2, 80), CVT("sat.", "s32", "s64", "r", "d", 4, 80),                \
		CVT("sat.", "u32", "s64", "r", "d", 4, 80), CVT("sat.", "u64", "s64", "d", "d", 8, 80),                \
		CVT("sat.", "s8", "u64", "r", "d", 4, 80), CVT("sat.", "u8", "u64", "r", "d", 4, 80),                  \
		CVT("sat.", "s16", "u64", "h", "d", 2, 80), CVT("sat.", "u16", "u64", "h", "d", 2, 80),                \
		CVT("sat.", "s32", "u64", "r", "d", 4, 80), CVT("sat.", "u32", "u64", "r", "d", 4, 80),                \
		CVT("sat.", "s64", "u64", "d", "d", 8, 80)

#define CONVERSION_FORMS                                                                                               \
	TO_INTEGERS("", "s8", "r"), TO_INTEGERS("", "u8", "r"), TO_INTEGERS("", "s16", "h"),                           \
		TO_INTEGERS("", "u16", "h"), TO_INTEGERS("", "s32", "r"), TO_INTEGERS("", "u32", "r"),                 \
		TO_INTEGERS("", "s64", "d"), TO_INTEGERS("", "u64", "d"), SATURATING,                                  \
		FROM_INTEGERS("rn.", "f16", "h", 2, 80), FROM_INTEGERS("rn.", "f32", "r", 4, 80),                      \
		FROM_INTEGERS("rn.", "f64", "d", 8, 80), WIDE_INTEGERS("rz.", "f32", "r", 4),                          \
		WIDE_INTEGERS("rm.", "f32", "r", 4), WIDE_INTEGERS("rp.", "f32", "r", 4),                              \
		WIDE_INTEGERS("rz.", "f64", "d", 8), WIDE_INTEGERS("rp.", "f64", "d", 8),                              \
		CVT("rn.", "bf16", "s16", "h", "h", 2, 90), CVT("rn.", "bf16", "u16", "h", "h", 2, 90),                \
		CVT("rn.", "bf16", "s32", "h", "r", 2, 90), CVT("rn.", "bf16", "u32", "h", "r", 2, 90),                \
		CVT("rn.", "bf16", "s64", "h", "d", 2, 90), CVT("rn.", "bf16", "u64", "h", "d", 2, 90),                \
		TO_INTEGERS("rzi.", "f16", "h"), TO_INTEGERS("rzi.", "f32", "r"), TO_INTEGERS("rzi.", "f64", "d"),     \
		INTEGRAL("f16", "h", 2), INTEGRAL("f32", "r", 4), INTEGRAL("f64", "d", 8),                             \
		CVT("rzi.", "s32", "bf16", "r", "h", 4, 90), CVT("rzi.", "u64", "bf16", "d", "h", 8, 90),              \
		CVT("rzi.ftz.", "s32", "f32", "r", "r", 4, 80), CVT("", "f32", "f16", "r", "h", 4, 80),                \
		CVT("", "f64", "f16", "d", "h", 8, 80), CVT("", "f64", "f32", "d", "r", 8, 80),                        \
		CVT("", "f32", "bf16", "r", "h", 4, 90), NARROWING("f16", "f32", "h", "r", 2),                         \
		NARROWING("f16", "f64", "h", "d", 2), NARROWING("f32", "f64", "r", "d", 4),                            \
		CVT("sat.", "f32", "f32", "r", "r", 4, 80), CVT("sat.", "f64", "f64", "d", "d", 8, 80),                \
		CVT("rn.", "bf16", "f32", "h", "r", 2, 80), CVT("rz.", "bf16", "f32", "h", "r", 2, 80),                \
		CVT("rn.relu.", "bf16", "f32", "h", "r", 2, 80), CVT("rn.relu.", "f16", "f32", "h", "r", 2, 80),       \
		CVT("rn.", "bf16", "f16", "h", "h", 2, 90), CVT("rn.", "f16", "bf16", "h", "h", 2, 90),                \
		CVT("rn.", "bf16", "f64", "h", "d", 2, 90), PAIR("rn.", "f16x2", 80), PAIR("rz.", "f16x2", 80),        \
		PAIR("rn.relu.", "f16x2", 80), PAIR("rz.relu.", "f16x2", 80), PAIR("rn.", "bf16x2", 80),               \
		PAIR("rz.", "bf16x2", 80), PAIR("rn.relu.", "bf16x2", 80), R1("cvt.rna.tf32.f32"),                     \
		HOPPER_R1("cvt.rn.tf32.f32"), HOPPER_R1("cvt.rz.tf32.f32"), HOPPER_R1("cvt.rn.relu.tf32.f32"),         \
		FP8("rn.satfinite.", "e4m3x2"), FP8("rn.satfinite.", "e5m2x2"), FP8("rn.satfinite.relu.", "e4m3x2"),   \
		FP8("rn.satfinite.relu.", "e5m2x2"), {"cvt.rn.f16x2.e4m3x2 %r0, %h1;", 4, 0, 90},                      \
		{"cvt.rn.f16x2.e5m2x2 %r0, %h1;", 4, 0, 90}, {"cvt.rn.relu.f16x2.e4m3x2 %r0, %h1;", 4, 0, 90},         \
	{                                                                                                              \
		"cvt.rn.relu.f16x2.e5m2x2 %r0, %h1;", 4, 0, 90                                                         \
	}

#endif
