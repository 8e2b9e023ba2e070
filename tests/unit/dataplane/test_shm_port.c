/* Shared-memory port: frames both ways, buffers kept and given back in any order, servers that come and go, sleep and
 * wake, groups; and a client that writes nonsense. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "dataplane/base/random.h"
#include "dataplane/port/shm_port_private.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { MTU = 1500, FRAME_MAX = 14 + MTU, TEXT_BYTES = 256, ROUNDS = 20000, WAKES = 20000 };
#define NS_PER_HOUR UINT64_C(3600000000000) /* a lost wake-up hangs until the test's timeout */

static struct cw_port *client_make(uint32_t frames)
{
    const struct cw_shm_port_config config = {.mac = {2, 0, 0, 0, 0, 1}, .mtu_bytes = MTU, .frames = frames};
    char error[TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    int status = cw_shm_port_create(&config, &port, error, sizeof(error));
    assert_true_msg(status == CW_OK, "%d: %s", status, error);
    return port;
}

static struct cw_shm_port *server_make(const struct cw_port *port)
{
    char error[TEXT_BYTES] = "";
    struct cw_shm_port *shm_port = NULL;
    int status = cw_shm_port_open(cw_shm_port_memory(port), MTU, &shm_port, error, sizeof(error));
    assert_true_msg(status == CW_OK, "%d: %s", status, error);
    return shm_port;
}

/* Of a number that a frame carries; the rest follows from it. */
static uint32_t frame_write(uint8_t *data, uint32_t number)
{
    struct cw_random random;
    cw_random_seed(&random, number);
    uint32_t length = 4 + (uint32_t)cw_random_below(&random, FRAME_MAX - 3);
    memset(data, (int)(number * 31), length);
    memcpy(data, &number, sizeof(number));
    return length;
}

static void frame_check(const uint8_t *data, uint32_t length, uint32_t number)
{
    uint8_t expected[FRAME_MAX];
    assert_int_equal(length, frame_write(expected, number));
    assert_memory_equal(data, expected, length);
}

static bool deliver(struct cw_shm_port *server, const uint8_t *data, uint32_t length)
{
    return cw_shm_port_send(server, &(struct cw_received){.data = data, .length = length});
}

/* ---- both ways ---- */

struct world {
    struct cw_port *client;
    struct cw_shm_port *server;
    struct cw_random random;
    uint32_t sent, served;    /* frames of the client, and those that the server has accepted */
    uint32_t given, received; /* of the server */
    struct cw_received held[CW_PORT_BURST_MAX];
    uint32_t held_count;
};

static void client_send(struct world *world)
{
    struct cw_transmit packets[CW_PORT_BURST_MAX];
    uint32_t wanted = (uint32_t)cw_random_below(&world->random, 9);
    uint32_t count = cw_port_reserve(world->client, packets, wanted);
    uint32_t kept = (uint32_t)cw_random_below(&world->random, count + 1);
    for (uint32_t i = 0; i < kept; i++) {
        packets[i].length = frame_write(packets[i].data, world->sent + i);
    }
    assert_int_equal(cw_port_transmit(world->client, packets, kept), kept);
    cw_port_cancel(world->client, packets + kept, count - kept);
    world->sent += kept;
}

static void server_receive(struct world *world)
{
    struct cw_shm_port_frame frames[CW_PORT_BURST_MAX];
    uint32_t count =
        cw_shm_port_receive(world->server, frames, (uint32_t)cw_random_below(&world->random, CW_PORT_BURST_MAX));
    uint32_t used = (uint32_t)cw_random_below(&world->random, count + 1);
    for (uint32_t i = 0; i < used; i++) {
        frame_check(frames[i].data, frames[i].length, world->served++);
    }
    cw_shm_port_consume(world->server, used);
    cw_shm_port_flush(world->server); /* else its successor, should it be killed now, would take them again */
}

static void server_send(struct world *world)
{
    uint8_t data[FRAME_MAX];
    for (uint64_t i = cw_random_below(&world->random, 9); i > 0; i--) {
        uint32_t length = frame_write(data, world->given);
        if (!deliver(world->server, data, length)) {
            break;
        }
        world->given++;
    }
    cw_shm_port_flush(world->server);
}

/* Buffers go back in any order, some of them late. */
static void client_receive(struct world *world)
{
    uint32_t room = CW_PORT_BURST_MAX - world->held_count;
    uint32_t count = cw_port_receive(world->client, world->held + world->held_count,
                                     (uint32_t)cw_random_below(&world->random, room + 1));
    for (uint32_t i = 0; i < count; i++) {
        frame_check(world->held[world->held_count].data, world->held[world->held_count].length, world->received++);
        world->held_count++;
    }
    while (world->held_count > 0 && cw_random_below(&world->random, 4) != 0) {
        uint32_t at = (uint32_t)cw_random_below(&world->random, world->held_count);
        cw_port_release(world->client, &world->held[at], 1);
        world->held[at] = world->held[--world->held_count];
    }
}

/* Another server continues in place of its predecessor, with the contents of the rings. */
static void server_replace(struct world *world)
{
    cw_shm_port_close(world->server);
    cw_shm_port_disconnect(world->client);
    assert_false(cw_port_link_up(world->client));
    world->server = server_make(world->client);
    cw_shm_port_connect(world->client, open("/dev/null", O_WRONLY | O_CLOEXEC));
    assert_true(cw_port_link_up(world->client));
}

static void test_both_ways(void **state)
{
    for (uint32_t frames = 1; frames <= 128; frames *= 2) {
        struct world world = {.client = client_make(frames)};
        cw_random_seed(&world.random, frames);
        world.server = server_make(world.client);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            static void (*const steps[])(struct world *) = {client_send, server_receive, server_send, client_receive};
            steps[cw_random_below(&world.random, 4)](&world);
            if (round % 1000 == 999) {
                server_replace(&world);
            }
        }
        assert_true(world.served > ROUNDS / 100 && world.received > ROUNDS / 100);
        assert_false(cw_shm_port_is_broken(world.server));
        cw_port_release(world.client, world.held, world.held_count);
        cw_shm_port_close(world.server);
        cw_port_close(world.client);
    }
}

