/* The record as JSON for tools.  See explain.h.
 *
 *   {"file": .., "kernels": [{"name": .., "registers": 32 | null, .., "rows": [{"kind": "load", "line": 14, ..}, ..]}]}
 * The one idea: every fact of the record has one key; what does not apply to a row's kind is left out, what is not
 * known is null. */
#include "explain.h"

typedef struct json {
	text *out;
	bool comma; /* before the next member */
} json;

static void key(json *j, const char *name)
{
	if (j->comma) text_puts(j->out, ", ");
	text_printf(j->out, "\"%s\": ", name);
	j->comma = true;
}

static void string(json *j, const char *name, const char *s)
{
	key(j, name);
	diag_json_string(j->out, s);
}

static void number(json *j, const char *name, uint64_t n)
{
	key(j, name);
	text_printf(j->out, "%llu", (unsigned long long)n);
}

static void number_if(json *j, const char *name, bool is_known, uint64_t n)
{
	if (is_known)
		number(j, name, n);
	else
		string(j, name, NULL);
}

static void truth(json *j, const char *name, bool b)
{
	key(j, name);
	text_puts(j->out, b ? "true" : "false");
}

static void start(json *j, const char *name, const char *bracket)
{
	if (name) key(j, name);
	text_puts(j->out, bracket);
	j->comma = false;
}

static void put_access(json *j, const explain_row *r)
{
	number(j, "bytes_per_access", r->access_bytes);
	number(j, "accesses_per_thread", r->accesses);
	number_if(j, "contiguous_bytes_per_warp", r->warp_bytes, r->warp_bytes);
	truth(j, "masked", r->masked);
	truth(j, "by_one_thread", r->once);
	if (r->sent) truth(j, "sent_by_producer", true);
	truth(j, "by_owners", r->owners);
	string(j, "not_wider_because", r->why);
	string(j, "promise", r->promise);
	string(j, "caching", r->caching);
	string(j, "not_ahead_because", r->why_not);
}

static void put_bank(json *j, const char *name, explain_bank b)
{
	start(j, name, "{");
	number(j, "wavefronts", b.wavefronts);
	number(j, "least", b.least);
	text_puts(j->out, "}");
	j->comma = true;
}

static void put_conversion(json *j, const explain_row *r)
{
	string(j, "by", r->how);
	number(j, "bytes_through_shared", r->moved_bytes);
	if (!r->moved_bytes) return;
	number(j, "passes", r->passes);
	put_bank(j, "store", r->store);
	put_bank(j, "load", r->load);
}

static void put_reduction(json *j, const explain_row *r)
{
	string(j, "combine", r->how);
	number(j, "inside_threads", UINT32_C(1) << r->in_registers);
	number(j, "between_lanes", UINT32_C(1) << r->between_lanes);
	number(j, "between_warps", UINT32_C(1) << r->between_warps);
	number(j, "bytes_through_shared", r->moved_bytes);
	string(j, "instruction", r->instruction);
}

static void put_columns(json *j, const char *name, const layout *l, layout_in in)
{
	start(j, name, "[");
	for (unsigned i = 0; i < l->nin[in]; i++) text_printf(j->out, "%s%u", i ? ", " : "", l->col[in][i]);
	text_puts(j->out, "]");
	j->comma = true;
}

/* As layout.h stores it: what each bit adds to the row-major number of an element. */
static void put_layout(json *j, const char *name, const layout *l)
{
	start(j, name, "{");
	put_columns(j, "registers", l, LAYOUT_REG);
	put_columns(j, "lanes", l, LAYOUT_LANE);
	put_columns(j, "warps", l, LAYOUT_WARP);
	text_puts(j->out, "}");
	j->comma = true;
}

static void put_tile(json *j, const explain_row *r)
{
	if (!r->layout) return;
	start(j, "shape", "[");
	for (unsigned i = 0; i < r->tile.rank; i++) text_printf(j->out, "%s%u", i ? ", " : "", r->tile.dim[i]);
	text_puts(j->out, "]");
	j->comma = true;
	number(j, "element_bytes", scalar_bytes(r->tile.elem));
	if (r->from) put_layout(j, "from_layout", r->from);
	put_layout(j, "layout", r->layout);
	if (r->kind > EXPLAIN_ATOMIC) return;
	number(j, "wide_in_dimension", r->along);
	number(j, "contiguous_elements", r->contiguous);
}

