/* Next hops: requests, their intervals, answers, changes, renewed requests; trusted senders, and limits. */
#include "dataplane/limits.h"
#include "dataplane/neighbour/neighbour.h"
#include "dataplane/status.h"
#include "tests/test.h"
#include "tests/unit/dataplane/neighbour_frames.h"

static const uint64_t MS = 1000000, S = 1000000000;

static const struct party v4_own = {{2, 0, 0, 0, 0, 1}, {{[10] = 0xff, 0xff, 10, 9, 0, 1}}};
static const struct party v4_other = {{2, 0, 0, 0, 0, 2}, {{[10] = 0xff, 0xff, 10, 9, 0, 2}}};
static const struct party v4_gateway = {{2, 0, 0, 0, 0, 0xfe}, {{[10] = 0xff, 0xff, 10, 9, 0, 0xfe}}};
static const struct party v4_far = {{0}, {{[10] = 0xff, 0xff, 10, 8, 0, 2}}};
static const struct party v6_own = {{2, 0, 0, 0, 0, 1}, {{0xfd, 0x77, [15] = 1}}};
static const struct party v6_other = {{2, 0, 0, 0, 0, 2}, {{0xfd, 0x77, [13] = 0x12, 0x34, 0x56}}};
static const struct party v6_gateway = {{2, 0, 0, 0, 0, 0xfe}, {{0xfe, 0x80, [15] = 0xfe}}};
static const struct party v6_far = {{0}, {{0xfd, 0x78, [15] = 2}}};
static const struct party nobody = {{0}, {{0}}};

/* Of the test that runs; opened again, the one before ends. */
static struct cw_neighbour_cache *cache;

static int cache_close(void **state)
{
    cw_neighbour_destroy(cache);
    cache = NULL;
    return 0;
}

static void cache_open(const struct party *own, const struct party *gateway)
{
    struct cw_neighbour_config config = {.ip = own->ip,
                                         .bits = cw_ip_is_v4(&own->ip) ? CW_IP_V4_BITS + 24 : 64,
                                         .gateway = gateway->ip,
                                         .frame_bytes_max = 1514};
    memcpy(config.mac, own->mac, 6);
    (void)cache_close(NULL);
    cache = cw_neighbour_create(&config);
    assert_non_null(cache);
    assert_int_equal(cw_neighbour_deadline(cache), UINT64_MAX);
}

/* Exactly one question is due, no earlier than the deadline says, and it is for this host. */
static void question_expect(uint64_t at_ns, const struct party *own, const struct party *wanted)
{
    uint8_t frame[CW_SOLICIT_BYTES_MAX], expected[FRAME_ROOM];
    struct party target = {.ip = wanted->ip}, group = solicited_of(&wanted->ip);
    uint32_t bytes = cw_ip_is_v4(&own->ip) ? arp_put(expected, everybody_mac, 1, own, &target)
                                           : nd_put(expected, 135, 0, &group, own, &wanted->ip, own->mac);
    assert_int_equal(cw_neighbour_deadline(cache), at_ns);
    assert_true(at_ns == 0 || cw_neighbour_question(cache, at_ns - 1, frame) == 0);
    assert_int_equal(cw_neighbour_question(cache, at_ns, frame), bytes);
    assert_memory_equal(frame, expected, bytes);
    assert_int_equal(cw_neighbour_question(cache, at_ns, frame), 0);
    assert_true(cw_neighbour_deadline(cache) > at_ns);
}

/* A host's answer, with a MAC address; the verdict. */
static enum cw_neighbour_verdict answer_deliver(uint64_t now_ns, const struct party *own, const struct party *other,
                                                uint32_t flags)
{
    uint8_t frame[FRAME_ROOM];
    const uint8_t *answer;
    uint32_t answer_bytes, bytes = cw_ip_is_v4(&own->ip)
                                       ? arp_put(frame, own->mac, 2, other, own)
                                       : nd_put(frame, 136, flags, own, other, &other->ip, other->mac);
    return cw_neighbour_receive(cache, frame, bytes, now_ns, &answer, &answer_bytes);
}

static void found_expect(const struct party *host, const uint8_t *wanted)
{
    uint8_t mac[6] = {0};
    assert_int_equal(cw_neighbour_find(cache, &host->ip, mac), wanted != NULL);
    if (wanted != NULL) {
        assert_memory_equal(mac, wanted, 6);
    }
}

/* ---- questions ---- */

/* 250 ms, doubled five times, and then at that. */
static void questions_are_repeated(void **state)
{
    static const uint64_t intervals[] = {250, 500, 1000, 2000, 4000, 8000, 8000, 8000, 8000};
    for (int kind = 0; kind < 2; kind++) {
        const struct party *own = kind == 0 ? &v4_own : &v6_own, *other = kind == 0 ? &v4_other : &v6_other;
        cache_open(own, &nobody);
        uint64_t now_ns = 5 * S;
        assert_int_equal(cw_neighbour_want(cache, &other->ip, now_ns), CW_OK);
        for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
            question_expect(now_ns, own, other);
            found_expect(other, NULL);
            now_ns += intervals[i] * MS;
            assert_int_equal(cw_neighbour_want(cache, &other->ip, now_ns), CW_OK); /* changes nothing */
        }
    }
}

