#include "mpi/runtime/info_env.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "control/bootstrap/bootstrap.h"

static void pair_add(struct mpi_info_env *env, const char *key, const char *value)
{
    assert(env->count < MPI_INFO_ENV_PAIRS);
    char *copy = env->pairs[env->count].value;
    size_t length = strlen(value);
    length = length < MPI_MAX_INFO_VAL ? length : MPI_MAX_INFO_VAL - 1;
    memcpy(copy, value, length);
    copy[length] = '\0';
    env->pairs[env->count].key = key;
    env->count++;
}

/* Reads the command line of this process: arguments with a null after each. */
static size_t command_line_read(char *text, size_t text_bytes)
{
    size_t length = 0;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    while (file >= 0 && length < text_bytes - 1) {
        ssize_t got = read(file, text + length, text_bytes - 1 - length);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    if (file >= 0) {
        close(file);
    }
    text[length] = '\0';
    return length;
}

/* Separates the arguments behind the command by blanks. */
static void arguments_join(char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] == '\0') {
            text[i] = ' ';
        }
    }
}

static void command_add(struct mpi_info_env *env, int argc, char *const argv[])
{
    char line[2 * MPI_MAX_INFO_VAL];
    size_t length = 0;
    if (argc == 0 || argv == NULL) {
        length = command_line_read(line, sizeof(line));
    }
    for (int i = 0; argv != NULL && i < argc && argv[i] != NULL && length < sizeof(line) - 1; i++) {
        int written = snprintf(line + length, sizeof(line) - length, "%s", argv[i]);
        length += (size_t)written + 1;
    }
    length = length < sizeof(line) ? length : sizeof(line);
    if (length == 0) {
        return;
    }
    pair_add(env, "command", line);
    size_t command = strlen(line) + 1;
    if (command < length) {
        arguments_join(line + command, length - command);
        pair_add(env, "argv", line + command);
    }
}

void mpi_info_env_read(struct mpi_info_env *env, int argc, char *const argv[])
{
    char text[MPI_MAX_INFO_VAL];
    struct utsname name;
    env->count = 0;
    command_add(env, argc, argv);
    uint32_t size = cw_bootstrap_size_advertised();
    if (size > 0) {
        snprintf(text, sizeof(text), "%" PRIu32, size);
        pair_add(env, "maxprocs", text);
    }
    if (uname(&name) == 0) {
        pair_add(env, "host", name.nodename);
        pair_add(env, "arch", name.machine);
    }
    if (getcwd(text, sizeof(text)) != NULL) {
        pair_add(env, "wdir", text);
    }
}
