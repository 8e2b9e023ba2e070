#include "tests/simulation/mcast_world.h"
#include "tests/unit/dataplane/bridge_frames.h"

enum { SLOW_MAX_NS = 200000, REGISTRATIONS_AHEAD = 2, KINDS = 4 /* one message in this number is a long one */ };

uint32_t mcast_world_complete_late;

/* ---- what is sent ---- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t draw(const struct mcast_world *world, uint32_t sender, uint64_t message, uint64_t what)
{
    return mix(mix(mix(world->config.seed + what) + sender) + message);
}

static bool is_long(const struct mcast_world *world, uint32_t sender, uint64_t message)
{
    return world->config.long_max > 0 &&
           (world->config.is_uniform || world->config.short_max == 0 || draw(world, sender, message, 1) % KINDS == 0);
}

static uint64_t bytes_of(const struct mcast_world *world, uint32_t sender, uint64_t message)
{
    uint64_t most = is_long(world, sender, message) ? world->config.long_max : world->config.short_max;
    uint64_t drawn = draw(world, sender, message, 2);
    if (world->config.is_uniform) {
        return most;
    }
    return drawn % 8 == 0 ? most : drawn % 8 == 1 ? 0 : mix(drawn) % (most + 1);
}

/* The eight bytes at `word`: random; or, where members compress, of some messages one value again and again, of others
 * doubles that differ a little, of some with a stretch that is random among them. */
static uint64_t word_of(const struct mcast_world *world, uint32_t sender, uint64_t message, uint64_t word)
{
    uint64_t first = draw(world, sender, message, 3);
    uint64_t noise = mix(first + word);
    switch (world->config.compresses != CW_COMPRESSION_OFF ? first % 4 : 0) {
    case 1:
        return first;
    case 2:
        return word / 1000 % 2 == 1 ? noise : UINT64_C(0x3ff0000000000000) + (word << 30) + noise % 65536;
    case 3:
        return UINT64_C(0x3ff0000000000000) + (word << 30) + noise % 65536;
    default:
        return noise;
    }
}

static uint8_t byte_of(const struct mcast_world *world, uint32_t sender, uint64_t message, uint64_t at)
{
    return (uint8_t)(word_of(world, sender, message, at / 8) >> (at % 8 * 8));
}

static uint32_t tag_of(const struct mcast_world *world, uint32_t sender, uint64_t message)
{
    return (uint32_t)draw(world, sender, message, 4);
}

static uint8_t *source_of(struct mcast_world *world, uint32_t sender, uint64_t message)
{
    uint8_t **source = &world->sources[sender * world->config.messages + message];
    uint64_t bytes = bytes_of(world, sender, message);
    if (*source == NULL) {
        *source = malloc(bytes + 1);
        for (uint64_t at = 0; at < bytes; at++) {
            (*source)[at] = byte_of(world, sender, message, at);
        }
    }
    return *source;
}

static void fault(struct mcast_member *member, uint32_t sender, const char *what)
{
    struct mcast_world *world = member->world;
    if (world->faulty++ == 0) {
        snprintf(world->fault, sizeof(world->fault), "member %u, message %llu of member %u: %s", member->index,
                 (unsigned long long)member->from[sender].next, sender, what);
    }
}

/* ---- a member at work ---- */

static void post(struct mcast_member *member)
{
    struct mcast_world *world = member->world;
    while (member->index < world->config.senders && member->posted < world->config.messages) {
        uint32_t message = member->posted;
        const uint8_t *source = source_of(world, member->index, message);
        uint64_t bytes = bytes_of(world, member->index, message);
        uint64_t head_bytes = message % (CW_MCAST_INLINE_MAX + 1);
        head_bytes = head_bytes < bytes ? head_bytes : bytes;
        struct cw_mcast_put put = {
            .head = source,
            .head_bytes = (uint32_t)head_bytes,
            .data = source + head_bytes,
            .bytes = bytes - head_bytes,
            .lane_tag = tag_of(world, member->index, message),
            .is_long = is_long(world, member->index, message),
            .element = message % 3 == 0 ? CW_ELEMENT_BYTES : CW_ELEMENT_DOUBLE,
            .context = message,
            .flags = CW_MCAST_SIGNAL,
        };
        if (cw_mcast_send(member->group, &put) != CW_OK) {
            return;
        }
        member->sent_ns[member->posted++] = sim_hosts_now(&world->hosts);
    }
}

