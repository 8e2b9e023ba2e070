/* Pairs: each rank of the first half sends to one of the second half, several messages in flight, all pairs at a time:
 * the throughput of a link between two halves. Every word of every message is verified. */
#include "apps/kernels/kernel.h"

#include <stdio.h>
#include <stdlib.h>

enum { WINDOW_MAX = 64 };

struct pairs {
    struct kernel kernel;
    long bytes;
    long messages;
    long window;
    long both; /* 1: the second half sends to the first as well */
};

static const char usage[] = "pairs [--bytes N] [--messages N] [--window N] [--both 1]";
static const char help[] = "Rank r of the first half sends to rank r + half; the rate is that of all data together, "
                           "from the barrier before to the last message.\n"
                           "\n"
                           "  --bytes N     of a message, a multiple of 8 up to 64 MiB (1048576)\n"
                           "  --messages N  of each pair, up to 1000000 (64)\n"
                           "  --window N    messages in flight at a time, up to 64 (4)\n"
                           "  --both 1      the second half sends to the first as well (0)\n"
                           "\n"
                           "Started by an MPI launcher with an even number of ranks, 2 to 64: causeway run -n 8 pairs\n"
                           "Every word of every message is verified.\n"
                           "Exit codes: 0 verified, 1 wrong result, 2 wrong usage, 3 out of memory.\n";

/* A word of a message: encodes the sender, the message, and the place in it. */
static uint64_t word_of(int sender, long message, long index)
{
    return (uint64_t)sender << 56 ^ (uint64_t)message << 32 ^ (uint64_t)index * 0x9e3779b97f4a7c15ull;
}

static void words_write(const struct pairs *pairs, long message, uint64_t *words)
{
    for (long i = 0; i < pairs->bytes / 8; i++)
        words[i] = word_of(pairs->kernel.rank, message, i);
}

static void words_check(struct pairs *pairs, int sender, long message, const uint64_t *words)
{
    long i = 0;
    while (i < pairs->bytes / 8 && words[i] == word_of(sender, message, i))
        i++;
    kernel_require(&pairs->kernel, i == pairs->bytes / 8, "word %ld of message %ld from rank %d is wrong", i, message,
                   sender);
}

/* One direction of a pair: buffers in a ring, requests in order. */
static void stream(struct pairs *pairs, int partner, bool sends, uint64_t *words, MPI_Request *requests, long message)
{
    long slot = message % pairs->window;
    uint64_t *at = words + slot * (pairs->bytes / 8);
    if (message >= pairs->window) {
        MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
        if (!sends)
            words_check(pairs, partner, message - pairs->window, at);
    }
    if (message >= pairs->messages)
        return;
    if (sends) {
        words_write(pairs, message, at);
        MPI_Isend(at, (int)pairs->bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &requests[slot]);
    } else {
        MPI_Irecv(at, (int)pairs->bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &requests[slot]);
    }
}

static void run(struct pairs *pairs)
{
    bool first = pairs->kernel.rank < pairs->kernel.ranks / 2;
    int partner = pairs->kernel.rank + (first ? 1 : -1) * (pairs->kernel.ranks / 2);
    bool works[2] = {first || pairs->both != 0, !first || pairs->both != 0}; /* sends, receives */
    uint64_t *words[2];
    MPI_Request requests[2][WINDOW_MAX];
    for (int i = 0; i < 2; i++)
        words[i] = kernel_allocate(works[i] ? (size_t)(pairs->window * pairs->bytes) : 8, 1);
    kernel_timer_start(&pairs->kernel);
    for (long message = 0; message < pairs->messages + pairs->window; message++) {
        for (int i = 0; i < 2; i++) {
            if (works[i])
                stream(pairs, partner, i == 0, words[i], requests[i], message);
        }
    }
    kernel_timer_stop(&pairs->kernel);
    for (int i = 0; i < 2; i++)
        free(words[i]);
}

static const struct kernel_about about = {.name = "pairs"};

int main(int argc, char **argv)
{
    struct pairs pairs = {.bytes = 1 << 20, .messages = 64, .window = 4};
    const struct kernel_number numbers[] = {
        {"--bytes", &pairs.bytes, 8, 64 << 20, 8},
        {"--messages", &pairs.messages, 1, 1000000, 1},
        {"--window", &pairs.window, 1, WINDOW_MAX, 1},
        {"--both", &pairs.both, 0, 1, 1},
    };
    int exit_code;
    double most = 0;
    kernel_open(&pairs.kernel, &about, &argc, &argv);
    if (!kernel_numbers(&pairs.kernel, numbers, 4, argc, argv, usage, help, &exit_code))
        return exit_code;
    if (pairs.kernel.ranks % 2 != 0) {
        if (pairs.kernel.rank == 0)
            fprintf(stderr, "pairs: an even number of ranks is wanted, not %d\n", pairs.kernel.ranks);
        kernel_close();
        return KERNEL_EXIT_USAGE;
    }
    pairs.window = pairs.window < pairs.messages ? pairs.window : pairs.messages;
    run(&pairs);
    bool right = kernel_is_verified(&pairs.kernel);
    MPI_Reduce(&pairs.kernel.seconds, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (pairs.kernel.rank == 0) {
        double bits = 8.0 * (double)pairs.bytes * (double)pairs.messages * pairs.kernel.ranks / 2;
        printf("pairs: %d pairs, %ld messages of %ld bytes each%s: %.6f s, %.1f Mb/s%s, %s\n", pairs.kernel.ranks / 2,
               pairs.messages, pairs.bytes, pairs.both != 0 ? ", both ways" : "", most, bits / most / 1e6,
               pairs.both != 0 ? " in each direction" : "", right ? "verified" : "NOT VERIFIED");
    }
    kernel_close();
    return right ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_FAILURE;
}