/* ---- sleep ---- */

static void *server_echo(void *context)
{
    struct world *world = context;
    uint64_t rings;
    for (uint32_t count = 0; count < WAKES;) {
        struct cw_shm_port_frame frame;
        uint8_t copy[FRAME_MAX];
        if (cw_shm_port_receive(world->server, &frame, 1) == 0) {
            if (!cw_shm_port_arm(world->server)) {
                assert_true(read((int)world->sent, &rings, sizeof(rings)) > 0); /* for ever */
            }
            cw_shm_port_disarm(world->server);
            continue;
        }
        memcpy(copy, frame.data, frame.length);
        cw_shm_port_consume(world->server, 1);
        assert_true(deliver(world->server, copy, frame.length));
        cw_shm_port_flush(world->server);
        count++;
    }
    return NULL;
}

/* Each sleeps until the other one has sent. */
static void test_sleep(void **state)
{
    struct world world = {.client = client_make(16)};
    pthread_t thread;
    world.server = server_make(world.client);
    world.sent = (uint32_t)eventfd(0, EFD_CLOEXEC);
    cw_shm_port_connect(world.client, dup((int)world.sent));
    assert_int_equal(pthread_create(&thread, NULL, server_echo, &world), 0);
    for (uint32_t number = 0; number < WAKES; number++) {
        struct cw_transmit packet;
        struct cw_received got;
        assert_int_equal(cw_port_reserve(world.client, &packet, 1), 1);
        packet.length = frame_write(packet.data, number);
        cw_port_transmit(world.client, &packet, 1);
        while (cw_port_receive(world.client, &got, 1) == 0) {
            cw_port_sleep(world.client, NS_PER_HOUR);
        }
        frame_check(got.data, got.length, number);
        cw_port_release(world.client, &got, 1);
    }
    pthread_join(thread, NULL);
    cw_port_wake(world.client);
    cw_port_sleep(world.client, NS_PER_HOUR); /* it was woken before */
    cw_shm_port_close(world.server);
    cw_port_close(world.client);
    close((int)world.sent);
}

/* ---- groups ---- */

