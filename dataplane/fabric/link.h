/* Link: one direction of a cable with the queue in front of it: rate, delay, queue limit, loss and other faults.
 *
 * A pure model: it gets lengths and times and decides the fate of a frame; the caller keeps the frame and delivers it.
 * The simulator uses it in virtual time, `causeway switch` on the real clock.
 *
 * Invariants
 *  - Frames leave in the order they were offered, one after the other; the rate is exact to a nanosecond over any
 *    number of frames.
 *  - A frame arrives `delay_ns` after its last bit has left (store and forward), later if it is reordered.
 *  - What is lost on the line has used it: loss comes after the queue.
 *  - The queue holds the frames that have not left yet, with the frame on its way out, counted as bytes on the line
 *    (frame plus overhead, without the part of the leading frame that is out already). It never exceeds its limit,
 *    except that an idle link takes any frame.
 *  - The same configuration, seed and offers give the same verdicts.
 *
 * Order of calls: cw_link_init, { cw_link_offer | cw_link_corrupt | cw_link_configure }*. Times must not go back. One
 * owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/random.h"
#include "dataplane/fabric/link_config.h"

enum {
    CW_LINK_CORRUPT_BITS_MAX = 3, /* bits turned over in a corrupted frame: 1 or this */
    CW_LINK_FRAME_MAX_BYTES = 1 << 24,
};

enum cw_link_fate {
    CW_LINK_DELIVERED = 0,
    CW_LINK_DROP_DOWN = 1,  /* the link is down: a partition */
    CW_LINK_DROP_QUEUE = 2, /* the queue is full */
    CW_LINK_DROP_LOSS = 3,
    CW_LINK_DROP_LENGTH = 4, /* longer than frame_bytes_max */
};

struct cw_link_delivery {
    uint64_t arrival_ns;
    bool corrupt; /* pass a copy through cw_link_corrupt */
};

struct cw_link_verdict {
    enum cw_link_fate fate;
    uint64_t departure_ns;   /* the last bit has left the queue; set for CW_LINK_DELIVERED and CW_LINK_DROP_LOSS */
    uint32_t delivery_count; /* 0 .. 2 */
    struct cw_link_delivery deliveries[2];
};

struct cw_link_counters {
    uint64_t offered;
    uint64_t offered_bytes; /* frames without overhead */
    uint64_t delivered;     /* duplicates not counted */
    uint64_t delivered_bytes;
    uint64_t arrived; /* at the end of the link, duplicates too; counted by the owner */
    uint64_t arrived_bytes;
    uint64_t dropped_down;
    uint64_t dropped_queue;
    uint64_t dropped_length;
    uint64_t lost;
    uint64_t duplicated;
    uint64_t corrupted;
    uint64_t reordered;
};

struct cw_link {
    struct cw_link_config config;
    bool down;                       /* set and cleared by the owner at any time; frames in flight still arrive */
    bool clean;                      /* none of the faults is configured: no numbers are drawn */
    uint64_t free_ns;                /* the line is free from here on ... */
    uint64_t free_remainder;         /* ... plus this / rate_bps nanoseconds */
    uint64_t queue_limit_ns;         /* the queue limit as time on the line */
    uint64_t queue_ns_max;           /* longest queue seen, as time on the line at the rate of then */
    uint64_t queue_ns_recent;        /* the same, since cw_link_queue_bytes_recent ... */
    uint64_t queue_bytes_recent;     /* ... and under earlier configurations */
    uint64_t queue_bytes_max_before; /* longest queue under earlier configurations */
    struct cw_random random;
    struct cw_link_counters counters;
};

/* The configuration must be valid. */
void cw_link_init(struct cw_link *link, const struct cw_link_config *config, uint64_t seed);

/* The fate of a frame of `frame_bytes` (<= CW_LINK_FRAME_MAX_BYTES) offered at `now_ns`. */
void cw_link_offer(struct cw_link *link, uint64_t now_ns, uint32_t frame_bytes, struct cw_link_verdict *verdict);

/* Turns 1 or CW_LINK_CORRUPT_BITS_MAX bits of the frame over, anywhere in it. `length` > 0. */
void cw_link_corrupt(struct cw_link *link, uint8_t *frame, uint32_t length);

/* Bytes on the line's side of the queue that have not left at `now_ns`. 0 if rate_bps is 0. */
uint64_t cw_link_queue_bytes(const struct cw_link *link, uint64_t now_ns);

/* The most that cw_link_queue_bytes ever was, right after an offer. */
uint64_t cw_link_queue_bytes_max(const struct cw_link *link);

/* The most that cw_link_queue_bytes was since the last call. */
uint64_t cw_link_queue_bytes_recent(struct cw_link *link, uint64_t now_ns);

/* Counts a frame that is dropped before the link, since a buffer that it shares with others is full. */
void cw_link_reject(struct cw_link *link, uint32_t frame_bytes);
