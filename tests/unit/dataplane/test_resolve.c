/* Answers for an address that no kernel has, against frames that are written by hand from the RFCs: ARP (826), echo
 * (792, 4443), neighbour discovery (4861); what is no question, damaged, or too much. */
#include "dataplane/resolve/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/limits.h"
#include "tests/test.h"
#include "tests/unit/dataplane/resolve_frames.h"

enum { MTU = 1500 };

struct bench {
    struct cw_resolve *resolve;
    uint64_t now_ns;
    uint8_t frame[FRAME_ROOM];
    uint32_t bytes;
    uint8_t wanted[FRAME_ROOM];
};

static const uint64_t S = 1000000000;

static const struct party v4_own = {{2, 0, 0, 0, 0, 1}, {{[10] = 0xff, 0xff, 10, 9, 0, 1}}};
static const struct party v4_other = {{2, 0, 0, 0, 0, 2}, {{[10] = 0xff, 0xff, 10, 9, 0, 2}}};
static const struct party v4_third = {{2, 0, 0, 0, 0, 3}, {{[10] = 0xff, 0xff, 10, 9, 0, 3}}};
static const struct party v6_own = {{2, 0, 0, 0, 0, 1}, {{0xfd, 0x77, [12] = 0, 0x12, 0x34, 0x56}}};
static const struct party v6_other = {{2, 0, 0, 0, 0, 2}, {{0xfd, 0x77, [15] = 2}}};
static const struct party v6_nobody = {{2, 0, 0, 0, 0, 2}, {{0}}};
static const struct party all_nodes = {{0x33, 0x33, 0, 0, 0, 1}, {{0xff, 0x02, [15] = 1}}};

static void bench_open(struct bench *bench, const struct party *own)
{
    struct cw_resolve_config config = {
        .ip = own->ip, .bits = cw_ip_is_v4(&own->ip) ? CW_IP_V4_BITS + 24 : 64, .frame_bytes_max = 14 + MTU};
    memcpy(config.mac, own->mac, 6);
    memset(bench, 0, sizeof(*bench));
    bench->resolve = cw_resolve_create(&config);
    assert_non_null(bench->resolve);
}

/* The frame in exactly as much memory as it has, a second after the one before it. */
static enum cw_resolve_verdict take(struct bench *bench, const uint8_t **answer, uint32_t *answer_bytes)
{
    uint8_t *exact = malloc(bench->bytes + 1);
    memcpy(exact, bench->frame, bench->bytes);
    bench->now_ns += S;
    enum cw_resolve_verdict verdict =
        cw_resolve_take(bench->resolve, exact, bench->bytes, bench->now_ns, answer, answer_bytes);
    assert_memory_equal(exact, bench->frame, bench->bytes);
    free(exact);
    return verdict;
}

static void verdict_expect(struct bench *bench, enum cw_resolve_verdict wanted)
{
    const uint8_t *answer;
    uint32_t bytes;
    assert_int_equal(take(bench, &answer, &bytes), wanted);
}

/* What is answered is bench->wanted, whatever of Ethernet's padding is behind the question. */
static void answer_expect(struct bench *bench, uint32_t wanted_bytes)
{
    static const uint32_t padded[] = {0, 1, 18};
    uint32_t before = bench->bytes;
    for (size_t i = 0; i < 3 && before + padded[i] <= 14 + MTU; i++) {
        const uint8_t *answer = NULL;
        uint32_t bytes = 0;
        memset(bench->frame + before, 0xee, padded[i]);
        bench->bytes = before + padded[i];
        assert_int_equal(take(bench, &answer, &bytes), CW_RESOLVE_ANSWERED);
        assert_int_equal(bytes, wanted_bytes);
        assert_memory_equal(answer, bench->wanted, bytes);
    }
    bench->bytes = before;
}

/* No beginning of a question is one. */
static void cuts_are_no_questions(struct bench *bench)
{
    for (uint32_t whole = bench->bytes; bench->bytes-- > 0;) {
        const uint8_t *answer;
        uint32_t bytes;
        assert_int_not_equal(take(bench, &answer, &bytes), CW_RESOLVE_ANSWERED);
        assert_true(bench->bytes < whole);
        if (bench->bytes == 0) {
            return;
        }
    }
}

/* ---- ARP ---- */

