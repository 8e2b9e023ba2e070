/* The draws of a seed: a plain order of all possible events, and up to three unfair rules. Choices that are random one
 * by one rarely starve anything for long, and most races need just that. */
#include "tests/schedules/transport_memory_state.h"

static const uint64_t BASE_MASK = MEMORY_PRIORITY_USUAL - 1;

bool memory_chance(struct cw_memory_fabric *fabric, uint32_t of_256)
{
    return of_256 > 0 && (cw_random_next(&fabric->random) >> 56) < of_256;
}

static uint32_t draw(struct cw_memory_fabric *fabric, uint32_t bound)
{
    return (uint32_t)cw_random_below(&fabric->random, bound);
}

static struct memory_bias bias_draw(struct cw_memory_fabric *fabric)
{
    struct memory_bias bias = {draw(fabric, TRAIT_COUNT), 0};
    switch (bias.trait) {
    case TRAIT_SOURCE:
    case TRAIT_TARGET:
    case TRAIT_RANK:
        bias.value = draw(fabric, fabric->request.ranks);
        break;
    case TRAIT_TASK:
        bias.value = draw(fabric, TASK_KINDS);
        break;
    case TRAIT_TAG:
        bias.value = draw(fabric, CW_TAG_STEP);
        break;
    case TRAIT_NUMBER:
        bias.value = draw(fabric, 1u << draw(fabric, 12));
        break;
    default:
        break;
    }
    return bias;
}

void memory_adversity_draw(struct cw_memory_fabric *fabric)
{
    static const uint32_t chances[] = {0, 0, 16, 128, 256};
    struct memory_adversity *adversity = &fabric->adversity;
    *adversity = (struct memory_adversity){0};
    adversity->order = (enum memory_order)draw(fabric, ORDER_COUNT);
    adversity->salt = cw_random_next(&fabric->random);
    adversity->pieces_max = 1 + draw(fabric, MEMORY_PIECES_MAX);
    adversity->late[0] = bias_draw(fabric);
    if (draw(fabric, 4) == 0) {
        adversity->late[1] = bias_draw(fabric);
    }
    if (draw(fabric, 2) == 0) {
        adversity->early = bias_draw(fabric);
    }
    adversity->refuse = chances[draw(fabric, 4)];
    adversity->sent = chances[draw(fabric, 5)];
    adversity->scribble = chances[draw(fabric, 5)];
}

static bool applies(const struct memory_bias *bias, enum memory_task_kind kind, const struct memory_put *put,
                    uint32_t target)
{
    switch (bias->trait) {
    case TRAIT_SOURCE:
        return put->source == bias->value;
    case TRAIT_TARGET:
        return target == bias->value;
    case TRAIT_RANK:
        return put->source == bias->value || target == bias->value;
    case TRAIT_TASK:
        return kind == bias->value;
    case TRAIT_TAG:
        return put->tag % CW_TAG_STEP == bias->value;
    case TRAIT_EAGER:
        return put->eager;
    case TRAIT_DIRECT:
        return !put->eager;
    case TRAIT_NUMBER:
        return put->number == bias->value;
    default:
        return false;
    }
}

static uint64_t mix(uint64_t value, uint64_t salt)
{
    value = (value ^ salt) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 29)) * 0x94d049bb133111ebu;
    return value ^ (value >> 32);
}

uint64_t memory_priority(struct cw_memory_fabric *fabric, enum memory_task_kind kind, const struct memory_put *put,
                         uint32_t target)
{
    const struct memory_adversity *adversity = &fabric->adversity;
    uint64_t sequence = fabric->task_sequence++;
    uint64_t base = 0;
    switch (adversity->order) {
    case ORDER_FIFO:
        base = sequence;
        break;
    case ORDER_LIFO:
        base = BASE_MASK - sequence;
        break;
    case ORDER_BY_PUT:
        base = mix(put->number, adversity->salt);
        break;
    case ORDER_BY_PAIR:
        base = mix((uint64_t)put->source << 32 | target, adversity->salt);
        break;
    default:
        base = cw_random_next(&fabric->random);
    }
    base &= BASE_MASK;
    if (applies(&adversity->late[0], kind, put, target) || applies(&adversity->late[1], kind, put, target)) {
        return base | MEMORY_PRIORITY_LATE | MEMORY_PRIORITY_USUAL;
    }
    return applies(&adversity->early, kind, put, target) ? base : base | MEMORY_PRIORITY_USUAL;
}
