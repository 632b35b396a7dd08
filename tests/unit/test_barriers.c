/* allocate_shared and barriers: typical kernels by hand, and random programs against a model that follows every path.
 */
#include "kernel_builder.h"
#include "async/scratch.h"

static void schedule(kernel *k)
{
	finish(k);
	assert_true(pass_assign_layouts(&k->context, k->func));
	assert_true(pass_allocate_shared(&k->context, k->func));
	assert_true(pass_barriers(&k->context, k->func));
	assert_int_equal(k->func->level, IR_LEVEL_SCHEDULED);
}

static unsigned barriers(kernel *k)
{
	return count(k, IR_CTA_BARRIER);
}

typedef struct world {
	kernel *k;
	ir_value *x, *y, *z, *n, *offsets, *px, *py, *pz; /* *const f32, *f32, *f32; [1024] */
} world;

static world world_new(unsigned warps)
{
	world w = {.k = kernel_new(warps)};
	w.x = pointer_param(w.k, "x", SCALAR_F32, true, 16);
	w.y = pointer_param(w.k, "y", SCALAR_F32, false, 16);
	w.z = pointer_param(w.k, "z", SCALAR_F32, false, 16);
	w.n = param(w.k, "n", ir_scalar_type(SCALAR_I32), 16);
	w.offsets = arange(w.k, 1024);
	w.px = offset_pointer(w.k, w.x, w.offsets);
	w.py = offset_pointer(w.k, w.y, w.offsets);
	w.pz = offset_pointer(w.k, w.z, w.offsets);
	return w;
}

static void softmax(world *w, ir_value *from, ir_value *to)
{
	kernel *k = w->k;
	ir_value *v = load(k, from, NULL), *top = reduce(k, v, 0, IR_MAXIMUM);
	ir_value *e = ir_unary(&k->at, IR_EXP, ir_binary(&k->at, IR_SUB, v, splat(k, top, v)));
	ir_value *sum = reduce(k, e, 0, IR_SUM);
	store(k, to, ir_binary(&k->at, IR_DIV, e, splat(k, sum, e)), NULL);
}

/* Two reductions have bytes of their own: the barrier inside the second frees those of the first. */
static void test_softmax(void **state)
{
	(void)state;
	world w = world_new(4);
	softmax(&w, w.px, w.py);
	schedule(w.k);
	assert_int_equal(barriers(w.k), 0);
	assert_int_equal(w.k->func->shared_bytes, 2 * 4 * sizeof(float));
	kernel_free(w.k);
	/* Persistent: the store of one iteration and that of the next are kept apart by the reductions' barriers. */
	w = world_new(4);
	begin_for(w.k, w.n, 0, NULL);
	softmax(&w, w.px, w.py);
	end_region(w.k, 0, NULL);
	schedule(w.k);
	assert_int_equal(barriers(w.k), 0);
	kernel_free(w.k);
	/* One warp needs no shared memory at all. */
	w = world_new(1);
	softmax(&w, w.px, w.py);
	schedule(w.k);
	assert_int_equal(w.k->func->shared_bytes, 0);
	assert_int_equal(barriers(w.k), 0);
	kernel_free(w.k);
}

/* A single reduction in a loop: the next iteration's write waits for this iteration's reads. */
static void test_back_edge(void **state)
{
	(void)state;
	world w = world_new(4);
	ir_op *loop = begin_for(w.k, w.n, 0, NULL);
	ir_value *sum = reduce(w.k, load(w.k, w.px, NULL), 0, IR_SUM);
	end_region(w.k, 0, NULL);
	schedule(w.k);
	assert_int_equal(barriers(w.k), 1);
	assert_ptr_equal(sum->def->prev->block, loop->regions[0]);
	assert_int_equal(sum->def->prev->kind, IR_CTA_BARRIER);
	kernel_free(w.k);
}

