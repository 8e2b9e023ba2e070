/* An attacker on the network without the key, with recorded set-up packets of an earlier job with the same key, sends
 * them again and again: unchanged, altered, or with a tag of its own. Nothing is delivered twice or lost, no session
 * ends, and set-up takes at most twice the time without attack. */
#include "tests/simulation/attack.h"
#include "tests/simulation/fixture.h"

#include "dataplane/flow/table.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/wire/sealed.h"

enum {
    HOSTS = 3,
    FRAMES_MAX = 2000,
    SETUP_BYTES = 256,
    PUTS = 60,
    PUT_BYTES = 3000,
    BOUND_MS = 300,
    SEEDS = 25,
    SEEDS_EACH = 5 /* a seed takes a second */
};

enum kind { REPLAYED, ALTERED, FORGED, KINDS };
static const char *const kinds[] = {"replayed", "altered", "forged"};

static struct flood {
    const struct recording *recording; /* NULL: none */
    enum kind kind;
    uint64_t rate; /* packets a second to each host */
    uint64_t next_ns;
    uint64_t sent;
    struct cw_random random;
} flood;

static bool is_wanted(uint32_t node, const uint8_t *frame, uint32_t length)
{
    return is_setup(frame) && length <= SETUP_BYTES;
}

/* ---- the flood ---- */

/* Changes the last four bytes so that the CRC is `checksum` again. It is linear: the effect of each bit is found by
 * trying, the rest by elimination. */
static void keep_checksum(uint8_t *data, size_t bytes, uint32_t checksum)
{
    uint32_t rows[32], bits[32], last;
    uint32_t wrong = cw_wire_checksum(0, data, bytes) ^ checksum, flip = 0;
    memcpy(&last, data + bytes - 4, 4);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t tried = last ^ 1u << i;
        memcpy(data + bytes - 4, &tried, 4);
        rows[i] = cw_wire_checksum(0, data, bytes) ^ wrong ^ checksum;
        bits[i] = 1u << i;
    }
    for (uint32_t column = 0; column < 32; column++) {
        uint32_t pivot = column;
        while ((rows[pivot] >> column & 1) == 0) {
            pivot++;
        }
        uint32_t row = rows[pivot], bit = bits[pivot];
        rows[pivot] = rows[column];
        bits[pivot] = bits[column];
        for (uint32_t i = column + 1; i < 32; i++) {
            bool has = (rows[i] >> column & 1) != 0;
            rows[i] ^= has ? row : 0;
            bits[i] ^= has ? bit : 0;
        }
        bool has = (wrong >> column & 1) != 0;
        wrong ^= has ? row : 0;
        flip ^= has ? bit : 0;
    }
    last ^= flip;
    memcpy(data + bytes - 4, &last, 4);
}

/* A bit; or, where all can be read, another process with the nonce that the target has for its next session, under the
 * same CRC, which leaves the header as it was signed. */
