/* blk-lsp: the language server's command line.
 *
 * In: options, then the Language Server Protocol on standard input.  Out: the protocol on standard output, and nothing
 * else there.
 * The one idea: all state is one `server`, made here. */
#include "lsp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: blk-lsp [options]      a language server for .blk files, on standard input and output\n"
	"  -I DIR           where imports are looked up after the importing file's folder\n"
	"  -D NAME=VALUE    a const parameter or an option, for kernels that have it\n"
	"  --version  --help\n";

_Noreturn void out_of_memory(void)
{
	static const char said[] = "blk-lsp: out of memory\n";
	_exit(write(STDERR_FILENO, said, sizeof said - 1) < 0 ? 2 : 1);
}

void *must(void *p)
{
	if (!p) out_of_memory();
	return p;
}

/* For the JSON library, which has no other way to be sure of its memory. */
static void *must_allocate(size_t n)
{
	return must(malloc(n ? n : 1));
}

static int usage(const char *arg)
{
	fprintf(stderr, "blk-lsp: unknown option or missing value: '%s'\nblk-lsp: --help lists the options\n", arg);
	return 2;
}

static bool parse_define(server *s, char *define)
{
	char *equals = strchr(define, '=');
	if (!equals || equals == define) return false;
	*equals = 0;
	server_define(s, define, equals + 1);
	return true;
}

static int parse(server *s, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *arg = argv[i], *value = NULL;
		if (strcmp(arg, "--stdio") == 0) continue; /* some clients say it */
		if (strncmp(arg, "-I", 2) == 0 || strncmp(arg, "-D", 2) == 0)
			value = arg[2] ? arg + 2 : i + 1 < argc ? argv[++i] : NULL;
		if (!value) return usage(arg);
		if (arg[1] == 'I')
			server_include(s, value);
		else if (!parse_define(s, value))
			return usage(arg);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--help") == 0) return fputs(help, stdout) < 0;
	if (argc == 2 && strcmp(argv[1], "--version") == 0) return printf("blk-lsp %s\n", BLK_VERSION) < 0;
	json_set_alloc_funcs(must_allocate, free);
	signal(SIGPIPE, SIG_IGN);
	server s = {.in = STDIN_FILENO, .out = STDOUT_FILENO};
	s.scratch.recover = &s.out_of_memory;
	int status = parse(&s, argc, argv);
	if (status == 0) status = serve(&s);
	while (s.documents) document_close(&s, s.documents);
	for (size_t i = 0; i < s.ninclude_paths; i++) free((char *)s.include_paths[i]);
	for (size_t i = 0; i < s.ndefines; i++) {
		free((char *)s.defines[i].name);
		free((char *)s.defines[i].value);
	}
	free(s.include_paths);
	free(s.defines);
	free(s.folder);
	free(s.buffer);
	free(s.queue);
	arena_free(&s.scratch);
	return status;
}
