/* Findings about the machine: cores, memory, clock, privileges, limits. */
#include "apps/doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { TEXT_BYTES = 256 };

/* The first line of a file, without its end. False: the file cannot be read, or is empty. */
static bool read_line(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(text, (int)bytes, file) != NULL;
    fclose(file);
    if (read) {
        text[strcspn(text, "\n")] = 0;
    }
    return read;
}

static uint64_t read_number(const char *path)
{
    char text[TEXT_BYTES];
    return read_line(path, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

static void report_cores(struct doctor *doctor)
{
    cpu_set_t cores;
    char text[TEXT_BYTES];
    char isolated[TEXT_BYTES] = "";
    int count = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
    (void)read_line("/sys/devices/system/cpu/isolated", isolated, sizeof(isolated));
    snprintf(text, sizeof(text), "%d usable, isolated: %.200s", count, isolated[0] == 0 ? "none" : isolated);
    doctor_report(doctor, "machine", "cores", count >= 2 ? DOCTOR_GOOD : DOCTOR_MISSING, text,
                  count >= 2
                      ? (isolated[0] == 0 ? "to keep a core free for a dedicated loop, boot with isolcpus=N" : NULL)
                      : "no core can be dedicated to the network: loops sleep until a packet wakes them");
}

static void report_huge_pages(struct doctor *doctor)
{
    char text[TEXT_BYTES];
    uint64_t all = read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    uint64_t free_pages = read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    snprintf(text, sizeof(text), "%" PRIu64 " of 2 MiB, %" PRIu64 " free", all, free_pages);
    doctor_report(doctor, "machine", "huge pages", DOCTOR_NOTE, text,
                  free_pages > 0 ? NULL
                                 : "not needed; they speed up physical NICs: echo 1024 > "
                                   "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
}

static void report_clock(struct doctor *doctor)
{
    char text[TEXT_BYTES] = "unknown";
    (void)read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", text, sizeof(text));
    bool quick = strcmp(text, "tsc") == 0 || strcmp(text, "kvm-clock") == 0 || strcmp(text, "arch_sys_counter") == 0;
    doctor_report(doctor, "machine", "clock", quick ? DOCTOR_GOOD : DOCTOR_MISSING, text,
                  quick ? NULL
                        : "each reading enters the kernel, which costs about a microsecond: boot with clocksource=tsc");
}

void doctor_machine(struct doctor *doctor)
{
    char text[TEXT_BYTES];
    struct utsname name;
    if (uname(&name) == 0) {
        snprintf(text, sizeof(text), "%.40s %.80s, %.40s", name.sysname, name.release, name.machine);
        doctor_report(doctor, "machine", "kernel", DOCTOR_NOTE, text, NULL);
    }
    report_cores(doctor);
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    snprintf(text, sizeof(text), "%.1f GiB", (double)pages * (double)sysconf(_SC_PAGESIZE) / (1024.0 * 1024 * 1024));
    doctor_report(doctor, "machine", "memory", DOCTOR_GOOD, text, NULL);
    report_huge_pages(doctor);
    report_clock(doctor);
}

/* Bit numbers of linux/capability.h that matter here. */
struct capability {
    unsigned bit;
    const char *name;
    const char *todo;
};

static uint64_t effective_capabilities(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[TEXT_BYTES];
    uint64_t set = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "CapEff:", 7) == 0) {
            set = strtoull(line + 7, NULL, 16);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return set;
}

void doctor_rights(struct doctor *doctor)
{
    static const struct capability list[] = {
        {13, "CAP_NET_RAW", "needed for af_packet: run as root, or setcap cap_net_raw,cap_net_admin+ep on the program"},
        {12, "CAP_NET_ADMIN", "needed for net_tap devices"},
        {23, "CAP_SYS_NICE", "gives a dedicated loop real-time priority; optional"},
    };
    uint64_t set = effective_capabilities();
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        bool have = (set >> list[i].bit & 1) != 0;
        doctor_report(doctor, "rights", list[i].name, have ? DOCTOR_GOOD : DOCTOR_NOTE, have ? "yes" : "no",
                      have ? NULL : list[i].todo);
    }
    struct rlimit limit;
    char text[TEXT_BYTES];
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        bool plenty = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= 64u << 20;
        if (limit.rlim_cur == RLIM_INFINITY) {
            snprintf(text, sizeof(text), "unlimited");
        } else {
            snprintf(text, sizeof(text), "%" PRIu64 " KiB", (uint64_t)limit.rlim_cur / 1024);
        }
        doctor_report(doctor, "rights", "locked memory", plenty ? DOCTOR_GOOD : DOCTOR_NOTE, text,
                      plenty ? NULL
                             : "RDMA locks memory: ulimit -l unlimited, or memlock in /etc/security/limits.conf");
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)limit.rlim_cur);
        doctor_report(doctor, "rights", "open files", limit.rlim_cur >= 256 ? DOCTOR_GOOD : DOCTOR_MISSING, text,
                      limit.rlim_cur >= 256 ? NULL : "a switch needs about 8 for each port: ulimit -n 1024");
    }
}
