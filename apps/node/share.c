#include "apps/node/share.h"

#include <stddef.h>

enum { FRAME_BYTES_MAX = 65536 };

void node_meter_charge(struct node_meter *meter, uint64_t now_ns, uint32_t bytes)
{
    if (meter->rate_bps == 0) {
        return;
    }
    uint64_t oldest_ns = now_ns > NODE_BURST_NS ? now_ns - NODE_BURST_NS : 0;
    meter->free_ns = meter->free_ns > oldest_ns ? meter->free_ns : oldest_ns;
    meter->free_ns += (uint64_t)((double)bytes * 8e9 / (double)meter->rate_bps);
}

static bool may_send(const struct node_turn *turn, uint64_t now_ns)
{
    return turn->has_work && turn->barred_ns <= now_ns && node_meter_may(&turn->meter, now_ns);
}

struct node_turn *node_round_next(struct node_round *round, uint64_t now_ns)
{
    for (uint32_t barred = 0; barred < round->count;) { /* all of them, one after the other: nobody may */
        round->current %= round->count;
        struct node_turn *turn = round->turns[round->current];
        if (may_send(turn, now_ns)) {
            barred = 0;
            if (turn->deficit_bytes > 0) {
                return turn;
            }
        } else {
            barred++;
            turn->deficit_bytes = !turn->has_work && turn->deficit_bytes > 0 ? 0 : turn->deficit_bytes;
        }
        round->current = (round->current + 1) % round->count;
        turn = round->turns[round->current];
        if (may_send(turn, now_ns)) {
            turn->deficit_bytes += (int64_t)turn->weight * NODE_QUANTUM_BYTES;
        }
    }
    return NULL;
}

void node_turn_charge(struct node_turn *turn, uint64_t now_ns, uint32_t bytes)
{
    turn->deficit_bytes -= bytes < FRAME_BYTES_MAX ? bytes : (uint32_t)FRAME_BYTES_MAX;
    node_meter_charge(&turn->meter, now_ns, bytes);
}

uint64_t node_round_deadline(const struct node_round *round)
{
    uint64_t deadline_ns = UINT64_MAX;
    for (uint32_t i = 0; i < round->count; i++) {
        const struct node_turn *turn = round->turns[i];
        if (turn->has_work) {
            uint64_t free_ns = turn->meter.rate_bps == 0 ? 0 : turn->meter.free_ns;
            free_ns = turn->barred_ns > free_ns ? turn->barred_ns : free_ns;
            deadline_ns = free_ns < deadline_ns ? free_ns : deadline_ns;
        }
    }
    return deadline_ns;
}
