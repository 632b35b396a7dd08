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
#include "sim_instructions.h"
#include "runtime/sim/sim.h"

#include <cmocka.h>

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
	sim_case c = {.body = body, .declarations = SIM_DECLARATIONS};
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

/* What is said of an instruction, behind its line; null: it is right.  The line is that of its last statement. */
static const struct {
	const char *instruction, *says;
} messages[] = {
	/* operands that are something else */
	{"mov.b64 %rd1, k_param_0+4", "k_param_0 is not declared, or not simulated"},
	{"mov.b64 {%r1, %r2}, {%r3, %r4}", "the instruction mov.b64 is not simulated"},
	{"mov.b64 {%h1, %h2, %h3}, %rd1", "the instruction mov.b64 is not simulated"},
	{"mov.b64 {%r1, 3}, %rd1", "mov.b64: registers were expected"},
	{"setp.lt.not.f32 %p1, %r1, %r2, %p2", "the instruction setp.lt.not.f32 is not simulated"},
	{"and.or.pred %p1, %p2, %p3", "the instruction and.or.pred is not simulated"},
	{"set.lt.u32.f32 %r1, %r2, %rd3", "set.lt.u32.f32: a register of another size was expected"},
	{"brx.idx %r1", "brx.idx: an index and a list were expected"},
	{"brx.idx %r1, 5", "brx.idx: an index and a list were expected"},
	{"LIST: .branchtargets HERE; brx.idx %r1, TSIL", "no list of targets TSIL"},
	{"LIST: .branchtargets HERE; brx.idx %r1, LISTED", "no list of targets LISTED"},
	{"LIST: .branchtargets HERE; brx.idx %rd1, LIST", "brx.idx: a register of another size was expected"},
	{"cvt.rn.f16.f32 %r1, %r2", NULL},
	{"cvt.ftz.s32.s64 %r1, %rd2", "the instruction cvt.ftz.s32.s64 is not simulated"},
	{"cvt.rn.ftz.f16.f32 %h1, %r2", NULL},
	{"cvt.rn.ftz.f32.s32 %r1, %r2", NULL},
	{"exit", NULL},
	{"ldu.global.b32 %r1, [%rd1]", NULL},
	{"ret.uni", NULL},
	/* shuffles, votes, barriers, calls */
	{"vote.sync.any.b32 %r1, %p1, -1", "the instruction vote.sync.any.b32 is not simulated"},
	{"vote.sync.most.pred %p1, %p2, -1", "the instruction vote.sync.most.pred is not simulated"},
	{"vote.any.sync.pred %p1, %p2, -1", "the instruction vote.any.sync.pred is not simulated"},
	{"vote.sync.uni.pred %p1, %p2, -1", NULL},
	{"bar.warp.arrive 0", "the instruction bar.warp.arrive is not simulated"},
	{"match.all.sync.b32 %r1|%r2, %r3, -1", "match.all.sync.b32: wrong operands"},
	{"match.all.sync.b32 _|_, %r3, -1", NULL},
	{"call.uni (%r1), __assertfail", "call.uni: a wrong number of arguments"},
	{"call.uni (%r1), vprintf, (%rd1)", "call.uni: a wrong number of arguments"},
	{"call.uni (%r1), vprintf, (%rd1, 5)", "call.uni: wrong arguments"},
	{"call.uni (%r1), vprintf, (%rd1, %r2)", "call.uni: wrong arguments"},
	{"call.uni (%r1), __assertfall, (%rd1, %rd2, %r2, %rd3, %rd4)", "calls of __assertfall are not simulated"},
	{"call.uni __assertfail, (%rd1, %rd2, %rd2, %rd3, %rd4)", "call.uni: wrong arguments"},
	{"call.uni __assertfail, (%rd1, %rd2, %r2, %rd3, %rd4)", NULL},
	{"call.uni (%r1, %r2), vprintf, (%rd1, %rd2)", NULL},
	/* memory */
	{"ld.global.v2.b32 {%r1, %rd1}, [%rd2]", "ld.global.v2.b32: registers of a wrong size"},
	{"st.global.v2.b32 [%rd2], {%r1, %rd1}", "st.global.v2.b32: registers of a wrong size"},
	{"ld.param.v2.b32 {%r1, %r2}, [nowhere]", "nowhere is not declared, or not simulated"},
	{"ld.param.b32 %r1, [nowhere+4]", "nowhere is not declared, or not simulated"},
	{"ld.param.b32 %r1, [k_param_0+4]", NULL},
	{"ld.param.v2.b32 {%r1, %r2}, [k_param_0]", NULL},
	{"atom.global.and.b32 %rd1, [%rd2], %rd3", "atom.global.and.b32: registers of a wrong size"},
	{"atom.global.add.u32 %h1, [%rd2], %r3", "atom.global.add.u32: registers of a wrong size"},
	{"atom.global.add.u32 %h1, [%rd2], %h3", "atom.global.add.u32: registers of a wrong size"},
	{"//@ check.part.b8 %rd1;\natom.global.add.u64 %rd3, [%rd2], %rd4", NULL},
	{"//@ check.part.b8 %rd1;\nred.global.add.v2.f32 [%rd2], {%r1, %r2}", NULL},
	{"fence.proxy.async.shared::cta", NULL},
	{"fence.proxy.async.nowhere", "the instruction fence.proxy.async.nowhere is not simulated"},
	{"fence.proxy.async.global.twice", "the instruction fence.proxy.async.global.twice is not simulated"},
	{"fence.sc.gpu", NULL},
	{"fence.sc", "the instruction fence.sc is not simulated"},
	/* copies */
	{"cp.async.commit_group.twice", "the instruction cp.async.commit_group.twice is not simulated"},
	{"cp.async.wait_all.twice", "the instruction cp.async.wait_all.twice is not simulated"},
	{"cp.async.wait_group.twice 1", "the instruction cp.async.wait_group.twice is not simulated"},
	{"cp.async.wait_group", "cp.async.wait_group: a wrong number of operands"},
	{"cp.async.wait_group %r1", "cp.async.wait_group: a number was expected"},
	{"cp.async.bulk.wait_group", "cp.async.bulk.wait_group: a wrong number of operands"},
	{"cp.async.bulk.wait_group %r1", "cp.async.bulk.wait_group: a number was expected"},
	{"cp.async.bulk.prefetch.L2.global [%rd1], 16", NULL},
	{"cp.async.bulk.prefetching [%rd1], 16", "the instruction cp.async.bulk.prefetching is not simulated"},
	{"cp.async.bulk.tensor.2x.global.shared::cta.tile.bulk_group [%rd1, {%r2, %r3}], [%r1]",
		"the instruction cp.async.bulk.tensor.2x.global.shared::cta.tile.bulk_group is not simulated"},
	{"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd1], [%r1], 16",
		"the instruction cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 is not simulated"},
	{"cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f64 [%rd1], [%r1], 16",
		"the instruction cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f64 is not simulated"},
	{"cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f16 [%rd1], [%r1], 16", NULL},
	{"cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.bf16 [%rd1], [%r1], 16",
		"the instruction cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.bf16 is not simulated"},
	{"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u8 [%rd1], [%r1], 16",
		"the instruction cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u8 is not simulated"},
	{"cp.reduce.async.bulk.shared::cluster.shared::cta.bulk_group.add.u32 [%r2], [%r1], 16",
		"the instruction cp.reduce.async.bulk.shared::cluster.shared::cta.bulk_group.add.u32 is not simulated"},
	{"cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 16, [%r3]",
		"the instruction cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes is not simulated"},
	/* clusters, mbarriers */
	{"barrier.cluster.arrive.acquire", "the instruction barrier.cluster.arrive.acquire is not simulated"},
	{"barrier.cluster.wait.release", "the instruction barrier.cluster.wait.release is not simulated"},
	{"barrier.cluster.wait.relaxed", "the instruction barrier.cluster.wait.relaxed is not simulated"},
	{"barrier.cluster.meet", "the instruction barrier.cluster.meet is not simulated"},
	{"mapa.u16 %h1, %h2, 1", "mapa.u16: wrong operands"},
	{"mapa.u32 %r1, %r2, %r3", NULL},
	{"mbarrier.init.global.b64 [%rd1], 1", "the instruction mbarrier.init.global.b64 is not simulated"},
	{"mbarrier.pending_count.b64 %r1, %r2", "mbarrier.pending_count.b64: a register of another size was expected"},
	{"cp.async.mbarrier.arrive.shared.b64 [%p1]", "an address was expected"},
	/* checks */
	{"//@ check.part.b8 3", "check.part.b8: an address was expected"},
	{"//@ check.part.b8 %rd1, %rd2", "check.part.b8: an address was expected"},
	{"//@ check.divisor.b32.u8 %r1, %h2", "the instruction check.divisor.b32.u8 is not simulated"},
	{"//@ check.divisor.b8.u32 %h1, %r2", "the instruction check.divisor.b8.u32 is not simulated"},
	{"//@ check.divisor.b32.u32 %r1, %rd2", "check.divisor.b32.u32: a register of another size was expected"},
	{"//@ check.divisor.b32.u32 %h1, %r2", "check.divisor.b32.u32: wrong operands"},
	/* matrices */
	{"ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%r1}, [%r5]", NULL},
	{"ldmatrix.sync.aligned.m8n8.x.shared.b16 {%r1}, [%r5]",
		"the instruction ldmatrix.sync.aligned.m8n8.x.shared.b16 is not simulated"},
	{"ldmatrix.sync.aligned.m8n8.x12.shared.b16 {%r1}, [%r5]",
		"the instruction ldmatrix.sync.aligned.m8n8.x12.shared.b16 is not simulated"},
	{"ldmatrix.sync.aligned.m8n8.y1.shared.b16 {%r1}, [%r5]",
		"the instruction ldmatrix.sync.aligned.m8n8.y1.shared.b16 is not simulated"},
	{"mma.sync.aligned.m16n8k16x.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, "
	 "{%r11, %r12, %r13, %r14}",
		"the instruction mma.sync.aligned.m16n8k16x.row.col.f32.f16.f16.f32 is not simulated"},
	{"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r11, "
	 "%r12}",
		NULL},
	{"mma.sync.aligned.m16n8k16.row.col.bf16.f16.f16.bf16 {%r1, %r2}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r11, "
	 "%r12}",
		"the instruction mma.sync.aligned.m16n8k16.row.col.bf16.f16.f16.bf16 is not simulated"},
	{"mma.sync.aligned.m16n8k16.row.col.f64.f16.f16.f64 {%rd1, %rd2, %rd3, %rd4}, {%r5, %r6, %r7, %r8}, {%r9, "
	 "%r10}, {%rd1, %rd2, %rd3, %rd4}",
		"the instruction mma.sync.aligned.m16n8k16.row.col.f64.f16.f16.f64 is not simulated"},
	{"mma.sync.aligned.m16n8k16.row.col.s32.f16.f16.s32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, "
	 "{%r1, %r2, %r3, %r4}",
		"the instruction mma.sync.aligned.m16n8k16.row.col.s32.f16.f16.s32 is not simulated"},
	{"mma.sync.aligned.m8n8k64.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r5, %r6, %r7, %r8}, {%r5, %r6, %r7, %r8}, {%r1, "
	 "%r2}",
		NULL},
	{"mma.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r5, %r6, %r7, "
	 "%r8}, {%r1, %r2, %r3, %r4}",
		"the instruction mma.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 is not simulated"},
	{"mma.sync.aligned.m8n8k80.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r5, %r6, %r7, %r8}, {%r5, %r6, %r7, %r8}, {%r1, "
	 "%r2}",
		"the instruction mma.sync.aligned.m8n8k80.row.col.s32.s8.s8.s32 is not simulated"},
/* products */
#define SUMS "{%r1, %r2, %r3, %r4}, %rd1, %rd2"
#define PRODUCT(shape, types) "wgmma.mma_async.sync.aligned." shape "." types
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", NULL},
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16: "
		"0 or 1 was expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 2", "0 or 1 was expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, %r5", "0 or 1 was expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS ", 1, 2, 1, 0, 0", "1 or -1 was expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0, 0", "a wrong number of operands"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS ", %r1, 1, 1, 0, 0", "a predicate was expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " {%r1, %r2, %r3}, %rd1, %rd2, 1, 1, 1, 0, 0",
		"a wrong number of registers"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " {%r1, %r2, %r3, %rd4}, %rd1, %rd2, 1, 1, 1, 0, 0",
		"32-bit registers were expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " {%r1, %r2, %r3, 4}, %rd1, %rd2, 1, 1, 1, 0, 0",
		"32-bit registers were expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %rd8}, %rd2, 1, 1, 1, 0",
		"32-bit registers were expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, 8}, %rd2, 1, 1, 1, 0",
		"32-bit registers were expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7}, %rd2, 1, 1, 1, 0",
		"four registers of a were expected"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, %rd2, 1, 1, 1, 0", NULL},
	{PRODUCT("m64n8k16", "satfinite.f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n8k32", "satfinite.s32.s8.s8") " " SUMS ", 1", NULL},
	{PRODUCT("m64n8k8", "f32.f32.f32") " " SUMS ", 1, 1, 1", "is not simulated"},
	{PRODUCT("m64n8k8", "f32.tf32.tf32") " " SUMS ", 1, 1, 1", NULL},
	{PRODUCT("m64n8k8", "f32.tf32.f32") " " SUMS ", 1, 1, 1", "is not simulated"},
	{PRODUCT("m64n8k16x", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n8", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m32n8k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n4k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n12k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n264k16", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n8k8", "f32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n40k32", "s32.s8.s8") " " SUMS ", 1", "is not simulated"},
	{PRODUCT("m64n8k16", "f16.bf16.bf16") " {%r1, %r2}, %rd1, %rd2, 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n8k16", "tf32.f16.f16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n8k16", "f32.f16.f16") " " SUMS, "a wrong number of operands"},
	{PRODUCT("m64n8k16", "f32.f16.f16"), "wrong"},
	{"cvt.rn.f32.s32 5, %r1", "cvt.rn.f32.s32: wrong operands"},
	{"cvt.rn.f32.s32 %r1, %r2, %r3", "cvt.rn.f32.s32: wrong operands"},
	{"cp.async.cg.shared.global [%r1], [%rd1], 8", "cp.async.cg.shared.global: a wrong size"},
	{"cp.async.ca.shared.global [%r1], [%rd1], 12", "cp.async.ca.shared.global: a wrong size"},
	{"cp.async.ca.shared.global [%r1], [%rd1], 16", NULL},
	{"cp.async.ca.shared.global [%r1], [%rd1], 8", NULL},
	{"mapa.shared::cta.u32 %r1, %r2, 1", "the instruction mapa.shared::cta.u32 is not simulated"},
	{"mapa.shared::cluster.u32.b %r1, %r2, 1", "the instruction mapa.shared::cluster.u32.b is not simulated"},
	{"mma.sync.aligned.m24n8k16.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4, %r5, %r6}, {%r5, %r6, %r7, %r8, %r1, "
	 "%r2}, "
	 "{%r9, %r10}, {%r1, %r2, %r3, %r4, %r5, %r6}",
		"the instruction mma.sync.aligned.m24n8k16.row.col.f32.f16.f16.f32 is not simulated"},
	{"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r5]",
		"ldmatrix.sync.aligned.m8n8.x2.shared.b16: a wrong number of registers"},
	{"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%rd1}, [%r5]",
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16: a register of another size was expected"},
	{"activemask.b32 3", "activemask.b32: wrong operands"},
	{"activemask.b32 %r1, %r2", "activemask.b32: wrong operands"},
	{"@[%r1] ret", "a predicate was expected behind '@'"},
	{"@{ ret", "',' was expected, not ';'"},
	{"/* one\n two */ mov.b32 %r1, %q1", "%q1 is not declared, or not simulated"},
	{"wgmma.wait_group.sync.aligned %r1", "wgmma.wait_group.sync.aligned: a number was expected"},
	/* one more, or one less, than there is */
	{"ld.global.u89 %h1, [%rd1]", "the instruction ld.global.u89 is not simulated"},
	{"cvt.rn.f32.s32 %h1, %r2", "cvt.rn.f32.s32: registers of a wrong size"},
	{"cvt.x2.f32 %h1, %r2", "the instruction cvt.x2.f32 is not simulated"},
	{"atom.u32 %r1, [%rd1], %r2", "the instruction atom.u32 is not simulated"},
	{"atom %r1, [%rd1], %r2", "the instruction atom is not simulated"},
	{".param .b8 q;\nst.param.b8 [q], %r1", NULL},
	{".param .b8 q;\nst.param.b8 [q], %h1", NULL},
	{".param .b8 q;\nst.param.b8 [q], 5", NULL},
	{"cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2, %r3, %r4, %r5}], [%r1]", NULL},
	{"cp.async.bulk.tensor.6d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2, %r3, %r4, %r5, %r6}], [%r1]",
		"the instruction cp.async.bulk.tensor.6d.global.shared::cta.tile.bulk_group is not simulated"},
	{"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;\n"
	 "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1]",
		"cp.async.bulk.global.shared::cta.bulk_group: a wrong number of operands"},
	{"//@ check.divisor.b32.u32 %r1, 5", NULL},
	{"//@ check.divisor.b32.u16 %r1, %h2", NULL},
	{"//@ check.divisor.b32.u32 5, %r2", "check.divisor.b32.u32: wrong operands"},
	{"mma.sync.aligned.m24n8k4.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4, %r5, %r6}, {%r7, %r8, %r9}, {%r7}, "
	 "{%r1, "
	 "%r2, %r3, %r4, %r5, %r6}",
		"the instruction mma.sync.aligned.m24n8k4.row.col.f32.tf32.tf32.f32 is not simulated"},
	{"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4}, {%r7, %r8}, {%r7}, {%r1, %r2, %r3, "
	 "%r4}",
		NULL},
	{"redux.sync.add.s16 %r1, %h2, -1", "the instruction redux.sync.add.s16 is not simulated"},
	{"redux.sync.add.s64 %r1, %rd2, -1", "the instruction redux.sync.add.s64 is not simulated"},
	{"redux.sync.add.f32 %r1, %r2, -1", "the instruction redux.sync.add.f32 is not simulated"},
	{"elect.sync %rd1|%p1, -1", "elect.sync: wrong operands"},
	{"elect.sync _|%p1, -1", NULL},
	{PRODUCT("m64n8k16", "f32.f16.bf16") " " SUMS ", 1, 1, 1, 0, 0", "is not simulated"},
	{PRODUCT("m64n8k32", "f32.e4m3.f16") " " SUMS ", 1, 1, 1", "is not simulated"},
	{"call.uni (%r1), vprintf, (%rd1, %rd2), 5", "call.uni: wrong operands"},
	{"call.uni %r1, vprintf, (%rd1, %rd2)", "call.uni: wrong operands"},
	{"call.uni a123456789b123456789c123456789d123456789e123456789f123456789g123456789, (%rd1)",
		"calls of a123456789b123456789c123456789d123456789e123456789f123456789 are not simulated"},
	{"mov.b64 %rd1, words+4", NULL},
	{".reg .b32 5", "a register was expected"},
	{".shared .align 4096 .b8 far[4]", NULL},
	{".shared .align 8192 .b8 far[4]", "a wrong alignment"},
	{".shared .align 0 .b8 far[4]", "a wrong alignment"},
	{".shared .align 24 .b8 far[4]", "a wrong alignment"},
	{"/* two * three ** / */ mov.b32 %r1, %r2", NULL},
	{"mov.b32 %r1, / %r2", "an operand was expected"},
	{"mov.b32 %r1, / 7 */ %r2", "an operand was expected"},
	{"mov.b32 %r1, {{{{{{{{%r1}}}}}}}}", "the instruction mov.b32 is not simulated"},
	{"mov.b32 %r1, {{{{{{{{{%r1}}}}}}}}}", "braces that are nested too deep"},
	{"wgmma.meet.sync.aligned", "the instruction wgmma.meet.sync.aligned is not simulated"},
};

static void test_messages(void **state)
{
	(void)state;
	unsigned bad = 0;
	for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
		char body[1024], error[640] = "", where[32];
		snprintf(body, sizeof body, "HERE:\n%s;\n", messages[i].instruction);
		sim_case c = {.body = body, .declarations = SIM_DECLARATIONS};
		char *text = sim_text(&c);
		sim_code *code = NULL;
		const char *says = messages[i].says;
		assert_non_null(text);
		bool good = sim_code_parse(text, "k", &code, error, sizeof error);
		snprintf(where, sizeof where, "line %d of the PTX: ",
			line_of_instruction(text) + (strchr(messages[i].instruction, '\n') != NULL));
		size_t skip = strlen(where);
		if (good != !says || (says && (strncmp(error, where, skip) != 0 || !strstr(error + skip, says) ||
						      (strchr(says, ':') && strcmp(error + skip, says) != 0))))
			print_error("%s: %s, not %s\n", messages[i].instruction, good ? "it is read" : error,
				says ? says : "read"),
				bad++;
		sim_code_free(code);
		free(text);
	}
	assert_int_equal(bad, 0);
}

/* Many branches by index that share a long list: what they amount to has an end. */
static void test_too_many_targets(void **state)
{
	(void)state;
	enum { TARGETS = 10000, BRANCHES = 1001, ROOM = 4 * TARGETS + 32 * BRANCHES + 64 };
	char *body = malloc(ROOM), error[640] = "";
	assert_non_null(body);
	size_t n = (size_t)snprintf(body, ROOM, "A:\nL: .branchtargets A");
	for (int i = 1; i < TARGETS; i++) n += (size_t)snprintf(body + n, ROOM - n, ", A");
	n += (size_t)snprintf(body + n, ROOM - n, ";\n");
	for (int i = 0; i < BRANCHES; i++) n += (size_t)snprintf(body + n, ROOM - n, "brx.idx %%r1, L;\n");
	sim_case c = {.body = body};
	char *text = sim_text(&c), wanted[96];
	sim_code *code = NULL;
	int line = 1;
	for (const char *s = text; s < strstr(text, "brx.idx"); s++) line += *s == '\n';
	assert_false(sim_code_parse(text, "k", &code, error, sizeof error));
	snprintf(wanted, sizeof wanted, "line %d of the PTX: brx.idx: more targets than can be simulated",
		line + BRANCHES - 1);
	assert_string_equal(error, wanted);
	free(text);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test_setup(test_words, none_wrong),
		cmocka_unit_test(test_other_words),
		cmocka_unit_test_setup(test_operands, none_wrong),
		cmocka_unit_test_setup(test_counts, none_wrong),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_too_many_targets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