static void test_global_memory(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 12; c++) {
		world w = world_new(4);
		kernel *k = w.k;
		ir_value *v = load(k, w.px, NULL), *eight = number(k, SCALAR_I32, 8);
		unsigned expected = 0;
		ir_value *repeated =
			offset_pointer(k, w.y, ir_binary(&k->at, IR_DIV, w.offsets, splat(k, eight, w.offsets)));
		switch (c) {
		case 0: /* *const is never written */
			store(k, w.py, v, NULL);
			load(k, w.px, NULL);
			break;
		case 1: /* in place: each thread meets its own elements */
			store(k, w.py, ir_binary(&k->at, IR_ADD, load(k, w.py, NULL), v), NULL);
			break;
		case 2: /* the same bytes may be behind y and z */
			store(k, w.py, v, NULL);
			load(k, w.pz, NULL);
			expected = 1;
			break;
		case 3: /* write after read */
			load(k, w.py, NULL);
			store(k, w.pz, v, NULL);
			expected = 1;
			break;
		case 4: /* the order of two stores counts */
			store(k, w.py, v, NULL);
			store(k, w.pz, v, NULL);
			expected = 1;
			break;
		case 5: /* eight elements of the tile have one address, eight threads may load it */
			store(k, repeated, load(k, repeated, NULL), NULL);
			expected = 1;
			break;
		case 6: /* the user's own barrier is enough */
			store(k, w.py, v, NULL);
			ir_build(&k->at, IR_DEBUG_BARRIER, 0, NULL, 0, NULL, 0);
			load(k, w.pz, NULL);
			break;
		case 7: /* scalars are thread 0's */
			store(k, w.y, number(k, SCALAR_F32, 0), NULL);
			store(k, w.z, load(k, w.y, NULL), NULL);
			break;
		case 8: /* a scalar store, then everybody reads */
			store(k, w.y, number(k, SCALAR_F32, 0), NULL);
			load(k, w.pz, NULL);
			expected = 1;
			break;
		case 9: /* a reduction's barrier serves */
			store(k, w.py, v, NULL);
			reduce(k, v, 0, IR_SUM);
			load(k, w.pz, NULL);
			break;
		case 10: /* repeated lanes: another thread than the one that stores reads the element */
			repeated = offset_pointer(k, w.y, arange(k, 16));
			store(k, repeated, load(k, repeated, NULL), NULL);
			expected = 1;
			break;
		case 11: /* two loads never conflict */
			load(k, w.py, NULL);
			load(k, w.pz, NULL);
			break;
		}
		schedule(k);
		if (barriers(k) != expected) fail_msg("case %u: %u barriers", c, barriers(k));
		kernel_free(k);
	}
}

static void test_loops(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 5; c++) {
		world w = world_new(4);
		kernel *k = w.k;
		unsigned expected = 0;
		ir_value *sum;
		ir_value *inits[] = {w.py};
		ir_op *loop = begin_for(k, w.n, c == 4, inits);
		ir_value *i = loop->regions[0]->args[0];
		ir_value *step = number(k, SCALAR_I32, c == 1 ? 512 : 1024);
		ir_value *start = ir_binary(&k->at, IR_MUL, i, step);
		ir_value *moving =
			offset_pointer(k, w.y, ir_binary(&k->at, IR_ADD, splat(k, start, w.offsets), w.offsets));
		switch (c) {
		case 0: /* blocks of 1024 at multiples of 1024 are the same or apart */
			store(k, moving, load(k, w.px, NULL), NULL);
			break;
		case 1: /* at multiples of 512 they overlap */
			store(k, moving, load(k, w.px, NULL), NULL);
			expected = 1;
			break;
		case 2: /* always the same place */
			sum = ir_binary(&k->at, IR_ADD, load(k, w.py, NULL), load(k, w.px, NULL));
			store(k, w.py, sum, NULL);
			break;
		case 3: /* read one buffer, write another: one barrier before each */
			store(k, w.pz, load(k, w.py, NULL), NULL);
			expected = 2;
			break;
		case 4: /* a carried pointer may be anywhere the next time */
			store(k, loop->regions[0]->args[1], load(k, w.px, NULL), NULL);
			expected = 1;
			break;
		}
		end_region(k, c == 4, inits);
		schedule(k);
		if (barriers(k) != expected) fail_msg("case %u: %u barriers", c, barriers(k));
		kernel_free(k);
	}
}

