/* The algebra of linear layouts over GF(2).
 *
 * In: layouts, as columns of bits.  Out: their images, ranks, inverses, text, and how they travel through shape
 * operations.  The one idea: a tile of a million elements has 20 bits, so everything that one wants to know about who
 * holds which element is Gaussian elimination on at most 40 words.
 *
 * Elimination is one small structure, `basis`: vectors in echelon form, each with a note of which inputs were added up
 * to make it.  Columns enter in the order registers, lanes, warps, ctas; whatever can be said with earlier columns is
 * said with them, which is why inverses prefer registers. */
#include "layout.h"

#include <string.h>

typedef struct basis {
	uint32_t vector[32];  /* by leading bit; 0: none */
	uint64_t made_of[32]; /* bit i: input column number i takes part */
} basis;

/* Reduces v; *made_of gathers which inputs the removed part consisted of.  0: v lies in the span. */
static uint32_t reduce(const basis *b, uint32_t v, uint64_t *made_of)
{
	while (v) {
		unsigned top = lg2(v);
		if (!b->vector[top]) {
			/* the leading bit stays; lower bits need no clean-up for a membership test */
			return v;
		}
		v ^= b->vector[top];
		*made_of ^= b->made_of[top];
	}
	return 0;
}

/* True if v was independent and has entered the basis. */
static bool enter(basis *b, uint32_t v, uint64_t made_of)
{
	v = reduce(b, v, &made_of);
	if (!v) return false;
	unsigned top = lg2(v);
	assert(!b->vector[top]);
	b->vector[top] = v;
	b->made_of[top] = made_of;
	return true;
}

bool layout_equal(const layout *a, const layout *b)
{
	if (a->rank != b->rank || memcmp(a->lg, b->lg, a->rank) != 0 || memcmp(a->nin, b->nin, sizeof a->nin) != 0)
		return false;
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		if (memcmp(a->col[in], b->col[in], a->nin[in] * sizeof a->col[in][0]) != 0) return false;
	return true;
}

unsigned layout_bits(const layout *l)
{
	unsigned n = 0;
	for (unsigned d = 0; d < l->rank; d++) n += l->lg[d];
	return n;
}

unsigned layout_shift(const layout *l, unsigned dim)
{
	assert(dim < l->rank);
	unsigned n = 0;
	for (unsigned d = dim + 1; d < l->rank; d++) n += l->lg[d];
	assert(n < LAYOUT_MAX_BITS);
	return n;
}

uint32_t layout_dim_bits(const layout *l, unsigned dim)
{
	return ((UINT32_C(1) << l->lg[dim]) - 1) << layout_shift(l, dim);
}

unsigned layout_coordinate(const layout *l, uint32_t flat, unsigned dim)
{
	return flat >> layout_shift(l, dim) & ((UINT32_C(1) << l->lg[dim]) - 1);
}

uint32_t layout_apply(const layout *l, uint32_t reg, uint32_t lane, uint32_t warp)
{
	assert(!(reg >> l->nin[LAYOUT_REG] | lane >> l->nin[LAYOUT_LANE] | warp >> l->nin[LAYOUT_WARP]));
	return layout_combine(l->col[LAYOUT_REG], reg) ^ layout_combine(l->col[LAYOUT_LANE], lane) ^
	       layout_combine(l->col[LAYOUT_WARP], warp);
}

uint32_t layout_map_apply(const layout_map *m, uint32_t reg, uint32_t lane, uint32_t warp)
{
	assert(!(reg >> m->nin[LAYOUT_REG] | lane >> m->nin[LAYOUT_LANE] | warp >> m->nin[LAYOUT_WARP]));
	return layout_combine(m->col[LAYOUT_REG], reg) ^ layout_combine(m->col[LAYOUT_LANE], lane) ^
	       layout_combine(m->col[LAYOUT_WARP], warp);
}

