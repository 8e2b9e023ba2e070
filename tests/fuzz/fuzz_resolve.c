/* Frames to an address that no kernel owns: random and mutated questions and answers, their checksums often repaired. An
 * answer goes to the asker alone, by no group but all nodes', for a probe; it is no longer than the question, an
 * advertisement not longer than one with its option; it is never answered itself. */
#include "tests/fuzz/fuzz.h"

#include "dataplane/limits.h"
#include "dataplane/resolve/resolve.h"
#include "dataplane/status.h"
#include "tests/unit/dataplane/resolve_frames.h"

enum { FRAME_MAX = 600, HOSTS = 6, KINDS = 7, FRAMES = 2500, BYTES_MAX = 1 << 16 };

static uint64_t answered[2], limited, damaged; /* frames; answered over IPv6 and IPv4 */

/* OWN is asked; OTHER gets what OWN answers, too; the rest ask. */
enum { OWN, OTHER };

struct world {
    struct fuzz_input input;
    bool is_v4;
    struct party hosts[HOSTS];
    struct cw_resolve *own, *other;
    uint64_t now_ns;
    uint64_t owed_ns; /* as the bucket of answers has it */
};

static struct cw_resolve *resolve_open(const struct world *world, uint32_t host)
{
    struct cw_resolve_config config = {.ip = world->hosts[host].ip,
                                       .bits = world->is_v4 ? CW_IP_V4_BITS + 24 : 64,
                                       .gateway = world->hosts[HOSTS - 1].ip,
                                       .frame_bytes_max = FRAME_MAX};
    memcpy(config.mac, world->hosts[host].mac, 6);
    struct cw_resolve *resolve = cw_resolve_create(&config);
    assert_non_null(resolve);
    return resolve;
}

static void world_open(struct world *world, const uint8_t *data, size_t size)
{
    *world = (struct world){.input = {data, size}, .now_ns = 1000 * CW_RESOLVE_ANSWER_NS};
    bool is_v4 = world->is_v4 = fuzz_chance(&world->input, 50);
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct cw_ip ip = {{0xfd, 0x77, [14] = 1, (uint8_t)(i + 1)}};
        world->hosts[i] =
            (struct party){.mac = {2, 0, 0, 0, 0, (uint8_t)(i + 1)}, .ip = is_v4 ? cw_ip_v4(0x0a090001 + i) : ip};
    }
    world->own = resolve_open(world, OWN);
    world->other = resolve_open(world, OTHER);
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
    const struct party *asker = host_draw(world);
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
    static const uint8_t values[] = {0, 1, 2, 0x20, 0x33, 0x7f, 0x80, 0xe0, 0xff};
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

/* Of what the length fields say, as far as there is so much. */
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

/* ---- what must not come of it ---- */

static bool is_somewhere(const uint8_t *bytes, uint32_t count, const uint8_t mac[6])
{
    for (uint32_t at = 0; at + 6 <= count; at++) {
        if (memcmp(bytes + at, mac, 6) == 0) {
            return true;
        }
    }
    return false;
}

/* Whom an answer goes to, by the question. */
static bool is_askers(const uint8_t *frame, uint32_t bytes, const uint8_t *answer)
{
    static const uint8_t all_nodes[6] = {0x33, 0x33, 0, 0, 0, 1}, none[16] = {0};
    bool is_solicitation = frame[12] == 0x86 && frame[54] == 135;
    if (is_solicitation && memcmp(frame + 22, none, 16) == 0) {
        return memcmp(answer, all_nodes, 6) == 0;
    }
    if ((answer[0] & 1) != 0) {
        return false;
    }
    return frame[12] == 8 && frame[13] == 6                                  ? memcmp(answer, frame + 22, 6) == 0
           : is_solicitation && is_somewhere(frame + 78, bytes - 78, answer) ? true
                                                                             : memcmp(answer, frame + 6, 6) == 0;
}

