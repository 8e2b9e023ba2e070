/* Calls among the ranks of a host, in the memory transport. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "tests/schedules/transport_memory_state.h"

/* The ranks of a call, as one of them has it. */
static uint32_t members_of(const struct cw_transport_host *call)
{
    return call->other_count + 1;
}

static uint32_t index_of(const struct cw_transport_host *call, uint32_t own, uint32_t rank)
{
    uint32_t index = own < rank ? 1 : 0;
    for (uint32_t i = 0; i < call->other_count; i++) {
        index += call->others[i] < rank ? 1 : 0;
    }
    return index;
}

static uint32_t rank_of(const struct cw_transport_host *call, uint32_t own, uint32_t index)
{
    uint32_t at = index_of(call, own, own);
    return index == at ? own : call->others[index < at ? index : index - 1];
}

/* Bytes of block `block` of member `from`; of a collective with one vector: all of it. */
static uint64_t block_bytes(const struct cw_memory_fabric *fabric, const struct cw_transport_host *call, uint32_t from,
                            uint32_t block)
{
    const struct cw_problem *problem = fabric->request.problem;
    if (!call->is_whole) {
        return call->bytes;
    }
    return call->collective == CW_ALLTOALL                  ? cw_problem_pair_bytes(problem, from, block)
           : cw_collective_accepts_counts(call->collective) ? cw_problem_block_bytes(problem, block)
                                                            : problem->count * problem->element_bytes;
}

/* Where block `block` of a contribution begins; with as many blocks as it has, its length. */
static uint64_t block_offset(const struct cw_memory_fabric *fabric, const struct cw_transport_host *call, uint32_t from,
                             uint32_t block)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < block; i++) {
        offset += block_bytes(fabric, call, from, i);
    }
    return offset;
}

/* Whether all have started whom the result at `rank` needs, or for whom it waits. */
static bool is_due(const struct cw_memory_fabric *fabric, uint32_t rank, const struct memory_host *host)
{
    const struct cw_transport_host *call = &host->call;
    uint32_t own = index_of(call, rank, rank), root = index_of(call, rank, call->root);
    for (uint32_t i = 0; i < members_of(call); i++) {
        const struct memory_host *others = fabric->ranks[rank_of(call, rank, i)].hosts;
        bool is_needed = host->waits_for_all || cw_host_needs(call->collective, own, i, root);
        if (is_needed && (others == NULL || !others[call->number].started)) {
            return false;
        }
    }
    return true;
}

static void tasks_push(struct cw_memory_fabric *fabric, uint32_t rank, const struct cw_transport_host *call)
{
    for (uint32_t i = 0; i < members_of(call); i++) {
        uint32_t member = rank_of(call, rank, i);
        struct memory_host *its =
            fabric->ranks[member].hosts == NULL ? NULL : &fabric->ranks[member].hosts[call->number];
        if (its != NULL && its->started && !its->pushed && is_due(fabric, member, its)) {
            const struct memory_put none = {.source = member, .number = call->number};
            struct memory_task task = {memory_priority(fabric, TASK_HOST, &none, member), member, TASK_HOST,
                                       (uint16_t)call->number};
            its->pushed = true;
            memory_task_push(fabric, &task);
        }
    }
}

int memory_host(void *state, const struct cw_transport_host *call)
{
    struct memory_rank *rank = state;
    struct cw_memory_fabric *fabric = rank->fabric;
    assert(rank->entered && call->number < CW_HOST_OPS_MAX && fabric->request.problem != NULL);
    if (memory_refuses(fabric, rank)) {
        return CW_ERROR_AGAIN;
    }
    if (rank->hosts == NULL) {
        rank->hosts = calloc(CW_HOST_OPS_MAX, sizeof(*rank->hosts));
    }
    uint32_t own = index_of(call, rank->rank, rank->rank), root = index_of(call, rank->rank, call->root);
    uint32_t blocks = cw_host_blocks_read(call->collective, members_of(call), own, root);
    uint64_t bytes = blocks == 1 ? block_bytes(fabric, call, own, own) : block_offset(fabric, call, own, blocks);
    struct memory_block *contribution = bytes > 0 ? memory_block_acquire(fabric, bytes) : NULL;
    if (rank->hosts == NULL || (bytes > 0 && contribution == NULL)) {
        return CW_ERROR_MEMORY;
    }
    if (bytes > 0) {
        memcpy(contribution->bytes, call->from, bytes);
    }
    rank->hosts[call->number] = (struct memory_host){
        .call = *call,
        .contribution = contribution,
        .bytes = bytes,
        .started = true,
        .waits_for_all = memory_chance(fabric, 128),
    };
    tasks_push(fabric, rank->rank, call);
    return CW_OK;
}

/* Puts the result where it belongs. */
static void result_make(struct cw_memory_fabric *fabric, uint32_t rank, const struct cw_transport_host *call)
{
    uint32_t own = index_of(call, rank, rank), root = index_of(call, rank, call->root), members = members_of(call);
    bool reduces = cw_collective_reduces(call->collective), is_first = true;
    uint8_t *to = call->to;
    if (cw_host_blocks_written(call->collective, members, own, root) == 0) {
        return;
    }
    for (uint32_t i = 0; i < members; i++) {
        uint32_t member = reduces ? members - 1 - i : i;
        if (!cw_host_needs(call->collective, own, member, root)) {
            continue;
        }
        const struct memory_host *its = &fabric->ranks[rank_of(call, rank, member)].hosts[call->number];
        bool is_divided = cw_host_blocks_read(call->collective, members, member, root) > 1;
        uint64_t first = is_divided ? block_offset(fabric, call, member, own) : 0;
        uint64_t bytes = is_divided ? block_bytes(fabric, call, member, own) : its->bytes;
        const uint8_t *from = bytes > 0 ? its->contribution->bytes + first : NULL;
        if (bytes > 0 && reduces && !is_first) {
            fabric->request.reduce(fabric->request.reduce_context, to, from, to,
                                   bytes / fabric->request.problem->element_bytes);
        } else if (bytes > 0) {
            memcpy(to, from, bytes);
        }
        to += reduces ? 0 : bytes;
        is_first = false;
    }
}

void memory_host_run(struct cw_memory_fabric *fabric, uint32_t rank, uint32_t number)
{
    const struct memory_host *host = &fabric->ranks[rank].hosts[number];
    struct cw_transport_event event = {.kind = CW_TRANSPORT_COMPLETE, .context = host->call.context};
    if (host->bytes > 0 && memcmp(host->call.from, host->contribution->bytes, host->bytes) != 0) {
        memory_fault(fabric, "rank %u: its contribution to host op %u changed before the op was complete", rank,
                     number);
    }
    result_make(fabric, rank, &host->call);
    (void)memory_event(fabric, rank, &event);
}

void memory_hosts_reset(struct cw_memory_fabric *fabric, struct memory_rank *rank)
{
    for (uint32_t number = 0; rank->hosts != NULL && number < CW_HOST_OPS_MAX; number++) {
        struct memory_host *host = &rank->hosts[number];
        if (host->contribution != NULL) {
            memory_block_release(fabric, host->contribution, host->bytes);
        }
        *host = (struct memory_host){.started = false};
    }
}
