/* link: a connection to the agent on another host: the standard files of the command that started it.
 *
 * Orders go down, reports come up, as frames after the agent's first line; output of a shell before that line is kept
 * for error messages. Both sides send LAUNCH_PING when they have had nothing to send for a while, so that silence means
 * that host, network or agent have stopped.
 *
 * Invariants
 *   - A link that ends before LAUNCH_DONE, answers nonsense, or is silent for too long reports LAUNCH_FAIL once, with
 *     the host and the attempt; afterwards it accepts and reports nothing.
 *   - What the command writes to stderr is reported by lines (LAUNCH_SAY), once the agent is there.
 *
 * Order of calls: launch_link_open; { launch_link_send | launch_link_event | launch_link_listen | launch_link_turn }*;
 *   launch_link_close.
 * Thread: one at a time. */
#pragma once

#include <sys/types.h>

#include "control/launch/events.h"
#include "control/launch/work.h"

#define LAUNCH_AGENT_LINE "causeway-agent " CW_VERSION

struct launch_link_config {
    const struct launch_work *work;
    const uint32_t *hosts; /* the agent's own first, then those whose agents it starts; copied */
    uint32_t host_count;
    struct launch_receiver up;
    int set; /* the epoll set that its descriptors join */
    uint32_t index;
};

enum launch_link_state {
    LAUNCH_LINK_ASKED, /* nothing of the agent yet */
    LAUNCH_LINK_OPEN,
    LAUNCH_LINK_DONE, /* no process is left there */
    LAUNCH_LINK_FAILED,
};

struct launch_link {
    struct launch_link_config config;
    uint32_t *hosts;
    enum launch_link_state state;
    pid_t process; /* the command that starts the agent; 0: none */
    int handle;    /* its pidfd */
    int in, out, errors;
    bool out_blocked;
    struct launch_bytes received, waiting, said; /* from `in`; to `out`; from `errors`, and before the agent's line */
    size_t noise;                                /* bytes before that line */
    uint64_t opened_ns, heard_ns, sent_ns;
    uint64_t looked_ns; /* the last turn; 0: none yet */
    uint64_t bound_ns;  /* of silence; 0: forever */
    bool is_over;       /* the job: its end is no failure any more */
};

/* Starts the command, and sends LAUNCH_START. A link that cannot be opened reports so like any other failure. */
void launch_link_open(struct launch_link *link, const struct launch_link_config *config);
void launch_link_send(struct launch_link *link, const struct launch_frame *order);
void launch_link_event(struct launch_link *link, enum launch_source source);
/* Sends a ping to the agent, if nothing was sent for a while. */
void launch_link_ping(struct launch_link *link, uint64_t now_ns);
/* Silence counts from now on: the link was not read before. */
void launch_link_listen(struct launch_link *link);
/* Handles timeouts; returns when it is due again, at the latest. */
uint64_t launch_link_turn(struct launch_link *link, uint64_t now_ns);
/* Releases the command, which the caller sweeps. */
void launch_link_close(struct launch_link *link);

/* ---- link_command.c ---- */

/* Starts the command that starts the agent: process, in, out and errors become the link's. False: errno. */
bool launch_link_command(struct launch_link *link, const char *host);

/* ---- both ends ---- */

/* The pause after which a side that has nothing to send sends LAUNCH_PING, if silence is bounded. */
uint64_t launch_ping_ns(uint64_t bound_ns);
