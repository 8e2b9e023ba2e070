#include "collectives/schedule/dump.h"

#include <string.h>

/* "3 x 1024, 7, 2 x 0": equal ones one after the other stand together. */
static void counts_dump(const uint64_t *counts, uint64_t length, FILE *stream)
{
    for (uint64_t i = 0, equal; i < length; i += equal) {
        equal = 1;
        while (i + equal < length && counts[i + equal] == counts[i]) {
            equal++;
        }
        fputs(i > 0 ? ", " : " ", stream);
        if (equal > 1) {
            fprintf(stream, "%llu x ", (unsigned long long)equal);
        }
        fprintf(stream, "%llu", (unsigned long long)counts[i]);
    }
    fputc('\n', stream);
}

/* All-to-all: a line per sender, or one for several in a row that send the same. */
static void pair_counts_dump(const struct cw_problem *problem, FILE *stream)
{
    size_t row = problem->ranks;
    for (uint32_t from = 0, equal; from < problem->ranks; from += equal) {
        const uint64_t *counts = &problem->counts[from * row];
        equal = 1;
        while (from + equal < problem->ranks && memcmp(counts, counts + equal * row, row * sizeof(*counts)) == 0) {
            equal++;
        }
        if (equal > 1) {
            fprintf(stream, "counts of ranks %u to %u:", from, from + equal - 1);
        } else {
            fprintf(stream, "counts of rank %u:", from);
        }
        counts_dump(counts, row, stream);
    }
}

static void problem_dump(const struct cw_problem *problem, FILE *stream)
{
    fprintf(stream, "%s among %u ranks", cw_collective_name(problem->collective), problem->ranks);
    if (cw_collective_rooted(problem->collective)) {
        fprintf(stream, ", root %u", problem->root);
    }
    if (problem->has_counts) {
        fprintf(stream, ", different counts of elements of %u bytes", problem->element_bytes);
    } else if (problem->collective != CW_BARRIER) {
        fprintf(stream, ", %llu elements of %u bytes", (unsigned long long)problem->count, problem->element_bytes);
    }
    if (problem->ordered) {
        fputs(", operands in rank order", stream);
    }
    fputc('\n', stream);
    if (problem->has_counts && problem->collective == CW_ALLTOALL) {
        pair_counts_dump(problem, stream);
    } else if (problem->has_counts) {
        fputs("counts:", stream);
        counts_dump(problem->counts, problem->ranks, stream);
    }
    if (problem->cluster_count > 1) {
        fprintf(stream, "clusters:");
        for (uint32_t cluster = 0; cluster < problem->cluster_count; cluster++) {
            fprintf(stream, " %u", cw_problem_cluster_size(problem, cluster));
        }
        fputs(" ranks\n", stream);
    }
}

static void promise_dump(const struct cw_promise *promise, FILE *stream)
{
    if (promise->fan_in != 0) {
        fprintf(stream, "promise: at most %u messages into a rank per phase\n", promise->fan_in);
    }
    if (promise->fan_out != 0) {
        fprintf(stream, "promise: at most %u messages out of a rank per phase\n", promise->fan_out);
    }
    if (promise->phases_apart != 0) {
        fprintf(stream, "promise: messages of %s do not meet at a rank\n",
                promise->phases_apart == 1 ? "different phases" : "phases that do not follow one another");
    }
    if (promise->wan_senders != 0) {
        fprintf(stream, "promise: at most %u ranks of a cluster send to others at the same time\n",
                promise->wan_senders);
    }
    if (promise->wan_bytes != UINT64_MAX) {
        fprintf(stream, "promise: at most %llu bytes from one cluster to another\n",
                (unsigned long long)promise->wan_bytes);
    }
}

void cw_plan_dump_head(const struct cw_plan *plan, FILE *stream)
{
    const struct cw_parameters *parameters = &plan->parameters;
    problem_dump(plan->problem, stream);
    fprintf(stream, "algorithm: %s\n", plan->algorithm);
    fprintf(stream, "parameters: segment %llu bytes, ", (unsigned long long)parameters->segment_bytes);
    if (parameters->eager_max_bytes == CW_EAGER_ALL) {
        fputs("all messages eager", stream);
    } else {
        fprintf(stream, "eager up to %llu bytes", (unsigned long long)parameters->eager_max_bytes);
    }
    if (parameters->single_eager_max_bytes > 0) {
        fprintf(stream, ", single messages%s up to %llu", plan->problem->cluster_count > 1 ? " to other clusters" : "",
                (unsigned long long)parameters->single_eager_max_bytes);
    }
    fprintf(stream, ", degree %u, concurrency %u, senders %u, threshold %llu bytes\n", parameters->degree,
            parameters->concurrency, parameters->senders, (unsigned long long)parameters->threshold_bytes);
    promise_dump(&plan->schedules[0].promise, stream);
}

/* "receive[4096 + 1024 i]" */
static void place_dump(const struct cw_place *place, FILE *stream)
{
    fprintf(stream, "%s[%llu", cw_buffer_name(place->buffer), (unsigned long long)place->offset);
    if (place->step != 0) {
        fprintf(stream, " + %llu i", (unsigned long long)place->step);
    }
    fputc(']', stream);
}

