/* counters: what the processor counts for this thread in user space: cycles, instructions, misses of the level-2 cache
 * (perf_event_open(2)). Many virtual machines, and kernels with kernel.perf_event_paranoid above 2, let nobody count.
 *
 * Thread: the one that opened them. */
#pragma once

#include <stdint.h>

struct counters;

struct counters_values {
    uint64_t cycles;
    uint64_t instructions;
    uint64_t misses; /* of the level-2 cache, on processors of AMD and Intel; else of the last level */
};

/* NULL: nobody may count here. */
struct counters *counters_open(void);
void counters_close(struct counters *counters); /* NULL is allowed */

/* The counts so far; NULL: zeros. */
void counters_read(const struct counters *counters, struct counters_values *values);

/* Adds what was counted between two reads. */
static inline void counters_add(struct counters_values *sum, const struct counters_values *from,
                                const struct counters_values *to)
{
    sum->cycles += to->cycles - from->cycles;
    sum->instructions += to->instructions - from->instructions;
    sum->misses += to->misses - from->misses;
}
