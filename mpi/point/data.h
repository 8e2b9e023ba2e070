/* data: what messages are made of, for whoever compresses them. Within the lock of enter.h only. */
#pragma once

#include "mpi/datatype/datatype.h"
#include "mpi/state/comm.h"

/* What data of elements of a type (NULL: bytes) is, in calls on a communicator: what is to stay as it is, if the
 * communicator's hint "causeway_compression" is "off". */
enum cw_element mpi_data_of(const struct mpi_comm *comm, const struct mpi_type *type);

/* Says what the bytes of the next call of cw_paths_send, cw_paths_get or cw_paths_put are. */
void mpi_data_say(const struct mpi_comm *comm, const struct mpi_type *type);
