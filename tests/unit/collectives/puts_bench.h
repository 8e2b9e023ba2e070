/* What the tests of the transport over puts share: three ranks on the hosts of a simulated star, each with a schedule
 * written by hand and its transport, whose calls the test makes in the place of an execution.
 *
 *   bench_begin, { pair_add | op_add }*, bench_create, { put | deliver | arrives | completes | nothing }*, bench_end
 */
#pragma once

#include <string.h>

#include "apps/testbed/hosts.h"
#include "collectives/execute/transport_puts.h"
#include "tests/test.h"

enum {
    RANKS = 3,
    OPS_MAX = 80,
    EVENTS_MAX = 128,
    LANE = 5,
    BUFFER_BYTES = 2 * CW_LONG_PUT_BYTES,
    PLACE_BYTES = 200,
    SLOTS = 4,
    SLOT_BYTES = 128
};

/* A rank's schedule, written by hand, its host and its transport. */
struct side {
    struct cw_op ops[OPS_MAX];
    struct cw_schedule schedule;
    struct cw_puts_peer peers[RANKS];
    struct cw_puts_transport *transport;
    const struct cw_transport *calls;
    struct cw_transport_event events[EVENTS_MAX]; /* that the execution would get */
    uint32_t event_first, event_count;
};

struct bench {
    struct sim_hosts hosts;
    struct side sides[RANKS];
    uint32_t members[RANKS];
    struct cw_group_range group;
    struct cw_puts_transport_request request; /* what all of them get, where it is not theirs */
};

static inline void op_add(struct bench *bench, uint32_t rank, enum cw_op_kind kind, uint32_t peer, uint32_t tag,
                          bool eager, uint64_t bytes)
{
    struct cw_schedule *schedule = &bench->sides[rank].schedule;
    assert_true(schedule->op_count < OPS_MAX);
    bench->sides[rank].ops[schedule->op_count++] = (struct cw_op){.kind = (uint8_t)kind,
                                                                  .flags = eager ? CW_OP_EAGER : 0,
                                                                  .peer = peer,
                                                                  .tag = tag,
                                                                  .iterations = 1,
                                                                  .blocks = 1,
                                                                  .bytes = bytes,
                                                                  .last_bytes = bytes};
}

/* A put and the wait for it. */
static inline void pair_add(struct bench *bench, uint32_t from, uint32_t to, uint32_t tag, bool eager, uint64_t bytes)
{
    op_add(bench, from, CW_OP_PUT, to, tag, eager, bytes);
    op_add(bench, to, CW_OP_WAIT, from, tag, eager, bytes);
}

static inline void bench_begin(struct bench *bench)
{
    struct sim_hosts_config config;
    char error[200];
    memset(bench, 0, sizeof(*bench));
    sim_hosts_config_init(&config, RANKS);
    config.memory_bytes = BUFFER_BYTES;
    config.endpoint.operation_count_max = 128; /* 64 of them for the transport, half of these for one peer */
    config.endpoint.pool_slot_count = SLOTS;
    config.endpoint.pool_slot_bytes = SLOT_BYTES;
    config.endpoint.failure_timeout_ns = 50000000;
    assert_int_equal(sim_hosts_create(&bench->hosts, &config, error, sizeof(error)), CW_OK);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        bench->hosts.list[rank].holds_events = true;
        memset(bench->hosts.list[rank].memory, 'a' + (int)rank, BUFFER_BYTES);
        bench->sides[rank].schedule.rank = rank;
        bench->sides[rank].schedule.ops = bench->sides[rank].ops;
    }
    bench->request = (struct cw_puts_transport_request){
        .ranks = RANKS, .lane = LANE, .slot_bytes = SLOT_BYTES, .slots_kept_max = SLOTS - 1};
}

static inline int side_create(struct bench *bench, uint32_t rank, char *error, size_t error_bytes)
{
    struct side *side = &bench->sides[rank];
    struct cw_puts_transport_request request = bench->request;
    for (uint32_t i = 0; i < RANKS; i++) {
        side->peers[i].peer = i != rank ? sim_hosts_peer(&bench->hosts, rank, i) : UINT32_MAX;
        side->peers[i].places[CW_BUFFER_RECEIVE].token = bench->hosts.list[i].token;
    }
    request.endpoint = bench->hosts.list[rank].endpoint;
    request.schedule = &side->schedule;
    request.peers = side->peers;
    request.buffers[CW_BUFFER_SEND] = bench->hosts.list[rank].memory;
    request.buffer_bytes[CW_BUFFER_SEND] = BUFFER_BYTES;
    request.regions[CW_BUFFER_SEND] = bench->hosts.list[rank].token;
    return cw_puts_transport_create(&request, &side->transport, error, error_bytes);
}

