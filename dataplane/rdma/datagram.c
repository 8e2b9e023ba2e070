/* Datagrams to groups: whole frames, as they would leave by the port, from the Ethernet header on. So an arrival is
 * processed like any packet, and needs no other form; it costs 42 bytes a packet. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dataplane/flow/receive.h"
#include "dataplane/rdma/rdma_state.h"

enum {
    IN = CW_VERBS_DATAGRAMS_IN,
    OUT = CW_VERBS_DATAGRAMS_OUT,
    LINE = 64,
};

static uint8_t *buffer_at(const struct rdma_datagrams *datagrams, uint32_t index)
{
    return datagrams->memory + (uint64_t)index * datagrams->buffer_bytes;
}

static struct rdma_group *group_find(struct rdma *rdma, const struct cw_ip *ip)
{
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    for (uint32_t i = 0; i < datagrams->group_count; i++) {
        if (cw_ip_is_equal(&datagrams->groups[i].ip, ip)) {
            return &datagrams->groups[i];
        }
    }
    return NULL;
}

/* A buffer that is not accepted is offered again with the next arrival. */
static void receive_post(struct rdma *rdma)
{
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    while (datagrams->idle_count > 0) {
        struct cw_verbs_buffer buffers[CW_VERBS_BURST];
        uint32_t count = datagrams->idle_count < CW_VERBS_BURST ? datagrams->idle_count : CW_VERBS_BURST;
        for (uint32_t i = 0; i < count; i++) {
            uint16_t index = datagrams->idle[datagrams->idle_count - 1 - i];
            buffers[i] = (struct cw_verbs_buffer){
                .id = index,
                .data = buffer_at(datagrams, index),
                .bytes = CW_VERBS_DATAGRAM_HEAD + rdma->device->info.datagram_bytes,
                .memory = &datagrams->registered,
            };
        }
        uint32_t taken = cw_verbs_datagram_receive_post(rdma->device, buffers, count);
        datagrams->idle_count -= taken;
        if (taken < count) {
            return;
        }
    }
}

/* With the first group: a rank without groups needs none of it. */
static int memory_make(struct rdma *rdma)
{
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    uint32_t bytes = CW_VERBS_DATAGRAM_HEAD + rdma->device->info.datagram_bytes;
    datagrams->buffer_bytes = (bytes + LINE - 1) / LINE * LINE;
    datagrams->memory_bytes = (uint64_t)(IN + OUT) * datagrams->buffer_bytes;
    void *memory = mmap(NULL, datagrams->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return CW_ERROR_MEMORY;
    }
    int status =
        cw_verbs_memory_register(rdma->device, memory, datagrams->memory_bytes, CW_VERBS_LOCAL, &datagrams->registered);
    if (status != CW_OK) {
        (void)munmap(memory, datagrams->memory_bytes);
        return status;
    }
    datagrams->memory = memory;
    for (uint16_t i = 0; i < IN; i++) {
        datagrams->idle[datagrams->idle_count++] = i;
    }
    for (uint16_t i = 0; i < OUT; i++) {
        datagrams->free[datagrams->free_count++] = (uint16_t)(IN + i);
    }
    receive_post(rdma);
    return CW_OK;
}

/* Datagrams do not work any more. */
static bool is_broken(const struct rdma *rdma)
{
    return rdma->has_failed || rdma->datagrams.has_failed;
}

uint32_t rdma_datagram_bytes(const struct cw_rdma *base)
{
    const struct rdma *rdma = (const struct rdma *)base;
    return is_broken(rdma) ? 0 : rdma->device->info.datagram_bytes;
}

int rdma_group_join(struct cw_rdma *base, const struct cw_ip *ip)
{
    struct rdma *rdma = (struct rdma *)base;
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    struct rdma_group *group = group_find(rdma, ip);
    if (group != NULL) {
        datagrams->leaving_count -= group->joins == 0;
        group->joins++;
        return CW_OK;
    }
    if (rdma_datagram_bytes(base) == 0) {
        return CW_ERROR_UNSUPPORTED;
    }
    if (datagrams->group_count == CW_VERBS_GROUPS_MAX) {
        return CW_ERROR_LIMIT;
    }
    int status = datagrams->memory == NULL ? memory_make(rdma) : CW_OK;
    struct rdma_group made = {.ip = *ip, .joins = 1};
    status = status == CW_OK ? cw_verbs_group_join(rdma->device, ip->bytes, &made.number) : status;
    if (status == CW_OK) {
        datagrams->groups[datagrams->group_count++] = made;
    }
    return status;
}

bool rdma_group_is_joined(struct cw_rdma *base, const struct cw_ip *ip)
{
    struct rdma *rdma = (struct rdma *)base;
    const struct rdma_group *group = group_find(rdma, ip);
    return is_broken(rdma) || group == NULL || cw_verbs_group_is_joined(rdma->device, group->number);
}

int rdma_group_leave(struct cw_rdma *base, const struct cw_ip *ip)
{
    struct rdma *rdma = (struct rdma *)base;
    struct rdma_group *group = group_find(rdma, ip);
    if (group == NULL || group->joins == 0) {
        return CW_ERROR_NOT_FOUND;
    }
    rdma->datagrams.leaving_count += --group->joins == 0;
    return CW_OK;
}

