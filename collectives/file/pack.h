/* pack: files of numbers, the format of recordings (recording.h) and plan bundles (bundle.h).
 *
 * Layout, little-endian: 8 bytes that name the kind of file; 4 bytes version; 4 bytes 0; 8 bytes length of the content;
 * the content, an LZ4 frame of numbers in 7-bit groups, lowest first; 8 bytes XXH3 of all before.
 *
 * Invariants
 *   - A writer without memory stays failed. A reader with an error stays failed and returns zeros. So callers check
 *     once, at the end.
 *   - What reading takes in memory is bounded by the file's length: LZ4 makes at most 255 bytes of one, and lists are
 *     reserved only for as many entries as there are bytes left.
 * No I/O. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CW_PACK_MAGIC_BYTES = 8, CW_PACK_CONTENT_MAX = 1 << 30 };

/* The kind of a file. */
struct cw_pack_kind {
    const char *magic; /* 8 bytes */
    const char *noun;  /* "plan", as in "the plan was cut off" */
    uint32_t version;
};

/* ---- writing ---- */

/* Zeroed to begin with; `bytes` are its owner's to free. */
struct cw_packer {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool failed;
};

void cw_pack_number(struct cw_packer *packer, uint64_t number);
/* Numbers near 0 on both sides come out short. */
void cw_pack_signed(struct cw_packer *packer, int64_t number);
void cw_pack_list(struct cw_packer *packer, const uint64_t *list, uint64_t count);
void cw_pack_ranks(struct cw_packer *packer, const uint32_t *list, uint64_t count);
/* Bytes without conversion, without their number. */
void cw_pack_bytes(struct cw_packer *packer, const void *bytes, size_t length);
void cw_pack_text(struct cw_packer *packer, const char *text);

/* The file of a content; the caller frees *bytes. CW_OK, CW_ERROR_MEMORY, or CW_ERROR_LIMIT: a reader would reject that
 * size. */
int cw_pack_file(const struct cw_pack_kind *kind, const struct cw_packer *content, void **bytes, size_t *length);

/* ---- reading ---- */

struct cw_unpacker {
    const uint8_t *bytes;
    size_t length;
    size_t position;
    const char *noun;
    int status; /* CW_OK, until something is wrong */
    char *error;
    size_t error_bytes;
};

/* The content of a file, to be freed, and a reader at its beginning. CW_OK; CW_ERROR_ARGUMENT with the problem in
 * `error`; CW_ERROR_UNSUPPORTED: another version; CW_ERROR_MEMORY. */
int cw_unpack_file(const struct cw_pack_kind *kind, const void *file, size_t length, uint8_t **content,
                   struct cw_unpacker *unpacker, char *error, size_t error_bytes);
/* Unpacks a whole LZ4 frame into `content`, which has room for `wanted` bytes and one more. False: it is no frame, or
 * of another length. */
bool cw_unpack_frame(const uint8_t *frame, size_t length, uint8_t *content, size_t wanted);
/* Whether a file begins as one of this kind. */
bool cw_pack_is(const struct cw_pack_kind *kind, const void *file, size_t length);

/* The first complaint counts. `what` is put behind the noun: "the plan %s". */
void cw_unpack_fail(struct cw_unpacker *unpacker, const char *what);
void cw_unpack_no_memory(struct cw_unpacker *unpacker);
uint64_t cw_unpack_number(struct cw_unpacker *unpacker);
int64_t cw_unpack_signed(struct cw_unpacker *unpacker);
/* Up to `limit`. */
uint64_t cw_unpack_limited(struct cw_unpacker *unpacker, uint64_t limit, const char *what);
/* How many entries follow, of at least `least` bytes each. */
uint64_t cw_unpack_count(struct cw_unpacker *unpacker, uint64_t limit, size_t least, const char *what);
/* A text of fewer than `room` bytes, ended by zero; printable ASCII. */
void cw_unpack_text(struct cw_unpacker *unpacker, char *text, size_t room, const char *what);
/* `count` numbers, to be freed; NULL: it has failed. */
uint64_t *cw_unpack_list(struct cw_unpacker *unpacker, uint64_t count);
uint32_t *cw_unpack_ranks(struct cw_unpacker *unpacker, uint64_t count, uint64_t limit);
/* The next `length` bytes, where they lie; NULL: they are not there. */
const uint8_t *cw_unpack_bytes(struct cw_unpacker *unpacker, size_t length);
/* Complains if something is left. */
void cw_unpack_end(struct cw_unpacker *unpacker);
