#include "mpi/collective/compiled/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/file/recording.h"
#include "control/settings/settings.h"
#include "dataplane/status.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/runtime/error.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

static struct cw_recorder *recorder;
static bool is_stopped;
static uint64_t *rows; /* of a call: its sends and its expected receives */
static int row_room;
static struct {
    uint64_t context;
    uint32_t index;
} last_comm; /* of the last call; context 0 is no communicator's */

int mpi_record_start(void)
{
    if (mpi_replay_record_path() == NULL) {
        return MPI_SUCCESS;
    }
    recorder = cw_recorder_create(CW_RECORDER_BYTES_MAX);
    row_room = (int)mpi_process.size;
    rows = malloc(2 * (size_t)row_room * sizeof(*rows));
    return recorder != NULL && rows != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

bool mpi_record_is_on(void)
{
    return recorder != NULL && !is_stopped;
}

void mpi_record_stop(void)
{
    is_stopped = true;
}

static uint32_t row_fill(const struct mpi_buffer *descriptor, uint64_t *row)
{
    for (int block = 0; block < descriptor->block_count; block++) {
        row[block] = (uint64_t)mpi_buffer_block_bytes(descriptor, block);
    }
    return (uint32_t)descriptor->block_count;
}

static uint32_t comm_flags(const struct mpi_comm *comm)
{
    static const uint32_t of_path[] = {
        [CW_MEASURED_SHARED] = 0,
        [CW_MEASURED_WIRE] = CW_RECORDING_WIRE,
        [CW_MEASURED_RDMA] = CW_RECORDING_WIRE | CW_RECORDING_RDMA,
    };
    return of_path[mpi_choice_path(comm)] | (mpi_clusters_can_multicast(comm) ? CW_RECORDING_MULTICASTS : 0);
}

/* Its index in the recording. */
static uint32_t comm_note(const struct mpi_comm *comm)
{
    if (last_comm.context != comm->context) {
        const struct cw_recording_comm about = {
            .context = comm->context,
            .size = (uint32_t)comm->size,
            .flags = comm_flags(comm),
            .members = comm->group->ranks,
        };
        last_comm.index = cw_recorder_comm(recorder, &about);
        last_comm.context = comm->context;
    }
    return last_comm.index;
}

void mpi_record_call(const struct mpi_collective *collective, const char *algorithm, uint32_t flags, uint64_t took_ns)
{
    const struct mpi_comm *comm = collective->comm;
    const struct cw_problem_request *problem = &collective->problem;
    if (collective->count_matrix != NULL && collective->count_matrix->phases != NULL) {
        return; /* the program has compiled it itself */
    }
    struct cw_recording_form form = {
        .comm = comm_note(comm),
        .collective = problem->collective,
        .flags = flags | collective->mode,
        .root = problem->root,
        .element_bytes = problem->element_bytes,
        .count = problem->count,
    };
    if (collective->has_rows) {
        form.flags |= CW_RECORDING_ROWS;
        form.count = 0;
        form.sends = rows;
        form.sends_count = row_fill(&collective->send, rows);
        form.expects = rows + row_room;
        form.expects_count = row_fill(&collective->receive, rows + row_room);
    } else {
        form.flags |=
            (problem->ordered ? CW_RECORDING_ORDERED : 0u) | (collective->counts != NULL ? CW_RECORDING_COUNTS : 0u);
        form.count = collective->counts != NULL ? 0 : form.count;
        form.counts = collective->counts;
    }
    snprintf(form.algorithm, sizeof(form.algorithm), "%s", algorithm);
    (void)cw_recorder_call(recorder, &form, (uint32_t)comm->size, collective->ordinal, collective->run_count, took_ns);
}

/* ---- the file ---- */

struct heap_parts {
    uint64_t *lengths;
    const uint8_t **parts;
    uint8_t *bytes;
};

static void file_write(const struct cw_recording *head, const struct heap_parts *heap, uint64_t calls, uint64_t dropped)
{
    void *file = NULL;
    size_t length = 0;
    const char *path = mpi_replay_record_path();
    const char *reason = NULL;
    int status = cw_recording_encode(head, heap->parts, heap->lengths, &file, &length);
    if (status != CW_OK) {
        reason = status == CW_ERROR_LIMIT ? "it would be larger than any that is read again" : "no memory";
    } else if (!cw_settings_write(path, file, length)) {
        reason = strerror(errno);
    }
    free(file);
    if (reason != NULL) {
        fprintf(stderr, "causeway: %s: the trace cannot be written: %s\n", path, reason);
    } else {
        fprintf(stderr, "causeway: %s: %" PRIu64 " collective calls of %u ranks recorded in %zu bytes\n", path, calls,
                head->ranks, length);
    }
    if (dropped > 0) {
        fprintf(stderr, "causeway: %s: %" PRIu64 " calls are not in it: a rank's %d MiB were full\n", path, dropped,
                CW_RECORDER_BYTES_MAX >> 20);
    }
}

/* Rank 0 gets all parts. False: no memory. */
static bool parts_gather(const struct cw_packer *part, struct heap_parts *heap)
{
    bool is_root = mpi_process.rank == 0;
    size_t ranks = mpi_process.size;
    MPI_Count own = part->failed ? 0 : (MPI_Count)part->length;
    MPI_Count *counts = is_root ? calloc(2 * ranks, sizeof(*counts)) : NULL;
    heap->lengths = is_root ? calloc(ranks, sizeof(*heap->lengths)) : NULL;
    heap->parts = is_root ? calloc(ranks, sizeof(*heap->parts)) : NULL;
    uint32_t is_well = !is_root || (counts != NULL && heap->lengths != NULL && heap->parts != NULL);
    MPI_Count total = 0;
    if (mpi_bcast(&is_well, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD) != MPI_SUCCESS || is_well == 0 ||
        mpi_gather(&own, sizeof(own), MPI_BYTE, counts, sizeof(own), MPI_BYTE, 0, MPI_COMM_WORLD) != MPI_SUCCESS) {
        free(counts);
        return false;
    }
    for (size_t rank = 0; is_root && rank < ranks; rank++) {
        counts[ranks + rank] = total;
        heap->lengths[rank] = (uint64_t)counts[rank];
        total += counts[rank];
    }
    heap->bytes = is_root ? malloc((size_t)total + 1) : NULL;
    is_well = !is_root || heap->bytes != NULL;
    int code = mpi_bcast(&is_well, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS && is_well != 0) {
        const struct mpi_counts lengths = {.values = counts, .wide = true};
        const struct mpi_counts places = {.values = is_root ? counts + ranks : NULL, .wide = true};
        code = mpi_gatherv(part->bytes, own, MPI_BYTE, heap->bytes, lengths, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    for (size_t rank = 0; is_root && heap->bytes != NULL && rank < ranks; rank++) {
        heap->parts[rank] = heap->bytes + counts[ranks + rank];
    }
    free(counts);
    return code == MPI_SUCCESS && is_well != 0;
}

void mpi_record_finish(void)
{
    struct cw_recorder *kept = recorder;
    struct cw_packer part = {0};
    struct heap_parts heap = {0};
    if (kept == NULL) {
        return;
    }
    recorder = NULL;
    uint64_t own[2] = {cw_recorder_calls(kept), cw_recorder_dropped(kept)}, all[2] = {0, 0};
    cw_recorder_part(kept, &part);
    int code = mpi_reduce(own, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    bool is_well = code == MPI_SUCCESS && parts_gather(&part, &heap);
    if (mpi_process.rank == 0 && is_well) {
        struct cw_recording head = {
            .ranks = mpi_process.size,
            .eager_max_bytes = mpi_process.eager_max_bytes,
            .multicast_eager_max_bytes = mpi_clusters_multicast_eager_max(),
        };
        snprintf(head.program, sizeof(head.program), "%.*s", (int)sizeof(head.program) - 1,
                 program_invocation_short_name);
        file_write(&head, &heap, all[0], all[1]);
    } else if (mpi_process.rank == 0) {
        fprintf(stderr, "causeway: %s: the trace cannot be written: no memory\n", mpi_replay_record_path());
    }
    free(heap.lengths);
    free(heap.parts);
    free(heap.bytes);
    free(part.bytes);
    free(rows);
    rows = NULL;
    cw_recorder_destroy(kept);
}
