/* The simulator's parts and what they hand to each other.
 *
 *	PTX text --text.c--> tokens --parse.c, decode*.c--> sim_code --cfg.c--> joins
 *	sim_code + arguments + grid --launch.c--> programs --program.c--> warps --warp.c--> instructions
 *	launch.c: a cluster of programs at a time --cluster.c--> turns of its programs' warps
 *	instructions: lanes_*.c (arithmetic), access.c atomic.c (memory), exchange.c (between lanes), call.c (host),
 *	async.c mbarrier.c bulk.c warpgroup.c (what goes on beside the threads)
 *	shadow.c: which bits are defined; memory.c: what may be touched; report.c: what went wrong, in words
 *
 * A warp is simulated 32 lanes at a time: a register is 32 neighbouring values, a predicate one word with a bit a lane,
 * so that an instruction is one loop that the C compiler turns into vector code.  Everything about an instruction that
 * can be known from the text is worked out once, when it is decoded. */
#ifndef BLK_SIM_H
#define BLK_SIM_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdatomic.h>

#include "../../compiler/support/scalar.h"
#include "../blk.h"
#include "device/tensor_map.h"

enum {
	SIM_LANES = 32,
	SIM_NAME = 128,         /* room for what a report calls a buffer */
	SIM_UNIT = 64,          /* bytes: registers lie at multiples of it, and are named by the multiple */
	SIM_SHARED_BASE = 1024, /* address of the first byte of shared memory, as on hardware: 0 points nowhere */
	SIM_LOCAL_BASE = 64,
	SIM_MAX_WARPS = 32,
	SIM_MAX_CODE = 1 << 20, /* instructions: sim_mark's pc */
	SIM_BARRIERS = 16,
	SIM_CLUSTER = 16,    /* programs of one */
	SIM_RANK_SHIFT = 24, /* a shared address holds the program's rank in its cluster from this bit on */
	/* Whose clocks there are: the warps', the warpgroups' matrix engines', the copies' that each warp began from
	 * shared memory, the mbarriers'. */
	SIM_CLOCK_GROUP = SIM_MAX_WARPS,
	SIM_CLOCK_COPIES = SIM_CLOCK_GROUP + SIM_MAX_WARPS / 4,
	SIM_CLOCK_MBARRIER = SIM_CLOCK_COPIES + SIM_MAX_WARPS,
	SIM_CLOCKS = 128,
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
typedef enum sim_kind { SIM_ALU, SIM_COMPARE, SIM_SELECT, SIM_BRANCH, SIM_SWITCH, SIM_STEP } sim_kind;
typedef enum sim_space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_CONST, SPACE_PARAM } sim_space;
typedef enum sim_scope { SCOPE_GPU, SCOPE_CLUSTER, SCOPE_CTA } sim_scope;
typedef enum sim_proxy { PROXY_SHARED, PROXY_GLOBAL, PROXY_COUNT } sim_proxy; /* whose fences there are */
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
	bool in_cluster;     /* .shared::cluster */
	uint8_t scope;       /* sim_scope of an atomic or fence */
	uint8_t class;       /* blk_sim_class */
	uint8_t part;        /* of an atomic: bytes that are its own, at the address in `extra`; 0: all */
	uint16_t guard;      /* predicate; 0: none */
	uint32_t d, a, b, c; /* units of registers, or numbers of predicates */
	uint32_t e;          /* a second destination: a predicate */
	uint32_t regs[SIM_REGISTERS];
	int64_t offset;        /* of an address */
	int64_t source_offset; /* of a copy's second one */
	int64_t bar_offset;    /* of the mbarrier that a copy tells */
	uint32_t extra;        /* number of its sim_product, or unit of the mbarrier's address or of a part's */
	int32_t target, join;  /* of a branch: where to; where its paths meet or SIM_NO_PC */
	uint32_t ntargets;     /* of a switch, whose `target` is the first of them in the code's; a: the index */
	const sim_op *op;
	union {
		sim_lanes *lanes;
		sim_compare *compare;
		sim_step *step;
	};
	uint32_t line; /* of the PTX text */
	uint32_t file, source_line;
};

/* wgmma.mma_async: D = scale A B {+ D}. */
typedef struct sim_product {
	uint32_t *units; /* of D */
	uint16_t nunits, n, k;
	uint8_t d, a, b;                 /* scalars */
	bool tf32, a_in_registers;       /* then instr->regs[0..3], else instr->a is its descriptor; instr->b is b's */
	bool negates_a, negates_b;       /* imm-scale */
	bool transposes_a, transposes_b; /* the operand lies with its rows side by side */
	bool saturates, overwrites;      /* scale-d is 0; else it is the predicate instr->c, negated by exchanges */
} sim_product;

