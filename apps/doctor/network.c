/* Findings about the network: interfaces, DPDK and its drivers, RDMA devices, and the transports that Causeway would
 * choose. */
#include "apps/doctor/doctor.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/crypt/aead.h"
#include "dataplane/dpdk/dpdk.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"
#include "dataplane/verbs/device.h"

enum { TEXT_BYTES = 512, PATH_BYTES = 512 };

static void read_attribute(const char *interface, const char *name, char *text, size_t bytes)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/sys/class/net/%.64s/%.64s", interface, name);
    FILE *file = fopen(path, "r");
    text[0] = 0;
    if (file != NULL) {
        if (fgets(text, (int)bytes, file) == NULL) {
            text[0] = 0;
        }
        fclose(file);
    }
    text[strcspn(text, "\n")] = 0;
}

static void report_interface(struct doctor *doctor, const char *interface)
{
    char state[64];
    char mtu[64];
    char speed[64];
    char driver[PATH_BYTES] = "";
    char link[PATH_BYTES];
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    read_attribute(interface, "operstate", state, sizeof(state));
    read_attribute(interface, "mtu", mtu, sizeof(mtu));
    read_attribute(interface, "speed", speed, sizeof(speed));
    snprintf(path, sizeof(path), "/sys/class/net/%.64s/device/driver", interface);
    ssize_t length = readlink(path, link, sizeof(link) - 1);
    if (length > 0) {
        link[length] = 0;
        const char *last = strrchr(link, '/');
        snprintf(driver, sizeof(driver), "%s", last == NULL ? link : last + 1);
    }
    snprintf(text, sizeof(text), "%s, MTU %s, %s%s, driver %.64s", state, mtu,
             speed[0] == 0 || speed[0] == '-' ? "rate unknown" : speed, speed[0] == 0 || speed[0] == '-' ? "" : " Mb/s",
             driver[0] == 0 ? "virtual" : driver);
    doctor_report(doctor, "network", interface, DOCTOR_NOTE, text, NULL);
}

static void report_interfaces(struct doctor *doctor)
{
    DIR *folder = opendir("/sys/class/net");
    if (folder == NULL) {
        doctor_report(doctor, "network", "interfaces", DOCTOR_MISSING, "/sys/class/net cannot be read", "mount sysfs");
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lo") != 0 &&
            strcmp(entry->d_name, "bonding_masters") != 0) {
            report_interface(doctor, entry->d_name);
        }
    }
    closedir(folder);
}

/* Appends the name in `folder` that begins with `prefix`. False: no such name. */
static bool descend(char *folder, size_t bytes, const char *prefix)
{
    DIR *open_folder = opendir(folder);
    struct dirent *entry;
    bool found = false;
    while (open_folder != NULL && !found && (entry = readdir(open_folder)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
            size_t length = strlen(folder);
            snprintf(folder + length, bytes - length, "/%s", entry->d_name);
            found = true;
        }
    }
    if (open_folder != NULL) {
        closedir(open_folder);
    }
    return found;
}

