/* Tunnel queue against a list; CoDel against the pseudocode of RFC 8289; records against a second reader. */
#include <math.h>

#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "dataplane/tunnel/codel.h"
#include "dataplane/tunnel/queue.h"
#include "dataplane/tunnel/records.h"
#include "tests/test.h"

enum { FRAME_MAX = 1600, LIST = 4096 };

static const uint64_t MS = 1000000;

/* ---- the queue ---- */

struct note {
    uint64_t seed;
    uint64_t since_ns;
    uint32_t length;
};

static void fill(uint8_t *frame, const struct note *note)
{
    struct cw_random random;
    cw_random_seed(&random, note->seed);
    cw_random_fill(&random, frame, note->length);
}

static void a_queue_is_a_list_with_a_limit(void **state)
{
    static struct note list[LIST];
    uint8_t frame[FRAME_MAX];
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct cw_tunnel_queue queue;
        struct cw_random random;
        uint32_t first = 0, last = 0;
        uint64_t bytes = 0;
        cw_random_seed(&random, seed);
        uint64_t limit = cw_random_between(&random, 100, 60000);
        assert_int_equal(cw_tunnel_queue_init(&queue, limit, FRAME_MAX), CW_OK);
        for (uint64_t step = 1; step < 20000; step++) {
            bool fills = (step / 500) % 2 == 0; /* now rather in, now rather out */
            if (cw_random_chance(&random, fills ? 0.7 : 0.3)) {
                struct note note = {.seed = step, .since_ns = step};
                note.length = (uint32_t)cw_random_between(&random, 14, cw_random_chance(&random, 0.5) ? 60 : FRAME_MAX);
                fill(frame, &note);
                bool fits = first == last || bytes + note.length + 24 <= limit;
                assert_int_equal(cw_tunnel_queue_put(&queue, step, frame, note.length), fits);
                if (fits) {
                    list[last++ % LIST] = note;
                    bytes += note.length + 24;
                }
            } else if (first != last) {
                const struct note *note = &list[first++ % LIST];
                uint32_t length;
                uint64_t since_ns;
                const uint8_t *front = cw_tunnel_queue_front(&queue, &length, &since_ns);
                fill(frame, note);
                assert_non_null(front);
                assert_int_equal(length, note->length);
                assert_int_equal(since_ns, note->since_ns);
                assert_memory_equal(front, frame, length);
                cw_tunnel_queue_pop(&queue);
                bytes -= note->length + 24;
            }
            assert_int_equal(queue.frames, last - first);
            assert_int_equal(queue.bytes, bytes);
        }
        cw_tunnel_queue_dispose(&queue);
    }
}

/* ---- CoDel ---- */

/* The pseudocode of RFC 8289, 5.3 to 5.5, over an array of frames that all wait: returned frames are not dropped. */
struct reference {
    double first_above_time;
    double drop_next;
    int32_t count, lastcount;
    bool dropping;
    const double *arrivals;
    uint32_t next, total;
};

static bool dodequeue(struct reference *r, double now, uint32_t *frame)
{
    bool ok = false;
    *frame = r->next;
    if (r->next == r->total || r->arrivals[r->next] > now) {
        *frame = UINT32_MAX;
        r->first_above_time = 0;
        return false;
    }
    double sojourn = now - r->arrivals[r->next++];
    if (sojourn < 10e6) {
        r->first_above_time = 0;
    } else if (r->first_above_time == 0) {
        r->first_above_time = now + 100e6;
    } else {
        ok = now >= r->first_above_time;
    }
    return ok;
}

static double control_law(double t, int32_t count)
{
    return t + floor(100e6 / sqrt(count));
}

static uint32_t reference_dequeue(struct reference *r, double now)
{
    uint32_t frame;
    bool ok = dodequeue(r, now, &frame);
    if (r->dropping) {
        if (!ok) {
            r->dropping = false;
        }
        while (r->dropping && now >= r->drop_next) {
            r->count++;
            ok = dodequeue(r, now, &frame);
            if (!ok) {
                r->dropping = false;
            } else {
                r->drop_next = control_law(r->drop_next, r->count);
            }
        }
    } else if (ok) {
        dodequeue(r, now, &frame);
        r->dropping = true;
        int32_t delta = r->count - r->lastcount;
        r->count = delta > 1 && now - r->drop_next < 16 * 100e6 ? delta : 1;
        r->drop_next = control_law(now, r->count);
        r->lastcount = r->count;
    }
    return frame;
}