typedef struct sim_constant { /* a unit that holds one value in all lanes */
	bool is_shared;       /* an address in shared memory: the program's rank is added */
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
	SPECIAL_LANEMASK_EQ,
	SPECIAL_LANEMASK_LT,
	SPECIAL_LANEMASK_LE,
	SPECIAL_LANEMASK_GT,
	SPECIAL_LANEMASK_GE,
	SPECIAL_CLUSTERID_X,
	SPECIAL_CLUSTERID_Y,
	SPECIAL_CLUSTERID_Z,
	SPECIAL_NCLUSTERID_X,
	SPECIAL_NCLUSTERID_Y,
	SPECIAL_NCLUSTERID_Z,
	SPECIAL_CLUSTER_CTAID_X,
	SPECIAL_CLUSTER_CTAID_Y,
	SPECIAL_CLUSTER_CTAID_Z,
	SPECIAL_CLUSTER_NCTAID_X,
	SPECIAL_CLUSTER_NCTAID_Y,
	SPECIAL_CLUSTER_NCTAID_Z,
	SPECIAL_CLUSTER_CTARANK,
	SPECIAL_CLUSTER_NCTARANK,
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
	bool is_array;
	uint32_t unit, address_unit; /* its value, or an array's address; a value's address, 0: nobody wants it */
} sim_parameter;

typedef struct sim_code {
	sim_instr *code;
	size_t n, room;
	int32_t *targets; /* of switches, list by list */
	size_t ntargets, targets_room;
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
	uint32_t threads[3], cluster[3]; /* cluster: programs of one; 0: 1 */
	bool waits_for_grid;             /* it may begin while the kernel before it runs: griddepcontrol.wait */
	sim_product *products;
	size_t nproducts, products_room;
	uint8_t *matrix_units; /* of each unit: SIM_IS_SUM, SIM_IS_FACTOR of some product; null: no products */
} sim_code;
enum { SIM_IS_SUM = 1, SIM_IS_FACTOR = 2 };

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
	uint64_t word;              /* 0; or it is not the parameter that does so but its buffer's word - 1 */
	bool read_only;             /* it is passed as *const only */
	_Atomic(sim_page *) *pages; /* race.c: who touched what; null: not watched */
} sim_range;

/* ---- Running ---- */
typedef struct sim_hits { /* what an instruction did: blk_sim_line's numbers */
	uint64_t instructions, lanes, requests, sectors, bytes, shared_requests, shared_conflicts;
} sim_hits;
typedef enum sim_problem { PROBLEM_NONE, PROBLEM_MEMORY, PROBLEM_REPORT, PROBLEM_ASSERT, PROBLEM_BUDGET } sim_problem;
typedef struct sim_level { /* lanes that wait for others of their warp */
	uint32_t mask;
	int32_t pc, join;
} sim_level;

typedef struct sim_mark {                            /* an access that others must be in order with */
	uint32_t program : 24, bytes : 4, flags : 4; /* number + 1, 0: none; which of the four */
	uint32_t thread : 12, pc : 20;               /* thread / 32: whose clock */
	uint32_t scope : 2, clock : 30;              /* sim_scope of an atomic; of the warp */
	uint32_t time; /* of the launch's acquires and releases; in shared memory, of the cluster's */
} sim_mark;
typedef struct sim_cell { /* of 4 bytes: their last writer and reader */
	sim_mark write, read;
} sim_cell;

/* cause.c: why a value is undefined: the instruction that found its operand wrong, and the operand. */
typedef struct sim_cause {
	const sim_instr *in; /* null: not known */
	int64_t value;
} sim_cause;
enum { SIM_CHECK_DIVISOR, SIM_CHECK_GATHER };

typedef struct sim_pending sim_pending; /* async.c: one that is under way */

/* What is known of others (race.c). */
typedef struct sim_knowledge {
	uint32_t clock[SIM_CLOCKS];                          /* what each of them did before that */
	uint32_t lanes[SIM_MAX_WARPS], until[SIM_MAX_WARPS]; /* and of a warp's lanes what these did before that */
	bool some;                                           /* some such lanes are known of */
	uint32_t cluster, launch; /* when others' programs were listened to last: by `time` of both */
} sim_knowledge;

