#include "control/launch/binding.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/net/transport.h"
#include "dataplane/status.h"

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

static bool reject(char *error, size_t error_bytes, const char *text)
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

/* The object with number `number` of a type inside another one's processors, of those that this process may use. */
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

/* Binds a rank to its processors; false: none is left for it. */
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

/* Binds ranks to processors of `allowed`. */
static bool ranks_bind(hwloc_topology_t topology, const struct launch_binding_wish *wish, const cpu_set_t *allowed,
                       const struct launch_binding *binding, char *error, size_t error_bytes)
{
    cpu_set_t *made = binding->cores;
    hwloc_obj_type_t type = strcmp(wish->word, "core") == 0   ? HWLOC_OBJ_CORE
                            : strcmp(wish->word, "numa") == 0 ? HWLOC_OBJ_NUMANODE
                                                              : HWLOC_OBJ_PU;
    uint32_t done = 0;
    if (strcmp(wish->word, "none") == 0) {
        for (; done < wish->count; done++) {
            made[done] = *allowed;
        }
    }
    while (done < wish->count && rank_bind(topology, type, wish->by_numa, done, allowed, &made[done])) {
        done++;
    }
    if (done < wish->count) {
        snprintf(error, error_bytes,
                 "--bind-to %s: %u ranks, and there is one for %u of them%s: fewer ranks, or --bind-to none",
                 wish->word, wish->count, done, binding->dedicated == NULL ? "" : " next to the dedicated ones");
        return false;
    }
    return true;
}

/* ---- dataplane threads ---- */

/* The cores among those of `from`, a processor of each, in order; how many there are. */
static uint32_t cores_list(hwloc_topology_t topology, const cpu_set_t *from, int *processors, uint32_t count_max)
{
    cpu_set_t found;
    uint32_t count = 0;
    while (count < count_max && object_find(topology, HWLOC_OBJ_CORE, from, count, &found)) {
        int first = 0;
        while (!CPU_ISSET((size_t)first, &found)) {
            first++;
        }
        processors[count++] = first;
    }
    return count;
}

/* Takes the core of a processor out of a set, with all its hardware threads. */
static void core_claim(hwloc_topology_t topology, int processor, cpu_set_t *from)
{
    cpu_set_t all;
    hwloc_obj_t object = hwloc_get_pu_obj_by_os_index(topology, (unsigned)processor);
    hwloc_obj_t core = object == NULL ? NULL : hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, object);
    CPU_CLR((size_t)processor, from);
    if (core != NULL) {
        CPU_ZERO(&all);
        (void)hwloc_cpuset_to_glibc_sched_affinity(topology, core->cpuset, &all, sizeof(all));
        for (size_t i = 0; i < CPU_SETSIZE; i++) {
            if (CPU_ISSET(i, &all)) {
                CPU_CLR(i, from);
            }
        }
    }
}

/* Processors that the kernel assigns only on request (isolcpus). */
static void isolated_find(const char *told, cpu_set_t *isolated)
{
    struct cw_dedicate_wish wish;
    char text[1024], line[1000] = "", error[CW_DEDICATE_TEXT_BYTES];
    FILE *file = told == NULL ? fopen("/sys/devices/system/cpu/isolated", "re") : NULL;
    CPU_ZERO(isolated);
    if (file != NULL) {
        told = fgets(line, sizeof(line), file);
        fclose(file);
    }
    snprintf(text, sizeof(text), "cores:%.*s", told == NULL ? 0 : (int)strcspn(told, "\n"), told == NULL ? "" : told);
    if (cw_dedicate_read(text, &wish, error, sizeof(error)) == CW_OK) { /* else there are none */
        for (uint32_t i = 0; i < wish.count; i++) {
            CPU_SET(wish.cores[i], isolated);
        }
    }
}

/* Those near the device that a text of CAUSEWAY_TRANSPORT names: "eth0", "udp:eth0", "0000:03:00.0,ip=..."; none
 * if that is not known. */
