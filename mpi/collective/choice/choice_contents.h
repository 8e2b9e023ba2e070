/* choice contents: the words of CAUSEWAY_ALGORITHM and the text of the file of measured parameters, the same at all
 * ranks in the end (choice.h). */
#pragma once

#include <stddef.h>

/* After the job is open: rank 0's contents. Both stay valid until mpi_contents_clear; `text_bytes` 0: no file.
 * MPI_SUCCESS, or an MPI error with a line in `error`. */
int mpi_contents_finish(const char **words, const char **text, size_t *text_bytes, char *error, size_t error_bytes);

/* Where the text is from, for users. */
const char *mpi_contents_place(void);

void mpi_contents_clear(void);
