/* Loads, stores, atomics and conversions: forms with so many modifiers that their opcodes are read part by part. */
#include "parse.h"

#include <string.h>

static bool is_one_of(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(s, *list) == 0) return true;
	return false;
}

/* Cache hints change no result here. */
static bool is_hint(const char *s)
{
	static const char *const hints[] = {
		"ca", "cg", "cs", "cv", "lu", "wb", "wt", "weak", "noftz", "cache_hint", NULL};
	return is_one_of(s, hints) || strncmp(s, "L1::", 4) == 0 || strncmp(s, "L2::", 4) == 0;
}

static bool scope_of(const char *s, sim_instr *in)
{
	if (strcmp(s, "cta") == 0)
		in->scope = SCOPE_CTA;
	else if (strcmp(s, "cluster") == 0)
		in->scope = SCOPE_CLUSTER;
	else
		return strcmp(s, "gpu") == 0 || strcmp(s, "gl") == 0 || strcmp(s, "sys") == 0;
	return true;
}

static bool order_of(const char *s, sim_instr *in)
{
	bool both = strcmp(s, "acq_rel") == 0;
	if (both || strcmp(s, "acquire") == 0) in->acquires = true;
	if (both || strcmp(s, "release") == 0) in->releases = true;
	return both || strcmp(s, "acquire") == 0 || strcmp(s, "release") == 0;
}

bool decode_space(const char *s, sim_instr *in)
{
	static const struct {
		const char *name;
		uint8_t space;
	} names[] = {{"global", SPACE_GLOBAL}, {"shared", SPACE_SHARED}, {"shared::cta", SPACE_SHARED},
		{"local", SPACE_LOCAL}, {"const", SPACE_CONST}, {"param", SPACE_PARAM},
		{"shared::cluster", SPACE_SHARED}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(s, names[i].name) == 0) {
			in->space = names[i].space;
			in->in_cluster = strcmp(s, "shared::cluster") == 0;
			return true;
		}
	return false;
}

static uint8_t register_bytes(scalar t)
{
	return scalar_bytes(t) < 2 ? 2 : (uint8_t)scalar_bytes(t);
}

/* ---- Addresses and values ---- */

bool decode_address(parser *p, const operand *o, sim_instr *in)
{
	if (o->kind != OPERAND_ADDRESS) return decode_wrong(p, "an address was expected");
	in->offset = (int64_t)o->bits;
	in->wide[1] = o->bytes;
	in->a = o->unit;
	if (o->bytes == 2) return decode_wrong(p, "an address has 32 or 64 bits");
	const sim_variable *shared = o->name ? parse_variable(p, o->name, o->length) : NULL;
	if (shared && shared->space == SPACE_SHARED) { /* holds the program's rank, so it is a register */
		operand base = *o;
		base.kind = OPERAND_NAME;
		in->offset = 0;
		in->wide[1] = 4;
		return decode_unit(p, &base, 4, &in->a);
	}
	if (o->name) {
		const sim_variable *v = parse_variable(p, o->name, o->length);
		if (!v) return parse_fail(p, "%.*s is not declared", (int)(o->length < 60 ? o->length : 60), o->name);
		in->offset += (int64_t)v->address;
	}
	return true;
}

/* The registers of an access; a constant to be stored gets a unit. */
static bool registers(parser *p, const operand *o, sim_instr *in, uint32_t n, bool load)
{
	const operand *list = o->kind == OPERAND_LIST ? &p->operands[o->first] : o;
	uint32_t count = o->kind == OPERAND_LIST ? o->count : 1;
	if (count != n || n > SIM_VECTOR) return decode_wrong(p, "a wrong number of registers");
	in->nregs = (uint8_t)n;
	assert(in->bytes != 0);
	in->wide[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		const operand *r = &list[i];
		if (r->kind == OPERAND_SINK && load) {
			in->regs[i] = UINT32_MAX;
			continue;
		}
		if (load && r->kind != OPERAND_REGISTER) return decode_wrong(p, "a register was expected");
		uint8_t bytes = r->kind == OPERAND_REGISTER ? r->bytes : register_bytes((scalar)in->to);
		if (bytes < in->bytes || (in->wide[0] && in->wide[0] != bytes))
			return decode_wrong(p, "registers of a wrong size");
		in->wide[0] = bytes;
		if (!decode_unit(p, r, bytes, &in->regs[i])) return false;
	}
	return true;
}

