/* Several queue pairs of one device, over memif between two processes: a packet by any queue reaches the owner with the
 * endpoint that claimed its UDP port, once, in the order of the queue it was sent by, and though it sleeps. */
#include "tests/unit/dataplane/ethdev_testing.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    QUEUES = 3,
    ROUNDS = 200,
    FRAMES = 120, /* of a round, by each queue: all of them have room in the ring from one owner to another */
    KINDS = 9,
    PORT_STEP = 10,
    FIRST_PORT = 2000,
    FRAME_BYTES = 100,
};

/* Queue I claims I + 1 ports from 2000 + 10 * I on. */
static void claim(struct cw_port *port, uint32_t queue)
{
    const struct cw_port_claim claim = {.ip = cw_ip_v4(0x0a000001),
                                        .udp_port = (uint16_t)(FIRST_PORT + queue * PORT_STEP),
                                        .udp_port_count = (uint16_t)(queue + 1)};
    cw_port_claim(port, &claim);
}

/* The kind of a frame, by its number: UDP to a claimed port, to an unclaimed one, to a group at a claimed port, or
 * none. */
static uint32_t owner_of(uint32_t number)
{
    uint32_t kind = number % KINDS;
    return kind < 6 ? (kind == 0 ? 0 : kind < 3 ? 1 : 2) : 0;
}

static uint32_t udp_port_of(uint32_t number)
{
    static const uint16_t ports[KINDS] = {FIRST_PORT,
                                          FIRST_PORT + PORT_STEP,
                                          FIRST_PORT + PORT_STEP + 1,
                                          FIRST_PORT + 2 * PORT_STEP,
                                          FIRST_PORT + 2 * PORT_STEP + 1,
                                          FIRST_PORT + 2 * PORT_STEP + 2,
                                          FIRST_PORT + 2 * PORT_STEP + 3, /* nobody's: one beyond the last */
                                          FIRST_PORT + 2 * PORT_STEP,     /* of a group */
                                          FIRST_PORT + PORT_STEP};        /* TCP */
    return ports[number % KINDS];
}

static void frame_make(uint8_t *data, uint32_t number, uint32_t queue)
{
    bool is_v6 = number / KINDS % 2 == 1;
    uint32_t kind = number % KINDS, transport = 14 + (is_v6 ? 40u : 20u);
    memset(data, 0, FRAME_BYTES);
    data[0] = kind == 7 ? 3 : 2;
    data[12] = is_v6 ? 0x86 : 0x08;
    data[13] = is_v6 ? 0xdd : 0;
    data[14] = is_v6 ? 0x60 : 0x45;
    data[is_v6 ? 20 : 23] = kind == 8 ? IPPROTO_TCP : IPPROTO_UDP;
    data[transport + 2] = (uint8_t)(udp_port_of(number) >> 8);
    data[transport + 3] = (uint8_t)udp_port_of(number);
    memcpy(data + FRAME_BYTES - 8, &number, sizeof(number));
    memcpy(data + FRAME_BYTES - 4, &queue, sizeof(queue));
}

/* ---- the side that receives: a thread for each queue ---- */

struct rounds {
    struct cw_port *ports[QUEUES];
    _Atomic uint32_t done[ROUNDS]; /* receivers that have all of theirs */
    int descriptor;
};

struct receiver {
    pthread_t thread;
    struct rounds *rounds;
    uint32_t queue;
};

static void frame_check_owned(const struct receiver *receiver, const struct cw_received *packet, uint32_t *next)
{
    uint32_t number, queue;
    uint8_t expected[FRAME_BYTES];
    CHECK(packet->length == FRAME_BYTES);
    memcpy(&number, packet->data + FRAME_BYTES - 8, sizeof(number));
    memcpy(&queue, packet->data + FRAME_BYTES - 4, sizeof(queue));
    frame_make(expected, number, queue);
    CHECK(queue < QUEUES && memcmp(packet->data, expected, FRAME_BYTES) == 0);
    CHECK(owner_of(number) == receiver->queue);
    CHECK(number >= next[queue]); /* once, and in order; the count says that none is missing */
    next[queue] = number + 1;
}

/* Frames of a round that are for a queue. */
static uint32_t expected_of(uint32_t queue, uint32_t round)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FRAMES; i++) {
        count += owner_of(round * FRAMES + i) == queue ? QUEUES : 0;
    }
    return count;
}

/* This one has all of a round. The last to have it asks for the next one, or ends the others' sleep. */
static void round_note(struct rounds *rounds, uint32_t round)
{
    if (atomic_fetch_add(&rounds->done[round], 1) + 1 < QUEUES) {
        return;
    }
    pair_signal(rounds->descriptor);
    for (uint32_t i = 0; i < QUEUES && round + 1 == ROUNDS; i++) {
        cw_port_wake(rounds->ports[i]);
    }
}

