/* Launch signatures: reading, refusing, and the values of clauses. */
#include "runtime/package/signature.h"
#include "runtime/blk.h"
#include "runtime/package/defines.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static signature *parse(const char *text)
{
	signature *s;
	blk_status status = signature_parse(text, strlen(text), &s);
	assert_true(s ? status == BLK_OK : status == BLK_ERROR_FORMAT);
	return s;
}

/* 16 MiB are a text; one byte more is none. */
static void test_length(void **state)
{
	(void)state;
	static const char begin[] = "kernel k\nsource ";
	const size_t most = 16 << 20;
	char *text = malloc(most + 1);
	signature *s;
	assert_non_null(text);
	memset(text, 'a', most + 1);
	memcpy(text, begin, strlen(begin));
	assert_int_equal(signature_parse(text, most, &s), BLK_OK);
	assert_int_equal(strlen(s->source), most - strlen(begin));
	signature_free(s);
	assert_int_equal(signature_parse(text, most + 1, &s), BLK_ERROR_FORMAT);
	assert_null(s);
	free(text);
}

static void test_tensor_maps(void **state)
{
	(void)state;
	signature *s = parse(
		"kernel k\nparam z *f32\nparam x *const f16\nparam m i32\nparam n i64\n"
		"map f16 128 64 256 ; p1 p2 2 * + ; p3 ; p2 ; p3 2 *\nmap f32 0 4 8 1 ; p0 ; 4 ; 8 ; 1 ; 16 ; 32\n"
		"map tf32 128 32 8 ; p0 ; 32 ; 8 ; 128\n");
	assert_non_null(s);
	assert_int_equal(s->nmaps, 3);
	assert_int_equal(s->maps[0].element, BLK_TYPE_F16);
	assert_int_equal(s->maps[0].swizzle, 128);
	assert_int_equal(s->maps[0].rank, 2);
	assert_int_equal(s->maps[0].box[0], 64);
	assert_int_equal(s->maps[0].box[1], 256);
	assert_true(!s->maps[0].rounds && s->maps[2].rounds && s->maps[2].element == BLK_TYPE_F32);
	assert_int_equal(s->maps[1].rank, 3);
	const uint64_t bits[] = {UINT64_C(0x7f0000001000), UINT64_C(0x8000000000000100), 7, 1000};
	int64_t v;
	assert_true(signature_integer(s, &s->maps[0].address, bits, 1, &v));
	assert_true((uint64_t)v == UINT64_C(0x800000000000010e)); /* a pointer is all of its 64 bits */
	assert_true(signature_integer(s, &s->maps[0].extent[0], bits, 1, &v) && v == 1000);
	assert_true(signature_integer(s, &s->maps[0].extent[1], bits, 1, &v) && v == 7);
	assert_true(signature_integer(s, &s->maps[0].stride[1], bits, 1, &v) && v == 2000);
	assert_true(signature_integer(s, &s->maps[1].stride[2], bits, 1, &v) && v == 32);
	signature_free(s);
	static const struct {
		const char *line, *says;
	} wrong[] = {{"map", "unknown type"}, {"map f99 128 64 64 ; p0", "unknown type"},
		{"map f16 96 64 64 ; p0 ; 1 ; 1 ; 16", "unknown swizzle"}, {"map f16 128 ; p0", "without a box"},
		{"map f16 128 64 257 ; p0 ; 1 ; 1 ; 16", "without a box"},
		{"map f16 0 8 1 1 1 1 1 ; p0", "without a box"}, {"map f16 0 8 x ; p0", "without a box"},
		{"map f16 0 0 ; p0", "without a box"}, {"map f16 ; p0", "unknown swizzle"},
		{"map f16 x 8 ; p0", "unknown swizzle"}, {"map f16 128 64 64", "lacks an expression"},
		{"map f16 128 64 64 ; p0 ; 1 ; 1", "lacks an expression"},
		{"map f16 128 64 64 ; p0 ; 1 ; 1 ; 16 ; 1", "too many expressions"},
		{"map f16 128 64 64 ; p0 ; p0 ; 1 ; 16", "no numeric parameter"},
		{"map f16 128 64 64 ; p9 ; 1 ; 1 ; 16", "no numeric parameter"},
		{"map f16 128 64 64 ; ; 1 ; 1 ; 16", "no single value"}};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[256];
		snprintf(text, sizeof text, "kernel k\nparam z *f32\n%s\n", wrong[i].line);
		assert_null(parse(text));
		if (!strstr(blk_error(), wrong[i].says)) fail_msg("%s: %s", wrong[i].line, blk_error());
	}
	char many[4096] = "kernel k\nparam z *f32\n";
	for (unsigned i = 0; i < 17; i++) strcat(many, "map f16 0 8 1 ; p0 ; 8 ; 1 ; 16\n");
	assert_null(parse(many));
	assert_non_null(strstr(blk_error(), "more than 16 tensor maps"));
}

