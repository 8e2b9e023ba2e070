/* Shared by the files that check one schedule: schedule/validate.c (the schedule, its ops, their order),
 * schedule/places.c (the places of reads and writes). Private to them. */
#pragma once

#include "collectives/schedule/schedule.h"

enum { VALIDATION_NO_OP = UINT32_MAX };

struct validation {
    const struct cw_schedule *schedule;
    const uint64_t *buffer_bytes; /* NULL: only the scratch buffer's size is known */
    uint32_t ranks;
    uint32_t index;  /* of the current op, or VALIDATION_NO_OP */
    uint32_t repeat; /* the repeat around it; its own index while that is checked, else VALIDATION_NO_OP */
    uint32_t body_end;
    uint64_t barriers_seen[CW_BARRIERS_MAX / 64];
    uint32_t hosts_seen; /* host ops so far: they come in the order of their numbers */
    uint32_t host_last;  /* the last of them */
    char *error;
    size_t error_bytes;
};

/* Writes the reason; returns CW_ERROR_ARGUMENT. */
__attribute__((format(printf, 2, 3))) int validation_reject(const struct validation *validation, const char *format,
                                                            ...);

/* ---- schedule/places.c: CW_OK or CW_ERROR_ARGUMENT. The op is the one at `index`. ---- */

/* A place that the op reads, `here` or at the target. A row of blocks has a stride. */
int validation_place(const struct validation *validation, const char *name, const struct cw_place *place,
                     uint64_t stride, bool here);

/* The place that it writes. */
int validation_written(const struct validation *validation, const struct cw_place *place, uint64_t stride, bool here);

/* A place that it must not have. */
int validation_unused(const struct validation *validation, const char *name, const struct cw_place *place);

/* A place of `bytes` that a host op reads or writes; a place of 0 bytes must have no buffer. */
int validation_host_place(const struct validation *validation, const char *name, const struct cw_place *place,
                          uint64_t blocks, bool is_written);

/* Both places of a copy or reduction. */
int validation_local(const struct validation *validation);