static void test_nested_loops_end(void **state)
{
	(void)state;
	world w = world_new(4);
	for (unsigned i = 0; i < 200; i++) begin_for(w.k, w.n, 0, NULL);
	reduce(w.k, load(w.k, w.px, NULL), 0, IR_SUM);
	store(w.k, w.py, load(w.k, w.pz, NULL), NULL);
	for (unsigned i = 0; i < 200; i++) end_region(w.k, 0, NULL);
	schedule(w.k);
	assert_int_equal(barriers(w.k), 1); /* between z's load and y's store */
	kernel_free(w.k);
	w = world_new(4); /* more accesses than are remembered one by one */
	ir_value *v = load(w.k, w.px, NULL);
	for (unsigned i = 0; i < 200; i++) {
		ir_value *o = ir_binary(
			&w.k->at, IR_ADD, w.offsets, splat(w.k, number(w.k, SCALAR_I32, 1024 * i), w.offsets));
		store(w.k, offset_pointer(w.k, w.y, o), v, NULL);
	}
	schedule(w.k);
	assert_true(barriers(w.k) <= 4);
	kernel_free(w.k);
}

/* ---- allocation, on functions that are mapped by hand ---- */

static ir_value *mapped_tile(kernel *k, ir_type t, const char *mapping)
{
	ir_value *v = ir_constant(&k->at, t, 0);
	layout *l = ARENA_NEW(&k->memory, layout);
	assert_true(layout_parse(&mapping, t, l));
	v->layout = l;
	return v;
}

static ir_op *conversion(kernel *k, ir_value *from, const ir_value *like)
{
	ir_value *v = ir_build1(&k->at, IR_CONVERT_LAYOUT, from->type, 1, &from);
	v->layout = like->layout;
	return v->def;
}

/* Small neighbours lie apart, the next but one may reuse the bytes; large scratch is reused at once, behind a barrier.
 */
static void test_allocation(void **state)
{
	(void)state;
	for (unsigned big = 0; big < 2; big++) {
		kernel *k = kernel_new(2);
		ir_type t = shaped(SCALAR_F32, 1, big ? 2048 : 64, 0);
		ir_value *a, *b;
		if (big) {
			a = mapped_tile(k, t, "reg (1)(2)(4)(8)(16) lane (32)(64)(128)(256)(512) warp (1024)");
			b = mapped_tile(k, t, "reg (64)(128)(256)(512)(1024) lane (2)(4)(8)(16)(32) warp (1)");
		} else {
			a = mapped_tile(k, t, "reg () lane (1)(2)(4)(8)(16) warp (32)");
			b = mapped_tile(k, t, "reg () lane (2)(4)(8)(16)(32) warp (1)");
		}
		ir_op *op[4];
		for (unsigned i = 0; i < 4; i++) op[i] = conversion(k, i % 2 ? b : a, i % 2 ? a : b);
		finish(k);
		k->func->level = IR_LEVEL_MAPPED;
		assert_true(pass_allocate_shared(&k->context, k->func));
		assert_true(pass_barriers(&k->context, k->func));
		uint32_t bytes = big ? 8192 : 256;
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(op[i]->shared_bytes, bytes);
			assert_int_equal(op[i]->shared_offset, big ? 0 : i % 2 * bytes);
		}
		assert_int_equal(k->func->shared_bytes, big ? bytes : 2 * bytes);
		assert_int_equal(barriers(k), big ? 3 : 0);
		kernel_free(k);
	}
}

/* An exchange inside warps has no CTA barrier: whatever else used or will use its bytes needs one, its own repetition
 * does not. */