static void near_find(hwloc_topology_t topology, const char *transport, cpu_set_t *near)
{
    static const char *const places[] = {"/sys/class/net/%.63s/device/numa_node",
                                         "/sys/bus/pci/devices/%.63s/numa_node"};
    const char *what = transport;
    char name[64], path[160];
    int node = -1;
    CPU_ZERO(near);
    if (transport == NULL) {
        return;
    }
    (void)cw_net_transport_read(transport, &what);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(what, ","), what);
    for (size_t i = 0; i < 2 && node < 0 && name[0] != 0 && strchr(name, '/') == NULL; i++) {
        snprintf(path, sizeof(path), places[i], name);
        FILE *file = fopen(path, "re");
        if (file != NULL && fscanf(file, "%d", &node) != 1) {
            node = -1;
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    hwloc_obj_t object = node < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(topology, (unsigned)node);
    if (object != NULL) {
        (void)hwloc_cpuset_to_glibc_sched_affinity(topology, object->cpuset, near, sizeof(*near));
    }
}

/* Takes the last cores of `allowed` for the ranks, those near the network first, while as many are left to them. */
static bool last_claim(hwloc_topology_t topology, const struct launch_binding_wish *wish, cpu_set_t *allowed,
                       struct launch_binding *binding)
{
    int processors[CPU_SETSIZE];
    cpu_set_t near;
    uint32_t count = cores_list(topology, allowed, processors, CPU_SETSIZE), done = 0;
    uint32_t wanted = wish->count * binding->threads;
    if (count < wanted + wish->count) {
        snprintf(
            binding->undedicated, sizeof(binding->undedicated),
            "%u ranks with %u dataplane thread%s each want %u cores, and there are %u (hardware threads share one; "
            "--dedicated cores:LIST names them all the same)",
            wish->count, binding->threads, binding->threads == 1 ? "" : "s", wanted + wish->count, count);
        return false;
    }
    near_find(topology, wish->transport, &near);
    for (int wants_near = 1; wants_near >= 0; wants_near--) {
        for (uint32_t i = count; i > 0 && done < wanted; i--) {
            int processor = processors[i - 1];
            if (CPU_ISSET((size_t)processor, &near) == (wants_near != 0)) {
                binding->dedicated[done++] = processor;
                core_claim(topology, processor, allowed);
            }
        }
    }
    return true;
}

static bool list_claim(hwloc_topology_t topology, const struct launch_binding_wish *wish,
                       const struct cw_dedicate_wish *dedicated, cpu_set_t *allowed, struct launch_binding *binding)
{
    uint32_t wanted = wish->count * binding->threads;
    if (dedicated->count < wanted) {
        snprintf(binding->undedicated, sizeof(binding->undedicated),
                 "%u ranks of this host want %u cores, and the list of --dedicated has %u", wish->count, wanted,
                 dedicated->count);
        return false;
    }
    cpu_set_t rest = *allowed;
    for (uint32_t i = 0; i < wanted; i++) {
        binding->dedicated[i] = dedicated->cores[i];
        core_claim(topology, dedicated->cores[i], &rest);
    }
    if (CPU_COUNT(&rest) > 0) { /* else whoever names all cores wants them to be shared */
        *allowed = rest;
    }
    return true;
}

/* Sets cores apart, and takes them out of `allowed`; false: there are none, with the reason. */
static bool dedicate(hwloc_topology_t topology, const struct launch_binding_wish *wish,
                     const struct cw_dedicate_wish *dedicated, cpu_set_t *allowed, struct launch_binding *binding)
{
    cpu_set_t isolated;
    uint32_t wanted = wish->count * binding->threads;
    if (dedicated->has_list) {
        return list_claim(topology, wish, dedicated, allowed, binding);
    }
    isolated_find(wish->isolated, &isolated);
    if (objects_count(topology, HWLOC_OBJ_CORE, &isolated) < wanted) {
        return last_claim(topology, wish, allowed, binding);
    }
    (void)cores_list(topology, &isolated, binding->dedicated, wanted);
    for (uint32_t i = 0; i < wanted; i++) {
        core_claim(topology, binding->dedicated[i], allowed); /* mostly it was none of them */
    }
    return true;
}

/* ---- all of it ---- */

static bool binding_fill(hwloc_topology_t topology, const struct launch_binding_wish *wish,
                         const struct cw_dedicate_wish *dedicated, struct launch_binding *binding, char *error,
                         size_t error_bytes)
{
    cpu_set_t allowed;
    bool is_known = wish->allowed != NULL || sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
    allowed = wish->allowed != NULL ? *wish->allowed : allowed;
    if (!is_known || hwloc_topology_load(topology) != 0) {
        return reject(error, error_bytes, "the processors of this process are not known: leave --bind-to out");
    }
    binding->cores = calloc((size_t)wish->count + 1, sizeof(*binding->cores));
    binding->threads = dedicated->threads;
    binding->dedicated = calloc((size_t)wish->count * dedicated->threads + 1, sizeof(*binding->dedicated));
    if (binding->cores == NULL || binding->dedicated == NULL) {
        return reject(error, error_bytes, "no memory for the ranks' processors");
    }
    if (dedicated->threads == 0 || !dedicate(topology, wish, dedicated, &allowed, binding)) {
        free(binding->dedicated);
        binding->dedicated = NULL;
    }
    return ranks_bind(topology, wish, &allowed, binding, error, error_bytes);
}

bool launch_binding_make(const struct launch_binding_wish *wish, struct launch_binding *binding, char *error,
                         size_t error_bytes)
{
    hwloc_topology_t topology;
    struct cw_dedicate_wish dedicated;
    *binding = (struct launch_binding){.cores = NULL};
    if (cw_dedicate_read(wish->dedicated, &dedicated, error, error_bytes) != CW_OK) {
        return false;
    }
    if (strcmp(wish->word, "none") == 0 && dedicated.threads == 0) {
        return true;
    }
    if (!launch_binding_knows(wish->word)) {
        return reject(error, error_bytes, "--bind-to knows 'core', 'hwthread', 'numa' and 'none'");
    }
    if (hwloc_topology_init(&topology) != 0) {
        return reject(error, error_bytes, "the processors of this machine are not known: leave --bind-to out");
    }
    bool is_made = binding_fill(topology, wish, &dedicated, binding, error, error_bytes);
    hwloc_topology_destroy(topology);
    if (!is_made) {
        launch_binding_dispose(binding);
    }
    return is_made;
}

void launch_binding_dispose(struct launch_binding *binding)
{
    free(binding->cores);
    free(binding->dedicated);
    *binding = (struct launch_binding){.cores = NULL};
}
