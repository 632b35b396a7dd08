/* What the simulator's reader refuses: each instruction with one word, or one operand, that does not belong.
 *
 * The one idea: a list of instructions that are right, and all small damage to them, made by rule.  Whatever an
 * operand is replaced by, the answer is code, or an error that names the line; a word that no instruction has, a name
 * that nothing declares and too many operands are always errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim_fixture.h"
#include "runtime/sim/sim.h"

#include <cmocka.h>

#define REGISTERS16 "%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15"

static const char *const instructions[] = {
	"add.s32 %r1, %r2, %r3",
	"mad.lo.s32 %r1, %r2, %r3, %r4",
	"mad.wide.u32 %rd1, %r2, %r3, %rd4",
	"mul.hi.u64 %rd1, %rd2, %rd3",
	"neg.f32 %r1, %r2",
	"abs.s16 %h1, %h2",
	"fma.rn.ftz.f32 %r1, %r2, %r3, %r4",
	"fma.rn.f16x2 %r1, %r2, %r3, %r4",
	"div.rn.f64 %rd1, %rd2, %rd3",
	"ex2.approx.ftz.f32 %r1, %r2",
	"lop3.b32 %r1, %r2, %r3, %r4, 150",
	"shf.l.wrap.b32 %r1, %r2, %r3, %r4",
	"bfe.u32 %r1, %r2, %r3, %r4",
	"bfi.b32 %r1, %r2, %r3, %r4, %r5",
	"bfind.u32 %r1, %r2",
	"prmt.b32 %r1, %r2, %r3, 12816",
	"dp4a.s32.s32 %r1, %r2, %r3, %r4",
	"sad.u32 %r1, %r2, %r3, %r4",
	"testp.nan.f32 %p1, %r2",
	"selp.f32 %r1, 0f3F800000, %r2, %p2",
	"slct.f32.s32 %r1, %r2, %r3, %r4",
	"set.lt.u32.f32 %r1, %r2, %r3",
	"set.lt.f32.s32 %r1, %r2, %r3",
	"setp.lt.u32 %p1, %r2, %r3",
	"setp.lt.and.f32 %p1|%p2, %r2, %r3, !%p3",
	"setp.ge.f16x2 %p1|%p2, %r2, %r3",
	"setp.ge.bf16x2 %p1|%p2, %r2, %r3",
	"and.pred %p1, %p2, !%p3",
	"not.pred %p1, %p2",
	"mov.pred %p1, %p2",
	"mov.b32 %r1, 0f3F800000",
	"mov.b64 {%r1, %r2}, %rd1",
	"mov.b64 %rd1, {%r1, %r2}",
	"mov.b64 {_, %r2}, %rd1",
	"mov.u32 %r1, %tid.x",
	"mov.b64 %rd1, words",
	"cvt.rn.f16.f32 %h1, %r2",
	"cvt.rn.satfinite.e4m3x2.f32 %h1, %r2, %r3",
	"cvt.rn.f16x2.e4m3x2 %r1, %h2",
	"cvt.rn.relu.bf16x2.f32 %r1, %r2, %r3",
	"cvt.rna.tf32.f32 %r1, %r2",
	"cvta.to.global.u64 %rd1, %rd2",
	"cvta.shared.u64 %rd1, %rd2",
	"ld.global.b32 %r1, [%rd1+4]",
	"ld.global.nc.L1::evict_first.v4.b32 {%r1, %r2, %r3, %r4}, [%in+16]",
	"ld.shared.v2.b64 {%rd1, %rd2}, [%r1]",
	"ld.volatile.global.b16 %h1, [%rd1]",
	"ld.acquire.gpu.global.b32 %r1, [%rd1]",
	"ld.const.b32 %r1, [one]",
	"ld.param.b32 %r1, [k_param_2]",
	"st.global.v2.b32 [%rd1], {%r1, %r2}",
	"st.shared.b8 [%r1+3], %h1",
	"st.release.gpu.global.b32 [%rd1], %r1",
	"atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], %r2",
	"atom.global.cas.b32 %r1, [%rd1], %r2, %r3",
	"atom.global.exch.b64 %rd1, [%rd2], %rd3",
	"atom.shared.add.noftz.f16x2 %r1, [%r2], %r3",
	"red.relaxed.gpu.global.add.f32 [%rd1], %r1",
	"red.global.add.v4.f32 [%rd1], {%r1, %r2, %r3, %r4}",
	"prefetch.global.L2 [%rd1]",
	"fence.acq_rel.gpu",
	"membar.gl",
	"shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1",
	"shfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5",
	"vote.sync.ballot.b32 %r1, %p1, -1",
	"vote.sync.any.pred %p1, !%p2, -1",
	"redux.sync.add.s32 %r1, %r2, -1",
	"match.any.sync.b32 %r1, %r2, -1",
	"match.all.sync.b64 %r1|%p1, %rd2, -1",
	"elect.sync %r1|%p1, -1",
	"activemask.b32 %r1",
	"bar.sync 0",
	"bar.sync 1, 64",
	"barrier.cta.sync.aligned 1, 64",
	"barrier.cta.arrive.aligned 1, 64",
	"bar.warp.sync -1",
	"bra.uni HERE",
	"ret",
	"trap",
	"nanosleep.u32 100",
	"cp.async.ca.shared.global [%r1], [%rd1], 8",
	"cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16, %r2",
	"cp.async.commit_group",
	"cp.async.wait_group 1",
	"cp.async.wait_all",
	"cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]",
	"mbarrier.init.shared.b64 [%r1], 1",
	"mbarrier.inval.shared.b64 [%r1]",
	"mbarrier.arrive.shared.b64 %rd1, [%r1]",
	"mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1], 3",
	"mbarrier.arrive.noComplete.shared.b64 %rd1, [%r1], 3",
	"mbarrier.arrive_drop.shared.b64 %rd1, [%r1]",
	"mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16",
	"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 16",
	"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16",
	"mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1",
	"mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0",
	"mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [%r1], %r2, 100",
	"mbarrier.pending_count.b64 %r1, %rd1",
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2]",
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, "
	"[%r2], %h1",
	"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16",
	"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 16, [%r3]",
	"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], "
	"[%r4]",
	("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r1], "
	 "[%rd1, {%r2, %r3}], [%r4], %h1"),
	"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r2, %r3}], [%r1]",
	"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16",
	"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {%r2, %r3}], [%r1]",
	"cp.async.bulk.commit_group",
	"cp.async.bulk.wait_group 0",
	"cp.async.bulk.wait_group.read 0",
	"prefetch.tensormap [%rd1]",
	"fence.proxy.async",
	"fence.proxy.async.global",
	"fence.mbarrier_init.release.cluster",
	"fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128",
	"barrier.cluster.arrive.release.aligned",
	"barrier.cluster.wait.acquire.aligned",
	"mapa.shared::cluster.u32 %r1, %r2, 1",
	"mapa.u64 %rd1, %rd2, %r1",
	"ld.shared::cluster.b32 %r1, [%r2]",
	"st.shared::cluster.b32 [%r1], %r2",
	"setmaxnreg.inc.sync.aligned.u32 232",
	"griddepcontrol.wait",
	"griddepcontrol.launch_dependents",
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5]",
	"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%r5]",
	"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r1, %r2, %r3, %r4}",
	"movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2",
	("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, "
	 "{%r11, %r12, %r13, %r14}"),
	"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, "
	"{%r11, %r12, %r13, %r14}",
	"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, "
	"{%r9, %r10}, {%r11, %r12, %r13, %r14}",
	"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd3, %rd4}, {%rd5}, {%rd6}, {%rd3, %rd4}",
	"wgmma.fence.sync.aligned",
	"wgmma.commit_group.sync.aligned",
	"wgmma.wait_group.sync.aligned 1",
	"wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {" REGISTERS16 "}, %rd1, %rd2, 1, 1, 1, 0, 0",
	"wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" REGISTERS16
	"}, {%r16, %r17, %r18, %r19}, %rd2, %p1, 1, "
	"-1, 1",
	"wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 {" REGISTERS16 "}, %rd1, %rd2, 0, 1, 1",
	"wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e5m2 {" REGISTERS16 "}, %rd1, %rd2, 1, 1, 1",
	"wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.u8 {" REGISTERS16 "}, %rd1, %rd2, 1",
};
enum { INSTRUCTIONS = sizeof instructions / sizeof instructions[0], WORDS = 24, OPERANDS = 16 };

/* The line behind the label, in the text that the fixture makes. */
static int line_of_instruction(const char *text)
{
	int line = 2;
	for (const char *s = text, *end = strstr(text, "HERE:\n"); s < end; s++) line += *s == '\n';
	return line;
}

