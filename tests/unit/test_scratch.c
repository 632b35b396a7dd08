/* Reduction plans executed on a model of the machine: threads with registers, butterflies, and shared memory that is
 * written once and read after a barrier.  A custom combination gets partial values as ranges of indices and insists
 * that the left one ends where the right one begins; a built-in one counts each element. */
#include "kernel_builder.h"
#include "layout_random.h"
#include "async/scratch.h"

enum { MAX_THREADS = 256, MAX_REGISTERS = 64, SLOTS = 1 << 16 };

/* A partial result: which kept element it belongs to, and which indices of the axis are in it. */
typedef struct partial {
	uint32_t kept, from, to; /* [from, to) for custom combinations */
	uint64_t sum;            /* for built-in ones */
	bool set;
} partial;

static partial value[MAX_THREADS][MAX_REGISTERS], shared[SLOTS];

static partial join(partial a, partial b, bool custom)
{
	assert_true(a.set && b.set);
	assert_int_equal(a.kept, b.kept);
	if (custom) assert_int_equal(a.to, b.from);
	return (partial){.kept = a.kept, .from = a.from, .to = b.to, .sum = a.sum + b.sum, .set = true};
}

static unsigned threads_of(const layout *l)
{
	return 32u << l->nin[LAYOUT_WARP];
}

static void in_registers(const layout *l, unsigned bit, uint32_t *done, bool custom)
{
	for (unsigned t = 0; t < threads_of(l); t++)
		for (uint32_t r = 0; r < layout_registers(l); r++)
			if (!(r & (*done | 1u << bit)))
				value[t][r] = join(value[t][r], value[t][r | 1u << bit], custom);
	*done |= 1u << bit;
}

static void between_lanes(const layout *l, unsigned bit, uint32_t done, bool custom)
{
	static partial old[MAX_THREADS][MAX_REGISTERS];
	memcpy(old, value, sizeof old);
	for (unsigned t = 0; t < threads_of(l); t++)
		for (uint32_t r = 0; r < layout_registers(l); r++) {
			if (r & done) continue;
			partial own = old[t][r], other = old[t ^ 1u << bit][r];
			value[t][r] = t >> bit & 1 ? join(other, own, custom) : join(own, other, custom);
		}
}

static void between_warps(const layout *l, const reduce_step *s, uint32_t done, bool custom, unsigned element)
{
	memset(shared, 0, sizeof shared);
	for (unsigned t = 0; t < threads_of(l); t++) {
		uint32_t lane = t & 31, warp = t >> 5, number = 0;
		if ((lane & s->skip_lane) | (warp & s->skip_warp)) continue;
		for (unsigned i = 0; i < s->nbits; i++) number |= (warp >> s->bit[i] & 1) << i;
		for (uint32_t r = 0; r < layout_registers(l); r++) {
			if (r & done) continue;
			uint32_t at = (reduce_slot(s, layout_apply(l, r, lane, warp)) << s->nbits) + number;
			assert_true(at * element + element <= s->bytes && at < SLOTS);
			assert_false(shared[at].set); /* one writer */
			shared[at] = value[t][r];
		}
	}
	for (unsigned t = 0; t < threads_of(l); t++)
		for (uint32_t r = 0; r < layout_registers(l); r++) {
			if (r & done) continue;
			uint32_t at = reduce_slot(s, layout_apply(l, r, t & 31, t >> 5)) << s->nbits;
			partial all = shared[at];
			for (uint32_t k = 1; k < 1u << s->nbits; k++) all = join(all, shared[at + k], custom);
			value[t][r] = all;
		}
}

static uint32_t kept_index(const layout *l, unsigned axis, uint32_t element)
{
	uint32_t kept = 0;
	for (unsigned d = 0; d < l->rank; d++)
		if (d != axis) kept = kept << l->lg[d] | layout_coordinate(l, element, d);
	return kept;
}

