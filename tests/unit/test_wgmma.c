/* Operands of wgmma in shared memory: the descriptors say where tiles lie; which parts of a sum warpgroups make; which
 * dots become products by warpgroups, and which of those stay in flight round a loop. */
#include "compiler/target/nvptx/mma/wgmma.h"
#include "ir_text.h"

#include "compiled.h"

static ir_type tile(scalar s, uint32_t rows, uint32_t columns)
{
	return ir_tile_type(s, 2, (uint32_t[]){rows, columns});
}

/* The byte that the instruction reads for its element (other, k), by the canonical layouts of the PTX manual: from the
 * 64 bits of a descriptor alone. */
static uint32_t byte_read(uint64_t d, bool k_major, unsigned element, uint32_t other, uint32_t k)
{
	uint32_t start = (uint32_t)(d & 0x3fff) << 4, leading = (uint32_t)(d >> 16 & 0x3fff) << 4;
	uint32_t stride = (uint32_t)(d >> 32 & 0x3fff) << 4, mode = (uint32_t)(d >> 62);
	uint32_t row = mode == 1 ? 128 : mode == 2 ? 64 : 32, a = start;
	assert_int_not_equal(mode, 0);
	assert_int_equal(d >> 49 & 7, 0);
	if (k_major)
		a += other / 8 * stride + other % 8 * row + k * element;
	else
		a += other * element / row * leading + other * element % row + k / 8 * stride + k % 8 * row;
	return a ^ (a >> 7 & (row / 16 - 1)) << 4;
}

/* Every element that any instruction reads of a tile at byte `base`. */
static void check_reads(const wgmma_tile *t, uint32_t run, uint32_t step, uint32_t base)
{
	layout l = wgmma_tile_layout(t);
	unsigned element = ir_element_bytes(t->type), other_dim = 1 - t->k;
	assert_true(layout_injective(&l) && layout_surjective(&l));
	for (uint32_t first = 0; first < t->type.dim[other_dim]; first += run)
		for (uint32_t k0 = 0; k0 < t->type.dim[t->k]; k0 += step) {
			uint64_t d = wgmma_descriptor(t) + ((base + wgmma_tile_offset(t, 0, first, k0)) >> 4);
			for (uint32_t other = 0; other < run; other++)
				for (uint32_t k = 0; k < step; k++) {
					uint32_t at = byte_read(d, t->fast == t->k, element, other, k) - base;
					assert_true(at < t->bytes && at % element == 0);
					uint32_t flat = layout_apply(&l, at / element, 0, 0);
					assert_int_equal(layout_coordinate(&l, flat, other_dim), first + other);
					assert_int_equal(layout_coordinate(&l, flat, t->k), k0 + k);
				}
		}
}

static void descriptors(void **state)
{
	(void)state;
	static const scalar types[] = {SCALAR_F16, SCALAR_BF16, SCALAR_F8E4M3, SCALAR_F8E5M2, SCALAR_I8, SCALAR_F32};
	unsigned made = 0;
	for (unsigned i = 0; i < 6; i++)
		for (uint32_t other = 8; other <= 256; other *= 2)
			for (uint32_t k = 16; k <= 256; k *= 2)
				for (unsigned way = 0; way < 4; way++) {
					unsigned fast = way & 1, along = way >> 1;
					const wgmma_form *form = wgmma_form_of(types[i]);
					ir_type type = along ? tile(types[i], other, k) : tile(types[i], k, other);
					uint32_t run = other < 64 ? other : 64;
					wgmma_tile t;
					bool good = wgmma_tile_make(type, fast, along, run, &t);
					bool expected = k >= form->k && (fast == along || (form->turns && run >= 16));
					assert_int_equal(good, expected);
					if (!good) continue;
					made++;
					assert_int_equal(t.bytes % WGMMA_ALIGN, 0);
					check_reads(&t, run, form->k, 0);
					check_reads(&t, run, form->k, 3 * WGMMA_ALIGN);
				}
	assert_int_equal(made > 100, 1);
}

