/* check: the value of each byte. Since accesses are ordered, one order of the events gives the same result as all.
 *
 * The value of a byte is a node (one rank's operand, or a combination of several) and an offset in the send buffers. A
 * put's bytes are read at its start. A direct put's may be written at once: no other access touches the place before
 * the wait has ended. An eager one's are kept until its wait ends. */
#include "collectives/check/state.h"

/* A stretch of a value on its way. */
struct run {
    uint64_t bytes;
    uint64_t offset;
    uint32_t node;
    uint32_t next;
};

struct values {
    struct check *check;
    struct check_map *receive; /* by rank; a: node, CHECK_NONE: undefined */
    struct check_map *scratch;
    struct check_nodes nodes;
    struct check_piece *read[2]; /* values that were read, by operand */
    uint32_t read_count[2];
    uint32_t read_limit[2];
    struct run *runs; /* of eager puts in flight */
    uint32_t run_count;
    uint32_t run_limit;
    uint32_t run_free;
    uint32_t *message_run; /* by message */
    uint32_t *host_run;    /* by instance: a rank's contribution to a host op; NULL: there are none */
};

static struct check_map *find_map(struct values *values, uint32_t rank, uint32_t buffer)
{
    struct check_map *map = buffer == CW_BUFFER_RECEIVE ? &values->receive[rank] : &values->scratch[rank];
    if (map->pieces == NULL && check_map_init(values->check, map, check_buffer_bytes(values->check, rank, buffer),
                                              CHECK_NONE, CHECK_NONE) != CW_OK) {
        return NULL;
    }
    return map;
}

static int add_piece(struct values *values, int operand, struct check_piece piece)
{
    uint32_t count = values->read_count[operand];
    if (count == values->read_limit[operand]) {
        uint32_t limit = count == 0 ? 64 : count * 2;
        struct check_piece *pieces = check_allocate(&values->check->arena, limit, sizeof(*pieces));
        if (pieces == NULL || limit < count) {
            return CW_ERROR_MEMORY;
        }
        for (uint32_t i = 0; i < count; i++) {
            pieces[i] = values->read[operand][i];
        }
        values->read[operand] = pieces;
        values->read_limit[operand] = limit;
    }
    values->read[operand][values->read_count[operand]++] = piece;
    return CW_OK;
}

/* Reads bytes for `instance` into read[operand], with begins as if they lay at `begin`. */
static int read_bytes(struct values *values, uint32_t instance, uint32_t buffer, uint64_t offset, uint64_t bytes,
                      uint64_t begin, int operand)
{
    uint32_t rank = check_rank(values->check, instance);
    values->read_count[operand] = 0;
    if (buffer == CW_BUFFER_SEND) {
        return add_piece(values, operand,
                         (struct check_piece){.begin = begin, .offset = offset, .a = rank, .b = CHECK_NONE});
    }
    const struct check_map *map = find_map(values, rank, buffer);
    if (map == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = check_map_find(map, offset); i < map->count && map->pieces[i].begin < offset + bytes; i++) {
        struct check_piece piece = map->pieces[i];
        uint64_t first = piece.begin < offset ? offset : piece.begin;
        if (piece.a == CHECK_NONE) {
            return check_fail(values->check, CW_CHECK_READ_UNDEFINED, instance, first,
                              "reads byte %llu of the %s buffer, which was never written", (unsigned long long)first,
                              cw_buffer_name(buffer));
        }
        piece.offset += first - piece.begin;
        piece.begin = begin + (first - offset);
        if (add_piece(values, operand, piece) != CW_OK) {
            return CW_ERROR_MEMORY;
        }
    }
    return CW_OK;
}