/* Enters all columns; returns the rank and, per input, the mask of columns that were dependent. */
static unsigned eliminate(const layout *l, basis *b, uint32_t dependent[LAYOUT_INPUTS])
{
	unsigned rank = 0, number = 0;
	memset(b, 0, sizeof *b);
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++) {
		dependent[in] = 0;
		for (unsigned i = 0; i < l->nin[in]; i++, number++) {
			if (enter(b, l->col[in][i], UINT64_C(1) << number))
				rank++;
			else
				dependent[in] |= UINT32_C(1) << i;
		}
	}
	assert(number <= 64 && rank <= layout_bits(l));
	return rank;
}

bool layout_surjective(const layout *l)
{
	basis b;
	uint32_t dependent[LAYOUT_INPUTS];
	return eliminate(l, &b, dependent) == layout_bits(l);
}

bool layout_injective(const layout *l)
{
	basis b;
	uint32_t dependent[LAYOUT_INPUTS];
	eliminate(l, &b, dependent);
	return !(dependent[LAYOUT_REG] | dependent[LAYOUT_LANE] | dependent[LAYOUT_WARP] | dependent[LAYOUT_CTA]);
}

uint32_t layout_free_mask(const layout *l, layout_in in)
{
	assert(in < LAYOUT_INPUTS);
	basis b;
	uint32_t dependent[LAYOUT_INPUTS];
	eliminate(l, &b, dependent);
	return dependent[in];
}

unsigned layout_registers(const layout *l)
{
	return 1u << l->nin[LAYOUT_REG];
}

bool layout_plain(const layout *l)
{
	uint32_t seen = 0;
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) {
			uint32_t c = l->col[in][i];
			if ((c & (c - 1)) != 0 || (c & seen) != 0 || (c == 0 && in == LAYOUT_REG)) return false;
			seen |= c;
		}
	return true;
}

layout layout_strip_registers(const layout *l)
{
	layout out = *l;
	uint32_t free = layout_free_mask(l, LAYOUT_REG);
	unsigned n = 0;
	for (unsigned i = 0; i < l->nin[LAYOUT_REG]; i++)
		if (!(free >> i & 1)) out.col[LAYOUT_REG][n++] = l->col[LAYOUT_REG][i];
	memset(&out.col[LAYOUT_REG][n], 0, (LAYOUT_MAX_BITS - n) * sizeof out.col[0][0]);
	assert(n + (unsigned)__builtin_popcount(free) == l->nin[LAYOUT_REG]);
	out.nin[LAYOUT_REG] = (uint8_t)n;
	return out;
}

/* ---- inverse ---- */

/* Spreads column numbers (all inputs of `src` in order) into the packed place: they are the same numbering. */
static bool solve(const basis *b, uint32_t v, uint64_t *place)
{
	*place = 0;
	return reduce(b, v, place) == 0;
}

/* What the packed place holds. */
__attribute__((unused)) static uint32_t element_at(const layout *l, uint64_t place)
{
	uint32_t v = 0;
	for (unsigned in = 0; in < LAYOUT_INPUTS; place >>= l->nin[in++])
		v ^= layout_combine(l->col[in], (uint32_t)place & ((UINT32_C(1) << l->nin[in]) - 1));
	assert(!place);
	return v;
}

static void map_shape(const layout *src, const layout *dst, layout_map *out)
{
	memset(out, 0, sizeof *out);
	memcpy(out->nin, dst->nin, sizeof out->nin);
	memcpy(out->nout, src->nin, sizeof out->nout);
}

bool layout_invert_and_compose(const layout *src, const layout *dst, layout_map *out)
{
	basis b;
	uint32_t dependent[LAYOUT_INPUTS];
	map_shape(src, dst, out);
	if (eliminate(src, &b, dependent) != layout_bits(src) || layout_bits(src) != layout_bits(dst)) return false;
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < dst->nin[in]; i++) {
			uint64_t place;
			if (!solve(&b, dst->col[in][i], &place)) return false;
			assert(element_at(src, place) == dst->col[in][i]);
			out->col[in][i] = (uint32_t)place;
		}
	return true;
}