/* ---- ld.param, st.param: registers in disguise ---- */

static bool moves(parser *p, uint32_t d, uint8_t dbytes, uint32_t a, uint8_t abytes, scalar type)
{
	sim_instr *in = decode_new(p, SIM_ALU);
	if (!in) return false;
	in->lanes = sim_lanes_convert;
	in->shadow = SHADOW_MOVE;
	in->d = d;
	in->a = a;
	in->wide[0] = dbytes;
	in->wide[1] = abytes;
	in->from = in->to = (uint8_t)type;
	return true;
}

/* A part of a parameter, or several: by its address. */
static bool parameter_parts(parser *p, scalar type, uint32_t n)
{
	const operand *o = &p->operands[1];
	sim_instr in = {.step = sim_step_load_parameter, .to = (uint8_t)type, .bytes = (uint8_t)scalar_bytes(type)};
	if (!registers(p, &p->operands[0], &in, n, true)) return false;
	if (o->percent) return decode_address(p, o, &in) && decode_add(p, SIM_STEP, &in);
	operand base = *o;
	base.kind = OPERAND_NAME;
	base.bits = 0;
	in.offset = (int64_t)o->bits;
	in.wide[1] = 8;
	return decode_unit(p, &base, 8, &in.a) && decode_add(p, SIM_STEP, &in);
}

static bool parameter(parser *p, scalar type, bool load, uint32_t n)
{
	const operand *value = &p->operands[load ? 0 : 1], *o = &p->operands[load ? 1 : 0];
	if (p->noperands != 2 || o->kind != OPERAND_ADDRESS) return decode_wrong(p, "wrong operands");
	if (load && (o->percent || n > 1 || o->bits)) return parameter_parts(p, type, n);
	uint32_t at = o->unit;
	uint8_t bytes = o->bytes;
	for (size_t i = 0; i < p->code->nparameters && !bytes; i++) {
		const sim_parameter *q = &p->code->parameters[i];
		if (strlen(q->name) != o->length || memcmp(q->name, o->name, o->length) != 0) continue;
		if (!load) return decode_wrong(p, "a kernel's parameters cannot be written");
		at = q->unit;
		bytes = 8;
	}
	if (!bytes)
		return parse_fail(
			p, "%.*s is no parameter", (int)(o->length < 60 ? o->length : 60), o->name ? o->name : "");
	if (o->bits) return decode_wrong(p, "a part of a parameter is not simulated");
	if (load) {
		if (value->kind != OPERAND_REGISTER) return decode_wrong(p, "a register was expected");
		return moves(p, value->unit, value->bytes, at, bytes, type);
	}
	uint32_t unit;
	uint8_t have = value->kind == OPERAND_REGISTER ? value->bytes : register_bytes(type);
	return decode_unit(p, value, have, &unit) && moves(p, at, bytes, unit, have, type);
}

/* ---- ld and st ---- */

static bool loads_or_stores(parser *p, bool load)
{
	scalar type;
	sim_instr proto = {0};
	uint32_t n = 1;
	if (p->nparts < 2 || !decode_type(p->parts[p->nparts - 1], &type)) return decode_unknown(p);
	for (size_t i = 1; i + 1 < p->nparts; i++) {
		const char *s = p->parts[i];
		if (decode_space(s, &proto) || is_hint(s) || scope_of(s, &proto)) continue;
		if (strcmp(s, "v2") == 0)
			n = 2;
		else if (strcmp(s, "v4") == 0)
			n = 4;
		else if (strcmp(s, "v8") == 0)
			n = 8;
		else if (strcmp(s, "nc") == 0)
			proto.constant = true;
		else if (strcmp(s, "volatile") == 0 || strcmp(s, "relaxed") == 0 || order_of(s, &proto))
			proto.is_volatile = true;
		else
			return decode_unknown(p);
	}
	if (proto.space == SPACE_PARAM) return load || n == 1 ? parameter(p, type, load, n) : decode_unknown(p);
	proto.to = (uint8_t)type;
	proto.bytes = (uint8_t)scalar_bytes(type);
	if (p->noperands != 2) return decode_wrong(p, "wrong operands");
	if (!registers(p, &p->operands[load ? 0 : 1], &proto, n, load)) return false;
	if (!decode_address(p, &p->operands[load ? 1 : 0], &proto)) return false;
	proto.step = load ? sim_step_load : sim_step_store;
	return decode_add(p, SIM_STEP, &proto) != NULL;
}

