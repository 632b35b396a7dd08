/* Plans for layout conversions: how a tile that is spread one way becomes spread another way.
 *
 * In: two plain layouts of one tile and the size of an element.  Out: a layout_plan, data that the lowering follows
 * without further thought.  The one idea: C = src^-1 o dst says for every place of the result which place of the
 * argument holds its element, and the shape of C decides the road, cheapest first:
 *
 *   C is the identity                         nothing
 *   C moves registers only                    a renaming
 *   C leaves warps alone                      selects and shuffles, when few selects do; else shared memory by warps
 *   anything else                             shared memory with a CTA barrier
 *
 * Shuffles.  Write C for a thread t = (lane, warp) and a result register r:
 *       source register = R r ^ RT t        source thread = A r ^ T t          (matrices over GF(2), ^ is +)
 * A shuffle lets the sender choose the register and the receiver choose the lane, so the register must be known to
 * the sender.  Let the receiver take its registers in an order of its own: in round r it fills register r ^ f(t).
 * Then the thread becomes A r ^ S t with S = T + A f, the register R r ^ Q t with Q = RT + R f.  If Q t depends on S t
 * alone, Q = P S, then the sender s = A r ^ S t knows it: R r ^ P A r ^ P s.  So a conversion is: rename registers by P
 * of the own thread (`before`), shuffle, rename by f of the own thread (`after`).  f starts at 0 and grows by one
 * vector for each dimension in which S does not separate what Q needs separated; each is one m of the usual count of
 * mixed transpositions.  A renaming of rank k costs k selects a register.  Conversions with at most
 * MAX_SELECT_STAGES of them go this road (one swap of a register bit with a lane bit: select, shuffle, select); past
 * that, two vector accesses of shared memory are cheaper than the selects.
 *
 * Shared memory.  The tile is written at the offsets of a third layout.  Its low bits (`vector`) are register bits of
 * both sides, so that both sides move several elements an access; the next (`bank`) complete 128 bytes, one word for
 * each bank; the rest (`segment`) are other rows of the banks.  An access is free of conflicts iff no combination of
 * segment columns lies in the span of the vector and of those lanes that are served together; so segments are made of
 * coordinates that neither side moves along with its lanes, then of sums a ^ b of one coordinate that only the
 * storing lanes move along and one that only the loading lanes move along.
 *
 * Matrices.  The operands of mma.sync have their words in quads of lanes: word and lane bits 0, 1 step along 16 bytes
 * (or, transposed, lane bits 2 to 4 do), the other three of those bits step from row to row.  ldmatrix loads just that,
 * up to four words a thread at once, from rows that lie anywhere: so `vector` is those 16 bytes, and instead of the
 * loading lanes the 8 rows are what must be free of conflicts. */
#include "layout.h"

#include <string.h>

enum { MAX_SELECT_STAGES = 2, THREAD_BITS = 12, LANE_BITS = 5 };

uint32_t layout_plan_register(const layout_plan *p, uint32_t r)
{
	return layout_combine(p->register_from, r);
}

uint32_t layout_plan_lane_xor(const layout_plan *p, uint32_t r)
{
	return layout_combine(p->lane_xor_from, r);
}

uint32_t layout_spread(const uint8_t *bit, unsigned nbits, uint32_t number)
{
	uint32_t out = 0;
	for (unsigned k = 0; k < nbits; k++) out |= (number >> k & 1) << bit[k];
	return out;
}

uint32_t layout_pass_bits(const layout_place *place, unsigned lg_passes, layout_in in, uint32_t pass)
{
	uint32_t out = 0;
	for (unsigned k = 0; k < lg_passes; k++)
		if (place[k].in == in) out |= (pass >> k & 1) << place[k].bit;
	return out;
}

/* ---- shuffles ---- */

