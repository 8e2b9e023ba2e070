/* The crew's PMI-1 server, and the sockets of its clients. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/launch/crew.h"
#include "dataplane/status.h"

enum { PMI_READ_BYTES = CW_PMI1_BATCH_BYTES };

int launch_crew_pmi_start(struct launch_crew *crew)
{
    const struct launch_work *work = crew->config.work;
    char mapping[CW_PMI1_SERVER_VALUE_BYTES];
    uint32_t *app_numbers = calloc((size_t)crew->count + 1, sizeof(*app_numbers));
    if (app_numbers == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        app_numbers[i] = (uint32_t)(crew->members[i].program - work->programs);
    }
    if (!launch_work_mapping(work, mapping, sizeof(mapping))) {
        snprintf(mapping, sizeof(mapping), "(vector,(0,%u,1))", work->rank_count); /* nobody is taken for near */
    }
    int status = cw_pmi1_server_create(&(struct cw_pmi1_server_config){.client_count = crew->count,
                                                                       .job_size = work->rank_count,
                                                                       .universe_size = work->rank_count,
                                                                       .job = work->name,
                                                                       .process_mapping = mapping,
                                                                       .app_numbers = app_numbers},
                                       &crew->server);
    free(app_numbers);
    return status;
}

/* What the server knows of a rank, if it is news. */
static void client_report(struct launch_crew *crew, struct launch_member *member)
{
    uint32_t index = launch_crew_index(crew, member);
    int32_t value = (int32_t)cw_pmi1_server_state(crew->server, index) |
                    (cw_pmi1_server_waits(crew->server, index) ? LAUNCH_CLIENT_WAITS : 0);
    if (value != member->told) {
        member->told = value;
        launch_crew_report(crew, LAUNCH_CLIENT, member->rank, value, NULL, 0);
    }
}

static void pmi_close(struct launch_crew *crew, struct launch_member *member)
{
    launch_unwatch(crew->config.set, member->pmi);
    close(member->pmi);
    member->pmi = -1;
    if (member->handle >= 0 &&
        cw_pmi1_server_state(crew->server, launch_crew_index(crew, member)) == CW_PMI1_CLIENT_ACTIVE) {
        launch_crew_report(crew, LAUNCH_HANGUP, member->rank, 0, NULL, 0);
    }
}

/* Sends what it can; while something is left nothing is read from this rank. */
static void pmi_send(struct launch_crew *crew, struct launch_member *member)
{
    uint32_t index = launch_crew_index(crew, member);
    const char *bytes;
    size_t count;
    while (member->pmi >= 0 && (count = cw_pmi1_server_pending(crew->server, index, &bytes)) > 0) {
        ssize_t sent = send(member->pmi, bytes, count, MSG_NOSIGNAL);
        if (sent > 0) {
            cw_pmi1_server_sent(crew->server, index, (size_t)sent);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            pmi_close(crew, member);
        }
    }
    if (member->pmi < 0) {
        return;
    }
    bool blocked = cw_pmi1_server_pending(crew->server, index, &bytes) > 0;
    if (blocked != member->pmi_blocked) {
        member->pmi_blocked = blocked;
        launch_unwatch(crew->config.set, member->pmi);
        launch_watch(crew->config.set, member->pmi, blocked ? EPOLLOUT : EPOLLIN, LAUNCH_PMI, index);
    }
}

static void entry_write(void *context, const char *key, const char *value)
{
    struct launch_bytes *entries = context;
    (void)launch_put_text(entries, key); /* what there is no memory for, nobody finds */
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

/* Our part of a fence of the whole job. Whoever hears of a piece may add others' entries to the server at once: all of
 * ours are taken from it first. */
static void fence_report(struct launch_crew *crew)
{
    struct launch_bytes entries = {.start = NULL};
    cw_pmi1_server_fresh(crew->server, entry_write, &entries);
    do {
        size_t piece = piece_bytes(&entries);
        launch_crew_report(crew, LAUNCH_FENCE, crew->config.host, piece < launch_bytes_count(&entries),
                           launch_bytes_front(&entries), piece);
        launch_bytes_drop(&entries, piece);
    } while (launch_bytes_count(&entries) > 0);
    launch_bytes_dispose(&entries);
}

static void answers_send(struct launch_crew *crew)
{
    uint32_t index;
    while (cw_pmi1_server_next(crew->server, &index)) {
        pmi_send(crew, &crew->members[index]);
        client_report(crew, &crew->members[index]);
    }
}

void launch_crew_fence_release(struct launch_crew *crew, const struct launch_frame *order)
{
    struct launch_reader reader = launch_reader_of(order);
    while (reader.at < reader.end && !reader.failed) {
        const char *key = launch_get_text(&reader);
        const char *value = launch_get_text(&reader);
        if (key == NULL || value == NULL || cw_pmi1_server_add(crew->server, key, value) != CW_OK) {
            launch_crew_fail(crew, CW_LAUNCH_EXIT_MACHINE, "out of memory for the other ranks' addresses");
            return;
        }
    }
    if (order->value != 0) {
        return; /* more of it follows */
    }
    cw_pmi1_server_release(crew->server);
    answers_send(crew);
}

static void pmi_judge(struct launch_crew *crew)
{
    uint32_t index;
    int code;
    if (!crew->abort_told && cw_pmi1_server_aborted(crew->server, &index, &code)) {
        crew->abort_told = true;
        launch_crew_report(crew, LAUNCH_ABORT, crew->members[index].rank, code, NULL, 0);
    }
}

void launch_crew_pmi_take(struct launch_crew *crew, struct launch_member *member)
{
    char bytes[PMI_READ_BYTES];
    uint32_t index = launch_crew_index(crew, member);
    if (member->pmi_blocked) {
        pmi_send(crew, member);
    }
    if (member->pmi < 0 || member->pmi_blocked) {
        return;
    }
    bool was_held = cw_pmi1_server_is_held(crew->server);
    ssize_t got = recv(member->pmi, bytes, sizeof(bytes), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        pmi_close(crew, member);
    } else if (got > 0 && cw_pmi1_server_take(crew->server, index, bytes, (size_t)got) != CW_OK) {
        launch_crew_fail(crew, CW_LAUNCH_EXIT_FAILED, "rank %" PRIu32 " (process %d) %s", member->rank, member->process,
                         cw_pmi1_server_failure(crew->server));
        pmi_close(crew, member);
    }
    client_report(crew, member);
    answers_send(crew);
    pmi_judge(crew);
    if (!was_held && cw_pmi1_server_is_held(crew->server)) {
        fence_report(crew);
    }
}
