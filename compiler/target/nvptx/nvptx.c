/* One kernel through LLVM: module, function, passes, emission.
 *
 * In: a scheduled function.  Out: LLVM text, PTX text, cubin.
 * The one idea: every LLVM object hangs on one struct that is disposed of on every way out, running out of memory
 * (a longjmp of the arena) included, and nothing of LLVM is shared between calls but its registered targets.
 *
 * The passes are few and named (`scalar_passes`, `loop_passes`): tiles are already registers, so what pays is common
 * subexpressions, address arithmetic and, where there are loops, invariant code and unrolling. */
#include "support/blocks.h"
#include "support/llvm_memory.h"
#include "support/llvm_options.h"
#include "lower.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIPLE "nvptx64-nvidia-cuda"

static const char scalar_passes[] =
	"function(early-cse,reassociate,instcombine<no-verify-fixpoint>,simplifycfg,early-cse,adce)";
static const char loop_passes[] =
	"function(early-cse,reassociate,instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa,"
	"loop-mssa(licm),loop(indvars),loop-unroll<no-partial;no-runtime;no-upperbound>,"
	"early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,adce)";

/* What outlives an early way out. */
typedef struct session {
	lower l;
	LLVMTargetMachineRef machine;
	LLVMTargetDataRef data;
	LLVMMemoryBufferRef emitted;
	char *message;       /* LLVM's */
	char complaint[512]; /* first error that LLVM reported */
} session;

/* ---- LLVM itself ---- */

static void register_target(void)
{
	LLVMInitializeNVPTXTargetInfo();
	LLVMInitializeNVPTXTarget();
	LLVMInitializeNVPTXTargetMC();
	LLVMInitializeNVPTXAsmPrinter();
	llvm_options_once();
}

static void register_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, register_target);
}

/* Runs inside LLVM: may not allocate from the arena, which could jump out. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
	session *s = context;
	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || s->complaint[0]) return;
	char *why = LLVMGetDiagInfoDescription(info);
	snprintf(s->complaint, sizeof s->complaint, "%s", why ? why : "unknown error");
	LLVMDisposeMessage(why);
}

static void dispose(session *s)
{
	if (s->message) LLVMDisposeMessage(s->message);
	if (s->emitted) LLVMDisposeMemoryBuffer(s->emitted);
	if (s->l.debug) LLVMDisposeDIBuilder(s->l.debug);
	if (s->l.builder) LLVMDisposeBuilder(s->l.builder);
	if (s->l.module) LLVMDisposeModule(s->l.module);
	if (s->data) LLVMDisposeTargetData(s->data);
	if (s->machine) LLVMDisposeTargetMachine(s->machine);
	if (s->l.context) LLVMContextDispose(s->l.context);
	memset(s, 0, sizeof *s);
}

static bool refuse(session *s, const char *what, const char *why)
{
	if (s->complaint[0]) why = s->complaint;
	diag_error(s->l.pass->diags, 811, s->l.func->at, "code generation for '%s': %s: %s", s->l.func->name, what,
		why ? why : "unknown error");
	return false;
}

/* ---- module and function ---- */