static void test_reads_every_fact(void **state)
{
	(void)state;
	signature *s = parse(
		"kernel add\nsymbol add_f32\ntarget sm_90a\nparam z *f32 align 16\nparam x *const f16\n"
		"param y *const  bf16 align 32\nparam n i32 div 16\nparam one u64 one\nparam flag bool\n"
		"const BLOCK i32 1024\nconst T type f16\nconst S shape [2, 3]\nwritten 0\nwrites_addresses 4\n"
		"grid 0 p3 1024 cdiv\ngrid 1 2\ncost bytes p3 12 *\ncost flops p3\nnum_warps 8\nnum_stages 3\n"
		"num_ctas 2\ncluster 4\nthreads 256\nshared 1024\nmaxnreg 64\nscratch 77\nmax_registers "
		"40\nmax_spills 0\n"
		"max_shared 2048\nautotune BLOCK: [1, 2]\nconfiguration BLOCK=1\n"
		"time p3 2 *\nconfiguration BLOCK=2,num_warps=4\ntry 7\nkey p3 next_pow2 ; next_pow2(n)\nkey p0 ; z\n"
		"order p3 =1 @1 @1 *\nsomething new 1 2 3\n\n");
	assert_non_null(s);
	assert_string_equal(s->kernel, "add");
	assert_string_equal(s->symbol, "add_f32");
	assert_string_equal(s->target, "sm_90a");
	assert_int_equal(s->nparameters, 6);
	assert_int_equal(s->parameters[0].code, BLK_TYPE_POINTER);
	assert_int_equal(s->parameters[0].element, BLK_TYPE_F32);
	assert_int_equal(s->parameters[0].divisible, 16);
	assert_true(s->parameters[0].written);
	assert_false(s->parameters[0].is_const);
	assert_true(s->parameters[4].written_through && s->uses_addresses);
	assert_false(s->parameters[0].written_through || s->writes_addresses);
	assert_string_equal(s->parameters[1].type, "*const f16");
	assert_true(s->parameters[1].is_const);
	assert_false(s->parameters[1].written);
	assert_string_equal(s->parameters[2].type, "*const bf16");
	assert_int_equal(s->parameters[2].element, BLK_TYPE_BF16);
	assert_int_equal(s->parameters[2].divisible, 32);
	assert_int_equal(s->parameters[3].code, BLK_TYPE_I32);
	assert_int_equal(s->parameters[3].divisible, 16);
	assert_true(s->parameters[4].is_one);
	assert_int_equal(s->parameters[4].code, BLK_TYPE_U64);
	assert_int_equal(s->parameters[5].code, BLK_TYPE_BOOL);
	assert_int_equal(s->nconstants, 3);
	assert_string_equal(s->constants[0].value, "1024");
	assert_string_equal(s->constants[1].name, "T");
	assert_string_equal(s->constants[2].value, "[2, 3]");
	assert_int_equal(s->ngrid, 2);
	assert_int_equal(s->num_warps, 8);
	assert_int_equal(s->num_stages, 3);
	assert_int_equal(s->num_ctas, 2);
	assert_int_equal(signature_cluster(s), 4);
	assert_int_equal(s->threads, 256);
	assert_int_equal(s->shared, 1024);
	assert_int_equal(s->maxnreg, 64);
	assert_int_equal(s->scratch, 77);
	assert_int_equal(s->max_registers, 40);
	assert_int_equal(s->max_spills, 0);
	assert_int_equal(s->max_shared, 2048);
	assert_string_equal(s->autotune, "BLOCK: [1, 2]");
	assert_int_equal(s->nconfigurations, 2);
	assert_string_equal(s->configurations[1], "BLOCK=2,num_warps=4");
	uint64_t bits[6] = {0, 0, 0, 98432};
	int64_t v;
	assert_true(signature_integer(s, &s->grid[0], bits, 1, &v));
	assert_int_equal(v, 97);
	assert_true(signature_number(s, &s->cost_bytes, bits, 1) == 98432.0 * 12);
	assert_true(signature_number(s, &s->times[0], bits, 1) == 98432.0 * 2);
	assert_int_equal(s->times[1].ntokens, 0);
	assert_true(signature_number(s, &s->order, bits, 1) == 98432.0 * 98432.0);
	assert_true(signature_integer(s, &s->order, bits, 1, &v) && v == INT64_C(98432) * 98432);
	assert_int_equal(s->tries, 7);
	assert_int_equal(s->nkeys, 2);
	assert_string_equal(s->keys[0].source, "next_pow2(n)");
	assert_int_equal(signature_key_parameter(&s->keys[0]), UINT32_MAX);
	assert_int_equal(signature_key_parameter(&s->keys[1]), 0); /* a pointer may be one */
	signature_free(s);
}