/* The numbers of tiles that ran on the hardware: 128 bytes a row, steps of k, warpgroups' rows, blocks of columns. */
static void worked_examples(void **state)
{
	(void)state;
	wgmma_tile a, b, transposed;
	assert_true(wgmma_tile_make(tile(SCALAR_F16, 128, 64), 1, 1, 64, &a));
	assert_true(wgmma_tile_make(tile(SCALAR_F16, 64, 256), 1, 0, 256, &b));
	assert_true(wgmma_tile_make(tile(SCALAR_F16, 64, 128), 1, 0, 64, &transposed)); /* A, [K, M] in memory */
	assert_int_equal(wgmma_descriptor(&a) >> 32, 0x40000040);
	assert_int_equal(wgmma_descriptor(&b) >> 32, 0x40000040);
	assert_int_equal(wgmma_descriptor(&b) >> 16 & 0x3fff, 8192 >> 4);
	assert_int_equal(wgmma_tile_offset(&a, 0, 0, 16), 32);
	assert_int_equal(wgmma_tile_offset(&b, 0, 0, 16), 2048);
	assert_int_equal(wgmma_tile_offset(&a, 0, 64, 0), 8192);
	assert_int_equal(wgmma_tile_offset(&transposed, 0, 64, 0), 8192);
	wgmma_tile columns;
	assert_true(wgmma_tile_make(tile(SCALAR_F16, 256, 64), 1, 1, 192, &columns)); /* B, [N, K] in memory */
	assert_int_equal(wgmma_tile_offset(&columns, 0, 192, 0), 128 * 192);
	assert_int_equal(wgmma_tile_offset(&b, 0, 192, 0), 128 * 192);
	/* 64- and 32-byte patterns */
	assert_true(wgmma_tile_make(tile(SCALAR_F16, 64, 32), 1, 1, 64, &a));
	assert_int_equal(wgmma_descriptor(&a) >> 32, 0x80000020);
	assert_true(wgmma_tile_make(tile(SCALAR_F16, 64, 16), 1, 1, 64, &a));
	assert_int_equal(wgmma_descriptor(&a) >> 32, 0xc0000010);
	/* fp8: 128 of k in a row */
	assert_true(wgmma_tile_make(tile(SCALAR_F8E4M3, 128, 128), 1, 1, 64, &a));
	assert_int_equal(wgmma_descriptor(&a) >> 32, 0x40000040);
	assert_int_equal(wgmma_tile_offset(&a, 0, 0, 32), 32);
	/* a batch goes on along the dimension that is not fast */
	ir_type batch = ir_tile_type(SCALAR_F16, 3, (uint32_t[]){2, 64, 128});
	assert_true(wgmma_tile_make(batch, 1, 1, 64, &a) && wgmma_tile_make(batch, 1, 0, 128, &b));
	assert_int_equal(wgmma_tile_offset(&a, 1, 8, 64), 128 * (2 * 64 + 64 + 8));
	assert_int_equal(wgmma_tile_offset(&b, 1, 64, 8), 128 * (2 * 64 + 64 + 8));
}

/* Every shape, direction of k and number of warps: each element is somewhere, threads hold 16 bytes of k, or all of it,
 * by words across. */
static void turning_layouts(void **state)
{
	(void)state;
	static const scalar types[] = {SCALAR_I8, SCALAR_F32};
	for (unsigned i = 0; i < 2; i++)
		for (uint32_t m = 4; m <= 256; m *= 2)
			for (uint32_t n = 4; n <= 256; n *= 2)
				for (unsigned way = 0; way < 2 * 2 * 3; way++) {
					unsigned k = way & 1, spread = way & 2 ? 2 : 8, warps = 4u << way / 4;
					ir_type t = tile(types[i], m, n);
					layout l = wgmma_turning_layout(t, k, spread, warps);
					uint32_t element = ir_element_bytes(t);
					uint32_t along = t.dim[k] * element < 16 ? t.dim[k] : 16 / element, at = along;
					assert_true(layout_surjective(&l) && layout_plain(&l));
					assert_int_equal(l.nin[LAYOUT_LANE], 5);
					assert_int_equal(1u << l.nin[LAYOUT_WARP], warps);
					for (uint32_t r = 0; r < along; r++)
						assert_int_equal(
							layout_coordinate(&l, layout_apply(&l, r, 0, 0), k), r);
					for (uint32_t r = 0; r < 4 / element; r++)
						assert_int_equal(
							layout_coordinate(&l, layout_apply(&l, r * at, 0, 0), 1 - k),
							r);
				}
}

