/* What the host's expressions (hostexpr.c) and the functions inlined into them (hostinline.c) share. */
#ifndef BLK_SEMA_HOSTEXPR_H
#define BLK_SEMA_HOSTEXPR_H

#include "internal.h"

enum {
	HOST_STACK = 256,             /* values that the host's evaluator holds at once */
	HOST_PLACES = 128,            /* and those that it keeps under a number */
	HOST_TYPICAL_ARGUMENT = 1024, /* what arguments and a device are where nothing is launched */
	HOST_TYPICAL_SMS = 128
};

typedef struct host {
	bool ok, known, is_bool;
	uint32_t depth; /* beyond 1: values that the host keeps at once */
	int64_t i;
	double f;
	const char *text;
} host;

typedef struct known_name { /* a name of a function that is being inlined: what the host computes for it */
	const binding *binding;
	host value;
} known_name;

typedef struct host_context {
	sema *s;
	bool is_float;
	const char *what;      /* "grid", "cost", "requires clause" */
	const char *otherwise; /* than by a parameter, what the host does not know can be said; may be empty */
	uint16_t code;
	bool inlines, is_order;
	const ast *typical;      /* the kernel, where its arguments are taken to be typical ones; else null */
	const ast *key;          /* of an autotune block: its arguments alone may be named; null: all */
	uint32_t places, inside; /* numbers given; functions that are being inlined */
	VEC(known_name) known_names;
} host_context;

/* hostexpr.c */
host host_emit(host_context *, const ast *);
host host_failed(void);                                 /* after an error */
host host_from_sval(host_context *, const ast *, sval); /* of what is known at compile time */
/* A parameter of the kernel, where its names are seen; null: the name is another's. */
const ir_param *host_run_time_parameter(const host_context *, const char *name, uint32_t *number);
bool host_is_typical(const host_context *, const char *name); /* a parameter that is taken to be a typical one */
const known_name *host_known_name(const host_context *, const char *name);

/* hostinline.c */
/* Whether it has a run-time part, or may have: a function may name num_sms. */
bool host_is_run_time(const host_context *, const ast *);
const sema_fn *host_function(const host_context *, const char *callee); /* null: it is no `fn` */
bool host_can_inline(const ast *body);                                  /* of statements that the host can follow */
host host_inline_call(host_context *, const sema_fn *, const ast *call);

#endif
