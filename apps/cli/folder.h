/* Run folder: where the switch of `causeway run --emulate` has its sockets and its doorbell, for this user only (0700).
 *
 * Sockets in the abstract namespace would need no folder, and let any user of the machine connect: the server of
 * 22.11's memif dies of a client that hangs up too soon.
 *
 * Invariants
 *   - The switch makes the folder, and holds a lock on it for as long as it lives: one without a lock is nobody's.
 *   - Each process that knows of it removes it: the switch when it ends, the supervisor of the job, its launcher if the
 *     supervisor was killed, and the next launcher if all of them were.
 *
 * Thread: any. */
#pragma once

#include <stddef.h>

enum { RUN_FOLDER_BYTES = 64 };

/* A new name in TMPDIR, or /tmp; makes nothing. 0, or the exit code of the command, with the reason reported. */
int run_folder_name(char folder[RUN_FOLDER_BYTES]);
/* The folder of a path; too long ones are cut. */
void run_folder_of(const char *path, char *folder, size_t folder_bytes);
/* Makes it and locks it for the life of this process. 0, or the exit code of the command, with the reason reported. */
int run_folder_make(const char *folder);
/* Removes it and the switch's files in it; a folder that is gone, or holds more, is left alone. */
void run_folder_remove(const char *folder);
/* Removes folders next to `folder` without a holder, a minute after they were made. */
void run_folder_sweep(const char *folder);
