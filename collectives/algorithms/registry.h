/* registry: the tables of algorithms, one a family, and how they are called. */
#pragma once

#include "collectives/algorithms/algorithms.h"
#include "collectives/algorithms/build.h"

struct cw_recipe;

/* The base of all ranks' schedules, computed once. */
struct cw_preparation {
    /* CW_OK or CW_ERROR_MEMORY. */
    int (*prepare)(const struct cw_problem *problem, const struct cw_parameters *parameters,
                   const struct cw_recipe *recipe, void **shared);
    void (*release)(void *shared);
};

struct cw_recipe {
    struct cw_algorithm about; /* first, so that a cw_algorithm of the registry is its recipe */
    void (*build)(struct cw_emit *emit, const struct cw_recipe *recipe);
    uint32_t variant;                         /* distinguishes the algorithms that share a function */
    const struct cw_preparation *preparation; /* NULL: nothing is shared */
};

extern const struct cw_recipe cw_recipes_bcast[];
extern const uint32_t cw_recipes_bcast_count;
extern const struct cw_recipe cw_recipes_clusters_bcast[];
extern const uint32_t cw_recipes_clusters_bcast_count;
extern const struct cw_recipe cw_recipes_overlapped_bcast[];
extern const uint32_t cw_recipes_overlapped_bcast_count;
extern const struct cw_recipe cw_recipes_scatter[];
extern const uint32_t cw_recipes_scatter_count;
extern const struct cw_recipe cw_recipes_gather[];
extern const uint32_t cw_recipes_gather_count;
extern const struct cw_recipe cw_recipes_allgather[];
extern const uint32_t cw_recipes_allgather_count;
extern const struct cw_recipe cw_recipes_concurrent[];
extern const uint32_t cw_recipes_concurrent_count;
extern const struct cw_recipe cw_recipes_alltoall[];
extern const uint32_t cw_recipes_alltoall_count;
extern const struct cw_recipe cw_recipes_clusters_alltoall[];
extern const uint32_t cw_recipes_clusters_alltoall_count;
extern const struct cw_recipe cw_recipes_phases[];
extern const uint32_t cw_recipes_phases_count;
extern const struct cw_recipe cw_recipes_reduce[];
extern const uint32_t cw_recipes_reduce_count;
extern const struct cw_recipe cw_recipes_clusters_allreduce[];
extern const uint32_t cw_recipes_clusters_allreduce_count;
extern const struct cw_recipe cw_recipes_overlapped_allreduce[];
extern const uint32_t cw_recipes_overlapped_allreduce_count;
extern const struct cw_recipe cw_recipes_reduce_scatter[];
extern const uint32_t cw_recipes_reduce_scatter_count;
extern const struct cw_recipe cw_recipes_scan[];
extern const uint32_t cw_recipes_scan_count;
extern const struct cw_recipe cw_recipes_barrier[];
extern const uint32_t cw_recipes_barrier_count;
extern const struct cw_recipe cw_recipes_hosts[];
extern const uint32_t cw_recipes_hosts_count;
