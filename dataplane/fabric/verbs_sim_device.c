/* Shared by queue pairs and datagrams of a simulated RDMA device: its line, its memory, its completions, and the time
 * of its next event. */
#include "dataplane/fabric/verbs_sim_device.h"

#include <assert.h>
#include <string.h>

void sim_complete(struct sim_device *device, enum cw_verbs_queue queue, const struct cw_verbs_completion *completion)
{
    struct completions *list = &device->queues[queue];
    if (device->net->failures[device->node]) {
        return;
    }
    if (list->count == list->room) {
        uint32_t room = list->room == 0 ? 256 : 2 * list->room;
        struct cw_verbs_completion *grown = calloc(room, sizeof(*grown));
        assert(grown != NULL);
        for (uint32_t i = 0; i < list->count; i++) {
            grown[i] = list->list[(list->first + i) % list->room];
        }
        free(list->list);
        *list = (struct completions){.list = grown, .count = list->count, .room = room};
    }
    list->list[(list->first + list->count++) % list->room] = *completion;
    cw_port_wake(device->port);
}

uint64_t sim_due_of(const struct cw_heap *heap)
{
    return heap->count > 0 ? heap->entries[0].time_ns : UINT64_MAX;
}

void sim_schedule(struct cw_verbs_net *net)
{
    uint64_t pairs_ns = sim_due_of(&net->heap), datagrams_ns = sim_due_of(&net->datagrams);
    uint64_t next_ns = pairs_ns < datagrams_ns ? pairs_ns : datagrams_ns;
    if (next_ns >= net->script_ns) {
        return;
    }
    net->script_ns = next_ns;
    int status = cw_simulator_at(net->simulator, net->script_ns, net->run, net);
    assert(status == CW_OK);
    (void)status;
}

static uint64_t line_ns(const struct sim_device *device, uint64_t bytes)
{
    return (bytes + 64) * 8 * 1000000000ull / device->net->config.rate_bps;
}

uint64_t sim_line_reserve(struct sim_device *device, uint64_t bytes)
{
    struct sim_line *line = device->line;
    uint64_t now_ns = sim_now(device->net);
    line->out_free_ns = (line->out_free_ns > now_ns ? line->out_free_ns : now_ns) + line_ns(device, bytes);
    return line->out_free_ns;
}

uint64_t sim_line_reserve_in(struct sim_device *device, uint64_t bytes)
{
    struct sim_line *line = device->line;
    uint64_t now_ns = sim_now(device->net), next_ns = line->in_free_ns + line_ns(device, bytes);
    line->in_free_ns = next_ns > now_ns ? next_ns : now_ns;
    return line->in_free_ns;
}

void sim_copy_from(const struct sim_device *device, void *to, const void *there, uint64_t bytes)
{
    if (device->process.copy_from != NULL) {
        device->process.copy_from(device->process.context, to, there, bytes);
    } else {
        memcpy(to, there, bytes);
    }
}

void sim_copy_to(const struct sim_device *device, void *there, const void *from, uint64_t bytes)
{
    if (device->process.copy_to != NULL) {
        device->process.copy_to(device->process.context, there, from, bytes);
    } else {
        memcpy(there, from, bytes);
    }
}

struct sim_memory *sim_memory_find(struct sim_device *device, uint32_t key)
{
    struct sim_memory *memory = &device->memories[key % MEMORIES_MAX];
    return memory->base != NULL && memory->key == key ? memory : NULL;
}
