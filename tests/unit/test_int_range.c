/* Where an integer lies (int_range.h): intervals of %v, worked out by hand, and a random check: programs of random
 * operations are evaluated, and each value lies in its interval. */
#include "ir_text.h"

#include "analysis/int_range.h"

#define HEAD                                                                                                           \
	"func @f(%a: *f32, %n: i32, %l: i64, %u: u32, %x: f32, %b: bool, %w: u64, %s8: i8) {\n"                        \
	"%zero = const {value=0} : i32 %one = const {value=1} : i32 %two = const {value=2} : i32\n"                    \
	"%seven = const {value=7} : i32 %ten = const {value=10} : i32 %minus = const {value=-3} : i32\n"               \
	"%pid = program_id {axis=0} : i32 %py = program_id {axis=1} : i32\n"                                           \
	"%r = arange {lo=5} : i32[8] %low = min %pid, %ten : i32 %span = add %low, %minus : i32\n" /* -3 .. 7 */
#define FOR " {num_stages=0 unroll=0 flatten=0 accumulator_init=0} "

static ir_value *named(ir_block *b, const char *name)
{
	for (uint32_t i = 0; i < b->nargs; i++)
		if (b->args[i]->name && strcmp(b->args[i]->name, name) == 0) return b->args[i];
	for (const ir_op *o = b->first; o; o = o->next) {
		for (unsigned i = 0; i < o->nresults; i++)
			if (o->results[i]->name && strcmp(o->results[i]->name, name) == 0) return o->results[i];
		for (unsigned i = 0; i < o->nregions; i++) {
			ir_value *v = named(o->regions[i], name);
			if (v) return v;
		}
	}
	return NULL;
}

static ir_value *value_of(const char *body)
{
	return named(read_text(arena_printf(&memory, "%s%s\nreturn\n}", HEAD, body))->body, "v");
}

#define I32 INT32_MIN, INT32_MAX
#define I64 INT64_MIN, INT64_MAX

static void intervals(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		int64_t low, high;
	} row[] = {
		{"%v = add %n, %zero : i32", I32},
		{"%v = add %l, %l : i64", I64},
		{"%v = add %pid, %zero : i32", 0, INT32_MAX - 1},
		{"%v = mul %py, %ten : i32", 0, 655340},
		{"%v = num_programs {axis=2} : i32", 1, 65535},
		{"%v = num_programs {axis=0} : i32", 1, INT32_MAX},
		{"%v = add %r, %r : i32[8]", 10, 24},
		{"%v = sub %ten, %low : i32", 0, 10},
		{"%v = sub %low, %span : i32", -7, 13},
		{"%v = neg %span : i32", -7, 3},
		{"%v = mul %span, %minus : i32", -21, 9},
		{"%v = mul %span, %span : i32", -21, 49},    /* as of two that know nothing of each other */
		{"%v = mul %pid, %pid : i32", 0, INT32_MAX}, /* taken not to wrap around */
		{"%most = const {value=2147483647} : i32 %m = max %n, %most : i32 %v = add %m, %one : i32", INT32_MAX,
			INT32_MAX}, /* nothing is left but the end of the type: no interval is upside down */
		{"%v = max %span, %two : i32", 2, 7},
		{"%v = min %span, %two : i32", -3, 2},
		{"%v = select %b, %ten, %span : i32", -3, 10},
		{"%v = div %ten, %low : i32", 1, 10},
		{"%v = div %low, %two : i32", 0, 5},
		{"%v = div %span, %two : i32", I32},
		{"%v = rem %pid, %ten : i32", 0, 9},
		{"%v = rem %pid, %one : i32", 0, 0},
		{"%v = const {value=5} : u64", 5, 5},
		{"%v = rem %low, %n : i32", 0, 10},
		{"%v = rem %n, %ten : i32", I32}, /* has the dividend's sign; 9 is not asked for */
		{"%v = and %n, %seven : i32", 0, 7},
		{"%v = and %seven, %n : i32", 0, 7},
		{"%v = and %pid, %ten : i32", 0, 10},
		{"%v = and %n, %minus : i32", I32},
		{"%v = or %low, %two : i32", 0, 15},
		{"%v = xor %low, %seven : i32", 0, 15},
		{"%v = or %zero, %zero : i32", 0, 0},
		{"%v = xor %low, %span : i32", I32},
		{"%v = shr %low, %one : i32", 0, 5},
		{"%v = shr %low, %pid : i32", 0, 10},
		{"%v = shr %span, %one : i32", I32},
		{"%v = shl %low, %one : i32", I32}, /* who shifts to the left may mean to lose bits */
		/* types: unsigned and narrow ones wrap around, signed ones of 32 bits do not */
		{"%v = add %u, %u : u32", 0, UINT32_MAX},
		{"%c = convert %low : u32 %v = sub %c, %c : u32", 0, UINT32_MAX},
		{"%c = convert %low : u32 %v = add %c, %c : u32", 0, 20},
		{"%v = add %w, %w : u64", 0, INT64_MAX},
		{"%c = convert %low : i8 %v = add %c, %c : i8", 0, 20},
		{"%v = add %s8, %s8 : i8", -128, 127},
		{"%c = convert %pid : i8 %v = add %c, %zero8 : i8", -128, 127},
		{"%c = convert %low : i8 %d = mul %c, %c : i8 %v = add %d, %d : i8", -128, 127}, /* 200 */
		{"%v = convert %span : i64", -3, 7},
		{"%v = convert %span : u32", 0, UINT32_MAX},
		{"%v = convert %s8 : i32", -128, 127},
		{"%v = convert %b : i32", 0, 1},
		{"%v = convert %x : i32", I32},
		{"%v = convert %u : i64", 0, UINT32_MAX},
		{"%v = convert %u : i32", I32},
		{"%v = convert %l : i32", I32},
		{"%v = convert %w : i64", I64}, /* 2^63 and more are negative there */
		{"%c = convert %low : u64 %m = min %c, %w : u64 %v = convert %m : i64", 0, 10},
		{"%c = convert %two : u64 %d = div %w, %c : u64 %v = convert %d : i64", I64},
		{"%c = convert %two : u64 %d = shr %w, %c : u64 %v = convert %d : i64", I64},
		{"%c = convert %two : u64 %d = sub %w, %c : u64 %v = convert %d : i64", I64},
		/* the same elsewhere */
		{"%t = splat %span : i32[8] %e = expand_dims %t {axis=0} : i32[1,8] %v = broadcast %e : i32[4,8]", -3,
			7},
		{"%v = hint %span {kind=multiple_of values=[1]} : i32", -3, 7},
		/* loops */
		{"for %zero, %n, %one" FOR "(%v: i32) { yield }", 0, INT32_MAX - 1},
		{"for %two, %ten, %one" FOR "(%v: i32) { yield }", 2, 9},
		{"for %ten, %two, %one" FOR "(%v: i32) { yield }", 10, 10}, /* never runs */
		{"for %span, %low, %two" FOR "(%v: i32) { yield }", -3, 9},
		{"for %zero, %n, %minus" FOR "(%v: i32) { yield }", I32},
		{"%q = for %zero, %n, %one, %zero" FOR ": i32 (%k: i32, %v: i32) { yield %k }", I32},
		/* no integers */
		{"%v = add %x, %x : f32", I64},
	};
	unsigned wrong = 0;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const char *body = arena_printf(&memory, "%%zero8 = const {value=0} : i8 %s", row[i].body);
		int_bounds b = int_range_of(value_of(body));
		if (b.low != row[i].low || b.high != row[i].high)
			wrong++, print_error("`%s`: %lld .. %lld\n", row[i].body, (long long)b.low, (long long)b.high);
	}
	assert_int_equal(wrong, 0);
}