static void arp_requests_are_answered(void **state)
{
    static const uint8_t question[ARP_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,  2, 8, 6,
                                                0,    1,    8,    0,    6,    4,    0, 1, 2, 0, 0,  0, 0, 2,
                                                10,   9,    0,    2,    0,    0,    0, 0, 0, 0, 10, 9, 0, 1};
    static const uint8_t reply[ARP_BYTES] = {2, 0, 0, 0, 0, 2, 2, 0,  0, 0, 0, 1, 8, 6, 0, 1, 8, 0,  6, 4, 0,
                                             2, 2, 0, 0, 0, 0, 1, 10, 9, 0, 1, 2, 0, 0, 0, 0, 2, 10, 9, 0, 2};
    struct bench bench;
    bench_open(&bench, &v4_own);
    memcpy(bench.frame, question, ARP_BYTES);
    memcpy(bench.wanted, reply, ARP_BYTES);
    bench.bytes = ARP_BYTES;
    answer_expect(&bench, ARP_BYTES);
    /* by unicast, as hosts ask that only verify; and by one who has no address yet (RFC 5227) */
    bench.bytes = arp_put(bench.frame, v4_own.mac, 1, &v4_other, &v4_own);
    answer_expect(&bench, ARP_BYTES);
    struct party probing = v4_other;
    probing.ip = cw_ip_v4(0);
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &probing, &v4_own);
    arp_put(bench.wanted, probing.mac, 2, &v4_own, &probing);
    answer_expect(&bench, ARP_BYTES);
    cuts_are_no_questions(&bench);
    cw_resolve_destroy(bench.resolve);
}

static void other_arp_is_not_answered(void **state)
{
    static const uint8_t fixed[] = {14, 15, 16, 17, 18, 19};
    struct bench bench;
    bench_open(&bench, &v4_own);
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &v4_other, &v4_third); /* for somebody else */
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &v4_other, &v4_other); /* gratuitous */
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    struct party twin = v4_other;
    twin.ip = v4_own.ip;
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &twin, &v4_own); /* who says that the address is his */
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    bench.bytes = arp_put(bench.frame, everybody_mac, 3, &v4_other, &v4_own); /* RFC 903 */
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    bench.bytes = arp_put(bench.frame, everybody_mac, 0x101, &v4_other, &v4_own);
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &v4_other, &v4_own);
    for (size_t i = 0; i < sizeof(fixed); i++) {
        bench.frame[fixed[i]] ^= 1;
        verdict_expect(&bench, CW_RESOLVE_DAMAGED);
        bench.frame[fixed[i]] ^= 1;
    }
    bench.frame[22] |= 1; /* the asker is a group */
    verdict_expect(&bench, CW_RESOLVE_DAMAGED);
    cw_resolve_destroy(bench.resolve);
    bench_open(&bench, &v6_own);
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &v4_other, &v6_own); /* the last bytes are the same */
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    cw_resolve_destroy(bench.resolve);
}

/* ---- echo ---- */

typedef uint32_t echo_writer(uint8_t *frame, uint32_t type, uint32_t limit, const struct party *to,
                             const struct party *from, uint32_t sequence, uint32_t bytes);

static void echo_is_answered(echo_writer *put, uint32_t request, uint32_t reply, const struct party *own,
                             const struct party *other, uint32_t bytes_max)
{
    const uint32_t sizes[] = {0, 1, 17, 56, bytes_max};
    struct bench bench;
    bench_open(&bench, own);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t sequence = 0xfff0 + (uint32_t)i;
        bench.bytes = put(bench.frame, request, 3, own, other, sequence, sizes[i]);
        answer_expect(&bench, put(bench.wanted, reply, 64, other, own, sequence, sizes[i]));
    }
    bench.bytes = put(bench.frame, request, 3, own, other, 1, bytes_max + 1);
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    bench.bytes = put(bench.frame, request, 3, own, other, 1, 16);
    cuts_are_no_questions(&bench);
    cw_resolve_destroy(bench.resolve);
}

static void v4_echo_is_answered(void **state)
{
    echo_is_answered(v4_echo_put, 8, 0, &v4_own, &v4_other, MTU - 28);
}

static void v6_echo_is_answered(void **state)
{
    echo_is_answered(v6_echo_put, 128, 129, &v6_own, &v6_other, MTU - 48);
}

