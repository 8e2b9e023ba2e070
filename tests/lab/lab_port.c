#include "tests/lab/lab_port.h"

#include <stdio.h>

#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"

struct cw_port *lab_port_open(const char *path, uint32_t index, const char *name)
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
