/* The switch's lines and the pool behind them: frames that fit, their order of arrival, and the times at which they are
 * offered to the next line. */
#include "apps/switch/line.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"
#include "tests/test.h"

#define GIGABIT UINT64_C(1000000000)

static const struct cw_link_config sea = {.rate_bps = GIGABIT,
                                          .delay_ns = 200000000,
                                          .queue_limit_bytes = 1000000,
                                          .overhead_bytes = CW_ETHERNET_OVERHEAD_BYTES};

/* 200 ms at 1 Gb/s, and the queue: frames of any sizes have room. */
static void a_long_fat_line_fits(void **state)
{
    static const uint32_t lengths[] = {SWITCH_POOL_FRAME_MIN, 161, 609, 1514};
    assert_int_equal(switch_line_bytes(&sea), 26000000);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct switch_pool pool;
        assert_int_equal(switch_pool_open(&pool, switch_line_bytes(&sea), 1514), CW_OK);
        assert_int_equal(pool.line_bytes, 26000000);
        for (uint64_t bytes = 0; bytes < pool.line_bytes; bytes += lengths[i] + CW_ETHERNET_OVERHEAD_BYTES) {
            struct switch_frame *frame = switch_pool_acquire(&pool, lengths[i]);
            assert_non_null(frame);
            memset(frame->data, 0xa5, 8); /* it is memory */
        }
        switch_pool_close(&pool);
    }
}

static void full_tables_report_it_and_slots_are_reused(void **state)
{
    struct switch_pool pool;
    struct switch_frame *first = NULL, *frame;
    uint32_t count = 0;
    assert_int_equal(switch_pool_open(&pool, 0, 1514), CW_OK);
    while ((frame = switch_pool_acquire(&pool, 1514)) != NULL) {
        frame->next = first;
        first = frame;
        assert_true(++count < 100000);
    }
    assert_true(count > 0 && first != NULL);
    assert_non_null(switch_pool_acquire(&pool, 100)); /* other sizes have slots of their own */
    switch_pool_release(&pool, first);
    assert_ptr_equal(switch_pool_acquire(&pool, 1200), first);
    assert_null(switch_pool_acquire(&pool, 1514));
    switch_pool_close(&pool);
}

static void more_than_there_is_is_reported(void **state)
{
    struct switch_pool pool;
    assert_int_equal(switch_pool_open(&pool, UINT64_C(1) << 40, 9614), CW_OK);
    assert_in_range(pool.line_bytes, 100000000, UINT64_C(8) << 30);
    switch_pool_close(&pool);
}

struct world {
    struct switch_pool pool;
    struct cw_heap heap;
    struct switch_line lines[2];
};

static void world_open(struct world *world, const struct cw_link_config *first, const struct cw_link_config *second)
{
    assert_int_equal(switch_pool_open(&world->pool, 100000, 1514), CW_OK);
    assert_true(cw_heap_init(&world->heap, 2));
    switch_line_init(&world->lines[0], SWITCH_LINE_WAN, 0, first, 1);
    switch_line_init(&world->lines[1], SWITCH_LINE_WAN, 1, second, 2);
}

static void world_close(struct world *world)
{
    cw_heap_dispose(&world->heap);
    switch_pool_close(&world->pool);
}

/* Offers a frame of 976 bytes, 8 us on the line at 1 Gb/s; when it arrives. */
static uint64_t offer(struct world *world, uint32_t line, uint64_t time_ns)
{
    uint64_t arrival_ns = 0;
    enum cw_link_fate fate;
    assert_true(switch_line_offer(&world->lines[line], time_ns, 976, &fate, &arrival_ns));
    struct switch_frame *frame = switch_pool_acquire(&world->pool, 976);
    assert_non_null(frame);
    frame->arrival_ns = arrival_ns;
    switch_line_hold(&world->lines[line], frame, &world->heap);
    return arrival_ns;
}

static uint64_t next(struct world *world, uint32_t expected)
{
    struct switch_line *line;
    struct switch_frame *frame = switch_line_next(&world->heap, &line);
    assert_ptr_equal(line, &world->lines[expected]);
    uint64_t arrival_ns = frame->arrival_ns;
    switch_pool_release(&world->pool, frame);
    return arrival_ns;
}

static void lines_alternate_by_time(void **state)
{
    struct world world;
    struct cw_link_config near = sea;
    near.delay_ns = 5000;
    struct cw_link_config far = near;
    far.delay_ns = 9000;
    world_open(&world, &near, &far);
    assert_int_equal(offer(&world, 0, 1000), 14000);
    assert_int_equal(offer(&world, 0, 1000), 22000);
    assert_int_equal(offer(&world, 1, 1000), 18000);
    assert_int_equal(world.lines[0].held, 2);
    assert_int_equal(next(&world, 0), 14000);
    assert_int_equal(next(&world, 1), 18000);
    assert_int_equal(next(&world, 0), 22000);
    assert_int_equal(world.heap.count, 0);
    world_close(&world);
}

/* A switch that comes late offers frames at the times at which they arrived: the second link does not see that it was
 * late. */
static void lateness_does_not_add_up(void **state)
{
    struct world world;
    world_open(&world, &sea, &sea);
    for (uint64_t i = 0; i < 10; i++) {
        (void)offer(&world, 0, 0);
    }
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t arrival_ns = next(&world, 0);
        assert_int_equal(arrival_ns, 200000000 + 8000 * (i + 1));
        (void)offer(&world, 1, arrival_ns);
    }
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(next(&world, 1), 400000000 + 8000 * (i + 2));
    }
    world_close(&world);
}

static void a_shorter_delay_overtakes_nothing(void **state)
{
    struct world world;
    struct cw_link_config shorter = sea;
    shorter.delay_ns = 1000;
    world_open(&world, &sea, &sea);
    uint64_t first_ns = offer(&world, 0, 0);
    cw_link_configure(&world.lines[0].link, &shorter);
    assert_int_equal(offer(&world, 0, 0), first_ns);
    assert_int_equal(next(&world, 0), first_ns);
    assert_int_equal(next(&world, 0), first_ns);
    world_close(&world);
}

static void the_longest_queue_is_noted(void **state)
{
    struct world world;
    world_open(&world, &sea, &sea);
    for (int i = 0; i < 5; i++) {
        (void)offer(&world, 0, 0);
    }
    assert_int_equal(cw_link_queue_bytes_recent(&world.lines[0].link, 40000), 5000);
    (void)offer(&world, 0, 40000);
    assert_int_equal(cw_link_queue_bytes_recent(&world.lines[0].link, 40000), 1000);
    assert_int_equal(cw_link_queue_bytes_recent(&world.lines[0].link, 40000), 1000); /* it is still there */
    world_close(&world);
}

int main(void)
{
    return TESTS_RUN(a_long_fat_line_fits, full_tables_report_it_and_slots_are_reused, more_than_there_is_is_reported,
                     lines_alternate_by_time, lateness_does_not_add_up, a_shorter_delay_overtakes_nothing,
                     the_longest_queue_is_noted);
}
