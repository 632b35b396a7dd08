/* What a kernel on the cpu device did wrong, in a sentence, as the simulator says it:
 *
 *	scale.blk:6: memory is written outside y, which has 4000 bytes: at offset 4096
 *	  in kernel scale, program (3, 0, 0)
 *	  hint: compare the mask with the number of elements: ..
 *
 * In: a fault, the launch's arguments, the device's buffers.  Out: blk_error() and BLK_ERROR_KERNEL.
 * The one idea: an address belongs to the buffer between whose guards it lies; one beyond all guards to the argument
 * whose buffer is nearest. */
#include "cpu.h"
#include "base/growing.h"
#include "internal.h"

#include "support/scalar.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct place {    /* where an address is */
	const char *name; /* of the parameter; null: no buffer is known */
	blk_cpu_range buffer;
	bool near; /* between its guards, or in it */
} place;

static uint64_t distance(const blk_cpu_range *r, uint64_t address)
{
	uint64_t end = r->begin + r->bytes;
	return address < r->begin ? r->begin - address : address >= end ? address - end : 0;
}

static bool is_buffer(const signature_parameter *p)
{
	return p->code == BLK_TYPE_POINTER;
}

enum { NULL_REACH = 1 << 28 };

/* The parameter whose buffer is nearest; of two with one buffer the one that may be written, if it was. */
static place find_place(blk_device *d, const signature *s, const uint64_t *bits, uint64_t address, bool writes)
{
	blk_cpu_range around, of;
	place found = {.near = cpu_memory_find(d->memory, address, &around)};
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		if (!is_buffer(p) || !cpu_memory_find(d->memory, bits[i], &of)) continue;
		if (found.near && of.begin != around.begin) continue;
		uint64_t far = distance(&of, address);
		if (far > least || (far == least && !(writes && p->written))) continue;
		least = far;
		found.name = p->name;
		found.buffer = of;
	}
	/* No buffer of the arguments is there, and the address is what a null pointer reaches. */
	for (uint32_t i = 0; i < s->nparameters && !found.near && address < NULL_REACH; i++)
		if (is_buffer(&s->parameters[i]) && !bits[i]) return (place){.name = s->parameters[i].name};
	if (found.near && !found.name) {
		found.name = "a buffer that is no argument";
		found.buffer = around;
	}
	return found;
}

static void say_where(growing *t, const place *p, uint64_t address)
{
	int64_t offset = (int64_t)(address - p->buffer.begin);
	if (p->name && !p->buffer.begin)
		grow_format(t, " through %s, which is null, at offset %" PRId64, p->name, offset);
	else if (!p->name)
		grow_format(t, " at %#" PRIx64 ", where no memory of the kernel's is", address);
	else if (p->near)
		grow_format(t, " outside %s, which has %" PRIu64 " bytes: at offset %" PRId64, p->name, p->buffer.bytes,
			offset);
	else
		grow_format(t,
			" outside all buffers: at offset %" PRId64 " of %s, which has %" PRIu64
			" bytes and is the nearest",
			offset, p->name, p->buffer.bytes);
}

/* Null: no mask would have helped. */
static const char *mask_hint(const place *p, uint64_t address, bool tile)
{
	if (!tile) return NULL;
	if (p->name && p->near && address < p->buffer.begin)
		return "the index is negative: a mask of i < n alone lets it through";
	return "compare the mask with the number of elements: the last program's tile may end behind it";
}

static blk_status give(growing *t)
{
	blk_status status = t->failed ? error_memory() : error_set(BLK_ERROR_KERNEL, "%s", t->at);
	free(t->at);
	return status;
}

static void say_program(growing *t, const signature *s, const cpu_fault *f)
{
	grow_format(t, "\n  in kernel %s", s->kernel);
	if (f->has_program)
		grow_format(t, ", program (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")", f->program[0], f->program[1],
			f->program[2]);
}

/* Found by the kernel's own code; what to do, or null. */
static const char *say_access(growing *t, blk_device *d, const signature *s, const uint64_t *bits, const cpu_fault *f)
{
	static const char *const kinds[] = {"read", "written", "updated"}; /* ORDER blk_cpu_access_kind */
	const blk_cpu_access *a = f->access;
	uint32_t kind = a->kind & (BLK_CPU_TILE - 1);
	place p = find_place(d, s, bits, f->address, kind != BLK_CPU_READS);
	if (a->parameter >= 0 && (uint32_t)a->parameter < s->nparameters) {
		p = (place){.name = s->parameters[a->parameter].name, .near = true};
		cpu_memory_find(d->memory, bits[a->parameter], &p.buffer);
	}
	if (*a->file) grow_format(t, "%s:%" PRIu32 ": ", a->file, a->line);
	grow_format(t, "%" PRIu32 " byte%s %s %s", a->bytes, a->bytes == 1 ? "" : "s", a->bytes == 1 ? "is" : "are",
		kinds[kind < 3 ? kind : 0]);
	say_where(t, &p, f->address);
	return mask_hint(&p, f->address, a->kind & BLK_CPU_TILE);
}

/* Found by the processor. */
static const char *say_fault(growing *t, blk_device *d, const variant *v, const uint64_t *bits, const cpu_fault *f)
{
	cpu_line at;
	if (cpu_object_line(v->module, f->at.pc, &at) && at.number)
		grow_format(t, "%s%s%s:%" PRIu32 ": ", at.folder, *at.folder ? "/" : "", at.file, at.number);
	if (!f->at.in_page) {
		grow_format(t, "memory is touched at an address that none can have");
		return NULL;
	}
	place p = find_place(d, v->sig, bits, f->address, f->at.writes);
	grow_format(t, "memory is %s", f->at.writes ? "written" : "read");
	say_where(t, &p, f->address);
	return mask_hint(&p, f->address, true);
}

static void say_hint(growing *t, const char *hint, const char *checked)
{
	if (!hint && !checked) return;
	grow_format(t, "\n  hint: %s%s", hint ? hint : "", hint && checked ? "; " : "");
	if (checked) grow_format(t, "BLK_CPU=checked %s", checked);
}

blk_status cpu_report_fault(blk_device *d, const variant *v, const uint64_t *bits, const cpu_fault *f)
{
	growing t = {0};
	const char *hint = f->access ? say_access(&t, d, v->sig, bits, f) : say_fault(&t, d, v, bits, f);
	say_program(&t, v->sig, f);
	say_hint(&t, hint, f->access ? NULL : "finds the first element outside");
	return give(&t);
}

blk_status cpu_report_canary(blk_device *d, const variant *v, const uint64_t *bits, uint32_t parameter, uint64_t at)
{
	growing t = {0};
	const signature_parameter *q = &v->sig->parameters[parameter];
	place p = {.name = q->name, .near = true};
	cpu_memory_find(d->memory, bits[parameter], &p.buffer);
	at -= (at - bits[parameter]) % scalar_bytes(q->element); /* of the element, whose first bytes may be the same */
	grow_format(&t, "memory was written");
	say_where(&t, &p, at);
	grow_format(&t, "\n  by kernel %s, or by the host before it", v->sig->kernel);
	say_hint(&t, mask_hint(&p, at, true), "names the program and the line");
	return give(&t);
}