static void test_groups(void **state)
{
    struct cw_port *client = client_make(16);
    struct cw_shm_port *server = server_make(client);
    uint8_t mac[6] = {1, 0, 0x5e, 0, 0, 0}, groups[CW_SHM_PORT_GROUPS_MAX][6];
    uint32_t version = UINT32_MAX;
    assert_int_equal(cw_shm_port_groups(server, &version, groups), 0);
    assert_int_equal(cw_shm_port_groups(server, &version, groups), UINT32_MAX); /* as before */
    assert_int_equal(cw_port_leave(client, mac), CW_ERROR_NOT_FOUND);
    for (uint8_t i = 0; i < CW_SHM_PORT_GROUPS_MAX; i++) {
        mac[5] = i;
        assert_int_equal(cw_port_join(client, mac), CW_OK);
    }
    assert_int_equal(cw_port_join(client, mac), CW_OK); /* twice */
    mac[5] = CW_SHM_PORT_GROUPS_MAX;
    assert_int_equal(cw_port_join(client, mac), CW_ERROR_LIMIT);
    assert_int_equal(cw_shm_port_groups(server, &version, groups), CW_SHM_PORT_GROUPS_MAX);
    mac[5] = CW_SHM_PORT_GROUPS_MAX - 1;
    assert_int_equal(cw_port_leave(client, mac), CW_OK);
    assert_int_equal(cw_shm_port_groups(server, &version, groups), UINT32_MAX); /* once it is left as well as joined */
    mac[5] = 0;
    assert_int_equal(cw_port_leave(client, mac), CW_OK);
    assert_int_equal(cw_shm_port_groups(server, &version, groups), CW_SHM_PORT_GROUPS_MAX - 1);
    for (uint32_t i = 0; i < CW_SHM_PORT_GROUPS_MAX - 1; i++) {
        assert_memory_not_equal(groups[i], mac, 6);
    }
    cw_shm_port_close(server);
    cw_port_close(client);
}

/* ---- nonsense ---- */

/* For any contents of the client's memory, the server reads and writes nothing beyond it (the sanitizer and the guard
 * pages see that), and a frame that it accepts has a valid length. */
static void test_nonsense(void **state)
{
    uint64_t broken = 0, sound = 0;
    struct cw_random random;
    cw_random_seed(&random, 7);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct cw_port *client = client_make(8);
        struct cw_shm_port *server = server_make(client);
        const struct shm_port_layout layout = shm_port_layout(8, shm_port_buffer_bytes(MTU));
        uint8_t *memory = mmap(NULL, layout.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, cw_shm_port_memory(client), 0);
        assert_ptr_not_equal(memory, MAP_FAILED);
        for (uint64_t wounds = 1 + cw_random_below(&random, 8); wounds > 0; wounds--) {
            static const uint32_t values[] = {0, 1, 7, 8, 9, 60, FRAME_MAX, FRAME_MAX + 1, 65536, UINT32_MAX};
            uint32_t value = cw_random_below(&random, 3) == 0
                                 ? (uint32_t)cw_random_next(&random)
                                 : values[cw_random_below(&random, sizeof(values) / sizeof(values[0]))];
            size_t at =
                cw_random_below(&random, 2) == 0
                    ? (size_t)cw_random_below(&random, sizeof(struct shm_port_shared) / 4)
                    : SHM_PORT_PAGE / 4 + (size_t)cw_random_below(&random, (layout.buffers - SHM_PORT_PAGE) / 4);
            memcpy(memory + 4 * at, &value, sizeof(value));
        }
        for (uint32_t i = 0; i < 24; i++) {
            struct cw_shm_port_frame frames[8];
            uint8_t data[FRAME_MAX + 1] = {0}, groups[CW_SHM_PORT_GROUPS_MAX][6];
            uint32_t version = UINT32_MAX, sum = 0;
            uint32_t count = cw_shm_port_receive(server, frames, 8);
            for (uint32_t k = 0; k < count; k++) {
                assert_in_range(frames[k].length, 1, FRAME_MAX);
                for (uint32_t b = 0; b < frames[k].length; b++) {
                    sum += frames[k].data[b];
                }
            }
            data[0] = (uint8_t)sum;
            cw_shm_port_consume(server, count);
            (void)deliver(server, data, i % 2 == 0 ? FRAME_MAX : 60);
            assert_false(deliver(server, data, FRAME_MAX + 1));
            cw_shm_port_flush(server);
            (void)cw_shm_port_groups(server, &version, groups);
            (void)cw_shm_port_arm(server);
            cw_shm_port_disarm(server);
        }
        broken += cw_shm_port_is_broken(server);
        sound += !cw_shm_port_is_broken(server);
        munmap(memory, layout.bytes);
        cw_shm_port_close(server);
        cw_port_close(client);
    }
    print_message("%llu of %d broken\n", (unsigned long long)broken, ROUNDS);
    assert_true(broken > ROUNDS / 50 && sound > ROUNDS / 50);
}