static bool parts_of_sum(ir_type t, unsigned warps, uint32_t widest)
{
	wgmma_shape s;
	if (!wgmma_shape_of(t, warps, widest, &s)) {
		assert_true(warps < 4 || t.dim[0] < 64 || ir_elements(t) < 64 * 8 * (warps / 4));
		return false;
	}
	layout l = layout_wgmma_accumulator(t, warps);
	assert_true(layout_injective(&l) && layout_surjective(&l));
	assert_int_equal(layout_registers(&l), s.n / 2 * s.rows * s.columns);
	assert_true(s.n >= 8 && s.n <= widest && s.n * s.columns == s.width);
	/* register i of the first instruction, by the manual's figure */
	for (uint32_t i = 0; i < s.n / 2; i++)
		for (uint32_t lane = 0; lane < 32; lane++) {
			uint32_t flat = layout_apply(&l, i, lane, 2);
			assert_int_equal(layout_coordinate(&l, flat, 0), 32 + lane / 4 + 8 * (i >> 1 & 1));
			assert_int_equal(layout_coordinate(&l, flat, 1), 8 * (i >> 2) + 2 * (lane % 4) + (i & 1));
		}
	return true;
}

/* Warps and registers of the sum's layout make up the parts that wgmma_shape_of() speaks of. */
static void parts_of_sums(void **state)
{
	(void)state;
	unsigned made = 0;
	for (unsigned warps = 1; warps <= 32; warps *= 2)
		for (uint32_t m = 16; m <= 512; m *= 2)
			for (uint32_t n = 8; n <= 512; n *= 2)
				for (uint32_t widest = 128; widest <= 256; widest *= 2)
					made += parts_of_sum(tile(SCALAR_F32, m, n), warps, widest);
	assert_int_equal(made > 100, 1);
	/* a sum in 16 bits is the next product's first operand as it lies */
	layout sum = layout_wgmma_accumulator(tile(SCALAR_F32, 128, 64), 8);
	layout a = wgmma_register_layout(tile(SCALAR_F16, 128, 64), 8);
	assert_true(layout_equal(&sum, &a));
}

/* What is no product of this instruction has no parts, no tile and no plan, whoever asks. */
static void no_parts(void **state)
{
	(void)state;
	wgmma_shape shape;
	wgmma_tile made;
	ir_type row = ir_tile_type(SCALAR_F16, 1, (uint32_t[]){64}), bytes = tile(SCALAR_F16, 64, 64);
	assert_false(wgmma_shape_of(row, 4, 256, &shape));
	assert_false(wgmma_shape_of(tile(SCALAR_F32, 64, 64), 2, 256, &shape));
	assert_false(wgmma_shape_of(tile(SCALAR_F32, 32, 64), 4, 256, &shape));
	assert_false(wgmma_tile_make(row, 0, 0, 64, &made));
	assert_false(wgmma_tile_make(tile(SCALAR_F64, 64, 64), 1, 1, 64, &made));
	assert_true(wgmma_tile_make(bytes, 1, 1, 64, &made));
	ir_func *f = ir_func_new(&memory, "f");
	ir_builder b = {.func = f, .block = f->body};
	ir_value *x = ir_add_param(f, "x", bytes, (span){0}),
		 *slot = ir_add_param(f, "i", ir_scalar_type(SCALAR_I32), (span){0}),
		 *d = ir_add_param(f, "d", tile(SCALAR_F64, 64, 64), (span){0}),
		 *multibuffer = ir_build1(&b, IR_MULTIBUFFER, bytes, 0, NULL);
	const struct {
		ir_value *arg[6];
		unsigned n;
		int sum; /* its number among them; 0: none, -1: they are no operands */
	} rows[] = {{{x}, 1, -1}, {{multibuffer}, 1, -1}, {{multibuffer, slot}, 2, -1}, {{x, multibuffer}, 2, -1},
		{{x, x}, 2, 0}, {{x, x, x}, 3, 2}, {{x, x, x, x}, 4, -1}, {{multibuffer, slot, x}, 3, 0},
		{{multibuffer, slot, multibuffer, slot, x}, 5, 4},
		{{multibuffer, slot, multibuffer, slot, x, x}, 6, -1}};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		wgmma_plan plan;
		ir_value *r = ir_build1(
			&b, IR_WGMMA, tile(SCALAR_F32, 64, 64), rows[i].n, (ir_value **)(uintptr_t)rows[i].arg);
		if (wgmma_parts(r->def, &plan) != (rows[i].sum >= 0)) fail_msg("row %u", i);
		if (rows[i].sum < 0)
			assert_false(wgmma_plan_make(r->def, 4, &plan));
		else
			assert_ptr_equal(plan.sum, rows[i].sum ? rows[i].arg[rows[i].sum] : NULL);
	}
	wgmma_plan plan;
	assert_false(wgmma_plan_make(
		ir_build1(&b, IR_WGMMA, tile(SCALAR_F64, 64, 64), 2, (ir_value *[]){d, d})->def, 4, &plan));
	assert_false(wgmma_plan_make(
		ir_build1(&b, IR_WGMMA, tile(SCALAR_F32, 32, 64), 2, (ir_value *[]){x, x})->def, 4, &plan));
}

