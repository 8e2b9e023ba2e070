#include "mpi/collective/run/describe.h"

#include <stdio.h>
#include <string.h>

#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/phases.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/host/state.h"
#include "mpi/collective/run/agreement.h"
#include "mpi/collective/run/multicast_scatterv.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/point/describe.h"

enum { NAMED_MAX = 4, KIND_ROOT_BITS = 24, ROOT_BITS = 12 /* of plain collectives; the others tell sizes */ };

/* Kinds behind those of problem.h. */
enum {
    KIND_COUNTS = CW_COLLECTIVE_COUNT, /* of an alltoallv, before its data */
    KIND_ALLTOALLV,                    /* in the place of the root a digest of its phases, or 0 */
    KIND_AGREEMENT,                    /* on which plan serves an alltoallv */
    KIND_PLANNED,                      /* alltoallv by a plan, whose number is in the place of the root */
    KIND_TELLING,                      /* of a scatterv by multicast: the root's counts */
    KIND_SCATTERV,                     /* ... and its data */
};

/* Which call it is: all ranks count a communicator's calls alike. */
static void place_say(const struct mpi_collective *collective, struct mpi_said *said)
{
    struct cw_watch_answer *answer = &said->answer;
    uint64_t ordinal = (uint64_t)collective->ordinal + ((uint64_t)collective->run_count << 32);
    uint64_t place = (collective->comm->context + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ ordinal;
    size_t before = said->used;
    mpi_say(said, "call %u (%s", collective->ordinal, collective->name);
    if (!collective->by_pairs && cw_collective_rooted(collective->problem.collective)) {
        mpi_say(said, ", root %u", collective->problem.root);
    }
    mpi_say(said, ") on ");
    mpi_say_comm(said, collective->comm);
    if (answer->place == 0) {
        answer->place = place != 0 ? place : 1;
        snprintf(answer->where, sizeof(answer->where), "%s", answer->text + before);
    }
}

static void plan_describe(const struct mpi_collective *collective, struct mpi_said *said)
{
    char text[400];
    uint32_t awaited[CW_WATCH_AWAITED_MAX];
    if (collective->run == NULL) {
        return;
    }
    uint32_t count = cw_execution_awaited(collective->run->execution, awaited, CW_WATCH_AWAITED_MAX);
    const struct mpi_comm *comm = collective->run->exchange.comm; /* of some of the call's ranks, it may be */
    for (uint32_t i = 0; i < count; i++) {
        int rank = mpi_group_rank_of(collective->comm->group, comm->group->ranks[awaited[i]]);
        if (i < NAMED_MAX) {
            mpi_say(said, i == 0 ? ", waits for rank %d" : ", %d", rank);
        }
        mpi_say_awaited(said, collective->comm, rank);
    }
    cw_execution_describe(collective->run->execution, text, sizeof(text));
    const char *what = strstr(text, ": "); /* behind the own rank, which the line begins with */
    mpi_say(said, "%s; %s, %s", count > NAMED_MAX ? ", ..." : "", collective->plan->algorithm->name,
            what != NULL ? what + 2 : text);
}

static void pairs_describe(const struct mpi_collective *collective, struct mpi_said *said)
{
    int named = 0;
    for (int pair = 0; pair < collective->pair_count; pair++) {
        const struct mpi_request *request = &collective->pairs[pair];
        if (request->is_complete) {
            continue;
        }
        if (named++ < NAMED_MAX) {
            mpi_say(said, named == 1 ? ", waits for rank %d" : ", %d", request->peer);
        }
        mpi_say_awaited(said, collective->comm, request->peer);
    }
    mpi_say(said, "%s", named > NAMED_MAX ? ", ..." : "");
}

void mpi_describe_collective(const struct mpi_collective *collective, struct mpi_said *said)
{
    place_say(collective, said);
    if (collective->by_pairs) {
        pairs_describe(collective, said);
    } else {
        plan_describe(collective, said);
    }
}

void mpi_describe_host(const struct host_call *call, uint32_t owner, struct mpi_said *said)
{
    const struct mpi_comm *comm = call->of->comm;
    uint64_t entered = atomic_load_explicit(&call->segment->lines[call->rank].entered, memory_order_relaxed);
    uint32_t count = 0;
    place_say(call->of, said);
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        struct cw_segment_call other;
        uint64_t round = cw_segment_call_of(call->segment, rank, &other);
        if (round >= entered) {
            continue;
        }
        if (++count <= NAMED_MAX) {
            mpi_say(said, ", which rank %u has not entered", rank);
            if (round != 0) {
                mpi_say(said, " (its last one here by shared memory was %s)",
                        cw_collective_name((enum cw_collective)other.kind));
            }
        }
        mpi_say_awaited(said, comm, (int)rank);
    }
    if (count > NAMED_MAX) {
        mpi_say(said, "; and %u more have not", count - NAMED_MAX);
    }
    if (count == 0 && owner != UINT32_MAX) {
        mpi_say(said, ", which all ranks have entered; waits for data of rank %u", owner);
        mpi_say_awaited(said, comm, (int)owner);
    } else if (count == 0) {
        mpi_say(said, ", which all ranks have entered");
    }
}

