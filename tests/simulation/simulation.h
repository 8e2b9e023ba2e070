/* What the tests in virtual time share: counts from the environment, hosts that must come to be. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "testbed/hosts.h"
#include "testbed/stream.h"

static const uint64_t SIMULATION_US = 1000;
static const uint64_t SIMULATION_MS = 1000000;

/* A number from the environment; `otherwise` if it is not set or not a number. */
static inline uint64_t simulation_count(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);
    return text == NULL || end == text || *end != 0 || value == 0 ? otherwise : value;
}

/* A number below `below`, from a state that begins with the seed. */
static inline uint64_t simulation_drawn(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

static inline void simulation_hosts(struct sim_hosts *hosts, const struct sim_hosts_config *config)
{
    char error[200] = "";
    if (sim_hosts_create(hosts, config, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
}

#endif
