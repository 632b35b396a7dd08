/* Plots: the script that gnuplot is given, what becomes of a gnuplot that fails or is not there, and the table.
 *
 * gnuplot is a shell script of this test's own on PATH: it keeps its input and prints a picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/run/plot.h"
#include "wrapped.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64], old_path[4096], why[512];

/* Streams with no room: /dev/full in the place of a file without a name, and of memory. */
static struct {
	bool unbuffered, streams;
	int interrupted; /* so many waits for gnuplot */
	int lost;        /* its wait fails with this */
} play;

static FILE *full(void)
{
	FILE *f = fopen("/dev/full", "w");
	if (f && play.unbuffered) setvbuf(f, NULL, _IONBF, 0);
	return f;
}
FILE *__real_tmpfile(void);
FILE *__wrap_tmpfile(void);
FILE *__wrap_tmpfile(void)
{
	return play.streams ? full() : __real_tmpfile();
}
FILE *__real_open_memstream(char **text, size_t *n);
FILE *__wrap_open_memstream(char **text, size_t *n);
FILE *__wrap_open_memstream(char **text, size_t *n)
{
	if (!play.streams) return __real_open_memstream(text, n);
	*text = strdup("half");
	*n = 4;
	return full();
}
pid_t __real_waitpid(pid_t child, int *status, int flags);
pid_t __wrap_waitpid(pid_t child, int *status, int flags);
pid_t __wrap_waitpid(pid_t child, int *status, int flags)
{
	if (play.interrupted && play.interrupted--) return errno = EINTR, -1;
	pid_t p = __real_waitpid(child, status, flags);
	return play.lost ? errno = play.lost, -1 : p;
}

static const char *in_folder(const char *name)
{
	static char path[4][256];
	static int which;
	char *p = path[which = (which + 1) % 4];
	snprintf(p, sizeof path[0], "%s/%s", folder, name);
	return p;
}