static uint8_t *registered_at(const struct mcast_member *member, uint32_t sender, uint64_t message)
{
    return member->from[sender].buffer + message % (REGISTRATIONS_AHEAD + 1) * (member->world->config.long_max + 1);
}

/* Registers memory for the next long messages of each sender. A slow one takes its time. */
static void register_ahead(struct mcast_member *member)
{
    struct mcast_world *world = member->world;
    for (uint32_t sender = 0; sender < world->config.senders; sender++) {
        uint64_t *at = &member->from[sender].registered;
        if (sender == member->index || !world->live[sender]) {
            continue;
        }
        while (*at < world->config.messages && *at < member->from[sender].next + REGISTRATIONS_AHEAD) {
            if (is_long(world, sender, *at)) {
                uint8_t *to = registered_at(member, sender, *at);
                to[world->config.long_max] = 0x77;
                if (cw_mcast_register(member->group, sender, to, world->config.long_max, *at) != CW_OK) {
                    break;
                }
            }
            ++*at;
        }
    }
}

/* An arrival, as the handler reports it. */
struct arrival {
    uint32_t sender, lane_tag;
    uint64_t bytes;
    const void *data; /* NULL: in a registration */
    uint64_t registration;
    int status;
};

static void arrival_receive(struct mcast_member *member, const struct arrival *arrival)
{
    struct mcast_world *world = member->world;
    uint32_t sender = arrival->sender;
    uint64_t message = member->from[sender].next;
    bool is_registered = arrival->data == NULL;
    if (sender >= world->config.senders || message >= world->config.messages) {
        fault(member, sender, "nothing more may come");
        return;
    }
    const uint8_t *data = is_registered ? registered_at(member, sender, message) : arrival->data;
    if (is_registered != is_long(world, sender, message) || arrival->bytes != bytes_of(world, sender, message) ||
        arrival->lane_tag != tag_of(world, sender, message) || arrival->status != CW_OK) {
        fault(member, sender, "it is another one");
    } else if (is_registered && arrival->registration != message) {
        fault(member, sender, "it is in another registration");
    } else if (memcmp(data, source_of(world, sender, message), arrival->bytes) != 0) {
        fault(member, sender, "bytes are wrong");
    } else if (is_registered && data[world->config.long_max] != 0x77) {
        fault(member, sender, "bytes behind the registration were written");
    }
    member->from[sender].next++;
}

static void message_receive(void *context, uint32_t sender, uint32_t lane_tag, const void *data, uint64_t bytes)
{
    struct mcast_member *member = context;
    member->heard++;
    member->heard_bytes += bytes;
    arrival_receive(member, &(struct arrival){.sender = sender, .lane_tag = lane_tag, .data = data, .bytes = bytes});
}

static void long_arrived(void *context, uint32_t sender, uint32_t lane_tag, uint64_t bytes, uint64_t registration,
                         int status)
{
    arrival_receive(
        context,
        &(struct arrival){
            .sender = sender, .lane_tag = lane_tag, .bytes = bytes, .registration = registration, .status = status});
}

static void message_complete(void *context, uint64_t put_context, int status)
{
    struct mcast_member *member = context;
    if (member == NULL) { /* its group has been shut */
        assert_int_equal(put_context, mcast_world_complete_late++);
        return;
    }
    if (put_context != member->completed || status != CW_OK) {
        fault(member, member->index, "it is complete before others, or with an error");
    }
    member->done_ns[member->completed++] = sim_hosts_now(&member->world->hosts);
}

static void laggard_named(void *context, uint32_t laggard)
{
    struct mcast_member *member = context;
    member->laggards++;
    member->laggard = laggard;
}

static void member_unreached(void *context, uint32_t unreached)
{
    struct mcast_member *member = context;
    member->unreached = unreached;
    member->unreached_ns = sim_hosts_now(&member->world->hosts);
}

static void work(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct mcast_member *member = context;
    if (member->world->config.is_slow) {
        host->holds_events = (member->random = mix(member->random)) % 4 == 0;
        host->again_ns = host->holds_events ? now_ns + member->random % SLOW_MAX_NS : 0;
    }
    if (member->group != NULL) {
        register_ahead(member);
        post(member);
    }
}

