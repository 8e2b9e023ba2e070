#include "mpi/collective/transport/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

/* A multicast of which parts are missing. */
struct mpi_exchange_parts {
    struct mpi_exchange_parts *next;
    int32_t source;
    uint32_t tag;
    uint64_t filled;
    uint64_t bytes;
    uint8_t *data;
};

static struct mpi_exchange_parts **parts_find(struct mpi_exchange *exchange, const struct exchange_head *head)
{
    struct mpi_exchange_parts **link = &exchange->parts;
    while (*link != NULL && !((*link)->source == head->source && (*link)->tag == head->tag)) {
        link = &(*link)->next;
    }
    return link;
}

/* NULL: no memory. */
static struct mpi_exchange_parts *parts_begin(const struct exchange_head *head, uint64_t bytes)
{
    struct mpi_exchange_parts *parts = malloc(sizeof(*parts));
    uint8_t *memory = malloc(bytes + 1);
    if (parts == NULL || memory == NULL) {
        free(parts);
        free(memory);
        return NULL;
    }
    *parts = (struct mpi_exchange_parts){.source = head->source, .tag = head->tag, .bytes = bytes, .data = memory};
    return parts;
}

bool exchange_part_take(struct mpi_exchange *exchange, const struct exchange_head *head, const uint8_t *data,
                        uint32_t bytes, struct cw_transport_event *whole)
{
    struct exchange_piece piece;
    whole->buffer = 0;
    if (bytes < sizeof(piece)) {
        return false;
    }
    memcpy(&piece, data, sizeof(piece));
    bytes -= (uint32_t)sizeof(piece);
    if (piece.bytes > EXCHANGE_PARTS_MAX_BYTES || piece.offset > piece.bytes || bytes > piece.bytes - piece.offset ||
        piece.left != piece.bytes - piece.offset - bytes) {
        return false;
    }
    struct mpi_exchange_parts **link = parts_find(exchange, head);
    struct mpi_exchange_parts *parts = *link;
    if (parts == NULL && piece.offset == 0) {
        parts = parts_begin(head, piece.bytes);
        if (parts == NULL) {
            mpi_exchange_fail(exchange, CW_ERROR_MEMORY);
            return false;
        }
        *link = parts;
    }
    if (parts == NULL || parts->bytes != piece.bytes || piece.offset > parts->filled) {
        return false;
    }
    uint64_t known = parts->filled - piece.offset;
    if (known < bytes) {
        memcpy(parts->data + parts->filled, data + sizeof(piece) + known, bytes - known);
        parts->filled += bytes - known;
    }
    if (parts->filled == parts->bytes) {
        *whole = exchange_eager_event(head, parts->data, parts->bytes);
        whole->buffer = (uint64_t)(uintptr_t)parts->data;
        *link = parts->next;
        free(parts);
    }
    return true;
}

void exchange_parts_free(struct mpi_exchange *exchange)
{
    while (exchange->parts != NULL) {
        struct mpi_exchange_parts *parts = exchange->parts;
        exchange->parts = parts->next;
        free(parts->data);
        free(parts);
    }
}
