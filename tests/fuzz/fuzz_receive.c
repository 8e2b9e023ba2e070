/* Hostile packets into a live endpoint with signed or sealed sessions. Real packets of every type are changed. Those
 * without the key are all rejected and counted. Others are signed or sealed again, as from a peer of the job that has
 * gone mad: there is no crash and no store outside of granted memory, and another peer is served. */
#include "tests/fuzz/fuzz.h"
#include "tests/simulation/attack.h"

enum {
    FRAMES_MAX = 2000,
    PACKETS = 400,
    GRANTED_BYTES = 16384,
    CLOSED_BYTES = 4096,
    TOKENS = 6,
    BYTES_MAX = 1 << 15,
    GUARD_BYTES = 8192,
    GUARD = 0x5c,
};

/* Memory around what the target grants. */
struct grounds {
    uint8_t before[GUARD_BYTES];
    uint8_t granted[GRANTED_BYTES];
    uint8_t between[GUARD_BYTES];
    uint8_t closed[CLOSED_BYTES]; /* may be read, not written */
    uint8_t gone[CLOSED_BYTES];   /* was registered once */
    uint8_t after[GUARD_BYTES];
};

static struct sim_hosts hosts;
static struct cw_endpoint *target;
static struct fuzz_input input;
static struct grounds *grounds;
static struct frame *originals; /* as they came from the madman */
static struct frame *plain;     /* the same opened: an ordinary header, and the payload */
static uint32_t frame_count;
static uint64_t tokens[TOKENS]; /* that a packet may name */
static uint64_t seal_count;     /* of the packets that the madman has sealed */
static bool is_sealed;
static struct sim_stream stream;
static struct burst burst;
static uint32_t seen_types; /* bits by enum cw_wire_type, over all inputs */
static uint32_t seen_kinds; /* bits by enum cw_wire_frame_kind, of first frames */
static uint64_t sealed_inputs;

static struct cw_flow *flow_of(void)
{
    return flow_from(target, MADMAN_IPV4);
}

static uint64_t below(uint64_t bound)
{
    return fuzz_below(&input, bound);
}

static bool chance(uint32_t percent)
{
    return fuzz_chance(&input, percent);
}

/* ---- the world before the attack: the target, with small limits, a mad peer, and a correct one ---- */

static void three_hosts(uint64_t seed, enum cw_encryption encryption)
{
    struct sim_hosts_config config = sim_hosts_config_of(3);
    config.seed = seed;
    config.memory_bytes = 1 << 16;
    config.node.down.loss = 0.02; /* so that there are probes and reports of losses */
    config.endpoint.encryption = encryption;
    config.endpoint.pool_slot_count = 6;
    config.endpoint.reassembly_count_max = 64;
    config.endpoint.operation_count_max = 256;
    config.endpoint.event_count_max = 256;
    config.endpoint.get_count_max = 32;
    config.endpoint.window_block_count = (uint32_t)(8 + seed % 8);
    config.endpoint.failure_timeout_ns = 4000 * SIMULATION_MS;
    simulation_hosts(&hosts, &config);
}

static void small_talk(uint32_t from, uint32_t to)
{
    struct sim_host *host = &hosts.list[from];
    uint32_t peer = sim_hosts_peer(&hosts, from, to);
    for (uint32_t i = 0; i < 12; i++) {
        struct cw_message message = {.peer = peer, .source = {.contiguous = {.data = host->memory, .bytes = 30 * i}}};
        struct cw_get get = {
            .peer = peer, .region = hosts.list[to].token, .bytes = 700 * i, .local_region = host->token};
        (void)cw_message_send(host->endpoint, &message);
        (void)cw_get(host->endpoint, &get);
    }
    sim_host_wake(host);
}

