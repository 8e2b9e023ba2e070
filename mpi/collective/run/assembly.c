#include "mpi/collective/run/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

/* A multicast of which parts are missing. */
struct mpi_exchange_parts {
    struct mpi_exchange_parts *next;
    uint64_t filled;
    uint64_t bytes;
    struct mpi_exchange_event *event;
};

static struct mpi_exchange_parts **parts_find(struct mpi_exchange *exchange, const struct exchange_head *head)
{
    struct mpi_exchange_parts **link = &exchange->parts;
    while (*link != NULL &&
           !((*link)->event->event.peer == (uint32_t)head->source && (*link)->event->event.tag == head->tag)) {
        link = &(*link)->next;
    }
    return link;
}

/* NULL: no memory. */
static struct mpi_exchange_parts *parts_begin(const struct exchange_head *head, uint64_t bytes)
{
    struct cw_transport_event event = exchange_eager_event(head, bytes);
    struct mpi_exchange_parts *parts = malloc(sizeof(*parts));
    struct mpi_exchange_event *made = parts == NULL ? NULL : exchange_event_make(&event, NULL, bytes);
    if (made == NULL) {
        free(parts);
        return NULL;
    }
    *parts = (struct mpi_exchange_parts){.bytes = bytes, .event = made};
    return parts;
}

bool exchange_part_take(struct mpi_exchange *exchange, const struct exchange_head *head, const uint8_t *data,
                        uint32_t bytes, struct mpi_exchange_event **whole)
{
    struct exchange_piece piece;
    *whole = NULL;
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
            exchange->failure = CW_ERROR_MEMORY;
            return false;
        }
        *link = parts;
    }
    if (parts == NULL || parts->bytes != piece.bytes || piece.offset > parts->filled) {
        return false;
    }
    uint64_t known = parts->filled - piece.offset;
    if (known < bytes) {
        memcpy(parts->event->data + parts->filled, data + sizeof(piece) + known, bytes - known);
        parts->filled += bytes - known;
    }
    if (parts->filled == parts->bytes) {
        *whole = parts->event;
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
        free(parts->event);
        free(parts);
    }
}
