#include "mpi/transport/element.h"

#include <string.h>

#include "mpi/runtime/info.h"

enum cw_element mpi_element_of(const struct mpi_comm *comm, const struct mpi_type *type)
{
    const char *hint = comm->info == NULL ? NULL : mpi_info_value(comm->info, "causeway_compression");
    bool is_off = hint != NULL && strcmp(hint, "off") == 0;
    return is_off ? CW_ELEMENT_PLAIN : mpi_type_data(type);
}
