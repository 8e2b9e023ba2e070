#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "collectives/file/plan_file.h"
#include "collectives/schedule/plan_private.h"
#include "dataplane/status.h"

struct writer {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool failed;
};

static void put_byte(struct writer *writer, uint8_t byte)
{
    if (writer->length == writer->capacity) {
        size_t capacity = writer->capacity == 0 ? 4096 : writer->capacity * 2;
        uint8_t *bytes = writer->failed ? NULL : realloc(writer->bytes, capacity);
        if (bytes == NULL) {
            writer->failed = true;
            return;
        }
        writer->bytes = bytes;
        writer->capacity = capacity;
    }
    writer->bytes[writer->length++] = byte;
}

static void put_number(struct writer *writer, uint64_t number)
{
    while (number >= 0x80) {
        put_byte(writer, (uint8_t)(number | 0x80));
        number >>= 7;
    }
    put_byte(writer, (uint8_t)number);
}

/* Numbers near 0 on both sides come out short. */
static void put_signed(struct writer *writer, int64_t number)
{
    put_number(writer, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

static void put_place(struct writer *writer, const struct cw_place *place)
{
    put_number(writer, place->buffer);
    put_number(writer, place->offset);
    put_number(writer, place->step);
}

static void put_list(struct writer *writer, const uint64_t *list, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        put_number(writer, list[i]);
    }
}

static void put_ranks(struct writer *writer, const uint32_t *list, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        put_number(writer, list[i]);
    }
}

static void put_problem(struct writer *writer, const struct cw_problem *problem)
{
    uint64_t ranks = problem->ranks;
    uint64_t clusters = problem->cluster_count;
    put_number(writer, problem->collective);
    put_number(writer, ranks);
    put_number(writer, problem->root);
    put_number(writer, problem->element_bytes);
    put_number(writer, problem->ordered);
    put_number(writer, problem->count);
    put_number(writer, problem->has_counts);
    if (problem->has_counts) {
        put_list(writer, problem->counts, problem->collective == CW_ALLTOALL ? ranks * ranks : ranks);
    }
    put_number(writer, clusters);
    if (clusters > 1) {
        put_ranks(writer, problem->clusters.of, ranks);
        put_number(writer, problem->cluster_via != NULL);
        for (uint64_t i = 0; problem->cluster_via != NULL && i < clusters * clusters; i++) {
            put_number(writer, problem->cluster_via[i] == CW_DIRECT ? 0 : problem->cluster_via[i] + 1ull);
        }
    }
    put_number(writer, problem->hosts.count);
    if (problem->hosts.count > 1) {
        put_ranks(writer, problem->hosts.of, ranks);
    }
}

static void put_how(struct writer *writer, const struct cw_plan *plan)
{
    size_t length = strlen(plan->algorithm);
    put_number(writer, length);
    for (size_t i = 0; i < length; i++) {
        put_byte(writer, (uint8_t)plan->algorithm[i]);
    }
    put_number(writer, plan->parameters.segment_bytes);
    put_number(writer, plan->parameters.eager_max_bytes);
    put_number(writer, plan->parameters.multicast_eager_max_bytes);
    put_number(writer, plan->parameters.single_eager_max_bytes);
    put_number(writer, plan->parameters.threshold_bytes);
    put_number(writer, plan->parameters.degree);
    put_number(writer, plan->parameters.concurrency);
    put_number(writer, plan->parameters.senders);
}

static bool has_place(const struct cw_place *place)
{
    return place->buffer != CW_BUFFER_NONE || place->offset != 0 || place->step != 0;
}

static uint32_t op_parts(const struct cw_op *op, uint32_t phase_before)
{
    uint32_t parts = op->phase != phase_before ? PLAN_OP_PHASE : 0;
    bool has_peer =
        op->kind == CW_OP_PUT || op->kind == CW_OP_MULTICAST || op->kind == CW_OP_WAIT || op->kind == CW_OP_HOST;
    parts |= has_peer ? PLAN_OP_PEER : op->tag != 0 ? PLAN_OP_TAG : 0;
    parts |= op->kind == CW_OP_REPEAT ? PLAN_OP_BODY : op->iterations != 1 ? PLAN_OP_ITERATIONS : 0;
    parts |= has_place(&op->from) ? PLAN_OP_FROM : 0;
    parts |= has_place(&op->to) ? PLAN_OP_TO : 0;
    parts |= op->bytes != 0 ? PLAN_OP_BYTES : 0;
    parts |= op->last_bytes != op->bytes ? PLAN_OP_LAST : 0;
    parts |= op->kind == CW_OP_HOST ? PLAN_OP_HOST : 0;
    parts |= op->blocks != 1 || op->from_stride != 0 || op->to_stride != 0 ? PLAN_OP_BLOCKS : 0;
    return parts;
}

