/* pipelines.def as a table. */
#ifndef BLK_PIPELINES_H
#define BLK_PIPELINES_H

#include "passes.h"

typedef enum pass_pipeline_name { PIPELINE_tile, PIPELINE_nvptx } pass_pipeline_name;

typedef struct pass_row {
	const char *name;
	pass_pipeline_name pipeline;
	bool (*run)(pass_context *, ir_func *);
	ir_level takes, gives;
	const char *meaning;
} pass_row;

extern const pass_row pass_rows[]; /* in order; ends with a row whose name is null */

/* The first row of a pass, whose name are n bytes; null: there is none. */
const pass_row *pass_find(const char *name, size_t n);

#endif
