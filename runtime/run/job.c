/* In: the command line and a kernel.  Out: host arrays and scalars for its parameters, and one launch of it on a
 * device.
 *
 * The one idea: inputs live on the host as arrays, so that the same job can be run on a second device and compared. */
#include "runtime/run/run.h"
#include "base/said.h"
#include "tool/colour.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static growing said; /* what standard error has been told: of the process, as that is */

static void print_line(void *context, const char *message)
{
	(void)context;
	fprintf(stderr, "%s\n", message);
}

/* Each message once, however many devices, sizes and configurations it is compiled for. */
static void print_note(void)
{
	said_tell(&said, blk_note(), print_line, NULL);
}

/* ---- The job ---- */

static const char *value_of(const options *o, const char *name)
{
	for (size_t i = 0; i < o->nvalues; i++)
		if (strcmp(o->values[i].name, name) == 0) return o->values[i].text;
	return NULL;
}

static int fresh_array(const char *name, array *a, const char *kind, uint64_t seed)
{
	if (array_allocate(a)) return fill_array(a, kind, seed), 0;
	fprintf(stderr, "blkrun: %s: the buffer is too large for memory\n", name);
	return 1;
}

/* "f16[77,208]:randn+f16[16,16]": buffers behind the parameters', and a table with a place for the address of each,
 * which a device gives. */
static int read_addresses(job *j, size_t i, const char *text)
{
	char room[RUN_NAME], kind[16];
	array *table = &j->arrays[i];
	if (j->types[i] != SCALAR_I64 && j->types[i] != SCALAR_U64)
		return run_wrong(j->parameters[i].name, "addresses (to:) need a parameter that is *i64 or *u64");
	j->held[i] = j->nbuffers;
	*table = (array){.type = j->types[i], .rank = 1};
	for (bool more = true; more; text += more) {
		size_t n = strcspn(text, "+"), k = j->nbuffers;
		uint64_t seed = i + RUN_PARAMETERS * table->extent[0]; /* as below */
		if (k == RUN_BUFFERS) return run_wrong(j->parameters[i].name, "there are too many buffers");
		table->extent[0]++;
		j->nbuffers++;
		const char *name = job_name(j, k, room);
		char *one = strndup(text, n);
		if (!one) return run_no_memory(name);
		const char *trouble = parse_buffer(one, &j->arrays[k], kind, &seed);
		free(one);
		if (trouble && (!n || *text == '@'))
			trouble = "addresses are of fresh buffers, with '+' between: to:f16[77,208]:randn+f16[16,16]";
		int status = trouble ? run_wrong(name, trouble) : fresh_array(name, &j->arrays[k], kind, seed);
		if (status) return status;
		text += n;
		more = *text == '+';
	}
	return fresh_array(j->parameters[i].name, table, "zeros", 0);
}

static int read_array(job *j, size_t i, const char *text)
{
	char why[256], kind[16];
	uint64_t seed = i; /* two buffers filled alike would hide that they are swapped */
	array *a = &j->arrays[i];
	const char *name = j->parameters[i].name, *trouble;
	if (parse_addresses(text)) return read_addresses(j, i, parse_addresses(text));
	if (text[0] == '@') {
		if (!npy_read(text + 1, j->types[i], a, why, sizeof why)) {
			fprintf(stderr, "blkrun: %s: %s\n", text + 1, why);
			return 1;
		}
	} else if ((trouble = parse_buffer(text, a, kind, &seed)))
		return run_wrong(name, trouble);
	if (a->type != j->types[i]) {
		bool wide = j->types[i] == SCALAR_I64 || j->types[i] == SCALAR_U64;
		fprintf(stderr, "blkrun: %s: parameter is %s, but the buffer holds %s%s\n", name, j->parameters[i].type,
			scalar_name(a->type), wide ? " (to: in front makes it a buffer of its address)" : "");
		return 2;
	}
	if (text[0] == '@') return 0;
	return fresh_array(name, a, kind, seed);
}