/* ---- atom and red ---- */

static const char *const atomic_names[] = {
	"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", NULL}; /* ORDER sim_atomic */

static bool atomics(parser *p, bool returns)
{
	scalar type;
	sim_instr proto = {.mode = UINT8_MAX};
	uint32_t n = 1, packed = 1;
	const char *last = p->parts[p->nparts - 1];
	char name[8] = "";
	size_t length = strlen(last);
	if (length > 2 && length < sizeof name && strcmp(last + length - 2, "x2") == 0) {
		memcpy(name, last, length - 2);
		last = name;
		packed = 2;
	}
	if (!decode_type(last, &type)) return decode_unknown(p);
	for (size_t i = 1; i + 1 < p->nparts; i++) {
		const char *s = p->parts[i];
		if (decode_space(s, &proto) || is_hint(s) || scope_of(s, &proto) || strcmp(s, "relaxed") == 0 ||
			order_of(s, &proto))
			continue;
		bool known = false;
		for (uint8_t k = 0; atomic_names[k] && !known; k++)
			if (strcmp(s, atomic_names[k]) == 0) proto.mode = k, known = true;
		if (!known && strcmp(s, "v2") == 0)
			n = 2;
		else if (!known && strcmp(s, "v4") == 0)
			n = 4;
		else if (!known && strcmp(s, "v8") == 0)
			n = 8;
		else if (!known)
			return decode_unknown(p);
	}
	if (proto.mode == UINT8_MAX || (n > 1 && returns)) return decode_unknown(p);
	bool swaps = proto.mode == 7; /* cas */
	const operand *o = p->operands;
	uint32_t at = returns ? 1 : 0;
	if (p->noperands != at + 2u + swaps) return decode_wrong(p, "wrong operands");
	proto.to = (uint8_t)type;
	proto.bytes = (uint8_t)(scalar_bytes(type) * packed);
	proto.nregs = (uint8_t)n;
	proto.d = UINT32_MAX;
	if (!registers(p, &o[at + 1], &proto, n, false) || !decode_address(p, &o[at], &proto)) return false;
	if (proto.wide[0] != proto.bytes && !(proto.wide[0] == 2 && proto.bytes == 1))
		return decode_wrong(p, "registers of a wrong size");
	if (returns && o[0].kind == OPERAND_REGISTER) {
		if (o[0].bytes != proto.wide[0]) return decode_wrong(p, "registers of a wrong size");
		proto.d = o[0].unit;
	} else if (returns && o[0].kind != OPERAND_SINK)
		return decode_wrong(p, "a register was expected");
	if (swaps && !decode_unit(p, &o[at + 2], proto.wide[0], &proto.c)) return false;
	if (p->part && proto.bytes == 4 && n == 1) {
		proto.part = p->part;
		proto.extra = p->part_unit;
	}
	proto.step = sim_step_atomic;
	return decode_add(p, SIM_STEP, &proto) != NULL;
}

/* fence.proxy.async{.global, .shared::cta, .shared::cluster}; mode: which, a bit each */
static bool fences_proxies(parser *p)
{
	sim_instr in = {.step = sim_step_proxy_fence, .mode = (1 << PROXY_COUNT) - 1};
	if (p->nparts > 3) {
		decode_space(p->parts[3], &in);
		in.mode = 1 << (in.space == SPACE_GLOBAL ? PROXY_GLOBAL : PROXY_SHARED);
	}
	return decode_add(p, SIM_STEP, &in) != NULL;
}

bool decode_access(parser *p)
{
	static const char *const nothing[] = {"prefetch", "prefetchu", "discard", "applypriority", NULL};
	const char *first = p->parts[0];
	if (strcmp(first, "ld") == 0 || strcmp(first, "ldu") == 0) return loads_or_stores(p, true);
	if (strcmp(first, "st") == 0) return loads_or_stores(p, false);
	if (strcmp(first, "atom") == 0) return atomics(p, true);
	if (strcmp(first, "red") == 0) return atomics(p, false);
	if (strcmp(first, "fence") == 0) {
		if (strcmp(p->parts[1], "mbarrier_init") == 0) return decode_simple(p, sim_step_mbarrier_fence);
		if (strcmp(p->parts[1], "proxy") == 0)
			return strncmp(p->parts[2], "async", 5) != 0 || fences_proxies(p);
	}
	if (strcmp(first, "fence") == 0 || strcmp(first, "membar") == 0) {
		sim_instr *in = decode_new(p, SIM_STEP);
		if (!in) return false;
		in->step = sim_step_fence;
		for (size_t i = 1; i < p->nparts; i++) scope_of(p->parts[i], in);
		return true;
	}
	return is_one_of(first, nothing);
}