static void codel_follows_its_rfc(void **state)
{
    enum { FRAMES = 60000 };
    double *arrivals = malloc(FRAMES * sizeof(*arrivals));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct cw_random random;
        struct cw_codel codel;
        struct reference reference = {.arrivals = arrivals, .total = FRAMES};
        cw_random_seed(&random, seed);
        cw_codel_init(&codel, CW_CODEL_TARGET_NS, CW_CODEL_INTERVAL_NS);
        uint64_t time = 1000;
        for (uint32_t i = 0; i < FRAMES; i++) { /* seconds of overload, and seconds without */
            arrivals[i] = (double)time;
            time += cw_random_below(&random, (i / 5000) % 2 == 0 ? 150000 : 400000);
        }
        uint32_t next = 0;
        uint32_t dropped = 0;
        for (uint64_t now = 1000; next < FRAMES; now += 100000) { /* one frame each 100 us */
            uint32_t wanted = reference_dequeue(&reference, (double)now);
            uint32_t frame = UINT32_MAX;
            while (frame == UINT32_MAX && next < FRAMES && arrivals[next] <= (double)now) {
                if (cw_codel_drops(&codel, now, now - (uint64_t)arrivals[next], false)) {
                    dropped++;
                } else {
                    frame = next;
                }
                next++;
            }
            if (wanted == UINT32_MAX && frame == UINT32_MAX) {
                cw_codel_drops(&codel, now, 0, true); /* an empty queue: the RFC looks, too */
            }
            assert_int_equal(frame, wanted);
        }
        assert_in_range(dropped, 10, FRAMES / 4);
    }
    free(arrivals);
}

static void bursts_lose_nothing(void **state)
{
    struct cw_codel codel;
    cw_codel_init(&codel, CW_CODEL_TARGET_NS, CW_CODEL_INTERVAL_NS);
    for (uint64_t burst = 0; burst < 50; burst++) {
        for (uint64_t i = 0; i < 90; i++) { /* 90 ms long queues, each of which drains */
            uint64_t now_ns = (1 + burst) * 200 * MS + i * MS;
            assert_false(cw_codel_drops(&codel, now_ns, (90 - i) * MS, i == 89));
        }
    }
}

/* ---- records ---- */

static uint32_t second_reader(const uint8_t *batch, uint64_t bytes, uint32_t frame_bytes_max)
{
    uint32_t frames = 0;
    while (bytes != 0) {
        uint64_t length = bytes >= 2 ? (uint64_t)batch[0] + 256u * batch[1] : 0;
        if (length < 14 || length > frame_bytes_max || bytes < 2 + length) {
            return 0;
        }
        batch += 2 + length;
        bytes -= 2 + length;
        frames++;
    }
    return frames;
}

static void records_are_checked_as_a_whole(void **state)
{
    struct cw_random random;
    uint32_t sound = 0;
    cw_random_seed(&random, 9);
    for (int round = 0; round < 50000; round++) {
        uint8_t batch[4000] = {0};
        uint8_t frame[FRAME_MAX] = {0};
        uint64_t bytes = 0;
        for (uint64_t i = cw_random_below(&random, 6); i > 0 && bytes < 2300; i--) {
            bytes += cw_tunnel_record_write(batch + bytes, frame, (uint32_t)cw_random_between(&random, 14, FRAME_MAX));
        }
        for (uint64_t wounds = cw_random_below(&random, 3); wounds > 0 && bytes > 0; wounds--) {
            if (cw_random_chance(&random, 0.5)) {
                batch[cw_random_below(&random, bytes)] = (uint8_t)cw_random_next(&random);
            } else {
                bytes -= cw_random_below(&random, bytes);
            }
        }
        uint8_t *exact = malloc(bytes + 1);
        memcpy(exact, batch, bytes);
        uint32_t found = cw_tunnel_records_check(exact, bytes, 1514);
        assert_int_equal(found, second_reader(exact, bytes, 1514));
        sound += found > 0;
        free(exact);
    }
    assert_in_range(sound, 5000, 45000);
}

int main(void)
{
    return TESTS_RUN(a_queue_is_a_list_with_a_limit, codel_follows_its_rfc, bursts_lose_nothing,
                     records_are_checked_as_a_whole);
}
