/* tree: below a process that serves a job are its own local ranks, and links to agents on other hosts, each of which
 * has a tree of its own. An order goes to the process with the rank, or to all; reports come up as if all ranks were
 * here.
 *
 * From LAUNCH_FANOUT hosts on, agents start agents: no process has more links.
 *
 * Order of calls: launch_tree_open; { launch_tree_order | launch_tree_event | launch_tree_turn }*; LAUNCH_END as an
 * order, until launch_tree_is_done; launch_tree_close. Thread: one at a time. */
#pragma once

#include "control/launch/link.h"
#include "control/launch/local.h"

struct launch_tree_config {
    const struct launch_work *work;
    const uint32_t *hosts; /* that lie below; copied */
    uint32_t host_count;
    bool has_own;                     /* the first of them is this one */
    struct launch_local_config local; /* `work`, `host` and `up` are filled in */
    struct launch_receiver up;
};

struct launch_tree {
    struct launch_tree_config config;
    struct launch_local local;
    bool has_local;
    struct launch_link *links;
    uint32_t link_count;
    uint32_t *link_of;           /* per host: its link, or UINT32_MAX */
    uint32_t fenced;             /* local ranks and links whose ranks all wait */
    uint32_t looked;             /* number of answers to LAUNCH_LOOK */
    struct launch_bytes entries; /* of the fence */
};

/* Starts agents, then the own ranks. CW_OK; CW_ERROR_MEMORY, CW_ERROR_SYSTEM: nothing was started. *all: all own
 * ranks were. */
int launch_tree_open(struct launch_tree *tree, const struct launch_tree_config *config, bool *all);
void launch_tree_order(struct launch_tree *tree, const struct launch_frame *order);
void launch_tree_event(struct launch_tree *tree, enum launch_source source, uint32_t index);
/* Handles timeouts; returns when it is due again, at the latest. */
uint64_t launch_tree_turn(struct launch_tree *tree, uint64_t now_ns);
/* Says to the agents that this process is there, while it does nothing else for them: when it is due. */
void launch_tree_ping(struct launch_tree *tree);

/* Notifies the agents that the user is about to stop this process for any time, or continues it. */
void launch_tree_pause(struct launch_tree *tree, bool stops);

/* Whether the ranks of a host can still be reached. */
bool launch_tree_reaches(const struct launch_tree *tree, uint32_t host);
/* Whether no agent has processes left, or can be reached. */
bool launch_tree_is_done(const struct launch_tree *tree);
/* The same for the own local ranks, at once: launch_local_end. */
void launch_tree_end_own(struct launch_tree *tree);
void launch_tree_close(struct launch_tree *tree);