static unsigned attribute_kind(const char *name)
{
	return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

static void make_types(lower *l)
{
	LLVMContextRef c = l->context;
#define TYPE(field, make) l->field = make(c);
#include "support/llvm_types.def"
#undef TYPE
	l->generic = LLVMPointerTypeInContext(c, 0);
	l->global = LLVMPointerTypeInContext(c, 1);
	l->shared = LLVMPointerTypeInContext(c, 3);
	l->invariant = LLVMGetMDKindIDInContext(c, "invariant.load", 14);
	l->loop_kind = LLVMGetMDKindIDInContext(c, "llvm.loop", 9);
	l->memory_kind = attribute_kind("memory");
	l->convergent_kind = attribute_kind("convergent");
	l->nounwind_kind = attribute_kind("nounwind");
}

static void string_attribute(lower *l, const char *name, const char *value)
{
	LLVMAttributeRef a =
		LLVMCreateStringAttribute(l->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
	LLVMAddAttributeAtIndex(l->function, LLVMAttributeFunctionIndex, a);
}

static void enum_attribute(lower *l, LLVMAttributeIndex at, const char *name, uint64_t value)
{
	LLVMAddAttributeAtIndex(l->function, at, LLVMCreateEnumAttribute(l->context, attribute_kind(name), value));
}

/* A bool is passed as a byte. */
static LLVMTypeRef param_type(lower *l, ir_type t)
{
	return !t.pointer && t.elem == SCALAR_BOOL ? l->i8 : lower_type(l, t);
}

static void count_map(ir_op *o, void *context)
{
	lower *l = context;
	l->nmaps += o->kind == IR_TENSOR_MAP;
}

/* The host's tensor maps: 128 bytes each, read where they were passed (grid_constant: no copy in local memory, which
 * the copy engine could not read). */
static void map_attributes(lower *l, LLVMAttributeIndex at)
{
	LLVMTypeRef bytes = LLVMArrayType2(l->i8, 128);
	LLVMAddAttributeAtIndex(l->function, at, LLVMCreateTypeAttribute(l->context, attribute_kind("byval"), bytes));
	enum_attribute(l, at, "align", 64);
	LLVMAddAttributeAtIndex(
		l->function, at, LLVMCreateStringAttribute(l->context, "nvvm.grid_constant", 18, "", 0));
}

static void make_function(lower *l)
{
	const ir_func *f = l->func;
	ir_walk(f->body, count_map, l);
	LLVMTypeRef *types = ARENA_ARRAY(l->arena, LLVMTypeRef, f->nparams + l->nmaps + 1);
	for (uint32_t i = 0; i < f->nparams; i++) types[i] = param_type(l, f->params[i].type);
	for (uint32_t i = 0; i < l->nmaps; i++) types[f->nparams + i] = l->generic;
	l->function =
		LLVMAddFunction(l->module, f->name, LLVMFunctionType(l->none, types, f->nparams + l->nmaps, false));
	for (uint32_t i = 0; i < l->nmaps; i++) map_attributes(l, f->nparams + i + 1);
	LLVMSetFunctionCallConv(l->function, 71); /* ptx_kernel */
	enum_attribute(l, LLVMAttributeFunctionIndex, "nounwind", 0);
	string_attribute(l, "nvvm.reqntid", arena_printf(l->arena, "%u,1,1", 32 * (ir_warps(f) + f->producer_warps)));
	/* Beside setmaxnreg: else ptxas may not know with how many registers a thread begins, and ignores it
	 * (C7508). */
	if (f->producer_warps >= 4) string_attribute(l, "nvvm.minctasm", "1");
	if (f->maxnreg) string_attribute(l, "nvvm.maxnreg", arena_printf(l->arena, "%u", f->maxnreg));
	for (uint32_t i = 0; i < f->nparams; i++) {
		const ir_param *p = &f->params[i];
		LLVMSetValueName2(LLVMGetParam(l->function, i), p->name, strlen(p->name));
		if (!p->type.pointer) continue;
		uint32_t align = p->divisible < 4096 ? p->divisible : 4096;
		if (align < scalar_bytes(p->type.elem)) align = scalar_bytes(p->type.elem);
		enum_attribute(l, i + 1, "align", align);
		if (p->type.pointer != IR_CONST_POINTER) continue;
		enum_attribute(l, i + 1, "noalias", 0);
		enum_attribute(l, i + 1, "readonly", 0);
	}
}

static void make_debug(lower *l)
{
	const source_file *f = l->func->at.file;
	if (!l->options->line_info || !f) return;
	l->debug = LLVMCreateDIBuilder(l->module);
	LLVMMetadataRef file = LLVMDIBuilderCreateFile(l->debug, f->name, strlen(f->name), "", 0);
	while (l->files.n <= f->index) vec_push(l->arena, &l->files, NULL);
	l->files.at[f->index] = file;
	LLVMDIBuilderCreateCompileUnit(l->debug, LLVMDWARFSourceLanguageC, file, "blk", 3, true, "", 0, 0, "", 0,
		LLVMDWARFEmissionLineTablesOnly, 0, false, false, "", 0, "", 0);
	LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(l->debug, file, NULL, 0, LLVMDIFlagZero);
	unsigned line = source_locate(l->arena, l->func->at).line;
	const char *name = l->func->name;
	l->subprogram = LLVMDIBuilderCreateFunction(l->debug, file, name, strlen(name), name, strlen(name), file, line,
		type, false, true, line, LLVMDIFlagZero, true);
	LLVMSetSubprogram(l->function, l->subprogram);
	LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
		LLVMValueAsMetadata(lower_i32(l, LLVMDebugMetadataVersion())));
}

static void bind_params(lower *l)
{
	const ir_func *f = l->func;
	for (uint32_t i = 0; i < f->nparams; i++) {
		tile t = lower_new_tile(l, f->body->args[i]);
		t.at[0] = LLVMGetParam(l->function, i);
		if (LLVMTypeOf(t.at[0]) != lower_type(l, f->params[i].type))
			t.at[0] = LLVMBuildICmp(l->builder, LLVMIntNE, t.at[0], LLVMConstNull(l->i8), "");
		lower_set(l, f->body->args[i], t);
	}
}

static void make_thread_index(lower *l)
{
	uint64_t low = 0, high = 32 * (ir_warps(l->func) + l->func->producer_warps);
	while (32u * l->func->num_warps > 1u << l->tid_bits) l->tid_bits++;
	l->thread = l->tid = lower_intrinsic(l, "llvm.nvvm.read.ptx.sreg.tid.x", l->i32, 0, NULL);
	LLVMAttributeRef range = LLVMCreateConstantRangeAttribute(l->context, attribute_kind("range"), 32, &low, &high);
	LLVMAddCallSiteAttribute(l->tid, LLVMAttributeReturnIndex, range);
	if (l->func->row_groups > 1)
		l->of_group = LLVMBuildAnd(l->builder, l->thread, lower_i32(l, 32 * l->func->num_warps - 1), "");
}

static void make_body(lower *l)
{
	l->values = ARENA_ARRAY(l->arena, tile, l->func->nvalues);
	l->partners = ARENA_ARRAY(l->arena, LLVMValueRef, l->func->nvalues);
	l->late = ARENA_ARRAY(l->arena, late_tile, l->func->nvalues);
	l->entry = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(l->context, l->function, "");
	LLVMPositionBuilderAtEnd(l->builder, l->entry);
	make_thread_index(l);
	LLVMBuildBr(l->builder, body);
	LLVMPositionBuilderAtEnd(l->builder, body);
	bind_params(l);
	lower_block(l, l->func->body);
	LLVMBuildRetVoid(l->builder);
	if (l->debug) LLVMDIBuilderFinalize(l->debug);
}

/* ---- passes and emission ---- */

static bool has_loops(const ir_block *b)
{
	for (const ir_op *o = b->first; o; o = o->next) {
		if (ir_is_loop(o)) return true;
		for (unsigned i = 0; i < o->nregions; i++)
			if (has_loops(o->regions[i])) return true;
	}
	return false;
}

static bool make_machine(session *s, const blk_target *t)
{
	LLVMTargetRef target;
	const char *version = strstr(t->llvm_features, "ptx");
	unsigned lowest = version ? (unsigned)strtoul(version + 3, NULL, 10) : 70;
	if (lowest > s->l.ptx_version) s->l.ptx_version = lowest;
	const char *features = arena_printf(s->l.arena, "+ptx%u", s->l.ptx_version);
	if (LLVMGetTargetFromTriple(TRIPLE, &target, &s->message)) return refuse(s, "target", s->message);
	s->machine = LLVMCreateTargetMachine(
		target, TRIPLE, t->llvm_cpu, features, LLVMCodeGenLevelDefault, LLVMRelocDefault, LLVMCodeModelDefault);
	if (!s->machine) return refuse(s, "target", "no such machine");
	s->data = LLVMCreateTargetDataLayout(s->machine);
	LLVMSetModuleDataLayout(s->l.module, s->data);
	return true;
}

/* No kernel of ordinary size has that many instructions in a block; short pieces are what the code generator likes. */
enum { LONGEST_BLOCK = 6000, PIECE = 400 };

static bool run_passes(session *s)
{
	llvm_room(s->l.arena);
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	const char *passes = has_loops(s->l.func->body) ? loop_passes : scalar_passes;
	LLVMErrorRef error = LLVMRunPasses(s->l.module, passes, s->machine, options);
	LLVMDisposePassBuilderOptions(options);
	if (!error) return s->complaint[0] ? refuse(s, "passes", NULL) : true;
	char *why = LLVMGetErrorMessage(error);
	snprintf(s->complaint, sizeof s->complaint, "%s", why);
	LLVMDisposeErrorMessage(why);
	return refuse(s, "passes", NULL);
}

static uint64_t count_instructions(const lower *l)
{
	uint64_t n = 0;
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(l->function); b; b = LLVMGetNextBasicBlock(b))
		for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) n++;
	return n;
}

