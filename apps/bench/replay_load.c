/* Replay load: the files of all ranks, and what each receive gets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/replay.h"
#include "apps/cli/cli.h"
#include "apps/kernels/trace.h"

enum { PATH_BYTES = 4096 };

static const char record_again[] =
    "record it again: CAUSEWAY_TRACE=FOLDER, with build/apps/kernels/trace.so as LD_PRELOAD";

/* ---- files ---- */

/* What is wrong with the head of a file; NULL: nothing. */
static const char *head_check(const struct trace_head *head, uint64_t bytes, uint32_t rank, uint32_t ranks)
{
    static const char magic[sizeof(head->magic)] = TRACE_MAGIC;
    if (bytes < sizeof(*head) || memcmp(head->magic, magic, sizeof(magic)) != 0) {
        return "the file is no trace";
    }
    if (head->version != TRACE_VERSION) {
        return "the trace has another version";
    }
    if (head->ranks < 1 || head->ranks > TRACE_RANKS_MAX || head->zero != 0) {
        return "the trace is damaged: its head";
    }
    if (head->rank != rank || (ranks != 0 && head->ranks != ranks)) {
        return "the trace is of another rank or run";
    }
    return NULL;
}

/* Reads the file of a rank; the first one says how many there are. */
static int rank_read(struct replay *replay, uint32_t rank)
{
    char path[PATH_BYTES];
    struct trace_head head = {.ranks = 0};
    uint64_t bytes = 0;
    snprintf(path, sizeof(path), "%s/%u.trace", replay->folder, rank);
    uint8_t *file = app_file_read(path, UINT64_MAX, &bytes);
    if (file == NULL) {
        char text[160];
        snprintf(text, sizeof(text), "the trace of rank %u cannot be read: %s", rank, strerror(errno));
        app_error(text, path, record_again);
        return APP_EXIT_USAGE;
    }
    memcpy(&head, file, bytes < sizeof(head) ? bytes : sizeof(head));
    const char *wrong = head_check(&head, bytes, rank, replay->ranks);
    if (wrong != NULL) {
        free(file);
        app_error(wrong, path, record_again);
        return APP_EXIT_FAILURE;
    }
    if (replay->ranks == 0) {
        replay->rank = calloc(head.ranks, sizeof(*replay->rank));
        replay->pairs = calloc((size_t)head.ranks * head.ranks, sizeof(*replay->pairs));
        replay->ranks = head.ranks;
    }
    if (replay->rank == NULL || replay->pairs == NULL) {
        free(file);
        return app_error_status(CW_ERROR_MEMORY, "no memory for the trace", path);
    }
    replay->rank[rank].file = file;
    replay->rank[rank].file_bytes = bytes;
    return replay_read(replay, rank, path);
}

/* ---- receives ---- */

/* The first message with that tag that nobody has taken; NULL: there is none. `first`: those before are taken. */
static struct replay_message *message_find(const struct replay *replay, const struct replay_list *pair, uint32_t *first,
                                           int32_t tag)
{
    while (*first < pair->count && replay->messages[pair->numbers[*first]].is_taken) {
        (*first)++;
    }
    for (uint32_t i = *first; i < pair->count; i++) {
        struct replay_message *message = &replay->messages[pair->numbers[i]];
        if (!message->is_taken && message->tag == tag) {
            return message;
        }
    }
    return NULL;
}

static int mismatch(const struct replay *replay, uint32_t rank, const struct replay_step *step, const char *what)
{
    char path[PATH_BYTES], text[200];
    snprintf(path, sizeof(path), "%s/%u.trace", replay->folder, rank);
    snprintf(text, sizeof(text), "the traces do not belong together: rank %u waits for %llu bytes of rank %u, %s", rank,
             (unsigned long long)step->bytes, step->from, what);
    app_error(text, path, record_again);
    return APP_EXIT_FAILURE;
}

