/* Shared by the tests in virtual time: counts from the environment, hosts that must come to be. */
#pragma once

#include "dataplane/wire/sealed.h"
#include "dataplane/wire/wire.h"
#include "tests/simulation/hosts.h"
#include "tests/simulation/stream.h"
#include "tests/test.h"

static const uint64_t SIMULATION_US = 1000;
static const uint64_t SIMULATION_MS = 1000000;

/* A number below `below`, from a state that begins with the seed. */
static inline uint64_t simulation_drawn(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

static inline void simulation_hosts(struct sim_hosts *hosts, const struct sim_hosts_config *config)
{
    char error[200] = "";
    assert_true_msg(sim_hosts_create(hosts, config, error, sizeof(error)) == CW_OK, "%s", error);
}

static inline uint64_t simulation_counted(const struct sim_hosts *hosts, uint32_t node, enum cw_counter counter)
{
    return cw_endpoint_counter(hosts->list[node].endpoint, counter);
}

/* The data's share of a full packet on the line, at an MTU of 1500. */
static inline double simulation_payload_share(bool sealed)
{
    uint32_t part = cw_wire_part_bytes(1500);
    double line = CW_WIRE_OVERHEAD_BYTES + (double)sizeof(struct cw_wire_part) + part + CW_ETHERNET_OVERHEAD_BYTES +
                  (sealed ? CW_WIRE_MAC_BYTES : 0);
    return part / line;
}
