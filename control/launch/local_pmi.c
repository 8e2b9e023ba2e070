/* The local ranks' PMI-1 server, and the sockets of its clients. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/launch/local.h"
#include "dataplane/status.h"

enum { PMI_READ_BYTES = CW_PMI1_BATCH_BYTES };

int launch_local_pmi_start(struct launch_local *local)
{
    const struct launch_work *work = local->config.work;
    char mapping[CW_PMI1_SERVER_VALUE_BYTES];
    uint32_t *app_numbers = calloc((size_t)local->count + 1, sizeof(*app_numbers));
    if (app_numbers == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < local->count; i++) {
        app_numbers[i] = (uint32_t)(local->members[i].program - work->programs);
    }
    if (!launch_work_mapping(work, mapping, sizeof(mapping))) {
        snprintf(mapping, sizeof(mapping), "(vector,(0,%u,1))", work->rank_count); /* no rank counts as near */
    }
    int status = cw_pmi1_server_create(&(struct cw_pmi1_server_config){.client_count = local->count,
                                                                       .job_size = work->rank_count,
                                                                       .universe_size = work->rank_count,
                                                                       .job = work->name,
                                                                       .process_mapping = mapping,
                                                                       .app_numbers = app_numbers},
                                       &local->server);
    free(app_numbers);
    return status;
}

/* Reports a rank's state in the server, if it has changed. */
static void client_report(struct launch_local *local, struct launch_member *member)
{
    uint32_t index = launch_local_index(local, member);
    int32_t value = (int32_t)cw_pmi1_server_state(local->server, index) |
                    (cw_pmi1_server_waits(local->server, index) ? LAUNCH_CLIENT_WAITS : 0);
    if (value != member->told) {
        member->told = value;
        launch_local_report(local, LAUNCH_CLIENT, member->rank, value, NULL, 0);
    }
}

static void pmi_close(struct launch_local *local, struct launch_member *member)
{
    launch_unwatch(local->config.set, member->pmi);
    close(member->pmi);
    member->pmi = -1;
    if (member->handle >= 0 &&
        cw_pmi1_server_state(local->server, launch_local_index(local, member)) == CW_PMI1_CLIENT_ACTIVE) {
        launch_local_report(local, LAUNCH_HANGUP, member->rank, 0, NULL, 0);
    }
}

/* Sends what it can; while something is left nothing is read from this rank. */
static void pmi_send(struct launch_local *local, struct launch_member *member)
{
    uint32_t index = launch_local_index(local, member);
    const char *bytes;
    size_t count;
    while (member->pmi >= 0 && (count = cw_pmi1_server_pending(local->server, index, &bytes)) > 0) {
        ssize_t sent = send(member->pmi, bytes, count, MSG_NOSIGNAL);
        if (sent > 0) {
            cw_pmi1_server_sent(local->server, index, (size_t)sent);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            pmi_close(local, member);
        }
    }
    if (member->pmi < 0) {
        return;
    }
    bool blocked = cw_pmi1_server_pending(local->server, index, &bytes) > 0;
    if (blocked != member->pmi_blocked) {
        member->pmi_blocked = blocked;
        launch_unwatch(local->config.set, member->pmi);
        launch_watch(local->config.set, member->pmi, blocked ? EPOLLOUT : EPOLLIN, LAUNCH_PMI, index);
    }
}

static void entry_write(void *context, const char *key, const char *value)
{
    struct launch_bytes *entries = context;
    (void)launch_put_text(entries, key); /* an entry without memory is not found */
    (void)launch_put_text(entries, value);
}

/* The first bytes of whole pairs of texts, as few as are a piece, or all that there are. */
static size_t piece_bytes(const struct launch_bytes *entries)
{
    struct launch_frame all = {.bytes = launch_bytes_front(entries), .count = (uint32_t)launch_bytes_count(entries)};
    struct launch_reader reader = launch_reader_of(&all);
    const char *begin = reader.at;
    while (reader.at < reader.end && !reader.failed && reader.at - begin < LAUNCH_FENCE_PIECE) {
        (void)launch_get_text(&reader);
        (void)launch_get_text(&reader);
    }
    return reader.failed ? all.count : (size_t)(reader.at - begin);
}

/* Our part of a fence of the whole job. A receiver of a piece may add others' entries to the server at once: all of
 * ours are read from it first. */
static void fence_report(struct launch_local *local)
{
    struct launch_bytes entries = {.start = NULL};
    cw_pmi1_server_fresh(local->server, entry_write, &entries);
    do {
        size_t piece = piece_bytes(&entries);
        launch_local_report(local, LAUNCH_FENCE, local->config.host, piece < launch_bytes_count(&entries),
                            launch_bytes_front(&entries), piece);
        launch_bytes_drop(&entries, piece);
    } while (launch_bytes_count(&entries) > 0);
    launch_bytes_dispose(&entries);
}

static void answers_send(struct launch_local *local)
{
    uint32_t index;
    while (cw_pmi1_server_next(local->server, &index)) {
        pmi_send(local, &local->members[index]);
        client_report(local, &local->members[index]);
    }
}

void launch_local_fence_release(struct launch_local *local, const struct launch_frame *order)
{
    struct launch_reader reader = launch_reader_of(order);
    while (reader.at < reader.end && !reader.failed) {
        const char *key = launch_get_text(&reader);
        const char *value = launch_get_text(&reader);
        if (key == NULL || value == NULL || cw_pmi1_server_add(local->server, key, value) != CW_OK) {
            launch_local_fail(local, CW_LAUNCH_EXIT_MACHINE, "out of memory for the other ranks' addresses");
            return;
        }
    }
    if (order->value != 0) {
        return; /* more of it follows */
    }
    cw_pmi1_server_release(local->server);
    answers_send(local);
}

static void pmi_check(struct launch_local *local)
{
    uint32_t index;
    int code;
    if (!local->abort_told && cw_pmi1_server_aborted(local->server, &index, &code)) {
        local->abort_told = true;
        launch_local_report(local, LAUNCH_ABORT, local->members[index].rank, code, NULL, 0);
    }
}

void launch_local_pmi_receive(struct launch_local *local, struct launch_member *member)
{
    char bytes[PMI_READ_BYTES];
    uint32_t index = launch_local_index(local, member);
    if (member->pmi_blocked) {
        pmi_send(local, member);
    }
    if (member->pmi < 0 || member->pmi_blocked) {
        return;
    }
    bool was_held = cw_pmi1_server_is_held(local->server);
    ssize_t got = recv(member->pmi, bytes, sizeof(bytes), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        pmi_close(local, member);
    } else if (got > 0 && cw_pmi1_server_receive(local->server, index, bytes, (size_t)got) != CW_OK) {
        launch_local_fail(local, CW_LAUNCH_EXIT_FAILED, "rank %" PRIu32 " (process %d) %s", member->rank,
                          member->process, cw_pmi1_server_failure(local->server));
        pmi_close(local, member);
    }
    client_report(local, member);
    answers_send(local);
    pmi_check(local);
    if (!was_held && cw_pmi1_server_is_held(local->server)) {
        fence_report(local);
    }
}
