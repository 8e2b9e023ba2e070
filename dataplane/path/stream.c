/* Gets and puts as records through rings, for hosts that forbid a process to copy from another one. */
#include "dataplane/path/path_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Data of one record: several fit a ring, so that both sides copy at the same time. */
enum { STREAM_PIECE_BYTES = 8192 };

int path_stream_register(struct cw_paths *paths, uint32_t rank, void *base, uint64_t bytes, uint32_t rights,
                         uint64_t *token)
{
    if (paths->registered == NULL) {
        paths->registered = calloc(CW_PATH_REGISTRATIONS, sizeof(*paths->registered));
        if (paths->registered == NULL) {
            return CW_ERROR_MEMORY;
        }
    }
    for (uint64_t tried = 0; tried < CW_PATH_REGISTRATIONS; tried++) {
        uint64_t made = ++paths->registered_count;
        struct path_registered *registered = &paths->registered[made % CW_PATH_REGISTRATIONS];
        if (registered->token == 0) {
            *registered = (struct path_registered){
                .token = made,
                .base = base,
                .bytes = bytes,
                .rights = rights,
                .rank = rank,
            };
            *token = made;
            return CW_OK;
        }
    }
    return CW_ERROR_LIMIT;
}

/* The memory of `place`, if `rank` may access `bytes` of it; NULL: it may not. */
static uint8_t *place_find(struct cw_paths *paths, uint32_t rank, const struct path_place *place, uint64_t bytes,
                           uint32_t right)
{
    if (paths->registered == NULL || place->token == 0) {
        return NULL;
    }
    struct path_registered *registered = &paths->registered[place->token % CW_PATH_REGISTRATIONS];
    bool allowed = registered->token == place->token && registered->rank == rank && (registered->rights & right) != 0 &&
                   bytes <= registered->bytes && place->offset <= registered->bytes - bytes;
    return allowed ? registered->base + place->offset : NULL;
}

static void stream_append(struct cw_paths *paths, struct path_stream *stream)
{
    struct path_stream **last = &paths->streams;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = stream;
}

static struct path_stream *stream_make(struct cw_paths *paths, enum path_stream_kind kind, uint32_t rank,
                                       const struct path_place *place, void *memory, uint64_t bytes)
{
    struct path_stream *stream = calloc(1, sizeof(*stream));
    if (stream != NULL) {
        stream->kind = kind;
        stream->rank = rank;
        stream->place = *place;
        stream->memory = memory;
        stream->bytes = bytes;
        stream_append(paths, stream);
        paths->counters.copies_streamed++;
    }
    return stream;
}

void path_stream_deregister(struct cw_paths *paths, uint64_t token)
{
    struct path_registered *registered =
        paths->registered == NULL ? NULL : &paths->registered[token % CW_PATH_REGISTRATIONS];
    if (registered == NULL || registered->token != token) {
        return;
    }
    for (struct path_stream *stream = paths->streams; stream != NULL; stream = stream->next) {
        if (stream->kind == PATH_STREAM_ANSWER && stream->place.token == token) {
            stream->status = CW_ERROR_REMOTE_ACCESS; /* nothing is read from it any more */
        }
    }
    registered->token = 0;
}

int path_stream_get(struct cw_paths *paths, uint32_t rank, const struct path_place *place, void *to, uint64_t bytes,
                    uint64_t operation)
{
    struct path_stream *stream = stream_make(paths, PATH_STREAM_GET, rank, place, to, bytes);
    if (stream == NULL) {
        return CW_ERROR_MEMORY;
    }
    stream->number = ++paths->stream_number;
    stream->operation = operation;
    return CW_OK;
}

int path_stream_put(struct cw_paths *paths, uint32_t rank, const struct path_place *place, const void *from,
                    uint64_t bytes, uint32_t lane_tag, uint64_t operation)
{
    struct path_stream *stream = stream_make(paths, PATH_STREAM_PUT, rank, place, (void *)(uintptr_t)from, bytes);
    if (stream == NULL) {
        return CW_ERROR_MEMORY;
    }
    stream->lane_tag = lane_tag;
    stream->operation = operation;
    return CW_OK;
}

static bool put_accept(struct cw_paths *paths, uint32_t rank, const struct cw_ring_record *record)
{
    struct path_place place;
    if (record->bytes < sizeof(place)) {
        return false;
    }
    memcpy(&place, record->payload, sizeof(place));
    uint64_t bytes = record->bytes - sizeof(place);
    uint8_t *to = place_find(paths, rank, &place, bytes, CW_REGION_WRITE);
    if (to == NULL) {
        return false;
    }
    memcpy(to, (const uint8_t *)record->payload + sizeof(place), bytes);
    return true;
}

static bool fetch_accept(struct cw_paths *paths, uint32_t rank, const struct cw_ring_record *record)
{
    struct path_fetch fetch;
    if (record->bytes != sizeof(fetch)) {
        return false;
    }
    memcpy(&fetch, record->payload, sizeof(fetch));
    uint8_t *from = place_find(paths, rank, &fetch.place, fetch.bytes, CW_REGION_READ);
    struct path_stream *stream = stream_make(paths, PATH_STREAM_ANSWER, rank, &fetch.place, from, fetch.bytes);
    if (stream == NULL) {
        return false;
    }
    stream->number = fetch.stream;
    stream->status = from == NULL ? CW_ERROR_REMOTE_ACCESS : CW_OK;
    return true;
}

/* Takes the stream out of the list and notifies the handler. */
static void stream_end(struct cw_paths *paths, struct path_stream *stream, int status)
{
    struct path_stream **link = &paths->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    if (stream->kind != PATH_STREAM_ANSWER) {
        paths->config.handler.complete(paths->config.handler.context, stream->operation, status);
    }
    free(stream);
}

