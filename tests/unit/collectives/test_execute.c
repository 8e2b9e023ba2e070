/* The executor against a transport that acts as the test requests and records its calls: descriptions, rejections and
 * bounds, and features of MPI's transport alone. The sweeps of tests/schedules prove that schedules run in any order of
 * events. */
#include "collectives/execute/execute.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum {
    SIGNAL = ((1 << 17) << 2) + CW_TAG_SIGNAL, /* of barrier 0, round 0 */
    LOG_MAX = 1024,
    OPS_MAX = 64,
    BUFFER_BYTES = 4096,
    NOBODY = 0, /* rank 0 is the one that executes */
};

/* Rank 0's schedule, op by op, and the transport. */
struct bench {
    struct cw_schedule schedule;
    struct cw_op ops[OPS_MAX];
    struct cw_dependency dependencies[OPS_MAX];
    struct cw_group_range groups[1];
    uint32_t members[2];
    uint32_t ranks, body_left, iterations;
    uint8_t buffers[4][BUFFER_BYTES];
    struct cw_execution *execution;
    struct cw_transport transport;
    struct cw_transport_sink sink;
    struct cw_transport_event events[LOG_MAX];
    uint32_t event_first, event_count;
    struct cw_transport_put puts[LOG_MAX];
    uint32_t peers[LOG_MAX]; /* the first one of each put */
    uint32_t put_count, tries, release_count, keep_count;
    uint8_t kept[LOG_MAX]; /* bytes that were valid during their event only */
    int put_status;
    uint32_t refused_peer; /* gets put_status; NOBODY: all do */
};

static int bench_put(void *state, const struct cw_transport_put *put)
{
    struct bench *bench = state;
    bench->tries++;
    if (bench->put_status != CW_OK && (bench->refused_peer == NOBODY || bench->refused_peer == put->peers[0])) {
        return bench->put_status;
    }
    assert_true(bench->put_count < LOG_MAX);
    bench->peers[bench->put_count] = put->peers[0];
    bench->puts[bench->put_count++] = *put;
    return CW_OK;
}

static void bench_serve(void *state, const struct cw_transport_sink *sink)
{
    ((struct bench *)state)->sink = *sink;
}

static const void *bench_keep(void *state, const void *data, uint64_t bytes, uint64_t *buffer)
{
    struct bench *bench = state;
    uint8_t *copy = memcpy(bench->kept + bench->keep_count, data, bytes);
    *buffer = LOG_MAX + ++bench->keep_count;
    return copy;
}

static void bench_release(void *state, uint64_t buffer)
{
    ((struct bench *)state)->release_count++;
}

static struct bench *bench_begin(uint32_t ranks)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    bench->ranks = ranks;
    bench->schedule = (struct cw_schedule){.ops = bench->ops,
                                           .dependencies = bench->dependencies,
                                           .groups = bench->groups,
                                           .members = bench->members,
                                           .scratch_bytes = BUFFER_BYTES};
    bench->transport = (struct cw_transport){
        .state = bench, .serve = bench_serve, .put = bench_put, .keep = bench_keep, .release = bench_release};
    return bench;
}

static void bench_end(struct bench *bench)
{
    cw_execution_destroy(bench->execution);
    free(bench);
}

/* ---- Ops ---- */

/* `number`: of the tag, as in all that follows. */
static uint32_t add(struct bench *bench, struct cw_op op, uint32_t number)
{
    struct cw_schedule *schedule = &bench->schedule;
    bool is_inside = bench->body_left > 0;
    op.tag = number * (op.kind == CW_OP_BARRIER ? 1 : CW_TAG_STEP);
    op.last_bytes = op.bytes;
    op.blocks = 1;
    op.dependency_first = schedule->dependency_count;
    op.iterations = op.kind == CW_OP_REPEAT ? op.iterations : is_inside ? bench->iterations : 1;
    bench->body_left = op.kind == CW_OP_REPEAT ? op.body_count : bench->body_left - is_inside;
    bench->iterations = op.iterations;
    schedule->barrier_count += op.kind == CW_OP_BARRIER;
    schedule->ops[schedule->op_count] = op;
    return schedule->op_count++;
}

/* Makes the last op wait for another one. */
static void after(struct bench *bench, uint32_t op, uint16_t flags)
{
    struct cw_schedule *schedule = &bench->schedule;
    schedule->dependencies[schedule->dependency_count++] = (struct cw_dependency){.op = op, .flags = flags};
    schedule->ops[schedule->op_count - 1].dependency_count++;
}

