#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/fabric/verbs_sim_device.h"

/* ---- completions ---- */

static uint32_t device_poll(struct cw_verbs_device *base, enum cw_verbs_queue queue,
                            struct cw_verbs_completion *completions, uint32_t count_max)
{
    struct completions *list = &((struct sim_device *)base)->queues[queue];
    uint32_t count = list->count < count_max ? list->count : count_max;
    for (uint32_t i = 0; i < count; i++) {
        completions[i] = list->list[list->first];
        list->first = (list->first + 1) % list->room;
    }
    list->count -= count;
    return count;
}

static void device_arm(struct cw_verbs_device *base)
{
    (void)base; /* every completion has the node turned */
}

static bool device_has_failed(struct cw_verbs_device *base)
{
    const struct sim_device *device = (const struct sim_device *)base;
    return device->net->failures[device->node];
}

/* ---- what happens when ---- */

static void net_run(void *context)
{
    struct cw_verbs_net *net = context;
    uint64_t now_ns = sim_now(net);
    net->script_ns = UINT64_MAX;
    while (sim_due_of(&net->heap) <= now_ns) {
        sim_pair_run(net->heap.entries[0].object, now_ns);
    }
    while (sim_due_of(&net->datagrams) <= now_ns) {
        sim_datagram_run(cw_heap_remove(&net->datagrams, 0, false).object);
    }
    sim_schedule(net);
}

/* ---- memory ---- */

static int device_memory_register(struct cw_verbs_device *base, void *memory, uint64_t bytes, uint32_t rights,
                                  struct cw_verbs_memory *registered)
{
    struct sim_device *device = (struct sim_device *)base;
    for (uint32_t i = 0; i < MEMORIES_MAX; i++) {
        struct sim_memory *place = &device->memories[i];
        if (place->base == NULL) {
            uint32_t key = ((uint32_t)cw_random_next(&device->net->random) & ~(MEMORIES_MAX - 1u)) | i;
            uint64_t first = cw_random_below(&device->net->random, PAGE);
            *place = (struct sim_memory){.base = memory, .bytes = bytes, .rights = rights, .key = key, .first = first};
            *registered =
                (struct cw_verbs_memory){.handle = place, .local_key = key, .remote_key = key, .remote_base = first};
            return CW_OK;
        }
    }
    return CW_ERROR_LIMIT;
}

static void device_memory_unregister(struct cw_verbs_device *base, struct cw_verbs_memory *registered)
{
    struct sim_memory *memory = sim_memory_find((struct sim_device *)base, registered->local_key);
    if (memory != NULL) {
        *memory = (struct sim_memory){0};
    }
}

/* ---- devices ---- */

static uint32_t device_receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers, uint32_t count)
{
    struct sim_device *device = (struct sim_device *)base;
    uint32_t room = device->net->config.receive_max;
    uint32_t taken = 0;
    for (; taken < count && device->buffer_count < room; taken++) {
        device->buffers[(device->buffer_first + device->buffer_count++) % room] = buffers[taken];
    }
    return taken;
}

static void device_close(struct cw_verbs_device *base)
{
    struct sim_device *device = (struct sim_device *)base;
    if (device->net->devices[device->node] == device) {
        device->net->devices[device->node] = NULL;
    }
    sim_datagrams_drop(device);
    for (int queue = 0; queue < CW_VERBS_QUEUES; queue++) {
        free(device->queues[queue].list);
    }
    free(device->buffers);
    free(device);
}

static const struct cw_verbs_ops sim_ops = {
    .memory_register = device_memory_register,
    .memory_unregister = device_memory_unregister,
    .pair_create = sim_pair_create,
    .pair_connect = sim_pair_connect,
    .pair_break = sim_pair_break,
    .pair_destroy = sim_pair_destroy,
    .post = sim_pair_post,
    .receive_post = device_receive_post,
    .poll = device_poll,
    .group_join = sim_group_join,
    .group_leave = sim_group_leave,
    .group_is_joined = sim_group_is_joined,
    .datagram_post = sim_datagram_post,
    .datagram_receive_post = sim_datagram_receive_post,
    .arm = device_arm,
    .has_failed = device_has_failed,
    .close = device_close,
};

