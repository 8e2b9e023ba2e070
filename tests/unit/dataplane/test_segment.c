/* Segment: many members in rounds, a result by the last to arrive, calls that differ, and places that are none. */
#include <pthread.h>
#include <sched.h>

#include "dataplane/shm/segment.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { MEMBERS_MAX = 40, ROUNDS = 400 };

struct member {
    struct cw_segment segment;
    pthread_t thread;
    uint32_t wrong;
    uint32_t last_count; /* rounds that it was the last to arrive at */
    uint32_t different_count;
    uint64_t odd_round; /* it says something else there */
};

static struct member members[MEMBERS_MAX];

static void await(const _Atomic uint64_t *word, uint64_t least)
{
    while (atomic_load_explicit(word, memory_order_acquire) < least) {
        sched_yield();
    }
}

/* In some rounds only one sends, in a short slot, and all pass by if they may. */
static uint32_t sender_of(const struct cw_segment *segment, uint64_t round)
{
    return round / 20 % 3 == 1 ? (uint32_t)round % segment->member_count : segment->member_count;
}

/* ... then none skips a round before a long slot is used again. */
static bool is_passed(const struct cw_segment *segment, uint64_t round)
{
    return sender_of(segment, round) < segment->member_count && round % 20 < 16 && cw_segment_may_pass(round);
}

static uint64_t value_of(uint32_t member, uint64_t round)
{
    return round * 1000 + member;
}

/* Some rounds with long slots among those with short ones. */
static bool is_short(uint64_t round)
{
    return round % 7 < 4 || round / 20 % 3 == 1;
}

static uint64_t sum_of(const struct cw_segment *segment, uint64_t round)
{
    uint64_t sum = 0;
    for (uint32_t member = 0; member < segment->member_count; member++) {
        uint64_t value;
        memcpy(&value, cw_segment_slot(segment, member, round, is_short(round)), sizeof(value));
        sum += value;
    }
    return sum;
}

/* The sender does not wait for the others, nor they for each other. */
static void sent_run(struct member *self, uint64_t round)
{
    struct cw_segment *segment = &self->segment;
    uint32_t sender = sender_of(segment, round);
    uint64_t value = value_of(sender, round), read;
    cw_segment_enter(segment, round,
                     &(struct cw_segment_call){.signature = round, .bytes = round, .kind = 2, .root = sender});
    if (sender == segment->member) {
        await(cw_segment_completed(segment), cw_segment_may_write(round, true));
        memcpy(cw_segment_slot(segment, sender, round, true), &value, sizeof(value));
        cw_segment_publish(segment, round, round * 3);
    } else {
        await(cw_segment_published(segment, sender, round), round);
        memcpy(&read, cw_segment_slot(segment, sender, round, true), sizeof(read));
        self->wrong += read != value || cw_segment_published_in(segment, sender, round) != round * 3;
    }
}

/* Each round all members write; the last one adds up for all; each member also adds up for itself. */
static void *member_run(void *argument)
{
    struct member *self = argument;
    struct cw_segment *segment = &self->segment;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t value = value_of(segment->member, round), result, wanted = 0;
        if (is_passed(segment, round)) {
            sent_run(self, round);
            continue;
        }
        await(cw_segment_completed(segment), cw_segment_may_write(round, is_short(round)));
        cw_segment_enter(segment, round,
                         &(struct cw_segment_call){.signature = 7, .bytes = round, .kind = 1, .root = 2});
        memcpy(cw_segment_slot(segment, segment->member, round, is_short(round)), &value, sizeof(value));
        cw_segment_publish(segment, round, round * 3);
        enum cw_segment_arrival arrival = cw_segment_arrive(segment, round, round == self->odd_round ? 8 : 7);
        if (arrival != CW_SEGMENT_NOT_LAST) {
            self->last_count++;
            self->different_count += arrival == CW_SEGMENT_DIFFERENT;
            result = sum_of(segment, round);
            memcpy(cw_segment_slot(segment, segment->member_count, round, is_short(round)), &result, sizeof(result));
            cw_segment_complete(segment, round);
        }
        await(cw_segment_completed(segment), round);
        for (uint32_t member = 0; member < segment->member_count; member++) {
            wanted += value_of(member, round);
        }
        memcpy(&result, cw_segment_slot(segment, segment->member_count, round, is_short(round)), sizeof(result));
        self->wrong += result != wanted || sum_of(segment, round) != wanted;
    }
    return NULL;
}

static void members_open(uint32_t count)
{
    char error[200] = "";
    memset(members, 0, sizeof(members));
    assert_int_equal(cw_segment_create(count, 42, &members[0].segment, error, sizeof(error)), CW_OK);
    struct cw_segment_place place = cw_segment_place(&members[0].segment);
    for (uint32_t member = 1; member < count; member++) {
        assert_int_equal(cw_segment_open(&place, member, count, &members[member].segment, error, sizeof(error)), CW_OK);
    }
    cw_segment_seal(&members[0].segment);
    assert_int_equal(cw_segment_open(&place, 1, count, &members[1].segment, error, sizeof(error)), CW_ERROR_NOT_FOUND);
}

