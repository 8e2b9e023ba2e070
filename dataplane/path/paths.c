#include "dataplane/path/path_private.h"

#include "dataplane/base/clock.h"
#include "dataplane/port/error_text.h"
#include "dataplane/shm/copy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The endpoint of the configuration, if there is one. */
static int endpoint_attach(struct cw_paths *paths, char *error, size_t error_bytes)
{
    const struct cw_loop *loop = cw_paths_loop(paths);
    int status =
        loop != NULL && cw_loop_needs_descriptor(loop) ? cw_inbox_bell_open(paths->inbox, error, error_bytes) : CW_OK;
    return loop == NULL || status != CW_OK ? status : path_wire_create(paths);
}

int cw_paths_connect(struct cw_paths *paths, const struct cw_paths_config *config, char *error, size_t error_bytes)
{
    paths->config.set = config->set;
    paths->config.address = config->address;
    paths->config.message_bytes_max = config->message_bytes_max;
    paths->config.messages_registered = config->messages_registered;
    paths->config.multicasts = config->multicasts;
    return endpoint_attach(paths, error, error_bytes);
}

int cw_paths_create(const struct cw_paths_config *config, struct cw_paths **paths, char *error, size_t error_bytes)
{
    if (config->rank_count < 1 || config->rank >= config->rank_count || config->handler.arrived == NULL ||
        config->handler.complete == NULL || config->handler.down == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "paths: rank %u of %u, or no handler", config->rank,
                             config->rank_count);
    }
    struct cw_paths *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->peers = calloc(config->rank_count, sizeof(*made->peers))) == NULL) {
        free(made);
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "paths: no memory for %u ranks%s", config->rank_count,
                             cw_errno_remedy(ENOMEM));
    }
    made->config = *config;
    cw_copy_allow(config->ancestor);
    uint32_t senders = config->rank_count < CW_INBOX_SLOTS_MAX ? config->rank_count : CW_INBOX_SLOTS_MAX;
    int status = cw_inbox_create(senders, config->nonce, &made->inbox, error, error_bytes);
    status = status == CW_OK ? endpoint_attach(made, error, error_bytes) : status;
    if (status != CW_OK) {
        cw_paths_destroy(made);
        return status;
    }
    *paths = made;
    return CW_OK;
}

void cw_paths_destroy(struct cw_paths *paths)
{
    if (paths == NULL) {
        return;
    }
    for (struct path_stream *stream = paths->streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        free(stream);
    }
    for (uint32_t rank = 0; rank < paths->config.rank_count; rank++) {
        free(paths->peers[rank].description);
        if (paths->peers[rank].attached) {
            cw_inbox_detach(&paths->peers[rank].sender);
            if (paths->peers[rank].process >= 0) {
                close(paths->peers[rank].process);
            }
        }
    }
    path_wire_destroy(paths);
    cw_inbox_destroy(paths->inbox);
    free(paths->rank_of_wire_peer);
    free(paths->registered);
    free(paths->peers);
    free(paths);
}

void cw_paths_card(const struct cw_paths *paths, struct cw_path_card *card)
{
    memset(card, 0, sizeof(*card)); /* also between its members: it is compared and printed as bytes */
    memcpy(card->host, paths->config.host, sizeof(card->host));
    card->inbox = cw_inbox_place(paths->inbox);
    card->address = paths->config.address;
    card->multicasts = paths->config.multicasts;
    card->loops = (uint8_t)paths->config.set.count;
}

int cw_paths_add(struct cw_paths *paths, uint32_t rank, const struct cw_path_card *card, char *error,
                 size_t error_bytes)
{
    if (rank >= paths->config.rank_count || paths->peers[rank].transport != CW_PATH_TRANSPORT_NONE) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "paths: rank %u is out of range or has been added",
                             rank);
    }
    struct path_peer *peer = &paths->peers[rank];
    peer->card = *card;
    peer->process = -1;
    if (memcmp(card->host, paths->config.host, sizeof(card->host)) == 0) {
        peer->transport = CW_PATH_TRANSPORT_SHARED;
        return CW_OK;
    }
    if (paths->wire == NULL || cw_ip_is_none(&card->address.ip)) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "rank %u is on another host, and %s has no port to a network", rank,
                             paths->wire == NULL ? "this process" : "that one");
    }
    int status = path_wire_add(paths, rank);
    if (status != CW_OK) {
        return cw_error_text(error, error_bytes, status, "rank %u cannot be added to the endpoint: %s", rank,
                             cw_status_text(status));
    }
    peer->transport = CW_PATH_TRANSPORT_PACKETS;
    return CW_OK;
}

