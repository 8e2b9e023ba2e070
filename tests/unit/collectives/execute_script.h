/* An executor on its bench: rank 0 of a plan written by hand, and a transport that does what the test says and
 * remembers what it was asked.
 *
 *   bench_begin, the ops (check_plans.h), bench_create, { event_add / put_event / arrive, bench_poll, says }*,
 *   bench_end
 */
#pragma once

#include <stdio.h>

#include "check_plans.h"
#include "collectives/execute/execute.h"
#include "tests/test.h"

enum { LOG_MAX = 1024, BUFFER_BYTES = 4096 };

struct script {
    struct cw_transport transport;
    struct cw_transport_sink sink;
    struct cw_transport_put puts[LOG_MAX];
    uint32_t peers[LOG_MAX]; /* the first one of each */
    uint32_t put_count;
    uint32_t tries;
    struct cw_transport_event events[LOG_MAX];
    uint32_t event_first;
    uint32_t event_count;
    uint32_t expected_tags[LOG_MAX];
    uint32_t expect_count;
    uint64_t released[LOG_MAX];
    uint32_t release_count;
    uint8_t kept[LOG_MAX]; /* bytes that were valid during their event only */
    uint32_t kept_count;
    int put_status;
    uint32_t refuse_peer; /* gets put_status; UINT32_MAX: all do */
};

struct bench {
    struct test_plan test;
    struct script script;
    uint8_t buffers[4][BUFFER_BYTES];
    struct cw_execution *execution;
};

static inline int script_put(void *state, const struct cw_transport_put *put)
{
    struct script *script = state;
    script->tries++;
    if (script->put_status != CW_OK && (script->refuse_peer == UINT32_MAX || script->refuse_peer == put->peers[0])) {
        return script->put_status;
    }
    assert_true(script->put_count < LOG_MAX);
    script->peers[script->put_count] = put->peers[0];
    script->puts[script->put_count++] = *put;
    return CW_OK;
}

static inline void script_serve(void *state, const struct cw_transport_sink *sink)
{
    ((struct script *)state)->sink = *sink;
}

static inline void script_expect(void *state, uint32_t peer, uint32_t tag)
{
    struct script *script = state;
    script->expected_tags[script->expect_count++] = tag;
}

static inline const void *script_keep(void *state, const void *data, uint64_t bytes, uint64_t *buffer)
{
    struct script *script = state;
    assert_true(script->kept_count + bytes <= LOG_MAX);
    uint8_t *copy = memcpy(script->kept + script->kept_count, data, bytes);
    script->kept_count += (uint32_t)bytes;
    *buffer = LOG_MAX + script->kept_count;
    return copy;
}

static inline void script_release(void *state, uint64_t buffer)
{
    struct script *script = state;
    script->released[script->release_count++] = buffer;
}

static inline struct cw_transport_event *event_add(struct bench *bench, enum cw_transport_event_kind kind)
{
    struct script *script = &bench->script;
    assert_true(script->event_count < LOG_MAX);
    struct cw_transport_event *event = &script->events[script->event_count++];
    *event = (struct cw_transport_event){.kind = kind};
    return event;
}

/* SENT or COMPLETE of put number `put`. */
static inline void put_event(struct bench *bench, enum cw_transport_event_kind kind, uint32_t put)
{
    assert_true(put < bench->script.put_count);
    event_add(bench, kind)->context = bench->script.puts[put].context;
}

static inline void arrive(struct bench *bench, uint32_t peer, uint32_t tag, bool eager, const void *data,
                          uint64_t bytes, uint64_t buffer)
{
    struct cw_transport_event *event = event_add(bench, CW_TRANSPORT_ARRIVED);
    event->peer = peer;
    event->tag = tag;
    event->eager = eager;
    event->data = data;
    event->bytes = bytes;
    event->buffer = buffer;
}

static inline struct bench *bench_begin(uint32_t ranks)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    plan_begin_simple(&bench->test, CW_ALLGATHER, ranks, BUFFER_BYTES / ranks);
    plan_scratch(&bench->test, BUFFER_BYTES);
    bench->script.transport = (struct cw_transport){.state = &bench->script,
                                                    .serve = script_serve,
                                                    .put = script_put,
                                                    .expect = script_expect,
                                                    .keep = script_keep,
                                                    .release = script_release};
    bench->script.refuse_peer = UINT32_MAX;
    return bench;
}

static inline void sum_bytes(void *context, void *to, const void *left, const void *right, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        ((uint8_t *)to)[i] = (uint8_t)(((const uint8_t *)left)[i] + ((const uint8_t *)right)[i]);
    }
}

static inline struct cw_execution_request bench_request(struct bench *bench)
{
    struct cw_execution_request request = {
        .schedule = &bench->test.plan.schedules[0],
        .ranks = bench->test.plan.problem->ranks,
        .element_bytes = 1,
        .transport = &bench->script.transport,
        .reduce = sum_bytes,
    };
    for (int i = 0; i < 4; i++) {
        request.buffers[i] = bench->buffers[i];
    }
    return request;
}

/* Rank 0's schedule is what runs. */
static inline void bench_create(struct bench *bench)
{
    char error[200];
    struct cw_execution_request request = bench_request(bench);
    if (cw_plan_validate(&bench->test.plan, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
    assert_int_equal(cw_execution_create(&request, &bench->execution), CW_OK);
}

static inline void bench_end(struct bench *bench)
{
    cw_execution_destroy(bench->execution);
    cw_problem_destroy(bench->test.plan.problem);
    free(bench->test.plan.schedules);
    free(bench->test.ranks);
    free(bench);
}

static inline void says(const struct bench *bench, const char *words)
{
    char text[400];
    cw_execution_describe(bench->execution, text, sizeof(text));
    if (strstr(text, words) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", words, text);
    }
    assert_null(strchr(text, '\n'));
}

/* Polls; gives it the events that were added, and polls again. */
static inline int bench_poll(struct bench *bench)
{
    struct script *script = &bench->script;
    int status = cw_execution_poll(bench->execution);
    if (script->event_first == script->event_count) {
        return status;
    }
    while (script->event_first < script->event_count) {
        const struct cw_transport_event *event = &script->events[script->event_first++];
        if (!script->sink.event(script->sink.context, event) && event->eager && event->buffer != 0) {
            script_release(script, event->buffer);
        }
    }
    return cw_execution_poll(bench->execution);
}
