/* The compiler from end to end: one request in, artifacts and diagnostics out.
 *
 *   file.blk --parse--> tree --sema--> tile IR --tile passes--> +--> cpu/ : LLVM for the host --> object
 *                                                              +--nvptx passes--> layouts, shared memory, barriers
 *                                                                     --> nvptx/ : LLVM --> PTX --> cubin
 *
 * passes/pipelines.def has the passes of both roads from top to bottom: that is the order in which things happen.
 * The one idea: everything of a request lives in the result's arena, running out of memory anywhere, in LLVM too, comes
 * back here by longjmp, and the result that the caller gets owns the arena. */
#include "blkc.h"

#include "target/cpu/cpu.h"
#include "explain/explain.h"
#include "ir/tensor_map.h"
#include "target/nvptx/code_size.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/ptx_join.h"
#include "passes/passes.h"
#include "passes/pipelines.h"
#include "sema/sema.h"
#include "support/llvm_memory.h"
#include "support/numbers.h"
#include "syntax/ast.h"

#include <setjmp.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One request's state. */
typedef struct compile {
	arena arena;
	jmp_buf out_of_memory;
	const blkc_request *request;
	const blk_target *target;
	diags diags;
	text log;
	VEC(blkc_artifact) artifacts;
	VEC(blkc_kernel) kernels;
	VEC(const explain_kernel *) records;
	ir_func *last; /* of those that became code */
	const source_file *main;
	explain_code ir[EXPLAIN_PTX]; /* of the kernel at hand, for its page */
	bool several;                 /* kernels: the cpu's code of each is a part, to be joined */
	VEC(cpu_output) parts;
	VEC(const char *) dependencies;
	blkc_result *result;
} compile;

static double milliseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void log_time(compile *c, const char *what, double start)
{
	if (c->request->time_passes) text_printf(&c->log, "%-24s %8.3f ms\n", what, milliseconds() - start);
}

static void add_artifact(compile *c, const char *kernel, unsigned kind, const void *bytes, size_t n)
{
	vec_push(&c->arena, &c->artifacts,
		((blkc_artifact){.kernel = kernel, .kind = kind, .bytes = bytes, .nbytes = n}));
}

static void add_ir(compile *c, ir_func *f, unsigned kind, explain_form form)
{
	if (!(c->request->emit & (kind | BLKC_EMIT_HTML))) return;
	text out = {.arena = &c->arena};
	line_marks marks = {0};
	ir_print_marked(&out, f, &marks);
	c->ir[form] = (explain_code){out.at, out.n, marks};
	if (c->request->emit & kind) add_artifact(c, f->name, kind, out.at, out.n);
}

static bool verifies_each(const blkc_request *r)
{
#ifdef BLK_MEAN
	(void)r;
	return true;
#else
	return r->verify_each;
#endif
}

static bool verified(compile *c, ir_func *f, const char *after)
{
	text why = {.arena = &c->arena};
	if (ir_verify(f, &why)) return true;
	diag_error(&c->diags, 890, f->at, "internal: the IR of '%s' is malformed after %s: %s", f->name, after, why.at);
	return false;
}

static bool run_pass(compile *c, pass_context *p, ir_func *f, const pass_row *row)
{
	uint32_t errors = c->diags.errors;
	double start = milliseconds();
	assert(f->level == row->takes);
	if (!row->run(p, f) || c->diags.errors > errors) return false;
	assert(f->level == row->gives);
	log_time(c, row->name, start);
	const char *wanted = c->request->print_after;
	if (wanted && (strcmp(wanted, "all") == 0 || strcmp(wanted, row->name) == 0)) {
		text_printf(&c->log, "; %s, after %s\n", f->name, row->name);
		ir_print(&c->log, f);
	}
	return !verifies_each(c->request) || verified(c, f, row->name);
}

