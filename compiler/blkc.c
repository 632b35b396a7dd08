/* blkc, the compiler's command line: options in, files out.
 *
 * In: argv.  Out: files, diagnostics on stderr, exit status 0 (success), 1 (diagnosed error) or 2 (wrong usage).
 * The one idea: everything is compiled in memory first; a file appears under its name only when it is whole (written
 * under a temporary name beside it, then renamed), so neither an error, a full disk nor ^C leaves half an output. */
#include "blkc.h"
#include "tool/colour.h"
#include "support/nearest.h"
#include "tool/tool.h"
#include "base/output.h"
#include "runtime/run/whole.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct emit_kind {
	const char *name, *extension;
	unsigned bit;
} emit_kind;

/* Kinds that blkc makes itself, above the compiler's bits. */
#define TOOL_TVM_FFI (1u << 29)
#define TOOL_HEADER (1u << 30)
#define TOOL_PACKAGE (1u << 31)
#define TOOL_KINDS (TOOL_TVM_FFI | TOOL_HEADER | TOOL_PACKAGE)

static const emit_kind emit_kinds[] = {
	{"tokens", ".tokens", BLKC_EMIT_TOKENS},
	{"ast", ".ast", BLKC_EMIT_AST},
	{"tile", ".tile", BLKC_EMIT_TILE},
	{"layout", ".layout", BLKC_EMIT_LAYOUT},
	{"llvm", ".ll", BLKC_EMIT_LLVM},
	{"ptx", ".ptx", BLKC_EMIT_PTX},
	{"cubin", ".cubin", BLKC_EMIT_CUBIN},
	{"object", ".o", BLKC_EMIT_OBJECT},
	{"asm", ".s", BLKC_EMIT_ASM},
	{"sass", ".sass", BLKC_EMIT_SASS},
	{"explain", ".explain", BLKC_EMIT_EXPLAIN},
	{"json", ".json", BLKC_EMIT_JSON},
	{"html", ".html", BLKC_EMIT_HTML},
	{"formatted", ".blk", BLKC_EMIT_FORMATTED},
	{"header", ".h", TOOL_HEADER},
	{"tvm-ffi", ".tvm_ffi.c", TOOL_TVM_FFI},
	{"package", ".blkpkg", TOOL_PACKAGE},
};
static const char stdin_name[] = "<stdin>";
enum {
	CODE_KINDS = BLKC_EMIT_LAYOUT | BLKC_EMIT_LLVM | BLKC_EMIT_PTX | BLKC_EMIT_CUBIN | BLKC_EMIT_OBJECT |
		     BLKC_EMIT_ASM | BLKC_EMIT_EXPLAIN | BLKC_EMIT_JSON | BLKC_EMIT_SASS
};
enum { EMIT_KINDS = sizeof emit_kinds / sizeof emit_kinds[0], LIST_MAX = 256 };

typedef struct command {
	blkc_request request;
	blkc_define defines[LIST_MAX];
	blkc_promise promises[LIST_MAX];
	const char *include_paths[LIST_MAX];
	const char *inputs[LIST_MAX];
	size_t ninputs;
	blkc_define values[LIST_MAX]; /* a package's: the same name several times */
	size_t nvalues;
	const char *output, *targets; /* --target as given */
	enum { FORMAT_NONE, FORMAT_WRITE, FORMAT_CHECK } format;
	unsigned emit;
	bool explain; /* print the record too */
} command;