static void keep_llvm(session *s, nvptx_output *out)
{
	s->message = LLVMPrintModuleToString(s->l.module);
	if (!s->message) arena_out_of_memory(s->l.arena);
	out->llvm_bytes = strlen(s->message);
	out->llvm = arena_strndup(s->l.arena, s->message, out->llvm_bytes);
	LLVMDisposeMessage(s->message);
	s->message = NULL;
}

static bool emit(session *s, nvptx_output *out)
{
	llvm_room(s->l.arena);
	LLVMBool bad = LLVMTargetMachineEmitToMemoryBuffer(
		s->machine, s->l.module, LLVMAssemblyFile, &s->message, &s->emitted);
	if (bad || s->complaint[0]) return refuse(s, "emission", s->message);
	if (!s->emitted) arena_out_of_memory(s->l.arena); /* LLVM found no memory for it */
	text ptx = {.arena = s->l.arena};
	ptx_finish(&s->l, LLVMGetBufferStart(s->emitted), LLVMGetBufferSize(s->emitted), &ptx, &out->ptx_marks);
	out->ptx = ptx.at;
	out->ptx_bytes = ptx.n;
	return true;
}

static bool needs_assembler(const nvptx_options *o)
{
	return o->want_cubin || o->check_budgets || o->want_report;
}

