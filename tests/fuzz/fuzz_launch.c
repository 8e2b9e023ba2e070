/* What launcher and agents send each other, damaged: frames, and the description of a job. Refused, or sound: values in
 * their ranges, ranks on hosts that there are. CW_TEST_PACKETS (100,000) / 5 of each. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "control/launch/work.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { PROGRAMS = 2, RANKS = 5, HOSTS = 3, STREAM_FRAMES = 6, PAYLOAD_MAX = 64 };

/* ---- damage ---- */

/* Bytes changed, cut out, or doubled; numbers below and at the limits. In memory of its own length, so that the
 * sanitizer sees who reads on. */
static struct launch_bytes damaged(struct cw_random *random, const struct launch_bytes *bytes)
{
    size_t length = launch_bytes_count(bytes);
    char *copy = malloc(length + PAYLOAD_MAX);
    assert_non_null(copy);
    memcpy(copy, launch_bytes_front(bytes), length);
    for (uint64_t wounds = cw_random_below(random, 4); wounds > 0 && length > PAYLOAD_MAX; wounds--) {
        size_t at = (size_t)cw_random_below(random, length - 8), count = 1 + (size_t)cw_random_below(random, 8);
        switch (cw_random_below(random, 4)) {
        case 0:
            copy[at] = (char)cw_random_below(random, 256);
            break;
        case 1:
            memset(copy + at, cw_random_below(random, 2) == 0 ? 0 : 0xff, count);
            break;
        case 2:
            memmove(copy + at, copy + at + count, length - at - count);
            length -= count;
            break;
        default:
            length -= (size_t)cw_random_below(random, length); /* cut off */
        }
    }
    struct launch_bytes exact = {.start = malloc(length > 0 ? length : 1), .end = length, .allocated = length};
    assert_non_null(exact.start);
    memcpy(exact.start, copy, length);
    free(copy);
    return exact;
}

/* ---- frames ---- */

static void frame_is_sound(const struct launch_frame *frame, const struct launch_bytes *in, size_t used)
{
    assert_in_range(frame->type, 1, LAUNCH_FRAME_TYPES - 1);
    assert_true(frame->count <= LAUNCH_FRAME_MAX && used == LAUNCH_FRAME_HEADER + (size_t)frame->count);
    assert_true(used <= launch_bytes_count(in));
    struct launch_reader reader = launch_reader_of(frame);
    while (!reader.failed && reader.at < reader.end) {
        (void)launch_get_text(&reader);
        assert_true(reader.at <= reader.end);
    }
    if (launch_frame_is_report(frame) && frame->type == LAUNCH_ENDED) {
        int32_t value = frame->value & ~LAUNCH_ENDED_CORE;
        assert_in_range(value, 0, LAUNCH_ENDED_SIGNAL + NSIG - 1);
        assert_true(value != LAUNCH_ENDED_SIGNAL && (value == frame->value || value > LAUNCH_ENDED_SIGNAL));
    }
    if (launch_frame_is_report(frame) && (frame->type == LAUNCH_FAIL || frame->type == LAUNCH_ABORT)) {
        assert_in_range(frame->value, 0, 255);
    }
    if (frame->type == LAUNCH_SIGNAL && (launch_frame_is_report(frame) || launch_frame_is_order(frame))) {
        assert_in_range(frame->value, 1, NSIG - 1);
    }
    assert_true(!launch_frame_is_order(frame) || frame->type <= LAUNCH_END);
    assert_true(!launch_frame_is_report(frame) || frame->type < LAUNCH_START || frame->type > LAUNCH_END ||
                frame->type == LAUNCH_SIGNAL);
}

static void stream_make(struct cw_random *random, struct launch_bytes *stream)
{
    static const int32_t values[] = {0, 1, 9, 255, 256, 256 + 9, 256 + 65, 65536 + 256 + 6, -1, INT32_MAX, INT32_MIN};
    for (int i = 0; i < STREAM_FRAMES; i++) {
        char payload[PAYLOAD_MAX];
        struct launch_frame frame = {.type = 1 + (uint32_t)cw_random_below(random, LAUNCH_FRAME_TYPES - 1),
                                     .rank = (uint32_t)cw_random_below(random, 4),
                                     .value = values[cw_random_below(random, sizeof(values) / sizeof(values[0]))],
                                     .count = (uint32_t)cw_random_below(random, PAYLOAD_MAX),
                                     .bytes = payload};
        for (size_t j = 0; j < sizeof(payload); j++) {
            payload[j] = (char)cw_random_below(random, 3); /* texts, none, and neither */
        }
        assert_int_equal(launch_frame_write(stream, &frame), CW_OK);
    }
}

