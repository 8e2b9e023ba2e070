/* Chooses the device, port and GID: verbs/ibverbs.c opens it, and `causeway doctor` lists it. Inside of
 * libcauseway_verbs.so. */
#pragma once

#include <infiniband/verbs.h>

#include "dataplane/verbs/device.h"

struct verbs_choice {
    struct cw_verbs_port port;
    uint8_t gid_index;
    uint32_t interface; /* the kernel's number of it; 0: it has none */
    bool is_global;     /* reached by GID */
    enum ibv_mtu mtu;
    uint32_t message_max; /* bytes */
};

/* Opens the device that is meant. CW_OK, or an error as cw_verbs_open. */
int verbs_find(const struct cw_verbs_config *config, struct ibv_context **context, struct verbs_choice *choice,
               char *error, size_t error_bytes);

/* As cw_verbs_find and cw_verbs_list. */
int verbs_port_find(const struct cw_verbs_config *config, struct cw_verbs_port *port, char *error, size_t error_bytes);
int verbs_ports_list(struct cw_verbs_port *ports, uint32_t count_max, uint32_t *count, char *error, size_t error_bytes);
