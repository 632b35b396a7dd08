/* Text to tokens.
 *
 * In: a source file.  Out: one token a call, TOKEN_END for ever at the end; broken text is reported here and becomes
 * the token that was probably meant, so that the parser does not report it again.
 * The one idea: the text ends in a NUL and holds no other (a copy with blanks in their place is read where it does), so
 * that the rules need no check for the end. */
#include "syntax.h"

#include <string.h>

#include "grammar.h"

/*!re2c
	re2c:define:YYCTYPE = "unsigned char";
	re2c:define:YYCURSOR = cursor;
	re2c:define:YYMARKER = marker;
	re2c:yyfill:enable = 0;

	digits  = [0-9]+ ("_" [0-9]+)*;
	tail    = [A-Za-z0-9_]*;
	point   = digits "." digits;
	name    = [A-Za-z_] tail;
*/

static span bytes(const lexer *l, const unsigned char *begin, const unsigned char *end)
{
	return (span){l->file, (uint32_t)((const char *)begin - l->text), (uint32_t)((const char *)end - l->text)};
}

/* Invalid UTF-8 and NULs are reported before the first token, the first of each line; NULs become blanks. */
void lexer_init(lexer *l, arena *a, diags *ds, source_file *f)
{
	*l = (lexer){.ds = ds, .file = f, .text = f->text, .cursor = f->text, .limit = f->text + f->size};
	bool reported = false, nuls = false;
	for (size_t i = 0; i < f->size;) {
		int length = 1, c = (unsigned char)f->text[i];
		if (c >= 0x80) c = source_utf8(f->text + i, f->size - i, &length);
		span at = {f, (uint32_t)i, (uint32_t)i + 1};
		if (c == '\n') reported = false;
		if (c < 0 && !reported)
			diag_error(ds, 102, at, "byte 0x%02x is not valid UTF-8", (unsigned)(unsigned char)f->text[i]);
		else if (c == 0 && !reported)
			diag_error(ds, 103, at, "NUL byte in the source");
		reported |= c <= 0;
		nuls |= c == 0;
		i += (size_t)length;
	}
	if (nuls) {
		char *copy = arena_strndup(a, f->text, f->size);
		for (char *p = copy; (p = memchr(p, 0, f->size - (size_t)(p - copy))); p++) *p = ' ';
		l->text = copy;
		l->limit = copy + f->size;
	}
	l->cursor = f->size >= 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0 ? l->text + 3 : l->text;
}

/* The bytes behind an opening quote: up to the closing one, or to the end of the line. */
static const unsigned char *string_end(lexer *l, const unsigned char *begin, const unsigned char *p)
{
	for (; *p && *p != '\n'; p++) {
		if (*p == '"') return p + 1;
		if (*p == '\\' && p[1] && p[1] != '\n' && p[1] != '\r') p++;
	}
	if (p > begin + 1 && p[-1] == '\r') p--;
	diag *d = diag_error(l->ds, 105, bytes(l, begin, p), "this string has no closing quote");
	diag_set_hint(l->ds, d, "a string ends in its own line; strings that stand side by side are joined");
	return p;
}

/* One run of characters that start nothing. */
static const unsigned char *stray(lexer *l, const unsigned char *begin)
{
	const unsigned char *p = begin + 1;
	int length;
	if (*begin >= 0x80)
		while (*p >= 0x80) p++;
	l->stray = (uint32_t)((const char *)p - l->text);
	if (source_utf8((const char *)begin, (size_t)(p - begin), &length) < 0) return p; /* reported by lexer_init */
	diag *d = diag_error(l->ds, 101, bytes(l, begin, begin + length), "'%.*s' is not part of the language", length,
		(const char *)begin);
	if (*begin == '\'' || *begin == '`') diag_set_hint(l->ds, d, "strings stand in double quotes");
	if (*begin == '@')
		diag_set_hint(l->ds, d, "a kernel is declared with 'kernel', and what is tuned stands beside it, in 'autotune'");
	if (*begin == '#') diag_set_hint(l->ds, d, "comments start with //");
	return p;
}

static void malformed(lexer *l, const unsigned char *begin, const unsigned char *end, const char *hint)
{
	int n = end - begin > 40 ? 40 : (int)(end - begin);
	diag *d = diag_error(l->ds, 107, bytes(l, begin, end), "malformed number '%.*s'", n, (const char *)begin);
	diag_set_hint(l->ds, d, "%s", hint);
}