/* Eager, from the send buffer. */
static uint32_t put(struct bench *bench, uint32_t peer, uint32_t number, uint64_t bytes)
{
    return add(bench,
               (struct cw_op){
                   .kind = CW_OP_PUT, CW_OP_EAGER, .peer = peer, .bytes = bytes, .from = {.buffer = CW_BUFFER_SEND}},
               number);
}

/* Into the receive buffer, from `offset` on; iterations go on byte by byte. */
static uint32_t wait(struct bench *bench, uint32_t peer, uint32_t number, uint64_t bytes, uint8_t flags,
                     uint64_t offset)
{
    const struct cw_place to = {CW_BUFFER_RECEIVE, offset, bench->body_left > 0 ? 1 : 0};
    return add(bench, (struct cw_op){.kind = CW_OP_WAIT, flags, .peer = peer, .bytes = bytes, .to = to}, number);
}

static uint32_t local(struct bench *bench, uint8_t kind, uint64_t bytes)
{
    return add(
        bench,
        (struct cw_op){
            .kind = kind, .bytes = bytes, .from = {.buffer = CW_BUFFER_SEND}, .to = {.buffer = CW_BUFFER_RECEIVE}},
        0);
}

static uint32_t repeat(struct bench *bench, uint32_t body_count, uint32_t iterations)
{
    return add(bench, (struct cw_op){.kind = CW_OP_REPEAT, .body_count = body_count, .iterations = iterations}, 0);
}

/* ---- Running ---- */

static void sum_bytes(void *context, void *to, const void *left, const void *right, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        ((uint8_t *)to)[i] = (uint8_t)(((const uint8_t *)left)[i] + ((const uint8_t *)right)[i]);
    }
}

static struct cw_execution_request request_of(struct bench *bench)
{
    struct cw_execution_request request = {.schedule = &bench->schedule,
                                           .ranks = bench->ranks,
                                           .element_bytes = 1,
                                           .transport = &bench->transport,
                                           .reduce = sum_bytes};
    for (int i = 0; i < 4; i++) {
        request.buffers[i] = bench->buffers[i];
    }
    return request;
}

static void bench_create(struct bench *bench, bool (*may_reduce)(void *context), void *context)
{
    static const uint64_t buffer_bytes[] = {0, BUFFER_BYTES, BUFFER_BYTES, BUFFER_BYTES};
    struct cw_execution_request request = request_of(bench);
    char error[200];
    request.may_reduce = may_reduce;
    request.reduce_context = context;
    assert_true_msg(cw_schedule_validate(&bench->schedule, bench->ranks, buffer_bytes, error, sizeof(error)) == CW_OK,
                    "%s", error);
    assert_int_equal(cw_execution_create(&request, &bench->execution), CW_OK);
}

static struct cw_transport_event *event_add(struct bench *bench, enum cw_transport_event_kind kind)
{
    struct cw_transport_event *event = &bench->events[bench->event_count++];
    assert_true(bench->event_count <= LOG_MAX);
    *event = (struct cw_transport_event){.kind = kind};
    return event;
}

/* SENT or COMPLETE of put number `put_number`. */
static void put_event(struct bench *bench, enum cw_transport_event_kind kind, uint32_t put_number)
{
    event_add(bench, kind)->context = bench->puts[put_number].context;
}

static void arrive(struct bench *bench, uint32_t peer, uint32_t tag, bool eager, const void *data, uint64_t bytes,
                   uint64_t buffer)
{
    struct cw_transport_event *event = event_add(bench, CW_TRANSPORT_ARRIVED);
    *event = (struct cw_transport_event){.kind = CW_TRANSPORT_ARRIVED,
                                         .peer = peer,
                                         .tag = tag,
                                         .eager = eager,
                                         .data = data,
                                         .bytes = bytes,
                                         .buffer = buffer};
}

/* Polls; gives it the events that were added, and polls again. */
static int bench_poll(struct bench *bench)
{
    int status = cw_execution_poll(bench->execution);
    if (bench->event_first == bench->event_count) {
        return status;
    }
    while (bench->event_first < bench->event_count) {
        const struct cw_transport_event *event = &bench->events[bench->event_first++];
        bench->release_count +=
            !bench->sink.event(bench->sink.context, event) && event->eager && event->buffer != 0 ? 1 : 0;
    }
    return cw_execution_poll(bench->execution);
}

