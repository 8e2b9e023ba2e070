/* The expected receive data of each rank, computed serially (schedules/reference.c). For schedules/trial.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/problem.h"

struct plan_reference {
    const uint8_t **expected; /* by rank */
    uint64_t *bytes;          /* by rank */
    uint8_t *memory;          /* memory of `expected`, where it is not a send buffer */
};

/* `send` by rank. False: no memory. */
bool plan_reference_create(struct plan_reference *reference, const struct cw_problem *problem, uint8_t *const *send);
void plan_reference_dispose(struct plan_reference *reference);

/* to = left OP right, byte by byte; `to` may be one of them. */
void plan_combine(bool ordered, uint8_t *to, const uint8_t *left, const uint8_t *right, uint64_t bytes);
