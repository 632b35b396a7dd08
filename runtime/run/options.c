/* blkrun's command line: text to an options struct, and the values that stand in it. */
#include "runtime/run/run.h"
#include "support/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: blkrun [options] file.blk[:kernel] [name=value ...]\n"
	"  name=3  name=1.5  name=true    a scalar\n"
	"  name=256,1000  name=256..4096  a list, or a range that doubles: one run for each; lists advance in "
	"step\n"
	"  name=f32[4096,1024]:randn:7    a fresh buffer: zeros (default) ones randn rand arange poison, and a "
	"seed;\n"
	"                                 a scalar's name may stand for an extent: f32[rows,n]\n"
	"  name=@x.npy                    a buffer from a NumPy file\n"
	"  name=to:f32[9]:randn+f32[5]    the addresses of fresh buffers, name[0], name[1], .., for an i64 or "
	"u64 "
	"buffer\n"
	"  -D NAME=VALUE                  a const parameter or an option (num_warps, ...)\n"
	"  --device=auto|cuda:N|cpu|sim   where to run (default: auto); sim and sim:sm_90a run the PTX here, "
	"checked;\n"
	"                                 cpu checks each access but with --bench and --tune: cpu:checked, "
	"cpu:guarded, cpu:fast\n"
	"  --grid=x[,y[,z]]               instead of the kernel's grid clause\n"
	"  --out name=file.npy            writes a buffer after the run\n"
	"  --check DEVICE|[name=]file.npy compares what the kernel wrote with another device (on cpu, cpu means "
	"the "
	"simulator) or a file\n"
	"  --rtol=R --atol=A              what --check allows (default: by type)\n"
	"  --allow-unwritten              --check takes outputs of which elements still hold poison\n"
	"  --bench                        times it: median and spread, against the device's measured copy rate\n"
	"  --verbose                      what the launched code assumes of its arguments, its tensor maps\n"
	"  --plot=FILE.svg                times it and draws the rate over a list of sizes (gnuplot; FILE.csv: "
	"numbers)\n"
	"  --tune                         tries what the autotune clause says in another process, prints the "
	"times; of a\n"
	"                                 list of sizes for each\n"
	"  --cache=list|clear             the cache of compiled code and tuning records\n"
	"  --cache=export|import FILE     all tuning records as a readable file, and back\n"
	"  --counters                     on sim: instructions, sectors, bank conflicts, barriers\n"
	"  --counters=html                and as a page, KERNEL.html: by line, beside source, IR, PTX and SASS\n"
	"  --sim-seed=N                   on sim: another order of programs and warps\n"
	"  --sim-schedules=N              on sim: N orders, each from the same memory\n"
	"  --sim-steps=N                  on sim: after how many instructions a program has hung (default: "
	"2^30)\n"
	"  --sim-budget=N                 on sim: after how many instructions of all programs to give up "
	"(default: "
	"never)\n"
	"  --diagnostics=text|json        on sim: how a problem is printed\n"
	"  --version --help\n"
	"exit status: 0, 1 for an error or a mismatch, 2 for wrong usage\n";

void options_usage(void)
{
	fputs(help, stdout);
}

static int usage(const char *what, const char *detail)
{
	fprintf(stderr, "blkrun: %s%s\n", what, detail);
	return 2;
}

static int unknown_option(const char *name)
{
	char near[NEAREST_OPTION];
	if (!nearest_option(help, name, near)) return usage("unknown option ", name);
	fprintf(stderr, "blkrun: unknown option %s; did you mean %s?\n", name, near);
	return 2;
}

/* ---- Values ---- */

