/* Frames to an address that no kernel owns: random and mutated requests and answers, their checksums often repaired.
 * Answers, and the frames that get one, are compared byte by byte with a second implementation from the RFCs: ARP (826,
 * 5227), echo (792, 4443), neighbour discovery (4861, 4862). An answer is never answered itself. */
#include "tests/fuzz/fuzz.h"

#include "dataplane/limits.h"
#include "dataplane/neighbour/neighbour.h"
#include "dataplane/status.h"
#include "tests/unit/dataplane/neighbour_frames.h"

enum { FRAME_MAX = 600, HOSTS = 6, KINDS = 7, FRAMES = 2500, BYTES_MAX = 1 << 16 };

static uint64_t answered[2], limited, damaged; /* frames; answered over IPv6 and IPv4 */

/* OWN is asked; OTHER gets what OWN answers, too; the rest ask. */
enum { OWN, OTHER };

struct world {
    struct fuzz_input input;
    bool is_v4;
    struct party hosts[HOSTS];
    struct cw_neighbour_cache *own, *other;
    uint64_t now_ns;
    uint64_t owed_ns; /* as the bucket of answers has it */
};

static struct cw_neighbour_cache *cache_open(const struct world *world, uint32_t host)
{
    struct cw_neighbour_config config = {.ip = world->hosts[host].ip,
                                         .bits = world->is_v4 ? CW_IP_V4_BITS + 24 : 64,
                                         .gateway = world->hosts[HOSTS - 1].ip,
                                         .frame_bytes_max = FRAME_MAX};
    memcpy(config.mac, world->hosts[host].mac, 6);
    struct cw_neighbour_cache *neighbours = cw_neighbour_create(&config);
    assert_non_null(neighbours);
    return neighbours;
}

static void world_open(struct world *world, const uint8_t *data, size_t size)
{
    *world = (struct world){.input = {data, size}, .now_ns = 1000 * CW_NEIGHBOUR_ANSWER_NS};
    bool is_v4 = world->is_v4 = fuzz_chance(&world->input, 50);
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct cw_ip ip = {{0xfd, 0x77, [14] = 1, (uint8_t)(i + 1)}};
        world->hosts[i] =
            (struct party){.mac = {2, 0, 0, 0, 0, (uint8_t)(i + 1)}, .ip = is_v4 ? cw_ip_v4(0x0a090001 + i) : ip};
    }
    struct party group = solicited_of(&world->hosts[OWN].ip);
    uint8_t group_mac[6];
    assert_int_equal(cw_neighbour_group(&world->hosts[OWN].ip, group_mac), !is_v4);
    assert_true(is_v4 || memcmp(group_mac, group.mac, 6) == 0);
    world->own = cache_open(world, OWN);
    world->other = cache_open(world, OTHER);
}

/* ---- frames ---- */

static const struct party *host_draw(struct world *world)
{
    return &world->hosts[fuzz_below(&world->input, HOSTS)];
}

static uint32_t question_draw(struct world *world, uint8_t *frame)
{
    static const struct party nobody = {{2, 0, 0, 0, 0, 9}, {{0}}};
    struct fuzz_input *input = &world->input;
    const struct party *own = fuzz_chance(input, 90) ? &world->hosts[OWN] : host_draw(world);
    const struct party *asker = fuzz_chance(input, 5) ? &nobody : host_draw(world);
    struct party group = solicited_of(&own->ip);
    uint32_t data = (uint32_t)fuzz_below(input, FRAME_MAX - V6_ECHO_BYTES + 20);
    uint32_t type = fuzz_chance(input, 70) ? 135 : 136;
    switch (fuzz_below(input, KINDS)) {
    case 0:
        return arp_put(frame, everybody_mac, fuzz_chance(input, 70) ? 1 : 2, asker, own);
    case 1:
        return v4_echo_put(frame, 8, 64, own, asker, (uint32_t)fuzz_below(input, 65536), data);
    case 2:
        return v6_echo_put(frame, 128, 64, own, asker, (uint32_t)fuzz_below(input, 65536), data);
    case 3:
        return nd_put(frame, 135, 0, &group, &nobody, &own->ip, NULL);
    case 4:
        return nd_put(frame, type, 0x60, own, asker, type == 135 ? &own->ip : &asker->ip, NULL);
    case 5:
        return nd_put(frame, type, 0x20, own, asker, type == 135 ? &own->ip : &asker->ip, asker->mac);
    default:
        return nd_put(frame, 135, 0, &group, asker, &own->ip, asker->mac);
    }
}

