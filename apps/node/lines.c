#include "apps/node/lines.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/cli/cli.h"

/* A pipe that can be written to takes a line of up to PIPE_BUF bytes whole. */
static bool has_room(void)
{
    struct pollfd set = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&set, 1, 0) == 1 && (set.revents & POLLOUT) != 0;
}

void node_line(struct node_lines *lines, uint64_t now_ns, const char *what, const char *where)
{
    char before[64] = "";
    if (!node_budget_may(&lines->budget, now_ns, (NODE_LINES - 1) * NODE_LINE_NS) || !has_room()) {
        lines->left_out++;
        return;
    }
    if (lines->left_out > 0) {
        snprintf(before, sizeof(before), "%u lines like this were left out", lines->left_out);
    }
    node_budget_charge(&lines->budget, now_ns, NODE_LINE_NS);
    lines->left_out = 0;
    app_error(what, where, before[0] != '\0' ? before : NULL);
}
