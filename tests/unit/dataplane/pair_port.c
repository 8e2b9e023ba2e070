#include "tests/unit/dataplane/pair_port.h"

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/status.h"

/* A loop that has no deadline sleeps this long and looks again, which would heal a lost wake-up: here it sleeps on. */
#define LOOK_NS    UINT64_C(500000000)
#define FOREVER_NS UINT64_C(3600000000000)

enum { QUEUE = 256, FRAME_BYTES = 14 + 1500, SIDES_MAX = 3 };

struct pair_frame {
    uint32_t length;
    uint8_t bytes[FRAME_BYTES];
};

/* Frames on their way to one side, and the condition for its sleep. */
struct pair_side {
    struct pair_frame *queue[QUEUE];
    uint32_t head;
    uint32_t tail;
    bool woken;
    bool armed;
    int descriptor;           /* an eventfd, which a packet makes readable if the side is armed */
    _Atomic uint32_t changed; /* counts what might end a sleep */
};

struct pair {
    pthread_mutex_t lock;
    struct pair_side sides[SIDES_MAX];
    uint32_t side_count;
    uint32_t open;
};

struct pair_port {
    struct cw_port port;
    struct pair *pair;
    uint32_t side;
    uint32_t sent;
    atomic_uint lose_one_in;
};

static struct pair_port *pair_of(struct cw_port *port)
{
    return (struct pair_port *)port;
}