/* What a program has told the others of its cluster, and when: its last releases, each with what came before. */
enum { SIM_RELEASES = 8 };
typedef struct sim_releases {
	sim_knowledge at[SIM_RELEASES];
	uint32_t time[SIM_RELEASES], n;
} sim_releases;

/* What a program has told all others of the launch, who may be on other threads of the host. */
typedef struct sim_released {
	_Atomic uint32_t clock[SIM_CLOCK_MBARRIER], lanes[SIM_MAX_WARPS], until[SIM_MAX_WARPS];
} sim_released;

typedef enum sim_state { WARP_READY, WARP_AT_BARRIER, WARP_AT_GROUP, WARP_AT_CLUSTER, WARP_ENDED } sim_state;

typedef struct sim_flight { /* a product that the warp has not waited for */
	const sim_instr *in;
	uint32_t group, ticket;
} sim_flight;
typedef struct sim_reader { /* its reads of shared memory, once for the warpgroup */
	const sim_instr *in;
	uint64_t a, b;           /* descriptors */
	uint32_t ticket, waited; /* waited: which of the four warps have */
} sim_reader;
enum { SIM_GROUP_STEPS = 64 };
typedef struct sim_group {   /* a warpgroup */
	const sim_instr *at; /* where those of its warps that have arrived wait for the others */
	uint32_t arrived, ticket;
	const sim_instr
		*steps[SIM_GROUP_STEPS]; /* fences, commits and waits since its last product, by the first warp */
	uint32_t nsteps, taken[4];       /* that warp's, and how many each has taken */
	sim_reader *readers;
	uint32_t nreaders, readers_room;
} sim_group;

typedef enum sim_mbarrier_verb {
	SIM_MBARRIER_INIT,
	SIM_MBARRIER_INVAL,
	SIM_MBARRIER_ARRIVE,
	SIM_MBARRIER_DROP,
	SIM_MBARRIER_EXPECT,
	SIM_MBARRIER_COMPLETE
} sim_mbarrier_verb; /* ORDER decode_mbarrier.c */

/* An mbarrier: a phase ends when `pending` arrivals and `bytes` that were announced have come. */
typedef struct sim_mbarrier {
	bool alive, published; /* published: the asynchronous engines have been told of it */
	uint32_t offset;       /* in shared memory */
	uint32_t expected, pending, phase;
	int64_t bytes;
	uint32_t clock;          /* phases over, of all barriers that were here */
	uint32_t maker, made;    /* who made it: the thread, and its warp's clock then */
	uint64_t passed, fenced; /* by when the cluster's barrier makes that and its fence known: passings of it */
	bool shared;             /* other programs of the cluster know of it */
	const sim_instr *made_at, *last; /* last: who arrived or announced bytes */
	sim_knowledge arriving, told;    /* what those who arrive know; of all phases that are over */
	uint32_t heard[SIM_CLUSTER];     /* when each program of the cluster arrived last */
	uint32_t came[SIM_CLUSTER];      /* and in which phase, from 1 on; 0: its program knows that it has come */
	uint32_t seen;                   /* phases that its program knows to be over */
} sim_mbarrier;

typedef struct sim_program sim_program;
typedef struct sim_cluster sim_cluster;
enum { SIM_LOOKED = 16 };
struct sim_warp {
	sim_program *program;
	uint32_t index;
	int32_t pc, join; /* join: where this level's lanes meet the waiting ones */
	uint32_t active, alive;
	uint32_t early; /* lanes that have not waited yet for the kernel before this one */
	uint8_t state, barrier;
	sim_level *stack;
	uint32_t depth, room;
	uint8_t *file, *shadow; /* registers, and their undefined bits (valid where `bad`, but not where `blank`) */
	uint32_t *bad, *blank;  /* a unit's lanes with undefined bits; those that were never written */
	uint32_t *predicate, *predicate_bad;
	sim_cause *causes; /* null: none is known; else [0], of what the instruction at hand has read, and of each lane
			      of each unit, and behind these of each predicate */
	uint8_t *local, *local_shadow; /* 32 threads one after another */
	uint64_t steps;
	sim_pending *copies;
	uint32_t ncopies, copies_room, groups[SIM_LANES]; /* groups: the number of each lane's that is open */
	uint32_t clock;                                   /* race.c: its own */
	sim_knowledge known, learned; /* what all lanes know, what only `learners` do, until all meet */
	uint32_t learners;
	uint32_t fenced[PROXY_COUNT][SIM_LANES]; /* its clock at each lane's last fence of the proxies */
	sim_knowledge proxied[PROXY_COUNT];      /* what it knew at its own last fence */
	uint64_t seen;                           /* the cluster's events when it last waited in vain */
	uint32_t idle;                           /* how often it has since */
	uint64_t asked;                          /* its steps then */
	const sim_instr *waits;                  /* where */
	uint32_t cluster_lanes;                  /* that have arrived at the cluster's barrier */
	uint64_t cluster_passed[SIM_LANES];      /* how often it had been passed when each arrived last */
	/* warpgroup.c: */
	bool watch; /* it has fenced once: which registers are touched matters */
	uint32_t fences;
	uint32_t *touched; /* of each unit of products: how many fences there were when a thread touched it last */
	sim_flight *flights;
	uint32_t nflights, flights_room, product_group;
	uint16_t *flying[2];             /* of each unit: products under way that sum there, that read it */
	uint32_t bulk_groups[SIM_LANES]; /* bulk.c: each lane's that is open */
	uint32_t bulk_clock, bulk_lanes; /* copies from shared memory that it has begun; who did */
	uint8_t failed_rank;             /* call.c: of the element that a failed assert's line has named, */
	uint32_t failed[4];              /* and its index; rank 0: none */
	uint64_t looked[SIM_LOOKED];     /* cluster.c: what instructions found, by place */
	const sim_range *near;           /* the last one that was found */
	uint8_t scratch[8 * SIM_LANES];
};

