/* The simulator's reading of PTX: whatever text it is given, it answers, and says where it stumbled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "sim_fixture.h"
#include "runtime/sim/sim.h"

#include <cmocka.h>

/* A bit of everything that the parser knows. */
static char *everything(void)
{
	static const sim_case c = {
		.declarations = ".extern .func (.param .b32 r) vprintf\n(\n.param .b64 a,\n.param .b64 b\n)\n;\n"
				".global .align 4 .b8 words[12] = {1, 2, -3, 0x7f};\n.const .f32 one = 0f3F800000;\n"
				".shared .align 16 .b32 table[4];\n",
		.body = ".local .align 8 .b8 depot[16];\n.loc 1 4 2\n/* a comment */ mov.b64 %rd1, "
			"words;\ncvta.global.u64 %rd1, %rd1;\n"
			"ld.global.b8 %h1, [words+2];\nsetp.lt.and.u32 %p1|%p2, %tid, 16, !%p3;\n@!%p1 bra.uni NEXT;\n"
			"{ .reg .b32 t; mov.b64 {t, %r2}, %rd1; }\nmov.b64 %rd2, {%r2, %r3};\nmov.b64 {_, %r4}, %rd2;\n"
			"selp.f32 %r5, 0f3F800000, 1.5, %p2;\nNEXT:\nshfl.sync.bfly.b32 %r6|%p4, %r5, 1, 31, -1;\n"
			"ld.global.nc.L1::evict_first.v4.b32 {%r1, %r2, %r3, %r4}, "
			"[%in+16];\natom.acq_rel.gpu.global.cas.b32 %r7, [%out], 0, 1;\n"
			"cvt.rn.satfinite.e4m3x2.f32 %h2, %r1, %r2;\nst.shared.v2.b32 [table+8], {%r1, %r2};\nbar.sync "
			"0;\n"
			"{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q;\nst.param.b64 [p0], %rd1;\nst.param.b64 "
			"[p1], %rd2;\n"
			"call.uni (q), vprintf, (p0, p1);\nld.param.b32 %r8, [q];\n}\n"
			"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd3, %rd4}, {%rd5}, {%rd6}, {%rd3, "
			"%rd4};\n"};
	return sim_text(&c);
}

static bool parses(const char *text)
{
	char error[640] = "";
	sim_code *c = NULL;
	bool good = sim_code_parse(text, "k", &c, error, sizeof error);
	assert_true(good == (c != NULL));
	if (!good) assert_true(strncmp(error, "line ", 5) == 0);
	sim_code_free(c);
	return good;
}

static void test_every_prefix(void **state)
{
	(void)state;
	char *text = everything();
	assert_non_null(text);
	size_t n = strlen(text), brace = (size_t)(strrchr(text, '}') - text);
	assert_true(parses(text));
	for (size_t i = 0; i <= brace; i++)
		for (size_t open = 0; open < 2; open++) { /* a string that does not end */
			char *cut = malloc(i + open + 1); /* its end is the end of the memory */
			assert_non_null(cut);
			memcpy(cut, text, i);
			memset(cut + i, '"', open);
			cut[i + open] = 0;
			assert_false(parses(cut));
			free(cut);
		}
	assert_true(brace < n);
	free(text);
}

/* One byte is another one, or a word is lost or doubled: any answer, but an answer. */
static void test_damage(void **state)
{
	(void)state;
	static const char bytes[] = "\n\t ;,{}[]()<>@!%.+-|_:\"/*0x9afFdDlsb$\x01\xff";
	char *text = everything();
	assert_non_null(text);
	size_t n = strlen(text);
	for (size_t i = 0; i < n; i++) {
		char was = text[i];
		text[i] = bytes[i * 7 % (sizeof bytes - 1)];
		parses(text);
		text[i] = bytes[i * 11 % (sizeof bytes - 1)];
		parses(text);
		text[i] = was;
	}
	char *twice = malloc(2 * n + 1);
	assert_non_null(twice);
	for (size_t i = 0; i + 9 < n; i += 3) {
		memcpy(twice, text, i + 9);
		strcpy(twice + i + 9, text + i);
		parses(twice);
		strcpy(twice + i, text + i + 9);
		parses(twice);
	}
	free(twice);
	free(text);
}

static void test_limits(void **state)
{
	(void)state;
	static const char *const bodies[] = {".reg .b32 %many<4000000000>;\n",
		".local .align 8 .b8 d[18446744073709551615];\n", ".shared .align 3 .b8 s[4];\n",
		"mov.b32 %r1, {%h1, %h2, %h3, %h4, %h1};\n", "ld.global.v4.b32 {%r1, %r2}, [%in];\n",
		"ld.global.b32 %r1, [%in+18446744073709551615+1];\n{{{{{{{{{{{{{{{{{{{{}}}}}}}}}}}}}}}}}}}}\n",
		"mma.sync.aligned.m16n8k0.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};\n",
		("mma.sync.aligned.m4294967312n8k16.row.col.f32.f16.f16.f32 {%r1,%r1,%r1,%r1}, {%r1,%r1,%r1,%r1}, "
		 "{%r1,%r1}, {%r1,%r1,%r1,%r1};\n"),
		"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1,%r1,%r1}, [%r1];\n",
		"lop3.b32 %r1, %r2, %r3, %r4, %r5;\n", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r %r1;\n",
		"shfl.sync.bfly.b32 %r1;\n", "bar.sync;\n", "call.uni vprintf;\n", "@%r1 ret;\n",
		"setp.lt.u32 %r1, %r2, %r3;\n", "cvt.rn.f32 %r1, %r2;\n", "st.param.b32 [k_param_0], 3;\n"};
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		const sim_case c = {.body = bodies[i]};
		char *text = sim_text(&c);
		assert_non_null(text);
		bool good = parses(text);
		if (good && i != 5) fail_msg("accepted: %s", bodies[i]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_prefix), cmocka_unit_test(test_damage), cmocka_unit_test(test_limits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
