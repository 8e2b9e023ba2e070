/* Records of packets in flight against plain arrays: what is recorded stays, memory is held only where something is
 * open. */
#include <stdlib.h>

#include "dataplane/base/random.h"
#include "dataplane/state/sent.h"
#include "dataplane/state/window.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { CHUNKS = 40, DIRECTORIES = 6, NUMBERS = 40000, STEPS = 60000 };

struct pools {
    struct cw_pool chunks;
    struct cw_pool directories;
};

static void pools_create(struct pools *pools, uint32_t chunks)
{
    assert_int_equal(cw_pool_init(&pools->chunks, chunks, sizeof(struct cw_sent_chunk)), CW_OK);
    assert_int_equal(cw_pool_init(&pools->directories, DIRECTORIES, CW_WINDOW_BLOCK_BYTES), CW_OK);
}

static void pools_dispose(struct pools *pools)
{
    cw_pool_dispose(&pools->chunks);
    cw_pool_dispose(&pools->directories);
}

static uint64_t send_one(struct cw_sent_records *sent, struct pools *pools)
{
    if (!cw_sent_prepare(sent, &pools->chunks, &pools->directories)) {
        return UINT64_MAX;
    }
    uint64_t number = sent->next;
    struct cw_sent_chunk *chunk = cw_sent_chunk_of(sent, number);
    uint64_t bit = 1ull << (number % CW_SENT_CHUNK);
    chunk->acknowledged &= ~bit;
    chunk->lost &= ~bit;
    *cw_sent_at(sent, number) = (struct cw_sent){.time_ns = number * 3, .position = number ^ 0x55};
    sent->next++;
    return number;
}

static void acknowledge(struct cw_sent_records *sent, struct pools *pools, uint64_t number)
{
    struct cw_sent_chunk *chunk = cw_sent_chunk_of(sent, number);
    if (chunk != NULL) {
        chunk->acknowledged |= 1ull << (number % CW_SENT_CHUNK);
        cw_sent_finish(sent, number, &pools->chunks);
    }
}

/* Sends and acknowledges at random; every open record must be there, and chunks are held for at most the open ones and
 * two at the ends. */
static void records_stay_while_they_are_open(void **state)
{
    static const uint64_t firsts[] = {0, 1, 63, 64, 8191, 0xffffff80u, (1ull << 32) - 5};
    for (size_t run = 0; run < sizeof(firsts) / sizeof(firsts[0]); run++) {
        struct cw_random random;
        cw_random_seed(&random, run);
        struct pools pools;
        pools_create(&pools, CHUNKS);
        struct cw_sent_records sent;
        uint64_t first = firsts[run];
        cw_sent_init(&sent, first);
        bool *open = calloc(NUMBERS, sizeof(*open));
        for (uint32_t step = 0; step < STEPS && sent.next - first < NUMBERS; step++) {
            if (cw_random_chance(&random, 0.5)) {
                uint64_t number = send_one(&sent, &pools);
                if (number != UINT64_MAX) {
                    open[number - first] = true;
                }
            } else if (sent.next > sent.base) {
                /* mostly near the base, as it goes */
                uint64_t span = sent.next - sent.base;
                uint64_t number =
                    sent.base + cw_random_below(&random, cw_random_chance(&random, 0.8) && span > 8 ? 8 : span);
                acknowledge(&sent, &pools, number);
                open[number - first] = false;
            }
            uint64_t base = sent.base;
            while (base < sent.next && !open[base - first]) {
                base++;
            }
            cw_sent_advance(&sent, base, &pools.chunks, &pools.directories);
        }
        for (uint64_t number = sent.base; number < sent.next; number++) {
            if (open[number - first]) {
                assert_non_null(cw_sent_chunk_of(&sent, number));
                assert_int_equal(cw_sent_at(&sent, number)->time_ns, number * 3);
                assert_int_equal(cw_sent_at(&sent, number)->position, number ^ 0x55);
            }
        }
        assert_true(cw_sent_bytes(&sent, &pools.chunks, &pools.directories) > 0 || sent.base == sent.next);
        cw_sent_advance(&sent, sent.next, &pools.chunks, &pools.directories);
        cw_sent_trim(&sent, &pools.chunks, &pools.directories);
        assert_int_equal(pools.chunks.used, 0);
        assert_int_equal(pools.directories.used, 0);
        assert_int_equal(cw_sent_bytes(&sent, &pools.chunks, &pools.directories), 0);
        free(open);
        pools_dispose(&pools);
    }
}

/* A hole at the base must not keep the memory of what was acknowledged behind it. */
static void acknowledged_chunks_are_given_back_behind_a_hole(void **state)
{
    struct pools pools;
    pools_create(&pools, 4);
    struct cw_sent_records sent;
    cw_sent_init(&sent, 1000);
    for (uint32_t i = 0; i < 4000; i++) {
        uint64_t number = send_one(&sent, &pools);
        assert_true(number != UINT64_MAX);
        if (number != 1000) {
            acknowledge(&sent, &pools, number);
        }
    }
    assert_true(pools.chunks.used <= 3);
    assert_non_null(cw_sent_chunk_of(&sent, 1000));
    assert_null(cw_sent_chunk_of(&sent, 2000));
    pools_dispose(&pools);
}

static void used_up_pools_refuse_and_nothing_is_lost(void **state)
{
    struct pools pools;
    pools_create(&pools, 2);
    struct cw_sent_records sent;
    cw_sent_init(&sent, 0);
    for (uint32_t i = 0; i < 2 * CW_SENT_CHUNK; i++) {
        assert_int_equal(send_one(&sent, &pools), i);
    }
    assert_false(cw_sent_prepare(&sent, &pools.chunks, &pools.directories));
    cw_sent_advance(&sent, CW_SENT_CHUNK, &pools.chunks, &pools.directories);
    assert_int_equal(send_one(&sent, &pools), 2 * CW_SENT_CHUNK);
    pools_dispose(&pools);
}

int main(void)
{
    return TESTS_RUN(records_stay_while_they_are_open, acknowledged_chunks_are_given_back_behind_a_hole,
                     used_up_pools_refuse_and_nothing_is_lost);
}
