/* The tree as .blk text.
 *
 * In: a program.  Out: its source.  A row's text is copied, with these escapes:
 *   %0..%4   an operand                      %a..%e   a number              %A %B   a number as a float literal
 *   %t       the result's scalar type        %s       its shape, [4, 8]     %S      its shape without the brackets
 *   %v %w    the names of its variables      %p       its buffer            %q      its buffer's element type
 *   %W       its word                        %K       its number as a constant of its type
 *   %[ %]    a block each, indented          %T       the whole type, i32[4, 8], of its first variable
 *   %L       the row-major index of each element of its shape, dimensions in the order of the digits of number a
 *   %k %g    the result's extent along axis b; the first operand's, less one
 *   %I       its position along axis a, starting at b */
#include "tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
	const program *program;
	FILE *out;
	int indent;
	bool in_fn, late;
} printer;

static void print_node(printer *, const node *);

static void print_block(printer *p, const block *b)
{
	p->indent++;
	for (int i = 0; i < b->n; i++) {
		for (int k = 0; k < p->indent; k++) fputc('\t', p->out);
		print_node(p, b->at[i]);
		fputc('\n', p->out);
	}
	p->indent--;
	for (int k = 0; k < p->indent; k++) fputc('\t', p->out);
}

static void print_dims(FILE *out, const shape *s)
{
	for (int i = 0; i < s->rank; i++) fprintf(out, "%s%d", i ? ", " : "", s->dim[i]);
}

static const char *scalar_word(const printer *p, scalar s)
{
	return s == p->program->alias && !p->in_fn ? "T0" : scalar_name(s);
}

static void print_type(printer *p, const tile_type *t)
{
	fputs(scalar_word(p, t->s), p->out);
	if (!t->shape.rank) return;
	fputc('[', p->out);
	print_dims(p->out, &t->shape);
	fputc(']', p->out);
}

/* "[None, :, None]": the axis stays, the others are new. */
static void print_axis(FILE *out, int rank, int axis)
{
	if (rank < 2) return;
	for (int i = 0; i < rank; i++) fprintf(out, "%s%s", i ? ", " : "[", i == axis ? ":" : "None");
	fputc(']', out);
}

static void print_linear(printer *p, const node *n)
{
	const shape *s = &n->type.shape;
	if (!s->rank) {
		fputs("0", p->out);
		return;
	}
	int stride = 1, strides[MAX_RANK] = {0};
	bool seen[MAX_RANK] = {false};
	int64_t order = n->number[0];
	for (int k = 0; k < s->rank;
		k++, order /= MAX_RANK) { /* innermost first; digits that repeat take what is left */
		int d = s->rank - 1 - (int)(order % MAX_RANK) % s->rank;
		while (seen[d]) d = (d + s->rank - 1) % s->rank;
		seen[d] = true;
		strides[d] = stride;
		stride *= s->dim[d];
	}
	fputc('(', p->out);
	for (int d = 0; d < s->rank; d++) {
		fprintf(p->out, "%sarange(0, %d)", d ? " + " : "", s->dim[d]);
		print_axis(p->out, s->rank, d);
		if (strides[d] != 1) fprintf(p->out, " * %d", strides[d]);
	}
	fputc(')', p->out);
}

/* Behind `(x &`: what keeps x below an extent. */
static void print_bound(printer *p, int extent)
{
	if (extent & (extent - 1))
		fprintf(p->out, "1023) %% (%d", extent);
	else
		fprintf(p->out, "%d", extent - 1);
}

static void print_index(printer *p, const node *n)
{
	const shape *s = &n->type.shape;
	int axis = s->rank ? (int)n->number[0] % s->rank : 0, from = (int)n->number[1];
	if (s->rank > 1) fputs("broadcast_to(", p->out);
	fprintf(p->out, s->rank ? "arange(%d, %d)" : "%d", from, s->rank ? from + s->dim[axis] : 0);
	print_axis(p->out, s->rank, axis);
	if (s->rank > 1) {
		fputs(", [", p->out);
		print_dims(p->out, s);
		fputs("])", p->out);
	}
}

static void print_float(FILE *out, int64_t v)
{
	fprintf(out, "%" PRId64 ".0", v);
}

/* A constant of any type; a float's number counts quarters where the type has them, else ones. */
static void print_constant(printer *p, const node *n)
{
	const tile_type *t = &n->type;
	int64_t v = n->number[0];
	const char *name = scalar_word(p, t->s);
	if (t->shape.rank) {
		fputs("full([", p->out);
		print_dims(p->out, &t->shape);
		fputs("], ", p->out);
	}
	bool late = p->late && !p->in_fn && !scalar_is_fp8(t->s);
	if (late) fputc('(', p->out);
	if (t->s == SCALAR_BOOL)
		fputs(v & 1 ? "true" : "false", p->out);
	else if (type_float(t))
		fprintf(p->out, t->shape.rank && !late ? "%s%d.%s" : "(%s%d.%s)", v < 0 ? "-" : "", abs((int)v) >> 2,
			(const char *[]){"0", "25", "5", "75"}[t->frac >= 2 ? abs((int)v) & 3 : 0]);
	else if (scalar_is_signed(t->s))
		fprintf(p->out, t->shape.rank && !late ? "%" PRId64 : "(%" PRId64 ")",
			scalar_sign_extend(t->s, (uint64_t)v));
	else
		fprintf(p->out, t->shape.rank && !late ? "%" PRIu64 : "(%" PRIu64 ")",
			scalar_truncate(t->s, (uint64_t)v));
	if ((late || !t->shape.rank) && t->s != SCALAR_BOOL) fprintf(p->out, ".to(%s)", name);
	if (late) fprintf(p->out, t->s == SCALAR_BOOL ? " ^ (late != 0))" : " + late.to(%s))", name);
	if (t->shape.rank) fprintf(p->out, ", %s)", name);
}

