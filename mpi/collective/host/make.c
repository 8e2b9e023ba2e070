/* Segments of the ranks of a host: made by all ranks of a communicator together, and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/clock.h"
#include "dataplane/status.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/clusters/levels.h"
#include "mpi/collective/host/state.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/point/internal.h"
#include "mpi/runtime/explain.h"
#include "mpi/state/process.h"

enum { HOST_SEGMENTS_MAX = 1024 }; /* of a process: mappings are not free */

static uint32_t segment_count;

enum { VERDICT_SEGMENT = 1, VERDICT_COPIES_ONCE = 2 };

/* Opens the segment that the first rank of the host has made; returns the verdict of this rank. */
static uint32_t segment_try(struct mpi_host *host, const struct cw_segment_place *place, uint32_t member)
{
    const struct mpi_comm *comm = host->comm;
    if (place->pid == 0 || (member > 0 && cw_segment_open(place, member, host->members, &host->segment, host->why,
                                                          sizeof(host->why)) != CW_OK)) {
        return 0;
    }
    uint32_t verdict = VERDICT_SEGMENT | VERDICT_COPIES_ONCE;
    for (uint32_t i = 0; i < host->members; i++) {
        if (!cw_paths_reaches_memory(mpi_process.paths, comm->group->ranks[host_rank(host, i)])) {
            verdict = VERDICT_SEGMENT;
        }
    }
    return verdict;
}

/* The ranks of this host, as a group of processes too; false: no memory. */
static bool members_list(struct mpi_host *host, const struct mpi_levels *levels, struct mpi_group **group)
{
    struct mpi_comm *comm = host->comm;
    if (levels->hosts == 1) {
        host->members = (uint32_t)comm->size;
        *group = comm->group;
        mpi_group_retain(*group);
        return true;
    }
    host->ranks = malloc((size_t)comm->size * sizeof(*host->ranks));
    uint32_t *world = malloc((size_t)comm->size * sizeof(*world));
    if (host->ranks == NULL || world == NULL) {
        free(world);
        return false;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        if (levels->host_of[rank] == levels->host_of[comm->rank]) {
            world[host->members] = comm->group->ranks[rank];
            host->ranks[host->members++] = rank;
        }
    }
    *group = mpi_group_make(world, (int)host->members);
    return *group != NULL;
}

/* Makes the segment together with the other ranks of this host; returns what this rank can do with it. */
static uint32_t segment_make(struct mpi_host *host, struct mpi_group *group, int tag)
{
    struct mpi_comm *comm = host->comm;
    struct cw_segment_place place = {0};
    if (host->members == 1) {
        return VERDICT_SEGMENT | VERDICT_COPIES_ONCE;
    }
    if (group->rank == 0 && segment_count < HOST_SEGMENTS_MAX && host->members <= CW_SEGMENT_MEMBERS_MAX &&
        cw_segment_create(host->members, cw_clock_ns() ^ comm->context << 32, &host->segment, host->why,
                          sizeof(host->why)) == CW_OK) {
        place = cw_segment_place(&host->segment);
    }
    int code = mpi_internal_bcast(comm, group, tag, &place, sizeof(place));
    return code == MPI_SUCCESS ? segment_try(host, &place, (uint32_t)group->rank) : 0;
}

/* Takes part in making a segment of the ranks of this host, for one of all ranks of `comm`, or each of its
 * hosts; all ranks call it together. NULL at all of them: there is no memory to share on some host. */
