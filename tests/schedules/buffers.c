#include "tests/schedules/buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RED_ZONE_BYTES = 64 };

/* Of all ranks' buffers; as much again is for their expected contents. */
#define MEMORY_BYTES_MAX (8ull << 30)

/* Byte `offset` of a red zone: not the same everywhere, so that a copy of one to another shows. */
static uint8_t red(uint64_t offset)
{
    return (uint8_t)(offset * 0x9e3779b97f4a7c15u >> 56);
}

static void redden(uint8_t *memory, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        memory[i] = red(i);
    }
}

static uint64_t room(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64 + RED_ZONE_BYTES;
}

static bool memory_create(struct plan_buffers *buffers)
{
    const struct cw_plan *plan = buffers->plan;
    uint64_t offset = RED_ZONE_BYTES;
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        struct plan_rank_buffers *of = &buffers->ranks[rank];
        of->bytes[CW_BUFFER_SEND] = cw_problem_buffer_bytes(plan->problem, rank, CW_BUFFER_SEND);
        of->bytes[CW_BUFFER_RECEIVE] = cw_problem_buffer_bytes(plan->problem, rank, CW_BUFFER_RECEIVE);
        of->bytes[CW_BUFFER_SCRATCH] = plan->schedules[rank].scratch_bytes;
        for (uint32_t i = CW_BUFFER_SEND; i <= CW_BUFFER_SCRATCH; i++) {
            offset += room(of->bytes[i]);
        }
        if (offset > MEMORY_BYTES_MAX) { /* rank by rank: nothing overflows */
            return false;
        }
    }
    buffers->memory = aligned_alloc(64, offset);
    if (buffers->memory == NULL) {
        return false;
    }
    redden(buffers->memory, 0, RED_ZONE_BYTES);
    uint64_t start = RED_ZONE_BYTES;
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        struct plan_rank_buffers *of = &buffers->ranks[rank];
        for (uint32_t i = CW_BUFFER_SEND; i <= CW_BUFFER_SCRATCH; i++) {
            of->at[i] = buffers->memory + start;
            redden(buffers->memory, start + of->bytes[i], start + room(of->bytes[i]));
            start += room(of->bytes[i]);
        }
    }
    return true;
}

int plan_buffers_create(struct plan_buffers *buffers, const struct cw_plan *plan, char *error, size_t error_bytes)
{
    *buffers = (struct plan_buffers){.plan = plan};
    buffers->ranks = calloc(plan->problem->ranks, sizeof(*buffers->ranks));
    if (buffers->ranks == NULL || !memory_create(buffers)) {
        snprintf(error, error_bytes, "no memory for the buffers of all ranks, which may take 8 GiB together");
        return -1;
    }
    return 0;
}

void plan_buffers_dispose(struct plan_buffers *buffers)
{
    free(buffers->ranks);
    free(buffers->memory);
}

/* ---- Contents ---- */

static void fill(uint8_t *to, uint64_t bytes, uint64_t key)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = (key + i) * 0x9e3779b97f4a7c15u;
        word = (word ^ (word >> 31)) * 0xbf58476d1ce4e5b9u;
        word ^= word >> 29;
        memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

int plan_truth_create(struct plan_truth *truth, const struct cw_plan *plan, uint64_t salt, char *error,
                      size_t error_bytes)
{
    const struct cw_problem *problem = plan->problem;
    uint64_t total = 0;
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        total += cw_problem_buffer_bytes(problem, rank, CW_BUFFER_SEND);
    }
    *truth = (struct plan_truth){.sent = malloc(total + 1), .send = calloc(problem->ranks, sizeof(*truth->send))};
    if (truth->sent == NULL || truth->send == NULL) {
        snprintf(error, error_bytes, "no memory for what all ranks send");
        return -1;
    }
    uint8_t *next = truth->sent;
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        uint64_t bytes = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_SEND);
        truth->send[rank] = next;
        fill(next, bytes, cw_random_derive(salt, rank));
        next += bytes;
    }
    if (!plan_reference_create(&truth->reference, problem, truth->send)) {
        snprintf(error, error_bytes, "no memory for what all ranks receive");
        return -1;
    }
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        uint64_t has = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_RECEIVE);
        if (truth->reference.bytes[rank] != has) {
            snprintf(error, error_bytes, "rank %u has to receive %llu bytes, but its buffer has %llu", rank,
                     (unsigned long long)truth->reference.bytes[rank], (unsigned long long)has);
            return -1;
        }
    }
    return 0;
}