static const char help[] =
	"usage: blkc [options] file.blk...        ('-' is standard input)\n"
	"  -o FILE                 where to write; '-' is standard output (default: file.ptx, or by --emit)\n"
	"  --emit=KIND[,KIND]      tokens ast tile layout llvm ptx cubin sass explain json html\n"
	"                          header tvm-ffi package;"
	" for cpu tokens ast tile llvm object asm\n"
	"  --target=NAME           sm_80 (default) sm_86 sm_89 sm_90 sm_90a sm_100a sm_120a native cpu\n"
	"                          a package takes a list (default sm_80,sm_90a,cpu); +NAME adds to the default\n"
	"  --list-targets\n"
	"  --kernel=NAME           one kernel (default: all)\n"
	"  -D NAME=VALUE           a const parameter or an option: -D BLOCK=2048 -D T=f16 -D num_warps=8\n"
	"  --values=NAME=V[,V]     of a const parameter that launches compute: for which values a package has code\n"
	"  --specialize=LIST       what the host promises: x%16,n%16,stride=1\n"
	"  --explain               what became of each line, on standard error: bytes per access and why not wider,\n"
	"                          layout conversions, reductions, barriers; registers, occupancy, sizes\n"
	"  --explain=html          the same as a page to look at: source, IR, PTX and SASS side by side, with "
	"pictures\n"
	"  -I DIR                  where imports are looked up after the importing file's folder\n"
	"  --print-after=PASS|all  --time-passes  --verify-each   (on standard error)\n"
	"  --passes=LIST           the file is tile IR, as --print-after shows it: these passes run on it "
	"(docs/ir.md)\n"
	"  --list-passes\n"
	"  --max-code=N|none       instructions of a thread that a kernel may become, estimated (default: 500000)\n"
	"  --ptxas-seconds=N|none  --ptxas-memory=MiB|none   when ptxas is stopped (default: 120, 4096)\n"
	"  --format[=check]        writes the files anew in one style; check: names those that are in another\n"
	"  --lsp                   as the first word: the language server, blk-lsp, with the words behind it\n"
	"  --diagnostics=text|json  -Werror  -g0 (no line info)  --ptxas=PATH\n"
	"  --checks                PTX in which the simulator finds divisors of 0 and gathers outside (docs/sim.md)\n"
	"  --version  --help\n"
	"exit status: 0 success, 1 diagnosed error, 2 wrong usage\n";

static int usage(const char *format, const char *what)
{
	fprintf(stderr, "blkc: ");
	fprintf(stderr, format, what);
	fprintf(stderr, "\nblkc: --help lists the options\n");
	return 2;
}

/* ---- whole files or none ---- */

static bool write_stdout(const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, stdout) == n && fflush(stdout) == 0) return true;
	fprintf(stderr, "blkc: cannot write standard output: %s\n", strerror(errno));
	return false;
}

static bool write_file(const char *path, const void *bytes, size_t n)
{
	if (strcmp(path, "-") == 0) return write_stdout(bytes, n);
	if (whole_open(path) && whole_write(bytes, n) && whole_commit()) return true;
	fprintf(stderr, "blkc: cannot write '%s': %s\n", path, strerror(errno));
	return false;
}

/* ---- options ---- */

/* The value of "--name=value" or of "--name value"; null if `arg` is another option. */
static const char *option(const char *name, int argc, char **argv, int *i)
{
	const char *arg = argv[*i];
	size_t n = strlen(name);
	if (strncmp(arg, name, n) != 0) return NULL;
	if (arg[n] == '=') return arg + n + 1;
	if (arg[n] == 0 && *i + 1 < argc) return argv[++*i];
	return NULL;
}

static int parse_emit(command *c, char *list)
{
	for (char *save = NULL, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		int k = 0;
		while (k < EMIT_KINDS && strcmp(word, emit_kinds[k].name) != 0) k++;
		if (k == EMIT_KINDS) return usage("unknown --emit kind '%s'", word);
		c->emit |= emit_kinds[k].bit;
	}
	return c->emit ? 0 : usage("--emit needs a kind%s", "");
}

/* The report as text for people stands on standard error, its other forms are files. */
static int parse_explain(command *c, const char *form)
{
	if (!*form || strcmp(form, "=text") == 0) return c->explain = true, 0;
	if (strcmp(form, "=json") == 0) return c->emit |= BLKC_EMIT_JSON, 0;
	if (strcmp(form, "=html") == 0) return c->emit |= BLKC_EMIT_HTML, 0;
	return usage("--explain is text, json or html, not '%s'", form + 1);
}

