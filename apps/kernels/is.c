/* Integer sort: ranks keys between 0 and a maximum, ten times over, each time with two keys changed. Keys are counted
 * in buckets, all ranks learn the sums, each gets a range of buckets with about as many keys as the others
 * (all-to-all-v) and counts the keys of its range. */
#include "apps/kernels/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IS_ITERATIONS = 10,
    IS_BUCKET_BITS = 10,
    IS_BUCKETS = 1 << IS_BUCKET_BITS,
    IS_PROBES = 5,
};

/* A published rank: that of the key at `index` is rank + change * iteration. */
struct is_probe {
    int64_t index;
    int64_t rank;
    int change;
};

struct is_class {
    int count_bits;
    int key_bits;
    struct is_probe probes[IS_PROBES];
};

static const struct is_class classes[KERNEL_CLASSES] = {
    {16, 11, {{48427, 0, 1}, {17148, 18, 1}, {23627, 346, 1}, {62548, 64917, -1}, {4431, 65463, -1}}},
    {20,
     16,
     {{357773, 1247, 1}, {934767, 11696, 1}, {875723, 1039987, -1}, {898999, 1043896, -1}, {404505, 1048018, -1}}},
    {23,
     19,
     {{2112377, 103, 1}, {662041, 17522, 1}, {5336171, 123927, 1}, {3642833, 8288933, -1}, {4250760, 8388265, -1}}},
};

struct is_sort {
    struct kernel kernel;
    const struct is_class *class;
    int count; /* of all ranks */
    int key_end;
    int shift; /* key >> shift is its bucket */

    /* this rank's share of the sequence */
    int first;
    int share;
    int *keys;

    /* the counts of the buckets, and behind them the keys of the probes, so that one reduction serves all */
    int sums[IS_BUCKETS + IS_PROBES];
    int *outgoing;

    /* this rank's range of keys: those received, how many are below each key of the range, and in lower ranks */
    int range_begin;
    int range_end;
    int keys_below;
    int received;
    int incoming_room;
    int *incoming;
    int *below; /* range_end - range_begin + 1 entries */
};

/* ---- keys ---- */

static void keys_generate(const struct is_sort *sort, int *keys, int first, int count)
{
    uint64_t state = kernel_random_skip(KERNEL_RANDOM_SEED, 4 * (uint64_t)first);
    for (int i = 0; i < count; i++) {
        double sum = kernel_random(&state);
        sum += kernel_random(&state);
        sum += kernel_random(&state);
        sum += kernel_random(&state);
        keys[i] = (int)(sum * (sort->key_end / 4));
    }
}

/* Each iteration begins with two changed keys, the work being different each time. */
static void keys_change(const struct is_sort *sort, int *keys, int first, int count, int iteration)
{
    int low = iteration - first;
    int high = iteration + IS_ITERATIONS - first;
    if (low >= 0 && low < count)
        keys[low] = iteration;
    if (high >= 0 && high < count)
        keys[high] = sort->key_end - iteration;
}

/* ---- ranking ---- */

static void buckets_count(struct is_sort *sort, int counts[static IS_BUCKETS + IS_PROBES])
{
    memset(counts, 0, (IS_BUCKETS + IS_PROBES) * sizeof(*counts));
    for (int i = 0; i < sort->share; i++)
        counts[sort->keys[i] >> sort->shift]++;
    for (int i = 0; i < IS_PROBES; i++) {
        int64_t index = sort->class->probes[i].index - sort->first;
        if (index >= 0 && index < sort->share)
            counts[IS_BUCKETS + i] = sort->keys[index];
    }
}

/* Gives buckets to ranks by the number of keys before them, and returns this rank's keys. */
static void buckets_divide(struct is_sort *sort, const int *counts, int *send_counts)
{
    int ranks = sort->kernel.ranks;
    memset(send_counts, 0, (size_t)ranks * sizeof(*send_counts));
    sort->range_begin = sort->range_end = sort->keys_below = 0;
    int before = 0;
    for (int bucket = 0; bucket < IS_BUCKETS; bucket++) {
        int owner = (int)((int64_t)before * ranks / sort->count);
        if (owner >= ranks) /* empty buckets at the end */
            owner = ranks - 1;
        send_counts[owner] += counts[bucket];
        before += sort->sums[bucket];
        if (owner < sort->kernel.rank) {
            sort->range_begin = (bucket + 1) << sort->shift;
            sort->keys_below = before;
        }
        if (owner <= sort->kernel.rank)
            sort->range_end = (bucket + 1) << sort->shift;
    }
}

