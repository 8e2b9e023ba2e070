/* Hostile multicast: a member that holds the keys writes anything, well signed, and others do, badly signed. Nothing is
 * written outside of slots and registrations (guards, sanitizers), and each member stays usable. */
#include "tests/fuzz/fuzz.h"

#include "dataplane/codec/codec.h"
#include "mcast/packet.h"
#include "tests/simulation/mcast_world.h"

enum { MEMBERS = 4, HOSTILE = 3, PACKETS = 500, PAYLOAD_MAX = 1400, BYTES_MAX = 1 << 15 };

static struct fuzz_input input;
static struct cw_mcast_counters seen;
static uint64_t chunks;

static uint64_t below(uint64_t bound)
{
    return fuzz_below(&input, bound);
}

/* Numbers that are right, nearly right, and wrong. */
static uint64_t near(uint64_t value)
{
    switch (below(6)) {
    case 0:
        return below(UINT64_MAX);
    case 1:
        return value + below(5000);
    case 2:
        return UINT64_MAX - below(4);
    default:
        return value + below(4);
    }
}

/* A chunk that a codec has made, and then perhaps damaged; or anything at all. */
static uint32_t chunk_write(uint8_t *at)
{
    static struct cw_codec_scratch *scratch;
    uint64_t source[256];
    uint32_t taken = 0;
    struct cw_mcast_chunk *chunk = (struct cw_mcast_chunk *)at;
    uint32_t head_bytes = (uint32_t)(below(CW_MCAST_INLINE_MAX));
    enum cw_codec codec = CW_CODEC_RUN + (enum cw_codec)(below(CW_CODECS - CW_CODEC_RUN));
    uint64_t noise = below(2) == 0 ? 0 : 255;
    scratch = scratch == NULL ? cw_codec_scratch_create() : scratch;
    for (size_t i = 0; i < 256; i++) {
        source[i] = UINT64_C(0x3ff0000000000000) + (codec == CW_CODEC_RUN ? 0 : i << 20 | (below(256) & noise));
    }
    struct cw_codec_plan plan = cw_codec_plan(scratch, codec, CW_ELEMENT_DOUBLE, source, sizeof(source));
    uint32_t bytes =
        cw_codec_fill(scratch, plan, source, sizeof(source), at + sizeof(*chunk) + head_bytes, 900, &taken);
    *chunk = (struct cw_mcast_chunk){(uint16_t)taken, (uint16_t)head_bytes, plan.codec, plan.parameter, 0};
    uint32_t all = (uint32_t)sizeof(*chunk) + head_bytes + bytes;
    for (uint64_t damages = below(3); damages > 0; damages--) {
        at[below(2) == 0 ? below(sizeof(*chunk)) : below(all)] = (uint8_t)below(256);
    }
    return below(8) == 0 ? (uint32_t)(below(all)) : all;
}