static void other_icmp_is_not_answered(void **state)
{
    static const struct {
        uint8_t at, value;
        enum cw_resolve_verdict verdict;
    } wrong[] = {
        {0, 0x01, CW_RESOLVE_FOREIGN},  /* to a group */
        {5, 9, CW_RESOLVE_FOREIGN},     /* to somebody else's MAC address */
        {33, 9, CW_RESOLVE_FOREIGN},    /* ... or address, */
        {33, 255, CW_RESOLVE_FOREIGN},  /* or the subnet */
        {30, 224, CW_RESOLVE_FOREIGN},  /* or a group */
        {20, 0x20, CW_RESOLVE_FOREIGN}, /* the first fragment */
        {21, 0x01, CW_RESOLVE_FOREIGN}, /* a later one */
        {23, 17, CW_RESOLVE_FOREIGN},   /* UDP */
        {34, 0, CW_RESOLVE_FOREIGN},    /* a reply */
        {34, 13, CW_RESOLVE_FOREIGN},   /* a timestamp */
        {6, 0x03, CW_RESOLVE_DAMAGED},  /* from a group, */
        {26, 0, CW_RESOLVE_DAMAGED},    /* nobody, */
        {26, 127, CW_RESOLVE_DAMAGED},  /* oneself, */
        {26, 224, CW_RESOLVE_DAMAGED},  /* a group, */
        {26, 255, CW_RESOLVE_DAMAGED},  /* everybody */
        {17, 27, CW_RESOLVE_DAMAGED},   /* shorter than its headers */
        {16, 1, CW_RESOLVE_DAMAGED},    /* longer than the frame */
    };
    struct bench bench;
    bench_open(&bench, &v4_own);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        bench.bytes = v4_echo_put(bench.frame, 8, 64, &v4_own, &v4_other, 1, 32);
        bench.frame[wrong[i].at] = wrong[i].value;
        v4_sign(bench.frame, bench.bytes);
        verdict_expect(&bench, wrong[i].verdict);
    }
    bench.bytes = v4_echo_put(bench.frame, 8, 64, &v4_own, &v4_own, 1, 32); /* from oneself */
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    for (uint32_t at = 14; at < V4_ECHO_BYTES + 32; at++) { /* under one of the checksums */
        const uint8_t *answer;
        uint32_t bytes;
        bench.bytes = v4_echo_put(bench.frame, 8, 64, &v4_own, &v4_other, 1, 32);
        bench.frame[at] ^= 0x10;
        assert_int_not_equal(take(&bench, &answer, &bytes), CW_RESOLVE_ANSWERED);
    }
    cw_resolve_destroy(bench.resolve);
}

static void other_icmpv6_is_not_answered(void **state)
{
    static const struct {
        uint8_t at, value;
        enum cw_resolve_verdict verdict;
    } wrong[] = {
        {0, 0x33, CW_RESOLVE_FOREIGN}, {5, 9, CW_RESOLVE_FOREIGN},
        {53, 9, CW_RESOLVE_FOREIGN},   {20, 44, CW_RESOLVE_FOREIGN}, /* a fragment */
        {54, 129, CW_RESOLVE_FOREIGN}, {54, 133, CW_RESOLVE_FOREIGN},
        {6, 0x03, CW_RESOLVE_DAMAGED}, {22, 0xff, CW_RESOLVE_DAMAGED}, /* from a group */
        {19, 7, CW_RESOLVE_DAMAGED},   {18, 1, CW_RESOLVE_DAMAGED},
    };
    struct bench bench;
    bench_open(&bench, &v6_own);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        bench.bytes = v6_echo_put(bench.frame, 128, 64, &v6_own, &v6_other, 1, 32);
        bench.frame[wrong[i].at] = wrong[i].value;
        v6_sign(bench.frame, bench.bytes);
        verdict_expect(&bench, wrong[i].verdict);
    }
    struct party group = solicited_of(&v6_own.ip);
    bench.bytes = v6_echo_put(bench.frame, 128, 64, &group, &v6_other, 1, 32);
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    bench.bytes = v6_echo_put(bench.frame, 128, 64, &all_nodes, &v6_other, 1, 32);
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    bench.bytes = v6_echo_put(bench.frame, 128, 64, &v6_own, &v6_nobody, 1, 32);
    verdict_expect(&bench, CW_RESOLVE_DAMAGED);
    for (uint32_t at = 22; at < V6_ECHO_BYTES + 32; at++) { /* under the checksum */
        const uint8_t *answer;
        uint32_t bytes;
        bench.bytes = v6_echo_put(bench.frame, 128, 64, &v6_own, &v6_other, 1, 32);
        bench.frame[at] ^= 0x10;
        assert_int_not_equal(take(&bench, &answer, &bytes), CW_RESOLVE_ANSWERED);
    }
    cw_resolve_destroy(bench.resolve);
}