static int parse_define(command *c, char *text)
{
	char *equals = strchr(text, '=');
	if (!equals || equals == text) return usage("-D needs NAME=VALUE, not '%s'", text);
	if (c->request.ndefines == LIST_MAX) return usage("more than 256 -D: '%s'", text);
	*equals = 0;
	c->defines[c->request.ndefines++] = (blkc_define){text, equals + 1};
	return 0;
}

/* "BLOCK=256,512" */
static int parse_values(command *c, char *text)
{
	char *equals = strchr(text, '=');
	if (!equals || equals == text || !equals[1]) return usage("--values needs NAME=VALUE[,VALUE], not '%s'", text);
	*equals = 0;
	for (char *save = NULL, *word = strtok_r(equals + 1, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (c->nvalues == LIST_MAX) return usage("more than 256 values: '%s'", word);
		c->values[c->nvalues++] = (blkc_define){text, word};
	}
	return 0;
}

static int parse_specialize(command *c, char *list)
{
	for (char *save = NULL, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *mark = strpbrk(word, "%="), *end = NULL;
		if (!mark || mark == word) return usage("--specialize takes x%%16 or stride=1, not '%s'", word);
		unsigned long v = strtoul(mark + 1, &end, 10);
		bool divides = *mark == '%';
		if (end == mark + 1 || *end || (divides ? v == 0 || v & (v - 1) || v > 4096 : v != 1))
			return usage("--specialize takes a power of two up to 4096 after %% and 1 after =: '%s'", word);
		if (c->request.npromises == LIST_MAX) return usage("more than 256 promises: '%s'", word);
		*mark = 0;
		c->promises[c->request.npromises++] =
			(blkc_promise){.name = word, .divisible = divides ? (uint32_t)v : 0, .is_one = !divides};
	}
	return 0;
}

/* A limit: a number above 0, or "none". */
static int parse_limit(uint32_t *out, const char *name, const char *v)
{
	char *end = NULL, what[64];
	unsigned long long n = *v >= '0' && *v <= '9' ? strtoull(v, &end, 10) : 0;
	if (strcmp(v, "none") == 0) return *out = BLKC_NO_LIMIT, 0;
	snprintf(what, sizeof what, "%s is a number above 0 or none, not '%%s'", name);
	if (!end || *end || n == 0 || n >= BLKC_NO_LIMIT) return usage(what, v);
	return *out = (uint32_t)n, 0;
}

/* The GPU of this machine, asked from the driver: its compute capability as a target's name, or null. */
static const char *native_target(char *room, size_t size)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!driver) return NULL;
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
	int (*attribute)(int *, int, int) = (int (*)(int *, int, int))dlsym(driver, "cuDeviceGetAttribute");
	int major = 0, minor = 0, best = 0;
	enum { MAJOR = 75, MINOR = 76 };
	if (!init || !attribute || init(0) || attribute(&major, MAJOR, 0) || attribute(&minor, MINOR, 0)) return NULL;
	for (size_t i = 0; blkc_target_name(i, NULL); i++) {
		const char *name = blkc_target_name(i, NULL);
		int sm = 0, used = 0;
		if (sscanf(name, "sm_%d%n", &sm, &used) != 1) continue;
		bool exact_only = name[used] != 0;
		if (exact_only ? sm != 10 * major + minor : sm > 10 * major + minor) continue;
		if (sm > best || (sm == best && exact_only)) {
			best = sm;
			snprintf(room, size, "%s", name);
		}
	}
	return best ? room : NULL;
}

