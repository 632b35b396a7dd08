/* Diagnostics against texts written by hand: the example of the language page, tabs, wide and broken characters, long
 * lines, labels in other places, limits, and JSON of hostile bytes. */
#include "memory.h"

static uint32_t next_file;

static source_file *file_of(const char *name, const char *s, size_t n)
{
	source_file *f = ARENA_NEW(&memory, source_file);
	*f = (source_file){.name = name, .text = arena_strndup(&memory, s, n), .size = n, .index = next_file++};
	return f;
}

static span at(source_file *f, const char *what)
{
	const char *p = strstr(f->text, what);
	assert_non_null(p);
	return (span){f, (uint32_t)(p - f->text), (uint32_t)(p - f->text + strlen(what))};
}

static const char *rendered(void)
{
	text out = {.arena = &memory};
	diag_render_text(&messages, &out);
	return out.at;
}

static const char *json(void)
{
	text out = {.arena = &memory};
	diag_render_json(&messages, &out);
	return out.at;
}

static void example_of_the_language_page(void **state)
{
	(void)state;
	char source[] = "\n\n\n\n\n\n    let v = arange(0, 1024);\n    let w = arange(0, 512);\n    let z = v - w;\n";
	source_file *f = file_of("softmax.blk", source, sizeof source - 1);
	diag *d = diag_error(&messages, 203, at(f, "v - w"), "shapes [%d] and [%d] do not broadcast", 1024, 512);
	uint32_t v = d->at.begin;
	diag_set_mark(&messages, d, (span){f, v + 2, v + 3});
	diag_add_label(&messages, d, (span){f, v, v + 1}, "f32[1024], loaded at softmax.blk:7:13");
	diag_add_label(&messages, d, (span){f, v + 4, v + 5}, "f32[512], loaded at softmax.blk:8:13");
	diag_set_hint(&messages, d,
		"both come from 'arange'; give them one length, or insert an axis: v[:, None] - w[None, :]");
	assert_string_equal(rendered(), "softmax.blk:9:13: error[E0203]: shapes [1024] and [512] do not broadcast\n"
					"   9 |     let z = v - w;\n"
					"     |             ~ ^ ~\n"
					"     |             |   f32[512], loaded at softmax.blk:8:13\n"
					"     |             f32[1024], loaded at softmax.blk:7:13\n"
					"hint: both come from 'arange'; give them one length, or insert an axis: "
					"v[:, None] - w[None, :]\n");
	assert_int_equal(messages.errors, 1);
}

static void positions_count_characters(void **state)
{
	(void)state;
	/* u-umlaut is 2 bytes, a Han character 3, an invalid byte counts one, a tab is one */
	char source[] = "ab\n\xc3\xbc\xe6\xbc\xa2\xff\tx\r\n";
	source_file *f = file_of("a", source, sizeof source - 1);
	source_position p = source_locate(&memory, at(f, "x"));
	assert_int_equal(p.line, 2);
	assert_int_equal(p.column, 5);
	p = source_locate(&memory, (span){f, (uint32_t)f->size, (uint32_t)f->size});
	assert_int_equal(p.line, 3);
	assert_int_equal(p.column, 1);
	p = source_locate(&memory, (span){f, 1000, 1001}); /* beyond the end: clamped */
	assert_int_equal(p.line, 3);
	p = source_locate(&memory, (span){NULL, 0, 0});
	assert_int_equal(p.line, 0);
	source_file *empty = file_of("e", "", 0);
	p = source_locate(&memory, (span){empty, 0, 0});
	assert_int_equal(p.line, 1);
	assert_int_equal(p.column, 1);
}

/* The quick count against a plain walk, at every byte of lines that are much longer than the quick count's step. */
static void columns_of_long_lines(void **state)
{
	(void)state;
	static const char *const parts[] = {"a", "\xc3\xbc", "\xe6\xbc\xa2", "\xf0\x9f\x98\x80", "\xff", "\xe2\x82"};
	text s = {.arena = &memory};
	for (uint32_t i = 0, r = 1; i < 9000; i++, r = r * 1664525u + 1013904223u)
		text_puts(&s, i % 4000 == 3999 ? "\n" : parts[(r >> 16) % 6]);
	source_file *f = file_of("a", s.at, s.n);
	uint32_t line = 1, column = 1;
	for (uint32_t i = 0; i < s.n; column++) {
		source_position p = source_locate(&memory, (span){f, i, i});
		assert_int_equal(p.line, line);
		assert_int_equal(p.column, column);
		int length, c = source_utf8(f->text + i, f->size - i, &length);
		if (c == '\n') line++, column = 0;
		i += (uint32_t)length;
	}
	assert_int_equal(line, 3);
}

