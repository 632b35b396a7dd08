/* Kernels: a signature made ready for launches, and the questions that can be asked without compiling. */
#include "internal.h"
#include "support/scalar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives each parameter its bits of the key (package.h).  What lies beyond 64 bits is never promised, which is always
 * right. */
static void assign_bits(blk_kernel *k)
{
	unsigned next = 0, step = signature_step(k->sig);
	for (uint32_t i = 0; i < k->nparameters; i++) {
		launch_parameter *p = &k->launch[i];
		p->code = k->sig->parameters[i].code;
		if (p->code == BLK_TYPE_POINTER)
			p->misaligned = (uint8_t)(scalar_bytes((scalar)k->sig->parameters[i].element) - 1);
		p->is_integer = p->code >= BLK_TYPE_I8 && p->code <= BLK_TYPE_U64;
		p->below_step = (uint8_t)(step - 1);
		p->bit = (uint8_t)package_promise_bit(p->code == BLK_TYPE_POINTER, p->is_integer, &next);
	}
}

blk_status kernel_make(blk_module *m, signature *s, bool is_instance, blk_kernel **out)
{
	blk_kernel *k = handle_new(m->head.device, HANDLE_KERNEL, sizeof *k);
	uint32_t n = s->nparameters;
	blk_parameter *parameters = calloc(n + 1, sizeof *parameters);
	launch_parameter *launch = calloc(n + 1, sizeof *launch);
	variant_table *table = calloc(1, sizeof *table + 8 * sizeof table->slots[0]);
	if (k) pthread_mutex_init(&k->lock, NULL);
	if (!k || !parameters || !launch || !table) {
		free(parameters);
		free(launch);
		free(table);
		signature_free(s);
		if (k) {
			handle_retire(&k->head);
			pthread_mutex_destroy(&k->lock);
			handle_bury(&k->head, HANDLE_KERNEL);
		}
		return error_memory();
	}
	table->mask = 7;
	atomic_init(&k->variants, table);
	k->module = m;
	k->sig = s;
	k->parameters = parameters;
	k->launch = launch;
	k->nparameters = n;
	for (uint32_t i = 0; i < n; i++) {
		const signature_parameter *p = &s->parameters[i];
		parameters[i] = (blk_parameter){p->name, p->type, p->code == BLK_TYPE_POINTER, p->written};
		if (p->divisible || p->is_one) k->promised = true;
	}
	assign_bits(k);
	blk_status status = is_instance ? BLK_OK : computed_prepare(k);
	if (!status && !k->instances) status = tune_make(k);
	if (status)
		kernel_destroy(k);
	else
		*out = k;
	return status;
}

void kernel_destroy(blk_kernel *k)
{
	if (!handle_retire(&k->head)) return;
	computed_free(k);
	tune_destroy(k);
	variant_table *t = atomic_load(&k->variants);
	for (uint32_t i = 0; i <= t->mask; i++) {
		variant *v = atomic_load(&t->slots[i]);
		if (v) variant_free(k->head.device, v);
	}
	while (t) {
		variant_table *outgrown = t->outgrown;
		free(t);
		t = outgrown;
	}
	signature_free(k->sig);
	free(k->parameters);
	free(k->launch);
	free(k->packaged);
	pthread_mutex_destroy(&k->lock);
	handle_bury(&k->head, HANDLE_KERNEL);
}

blk_status kernel_check(const blk_kernel *k)
{
	return handle_is(k, HANDLE_KERNEL) ? BLK_OK : handle_error(k, "kernel");
}

static blk_status not_found(const blk_module *m, const char *name)
{
	char list[1024];
	size_t used = 0;
	for (size_t i = 0; i < m->nkernels && used < sizeof list; i++)
		used += (size_t)snprintf(
			list + used, sizeof list - used, "%s%s", i ? ", " : "", m->kernels[i]->sig->kernel);
	if (used >= sizeof list) memcpy(list + sizeof list - 4, "...", 4);
	if (m->nkernels == 0) return error_set(BLK_ERROR_NOT_FOUND, "%s has no kernels", m->name);
	if (!name) return error_set(BLK_ERROR_NOT_FOUND, "%s has several kernels, name one: %s", m->name, list);
	return error_set(BLK_ERROR_NOT_FOUND, "%s has no kernel \"%s\"; it has: %s", m->name, name, list);
}

blk_status blk_kernel_find(blk_module *m, const char *name, blk_kernel **out)
{
	if (!handle_is(m, HANDLE_MODULE)) return handle_error(m, "module");
	if (!out) return error_set(BLK_ERROR_ARGUMENT, "blk_kernel_find: no place for the result");
	*out = NULL;
	if (!name && m->nkernels == 1) {
		*out = m->kernels[0];
		return BLK_OK;
	}
	for (size_t i = 0; name && i < m->nkernels; i++)
		if (strcmp(m->kernels[i]->sig->kernel, name) == 0) {
			*out = m->kernels[i];
			return BLK_OK;
		}
	return not_found(m, name);
}

blk_status blk_kernel_parameters(blk_kernel *k, const blk_parameter **out, size_t *n)
{
	blk_status status = kernel_check(k);
	if (status) return status;
	if (!out || !n) return error_set(BLK_ERROR_ARGUMENT, "blk_kernel_parameters: no place for the result");
	*out = k->parameters;
	*n = k->nparameters;
	return BLK_OK;
}

const char *blk_kernel_name(blk_kernel *k)
{
	return kernel_check(k) ? "" : k->sig->kernel;
}

const char *blk_kernel_signature(blk_kernel *k)
{
	return kernel_check(k) ? "" : k->sig->text;
}

blk_status blk_kernel_grid(blk_kernel *k, const blk_arg *args, size_t n, blk_grid *out)
{
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	uint32_t grid[3];
	bool empty;
	blk_status status = kernel_check(k);
	if (!status && !out) status = error_set(BLK_ERROR_ARGUMENT, "blk_kernel_grid: no place for the result");
	if (!status) status = launch_arguments(k, args, n, bits, &key);
	if (!status) status = computed_resolve(&k, bits);
	variant *v = NULL;
	if (!status && k->tuner && k->sig->ngrid) status = tune_get(k, NULL, args, bits, key, &v);
	if (!status && !v) status = launch_requires(k, k->sig, bits);
	if (!status) status = launch_grid(k, v ? v->sig : k->sig, bits, NULL, grid, &empty);
	if (!status) *out = (blk_grid){grid[0], grid[1], grid[2]};
	return status;
}

blk_status blk_kernel_cost(blk_kernel *k, const blk_arg *args, size_t n, double *bytes, double *flops)
{
	uint64_t bits[SIGNATURE_PARAMETERS], key;
	blk_status status = kernel_check(k);
	if (!status) status = launch_arguments(k, args, n, bits, &key);
	if (!status) status = computed_resolve(&k, bits);
	if (status) return status;
	uint32_t sms = k->head.device->info.num_sms;
	const signature *s = k->sig;
	if (bytes) *bytes = signature_number(s, &s->cost_bytes, bits, sms); /* without a clause: NaN */
	if (flops) *flops = signature_number(s, &s->cost_flops, bits, sms);
	return BLK_OK;
}
