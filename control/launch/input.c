/* Our stdin is simply handed to the one rank that gets it. Only a terminal, from which a process group of its own may
 * not read, and input for all ranks are passed on by us. */
#include "control/launch/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool is_target(const struct launch_job *job, uint32_t rank)
{
    int64_t wanted = job->config->stdin_rank;
    return wanted == CW_LAUNCH_STDIN_ALL || wanted == (int64_t)rank;
}

int launch_input_for(struct launch_job *job, uint32_t rank, bool *own)
{
    int ends[2];
    if (is_target(job, rank) && job->config->stdin_rank != CW_LAUNCH_STDIN_ALL && !isatty(STDIN_FILENO)) {
        *own = false;
        return STDIN_FILENO;
    }
    *own = true;
    if (!is_target(job, rank)) {
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    job->ranks[rank].input = ends[1];
    job->input.active = true;
    return ends[0];
}

void launch_input_start(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    if (!input->active) {
        return;
    }
    input->bytes = malloc(LAUNCH_READ_BYTES);
    if (input->bytes == NULL) {
        launch_fail(job, CW_LAUNCH_EXIT_MACHINE, "no memory for the standard input");
        input->active = false;
        return;
    }
    launch_input_turn(job);
}

static void target_close(struct launch_rank *rank)
{
    close(rank->input); /* leaves the epoll set by that */
    rank->input = -1;
}

/* Gives a rank what it can take. True: it has all there is. */
static bool target_write(struct launch_job *job, uint32_t rank)
{
    struct launch_rank *at = &job->ranks[rank];
    while (at->input_done < job->input.count) {
        ssize_t done = write(at->input, job->input.bytes + at->input_done, job->input.count - at->input_done);
        if (done > 0) {
            at->input_done += (size_t)done;
        } else if (errno == EAGAIN) {
            launch_watch(job->set, at->input, EPOLLOUT, LAUNCH_INPUT_RANK, rank);
            return false;
        } else if (errno != EINTR) {
            target_close(at); /* it reads no more */
            return true;
        }
    }
    launch_unwatch(job->set, at->input); /* if it was there */
    return true;
}

/* True: all ranks that still read have all there is. */
static bool targets_write(struct launch_job *job, bool *any)
{
    bool done = true;
    *any = false;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        if (job->ranks[rank].input >= 0) {
            done = target_write(job, rank) && done;
            *any = *any || job->ranks[rank].input >= 0;
        }
    }
    return done;
}

static void input_stop(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    if (input->watched) {
        launch_unwatch(job->set, STDIN_FILENO);
    }
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        if (job->ranks[rank].input >= 0) {
            target_close(&job->ranks[rank]);
        }
    }
    free(input->bytes);
    *input = (struct launch_input){.active = false};
}

/* False: it has come to its end. */
static bool input_read(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    ssize_t got = read(STDIN_FILENO, input->bytes, LAUNCH_READ_BYTES);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        return false; /* EIO, too: a terminal that another job has */
    }
    input->count = got > 0 ? (size_t)got : 0;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        job->ranks[rank].input_done = 0;
    }
    return true;
}

/* Waits for more input, or no longer. */
static void input_watch(struct launch_input *input, struct launch_job *job, bool wanted)
{
    if (wanted && !input->watched && !input->always_ready) {
        input->watched = launch_watch(job->set, STDIN_FILENO, EPOLLIN, LAUNCH_INPUT, 0);
        input->always_ready = !input->watched;
    } else if (!wanted && input->watched) {
        launch_unwatch(job->set, STDIN_FILENO);
        input->watched = false;
    }
}

void launch_input_turn(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    bool any = false;
    if (!input->active) {
        return;
    }
    bool done = targets_write(job, &any);
    if (!any) {
        input_stop(job);
        return;
    }
    if (!done) {
        input_watch(input, job, false);
        return;
    }
    input->count = 0;
    input_watch(input, job, true);
}

void launch_input_take(struct launch_job *job)
{
    struct launch_input *input = &job->input;
    if (!input->active || input->count > 0) {
        return;
    }
    if (!input_read(job)) {
        input_stop(job);
        return;
    }
    launch_input_turn(job);
}
