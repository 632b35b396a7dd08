/* --bench and --plot: what a launch takes, the rate that this is, a table and a chart over sizes. */
#include "runtime/run/plot.h"
#include "runtime/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void launch_cost(const place *p, const job *j, measured *m)
{
	m->bytes = m->flops = NAN;
	if (blk_kernel_cost(p->kernel, p->args, j->n, &m->bytes, &m->flops)) m->bytes = m->flops = NAN;
	m->clause = !isnan(m->bytes);
	if (m->clause) return;
	m->bytes = 0;
	for (size_t i = 0; i < j->nbuffers; i++) m->bytes += (double)j->arrays[i].bytes;
}

void print_rates(const measured *m, double peak)
{
	if (m->ms <= 0) return;
	if (m->bytes > 0) {
		double rate = m->bytes / (m->ms * 1e-3);
		print_quantity(rate, "B/s");
		if (!m->clause) printf(" (each buffer counted once)");
		if (peak > 0) {
			printf(", %.1f%% of ", 100 * rate / peak);
			print_quantity(peak, "B/s");
			printf(", the device's copy rate measured now");
		}
		printf("\n");
	}
	if (m->flops > 0) {
		print_quantity(m->flops / (m->ms * 1e-3), "FLOP/s");
		printf("\n");
	}
}

int measure_job(const place *p, const job *j, double *peak, measured *m)
{
	blk_timing t;
	const options *o = j->options;
	if (!p->launched) return 0;
	launch_cost(p, j, m);
	if (*peak == 0 && blk_device_bandwidth(p->device, peak)) *peak = 0;
	if (blk_bench(p->kernel, o->has_grid ? &o->grid : NULL, p->args, j->n, NULL, &t)) return run_failed();
	m->ms = t.median_ms;
	m->p20_ms = t.p20_ms;
	m->p80_ms = t.p80_ms;
	printf("time ");
	print_quantity(t.median_ms * 1e-3, "s");
	printf(" (median of %" PRIu32 " runs; middle three fifths ", t.runs);
	print_quantity(t.p20_ms * 1e-3, "s");
	printf(" to ");
	print_quantity(t.p80_ms * 1e-3, "s");
	printf(")\n");
	print_rates(m, *peak);
	return 0;
}

/* ---- Over sizes ---- */

/* What is worth showing: a rate of arithmetic where a byte meets much of it, else one of memory, else the time. */
typedef enum unit { UNIT_TIME, UNIT_BYTES, UNIT_FLOPS } unit;

static unit choose_unit(const measured *m, size_t n)
{
	bool any = false, bytes = true, flops = true;
	for (size_t i = 0; i < n; i++) {
		if (m[i].ms <= 0) continue;
		any = true;
		bytes = bytes && m[i].bytes > 0;
		flops = flops && m[i].flops > 0 && (!m[i].clause || m[i].flops > 30 * m[i].bytes);
	}
	return !any ? UNIT_TIME : flops ? UNIT_FLOPS : bytes ? UNIT_BYTES : UNIT_TIME;
}

static double in_unit(const measured *m, unit u, double ms)
{
	return u == UNIT_TIME ? ms * 1e3 : u == UNIT_BYTES ? m->bytes / ms * 1e-6 : m->flops / ms * 1e-9;
}

static const char *const units[] = {"us", "GB/s", "TFLOP/s"};

int print_measured(const sweep *s, const measured *m, double peak)
{
	unit u = choose_unit(m, s->n);
	printf("%-16s %10s %8s", s->name, "us", "spread");
	if (u != UNIT_TIME) printf(" %10s", units[u]);
	if (u == UNIT_BYTES && peak > 0) printf(" %8s", "of copy");
	printf("\n");
	for (size_t i = 0; i < s->n; i++) {
		sweep_point p;
		int status = sweep_at(s, i, &p);
		if (status) return status;
		printf("%-16s", p.label);
		if (m[i].ms > 0) {
			printf(" %10.2f %7.1f%%", m[i].ms * 1e3, 100 * (m[i].p80_ms - m[i].p20_ms) / m[i].ms);
			if (u != UNIT_TIME) printf(" %10.2f", in_unit(&m[i], u, m[i].ms));
			if (u == UNIT_BYTES && peak > 0) printf(" %7.1f%%", 100e3 * m[i].bytes / m[i].ms / peak);
		}
		printf("\n");
		sweep_point_free(&p);
	}
	return 0;
}

int plot_measured(const sweep *s, const measured *m, const char *kernel, const char *device, double peak)
{
	const char *path = s->options->plot;
	char why[512], title[384];
	int status = 0;
	unit u = choose_unit(m, s->n);
	plot_point *points = calloc(s->n, sizeof *points);
	char(*labels)[sizeof((sweep_point *)0)->label] = calloc(s->n, sizeof *labels);
	plot_series series = {.name = kernel, .points = points};
	if (!points || !labels) status = run_no_memory("--plot");
	for (size_t i = 0; !status && i < s->n; i++) {
		sweep_point size;
		status = sweep_at(s, i, &size);
		if (status) break;
		double a = in_unit(&m[i], u, m[i].p20_ms), b = in_unit(&m[i], u, m[i].p80_ms);
		memcpy(labels[i], size.label, sizeof size.label);
		if (m[i].ms > 0)
			points[series.n++] = (plot_point){
				size.x, in_unit(&m[i], u, m[i].ms), a < b ? a : b, a < b ? b : a, labels[i]};
		sweep_point_free(&size);
	}
	snprintf(title, sizeof title, "%s on %s", kernel, device);
	plot chart = {.title = title,
		.x = s->name ? s->name : "",
		.y = units[u],
		.ceiling = u == UNIT_BYTES ? peak * 1e-9 : 0,
		.ceiling_name = "device copy",
		.series = &series,
		.n = 1};
	if (!status && !plot_write(path, &chart, why, sizeof why)) {
		fprintf(stderr, "blkrun: --plot: %s\n", why);
		status = 1;
	}
	free(points);
	free(labels);
	return status;
}
