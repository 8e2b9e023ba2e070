/* element: what messages are made of, for whoever compresses them. Within the lock of enter.h only. */
#pragma once

#include "mpi/datatype/datatype.h"
#include "mpi/state/comm.h"

/* What data of elements of a type (NULL: bytes) is, in calls on a communicator: what is to stay as it is, if the
 * communicator's hint "causeway_compression" is "off". */
enum cw_element mpi_element_of(const struct mpi_comm *comm, const struct mpi_type *type);

/* The same of a message of `bytes`: a short one fits a packet, and its type is not asked for. */
static inline enum cw_element mpi_element_of_short(const struct mpi_comm *comm, const struct mpi_type *type,
                                                   uint64_t bytes)
{
    enum { TYPE_MATTERS_MIN = 1024 };
    return bytes < TYPE_MATTERS_MIN ? CW_ELEMENT_BYTES : mpi_element_of(comm, type);
}
