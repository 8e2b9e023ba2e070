/* Run emulate: the hosts of `causeway run --emulate`: a switch between the ranks, and what they must know of it. */
#ifndef RUN_EMULATE_H
#define RUN_EMULATE_H

#include <stdint.h>

struct run_emulation {
    char folder[64]; /* of the switch's socket; empty: none */
    int process;     /* of the switch; 0: none */
    int output;
};

/* Starts what "HOSTS,memif" asks for and tells the ranks by the environment. 0, or the exit code of the command, the reason told. */
int run_emulate_start(struct run_emulation *emulation, const char *text, uint32_t ranks);
/* Ends the switch and removes its folder. A zeroed one is allowed. */
void run_emulate_stop(struct run_emulation *emulation);

#endif
