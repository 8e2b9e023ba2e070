#include "apps/run_emulate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/apps.h"
#include "control/wire.h"

enum { READY_WAIT_MS = 30000 };

/* In the child: becomes the switch, and ends with its parent. */
static _Noreturn void switch_exec(const char *socket, uint32_t ranks, int parent, int output)
{
    char ports[16];
    snprintf(ports, sizeof(ports), "%u", ranks);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); /* Ctrl-C is for the launcher, which ends the rest in order */
    if (getppid() != parent || dup2(output, STDOUT_FILENO) < 0) {
        _exit(APP_EXIT_INTERNAL);
    }
    execl("/proc/self/exe", "causeway", "switch", "--memif", socket, "--ports", ports, (char *)NULL);
    _exit(APP_EXIT_INTERNAL);
}

/* Whether the switch says that it forwards. */
static bool switch_is_ready(int output)
{
    char text[256] = "";
    size_t length = 0;
    while (strchr(text, '\n') == NULL && length + 1 < sizeof(text)) {
        struct pollfd set = {.fd = output, .events = POLLIN};
        if (poll(&set, 1, READY_WAIT_MS) <= 0) {
            return false;
        }
        ssize_t got = read(output, text + length, sizeof(text) - 1 - length);
        if (got <= 0) {
            return false;
        }
        length += (size_t)got;
        text[length] = 0;
    }
    return strncmp(text, "ready:", 6) == 0;
}

static int switch_start(struct run_emulation *emulation, const char *socket, uint32_t ranks)
{
    int ends[2];
    int parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) {
        app_error("cannot make a pipe", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    emulation->process = fork();
    if (emulation->process == 0) {
        switch_exec(socket, ranks, parent, ends[1]);
    }
    close(ends[1]);
    emulation->output = ends[0];
    if (emulation->process < 0 || !switch_is_ready(ends[0])) {
        app_error("the switch between the emulated hosts does not start", socket,
                  "alone: causeway switch --memif /tmp/s");
        return APP_EXIT_MACHINE;
    }
    return 0;
}

static int environment_set(const char *hosts, const char *socket)
{
    uint8_t key[16];
    char text[2 * sizeof(key) + 1];
    char emulate[128];
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
        app_error("the kernel gives no random numbers", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    sodium_bin2hex(text, sizeof(text), key, sizeof(key));
    snprintf(emulate, sizeof(emulate), "%s,memif,%s", hosts, socket);
    setenv("CAUSEWAY_EMULATE", emulate, 1);
    setenv("CAUSEWAY_JOB_KEY", text, 1);
    return 0;
}

int run_emulate_start(struct run_emulation *emulation, const char *text, uint32_t ranks)
{
    char hosts[16];
    char socket[96];
    uint64_t count;
    *emulation = (struct run_emulation){.output = -1};
    if (sscanf(text, "%15[0-9]", hosts) != 1 || strcmp(text + strlen(hosts), ",memif") != 0 ||
        !app_parse_count(hosts, &count) || count < 1 || count > ranks) {
        app_error("bad value", "--emulate",
                  "a number of hosts, no more than there are ranks, and the network between them are wanted: 4,memif");
        return APP_EXIT_USAGE;
    }
    if (ranks > CW_EMULATED_RANKS_MAX) {
        app_error("too many ranks on emulated hosts", "-n", "the switch has ports for 63");
        return APP_EXIT_USAGE;
    }
    const char *base = getenv("TMPDIR");
    int length =
        snprintf(emulation->folder, sizeof(emulation->folder), "%s/causeway-run-XXXXXX", base == NULL ? "/tmp" : base);
    if (length >= (int)sizeof(emulation->folder) || mkdtemp(emulation->folder) == NULL) {
        app_error("cannot make a folder for the switch's socket", base == NULL ? "/tmp" : base,
                  "set TMPDIR to a folder with a short name that is writable");
        emulation->folder[0] = 0;
        return APP_EXIT_MACHINE;
    }
    snprintf(socket, sizeof(socket), "%s/s", emulation->folder);
    int code = switch_start(emulation, socket, ranks);
    return code != 0 ? code : environment_set(hosts, socket);
}

void run_emulate_stop(struct run_emulation *emulation)
{
    static const char *const names[] = {"s", "s.bell"};
    if (emulation->process > 0) {
        kill(emulation->process, SIGTERM);
        close(emulation->output); /* its counters are nobody's here */
        waitpid(emulation->process, NULL, 0);
    }
    for (size_t i = 0; emulation->folder[0] != 0 && i < sizeof(names) / sizeof(names[0]); i++) {
        char path[96];
        snprintf(path, sizeof(path), "%s/%s", emulation->folder, names[i]);
        unlink(path);
    }
    if (emulation->folder[0] != 0) {
        rmdir(emulation->folder);
    }
    *emulation = (struct run_emulation){.output = -1};
}