const char *parse_scalar(const char *text, scalar t, uint64_t *bits)
{
	char *end;
	errno = 0;
	if (t == SCALAR_BOOL) {
		bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
		*bits = yes;
		return yes || strcmp(text, "false") == 0 || strcmp(text, "0") == 0 ? NULL : "a bool is true or false";
	}
	if (!*text) return "it is empty";
	if (isspace((unsigned char)*text)) return "it begins with a space";
	if (scalar_is_float(t)) {
		double v = strtod(text, &end);
		*bits = scalar_from_double(t, v);
		if (*end) return "it is no number";
		bool overflows = isinf(v) ? errno == ERANGE : isfinite(v) && !isfinite(scalar_to_double(t, *bits));
		return overflows ? "it does not fit the type" : NULL;
	}
	if (scalar_is_signed(t)) {
		long long v = strtoll(text, &end, 0);
		if (*end) return "it is no integer";
		*bits = scalar_truncate(t, (uint64_t)v);
		return errno || scalar_sign_extend(t, *bits) != v ? "it does not fit the type" : NULL;
	}
	unsigned long long v = strtoull(text, &end, 0);
	if (*end) return "it is no integer";
	*bits = scalar_truncate(t, v);
	return errno || *text == '-' || *bits != v ? "it does not fit the type" : NULL;
}

static const char *parse_extents(const char **at, array *a)
{
	const char *p = *at;
	for (a->rank = 0; *p != ']'; a->rank++) {
		char *end;
		errno = 0;
		if (a->rank == RUN_RANK) return "it has more than 8 extents";
		if (!isdigit((unsigned char)*p)) return "an extent is no number";
		a->extent[a->rank] = strtoull(p, &end, 0);
		if (errno) return "an extent is too large";
		p = end;
		if (*p == '.') return "an extent is no integer";
		if (*p == ',' && p[1] != ']')
			p++;
		else if (*p == ',')
			return "an extent is no number";
		else if (*p != ']')
			return "its extents do not end with ']'";
	}
	*at = p + 1;
	return NULL;
}

const char *parse_addresses(const char *text)
{
	return strncmp(text, "to:", 3) == 0 ? text + 3 : NULL;
}

const char *parse_buffer(const char *text, array *a, char kind[16], uint64_t *seed)
{
	char name[16] = "";
	memset(a, 0, sizeof *a);
	size_t n = strcspn(text, "[");
	if (!text[n] || n >= sizeof name) return "a buffer is written f32[4096,1024]:randn or @file.npy";
	memcpy(name, text, n);
	if (!scalar_parse(name, &a->type)) return "its element type is unknown";
	const char *p = text + n + 1, *wrong = parse_extents(&p, a);
	if (wrong) return wrong;
	strcpy(kind, "zeros");
	if (!*p) return NULL;
	if (*p++ != ':') return "behind its extents stands ':' and how to fill it";
	n = strcspn(p, ":");
	if (n >= 16) return "it is filled in an unknown way";
	memcpy(kind, p, n);
	kind[n] = 0;
	if (!fill_known(kind)) return "it is filled in an unknown way (zeros ones randn rand arange poison)";
	if (!p[n]) return NULL;
	char *end;
	errno = 0;
	*seed = strtoull(p + n + 1, &end, 0);
	return *end || errno || !isdigit((unsigned char)p[n + 1]) ? "its seed is no number" : NULL;
}

/* ---- Options ---- */

static int too_many(size_t most, const char *what)
{
	fprintf(stderr, "blkrun: more than %zu of %s\n", most, what);
	return 2;
}

/* "name=value" in two: the name is freed, and the value stands behind it. */
static int split(const char *text, const char *what, run_value *pair)
{
	const char *equals = strchr(text, '=');
	if (!equals || equals == text) return usage("name=value is missing after ", what);
	char *name = strdup(text);
	if (!name) return run_no_memory(text);
	name[equals - text] = 0;
	*pair = (run_value){name, name + (equals - text) + 1};
	return 0;
}

static int add_pair(const char *text, run_value *list, size_t *n, size_t most, const char *what)
{
	run_value pair;
	if (*n == most) return too_many(most, what);
	int status = split(text, what, &pair);
	for (size_t i = 0; !status && i < *n; i++)
		if (strcmp(list[i].name, pair.name) == 0) {
			free((void *)pair.name);
			return usage("given twice: ", list[i].name);
		}
	if (!status) list[(*n)++] = pair;
	return status;
}

/* Of two buffers in one file the first would be lost; a device takes both. */
static int add_out(const char *text, options *o)
{
	int status = add_pair(text, o->outs, &o->nouts, RUN_LIST, "--out");
	for (size_t i = 0; !status && i + 1 < o->nouts; i++) {
		const char *file = o->outs[o->nouts - 1].text;
		if (strcmp(o->outs[i].text, file) == 0 && strncmp(file, "/dev/", 5) != 0)
			return usage("two buffers cannot be written to one file: ", file);
	}
	return status;
}

