#include "tests/lab/lab_client.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"

/* Port `index` of the switch at `path`, as processes that are no ranks open it. NULL: a line of `name` says why. */
static struct cw_port *port_open(const char *path, uint32_t index, const char *name)
{
    char arguments[160], bell[120], error[CW_PORT_TEXT_BYTES];
    struct cw_port_ethdev_config config;
    struct cw_port *port;
    cw_port_ethdev_config_init(&config);
    snprintf(arguments, sizeof(arguments), "role=client,id=%u,socket=%s,socket-abstract=no", index, path);
    snprintf(bell, sizeof(bell), "%s.bell", path);
    config.device = "net_memif0";
    config.device_arguments = arguments;
    config.doorbell_path = bell;
    config.doorbell_own = 1 + index;
    config.doorbell_peer = 0;
    if (cw_port_ethdev_open(&config, &port, error, sizeof(error)) != CW_OK) {
        fprintf(stderr, "%s: %s\n", name, error);
        return NULL;
    }
    return port;
}

static void client_send(struct cw_port *port, const struct command *command)
{
    for (uint32_t i = 0; i < command->count; i++) {
        struct cw_transmit packet;
        while (cw_port_reserve(port, &packet, 1) == 0) {
            usleep(100);
        }
        memcpy(packet.data, command->frame, command->length);
        packet.length = command->length;
        while (cw_port_transmit(port, &packet, 1) == 0) {
            usleep(100);
        }
    }
}

static void client_receive(struct cw_port *port, struct tally *tally)
{
    struct cw_received packets[CW_PORT_BURST_MAX];
    uint32_t count = cw_port_receive(port, packets, CW_PORT_BURST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t fence = 0;
        if (packets[i].length >= FRAME_BYTES) {
            memcpy(&fence, packets[i].data + FENCE_AT, sizeof(fence));
        }
        tally->fence = fence > tally->fence ? fence : tally->fence;
        tally->total++;
        tally->marked[packets[i].data[MARKER_AT]]++;
    }
    cw_port_release(port, packets, count);
}

_Noreturn void lab_client_run(const char *path, uint32_t index, int control)
{
    char name[32];
    struct tally tally = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(name, sizeof(name), "client %u", index);
    struct cw_port *port = port_open(path, index, name);
    if (port == NULL) {
        _exit(1);
    }
    while (!cw_port_link_up(port)) {
        usleep(1000);
    }
    ssize_t ready = send(control, &index, sizeof(index), 0);
    (void)ready;
    for (;;) {
        struct command command;
        ssize_t got = recv(control, &command, sizeof(command), MSG_DONTWAIT);
        client_receive(port, &tally);
        if (got == 0) {
            break;
        }
        if (got < 0) {
            cw_port_sleep(port, 200000);
        } else if (command.send) {
            client_send(port, &command);
        }
        if (got > 0) {
            client_receive(port, &tally);
            got = send(control, &tally, sizeof(tally), 0);
        }
    }
    cw_port_close(port);
    _exit(0);
}