static void assert_describes(const struct bench *bench, const char *words)
{
    char text[400];
    cw_execution_describe(bench->execution, text, sizeof(text));
    assert_true_msg(strstr(text, words) != NULL && strchr(text, '\n') == NULL, "expected \"%s\" in \"%s\"", words,
                    text);
}

/* It advances, and describes its wait. */
static void waits(struct bench *bench, const char *words)
{
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_describes(bench, words);
}

/* It fails with `status`, says why, and stays so; ends the bench. */
static void fails(struct bench *bench, int status, const char *words)
{
    assert_int_equal(bench_poll(bench), status);
    assert_describes(bench, "failed: ");
    assert_describes(bench, words);
    uint32_t tries = bench->tries;
    assert_int_equal(bench_poll(bench), status);
    assert_int_equal(bench->tries, tries);
    bench_end(bench);
}

/* ---- Describing ---- */

static void test_describe(void **state)
{
    struct bench *bench = bench_begin(5);
    uint32_t gate = wait(bench, 2, 3, 4, CW_OP_EAGER, 0);
    bench->ops[gate].phase = 2;
    put(bench, 4, 9, 4);
    after(bench, gate, 0);
    bench_create(bench, NULL, NULL);
    assert_describes(bench, "rank 0: to be polled; 0 of 2 ops complete");
    waits(bench, "rank 0: op 0 (wait, phase 2) for tag 12 of rank 2; 0 of 2 ops complete");
    arrive(bench, 2, 3 * CW_TAG_STEP, true, "abcd", 4, 77);
    bench->put_status = CW_ERROR_AGAIN;
    waits(bench, "op 1 (put, phase 0) with tag 36 to rank 4, which the transport does not take; 1 of 2 ops complete");
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], "abcd", 4);
    assert_int_equal(bench->release_count, 1);
    bench->put_status = CW_OK;
    waits(bench, "op 1 (put, phase 0) with tag 36 to rank 4, to complete; 1 of 2");
    put_event(bench, CW_TRANSPORT_COMPLETE, 0);
    assert_int_equal(bench_poll(bench), CW_OK);
    assert_describes(bench, "rank 0: complete; 2 of 2 ops complete");
    assert_int_equal(bench_poll(bench), CW_OK);
    bench_end(bench);
}

static void test_describe_barrier_and_body(void **state)
{
    struct bench *bench = bench_begin(6);
    add(bench, (struct cw_op){.kind = CW_OP_BARRIER}, 0);
    repeat(bench, 1, 20);
    after(bench, 0, 0);
    wait(bench, 1, 0, 1, 0, 0);
    bench_create(bench, NULL, NULL);
    waits(bench, "op 0 (barrier, phase 0) number 0, 1 of 3 rounds sent; not heard of rank 5 rank 4 rank 2; 0 of 3");
    assert_true(bench->puts[0].tag == SIGNAL && bench->peers[0] == 1);
    arrive(bench, 4, SIGNAL + CW_TAG_STEP, true, NULL, 0, 1); /* of the second round */
    waits(bench, "1 of 3 rounds sent");
    arrive(bench, 5, SIGNAL, true, NULL, 0, 2);
    waits(bench, "3 of 3 rounds sent");
    assert_true(bench->peers[1] == 2 && bench->peers[2] == 4);
    arrive(bench, 2, SIGNAL + 2 * CW_TAG_STEP, true, NULL, 0, 3);
    arrive(bench, 1, 2 * CW_TAG_STEP, false, NULL, 1, 0);
    arrive(bench, 1, 0, false, NULL, 1, 0);
    waits(bench, "op 2 (wait, phase 0, iteration 1 of 20) for tag 4 of rank 1; 1 of 3 ops complete");
    bench_end(bench);
}

/* ---- Starting ---- */

/* The first ready op of the array is next; the ops of a body advance together. */
static void test_order_of_starts(void **state)
{
    struct bench *bench = bench_begin(9);
    uint32_t join = add(bench, (struct cw_op){.kind = CW_OP_JOIN}, 0);
    put(bench, 5, 0, 1);
    after(bench, join, 0);
    put(bench, 6, 0, 1);
    repeat(bench, 2, 10);
    put(bench, 1, 0, 1);
    put(bench, 2, 0, 1);
    put(bench, 8, 0, 1);
    bench_create(bench, NULL, NULL);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->put_count, 23);
    for (uint32_t i = 0; i < 23; i++) {
        assert_int_equal(bench->peers[i], i < 2 ? 5 + i : i < 22 ? 1 + i % 2 : 8);
        assert_int_equal(bench->puts[i].tag, i >= 2 && i < 22 ? (i - 2) / 2 * CW_TAG_STEP : 0);
    }
    bench_end(bench);
}

