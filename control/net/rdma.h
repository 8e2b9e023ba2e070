/* rdma: which RDMA device's queue pairs carry what two hosts say to each other that both have one, next to the
 * transport of their packets (transport.h).
 *
 * CAUSEWAY_RDMA, which each rank may have its own:
 *   auto      the device with the rank's address among its GIDs: RoCE v2 before v1; on InfiniBand any. The default
 *   off       none
 *   mlx5_0    this one, by that GID if it has it, else by its best one; that it is there is insisted on
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dataplane/ip.h"
#include "dataplane/verbs/device.h"

struct cw_net_rdma {
    bool is_off;
    char name[CW_VERBS_NAME_BYTES]; /* "": auto */
};

/* Parses the value of CAUSEWAY_RDMA; NULL, "": auto. CW_OK, or CW_ERROR_ARGUMENT with a line in `error`. */
int cw_net_rdma_read(const char *text, struct cw_net_rdma *rdma, char *error, size_t error_bytes);

/* The port for a rank at that address. CW_OK; errors as cw_verbs_find, also where it is off, with a line in `error`. */
int cw_net_rdma_find(const struct cw_net_rdma *rdma, const struct cw_ip *ip, struct cw_verbs_port *port, char *error,
                     size_t error_bytes);
