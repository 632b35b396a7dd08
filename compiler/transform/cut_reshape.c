/* What moves elements from part to part: reshape and flip of tiles that are cut.
 *
 * In: the operation and its operand's parts.  Out: the result's.
 *     reshape f32[4,48] -> f32[192]        48 = 32 + 16, 192 = 128 + 64
 *     row 0:  a0 | b0      a: [4,32], b: [4,16]
 *     row 1:  a1 | b1      -> a0 b0 a1 b1 a2 | b2 a3 b3: runs, in order; halves of them where a part ends inside one
 * The one idea: the dimensions that a reshape merges or divides are one line of runs, whose lengths are powers of two;
 * a part is some runs, which are halved until they are equal and then joined two by two.  Everything in front of that
 * line is one dimension, and so is everything behind it.  Halving and joining is reshape, permute, and split or join:
 * registers change their names, where the layout has the line's high bits in registers.
 *
 * Mostly no part is taken apart: where only the first dimension of a group is cut, on both sides, part goes to part. */
#include "cut.h"

/* ---- tiles of three dimensions ---- */

ir_value *cut_shaped(cut *c, ir_value *v, ir_type shape)
{
	shape = ir_with_shape(v->type, shape);
	return ir_type_equal(v->type, shape) ? v : ir_build1(&c->build, IR_RESHAPE, shape, 1, &v);
}

static ir_value *permuted(cut *c, ir_value *v, unsigned rank, const uint16_t *order)
{
	ir_type t = v->type;
	for (unsigned i = 0; i < rank; i++) t.dim[i] = v->type.dim[order[i]];
	v = ir_build1(&c->build, IR_PERMUTE, t, 1, &v);
	ir_set_order(v->def, ir_pack(rank, order));
	return v;
}

static ir_type shape(unsigned rank, const uint32_t *dim)
{
	return ir_tile_type(SCALAR_BOOL, rank, dim);
}

static uint32_t length(const ir_value *v)
{
	assert(v->type.rank == 3);
	return v->type.dim[1];
}

static void halve(cut *c, ir_value *v, ir_value *out[2])
{
	const uint32_t *d = v->type.dim;
	v = cut_shaped(c, v, shape(4, (uint32_t[]){d[0], 2, d[1] / 2, d[2]}));
	v = permuted(c, v, 4, (uint16_t[]){0, 2, 3, 1});
	ir_type half = v->type;
	half.dim[--half.rank] = 0;
	ir_op *o = ir_build(&c->build, IR_SPLIT, 1, &v, 2, (ir_type[]){half, half}, 0);
	out[0] = o->results[0];
	out[1] = o->results[1];
}

static ir_value *join(cut *c, ir_value *a, ir_value *b)
{
	assert(ir_type_equal(a->type, b->type));
	ir_type t = a->type;
	t.dim[t.rank++] = 2;
	ir_value *v = ir_build1(&c->build, IR_JOIN, t, 2, (ir_value *[]){a, b});
	v = permuted(c, v, 4, (uint16_t[]){0, 3, 1, 2});
	return cut_shaped(c, v, shape(3, (uint32_t[]){t.dim[0], 2 * t.dim[1], t.dim[2]}));
}

/* ---- lines of runs ---- */

typedef VEC(ir_value *) line;

/* The run in equal ones of that length. */
static void divide(cut *c, ir_value *v, uint32_t to, line *out)
{
	ir_value *half[2];
	if (length(v) <= to) {
		vec_push(c->pass->arena, out, v);
		return;
	}
	halve(c, v, half);
	divide(c, half[0], to, out);
	divide(c, half[1], to, out);
}

/* Runs, as many elements as a power of two, as one. */
static ir_value *whole(cut *c, const line *runs)
{
	uint32_t least = UINT32_MAX;
	line equal = {0};
	for (uint32_t i = 0; i < runs->n; i++)
		if (length(runs->at[i]) < least) least = length(runs->at[i]);
	for (uint32_t i = 0; i < runs->n; i++) divide(c, runs->at[i], least, &equal);
	for (uint32_t n = equal.n; n > 1; n /= 2)
		for (uint32_t i = 0; i < n / 2; i++) equal.at[i] = join(c, equal.at[2 * i], equal.at[2 * i + 1]);
	return equal.at[0];
}

typedef struct source {
	const line *runs;
	uint32_t next;
	line rest; /* halves of the last one that are still to come, the first of them at the end */
} source;