/* Whether it was read; an error has to name its line. */
static bool accepted(const char *instruction)
{
	char body[1024], error[640] = "", where[32];
	snprintf(body, sizeof body, "HERE:\n%s;\n", instruction);
	sim_case c = {.body = body,
		.declarations = ".global .align 4 .b8 words[12] = {1, 2};\n.const .f32 one = 0f3F800000;\n"};
	char *text = sim_text(&c);
	sim_code *code = NULL;
	assert_non_null(text);
	bool good = sim_code_parse(text, "k", &code, error, sizeof error);
	assert_true(good == (code != NULL));
	int line = line_of_instruction(text);
	snprintf(where, sizeof where, "line %d of the PTX: ", line);
	if (!good && strncmp(error, where, strlen(where)) != 0)
		fail_msg("`%s` (line %d): %s", instruction, line, error);
	sim_code_free(code);
	free(text);
	return good;
}

/* An instruction cut into its words and its operands. */
typedef struct cut {
	char text[1024];
	char *word[WORDS], *operand[OPERANDS];
	unsigned nwords, noperands;
} cut;

static void cut_up(cut *c, const char *instruction)
{
	*c = (cut){.nwords = 0};
	snprintf(c->text, sizeof c->text, "%s", instruction);
	char *rest = strchr(c->text, ' ');
	if (rest) *rest++ = 0;
	for (char *s = c->text; s; c->nwords++) {
		c->word[c->nwords] = s;
		/* mbarrier::complete_tx::bytes is one word, so are numbers of a shape: only dots end one */
		s = strchr(s, '.');
		if (s) *s++ = 0;
	}
	int depth = 0;
	for (char *s = rest; s && *s; s++) {
		if (s == rest || (*s == ',' && depth == 0)) {
			if (*s == ',') *s++ = 0;
			while (*s == ' ') s++;
			c->operand[c->noperands++] = s;
		}
		depth += *s == '{' || *s == '[';
		depth -= *s == '}' || *s == ']';
	}
}

