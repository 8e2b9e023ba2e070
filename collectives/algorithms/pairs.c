#include "collectives/algorithms/pairs.h"

void cw_pair_send(struct cw_emit *emit, uint32_t to, uint64_t bytes)
{
    const struct cw_problem *problem = emit->problem;
    cw_emit_send(emit, to, cw_place(CW_BUFFER_SEND, cw_problem_pair_send_offset(problem, emit->rank, to)),
                 cw_place(CW_BUFFER_RECEIVE, cw_problem_pair_receive_offset(problem, emit->rank, to)), bytes);
}

uint32_t cw_pair_receive(struct cw_emit *emit, uint32_t from, uint64_t bytes)
{
    const uint64_t place = cw_problem_pair_receive_offset(emit->problem, from, emit->rank);
    return cw_emit_receive(emit, from, cw_place(CW_BUFFER_RECEIVE, place), bytes);
}

void cw_pair_copy_own(struct cw_emit *emit)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t rank = emit->rank;
    cw_emit_copy(emit, cw_place(CW_BUFFER_RECEIVE, cw_problem_pair_receive_offset(problem, rank, rank)),
                 cw_place(CW_BUFFER_SEND, cw_problem_pair_send_offset(problem, rank, rank)),
                 cw_problem_pair_bytes(problem, rank, rank));
}
