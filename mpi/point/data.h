/* data: what messages are made of, for whoever compresses them. Within the lock of enter.h only. */
#pragma once

#include "mpi/datatype/datatype.h"
#include "mpi/state/comm.h"

/* Says what the bytes of the next call of cw_paths_send, cw_paths_get or cw_paths_put are: elements of the type (NULL:
 * bytes), or, if the communicator's hint "causeway_compression" is "off", what is to stay as it is. */
void mpi_data_say(const struct mpi_comm *comm, const struct mpi_type *type);