enum cw_path_transport cw_paths_transport(const struct cw_paths *paths, uint32_t rank)
{
    return paths->peers[rank].transport;
}

bool cw_paths_is_here(const struct cw_paths *paths, uint32_t rank)
{
    return memcmp(paths->peers[rank].card.host, paths->config.host, sizeof(paths->config.host)) == 0;
}

int cw_paths_hosts_compare(const struct cw_paths *paths, uint32_t one, uint32_t other)
{
    return memcmp(paths->peers[one].card.host, paths->peers[other].card.host, sizeof(paths->config.host));
}

void cw_paths_why(const struct cw_paths *paths, uint32_t rank, char *text, size_t text_bytes)
{
    const struct path_peer *peer = &paths->peers[rank];
    if (peer->transport == CW_PATH_TRANSPORT_SHARED) {
        const char *copy = !peer->attached ? "not used yet"
                           : peer->reads   ? "long messages in a single copy"
                           : paths->config.copy_twice
                               ? "long messages through the ring: asked for"
                               : "long messages through the ring: the kernel forbids process_vm_readv";
        snprintf(text, text_bytes, "rank %u: shared memory, since it is on the same host; %s", rank, copy);
        return;
    }
    if (peer->transport == CW_PATH_TRANSPORT_PACKETS) {
        char ip[CW_IP_TEXT_BYTES];
        cw_ip_write(&peer->card.address.ip, ip);
        snprintf(text, text_bytes, "rank %u: packets, %s%s; %s, UDP port %u", rank,
                 peer->description != NULL ? "" : "since it is on another host",
                 peer->description != NULL ? peer->description : "", ip, peer->card.address.udp_port);
        return;
    }
    if (peer->unreachable != CW_OK) {
        snprintf(text, text_bytes, "rank %u cannot be reached: %s", rank,
                 peer->description != NULL ? peer->description : paths->failure);
        return;
    }
    snprintf(text, text_bytes, "rank %u: no path", rank);
}

struct cw_loop *cw_paths_loop(const struct cw_paths *paths)
{
    return paths->config.set.count > 0 ? paths->config.set.loops[0] : NULL;
}

int cw_paths_describe(struct cw_paths *paths, uint32_t rank, const char *how)
{
    char *kept = strdup(how);
    if (kept == NULL) {
        return CW_ERROR_MEMORY;
    }
    free(paths->peers[rank].description);
    paths->peers[rank].description = kept;
    return CW_OK;
}

uint32_t cw_paths_message_max(const struct cw_paths *paths, uint32_t rank)
{
    return cw_paths_is_here(paths, rank) ? cw_ring_payload_max(CW_INBOX_RING_BYTES) : paths->config.message_bytes_max;
}

int cw_paths_wire_peer(struct cw_paths *paths, uint32_t rank, uint32_t *peer)
{
    struct path_peer *found = &paths->peers[rank];
    if (paths->wire == NULL || cw_ip_is_none(&found->card.address.ip)) {
        return CW_ERROR_UNSUPPORTED;
    }
    if (found->transport != CW_PATH_TRANSPORT_PACKETS && !found->has_wire_peer) {
        int status = path_wire_add(paths, rank);
        if (status != CW_OK) {
            return status;
        }
        found->has_wire_peer = true;
    }
    *peer = found->wire_peer;
    return CW_OK;
}

bool cw_paths_all_multicast(const struct cw_paths *paths)
{
    for (uint32_t rank = 0; rank < paths->config.rank_count; rank++) {
        if (paths->peers[rank].card.multicasts == 0) {
            return false;
        }
    }
    return true;
}

const char *cw_paths_failure(const struct cw_paths *paths)
{
    return paths->failure;
}

