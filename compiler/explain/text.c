/* The record as text for people.  See explain.h.
 *
 *   kernel softmax_rows  softmax.blk:14  sm_80, 4 warps
 *     registers 32, spills 0 bytes, ...
 *     14 | let v = load(x + row * stride + cols, mask = mask, other = -inf);
 *          load x f32[1024]: 8 accesses of 4 bytes a thread, ...
 * The one idea: one source line, then what became of it, one fact a line, costs before reasons. */
#include "explain.h"

#include <string.h>

typedef struct writer {
	text *out;
	arena *arena;
	const explain_kernel *kernel;
} writer;

static const char *plural(uint32_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

static void put_line(writer *w, const source_file *f, uint32_t line)
{
	if (f != w->kernel->at.file)
		text_printf(w->out, "  %s:%u | ", f->name, line);
	else
		text_printf(w->out, "%5u | ", line);
}

static void put_source(writer *w, const explain_row *row)
{
	const source_file *f = row->at.file;
	if (!f) {
		text_puts(w->out, "  (made by the compiler)\n");
		return;
	}
	const char *s = f->text + f->line_start[row->line - 1], *end = f->text + f->size;
	while (s < end && (*s == ' ' || *s == '\t')) s++;
	size_t n = 0;
	while (s + n < end && s[n] != '\n' && s[n] != '\r') n++;
	if (n > 100) n = 100;
	put_line(w, f, row->line);
	for (size_t i = 0; i < n; i++) text_add(w->out, (unsigned char)s[i] < ' ' ? " " : s + i, 1);
	text_puts(w->out, "\n");
}

static void put_barriers(writer *w, const explain_row *row)
{
	if (row->barriers) text_printf(w->out, ", %u %s", row->barriers, plural(row->barriers, "barrier", "barriers"));
	if (row->shared_bytes) text_printf(w->out, ", %u bytes of shared memory", row->shared_bytes);
}

static void put_access(writer *w, const explain_row *row)
{
	text *out = w->out;
	if (!row->warp_bytes)
		text_printf(out, "%u bytes, %s", row->access_bytes, row->once ? "by one thread" : "by every thread");
	else
		text_printf(out, "%u %s of %u bytes a thread; a warp's covers %u contiguous bytes", row->accesses,
			plural(row->accesses, "access", "accesses"), row->access_bytes, row->warp_bytes);
	if (row->sent) text_puts(out, " of a producer warp, which sends the others what it returns");
	if (row->masked) text_puts(out, ", masked");
	if (row->owners) text_puts(out, ", by the threads that own an element (others hold copies)");
	if (row->caching) text_printf(out, ", %s", row->caching);
	if (row->shuffles)
		text_printf(out, ", handed on by %u %s", row->shuffles, plural(row->shuffles, "shuffle", "shuffles"));
	if (row->once && row->barriers) text_puts(out, ", handed on through shared memory");
	put_barriers(w, row);
	if (row->why && row->warp_bytes) text_printf(out, "\n            not wider: %s", row->why);
	if (row->promise) text_printf(out, "\n            would help: --specialize=%s", row->promise);
	if (row->why_not) text_printf(out, "\n            not copied ahead: %s", row->why_not);
}

static void put_bank(writer *w, const char *what, explain_bank b)
{
	text_printf(w->out, ", %s in %u %s", what, b.wavefronts, plural(b.wavefronts, "wavefront", "wavefronts"));
	if (b.wavefronts > b.least) text_printf(w->out, " where %u would do (bank conflicts)", b.least);
}

static void put_conversion(writer *w, const explain_row *row)
{
	text_printf(w->out, "by %s", row->how);
	if (row->shuffles) text_printf(w->out, ", %u a thread", row->shuffles);
	if (row->moved_bytes) {
		text_printf(w->out, ", %u bytes each way", row->moved_bytes);
		if (row->passes > 1) text_printf(w->out, " in %u passes", row->passes);
		put_bank(w, "a warp stores", row->store);
		put_bank(w, "loads", row->load);
	}
	put_barriers(w, row);
}

static void put_reduction(writer *w, const explain_row *row)
{
	const char *sep = "";
	if (row->in_registers) {
		text_printf(w->out, "%u:1 inside threads", UINT32_C(1) << row->in_registers);
		sep = ", then ";
	}
	if (row->between_lanes) {
		text_printf(w->out, "%s%u:1 between lanes", sep, UINT32_C(1) << row->between_lanes);
		if (row->instruction)
			text_printf(w->out, " (%s)", row->instruction);
		else
			text_printf(w->out, " (%u %s a thread)", row->shuffles,
				plural(row->shuffles, "shuffle", "shuffles"));
		sep = ", then ";
	}
	if (row->between_warps) text_printf(w->out, "%s%u:1 between warps", sep, UINT32_C(1) << row->between_warps);
	if (!row->in_registers && !row->between_lanes && !row->between_warps) text_puts(w->out, "nothing to combine");
	put_barriers(w, row);
}

static void put_flight(writer *w, const explain_row *row)
{
	if (row->flies) {
		text_puts(w->out, row->round ? ", in flight round the loop" : ", left in flight");
		return;
	}
	text_puts(w->out, ", waited for");
	if (row->begun == 1) text_puts(w->out, " behind the next product");
	if (row->begun > 1) text_printf(w->out, " behind the next %u products", row->begun);
	if (row->apart) text_puts(w->out, row->begun ? " and vector work" : " behind vector work");
	if (row->pending) text_printf(w->out, ", with %u in flight", row->pending);
}

static void put_product(writer *w, const explain_row *row)
{
	text_printf(w->out, ": %s", row->how);
	if (row->instructions) text_printf(w->out, ", %u a warpgroup", row->instructions);
	if (row->joined) text_puts(w->out, " of the product in front");
	if (row->first) text_printf(w->out, ", a from %s, b from %s", row->first, row->second);
	if (row->swapped) text_puts(w->out, ", transposed onto warpgroups");
	if (row->first) put_flight(w, row);
	put_barriers(w, row);
	if (row->alternates) text_puts(w->out, " in two buffers");
	if (row->why_not) text_printf(w->out, "\n            not wgmma: %s", row->why_not);
	if (row->not_swapped) text_printf(w->out, "\n            not transposed onto warpgroups: %s", row->not_swapped);
}

static void put_lowered(writer *w, const explain_row *row)
{
	if (row->lowered)
		text_printf(w->out, "\n            not %u stages: shared memory does not hold them", row->lowered);
}

static void put_sharing(writer *w, const explain_row *row)
{
	if (row->shared)
		text_printf(w->out,
			"\n            by programs of a cluster of %u together, where they load the same block",
			w->kernel->cluster);
	if (row->unshared) text_printf(w->out, "\n            not by a cluster together: %s", row->unshared);
}

static void put_row(writer *w, const explain_row *row)
{
	text_printf(w->out, "        %s", explain_kind_names[row->kind]);
	if (row->kind == EXPLAIN_REDUCTION) text_printf(w->out, " (%s)", row->how);
	if (row->name) text_printf(w->out, " %s", row->name);
	if (row->type) text_printf(w->out, " %s", row->type);
	if (row->loops) text_printf(w->out, " [loop depth %u]", row->loops);
	switch (row->kind) {
	case EXPLAIN_BARRIER:
		if (row->how) text_printf(w->out, ": of the CTA, before the %s", row->how);
		break;
	case EXPLAIN_CONVERSION:
		text_puts(w->out, ": ");
		put_conversion(w, row);
		break;
	case EXPLAIN_REDUCTION:
		text_puts(w->out, ": ");
		put_reduction(w, row);
		break;
	case EXPLAIN_COPY:
		if (row->kept) text_puts(w->out, ": once, as registers are short in a loop that reads it");
		if (!row->kept) text_printf(w->out, ": a multibuffer of %u stages", row->stages);
		text_printf(w->out, ", %u %s of %u bytes a thread%s%s%s, %u bytes of shared memory", row->accesses,
			plural(row->accesses, "access", "accesses"), row->access_bytes, row->masked ? ", masked" : "",
			row->how ? ", " : "", row->how ? row->how : "", row->shared_bytes);
		put_lowered(w, row);
		put_sharing(w, row);
		break;
	case EXPLAIN_BULK:
		if (row->by_rows) {
			text_printf(w->out,
				": store row by row, %u %s of %u bytes of each warp, as they may begin inside a sector",
				row->accesses, plural(row->accesses, "row", "rows"), row->access_bytes);
			put_barriers(w, row);
			break;
		}
		text_printf(w->out, ": %s by a tensor map, %u %s of %u bytes, by one thread%s", row->how, row->accesses,
			plural(row->accesses, "copy", "copies"), row->access_bytes,
			row->producer   ? " of a producer warp"
			: row->by_warps ? " of each warp"
					: "");
		if (row->blocks > 1) text_printf(w->out, ", for each of %u groups of rows", row->blocks);
		if (row->swizzle) text_printf(w->out, ", swizzled in %u bytes", row->swizzle);
		if (row->stages) text_printf(w->out, ", into a multibuffer of %u stages", row->stages);
		put_barriers(w, row);
		put_lowered(w, row);
		if (row->stages && row->why_not)
			text_printf(w->out, "\n            not by a producer warp: %s", row->why_not);
		put_sharing(w, row);
		break;
	case EXPLAIN_PRODUCT: put_product(w, row); break;
	case EXPLAIN_EXCHANGE:
		text_puts(w->out, ": between threads");
		put_barriers(w, row);
		break;
	case EXPLAIN_LIBERTY:
	case EXPLAIN_MAXIMUM:
	case EXPLAIN_ORDER:
	case EXPLAIN_MASK: text_printf(w->out, ": %s", row->how); break;
	default: text_puts(w->out, ": "); put_access(w, row);
	}
	if (row->no_tensor_copy) text_printf(w->out, "\n            no tensor copy: %s", row->no_tensor_copy);
	text_puts(w->out, "\n");
}

static void put_head(writer *w)
{
	const explain_kernel *k = w->kernel;
	text *out = w->out;
	text_printf(out, "kernel %s  %s:%u  %s, %u %s", k->name, k->at.file ? k->at.file->name : "", k->line,
		k->target->name, k->num_warps, plural(k->num_warps, "warp", "warps"));
	if (k->row_groups > 1) text_printf(out, " in %u groups of rows", k->row_groups);
	if (k->producer_warps) text_printf(out, " and %u of a producer", k->producer_warps);
	if (k->cluster) text_printf(out, ", clusters of %u programs", k->cluster);
	text_puts(out, "\n");
	if (k->rows_together)
		text_printf(out, "  num_warps = 12 are 8, not three groups of rows or columns: %s\n", k->rows_together);
	if (k->num_ctas > 1 && !k->cluster)
		text_printf(out, "  no clusters, though num_ctas = %u: %s\n", k->num_ctas,
			target_can(k->target, TARGET_MULTICAST) ? "no loop has copies that programs could share"
								: "the target's programs share no copies");
	if (k->assembled) {
		text_printf(out, "  registers %u, ", k->registers);
		if (k->consumer_registers)
			text_printf(out, "%u for consumers and %u for the producer, ", k->consumer_registers,
				k->producer_registers);
		text_printf(out, "spills %u bytes, shared memory %u bytes, barriers %u\n", k->spill_bytes,
			k->shared_bytes, k->barriers);
		text_printf(out, "  occupancy: %u of %u warps an SM, %u programs", k->occupancy.warps,
			k->target->sm_warps, k->occupancy.ctas);
		if (k->occupancy.limit) text_printf(out, "; limited by %s", k->occupancy.limit);
		text_printf(out, "\n  PTX %zu bytes, cubin %zu bytes\n", k->ptx_bytes, k->cubin_bytes);
	} else {
		const char *why = k->not_assembled ? k->not_assembled : "no ptxas";
		text_printf(out, "  registers unknown: %s (tiles need about %u), shared memory %u bytes, barriers %u\n",
			why, k->live_registers, k->shared_bytes, k->barriers);
		text_printf(out, "  PTX %zu bytes, cubin unknown: %s\n", k->ptx_bytes, why);
	}
}

static void put_pressure(writer *w)
{
	const pressure *p = &w->kernel->pressure;
	for (uint32_t i = 0; i < p->lines.n && i < 3; i++) {
		const pressure_line *l = &p->lines.at[i];
		if (i == 0) text_puts(w->out, "  registers that hold values, estimated, where most do:\n");
		put_line(w, l->file, l->line);
		text_printf(w->out, "about %u", l->registers);
		for (unsigned k = 0; k < PRESSURE_VALUES && l->most[k].value; k++) {
			const ir_value *v = l->most[k].value;
			text_printf(w->out, "%s%s%s%s in %u", k ? ", " : ": ", v->name ? v->name : "",
				v->name ? " " : "", ir_type_name(w->arena, v->type), l->most[k].registers);
		}
		text_puts(w->out, "\n");
	}
}

void explain_text_row(text *out, arena *a, const explain_kernel *k, const explain_row *row)
{
	writer w = {out, a, k};
	put_row(&w, row);
}

void explain_text(text *out, arena *a, const explain_kernel *k)
{
	writer w = {out, a, k};
	put_head(&w);
	for (uint32_t i = 0; i < k->rows.n; i++) {
		const explain_row *row = &k->rows.at[i];
		if (i == 0 || row->at.file != row[-1].at.file || row->line != row[-1].line) put_source(&w, row);
		put_row(&w, row);
	}
	put_pressure(&w);
}