/* ---- cvt ---- */

static bool rounding_of(const char *s, uint8_t *rounding, bool *integral)
{
	static const struct {
		const char *name;
		uint8_t rounding;
		bool integral;
	} names[] = {{"rn", ROUND_NEAREST, false}, {"rz", ROUND_ZERO, false}, {"rm", ROUND_DOWN, false},
		{"rp", ROUND_UP, false}, {"rna", ROUND_AWAY, false}, {"rni", ROUND_NEAREST, true},
		{"rzi", ROUND_ZERO, true}, {"rmi", ROUND_DOWN, true}, {"rpi", ROUND_UP, true}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(s, names[i].name) == 0) {
			*rounding = names[i].rounding;
			*integral = names[i].integral;
			return true;
		}
	return false;
}

static bool type_or_pair(const char *s, scalar *type, bool *pair)
{
	char name[8];
	size_t n = strlen(s);
	*pair = n > 2 && n < sizeof name && strcmp(s + n - 2, "x2") == 0;
	if (!*pair) return decode_type(s, type);
	memcpy(name, s, n - 2);
	name[n - 2] = 0;
	return decode_type(name, type);
}

bool decode_convert(parser *p)
{
	scalar to, from;
	bool to_pair = false, from_pair = false, integral = false, saturates = false, relu = false, flushes = false;
	uint8_t rounding = ROUND_NEAREST;
	if (strcmp(p->parts[0], "cvt") != 0) return false;
	if (p->nparts < 3) return decode_unknown(p);
	bool tf32 = strcmp(p->parts[p->nparts - 2], "tf32") == 0;
	if (tf32)
		to = SCALAR_F32;
	else if (!type_or_pair(p->parts[p->nparts - 2], &to, &to_pair))
		return decode_unknown(p);
	if (!type_or_pair(p->parts[p->nparts - 1], &from, &from_pair)) return decode_unknown(p);
	for (size_t i = 1; i + 2 < p->nparts; i++) {
		const char *s = p->parts[i];
		if (rounding_of(s, &rounding, &integral)) continue;
		if (strcmp(s, "sat") == 0 || strcmp(s, "satfinite") == 0)
			saturates = true;
		else if (strcmp(s, "relu") == 0)
			relu = true;
		else if (strcmp(s, "ftz") == 0 && (from == SCALAR_F32 || to == SCALAR_F32))
			flushes = true;
		else
			return decode_unknown(p);
	}
	const operand *o = p->operands;
	bool two = to_pair && !from_pair;
	if ((from_pair && !to_pair) || (two && from != SCALAR_F32) || (relu && integral) ||
		(rounding == ROUND_AWAY && !tf32))
		return decode_unknown(p);
	if (p->noperands != 2u + two || o[0].kind != OPERAND_REGISTER) return decode_wrong(p, "wrong operands");
	uint32_t a, b = 0;
	uint8_t have = o[1].kind == OPERAND_REGISTER ? o[1].bytes : register_bytes(from);
	if (!decode_unit(p, &o[1], have, &a) || (two && !decode_unit(p, &o[2], have, &b))) return false;
	if (have < scalar_bytes(from) * (from_pair ? 2 : 1) || o[0].bytes < scalar_bytes(to) * (to_pair ? 2 : 1))
		return decode_wrong(p, "registers of a wrong size");
	sim_instr *in = decode_new(p, SIM_ALU);
	if (!in) return false;
	in->lanes = to_pair ? sim_lanes_convert_pair : sim_lanes_convert;
	in->shadow = scalar_is_float(from) || scalar_is_float(to) || saturates ? SHADOW_ANY : SHADOW_MOVE;
	if (to_pair) in->shadow = SHADOW_PAIR;
	in->d = o[0].unit;
	in->a = a;
	in->b = b;
	in->wide[0] = o[0].bytes;
	in->wide[1] = have;
	in->wide[2] = two ? have : 0;
	in->from = (uint8_t)from;
	in->to = (uint8_t)to;
	in->rounding = rounding;
	in->saturates = saturates;
	in->exchanges = integral || (relu && to_pair);
	in->mode = tf32;
	in->releases = relu;
	in->acquires = flushes;
	return true;
}
