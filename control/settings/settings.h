/* settings: what the environment says to a process: where it finds the measured parameters
 * (collectives/choose/measured.h), and how patient it is.
 *
 *   CAUSEWAY_PLOGP=FILE   this file; "none": built-in figures
 *   else                  $XDG_CONFIG_HOME/causeway/plogp.json, or $HOME/.config/causeway/plogp.json, if it is there
 *
 *   CAUSEWAY_WATCHDOG=SECONDS   how long a wait of MPI lasts before all ranks say what they wait for; 0: they never do
 *   CAUSEWAY_FAILURE_TIMEOUT=SECONDS   how long a rank on another host that owes an answer may be silent before it is taken for dead; 0: it never is
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
    bool is_wanted;                    /* somebody has named it: it must be there */
};

/* The file that `named` names (NULL: nobody has named one; "none": nowhere), which `origin` says; else `name` in the
 * user's folder of configuration. */
void cw_settings_place_find(const char *named, const char *origin, const char *name, struct cw_settings_place *place);
void cw_settings_plogp(struct cw_settings_place *place);

enum { CW_SETTINGS_WATCHDOG_DEFAULT_S = 60 };

/* False: the value makes no sense; then, and if it is not set, *bound_ns is the default. 0: never. */
bool cw_settings_watchdog(uint64_t *bound_ns, const char **origin);

/* The same; least: 1 s, since processes are descheduled and networks interrupted for moments. 0: never. */
bool cw_settings_failure_timeout(uint64_t *bound_ns, const char **origin);

/* All bytes of a file and a zero behind them, to be freed; at most `most`. NULL: errno says why (EFBIG: longer). */
char *cw_settings_read(const char *path, size_t most, size_t *length);
/* Writes a file, under another name first, so that nobody reads half of it; a device or pipe is written to as it is.
 * False: errno says why. */
bool cw_settings_write(const char *path, const void *bytes, size_t length);

/* The same of a file that belongs to this process, in a folder where others may write: what they put there is neither
 * written to, nor waited for, nor believed. Reading wants a regular file of this user (errno: EPERM); writing replaces
 * whatever is there by a new file. */
char *cw_settings_read_own(const char *path, size_t most, size_t *length);
bool cw_settings_write_own(const char *path, const void *bytes, size_t length);