/* What an expression keeps, and what a tuner's facts must be. */
static void test_refuses_searches(void **state)
{
	(void)state;
	static const struct {
		const char *line, *says;
	} wrong[] = {{"order @0", "used before it is kept"}, {"order 1 =0 @1", "used before it is kept"},
		{"order 1 =128 1", "keeps too many values"}, {"order 1 =0", "no single value"},
		{"order =0 1", "lacks operands"}, {"order 1 2", "no single value"}, {"order", "no single value"},
		{"time 1", "no configuration stands before it"}, {"key p0", "a key lacks a part"},
		{"key p9 ; n", "no numeric parameter"}, {"try", "a number is missing"}};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[256];
		snprintf(text, sizeof text, "kernel k\nparam n i32\n%s\n", wrong[i].line);
		assert_null(parse(text));
		if (!strstr(blk_error(), wrong[i].says)) fail_msg("%s: %s", wrong[i].line, blk_error());
	}
	/* a kept value that has none is none where it is used, and only there */
	signature *s = parse("kernel k\nparam n i32\norder p0 p0 / =127 p0 0 == 7 @127 ?:\n");
	int64_t v;
	uint64_t zero[] = {0}, one[] = {1};
	assert_non_null(s);
	assert_true(signature_integer(s, &s->order, zero, 1, &v) && v == 7);
	assert_true(signature_integer(s, &s->order, one, 1, &v) && v == 1);
	signature_free(s);
}

/* Constants that a launch computes. */
static void test_computed(void **state)
{
	(void)state;
	static const struct {
		const char *line, *says;
	} wrong[] = {{"computed", "no integer type"}, {"computed B f32 - - p0 ; n=p0 ; n", "no integer type"},
		{"computed B i32", "without bounds"}, {"computed B i32 1 - p0 ; n=p0 ; n", "without bounds"},
		{"computed B i32 - 9 p0 ; n=p0 ; n", "without bounds"},
		{"computed B i32 a 9 p0 ; n=p0 ; n", "without bounds"},
		{"computed B i32 1 9 p0 ; n=p0", "lacks a part"},
		{"computed B i32 1 9 p1 ; n=p0 ; n", "no numeric parameter"}};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[256];
		snprintf(text, sizeof text, "kernel k\nparam n i32\n%s\n", wrong[i].line);
		assert_null(parse(text));
		if (!strstr(blk_error(), wrong[i].says)) fail_msg("%s: %s", wrong[i].line, blk_error());
	}
	signature *s = parse("kernel k\nparam n i32\ncomputed B i32 -4 64 p0 next_pow2 ; n=p0 ; next_pow2(n) \\x3b\n"
			     "computed E bool - - p0 4 == ;  ; n == 4\n");
	uint64_t bits[] = {33};
	int64_t v;
	assert_non_null(s);
	assert_int_equal(s->ncomputed, 2);
	assert_string_equal(s->computed[0].name, "B");
	assert_string_equal(s->computed[0].value.source, "next_pow2(n) ;");
	assert_true(s->computed[0].bounded && s->computed[0].low == -4 && s->computed[0].high == 64);
	assert_true(signature_integer(s, &s->computed[0].value.condition, bits, 1, &v) && v == 64);
	assert_false(s->computed[1].bounded);
	assert_int_equal(s->computed[1].type, BLK_TYPE_BOOL);
	signature_free(s);
	char many[2000] = "kernel k\nparam n i32\n";
	for (int i = 0; i < 17; i++) strcat(many, "computed B i32 - - p0 ; n=p0 ; n\n");
	assert_null(parse(many));
	assert_non_null(strstr(blk_error(), "more than 16 computed"));
}

