/* Long gets from ranks with several loops: each loop gets parts as fast as it can, so that a slow one delays at most
 * its last part. Half of the parts and more are in flight at first, so that a path of any length is filled. */
#include <stdlib.h>

#include "dataplane/path/path_private.h"

enum {
    PART_BYTES_LEAST = 65536,
    PARTS_A_LOOP = 8,    /* at least, if they are not too short */
    PARTS_UNDER_WAY = 4, /* by each loop */
    PART_ALIGN = 4096,
};

struct path_division {
    enum cw_element element;
    struct path_division *next; /* in the list of divisions that wait for room */
    bool waits;
    struct path_wire_operation *whole; /* its region and its caller's number */
    uint64_t token;
    uint64_t offset; /* in the peer's region */
    uint64_t bytes;
    uint64_t part_bytes;
    uint64_t posted; /* bytes */
    uint32_t open;   /* parts in progress ... */
    int status;
    uint32_t ways;
    uint8_t open_on[]; /* ... on each way */
};

/* Posts the next part on a loop. CW_OK; CW_ERROR_AGAIN; an error that makes the whole fail. */
static int part_post(struct cw_paths *paths, struct path_division *division, uint32_t way)
{
    const struct path_peer *peer = &paths->peers[division->whole->rank];
    struct path_wire_operation *part = calloc(1, sizeof(*part));
    if (part == NULL) {
        return CW_ERROR_MEMORY;
    }
    uint64_t left = division->bytes - division->posted;
    uint64_t bytes = left < division->part_bytes ? left : division->part_bytes;
    part->kind = WIRE_PART;
    part->rank = division->whole->rank;
    part->operation = way;
    part->division = division;
    struct cw_get get = {
        .peer = peer->wire_peer,
        .region = division->token,
        .offset = division->offset + division->posted,
        .bytes = bytes,
        .local_region = division->whole->region,
        .local_offset = division->posted,
        .context = (uint64_t)(uintptr_t)part,
        .element = division->element,
    };
    int status = cw_loop_get(paths->config.set.loops[way], &get);
    if (status != CW_OK) {
        paths->counters.refusals += status == CW_ERROR_AGAIN;
        free(part);
        return status;
    }
    division->posted += bytes;
    division->open++;
    division->open_on[way]++;
    return CW_OK;
}

/* One part for each way in turn, as long as they may have more. */
static void parts_post(struct cw_paths *paths, struct path_division *division)
{
    int status = division->status;
    for (uint32_t round = 1; status == CW_OK && round <= PARTS_UNDER_WAY; round++) {
        for (uint32_t way = 0; status == CW_OK && way < division->ways && division->posted < division->bytes; way++) {
            if (division->open_on[way] < round) {
                status = part_post(paths, division, way);
            }
        }
    }
    division->status = status == CW_ERROR_AGAIN ? CW_OK : status;
}

/* Something of it is left, and no part is in flight that would return to it. */
static void wait_for_room(struct cw_paths *paths, struct path_division *division)
{
    if (division->status == CW_OK && division->open == 0 && division->posted < division->bytes && !division->waits) {
        division->waits = true;
        division->next = paths->divisions;
        paths->divisions = division;
    }
}

/* Advances, or ends. */
static void advance(struct cw_paths *paths, struct path_division *division)
{
    parts_post(paths, division);
    wait_for_room(paths, division);
    if (division->open == 0 && !division->waits) {
        struct path_wire_operation *whole = division->whole;
        int status = division->status;
        free(division);
        path_wire_end(paths, whole, status);
    }
}

static uint64_t part_bytes(uint64_t bytes, uint32_t ways)
{
    uint64_t part = bytes / ((uint64_t)ways * PARTS_A_LOOP);
    part = part < PART_BYTES_LEAST ? PART_BYTES_LEAST : part;
    return (part + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

int path_stripe_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                    void *to, uint64_t bytes, enum cw_element element, uint64_t operation)
{
    const struct path_peer *peer = &paths->peers[rank];
    if (peer->loops < 2 || bytes < 2 * PART_BYTES_LEAST) {
        return CW_ERROR_UNSUPPORTED;
    }
    int status;
    uint32_t ways = peer->loops;
    struct path_division *division = calloc(1, sizeof(*division) + ways * sizeof(division->open_on[0]));
    struct path_wire_operation *whole =
        division == NULL ? NULL : path_wire_begin(paths, rank, to, bytes, operation, &status);
    if (whole == NULL) {
        status = division == NULL ? CW_ERROR_MEMORY : status;
        free(division);
        return status;
    }
    whole->kind = WIRE_GET;
    *division = (struct path_division){
        .whole = whole,
        .token = registration->token,
        .element = element,
        .offset = offset,
        .bytes = bytes,
        .part_bytes = part_bytes(bytes, ways),
        .ways = ways,
    };
    parts_post(paths, division);
    if (division->open == 0) {
        status = division->status == CW_OK ? CW_ERROR_AGAIN : division->status;
        free(division);
        path_wire_drop(paths, whole);
        return status;
    }
    return CW_OK;
}

void path_stripe_ended(struct cw_paths *paths, struct path_wire_operation *part, int status)
{
    struct path_division *division = part->division;
    division->open--;
    division->open_on[part->operation]--;
    division->status = division->status == CW_OK ? status : division->status;
    free(part);
    advance(paths, division);
}

void path_stripe_poll(struct cw_paths *paths)
{
    struct path_division *division = paths->divisions;
    paths->divisions = NULL;
    while (division != NULL) {
        struct path_division *next = division->next;
        division->waits = false;
        advance(paths, division);
        division = next;
    }
}
