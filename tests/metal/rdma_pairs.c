/* rdma_pairs DEVICE: two endpoints of this process, with sockets and a real RDMA device each: puts, gets and messages
 * by queue pairs, of which every byte is checked; regions that are taken away; pairs that break. For a guest whose
 * kernel has rdma_rxe (rdma_usage.py). */
#include "tests/test.h"

#include <sys/mman.h>

#include "dataplane/base/clock.h"
#include "dataplane/port/udp.h"
#include "dataplane/rdma/rdma.h"

enum {
    MEMORY_BYTES = 4 << 20,
    BREAKS = 100,
    PUTS_A_BREAK = 8,
    PUT_BYTES = 5000,
    SLOT_BYTES = 1024,
    KEPT_BYTES = 100000
};

static const char *device_name;

struct side {
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    uint8_t *memory;
    uint64_t token;
    uint32_t peer;
    uint64_t puts, messages, gets, completed, failed, down;
    int last_status;
    uint64_t message_sum;
};

static struct side sides[2];

/* A counter of the device. */
static uint64_t device_count(const char *name)
{
    char path[200], text[32] = "";
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s", device_name, name);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        (void)fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
    }
    return strtoull(text, NULL, 10);
}

static void events_receive(struct side *side)
{
    struct cw_event events[32];
    uint32_t count = cw_endpoint_events(side->endpoint, events, 32);
    for (uint32_t i = 0; i < count; i++) {
        switch (events[i].kind) {
        case CW_EVENT_PUT:
            side->puts++;
            break;
        case CW_EVENT_MESSAGE:
            side->messages++;
            for (uint64_t at = 0; at < events[i].bytes; at++) {
                side->message_sum += ((const uint8_t *)events[i].data)[at];
            }
            assert_int_equal(cw_message_release(side->endpoint, events[i].slot), CW_OK);
            break;
        case CW_EVENT_GET:
            side->gets++;
            side->last_status = events[i].status;
            break;
        case CW_EVENT_COMPLETE:
            side->completed++;
            side->failed += events[i].status < 0;
            side->last_status = events[i].status;
            break;
        case CW_EVENT_PEER_DOWN:
            side->down++;
            break;
        default:
            break;
        }
    }
}

/* Turns both until a counter has come to a value. */
static void until(const uint64_t *counter, uint64_t value)
{
    uint64_t end_ns = cw_clock_ns() + TEST_HANG_NS;
    while (*counter < value) {
        for (int i = 0; i < 2; i++) {
            (void)cw_endpoint_fetch(sides[i].endpoint);
            (void)cw_endpoint_turn(sides[i].endpoint, cw_clock_ns());
            events_receive(&sides[i]);
        }
        if (cw_clock_ns() > end_ns) {
            fail_msg("%llu of %llu came", (unsigned long long)*counter, (unsigned long long)value);
        }
    }
    assert_int_equal(*counter, value);
}

static void up(void)
{
    uint64_t end_ns = cw_clock_ns() + TEST_HANG_NS, none = 0;
    while (cw_rdma_state(sides[0].endpoint, sides[0].peer) != CW_RDMA_UP ||
           cw_rdma_state(sides[1].endpoint, sides[1].peer) != CW_RDMA_UP) {
        until(&none, 0);
        for (int i = 0; i < 2; i++) {
            (void)cw_endpoint_turn(sides[i].endpoint, cw_clock_ns());
            events_receive(&sides[i]);
        }
        assert_true(cw_clock_ns() < end_ns);
    }
}