/* ---- what ranks tell each other ---- */

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Of how many bytes a collective is about, between the root and the collective. */
static uint32_t size_digest(const struct cw_problem_request *problem)
{
    uint64_t hash = mixed(1, problem->count * problem->element_bytes);
    for (uint32_t rank = 0; problem->counts != NULL && rank < problem->ranks; rank++) {
        hash = mixed(hash, problem->counts[rank] * problem->element_bytes);
    }
    return (uint32_t)(hash & ((1u << (KIND_ROOT_BITS - ROOT_BITS)) - 1)) << ROOT_BITS;
}

uint32_t mpi_describe_kind(const struct mpi_collective *collective)
{
    const struct mpi_count_matrix *count_matrix = collective->count_matrix;
    if (collective->comm->collectives->outer != 0) {
        return collective->comm->collectives->outer - 1;
    }
    if (collective->agreement != NULL && collective->agreement->is_under_way) {
        return (uint32_t)KIND_AGREEMENT << KIND_ROOT_BITS;
    }
    if (collective->agreement != NULL && collective->planned != NULL) {
        return (uint32_t)KIND_PLANNED << KIND_ROOT_BITS | mpi_replay_number(collective->planned);
    }
    if (count_matrix != NULL && count_matrix->phases != NULL) {
        return (uint32_t)KIND_ALLTOALLV << KIND_ROOT_BITS |
               (mpi_phases_digest(count_matrix->phases) & ((1u << KIND_ROOT_BITS) - 1));
    }
    if (count_matrix != NULL) {
        return (uint32_t)(count_matrix->is_exchanging ? KIND_COUNTS : KIND_ALLTOALLV) << KIND_ROOT_BITS;
    }
    if (collective->scatterv == NULL) {
        return (uint32_t)collective->problem.collective << KIND_ROOT_BITS | size_digest(&collective->problem) |
               (collective->problem.root & ((1u << ROOT_BITS) - 1));
    }
    uint32_t kind = mpi_multicast_scatterv_is_telling(collective->scatterv) ? KIND_TELLING : KIND_SCATTERV;
    return kind << KIND_ROOT_BITS | (collective->problem.root & ((1u << KIND_ROOT_BITS) - 1));
}

static void kind_text(uint32_t kind, char *text, size_t text_bytes)
{
    uint32_t collective = kind >> KIND_ROOT_BITS;
    uint32_t root = kind & ((1u << KIND_ROOT_BITS) - 1);
    if (collective == KIND_COUNTS) {
        snprintf(text, text_bytes, "alltoallv, exchanging counts");
    } else if (collective == KIND_ALLTOALLV && root != 0) {
        snprintf(text, text_bytes, "alltoallv by phases %06x", root);
    } else if (collective == KIND_AGREEMENT) {
        snprintf(text, text_bytes, "alltoallv, agreeing on a plan");
    } else if (collective == KIND_PLANNED) {
        snprintf(text, text_bytes, "alltoallv by plan %u", root);
    } else if (collective == KIND_TELLING) {
        snprintf(text, text_bytes, "scatterv, root %u, telling counts", root);
    } else if (collective == KIND_SCATTERV) {
        snprintf(text, text_bytes, "scatterv, root %u", root);
    } else if (collective == KIND_ALLTOALLV) {
        snprintf(text, text_bytes, "alltoallv");
    } else if (collective >= CW_COLLECTIVE_COUNT) {
        snprintf(text, text_bytes, "an unknown collective");
    } else if (cw_collective_rooted((enum cw_collective)collective)) {
        snprintf(text, text_bytes, "%s, root %u", cw_collective_name(collective), root & ((1u << ROOT_BITS) - 1));
    } else {
        snprintf(text, text_bytes, "%s", cw_collective_name(collective));
    }
}

/* Both kinds for people; false: they differ in sizes only, and `text` says so. */
static bool kinds_text(uint32_t theirs, uint32_t ours, int rank, int own, char their_text[64], char our_text[64],
                       char *text, size_t text_bytes)
{
    kind_text(theirs, their_text, 64);
    kind_text(ours, our_text, 64);
    if (strcmp(their_text, our_text) != 0) {
        return true;
    }
    snprintf(text, text_bytes, "rank %d is in %s with another count than rank %d, or with a type of another size", rank,
             our_text, own);
    return false;
}

void mpi_describe_late(const struct mpi_comm *comm, int rank, uint32_t theirs, uint32_t ours, char *text,
                       size_t text_bytes)
{
    char their_text[64], our_text[64];
    if (kinds_text(theirs, ours, rank, comm->rank, their_text, our_text, text, text_bytes)) {
        snprintf(text, text_bytes, "rank %d was in %s, when rank %d was in %s", rank, their_text, comm->rank, our_text);
    }
}

void mpi_describe_mismatch(struct mpi_exchange *exchange, int rank, uint32_t kind)
{
    char theirs[64], ours[64];
    int own = exchange->comm->rank;
    if (kinds_text(kind, exchange->kind, rank, own, theirs, ours, exchange->why, sizeof(exchange->why))) {
        snprintf(exchange->why, sizeof(exchange->why), "rank %d is in %s, rank %d in %s", rank, theirs, own, ours);
    }
}