static uint32_t payload_write(uint8_t *at, uint8_t type, uint64_t id)
{
    union {
        struct cw_mcast_prefix prefix;
        struct cw_mcast_data data;
        struct cw_mcast_state state;
        struct cw_mcast_ack ack;
        struct cw_mcast_nak nak;
        uint8_t bytes[PAYLOAD_MAX];
    } *packet = (void *)at;
    fuzz_fill(&input, packet->bytes, PAYLOAD_MAX);
    packet->prefix = (struct cw_mcast_prefix){
        .group_high = (uint32_t)(id >> 32),
        .author = below(20) == 0 ? (uint16_t)below(1 << 16) : HOSTILE,
        .sender = below(20) == 0  ? (uint16_t)below(1 << 16)
                  : below(2) == 0 ? HOSTILE
                                  : (uint16_t)(below(MEMBERS)),
        .epoch = below(4) == 0 ? (uint32_t)near(1) : 1,
    };
    switch (type) {
    case CW_MCAST_DATA:
        packet->data.flags &= CW_MCAST_LONG | CW_MCAST_PACKED;
        packet->data.place = (uint32_t)near(0);
        packet->data.message = near(below(8));
        packet->data.position = near(0);
        packet->data.total = near(below(3000));
        if ((packet->data.flags & CW_MCAST_PACKED) != 0) {
            const struct cw_mcast_chunk *chunk = (const struct cw_mcast_chunk *)(&packet->data + 1);
            uint32_t chunk_bytes = chunk_write(at + sizeof(packet->data));
            packet->data.total = near((uint64_t)chunk->raw_bytes + chunk->head_bytes);
            return sizeof(packet->data) + chunk_bytes;
        }
        return sizeof(packet->data) + (uint32_t)(below(1000));
    case CW_MCAST_STATE:
        packet->state.flags = 0;
        packet->state.next = near(CW_MCAST_NUMBER_FIRST);
        return sizeof(packet->state);
    case CW_MCAST_ACK:
        packet->ack.received = near(CW_MCAST_NUMBER_FIRST + below(100));
        packet->ack.released = near(below(20));
        packet->ack.registered = near(below(20));
        return sizeof(packet->ack);
    default:
        packet->nak.from = near(CW_MCAST_NUMBER_FIRST);
        packet->nak.run_count = below(4) == 0 ? (uint32_t)near(0) : (uint32_t)(below(CW_MCAST_RUNS_MAX));
        return sizeof(packet->nak) + (uint32_t)(below(CW_MCAST_RUNS_MAX)) * 4;
    }
}

static void hostile_send(struct mcast_world *world, uint64_t id)
{
    struct cw_endpoint *endpoint = world->hosts.list[HOSTILE].endpoint;
    struct cw_wire_key key;
    uint64_t payload[PAYLOAD_MAX / 8];
    uint8_t type = (uint8_t)(CW_MCAST_DATA + below(5));
    uint32_t bytes = payload_write((uint8_t *)payload, type, id);
    bytes = below(10) == 0 ? (uint32_t)(below(PAYLOAD_MAX)) : bytes;
    struct cw_extension_header header = {
        .type = type,
        .flags = below(2) == 0 ? CW_WIRE_ACK_NOW : 0,
        .flow = (uint32_t)id,
        .number = type == CW_MCAST_DATA ? near(CW_MCAST_NUMBER_FIRST + below(64)) : below(100000),
        .echo = (uint32_t)below(UINT32_MAX),
        .has_echo = true,
    };
    cw_extension_key(endpoint, id, below(50) == 0 ? 0 : HOSTILE, &key);
    (void)mcast_packet_forge(endpoint, GROUP_IPV4, header, &key, payload, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mcast_world world;
    input = (struct fuzz_input){data, size};
    struct mcast_world_config config = mcast_world_config_of(MEMBERS);
    config.seed = 1 + below(1 << 16);
    config.senders = MEMBERS - 1;
    config.messages = PACKETS;
    if (below(2) == 0) { /* messages wait for room */
        config.mcast.event_count_max = 1;
    }
    mcast_world_create(&world, &config);
    world.hosts.list[HOSTILE].work = NULL;
    uint64_t id = mcast_world_group(&world);
    for (uint32_t i = 0; i < PACKETS && input.left > 0; i++) {
        hostile_send(&world, id);
        sim_hosts_run(&world.hosts, below(3000));
    }
    struct cw_mcast_counters one = mcast_world_counters(&world);
    seen.drop_malformed += one.drop_malformed;
    seen.drop_tag += one.drop_tag;
    seen.drop_group += one.drop_group;
    seen.acks_in += one.acks_in;
    seen.naks_in += one.naks_in;
    for (uint32_t member = 0; member < MEMBERS; member++) {
        chunks += cw_endpoint_counter(world.hosts.list[member].endpoint, CW_COUNTER_CHUNKS_IN);
    }
    mcast_world_destroy(&world);
    return 0;
}

static void end(uint64_t inputs)
{
    assert_true(seen.drop_malformed > 0 && seen.drop_tag > 0 && seen.drop_group > 0);
    assert_true(seen.acks_in > 0 && seen.naks_in > 0);
    assert_true(chunks > inputs * PACKETS / 5000);
}

const struct fuzz_target fuzz_target = {.bytes_max = BYTES_MAX, .packets = PACKETS, .end = end};