/* Writes read[0], which has its final begins. Faults name `instance`. */
static int write_bytes(struct values *values, uint32_t instance, uint32_t rank, uint32_t buffer, uint64_t begin,
                       uint64_t bytes)
{
    struct check *check = values->check;
    struct check_map *map = find_map(values, rank, buffer);
    if (map == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = check_map_find(map, begin);
         !check->reduces && buffer == CW_BUFFER_RECEIVE && i < map->count && map->pieces[i].begin < begin + bytes;
         i++) {
        if (map->pieces[i].a != CHECK_NONE) {
            uint64_t byte = map->pieces[i].begin < begin ? begin : map->pieces[i].begin;
            return check_fail(check, CW_CHECK_WRITTEN_TWICE, instance, byte,
                              "writes byte %llu of the receive buffer of rank %u, which has been written before",
                              (unsigned long long)byte, rank);
        }
    }
    return check_map_replace(check, map, begin, begin + bytes, values->read[0], values->read_count[0]);
}

static int do_copy(struct values *values, uint32_t instance)
{
    struct check *check = values->check;
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t iteration = check_iteration(check, instance);
    uint64_t from = cw_place_offset(&op->from, iteration);
    uint64_t to = cw_place_offset(&op->to, iteration);
    for (uint32_t i = 0; i < op->blocks; i++) {
        uint64_t bytes = op->blocks == 1 ? cw_op_bytes(op, iteration) : i + 1 < op->blocks ? op->bytes : op->last_bytes;
        if (bytes > 0) {
            int status = read_bytes(values, instance, op->from.buffer, from, bytes, to, 0);
            if (status == CW_OK) {
                status = write_bytes(values, instance, check_rank(check, instance), op->to.buffer, to, bytes);
            }
            if (status != CW_OK) {
                return status;
            }
        }
        from += op->from_stride;
        to += op->to_stride;
    }
    return CW_OK;
}

/* A stretch of a reduction in which neither operand changes: `bytes` from `begin` of the written range; `at` is its
 * distance from the op's begin. */
static int combine(struct values *values, uint32_t instance, const struct check_piece *left,
                   const struct check_piece *right, uint64_t at, uint64_t begin, uint64_t bytes, uint32_t *node)
{
    struct check *check = values->check;
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint64_t left_offset = left->offset + (begin - left->begin);
    uint64_t right_offset = right->offset + (begin - right->begin);
    uint32_t element = check->problem->element_bytes;
    const char *buffer = cw_buffer_name(op->to.buffer);
    if (left_offset != right_offset) {
        return check_fail(check, CW_CHECK_WRONG_REDUCTION, instance, begin,
                          "byte %llu of the %s buffer: combines byte %llu of the vector with byte %llu",
                          (unsigned long long)begin, buffer, (unsigned long long)left_offset,
                          (unsigned long long)right_offset);
    }
    if (at % element != 0 || bytes % element != 0 || left_offset % element != 0) {
        return check_fail(check, CW_CHECK_WRONG_REDUCTION, instance, begin,
                          "byte %llu of the %s buffer: %llu bytes from byte %llu of the vector are not whole elements",
                          (unsigned long long)begin, buffer, (unsigned long long)bytes,
                          (unsigned long long)left_offset);
    }
    int status = check_nodes_combine(check, &values->nodes, left->a, right->a, node);
    if (status != CHECK_FAULT) {
        return status;
    }
    const struct check_node *a = &values->nodes.nodes[left->a];
    const struct check_node *b = &values->nodes.nodes[right->a];
    return check_fail(
        check, CW_CHECK_WRONG_REDUCTION, instance, begin,
        "byte %llu of the %s buffer: combines %u operands of ranks %u..%u with %u of ranks %u..%u, which %s",
        (unsigned long long)begin, buffer, a->operands, a->first, a->last - 1, b->operands, b->first, b->last - 1,
        check->problem->ordered ? "do not follow them" : "share one");
}