/* v + v of v + v of ..: each is asked for twice by the next. */
static void chains_end(void **state)
{
	(void)state;
	text body = {.arena = &memory};
	text_puts(&body, "%c0 = add %low, %low : i32 ");
	for (unsigned i = 0; i < 200; i++) text_printf(&body, "%%c%u = add %%c%u, %%c%u : i32 ", i + 1, i, i);
	text_puts(&body, "%v = add %c200, %c200 : i32");
	int_bounds b = int_range_of(value_of(body.at));
	assert_true(b.low <= 0 && b.high == INT32_MAX);
}

/* ---- random programs ---- */

enum { VALUES = 12 };

static uint32_t draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

/* The operations as C has them; false: undefined, or beyond i32, which arithmetic is taken not to leave. */
static bool apply(unsigned how, int64_t a, int64_t b, int64_t *r)
{
	switch (how) {
	case 0: *r = a + b; break;
	case 1: *r = a - b; break;
	case 2: *r = a * b; break;
	case 3: *r = a < b ? a : b; break;
	case 4: *r = a > b ? a : b; break;
	case 5: *r = b ? a / b : 0; break;
	case 6: *r = b ? a % b : 0; break;
	case 7: *r = a & b; break;
	case 8: *r = a | b; break;
	case 9: *r = a ^ b; break;
	default: *r = b >= 0 ? a >> (b > 31 ? 31 : b) : a < 0 ? -1 : 0; break;
	}
	return *r >= INT32_MIN && *r <= INT32_MAX && !((how == 5 || how == 6) && b == 0);
}

static void random_programs(void **state)
{
	(void)state;
	static const char *const name[] = {"add", "sub", "mul", "min", "max", "div", "rem", "and", "or", "xor", "shr"};
	uint32_t seed = 7;
	for (unsigned n = 0; n < 300; n++) {
		unsigned how[VALUES], left[VALUES], right[VALUES];
		int64_t number[4];
		text body = {.arena = &memory};
		text_puts(&body, "%v0 = add %py, %zero : i32 ");
		for (unsigned i = 1; i < 4; i++) {
			number[i] = (int64_t)draw(&seed, 40) - 12;
			text_printf(&body, "%%v%u = const {value=%lld} : i32 ", i, (long long)number[i]);
		}
		for (unsigned i = 4; i < VALUES; i++) {
			how[i] = draw(&seed, 11), left[i] = draw(&seed, i), right[i] = draw(&seed, i);
			text_printf(&body, "%%v%u = %s %%v%u, %%v%u : i32 ", i, name[how[i]], left[i], right[i]);
		}
		ir_func *f = read_text(arena_printf(&memory, "%s%s\nreturn\n}", HEAD, body.at));
		for (unsigned trial = 0; trial < 20; trial++) {
			int64_t value[VALUES] = {
				draw(&seed, 2) ? draw(&seed, 9) : draw(&seed, 65535), number[1], number[2], number[3]};
			for (unsigned i = 4; i < VALUES; i++) {
				if (!apply(how[i], value[left[i]], value[right[i]], &value[i])) break;
				int_bounds b = int_range_of(named(f->body, arena_printf(&memory, "v%u", i)));
				if (value[i] < b.low || value[i] > b.high)
					fail_msg("%%v%u is %lld, not in %lld .. %lld:\n%s", i, (long long)value[i],
						(long long)b.low, (long long)b.high, body.at);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(intervals),
		TEST(chains_end),
		TEST(random_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
