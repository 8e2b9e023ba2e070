#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "collectives/file/pack.h"
#include "collectives/file/plan_file.h"
#include "collectives/schedule/plan_private.h"
#include "dataplane/status.h"

/* A schedule's numbers alone: its counts and promises. */
enum { SCHEDULE_BYTES_LEAST = 12 };

/* Reads numbers until one is missing or too large; then reports the error once, and returns zeros. */
struct reader {
    const uint8_t *bytes;
    size_t length;
    size_t position;
    uint64_t memory_left; /* limit for the file's content */
    int status;
    char *error;
    size_t error_bytes;
};

static void fail(struct reader *reader, int status, const char *what)
{
    if (reader->status == CW_OK) {
        reader->status = status;
        snprintf(reader->error, reader->error_bytes, "%s (at byte %zu of the content)", what, reader->position);
    }
}

static uint8_t get_byte(struct reader *reader)
{
    if (reader->status != CW_OK || reader->position == reader->length) {
        fail(reader, CW_ERROR_ARGUMENT, "the plan ends too early");
        return 0;
    }
    return reader->bytes[reader->position++];
}

static uint64_t get_number(struct reader *reader)
{
    uint64_t number = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
        uint8_t byte = get_byte(reader);
        if (shift == 63 && byte > 1) {
            break;
        }
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return number;
        }
    }
    fail(reader, CW_ERROR_ARGUMENT, "a number of the plan has more than 64 bits");
    return 0;
}