static int receives_match(struct replay *replay, uint32_t rank)
{
    uint32_t first[TRACE_RANKS_MAX] = {0};
    for (uint32_t i = 0; i < replay->rank[rank].count; i++) {
        struct replay_step *step = &replay->rank[rank].steps[i];
        if (step->kind != REPLAY_RECEIVE) {
            continue;
        }
        const struct replay_list *pair = &replay->pairs[step->from * replay->ranks + rank];
        struct replay_message *message = message_find(replay, pair, &first[step->from], step->tag);
        if (message == NULL) {
            return mismatch(replay, rank, step, "which does not send them");
        }
        if (message->bytes != step->bytes) {
            return mismatch(replay, rank, step, "which sends another number of them");
        }
        message->is_taken = true;
        step->message = (uint32_t)(message - replay->messages);
    }
    return APP_EXIT_SUCCESS;
}

/* ---- the order ---- */

/* Goes on with a rank as far as it comes. */
static bool rank_advance(const struct replay_rank *rank, uint32_t *at, uint8_t *is_sent)
{
    uint32_t before = *at;
    for (; *at < rank->count; (*at)++) {
        const struct replay_step *step = &rank->steps[*at];
        if (step->kind == REPLAY_RECEIVE && is_sent[step->message] == 0) {
            break;
        }
        if (step->kind == REPLAY_SEND) {
            is_sent[step->message] = 1;
        }
    }
    return *at > before;
}

/* Whether no rank waits for what is sent only after it has gone on. */
static int order_check(const struct replay *replay)
{
    uint32_t at[TRACE_RANKS_MAX] = {0};
    uint8_t *is_sent = calloc((size_t)replay->count + 1, 1);
    if (is_sent == NULL) {
        return app_error_status(CW_ERROR_MEMORY, "no memory for the traces", replay->folder);
    }
    for (bool moves = true; moves;) {
        moves = false;
        for (uint32_t rank = 0; rank < replay->ranks; rank++) {
            moves = rank_advance(&replay->rank[rank], &at[rank], is_sent) || moves;
        }
    }
    free(is_sent);
    for (uint32_t rank = 0; rank < replay->ranks; rank++) {
        if (at[rank] < replay->rank[rank].count) {
            return mismatch(replay, rank, &replay->rank[rank].steps[at[rank]], "which waits for it, too");
        }
    }
    return APP_EXIT_SUCCESS;
}

static void bytes_count(struct replay *replay)
{
    uint64_t out[TRACE_RANKS_MAX] = {0}, in[TRACE_RANKS_MAX] = {0};
    for (uint32_t i = 0; i < replay->count; i++) {
        out[replay->messages[i].from] += replay->messages[i].bytes;
        in[replay->messages[i].to] += replay->messages[i].bytes;
    }
    for (uint32_t rank = 0; rank < replay->ranks; rank++) {
        uint64_t most = out[rank] > in[rank] ? out[rank] : in[rank];
        replay->bytes_most = most > replay->bytes_most ? most : replay->bytes_most;
    }
}

int replay_load(struct replay *replay, const char *folder)
{
    *replay = (struct replay){.folder = folder};
    int code = rank_read(replay, 0);
    for (uint32_t rank = 1; rank < replay->ranks && code == APP_EXIT_SUCCESS; rank++) {
        code = rank_read(replay, rank);
    }
    for (uint32_t rank = 0; rank < replay->ranks && code == APP_EXIT_SUCCESS; rank++) {
        code = receives_match(replay, rank);
    }
    code = code == APP_EXIT_SUCCESS ? order_check(replay) : code;
    bytes_count(replay);
    return code;
}

void replay_dispose(struct replay *replay)
{
    for (uint32_t rank = 0; rank < replay->ranks && replay->rank != NULL; rank++) {
        free(replay->rank[rank].file);
        free(replay->rank[rank].steps);
    }
    for (uint32_t pair = 0; pair < replay->ranks * replay->ranks && replay->pairs != NULL; pair++) {
        free(replay->pairs[pair].numbers);
    }
    free(replay->rank);
    free(replay->pairs);
    free(replay->messages);
    *replay = (struct replay){.folder = NULL};
}