typedef struct sim_barrier {
	uint32_t arrived, expected; /* warps */
	uint32_t warps;             /* those that wait there, one bit each */
	bool tells;                 /* some have arrived and gone on: program's `told` */
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
	sim_cell *cells;    /* of shared memory */
	sim_mark *parts[2]; /* null, or of each byte who read it, who wrote it, where a cell's bytes are not one's */
	sim_cause *shared_causes; /* null, or of each byte of shared memory */
	uint16_t *pending;        /* copies under way into each 4 bytes of it */
	uint64_t npending;
	uint32_t all_met; /* the clock at which all warps met last */
	bool some_met;    /* a barrier was for some warps only */
	sim_cluster *cluster;
	uint32_t rank;
	uint32_t nclocks;
	sim_mbarrier *mbarriers;
	uint32_t nmbarriers, mbarriers_room;
	uint16_t *reading; /* asynchronous reads under way of each 16 bytes of shared memory */
	uint64_t nreading;
	sim_group groups[SIM_MAX_WARPS / 4];
	blk_sim_counters counters;
	sim_hits *hits; /* of each instruction; null: they are not counted */
	uint64_t random;
	uint64_t shared_bytes;
	sim_barrier barriers[SIM_BARRIERS];
	sim_knowledge told[SIM_BARRIERS]; /* by those who arrive there and do not wait */
	uint64_t steps;
};

typedef struct sim_bulk sim_bulk; /* bulk.c: a copy that is under way */
struct sim_cluster {              /* programs that one thread of the host simulates together */
	sim_launch *launch;
	sim_program *programs[SIM_CLUSTER];
	uint32_t n;
	uint32_t arrived[SIM_CLUSTER];                          /* warps at the cluster's barrier */
	uint64_t passed;                                        /* times that all were */
	uint64_t events;                                        /* what may let one who waits go on */
	uint32_t time;                                          /* race.c: of acquires and releases */
	sim_releases released[SIM_CLUSTER];                     /* what each program has told the others */
	sim_knowledge arriving[SIM_CLUSTER], told[SIM_CLUSTER]; /* of the cluster's barrier, as an mbarrier's */
	uint64_t steps, limit;                                  /* taken; at which it has hung, for each program */
	uint64_t resumed;                                       /* its steps when its turn began */
	bool news, asks;          /* a look in this turn was not in vain; all of the last turn's were */
	uint32_t looks, patience; /* in vain in this turn; how many it has */
	uint32_t brought[SIM_CLUSTER][SIM_CLUSTER];          /* by time: a program's copies into another */
	uint32_t heard[SIM_CLUSTER][SIM_CLUSTER];            /* by time: what a program has heard of another */
	uint32_t said[SIM_CLUSTER], meets[SIM_CLUSTER];      /* at the cluster's barrier; when it was passed */
	bool relaxed[SIM_CLUSTER], met_relaxed[SIM_CLUSTER]; /* by an arrival that is no release, one of them */
	const sim_instr *bringer[SIM_CLUSTER];               /* each program's last copy into another */
	uint32_t slow;                                       /* the rank of a program that has few turns */
	sim_bulk *copies;
	uint32_t ncopies, copies_room;
};