/* C split into its blocks; a thread is lane | warp << 5. */
typedef struct movement {
	unsigned nreg, nthread;
	uint32_t reg_of_reg[LAYOUT_MAX_BITS], thread_of_reg[LAYOUT_MAX_BITS]; /* R, A */
	uint32_t reg_of_thread[THREAD_BITS], thread_of_thread[THREAD_BITS];   /* RT -> Q, T -> S */
	uint32_t order[THREAD_BITS];                                          /* f */
} movement;

/* Vectors in echelon form, each with the value that a linear function has there. */
typedef struct function {
	uint32_t vector[THREAD_BITS], value[THREAD_BITS]; /* by leading bit */
} function;

static uint32_t function_reduce(const function *f, uint32_t v, uint32_t *value)
{
	while (v) {
		unsigned top = lg2(v);
		if (!f->vector[top]) return v;
		*value ^= f->value[top];
		v ^= f->vector[top];
	}
	return 0;
}

/* False if v is in the span already; *value then holds what is left of the claimed value, 0 when consistent. */
static bool function_define(function *f, uint32_t v, uint32_t *value)
{
	v = function_reduce(f, v, value);
	if (!v) return false;
	f->vector[lg2(v)] = v;
	f->value[lg2(v)] = *value;
	return true;
}

static bool warps_stay(const layout_map *c)
{
	unsigned shift = c->nout[LAYOUT_REG] + c->nout[LAYOUT_LANE];
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < c->nin[in]; i++)
			if (c->col[in][i] >> shift != (in == LAYOUT_WARP ? UINT32_C(1) << i : 0)) return false;
	return c->nin[LAYOUT_CTA] == 0 && c->nin[LAYOUT_LANE] == LANE_BITS && c->nout[LAYOUT_LANE] == LANE_BITS;
}

static void split(const layout_map *c, movement *m)
{
	unsigned nreg = c->nout[LAYOUT_REG];
	assert(c->nout[LAYOUT_LANE] == LANE_BITS && LANE_BITS + c->nin[LAYOUT_WARP] <= THREAD_BITS);
	uint32_t reg_mask = (UINT32_C(1) << nreg) - 1;
	memset(m, 0, sizeof *m);
	m->nreg = c->nin[LAYOUT_REG];
	m->nthread = LANE_BITS + c->nin[LAYOUT_WARP];
	for (unsigned i = 0; i < m->nreg; i++) {
		m->reg_of_reg[i] = c->col[LAYOUT_REG][i] & reg_mask;
		m->thread_of_reg[i] = c->col[LAYOUT_REG][i] >> nreg;
	}
	for (unsigned i = 0; i < m->nthread; i++) {
		uint32_t v = i < LANE_BITS ? c->col[LAYOUT_LANE][i] : c->col[LAYOUT_WARP][i - LANE_BITS];
		m->reg_of_thread[i] = v & reg_mask;
		m->thread_of_thread[i] = v >> nreg;
	}
}

/* Finds f and P as the essay says; *p is P as a function on all threads.  False: no order of rounds works. */
static bool factor(movement *m, function *p)
{
	for (;;) {
		unsigned bad = m->nthread;
		memset(p, 0, sizeof *p);
		for (unsigned i = 0; i < m->nthread; i++) {
			uint32_t value = m->reg_of_thread[i];
			if (!function_define(p, m->thread_of_thread[i], &value) && value && bad == m->nthread) bad = i;
		}
		if (bad == m->nthread) break;
		/* Thread bit `bad` needs another register of a sender that cannot tell: fill another register in this
		 * round, one whose element is elsewhere. */
		unsigned r = 0;
		for (; r < m->nreg; r++) {
			uint32_t ignored = 0;
			if (function_reduce(p, m->thread_of_reg[r], &ignored)) break;
		}
		if (r == m->nreg) return false;
		m->order[bad] ^= UINT32_C(1) << r;
		m->thread_of_thread[bad] ^= m->thread_of_reg[r];
		m->reg_of_thread[bad] ^= m->reg_of_reg[r];
	}
	for (unsigned i = 0; i < m->nthread; i++) { /* nobody reads these senders: any value will do */
		uint32_t value = 0;
		function_define(p, UINT32_C(1) << i, &value);
	}
	return true;
}

