/* Memory of the memory transport: it grows to the needs of a run and is reused by the next. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/schedules/transport_memory_state.h"

/* Makes room for one more entry. False: no memory. */
static bool grow(void **list, uint32_t used, uint32_t *capacity, size_t entry_bytes)
{
    if (used < *capacity) {
        return true;
    }
    uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = realloc(*list, wanted * entry_bytes);
    if (grown == NULL) {
        return false;
    }
    *list = grown;
    *capacity = wanted;
    return true;
}

/* ---- Blocks ---- */

static uint32_t block_class(uint64_t bytes)
{
    return bytes <= 64 ? 6 : 64 - (uint32_t)__builtin_clzll(bytes - 1);
}

struct memory_block *memory_block_acquire(struct cw_memory_fabric *fabric, uint64_t bytes)
{
    uint32_t class = block_class(bytes);
    struct memory_block *block = fabric->blocks_free[class];
    if (block != NULL) {
        fabric->blocks_free[class] = block->next_free;
        return block;
    }
    block = malloc(sizeof(*block) + (1ull << class));
    if (block != NULL) {
        block->next_all = fabric->blocks_all[class];
        fabric->blocks_all[class] = block;
    }
    return block;
}

void memory_block_release(struct cw_memory_fabric *fabric, struct memory_block *block, uint64_t bytes)
{
    uint32_t class = block_class(bytes);
    block->next_free = fabric->blocks_free[class];
    fabric->blocks_free[class] = block;
}

/* ---- Puts and messages ---- */

uint32_t memory_put_acquire(struct cw_memory_fabric *fabric)
{
    uint32_t put = fabric->puts_free;
    if (put != MEMORY_NONE) {
        fabric->puts_free = fabric->puts[put].references;
    } else {
        if (!grow((void **)&fabric->puts, fabric->puts_used, &fabric->puts_capacity, sizeof(*fabric->puts))) {
            return MEMORY_NONE;
        }
        put = fabric->puts_used++;
    }
    memset(&fabric->puts[put], 0, sizeof(fabric->puts[put]));
    return put;
}

void memory_put_unreference(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_put *put = &fabric->puts[index];
    assert(put->references > 0);
    if (--put->references > 0) {
        return;
    }
    if (put->snapshot != NULL) {
        memory_block_release(fabric, put->snapshot, put->bytes);
    }
    put->references = fabric->puts_free; /* the free list goes through here */
    fabric->puts_free = index;
}

uint32_t memory_message_acquire(struct cw_memory_fabric *fabric)
{
    uint32_t message = fabric->messages_free;
    if (message != MEMORY_NONE) {
        fabric->messages_free = fabric->messages[message].next;
    } else {
        if (!grow((void **)&fabric->messages, fabric->messages_used, &fabric->messages_capacity,
                  sizeof(*fabric->messages))) {
            return MEMORY_NONE;
        }
        message = fabric->messages_used++;
    }
    memset(&fabric->messages[message], 0, sizeof(fabric->messages[message]));
    return message;
}

void memory_message_free(struct cw_memory_fabric *fabric, uint32_t message)
{
    fabric->messages[message].state = MESSAGE_FREE;
    fabric->messages[message].next = fabric->messages_free;
    fabric->messages_free = message;
}

/* ---- Matches ---- */

static uint32_t match_slot(const struct cw_memory_fabric *fabric, uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - fabric->matches_bits));
}

static struct memory_match *match_probe(const struct cw_memory_fabric *fabric, uint64_t key)
{
    uint32_t mask = (1u << fabric->matches_bits) - 1;
    uint32_t i = match_slot(fabric, key);
    while (fabric->matches[i].run == fabric->run && fabric->matches[i].key != key) {
        i = (i + 1) & mask;
    }
    return &fabric->matches[i];
}

