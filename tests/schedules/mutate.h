/* mutate: small changes to a valid plan, each of which a checker ought to have an opinion on.
 *
 * A mutation is a kind and a site: which op (or dependency) of which rank it is applied to. Sites are numbered through
 * the plan. Failures name both by their numbers, as arguments of tests/schedules/damage.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/plan.h"

enum mutation {
    MUTATE_DROP_OP,          /* the op does nothing any more; its dependents wait for its dependencies */
    MUTATE_DROP_ORDER,       /* an op waits for nothing any more */
    MUTATE_DROP_DEPENDENCY,  /* ... for one thing less */
    MUTATE_SENT_DEPENDENCY,  /* ... for a put to be sent only */
    MUTATE_SWAP_FROM_BUFFER, /* reads from another buffer */
    MUTATE_SWAP_TO_BUFFER,   /* writes into another buffer */
    MUTATE_SHIFT_FROM,       /* reads one element further on */
    MUTATE_SHIFT_TO,         /* writes one element further on */
    MUTATE_SHIFT_PUT,        /* a direct put and its wait both name the place one element further on */
    MUTATE_OVERLAP_PUTS,     /* a direct put and its wait name the place of another put into the same rank */
    MUTATE_SHORTEN,          /* moves one element less */
    MUTATE_SHORTEN_PUT,      /* a put and its wait both move one element less */
    MUTATE_SWAP_TAGS,        /* two puts from one rank to another exchange their tags */
    MUTATE_SWAP_PEERS,       /* two puts of one rank exchange their targets */
    MUTATE_SWAP_SIDE,        /* reduce: the other operand is left */
    MUTATE_MAKE_DIRECT,      /* an eager put and its wait become direct, without a handshake */
    MUTATE_MERGE_PHASES,     /* everything after a barrier or join no longer waits for it */
    MUTATE_FEWER_ITERATIONS, /* a repeat and its body run once less */
    MUTATE_SAME_TAGS,        /* two puts from one rank to another have one tag */
    MUTATION_COUNT,
};

/* Applies mutation `kind` at site number `site`. False if there is no such site: then the plan is as it was. A site
 * where the mutation would change nothing counts, but leaves *changed false. */
bool plan_mutate(struct cw_plan *plan, enum mutation kind, uint32_t site, bool *changed);