/* The renaming x -> x ^ column(thread) as stages, one for each dimension that the columns span. */
static unsigned make_stages(const uint32_t *column, unsigned nthread, layout_stage *stage)
{
	uint32_t reduced[LAYOUT_MAX_STAGES], threads[LAYOUT_MAX_STAGES] = {0};
	unsigned n = 0;
	for (unsigned i = 0; i < nthread; i++) {
		/* `reduced` is kept in reduced echelon form by leading bit, so each column splits in one sweep. */
		uint32_t v = column[i];
		for (unsigned k = 0; k < n; k++)
			if (v >> lg2(reduced[k]) & 1) {
				v ^= reduced[k];
				threads[k] ^= UINT32_C(1) << i;
			}
		if (!v) continue;
		assert(n < LAYOUT_MAX_STAGES);
		for (unsigned k = 0; k < n; k++)
			if (reduced[k] >> lg2(v) & 1) { /* old = (old ^ v) + v: whoever used it uses both */
				reduced[k] ^= v;
				threads[n] ^= threads[k];
			}
		reduced[n] = v;
		threads[n++] ^= UINT32_C(1) << i;
	}
	for (unsigned k = 0; k < n; k++)
		stage[k] = (layout_stage){threads[k] & 31, threads[k] >> LANE_BITS, reduced[k]};
	return n;
}

static bool plan_shuffles(layout_plan *p)
{
	movement m;
	function f;
	split(&p->from, &m);
	if (!factor(&m, &f)) return false;
	uint32_t before[THREAD_BITS];
	for (unsigned i = 0; i < m.nthread; i++) {
		before[i] = 0;
		function_reduce(&f, UINT32_C(1) << i, &before[i]);
	}
	p->nbefore = (uint8_t)make_stages(before, m.nthread, p->before);
	p->nafter = (uint8_t)make_stages(m.order, m.nthread, p->after);
	bool moves = false;
	p->lanes_stay = true;
	for (unsigned i = 0; i < m.nreg; i++) {
		uint32_t sender = 0;
		function_reduce(&f, m.thread_of_reg[i], &sender);
		p->register_from[i] = m.reg_of_reg[i] ^ sender;
		p->lane_xor_from[i] = m.thread_of_reg[i] & 31;
		moves |= p->lane_xor_from[i] != 0;
	}
	for (unsigned i = 0; i < m.nthread; i++) {
		uint32_t lane = m.thread_of_thread[i] & 31;
		*(i < LANE_BITS ? &p->lane_from_lane[i] : &p->lane_from_warp[i - LANE_BITS]) = lane;
		if (lane != (i < LANE_BITS ? UINT32_C(1) << i : 0)) p->lanes_stay = false;
	}
	moves |= !p->lanes_stay;
	if (moves && p->nbefore + p->nafter > MAX_SELECT_STAGES) return false;
	p->kind = moves || p->nbefore || p->nafter ? LAYOUT_SHUFFLES : LAYOUT_REGISTERS;
	return true;
}

/* ---- shared memory ---- */

static uint32_t input_bits(const layout *l, layout_in in, unsigned first)
{
	uint32_t bits = 0;
	for (unsigned i = 0; i < first && i < l->nin[in]; i++) bits |= l->col[in][i];
	return bits;
}

static layout_place place_of_column(const layout *l, uint32_t column)
{
	for (unsigned in = LAYOUT_REG; in < LAYOUT_CTA; in++)
		for (unsigned i = 0; i < l->nin[in]; i++)
			if (l->col[in][i] == column) return (layout_place){(uint8_t)in, (uint8_t)i};
	return (layout_place){LAYOUT_CTA, 0};
}

