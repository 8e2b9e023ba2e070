/* Shares of the node, in virtual time: each gets bytes by its weight whatever its frames are like, rates are kept, and
 * one that pauses neither loses nor saves up. */
#include "apps/node/share.h"
#include "dataplane/base/random.h"
#include "tests/test.h"

enum { TURNS = 5, FRAMES = 200000, SEEDS = 40, FRAME_MAX = 64000 };

struct world {
    struct cw_random random;
    struct node_turn turns[TURNS];
    struct node_turn *order[TURNS];
    struct node_round round;
    uint64_t bytes[TURNS];
    uint32_t frame_max[TURNS];
};

static void world_make(struct world *world, uint64_t seed)
{
    *world = (struct world){.round = {.turns = world->order, .count = TURNS}};
    cw_random_seed(&world->random, seed);
    for (uint32_t i = 0; i < TURNS; i++) {
        world->turns[i] =
            (struct node_turn){.weight = 1 + (uint32_t)cw_random_below(&world->random, 10), .has_work = true};
        world->order[i] = &world->turns[i];
        world->frame_max[i] = 64 + (uint32_t)cw_random_below(&world->random, FRAME_MAX - 63);
    }
}

/* Sends one frame. Its length; 0: nobody may. */
static uint32_t world_step(struct world *world, uint64_t now_ns)
{
    struct node_turn *turn = node_round_next(&world->round, now_ns);
    if (turn == NULL) {
        return 0;
    }
    size_t at = (size_t)(turn - world->turns);
    assert_true(turn->has_work);
    uint32_t length = 64 + (uint32_t)cw_random_below(&world->random, world->frame_max[at] - 63);
    node_turn_charge(turn, now_ns, length);
    world->bytes[at] += length;
    return length;
}

/* At any time, one is ahead of another by at most a turn and two frames. */
static void test_weights(void **state)
{
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct world world;
        world_make(&world, seed);
        for (uint32_t i = 0; i < FRAMES; i++) {
            assert_true(world_step(&world, 0) > 0);
            if (i % 1000 != 0) {
                continue;
            }
            for (uint32_t a = 0; a < TURNS; a++) {
                for (uint32_t b = 0; b < TURNS; b++) {
                    double one = (double)world.bytes[a] / world.turns[a].weight;
                    double other = (double)world.bytes[b] / world.turns[b].weight;
                    double bound = NODE_QUANTUM_BYTES + 2.0 * FRAME_MAX;
                    assert_true(one - other <= bound);
                }
            }
        }
    }
}

/* Some pause for a while: the others get their share; pausing ones save nothing up. */
static void test_pauses(void **state)
{
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct world world;
        world_make(&world, seed);
        for (uint32_t i = 0; i < FRAMES / 10; i++) {
            (void)world_step(&world, 0);
        }
        world.turns[0].has_work = false;
        for (uint32_t i = 0; i < FRAMES / 10; i++) {
            uint64_t before = world.bytes[0];
            assert_true(world_step(&world, 0) > 0);
            assert_int_equal(world.bytes[0], before);
        }
        world.turns[0].has_work = true;
        uint64_t own = world.bytes[0], others = world.bytes[1];
        for (uint32_t i = 0; i < FRAMES / 10; i++) {
            (void)world_step(&world, 0);
        }
        double share = (double)(world.bytes[0] - own) / world.turns[0].weight;
        double other = (double)(world.bytes[1] - others) / world.turns[1].weight;
        assert_true(share - other <= NODE_QUANTUM_BYTES + 2.0 * FRAME_MAX);
        assert_true(other - share <= NODE_QUANTUM_BYTES + 2.0 * FRAME_MAX);
    }
}

/* A rate bounds what one gets, and the others get the rest; time is a line of 10 Gb/s. */
static void test_rates(void **state)
{
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct world world;
        uint64_t now_ns = 1000000000;
        world_make(&world, seed);
        world.turns[2].meter.rate_bps = 1000000000;
        for (uint32_t i = 0; i < FRAMES; i++) {
            uint32_t length = world_step(&world, now_ns);
            assert_true(length > 0);
            now_ns += length * 8 / 10;
        }
        double most = (double)(now_ns - 1000000000 + NODE_BURST_NS) / 8 + FRAME_MAX;
        assert_true((double)world.bytes[2] <= most);
        double weights = 0;
        for (uint32_t i = 0; i < TURNS; i++) {
            weights += world.turns[i].weight;
        }
        double wanted = (double)world.turns[2].weight / weights * 10; /* Gb/s */
        if (wanted > 1.5) {
            assert_true((double)world.bytes[2] >= 0.95 * most);
        }
    }
}

/* All are bounded: none may send, until the first one may again. */
static void test_deadline(void **state)
{
    struct world world;
    world_make(&world, 3);
    assert_int_equal(node_round_deadline(&world.round), 0);
    for (uint32_t i = 0; i < TURNS; i++) {
        world.turns[i].meter.rate_bps = 1000000 * (i + 1);
    }
    uint64_t now_ns = 1000000000;
    while (world_step(&world, now_ns) > 0) {
    }
    uint64_t deadline_ns = node_round_deadline(&world.round);
    assert_true(deadline_ns > now_ns);
    assert_int_equal(world_step(&world, deadline_ns - 1), 0);
    assert_true(world_step(&world, deadline_ns) > 0);
    for (uint32_t i = 0; i < TURNS; i++) {
        world.turns[i].has_work = false;
    }
    assert_true(node_round_deadline(&world.round) == UINT64_MAX);
    assert_int_equal(world_step(&world, UINT64_MAX), 0);
}

int main(void)
{
    return TESTS_RUN(test_weights, test_pauses, test_rates, test_deadline);
}
