/* The report of `causeway node status` about a running node: its NIC, and the traffic of each lease. */
#pragma once

#include <stdbool.h>

struct node_status_options {
    bool json;       /* a line each lease */
    bool prometheus; /* one page, text format 0.0.4 */
};

/* Queries the node at a socket; a user gets the own leases, root all. One of enum app_exit. */
int node_status(const char *path, const struct node_status_options *options);