/* How well a coordinate bit divides a tile whose layouts have no register bits in common; 0: not at all.  What threads
 * step on one side, only some of them store or load in a pass; best is that it be registers on the other side, so that
 * all work there, and whole warps here.  Low register bits are the accesses' own. */
static unsigned pass_score(layout_place store, layout_place load, bool inside_warps)
{
	if (store.in == LAYOUT_CTA || load.in == LAYOUT_CTA) return 0;
	if (inside_warps && (store.in == LAYOUT_WARP || load.in == LAYOUT_WARP)) return 0; /* buffers of their own */
	unsigned lanes = (store.in == LAYOUT_LANE) + (load.in == LAYOUT_LANE);
	unsigned threads = lanes + (store.in == LAYOUT_WARP) + (load.in == LAYOUT_WARP);
	unsigned reg = (store.in == LAYOUT_REG ? store.bit : 0) + (load.in == LAYOUT_REG ? load.bit : 0);
	return 1 + reg + LAYOUT_MAX_BITS * (2 - lanes + 3 * (2 - threads));
}

/* Coordinate bits that are done one after the other while the scratch is too large: first register bits that both sides
 * step alike, then any but those of `kept`. */
static uint32_t choose_passes(layout_plan *p, const layout *src, const layout *dst, uint32_t kept, uint64_t bytes)
{
	uint32_t passes = 0, all = ((UINT32_C(1) << layout_bits(src)) - 1) & ~kept;
	uint32_t common =
		input_bits(src, LAYOUT_REG, LAYOUT_MAX_BITS) & input_bits(dst, LAYOUT_REG, LAYOUT_MAX_BITS) & all;
	for (; bytes > LAYOUT_SCRATCH_LIMIT; bytes /= 2) {
		uint32_t best = common & ~passes ? UINT32_C(1) << lg2(common & ~passes) : 0;
		unsigned most = 0;
		if (!best && bytes <= LAYOUT_SCRATCH_MOST) break;
		for (uint32_t u = all & ~passes; !(common & ~passes) && u; u &= u - 1) {
			unsigned score = pass_score(place_of_column(src, u & -u), place_of_column(dst, u & -u),
				p->kind == LAYOUT_WARP_SHARED);
			if (score > most) best = u & -u, most = score;
		}
		if (!best) break;
		passes |= best;
		assert(p->lg_passes < LAYOUT_MAX_BITS);
		p->pass_store[p->lg_passes] = place_of_column(src, best);
		p->pass_load[p->lg_passes++] = place_of_column(dst, best);
	}
	return passes;
}

/* Moves up to `room` bits of `from` to *to, lowest first; returns how many. */
static unsigned take(uint32_t from, uint32_t *to, unsigned room)
{
	unsigned n = 0;
	for (from &= ~*to; from && n < room; from &= from - 1, n++) *to |= from & -from;
	return n;
}

/* The offsets' columns: vector, bank, segment.  `all`: the flattened bits that one pass covers; `rows`: those that the
 * 8 rows of a matrix differ in, 0 without matrices. */
