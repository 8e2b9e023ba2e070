/* What of MPI is there. */
#include <stdio.h>

#include "apps/apps.h"
#include "apps/doctor.h"
#include "mpi/abi/names.h"

void doctor_mpi(struct doctor *doctor)
{
    unsigned missing = 0;
    for (unsigned index = 0; index < mpi_name_count; index++) {
        if (mpi_names[index].implemented) {
            continue;
        }
        missing++;
        if (doctor->json) {
            json_t *line = app_json_new();
            app_json_text(line, "topic", "mpi");
            app_json_text(line, "what", mpi_names[index].name);
            app_json_text(line, "verdict", "missing");
            app_json_emit(line);
        } else {
            printf("%s\n", mpi_names[index].name);
        }
    }
    if (!doctor->json) {
        printf("%u of %u functions are not implemented; they raise MPI_ERR_UNSUPPORTED_OPERATION\n", missing,
               mpi_name_count);
    }
}
