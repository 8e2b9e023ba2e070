/* job key: shared by all ranks of a job and secret to others; packets between hosts are signed and sealed by it.
 *
 * The launcher hands it over in a memfd that CAUSEWAY_JOB_KEY_FD names: it comes through any number of exec, up to
 * MPI_Init, which closes it and removes the variable. So what a rank starts later has no part in it. By hand (ranks
 * that several launchers start) it is CAUSEWAY_JOB_KEY, 32 hexadecimal digits, which goes before and is removed alike.
 *
 * Thread: one; the environment is changed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CW_JOB_KEY_BYTES = 16 };

/* In the launcher: a new key. CW_OK, or CW_ERROR_SYSTEM with a line in `error`. */
int cw_job_key_make(uint8_t key[CW_JOB_KEY_BYTES], char *error, size_t error_bytes);
/* In the launcher, and its agents on other hosts: hands the key to all that is started from now on. CW_OK,
 * CW_ERROR_SYSTEM, ... with a line in `error`. */
int cw_job_key_keep(const uint8_t key[CW_JOB_KEY_BYTES], char *error, size_t error_bytes);

/* In a child of the launcher that is no rank: it has no key. */
void cw_job_key_drop(void);

/* In a rank, once: *found 0 if there is none. CW_OK, or CW_ERROR_ARGUMENT with a line in `error`: it is invalid. */
int cw_job_key_read(uint8_t key[CW_JOB_KEY_BYTES], int *found, char *error, size_t error_bytes);
