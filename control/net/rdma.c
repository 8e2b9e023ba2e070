#include "control/net/rdma.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

int cw_net_rdma_read(const char *text, struct cw_net_rdma *rdma, char *error, size_t error_bytes)
{
    *rdma = (struct cw_net_rdma){.is_off = text != NULL && strcmp(text, "off") == 0};
    if (text == NULL || text[0] == 0 || rdma->is_off || strcmp(text, "auto") == 0) {
        return CW_OK;
    }
    if (strlen(text) >= sizeof(rdma->name) || strpbrk(text, " \t/,") != NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "'%.60s' is no RDMA device: auto, off or the name of one is wanted, such as mlx5_0 "
                             "(`causeway doctor` lists them)",
                             text);
    }
    snprintf(rdma->name, sizeof(rdma->name), "%s", text);
    return CW_OK;
}

int cw_net_rdma_find(const struct cw_net_rdma *rdma, const struct cw_ip *ip, struct cw_verbs_port *port, char *error,
                     size_t error_bytes)
{
    if (rdma->is_off) {
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND, "CAUSEWAY_RDMA is off");
    }
    struct cw_verbs_config config = {.name = rdma->name[0] != 0 ? rdma->name : NULL};
    memcpy(config.gid, ip->bytes, sizeof(config.gid));
    int status = cw_verbs_find(&config, port, error, error_bytes);
    if (status == CW_ERROR_NOT_FOUND && config.name != NULL) { /* it need not be the interface of the packets */
        memset(config.gid, 0, sizeof(config.gid));
        status = cw_verbs_find(&config, port, error, error_bytes);
    }
    return status;
}