static void put_row(json *j, const explain_row *r)
{
	start(j, NULL, "\n      {");
	string(j, "kind", explain_kind_names[r->kind]);
	string(j, "file", r->at.file ? r->at.file->name : NULL);
	number(j, "line", r->line);
	number(j, "column", r->column);
	number(j, "loop_depth", r->loops);
	string(j, "name", r->name);
	string(j, "type", r->type);
	if (r->kind <= EXPLAIN_ATOMIC) put_access(j, r);
	if (r->kind == EXPLAIN_BARRIER) string(j, "before", r->how);
	if (r->kind == EXPLAIN_LIBERTY || r->kind == EXPLAIN_MASK || r->kind == EXPLAIN_MAXIMUM ||
		r->kind == EXPLAIN_ORDER)
		string(j, "what", r->how);
	if (r->kind == EXPLAIN_CONVERSION) put_conversion(j, r);
	if (r->kind == EXPLAIN_REDUCTION) put_reduction(j, r);
	if (r->kind == EXPLAIN_COPY) {
		number(j, "stages", r->stages);
		number_if(j, "stages_asked_for", r->lowered, r->lowered);
		truth(j, "kept", r->kept);
		number(j, "access_bytes", r->access_bytes);
		number(j, "accesses", r->accesses);
		truth(j, "masked", r->masked);
		string(j, "read_by", r->how);
		number_if(j, "loop_line", r->loop_line, r->loop_line);
	}
	if (r->kind == EXPLAIN_BULK) {
		string(j, "how", r->how);
		number(j, "copies", r->accesses);
		number(j, "copy_bytes", r->access_bytes);
		number(j, "swizzle", r->swizzle);
		truth(j, "by_warps", r->by_warps);
		truth(j, "by_rows", r->by_rows);
		if (r->stages) {
			number(j, "stages", r->stages);
			number_if(j, "row_groups", r->blocks > 1, r->blocks);
			number_if(j, "stages_asked_for", r->lowered, r->lowered);
			number_if(j, "loop_line", r->loop_line, r->loop_line);
			truth(j, "producer", r->producer);
			string(j, "why_no_producer", r->why_not);
			truth(j, "by_a_cluster", r->shared);
			string(j, "why_not_by_a_cluster", r->unshared);
		}
	}
	if (r->kind == EXPLAIN_PRODUCT) {
		string(j, "instruction", r->how);
		number_if(j, "instructions", r->instructions, r->instructions);
		string(j, "a_from", r->first);
		string(j, "b_from", r->second);
		truth(j, "left_running", r->flies);
		number_if(j, "begun_before_wait", r->first && !r->flies, r->begun);
		number_if(j, "in_flight_at_wait", r->first && !r->flies, r->pending);
		truth(j, "work_before_wait", r->apart);
		string(j, "not_wgmma_because", r->why_not);
		truth(j, "joined", r->joined);
		truth(j, "transposed", r->swapped);
		truth(j, "double_buffered", r->alternates);
		string(j, "not_transposed_because", r->not_swapped);
	}
	string(j, "no_tensor_copy_because", r->no_tensor_copy);
	number(j, "shuffles", r->shuffles);
	number(j, "barriers", r->barriers);
	number(j, "shared_bytes", r->shared_bytes);
	put_tile(j, r);
	text_puts(j->out, "}");
	j->comma = true;
}

static void put_pressure(json *j, arena *a, const pressure *p)
{
	start(j, "live_registers", "[");
	for (uint32_t i = 0; i < p->lines.n; i++) {
		const pressure_line *l = &p->lines.at[i];
		start(j, NULL, i ? ",\n      {" : "\n      {");
		string(j, "file", l->file->name);
		number(j, "line", l->line);
		number(j, "registers", l->registers);
		start(j, "values", "[");
		for (unsigned k = 0; k < PRESSURE_VALUES && l->most[k].value; k++) {
			start(j, NULL, k ? ", {" : "{");
			string(j, "name", l->most[k].value->name);
			string(j, "type", ir_type_name(a, l->most[k].value->type));
			number(j, "registers", l->most[k].registers);
			text_puts(j->out, "}");
		}
		text_puts(j->out, "]}");
	}
	text_puts(j->out, "]");
	j->comma = true;
}

static void put_kernel(json *j, arena *a, const explain_kernel *k)
{
	string(j, "name", k->name);
	number(j, "line", k->line);
	string(j, "target", k->target->name);
	number(j, "num_warps", k->num_warps);
	if (k->row_groups > 1) number(j, "row_groups", k->row_groups);
	number(j, "producer_warps", k->producer_warps);
	if (k->rows_together) string(j, "rows_together", k->rows_together);
	number_if(j, "maxnreg", k->maxnreg, k->maxnreg);
	number_if(j, "cluster", k->cluster, k->cluster);
	number_if(j, "registers", k->assembled, k->registers);
	number_if(j, "consumer_registers", k->consumer_registers, k->consumer_registers);
	number_if(j, "producer_registers", k->producer_registers, k->producer_registers);
	number_if(j, "spill_bytes", k->assembled, k->spill_bytes);
	number(j, "shared_bytes", k->shared_bytes);
	number(j, "barriers", k->barriers);
	number(j, "ptx_bytes", k->ptx_bytes);
	number_if(j, "cubin_bytes", k->assembled, k->cubin_bytes);
	number_if(j, "programs_per_sm", k->assembled, k->occupancy.ctas);
	number_if(j, "warps_per_sm", k->assembled, k->occupancy.warps);
	number(j, "most_warps_per_sm", k->target->sm_warps);
	string(j, "limited_by", k->assembled ? k->occupancy.limit : NULL);
	text_puts(j->out, ",\n    \"rows\": [");
	j->comma = false;
	for (uint32_t i = 0; i < k->rows.n; i++) {
		if (i) text_puts(j->out, ",");
		put_row(j, &k->rows.at[i]);
	}
	text_puts(j->out, "]");
	j->comma = true;
	put_pressure(j, a, &k->pressure);
}

void explain_json(text *out, arena *a, const char *file, const explain_kernel *const *kernels, uint32_t n)
{
	json j = {.out = out};
	start(&j, NULL, "{");
	string(&j, "file", file);
	start(&j, "kernels", "[");
	for (uint32_t i = 0; i < n; i++) {
		start(&j, NULL, i ? ",\n  {" : "\n  {");
		put_kernel(&j, a, kernels[i]);
		text_puts(out, "}");
	}
	text_puts(out, "]}\n");
}