/* What a launch requires: clauses with their names and texts, and what configurations fit. */
static void test_requirements(void **state)
{
	(void)state;
	signature *s =
		parse("kernel k\nparam n i32\nparam m u64\nparam f bool\nconst B i32 64\n"
		      "requires p0 64 <= ; n=p0 B=64 num_sms=num_sms ; n <= B ; it\\x0afits\\x3b \\x5c ; so\n"
		      "requires p0 p1 % 0 == p2 || ; n=p0 m=p1 f=p2 T=*f32 ; n % m == 0 \\x3b ; \n"
		      "configuration B=32\nfits p0 32 <=\nfits 1\nconfiguration B=16\nconfiguration B=8\nfits 1\n"
		      "fits p0 p1 /\nfits 0\n");
	assert_non_null(s);
	assert_int_equal(s->nrequirements, 2);
	assert_string_equal(s->requirements[0].source, "n <= B");
	assert_string_equal(s->requirements[0].text, "it\nfits; \\ ; so");
	assert_string_equal(s->requirements[1].source, "n % m == 0 ;");
	assert_string_equal(s->requirements[1].text, "");
	char text[128];
	int64_t v;
	uint64_t good[] = {64, 32, 0}, large[] = {65, 1, 0}, odd[] = {63, 2, 0}, zero[] = {63, 0, 0};
	assert_null(signature_unmet(s, good, 7));
	assert_ptr_equal(signature_unmet(s, large, 7), &s->requirements[0]);
	assert_ptr_equal(signature_unmet(s, odd, 7), &s->requirements[1]);
	assert_ptr_equal(signature_unmet(s, zero, 7), &s->requirements[1]);
	uint64_t negative[] = {(uint32_t)-3, INT64_MAX, 1}, beyond[] = {64, UINT64_C(1) << 63, 1};
	assert_null(signature_unmet(s, negative, 7));
	assert_ptr_equal(signature_unmet(s, beyond, 7), &s->requirements[1]);
	assert_false(signature_integer(s, &s->requirements[1].condition, beyond, 7, &v));
	assert_string_equal(signature_trouble_text((signature_trouble)v), "has an argument that i64 cannot hold");
	signature_requirement_values(s, &s->requirements[1], beyond, 7, text, sizeof text);
	assert_string_equal(text, "n = 64, m = 9223372036854775808, f = true, T = *f32");
	signature_requirement_text(&s->requirements[0], text, sizeof text);
	assert_string_equal(text, "n <= B (it\nfits; \\ ; so)");
	signature_requirement_text(&s->requirements[1], text, sizeof text);
	assert_string_equal(text, "n % m == 0 ;");
	signature_requirement_values(s, &s->requirements[0], negative, 7, text, sizeof text);
	assert_string_equal(text, "n = -3, B = 64, num_sms = 7");
	signature_requirement_values(s, &s->requirements[1], negative, 7, text, sizeof text);
	assert_string_equal(text, "n = -3, m = 9223372036854775807, f = true, T = *f32");
	signature_requirement_values(s, &s->requirements[1], negative, 7, text, 12); /* what has room, whole or not */
	assert_true(strlen(text) < 12 && strncmp(text, "n = -3", 6) == 0);
	assert_ptr_equal(signature_misfit(s, 0, good, 7), &s->requirements[0]);
	assert_null(signature_misfit(s, 0, negative, 7));
	assert_null(signature_misfit(s, 1, large, 7)); /* it says nothing */
	assert_ptr_equal(signature_misfit(s, 2, zero, 7), &s->requirements[1]);
	const signature_requirement *other =
		signature_misfit(s, 2, good, 7); /* a third, which the kernel does not name */
	assert_true(other && other != &s->requirements[0] && other != &s->requirements[1]);
	signature_free(s);
	/* Escapes that are none stay as they are; what is no parameter's number stands for itself. */
	s = parse("kernel k\nparam n i32\nparam f bool\n"
		  "requires p0 ; loose n=p0 o=p9 q=px f=p1 long=a_word_of_many_letters ; \\x0g \\xg0 \\x00 \\x/0 \\x:0 "
		  "\\x`0 \\y "
		  "\\x7e\\x7E\n");
	assert_non_null(s);
	assert_string_equal(s->requirements[0].source, "\\x0g \\xg0 \\x00 \\x/0 \\x:0 \\x`0 \\y ~\\x7E");
	assert_string_equal(s->requirements[0].text, "");
	const uint64_t two[] = {(uint32_t)-2, 0};
	signature_requirement_values(s, &s->requirements[0], two, 7, text, sizeof text);
	assert_string_equal(text, "n = -2, o = p9, q = px, f = false, long = a_word_of_many_letters");
	signature_free(s);
	static const char *const wrong[][2] = {{"requires", "lacks a part"}, {"requires p0", "lacks a part"},
		{"requires p0 ; n=p0", "lacks a part"}, {"requires p0 p0 ; n=p0 ; n", "no single value"},
		{"requires p9 ;  ; n", "numeric parameter"}, {"fits 1", "no configuration"},
		{"configuration B=1\nfits", "no single value"}};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char source[256];
		snprintf(source, sizeof source, "kernel k\nparam n i32\n%s\n", wrong[i][0]);
		if (parse(source)) fail_msg("'%s' is read", wrong[i][0]);
		if (!strstr(blk_error(), wrong[i][1])) fail_msg("%s: %s", wrong[i][0], blk_error());
	}
}

