/* compile: from recordings of a program's collective calls to a bundle of plans for those that recur. It does the work
 * of a compiler in compiled communication (Karwande, Yuan and Lowenthal 2003, section 1), after a run instead of
 * before.
 *
 * Purpose
 *   The ranks' calls are joined to whole problems (the matrix of an all-to-all-v out of its rows). Recurring problems
 *   get the fastest algorithm according to tests or the price model, and the checker proves their plans. The expected
 *   time of a call with its plan is its recorded time multiplied by the ratio of the model's, or tests', results for
 *   both algorithms. So figures of another machine err on both sides alike. Control is moved, merged and eliminated:
 *   with a plan no rank chooses an algorithm, builds a schedule or exchanges counts. Groups of communicators whose
 *   calls multicast are opened together with the communicator, those used most first, as long as no rank admits more
 *   addresses than its budget.
 *
 * What recurs
 *   A call whose very problem recurs at least `calls_least` times; or one of an all-to-all-v that recurs as often with
 *   any counts: a program that sends differently in each step does the same steps again in its next run.
 *
 * What is served
 *   A plan must be expected to save at least CW_COMPILE_GAIN_LEAST of the time. Other calls, and those without an
 *   expectation, get no plan, unless `all` is set; a call that a plan has served in the recorded run keeps one. Calls
 *   by shared memory (`host`) have an expected time only from tests.
 *
 * Order of calls: cw_compile, cw_compile_dispose. No I/O. Thread: any. */
#pragma once

#include "collectives/choose/measured.h"
#include "collectives/file/bundle.h"
#include "collectives/file/recording.h"

/* A plan that is expected to gain less is not worth a change. */
#define CW_COMPILE_GAIN_LEAST 0.05

enum cw_compile_verdict {
    CW_COMPILE_SERVED = 0,
    CW_COMPILE_RARE,     /* does not recur */
    CW_COMPILE_SLOWER,   /* the plan would not be faster */
    CW_COMPILE_UNKNOWN,  /* no estimate of the plan is possible */
    CW_COMPILE_PRIVATE,  /* ranks know only their own counts, and there is no schedule for that (gatherv, scatterv) */
    CW_COMPILE_MISMATCH, /* the ranks' calls do not fit together */
    CW_COMPILE_TRIVIAL,  /* one rank, or nothing to send */
    CW_COMPILE_FAILED,   /* no plan could be built, or it did not pass the checker: `reason` */
    CW_COMPILE_FULL,     /* the bundle has no room */
    CW_COMPILE_VERDICTS,
};

/* Calls of one problem of a communicator. */
struct cw_compile_row {
    uint32_t comm; /* of the bundle */
    enum cw_collective collective;
    bool has_rows;
    uint32_t root;
    uint64_t bytes; /* of the vector, of a block, or of all blocks together with counts or rows */
    uint64_t calls;
    double now_ns;                        /* a rank spent in it, on average; as recorded */
    char now[CW_RECORDING_NAME_MAX + 16]; /* how it was carried out: "pairs", "counts + greedy" */
    const char *then;                     /* the algorithm; NULL: none */
    double then_ns;                       /* expected; 0: nobody knows */
    enum cw_compile_verdict verdict;
    char reason[200];
};

struct cw_compile_group {
    uint32_t comm;
    uint64_t uses; /* calls that multicast */
    bool at_once;  /* opened with the communicator; else with its first use: the budget is used up */
};

struct cw_compiled {
    struct cw_bundle *bundle;
    uint32_t row_count;
    struct cw_compile_row *rows; /* the longest total time first */
    uint32_t group_count;
    struct cw_compile_group *groups;
    uint64_t calls;    /* joined */
    uint64_t unjoined; /* at some rank only, or left out of the trace */
};

struct cw_compile_request {
    const struct cw_recording *const *recordings; /* of one program, with as many ranks */
    uint32_t recording_count;
    const struct cw_measured *measured; /* NULL: built-in figures */
    uint64_t calls_least;
    bool all;
    uint32_t filter_budget; /* addresses that a rank's port lets in (control/groups/groups.h) */
};

/* CW_OK: to be given to cw_compile_dispose. CW_ERROR_ARGUMENT with a line in `error`: the recordings are not of one
 * program and as many ranks; CW_ERROR_MEMORY. */
int cw_compile(const struct cw_compile_request *request, struct cw_compiled *compiled, char *error, size_t error_bytes);
void cw_compile_dispose(struct cw_compiled *compiled);

/* "planned", "does not recur", ... */
const char *cw_compile_verdict_text(enum cw_compile_verdict verdict);
