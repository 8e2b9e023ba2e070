/* The path to ranks of the same host. */
#include "dataplane/base/process.h"
#include "dataplane/base/virtual.h"
#include "dataplane/path/path_private.h"
#include "dataplane/port/error_text.h"
#include "dataplane/shm/copy.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Messages between the two are lost from now on: operations that wait for any of them must be notified, not only the
 * caller. */
static void unreachable(struct cw_paths *paths, uint32_t rank, int status)
{
    struct path_peer *peer = &paths->peers[rank];
    free(peer->description);
    peer->description = strdup(paths->failure);
    peer->unreachable = status;
    path_peer_fail(paths, rank);
}

int path_shared_attach(struct cw_paths *paths, uint32_t rank)
{
    struct path_peer *peer = &paths->peers[rank];
    if (peer->failed) {
        return peer->unreachable != CW_OK ? peer->unreachable : CW_ERROR_PEER_FAILED;
    }
    if (peer->attached) {
        return CW_OK;
    }
    int status =
        cw_inbox_attach(&peer->card.inbox, paths->config.rank, &peer->sender, paths->failure, sizeof(paths->failure));
    if (status != CW_OK) {
        if (status != CW_ERROR_NOT_FOUND) { /* its process has ended: the launcher tells */
            unreachable(paths, rank, status);
        }
        return status;
    }
    peer->attached = true;
    bool is_self = rank == paths->config.rank;
    const struct cw_inbox_place *card = &peer->card.inbox;
    peer->reads = !paths->config.copy_twice && (is_self || cw_copy_probe(card->pid, card->probe, card->nonce));
    peer->writes = peer->reads && (is_self || cw_copy_probe_write(card->pid, card->probe, card->nonce));
    peer->process = rank == paths->config.rank ? -1 : (int)syscall(SYS_pidfd_open, peer->card.inbox.pid, 0);
    return CW_OK;
}

int path_shared_send(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes,
                     const void *data, uint32_t bytes)
{
    struct path_peer *peer = &paths->peers[rank];
    if (!peer->attached || peer->failed) {
        int status = path_shared_attach(paths, rank);
        if (status != CW_OK) {
            return status;
        }
    }
    if (cw_virtual_page != NULL) {
        cw_virtual_copy(head_bytes + bytes);
    }
    uint8_t *payload = cw_ring_reserve(&peer->sender.ring, head_bytes + bytes);
    if (payload == NULL) {
        paths->counters.refusals++;
        return CW_ERROR_AGAIN;
    }
    memcpy(payload, head, head_bytes);
    if (bytes > 0) {
        memcpy(payload + head_bytes, data, bytes);
    }
    cw_ring_publish(&peer->sender.ring, head_bytes + bytes, PATH_MESSAGE, lane_tag);
    cw_inbox_ring(&peer->sender);
    return CW_OK;
}

int path_shared_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                    void *to, uint64_t bytes, uint64_t operation)
{
    struct path_peer *peer = &paths->peers[rank];
    int status = path_shared_attach(paths, rank);
    if (status != CW_OK) {
        return status;
    }
    if (!peer->reads) {
        struct path_place place = {.token = registration->token, .offset = offset};
        return path_stream_get(paths, rank, &place, to, bytes, operation);
    }
    paths->counters.copies_single++;
    if (cw_virtual_page != NULL) {
        cw_virtual_copy(bytes);
    }
    if (rank == paths->config.rank) {
        memmove(to, (const uint8_t *)(uintptr_t)registration->address + offset, bytes);
        return CW_PATHS_DONE;
    }
    status = cw_copy_from(peer->card.inbox.pid, to, registration->address + offset, bytes);
    return status == CW_OK ? CW_PATHS_DONE : status;
}

int path_shared_put(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                    const void *from, uint64_t bytes, uint32_t lane_tag, uint64_t operation)
{
    struct path_peer *peer = &paths->peers[rank];
    int status = path_shared_attach(paths, rank);
    if (status != CW_OK) {
        return status;
    }
    if (!peer->writes) {
        struct path_place place = {.token = registration->token, .offset = offset};
        return path_stream_put(paths, rank, &place, from, bytes, lane_tag, operation);
    }
    if (cw_ring_reserve(&peer->sender.ring, 0) ==
        NULL) { /* room for the notice first: the copy must not be made twice */
        paths->counters.refusals++;
        return CW_ERROR_AGAIN;
    }
    paths->counters.copies_single++;
    if (cw_virtual_page != NULL) {
        cw_virtual_copy(bytes);
    }
    if (rank == paths->config.rank) {
        memmove((uint8_t *)(uintptr_t)registration->address + offset, from, bytes);
    } else {
        status = cw_copy_to(peer->card.inbox.pid, registration->address + offset, from, bytes);
        if (status != CW_OK) {
            return status;
        }
    }
    cw_ring_publish(&peer->sender.ring, 0, PATH_NOTICE, lane_tag);
    cw_inbox_ring(&peer->sender);
    return CW_PATHS_DONE;
}

bool cw_paths_share_core(struct cw_paths *paths, uint32_t core)
{
    cw_inbox_place_on(paths->inbox, core);
    for (uint32_t rank = 0; rank < paths->config.rank_count; rank++) {
        const struct path_peer *peer = &paths->peers[rank];
        if (peer->attached && rank != paths->config.rank && cw_inbox_owner_is_on(&peer->sender, core)) {
            return true;
        }
    }
    return false;
}