static void test_defaults(void **state)
{
	(void)state;
	signature *tabs = parse("kernel\tk\t\nparam \t n\ti32\tone\ngrid 1\t2\ngrid 0 3\n");
	assert_non_null(tabs);
	assert_string_equal(tabs->kernel, "k");
	assert_true(tabs->nparameters == 1 && tabs->parameters[0].is_one && tabs->ngrid == 2);
	signature_free(tabs);
	signature *s = parse("kernel k");
	assert_non_null(s);
	assert_string_equal(s->symbol, "k");
	assert_int_equal(s->ngrid, 0);
	assert_int_equal(s->nparameters, 0);
	assert_int_equal(s->cost_bytes.ntokens, 0);
	int64_t v;
	assert_false(signature_integer(s, &s->cost_bytes, NULL, 1, &v));
	assert_true(isnan(signature_number(s, &s->cost_bytes, NULL, 1)));
	assert_true(s->max_registers == UINT32_MAX && s->max_shared == UINT32_MAX);
	signature_free(s);
}

static void test_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "names no kernel"},
		{"param n i32\n", "names no kernel"},
		{"kernel\n", "line 1"},
		{"kernel k\nparam n\n", "line 2"},
		{"kernel k\nparam n i33\n", "unknown type"},
		{"kernel k\nparam n *const\n", "without a type"},
		{"kernel k\nparam n i32 align\n", "promise"},
		{"kernel k\nparam n i32 div x\n", "promise"},
		{"kernel k\nconst N\n", "constant"},
		{"kernel k\nparam n i32\nwritten 0\n", "no pointer"},
		{"kernel k\nwritten 3\n", "no pointer"},
		{"kernel k\nwritten 99999\n", "no such parameter"},
		{"kernel k\nparam p i64\nwrites_addresses 1\n", "addresses of parameter 1, which is not there"},
		{"kernel k\nwrites_addresses 99999\n", "no such parameter"},
		{"kernel k\ngrid 3 1\n", "axis"},
		{"kernel k\ngrid 1 1\n", "no grid expression 0"},
		{"kernel k\ngrid 0\n", "single value"},
		{"kernel k\ngrid 0 +\n", "lacks operands"},
		{"kernel k\ngrid 0 1 +\n", "lacks operands"},
		{"kernel k\ngrid 0 1 2\n", "single value"},
		{"kernel k\ngrid 0 p0\n", "numeric parameter"},
		{"kernel k\nparam x *f32\ngrid 0 p0\n", "numeric parameter"},
		{"kernel k\ngrid 0 foo\n", "unknown word"},
		{"kernel k\ngrid 0 1x\n", "unknown word"},
		{"kernel k\ncost time 1\n", "neither"},
		{"kernel k\nthreads\n", "number"},
		{"kernel k\nshared 4294967296\n", "number"},
		{"kernel k\nshared -1\n", "number"},
		{"kernel k\nshared 99999999999999999999999\n", "number"},
		{"kernel k\nshared 1x\n", "number"},
		{"kernel k\ncost\n", "neither"},
		{"kernel k\nwritten\n", "no such parameter"},
		{"kernel k\ngrid\n", "axis"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_null(parse(bad[i].text));
		if (!strstr(blk_error(), bad[i].says)) fail_msg("'%s' says: %s", bad[i].text, blk_error());
	}
	signature *none;
	assert_int_equal(signature_parse("kernel k\n\0grid", 14, &none), BLK_ERROR_FORMAT);
	assert_null(none);
	char *large = malloc((16u << 20) + 2);
	memset(large, ' ', (16u << 20) + 1);
	memcpy(large, "kernel k\n", 9);
	assert_int_equal(signature_parse(large, (16u << 20) + 1, &none), BLK_ERROR_FORMAT);
	assert_non_null(strstr(blk_error(), "no text"));
	free(large);
	char *many = calloc(257, 16);
	strcpy(many, "kernel k\n");
	for (int i = 0; i < 256; i++) strcat(many, "param n i32\n");
	signature *most = parse(many);
	assert_int_equal(most->nparameters, 256);
	signature_free(most);
	strcat(many, "param n i32\n");
	assert_null(parse(many));
	assert_non_null(strstr(blk_error(), "line 258 of a kernel's signature: more than 256 parameters"));
	free(many);
	char deep[4096] = "kernel k\ngrid 0";
	for (int i = 0; i < 257; i++) strcat(deep, " 1");
	for (int i = 0; i < 256; i++) strcat(deep, " +");
	assert_null(parse(deep));
	assert_non_null(strstr(blk_error(), "deep"));
}

