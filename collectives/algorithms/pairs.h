/* pairs: the messages of an all-to-all, each from where it lies at its sender to where it belongs at its receiver. */
#pragma once

#include "collectives/algorithms/algorithms.h"

/* The first `bytes` of this rank's block for `to`, or of the block from `from`. */
void cw_pair_send(struct cw_emit *emit, uint32_t to, uint64_t bytes);
uint32_t cw_pair_receive(struct cw_emit *emit, uint32_t from, uint64_t bytes);

/* Copies a rank's block for itself. */
void cw_pair_copy_own(struct cw_emit *emit);
