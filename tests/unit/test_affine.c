/* What the proofs about addresses stand on: values as sums (affine.h), masks as bounds (mask.h), and which integers are
 * never below 0 (int_range.h).  Each row is a text and what is known of its %v, worked out by hand; beside what holds
 * stands what almost does. */
#include "ir_text.h"

#include "analysis/mask.h"
#include "analysis/int_range.h"

#define HEAD                                                                                                           \
	"func @f(%a: *f32, %c: *f32, %n: i32, %m: i32, %l: i64, %u: u32, %x: f32, %b: bool) {\n"                       \
	"%zero = const {value=0} : i32 %one = const {value=1} : i32 %two = const {value=2} : i32\n"                    \
	"%pid = program_id {axis=0} : i32 %other = program_id {axis=1} : i32 %d = sub %pid, %other : i32\n"            \
	"%r = arange {lo=5} : i32[8] %ns = splat %n : i32[8] %ms = splat %m : i32[8] %ds = splat %d : i32[8]\n"
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

/* The value %v of a body, and a context for it. */
static ir_value *value_of(const char *body, affine_context *c)
{
	ir_func *f = read_text(arena_printf(&memory, "%s%s\nreturn\n}", HEAD, body));
	pass_context *p = ARENA_NEW(&memory, pass_context);
	*p = (pass_context){.arena = &memory, .diags = &messages};
	*c = (affine_context){.pass = p, .func = f};
	return named(f->body, "v");
}

