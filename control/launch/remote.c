#include "control/launch/remote.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *cw_launch_quoted(const char *text)
{
    char *made = malloc(4 * strlen(text) + 3);
    char *at = made;
    if (made == NULL) {
        return NULL;
    }
    *at++ = '\'';
    for (; *text != 0; text++) {
        if (*text == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *text;
        }
    }
    *at++ = '\'';
    *at = 0;
    return made;
}

bool cw_launch_words(const char *launcher, const char *host, const char *remote, char **shell,
                     const char *words[CW_LAUNCH_WORDS_MAX])
{
    /* a new connection or an existing one: other settings of the user do not apply to it, and it ends with this one */
    static const char *const ssh[] = {"ssh",
                                      "-T",
                                      "-x",
                                      "-o",
                                      "BatchMode=yes",
                                      "-o",
                                      "ConnectTimeout=8",
                                      "-o",
                                      "ControlMaster=no",
                                      "-o",
                                      "ClearAllForwardings=yes"};
    /* not bound: the one task's processors would be all that the ranks of that host get, which bind themselves */
    static const char *const srun[] = {"srun",    "--nodes=1",    "--ntasks=1",      "--overlap", "--mpi=none",
                                       "--quiet", "--unbuffered", "--cpu-bind=none", "--nodelist"};
    size_t count = 0;
    if (strcmp(launcher, "ssh") == 0) {
        for (size_t i = 0; i < sizeof(ssh) / sizeof(ssh[0]); i++) {
            words[count++] = ssh[i];
        }
        words[count++] = host;
    } else if (strcmp(launcher, "srun") == 0) {
        for (size_t i = 0; i < sizeof(srun) / sizeof(srun[0]); i++) {
            words[count++] = srun[i];
        }
        words[count++] = host;
        words[count++] = "sh";
        words[count++] = "-c";
    } else {
        if (asprintf(shell, "exec %s \"$0\" \"$1\"", launcher) < 0) {
            *shell = NULL;
            return false;
        }
        words[count++] = "sh";
        words[count++] = "-c";
        words[count++] = *shell;
        words[count++] = host;
    }
    words[count++] = remote;
    words[count] = NULL;
    return true;
}
