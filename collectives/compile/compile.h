/* compile: from recordings of a program's collective calls to a bundle of plans for those that recur: what a compiler
 * does in compiled communication (Karwande, Yuan and Lowenthal 2003, section 1), after a run instead of before.
 *
 * Purpose
 *   The ranks' calls are joined to whole problems (the matrix of an all-to-all-v out of its rows), those that recur get
 *   the algorithm that tests or the price model say is soonest, their plans are built and proved by the checker. What a
 *   call takes with its plan is expected from what it took: multiplied by the ratio of what the model, or tests, say of
 *   both ways. So figures that are not of this machine err on both sides alike. Control is moved, merged and
 *   eliminated: with a plan nobody chooses an algorithm, builds a schedule or exchanges counts; groups of communicators
 *   whose calls multicast are opened together with the communicator, those used most first, as long as no rank lets in
 *   more addresses than its budget.
 *
 * What recurs
 *   A call whose very problem comes at least `calls_least` times; or one of an all-to-all-v that comes as often with
 *   whatever counts: a program that sends differently in each step does the same steps again in its next run.
 *
 * What is served
 *   What is expected to take at least CW_COMPILE_GAIN_LEAST less; what nothing can be expected of, or no more than
 *   that, is left as it is, unless `all` is asked for; what a plan has served in the recorded run keeps one. Calls by
 *   shared memory (`host`) are expected anything of by tests only.
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
    CW_COMPILE_SLOWER,   /* the plan would not be sooner */
    CW_COMPILE_UNKNOWN,  /* nobody can tell whether it would be */
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
    struct cw_compile_row *rows; /* what took longest first */
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

/* "served", "not sooner", ... */
const char *cw_compile_verdict_text(enum cw_compile_verdict verdict);
