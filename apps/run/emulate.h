/* Run emulate: the hosts of `causeway run --emulate`: the network between the ranks, and their description of it.
 *
 *    HOSTS,memif[,rate=R][,delay=T][,queue=B][,loss=SHARE]
 *                                            a `causeway switch` with these options; needs no privilege
 *    topology=FILE,memif                     the same with clusters, hosts and links of a file
 *                                            (control/topology/topology.h); the ranks get its whole name as
 *                                            CAUSEWAY_TOPOLOGY; ranks are on its hosts in order, in equal blocks
 *
 * Behind each: multicast=snoop|flood|drop, the behaviour of the switch (enum cw_wire_multicast); stats=FILE, statistics
 * of links in each millisecond (switch/stats.h); stats-interval=TIME for another interval. */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "apps/run/switch.h"
#include "control/job/wire.h"

struct run_emulation {
    struct run_switch net;
};

/* Starts the hosts of `text` and sets the ranks' environment. Signals of `handled`, which are blocked, end the start.
 * 0, or the exit code of the command, with the reason reported; run_emulate_stop is due in both cases. */
int run_emulate_start(struct run_emulation *emulation, const char *text, uint32_t ranks, const sigset_t *handled);
/* Ends the switch and removes its folder. 0, or the switch's exit code: it has reported the reason. */
int run_emulate_stop(struct run_emulation *emulation);