int cw_paths_send(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes,
                  const void *data, uint32_t bytes, enum cw_element element)
{
    assert(rank < paths->config.rank_count);
    paths->counters.messages_sent++;
    return paths->peers[rank].transport == CW_PATH_TRANSPORT_PACKETS
               ? path_wire_send(paths, rank, lane_tag, head, head_bytes, data, bytes, element)
               : path_shared_send(paths, rank, lane_tag, head, head_bytes, data, bytes);
}

void path_message(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    const struct cw_path_handler *handler = &paths->config.handler;
    uint32_t tag = cw_tag(lane_tag);
    const struct cw_path_listener *listener = tag < CW_PATH_LISTENERS && handler->listeners[tag].message != NULL
                                                  ? &handler->listeners[tag]
                                                  : &handler->others;
    paths->counters.messages_received++;
    if (listener->message != NULL) {
        listener->message(listener->context, rank, lane_tag, data, bytes);
    }
}

int cw_paths_register(struct cw_paths *paths, uint32_t rank, void *base, uint64_t bytes, uint32_t rights,
                      struct cw_registration *registration)
{
    *registration = (struct cw_registration){.token = 0};
    if (paths->peers[rank].transport == CW_PATH_TRANSPORT_PACKETS) {
        return path_wire_register(paths, base, bytes, rights, &registration->token);
    }
    int status = path_shared_attach(paths, rank);
    if (status != CW_OK) {
        return status;
    }
    registration->address = (uint64_t)(uintptr_t)base;
    /* by a token, since we do not know whether the other one may copy: that we may says nothing of it */
    status = path_stream_register(paths, rank, base, bytes, rights, &registration->token);
    return paths->peers[rank].reads && (status == CW_ERROR_LIMIT || status == CW_ERROR_MEMORY) ? CW_OK : status;
}

int cw_paths_deregister(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration)
{
    if (registration->token == 0) {
        return CW_OK;
    }
    if (paths->wire != NULL && !cw_ip_is_none(&paths->peers[rank].card.address.ip) &&
        memcmp(paths->peers[rank].card.host, paths->config.host, sizeof(paths->config.host)) != 0) {
        return path_wire_deregister(paths, registration->token); /* also if the rank has gone since */
    }
    path_stream_deregister(paths, registration->token);
    return CW_OK;
}

int cw_paths_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                 void *to, uint64_t bytes, enum cw_element element, uint64_t operation)
{
    return paths->peers[rank].transport == CW_PATH_TRANSPORT_PACKETS
               ? path_wire_get(paths, rank, registration, offset, to, bytes, element, operation)
               : path_shared_get(paths, rank, registration, offset, to, bytes, operation);
}

int cw_paths_put(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                 const void *from, uint64_t bytes, enum cw_element element, uint32_t lane_tag, uint64_t operation)
{
    return paths->peers[rank].transport == CW_PATH_TRANSPORT_PACKETS
               ? path_wire_put(paths, rank, registration, offset, from, bytes, element, lane_tag, operation)
               : path_shared_put(paths, rank, registration, offset, from, bytes, lane_tag, operation);
}

int cw_paths_process(const struct cw_paths *paths, uint32_t rank)
{
    return paths->peers[rank].card.inbox.number;
}

bool cw_paths_is_down(const struct cw_paths *paths, uint32_t rank)
{
    return paths->peers[rank].failed && paths->peers[rank].transport == CW_PATH_TRANSPORT_NONE;
}

bool cw_paths_is_silent(const struct cw_paths *paths, uint32_t rank)
{
    return paths->peers[rank].failure == CW_ERROR_PEER_FAILED;
}

bool cw_paths_is_stopped(const struct cw_paths *paths, uint32_t rank)
{
    return paths->peers[rank].stopped;
}

bool cw_paths_is_unreachable(const struct cw_paths *paths, uint32_t rank)
{
    return paths->peers[rank].unreachable != CW_OK;
}

void cw_paths_probe_here(struct cw_paths *paths)
{
    for (uint32_t rank = 0; rank < paths->config.rank_count; rank++) {
        if (!paths->peers[rank].failed && paths->peers[rank].transport == CW_PATH_TRANSPORT_SHARED) {
            path_shared_probe(paths, rank, cw_clock_ns());
        }
    }
}