static int64_t get_signed(struct reader *reader)
{
    uint64_t number = get_number(reader);
    if (number >> 34 != 0) {
        fail(reader, CW_ERROR_ARGUMENT, "a difference of the plan is out of range"); /* all are of 32-bit numbers */
        return 0;
    }
    return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

/* A number up to `limit`. */
static uint64_t get_limited(struct reader *reader, uint64_t limit, const char *what)
{
    uint64_t number = get_number(reader);
    if (number > limit) {
        fail(reader, CW_ERROR_ARGUMENT, what);
        return 0;
    }
    return number;
}

/* Reads the number of following entries, of at least `least` bytes each: no memory is reserved for entries that the
 * file cannot contain. */
static uint64_t get_count(struct reader *reader, uint64_t limit, size_t least, const char *what)
{
    uint64_t count = get_limited(reader, limit, what);
    if (count * least > reader->length - reader->position) {
        fail(reader, CW_ERROR_ARGUMENT, what);
        return 0;
    }
    return count;
}

/* Subtracts memory from the limit of the file. */
static bool memory_claim(struct reader *reader, uint64_t bytes)
{
    if (bytes > reader->memory_left) {
        fail(reader, CW_ERROR_ARGUMENT, "the plan would take more memory than a file of this length may ask for");
        return false;
    }
    reader->memory_left -= bytes;
    return true;
}

static void *list_make(struct reader *reader, uint64_t count, size_t entry_bytes)
{
    if (!memory_claim(reader, count * entry_bytes)) {
        return NULL;
    }
    void *list = calloc(count + 1, entry_bytes);
    if (list == NULL) {
        fail(reader, CW_ERROR_MEMORY, "no memory for the plan");
    }
    return list;
}

/* ---- The problem ---- */

struct problem_lists {
    uint64_t *counts;
    uint32_t *cluster_of;
    uint32_t *cluster_via;
    uint32_t *host_of;
};

static void get_counts(struct reader *reader, struct cw_problem_request *request, struct problem_lists *lists)
{
    uint64_t entries = request->collective == CW_ALLTOALL ? (uint64_t)request->ranks * request->ranks : request->ranks;
    if (entries > reader->length - reader->position) {
        fail(reader, CW_ERROR_ARGUMENT, "the plan ends within its counts");
        return;
    }
    /* the problem has them again, and where blocks lie in both buffers */
    if (!memory_claim(reader, 3 * entries * sizeof(uint64_t))) {
        return;
    }
    lists->counts = list_make(reader, entries, sizeof(uint64_t));
    for (uint64_t i = 0; i < entries && reader->status == CW_OK; i++) {
        lists->counts[i] = get_number(reader);
    }
    request->counts = lists->counts;
}

static void get_clusters(struct reader *reader, struct cw_problem_request *request, struct problem_lists *lists)
{
    uint64_t clusters = request->cluster_count;
    lists->cluster_of = list_make(reader, request->ranks, sizeof(uint32_t));
    for (uint32_t i = 0; i < request->ranks && reader->status == CW_OK; i++) {
        lists->cluster_of[i] =
            (uint32_t)get_limited(reader, CW_CLUSTERS_MAX, "a rank is in a cluster that is not there");
    }
    request->cluster_of = lists->cluster_of;
    if (get_limited(reader, 1, "the links between clusters are garbled") == 0) {
        return;
    }
    if (clusters * clusters > reader->length - reader->position) {
        fail(reader, CW_ERROR_ARGUMENT, "the plan ends within the links between clusters");
        return;
    }
    if (!memory_claim(reader, clusters * clusters * sizeof(uint32_t))) { /* the problem has them again */
        return;
    }
    lists->cluster_via = list_make(reader, clusters * clusters, sizeof(uint32_t));
    for (uint64_t i = 0; i < clusters * clusters && reader->status == CW_OK; i++) {
        uint64_t via = get_limited(reader, CW_CLUSTERS_MAX, "a link leads through a cluster that is not there");
        lists->cluster_via[i] = via == 0 ? CW_DIRECT : (uint32_t)(via - 1);
    }
    request->cluster_via = lists->cluster_via;
}

static void get_hosts(struct reader *reader, struct cw_problem_request *request, struct problem_lists *lists)
{
    if (!memory_claim(reader, 3ull * request->ranks * sizeof(uint32_t))) { /* the problem has them again, by host */
        return;
    }
    lists->host_of = list_make(reader, request->ranks, sizeof(uint32_t));
    for (uint32_t i = 0; i < request->ranks && reader->status == CW_OK; i++) {
        lists->host_of[i] = (uint32_t)get_limited(reader, CW_RANKS_MAX, "a rank is on a host that is not there");
    }
    request->host_of = lists->host_of;
}

static struct cw_problem *get_problem(struct reader *reader)
{
    struct problem_lists lists = {0};
    struct cw_problem *problem = NULL;
    struct cw_problem_request request = {0};
    request.collective = (enum cw_collective)get_limited(reader, CW_COLLECTIVE_COUNT - 1, "unknown collective");
    request.ranks =
        (uint32_t)get_count(reader, CW_RANKS_MAX, SCHEDULE_BYTES_LEAST, "more ranks than the plan can hold");
    request.root = (uint32_t)get_limited(reader, CW_RANKS_MAX, "root out of range");
    request.element_bytes = (uint32_t)get_limited(reader, CW_ELEMENT_BYTES_MAX, "element too large");
    request.ordered = get_limited(reader, 1, "ordered is neither 0 nor 1") != 0;
    request.count = get_number(reader);
    if (get_limited(reader, 1, "the counts are garbled") != 0) {
        get_counts(reader, &request, &lists);
    }
    request.cluster_count = (uint32_t)get_limited(reader, CW_CLUSTERS_MAX, "too many clusters");
    if (request.cluster_count > 1) {
        get_clusters(reader, &request, &lists);
    }
    request.host_count = (uint32_t)get_limited(reader, CW_RANKS_MAX, "too many hosts");
    if (request.host_count > 1) {
        get_hosts(reader, &request, &lists);
    }
    if (reader->status == CW_OK) {
        reader->status = cw_problem_create(&request, &problem, reader->error, reader->error_bytes);
    }
    free(lists.counts);
    free(lists.cluster_of);
    free(lists.cluster_via);
    free(lists.host_of);
    return problem;
}

/* ---- The schedules ---- */

static void get_how(struct reader *reader, struct cw_plan *plan)
{
    uint64_t length = get_limited(reader, CW_ALGORITHM_NAME_MAX - 1, "the algorithm's name is too long");
    for (uint64_t i = 0; i < length; i++) {
        plan->algorithm[i] = (char)get_byte(reader);
        char c = plan->algorithm[i];
        if (c != '-' && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) {
            fail(reader, CW_ERROR_ARGUMENT, "the algorithm's name is garbled");
        }
    }
    plan->parameters.segment_bytes = get_number(reader);
    plan->parameters.eager_max_bytes = get_number(reader);
    plan->parameters.multicast_eager_max_bytes = get_number(reader);
    plan->parameters.single_eager_max_bytes = get_number(reader);
    plan->parameters.threshold_bytes = get_number(reader);
    plan->parameters.degree = (uint32_t)get_limited(reader, UINT32_MAX, "degree out of range");
    plan->parameters.concurrency = (uint32_t)get_limited(reader, UINT32_MAX, "concurrency out of range");
    plan->parameters.senders = (uint32_t)get_limited(reader, UINT32_MAX, "senders out of range");
}

static struct cw_place get_place(struct reader *reader)
{
    struct cw_place place;
    place.buffer = (enum cw_buffer)get_limited(reader, CW_BUFFER_SCRATCH, "unknown buffer");
    place.offset = get_number(reader);
    place.step = get_number(reader);
    return place;
}

static void get_dependencies(struct reader *reader, struct cw_schedule *schedule, uint32_t index, uint32_t *taken)
{
    struct cw_op *op = &schedule->ops[index];
    op->dependency_first = *taken;
    op->dependency_count =
        (uint32_t)get_limited(reader, schedule->dependency_count - *taken, "more dependencies than announced");
    for (uint32_t i = 0; i < op->dependency_count && reader->status == CW_OK; i++) {
        int64_t on = (int64_t)index - get_signed(reader);
        uint64_t back = get_limited(reader, UINT16_MAX, "a dependency reaches back too far");
        if (on < 0 || on >= schedule->op_count) {
            fail(reader, CW_ERROR_ARGUMENT, "a dependency on an op that is not there");
            return;
        }
        schedule->dependencies[(*taken)++] = (struct cw_dependency){
            .op = (uint32_t)on,
            .back = (uint16_t)(back >> 1),
            .flags = (uint16_t)(back & CW_DEPENDENCY_SENT),
        };
    }
}

static void get_op(struct reader *reader, struct cw_schedule *schedule, uint32_t index, uint32_t *taken)
{
    struct cw_op *op = &schedule->ops[index];
    op->kind = get_byte(reader);
    op->flags = get_byte(reader);
    if (op->kind < CW_OP_PUT || op->kind > CW_OP_HOST) {
        fail(reader, CW_ERROR_ARGUMENT, "an op of unknown kind");
        return;
    }
    op->iterations = op->blocks = 1;
    uint64_t parts = get_number(reader);
    int64_t phase = index > 0 ? schedule->ops[index - 1].phase : 0;
    phase += (parts & PLAN_OP_PHASE) != 0 ? get_signed(reader) : 0;
    int64_t peer = 0;
    if ((parts & PLAN_OP_PEER) != 0) {
        bool is_group = op->kind == CW_OP_MULTICAST || op->kind == CW_OP_HOST;
        peer = get_signed(reader) + (is_group ? 0 : (int64_t)schedule->rank);
    }
    if (phase < 0 || phase > CW_PHASES_MAX || peer < 0 || peer > UINT32_MAX) {
        fail(reader, CW_ERROR_ARGUMENT, "phase or peer of an op out of range");
        return;
    }
    op->phase = (uint16_t)phase;
    op->peer = (uint32_t)peer;
    if ((parts & (PLAN_OP_PEER | PLAN_OP_TAG)) != 0) {
        op->tag = (uint32_t)get_limited(reader, UINT32_MAX, "tag out of range");
    }
    if ((parts & PLAN_OP_BODY) != 0) {
        op->body_count = (uint32_t)get_limited(reader, CW_OPS_MAX, "body too long");
    }
    if ((parts & (PLAN_OP_BODY | PLAN_OP_ITERATIONS)) != 0) {
        op->iterations = (uint32_t)get_limited(reader, CW_REPEAT_COUNT_MAX, "too many iterations");
    }
    if ((parts & PLAN_OP_FROM) != 0) {
        op->from = get_place(reader);
    }
    if ((parts & PLAN_OP_TO) != 0) {
        op->to = get_place(reader);
    }
    op->bytes = (parts & PLAN_OP_BYTES) != 0 ? get_number(reader) : 0;
    op->last_bytes = (parts & PLAN_OP_LAST) != 0 ? get_number(reader) : op->bytes;
    if ((parts & PLAN_OP_BLOCKS) != 0) {
        op->blocks = (uint32_t)get_limited(reader, UINT32_MAX, "too many blocks");
        op->from_stride = get_number(reader);
        op->to_stride = get_number(reader);
    }
    if ((parts & PLAN_OP_HOST) != 0) {
        op->collective = (uint32_t)get_limited(reader, CW_COLLECTIVE_COUNT - 1, "unknown collective");
        op->root = (uint32_t)get_limited(reader, CW_RANKS_MAX, "root out of range");
    }
    get_dependencies(reader, schedule, index, taken);
}

static void get_schedule(struct reader *reader, struct cw_schedule *schedule)
{
    /* an op has at least 4 bytes, a dependency and a group 2, a member 1 */
    schedule->op_count = (uint32_t)get_count(reader, CW_OPS_MAX, 4, "more ops than the plan can hold");
    schedule->dependency_count =
        (uint32_t)get_count(reader, CW_DEPENDENCIES_MAX, 2, "more dependencies than the plan can hold");
    schedule->group_count = (uint32_t)get_count(reader, CW_OPS_MAX, 2, "more groups than the plan can hold");
    schedule->member_count =
        (uint32_t)get_count(reader, CW_DEPENDENCIES_MAX, 1, "more group members than the plan can hold");
    schedule->barrier_count = (uint32_t)get_limited(reader, CW_BARRIERS_MAX, "too many barriers");
    schedule->host_count = (uint32_t)get_limited(reader, CW_HOST_OPS_MAX, "too many host ops");
    schedule->scratch_bytes = get_limited(reader, CW_BUFFER_BYTES_MAX, "too much scratch memory");
    schedule->promise.fan_in = (uint32_t)get_limited(reader, UINT32_MAX, "promise out of range");
    schedule->promise.fan_out = (uint32_t)get_limited(reader, UINT32_MAX, "promise out of range");
    schedule->promise.phases_apart = (uint32_t)get_limited(reader, CW_PHASES_APART_MAX, "promise out of range");
    schedule->promise.wan_senders = (uint32_t)get_limited(reader, UINT32_MAX, "promise out of range");
    schedule->promise.wan_bytes = get_number(reader) - 1;
    schedule->ops = list_make(reader, schedule->op_count, sizeof(*schedule->ops));
    schedule->dependencies = list_make(reader, schedule->dependency_count, sizeof(*schedule->dependencies));
    schedule->groups = list_make(reader, schedule->group_count, sizeof(*schedule->groups));
    schedule->members = list_make(reader, schedule->member_count, sizeof(*schedule->members));
    uint32_t taken = 0;
    for (uint32_t i = 0; i < schedule->op_count && reader->status == CW_OK; i++) {
        get_op(reader, schedule, i, &taken);
    }
    if (taken != schedule->dependency_count) {
        fail(reader, CW_ERROR_ARGUMENT, "fewer dependencies than announced");
    }
    for (uint32_t i = 0; i < schedule->group_count && reader->status == CW_OK; i++) {
        schedule->groups[i].first = (uint32_t)get_limited(reader, UINT32_MAX, "group out of range");
        schedule->groups[i].count = (uint32_t)get_limited(reader, UINT32_MAX, "group out of range");
    }
    for (uint32_t i = 0; i < schedule->member_count && reader->status == CW_OK; i++) {
        schedule->members[i] = (uint32_t)get_limited(reader, UINT32_MAX, "group member out of range");
    }
}

static struct cw_plan *get_plan(struct reader *reader)
{
    struct cw_plan *plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        fail(reader, CW_ERROR_MEMORY, "no memory for the plan");
        return NULL;
    }
    plan->problem = get_problem(reader);
    if (plan->problem == NULL) {
        free(plan);
        return NULL;
    }
    get_how(reader, plan);
    plan->schedules = list_make(reader, plan->problem->ranks, sizeof(*plan->schedules));
    for (uint32_t rank = 0; rank < plan->problem->ranks && reader->status == CW_OK; rank++) {
        plan->schedules[rank].rank = rank;
        get_schedule(reader, &plan->schedules[rank]);
        if (reader->status == CW_OK) { /* at once: entries after a bad schedule are not worth their memory */
            reader->status = cw_plan_validate_rank(plan, rank, reader->error, reader->error_bytes);
        }
    }
    if (reader->status == CW_OK && reader->position != reader->length) {
        fail(reader, CW_ERROR_ARGUMENT, "something follows the last schedule");
    }
    if (reader->status != CW_OK) {
        cw_plan_destroy(plan);
        return NULL;
    }
    return plan;
}

