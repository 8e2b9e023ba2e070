/* Regions, as the application registers and deregisters them. */
#include <string.h>

#include "dataplane/staging/stage.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/state/rdma.h"

static bool makes_sense(const void *base, uint64_t bytes, uint32_t rights)
{
    return (base != NULL || bytes == 0) && bytes <= INT64_MAX &&
           (rights & ~(uint32_t)(CW_REGION_WRITE | CW_REGION_READ | CW_REGION_KEPT)) == 0;
}

/* Has the port know its memory, if long pieces of it can leave from where they are; not what an RDMA device knows: its
 * packets are few, and the two would contend for the watch over it (register/memory_watch.h). */
static void port_register(struct cw_endpoint *endpoint, struct cw_region *region)
{
    if (region->verbs.handle == NULL && endpoint->port->info.gather && region->bytes >= CW_GATHER_MIN &&
        cw_port_memory_register(endpoint->port, region->base, region->bytes, &region->memory) != CW_OK) {
        region->memory = NULL; /* its pieces are copied */
    }
}

/* The device denies access to the memory from now on. */
static void device_deregister(struct cw_endpoint *endpoint, struct cw_region *region)
{
    if (region->verbs.handle != NULL) {
        endpoint->rdma->ops->memory_unregister(endpoint->rdma, region);
    }
}

int cw_region_register(struct cw_endpoint *endpoint, void *base, uint64_t bytes, uint32_t rights, uint64_t *token)
{
    if (!makes_sense(base, bytes, rights)) {
        return CW_ERROR_ARGUMENT;
    }
    /* Peers see keys of regions and nonces of sessions; neither may reveal the next key, so it goes through BLAKE2b
     * under the job key. */
    struct cw_rdma *rdma = endpoint->rdma;
    struct cw_region known = {0};
    uint64_t bits;
    bool is_known = rdma != NULL && bytes > 0 && rdma->ops->memory_register(rdma, &known, base, bytes, rights, &bits);
    while (!is_known) {
        struct cw_wire_key key;
        cw_wire_key_derive(&key, endpoint->config.job_key, cw_random_next(&endpoint->random), endpoint->incarnation);
        memcpy(&bits, key.bytes, sizeof(bits));
        bits >>= 16;
        if (rdma == NULL || !rdma->ops->means_key(rdma, bits)) {
            break;
        }
    }
    struct cw_region *region;
    int status = cw_regions_add(&endpoint->regions, base, bytes, rights, bits, &region);
    if (status != CW_OK) {
        device_deregister(endpoint, &known);
        return status;
    }
    if (is_known) {
        region->verbs = known.verbs;
        region->cached = known.cached;
    }
    port_register(endpoint, region);
    *token = region->token;
    return CW_OK;
}

int cw_region_register_as(struct cw_endpoint *endpoint, void *base, uint64_t bytes, uint32_t rights, uint64_t token)
{
    struct cw_region *region;
    int status = makes_sense(base, bytes, rights)
                     ? cw_regions_add_as(&endpoint->regions, base, bytes, rights, token, &region)
                     : CW_ERROR_ARGUMENT;
    if (status == CW_OK) {
        port_register(endpoint, region);
    }
    return status;
}

/* True if a packet that waits for the port has a piece of this memory. */
static bool staged_uses(const struct cw_endpoint *endpoint, const struct cw_port_memory *memory)
{
    for (uint32_t i = 0; i < endpoint->staged_count; i++) {
        const struct cw_transmit *packet = &endpoint->staged[i];
        for (uint32_t piece = 0; piece < packet->piece_count; piece++) {
            if (packet->pieces[piece].memory == memory) {
                return true;
            }
        }
    }
    return false;
}

int cw_region_deregister(struct cw_endpoint *endpoint, uint64_t token)
{
    struct cw_region *region = cw_region_of(&endpoint->regions, token);
    if (region == NULL || region == endpoint->messages.region) {
        return CW_ERROR_NOT_FOUND;
    }
    if (region->users > 0 || (endpoint->rdma != NULL && endpoint->rdma->ops->memory_is_busy(endpoint->rdma, region))) {
        return CW_ERROR_BUSY;
    }
    if (region->memory != NULL) {
        cw_flush(endpoint); /* packets with pieces of it may wait for the port */
        if (staged_uses(endpoint, region->memory) ||
            cw_port_memory_unregister(endpoint->port, region->memory) != CW_OK) {
            return CW_ERROR_BUSY;
        }
    }
    device_deregister(endpoint, region);
    cw_regions_remove(region);
    return CW_OK;
}