/* Every prefix and every changed byte of a signature is read or refused, never more. */
static void test_hostile_text(void **state)
{
	(void)state;
	const char *text = "kernel add\nparam x *const f32 align 16\nparam n i32 one\nconst B i32 4\nwritten 0\n"
			   "grid 0 p1 4 cdiv 1 ?:\ncost bytes p1 4.5 *\n";
	size_t n = strlen(text);
	char copy[256];
	signature *s;
	for (size_t i = 0; i < n; i++) {
		signature_parse(text, i, &s);
		signature_free(s);
	}
	for (size_t i = 0; i < n; i++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, text, n + 1);
			copy[i] ^= (char)(1 << bit);
			signature_parse(copy, n, &s);
			signature_free(s);
		}
}

static signature *with_clause(const char *postfix)
{
	char text[512];
	snprintf(text, sizeof text,
		"kernel k\nparam a i32\nparam b u64\nparam c f32\nparam d bool\nparam e i8\ngrid 0 %s\ncost bytes %s\n",
		postfix, postfix);
	return parse(text);
}

static void test_integer_values(void **state)
{
	(void)state;
	float c = 2.75f;
	uint32_t c_bits;
	memcpy(&c_bits, &c, 4);
	const uint64_t bits[] = {(uint32_t)-7, 10, c_bits, 1, 0x80};
	static const struct {
		const char *postfix;
		int64_t value;
	} good[] = {
		{"5", 5},
		{"-5", -5},
		{"0x10", 16},
		{"p0", -7},
		{"p1", 10},
		{"p2", 2},
		{"p3", 1},
		{"p4", -128},
		{"true", 1},
		{"false", 0},
		{"2 1 max", 2},
		{"2.9", 2},
		{".5", 0},
		{"1 2 +", 3},
		{"1 2 -", -1},
		{"p0 p1 *", -70},
		{"p0 2 /", -3},
		{"p0 2 %", -1},
		{"p0 neg", 7},
		{"1 40 <<", INT64_C(1) << 40},
		{"1 64 <<", 0},
		{"-8 1 >>", -4},
		{"-8 64 >>", -1},
		{"8 99 >>", 0},
		{"6 3 &", 2},
		{"6 3 |", 7},
		{"6 3 ^", 5},
		{"0 ~", -1},
		{"1 2 <", 1},
		{"2 2 <=", 1},
		{"1 2 >", 0},
		{"2 2 >=", 1},
		{"2 2 ==", 1},
		{"2 2 !=", 0},
		{"2 3 &&", 1},
		{"0 3 ||", 1},
		{"0 0 ||", 0},
		{"5 !", 0},
		{"1 10 20 ?:", 10},
		{"0 10 20 ?:", 20},
		{"7 2 cdiv", 4},
		{"8 2 cdiv", 4},
		{"0 2 cdiv", 0},
		{"-7 2 cdiv", -3},
		{"7 -2 cdiv", -3},
		{"-7 -2 cdiv", 4},
		{"3 4 min", 3},
		{"3 4 max", 4},
		{"0 next_pow2", 1},
		{"1 next_pow2", 1},
		{"5 next_pow2", 8},
		{"1024 next_pow2", 1024},
		{"4611686018427387904 next_pow2", INT64_C(1) << 62},
		{"4611686018427387905 next_pow2", INT64_MIN}, /* 2^63, as its 64 bits are read */
		{"num_sms", 132},
		{"num_sms 2 *", 264},
		{"9223372036854775807 1 +", INT64_MIN},
		{"9223372036854775807 neg 1 - -1 /", INT64_MIN},
		{"9223372036854775807 neg 1 - -1 %", 0},
		/* what is not taken may divide by zero */
		{"0 1 0 / 3 ?:", 3},
		{"1 3 1 0 % ?:", 3},
		{"0 1 0 / &&", 0},
		{"1 1 0 cdiv ||", 1},
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		signature *s = with_clause(good[i].postfix);
		int64_t v = 0;
		assert_non_null(s);
		if (!signature_integer(s, &s->grid[0], bits, 132, &v) || v != good[i].value)
			fail_msg("%s gives %lld", good[i].postfix, (long long)v);
		signature_free(s);
	}
	static const char *const zero[] = {"1 0 /", "1 0 %", "1 0 cdiv", "1 0 / 1 +", "1 1 0 / 3 ?:", "1 1 0 / &&",
		"1 0 / 1 2 ?:", "0 1 0 / ||", "1 0 / neg", "2 1 0 / min", "1 0 / 2 /", "2 1 0 / /", "1 0 / 0 &&",
		"1 0 / 1 ||"};
	for (size_t i = 0; i < sizeof zero / sizeof zero[0]; i++) {
		signature *s = with_clause(zero[i]);
		int64_t v;
		assert_non_null(s);
		if (signature_integer(s, &s->grid[0], bits, 132, &v)) fail_msg("%s gives %lld", zero[i], (long long)v);
		assert_int_equal(v, SIGNATURE_DIVIDES);
		signature_free(s);
	}
	/* i64 has no number for p1 = 2^64 - 1; what is taken alone decides */
	static const struct {
		const char *postfix;
		bool good;
		int64_t value;
	} large[] = {{"p1 0 >", false, SIGNATURE_LARGE}, {"p1 1 0 / +", false, SIGNATURE_LARGE},
		{"1 0 / p1 +", false, SIGNATURE_DIVIDES}, {"p0 p1 cdiv", false, SIGNATURE_LARGE},
		{"p1 neg", false, SIGNATURE_LARGE}, {"p3 p1 &&", false, SIGNATURE_LARGE}, {"p3 p1 ||", true, 1},
		{"p3 4 p1 ?:", true, 4}, {"p1 4 5 ?:", false, SIGNATURE_LARGE}};
	uint64_t huge[] = {1, UINT64_MAX, 0, 1, 0};
	for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
		signature *s = with_clause(large[i].postfix);
		int64_t v;
		assert_non_null(s);
		if (signature_integer(s, &s->grid[0], huge, 132, &v) != large[i].good || v != large[i].value)
			fail_msg("%s gives %lld", large[i].postfix, (long long)v);
		signature_free(s);
	}
}

