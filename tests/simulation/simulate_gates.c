/* Endpoints that know nothing of a wide area, behind gates on either side of it, in virtual time: how much of it they
 * get. CW_TEST_SEEDS (60) / 20. */
#include "tests/simulation/simulation.h"
#include "tests/simulation/tunnel_world.h"

#include "dataplane/tunnel/records.h"
#include "dataplane/wire/sealed.h"
#include "dataplane/wire/wire.h"

enum {
    PUT_BYTES = 1 << 20,
    PUTS = 4,
    MEMORY_BYTES = PUTS * PUT_BYTES,
    EVENTS = 64,
    SEEDS = 60,
    SEEDS_EACH = 20 /* a seed takes seconds */,
    TURNS = 4,
    UDP_PORT = CW_UDP_PORT
};

/* The site's one host. */
struct endpoint_host {
    struct cw_endpoint *endpoint;
    uint8_t *memory;
    uint64_t token;
    uint64_t arrived_bytes;
    uint32_t under_way;
    uint64_t posted;
    uint64_t target; /* puts go there; 0: nothing is sent */
    uint32_t peer;
};

static struct endpoint_host hosts[SITES];

static void host_open(struct tunnel_site *site)
{
    struct endpoint_host *host = &hosts[site->index];
    struct cw_endpoint_config config;
    char error[200] = "";
    site->hosts->info.mac[4] = (uint8_t)(1 + site->index); /* both pairs of ports are alike */
    cw_endpoint_config_init(&config);
    config.address = (struct cw_address){.ip = cw_ip_v4(0x0a000001u + site->index), .udp_port = UDP_PORT};
    config.seed = cw_random_derive(site->world->options.seed, 1000 + site->index);
    config.accept_unknown = true;
    *host = (struct endpoint_host){.memory = calloc(1, MEMORY_BYTES)};
    assert_non_null(host->memory);
    uint64_t now_ns = sim_hosts_now(&site->world->gates);
    assert_true_msg(cw_endpoint_create(&config, site->hosts, now_ns, &host->endpoint, error, sizeof(error)) == CW_OK,
                    "%s", error);
    assert_int_equal(cw_region_register(host->endpoint, host->memory, MEMORY_BYTES, CW_REGION_WRITE, &host->token),
                     CW_OK);
}

static void events_receive(struct endpoint_host *host)
{
    struct cw_event events[EVENTS];
    uint32_t count;
    while ((count = cw_endpoint_events(host->endpoint, events, EVENTS)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            host->arrived_bytes += events[i].kind == CW_EVENT_PUT ? events[i].bytes : 0;
            host->under_way -= events[i].kind == CW_EVENT_COMPLETE;
        }
    }
}

static void puts_post(struct endpoint_host *host)
{
    while (host->target != 0 && host->under_way < PUTS) {
        uint64_t offset = host->posted++ % PUTS * PUT_BYTES; /* those under way do not overlap */
        struct cw_put put = {
            .peer = host->peer,
            .region = host->target,
            .offset = offset,
            .source = {.region = host->token, .contiguous = {.data = host->memory + offset, .bytes = PUT_BYTES}},
            .flags = CW_SIGNAL,
        };
        assert_int_equal(cw_put(host->endpoint, &put), CW_OK);
        host->under_way++;
    }
}

static uint64_t hosts_turn(struct tunnel_site *site, uint64_t now_ns)
{
    struct endpoint_host *host = &hosts[site->index];
    uint32_t work = 0;
    if (host->endpoint == NULL) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < TURNS; i++) {
        work += cw_endpoint_turn(host->endpoint, now_ns);
        events_receive(host);
        puts_post(host);
    }
    return work > 0 ? now_ns : cw_endpoint_deadline(host->endpoint);
}

/* The share of `rate_bps` after the headers of two networks: full packets of the hosts, in full packets of the
 * tunnel. */
static double left_by_headers(uint64_t rate_bps, bool sealed)
{
    uint32_t inner = cw_wire_part_bytes(1500);
    uint32_t outer = inner - (sealed ? CW_WIRE_MAC_BYTES : 0);
    uint32_t headers = CW_WIRE_OVERHEAD_BYTES + sizeof(struct cw_wire_part);
    double outer_share = outer / (double)(inner + headers + CW_ETHERNET_OVERHEAD_BYTES);
    return (double)rate_bps * outer_share * inner / (inner + headers + CW_TUNNEL_RECORD_BYTES);
}

/* Bits per second from site 0 to site 1, two seconds after they began. */
static double goodput_bps(const struct tunnel_options *options, uint64_t duration_ns)
{
    struct tunnel_world world;
    memset(hosts, 0, sizeof(hosts));
    tunnel_world_open(&world, options);
    for (uint32_t i = 0; i < SITES; i++) {
        host_open(&world.sites[i]);
    }
    assert_true(tunnel_world_connect(&world, 5000 * SIMULATION_MS));
    struct cw_address address = cw_endpoint_address(hosts[1].endpoint);
    assert_int_equal(cw_peer_add(hosts[0].endpoint, &address, &hosts[0].peer), CW_OK);
    hosts[0].target = hosts[1].token;
    sim_host_wake(&world.gates.list[0]);
    tunnel_world_run(&world, 2000 * SIMULATION_MS);
    uint64_t before = hosts[1].arrived_bytes;
    tunnel_world_run(&world, duration_ns);
    uint64_t bytes = hosts[1].arrived_bytes - before;
    for (uint32_t i = 0; i < SITES; i++) {
        cw_endpoint_destroy(hosts[i].endpoint);
        hosts[i].endpoint = NULL;
        free(hosts[i].memory);
    }
    tunnel_world_close(&world);
    return (double)bytes * 8e9 / (double)duration_ns;
}

/* A loss between the gates holds up all frames of a stream for a round trip or two, and then they come all at once: to
 * the hosts that is no queue. */
static void endpoints_get_what_the_tunnel_carries(void **state)
{
    static const struct {
        uint64_t rate_bps; /* of the tunnel; 0: found */
        double loss;
        double share_least;
    } table[] = {{245000000, 0, 0.95}, {245000000, 0.001, 0.9}, {245000000, 0.01, 0.82}, {0, 0.001, 0.7}};
    struct test_seeds seeds = test_seeds(1, (test_count("CW_TEST_SEEDS", SEEDS) + SEEDS_EACH - 1) / SEEDS_EACH);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
            struct tunnel_options options;
            tunnel_options_init(&options, seed);
            options.line_bps = 250000000;
            options.delay_ns = 10 * SIMULATION_MS;
            options.rate_bps = table[i].rate_bps;
            options.loss = table[i].loss;
            options.hosts_turn = hosts_turn;
            uint64_t rate_bps = options.rate_bps == 0 ? options.line_bps : options.rate_bps;
            double left_bps = left_by_headers(rate_bps, options.encrypt) * (1 - options.loss);
            double share = goodput_bps(&options, 5000 * SIMULATION_MS) / left_bps;
            printf("seed %llu, %s %llu Mb/s, loss %.1f %%: %.3f of what headers leave, %.1f Mb/s\n",
                   (unsigned long long)seed, options.rate_bps == 0 ? "found" : "known",
                   (unsigned long long)rate_bps / 1000000, options.loss * 100, share, left_bps / 1e6);
            assert_true(share >= table[i].share_least);
            assert_true(share < 1.02); /* whole puts are counted */
        }
    }
}

int main(void)
{
    return TESTS_RUN(endpoints_get_what_the_tunnel_carries);
}