/* The bytes that a header is about count most. */
static void mutate(struct world *world, uint8_t *frame, uint32_t *bytes)
{
    static const uint8_t values[] = {0, 1, 2, 0x20, 0x33, 127, 0x80, 224, 0xff};
    struct fuzz_input *input = &world->input;
    for (uint64_t wounds = fuzz_below(input, 4); wounds > 0; wounds--) {
        uint32_t at = (uint32_t)fuzz_below(input, fuzz_chance(input, 80) && *bytes > 90 ? 90 : *bytes);
        frame[at] = fuzz_chance(input, 50) ? values[fuzz_below(input, sizeof(values))]
                                           : (uint8_t)(frame[at] ^ 1u << fuzz_below(input, 8));
    }
    if (fuzz_chance(input, 10)) {
        *bytes = (uint32_t)fuzz_below(input, *bytes + 1);
    } else if (fuzz_chance(input, 10)) {
        uint32_t more = (uint32_t)fuzz_below(input, 100);
        fuzz_fill(input, frame + *bytes, more);
        *bytes += more;
    }
}

/* Of the bytes that the length fields name, as far as they exist. */
static void sign(uint8_t *frame, uint32_t bytes)
{
    uint32_t length = bytes < 20 ? 0 : 14 + ((uint32_t)frame[16] << 8 | frame[17]);
    if (bytes >= V4_ECHO_BYTES && frame[12] == 8 && frame[13] == 0) {
        v4_sign(frame, length >= V4_ECHO_BYTES && length <= bytes ? length : bytes);
    }
    length = bytes < 20 ? 0 : 54 + ((uint32_t)frame[18] << 8 | frame[19]);
    if (bytes >= V6_ECHO_BYTES && frame[12] == 0x86) {
        v6_sign(frame, length >= V6_ECHO_BYTES && length <= bytes ? length : bytes);
    }
}

static uint32_t frame_draw(struct world *world, uint8_t *frame)
{
    struct fuzz_input *input = &world->input;
    if (fuzz_chance(input, 5)) {
        uint32_t bytes = (uint32_t)fuzz_below(input, FRAME_MAX + 20);
        fuzz_fill(input, frame, bytes);
        return bytes;
    }
    uint32_t bytes = question_draw(world, frame);
    mutate(world, frame, &bytes);
    if (fuzz_chance(input, 80)) {
        sign(frame, bytes);
    }
    return bytes;
}

/* ---- the second implementation: it writes the answer to a frame, and returns its length, or 0 ---- */

static uint32_t be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t arp_answer(const struct party *own, const uint8_t *frame, uint32_t bytes, uint8_t *answer)
{
    static const uint8_t head[] = {0, 1, 8, 0, 6, 4, 0, 1}; /* Ethernet, IPv4, a request */
    struct party asker = {.ip = cw_ip_v4(0)};
    if (bytes < ARP_BYTES || memcmp(frame + 14, head, sizeof(head)) != 0 || (frame[22] & 1) != 0 ||
        memcmp(frame + 38, own->ip.bytes + 12, 4) != 0 || memcmp(frame + 28, own->ip.bytes + 12, 4) == 0) {
        return 0;
    }
    memcpy(asker.mac, frame + 22, 6);
    memcpy(asker.ip.bytes + 12, frame + 28, 4);
    return arp_put(answer, asker.mac, 2, own, &asker);
}

static uint32_t v4_answer(const struct party *own, const uint8_t *frame, uint32_t bytes, uint8_t *answer)
{
    uint32_t length = bytes < V4_ECHO_BYTES ? 0 : 14 + be16(frame + 16);
    if (length < V4_ECHO_BYTES || length > bytes || memcmp(frame, own->mac, 6) != 0 || (frame[6] & 1) != 0 ||
        frame[14] != 0x45 || (be16(frame + 20) & 0x3fff) != 0 || frame[23] != 1 || frame[34] != 8 || frame[35] != 0) {
        return 0;
    }
    bool is_nobody = frame[26] == 0 || frame[26] == 127 || frame[26] >= 224;
    if (is_nobody || memcmp(frame + 30, own->ip.bytes + 12, 4) != 0 || memcmp(frame + 26, frame + 30, 4) == 0 ||
        words_add(0, frame + 14, 20) != 0xffff || words_add(0, frame + 34, length - 34) != 0xffff) {
        return 0;
    }
    memcpy(answer, frame, length);
    ethernet_put(answer, frame + 6, own->mac, 0x0800);
    answer[22] = 64;
    memcpy(answer + 26, frame + 30, 4);
    memcpy(answer + 30, frame + 26, 4);
    answer[34] = 0;
    v4_sign(answer, length);
    return length;
}