static int in_order(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Terms in the order of their texts: factor, atoms by name, #place. */
static const char *show(const affine *s)
{
	const char *term[AFFINE_TERMS];
	text t = {.arena = &memory};
	for (unsigned i = 0; i < s->n; i++) {
		const char *name[AFFINE_ATOMS];
		text one = {.arena = &memory};
		for (unsigned k = 0; k < s->term[i].natoms; k++) name[k] = s->term[i].atom[k]->name;
		qsort(name, s->term[i].natoms, sizeof *name, in_order);
		for (unsigned k = 0; k < s->term[i].natoms; k++) text_printf(&one, "%s*", name[k]);
		if (s->term[i].place >= 0) text_printf(&one, "#%d*", s->term[i].place);
		text_printf(&one, "%lld", (long long)s->term[i].factor);
		term[i] = one.at;
	}
	qsort(term, s->n, sizeof *term, in_order);
	if (s->root) text_printf(&t, "%s: ", s->root->name);
	for (unsigned i = 0; i < s->n; i++) text_printf(&t, "%s%s", i ? " + " : "", term[i]);
	if (!s->n) text_puts(&t, "0");
	if (s->narrow) text_puts(&t, " narrow");
	return t.at;
}

static void sums(void **state)
{
	(void)state;
	static const struct {
		const char *body, *sum; /* null: none */
	} rows[] = {
		{"%v = add %r, %ns : i32[8]", "#0*1 + 5 + n*1"},
		{"%v = sub %ns, %r : i32[8]", "#0*-1 + -5 + n*1"},
		{"%v = neg %r : i32[8]", "#0*-1 + -5"},
		{"%v = sub %r, %r : i32[8]", "0"},
		{"%v = arange {lo=5} : i32[1]", "5"},
		{"%v = hint %r {kind=multiple_of values=[1]} : i32[8]", "#0*1 + 5"},
		{"%t = expand_dims %r {axis=0} : i32[1,8] %v = broadcast %t : i32[4,8]", "#1*1 + 5"},
		{"%t = expand_dims %r {axis=1} : i32[8,1] %v = broadcast %t : i32[8,4]", "#0*1 + 5"},
		{"%t = expand_dims %r {axis=0} : i32[1,8] %v = permute %t {order=[1,0]} : i32[8,1]", "#0*1 + 5"},
		{"%t = expand_dims %r {axis=0} : i32[1,8] %w = expand_dims %t {axis=0} : i32[1,1,8] "
		 "%v = permute %w {order=[2,0,1]} : i32[8,1,1]",
			"#0*1 + 5"},
		{"%t = expand_dims %r {axis=1} : i32[8,1] %w = expand_dims %t {axis=2} : i32[8,1,1] "
		 "%v = permute %w {order=[1,2,0]} : i32[1,1,8]",
			"#2*1 + 5"},
		{"%t = convert %r : i64[8] %k = const {value=3} : i64[8] %v = mul %t, %k : i64[8]", "#0*3 + 15"},
		/* no sums: places by places, what is not whole, not signed, or not linear */
		{"%v = mul %r, %r : i32[8]", NULL},
		{"%v = shl %r, %ns : i32[8]", NULL},
		{"%v = reshape %r : i32[8]", NULL},
		{"%v = splat %x : f32[8]", NULL},
		{"%v = splat %u : u32[8]", NULL},
		/* scalars: taken apart where the host knows all of them */
		{"%v = add %n, %m : i32", "m*1 + n*1"},
		{"%v = convert %n : i64", "n*1"},
		{"%v = convert %u : i64", "v*1"},
		{"%v = convert %l : i32", "v*1"},
		{"%v = shl %n, %m : i32", "v*1"},
		{"%v = add %d, %n : i32", "v*1"},
		{"%w = mul %n, %m : i32 %v = mul %w, %w : i32", "m*m*n*n*1"},
		{"%w = mul %n, %m : i32 %t = mul %w, %w : i32 %v = mul %t, %n : i32", NULL},
		/* i32 products: of numbers that fit, or do not, and of what only the device knows */
		/* 2^32 n: the host sees whether that fits */
		{"%k = const {value=65536} : i32 %w = mul %n, %k : i32 %v = mul %w, %k : i32", "n*4294967296"},
		{"%k = const {value=268435456} : i32[8] %v = mul %r, %k : i32[8]", "#0*268435456 + 1342177280 narrow"},
		{"%w = arange {lo=0} : i32[8] %k = const {value=268435456} : i32[8] %v = mul %w, %k : i32[8]",
			"#0*268435456"},
		{"%w = arange {lo=1} : i32[8] %k = const {value=268435456} : i32[8] %v = mul %w, %k : i32[8]",
			"#0*268435456 + 268435456 narrow"},
		{"%k = const {value=-2147483648} : i32[8] %t = mul %ds, %ns : i32[8] %v = add %t, %k : i32[8]",
			"-2147483648 + d*n*1 narrow"},
		{"%w = convert %r : i64[8] %k = const {value=4611686018427387904} : i64[8] %v = mul %w, %k : i64[8]",
			NULL},
		{"%w = arange {lo=0} : i32[8] %t = convert %w : i64[8] %k = const {value=4611686018427387904} : i64[8] "
		 "%y = mul %t, %k : i64[8] %v = add %y, %y : i64[8]",
			NULL},
		/* a product that may not fit makes every product with it narrow, on either side; numbers below 0 count
		 * as those above */
		{"%t = mul %ds, %ns : i32[8] %v = mul %t, %ms : i32[8]", "d*m*n*1 narrow"},
		{"%t = mul %ds, %ns : i32[8] %w = convert %t : i64[8] %y = convert %ms : i64[8] %v = mul %y, %w : "
		 "i64[8]",
			"d*m*n*1 narrow"},
		{"%w = arange {lo=0} : i32[8] %k = const {value=-268435456} : i32[8] %v = mul %w, %k : i32[8]",
			"#0*-268435456"},
		{"%w = arange {lo=1} : i32[8] %k = const {value=-268435456} : i32[8] %v = mul %w, %k : i32[8]",
			"#0*-268435456 + -268435456 narrow"},
		{"%w = arange {lo=0} : i32[2] %k = const {value=-2147483648} : i32[2] %v = mul %w, %k : i32[2]",
			"#0*-2147483648 narrow"},
		/* pointers */
		{"%t = splat %a : (*f32)[8] %v = ptr_add %t, %r : (*f32)[8]", "a: #0*1 + 5"},
		{"%t = ptr_add %a, %l : *f32 %v = hint %t {kind=multiple_of values=[4]} : *f32", "a: l*1"},
		{"%v = select %b, %a, %c : *f32", NULL},
		{"%v = bitcast %l : *f32", NULL},
	};
	unsigned wrong = 0;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		affine_context c;
		affine s;
		bool good = affine_of(&c, value_of(rows[i].body, &c), &s);
		if (good != (rows[i].sum != NULL) || (good && strcmp(show(&s), rows[i].sum) != 0))
			wrong++, print_error("`%s` is `%s`, not `%s`\n", rows[i].body, good ? show(&s) : "no sum",
					 rows[i].sum ? rows[i].sum : "no sum");
	}
	assert_int_equal(wrong, 0);
}