static struct mpi_host *host_make(struct mpi_comm *comm, const struct mpi_levels *levels)
{
    int tag = MPI_TAG_COLLECTIVE + (int)(comm->collectives->next_number++ & 0x3fffffff);
    struct mpi_host *host = calloc(1, sizeof(*host));
    struct mpi_group *group = NULL;
    uint32_t verdict = 0;
    if (host != NULL) {
        host->comm = comm;
    }
    if (host != NULL && members_list(host, levels, &group)) {
        verdict = segment_make(host, group, tag);
        segment_count += host->segment.shared != NULL; /* mpi_host_destroy takes it off again */
    }
    if (group != NULL) {
        mpi_group_release(group);
    }
    int code = mpi_internal_agree(comm, tag, &verdict);
    if (host != NULL && host->segment.shared != NULL && host->segment.member == 0) {
        cw_segment_seal(&host->segment);
    }
    if (code != MPI_SUCCESS || (verdict & VERDICT_SEGMENT) == 0) {
        mpi_host_destroy(host);
        return NULL;
    }
    host->copies_once = (verdict & VERDICT_COPIES_ONCE) != 0;
    if (mpi_explain_is_wanted()) {
        host->accounts = calloc(CW_COLLECTIVE_COUNT, sizeof(*host->accounts));
    }
    return host;
}

/* ---- Levels ---- */

enum { LEVELS_CALLS_BEFORE = 2 /* blocking ones on a communicator, before it gets levels */ };

/* Whether calls of this kind may have levels at all, and how soon: at once if an override or a test names them. */
static bool levels_are_due(struct mpi_collective *call, bool is_persistent)
{
    struct mpi_collectives *collectives = call->comm->collectives;
    uint8_t *kept = host_kept(collectives->levels_verdicts, call);
    *kept = *kept == 0 ? (uint8_t)(1 + mpi_choice_levels(call->comm, &call->problem)) : *kept;
    enum mpi_choice_verdict verdict = (enum mpi_choice_verdict)(*kept - 1);
    if (verdict == MPI_CHOICE_NO || !mpi_host_fits(call)) {
        return false;
    }
    if (verdict == MPI_CHOICE_OPEN && !is_persistent && collectives->calls_before_levels < LEVELS_CALLS_BEFORE) {
        collectives->calls_before_levels++;
        return false;
    }
    return true;
}

void mpi_host_levels_begin(struct mpi_collective *call, bool is_persistent)
{
    struct mpi_comm *comm = call->comm;
    struct mpi_collectives *collectives = comm->collectives;
    if (collectives->levels != NULL || collectives->has_no_levels || comm->size < 2 ||
        !levels_are_due(call, is_persistent)) {
        return;
    }
    struct mpi_levels *levels = mpi_levels_make(comm);
    if (levels == NULL) { /* the others would wait for it */
        fprintf(stderr, "causeway: rank %u: no memory for the hosts of %d ranks\n", mpi_process.rank, comm->size);
        mpi_process_abort(MPI_ERR_NO_MEM);
        return;
    }
    struct mpi_host *host = levels->hosts < (uint32_t)comm->size ? host_make(comm, levels) : NULL;
    if (host == NULL) {
        mpi_levels_free(levels);
        collectives->has_no_levels = true;
        return;
    }
    collectives->host = host;
    collectives->levels = levels;
    mpi_host_reconsider(comm);
}

struct mpi_host *mpi_host_own(struct mpi_comm *comm)
{
    return host_make(comm, comm->collectives->levels);
}

static void accounts_report(const struct mpi_host *host)
{
    for (int collective = 0; collective < CW_COLLECTIVE_COUNT; collective++) {
        for (int class = 0; class < HOST_SIZE_CLASSES; class ++) {
            const struct host_account *account = &host->accounts[collective][class];
            if (account->calls > 0) {
                mpi_explain_calls(cw_collective_name((enum cw_collective)collective), "host",
                                  (uint32_t)host->comm->size, account->bytes, cw_measured_origin_name(account->origin),
                                  account->calls, 0, account->measured_ns);
            }
        }
    }
}

void mpi_host_destroy(struct mpi_host *host)
{
    if (host == NULL) {
        return;
    }
    if (host->accounts != NULL) {
        accounts_report(host);
        free(host->accounts);
    }
    if (host->segment.shared != NULL) {
        cw_segment_close(&host->segment);
        segment_count--;
    }
    free(host->ranks);
    free(host);
}