/* Put together again, with word number `w` and operand number `o` replaced (null: taken out; none: -1). */
static const char *join(char *out, size_t room, const cut *c, int w, const char *word, int o, const char *operand)
{
	size_t n = 0;
	out[0] = 0;
	for (unsigned i = 0; i < c->nwords; i++) {
		const char *s = (int)i == w ? word : c->word[i];
		if (s) n += (size_t)snprintf(out + n, room - n, "%s%s", n ? "." : "", s);
	}
	bool first = true;
	for (unsigned i = 0; i < c->noperands; i++) {
		const char *s = (int)i == o ? operand : c->operand[i];
		if (!s) continue;
		n += (size_t)snprintf(out + n, room - n, "%s%s", first ? " " : ", ", s);
		first = false;
	}
	assert_true(n < room);
	return out;
}

/* Wrong ones that were read as right: all are shown before the test fails. */
static unsigned nwrong;

static void wrong(const char *instruction)
{
	print_error("accepted: %s\n", instruction);
	nwrong++;
}

static int none_wrong(void **state)
{
	(void)state;
	nwrong = 0;
	return 0;
}

static void test_right(void **state)
{
	(void)state;
	unsigned refused = 0;
	for (unsigned i = 0; i < INSTRUCTIONS; i++)
		if (!accepted(instructions[i])) print_error("refused: %s\n", instructions[i]), refused++;
	assert_int_equal(refused, 0);
}

/* A word that no instruction has, instead of each and beside each; each word taken out, or twice. */
static void test_words(void **state)
{
	(void)state;
	char made[1100], twice[256];
	for (unsigned i = 0; i < INSTRUCTIONS; i++) {
		cut c;
		cut_up(&c, instructions[i]);
		for (int w = 0; w < (int)c.nwords; w++) {
			if (accepted(join(made, sizeof made, &c, w, "nonsense", -1, NULL))) wrong(made);
			snprintf(twice, sizeof twice, "%s.nonsense", c.word[w]);
			if (accepted(join(made, sizeof made, &c, w, twice, -1, NULL))) wrong(made);
			snprintf(twice, sizeof twice, "%s.%s", c.word[w], c.word[w]);
			accepted(join(made, sizeof made, &c, w, twice, -1, NULL));
			if (w > 0) accepted(join(made, sizeof made, &c, w, NULL, -1, NULL));
		}
	}
	assert_int_equal(nwrong, 0);
}