static void choose_swizzle(layout_plan *p, const layout *src, const layout *dst, uint32_t vector, uint32_t rows,
	unsigned lg_element, uint32_t all)
{
	unsigned lg_access = (unsigned)__builtin_popcount(vector) + lg_element;
	unsigned lanes = lg_access > 2 ? LANE_BITS - (lg_access - 2) : LANE_BITS;
	uint32_t across = vector & input_bits(src, LAYOUT_LANE, LANE_BITS); /* of an access that several lanes store */
	if (lg_access < 2) { /* fill the word: bits that are registers on one side, or warps, never meet in an access */
		uint32_t a = input_bits(src, LAYOUT_REG, LAYOUT_MAX_BITS),
			 b = input_bits(dst, LAYOUT_REG, LAYOUT_MAX_BITS);
		uint32_t v = input_bits(src, LAYOUT_WARP, LAYOUT_MAX_BITS),
			 w = input_bits(dst, LAYOUT_WARP, LAYOUT_MAX_BITS);
		lg_access += take(((a & w) | (b & v)) & all, &vector, 2 - lg_access);
		take((v | w) & all, &vector, 2 - lg_access);
	}
	uint32_t x = (vector | input_bits(src, LAYOUT_LANE, lanes + (unsigned)__builtin_popcount(across))) & all;
	uint32_t y = (vector | (rows ? rows : input_bits(dst, LAYOUT_LANE, lanes))) & all;
	unsigned total = (unsigned)__builtin_popcount(all), row = 7 - lg_element, nsegment = 0;
	unsigned needed = total > row ? total - row : 0;
	uint32_t segment[LAYOUT_MAX_BITS], pivots = 0;
	uint32_t a = x & ~y, b = y & ~x;
	for (uint32_t u = all & ~(x | y); u && nsegment < needed; u &= u - 1) segment[nsegment++] = u & -u;
	for (; a && b && nsegment < needed; a &= a - 1, b &= b - 1) segment[nsegment++] = (a & -a) | (b & -b);
	for (uint32_t u = a; u && nsegment < needed; u &= u - 1) segment[nsegment++] = u & -u;
	for (uint32_t u = b; u && nsegment < needed; u &= u - 1) segment[nsegment++] = u & -u;
	for (unsigned i = 0; i < nsegment; i++) pivots |= segment[i] & -segment[i];
	for (uint32_t u = all & ~(vector | pivots); u && nsegment < needed;
		u &= u - 1) { /* both sides collide anyway */
		segment[nsegment++] = u & -u;
		pivots |= u & -u;
	}
	layout *s = &p->shared;
	*s = *src;
	memset(s->nin, 0, sizeof s->nin);
	memset(s->col, 0, sizeof s->col);
	unsigned n = 0;
	for (uint32_t u = vector; u; u &= u - 1) s->col[LAYOUT_OFFSET][n++] = u & -u;
	for (uint32_t u = all & ~(vector | pivots); u; u &= u - 1) s->col[LAYOUT_OFFSET][n++] = u & -u;
	for (unsigned i = 0; i < nsegment; i++) s->col[LAYOUT_OFFSET][n++] = segment[i];
	s->nin[LAYOUT_OFFSET] = (uint8_t)n;
	assert(n == (unsigned)__builtin_popcount(all));
}

/* offset of each flattened bit: solve shared x = unit; columns have at most two bits, so back-substitution is direct.
 */
static void offsets_of_bits(const layout *shared, uint32_t offset[32])
{
	const uint32_t *col = shared->col[LAYOUT_OFFSET];
	memset(offset, 0, 32 * sizeof offset[0]);
	for (unsigned i = 0; i < shared->nin[LAYOUT_OFFSET]; i++) {
		assert(col[i] && __builtin_popcount(col[i]) <= 2);
		if (!(col[i] & (col[i] - 1))) offset[__builtin_ctz(col[i])] = UINT32_C(1) << i;
	}
	for (unsigned i = 0; i < shared->nin[LAYOUT_OFFSET]; i++)
		if (col[i] & (col[i] - 1)) /* pivot ^ other: the pivot is its own column plus the other's offset */
			offset[__builtin_ctz(col[i])] = UINT32_C(1) << i ^ offset[lg2(col[i])];
}

static void place_offsets(const layout *l, const uint32_t *offset, layout_map *out)
{
	memset(out, 0, sizeof *out);
	memcpy(out->nin, l->nin, sizeof out->nin);
	for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
		for (unsigned i = 0; i < l->nin[in]; i++) {
			assert(!(l->col[in][i] & (l->col[in][i] - 1)));
			if (l->col[in][i]) out->col[in][i] = offset[__builtin_ctz(l->col[in][i])];
		}
}

