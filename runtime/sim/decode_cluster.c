/* barrier.cluster and mapa: what programs of one cluster do together. */
#include "parse.h"

#include <string.h>

/* barrier.cluster.arrive{.release, .relaxed}{.aligned}, barrier.cluster.wait{.acquire}{.aligned} */
static bool barriers(parser *p)
{
	bool aligned = decode_has(p, "aligned"), arrives = decode_has(p, "arrive"), relaxed = decode_has(p, "relaxed");
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = arrives ? sim_step_cluster_arrive : sim_step_cluster_wait;
	in->exchanges = aligned;
	in->releases = arrives && !relaxed;
	return true;
}

/* mapa{.shared::cluster}.u32 d, a, rank */
static bool maps(parser *p)
{
	const operand *o = p->operands;
	scalar type;
	bool shared = p->nparts == 3 && strcmp(p->parts[1], "shared::cluster") == 0;
	if ((p->nparts != 2 && !shared) || !decode_type(p->parts[p->nparts - 1], &type)) return decode_unknown(p);
	uint8_t bytes = (uint8_t)scalar_bytes(type);
	uint32_t a, rank;
	if (p->noperands != 3 || o[0].kind != OPERAND_REGISTER || o[0].bytes != bytes || (bytes != 4 && bytes != 8))
		return decode_wrong(p, "wrong operands");
	if (!decode_unit(p, &o[1], bytes, &a) || !decode_unit(p, &o[2], 4, &rank)) return false;
	sim_instr *in = decode_new(p, SIM_STEP);
	if (!in) return false;
	in->step = sim_step_map_rank;
	in->d = o[0].unit;
	in->a = a;
	in->b = rank;
	in->wide[0] = bytes;
	return true;
}

bool decode_cluster(parser *p)
{
	if (strcmp(p->parts[0], "mapa") == 0) return maps(p);
	return strcmp(p->parts[0], "barrier") == 0 && barriers(p);
}