static void print_node(printer *p, const node *n)
{
	for (const char *c = n->rule->text; *c; c++) {
		if (*c != '%') {
			fputc(*c, p->out);
			continue;
		}
		switch (*++c) {
		case '0':
		case '1':
		case '2':
		case '3':
		case '4': print_node(p, n->kid[*c - '0']); break;
		case 'a':
		case 'b':
		case 'c':
		case 'd':
		case 'e': fprintf(p->out, "%" PRId64, n->number[*c - 'a']); break;
		case 'A':
		case 'B': print_float(p->out, n->number[*c - 'A']); break;
		case 't': fputs(scalar_word(p, n->type.s), p->out); break;
		case 's':
			fputc('[', p->out);
			print_dims(p->out, &n->type.shape);
			fputc(']', p->out);
			break;
		case 'S': print_dims(p->out, &n->type.shape); break;
		case 'v': fputs(n->var[0]->name, p->out); break;
		case 'w': fputs(n->var[1]->name, p->out); break;
		case 'T': print_type(p, &n->var[0]->type); break;
		case 'p': fputs(n->buffer->name, p->out); break;
		case 'q': fputs(scalar_name(n->buffer->s), p->out); break;
		case 'W': fputs(n->word, p->out); break;
		case 'K': print_constant(p, n); break;
		case 'L': print_linear(p, n); break;
		case 'I': print_index(p, n); break;
		case 'k': fprintf(p->out, "%d", n->type.shape.dim[n->number[1]]); break;
		case 'g': print_bound(p, n->kid[0]->type.shape.dim[n->number[1]]); break;
		case '[': print_block(p, &n->body[0]); break;
		case ']': print_block(p, &n->body[1]); break;
		default: fputc('%', p->out), fputc(*c, p->out); break;
		}
	}
}

/* ---- the whole ---- */

enum { MAX_NEEDS = 32 };
typedef struct needs {
	const char *text[MAX_NEEDS];
	int n;
} needs;

static void find_needs(const node *n, needs *found)
{
	if (n->rule->needs) {
		int i = 0;
		while (i < found->n && found->text[i] != n->rule->needs) i++;
		if (i == found->n && found->n < MAX_NEEDS) found->text[found->n++] = n->rule->needs;
	}
	for (int i = 0; i < n->nkids; i++) find_needs(n->kid[i], found);
	for (int b = 0; b < n->nbodies; b++)
		for (int i = 0; i < n->body[b].n; i++) find_needs(n->body[b].at[i], found);
}

void program_print(const program *g, bool late, FILE *out)
{
	printer p = {.program = g, .out = out, .late = late};
	needs found = {.n = 0};
	for (int i = 0; i < g->functions.n; i++) find_needs(g->functions.at[i], &found);
	for (int i = 0; i < g->body.n; i++) find_needs(g->body.at[i], &found);
	for (int i = 0; i < found.n; i++) fprintf(out, "%s\n", found.text[i]);
	p.in_fn = true;
	for (int i = 0; i < g->functions.n; i++) {
		print_node(&p, g->functions.at[i]);
		fputc('\n', out);
	}
	p.in_fn = false;
	fputs("kernel k(", out);
	for (int i = 0; i < g->nbuffers; i++)
		fprintf(out, "%s: *%s%s, ", g->buffers[i].name, g->buffers[i].kind == INPUT ? "const " : "",
			scalar_name(g->buffers[i].s));
	for (int i = 0; i < g->nscalars; i++)
		fprintf(out, "%s: %s, ", g->scalars[i].var.name, scalar_name(g->scalars[i].var.type.s));
	if (late) fputs("late: i8, ", out);
	fputs("n: i32, r: i32, const C0: i32 = 3, const C1: bool = true", out);
	if (g->alias != SCALAR_COUNT) fprintf(out, ", const T0: type = %s", scalar_name(g->alias));
	fprintf(out, ") grid(%d, %d, %d) options(num_warps = %d) {\n", g->grid[0], g->grid[1], g->grid[2],
		g->num_warps);
	fputs("\tlet pid = program_id(0) + num_programs(0) * (program_id(1) + num_programs(1) * program_id(2));\n",
		out);
	fputs("\tlet base = pid * r;\n", out);
	print_block(&p, &g->body);
	fputs("}\n", out);
}

char *program_text(const program *p, bool late)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f) return NULL;
	program_print(p, late, f);
	fclose(f);
	return text;
}