/* What a loop carries: a multiple of its counter, or no sum. */
static void carried_sums(void **state)
{
	(void)state;
#define POINTER(lo, step, next)                                                                                        \
	"%k32 = const {value=32} : i32 %k3 = const {value=3} : i32 %down = const {value=-1} : i32\n"                   \
	"%p = for " lo ", %m, " step ", %a" FOR ": *f32 (%k: i32, %v: *f32) { " next " yield %q }"
#define NUMBER(step, next) "%s = for %zero, %m, " step ", %n" FOR ": i32 (%k: i32, %v: i32) { " next " yield %q }"
	static const struct {
		const char *body, *sum;
	} rows[] = {
		{POINTER("%zero", "%one", "%q = ptr_add %v, %k32 : *f32"), "a: k*32"},
		{POINTER("%zero", "%k32", "%q = ptr_add %v, %k32 : *f32"), "a: k*1"},
		{POINTER("%n", "%one", "%q = ptr_add %v, %k32 : *f32"), "a: k*32 + n*-32"},
		{POINTER("%zero", "%one", "%q = ptr_add %v, %l : *f32"), "a: k*l*1"},
		{POINTER("%zero", "%one", "%w = ptr_add %v, %l : *f32 %q = ptr_add %w, %n : *f32"), "a: k*l*1 + k*n*1"},
		{POINTER("%zero", "%k3", "%q = ptr_add %v, %k32 : *f32"), NULL},   /* no whole step a number */
		{POINTER("%zero", "%n", "%q = ptr_add %v, %k32 : *f32"), NULL},    /* nobody knows which step */
		{POINTER("%m", "%down", "%q = ptr_add %v, %k32 : *f32"), NULL},    /* counts down */
		{POINTER("%zero", "%one", "%q = ptr_add %c, %k32 : *f32"), NULL},  /* another pointer */
		{POINTER("%zero", "%one", "%q = ptr_add %v, %k : *f32"), NULL},    /* another step each round */
		{POINTER("%zero", "%one", "%q = select %b, %v, %a : *f32"), NULL}, /* perhaps no step */
		{POINTER("%zero", "%one", "%q = hint %v {kind=multiple_of values=[4]} : *f32"), "a: 0"},
		{NUMBER("%one", "%q = add %v, %two : i32"), "k*2 + n*1"},
		{NUMBER("%two", "%q = add %v, %two : i32"), "k*1 + n*1"},
		{NUMBER("%two", "%q = add %v, %one : i32"), "v*1"},
		{NUMBER("%one", "%q = add %v, %v : i32"), "v*1"},
		{NUMBER("%one", "%q = shl %v, %one : i32"), "v*1"},
		{NUMBER("%one", "%q = add %n, %two : i32"), "v*1"},
		{"%s = for %zero, %m, %one, %r" FOR
		 ": i32[8] (%k: i32, %v: i32[8]) { %q = add %v, %r : i32[8] yield %q }",
			NULL}, /* each element by a step of its own */
		/* what two loops carry: the inner one adds what the outer one has come to */
		{"%s = for %zero, %m, %one, %n" FOR ": i32 (%k: i32, %w: i32) { %y = for %zero, %m, %one, %n" FOR
		 ": i32 (%j: i32, %v: i32) { %q = add %v, %w : i32 yield %q } %x2 = add %w, %two : i32 yield %x2 }",
			"j*k*2 + j*n*1 + n*1"},
		{"%s = while %n : i32 (%v: i32) { condition %b, %v } do (%w: i32) { yield %w }", "v*1"},
		{"%s = while %r : i32[8] (%v: i32[8]) { condition %b, %v } do (%w: i32[8]) { yield %w }",
			NULL}, /* each element something else */
		{"%s = while %a : *f32 (%v: *f32) { condition %b, %v } do (%w: *f32) { yield %w }", NULL},
	};
	unsigned wrong = 0;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		affine_context c;
		affine s;
		bool good = affine_of(&c, value_of(rows[i].body, &c), &s);
		if (good != (rows[i].sum != NULL) || (good && strcmp(show(&s), rows[i].sum) != 0))
			wrong++, print_error("`%s` is `%s`, not `%s`\n", rows[i].body, good ? show(&s) : "no sum",
					 rows[i].sum ? rows[i].sum : "no sum");
	}
	assert_int_equal(wrong, 0);
#undef POINTER
#undef NUMBER
}