/* Ops that wait for a put's send start before those that wait for its completion. */
static void test_sent_is_enough(void **state)
{
    struct bench *bench = bench_begin(3);
    put(bench, 1, 0, 8);
    put(bench, 2, 0, 8);
    after(bench, 0, CW_DEPENDENCY_SENT);
    put(bench, 2, 1, 8);
    after(bench, 0, 0);
    bench_create(bench, NULL, NULL);
    for (uint32_t started = 1; started <= 3; started++) {
        assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
        assert_int_equal(bench->put_count, started);
        put_event(bench, started == 1 ? CW_TRANSPORT_SENT : CW_TRANSPORT_COMPLETE, 0);
    }
    assert_int_equal(bench->puts[1].tag, 0);
    bench_end(bench);
}

static void test_work_of_a_poll_is_bounded(void **state)
{
    enum { COPIES = 10000, STARTS_MAX = 4096 };
    struct bench *bench = bench_begin(2);
    repeat(bench, 1, COPIES);
    local(bench, CW_OP_COPY, 1);
    bench_create(bench, NULL, NULL);
    uint32_t polls = 1;
    while (bench_poll(bench) == CW_ERROR_AGAIN) {
        polls++;
    }
    assert_in_range(polls, COPIES / STARTS_MAX + 1, COPIES / STARTS_MAX + 2);
    bench_end(bench);
}

/* A full transport is not asked for every put at every poll; each comes to its turn nevertheless, and none holds the
 * others up. */
static void test_refusals_are_bounded(void **state)
{
    enum { PUTS = 40 };
    struct bench *bench = bench_begin(PUTS + 1);
    for (uint32_t i = 1; i <= PUTS; i++) {
        put(bench, i, 0, 1);
    }
    bench_create(bench, NULL, NULL);
    bench->put_status = CW_ERROR_AGAIN;
    for (uint32_t i = 1; i < 10; i++) {
        assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
        assert_true(bench->tries <= i * 8);
    }
    bench->refused_peer = 7;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->put_count, PUTS - 1);
    bench->put_status = CW_OK;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->put_count, PUTS);
    bench_end(bench);
}

static bool reduce_if_allowed(void *context)
{
    return *(const bool *)context;
}

/* A reduction that may not be made by this poll holds nothing else up, and is made by the next one that may, however
 * many puts are refused. */
static void test_reductions_are_left(void **state)
{
    bool is_allowed = false;
    struct bench *bench = bench_begin(4);
    for (uint32_t i = 0; i < 9; i++) {
        put(bench, 1, i, 1);
    }
    uint32_t sum = local(bench, CW_OP_REDUCE, 4);
    put(bench, 2, 0, 4);
    after(bench, sum, 0);
    memcpy(bench->buffers[CW_BUFFER_SEND], "\1\2\3\4", 4);
    bench->put_status = CW_ERROR_AGAIN;
    bench->refused_peer = 1;
    bench_create(bench, reduce_if_allowed, &is_allowed);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], "\0\0\0\0", 4);
    is_allowed = true;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], "\1\2\3\4", 4);
    bench->put_status = CW_OK;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->put_count, 10);
    bench_end(bench);
}

/* ---- Arriving ---- */

/* Before their wait has started: eager ones are kept, also those whose bytes are valid during the event only. */
static void test_early_arrivals_are_kept(void **state)
{
    enum { SEGMENTS = 300 };
    struct bench *bench = bench_begin(3);
    uint32_t gate = wait(bench, 2, 0, 1, CW_OP_EAGER, 2000);
    repeat(bench, 2, SEGMENTS);
    after(bench, gate, 0);
    wait(bench, 1, 5, 1, CW_OP_EAGER, 0);
    wait(bench, 1, 1000, 1, 0, 1000);
    bench_create(bench, NULL, NULL);
    uint8_t data[SEGMENTS], transient[SEGMENTS];
    for (uint32_t i = SEGMENTS; i-- > 0;) {
        data[i] = transient[i] = (uint8_t)(i * 7);
        arrive(bench, 1, (5 + i) * CW_TAG_STEP, true, i % 2 == 0 ? &transient[i] : &data[i], 1, i % 2 == 0 ? 0 : i);
        arrive(bench, 1, (1000 + i) * CW_TAG_STEP, false, NULL, 1, 0);
    }
    waits(bench, "op 0 (wait");
    memset(transient, '?', sizeof(transient));
    assert_int_equal(bench->keep_count, SEGMENTS / 2);
    assert_int_equal(bench->release_count, 0);
    arrive(bench, 2, 0, true, "x", 1, 1000);
    assert_int_equal(bench_poll(bench), CW_OK);
    assert_int_equal(bench->release_count, SEGMENTS + 1);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], data, SEGMENTS);
    bench_end(bench);
}