static void members_run(uint32_t count)
{
    for (uint32_t member = 0; member < count; member++) {
        assert_int_equal(pthread_create(&members[member].thread, NULL, member_run, &members[member]), 0);
    }
    for (uint32_t member = 0; member < count; member++) {
        pthread_join(members[member].thread, NULL);
    }
}

static void members_close(uint32_t count)
{
    for (uint32_t member = 0; member < count; member++) {
        cw_segment_close(&members[member].segment);
    }
}

/* Rounds that no member skips. */
static uint32_t arrivals(const struct cw_segment *segment)
{
    uint32_t count = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        count += !is_passed(segment, round);
    }
    return count;
}

/* One counter, and one per group of members, also groups that are not full. */
static void test_rounds(void **state)
{
    static const uint32_t counts[] = {2, 3, 16, 17, 33, MEMBERS_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint32_t last_count = 0;
        members_open(counts[i]);
        members_run(counts[i]);
        for (uint32_t member = 0; member < counts[i]; member++) {
            assert_int_equal(members[member].wrong, 0);
            assert_int_equal(members[member].different_count, 0);
            last_count += members[member].last_count;
        }
        assert_int_equal(last_count, arrivals(&members[0].segment));
        members_close(counts[i]);
    }
}

/* One member makes another call in one round: the last to arrive notices, in that round and no other. */
static void test_calls_that_differ(void **state)
{
    static const uint32_t counts[] = {2, 8, MEMBERS_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint32_t different_count = 0;
        members_open(counts[i]);
        members[counts[i] / 2].odd_round = 5;
        members_run(counts[i]);
        for (uint32_t member = 0; member < counts[i]; member++) {
            different_count += members[member].different_count;
        }
        assert_int_equal(different_count, 1);
        members_close(counts[i]);
    }
}

static void test_messages_of_a_member(void **state)
{
    struct cw_segment_call call = {.signature = 3, .bytes = 100, .kind = 4, .root = 5}, found;
    char why[CW_SEGMENT_WHY_BYTES];
    uint64_t number;
    members_open(2);
    assert_int_equal(cw_segment_call_of(&members[0].segment, 1, &found), 0);
    cw_segment_enter(&members[1].segment, 9, &call);
    assert_int_equal(cw_segment_call_of(&members[0].segment, 1, &found), 9);
    assert_memory_equal(&found, &call, sizeof(call));
    assert_false(cw_segment_sleepers(&members[0].segment));
    cw_segment_doze(&members[1].segment, true);
    assert_true(cw_segment_sleepers(&members[0].segment) && cw_segment_sleeps(&members[0].segment, 1));
    cw_segment_doze(&members[1].segment, false);
    assert_false(cw_segment_sleepers(&members[0].segment) || cw_segment_sleeps(&members[0].segment, 1));
    assert_int_equal(cw_segment_why(&members[0].segment, &number, why, sizeof(why)), 0);
    cw_segment_break(&members[1].segment, 5, 77, "the first reason");
    cw_segment_break(&members[1].segment, 6, 78, "the second reason");
    assert_int_equal(cw_segment_why(&members[0].segment, &number, why, sizeof(why)), 77);
    assert_string_equal(why, "the first reason");
    assert_int_equal(number, 5);
    assert_true(cw_segment_is_broken(&members[0].segment));
    members_close(2);
}

enum { CHANGES = 20000000 };

static void *calls_change(void *argument)
{
    for (uint64_t round = 1; round <= CHANGES; round++) {
        cw_segment_enter(argument, round, &(struct cw_segment_call){.signature = round * 3, .bytes = round * 5});
    }
    return NULL;
}

/* A reader never sees a member's call with the number of another one, while the member moves on. */
static void test_calls_are_read_whole(void **state)
{
    pthread_t thread;
    uint64_t round = 0;
    members_open(2);
    assert_int_equal(pthread_create(&thread, NULL, calls_change, &members[1].segment), 0);
    while (round < CHANGES) {
        struct cw_segment_call call;
        round = cw_segment_call_of(&members[0].segment, 1, &call);
        assert_true(round == 0 || (call.signature == round * 3 && call.bytes == round * 5));
    }
    pthread_join(thread, NULL);
    members_close(2);
}

static void test_bad_places(void **state)
{
    char error[200] = "";
    struct cw_segment segment, other;
    assert_int_equal(cw_segment_create(1, 1, &segment, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_segment_create(CW_SEGMENT_MEMBERS_MAX + 1, 1, &segment, error, sizeof(error)),
                     CW_ERROR_ARGUMENT);
    assert_int_equal(cw_segment_create(3, 1, &segment, error, sizeof(error)), CW_OK);
    struct cw_segment_place place = cw_segment_place(&segment);
    assert_int_equal(cw_segment_open(&place, 1, 4, &other, error, sizeof(error)), CW_ERROR_UNSUPPORTED);
    place.nonce++;
    assert_int_equal(cw_segment_open(&place, 1, 3, &other, error, sizeof(error)), CW_ERROR_UNSUPPORTED);
    place.nonce--;
    place.descriptor = STDERR_FILENO; /* something else */
    assert_int_not_equal(cw_segment_open(&place, 1, 3, &other, error, sizeof(error)), CW_OK);
    cw_segment_close(&segment);
}

int main(void)
{
    return TESTS_RUN(test_rounds, test_calls_that_differ, test_messages_of_a_member, test_calls_are_read_whole,
                     test_bad_places);
}
