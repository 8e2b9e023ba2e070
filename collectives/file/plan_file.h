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
 *   - For any bytes, decoding gives a plan that cw_plan_validate accepts, or an error.
 *   - Memory for decoding is bounded by the file's length (schedule/limits.h). LZ4 can make thousands of bytes out of
 *     one, for very regular plans and for files of an attacker who wants to exhaust a reader. Such plans are written
 *     without compression.
 * No I/O: the caller reads and writes files. Thread: any. */
#pragma once

#include "collectives/schedule/plan.h"

enum { CW_PLAN_VERSION = 5 };

/* The caller frees *bytes. CW_OK, CW_ERROR_MEMORY, or CW_ERROR_LIMIT: the plan is larger than CW_PLAN_BYTES_MAX, and no
 * reader would accept it. */
int cw_plan_encode(const struct cw_plan *plan, void **bytes, size_t *length);

/* CW_OK; CW_ERROR_ARGUMENT with the problem in `error`; CW_ERROR_UNSUPPORTED for another version; CW_ERROR_MEMORY. */
int cw_plan_decode(const void *bytes, size_t length, struct cw_plan **plan, char *error, size_t error_bytes);
