/* Messages of sema: a statement that is wrong, and the one error that it gives: code, words, hint. */
#include "sema_fixture.h"

/* What the statements use.  The first line is one of functions for reduce() and its like. */
static const char head[] =
	"fn nil(a, b) { return None; }  fn four(a, b, c, d) { return a; }  fn takes_type(const T: type) { }\n"
	"fn add(a, b) { return a + b; }  fn three(a, b) { return 3; }  fn none(a, b) { }\n"
	"fn wide(a, b) { return (a + b).to(i64); }  fn less(a, b) { return a < b; }  fn bad(a, b) { return a + \"s\"; "
	"}\n"
	"fn loads(a, b) { return a + load((4096).to(*i32)); }  fn tiles(a, b) { return a + sum(arange(0, 8)); }\n"
	"fn tile(a, b) { return arange(0, 8); }  fn address(a, b) { return (4096).to(*f32); }\n"
	"fn is_tensor(a: tensor) { }  fn is_tuple(a: (i32,)) { }  fn takes_shape(const s: shape) { }\n"
	"fn many(a: (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)) { }\n"
	"fn either(t, a, b) { if t { return a; } else { return b; } }\n"
	"fn inner(t, n, a, b) { if t { if n > 3 { return a; } } return b; }\n"
	"fn broken(t, n) { if t { return oops; } return n; }  fn broken_last(t, n) { if t { return n; } return oops; "
	"}\n"
	"const BYTE: u8 = 200;\n"
	"kernel k(x: *f32, c: *const f32, y: *f16, p: *i32, o: *u32, p8: *i8, z: i16, n: i32, l: i64, b: u8, u: u32,\n"
	"\tw: u64, h: f16, f: f32, g: f64, t: bool, q: f8e4m3) {\n"
	"let i = arange(0, 64); let j = arange(0, 32); let m = i.reshape([8, 8]); let A = tensor(x, [64, n]);\n"
	"let B = tensor(c, [64]); let v = zeros([16, 32], f16); let fp8 = zeros([64], f8e4m3);\n";

typedef struct wrong {
	const char *statement;
	uint16_t code;
	const char *message, *hint; /* the hint: null for none */
} wrong;

/* The first error, as the row has it? */
static bool as_expected(const compiled *c, const wrong *w)
{
	const diag *d = c->ds.first;
	while (d && d->severity != DIAG_ERROR) d = d->next;
	if (!d || c->ds.errors != 1 || d->code != w->code || strcmp(d->message, w->message) != 0) return false;
	return !d->hint == !w->hint && (!d->hint || strcmp(d->hint, w->hint) == 0);
}

static void reports(const wrong *rows, size_t n)
{
	unsigned failed = 0;
	for (size_t i = 0; i < n; i++) {
		const wrong *w = &rows[i];
		char source[4096];
		compiled c;
		snprintf(source, sizeof source, "%s%s }", head, w->statement);
		compile_text(&c, source);
		if (!as_expected(&c, w)) {
			print_error("%s\n  expected: E%04d %s\n  hint: %s\n  found:\n%s", w->statement, w->code,
				w->message, w->hint ? w->hint : "none", c.rendered.at);
			failed++;
		}
		compiled_free(&c);
	}
	assert_int_equal(failed, 0);
}

#define REPORTS(NAME)                                                                                                  \
	static void test_##NAME(void **state)                                                                          \
	{                                                                                                              \
		(void)state;                                                                                           \
		reports(NAME, sizeof NAME / sizeof *NAME);                                                             \
	}