/* Arithmetic refuses what has no room, and leaves nothing that wrapped around. */
static void room(void **state)
{
	(void)state;
	affine s = {0}, x = {0}, y = {0};
	assert_true(affine_add_number(&s, INT64_MAX));
	assert_false(affine_add_number(&s, 1));
	assert_false(affine_add(&s, &(affine){.n = 1, .term = {{.factor = INT64_MAX, .place = -1}}}, 2));
	s = (affine){0};
	assert_true(affine_add_number(&s, INT64_MIN));
	assert_false(affine_multiply(&s, &(affine){.n = 1, .term = {{.factor = -1, .place = -1}}}));
	for (int extra = 0; extra < 2; extra++) { /* as many terms as there is room for, and one more */
		text t = {.arena = &memory};
		text_puts(&t, "%s0 = splat %n : i32[8] %v = add %s0, %s0 : i32[8]\n");
		for (int i = 1; i < AFFINE_TERMS + extra; i++)
			text_printf(&t,
				"%%k%d = const {value=%d} : i32 %%q%d = shl %%n, %%k%d : i32 %%s%d = splat %%q%d : "
				"i32[8] "
				"%%v.%d = add %%s%d, %%v%s : i32[8]\n",
				i, i, i, i, i, i, i, i, i > 1 ? arena_printf(&memory, ".%d", i - 1) : "");
		text_printf(
			&t, "%%last = add %%v.%d, %%v.%d : i32[8]", AFFINE_TERMS + extra - 1, AFFINE_TERMS + extra - 1);
		affine_context c;
		ir_value *v = value_of(t.at, &c);
		assert_non_null(v);
		ir_value *last = named(c.func->body, "last");
		assert_int_equal(affine_of(&c, last, &x), !extra);
		if (!extra) assert_int_equal(x.n, AFFINE_TERMS);
	}
	affine_term t = {.factor = 1, .place = -1};
	affine_context c;
	ir_value *v = value_of("%v = add %n, %m : i32", &c);
	x = affine_value(v);
	assert_string_equal(show(&x), "v*1");
	for (int i = 0; i < AFFINE_ATOMS; i++) assert_true(affine_atom(&t, v));
	assert_false(affine_atom(&t, v));
	assert_int_equal(t.natoms, AFFINE_ATOMS);
	/* more products of 32 bits than the host would look at */
	for (int extra = 0; extra < 2; extra++) {
		text many = {.arena = &memory};
		text_puts(&many, "%v = mul %n, %m : i32 %w0 = add %v, %zero : i32\n");
		for (int i = 1; i < AFFINE_PRODUCTS + extra; i++)
			text_printf(&many,
				"%%k%d = const {value=%d} : i32 %%z%d = mul %%n, %%k%d : i32 %%w%d = add %%w%d, %%z%d "
				": i32\n",
				i, i + 2, i, i, i, i - 1, i);
		text_printf(&many, "%%sum = add %%w%d, %%zero : i32", AFFINE_PRODUCTS + extra - 1);
		value_of(many.at, &c);
		assert_int_equal(affine_of(&c, named(c.func->body, "sum"), &y), !extra);
	}
}

/* %t, a sum of that many products of what the host knows, in 64 bits, and what loops of 64 bits need. */
static void put_terms(text *t, int terms)
{
	int n = 0;
	text_puts(t, "%z = const {value=0} : i64 %by = const {value=1} : i64 %e = convert %m : i64\n"
		     "%p.0.0 = convert %n : i64 %t0 = add %z, %z : i64\n");
	for (int i = 0; i < 3; i++) text_printf(t, "%%p.0.%d = mul %%p.0.%d, %%p.0.0 : i64\n", i + 1, i);
	for (int i = 0; i < 4; i++) /* n to the i + 1, times m to the j, times l to the k */
		for (int j = 0; i + j < 4; j++) {
			if (j) text_printf(t, "%%p.%d.%d = mul %%p.%d.%d, %%e : i64\n", j, i, j - 1, i);
			text_printf(t, "%%x.%d.%d.0 = add %%p.%d.%d, %%z : i64\n", i, j, j, i);
			for (int k = 0; i + j + k < 4 && n < terms; k++) {
				if (k)
					text_printf(t, "%%x.%d.%d.%d = mul %%x.%d.%d.%d, %%l : i64\n", i, j, k, i, j,
						k - 1);
				text_printf(t, "%%t%d = add %%t%d, %%x.%d.%d.%d : i64\n", n + 1, n, i, j, k);
				n++;
			}
		}
	text_puts(t, "%y20 = add %l, %z : i64\n");
	for (; n < terms; n++) /* there are 20 of those; l to the first, second, .. come behind */
		text_printf(t, "%%y%d = mul %%y%d, %%l : i64 %%t%d = add %%t%d, %%y%d : i64\n", n + 1, n, n + 1, n, n);
	text_printf(t, "%%t = add %%t%d, %%z : i64\n", terms);
}