/* Register bits that step the offset by 1, 2, 4 .. while nobody else touches those bits of it. */
static unsigned access_bits(const layout_map *m, unsigned most, uint8_t *bit)
{
	unsigned v = 0;
	for (; v < most; v++) {
		unsigned found = LAYOUT_MAX_BITS, touching = 0;
		for (unsigned in = 0; in < LAYOUT_INPUTS; in++)
			for (unsigned i = 0; i < m->nin[in]; i++) {
				touching += m->col[in][i] >> v & 1;
				if (in == LAYOUT_REG && m->col[in][i] == UINT32_C(1) << v) found = i;
			}
		if (touching != 1 || found == LAYOUT_MAX_BITS) break;
		bit[v] = (uint8_t)found;
	}
	return v;
}

/* What matrices are made of: coordinates along their rows of 16 bytes, lowest first, and from row to row. */
typedef struct matrix_shape {
	unsigned nchunk;
	uint32_t chunk[4], row[3];
} matrix_shape;

static bool is_matrix(const matrix_shape *m)
{
	uint32_t seen = 0;
	for (unsigned i = 0; i < m->nchunk; i++) {
		if (m->chunk[i] <= seen) return false;
		seen |= m->chunk[i];
	}
	for (unsigned i = 0; i < 3; i++) {
		if (!m->row[i] || m->row[i] & seen) return false;
		seen |= m->row[i];
	}
	return true;
}

/* How a matrix would look, seen from the loading side; false if its words and lanes do not form one. */
static bool find_matrix(const layout *src, const layout *dst, unsigned lg_element, bool transposed, matrix_shape *m)
{
	const uint32_t *lane = dst->col[LAYOUT_LANE], *reg = dst->col[LAYOUT_REG];
	unsigned nword = 2 - lg_element, n = 0;
	uint32_t quad[4];
	if (lg_element > 2 || dst->nin[LAYOUT_REG] < nword || (transposed && lg_element != 1)) return false;
	for (; n < nword; n++) quad[n] = reg[n];
	quad[n++] = lane[0];
	quad[n++] = lane[1];
	memset(m, 0, sizeof *m);
	m->nchunk = transposed ? 3 : n;
	for (unsigned i = 0; i < 3; i++) m->row[i] = transposed ? quad[i] : lane[2 + i];
	for (unsigned i = 0; i < m->nchunk; i++) m->chunk[i] = transposed ? lane[2 + i] : quad[i];
	if (!is_matrix(m)) return false;
	/* Worth it where the storing side has the 16 bytes in one thread; or a word of them, where the loading side
	 * would have to put halves of two words together. */
	uint32_t stored = input_bits(src, LAYOUT_REG, LAYOUT_MAX_BITS);
	uint32_t others = input_bits(dst, LAYOUT_WARP, LAYOUT_MAX_BITS);
	for (unsigned i = nword; i < dst->nin[LAYOUT_REG]; i++) others |= reg[i];
	if (transposed && m->chunk[0] == src->col[LAYOUT_REG][0]) stored |= input_bits(src, LAYOUT_LANE, 2);
	for (unsigned i = 0; i < m->nchunk; i++)
		if (!(m->chunk[i] & stored) || m->chunk[i] & others) return false;
	return true;
}

static bool plan_matrices(layout_plan *p, const layout *src, const layout *dst, unsigned lg_element, matrix_shape *m)
{
	bool plain = find_matrix(src, dst, lg_element, false, m);
	if (!plain && !find_matrix(src, dst, lg_element, true, m)) return false;
	p->matrices = plain ? LAYOUT_MATRICES : LAYOUT_MATRICES_TRANSPOSED;
	return true;
}

