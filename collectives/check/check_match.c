/* check: every put meets its wait. */
#include "collectives/check/state.h"

struct matching {
    struct check *check;
    uint32_t *table; /* messages by key, CHECK_NONE: empty */
    uint32_t mask;
};

static uint64_t key_of(uint32_t source, uint32_t target, uint32_t tag)
{
    static_assert(CW_RANKS_MAX <= 1 << 20 && CW_SCHEDULE_TAG_BITS <= 24, "a key has 64 bits");
    return (uint64_t)source << 44 | (uint64_t)target << 24 | (tag & 0xffffff);
}

/* Where the message with that key is, or may be put. */
static uint32_t *find(const struct matching *matching, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    uint32_t slot = (uint32_t)(hash >> 32) & matching->mask;
    while (matching->table[slot] != CHECK_NONE && matching->check->messages[matching->table[slot]].key != key) {
        slot = (slot + 1) & matching->mask;
    }
    return &matching->table[slot];
}

static int count_messages(struct check *check, uint32_t *count)
{
    uint64_t messages = 0;
    for (uint32_t number = 0; number < check->op_count; number++) {
        const struct cw_op *op = check_op(check, number);
        if (check_is_put(op)) {
            messages += (uint64_t)check_fan(check, check->op_rank[number], op) * check_iterations(check, number);
            if (messages > CHECK_EVENTS_MAX / 2) {
                return CW_ERROR_MEMORY;
            }
        }
    }
    *count = (uint32_t)messages;
    return CW_OK;
}

static int validate_place(struct check *check, uint32_t instance, uint32_t target)
{
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t iteration = check_iteration(check, instance);
    uint64_t offset = cw_place_offset(&op->to, iteration);
    uint64_t bytes = cw_op_bytes(op, iteration);
    if (op->to.buffer != CW_BUFFER_RECEIVE && op->to.buffer != CW_BUFFER_SCRATCH) {
        return check_fail(check, CW_CHECK_INVALID, instance, UINT64_MAX, "a put into the %s buffer of rank %u",
                          cw_buffer_name(op->to.buffer), target);
    }
    uint64_t limit = check_buffer_bytes(check, target, op->to.buffer);
    if (bytes > limit || offset > limit - bytes) {
        return check_fail(check, CW_CHECK_OUT_OF_BOUNDS, instance, offset,
                          "%llu bytes at %llu, but the %s buffer of rank %u has %llu bytes", (unsigned long long)bytes,
                          (unsigned long long)offset, cw_buffer_name(op->to.buffer), target, (unsigned long long)limit);
    }
    return CW_OK;
}

/* Enters the messages of one instance of a put. */
static int add_put(struct matching *matching, uint32_t instance)
{
    struct check *check = matching->check;
    uint32_t rank = check_rank(check, instance);
    const struct cw_schedule *schedule = &check->plan->schedules[rank];
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t fan = check_fan(check, rank, op);
    check->instance_message[instance] = fan > 0 ? check->message_count : CHECK_NONE;
    for (uint32_t i = 0; i < fan; i++) {
        uint32_t target = op->kind == CW_OP_PUT ? op->peer : schedule->members[schedule->groups[op->peer].first + i];
        uint32_t tag = cw_op_tag(op, check_iteration(check, instance));
        uint64_t key = key_of(rank, target, tag);
        uint32_t *place = find(matching, key);
        if (*place != CHECK_NONE) {
            return check_fail(check, CW_CHECK_TAG_REUSED, instance, UINT64_MAX, "tag %u to rank %u is also that of %s",
                              tag, target, check_name(check, check->messages[*place].put).text);
        }
        *place = check->message_count;
        check->messages[check->message_count++] =
            (struct check_message){.key = key, .put = instance, .wait = CHECK_NONE, .source = rank, .target = target};
        if ((op->flags & CW_OP_EAGER) == 0) {
            check->has_direct = true;
            int status = validate_place(check, instance, target);
            if (status != CW_OK) {
                return status;
            }
        }
    }
    return CW_OK;
}

