/* check: proves a plan before anything runs, by symbolic execution over every order that the schedules allow.
 *
 * Invariants
 *   - It shares no code with the builders of schedules: it knows the meaning of ops (schedule.h), the buffers
 *     (problem.h) and the results that the MPI standard requires of a collective.
 *   - A plan that passes gives the right result under any transport that keeps the meaning of ops, with any amount of
 *     buffering, none included. */
#pragma once

#include "collectives/schedule/plan.h"

enum cw_check_fault {
    CW_CHECK_PASSED = 0,
    CW_CHECK_INVALID,          /* cw_plan_validate refuses it */
    CW_CHECK_TAG_REUSED,       /* two puts from one rank to another with one tag */
    CW_CHECK_UNMATCHED_PUT,    /* no op waits for it */
    CW_CHECK_UNMATCHED_WAIT,   /* nobody puts it */
    CW_CHECK_MISMATCH,         /* put and wait disagree: bytes, place, eager or direct */
    CW_CHECK_OUT_OF_BOUNDS,    /* a direct put outside the target's buffer */
    CW_CHECK_BARRIER,          /* a barrier that not all ranks have */
    CW_CHECK_HOST,             /* a host op that not all of its ranks have, or have alike */
    CW_CHECK_DEADLOCK,         /* ops that wait for each other, if eager puts find no buffer */
    CW_CHECK_NOT_READY,        /* a direct put whose target may not have entered the collective */
    CW_CHECK_READ_UNDEFINED,   /* reads bytes that were never written */
    CW_CHECK_RACE,             /* two accesses to the same bytes, one of them a write, and nothing orders them */
    CW_CHECK_WRITTEN_TWICE,    /* a result byte is written more than once (collectives that only move data) */
    CW_CHECK_WRONG_REDUCTION,  /* operands combined that do not belong together, twice, or in the wrong order */
    CW_CHECK_WRONG_RESULT,     /* a byte of the result is missing or another one's */
    CW_CHECK_NOT_SYNCHRONIZED, /* barrier: a rank may leave before another has entered */
    /* allreduce: ranks combine the operands in different trees, so that rounding may differ */
    CW_CHECK_DIFFERENT_RESULTS,
    CW_CHECK_PROMISE_DIFFERS, /* the ranks' schedules promise different things */
    CW_CHECK_FAN_IN,
    CW_CHECK_FAN_OUT,
    CW_CHECK_PHASES, /* messages of two phases into one rank may be in flight together */
    CW_CHECK_WAN_SENDERS,
    CW_CHECK_WAN_BYTES,
    CW_CHECK_FAULT_COUNT,
};

struct cw_check_report {
    enum cw_check_fault fault; /* the first one found */
    uint32_t rank;             /* where, as far as the fault has a place; else UINT32_MAX */
    uint32_t op;
    uint32_t iteration;
    uint64_t byte;  /* in the buffer that `text` names; else UINT64_MAX */
    char text[320]; /* the fault, its place (rank, op, byte), and the violated rule, in one line */
};

/* Checks a plan. CW_OK if it could be judged (the verdict is report->fault), CW_ERROR_MEMORY. Any thread. */
int cw_check(const struct cw_plan *plan, struct cw_check_report *report);

/* Rejects a plan of another origin that does not pass: code that prices, draws or executes a plan relies on the proofs
 * of the checker. CW_OK: it passes. CW_ERROR_ARGUMENT with the report's line in `error`; CW_ERROR_MEMORY. Any
 * thread. */
int cw_check_validate(const struct cw_plan *plan, char *error, size_t error_bytes);

/* "race", "wrong result", ... */
const char *cw_check_fault_name(uint32_t fault);
