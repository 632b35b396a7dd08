/* blkrun: runs, checks and times a kernel from the shell (docs/man/blkrun.1).
 *
 * In: a source file, values for the kernel's parameters by name.  Out: what ran where, its time, its outputs; exit
 * status 0, 1 for an error or a mismatch, 2 for wrong usage.  The one idea: a run is a job (run/job.c) for each size of
 * the sweep (run/sweep.c). */
#include "runtime/run/plot.h"
#include "runtime/run/run.h"
#include "runtime/run/whole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reporting ---- */

/* Of the cpu device, as its name or else BLK_CPU says; null on others. */
static const char *cpu_mode(const blk_device_info *d, const options *o)
{
	if (d->kind != BLK_DEVICE_CPU) return NULL;
	return strncmp(o->device, "cpu:", 4) == 0 ? o->device + 4 : getenv("BLK_CPU");
}

static bool is_checked(const char *mode)
{
	return mode && strcmp(mode, "checked") == 0;
}

static int print_run(const place *p, const job *j)
{
	blk_device_info d;
	blk_info info;
	if (blk_device_query(p->device, &d)) return run_failed();
	printf("%s on %s (%s)\n", blk_kernel_name(p->kernel), d.name, d.target);
	printf("grid %" PRIu32 " x %" PRIu32 " x %" PRIu32, p->grid.x, p->grid.y, p->grid.z);
	if (!p->launched) {
		printf(": no programs, so nothing was launched\n");
		return 0;
	}
	bool known = blk_kernel_info(p->kernel, p->args, j->n, &info) == BLK_OK;
	if (known && d.kind == BLK_DEVICE_CUDA)
		printf(", %" PRIu32 " warps, %" PRIu32 " registers, %" PRIu32 " bytes of shared memory, %" PRIu32
		       " spilled, occupancy %.0f%%",
			info.num_warps, info.registers, info.shared_bytes, info.spill_bytes,
			100 * (double)info.occupancy);
	printf("\n");
	if (known && j->options->verbose)
		printf("code for %s, %" PRIu32 " tensor map%s, %s%s%s\n",
			info.promises[0] ? info.promises : "any arguments", info.tensor_maps,
			info.tensor_maps == 1 ? "" : "s", info.from_cache ? "from the cache" : "compiled now",
			info.configuration[0] ? ", " : "", info.configuration);
	if (known && info.fallback[0]) printf("code for any arguments, though these promise more: %s\n", info.fallback);
	const char *mode = cpu_mode(&d, j->options);
	if (j->options->bench && mode && !is_checked(mode))
		printf("timed without checks of bounds (BLK_CPU=checked times with them)\n");
	if (j->options->bench) return 0;
	printf("time ");
	print_quantity(p->ms * 1e-3, "s");
	printf(" (one launch%s)\n", is_checked(mode) ? ", each access checked" : "");
	measured m = {.ms = p->ms};
	launch_cost(p, j, &m);
	print_rates(&m, 0);
	return 0;
}

static int print_outputs(const place *p, const job *j)
{
	for (size_t i = 0; i < j->nbuffers; i++) {
		array a;
		char room[RUN_NAME];
		if (!job_may_write(j, i)) continue;
		int status = place_download(p, j, i, &a);
		if (status) return status;
		if (job_wrote(j, i, &a)) print_array(job_name(j, i, room), &a);
		array_free(&a);
	}
	return 0;
}

static int write_outputs(const place *p, const job *j)
{
	const options *o = j->options;
	for (size_t k = 0; k < o->nouts; k++) {
		array a;
		char why[256];
		int status = place_download(p, j, j->outs[k], &a);
		if (status) return status;
		bool good = npy_write(o->outs[k].text, &a, why, sizeof why);
		array_free(&a);
		if (!good) {
			fprintf(stderr, "blkrun: %s: %s\n", o->outs[k].text, why);
			return 1;
		}
		if (a.type == SCALAR_BF16 || scalar_is_fp8(a.type))
			fprintf(stderr, "blkrun: %s: NumPy has no %s: its bits are stored as %s\n", o->outs[k].text,
				scalar_name(a.type), a.type == SCALAR_BF16 ? "V2" : "u1");
	}
	return 0;
}

/* ---- Sizes ---- */

/* On a cpu device each access is checked, but where times are asked for; BLK_CPU says otherwise. */
static bool choose_checks(const options *o)
{
	return setenv("BLK_CPU", o->bench || o->tune ? "guarded" : "checked", false) == 0;
}