void plan_truth_dispose(struct plan_truth *truth)
{
    plan_reference_dispose(&truth->reference);
    free(truth->send);
    free(truth->sent);
}

void plan_buffers_fill(struct plan_buffers *buffers, const struct plan_truth *truth, uint32_t rank,
                       struct cw_random *random)
{
    const struct plan_rank_buffers *of = &buffers->ranks[rank];
    memcpy(of->at[CW_BUFFER_SEND], truth->send[rank], of->bytes[CW_BUFFER_SEND]);
    fill(of->at[CW_BUFFER_RECEIVE], of->bytes[CW_BUFFER_RECEIVE], cw_random_next(random));
    fill(of->at[CW_BUFFER_SCRATCH], of->bytes[CW_BUFFER_SCRATCH], cw_random_next(random));
}

/* ---- Judging ---- */

static int receive_compare(const struct plan_buffers *buffers, const struct plan_truth *truth, uint32_t rank,
                           char *error, size_t error_bytes)
{
    const uint8_t *got = buffers->ranks[rank].at[CW_BUFFER_RECEIVE];
    const uint8_t *expected = truth->reference.expected[rank];
    uint64_t bytes = truth->reference.bytes[rank];
    if (bytes == 0 || memcmp(got, expected, bytes) == 0) {
        return 0;
    }
    uint64_t first = 0;
    while (got[first] == expected[first]) {
        first++;
    }
    snprintf(error, error_bytes, "rank %u: byte %llu of the %llu received is 0x%02x instead of 0x%02x", rank,
             (unsigned long long)first, (unsigned long long)bytes, got[first], expected[first]);
    return -1;
}

static int red_zones_check(const struct plan_buffers *buffers, uint32_t rank, char *error, size_t error_bytes)
{
    const struct plan_rank_buffers *of = &buffers->ranks[rank];
    for (uint32_t i = CW_BUFFER_SEND; i <= CW_BUFFER_SCRATCH; i++) {
        uint64_t start = (uint64_t)((const uint8_t *)of->at[i] - buffers->memory);
        for (uint64_t byte = start - RED_ZONE_BYTES; byte < start; byte++) {
            if (buffers->memory[byte] != red(byte)) {
                snprintf(error, error_bytes, "rank %u: something was written before the %s buffer", rank,
                         cw_buffer_name(i));
                return -1;
            }
        }
        for (uint64_t byte = start + of->bytes[i]; byte < start + room(of->bytes[i]); byte++) {
            if (buffers->memory[byte] != red(byte)) {
                snprintf(error, error_bytes, "rank %u: something was written behind the %s buffer", rank,
                         cw_buffer_name(i));
                return -1;
            }
        }
    }
    return 0;
}

int plan_buffers_check(const struct plan_buffers *buffers, const struct plan_truth *truth, uint32_t rank, char *error,
                       size_t error_bytes)
{
    const struct plan_rank_buffers *of = &buffers->ranks[rank];
    if (memcmp(of->at[CW_BUFFER_SEND], truth->send[rank], of->bytes[CW_BUFFER_SEND]) != 0) {
        snprintf(error, error_bytes, "rank %u: the send buffer was written", rank);
        return -1;
    }
    if (receive_compare(buffers, truth, rank, error, error_bytes) != 0) {
        return -1;
    }
    return red_zones_check(buffers, rank, error, error_bytes);
}
