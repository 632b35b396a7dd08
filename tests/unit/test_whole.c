/* What blkrun and blkc write is whole or not there: where a signal ends the program, where the output is refused, and
 * where it is a device or a pipe.  That a written file is the right one is test_npy's, test_plot's and the scripts'. */
#include "captured.h"
#include "wrapped.h"

#include "runtime/run/whole.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[64];
static volatile sig_atomic_t kept_alive, raised; /* a raised signal is noted only */

int __real_raise(int);
int __wrap_raise(int);
int __wrap_raise(int signal_number)
{
	if (!kept_alive) return __real_raise(signal_number);
	raised = signal_number;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_whole.XXXXXX");
	return !mkdtemp(folder) || chdir(folder) != 0;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return chdir("/") || system(command);
}

static int files(void)
{
	int n = 0;
	DIR *d = opendir(".");
	for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
	if (d) closedir(d);
	return n;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* A child that is ended while it writes. */
static void test_ended(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			signal(ends[i], SIG_DFL);
			if (whole_open("x") && whole_write("half", 4)) raise(ends[i]);
			_exit(1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == ends[i]);
		assert_int_equal(files(), 0);
	}
}

/* The same in this process, where raise() is noted: the file goes, and the signal ends the program as it would have. */
static void test_handler(void **state)
{
	(void)state;
	if (!wraps((void *)whole_open)) skip();
	for (size_t i = 0; i < 3; i++)
		for (int device = 0; device < 2; device++) {
			struct sigaction now;
			signal(ends[i], SIG_DFL);
			assert_true(whole_open(device ? "/dev/null" : "x") && whole_write("half", 4));
			assert_int_equal(files(), !device);
			assert_int_equal(sigaction(ends[i], NULL, &now), 0);
			assert_true(now.sa_handler != SIG_DFL);
			kept_alive = true;
			raised = 0;
			kill(getpid(), ends[i]);
			kept_alive = false;
			assert_int_equal(raised, ends[i]);
			assert_int_equal(files(), 0);
			assert_int_equal(sigaction(ends[i], NULL, &now), 0);
			assert_true(now.sa_handler == SIG_DFL);
			whole_abandon();
			assert_int_equal(access("/dev/null", W_OK), 0);
		}
}

static void nothing(int signal_number)
{
	(void)signal_number;
}

/* What was there before a file is begun is there after it, however it ends. */
static void test_handlers_come_back(void **state)
{
	(void)state;
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, nothing);
	signal(SIGHUP, SIG_DFL);
	for (int how = 0; how < 4; how++) {
		struct sigaction now;
		if (how == 3) {
			assert_false(whole_open("nowhere/x"));
			assert_int_equal(errno, ENOENT);
		} else {
			assert_true(whole_open(how == 2 ? "/dev/full" : "x"));
			assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
			assert_true(now.sa_handler == SIG_IGN);
			assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
			assert_true(now.sa_handler != nothing);
		}
		if (how == 0) assert_true(whole_write("all", 3) && whole_commit());
		if (how == 1) whole_abandon();
		if (how == 2) {
			assert_false(whole_write("all", 3));
			assert_int_equal(errno, ENOSPC);
		}
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(sigaction(ends[i], NULL, &now), 0);
			assert_true(now.sa_handler == (i == 0 ? SIG_IGN : i == 1 ? nothing : SIG_DFL));
		}
	}
	assert_int_equal(files(), 1);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

static void test_possible(void **state)
{
	(void)state;
	assert_int_equal(mkdir("folder", 0777), 0);
	assert_int_equal(mkfifo("pipe", 0666), 0);
	int fd = open("old", O_CREAT | O_WRONLY, 0666);
	assert_true(fd >= 0 && write(fd, "kept", 4) == 4 && close(fd) == 0);
	static const struct {
		const char *path;
		int error; /* 0: it is possible */
	} rows[] = {{"new", 0}, {"old", 0}, {"pipe", 0}, {"/dev/null", 0}, {"/dev/stdout", 0}, {"/dev/nowhere", ENOENT},
		{"folder", EISDIR}, {"nowhere/new", ENOENT}, {"old/new", ENOTDIR}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		errno = 0;
		bool possible = whole_possible(rows[i].path);
		if (possible != !rows[i].error || (!possible && errno != rows[i].error))
			fail_msg("%s: %d, %s", rows[i].path, possible, strerror(errno));
	}
	assert_int_equal(files(), 3); /* nothing was made, and nothing was cut */
	struct stat st;
	assert_int_equal(stat("old", &st), 0);
	assert_int_equal(st.st_size, 4);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_ended), T(test_handler), T(test_handlers_come_back), T(test_possible)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
