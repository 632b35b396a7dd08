/* What the tests of the cpu device share: a kernel built by hand, compiled, loaded and run. */
#ifndef BLK_TEST_CPU_FIXTURE_H
#define BLK_TEST_CPU_FIXTURE_H

#include "compiler/target/cpu/cpu.h"
#include "runtime/device/cpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
	arena arena;
	jmp_buf out_of_memory;
	diags diags;
	ir_func *f;
	ir_builder b;
	cpu_output out;
	const char *cpu, *features; /* null: the host's */
	char error[256];
} fixture;

static inline void begin(fixture *t)
{
	memset(t, 0, sizeof *t);
	t->arena.recover = &t->out_of_memory;
	diags_init(&t->diags, &t->arena);
	t->f = ir_func_new(&t->arena, "kernel_under_test");
	t->b = (ir_builder){.func = t->f, .block = t->f->body};
}

static inline void end(fixture *t)
{
	arena_free(&t->arena);
}

static inline ir_value *parameter(fixture *t, const char *name, scalar s, int pointer)
{
	return ir_add_param(t->f, name, (ir_type){.elem = (uint8_t)s, .pointer = (uint8_t)pointer}, (span){0});
}

static inline ir_value *build(fixture *t, ir_kind k, ir_type type, int n, ...)
{
	ir_value *args[4];
	va_list list;
	va_start(list, n);
	for (int i = 0; i < n; i++) args[i] = va_arg(list, ir_value *);
	va_end(list);
	return ir_build1(&t->b, k, type, (unsigned)n, args);
}

static inline void store(fixture *t, ir_value *p, ir_value *v, ir_value *mask)
{
	ir_value *args[] = {p, v, mask};
	ir_build(&t->b, IR_STORE, mask ? 3 : 2, args, 0, NULL, 0);
}

static inline ir_type tile(scalar s, uint32_t n)
{
	return ir_tile_type(s, 1, &n);
}

static inline ir_type tile2(scalar s, uint32_t m, uint32_t n)
{
	return ir_tile_type(s, 2, (uint32_t[]){m, n});
}

static inline ir_value *arange(fixture *t, uint32_t n)
{
	return build(t, IR_ARANGE, tile(SCALAR_I32, n), 0);
}

static inline ir_value *i32(fixture *t, int64_t v)
{
	return ir_constant_int(&t->b, SCALAR_I32, v);
}

static inline ir_value *constant(fixture *t, ir_type type, double v)
{
	return ir_constant(&t->b, type, scalar_from_double(type.elem, v));
}

/* base + offsets, offsets a tile */
static inline ir_value *pointers(fixture *t, ir_value *base, ir_value *offsets)
{
	ir_value *p = ir_splat(&t->b, base, offsets->type);
	return build(t, IR_PTR_ADD, p->type, 2, p, offsets);
}

/* A row-major tile of indices 0..: i32 of the shape of `type`. */
static inline ir_value *row_major(fixture *t, ir_type type)
{
	ir_value *flat = arange(t, (uint32_t)ir_elements(type));
	return build(t, IR_RESHAPE, ir_with_elem(type, SCALAR_I32), 1, flat);
}

static inline ir_value *load(fixture *t, ir_value *p)
{
	return build(t, IR_LOAD, ir_with_elem(p->type, p->type.elem), 1, p);
}

static inline ir_value *load_tile(fixture *t, ir_value *base, ir_type type)
{
	return load(t, pointers(t, base, row_major(t, type)));
}

static inline void store_tile(fixture *t, ir_value *base, ir_value *v)
{
	store(t, pointers(t, base, row_major(t, v->type)), v, NULL);
}

static inline bool emit(fixture *t)
{
	cpu_options options = {.want_object = true, .cpu = t->cpu, .features = t->features};
	options.want_llvm = options.want_asm = getenv("BLK_TEST_DUMP") != NULL;
	text why = {.arena = &t->arena};
	if (!ir_verify(t->f, &why)) fail_msg("%s", why.at);
	bool ok = cpu_emit(&t->arena, &t->diags, t->f, &options, &t->out);
	if (options.want_llvm) fprintf(stderr, "%s\n%s\n", t->out.llvm, t->out.assembly);
	return ok;
}

static inline void compile(fixture *t)
{
	ir_build(&t->b, IR_RETURN, 0, NULL, 0, NULL, 0);
	if (emit(t)) return;
	text message = {.arena = &t->arena};
	diag_render_text(&t->diags, &message);
	fail_msg("%s", message.at);
}

static inline int run(fixture *t, const uint64_t *args, uint32_t gx, uint32_t gy, uint32_t gz)
{
	cpu_object *o = NULL;
	cpu_pool *pool;
	int status = cpu_object_load(t->out.object, t->out.object_bytes, t->f->name, &o, t->error, sizeof t->error);
	if (status) fail_msg("%s", t->error);
	assert_int_equal(cpu_pool_create(&pool), CPU_OK);
	status = cpu_pool_run(pool, cpu_object_kernel(o), t->out.scratch_bytes, args, (uint32_t[]){gx, gy, gz}, NULL,
		t->error, sizeof t->error);
	cpu_pool_destroy(pool);
	cpu_object_free(o);
	return status;
}

static inline uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* splitmix64 */
static inline uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint64_t get(scalar s, const void *buffer, size_t i)
{
	uint64_t v = 0;
	memcpy(&v, (const char *)buffer + i * scalar_bytes(s), scalar_bytes(s));
	return v;
}

static inline void put(scalar s, void *buffer, size_t i, uint64_t bits)
{
	memcpy((char *)buffer + i * scalar_bytes(s), &bits, scalar_bytes(s));
}

/* Attributes of the text form that these tests do not vary. */
#define LOAD " : "
#define STORE "\n"
#define FOR " : "

/* Reads a kernel's text and compiles it. */
static inline void compile_text(fixture *t, const char *s)
{
	memset(t, 0, sizeof *t);
	t->arena.recover = &t->out_of_memory;
	if (setjmp(t->out_of_memory)) fail_msg("out of memory");
	diags_init(&t->diags, &t->arena);
	source_file *file = ARENA_NEW(&t->arena, source_file);
	*file = (source_file){.name = "test.ir", .text = arena_strndup(&t->arena, s, strlen(s)), .size = strlen(s)};
	t->f = ir_read(&t->arena, &t->diags, file);
	if (t->f && emit(t)) return;
	text message = {.arena = &t->arena};
	diag_render_text(&t->diags, &message);
	fail_msg("%s", message.at);
}

/* Equal bits, or both nan. */
static inline bool same(scalar s, uint64_t a, uint64_t b)
{
	if (a == b) return true;
	return scalar_is_float(s) && isnan(scalar_to_double(s, a)) && isnan(scalar_to_double(s, b));
}

#endif
