/* check: every two accesses to the same bytes of which one writes are ordered.
 *
 * Accesses are taken in the order of their starts, each with the event that ends it. For each byte we keep the last
 * write and the reads since. A new access must come after them: the accesses before those need no further check. */
#include "collectives/check/state.h"

struct reader {
    uint32_t end; /* event */
    uint32_t next;
};

struct races {
    struct check *check;
    struct check_map
        *maps; /* [2 * rank + (scratch ? 1 : 0)]; a: the event that ends the last write, b: readers since */
    struct reader *readers; /* 0 ends a list */
    uint32_t reader_count;
    uint32_t reader_limit;
};

struct access {
    uint32_t rank;
    uint32_t buffer;
    uint64_t begin;
    uint64_t bytes;
    uint32_t start; /* events */
    uint32_t end;
    bool write;
};

static int add_reader(struct races *races, uint32_t end, uint32_t next, uint32_t *reader)
{
    if (races->reader_count == races->reader_limit) {
        uint32_t limit = races->reader_limit == 0 ? 256 : races->reader_limit * 2;
        struct reader *readers = check_allocate(&races->check->arena, limit, sizeof(*readers));
        if (readers == NULL || limit < races->reader_limit) {
            return CW_ERROR_MEMORY;
        }
        for (uint32_t i = 0; i < races->reader_count; i++) {
            readers[i] = races->readers[i];
        }
        races->readers = readers;
        races->reader_limit = limit;
        races->reader_count = races->reader_count == 0 ? 1 : races->reader_count;
    }
    *reader = races->reader_count++;
    races->readers[*reader] = (struct reader){.end = end, .next = next};
    return CW_OK;
}

/* The access that ends with that event: the put's, if a wait ends a direct put's write. */
static uint32_t accessor(const struct check *check, uint32_t end)
{
    uint32_t instance = end / 2;
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    bool direct_wait = op->kind == CW_OP_WAIT && (op->flags & CW_OP_EAGER) == 0;
    return direct_wait ? check->messages[check->instance_message[instance]].put : instance;
}

/* The report stands at the one that writes; of two that write, at the one of higher rank and op. */
static int race(struct races *races, const struct access *access, uint32_t other_end, bool other_writes, uint64_t begin,
                uint64_t end)
{
    struct check *check = races->check;
    uint32_t self = access->start / 2;
    uint32_t other = accessor(check, other_end);
    bool self_first = access->write && (!other_writes || self > other);
    uint32_t writer = self_first ? self : other;
    uint32_t second = self_first ? other : self;
    if (self == other) {
        return check_fail(
            check, CW_CHECK_RACE, self, begin,
            "it writes bytes %llu..%llu of the %s buffer of rank %u and reads or writes them itself meanwhile",
            (unsigned long long)begin, (unsigned long long)end - 1, cw_buffer_name(access->buffer), access->rank);
    }
    return check_fail(
        check, CW_CHECK_RACE, writer, begin,
        "bytes %llu..%llu of the %s buffer of rank %u may be written while %s %s them; nothing orders the two",
        (unsigned long long)begin, (unsigned long long)end - 1, cw_buffer_name(access->buffer), access->rank,
        check_name(check, second).text, access->write && other_writes ? "writes" : "reads");
}

static int validate_piece(struct races *races, const struct access *access, const struct check_map *map, uint32_t piece)
{
    struct check *check = races->check;
    const struct check_piece *found = &map->pieces[piece];
    uint64_t begin = found->begin;
    uint64_t end = check_map_end(map, piece);
    if (access->write) {
        for (uint32_t i = found->b; i != 0; i = races->readers[i].next) {
            if (!check_reach(check, races->readers[i].end)) {
                return race(races, access, races->readers[i].end, false, begin, end);
            }
        }
        if (found->b != 0) { /* they came after the write */
            return CW_OK;
        }
    }
    if (found->a != CHECK_NONE && !check_reach(check, found->a)) {
        return race(races, access, found->a, true, begin, end);
    }
    return CW_OK;
}