enum { FIXED = F_SEAL_SHRINK | F_SEAL_GROW };

static int memory_like(const struct shm_port_shared *head, size_t bytes, int seals)
{
    int memory = memfd_create("shm_port", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(memory >= 0);
    assert_int_equal(posix_fallocate(memory, 0, (off_t)bytes), 0);
    assert_int_equal(pwrite(memory, head, sizeof(*head), 0), sizeof(*head));
    assert_int_equal(fcntl(memory, F_ADD_SEALS, seals), 0);
    return memory;
}

static void test_rejected(void **state)
{
    const struct shm_port_shared sound = {.magic = SHM_PORT_MAGIC,
                                          .version = CW_SHM_PORT_VERSION,
                                          .frames = 8,
                                          .buffer_bytes = shm_port_buffer_bytes(MTU),
                                          .mtu_bytes = MTU};
    const size_t bytes = shm_port_layout(8, sound.buffer_bytes).bytes;
    struct {
        const char *what;
        struct shm_port_shared head;
        size_t bytes;
        int seals;
        int status;
    } rows[] = {
        {"sound", sound, bytes, FIXED, CW_OK},
        {"may shrink", sound, bytes, F_SEAL_GROW, CW_ERROR_ARGUMENT},
        {"short", sound, bytes - 1, FIXED, CW_ERROR_ARGUMENT},
        {"magic", sound, bytes, FIXED, CW_ERROR_ARGUMENT},
        {"version", sound, bytes, FIXED, CW_ERROR_UNSUPPORTED},
        {"frames", sound, bytes, FIXED, CW_ERROR_ARGUMENT},
        {"many frames", sound, bytes, FIXED, CW_ERROR_ARGUMENT},
        {"buffers", sound, bytes, FIXED, CW_ERROR_ARGUMENT},
        {"MTU", sound, bytes, FIXED, CW_ERROR_ARGUMENT},
        {"may grow", sound, bytes, F_SEAL_SHRINK, CW_ERROR_ARGUMENT},
        {"long", sound, bytes + 1, FIXED, CW_ERROR_ARGUMENT},
    };
    rows[3].head.magic++;
    rows[4].head.version++;
    rows[5].head.frames = 7;
    rows[6].head.frames = 2 * CW_SHM_PORT_FRAMES_MAX;
    rows[7].head.buffer_bytes *= 2;
    rows[8].head.mtu_bytes--;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_shm_port *shm_port = NULL;
        char error[TEXT_BYTES] = "";
        int memory = memory_like(&rows[i].head, rows[i].bytes, rows[i].seals);
        int status = cw_shm_port_open(memory, MTU, &shm_port, error, sizeof(error));
        assert_true_msg(status == rows[i].status && (status != CW_OK) == (error[0] != 0), "%s: %d: %s", rows[i].what,
                        status, error);
        cw_shm_port_close(shm_port);
        close(memory);
    }
    struct cw_shm_port *shm_port = NULL;
    char error[TEXT_BYTES];
    int ends[2], holes = memory_like(&sound, bytes, 0);
    assert_int_equal(fallocate(holes, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, (off_t)bytes - 4096), 0);
    assert_int_equal(fcntl(holes, F_ADD_SEALS, FIXED), 0);
    assert_int_equal(cw_shm_port_open(holes, MTU, &shm_port, error, sizeof(error)), CW_ERROR_ARGUMENT);
    close(holes);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(cw_shm_port_open(ends[0], MTU, &shm_port, error, sizeof(error)), CW_ERROR_ARGUMENT);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    return TESTS_RUN(test_both_ways, test_sleep, test_groups, test_nonsense, test_rejected);
}