/* Its number in `i`. */
static int find_parameter(const job *j, const char *name, size_t *i)
{
	for (*i = 0; *i < j->n; ++*i)
		if (strcmp(j->parameters[*i].name, name) == 0) return 0;
	fprintf(stderr, "blkrun: the kernel has no parameter '%s'; it has:", name);
	for (size_t k = 0; k < j->n; k++) fprintf(stderr, " %s", j->parameters[k].name);
	fprintf(stderr, " (const ones are given by -D)\n");
	return 2;
}

const char *job_name(const job *j, size_t i, char room[RUN_NAME])
{
	if (i < j->n) return j->parameters[i].name;
	size_t k = 0; /* the table that holds its address */
	while (!j->held[k] || i - j->held[k] >= j->arrays[k].extent[0]) k++;
	snprintf(room, RUN_NAME, "%s[%zu]", j->parameters[k].name, i - j->held[k]);
	return room;
}

int job_buffer(const job *j, const char *name, size_t *i)
{
	char room[RUN_NAME];
	for (*i = j->n; *i < j->nbuffers; ++*i)
		if (strcmp(job_name(j, *i, room), name) == 0) return 0;
	int status = find_parameter(j, name, i);
	if (status) return status;
	if (!j->parameters[*i].is_pointer) return run_wrong(name, "is no buffer");
	if (!j->held[*i]) return 0;
	fprintf(stderr, "blkrun: %s: it holds addresses; its buffers are %s[0] to %s[%" PRIu64 "]\n", name, name, name,
		j->arrays[*i].extent[0] - 1);
	return 2;
}

bool job_may_write(const job *j, size_t i)
{
	return i >= j->n || (j->parameters[i].written && !j->held[i]);
}

bool job_wrote(const job *j, size_t i, const array *now)
{
	return i < j->n || memcmp(now->data, j->arrays[i].data, now->bytes) != 0;
}

int job_make(job *j, const options *o, blk_kernel *kernel)
{
	const blk_parameter *p;
	j->options = o;
	if (blk_kernel_parameters(kernel, &p, &j->n)) return run_failed();
	memcpy(j->parameters, p, j->n * sizeof *p);
	j->nbuffers = j->n;
	int status = 0;
	size_t k;
	for (size_t i = 0; !status && i < o->nvalues; i++) status = find_parameter(j, o->values[i].name, &k);
	for (size_t i = 0; !status && i < j->n; i++) {
		const char *text = value_of(o, p[i].name), *type = p[i].type, *trouble;
		if (!text) {
			fprintf(stderr, "blkrun: parameter %s (%s) has no value\n", p[i].name, type);
			return 2;
		}
		if (p[i].is_pointer) type += strncmp(type, "*const ", 7) == 0 ? 7 : 1;
		if (!scalar_parse(type, &j->types[i]))
			return run_wrong(p[i].name, "is of a type that blkrun does not know");
		if (p[i].is_pointer)
			status = read_array(j, i, text);
		else if ((trouble = parse_scalar(text, j->types[i], &j->bits[i])))
			status = run_wrong(p[i].name, trouble);
	}
	for (size_t i = 0; !status && i < o->nouts; i++) status = job_buffer(j, o->outs[i].name, &j->outs[i]);
	return status;
}

void job_free(job *j)
{
	for (size_t i = 0; i < j->nbuffers; i++) array_free(&j->arrays[i]);
}

/* ---- Running ---- */

int device_open(const char *name, blk_device **out)
{
	blk_status status = blk_device_open(name, out);
	if (status) return run_failed() + (status == BLK_ERROR_ARGUMENT); /* 2: a name that is no device's */
	print_note();
	return 0;
}

void place_close(place *p)
{
	for (size_t i = 0; i < sizeof p->buffers / sizeof p->buffers[0]; i++) blk_buffer_free(p->buffers[i]);
	blk_module_close(p->module);
	memset(p, 0, sizeof *p);
}

