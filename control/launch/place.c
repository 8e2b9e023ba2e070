/* Which rank runs on which host. */
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/launch/private.h"
#include "dataplane/base/machine.h"
#include "dataplane/status.h"

enum { HOST_NAME_BYTES = 256 };

/* ---- whether a host is this one ---- */

static bool is_same_address(const struct sockaddr *one, const struct sockaddr *other)
{
    if (one == NULL || other == NULL || one->sa_family != other->sa_family) {
        return false;
    }
    if (one->sa_family == AF_INET) {
        return memcmp(&((const struct sockaddr_in *)(const void *)one)->sin_addr,
                      &((const struct sockaddr_in *)(const void *)other)->sin_addr, sizeof(struct in_addr)) == 0;
    }
    return one->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)one)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)other)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* Whether the text is an address that this host has. Names are not looked up: that may take many seconds, and the
 * command that starts the agent does it anyway. */
static bool is_own_address(const char *name)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    struct ifaddrs *own = NULL;
    bool is_own = false;
    if (getaddrinfo(name, NULL, &wanted, &found) == 0 && getifaddrs(&own) == 0) {
        for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
            for (const struct ifaddrs *each = own; each != NULL && !is_own; each = each->ifa_next) {
                is_own = is_same_address(at->ai_addr, each->ifa_addr);
            }
        }
    }
    if (own != NULL) {
        freeifaddrs(own);
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return is_own;
}

bool cw_launch_host_is_here(const char *name)
{
    char own[HOST_NAME_BYTES] = "";
    (void)gethostname(own, sizeof(own) - 1);
    size_t length = strcspn(own, ".");
    return strcmp(name, own) == 0 || strcmp(name, "localhost") == 0 ||
           (length > 0 && strlen(name) == length && strncmp(name, own, length) == 0) || is_own_address(name);
}

void launch_machine_identity(char *text, size_t bytes)
{
    char boot[CW_MACHINE_BOOT_BYTES];
    struct stat network = {.st_ino = 0}, processes = {.st_ino = 0};
    (void)cw_machine_boot(boot);
    (void)stat("/proc/self/ns/net", &network);
    (void)stat("/proc/self/ns/pid", &processes);
    snprintf(text, bytes, "%s-%lu-%lu", boot, (unsigned long)network.st_ino, (unsigned long)processes.st_ino);
}

/* ---- ranks to hosts ---- */

/* Hosts' slots in turn, until all ranks have one; then once more: hosts get more ranks than slots evenly. */
static void ranks_place(const struct cw_launch_config *config, struct launch_work *work, uint32_t *room)
{
    bool by_node = config->mapping == CW_LAUNCH_MAP_NODE;
    uint32_t rank = 0, free_slots = 0;
    while (rank < work->rank_count) {
        if (free_slots == 0) {
            for (size_t host = 0; host < config->host_count; host++) {
                room[host] = config->hosts[host].slots;
                free_slots += room[host];
            }
        }
        for (uint32_t host = 0; host < config->host_count && rank < work->rank_count; host++) {
            uint32_t share = by_node && room[host] > 1 ? 1 : room[host];
            for (uint32_t i = 0; i < share && rank < work->rank_count; i++) {
                work->host_of[rank++] = host;
                room[host]--;
                free_slots--;
            }
        }
    }
}

/* Hosts without ranks have no part in the job. */
static void hosts_keep(const struct cw_launch_config *config, struct launch_work *work, uint32_t *place)
{
    for (uint32_t host = 0; host < config->host_count; host++) {
        if (launch_work_count(work, host) > 0) {
            place[host] = work->host_count;
            work->host_names[work->host_count++] = config->hosts[host].name;
        }
    }
    for (uint32_t rank = 0; rank < work->rank_count; rank++) {
        work->host_of[rank] = place[work->host_of[rank]];
    }
}

/* ---- what ranks of other hosts get of our environment ---- */

