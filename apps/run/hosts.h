/* Run hosts: where the ranks of `causeway run` are to run: --hosts, --hostfile, or the allocation of a batch system. */
#pragma once

#include "apps/run/options.h"

/* Fills the launcher's configuration with hosts, if an option names any, and with as many ranks as they have slots, if
 * no option gives the number. 0, or an exit code after reporting. run_hosts_dispose is due in each case. */
int run_hosts_apply(struct run_options *options);
void run_hosts_dispose(struct run_options *options);
