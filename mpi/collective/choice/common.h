/* common: a value from the environment and the text of a file, the same at all ranks in the end: rank 0's. Common
 * decisions of ranks may depend on them, and on no other input that differs between ranks. A digest in the cards shows
 * whether they must be sent (control/job/job.h).
 *
 * Order of calls: mpi_common_make, mpi_common_bcast if ranks differ, mpi_common_word and _text, mpi_common_free. Within
 * the lock of enter.h only. */
#pragma once

#include <stddef.h>

/* Zeroed: no word, no text. */
struct mpi_common {
    char *bytes;  /* the word, a zero, the text, a zero: in one piece, which the digest is of, and which travels */
    size_t count; /* without the last zero; 0: neither */
};

/* Copies both; `word` NULL is none. CW_OK or CW_ERROR_MEMORY. */
int mpi_common_make(struct mpi_common *common, const char *word, const char *text, size_t text_bytes);

/* Rank 0's take the place of all others; all ranks of the job call it. MPI_SUCCESS, or an MPI error. */
int mpi_common_bcast(struct mpi_common *common);

/* "" without one; valid until the next call. */
const char *mpi_common_word(const struct mpi_common *common);
const char *mpi_common_text(const struct mpi_common *common, size_t *text_bytes);

void mpi_common_free(struct mpi_common *common);
