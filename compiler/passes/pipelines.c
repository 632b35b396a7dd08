/* The table of passes.  See pipelines.def. */
#include "pipelines.h"

#include <string.h>

const pass_row pass_rows[] = {
#define PASS(pipeline, name, takes, gives, meaning)                                                                    \
	{#name, PIPELINE_##pipeline, pass_##name, IR_LEVEL_##takes, IR_LEVEL_##gives, meaning},
#include "pipelines.def"
#undef PASS
	{0}};

const pass_row *pass_find(const char *name, size_t n)
{
	for (const pass_row *row = pass_rows; row->name; row++)
		if (strlen(row->name) == n && memcmp(row->name, name, n) == 0) return row;
	return NULL;
}
