/* The standard files of the local ranks. Our stdin is simply handed to the one rank that gets it, if it is of this
 * host; a terminal's, from which a process group of its own may not read, input for all ranks, and for ranks of other
 * hosts comes by LAUNCH_INPUT. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "control/launch/local.h"
#include "dataplane/status.h"

enum { EVENTS = 64, READ_BYTES = 65536 };

/* ---- stdin ---- */

static bool is_target(const struct launch_local *local, const struct launch_member *member)
{
    int64_t wanted = local->config.work->stdin_rank;
    return wanted == CW_LAUNCH_STDIN_ALL || wanted == (int64_t)member->rank;
}

int launch_local_input_for(struct launch_local *local, struct launch_member *member, bool *own)
{
    int ends[2];
    if (is_target(local, member) && local->config.shares_input) {
        *own = false;
        return STDIN_FILENO;
    }
    *own = true;
    if (!is_target(local, member)) {
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    member->input = ends[1];
    return ends[0];
}

static void input_close(struct launch_member *member)
{
    close(member->input); /* leaves the epoll set by that */
    member->input = -1;
    launch_bytes_dispose(&member->pending);
}

void launch_local_input_turn(struct launch_local *local, struct launch_member *member)
{
    while (member->input >= 0 && launch_bytes_count(&member->pending) > 0) {
        ssize_t done = write(member->input, launch_bytes_front(&member->pending), launch_bytes_count(&member->pending));
        if (done > 0) {
            launch_bytes_drop(&member->pending, (size_t)done);
        } else if (errno == EAGAIN) {
            launch_watch(local->config.set, member->input, EPOLLOUT, LAUNCH_MEMBER_INPUT,
                         (uint32_t)(member - local->members));
            return;
        } else if (errno != EINTR) {
            input_close(member); /* it reads no more */
        }
    }
    if (member->input >= 0 && !member->input_ends) {
        launch_unwatch(local->config.set, member->input); /* if it was there */
        launch_local_report(local, LAUNCH_TAKEN, member->rank, 0, NULL, 0);
    } else if (member->input >= 0) {
        input_close(member);
    } else if (!member->input_ends) {
        launch_local_report(local, LAUNCH_TAKEN, member->rank, 1, NULL, 0);
    }
}

void launch_local_input(struct launch_local *local, struct launch_member *member, const struct launch_frame *order)
{
    if (member->input >= 0 && launch_bytes_add(&member->pending, order->bytes, order->count) != CW_OK) {
        launch_local_fail(local, CW_LAUNCH_EXIT_MACHINE, "no memory for the standard input");
        input_close(member);
    }
    member->input_ends = order->count == 0;
    launch_local_input_turn(local, member);
}

/* ---- stdout, stderr ---- */

void launch_local_output_add(struct launch_local *local, uint32_t index)
{
    for (uint32_t i = 0; i < 2; i++) {
        launch_watch(local->outputs, local->members[index].outputs[i], EPOLLIN, i == 0 ? LAUNCH_STDOUT : LAUNCH_STDERR,
                     index);
    }
}

static void output_close(struct launch_local *local, struct launch_member *member, int stream)
{
    launch_unwatch(local->outputs, member->outputs[stream]);
    close(member->outputs[stream]);
    member->outputs[stream] = -1;
    launch_local_report(local, LAUNCH_OUTPUT, member->rank, stream, NULL, 0);
}

/* True: there may be more at once. */
static bool output_read(struct launch_local *local, struct launch_member *member, int stream)
{
    static char bytes[READ_BYTES];
    ssize_t got = read(member->outputs[stream], bytes, sizeof(bytes));
    if (got > 0) {
        launch_local_report(local, LAUNCH_OUTPUT, member->rank, stream, bytes, (size_t)got);
        return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        output_close(local, member, stream);
    }
    return false;
}

void launch_local_output_read(struct launch_local *local)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(local->outputs, events, EVENTS, 0);
    for (int i = 0; i < count && !local->held; i++) {
        struct launch_member *member = &local->members[(uint32_t)events[i].data.u64];
        int stream = events[i].data.u64 >> 32 == LAUNCH_STDOUT ? 0 : 1;
        if (member->outputs[stream] >= 0) {
            output_read(local, member, stream);
        }
    }
}

void launch_local_output_hold(struct launch_local *local, bool held)
{
    if (held && !local->held) {
        launch_unwatch(local->config.set, local->outputs);
    } else if (!held && local->held) {
        launch_watch(local->config.set, local->outputs, EPOLLIN, LAUNCH_OUTPUTS, 0);
    }
    local->held = held;
}

void launch_local_output_end(struct launch_local *local)
{
    for (uint32_t i = 0; i < local->count; i++) {
        struct launch_member *member = &local->members[i];
        for (int stream = 0; stream < 2; stream++) {
            while (member->outputs[stream] >= 0 && output_read(local, member, stream) &&
                   local->config.relieve(local->config.context)) {
            }
            if (member->outputs[stream] >= 0) {
                output_close(local, member, stream);
            }
        }
    }
}
