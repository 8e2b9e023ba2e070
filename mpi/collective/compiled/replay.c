#include "mpi/collective/compiled/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "collectives/check/check.h"
#include "collectives/file/bundle.h"
#include "dataplane/status.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/compiled/plans.h"
#include "mpi/collective/compiled/replay_contents.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

struct mpi_replay_entry {
    struct mpi_plan *plan;
    struct cw_problem *problem;
    uint32_t number; /* of the communicator's, from 1 on */
    bool is_agreed;
    uint32_t bit;
    uint64_t row[2]; /* digest of this rank's sends and expected receives */
    uint64_t now_ns; /* as recorded */
};

struct mpi_replay {
    uint32_t agreed_count;
    uint32_t entry_count;
    bool has[CW_COLLECTIVE_COUNT]; /* plans for a collective, of any size */
    struct mpi_replay_entry entries[];
};

enum miss { MISS_COUNTS, MISS_SIZE, MISS_NONE, MISSES };

static struct {
    uint64_t hits;
    uint64_t misses[MISSES];
    int64_t saved_ns;
    uint32_t unusable; /* plans that this job's paths cannot carry out, or this version does not know */
} counted;

static struct cw_bundle *bundle;
static bool is_on;

/* ---- the bundle ---- */

int mpi_replay_start(char *error, size_t error_bytes)
{
    const void *bytes;
    size_t length;
    char reason[500] = "no memory to check it";
    int code = mpi_replay_contents_finish(&bytes, &length, error, error_bytes);
    if (code != MPI_SUCCESS || bytes == NULL) {
        return code;
    }
    if (cw_bundle_decode(bytes, length, &bundle, reason, sizeof(reason)) != CW_OK) {
        snprintf(error, error_bytes, "%s: %s; `causeway plan compile` makes one", mpi_replay_contents_place(), reason);
        return MPI_ERR_FILE;
    }
    if (bundle->ranks != mpi_process.size) {
        snprintf(error, error_bytes,
                 "%s was compiled for %u ranks, this job has %u; record and compile it with as many",
                 mpi_replay_contents_place(), bundle->ranks, mpi_process.size);
        return MPI_ERR_FILE;
    }
    if (mpi_process.rank == 0 &&
        strncmp(bundle->program, program_invocation_short_name, sizeof(bundle->program) - 1) != 0) {
        snprintf(error, error_bytes, "%s was compiled for the program %s, this one is %s; record and compile this one",
                 mpi_replay_contents_place(), bundle->program, program_invocation_short_name);
        return MPI_ERR_FILE;
    }
    /* rank 0's contents apply to all */
    for (uint32_t i = 0; mpi_process.rank == 0 && i < bundle->plan_count; i++) {
        if (cw_check_validate(bundle->plans[i].plan, reason, sizeof(reason)) != CW_OK) {
            snprintf(error, error_bytes, "%s: number %u: %s; `causeway plan compile` makes another",
                     mpi_replay_contents_place(), i + 1, reason);
            return MPI_ERR_FILE;
        }
    }
    is_on = true;
    mpi_replay_attach(mpi_comm_world); /* the others are made later */
    return MPI_SUCCESS;
}

bool mpi_replay_is_on(void)
{
    return is_on;
}

void mpi_replay_clear(void)
{
    cw_bundle_destroy(bundle);
    bundle = NULL;
    is_on = false;
    memset(&counted, 0, sizeof(counted));
    mpi_replay_contents_clear();
}

/* ---- communicators ---- */

/* Whether MPI's transport can execute it in this job. The same at all ranks: their limits are. */
static bool is_usable(const struct cw_plan *plan)
{
    uint64_t longest = mpi_process.eager_max_bytes, longest_multicast = mpi_clusters_multicast_eager_max();
    if (cw_algorithm_find(plan->problem->collective, plan->algorithm) == NULL) {
        return false;
    }
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        const struct cw_schedule *schedule = &plan->schedules[rank];
        if (schedule->host_count > 0) {
            return false; /* hosts are known when the job runs */
        }
        for (uint32_t i = 0; i < schedule->op_count; i++) {
            const struct cw_op *op = &schedule->ops[i];
            uint64_t most = op->kind == CW_OP_MULTICAST ? longest_multicast : longest;
            bool sends = op->kind == CW_OP_PUT || op->kind == CW_OP_MULTICAST;
            if (sends && (op->flags & CW_OP_EAGER) != 0 && (op->bytes > most || op->last_bytes > most)) {
                return false;
            }
        }
    }
    return true;
}