/* ---- life ---- */

struct mcast_world_config mcast_world_config_of(uint32_t members)
{
    struct mcast_world_config config = {
        .seed = 1,
        .members = members,
        .senders = 1,
        .messages = 20,
        .short_max = 4096,
        .long_max = 40000,
        .node = sim_hosts_config_of(members).node,
    };
    cw_mcast_config_init(&config.mcast);
    config.mcast.lag_ns = 20 * SIMULATION_MS;
    return config;
}

uint64_t mcast_world_group(const struct mcast_world *world)
{
    return mix(world->config.seed) | 1;
}

static void group_open(struct mcast_member *member)
{
    struct mcast_world *world = member->world;
    const struct mcast_world_config *config = &world->config;
    uint32_t *peers = sim_hosts_peers(&world->hosts, member->index, config->members);
    struct cw_mcast_group_config group = {
        .id = mcast_world_group(world),
        .member_count = config->members,
        .self = member->index,
        .peers = peers,
        .context = member,
        .ipv4 = GROUP_IPV4,
        .arity = config->arity,
        .delivery = config->delivery,
        .by_device = config->verbs != NULL,
        .epoch = 1,
    };
    assert_int_equal(cw_mcast_open(member->mcast, &group, &member->group, NULL, 0), CW_OK);
    free(peers);
    if (world->epoch > 1) {
        assert_int_equal(cw_mcast_change(member->group, world->epoch, world->live), CW_OK);
    }
}

static void member_create(struct mcast_world *world, uint32_t index)
{
    const struct mcast_world_config *config = &world->config;
    struct mcast_member *member = &world->members[index];
    char error[200] = "";
    *member = (struct mcast_member){
        .world = world,
        .index = index,
        .from = calloc(config->members, sizeof(struct mcast_sender)),
        .sent_ns = calloc(config->messages, sizeof(uint64_t)),
        .done_ns = calloc(config->messages, sizeof(uint64_t)),
        .random = mix(config->seed + index),
        .unreached = UINT32_MAX,
    };
    for (uint32_t sender = 0; sender < config->senders && config->long_max > 0; sender++) {
        member->from[sender].buffer = malloc((REGISTRATIONS_AHEAD + 1) * (config->long_max + 1));
    }
    struct cw_mcast_config mcast = config->mcast;
    mcast.handler = (struct cw_mcast_handler){.message = message_receive,
                                              .arrived = long_arrived,
                                              .complete = message_complete,
                                              .laggard = laggard_named,
                                              .unreached = member_unreached};
    mcast.flood_ipv4 = FLOOD_IPV4;
    mcast.keeps_flood_address = index == 0;
    const struct cw_compression compression = {.mode = config->compresses};
    assert_int_equal(cw_endpoint_compress(world->hosts.list[index].endpoint, &compression), CW_OK);
    int status = cw_mcast_create(&mcast, world->hosts.list[index].endpoint, &member->mcast, error, sizeof(error));
    assert_true_msg(status == CW_OK, "%s: %s", cw_status_text(status), error);
}

/* Shows switches the port for reports (RFC 2236, 3), before there is any fault. */
static void query_send(struct mcast_world *world)
{
    struct cw_link *link = cw_simulator_link_up(world->hosts.simulator, 0);
    struct cw_link_config faulty = link->config, clean = faulty;
    struct frame query = igmp_query(0);
    struct cw_transmit packet;
    clean.loss = clean.duplicate = clean.corrupt = clean.reorder = 0;
    cw_link_configure(link, &clean);
    assert_int_equal(cw_port_reserve(world->hosts.list[0].port, &packet, 1), 1);
    memcpy(packet.data, query.bytes, query.length);
    packet.length = query.length;
    assert_int_equal(cw_port_transmit(world->hosts.list[0].port, &packet, 1), 1);
    sim_hosts_run(&world->hosts, SIMULATION_MS);
    cw_link_configure(link, &faulty);
}

/* As sockets' do; devices know no common one. */
static void ports_differ(struct sim_host *host, struct cw_endpoint_config *endpoint)
{
    endpoint->group_port = host->node % 2 == 0 ? 0 : (uint16_t)(40000 + host->node);
}