/* Arrivals, and the texts about them. */
static const struct intruder {
    const char *words;
    uint32_t peer, tag;
    uint64_t bytes;
    bool eager;
} intruders[] = {
    {"eager put of 4 bytes with tag 4 of rank 1: no wait is for it", 1, 4, 4, true},
    {"direct put of 4 bytes with tag 0 of rank 2: no wait is for it", 2, 0, 4, false},
    {"with tag 1 of rank 1: no wait is for it", 1, 1, 4, true},
    {"with tag 180 of rank 3: no wait is for it", 3, 180, 2, false},
    {"with tag 76 of rank 3: no wait is for it", 3, 76, 2, false},
    {"with tag 1048575 of rank 4294967295: no wait is for it", UINT32_MAX, (1 << 20) - 1, 2, false},
    {"eager put of 5 bytes with tag 0 of rank 1: its wait is for another size", 1, 0, 5, true},
    {"direct put of 1 bytes with tag 80 of rank 3: its wait is for another size", 3, 80, 1, false},
    {"direct put of 2 bytes with tag 176 of rank 3: its wait is for another size", 3, 176, 2, false},
    {"direct put of 4 bytes with tag 0 of rank 1: its wait is for an eager one", 1, 0, 4, false},
    {"eager put of 2 bytes with tag 80 of rank 3: its wait is for a direct one", 3, 80, 2, true},
    {"eager put of 4 bytes with tag 12 of rank 1: it came before", 1, 12, 4, true},
    {"direct put of 2 bytes with tag 100 of rank 3: it came before", 3, 100, 2, false},
    {"signal of rank 1 for round 0 of barrier 0: not due at all", 1, SIGNAL, 0, true},
    {"signal of rank 3 for round 0 of barrier 0: not due at all", 3, SIGNAL, 1, true},
    {"signal of rank 3 for round 0 of barrier 0: not due at all", 3, SIGNAL, 0, false},
    {"signal of rank 3 for round 2 of barrier 0: not due at all", 3, SIGNAL + 2 * CW_TAG_STEP, 0, true},
    {"signal of rank 3 for round 0 of barrier 1: not due at all", 3, SIGNAL + 32 * CW_TAG_STEP, 0, true},
    {"signal of rank 2 for round 1 of barrier 0: it came before", 2, SIGNAL + CW_TAG_STEP, 0, true},
};

static void test_intruders(void **state)
{
    for (size_t i = 0; i < sizeof(intruders) / sizeof(intruders[0]); i++) {
        const struct intruder *intruder = &intruders[i];
        struct bench *bench = bench_begin(4);
        wait(bench, 1, 0, 4, CW_OP_EAGER, 0);
        wait(bench, 1, 3, 4, CW_OP_EAGER, 0);
        after(bench, 0, 0);
        repeat(bench, 1, 25);
        after(bench, 0, 0);
        bench->ops[wait(bench, 3, 20, 2, 0, 8)].last_bytes = 1;
        add(bench, (struct cw_op){.kind = CW_OP_BARRIER}, 0);
        after(bench, 0, 0);
        bench_create(bench, NULL, NULL);
        arrive(bench, 1, 12, true, "abcd", 4, 900);
        arrive(bench, 3, 100, false, NULL, 2, 0);
        arrive(bench, 2, SIGNAL + CW_TAG_STEP, true, NULL, 0, 901);
        waits(bench, "op 0 (wait");
        assert_int_equal(bench->release_count, 1); /* the signal's */
        arrive(bench, intruder->peer, intruder->tag, intruder->eager, "0123456", intruder->bytes, 902);
        arrive(bench, 1, 0, true, "abcd", 4, 903); /* too late */
        assert_int_equal(bench_poll(bench), CW_ERROR_ARGUMENT);
        assert_int_equal(bench->release_count, intruder->eager ? 4 : 3);
        fails(bench, CW_ERROR_ARGUMENT, intruder->words);
    }
}