/* ---- what a kernel becomes ---- */

static const blkc_promise promises[] = {{"a", 16, 0}, {"b", 16, 0}, {"c", 16, 0}, {"n", 16, 0}};

static const char *compiled(const char *source, const char *target, unsigned kind)
{
	compile_text(source, target, promises, 4, kind);
	const char *found = kind == BLKC_EMIT_PTX ? ptx : ir;
	return arena_strndup(&memory, found, strlen(found));
}

static const char *behind_loop(const char *s)
{
	const char *loop = strstr(s, " = for ");
	assert_non_null(loop);
	return strstr(loop, "\n  }\n");
}

/* A loop over k: `body` adds to s, [m, 64], what it makes of the operands x [m, 64] and y [64, 64].  They begin at
 * indices that may be below 0, so that no tensor copies are made. */
static const char *product(const char *type, int m, int warps, int stages, const char *loads, const char *body)
{
	return arena_printf(&memory,
		"kernel k(c: *f32, a: *const %s, b: *const %s, n: i32) grid(1) options(num_warps = %d, num_stages = "
		"%d) {\n"
		"let o = (program_id(0) - program_id(1)) * 64; let i = o + arange(0, %d); let j = arange(0, 64);\n"
		"var s = zeros([%d, 64], f32);\n"
		"for at in range(0, n, 64) { let l = o + at + arange(0, 64);\n%s\n%s\n}\n"
		"store(c + i[:, None] * 64 + j[None, :], s);\n}\n",
		type, type, warps, stages, m, m, loads, body);
}

#define LOADS "let x = load(a + i[:, None] * n + l[None, :]); let y = load(b + l[:, None] * 64 + j[None, :]);"
#define TURNED                                                                                                         \
	"let x = trans(load(a + l[:, None] * 64 + i[None, :])); let y = trans(load(b + j[:, None] * n + l[None, :]));"

