#include "apps/switch/command.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/switch/wan.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum { TEXT_BYTES = 512, COMMANDS_AT_ONCE = 16, ANSWER_WAIT_S = 5 };

struct switch_command {
    int socket;
    struct sockaddr_un address;
};

/* False: the path is too long. */
static bool address_make(const char *memif_path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path, sizeof(address->sun_path), "%s.ctl", memif_path);
    if (length >= (int)sizeof(address->sun_path)) {
        app_error("the name of the socket is too long", memif_path, "103 bytes are possible with --topology");
        return false;
    }
    return true;
}

/* ---- the switch ---- */

int switch_command_open(const char *memif_path, struct switch_command **command_out)
{
    struct switch_command *command = malloc(sizeof(*command));
    if (command == NULL) {
        app_error("out of memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    if (!address_make(memif_path, &command->address)) {
        free(command);
        return APP_EXIT_USAGE;
    }
    unlink(command->address.sun_path); /* one that was killed has left it: the memif socket is ours by now */
    command->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177); /* commands are this user's */
    bool is_bound = command->socket >= 0 &&
                    bind(command->socket, (const struct sockaddr *)&command->address, sizeof(command->address)) == 0;
    umask(before);
    if (!is_bound) {
        app_error("cannot listen for commands", command->address.sun_path, strerror(errno));
        if (command->socket >= 0) {
            close(command->socket);
        }
        free(command);
        return APP_EXIT_MACHINE;
    }
    *command_out = command;
    return APP_EXIT_SUCCESS;
}

void switch_command_close(struct switch_command *command)
{
    if (command != NULL) {
        close(command->socket);
        unlink(command->address.sun_path);
        free(command);
    }
}

static int link_change(struct switch_line *const lines[2], char *what, char *error, size_t error_bytes)
{
    struct cw_link_config config[2];
    char *rest = NULL;
    const char *reason;
    for (int i = 0; i < 2 && lines[i] != NULL; i++) {
        config[i] = lines[i]->link.config;
    }
    for (char *pair = strtok_r(what, ",", &rest); pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        for (int i = 0; i < 2 && lines[i] != NULL; i++) {
            const char *todo = switch_link_setting_parse(&config[i], pair);
            if (todo == NULL && !cw_link_config_valid(&config[i], &reason)) {
                todo = reason;
            }
            if (todo != NULL) {
                return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "'%.80s': %s", pair, todo);
            }
        }
    }
    for (int i = 0; i < 2 && lines[i] != NULL; i++) {
        cw_link_configure(&lines[i]->link, &config[i]);
    }
    return CW_OK;
}

/* Carries out one command. CW_OK; CW_ERROR_ARGUMENT or CW_ERROR_NOT_FOUND with a line in `error`, nothing is changed
 * then. */
static int command_run(struct switch_fabric *fabric, const char *text, char *error, size_t error_bytes)
{
    char copy[TEXT_BYTES];
    char *rest = NULL;
    struct switch_line *lines[2];
    snprintf(copy, sizeof(copy), "%s", text);
    const char *verb = strtok_r(copy, " \n", &rest);
    const char *name = strtok_r(NULL, " \n", &rest);
    char *what = strtok_r(NULL, " \n", &rest);
    if (what == NULL || strcmp(verb, "link") != 0 || strtok_r(NULL, " \n", &rest) != NULL) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "'%.80s' is no command; \"link NAME down\", \"link NAME up\" or \"link NAME loss=1%%,rate=1Gbps\" "
            "is wanted",
            text);
    }
    int status = switch_wan_find(fabric, name, lines, error, error_bytes);
    bool goes_down = strcmp(what, "down") == 0;
    if (status != CW_OK || (!goes_down && strcmp(what, "up") != 0)) {
        return status != CW_OK ? status : link_change(lines, what, error, error_bytes);
    }
    for (int i = 0; i < 2 && lines[i] != NULL; i++) {
        lines[i]->link.down = goes_down;
    }
    return CW_OK;
}

void switch_command_poll(struct switch_command *command, struct switch_fabric *fabric)
{
    for (int i = 0; i < COMMANDS_AT_ONCE; i++) {
        char text[TEXT_BYTES];
        char answer[TEXT_BYTES] = "ok";
        struct sockaddr_un from;
        socklen_t from_bytes = sizeof(from);
        ssize_t got = recvfrom(command->socket, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &from_bytes);
        if (got < 0) {
            return;
        }
        text[got] = '\0';
        (void)command_run(fabric, text, answer, sizeof(answer));
        if (from_bytes > offsetof(struct sockaddr_un, sun_path)) {
            (void)sendto(command->socket, answer, strlen(answer), 0, (const struct sockaddr *)&from, from_bytes);
        }
    }
}

/* ---- the other side ---- */

/* Sends and waits; the answer, or NULL with errno. */
static const char *query(const struct sockaddr_un *address, const char *text, char answer[TEXT_BYTES])
{
    const struct sockaddr_un own = {.sun_family = AF_UNIX}; /* a name of the kernel's choice */
    const struct timeval wait = {.tv_sec = ANSWER_WAIT_S};
    int asking = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t got = -1;
    if (asking >= 0 && bind(asking, (const struct sockaddr *)&own, sizeof(own.sun_family)) == 0 &&
        connect(asking, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
        setsockopt(asking, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0 &&
        send(asking, text, strlen(text), 0) >= 0) {
        got = recv(asking, answer, TEXT_BYTES - 1, 0);
    }
    int reason = errno;
    if (asking >= 0) {
        close(asking);
    }
    errno = reason == EAGAIN ? ETIMEDOUT : reason;
    answer[got >= 0 ? got : 0] = '\0';
    return got >= 0 ? answer : NULL;
}

int switch_command_send(const char *memif_path, const char *text)
{
    struct sockaddr_un address;
    char answer[TEXT_BYTES];
    if (strlen(text) >= TEXT_BYTES) {
        app_error("the command is too long", "--command", "\"link NAME down\" is one");
        return APP_EXIT_USAGE;
    }
    if (!address_make(memif_path, &address)) {
        return APP_EXIT_USAGE;
    }
    if (query(&address, text, answer) == NULL) {
        app_error("no switch with a topology answers there", address.sun_path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    if (strcmp(answer, "ok") != 0) {
        app_error(answer, NULL, NULL);
        return APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}
