/* ring: a queue of records in memory shared by two processes; one producer, one consumer.
 *
 * A record is a 64-bit header and its payload, aligned to a cache line. The header of the next record is the only flag:
 * the consumer looks at it until it is not zero, so that a short record costs the transfer of one cache line. The
 * producer zeroes the header behind a record before it publishes that record. The memory is mapped twice in a row, so
 * no record is ever split.
 *
 * Invariants
 *   - The producer writes only into what the consumer has given back (`consumed`), and always leaves one free line: the
 *     zeroed header.
 *   - The consumer trusts nothing that it reads: lengths are checked against the ring (cw_ring_peek).
 *   - Positions count bytes since the beginning and never wrap.
 *
 * Order of calls
 *   producer: { cw_ring_reserve, write the payload, cw_ring_publish }* consumer: { cw_ring_peek, read the payload,
 *   cw_ring_consume }* */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_RING_LINE = 64,
    CW_RING_HEADER = 8,
    CW_RING_BYTES_BITS = 24, /* of a header: length of the payload; above them 8 bits of kind, then 32 of the user's */
};

/* The consumer's side of the shared control line. */
struct cw_ring_control {
    _Alignas(CW_RING_LINE) _Atomic uint64_t consumed;
};

struct cw_ring_producer {
    uint8_t *memory; /* ring_bytes, mapped twice in a row */
    struct cw_ring_control *control;
    uint64_t bytes; /* of the ring: a power of two */
    uint64_t position;
    uint64_t consumed; /* as last read */
};

struct cw_ring_consumer {
    const uint8_t *memory;
    struct cw_ring_control *control;
    uint64_t bytes;
    uint64_t position;
};

/* kind: 1 .. 255 */
struct cw_ring_record {
    const void *payload;
    uint32_t bytes;
    uint32_t user;
    uint8_t kind;
};

/* The size of a record with this payload. */
static inline uint64_t cw_ring_record_bytes(uint64_t payload_bytes)
{
    return (CW_RING_HEADER + payload_bytes + CW_RING_LINE - 1) & ~(uint64_t)(CW_RING_LINE - 1);
}

/* The longest payload: a quarter of the ring, so that one long record does not stop the flow. */
static inline uint32_t cw_ring_payload_max(uint64_t ring_bytes)
{
    return (uint32_t)(ring_bytes / 4 - CW_RING_HEADER);
}

/* Room for a payload; NULL: the ring is full. Nothing is visible before cw_ring_publish. */
static inline void *cw_ring_reserve(struct cw_ring_producer *ring, uint32_t payload_bytes)
{
    assert(payload_bytes <= cw_ring_payload_max(ring->bytes));
    uint64_t need = ring->position + cw_ring_record_bytes(payload_bytes) + CW_RING_LINE;
    if (need > ring->consumed + ring->bytes) {
        /* pairs with the release in cw_ring_consume: the consumer has read what was there */
        ring->consumed = atomic_load_explicit(&ring->control->consumed, memory_order_acquire);
        if (need > ring->consumed + ring->bytes) {
            return NULL;
        }
    }
    return ring->memory + (ring->position & (ring->bytes - 1)) + CW_RING_HEADER;
}

/* Makes the record visible. `payload_bytes` is at most what was reserved. */
static inline void cw_ring_publish(struct cw_ring_producer *ring, uint32_t payload_bytes, uint8_t kind, uint32_t user)
{
    uint8_t *memory = ring->memory + (ring->position & (ring->bytes - 1));
    uint64_t bytes = cw_ring_record_bytes(payload_bytes);
    atomic_store_explicit((_Atomic uint64_t *)(void *)(memory + bytes), 0,
                          memory_order_relaxed); /* a bare "= 0" would be a full barrier */
    uint64_t header = (uint64_t)user << 32 | (uint64_t)kind << CW_RING_BYTES_BITS | payload_bytes;
    /* pairs with the acquire in cw_ring_peek: the payload and the next header before this header */
    atomic_store_explicit((_Atomic uint64_t *)(void *)memory, header, memory_order_release);
    ring->position += bytes;
    __builtin_prefetch(memory + bytes + CW_RING_LINE, 1); /* the line that the next record will zero */
}

/* 1: a record, valid until cw_ring_consume; 0: none; -1: the contents cannot have been written by cw_ring_publish. */
static inline int cw_ring_peek(const struct cw_ring_consumer *ring, struct cw_ring_record *record)
{
    const uint8_t *memory = ring->memory + (ring->position & (ring->bytes - 1));
    /* pairs with the release in cw_ring_publish */
    uint64_t header = atomic_load_explicit((const _Atomic uint64_t *)(const void *)memory, memory_order_acquire);
    if (header == 0) {
        return 0;
    }
    record->bytes = (uint32_t)(header & ((1u << CW_RING_BYTES_BITS) - 1));
    record->kind = (uint8_t)(header >> CW_RING_BYTES_BITS);
    record->user = (uint32_t)(header >> 32);
    record->payload = memory + CW_RING_HEADER;
    return record->kind != 0 && record->bytes <= cw_ring_payload_max(ring->bytes) ? 1 : -1;
}

/* Gives the place of the record that was peeked at back. */
static inline void cw_ring_consume(struct cw_ring_consumer *ring, const struct cw_ring_record *record)
{
    ring->position += cw_ring_record_bytes(record->bytes);
    /* pairs with the acquire in cw_ring_reserve */
    atomic_store_explicit(&ring->control->consumed, ring->position, memory_order_release);
}