static void test_exchange_in_warps(void **state)
{
	(void)state;
	kernel *k = kernel_new(2);
	ir_value *n = param(k, "n", ir_scalar_type(SCALAR_I32), 1);
	ir_type t = shaped(SCALAR_F32, 1, 2048, 0);
	ir_value *a = mapped_tile(k, t, "reg (1)(2)(4)(8)(16) lane (32)(64)(128)(256)(512) warp (1024)");
	ir_value *b = mapped_tile(k, t, "reg (32)(64)(128)(256)(512) lane (1)(2)(4)(8)(16) warp (1024)");
	begin_for(k, n, 0, NULL);
	conversion(k, a, b);
	end_region(k, 0, NULL);
	finish(k);
	assert_true(pass_allocate_shared(&k->context, k->func));
	assert_true(pass_barriers(&k->context, k->func));
	assert_int_equal(k->func->shared_bytes, 8192);
	assert_int_equal(barriers(k), 0);
	kernel_free(k);
	k = kernel_new(2);
	a = mapped_tile(k, t, "reg (1)(2)(4)(8)(16) lane (32)(64)(128)(256)(512) warp (1024)");
	b = mapped_tile(k, t, "reg (32)(64)(128)(256)(512) lane (1)(2)(4)(8)(16) warp (1024)");
	conversion(k, a, b);
	conversion(k, a, b);
	finish(k);
	assert_true(pass_allocate_shared(&k->context, k->func));
	assert_true(pass_barriers(&k->context, k->func));
	assert_int_equal(barriers(k), 1);
	kernel_free(k);
}

/* Column sums of [16, 8192] with a row for each warp: every column's sixteen parts pass through shared memory. */
static const char wide[] = "reg (0,32)(0,64)(0,128)(0,256)(0,512)(0,1024)(0,2048)(0,4096) lane "
			   "(0,1)(0,2)(0,4)(0,8)(0,16) warp (1,0)(2,0)(4,0)(8,0)";

/* The tile that a gather picks from is in shared memory as a whole. */
static void test_too_much(void **state)
{
	(void)state;
	for (unsigned budget = 0; budget < 3; budget++) {
		kernel *k = kernel_new(16);
		ir_type t = shaped(SCALAR_F32, 2, 16, budget ? 32 : 8192);
		const char *y = budget ? "reg () lane (0,1)(0,2)(0,4)(0,8)(0,16) warp (1,0)(2,0)(4,0)(8,0)" : wide;
		ir_value *v = mapped_tile(k, t, y), *index = mapped_tile(k, ir_with_elem(t, SCALAR_I32), y);
		ir_value *args[] = {v, index}, *picked = ir_build1(&k->at, IR_GATHER, t, 2, args);
		picked->layout = v->layout;
		finish(k);
		k->func->max_shared = budget == 1 ? 2047 : budget == 2 ? 2048 : UINT32_MAX;
		assert_int_equal(pass_allocate_shared(&k->context, k->func), budget == 2);
		assert_int_equal(k->func->shared_bytes, budget ? 2048 : 524288);
		assert_int_equal(k->found.errors, budget != 2);
		if (budget != 2) assert_int_equal(k->found.first->code, budget ? 721 : 720);
		kernel_free(k);
	}
}

/* 512 KB between warps, in eight passes of 64: the registers of a pass have the three highest bits in common. */
static void test_exchange_in_passes(void **state)
{
	(void)state;
	kernel *k = kernel_new(16);
	ir_value *v = mapped_tile(k, shaped(SCALAR_F32, 2, 16, 8192), wide), *sum = reduce(k, v, 0, IR_SUM);
	layout *l = ARENA_NEW(&k->memory, layout);
	reduce_plan p;
	*l = layout_slice(v->layout, 0);
	sum->layout = l;
	finish(k);
	reduce_plan_make(sum->def, &p);
	assert_int_equal(p.nsteps, 1);
	assert_int_equal(p.step[0].npasses, 3);
	assert_int_equal(p.bytes, 65536);
	for (uint32_t r = 0; r < 256; r++) {
		unsigned passes = 0;
		for (uint32_t n = 0; n < 8; n++) passes += reduce_in_pass(&p.step[0], n, r);
		assert_int_equal(passes, 1);
	}
	assert_int_equal(reduce_slot(&p.step[0], 4096 | 31), reduce_slot(&p.step[0], 31));
	assert_true(pass_allocate_shared(&k->context, k->func));
	assert_int_equal(k->func->shared_bytes, 65536);
	kernel_free(k);
}

