/* The cpu device's back end, top to bottom: plan, LLVM IR, LLVM's passes, object.
 *
 * In: a tile-level function.  Out: text and object bytes in the arena.  A file's kernels become one module by way of
 * bitcode, as each is made in an LLVM context of its own.
 * Everything that LLVM owns hangs on the emitter and is disposed on every way out: the arena's escape for lack of
 * memory is caught here, and thrown on once the LLVM objects are gone. */
#include "support/blocks.h"
#include "support/llvm_memory.h"
#include "support/llvm_options.h"
#include "lower.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Error.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <string.h>

enum { CODE_INTERNAL = 810 };

static pthread_once_t targets_once = PTHREAD_ONCE_INIT;
static void init_targets(void)
{
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
}

static bool internal_error(cpu_emitter *e, const char *what, const char *detail)
{
	diag_error(e->diags, CODE_INTERNAL, e->func->at, "the cpu back end failed for kernel `%s`: %s: %s",
		e->func->name, what, detail ? detail : "no details");
	return false;
}

static void on_llvm_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
	cpu_emitter *e = context;
	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || e->message) return;
	e->message = LLVMGetDiagInfoDescription(info);
}

static void dispose(cpu_emitter *e)
{
	if (e->message) LLVMDisposeMessage(e->message);
	if (e->memory) LLVMDisposeMemoryBuffer(e->memory);
	if (e->pass_options) LLVMDisposePassBuilderOptions(e->pass_options);
	if (e->debug) LLVMDisposeDIBuilder(e->debug);
	if (e->entry) LLVMDisposeBuilder(e->entry);
	if (e->builder) LLVMDisposeBuilder(e->builder);
	if (e->copy) LLVMDisposeModule(e->copy);
	if (e->module) LLVMDisposeModule(e->module);
	if (e->machine) LLVMDisposeTargetMachine(e->machine);
	if (e->context) LLVMContextDispose(e->context);
}

static bool has_feature(const char *features, const char *name)
{
	const char *at = strstr(features, name);
	size_t n = strlen(name);
	return at && (at[n] == ',' || at[n] == 0);
}

/* Names of this host. Strings of LLVM live only in this function and die before anything can escape. */
static void host_names(arena *a, const char **cpu, const char **features)
{
	char cpu_room[64] = "", feature_room[8192] = "";
	char *c = LLVMGetHostCPUName(), *f = LLVMGetHostCPUFeatures();
	if (c && strlen(c) < sizeof cpu_room) strcpy(cpu_room, c);
	if (f && strlen(f) < sizeof feature_room) strcpy(feature_room, f);
	LLVMDisposeMessage(c);
	LLVMDisposeMessage(f);
	*cpu = arena_strndup(a, cpu_room, strlen(cpu_room));
	*features = arena_strndup(a, feature_room, strlen(feature_room));
}

const char *cpu_host_name(arena *a)
{
	const char *cpu, *features;
	host_names(a, &cpu, &features);
	return arena_printf(a, "%s %s", cpu, features);
}

/* What pays for loops over tiles: one program inlined into the loop over programs, then registers, invariants, short
 * loops unrolled whole, vectors.  About half the time of the general pipeline, for the same loops.  Sums that begin
 * with 0 + x are simplified in front of slp-vectorizer: LLVM 22's gives lanes of such sums wrong operands. */
static const char pipeline[] = "cgscc(inline),function("
			       "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
			       "loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion,loop-unroll-full),sroa,gvn,"
			       "loop-vectorize,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
			       "instsimplify,slp-vectorizer,dse,simplifycfg),"
			       "globaldce";

/* Many of LLVM's passes take time that grows with the square of the loops in a function.  Kernels with very many, from
 * unrolled source, go without, and with the most, without the optimising code generator: right, and compiled in time
 * linear in their size, but slower. */
static const char long_pipeline[] =
	"cgscc(inline),function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,simplifycfg),globaldce";
enum { MANY_LOOPS = 400, TOO_MANY_LOOPS = 1200 };