static void keys_pack(struct is_sort *sort, const int *counts)
{
    int next[IS_BUCKETS];
    kernel_offsets(next, counts, IS_BUCKETS);
    for (int i = 0; i < sort->share; i++) {
        int key = sort->keys[i];
        sort->outgoing[next[key >> sort->shift]++] = key;
    }
}

static void incoming_reserve(struct is_sort *sort, int room)
{
    if (room <= sort->incoming_room)
        return;
    free(sort->incoming);
    sort->incoming = kernel_allocate((size_t)room, sizeof(*sort->incoming));
    sort->incoming_room = room;
}

static void keys_exchange(struct is_sort *sort, const int *send_counts)
{
    int receive_counts[KERNEL_RANKS_MAX];
    int send_offsets[KERNEL_RANKS_MAX];
    int receive_offsets[KERNEL_RANKS_MAX];
    kernel_communication_begin(&sort->kernel);
    MPI_Alltoall(send_counts, 1, MPI_INT, receive_counts, 1, MPI_INT, MPI_COMM_WORLD);
    kernel_communication_end(&sort->kernel);

    kernel_offsets(send_offsets, send_counts, sort->kernel.ranks);
    sort->received = kernel_offsets(receive_offsets, receive_counts, sort->kernel.ranks);
    incoming_reserve(sort, sort->received);
    kernel_communication_begin(&sort->kernel);
    MPI_Alltoallv(sort->outgoing, send_counts, send_offsets, MPI_INT, sort->incoming, receive_counts, receive_offsets,
                  MPI_INT, MPI_COMM_WORLD);
    kernel_communication_end(&sort->kernel);
}

/* below[k]: keys of this rank that are less than range_begin + k */
static void keys_count(struct is_sort *sort)
{
    int width = sort->range_end - sort->range_begin;
    memset(sort->below, 0, ((size_t)width + 1) * sizeof(*sort->below));
    for (int i = 0; i < sort->received; i++)
        sort->below[sort->incoming[i] - sort->range_begin + 1]++;
    for (int i = 0; i < width; i++)
        sort->below[i + 1] += sort->below[i];
}

