/* lines: what a node that serves says on standard error.
 *
 * Invariants
 *  - Nobody who reads them slowly, or not at all, makes the node wait: a line for which there is no room now is left out.
 *  - Each sayer, which is a user, or a part of the node, gets NODE_LINES of them, and one more every NODE_LINE_NS. A line says how
 *    many were left out before it.
 *
 * Thread: one, that of serve.h. */
#pragma once

#include <stdint.h>

#include "apps/node/share.h"

enum { NODE_LINES = 10 };
#define NODE_LINE_NS 6000000000ull

struct node_lines {
    struct node_budget budget;
    uint32_t left_out;
};

/* Says "causeway node: WHAT: WHERE", or counts the line. `lines` begins zeroed. */
void node_line(struct node_lines *lines, uint64_t now_ns, const char *what, const char *where);
