/* check: the contents of receive buffers that the MPI standard (5.0, chapter 6) requires of a collective. */
#include "collectives/check/state.h"

/* How many parts the receive buffer of a rank has; each comes from one rank, or is combined from a row of ranks. */
static uint32_t expected_count(const struct cw_problem *problem, uint32_t rank)
{
    switch (problem->collective) {
    case CW_BCAST: /* the root has the data where it is */
        return rank != problem->root ? 1 : 0;
    case CW_GATHER:
        return rank == problem->root ? problem->ranks : 0;
    case CW_ALLGATHER:
    case CW_ALLTOALL:
        return problem->ranks;
    case CW_REDUCE:
        return rank == problem->root ? 1 : 0;
    case CW_EXSCAN: /* on rank 0 the receive buffer is not significant */
        return rank > 0 ? 1 : 0;
    case CW_SCATTER:
    case CW_ALLREDUCE:
    case CW_REDUCE_SCATTER:
    case CW_SCAN:
        return 1;
    default:
        return 0;
    }
}

static struct check_expected expected_part(const struct cw_problem *problem, uint32_t rank, uint32_t part)
{
    uint64_t vector = problem->count * problem->element_bytes;
    struct check_expected expected = {.bytes = vector, .first = part, .last = part + 1};
    switch (problem->collective) {
    case CW_BCAST: /* all get what the root has */
        expected.first = problem->root;
        break;
    case CW_SCATTER: /* rank i gets the root's block i */
        expected.first = problem->root;
        expected.bytes = cw_problem_block_bytes(problem, rank);
        expected.offset = cw_problem_block_offset(problem, rank);
        break;
    case CW_GATHER: /* block i is rank i's */
    case CW_ALLGATHER:
        expected.bytes = cw_problem_block_bytes(problem, part);
        expected.begin = cw_problem_block_offset(problem, part);
        break;
    case CW_ALLTOALL: /* block j that rank i sends is block i that rank j receives */
        expected.bytes = cw_problem_pair_bytes(problem, part, rank);
        expected.begin = cw_problem_pair_receive_offset(problem, part, rank);
        expected.offset = cw_problem_pair_send_offset(problem, part, rank);
        break;
    case CW_REDUCE:
    case CW_ALLREDUCE: /* the operands of all ranks, in rank order */
        expected.first = 0;
        expected.last = problem->ranks;
        return expected;
    case CW_REDUCE_SCATTER: /* the same, and rank i gets block i */
        expected.bytes = cw_problem_block_bytes(problem, rank);
        expected.offset = cw_problem_block_offset(problem, rank);
        expected.first = 0;
        expected.last = problem->ranks;
        return expected;
    case CW_SCAN: /* ranks 0 .. i */
        expected.first = 0;
        expected.last = rank + 1;
        return expected;
    case CW_EXSCAN: /* ranks 0 .. i - 1 */
        expected.first = 0;
        expected.last = rank;
        return expected;
    default:
        assert(false && "a collective that leaves nothing has no parts");
    }
    expected.last = expected.first + 1;
    return expected;
}

static int validate_missing(struct check *check, uint32_t rank, uint64_t byte)
{
    return check_fail_rank(check, CW_CHECK_WRONG_RESULT, rank, byte, "byte %llu of the receive buffer is never written",
                           (unsigned long long)byte);
}

static int validate_operands(struct check *check, const struct check_nodes *nodes,
                             const struct check_expected *expected, const struct check_piece *piece, uint32_t rank,
                             uint64_t byte)
{
    const struct check_node *node = &nodes->nodes[piece->a];
    /* As many operands as there are ranks from the first to the last: each of them once. */
    if (node->first == expected->first && node->last == expected->last &&
        node->operands == expected->last - expected->first) {
        return CW_OK;
    }
    return check_fail_rank(
        check, CW_CHECK_WRONG_RESULT, rank, byte,
        "byte %llu of the receive buffer combines %u operands of ranks %u..%u instead of those of all of %u..%u",
        (unsigned long long)byte, node->operands, node->first, node->last - 1, expected->first, expected->last - 1);
}

