/* The simulator's parts and what they hand to each other.
 *
 *	PTX text --text.c--> tokens --parse.c, decode*.c--> sim_code --cfg.c--> joins
 *	sim_code + arguments + grid --launch.c--> programs --program.c--> warps --warp.c--> instructions
 *	instructions: lanes_*.c (arithmetic), access.c atomic.c (memory), exchange.c (between lanes), call.c (host)
 *	shadow.c: which bits are defined; memory.c: what may be touched; report.c: what went wrong, in words
 *
 * A warp is simulated 32 lanes at a time: a register is 32 neighbouring values, a predicate one word with a bit a lane,
 * so that an instruction is one loop that the C compiler turns into vector code.  Everything about an instruction that
 * can be known from the text is worked out once, when it is decoded. */
#ifndef BLK_SIM_H
#define BLK_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdatomic.h>

#include "../../compiler/support/scalar.h"
#include "../blk.h"

enum {
	SIM_LANES = 32,
	SIM_UNIT = 64,          /* bytes: registers lie at multiples of it, and are named by the multiple */
	SIM_SHARED_BASE = 1024, /* address of the first byte of shared memory, as on hardware: 0 points nowhere */
	SIM_LOCAL_BASE = 64,
	SIM_MAX_WARPS = 32,
	SIM_BARRIERS = 16,
	SIM_VECTOR = 8,     /* registers of one access */
	SIM_REGISTERS = 16, /* of one instruction */
	SIM_NO_PC = -1
};
#define SIM_ALL UINT32_MAX
/* Generic addresses: memory of the device is where the host has it; the windows are where no host memory is. */
#define SIM_SHARED_WINDOW (UINT64_C(1) << 62)
#define SIM_LOCAL_WINDOW (UINT64_C(1) << 61)

typedef struct sim_instr sim_instr;
typedef struct sim_warp sim_warp;
typedef struct sim_launch sim_launch;

/* One instruction on 32 lanes.  Operands that the operation lacks point to zeros. */
typedef void sim_lanes(const sim_instr *, void *d, const void *a, const void *b, const void *c);
typedef uint32_t sim_compare(const void *a, const void *b);
/* What is no arithmetic.  `mask`: the lanes that take part, never 0.  False: the warp must stop here for now. */
typedef bool sim_step(sim_warp *, const sim_instr *, uint32_t mask);

/* ---- The table of arithmetic: one row a form ---- */
typedef enum sim_shadow { /* how undefined bits of the operands become undefined bits of the result */
	SHADOW_ANY,       /* any one makes the whole result undefined */
	SHADOW_CARRY,     /* towards higher bits */
	SHADOW_BITS,      /* bit by bit */
	SHADOW_AND,       /* bit by bit, but a defined 0 wins */
	SHADOW_OR,        /* a defined 1 wins */
	SHADOW_MOVE,      /* operand a moves bits about: the same operation on its undefined ones */
	SHADOW_MOVE2,     /* operands a and b do */
	SHADOW_PAIR,      /* two numbers side by side, each from its own operands */
} sim_shadow;

typedef struct sim_op {
	const char *name; /* "add.s32" */
	sim_lanes *lanes;
	uint8_t d, a, b, c; /* bytes of the registers; 0: no such operand */
	uint8_t shadow;
} sim_op;
typedef struct sim_compare_op {
	const char *name; /* "setp.lt.s32" */
	sim_compare *compare;
	uint8_t bytes;
} sim_compare_op;
extern const sim_compare_op sim_compare_ops[];
extern const size_t sim_ncompare_ops;

/* ---- Decoded code ---- */
typedef enum sim_kind { SIM_ALU, SIM_COMPARE, SIM_SELECT, SIM_BRANCH, SIM_STEP } sim_kind;
typedef enum sim_space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_CONST, SPACE_PARAM } sim_space;
typedef enum sim_rounding { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_AWAY } sim_rounding;

