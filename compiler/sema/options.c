/* What may be bound by name from outside: a kernel's parameters and its options. */
#include "internal.h"

#include <assert.h>
#include <string.h>

const ast *find_parameter(const ast *kernel, const char *name)
{
	const ast *list = kernel->kids[0];
	for (uint32_t i = 0; list && i < list->nkids; i++)
		if (list->kids[i] && list->kids[i]->text && strcmp(list->kids[i]->text, name) == 0)
			return list->kids[i];
	return NULL;
}

const kernel_option kernel_options[KERNEL_OPTIONS + 1] = {
	{"num_warps", "1, 2, 4, 8, 12 or 16", 1, 16, true},
	{"num_stages", "1 to 16", 1, 16, false},
	{"num_ctas", "1, 2, 4, 8 or 16", 1, 16, true},
	{"maxnreg", "16 to 255", 16, 255, false},
	{"max_registers", "0 to 65536", 0, 65536, false},
	{"max_spills", "0 to 1000000", 0, 1000000, false},
	{"max_shared", "0 to 1000000", 0, 1000000, false},
	{"strict", "true or false", 0, 1, false},
	{"launch_pdl", "true or false", 0, 1, false},
	{0},
};

const kernel_option *kernel_option_find(const char *name)
{
	for (const kernel_option *o = kernel_options; o->name; o++)
		if (strcmp(o->name, name) == 0) return o;
	return NULL;
}

const kernel_option *kernel_option_constant_name(const char *name)
{
	const kernel_option *o = kernel_option_find(name);
	return o && o - kernel_options < 3 ? o : NULL; /* ORDER kernel_options */
}

uint32_t *kernel_option_field(ir_func *f, const kernel_option *o)
{
	assert(o >= kernel_options && o < kernel_options + KERNEL_OPTIONS);
	uint32_t *fields[] = {&f->num_warps, &f->num_stages, &f->num_ctas, &f->maxnreg, &f->max_registers,
		&f->max_spills, &f->max_shared, &f->strict, &f->launch_pdl}; /* ORDER kernel_options */
	return fields[o - kernel_options];
}

uint32_t kernel_option_value(sema *s, const kernel_option *o)
{
	uint32_t v = *kernel_option_field(s->func, o);
	return v >= o->minimum && v <= o->maximum ? v : o->maximum;
}

sval kernel_option_constant(sema *s, const kernel_option *o, span at)
{
	uint32_t v = kernel_option_value(s, o);
	return o->maximum == 1 ? sval_bool(v, at) : sval_typed_int(SCALAR_I32, v, at);
}

bool kernel_option_check(sema *s, const kernel_option *o, sval v, uint32_t *out, span at)
{
	int64_t n;
	bool flag;
	const char *what = arena_printf(s->arena, "option '%s'", o->name);
	if (o->maximum == 1) {
		if (!sema_as_const_bool(s, v, &flag, what)) return false;
		*out = flag;
		return true;
	}
	if (!sema_as_const_int(s, v, &n, what)) return false;
	bool fine = n >= o->minimum && n <= o->maximum && (!o->power_of_two || (n & (n - 1)) == 0);
	fine |= o == kernel_options && n == IR_DEALT_WARPS; /* num_warps: three groups of rows */
	if (!fine) {
		sema_error(s, 607, at, "%s must be %s, found %lld", o->name, o->allowed, (long long)n);
		return false;
	}
	*out = (uint32_t)n;
	return true;
}
