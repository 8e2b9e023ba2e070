#include "mpi/collective/choice/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/override.h"
#include "dataplane/status.h"
#include "mpi/collective/choice/choice_contents.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/clusters/levels.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/group/hosts.h"
#include "mpi/runtime/info.h"
#include "mpi/state/process.h"

/* The choice for a class of sizes of a collective on a number of ranks. */
struct kept {
    struct kept *next;
    enum cw_collective collective;
    enum cw_measured_path path;
    uint32_t ranks;
    uint32_t element_bytes;
    uint32_t size_class;
    bool ordered;
    uint64_t clusters; /* digest of several, else 0 */
    uint64_t levels;   /* the same of hosts, of a level among these */
    uint64_t single_eager_max_bytes;
    struct mpi_choice choice;
};

static struct kept *all_kept;
static struct cw_measured *measured; /* NULL: nothing */
static struct cw_override override;  /* by the environment */
int mpi_choice_start(char *error, size_t error_bytes)
{
    const char *words;
    const char *text;
    size_t text_bytes;
    char reason[600];
    int code = mpi_contents_finish(&words, &text, &text_bytes, error, error_bytes);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (cw_override_parse(words, &override, reason, sizeof(reason)) != CW_OK) {
        snprintf(error, error_bytes, "CAUSEWAY_ALGORITHM: %s", reason);
        return MPI_ERR_ARG;
    }
    if (text_bytes > 0 && cw_measured_decode(text, text_bytes, &measured, reason, sizeof(reason)) != CW_OK) {
        snprintf(error, error_bytes, "%s: %s", mpi_contents_place(), reason);
        return MPI_ERR_FILE;
    }
    return MPI_SUCCESS;
}

static enum cw_measured_path wire_path(void)
{
    return cw_job_all_have_rdma(mpi_process.job) ? CW_MEASURED_RDMA : CW_MEASURED_WIRE;
}

/* The same at all ranks of a communicator: if one rank is on another host than some rank, then the reverse holds
 * too. */
enum cw_measured_path mpi_choice_path(const struct mpi_comm *comm)
{
    for (int rank = 0; rank < comm->size; rank++) {
        uint32_t world = comm->group->ranks[rank];
        if (world != mpi_process.rank && !cw_paths_is_here(mpi_process.paths, world)) {
            return wire_path();
        }
    }
    return CW_MEASURED_SHARED;
}

/* Sizes of a class differ by less than a factor of two. */
static uint32_t size_class(uint64_t count)
{
    uint32_t class = 0;
    while (count >> class != 0) {
        class ++;
    }
    return class;
}

/* The smallest size of a class. */
static uint64_t class_count(uint32_t class)
{
    return class == 0 ? 0 : 1ull << (class - 1);
}

static bool has_neighbour(const struct mpi_comm *comm, int rank)
{
    int before = 0;
    while (before < rank &&
           cw_paths_hosts_compare(mpi_process.paths, comm->group->ranks[before], comm->group->ranks[rank]) != 0) {
        before++;
    }
    return before < rank;
}

/* Whether no two ranks are on the same host. All ranks have to agree: without memory, all pairs are compared. */
static bool are_apart(const struct mpi_comm *comm)
{
    int *lists = malloc(2 * (size_t)comm->size * sizeof(*lists));
    int hosts = lists == NULL ? 0 : mpi_hosts_number(comm, lists, lists + comm->size);
    bool apart = hosts == 0 || hosts == comm->size;
    for (int rank = 1; rank < comm->size && hosts == 0 && apart; rank++) {
        apart = !has_neighbour(comm, rank);
    }
    free(lists);
    return apart;
}

/* The longest single message that goes without a handshake: between ranks of different hosts where a handshake costs
 * more than a copy, and to other clusters. The same at all ranks of the communicator. */
static uint64_t single_eager_max(struct mpi_comm *comm)
{
    struct mpi_collectives *collectives = comm->collectives;
    uint64_t early = mpi_clusters_eager_max((uint32_t)comm->size);
    uint64_t most = early < mpi_process.wire_eager_max_bytes ? early : mpi_process.wire_eager_max_bytes;
    if (mpi_clusters_are_several(comm)) {
        return early;
    }
    if (collectives == NULL || most <= mpi_process.eager_max_bytes) {
        return 0; /* so only few ranks are compared */
    }
    if (!collectives->knows_apart) {
        collectives->is_apart = are_apart(comm);
        collectives->knows_apart = true;
    }
    return collectives->is_apart ? most : 0;
}