static int validate_piece(struct check *check, const struct check_nodes *nodes, const struct check_expected *expected,
                          const struct check_piece *piece, uint32_t rank)
{
    uint64_t byte = piece->begin > expected->begin ? piece->begin : expected->begin;
    if (piece->a == CHECK_NONE) {
        return validate_missing(check, rank, byte);
    }
    if (check->reduces) {
        int status = validate_operands(check, nodes, expected, piece, rank, byte);
        if (status != CW_OK) {
            return status;
        }
    } else if (piece->a != expected->first) {
        return check_fail_rank(check, CW_CHECK_WRONG_RESULT, rank, byte,
                               "byte %llu of the receive buffer comes from rank %u instead of rank %u",
                               (unsigned long long)byte, piece->a, expected->first);
    }
    uint64_t offset = piece->offset + (byte - piece->begin);
    uint64_t right = expected->offset + (byte - expected->begin);
    if (offset != right) {
        return check_fail_rank(
            check, CW_CHECK_WRONG_RESULT, rank, byte,
            "byte %llu of the receive buffer holds byte %llu of the send buffer%s instead of byte %llu",
            (unsigned long long)byte, (unsigned long long)offset, check->reduces ? "s" : "", (unsigned long long)right);
    }
    return CW_OK;
}

static int validate_rank(struct check *check, const struct check_map *receive, const struct check_nodes *nodes,
                         uint32_t rank)
{
    uint32_t parts = expected_count(check->problem, rank);
    uint64_t covered = 0;
    for (uint32_t part = 0; part < parts; part++) {
        struct check_expected expected = expected_part(check->problem, rank, part);
        assert(expected.begin == covered);
        covered += expected.bytes;
        if (expected.bytes == 0) {
            continue;
        }
        assert(covered <= receive->bytes);
        for (uint32_t i = check_map_find(receive, expected.begin);
             i < receive->count && receive->pieces[i].begin < covered; i++) {
            int status = validate_piece(check, nodes, &expected, &receive->pieces[i], rank);
            if (status != CW_OK) {
                return status;
            }
        }
    }
    assert(covered == receive->bytes);
    return CW_OK;
}

/* Allreduce: the same computation gives the same rounding. Right results begin at 0 and are contiguous, so pieces are
 * equal where nodes are. */
static int validate_equal(struct check *check, const struct check_map *receive, uint32_t rank)
{
    const struct check_map *first = &receive[0];
    const struct check_map *other = &receive[rank];
    for (uint32_t i = 0; i < first->count && i < other->count; i++) {
        uint64_t a = first->pieces[i].begin;
        uint64_t b = other->pieces[i].begin;
        if (a != b || first->pieces[i].a != other->pieces[i].a) {
            uint64_t byte = a < b ? a : b;
            return check_fail_rank(check, CW_CHECK_DIFFERENT_RESULTS, rank, byte,
                                   "byte %llu of the receive buffer is combined in another tree than at rank 0",
                                   (unsigned long long)byte);
        }
    }
    if (first->count != other->count) {
        const struct check_map *longer = first->count > other->count ? first : other;
        uint64_t byte = longer->pieces[first->count < other->count ? first->count : other->count].begin;
        return check_fail_rank(check, CW_CHECK_DIFFERENT_RESULTS, rank, byte,
                               "byte %llu of the receive buffer is combined in another tree than at rank 0",
                               (unsigned long long)byte);
    }
    return CW_OK;
}

int check_result(struct check *check, const struct check_map *receive, const struct check_nodes *nodes)
{
    int status = CW_OK;
    for (uint32_t rank = 0; rank < check->ranks && status == CW_OK; rank++) {
        status = validate_rank(check, &receive[rank], nodes, rank);
    }
    for (uint32_t rank = 1; rank < check->ranks && status == CW_OK && check->problem->collective == CW_ALLREDUCE;
         rank++) {
        status = validate_equal(check, receive, rank);
    }
    return status;
}
