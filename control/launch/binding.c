#include "control/launch/binding.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {"none", "core", "hwthread", "numa"};

bool launch_binding_knows(const char *word)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool refuse(char *error, size_t error_bytes, const char *text)
{
    snprintf(error, error_bytes, "%s", text);
    return false;
}

/* The processors of an object that this process may use; false: none. */
static bool own_processors(hwloc_topology_t topology, hwloc_obj_t object, const cpu_set_t *allowed, cpu_set_t *own)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    (void)hwloc_cpuset_to_glibc_sched_affinity(topology, object->cpuset, &all, sizeof(all));
    CPU_AND(own, &all, allowed);
    return CPU_COUNT(own) > 0;
}

/* The `number`th object of a type inside another one's processors, of those that this process may use. */
static bool object_find(hwloc_topology_t topology, hwloc_obj_type_t type, const cpu_set_t *within, uint32_t number,
                        cpu_set_t *found)
{
    uint32_t seen = 0;
    for (hwloc_obj_t at = NULL; (at = hwloc_get_next_obj_by_type(topology, type, at)) != NULL;) {
        if (own_processors(topology, at, within, found) && seen++ == number) {
            return true;
        }
    }
    return false;
}

static uint32_t objects_count(hwloc_topology_t topology, hwloc_obj_type_t type, const cpu_set_t *within)
{
    cpu_set_t found;
    uint32_t count = 0;
    while (object_find(topology, type, within, count, &found)) {
        count++;
    }
    return count;
}

/* What a rank gets; false: nothing is left for it. */
static bool rank_bind(hwloc_topology_t topology, hwloc_obj_type_t type, bool by_numa, uint32_t rank,
                      const cpu_set_t *allowed, cpu_set_t *own)
{
    uint32_t domains = objects_count(topology, HWLOC_OBJ_NUMANODE, allowed);
    cpu_set_t domain = *allowed;
    if (type == HWLOC_OBJ_NUMANODE && !by_numa) { /* that of the core which it would have */
        uint32_t cores = objects_count(topology, HWLOC_OBJ_CORE, allowed);
        cpu_set_t core;
        for (uint32_t i = 0; cores > 0 && domains > 0 && i < domains; i++) {
            if (object_find(topology, HWLOC_OBJ_CORE, allowed, rank % cores, &core) &&
                object_find(topology, type, allowed, i, own)) {
                CPU_AND(&core, &core, own);
                if (CPU_COUNT(&core) > 0) {
                    return true;
                }
            }
        }
        *own = *allowed;
        return true;
    }
    if (by_numa && domains > 0 && object_find(topology, HWLOC_OBJ_NUMANODE, allowed, rank % domains, &domain)) {
        rank /= domains;
    }
    if (type == HWLOC_OBJ_NUMANODE) {
        *own = domain;
        return true;
    }
    return object_find(topology, type, &domain, rank, own);
}

bool launch_binding_make(const char *word, bool by_numa, uint32_t count, cpu_set_t **cores, char *error,
                         size_t error_bytes)
{
    hwloc_topology_t topology;
    cpu_set_t allowed;
    uint32_t done = 0;
    *cores = NULL;
    if (strcmp(word, "none") == 0) {
        return true;
    }
    if (!launch_binding_knows(word)) {
        return refuse(error, error_bytes, "--bind-to knows 'core', 'hwthread', 'numa' and 'none'");
    }
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || hwloc_topology_init(&topology) != 0) {
        return refuse(error, error_bytes, "the processors of this process are not known: leave --bind-to out");
    }
    cpu_set_t *made = calloc((size_t)count + 1, sizeof(*made));
    hwloc_obj_type_t type = strcmp(word, "core") == 0   ? HWLOC_OBJ_CORE
                            : strcmp(word, "numa") == 0 ? HWLOC_OBJ_NUMANODE
                                                        : HWLOC_OBJ_PU;
    if (made != NULL && hwloc_topology_load(topology) == 0) {
        while (done < count && rank_bind(topology, type, by_numa, done, &allowed, &made[done])) {
            done++;
        }
    }
    hwloc_topology_destroy(topology);
    if (done < count) {
        snprintf(error, error_bytes,
                 "--bind-to %s: %u ranks, and there is one for %u of them: fewer ranks, or --bind-to none", word, count,
                 done);
        free(made);
        return false;
    }
    *cores = made;
    return true;
}