static void spans_join(void **state)
{
	(void)state;
	source_file *f = file_of("a", "abcdef", 6), *g = file_of("b", "x", 1);
	span s = span_join((span){f, 3, 4}, (span){f, 1, 2});
	assert_int_equal(s.begin, 1);
	assert_int_equal(s.end, 4);
	s = span_join((span){f, 3, 4}, (span){g, 0, 1});
	assert_ptr_equal(s.file, f);
	assert_int_equal(s.end, 4);
	s = span_join((span){NULL, 0, 0}, (span){g, 0, 1});
	assert_ptr_equal(s.file, g);
}

static void utf8_is_checked(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		int code, length;
	} cases[] = {{"a", 'a', 1}, {"\xc3\xbc", 0xfc, 2}, {"\xe2\x82\xac", 0x20ac, 3},
		{"\xf0\x9f\x98\x80", 0x1f600, 4}, {"\x80", -1, 1}, {"\xc0\x80", -1, 1}, {"\xc1\xbf", -1, 1},
		{"\xe0\x80\x80", -1, 1}, {"\xed\xa0\x80", -1, 1}, {"\xf4\x90\x80\x80", -1, 1},
		{"\xf5\x80\x80\x80", -1, 1}, {"\xe2\x82", -1, 1}, {"\xc3", -1, 1}, {"\xf4\x8f\xbf\xbf", 0x10ffff, 4}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int length;
		assert_int_equal(source_utf8(cases[i].bytes, strlen(cases[i].bytes), &length), cases[i].code);
		assert_int_equal(length, cases[i].length);
	}
}

static void tabs_and_wide_characters_align(void **state)
{
	(void)state;
	char source[] = "\tx\t= \xe6\xbc\xa2 + \xc3\xbc\xff;\r\n";
	source_file *f = file_of("t.blk", source, sizeof source - 1);
	diag *d = diag_warning(&messages, 301, at(f, "+"), "odd");
	diag_add_label(&messages, d, at(f, "\xe6\xbc\xa2"), "left");
	diag_add_label(&messages, d, at(f, "\xff"), "right");
	assert_string_equal(rendered(), "t.blk:1:8: warning[W0301]: odd\n"
					"   1 | \tx\t= \xe6\xbc\xa2 + \xc3\xbc\xef\xbf\xbd;\n"
					"     | \t \t  ~~ ^  ~\n"
					"     | \t \t  |     right\n"
					"     | \t \t  left\n");
}

static void labels_elsewhere_are_notes(void **state)
{
	(void)state;
	char source[] = "let a = 1;\nlet a = 2;\n";
	source_file *f = file_of("a.blk", source, sizeof source - 1), *g = file_of("lib/b.blk", "const a = 3;", 12);
	diag *d = diag_error(&messages, 201, (span){f, 15, 16}, "'a' is declared twice");
	diag_add_label(&messages, d, (span){f, 4, 5}, "first declared here");
	diag_add_label(&messages, d, (span){g, 6, 7}, "and imported");
	diag_add_label(&messages, d, (span){NULL, 0, 0}, "built in as well");
	assert_string_equal(rendered(), "a.blk:2:5: error[E0201]: 'a' is declared twice\n"
					"   2 | let a = 2;\n"
					"     |     ^\n"
					"note: a.blk:1:5: first declared here\n"
					"   1 | let a = 1;\n"
					"     |     ^\n"
					"note: lib/b.blk:1:7: and imported\n"
					"   1 | const a = 3;\n"
					"     |       ^\n"
					"note: built in as well\n");
}

static void spans_over_lines_and_at_ends(void **state)
{
	(void)state;
	source_file *f = file_of("a.blk", "f(1,\r\n  2)", 10);
	diag_error(&messages, 301, (span){f, 0, 10}, "call");
	diag_error(&messages, 302, (span){f, 10, 10}, "end");
	diag_error(&messages, 303, (span){f, 5, 6}, "line end"); /* the \n of \r\n */
	diag_error(&messages, 304, (span){NULL, 0, 0}, "nowhere");
	assert_string_equal(rendered(), "a.blk:1:1: error[E0301]: call\n"
					"   1 | f(1,\n"
					"     | ^^^^\n"
					"a.blk:2:5: error[E0302]: end\n"
					"   2 |   2)\n"
					"     |     ^\n"
					"a.blk:1:6: error[E0303]: line end\n"
					"   1 | f(1,\n"
					"     |     ^\n"
					"error[E0304]: nowhere\n");
}

/* A line of 16 MiB is shown as a window of at most 120 characters with the caret under its character. */
static void long_lines_are_cut(void **state)
{
	(void)state;
	size_t n = 16u << 20;
	char *s = malloc(n);
	assert_non_null(s);
	memset(s, 'a', n);
	s[n / 2] = '$';
	source_file *f = file_of("long.blk", s, n);
	free(s);
	uint32_t middle = (uint32_t)(n / 2);
	diag *d = diag_error(&messages, 101, (span){f, middle, middle + 1}, "stray");
	diag_add_label(&messages, d, (span){f, 0, 1}, "far away");
	const char *shown = rendered();
	const char *line = strstr(shown, "\n   1 | ..."), *caret = strchr(shown, '^');
	assert_non_null(line);
	assert_non_null(caret);
	const char *row = caret;
	while (row[-1] != '\n') row--;
	assert_int_equal(caret - row, strchr(line, '$') - (line + 1));
	assert_true(strchr(line + 1, '\n') - line < 120 + 20);
	assert_non_null(strstr(shown, "note: long.blk:1:1: far away\n   1 | aaa"));
}

