#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/fabric/verbs_sim_device.h"

static bool is_member(const struct sim_device *device, const uint8_t address[16])
{
    for (uint32_t i = 0; i < CW_VERBS_GROUPS_MAX; i++) {
        const struct sim_group *group = &device->groups[i];
        if (group->is_joined && group->joined_ns <= sim_now(device->net) && memcmp(group->address, address, 16) == 0) {
            return true;
        }
    }
    return false;
}

int sim_group_join(struct cw_verbs_device *base, const uint8_t address[16], uint32_t *group)
{
    struct sim_device *device = (struct sim_device *)base;
    for (uint32_t i = 0; i < CW_VERBS_GROUPS_MAX; i++) {
        if (!device->groups[i].is_joined) {
            uint64_t takes_ns = cw_random_below(&device->net->random, device->net->config.join_max_ns + 1);
            device->groups[i] = (struct sim_group){.is_joined = true, .joined_ns = sim_now(device->net) + takes_ns};
            memcpy(device->groups[i].address, address, 16);
            *group = i;
            return CW_OK;
        }
    }
    return CW_ERROR_LIMIT;
}

bool sim_group_is_joined(struct cw_verbs_device *base, uint32_t group)
{
    const struct sim_device *device = (const struct sim_device *)base;
    return device->groups[group].joined_ns <= sim_now(device->net);
}

void sim_group_leave(struct cw_verbs_device *base, uint32_t group)
{
    ((struct sim_device *)base)->groups[group].is_joined = false;
}

static void datagram_go(struct sim_device *device, uint64_t time_ns, struct sim_datagram *datagram)
{
    struct cw_verbs_net *net = device->net;
    datagram->device = device;
    const struct cw_heap_entry entry = {.time_ns = time_ns, .sequence = net->sequence++, .object = datagram};
    bool has_room = cw_heap_push(&net->datagrams, &entry, false);
    assert(has_room);
    (void)has_room;
}

static struct sim_datagram *datagram_make(uint32_t bytes)
{
    struct sim_datagram *datagram = calloc(1, sizeof(*datagram) + bytes);
    assert(datagram != NULL);
    datagram->bytes = bytes;
    return datagram;
}

bool sim_datagram_post(struct cw_verbs_device *base, uint32_t group, const struct cw_verbs_buffer *sent)
{
    struct sim_device *device = (struct sim_device *)base;
    struct cw_verbs_net *net = device->net;
    const uint8_t *address = device->groups[group].address;
    const struct sim_memory *memory = sim_memory_find(device, sent->memory->local_key);
    const uint8_t *data = sent->data;
    assert(device->groups[group].is_joined && sent->bytes <= DATAGRAM_BYTES);
    if (device->posted == CW_VERBS_DATAGRAMS_OUT || !sim_group_is_joined(base, group)) {
        return false;
    }
    net->counters.wrong += memory == NULL || data < memory->base || data + sent->bytes > memory->base + memory->bytes;
    device->posted++;
    uint64_t left_ns = sim_line_reserve(device, sent->bytes);
    struct sim_datagram *completion = datagram_make(0);
    completion->id = sent->id;
    datagram_go(device, left_ns, completion);
    net->counters.datagrams++;
    for (uint32_t node = 0; node < cw_simulator_node_count(net->simulator); node++) {
        struct sim_device *member = net->devices[node];
        if (member == NULL || member == device || !is_member(member, address) || sim_is_cut(net, device->node) ||
            cw_random_chance(&net->random, net->config.datagram_loss)) {
            continue;
        }
        struct sim_datagram *copy = datagram_make(sent->bytes);
        memcpy(copy->address, address, 16);
        sim_copy_from(device, copy->data, data, sent->bytes);
        datagram_go(member, left_ns + net->config.delay_ns + cw_random_below(&net->random, net->config.jitter_ns + 1),
                    copy);
    }
    sim_schedule(net);
    return true;
}

uint32_t sim_datagram_receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers, uint32_t count)
{
    struct sim_device *device = (struct sim_device *)base;
    uint32_t taken = 0;
    for (; taken < count && device->datagram_count < CW_VERBS_DATAGRAMS_IN; taken++) {
        uint32_t at = (device->datagram_first + device->datagram_count++) % CW_VERBS_DATAGRAMS_IN;
        device->datagrams[at] = buffers[taken];
    }
    return taken;
}

static void arrive(struct sim_device *device, const struct sim_datagram *datagram)
{
    struct cw_verbs_net *net = device->net;
    if (sim_is_cut(net, device->node) || !is_member(device, datagram->address)) {
        return;
    }
    if (device->datagram_count == 0) {
        net->counters.dropped++;
        return;
    }
    const struct cw_verbs_buffer *buffer = &device->datagrams[device->datagram_first];
    device->datagram_first = (device->datagram_first + 1) % CW_VERBS_DATAGRAMS_IN;
    device->datagram_count--;
    assert(CW_VERBS_DATAGRAM_HEAD + datagram->bytes <= buffer->bytes);
    uint8_t head[CW_VERBS_DATAGRAM_HEAD];
    memset(head, 0xa5, sizeof(head)); /* nothing that means anything */
    sim_copy_to(device, buffer->data, head, sizeof(head));
    sim_copy_to(device, (uint8_t *)buffer->data + CW_VERBS_DATAGRAM_HEAD, datagram->data, datagram->bytes);
    const struct cw_verbs_completion completion = {.id = buffer->id, .bytes = CW_VERBS_DATAGRAM_HEAD + datagram->bytes};
    sim_complete(device, CW_VERBS_DATAGRAMS, &completion);
}

void sim_datagram_run(struct sim_datagram *datagram)
{
    struct sim_device *device = datagram->device;
    if (device != NULL && datagram->bytes == 0) {
        const struct cw_verbs_completion completion = {.id = datagram->id};
        device->posted--;
        sim_complete(device, CW_VERBS_DATAGRAMS, &completion);
    } else if (device != NULL) {
        arrive(device, datagram);
    }
    free(datagram);
}

void sim_datagrams_drop(struct sim_device *device)
{
    struct cw_heap *heap = &device->net->datagrams;
    for (uint32_t i = 0; i < heap->count; i++) {
        struct sim_datagram *datagram = heap->entries[i].object;
        datagram->device = datagram->device == device ? NULL : datagram->device;
    }
}