/* One launch: what every program of it reads, and the first problem of any. */
struct sim_launch {
	const sim_code *code;
	const char *kernel;
	const char *const *names; /* of the kernel's parameters, in the source's words */
	const uint64_t *arguments;
	uint32_t nparameters, grid[3];
	uint32_t cluster;       /* programs along x, where the code does not say; 0: 1 */
	const tensor_map *maps; /* parameters behind the arguments: requests (tensor_map.h) */
	uint32_t nmaps;
	sim_range *ranges; /* by address */
	size_t nranges;
	uint64_t shared_bytes, step_limit;
	uint64_t budget;                   /* of instructions, all programs together; 0: none */
	_Atomic uint64_t spent;            /* of it */
	_Atomic uint64_t next;             /* cluster to be started */
	bool counts;                       /* fills in `counters` */
	bool json;                         /* how a problem is written */
	uint64_t seed;                     /* of the order of warps; 0: as they are numbered */
	_Atomic uint32_t time;             /* race.c: of acquires, releases and fences of the proxies */
	_Atomic(sim_released *) *released; /* what each program has told others; null: too many programs */
	_Atomic uint32_t *fenced;          /* when a thread of it fenced the proxies of global memory last */
	_Atomic bool stopped;
	pthread_mutex_t lock; /* of what follows */
	sim_problem problem;
	char *text; /* malloc'ed; null with a problem: memory ran out */
	blk_sim_counters counters;
	sim_hits *hits; /* of each instruction, where they are counted */
};

/* The access that clashes with the one that is reported. */
typedef struct sim_other {
	const sim_instr *in;
	bool has_program;
	uint32_t program[3], thread;
	const char *engine; /* null, or what did it instead of the thread: "wgmma", "bulk copy" */
	const char *kind;   /* "read" or "write" */
} sim_other;

/* The memory that a report is about, as far as it is known: its words are made of the same. */
typedef struct sim_spot {
	sim_space space;          /* not SPACE_GENERIC */
	const sim_range *range;   /* null: no buffer, or not global memory */
	const sim_program *owner; /* of shared memory; null: not known */
	bool is_placed;           /* `offset` is known: from the start of the buffer, or of the space's memory */
	int64_t offset;
	uint64_t bytes;   /* from there on; 0: not known */
	const char *kind; /* "read", "write" or null */
	const sim_other *other;
	const sim_cause *cause; /* of a value that is undefined; null: not known */
} sim_spot;