static int parse_grid(const char *text, options *o)
{
	uint32_t *to[] = {&o->grid.x, &o->grid.y, &o->grid.z};
	o->grid = (blk_grid){1, 1, 1};
	o->has_grid = true;
	for (int i = 0; i < 3; i++) {
		char *end;
		unsigned long v = strtoul(text, &end, 10); /* the largest where it is larger */
		if (!isdigit((unsigned char)*text) || v > UINT32_MAX) break;
		*to[i] = (uint32_t)v;
		if (!*end) return 0;
		if (*end != ',') break;
		text = end + 1;
	}
	return usage("--grid takes one to three numbers, as --grid=128,4: ", text);
}

static int parse_tolerance(const char *text, double *to)
{
	char *end;
	*to = strtod(text, &end);
	return *end || !*text || !(*to >= 0) ? usage("a tolerance is a number, not ", text) : 0;
}

static int parse_count(const char *name, const char *value, uint64_t most, uint64_t *to)
{
	char *end;
	errno = 0;
	*to = strtoull(value, &end, 0);
	if (!errno && *value != '-' && end != value && !*end && *to <= most) return 0;
	fprintf(stderr, "blkrun: --%s is a number up to %llu, not %s\n", name, (unsigned long long)most, value);
	return 2;
}

static int set_cache(options *o, const char *value)
{
	static const char *const known[] = {"list", "clear", "export", "import"};
	o->cache = value;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(value, known[i]) == 0) return 0;
	return usage("--cache is list, clear, export or import, not ", value);
}

/* One of those that parse_long knows. */
static int set_option(options *o, const char *name, const char *value)
{
	if (strcmp(name, "device") == 0) {
		o->device = value;
		return 0;
	}
	if (strcmp(name, "grid") == 0) return parse_grid(value, o);
	if (strcmp(name, "out") == 0) return add_out(value, o);
	if (strcmp(name, "check") == 0) {
		if (o->check) return usage("--check is given twice, and a run is compared once: ", value);
		o->check = value;
		return 0;
	}
	if (strcmp(name, "rtol") == 0) return parse_tolerance(value, &o->rtol);
	if (strcmp(name, "atol") == 0) return parse_tolerance(value, &o->atol);
	if (strcmp(name, "plot") == 0) {
		o->plot = value;
		o->bench = true;
		return *value ? 0 : usage("a file's name is missing after ", "--plot");
	}
	if (strcmp(name, "sim-seed") == 0) return parse_count(name, value, UINT64_MAX, &o->sim.seed);
	if (strcmp(name, "sim-steps") == 0) return parse_count(name, value, UINT64_MAX, &o->sim.steps);
	if (strcmp(name, "sim-budget") == 0) return parse_count(name, value, UINT64_MAX, &o->sim.budget);
	if (strcmp(name, "sim-schedules") == 0) {
		uint64_t n = 0;
		int status = parse_count(name, value, 100000, &n);
		o->sim.schedules = (uint32_t)n;
		return status;
	}
	if (strcmp(name, "diagnostics") == 0) {
		o->sim.json = strcmp(value, "json") == 0;
		return o->sim.json || strcmp(value, "text") == 0 ? 0
								 : usage("--diagnostics is text or json, not ", value);
	}
	if (strcmp(name, "counters") == 0) {
		o->sim.counters = 1;
		o->page = strcmp(value, "html") == 0;
		return o->page || strcmp(value, "text") == 0 ? 0 : usage("--counters is text or html, not ", value);
	}
	return set_cache(o, value);
}

static int set_flag(options *o, const char *name)
{
	if (strcmp(name, "bench") == 0)
		o->bench = true;
	else if (strcmp(name, "help") == 0)
		o->help = true;
	else if (strcmp(name, "version") == 0)
		o->version = true;
	else if (strcmp(name, "tune") == 0)
		o->tune = true;
	else if (strcmp(name, "allow-unwritten") == 0)
		o->allow_unwritten = true;
	else if (strcmp(name, "verbose") == 0)
		o->verbose = true;
	else if (strcmp(name, "counters") == 0)
		o->sim.counters = 1;
	else
		return -1;
	return 0;
}