void mcast_world_create(struct mcast_world *world, const struct mcast_world_config *config)
{
    struct sim_hosts_config hosts = sim_hosts_config_of(config->members);
    hosts.seed = config->seed;
    hosts.node = config->node;
    hosts.mtu_bytes = config->mtu_bytes != 0 ? config->mtu_bytes : hosts.mtu_bytes;
    hosts.memory_bytes = 64;
    hosts.learning = config->learning;
    hosts.verbs = config->verbs;
    hosts.prepare = config->verbs != NULL ? ports_differ : NULL;
    hosts.multicast = config->multicast;
    hosts.switches = config->switches > 0 ? config->switches : 1;
    *world = (struct mcast_world){
        .config = *config,
        .members = calloc(config->members, sizeof(struct mcast_member)),
        .sources = calloc((size_t)config->senders * config->messages, sizeof(uint8_t *)),
        .live = calloc(config->members, sizeof(bool)),
        .epoch = config->outsiders > 0 ? 2 : 1,
    };
    simulation_hosts(&world->hosts, &hosts);
    if (config->learning && config->switches > 1) {
        query_send(world);
    }
    for (uint32_t index = 0; index < config->members; index++) {
        member_create(world, index);
        world->live[index] = index < config->members - config->outsiders;
    }
    for (uint32_t index = 0; index < config->members; index++) {
        struct sim_host *host = &world->hosts.list[index];
        if (world->live[index]) {
            group_open(&world->members[index]);
        }
        sim_host_begin(host, work, &world->members[index]);
    }
}

static void member_dispose(struct mcast_member *member)
{
    for (uint32_t sender = 0; sender < member->world->config.senders; sender++) {
        free(member->from[sender].buffer);
    }
    free(member->from);
    free(member->sent_ns);
    free(member->done_ns);
}

void mcast_world_destroy(struct mcast_world *world)
{
    for (uint32_t index = 0; index < world->config.members; index++) {
        cw_mcast_destroy(world->members[index].mcast);
        member_dispose(&world->members[index]);
    }
    sim_hosts_destroy(&world->hosts);
    for (size_t i = 0; i < (size_t)world->config.senders * world->config.messages; i++) {
        free(world->sources[i]);
    }
    free(world->members);
    free(world->sources);
    free(world->live);
    *world = (struct mcast_world){0};
}

/* ---- time ---- */

static bool is_done(const struct mcast_world *world)
{
    for (uint32_t sender = 0; sender < world->config.senders; sender++) {
        if (!world->live[sender]) {
            continue;
        }
        if (world->members[sender].completed < world->config.messages) {
            return false;
        }
        for (uint32_t index = 0; index < world->config.members; index++) {
            const struct mcast_member *member = &world->members[index];
            if (index != sender && world->live[index] && member->from[sender].next < world->config.messages) {
                return false;
            }
        }
    }
    return true;
}

bool mcast_world_run(struct mcast_world *world, uint64_t limit_ns)
{
    enum { STEPS = 64 };
    uint64_t end_ns = sim_hosts_now(&world->hosts) + limit_ns;
    while (!is_done(world) && world->faulty == 0) {
        for (int step = 0; step < STEPS; step++) {
            if (sim_hosts_now(&world->hosts) >= end_ns || !cw_simulator_step(world->hosts.simulator)) {
                return is_done(world);
            }
        }
    }
    return world->faulty == 0;
}

/* ---- faults ---- */

void mcast_world_kill(struct mcast_world *world, uint32_t member)
{
    cw_mcast_destroy(world->members[member].mcast);
    world->members[member].mcast = NULL;
    world->members[member].group = NULL;
    sim_hosts_crash(&world->hosts, member);
}

static void all_notify(struct mcast_world *world, uint64_t spread_ns)
{
    uint64_t drawn = mix(world->config.seed + world->epoch);
    for (uint32_t index = 0; index < world->config.members; index++) {
        struct mcast_member *member = &world->members[(index + drawn) % world->config.members];
        if (member->group == NULL || !world->live[member->index]) {
            continue;
        }
        if (spread_ns > 0) {
            sim_hosts_run(&world->hosts, mix(drawn + index) % (spread_ns / world->config.members + 1));
        }
        assert_int_equal(cw_mcast_change(member->group, world->epoch, world->live), CW_OK);
        sim_host_wake(&world->hosts.list[member->index]);
    }
}

