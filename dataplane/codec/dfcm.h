/* DFCM as in the paper: one predictor for the whole channel, on which its ratios are based. The codec of chunks
 * (codec.h) is the same with a predictor that starts afresh with each chunk.
 *
 * Each value is four bits, the count of leading zeros of the difference to the prediction, in fours, at most 15; then
 * the bits behind those zeros. Half bytes follow each other, the lower one of a byte first, each value from its lowest
 * bits.
 *
 * Two things the paper leaves open: a difference or a prediction that is no number counts as zero, since processors
 * disagree on the bits of NaNs; and it begins with zeros everywhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_dfcm;

/* A predictor; NULL: no memory (512 KiB). */
struct cw_dfcm *cw_dfcm_create(void);
void cw_dfcm_destroy(struct cw_dfcm *predictor);

/* Bytes that `count` doubles may become. */
size_t cw_dfcm_bound(size_t count);

/* Compresses all, into cw_dfcm_bound(count) bytes; returns how many it took. */
size_t cw_dfcm_compress(struct cw_dfcm *predictor, const void *doubles, size_t count, uint8_t *to);

/* The other end: `count` doubles of `bytes` bytes. False: there are more or fewer bytes than they take. */
bool cw_dfcm_expand(struct cw_dfcm *predictor, const uint8_t *from, size_t bytes, size_t count, void *doubles);
