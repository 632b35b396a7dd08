/* Operations that move elements (permute, join, split, cat, interleave, squeeze), look them up (gather), count them
 * (histogram), and inline assembly: every type, ranks 1 to 4, extents 1 to 16384, 1 to 8 warps.  Elements are random
 * bits, and results compare bit for bit with loops over coordinates. */
#include "device_test.h"

enum { MAX_INPUTS = 3 };

typedef struct tensor {
	scalar type;
	int n;
	void *at;
} tensor;

/* One kernel `k(z, a, b, c, n)` and what it has to write; frees the tensors. */
typedef struct check {
	suite *suite;
	const char *name, *text;
	tensor in[MAX_INPUTS];
	int nin, n;
	scalar type;
	int nout;
	void *want;
} check;

static void unflatten(const shape *s, int at, int *c)
{
	for (int d = s->rank; d-- > 0; at /= s->dim[d]) c[d] = at % s->dim[d];
}

static int flatten(const shape *s, const int *c)
{
	int at = 0;
	for (int d = 0; d < s->rank; d++) at = at * s->dim[d] + c[d];
	return at;
}

static tensor tensor_new(scalar t, int n)
{
	return (tensor){t, n, suite_alloc((size_t)n * scalar_bytes(t))};
}

static tensor tensor_random(scalar t, int n, uint64_t seed)
{
	tensor x = tensor_new(t, n);
	for (int i = 0; i < n; i++) {
		uint64_t v = suite_random(&seed);
		container_put(t, x.at, (size_t)i, t == SCALAR_BOOL ? v & 1 : scalar_truncate(t, v));
	}
	return x;
}

/* Integers from lo to hi - 1, as far as the type has them. */
static tensor tensor_between(scalar t, int n, int64_t lo, int64_t hi, uint64_t seed)
{
	tensor x = tensor_new(t, n);
	for (int i = 0; i < n; i++) {
		int64_t v = lo + (int64_t)(suite_random(&seed) % (uint64_t)(hi - lo));
		container_put(t, x.at, (size_t)i, scalar_truncate(t, (uint64_t)v));
	}
	return x;
}

