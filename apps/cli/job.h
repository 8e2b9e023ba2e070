/* Commands that measure with a job: programs next to the command in the build tree (apps/) or installed
 * (libexec/causeway), started by `causeway run`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Of `program`, by its file name; reported, and false: it is nowhere. */
bool app_job_program(const char *program, char *path, size_t bytes);

/* Runs this very command with `arguments` (as below) and returns all that it wrote, to its standard output and error,
 * to be freed; *code: its exit code. Settings as below. NULL: it could not be run, which is reported, and *code is the
 * one to end with. */
char *app_job_output(char *const *arguments, size_t *length, int *code);

/* Runs this very command with `arguments` (arguments[0] is its name, the last one NULL) and returns its standard
 * output, NUL-terminated, which the caller frees. The user's settings for MPI programs (CAUSEWAY_ALGORITHM and so on)
 * do not apply to this one, and it reads no file of measured parameters. NULL: the failure of `what` was reported,
 * and *code is the exit code. It ends when this process does. */
char *app_job_run(char *const *arguments, const char *what, size_t *length, int *code);