/* The first solution of src x = v among: x = own + registers, own + registers + lanes, anything. */
static bool solve_near(const basis stage[3], uint32_t v, uint32_t own_column, uint64_t own, uint32_t *out)
{
	uint64_t place;
	for (unsigned s = 0; s < 2; s++) {
		if (own && solve(&stage[s], v ^ own_column, &place)) {
			*out = (uint32_t)(place ^ own);
			return true;
		}
		if (s == 0 && !own && solve(&stage[0], v, &place)) {
			*out = (uint32_t)place;
			return true;
		}
	}
	if (!solve(&stage[2], v, &place)) return false;
	*out = (uint32_t)place;
	return true;
}

bool layout_nearest_source(const layout *src, const layout *dst, layout_map *out)
{
	basis stage[3]; /* registers; and lanes; and all */
	memset(stage, 0, sizeof stage);
	unsigned first[LAYOUT_INPUTS], number = 0;
	map_shape(src, dst, out);
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++) {
		first[in] = number;
		for (unsigned i = 0; i < src->nin[in]; i++, number++)
			for (unsigned s = 0; s < 3; s++)
				if (in <= s || s == 2) enter(&stage[s], src->col[in][i], UINT64_C(1) << number);
	}
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < dst->nin[in]; i++) {
			bool has_own = in != LAYOUT_REG && i < src->nin[in];
			uint64_t own = has_own ? UINT64_C(1) << (first[in] + i) : 0;
			uint32_t own_column = has_own ? src->col[in][i] : 0;
			if (!solve_near(stage, dst->col[in][i], own_column, own, &out->col[in][i])) return false;
			assert(element_at(src, out->col[in][i]) == dst->col[in][i]);
		}
	return true;
}

/* ---- text ---- */

static const char *const input_names[LAYOUT_INPUTS] = {"reg", "lane", "warp", "cta"};

void layout_print(text *out, const layout *l)
{
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++) {
		if (in == LAYOUT_CTA && l->nin[in] == 0) continue;
		text_printf(out, "%s%s ", in ? " " : "", input_names[in]);
		if (l->nin[in] == 0) text_puts(out, "()");
		for (unsigned i = 0; i < l->nin[in]; i++)
			for (unsigned d = 0; d < l->rank; d++)
				text_printf(out, "%s%u%s", d ? "," : "(", layout_coordinate(l, l->col[in][i], d),
					d + 1 == l->rank ? ")" : "");
	}
}

/* What text may ask for: with these a packed place fits 32 bits. */
static const uint8_t input_limits[LAYOUT_INPUTS] = {20, 5, 5, 2};

static void skip_blanks(const char **s)
{
	while (**s == ' ' || **s == '\t') ++*s;
}

static bool parse_number(const char **s, uint32_t below, uint32_t *out)
{
	uint64_t v = 0;
	skip_blanks(s);
	if (**s < '0' || **s > '9') return false;
	for (; **s >= '0' && **s <= '9'; ++*s)
		if ((v = v * 10 + (uint64_t)(**s - '0')) >= below) return false;
	skip_blanks(s);
	*out = (uint32_t)v;
	return true;
}

/* One "(a,b)" into a column; *empty when it was "()". */
static bool parse_tuple(const char **s, const layout *l, uint32_t *column, bool *empty)
{
	++*s; /* "(" */
	skip_blanks(s);
	*column = 0;
	*empty = **s == ')';
	for (unsigned d = 0; d < l->rank && !*empty; d++) {
		uint32_t x;
		if (!parse_number(s, UINT32_C(1) << l->lg[d], &x)) return false;
		*column |= x << layout_shift(l, d);
		if (d + 1u < l->rank) {
			if (**s != ',') return false;
			++*s;
		}
	}
	if (**s != ')') return false;
	++*s;
	return true;
}

static bool parse_input(const char **s, unsigned in, layout *l)
{
	size_t n = strlen(input_names[in]);
	skip_blanks(s);
	if (strncmp(*s, input_names[in], n) != 0 || ((*s)[n] != ' ' && (*s)[n] != '(')) return false;
	*s += n;
	skip_blanks(s);
	if (**s != '(') return false;
	while (**s == '(') {
		uint32_t column;
		bool empty;
		if (!parse_tuple(s, l, &column, &empty)) return false;
		if (empty) return l->nin[in] == 0;
		if (l->nin[in] == input_limits[in]) return false;
		l->col[in][l->nin[in]++] = column;
	}
	return true;
}

