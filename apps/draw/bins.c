#include "apps/draw/bins.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 256 };

void draw_bins_init(struct draw_bins *bins, uint64_t width_ns)
{
    assert(width_ns > 0);
    *bins = (struct draw_bins){.width_ns = width_ns};
}

void draw_bins_dispose(struct draw_bins *bins)
{
    free(bins->list);
    *bins = (struct draw_bins){.width_ns = 1};
}

static uint64_t greatest(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

static void bin_add(struct draw_bin *to, const struct draw_bin *what)
{
    to->bytes += what->bytes;
    to->dropped_frames += what->dropped_frames;
    to->queue_bytes = greatest(to->queue_bytes, what->queue_bytes);
    to->rate_bps = greatest(to->rate_bps, what->rate_bps);
    to->queue_limit_bytes = greatest(to->queue_limit_bytes, what->queue_limit_bytes);
}

void draw_bins_join(struct draw_bins *bins, uint32_t first, uint32_t factor)
{
    uint32_t count = 0;
    assert(factor > 0 && first <= bins->count);
    for (uint32_t i = first; i < bins->count; i += factor) {
        struct draw_bin sum = bins->list[i];
        for (uint32_t j = i + 1; j < bins->count && j - i < factor; j++) {
            bin_add(&sum, &bins->list[j]);
        }
        bins->list[count++] = sum;
    }
    bins->count = count;
    bins->width_ns *= factor;
}

/* Room for bins up to number `last`. */
static bool reserve(struct draw_bins *bins, uint32_t last)
{
    uint32_t room = bins->room > 0 ? bins->room : ROOM_FIRST;
    while (room <= last) {
        room *= 2;
    }
    if (room > bins->room) {
        struct draw_bin *list = realloc(bins->list, room * sizeof(*list));
        if (list == NULL) {
            return false;
        }
        bins->list = list;
        bins->room = room;
    }
    if (last >= bins->count) {
        memset(&bins->list[bins->count], 0, (last + 1 - bins->count) * sizeof(*bins->list));
        bins->count = last + 1;
    }
    return true;
}

/* The part of an amount that has come by `ns` of `all_ns`; rounded down, so that the differences of parts add up to the
 * whole. */
static uint64_t part(uint64_t amount, uint64_t ns, uint64_t all_ns)
{
    return ns >= all_ns ? amount : (uint64_t)((unsigned __int128)amount * ns / all_ns);
}

bool draw_bins_add(struct draw_bins *bins, uint64_t from_ns, uint64_t to_ns, const struct draw_bin *what)
{
    assert(from_ns <= to_ns);
    uint64_t last_ns = to_ns > from_ns ? to_ns - 1 : to_ns; /* a bin's end is not its own */
    while (last_ns / bins->width_ns >= DRAW_BINS_MAX) {
        draw_bins_join(bins, 0, 2);
    }
    uint32_t first = (uint32_t)(from_ns / bins->width_ns), last = (uint32_t)(last_ns / bins->width_ns);
    uint64_t all_ns = to_ns - from_ns;
    struct draw_bin before = {0};
    if (!reserve(bins, last)) {
        return false;
    }
    for (uint32_t i = first; i <= last; i++) {
        uint64_t so_far_ns = i == last ? all_ns : (i + 1) * bins->width_ns - from_ns;
        struct draw_bin piece = *what;
        uint64_t bytes = part(what->bytes, so_far_ns, all_ns);
        uint64_t dropped = part(what->dropped_frames, so_far_ns, all_ns);
        piece.bytes = bytes - before.bytes;
        piece.dropped_frames = dropped - before.dropped_frames;
        before.bytes = bytes;
        before.dropped_frames = dropped;
        bin_add(&bins->list[i], &piece);
    }
    return true;
}

static uint64_t bytes_of(const struct draw_bins *bins, uint32_t index)
{
    return index < bins->count ? bins->list[index].bytes : 0;
}

/* Moves `excess` bytes of bin `index` to the one before, from each part its share. */
static void parts_move(struct draw_bins *const *parts, uint32_t count, uint32_t index, uint64_t excess)
{
    uint64_t whole = 0, so_far = 0, moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        whole += bytes_of(parts[i], index);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = bytes_of(parts[i], index);
        if (bytes > 0) {
            so_far += bytes;
            uint64_t share = part(excess, so_far, whole) - moved;
            share = share < bytes ? share : bytes;
            moved += share;
            parts[i]->list[index].bytes -= share;
            parts[i]->list[index - 1].bytes += share;
        }
    }
}

void draw_bins_spread(struct draw_bins *total, struct draw_bins *const *parts, uint32_t count)
{
    for (uint32_t i = total->count; i-- > 1;) {
        struct draw_bin *bin = &total->list[i];
        uint64_t most = (uint64_t)((unsigned __int128)bin->rate_bps * total->width_ns / 8000000000u);
        if (bin->rate_bps > 0 && bin->bytes > most) {
            parts_move(parts, count, i, bin->bytes - most);
            total->list[i - 1].bytes += bin->bytes - most;
            bin->bytes = most;
        }
    }
}