/* The folder from which EAL loads its drivers; it is next to the loaded EAL library. */
static bool find_drivers(char *folder, size_t bytes)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_BYTES];
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL) {
        const char *path = strchr(line, '/');
        char *name = path == NULL ? NULL : strstr(line, "/librte_eal.so");
        if (name != NULL) {
            *name = 0;
            snprintf(folder, bytes, "%s/dpdk", path);
            found = descend(folder, bytes, "pmds-");
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static void report_drivers(struct doctor *doctor)
{
    static const struct {
        const char *name;
        const char *use;
    } drivers[] = {
        {"memif", "two processes of a host, and `causeway switch`; needs no privilege"},
        {"af_packet", "kernel interfaces"},
        {"pcap", "files of captured packets"},
        {"tap", "the network stack of this host"},
    };
    char folder[PATH_BYTES];
    if (!find_drivers(folder, sizeof(folder))) {
        doctor_report(doctor, "network", "DPDK drivers", DOCTOR_NOTE, "built into the program", NULL);
        return;
    }
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        char path[PATH_BYTES + 64];
        char what[64];
        snprintf(path, sizeof(path), "%s/librte_net_%s.so", folder, drivers[i].name);
        snprintf(what, sizeof(what), "driver %s", drivers[i].name);
        bool have = access(path, R_OK) == 0;
        doctor_report(doctor, "network", what, have ? DOCTOR_GOOD : DOCTOR_MISSING,
                      have ? drivers[i].use : "not installed", have ? NULL : "apt-get install libdpdk-dev");
    }
}

static void report_verbs(struct doctor *doctor)
{
    enum { PORTS_MAX = 32 };
    struct cw_verbs_port ports[PORTS_MAX];
    char error[TEXT_BYTES], text[CW_VERBS_TEXT_BYTES];
    uint32_t count = 0;
    int status = cw_verbs_list(ports, PORTS_MAX, &count, error, sizeof(error));
    if (status == CW_ERROR_NOT_FOUND || (status == CW_OK && count == 0)) {
        doctor_report(doctor, "network", "RDMA devices", DOCTOR_NOTE, "none", NULL);
    } else if (status != CW_OK) {
        doctor_report(doctor, "network", "RDMA devices", DOCTOR_MISSING, "unknown; packets are used for everything",
                      error);
    }
    for (uint32_t i = 0; i < count; i++) {
        bool is_usable = ports[i].is_up && ports[i].kind != CW_VERBS_IWARP;
        cw_verbs_port_write(&ports[i], text);
        doctor_report(doctor, "network", "RDMA device", is_usable ? DOCTOR_GOOD : DOCTOR_NOTE, text,
                      is_usable ? NULL
                      : ports[i].kind == CW_VERBS_IWARP
                          ? "iWARP is not supported; packets use the interface of the device"
                          : "the port is down; check the cable and, on InfiniBand, "
                            "the subnet manager");
    }
}

void doctor_network(struct doctor *doctor)
{
    report_interfaces(doctor);
    char error[TEXT_BYTES];
    if (cw_dpdk_load(error, sizeof(error)) != NULL) {
        doctor_report(doctor, "network", "DPDK", DOCTOR_GOOD, cw_dpdk_version(), NULL);
        report_drivers(doctor);
    } else {
        doctor_report(doctor, "network", "DPDK", DOCTOR_MISSING,
                      "shared memory, UDP sockets and the simulator work; NICs and memif do not", error);
    }
    report_verbs(doctor);
}

static void report_encryption(struct doctor *doctor)
{
    char text[CW_PORT_TEXT_BYTES] = "";
    bool can = cw_aead_load(text, sizeof(text)) == CW_OK;
    doctor_report(doctor, "choice", "encryption", can ? DOCTOR_GOOD : DOCTOR_MISSING, can ? cw_aead_version() : text,
                  can ? NULL : "encrypted sessions are refused");
}

void doctor_choice(struct doctor *doctor)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    doctor_report(doctor, "choice", "between processes", DOCTOR_NOTE,
                  "memif, with a doorbell that wakes a sleeping process",
                  cores > 1 ? NULL : "with one core, every packet costs a thread switch");
    doctor_report(doctor, "choice", "between hosts", DOCTOR_NOTE,
                  "UDP sockets of the kernel; `causeway doctor --transport HOST...` tries them", NULL);
    doctor_report(doctor, "choice", "many on one NIC", DOCTOR_NOTE,
                  "`causeway node`, which owns the NIC; each rank exchanges frames with it in shared memory", NULL);
    doctor_report(doctor, "choice", "kernel interfaces", DOCTOR_NOTE,
                  geteuid() == 0 ? "af_packet, for `causeway node` and `causeway gateway`"
                                 : "none, since they need CAP_NET_RAW",
                  geteuid() == 0 ? NULL : "run as root; memif and UDP sockets need no privilege");
    doctor_report(doctor, "choice", "memory", DOCTOR_NOTE,
                  "4 KiB pages (--no-huge), which need no privilege and leave no files",
                  "huge pages are used on request");
    doctor_report(doctor, "choice", "waiting", DOCTOR_NOTE,
                  cores > 2 ? "yields the core for 50 us, then sleeps; polls all the time on a dedicated core"
                            : "yields the core for 50 us, then sleeps",
                  NULL);
    report_encryption(doctor);
}