/* An owner with all its packets continues to poll: its queue also has packets of others. */
static void *receive(void *argument)
{
    const struct receiver *receiver = argument;
    struct rounds *rounds = receiver->rounds;
    struct cw_port *port = rounds->ports[receiver->queue];
    uint32_t next[QUEUES] = {0}, round = 0, received = 0, wanted = expected_of(receiver->queue, 0);
    while (atomic_load(&rounds->done[ROUNDS - 1]) < QUEUES) {
        struct cw_received packets[32];
        uint32_t count = cw_port_receive(port, packets, 32);
        for (uint32_t i = 0; i < count; i++) {
            frame_check_owned(receiver, &packets[i], next);
        }
        cw_port_release(port, packets, count);
        received += count;
        CHECK(received <= wanted);
        if (count == 0) {
            cw_port_sleep(port, NS_PER_HOUR); /* a wake-up that is lost hangs the case */
        } else if (received == wanted) {
            uint32_t done = round++;
            wanted += round < ROUNDS ? expected_of(receiver->queue, round) : 0;
            round_note(rounds, done);
        }
    }
    return NULL;
}

static void case_server(int descriptor, const void *argument)
{
    static struct rounds rounds;
    struct receiver receivers[QUEUES];
    struct cw_port *first = memif_open(argument, true);
    CHECK(cw_port_ethdev_queue(first, 0) == first && cw_port_ethdev_queue(first, QUEUES) == NULL);
    pair_signal(descriptor);
    link_wait(first, true);
    rounds.descriptor = descriptor;
    for (uint32_t i = 0; i < QUEUES; i++) {
        receivers[i] = (struct receiver){.rounds = &rounds, .queue = i};
        rounds.ports[i] = cw_port_ethdev_queue(first, i);
        claim(rounds.ports[i], i);
    }
    pair_signal(descriptor);
    for (uint32_t i = 0; i < QUEUES; i++) {
        CHECK(pthread_create(&receivers[i].thread, NULL, receive, &receivers[i]) == 0);
    }
    for (uint32_t i = 0; i < QUEUES; i++) {
        pthread_join(receivers[i].thread, NULL);
        CHECK(cw_port_ethdev_dropped(rounds.ports[i]) == 0);
    }
    pair_wait(descriptor);
    cw_port_close(rounds.ports[1]); /* in whatever order */
    cw_port_close(rounds.ports[0]);
    cw_port_close(rounds.ports[2]);
}

/* ---- the side that sends ---- */

static void send_one(struct cw_port *port, uint32_t number, uint32_t queue)
{
    struct cw_transmit packet;
    while (cw_port_reserve(port, &packet, 1) == 0) {
    }
    frame_make(packet.data, number, queue);
    packet.length = FRAME_BYTES;
    while (cw_port_transmit(port, &packet, 1) == 0) {
    }
}

static void case_client(int descriptor, const void *argument)
{
    pair_wait(descriptor);
    struct cw_port *first = memif_open(argument, false);
    link_wait(first, true);
    pair_wait(descriptor);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < FRAMES; i++) {
            for (uint32_t queue = 0; queue < QUEUES; queue++) {
                send_one(cw_port_ethdev_queue(first, queue), round * FRAMES + i, queue);
            }
        }
        pair_wait(descriptor);
    }
    pair_signal(descriptor);
    for (uint32_t i = QUEUES; i-- > 0;) {
        cw_port_close(cw_port_ethdev_queue(first, i));
    }
}

static void test_who_has_claimed_it_gets_it(void **state)
{
    for (int bell = 0; bell < 2; bell++) {
        struct memif pair = memif_of(1500, bell == 1);
        pair.queue_count = QUEUES;
        memif_run_pair(case_server, case_client, pair);
    }
}

/* ---- how many there are ---- */

static uint32_t queues_of(struct cw_port *first)
{
    uint32_t count = 0;
    while (cw_port_ethdev_queue(first, count) != NULL) {
        count++;
    }
    return count;
}

static void case_as_many_as_there_are(int descriptor, const void *argument)
{
    static const uint32_t asked[] = {0, 1, 2, 1000}, got[] = {1, 1, 2, CW_PORT_ETHDEV_QUEUES_MAX};
    for (uint32_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct memif pair = *(const struct memif *)argument;
        pair.queue_count = asked[i];
        struct cw_port *first = memif_open(&pair, true);
        CHECK(queues_of(first) == got[i]);
        for (uint32_t left = got[i]; left > 0; left--) { /* each open has closed all before it: the name is free */
            cw_port_close(cw_port_ethdev_queue(first, left - 1));
        }
    }
}

MEMIF_TEST(as_many_as_there_are)

int main(void)
{
    return TESTS_RUN(test_who_has_claimed_it_gets_it, test_as_many_as_there_are);
}