static void test_reduce_plan(void **state)
{
	(void)state;
	kernel *k = kernel_new(4);
	ir_type t = shaped(SCALAR_F32, 1, 1024, 0);
	ir_value *v = mapped_tile(k, t, "reg (1)(2)(512) lane (4)(8)(16)(32)(64) warp (128)(256)");
	ir_op *sum = reduce(k, v, 0, IR_SUM)->def, *custom = reduce(k, v, 0, IR_CUSTOM)->def;
	reduce_plan p;
	reduce_plan_make(sum, &p); /* registers, lanes, then the four warps at once */
	assert_int_equal(p.nsteps, 9);
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(p.step[i].in, i < 3 ? LAYOUT_REG : i < 8 ? LAYOUT_LANE : LAYOUT_WARP);
	assert_int_equal(p.step[8].nbits, 2);
	assert_int_equal(p.bytes, 16);
	assert_int_equal(p.registers, 7);
	assert_int_equal(p.step[8].skip_lane, 31);
	assert_int_equal(p.step[8].skip_warp, 0);
	reduce_plan_make(custom, &p); /* register bit 512 comes last: both halves pass through the warps' exchange */
	static const uint8_t order[] = {LAYOUT_REG, LAYOUT_REG, LAYOUT_LANE, LAYOUT_LANE, LAYOUT_LANE, LAYOUT_LANE,
		LAYOUT_LANE, LAYOUT_WARP, LAYOUT_REG};
	assert_int_equal(p.nsteps, 9);
	for (unsigned i = 0; i < 9; i++) assert_int_equal(p.step[i].in, order[i]);
	assert_int_equal(p.step[8].bit[0], 2);
	assert_int_equal(p.bytes, 32);
	assert_int_equal(reduce_slot(&p.step[7], 512 | 128), 1);
	kernel_free(k);
	/* Two axes: kept rows in lanes and registers. */
	k = kernel_new(4);
	v = mapped_tile(
		k, shaped(SCALAR_F16, 2, 16, 32), "reg (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (0,8)(0,16)");
	reduce_plan_make(reduce(k, v, 1, IR_SUM)->def, &p);
	assert_int_equal(p.nsteps, 4);
	assert_int_equal(p.bytes, 16 * 4 * 2);
	assert_int_equal(p.step[3].skip_lane, 3);
	assert_int_equal(p.registers, 1);
	assert_int_equal(reduce_slot(&p.step[3], (8 + 4) << 5 | 31), 12);
	kernel_free(k);
}

/* ---- random programs, followed along every path ---- */

/* An event is a scratch operation (read afterwards, with a barrier inside) or an access to y or z, which may be the
 * same memory; both pointers are made outside loops and each thread meets its own elements through either of them.
 * State: what is pending since the last barrier. */
enum { READ_Y = 1, WRITE_Y = 2, READ_Z = 4, WRITE_Z = 8, ACCESSES = 4 };

typedef struct model {
	const ir_value *y, *z;
	ir_op *skip; /* a barrier that is left out, or null */
	bool race;
} model;

typedef struct states {
	struct {
		unsigned accesses;
		const ir_op *
			scratch; /* read since the last barrier; several are never pending, each has a barrier inside */
	} at[256];
	unsigned n;
} states;

static void add_state(states *s, unsigned accesses, const ir_op *scratch)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->at[i].accesses == accesses && s->at[i].scratch == scratch) return;
	assert_true(s->n < 256);
	s->at[s->n].accesses = accesses;
	s->at[s->n++].scratch = scratch;
}

static unsigned access_of(const model *m, const ir_op *o)
{
	const ir_value *p = ir_arg(o, 0);
	return (o->kind == IR_STORE ? WRITE_Y : READ_Y) << (p == m->z ? 2 : 0);
}

static void step(model *m, states *s, const ir_op *o)
{
	states out = {0};
	for (unsigned i = 0; i < s->n; i++) {
		unsigned accesses = s->at[i].accesses;
		const ir_op *scratch = s->at[i].scratch;
		if (o->kind == IR_CTA_BARRIER && o != m->skip) {
			accesses = 0;
			scratch = NULL;
		} else if (o->shared_bytes) {
			m->race |= scratch && scratch->shared_offset < o->shared_offset + o->shared_bytes &&
				   o->shared_offset < scratch->shared_offset + scratch->shared_bytes;
			accesses = 0;
			scratch = o;
		} else if ((o->kind == IR_LOAD || o->kind == IR_STORE) &&
			   (ir_arg(o, 0) == m->y || ir_arg(o, 0) == m->z)) {
			unsigned now = access_of(m, o),
				 other = ir_arg(o, 0) == m->y ? READ_Z | WRITE_Z : READ_Y | WRITE_Y;
			if (o->kind != IR_STORE) other &= WRITE_Y | WRITE_Z;
			m->race |= (accesses & other) != 0;
			accesses |= now;
		}
		add_state(&out, accesses, scratch);
	}
	*s = out;
}

