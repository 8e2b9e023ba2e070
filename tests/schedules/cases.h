/* cases: every algorithm on every kind of problem that the schedule tests go through.
 *
 * Numbers of ranks 1..40, 64, 100, 127 and 128; all roots up to 40 ranks, some above; sizes 0, 1, 7, P - 1, P + 1 and
 * 4099 elements; the same and different counts; commutative and ordered operations; eager messages and handshakes; the
 * parameters that an algorithm takes. */
#pragma once

#include "collectives/algorithms/build.h"

struct schedule_case {
    const struct cw_algorithm *algorithm;
    struct cw_problem_request request;
    struct cw_parameters parameters;
    uint64_t number; /* of this case, for its seed */
    char name[200];  /* as arguments of `causeway plan build` */
};

/* Called for each case; stops when it returns false. */
typedef bool (*schedule_case_visit)(void *context, const struct schedule_case *one);

/* Goes through the cases of one algorithm with P ranks; false if stopped. `thin`: only about each thin-th of them (1:
 * all; else fewer still of the large ones). */
bool schedule_cases(const struct cw_algorithm *algorithm, uint32_t ranks, uint32_t thin, schedule_case_visit visit,
                    void *context);

/* The numbers of ranks, ended by 0. */
extern const uint32_t schedule_case_ranks[];

/* The plan of a case; fails the test if it cannot be built. */
struct cw_plan *schedule_case_build(const struct schedule_case *one);