/* Lanes name rows; registers beyond a word's count matrices. */
static void load_matrices(layout_plan *p, const layout *dst, const matrix_shape *m, unsigned lg_element,
	uint32_t passes, const uint32_t *offset)
{
	unsigned n = 0;
	uint32_t *lane = p->load.col[LAYOUT_LANE];
	memset(lane, 0, LANE_BITS * sizeof *lane);
	for (unsigned i = 0; i < 3; i++) lane[i] = offset[__builtin_ctz(m->row[i])];
	for (; n < 2 - lg_element; n++) p->load_bit[n] = (uint8_t)n;
	for (unsigned i = n; i < dst->nin[LAYOUT_REG] && p->lg_matrices < 2; i++) {
		if (dst->col[LAYOUT_REG][i] & passes) continue;
		lane[3 + p->lg_matrices++] = offset[__builtin_ctz(dst->col[LAYOUT_REG][i])];
		p->load_bit[n++] = (uint8_t)i;
	}
	assert(n <= sizeof p->load_bit && n >= p->lg_matrices);
	p->lg_vector_load = (uint8_t)n;
}

static void plan_shared(layout_plan *p, const layout *src, const layout *dst, unsigned element_bytes)
{
	assert(element_bytes && element_bytes <= 8 && !(element_bytes & (element_bytes - 1)));
	unsigned lg_element = lg2(element_bytes), most = 4 - lg_element;
	uint32_t all = (UINT32_C(1) << layout_bits(src)) - 1, vector = 0, rows = 0, offset[32];
	uint32_t common = input_bits(src, LAYOUT_REG, LAYOUT_MAX_BITS) & input_bits(dst, LAYOUT_REG, LAYOUT_MAX_BITS);
	matrix_shape m = {0};
	bool matrices = plan_matrices(p, src, dst, lg_element, &m);
	for (unsigned i = 0; i < m.nchunk && matrices; i++) vector |= m.chunk[i];
	for (unsigned i = 0; i < 3 && matrices; i++) rows |= m.row[i];
	uint32_t passes = choose_passes(p, src, dst, vector | rows, ((uint64_t)all + 1) * element_bytes);
	all &= ~passes;
	assert(!(passes & (vector | rows)));
	if (!matrices) take(common & ~passes, &vector, most);
	choose_swizzle(p, src, dst, vector, rows, lg_element, all);
	offsets_of_bits(&p->shared, offset);
	place_offsets(src, offset, &p->store);
	place_offsets(dst, offset, &p->load);
	p->lg_vector_store = (uint8_t)access_bits(&p->store, most, p->store_bit);
	if (matrices)
		load_matrices(p, dst, &m, lg_element, passes, offset);
	else
		p->lg_vector_load = (uint8_t)access_bits(&p->load, most, p->load_bit);
	p->store_free_lane = layout_free_mask(src, LAYOUT_LANE);
	p->store_free_warp = layout_free_mask(src, LAYOUT_WARP);
	p->bytes = element_bytes << p->shared.nin[LAYOUT_OFFSET];
}

void layout_plan_conversion(const layout *src, const layout *dst, unsigned element_bytes, layout_plan *p)
{
	assert(layout_bits(src) == layout_bits(dst));
	memset(p, 0, sizeof *p);
	bool known = layout_nearest_source(src, dst, &p->from);
	if (layout_equal(src, dst)) {
		p->kind = LAYOUT_SAME;
		p->lanes_stay = true;
		for (unsigned i = 0; i < dst->nin[LAYOUT_REG]; i++) p->register_from[i] = UINT32_C(1) << i;
		for (unsigned i = 0; i < LANE_BITS; i++) p->lane_from_lane[i] = UINT32_C(1) << i;
		return;
	}
	bool stay = known && warps_stay(&p->from);
	if (stay && plan_shuffles(p)) return;
	layout_map from = p->from;
	memset(p, 0, sizeof *p);
	p->from = from;
	p->kind = stay && layout_free_mask(src, LAYOUT_WARP) == 0 ? LAYOUT_WARP_SHARED : LAYOUT_CTA_SHARED;
	plan_shared(p, src, dst, element_bytes);
}