void cw_paths_probe(struct cw_paths *paths, uint32_t rank)
{
    const struct path_peer *peer = &paths->peers[rank];
    if (!peer->failed && (peer->transport == CW_PATH_TRANSPORT_PACKETS || peer->has_wire_peer)) {
        path_wire_probe(paths, peer->wire_peer);
    }
    if (!peer->failed && peer->transport == CW_PATH_TRANSPORT_SHARED) {
        path_shared_probe(paths, rank, cw_clock_ns());
    }
}

void path_peer_fail(struct cw_paths *paths, uint32_t rank)
{
    struct path_peer *peer = &paths->peers[rank];
    if (!peer->failed) {
        peer->failed = true;
        paths->down_count++;
    }
}

/* Notifies the handler of dead ranks, when their earlier messages have been received. */
static void down_report(struct cw_paths *paths)
{
    for (uint32_t rank = 0; rank < paths->config.rank_count && paths->down_count > 0; rank++) {
        struct path_peer *peer = &paths->peers[rank];
        if (peer->failed && peer->transport != CW_PATH_TRANSPORT_NONE) {
            peer->transport = CW_PATH_TRANSPORT_NONE;
            paths->down_count--;
            int status = peer->failure == CW_ERROR_PEER_RESTARTED ? CW_ERROR_PEER_RESTARTED : CW_ERROR_PEER_FAILED;
            path_stream_fail(paths, rank, status);
            if (paths->config.watcher != NULL) {
                paths->config.watcher->down(paths->config.watcher->context, rank);
            }
            paths->config.handler.down(paths->config.handler.context, rank, status);
        }
    }
}

uint32_t cw_paths_poll(struct cw_paths *paths)
{
    uint32_t count = path_shared_poll(paths);
    if (paths->wire != NULL) {
        count += path_wire_poll(paths);
    }
    if (paths->streams != NULL) {
        count += path_stream_poll(paths);
    }
    if (paths->down_count > 0 && count == 0) {
        down_report(paths);
        count++;
    }
    if (paths->config.watcher != NULL && paths->config.watcher->is_due) {
        count += paths->config.watcher->poll(paths->config.watcher->context);
    }
    return count;
}

void cw_paths_hold(struct cw_paths *paths)
{
    paths->holds = true;
}

void cw_paths_release(struct cw_paths *paths)
{
    paths->holds = false;
    if (paths->has_held) {
        paths->has_held = false;
        (void)cw_loop_poll(paths->config.set.loops[0], NULL, 0); /* a turn; dedicated threads turn the other loops */
    }
}

/* No ring signals new room: a rejected sender polls. */
#define WAIT_REFUSED_NS 100000ull

void cw_paths_wait(struct cw_paths *paths, uint64_t timeout_ns, bool (*is_over)(void *context), void *context)
{
    bool was_refused = paths->counters.refusals != paths->refusals_seen;
    paths->refusals_seen = paths->counters.refusals;
    timeout_ns = was_refused && timeout_ns > WAIT_REFUSED_NS ? WAIT_REFUSED_NS : timeout_ns;
    cw_inbox_arm(paths->inbox, cw_clock_ns());
    if (cw_paths_poll(paths) == 0 && (is_over == NULL || !is_over(context))) {
        struct cw_port_alarm alarm = cw_inbox_alarm(paths->inbox);
        uint32_t count = 0;
        paths->counters.sleeps++;
        if (paths->wire != NULL) {
            count = path_wire_wait(paths, timeout_ns, &alarm);
        } else {
            cw_inbox_sleep(paths->inbox, timeout_ns);
        }
        paths->counters.time_outs += count == 0 && !cw_word_has_changed(&alarm.word);
    }
    cw_inbox_disarm(paths->inbox);
}

void cw_paths_wake(struct cw_paths *paths)
{
    cw_inbox_ring_own(paths->inbox);
}

struct cw_paths_counters cw_paths_counters(const struct cw_paths *paths)
{
    return paths->counters;
}
