#include "dataplane/base/random.h"

#include <string.h>

static uint64_t splitmix_next(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

void cw_random_seed(struct cw_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        random->state[i] = splitmix_next(&seed);
    }
}

uint64_t cw_random_derive(uint64_t seed, uint64_t stream)
{
    uint64_t first = splitmix_next(&seed);
    uint64_t state = first ^ (stream * 0xd1342543de82ef95u);

    return splitmix_next(&state);
}

void cw_random_fill(struct cw_random *random, void *bytes, size_t length)
{
    uint8_t *to = bytes;

    while (length > 0) {
        uint64_t word = cw_random_next(random);
        size_t part = length < sizeof(word) ? length : sizeof(word);

        memcpy(to, &word, part);
        to += part;
        length -= part;
    }
}
