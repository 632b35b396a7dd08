/* Constant folding of one elementwise operation on one element. */
#ifndef BLK_FOLD_H
#define BLK_FOLD_H

#include "ir.h"

/* `from` is the operands' element type (of the last one for select), `to` the result's; containers as in scalar.h.
 * False: not folded, because the result is unspecified (x / 0) or the device's own may differ from the host's. */
bool fold_scalar(ir_kind, scalar to, scalar from, const uint64_t *args, uint64_t *out);

#endif