void mcast_world_exclude(struct mcast_world *world, uint32_t member, uint64_t spread_ns)
{
    world->epoch++;
    world->live[member] = false;
    all_notify(world, spread_ns);
}

struct cw_mcast_counters mcast_world_counters(const struct mcast_world *world)
{
    struct cw_mcast_counters sum = {0};
    for (uint32_t index = 0; index < world->config.members; index++) {
        if (world->members[index].mcast == NULL) {
            continue;
        }
        struct cw_mcast_counters one = cw_mcast_counters(world->members[index].mcast);
        const uint64_t *from = (const uint64_t *)&one;
        uint64_t *to = (uint64_t *)&sum;
        for (size_t i = 0; i < sizeof(sum) / sizeof(uint64_t); i++) {
            to[i] += from[i];
        }
    }
    return sum;
}

/* The progress of all members. */
static void print(const struct mcast_world *world)
{
    const struct mcast_world_config *config = &world->config;
    struct cw_mcast_counters counters = mcast_world_counters(world);
    printf("%u members, %u senders, %u messages, short %llu (%u slots), long %llu, queue %u, arity %u, spread %d, "
           "epoch %u, at %.3f ms\n",
           config->members, config->senders, config->messages, (unsigned long long)config->short_max,
           config->mcast.slot_count, (unsigned long long)config->long_max, config->mcast.queue_max, config->arity,
           config->delivery, world->epoch, (double)sim_hosts_now(&world->hosts) / 1e6);
    const uint64_t *value = (const uint64_t *)&counters;
    for (size_t i = 0; i < sizeof(counters) / sizeof(uint64_t); i++) {
        printf("%llu ", (unsigned long long)value[i]);
    }
    printf("(counters in the order of struct cw_mcast_counters)\n");
    for (uint32_t sender = 0; sender < config->senders; sender++) {
        if (!world->live[sender] || world->members[sender].group == NULL) {
            continue;
        }
        struct cw_mcast_stream_info info = cw_mcast_stream(world->members[sender].group);
        printf(
            "sender %u: posted %u, complete %u, window %u, in flight %u, round trip %llu us, laggard %d; others want",
            sender, world->members[sender].posted, world->members[sender].completed, info.window_packets,
            info.in_flight_packets, (unsigned long long)info.round_trip_ns / 1000, (int)info.laggard);
        for (uint32_t index = 0; index < config->members; index++) {
            printf(world->live[index] ? " %llu" : " -", (unsigned long long)world->members[index].from[sender].next);
        }
        printf("\n");
    }
}

void mcast_world_finish(struct mcast_world *world, uint64_t limit_ns)
{
    bool is_complete = mcast_world_run(world, limit_ns);
    assert_true_msg(world->faulty == 0, "seed %llu: %s", (unsigned long long)world->config.seed, world->fault);
    if (!is_complete) {
        print(world);
        fail_msg("seed %llu: not complete within %llu ms", (unsigned long long)world->config.seed,
                 (unsigned long long)(limit_ns / SIMULATION_MS));
    }
}

uint64_t mcast_world_counted(const struct mcast_world *world, enum cw_counter counter)
{
    uint64_t sum = 0;
    for (uint32_t member = 0; member < world->config.members; member++) {
        sum += cw_endpoint_counter(world->hosts.list[member].endpoint, counter);
    }
    return sum;
}

bool mcast_packet_forge(struct cw_endpoint *from, uint32_t group_ipv4, struct cw_extension_header header,
                        const struct cw_wire_key *key, const void *payload, uint32_t bytes)
{
    struct cw_wire_receiver receiver;
    uint8_t *at = cw_extension_stage(from);
    if (at == NULL) {
        return false;
    }
    memcpy(at, payload, bytes);
    header.checksum = cw_wire_checksum(0, at, bytes);
    cw_extension_group(from, group_ipv4, CW_CARRIER_PORT, &receiver);
    cw_extension_finish(from, &receiver, &header, bytes, key);
    cw_extension_flush(from);
    return true;
}
