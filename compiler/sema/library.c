/* Library functions on behalf of a pass.
 *
 * A program without user files is made around the library's declarations; each call sets the builder of one lasting
 * sema state to the pass's place and inlines the function like any other.  The library's own source positions are
 * replaced by the position of the operation that it stands for, so that lines lead to what the user wrote. */
#include "library.h"

#include "internal.h"

#include <string.h>

struct sema_library {
	sema sema;
	sema_program program;
	source_set sources;
};

sema_library *sema_library_open(arena *a, diags *ds, ir_func *func)
{
	sema_library *l = ARENA_NEW(a, sema_library);
	l->sources.arena = a;
	l->program = (sema_program){.arena = a, .diags = ds, .names = names_new(a), .sources = &l->sources};
	sema_init(&l->sema, &l->program, NULL, func);
	return l;
}

sval sema_call_library(sema *s, const char *file, const char *name, const sval *args, uint32_t n, span at)
{
	sema_program *p = s->private->program;
	declaration *d = sema_library_find(p, names_intern(p->names, name, strlen(name)), file);
	if (!d || !d->fn) return sema_error(s, 899, at, "the library has no function '%s'", name);
	return sema_call_fn(s, (sval){.kind = SVAL_FN, .at = at, .fn = d->fn}, args, n, at);
}

ir_value *sema_library_call(
	sema_library *l, ir_builder *b, const char *file, const char *name, unsigned n, ir_value *const *args)
{
	sema *s = &l->sema;
	sval *values = ARENA_ARRAY(s->arena, sval, n);
	for (unsigned i = 0; i < n; i++) values[i] = sval_value(args[i], b->at);
	ir_op *last = b->before ? b->before->prev : b->block->last;
	s->b = *b;
	s->private->work = 0; /* the limit is for users' programs; this pass inlines once for each operation of one */
	sval v = sema_call_library(s, file, name, values, n, b->at);
	for (ir_op *o = last ? last->next : b->block->first; o && o != b->before; o = o->next) o->at = b->at;
	return sval_is_poison(v) ? NULL : sema_value(s, v, "the result");
}
