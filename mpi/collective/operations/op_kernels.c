#include "mpi/collective/operations/op_kernels.h"

#include <stddef.h>
#include <stdint.h>

typedef __int128 int128;
typedef unsigned __int128 uint128;
typedef __float128 float128;

/* Each loop twice: for every x86-64, and for AVX2, which has minima of 32-bit integers and twice the width. Without
 * FMA: results are the same. */
#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif

#define BODY static inline __attribute__((always_inline))

#define TURN(type, left_operand, right_operand, expression) \
    for (MPI_Count i = 0; i < count; i++) {                 \
        const type left = left_operand[i];                  \
        const type right = right_operand[i];                \
        to[i] = expression;                                 \
    }

#define VERSIONS(name, type)                                                                       \
    static void name(void *to, const void *other, MPI_Count count, bool other_is_left)             \
    {                                                                                              \
        name##_body(to, other, count, other_is_left);                                              \
    }                                                                                              \
    WIDE static void name##_wide(void *to, const void *other, MPI_Count count, bool other_is_left) \
    {                                                                                              \
        name##_body(to, other, count, other_is_left);                                              \
    }

/* The order of operands makes no difference. */
#define SYMMETRIC(name, type, expression)                                                                     \
    BODY void name##_body(type *restrict to, const type *restrict other, MPI_Count count, bool other_is_left) \
    {                                                                                                         \
        (void)other_is_left;                                                                                  \
        TURN(type, to, other, expression)                                                                     \
    }                                                                                                         \
    VERSIONS(name, type)

#define ORDERED(name, type, expression)                                                                       \
    BODY void name##_body(type *restrict to, const type *restrict other, MPI_Count count, bool other_is_left) \
    {                                                                                                         \
        if (other_is_left) {                                                                                  \
            TURN(type, other, to, expression)                                                                 \
        } else {                                                                                              \
            TURN(type, to, other, expression)                                                                 \
        }                                                                                                     \
    }                                                                                                         \
    VERSIONS(name, type)