static bool make_machine(cpu_emitter *e, bool quick)
{
	const char *cpu, *features;
	LLVMTargetRef target;
	llvm_options_once();
	pthread_once(&targets_once, init_targets);
	host_names(e->arena, &cpu, &features);
	if (e->options->cpu) cpu = e->options->cpu, features = "";
	if (e->options->features) features = e->options->features;
	e->f16c = has_feature(features, "+f16c");
	bool wide = has_feature(features, "+avx512f");
	e->vector_bytes = wide ? 64 : has_feature(features, "+avx") ? 32 : 16;
	e->vector_registers = wide ? 32 : 16;
	LLVMCodeGenOptLevel level = quick ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault;
	char *triple = LLVMGetDefaultTargetTriple();
	if (!triple) arena_out_of_memory(e->arena);
	bool ok = LLVMGetTargetFromTriple(triple, &target, &e->message) == 0;
	if (ok)
		e->machine =
			LLVMCreateTargetMachine(target, triple, cpu, features, level, LLVMRelocPIC, LLVMCodeModelSmall);
	if (e->machine) LLVMSetTarget(e->module, triple);
	LLVMDisposeMessage(triple);
	if (!e->machine) return internal_error(e, "no LLVM target for this host", e->message);
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(e->machine);
	LLVMSetModuleDataLayout(e->module, layout);
	LLVMDisposeTargetData(layout);
	return true;
}

enum { LONGEST_BLOCK = 1500, PIECE = 1000 }; /* instructions that instruction selection is given at once */

static bool optimise(cpu_emitter *e)
{
	e->pass_options = LLVMCreatePassBuilderOptions();
	const char *passes = e->plan->loops > MANY_LOOPS ? long_pipeline : pipeline;
	llvm_room(e->arena);
	LLVMErrorRef error = LLVMRunPasses(e->module, passes, e->machine, e->pass_options);
	if (!error) cpu_spare_masked(e);
	for (LLVMValueRef f = LLVMGetFirstFunction(e->module); !error && f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f)) blocks_split(e->context, f, LONGEST_BLOCK, PIECE);
	if (!error) return true;
	char *found = LLVMGetErrorMessage(error);
	char room[256] = "";
	strncpy(room, found, sizeof room - 1);
	LLVMDisposeErrorMessage(found);
	return internal_error(e, "passes", room);
}

/* The buffer at e->memory as bytes in the arena; LLVM says by a null one that it found no memory for it. */
static const void *take_memory(cpu_emitter *e, size_t *n)
{
	if (!e->memory) arena_out_of_memory(e->arena);
	*n = LLVMGetBufferSize(e->memory);
	const void *bytes = arena_strndup(e->arena, LLVMGetBufferStart(e->memory), *n);
	LLVMDisposeMemoryBuffer(e->memory);
	e->memory = NULL;
	return bytes;
}

static bool emit_code(cpu_emitter *e, LLVMCodeGenFileType kind, const void **bytes, size_t *n)
{
	llvm_room(e->arena);
	if (LLVMTargetMachineEmitToMemoryBuffer(e->machine, e->module, kind, &e->message, &e->memory) || e->message)
		return internal_error(e, "code generation", e->message);
	*bytes = take_memory(e, n);
	return true;
}

/* Code generation changes the module, so the second kind starts from a copy. */
static bool emit_both(cpu_emitter *e, cpu_output *out)
{
	const void *assembly = NULL;
	if (e->options->want_asm && e->options->want_object) e->copy = LLVMCloneModule(e->module);
	if (e->options->want_asm) LLVMStripModuleDebugInfo(e->module); /* its directives are not every assembler's */
	bool ok = !e->options->want_asm || emit_code(e, LLVMAssemblyFile, &assembly, &out->assembly_bytes);
	out->assembly = assembly;
	if (e->copy) {
		LLVMDisposeModule(e->module);
		e->module = e->copy;
		e->copy = NULL;
	}
	return ok && (!e->options->want_object || emit_code(e, LLVMObjectFile, &out->object, &out->object_bytes));
}

