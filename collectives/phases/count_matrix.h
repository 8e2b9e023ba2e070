/* count_matrix: the bytes between each pair of ranks in an all-to-all with counts, and their division into phases.
 *
 * Within a phase a rank sends at most one message and receives at most one, so that messages do not meet at a link
 * (Karwande, Yuan and Lowenthal 2003, section 4.2); a phase takes as long as its longest message. A last phase may hold
 * all messages below a threshold: for short ones, sending at once is better than separation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/problem.h"

struct cw_count_matrix_message {
    uint32_t from;
    uint32_t to; /* another rank */
    uint64_t bytes;
};

/* A list of messages; each pair of ranks at most once; none of 0 bytes. Where messages have the same length, the list's
 * order decides. */
struct cw_count_matrix {
    uint32_t ranks;
    uint32_t message_count;
    struct cw_count_matrix_message *messages;
};

/* The messages of an all-to-all, by sender and receiver. CW_OK, CW_ERROR_MEMORY, or CW_ERROR_LIMIT: more than
 * CW_COUNT_MATRIX_MESSAGES_MAX. */
int cw_count_matrix_create(const struct cw_problem *problem, struct cw_count_matrix *count_matrix);
void cw_count_matrix_dispose(struct cw_count_matrix *count_matrix);

/* The most messages that one rank sends or receives: no division that keeps messages whole has fewer phases. */
int cw_count_matrix_degree(const struct cw_count_matrix *count_matrix, uint32_t *degree);

/* A message in a phase. */
struct cw_phase_message {
    uint32_t message; /* index in the count matrix */
    uint32_t phase;
    uint32_t from;
    uint32_t to;

    uint64_t bytes;
};

struct cw_phases {
    uint32_t phase_count;
    uint32_t message_count;
    bool last_is_mixed;                /* the last phase holds the messages below the threshold */
    struct cw_phase_message *messages; /* by phase */
};

void cw_phases_dispose(struct cw_phases *phases);

/* ---- The schedulers. CW_OK or CW_ERROR_MEMORY ---- */

/* Longest messages first, each in the first phase where it meets no other (section 4.2, greedy scheduling). */
int cw_schedule_greedy(const struct cw_count_matrix *count_matrix, uint64_t threshold_bytes, struct cw_phases *phases);

/* A phase begins with the messages that keep the distance of the longest one left, and is filled up greedily (section
 * 4.2, Figure 4). At most ranks - 1 phases. */
int cw_schedule_all_to_all_based(const struct cw_count_matrix *count_matrix, uint64_t threshold_bytes,
                                 struct cw_phases *phases);
