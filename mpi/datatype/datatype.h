/* datatype: the places of data in a buffer, and its conversion to a stream of bytes (MPI 5.0, chapter 5).
 *
 * Purpose
 *   A type is its layout: the blocks of bytes of one element, in the order of the type map, with the predefined type
 *   that each consists of. Constructors make the layout of the new type from that of the old one, merging neighbours;
 *   repetition is kept as loops, so that a vector of a million blocks takes no more memory than one of two. `contents`
 *   remembers how it was made, for envelopes.
 *
 * Invariants
 *   - Types do not change after they were made. They are counted: each handle that a program has been given, a derived
 *     type's contents and a request in progress hold one reference. A type whose handles are all freed and that others
 *     still hold has no handle (NULL); MPI_Type_get_contents gives it one again.
 *   - All lengths are MPI_Count and were checked against overflow by the constructor (MPI_ERR_ARG, MPI_ERR_COUNT).
 *   - The packed stream is the bytes of the blocks one after the other, without headers: the common format of both
 *     sides of a message.
 *
 * Within the lock of enter.h only, but mpi_type_pack and mpi_type_unpack, which any thread may call on a type that it
 * holds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/codec/kinds.h"
#include "mpi.h"

struct mpi_attributes; /* runtime/attribute.h */

struct mpi_type {
    MPI_Datatype handle;
    uint32_t references;
    uint32_t handles; /* how often the program has been given the handle, and has not freed it */
    bool predefined;
    bool committed;
    bool dense;   /* `count` elements are one block of count * size bytes, from true_lb on */
    bool resized; /* lb and extent were given (MPI_Type_create_resized, subarrays), here or in a part */
    uint32_t alignment;
    MPI_Count size;
    MPI_Count lb;
    MPI_Count extent;
    MPI_Count true_lb;
    MPI_Count true_extent;
    MPI_Count element_count;       /* of predefined types, as MPI_Get_elements counts them */
    MPI_Datatype basic;            /* the one predefined type that all of it is; MPI_DATATYPE_NULL: several, or none */
    struct mpi_layout *layout;     /* layout.h; NULL: no bytes */
    struct mpi_contents *contents; /* contents.h; NULL: predefined, and no pair */
    struct mpi_attributes *attributes;
    char name[MPI_MAX_OBJECT_NAME];
};

/* The type of a handle; NULL: none. Predefined ones of Fortran are there, too; MPI_DATATYPE_NULL is none. */
struct mpi_type *mpi_type_find(MPI_Datatype datatype);

/* The elements of the type's bytes, for compression; NULL: bytes. */
enum cw_element mpi_type_data(const struct mpi_type *type);

void mpi_type_retain(struct mpi_type *type);
void mpi_type_release(struct mpi_type *type);

/* A handle for the program, which holds a reference until MPI_Type_free. MPI_DATATYPE_NULL: no memory. */
MPI_Datatype mpi_type_handle_make(struct mpi_type *type);

/* Checks what most calls are given: a known and committed type, a count that is not negative, and no more bytes than
 * MPI_Count holds. MPI_SUCCESS, or the error, which has been raised through `comm`. */
int mpi_type_check(MPI_Comm comm, MPI_Count count, MPI_Datatype datatype, struct mpi_type **type);

/* Whether `buffer` cannot hold this number of bytes: NULL, unless it is the MPI_BOTTOM of a derived type; or
 * MPI_IN_PLACE. */
bool mpi_buffer_is_wrong(const void *buffer, const struct mpi_type *type, MPI_Count bytes);

/* Copies `bytes` of the packed stream of `count` elements at `buffer`, from its byte `from` on, to `to`; or back
 * from `data` into the elements. Any piece, in any order. */
void mpi_type_pack(const struct mpi_type *type, MPI_Count count, const void *buffer, MPI_Count from, void *to,
                   MPI_Count bytes);
void mpi_type_unpack(const struct mpi_type *type, MPI_Count count, void *buffer, MPI_Count from, const void *data,
                     MPI_Count bytes);

/* Elements of predefined types in the first `bytes` of a packed stream; MPI_UNDEFINED if the last one is cut. */
MPI_Count mpi_type_elements(const struct mpi_type *type, MPI_Count bytes);

/* Bytes of the packed stream that hold the first `count` elements of predefined types, of however many elements of
 * the type it takes. */
MPI_Count mpi_type_elements_bytes(const struct mpi_type *type, MPI_Count count);

/* Copies elements of one buffer into another one with another type: as much as both hold. Returns MPI_ERR_TRUNCATE
 * if `from` has more. No overlap. */
int mpi_type_copy(const struct mpi_type *from_type, MPI_Count from_count, const void *from,
                  const struct mpi_type *to_type, MPI_Count to_count, void *to);

/* The value type of a pair of value and index, and its index type, both predefined; false: the type is no such pair. */
bool mpi_type_pair(const struct mpi_type *type, const struct mpi_type **value, const struct mpi_type **index);