struct sim_instr {
	uint8_t kind;
	bool guard_negated, joins; /* joins: a branch's paths meet in front of it */
	uint8_t nregs;             /* of an access */
	uint8_t from, to;          /* scalars: of a conversion; `to` of an access or atomic */
	uint8_t bytes;             /* of one element of an access */
	uint8_t wide[4];           /* bytes of the registers d, a, b, c where the text may choose them */
	uint8_t space, rounding, mode, shadow;
	bool saturates, constant, exchanges, is_volatile, acquires, releases;
	uint8_t class;       /* blk_sim_class */
	uint16_t guard;      /* predicate; 0: none */
	uint32_t d, a, b, c; /* units of registers, or numbers of predicates */
	uint32_t e;          /* a second destination: a predicate */
	uint32_t regs[SIM_REGISTERS];
	int64_t offset;        /* of an address */
	int64_t source_offset; /* of a copy's second one */
	int32_t target, join;  /* of a branch: where to; where its paths meet or SIM_NO_PC */
	const sim_op *op;
	union {
		sim_lanes *lanes;
		sim_compare *compare;
		sim_step *step;
	};
	uint32_t line; /* of the PTX text */
	uint32_t file, source_line;
};

typedef struct sim_constant { /* a unit that holds one value in all lanes */
	uint32_t unit;
	uint8_t bytes;
	uint64_t bits;
} sim_constant;

/* Units whose value the launch or the program decides. */
typedef enum sim_special {
	SPECIAL_TID_X,
	SPECIAL_TID_Y,
	SPECIAL_TID_Z,
	SPECIAL_NTID_X,
	SPECIAL_NTID_Y,
	SPECIAL_NTID_Z,
	SPECIAL_CTAID_X,
	SPECIAL_CTAID_Y,
	SPECIAL_CTAID_Z,
	SPECIAL_NCTAID_X,
	SPECIAL_NCTAID_Y,
	SPECIAL_NCTAID_Z,
	SPECIAL_LANEID,
	SPECIAL_WARPID,
	SPECIAL_COUNT
} sim_special;

typedef struct sim_variable { /* a .global, .const, .shared or .local one */
	char *name;
	uint8_t space;
	uint64_t bytes, address; /* SPACE_GLOBAL: of its memory, malloc'ed */
} sim_variable;

typedef struct sim_parameter {
	char *name;
	uint8_t bytes;
	uint32_t unit;
} sim_parameter;

typedef struct sim_code {
	sim_instr *code;
	size_t n, room;
	uint32_t units;      /* of a warp's register file */
	uint32_t predicates; /* number 0 is always true */
	sim_constant *constants;
	size_t nconstants, constants_room;
	uint32_t special[SPECIAL_COUNT]; /* units; 0: not used */
	sim_parameter *parameters;
	size_t nparameters, parameters_room;
	sim_variable *variables;
	size_t nvariables, variables_room;
	char **files; /* by the number of a .file line; may hold nulls */
	size_t nfiles;
	uint64_t shared_bytes; /* static ones; dynamic ones lie behind */
	uint64_t shared_align, local_bytes;
	uint32_t threads[3];
} sim_code;

/* parse.c: the entry `symbol` of a PTX text.  False: `error` says what and where. */
bool sim_code_parse(const char *text, const char *symbol, sim_code **, char *error, size_t room);
void sim_code_free(sim_code *);     /* null is fine */
void sim_code_classify(sim_code *); /* counters.c: fills in `class` */
/* cfg.c: fills in `join` and `joins`.  False: out of memory. */
bool sim_code_joins(sim_code *);

/* ---- Memory ---- */
typedef struct sim_page sim_page;
typedef struct sim_range { /* device memory that a kernel may touch: a buffer or a variable */
	uint64_t base, bytes;
	uint8_t *shadow; /* an undefined bit is 1; null: all defined and read-only */
	bool defined;    /* no bit is undefined */
	/* of a launch: */
	int32_t parameter;          /* the first that points into it; -1: none */
	bool read_only;             /* it is passed as *const only */
	_Atomic(sim_page *) *pages; /* race.c: who touched what; null: not watched */
} sim_range;

/* ---- Running ---- */
typedef enum sim_problem { PROBLEM_NONE, PROBLEM_MEMORY, PROBLEM_REPORT, PROBLEM_ASSERT } sim_problem;
typedef struct sim_level { /* lanes that wait for others of their warp */
	uint32_t mask;
	int32_t pc, join;
} sim_level;