static bool run_passes(compile *c, pass_context *p, ir_func *f, pass_pipeline_name pipeline)
{
	for (const pass_row *row = pass_rows; row->name; row++)
		if (row->pipeline == pipeline && !run_pass(c, p, f, row)) return false;
	return true;
}

static void add_map(ir_op *o, void *context)
{
	if (o->kind != IR_TENSOR_MAP) return;
	text_puts(context, "map ");
	ir_tensor_map_print(context, o->map);
	text_puts(context, "\n");
}

static void add_effects(const ir_func *f, text *signature)
{
	ir_effects e = ir_find_effects(f);
	for (uint32_t i = 0; i < f->nparams; i++)
		if (e.written[i]) text_printf(signature, "written %u\n", i);
	for (uint32_t i = 0; i < f->nparams; i++)
		if (e.written_through[i]) text_printf(signature, "writes_addresses %u\n", i);
	if (e.written_anywhere) text_printf(signature, "writes_addresses\n");
	if (e.addresses) text_printf(signature, "uses_addresses\n");
}

static bool waits_for_grid(const ir_func *f)
{
	const ir_op *o = f->body->first;
	while (o && o->kind != IR_GDC_WAIT) o = o->next;
	return o != NULL;
}

/* What only the finished code knows, added to the signature that sema began. */
static void finish_signature(compile *c, ir_func *f, text *signature, uint64_t scratch_bytes)
{
	text_printf(signature, "target %s\n", c->target->name);
	add_effects(f, signature);
	ir_walk(f->body, add_map, signature); /* in the order of the kernel's parameters for them: nvptx.c */
	if (c->target->kind == TARGET_NVPTX)
		text_printf(
			signature, "threads %u\nshared %u\n", 32 * (ir_warps(f) + f->producer_warps), f->shared_bytes);
	else
		text_printf(signature, "scratch %llu\n", (unsigned long long)scratch_bytes);
	if (f->cluster) text_printf(signature, "cluster %u\n", f->cluster);
	if (waits_for_grid(f)) text_puts(signature, "gdc_wait 1\n");
}

static void add_cpu_code(compile *c, const char *kernel, const cpu_output *out)
{
	if (out->llvm) add_artifact(c, kernel, BLKC_EMIT_LLVM, out->llvm, out->llvm_bytes);
	if (out->assembly) add_artifact(c, kernel, BLKC_EMIT_ASM, out->assembly, out->assembly_bytes);
	if (out->object) add_artifact(c, kernel, BLKC_EMIT_OBJECT, out->object, out->object_bytes);
}

static cpu_options cpu_wants(const compile *c)
{
	unsigned emit = c->request->emit;
	return (cpu_options){.line_info = !c->request->no_line_info,
		.check_bounds = c->request->check_bounds,
		.want_llvm = emit & BLKC_EMIT_LLVM,
		.want_asm = emit & BLKC_EMIT_ASM,
		.want_object = emit & BLKC_EMIT_OBJECT,
		.cpu = c->request->cpu};
}

static bool emit_cpu(compile *c, ir_func *f, uint64_t *scratch_bytes)
{
	cpu_options options = cpu_wants(c);
	if (c->several)
		options = (cpu_options){.want_part = true,
			.cpu = options.cpu,
			.line_info = options.line_info,
			.check_bounds = options.check_bounds};
	cpu_output out = {0};
	double start = milliseconds();
	if (!cpu_emit(&c->arena, &c->diags, f, &options, &out)) return false;
	log_time(c, "cpu code", start);
	*scratch_bytes = out.scratch_bytes;
	c->last = f;
	if (c->several)
		vec_push(&c->arena, &c->parts, out);
	else
		add_cpu_code(c, f->name, &out);
	return true;
}

enum { PTXAS_SECONDS = 120, PTXAS_MEGABYTES = 4096, MAX_CODE = 500000 };

static uint32_t limit_or(uint32_t asked, uint32_t usual, uint32_t none)
{
	return asked == BLKC_NO_LIMIT ? none : asked ? asked : usual;
}

