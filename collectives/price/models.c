/* Models of papers, to compare the algorithms with. */
#include "collectives/price/formulas_private.h"

/* t(m), and T(m): a port sends and receives at the same time, at full speed. */
static double transmit(const struct cw_plogp *path, uint64_t bytes)
{
    return path->latency_ns + cw_plogp_gap(path, bytes);
}

double cw_model_allgather_nonblocking(const struct cw_plogp *path, uint32_t ranks, uint64_t bytes)
{
    double sum = 0;
    for (uint32_t i = 0; i < ceiling_log2(ranks); i++) {
        sum += transmit(path, bytes << i);
    }
    return sum;
}

double cw_model_allgather_concurrent(const struct cw_plogp *path, uint32_t ranks, uint64_t bytes, uint32_t concurrency)
{
    uint32_t size = concurrency < ranks ? (ranks + concurrency - 1) / concurrency : 1;
    double sum = (concurrency - 1) * cw_plogp_send(path, bytes);
    for (uint32_t i = 0; i < ceiling_log2(size); i++) {
        sum += transmit(path, bytes << i) + (concurrency - 1) * cw_plogp_send(path, bytes << i);
    }
    return sum;
}

double cw_model_allgather_split(const struct cw_plogp *path, uint32_t ranks, uint64_t bytes)
{
    double sum = 0;
    for (uint32_t i = 0; i < ceiling_log2(ranks); i++) {
        uint64_t half = ((bytes + 1) / 2) << i;
        sum += transmit(path, half) + cw_plogp_send(path, half);
    }
    return sum;
}
