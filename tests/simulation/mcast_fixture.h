/* Mcast fixture: the world of the test that runs. A test makes it once or more often; each time, and after the test,
 * the one before ends. */
#pragma once

#include "tests/simulation/mcast_world.h"

static struct mcast_world world;

static inline int world_end(void **state)
{
    mcast_world_destroy(&world);
    return 0;
}

static inline void world_make(const struct mcast_world_config *config)
{
    mcast_world_destroy(&world);
    mcast_world_create(&world, config);
}

static inline struct cw_mcast_counters member_counters(uint32_t member)
{
    return cw_mcast_counters(world.members[member].mcast);
}

/* As TESTS_RUN (tests/test.h). */
#define WORLD_TESTS_RUN(...) TESTS_RUN_EACH(NULL, world_end, __VA_ARGS__)
