#include "apps/node/lines.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/cli/cli.h"

/* A pipe with room takes a line of up to PIPE_BUF bytes without waiting. */
static bool has_room(void)
{
    struct pollfd set = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&set, 1, 0) == 1 && (set.revents & POLLOUT) != 0;
}

void node_line(struct node_lines *lines, uint64_t now_ns, const char *what, const char *where)
{
    char before[64] = "";
    if (!node_budget_may(&lines->budget, now_ns, (NODE_LINES - 1) * NODE_LINE_NS) || !has_room()) {
        lines->omitted++;
        return;
    }
    if (lines->omitted > 0) {
        snprintf(before, sizeof(before), "%u similar lines were omitted", lines->omitted);
    }
    node_budget_charge(&lines->budget, now_ns, NODE_LINE_NS);
    lines->omitted = 0;
    app_error(what, where, before[0] != '\0' ? before : NULL);
}
