#include "mpi/collective/exchange/direct.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/exchange/state.h"
#include "mpi/state/process.h"
#include "mpi/transport/outbox.h"
#include "mpi/transport/rendezvous.h"
#include "mpi/transport/transport.h"

enum { SIDES = 2 };
static const enum cw_buffer sides[SIDES] = {CW_BUFFER_RECEIVE, CW_BUFFER_SCRATCH};

/* Where the buffers of a rank are reached; token 0: nowhere. */
struct direct_regions {
    uint64_t token[SIDES];
    uint64_t bytes[SIDES];
};

static_assert(sizeof(struct mpi_call_head) + sizeof(struct direct_regions) <= CW_INLINE_MAX,
              "at most the cost of a bare clear-to-send");

struct direct_target {
    struct direct_target *next;
    int32_t rank; /* in the communicator */
    struct direct_regions regions;
};

struct mpi_direct {
    bool is_registered;
    uint32_t registered_to; /* a rank: the wire's regions are the same for all */
    struct cw_registration registrations[SIDES];
    struct direct_target *targets;
};

struct direct_operation {
    struct mpi_operation operation;
    struct mpi_exchange *exchange;
    uint64_t context;
};

static struct mpi_direct *direct_of(struct mpi_exchange *exchange)
{
    if (exchange->direct == NULL) {
        exchange->direct = calloc(1, sizeof(*exchange->direct));
    }
    return exchange->direct;
}

/* A lane of its own: clear-to-sends do not wait for the bytes of puts. */
static uint32_t lane_tag_of(const struct mpi_exchange *exchange)
{
    return mpi_lane_tag(~exchange->comm->context, MPI_SENT_CALL);
}

/* ---- targets ---- */

bool mpi_direct_is_clear(const struct cw_transport_put *put, uint32_t rank)
{
    return put->eager && put->bytes == 0 && put->peer_count == 1 && put->tag % CW_TAG_STEP == CW_TAG_CLEAR &&
           cw_paths_transport(mpi_process.paths, rank) == CW_PATH_TRANSPORT_PACKETS;
}

static void sides_deregister(struct mpi_direct *direct)
{
    for (uint32_t i = 0; i < SIDES; i++) {
        if (direct->registrations[i].token != 0) {
            mpi_deregister(direct->registered_to, &direct->registrations[i], NULL, NULL); /* nothing is sent from it */
        }
    }
    memset(direct->registrations, 0, sizeof(direct->registrations));
    direct->is_registered = false;
}

/* False: too many regions at a time, say. */
static bool sides_register(const struct mpi_exchange *exchange, struct mpi_direct *direct, uint32_t rank)
{
    int status = CW_OK;
    direct->registered_to = rank;
    for (uint32_t i = 0; i < SIDES && status == CW_OK; i++) {
        uint64_t bytes = exchange->buffer_bytes[sides[i]];
        if (bytes > 0) {
            status = cw_paths_register(mpi_process.paths, rank, exchange->buffers[sides[i]], bytes, CW_REGION_WRITE,
                                       &direct->registrations[i]);
        }
    }
    direct->is_registered = status == CW_OK;
    if (!direct->is_registered) {
        sides_deregister(direct);
    }
    return direct->is_registered;
}

int mpi_direct_clear_send(struct mpi_exchange *exchange, uint32_t rank, const struct mpi_call_head *head)
{
    struct mpi_direct *direct = direct_of(exchange);
    struct mpi_call_head clear = *head;
    clear.kind = MPI_SENT_PLACE;
    if (direct == NULL || (!direct->is_registered && !sides_register(exchange, direct, rank))) {
        return mpi_exchange_send_eager(exchange->comm, rank, &clear, sizeof(clear), NULL, 0, CW_ELEMENT_BYTES);
    }
    struct direct_regions regions;
    for (uint32_t i = 0; i < SIDES; i++) {
        regions.token[i] = direct->registrations[i].token;
        regions.bytes[i] = exchange->buffer_bytes[sides[i]];
    }
    return mpi_exchange_send_eager(exchange->comm, rank, &clear, sizeof(clear), &regions, sizeof(regions),
                                   CW_ELEMENT_BYTES);
}

