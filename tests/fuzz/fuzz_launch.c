/* Messages between launcher and agents: frames, and the description of a job. Both are rejected, or sound: values are
 * in their ranges, and ranks are on hosts that the job has. The first byte of an input chooses one of the two. */
#include "tests/fuzz/fuzz.h"

#include "control/launch/work.h"
#include "dataplane/status.h"

enum { PROGRAMS = 2, RANKS = 5, HOSTS = 3, STREAMS = 60, STREAM_FRAMES = 6, PAYLOAD_MAX = 64, BYTES_MAX = 1024 };

static uint64_t frames_whole, frames_sound, descriptions_sound;

/* ---- seeds ---- */

static void stream_make(uint32_t index, struct launch_bytes *stream)
{
    static const int32_t values[] = {0, 1, 9, 255, 256, 256 + 9, 256 + 65, 65536 + 256 + 6, -1, INT32_MAX, INT32_MIN};
    struct cw_random random;
    cw_random_seed(&random, index);
    for (int i = 0; i < STREAM_FRAMES; i++) {
        char payload[PAYLOAD_MAX];
        struct launch_frame frame = {.type = 1 + (uint32_t)cw_random_below(&random, LAUNCH_FRAME_TYPES - 1),
                                     .rank = (uint32_t)cw_random_below(&random, 4),
                                     .value = values[cw_random_below(&random, sizeof(values) / sizeof(values[0]))],
                                     .count = (uint32_t)cw_random_below(&random, PAYLOAD_MAX),
                                     .bytes = payload};
        for (size_t j = 0; j < sizeof(payload); j++) {
            payload[j] = (char)cw_random_below(&random, 3); /* texts, none, and neither */
        }
        assert_int_equal(launch_frame_write(stream, &frame), CW_OK);
    }
}

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

/* Descriptions are every other seed. */
static size_t seed(uint32_t index, uint8_t *bytes)
{
    struct launch_bytes made = {.start = NULL};
    bytes[0] = index % 2 == 0;
    if (bytes[0]) {
        description_make(&made);
    } else {
        stream_make(index, &made);
    }
    size_t length = launch_bytes_count(&made);
    memcpy(bytes + 1, launch_bytes_front(&made), length);
    launch_bytes_dispose(&made);
    return index < STREAMS ? 1 + length : 0;
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

static void frames_check(struct launch_bytes *bytes)
{
    struct launch_frame frame;
    size_t used;
    int status;
    while ((status = launch_frame_read(bytes, &frame, &used)) == 1) {
        frame_is_sound(&frame, bytes, used);
        frames_sound += launch_frame_is_order(&frame) || launch_frame_is_report(&frame);
        frames_whole++;
        launch_bytes_drop(bytes, used);
    }
    assert_true(status == 0 || status == CW_ERROR_ARGUMENT || status == CW_ERROR_LIMIT);
}

/* ---- the description of a job ---- */

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

static void description_check(const struct launch_bytes *bytes)
{
    struct launch_work work;
    uint32_t *hosts = NULL, count = 0;
    const char *version = NULL;
    const struct launch_frame frame = {
        .type = LAUNCH_START, .bytes = launch_bytes_front(bytes), .count = (uint32_t)launch_bytes_count(bytes)};
    int status = launch_work_read(&frame, &work, &hosts, &count, &version);
    assert_true(status == CW_OK || status == CW_ERROR_ARGUMENT || (status == CW_ERROR_UNSUPPORTED && version != NULL));
    if (status == CW_OK) {
        work_is_sound(&work, hosts, count);
        descriptions_sound++;
    }
    free(hosts);
    launch_work_dispose(&work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length = size > 0 ? size - 1 : 0;
    struct launch_bytes bytes = {.start = malloc(length + (length == 0)), .end = length, .allocated = length};
    assert_non_null(bytes.start);
    memcpy(bytes.start, data + (size > 0), length);
    if (size > 0 && data[0] % 2 != 0) {
        description_check(&bytes);
    } else {
        frames_check(&bytes);
    }
    launch_bytes_dispose(&bytes);
    return 0;
}

static void end(uint64_t inputs)
{
    assert_in_range(frames_sound, 1, frames_whole - 1);
    assert_in_range(descriptions_sound, 1, inputs / 2 - 1);
}

const struct fuzz_target fuzz_target = {.seed = seed, .bytes_max = BYTES_MAX, .packets = 3, .end = end};
