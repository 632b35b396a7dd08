/* A tuning key's parts: arguments as they are, or what an expression makes of them.
 *
 * In: the arguments' containers.  Out: a name and a value for each part, as records, the table and what is near see
 * them; so arguments that an expression takes for one are one to all of these. */
#include "tune.h"

const char *tune_key_name(const blk_kernel *k, uint32_t i)
{
	const tune_key *key = &k->tuner->keys[i];
	return key->parameter == UINT32_MAX ? key->computed->source : k->sig->parameters[key->parameter].name;
}

/* An expression that has no value is a value of its own. */
uint64_t tune_key_computed(const blk_kernel *k, uint32_t i, const uint64_t *bits)
{
	int64_t v;
	bool has_one =
		signature_integer(k->sig, &k->tuner->keys[i].computed->value, bits, k->head.device->info.num_sms, &v);
	return has_one ? (uint64_t)v : (uint64_t)INT64_MIN;
}
