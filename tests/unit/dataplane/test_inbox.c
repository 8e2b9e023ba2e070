/* Rings and inboxes: one process finds the records of another, of any length; broken and foreign memory is rejected;
 * sleepers are woken. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "dataplane/base/random.h"
#include "dataplane/shm/copy.h"
#include "dataplane/shm/inbox.h"
#include "dataplane/status.h"
#include "tests/test.h"

/* Of the test that runs. */
static struct cw_inbox *inbox;

static void inbox_make(uint32_t senders)
{
    char error[200] = "";
    assert_true_msg(cw_inbox_create(senders, 4711, &inbox, error, sizeof(error)) == CW_OK, "%s", error);
}

static int inbox_end(void **state)
{
    cw_inbox_destroy(inbox);
    inbox = NULL;
    return 0;
}

static void attach(uint32_t sender, struct cw_inbox_sender *end)
{
    struct cw_inbox_place place = cw_inbox_place(inbox);
    char error[200] = "";
    assert_true_msg(cw_inbox_attach(&place, sender, end, error, sizeof(error)) == CW_OK, "%s", error);
}

/* The consumer's end of a slot, and the process that claimed it; NULL: not ready, or lost. */
static struct cw_ring_consumer *consumer_of(uint32_t slot, uint32_t *sender)
{
    struct cw_inbox_cursor at = {.next = slot};
    if (!cw_inbox_next(inbox, &at) || at.slot != slot) {
        return NULL;
    }
    *sender = at.sender;
    return at.ring;
}

static uint32_t ready_count(void)
{
    uint32_t count = 0;
    for (struct cw_inbox_cursor at = {.next = 0}; cw_inbox_next(inbox, &at);) {
        count++;
    }
    return count;
}

static uint8_t byte_of(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i);
}

static bool record_send(struct cw_inbox_sender *end, uint32_t number, uint32_t bytes)
{
    uint8_t *payload = cw_ring_reserve(&end->ring, bytes);
    if (payload == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        payload[i] = byte_of(number, i);
    }
    cw_ring_publish(&end->ring, bytes, (uint8_t)(1 + number % 255), number);
    cw_inbox_ring(end);
    return true;
}

static void record_check(const struct cw_ring_record *record, uint32_t number, uint32_t bytes)
{
    assert_int_equal(record->user, number);
    assert_int_equal(record->kind, 1 + number % 255);
    assert_int_equal(record->bytes, bytes);
    const uint8_t *payload = record->payload;
    for (uint32_t i = 0; i < bytes; i++) {
        assert_int_equal(payload[i], byte_of(number, i));
    }
}

static uint32_t length_of(struct cw_random *random)
{
    uint32_t most = 1u << cw_random_below(random, 15);
    uint32_t bytes = (uint32_t)cw_random_below(random, most);
    return bytes <= cw_ring_payload_max(CW_INBOX_RING_BYTES) ? bytes : cw_ring_payload_max(CW_INBOX_RING_BYTES);
}

/* A producer and a consumer that stop and go at random: many rounds through the ring, all lengths. */
static void records_arrive_whole_and_in_order(void **state)
{
    inbox_make(3);
    struct cw_inbox_sender end;
    struct cw_random pace, sent_lengths, taken_lengths;
    uint32_t sent = 0, taken = 0, refused = 0;
    cw_random_seed(&pace, 1);
    cw_random_seed(&sent_lengths, 2);
    cw_random_seed(&taken_lengths, 2);
    attach(7, &end);
    uint32_t sender, next_length = length_of(&sent_lengths);
    struct cw_ring_consumer *ring = consumer_of(0, &sender);
    assert_non_null(ring);
    assert_int_equal(sender, 7);
    while (taken < 20000) {
        for (uint64_t i = cw_random_below(&pace, 64); i > 0; i--) {
            if (!record_send(&end, sent, next_length)) {
                refused++;
                break;
            }
            sent++;
            next_length = length_of(&sent_lengths);
        }
        struct cw_ring_record record;
        for (uint64_t i = cw_random_below(&pace, 64); i > 0 && cw_ring_peek(ring, &record) == 1; i--) {
            record_check(&record, taken++, length_of(&taken_lengths));
            cw_ring_consume(ring, &record);
        }
    }
    assert_true(refused > 100);
    cw_inbox_detach(&end);
}