/* The MAC address that the options of a solicitation give. False: they are broken. */
static bool nd_options(const uint8_t *frame, uint32_t length, const uint8_t **mac)
{
    for (uint32_t at = ND_BYTES; at < length; at += 8u * frame[at + 1]) {
        if (at + 8 > length || frame[at + 1] == 0 || at + 8u * frame[at + 1] > length) {
            return false;
        }
        *mac = frame[at] == 1 && frame[at + 1] == 1 && *mac == NULL ? frame + at + 2 : *mac;
    }
    return true;
}

static uint32_t nd_answer(const struct party *own, const uint8_t *frame, uint32_t length, bool is_probe, bool is_own,
                          uint8_t *answer)
{
    struct party asker = {.mac = {0x33, 0x33, [5] = 1}, .ip = {{0xff, 0x02, [15] = 1}}}; /* all nodes */
    const uint8_t *mac = NULL;
    if (length < ND_BYTES || frame[21] != 255 || memcmp(frame + 62, own->ip.bytes, 16) != 0 ||
        !nd_options(frame, length, &mac) || (is_probe && (mac != NULL || is_own))) {
        return 0;
    }
    mac = mac != NULL ? mac : frame + 6;
    if (!is_probe) {
        memcpy(asker.mac, mac, 6);
        memcpy(asker.ip.bytes, frame + 22, 16);
    }
    return (mac[0] & 1) != 0 ? 0 : nd_put(answer, 136, is_probe ? 0x20 : 0x60, &asker, own, &own->ip, own->mac);
}

static uint32_t v6_answer(const struct party *own, const uint8_t *frame, uint32_t bytes, uint8_t *answer)
{
    static const uint8_t nobody[16] = {0};
    const struct party group = solicited_of(&own->ip);
    uint32_t length = bytes < V6_ECHO_BYTES ? 0 : 54 + be16(frame + 18);
    if (length < V6_ECHO_BYTES || length > bytes || frame[14] >> 4 != 6 || frame[20] != 58 || frame[22] == 0xff ||
        frame[55] != 0 || memcmp(frame + 22, own->ip.bytes, 16) == 0 || v6_sum(frame, length) != 0xffff) {
        return 0;
    }
    bool is_own = memcmp(frame + 38, own->ip.bytes, 16) == 0, is_probe = memcmp(frame + 22, nobody, 16) == 0;
    if (frame[54] == 135 && (is_own || memcmp(frame + 38, group.ip.bytes, 16) == 0)) {
        return nd_answer(own, frame, length, is_probe, is_own, answer);
    }
    if (frame[54] != 128 || !is_own || is_probe || memcmp(frame, own->mac, 6) != 0 || (frame[6] & 1) != 0) {
        return 0;
    }
    memcpy(answer, frame, length);
    ethernet_put(answer, frame + 6, own->mac, 0x86dd);
    answer[21] = 64;
    memcpy(answer + 22, frame + 38, 16);
    memcpy(answer + 38, frame + 22, 16);
    answer[54] = 129;
    v6_sign(answer, length);
    return length;
}

static uint32_t answer_of(const struct world *world, const uint8_t *frame, uint32_t bytes, uint8_t *answer)
{
    const struct party *own = &world->hosts[OWN];
    uint32_t type = bytes < 14 || bytes > FRAME_MAX ? 0 : be16(frame + 12);
    return world->is_v4 && type == 0x0806    ? arp_answer(own, frame, bytes, answer)
           : world->is_v4 && type == 0x0800  ? v4_answer(own, frame, bytes, answer)
           : !world->is_v4 && type == 0x86dd ? v6_answer(own, frame, bytes, answer)
                                             : 0;
}

/* ---- what must come of it ---- */

