/* plan_file: a plan as bytes, for keeping in a file.
 *
 * Layout, little-endian
 *   8 bytes   "CWPLAN\r\n" (a transfer as text breaks it)
 *   4 bytes   version of this layout
 *   4 bytes   0: the content is an LZ4 frame; 1: it is there as it is
 *   8 bytes   length of the content
 *   ...       the content: numbers in 7-bit groups, lowest first (plan_encode.c)
 *   8 bytes   XXH3 of all before
 *
 * Invariants
 *   - Whatever the bytes are, decoding either gives a plan that cw_plan_validate accepts, or says what is wrong.
 *   - What decoding takes in memory is bounded by the file's length (schedule/limits.h): some plans are so regular that
 *     LZ4 makes thousands of bytes of schedules out of one, and so would somebody who wants to exhaust a reader. Those
 *     are written without it.
 * No I/O: the caller reads and writes files. Thread: any. */
#pragma once

#include "collectives/schedule/plan.h"

enum { CW_PLAN_VERSION = 5 };

/* *bytes is the caller's to free. CW_OK, CW_ERROR_MEMORY, or CW_ERROR_LIMIT: the plan is larger than CW_PLAN_BYTES_MAX,
 * nobody could read it. */
int cw_plan_encode(const struct cw_plan *plan, void **bytes, size_t *length);

/* CW_OK; CW_ERROR_ARGUMENT with what is wrong in `error`; CW_ERROR_UNSUPPORTED for another version; CW_ERROR_MEMORY. */
int cw_plan_decode(const void *bytes, size_t length, struct cw_plan **plan, char *error, size_t error_bytes);
