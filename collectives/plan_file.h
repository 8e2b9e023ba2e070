/* plan_file: a plan as bytes, for keeping in a file.
 *
 * Layout, little-endian
 *   8 bytes   "CWPLAN\r\n" (a transfer as text breaks it)
 *   4 bytes   version of this layout
 *   4 bytes   zero
 *   8 bytes   length of the content
 *   ...       the content as an LZ4 frame: numbers in 7-bit groups, lowest first (plan_encode.c)
 *   8 bytes   XXH3 of all before
 *
 * Invariant: whatever the bytes are, decoding either gives a plan that cw_plan_validate accepts, or says what is wrong.
 * No I/O: the caller reads and writes files. Thread: any.
 */
#ifndef CW_PLAN_FILE_H
#define CW_PLAN_FILE_H

#include "collectives/plan.h"

enum { CW_PLAN_VERSION = 1 };

/* *bytes is the caller's to free. CW_OK or CW_ERROR_MEMORY. */
int cw_plan_encode(const struct cw_plan *plan, void **bytes, size_t *length);

/* CW_OK; CW_ERROR_ARGUMENT with what is wrong in `error`; CW_ERROR_UNSUPPORTED for another version; CW_ERROR_MEMORY. */
int cw_plan_decode(const void *bytes, size_t length, struct cw_plan **plan, char *error, size_t error_bytes);

#endif