/* ---- sources ---- */

static struct direct_target *target_find(const struct mpi_exchange *exchange, int32_t rank)
{
    struct direct_target *target = exchange->direct == NULL ? NULL : exchange->direct->targets;
    while (target != NULL && target->rank != rank) {
        target = target->next;
    }
    return target;
}

/* NULL: no memory. */
static struct direct_target *target_of(struct mpi_exchange *exchange, int32_t rank)
{
    struct direct_target *target = target_find(exchange, rank);
    struct mpi_direct *direct = direct_of(exchange);
    if (target == NULL && direct != NULL) {
        target = calloc(1, sizeof(*target));
        if (target != NULL) {
            *target = (struct direct_target){.next = direct->targets, .rank = rank};
            direct->targets = target;
        }
    }
    return target;
}

bool mpi_direct_clear_receive(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                              uint32_t bytes)
{
    struct direct_regions regions;
    if (bytes != sizeof(regions)) {
        return bytes == 0;
    }
    memcpy(&regions, data, sizeof(regions));
    struct direct_target *target = target_of(exchange, head->envelope.source);
    if (target != NULL) { /* else it is offered what it is to have */
        target->regions = regions;
    }
    return true;
}

static void put_sent(struct mpi_operation *operation)
{
    const struct direct_operation *put = (const struct direct_operation *)operation;
    mpi_exchange_put_report(put->exchange, CW_TRANSPORT_SENT, put->context);
}

static void put_end(struct mpi_operation *operation, int status)
{
    struct direct_operation *put = (struct direct_operation *)operation;
    struct mpi_exchange *exchange = put->exchange;
    exchange->operations_open--;
    if (status == CW_OK) {
        mpi_exchange_put_report(exchange, CW_TRANSPORT_COMPLETE, put->context);
    } else if (status !=
               CW_ERROR_REMOTE_ACCESS) { /* the target's call has ended, and it reports why, or another rank does */
        mpi_exchange_fail(exchange, status);
    }
    free(put);
}

/* The registration of the place of a put; false: it has not been announced, or has no room. */
static bool place_find(const struct mpi_exchange *exchange, const struct cw_transport_put *put,
                       struct cw_registration *registration)
{
    const struct direct_target *target = target_find(exchange, (int32_t)put->peers[0]);
    for (uint32_t i = 0; target != NULL && i < SIDES; i++) {
        uint64_t bytes = target->regions.bytes[i];
        if (put->buffer == sides[i] && put->bytes <= bytes && put->offset <= bytes - put->bytes) {
            *registration = (struct cw_registration){.token = target->regions.token[i]};
            return true;
        }
    }
    return false;
}

int mpi_direct_put(struct mpi_exchange *exchange, const struct cw_transport_put *put, uint32_t rank,
                   const struct mpi_call_head *head)
{
    struct cw_registration registration;
    if (!place_find(exchange, put, &registration)) {
        return CW_ERROR_UNSUPPORTED;
    }
    struct direct_operation *made = malloc(sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    *made = (struct direct_operation){
        .operation = {.done = put_end, .sent = put_sent}, .exchange = exchange, .context = put->context};
    uint32_t lane_tag = lane_tag_of(exchange);
    int status =
        cw_paths_put(mpi_process.paths, rank, &registration, put->offset, put->data, put->bytes,
                     mpi_element_of(exchange->comm, exchange->type), lane_tag, (uint64_t)(uintptr_t)&made->operation);
    if (status != CW_OK) {
        free(made);
        return status;
    }
    exchange->operations_open++;
    struct {
        struct mpi_call_head head;
        uint64_t bytes;
    } fin = {.head = *head, .bytes = put->bytes};
    fin.head.kind = MPI_SENT_FIN;
    return mpi_notify(rank, lane_tag, &fin, sizeof(fin));
}

void mpi_direct_end(struct mpi_exchange *exchange)
{
    struct mpi_direct *direct = exchange->direct;
    if (direct == NULL) {
        return;
    }
    sides_deregister(direct);
    while (direct->targets != NULL) {
        struct direct_target *next = direct->targets->next;
        free(direct->targets);
        direct->targets = next;
    }
    free(direct);
    exchange->direct = NULL;
}