static void loops_keep_products_in_flight(void **state)
{
	(void)state;
	const char *s = compiled(product("f16", 64, 4, 4, LOADS, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, "multibuffer {stages=4 swizzle=128 fast=1}"), 2);
	assert_int_equal(count(s, " = wgmma "), 1);
	assert_int_equal(count(s, " wgmma_wait {pending=1}"), 1); /* in the loop */
	assert_int_equal(count(s, " = wgmma_wait "), 1);          /* behind it, through the sum */
	assert_non_null(strstr(behind_loop(s), " = wgmma_wait "));
	assert_int_equal(count(s, "async_copy"), 6); /* two iterations in front, one inside */
	assert_int_equal(count(s, "async_wait {pending=1}"), 1);
	assert_int_equal(count(s, "multibuffer_read"), 0);
	/* three stages: nothing in flight when a slot is filled, copies two iterations ahead all the same */
	s = compiled(product("bf16", 64, 4, 3, LOADS, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, "multibuffer {stages=3 swizzle=128 fast=1}"), 2);
	assert_int_equal(count(s, " wgmma_wait {pending=0}"), 1);
	assert_int_equal(count(s, "async_copy"), 6);
	/* two products an iteration, one sum */
	s = compiled(
		product("f16", 64, 4, 4,
			LOADS "let u = load(a + i[:, None] * n + l[None, :] + 64 * n); let v = load(b + l[:, None] "
			      "* 64 + j[None, :] + 4096);",
			"s = dot(u, v, dot(x, y, s));"),
		"sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, " = wgmma "), 2);
	assert_int_equal(count(s, " wgmma_wait {pending=2}"), 1);
	assert_int_equal(count(s, "multibuffer {"), 4);
	/* operands that lie the other way round are read so */
	s = compiled(product("f16", 64, 4, 4, TURNED, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, "{transposed=3 fence=1}"), 1);
	assert_int_equal(count(s, "permute"), 0);
	s = compiled(product("f16", 64, 4, 4, TURNED, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_PTX);
	assert_int_equal(count(s, ", 1, 1, 1, 1, 0;"), 4); /* a runs along m, b along k */
	/* sums of 16 bits leave through shared memory: whole sectors, not a word a thread */
	s = compiled(
		"kernel k(c: *f16, a: *const f16, b: *const f16, n: i32) grid(1) options(num_warps = 4) {\n"
		"let i = arange(0, 64); let j = arange(0, 64); let x = load(a + i[:, None] * 64 + j[None, :]);\n"
		"store(c + i[:, None] * n + j[None, :], dot(x, load(b + i[:, None] * 64 + j[None, :])).to(f16)); }",
		"sm_90a", BLKC_EMIT_PTX);
	assert_int_equal(count(s, "wgmma.mma_async"), 4);
	assert_int_equal(count(s, "st.global.b32"), 0);
}

/* One tile, right operand of one product and left, transposed, of another.  A multibuffer serves both where both want
 * its lines of 64 f16 in one swizzle; with 8 warps the right operand is read in columns of 32, 64 bytes, and the left
 * in lines of 128. */
static void products_share_a_multibuffer(void **state)
{
	(void)state;
	for (int warps = 4; warps <= 8; warps += 4) {
		char source[2048];
		snprintf(source, sizeof source,
			"kernel k(o: *f32, p: *f32, a: *const f16, b: *const f16, c: *const f16, n: i32) grid(1) "
			"options(num_warps = %d, num_stages = 3) {\n"
			"let j = arange(0, 64); var s = zeros([64, 64], f32); var t = zeros([64, 64], f32);\n"
			"for at in range(0, n, 64) {\n"
			"let x = load(a + (at + j)[:, None] * 64 + j[None, :]);\n"
			"s = dot(load(b + j[:, None] * n + (at + j)[None, :]), x, s);\n"
			"t = dot(trans(x), load(c + (at + j)[:, None] * 64 + j[None, :]), t);\n}\n"
			"store(o + j[:, None] * 64 + j[None, :], s); store(p + j[:, None] * 64 + j[None, :], t);\n}\n",
			warps);
		const char *s = compiled(source, "sm_90a", BLKC_EMIT_LAYOUT);
		assert_int_equal(count(s, "multibuffer {stages=3 swizzle=128 fast=1}"), 3);
		assert_int_equal(count(s, " = wgmma "), 2);
		const char *read = strstr(s, "%x = multibuffer_read ");
		if (warps == 4) assert_null(read);
		if (warps == 8) assert_non_null(read);
	}
}

/* Somebody looks at the sum, or an operand is not the multibuffer's: every product is waited for where it stands. */
static void products_that_are_waited_for(void **state)
{
	(void)state;
	static const char *const bodies[] = {"s = dot(x, y, s) * 0.5;", "s = s * 0.5 + dot(x, y);",
		"s += dot(x * x, y);", "s = dot(x, y + 1.0, s);", "s = maximum(dot(x, y), s);"};
	for (unsigned i = 0; i < 5; i++) {
		const char *s = compiled(product("f16", 64, 4, 4, LOADS, bodies[i]), "sm_90a", BLKC_EMIT_LAYOUT);
		const char *at = strstr(s, " = wgmma "), *wait = strstr(s, " = wgmma_wait ");
		assert_non_null(at);
		assert_true(wait && wait < behind_loop(s));
		assert_int_equal(count(s, " wgmma_wait {"), 0);
		assert_int_equal(count(s, " = wgmma_wait "), 1);
	}
	/* a computed first operand stays in registers, a second one goes through scratch */
	const char *s = compiled(product("f16", 64, 4, 4, LOADS, bodies[2]), "sm_90a", BLKC_EMIT_PTX);
	assert_int_equal(count(s, "fence.proxy.async"), 1); /* of the multibuffer of y */
	s = compiled(product("f16", 64, 4, 4, LOADS, bodies[3]), "sm_90a", BLKC_EMIT_PTX);
	assert_int_equal(count(s, "fence.proxy.async"), 2);
}

static void dots_that_stay(void **state)
{
	(void)state;
	const struct {
		const char *type, *target, *loads;
		int m, warps;
		const char *more;
	} cases[] = {{"f16", "sm_90", LOADS, 64, 4}, {"f16", "sm_80", LOADS, 64, 4}, {"f16", "sm_100a", LOADS, 64, 4},
		{"f16", "sm_90a", LOADS, 4, 4}, {"f16", "sm_90a", LOADS, 64, 2},
		{"f32", "sm_90a", LOADS, 64, 4, ", precision = \"ieee\""},
		{"f32", "sm_90a", LOADS, 64, 4, ", precision = \"tf32x3\""},
		{"f8e4m3", "sm_90a",
			"let x = load(a + i[:, None] * n + l[None, :]);"
			"let y = (load(b + l[:, None] * 64 + j[None, :]).to(f32) * 0.5).to(f8e4m3);",
			64, 4},
		{"f32", "sm_90a", LOADS, 256, 4}}; /* 128 sums and 64 + 32 of operands a thread */
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *s = compiled(
			product(cases[i].type, cases[i].m, cases[i].warps, 3, cases[i].loads,
				arena_printf(&memory, "s = dot(x, y, s%s);", cases[i].more ? cases[i].more : "")),
			cases[i].target, BLKC_EMIT_LAYOUT);
		assert_int_equal(count(s, "wgmma"), 0);
		assert_true(count(s, " = dot ") > 0);
	}
	/* of 8 bits, where memory runs along k */
	const char *s = compiled(product("f8e4m3", 64, 4, 4,
					 "let x = load(a + i[:, None] * n + l[None, :]); let y = trans(load(b + j[:, "
					 "None] * n + l[None, :]));",
					 "s = dot(x, y, s);"),
		"sm_90a", BLKC_EMIT_PTX);
	assert_int_equal(count(s, "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3"), 2);
	assert_int_equal(count(s, ", 1, 1, 1;"), 2);
}

/* Operands that a loop carries are known to no load: the first one comes from registers, and one that has to be
 * transposed leaves the dot as it is. */
static const char *carried(const char *type)
{
	return arena_printf(&memory,
		"kernel k(c: *f32, a: *const %s, b: *const %s, n: i32) grid(1) options(num_warps = 4) {\n"
		"let i = arange(0, 64); let l = arange(0, 64);\n"
		"var s = zeros([64, 64], f32); var x = load(a + i[:, None] * n + l[None, :]);\n"
		"var y = load(b + l[:, None] * 64 + i[None, :]);\n"
		"for at in range(0, n, 64) { s = dot(x, y, s); x = load(a + i[:, None] * n + (at + 64 + l)[None, :]);\n"
		"y = load(b + (at + 64 + l)[:, None] * 64 + i[None, :]); }\n"
		"store(c + i[:, None] * 64 + i[None, :], s);\n}\n",
		type, type);
}
static void operands_that_are_carried(void **state)
{
	(void)state;
	const char *s = compiled(carried("f16"), "sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, " = wgmma "), 1);
	s = compiled(carried("f16"), "sm_90a", BLKC_EMIT_PTX);
	/* four times 16 of k, each with four words of the first operand */
	assert_int_equal(count(s, "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"), 4);
	assert_int_equal(count(s, "fence.proxy.async"), 1); /* of the second one, through scratch */
	static const char *const types[] = {"f32", "f8e4m3"};
	for (unsigned i = 0; i < 2; i++) {
		s = compiled(carried(types[i]), "sm_90a", BLKC_EMIT_LAYOUT);
		assert_int_equal(count(s, "wgmma"), 0);
		assert_true(count(s, " = dot ") > 0);
	}
}

/* 64 KB each are more than an operation's scratch. */
static void operands_that_are_too_large(void **state)
{
	(void)state;
	for (int k = 256; k <= 512; k *= 2) {
		const char *s = compiled(arena_printf(&memory,
						 "kernel k(c: *f32, a: *const f16, b: *const f16, n: i32) grid(1) "
						 "options(num_warps = 4) {\n"
						 "let i = arange(0, 64); let l = arange(0, %d);\n"
						 "store(c + i[:, None] * 64 + i[None, :], dot(load(a + i[:, None] * %d "
						 "+ l[None, :]), load(b + "
						 "l[:, None] * 64 + i[None, :])));\n}\n",
						 k, k),
			"sm_90a", BLKC_EMIT_LAYOUT);
		assert_int_equal(count(s, " = wgmma "), k == 256);
		assert_int_equal(count(s, " = dot "), k == 512);
	}
}

/* Operands that are read along k only, and lie across it: through registers into memory that runs along k. */
static void operands_that_are_transposed(void **state)
{
	(void)state;
	const struct {
		const char *type, *instruction;
		int products;
	} cases[] = {{"f8e4m3", "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3", 2},
		{"f32", "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32", 8}};
	for (unsigned i = 0; i < 2; i++) {
		const char *s =
			compiled(product(cases[i].type, 64, 4, 3, LOADS, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_PTX);
		assert_int_equal(count(s, cases[i].instruction), cases[i].products);
		assert_int_equal(count(s, "fence.proxy.async"), i ? 1 : 2);
		/* Beside what stores the sum, 16 bytes a time: of 8 bits, 16 by 4 elements from each of 64
		 * threads; of 32 bits, all by all. */
		const char *plain =
			compiled(product("f16", 64, 4, 3, LOADS, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_PTX);
		assert_int_equal(count(s, "st.shared.v4.b32") - count(plain, "st.shared.v4.b32"), i ? 8 : 4);
		/* to tf32: all of b, and of a where it becomes an operand in registers */
		assert_int_equal(count(s, "cvt.rna.tf32.f32"), i ? 64 : 0);
	}
	const char *both = "let x = trans(load(a + l[:, None] * 64 + i[None, :])); let y = load(b + l[:, None] * 64 + "
			   "j[None, :]);";
	const char *s = compiled(product("f8e4m3", 64, 4, 3, both, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_PTX);
	const char *one = compiled(product("f8e4m3", 64, 4, 3, LOADS, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_PTX);
	assert_int_equal(count(s, "wgmma.mma_async"), 2);
	assert_int_equal(count(s, "st.shared.v4.b32") - count(one, "st.shared.v4.b32"), 4);
}

/* Blocks that only a product of tf32 takes are rounded by the copy: no thread touches them, products stay in flight. */
static void copies_that_round(void **state)
{
	(void)state;
	const char *loads = "let A = tensor(a, shape = [64, n]); let B = tensor(b, shape = [64, n]);"
			    "let x = A.load([0, at], [64, 64]); let y = trans(B.load([0, at], [64, 64]));";
	const char *s = compiled(product("f32", 64, 4, 3, loads, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, "\"tf32 128 32 64 ; "), 2);
	assert_int_equal(count(s, " wgmma_wait {pending=1}"), 1);
	assert_int_equal(count(s, "multibuffer_read"), 0);
	s = compiled(product("f32", 64, 4, 3, loads, "s = dot(x, y, s);"), "sm_90a", BLKC_EMIT_PTX);
	assert_int_equal(count(s, "cvt.rna.tf32.f32"), 0);
	assert_int_equal(count(s, "map tf32 128 32 64"), 2);
	/* two blocks of one array, each of which only a product takes */
	const char *blocks = "let A = tensor(a, shape = [64, n]); let B = tensor(b, shape = [64, n]);"
			     "let x = A.load([0, at], [64, 64]); let y = trans(B.load([0, at], [64, 64]));"
			     "let z = A.load([0, at + 64], [64, 64]);";
	s = compiled(
		product("f32", 64, 4, 3, blocks, "s = dot(x, y, s); s = dot(z, y, s);"), "sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, "\"tf32 128 32 64 ; "), 1); /* of x and of z, in the end; y is wanted twice */
	assert_int_equal(count(s, "\"f32 128 32 64 ; "), 1);
	/* somebody else wants it as it is */
	s = compiled(product("f32", 64, 4, 3, loads, "s = dot(x, y, s) + y;"), "sm_90a", BLKC_EMIT_LAYOUT);
	assert_int_equal(count(s, "\"tf32 128 32 64 ; "), 1);
	assert_int_equal(count(s, "\"f32 128 32 64 ; "), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(descriptors), cmocka_unit_test(worked_examples),
		cmocka_unit_test(turning_layouts), cmocka_unit_test(parts_of_sums), TEST(loops_keep_products_in_flight),
		TEST(products_share_a_multibuffer), TEST(products_that_are_waited_for), TEST(dots_that_stay),
		TEST(operands_that_are_transposed), TEST(copies_that_round), TEST(no_parts),
		TEST(operands_that_are_carried), TEST(operands_that_are_too_large)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