static tool_limits ptxas_limits(const blkc_request *r)
{
	return (tool_limits){
		limit_or(r->ptxas_seconds, PTXAS_SECONDS, 0), limit_or(r->ptxas_megabytes, PTXAS_MEGABYTES, 0)};
}

enum { EMIT_RECORD = BLKC_EMIT_EXPLAIN | BLKC_EMIT_JSON | BLKC_EMIT_HTML };

static bool has_budget(const ir_func *f)
{
	return f->max_registers != UINT32_MAX || f->max_spills != UINT32_MAX;
}

static bool emit_nvptx(compile *c, pass_context *p, ir_func *f, const char *signature)
{
	unsigned emit = c->request->emit;
	nvptx_options options = {
		.line_info = !c->request->no_line_info,
		.checks = c->request->checks != 0,
		.want_llvm = emit & BLKC_EMIT_LLVM,
		.want_ptx = emit & (BLKC_EMIT_PTX | BLKC_EMIT_CUBIN),
		.want_cubin = emit & (BLKC_EMIT_CUBIN | BLKC_EMIT_SASS),
		.want_sass = emit & BLKC_EMIT_SASS,
		.want_page = emit & BLKC_EMIT_HTML,
		.check_budgets = has_budget(f),
		.want_report = emit & EMIT_RECORD,
		.ptxas = c->request->ptxas,
		.limits = ptxas_limits(c->request),
		.signature = signature,
	};
	nvptx_output out = {0};
	code_size size = code_size_estimate(p, f);
	if (!code_size_check(p, f, &size, limit_or(c->request->max_code, MAX_CODE, 0))) return false;
	double start = milliseconds();
	bool good = nvptx_emit(p, f, &options, &out);
	if (out.ptxas_log) text_puts(&c->log, out.ptxas_log);
	if (!good) return false;
	log_time(c, "llvm and ptx", start);
	if (c->request->time_passes)
		text_printf(&c->log, "%-24s %8llu estimated, %llu made\n", "instructions", (unsigned long long)size.all,
			(unsigned long long)out.instructions);
	if (emit & BLKC_EMIT_LLVM) add_artifact(c, f->name, BLKC_EMIT_LLVM, out.llvm, out.llvm_bytes);
	c->last = f;
	if (emit & (BLKC_EMIT_PTX | BLKC_EMIT_CUBIN)) add_artifact(c, f->name, BLKC_EMIT_PTX, out.ptx, out.ptx_bytes);
	if (emit & BLKC_EMIT_CUBIN) add_artifact(c, f->name, BLKC_EMIT_CUBIN, out.cubin, out.cubin_bytes);
	if (emit & BLKC_EMIT_SASS) add_artifact(c, f->name, BLKC_EMIT_SASS, out.sass, out.sass_bytes);
	if (emit & EMIT_RECORD) {
		explain_kernel *k = explain_make(p, f, &out);
		memcpy(k->code, c->ir, sizeof c->ir);
		vec_push(&c->arena, &c->records, k);
	}
	return true;
}

enum {
	EMIT_CODE = BLKC_EMIT_LLVM | BLKC_EMIT_PTX | BLKC_EMIT_CUBIN | BLKC_EMIT_OBJECT | BLKC_EMIT_ASM |
		    BLKC_EMIT_SASS | EMIT_RECORD
};

/* All passes that the target and what is wanted take.  Three groups of rows for which no producer was found are 8
 * warps: the same again. */