/* read[0] = read[left] OP read[1 - left], both of [begin, end). */
static int combine_all(struct values *values, uint32_t instance, uint64_t begin, uint64_t end, int left)
{
    /* A result ends where either operand changes. They go behind what was read[1], and from there into read[0]. */
    uint32_t one_count = values->read_count[1];
    int status = CW_OK;
    for (uint32_t i = 0, j = 0; status == CW_OK && i < one_count && j < values->read_count[0];) {
        const struct check_piece one = values->read[1][i];
        const struct check_piece zero = values->read[0][j];
        uint64_t one_end = i + 1 < one_count ? values->read[1][i + 1].begin : end;
        uint64_t zero_end = j + 1 < values->read_count[0] ? values->read[0][j + 1].begin : end;
        uint64_t first = one.begin > zero.begin ? one.begin : zero.begin;
        uint64_t stop = one_end < zero_end ? one_end : zero_end;
        struct check_piece result = {.begin = first, .offset = one.offset + (first - one.begin), .b = CHECK_NONE};
        status = combine(values, instance, left == 1 ? &one : &zero, left == 1 ? &zero : &one, first - begin, first,
                         stop - first, &result.a);
        uint32_t count = values->read_count[1];
        if (status == CW_OK && (count == one_count || !check_continues(&values->read[1][count - 1], &result))) {
            status = add_piece(values, 1, result);
        }
        i += one_end == stop ? 1 : 0;
        j += zero_end == stop ? 1 : 0;
    }
    values->read_count[0] = 0;
    for (uint32_t i = one_count; status == CW_OK && i < values->read_count[1]; i++) {
        status = add_piece(values, 0, values->read[1][i]);
    }
    return status;
}

static int do_reduce(struct values *values, uint32_t instance)
{
    struct check *check = values->check;
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t iteration = check_iteration(check, instance);
    uint64_t begin = cw_place_offset(&op->to, iteration);
    uint64_t end = begin + cw_op_bytes(op, iteration);
    if (!check->reduces) {
        return check_fail(check, CW_CHECK_WRONG_REDUCTION, instance, UINT64_MAX, "this collective only moves data");
    }
    if (begin == end) {
        return CW_OK;
    }
    int status = read_bytes(values, instance, op->to.buffer, begin, end - begin, begin, 1);
    if (status == CW_OK) {
        status =
            read_bytes(values, instance, op->from.buffer, cw_place_offset(&op->from, iteration), end - begin, begin, 0);
    }
    if (status == CW_OK) {
        status = combine_all(values, instance, begin, end, (op->flags & CW_OP_LEFT) != 0 ? 0 : 1);
    }
    return status == CW_OK
               ? write_bytes(values, instance, check_rank(check, instance), op->to.buffer, begin, end - begin)
               : status;
}

static int new_run(struct values *values, uint32_t *run)
{
    if (values->run_free != CHECK_NONE) {
        *run = values->run_free;
        values->run_free = values->runs[*run].next;
        return CW_OK;
    }
    if (values->run_count == values->run_limit) {
        uint32_t limit = values->run_limit == 0 ? 64 : values->run_limit * 2;
        struct run *runs = check_allocate(&values->check->arena, limit, sizeof(*runs));
        if (runs == NULL || limit < values->run_limit) {
            return CW_ERROR_MEMORY;
        }
        for (uint32_t i = 0; i < values->run_count; i++) {
            runs[i] = values->runs[i];
        }
        values->runs = runs;
        values->run_limit = limit;
    }
    *run = values->run_count++;
    return CW_OK;
}

/* Keeps read[0], which begins at 0, as a chain of runs. */
static int keep(struct values *values, uint32_t *chain, uint64_t bytes)
{
    uint32_t next = CHECK_NONE;
    uint64_t end = bytes;
    for (uint32_t i = values->read_count[0]; i-- > 0;) {
        const struct check_piece *piece = &values->read[0][i];
        uint32_t run = CHECK_NONE;
        if (new_run(values, &run) != CW_OK) {
            return CW_ERROR_MEMORY;
        }
        values->runs[run] =
            (struct run){.bytes = end - piece->begin, .offset = piece->offset, .node = piece->a, .next = next};
        end = piece->begin;
        next = run;
    }
    *chain = next;
    return CW_OK;
}

