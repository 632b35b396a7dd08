/* Aliasing of global memory: the one analysis of it.
 *
 * alias.c           of two accesses, by what their pointers were made from
 * alias_matrix.c    of two patches of one matrix, by rows and columns; of two stores by tensor maps
 * alias_elements.c  of the elements of one tile of pointers
 *
 * In: accesses, of which one may write.  Out: false where it is proved that they touch no common byte. */
#ifndef BLK_ALIAS_H
#define BLK_ALIAS_H

#include "passes/passes.h"

/* From different threads.  `around`: the outermost loop whose back edge lies between them, or null. */
bool may_alias(pass_context *, ir_func *, const ir_op *earlier, const ir_op *now, const ir_op *around);

/* The proofs of alias_matrix.c, which may_alias() asks. */
bool may_alias_patches(pass_context *, ir_func *, const ir_op *earlier, const ir_op *now, const ir_op *around);
bool may_alias_copies(const ir_op *earlier, const ir_op *now, const ir_op *around);
/* Of one access behind a loop's back edge: elements that were another thread's. */
bool may_alias_other_rows(pass_context *, ir_func *, const ir_op *, const ir_op *around);

/* What it shares with stored blocks is looked at when it runs (async/check_aliases.c). */
bool alias_is_checked(const ir_op *);

/* In two runs of one store of a block the blocks may have elements in common without being the same. */
bool may_alias_partly(const pass_context *, const ir_op *store);

/* Two elements of the tile may point to one place. */
bool may_alias_itself(pass_context *, ir_func *, ir_value *pointers);

#endif
