/* In: series of points with their spread.  Out: an SVG file, drawn by gnuplot, or the numbers as CSV.
 *
 * The one idea: gnuplot reads its script from a file without a name and writes to one that we opened, so no path needs
 * quoting, no pipe can break, and nothing is left behind when gnuplot fails. */
#include "runtime/run/plot.h"
#include "runtime/run/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool is_csv(const char *path)
{
	size_t n = strlen(path);
	return n > 4 && strcmp(path + n - 4, ".csv") == 0;
}

/* As posix_spawnp looks for it: an empty folder is this one. */
static bool on_path(const char *program)
{
	const char *path = getenv("PATH");
	if (!path) path = "/bin:/usr/bin";
	for (;; path++) {
		char file[4096];
		size_t n = strcspn(path, ":");
		int k = snprintf(file, sizeof file, "%.*s/%s", n ? (int)n : 1, n ? path : ".", program);
		if ((size_t)k < sizeof file && access(file, X_OK) == 0) return true;
		path += n;
		if (!*path) return false;
	}
}

bool plot_possible(const char *path, char *why, size_t room)
{
	if (is_csv(path) || on_path("gnuplot")) return true;
	snprintf(why, room,
		"gnuplot, which draws the plot, is not on PATH (Debian: apt-get install gnuplot-nox); a name that ends "
		"in .csv gets the numbers without it");
	return false;
}

/* Between double quotes only a quote itself is special, and stands twice. */
static void cell(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"') fputc('"', f);
		fputc(*text, f);
	}
	fputs("\",", f);
}

static bool write_csv(FILE *f, const plot *p)
{
	fprintf(f, "series,label,x,y,low,high,ceiling\n");
	for (size_t s = 0; s < p->n; s++)
		for (size_t i = 0; i < p->series[s].n; i++) {
			const plot_point *q = &p->series[s].points[i];
			cell(f, p->series[s].name);
			cell(f, q->label);
			fprintf(f, "%.10g,%.6g,%.6g,%.6g,%.6g\n", q->x, q->y, q->low, q->high, p->ceiling);
		}
	return !ferror(f);
}

/* gnuplot's single quotes: only a quote itself is special. */
static void quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++) {
		if (*text == '\'') fputc('\'', f);
		fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
	}
	fputc('\'', f);
}

/* Every point's label once below the axis; one in k where they would run into each other. */
static void write_tics(FILE *f, const plot *p, double least, double most)
{
	size_t all = 0, k = 0;
	for (size_t s = 0; s < p->n; s++)
		if (p->series[s].n > all) all = p->series[s].n, k = s;
	if (most / least > 8) fprintf(f, "set logscale x 2\n");
	fprintf(f, "set xtics rotate by -30 (");
	for (size_t i = 0; i < all; i++) {
		const plot_point *q = &p->series[k].points[i];
		quoted(f, all > 24 && i % (all / 12) ? "" : q->label);
		fprintf(f, " %.17g%s", q->x, i + 1 < all ? ", " : "");
	}
	fprintf(f, ")\n");
}

static void write_script(FILE *f, const plot *p)
{
	double least = 0, most = 0, top = p->ceiling;
	for (size_t s = 0; s < p->n; s++)
		for (size_t i = 0; i < p->series[s].n; i++) {
			const plot_point *q = &p->series[s].points[i];
			if (least == 0 || q->x < least) least = q->x;
			if (q->x > most) most = q->x;
			if (q->high > top) top = q->high;
		}
	if (!(least > 0)) least = most = 1;
	fprintf(f, "set terminal svg size 860,480 dynamic noenhanced font 'sans-serif,13' background rgb 'white'\n");
	fprintf(f, "set title ");
	quoted(f, p->title);
	fprintf(f, "\nset xlabel ");
	quoted(f, p->x);
	fprintf(f, "\nset ylabel ");
	quoted(f, p->y);
	fprintf(f, "\nset grid y\nset key bottom right\nset yrange [0:%.6g]\n", top > 0 ? top * 1.08 : 1);
	write_tics(f, p, least, most);
	fprintf(f, "set xrange [%.17g:%.17g]\nplot ", least * (most / least > 8 ? 0.7 : 0.95),
		most * (most / least > 8 ? 1.4 : 1.05));
	if (p->ceiling > 0) {
		fprintf(f, "%.6g with lines dashtype 2 linecolor rgb '#777777' title ", p->ceiling);
		quoted(f, p->ceiling_name);
	}
	for (size_t s = 0; s < p->n; s++) {
		fprintf(f, "%s'-' using 1:2:3:4 with yerrorlines pointtype 7 pointsize 0.5 linewidth 1.5 title ",
			s || p->ceiling > 0 ? ", " : "");
		quoted(f, p->series[s].name);
	}
	fprintf(f, "\n");
	for (size_t s = 0; s < p->n; s++) {
		for (size_t i = 0; i < p->series[s].n; i++) {
			const plot_point *q = &p->series[s].points[i];
			fprintf(f, "%.17g %.9g %.9g %.9g\n", q->x, q->y, q->low, q->high);
		}
		fprintf(f, "e\n");
	}
}

/* gnuplot with `script` as its input and `out` as its output. */
static bool draw(int script, int out, char *why, size_t room)
{
	char *const arguments[] = {"gnuplot", NULL};
	posix_spawn_file_actions_t actions;
	pid_t child;
	int status = 0;
	if (posix_spawn_file_actions_init(&actions)) return snprintf(why, room, "out of memory"), false;
	int e = posix_spawn_file_actions_adddup2(&actions, script, 0);
	if (!e) e = posix_spawn_file_actions_adddup2(&actions, out, 1);
	if (!e) e = posix_spawnp(&child, "gnuplot", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (e) return snprintf(why, room, "gnuplot: %s", strerror(e)), false;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR) return snprintf(why, room, "gnuplot: %s", strerror(errno)), false;
	if (!WIFEXITED(status) || WEXITSTATUS(status)) return snprintf(why, room, "gnuplot failed"), false;
	return true;
}

static bool broken(const char *what, char *why, size_t room)
{
	snprintf(why, room, "%s: %s", what, strerror(errno));
	return false;
}

static bool plot_csv(const char *path, const plot *p, char *why, size_t room)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	bool composed = f && write_csv(f, p);
	if (f && fclose(f) != 0) composed = false;
	composed = composed && text; /* for the last byte fclose may lack memory, and does not say so */
	bool good = composed && whole_open(path) && whole_write(text, n) && whole_commit();
	if (!good) broken(composed ? path : "the table", why, room);
	free(text);
	return good;
}

static bool plot_svg(const char *path, FILE *script, const plot *p, char *why, size_t room)
{
	write_script(script, p);
	if (fflush(script) != 0 || ferror(script) || lseek(fileno(script), 0, SEEK_SET) != 0)
		return broken("a temporary file", why, room);
	if (!whole_open(path)) return broken(path, why, room);
	if (!draw(fileno(script), whole_descriptor(), why, room)) return whole_abandon(), false;
	return whole_commit() ? true : broken(path, why, room);
}

bool plot_write(const char *path, const plot *p, char *why, size_t room)
{
	if (!plot_possible(path, why, room)) return false;
	if (is_csv(path)) return plot_csv(path, p, why, room);
	FILE *script = tmpfile();
	if (!script) return broken("a temporary file", why, room);
	bool good = plot_svg(path, script, p, why, room);
	fclose(script);
	return good;
}