static bool run_pipelines(compile *c, pass_context *p, ir_func **f, bool mapped)
{
	uint32_t errors = c->diags.errors, artifacts = c->artifacts.n;
	if (!run_passes(c, p, *f, PIPELINE_tile)) return false;
	add_ir(c, *f, BLKC_EMIT_TILE, EXPLAIN_TILE);
	if (c->target->kind == TARGET_CPU || !mapped) return true;
	if (run_passes(c, p, *f, PIPELINE_nvptx)) {
		add_ir(c, *f, BLKC_EMIT_LAYOUT, EXPLAIN_SCHEDULED);
		return true;
	}
	if (c->diags.errors > errors || !p->whole_rows) return false;
	*f = p->whole_rows;
	*p = (pass_context){.arena = p->arena, .diags = p->diags, .target = p->target};
	p->rows_together = "no producer can copy for them";
	c->artifacts.n = artifacts;
	return run_pipelines(c, p, f, mapped);
}

/* Errors of other kernels do not stop this one, so that one run reports all that are independent; `check_only`: the
 * file's declarations are wrong already, what follows from that would be noise. */
static void compile_kernel(compile *c, sema_program *program, const char *name, bool check_only)
{
	const blkc_request *r = c->request;
	uint32_t errors = c->diags.errors;
	text signature = {.arena = &c->arena};
	sema_request wanted = {.kernel = name,
		.defines = r->defines,
		.ndefines = r->ndefines,
		.values = r->values,
		.nvalues = r->nvalues,
		.promises = r->promises,
		.npromises = r->npromises,
		.shared_defines = !r->kernel,
		.requires_later = !r->kernel && !r->emit};
	double start = milliseconds();
	ir_func *f = sema_specialise(program, &wanted, &signature);
	if (!f || c->diags.errors > errors || check_only) return;
	log_time(c, "check and specialise", start);
	if (verifies_each(r) && !verified(c, f, "check and specialise")) return;
	pass_context p = {.arena = &c->arena, .diags = &c->diags, .target = c->target};
	uint64_t scratch_bytes = 0;
	bool code = r->emit & EMIT_CODE;
	if (!run_pipelines(c, &p, &f, code || r->emit & BLKC_EMIT_LAYOUT)) return;
	if (c->target->kind == TARGET_CPU) {
		if (code && !emit_cpu(c, f, &scratch_bytes)) return;
		finish_signature(c, f, &signature, scratch_bytes);
	} else {
		finish_signature(c, f, &signature, 0);
		if (code && !emit_nvptx(c, &p, f, signature.at)) return;
	}
	vec_push(&c->arena, &c->kernels, ((blkc_kernel){.name = f->name, .signature = signature.at}));
}

static void drop_artifacts(compile *c, unsigned kind)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < c->artifacts.n; i++)
		if (c->artifacts.at[i].kind != kind) c->artifacts.at[kept++] = c->artifacts.at[i];
	c->artifacts.n = kept;
}

/* One object, one assembly and one module: linkers and assemblers take them as they take any C compiler's. */
static void join_cpu_kernels(compile *c)
{
	cpu_options options = cpu_wants(c);
	cpu_output out = {0};
	double start = milliseconds();
	if (c->diags.errors || !c->parts.n) return;
	if (!cpu_join(&c->arena, &c->diags, c->last, &options, c->parts.at, c->parts.n, &out)) {
		c->artifacts.n = c->kernels.n = 0;
		return;
	}
	log_time(c, "cpu code of all", start);
	add_cpu_code(c, "", &out);
}