static void messages_are_made_printable(void **state)
{
	(void)state;
	source_file *f = file_of("a.blk", "x\x1b[31m", 6);
	diag *d = diag_error(&messages, 301, (span){f, 0, 1}, "two\nlines \x1b \xff");
	diag_set_hint(&messages, d, "a\tb");
	assert_string_equal(rendered(), "a.blk:1:1: error[E0301]: two\\nlines \\x1b \xef\xbf\xbd\n"
					"   1 | x\xef\xbf\xbd[31m\n"
					"     | ^\n"
					"hint: a\\tb\n");
}

static void records_are_limited_and_unique(void **state)
{
	(void)state;
	source_file *f = file_of("a.blk", "abcdef", 6);
	messages.limit = 2;
	for (uint32_t i = 0; i < 5; i++) {
		diag *d = diag_error(&messages, 301, (span){f, i, i + 1}, "again");
		diag_add_label(&messages, d, (span){f, 0, 1}, "label");
		diag_set_hint(&messages, d, "hint");
	}
	assert_int_equal(messages.errors, 5);
	const char *shown = rendered();
	assert_non_null(strstr(shown, "a.blk:1:2: "));
	assert_null(strstr(shown, "a.blk:1:3: "));
	assert_non_null(strstr(shown, "note: 3 more errors are not shown\n"));
	diags_init(&messages, &memory);
	for (int i = 0; i < 3; i++) diag_error(&messages, 301, (span){f, 0, 1}, "same");
	diag_error(&messages, 301, (span){f, 0, 1}, "other");
	assert_int_equal(messages.errors, 2);
}

static void warnings_can_be_errors(void **state)
{
	(void)state;
	diag_warning(&messages, 301, (span){0}, "w");
	assert_int_equal(messages.warnings, 1);
	assert_int_equal(messages.errors, 0);
	messages.warnings_are_errors = true;
	diag_warning(&messages, 301, (span){0}, "v");
	assert_int_equal(messages.errors, 1);
	assert_string_equal(rendered(), "warning[W0301]: w\nerror[E0301]: v\n");
}

static void json_is_exact(void **state)
{
	(void)state;
	source_file *f = file_of("a\".blk", "x\n+ y", 5);
	diag *d = diag_error(&messages, 203, (span){f, 0, 5}, "tab\t \"q\" \\ \xff \xc3\xbc");
	diag_add_label(&messages, d, (span){f, 4, 5}, "y");
	diag_set_hint(&messages, d, "h");
	diag_warning(&messages, 0, (span){0}, "w");
	assert_string_equal(json(),
		"[\n{\"severity\":\"error\",\"code\":\"E0203\",\"file\":\"a\\\".blk\",\"line\":1,"
		"\"column\":1,\"end_line\":2,\"end_column\":4,"
		"\"message\":\"tab\\u0009 \\\"q\\\" \\\\ \\ufffd \xc3\xbc\","
		"\"labels\":[{\"file\":\"a\\\".blk\",\"line\":2,\"column\":3,\"end_line\":2,"
		"\"end_column\":4,\"text\":\"y\"}],\"hint\":\"h\"},\n"
		"{\"severity\":\"warning\",\"code\":null,\"file\":null,\"line\":0,\"column\":0,"
		"\"end_line\":0,\"end_column\":0,\"message\":\"w\",\"labels\":[],\"hint\":null}\n]\n");
	diags_init(&messages, &memory);
	assert_string_equal(json(), "[\n]\n");
}

static void codes_ascend_and_have_titles(void **state)
{
	(void)state;
	uint16_t last = 0;
	for (const diag_code *c = diag_codes; c->number; c++) {
		assert_true(c->number > last);
		assert_true(c->number >= 100 && c->number < 1000);
		assert_true(c->title[0]);
		assert_ptr_equal(diag_code_title(c->number), c->title);
		last = c->number;
	}
	assert_null(diag_code_title(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(example_of_the_language_page), TEST(positions_count_characters),
		TEST(columns_of_long_lines), TEST(spans_join), TEST(utf8_is_checked),
		TEST(tabs_and_wide_characters_align), TEST(labels_elsewhere_are_notes),
		TEST(spans_over_lines_and_at_ends), TEST(long_lines_are_cut), TEST(messages_are_made_printable),
		TEST(records_are_limited_and_unique), TEST(warnings_can_be_errors), TEST(json_is_exact),
		TEST(codes_ascend_and_have_titles)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