static bool fetched_accept(struct cw_paths *paths, uint32_t rank, const struct cw_ring_record *record)
{
    struct path_fetched fetched;
    if (record->bytes < sizeof(fetched)) {
        return false;
    }
    memcpy(&fetched, record->payload, sizeof(fetched));
    uint64_t bytes = record->bytes - sizeof(fetched);
    struct path_stream *stream = paths->streams;
    while (stream != NULL && !(stream->kind == PATH_STREAM_GET && stream->number == fetched.stream)) {
        stream = stream->next;
    }
    if (stream == NULL || stream->rank != rank || fetched.offset != stream->moved ||
        bytes > stream->bytes - stream->moved) {
        return false;
    }
    if (fetched.status != CW_OK) {
        stream_end(paths, stream, (int)fetched.status);
        return true;
    }
    memcpy(stream->memory + stream->moved, (const uint8_t *)record->payload + sizeof(fetched), bytes);
    stream->moved += bytes;
    if (stream->moved == stream->bytes) {
        stream_end(paths, stream, CW_OK);
    }
    return true;
}

bool path_stream_accept(struct cw_paths *paths, uint32_t rank, const struct cw_ring_record *record)
{
    switch (record->kind) {
    case PATH_PUT:
        return put_accept(paths, rank, record);
    case PATH_FETCH:
        return fetch_accept(paths, rank, record);
    case PATH_FETCHED:
        return fetched_accept(paths, rank, record);
    default:
        return false;
    }
}

/* Writes a record of a head and data, if there is room. */
static bool record_write(struct path_peer *peer, uint8_t kind, const void *head, uint32_t head_bytes, const void *data,
                         uint64_t bytes)
{
    uint8_t *payload = cw_ring_reserve(&peer->sender.ring, head_bytes + (uint32_t)bytes);
    if (payload == NULL) {
        return false;
    }
    memcpy(payload, head, head_bytes);
    if (bytes > 0) {
        memcpy(payload + head_bytes, data, bytes);
    }
    cw_ring_publish(&peer->sender.ring, head_bytes + (uint32_t)bytes, kind, 0);
    return true;
}

static uint64_t piece_bytes(const struct path_stream *stream)
{
    uint64_t left = stream->bytes - stream->moved;
    return left < STREAM_PIECE_BYTES ? left : STREAM_PIECE_BYTES;
}

/* One step of a stream; false: it can do none now. *end: it has done its last one. */
static bool put_step(struct path_peer *peer, struct path_stream *stream, bool *end)
{
    if (stream->moved == stream->bytes) {
        if (cw_ring_reserve(&peer->sender.ring, 0) == NULL) {
            return false;
        }
        cw_ring_publish(&peer->sender.ring, 0, PATH_NOTICE, stream->lane_tag);
        *end = true;
        return true;
    }
    struct path_place place = {.token = stream->place.token, .offset = stream->place.offset + stream->moved};
    uint64_t bytes = piece_bytes(stream);
    if (!record_write(peer, PATH_PUT, &place, sizeof(place), stream->memory + stream->moved, bytes)) {
        return false;
    }
    stream->moved += bytes;
    return true;
}

static bool get_step(struct path_peer *peer, struct path_stream *stream)
{
    struct path_fetch fetch = {.place = stream->place, .bytes = stream->bytes, .stream = stream->number};
    if (stream->asked || !record_write(peer, PATH_FETCH, &fetch, sizeof(fetch), NULL, 0)) {
        return false;
    }
    stream->asked = true;
    return true;
}

static bool answer_step(struct path_peer *peer, struct path_stream *stream, bool *end)
{
    struct path_fetched fetched = {.stream = stream->number, .offset = stream->moved, .status = stream->status};
    uint64_t bytes = stream->status == CW_OK ? piece_bytes(stream) : 0;
    const uint8_t *data = bytes > 0 ? stream->memory + stream->moved : NULL;
    if (!record_write(peer, PATH_FETCHED, &fetched, sizeof(fetched), data, bytes)) {
        return false;
    }
    stream->moved += bytes;
    *end = stream->status != CW_OK || stream->moved == stream->bytes;
    return true;
}

static bool stream_step(struct cw_paths *paths, struct path_stream *stream, bool *end)
{
    struct path_peer *peer = &paths->peers[stream->rank];
    if (path_shared_attach(paths, stream->rank) != CW_OK) {
        return false; /* a failed peer's streams are ended by path_stream_fail */
    }
    switch (stream->kind) {
    case PATH_STREAM_PUT:
        return put_step(peer, stream, end);
    case PATH_STREAM_GET:
        return get_step(peer, stream);
    default:
        return answer_step(peer, stream, end);
    }
}

uint32_t path_stream_poll(struct cw_paths *paths)
{
    uint32_t count = 0;
    for (struct path_stream *stream = paths->streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        bool end = false;
        uint32_t steps = 0;
        while (!end && stream_step(paths, stream, &end)) {
            steps++;
        }
        if (steps > 0) {
            cw_inbox_ring(&paths->peers[stream->rank].sender);
        }
        count += steps;
        if (end) {
            stream_end(paths, stream, CW_OK);
        } else if (stream->kind != PATH_STREAM_GET || !stream->asked) {
            paths->counters.refusals++; /* no signal reports new room */
        }
    }
    return count;
}

void path_stream_fail(struct cw_paths *paths, uint32_t rank, int status)
{
    for (struct path_stream *stream = paths->streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->rank == rank) {
            stream_end(paths, stream, status);
        }
    }
}