static void row_digest(const uint64_t *row, uint32_t ranks, uint64_t digest[2])
{
    XXH128_hash_t hash = XXH3_128bits(row, 2ull * ranks * sizeof(*row));
    digest[0] = hash.low64;
    digest[1] = hash.high64;
}

/* A rank that has no plan where the others have one would hang them. */
static _Noreturn void memory_missing(void)
{
    fprintf(stderr, "causeway: rank %u: no memory for the plans of %s\n", mpi_process.rank,
            mpi_replay_contents_place());
    mpi_process_abort(MPI_ERR_NO_MEM);
}

/* Takes this rank's part and the problem out of the bundle, which no other code needs: contexts come once. */
static void entry_make(struct mpi_replay *replay, struct cw_bundle_plan *from, uint32_t rank)
{
    struct mpi_replay_entry *entry = &replay->entries[replay->entry_count];
    struct cw_plan *plan = from->plan;
    const struct cw_problem *problem = plan->problem;
    struct cw_schedule schedule = plan->schedules[rank];
    plan->schedules[rank] = (struct cw_schedule){0};
    const struct cw_algorithm *algorithm = cw_algorithm_find(problem->collective, plan->algorithm);
    struct mpi_plan *made = mpi_plan_make(problem, rank, algorithm, &plan->parameters, &schedule);
    uint64_t *row = malloc(2ull * problem->ranks * sizeof(*row));
    if (made == NULL || row == NULL) {
        free(row);
        memory_missing();
        return; /* for the compiler, which does not see that it does not return */
    }
    made->origin = CW_BY_PLAN;
    made->predicted_ns = (double)from->then_ns;
    *entry = (struct mpi_replay_entry){
        .plan = made,
        .number = ++replay->entry_count,
        .is_agreed = problem->collective == CW_ALLTOALL && problem->has_counts,
        .now_ns = from->now_ns,
    };
    for (uint32_t other = 0; entry->is_agreed && other < problem->ranks; other++) {
        row[other] = cw_problem_pair_bytes(problem, rank, other);
        row[problem->ranks + other] = cw_problem_pair_bytes(problem, other, rank);
    }
    if (entry->is_agreed) {
        row_digest(row, problem->ranks, entry->row);
        entry->bit = replay->agreed_count++;
    } else {
        replay->has[problem->collective] = true;
    }
    free(row);
    entry->problem = cw_plan_release(plan);
    from->plan = NULL;
}

static bool comm_fits(const struct cw_bundle_comm *known, const struct mpi_comm *comm)
{
    return known->context == comm->context && known->size == (uint32_t)comm->size &&
           memcmp(known->members, comm->group->ranks, known->size * sizeof(*known->members)) == 0;
}

void mpi_replay_attach(struct mpi_comm *comm)
{
    uint32_t index = 0, count = 0;
    while (bundle != NULL && index < bundle->comm_count && !comm_fits(&bundle->comms[index], comm)) {
        index++;
    }
    if (bundle == NULL || index == bundle->comm_count || comm->size < 2) {
        return;
    }
    for (uint32_t i = 0; i < bundle->plan_count; i++) {
        count += bundle->plans[i].comm == index;
    }
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    struct mpi_replay *made = calloc(1, sizeof(*made) + count * sizeof(made->entries[0]));
    if (collectives == NULL || made == NULL) {
        memory_missing();
    }
    for (uint32_t i = 0; i < bundle->plan_count; i++) {
        struct cw_bundle_plan *plan = &bundle->plans[i];
        if (plan->comm != index || plan->plan == NULL) {
            continue;
        }
        if (is_usable(plan->plan)) {
            entry_make(made, plan, (uint32_t)comm->rank);
        } else {
            counted.unusable++;
        }
    }
    collectives->replay = made;
    if (bundle->comms[index].opens_group) {
        mpi_groups_open(comm);
    }
}

void mpi_replay_detach(struct mpi_replay *replay)
{
    for (uint32_t i = 0; replay != NULL && i < replay->entry_count; i++) {
        mpi_plan_drop(replay->entries[i].plan);
        cw_problem_destroy(replay->entries[i].problem);
    }
    free(replay);
}

/* ---- calls ---- */

static struct mpi_replay *replay_of(const struct mpi_comm *comm)
{
    return is_on && comm->collectives != NULL ? comm->collectives->replay : NULL;
}

static bool problem_fits(const struct cw_problem *problem, const struct cw_problem_request *request)
{
    if (problem->collective != request->collective || problem->root != request->root ||
        problem->element_bytes != request->element_bytes || problem->ordered != request->ordered ||
        problem->has_counts != (request->counts != NULL)) {
        return false;
    }
    return request->counts == NULL
               ? problem->count == request->count
               : memcmp(problem->counts, request->counts, problem->ranks * sizeof(*problem->counts)) == 0;
}

