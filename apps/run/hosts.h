/* Run hosts: where the ranks of `causeway run` are to run: --hosts, --hostfile, or the allocation of a batch system. */
#pragma once

#include "apps/run/options.h"

/* Fills the launcher's configuration with hosts, if somebody names any, and with as many ranks as they have slots, if
 * nobody says how many. 0, or an exit code after reporting. run_hosts_dispose is due in each case. */
int run_hosts_take(struct run_options *options);
void run_hosts_dispose(struct run_options *options);