static int pair_open(void **state)
{
    char error[256] = "";
    for (int i = 0; i < 2; i++) {
        struct side *side = &sides[i];
        *side = (struct side){0};
        const struct cw_port_udp_config udp = {.ip = cw_ip_v4(0x7f000001), .stream_count = 1, .mtu_bytes = 1500};
        struct cw_endpoint_config config;
        cw_endpoint_config_init(&config);
        config.seed = cw_clock_ns() + (uint64_t)i;
        config.pool_slot_bytes = SLOT_BYTES;
        memset(config.job_key, 3, sizeof(config.job_key));
        if (cw_port_udp_open(&udp, &side->port, error, sizeof(error)) != CW_OK) {
            fail_msg("%s", error);
        }
        config.address = (struct cw_address){.ip = udp.ip, .udp_port = cw_port_udp_number(side->port)};
        struct cw_verbs_device *device = NULL;
        assert_int_equal(cw_endpoint_create(&config, side->port, cw_clock_ns(), &side->endpoint, error, sizeof(error)),
                         CW_OK);
        const struct cw_verbs_config verbs = cw_rdma_device_config(&config, device_name);
        if (cw_verbs_open(&verbs, &device, error, sizeof(error)) != CW_OK ||
            cw_rdma_attach(side->endpoint, device, error, sizeof(error)) != CW_OK) {
            fail_msg("%s", error);
        }
        side->memory = malloc(MEMORY_BYTES);
        memset(side->memory, 0xaa, MEMORY_BYTES);
        assert_int_equal(cw_region_register(side->endpoint, side->memory, MEMORY_BYTES,
                                            CW_REGION_WRITE | CW_REGION_READ, &side->token),
                         CW_OK);
    }
    for (int i = 0; i < 2; i++) {
        const struct cw_address address = cw_endpoint_address(sides[1 - i].endpoint);
        assert_int_equal(cw_peer_add(sides[i].endpoint, &address, &sides[i].peer), CW_OK);
    }
    assert_int_equal(cw_peer_connect(sides[0].endpoint, sides[0].peer), CW_OK);
    up();
    return 0;
}

static int pair_close(void **state)
{
    for (int i = 0; i < 2; i++) {
        cw_endpoint_destroy(sides[i].endpoint);
        cw_port_close(sides[i].port);
        free(sides[i].memory);
    }
    return 0;
}

static void put(uint64_t offset, uint64_t bytes, bool from_region, uint64_t token)
{
    const struct cw_put put = {.peer = sides[0].peer,
                               .lane_tag = cw_lane_tag(1, 0),
                               .region = token,
                               .offset = offset,
                               .source = {.region = from_region ? sides[0].token : 0,
                                          .contiguous = {.data = sides[0].memory + offset, .bytes = bytes}},
                               .flags = CW_SIGNAL};
    assert_int_equal(cw_put(sides[0].endpoint, &put), CW_OK);
}

static void puts_of_all_sizes(void **state)
{
    static const uint64_t sizes[] = {0, 1, 8, 63, 64, 220, 221, 4096, 4097, 65536, 1 << 20, 3 << 20};
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int from_region = 0; from_region < 2; from_region++) {
            memset(sides[0].memory + 7, (int)(++count), sizes[i]);
            put(7, sizes[i], from_region == 1, sides[1].token);
            until(&sides[1].puts, count);
            until(&sides[0].completed, count);
            assert_memory_equal(sides[1].memory + 7, sides[0].memory + 7, sizes[i]);
            assert_int_equal(sides[1].memory[7 + sizes[i]] == (uint8_t)count, 0); /* and no byte more */
        }
    }
    assert_int_equal(sides[0].failed, 0);
    assert_true(cw_endpoint_counter(sides[0].endpoint, CW_COUNTER_RDMA_WORK) >= count);
}

/* A device that waits for an acknowledgement for too long sends the packet again, and gets two. */
static uint64_t device_repeats(void)
{
    return device_count("completer_retry_err") + device_count("duplicate_request");
}

/* A packet there and its acknowledgement: as many as perftest's ib_write_lat has. */
static void packets_of_a_put(void **state)
{
    enum { COUNT = 1000 };
    uint64_t before = device_count("sent_pkts"), repeats = device_repeats(), puts = sides[1].puts,
             completed = sides[0].completed;
    for (uint64_t i = 1; i <= COUNT; i++) {
        put(0, 8, false, sides[1].token);
        until(&sides[1].puts, puts + i);
        until(&sides[0].completed, completed + i);
    }
    uint64_t packets = device_count("sent_pkts") - before;
    repeats = device_repeats() - repeats;
    printf("%d puts of 8 bytes: %llu packets of the device, %llu repeats\n", COUNT, (unsigned long long)packets,
           (unsigned long long)repeats);
    assert_true(before > 0 && packets >= COUNT && packets <= 2 * (COUNT + repeats));
}