static bool matches_grow(struct cw_memory_fabric *fabric)
{
    struct memory_match *before = fabric->matches;
    uint32_t before_bits = fabric->matches_bits;
    struct memory_match *grown = calloc(2ull << before_bits, sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    fabric->matches = grown;
    fabric->matches_bits = before_bits + 1;
    for (uint32_t i = 0; before != NULL && i < 1u << before_bits; i++) {
        if (before[i].run == fabric->run) {
            *match_probe(fabric, before[i].key) = before[i];
        }
    }
    free(before);
    return true;
}

struct memory_match *memory_match_find(struct cw_memory_fabric *fabric, uint32_t target, uint32_t source, uint32_t tag)
{
    uint64_t key = ((uint64_t)target << 20 | source) << CW_SCHEDULE_TAG_BITS | tag;
    if ((fabric->matches == NULL || fabric->matches_used >= 1u << (fabric->matches_bits - 1)) &&
        !matches_grow(fabric)) {
        return NULL;
    }
    struct memory_match *match = match_probe(fabric, key);
    if (match->run != fabric->run) {
        *match = (struct memory_match){.key = key, .run = fabric->run, .message = MEMORY_NONE};
        fabric->matches_used++;
    }
    return match;
}

/* ---- Tasks: a binary heap ---- */

bool memory_task_push(struct cw_memory_fabric *fabric, const struct memory_task *task)
{
    if (!grow((void **)&fabric->tasks, fabric->tasks_count, &fabric->tasks_capacity, sizeof(*fabric->tasks))) {
        memory_fault(fabric, "no memory for tasks");
        return false;
    }
    uint32_t i = fabric->tasks_count++;
    while (i > 0 && fabric->tasks[(i - 1) / 2].priority > task->priority) {
        fabric->tasks[i] = fabric->tasks[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    fabric->tasks[i] = *task;
    return true;
}

struct memory_task memory_task_pop(struct cw_memory_fabric *fabric)
{
    assert(fabric->tasks_count > 0);
    struct memory_task first = fabric->tasks[0];
    struct memory_task moved = fabric->tasks[--fabric->tasks_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= fabric->tasks_count) {
            break;
        }
        if (child + 1 < fabric->tasks_count && fabric->tasks[child + 1].priority < fabric->tasks[child].priority) {
            child++;
        }
        if (fabric->tasks[child].priority >= moved.priority) {
            break;
        }
        fabric->tasks[i] = fabric->tasks[child];
        i = child;
    }
    fabric->tasks[i] = moved;
    return first;
}

/* ---- Events ---- */

void memory_awake(struct cw_memory_fabric *fabric, uint32_t index, bool awake)
{
    struct memory_rank *rank = &fabric->ranks[index];
    if (awake && rank->awake_position == MEMORY_NONE) {
        rank->awake_position = fabric->awake_count;
        fabric->awake[fabric->awake_count++] = index;
    } else if (!awake && rank->awake_position != MEMORY_NONE) {
        uint32_t moved = fabric->awake[--fabric->awake_count];
        fabric->awake[rank->awake_position] = moved;
        fabric->ranks[moved].awake_position = rank->awake_position;
        rank->awake_position = MEMORY_NONE;
    }
}

bool memory_event(struct cw_memory_fabric *fabric, uint32_t rank, const struct cw_transport_event *event)
{
    const struct cw_transport_sink sink = fabric->ranks[rank].sink;
    fabric->ranks[rank].has_news = true;
    memory_awake(fabric, rank, fabric->ranks[rank].entered);
    return sink.event(sink.context, event);
}

/* ---- All of it ---- */

void memory_pools_reset(struct cw_memory_fabric *fabric)
{
    fabric->puts_used = fabric->messages_used = 0;
    fabric->puts_free = fabric->messages_free = MEMORY_NONE;
    fabric->tasks_count = 0;
    fabric->matches_used = 0;
    fabric->awake_count = 0;
    for (uint32_t class = 0; class < MEMORY_BLOCK_CLASSES; class ++) {
        fabric->blocks_free[class] = NULL;
        for (struct memory_block *block = fabric->blocks_all[class]; block != NULL; block = block->next_all) {
            block->next_free = fabric->blocks_free[class];
            fabric->blocks_free[class] = block;
        }
    }
}

void memory_pools_dispose(struct cw_memory_fabric *fabric)
{
    free(fabric->puts);
    free(fabric->messages);
    free(fabric->tasks);
    free(fabric->matches);
    for (uint32_t class = 0; class < MEMORY_BLOCK_CLASSES; class ++) {
        for (struct memory_block *block = fabric->blocks_all[class]; block != NULL;) {
            struct memory_block *next = block->next_all;
            free(block);
            block = next;
        }
    }
}