static void alter(uint32_t node, uint8_t *frame, uint32_t length)
{
    struct cw_random *random = &flood.random;
    const struct cw_wire_header *header = (const struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    struct cw_wire_hello hello;
    if ((header->flags & CW_WIRE_ENCRYPTED) != 0 || cw_random_chance(random, 0.3)) {
        uint64_t bit = cw_random_below(random, 8 * (uint64_t)(length - CW_WIRE_NETWORK_BYTES));
        frame[CW_WIRE_NETWORK_BYTES + bit / 8] ^= (uint8_t)(1u << bit % 8);
        return;
    }
    memcpy(&hello, frame + CW_WIRE_OVERHEAD_BYTES, sizeof(hello));
    const struct cw_flow *flow = cw_flow_find(hosts.list[node].endpoint, &hello.sender_ip, hello.sender_port);
    hello.session = cw_random_next(random);
    hello.incarnation = cw_random_next(random);
    hello.peer_session = flow->session.next;
    keep_checksum((uint8_t *)&hello, sizeof(hello), header->checksum);
    assert_int_equal(cw_wire_checksum(0, &hello, sizeof(hello)), header->checksum);
    memcpy(frame + CW_WIRE_OVERHEAD_BYTES, &hello, sizeof(hello));
}

static void forge(struct cw_random *random, uint8_t *frame, uint32_t length)
{
    struct cw_wire_header *header = (struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    header->tag = cw_random_next(random);
    if ((header->flags & CW_WIRE_ENCRYPTED) != 0) {
        memset(frame + length - CW_WIRE_MAC_BYTES, (int)cw_random_below(random, 256), CW_WIRE_MAC_BYTES);
    }
}

static void flood_send(void)
{
    uint32_t chosen = (uint32_t)cw_random_below(&flood.random, flood.recording->count);
    uint32_t length = flood.recording->frames[chosen].length;
    uint8_t frame[SETUP_BYTES];
    memcpy(frame, flood.recording->frames[chosen].bytes, length);
    uint32_t node = flood.recording->frames[chosen].node;
    if (hosts.list[node].endpoint == NULL) {
        return; /* it has left */
    }
    if (flood.kind == ALTERED) {
        alter(node, frame, length);
    } else if (flood.kind == FORGED) {
        forge(&flood.random, frame, length);
    }
    (void)cw_simulator_inject(hosts.simulator, node, frame, length);
    flood.sent++;
}

static void run_until(uint64_t time_ns)
{
    while (flood.recording != NULL && flood.next_ns <= time_ns) {
        cw_simulator_run_until(hosts.simulator, flood.next_ns);
        flood_send();
        flood.next_ns += cw_random_below(&flood.random, 2 * 1000000000 / (flood.rate * HOSTS));
    }
    cw_simulator_run_until(hosts.simulator, time_ns);
}

static void run(uint64_t duration_ns)
{
    run_until(sim_hosts_now(&hosts) + duration_ns);
}

/* ---- a job ---- */

static void world_open(uint64_t seed, bool sealed)
{
    struct sim_hosts_config config = sim_hosts_config_of(HOSTS);
    config.seed = seed;
    config.endpoint.accept_unknown = false;
    config.endpoint.encryption = sealed ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF;
    config.endpoint.failure_timeout_ns = BOUND_MS * SIMULATION_MS;
    memset(&flood, 0, sizeof(flood));
    hosts_make(&config);
    for (uint32_t from = 0; from < HOSTS; from++) {
        for (uint32_t to = 0; to < HOSTS; to++) {
            (void)(from == to ? 0 : sim_hosts_peer(&hosts, from, to));
        }
    }
}

/* Puts from each to each other; a host begins up to 200 us after the first. */
static void post(struct cw_random *random, uint8_t value)
{
    for (uint32_t from = 0; from < HOSTS; from++) {
        struct sim_host *host = &hosts.list[from];
        memset(host->memory, value + (int)from, PUT_BYTES);
        cw_endpoint_clock(host->endpoint, sim_hosts_now(&hosts));
        for (uint32_t i = 0; i < PUTS * (HOSTS - 1); i++) {
            uint32_t to = (from + 1 + i % (HOSTS - 1)) % HOSTS;
            struct cw_put put = {.peer = sim_hosts_peer(&hosts, from, to),
                                 .region = hosts.list[to].token,
                                 .offset = (1 + from * PUTS + i / (HOSTS - 1)) * PUT_BYTES,
                                 .source = {.contiguous = {.data = host->memory, .bytes = PUT_BYTES}},
                                 .flags = CW_SIGNAL};
            assert_int_equal(cw_put(host->endpoint, &put), CW_OK);
        }
        sim_host_wake(host);
        run(cw_random_below(random, 100) * SIMULATION_US);
    }
}

/* Until all puts of all rounds have been completed; how long that took. */
static uint64_t finish(uint64_t rounds)
{
    uint64_t start_ns = sim_hosts_now(&hosts);
    uint64_t want = rounds * PUTS * (HOSTS - 1);
    for (uint32_t node = 0; node < HOSTS;) {
        struct sim_host *host = &hosts.list[node];
        if (host->completed >= want && host->arrived_puts >= want) {
            node++;
            continue;
        }
        assert_true_msg(sim_hosts_now(&hosts) - start_ns <= 20000 * SIMULATION_MS,
                        "host %d: %d of %d puts, %d failed, %d arrived", (int)node, (int)host->completed, (int)want,
                        (int)host->failed, (int)host->arrived_puts);
        run(10 * SIMULATION_US);
    }
    return sim_hosts_now(&hosts) - start_ns;
}

static void assert_all_is_well(uint64_t rounds, uint8_t value)
{
    for (uint32_t node = 0; node < HOSTS; node++) {
        struct sim_host *host = &hosts.list[node];
        assert_int_equal(host->completed, rounds * PUTS * (HOSTS - 1));
        assert_int_equal(host->arrived_puts, rounds * PUTS * (HOSTS - 1));
        assert_int_equal(host->failed, 0);
        assert_int_equal(host->up, HOSTS - 1);
        assert_int_equal(host->down, 0);
        for (uint32_t from = 0; from < HOSTS; from++) {
            static uint8_t expected[PUTS * PUT_BYTES];
            memset(expected, value + (int)from, sizeof(expected));
            if (from != node) {
                assert_memory_equal(&host->memory[(1 + from * PUTS) * PUT_BYTES], expected, sizeof(expected));
            }
        }
    }
}

/* The packets of set-up of an earlier job, of two processes at each host. */
static struct recording *record_job(bool sealed)
{
    struct recording *recording = calloc(1, sizeof(*recording));
    *recording = (struct recording){.kind = CW_SIMULATOR_ARRIVAL, .wants = is_wanted};
    struct cw_random random;
    cw_random_seed(&random, 99);
    for (uint64_t seed = 1000; seed < 1020; seed++) {
        world_open(seed, sealed);
        recording_begin(recording, &hosts, FRAMES_MAX);
        post(&random, 1);
        (void)finish(1);
    }
    assert_true(recording->count >= 100);
    return recording;
}

/* A job with the flood before, during and after it. Returns the time of set-up and the first puts. */
static uint64_t job(uint64_t seed, bool sealed, const struct flood *with)
{
    struct cw_random random;
    cw_random_seed(&random, seed);
    world_open(seed, sealed);
    flood = *with;
    run((BOUND_MS / 2 + cw_random_below(&random, BOUND_MS)) * SIMULATION_MS); /* nobody has begun */
    post(&random, 10);
    uint64_t took_ns = finish(1);
    run(2 * BOUND_MS * SIMULATION_MS); /* at rest */
    assert_all_is_well(1, 10);
    post(&random, 20);
    (void)finish(2);
    assert_all_is_well(2, 20);
    /* the last one leaves, and no other needs it */
    sim_hosts_close(&hosts, HOSTS - 1);
    run(2 * BOUND_MS * SIMULATION_MS);
    for (uint32_t node = 0; node < HOSTS - 1; node++) {
        assert_int_equal(hosts.list[node].down, 1);
        assert_int_equal(hosts.list[node].up, HOSTS - 1);
        struct cw_peer_info info = peer_info(node, 1);
        assert_int_equal(info.state, CW_PEER_CLOSED);
    }
    return took_ns;
}

static void flooded_jobs(enum kind kind)
{
    static const uint64_t rates[] = {300, 3000, 5000, 50000};
    struct test_seeds seeds = test_seeds(1, (test_count("CW_TEST_SEEDS", SEEDS) + SEEDS_EACH - 1) / SEEDS_EACH);
    for (uint32_t sealed = 0; sealed < 2; sealed++) {
        struct recording *recording = record_job(sealed != 0);
        uint64_t *quiet_ns = calloc(seeds.count, sizeof(*quiet_ns)); /* by seed: a job without disturbance */
        for (uint32_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
            double worst = 0;
            uint64_t sent = 0;
            seeds.next = seeds.first;
            for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
                uint64_t *quiet = &quiet_ns[seed - seeds.first];
                if (rates[r] >= 50000 && (seed - seeds.first) % 10 != 0) {
                    continue; /* ten times the packets: a tenth of the seeds */
                }
                struct flood none = {0};
                struct flood some = {.recording = recording, .kind = kind, .rate = rates[r]};
                cw_random_seed(&some.random, seed + 7);
                if (*quiet == 0) {
                    *quiet = job(seed, sealed != 0, &none);
                }
                uint64_t took_ns = job(seed, sealed != 0, &some);
                double ratio = (double)took_ns / (double)*quiet;
                worst = ratio > worst ? ratio : worst;
                sent += flood.sent;
                assert_true_msg(ratio <= 2, "%s, %s, %d/s, seed %d: %.2f times as long", kinds[kind],
                                sealed != 0 ? "sealed" : "signed", (int)rates[r], (int)seed, ratio);
            }
            printf("%s, %s, %d/s: %d packets, set-up and first puts take %.2f times as long at most\n", kinds[kind],
                   sealed != 0 ? "sealed" : "signed", (int)rates[r], (int)sent, worst);
        }
        free(quiet_ns);
        recording_free(recording);
    }
}

static void floods_change_nothing(void **state)
{
    for (enum kind kind = REPLAYED; kind < KINDS; kind++) {
        flooded_jobs(kind);
    }
}

/* A process takes another's place, under a flood of this kind: it alone sets up its sessions. */
static void replace_process(struct recording *recording, enum kind kind, bool sealed)
{
    uint64_t took_ns[2];
    for (uint32_t flooded = 0; flooded < 2; flooded++) {
        struct cw_random random;
        cw_random_seed(&random, 5);
        world_open(5, sealed);
        flood = (struct flood){.recording = flooded != 0 ? recording : NULL, .kind = kind, .rate = 5000};
        cw_random_seed(&flood.random, 6);
        run(SIMULATION_MS);
        post(&random, 1);
        (void)finish(1);
        sim_hosts_crash(&hosts, 0);
        run(100 * SIMULATION_MS);
        host_start(0);
        uint64_t start_ns = sim_hosts_now(&hosts);
        for (uint32_t to = 1; to < HOSTS; to++) {
            cw_endpoint_clock(hosts.list[0].endpoint, start_ns);
            assert_int_equal(cw_peer_connect(hosts.list[0].endpoint, sim_hosts_peer(&hosts, 0, to)), CW_OK);
        }
        while (hosts.list[1].down + hosts.list[2].down < 2 || hosts.list[0].up < 2) {
            run(SIMULATION_US);
            assert_true(sim_hosts_now(&hosts) - start_ns < BOUND_MS * SIMULATION_MS);
        }
        took_ns[flooded] = sim_hosts_now(&hosts) - start_ns;
        run(2 * BOUND_MS * SIMULATION_MS);
        assert_int_equal(hosts.list[1].up + hosts.list[2].up, 2 * (HOSTS - 1) + 2);
        assert_int_equal(hosts.list[1].down + hosts.list[2].down, 2);
    }
    printf("%s, %s: a new process has its sessions after %.1f us, under the flood after %.1f us\n", kinds[kind],
           sealed ? "sealed" : "signed", (double)took_ns[0] / 1e3, (double)took_ns[1] / 1e3);
    assert_true(took_ns[1] <= 2 * took_ns[0]);
}

/* It is admitted as fast as without the flood, and all its peers are notified. */
static void a_new_process(void **state)
{
    for (uint32_t sealed = 0; sealed < 2; sealed++) {
        struct recording *recording = record_job(sealed != 0);
        for (enum kind kind = REPLAYED; kind < KINDS; kind++) {
            replace_process(recording, kind, sealed != 0);
        }
        recording_free(recording);
    }
}

int main(void)
{
    return HOSTS_TESTS_RUN(floods_change_nothing, a_new_process);
}
