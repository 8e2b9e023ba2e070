#include "control/launch/private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum {
    PIPE_CHUNK = 4096, /* a pipe that is ready takes as much without waiting (PIPE_BUF) */
    BROKEN_PIPE_EXIT = 128 + SIGPIPE,
};

/* The beginning of a line is a prompt if nothing has followed it for so long. */
#define PROMPT_NS 50000000ull

static int sink_descriptor(size_t index)
{
    return index == 0 ? STDOUT_FILENO : STDERR_FILENO;
}

void launch_output_open(struct launch_job *job)
{
    struct stat out;
    struct stat err;
    job->output.joined = fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
                         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

void launch_output_add(struct launch_job *job, uint32_t rank)
{
    struct launch_rank *at = &job->ranks[rank];
    snprintf(at->label, sizeof(at->label), "[%u] ", rank);
    for (size_t i = 0; i < 2; i++) {
        at->streams[i] = (struct launch_stream){
            .sink = &job->output.sinks[job->output.joined ? 0 : i],
            .label = job->config->label ? at->label : NULL,
        };
    }
}

/* ---- from the ranks ---- */

static bool is_full(const struct launch_job *job)
{
    return launch_sink_pending(&job->output.sinks[0]) > LAUNCH_SINK_MAX ||
           launch_sink_pending(&job->output.sinks[1]) > LAUNCH_SINK_MAX;
}

void launch_output_receive(struct launch_job *job, const struct launch_frame *frame)
{
    struct launch_stream *stream = &job->ranks[frame->rank].streams[frame->value == 0 ? 0 : 1];
    uint64_t now_ns = cw_clock_ns();
    if (stream->sink == NULL) {
        return;
    }
    job->ranks[frame->rank].spoke_ns = now_ns;
    if (job->output.prompt_ns == 0 && job->input.active && job->ranks[frame->rank].reads_input) {
        job->output.prompt_ns = now_ns + PROMPT_NS;
    }
    if (frame->count == 0) {
        launch_stream_end(stream);
    } else if (launch_stream_append(stream, frame->bytes, frame->count) != CW_OK) {
        launch_fail(job, CW_LAUNCH_EXIT_MACHINE, "out of memory: some output is lost");
    }
    if (is_full(job)) {
        launch_output_flush(job);
    }
}

uint64_t launch_output_turn(struct launch_job *job, uint64_t now_ns)
{
    struct launch_output *output = &job->output;
    if (output->prompt_ns == 0 || now_ns < output->prompt_ns || !job->input.active) {
        output->prompt_ns = job->input.active ? output->prompt_ns : 0;
        return output->prompt_ns == 0 ? UINT64_MAX : output->prompt_ns;
    }
    output->prompt_ns = 0;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        struct launch_rank *at = &job->ranks[rank];
        for (size_t i = 0; i < 2; i++) {
            if (at->streams[i].held_bytes == 0 || !at->reads_input) {
                continue;
            }
            if (now_ns - at->spoke_ns >= PROMPT_NS && launch_stream_show(&at->streams[i]) != CW_OK) {
                launch_fail(job, CW_LAUNCH_EXIT_MACHINE, "out of memory: some output is lost");
            }
            if (at->streams[i].held_bytes > 0) { /* too soon, or another one's line is open */
                output->prompt_ns = now_ns + PROMPT_NS;
            }
        }
    }
    launch_output_flush(job);
    return output->prompt_ns == 0 ? UINT64_MAX : output->prompt_ns;
}

/* ---- to the world ---- */

/* The reader has closed it. As a process would die by SIGPIPE, so does the job. */
static void sink_close(struct launch_job *job, size_t index, int error)
{
    struct launch_output *output = &job->output;
    output->closed[index] = true;
    launch_sink_written(&output->sinks[index], launch_sink_pending(&output->sinks[index]));
    if (error == EPIPE) {
        launch_fail(job, BROKEN_PIPE_EXIT, NULL);
    } else {
        launch_fail(job, CW_LAUNCH_EXIT_MACHINE, "cannot write to %s: %s", index == 0 ? "stdout" : "stderr",
                    strerror(error));
    }
}

/* Writes until it would have to wait. True: it is done. */
static bool sink_write(struct launch_job *job, size_t index)
{
    struct launch_sink *sink = &job->output.sinks[index];
    int descriptor = sink_descriptor(index);
    size_t left;
    while ((left = launch_sink_pending(sink)) > 0) {
        struct pollfd ready = {.fd = descriptor, .events = POLLOUT};
        if (poll(&ready, 1, 0) == 0) {
            return false;
        }
        ssize_t done = write(descriptor, sink->bytes + sink->begin, left < PIPE_CHUNK ? left : PIPE_CHUNK);
        if (done > 0) {
            launch_sink_written(sink, (size_t)done);
        } else if (errno == EAGAIN) {
            return false; /* another process made it non-blocking */
        } else if (errno != EINTR) {
            sink_close(job, index, errno);
        }
    }
    return true;
}

static void sink_flush(struct launch_job *job, size_t index)
{
    struct launch_output *output = &job->output;
    bool done = true;
    if (output->closed[index]) {
        launch_sink_written(&output->sinks[index], launch_sink_pending(&output->sinks[index]));
    } else {
        done = sink_write(job, index);
    }
    if (!done && !output->watched[index]) {
        output->watched[index] =
            launch_watch(job->set, sink_descriptor(index), EPOLLOUT, index == 0 ? LAUNCH_STDOUT : LAUNCH_STDERR, 0);
    } else if (done && output->watched[index]) {
        launch_unwatch(job->set, sink_descriptor(index));
        output->watched[index] = false;
    }
}

void launch_output_flush(struct launch_job *job)
{
    struct launch_output *output = &job->output;
    sink_flush(job, 0);
    sink_flush(job, 1);
    bool full = is_full(job);
    if (full != output->held) {
        output->held = full;
        launch_order_all(job, LAUNCH_HOLD, full);
    }
}

/* ---- the end ---- */

/* Waits until all output is written, a signal requires haste, or there is no reader. */
static void sinks_drain(struct launch_job *job)
{
    for (;;) {
        launch_output_flush(job);
        struct pollfd wait[3] = {{.fd = job->supervisor, .events = POLLIN}};
        nfds_t count = 1;
        for (size_t i = 0; i < 2; i++) {
            if (launch_sink_pending(&job->output.sinks[i]) > 0) {
                wait[count++] = (struct pollfd){.fd = sink_descriptor(i), .events = POLLOUT};
            }
        }
        if (count == 1 || job->hurried) {
            return;
        }
        if (poll(wait, count, -1) > 0 && wait[0].revents != 0) {
            return; /* a signal, or the supervisor's end: the rest is dropped */
        }
    }
}

bool launch_output_relieve(void *context)
{
    struct launch_job *job = context;
    if (is_full(job)) {
        sinks_drain(job);
    }
    return !is_full(job); /* otherwise it is dropped */
}

void launch_output_finish(struct launch_job *job)
{
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        for (size_t i = 0; i < 2; i++) {
            if (job->ranks[rank].streams[i].sink != NULL) {
                launch_stream_end(&job->ranks[rank].streams[i]); /* those of hosts that were lost */
            }
        }
    }
    sinks_drain(job);
    launch_sink_dispose(&job->output.sinks[0]);
    launch_sink_dispose(&job->output.sinks[1]);
}