/* Records the packets from the madman. */
static void tap(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node, const uint8_t *frame,
                uint32_t length)
{
    if (kind != CW_SIMULATOR_ARRIVAL || node != TARGET || frame[29] != MADMAN + 1 || length > FRAME_BYTES ||
        frame_count == FRAMES_MAX) {
        return;
    }
    struct frame *opened = &plain[frame_count];
    struct cw_wire_header *header = header_of(opened->bytes);
    originals[frame_count].length = opened->length = length;
    memcpy(originals[frame_count].bytes, frame, length);
    memcpy(opened->bytes, frame, length);
    if (is_sealed && header->type > CW_WIRE_HELLO_REPLY) {
        const struct cw_flow *flow = flow_of();
        uint64_t count = ((const struct cw_wire_sealed *)header)->count;
        if (flow == NULL || flow->state != CW_PEER_ESTABLISHED ||
            !packet_crypt(flow, target->config.job_key, CW_AEAD_UNSEAL, count, opened->bytes, length)) {
            return; /* the first of a session, with unknown keys */
        }
        assert_true(cw_wire_sealed_restore(header, cw_wire_sealed_bytes(header)));
    }
    seen_types |= 1u << header->type;
    if (header->type == CW_WIRE_DATA) {
        seen_kinds |= 1u << opened->bytes[CW_WIRE_OVERHEAD_BYTES];
    }
    frame_count++;
}

static uint64_t grant(void *base, uint64_t bytes, uint32_t rights)
{
    uint64_t token;
    assert_int_equal(cw_region_register(target, base, bytes, rights, &token), CW_OK);
    return token;
}

/* A put to a closed region, so that there is a void frame too. */
static void post_rejected(uint32_t peer)
{
    struct sim_host *madman = &hosts.list[MADMAN];
    for (uint32_t i = 0; i < 3; i++) {
        struct cw_put put = {.peer = peer,
                             .region = tokens[1],
                             .offset = 10000 * i,
                             .source = {.contiguous = {.data = madman->memory, .bytes = 100 + 2000 * i}}};
        assert_int_equal(cw_put(madman->endpoint, &put), CW_OK);
    }
}

static void world_create(uint64_t seed)
{
    three_hosts(seed, is_sealed ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF);
    target = hosts.list[TARGET].endpoint;
    frame_count = 0;
    seal_count = CW_SEAL_COUNT_MAX / 2;
    memset(grounds, GUARD, sizeof(*grounds));
    tokens[0] = grant(grounds->granted, GRANTED_BYTES, CW_REGION_WRITE);
    tokens[1] = grant(grounds->closed, CLOSED_BYTES, CW_REGION_READ);
    tokens[2] = grant(grounds->gone, CLOSED_BYTES, CW_REGION_WRITE | CW_REGION_READ);
    assert_int_equal(cw_region_deregister(target, tokens[2]), CW_OK);
    tokens[3] = hosts.list[TARGET].token;
    tokens[4] = target->messages.region->token;
    tokens[5] = 12345;
    if (seed % 4 == 0) { /* a chunk that is none ends the session: not in every world */
        const struct cw_compression compression = {.mode = CW_COMPRESSION_ON};
        assert_int_equal(cw_endpoint_compress(hosts.list[MADMAN].endpoint, &compression), CW_OK);
    }
    cw_simulator_tap_set(hosts.simulator, tap, NULL);
    small_talk(MADMAN, TARGET);
    small_talk(TARGET, MADMAN);
    sim_stream_start(&hosts, &stream, MADMAN, TARGET, 3000, UINT64_MAX);
    stream.under_way_max = 4;
    post_rejected(stream.peer);
    cw_simulator_run_until(hosts.simulator, 3 * SIMULATION_MS);
    assert_true(frame_count > 20);
}

/* ---- packets without the key ---- */

static void inject(const uint8_t *bytes, uint32_t length)
{
    burst_add(&burst, bytes, length);
    burst_let_in(&burst, target);
}