/* Variables that speak of a host, a login there, or of how this process was started. */
static bool is_hosts_own(const char *variable)
{
    static const char *const names[] = {
        "HOSTNAME=", "HOST=",   "HOME=", "USER=",  "LOGNAME=", "SHELL=",   "MAIL=",
        "PWD=",      "OLDPWD=", "_=",    "SHLVL=", "TMPDIR=",  "DISPLAY=", "XAUTHORITY="};
    static const char *const prefixes[] = {
        "SSH_", "XDG_", "DBUS_", "PMI_", "PMIX_", "SLURM_", "CAUSEWAY_JOB_KEY", "CAUSEWAY_WATCH_FD", "CAUSEWAY_HOST="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_exported(const char *variable, const char *const *exported)
{
    for (; exported != NULL && *exported != NULL; exported++) {
        size_t length = strlen(*exported);
        if (strncmp(variable, *exported, length) == 0 && variable[length] == '=') {
            return true;
        }
    }
    return false;
}

static char **variables_choose(const char *const *exported)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++) {
        if (!is_hosts_own(environ[i]) || is_exported(environ[i], exported)) {
            list[kept++] = environ[i];
        }
    }
    return list;
}

/* ---- the work ---- */

/* In memory that the process keeps. NULL: none. */
static char *own_place(bool executable)
{
    char text[4096];
    ssize_t length = executable ? readlink("/proc/self/exe", text, sizeof(text) - 1) : -1;
    if (executable) {
        text[length > 0 ? length : 0] = 0;
        return strdup(text);
    }
    return getcwd(NULL, 0);
}

static int work_fill(const struct cw_launch_config *config, struct launch_work *work)
{
    snprintf(work->name, sizeof(work->name), "causeway-%d", getpid());
    work->programs = calloc(config->program_count, sizeof(*work->programs));
    work->program_count = config->program_count;
    for (size_t i = 0; work->programs != NULL && i < config->program_count; i++) {
        work->programs[i] = config->programs[i];
        work->rank_count += config->programs[i].count;
    }
    work->host_of = calloc((size_t)work->rank_count + 1, sizeof(*work->host_of));
    work->host_names = calloc(config->host_count + 1, sizeof(*work->host_names));
    work->launcher = config->launcher != NULL ? config->launcher : "ssh";
    work->binding = config->binding != NULL ? config->binding : "none";
    work->by_numa = config->mapping == CW_LAUNCH_MAP_NUMA;
    work->stdin_rank = config->stdin_rank;
    return work->programs != NULL && work->host_of != NULL && work->host_names != NULL ? CW_OK : CW_ERROR_MEMORY;
}

int launch_place(const struct cw_launch_config *config, struct launch_work *work, uint32_t *self)
{
    static char here[HOST_NAME_BYTES];
    int status = work_fill(config, work);
    *self = 0;
    if (status != CW_OK) {
        return status;
    }
    if (config->hosts == NULL) {
        (void)gethostname(here, sizeof(here) - 1);
        work->host_count = 1;
        work->host_names[0] = here;
        return CW_OK;
    }
    uint32_t *room = calloc(config->host_count, sizeof(*room));
    if (room == NULL) {
        return CW_ERROR_MEMORY;
    }
    ranks_place(config, work, room);
    hosts_keep(config, work, room);
    free(room);
    *self = UINT32_MAX;
    for (uint32_t host = 0; host < work->host_count && *self == UINT32_MAX; host++) {
        *self = cw_launch_host_is_here(work->host_names[host]) ? host : UINT32_MAX;
    }
    work->is_elsewhere = *self == UINT32_MAX;
    if (launch_work_is_spread(work)) {
        work->executable = own_place(true);
        work->directory = own_place(false);
        work->variables = variables_choose(config->exported);
        status = work->executable != NULL && work->variables != NULL ? CW_OK : CW_ERROR_MEMORY;
    }
    return status;
}
