/* Our stdin is simply handed to the one rank that gets it, if that runs here. In these cases the launcher passes input
 * on: from a terminal, which a process group of its own may not read; input for all ranks; and input for a rank of
 * another host. It reads the next piece when all have consumed the last. */
#include "control/launch/private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

bool launch_input_is_shared(const struct launch_job *job, uint32_t self)
{
    int64_t wanted = job->config->stdin_rank;
    return wanted >= 0 && job->work.host_of[wanted] == self && !isatty(STDIN_FILENO);
}

/* Gives all ranks that read the next piece; none: the end. */
static void piece_send(struct launch_job *job, size_t count)
{
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        struct launch_rank *at = &job->ranks[rank];
        if (at->reads_input) {
            at->owes_input = count > 0;
            job->input.owed += count > 0;
            launch_tree_order(&job->tree, &(struct launch_frame){.type = LAUNCH_INPUT,
                                                                 .rank = rank,
                                                                 .bytes = job->input.bytes,
                                                                 .count = (uint32_t)count});
        }
    }
}

static void input_stop(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    if (input->watched) {
        launch_unwatch(job->set, STDIN_FILENO);
    }
    free(input->bytes);
    *input = (struct launch_input){.active = false};
}

/* Reads more input while no rank owes an acknowledgement, and stops when no rank reads. */
static void input_turn(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    bool any = false;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        any = any || job->ranks[rank].reads_input;
    }
    if (!any) {
        input_stop(job);
        return;
    }
    bool wanted = input->owed == 0;
    if (wanted && !input->watched && !input->always_ready) {
        input->watched = launch_watch(job->set, STDIN_FILENO, EPOLLIN, LAUNCH_STDIN, 0);
        input->always_ready = !input->watched;
    } else if (!wanted && input->watched) {
        launch_unwatch(job->set, STDIN_FILENO);
        input->watched = false;
    }
}

void launch_input_start(struct launch_job *job, uint32_t self)
{
    int64_t wanted = job->config->stdin_rank;
    if (wanted == CW_LAUNCH_STDIN_NONE || launch_input_is_shared(job, self)) {
        return;
    }
    job->input.bytes = malloc(LAUNCH_READ_BYTES);
    if (job->input.bytes == NULL) {
        launch_fail(job, CW_LAUNCH_EXIT_MACHINE, "no memory for the standard input");
        return;
    }
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        job->ranks[rank].reads_input = wanted == CW_LAUNCH_STDIN_ALL || wanted == (int64_t)rank;
    }
    job->input.active = true;
    input_turn(job);
}

static void owes_no_more(struct launch_job *job, struct launch_rank *rank)
{
    job->input.owed -= rank->owes_input;
    rank->owes_input = false;
}

void launch_input_acknowledge(struct launch_job *job, const struct launch_frame *frame)
{
    struct launch_rank *at = &job->ranks[frame->rank];
    if (job->input.active) {
        owes_no_more(job, at);
        at->reads_input = at->reads_input && frame->value == 0;
    }
}

void launch_input_drop(struct launch_job *job, uint32_t rank)
{
    launch_input_acknowledge(job, &(struct launch_frame){.rank = rank, .value = 1});
}

void launch_input_read(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    if (!input->active || input->owed > 0) {
        return;
    }
    ssize_t got = read(STDIN_FILENO, input->bytes, LAUNCH_READ_BYTES);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    piece_send(job, got > 0 ? (size_t)got : 0);
    if (got <= 0) { /* EIO, too: a terminal that another job has */
        input_stop(job);
    } else {
        input_turn(job);
    }
}

void launch_input_turn(struct launch_job *job)
{
    if (job->input.active) {
        input_turn(job);
    }
}
