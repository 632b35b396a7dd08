/* Instructions of which little is simulated: which words and operands they have at all.
 *
 * In: a statement, cut into words and operands.  Out: whether it is none of these, or one as PTX has it.  The one idea:
 * a fence or a hint whose words the decoder does not read must not pass for one that it knows. */
#include "parse.h"

#include <string.h>

/* words: those that tell that it is one, then `|`, then the rest; `a/b` is one of them, `a?` may be missing.
 * operands: a an address, n a number, v a value of 32 bits; `*`: their reader looks at them. */
typedef struct form {
	const char *words, *operands;
} form;

#define SCOPES "cta/cluster/gpu/sys"
static const form forms[] = {
	{"bra | uni?", "*"},
	{"ret | uni?", ""},
	{"exit |", ""},
	{"trap |", ""},
	{"membar | cta/gl/sys", ""},
	{"fence | sc/acq_rel/acquire/release " SCOPES, ""},
	{"fence | proxy alias", ""},
	{"fence | proxy async", ""},
	{"fence | proxy async global/shared::cta/shared::cluster", ""},
	{"fence | proxy tensormap::generic acquire " SCOPES, "an"},
	{"fence | proxy tensormap::generic release " SCOPES, ""},
	{"fence | mbarrier_init release cluster", ""},
	{"prefetch | global/local? L1/L2", "a"},
	{"prefetch | global L2::evict_last/L2::evict_normal", "a"},
	{"prefetch | const/param? tensormap", "a"},
	{"prefetchu | L1", "a"},
	{"discard | global? L2", "an"},
	{"applypriority | global? L2::evict_normal", "an"},
	{"nanosleep | u32", "v"},
	{"setmaxnreg | inc/dec sync aligned u32", "n"},
	{"griddepcontrol | wait/launch_dependents", ""},
	{"activemask | b32", "*"},
	{"bar warp | sync", "*"},
	{"vote | sync all/any/uni pred", "*"},
	{"vote | sync ballot b32", "*"},
	{"mbarrier pending_count | b64", "*"},
	{"cp async commit_group |", ""},
	{"cp async wait_group |", "n"},
	{"cp async wait_all |", ""},
	{"cp async bulk commit_group |", ""},
	{"cp async bulk wait_group | read?", "n"},
	{"barrier cluster | arrive release/relaxed? aligned?", ""},
	{"barrier cluster | wait acquire? aligned?", ""},
	{"wgmma fence | sync aligned", ""},
	{"wgmma commit_group | sync aligned", ""},
};

/* One of "a/b/c", n bytes. */
static bool is_one(const char *part, const char *of, size_t n)
{
	size_t length = strlen(part);
	for (const char *end = of + n; of < end; of++) {
		size_t m = strcspn(of, "/");
		if (m > (size_t)(end - of)) m = (size_t)(end - of);
		if (m == length && memcmp(of, part, m) == 0) return true;
		of += m;
	}
	return false;
}

/* *tells: its first words are this form's. */
static bool has_words(const parser *p, const char *words, bool *tells)
{
	size_t i = 0;
	*tells = false;
	for (const char *s = words; *s;) {
		size_t n = strcspn(s, " ");
		assert(n != 0); /* one space between two words */
		bool optional = s[n - 1] == '?';
		if (*s == '|')
			*tells = true;
		else if (i < p->nparts && is_one(p->parts[i], s, n - optional))
			i++;
		else if (!optional)
			return false;
		s += n + (s[n] == ' ');
	}
	return i == p->nparts;
}

static bool takes(parser *p, const char *operands)
{
	sim_instr unused = {0};
	uint32_t unit;
	if (operands[0] == '*') return true;
	if (p->noperands != strlen(operands)) return decode_wrong(p, "a wrong number of operands");
	for (size_t i = 0; operands[i]; i++) {
		operand *o = &p->operands[i];
		if (operands[i] == 'n' && o->kind != OPERAND_NUMBER) return decode_wrong(p, "a number was expected");
		if (operands[i] == 'a' && !decode_address(p, o, &unused)) return false;
		if (operands[i] == 'v' && !decode_unit(p, o, 4, &unit)) return false;
	}
	return true;
}

bool decode_known_form(parser *p)
{
	bool one_of_these = false;
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		bool tells;
		if (has_words(p, forms[i].words, &tells)) return takes(p, forms[i].operands);
		one_of_these |= tells;
	}
	return !one_of_these || decode_unknown(p);
}