static int add_access(struct races *races, const struct access *access)
{
    struct check *check = races->check;
    if (access->bytes == 0 || access->buffer == CW_BUFFER_SEND) {
        return CW_OK;
    }
    struct check_map *map = &races->maps[2 * access->rank + (access->buffer == CW_BUFFER_SCRATCH ? 1 : 0)];
    if (map->pieces == NULL &&
        check_map_init(check, map, check_buffer_bytes(check, access->rank, access->buffer), CHECK_NONE, 0) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    uint64_t end = access->begin + access->bytes;
    assert(end <= map->bytes);
    if (check_map_split(check, map, access->begin) != CW_OK || check_map_split(check, map, end) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    check_reach_from(check, access->start);
    for (uint32_t i = check_map_find(map, access->begin); i < map->count && map->pieces[i].begin < end; i++) {
        int status = validate_piece(races, access, map, i);
        if (status == CW_OK && !access->write) {
            status = add_reader(races, access->end, map->pieces[i].b, &map->pieces[i].b);
        }
        if (status != CW_OK) {
            return status;
        }
    }
    if (access->write) {
        struct check_piece piece = {.begin = access->begin, .a = access->end, .b = 0};
        return check_map_replace(check, map, access->begin, end, &piece, 1);
    }
    return CW_OK;
}

static int add_put(struct races *races, uint32_t instance)
{
    struct check *check = races->check;
    uint32_t rank = check_rank(check, instance);
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t iteration = check_iteration(check, instance);
    struct access access = {.rank = rank,
                            .buffer = op->from.buffer,
                            .begin = cw_place_offset(&op->from, iteration),
                            .bytes = cw_op_bytes(op, iteration),
                            .start = check_start(instance),
                            .end = check_end(instance)};
    int status = add_access(races, &access);
    uint32_t fan = (op->flags & CW_OP_EAGER) != 0 ? 0 : check_fan(check, rank, op);
    for (uint32_t i = 0; i < fan && status == CW_OK; i++) {
        const struct check_message *message = &check->messages[check->instance_message[instance] + i];
        access.rank = message->target;
        access.buffer = op->to.buffer;
        access.begin = cw_place_offset(&op->to, iteration);
        access.end = check_end(message->wait);
        access.write = true;
        status = add_access(races, &access);
    }
    return status;
}

/* A copy, a reduce or the wait for an eager put. */
static int add_local(struct races *races, uint32_t instance)
{
    struct check *check = races->check;
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t iteration = check_iteration(check, instance);
    uint32_t blocks = op->kind == CW_OP_COPY ? op->blocks : 1;
    struct access from = {.rank = check_rank(check, instance),
                          .buffer = op->from.buffer,
                          .begin = cw_place_offset(&op->from, iteration),
                          .start = check_start(instance),
                          .end = check_end(instance)};
    struct access to = from;
    to.buffer = op->to.buffer;
    to.begin = cw_place_offset(&op->to, iteration);
    to.write = true;
    int status = CW_OK;
    for (uint32_t i = 0; i < blocks && op->kind != CW_OP_WAIT && status == CW_OK; i++) {
        from.bytes = blocks == 1 ? cw_op_bytes(op, iteration) : i + 1 < blocks ? op->bytes : op->last_bytes;
        status = add_access(races, &from);
        from.begin += op->from_stride;
    }
    for (uint32_t i = 0; i < blocks && status == CW_OK; i++) {
        to.bytes = blocks == 1 ? cw_op_bytes(op, iteration) : i + 1 < blocks ? op->bytes : op->last_bytes;
        status = add_access(races, &to);
        to.begin += op->to_stride;
    }
    return status;
}

/* A call among the ranks of a host: the others read and write what this rank names, from its start to its end. */
static int add_host(struct races *races, uint32_t instance)
{
    struct check_host host = check_host_of(races->check, instance);
    struct access access = {.rank = host.schedule->rank,
                            .buffer = host.op->from.buffer,
                            .begin = host.op->from.offset,
                            .bytes = check_host_read(&host),
                            .start = check_start(instance),
                            .end = check_end(instance)};
    int status = add_access(races, &access);
    access.buffer = host.op->to.buffer;
    access.begin = host.op->to.offset;
    access.bytes = check_host_written(&host);
    access.write = true;
    return status == CW_OK ? add_access(races, &access) : status;
}

int check_races(struct check *check)
{
    struct check_mark mark = check_arena_mark(&check->arena);
    struct races races = {
        .check = check, .maps = check_allocate_zero(&check->arena, 2 * (size_t)check->ranks, sizeof(struct check_map))};
    int status = races.maps == NULL ? CW_ERROR_MEMORY : CW_OK;
    for (uint32_t i = 0; i < check->event_count && status == CW_OK; i++) {
        uint32_t event = check->order[i];
        if (check_is_end(event) || !check_is_own(check, event / 2)) {
            continue;
        }
        const struct cw_op *op = check_op(check, check->instance_op[event / 2]);
        if (check_is_put(op)) {
            status = add_put(&races, event / 2);
        } else if (op->kind == CW_OP_HOST) {
            status = add_host(&races, event / 2);
        } else if (op->kind == CW_OP_COPY || op->kind == CW_OP_REDUCE ||
                   (op->kind == CW_OP_WAIT && (op->flags & CW_OP_EAGER) != 0)) {
            status = add_local(&races, event / 2);
        }
    }
    check_arena_rewind(&check->arena, mark);
    return status;
}