/* "--name=value", "--name value" or "--flag". */
static int parse_long(options *o, int argc, char **argv, int *i)
{
	static const char *const with_value[] = {"device", "grid", "out", "check", "rtol", "atol", "plot", "cache",
		"sim-seed", "sim-schedules", "sim-steps", "sim-budget", "diagnostics"};
	const char *text = argv[*i] + 2, *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : strlen(text);
	for (size_t k = 0; k < sizeof with_value / sizeof with_value[0]; k++) {
		if (strlen(with_value[k]) != n || strncmp(with_value[k], text, n) != 0) continue;
		if (!equals && *i + 1 >= argc) return usage("a value is missing after ", argv[*i]);
		return set_option(o, with_value[k], equals ? equals + 1 : argv[++*i]);
	}
	if (equals && n == strlen("counters") && strncmp(text, "counters", n) == 0)
		return set_option(o, "counters", equals + 1);
	int status = equals ? -1 : set_flag(o, text);
	return status < 0 ? unknown_option(argv[*i]) : status;
}

static int parse_define(options *o, const char *text)
{
	run_value pair;
	if (o->ndefines == RUN_LIST) return too_many(RUN_LIST, "-D");
	int status = split(text, "-D", &pair);
	if (!status) o->defines[o->ndefines++] = (blk_define){pair.name, pair.text};
	return status;
}

/* "softmax.blk:rows": the part behind the last colon is a kernel where the whole is no file. */
static int parse_path(options *o, const char *text)
{
	o->path_copy = strdup(text);
	if (!o->path_copy) return run_no_memory(text);
	o->path = o->path_copy;
	char *colon = strrchr(o->path_copy, ':');
	if (colon && colon != o->path_copy && access(text, F_OK) != 0) {
		*colon = 0;
		o->kernel = colon + 1;
	}
	return 0;
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);
	return n >= k && strcmp(text + n - k, end) == 0;
}

/* A file of records has no kernel behind a colon; nothing stands beside --cache=list and --cache=clear. */
static int check_cache(options *o)
{
	bool ships = strcmp(o->cache, "export") == 0 || strcmp(o->cache, "import") == 0;
	if (ships && !o->path) return usage("a file is missing after --cache=", o->cache);
	bool source = o->path && (!ships || ends_in(o->path, ".blk") || ends_in(o->path, ".blkpkg"));
	if (source || o->nvalues) return usage("a source or values mean nothing to --cache=", o->cache);
	if (o->kernel) o->path_copy[o->kernel - o->path_copy - 1] = ':';
	o->kernel = NULL;
	return 0;
}

static int check_whole(options *o)
{
	if (o->help || o->version) return 0;
	if (o->cache) return check_cache(o);
	if (o->kernel && !*o->kernel) return usage("the kernel's name is missing behind ", o->path);
	if (o->path) return 0;
	return usage("no file given; blkrun --help says what to type", "");
}

int options_parse(int argc, char **argv, options *o)
{
	*o = (options){.device = "auto", .rtol = -1, .atol = -1};
	int status = 0;
	for (int i = 1; !status && i < argc; i++) {
		const char *a = argv[i];
		if (strncmp(a, "--", 2) == 0 && a[2])
			status = parse_long(o, argc, argv, &i);
		else if (strncmp(a, "-D", 2) == 0) {
			if (!a[2] && ++i >= argc) return usage("NAME=VALUE is missing after ", "-D");
			status = parse_define(o, a[2] ? a + 2 : argv[i]);
		} else if (strcmp(a, "-h") == 0)
			o->help = true;
		else if (a[0] == '-')
			status = unknown_option(a);
		else if (!o->path)
			status = parse_path(o, a);
		else
			status = add_pair(a, o->values, &o->nvalues, RUN_PARAMETERS, a);
	}
	return status ? status : check_whole(o);
}

void options_free(options *o)
{
	for (size_t i = 0; i < o->nvalues; i++) free((void *)o->values[i].name);
	for (size_t i = 0; i < o->nouts; i++) free((void *)o->outs[i].name);
	for (size_t i = 0; i < o->ndefines; i++) free((void *)o->defines[i].name);
	free(o->path_copy);
}
