#include "dataplane/state/sent.h"

#include "dataplane/state/window.h"

static_assert(sizeof(struct cw_sent_directory) <= CW_WINDOW_BLOCK_BYTES, "a directory fits a window block");

static inline struct cw_sent_directory **directory_of(struct cw_sent_records *sent, uint64_t number)
{
    return &sent->directories[number / (CW_SENT_CHUNK * CW_SENT_DIRECTORY) % CW_SENT_DIRECTORIES];
}

void cw_sent_init(struct cw_sent_records *sent, uint64_t first)
{
    memset(sent, 0, sizeof(*sent));
    sent->base = sent->next = first;
}

bool cw_sent_prepare(struct cw_sent_records *sent, struct cw_pool *chunks, struct cw_pool *directories)
{
    assert(sent->next - sent->base < cw_sent_span());
    struct cw_sent_directory **directory = directory_of(sent, sent->next);
    if (*directory == NULL) {
        *directory = cw_pool_acquire(directories);
        if (*directory == NULL) {
            return false;
        }
        memset(*directory, 0, sizeof(**directory));
    }
    struct cw_sent_chunk **chunk = &(*directory)->chunks[sent->next / CW_SENT_CHUNK % CW_SENT_DIRECTORY];
    if (*chunk == NULL) {
        *chunk = cw_pool_acquire(chunks);
        if (*chunk == NULL) {
            return false;
        }
        (*chunk)->acknowledged = 0;
        (*chunk)->lost = 0;
    }
    return true;
}

void cw_sent_finish(struct cw_sent_records *sent, uint64_t number, struct cw_pool *chunks)
{
    struct cw_sent_directory *directory = *directory_of(sent, number);
    struct cw_sent_chunk **chunk = &directory->chunks[number / CW_SENT_CHUNK % CW_SENT_DIRECTORY];
    uint64_t first = number & ~(uint64_t)(CW_SENT_CHUNK - 1);
    if (*chunk != NULL && (*chunk)->acknowledged == UINT64_MAX && sent->next - first >= CW_SENT_CHUNK) {
        cw_pool_release(chunks, *chunk);
        *chunk = NULL;
    }
}

/* Frees the chunk that holds `number`, and its directory with the last chunk of it. */
static void release(struct cw_sent_records *sent, uint64_t number, bool last_of_directory, struct cw_pool *chunks,
                    struct cw_pool *directories)
{
    struct cw_sent_directory **directory = directory_of(sent, number);
    if (*directory == NULL) {
        return;
    }
    struct cw_sent_chunk **chunk = &(*directory)->chunks[number / CW_SENT_CHUNK % CW_SENT_DIRECTORY];
    if (*chunk != NULL) {
        cw_pool_release(chunks, *chunk);
        *chunk = NULL;
    }
    if (last_of_directory) {
        cw_pool_release(directories, *directory);
        *directory = NULL;
    }
}

void cw_sent_advance(struct cw_sent_records *sent, uint64_t number, struct cw_pool *chunks, struct cw_pool *directories)
{
    assert(number >= sent->base && number <= sent->next);
    for (uint64_t chunk = sent->base / CW_SENT_CHUNK; chunk < number / CW_SENT_CHUNK; chunk++) {
        release(sent, chunk * CW_SENT_CHUNK, (chunk + 1) % CW_SENT_DIRECTORY == 0, chunks, directories);
    }
    sent->base = number;
}

void cw_sent_trim(struct cw_sent_records *sent, struct cw_pool *chunks, struct cw_pool *directories)
{
    assert(sent->base == sent->next);
    release(sent, sent->base, true, chunks, directories);
}

uint64_t cw_sent_bytes(const struct cw_sent_records *sent, const struct cw_pool *chunks,
                       const struct cw_pool *directories)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < CW_SENT_DIRECTORIES; i++) {
        if (sent->directories[i] == NULL) {
            continue;
        }
        bytes += directories->object_bytes;
        for (uint32_t j = 0; j < CW_SENT_DIRECTORY; j++) {
            bytes += sent->directories[i]->chunks[j] != NULL ? chunks->object_bytes : 0;
        }
    }
    return bytes;
}