static int64_t integer_at(const tensor *x, int i)
{
	uint64_t v = container_at(x->type, x->at, (size_t)i);
	unsigned unused = 64 - scalar_bits(x->type);
	return scalar_is_signed(x->type) ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

static void finish(check *c)
{
	void *got = suite_alloc((size_t)c->nout * scalar_bytes(c->type));
	const void *in[MAX_INPUTS];
	size_t bytes[MAX_INPUTS];
	for (int i = 0; i < c->nin; i++) {
		in[i] = c->in[i].at;
		bytes[i] = (size_t)c->in[i].n * scalar_bytes(c->in[i].type);
	}
	bool good =
		suite_run(c->suite, c->name, c->text, NULL, 0, c->type, got, (size_t)c->nout, in, bytes, c->nin, c->n);
	int wrong = 0;
	for (int i = 0; good && i < c->nout; i++) {
		uint64_t have = container_at(c->type, got, (size_t)i), want = container_at(c->type, c->want, (size_t)i);
		if (have != want && wrong++ < 3)
			printf("%s: element %d is 0x%llx, expected 0x%llx\n", c->name, i, (unsigned long long)have,
				(unsigned long long)want);
	}
	suite_verdict(c->suite, good, wrong, c->text);
	for (int i = 0; i < c->nin; i++) free(c->in[i].at);
	free(c->want);
	free(got);
}

/* ---- what moves elements ---- */

/* An extent is no power of two. */
static bool is_odd(const shape *s)
{
	bool odd = false;
	for (int d = 0; d < s->rank; d++) odd |= (s->dim[d] & (s->dim[d] - 1)) != 0;
	return odd;
}

typedef enum move_kind { JOIN, SPLIT, CAT, INTERLEAVE, PERMUTE, SQUEEZE } move_kind;
static const char *const move_names[] = {"join", "split", "cat", "interleave", "permute", "squeeze"};

typedef struct move {
	move_kind kind;
	int axis, order[4];
} move;

/* False where the operation does not exist for the shape. */
static bool result_shape(const move *m, const shape *in, shape *out)
{
	*out = *in;
	if ((m->kind == CAT || m->kind == INTERLEAVE) && in->rank == 4 && is_odd(in)) return false;
	switch (m->kind) {
	case JOIN:
		if (in->rank == 4) return false;
		out->dim[out->rank++] = 2;
		return true;
	case SPLIT: out->rank--; return in->dim[in->rank - 1] == 2;
	case CAT: out->dim[m->axis] *= 2; return true;
	case INTERLEAVE: out->dim[in->rank - 1] *= 2; return true;
	case PERMUTE:
		for (int d = 0; d < in->rank; d++) out->dim[d] = in->dim[m->order[d]];
		return true;
	default:
		if (in->dim[m->axis] != 1) return false;
		for (int d = m->axis; d + 1 < in->rank; d++) out->dim[d] = in->dim[d + 1];
		return --out->rank > 0;
	}
}

/* Which operand, and which element of it, element `at` of the result is; split's second half is result `half`. */
static int source(const move *m, const shape *in, const shape *out, int half, int at, int *operand)
{
	int c[4] = {0}, from[4] = {0};
	unflatten(out, at, c);
	*operand = 0;
	memcpy(from, c, sizeof from);
	switch (m->kind) {
	case JOIN: *operand = c[in->rank]; break;
	case SPLIT: from[out->rank] = half; break;
	case CAT:
		*operand = c[m->axis] >= in->dim[m->axis];
		from[m->axis] %= in->dim[m->axis];
		break;
	case INTERLEAVE:
		*operand = c[in->rank - 1] & 1;
		from[in->rank - 1] /= 2;
		break;
	case PERMUTE:
		for (int d = 0; d < in->rank; d++) from[m->order[d]] = c[d];
		break;
	case SQUEEZE:
		for (int d = in->rank - 1; d > m->axis; d--) from[d] = c[d - 1];
		from[m->axis] = 0;
		break;
	}
	return flatten(in, from);
}

static void expression(char *out, size_t room, const move *m, const shape *in)
{
	switch (m->kind) {
	case CAT: snprintf(out, room, "cat(a, b, axis = %d)", m->axis); break;
	case PERMUTE: {
		size_t at = (size_t)snprintf(out, room, "permute(a, [");
		for (int d = 0; d < in->rank; d++)
			at += (size_t)snprintf(out + at, room - at, "%s%d", d ? ", " : "", m->order[d]);
		snprintf(out + at, room - at, "])");
		break;
	}
	case SQUEEZE: snprintf(out, room, "squeeze(a, %d)", m->axis); break;
	case SPLIT: snprintf(out, room, "split(a)"); break;
	default: snprintf(out, room, "%s(a, b)", move_names[m->kind]); break;
	}
}

static void run_move(suite *s, const move *m, const shape *in, scalar t, int warps)
{
	char name[128], text[4096], what[64], from[512], to[512], dims[64];
	shape out;
	if (!result_shape(m, in, &out)) return;
	expression(what, sizeof what, m, in);
	snprintf(name, sizeof name, "%s.%s.%s.warps%d", what, scalar_name(t), shape_name(dims, sizeof dims, in), warps);
	if (!suite_wants(s, name)) return;
	offsets(from, sizeof from, in);
	offsets(to, sizeof to, &out);
	int n = product(in), nout = product(&out), halves = m->kind == SPLIT ? 2 : 1;
	size_t at = (size_t)snprintf(text, sizeof text,
		"kernel k(z: *%s, x: *const %s, y: *const %s, n: i32) grid(1) options(num_warps = %d) {\n"
		"let a = load(x + (%s));\nlet b = load(y + (%s));\n",
		scalar_name(t), scalar_name(t), scalar_name(t), warps, from, from);
	if (halves == 1)
		snprintf(text + at, sizeof text - at, "store(z + (%s), %s);\n}\n", to, what);
	else if (out.rank)
		snprintf(text + at, sizeof text - at,
			"let (p, q) = %s;\nstore(z + (%s), p);\nstore(z + %d + (%s), q);\n}\n", what, to, nout, to);
	else
		snprintf(text + at, sizeof text - at, "let (p, q) = %s;\nstore(z, p);\nstore(z + 1, q);\n}\n", what);
	check c = {.suite = s, .name = name, .text = text, .nin = 2, .n = n, .type = t, .nout = halves * nout};
	for (int i = 0; i < 2; i++) c.in[i] = tensor_random(t, n, (uint64_t)(n + 7 * i));
	c.want = suite_alloc((size_t)c.nout * scalar_bytes(t));
	for (int i = 0; i < c.nout; i++) {
		int operand, place = source(m, in, &out, i / nout, i % nout, &operand);
		container_put(t, c.want, (size_t)i, container_at(t, c.in[operand].at, (size_t)place));
	}
	finish(&c);
}

static const scalar all_types[] = {SCALAR_F32, SCALAR_F16, SCALAR_I8, SCALAR_F64, SCALAR_BOOL, SCALAR_BF16, SCALAR_I16,
	SCALAR_U32, SCALAR_F8E4M3, SCALAR_I64, SCALAR_U8, SCALAR_I32, SCALAR_F8E5M2, SCALAR_U16, SCALAR_U64};
enum { NTYPES = sizeof all_types / sizeof all_types[0] };

static const shape shapes[] = {
	{1, {1}},
	{1, {2}},
	{1, {64}},
	{1, {512}},
	{1, {16384}},
	{2, {1, 2}},
	{2, {2, 1}},
	{2, {32, 2}},
	{2, {16, 64}},
	{2, {1, 16384}},
	{2, {16384, 1}},
	{2, {4096, 2}},
	{3, {4, 8, 16}},
	{3, {1, 64, 2}},
	{3, {16, 1, 32}},
	{3, {2, 2, 2}},
	{4, {2, 4, 8, 16}},
	{4, {8, 4, 1, 2}},
	{4, {1, 32, 16, 2}},
	{1, {3}},
	{1, {192}},
	{1, {127}},
	{1, {5120}},
	{2, {5, 2}},
	{2, {96, 80}},
	{2, {24, 64}},
	{2, {1, 12}},
	{3, {3, 5, 16}},
	{3, {4, 12, 2}},
	{4, {2, 3, 4, 10}},
};
enum { NSHAPES = sizeof shapes / sizeof shapes[0] };

/* Warps for a case; the longest tiles keep away from one warp, where each thread would hold hundreds of registers. */
static int warps_of(unsigned number, int elements)
{
	static const int warps[] = {4, 1, 8};
	return elements > 4096 ? warps[number % 2 * 2] : warps[number % 3];
}

static void run_moves(suite *s)
{
	unsigned number = 0;
	for (int kind = JOIN; kind <= SQUEEZE; kind++)
		for (int k = 0; k < NSHAPES; k++) {
			bool by_axis = kind == CAT || kind == SQUEEZE;
			for (int axis = 0; axis < (by_axis ? shapes[k].rank : 1); axis++)
				for (int t = 0; t < 2 && kind != PERMUTE; t++, number++) {
					move m = {.kind = (move_kind)kind, .axis = axis};
					run_move(s, &m, &shapes[k], all_types[number % NTYPES],
						warps_of(number / 2 + (unsigned)k, product(&shapes[k])));
				}
		}
}

/* Every order of the dimensions. */
static void run_permutes(suite *s)
{
	unsigned number = 0;
	for (int k = 0; k < NSHAPES; k++) {
		int rank = shapes[k].rank, codes = 1;
		for (int i = 0; i < rank; i++) codes *= rank;
		for (int code = 0; code < codes; code++) {
			move m = {.kind = PERMUTE};
			unsigned seen = 0;
			for (int i = 0, rest = code; i < rank; i++, rest /= rank) {
				m.order[i] = rest % rank;
				seen |= 1u << m.order[i];
			}
			if (seen != (1u << rank) - 1) continue;
			run_move(s, &m, &shapes[k], all_types[number % NTYPES], warps_of(number, product(&shapes[k])));
			number++;
		}
	}
}

/* ---- gather ---- */

static void run_gather(suite *s, const shape *x, int axis, int extent, scalar t, scalar index, int warps)
{
	char name[128], text[4096], from[512], to[512], dims[64];
	shape out = *x;
	out.dim[axis] = extent;
	if (index == SCALAR_I8 && x->dim[axis] > 128) index = SCALAR_I16;
	if (index == SCALAR_U8 && x->dim[axis] > 256) index = SCALAR_U16;
	snprintf(name, sizeof name, "gather.%s.%s.axis%d.%d.by.%s.warps%d", scalar_name(t),
		shape_name(dims, sizeof dims, x), axis, extent, scalar_name(index), warps);
	if (!suite_wants(s, name)) return;
	offsets(from, sizeof from, x);
	offsets(to, sizeof to, &out);
	snprintf(text, sizeof text,
		"kernel k(z: *%s, x: *const %s, y: *const %s, n: i32) grid(1) options(num_warps = %d) {\n"
		"let a = load(x + (%s));\nlet i = load(y + (%s));\nstore(z + (%s), gather(a, i, axis = %d));\n}\n",
		scalar_name(t), scalar_name(t), scalar_name(index), warps, from, to, to, axis);
	check c = {.suite = s, .name = name, .text = text, .nin = 2, .type = t, .nout = product(&out)};
	c.in[0] = tensor_random(t, product(x), (uint64_t)product(x));
	c.in[1] = tensor_between(index, c.nout, 0, x->dim[axis], (uint64_t)extent);
	c.want = suite_alloc((size_t)c.nout * scalar_bytes(t));
	for (int i = 0; i < c.nout; i++) {
		int at[4];
		unflatten(&out, i, at);
		at[axis] = (int)integer_at(&c.in[1], i);
		container_put(t, c.want, (size_t)i, container_at(t, c.in[0].at, (size_t)flatten(x, at)));
	}
	finish(&c);
}

static void run_gathers(suite *s)
{
	static const scalar indices[] = {
		SCALAR_I32, SCALAR_I64, SCALAR_U16, SCALAR_I8, SCALAR_U64, SCALAR_U8, SCALAR_U32, SCALAR_I16};
	unsigned number = 0;
	for (int k = 0; k < NSHAPES; k++)
		for (int axis = 0; axis < shapes[k].rank; axis++)
			for (int e = 0; e < 3; e++, number++) {
				int own = shapes[k].dim[axis], extent = e == 0       ? own
									: e == 1     ? 1
									: own > 1024 ? 2
										     : 4 * own;
				scalar t = all_types[number % NTYPES];
				run_gather(s, &shapes[k], axis, extent, t, indices[number % 8],
					warps_of(number, product(&shapes[k])));
			}
}

/* Out of range any element of the line may come, but nothing else: x holds its own places.  The simulator reports it
 * instead (run/sim.sh). */
static void run_gather_outside(suite *s, scalar index, int warps)
{
	static const shape x = {2, {16, 32}};
	char name[64], text[1024], at[256];
	snprintf(name, sizeof name, "gather.outside.by.%s.warps%d", scalar_name(index), warps);
	blk_device_info info;
	if (!suite_wants(s, name) || blk_device_query(s->device, &info) != BLK_OK || info.kind == BLK_DEVICE_SIM)
		return;
	offsets(at, sizeof at, &x);
	snprintf(text, sizeof text,
		"kernel k(z: *i32, y: *const %s, n: i32) grid(1) options(num_warps = %d) {\nlet o = %s;\n"
		"let g = gather(o + n, load(y + o), axis = 0);\nstore(z + o, g %% 32);\n}\n",
		scalar_name(index), warps, at);
	check c = {.suite = s, .name = name, .text = text, .nin = 1, .n = 0, .type = SCALAR_I32, .nout = 512};
	c.in[0] = tensor_random(index, 512, (uint64_t)warps);
	c.want = suite_alloc(512 * 4);
	for (int i = 0; i < 512; i++) container_put(SCALAR_I32, c.want, (size_t)i, (uint64_t)(i % 32));
	finish(&c);
}

/* ---- histogram ---- */

static void run_histogram(suite *s, const shape *x, int bins, scalar t, bool masked, int warps)
{
	char name[128], text[2048], from[512], dims[64];
	snprintf(name, sizeof name, "histogram.%s.%s.%d%s.warps%d", scalar_name(t), shape_name(dims, sizeof dims, x),
		bins, masked ? ".masked" : "", warps);
	if (!suite_wants(s, name)) return;
	offsets(from, sizeof from, x);
	snprintf(text, sizeof text,
		"kernel k(z: *i32, x: *const %s, y: *const bool, n: i32) grid(1) options(num_warps = %d) {\n"
		"let o = %s;\nstore(z + arange(0, %d), histogram(load(x + o), %d%s));\n}\n",
		scalar_name(t), warps, from, bins, bins, masked ? ", mask = load(y + o)" : "");
	int n = product(x);
	check c = {.suite = s, .name = name, .text = text, .nin = 2, .type = SCALAR_I32, .nout = bins};
	c.in[0] = tensor_between(t, n, -(bins / 4) - 2, bins + bins / 4 + 2, (uint64_t)bins);
	c.in[1] = tensor_random(SCALAR_BOOL, n, (uint64_t)n);
	int32_t *want = c.want = suite_alloc((size_t)bins * 4);
	for (int i = 0; i < n; i++) {
		int64_t v = integer_at(&c.in[0], i);
		bool counts = !masked || integer_at(&c.in[1], i);
		if (counts && (uint64_t)v < (uint64_t)bins) want[v]++;
	}
	finish(&c);
}

static void run_histograms(suite *s)
{
	static const scalar types[] = {
		SCALAR_I32, SCALAR_U8, SCALAR_I64, SCALAR_I8, SCALAR_U32, SCALAR_I16, SCALAR_U64, SCALAR_U16};
	static const int bins[] = {1, 2, 16, 128, 256, 1024, 16384, 96, 224};
	unsigned number = 0;
	for (int k = 0; k < NSHAPES; k++)
		for (int b = 0; b < 9; b++, number++) {
			if (b > 6 ? k % 3 != 0 : number % 2 && b != 4) continue;
			run_histogram(s, &shapes[k], bins[b], types[(number / 2 + (unsigned)k) % 8], number / 2 % 2,
				warps_of(number / 2, product(&shapes[k])));
		}
}

/* ---- programs ---- */

/* i32 in, i32 out; the reference fills z from x and n. */
typedef struct program {
	const char *name, *body;
	int nin, nout, n;
	void (*want)(const int32_t *x, int32_t *z, int n);
} program;
#define WANT(name) static void name(const int32_t *x, int32_t *z, int n)
#define UNUSED_N (void)n

WANT(w_swapped)
{
	UNUSED_N;
	for (int i = 0; i < 128; i++) z[i] = x[i ^ 1];
}
WANT(w_carried) /* (p, q) -> (q + 1, p), n times */
{
	for (int i = 0; i < 256; i++) {
		int32_t p = x[2 * i], q = x[2 * i + 1];
		for (int k = 0; k < n; k++) {
			int32_t old = p;
			p = q + 1;
			q = old;
		}
		z[2 * i] = p;
		z[2 * i + 1] = q;
	}
}
WANT(w_chase) /* i -> i's successor, doubled n times */
{
	int32_t next[512], then[512];
	for (int i = 0; i < 512; i++) next[i] = x[i] & 511;
	for (int k = 0; k < n; k++) {
		for (int i = 0; i < 512; i++) then[i] = next[next[i]];
		memcpy(next, then, sizeof next);
	}
	memcpy(z, next, sizeof next);
}
WANT(w_count_loop)
{
	for (int b = 0; b < 128; b++) z[b] = 0;
	for (int i = 0; i < 64 * n; i++) z[x[i] & 127]++;
}
WANT(w_reduced)
{
	UNUSED_N;
	int32_t m[32];
	for (int i = 0; i < 32; i++) {
		m[i] = x[i * 64];
		for (int j = 1; j < 64; j++)
			if (x[i * 64 + j] > m[i]) m[i] = x[i * 64 + j];
	}
	for (int i = 0; i < 128; i++) z[i] = m[x[i] & 31];
}
WANT(w_reversed)
{
	UNUSED_N;
	for (int i = 0; i < 1024; i++) z[i] = x[1023 - i];
}
WANT(w_computed)
{
	UNUSED_N;
	(void)x;
	for (int b = 0; b < 8; b++) z[b] = 0;
	for (int i = 0; i < 256; i++) z[i % 7]++;
	for (int b = 0; b < 8; b++) z[8 + b] = 16 * z[b];
	for (int b = 0; b < 8; b++) z[16 + b] = b == 3 ? 64 : 0;
}
WANT(w_scalars)
{
	z[0] = n;
	z[1] = x[5];
	z[2] = x[5] - 2 * n;
	z[3] = x[0];
	z[4] = x[5];
}
WANT(w_butterfly)
{
	UNUSED_N;
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 16; j++) {
			int32_t a = x[i * 32 + j], b = x[i * 32 + 16 + j];
			z[i * 16 + j] = (int32_t)((uint32_t)a + (uint32_t)b);
			z[512 + i * 16 + j] = (int32_t)((uint32_t)a - (uint32_t)b);
		}
}
WANT(w_branch)
{
	for (int i = 0; i < 256; i++) z[i] = n > 3 ? x[i / 2 + (i & 1) * 128] : x[i];
}
WANT(w_nested)
{
	UNUSED_N;
	for (int i = 0; i < 64; i++) {
		z[i] = x[i / 2 + i % 2 * 32];
		z[64 + i] = x[i / 2 + (1 - i % 2) * 32];
	}
}
WANT(w_table)
{
	UNUSED_N;
	int32_t h[64] = {0};
	for (int i = 0; i < 512; i++) h[x[i] & 63]++;
	for (int i = 0; i < 512; i++) z[i] = h[x[i] & 63];
}
WANT(w_two_types)
{
	UNUSED_N;
	for (int i = 0; i < 256; i++) z[i] = (int8_t)x[x[i] & 255] + 3 * x[x[(i + 1) & 255] & 255];
}
WANT(w_last_axis)
{
	UNUSED_N;
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 64; j++) z[i * 64 + j] = x[i * 64 + (x[i * 64 + j] & 63)] + x[i * 64];
}
WANT(w_in_place)
{
	for (int i = 0; i < 256; i++) z[i] = x[i];
	for (int k = 0; k < n; k++) {
		int32_t old[256];
		for (int i = 0; i < 256; i++) old[i] = z[i];
		for (int i = 0; i < 256; i++) z[i] = old[(i * 5 + k) & 255] + 1;
	}
}