static void gets_and_messages(void **state)
{
    for (uint32_t i = 0; i < MEMORY_BYTES; i++) {
        sides[1].memory[i] = (uint8_t)(i * 7 >> 3);
    }
    const struct cw_get get = {.peer = sides[0].peer,
                               .region = sides[1].token,
                               .offset = 100,
                               .bytes = 1000000,
                               .local_region = sides[0].token,
                               .local_offset = 33};
    uint64_t work = cw_endpoint_counter(sides[0].endpoint, CW_COUNTER_RDMA_WORK);
    assert_int_equal(cw_get(sides[0].endpoint, &get), CW_OK);
    until(&sides[0].gets, 1);
    assert_int_equal(sides[0].last_status, CW_OK);
    assert_memory_equal(sides[0].memory + 33, sides[1].memory + 100, 1000000);
    assert_int_equal(cw_endpoint_counter(sides[0].endpoint, CW_COUNTER_RDMA_WORK), work + 1);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 500; i++) {
        uint64_t bytes = i * 13 % (SLOT_BYTES + 1);
        const struct cw_message message = {.peer = sides[0].peer,
                                           .lane_tag = cw_lane_tag(2, i),
                                           .source = {.contiguous = {.data = sides[0].memory + i, .bytes = bytes}}};
        for (uint64_t at = 0; at < bytes; at++) {
            sum += sides[0].memory[i + at];
        }
        while (cw_message_send(sides[0].endpoint, &message) == CW_ERROR_AGAIN) {
            until(&sides[1].messages, sides[1].messages);
        }
    }
    until(&sides[1].messages, 500);
    assert_int_equal(sides[1].message_sum, sum);
}

/* Freed memory is not accessed, and the accessing peer is notified; operations of others continue. */
static void a_deregistered_region(void **state)
{
    uint64_t token = sides[1].token;
    memset(sides[1].memory, 1, PUT_BYTES);
    assert_int_equal(cw_region_deregister(sides[1].endpoint, token), CW_OK);
    memset(sides[0].memory, 2, PUT_BYTES);
    put(0, PUT_BYTES, true, token);
    until(&sides[0].completed, 1);
    assert_int_equal(sides[0].last_status, CW_ERROR_REMOTE_ACCESS);
    assert_int_equal(sides[1].puts, 0);
    assert_int_equal(sides[1].memory[0], 1);
    assert_int_equal(cw_region_register(sides[1].endpoint, sides[1].memory, MEMORY_BYTES, CW_REGION_READ, &token),
                     CW_OK);
    put(0, PUT_BYTES, true, token); /* it may be read, and not written */
    until(&sides[0].completed, 2);
    assert_int_equal(sides[0].last_status, CW_ERROR_REMOTE_ACCESS);
    assert_int_equal(cw_region_register(sides[1].endpoint, sides[1].memory, MEMORY_BYTES, CW_REGION_WRITE, &token),
                     CW_OK);
    put(0, PUT_BYTES, true, token);
    until(&sides[0].completed, 3);
    assert_int_equal(sides[0].last_status, CW_OK);
    assert_memory_equal(sides[1].memory, sides[0].memory, PUT_BYTES);
}

static void kept_get(const uint8_t *memory)
{
    uint64_t token, gets = sides[0].gets;
    assert_int_equal(
        cw_region_register(sides[1].endpoint, (void *)memory, KEPT_BYTES, CW_REGION_READ | CW_REGION_KEPT, &token),
        CW_OK);
    const struct cw_get get = {
        .peer = sides[0].peer, .region = token, .bytes = KEPT_BYTES, .local_region = sides[0].token, .local_offset = 5};
    memset(sides[0].memory, 0, KEPT_BYTES + 10);
    assert_int_equal(cw_get(sides[0].endpoint, &get), CW_OK);
    until(&sides[0].gets, gets + 1);
    assert_int_equal(sides[0].last_status, CW_OK);
    assert_memory_equal(sides[0].memory + 5, memory, KEPT_BYTES);
    assert_int_equal(cw_region_deregister(sides[1].endpoint, token), CW_OK);
}

static uint8_t *pages_map(void *at, int value)
{
    uint8_t *pages = mmap(at, KEPT_BYTES + 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);
    assert_true(pages != MAP_FAILED);
    memset(pages, value, KEPT_BYTES + 4096);
    return pages;
}

/* Memory that is registered again is known, unless the program has other memory there by now; and read-only memory is
 * read in place. */