static const char *sum_of(const char *body, affine_context *c)
{
	affine s;
	ir_value *v = value_of(body, c);
	assert_non_null(v);
	return affine_of(c, v, &s) ? show(&s) : "no sum";
}

/* What is worked out has an end: of terms, of loops in loops, of values in values and of all together. */
static void ends(void **state)
{
	(void)state;
#define CARRIED(start, lo, next)                                                                                       \
	"%o = for " lo ", %l, %by, " start FOR ": i64 (%k: i64, %v: i64) { %q = add " next " : i64 yield %q }"
	static const struct {
		unsigned terms;
		const char *loop;
		unsigned n; /* as many terms; 0: the value is one of its own */
	} rows[] = {        /* the lower bound in a carried value's number of iterations, beside the counter */
		{AFFINE_TERMS - 1, CARRIED("%z", "%t", "%v, %by"), AFFINE_TERMS},
		{AFFINE_TERMS, CARRIED("%z", "%t", "%v, %by"), 0},
		/* its start, beside what the iterations add */
		{AFFINE_TERMS - 1, CARRIED("%t", "%z", "%v, %by"), AFFINE_TERMS},
		{AFFINE_TERMS, CARRIED("%t", "%z", "%v, %by"), 0},
		/* what is no step, with room for what it would have to be less, and without */
		{AFFINE_TERMS - 1, CARRIED("%z", "%z", "%t, %z"), 0}, {AFFINE_TERMS, CARRIED("%z", "%z", "%t, %z"), 0}};
	affine_context c;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		text t = {.arena = &memory};
		affine s;
		put_terms(&t, (int)rows[i].terms);
		text_puts(&t, rows[i].loop);
		ir_value *v = value_of(t.at, &c);
		c.open_scalars = true;
		assert_true(affine_of(&c, named(c.func->body, "t"), &s));
		assert_int_equal(s.n, rows[i].terms);
		c.visits = 0;
		assert_true(affine_of(&c, v, &s));
		if (rows[i].n ? s.n != rows[i].n : strcmp(show(&s), "v*1") != 0) fail_msg("row %zu: %s", i, show(&s));
	}
	for (int loops = AFFINE_OPEN; loops <= AFFINE_OPEN + 1; loops++) {
		/* the outermost value is its counter, which the next loop takes away from it, so that nothing is
		 * left */
		text t = {.arena = &memory};
		for (int i = 0; i < loops; i++)
			text_printf(&t,
				"%%s%d = for %%zero, %%m, %%one, %%zero" FOR ": i32 (%%k%d: i32, %%w%d: i32) {\n", i, i,
				i);
		for (int i = loops - 1; i > 1; i--)
			text_printf(&t, "%%q%d = add %%w%d, %%w%d : i32 yield %%q%d }\n", i, i, i - 1, i);
		text_puts(&t, "%y = sub %w0, %k0 : i32 %q1 = add %w1, %y : i32 yield %q1 }\n"
			      "%q0 = add %w0, %one : i32 yield %q0 }");
		affine s;
		value_of(t.at, &c);
		const char *name = arena_printf(&memory, "w%d", loops - 1);
		assert_true(affine_of(&c, named(c.func->body, name), &s));
		assert_string_equal(show(&s), loops == AFFINE_OPEN ? "0" : arena_printf(&memory, "%s*1", name));
		assert_int_equal(c.nopen, 0);
		assert_int_equal(c.depth, 0);
	}
	for (int many = 60; many <= 70; many += 10) { /* values of values */
		text t = {.arena = &memory};
		text_puts(&t, "%s0 = splat %n : i32[8]\n");
		for (int i = 1; i < many; i++) text_printf(&t, "%%s%d = add %%s%d, %%r : i32[8]\n", i, i - 1);
		text_printf(&t, "%%v = add %%s%d, %%r : i32[8]", many - 1);
		assert_string_equal(
			sum_of(t.at, &c), many == 60 ? "#0*60 + 300 + n*1" : "no sum"); /* 60 times 5 and a place */
	}
	for (int levels = 10; levels <= 14; levels += 4) { /* 2^14 visits are too many */
		text t = {.arena = &memory};
		text_puts(&t, "%s0 = splat %n : i32[8]\n");
		for (int i = 1; i < levels; i++)
			text_printf(&t, "%%s%d = add %%s%d, %%s%d : i32[8]\n", i, i - 1, i - 1);
		text_printf(&t, "%%v = add %%s%d, %%s%d : i32[8]", levels - 1, levels - 1);
		assert_string_equal(sum_of(t.at, &c), levels == 10 ? "n*1024" : "no sum");
	}
	/* scalars that only the device knows are looked through for a counter, so far and no further */
	for (int deep = 20; deep <= 70; deep += 50) {
		text t = {.arena = &memory};
		text_puts(&t, "%s = for %zero, %m, %one, %n" FOR ": i32 (%k: i32, %w: i32) { %s0 = add %k, %d : i32\n");
		for (int i = 1; i < deep; i++) text_printf(&t, "%%s%d = add %%d, %%s%d : i32\n", i, i - 1);
		text_printf(&t, "%%v = add %%d, %%s%d : i32 yield %%v }", deep - 1);
		assert_string_equal(sum_of(t.at, &c), deep == 20 ? "d*21 + k*1" : "v*1");
	}
