/* A checked program: what its files declare, and each autotune block beside the kernel that it is of. */
#include "internal.h"

sema_program *sema_load(arena *a, diags *ds, names *n, source_set *sources, source_file *main_file)
{
	sema_program *p = ARENA_NEW(a, sema_program);
	*p = (sema_program){.arena = a, .diags = ds, .names = n, .sources = sources};
	sema_load_files(p, main_file);
	for (uint32_t i = 0; i < p->autotunes.n; i++)
		if (p->autotunes.at[i]->kind == AST_AUTOTUNE) autotune_check(p, p->autotunes.at[i]);
	return p;
}

size_t sema_kernel_count(const sema_program *p)
{
	return p->kernels.n;
}

const char *sema_kernel_name(const sema_program *p, size_t i)
{
	return i < p->kernels.n ? p->kernels.at[i]->name : NULL;
}
