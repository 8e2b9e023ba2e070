#include "apps/bench/processes/fabric.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "control/job/wire.h"
#include "control/settings/setting.h"
#include "dataplane/status.h"

enum {
    LINK_WAIT_MS = 30000, /* a link that takes longer has no other side */
    OPTIONS_MAX = 12,
    FOLDER_PLACE_BYTES_MAX = 40,
    CLEANER_WAIT_US = 200000,
};

static int create_folder(struct bench_fabric *fabric)
{
    const char *place = cw_environment("TMPDIR");
    /* a socket's path is short: a long TMPDIR has no room */
    place = place == NULL || strlen(place) > FOLDER_PLACE_BYTES_MAX ? "/tmp" : place;
    snprintf(fabric->folder, sizeof(fabric->folder), "%s/causeway-bench-XXXXXX", place);
    if (mkdtemp(fabric->folder) == NULL) {
        fabric->folder[0] = 0;
        app_error("no temporary folder", place, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    snprintf(fabric->socket, sizeof(fabric->socket), "%s/memif.sock", fabric->folder);
    return APP_EXIT_SUCCESS;
}

static void folder_remove(const struct bench_fabric *fabric);

/* A process that takes everything away when this one ends without doing so, killed or interrupted. */
static void start_cleaner(struct bench_fabric *fabric)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    fflush(stdout);
    fabric->cleaner = fork();
    if (fabric->cleaner == 0) {
        setsid(); /* interrupts of the benchmark do not reach this process */
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int stream = 0; null >= 0 && stream < 3; stream++) {
            dup2(null, stream);
        }
        close(ends[1]);
        char done;
        if (read(ends[0], &done, 1) == 0) {
            usleep(CLEANER_WAIT_US); /* the processes of the benchmark end with it, too */
            folder_remove(fabric);
        }
        _exit(APP_EXIT_SUCCESS);
    }
    close(ends[0]);
    if (fabric->cleaner < 0) {
        fabric->cleaner = 0;
        close(ends[1]);
        return;
    }
    fabric->cleaner_end = ends[1];
}

static void end_cleaner(struct bench_fabric *fabric)
{
    char done = 1;
    if (fabric->cleaner > 0) {
        (void)!write(fabric->cleaner_end, &done, 1);
        close(fabric->cleaner_end);
        while (waitpid(fabric->cleaner, NULL, 0) < 0 && errno == EINTR) {
        }
        fabric->cleaner = 0;
    }
}

/* Starts `causeway switch`, which ends with this process however that ends; 0 if there is no process for it. */
static pid_t spawn_switch(const struct bench_fabric *fabric, const char *const *options, int output)
{
    char mtu[16];
    snprintf(mtu, sizeof(mtu), "%u", fabric->mtu_bytes);
    const char *arguments[8 + OPTIONS_MAX + 1] = {"causeway", "switch", "--memif", fabric->socket,
                                                  "--ports",  "2",      "--mtu",   mtu};
    for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
        assert(i < OPTIONS_MAX);
        arguments[8 + i] = options[i];
    }
    pid_t parent = getpid();
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent && dup2(output, STDOUT_FILENO) >= 0) {
            execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
        }
        _exit(APP_EXIT_INTERNAL);
    }
    return process > 0 ? process : 0;
}