static void answer_check(struct world *world, const uint8_t *answer, uint32_t answer_bytes)
{
    /* the bucket, again */
    world->owed_ns = (world->owed_ns > world->now_ns ? world->owed_ns : world->now_ns) + CW_NEIGHBOUR_ANSWER_NS;
    assert_true(world->owed_ns <= world->now_ns + CW_NEIGHBOUR_ANSWERS * CW_NEIGHBOUR_ANSWER_NS);
    /* nobody answers it */
    const uint8_t *again;
    uint32_t again_bytes;
    uint8_t *exact = malloc(answer_bytes);
    memcpy(exact, answer, answer_bytes);
    enum cw_neighbour_verdict verdict =
        cw_neighbour_receive(world->other, exact, answer_bytes, world->now_ns, &again, &again_bytes);
    assert_true(verdict == CW_NEIGHBOUR_FOREIGN || verdict == CW_NEIGHBOUR_TAKEN);
    free(exact);
}

static void frame_receive(struct world *world)
{
    uint8_t frame[FRAME_ROOM], expected[FRAME_ROOM];
    uint32_t bytes = frame_draw(world, frame), answer_bytes = 0;
    const uint8_t *answer = NULL;
    uint8_t *copy = malloc(bytes == 0 ? 1 : bytes);
    memcpy(copy, frame, bytes);
    uint32_t expected_bytes = answer_of(world, frame, bytes, expected);
    enum cw_neighbour_verdict verdict =
        cw_neighbour_receive(world->own, copy, bytes, world->now_ns, &answer, &answer_bytes);
    assert_int_equal(verdict == CW_NEIGHBOUR_ANSWERED || verdict == CW_NEIGHBOUR_LIMITED, expected_bytes > 0);
    if (verdict == CW_NEIGHBOUR_ANSWERED) {
        answered[world->is_v4]++;
        assert_int_equal(answer_bytes, expected_bytes);
        assert_memory_equal(answer, expected, expected_bytes);
        answer_check(world, answer, answer_bytes);
    }
    limited += verdict == CW_NEIGHBOUR_LIMITED;
    damaged += verdict == CW_NEIGHBOUR_DAMAGED;
    assert_true(verdict != CW_NEIGHBOUR_LIMITED ||
                world->owed_ns > world->now_ns + (CW_NEIGHBOUR_ANSWERS - 1) * CW_NEIGHBOUR_ANSWER_NS);
    assert_memory_equal(copy, frame, bytes);
    free(copy);
}

/* Some of the hosts are wanted; a group's MAC address is nobody's. Questions are due when the deadline says so. */
static void hops_check(struct world *world)
{
    uint8_t question[CW_SOLICIT_BYTES_MAX], mac[6];
    const struct party *host = host_draw(world);
    if (fuzz_chance(&world->input, 1)) {
        assert_int_equal(cw_neighbour_want(world->own, &host->ip, world->now_ns), CW_OK);
    }
    assert_true(!cw_neighbour_find(world->own, &host->ip, mac) || (mac[0] & 1) == 0);
    bool is_due = cw_neighbour_deadline(world->own) <= world->now_ns;
    uint32_t count = 0;
    while (cw_neighbour_question(world->own, world->now_ns, question) > 0) {
        count++;
    }
    assert_int_equal(count > 0, is_due);
    assert_true(count <= HOSTS);
    assert_true(cw_neighbour_deadline(world->own) > world->now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;
    world_open(&world, data, size);
    uint64_t pause_ns = fuzz_chance(&world.input, 50) ? 20000000 : 200; /* so few that all are answered, or too many */
    for (uint32_t i = 0; i < FRAMES && world.input.left > 0; i++) {
        world.now_ns += fuzz_below(&world.input, pause_ns);
        frame_receive(&world);
        hops_check(&world);
    }
    cw_neighbour_destroy(world.own);
    cw_neighbour_destroy(world.other);
    return 0;
}

static void end(uint64_t inputs)
{
    uint64_t frames = inputs * FRAMES;
    assert_true(answered[0] > frames / 100 && answered[1] > frames / 100);
    assert_true(limited > 0);
    assert_true(damaged > frames / 50);
}

const struct fuzz_target fuzz_target = {.bytes_max = BYTES_MAX, .packets = FRAMES / 10, .end = end};