static const wrong creation[] = {
	{"program_id(\"x\");", 204, "axis must be an integer, found a string", NULL},
	{"program_id(n);", 301, "axis must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"program_id(-1);", 502, "a grid has no axis -1", "the axes of a grid are 0, 1 and 2"},
	{"arange(n, 8);", 301, "the first number of 'arange' must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"arange(0, n);", 301, "the end of 'arange' must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"arange(0, 18446744073709551615);", 218, "the end of 'arange' does not fit in i64", NULL},
	{"arange(-3000000000, 0);", 503, "'arange' makes numbers of i32", NULL},
	{"arange(3000000000, 4000000000);", 503, "'arange' makes numbers of i32", NULL},
	{"arange(0, -3000000000);", 503, "'arange' makes numbers of i32", NULL},
	{"arange(0, 2097152);", 704, "a tile of shape [2097152] has more than 1,048,576 elements", NULL},
	{"arange(-2147483648, 2147483648);", 704, "a tile of shape [4294967296] has more than 1,048,576 elements",
		NULL},
	{"zeros(n, f32);", 301, "the shape must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"zeros(\"x\", f32);", 204, "the shape must be a shape like [64, 64], found a string", NULL},
	{"zeros([0], f32);", 207, "a tile's extent must be a positive number, found 0", NULL},
	{"zeros([8, -4], f32);", 207, "a tile's extent must be a positive number, found -4", NULL},
	{"zeros([8589934592], f32);", 207, "a tile's extent must be a positive number, found 8589934592", NULL},
	{"zeros([131], f32);", 207, "a tile's extents are odd numbers up to 127 times a power of two, found 131",
		"take 132 and mask the rest: arange(0, 132) < 131"},
	{"zeros([5000], f32);", 207, "a tile's extents are odd numbers up to 127 times a power of two, found 5000",
		"take 5120 and mask the rest: arange(0, 5120) < 5000"},
	{"zeros([4], 3);", 208, "the element type must be a type, found the number 3",
		"types are f32, *f16, f32[64, 64], (i32, f32) ..."},
	{"zeros([4], *f32);", 208, "the element type must be a scalar type, found *f32", NULL},
	{"zeros([4], f32[8]);", 208, "the element type must be a scalar type, found f32[8]", NULL},
	{"zeros([4], tensor);", 208, "the element type must be the type of a value, found tensor", NULL},
	{"zeros([4], (i32, type));", 208, "the element type must be the type of a value, found (i32, type)", NULL},
	{"zeros([4], (i32, (shape, 4)));", 208, "the element type must be a type, found the number 4",
		"types are f32, *f16, f32[64, 64], (i32, f32) ..."},
	{"full(n, 1);", 301, "the shape must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"full([4], \"x\");", 501, "'full' fills a tile with a number, not a string", NULL},
	{"full([4], x);", 501, "'full' fills a tile with a number, not *f32", NULL},
	{"full([4], 1, 3);", 208, "the element type must be a type, found the number 3",
		"types are f32, *f16, f32[64, 64], (i32, f32) ..."},
	{"full([4], 1e300);", 218, "1e+300 does not fit in f32", "say the type: (1e300).to(f64)"},
	{"full([4], i);", 203, "shape [64] does not broadcast to [4]",
		"shapes align at the right; an extent of 1 stretches, and [:, None] adds one"},
	{"zeros_like(\"x\");", 501, "'zeros_like' needs a scalar or a tile of numbers, not a string", NULL},
	{"zeros_like(x);", 501, "'zeros_like' needs a scalar or a tile of numbers, not *f32", NULL},
	{"full_like(None, 1);", 501, "'full_like' needs a scalar or a tile of numbers, not None", NULL},
};
REPORTS(creation)

static const wrong shapes[] = {
	{"expand_dims(\"x\", 0);", 501, "'expand_dims' needs a scalar or a tile, not a string", NULL},
	{"expand_dims(i, 2);", 210, "axis 2 is out of range for 2 dimensions", "-2 to 1"},
	{"expand_dims(n, 1);", 210, "axis 1 is out of range for 1 dimension", "-1 to 0"},
	{"expand_dims(i, n);", 301, "axis must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"expand_dims(zeros([1, 1, 1, 1], i32), 0);", 504,
		"a tile has at most 4 dimensions: i32[1,1,1,1] has 4 already", NULL},
	{"broadcast_to(\"x\", [4]);", 501, "'broadcast_to' needs a scalar or a tile, not a string", NULL},
	{"broadcast_to(i, n);", 301, "the shape must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"broadcast_to(x + i, []);", 203, "shape [64] does not broadcast to a scalar",
		"a scalar pointer is one place: p + offsets makes a tile of them"},
	{"reshape(\"x\", [4]);", 501, "'reshape' needs a scalar or a tile, not a string", NULL},
	{"reshape(i, [129]);", 207, "a tile's extents are odd numbers up to 127 times a power of two, found 129",
		"take 130 and mask the rest: arange(0, 130) < 129"},
	{"reshape(zeros([192, 80], f32), [15360]);", 207,
		"[192, 80] becomes [15360] by moving 384 runs of its elements, more than 256",
		"extents that are no powers of two keep their odd number in the first dimension, or have few rows in "
		"front of them"},
	{"ravel(zeros([192, 80], f32));", 207,
		"[192, 80] becomes [15360] by moving 384 runs of its elements, more than 256",
		"extents that are no powers of two keep their odd number in the first dimension, or have few rows in "
		"front of them"},
	{"ravel(zeros([127, 3], f32));", 207,
		"a tile's extents are odd numbers up to 127 times a power of two, found 381",
		"take 384 and mask the rest: arange(0, 384) < 381"},
	{"reshape(i, [4, 8]);", 504, "i32[64] has 64 elements, [4, 8] has 32",
		"'reshape' keeps all elements; 'broadcast_to' repeats them"},
	{"ravel(\"x\");", 501, "'ravel' needs a scalar or a tile, not a string", NULL},
	{"trans(\"x\");", 501, "'trans' needs a tile, not a string", NULL},
	{"trans(n);", 501, "'trans' needs a tile, not i32", NULL},
	{"trans(i);", 501, "'trans' needs a tile of two dimensions, not i32[64]",
		"'permute' orders any number of dimensions: permute(x, [0, 2, 1])"},
	{"permute(n, [0]);", 501, "'permute' needs a tile, not i32", NULL},
	{"permute(i, [1]);", 210, "a dimension of the order 1 is out of range for 1 dimension", "-1 to 0"},
	{"permute(m, [1, 1]);", 504, "the order lists dimension 1 twice", NULL},
	{"permute(m, [0]);", 504, "the order lists 1 dimensions, i32[8,8] has 2", NULL},
	{"squeeze(n);", 501, "'squeeze' needs a tile, not i32", NULL},
	{"squeeze(m, 2);", 210, "axis 2 is out of range for 2 dimensions", "-2 to 1"},
	{"squeeze(m, 1);", 504, "axis 1 of i32[8,8] has extent 8; only an extent of 1 can go", NULL},
	{"join(\"x\", i);", 501, "'join' needs a scalar or a tile of numbers, not a string", NULL},
	{"join(i, x);", 501, "'join' needs a scalar or a tile of numbers, not *f32", NULL},
	{"join(zeros([1, 1, 1, 1], i32), 0);", 504, "a tile has at most 4 dimensions: 'join' adds one", NULL},
	{"join(arange(0, 1048576), 0);", 704, "a tile of shape [1048576, 2] has more than 1,048,576 elements", NULL},
	{"interleave(x, i);", 501, "'interleave' needs a scalar or a tile of numbers, not *f32", NULL},
	{"interleave(i, arange(0, 1048576)[None, None, :]);", 203, "shapes [64] and [1, 1, 1048576] do not broadcast",
		"shapes align at the right; an extent of 1 stretches, and [:, None] adds one"},
	{"interleave(0, arange(0, 1048576));", 704, "a tile of shape [2097152] has more than 1,048,576 elements", NULL},
	{"split(n);", 501, "'split' needs a tile of numbers, not i32", NULL},
	{"split(i);", 501, "'split' needs a last dimension of 2, not i32[64]", "reshape(x, [.., 2]) first"},
	{"cat(\"x\", i);", 501, "'cat' needs a tile of numbers, not a string", NULL},
	{"cat(i, x + i);", 501, "'cat' needs a tile of numbers, not (*f32)[64]", NULL},
	{"cat(i, n);", 501, "'cat' needs a tile of numbers, not i32", NULL},
	{"cat(i, j);", 504, "'cat' puts tiles of one shape together, not [64] and [32]",
		"what is put together has twice the extent of either"},
	{"cat(zeros([2, 3, 1, 1], f32), zeros([2, 3, 1, 1], f32));", 207,
		"'cat' of four dimensions takes powers of two, found [2, 3, 1, 1]",
		"three dimensions take others, too"},
	{"cat(m, m, 2);", 210, "axis 2 is out of range for 2 dimensions", "-2 to 1"},
	{"cat(i, i.to(u32));", 205, "signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: i.to(u32).to(i64)"},
	{"cat(arange(0, 1048576), arange(0, 1048576));", 704,
		"a tile of shape [2097152] has more than 1,048,576 elements", NULL},
	{"flip(n);", 501, "'flip' needs a tile of numbers, not i32", NULL},
	{"flip(i, -2);", 210, "axis -2 is out of range for 1 dimension", "-1 to 0"},
};
REPORTS(shapes)

static const wrong mathematics[] = {
	{"where(t, x, n);", 204, "pointers meet only pointers to the same type", NULL},
	{"where(t, n, x);", 204, "pointers meet only pointers to the same type", NULL},
	{"exp(\"x\");", 216, "'exp' must be a number or a tile, found a string", NULL},
	{"exp(x);", 206, "'exp' needs floats, found *f32", NULL},
	{"exp(q);", 206, "'exp' needs floats, found f8e4m3", "convert first: q.to(f32)"},
	{"exp(n);", 206, "'exp' needs floats, found i32", "convert first: n.to(f32)"},
	{"sigmoid(n);", 206, "'sigmoid' needs floats, found i32", "convert first: n.to(f32)"},
	{"isnan(u);", 206, "'isnan' needs floats, found u32", "convert first: u.to(f32)"},
	{"abs(\"x\");", 501, "'abs' needs integers or floats, not a string", NULL},
	{"abs(x);", 501, "'abs' needs integers or floats, not *f32", NULL},
	{"abs(q);", 501, "'abs' needs integers or floats, not f8e4m3", "cast first: x.to(f16)"},
	{"abs(t);", 501, "'abs' needs integers or floats, not bool", NULL},
	{"maximum(\"x\", 1);", 501, "'maximum' needs numbers, not a string", NULL},
	{"maximum(1, x);", 501, "'maximum' needs numbers, not *f32", NULL},
	{"minimum(fp8, 1);", 501, "'minimum' needs numbers, not f8e4m3[64]",
		"fp8 has no arithmetic; cast first: x.to(f16)"},
	{"maximum(true, 1);", 206, "bool and i32 do not mix", "convert the bool: true.to(i32)"},
	{"maximum((1).to(i32), true);", 206, "bool and i32 do not mix", "convert the bool: true.to(i32)"},
	{"maximum((-1).to(i32), (4294967295).to(u32));", 218, "-1 does not fit in u32", NULL},
	{"maximum(i, j);", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: i[:, None] and j[None, :]"},
	{"clamp(t, 0, 1);", 501, "'clamp' needs numbers, not bool", "cast first: x.to(i32)"},
	{"clamp(n, 0, u);", 205, "signed i32 and unsigned u32 do not mix", "i64 holds the values of both: u.to(i64)"},
	{"clamp(i, j, 9);", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: i[:, None] and j[None, :]"},
	{"fma(1.0, \"x\", 2.0);", 216, "'fma' must be a number or a tile, found a string", NULL},
	{"fma(1, 2, 3);", 206, "'fma' needs floats, found the number 1", "convert first: (1).to(f32)"},
	{"fma(2.0, (0.5).to(f16), 99999.0);", 218, "99999.0 does not fit in f16",
		"widen the other operand with .to(f32), or write inf"},
	{"fma(f, zeros([64], f32), zeros([32], f32));", 203, "shapes [64] and [32] do not broadcast",
		"give them one length, or insert an axis: zeros([64], f32)[:, None] and zeros([32], f32)[None, :]"},
	{"fma(1.0, zeros([64], f32), zeros([32], f32));", 203, "shapes [64] and [32] do not broadcast",
		"give them one length, or insert an axis: zeros([64], f32)[:, None] and zeros([32], f32)[None, :]"},
	{"div_rn(x, 1.0);", 206, "'div_rn' needs floats, found *f32", NULL},
	{"div_rn((0.5).to(f16), -99999.0);", 218, "-99999.0 does not fit in f16",
		"widen the other operand with .to(f32), or write -inf"},
	{"div_rn(zeros([64], f32), zeros([32], f32));", 203, "shapes [64] and [32] do not broadcast",
		"give them one length, or insert an axis: zeros([64], f32)[:, None] and zeros([32], f32)[None, :]"},
	{"pow(x, 2.0);", 206, "'pow' needs floats, found *f32", NULL},
	{"pow(2, 3);", 206, "'pow' needs floats, found the number 2", "convert first: (2).to(f32)"},
	{"pow(n, 2.0);", 206, "'pow' needs floats, found i32", "convert first: n.to(f32)"},
	{"pow((0.5).to(f16), 99999.0);", 218, "99999.0 does not fit in f16",
		"widen the other operand with .to(f32), or write inf"},
	{"pow(zeros([64], f32), zeros([32], f32));", 203, "shapes [64] and [32] do not broadcast",
		"give them one length, or insert an axis: zeros([64], f32)[:, None] and zeros([32], f32)[None, :]"},
	{"where(None, 1, 2);", 501, "'where' needs a bool condition, not None", NULL},
	{"where(x, 1, 2);", 501, "'where' needs a bool condition, not *f32", NULL},
	{"where(i, 1, 2);", 501, "'where' needs a bool condition, not i32[64]", "compare first: x != 0"},
	{"where(t, \"a\", 1);", 501, "'where' needs values to choose from, not a string", NULL},
	{"where(t, 1, f32);", 501, "'where' needs values to choose from, not the type f32", NULL},
	{"where(true, 1, false);", 206, "bool and i32 do not mix", "convert the bool: false.to(i32)"},
	{"where(true, BYTE, 300);", 218, "300 does not fit in u8", "widen the other operand with .to(i32)"},
	{"where(t, n, t);", 206, "bool and i32 do not mix", "convert the bool: t.to(i32)"},
	{"where(t, x, 1);", 204, "pointers meet only pointers to the same type", NULL},
	{"where(t, x, y);", 204, "pointers meet only pointers to the same type", NULL},
	{"where(t, x + i, c + j);", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: (x + i)[:, None] and (c + j)[None, "
		":]"},
	{"where(i < 3, j, 1);", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: (i < 3)[:, None] and j[None, :]"},
	{"where(i < 3, 1e300, 2.0);", 218, "1e+300 does not fit in f32", "say the type: (1e300).to(f64)"},
	{"cdiv(\"x\", 2);", 501, "'cdiv' needs integers, not a string", NULL},
	{"cdiv(2, x);", 501, "'cdiv' needs integers, not *f32", NULL},
	{"cdiv(2, 0);", 302, "a constant is divided by zero", NULL},
	{"umulhi(1.0, 2);", 501, "'umulhi' needs integers, not the number 1.0", NULL},
	{"umulhi(BYTE, 300);", 218, "300 does not fit in u8", "widen the other operand with .to(i32)"},
	{"umulhi(BYTE, 100);", 501, "'umulhi' works on 32 and 64 bits, not on u8",
		"the full product of narrow integers fits i32 or u32: a.to(u32) * b.to(u32)"},
	{"umulhi(n, u);", 205, "signed i32 and unsigned u32 do not mix", "i64 holds the values of both: u.to(i64)"},
	{"next_pow2(n);", 301, "the argument of 'next_pow2' must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"next_pow2(4611686018427387905);", 508, "4611686018427387905 has no next power of two in i64", NULL},
};
REPORTS(mathematics)

static const wrong memory[] = {
	{"load(\"x\");", 501, "'load' needs a pointer, not a string", NULL},
	{"load(f);", 501, "'load' needs a pointer, not f32", NULL},
	{"load(i);", 501, "'load' needs a pointer, not i32[64]", "offsets are added to a pointer: x + offsets"},
	{"load(w);", 501, "'load' needs a pointer, not u64",
		"an address becomes a pointer by a cast: address.to(*f32)"},
	{"atomic_max(A, 1);", 501, "'atomic_max' needs a pointer, not a 2-dimensional tensor of f32",
		"a tensor is accessed by A.load([i, j], [BM, BN]) and A.store([i, j], v)"},
	{"load(A);", 305, "'load' needs 'index'", "its parameters: load(A, index, shape)"},
	{"load(x + i, mask = 1);", 204, "the mask must be bool, found the number 1", "compare: 1 != 0"},
	{"load(x + i, mask = x);", 204, "the mask must be bool, found *f32", "compare: x != 0"},
	{"load(x + i, mask = \"m\");", 216, "the mask must be a number or a tile, found a string", NULL},
	{"load(x + i, mask = j < 3);", 203, "shape [32] does not broadcast to [64]",
		"shapes align at the right; an extent of 1 stretches, and [:, None] adds one"},
	{"load(x + i, mask = i < n, other = x);", 204, "other must be f32, found *f32",
		"an address in memory is an integer: x.to(u64)"},
	{"load(x, volatile = 3);", 204, "volatile must be true or false, found the number 3", NULL},
	{"load(x, volatile = t);", 301, "volatile must be known at compile time, found a run-time bool",
		"a 'const' parameter makes it known"},
	{"load(x, cache = 3);", 204, "'cache' must be a string, found the number 3", NULL},
	{"load(x, evict = \"never\");", 219, "'evict' cannot be \"never\"", "one of \"first\", \"normal\", \"last\""},
	{"store(c, 1.0);", 505, "'store' through *const f32: nothing writes this memory",
		"declare the parameter as *f32, without const"},
	{"store(x, x);", 204, "the stored value must be f32, found *f32",
		"an address in memory is an integer: x.to(u64)"},
	{"store(x, \"v\");", 216, "the stored value must be a number or a tile, found a string", NULL},
	{"store(x, i);", 203, "shape [64] does not broadcast to a scalar",
		"a scalar pointer is one place: p + offsets makes a tile of them"},
	{"store(x, 1.0, mask = n);", 204, "the mask must be bool, found i32", "compare: n != 0"},
	{"store(x, 1.0, cache = \"ca\");", 219, "'cache' cannot be \"ca\"", "one of \"wb\", \"cg\", \"cs\", \"wt\""},
	{"store(x, 1.0, evict = \"c\");", 219, "'evict' cannot be \"c\"", "one of \"first\", \"normal\", \"last\""},
	{"atomic_add(3, 1);", 501, "'atomic_add' needs a pointer, not the number 3",
		"offsets are added to a pointer: x + offsets"},
	{"atomic_and(x, 1);", 507, "'atomic_and' does not exist for f32", "it works on integers"},
	{"atomic_max(y, 1);", 507, "'atomic_max' does not exist for f16", "it works on i32 i64 u32 u64 f32 f64"},
	{"atomic_add(x, x);", 204, "the value must be f32, found *f32",
		"an address in memory is an integer: x.to(u64)"},
	{"atomic_add(x, 1.0, mask = 3);", 204, "the mask must be bool, found the number 3", "compare: 3 != 0"},
	{"atomic_add(x, 1.0, sem = \"seq_cst\");", 219, "'sem' cannot be \"seq_cst\"",
		"one of \"relaxed\", \"acquire\", \"release\", \"acq_rel\""},
	{"atomic_add(x, 1.0, scope = \"grid\");", 219, "'scope' cannot be \"grid\"",
		"one of \"cta\", \"gpu\", \"sys\""},
	{"atomic_cas(p, x, 1);", 204, "the expected value must be i32, found *f32",
		"an address in memory is an integer: x.to(u64)"},
	{"atomic_cas(p, 1, x);", 204, "the value must be i32, found *f32",
		"an address in memory is an integer: x.to(u64)"},
	{"atomic_cas(p, 1, 2, mask = 3);", 204, "the mask must be bool, found the number 3", "compare: 3 != 0"},
	{"atomic_cas(p, 1, 2, sem = 3);", 204, "'sem' must be a string, found the number 3", NULL},
	{"atomic_cas(y, 1, 2);", 507, "'atomic_cas' does not exist for f16", "it works on i32 i64 u32 u64 f32 f64"},
};
REPORTS(memory)

static const wrong tensors[] = {
	{"load(shape = A, A = 3, index = [0]);", 501, "'tensor.load' needs a tensor, not the number 3", NULL},
	{"store(v = A, A = x, index = [0]);", 501, "'tensor.store' needs a tensor, not *f32", NULL},
	{"tensor(\"x\", [4]);", 501, "'tensor' needs a scalar pointer, not a string", NULL},
	{"tensor(n, [4]);", 501, "'tensor' needs a scalar pointer, not i32", NULL},
	{"tensor(x + i, [4]);", 501, "'tensor' needs a scalar pointer, not (*f32)[64]", NULL},
	{"tensor(x, []);", 511, "0 numbers given as the shape of a tensor", "a tensor has 1 to 4 dimensions"},
	{"tensor(x, [1, 2, 3, 4, 5]);", 511, "5 numbers given as the shape of a tensor",
		"a tensor has 1 to 4 dimensions"},
	{"tensor(x, [\"n\"]);", 501, "shape of a tensor is an integer, not a string", NULL},
	{"tensor(x, [4, 1.5]);", 501, "shape of a tensor is an integer, not the number 1.5", NULL},
	{"tensor(x, [x]);", 501, "shape of a tensor is an integer, not *f32", NULL},
	{"tensor(x, [i]);", 501, "shape of a tensor is an integer, not i32[64]", NULL},
	{"tensor(x, [4, 4], [4]);", 511, "1 number given as the strides of a tensor", "the tensor has 2 dimensions"},
	{"tensor(x, [4], [4, 1]);", 511, "2 numbers given as the strides of a tensor", "the tensor has 1 dimension"},
	{"A.load([0], [8, 8]);", 511, "1 number given as the index of a block", "the tensor has 2 dimensions"},
	{"A.load([0, 0], [8]);", 511, "a block of 1 dimensions in a tensor of 2", NULL},
	{"A.load([0, 0], [n, 8]);", 301, "a tile's extent must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"A.store([0, 0], \"v\");", 511, "a block of this tensor is a tile of 2 dimensions, not a string", NULL},
	{"A.store([0, 0], x + m);", 511, "a block of this tensor is a tile of 2 dimensions, not (*f32)[8,8]", NULL},
	{"tensor(x, [4]).store([0], m);", 511, "a block of this tensor is a tile of 1 dimension, not i32[8,8]", NULL},
	{"A.store([0, t], v);", 501, "index of a block is an integer, not bool", NULL},
	{"B.store([0], zeros([8], f32));", 505, "this tensor's memory is read-only: its base is *const f32",
		"declare the parameter as *f32, without const"},
	{"tensor(p8, [4]).atomic_add([0], i);", 507, "'atomic_add' does not exist for i8",
		"it works on i32 i64 u32 u64 f16 bf16 f32 f64"},
	{"block_ptr(x, [0], [8]);", 501, "'block_ptr' needs a tensor, not *f32", NULL},
	{"block_ptr(A, [0], [8, 8]);", 511, "1 number given as the index of a block", "the tensor has 2 dimensions"},
	{"block_ptr(A, [0, 0], [8]);", 511, "a block of 1 dimensions in a tensor of 2", NULL},
	{"advance(A, [0, 0]);", 501, "'advance' needs a block pointer, not a 2-dimensional tensor of f32", NULL},
	{"advance(block_ptr(A, [0, 0], [8, 8]), [1]);", 511, "1 number given as the step of a block pointer",
		"the tensor has 2 dimensions"},
	{"advance(block_ptr(A, [n, 0], [8, 8]), [5000000000, 0]);", 218, "5000000000 does not fit in i32",
		"widen the other operand with .to(i64)"},
	{"load(block_ptr(A, [0, 0], [8, 8]), mask = true);", 511, "'load' of a block pointer takes no further argument",
		"what lies outside of the tensor reads as 0 and is not written"},
	{"store(block_ptr(A, [0, 0], [8, 8]), m, true);", 511, "'store' of a block pointer takes no further argument",
		"what lies outside of the tensor reads as 0 and is not written"},
	{"store(block_ptr(B, [0], [8]), 1.0);", 505, "this tensor's memory is read-only: its base is *const f32",
		"declare the parameter as *f32, without const"},
	{"store(block_ptr(A, [0, 0], [8, 8]), i);", 203, "shape [64] does not broadcast to [8, 8]",
		"shapes align at the right; an extent of 1 stretches, and [:, None] adds one"},
	{"let bp = block_ptr(A, [0, 0], [8, 8]); exp(bp);", 216,
		"'exp' must be a number or a tile, found a block pointer to f32[8,8]", NULL},
};
REPORTS(tensors)

static const wrong reductions[] = {
	{"reduce(i, 0, nil);", 204, "a result of the function must be i32, found None", NULL},
	{"reduce((i, i), 0, four);", 509, "the function of this 'reduce' returns 2 values, not i32", NULL},
	{"sum(\"x\");", 501, "'sum' needs a tile of numbers, not a string", NULL},
	{"sum(x + i);", 501, "'sum' needs a tile of numbers, not (*f32)[64]", NULL},
	{"sum(n);", 501, "'sum' needs a tile of numbers, not i32", NULL},
	{"sum(i, keep_dims = 3);", 204, "keep_dims must be true or false, found the number 3", NULL},
	{"sum(m, 2);", 210, "axis 2 is out of range for 2 dimensions", "-2 to 1"},
	{"xor_sum(zeros([8], f32));", 501, "'xor_sum' needs a tile of integers or bool, not f32[8]",
		"x.to(u32, bitcast = true) has the bits"},
	{"any(i);", 501, "'any' needs a tile of bool, not i32[64]", "compare first: x != 0"},
	{"max(m, -3);", 210, "axis -3 is out of range for 2 dimensions",
		"the axes are 0 to 1; maximum(m, -3) compares element by element"},
	{"min(i, 1.5);", 509, "the second argument of 'min' of a tile is an axis, not the number 1.5",
		"the one axis is 0; minimum(i, 1.5) compares element by element"},
	{"max(n, i);", 509, "'max' of i32 and i32[64]", "maximum(n, i) compares element by element"},
	{"max(x, x);", 501, "'max' needs a tile of numbers, not *f32", NULL},
	{"max(n, x);", 501, "'max' needs a tile of numbers, not i32", NULL},
	{"max(x + i, 0);", 501, "'max' needs a tile of numbers, not (*f32)[64]", NULL},
	{"max(n, n, true);", 501, "'max' needs a tile of numbers, not i32", NULL},
	{"argmax(\"x\");", 501, "'argmax' needs a tile of numbers, not a string", NULL},
	{"argmax(fp8);", 501, "'argmax' needs another type than fp8, which has no arithmetic, not f8e4m3[64]",
		"cast first: x.to(f16)"},
	{"argmin(i, 1);", 210, "axis 1 is out of range for 1 dimension", "-1 to 0"},
	{"argmin(i, keep_dims = 3);", 204, "keep_dims must be true or false, found the number 3", NULL},
	{"reduce((), 0, add);", 509, "'reduce' takes 1 to 16 tiles, not 0", NULL},
	{"reduce((i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i), 0, add);", 509,
		"'reduce' takes 1 to 16 tiles, not 17", NULL},
	{"reduce(n, 0, add);", 501, "'reduce' needs a tile of numbers, not i32", NULL},
	{"reduce(x + i, 0, add);", 501, "'reduce' needs a tile of numbers, not (*f32)[64]", NULL},
	{"reduce((i, \"x\"), 0, add);", 501, "'reduce' needs a tile of numbers, not a string", NULL},
	{"reduce((i, j), 0, add);", 509,
		"the tiles of one 'reduce' have one shape: this one is i32[32], the first is i32[64]", NULL},
	{"reduce(i, 1, add);", 210, "axis 1 is out of range for 1 dimension", "-1 to 0"},
	{"reduce(i, 0, add, keep_dims = 3);", 204, "keep_dims must be true or false, found the number 3", NULL},
	{"reduce(i, 0, 3);", 509, "'reduce' combines with a function, not with the number 3", NULL},
	{"reduce(i, 0, exp);", 509, "'exp' takes 1 argument; 'reduce' of 1 tile calls it with 2",
		"it is called as exp(a, b), a before b, and returns 1 value"},
	{"reduce((i, i, i, i), 0, add);", 509, "'add' takes 2 arguments; 'reduce' of 4 tiles calls it with 8",
		"it is called as add(a1, a2, .., b1, b2, ..), a before b, and returns 4 values"},
	{"reduce((i, i), 0, fma);", 509, "'fma' takes 3 arguments; 'reduce' of 2 tiles calls it with 4",
		"it is called as fma(a1, a2, b1, b2), a before b, and returns 2 values"},
	{"reduce(i, 0, none);", 509, "the function of this 'reduce' returns 1 value, not none", NULL},
	{"reduce(i, 0, bad);", 206, "'+' of i32 and a string", NULL},
	{"reduce(i, 0, wide);", 509, "the function of this 'reduce' combines i32 into i64",
		"it returns a value of the elements' type: cast the tile, .to(i64), or its result"},
	{"reduce(i, 0, less);", 509, "the function of this 'reduce' combines i32 into bool",
		"it returns a value of the elements' type, where(a < b, a, b) say; any(c) and all(c) combine "
		"comparisons"},
	{"reduce(zeros([8], u8), 0, three); reduce(i, 0, tile);", 204,
		"a result of the function must be i32, found i32[8]", NULL},
	{"reduce(i, 0, address);", 204, "a result of the function must be i32, found *f32", NULL},
	{"reduce(i, 0, loads);", 509,
		"the function of 'reduce' accesses memory or has another effect; it may only compute on scalars", NULL},
	{"reduce(i, 0, tiles);", 509, "the function of 'reduce' makes tiles of its own; it may only compute on scalars",
		NULL},
	{"cumsum(n);", 501, "'cumsum' needs a tile of numbers, not i32", NULL},
	{"cumsum(fp8);", 501, "'cumsum' needs another type than fp8, which has no arithmetic, not f8e4m3[64]",
		"cast first: x.to(f16)"},
	{"cumsum(m);", 509, "'cumsum' of i32[8,8] needs an axis", NULL},
	{"cumsum(m, reverse = true);", 509, "'cumsum' of i32[8,8] needs an axis", NULL},
	{"cumprod(i, 4);", 210, "axis 4 is out of range for 1 dimension", "-1 to 0"},
	{"cumprod(i, reverse = 3);", 204, "reverse must be true or false, found the number 3", NULL},
	{"associative_scan(\"x\", 0, add);", 501, "'associative_scan' needs a tile of numbers, not a string", NULL},
	{"associative_scan(m, None, add);", 509, "'associative_scan' of i32[8,8] needs an axis", NULL},
	{"associative_scan(i, 0, add, reverse = n);", 301,
		"reverse must be known at compile time, found a run-time i32", "a 'const' parameter makes it known"},
	{"associative_scan(i, 0, none);", 509, "the function of this 'associative_scan' returns 1 value, not none",
		NULL},
	{"sort(\"x\");", 501, "'sort' needs a tile of numbers, not a string", NULL},
	{"sort(fp8);", 501, "'sort' needs another type than fp8, which has no arithmetic, not f8e4m3[64]",
		"cast first: x.to(f16)"},
	{"sort(i, 1);", 210, "axis 1 is out of range for 1 dimension", "-1 to 0"},
	{"sort(i, descending = 3);", 204, "descending must be true or false, found the number 3", NULL},
	{"topk(n, 2);", 501, "'topk' needs a tile of numbers, not i32", NULL},
	{"topk(fp8, 2);", 501, "'topk' needs another type than fp8, which has no arithmetic, not f8e4m3[64]",
		"cast first: x.to(f16)"},
	{"topk(i, n);", 301, "k must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"topk(i, 2, 1);", 210, "axis 1 is out of range for 1 dimension", "-1 to 0"},
	{"topk(i, 0);", 510, "'topk' of 0 values among 64", "k is a power of two from 1 to 64"},
	{"topk(i, 128);", 510, "'topk' of 128 values among 64", "k is a power of two from 1 to 64"},
	{"topk(i, 3);", 510, "'topk' of 3 values among 64", "k is a power of two from 1 to 64"},
	{"histogram(n, 8);", 501, "'histogram' needs a tile of numbers, not i32", NULL},
	{"histogram(zeros([8], f32), 8);", 501, "'histogram' needs a tile of integers, not f32[8]", NULL},
	{"histogram(i, n);", 301, "the number of bins must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"histogram(i, 131);", 207, "a tile's extents are odd numbers up to 127 times a power of two, found 131",
		"take 132 and mask the rest: arange(0, 132) < 131"},
	{"sort(zeros([192], f32));", 207, "'sort' takes lines of powers of two, found 192",
		"take 256, and let what is beyond 192 be elements that come last"},
	{"topk(zeros([4, 96], f32), 8);", 207, "'topk' takes lines of powers of two, found 96",
		"take 128, and let what is beyond 96 be elements that come last"},
	{"histogram(i, 8, mask = i);", 204, "the mask must be bool, found i32[64]", "compare: i != 0"},
	{"gather(n, i);", 501, "'gather' needs a tile of numbers, not i32", NULL},
	{"gather(i, n);", 501, "'gather' needs a tile of numbers, not i32", NULL},
	{"gather(i, zeros([64], f32));", 501, "'gather' needs an index of integers, not f32[64]", NULL},
	{"gather(m, m);", 509, "'gather' of i32[8,8] needs an axis", NULL},
	{"gather(i, m, 0);", 510, "the index i32[8,8] does not fit i32[64]: only the extent of axis 0 may differ",
		NULL},
	{"gather(m, i.reshape([16, 4]), 0);", 510,
		"the index i32[16,4] does not fit i32[8,8]: only the extent of axis 0 may differ", NULL},
};
REPORTS(reductions)

static const wrong others[] = {
	{"dot(n, v);", 501, "'dot' needs a tile of numbers, not i32", NULL},
	{"dot(v, \"b\");", 501, "'dot' needs a tile of numbers, not a string", NULL},
	{"dot(v.to(f8e4m3), trans(v));", 512, "the operands of 'dot' have different types: f8e4m3 and f16",
		"cast one of them: only the two kinds of fp8 may mix"},
	{"dot(v, zeros([1, 32, 16], f16));", 512,
		"shapes [16, 32] and [1, 32, 16] do not multiply: both operands have two dimensions, or three with a "
		"batch in "
		"front",
		NULL},
	{"dot(zeros([8], f16), zeros([8], f16));", 512,
		"shapes [8] and [8] do not multiply: both operands have two dimensions, or three with a batch in front",
		NULL},
	{"dot(zeros([2, 16, 16], f16), zeros([4, 16, 16], f16));", 512,
		"shapes [2, 16, 16] and [4, 16, 16] do not multiply: the batches differ", NULL},
	{"dot(v, zeros([16, 64], f16));", 512,
		"shapes [16, 32] and [16, 64] do not multiply: the columns of the first are the rows of the second",
		NULL},
	{"dot(v, v);", 512,
		"shapes [16, 32] and [16, 32] do not multiply: the columns of the first are the rows of the second",
		"transpose the second: dot(a, trans(b))"},
	{"dot(zeros([1048576, 1], f16), zeros([1, 2], f16));", 704,
		"a tile of shape [1048576, 2] has more than 1,048,576 elements", NULL},
	{"dot(v, trans(v), out = 3);", 208, "the type of the result must be a type, found the number 3",
		"types are f32, *f16, f32[64, 64], (i32, f32) ..."},
	{"dot(v.to(f64), trans(v).to(f64), out = f16);", 512, "'dot' of f64 cannot give f16",
		"its results are i32 for i8, f64 for f64, else f32 or f16"},
	{"dot(v, trans(v), zeros([4, 4], f32));", 204, "the accumulator must be f32[16,16], found f32[4,4]", NULL},
	{"dot(v, trans(v), \"acc\");", 204, "the accumulator must be f32[16,16], found a string", NULL},
	{"dot(v, trans(v), precision = \"tf64\");", 219, "'precision' cannot be \"tf64\"",
		"one of \"tf32\", \"tf32x3\", \"ieee\""},
	{"multiple_of(\"x\", 4);", 501, "'multiple_of' needs integers or pointers, not a string", NULL},
	{"multiple_of(m, [1, 2, 3]);", 513, "3 numbers for the 2 dimensions of i32[8,8]", NULL},
	{"max_constancy(i, n);", 301, "a hint must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"assume(\"x\");", 501, "'assume' needs a bool scalar, not a string", NULL},
	{"assume(x);", 501, "'assume' needs a bool scalar, not *f32", NULL},
	{"assume(n);", 501, "'assume' needs a bool scalar, not i32", NULL},
	{"assume(i < 3);", 501, "'assume' needs a bool scalar, not bool[64]", "all(c) makes one bool of it"},
	{"inline_asm(3, \"=r\", (), i32);", 204, "the instruction must be a string, found the number 3", NULL},
	{"inline_asm(\"x\", 3, (), i32);", 204, "the constraints must be a string, found the number 3", NULL},
	{"inline_asm(\"x\", \"=r\\n\", (), i32);", 514, "constraints stand in one line", NULL},
	{"inline_asm(\"x\", \"=r\\x00\", (), i32);", 514, "constraints stand in one line", NULL},
	{"inline_asm(\"x\\x00\", \"=r\", (), i32);", 514, "an instruction holds no NUL", NULL},
	{"inline_asm(\"x\", \"=r\", (), i32, pack = n);", 301,
		"pack must be known at compile time, found a run-time i32", "a 'const' parameter makes it known"},
	{"inline_asm(\"x\", \"=r\", (), i32, pack = 0);", 514, "pack is a power of two from 1 to 16, not 0", NULL},
	{"inline_asm(\"x\", \"=r\", (), i32, pack = 32);", 514, "pack is a power of two from 1 to 16, not 32", NULL},
	{"inline_asm(\"x\", \"=r\", (n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n), i32);", 514,
		"inline assembly has up to 16 arguments and 1 to 16 results", NULL},
	{"inline_asm(\"x\", \"=r\", n, ());", 514, "inline assembly has up to 16 arguments and 1 to 16 results", NULL},
	{"inline_asm(\"x\", \"=r\", n, (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, "
	 "i32, i32));",
		514, "inline assembly has up to 16 arguments and 1 to 16 results", NULL},
	{"inline_asm(\"x\", \"=r,r\", (n, \"a\"), i32);", 216, "an argument must be a number or a tile, found a string",
		NULL},
	{"inline_asm(\"x\", \"=r,r,r\", (i, j), i32);", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: i[:, None] and j[None, :]"},
	{"inline_asm(\"x\", \"=r,r\", n, *f32);", 208, "the type of a result must be a scalar type, found *f32", NULL},
};
REPORTS(others)

static const wrong operators[] = {
	{"x - f;", 206, "'-' of *f32 and f32", "a pointer takes an integer offset, in elements: p + i"},
	{"exp == exp;", 206, "'==' of the built-in function 'exp' and the built-in function 'exp'",
		"a function is called with its arguments in parentheses"},
	{"\"s\" * 2;", 206, "'*' of a string and the number 2", NULL},
	{"fp8 == zeros([64], f8e5m2);", 206, "there is no arithmetic on f8e4m3", "convert first: x.to(f32)"},
	{"n + (u + u + u + u + u + u + u + u + u + u + u + u);", 205, "signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: (...).to(i64)"},
	{"var s = (n + 1, u + 1); for e in range(n) { s[0] + s[1]; s = (s[0], s[1]); }", 205,
		"signed i32 and unsigned u32 do not mix", "i64 holds the values of both: s[1].to(i64)"},
	{"n + \"s\";", 206, "'+' of i32 and a string", NULL},
	{"f32 * 2;", 206, "'*' of a type", "a pointer type is written *f32, prefix"},
	{"f32 < f16;", 206, "'<' of the type f32 and the type f16", NULL},
	{"exp + 1;", 206, "'+' of the built-in function 'exp' and the number 1",
		"a function is called with its arguments in parentheses"},
	{"1 - exp;", 206, "'-' of the number 1 and the built-in function 'exp'",
		"a function is called with its arguments in parentheses"},
	{"add == 1;", 206, "'==' of the function 'add' and the number 1",
		"a function is called with its arguments in parentheses"},
	{"1 == add;", 206, "'==' of the number 1 and the function 'add'",
		"a function is called with its arguments in parentheses"},
	{"(n, 1) == (n, 1);", 206, "'==' of (i32, the number 1) and (i32, the number 1)", NULL},
	{"(1, 2) == (n, 1);", 206, "'==' of (the number 1, the number 2) and (i32, the number 1)", NULL},
	{"(1, 2) < (2, 1);", 206, "'<' of (the number 1, the number 2) and (the number 2, the number 1)", NULL},
	{"x - x;", 206, "'-' of *f32 and *f32", "pointers do not subtract; as numbers they do: x.to(i64) - x.to(i64)"},
	{"1.5 + x;", 206, "'+' of the number 1.5 and *f32", "a pointer takes an integer offset, in elements: p + i"},
	{"x + t;", 206, "'+' of *f32 and bool", "a pointer takes an integer offset, in elements: p + i"},
	{"x + x;", 206, "'+' of *f32 and *f32", "a pointer takes an integer offset, in elements: p + i"},
	{"n - x;", 206, "'-' of i32 and *f32", "a pointer takes an integer offset, in elements: p + i"},
	{"x < n;", 206, "'<' of *f32 and i32", "pointers compare with pointers; as a number: x.to(u64)"},
	{"n != x;", 206, "'!=' of i32 and *f32", "pointers compare with pointers; as a number: x.to(u64)"},
	{"x + i < x + j;", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: (x + i)[:, None] < (x + j)[None, "
		":]"},
	{"(x + i) + j;", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: (x + i)[:, None] + j[None, :]"},
	{"let r = arange(0, 2048); (x + r[:, None]) + r;", 704,
		"a tile of shape [2048, 2048] has more than 1,048,576 elements", NULL},
	{"let r = arange(0, 2048); x + r[:, None] == x + r;", 704,
		"a tile of shape [2048, 2048] has more than 1,048,576 elements", NULL},
	{"let r = arange(0, 2048); r[:, None] + r;", 704,
		"a tile of shape [2048, 2048] has more than 1,048,576 elements", NULL},
	{"i + zeros([8, 32], i32);", 203, "shapes [64] and [8, 32] do not broadcast",
		"shapes align at the right; an extent of 1 stretches, and [:, None] adds one"},
	{"zeros([64], i32) + j;", 203, "shapes [64] and [32] do not broadcast",
		"give them one length, or insert an axis: zeros([64], i32)[:, None] + j[None, :]"},
	{"i + zeros([32], i32);", 203, "shapes [64] and [32] do not broadcast",
		"give them one length, or insert an axis: i[:, None] + zeros([32], i32)[None, :]"},
	{"load(p + i) + load(p + j);", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: load(p + i)[:, None] + load(p + "
		"j)[None, :]"},
	{"i << j;", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: i[:, None] << j[None, :]"},
	{"n + u;", 205, "signed i32 and unsigned u32 do not mix", "i64 holds the values of both: u.to(i64)"},
	{"w /* all 64 bits */ + (n);", 205, "signed i32 and unsigned u64 do not mix",
		"no integer type holds both: n.to(u64) where that is never negative, w.to(i64) where that is below "
		"2^63"},
	{"p8.load() + b;", 205, "signed i8 and unsigned u8 do not mix", "i16 holds the values of both: b.to(i16)"},
	{"u + (-1).to(i32);", 205, "signed i32 and unsigned u32 do not mix", "i64 holds the values of both: u.to(i64)"},
	{"(-1).to(i32) + (4294967295).to(u32);", 205,
		"'+' mixes signed and unsigned: the i32 -1 and the u32 4294967295",
		"i64 holds the values of both: ((4294967295).to(u32)).to(i64)"},
	{"swizzle2d(n, n, u, n, 2);", 205, "in 'swizzle2d': signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: size_i.to(i64)"},
	{"t == n;", 206, "bool and i32 do not mix", "convert the bool: t.to(i32)"},
	{"n < 3 & t;", 206, "bool and i32 do not mix", "'&' binds tighter than a comparison: (i < n) & valid"},
	{"t < t;", 206, "'<' is not for bool", "convert first: x.to(i32)"},
	{"g & g;", 206, "'&' is for integers, not for f64", "the bits of a float are x.to(u64, bitcast = true)"},
	{"f << 1;", 206, "'<<' is for integers, not for f32", "the bits of a float are x.to(u32, bitcast = true)"},
	{"h ^ h;", 206, "'^' is for integers, not for f16", "the bits of a float are x.to(u16, bitcast = true)"},
	{"f % f;", 206, "'%' is for integers, not for f32",
		"the remainder of floats is x - floor(x / y) * y, or convert: x.to(i32)"},
	{"1 << f;", 206, "'<<' is for integers, not for f32", "the bits of a float are x.to(u32, bitcast = true)"},
	{"1.5 >> n;", 206, "'>>' is for integers, not for f32", "the bits of a float are x.to(u32, bitcast = true)"},
	{"t << n;", 206, "'<<' is not for bool", "convert first: x.to(i32)"},
	{"300 << b;", 218, "300 does not fit in u8", "widen the other operand with .to(i32)"},
	{"q == q;", 206, "there is no arithmetic on f8e4m3", "convert first: x.to(f32)"},
	{"fp8 + f;", 206, "there is no arithmetic on f8e4m3", "convert first: x.to(f32)"},
	{"f + fp8;", 206, "there is no arithmetic on f8e4m3", "convert first: x.to(f32)"},
	{"n % 0;", 302, "division by a constant zero", NULL},
	{"-x;", 206, "'-' of *f32", NULL},
	{"-\"s\";", 206, "'-' of a string", NULL},
	{"!(i < 3);", 206, "'!' is for a scalar bool, found bool[64]", "'~' inverts a tile"},
	{"!n;", 206, "'!' is for a scalar bool, found i32", "compare: n == 0"},
	{"-q;", 206, "'-' is not for f8e4m3", "convert first: q.to(f32)"},
	{"~q;", 206, "'~' is not for f8e4m3", "convert first: q.to(i32)"},
	{"-t;", 206, "'-' is not for bool", "convert first: t.to(i32)"},
	{"~f;", 206, "'~' is not for f32", "convert first: f.to(i32)"},
	{"\"s\" && t;", 211, "'&&' is for scalar bools, found a string", NULL},
	{"x && t;", 211, "'&&' is for scalar bools, found *f32", "compare: x != 0"},
	{"i < 3 || t;", 212, "'||' is for scalar bools, found bool[64]", "'|' works element by element"},
	{"t && i < 3;", 212, "'&&' is for scalar bools, found bool[64]", "'&' works element by element"},
	{"t ? i : j;", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: i[:, None] and j[None, :]"},
	{"t ? load(p) : load(o);", 205, "signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: load(o).to(i64)"},
	{"t ? n : oops;", 201, "unknown name 'oops'", NULL},
	{"t ? oops : n;", 201, "unknown name 'oops'", NULL},
};
REPORTS(operators)

static const wrong constants[] = {
	{"-9223372036854775808 - 9223372036854775808;", 303, "the constant does not fit in 64 bits", NULL},
	{"18446744073709551615 + 1;", 303, "the constant does not fit in 64 bits", NULL},
	{"18446744073709551615 * 18446744073709551615;", 303, "the constant does not fit in 64 bits", NULL},
	{"-18446744073709551615;", 303, "the constant does not fit in 64 bits", NULL},
	{"1 << 64;", 303, "the constant does not fit in 64 bits", NULL},
	{"1 << 200;", 303, "the constant does not fit in 64 bits", NULL},
	{"1 << -1;", 303, "a constant is shifted by a negative count", NULL},
	{"1 >> -1;", 303, "a constant is shifted by a negative count", NULL},
	{"1 / 0;", 302, "a constant is divided by zero", NULL},
	{"1 % 0;", 302, "a constant is divided by zero", NULL},
	{"1.5 % 1.0;", 206, "'%' is for integers, not for floats", NULL},
	{"1.5 << 1;", 206, "'<<' is for integers, not for floats", NULL},
	{"1 >> 1.5;", 206, "'>>' is for integers, not for floats", NULL},
	{"true + false;", 206, "'+' is not for bool", "convert first: x.to(i32)"},
	{"true + 1;", 206, "'+' of true and the number 1", "convert the bool: true.to(i32)"},
	{"1 + false;", 206, "'+' of the number 1 and false", "convert the bool: false.to(i32)"},
	{"(1.5).to(f8e4m3) + (1.5).to(f8e4m3);", 206, "there is no arithmetic on f8e4m3; convert to f32 first", NULL},
	{"-(1.5).to(f8e5m2);", 206, "'-' is not for the f8e5m2 1.5", NULL},
	{"-true;", 206, "'-' is not for true", NULL},
	{"~1.5;", 206, "'~' is not for the number 1.5", NULL},
	{"!1;", 206, "'!' is not for the number 1", NULL},
	{"~nan;", 206, "'~' is not for the number nan", NULL},
	{"~-inf;", 206, "'~' is not for the number -inf", NULL},
	{"!18446744073709551615;", 206, "'!' is not for the number 18446744073709551615", NULL},
	{"BYTE + 300;", 218, "300 does not fit in u8", "widen the other operand with .to(i32)"},
	{"(1).to(f16) + 1e300;", 218, "1e+300 does not fit in f16",
		"widen the other operand with .to(f64), or write inf"},
};
REPORTS(constants)

static const wrong casts[] = {
	{"\"x\".to(i32);", 216, "the operand of a cast must be a number or a tile, found a string", NULL},
	{"n.to(3);", 208, "the type of a cast must be a type, found the number 3",
		"types are f32, *f16, f32[64, 64], (i32, f32) ..."},
	{"n.to(f32[8]);", 217, "a cast keeps the shape: its type is a scalar or pointer type, found f32[8]",
		"write .to(f32)"},
	{"(1.5).to(*f32);", 217, "the number 1.5 cannot be cast to *f32", "an address is an i64 or u64"},
	{"n.to(*f32);", 217, "i32 cannot be cast to *f32", "an address is an i64 or u64: cast to u64 first"},
	{"(x + n).to(f32);", 217, "*f32 cannot be cast to f32",
		"load(x + n).to(f32) converts what stands there; the address is (x + n).to(u64)"},
	{"n.to(u32, bitcast = 3);", 204, "bitcast must be true or false, found the number 3", NULL},
	{"(70000).to(f16, bitcast = true);", 217, "a bitcast keeps the size: i32 has 32 bits, f16 has 16",
		"convert to an integer of the right width first"},
	{"(1.5).to(f16, bitcast = true);", 217, "a bitcast keeps the size: f32 has 32 bits, f16 has 16",
		"convert to an integer of the right width first"},
	{"static_assert(x);", 301,
		"the condition of static_assert must be known at compile time, found a run-time *f32",
		"a 'const' parameter makes it known"},
	{"static_assert(n);", 301, "the condition of static_assert must be known at compile time, found a run-time i32",
		"a 'const' parameter makes it known"},
	{"static_assert(t);", 301,
		"the condition of static_assert must be known at compile time, found a run-time bool",
		"device_assert(t) checks it where the kernel runs, a clause 'requires t' of the kernel at its launch"},
	{"static_assert(i < 3);", 301,
		"the condition of static_assert must be known at compile time, found a run-time bool[64]",
		"device_assert(i < 3) checks it where the kernel runs"},
	{"static_assert(1 == 2);", 312, "static_assert failed", NULL},
	{"static_assert(1 == 2, \"m\");", 312, "static_assert failed: m", NULL},
	{"static_assert(1, \"m\");", 204, "the condition of static_assert must be true or false, found the number 1",
		NULL},
	{"rand(f, i);", 501, "'rand' needs an integer as its seed", "cast it: seed.to(i64)"},
	{"device_assert(\"x\");", 216, "the condition of device_assert must be a number or a tile, found a string",
		NULL},
	{"device_assert(x);", 211, "the condition of device_assert must be a bool, found *f32", "compare: x != 0"},
	{"device_print(3, n);", 204, "the first argument of device_print must be a string, found the number 3", NULL},
	{"device_print(\"v\", \"x\");", 216, "a printed value must be a number or a tile, found a string", NULL},
	{"device_print(\"v\", n, i, j);", 203, "shapes [64] and [32] do not broadcast",
		"both come from 'arange'; give them one length, or insert an axis: i[:, None] and j[None, :]"},
	{"device_print(\"v\", n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);", 304,
		"device_print takes at most 16 values", NULL},
};
REPORTS(casts)

static const wrong types[] = {
	{"let a: *f16 = x;", 204, "the value must be *f16, found *f32", "write the cast: x.to(*f16)"},
	{"let a: u8 = (300).to(i32);", 204, "the value must be u8, found the i32 300",
		"write the cast: ((300).to(i32)).to(u8)"},
	{"takes_type(3);", 208, "const parameter 'T' must be a type, found the number 3",
		"types are f32, *f16, f32[64, 64], (i32, f32) ..."},
	{"n.n;", 209, "i32 has no member 'n'", NULL},
	{"n.BYTE;", 209, "i32 has no member 'BYTE'", NULL},
	{"n.k;", 209, "i32 has no member 'k'", NULL},
	{"let twice = add; n.twice;", 209, "i32 has no member 'twice'",
		"to call the function, add parentheses: .twice()"},
	{"let root = sqrt; n.root;", 209, "i32 has no member 'root'", "to call the function, add parentheses: .root()"},
	{"a_name_that_is_longer_than_any_that_the_compiler_compares_with_others_is_just_unknown;", 201,
		"unknown name 'a_name_that_is_longer_than_any_that_the_compiler_compares_with_others_is_just_unknown'",
		NULL},
	{"let a_name_that_is_longer_than_any_that_the_compiler_compares_with_others_ = 1; oops;", 201,
		"unknown name 'oops'", NULL},
	{"let a: f32[8] = *f32[8];", 208, "a pointer points to a scalar type, not to f32[8]",
		"a tile of pointers is written (*f32)[N]"},
	{"**f32;", 208, "a pointer points to a scalar type, not to *f32",
		"an address in memory is a u64: load it and cast, load(p).to(*f32)"},
	{"*tensor;", 208, "what a pointer points to must be the type of a value, found tensor", NULL},
	{"*x;", 208, "prefix '*' makes a pointer type, and *f32 is no type",
		"there is no dereference operator; load(x) reads memory"},
	{"*n;", 208, "prefix '*' makes a pointer type, and i32 is no type",
		"a power is pow(x, y), of floats, or x * x; load(p) reads memory"},
	{"*3;", 208, "prefix '*' makes a pointer type, and the number 3 is no type",
		"a power is pow(x, y), of floats, or x * x; load(p) reads memory"},
	{"f32[:];", 210, "a tile type needs its extents", NULL},
	{"f32[None];", 210, "a tile type needs its extents", NULL},
	{"f32[oops];", 201, "unknown name 'oops'", NULL},
	{"tensor[4];", 208, "the element of a tile type must be the type of a value, found tensor", NULL},
	{"f32[4][4];", 208, "f32[4] is a tile type already", NULL},
	{"f32[2, 2, 2, 2, 2];", 207, "a tile type has 5 dimensions; a tile has at most 4", NULL},
	{"(1, 2)[0, 1];", 210, "a tuple takes one index", NULL},
	{"(1, 2)[-3];", 210, "index -3 is out of range: the tuple has 2 items", NULL},
	{"(1,)[1];", 210, "index 1 is out of range: the tuple has 1 item", NULL},
	{"(1, 2)[:];", 210, "(the number 1, the number 2) cannot be indexed", NULL},
	{"(1,)[None];", 210, "(the number 1,) cannot be indexed", NULL},
	{"(1, 2, 3, 4, 5, 6, 7, 8, 9)[:];", 210,
		"(the number 1, the number 2, the number 3, the number 4, the number 5, the number 6, the number 7, "
		"the number "
		"8, ...) cannot be indexed",
		NULL},
	{"\"s\"[0];", 210, "a string cannot be indexed", NULL},
	{"None[0];", 210, "None cannot be indexed", NULL},
	{"A[0];", 210, "a 2-dimensional tensor of f32 cannot be indexed", NULL},
	{"add[0];", 210, "the function 'add' cannot be indexed", NULL},
	{"store(x, 1.0)[0];", 210, "no value cannot be indexed", NULL},
	{"i[n];", 210, "an index of a tile is ':' or None",
		"single elements are picked by gather, or by a sum over where(i == k, x, 0)"},
	{"x[n];", 210, "a pointer is not indexed", "load(x + n) reads that element, store(x + n, v) writes it"},
	{"c[n];", 210, "a pointer is not indexed", "load(c + n) reads that element"},
	{"x[n, n];", 210, "a pointer is not indexed",
		"load(x + i * stride + j) reads the element of row i and column j"},
	{"i[:, :];", 210, "2 ':' for the 1 dimension of i32[64]", NULL},
	{"m[:];", 210, "1 ':' for the 2 dimensions of i32[8,8]", NULL},
	{"i[:, None, None, None, None];", 207, "a tile has at most 4 dimensions", NULL},
	{"(1e300)[None];", 218, "1e+300 does not fit in f32", "say the type: (1e300).to(f64)"},
	{"f.elem;", 209, "f32 has no member 'elem'", NULL},
	{"f.exp;", 209, "f32 has no member 'exp'", "to call the function, add parentheses: .exp()"},
	{"f.add;", 209, "f32 has no member 'add'", "to call the function, add parentheses: .add()"},
	{"f.zzzzzzzz;", 209, "f32 has no member 'zzzzzzzz'", NULL},
	{"f.bytes;", 209, "f32 has no member 'bytes'", "a type has a size: .dtype.bytes"},
	{"f.dtpye;", 209, "f32 has no member 'dtpye'", "did you mean '.dtype'?"},
	{"A.bytes;", 209, "a 2-dimensional tensor of f32 has no member 'bytes'", "a type has a size: .dtype.bytes"},
	{"tensor.shape;", 209, "the type tensor has no member 'shape'", NULL},
	{"(\"s\").shape;", 209, "a string has no member 'shape'", NULL},
	{"(store(x, 1.0), 2);", 407, "this call returns no value", NULL},
	{"let a: f32 = n;", 204, "the value must be f32, found i32", "write the cast: n.to(f32)"},
	{"let a: *f32 = c;", 204, "the value must be *f32, found *const f32", "write the cast: c.to(*f32)"},
	{"let a: *f32 = n;", 204, "the value must be *f32, found i32", NULL},
	{"let a: f32 = x;", 204, "the value must be f32, found *f32", NULL},
	{"let a: f32[64] = f;", 204, "the value must be f32[64], found f32", "stretch it: broadcast_to(f, [64])"},
	{"let a: i32[64] = j;", 204, "the value must be i32[64], found i32[32]", NULL},
	{"let a: i32 = i;", 204, "the value must be i32, found i32[64]", NULL},
	{"let a: *f32 = 1;", 204, "the value must be *f32, found the number 1", NULL},
	{"let a: f32[8] = 1.5;", 204, "the value must be f32[8], found the number 1.5",
		"stretch it: broadcast_to((1.5), [8])"},
	{"let a: f32 = (1.5).to(f16);", 204, "the value must be f32, found the f16 1.5",
		"write the cast: ((1.5).to(f16)).to(f32)"},
	{"let a: bool = 1;", 204, "the value must be bool, found the number 1", "write the cast: (1).to(bool)"},
	{"let a: i32 = true;", 204, "the value must be i32, found true", "write the cast: true.to(i32)"},
	{"let a: i32 = 1.5;", 204, "the value must be i32, found the number 1.5", "write the cast: (1.5).to(i32)"},
	{"let a: u8 = 300;", 218, "the value must be u8, in which the number 300 does not fit", NULL},
	{"let a: i32 = \"s\";", 204, "the value must be i32, found a string", NULL},
	{"let a: (i32, f32) = 3;", 204, "the value must be (i32, f32), found the number 3", NULL},
	{"let a: (i32, f32) = (1.5, 2.0);", 204, "the value must be i32, found the number 1.5",
		"write the cast: (1.5).to(i32)"},
	{"let a: (i32, 3) = (1, 2);", 208, "the type of a binding must be a type, found the number 3",
		"types are f32, *f16, f32[64, 64], (i32, f32) ..."},
	{"is_tensor(3);", 204, "parameter 'a' of 'is_tensor' must be tensor, found the number 3", NULL},
	{"is_tuple(3);", 204, "parameter 'a' of 'is_tuple' must be (i32,), found the number 3", NULL},
	{"many(3);", 204,
		"parameter 'a' of 'many' must be (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, "
		"i32, i32, "
		"i32, ...), found the number 3",
		NULL},
	{"takes_shape(\"s\");", 204, "const parameter 's' must be shape, found a string", NULL},
	{"takes_shape(1.5);", 204, "const parameter 's' must be shape, found the number 1.5", NULL},
	{"takes_shape((4, 1.5));", 204, "const parameter 's' must be shape, found (the number 4, the number 1.5)",
		NULL},
	{"exp(None);", 216, "'exp' must be a number or a tile, found None", NULL},
	{"exp(exp);", 216, "'exp' must be a number or a tile, found the built-in function 'exp'", NULL},
	{"exp(A);", 216, "'exp' must be a number or a tile, found a 2-dimensional tensor of f32", NULL},
	{"exp((1, 2));", 216, "'exp' must be a number or a tile, found (the number 1, the number 2)", NULL},
	{"exp(true);", 206, "'exp' needs floats, found true", "convert first: true.to(f32)"},
	{"exp(false);", 206, "'exp' needs floats, found false", "convert first: false.to(f32)"},
	{"n + n + n + n + n + n + n + n + n + n + n + n ? 1 : 2;", 211,
		"the condition of '?:' must be a bool, found i32", "compare: ... != 0"},
	{"n +\n n ? 1 : 2;", 211, "the condition of '?:' must be a bool, found i32", "compare: ... != 0"},
	{"let _a = n; let BIG_1 = n; _a + u;", 205, "signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: u.to(i64)"},
	{"let U_1 = u; n + U_1;", 205, "signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: U_1.to(i64)"},
	{"let _1 = u; n + _1;", 205, "signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: _1.to(i64)"},
	{"n + (u + u);", 205, "signed i32 and unsigned u32 do not mix",
		"i64 holds the values of both: (u + u).to(i64)"},
};
REPORTS(types)

/* Two ways that do not meet: '?:' in which an arm reads memory or is no plain value, and early returns. */
static const wrong ways[] = {
	{"t ? (n, 1) : (n, 1, 2);", 406,
		"the result of '?:' is (i32, the number 1) on one way and (i32, the number 1, the number 2) on the "
		"other",
		NULL},
	{"t ? (n, 1) : n;", 406, "the result of '?:' is (i32, the number 1) on one way and i32 on the other", NULL},
	{"t ? \"a\" : \"b\";", 406, "the result of '?:' is a string on one way and a string on the other", NULL},
	{"t ? f32 : f16;", 406, "the result of '?:' is the type f32 on one way and the type f16 on the other", NULL},
	{"t ? exp : log;", 406,
		"the result of '?:' is the built-in function 'exp' on one way and the built-in function 'log' on the "
		"other",
		NULL},
	{"t ? A : B;", 406,
		"the result of '?:' is a 2-dimensional tensor of f32 on one way and a 1-dimensional read-only tensor "
		"of f32 on the "
		"other",
		NULL},
	{"t ? tensor(x, [n]) : tensor(y, [n]);", 406,
		"the result of '?:' is a 1-dimensional tensor of f32 on one way and a 1-dimensional tensor of f16 on "
		"the other",
		NULL},
	{"t ? tensor(x, [n]) : tensor(x, [l]);", 406, "the result of '?:' is i32 on one way and i64 on the other",
		NULL},
	{"t ? tensor(x, [4], [n]) : tensor(x, [4], [l]);", 406,
		"the result of '?:' is i32 on one way and i64 on the other", NULL},
	{"t ? block_ptr(A, [0, 0], [8, 8]) : block_ptr(A, [0, 0], [4, 4]);", 406,
		"the result of '?:' is a block pointer to f32[8,8] on one way and a block pointer to f32[4,4] on the "
		"other",
		NULL},
	{"t ? block_ptr(A, [0, n], [8, 8]) : block_ptr(A, [0, l], [8, 8]);", 406,
		"the result of '?:' is i32 on one way and i64 on the other", NULL},
	{"t ? block_ptr(tensor(x, [n]), [0], [8]) : block_ptr(tensor(x, [l]), [0], [8]);", 406,
		"the result of '?:' is i32 on one way and i64 on the other", NULL},
	{"t ? (n, 1) : (l, 1);", 406, "the result of '?:' is i32 on one way and i64 on the other", NULL},
	{"t ? (n, 1) : (1.5, 1);", 406, "the result of '?:' is i32 on one way and the number 1.5 on the other", NULL},
	{"t ? (1.5, 1) : (n, 1);", 406, "the result of '?:' is the number 1.5 on one way and i32 on the other", NULL},
	{"t ? (i, 1) : (1, 1);", 406, "the result of '?:' is i32[64] on one way and the number 1 on the other", NULL},
	{"t ? (1, 1) : (i, 1);", 406, "the result of '?:' is the number 1 on one way and i32[64] on the other", NULL},
	{"t ? (x, 1) : (1, 1);", 406, "the result of '?:' is *f32 on one way and the number 1 on the other", NULL},
	{"t ? (1, 1) : (x, 1);", 406, "the result of '?:' is the number 1 on one way and *f32 on the other", NULL},
	{"t ? (f, 1) : ((1.5).to(f16), 1);", 406, "the result of '?:' is f32 on one way and the f16 1.5 on the other",
		NULL},
	{"t ? ((1.5).to(f16), 1) : (f, 1);", 406, "the result of '?:' is the f16 1.5 on one way and f32 on the other",
		NULL},
	{"t ? (t, 1) : (1, 1);", 406, "the result of '?:' is bool on one way and the number 1 on the other", NULL},
	{"t ? (b, 1) : (300, 1);", 406, "the result of '?:' is u8 on one way and the number 300 on the other", NULL},
	{"t ? (300, 1) : (b, 1);", 406, "the result of '?:' is the number 300 on one way and u8 on the other", NULL},
	{"t ? (300, n) : (BYTE, n);", 406,
		"the result of '?:' is the number 300 on one way and the u8 200 on the other", NULL},
	{"t ? (BYTE, n) : (300, n);", 406,
		"the result of '?:' is the u8 200 on one way and the number 300 on the other", NULL},
	{"t ? (true, n) : (1, n);", 406, "the result of '?:' is true on one way and the number 1 on the other", NULL},
	{"t ? (BYTE, n) : ((1).to(i8), n);", 406,
		"the result of '?:' is the u8 200 on one way and the i8 1 on the other", NULL},
	{"t ? (-1, n) : (18446744073709551615, n);", 406,
		"the result of '?:' is the number -1 on one way and the number 18446744073709551615 on the other",
		NULL},
	{"t ? (1e300, n) : (2.0, n);", 218, "1e+300 does not fit in f32", "say the type: (1e300).to(f64)"},
	{"inner(t, n, (n, \"s\"), (n, \"s\"));", 216, "the result must have run-time values, found a string", NULL},
	{"inner(t, n, (n, f32), (n, f32));", 216, "the result must have run-time values, found the type f32", NULL},
	{"either(t, oops, n);", 201, "unknown name 'oops'", NULL},
	{"broken(t, n);", 201, "unknown name 'oops'", NULL},
	{"broken(!t, n);", 201, "unknown name 'oops'", NULL},
	{"broken_last(t, n);", 201, "unknown name 'oops'", NULL},
	{"either(t, n, l);", 406, "the result is i32 on one way and i64 on the other", NULL},
	{"either(t, (n, 1), (n, 1, 1));", 406,
		"the result is (i32, the number 1) on one way and (i32, the number 1, the number 1) on the other",
		NULL},
	{"either(t, n, A);", 406, "the result is i32 on one way and a 2-dimensional tensor of f32 on the other", NULL},
	{"either(t, tensor(x, [n]), tensor(x, [n, 4]));", 406,
		"the result is a 1-dimensional tensor of f32 on one way and a 2-dimensional tensor of f32 on the other",
		NULL},
	{"either(t, block_ptr(A, [0, 0], [8, 8]), block_ptr(A, [0, 0], [4, 4]));", 406,
		"the result is a block pointer to f32[8,8] on one way and a block pointer to f32[4,4] on the other",
		NULL},
	{"either(t, None, n);", 406, "the result is None on one way and i32 on the other", NULL},
};
REPORTS(ways)

/* ---- whole programs ---- */

static void test_programs(void **state)
{
	(void)state;
	static const struct {
		const char *source;
		wrong w;
	} rows[] = {
		{"const N: 3 = 4; kernel k(n: i32) { let a = N; }",
			{"", 208, "the type of a 'const' must be a type, found the number 3",
				"types are f32, *f16, f32[64, 64], (i32, f32) ..."}},
		{"const N: u8 = 300; kernel k(n: i32) { let a = N; let b = N; }",
			{"", 218, "the value must be u8, in which the number 300 does not fit", NULL}},
		{"const A = B; const B = A; kernel k(n: i32) { let a = A; }",
			{"", 311, "the constant 'A' depends on itself", NULL}},
		{"const A = load((64).to(*f32)); kernel k(n: i32) { let a = A; }",
			{"", 301, "the value of a 'const' must be known at compile time, found f32",
				"a 'const' parameter makes a value known"}},
		{"const N = 8; kernel k(n: i32) { for i in static_range(2000000) { if i == 1999999 { break; }\n"
		 "let a = i + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + "
		 "1 + 1; }\n"
		 "let b = N; let c = n + 1; let d = -n; }",
			{"", 705, "more than 1,000,000 operations after unrolling and inlining", NULL}},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		compiled c;
		compile_text(&c, rows[i].source);
		if (!as_expected(&c, &rows[i].w))
			fail_msg("%s\n%u errors, the first:\n%s", rows[i].source, c.ds.errors, c.rendered.at);
		compiled_free(&c);
	}
}

/* `functions` functions, each of which wraps what the next one returns `deep` times. */
static void nests(const char *open, const char *close, int functions, int deep, uint16_t code, const char *message)
{
	text source = {0};
	compiled c;
	arena a = {0};
	source.arena = &a;
	for (int f = 0; f < functions; f++) {
		text_printf(&source, "fn f%d(t, x) { return ", f);
		for (int i = 0; i < deep; i++) text_puts(&source, open);
		if (f + 1 < functions)
			text_printf(&source, "f%d(t, x)", f + 1);
		else
			text_puts(&source, "x");
		for (int i = 0; i < deep; i++) text_puts(&source, close);
		text_puts(&source, "; }\n");
	}
	text_puts(&source, "kernel k(t: bool, n: i32) { let a = f0(t, t); }");
	compile_text(&c, source.at);
	const diag *d = c.ds.first;
	if (!d || d->code != code || strcmp(d->message, message) != 0)
		fail_msg("%d of %s: expected E%04d %s\n%s", functions * deep, open, code, message, c.rendered.at);
	compiled_free(&c);
	arena_free(&a);
}

/* What is deeper than the compiler's stack allows is an error, also where inlining puts it together. */
static void test_nesting(void **state)
{
	(void)state;
	static const char regions[] = "run-time control flow nests deeper than 256 after inlining";
	static const char depth[] = "expressions, statements and calls nest deeper than 1500 after inlining";
	nests("!(", ")", 20, 100, 707, depth);
	nests("t && (", ")", 4, 80, 706, regions);
	nests("t || (", ")", 4, 80, 706, regions);
	nests("t ? t : (", ")", 4, 80, 706, regions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_creation),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_mathematics),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_tensors),
		cmocka_unit_test(test_reductions),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_operators),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_casts),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_nesting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
