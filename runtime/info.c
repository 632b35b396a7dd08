/* blk_kernel_info: what is known of the code that a launch would use. */
#include "internal.h"

#include <string.h>

blk_status blk_kernel_info(blk_kernel *k, const blk_arg *args, size_t n, blk_info *out)
{
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	variant *v;
	blk_status status = kernel_check(k);
	if (!status && !out) status = error_set(BLK_ERROR_ARGUMENT, "blk_kernel_info: no place for the result");
	if (!status) status = launch_arguments(k, args, n, bits, &key);
	if (!status) status = k->tuner ? tune_get(k, NULL, args, bits, key, &v) : variant_get(k, key, &v);
	if (status) return status;
	blk_device *d = k->head.device;
	blk_info info = {.num_warps = v->sig->num_warps,
		.threads = v->threads,
		.num_sms = d->info.num_sms,
		.target = v->sig->target ? v->sig->target : d->info.target,
		.ptx = v->ptx,
		.signature = v->sig->text,
		.from_cache = v->from_cache};
	status = d->backend->describe(d, v, &info);
	if (!status) *out = info;
	return status;
}
