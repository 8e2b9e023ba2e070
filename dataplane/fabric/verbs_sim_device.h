/* Shared by the files of simulated RDMA devices.
 *
 *   verbs_sim.c          the net and its devices: completions, memory, events
 *   verbs_sim_pairs.c    queue pairs, and their work
 *   verbs_sim_groups.c   datagrams to groups */
#pragma once

#include "dataplane/base/random.h"
#include "dataplane/fabric/heap.h"
#include "dataplane/fabric/verbs_sim.h"

enum {
    PAGE = 4096,
    MTU_BYTES = 1024,
    DATAGRAM_BYTES = 4096, /* as ports of IP packets of 9,000 bytes have it */
    MEMORIES_MAX = 4096,
    PAIRS_MAX = 4096,
    WAIT_NS = 20000,       /* until an empty receive queue is polled again */
    DATAGRAMS_MAX = 65536, /* on their way */
};

struct sim_work {
    struct cw_verbs_work work;
    uint64_t bytes;
    uint64_t arrival_ns;
    uint64_t answer_ns;
    uint32_t tries;
    bool is_in;   /* it has taken the peer's line */
    bool is_back; /* the result of a read has passed the own line */
    enum cw_verbs_status status;
    uint8_t *data; /* inline bytes, or the result of a read; NULL: none */
};

struct sim_memory {
    uint8_t *base; /* NULL: free */
    uint64_t bytes;
    uint32_t rights;
    uint32_t key;
    uint64_t first; /* address of the first byte for peers: drawn, so that runs do not depend on where memory lies */
};

struct sim_device;

struct sim_pair {
    struct cw_verbs_pair base;
    struct sim_device *device;
    struct cw_verbs_address own;
    struct cw_verbs_address peer;
    bool is_connected;
    bool is_failing; /* work has failed, and its answer is on its way: nothing behind it gets there */
    bool is_broken;
    uint32_t heap_position;
    uint64_t last_arrival_ns;
    uint32_t posted, applied, answered; /* numbers: answered <= applied <= posted */
    struct sim_work work[];             /* by number modulo work_max */
};

struct completions {
    struct cw_verbs_completion *list;
    uint32_t first, count, room;
};

struct sim_group {
    uint8_t address[16];
    bool is_joined;
    uint64_t joined_ns; /* when the network has answered: from then on it receives and sends */
};

/* Until when a device's line is taken, in each direction. */
struct sim_line {
    uint64_t out_free_ns;
    uint64_t in_free_ns;
};

struct sim_device {
    struct cw_verbs_device base;
    struct cw_verbs_net *net;
    uint32_t node;
    struct cw_port *port;
    struct cw_verbs_sim_process process; /* no functions: this one */
    struct sim_line *line;
    struct sim_memory memories[MEMORIES_MAX];
    struct sim_pair *pairs[PAIRS_MAX]; /* by number; 0 is none */
    struct cw_verbs_buffer *buffers;   /* of the shared receive queue, a ring */
    uint32_t buffer_first, buffer_count;
    struct completions queues[CW_VERBS_QUEUES];
    struct sim_group groups[CW_VERBS_GROUPS_MAX];
    struct cw_verbs_buffer datagrams[CW_VERBS_DATAGRAMS_IN]; /* buffers for them, a ring */
    uint32_t datagram_first, datagram_count;
    uint32_t posted; /* own ones that have not left */
};

/* A datagram on its way to one device, or, with no bytes, its completion at its sender. */
struct sim_datagram {
    struct sim_device *device; /* NULL: closed meanwhile */
    uint32_t id;               /* of the sender's */
    uint32_t bytes;
    uint8_t address[16];
    uint8_t data[];
};

struct cw_verbs_net {
    struct cw_simulator *simulator;
    struct cw_verbs_net_config config;
    struct cw_random random;
    struct sim_device **devices; /* by node */
    bool *cuts;
    bool *failures;           /* devices that do nothing any more */
    struct sim_line *lines;   /* by node */
    struct cw_heap heap;      /* pairs, by the time of the next event */
    struct cw_heap datagrams; /* by their arrival */
    uint64_t sequence;
    void (*run)(void *net); /* carries out the events that are due; context of cw_simulator_at */
    uint64_t script_ns;     /* of the earliest call that the simulator was asked for */
    struct cw_verbs_net_counters counters;
};

static inline uint64_t sim_now(const struct cw_verbs_net *net)
{
    return cw_simulator_now(net->simulator);
}

static inline bool sim_is_cut(const struct cw_verbs_net *net, uint32_t node)
{
    return net->cuts[node] || net->failures[node] || cw_simulator_link_up(net->simulator, node)->down;
}

/* ---- verbs_sim_device.c ---- */

void sim_complete(struct sim_device *device, enum cw_verbs_queue queue, const struct cw_verbs_completion *completion);
/* Has the simulator call net->run at the time of the next event. */
void sim_schedule(struct cw_verbs_net *net);
/* Of the first entry; UINT64_MAX: there is none. */
uint64_t sim_due_of(const struct cw_heap *heap);
struct sim_memory *sim_memory_find(struct sim_device *device, uint32_t key);
/* The time at which `bytes` that a device sends now have left, which occupies its line for them and their headers. */
uint64_t sim_line_reserve(struct sim_device *device, uint64_t bytes);
/* The same at the receiver, where their last bit could come now. */
uint64_t sim_line_reserve_in(struct sim_device *device, uint64_t bytes);
/* Copies from, or to, the memory of the device's user. */
void sim_copy_from(const struct sim_device *device, void *to, const void *there, uint64_t bytes);
void sim_copy_to(const struct sim_device *device, void *there, const void *from, uint64_t bytes);

/* ---- verbs_sim_pairs.c ---- */

/* A pair's next event is due. */
void sim_pair_run(struct sim_pair *pair, uint64_t now_ns);
int sim_pair_create(struct cw_verbs_device *base, struct cw_verbs_pair **created, struct cw_verbs_address *address);
int sim_pair_connect(struct cw_verbs_pair *base, const struct cw_verbs_address *peer);
void sim_pair_break(struct cw_verbs_pair *base);
void sim_pair_destroy(struct cw_verbs_pair *base);
uint32_t sim_pair_post(struct cw_verbs_pair *base, const struct cw_verbs_work *list, uint32_t count);

/* ---- verbs_sim_groups.c ---- */

void sim_datagram_run(struct sim_datagram *datagram);
/* Datagrams in flight to a device that closes are dropped. */
void sim_datagrams_drop(struct sim_device *device);
int sim_group_join(struct cw_verbs_device *base, const uint8_t address[16], uint32_t *group);
bool sim_group_is_joined(struct cw_verbs_device *base, uint32_t group);
void sim_group_leave(struct cw_verbs_device *base, uint32_t group);
bool sim_datagram_post(struct cw_verbs_device *base, uint32_t group, const struct cw_verbs_buffer *datagram);
uint32_t sim_datagram_receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers, uint32_t count);
