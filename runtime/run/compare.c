/* --check: what a job wrote on one device against another device or a file.
 *
 * A device says nothing about itself.  Where the job ran on the cpu and the cpu is asked for, the simulator is meant:
 * it runs other code, in another order, and finds races and accesses outside of buffers on the way. */
#include "runtime/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool compare(const job *j, size_t i, const array *got, const array *want, const char *with)
{
	const options *o = j->options;
	char room[RUN_NAME];
	check_result r = check_arrays(got, want, o->rtol, o->atol);
	printf("check %s against %s: %s, ", job_name(j, i, room), with, r.good ? "good" : "WRONG");
	if (r.worst == 0)
		printf("equal\n");
	else {
		printf("largest error %.3g (allowed %.3g) at ", r.worst, r.tolerance);
		print_index(got, r.at);
		printf(": ");
		print_element(got, r.at);
		printf(", expected ");
		print_element(want, r.at);
		if (r.wrong) printf("; %zu of %zu elements are out", r.wrong, got->count);
		printf("\n");
	}
	return r.good;
}

/* About a minute of one processor. */
#define CHECK_BUDGET (UINT64_C(1) << 28)

static bool same_device(const blk_device_info *a, const blk_device_info *b)
{
	return a->kind == b->kind && a->ordinal == b->ordinal && strcmp(a->target, b->target) == 0;
}

/* The device to compare with; `o` gets what it is to be opened with. */
static int open_other(const place *p, const char *name, options *o, blk_device **there, bool *simulated)
{
	blk_device_info ran, other;
	int status = device_open(name, there);
	if (status) return status;
	if (blk_device_query(p->device, &ran) || blk_device_query(*there, &other)) return run_failed();
	if (!same_device(&ran, &other)) return 0;
	if (other.kind != BLK_DEVICE_CPU) {
		fprintf(stderr,
			"blkrun: --check %s is the device that the kernel ran on: that two runs agree says "
			"little; check against cpu\n",
			name);
		return 0;
	}
	blk_device_close(*there);
	*there = NULL;
	*simulated = true;
	if (!o->sim.budget) o->sim.budget = CHECK_BUDGET;
	printf("check: the kernel ran on the cpu, so the simulator checks it\n");
	return device_open("sim", there);
}

/* The simulator in the cpu's place could not say anything. */
static void advise(const place *other)
{
	if (other->failed == BLK_ERROR_RESOURCES)
		fprintf(stderr,
			"blkrun: nothing is checked: give smaller sizes, or --check sim, which has no limit of time\n");
	else if (other->failed != BLK_ERROR_KERNEL)
		fprintf(stderr, "blkrun: nothing is checked: the simulator of sm_80 cannot run this; "
				"--check sim:sm_90a simulates another target\n");
}

/* 0 all good, 1 not, as an exit status. */
static int check_device(const place *p, const job *j, const char *device)
{
	place other = {0};
	blk_device *there = NULL;
	options o = *j->options;
	bool good = true, any = false, simulated = false;
	int status = open_other(p, device, &o, &there, &simulated);
	if (!status) status = place_open(&other, &o, there);
	if (!status) status = place_run(&other, j, false);
	if (status && simulated) advise(&other);
	for (size_t i = 0; !status && i < j->nbuffers; i++) {
		array got = {0}, want = {0};
		if (!job_may_write(j, i)) continue;
		status = place_download(p, j, i, &got);
		if (!status) status = place_download(&other, j, i, &want);
		if (!status && (job_wrote(j, i, &got) || job_wrote(j, i, &want))) {
			good = compare(j, i, &got, &want, blk_device_name(other.device)) && good;
			any = true;
		}
		array_free(&got);
		array_free(&want);
	}
	if (!status && !any) printf("check: the kernel writes no buffer\n");
	place_close(&other);
	blk_device_close(there);
	return status ? status : !good;
}

static int find_checked(const job *j, const char *name, size_t *out)
{
	size_t found = 0;
	if (name) return job_buffer(j, name, out);
	for (size_t i = 0; i < j->nbuffers; i++)
		if (job_may_write(j, i)) *out = i, found++;
	if (found == 1) return 0;
	return run_wrong("--check", found ? "the kernel writes several buffers; say which: --check name=file.npy"
					  : "the kernel writes no buffer");
}

static int check_file(const place *p, const job *j, const char *text)
{
	array got = {0}, want = {0};
	char why[256], room[RUN_NAME], *copy = strdup(text), *equals = copy ? strchr(copy, '=') : NULL;
	const char *path = equals ? equals + 1 : copy;
	size_t i = 0;
	if (!copy) return run_no_memory("--check");
	if (equals) *equals = 0;
	int status = find_checked(j, equals ? copy : NULL, &i);
	if (!status && !npy_read(path, j->arrays[i].type, &want, why, sizeof why)) {
		fprintf(stderr, "blkrun: %s: %s\n", path, why);
		status = 1;
	}
	if (!status) status = place_download(p, j, i, &got);
	if (!status && (want.type != got.type || want.count != got.count)) {
		fprintf(stderr, "blkrun: %s holds %zu elements of %s, but %s has %zu of %s\n", path, want.count,
			scalar_name(want.type), job_name(j, i, room), got.count, scalar_name(got.type));
		status = 1;
	}
	if (!status) status = !compare(j, i, &got, &want, path);
	array_free(&got);
	array_free(&want);
	free(copy);
	return status;
}

static bool is_file(const char *text)
{
	size_t n = strlen(text);
	return n > 4 && strcmp(text + n - 4, ".npy") == 0;
}

int check_job(const place *p, const job *j)
{
	const char *text = j->options->check;
	return is_file(text) ? check_file(p, j, text) : check_device(p, j, text);
}

int check_possible(const options *o)
{
	if (!o->check || !is_file(o->check)) return 0;
	const char *equals = strchr(o->check, '='), *path = equals ? equals + 1 : o->check;
	for (size_t i = 0; i < o->nouts; i++)
		if (strcmp(o->outs[i].text, path) == 0) return 0;
	if (access(path, R_OK) == 0) return 0;
	fprintf(stderr, "blkrun: %s: %s\n", path, strerror(errno));
	return 1;
}
