#include "apps/plan/buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RED_ZONE_BYTES = 64 };

/* Of all ranks' buffers; as much again is for what they must end with. */
#define MEMORY_BYTES_MAX (8ull << 30)

/* What byte `offset` of the memory has in a red zone: not the same everywhere, so that a copy of one to another
 * shows. */
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
    const struct cw_problem *problem = buffers->plan->problem;
    uint64_t offset = RED_ZONE_BYTES;
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        struct plan_rank_buffers *of = &buffers->ranks[rank];
        of->bytes[CW_BUFFER_SEND] = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_SEND);
        of->bytes[CW_BUFFER_RECEIVE] = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_RECEIVE);
        of->bytes[CW_BUFFER_SCRATCH] = buffers->plan->schedules[rank].scratch_bytes;
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
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        struct plan_rank_buffers *of = &buffers->ranks[rank];
        for (uint32_t i = CW_BUFFER_SEND; i <= CW_BUFFER_SCRATCH; i++) {
            of->at[i] = buffers->memory + start;
            redden(buffers->memory, start + of->bytes[i], start + room(of->bytes[i]));
            start += room(of->bytes[i]);
        }
    }
    return true;
}

static void fill(uint8_t *to, uint64_t bytes, uint64_t key)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = (key + i) * 0x9e3779b97f4a7c15u;
        word = (word ^ (word >> 31)) * 0xbf58476d1ce4e5b9u;
        word ^= word >> 29;
        memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

/* Send buffers have their contents for good; a copy tells whether that is kept. */
static bool send_create(struct plan_buffers *buffers, uint64_t salt)
{
    uint32_t ranks = buffers->plan->problem->ranks;
    uint64_t total = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        total += buffers->ranks[rank].bytes[CW_BUFFER_SEND];
    }
    buffers->send_copy = malloc(total + 1);
    uint8_t **send = calloc(ranks, sizeof(*send));
    if (buffers->send_copy == NULL || send == NULL) {
        free(send);
        return false;
    }
    uint8_t *copy = buffers->send_copy;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t bytes = buffers->ranks[rank].bytes[CW_BUFFER_SEND];
        send[rank] = copy; /* the reference stays right without the memory */
        fill(copy, bytes, cw_random_derive(salt, rank));
        memcpy(buffers->ranks[rank].at[CW_BUFFER_SEND], copy, bytes);
        buffers->ranks[rank].send_offset = (uint64_t)(copy - buffers->send_copy);
        copy += bytes;
    }
    bool created = plan_reference_create(&buffers->reference, buffers->plan->problem, send);
    free(send);
    return created;
}

int plan_buffers_create(struct plan_buffers *buffers, const struct cw_plan *plan, uint64_t salt, char *error,
                        size_t error_bytes)
{
    *buffers = (struct plan_buffers){.plan = plan};
    buffers->ranks = calloc(plan->problem->ranks, sizeof(*buffers->ranks));
    if (buffers->ranks == NULL || !memory_create(buffers) || !send_create(buffers, salt)) {
        snprintf(error, error_bytes, "no memory for the buffers of all ranks, which may take 8 GiB together");
        return -1;
    }
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        uint64_t has = buffers->ranks[rank].bytes[CW_BUFFER_RECEIVE];
        if (buffers->reference.bytes[rank] != has) {
            snprintf(error, error_bytes, "rank %u has to receive %llu bytes, but its buffer has %llu", rank,
                     (unsigned long long)buffers->reference.bytes[rank], (unsigned long long)has);
            return -1;
        }
    }
    return 0;
}

void plan_buffers_keep_truth(struct plan_buffers *buffers)
{
    free(buffers->memory);
    buffers->memory = NULL;
}

void plan_buffers_dispose(struct plan_buffers *buffers)
{
    plan_reference_dispose(&buffers->reference);
    free(buffers->ranks);
    free(buffers->memory);
    free(buffers->send_copy);
}

static void spoil(const struct plan_rank_buffers *of, struct cw_random *random)
{
    fill(of->at[CW_BUFFER_RECEIVE], of->bytes[CW_BUFFER_RECEIVE], cw_random_next(random));
    fill(of->at[CW_BUFFER_SCRATCH], of->bytes[CW_BUFFER_SCRATCH], cw_random_next(random));
}

void plan_buffers_spoil(struct plan_buffers *buffers, struct cw_random *random)
{
    for (uint32_t rank = 0; rank < buffers->plan->problem->ranks; rank++) {
        spoil(&buffers->ranks[rank], random);
    }
}

void plan_buffers_refill(struct plan_buffers *buffers, const struct plan_buffers *truth, uint32_t rank,
                         struct cw_random *random)
{
    const struct plan_rank_buffers *of = &buffers->ranks[rank];
    memcpy(of->at[CW_BUFFER_SEND], truth->send_copy + of->send_offset, of->bytes[CW_BUFFER_SEND]);
    spoil(of, random);
}

/* ---- Judging ---- */

static int receive_compare(const struct plan_buffers *buffers, const struct plan_buffers *truth, uint32_t rank,
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

int plan_buffers_judge_rank(const struct plan_buffers *buffers, const struct plan_buffers *truth, uint32_t rank,
                            char *error, size_t error_bytes)
{
    const struct plan_rank_buffers *of = &buffers->ranks[rank];
    if (memcmp(of->at[CW_BUFFER_SEND], truth->send_copy + of->send_offset, of->bytes[CW_BUFFER_SEND]) != 0) {
        snprintf(error, error_bytes, "rank %u: the send buffer was written", rank);
        return -1;
    }
    if (receive_compare(buffers, truth, rank, error, error_bytes) != 0) {
        return -1;
    }
    return red_zones_check(buffers, rank, error, error_bytes);
}

int plan_buffers_judge(const struct plan_buffers *buffers, char *error, size_t error_bytes)
{
    for (uint32_t rank = 0; rank < buffers->plan->problem->ranks; rank++) {
        if (plan_buffers_judge_rank(buffers, buffers, rank, error, error_bytes) != 0) {
            return -1;
        }
    }
    return 0;
}