static inline bool event_note(void *context, const struct cw_transport_event *event)
{
    struct side *side = context;
    assert_true(side->event_count < EVENTS_MAX);
    side->events[side->event_count++] = *event;
    return event->eager; /* until `arrives` */
}

static inline void bench_create(struct bench *bench)
{
    char error[200];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(side_create(bench, rank, error, sizeof(error)), CW_OK);
        struct side *side = &bench->sides[rank];
        side->calls = cw_puts_transport_interface(side->transport);
        side->calls->serve(side->calls->state, &(struct cw_transport_sink){side, event_note});
    }
}

static inline void bench_end(struct bench *bench)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        cw_puts_transport_destroy(bench->sides[rank].transport);
    }
    sim_hosts_destroy(&bench->hosts);
}

/* Makes a put; one that is complete at once is noted as such. */
static inline int put_made(struct bench *bench, uint32_t from, const struct cw_transport_put *put)
{
    struct side *side = &bench->sides[from];
    int status = side->calls->put(side->calls->state, put);
    sim_host_wake(&bench->hosts.list[from]);
    if (status == CW_TRANSPORT_DONE) {
        (void)event_note(side, &(struct cw_transport_event){.kind = CW_TRANSPORT_COMPLETE, .context = put->context});
        return CW_OK;
    }
    return status;
}

/* Direct puts of up to PLACE_BYTES: to a place of their own, since several are in flight. */
static inline int put(struct bench *bench, uint32_t from, uint32_t to, uint32_t tag, bool eager, uint64_t bytes)
{
    struct cw_transport_put put = {.peers = &to,
                                   .peer_count = 1,
                                   .tag = tag,
                                   .eager = eager,
                                   .data = bytes > 0 ? bench->hosts.list[from].memory : NULL,
                                   .bytes = bytes,
                                   .buffer = CW_BUFFER_RECEIVE,
                                   .offset = eager ? 0 : tag / CW_TAG_STEP * PLACE_BYTES,
                                   .context = tag};
    return put_made(bench, from, &put);
}

static inline void time_pass(struct bench *bench, uint64_t time_ns)
{
    sim_hosts_run(&bench->hosts, time_ns);
}

/* Lets a while pass and delivers what a rank's endpoint reports. */
static inline void deliver(struct bench *bench, uint32_t rank)
{
    struct cw_event event;
    time_pass(bench, 2000000);
    while (cw_endpoint_events(bench->hosts.list[rank].endpoint, &event, 1) > 0) {
        assert_int_equal(cw_puts_transport_deliver(bench->sides[rank].transport, &event), CW_OK);
    }
}

/* The next event of a rank's execution; the number that there was, or a failure. */
static inline int poll(struct bench *bench, uint32_t rank, struct cw_transport_event *event)
{
    struct side *side = &bench->sides[rank];
    *event = (struct cw_transport_event){0};
    if (side->event_first == side->event_count) {
        return 0;
    }
    *event = side->events[side->event_first++];
    return event->kind == CW_TRANSPORT_FAILED ? event->status : 1;
}

static inline void arrives(struct bench *bench, uint32_t rank, uint32_t peer, uint32_t tag)
{
    struct cw_transport_event event;
    assert_int_equal(poll(bench, rank, &event), 1);
    assert_int_equal(event.kind, CW_TRANSPORT_ARRIVED);
    assert_int_equal(event.peer, peer);
    assert_int_equal(event.tag, tag);
    for (uint64_t i = 0; event.eager && i < event.bytes; i++) {
        assert_int_equal(((const uint8_t *)event.data)[i], 'a' + peer);
    }
    if (event.eager) {
        bench->sides[rank].calls->release(bench->sides[rank].calls->state, event.buffer);
    }
}

static inline void nothing(struct bench *bench, uint32_t rank)
{
    struct cw_transport_event event;
    assert_int_equal(poll(bench, rank, &event), 0);
}

static inline void tells(struct bench *bench, uint32_t rank, enum cw_transport_event_kind kind, uint64_t context)
{
    struct cw_transport_event event;
    assert_int_equal(poll(bench, rank, &event), 1);
    assert_int_equal(event.kind, kind);
    assert_int_equal(event.context, context);
}

static inline void completes(struct bench *bench, uint32_t rank, uint64_t context)
{
    tells(bench, rank, CW_TRANSPORT_COMPLETE, context);
}