/* Each word replaced by those that other instructions have in that place: types, spaces, modes. */
static void test_other_words(void **state)
{
	(void)state;
	static const char *const words[] = {"s8", "u16", "b16", "f16", "bf16", "f16x2", "s32", "u32", "b32", "f32",
		"s64", "b64", "f64", "b128", "tf32", "e4m3", "pred", "v2", "v4", "v8", "global", "shared", "local",
		"const", "param", "shared::cluster", "sync", "aligned", "cta", "gpu", "sys", "relaxed", "acquire",
		"release", "rn", "rz", "rni", "ftz", "sat", "approx", "wide", "hi", "x1", "x3", "trans", "m8n8",
		"m16n8k4", "m64n8k16", "m64n256k16", "m64n264k16", "m32n32k16", "1d", "5d", "6d", "L2::cache_hint",
		"bulk", "read"};
	char made[1100];
	for (unsigned i = 0; i < INSTRUCTIONS; i++) {
		cut c;
		cut_up(&c, instructions[i]);
		for (int w = 1; w < (int)c.nwords; w++)
			for (unsigned k = 0; k < sizeof words / sizeof *words; k++)
				accepted(join(made, sizeof made, &c, w, words[k], -1, NULL));
	}
}

/* Each operand as something else; a name that nothing declares is always wrong. */
static void test_operands(void **state)
{
	(void)state;
	static const char *const others[] = {"%p15", "!%p15", "%p14|%p15", "%h31", "%r63", "%rd31", "%r62|%p15", "_",
		"_|%p15", "_|_", "3", "-1", "0f3F800000", "0d3FF0000000000000", "99999999999", "{%r1, %r2}",
		"{%r1, %r2, %r3}", "{%h1, %h2}", "{%rd1, %rd2}", "{%p1, %p2}", "{}", "{_, _}", "[%rd1]", "[%r1+4]",
		"[%h1]", "[words+4]", "[7]", "[%rd1, {%r2}]", "[%rd1, {%r2, %r3, %r4}]", "[%rd1, {%rd2, %rd3}]",
		"words", "one", "k_param_0", "%tid.x", "%clock", "WARP_SZ"};
	char made[1100];
	for (unsigned i = 0; i < INSTRUCTIONS; i++) {
		cut c;
		cut_up(&c, instructions[i]);
		for (int o = 0; o < (int)c.noperands; o++) {
			if (accepted(join(made, sizeof made, &c, -1, NULL, o, "nowhere"))) wrong(made);
			if (accepted(join(made, sizeof made, &c, -1, NULL, o, "%nowhere"))) wrong(made);
			if (accepted(join(made, sizeof made, &c, -1, NULL, o, "[nowhere]"))) wrong(made);
			for (unsigned k = 0; k < sizeof others / sizeof *others; k++)
				accepted(join(made, sizeof made, &c, -1, NULL, o, others[k]));
		}
	}
	assert_int_equal(nwrong, 0);
}

/* Operands missing; and more than any instruction has. */
static void test_counts(void **state)
{
	(void)state;
	char made[1200];
	for (unsigned i = 0; i < INSTRUCTIONS; i++) {
		cut c;
		cut_up(&c, instructions[i]);
		for (int o = 0; o < (int)c.noperands; o++) accepted(join(made, sizeof made, &c, -1, NULL, o, NULL));
		bool first = c.noperands == 0;
		snprintf(made, sizeof made, "%s%s%%r40, %%r41, %%r42, %%r43, %%r44", instructions[i],
			first ? " " : ", ");
		if (accepted(made)) wrong(made);
		cut none = c;
		none.noperands = 0;
		if (c.noperands && accepted(join(made, sizeof made, &none, -1, NULL, -1, NULL))) wrong(made);
	}
	assert_int_equal(nwrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test_setup(test_words, none_wrong),
		cmocka_unit_test(test_other_words),
		cmocka_unit_test_setup(test_operands, none_wrong),
		cmocka_unit_test_setup(test_counts, none_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