static void gnuplot_is(const char *does)
{
	FILE *f = fopen(in_folder("gnuplot"), "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", does);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(in_folder("gnuplot"), 0755), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_plot.XXXXXX");
	snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
	if (!mkdtemp(folder)) return -1;
	char path[4200];
	snprintf(path, sizeof path, "%s:%s", folder, old_path);
	return setenv("PATH", path, 1);
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	setenv("PATH", old_path, 1);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

static char *content(const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	if (!f) return NULL;
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	return text;
}

static void has(const char *text, const char *words)
{
	if (!text || !strstr(text, words)) fail_msg("no `%s` in:\n%s", words, text ? text : "(no file)");
}

static plot_point points[40];
static char labels[40][16];
static plot_series series[2];

/* Two series; x doubles from point to point, or is the next number. */
static plot made(size_t n, bool doubles, double ceiling)
{
	for (size_t i = 0; i < n; i++) {
		points[i] = (plot_point){.x = doubles ? (double)(UINT64_C(1) << i) : (double)(100 + i),
			.y = (double)i + 1,
			.low = (double)i,
			.high = (double)i + 2,
			.label = labels[i]};
		snprintf(labels[i], sizeof labels[i], "n=%zu", i);
	}
	series[0] = (plot_series){.name = "it's one", .points = points, .n = n};
	series[1] = (plot_series){.name = "two", .points = points, .n = n / 2};
	return (plot){.title = "a 'title'\nof two lines",
		.x = "size",
		.y = "GB/s",
		.series = series,
		.n = 2,
		.ceiling = ceiling,
		.ceiling_name = "copy"};
}

static void test_script(void **state)
{
	(void)state;
	char keep[256];
	snprintf(keep, sizeof keep, "cat >%s/script; echo '<svg>'", folder);
	gnuplot_is(keep);
	plot p = made(8, true, 20);
	if (!plot_write(in_folder("p.svg"), &p, why, sizeof why)) fail_msg("%s", why);
	assert_string_equal(content(in_folder("p.svg")), "<svg>\n");
	const char *s = content(in_folder("script"));
	has(s, "set title 'a ''title'' of two lines'");
	has(s, "set logscale x 2\n");
	has(s, "set yrange [0:21.6]");
	has(s, "'n=0' 1, 'n=1' 2, 'n=2' 4");
	has(s, "20 with lines");
	has(s, "title 'copy', '-' using");
	has(s, "title 'it''s one', '-' using");
	has(s, "128 8 7 9\ne\n1 1 0 2\n2 2 1 3\n4 3 2 4\n8 4 3 5\ne\n");
	/* no ceiling, a short range, and more labels than fit: one in three of 40 */
	p = made(40, false, 0);
	assert_true(plot_write(in_folder("q.svg"), &p, why, sizeof why));
	s = content(in_folder("script"));
	assert_null(strstr(s, "logscale"));
	assert_null(strstr(s, "with lines dashtype"));
	has(s, "'n=0' 100, '' 101, '' 102, 'n=3' 103");
	has(s, "plot '-' using");
	/* x falls: the axis goes from the least to the most all the same */
	p = made(8, true, 0);
	for (size_t i = 0; i < 8; i++) points[i].x = (double)(800 - 100 * i);
	assert_true(plot_write(in_folder("q.svg"), &p, why, sizeof why));
	has(content(in_folder("script")), "set xrange [95:840]");
	/* nothing to draw is still a picture */
	p = made(0, false, 0);
	assert_true(plot_write(in_folder("r.svg"), &p, why, sizeof why));
	has(content(in_folder("script")), "set yrange [0:1]");
}

static void refused(const char *path, const char *words)
{
	plot p = made(3, true, 0);
	assert_false(plot_write(path, &p, why, sizeof why));
	has(why, words);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_failures(void **state)
{
	(void)state;
	gnuplot_is("echo half; exit 3");
	refused(in_folder("p.svg"), "gnuplot failed");
	gnuplot_is("kill -9 $$");
	refused(in_folder("p.svg"), "gnuplot failed");
	gnuplot_is("cat >/dev/null");
	refused(in_folder("nowhere/p.svg"), "No such file");
	refused(in_folder("nowhere/p.csv"), "No such file");
	FILE *f = fopen(in_folder("gnuplot"), "w"); /* no program */
	assert_non_null(f);
	fputs("\x7f"
	      "ELF nothing",
		f);
	fclose(f);
	refused(in_folder("p.svg"), "gnuplot");
	assert_int_equal(unlink(in_folder("gnuplot")), 0);
	setenv("PATH", folder, 1);
	refused(in_folder("p.svg"), "gnuplot, which draws the plot, is not on PATH");
	assert_false(plot_possible("p.svg", why, sizeof why));
	assert_true(plot_possible("p.csv", why, sizeof why));
	setenv("PATH", "", 1);
	assert_false(plot_possible("p.svg", why, sizeof why));
	for (size_t i = 0; i < 3; i++) /* no names that end in .csv */
		assert_false(plot_possible((const char *[]){"csv", ".csv", "pcsv."}[i], why, sizeof why));
	assert_true(plot_possible("p.csv", why, sizeof why));
	refused(in_folder(".svg"), "gnuplot, which draws the plot, is not on PATH");
}

/* Folders of PATH: none that is too long for a path, an empty one is this one, the system's where there is no PATH. */
static void test_path(void **state)
{
	(void)state;
	char here[256], longest[5000];
	assert_non_null(getcwd(here, sizeof here));
	memset(longest, 'x', sizeof longest);
	longest[4990] = 0;
	setenv("PATH", longest, 1);
	assert_false(plot_possible("p.svg", why, sizeof why));
	snprintf(longest + 4990, sizeof longest - 4990, ":");
	setenv("PATH", longest, 1); /* and the empty one behind it */
	assert_false(plot_possible("p.svg", why, sizeof why));
	gnuplot_is("echo there");
	setenv("PATH", "/nowhere::/nowhere", 1);
	assert_false(plot_possible("p.svg", why, sizeof why));
	assert_int_equal(chdir(folder), 0);
	assert_true(plot_possible("p.svg", why, sizeof why));
	setenv("PATH", "/nowhere:", 1);
	assert_true(plot_possible("p.svg", why, sizeof why));
	setenv("PATH", "", 1);
	assert_true(plot_possible("p.svg", why, sizeof why));
	setenv("PATH", "/nowhere", 1);
	assert_false(plot_possible("p.svg", why, sizeof why));
	assert_int_equal(chdir(here), 0);
	unsetenv("PATH");
	bool there = access("/bin/gnuplot", X_OK) == 0 || access("/usr/bin/gnuplot", X_OK) == 0;
	assert_int_equal(plot_possible("p.svg", why, sizeof why), there);
}

/* What waits for gnuplot is interrupted and waits on, or is told that there is no such process. */
static void test_waits(void **state)
{
	(void)state;
	if (!wraps((void *)plot_write)) skip();
	gnuplot_is("cat >/dev/null; echo '<svg>'");
	plot p = made(2, true, 0);
	play.interrupted = 3;
	assert_true(plot_write(in_folder("p.svg"), &p, why, sizeof why));
	assert_int_equal(play.interrupted, 0);
	assert_string_equal(content(in_folder("p.svg")), "<svg>\n");
	play.lost = ECHILD;
	refused(in_folder("q.svg"), "gnuplot: No child processes");
	play.lost = 0;
}

/* Where the script or the table finds no room, nothing is drawn of half of it. */
static void test_no_room(void **state)
{
	(void)state;
	if (!wraps((void *)plot_write)) skip();
	gnuplot_is("echo '<svg>'");
	play.streams = true;
	for (int i = 0; i < 2; i++) {
		play.unbuffered = i;
		refused(in_folder("p.svg"), "a temporary file: No space left on device");
		refused(in_folder("p.csv"), "the table: No space left on device");
	}
	memset(&play, 0, sizeof play);
}

static void test_table(void **state)
{
	(void)state;
	plot p = made(2, true, 5);
	if (!plot_write(in_folder("p.csv"), &p, why, sizeof why)) fail_msg("%s", why);
	assert_string_equal(content(in_folder("p.csv")),
		"series,label,x,y,low,high,ceiling\n\"it's one\",\"n=0\",1,1,0,2,5\n\"it's one\",\"n=1\",2,2,1,3,5\n"
		"\"two\",\"n=0\",1,1,0,2,5\n");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_script), T(test_failures), T(test_path), T(test_waits), T(test_no_room), T(test_table)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