static int start_switch(struct bench_fabric *fabric, const char *const *options)
{
    int output[2];
    if (pipe2(output, O_CLOEXEC) != 0) {
        app_error("no pipe to causeway switch", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    fabric->switch_process = spawn_switch(fabric, options, output[1]);
    close(output[1]);
    fabric->switch_output = output[0];
    if (fabric->switch_process == 0) {
        close(output[0]);
        app_error("cannot start causeway switch", strerror(errno), "raise `ulimit -u`");
        return APP_EXIT_MACHINE;
    }
    /* it prints a line once all its ports are open; the end of the pipe means that it has failed, with a message */
    char line[256];
    ssize_t got = read(output[0], line, sizeof(line));
    if (got <= 0) {
        app_error("causeway switch does not start", fabric->socket,
                  "try it alone: causeway switch --memif PATH --ports 2");
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

int bench_fabric_create(struct bench_fabric *fabric, enum bench_fabric_kind kind, uint32_t mtu_bytes,
                        const char *const *options)
{
    *fabric = (struct bench_fabric){.kind = kind, .mtu_bytes = mtu_bytes};
    int code = create_folder(fabric);
    if (code == APP_EXIT_SUCCESS) {
        start_cleaner(fabric);
    }
    return code == APP_EXIT_SUCCESS && kind == BENCH_FABRIC_SWITCH ? start_switch(fabric, options) : code;
}

void bench_fabric_devices(struct bench_fabric *fabric, const char *const devices[2], uint32_t mtu_bytes)
{
    *fabric = (struct bench_fabric){
        .kind = BENCH_FABRIC_DEVICES, .mtu_bytes = mtu_bytes, .devices = {devices[0], devices[1]}};
}

static void name_device(const struct bench_fabric *fabric, uint32_t side, const char **device, char *arguments,
                        size_t arguments_bytes)
{
    switch (fabric->kind) {
    case BENCH_FABRIC_MEMIF:
        *device = "net_memif0";
        snprintf(arguments, arguments_bytes, "role=%s,id=0,socket=%s,socket-abstract=no",
                 side == 0 ? "server" : "client", fabric->socket);
        break;
    case BENCH_FABRIC_SWITCH:
        *device = "net_memif0";
        snprintf(arguments, arguments_bytes, "role=client,id=%u,socket=%s,socket-abstract=no,mac=02:00:00:00:cb:%02x",
                 side, fabric->socket, side + 1);
        break;
    case BENCH_FABRIC_DEVICES: /* device_read */
        break;
    }
}

/* A device of the user's; `device` and `nic` keep what the configuration points into. */
static int device_read(const struct bench_fabric *fabric, uint32_t side, struct cw_device *device,
                       struct cw_wire_nic *nic, struct cw_port_ethdev_config *config)
{
    char error[CW_DEVICE_TEXT_BYTES];
    int status = cw_device_read(fabric->devices[side], side, (int32_t)side, device, error, sizeof(error));
    status = status == CW_OK ? cw_wire_nic_config(device, 2, nic, config, error, sizeof(error)) : status;
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, error, NULL);
}

int bench_fabric_open(const struct bench_fabric *fabric, uint32_t side, bool doorbell, struct cw_port **port)
{
    char arguments[CW_PORT_ETHDEV_ARGUMENTS_BYTES];
    char bell[128];
    struct cw_port_ethdev_config config;
    cw_port_ethdev_config_init(&config);
    struct cw_device named;
    struct cw_wire_nic nic;
    if (fabric->kind == BENCH_FABRIC_DEVICES) {
        int code = device_read(fabric, side, &named, &nic, &config);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
    } else {
        name_device(fabric, side, &config.device, arguments, sizeof(arguments));
        config.device_arguments = arguments;
    }
    config.mtu_bytes = fabric->mtu_bytes;
    if (doorbell && fabric->socket[0] != 0) {
        snprintf(bell, sizeof(bell), "%s.bell", fabric->socket);
        config.doorbell_path = bell;
        config.doorbell_own = fabric->kind == BENCH_FABRIC_SWITCH ? 1 + side : side;
        config.doorbell_peer = fabric->kind == BENCH_FABRIC_SWITCH ? 0 : 1 - side;
    }
    char error[CW_PORT_TEXT_BYTES];
    int status = cw_port_ethdev_open(&config, port, error, sizeof(error));
    if (status != CW_OK) {
        return app_error_status(status, error, NULL);
    }
    return APP_EXIT_SUCCESS;
}

int bench_fabric_await(struct cw_port *port)
{
    if (!cw_port_link_await(port, LINK_WAIT_MS)) {
        app_error("the other side of the link does not come up", port->info.driver, "is the peer process alive?");
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

bool bench_fabric_lives(struct bench_fabric *fabric)
{
    if (fabric->kind != BENCH_FABRIC_SWITCH) {
        return true;
    }
    if (fabric->switch_process > 0 && waitpid(fabric->switch_process, NULL, WNOHANG) != 0) {
        fabric->switch_process = 0;
        close(fabric->switch_output);
    }
    return fabric->switch_process > 0;
}

static void folder_remove(const struct bench_fabric *fabric)
{
    if (fabric->folder[0] != 0) {
        /* socket and bell are the switch's, but it may have been killed; the files are `causeway demo`'s */
        static const char *const names[] = {"memif.sock", "memif.sock.bell", "source", "target"};
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            char path[128];
            snprintf(path, sizeof(path), "%s/%s", fabric->folder, names[i]);
            unlink(path);
        }
        rmdir(fabric->folder);
    }
}

void bench_fabric_destroy(struct bench_fabric *fabric)
{
    if (fabric->switch_process > 0) {
        kill(fabric->switch_process, SIGTERM);
        while (waitpid(fabric->switch_process, NULL, 0) < 0 && errno == EINTR) {
        }
        close(fabric->switch_output); /* open until now, so that its last words find a reader */
    }
    folder_remove(fabric);
    end_cleaner(fabric);
    *fabric = (struct bench_fabric){.mtu_bytes = 0};
}