static void registrations_are_kept(void **state)
{
    const struct cw_cache_counters *counters = cw_rdma_registrations(sides[1].endpoint);
    uint8_t *memory = pages_map(NULL, 1);
    for (int i = 0; i < 10; i++) {
        memset(memory, i, KEPT_BYTES);
        kept_get(memory + 100);
    }
    assert_int_equal(counters->registered, 1);
    assert_int_equal(counters->found, 9);
    pages_map(memory, 77);
    kept_get(memory + 100);
    assert_int_equal(counters->registered, 2);
    assert_int_equal(madvise(memory, KEPT_BYTES + 4096, MADV_DONTNEED), 0);
    memset(memory, 78, KEPT_BYTES + 4096);
    kept_get(memory + 100);
    assert_int_equal(counters->registered, 3);
    assert_int_equal(counters->stale, 2);
    uint64_t unknown = cw_endpoint_counter(sides[1].endpoint, CW_COUNTER_RDMA_UNREGISTERED);
    pages_map(memory, 79);
    assert_int_equal(mprotect(memory, KEPT_BYTES + 4096, PROT_READ), 0);
    kept_get(memory);
    assert_int_equal(cw_endpoint_counter(sides[1].endpoint, CW_COUNTER_RDMA_UNREGISTERED), unknown);
    assert_int_equal(counters->registered, 3); /* that one is not kept, and drives out none */
    assert_int_equal(counters->evicted, 0);
    munmap(memory, KEPT_BYTES + 4096);
}

static void broken_pairs_lose_nothing(void **state)
{
    uint64_t posted = 0;
    for (uint32_t i = 0; i < BREAKS; i++) {
        for (uint32_t n = 0; n < PUTS_A_BREAK; n++) {
            uint64_t offset = posted % 800 * PUT_BYTES;
            memset(sides[0].memory + offset, (int)(posted + 1), PUT_BYTES);
            put(offset, PUT_BYTES, n % 2 == 0, sides[1].token);
            posted++;
        }
        for (uint32_t turn = 0; turn < i % 7; turn++) { /* somewhere on the way */
            (void)cw_endpoint_turn(sides[turn % 2].endpoint, cw_clock_ns());
        }
        cw_rdma_break(sides[i % 2].endpoint, sides[i % 2].peer);
        until(&sides[0].completed, posted);
        until(&sides[1].puts, posted);
        up();
    }
    assert_int_equal(sides[0].failed, 0);
    assert_int_equal(sides[0].down + sides[1].down, 0);
    assert_memory_equal(sides[1].memory, sides[0].memory, 800 * PUT_BYTES);
    printf("%llu puts, %llu queue pairs\n", (unsigned long long)posted,
           (unsigned long long)cw_endpoint_counter(sides[0].endpoint, CW_COUNTER_RDMA_UP));
}

/* Errors are reported in a line. */
static void bad_devices(void **state)
{
    static const struct {
        const char *name;
        uint8_t last; /* of the address */
        const char *words;
    } cases[] = {{"nosuch0", 1, "RDMA device nosuch0: there is none of this name"}, {NULL, 77, "::ffff:10.9.0.77"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char error[256] = "";
        struct cw_verbs_device *device;
        const struct cw_verbs_config config = {.name = cases[i].name,
                                               .gid = {[10] = 0xff, 0xff, 10, 9, 0, cases[i].last},
                                               .work_max = 16,
                                               .receive_max = 64,
                                               .pair_count_max = 2};
        assert_int_equal(cw_verbs_open(&config, &device, error, sizeof(error)), CW_ERROR_NOT_FOUND);
        if (strstr(error, cases[i].words) == NULL) {
            fail_msg("'%s' is wanted in: %s", cases[i].words, error);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "rdma_pairs DEVICE\n");
        return 2;
    }
    device_name = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_devices),
        cmocka_unit_test_setup_teardown(puts_of_all_sizes, pair_open, pair_close),
        cmocka_unit_test_setup_teardown(packets_of_a_put, pair_open, pair_close),
        cmocka_unit_test_setup_teardown(gets_and_messages, pair_open, pair_close),
        cmocka_unit_test_setup_teardown(a_deregistered_region, pair_open, pair_close),
        cmocka_unit_test_setup_teardown(registrations_are_kept, pair_open, pair_close),
        cmocka_unit_test_setup_teardown(broken_pairs_lose_nothing, pair_open, pair_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
