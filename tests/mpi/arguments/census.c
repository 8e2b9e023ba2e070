/* References and live handles of all kinds, seen from within the library. */
#include <stdio.h>
#include <stdlib.h>

#include "mpi/collective/operations/op.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/datatype/datatype.h"
#include "mpi/point/request.h"
#include "mpi/runtime/errhandler.h"
#include "mpi/state/comm.h"
#include "mpi/state/handle.h"
#include "tests/mpi/arguments/walk.h"

/* A number that must not change: `what` of the object of a handle. */
struct entry {
    const char *what;
    uintptr_t handle;
    uint64_t number;
};

struct census {
    int count;
    struct entry entries[4096];
};

static struct census before, now;
static struct census *census;
static const char collective_calls[] = "collective calls";

static void note(const char *what, uintptr_t handle, uint64_t number)
{
    if (census->count == sizeof(census->entries) / sizeof(census->entries[0])) {
        fprintf(stderr, "more objects than the census has room for\n");
        exit(1);
    }
    census->entries[census->count++] = (struct entry){what, handle, number};
}

static void note_object(enum mpi_kind kind, uintptr_t index, const void *object)
{
    const struct mpi_type *type = object;
    const struct mpi_errhandler *errhandler = object;
    const struct mpi_request *request = object;
    switch (kind) {
    case MPI_KIND_DATATYPE:
        note("references of a datatype", (uintptr_t)type->handle, type->references);
        note("handles of a datatype", (uintptr_t)type->handle, type->handles);
        break;
    case MPI_KIND_ERRHANDLER:
        note("references of an error handler", (uintptr_t)errhandler->handle, errhandler->references);
        note("handles of an error handler", (uintptr_t)errhandler->handle, errhandler->handles);
        break;
    case MPI_KIND_GROUP:
        note("references of a group", index, ((const struct mpi_group *)object)->references);
        break;
    case MPI_KIND_OP:
        note("references of an operation", index, ((const struct mpi_op *)object)->references);
        break;
    case MPI_KIND_REQUEST:
        note("activity of a request", (uintptr_t)request->handle, request->is_active);
        break;
    default: /* communicators are noted by context; the others have one reference, their handle's */
        note("live handle of another kind", (uintptr_t)kind << 24 | index, 1);
    }
}

static void note_comm(const struct mpi_comm *comm)
{
    uintptr_t handle = (uintptr_t)comm->handle;
    note("references of a communicator", handle, comm->references);
    note("whether a communicator is freed", handle, comm->is_freed);
    note("references of a communicator's group", handle, comm->group->references);
    note("error handler of a communicator", handle, (uintptr_t)comm->errhandler->handle);
    note("references of a communicator's error handler", handle, comm->errhandler->references);
    if (comm == mpi_comm_world && comm->collectives != NULL) { /* elsewhere MPIX tells the others of wrong arguments */
        note(collective_calls, handle, comm->collectives->next_number);
    }
}

static void note_all(void)
{
    for (uintptr_t handle = 0; handle < 0x1000; handle++) {
        const struct mpi_type *type = mpi_type_find((MPI_Datatype)handle);
        const struct mpi_op *op = mpi_op_find((MPI_Op)handle);
        const struct mpi_errhandler *errhandler = mpi_errhandler_find((MPI_Errhandler)handle);
        if (type != NULL) {
            note("references of a predefined datatype", handle, type->references);
        }
        if (op != NULL) {
            note("references of a predefined operation", handle, op->references);
        }
        if (errhandler != NULL) {
            note("references of a predefined error handler", handle, errhandler->references);
        }
    }
    note("references of MPI_GROUP_EMPTY", (uintptr_t)MPI_GROUP_EMPTY, mpi_group_find(MPI_GROUP_EMPTY)->references);
    for (struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after(comm)) {
        note_comm(comm);
    }
    for (int kind = MPI_KIND_COMM; kind < MPI_KIND_COUNT; kind++) {
        for (uintptr_t chunk = 0; chunk < MPI_HANDLE_CHUNKS && mpi_handle_chunks[kind][chunk] != NULL; chunk++) {
            for (uintptr_t index = 0; index < MPI_HANDLE_CHUNK; index++) {
                const void *object = mpi_handle_chunks[kind][chunk][index].object;
                if (object != NULL && kind != MPI_KIND_COMM) {
                    note_object((enum mpi_kind)kind, chunk * MPI_HANDLE_CHUNK + index, object);
                }
            }
        }
    }
}

void walk_census_count(void)
{
    census = &before;
    for (int round = 0; round < 2; round++) { /* the first one may make predefined types */
        before.count = 0;
        note_all();
    }
}

int walk_census_compare(int calls)
{
    census = &now;
    now.count = 0;
    note_all();
    for (int i = 0; i < before.count || i < now.count; i++) {
        const struct entry *old = i < before.count ? &before.entries[i] : NULL,
                           *new = i < now.count ? &now.entries[i] : NULL;
        if (old == NULL || new == NULL || old->what != new->what || old->handle != new->handle) {
            fprintf(stderr, "objects have come or gone, from this on: %s (%#lx)\n", (old != NULL ? old : new)->what,
                    (unsigned long)(old != NULL ? old : new)->handle);
            return 1;
        }
        if (old->number != new->number && (calls || old->what != collective_calls)) {
            fprintf(stderr, "%s (%#lx): %llu before, %llu now\n", old->what, (unsigned long)old->handle,
                    (unsigned long long)old->number, (unsigned long long)new->number);
            return 1;
        }
    }
    return 0;
}