/* Leaves permanently, once no datagram is in flight that needs the address. */
static void groups_sweep(struct rdma *rdma)
{
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    for (uint32_t i = datagrams->group_count; i-- > 0;) {
        if (datagrams->groups[i].joins == 0) {
            cw_verbs_group_leave(rdma->device, datagrams->groups[i].number);
            datagrams->groups[i] = datagrams->groups[--datagrams->group_count];
        }
    }
    datagrams->leaving_count = 0;
}

/* ---- a turn ---- */

/* Members' ports differ, and there is no common one among devices: it is as if it had come to the own one. */
static void port_write(const struct cw_endpoint *endpoint, uint8_t *frame, uint32_t bytes)
{
    uint16_t group_port = endpoint->config.group_port;
    uint16_t port = group_port != 0 ? group_port : endpoint->config.address.udp_port;
    uint8_t *at = endpoint->overhead_bytes == CW_WIRE_OVERHEAD_BYTES
                      ? ((struct cw_wire_network *)frame)->destination_port
                      : ((struct cw_wire_network_v6 *)frame)->destination_port;
    if (bytes >= endpoint->overhead_bytes) {
        at[0] = (uint8_t)(port >> 8);
        at[1] = (uint8_t)port;
    }
}

static void completions_apply(struct rdma *rdma, const struct cw_verbs_completion *completions, uint32_t count)
{
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    struct cw_received packets[CW_VERBS_BURST];
    uint16_t buffers[CW_VERBS_BURST];
    uint32_t received = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t index = (uint16_t)completions[i].id;
        datagrams->has_failed = datagrams->has_failed || completions[i].status != CW_VERBS_OK;
        if (index >= IN) {
            datagrams->free[datagrams->free_count++] = index;
            continue;
        }
        if (completions[i].status != CW_VERBS_OK) {
            continue; /* the device takes no more of them */
        }
        if (completions[i].bytes <= CW_VERBS_DATAGRAM_HEAD) {
            datagrams->idle[datagrams->idle_count++] = index;
            continue;
        }
        port_write(rdma->endpoint, buffer_at(datagrams, index) + CW_VERBS_DATAGRAM_HEAD,
                   completions[i].bytes - CW_VERBS_DATAGRAM_HEAD);
        buffers[received] = index;
        packets[received++] = (struct cw_received){
            .data = buffer_at(datagrams, index) + CW_VERBS_DATAGRAM_HEAD,
            .length = completions[i].bytes - CW_VERBS_DATAGRAM_HEAD,
        };
    }
    if (received > 0) {
        cw_receive_frames(rdma->endpoint, packets, received);
        cw_count(rdma->endpoint, CW_COUNTER_RDMA_DATAGRAMS_IN, received);
    }
    for (uint32_t i = 0; i < received; i++) { /* theirs to read until now */
        datagrams->idle[datagrams->idle_count++] = buffers[i];
    }
}

uint32_t rdma_datagrams_turn(struct rdma *rdma)
{
    if (!rdma_has_datagrams(rdma) && rdma->fetched[CW_VERBS_DATAGRAMS].count == 0) {
        return 0;
    }
    uint32_t count = rdma_poll_all(rdma, CW_VERBS_DATAGRAMS, completions_apply);
    receive_post(rdma);
    if (rdma->datagrams.leaving_count > 0 && rdma->datagrams.free_count == OUT) {
        groups_sweep(rdma);
    }
    return count;
}

/* ---- out ---- */

uint32_t rdma_datagram_room(const struct cw_rdma *base)
{
    const struct rdma *rdma = (const struct rdma *)base;
    return is_broken(rdma) ? OUT : rdma->datagrams.free_count; /* lost datagrams need none */
}

void rdma_datagram_send(struct cw_rdma *base, const struct cw_ip *ip, const void *frame, uint32_t bytes)
{
    struct rdma *rdma = (struct rdma *)base;
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    const struct rdma_group *group = group_find(rdma, ip);
    if (group == NULL || group->joins == 0 || bytes > rdma_datagram_bytes(base) || datagrams->free_count == 0) {
        return; /* lost, as packets are */
    }
    uint16_t index = datagrams->free[--datagrams->free_count];
    const struct cw_verbs_buffer datagram = {
        .id = index, .data = buffer_at(datagrams, index), .bytes = bytes, .memory = &datagrams->registered};
    memcpy(datagram.data, frame, bytes);
    if (!cw_verbs_datagram_post(rdma->device, group->number, &datagram)) {
        datagrams->free[datagrams->free_count++] = index;
        return;
    }
    cw_count(rdma->endpoint, CW_COUNTER_RDMA_DATAGRAMS_OUT, 1);
}

void rdma_datagrams_dispose(struct rdma *rdma)
{
    struct rdma_datagrams *datagrams = &rdma->datagrams;
    while (datagrams->group_count > 0) {
        cw_verbs_group_leave(rdma->device, datagrams->groups[--datagrams->group_count].number);
    }
    if (datagrams->memory != NULL) {
        cw_verbs_memory_unregister(rdma->device, &datagrams->registered);
    }
}

void rdma_datagrams_free(struct rdma *rdma)
{
    if (rdma->datagrams.memory != NULL) {
        (void)munmap(rdma->datagrams.memory, rdma->datagrams.memory_bytes);
    }
}
