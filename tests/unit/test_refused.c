/* What the lowering to PTX refuses: operations that no instruction makes, and functions whose scratch is not there.  A
 * sentence each, at the operation, instead of code that computes something else. */
#include "ir_text.h"

#include "target/nvptx/nvptx.h"
#include "target/nvptx/ptx_join.h"

static bool spoils(const ir_op *o, const char *kind)
{
	return kind && strcmp(ir_info(o)->name, kind) == 0;
}

static void spoil(ir_op *o, void *kind)
{
	if (spoils(o, kind)) o->shared_bytes = 0;
}

/* To PTX; without scratch for operations of that kind. */
static bool emits(const char *body, const char *kind)
{
	ir_func *f = read_text(arena_printf(&memory,
		"func @k(%%p: *f32 {align=16}, %%q: *i32 {align=16}, %%x: f32, %%d: f64, %%n: i32) num_warps=4 {\n"
		"%%i = arange {lo=0} : i32[256] %%ps = splat %%p : (*f32)[256] %%a = ptr_add %%ps, %%i : (*f32)[256]\n"
		"%%qs = splat %%q : (*i32)[256] %%b = ptr_add %%qs, %%i : (*i32)[256]\n"
		"%%t = load %%a {cache=none evict=none volatile=0} : f32[256]\n"
		"%%u = load %%b {cache=none evict=none volatile=0} : i32[256]\n%s\nreturn\n}",
		body));
	pass_context p = {.arena = &memory, .diags = &messages, .target = target_find("sm_80")};
	assert_true(pass_assign_layouts(&p, f) && pass_allocate_shared(&p, f) && pass_barriers(&p, f));
	char name[32] = "";
	if (kind) strcpy(name, kind);
	ir_walk(f->body, spoil, name);
	nvptx_options options = {.want_ptx = true};
	nvptx_output out;
	bool good = nvptx_emit(&p, f, &options, &out);
	if (good) assert_true(out.ptx_bytes > 0);
	return good;
}

static void lowerings(void **state)
{
	(void)state;
#define STORE(v) " store %p, " v " {cache=none evict=none}"
#define ALL(v) " store %a, " v " {cache=none evict=none}"
	static const struct {
		const char *body, *kind, *says; /* kind: its scratch is taken away; says null: it is lowered */
	} rows[] = {
		{"%r = reduce %t {axis=0 combine=sum} : f32" STORE("%r"), NULL, NULL},
		{"%r = reduce %t {axis=0 combine=sum} : f32" STORE("%r"), "reduce",
			"no shared memory was set aside for a reduction"},
		{"%r = scan %t {axis=0 combine=sum reverse=0} : f32[256]" ALL("%r"), NULL, NULL},
		{"%r = scan %t {axis=0 combine=sum reverse=0} : f32[256]" ALL("%r"), "scan",
			"no shared memory was set aside for a scan"},
		{"%r = gather %t, %u {axis=0} : f32[256]" ALL("%r"), NULL, NULL},
		{"%r = gather %t, %u {axis=0} : f32[256]" ALL("%r"), "gather",
			"no shared memory was set aside for 'gather'"},
		{"%h = histogram %u : i32[256] store %b, %h {cache=none evict=none}", NULL, NULL},
		{"%h = histogram %u : i32[256] store %b, %h {cache=none evict=none}", "histogram",
			"no shared memory was set aside for 'histogram'"},
		{"%r = sort %t {axis=0 descending=0 k=0} : f32[256]" ALL("%r"), NULL, NULL},
		{"%r = flip %t {axis=0} : f32[256] %y = add %r, %t : f32[256]" ALL("%y"), NULL, NULL},
		{"%r = load %p {cache=none evict=none volatile=1} : f32" STORE("%r"), NULL, NULL},
		{"%m = load %q {cache=none evict=none volatile=1} : i32 %y = splat %m : i32[256] "
		 "store %b, %y {cache=none evict=none}",
			"load", "no shared memory was set aside for a scalar that thread 0 has"},
		/* functions that other passes make arithmetic of */
		{"%r = tanh %x : f32" STORE("%r"), NULL, "'tanh' of f32 has no lowering"},
		{"%y = exp %d : f64 %r = convert %y : f32" STORE("%r"), NULL, "'exp' of f64 has no lowering"},
		{"%h = convert %x : f16 %y = erf %h : f16 %r = convert %y : f32" STORE("%r"), NULL,
			"'erf' of f16 has no lowering"},
		{"%r = pow %x, %x : f32" STORE("%r"), NULL, "'pow' of f32 has no lowering"},
		{"%r = exp %x : f32" STORE("%r"), NULL, NULL},
		{"%r = log %x : f32" STORE("%r"), NULL, NULL},
		{"%r = log2 %x : f32" STORE("%r"), NULL, NULL},
	};
	unsigned wrong = 0;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint32_t before = messages.errors;
		bool good = emits(rows[i].body, rows[i].kind);
		const diag *d = messages.first;
		while (d && d->next) d = d->next;
		const char *said = messages.errors > before ? d->message : "(nothing)";
		if (good == !rows[i].says && messages.errors == before + !good && (good || strstr(said, rows[i].says)))
			continue;
		wrong++, print_error("%s (%s): %s\n", rows[i].body, rows[i].kind ? rows[i].kind : "", said);
	}
	assert_int_equal(wrong, 0);
#undef STORE
#undef ALL
}

/* Modules joined: one header of the highest version, files by path, places renumbered, inlined ones too. */
static void joined(void **state)
{
	(void)state;
	static const char *const ptx[] = {
		".version 8.0\n.target sm_80\n.address_size 64\n.local .b8 x;\n\t.loc\t1 5 2\n\t.file\t1 \"a.blk\"\n",
		".version 8.3\n.target sm_80\n.address_size 64\n\t.loc 1 7 0, function_name f, inlined_at 2 9 1\n"
		"\t.loc\t3 1 1\n\t.file\t1 \"b.blk\"\n\t.file\t2 \"a.blk\"\n\t.file 99999999 \"c.blk\"\n// end\n",
	};
	size_t bytes;
	const char *s = ptx_join(&memory, ptx, 2, &bytes);
	assert_string_equal(s,
		".version 8.3\n.target sm_80\n.address_size 64\n.local .b8 x;\n\t.loc\t1 5 2\n"
		"\t.loc 2 7 0, function_name f, inlined_at 1 9 1\n\t.loc\t3 1 1\n// end\n\t.file\t1 \"a.blk\"\n"
		"\t.file\t2 \"b.blk\"\n");
	assert_int_equal(bytes, strlen(s));
	/* an inlined_at of a later line is not this line's; a number that no .file names stays */
	static const char *const lines[] = {"\t.loc\t4 5 2\nx inlined_at 1\n\t.file\t1 \"a.blk\"\n"};
	assert_string_equal(
		ptx_join(&memory, lines, 1, &bytes), "\t.loc\t4 5 2\nx inlined_at 1\n\t.file\t1 \"a.blk\"\n");
	assert_string_equal(ptx_join(&memory, lines, 0, &bytes), "");
	assert_int_equal(bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lowerings),
		TEST(joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