token lexer_next(lexer *l)
{
	const unsigned char *cursor = (const unsigned char *)l->cursor, *marker = cursor, *begin;
	int kind;
#define TOKEN(k) do { kind = TOKEN_##k; goto done; } while (0)
#define BAD(k, hint) do { malformed(l, begin, cursor, hint); TOKEN(k); } while (0)
again:
	begin = cursor;
	/*!re2c
	"\x00"                       { cursor = begin; TOKEN(END); }
	[ \t\r\n\f\v]+               { goto again; }
	"//" [^\n\x00]*              { goto again; }
	"/*" ([^*\x00] | "*"+ [^*/\x00])* "*"+ "/" { goto again; }
	"/*"                         { diag_error(l->ds, 104, bytes(l, begin, cursor), "this comment has no closing */");
	                               l->stray = bytes(l, begin, cursor).end; cursor = (const unsigned char *)l->limit; goto again; }
	"\""                         { cursor = string_end(l, begin, cursor); TOKEN(STRING); }

	"0" | [1-9] [0-9]* ("_" [0-9]+)* { TOKEN(INTEGER); }
	"0x" [0-9a-fA-F]+ ("_" [0-9a-fA-F]+)* { TOKEN(INTEGER); }
	"0b" [01]+ ("_" [01]+)*      { TOKEN(INTEGER); }
	point ([eE] [+-]? digits)?   { TOKEN(FLOAT); }
	digits [eE] [+-]? digits     { TOKEN(FLOAT); }
	"0" [0-9_]+                  { BAD(INTEGER, "a decimal number does not start with 0, and there is no octal form"); }
	[0-9] tail                   { BAD(INTEGER, "numbers have no suffixes; an underscore stands between two digits; "
	                                            "write x.to(T) for a type"); }
	point [A-Za-z_] tail         { BAD(FLOAT, "numbers have no suffixes, and an exponent has digits"); }
	digits "." ([eEfF] [0-9]*)?  { BAD(FLOAT, "digits stand on both sides of the point: 1.0"); }
	digits "." name              { cursor = (const unsigned char *)memchr(begin, '.', (size_t)(cursor - begin)); TOKEN(INTEGER); }
	digits ".."                  { cursor -= 2; TOKEN(INTEGER); }
	"." digits tail              { BAD(FLOAT, "digits stand on both sides of the point: 0.5; a tuple's items are t[0], t[1]"); }

	"import" { TOKEN(IMPORT); } "const" { TOKEN(CONST); } "fn" { TOKEN(FN); } "kernel" { TOKEN(KERNEL); }
	"autotune" { TOKEN(AUTOTUNE); } "let" { TOKEN(LET); } "var" { TOKEN(VAR); } "if" { TOKEN(IF); } "else" { TOKEN(ELSE); }
	"for" { TOKEN(FOR); } "while" { TOKEN(WHILE); } "break" { TOKEN(BREAK); } "continue" { TOKEN(CONTINUE); }
	"return" { TOKEN(RETURN); } "true" { TOKEN(TRUE); } "false" { TOKEN(FALSE); } "None" { TOKEN(NONE); }
	"inf" { TOKEN(INF); } "nan" { TOKEN(NAN); } "in" { TOKEN(IN); } "grid" { TOKEN(GRID); } "options" { TOKEN(OPTIONS); }
	"cost" { TOKEN(COST); } "requires" { TOKEN(REQUIRES); } "key" { TOKEN(KEY); } "config" { TOKEN(CONFIG); } "where" { TOKEN(WHERE); }
	"reset" { TOKEN(RESET); } "restore" { TOKEN(RESTORE); } "scratch" { TOKEN(SCRATCH); } "tolerance" { TOKEN(TOLERANCE); }
	"order" { TOKEN(ORDER); } "try" { TOKEN(TRY); }
	name { TOKEN(NAME); }

	"(" { TOKEN(LPAREN); } ")" { TOKEN(RPAREN); } "[" { TOKEN(LBRACKET); } "]" { TOKEN(RBRACKET); } "{" { TOKEN(LBRACE); }
	"}" { TOKEN(RBRACE); } "," { TOKEN(COMMA); } ";" { TOKEN(SEMI); } ":" { TOKEN(COLON); } "?" { TOKEN(QUESTION); }
	"." { TOKEN(DOT); } ".." { TOKEN(RANGE); } "->" { TOKEN(ARROW); } "+" { TOKEN(PLUS); } "-" { TOKEN(MINUS); } "*" { TOKEN(STAR); }
	"/" { TOKEN(SLASH); } "%" { TOKEN(PERCENT); } "<<" { TOKEN(SHL); } ">>" { TOKEN(SHR); } "&" { TOKEN(AND); }
	"|" { TOKEN(OR); } "^" { TOKEN(XOR); } "~" { TOKEN(TILDE); } "!" { TOKEN(BANG); } "<" { TOKEN(LT); } "<=" { TOKEN(LE); }
	">" { TOKEN(GT); } ">=" { TOKEN(GE); } "==" { TOKEN(EQ); } "!=" { TOKEN(NE); } "&&" { TOKEN(LAND); } "||" { TOKEN(LOR); }
	"=" { TOKEN(ASSIGN); } "+=" { TOKEN(PLUS_ASSIGN); } "-=" { TOKEN(MINUS_ASSIGN); } "*=" { TOKEN(STAR_ASSIGN); }
	"/=" { TOKEN(SLASH_ASSIGN); } "%=" { TOKEN(PERCENT_ASSIGN); } "<<=" { TOKEN(SHL_ASSIGN); } ">>=" { TOKEN(SHR_ASSIGN); }
	"&=" { TOKEN(AND_ASSIGN); } "|=" { TOKEN(OR_ASSIGN); } "^=" { TOKEN(XOR_ASSIGN); }
	[^] { cursor = stray(l, begin); goto again; }
	*/
done:
	l->cursor = (const char *)cursor;
	return (token){kind, (uint32_t)((const char *)begin - l->text), (uint32_t)((const char *)cursor - l->text)};
}