static const program programs[] = {
	{"swapped",
		"let o = arange(0, 64)[:, None] * 2 + arange(0, 2)[None, :];\nlet (a, b) = split(load(x + o));\n"
		"store(z + o, join(b, a));",
		128, 128, 0, w_swapped},
	{"swapped_small",
		"let o = arange(0, 64)[:, None] * 2 + arange(0, 2)[None, :];\nfor i in range(0, 64) {\n"
		"let (a, b) = split(load(x + 2 * i + arange(0, 2)));\nstore(z + 2 * i + arange(0, 2), join(b, a)); }",
		128, 128, 0, w_swapped},
	{"carried",
		"let o = arange(0, 256)[:, None] * 2 + arange(0, 2)[None, :];\nvar v = load(x + o);\n"
		"for i in range(n) { let (p, q) = split(v); v = join(q + 1, p); }\nstore(z + o, v);",
		512, 512, 7, w_carried},
	{"chase",
		"let o = arange(0, 512);\nvar i = load(x + o) & 511;\nfor k in range(n) { i = gather(i, i, 0); }\n"
		"store(z + o, i);",
		512, 512, 5, w_chase},
	{"count_in_loop",
		"var h = zeros([128], i32);\nfor k in range(n) { h += histogram(load(x + k * 64 + arange(0, 64)) & "
		"127, 128); }\n"
		"store(z + arange(0, 128), h);",
		64 * 9, 128, 9, w_count_loop},
	{"reduced",
		"let v = load(x + (arange(0, 32)[:, None] * 64 + arange(0, 64)[None, :]));\n"
		"store(z + arange(0, 128), gather(max(v, axis = 1), load(x + arange(0, 128)) & 31, 0));",
		2048, 128, 0, w_reduced},
	{"reversed", "let o = arange(0, 1024);\nstore(z + o, gather(load(x + o), 1023 - o, 0));", 1024, 1024, 0,
		w_reversed},
	{"computed",
		"let v = arange(0, 256) % 7;\nlet b = arange(0, 8);\nstore(z + b, histogram(v, 8));\n"
		"store(z + 8 + b, histogram(broadcast_to(v[:, None], [256, 16]), 8));\n"
		"store(z + 16 + b, histogram(zeros([64], i64) + 3, 8));",
		1, 24, 0, w_computed},
	{"scalars",
		"let (a, b) = split(join(n, load(x + 5)));\nstore(z, a); store(z + 1, b);\n"
		"let (c, d) = split(interleave(b, a) * join(1, 2));\nstore(z + 2, c - d);\n"
		"let t = load(x + arange(0, 8));\nstore(z + 3 + arange(0, 2), gather(t, arange(0, 2) * 5, 0));",
		8, 5, 11, w_scalars},
	{"butterfly",
		"let v = load(x + arange(0, 1024));\nlet (a, b) = split(permute(reshape(v, [32, 2, 16]), [0, 2, 1]));\n"
		"let o = arange(0, 512);\nstore(z + o, ravel(a + b)); store(z + 512 + o, ravel(a - b));",
		1024, 1024, 0, w_butterfly},
	{"branch_taken",
		"let o = arange(0, 128);\nlet a = load(x + o);\nlet b = load(x + 128 + o);\nvar v = cat(a, b);\n"
		"if n > 3 { v = interleave(a, b); }\nstore(z + arange(0, 256), v);",
		256, 256, 4, w_branch},
	{"branch_not_taken",
		"let o = arange(0, 128);\nlet a = load(x + o);\nlet b = load(x + 128 + o);\nvar v = cat(a, b);\n"
		"if n > 3 { v = interleave(a, b); }\nstore(z + arange(0, 256), v);",
		256, 256, 3, w_branch},
	{"nested",
		"let a = load(x + arange(0, 32));\nlet b = load(x + 32 + arange(0, 32));\n"
		"store(z + arange(0, 128), cat(interleave(a, b), interleave(b, a)));",
		64, 128, 0, w_nested},
	{"table", "let o = arange(0, 512);\nlet v = load(x + o) & 63;\nstore(z + o, gather(histogram(v, 64), v, 0));",
		512, 512, 0, w_table},
	{"two_types",
		"let o = arange(0, 256);\nlet v = load(x + o);\nlet a = gather(v.to(i8), v & 255, 0);\n"
		"let b = gather(v, load(x + (o + 1) % 256) & 255, 0);\nstore(z + o, a.to(i32) + 3 * b);",
		256, 256, 0, w_two_types},
	{"last_axis",
		"let o = arange(0, 8)[:, None] * 64 + arange(0, 64)[None, :];\nlet v = load(x + o);\n"
		"store(z + o, gather(v, v & 63, axis = 1) + gather(v, zeros([8, 1], i32), axis = -1));",
		512, 512, 0, w_last_axis},
	{"in_place",
		"let o = arange(0, 256);\nstore(z + o, load(x + o));\n"
		"for k in range(n) { store(z + o, gather(load(z + o), (o * 5 + k) & 255, 0) + 1); }",
		256, 256, 6, w_in_place},
};