/* Changed and not signed: rejected, for any change. */
static void attack_unsigned(void)
{
    const struct frame *original = &originals[below(frame_count)];
    struct frame changed = *original;
    uint8_t *packet = changed.bytes + CW_WIRE_NETWORK_BYTES;
    switch (below(10)) {
    case 0:
        changed.length = (uint32_t)below(changed.length);
        break;
    case 1: /* all, or all except the fields that find the key */
        fuzz_fill(&input, packet + (chance(50) ? 8 : 0), changed.length - CW_WIRE_NETWORK_BYTES - 8);
        break;
    case 2: /* another length, which is written outside as well */
        changed.length = (uint32_t)fuzz_between(&input, CW_WIRE_OVERHEAD_BYTES, 400);
        network_write(changed.bytes, target, MADMAN_IPV4, changed.length - CW_WIRE_OVERHEAD_BYTES);
        break;
    default:
        fuzz_change(&input, changed.bytes, CW_WIRE_NETWORK_BYTES, changed.length);
    }
    if (changed.length == original->length &&
        memcmp(packet, original->bytes + CW_WIRE_NETWORK_BYTES, changed.length - CW_WIRE_NETWORK_BYTES) == 0) {
        packet[below(changed.length - CW_WIRE_NETWORK_BYTES)] ^= 1;
    }
    uint64_t refused = rejected_count(target);
    uint64_t arrived = cw_endpoint_counter(target, CW_COUNTER_PUTS_ARRIVED);
    inject(changed.bytes, changed.length);
    assert_int_equal(rejected_count(target), refused + 1);
    assert_int_equal(cw_endpoint_counter(target, CW_COUNTER_PUTS_ARRIVED), arrived);
}

/* Noise alone, or noise in the headers below ours. */
static void attack_noise(void)
{
    struct frame frame = originals[below(frame_count)];
    if (chance(50)) {
        frame.length = (uint32_t)below(200);
        fuzz_fill(&input, frame.bytes, frame.length);
    } else {
        fuzz_change(&input, frame.bytes, 0, CW_WIRE_NETWORK_BYTES);
    }
    inject(frame.bytes, frame.length);
}

/* ---- packets with the key ---- */

/* Puts something plausible into the fields that matter. */
static void change_fields(uint8_t *payload, uint32_t payload_bytes, uint8_t type)
{
    static const uint64_t offsets[] = {
        0, 1, CLOSED_BYTES - 1, GRANTED_BYTES - 100, GRANTED_BYTES, 1ull << 32, UINT64_MAX - 50, 1024};
    if (type == CW_WIRE_DATA && payload_bytes >= sizeof(struct cw_wire_put)) {
        struct cw_wire_put put;
        memcpy(&put, payload, sizeof(put));
        put.frame.kind = chance(30) ? (uint8_t)fuzz_between(&input, CW_FRAME_PUT, CW_FRAME_CHUNK) : put.frame.kind;
        put.token = chance(50) ? tokens[below(TOKENS)] : put.token;
        put.offset = chance(50) ? offsets[below(sizeof(offsets) / sizeof(offsets[0]))] : put.offset;
        if (chance(50)) {
            put.frame.put_number = (uint32_t)(flow_of()->receiver.puts.base + below(40) - 8);
        }
        put.predecessor = chance(20) ? (uint16_t)below(1 << 16) : put.predecessor;
        put.reply = chance(20) ? (uint16_t)below(40) : put.reply;
        memcpy(payload, &put, sizeof(put));
    }
    if (payload_bytes > 0 && chance(60)) {
        fuzz_change(&input, payload, 0, payload_bytes < 64 || chance(30) ? payload_bytes : 64);
    }
}

/* A data packet of frames that no sender would put together: many kinds, numbers that leap, predecessors that are not
 * there. */