#undef CARRIED
}

/* ---- masks ---- */

static const char *write_bound(void *out, const mask_bound *b)
{
	text *t = out;
	if (t->n) text_puts(t, "; ");
	if (b)
		text_printf(t, "%s%s <= %s%s%s", b->from_zero ? "0 <= " : "", show(&b->low), show(&b->high),
			b->if_not_negative ? " if it is not negative" : "", b->wide ? " wide" : "");
	else
		text_puts(t, "more");
	return NULL;
}

static void masks(void **state)
{
	(void)state;
#define U "%ru = bitcast %r : u32[8] "
#define MAX(a, b) "%t = max " a ", " b " : i32 %w = bitcast %t : u32 %e = splat %w : u32[8] "
	static const struct {
		const char *body, *says;
	} rows[] = {
		{"%v = lt %r, %ns : bool[8]", "#0*1 + 5 <= -1 + n*1"},
		{"%v = le %r, %ns : bool[8]", "#0*1 + 5 <= n*1"},
		{"%v = gt %r, %ns : bool[8]", "n*1 <= #0*1 + 4"},
		{"%v = ge %r, %ns : bool[8]", "n*1 <= #0*1 + 5"},
		{"%v = eq %r, %ns : bool[8]", "more"},
		{"%v = splat %b : bool[8]", "more"},
		{"%v = const {value=true} : bool[8]", ""},
		{"%v = const {value=false} : bool[8]", "more"},
		{"%s = lt %r, %ns : bool[8] %t = lt %r, %ms : bool[8] %v = and %s, %t : bool[8]",
			"#0*1 + 5 <= -1 + n*1; #0*1 + 5 <= -1 + m*1"},
		{"%s = lt %r, %ns : bool[8] %t = lt %r, %ms : bool[8] %v = or %s, %t : bool[8]", "more"},
		{"%t = lt %r, %ns : bool[8] %w = expand_dims %t {axis=0} : bool[1,8] %v = broadcast %w : bool[4,8]",
			"#1*1 + 5 <= -1 + n*1"},
		{"%t = lt %r, %ns : bool[8] %w = expand_dims %t {axis=0} : bool[1,8] "
		 "%v = permute %w {order=[1,0]} : bool[8,1]",
			"#0*1 + 5 <= -1 + n*1"},
		{"%t = lt %r, %ns : bool[8] %w = expand_dims %t {axis=1} : bool[8,1] %z = expand_dims %w {axis=2} : "
		 "bool[8,1,1] %v = permute %z {order=[1,2,0]} : bool[1,1,8]",
			"#2*1 + 5 <= -1 + n*1"},
		{"%t = convert %r : i64[8] %w = splat %l : i64[8] %v = lt %t, %w : bool[8]",
			"#0*1 + 5 <= -1 + l*1 wide"},
		{"%t = splat %x : f32[8] %v = lt %t, %t : bool[8]", "more"},
		{"%t = splat %a : (*f32)[8] %v = lt %t, %t : bool[8]", "more"},
		{"%t = mul %r, %r : i32[8] %v = lt %t, %ns : bool[8]", "more"},
		{"%t = mul %r, %r : i32[8] %v = lt %ns, %t : bool[8]", "more"},
		/* unsigned ones of signed sums */
		{U MAX("%n", "%zero") "%v = lt %ru, %e : bool[8]", "0 <= #0*1 + 5 <= -1 + n*1"},
		{U MAX("%n", "%zero") "%v = gt %e, %ru : bool[8]", "0 <= #0*1 + 5 <= -1 + n*1"},
		{U MAX("%n", "%zero") "%v = le %ru, %e : bool[8]", /* n may be -1, and 0 <= 0 */
			"0 <= #0*1 + 5 <= t*1 if it is not negative"},
		{U MAX("%n", "%one") "%v = lt %ru, %e : bool[8]", "0 <= #0*1 + 5 <= -1 + t*1 if it is not negative"},
		{U MAX("%n", "%m") "%v = lt %ru, %e : bool[8]", "0 <= #0*1 + 5 <= -1 + t*1 if it is not negative"},
		{U "%w = convert %n : u32 %e = splat %w : u32[8] %v = gt %e, %ru : bool[8]",
			"0 <= #0*1 + 5 <= -1 + n*1 if it is not negative"},
		{"%ru = convert %r : u64[8] %w = bitcast %l : u64 %e = splat %w : u64[8] %v = lt %ru, %e : bool[8]",
			"more"}, /* i32 to u64: 5 is 5, -5 is not */
		{U "%e = splat %u : u32[8] %v = lt %ru, %e : bool[8]", "more"},
		{U "%t = min %n, %zero : i32 %w = bitcast %t : u32 %e = splat %w : u32[8] %v = lt %ru, %e : bool[8]",
			"0 <= #0*1 + 5 <= -1 + t*1 if it is not negative"},
		{U "%e = const {value=7} : u32[8] %v = lt %ru, %e : bool[8]", "0 <= #0*1 + 5 <= 6"},
		{U "%e = const {value=7} : u32[8] %v = le %ru, %e : bool[8]", "0 <= #0*1 + 5 <= 7"},
		{U "%e = const {value=4294967295} : u32[8] %v = lt %ru, %e : bool[8]", "more"},
	};
	unsigned wrong = 0;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		affine_context c;
		text out = {.arena = &memory};
		text_add(&out, "", 0);
		assert_null(mask_bounds(&c, value_of(rows[i].body, &c), write_bound, &out));
		if (strcmp(out.at, rows[i].says) != 0)
			wrong++, print_error("`%s` says `%s`, not `%s`\n", rows[i].body, out.at, rows[i].says);
	}
	assert_int_equal(wrong, 0);