/* Asks for the class, with root 0 and equal counts, of one cluster if `wide` is NULL. */
static int choice_query(const struct cw_problem_request *request, const struct kept *kept,
                        const struct cw_measured_wan *wide, bool multicasts, struct mpi_choice *choice, char *error,
                        size_t error_bytes)
{
    struct cw_problem_request typical = *request;
    struct cw_problem *problem;
    struct cw_candidate best;
    typical.root = 0;
    typical.count = class_count(kept->size_class);
    typical.counts = NULL;
    typical.host_count = 0; /* choice_levels has asked for those */
    if (wide == NULL) {
        typical.cluster_count = 0;
        typical.cluster_of = typical.cluster_via = NULL;
    }
    int status = cw_problem_create(&typical, &problem, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    const struct cw_choose_request wanted = {
        .problem = problem,
        .eager_max_bytes = mpi_process.eager_max_bytes,
        .multicast = multicasts,
        .multicast_eager_max_bytes = mpi_clusters_multicast_eager_max(),
        .single_eager_max_bytes = wide == NULL && kept->clusters != 0 ? 0 : kept->single_eager_max_bytes,
    };
    status = cw_measured_choose(measured, kept->path, wide, &wanted, &best, &choice->origin);
    cw_problem_destroy(problem);
    if (status != CW_OK) {
        snprintf(error, error_bytes, "no algorithm fits");
        return status;
    }
    choice->algorithm = best.algorithm;
    choice->parameters = best.parameters;
    choice->time_ns = best.time_ns;
    return CW_OK;
}

/* Problems of several clusters that are too large to be priced are asked about as if there was one. */
static int choice_make(struct mpi_comm *comm, const struct cw_problem_request *request, struct kept *kept, char *error,
                       size_t error_bytes)
{
    const struct mpi_clusters *clusters = mpi_clusters_of(comm);
    bool multicasts = mpi_clusters_can_multicast(comm);
    int status = choice_query(request, kept, clusters != NULL ? &clusters->wan : NULL, multicasts, &kept->choice, error,
                              error_bytes);
    if (status == CW_ERROR_UNSUPPORTED && clusters != NULL) {
        status = choice_query(request, kept, NULL, multicasts, &kept->choice, error, error_bytes);
    }
    return status;
}

/* `levels`: the request is of the level among hosts, of those with that digest; 0: it is of all ranks. */
static int choice_keep(struct mpi_comm *comm, const struct cw_problem_request *request, uint64_t levels,
                       struct mpi_choice *choice, char *error, size_t error_bytes)
{
    uint32_t class = size_class(request->count);
    enum cw_measured_path path = mpi_choice_path(comm);
    const struct mpi_clusters *clusters = mpi_clusters_of(comm);
    uint64_t digest = clusters != NULL ? clusters->digest : 0, single_bytes = single_eager_max(comm);
    for (struct kept *kept = all_kept; kept != NULL; kept = kept->next) {
        if (kept->collective == request->collective && kept->path == path && kept->ranks == request->ranks &&
            kept->size_class == class && kept->element_bytes == request->element_bytes &&
            kept->ordered == request->ordered && kept->clusters == digest && kept->levels == levels &&
            kept->single_eager_max_bytes == single_bytes) {
            *choice = kept->choice;
            return CW_OK;
        }
    }
    struct kept *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    *made = (struct kept){
        .next = all_kept,
        .collective = request->collective,
        .path = path,
        .ranks = request->ranks,
        .element_bytes = request->element_bytes,
        .size_class = class,
        .ordered = request->ordered,
        .clusters = digest,
        .levels = levels,
        .single_eager_max_bytes = single_bytes,
    };
    int status = choice_make(comm, request, made, error, error_bytes);
    if (status != CW_OK) {
        free(made);
        return status;
    }
    all_kept = made;
    *choice = made->choice;
    return CW_OK;
}

/* ---- by name ---- */

/* The call by which an override names a problem. */
static uint32_t call_of(enum cw_collective collective, bool has_counts)
{
    return collective == CW_ALLTOALL && has_counts ? CW_OVERRIDE_ALLTOALLV : (uint32_t)collective;
}

/* The override of a communicator: its hint, else the environment's word. "": nothing. A hint that cannot be understood
 * is none, as the standard has it. */
static const char *name_overriding(const struct mpi_comm *comm, uint32_t call, struct cw_parameters *parameters,
                                   struct cw_override *room)
{
    char reason[600];
    const char *hint = comm->info == NULL ? NULL : mpi_info_value(comm->info, "causeway_algorithm");
    const struct cw_override *from = &override;
    if (hint != NULL && cw_override_parse(hint, room, reason, sizeof(reason)) == CW_OK &&
        room->of[call].name[0] != '\0') {
        from = room;
    }
    *parameters = from->of[call].parameters;
    return from->of[call].name;
}

bool mpi_choice_understands(const char *hint)
{
    struct cw_override room;
    char reason[600];
    return cw_override_parse(hint, &room, reason, sizeof(reason)) == CW_OK;
}

static double time_tested(const struct mpi_comm *comm, const struct cw_problem *problem, const char *name)
{
    double time_ns = 0;
    (void)cw_measured_standing(measured, mpi_choice_path(comm), problem, name, &time_ns);
    return time_ns;
}

/* False: no override fits. Without a setting for senders, as many are used as fill the link. */
static bool choice_override(struct mpi_comm *comm, const struct cw_problem *problem, struct mpi_choice *choice)
{
    struct cw_override room;
    struct cw_parameters parameters;
    char reason[200];
    const char *name = name_overriding(comm, call_of(problem->collective, problem->has_counts), &parameters, &room);
    const struct cw_algorithm *algorithm = name[0] == '\0' ? NULL : cw_algorithm_find(problem->collective, name);
    if (algorithm == NULL || cw_algorithm_fits(algorithm, problem, reason, sizeof(reason)) != CW_OK) {
        return false;
    }
    if ((algorithm->takes & CW_TAKES_SENDERS) != 0 && parameters.senders == 0 && mpi_clusters_of(comm) != NULL) {
        parameters.senders = cw_measured_senders(&mpi_clusters_of(comm)->wan);
    }
    *choice = (struct mpi_choice){
        .algorithm = algorithm,
        .parameters = parameters,
        .time_ns = time_tested(comm, problem, name),
        .origin = CW_BY_NAME,
    };
    return true;
}

/* The first algorithm that fits: where the one of the class does not (other counts). */
static const struct cw_algorithm *algorithm_first(const struct cw_problem *problem)
{
    char reason[200];
    const struct cw_algorithm *algorithm;
    for (uint32_t index = 0; (algorithm = cw_algorithm_at(index)) != NULL; index++) {
        if (algorithm->collective == problem->collective &&
            (algorithm->needs & (CW_NEEDS_CLUSTERS | CW_NEEDS_MULTICAST)) == 0 &&
            cw_algorithm_fits(algorithm, problem, reason, sizeof(reason)) == CW_OK) {
            return algorithm;
        }
    }
    return NULL;
}

/* ---- by levels ---- */

enum {
    COPIES = 4, /* of each byte by the first rank, one after the other: to it, for the hosts, from the hosts, from it */
    HOPS = 3,   /* within the host: to the first rank, among the hosts, from it */
};

/* Whether an all-to-all goes by way of the hosts' first ranks: compares the work of the busiest core, of its ranks, or
 * of the first ranks among them. */
static bool alltoall_pays(const struct mpi_comm *comm, const struct cw_problem *problem)
{
    struct cw_network wire, shared;
    uint32_t ranks = problem->ranks, own = cw_problem_host_size(problem, 0), hosts = problem->hosts.count;
    if (problem->count == 0 || mpi_clusters_are_several(comm)) {
        return false; /* nothing needs to be sent, or there are schedules for clusters */
    }
    (void)cw_measured_network(measured, wire_path(), ranks, &wire);
    (void)cw_measured_network(measured, CW_MEASURED_SHARED, ranks, &shared);
    double ranks_a_core = mpi_process.crowding, heads_a_core = (double)((mpi_process.crowding + own - 1) / own);
    double messages = ranks_a_core * (ranks - own) - heads_a_core * (hosts - 1); /* fewer */
    double bytes = (double)own * ranks * (double)(problem->count * problem->element_bytes);
    double hop = shared.paths[0].latency_ns + cw_plogp_gap(&shared.paths[0], 0);
    return messages * cw_plogp_gap(&wire.paths[0], 0) >
           heads_a_core * COPIES * bytes * shared.copy_ns_per_byte + ranks_a_core * HOPS * hop;
}

/* The algorithm for the level among hosts, as for as many ranks that are alone on theirs. */
static int choice_inner(struct mpi_comm *comm, const struct cw_problem *problem, struct mpi_choice *choice, char *error,
                        size_t error_bytes)
{
    struct cw_problem *heads;
    struct mpi_choice inner;
    int status = cw_problem_heads(problem, &heads, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    const struct cw_problem_request request = {
        .collective = heads->collective,
        .ranks = heads->ranks,
        .element_bytes = heads->element_bytes,
        .count = heads->count,
        .cluster_count = heads->cluster_count,
        .cluster_of = heads->clusters.of,
        .cluster_via = heads->cluster_via,
    };
    status = choice_keep(comm, &request, comm->collectives->levels->digest, &inner, error, error_bytes);
    cw_problem_destroy(heads);
    if (status == CW_OK) {
        choice->parameters = inner.parameters;
        choice->parameters.inner = inner.algorithm->name;
        choice->time_ns = 0; /* the levels within hosts have no formula */
    }
    return status;
}

/* The algorithm of levels for a problem of this number of hosts. */
static const struct cw_algorithm *levels_algorithm(enum cw_collective collective, uint32_t hosts)
{
    return cw_algorithm_find(collective, hosts == 1 ? "host" : "hierarchical");
}

/* Whether a call has levels: unless another algorithm is asked for by name, or the fastest in tests. */
static enum mpi_choice_verdict levels_check(const struct mpi_comm *comm, const struct cw_problem *problem,
                                            const struct cw_algorithm *algorithm)
{
    struct cw_override room;
    struct cw_parameters parameters;
    const char *wanted = name_overriding(comm, call_of(problem->collective, problem->has_counts), &parameters, &room);
    if (wanted[0] != '\0') {
        return strcmp(wanted, algorithm->name) == 0 ? MPI_CHOICE_OVERRIDE : MPI_CHOICE_NO;
    }
    enum cw_measured_standing standing =
        measured == NULL ? CW_STANDING_UNKNOWN
                         : cw_measured_standing(measured, mpi_choice_path(comm), problem, algorithm->name, NULL);
    return standing == CW_STANDING_UNKNOWN ? MPI_CHOICE_OPEN
           : standing == CW_STANDING_FIRST ? MPI_CHOICE_TESTED
                                           : MPI_CHOICE_NO;
}

enum mpi_choice_verdict mpi_choice_levels(struct mpi_comm *comm, const struct cw_problem_request *request)
{
    struct cw_problem *problem;
    char reason[200];
    uint32_t hosts = mpi_choice_path(comm) == CW_MEASURED_SHARED ? 1 : 2;
    const struct cw_algorithm *algorithm = levels_algorithm(request->collective, hosts);
    if (algorithm == NULL || ((algorithm->needs & CW_NEEDS_COMMUTATIVE) != 0 && request->ordered) ||
        ((algorithm->needs & CW_NEEDS_EQUAL) != 0 && request->counts != NULL) ||
        cw_problem_create(request, &problem, reason, sizeof(reason)) != CW_OK) {
        return MPI_CHOICE_NO;
    }
    enum mpi_choice_verdict verdict = levels_check(comm, problem, algorithm);
    cw_problem_destroy(problem);
    return verdict;
}

/* False: the call has none. */
static bool choice_levels(struct mpi_comm *comm, const struct cw_problem *problem, struct mpi_choice *choice,
                          char *error, size_t error_bytes, int *status)
{
    char reason[200];
    const struct cw_algorithm *algorithm =
        problem->hosts.count == 0 ? NULL : levels_algorithm(problem->collective, problem->hosts.count);
    if (algorithm == NULL || cw_algorithm_fits(algorithm, problem, reason, sizeof(reason)) != CW_OK) {
        return false;
    }
    enum mpi_choice_verdict verdict = levels_check(comm, problem, algorithm);
    if (verdict == MPI_CHOICE_NO || (verdict == MPI_CHOICE_OPEN && problem->collective == CW_ALLTOALL &&
                                     problem->hosts.count > 1 && !alltoall_pays(comm, problem))) {
        return false;
    }
    *choice = (struct mpi_choice){
        .algorithm = algorithm,
        .parameters = cw_parameters_default(),
        .time_ns = time_tested(comm, problem, algorithm->name),
        .origin = verdict == MPI_CHOICE_OVERRIDE ? CW_BY_NAME
                  : verdict == MPI_CHOICE_TESTED ? CW_BY_TEST
                                                 : CW_BY_LEVELS,
    };
    *status = problem->hosts.count > 1 ? choice_inner(comm, problem, choice, error, error_bytes) : CW_OK;
    return true;
}

int mpi_choice_find(struct mpi_comm *comm, const struct cw_problem_request *request, bool has_levels,
                    struct mpi_choice *choice, char *error, size_t error_bytes)
{
    struct cw_problem *problem;
    const struct cw_problem_request wide = mpi_clusters_request(comm, request, has_levels);
    char reason[200];
    int status = cw_problem_create(&wide, &problem, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    if (!choice_levels(comm, problem, choice, error, error_bytes, &status) && !choice_override(comm, problem, choice)) {
        status = choice_keep(comm, &wide, 0, choice, error, error_bytes);
    }
    if (status == CW_OK && cw_algorithm_fits(choice->algorithm, problem, reason, sizeof(reason)) != CW_OK) {
        choice->algorithm = algorithm_first(problem);
        choice->time_ns = 0;
        if (choice->algorithm == NULL) {
            snprintf(error, error_bytes, "no algorithm fits");
            status = CW_ERROR_UNSUPPORTED;
        }
    }
    choice->parameters.eager_max_bytes = mpi_process.eager_max_bytes;
    choice->parameters.multicast_eager_max_bytes = mpi_clusters_multicast_eager_max();
    choice->parameters.single_eager_max_bytes = single_eager_max(comm);
    cw_problem_destroy(problem);
    return status;
}

bool mpi_choice_is_scheduled(const struct mpi_comm *comm)
{
    struct cw_override room;
    struct cw_parameters parameters;
    const char *name = name_overriding(comm, CW_OVERRIDE_ALLTOALLV, &parameters, &room);
    return name[0] != '\0' && strcmp(name, CW_OVERRIDE_PAIRS) != 0;
}

const char *mpi_choice_scatterv(const struct mpi_comm *comm)
{
    struct cw_override room;
    struct cw_parameters parameters;
    const char *name = name_overriding(comm, CW_OVERRIDE_SCATTERV, &parameters, &room);
    return strcmp(name, CW_OVERRIDE_STATIC) == 0    ? CW_OVERRIDE_STATIC
           : strcmp(name, CW_OVERRIDE_DYNAMIC) == 0 ? CW_OVERRIDE_DYNAMIC
                                                    : CW_OVERRIDE_PAIRS;
}

int mpi_choice_phases(const struct mpi_comm *comm, const char *words, struct mpi_choice *choice, char *error,
                      size_t error_bytes)
{
    struct cw_override room;
    struct cw_parameters parameters;
    const char *name = "";
    if (words != NULL && cw_override_parse(words, &room, error, error_bytes) != CW_OK) {
        return CW_ERROR_ARGUMENT;
    }
    if (words != NULL) {
        name = room.of[CW_OVERRIDE_ALLTOALLV].name;
        parameters = room.of[CW_OVERRIDE_ALLTOALLV].parameters;
    }
    if (name[0] == '\0') {
        name = name_overriding(comm, CW_OVERRIDE_ALLTOALLV, &parameters, &room);
    }
    if (strcmp(name, CW_OVERRIDE_PAIRS) == 0 && words != NULL) {
        snprintf(error, error_bytes, "alltoallv=" CW_OVERRIDE_PAIRS " has no phases; ask for an algorithm that has");
        return CW_ERROR_ARGUMENT;
    }
    bool is_overridden = name[0] != '\0' && strcmp(name, CW_OVERRIDE_PAIRS) != 0;
    *choice = (struct mpi_choice){
        .algorithm = cw_algorithm_find(CW_ALLTOALL, is_overridden ? name : "all-to-all-based"),
        .parameters = is_overridden ? parameters : cw_parameters_default(),
        .origin = CW_BY_NAME,
    };
    choice->parameters.eager_max_bytes = mpi_process.eager_max_bytes;
    return CW_OK;
}

const char *mpi_choice_source(void)
{
    return measured == NULL ? "built-in figures" : mpi_contents_place();
}

void mpi_choices_clear(void)
{
    while (all_kept != NULL) {
        struct kept *next = all_kept->next;
        free(all_kept);
        all_kept = next;
    }
    cw_measured_destroy(measured);
    measured = NULL;
    memset(&override, 0, sizeof(override));
    mpi_contents_clear();
}
