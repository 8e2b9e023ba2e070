/* Runs a plan over the adversarial memory transport and compares every rank's received data with a serial reference
 * that is written from the definitions in the MPI standard, and shares nothing with the builders of schedules.
 *
 * Invariants
 *   - The same plan and seed give the same run. A seed draws when ranks enter (some only when nothing else can happen),
 *     the order of polls, the order of ready ops, and all draws of the fabric.
 *   - Send buffers depend on rank, byte and salt; receive and scratch buffers begin as garbage that depends on the
 *     seed; all lie between red zones.
 *   - Operation of reductions: the sum of bytes modulo 256; for `ordered` problems the composition of maps x -> ax + b
 *     modulo 16, a odd, one per byte (a in its upper, b in its lower half): a group that is not commutative, so that a
 *     missing, a doubled and a misplaced operand all show.
 * Order of calls: create, run any number of times, destroy. Thread: one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule/plan.h"

#define PLAN_TRIAL_EAGER_BUFFERS_MANY 1000000u

struct plan_trial;

/* The plan must be valid (cw_plan_validate) and stay. 0, or -1 and the reason. */
int plan_trial_create(const struct cw_plan *plan, uint64_t salt, struct plan_trial **trial, char *error,
                      size_t error_bytes);
void plan_trial_destroy(struct plan_trial *trial);

/* 0; -1 and the error: a wrong result, a deadlock with the wait of each rank, a fault that the fabric saw, ... */
int plan_trial_run(struct plan_trial *trial, uint64_t seed, uint32_t eager_buffers, char *error, size_t error_bytes);

/* All three, for one seed. */
int plan_trial_once(const struct cw_plan *plan, uint64_t seed, uint32_t eager_buffers, char *error, size_t error_bytes);
