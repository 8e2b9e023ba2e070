/* Eager multicasts that come in parts: joined from any parts, sent again by another transport, among others; and
 * invalid ones. */
#include "mpi/collective/exchange/assembly.h"
#include "tests/test.h"

enum { SOURCES = 3, BYTES_MAX = EXCHANGE_PARTS_MAX_BYTES, SEEDS = 300 };

static uint32_t drawn(uint32_t below)
{
    return (uint32_t)random() % below;
}

static uint8_t byte_of(int32_t source, uint64_t at)
{
    return (uint8_t)((uint64_t)source * 101 + at * 13 + (at >> 9));
}

/* A part of a source's message; false: it caused no event. */
static bool part_deliver(struct mpi_exchange *exchange, int32_t source, uint64_t total, uint64_t offset, uint32_t bytes,
                         bool makes_sense, struct cw_transport_event *whole)
{
    static uint8_t data[sizeof(struct mpi_part) + BYTES_MAX];
    const struct mpi_call_head head = {.envelope = {.source = source, .tag = 9}, .kind = MPI_SENT_PART};
    const struct mpi_part piece = {.offset = offset, .left = total - offset - bytes, .bytes = total};
    memcpy(data, &piece, sizeof(piece));
    for (uint32_t at = 0; at < bytes; at++) {
        data[sizeof(piece) + at] = byte_of(source, offset + at);
    }
    assert_int_equal(exchange_part_add(exchange, &head, data, (uint32_t)sizeof(piece) + bytes, whole), makes_sense);
    return whole->buffer != 0;
}

static void event_check(const struct cw_transport_event *event, int32_t source, uint64_t total)
{
    assert_int_equal(event->kind, CW_TRANSPORT_ARRIVED);
    assert_true(event->eager);
    assert_int_equal(event->peer, source);
    assert_int_equal(event->tag, 9);
    assert_int_equal(event->bytes, total);
    assert_ptr_equal(event->data, event->buffer);
    for (uint64_t at = 0; at < total; at++) {
        assert_int_equal(((const uint8_t *)event->data)[at], byte_of(source, at));
    }
    free((void *)(uintptr_t)event->buffer);
}

static void parts_of_several_sources_become_whole(void **state)
{
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct mpi_exchange exchange = {.parts = NULL};
        uint64_t totals[SOURCES], sent[SOURCES] = {0};
        int done = 0;
        srandom((unsigned)seed);
        for (int source = 0; source < SOURCES; source++) {
            totals[source] = 2 + drawn(drawn(2) == 0 ? 300 : BYTES_MAX - 2);
        }
        while (done < SOURCES) {
            int source = (int)drawn(SOURCES);
            uint64_t left = totals[source] - sent[source];
            if (left == 0) {
                continue;
            }
            if (drawn(20) == 0) {
                sent[source] = 0; /* its group has failed: again, by another transport, in other parts */
                continue;
            }
            uint32_t bytes = 1 + drawn((uint32_t)(left < 9000 ? left : 9000));
            struct cw_transport_event event;
            bool is_whole = part_deliver(&exchange, source, totals[source], sent[source], bytes, true, &event);
            sent[source] += bytes;
            if (sent[source] == totals[source]) {
                assert_true(is_whole);
                event_check(&event, source, totals[source]);
                done++;
            } else if (is_whole) {
                free((void *)(uintptr_t)event.buffer);
                /* parts that came before may make it whole already: then there is nothing to come */
                done++;
                sent[source] = totals[source];
            }
        }
        exchange_parts_free(&exchange);
        assert_null(exchange.parts);
    }
}

static void what_makes_no_sense_is_passed_over(void **state)
{
    struct mpi_exchange exchange = {.parts = NULL};
    struct cw_transport_event whole;
    const struct mpi_call_head head = {.envelope = {.source = 1, .tag = 9}, .kind = MPI_SENT_PART};
    uint8_t data[64] = {0};
    assert_false(exchange_part_add(&exchange, &head, data, 5, &whole));             /* no room for the common header */
    assert_false(part_deliver(&exchange, 1, 500, 100, 100, false, &whole));         /* nothing before it */
    assert_false(part_deliver(&exchange, 1, BYTES_MAX + 1, 0, 100, false, &whole)); /* too long */
    assert_null(exchange.parts);
    const struct mpi_part wrong[] = {
        {.offset = 0, .left = 11, .bytes = 20},             /* 10 bytes come, 10 are left */
        {.offset = 15, .left = 0, .bytes = 20},             /* behind the end */
        {.offset = UINT64_MAX - 4, .left = 0, .bytes = 20}, /* likewise */
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memcpy(data, &wrong[i], sizeof(wrong[i]));
        assert_false(exchange_part_add(&exchange, &head, data, sizeof(wrong[i]) + 10, &whole));
        assert_int_equal(whole.buffer, 0);
    }
    assert_false(part_deliver(&exchange, 1, 500, 0, 100, true, &whole));
    assert_false(part_deliver(&exchange, 1, 600, 100, 100, false, &whole)); /* of another length than before */
    assert_false(part_deliver(&exchange, 1, 500, 200, 100, false, &whole)); /* one is missing */
    assert_false(part_deliver(&exchange, 1, 500, 100, 100, true, &whole));
    assert_true(part_deliver(&exchange, 1, 500, 150, 350, true, &whole)); /* in part known */
    event_check(&whole, 1, 500);
    exchange_parts_free(&exchange);
}

int main(void)
{
    return TESTS_RUN(parts_of_several_sources_become_whole, what_makes_no_sense_is_passed_over);
}