/* One PTX text and one cubin for the whole file: a user's .ptx holds all kernels of its .blk. */
static void join_kernels(compile *c)
{
	unsigned emit = c->request->emit;
	VEC(const char *) ptx = {0};
	for (uint32_t i = 0; i < c->artifacts.n; i++)
		if (c->artifacts.at[i].kind == BLKC_EMIT_PTX)
			vec_push(&c->arena, &ptx, (const char *)c->artifacts.at[i].bytes);
	if (ptx.n > 1) {
		size_t bytes;
		const char *joined = ptx_join(&c->arena, ptx.at, ptx.n, &bytes);
		drop_artifacts(c, BLKC_EMIT_PTX);
		add_artifact(c, "", BLKC_EMIT_PTX, joined, bytes);
		if (emit & BLKC_EMIT_CUBIN) {
			pass_context p = {.arena = &c->arena, .diags = &c->diags, .target = c->target};
			nvptx_options options = {.ptxas = c->request->ptxas, .limits = ptxas_limits(c->request)};
			nvptx_output out;
			drop_artifacts(c, BLKC_EMIT_CUBIN);
			if (nvptx_assemble(&p, c->last, joined, bytes, &options, &out))
				add_artifact(c, "", BLKC_EMIT_CUBIN, out.cubin, out.cubin_bytes);
			else
				c->artifacts.n = c->kernels.n = 0;
		}
	}
	if (!(emit & BLKC_EMIT_PTX)) drop_artifacts(c, BLKC_EMIT_PTX);
}

/* The records of all kernels, in the three forms. */
static void add_records(compile *c)
{
	text out = {.arena = &c->arena}, object = {.arena = &c->arena};
	if (c->request->emit & BLKC_EMIT_EXPLAIN) {
		for (uint32_t i = 0; i < c->records.n; i++) {
			if (i) text_puts(&out, "\n");
			explain_text(&out, &c->arena, c->records.at[i]);
		}
		add_artifact(c, "", BLKC_EMIT_EXPLAIN, out.at ? out.at : "", out.n);
	}
	if (c->request->emit & BLKC_EMIT_JSON) {
		explain_json(&object, &c->arena, c->request->name, c->records.at, c->records.n);
		add_artifact(c, "", BLKC_EMIT_JSON, object.at, object.n);
	}
	if (c->request->emit & BLKC_EMIT_HTML) {
		text page = {.arena = &c->arena};
		explain_html(&page, &c->arena, c->main, c->records.at, c->records.n);
		add_artifact(c, "", BLKC_EMIT_HTML, page.at, page.n);
	}
}

static int wrong(compile *c, const char *message)
{
	diag_error(&c->diags, 803, (span){0}, "%s", message);
	return 2;
}

static bool is_pass(const char *name)
{
	return strcmp(name, "all") == 0 || pass_find(name, strlen(name));
}

static int check_request(compile *c)
{
	const blkc_request *r = c->request;
	const char *name = r->target ? r->target : "sm_80";
	c->target = target_find(name);
	if (!c->target) return wrong(c, arena_printf(&c->arena, "unknown target '%s'; see --list-targets", name));
	if (r->print_after && !is_pass(r->print_after))
		return wrong(c, arena_printf(&c->arena, "there is no pass '%s'; --print-after=all prints after each",
					r->print_after));
	bool cpu = c->target->kind == TARGET_CPU;
	if (cpu && r->emit & (BLKC_EMIT_PTX | BLKC_EMIT_CUBIN | BLKC_EMIT_LAYOUT | BLKC_EMIT_SASS | EMIT_RECORD))
		return wrong(c, "target cpu has no layouts, PTX, cubin or report; emit tile, llvm, asm or object");
	if (!cpu && r->emit & (BLKC_EMIT_OBJECT | BLKC_EMIT_ASM))
		return wrong(c, "object and asm are for --target=cpu; a GPU target emits ptx or cubin");
	return 0;
}

/* The passes that were asked for, in turn, on one function. */
static int run_wanted(compile *c, ir_func *f)
{
	pass_context p = {.arena = &c->arena, .diags = &c->diags, .target = c->target};
	for (const char *s = c->request->passes; *s;) {
		size_t n = strcspn(s, ",");
		const pass_row *row = pass_find(s, n);
		const char *name = arena_strndup(&c->arena, s, n);
		if (!row) return wrong(c, arena_printf(&c->arena, "there is no pass '%s'; see --list-passes", name));
		/* a row of the level that the text has, where the pass stands several times */
		while (row->name && (row->takes != f->level || strcmp(row->name, name) != 0)) row++;
		if (!row->name)
			return wrong(c, arena_printf(&c->arena, "pass '%s' does not take IR of the %s level", name,
						ir_level_names[f->level]));
		if (!run_pass(c, &p, f, row) || !verified(c, f, row->name)) return 1;
		s += n + (s[n] == ',');
	}
	return 0;
}

