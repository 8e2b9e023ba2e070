/* tool: the error codes of MPI_T, for MPI_Error_string. */
#pragma once

/* NULL: not a code of MPI_T. */
const char *mpi_tool_error_text(int code);
