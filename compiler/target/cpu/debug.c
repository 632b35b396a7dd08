/* Line tables: which instruction came of which line of the source.
 *
 * In: the places of the operations.  Out: DWARF for the kernel and its program; the loader names lines in reports by
 * it, and registers it with gdb (runtime/device/cpu_load.c).
 * The one idea: an element that is computed inside of another's loop keeps its own line, so each operation puts its
 * place on the builder while it is written, and puts back what was there.
 * DWARF 4: its line tables hold the files' names themselves, so that their reader (runtime/device/cpu_line.c) is short.
 * Nothing of the machine's stands in it, neither folder nor time: equal sources make equal bytes. */
#include "lower.h"

#include <string.h>

static LLVMMetadataRef file_of(cpu_emitter *e, const source_file *f)
{
	while (e->files.n <= f->index) vec_push(e->arena, &e->files, NULL);
	LLVMMetadataRef *at = &e->files.at[f->index];
	if (!*at) *at = LLVMDIBuilderCreateFile(e->debug, f->name, strlen(f->name), "", 0);
	return *at;
}

static void flag(cpu_emitter *e, const char *name, unsigned v)
{
	LLVMAddModuleFlag(e->module, LLVMModuleFlagBehaviorWarning, name, strlen(name),
		LLVMValueAsMetadata(LLVMConstInt(e->i32, v, false)));
}

void cpu_debug_begin(cpu_emitter *e)
{
	const source_file *f = e->func->at.file;
	if (!e->options->line_info || !f) return;
	e->debug = LLVMCreateDIBuilder(e->module);
	LLVMDIBuilderCreateCompileUnit(e->debug, LLVMDWARFSourceLanguageC, file_of(e, f), "blk", 3, true, "", 0, 0, "",
		0, LLVMDWARFEmissionLineTablesOnly, 0, false, false, "", 0, "", 0);
	flag(e, "Debug Info Version", LLVMDebugMetadataVersion());
	flag(e, "Dwarf Version", 4);
}

/* What is written from here on belongs to `function`, to the kernel's own line as long as nothing else is said. */
void cpu_debug_function(cpu_emitter *e, LLVMValueRef function)
{
	if (!e->debug) return;
	LLVMMetadataRef file = file_of(e, e->func->at.file);
	LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(e->debug, file, NULL, 0, LLVMDIFlagZero);
	unsigned line = source_locate(e->arena, e->func->at).line;
	size_t n;
	const char *name = LLVMGetValueName2(function, &n);
	e->subprogram = LLVMDIBuilderCreateFunction(
		e->debug, file, name, n, name, n, file, line, type, false, true, line, LLVMDIFlagZero, true);
	LLVMSetSubprogram(function, e->subprogram);
	cpu_debug_line(e, e->func->at);
}

LLVMMetadataRef cpu_debug_line(cpu_emitter *e, span at)
{
	if (!e->debug) return NULL;
	LLVMMetadataRef before = LLVMGetCurrentDebugLocation2(e->builder);
	if (!at.file) return before;
	LLVMMetadataRef scope = e->subprogram;
	if (at.file != e->func->at.file)
		scope = LLVMDIBuilderCreateLexicalBlockFile(e->debug, scope, file_of(e, at.file), 0);
	unsigned line = source_locate(e->arena, at).line;
	LLVMSetCurrentDebugLocation2(e->builder, LLVMDIBuilderCreateDebugLocation(e->context, line, 0, scope, NULL));
	return before;
}

void cpu_debug_back(cpu_emitter *e, LLVMMetadataRef before)
{
	if (e->debug) LLVMSetCurrentDebugLocation2(e->builder, before);
}

void cpu_debug_end(cpu_emitter *e)
{
	if (!e->debug) return;
	LLVMDIBuilderFinalize(e->debug);
	LLVMDisposeDIBuilder(e->debug);
	e->debug = NULL;
}
