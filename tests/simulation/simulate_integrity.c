/* The checks of a payload, and the errors that each form finds: bits that change in flight, and in the memory of the
 * receiver's host. The same puts by each form, over a path that changes bits; received bytes are compared with those
 * sent. */
#include "tests/simulation/simulation.h"

#include "dataplane/state/endpoint.h"

enum { SEEDS = 20, PUT_BYTES = 20000, PUTS = 100, MEMORY_BYTES = PUTS * PUT_BYTES, MACHINE = 77 };

static const double CHANCE = 0.02; /* of a frame to have a bit changed */

enum where { ON_THE_WAY, IN_MEMORY, WHERES };

struct form {
    const char *name;
    enum cw_cover cover;
    uint32_t mediums[2];
    bool by_nics;
    bool end_to_end[2];
    bool finds[WHERES];
};

static const struct form forms[] = {
    {"no medium", CW_COVER_CRC, {0, 0}, false, {false, false}, {true, true}},
    {"mediums that differ", CW_COVER_CRC, {MACHINE, MACHINE + 1}, false, {false, false}, {true, true}},
    {"a socket and a NIC", CW_COVER_CRC, {CW_PORT_MEDIUM_KERNEL, 0}, false, {false, false}, {true, true}},
    {"memory, end to end", CW_COVER_CRC, {MACHINE, MACHINE}, false, {true, true}, {true, true}},
    {"memory, one end asks", CW_COVER_CRC, {MACHINE, MACHINE}, false, {false, true}, {true, true}},
    {"kernels, end to end",
     CW_COVER_CRC,
     {CW_PORT_MEDIUM_KERNEL, CW_PORT_MEDIUM_KERNEL},
     false,
     {true, false},
     {true, true}},
    {"NICs, end to end", CW_COVER_CRC, {0, 0}, true, {true, false}, {true, true}},
    {"NICs", CW_COVER_NICS, {0, 0}, true, {false, false}, {true, false}},
    {"kernels", CW_COVER_KERNEL, {CW_PORT_MEDIUM_KERNEL, CW_PORT_MEDIUM_KERNEL}, false, {false, false}, {true, false}},
    {"memory", CW_COVER_MEMORY, {MACHINE, MACHINE}, false, {false, false}, {false, false}},
};

static struct cw_simulator_nic nic_of(const struct form *form, uint32_t host)
{
    enum cw_simulator_offload offload = form->by_nics ? CW_SIMULATOR_OFFLOAD_HONEST : CW_SIMULATOR_OFFLOAD_ABSENT;
    return (struct cw_simulator_nic){
        .offloads = {[CW_OFFLOAD_CHECKSUM_OUT] = (uint8_t)offload, [CW_OFFLOAD_CHECKSUM_IN] = (uint8_t)offload},
        .medium = form->mediums[host],
    };
}

static void endpoint_prepare(struct sim_host *host, struct cw_endpoint_config *endpoint)
{
    const struct form *form = host->hosts->config.owner;
    struct cw_simulator_nic nic = nic_of(form, host->node);
    cw_port_sim_nic(host->hosts->simulator, host->node, &nic);
    endpoint->end_to_end = form->end_to_end[host->node];
}

static uint64_t bits_wrong(const struct sim_hosts *hosts)
{
    uint64_t bits = 0;
    for (uint64_t i = 0; i < MEMORY_BYTES; i++) {
        bits += (uint64_t)__builtin_popcount(hosts->list[0].memory[i] ^ hosts->list[1].memory[i]);
    }
    return bits;
}

static void puts_send(struct sim_hosts *hosts)
{
    memset(hosts->list[1].memory, 0, MEMORY_BYTES);
    (void)sim_stream_send(hosts, 0, 1, PUT_BYTES, PUTS, 20000 * SIMULATION_MS);
    assert_int_equal(hosts->list[0].completed, PUTS);
    assert_int_equal(hosts->list[0].failed, 0);
}

static enum cw_cover cover_of(struct sim_hosts *hosts)
{
    struct cw_peer_info info;
    assert_int_equal(cw_peer_query(hosts->list[0].endpoint, sim_hosts_peer(hosts, 0, 1), &info), CW_OK);
    return info.cover;
}

/* Puts once without any change, then with them. Returns how many bits have come wrong. */
static uint64_t form_try(const struct form *form, enum where where, uint64_t seed)
{
    struct sim_hosts hosts;
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.seed = seed;
    config.memory_bytes = MEMORY_BYTES;
    config.owner = (void *)(uintptr_t)form;
    config.prepare = endpoint_prepare;
    simulation_hosts(&hosts, &config);
    for (uint32_t i = 0; i < MEMORY_BYTES; i++) {
        hosts.list[0].memory[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    puts_send(&hosts);
    assert_int_equal(bits_wrong(&hosts), 0);
    assert_int_equal(cover_of(&hosts), form->cover);
    assert_int_equal(simulation_counted(&hosts, 1, CW_COUNTER_DROP_CHECKSUM), 0);
    for (uint32_t host = 0; host < 2; host++) {
        struct cw_simulator_nic nic = nic_of(form, host);
        *(where == ON_THE_WAY ? &nic.upsets : &nic.spoils) = CHANCE;
        cw_port_sim_nic(hosts.simulator, host, &nic);
    }
    puts_send(&hosts);
    const struct cw_simulator_node_counters *counters = cw_simulator_node_counters(hosts.simulator, 1);
    uint64_t changed = where == ON_THE_WAY ? counters->upset : counters->spoiled;
    uint64_t wrong = bits_wrong(&hosts);
    assert_true(changed > 0);
    /* headers, and the places of a frame's bytes, are covered by each form: no bit is wrong except those that changed
     * in data */
    assert_true(wrong <= changed);
    assert_int_equal(hosts.list[1].arrived_puts, 2 * PUTS);
    assert_int_equal(hosts.list[1].arrived_bytes, 2ull * PUTS * PUT_BYTES);
    assert_int_equal(hosts.list[0].down + hosts.list[1].down, 0);
    sim_hosts_destroy(&hosts);
    return wrong;
}

static void each_form_finds_what_it_is_for(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t wrong[sizeof(forms) / sizeof(forms[0])][WHERES] = {{0}};
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
            for (enum where where = ON_THE_WAY; where < WHERES; where++) {
                uint64_t bits = form_try(&forms[i], where, seed);
                assert_true_msg(!forms[i].finds[where] || bits == 0, "seed %llu: %s: %llu bits are wrong",
                                (unsigned long long)seed, forms[i].name, (unsigned long long)bits);
                wrong[i][where] += bits;
            }
        }
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        printf("%-22s %5llu bits wrong that changed on the way, %5llu in memory\n", forms[i].name,
               (unsigned long long)wrong[i][ON_THE_WAY], (unsigned long long)wrong[i][IN_MEMORY]);
        for (enum where where = ON_THE_WAY; where < WHERES && seeds.is_all; where++) {
            assert_int_equal(wrong[i][where] == 0, forms[i].finds[where]); /* and docs say so */
        }
    }
}

int main(void)
{
    return TESTS_RUN(each_form_finds_what_it_is_for);
}
