/* Loads libcauseway_verbs.so when the first device is wanted, on a machine that has any. */
#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/status.h"
#include "dataplane/verbs/module.h"

#if defined(CW_HAVE_VERBS)
#define REMEDY "apt-get install libibverbs1 ibverbs-providers"
#else
#define REMEDY "this build has no verbs: install libibverbs-dev and build again"
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct cw_verbs_module *table;
static char obstacle[CW_VERBS_ERROR_BYTES];

static void load(void)
{
    table = (const struct cw_verbs_module *)cw_module_load(CW_VERBS_LIBRARY, CW_VERBS_TABLE, CW_VERBS_BUILD, obstacle,
                                                           sizeof(obstacle)); /* its first member */
}

bool cw_verbs_are_there(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    bool has_any = false;
    for (const struct dirent *entry; folder != NULL && !has_any && (entry = readdir(folder)) != NULL;) {
        has_any = entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return has_any;
}

/* The module, for a machine that has a device; `name`: the one that is wanted, or NULL. */
static int module_need(const char *name, char *error, size_t error_bytes)
{
    if (!cw_verbs_are_there()) {
        snprintf(error, error_bytes, "%s%s%sthis machine has no RDMA device (`rdma link` lists them)",
                 name != NULL ? "RDMA device " : "", name != NULL ? name : "", name != NULL ? ": " : "");
        return CW_ERROR_NOT_FOUND;
    }
    pthread_once(&once, load);
    if (table == NULL) {
        snprintf(error, error_bytes, "RDMA needs libibverbs: %s; " REMEDY, obstacle);
        return CW_ERROR_UNSUPPORTED;
    }
    return CW_OK;
}

int cw_verbs_open(const struct cw_verbs_config *config, struct cw_verbs_device **device, char *error,
                  size_t error_bytes)
{
    int status = module_need(config->name, error, error_bytes);
    return status == CW_OK ? table->open(config, device, error, error_bytes) : status;
}

int cw_verbs_find(const struct cw_verbs_config *config, struct cw_verbs_port *port, char *error, size_t error_bytes)
{
    int status = module_need(config->name, error, error_bytes);
    return status == CW_OK ? table->find(config, port, error, error_bytes) : status;
}

int cw_verbs_list(struct cw_verbs_port *ports, uint32_t count_max, uint32_t *count, char *error, size_t error_bytes)
{
    int status = module_need(NULL, error, error_bytes);
    return status == CW_OK ? table->list(ports, count_max, count, error, error_bytes) : status;
}

void cw_verbs_port_write(const struct cw_verbs_port *port, char text[CW_VERBS_TEXT_BYTES])
{
    static const char *const kinds[] = {[CW_VERBS_SIMULATED] = "simulated",
                                        [CW_VERBS_INFINIBAND] = "InfiniBand",
                                        [CW_VERBS_ROCE_V1] = "RoCE v1",
                                        [CW_VERBS_ROCE_V2] = "RoCE v2",
                                        [CW_VERBS_IWARP] = "iWARP"};
    static const uint8_t none[16] = {0};
    char gid[INET6_ADDRSTRLEN] = "none", lid[16] = "";
    if (memcmp(port->gid, none, sizeof(none)) != 0) {
        (void)inet_ntop(AF_INET6, port->gid, gid, sizeof(gid));
    }
    if (port->lid != 0) {
        snprintf(lid, sizeof(lid), ", LID %u", port->lid);
    }
    snprintf(text, CW_VERBS_TEXT_BYTES, "%.63s port %u: %s, GID %s%s, MTU %u%s", port->name, port->number,
             kinds[port->kind], gid, lid, port->mtu_bytes, port->is_up ? "" : ", down");
}