void layout_plan_exchange(const layout *src, const layout *dst, unsigned element_bytes, layout_plan *p)
{
	assert(layout_surjective(src) && layout_surjective(dst));
	memset(p, 0, sizeof *p);
	layout_nearest_source(src, dst, &p->from);
	p->kind = LAYOUT_CTA_SHARED;
	plan_shared(p, src, dst, element_bytes);
}

void layout_plan_store(const layout *src, const layout *shared, unsigned element_bytes, layout_plan *p)
{
	assert(layout_surjective(shared));
	memset(p, 0, sizeof *p);
	p->kind = LAYOUT_CTA_SHARED;
	p->shared = *shared;
	layout_invert_and_compose(shared, src, &p->store);
	p->lg_vector_store = (uint8_t)access_bits(&p->store, 4 - lg2(element_bytes), p->store_bit);
	p->store_free_lane = layout_free_mask(src, LAYOUT_LANE);
	p->store_free_warp = layout_free_mask(src, LAYOUT_WARP);
	p->bytes = element_bytes << shared->nin[LAYOUT_OFFSET];
}

/* ---- tiles that others laid out ---- */

void layout_plan_load(const layout *shared, const layout *l, unsigned element_bytes, layout_plan *p)
{
	assert(layout_surjective(shared) && layout_plain(l));
	unsigned lg_element = lg2(element_bytes);
	matrix_shape m = {0};
	layout_map offsets;
	layout bits = *shared, chunks = *shared; /* as if a thread had stored 16 bytes: rows of a matrix */
	chunks.nin[LAYOUT_REG] = (uint8_t)(4 - lg_element);
	memset(p, 0, sizeof *p);
	p->kind = LAYOUT_CTA_SHARED;
	p->shared = *shared;
	for (unsigned i = 0; i < bits.nin[LAYOUT_OFFSET]; i++) bits.col[LAYOUT_OFFSET][i] = UINT32_C(1) << i;
	layout_invert_and_compose(shared, &bits, &offsets);
	place_offsets(l, offsets.col[LAYOUT_OFFSET], &p->load);
	if (plan_matrices(p, &chunks, l, lg_element, &m))
		load_matrices(p, l, &m, lg_element, 0, offsets.col[LAYOUT_OFFSET]);
	else
		p->lg_vector_load = (uint8_t)access_bits(&p->load, 4 - lg_element, p->load_bit);
	p->bytes = element_bytes << shared->nin[LAYOUT_OFFSET];
}

/* ---- the bank model, and widths ---- */

unsigned layout_wavefronts(const uint32_t *byte_address, unsigned lanes, unsigned bytes_per_lane)
{
	assert(lanes <= 32);
	unsigned words = bytes_per_lane > 4 ? bytes_per_lane / 4 : 1, phase = 32 / words, total = 0;
	for (unsigned first = 0; first < lanes; first += phase) {
		uint32_t seen[32][32];
		unsigned count[32] = {0}, most = 0;
		for (unsigned lane = first; lane < first + phase && lane < lanes; lane++)
			for (unsigned w = 0; w < words; w++) {
				uint32_t word = byte_address[lane] / 4 + w, bank = word % 32;
				unsigned k = 0;
				while (k < count[bank] && seen[bank][k] != word) k++;
				if (k == count[bank]) seen[bank][count[bank]++] = word;
				if (count[bank] > most) most = count[bank];
			}
		total += most;
	}
	return total;
}

unsigned layout_lg_contiguous(const layout *l, unsigned dim)
{
	unsigned v = 0, shift = layout_shift(l, dim);
	while (v < l->nin[LAYOUT_REG] && v < l->lg[dim] && l->col[LAYOUT_REG][v] == UINT32_C(1) << (shift + v)) v++;
	return v;
}