/* Limits the address space of this process to what it has and `more` bytes; returns the limit of before. */
static struct rlimit address_space_limit(uint64_t more)
{
    struct rlimit before, tight;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + more;
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    return before;
}

/* A sender that runs out of address space tries again and again; then all slots are still there. */
static void a_rank_that_cannot_map_a_ring_gets_no_slot(void **state)
{
    enum { SENDERS = 3, TRIES = 10 };
    inbox_make(SENDERS);
    struct cw_inbox_place place = cw_inbox_place(inbox);
    struct cw_inbox_sender ends[SENDERS];
    char error[200] = "";
    int statuses[TRIES];
    /* room for the header, which the attaching side maps with all slots there may be, and not for a ring as well */
    struct rlimit before = address_space_limit(CW_INBOX_SLOTS_MAX * 2 * CW_RING_LINE + 2 * CW_INBOX_RING_BYTES - 16384);
    for (int i = 0; i < TRIES; i++) {
        statuses[i] = cw_inbox_attach(&place, 1, &ends[0], error, sizeof(error));
    }
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(statuses[i], CW_ERROR_MEMORY);
    }
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        attach(sender, &ends[sender]);
    }
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        cw_inbox_detach(&ends[sender]);
    }
}

/* An owner that runs out of address space is notified of the process that it cannot receive from, permanently: records
 * meanwhile may be lost. */
static void a_rank_that_cannot_be_received_is_reported(void **state)
{
    inbox_make(2);
    struct cw_inbox_sender ends[2];
    char error[200] = "";
    uint32_t sender = 0;
    attach(10, &ends[0]);
    attach(11, &ends[1]);
    assert_non_null(consumer_of(0, &sender));
    assert_int_equal(cw_inbox_lost(inbox, 0, error, sizeof(error)), CW_OK);
    struct rlimit before = address_space_limit(0);
    const struct cw_ring_consumer *found = consumer_of(1, &sender);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_null(found);
    assert_int_equal(cw_inbox_lost(inbox, 1, error, sizeof(error)), CW_ERROR_MEMORY);
    assert_int_equal(sender, 11);
    assert_non_null(strstr(error, "ulimit -v"));
    assert_null(consumer_of(1, &sender));
    cw_inbox_detach(&ends[0]);
    cw_inbox_detach(&ends[1]);
}

static void each_sender_has_its_own_slot_until_none_is_left(void **state)
{
    inbox_make(2);
    struct cw_inbox_sender ends[3];
    struct cw_inbox_place place = cw_inbox_place(inbox);
    char error[200] = "";
    uint32_t sender;
    attach(10, &ends[0]);
    attach(11, &ends[1]);
    assert_int_equal(cw_inbox_attach(&place, 12, &ends[2], error, sizeof(error)), CW_ERROR_LIMIT);
    assert_non_null(strstr(error, "all 2 slots"));
    assert_int_equal(ready_count(), 2);
    assert_true(record_send(&ends[1], 5, 9));
    struct cw_ring_record record;
    struct cw_ring_consumer *first = consumer_of(0, &sender);
    assert_int_equal(sender, 10);
    assert_int_equal(cw_ring_peek(first, &record), 0);
    struct cw_ring_consumer *second = consumer_of(1, &sender);
    assert_int_equal(sender, 11);
    assert_int_equal(cw_ring_peek(second, &record), 1);
    cw_inbox_detach(&ends[0]);
    cw_inbox_detach(&ends[1]);
}