static void bytes_dump(const struct cw_op *op, FILE *stream)
{
    fprintf(stream, ", %llu bytes", (unsigned long long)op->bytes);
    if (op->last_bytes != op->bytes) {
        fprintf(stream, " (the last %llu)", (unsigned long long)op->last_bytes);
    }
}

static void message_dump(const struct cw_schedule *schedule, const struct cw_op *op, FILE *stream)
{
    bool eager = (op->flags & CW_OP_EAGER) != 0;
    if (op->kind == CW_OP_MULTICAST) {
        const struct cw_group_range *group = &schedule->groups[op->peer];
        fputs(" to", stream);
        for (uint32_t i = 0; i < group->count; i++) {
            fprintf(stream, " %u", schedule->members[group->first + i]);
        }
    } else {
        fprintf(stream, " %s %u", op->kind == CW_OP_PUT ? "to" : "from", op->peer);
    }
    fprintf(stream, ", tag %u%s", op->tag, op->iterations > 1 ? " + 4 i" : "");
    if (op->bytes == 0) {
        fputs(", signal", stream);
        return;
    }
    fputs(eager ? ", eager: " : ": ", stream);
    if (op->kind != CW_OP_WAIT) {
        place_dump(&op->from, stream);
    }
    if (op->kind == CW_OP_WAIT || !eager) {
        fputs(op->kind == CW_OP_WAIT ? "in " : " -> ", stream);
        place_dump(&op->to, stream);
    }
    bytes_dump(op, stream);
}

static void local_dump(const struct cw_op *op, FILE *stream)
{
    fputc(' ', stream);
    place_dump(&op->from, stream);
    fputs(op->kind == CW_OP_COPY          ? " -> "
          : (op->flags & CW_OP_LEFT) != 0 ? " OP on the left of "
                                          : " OP on the right of ",
          stream);
    place_dump(&op->to, stream);
    if (op->blocks > 1) {
        fprintf(stream, ", %u blocks %llu -> %llu apart", op->blocks, (unsigned long long)op->from_stride,
                (unsigned long long)op->to_stride);
    }
    bytes_dump(op, stream);
}

static void host_dump(const struct cw_schedule *schedule, const struct cw_op *op, FILE *stream)
{
    fprintf(stream, " %u: %s with", op->tag, cw_collective_name(op->collective));
    for (uint32_t i = 0; i < schedule->groups[op->peer].count; i++) {
        fprintf(stream, " %u", schedule->members[schedule->groups[op->peer].first + i]);
    }
    if (cw_collective_rooted((enum cw_collective)op->collective)) {
        fprintf(stream, ", root %u", op->root);
    }
    if (op->from.buffer != CW_BUFFER_NONE) {
        fputs(": ", stream);
        place_dump(&op->from, stream);
    }
    if (op->to.buffer != CW_BUFFER_NONE) {
        fputs(" -> ", stream);
        place_dump(&op->to, stream);
    }
    if ((op->flags & CW_OP_WHOLE) != 0) {
        fputs(", the whole call", stream);
    } else if (op->bytes > 0) {
        bytes_dump(op, stream);
    }
}

static void dependencies_dump(const struct cw_schedule *schedule, const struct cw_op *op, FILE *stream)
{
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        const struct cw_dependency *dependency = &schedule->dependencies[op->dependency_first + i];
        fprintf(stream, "%s%u", i == 0 ? "; after " : ", ", dependency->op);
        if (dependency->back != 0) {
            fprintf(stream, " of i - %u", dependency->back);
        }
        if ((dependency->flags & CW_DEPENDENCY_SENT) != 0) {
            fputs(" sent", stream);
        }
    }
}

static void op_dump(const struct cw_schedule *schedule, uint32_t index, bool in_body, FILE *stream)
{
    const struct cw_op *op = &schedule->ops[index];
    fprintf(stream, "%6u  %s%s", index, in_body ? "  " : "", cw_op_kind_name(op->kind));
    switch (op->kind) {
    case CW_OP_PUT:
    case CW_OP_MULTICAST:
    case CW_OP_WAIT:
        message_dump(schedule, op, stream);
        break;
    case CW_OP_COPY:
    case CW_OP_REDUCE:
        local_dump(op, stream);
        break;
    case CW_OP_BARRIER:
        fprintf(stream, " %u", op->tag);
        break;
    case CW_OP_HOST:
        host_dump(schedule, op, stream);
        break;
    case CW_OP_REPEAT:
        fprintf(stream, " %u times the next %u, i = 0 .. %u", op->iterations, op->body_count, op->iterations - 1);
        break;
    default:
        break;
    }
    if (op->phase != 0) {
        fprintf(stream, "; phase %u", op->phase);
    }
    dependencies_dump(schedule, op, stream);
    fputc('\n', stream);
}

void cw_schedule_dump(const struct cw_schedule *schedule, FILE *stream)
{
    uint32_t body_end = 0;
    fprintf(stream, "rank %u: %u ops, %llu bytes of scratch\n", schedule->rank, schedule->op_count,
            (unsigned long long)schedule->scratch_bytes);
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        op_dump(schedule, i, i < body_end, stream);
        if (schedule->ops[i].kind == CW_OP_REPEAT) {
            body_end = i + 1 + schedule->ops[i].body_count;
        }
    }
}