/* blkc --passes: the text is tile IR, and what the passes leave of its functions is the artifact. */
static int compile_ir(compile *c, source_file *file)
{
	text out = {.arena = &c->arena};
	const char *first = NULL;
	size_t at = 0;
	do {
		ir_func *f = ir_read_next(&c->arena, &c->diags, file, &at);
		if (!f || !verified(c, f, "reading")) return 1;
		int status = run_wanted(c, f);
		if (status) return status;
		if (!first) first = f->name;
		ir_print(&out, f);
	} while (at < file->size);
	add_artifact(c, first, BLKC_EMIT_TILE, out.at, out.n);
	return 0;
}

/* The files that were read beside the main one; the built-in library's names begin with '<'. */
static void add_dependencies(compile *c, const source_set *sources)
{
	for (uint32_t i = 1; i < sources->files.n; i++)
		if (sources->files.at[i]->name[0] != '<')
			vec_push(&c->arena, &c->dependencies, sources->files.at[i]->name);
}

/* Code of nothing would be a file that no tool takes; a check of such a file is fine. */
static void report_no_kernel(compile *c, source_file *file)
{
	diag *d = diag_error(
		&c->diags, 616, (span){file, 0, 0}, "%s has no kernel: there is no code to emit", file->name);
	diag_set_hint(&c->diags, d, "a file of functions and constants is for import; --emit=tile checks it alone");
}

static int compile_request(compile *c)
{
	const blkc_request *r = c->request;
	int status = check_request(c);
	if (status) return status;
	names *table = names_new(&c->arena);
	source_set sources = {
		.arena = &c->arena, .include_paths = r->include_paths, .ninclude_paths = r->ninclude_paths};
	source_file *file = source_add(&sources, &c->diags, (span){0}, r->name, r->text, r->text_bytes);
	if (!file) return 1;
	c->main = file;
	if (r->passes) return compile_ir(c, file);
	text out = {.arena = &c->arena};
	if (r->emit & BLKC_EMIT_TOKENS) {
		dump_tokens(&c->arena, &c->diags, table, file, &out);
		add_artifact(c, "", BLKC_EMIT_TOKENS, out.at ? out.at : "", out.n);
		if (r->emit == BLKC_EMIT_TOKENS) return c->diags.errors != 0;
	}
	if (r->emit == BLKC_EMIT_FORMATTED) {
		parse_file(&c->arena, &c->diags, table, file);
		if (c->diags.errors) return 1;
		format_source(&c->arena, &c->diags, file, &out);
		add_artifact(c, "", BLKC_EMIT_FORMATTED, out.at ? out.at : "", out.n);
		return 0;
	}
	if (r->emit & BLKC_EMIT_AST) {
		text tree = {.arena = &c->arena};
		dump_ast(parse_file(&c->arena, &c->diags, table, file), &tree);
		add_artifact(c, "", BLKC_EMIT_AST, tree.at ? tree.at : "", tree.n);
		if (c->diags.errors || !(r->emit & ~(unsigned)(BLKC_EMIT_AST | BLKC_EMIT_TOKENS)))
			return c->diags.errors != 0;
	}
	double start = milliseconds();
	sema_program *program = sema_load(&c->arena, &c->diags, table, &sources, file);
	log_time(c, "parse and collect", start);
	add_dependencies(c, &sources);
	bool found = false, check_only = c->diags.errors;
	c->several = !r->kernel && sema_kernel_count(program) > 1;
	for (size_t i = 0; i < sema_kernel_count(program); i++) {
		const char *name = sema_kernel_name(program, i);
		if (r->kernel && strcmp(r->kernel, name) != 0) continue;
		found = true;
		compile_kernel(c, program, name, check_only);
	}
	if (!c->diags.errors && !sema_kernel_count(program) && r->emit & EMIT_CODE) report_no_kernel(c, file);
	if (c->diags.errors)
		c->artifacts.n = c->kernels.n = 0;
	else
		add_records(c);
	join_kernels(c);
	join_cpu_kernels(c);
	if (r->kernel && !found && !c->diags.errors)
		return wrong(c, arena_printf(&c->arena, "%s has no kernel '%s'", r->name, r->kernel));
	return c->diags.errors != 0;
}