/* A resolver that is late with its turns sends each request once, not once for each interval that has passed. */
static void questions_do_not_pile_up(void **state)
{
    uint8_t frame[CW_SOLICIT_BYTES_MAX];
    cache_open(&v4_own, &nobody);
    for (uint32_t i = 0; i < 100; i++) {
        struct cw_ip ip = cw_ip_v4(0x0a090064 + i);
        assert_int_equal(cw_neighbour_want(cache, &ip, i), CW_OK);
    }
    for (uint64_t turn = 1; turn < 20; turn++) {
        uint32_t count = 0;
        while (cw_neighbour_question(cache, turn * 100 * S, frame) != 0) {
            count++;
        }
        assert_int_equal(count, 100);
    }
}

/* ---- answers ---- */

static void hops_are_found(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        const struct party *own = kind == 0 ? &v4_own : &v6_own, *other = kind == 0 ? &v4_other : &v6_other;
        struct party moved = *other;
        cache_open(own, &nobody);
        moved.mac[5] = 0x77;
        assert_int_equal(cw_neighbour_want(cache, &other->ip, S), CW_OK);
        question_expect(S, own, other);
        question_expect(S + 250 * MS, own, other);
        assert_int_equal(cw_neighbour_changes(cache), 0);
        assert_int_equal(answer_deliver(2 * S, own, other, 0x60), CW_NEIGHBOUR_TAKEN);
        found_expect(other, other->mac);
        assert_int_equal(cw_neighbour_changes(cache), 1);
        /* the same again is no change, another is one at once */
        assert_int_equal(answer_deliver(3 * S, own, other, 0x60), CW_NEIGHBOUR_TAKEN);
        assert_int_equal(cw_neighbour_changes(cache), 1);
        assert_int_equal(answer_deliver(4 * S, own, &moved, 0x20), CW_NEIGHBOUR_TAKEN);
        found_expect(other, moved.mac);
        assert_int_equal(cw_neighbour_changes(cache), 2);
        /* requested again, at the first intervals; it stays in use */
        uint64_t old_ns = 4 * S + CW_NEIGHBOUR_FRESH_NS;
        question_expect(old_ns, own, other);
        question_expect(old_ns + 250 * MS, own, other);
        question_expect(old_ns + 750 * MS, own, other);
        found_expect(other, moved.mac);
        assert_int_equal(answer_deliver(old_ns + S, own, other, 0x60), CW_NEIGHBOUR_TAKEN);
        found_expect(other, other->mac);
        assert_int_equal(cw_neighbour_changes(cache), 3);
        question_expect(old_ns + S + CW_NEIGHBOUR_FRESH_NS, own, other);
    }
}

/* RFC 4861, 7.2.5: one without the override flag is taken if there is none yet, and changes none. */
static void proxies_do_not_override(void **state)
{
    struct party proxy = v6_other;
    cache_open(&v6_own, &nobody);
    proxy.mac[5] = 0x77;
    assert_int_equal(cw_neighbour_want(cache, &v6_other.ip, 0), CW_OK);
    assert_int_equal(answer_deliver(S, &v6_own, &proxy, 0x40), CW_NEIGHBOUR_TAKEN);
    found_expect(&v6_other, proxy.mac);
    assert_int_equal(answer_deliver(S, &v6_own, &v6_other, 0x60), CW_NEIGHBOUR_TAKEN);
    found_expect(&v6_other, v6_other.mac);
    uint64_t deadline_ns = cw_neighbour_deadline(cache);
    assert_int_equal(answer_deliver(2 * S, &v6_own, &proxy, 0x40), CW_NEIGHBOUR_TAKEN);
    found_expect(&v6_other, v6_other.mac);
    assert_int_equal(cw_neighbour_changes(cache), 2);
    assert_int_equal(cw_neighbour_deadline(cache), deadline_ns);
}

/* No host without a request gets into the table, nor does a group. */
static void strangers_are_not_entered(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        const struct party *own = kind == 0 ? &v4_own : &v6_own, *other = kind == 0 ? &v4_other : &v6_other;
        const struct party *stranger = kind == 0 ? &v4_gateway : &v6_gateway;
        cache_open(own, &nobody);
        struct party group = *other;
        assert_int_equal(answer_deliver(0, own, stranger, 0x60), CW_NEIGHBOUR_TAKEN);
        found_expect(stranger, NULL);
        assert_int_equal(cw_neighbour_want(cache, &other->ip, 0), CW_OK);
        assert_int_equal(answer_deliver(0, own, stranger, 0x60), CW_NEIGHBOUR_TAKEN);
        group.mac[0] |= 1;
        (void)answer_deliver(0, own, &group, 0x60);
        found_expect(stranger, NULL);
        found_expect(other, NULL);
        assert_int_equal(cw_neighbour_changes(cache), 0);
        question_expect(0, own, other);
    }
}

