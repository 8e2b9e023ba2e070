/* From the recordings of each rank to the calls of all together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/compile/private.h"
#include "dataplane/status.h"

/* A rank's calls of one communicator, by ordinal and run. */
struct sequence {
    const struct cw_recording_rank *of;
    struct cw_recording_call *calls;
    uint32_t count;
};

static int call_compare(const void *a, const void *b)
{
    const struct cw_recording_call *left = a, *right = b;
    if (left->ordinal != right->ordinal) {
        return left->ordinal < right->ordinal ? -1 : 1;
    }
    return left->run < right->run ? -1 : left->run > right->run;
}

static uint32_t comm_index(const struct cw_recording_rank *of, uint64_t context)
{
    uint32_t i = 0;
    while (i < of->comm_count && of->comms[i].context != context) {
        i++;
    }
    return i;
}

/* The calls of a rank on a communicator; none if it has not recorded it. CW_OK or CW_ERROR_MEMORY. */
static int sequence_make(const struct cw_recording_rank *of, uint64_t context, struct sequence *sequence)
{
    uint32_t comm = comm_index(of, context);
    *sequence = (struct sequence){.of = of, .calls = malloc((of->call_count + 1ull) * sizeof(*sequence->calls))};
    if (sequence->calls == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < of->call_count; i++) {
        if (of->forms[of->calls[i].form].comm == comm) {
            sequence->calls[sequence->count++] = of->calls[i];
        }
    }
    qsort(sequence->calls, sequence->count, sizeof(*sequence->calls), call_compare);
    return CW_OK;
}

/* The bundle's index of a communicator; UINT32_MAX: its members are others than in another recording, or no memory. */
static uint32_t bundle_comm(struct joints *joints, const struct cw_recording_comm *comm)
{
    struct cw_bundle *bundle = joints->bundle;
    for (uint32_t i = 0; i < bundle->comm_count; i++) {
        const struct cw_bundle_comm *known = &bundle->comms[i];
        if (known->context == comm->context) {
            bool is_same = known->size == comm->size &&
                           memcmp(known->members, comm->members, comm->size * sizeof(*comm->members)) == 0;
            return is_same ? i : UINT32_MAX;
        }
    }
    struct cw_bundle_comm *comms = realloc(bundle->comms, (bundle->comm_count + 1ull) * sizeof(*comms));
    bundle->comms = comms != NULL ? comms : bundle->comms;
    uint32_t *flags = realloc(joints->comm_flags, (bundle->comm_count + 1ull) * sizeof(*flags));
    joints->comm_flags = flags != NULL ? flags : joints->comm_flags;
    uint32_t *members = malloc(comm->size * sizeof(*members));
    if (comms == NULL || flags == NULL || members == NULL) {
        free(members);
        return UINT32_MAX;
    }
    memcpy(members, comm->members, comm->size * sizeof(*members));
    flags[bundle->comm_count] = comm->flags;
    comms[bundle->comm_count] =
        (struct cw_bundle_comm){.context = comm->context, .size = comm->size, .members = members};
    return bundle->comm_count++;
}

/* ---- one call of all ranks ---- */

static bool is_alike(const struct cw_recording_form *a, const struct cw_recording_form *b, uint32_t size)
{
    const uint32_t what = CW_RECORDING_ORDERED | CW_RECORDING_COUNTS | CW_RECORDING_ROWS;
    return a->collective == b->collective && (a->flags & what) == (b->flags & what) && a->root == b->root &&
           a->element_bytes == b->element_bytes && a->count == b->count &&
           ((a->flags & CW_RECORDING_COUNTS) == 0 || memcmp(a->counts, b->counts, size * sizeof(*a->counts)) == 0);
}

/* The matrix of an all-to-all-v; NULL: no memory, or the rows do not fit together. */
static uint64_t *matrix_make(const struct cw_recording_form *const *forms, uint32_t size)
{
    uint64_t *matrix = malloc((uint64_t)size * size * sizeof(*matrix));
    for (uint32_t from = 0; matrix != NULL && from < size; from++) {
        for (uint32_t to = 0; to < size; to++) {
            if (forms[from]->sends[to] != forms[to]->expects[from]) {
                free(matrix);
                return NULL;
            }
            matrix[(uint64_t)from * size + to] = forms[from]->sends[to];
        }
    }
    return matrix;
}

static uint64_t bytes_of(const struct cw_problem *problem)
{
    uint64_t entries = problem->collective == CW_ALLTOALL ? (uint64_t)problem->ranks * problem->ranks : problem->ranks;
    uint64_t count = problem->has_counts ? 0 : problem->count;
    for (uint64_t i = 0; problem->has_counts && i < entries; i++) {
        count += problem->counts[i];
    }
    return count * problem->element_bytes;
}