static int do_put(struct values *values, uint32_t instance)
{
    struct check *check = values->check;
    uint32_t rank = check_rank(check, instance);
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t iteration = check_iteration(check, instance);
    uint64_t bytes = cw_op_bytes(op, iteration);
    if (bytes == 0) {
        return CW_OK;
    }
    bool eager = (op->flags & CW_OP_EAGER) != 0;
    uint64_t begin = eager ? 0 : cw_place_offset(&op->to, iteration);
    uint64_t from = cw_place_offset(&op->from, iteration);
    int status = read_bytes(values, instance, op->from.buffer, from, bytes, begin, 0);
    uint32_t fan = check_fan(check, rank, op);
    for (uint32_t i = 0; i < fan && status == CW_OK; i++) {
        uint32_t message = check->instance_message[instance] + i;
        status = eager ? keep(values, &values->message_run[message], bytes)
                       : write_bytes(values, instance, check->messages[message].target, op->to.buffer, begin, bytes);
    }
    return status;
}

/* The end of the wait for an eager put. */
static int do_wait(struct values *values, uint32_t instance)
{
    struct check *check = values->check;
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t iteration = check_iteration(check, instance);
    uint64_t bytes = cw_op_bytes(op, iteration);
    if (bytes == 0) {
        return CW_OK;
    }
    uint64_t begin = cw_place_offset(&op->to, iteration);
    uint64_t at = begin;
    values->read_count[0] = 0;
    uint32_t run = values->message_run[check->instance_message[instance]];
    while (run != CHECK_NONE) {
        struct run *taken = &values->runs[run];
        struct check_piece piece = {.begin = at, .offset = taken->offset, .a = taken->node, .b = CHECK_NONE};
        if (add_piece(values, 0, piece) != CW_OK) {
            return CW_ERROR_MEMORY;
        }
        at += taken->bytes;
        uint32_t next = taken->next;
        taken->next = values->run_free;
        values->run_free = run;
        run = next;
    }
    assert(at == begin + bytes);
    return write_bytes(values, instance, check_rank(check, instance), op->to.buffer, begin, bytes);
}

/* ---- Calls among the ranks of a host: contributions are read when their ranks start, and combined when they end ----
 */

static int host_start(struct values *values, uint32_t instance)
{
    struct check_host host = check_host_of(values->check, instance);
    uint64_t bytes = check_host_read(&host);
    values->host_run[instance] = CHECK_NONE;
    if (bytes == 0) {
        return CW_OK;
    }
    int status = read_bytes(values, instance, host.op->from.buffer, host.op->from.offset, bytes, 0, 0);
    return status == CW_OK ? keep(values, &values->host_run[instance], bytes) : status;
}

/* Adds bytes [first, first + bytes) of a member's contribution to read[operand], as if they lay at `begin`. */
static int host_read(struct values *values, uint32_t instance, uint64_t first, uint64_t bytes, uint64_t begin,
                     int operand)
{
    uint64_t at = 0;
    for (uint32_t run = values->host_run[instance]; run != CHECK_NONE; run = values->runs[run].next) {
        const struct run *kept = &values->runs[run];
        uint64_t from = at > first ? at : first;
        uint64_t end = at + kept->bytes < first + bytes ? at + kept->bytes : first + bytes;
        if (from < end) {
            struct check_piece piece = {.begin = begin + (from - first),
                                        .offset = kept->offset + (from - at),
                                        .a = kept->node,
                                        .b = CHECK_NONE};
            if (add_piece(values, operand, piece) != CW_OK) {
                return CW_ERROR_MEMORY;
            }
        }
        at += kept->bytes;
    }
    return CW_OK;
}

