/* explain: a report at MPI_Finalize if CAUSEWAY_EXPLAIN is set: the path to each rank and the reason for it; for each
 * collective and size the algorithm, the number of runs, and its expected and measured time.
 *
 * CAUSEWAY_EXPLAIN=1: rank 0 tells; =all: every rank.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

/* Calls of one collective with one algorithm, of `bytes` (of the vector, or a block), on a number of ranks: adds to
 * those of the same class of sizes. `origin`: the basis of the choice, kept; predicted_ns 0: not known. */
void mpi_explain_calls(const char *collective, const char *algorithm, uint32_t ranks, uint64_t bytes,
                       const char *origin, uint64_t calls, double predicted_ns, uint64_t measured_ns);

/* The numbers of inequality (3) for a kind of elements, in one line of at least 64 bytes and `to`; `to`: whom they
 * went to. False: nothing long did. */
bool mpi_explain_compression(enum cw_element element, const struct cw_compression_report *report, const char *to,
                             char *text, size_t text_bytes);

/* Whether anything will be printed, so that measuring is worth while. */
bool mpi_explain_is_wanted(void);

/* All print to standard error: the paths; the calls; lines about anything else (NULL, "": none). */
void mpi_explain_paths(void);
void mpi_explain_print(void);
void mpi_explain_text(const char *text);

/* Forgets the calls (MPI_Finalize). */
void mpi_explain_clear(void);
