/* --check: what a job wrote on one device against another device or a file. */
#include "runtime/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* 0 all good, 1 not, as an exit status. */
static int check_device(const place *p, const job *j, const char *device)
{
	place other = {0};
	blk_device *there = NULL;
	bool good = true, any = false;
	int status = device_open(device, &there);
	if (!status) status = place_open(&other, j->options, there);
	if (!status) status = place_run(&other, j, false);
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
	if (!copy) return run_wrong("--check", "out of memory");
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

int check_job(const place *p, const job *j)
{
	const char *text = j->options->check;
	size_t n = strlen(text);
	bool file = n > 4 && strcmp(text + n - 4, ".npy") == 0;
	return file ? check_file(p, j, text) : check_device(p, j, text);
}