static void run_program(suite *s, const program *p, int warps)
{
	char name[64], text[2048];
	snprintf(name, sizeof name, "%s.warps%d", p->name, warps);
	if (!suite_wants(s, name)) return;
	snprintf(text, sizeof text,
		"kernel k(z: *i32, x: *const i32, n: i32) grid(1) options(num_warps = %d) {\n%s\n}\n", warps, p->body);
	check c = {.suite = s, .name = name, .text = text, .nin = 1, .n = p->n, .type = SCALAR_I32, .nout = p->nout};
	c.in[0] = tensor_between(SCALAR_I32, p->nin, -1000, 1000, 5);
	c.want = suite_alloc((size_t)p->nout * 4);
	p->want(c.in[0].at, c.want, p->n);
	finish(&c);
}

/* ---- inline assembly ---- */

WANT(w_popc)
{
	UNUSED_N;
	for (int i = 0; i < 256; i++) z[i] = __builtin_popcount((uint32_t)x[i]);
}
WANT(w_divided)
{
	for (int i = 0; i < 256; i++) {
		uint32_t v = (uint32_t)x[i];
		z[i] = (int32_t)(v / (uint32_t)n + v % (uint32_t)n);
	}
}
WANT(w_halves)
{
	UNUSED_N;
	for (int i = 0; i < 128; i++) z[i] = (x[i] & 15) + (x[128 + i] & 15);
}
WANT(w_bytes)
{
	UNUSED_N;
	for (int i = 0; i < 256; i++) z[i] = (int8_t)(x[i] ^ (x[i] >> 3));
}
WANT(w_predicate)
{
	UNUSED_N;
	for (int i = 0; i < 256; i++) z[i] = x[i] > 10 ? 3 * x[i] : -1;
}
WANT(w_wide)
{
	UNUSED_N;
	for (int i = 0; i < 64; i++) {
		uint64_t v = (uint64_t)(int64_t)x[i] * 3;
		z[i] = (int32_t)((uint32_t)v ^ (uint32_t)(v >> 32));
	}
}
WANT(w_packed_words)
{
	UNUSED_N;
	for (int i = 0; i < 256; i++) z[i] = (int32_t)((uint32_t)x[i] + 100u);
}
WANT(w_floats)
{
	UNUSED_N;
	for (int i = 0; i < 256; i++) z[i] = 2 * x[i] + 1;
}
WANT(w_scalar_asm)
{
	(void)x;
	for (int i = 0; i < 64; i++) z[i] = __builtin_clz((uint32_t)n);
}
WANT(w_constants)
{
	UNUSED_N;
	(void)x;
	for (int i = 0; i < 64; i++) z[i] = 22;
}
WANT(w_small)
{
	UNUSED_N;
	for (int i = 0; i < 2; i++) z[i] = (int16_t)x[i] + 1;
}