static void damaged_frames_are_refused_or_sound(void **state)
{
    uint64_t streams = test_count("CW_TEST_PACKETS", 100000) / 5, whole = 0, taken = 0;
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (uint64_t i = 0; i < streams; i++) {
        struct launch_bytes stream = {.start = NULL};
        struct launch_frame frame;
        size_t used;
        int status;
        stream_make(&random, &stream);
        struct launch_bytes bytes = damaged(&random, &stream);
        while ((status = launch_frame_read(&bytes, &frame, &used)) == 1) {
            frame_is_sound(&frame, &bytes, used);
            taken += launch_frame_is_order(&frame) || launch_frame_is_report(&frame);
            whole++;
            launch_bytes_drop(&bytes, used);
        }
        assert_true(status == 0 || status == CW_ERROR_ARGUMENT || status == CW_ERROR_LIMIT);
        launch_bytes_dispose(&bytes);
        launch_bytes_dispose(&stream);
    }
    print_message("%llu frames are whole, %llu of them could be orders or reports\n", (unsigned long long)whole,
                  (unsigned long long)taken);
    assert_in_range(taken, 1, whole - 1);
}

/* ---- the description of a job ---- */

static void description_make(struct launch_bytes *out)
{
    char *first[] = {"./program", "--size", "4", NULL}, *second[] = {"other", NULL}, *own[] = {"A=1", NULL};
    char *variables[] = {"PATH=/bin", "HOME=/root", "CAUSEWAY_TRANSPORT=eth0", NULL};
    struct cw_launch_program programs[PROGRAMS] = {{.count = 3, .arguments = first, .variables = own},
                                                   {.count = 2, .arguments = second, .directory = "/tmp"}};
    const char *names[HOSTS] = {"a", "b.example.org", "fd77::1"};
    uint32_t host_of[RANKS] = {0, 0, 1, 2, 2};
    const uint32_t hosts[] = {1, 2};
    const struct launch_work work = {.name = "causeway-1",
                                     .rank_count = RANKS,
                                     .programs = programs,
                                     .program_count = PROGRAMS,
                                     .host_of = host_of,
                                     .host_count = HOSTS,
                                     .host_names = names,
                                     .launcher = "ssh",
                                     .executable = "/usr/bin/causeway",
                                     .binding = "core",
                                     .directory = "/home",
                                     .stdin_rank = CW_LAUNCH_STDIN_NONE,
                                     .variables = variables,
                                     .has_key = true};
    assert_int_equal(launch_work_write(&work, hosts, 2, out), CW_OK);
}

static void work_is_sound(const struct launch_work *work, const uint32_t *hosts, uint32_t count)
{
    uint32_t ranks = 0, placed = 0;
    assert_in_range(work->rank_count, 1, CW_LAUNCH_RANKS_MAX);
    assert_in_range(work->host_count, 1, CW_LAUNCH_HOSTS_MAX);
    assert_true(count > 0 && work->launcher != NULL && work->executable != NULL && work->binding != NULL);
    for (size_t i = 0; i < work->program_count; i++) {
        assert_non_null(work->programs[i].arguments[0]);
        ranks += work->programs[i].count;
    }
    assert_int_equal(ranks, work->rank_count);
    for (uint32_t host = 0; host < work->host_count; host++) {
        assert_non_null(work->host_names[host]);
        placed += launch_work_count(work, host);
    }
    assert_int_equal(placed, work->rank_count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(hosts[i] < work->host_count);
    }
    for (uint32_t rank = 0; rank < work->rank_count; rank++) {
        assert_true(launch_work_program(work, rank) < work->programs + work->program_count);
    }
}

static void damaged_descriptions_are_refused_or_sound(void **state)
{
    uint64_t texts = test_count("CW_TEST_PACKETS", 100000) / 5, taken = 0;
    struct launch_bytes whole = {.start = NULL};
    struct cw_random random;
    cw_random_seed(&random, 2);
    description_make(&whole);
    for (uint64_t i = 0; i < texts; i++) {
        struct launch_work work;
        uint32_t *hosts = NULL, count = 0;
        const char *version = NULL;
        struct launch_bytes bytes = damaged(&random, &whole);
        const struct launch_frame frame = {
            .type = LAUNCH_START, .bytes = launch_bytes_front(&bytes), .count = (uint32_t)launch_bytes_count(&bytes)};
        int status = launch_work_read(&frame, &work, &hosts, &count, &version);
        assert_true(status == CW_OK || status == CW_ERROR_ARGUMENT ||
                    (status == CW_ERROR_UNSUPPORTED && version != NULL));
        if (status == CW_OK) {
            work_is_sound(&work, hosts, count);
            taken++;
        }
        free(hosts);
        launch_work_dispose(&work);
        launch_bytes_dispose(&bytes);
    }
    launch_bytes_dispose(&whole);
    print_message("%llu of %llu damaged descriptions make sense\n", (unsigned long long)taken,
                  (unsigned long long)texts);
    assert_in_range(taken, 1, texts - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_frames_are_refused_or_sound),
        cmocka_unit_test(damaged_descriptions_are_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
