/* remote: what to start here, so that a command line runs on another host: ssh, srun, or a command of the user's.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>

enum { CW_LAUNCH_WORDS_MAX = 16 };

/* In single quotes, for a shell. To be freed; NULL: no memory. */
char *cw_launch_quoted(const char *text);

/* The words that have `remote`, a command line, run by a shell of `host`. launcher: "ssh", "srun", or a command that
 * gets the host and the command line. *shell: to be freed behind the words. False: no memory. */
bool cw_launch_words(const char *launcher, const char *host, const char *remote, char **shell,
                     const char *words[CW_LAUNCH_WORDS_MAX]);