static void side_change(struct pair_side *side)
{
    atomic_fetch_add(&side->changed, 1);
    syscall(SYS_futex, &side->changed, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* As side_change, for a packet. */
static void side_arrive(struct pair_side *side)
{
    const uint64_t one = 1;
    if (side->armed) {
        ssize_t written = write(side->descriptor, &one, sizeof(one));
        assert(written == sizeof(one));
        (void)written;
    }
    side_change(side);
}

static uint32_t pair_receive(struct cw_port *port, struct cw_received *packets, uint32_t count_max)
{
    struct pair *pair = pair_of(port)->pair;
    struct pair_side *side = &pair->sides[pair_of(port)->side];
    pthread_mutex_lock(&pair->lock);
    uint32_t count = 0;
    while (count < count_max && side->tail != side->head) {
        struct pair_frame *frame = side->queue[side->tail++ % QUEUE];
        packets[count++] = (struct cw_received){.data = frame->bytes, .length = frame->length, .handle = frame};
    }
    pthread_mutex_unlock(&pair->lock);
    return count;
}

static void pair_release(struct cw_port *port, struct cw_received *packets, uint32_t count)
{
    (void)port;
    for (uint32_t i = 0; i < count; i++) {
        free(packets[i].handle);
    }
}

static uint32_t pair_reserve(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    (void)port;
    for (uint32_t i = 0; i < count; i++) {
        struct pair_frame *frame = malloc(sizeof(*frame));
        assert(frame != NULL);
        packets[i] = (struct cw_transmit){.data = frame->bytes, .handle = frame};
    }
    return count;
}

/* By the last byte of the destination's MAC address; the first other side, if none has it. */
static struct pair_side *target(const struct pair_port *own, const struct pair_frame *frame)
{
    struct pair *pair = own->pair;
    uint32_t side = (uint32_t)frame->bytes[5] - 1;
    return &pair->sides[side < pair->side_count && side != own->side ? side : own->side == 0];
}

static uint32_t pair_transmit(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    struct pair_port *own = pair_of(port);
    struct pair *pair = own->pair;
    uint32_t one_in = atomic_load(&own->lose_one_in);
    pthread_mutex_lock(&pair->lock);
    uint32_t taken = 0;
    for (; taken < count; taken++) {
        struct pair_frame *frame = packets[taken].handle;
        struct pair_side *other = target(own, frame);
        if (other->head - other->tail == QUEUE) {
            if (pair->side_count == 2) {
                break;
            }
            free(frame); /* one that does not look holds up no other */
            continue;
        }
        frame->length = packets[taken].length;
        if (one_in != 0 && ++own->sent % one_in == 0) {
            free(frame);
            continue;
        }
        other->queue[other->head++ % QUEUE] = frame;
        side_arrive(other);
    }
    pthread_mutex_unlock(&pair->lock);
    return taken;
}

static void pair_cancel(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    (void)port;
    for (uint32_t i = 0; i < count; i++) {
        free(packets[i].handle);
    }
}

static int pair_group(struct cw_port *port, const uint8_t mac[6])
{
    (void)port;
    (void)mac;
    return CW_ERROR_UNSUPPORTED;
}

static int pair_memory_register(struct cw_port *port, void *base, size_t bytes, struct cw_port_memory **memory)
{
    (void)port;
    (void)base;
    (void)bytes;
    (void)memory;
    return CW_ERROR_UNSUPPORTED;
}

static int pair_memory_unregister(struct cw_port *port, struct cw_port_memory *memory)
{
    (void)port;
    (void)memory;
    return CW_OK;
}

static bool pair_link_up(struct cw_port *port)
{
    return pair_of(port)->pair->open == pair_of(port)->pair->side_count;
}

static void pair_sleep(struct cw_port *port, uint64_t timeout_ns)
{
    static const struct cw_word none;
    struct pair *pair = pair_of(port)->pair;
    struct pair_side *side = &pair->sides[pair_of(port)->side];
    pthread_mutex_lock(&pair->lock);
    struct cw_word word = {.at = &side->changed, .value = atomic_load(&side->changed), .is_private = true};
    bool sleeps = !side->woken && side->head == side->tail;
    side->woken = false;
    pthread_mutex_unlock(&pair->lock);
    if (sleeps) {
        uint64_t sleep_ns = timeout_ns < LOOK_NS ? timeout_ns : FOREVER_NS;
        cw_words_wait(&word, port->alarm == NULL ? &none : &port->alarm->word, sleep_ns);
    }
}

static void pair_wake(struct cw_port *port)
{
    struct pair *pair = pair_of(port)->pair;
    struct pair_side *side = &pair->sides[pair_of(port)->side];
    pthread_mutex_lock(&pair->lock);
    side->woken = true;
    side_change(side);
    pthread_mutex_unlock(&pair->lock);
}

static void pair_close(struct cw_port *port)
{
    struct pair_port *own = pair_of(port);
    struct pair *pair = own->pair;
    pthread_mutex_lock(&pair->lock);
    bool last = --pair->open == 0;
    pthread_mutex_unlock(&pair->lock);
    if (last) {
        for (uint32_t i = 0; i < pair->side_count; i++) {
            struct pair_side *side = &pair->sides[i];
            while (side->tail != side->head) {
                free(side->queue[side->tail++ % QUEUE]);
            }
            close(side->descriptor);
        }
        pthread_mutex_destroy(&pair->lock);
        free(pair);
    }
    free(own);
}

static int pair_descriptor(struct cw_port *port)
{
    return pair_of(port)->pair->sides[pair_of(port)->side].descriptor;
}

static bool pair_arm(struct cw_port *port)
{
    struct pair *pair = pair_of(port)->pair;
    struct pair_side *side = &pair->sides[pair_of(port)->side];
    pthread_mutex_lock(&pair->lock);
    side->armed = true;
    bool has_packets = side->head != side->tail;
    pthread_mutex_unlock(&pair->lock);
    return has_packets;
}

static void pair_disarm(struct cw_port *port)
{
    struct pair *pair = pair_of(port)->pair;
    struct pair_side *side = &pair->sides[pair_of(port)->side];
    uint64_t packets;
    pthread_mutex_lock(&pair->lock);
    side->armed = false;
    (void)!read(side->descriptor, &packets, sizeof(packets));
    pthread_mutex_unlock(&pair->lock);
}

static const struct cw_port_ops operations = {
    .receive = pair_receive,
    .release = pair_release,
    .reserve = pair_reserve,
    .transmit = pair_transmit,
    .cancel = pair_cancel,
    .join = pair_group,
    .leave = pair_group,
    .memory_register = pair_memory_register,
    .memory_unregister = pair_memory_unregister,
    .link_up = pair_link_up,
    .sleep = pair_sleep,
    .wake = pair_wake,
    .close = pair_close,
    .descriptor = pair_descriptor,
    .arm = pair_arm,
    .disarm = pair_disarm,
};

void pair_port_open(struct cw_port *ports[2])
{
    pair_ports_open(ports, 2);
}

void pair_ports_open(struct cw_port **ports, uint32_t count)
{
    assert(count >= 2 && count <= SIDES_MAX);
    struct pair *pair = calloc(1, sizeof(*pair));
    assert(pair != NULL);
    pthread_mutex_init(&pair->lock, NULL);
    pair->open = pair->side_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct pair_port *port = calloc(1, sizeof(*port));
        assert(port != NULL);
        port->port.ops = &operations;
        port->port.info.mtu_bytes = 1500;
        port->port.info.wait = CW_PORT_WAIT_DOORBELL;
        port->port.info.alarms = true;
        port->port.info.mac[0] = 2;
        port->port.info.mac[5] = (uint8_t)(1 + i);
        port->pair = pair;
        port->side = i;
        pair->sides[i].descriptor = eventfd(0, EFD_NONBLOCK);
        assert(pair->sides[i].descriptor >= 0);
        ports[i] = &port->port;
    }
}

void pair_port_lose(struct cw_port *port, uint32_t one_in)
{
    atomic_store(&pair_of(port)->lose_one_in, one_in);
}
