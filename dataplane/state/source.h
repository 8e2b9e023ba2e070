/* Sources: where the bytes of an operation come from, contiguous, strided or a list of slices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

/* Where the last read of a list of slices ended, so that the next need not search from the start. */
struct cw_source_cursor {
    uint64_t slice;
    uint64_t start; /* position of that slice's first byte */
};

/* All bytes of a source. False: the description is out of range (a NULL pointer with bytes, too many slices, an
 * overflow). */
bool cw_source_measure(const struct cw_source *source, uint64_t *bytes);

/* True if every byte lies in [base, base + bytes). */
bool cw_source_within(const struct cw_source *source, const void *base, uint64_t bytes);

/* The contiguous run at `position`: sets *data, returns its length, at most `bytes_max` (> 0). */
uint32_t cw_source_run(const struct cw_source *source, struct cw_source_cursor *cursor, uint64_t position,
                       uint32_t bytes_max, const void **data);

/* Copies `bytes` from `position` on; *checksum, unless it is NULL, becomes that with them (cw_wire_checksum). */
void cw_source_copy(const struct cw_source *source, struct cw_source_cursor *cursor, uint64_t position, uint32_t bytes,
                    void *target, uint32_t *checksum);
