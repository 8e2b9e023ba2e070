/* The MPI functions that are not implemented, by chapter of the standard. */
#include <stdio.h>

#include "apps/cli/cli.h"
#include "apps/doctor/doctor.h"
#include "mpi/abi/names.h"

static void print_json(const struct mpi_name *name)
{
    json_t *line = app_json_new();
    app_json_text(line, "topic", "mpi");
    app_json_text(line, "what", name->name);
    app_json_count(line, "chapter", name->chapter);
    app_json_text(line, "verdict", "missing");
    app_json_emit(line);
}

/* The end of the chapter that begins at `first`. */
static unsigned chapter_end(unsigned first, unsigned *missing)
{
    unsigned end = first;
    *missing = 0;
    for (; end < mpi_name_count && mpi_names[end].chapter == mpi_names[first].chapter; end++) {
        *missing += !mpi_names[end].implemented;
    }
    return end;
}

void doctor_mpi(struct doctor *doctor)
{
    unsigned all = 0;
    unsigned missing;
    for (unsigned first = 0, end; first < mpi_name_count; first = end) {
        end = chapter_end(first, &missing);
        all += missing;
        if (!doctor->json) {
            printf("%2u  %s: %u of %u missing\n", mpi_names[first].chapter, mpi_names[first].title, missing,
                   end - first);
        }
        for (unsigned index = first; index < end; index++) {
            if (!mpi_names[index].implemented && doctor->json) {
                print_json(&mpi_names[index]);
            } else if (!mpi_names[index].implemented) {
                printf("      %s\n", mpi_names[index].name);
            }
        }
    }
    if (!doctor->json) {
        printf("%u of %u functions are not implemented; they raise MPI_ERR_UNSUPPORTED_OPERATION\n", all,
               mpi_name_count);
    }
}