static uint64_t weight(uint32_t index)
{
	return (uint64_t)index * index * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static void check(const layout *l, ir_type shape, unsigned axis, bool custom)
{
	kernel *k = kernel_new(1u << l->nin[LAYOUT_WARP]);
	ir_value *v = ir_constant(&k->at, shape, 0);
	v->layout = l;
	ir_op *o = reduce(k, v, axis, custom ? IR_CUSTOM : IR_SUM)->def;
	reduce_plan p;
	reduce_plan_make(o, &p);
	assert_true(threads_of(l) <= MAX_THREADS && layout_registers(l) <= MAX_REGISTERS);
	for (unsigned t = 0; t < threads_of(l); t++)
		for (uint32_t r = 0; r < layout_registers(l); r++) {
			uint32_t e = layout_apply(l, r, t & 31, t >> 5), i = layout_coordinate(l, e, axis);
			value[t][r] = (partial){kept_index(l, axis, e), i, i + 1, weight(i), true};
		}
	uint32_t done = 0, most = 0;
	for (uint32_t s = 0; s < p.nsteps; s++) {
		const reduce_step *step = &p.step[s];
		if (step->in == LAYOUT_REG)
			in_registers(l, step->bit[0], &done, custom);
		else if (step->in == LAYOUT_LANE)
			between_lanes(l, step->bit[0], done, custom);
		else
			between_warps(l, step, done, custom, ir_element_bytes(shape));
		if (step->bytes > most) most = step->bytes;
		if (step->in != LAYOUT_WARP) assert_int_equal(step->nbits, 1);
	}
	assert_int_equal(done, p.registers);
	assert_int_equal(most, p.bytes);
	uint64_t all = 0;
	for (uint32_t i = 0; i < shape.dim[axis]; i++) all += weight(i);
	layout slice = layout_slice(l, axis);
	for (unsigned t = 0; t < threads_of(l); t++)
		for (uint32_t r = 0; r < layout_registers(l); r++) {
			if (r & done) continue;
			uint32_t to = layout_narrow_register(l, layout_dim_bits(l, axis), r);
			assert_int_equal(layout_apply(&slice, to, t & 31, t >> 5), value[t][r].kept);
			assert_true(value[t][r].sum == all);
			if (custom) assert_true(value[t][r].from == 0 && value[t][r].to == shape.dim[axis]);
		}
	kernel_free(k);
}

static void test_every_axis(void **state)
{
	(void)state;
	srand(3);
	for (unsigned round = 0; round < 4000; round++) {
		unsigned rank = 1 + (unsigned)rand() % 3, left = 8;
		uint32_t dim[3];
		for (unsigned d = 0; d < rank; d++) {
			unsigned lg = (unsigned)rand() % (left + 1);
			left -= lg;
			dim[d] = 1u << lg;
		}
		ir_type shape = ir_tile_type(rand() % 2 ? SCALAR_F32 : SCALAR_F16, rank, dim);
		layout l = random_layout(shape, (unsigned)rand() % 4);
		if (layout_registers(&l) > MAX_REGISTERS) continue;
		for (unsigned axis = 0; axis < rank; axis++)
			for (unsigned custom = 0; custom < 2; custom++) check(&l, shape, axis, custom);
	}
}

/* Operands of different sizes have regions of their own, aligned for vectors. */
static void test_operands(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	uint32_t dim[] = {128};
	ir_type types[] = {
		ir_tile_type(SCALAR_F16, 1, dim), ir_tile_type(SCALAR_I64, 1, dim), ir_tile_type(SCALAR_BOOL, 1, dim)};
	ir_type results[3];
	ir_value *v[3];
	layout *l = ARENA_NEW(&k->memory, layout);
	*l = layout_coalesced(types[0], 0, (uint8_t[]){0}, 4);
	for (unsigned i = 0; i < 3; i++) {
		v[i] = ir_constant(&k->at, types[i], 0);
		v[i]->layout = l;
		results[i] = ir_element(types[i]);
	}
	ir_op *o = ir_build(&k->at, IR_REDUCE, 3, v, 3, results, 1);
	ir_set_combine(o, IR_CUSTOM);
	reduce_plan p;
	reduce_plan_make(o, &p);
	const reduce_step *s = &p.step[p.nsteps - 1];
	assert_int_equal(s->in, LAYOUT_WARP);
	assert_int_equal(s->operand_offset[0], 0);  /* 4 x 2 bytes */
	assert_int_equal(s->operand_offset[1], 16); /* 4 x 8 */
	assert_int_equal(s->operand_offset[2], 48); /* 4 x 1 */
	assert_int_equal(p.bytes, 64);
	assert_int_equal(scratch_bytes(k->func, o), 64);
	kernel_free(k);
}

static void test_scalar_loads(void **state)
{
	(void)state;
	for (unsigned warps = 1; warps <= 4; warps *= 4) {
		kernel *k = kernel_new(warps);
		ir_value *x = pointer_param(k, "x", SCALAR_F32, true, 16),
			 *y = pointer_param(k, "y", SCALAR_F32, false, 16);
		assert_int_equal(scratch_bytes(k->func, load(k, x, NULL)->def), 0);
		assert_int_equal(scratch_bytes(k->func, load(k, y, NULL)->def), warps == 1 ? 0 : 8);
		assert_true(scalar_load_needs_broadcast(load(k, y, NULL)->def));
		assert_false(scalar_load_needs_broadcast(load(k, x, NULL)->def));
		kernel_free(k);
	}
}

static ir_op *sort_of(kernel *k, scalar t, uint32_t n, uint32_t kept)
{
	ir_type type = ir_tile_type(t, 1, &n), result = ir_tile_type(t, 1, &kept);
	ir_value *v = ir_constant(&k->at, type, 0);
	layout *lines = ARENA_NEW(&k->memory, layout), *out = ARENA_NEW(&k->memory, layout);
	*lines = layout_lines(type, 0, k->func->num_warps);
	*out = layout_truncate(lines, 0, (unsigned)__builtin_ctz(kept));
	v->layout = lines;
	ir_op *o = ir_build(&k->at, IR_SORT, 1, &v, 1, &result, 0);
	o->results[0]->layout = out;
	if (kept != n) ir_set_descending(o, true), ir_set_k(o, kept);
	return o;
}

static void test_exchanges(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	/* 512 elements: 2 bits of the index in registers, 5 in lanes, 2 in warps. Stage 8 compares warps once, 9 twice.
	 */
	ir_op *o = sort_of(k, SCALAR_F32, 512, 512);
	assert_int_equal(exchange_barriers(k->func, o), 3);
	assert_int_equal(scratch_bytes(k->func, o), 2 * 512 * 4);
	/* Runs of 8 halve in number 6 times, twice across warps; runs of 256 are sorted across warps, halve, are
	 * merged. */
	assert_int_equal(exchange_barriers(k->func, sort_of(k, SCALAR_F32, 512, 8)), 2);
	assert_int_equal(exchange_barriers(k->func, sort_of(k, SCALAR_F32, 512, 256)), 1 + 2);
	/* 128 registers of 8 bytes a thread: 16 at a time; of 16-bit elements the keys have 4. */
	o = sort_of(k, SCALAR_F64, 16384, 16384);
	assert_int_equal(exchange_barriers(k->func, o), 8 * 3);
	assert_int_equal(scratch_bytes(k->func, o), 2 * 16384);
	assert_int_equal(scratch_bytes(k->func, sort_of(k, SCALAR_F16, 1024, 1024)), 2 * 1024 * 4);
	/* A line that one warp holds needs nothing. */
	assert_int_equal(scratch_bytes(k->func, sort_of(k, SCALAR_F32, 256, 256)), 0);
	assert_int_equal(exchange_barriers(k->func, sort_of(k, SCALAR_F32, 256, 256)), 0);
	ir_value *x = ir_arg(o, 0);
	ir_op *flip = ir_build(&k->at, IR_FLIP, 1, &x, 1, &x->type, 0);
	flip->results[0]->layout = x->layout;
	assert_int_equal(exchange_barriers(k->func, flip), 8);
	ir_op *scan = ir_build(&k->at, IR_SCAN, 1, &x, 1, &x->type, 0);
	assert_int_equal(exchange_barriers(k->func, scan), 1);
	assert_int_equal(scratch_bytes(k->func, scan), 4 * 8); /* one value a warp */
	kernel_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_axis),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_scalar_loads),
		cmocka_unit_test(test_exchanges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