static void finish_result(compile *c, int status)
{
	text message = {.arena = &c->arena};
	if (c->request->diagnostics_json)
		diag_render_json(&c->diags, &message);
	else
		diag_render_text(&c->diags, &message);
	blkc_result *result = c->result;
	result->diagnostics = message.at ? message.at : "";
	result->errors = c->diags.errors;
	result->warnings = c->diags.warnings;
	result->log = c->log.at ? c->log.at : "";
	result->kernels = c->kernels.at;
	result->nkernels = c->kernels.n;
	result->artifacts = c->artifacts.at;
	result->nartifacts = c->artifacts.n;
	result->dependencies = c->dependencies.at;
	result->ndependencies = c->dependencies.n;
	result->status = status;
}

/* Runs the request; on the way out the result's fields point into the arena.  Memory that runs out, the arena's or
 * LLVM's, leaves the result as blkc_compile() prepared it. */
static void fill_result(compile *c, const llvm_guard *g)
{
	int left = setjmp(c->out_of_memory);
	c->arena.recover = &c->out_of_memory;
	if (left == LLVM_GAVE_UP) {
		diag_error(&c->diags, 811, (span){0}, "code generation: LLVM gives up: %s", g->complaint);
		c->artifacts.n = c->kernels.n = 0;
		finish_result(c, 1);
	}
	if (left) return;
	diags_init(&c->diags, &c->arena);
	c->diags.warnings_are_errors = c->request->warnings_are_errors;
	finish_result(c, compile_request(c));
}

blkc_result *blkc_compile(const blkc_request *request)
{
	compile *c = calloc(1, sizeof *c);
	blkc_result *result = calloc(1, sizeof *result);
	blkc_request copy = {0};
	if (!c || !result) {
		free(c);
		free(result);
		return NULL;
	}
	memcpy(&copy, request, request->size < sizeof copy ? request->size : sizeof copy);
	*result = (blkc_result){.status = 3, .diagnostics = "out of memory\n", .log = "", .errors = 1, .internal = c};
	c->arena.limit = copy.memory_limit;
	c->request = &copy;
	c->result = result;
	c->log.arena = &c->arena;
	plain_numbers n;
	llvm_guard g;
	numbers_begin(&n);
	if (llvm_guard_begin(&g, &c->out_of_memory)) fill_result(c, &g);
	llvm_guard_end(&g);
	numbers_end(&n);
	c->request = NULL;
	return result;
}

void blkc_result_free(blkc_result *result)
{
	if (!result) return;
	compile *c = result->internal;
	if (c) arena_free(&c->arena);
	free(c);
	free(result);
}

const char *blkc_version(void)
{
	return "blk " BLK_VERSION ", LLVM " BLK_LLVM_VERSION;
}

const char *blkc_pass_name(size_t i, const char **meaning)
{
	for (const pass_row *row = pass_rows; row->name; row++)
		if (i-- == 0) {
			if (meaning) *meaning = row->meaning;
			return row->name;
		}
	return NULL;
}

const char *blkc_target_name(size_t i, const char **note)
{
	const blk_target *t = target_at((unsigned)i);
	if (!t) return NULL;
	if (note) *note = t->note;
	return t->name;
}
