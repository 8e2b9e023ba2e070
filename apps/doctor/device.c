/* Checks whether a rank can use a device (`causeway run --transport DEVICE`). The checks are those of a rank: first the
 * files of the kernel, then the device itself is opened for a moment. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/doctor/doctor.h"
#include "control/job/wire.h"
#include "control/net/device.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

enum { VALUE_BYTES = CW_DEVICE_TEXT_BYTES + 64 };

static const char topic[] = "NIC";

/* A problem. The line already has its remedy; the prefix that repeats the name of the finding is removed. */
static void obstacle_report(struct doctor *doctor, const char *text, const char *error)
{
    const char *line = strncmp(error, "--transport ", strlen("--transport ")) == 0 ? strstr(error, ": ") : NULL;
    doctor_report(doctor, topic, text, DOCTOR_MISSING, line == NULL ? error : line + strlen(": "), NULL);
}

static void access_report(struct doctor *doctor, const char *text, const struct cw_device_access *access)
{
    char value[VALUE_BYTES];
    if (access->pci[0] != '\0') {
        snprintf(value, sizeof(value), "%s: driver %s, %s", access->pci, access->driver,
                 access->physical ? "without an IOMMU" : "behind an IOMMU");
        doctor_report(doctor, topic, text, DOCTOR_GOOD, value, NULL);
    }
    uint64_t huge_bytes = cw_device_huge_bytes("");
    snprintf(value, sizeof(value), "%" PRIu64 " MiB of huge pages are free", huge_bytes >> 20);
    doctor_report(
        doctor, topic, "memory", DOCTOR_NOTE, value,
        huge_bytes > 0 ? NULL : "ordinary pages are used; to reserve huge pages, as root: sysctl vm.nr_hugepages=64");
}

static void port_report(struct doctor *doctor, const char *text, const struct cw_wire *wire)
{
    const struct cw_port_info *info = &wire->port->info;
    char value[VALUE_BYTES], ip[CW_IP_TEXT_BYTES];
    const uint8_t *mac = info->mac;
    cw_ip_write(&wire->address.ip, ip);
    snprintf(value, sizeof(value),
             "driver %s, link up, %02x:%02x:%02x:%02x:%02x:%02x, address %s, packets up to %u bytes", info->driver,
             mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], ip, info->mtu_bytes);
    doctor_report(doctor, topic, text, DOCTOR_GOOD, value, NULL);
    doctor_report(
        doctor, topic, "waiting", DOCTOR_NOTE,
        info->wait == CW_PORT_WAIT_DESCRIPTOR
            ? "packets wake a sleeping rank"
            : "a sleeping rank looks for packets every 0.05 to 3 ms, since this driver has no reliable interrupts",
        NULL);
}

/* Opens the device as a rank does, and closes it again. */
static void device_open(struct doctor *doctor, const char *text, const struct cw_device *device)
{
    struct cw_wire wire = {.port = NULL};
    char error[CW_DEVICE_TEXT_BYTES];
    const struct cw_net_address own = cw_device_address(device);
    const struct cw_wire_request request = {
        .own = &own, .transport = CW_NET_TRANSPORT_DEVICE, .interface = text, .device = device, .device_ranks = 1};
    int status = cw_wire_nic_open(&request, &wire, error, sizeof(error));
    status = status == CW_OK ? cw_wire_nic_listen(&request, &wire, error, sizeof(error)) : status;
    if (status == CW_OK) {
        port_report(doctor, text, &wire);
    } else {
        obstacle_report(doctor, text, error);
    }
    cw_wire_close(&wire);
}

static void device_report(struct doctor *doctor, const char *text)
{
    struct cw_device device;
    struct cw_device_access access;
    char error[CW_DEVICE_TEXT_BYTES];
    int status = cw_device_read(text, 0, 0, &device, error, sizeof(error));
    status = status == CW_OK ? cw_device_check(&device, "", &access, error, sizeof(error)) : status;
    if (status != CW_OK) {
        obstacle_report(doctor, text, error);
        return;
    }
    access_report(doctor, text, &access);
    device_open(doctor, text, &device);
}

int doctor_device(struct doctor *doctor, const char *text)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork(); /* DPDK starts once per process, and another device may need other EAL options */
    if (child == 0) {
        struct doctor own = {.json = doctor->json};
        device_report(&own, text);
        fflush(NULL);
        _exit(own.missing > 0 ? APP_EXIT_MACHINE : APP_EXIT_SUCCESS);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        doctor_report(doctor, topic, text, DOCTOR_MISSING, "the process that opened it was killed",
                      "dmesg may show the reason");
        return APP_EXIT_MACHINE;
    }
    return WEXITSTATUS(status);
}