typedef struct sim_mark {                            /* an access that others must be in order with */
	uint32_t program : 24, bytes : 4, flags : 4; /* number + 1, 0: none; which of the four */
	uint32_t thread : 10, pc : 22;
	uint32_t clock, time; /* of the warp; of the launch's acquires and releases */
} sim_mark;
typedef struct sim_cell { /* of 4 bytes: their last writer and reader */
	sim_mark write, read;
} sim_cell;

typedef struct sim_pending sim_pending; /* async.c: one that is under way */

typedef enum sim_state { WARP_READY, WARP_AT_BARRIER, WARP_ENDED } sim_state;

typedef struct sim_program sim_program;
struct sim_warp {
	sim_program *program;
	uint32_t index;
	int32_t pc, join; /* join: where this level's lanes meet the waiting ones */
	uint32_t active, alive;
	uint8_t state, barrier;
	sim_level *stack;
	uint32_t depth, room;
	uint8_t *file, *shadow; /* registers, and their undefined bits (valid where `bad`, but not where `blank`) */
	uint32_t *bad, *blank;  /* a unit's lanes with undefined bits; those that were never written */
	uint32_t *predicate, *predicate_bad;
	uint8_t *local, *local_shadow; /* 32 threads one after another */
	uint64_t steps;
	sim_pending *copies;
	uint32_t ncopies, copies_room, group; /* group: the number of the one that is open */
	uint32_t clock, known[SIM_MAX_WARPS]; /* race.c: its own, and what it knows of the others' */
	const sim_range *near;                /* the last one that was found */
	uint8_t scratch[8 * SIM_LANES];
};

typedef struct sim_barrier {
	uint32_t arrived, expected; /* warps */
	uint32_t warps;             /* those that have arrived, one bit each */
} sim_barrier;

struct sim_program { /* what one thread of the host simulates; kept from program to program */
	sim_launch *launch;
	const sim_code *code;
	uint32_t id[3];
	uint64_t number;
	uint32_t nwarps;
	sim_warp *warps;
	uint32_t threads;
	uint32_t *fresh; /* what `bad` is of before a program begins */
	uint8_t *shared, *shared_shadow;
	sim_cell *cells;   /* of shared memory */
	uint16_t *pending; /* copies under way into each 4 bytes of it */
	uint64_t npending;
	uint32_t all_met; /* the clock at which all warps met last */
	bool some_met;    /* a barrier was for some warps only */
	blk_sim_counters counters;
	uint64_t random;
	uint64_t shared_bytes;
	sim_barrier barriers[SIM_BARRIERS];
	uint64_t steps;
};

/* One launch: what every program of it reads, and the first problem of any. */
struct sim_launch {
	const sim_code *code;
	const char *kernel;
	const char *const *names; /* of the kernel's parameters, in the source's words */
	const uint64_t *arguments;
	uint32_t nparameters, grid[3];
	sim_range *ranges; /* by address */
	size_t nranges;
	uint64_t shared_bytes, step_limit;
	bool counts;                                 /* fills in `counters` */
	bool json;                                   /* how a problem is written */
	uint64_t seed;                               /* of the order of warps; 0: as they are numbered */
	_Atomic uint32_t time, *released, *acquired; /* race.c: of each program, when last; null: too many */
	_Atomic bool stopped;
	pthread_mutex_t lock; /* of what follows */
	sim_problem problem;
	char *text; /* malloc'ed; null with a problem: memory ran out */
	blk_sim_counters counters;
};

