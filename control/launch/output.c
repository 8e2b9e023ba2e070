#include "control/launch/private.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EVENTS = 64,
    PIPE_CHUNK = 4096, /* a pipe that is ready takes as much without waiting (PIPE_BUF) */
    BROKEN_PIPE_EXIT = 128 + SIGPIPE,
};

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
    launch_watch(job->set, job->output.set, EPOLLIN, LAUNCH_OUTPUTS, 0);
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
        launch_watch(job->output.set, at->outputs[i], EPOLLIN, i == 0 ? LAUNCH_OUT : LAUNCH_ERR, rank);
    }
}

/* ---- from the ranks ---- */

static void stream_close(struct launch_job *job, uint32_t rank, size_t index)
{
    struct launch_rank *at = &job->ranks[rank];
    launch_stream_end(&at->streams[index]);
    launch_unwatch(job->output.set, at->outputs[index]);
    close(at->outputs[index]);
    at->outputs[index] = -1;
}

/* True: there may be more at once. */
static bool stream_read(struct launch_job *job, uint32_t rank, size_t index)
{
    static char bytes[LAUNCH_READ_BYTES];
    struct launch_rank *at = &job->ranks[rank];
    ssize_t got = read(at->outputs[index], bytes, sizeof(bytes));
    if (got > 0) {
        if (launch_stream_take(&at->streams[index], bytes, (size_t)got) != 0) {
            launch_fail(job, CW_LAUNCH_EXIT_MACHINE, "out of memory: some output is lost");
        }
        return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        stream_close(job, rank, index);
    }
    return false;
}

static bool is_full(const struct launch_job *job)
{
    return launch_sink_pending(&job->output.sinks[0]) > LAUNCH_SINK_MAX ||
           launch_sink_pending(&job->output.sinks[1]) > LAUNCH_SINK_MAX;
}

void launch_output_take(struct launch_job *job)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(job->output.set, events, EVENTS, 0);
    for (int i = 0; i < count && !is_full(job); i++) {
        uint32_t rank = (uint32_t)events[i].data.u64;
        size_t index = events[i].data.u64 >> 32 == LAUNCH_OUT ? 0 : 1;
        if (job->ranks[rank].outputs[index] >= 0) {
            stream_read(job, rank, index);
        }
    }
    launch_output_flush(job);
}

/* ---- to the world ---- */

/* Nobody takes it any more. As a process would die by SIGPIPE, so does the job. */
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
            return false; /* somebody else's end of it was made non-blocking */
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
            launch_watch(job->set, sink_descriptor(index), EPOLLOUT, index == 0 ? LAUNCH_SINK_OUT : LAUNCH_SINK_ERR, 0);
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
    if (full && !output->paused) {
        launch_unwatch(job->set, output->set);
    } else if (!full && output->paused) {
        launch_watch(job->set, output->set, EPOLLIN, LAUNCH_OUTPUTS, 0);
    }
    output->paused = full;
}

void launch_output_say(struct launch_job *job, const char *format, ...)
{
    char text[LAUNCH_TEXT_BYTES];
    int used = snprintf(text, sizeof(text), "%s: ", job->config->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
    va_end(arguments);
    launch_sink_line(&job->output.sinks[job->output.joined ? 0 : 1], text);
    launch_output_flush(job);
}

/* ---- the end ---- */

/* Waits until what is to be written has been, somebody is in a hurry, or nobody reads. */
static void sinks_drain(struct launch_job *job)
{
    for (;;) {
        launch_output_flush(job);
        struct pollfd wait[3] = {{.fd = job->front, .events = POLLIN}};
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
            return; /* a signal, or the front's end: nobody waits for the rest */
        }
    }
}

void launch_output_finish(struct launch_job *job)
{
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        for (size_t i = 0; i < 2; i++) {
            while (job->ranks[rank].outputs[i] >= 0 && stream_read(job, rank, i)) {
                if (is_full(job)) {
                    sinks_drain(job);
                }
                if (is_full(job)) {
                    break; /* nobody waits for it */
                }
            }
            if (job->ranks[rank].outputs[i] >= 0) {
                stream_close(job, rank, i);
            }
        }
    }
    sinks_drain(job);
    launch_sink_dispose(&job->output.sinks[0]);
    launch_sink_dispose(&job->output.sinks[1]);
}