/* report.c: the first problem of a launch stops it.  All return false. */
bool sim_report(sim_warp *, const sim_instr *, unsigned lane, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
bool sim_report_at(sim_warp *, const sim_instr *, unsigned lane, const sim_spot *, const char *hint, const char *fmt,
	...) __attribute__((format(printf, 6, 7)));
/* Something depends on the undefined value that was read last; says why it is, where that is known.  `spot`: or null.
 */
bool sim_report_undefined(
	sim_warp *, const sim_instr *, unsigned lane, const sim_spot *, const char *hint, const char *what);
void sim_place(const sim_code *, const sim_instr *, char *out, size_t room); /* "softmax.blk:7" */
bool sim_assert_failed(sim_launch *, const char *text);
bool sim_out_of_budget(sim_launch *);
bool sim_out_of_memory(sim_launch *);

/* memory.c */
const sim_range *sim_range_find(const sim_launch *, uint64_t address); /* the one that holds it, or null */
const sim_range *sim_range_in(const sim_range *, size_t n, uint64_t address);
/* For reports.  In words, returns out; as "x", or "x[1]": the buffer whose address that one holds there, null: no
 * argument's. */
const char *sim_range_name(const sim_launch *, const sim_range *, char out[SIM_NAME]);
const char *sim_range_argument(const sim_launch *, const sim_range *, char out[SIM_NAME]);
sim_spot sim_spot_in(
	const sim_range *, sim_space, uint64_t address, uint64_t bytes, const char *kind); /* null: in no buffer */
sim_spot sim_spot_at(
	const sim_warp *, const sim_instr *, sim_space, uint64_t address, uint64_t bytes, const char *kind);
static inline sim_spot sim_spot_shared(const sim_program *owner, uint64_t offset, uint64_t bytes, const char *kind)
{
	return (sim_spot){.space = SPACE_SHARED,
		.owner = owner,
		.is_placed = true,
		.offset = (int64_t)offset,
		.bytes = bytes,
		.kind = kind};
}
static inline const char *sim_kind_name(bool writes)
{
	return writes ? "write" : "read";
}
/* Where a lane's `bytes` at an address are on the host, and their undefined bits.  Null: reported. */
uint8_t *sim_memory(sim_warp *, const sim_instr *, unsigned lane, sim_space, uint64_t address, unsigned bytes,
	bool writes, uint8_t **shadow);
/* Whether a lane has waited for the kernel before this one, where the code may start before that has ended, or the
 * range is constant.  False: reported. */
bool sim_may_touch(
	sim_warp *, const sim_instr *, unsigned lane, const sim_range *, uint64_t address, unsigned bytes, bool writes);
bool sim_is_global(const sim_instr *, uint64_t address);
/* The program of the cluster that an address in shared memory belongs to; the address then is without its rank. Null:
 * reported. */
sim_program *sim_shared_owner(sim_warp *, const sim_instr *, unsigned lane, uint64_t *address);

/* race.c */
bool sim_races_begin(sim_launch *); /* false: out of memory; either way sim_races_end() frees */
void sim_races_end(sim_launch *);
void sim_order_warp(sim_warp *);
void sim_order_barrier(sim_program *, uint32_t warps, const sim_knowledge *told); /* told: null, or by others */
void sim_order_programs(sim_warp *, uint32_t lanes, sim_scope, bool acquires, bool releases);
void sim_order_proxies(sim_warp *, uint32_t lanes, sim_proxy);
/* What lanes did and knew; what they are told. */
void sim_order_release(sim_warp *, uint32_t lanes, sim_knowledge *told);
void sim_order_acquire(sim_warp *, uint32_t lanes, const sim_knowledge *told);
/* What an engine did before `clock` is known to these lanes, who have waited for it. */
void sim_order_engine(sim_warp *, uint32_t lanes, uint32_t engine, uint32_t clock);
/* What is told to this barrier's next phase becomes what it tells. */
void sim_order_phase(const sim_program *, sim_knowledge *told, const sim_knowledge *arriving);
/* One of these lanes knows what a thread (or engine) did at a clock. */
bool sim_knows(const sim_warp *, uint32_t lanes, uint32_t thread, uint32_t clock);
/* An access of each lane's `bytes`; false: a race, which has been reported. */
bool sim_races(sim_warp *, const sim_instr *, uint32_t mask, uint8_t *const at[SIM_LANES], unsigned bytes, bool writes,
	bool atomic);
/* The same by an engine (or warp) of SIM_CLOCKS, at its clock. */
bool sim_races_of(sim_warp *, const sim_instr *, uint32_t mask, uint8_t *const at[SIM_LANES], unsigned bytes,
	bool writes, bool atomic, uint32_t engine, uint32_t clock);

/* An asynchronous write to shared memory of a program (the warp's, or of its cluster) whose clock is `engine`'s. */
bool sim_races_async(sim_warp *, const sim_instr *, unsigned lane, sim_program *, uint64_t offset, uint64_t bytes,
	uint32_t engine, uint32_t clock);
/* The reads of a warpgroup's matrix engine: n pieces of 16 bytes. */
bool sim_races_product(sim_warp *leader, const sim_instr *, const uint32_t *offsets, uint32_t n, uint32_t clock);
/* False: what an engine reads or writes there was written by a thread, with no fence between the proxies; reported. */
bool sim_proxied(sim_warp *, const sim_instr *, unsigned lane, uint64_t offset, uint64_t bytes, bool writes);
bool sim_proxied_global(sim_warp *, const sim_instr *, unsigned lane, uint64_t address, uint64_t bytes, bool writes);

/* counters.c */
void sim_count_access(sim_warp *, const sim_instr *, uint32_t mask, const uint64_t address[SIM_LANES], bool writes);
void sim_count_global(
	sim_warp *, const sim_instr *, uint32_t lanes, const uint64_t address[SIM_LANES], unsigned bytes, bool writes);
void sim_count_shared(sim_warp *, const sim_instr *, uint32_t lanes, const uint64_t address[SIM_LANES], unsigned bytes);
void sim_count_add(blk_sim_counters *to, const blk_sim_counters *);
void sim_hits_add(sim_hits *to, const sim_hits *, size_t n);
static inline sim_hits *sim_hits_of(const sim_program *p, const sim_instr *in)
{
	return &p->hits[in - p->code->code];
}

/* program.c: the state of one program. */
sim_program *sim_program_new(sim_cluster *, uint32_t rank, uint32_t threads); /* null: out of memory */
void sim_program_free(sim_program *);
void sim_program_start(sim_program *, const uint32_t id[3]);

/* cluster.c: what one thread of the host keeps; `sim_cluster_run` simulates one cluster, whose place among them it is
 * given. */
sim_cluster *sim_cluster_new(sim_launch *, uint32_t threads); /* null: out of memory */
void sim_cluster_free(sim_cluster *);
typedef enum sim_outcome { SIM_ENDED, SIM_WAITS, SIM_STOPPED } sim_outcome;
void sim_cluster_start(sim_cluster *, const uint32_t id[3]);
/* A look at what other programs may write, and what was there.  False: enough of them have found what they had found
 * before, the warp stops here for now. */
bool sim_looks_around(sim_warp *, const sim_instr *, uint64_t address, uint64_t value);
/* Until it ends, seems to wait for other clusters, or the launch stops; `limit`: steps at which a program has hung. */
sim_outcome sim_cluster_run(sim_cluster *, uint64_t limit);
/* The warp's program copies into that one; a program knows what each of the others has said up to then. */
void sim_cluster_brings(sim_warp *, const sim_instr *, uint32_t rank);
void sim_cluster_hears(sim_program *, const uint32_t *said);
void sim_cluster_leaves(sim_warp *); /* some of its lanes have ended */
uint32_t sim_cluster_extent(const sim_launch *, int dimension);
uint64_t sim_random(uint64_t *state);

/* mbarrier.c */
sim_mbarrier *sim_mbarrier_find(sim_program *, uint64_t offset); /* the one at an offset of shared memory, or null */
/* One that a copy or another program names; null: reported. */
sim_mbarrier *sim_mbarrier_at(sim_warp *, const sim_instr *, unsigned lane, uint64_t address, sim_program **owner);
/* False: another program of the cluster may use it before it is made; reported. */
bool sim_mbarrier_is_shared(sim_warp *, const sim_instr *, unsigned lane, const sim_mbarrier *);
void sim_mbarriers_shared(sim_program *, bool relaxed); /* the cluster's barrier was passed, arrivals being so */
bool sim_mbarrier_arrive(
	sim_warp *, const sim_instr *, unsigned lane, sim_program *, sim_mbarrier *, uint32_t count, bool completes);
void sim_mbarrier_bytes(sim_program *, sim_mbarrier *, int64_t more); /* announced: > 0, or come */
/* bulk.c */
bool sim_bulk_land_one(sim_cluster *); /* false: none is under way, or a problem was reported */
void sim_bulk_end(sim_cluster *);      /* all programs have ended */
/* atomic.c: at = at OP v of some bytes, atomic among the host's threads, with the instruction's mode and type. */
uint64_t sim_atomic_swap(const sim_instr *, unsigned bytes, uint8_t *at, uint64_t v, uint64_t other, bool flush);

/* async.c: the copies of these lanes land. */
bool sim_copies_land(sim_warp *, uint32_t lanes);

/* warpgroup.c */
/* False: an instruction touches a register that a product under way owns, which has been reported. */
bool sim_registers_free(sim_warp *, const sim_instr *, uint32_t mask);
void sim_products_end(sim_program *);
bool sim_code_products(sim_code *); /* fills in matrix_units; false: out of memory */

/* warp.c: runs until the warp waits, ends, the launch stops or `budget` instructions are done. */
void sim_warp_run(sim_warp *, uint64_t budget);
void sim_warp_exit(sim_warp *, uint32_t lanes);
void sim_warp_yield(sim_warp *); /* its lanes wait for something: those on the other path of a branch may go on */
void sim_write_lanes(uint8_t *to, const uint8_t *from, uint8_t bytes, uint32_t mask);
static inline void sim_write_predicate(sim_warp *w, uint32_t d, uint32_t mask, uint32_t value, uint32_t bad)
{
	assert(d != 0); /* number 0 is always true */
	w->predicate[d] = (w->predicate[d] & ~mask) | (value & mask);
	w->predicate_bad[d] = (w->predicate_bad[d] & ~mask) | (bad & mask);
}

/* shadow.c */
/* The undefined bits of a lane of a register; writing 0 makes the lane defined. */
uint64_t sim_shadow_read(const sim_warp *, uint32_t unit, uint8_t bytes, unsigned lane);
void sim_shadow_write(sim_warp *, uint32_t unit, uint8_t bytes, unsigned lane, uint64_t undefined);
/* After an arithmetic instruction some of whose operands are not all defined. */
void sim_shadow_result(sim_warp *, const sim_instr *, uint32_t mask, const uint8_t *const operands[3]);
enum { SHARED_OFFSETS = (1 << SIM_RANK_SHIFT) - 1 };
static inline void sim_set_defined(sim_warp *w, uint32_t unit, uint32_t mask)
{
	w->bad[unit] &= ~mask;
}
static inline uint64_t sim_register_read(const uint8_t *at, uint8_t bytes, unsigned lane)
{
	assert((bytes == 2 || bytes == 4 || bytes == 8) && lane < SIM_LANES);
	return bytes == 4   ? ((const uint32_t *)at)[lane]
	       : bytes == 8 ? ((const uint64_t *)at)[lane]
			    : ((const uint16_t *)at)[lane];
}
static inline void sim_register_write(uint8_t *at, uint8_t bytes, unsigned lane, uint64_t bits)
{
	assert((bytes == 2 || bytes == 4 || bytes == 8) && lane < SIM_LANES);
	if (bytes == 4)
		((uint32_t *)at)[lane] = (uint32_t)bits;
	else if (bytes == 8)
		((uint64_t *)at)[lane] = bits;
	else
		((uint16_t *)at)[lane] = (uint16_t)bits;
}
static inline uint8_t *sim_at(const sim_warp *w, uint32_t unit)
{
	assert(unit < w->program->code->units);
	return w->file + (size_t)unit * SIM_UNIT;
}
/* cause.c: to and from what is at hand, causes[0]. */
static inline void sim_cause_none(const sim_warp *w)
{
	if (__builtin_expect(w->causes != NULL, 0)) w->causes[0] = (sim_cause){0};
}
static inline void sim_cause_take(const sim_warp *w, uint32_t slot, unsigned lane)
{
	assert(slot != 0); /* that one's place is of what is at hand */
	if (__builtin_expect(w->causes != NULL, 0)) w->causes[0] = w->causes[(size_t)slot * SIM_LANES + lane];
}
static inline void sim_cause_give(const sim_warp *w, uint32_t slot, unsigned lane)
{
	assert(slot != 0);
	if (__builtin_expect(w->causes != NULL, 0)) w->causes[(size_t)slot * SIM_LANES + lane] = w->causes[0];
}
/* False: the lane of the unit is defined. */
static inline bool sim_cause_of(const sim_warp *w, uint32_t unit, unsigned lane)
{
	if (!(w->bad[unit] >> lane & 1)) return false;
	if (w->blank[unit] >> lane & 1)
		sim_cause_none(w);
	else
		sim_cause_take(w, unit, lane);
	return true;
}
void sim_cause_of_predicate(const sim_warp *, uint32_t p, uint32_t lanes); /* of the first of them that is undefined */
void sim_cause_to_predicate(const sim_warp *, uint32_t p, unsigned lane);
/* Undefined bytes go to memory, or come from there; only the program's shared memory keeps why. */
void sim_cause_store(sim_warp *, const uint8_t *shadow, unsigned bytes);
void sim_cause_load(sim_warp *, const uint8_t *shadow, unsigned bytes);

/* Steps, by what they are about. */
sim_step sim_step_load, sim_step_load_parameter, sim_step_store, sim_step_atomic; /* access.c atomic.c */
sim_step sim_step_shuffle, sim_step_vote, sim_step_redux, sim_step_warp_sync;     /* exchange.c */
sim_step sim_step_elect, sim_step_match, sim_step_active;
sim_step sim_step_barrier, sim_step_exit, sim_step_trap, sim_step_grid_wait, sim_step_fence; /* program.c */
sim_step sim_step_cluster_arrive, sim_step_cluster_wait, sim_step_map_rank;                  /* cluster.c */
sim_step sim_step_mbarrier, sim_step_mbarrier_wait, sim_step_mbarrier_count;                 /* mbarrier.c */
sim_step sim_step_copies_arrive, sim_step_mbarrier_fence, sim_step_proxy_fence;
sim_step sim_step_product, sim_step_product_fence, sim_step_product_commit, sim_step_product_wait; /* warpgroup.c */
sim_step sim_step_logic, sim_step_pack, sim_step_unpack;                                           /* warp.c */
sim_step sim_step_copy, sim_step_copy_commit, sim_step_copy_wait;                                  /* async.c */
sim_step sim_step_multiply, sim_step_load_matrix, sim_step_store_matrix, sim_step_transpose;       /* matrix.c */
sim_step sim_step_bulk, sim_step_bulk_commit, sim_step_bulk_wait;                                  /* bulk.c */
sim_step sim_step_check;                                                                           /* cause.c */
sim_step sim_step_print, sim_step_assert;                                                          /* call.c */
sim_lanes sim_lanes_convert, sim_lanes_convert_pair;                                               /* lanes_convert.c */

#endif