/* ---- neighbour discovery ---- */

static void solicitations_are_answered(void **state)
{
    const struct party group = solicited_of(&v6_own.ip), *targets[] = {&group, &v6_own};
    uint8_t group_mac[6];
    struct bench bench;
    bench_open(&bench, &v6_own);
    assert_true(cw_resolve_group(&v6_own.ip, group_mac));
    assert_memory_equal(group_mac, group.mac, 6);
    assert_false(cw_resolve_group(&v4_own.ip, group_mac));
    for (size_t i = 0; i < 2; i++) {
        uint32_t wanted = nd_put(bench.wanted, 136, 0x60, &v6_other, &v6_own, &v6_own.ip, v6_own.mac);
        bench.bytes = nd_put(bench.frame, 135, 0, targets[i], &v6_other, &v6_own.ip, v6_other.mac);
        answer_expect(&bench, wanted);
        bench.bytes = nd_put(bench.frame, 135, 0, targets[i], &v6_other, &v6_own.ip, NULL);
        answer_expect(&bench, wanted);
        cuts_are_no_questions(&bench);
    }
    /* the option says which MAC address it is, whoever has passed the frame on */
    bench.bytes = nd_put(bench.frame, 135, 0, &group, &v6_other, &v6_own.ip, v6_other.mac);
    memcpy(bench.frame + 6, v4_third.mac, 6);
    answer_expect(&bench, CW_ND_BYTES);
    /* duplicate address detection (RFC 4862, 5.4.3): all nodes hear the answer (RFC 4861, 7.2.4) */
    bench.bytes = nd_put(bench.frame, 135, 0, &group, &v6_nobody, &v6_own.ip, NULL);
    answer_expect(&bench, nd_put(bench.wanted, 136, 0x20, &all_nodes, &v6_own, &v6_own.ip, v6_own.mac));
    cw_resolve_destroy(bench.resolve);
}

/* RFC 4861, 7.1.1. */
static void other_solicitations_are_not_answered(void **state)
{
    static const struct {
        uint8_t at, value;
        enum cw_resolve_verdict verdict;
    } wrong[] = {
        {21, 254, CW_RESOLVE_DAMAGED}, /* a router has passed it on */
        {21, 0, CW_RESOLVE_DAMAGED},    {55, 1, CW_RESOLVE_DAMAGED},  {62, 0xff, CW_RESOLVE_FOREIGN},
        {77, 0x57, CW_RESOLVE_FOREIGN},                              /* the target: a group, a neighbour */
        {22, 0xff, CW_RESOLVE_DAMAGED},                              /* from a group */
        {79, 0, CW_RESOLVE_DAMAGED},    {79, 2, CW_RESOLVE_DAMAGED}, /* its option */
        {80, 0x03, CW_RESOLVE_DAMAGED},                              /* the asker is a group */
        {19, 23, CW_RESOLVE_DAMAGED},   {19, 33, CW_RESOLVE_DAMAGED}, {19, 31, CW_RESOLVE_DAMAGED},
        {53, 0x57, CW_RESOLVE_FOREIGN}, /* the group of another address, by our group's MAC address */
    };
    const struct party group = solicited_of(&v6_own.ip);
    struct bench bench;
    bench_open(&bench, &v6_own);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        bench.bytes = nd_put(bench.frame, 135, 0, &group, &v6_other, &v6_own.ip, v6_other.mac);
        bench.frame[wrong[i].at] = wrong[i].value;
        v6_sign(bench.frame, wrong[i].at == 19 && wrong[i].value < 32 ? 54u + wrong[i].value : bench.bytes);
        verdict_expect(&bench, wrong[i].verdict);
    }
    bench.bytes =
        nd_put(bench.frame, 135, 0, &group, &v6_nobody, &v6_own.ip, v6_other.mac); /* a probe with an option */
    verdict_expect(&bench, CW_RESOLVE_DAMAGED);
    bench.bytes = nd_put(bench.frame, 135, 0, &v6_own, &v6_nobody, &v6_own.ip, NULL); /* ... by unicast */
    verdict_expect(&bench, CW_RESOLVE_DAMAGED);
    struct party crowd = v6_other; /* the asker's only MAC address is a group's */
    crowd.mac[0] |= 1;
    bench.bytes = nd_put(bench.frame, 135, 0, &group, &crowd, &v6_own.ip, NULL);
    verdict_expect(&bench, CW_RESOLVE_DAMAGED);
    bench.bytes = nd_put(bench.frame, 135, 0, &group, &v6_own, &v6_own.ip, v6_own.mac); /* from oneself */
    verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    for (uint32_t at = 22; at < CW_ND_BYTES; at++) { /* under the checksum */
        const uint8_t *answer;
        uint32_t bytes;
        bench.bytes = nd_put(bench.frame, 135, 0, &group, &v6_other, &v6_own.ip, v6_other.mac);
        bench.frame[at] ^= 0x10;
        assert_int_not_equal(take(&bench, &answer, &bytes), CW_RESOLVE_ANSWERED);
    }
    cw_resolve_destroy(bench.resolve);
}