static uint32_t compose(uint8_t *payload)
{
    uint64_t number = flow_of()->receiver.puts.base + below(3);
    uint32_t used = 0;
    for (uint64_t count = 1 + below(24); count > 0; count--) {
        struct cw_wire_get get = {
            .put = {.frame = {.kind = (uint8_t)fuzz_between(&input, CW_FRAME_PUT, CW_FRAME_RETURN),
                              .put_number = (uint32_t)number},
                    .predecessor = chance(50) ? (uint16_t)below(30) : 0,
                    .token = tokens[chance(90) ? 3 : below(TOKENS)],
                    .offset = 8 * below(100)},
            .bytes = below(64),
        };
        struct cw_wire_part part = {.put = get.put, .position = 0, .total = 16};
        struct cw_wire_frame *frame = &get.put.frame;
        uint8_t copy[sizeof(part) + 8] = {0};
        uint32_t bytes = sizeof(struct cw_wire_frame);
        if (frame->kind == CW_FRAME_PUT || frame->kind == CW_FRAME_GET) {
            bytes = frame->kind == CW_FRAME_PUT ? sizeof(get.put) : sizeof(get);
            get.put.reply = frame->kind == CW_FRAME_GET ? 1 : 0;
        } else if (frame->kind == CW_FRAME_VOID || frame->kind == CW_FRAME_ASK) {
            frame->length = (uint16_t)fuzz_between(&input, 1, 8);
        }
        memcpy(copy, &get, sizeof(get));
        if (frame->kind == CW_FRAME_PART) {
            part.put.frame.length = 8; /* the next bytes are its data */
            bytes = sizeof(copy);
            memcpy(copy, &part, sizeof(part));
        }
        memcpy(payload + used, copy, bytes);
        used += bytes;
        number += chance(90) ? 1 : below(3 * 8192);
    }
    return used;
}

/* The header's checksum and tag, or the seal. Returns the length of the frame with a payload of payload_bytes. */
static uint32_t packet_close(struct frame *frame, struct cw_wire_header *header, uint64_t number,
                             uint32_t payload_bytes)
{
    struct cw_flow *flow = flow_of();
    uint8_t *payload = frame->bytes + CW_WIRE_OVERHEAD_BYTES;
    if (is_sealed) {
        header->payload_bytes = chance(20) ? (uint16_t)below(1 << 16) : header->payload_bytes;
        return packet_seal(frame->bytes, target, flow, header, payload_bytes, seal_count++, target->config.job_key);
    }
    bool is_setup = header->type == CW_WIRE_HELLO || header->type == CW_WIRE_HELLO_REPLY;
    bool only_header = header->type == CW_WIRE_DATA && header->payload_bytes >= CW_WIRE_KEPT_MIN && chance(30);
    struct cw_wire_key key = flow->session.key_in;
    if (is_setup) {
        memcpy(key.bytes, target->config.job_key, sizeof(key.bytes));
    } else {
        header->flow = flow->index;
    }
    if (only_header) { /* whether the session has the same medium or not */
        header->flags |= chance(70) ? CW_WIRE_KEPT : CW_WIRE_SUMMED;
        flow->session.kept = chance(70);
    }
    uint32_t covered = only_header ? cw_wire_kept_bytes(*payload) : header->payload_bytes;
    return packet_sign(frame->bytes, target, header, number, covered, &key);
}

/* Changed by a peer that has the job's key: it may do what a peer may do, and no more. Kept for the next burst. */
static void packet_add(void)
{
    const struct cw_flow *flow = flow_of();
    struct frame frame = plain[below(frame_count)];
    uint8_t *payload = frame.bytes + CW_WIRE_OVERHEAD_BYTES;
    struct cw_wire_header header = *header_of(frame.bytes);
    if (is_sealed && header.type <= CW_WIRE_HELLO_REPLY) {
        header.type = CW_WIRE_DATA;
        header.payload_bytes = 76;
    }
    bool is_setup = header.type <= CW_WIRE_HELLO_REPLY;
    if (chance(10) && !is_setup) {
        header.type = (uint8_t)fuzz_between(&input, CW_WIRE_DATA, chance(2) ? 9 : CW_WIRE_REJECT);
    }
    bool is_data = header.type == CW_WIRE_DATA;
    uint64_t number = is_data ? flow->receiver.packets.base + below(chance(5) ? 70000 : 40)
                              : flow->receiver.control_end - 1 + below(3);
    if (is_data && chance(20)) {
        header.payload_bytes = (uint16_t)compose(payload);
        network_write(frame.bytes, target, MADMAN_IPV4, header.payload_bytes);
    } else {
        change_fields(payload, header.payload_bytes, header.type);
    }
    number = is_setup ? 0 : number;
    if (!is_setup) {
        header.number = (uint32_t)number;
        header.acknowledged = (uint32_t)(flow->sender.sent.base + below(chance(5) ? 3 : 1));
        header.acknowledged = chance(5) ? (uint32_t)below(UINT32_MAX) : header.acknowledged;
    }
    if (header.type == CW_WIRE_ACK && chance(50)) {
        uint32_t from = (uint32_t)(flow->sender.sent.base + below(20) - 4);
        memcpy(payload, &from, sizeof(from));
    }
    header.echo = chance(10) ? (uint32_t)below(UINT32_MAX) : header.echo;
    header.timestamp = chance(10) ? (uint32_t)below(UINT32_MAX) : header.timestamp;
    uint32_t payload_bytes = is_sealed && chance(10) ? (uint32_t)below(30) : header.payload_bytes;
    frame.length = packet_close(&frame, &header, number, payload_bytes);
    burst_add(&burst, frame.bytes, frame.length);
}