static void test_float_values(void **state)
{
	(void)state;
	float c = 2.75f;
	uint32_t c_bits;
	memcpy(&c_bits, &c, 4);
	const uint64_t bits[] = {(uint32_t)-7, UINT64_MAX, c_bits, 1, 0x80};
	static const struct {
		const char *postfix;
		double value;
	} good[] = {{"p0 2 /", -3.5}, {"p1", 18446744073709551615.0}, {"p2 2 *", 5.5}, {"7 2 cdiv", 4},
		{"5.5 2 %", 1.5}, {"1e3 1.5 *", 1500}, {"5 next_pow2", 8}, {"1 2 <", 1}, {"1 3 <<", 8}, {"6 3 &", 2},
		{"0 2 3 ?:", 3}, {"p0 3 max", 3}, {"1.5 1.25 max", 1.5}, {".5 2 *", 1}, {"-1.5 2 *", -3}, {"false", 0},
		{"99999999999999999999", 1e20}, {"num_sms", 132}, {"1 0 /", INFINITY},
		/* what integers do not say: fractions stay, quotients round up, bits are those of the integer part */
		{"1.5 0.25 -", 1.25}, {"1.5 neg", -1.5}, {"7.5 2 cdiv", 4}, {"-7 2 cdiv", -3}, {"12.9 2.9 >>", 3},
		{"-16 2 >>", -4}, {"6.9 3.9 |", 7}, {"6 3 ^", 5}, {"6.5 ~", -7}, {"1 64 <<", 0}, {"-1 64 >>", -1},
		{"1.5 1.25 <", 0}, {"1.5 1.5 <=", 1}, {"1.75 1.5 <=", 0}, {"1.75 1.5 >", 1}, {"1.5 1.5 >", 0},
		{"1.5 1.5 >=", 1}, {"1.25 1.5 >=", 0}, {"1.5 1.5 ==", 1}, {"1.5 1.25 ==", 0}, {"1.5 1.25 !=", 1},
		{"1.5 1.5 !=", 0}, {"0.5 0.25 &&", 1}, {"0.5 0 &&", 0}, {"0 0.5 &&", 0}, {"0 0.5 ||", 1},
		{"0.5 0 ||", 1}, {"0 0 ||", 0}, {"0.5 !", 0}, {"0 !", 1}, {"0.5 2 3 ?:", 2}, {"1.5 1.25 min", 1.25},
		{"1.25 1.5 min", 1.25}, {"1.25 1.5 max", 1.5}, {"5.9 next_pow2", 8}, {"-3 next_pow2", 1},
		/* beyond 64 bits the nearest integer there is; a nan is 0 */
		{"1e30 0 |", 9223372036854775807.0}, {"-1e30 0 |", -9223372036854775808.0}, {"0 0 / 1 |", 1}};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		signature *s = with_clause(good[i].postfix);
		assert_non_null(s);
		double v = signature_number(s, &s->cost_bytes, bits, 132);
		if (v != good[i].value) fail_msg("%s gives %g", good[i].postfix, v);
		signature_free(s);
	}
}