static void drop_message(cpu_emitter *e)
{
	if (e->message) LLVMDisposeMessage(e->message);
	e->message = NULL;
}

static bool emit_all(cpu_emitter *e, cpu_output *out)
{
	if (e->options->want_llvm) {
		e->message = LLVMPrintModuleToString(e->module);
		if (!e->message) arena_out_of_memory(e->arena);
		out->llvm_bytes = strlen(e->message);
		out->llvm = arena_strndup(e->arena, e->message, out->llvm_bytes);
		drop_message(e);
	}
	if (e->options->want_part) {
		e->memory = LLVMWriteBitcodeToMemoryBuffer(e->module);
		out->part = take_memory(e, &out->part_bytes);
	}
	return emit_both(e, out);
}

static bool emit(cpu_emitter *e, cpu_output *out)
{
	e->plan = cpu_plan_make(e->arena, e->func);
	out->scratch_bytes = e->plan->scratch_bytes;
	/* The check of a scalar access is a branch to code that reports it: as much to LLVM as a loop. */
	if (e->options->check_bounds) e->plan->loops += e->plan->scalar_accesses;
	out->quick = e->plan->loops > TOO_MANY_LOOPS;
	e->module = LLVMModuleCreateWithNameInContext(e->func->name, e->context);
	e->builder = LLVMCreateBuilderInContext(e->context);
	e->entry = LLVMCreateBuilderInContext(e->context);
	if (!make_machine(e, out->quick)) return false;
	if (!cpu_lower(e)) return internal_error(e, "invalid LLVM IR", e->message);
	drop_message(e);
	return optimise(e) && emit_all(e, out);
}

static bool join(cpu_emitter *e, cpu_output *out)
{
	bool quick = false;
	for (size_t i = 0; i < e->nparts; i++) {
		const cpu_output *part = &e->parts[i];
		LLVMModuleRef *into = e->module ? &e->copy : &e->module;
		e->memory = LLVMCreateMemoryBufferWithMemoryRange(part->part, part->part_bytes, "kernels", false);
		if (!e->memory) arena_out_of_memory(e->arena);
		if (LLVMParseBitcodeInContext2(e->context, e->memory, into))
			return internal_error(e, "a kernel's module", e->message);
		LLVMDisposeMemoryBuffer(e->memory);
		e->memory = NULL;
		LLVMModuleRef next = e->copy;
		e->copy = NULL; /* the linker disposes of it */
		if (next && LLVMLinkModules2(e->module, next)) return internal_error(e, "linking", e->message);
		quick = quick || part->quick;
	}
	return make_machine(e, quick) && emit_all(e, out);
}

static bool guarded(cpu_emitter *e, bool (*work)(cpu_emitter *, cpu_output *), cpu_output *out)
{
	arena *a = e->arena;
	jmp_buf *outer = a->recover, here;
	*out = (cpu_output){0};
	if (setjmp(here)) {
		a->recover = outer;
		dispose(e);
		arena_out_of_memory(a);
	}
	a->recover = &here;
	e->context = LLVMContextCreate();
	LLVMContextSetDiagnosticHandler(e->context, on_llvm_diagnostic, e);
	bool ok = work(e, out);
	a->recover = outer;
	dispose(e);
	return ok;
}

static cpu_emitter *new_emitter(arena *a, diags *ds, ir_func *f, const cpu_options *options)
{
	cpu_emitter *e = ARENA_NEW(a, cpu_emitter);
	e->arena = a;
	e->diags = ds;
	e->func = f;
	e->options = options;
	return e;
}

bool cpu_emit(arena *a, diags *ds, ir_func *f, const cpu_options *options, cpu_output *out)
{
	return guarded(new_emitter(a, ds, f, options), emit, out);
}

bool cpu_join(arena *a, diags *ds, ir_func *last, const cpu_options *options, const cpu_output *parts, size_t n,
	cpu_output *out)
{
	cpu_emitter *e = new_emitter(a, ds, last, options);
	e->parts = parts;
	e->nparts = n;
	return guarded(e, join, out);
}
