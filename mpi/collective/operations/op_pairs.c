/* MPI_MINLOC and MPI_MAXLOC: the loops on pairs of value and index (MPI 5.0, 6.9.4). Of equal values the one with
 * the smaller index is taken. */
#include <stddef.h>
#include <stdint.h>

#include "mpi/collective/operations/op_kernels.h"

#define PAIR_LOOP(name, pair, before)                                                                                \
    static void name(void *to, const void *other, MPI_Count count, bool other_is_left)                               \
    {                                                                                                                \
        pair *const kept = to;                                                                                       \
        const pair *const given = other;                                                                             \
        for (MPI_Count i = 0; i < count; i++) {                                                                      \
            const pair left = other_is_left ? given[i] : kept[i];                                                    \
            const pair right = other_is_left ? kept[i] : given[i];                                                   \
            bool is_left = left.value before right.value || (left.value == right.value && left.index < right.index); \
            kept[i] = is_left ? left : right;                                                                        \
        }                                                                                                            \
    }

#define PAIR(value_name, value_type, index_name, index_type)                                  \
    struct pair_##value_name##_##index_name {                                                 \
        value_type value;                                                                     \
        index_type index;                                                                     \
    };                                                                                        \
    PAIR_LOOP(minloc_##value_name##_##index_name, struct pair_##value_name##_##index_name, <) \
    PAIR_LOOP(maxloc_##value_name##_##index_name, struct pair_##value_name##_##index_name, >)

#define ROW(value_name, index_name)                                            \
    {                                                                          \
        minloc_##value_name##_##index_name, maxloc_##value_name##_##index_name \
    }

/* Values of all kinds with indices of signed integers; Fortran's pairs, of twice the same type. */
#define INDEXED(value_name, value_type)        \
    PAIR(value_name, value_type, I32, int32_t) \
    PAIR(value_name, value_type, I64, int64_t)

INDEXED(I8, int8_t)
INDEXED(I16, int16_t)
INDEXED(I32, int32_t)
INDEXED(I64, int64_t)
INDEXED(U8, uint8_t)
INDEXED(U16, uint16_t)
INDEXED(U32, uint32_t)
INDEXED(U64, uint64_t)
INDEXED(F32, float)
INDEXED(F64, double)
INDEXED(F80, long double)
PAIR(F32, float, F32, float)
PAIR(F64, double, F64, double)

#define INDEXED_ROW(value_name)                   \
    [MPI_ELEMENT_##value_name] = {                \
        [MPI_ELEMENT_I32] = ROW(value_name, I32), \
        [MPI_ELEMENT_I64] = ROW(value_name, I64), \
    }

mpi_kernel mpi_kernel_pair(bool is_max, enum mpi_element value, enum mpi_element index)
{
    static const mpi_kernel kernels[MPI_ELEMENT_COUNT][MPI_ELEMENT_COUNT][2] = {
        INDEXED_ROW(I8),  INDEXED_ROW(I16), INDEXED_ROW(I32), INDEXED_ROW(I64), INDEXED_ROW(U8),  INDEXED_ROW(U16),
        INDEXED_ROW(U32), INDEXED_ROW(U64), INDEXED_ROW(F32), INDEXED_ROW(F64), INDEXED_ROW(F80),
    };
    static const mpi_kernel fortran[MPI_ELEMENT_COUNT][2] = {
        [MPI_ELEMENT_F32] = ROW(F32, F32),
        [MPI_ELEMENT_F64] = ROW(F64, F64),
    };
    mpi_kernel found = kernels[value][index][is_max];
    return found == NULL && value == index ? fortran[value][is_max] : found;
}