static int list_targets(void)
{
	const char *note, *name;
	for (size_t i = 0; (name = blkc_target_name(i, &note)) != NULL; i++) printf("%-8s  %s\n", name, note);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int list_passes(void)
{
	const char *meaning, *name;
	for (size_t i = 0; (name = blkc_pass_name(i, &meaning)) != NULL; i++) printf("%-18s %s\n", name, meaning);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int set_target(command *c, const char *name)
{
	static char native[16];
	c->targets = name;
	if (strpbrk(name, ",+")) return 0; /* a package's */
	if (strcmp(name, "native") == 0) name = native_target(native, sizeof native);
	if (!name) return usage("--target=native finds no GPU and driver here; name a target%s", "");
	c->targets = c->request.target = name;
	return 0;
}

static int add_input(command *c, const char *path)
{
	if (c->ninputs == LIST_MAX) return usage("more than 256 files: '%s'", path);
	c->inputs[c->ninputs++] = path;
	return 0;
}

static int parse_option(command *c, int argc, char **argv, int *i)
{
	char *arg = argv[*i];
	const char *v;
	blkc_request *r = &c->request;
	if (arg[0] != '-' || arg[1] == 0) return add_input(c, arg);
	if (strncmp(arg, "-D", 2) == 0) {
		if (!arg[2] && *i + 1 >= argc) return usage("-D needs NAME=VALUE%s", "");
		return parse_define(c, arg[2] ? arg + 2 : argv[++*i]);
	}
	if (strncmp(arg, "-I", 2) == 0) {
		if (!arg[2] && *i + 1 >= argc) return usage("-I needs a folder%s", "");
		if (r->ninclude_paths == LIST_MAX) return usage("more than 256 -I: '%s'", arg);
		c->include_paths[r->ninclude_paths++] = arg[2] ? arg + 2 : argv[++*i];
		return 0;
	}
	if ((v = option("-o", argc, argv, i))) return c->output = v, 0;
	if ((v = option("--emit", argc, argv, i))) return parse_emit(c, (char *)v);
	if ((v = option("--target", argc, argv, i))) return set_target(c, v);
	if ((v = option("--kernel", argc, argv, i))) return r->kernel = v, 0;
	if ((v = option("--specialize", argc, argv, i))) return parse_specialize(c, (char *)v);
	if ((v = option("--values", argc, argv, i))) return parse_values(c, (char *)v);
	if ((v = option("--print-after", argc, argv, i))) return r->print_after = v, 0;
	if ((v = option("--passes", argc, argv, i))) return r->passes = v, 0;
	if ((v = option("--ptxas", argc, argv, i))) return r->ptxas = v, 0;
	if ((v = option("--ptxas-seconds", argc, argv, i))) return parse_limit(&r->ptxas_seconds, "--ptxas-seconds", v);
	if ((v = option("--ptxas-memory", argc, argv, i))) return parse_limit(&r->ptxas_megabytes, "--ptxas-memory", v);
	if ((v = option("--max-code", argc, argv, i))) return parse_limit(&r->max_code, "--max-code", v);
	if ((v = option("--diagnostics", argc, argv, i))) {
		r->diagnostics_json = strcmp(v, "json") == 0;
		return r->diagnostics_json || strcmp(v, "text") == 0
			       ? 0
			       : usage("--diagnostics is text or json, not '%s'", v);
	}
	if (strcmp(arg, "--format") == 0 || strcmp(arg, "--format=check") == 0) {
		c->format = arg[8] ? FORMAT_CHECK : FORMAT_WRITE;
		return 0;
	}
	if (strcmp(arg, "--time-passes") == 0) return r->time_passes = 1, 0;
	if (strcmp(arg, "--verify-each") == 0) return r->verify_each = 1, 0;
	if (strcmp(arg, "-Werror") == 0) return r->warnings_are_errors = 1, 0;
	if (strcmp(arg, "--checks") == 0) return r->checks = 1, 0;
	if (strcmp(arg, "-g0") == 0) return r->no_line_info = 1, 0;
	if (strncmp(arg, "--explain", 9) == 0 && (!arg[9] || arg[9] == '=')) return parse_explain(c, arg + 9);
	char near[NEAREST_OPTION];
	if (nearest_option(help, arg, near) && strncmp(near, arg, strlen(near)) != 0) {
		fprintf(stderr, "blkc: unknown option '%s'; did you mean '%s'?\nblkc: --help lists the options\n", arg,
			near);
		return 2;
	}
	return usage("unknown option or missing value: '%s'", arg);
}

/* ---- outputs ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* "dir/add.blk" -> "add.ptx", in the current folder as clang and nvcc do; standard input's one kind goes to standard
 * output. */
static char *default_output(const char *input, const char *extension, bool only_kind)
{
	bool is_stdin = strcmp(input, stdin_name) == 0;
	if (is_stdin && only_kind) return strdup("-");
	const char *name = is_stdin ? "stdin" : base_name(input);
	const char *dot = strrchr(name, '.');
	int stem = (int)(dot && dot != name ? (size_t)(dot - name) : strlen(name));
	size_t room = strlen(name) + strlen(extension) + 1;
	char *path = malloc(room);
	if (path) snprintf(path, room, "%.*s%s", stem, name, extension);
	return path;
}

/* All artifacts of one kind, one kernel after another. */
static bool write_kind(command *c, const char *input, const blkc_result *r, const emit_kind *kind, bool only_kind)
{
	size_t total = 0;
	for (size_t i = 0; i < r->nartifacts; i++)
		if (r->artifacts[i].kind == kind->bit) total += r->artifacts[i].nbytes;
	char *all = malloc(total + 1), *path = NULL;
	size_t at = 0;
	for (size_t i = 0; all && i < r->nartifacts; i++)
		if (r->artifacts[i].kind == kind->bit && r->artifacts[i].nbytes) {
			memcpy(all + at, r->artifacts[i].bytes, r->artifacts[i].nbytes);
			at += r->artifacts[i].nbytes;
		}
	if (!c->output || !only_kind) path = default_output(input, kind->extension, only_kind);
	bool good = all && (path || (c->output && only_kind));
	if (!good) fprintf(stderr, "blkc: out of memory\n");
	good = good && write_file(path ? path : c->output, all, total);
	free(path);
	free(all);
	return good;
}

static int write_made(command *c, const char *input, const emit_kind *kind, const void *bytes, size_t n)
{
	bool only_kind = (c->emit & (c->emit - 1)) == 0;
	char *path = c->output && only_kind ? strdup(c->output) : default_output(input, kind->extension, only_kind);
	bool good = path && bytes;
	if (!good) fprintf(stderr, "blkc: out of memory\n");
	good = good && write_file(path, bytes, n);
	free(path);
	return !good;
}

static char *read_descriptor(int descriptor, size_t *n);

/* The source goes into what is made. */
static void *make_tvm_ffi(command *c, const char *input, const blkc_result *r, size_t *n, int *status)
{
	const blkc_request *q = &c->request;
	if (q->text) return tool_tvm_ffi(input, q, r, q->text, q->text_bytes, n);
	int descriptor = open(input, O_RDONLY | O_CLOEXEC);
	size_t bytes;
	char *text = descriptor < 0 ? NULL : read_descriptor(descriptor, &bytes);
	if (descriptor >= 0) close(descriptor);
	void *made = text ? tool_tvm_ffi(input, q, r, text, bytes, n) : NULL;
	if (!text) {
		fprintf(stderr, "blkc: cannot read %s: %s\n", input, strerror(errno));
		*status = 1;
	}
	free(text);
	return made;
}

/* A source in the one style: over the file that it comes from, if it differs. */
static int write_formatted(const command *c, const char *input, const blkc_artifact *made)
{
	bool is_stdin = strcmp(input, stdin_name) == 0;
	if (c->output || (is_stdin && c->format == FORMAT_WRITE))
		return !write_file(c->output ? c->output : "-", made->bytes, made->nbytes);
	if (made->nbytes == c->request.text_bytes && memcmp(made->bytes, c->request.text, made->nbytes) == 0) return 0;
	if (c->format == FORMAT_CHECK) return printf("%s is not as --format writes it\n", input), 1;
	return !write_file(input, made->bytes, made->nbytes);
}

/* The kinds that are made out of whole compiles. */
static int write_tool_kind(command *c, const char *input, const blkc_result *r, const emit_kind *kind)
{
	const char *targets[TOOL_MAX_TARGETS];
	tool_package_request request = {
		.base = &c->request, .checked = r, .targets = targets, .values = c->values, .nvalues = c->nvalues};
	size_t n = 0;
	int status = 0;
	void *bytes = NULL;
	if (kind->bit == TOOL_HEADER) {
		bytes = tool_header(input, r, &n);
	} else if (kind->bit == TOOL_TVM_FFI) {
		bytes = make_tvm_ffi(c, input, r, &n, &status);
	} else {
		if (!tool_targets(c->targets, targets, &request.ntargets)) return 2;
		bytes = tool_package(&request, &n, &status);
	}
	if (!status) status = write_made(c, input, kind, bytes, n);
	free(bytes);
	return status;
}

/* All that a descriptor still gives, as far as a source may be long and a byte more; null with errno. */
static char *read_descriptor(int descriptor, size_t *n)
{
	enum { LONGEST = (16 << 20) + 1 };
	char *text = malloc(LONGEST + 1);
	*n = 0;
	while (text && *n < LONGEST) {
		ssize_t got = read(descriptor, text + *n, LONGEST - *n);
		if (got > 0) *n += (size_t)got;
		if (got == 0) break;
		if (got >= 0 || errno == EINTR) continue;
		free(text);
		return NULL;
	}
	return text;
}

static int compile_input(command *c, const char *input);

/* "-", "/dev/stdin" and a shell's <(..), which is "/dev/fd/N", are read once, to their end. */
static int compile_file(command *c, const char *input)
{
	bool is_stdin = strcmp(input, "-") == 0;
	int descriptor = is_stdin ? STDIN_FILENO : descriptor_named(input), opened = -1;
	if (descriptor < 0 && c->format) descriptor = opened = open(input, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (descriptor < 0) return compile_input(c, input);
	size_t n;
	char *text = read_descriptor(descriptor, &n);
	if (opened >= 0) close(opened);
	if (!text)
		return fprintf(stderr, "blkc: cannot read %s: %s\n", is_stdin ? "standard input" : input,
			       strerror(errno)),
		       1;
	c->request.text = text;
	c->request.text_bytes = n;
	int status = compile_input(c, is_stdin ? stdin_name : input);
	c->request.text = NULL;
	free(text);
	return status;
}

static int compile_input(command *c, const char *input)
{
	c->request.name = input;
	blkc_result *r = blkc_compile(&c->request);
	if (!r) return fprintf(stderr, "blkc: out of memory\n"), 1;
	if (c->request.diagnostics_json)
		fputs(r->diagnostics, stderr);
	else
		colour_diagnostics(stderr, r->diagnostics);
	if (!c->request.diagnostics_json) fputs(r->log, stderr);
	for (size_t i = 0; c->explain && i < r->nartifacts; i++)
		if (r->artifacts[i].kind == BLKC_EMIT_EXPLAIN) fputs(r->artifacts[i].bytes, stderr);
	int status = r->status == 0 ? 0 : r->status == 2 ? 2 : 1;
	bool only_kind = (c->emit & (c->emit - 1)) == 0;
	if (!c->request.diagnostics_json && c->request.emit & CODE_KINDS) tool_note_values(r);
	if (c->format && status == 0) status = write_formatted(c, input, &r->artifacts[0]);
	for (int k = 0; status == 0 && !c->format && k < EMIT_KINDS; k++) {
		const emit_kind *kind = &emit_kinds[k];
		if (!(c->emit & kind->bit)) continue;
		if (kind->bit & TOOL_KINDS)
			status = write_tool_kind(c, input, r, kind);
		else
			status = !write_kind(c, input, r, kind, only_kind);
	}
	blkc_result_free(r);
	return status;
}

/* The language server is a program of its own, beside this one; it takes the other words. */
static int start_language_server(char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "blk-lsp");
	if (n < 0) n = 0; /* not reached: a Linux with /proc says it */
	while (n && path[n - 1] != '/') n--;
	strcpy(path + n, "blk-lsp");
	argv[0] = path;
	execv(path, argv);
	fprintf(stderr, "blkc: cannot start '%s': %s\n", path, strerror(errno));
	return 1;
}

/* Before any library's constructor: LLVM's abort the process where they find no memory. */
static void check_memory(void)
{
	enum { NEEDED = 16 << 20 };
	static const char said[] = "blkc: out of memory\n";
	void *p = mmap(NULL, NEEDED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) _exit(write(STDERR_FILENO, said, sizeof said - 1) < 0 ? 2 : 1);
	munmap(p, NEEDED);
}
static void (*const before_all[])(void) __attribute__((section(".preinit_array"), used)) = {check_memory};

int main(int argc, char **argv)
{
	static command c;
	if (argc > 1 && strcmp(argv[1], "--lsp") == 0) {
		argv[1] = argv[0];
		return start_language_server(argv + 1);
	}
	c.request = (blkc_request){.size = sizeof c.request,
		.defines = c.defines,
		.promises = c.promises,
		.include_paths = c.include_paths};
	bool only_files = false; /* after -- */
	for (int i = 1; i < argc; i++) {
		if (only_files || strcmp(argv[i], "--") == 0) {
			if (only_files && add_input(&c, argv[i])) return 2;
			only_files = true;
			continue;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return fputs(help, stdout), 0;
		if (strcmp(argv[i], "--version") == 0) return puts(blkc_version()), 0;
		if (strcmp(argv[i], "--list-targets") == 0) return list_targets();
		if (strcmp(argv[i], "--list-passes") == 0) return list_passes();
		int wrong = parse_option(&c, argc, argv, &i);
		if (wrong) return wrong;
	}
	if (c.ninputs == 0) return usage("no input file%s", "");
	if (c.output && c.ninputs > 1) return usage("-o %s with several input files", c.output);
	if (c.output && c.emit & (c.emit - 1)) return usage("-o %s with several --emit kinds", c.output);
	if (c.format && c.emit) return usage("--format stands without --emit%s", "");
	if (c.format == FORMAT_CHECK && c.output) return usage("--format=check writes nothing: -o %s", c.output);
	if (c.emit & BLKC_EMIT_FORMATTED && c.emit != BLKC_EMIT_FORMATTED)
		return usage("--emit=formatted stands alone%s", "");
	const char *on_stderr = c.explain               ? "--explain"
				: c.request.time_passes ? "--time-passes"
				: c.request.print_after ? "--print-after"
							: NULL;
	if (c.request.diagnostics_json && on_stderr)
		return usage(
			"%s prints text where --diagnostics=json prints JSON; --emit=explain, json or tile write files",
			on_stderr);
	if (c.emit & TOOL_PACKAGE && c.emit & ~TOOL_KINDS)
		return usage("--emit=package stands alone or beside header and tvm-ffi%s", "");
	if (!(c.emit & TOOL_PACKAGE) && c.nvalues)
		return usage("--values is for --emit=package; -D %s=VALUE binds one", c.values[0].name);
	if (!(c.emit & TOOL_PACKAGE) && c.targets && strpbrk(c.targets, ",+"))
		return usage("several targets are for --emit=package: '%s'", c.targets);
	bool cpu = c.request.target && strcmp(c.request.target, "cpu") == 0;
	if (c.request.passes && c.emit & ~(unsigned)BLKC_EMIT_TILE)
		return usage("--passes=%s reads and writes tile IR; no other --emit goes with it", c.request.passes);
	if (c.request.passes) {
		c.emit = BLKC_EMIT_TILE;
		if (!c.output) c.output = "-";
	}
	if (!c.emit) c.emit = c.format ? BLKC_EMIT_FORMATTED : cpu ? BLKC_EMIT_OBJECT : BLKC_EMIT_PTX;
	c.request.emit = (c.emit & ~TOOL_KINDS) | (c.explain ? BLKC_EMIT_EXPLAIN : 0);
	int status = 0;
	for (size_t i = 0; i < c.ninputs; i++) {
		int s = compile_file(&c, c.inputs[i]);
		if (s > status) status = s;
	}
	return status;
}