/* ---- The file ---- */

static uint64_t load(const uint8_t *at, uint32_t bytes)
{
    uint64_t number = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        number |= (uint64_t)at[i] << 8 * i;
    }
    return number;
}

static int header_check(const uint8_t *file, size_t length, char *error, size_t error_bytes)
{
    if (length < PLAN_MAGIC_BYTES || memcmp(file, PLAN_MAGIC, PLAN_MAGIC_BYTES) != 0) {
        snprintf(error, error_bytes, "this is no plan file: it does not begin with CWPLAN");
        return CW_ERROR_ARGUMENT;
    }
    if (length < PLAN_HEADER_BYTES + PLAN_CHECKSUM_BYTES) {
        snprintf(error, error_bytes, "the plan file is cut off: it has %zu bytes", length);
        return CW_ERROR_ARGUMENT;
    }
    uint64_t version = load(file + 8, 4);
    if (version != CW_PLAN_VERSION) {
        snprintf(error, error_bytes,
                 "the plan file has version %llu, this program reads version %d; build the plan again",
                 (unsigned long long)version, CW_PLAN_VERSION);
        return CW_ERROR_UNSUPPORTED;
    }
    if (load(file + 12, 4) > PLAN_PACKING_NONE) {
        snprintf(error, error_bytes, "the plan file was altered: bytes 12 to 15 are neither 0 nor 1");
        return CW_ERROR_ARGUMENT;
    }
    size_t checked = length - PLAN_CHECKSUM_BYTES;
    if (load(file + checked, PLAN_CHECKSUM_BYTES) != XXH3_64bits(file, checked)) {
        snprintf(error, error_bytes, "the plan file was cut off or altered: its checksum does not fit its %zu bytes",
                 length);
        return CW_ERROR_ARGUMENT;
    }
    return CW_OK;
}