/* A header that cw_ring_publish cannot have written. */
static void nonsense_is_reported(void **state)
{
    inbox_make(1);
    struct cw_inbox_sender end;
    struct cw_ring_record record;
    uint32_t sender;
    attach(0, &end);
    struct cw_ring_consumer *ring = consumer_of(0, &sender);
    *(uint64_t *)(void *)end.ring.memory = 40; /* kind 0 */
    assert_int_equal(cw_ring_peek(ring, &record), -1);
    *(uint64_t *)(void *)end.ring.memory = 1ull << CW_RING_BYTES_BITS | CW_INBOX_RING_BYTES;
    assert_int_equal(cw_ring_peek(ring, &record), -1);
    cw_inbox_detach(&end);
}

static void other_memory_is_rejected(void **state)
{
    inbox_make(1);
    struct cw_inbox_sender end;
    char error[200] = "";
    struct cw_inbox_place place = cw_inbox_place(inbox);
    place.nonce++;
    assert_int_equal(cw_inbox_attach(&place, 0, &end, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    place = cw_inbox_place(inbox);
    place.descriptor = 999;
    assert_int_equal(cw_inbox_attach(&place, 0, &end, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    place.number = INT32_MAX; /* /proc has none of that number, but the process is there */
    assert_int_equal(cw_inbox_attach(&place, 0, &end, error, sizeof(error)), CW_ERROR_PERMISSION);
    assert_non_null(strstr(error, "mount the /proc"));
    place.pid = INT32_MAX; /* neither is */
    assert_int_equal(cw_inbox_attach(&place, 0, &end, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    place = cw_inbox_place(inbox);
    place.descriptor = 1; /* a file, a pipe or a terminal, but no inbox */
    assert_int_not_equal(cw_inbox_attach(&place, 0, &end, error, sizeof(error)), CW_OK);
    assert_int_equal(ready_count(), 0);
    (void)inbox_end(NULL);
    assert_int_equal(cw_inbox_create(0, 1, &inbox, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_inbox_create(CW_INBOX_SLOTS_MAX + 1, 1, &inbox, error, sizeof(error)), CW_ERROR_ARGUMENT);
}

/* The other process sends records and waits for each one's echo, which must not be lost during a sleep. */
static void echo(const struct cw_inbox_place *other, uint32_t rounds, bool begins)
{
    struct cw_inbox_sender end;
    struct cw_ring_record record;
    char error[200];
    uint32_t sender;
    uint64_t now_ns = 0;
    assert_int_equal(cw_inbox_attach(other, 1, &end, error, sizeof(error)), CW_OK);
    for (uint32_t round = 0; round < rounds; round++) {
        if (begins) {
            assert_true(record_send(&end, round, 30));
        }
        struct cw_ring_consumer *ring = NULL;
        while ((ring == NULL && (ring = consumer_of(0, &sender)) == NULL) || cw_ring_peek(ring, &record) == 0) {
            /* sleeps seem to come fast and slowly in turn, so that owner and senders pay for the barriers in turn */
            cw_inbox_arm(inbox, now_ns += round / 200 % 2 == 0 ? CW_INBOX_OFTEN_NS / 4 : CW_INBOX_RARELY_NS * 4);
            if (ring == NULL || cw_ring_peek(ring, &record) == 0) {
                cw_inbox_sleep(inbox, 60000000000ull);
            }
            cw_inbox_disarm(inbox);
        }
        assert_int_equal(record.user, round);
        cw_ring_consume(ring, &record);
        if (!begins) {
            assert_true(record_send(&end, round, 30));
        }
    }
    cw_inbox_detach(&end);
}

/* Both sides sleep after each record. A lost wake-up would end in the test's time limit. */
static void sleepers_are_woken(void **state)
{
    inbox_make(1);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    struct cw_inbox_place own = cw_inbox_place(inbox), other;
    pid_t child = fork();
    if (child == 0) {
        inbox_make(1);
        struct cw_inbox_place place = cw_inbox_place(inbox);
        if (write(ready[1], &place, sizeof(place)) == sizeof(place)) {
            echo(&own, 3000, false);
        }
        _exit(0);
    }
    assert_int_equal(read(ready[0], &other, sizeof(other)), sizeof(other));
    echo(&other, 3000, true);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

static void who_sleeps_often_lets_the_senders_pay(void **state)
{
    inbox_make(1);
    struct cw_inbox_sender end;
    char error[200];
    uint64_t now_ns = 7;
    struct cw_inbox_place place = cw_inbox_place(inbox);
    assert_int_equal(cw_inbox_attach(&place, 1, &end, error, sizeof(error)), CW_OK);
    if (end.shared->senders_fence != 0) {
        skip(); /* no membarrier here: they always pay */
    }
    for (int turn = 0; turn < 3; turn++) {
        for (int often = 1; often >= 0; often--) {
            for (int i = 0; i < 100; i++) {
                cw_inbox_arm(inbox, now_ns += often ? CW_INBOX_OFTEN_NS / 4 : 2 * CW_INBOX_RARELY_NS);
                cw_inbox_disarm(inbox);
            }
            assert_int_equal(end.shared->senders_fence, often);
        }
    }
    cw_inbox_arm(inbox, now_ns += 3600000000000); /* one long rest is no habit, and a short one after it neither */
    cw_inbox_arm(inbox, now_ns += 1);
    cw_inbox_disarm(inbox);
    assert_int_equal(end.shared->senders_fence, 0);
    cw_inbox_detach(&end);
}

/* Only the job's processes on this host are admitted: the descendants of the launcher's, or of the parent; and only
 * where Yama requires it. */
static void only_the_job_is_let_in(void **state)
{
    char own[16], parent[16];
    pid_t above = getppid();
    snprintf(own, sizeof(own), "%d", getpid());
    snprintf(parent, sizeof(parent), "%d", above);
    assert_int_equal(cw_copy_tracer(-1, parent, above), 0);
    assert_int_equal(cw_copy_tracer(0, parent, above), 0);
    assert_int_equal(cw_copy_tracer(2, parent, above), 0);
    assert_int_equal(cw_copy_tracer(1, parent, 4711), above > 1 ? above : 4711);
    static const char *const useless[] = {NULL, "", "x", "0", "1", "-1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(useless) / sizeof(useless[0]); i++) {
        assert_int_equal(cw_copy_tracer(1, useless[i], 4711), 4711);
        assert_int_equal(cw_copy_tracer(1, useless[i], 1), 0);
        assert_int_equal(cw_copy_tracer(1, useless[i], 0), 0);
    }
    assert_int_equal(cw_copy_tracer(1, own, 4711), 4711); /* no ancestor: the number belongs to another process now */
}

static void memory_of_another_process_is_copied(void **state)
{
    static uint64_t value = 0x1234567890;
    static char text[100000];
    int go[2];
    char byte;
    assert_int_equal(pipe(go), 0);
    cw_copy_allow(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        text[99999] = 'x';
        _exit(read(go[0], &byte, 1) == 0 && text[0] == 'y' ? 0 : 1);
    }
    close(go[0]);
    if (!cw_copy_probe(child, (uint64_t)(uintptr_t)&value, value)) {
        close(go[1]);
        waitpid(child, NULL, 0);
        skip(); /* this kernel or container forbids it: the very case that the rings are for */
    }
    assert_false(cw_copy_probe(child, (uint64_t)(uintptr_t)&value, value + 1));
    assert_int_equal(cw_copy_from(child, text, 4, 100), CW_ERROR_REMOTE_ACCESS);
    text[0] = 'y';
    assert_int_equal(cw_copy_to(child, (uint64_t)(uintptr_t)text, text, 1), CW_OK);
    close(go[1]);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(cw_copy_from(child, text, (uint64_t)(uintptr_t)text, 1), CW_ERROR_NOT_FOUND);
}

int main(void)
{
    return TESTS_RUN_EACH(NULL, inbox_end, records_arrive_whole_and_in_order,
                          a_rank_that_cannot_map_a_ring_gets_no_slot, a_rank_that_cannot_be_received_is_reported,
                          each_sender_has_its_own_slot_until_none_is_left, nonsense_is_reported,
                          other_memory_is_rejected, who_sleeps_often_lets_the_senders_pay, sleepers_are_woken,
                          only_the_job_is_let_in, memory_of_another_process_is_copied);
}
