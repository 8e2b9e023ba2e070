#include "dataplane/loop/command.h"

#include <stdlib.h>

int cw_commands_init(struct cw_commands *commands, uint32_t count)
{
    commands->cells = calloc(count, sizeof(*commands->cells));
    if (commands->cells == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        atomic_init(&commands->cells[i].turn, i);
    }
    commands->mask = count - 1;
    atomic_init(&commands->head, 0);
    atomic_init(&commands->tail, 0);
    return CW_OK;
}

void cw_commands_dispose(struct cw_commands *commands)
{
    free(commands->cells);
    commands->cells = NULL;
}

bool cw_commands_push(struct cw_commands *commands, const struct cw_command *command)
{
    uint32_t head = atomic_load_explicit(&commands->head, memory_order_relaxed);
    for (;;) {
        struct cw_command_cell *cell = &commands->cells[head & commands->mask];
        /* pairs with the release in cw_commands_pop: the cell is free */
        int32_t ahead = (int32_t)(atomic_load_explicit(&cell->turn, memory_order_acquire) - head);
        if (ahead < 0) {
            return false;
        }
        if (ahead == 0 && atomic_compare_exchange_weak_explicit(&commands->head, &head, head + 1, memory_order_seq_cst,
                                                                memory_order_relaxed)) {
            cell->command = *command;
            /* pairs with the acquire in cw_commands_peek: the command is complete */
            atomic_store_explicit(&cell->turn, head + 1, memory_order_release);
            return true;
        }
        if (ahead > 0) {
            head = atomic_load_explicit(&commands->head, memory_order_relaxed);
        }
    }
}

struct cw_command *cw_commands_peek(struct cw_commands *commands)
{
    uint32_t tail = atomic_load_explicit(&commands->tail, memory_order_relaxed);
    struct cw_command_cell *cell = &commands->cells[tail & commands->mask];
    /* pairs with the release in cw_commands_push */
    return atomic_load_explicit(&cell->turn, memory_order_acquire) == tail + 1 ? &cell->command : NULL;
}

void cw_commands_pop(struct cw_commands *commands)
{
    uint32_t tail = atomic_load_explicit(&commands->tail, memory_order_relaxed);
    /* pairs with the acquire in cw_commands_push */
    atomic_store_explicit(&commands->cells[tail & commands->mask].turn, tail + commands->mask + 1,
                          memory_order_release);
    atomic_store_explicit(&commands->tail, tail + 1, memory_order_release);
}