int cw_verbs_sim_open(struct cw_verbs_net *net, uint32_t node, struct cw_port *port,
                      const struct cw_verbs_sim_process *process, struct cw_verbs_device **opened)
{
    uint32_t nodes = cw_simulator_node_count(net->simulator), line = process != NULL ? process->line : node;
    if (node >= nodes || line >= nodes) {
        return CW_ERROR_ARGUMENT;
    }
    struct sim_device *device = calloc(1, sizeof(*device));
    struct cw_verbs_buffer *buffers = calloc(net->config.receive_max, sizeof(*buffers));
    if (device == NULL || buffers == NULL) {
        free(device);
        free(buffers);
        return CW_ERROR_MEMORY;
    }
    const struct cw_verbs_net_config *config = &net->config;
    device->base.ops = &sim_ops;
    device->base.info =
        (struct cw_verbs_info){.port = {.gid = {0xfe, 0x80}, .number = 1, .is_up = true, .mtu_bytes = MTU_BYTES},
                               .pair_count_max = PAIRS_MAX - 1,
                               .work_max = config->work_max,
                               .receive_max = config->receive_max,
                               .pieces_max = config->pieces_max,
                               .inline_max = config->inline_max,
                               .message_max = config->message_max,
                               .datagram_bytes = DATAGRAM_BYTES,
                               .descriptor = -1};
    snprintf(device->base.info.port.name, sizeof(device->base.info.port.name), "sim%u", node);
    memcpy(device->base.info.port.gid + 12, &node, sizeof(node));
    device->net = net;
    device->node = node;
    device->port = port;
    device->process = process != NULL ? *process : (struct cw_verbs_sim_process){0};
    device->line = &net->lines[line];
    device->buffers = buffers;
    net->devices[node] = device;
    net->failures[node] = false;
    *opened = &device->base;
    return CW_OK;
}

/* ---- the net ---- */

void cw_verbs_net_config_init(struct cw_verbs_net_config *config)
{
    *config = (struct cw_verbs_net_config){.seed = 1,
                                           .rate_bps = 100000000000ull,
                                           .delay_ns = 1000,
                                           .retry_ns = 4000000,
                                           .retry_max = 7,
                                           .work_max = 128,
                                           .receive_max = 4096,
                                           .pieces_max = CW_VERBS_PIECES_MAX,
                                           .inline_max = 220,
                                           .message_max = 1 << 20};
}

int cw_verbs_net_create(struct cw_simulator *simulator, const struct cw_verbs_net_config *config,
                        struct cw_verbs_net **created)
{
    struct cw_verbs_net *net = calloc(1, sizeof(*net));
    if (net == NULL) {
        return CW_ERROR_MEMORY;
    }
    uint32_t nodes = cw_simulator_node_count(simulator);
    net->simulator = simulator;
    net->config = *config;
    net->run = net_run;
    net->script_ns = UINT64_MAX;
    cw_random_seed(&net->random, config->seed);
    net->devices = calloc(nodes, sizeof(struct sim_device *));
    net->cuts = calloc(nodes, sizeof(*net->cuts));
    net->failures = calloc(nodes, sizeof(*net->failures));
    net->lines = calloc(nodes, sizeof(*net->lines));
    bool has_heap = cw_heap_init(&net->heap, nodes * nodes * 4);
    bool has_datagrams = cw_heap_init(&net->datagrams, DATAGRAMS_MAX);
    if (net->devices == NULL || net->cuts == NULL || net->failures == NULL || net->lines == NULL || !has_heap ||
        !has_datagrams) {
        cw_verbs_net_destroy(net);
        return CW_ERROR_MEMORY;
    }
    *created = net;
    return CW_OK;
}

void cw_verbs_net_destroy(struct cw_verbs_net *net)
{
    if (net == NULL) {
        return;
    }
    while (net->datagrams.count > 0) {
        free(cw_heap_remove(&net->datagrams, 0, false).object);
    }
    cw_heap_dispose(&net->datagrams);
    cw_heap_dispose(&net->heap);
    free(net->devices);
    free(net->cuts);
    free(net->failures);
    free(net->lines);
    free(net);
}

void cw_verbs_net_cut(struct cw_verbs_net *net, uint32_t node, bool cut)
{
    net->cuts[node] = cut;
}

void cw_verbs_net_fail(struct cw_verbs_net *net, uint32_t node)
{
    net->failures[node] = true;
}

void cw_verbs_net_heal(struct cw_verbs_net *net)
{
    memset(net->cuts, 0, cw_simulator_node_count(net->simulator) * sizeof(*net->cuts));
    net->config.break_before = net->config.break_after = net->config.datagram_loss = 0;
}

const struct cw_verbs_net_counters *cw_verbs_net_counters(const struct cw_verbs_net *net)
{
    return &net->counters;
}
