#include "dataplane/base/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STAT_BYTES = 512 /* the letter stands behind the name, which has 64 at most */ };

int32_t cw_process_number(void)
{
    char number[16];
    ssize_t length = readlink("/proc/self", number, sizeof(number) - 1);
    number[length > 0 ? length : 0] = '\0';
    return (int32_t)strtol(number, NULL, 10);
}

/* Its file of this name in /proc, as much as there is room for. False: there is none, or no way to know. */
static bool file_read(int process, const char *name, char line[STAT_BYTES])
{
    char path[64];
    if (cw_process_number() != getpid()) {
        return false;
    }
    snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, line, STAT_BYTES - 1);
    if (file >= 0) {
        close(file);
    }
    line[length > 0 ? length : 0] = '\0';
    return length > 0;
}

struct cw_process_turns cw_process_turns(int process)
{
    struct cw_process_turns turns = {0};
    char line[STAT_BYTES];
    if (!file_read(process, "schedstat", line) ||
        sscanf(line, "%" SCNu64 " %" SCNu64, &turns.ran_ns, &turns.waited_ns) != 2) {
        turns = (struct cw_process_turns){0};
    }
    return turns;
}

char cw_process_state(int process)
{
    char line[STAT_BYTES];
    if (!file_read(process, "stat", line)) {
        return 0;
    }
    const char *behind = strrchr(line, ')'); /* of the program's name, which may hold anything */
    return behind != NULL && behind[1] == ' ' ? behind[2] : 0;
}

bool cw_process_is_stopped(int process)
{
    return cw_process_state(process) == 'T';
}

int cw_process_file_number(const char *path, const char *name, int otherwise)
{
    char line[256];
    FILE *file = fopen(path, "re");
    int number = otherwise;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%d", &number) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

bool cw_process_is_traced(int process)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", process);
    return cw_process_number() == getpid() && cw_process_file_number(path, "TracerPid:", 0) != 0;
}

/* As sched_setattr(2) wants it. The kernel's header has it, with a sched_param that is not the C library's. */
struct attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* of SCHED_OTHER: the slice */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

/* Of the calling thread. */
static bool attributes_get(struct attributes *attributes)
{
    *attributes = (struct attributes){.size = sizeof(*attributes)};
    return syscall(SYS_sched_getattr, 0, attributes, sizeof(*attributes), 0) == 0;
}

struct cw_process_cores cw_process_cores(void)
{
    cpu_set_t cores;
    long own = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    own = own < 1 ? 1 : own; /* a set has 1,024 at most */
    all = all < own ? own : all;
    return (struct cw_process_cores){.own = (uint16_t)own, .all = (uint16_t)(all < UINT16_MAX ? all : UINT16_MAX)};
}

void cw_process_slice_shorten(void)
{
    struct attributes attributes;
    if (attributes_get(&attributes) && attributes.policy == SCHED_OTHER) {
        attributes.runtime_ns = CW_PROCESS_SLICE_NS;
        (void)syscall(SYS_sched_setattr, 0, &attributes, 0); /* older kernels take it, and do nothing */
    }
}

uint64_t cw_process_slice_ns(void)
{
    struct attributes attributes;
    return attributes_get(&attributes) ? attributes.runtime_ns : 0;
}

bool cw_process_socket_lives(const char *path, const struct stat *file)
{
    FILE *list = fopen("/proc/net/unix", "re");
    char line[512];
    bool lives = list == NULL;
    while (list != NULL && !lives && fgets(line, sizeof(line), list) != NULL) {
        line[strcspn(line, "\n")] = 0;
        const char *name = strrchr(line, ' ');
        struct stat other;
        /* the same file may have been named in another way */
        lives = name != NULL &&
                (strcmp(name + 1, path) == 0 ||
                 (stat(name + 1, &other) == 0 && other.st_dev == file->st_dev && other.st_ino == file->st_ino));
    }
    if (list != NULL) {
        fclose(list);
    }
    return lives;
}