static void follow(model *m, const ir_block *b, states *s)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		if (o->kind == IR_IF) {
			states other = *s;
			follow(m, o->regions[0], s);
			follow(m, o->regions[1], &other);
			for (unsigned i = 0; i < other.n; i++) add_state(s, other.at[i].accesses, other.at[i].scratch);
		} else if (o->kind == IR_FOR) {
			for (unsigned before = 0; before != s->n;) {
				states iteration = *s;
				before = s->n;
				follow(m, o->regions[0], &iteration);
				for (unsigned i = 0; i < iteration.n; i++)
					add_state(s, iteration.at[i].accesses, iteration.at[i].scratch);
			}
		} else
			step(m, s, o);
	}
}

static bool races(const kernel *k, const ir_value *y, const ir_value *z, ir_op *skip)
{
	model m = {.y = y, .z = z, .skip = skip};
	states s = {0};
	add_state(&s, 0, NULL);
	follow(&m, k->func->body, &s);
	return m.race;
}

static void random_block(world *w, ir_value *v, ir_value *c, unsigned depth)
{
	kernel *k = w->k;
	for (unsigned n = 1 + (unsigned)rand() % 4; n; n--) switch ((unsigned)rand() % (depth ? 8 : 5)) {
		case 0: reduce(k, v, 0, IR_SUM); break;
		case 1: store(k, w->py, v, NULL); break;
		case 2: store(k, w->pz, v, NULL); break;
		case 3: load(k, w->py, NULL); break;
		case 4: load(k, w->pz, NULL); break;
		case 5:
		case 6:
			begin_for(k, w->n, 0, NULL);
			random_block(w, v, c, depth - 1);
			end_region(k, 0, NULL);
			break;
		default: {
			ir_op *branch = ir_build(&k->at, IR_IF, 1, &c, 0, NULL, 2);
			k->at.block = branch->regions[0];
			random_block(w, v, c, depth - 1);
			end_region(k, 0, NULL);
			k->at.block = branch->regions[1];
			if (rand() % 2) random_block(w, v, c, depth - 1);
			end_region(k, 0, NULL);
		}
		}
}

static void collect_barriers(ir_op *o, void *context)
{
	ir_op **list = context;
	if (o->kind != IR_CTA_BARRIER) return;
	while (*list) list++;
	*list = o;
}

static void test_random_programs(void **state)
{
	(void)state;
	srand(5);
	unsigned placed = 0, redundant = 0;
	for (unsigned iteration = 0; iteration < 3000; iteration++) {
		world w = world_new(4);
		ir_value *c = param(w.k, "c", ir_scalar_type(SCALAR_BOOL), 1), *v = load(w.k, w.px, NULL);
		random_block(&w, v, c, 3);
		schedule(w.k);
		ir_value *y = w.py, *z = w.pz;
		if (races(w.k, y, z, NULL)) fail_msg("program %u races", iteration);
		ir_op *list[512] = {0};
		ir_walk(w.k->func->body, collect_barriers, list);
		for (unsigned i = 0; list[i]; i++) {
			placed++;
			if (!races(w.k, y, z, list[i])) redundant++;
		}
		kernel_free(w.k);
	}
	assert_true(placed > 5000);
	print_message("%u barriers, %u redundant\n", placed, redundant);
	/* A later barrier, placed for a loop's back edge, now and then does an earlier one's work. */
	assert_true(redundant * 50 < placed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_softmax),
		cmocka_unit_test(test_back_edge),
		cmocka_unit_test(test_global_memory),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_nested_loops_end),
		cmocka_unit_test(test_allocation),
		cmocka_unit_test(test_exchange_in_warps),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_exchange_in_passes),
		cmocka_unit_test(test_reduce_plan),
		cmocka_unit_test(test_random_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