/* Joins the forms of all ranks. */
static void problem_join(struct joint *joint, const struct cw_recording_form *const *forms, uint32_t size)
{
    const struct cw_recording_form *first = forms[0];
    struct cw_problem_request request = {
        .collective = first->collective,
        .ranks = size,
        .root = first->root,
        .element_bytes = first->element_bytes,
        .ordered = (first->flags & CW_RECORDING_ORDERED) != 0,
        .count = first->count,
        .counts = first->counts,
    };
    uint64_t *matrix = NULL;
    joint->row.has_rows = (first->flags & CW_RECORDING_ROWS) != 0;
    joint->row.collective = first->collective;
    joint->row.root = first->root;
    for (uint32_t rank = 1; rank < size; rank++) {
        if (!is_alike(first, forms[rank], size)) {
            joint->row.verdict = CW_COMPILE_MISMATCH;
            snprintf(joint->row.reason, sizeof(joint->row.reason), "rank %u made another call than rank 0", rank);
            return;
        }
    }
    if (joint->row.has_rows && first->collective != CW_ALLTOALL) {
        joint->row.verdict = CW_COMPILE_PRIVATE;
        return;
    }
    if (joint->row.has_rows) {
        matrix = matrix_make(forms, size);
        request.counts = matrix;
        request.count = 0;
        if (matrix == NULL) {
            joint->row.verdict = CW_COMPILE_MISMATCH;
            return;
        }
    }
    char reason[sizeof(joint->row.reason)];
    if (cw_problem_create(&request, &joint->problem, reason, sizeof(reason)) != CW_OK) {
        joint->row.verdict = CW_COMPILE_FAILED;
        snprintf(joint->row.reason, sizeof(joint->row.reason), "%s", reason);
    } else {
        joint->row.bytes = bytes_of(joint->problem);
    }
    free(matrix);
}

static void way_text(const struct joint *joint, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%s%s%s", (joint->flags & CW_RECORDING_EXCHANGED) != 0 ? "counts + " : "",
             joint->algorithm, (joint->flags & CW_RECORDING_PLANNED) != 0 ? " (plan)" : "");
}

/* The joint of these forms; NULL: no memory. */
static struct joint *joint_find(struct joints *joints, uint32_t comm, uint32_t size, const uint64_t *ids,
                                const struct cw_recording_form *const *forms)
{
    for (uint32_t i = 0; i < joints->count; i++) { /* programs repeat themselves: it may be the one behind the last */
        uint32_t at = (joints->last + 1 + i) % joints->count;
        struct joint *known = &joints->all[at];
        if (known->row.comm == comm && memcmp(known->forms, ids, size * sizeof(*ids)) == 0) {
            joints->last = at;
            return known;
        }
    }
    if (joints->count == joints->room) {
        uint32_t room = joints->room == 0 ? 64 : 2 * joints->room;
        struct joint *all = realloc(joints->all, room * sizeof(*all));
        if (all == NULL) {
            return NULL;
        }
        joints->all = all;
        joints->room = room;
    }
    struct joint *made = &joints->all[joints->count];
    const uint32_t ways = CW_RECORDING_ROWS | CW_RECORDING_EXCHANGED | CW_RECORDING_PLANNED;
    *made = (struct joint){
        .row = {.comm = comm},
        .flags = forms[0]->flags & ways,
        .comm_flags = joints->comm_flags[comm],
        .forms = malloc(size * sizeof(*ids)),
    };
    if (made->forms == NULL) {
        return NULL;
    }
    snprintf(made->algorithm, sizeof(made->algorithm), "%s", forms[0]->algorithm);
    memcpy(made->forms, ids, size * sizeof(*ids));
    problem_join(made, forms, size);
    way_text(made, made->row.now, sizeof(made->row.now));
    joints->last = joints->count++;
    return made;
}