/* A kernel is compiled with the defines that are its own, any number of them, and then the configuration's. */
static void test_defines_of_a_kernel(void **state)
{
	(void)state;
	enum { MANY = 3000 };
	signature *s = parse("kernel add\nconst BLOCK i32 1024\nconst S shape [2, 3]\n");
	static blkc_define given[MANY];
	kernel_defines d;
	for (int i = 0; i < MANY; i++) given[i] = (blkc_define){i % 3 ? "BLOCK" : i % 2 ? "BLOC" : "num_warps", "8"};
	assert_true(kernel_defines_make(s, given, MANY, "BLOCK=64,S=[1,[2,3]],num_warps=4", &d));
	assert_int_equal(d.n, MANY - MANY / 6 + 3);
	assert_string_equal(d.list[0].name, "num_warps");
	assert_string_equal(d.list[d.n - 3].name, "BLOCK");
	assert_string_equal(d.list[d.n - 3].value, "64");
	assert_string_equal(d.list[d.n - 2].name, "S");
	assert_string_equal(d.list[d.n - 2].value, "[1,[2,3]]");
	assert_string_equal(d.list[d.n - 1].value, "4");
	kernel_defines_free(&d);
	assert_true(kernel_defines_make(s, given, 1, NULL, &d));
	assert_int_equal(d.n, 1);
	kernel_defines_free(&d);
	assert_string_equal(kernel_constant(s, "S")->value, "[2, 3]");
	assert_null(kernel_constant(s, "num_warps"));
	assert_ptr_equal(kernel_option(s, "num_warps"), &s->num_warps);
	assert_null(kernel_option(s, "threads"));
	signature_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_defines_of_a_kernel),
		cmocka_unit_test(test_reads_every_fact), cmocka_unit_test(test_length),
		cmocka_unit_test(test_tensor_maps), cmocka_unit_test(test_refuses_searches),
		cmocka_unit_test(test_computed), cmocka_unit_test(test_requirements), cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_refuses), cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_integer_values), cmocka_unit_test(test_float_values)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