bool layout_parse(const char **s, ir_type shape, layout *out)
{
	*out = layout_of_shape(shape);
	if (shape.rank == 0 || layout_bits(out) >= LAYOUT_MAX_BITS) return false;
	for (unsigned in = 0; in < LAYOUT_CTA; in++)
		if (!parse_input(s, in, out)) return false;
	const char *ahead = *s;
	if (parse_input(&ahead, LAYOUT_CTA, out))
		*s = ahead;
	else if (out->nin[LAYOUT_CTA])
		return false;
	return true;
}

/* ---- shape operations ---- */

layout layout_of_shape(ir_type shape)
{
	layout l = {.rank = shape.rank};
	for (unsigned d = 0; d < shape.rank; d++) {
		assert(shape.dim[d] && !(shape.dim[d] & (shape.dim[d] - 1)));
		l.lg[d] = (uint8_t)__builtin_ctz(shape.dim[d]);
	}
	return l;
}

/* Keeps the bits of `mask`, packed together: what dropping dimensions does to a flattened index. */
static uint32_t compress(uint32_t v, uint32_t mask)
{
	uint32_t out = 0;
	for (unsigned n = 0; mask; mask &= mask - 1, n++) out |= (v >> __builtin_ctz(mask) & 1) << n;
	return out;
}

static layout drop_bits(const layout *l, uint32_t dropped)
{
	layout out = *l;
	uint32_t kept = ((UINT32_C(1) << layout_bits(l)) - 1) & ~dropped;
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) out.col[in][i] = compress(l->col[in][i], kept);
	return out;
}

static void remove_dim(layout *l, unsigned axis)
{
	assert(axis < l->rank);
	for (unsigned d = axis; d + 1u < l->rank; d++) l->lg[d] = l->lg[d + 1];
	l->lg[--l->rank] = 0;
}

layout layout_slice(const layout *l, unsigned axis)
{
	layout out = drop_bits(l, layout_dim_bits(l, axis));
	remove_dim(&out, axis);
	return layout_strip_registers(&out);
}

layout layout_truncate(const layout *l, unsigned axis, unsigned lg)
{
	layout out = *l;
	assert(axis < l->rank && lg <= l->lg[axis]);
	unsigned low = layout_shift(l, axis) + lg, high = low + l->lg[axis] - lg, n = 0;
	out.lg[axis] = (uint8_t)lg;
	memset(out.col, 0, sizeof out.col);
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) {
			uint32_t c = l->col[in][i];
			uint32_t kept = (c & ((UINT32_C(1) << low) - 1)) | c >> high << low;
			if (in != LAYOUT_REG)
				out.col[in][i] = kept;
			else if (kept)
				out.col[in][n++] = kept;
		}
	out.nin[LAYOUT_REG] = (uint8_t)n;
	return out;
}

layout layout_expand(const layout *l, unsigned axis)
{
	assert(axis <= l->rank && l->rank < IR_MAX_RANK);
	layout out = *l;
	for (unsigned d = out.rank++; d > axis; d--) out.lg[d] = out.lg[d - 1];
	out.lg[axis] = 0;
	return out;
}

bool layout_unexpand(const layout *l, unsigned axis, layout *out)
{
	if (axis >= l->rank || l->lg[axis] != 0) return false;
	*out = *l;
	remove_dim(out, axis);
	return true;
}

layout layout_permute(const layout *l, const uint8_t *order)
{
	layout out = *l;
	for (unsigned d = 0; d < l->rank; d++) out.lg[d] = l->lg[order[d]];
	assert(layout_bits(&out) == layout_bits(l));
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) {
			uint32_t c = 0;
			for (unsigned d = 0; d < l->rank; d++)
				c |= layout_coordinate(l, l->col[in][i], order[d]) << layout_shift(&out, d);
			out.col[in][i] = c;
		}
	return out;
}

layout layout_unpermute(const layout *l, const uint8_t *order)
{
	uint8_t inverse[IR_MAX_RANK] = {0};
	for (unsigned d = 0; d < l->rank; d++) inverse[order[d]] = (uint8_t)d;
	return layout_permute(l, inverse);
}

