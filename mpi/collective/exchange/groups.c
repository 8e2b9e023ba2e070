#include "mpi/collective/exchange/groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/job/job.h"
#include "dataplane/status.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/clusters/levels.h"
#include "mpi/collective/exchange/state.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/group/communicator.h"
#include "mpi/point/lost.h"
#include "mpi/runtime/explain.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"
#include "mpi/state/process.h"

/* Contexts are a rank and a number of 32 bits each, of which ranks need 20. */
#define SCOPE_HEADS (UINT64_C(1) << 61)

/* Opens a group of a communicator's ranks, unless one is lost: it would never open it. */
static void group_open(const struct mpi_comm *comm, uint64_t scope, const uint32_t *ranks, uint32_t count,
                       struct mpi_multicast_group *group)
{
    const struct cw_group_request request = {.scope = scope, .ranks = ranks, .count = count, .mcast = &group->open};
    if (group->group == NULL && mpi_clusters_can_multicast(comm) && !mpi_lost(comm, MPI_ANY_SOURCE) &&
        cw_group_open(cw_job_groups(mpi_process.job), &request, &group->group) != CW_OK) {
        group->group = NULL; /* no memory: multicasts are sent to each rank separately */
    }
}

void mpi_groups_open(struct mpi_comm *comm)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives != NULL) {
        group_open(comm, comm->context, comm->group->ranks, (uint32_t)comm->size, &collectives->multicast_group);
    }
}

void mpi_groups_open_heads(struct mpi_comm *comm)
{
    const struct mpi_levels *levels = comm->collectives->levels;
    if (!mpi_levels_is_head(comm) || comm->collectives->heads_group.group != NULL || levels->hosts < 2) {
        return;
    }
    uint32_t *ranks = malloc(levels->hosts * sizeof(*ranks));
    for (uint32_t host = 0; ranks != NULL && host < levels->hosts; host++) {
        ranks[host] = comm->group->ranks[levels->heads[host]];
    }
    if (ranks != NULL) {
        group_open(comm, comm->context | SCOPE_HEADS, ranks, levels->hosts, &comm->collectives->heads_group);
    }
    free(ranks);
}

void mpi_groups_open_all(struct mpi_comm *comm)
{
    mpi_groups_open(comm);
    if (comm->collectives != NULL && comm->collectives->levels != NULL) {
        mpi_groups_open_heads(comm);
    }
}

void mpi_groups_close(struct cw_group *group)
{
    if (group != NULL) {
        cw_group_close(group);
    }
}

/* How a group's multicasts travel, in a line; "" if there is none. */
static void group_why(const struct cw_group *group, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (group != NULL) {
        cw_group_why(group, text, text_bytes);
    }
}

const struct mpi_multicast_group *mpi_groups_find(const struct mpi_comm *comm, const uint32_t *peers,
                                                  uint32_t peer_count)
{
    const struct mpi_levels *levels = comm->collectives->levels;
    if (peer_count + 1 == (uint32_t)comm->size) {
        return &comm->collectives->multicast_group;
    }
    bool are_heads = levels != NULL && peer_count + 1 == levels->hosts && mpi_levels_is_head(comm);
    for (uint32_t i = 0; are_heads && i < peer_count; i++) {
        are_heads = levels->heads[levels->host_of[peers[i]]] == peers[i];
    }
    return are_heads ? &comm->collectives->heads_group : NULL;
}

void mpi_groups_message(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint64_t bytes)
{
    (void)context, (void)lane_tag;
    mpi_collective_message(rank, data, (uint32_t)bytes);
}

/* ---- what happened ---- */

static const char *name_of(const struct mpi_comm *comm)
{
    return comm->name[0] == '\0' ? "a communicator without a name" : comm->name;
}

static void compression_report(const struct mpi_comm *comm, FILE *out)
{
    const struct cw_group *group = comm->collectives == NULL ? NULL : comm->collectives->multicast_group.group;
    char name[MPI_MAX_OBJECT_NAME + 32], text[MPI_MAX_OBJECT_NAME + 512];
    snprintf(name, sizeof(name), "the group of %s", name_of(comm));
    for (enum cw_element element = 0; group != NULL && element < CW_ELEMENTS; element++) {
        struct cw_compression_report report = {.codec = CW_CODEC_NONE};
        if (cw_group_compression(group, element, &report) &&
            mpi_explain_compression(element, &report, name, text, sizeof(text))) {
            fprintf(out, "%s\n", text);
        }
    }
}

char *mpi_groups_report(void)
{
    struct cw_groups *groups = cw_job_groups(mpi_process.job);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = groups == NULL ? NULL : open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    for (struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after(comm)) {
        const struct mpi_collectives *collectives = comm->collectives;
        char why[CW_GROUPS_WHY_BYTES], heads_why[CW_GROUPS_WHY_BYTES];
        group_why(collectives == NULL ? NULL : collectives->multicast_group.group, why, sizeof(why));
        group_why(collectives == NULL ? NULL : collectives->heads_group.group, heads_why, sizeof(heads_why));
        if (mpi_clusters_are_several(comm)) {
            fprintf(out, "group of %s: none, since its ranks are in several clusters\n", name_of(comm));
        } else if (why[0] != '\0') {
            fprintf(out, "group of %s: %s\n", name_of(comm), why);
        }
        if (heads_why[0] != '\0') {
            fprintf(out, "group of the hosts of %s: %s\n", name_of(comm), heads_why);
        }
        compression_report(comm, out);
    }
    struct cw_groups_info info = cw_groups_info(groups);
    const struct cw_mcast_counters *packets = &info.packets;
    if (info.floods) {
        fprintf(out, "multicast packets reach ports that have not joined the group. Fix: enable IGMP and MLD snooping "
                     "in the switches\n");
    }
    if (packets->data_out + packets->acks_out > 0) {
        fprintf(out,
                "multicast: %" PRIu64 " packets, %" PRIu64 " repairs to all, %" PRIu64 " to one member, %" PRIu64
                " forwarded; acknowledgements: %" PRIu64 " sent, %" PRIu64 " received; naks: %" PRIu64 " sent, %" PRIu64
                " received; %" PRIu64 " state packets\n",
                packets->data_out, packets->repairs_out, packets->repairs_one_out, packets->relayed, packets->acks_out,
                packets->acks_in, packets->naks_out, packets->naks_in, packets->states_out);
    }
    fclose(out);
    return text;
}

/* ---- the end ---- */

static bool is_finished(void *context)
{
    (void)context;
    return !cw_groups_is_closing(cw_job_groups(mpi_process.job));
}

static void finish_describe(void *context, struct mpi_said *said)
{
    (void)context;
    mpi_describe(said, "all ranks to be done with the multicast groups that they share");
    uint32_t rank = cw_groups_awaited(cw_job_groups(mpi_process.job));
    if (rank != UINT32_MAX) {
        said->answer.awaited[said->answer.awaited_count++] = rank;
    }
}

void mpi_groups_finish(void)
{
    if (cw_job_groups(mpi_process.job) != NULL && !is_finished(NULL)) {
        mpi_progress_wait(&(struct mpi_wait){.is_over = is_finished, .describe = finish_describe});
    }
}