static int calls_join(struct joints *joints, uint32_t comm, uint32_t size, uint32_t index,
                      const struct sequence *sequences)
{
    uint64_t *ids = malloc(size * sizeof(*ids));
    const struct cw_recording_form **forms = malloc(size * sizeof(*forms));
    int status = ids == NULL || forms == NULL ? CW_ERROR_MEMORY : CW_OK;
    uint32_t at = 0, least = UINT32_MAX, most = 0;
    for (uint32_t rank = 0; rank < size; rank++) {
        least = sequences[rank].count < least ? sequences[rank].count : least;
        most = sequences[rank].count > most ? sequences[rank].count : most;
    }
    for (; status == CW_OK && at < least; at++) {
        const struct cw_recording_call *first = &sequences[0].calls[at];
        uint64_t took_ns = 0;
        bool is_whole = true;
        for (uint32_t rank = 0; rank < size; rank++) {
            const struct cw_recording_call *call = &sequences[rank].calls[at];
            is_whole = is_whole && call->ordinal == first->ordinal && call->run == first->run;
            ids[rank] = (uint64_t)index << 32 | call->form;
            forms[rank] = &sequences[rank].of->forms[call->form];
            took_ns += call->took_ns;
        }
        if (!is_whole) {
            break; /* a call failed at some rank: later calls cannot be matched */
        }
        struct joint *joint = joint_find(joints, comm, size, ids, forms);
        if (joint == NULL) {
            status = CW_ERROR_MEMORY;
            break;
        }
        joint->row.calls++;
        joint->total_ns += took_ns;
        joints->calls++;
    }
    joints->unjoined += most - at;
    free(ids);
    free(forms);
    return status;
}

/* ---- a recording ---- */

static int comm_join(struct joints *joints, const struct cw_recording *recording, const struct cw_recording_comm *comm,
                     uint32_t index, char *error, size_t error_bytes)
{
    uint32_t in_bundle = bundle_comm(joints, comm);
    if (in_bundle == UINT32_MAX) {
        snprintf(error, error_bytes, "communicator %llx has other ranks in one trace than in another",
                 (unsigned long long)comm->context);
        return CW_ERROR_ARGUMENT;
    }
    struct sequence *sequences = calloc(comm->size, sizeof(*sequences));
    int status = sequences == NULL ? CW_ERROR_MEMORY : CW_OK;
    for (uint32_t rank = 0; status == CW_OK && rank < comm->size; rank++) {
        const struct cw_recording_rank *of = &recording->of[comm->members[rank]];
        uint32_t own = comm_index(of, comm->context);
        if (own < of->comm_count &&
            (of->comms[own].size != comm->size ||
             memcmp(of->comms[own].members, comm->members, comm->size * sizeof(*comm->members)) != 0)) {
            snprintf(error, error_bytes, "the ranks disagree on the members of communicator %llx",
                     (unsigned long long)comm->context);
            status = CW_ERROR_ARGUMENT;
            break;
        }
        status = sequence_make(of, comm->context, &sequences[rank]);
    }
    if (status == CW_OK) {
        status = calls_join(joints, in_bundle, comm->size, index, sequences);
    }
    for (uint32_t rank = 0; sequences != NULL && rank < comm->size; rank++) {
        free(sequences[rank].calls);
    }
    free(sequences);
    return status;
}

int joints_add(struct joints *joints, const struct cw_recording *recording, uint32_t index, char *error,
               size_t error_bytes)
{
    int status = CW_OK;
    for (uint32_t rank = 0; rank < recording->ranks; rank++) {
        const struct cw_recording_rank *of = &recording->of[rank];
        for (uint32_t i = 0; status == CW_OK && i < of->comm_count; i++) {
            if (of->comms[i].members[0] == rank) { /* once, with the data of its first rank */
                status = comm_join(joints, recording, &of->comms[i], index, error, error_bytes);
            }
        }
        joints->unjoined += of->dropped;
    }
    return status;
}

/* The same problem may have been carried out in several ways: the first calls on a host have no segment yet. The most
 * frequent one represents all. */
static void joint_merge(struct joint *into, struct joint *from)
{
    if (from->row.calls > into->row.calls) {
        into->flags = from->flags;
        memcpy(into->algorithm, from->algorithm, sizeof(into->algorithm));
        memcpy(into->row.now, from->row.now, sizeof(into->row.now));
    }
    into->row.calls += from->row.calls;
    into->total_ns += from->total_ns;
    cw_problem_destroy(from->problem);
    free(from->forms);
}

void joints_merge(struct joints *joints)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < joints->count; i++) {
        struct joint *joint = &joints->all[i];
        uint32_t same = 0;
        while (same < kept && (joint->problem == NULL || joints->all[same].problem == NULL ||
                               joints->all[same].row.comm != joint->row.comm ||
                               !cw_bundle_same(joints->all[same].problem, joint->problem))) {
            same++;
        }
        if (same < kept) {
            joint_merge(&joints->all[same], joint);
        } else {
            joints->all[kept++] = *joint;
        }
    }
    joints->count = kept;
}

void joints_dispose(struct joints *joints)
{
    for (uint32_t i = 0; i < joints->count; i++) {
        cw_problem_destroy(joints->all[i].problem);
        free(joints->all[i].forms);
    }
    free(joints->all);
    free(joints->comm_flags);
}
