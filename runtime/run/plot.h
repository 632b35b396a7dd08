/* A chart of series over sizes, written as SVG by gnuplot or as numbers.  Stands on libc alone: blkrun and the
 * benchmarks share it. */
#ifndef BLK_RUN_PLOT_H
#define BLK_RUN_PLOT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct plot_point {
	double x, y, low, high; /* low to high: the spread of y */
	const char *label;      /* what stands below x: "2^20", "4096 x 256" */
} plot_point;

typedef struct plot_series {
	const char *name;
	const plot_point *points;
	size_t n;
} plot_series;

typedef struct plot {
	const char *title, *x, *y; /* titles of the chart and of its axes */
	double ceiling;            /* a line across; 0: none */
	const char *ceiling_name;
	const plot_series *series;
	size_t n;
} plot;

/* Whether `path` can be plotted here: gnuplot is on PATH, or the path ends in .csv.  False with a sentence in `why`. */
bool plot_possible(const char *path, char *why, size_t room);
/* Writes the chart; a path that ends in .csv gets the numbers. */
bool plot_write(const char *path, const plot *, char *why, size_t room);

#endif