WANT(w_high_bit)
{
	UNUSED_N;
	for (int i = 0; i < 256; i++) z[i] = x[i] & 256 ? 1 : 0;
}

static const program assembled[] = {
	{"asm_bool_of_high_bit",
		"let o = arange(0, 256);\nlet c = inline_asm(\"and.b32 $0, $1, 256;\", \"=r,r\", [load(x + o)], "
		"bool);\n"
		"store(z + o, c.to(i32));",
		256, 256, 0, w_high_bit},
	{"asm_popc",
		"let o = arange(0, 256);\nstore(z + o, inline_asm(\"popc.b32 $0, $1;\", \"=r,r\", [load(x + o)], "
		"i32));",
		256, 256, 0, w_popc},
	{"asm_two_results",
		"let o = arange(0, 256);\nlet (q, r) = inline_asm(\"div.u32 $0, $2, $3; rem.u32 $1, $2, $3;\", "
		"\"=&r,=r,r,r\", "
		"[load(x + o), n], (u32, u32));\nstore(z + o, (q + r).to(i32));",
		256, 256, 7, w_divided},
	{"asm_f16_pairs",
		"let o = arange(0, 128);\nlet a = (load(x + o) & 15).to(f16);\nlet b = (load(x + 128 + o) & "
		"15).to(f16);\n"
		"store(z + o, inline_asm(\"add.rn.f16x2 $0, $1, $2;\", \"=r,r,r\", [a, b], f16, pack = 2).to(i32));",
		256, 128, 0, w_halves},
	{"asm_bytes",
		"let o = arange(0, 256);\nlet a = load(x + o);\n"
		"store(z + o, inline_asm(\"xor.b32 $0, $1, $2;\", \"=r,r,r\", [a.to(i8), (a >> 3).to(i8)], i8, pack = "
		"4).to(i32));",
		256, 256, 0, w_bytes},
	{"asm_bytes_by_16",
		"let o = arange(0, 256);\nlet a = load(x + o);\n"
		"store(z + o, inline_asm(\"xor.b32 $0, $4, $8; xor.b32 $1, $5, $9; xor.b32 $2, $6, $10; xor.b32 $3, "
		"$7, $11;\", "
		"\"=&r,=&r,=&r,=&r,r,r,r,r,r,r,r,r\", [a.to(i8), (a >> 3).to(i8)], i8, pack = 16).to(i32));",
		256, 256, 0, w_bytes},
	{"asm_predicate",
		"let o = arange(0, 256);\nlet a = load(x + o);\n"
		"let c = inline_asm(\"setp.gt.s32 $0, $1, 10;\", \"=b,r\", [a], bool);\n"
		"store(z + o, inline_asm(\"selp.s32 $0, $1, -1, $2;\", \"=r,r,b\", [3 * a, c], i32));",
		256, 256, 0, w_predicate},
	{"asm_bool_in_word",
		"let o = arange(0, 256);\nlet a = load(x + o);\n"
		"let c = inline_asm(\"set.gt.u32.s32 $0, $1, 10;\", \"=r,r\", [a], bool);\n"
		"store(z + o, where(c, 3 * a, -1));",
		256, 256, 0, w_predicate},
	{"asm_wide",
		"let o = arange(0, 64);\nlet v = inline_asm(\"mul.lo.s64 $0, $1, 3;\", \"=l,l\", [load(x + "
		"o).to(i64)], u64);\n"
		"let (a, b) = inline_asm(\"mov.b64 {$0, $1}, $2;\", \"=r,=r,l\", [v], (u32, u32));\n"
		"store(z + o, (a ^ b).to(i32));",
		64, 64, 0, w_wide},
	{"asm_packed_words",
		"let o = arange(0, 256);\n"
		"store(z + o, inline_asm(\"add.s32 $0, $2, 100; add.s32 $1, $3, 100;\", \"=&r,=r,r,r\", [load(x + o)], "
		"i32, pack = 2));",
		256, 256, 0, w_packed_words},
	{"asm_f32",
		"let o = arange(0, 256);\nlet v = load(x + o).to(f32);\n"
		"store(z + o, inline_asm(\"fma.rn.f32 $0, $1, $2, $3;\", \"=f,f,f,f\", [v, 2.0, 1.0], f32).to(i32));",
		256, 256, 0, w_floats},
	{"asm_f64",
		"let o = arange(0, 256);\nlet v = load(x + o).to(f64);\n"
		"store(z + o, inline_asm(\"fma.rn.f64 $0, $1, $2, $3;\", \"=d,d,d,d\", [v, full([256], 2.0, f64), "
		"full([256], 1.0, "
		"f64)], f64).to(i32));",
		256, 256, 0, w_floats},
	{"asm_scalar", "let c = inline_asm(\"clz.b32 $0, $1;\", \"=r,r\", [n], i32);\nstore(z + arange(0, 64), c);", 1,
		64, 12345, w_scalar_asm},
	{"asm_without_arguments",
		"let (a, b) = inline_asm(\"mov.u32 $0, 5; mov.u32 $1, 7;\", \"=r,=r\", [], (i32, i32));\n"
		"let c = inline_asm(\"mov.b32 $0, 10;\", \"=r\", (), i32);\nstore(z + arange(0, 64), a + b + c);",
		1, 64, 0, w_constants},
	{"asm_fewer_than_pack",
		"let o = arange(0, 2);\nlet v = load(x + o).to(i16);\n"
		"store(z + o, inline_asm(\"add.s16 $0, $1, 1;\", \"=h,h\", [v], i16).to(i32));",
		2, 2, 0, w_small},
};

