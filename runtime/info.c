/* blk_kernel_info: what is known of the code that a launch would use. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As --specialize lists it. */
static void list_promises(const signature *s, char *to, size_t room)
{
	static const char more[] = ",...";
	size_t n = 0;
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		if (!p->divisible && !p->is_one) continue;
		int wrote = snprintf(
			to + n, room - n, p->is_one ? "%s%s=1" : "%s%s%%%u", n ? "," : "", p->name, p->divisible);
		if (wrote < 0 || n + (size_t)wrote + sizeof more > room) {
			memcpy(to + n, n ? more : more + 1, n ? sizeof more : sizeof more - 1);
			return;
		}
		n += (size_t)wrote;
	}
}

/* The code that a launch ends with; `why` gets the reason where its tensor maps send it to another. */
static blk_status settle(blk_kernel *k, const uint64_t *bits, variant **v, char *why, size_t room)
{
	tensor_map maps[SIGNATURE_MAPS];
	if (!(*v)->maps) return BLK_OK;
	blk_status status = tensor_maps_get(k->head.device, *v, bits, maps);
	if (!status) return BLK_OK;
	char *text = error_take();
	if ((status = launch_without_maps(k, status, text, v))) return status;
	snprintf(why, room, "%s", text ? text : "no tensor map could be made");
	free(text);
	return BLK_OK;
}

blk_status blk_kernel_info(blk_kernel *k, const blk_arg *args, size_t n, blk_info *out)
{
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	variant *v;
	blk_info info = {0};
	blk_status status = kernel_check(k);
	if (!status && !out) status = error_set(BLK_ERROR_ARGUMENT, "blk_kernel_info: no place for the result");
	if (!status) status = launch_arguments(k, args, n, bits, &key);
	if (!status) status = computed_resolve(&k, bits);
	if (!status) status = k->tuner ? tune_get(k, NULL, args, bits, key, &v) : variant_get(k, key, &v);
	if (status) return status;
	info.configuration = tune_configuration(k, bits, key);
	const variant *chosen = v;
	if ((status = settle(k, bits, &v, info.fallback, sizeof info.fallback))) return status;
	if (v != chosen) info.configuration = ""; /* the code for any arguments has the defaults */
	blk_device *d = k->head.device;
	info.num_warps = v->sig->num_warps;
	info.threads = v->threads;
	info.num_sms = d->info.num_sms;
	info.target = v->sig->target ? v->sig->target : d->info.target;
	info.ptx = v->ptx;
	info.signature = v->sig->text;
	info.from_cache = v->from_cache;
	info.tensor_maps = v->sig->nmaps;
	list_promises(v->sig, info.promises, sizeof info.promises);
	info.cluster = signature_cluster(v->sig);
	status = d->backend->describe(d, v, &info);
	if (!status) *out = info;
	return status;
}
