/* plogp noise: whether a measurement is the path's own, or disturbed by other programs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/choose/measured.h"

/* Processor times of the machine, and of the children of this process that it has waited for. */
struct plogp_machine {
    double total_s; /* 0: /proc/stat cannot be read */
    double busy_s;
    double own_s;
};

struct plogp_machine plogp_machine_look(void);

/* The share of all processors that others had from one look to the next, 0 .. 1. */
double plogp_machine_others(const struct plogp_machine *before, const struct plogp_machine *after);

/* Whether measured parameters are the path's own: `noise` by plogp/arithmetic.h, `others` as above. */
bool plogp_is_quiet(double noise, double others);

/* Reports the problem, and its consequence. */
void plogp_noise_report(enum cw_measured_path path, uint32_t ranks, double noise, double others, const char *what_now);