/* The content that is there as it is. NULL if it is another length; *status says why. */
static uint8_t *copy(const uint8_t *body, size_t length, uint64_t wanted, int *status)
{
    *status = CW_ERROR_ARGUMENT;
    if (wanted != length) {
        return NULL;
    }
    uint8_t *content = malloc(wanted + 1);
    *status = content != NULL ? CW_OK : CW_ERROR_MEMORY;
    if (content != NULL) {
        memcpy(content, body, wanted);
    }
    return content;
}

/* The content of the frame: `wanted` bytes. NULL if it is another length or no frame; *status says why. */
static uint8_t *unwrap(const uint8_t *frame, size_t length, uint64_t wanted, int *status)
{
    *status = CW_ERROR_ARGUMENT;
    if (wanted > 255ull * length) { /* LZ4 makes at most 255 bytes of one: more is not worth reserving */
        return NULL;
    }
    uint8_t *content = malloc(wanted + 1);
    if (content == NULL) {
        *status = CW_ERROR_MEMORY;
        return NULL;
    }
    if (!cw_unpack_frame(frame, length, content, wanted)) {
        free(content);
        return NULL;
    }
    *status = CW_OK;
    return content;
}

int cw_plan_decode(const void *bytes, size_t length, struct cw_plan **plan, char *error, size_t error_bytes)
{
    const uint8_t *file = bytes;
    int status = header_check(file, length, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    uint64_t content_bytes = load(file + 16, 8);
    const uint8_t *body = file + PLAN_HEADER_BYTES;
    size_t body_bytes = length - PLAN_HEADER_BYTES - PLAN_CHECKSUM_BYTES;
    uint8_t *content = load(file + 12, 4) == PLAN_PACKING_NONE ? copy(body, body_bytes, content_bytes, &status)
                                                               : unwrap(body, body_bytes, content_bytes, &status);
    if (content == NULL) {
        snprintf(error, error_bytes, "%s",
                 status == CW_ERROR_MEMORY
                     ? "no memory for the plan"
                     : "the plan file's content has another length than it says, or is no LZ4 frame");
        return status;
    }
    struct reader reader = {
        .bytes = content,
        .length = content_bytes,
        .memory_left = plan_allowance(body_bytes),
        .error = error,
        .error_bytes = error_bytes,
    };
    struct cw_plan *read = get_plan(&reader);
    free(content);
    if (read == NULL) {
        return reader.status;
    }
    *plan = read;
    return CW_OK;
}
