/* lines: the lines that a node writes to standard error while it serves clients.
 *
 * Invariants
 *  - A reader of standard error that is slow, or absent, does not make the node wait: a line without room is omitted.
 *    (Where another process writes to the same pipe, that may fill it in between.)
 *  - Each user, and each part of the node, may cause NODE_LINES lines, and one more every NODE_LINE_NS. The next line
 *    gives the number of omitted lines.
 *
 * Thread: one, that of serve.h. */
#pragma once

#include <stdint.h>

#include "apps/node/share.h"

enum { NODE_LINES = 10 };
#define NODE_LINE_NS 6000000000ull

struct node_lines {
    struct node_budget budget;
    uint32_t omitted;
};

/* Writes "causeway node: WHAT: WHERE", or counts the line as omitted. `lines` is zeroed at first. */
void node_line(struct node_lines *lines, uint64_t now_ns, const char *what, const char *where);
