/* Driver of the targets of hostile input. With clang and sanitizers, libFuzzer (https://llvm.org/docs/LibFuzzer.html)
 * chooses the inputs by coverage, and uses the damage below in addition to its own. In other builds, each input is a
 * function of its seed. CW_TEST_PACKETS (100,000) is the amount of work, CW_TEST_SEED the one seed to run. */
#include "tests/fuzz/fuzz.h"

enum { PACKETS = 100000, PACKETS_FEW = 10000, CUT_MAX = 40 };

/* Replaces `gone` bytes at `at` by others, if there is room. Returns the new length. */
static size_t splice(uint8_t *bytes, size_t length, size_t at, size_t gone, const void *with, size_t with_bytes)
{
    if (length - gone + with_bytes > fuzz_target.bytes_max) {
        return length;
    }
    memmove(bytes + at + with_bytes, bytes + at + gone, length - at - gone);
    memcpy(bytes + at, with, with_bytes);
    return length - gone + with_bytes;
}

/* A seed of the corpus. */
static size_t seed_any(struct cw_random *random, uint8_t *bytes)
{
    static uint32_t count;
    while (count == 0 || fuzz_target.seed(count, bytes) > 0) {
        count++;
    }
    return fuzz_target.seed((uint32_t)cw_random_below(random, count), bytes);
}

/* A part of another seed takes the place of `gone` bytes at `at`. */
static size_t graft(struct cw_random *random, uint8_t *bytes, size_t length, size_t at, size_t gone)
{
    uint8_t *other = malloc(fuzz_target.bytes_max);
    size_t other_length = seed_any(random, other), from = (size_t)cw_random_below(random, other_length);
    size_t most = other_length - from < CUT_MAX ? other_length - from : CUT_MAX;
    length = splice(bytes, length, at, gone, other + from, (size_t)cw_random_below(random, most + 1));
    free(other);
    return length;
}

/* One wound, of a seed with at least one byte. Returns the new length. */
static size_t damage(struct cw_random *random, uint8_t *bytes, size_t length)
{
    size_t at = (size_t)cw_random_below(random, length), run = (size_t)cw_random_below(random, CUT_MAX);
    uint8_t copy[CUT_MAX];
    run = run > length - at ? length - at : run;
    switch (cw_random_below(random, fuzz_target.seed == NULL ? 7 : 8)) {
    case 0:
        bytes[at] = (uint8_t)cw_random_next(random);
        return length;
    case 1:
        bytes[at] ^= (uint8_t)(1 << cw_random_below(random, 8));
        return length;
    case 2:
        bytes[at]++;
        return length;
    case 3:
        memset(bytes + at, cw_random_chance(random, 0.5) ? 0 : 0xff, run % 9);
        return length;
    case 4:
        return splice(bytes, length, at, run, "", 0);
    case 5:
        memcpy(copy, bytes + at, run);
        return splice(bytes, length, at, 0, copy, run);
    case 6:
        return cw_random_chance(random, 0.3) ? at : length;
    default:
        return graft(random, bytes, length, at, cw_random_below(random, 2) * (run % 9));
    }
}

/* A seed of the corpus, or random choices. */
static size_t seed_draw(struct cw_random *random, uint8_t *bytes)
{
    if (fuzz_target.seed != NULL) {
        return seed_any(random, bytes);
    }
    cw_random_fill(random, bytes, fuzz_target.bytes_max);
    return fuzz_target.bytes_max;
}

static size_t wounds(struct cw_random *random, uint8_t *bytes, size_t length)
{
    for (uint64_t count = cw_random_below(random, 4); count > 0 && length > 0; count--) {
        length = damage(random, bytes, length);
    }
    return length;
}

#if CW_HAVE_LIBFUZZER

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
int LLVMFuzzerInitialize(int *count, char ***arguments);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    struct cw_random random;
    cw_random_seed(&random, seed);
    if (size_max < fuzz_target.bytes_max) {
        return LLVMFuzzerMutate(data, size, size_max);
    }
    size = size < 2 || cw_random_chance(&random, 0.2) ? seed_draw(&random, data) : size;
    size = wounds(&random, data, size);
    return cw_random_chance(&random, 0.3) ? LLVMFuzzerMutate(data, size, size_max) : size;
}

/* A run of the test has no arguments: the environment sets the amount of work. */
int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    static char runs[40], seed[40], bytes_max[40];
    static char *own[] = {NULL, runs, seed, bytes_max, "-rss_limit_mb=0", "-verbosity=0", NULL};
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* libFuzzer writes the input of a failed assertion to a file */
    if (*count == 1) {
        uint64_t inputs = test_count("CW_TEST_PACKETS", PACKETS) / fuzz_target.packets;
        (void)snprintf(runs, sizeof(runs), "-runs=%llu", (unsigned long long)(inputs + 1));
        (void)snprintf(seed, sizeof(seed), "-seed=%llu", (unsigned long long)test_count("CW_TEST_SEED", 1));
        (void)snprintf(bytes_max, sizeof(bytes_max), "-max_len=%zu", fuzz_target.bytes_max);
        own[0] = (*arguments)[0];
        *count = (int)(sizeof(own) / sizeof(own[0])) - 1;
        *arguments = own;
    }
    return 0;
}

#else

/* The input of a seed of the test, in memory of its own length, so that a sanitizer sees reads beyond it. */
static void input_run(uint64_t seed)
{
    struct cw_random random;
    uint8_t *room = malloc(fuzz_target.bytes_max);
    cw_random_seed(&random, seed);
    size_t length = wounds(&random, room, seed_draw(&random, room));
    uint8_t *exact = malloc(length + (length == 0));
    memcpy(exact, room, length);
    free(room);
    (void)LLVMFuzzerTestOneInput(exact, length);
    free(exact);
}

int main(void)
{
    const struct sigaction action = {.sa_handler = test_seed_signal, .sa_flags = (int)SA_RESETHAND};
    const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    uint64_t packets = test_count("CW_TEST_PACKETS", PACKETS);
    struct test_seeds seeds = test_seeds(1, packets / fuzz_target.packets);
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends the process */
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
        (void)sigaction(crashes[i], &action, NULL);
    }
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        input_run(seed);
    }
    if (seeds.is_all && packets >= PACKETS_FEW && fuzz_target.end != NULL) {
        fuzz_target.end(seeds.count);
    }
    return 0;
}

#endif
