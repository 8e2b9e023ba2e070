/* plogp measure: the program that `causeway plogp` starts as a job, against libmpi_abi as users have it. Rank 0 writes
 * what it has found as the text of a file of measured parameters (collectives/choose/measured.h) to its standard
 * output, behind a line "noise NUMBER".
 *
 *   plogp_measure PATH BUDGET_MS measure|parameters SIZES
 *
 * `parameters` measures no algorithms. It serves simulated networks: causeway run -n 2 --simulate cpu=0
 * libexec/causeway/plogp_measure wire 500 parameters 8
 *
 * All functions are called by all ranks together. */
#pragma once

#include <mpi.h>

#include "collectives/choose/measured.h"

enum {
    PLOGP_SIZES_MAX = 32,
    PLOGP_BLOCKS_MAX_BYTES =
        2 << 20, /* of all blocks of a rank together: larger calls take as many times longer, and say the same */
};

struct plogp_measure {
    enum cw_measured_path path;
    int rank;
    int size;
    uint64_t deadline_ns;
    uint64_t sizes[PLOGP_SIZES_MAX];
    uint32_t size_count;
    MPI_Comm sync;              /* its barrier separates measurements */
    MPI_Comm *arenas;           /* one for each contender; their hints say what to run */
    struct cw_measured *result; /* at rank 0 */
    double noise; /* of the noisiest of the parameters (plogp/arithmetic.h); 0: none measured; at rank 0 */
};

enum { PLOGP_CONTENDERS_MAX = 40 };

/* Nanoseconds, by the library's clock: virtual time on a simulated network. */
static inline uint64_t plogp_now_ns(void)
{
    return (uint64_t)(MPI_Wtime() * 1e9);
}

/* Ends the job with a line. */
_Noreturn void plogp_fail(const char *what);

/* pLogP parameters, copies, reductions, concurrency, overhead, contention. */
void plogp_measure_network(struct plogp_measure *measure, uint64_t budget_ns);

/* All collectives, sizes and algorithms. */
void plogp_measure_tests(struct plogp_measure *measure);

/* ---- one question: a collective of a number of bytes ---- */

struct plogp_contender {
    const struct cw_algorithm *algorithm;
    struct cw_parameters parameters;
    double time_ns;
};

struct plogp_question {
    enum cw_collective collective;
    uint64_t bytes;
    uint32_t contender_count;
    struct plogp_contender contenders[PLOGP_CONTENDERS_MAX];
};

/* Which algorithms, with which parameters; at rank 0 only. */
void plogp_contenders(const struct plogp_measure *measure, struct plogp_question *question);

/* Measures the question's contenders, in turn, for about `budget_ns`; fills in the times at rank 0. */
void plogp_question_run(const struct plogp_measure *measure, struct plogp_question *question, uint64_t budget_ns);
