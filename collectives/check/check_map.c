/* check: a buffer in pieces. A sorted array: nearly all buffers have few pieces, or get them one after another. */
#include "collectives/check/state.h"

#include <string.h>

enum { PIECES_FIRST = 8 };

static int grow(struct check *check, struct check_map *map, uint32_t count)
{
    if (count <= map->limit) {
        return CW_OK;
    }
    if (count > UINT32_MAX / 4) {
        return CW_ERROR_MEMORY;
    }
    uint32_t limit = map->limit < PIECES_FIRST ? PIECES_FIRST : map->limit;
    while (limit < count) {
        limit *= 2;
    }
    struct check_piece *pieces = check_allocate(&check->arena, limit, sizeof(*pieces));
    if (pieces == NULL) {
        return CW_ERROR_MEMORY;
    }
    if (map->count > 0) {
        memcpy(pieces, map->pieces, map->count * sizeof(*pieces));
    }
    map->pieces = pieces; /* the old ones stay in the arena: at most the size of the new ones */
    map->limit = limit;
    return CW_OK;
}

int check_map_init(struct check *check, struct check_map *map, uint64_t bytes, uint32_t a, uint32_t b)
{
    *map = (struct check_map){.bytes = bytes};
    if (grow(check, map, 1) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    map->pieces[0] = (struct check_piece){.a = a, .b = b};
    map->count = 1;
    return CW_OK;
}

uint32_t check_map_find(const struct check_map *map, uint64_t byte)
{
    uint32_t low = 0;
    uint32_t high = map->count;
    if (map->pieces[high - 1].begin <= byte) { /* where pipelines continue */
        return high - 1;
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (map->pieces[middle].begin <= byte) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

int check_map_split(struct check *check, struct check_map *map, uint64_t byte)
{
    if (byte >= map->bytes) {
        return CW_OK;
    }
    uint32_t found = check_map_find(map, byte);
    if (map->pieces[found].begin == byte) {
        return CW_OK;
    }
    if (grow(check, map, map->count + 1) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    struct check_piece *piece = &map->pieces[found];
    memmove(piece + 2, piece + 1, (map->count - found - 1) * sizeof(*piece));
    piece[1] = piece[0];
    piece[1].begin = byte;
    piece[1].offset += byte - piece[0].begin;
    map->count++;
    return CW_OK;
}

int check_map_replace(struct check *check, struct check_map *map, uint64_t begin, uint64_t end,
                      const struct check_piece *pieces, uint32_t count)
{
    assert(begin < end && end <= map->bytes && count > 0 && pieces[0].begin == begin);
    if (check_map_split(check, map, begin) != CW_OK || check_map_split(check, map, end) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    uint32_t first = check_map_find(map, begin);
    uint32_t last = end == map->bytes ? map->count : check_map_find(map, end); /* the first one that stays */
    bool join_before = first > 0 && check_continues(&map->pieces[first - 1], &pieces[0]);
    bool join_after = last < map->count && check_continues(&pieces[count - 1], &map->pieces[last]);
    if (join_before) { /* then the first new piece is no piece of its own */
        pieces++;
        count--;
    }
    if (join_after) {
        last++;
    }
    uint32_t total = map->count - (last - first) + count;
    if (grow(check, map, total) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    memmove(map->pieces + first + count, map->pieces + last, (map->count - last) * sizeof(*pieces));
    if (count > 0) {
        memcpy(map->pieces + first, pieces, count * sizeof(*pieces));
    }
    map->count = total;
    return CW_OK;
}