#undef U
#undef MAX
}

/* ---- signs ---- */

static void never_negative(void **state)
{
	(void)state;
#define ASSUME(kind, number) "%z = const {value=" number "} : i32 %h = " kind " %v, %z : bool assume %h "
#define V "%v = add %d, %one : i32 "
	static const struct {
		const char *body;
		int guards; /* what the host has to see; -1: it may be below 0 */
	} rows[] = {
		{"%v = add %pid, %other : i32", 0},
		{"%v = mul %pid, %other : i32", 0},
		{"%v = div %pid, %other : i32", 0},
		{"%v = min %pid, %other : i32", 0},
		{"%v = sub %pid, %other : i32", -1},
		{"%v = add %pid, %d : i32", -1},
		{"%v = mul %d, %pid : i32", -1},
		{"%v = min %pid, %d : i32", -1},
		{"%v = neg %pid : i32", -1},
		{"%v = num_programs {axis=0} : i32", 0},
		{"%v = const {value=0} : i32", 0},
		{"%v = const {value=-1} : i32", -1},
		{"%v = add %u, %u : u32", 0},
		{"%v = add %x, %x : f32", -1},
		{"%v = ptr_add %a, %n : *f32", -1},
		{"%v = add %pid, %n : i32", 1},
		{"%w = add %pid, %n : i32 %v = add %w, %n : i32", 1},
		{"%w = add %pid, %n : i32 %v = add %w, %m : i32", 2},
		{"%v = sub %n, %m : i32", 1},
		{"%v = max %d, %zero : i32", 0},
		{"%v = max %zero, %d : i32", 0},
		{"%v = max %d, %n : i32", 1},
		{"%v = max %n, %d : i32", 1},
		{"%v = max %d, %d : i32", -1},
		{"%v = select %b, %pid, %other : i32", 0},
		{"%v = select %b, %pid, %d : i32", -1},
		{"%v = select %b, %d, %pid : i32", -1},
		{"%v = select %b, %n, %pid : i32", 1},
		{"%v = rem %pid, %d : i32", 0},
		{"%v = rem %n, %d : i32", 1},
		{"%v = rem %d, %pid : i32", -1},
		{"%v = shr %pid, %one : i32", 0},
		{"%v = shr %n, %one : i32", 1},
		{"%v = shr %d, %one : i32", -1},
		{"%v = shl %pid, %one : i32", -1},
		{"%v = hint %pid {kind=multiple_of values=[4]} : i32", 0},
		{"%v = hint %d {kind=multiple_of values=[4]} : i32", -1},
		{"%v = hint %n {kind=multiple_of values=[4]} : i32", 1},
		{"%v = convert %pid : i64", 0},
		{"%v = convert %d : i64", -1},
		{"%w = bitcast %d : u32 %v = convert %w : i64", 0},
		{"%w = bitcast %d : u32 %v = convert %w : i32", -1},
		{"%v = bitcast %u : i32", -1},
		/* assumptions, of the value, in front of what it is for */
		{V ASSUME("ge", "0"), 0},
		{V ASSUME("gt", "-1"), 0},
		{V ASSUME("ge", "3"), 0},
		{V ASSUME("ge", "-1"), -1},
		{V ASSUME("gt", "-2"), -1},
		{V ASSUME("ne", "0"), -1},
		{V ASSUME("le", "0"), -1},
		{V "%h = ge %v, %n : bool assume %h ", -1},
		{V "%h = ge %n, %v : bool assume %h ", -1},
		{V "%h = ge %v, %zero : bool print %h {text=\"\"} ", -1},
		{V "if %b { %h = ge %v, %zero : bool assume %h yield } else { yield } ", -1},
		/* what loops carry, by induction */
		{"%v = for %zero, %m, %one, %zero" FOR ": i32 (%k: i32, %s: i32) { %q = add %s, %pid : i32 yield %q }",
			0},
		{"%v = for %zero, %m, %one, %zero" FOR ": i32 (%k: i32, %s: i32) { %q = add %s, %k : i32 yield %q }",
			0},
		{"%v = for %zero, %m, %one, %zero" FOR ": i32 (%k: i32, %s: i32) { %q = add %s, %d : i32 yield %q }",
			-1},
		{"%v = for %zero, %m, %one, %d" FOR ": i32 (%k: i32, %s: i32) { %q = add %s, %pid : i32 yield %q }",
			-1},
		{"%v = for %d, %m, %one, %zero" FOR ": i32 (%k: i32, %s: i32) { %q = add %s, %k : i32 yield %q }", -1},
		{"%v = if %b : i32 { yield %pid } else { yield %other }", 0},
		{"%v = if %b : i32 { yield %pid } else { yield %d }", -1},
		{"%v = while %zero : i32 (%s: i32) { condition %b, %s } do (%w: i32) { %q = add %w, %pid : i32 yield "
		 "%q }",
			0},
		{"%v = while %zero : i32 (%s: i32) { condition %b, %s } do (%w: i32) { %q = add %w, %d : i32 yield %q "
		 "}",
			-1},
	};
	unsigned wrong = 0;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		int_range s = {0};
		ir_value *v = value_of(arena_printf(&memory, "%s print %%b {text=\"here\"}", rows[i].body), &s.context);
		s.at = s.context.func->body->last->prev;
		bool good = int_range_never_negative(&s, v);
		if (good != (rows[i].guards >= 0) || (good && s.nguards != (unsigned)rows[i].guards))
			wrong++, print_error("`%s` is %s with %u guards, not %d\n", rows[i].body,
					 good ? "never negative" : "open", s.nguards, rows[i].guards);
	}
	assert_int_equal(wrong, 0);
	/* an assumption behind the place */
	int_range late = {0};
	ir_value *v = value_of(V "print %b {text=\"here\"} " ASSUME("ge", "0"), &late.context);
	late.at = v->def->next;
	assert_false(int_range_never_negative(&late, v));
	late.at = late.context.func->body->last;
	assert_true(int_range_never_negative(&late, v));
#undef ASSUME
#undef V
}

/* More guards than there is room for are no proof; the same one again is none more. */
static void guards(void **state)
{
	(void)state;
	int_range s = {0};
	for (int n = 0; n < MOST_GUARDS; n++) {
		affine sum = {0};
		assert_true(affine_add_number(&sum, n + 1));
		for (int again = 0; again < 2; again++) assert_true(int_range_guard(&s, &sum));
		assert_int_equal(s.nguards, n + 1);
	}
	affine more = {0};
	assert_true(affine_add_number(&more, MOST_GUARDS + 1));
	assert_false(int_range_guard(&s, &more));
	assert_int_equal(s.nguards, MOST_GUARDS);
	ir_value *v = value_of("%w = add %n, %zero : i32 %v = add %pid, %n : i32", &s.context);
	s.at = s.context.func->body->last;
	assert_false(int_range_never_negative(&s, v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sums),
		TEST(carried_sums),
		TEST(room),
		TEST(ends),
		TEST(masks),
		TEST(never_negative),
		TEST(guards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