layout layout_reshape(const layout *l, ir_type to)
{
	layout out = *l, shape = layout_of_shape(to);
	out.rank = shape.rank;
	memcpy(out.lg, shape.lg, sizeof out.lg);
	assert(layout_bits(&out) == layout_bits(l));
	return out;
}

layout layout_join(const layout *l)
{
	assert(l->rank < IR_MAX_RANK && l->nin[LAYOUT_REG] < LAYOUT_MAX_BITS);
	layout out = *l;
	out.lg[out.rank++] = 1;
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) out.col[in][i + (in == LAYOUT_REG)] = l->col[in][i] << 1;
	out.col[LAYOUT_REG][0] = 1;
	out.nin[LAYOUT_REG]++;
	return out;
}

bool layout_unjoin(const layout *l, layout *out)
{
	unsigned n = 0;
	if (l->rank == 0 || l->lg[l->rank - 1] != 1) return false;
	*out = *l;
	remove_dim(out, l->rank - 1u);
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) {
			uint32_t c = l->col[in][i];
			if (in != LAYOUT_REG && c & 1) return false;
			if (in != LAYOUT_REG)
				out->col[in][i] = c >> 1;
			else if (c != 1)
				out->col[in][n++] = c >> 1;
		}
	out->nin[LAYOUT_REG] = (uint8_t)n;
	return n + 1u == l->nin[LAYOUT_REG];
}

layout layout_split_source(const layout *l)
{
	assert(l->rank && l->lg[l->rank - 1] == 1);
	layout out = *l;
	for (unsigned in = LAYOUT_LANE; in <= LAYOUT_WARP; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) {
			if (l->col[in][i] != 1) continue;
			unsigned n = out.nin[LAYOUT_REG];
			out.col[in][i] = n ? out.col[LAYOUT_REG][n - 1] : 0;
			if (n == 0) out.nin[LAYOUT_REG] = 1;
			out.col[LAYOUT_REG][n ? n - 1 : 0] = 1;
		}
	return out;
}

layout layout_everywhere(unsigned num_warps)
{
	layout l = layout_of_shape((ir_type){0});
	l.nin[LAYOUT_LANE] = 5;
	while (1u << l.nin[LAYOUT_WARP] < num_warps) l.nin[LAYOUT_WARP]++;
	assert(1u << l.nin[LAYOUT_WARP] == num_warps);
	return l;
}

unsigned layout_lg_neighbours(const layout *l)
{
	unsigned n = 0;
	while (n < l->nin[LAYOUT_REG] && l->col[LAYOUT_REG][n] == UINT32_C(1) << n) n++;
	return n;
}

uint32_t layout_stretched_bits(const layout *result, ir_type argument)
{
	assert(argument.rank == result->rank);
	uint32_t bits = 0;
	for (unsigned d = 0; d < result->rank; d++)
		if (argument.dim[d] == 1) bits |= layout_dim_bits(result, d);
	return bits;
}

layout layout_unbroadcast(const layout *result, ir_type argument)
{
	layout out = drop_bits(result, layout_stretched_bits(result, argument));
	for (unsigned d = 0; d < out.rank; d++)
		if (argument.dim[d] == 1) out.lg[d] = 0;
	return layout_strip_registers(&out);
}

uint32_t layout_narrow_register(const layout *wide, uint32_t dropped, uint32_t reg)
{
	assert(!(reg >> wide->nin[LAYOUT_REG]));
	basis b;
	uint32_t out = 0;
	unsigned kept = 0;
	memset(&b, 0, sizeof b);
	for (unsigned i = 0; i < wide->nin[LAYOUT_REG]; i++) {
		uint32_t c = wide->col[LAYOUT_REG][i] & ~dropped;
		uint64_t made_of = 0;
		if (reduce(&b, c, &made_of)) {
			made_of = UINT64_C(1) << kept++;
			enter(&b, c, made_of);
		}
		if (reg >> i & 1) out ^= (uint32_t)made_of;
	}
	return out;
}