static int validate_pair(struct check *check, const struct check_message *message)
{
    const struct cw_op *put = check_op(check, check->instance_op[message->put]);
    const struct cw_op *wait = check_op(check, check->instance_op[message->wait]);
    uint32_t put_iteration = check_iteration(check, message->put);
    uint32_t wait_iteration = check_iteration(check, message->wait);
    unsigned long long sent = cw_op_bytes(put, put_iteration);
    unsigned long long expected = cw_op_bytes(wait, wait_iteration);
    if (sent != expected) {
        return check_fail(check, CW_CHECK_MISMATCH, message->put, UINT64_MAX, "it has %llu bytes, but %s expects %llu",
                          sent, check_name(check, message->wait).text, expected);
    }
    if (((put->flags ^ wait->flags) & CW_OP_EAGER) != 0) {
        return check_fail(check, CW_CHECK_MISMATCH, message->put, UINT64_MAX, "it is %s, but %s is %s",
                          put->flags & CW_OP_EAGER ? "eager" : "direct", check_name(check, message->wait).text,
                          wait->flags & CW_OP_EAGER ? "eager" : "direct");
    }
    if ((put->flags & CW_OP_EAGER) != 0) {
        return CW_OK;
    }
    unsigned long long there = cw_place_offset(&put->to, put_iteration);
    unsigned long long here = cw_place_offset(&wait->to, wait_iteration);
    if (put->to.buffer != wait->to.buffer || there != here) {
        return check_fail(check, CW_CHECK_MISMATCH, message->put, there,
                          "it goes to byte %llu of the %s buffer, but %s expects it at byte %llu of the %s buffer",
                          there, cw_buffer_name(put->to.buffer), check_name(check, message->wait).text, here,
                          cw_buffer_name(wait->to.buffer));
    }
    return CW_OK;
}

static int add_wait(struct matching *matching, uint32_t instance)
{
    struct check *check = matching->check;
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    uint32_t tag = cw_op_tag(op, check_iteration(check, instance));
    uint32_t found = *find(matching, key_of(op->peer, check_rank(check, instance), tag));
    if (found == CHECK_NONE) {
        return check_fail(check, CW_CHECK_UNMATCHED_WAIT, instance, UINT64_MAX, "rank %u has no put with tag %u to it",
                          op->peer, tag);
    }
    struct check_message *message = &check->messages[found];
    if (message->wait != CHECK_NONE) {
        return check_fail(check, CW_CHECK_UNMATCHED_WAIT, instance, UINT64_MAX,
                          "the only put of rank %u with tag %u is that of %s", op->peer, tag,
                          check_name(check, message->wait).text);
    }
    message->wait = instance;
    check->instance_message[instance] = found;
    return validate_pair(check, message);
}

static int add_all(struct matching *matching, bool puts)
{
    struct check *check = matching->check;
    for (uint32_t number = 0; number < check->op_count; number++) {
        const struct cw_op *op = check_op(check, number);
        if (puts ? !check_is_put(op) : op->kind != CW_OP_WAIT) {
            continue;
        }
        uint32_t first = check->op_first_instance[number];
        uint32_t iterations = check_iterations(check, number);
        for (uint32_t i = 0; i < iterations; i++) {
            int status = puts ? add_put(matching, first + i) : add_wait(matching, first + i);
            if (status != CW_OK) {
                return status;
            }
        }
    }
    return CW_OK;
}

static int find_unmatched(struct check *check)
{
    for (uint32_t i = 0; i < check->message_count; i++) {
        const struct check_message *message = &check->messages[i];
        if (message->wait == CHECK_NONE) {
            return check_fail(check, CW_CHECK_UNMATCHED_PUT, message->put, UINT64_MAX,
                              "rank %u has no wait for its tag %u", message->target,
                              (unsigned)(message->key & 0xffffff));
        }
    }
    return CW_OK;
}

int check_match(struct check *check)
{
    uint32_t messages = 0;
    if (count_messages(check, &messages) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    check->messages = check_allocate(&check->arena, messages, sizeof(*check->messages));
    check->instance_message = check_allocate(&check->arena, check->instance_count, sizeof(uint32_t));
    uint32_t slots = 16;
    while (slots < 2 * messages) {
        slots *= 2;
    }
    struct check_mark mark = check_arena_mark(&check->arena);
    struct matching matching = {
        .check = check, .table = check_allocate(&check->arena, slots, sizeof(uint32_t)), .mask = slots - 1};
    if (check->messages == NULL || check->instance_message == NULL || matching.table == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < slots; i++) {
        matching.table[i] = CHECK_NONE;
    }
    for (uint32_t i = 0; i < check->instance_count; i++) {
        check->instance_message[i] = CHECK_NONE;
    }
    int status = add_all(&matching, true);
    status = status == CW_OK ? add_all(&matching, false) : status;
    check_arena_rewind(&check->arena, mark);
    return status == CW_OK ? find_unmatched(check) : status;
}
