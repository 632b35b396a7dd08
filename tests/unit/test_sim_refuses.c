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
