#include "dataplane/dpdk/dpdk.h"

#include <pthread.h>
#include <stdio.h>

#include "dataplane/base/module.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#if defined(CW_HAVE_DPDK)
#define REMEDY "apt-get install libdpdk-dev has DPDK's libraries"
#else
#define REMEDY "this build has no DPDK: install libdpdk-dev and build again"
#endif

/* Loaded once in a process, as EAL is started once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct cw_dpdk *table;
static char obstacle[256];

static void load(void)
{
    table = (const struct cw_dpdk *)cw_module_load(CW_DPDK_LIBRARY, CW_DPDK_TABLE, CW_DPDK_BUILD, obstacle,
                                                   sizeof(obstacle)); /* its first member */
}

const struct cw_dpdk *cw_dpdk_load(char *error, size_t error_bytes)
{
    pthread_once(&once, load);
    if (table == NULL) {
        (void)cw_error_text(error, error_bytes, 0, "ports need DPDK: %s; " REMEDY, obstacle);
    }
    return table;
}

const char *cw_dpdk_version(void)
{
    return cw_dpdk_load(NULL, 0) == NULL ? NULL : table->version();
}

int cw_port_ethdev_open(const struct cw_port_ethdev_config *config, struct cw_port **port, char *error,
                        size_t error_bytes)
{
    return cw_dpdk_load(error, error_bytes) == NULL ? CW_ERROR_UNSUPPORTED
                                                    : table->ethdev_open(config, port, error, error_bytes);
}

int cw_port_ethdev_arguments(const struct cw_port_ethdev_config *config, char *arguments, size_t arguments_bytes)
{
    return cw_dpdk_load(NULL, 0) == NULL ? CW_ERROR_UNSUPPORTED
                                         : table->ethdev_arguments(config, arguments, arguments_bytes);
}

/* The table stays loaded while a port exists. */

struct cw_port *cw_port_ethdev_queue(struct cw_port *first, uint32_t index)
{
    return table->ethdev_queue(first, index);
}

int cw_port_ethdev_promiscuous(struct cw_port *port)
{
    return table->ethdev_promiscuous(port);
}

const char *cw_port_ethdev_multicast(const struct cw_port *port)
{
    return table->ethdev_multicast(port);
}

uint64_t cw_port_ethdev_dropped(const struct cw_port *port)
{
    return table->ethdev_dropped(port);
}

uint16_t cw_port_ethdev_id(const struct cw_port *port)
{
    return table->ethdev_id(port);
}

void cw_port_ethdev_offloads(const struct cw_port *port, struct cw_offload_report reports[CW_PORT_OFFLOADS])
{
    table->ethdev_offloads(port, reports);
}

int cw_port_ethdev_offload_switch(struct cw_port *port, enum cw_port_offload offload, bool on)
{
    return table->ethdev_offload_switch(port, offload, on);
}