struct mpi_replay_entry *mpi_replay_find(const struct mpi_collective *collective)
{
    struct mpi_replay *replay = replay_of(collective->comm);
    if (replay == NULL || collective->has_rows || collective->count_matrix != NULL ||
        !replay->has[collective->problem.collective]) {
        return NULL;
    }
    for (uint32_t i = 0; i < replay->entry_count; i++) {
        if (!replay->entries[i].is_agreed && problem_fits(replay->entries[i].problem, &collective->problem)) {
            return &replay->entries[i];
        }
    }
    return NULL;
}

struct mpi_plan *mpi_replay_plan(const struct mpi_replay_entry *entry)
{
    return entry->plan;
}

uint32_t mpi_replay_number(const struct mpi_replay_entry *entry)
{
    return entry->number;
}

bool mpi_replay_needs_agreement(const struct mpi_comm *comm)
{
    const struct mpi_replay *replay = replay_of(comm);
    return replay != NULL && replay->agreed_count > 0;
}

uint32_t mpi_replay_words(const struct mpi_comm *comm)
{
    return (comm->collectives->replay->agreed_count + 63) / 64;
}

void mpi_replay_fit(const struct mpi_comm *comm, const uint64_t *row, uint64_t *bits)
{
    const struct mpi_replay *replay = comm->collectives->replay;
    uint64_t digest[2];
    row_digest(row, (uint32_t)comm->size, digest);
    for (uint32_t i = 0; i < replay->entry_count; i++) {
        const struct mpi_replay_entry *entry = &replay->entries[i];
        if (entry->is_agreed && entry->row[0] == digest[0] && entry->row[1] == digest[1]) {
            bits[entry->bit / 64] |= 1ull << entry->bit % 64;
        }
    }
}

struct mpi_replay_entry *mpi_replay_elect(const struct mpi_comm *comm, const uint64_t *all)
{
    struct mpi_replay *replay = comm->collectives->replay;
    uint32_t words = mpi_replay_words(comm);
    for (uint32_t i = 0; i < replay->entry_count; i++) {
        struct mpi_replay_entry *entry = &replay->entries[i];
        uint64_t common = entry->is_agreed ? 1ull << entry->bit % 64 : 0;
        for (int rank = 0; rank < comm->size && common != 0; rank++) {
            common &= all[(uint64_t)rank * words + entry->bit / 64];
        }
        if (common != 0) {
            return entry;
        }
    }
    return NULL;
}

/* ---- what it was worth ---- */

void mpi_replay_count(const struct mpi_collective *collective, bool is_served, uint64_t took_ns)
{
    const struct mpi_replay *replay = replay_of(collective->comm);
    if (!is_on) {
        return;
    }
    if (is_served) {
        counted.hits++;
        counted.saved_ns += (int64_t)collective->planned->now_ns - (int64_t)took_ns;
    } else if (collective->agreement != NULL) {
        counted.misses[MISS_COUNTS]++;
    } else if (replay != NULL && !collective->has_rows && replay->has[collective->problem.collective]) {
        counted.misses[MISS_SIZE]++;
    } else {
        counted.misses[MISS_NONE]++;
    }
}

void mpi_replay_report(void)
{
    if (!is_on) {
        return;
    }
    is_on = false; /* later calls are the library's own */
    int64_t saved_ns = counted.saved_ns, all_ns = 0;
    (void)mpi_reduce(&saved_ns, &all_ns, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (mpi_process.rank != 0) {
        return;
    }
    const uint64_t *misses = counted.misses;
    double mean_ms = (double)all_ns / mpi_process.size / 1e6;
    fprintf(stderr,
            "causeway: %s: %" PRIu64 " hits, %" PRIu64 " misses (%" PRIu64 " by counts, %" PRIu64
            " by size or root), %" PRIu64 " calls that it has no plan for; %.3f ms %s a rank, against the times "
            "recorded\n",
            mpi_replay_contents_place(), counted.hits, misses[MISS_COUNTS] + misses[MISS_SIZE], misses[MISS_COUNTS],
            misses[MISS_SIZE], misses[MISS_NONE], mean_ms < 0 ? -mean_ms : mean_ms, mean_ms < 0 ? "lost" : "saved");
    if (counted.unusable > 0) {
        fprintf(
            stderr,
            "causeway: %s: %" PRIu32
            " plans cannot be carried out in this job: its paths take less at once, or an algorithm is unknown here\n",
            mpi_replay_contents_place(), counted.unusable);
    }
}
