/* settings: values from a process's environment: the path of the measured parameters (collectives/choose/measured.h),
 * and time limits.
 *
 *   CAUSEWAY_PLOGP=FILE   this file; "none": built-in figures
 *   else                  $XDG_CONFIG_HOME/causeway/plogp.json, or $HOME/.config/causeway/plogp.json, if it is there
 *
 *   CAUSEWAY_WATCHDOG=SECONDS          duration of an MPI wait after which all ranks report their waits; 0: never
 *   CAUSEWAY_FAILURE_TIMEOUT=SECONDS   maximum silence of a peer that has requests outstanding, before it is declared
 *                                      failed; 0: no limit
 *
 * Thread: one at a time (the environment). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CW_SETTINGS_PATH_BYTES = 1024 };

struct cw_settings_place {
    char path[CW_SETTINGS_PATH_BYTES]; /* "": nowhere */
    const char *origin;                /* "CAUSEWAY_PLOGP", "XDG_CONFIG_HOME", "HOME", "default" */
    bool is_wanted;                    /* a setting names it: it must exist */
};

/* The file that `named` names (NULL: none is named; "none": no file), which `origin` names in messages; else `name` in
 * the user's folder of configuration. */
void cw_settings_place_find(const char *named, const char *origin, const char *name, struct cw_settings_place *place);
void cw_settings_plogp(struct cw_settings_place *place);

enum { CW_SETTINGS_WATCHDOG_DEFAULT_S = 60 };

/* False: the value is invalid; then, and if it is not set, *bound_ns is the default. 0: never. */
bool cw_settings_watchdog(uint64_t *bound_ns, const char **origin);

/* The same; least: 1 s, since processes are descheduled and networks interrupted for moments. 0: never. */
bool cw_settings_failure_timeout(uint64_t *bound_ns, const char **origin);

/* All bytes of a file and a zero behind them, to be freed; at most `most`. NULL: errno says why (EFBIG: longer). */
char *cw_settings_read(const char *path, size_t most, size_t *length);
/* Writes a file, under another name first, so that a reader never sees half of it; a device or pipe is written
 * directly. False: errno says why. */
bool cw_settings_write(const char *path, const void *bytes, size_t length);

/* The same for a file that belongs to this process, in a folder where others may write: files of other users are
 * neither written to, nor waited for, nor read. Reading requires a regular file of this user (errno: EPERM); writing
 * replaces any existing file by a new one. */
char *cw_settings_read_own(const char *path, size_t most, size_t *length);
bool cw_settings_write_own(const char *path, const void *bytes, size_t length);