/* `work` is the type of the computation: unsigned, and not narrower than int, so that nothing overflows. */
#define UNSIGNED_KERNELS(suffix, type, work)                           \
    SYMMETRIC(sum_##suffix, type, (type)((work)left + (work)right))    \
    SYMMETRIC(prod_##suffix, type, (type)((work)left * (work)right))   \
    SYMMETRIC(band_##suffix, type, (type)(left & right))               \
    SYMMETRIC(bor_##suffix, type, (type)(left | right))                \
    SYMMETRIC(bxor_##suffix, type, (type)(left ^ right))               \
    SYMMETRIC(land_##suffix, type, (type)((left != 0) & (right != 0))) \
    SYMMETRIC(lor_##suffix, type, (type)((left != 0) | (right != 0)))  \
    SYMMETRIC(lxor_##suffix, type, (type)((left != 0) ^ (right != 0)))

#define ORDER_KERNELS(suffix, type)                          \
    ORDERED(min_##suffix, type, left < right ? left : right) \
    ORDERED(max_##suffix, type, left > right ? left : right)

#define FLOAT_KERNELS(suffix, type)             \
    SYMMETRIC(sum_##suffix, type, left + right) \
    SYMMETRIC(prod_##suffix, type, left *right) \
    ORDER_KERNELS(suffix, type)

/* By the formula of Fortran, and of C where infinities need not be recovered (CX_LIMITED_RANGE). */
#define COMPLEX_KERNELS(suffix, part)                                                                \
    struct complex_##suffix {                                                                        \
        part real;                                                                                   \
        part imaginary;                                                                              \
    };                                                                                               \
    SYMMETRIC(sum_##suffix, struct complex_##suffix,                                                 \
              ((struct complex_##suffix){left.real + right.real, left.imaginary + right.imaginary})) \
    SYMMETRIC(prod_##suffix, struct complex_##suffix,                                                \
              ((struct complex_##suffix){left.real * right.real - left.imaginary * right.imaginary,  \
                                         left.real * right.imaginary + left.imaginary * right.real}))

UNSIGNED_KERNELS(u8, uint8_t, unsigned)
UNSIGNED_KERNELS(u16, uint16_t, unsigned)
UNSIGNED_KERNELS(u32, uint32_t, uint32_t)
UNSIGNED_KERNELS(u64, uint64_t, uint64_t)
UNSIGNED_KERNELS(u128, uint128, uint128)
ORDER_KERNELS(u8, uint8_t)
ORDER_KERNELS(u16, uint16_t)
ORDER_KERNELS(u32, uint32_t)
ORDER_KERNELS(u64, uint64_t)
ORDER_KERNELS(u128, uint128)
ORDER_KERNELS(i8, int8_t)
ORDER_KERNELS(i16, int16_t)
ORDER_KERNELS(i32, int32_t)
ORDER_KERNELS(i64, int64_t)
ORDER_KERNELS(i128, int128)
FLOAT_KERNELS(f32, float)
FLOAT_KERNELS(f64, double)
FLOAT_KERNELS(f80, long double)
FLOAT_KERNELS(f128, float128)
COMPLEX_KERNELS(c32, float)
COMPLEX_KERNELS(c64, double)
COMPLEX_KERNELS(c80, long double)
COMPLEX_KERNELS(c128, float128)

#define ARITHMETIC_ROW(suffix, v) [MPI_KERNEL_SUM] = sum_##suffix##v, [MPI_KERNEL_PROD] = prod_##suffix##v
#define ORDER_ROW(suffix, v)      [MPI_KERNEL_MIN] = min_##suffix##v, [MPI_KERNEL_MAX] = max_##suffix##v
#define BITS_ROW(suffix, v)                                                                                         \
    [MPI_KERNEL_BAND] = band_##suffix##v, [MPI_KERNEL_BOR] = bor_##suffix##v, [MPI_KERNEL_BXOR] = bxor_##suffix##v, \
    [MPI_KERNEL_LAND] = land_##suffix##v, [MPI_KERNEL_LOR] = lor_##suffix##v, [MPI_KERNEL_LXOR] = lxor_##suffix##v

/* Signed integers have their sums, products and bits from the unsigned ones. */
#define INTEGER_ROW(own, bits, v)                                     \
    {                                                                 \
        ARITHMETIC_ROW(bits, v), ORDER_ROW(own, v), BITS_ROW(bits, v) \
    }
#define FLOAT_ROW(suffix, v)                            \
    {                                                   \
        ARITHMETIC_ROW(suffix, v), ORDER_ROW(suffix, v) \
    }
#define COMPLEX_ROW(suffix, v)    \
    {                             \
        ARITHMETIC_ROW(suffix, v) \
    }

#define ROWS(v)                                                                                        \
    {                                                                                                  \
        [MPI_ELEMENT_I8] = INTEGER_ROW(i8, u8, v), [MPI_ELEMENT_I16] = INTEGER_ROW(i16, u16, v),       \
        [MPI_ELEMENT_I32] = INTEGER_ROW(i32, u32, v), [MPI_ELEMENT_I64] = INTEGER_ROW(i64, u64, v),    \
        [MPI_ELEMENT_I128] = INTEGER_ROW(i128, u128, v), [MPI_ELEMENT_U8] = INTEGER_ROW(u8, u8, v),    \
        [MPI_ELEMENT_U16] = INTEGER_ROW(u16, u16, v), [MPI_ELEMENT_U32] = INTEGER_ROW(u32, u32, v),    \
        [MPI_ELEMENT_U64] = INTEGER_ROW(u64, u64, v), [MPI_ELEMENT_U128] = INTEGER_ROW(u128, u128, v), \
        [MPI_ELEMENT_F32] = FLOAT_ROW(f32, v), [MPI_ELEMENT_F64] = FLOAT_ROW(f64, v),                  \
        [MPI_ELEMENT_F80] = FLOAT_ROW(f80, v), [MPI_ELEMENT_F128] = FLOAT_ROW(f128, v),                \
        [MPI_ELEMENT_C32] = COMPLEX_ROW(c32, v), [MPI_ELEMENT_C64] = COMPLEX_ROW(c64, v),              \
        [MPI_ELEMENT_C80] = COMPLEX_ROW(c80, v), [MPI_ELEMENT_C128] = COMPLEX_ROW(c128, v),            \
    }

static const mpi_kernel kernels[MPI_ELEMENT_COUNT][MPI_KERNEL_OPS] = ROWS();
static const mpi_kernel kernels_wide[MPI_ELEMENT_COUNT][MPI_KERNEL_OPS] = ROWS(_wide);

static bool has_wide(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

mpi_kernel mpi_kernel_find(enum mpi_kernel_op op, enum mpi_element element)
{
    return has_wide() ? kernels_wide[element][op] : kernels[element][op];
}
