/* The scalar types of the language, and exact conversion between their bit patterns on the host.
 *
 * Values travel as 64-bit containers: an integer of type T sits zero-extended in the low bits, a float as its own
 * IEEE (or OCP fp8) bit pattern, a bool as 0 or 1.  One table (SCALARS) states everything else.
 * The numeric rules are those of language.md section 5 ("Casts"): float to integer truncates and saturates, nan gives
 * 0; conversion to fp8 saturates to the largest finite value; every float narrowing rounds to nearest, ties to even. */
#ifndef BLK_SCALAR_H
#define BLK_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*      enumerator  name      bytes signed float  mantissa exponent bits */
#define SCALARS(X)                                                                                                     \
	X(BOOL, "bool", 1, 0, 0, 0, 0)                                                                                 \
	X(I8, "i8", 1, 1, 0, 0, 0)                                                                                     \
	X(I16, "i16", 2, 1, 0, 0, 0)                                                                                   \
	X(I32, "i32", 4, 1, 0, 0, 0)                                                                                   \
	X(I64, "i64", 8, 1, 0, 0, 0)                                                                                   \
	X(U8, "u8", 1, 0, 0, 0, 0)                                                                                     \
	X(U16, "u16", 2, 0, 0, 0, 0)                                                                                   \
	X(U32, "u32", 4, 0, 0, 0, 0)                                                                                   \
	X(U64, "u64", 8, 0, 0, 0, 0)                                                                                   \
	X(F8E4M3, "f8e4m3", 1, 1, 1, 3, 4)                                                                             \
	X(F8E5M2, "f8e5m2", 1, 1, 1, 2, 5)                                                                             \
	X(F16, "f16", 2, 1, 1, 10, 5)                                                                                  \
	X(BF16, "bf16", 2, 1, 1, 7, 8)                                                                                 \
	X(F32, "f32", 4, 1, 1, 23, 8)                                                                                  \
	X(F64, "f64", 8, 1, 1, 52, 11)

typedef enum scalar {
#define X(e, name, bytes, is_signed, is_float, mantissa, exponent) SCALAR_##e,
	SCALARS(X)
#undef X
		SCALAR_COUNT
} scalar;

typedef struct scalar_info {
	const char *name;
	uint8_t bytes;
	bool is_signed, is_float;
	uint8_t mantissa, exponent;
} scalar_info;
extern const scalar_info scalar_table[SCALAR_COUNT]; /* ORDER SCALARS */

static inline const char *scalar_name(scalar s)
{
	return scalar_table[s].name;
}
static inline unsigned scalar_bytes(scalar s)
{
	return scalar_table[s].bytes;
}
static inline unsigned scalar_bits(scalar s)
{
	return s == SCALAR_BOOL ? 1 : 8u * scalar_table[s].bytes;
}

/* The bits of +infinity of a type that has one. */
static inline uint64_t scalar_infinity(scalar s)
{
	return ((UINT64_C(1) << scalar_table[s].exponent) - 1) << scalar_table[s].mantissa;
}
static inline bool scalar_is_float(scalar s)
{
	return scalar_table[s].is_float;
}
static inline bool scalar_is_integer(scalar s)
{
	return !scalar_table[s].is_float && s != SCALAR_BOOL;
}
static inline bool scalar_is_signed(scalar s)
{
	return scalar_table[s].is_signed;
}
static inline bool scalar_is_fp8(scalar s)
{
	return s == SCALAR_F8E4M3 || s == SCALAR_F8E5M2;
}
bool scalar_parse(const char *name, scalar *out); /* "f32" */

/* The container's low bits as a signed number / masked to the type's width. */
int64_t scalar_sign_extend(scalar, uint64_t bits);
uint64_t scalar_truncate(scalar, uint64_t bits);
/* Exact for every float type (f64 holds them all). */
double scalar_to_double(scalar, uint64_t bits);
/* The same of n elements in memory, one behind the other; some 30 times as fast for f16, bf16 and f32. */
void scalar_read(scalar, const uint8_t *at, size_t n, double *out);
/* Rounds once, from the double, to nearest even; saturates for fp8; integers as in scalar_convert. */
uint64_t scalar_from_double(scalar, double);
/* The shortest decimal of a finite value of the type that reads back to the same bits, as printf's %g writes it. */
enum { SCALAR_DECIMAL = 32 };
void scalar_decimal(scalar, double v, char out[SCALAR_DECIMAL]);
/* The language's cast between any two scalar types. */
uint64_t scalar_convert(scalar to, scalar from, uint64_t bits);

#endif