/* Options that nobody knows are skipped (RFC 4861, 4.6), such as a nonce (RFC 7527), 16 bytes of which are
 * another's. */
static void unknown_options_are_skipped(void **state)
{
    const struct party group = solicited_of(&v6_own.ip);
    struct bench bench;
    bench_open(&bench, &v6_own);
    nd_put(bench.frame, 135, 0, &group, &v6_other, &v6_own.ip, v6_other.mac);
    memcpy(bench.frame + 94, bench.frame + 78, 8);
    memset(bench.frame + 78, 1, 16);
    bench.frame[78] = 14;
    bench.frame[79] = 2;
    bench.bytes = CW_ND_BYTES + 16;
    be16_put(bench.frame + 18, bench.bytes - 54);
    v6_sign(bench.frame, bench.bytes);
    answer_expect(&bench, nd_put(bench.wanted, 136, 0x60, &v6_other, &v6_own, &v6_own.ip, v6_own.mac));
    cw_resolve_destroy(bench.resolve);
}

/* ---- how many ---- */

static uint32_t answered(struct bench *bench, uint64_t now_ns, uint32_t questions)
{
    const uint8_t *answer;
    uint32_t bytes, count = 0;
    for (uint32_t i = 0; i < questions; i++) {
        enum cw_resolve_verdict verdict =
            cw_resolve_take(bench->resolve, bench->frame, bench->bytes, now_ns, &answer, &bytes);
        assert_true(verdict == CW_RESOLVE_ANSWERED || verdict == CW_RESOLVE_LIMITED);
        count += verdict == CW_RESOLVE_ANSWERED;
    }
    return count;
}

static void answers_are_limited(void **state)
{
    struct bench bench;
    bench_open(&bench, &v4_own);
    bench.bytes = v4_echo_put(bench.frame, 8, 64, &v4_own, &v4_other, 1, 8);
    assert_int_equal(answered(&bench, S, 1000), CW_RESOLVE_ANSWERS);
    assert_int_equal(answered(&bench, S + CW_RESOLVE_ANSWER_NS - 1, 10), 0);
    for (uint64_t i = 1; i <= 50; i++) {
        assert_int_equal(answered(&bench, S + i * CW_RESOLVE_ANSWER_NS, 10), 1);
    }
    assert_int_equal(answered(&bench, S + 60 * CW_RESOLVE_ANSWER_NS, 100), 10);
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &v4_other, &v4_own); /* of all kinds together */
    assert_int_equal(answered(&bench, S + 60 * CW_RESOLVE_ANSWER_NS, 100), 0);
    assert_int_equal(answered(&bench, 100 * S, 1000), CW_RESOLVE_ANSWERS); /* rest is saved up to a bound */
    /* what is not answered uses none of it up */
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &v4_other, &v4_third);
    for (uint32_t i = 0; i < 1000; i++) {
        bench.now_ns = 200 * S;
        verdict_expect(&bench, CW_RESOLVE_FOREIGN);
    }
    bench.bytes = arp_put(bench.frame, everybody_mac, 1, &v4_other, &v4_own);
    assert_int_equal(answered(&bench, 300 * S, 1000), CW_RESOLVE_ANSWERS);
    cw_resolve_destroy(bench.resolve);
}

int main(void)
{
    return TESTS_RUN(arp_requests_are_answered, other_arp_is_not_answered, v4_echo_is_answered,
                     other_icmp_is_not_answered, v6_echo_is_answered, other_icmpv6_is_not_answered,
                     solicitations_are_answered, other_solicitations_are_not_answered, unknown_options_are_skipped,
                     answers_are_limited);
}
