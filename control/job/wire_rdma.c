/* The RDMA device of a rank, in addition to its port. */
#include "control/job/wire_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/net/rdma.h"
#include "control/settings/setting.h"
#include "dataplane/base/virtual.h"
#include "dataplane/port/error_text.h"
#include "dataplane/rdma/rdma.h"
#include "dataplane/verbs/verbs_virtual.h"

static int wish_read(struct cw_net_rdma *rdma, char *error, size_t error_bytes)
{
    char wrong[CW_VERBS_ERROR_BYTES];
    int status = cw_net_rdma_read(cw_setting(CW_SETTING_RDMA), rdma, wrong, sizeof(wrong));
    return status == CW_OK ? CW_OK : cw_error_text(error, error_bytes, status, "CAUSEWAY_RDMA: %s", wrong);
}

int cw_wire_rdma_may(const struct cw_net_offer *offer, bool *may, char *error, size_t error_bytes)
{
    struct cw_net_rdma rdma;
    struct cw_verbs_port port;
    char wrong[CW_VERBS_ERROR_BYTES];
    int status = wish_read(&rdma, error, error_bytes);
    *may = status == CW_OK && rdma.name[0] != 0;
    for (uint32_t i = 0; i < offer->count && status == CW_OK && !*may && !rdma.is_off; i++) {
        *may = cw_net_rdma_find(&rdma, &offer->addresses[i].ip, &port, wrong, sizeof(wrong)) == CW_OK;
    }
    return status;
}

int wire_rdma_find(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct cw_net_rdma rdma;
    char wrong[CW_VERBS_ERROR_BYTES];
    if (request->own == NULL && !cw_virtual_is_on()) { /* emulated hosts have none */
        return CW_OK;
    }
    int status = wish_read(&rdma, error, error_bytes);
    if (status != CW_OK || rdma.is_off) {
        return status;
    }
    if (request->own == NULL && rdma.name[0] != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "CAUSEWAY_RDMA: simulated hosts have no device '%s': theirs come by rdma=on of --simulate",
                             rdma.name);
    }
    if (request->own == NULL) {
        wire->has_rdma = cw_verbs_virtual_is_there();
        return CW_OK;
    }
    status = cw_net_rdma_find(&rdma, &request->own->ip, &wire->rdma, wrong, sizeof(wrong));
    wire->has_rdma = status == CW_OK;
    wire->rdma_is_named = rdma.name[0] != 0;
    if (status != CW_OK && wire->rdma_is_named) {
        return cw_error_text(error, error_bytes, status, "CAUSEWAY_RDMA: %s", wrong);
    }
    if (status != CW_OK && cw_verbs_are_there()) {
        snprintf(wire->without_rdma, sizeof(wire->without_rdma), "%s", wrong);
    }
    return CW_OK;
}

int wire_rdma_attach(struct cw_wire *wire, const struct cw_endpoint_config *endpoint, char *error, size_t error_bytes)
{
    if (!wire->has_rdma) {
        return CW_OK;
    }
    struct cw_verbs_config config = cw_rdma_device_config(endpoint, wire->rdma.name);
    struct cw_verbs_device *device;
    char wrong[CW_VERBS_ERROR_BYTES];
    memcpy(config.gid, wire->rdma.gid, sizeof(config.gid));
    memcpy(config.ip, endpoint->address.ip.bytes, sizeof(config.ip));
    int status = cw_virtual_is_on() ? cw_verbs_virtual_open(&device, wrong, sizeof(wrong))
                                    : cw_verbs_open(&config, &device, wrong, sizeof(wrong));
    status = status == CW_OK ? cw_rdma_attach(wire->endpoint, device, wrong, sizeof(wrong)) : status;
    if (status == CW_OK) {
        wire->rdma = device->info.port;
        return CW_OK;
    }
    wire->has_rdma = false;
    if (wire->rdma_is_named || cw_virtual_is_on()) {
        return cw_error_text(error, error_bytes, status, "%s%s", wire->rdma_is_named ? "CAUSEWAY_RDMA: " : "", wrong);
    }
    snprintf(wire->without_rdma, sizeof(wire->without_rdma), "%s", wrong); /* packets do */
    return CW_OK;
}

void cw_wire_rdma_write(const struct cw_wire *wire, char *text, size_t text_bytes)
{
    char port[CW_VERBS_TEXT_BYTES];
    text[0] = 0;
    if (wire->has_rdma) {
        cw_verbs_port_write(&wire->rdma, port);
        snprintf(text, text_bytes, "queue pairs of RDMA device %s", port);
    } else if (wire->without_rdma[0] != 0) {
        snprintf(text, text_bytes, "no queue pairs: %s", wire->without_rdma);
    }
}