static void keys_rank(struct is_sort *sort)
{
    int counts[IS_BUCKETS + IS_PROBES];
    int send_counts[KERNEL_RANKS_MAX];
    buckets_count(sort, counts);
    kernel_communication_begin(&sort->kernel);
    MPI_Allreduce(counts, sort->sums, IS_BUCKETS + IS_PROBES, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    kernel_communication_end(&sort->kernel);
    buckets_divide(sort, counts, send_counts);
    keys_pack(sort, counts);
    keys_exchange(sort, send_counts);
    keys_count(sort);
}

/* ---- verification ---- */

static void probes_verify(struct is_sort *sort, int iteration)
{
    for (int i = 0; i < IS_PROBES; i++) {
        const struct is_probe *probe = &sort->class->probes[i];
        int key = sort->sums[IS_BUCKETS + i];
        if (key < sort->range_begin || key >= sort->range_end)
            continue;
        int64_t rank = sort->keys_below + (int64_t)sort->below[key - sort->range_begin];
        int64_t published = probe->rank + (int64_t)probe->change * iteration;
        kernel_require(&sort->kernel, rank == published, "iteration %d: key %lld has rank %lld, published is %lld",
                       iteration, (long long)probe->index, (long long)rank, (long long)published);
    }
}

/* Puts the received keys where their ranks say. */
static int *keys_sort(const struct is_sort *sort)
{
    int *sorted = kernel_allocate((size_t)sort->received, sizeof(*sorted));
    int *next = kernel_allocate((size_t)(sort->range_end - sort->range_begin), sizeof(*next));
    memcpy(next, sort->below, (size_t)(sort->range_end - sort->range_begin) * sizeof(*next));
    for (int i = 0; i < sort->received; i++)
        sorted[next[sort->incoming[i] - sort->range_begin]++] = sort->incoming[i];
    free(next);
    return sorted;
}

static void order_verify(struct is_sort *sort, const int *sorted)
{
    int disordered = 0;
    for (int i = 1; i < sort->received; i++)
        disordered += sorted[i - 1] > sorted[i];
    kernel_require(&sort->kernel, disordered == 0, "%d keys are less than the one before them", disordered);

    int largest = sort->received ? sorted[sort->received - 1] : -1;
    int largest_before = -1;
    MPI_Exscan(&largest, &largest_before, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (sort->kernel.rank > 0 && sort->received)
        kernel_require(&sort->kernel, largest_before <= sorted[0], "its first key %d is less than %d of a lower rank",
                       sorted[0], largest_before);
}

/* How often each key occurs, found by one rank alone. */
static void histogram_recompute(const struct is_sort *sort, int *histogram)
{
    int *keys = kernel_allocate((size_t)sort->count, sizeof(*keys));
    keys_generate(sort, keys, 0, sort->count);
    for (int i = 1; i <= IS_ITERATIONS; i++)
        keys_change(sort, keys, 0, sort->count, i);
    for (int i = 0; i < sort->count; i++)
        histogram[keys[i]]++;
    free(keys);
}

static void conservation_verify(struct is_sort *sort, const int *sorted)
{
    int *missing = kernel_allocate((size_t)sort->key_end, sizeof(*missing));
    if (sort->kernel.rank == 0)
        histogram_recompute(sort, missing);
    MPI_Bcast(missing, sort->key_end, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < sort->received; i++)
        missing[sorted[i]]--;
    int wrong = 0;
    for (int key = sort->range_begin; key < sort->range_end; key++)
        wrong += missing[key] != 0;
    kernel_require(&sort->kernel, wrong == 0, "%d keys occur more or less often than they should", wrong);
    free(missing);

    int64_t mine = sort->received;
    int64_t all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    kernel_require(&sort->kernel, all == sort->count, "%lld keys in all, not %d", (long long)all, sort->count);
}

/* ---- the program ---- */

static void sort_init(struct is_sort *sort)
{
    sort->class = &classes[sort->kernel.class_index];
    sort->count = 1 << sort->class->count_bits;
    sort->key_end = 1 << sort->class->key_bits;
    sort->shift = sort->class->key_bits - IS_BUCKET_BITS;
    sort->first = (int)kernel_share_begin(sort->count, sort->kernel.ranks, sort->kernel.rank);
    sort->share = (int)kernel_share_begin(sort->count, sort->kernel.ranks, sort->kernel.rank + 1) - sort->first;
    sort->keys = kernel_allocate((size_t)sort->share, sizeof(*sort->keys));
    sort->outgoing = kernel_allocate((size_t)sort->share, sizeof(*sort->outgoing));
    sort->below = kernel_allocate((size_t)sort->key_end + 1, sizeof(*sort->below));
    keys_generate(sort, sort->keys, sort->first, sort->share);
}

static void sort_dispose(struct is_sort *sort)
{
    free(sort->keys);
    free(sort->outgoing);
    free(sort->below);
    free(sort->incoming);
}

static const struct kernel_about about = {
    .name = "is",
    .purpose = "Integer sort: ranks random keys ten times; all-reduce, all-to-all, all-to-all-v.",
    .classes = {"2^16 keys below 2^11", "2^20 keys below 2^16", "2^23 keys below 2^19"},
    .work = "Mkeys",
};

int main(int argc, char **argv)
{
    struct is_sort sort = {0};
    int exit_code;
    if (!kernel_start(&sort.kernel, &about, argc, argv, &exit_code))
        return exit_code;
    sort_init(&sort);
    kernel_timer_start(&sort.kernel);
    for (int i = 1; i <= IS_ITERATIONS; i++) {
        keys_change(&sort, sort.keys, sort.first, sort.share, i);
        keys_rank(&sort);
        probes_verify(&sort, i);
    }
    kernel_timer_stop(&sort.kernel);

    int *sorted = keys_sort(&sort);
    order_verify(&sort, sorted);
    conservation_verify(&sort, sorted);
    free(sorted);
    sort_dispose(&sort);
    return kernel_finish(&sort.kernel, (double)IS_ITERATIONS * sort.count);
}