/* ---- Failing ---- */

static void test_failures(void **state)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct bench *bench = bench_begin(3);
        if (i == 0) {
            put(bench, 1, 2, 1);
        } else if (i == 1) {
            bench->groups[0].count = bench->schedule.member_count = 2;
            bench->schedule.group_count = 1;
            bench->members[0] = 1;
            bench->members[1] = 2;
            bench->ops[put(bench, 0, 2, 1)].kind = CW_OP_MULTICAST;
        } else {
            add(bench, (struct cw_op){.kind = CW_OP_BARRIER}, 0);
        }
        bench_create(bench, NULL, NULL);
        bench->put_status = i == 1 ? CW_ERROR_CLOSED : CW_ERROR_PEER_FAILED;
        fails(bench, bench->put_status,
              i == 0   ? "op 0 (put) with tag 8 to rank 1: "
              : i == 1 ? "op 0 (multicast) with tag 8 to group 0: "
                       : "op 0 (barrier): signal to rank 1: ");
    }
    struct bench *bench = bench_begin(2);
    wait(bench, 1, 0, 1, CW_OP_EAGER, 0);
    bench_create(bench, NULL, NULL);
    event_add(bench, CW_TRANSPORT_FAILED)->status = CW_ERROR_SYSTEM;
    fails(bench, CW_ERROR_SYSTEM, "the transport: ");
}

static void refuses(const struct cw_execution_request *request)
{
    struct cw_execution *untouched = (struct cw_execution *)(uintptr_t)request, *execution = untouched;
    assert_int_equal(cw_execution_create(request, &execution), CW_ERROR_ARGUMENT);
    assert_ptr_equal(execution, untouched);
}

static void test_create_rejects(void **state)
{
    for (uint32_t i = 0; i < 6; i++) {
        struct bench *bench = bench_begin(2);
        struct cw_execution_request request = request_of(bench);
        local(bench, CW_OP_REDUCE, 12);
        request.transport = i == 0 ? NULL : request.transport;
        request.schedule = i == 1 ? NULL : request.schedule;
        request.reduce = i == 2 ? NULL : request.reduce;
        request.element_bytes = i == 3 ? 8 : i == 4 ? 0 : 1;
        request.ranks = i == 5 ? 0 : 2;
        refuses(&request);
        bench_end(bench);
    }
}

/* Two waits of which both would have to match one put: alone or in bodies, in any mixture. */
static void test_create_rejects_two_waits_for_one_put(void **state)
{
    static const struct {
        uint32_t iterations, number, other_iterations, other_number;
        bool refused;
    } pairs[] = {
        {1, 5, 1, 5, true},    {1, 5, 1, 6, false},      {8, 5, 1, 12, true},       {8, 5, 1, 13, false},
        {9, 5, 1, 13, true},   {9, 5, 1, 14, false},     {9, 5, 1, 4, false},       {9, 5, 8, 13, true},
        {9, 5, 8, 14, false},  {100, 5, 100, 104, true}, {100, 5, 100, 105, false}, {1, 200, 1000, 100, true},
        {9, 60, 9, 69, false}, {9, 60, 9, 68, true},     {64, 64, 64, 128, false},  {65, 64, 64, 128, true},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct bench *bench = bench_begin(3);
        repeat(bench, 1, pairs[i].iterations);
        wait(bench, 1, pairs[i].number, 1, CW_OP_EAGER, 0);
        repeat(bench, 1, pairs[i].other_iterations);
        wait(bench, 1, pairs[i].other_number, 1, CW_OP_EAGER, 0);
        wait(bench, 2, 5, 1, CW_OP_EAGER, 0); /* another rank's tags are others */
        if (pairs[i].refused) {
            const struct cw_execution_request request = request_of(bench);
            refuses(&request);
        } else {
            bench_create(bench, NULL, NULL);
        }
        bench_end(bench);
    }
}

int main(void)
{
    return TESTS_RUN(test_describe, test_describe_barrier_and_body, test_order_of_starts, test_sent_is_enough,
                     test_work_of_a_poll_is_bounded, test_refusals_are_bounded, test_reductions_are_left,
                     test_early_arrivals_are_kept, test_intruders, test_failures, test_create_rejects,
                     test_create_rejects_two_waits_for_one_put);
}
