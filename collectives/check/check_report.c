/* check: the text of a fault. */
#include "collectives/check/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cw_check_fault_name(uint32_t fault)
{
    static const char *const names[CW_CHECK_FAULT_COUNT] = {
        [CW_CHECK_PASSED] = "passed",
        [CW_CHECK_INVALID] = "invalid",
        [CW_CHECK_TAG_REUSED] = "tag reused",
        [CW_CHECK_UNMATCHED_PUT] = "unmatched put",
        [CW_CHECK_UNMATCHED_WAIT] = "unmatched wait",
        [CW_CHECK_MISMATCH] = "mismatch",
        [CW_CHECK_OUT_OF_BOUNDS] = "out of bounds",
        [CW_CHECK_BARRIER] = "incomplete barrier",
        [CW_CHECK_HOST] = "host ops differ",
        [CW_CHECK_DEADLOCK] = "deadlock",
        [CW_CHECK_NOT_READY] = "target not ready",
        [CW_CHECK_READ_UNDEFINED] = "undefined bytes read",
        [CW_CHECK_RACE] = "race",
        [CW_CHECK_WRITTEN_TWICE] = "written twice",
        [CW_CHECK_WRONG_REDUCTION] = "wrong reduction",
        [CW_CHECK_WRONG_RESULT] = "wrong result",
        [CW_CHECK_NOT_SYNCHRONIZED] = "not synchronized",
        [CW_CHECK_DIFFERENT_RESULTS] = "different results",
        [CW_CHECK_PROMISE_DIFFERS] = "promises differ",
        [CW_CHECK_FAN_IN] = "fan-in",
        [CW_CHECK_FAN_OUT] = "fan-out",
        [CW_CHECK_PHASES] = "phases overlap",
        [CW_CHECK_WAN_SENDERS] = "WAN senders",
        [CW_CHECK_WAN_BYTES] = "WAN bytes",
    };
    return fault < CW_CHECK_FAULT_COUNT ? names[fault] : "unknown fault";
}

/* "put to rank 5, phase 2, iteration 3" */
static void describe(const struct check *check, uint32_t instance, char *text, size_t text_bytes)
{
    uint32_t number = check->instance_op[instance];
    const struct cw_op *op = check_op(check, number);
    char peer[40] = "";
    char iteration[32] = "";
    if (op->kind == CW_OP_PUT) {
        snprintf(peer, sizeof(peer), " to rank %u", op->peer);
    } else if (op->kind == CW_OP_WAIT) {
        snprintf(peer, sizeof(peer), " for rank %u", op->peer);
    } else if (op->kind == CW_OP_MULTICAST) {
        snprintf(peer, sizeof(peer), " to group %u", op->peer);
    } else if (op->kind == CW_OP_HOST) {
        snprintf(peer, sizeof(peer), " %u, %s", op->tag, cw_collective_name(op->collective));
    } else if (op->kind == CW_OP_BARRIER) {
        snprintf(peer, sizeof(peer), " %u", op->tag);
    }
    if (check->op_repeat[number] != CHECK_NONE) {
        if (check_is_own(check, instance)) {
            snprintf(iteration, sizeof(iteration), ", iteration %u", check_iteration(check, instance));
        } else {
            snprintf(iteration, sizeof(iteration), ", all iterations");
        }
    }
    snprintf(text, text_bytes, "%s%s, phase %u%s", cw_op_kind_name(op->kind), peer, op->phase, iteration);
}

struct check_name check_name(const struct check *check, uint32_t instance)
{
    struct check_name name;
    uint32_t number = check->instance_op[instance];
    if (number == CHECK_NONE) {
        snprintf(name.text, sizeof(name.text), "barrier %u", instance - check->barrier_first);
        return name;
    }
    char text[96];
    describe(check, instance, text, sizeof(text));
    uint32_t rank = check->op_rank[number];
    snprintf(name.text, sizeof(name.text), "op %u of rank %u (%.70s)", number - check->rank_first_op[rank], rank, text);
    return name;
}

int check_fail(struct check *check, enum cw_check_fault fault, uint32_t instance, uint64_t byte, const char *format,
               ...)
{
    assert(instance < check->barrier_first);
    struct cw_check_report *report = check->report;
    uint32_t number = check->instance_op[instance];
    uint32_t rank = check->op_rank[number];
    *report =
        (struct cw_check_report){.fault = fault,
                                 .rank = rank,
                                 .op = number - check->rank_first_op[rank],
                                 .iteration = check_is_own(check, instance) ? check_iteration(check, instance) : 0,
                                 .byte = byte};
    char text[96];
    describe(check, instance, text, sizeof(text));
    snprintf(report->text, sizeof(report->text), "rank %u, op %u (%s): ", rank, report->op, text);
    size_t used = strlen(report->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->text + used, sizeof(report->text) - used, format, arguments);
    va_end(arguments);
    return CHECK_FAULT;
}

int check_fail_rank(struct check *check, enum cw_check_fault fault, uint32_t rank, uint64_t byte, const char *format,
                    ...)
{
    struct cw_check_report *report = check->report;
    *report =
        (struct cw_check_report){.fault = fault, .rank = rank, .op = UINT32_MAX, .iteration = UINT32_MAX, .byte = byte};
    size_t used = 0;
    if (rank != CHECK_NONE) {
        snprintf(report->text, sizeof(report->text), "rank %u: ", rank);
        used = strlen(report->text);
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->text + used, sizeof(report->text) - used, format, arguments);
    va_end(arguments);
    return CHECK_FAULT;
}