void cw_paths_kick(struct cw_paths *paths, uint32_t rank)
{
    if (paths->peers[rank].transport == CW_PATH_TRANSPORT_SHARED && path_shared_attach(paths, rank) == CW_OK) {
        cw_inbox_ring(&paths->peers[rank].sender);
    }
}

bool cw_paths_reaches_memory(struct cw_paths *paths, uint32_t rank)
{
    return paths->peers[rank].transport == CW_PATH_TRANSPORT_SHARED && path_shared_attach(paths, rank) == CW_OK &&
           paths->peers[rank].writes;
}

int cw_paths_copy_from(struct cw_paths *paths, uint32_t rank, void *to, uint64_t address, uint64_t bytes)
{
    paths->counters.copies_single++;
    return cw_copy_from(paths->peers[rank].card.inbox.pid, to, address, bytes);
}

int cw_paths_copy_to(struct cw_paths *paths, uint32_t rank, uint64_t address, const void *from, uint64_t bytes)
{
    paths->counters.copies_single++;
    return cw_copy_to(paths->peers[rank].card.inbox.pid, address, from, bytes);
}

/* Hands one record on. False: no process with this library writes such a record. */
static bool record_dispatch(struct cw_paths *paths, uint32_t rank, const struct cw_ring_record *record)
{
    const struct cw_path_handler *handler = &paths->config.handler;
    switch (record->kind) {
    case PATH_MESSAGE:
        path_message(paths, rank, record->user, record->payload, record->bytes);
        return true;
    case PATH_NOTICE:
        handler->arrived(handler->context, rank, record->user);
        return true;
    default:
        return path_stream_accept(paths, rank, record);
    }
}

static uint32_t ring_poll(struct cw_paths *paths, struct cw_ring_consumer *ring, uint32_t rank)
{
    uint32_t count = 0;
    struct cw_ring_record record;
    while (count < CW_PATH_RECORDS_A_RING) {
        int found = cw_ring_peek(ring, &record);
        if (found == 0) {
            break;
        }
        if (found < 0 || !record_dispatch(paths, rank, &record)) {
            cw_error_text(paths->failure, sizeof(paths->failure), CW_ERROR_SYSTEM,
                          "invalid record in shared memory (kind %u, %u bytes)", record.kind, record.bytes);
            unreachable(paths, rank, CW_ERROR_PEER_FAILED);
            return count + 1;
        }
        cw_ring_consume(ring, &record);
        count++;
    }
    return count;
}

/* The sender of a ring is silent. */
static uint32_t ring_lose(struct cw_paths *paths, const struct cw_inbox_cursor *at)
{
    if (paths->peers[at->sender].failed) {
        return 0;
    }
    int status = cw_inbox_lost(paths->inbox, at->slot, paths->failure, sizeof(paths->failure));
    unreachable(paths, at->sender, status);
    return 1;
}

uint32_t path_shared_poll(struct cw_paths *paths)
{
    uint32_t count = 0;
    for (struct cw_inbox_cursor at = {.next = 0}; cw_inbox_next(paths->inbox, &at);) {
        if (at.sender < paths->config.rank_count) {
            count += at.ring == NULL ? ring_lose(paths, &at) : ring_poll(paths, at.ring, at.sender);
        }
    }
    return count;
}

/* Between two checks of a process: after a longer pause neither its state meanwhile nor our own stop is known. */
#define ASK_GAP_NS UINT64_C(5000000000)

void path_shared_probe(struct cw_paths *paths, uint32_t rank, uint64_t now_ns)
{
    struct path_peer *peer = &paths->peers[rank];
    uint64_t bound_ns = paths->config.stopped_timeout_ns;
    bool goes_on = peer->stopped_ns != 0 && now_ns - peer->asked_ns < ASK_GAP_NS;
    peer->asked_ns = now_ns;
    if (bound_ns == 0 || rank == paths->config.rank || !cw_process_is_stopped(peer->card.inbox.number)) {
        peer->stopped_ns = 0;
        return;
    }
    peer->stopped_ns = goes_on ? peer->stopped_ns : now_ns;
    if (now_ns - peer->stopped_ns >= bound_ns) {
        cw_error_text(paths->failure, sizeof(paths->failure), CW_ERROR_PEER_FAILED,
                      "rank %u: its process %d is stopped by a signal", rank, peer->card.inbox.pid);
        peer->stopped = true;
        path_peer_fail(paths, rank);
    }
}

void cw_paths_watch(struct cw_paths *paths)
{
    for (uint32_t rank = 0; rank < paths->config.rank_count; rank++) {
        struct path_peer *peer = &paths->peers[rank];
        if (peer->transport != CW_PATH_TRANSPORT_SHARED || !peer->attached || peer->failed || peer->process < 0) {
            continue;
        }
        struct pollfd gone = {.fd = peer->process, .events = POLLIN};
        if (poll(&gone, 1, 0) > 0) {
            cw_error_text(paths->failure, sizeof(paths->failure), CW_ERROR_PEER_FAILED,
                          "rank %u: its process %d has ended", rank, peer->card.inbox.pid);
            path_peer_fail(paths, rank);
        }
    }
}