/* report.c: the first problem of a launch stops it.  All return false. */
bool sim_report(sim_warp *, const sim_instr *, unsigned lane, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void sim_place(const sim_code *, const sim_instr *, char *out, size_t room); /* "softmax.blk:7" */
bool sim_assert_failed(sim_launch *, const char *text);
bool sim_out_of_memory(sim_launch *);

/* memory.c */
const sim_range *sim_range_find(const sim_launch *, uint64_t address); /* the one that holds it, or null */
/* Where a lane's `bytes` at an address are on the host, and their undefined bits.  Null: reported. */
uint8_t *sim_memory(sim_warp *, const sim_instr *, unsigned lane, sim_space, uint64_t address, unsigned bytes,
	bool writes, uint8_t **shadow);
bool sim_is_global(const sim_instr *, uint64_t address);

/* race.c */
bool sim_races_begin(sim_launch *); /* false: out of memory; either way sim_races_end() frees */
void sim_races_end(sim_launch *);
void sim_order_warp(sim_warp *);
void sim_order_barrier(sim_program *, uint32_t warps);
void sim_order_programs(sim_warp *, bool acquires, bool releases);
/* An access of each lane's `bytes`; false: a race, which has been reported. */
bool sim_races(sim_warp *, const sim_instr *, uint32_t mask, uint8_t *const at[SIM_LANES], unsigned bytes, bool reads,
	bool writes, bool atomic);

/* counters.c */
void sim_count_access(sim_warp *, const sim_instr *, uint32_t mask, const uint64_t address[SIM_LANES], bool writes);
void sim_count_global(sim_warp *, uint32_t lanes, const uint64_t address[SIM_LANES], unsigned bytes, bool writes);
void sim_count_shared(sim_warp *, uint32_t lanes, const uint64_t address[SIM_LANES], unsigned bytes);
void sim_count_add(blk_sim_counters *to, const blk_sim_counters *);

/* program.c: the state that one thread of the host keeps; `sim_program_run` simulates one program. */
sim_program *sim_program_new(sim_launch *, uint32_t threads); /* null: out of memory */
void sim_program_free(sim_program *);
void sim_program_run(sim_program *, const uint32_t id[3]);

/* warp.c: runs until the warp waits, ends, the launch stops or `budget` instructions are done. */
void sim_warp_run(sim_warp *, uint64_t budget);
void sim_warp_exit(sim_warp *, uint32_t lanes);
void sim_write_lanes(uint8_t *to, const uint8_t *from, uint8_t bytes, uint32_t mask);
static inline void sim_write_predicate(sim_warp *w, uint32_t d, uint32_t mask, uint32_t value, uint32_t bad)
{
	w->predicate[d] = (w->predicate[d] & ~mask) | (value & mask);
	w->predicate_bad[d] = (w->predicate_bad[d] & ~mask) | (bad & mask);
}

/* shadow.c */
/* The undefined bits of a lane of a register; writing 0 makes the lane defined. */
uint64_t sim_shadow_read(const sim_warp *, uint32_t unit, uint8_t bytes, unsigned lane);
void sim_shadow_write(sim_warp *, uint32_t unit, uint8_t bytes, unsigned lane, uint64_t undefined);
/* After an arithmetic instruction some of whose operands are not all defined. */
void sim_shadow_result(sim_warp *, const sim_instr *, uint32_t mask, const uint8_t *const operands[3]);
static inline void sim_set_defined(sim_warp *w, uint32_t unit, uint32_t mask)
{
	w->bad[unit] &= ~mask;
}
static inline uint64_t sim_register_read(const uint8_t *at, uint8_t bytes, unsigned lane)
{
	return bytes == 4   ? ((const uint32_t *)at)[lane]
	       : bytes == 8 ? ((const uint64_t *)at)[lane]
			    : ((const uint16_t *)at)[lane];
}
static inline void sim_register_write(uint8_t *at, uint8_t bytes, unsigned lane, uint64_t bits)
{
	if (bytes == 4)
		((uint32_t *)at)[lane] = (uint32_t)bits;
	else if (bytes == 8)
		((uint64_t *)at)[lane] = bits;
	else
		((uint16_t *)at)[lane] = (uint16_t)bits;
}
static inline uint8_t *sim_at(const sim_warp *w, uint32_t unit)
{
	return w->file + (size_t)unit * SIM_UNIT;
}
/* Steps, by what they are about. */
sim_step sim_step_load, sim_step_store, sim_step_atomic;                      /* access.c atomic.c */
sim_step sim_step_shuffle, sim_step_vote, sim_step_redux, sim_step_warp_sync; /* exchange.c */
sim_step sim_step_barrier, sim_step_exit, sim_step_trap, sim_step_fence;      /* program.c */
sim_step sim_step_logic, sim_step_pack, sim_step_unpack;                      /* warp.c */
sim_step sim_step_copy, sim_step_copy_commit, sim_step_copy_wait;             /* async.c */
sim_step sim_step_multiply, sim_step_load_matrix, sim_step_store_matrix;      /* matrix.c */
sim_step sim_step_print, sim_step_assert;                                     /* call.c */
sim_lanes sim_lanes_convert, sim_lanes_convert_pair;                          /* lanes_convert.c */

#endif
