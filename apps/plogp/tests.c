/* All questions of a job: sizes by collectives. Each gets its share of the remaining time. Sizes come from coarse to
 * fine: when time is up, a missing size lies between two that were tested. */
#include <string.h>

#include "apps/plogp/question.h"
#include "dataplane/status.h"

static const enum cw_collective collectives[] = {
    CW_BARRIER, CW_BCAST,     CW_SCATTER,        CW_GATHER, CW_ALLGATHER, CW_ALLTOALL,
    CW_REDUCE,  CW_ALLREDUCE, CW_REDUCE_SCATTER, CW_SCAN,   CW_EXSCAN,
};

enum { COLLECTIVES = sizeof(collectives) / sizeof(collectives[0]) };

static bool has_blocks(enum cw_collective collective)
{
    return collective == CW_SCATTER || collective == CW_GATHER || collective == CW_ALLGATHER ||
           collective == CW_ALLTOALL || collective == CW_REDUCE_SCATTER;
}

/* A barrier has one size, blocks of all ranks together a bound. */
static bool is_requested(const struct plogp_measure *measure, enum cw_collective collective, uint64_t bytes)
{
    if (collective == CW_BARRIER) {
        return bytes == measure->sizes[0];
    }
    return !has_blocks(collective) || bytes * (uint64_t)measure->size <= PLOGP_BLOCKS_MAX_BYTES;
}

static uint32_t questions_count(const struct plogp_measure *measure)
{
    uint32_t count = 0;
    for (uint32_t size = 0; size < measure->size_count; size++) {
        for (uint32_t i = 0; i < COLLECTIVES; i++) {
            count += is_requested(measure, collectives[i], measure->sizes[size]);
        }
    }
    return count;
}

/* Of one algorithm with several parameters the best counts. */
static void question_keep(struct plogp_measure *measure, const struct plogp_question *question)
{
    for (uint32_t i = 0; i < question->contender_count; i++) {
        const struct plogp_contender *one = &question->contenders[i];
        bool is_best = true;
        for (uint32_t k = 0; k < question->contender_count; k++) {
            is_best = is_best && (question->contenders[k].algorithm != one->algorithm ||
                                  question->contenders[k].time_ns >= one->time_ns);
        }
        struct cw_measured_test test = {
            .path = measure->path,
            .collective = question->collective,
            .ranks = (uint32_t)measure->size,
            .bytes = question->bytes,
            .parameters = one->parameters,
            .time_ns = one->time_ns < 1 ? 1 : one->time_ns,
        };
        strncpy(test.algorithm, one->algorithm->name, sizeof(test.algorithm) - 1);
        if (is_best && cw_measured_add_test(measure->result, &test) != CW_OK) {
            plogp_fail("no memory");
        }
    }
}

/* Whether there was time for it; rank 0's clock decides. */
static bool question_run(struct plogp_measure *measure, enum cw_collective collective, uint64_t bytes, uint32_t left)
{
    static struct plogp_question question;
    uint64_t now_ns = plogp_now_ns();
    uint64_t budget_ns = measure->deadline_ns > now_ns ? (measure->deadline_ns - now_ns) / left : 0;
    question = (struct plogp_question){.collective = collective, .bytes = collective == CW_BARRIER ? 0 : bytes};
    if (measure->rank == 0 && budget_ns > 0) {
        plogp_contenders(measure, &question);
    }
    MPI_Bcast(&question.contender_count, 1, MPI_UINT32_T, 0, measure->sync);
    if (question.contender_count == 0) {
        return false;
    }
    plogp_question_run(measure, &question, budget_ns);
    if (measure->rank == 0) {
        question_keep(measure, &question);
    }
    return true;
}

/* The first and the last, then each time the middle of the widest untested stretch. */
static uint32_t sizes_order(uint32_t count, uint32_t *order)
{
    uint64_t taken = 1;
    uint32_t used = 0;
    order[used++] = 0;
    while (used < count) {
        uint32_t best = count - 1, width = 0;
        for (uint32_t low = 0; low < count && (taken >> (count - 1) & 1) != 0; low++) {
            uint32_t high = low + 1;
            while (high < count && (taken >> high & 1) == 0) {
                high++;
            }
            if ((taken >> low & 1) != 0 && high < count && high - low > width) {
                width = high - low;
                best = low + width / 2;
            }
        }
        order[used++] = best;
        taken |= 1ull << best;
    }
    return used;
}

void plogp_measure_tests(struct plogp_measure *measure)
{
    uint32_t order[PLOGP_SIZES_MAX];
    uint32_t left = questions_count(measure);
    uint32_t count = sizes_order(measure->size_count, order);
    for (uint32_t size = 0; size < count; size++) {
        for (uint32_t i = 0; i < COLLECTIVES; i++) {
            uint64_t bytes = measure->sizes[order[size]];
            if (is_requested(measure, collectives[i], bytes) && !question_run(measure, collectives[i], bytes, left--)) {
                return;
            }
        }
    }
}