/* RFC 826: a request contains the sender's address, for any target; so does the announcement of a new MAC address. */
static void arp_requests_show_where_the_sender_is(void **state)
{
    uint8_t frame[FRAME_ROOM];
    const uint8_t *answer;
    uint32_t bytes;
    struct party moved = v4_other;
    cache_open(&v4_own, &nobody);
    moved.mac[5] = 0x77;
    arp_put(frame, everybody_mac, 1, &v4_other, &v4_own);
    assert_int_equal(cw_neighbour_receive(cache, frame, ARP_BYTES, 0, &answer, &bytes), CW_NEIGHBOUR_ANSWERED);
    found_expect(&v4_other, NULL);
    assert_int_equal(cw_neighbour_want(cache, &v4_other.ip, S), CW_OK);
    assert_int_equal(cw_neighbour_receive(cache, frame, ARP_BYTES, S, &answer, &bytes), CW_NEIGHBOUR_ANSWERED);
    found_expect(&v4_other, v4_other.mac);
    assert_int_equal(cw_neighbour_deadline(cache), S + CW_NEIGHBOUR_FRESH_NS);
    arp_put(frame, everybody_mac, 1, &moved, &moved); /* RFC 5227, 3 */
    assert_int_equal(cw_neighbour_receive(cache, frame, ARP_BYTES, S, &answer, &bytes), CW_NEIGHBOUR_TAKEN);
    found_expect(&v4_other, moved.mac);
    arp_put(frame, everybody_mac, 1, &v4_other, &v4_gateway);
    assert_int_equal(cw_neighbour_receive(cache, frame, ARP_BYTES, S, &answer, &bytes), CW_NEIGHBOUR_TAKEN);
    found_expect(&v4_other, v4_other.mac);
    assert_int_equal(cw_neighbour_changes(cache), 3);
    arp_put(frame, everybody_mac, 1, &v4_gateway, &v4_gateway);
    assert_int_equal(cw_neighbour_receive(cache, frame, ARP_BYTES, S, &answer, &bytes), CW_NEIGHBOUR_FOREIGN);
}

/* ---- ways, and how many ---- */

static void other_subnets_are_the_gateways(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        const struct party *own = kind == 0 ? &v4_own : &v6_own, *far = kind == 0 ? &v4_far : &v6_far;
        const struct party *gateway = kind == 0 ? &v4_gateway : &v6_gateway, *near = kind == 0 ? &v4_other : &v6_other;
        cache_open(own, gateway);
        struct cw_ip next = cw_neighbour_next(cache, &far->ip);
        assert_true(cw_ip_is_equal(&next, &gateway->ip));
        next = cw_neighbour_next(cache, &near->ip);
        assert_true(cw_ip_is_equal(&next, &near->ip));
        assert_int_equal(cw_neighbour_want(cache, &far->ip, S), CW_OK);
        assert_int_equal(cw_neighbour_want(cache, &gateway->ip, S), CW_OK);
        question_expect(S, own, gateway); /* one for both */
        assert_int_equal(answer_deliver(S, own, gateway, 0xe0), CW_NEIGHBOUR_TAKEN);
        found_expect(far, gateway->mac);
        found_expect(gateway, gateway->mac);
        cache_open(own, &nobody);
        assert_int_equal(cw_neighbour_want(cache, &far->ip, S), CW_ERROR_NOT_FOUND);
        assert_int_equal(cw_neighbour_want(cache, kind == 0 ? &v6_other.ip : &v4_other.ip, S), CW_ERROR_NOT_FOUND);
        next = cw_neighbour_next(cache, &far->ip);
        assert_true(cw_ip_is_none(&next));
        found_expect(far, NULL);
        assert_int_equal(cw_neighbour_deadline(cache), UINT64_MAX);
    }
}

static void full_tables_accept_no_more(void **state)
{
    uint8_t frame[CW_SOLICIT_BYTES_MAX];
    uint32_t count = 0;
    struct cw_neighbour_config config = {.ip = v4_own.ip, .bits = CW_IP_V4_BITS + 16, .frame_bytes_max = 1514};
    cache = cw_neighbour_create(&config);
    for (uint32_t i = 0; i < CW_NEIGHBOUR_HOPS_MAX; i++) {
        struct cw_ip ip = cw_ip_v4(0x0a090100 + i);
        assert_int_equal(cw_neighbour_want(cache, &ip, S), CW_OK);
    }
    assert_int_equal(cw_neighbour_want(cache, &v4_other.ip, S), CW_ERROR_LIMIT);
    struct cw_ip there = cw_ip_v4(0x0a090100);
    assert_int_equal(cw_neighbour_want(cache, &there, S), CW_OK);
    while (cw_neighbour_question(cache, S, frame) != 0) {
        count++;
    }
    assert_int_equal(count, CW_NEIGHBOUR_HOPS_MAX);
    cw_neighbour_destroy(NULL);
}

int main(void)
{
    return TESTS_RUN_EACH(NULL, cache_close, questions_are_repeated, questions_do_not_pile_up, hops_are_found,
                          proxies_do_not_override, strangers_are_not_entered, arp_requests_show_where_the_sender_is,
                          other_subnets_are_the_gateways, full_tables_accept_no_more);
}