/* The next `extent` elements of the line as one run. */
static ir_value *take(cut *c, source *s, uint32_t extent)
{
	line got = {0};
	for (uint32_t need = extent; need;) {
		ir_value *v = s->rest.n ? s->rest.at[--s->rest.n] : s->runs->at[s->next++], *half[2];
		if (length(v) <= need) {
			need -= length(v);
			vec_push(c->pass->arena, &got, v);
			continue;
		}
		halve(c, v, half);
		vec_push(c->pass->arena, &s->rest, half[1]);
		vec_push(c->pass->arena, &s->rest, half[0]);
	}
	return whole(c, &got);
}

/* ---- a group of dimensions ---- */

/* Dimensions of a tile that has any number of them, and its parts. */
typedef struct view {
	unsigned rank;
	uint32_t dim[2 * IR_MAX_RANK];
	ir_value **parts;
} view;

static unsigned parts_of(const uint32_t *dim, unsigned n)
{
	unsigned parts = 1;
	for (unsigned i = 0; i < n; i++) parts *= ir_pieces(dim[i]);
	return parts;
}

/* Elements of part i of these dimensions. */
static uint32_t elements_of(const uint32_t *dim, unsigned n, unsigned i)
{
	uint32_t e = 1;
	while (n-- > 0) {
		e *= ir_piece(dim[n], i % ir_pieces(dim[n]));
		i /= ir_pieces(dim[n]);
	}
	return e;
}

/* How many of them stand in front of, and with, the last one that is cut. */
static unsigned last_cut(const uint32_t *dim, unsigned n)
{
	while (n > 1 && ir_is_power(dim[n - 1])) n--;
	return n;
}

/* Row `row` of the dimensions in front of the last one that is cut, and its piece q there: which part has it, and which
 * of the part's rows it is. */
static unsigned part_of_run(const uint32_t *dim, unsigned n, uint32_t row, unsigned q, uint32_t *local)
{
	unsigned part = 0, last = last_cut(dim, n) - 1;
	uint32_t scale = 1;
	unsigned parts = ir_pieces(dim[last]);
	*local = 0;
	part = q;
	for (unsigned d = last; d-- > 0;) {
		uint32_t i = row % dim[d];
		unsigned p = 0;
		row /= dim[d];
		while (i >= ir_piece_offset(dim[d], p) + ir_piece(dim[d], p)) p++;
		*local += (i - ir_piece_offset(dim[d], p)) * scale;
		scale *= ir_piece(dim[d], p);
		part += p * parts;
		parts *= ir_pieces(dim[d]);
	}
	return part;
}

static uint32_t rows_of(const uint32_t *dim, unsigned n)
{
	uint32_t rows = 1;
	for (unsigned d = 0; d + 1 < last_cut(dim, n); d++) rows *= dim[d];
	return rows;
}

/* Of a run: piece q of the last dimension that is cut, and what is behind it. */
static uint32_t run_of(const uint32_t *dim, unsigned n, unsigned q)
{
	unsigned last = last_cut(dim, n) - 1;
	uint32_t e = ir_piece(dim[last], q);
	for (unsigned d = last + 1; d < n; d++) e *= dim[d];
	return e;
}

/* The group's parts, runs in a line, the other side's parts. */
static void move(cut *c, const uint32_t *a, unsigned na, const uint32_t *b, unsigned nb, ir_value **from, ir_value **to)
{
	unsigned pa = parts_of(a, na), pb = parts_of(b, nb);
	line *rows = ARENA_ARRAY(c->pass->arena, line, pa), *out = ARENA_ARRAY(c->pass->arena, line, pb), runs = {0};
	uint32_t local;
	for (unsigned i = 0; i < pa; i++)
		divide(c, from[i], run_of(a, na, i % ir_pieces(a[last_cut(a, na) - 1])), &rows[i]);
	for (uint32_t row = 0; row < rows_of(a, na); row++)
		for (unsigned q = 0; q < ir_pieces(a[last_cut(a, na) - 1]); q++) {
			unsigned part = part_of_run(a, na, row, q, &local);
			vec_push(c->pass->arena, &runs, rows[part].at[local]);
		}
	source s = {.runs = &runs};
	for (uint32_t row = 0; row < rows_of(b, nb); row++)
		for (unsigned q = 0; q < ir_pieces(b[last_cut(b, nb) - 1]); q++) {
			unsigned part = part_of_run(b, nb, row, q, &local);
			assert(out[part].n == local);
			vec_push(c->pass->arena, &out[part], take(c, &s, run_of(b, nb, q)));
		}
	for (unsigned i = 0; i < pb; i++) to[i] = whole(c, &out[i]);
}