static void answer_check(struct world *world, const uint8_t *frame, uint32_t bytes, const uint8_t *answer,
                         uint32_t answer_bytes)
{
    const struct party *own = &world->hosts[OWN];
    bool is_solicitation = frame[12] == 0x86 && frame[54] == 135;
    assert_true(answer_bytes <= FRAME_MAX);
    assert_true(answer_bytes <= bytes || (is_solicitation && answer_bytes == ND_BYTES + ND_OPTION_BYTES));
    assert_true(is_askers(frame, bytes, answer));
    assert_memory_equal(answer + 6, own->mac, 6);
    assert_memory_equal(answer + 12, frame + 12, 2);
    assert_memory_equal(answer + (!world->is_v4    ? 22
                                  : frame[13] == 6 ? 28
                                                   : 26),
                        own->ip.bytes + (world->is_v4 ? 12 : 0), world->is_v4 ? 4 : 16);
    /* the bucket, once more */
    world->owed_ns = (world->owed_ns > world->now_ns ? world->owed_ns : world->now_ns) + CW_RESOLVE_ANSWER_NS;
    assert_true(world->owed_ns <= world->now_ns + CW_RESOLVE_ANSWERS * CW_RESOLVE_ANSWER_NS);
    /* nobody answers it */
    const uint8_t *again;
    uint32_t again_bytes;
    uint8_t *exact = malloc(answer_bytes);
    memcpy(exact, answer, answer_bytes);
    enum cw_resolve_verdict verdict =
        cw_resolve_take(world->other, exact, answer_bytes, world->now_ns, &again, &again_bytes);
    assert_true(verdict == CW_RESOLVE_FOREIGN || verdict == CW_RESOLVE_TAKEN);
    free(exact);
}

static void frame_take(struct world *world)
{
    uint8_t frame[FRAME_ROOM];
    uint32_t bytes = frame_draw(world, frame), answer_bytes = 0;
    const uint8_t *answer = NULL;
    uint8_t *copy = malloc(bytes == 0 ? 1 : bytes);
    memcpy(copy, frame, bytes);
    switch (cw_resolve_take(world->own, copy, bytes, world->now_ns, &answer, &answer_bytes)) {
    case CW_RESOLVE_ANSWERED:
        answered[world->is_v4]++;
        answer_check(world, copy, bytes, answer, answer_bytes);
        break;
    case CW_RESOLVE_LIMITED:
        limited++;
        break;
    case CW_RESOLVE_DAMAGED:
        damaged++;
        break;
    default:
        break;
    }
    assert_memory_equal(copy, frame, bytes);
    free(copy);
}

/* Some of the hosts are wanted; a group's MAC address is nobody's. Questions are due when the deadline says so. */
static void hops_check(struct world *world)
{
    uint8_t question[CW_SOLICIT_BYTES_MAX], mac[6];
    const struct party *host = host_draw(world);
    if (fuzz_chance(&world->input, 1)) {
        assert_int_equal(cw_resolve_want(world->own, &host->ip, world->now_ns), CW_OK);
    }
    assert_true(!cw_resolve_find(world->own, &host->ip, mac) || (mac[0] & 1) == 0);
    bool is_due = cw_resolve_deadline(world->own) <= world->now_ns;
    uint32_t count = 0;
    while (cw_resolve_question(world->own, world->now_ns, question) > 0) {
        count++;
    }
    assert_int_equal(count > 0, is_due);
    assert_true(count <= HOSTS);
    assert_true(cw_resolve_deadline(world->own) > world->now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;
    world_open(&world, data, size);
    uint64_t pause_ns = fuzz_chance(&world.input, 50) ? 20000000 : 200; /* so few that all are answered, or too many */
    for (uint32_t i = 0; i < FRAMES && world.input.left > 0; i++) {
        world.now_ns += fuzz_below(&world.input, pause_ns);
        frame_take(&world);
        hops_check(&world);
    }
    cw_resolve_destroy(world.own);
    cw_resolve_destroy(world.other);
    return 0;
}

static void end(uint64_t inputs)
{
    uint64_t frames = inputs * FRAMES;
    assert_true(answered[0] > frames / 100 && answered[1] > frames / 100);
    assert_true(limited > 0);
    assert_true(damaged > frames / 50);
}

const struct fuzz_target fuzz_target = {.bytes_max = BYTES_MAX, .packets = FRAMES / 2, .end = end};
