#include "collectives/file/pack.h"

#include <lz4frame.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "dataplane/status.h"

enum { HEADER_BYTES = 24, CHECKSUM_BYTES = 8, CAPACITY_FIRST = 4096 };

/* ---- writing ---- */

void cw_pack_bytes(struct cw_packer *packer, const void *bytes, size_t length)
{
    if (packer->failed || length == 0) {
        return;
    }
    if (length > packer->capacity - packer->length) {
        size_t capacity = packer->capacity == 0 ? CAPACITY_FIRST : packer->capacity * 2;
        while (length > capacity - packer->length) {
            capacity *= 2;
        }
        uint8_t *grown = realloc(packer->bytes, capacity);
        if (grown == NULL) {
            packer->failed = true;
            return;
        }
        packer->bytes = grown;
        packer->capacity = capacity;
    }
    memcpy(packer->bytes + packer->length, bytes, length);
    packer->length += length;
}

void cw_pack_number(struct cw_packer *packer, uint64_t number)
{
    uint8_t groups[10];
    size_t count = 0;
    while (number >= 0x80) {
        groups[count++] = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    groups[count++] = (uint8_t)number;
    cw_pack_bytes(packer, groups, count);
}

void cw_pack_signed(struct cw_packer *packer, int64_t number)
{
    cw_pack_number(packer, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

void cw_pack_list(struct cw_packer *packer, const uint64_t *list, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        cw_pack_number(packer, list[i]);
    }
}

void cw_pack_ranks(struct cw_packer *packer, const uint32_t *list, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        cw_pack_number(packer, list[i]);
    }
}

void cw_pack_text(struct cw_packer *packer, const char *text)
{
    size_t length = strlen(text);
    cw_pack_number(packer, length);
    cw_pack_bytes(packer, text, length);
}

static void store(uint8_t *at, uint64_t number, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(number >> 8 * i);
    }
}

int cw_pack_file(const struct cw_pack_kind *kind, const struct cw_packer *content, void **bytes, size_t *length)
{
    LZ4F_preferences_t preferences = {0};
    if (content->failed) {
        return CW_ERROR_MEMORY;
    }
    if (content->length > CW_PACK_CONTENT_MAX) {
        return CW_ERROR_LIMIT;
    }
    preferences.frameInfo.contentSize = content->length;
    size_t bound = LZ4F_compressFrameBound(content->length, &preferences);
    uint8_t *file = malloc(HEADER_BYTES + bound + CHECKSUM_BYTES);
    if (file == NULL) {
        return CW_ERROR_MEMORY;
    }
    size_t body = LZ4F_compressFrame(file + HEADER_BYTES, bound, content->bytes, content->length, &preferences);
    if (LZ4F_isError(body)) {
        free(file);
        return CW_ERROR_MEMORY;
    }
    memcpy(file, kind->magic, CW_PACK_MAGIC_BYTES);
    store(file + 8, kind->version, 4);
    store(file + 12, 0, 4);
    store(file + 16, content->length, 8);
    store(file + HEADER_BYTES + body, XXH3_64bits(file, HEADER_BYTES + body), CHECKSUM_BYTES);
    *bytes = file;
    *length = HEADER_BYTES + body + CHECKSUM_BYTES;
    return CW_OK;
}

/* ---- reading ---- */

static uint64_t load(const uint8_t *at, uint32_t bytes)
{
    uint64_t number = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        number |= (uint64_t)at[i] << 8 * i;
    }
    return number;
}

bool cw_pack_is(const struct cw_pack_kind *kind, const void *file, size_t length)
{
    return length >= CW_PACK_MAGIC_BYTES && memcmp(file, kind->magic, CW_PACK_MAGIC_BYTES) == 0;
}

static int header_check(const struct cw_pack_kind *kind, const uint8_t *file, size_t length, char *error,
                        size_t error_bytes)
{
    if (!cw_pack_is(kind, file, length)) {
        snprintf(error, error_bytes, "this is no %s: it does not begin with %.6s", kind->noun, kind->magic);
        return CW_ERROR_ARGUMENT;
    }
    if (length < HEADER_BYTES + CHECKSUM_BYTES) {
        snprintf(error, error_bytes, "the %s is cut off: it has %zu bytes", kind->noun, length);
        return CW_ERROR_ARGUMENT;
    }
    if (load(file + 8, 4) != kind->version) {
        snprintf(error, error_bytes, "the %s has version %llu, this program reads version %u; make it anew", kind->noun,
                 (unsigned long long)load(file + 8, 4), kind->version);
        return CW_ERROR_UNSUPPORTED;
    }
    size_t checked = length - CHECKSUM_BYTES;
    if (load(file + 12, 4) != 0 || load(file + checked, CHECKSUM_BYTES) != XXH3_64bits(file, checked)) {
        snprintf(error, error_bytes, "the %s was cut off or altered: its checksum does not fit its %zu bytes",
                 kind->noun, length);
        return CW_ERROR_ARGUMENT;
    }
    return CW_OK;
}

bool cw_unpack_frame(const uint8_t *frame, size_t length, uint8_t *content, size_t wanted)
{
    LZ4F_dctx *context = NULL;
    size_t made = 0, used = 0, hint = 1;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) {
        return false;
    }
    while (hint != 0 && used < length) {
        size_t room = wanted + 1 - made;
        size_t rest = length - used;
        hint = LZ4F_decompress(context, content + made, &room, frame + used, &rest, NULL);
        if (LZ4F_isError(hint) || (room == 0 && rest == 0)) {
            hint = 1;
            break;
        }
        made += room;
        used += rest;
    }
    LZ4F_freeDecompressionContext(context);
    return hint == 0 && used == length && made == wanted;
}