/* v with dimensions [at, at + na) as the nb of `b`. */
static void regroup(cut *c, view *v, unsigned at, unsigned na, const uint32_t *b, unsigned nb)
{
	const uint32_t *a = v->dim + at, *behind = a + na;
	unsigned nbehind = v->rank - at - na, front = parts_of(v->dim, at), back = parts_of(behind, nbehind);
	unsigned pa = parts_of(a, na), pb = parts_of(b, nb);
	ir_value **parts = ARENA_ARRAY(c->pass->arena, ir_value *, front * pb * back);
	ir_value **from = ARENA_ARRAY(c->pass->arena, ir_value *, pa),
		 **to = ARENA_ARRAY(c->pass->arena, ir_value *, pb);
	for (unsigned i = 0; i < front; i++)
		for (unsigned j = 0; j < back; j++) {
			uint32_t d[] = {elements_of(v->dim, at, i), 0, elements_of(behind, nbehind, j)};
			for (unsigned k = 0; k < pa; k++) {
				d[1] = elements_of(a, na, k);
				from[k] = cut_shaped(c, v->parts[(i * pa + k) * back + j], shape(3, d));
			}
			move(c, a, na, b, nb, from, to);
			for (unsigned k = 0; k < pb; k++) parts[(i * pb + k) * back + j] = to[k];
		}
	view r = {.rank = at + nb + nbehind, .parts = parts};
	assert(r.rank <= 2 * IR_MAX_RANK);
	for (unsigned k = 0; k < at; k++) r.dim[k] = v->dim[k];
	for (unsigned k = 0; k < nb; k++) r.dim[at + k] = b[k];
	for (unsigned k = 0; k < nbehind; k++) r.dim[at + nb + k] = behind[k];
	*v = r;
}

/* Pointers do not join: as numbers they do. */
static ir_value *as_number(cut *c, ir_value *v)
{
	return v->type.pointer ? ir_build1(&c->build, IR_BITCAST, ir_with_elem(v->type, SCALAR_I64), 1, &v) : v;
}

void cut_reshape(cut *c, ir_op *o)
{
	ir_value *x = ir_arg(o, 0), *y = ir_result(o);
	ir_group group[IR_MAX_RANK];
	unsigned n = ir_reshape_groups(x->type, y->type, group), parts = ir_parts(y->type);
	view v = {.rank = x->type.rank, .parts = ARENA_ARRAY(c->pass->arena, ir_value *, ir_parts(x->type))};
	for (unsigned d = 0; d < v.rank; d++) v.dim[d] = x->type.dim[d];
	for (unsigned i = 0; i < ir_parts(x->type); i++) v.parts[i] = cut_part(c, x, i);
	bool moves = false;
	for (unsigned i = 0; i < n; i++) moves |= group[i].moves;
	if (moves)
		for (unsigned i = 0; i < ir_parts(x->type); i++) v.parts[i] = as_number(c, v.parts[i]);
	for (unsigned i = n; i-- > 0;) /* the last group first: those in front of it keep their places */
		if (group[i].moves)
			regroup(c, &v, group[i].from, group[i].nfrom, y->type.dim + group[i].to, group[i].nto);
	for (unsigned i = 0; i < parts; i++) {
		ir_type t = ir_part_type(y->type, i);
		ir_value *part = cut_shaped(c, v.parts[i], t);
		cut_give(c, y, i, moves && t.pointer ? ir_build1(&c->build, IR_BITCAST, t, 1, &part) : part);
	}
}

/* ---- flip ---- */

/* Along an axis that is cut the last piece comes first, backwards: the runs of a line again. */
void cut_flip(cut *c, ir_op *o)
{
	ir_value *x = ir_arg(o, 0), *y = ir_result(o);
	unsigned axis = ir_get_axis(o), pieces = ir_pieces(x->type.dim[axis]);
	for (unsigned i = 0; i < ir_parts(x->type); i++) {
		unsigned place[IR_MAX_RANK];
		ir_part_place(x->type, i, place);
		if (place[axis]) continue;
		line runs = {0};
		for (unsigned p = pieces; p-- > 0;) {
			place[axis] = p;
			ir_value *part = cut_part(c, x, ir_part_number(x->type, place));
			part = ir_result(cut_again(c, o, 1, &part, &part->type));
			uint32_t d[] = {1, part->type.dim[axis], 1};
			for (unsigned k = 0; k < part->type.rank; k++)
				if (k != axis) d[k < axis ? 0 : 2] *= part->type.dim[k];
			vec_push(c->pass->arena, &runs, pieces > 1 ? cut_shaped(c, part, shape(3, d)) : part);
		}
		source s = {.runs = &runs};
		for (unsigned p = 0; p < pieces; p++) {
			place[axis] = p;
			unsigned k = ir_part_number(y->type, place);
			ir_type t = ir_part_type(y->type, k);
			cut_give(c, y, k, pieces > 1 ? cut_shaped(c, take(c, &s, t.dim[axis]), t) : runs.at[0]);
		}
	}
}