static void run_assembled(suite *s, const program *p, int warps, bool runs)
{
	if (runs) {
		run_program(s, p, warps);
		return;
	}
	char text[2048];
	if (!suite_wants(s, p->name)) return;
	snprintf(text, sizeof text, "kernel k(z: *i32, x: *const i32, n: i32) grid(1) {\n%s\n}\n", p->body);
	blk_module *module = NULL;
	bool refused = blk_module_source(s->device, p->name, text, NULL, 0, &module) != BLK_OK;
	blk_kernel *kernel;
	if (!refused) refused = blk_kernel_find(module, "k", &kernel) != BLK_OK;
	bool said = refused && strstr(blk_error(), "E0902");
	if (!said) printf("%s: %s\n", p->name, refused ? blk_error() : "accepted on a device that is not PTX");
	said ? s->passed++ : s->failed++;
	blk_module_close(module);
}

int main(int argc, char **argv)
{
	static const int warps[] = {1, 4, 8};
	blk_device_info info = {.kind = BLK_DEVICE_CPU};
	suite s;
	suite_open(&s, argc, argv);
	if (blk_device_query(s.device, &info) != BLK_OK) return 1;
	for (int w = 0; w < 3; w++) {
		for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
			run_program(&s, &programs[i], warps[w]);
		for (size_t i = 0;
			i < sizeof assembled / sizeof assembled[0] && (w == 0 || info.kind != BLK_DEVICE_CPU); i++)
			run_assembled(&s, &assembled[i], warps[w], info.kind != BLK_DEVICE_CPU);
		run_gather_outside(&s, SCALAR_I32, warps[w]);
		run_gather_outside(&s, SCALAR_I8, warps[w]);
		run_gather_outside(&s, SCALAR_U64, warps[w]);
	}
	run_moves(&s);
	run_permutes(&s);
	run_gathers(&s);
	run_histograms(&s);
	return suite_close(&s);
}