int place_open(place *p, const options *o, blk_device *device)
{
	memset(p, 0, sizeof *p);
	p->device = device;
	if (simulator_configure(device, o)) return run_failed();
	if (blk_module_open(p->device, o->path, o->defines, o->ndefines, &p->module)) {
		if (strchr(blk_error(), '\n')) { /* diagnostics carry their own file names */
			colour_diagnostics(stderr, blk_error());
			fputc('\n', stderr);
			return 1;
		}
		return run_failed();
	}
	print_note();
	blk_status status = blk_kernel_find(p->module, o->kernel, &p->kernel);
	return status ? run_failed() + (status == BLK_ERROR_NOT_FOUND) : 0; /* 2: a name that is no kernel's */
}

/* Of the buffers that this place has. */
static blk_status write_addresses(const place *p, const job *j, size_t table)
{
	blk_status status = BLK_OK;
	for (size_t k = 0; !status && k < j->arrays[table].count; k++) {
		uint64_t address = (uint64_t)(uintptr_t)blk_buffer_pointer(p->buffers[j->held[table] + k]);
		status = blk_buffer_write(p->buffers[table], k * sizeof address, &address, sizeof address);
	}
	return status;
}

blk_status place_write(const place *p, const job *j)
{
	blk_status status = BLK_OK;
	for (size_t i = 0; !status && i < j->nbuffers; i++) {
		const array *a = &j->arrays[i];
		if (i < j->n && j->held[i])
			status = write_addresses(p, j, i);
		else if (a->data)
			status = blk_buffer_write(p->buffers[i], 0, a->data, a->bytes);
	}
	return status;
}

static blk_status upload(place *p, const job *j)
{
	blk_status status = BLK_OK;
	for (size_t i = 0; !status && i < j->nbuffers; i++)
		if (j->arrays[i].data) status = blk_buffer_create(p->device, j->arrays[i].bytes, &p->buffers[i]);
	for (size_t i = 0; i < j->n; i++)
		p->args[i] = j->parameters[i].is_pointer ? blk_buf(p->buffers[i])
							 : blk_arg_make((blk_type)j->types[i], j->bits[i]);
	return status ? status : place_write(p, j);
}

/* One launch between two events, its code made before. */
static blk_status launch(place *p, const job *j)
{
	const options *o = j->options;
	blk_event *start = NULL, *end = NULL;
	blk_info info;
	p->grid = o->grid;
	blk_status status = o->has_grid ? BLK_OK : blk_kernel_grid(p->kernel, p->args, j->n, &p->grid);
	p->launched = !status && p->grid.x && p->grid.y && p->grid.z;
	if (!status && p->launched) status = blk_kernel_info(p->kernel, p->args, j->n, &info);
	if (!status && p->launched) print_note();
	if (!status) status = blk_event_create(p->device, &start);
	if (!status) status = blk_event_create(p->device, &end);
	if (!status) status = blk_event_record(start, NULL);
	if (!status) status = blk_launch(p->kernel, NULL, o->has_grid ? &o->grid : NULL, p->args, j->n);
	if (!status) status = blk_event_record(end, NULL);
	if (!status) status = blk_event_elapsed(start, end, &p->ms);
	if (!status) status = blk_device_sync(p->device);
	blk_event_free(start);
	blk_event_free(end);
	return status;
}

int place_run(place *p, const job *j, bool tune)
{
	const options *o = j->options;
	for (size_t i = 0; tune && i < j->n; i++)
		if (j->held[i])
			return run_wrong(j->parameters[i].name,
				"its addresses mean nothing to the process that --tune makes its trials in");
	blk_status status = upload(p, j);
	const blk_grid *grid = o->has_grid ? &o->grid : NULL;
	if (!status) print_note(); /* of the buffers, which the next note replaces */
	if (!status && tune) {
		status = tune_kernel(p->kernel, grid, p->args, j->n, o->which);
		print_note();
	} else if (!status)
		status = tune_shown(p->device, p->kernel, grid, p->args, j->n);
	if (!status) status = launch(p, j);
	p->failed = status;
	if (!status) return 0;
	print_note();
	return run_failed();
}

int place_download(const place *p, const job *j, size_t i, array *out)
{
	*out = j->arrays[i];
	out->data = NULL;
	if (!array_allocate(out)) return run_no_memory("a buffer");
	if (blk_buffer_read(p->buffers[i], 0, out->data, out->bytes)) {
		array_free(out);
		return run_failed();
	}
	return 0;
}
