/* element: the type of the elements of messages, a hint for compression. Within the lock of enter.h only. */
#pragma once

#include "mpi/datatype/datatype.h"
#include "mpi/state/comm.h"

/* The elements of an MPI type (NULL: bytes) in calls on a communicator. CW_ELEMENT_PLAIN, which is never compressed, if
 * the communicator's hint "causeway_compression" is "off". */
enum cw_element mpi_element_of(const struct mpi_comm *comm, const struct mpi_type *type);

/* The same for a message of `bytes`. A short message fits a packet, so its type does not matter. */
static inline enum cw_element mpi_element_of_short(const struct mpi_comm *comm, const struct mpi_type *type,
                                                   uint64_t bytes)
{
    enum { TYPE_MATTERS_MIN = 1024 };
    return bytes < TYPE_MATTERS_MIN ? CW_ELEMENT_BYTES : mpi_element_of(comm, type);
}
