/* What the files of built-in functions share: arguments by number, and the few emissions that several groups need.
 * builtins_util.c.  Everything here reports its error and returns null, false or poison, as values.h says. */
#ifndef BLK_SEMA_BUILTINS_UTIL_H
#define BLK_SEMA_BUILTINS_UTIL_H

#include "builtins.h"

/* An argument that is a tile of numbers (rank 1 or more); `needs` completes "'sum' needs ...". */
ir_value *builtin_tile(sema *, const builtin_call *, unsigned arg);
/* Reports 'name' needs WHAT, not TYPE at the argument and returns the record for a hint. */
diag *builtin_needs(sema *, const builtin_call *, unsigned arg, const char *what);
/* An optional compile-time argument: left alone when it was not given. */
bool builtin_flag(sema *, const builtin_call *, unsigned arg, const char *what, bool *);
bool builtin_choice(sema *, const builtin_call *, unsigned arg, const char *const *choices, unsigned n,
	const char *what, unsigned *which);
/* "the next power of two": the smallest one that is at least n. */
uint64_t builtin_next_pow2(uint64_t n);

ir_value *builtin_reshape(sema *, ir_value *, ir_type shape);         /* identity when the shape is the same */
ir_value *builtin_permute(sema *, ir_value *, const uint16_t *order); /* order has the value's rank */
ir_value *builtin_expand(sema *, ir_value *, unsigned axis);          /* new extent of 1; a scalar becomes [1] */
ir_type builtin_without_axis(ir_type, unsigned axis);                 /* the type with that dimension removed */
ir_type builtin_with_axis(ir_type, unsigned axis, uint32_t extent);   /* the type with a dimension put in */
ir_value *builtin_float_constant(sema *, ir_type, double);            /* in every element */
/* The value in f32 when it is f16 or bf16, else the value. */
ir_value *builtin_widen(sema *, ir_value *);

/* Elementwise maximum and minimum of two svals: promotion, broadcasting, folding. */
ir_kind builtin_extremum_kind(bool max, bool nan_wins);
sval builtin_extremum(sema *, const builtin_call *, ir_kind, sval a, sval b);

/* Whether arguments are floats; reports, with the cast to write.  Of several at least one is, and integers among them
 * are compile-time numbers, which adapt. */
bool builtin_takes_float(sema *, const builtin_call *, unsigned arg);
bool builtin_takes_floats(sema *, const builtin_call *, unsigned n);
bool builtin_all_numbers(const sval *, unsigned n);
/* Brings numbers to the type that the arithmetic operators would give them together; literals alone stay literals. */
bool builtin_common_numbers(sema *, const builtin_call *, sval *, unsigned n);
/* A folded float; untyped when what it was made of is. */
sval builtin_folded_float(sema_number like, double, span);

/* load(bp) and store(bp, v): builtins_tensor.c */
sval builtin_load_block(sema *, const builtin_call *);
sval builtin_store_block(sema *, const builtin_call *);

#endif