/* Where the block for this rank lies in a member's contribution, and how long it is. */
static uint64_t host_block(const struct check *check, const struct check_host *host, uint32_t from, uint64_t *bytes)
{
    struct check_host its = check_host_of(check, check_host_instance(check, host, from));
    uint32_t blocks = cw_host_blocks_read(its.op->collective, its.members, its.index, its.root);
    *bytes = blocks > 1 ? check_host_bytes(&its, host->index, 1) : check_host_read(&its);
    return blocks > 1 ? check_host_bytes(&its, 0, host->index) : 0;
}

static int host_end(struct values *values, uint32_t instance)
{
    struct check *check = values->check;
    struct check_host host = check_host_of(check, instance);
    uint64_t total = check_host_written(&host), begin = host.op->to.offset, at = begin;
    bool reduces = cw_collective_reduces((enum cw_collective)host.op->collective);
    bool is_first = true;
    int status = CW_OK;
    values->read_count[0] = 0;
    for (uint32_t i = 0; total > 0 && i < host.members && status == CW_OK; i++) {
        uint32_t member = reduces ? host.members - 1 - i : i; /* operands are folded from the last one on */
        uint64_t bytes;
        if (!cw_host_needs(host.op->collective, host.index, member, host.root)) {
            continue;
        }
        uint64_t first = host_block(check, &host, member, &bytes);
        uint32_t its = check_host_instance(check, &host, member);
        bool combines = reduces && !is_first;
        values->read_count[1] = 0;
        status = host_read(values, its, first, bytes, at, combines ? 1 : 0);
        status = status == CW_OK && combines ? combine_all(values, instance, begin, begin + total, 1) : status;
        at += reduces ? 0 : bytes;
        is_first = false;
    }
    return status == CW_OK && total > 0
               ? write_bytes(values, instance, host.schedule->rank, host.op->to.buffer, begin, total)
               : status;
}

static int run_event(struct values *values, uint32_t event)
{
    struct check *check = values->check;
    uint32_t instance = event / 2;
    if (!check_is_own(check, instance)) {
        return CW_OK;
    }
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    if (check_is_end(event)) {
        return op->kind == CW_OP_HOST                                     ? host_end(values, instance)
               : op->kind == CW_OP_WAIT && (op->flags & CW_OP_EAGER) != 0 ? do_wait(values, instance)
                                                                          : CW_OK;
    }
    switch (op->kind) {
    case CW_OP_PUT:
    case CW_OP_MULTICAST:
        return do_put(values, instance);
    case CW_OP_COPY:
        return do_copy(values, instance);
    case CW_OP_REDUCE:
        return do_reduce(values, instance);
    case CW_OP_HOST:
        return host_start(values, instance);
    default:
        return CW_OK;
    }
}

int check_values(struct check *check)
{
    struct check_mark mark = check_arena_mark(&check->arena);
    struct values values = {
        .check = check,
        .receive = check_allocate_zero(&check->arena, check->ranks, sizeof(struct check_map)),
        .scratch = check_allocate_zero(&check->arena, check->ranks, sizeof(struct check_map)),
        .message_run = check_allocate(&check->arena, check->message_count, sizeof(uint32_t)),
        .host_run =
            check->host_count > 0 ? check_allocate(&check->arena, check->instance_count, sizeof(uint32_t)) : NULL,
        .run_free = CHECK_NONE,
    };
    if (values.receive == NULL || values.scratch == NULL || values.message_run == NULL ||
        (check->host_count > 0 && values.host_run == NULL)) {
        return CW_ERROR_MEMORY;
    }
    int status = check->reduces ? check_nodes_init(check, &values.nodes) : CW_OK;
    for (uint32_t i = 0; i < check->event_count && status == CW_OK; i++) {
        status = run_event(&values, check->order[i]);
    }
    for (uint32_t rank = 0; rank < check->ranks && status == CW_OK; rank++) {
        status = find_map(&values, rank, CW_BUFFER_RECEIVE) == NULL ? CW_ERROR_MEMORY : CW_OK;
    }
    status = status == CW_OK ? check_result(check, values.receive, &values.nodes) : status;
    check_arena_rewind(&check->arena, mark);
    return status;
}