int cw_unpack_file(const struct cw_pack_kind *kind, const void *file, size_t length, uint8_t **content,
                   struct cw_unpacker *unpacker, char *error, size_t error_bytes)
{
    int status = header_check(kind, file, length, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    const uint8_t *body = (const uint8_t *)file + HEADER_BYTES;
    size_t body_bytes = length - HEADER_BYTES - CHECKSUM_BYTES;
    uint64_t wanted = load((const uint8_t *)file + 16, 8);
    bool is_sound = wanted <= 255ull * body_bytes && wanted <= CW_PACK_CONTENT_MAX;
    uint8_t *made = is_sound ? malloc(wanted + 1) : NULL;
    if (is_sound && made == NULL) {
        snprintf(error, error_bytes, "no memory for the %s", kind->noun);
        return CW_ERROR_MEMORY;
    }
    if (!is_sound || !cw_unpack_frame(body, body_bytes, made, wanted)) {
        free(made);
        snprintf(error, error_bytes, "the %s's content has another length than it says, or is no LZ4 frame",
                 kind->noun);
        return CW_ERROR_ARGUMENT;
    }
    *content = made;
    *unpacker = (struct cw_unpacker){
        .bytes = made, .length = wanted, .noun = kind->noun, .error = error, .error_bytes = error_bytes};
    return CW_OK;
}

void cw_unpack_fail(struct cw_unpacker *unpacker, const char *what)
{
    if (unpacker->status == CW_OK) {
        unpacker->status = CW_ERROR_ARGUMENT;
        snprintf(unpacker->error, unpacker->error_bytes, "the %s %s (at byte %zu of the content)", unpacker->noun, what,
                 unpacker->position);
    }
}

void cw_unpack_no_memory(struct cw_unpacker *unpacker)
{
    if (unpacker->status == CW_OK) {
        unpacker->status = CW_ERROR_MEMORY;
        snprintf(unpacker->error, unpacker->error_bytes, "no memory for the %s", unpacker->noun);
    }
}

uint64_t cw_unpack_number(struct cw_unpacker *unpacker)
{
    uint64_t number = 0;
    for (uint32_t shift = 0; shift < 64 && unpacker->status == CW_OK; shift += 7) {
        if (unpacker->position == unpacker->length) {
            cw_unpack_fail(unpacker, "ends too early");
            return 0;
        }
        uint8_t byte = unpacker->bytes[unpacker->position++];
        if (shift == 63 && byte > 1) {
            break;
        }
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return number;
        }
    }
    cw_unpack_fail(unpacker, "has a number of more than 64 bits");
    return 0;
}

int64_t cw_unpack_signed(struct cw_unpacker *unpacker)
{
    uint64_t number = cw_unpack_number(unpacker);
    return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

uint64_t cw_unpack_limited(struct cw_unpacker *unpacker, uint64_t limit, const char *what)
{
    uint64_t number = cw_unpack_number(unpacker);
    if (number > limit) {
        cw_unpack_fail(unpacker, what);
        return 0;
    }
    return number;
}

uint64_t cw_unpack_count(struct cw_unpacker *unpacker, uint64_t limit, size_t least, const char *what)
{
    uint64_t count = cw_unpack_limited(unpacker, limit, what);
    if (count > (unpacker->length - unpacker->position) / least) {
        cw_unpack_fail(unpacker, what);
        return 0;
    }
    return count;
}

const uint8_t *cw_unpack_bytes(struct cw_unpacker *unpacker, size_t length)
{
    if (unpacker->status != CW_OK || length > unpacker->length - unpacker->position) {
        cw_unpack_fail(unpacker, "ends too early");
        return NULL;
    }
    const uint8_t *bytes = unpacker->bytes + unpacker->position;
    unpacker->position += length;
    return bytes;
}

void cw_unpack_text(struct cw_unpacker *unpacker, char *text, size_t room, const char *what)
{
    size_t length = (size_t)cw_unpack_limited(unpacker, room - 1, what);
    const uint8_t *bytes = cw_unpack_bytes(unpacker, length);
    text[0] = '\0';
    if (bytes == NULL) {
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < ' ' || bytes[i] > '~') {
            cw_unpack_fail(unpacker, what);
            return;
        }
    }
    memcpy(text, bytes, length);
    text[length] = '\0';
}

/* Every entry has at least one byte: no more are reserved. */
static void *list_make(struct cw_unpacker *unpacker, uint64_t count, size_t entry_bytes)
{
    if (unpacker->status != CW_OK || count > unpacker->length - unpacker->position) {
        cw_unpack_fail(unpacker, "ends within a list");
        return NULL;
    }
    void *list = calloc(count + 1, entry_bytes);
    if (list == NULL) {
        cw_unpack_no_memory(unpacker);
    }
    return list;
}

uint64_t *cw_unpack_list(struct cw_unpacker *unpacker, uint64_t count)
{
    uint64_t *list = list_make(unpacker, count, sizeof(*list));
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        list[i] = cw_unpack_number(unpacker);
    }
    if (unpacker->status != CW_OK) {
        free(list);
        return NULL;
    }
    return list;
}

uint32_t *cw_unpack_ranks(struct cw_unpacker *unpacker, uint64_t count, uint64_t limit)
{
    uint32_t *list = list_make(unpacker, count, sizeof(*list));
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        list[i] = (uint32_t)cw_unpack_limited(unpacker, limit, "names a rank that is not there");
    }
    if (unpacker->status != CW_OK) {
        free(list);
        return NULL;
    }
    return list;
}

void cw_unpack_end(struct cw_unpacker *unpacker)
{
    if (unpacker->status == CW_OK && unpacker->position != unpacker->length) {
        cw_unpack_fail(unpacker, "continues behind its end");
    }
}