/* A sealed set-up packet with the job's key, and anything in it. */
static void sealed_setup_add(void)
{
    uint8_t frame[FRAME_BYTES] = {0};
    struct cw_wire_sealed_setup setup = {
        .type = chance(70) ? CW_WIRE_HELLO : CW_WIRE_HELLO_REPLY,
        .hello = hello_next(target, below(5), flow_of()->session.local),
    };
    setup.hello.payload_bytes_max = chance(20) ? 0 : 1400;
    if (chance(50)) {
        fuzz_change(&input, (uint8_t *)&setup.hello, 0, sizeof(setup.hello));
    }
    fuzz_fill(&input, setup.nonce, sizeof(setup.nonce));
    burst_add(&burst, frame, setup_seal(frame, target, &setup, target->setup_key));
}

/* As many packets without the key, one by one, as with it, in one burst, in which the session may end. Returns how many
 * in all. */
static uint32_t attack(void)
{
    uint32_t count = chance(70) ? 1 : (uint32_t)fuzz_between(&input, 2, CW_BURST);
    for (uint32_t i = 0; i < count; i++) {
        if (chance(10)) {
            attack_noise();
        } else {
            attack_unsigned();
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_sealed && (flow_of()->state != CW_PEER_ESTABLISHED || chance(5))) {
            sealed_setup_add();
        } else {
            packet_add();
        }
    }
    burst_let_in(&burst, target);
    return 2 * count;
}

static void guard_check(const uint8_t *guard, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        assert_int_equal(guard[i], GUARD);
    }
}

static void grounds_check(void)
{
    guard_check(grounds->before, GUARD_BYTES);
    guard_check(grounds->between, (uint32_t)(sizeof(*grounds) - offsetof(struct grounds, between)));
}

static void bystander_check(void)
{
    struct sim_host *bystander = &hosts.list[BYSTANDER];
    (void)sim_stream_send(&hosts, BYSTANDER, TARGET, 2000, 10, 3000 * SIMULATION_MS);
    assert_true_msg(bystander->completed == 10 && bystander->failed == 0,
                    "seed %llu: a peer that did nothing wrong got %d of 10 puts through, %d failed",
                    (unsigned long long)hosts.config.seed, (int)bystander->completed, (int)bystander->failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = (struct fuzz_input){data, size};
    grounds = calloc(1, sizeof(*grounds));
    originals = calloc(FRAMES_MAX, sizeof(*originals));
    plain = calloc(FRAMES_MAX, sizeof(*plain));
    is_sealed = chance(50);
    sealed_inputs += is_sealed;
    world_create(below(1 << 16));
    for (uint32_t packets = 0; packets < PACKETS && input.left > 0;) {
        packets += attack();
        sim_hosts_run(&hosts, 5 * SIMULATION_US);
    }
    grounds_check();
    bystander_check();
    grounds_check();
    sim_hosts_destroy(&hosts);
    free(originals);
    free(plain);
    free(grounds);
    return 0;
}

/* Every type of packet, except the goodbye, was among the originals, and every kind of frame that may come first. */
static void end(uint64_t inputs)
{
    assert_int_equal(seen_types & 0x7e, 0x7e);
    assert_int_equal(seen_kinds & 0x55e, 0x55e);
    assert_true(sealed_inputs > inputs / 4);
}

const struct fuzz_target fuzz_target = {.bytes_max = BYTES_MAX, .packets = PACKETS, .end = end};