static void put_op(struct writer *writer, const struct cw_schedule *schedule, uint32_t index)
{
    const struct cw_op *op = &schedule->ops[index];
    uint32_t phase_before = index > 0 ? schedule->ops[index - 1].phase : 0;
    uint32_t parts = op_parts(op, phase_before);
    put_byte(writer, op->kind);
    put_byte(writer, op->flags);
    put_number(writer, parts);
    if ((parts & PLAN_OP_PHASE) != 0) {
        put_signed(writer, (int64_t)op->phase - phase_before);
    }
    if ((parts & PLAN_OP_PEER) != 0) {
        bool is_group = op->kind == CW_OP_MULTICAST || op->kind == CW_OP_HOST;
        put_signed(writer, (int64_t)op->peer - (is_group ? 0 : schedule->rank));
    }
    if ((parts & (PLAN_OP_PEER | PLAN_OP_TAG)) != 0) {
        put_number(writer, op->tag);
    }
    if ((parts & PLAN_OP_BODY) != 0) {
        put_number(writer, op->body_count);
    }
    if ((parts & (PLAN_OP_BODY | PLAN_OP_ITERATIONS)) != 0) {
        put_number(writer, op->iterations);
    }
    if ((parts & PLAN_OP_FROM) != 0) {
        put_place(writer, &op->from);
    }
    if ((parts & PLAN_OP_TO) != 0) {
        put_place(writer, &op->to);
    }
    if ((parts & PLAN_OP_BYTES) != 0) {
        put_number(writer, op->bytes);
    }
    if ((parts & PLAN_OP_LAST) != 0) {
        put_number(writer, op->last_bytes);
    }
    if ((parts & PLAN_OP_BLOCKS) != 0) {
        put_number(writer, op->blocks);
        put_number(writer, op->from_stride);
        put_number(writer, op->to_stride);
    }
    if ((parts & PLAN_OP_HOST) != 0) {
        put_number(writer, op->collective);
        put_number(writer, op->root);
    }
    put_number(writer, op->dependency_count);
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        const struct cw_dependency *dependency = &schedule->dependencies[op->dependency_first + i];
        put_signed(writer, (int64_t)index - dependency->op);
        put_number(writer, (uint64_t)dependency->back << 1 | (dependency->flags & CW_DEPENDENCY_SENT));
    }
}

static void put_schedule(struct writer *writer, const struct cw_schedule *schedule)
{
    put_number(writer, schedule->op_count);
    put_number(writer, schedule->dependency_count);
    put_number(writer, schedule->group_count);
    put_number(writer, schedule->member_count);
    put_number(writer, schedule->barrier_count);
    put_number(writer, schedule->host_count);
    put_number(writer, schedule->scratch_bytes);
    put_number(writer, schedule->promise.fan_in);
    put_number(writer, schedule->promise.fan_out);
    put_number(writer, schedule->promise.phases_apart);
    put_number(writer, schedule->promise.wan_senders);
    put_number(writer, schedule->promise.wan_bytes + 1); /* "nothing promised" is 0 */
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        put_op(writer, schedule, i);
    }
    for (uint32_t i = 0; i < schedule->group_count; i++) {
        put_number(writer, schedule->groups[i].first);
        put_number(writer, schedule->groups[i].count);
    }
    put_ranks(writer, schedule->members, schedule->member_count);
}

static void store(uint8_t *at, uint64_t number, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(number >> 8 * i);
    }
}

static void header_store(uint8_t *file, enum plan_packing packing, size_t content_length)
{
    memcpy(file, PLAN_MAGIC, PLAN_MAGIC_BYTES);
    store(file + 8, CW_PLAN_VERSION, 4);
    store(file + 12, packing, 4);
    store(file + 16, content_length, 8);
}

/* Header, content, checksum. `memory_bytes`: memory of the plan. */
static int wrap(const struct writer *content, uint64_t memory_bytes, void **bytes, size_t *length)
{
    LZ4F_preferences_t preferences = {0};
    preferences.frameInfo.contentSize = content->length;
    size_t bound = LZ4F_compressFrameBound(content->length, &preferences);
    uint8_t *file = malloc(PLAN_HEADER_BYTES + bound + PLAN_CHECKSUM_BYTES);
    if (file == NULL) {
        return CW_ERROR_MEMORY;
    }
    enum plan_packing packing = PLAN_PACKING_LZ4;
    size_t body = LZ4F_compressFrame(file + PLAN_HEADER_BYTES, bound, content->bytes, content->length, &preferences);
    if (LZ4F_isError(body)) {
        free(file);
        return CW_ERROR_MEMORY;
    }
    if (memory_bytes > plan_allowance(body)) {
        packing = PLAN_PACKING_NONE;
        body = content->length;
        memcpy(file + PLAN_HEADER_BYTES, content->bytes, body);
    }
    header_store(file, packing, content->length);
    store(file + PLAN_HEADER_BYTES + body, XXH3_64bits(file, PLAN_HEADER_BYTES + body), PLAN_CHECKSUM_BYTES);
    *bytes = file;
    *length = PLAN_HEADER_BYTES + body + PLAN_CHECKSUM_BYTES;
    return CW_OK;
}

/* Memory of a reader for the lists of the problem, in the file's form and again in the problem's (plan_decode.c). */
static uint64_t problem_memory_bytes(const struct cw_problem *problem)
{
    uint64_t ranks = problem->ranks;
    uint64_t clusters = problem->cluster_count;
    uint64_t entries = !problem->has_counts ? 0 : problem->collective == CW_ALLTOALL ? ranks * ranks : ranks;
    uint64_t links = problem->cluster_via != NULL ? clusters * clusters : 0;
    return 4 * entries * sizeof(uint64_t) + (4 * ranks + 2 * links) * sizeof(uint32_t);
}

int cw_plan_encode(const struct cw_plan *plan, void **bytes, size_t *length)
{
    struct writer writer = {0};
    uint64_t memory_bytes = problem_memory_bytes(plan->problem) + cw_plan_memory_bytes(plan);
    if (memory_bytes > CW_PLAN_BYTES_MAX) {
        return CW_ERROR_LIMIT;
    }
    put_problem(&writer, plan->problem);
    put_how(&writer, plan);
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        put_schedule(&writer, &plan->schedules[rank]);
    }
    int status = writer.failed ? CW_ERROR_MEMORY : wrap(&writer, memory_bytes, bytes, length);
    free(writer.bytes);
    return status;
}
