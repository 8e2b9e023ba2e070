/* tool: the error codes of MPI_T, and the answers of its calls, which find no variable, event, source or category. */
#pragma once

#include "mpi.h"

/* For MPI_Error_string. NULL: not a code of MPI_T. */
const char *mpi_tool_error_text(int code);

/* All return MPI_T_ERR_NOT_INITIALIZED before MPI_T_init_thread and after the last MPI_T_finalize; after
 * that check, the first of these that applies. */
int mpi_tool_reject(int code);
/* MPI_T_ERR_INVALID without a name; MPI_T_ERR_INVALID_NAME */
int mpi_tool_reject_name(const char *name);
/* MPI_T_ERR_INVALID_SESSION; `code` */
int mpi_tool_reject_within(MPI_T_pvar_session session, int code);
/* MPI_T_ERR_INVALID without a count; MPI_SUCCESS, and *count is 0 */
int mpi_tool_count(int *count);