static bool build(session *s, nvptx_output *out)
{
	lower *l = &s->l;
	l->context = LLVMContextCreate();
	LLVMContextSetDiagnosticHandler(l->context, on_diagnostic, s);
	l->module = LLVMModuleCreateWithNameInContext(l->func->name, l->context);
	l->builder = LLVMCreateBuilderInContext(l->context);
	LLVMSetTarget(l->module, TRIPLE);
	make_types(l);
	make_function(l);
	make_debug(l);
	make_body(l);
	if (l->failed || !make_machine(s, l->pass->target)) return false;
	out->instructions = count_instructions(l);
	out->consumer_registers = l->consumer_registers;
	out->producer_registers = l->producer_registers;
	char *why = NULL;
	bool broken = LLVMVerifyModule(l->module, LLVMReturnStatusAction, &why);
	if (broken) snprintf(s->complaint, sizeof s->complaint, "%s", why);
	LLVMDisposeMessage(why);
	if (broken) return refuse(s, "verification", NULL);
	if (!run_passes(s)) return false;
	blocks_split(l->context, l->function, LONGEST_BLOCK, PIECE);
	lower_localise(l, s->data);
	if (l->options->want_llvm) keep_llvm(s, out);
	return !l->options->want_ptx && !needs_assembler(l->options) ? true : emit(s, out);
}

/* build(), with the arena's longjmp caught so that LLVM's objects are disposed of, then passed on. */
static bool build_or_dispose(session *s, nvptx_output *out)
{
	jmp_buf here, *outer = s->l.arena->recover;
	arena *a = s->l.arena;
	a->recover = &here;
	if (setjmp(here)) {
		dispose(s);
		a->recover = outer;
		arena_out_of_memory(a);
	}
	bool good = build(s, out);
	a->recover = outer;
	dispose(s);
	return good;
}

bool nvptx_emit(pass_context *pass, ir_func *f, const nvptx_options *options, nvptx_output *out)
{
	session *s = ARENA_NEW(pass->arena, session);
	memset(out, 0, sizeof *out);
	if (!pass_axis(pass, f)) return false;
	register_once();
	s->l = (lower){.arena = pass->arena, .pass = pass, .func = f, .options = options};
	if (!build_or_dispose(s, out)) return false;
	if (needs_assembler(options) && !ptxas_run(pass, f, options, out)) return false;
	return !(options->want_sass || options->want_page) || sass_run(pass, f, options, out);
}