/* One size: runs, reports, checks, measures.  `good` falls where a check does not hold. */
static int run_point(const sweep *s, size_t i, blk_device *device, double *peak, measured *m, bool *good)
{
	sweep_point point;
	place here = {0};
	job *j = calloc(1, sizeof *j);
	if (!j) return run_no_memory(s->options->path);
	int status = sweep_at(s, i, &point);
	if (status) return free(j), status;
	if (s->name) printf("%s%s = %s\n", i ? "\n" : "", s->name, point.label);
	status = place_open(&here, &point.options, device);
	if (!status) status = job_make(j, &point.options, here.kernel);
	if (!status) status = place_run(&here, j, point.options.tune);
	if (!status) status = print_run(&here, j);
	if (!status && point.options.sim.counters && simulator_print(here.device)) status = run_failed();
	if (!status && point.options.page) status = simulator_page(here.kernel);
	bool unwritten = false;
	if (!status) status = unwritten_report(&here, j, &unwritten);
	if (unwritten && point.options.check && !point.options.allow_unwritten) *good = false;
	if (!status && !s->name) status = print_outputs(&here, j);
	if (!status) status = write_outputs(&here, j);
	int checked = !status && point.options.check ? check_job(&here, j) : 0;
	if (checked == 1)
		*good = false;
	else if (checked)
		status = checked;
	if (!status && point.options.bench) status = measure_job(&here, j, peak, m);
	job_free(j);
	place_close(&here);
	sweep_point_free(&point);
	free(j);
	return status;
}

/* The kernel's name, for the chart's title. */
static int kernel_name(const sweep *s, blk_device *device, char *to, size_t room)
{
	sweep_point point;
	place here;
	int status = sweep_at(s, 0, &point);
	if (status) return status;
	status = place_open(&here, &point.options, device);
	if (!status) snprintf(to, room, "%s", blk_kernel_name(here.kernel));
	place_close(&here);
	sweep_point_free(&point);
	return status;
}

/* A run may take long: what would come of it in vain is said before. */
static int outputs_possible(const options *o)
{
	char why[512];
	if (o->plot && !plot_possible(o->plot, why, sizeof why)) {
		fprintf(stderr, "blkrun: --plot: %s\n", why);
		return 1;
	}
	if (o->plot && !whole_possible(o->plot)) {
		fprintf(stderr, "blkrun: --plot: %s: %s\n", o->plot, strerror(errno));
		return 1;
	}
	for (size_t i = 0; i < o->nouts; i++)
		if (!whole_possible(o->outs[i].text)) {
			fprintf(stderr, "blkrun: %s: %s\n", o->outs[i].text, strerror(errno));
			return 1;
		}
	return check_possible(o);
}

static int run_all(const options *o)
{
	sweep s;
	blk_device *device = NULL;
	char name[128];
	double peak = 0;
	bool good = true;
	int status = sweep_open(o, &s);
	if (!status && o->page && s.n > 1) {
		fprintf(stderr, "blkrun: --counters=html is a page of one launch, not of %zu sizes\n", s.n);
		status = 2;
	}
	if (!status) status = outputs_possible(o);
	if (status) return status;
	measured *m = calloc(s.n, sizeof *m);
	if (!m) return run_no_memory(o->path);
	status = device_open(o->device, &device);
	for (size_t i = 0; !status && i < s.n; i++) status = run_point(&s, i, device, &peak, &m[i], &good);
	if (!status && s.name && o->bench) printf("\n");
	if (!status && s.name && o->bench) status = print_measured(&s, m, peak);
	if (!status && o->plot) status = kernel_name(&s, device, name, sizeof name);
	if (!status && o->plot) status = plot_measured(&s, m, name, blk_device_name(device), peak);
	blk_device_close(device);
	free(m);
	return status ? status : !good;
}

int blkrun(int argc, char **argv)
{
	options o;
	int status = options_parse(argc, argv, &o);
	if (status) {
	} else if (o.help)
		options_usage();
	else if (o.version)
		printf("blkrun %s\n", blk_version());
	else if (o.cache && (strcmp(o.cache, "export") == 0 || strcmp(o.cache, "import") == 0))
		status = ship_records(o.cache, o.path);
	else if (o.cache)
		status = manage_cache(o.cache);
	else
		status = choose_checks(&o) ? run_all(&o) : run_no_memory(o.path);
	options_free(&o);
	if (fflush(stdout) == 0) return status;
	fprintf(stderr, "blkrun: standard output cannot be written\n");
	return status ? status : 1;
}
