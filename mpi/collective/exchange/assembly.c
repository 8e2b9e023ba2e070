#include "mpi/collective/exchange/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/transport/transport.h"

/* A multicast of which parts are missing. */
struct mpi_exchange_parts {
    struct mpi_exchange_parts *next;
    int32_t source;
    int32_t tag;
    uint64_t filled;
    uint64_t bytes;
    uint8_t *data;
};

static struct mpi_exchange_parts **parts_find(struct mpi_exchange *exchange, const struct mpi_call_head *head)
{
    struct mpi_exchange_parts **link = &exchange->parts;
    while (*link != NULL && !((*link)->source == head->envelope.source && (*link)->tag == head->envelope.tag)) {
        link = &(*link)->next;
    }
    return link;
}

/* NULL: no memory. */
static struct mpi_exchange_parts *parts_begin(const struct mpi_call_head *head, uint64_t bytes)
{
    struct mpi_exchange_parts *parts = malloc(sizeof(*parts));
    uint8_t *memory = malloc(bytes + 1);
    if (parts == NULL || memory == NULL) {
        free(parts);
        free(memory);
        return NULL;
    }
    *parts = (struct mpi_exchange_parts){
        .source = head->envelope.source, .tag = head->envelope.tag, .bytes = bytes, .data = memory};
    return parts;
}

bool exchange_part_add(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                       uint32_t bytes, struct cw_transport_event *whole)
{
    struct mpi_part part;
    whole->buffer = 0;
    if (!mpi_message_read(&data, &bytes, &part, sizeof(part)) || part.bytes > EXCHANGE_PARTS_MAX_BYTES ||
        part.offset > part.bytes || bytes > part.bytes - part.offset || part.left != part.bytes - part.offset - bytes) {
        return false;
    }
    struct mpi_exchange_parts **link = parts_find(exchange, head);
    struct mpi_exchange_parts *parts = *link;
    if (parts == NULL && part.offset == 0) {
        parts = parts_begin(head, part.bytes);
        if (parts == NULL) {
            mpi_exchange_fail(exchange, CW_ERROR_MEMORY);
            return false;
        }
        *link = parts;
    }
    if (parts == NULL || parts->bytes != part.bytes || part.offset > parts->filled) {
        return false;
    }
    uint64_t known = parts->filled - part.offset;
    if (known < bytes) {
        memcpy(parts->data + parts->filled, (const uint8_t *)data + known, bytes - known);
        parts->filled += bytes - known;
    }
    if (parts->filled == parts->bytes) {
        *whole = exchange_arrival(head, parts->data, parts->bytes);
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
