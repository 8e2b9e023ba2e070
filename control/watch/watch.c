#include "control/watch/watch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/settings/inherited.h"

enum { VERSION = 2 };
#define MAGIC UINT64_C(0x6863746177776331)

struct watch_slot {
    _Atomic int32_t process; /* 0: not open */
    _Atomic uint32_t answered;
    struct cw_watch_answer answer;
};

struct watch_shared {
    uint64_t magic;
    uint32_t version;
    uint32_t rank_count;
    _Atomic uint32_t asked;
    _Atomic uint32_t alarms;
    struct watch_slot slots[];
};

struct cw_watch {
    struct watch_shared *shared;
    size_t bytes;
    int descriptor; /* -1: closed */
    uint32_t rank;  /* UINT32_MAX: the launcher */
};

static size_t shared_bytes(uint32_t rank_count)
{
    return sizeof(struct watch_shared) + (size_t)rank_count * sizeof(struct watch_slot);
}

static struct cw_watch *watch_map(int descriptor, uint32_t rank, uint32_t rank_count)
{
    struct cw_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return NULL;
    }
    watch->bytes = shared_bytes(rank_count);
    watch->descriptor = descriptor;
    watch->rank = rank;
    watch->shared = mmap(NULL, watch->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (watch->shared == MAP_FAILED) {
        free(watch);
        return NULL;
    }
    return watch;
}

/* ---- the launcher ---- */

struct cw_watch *cw_watch_create(uint32_t rank_count)
{
    int descriptor = memfd_create("causeway-watch", MFD_CLOEXEC);
    if (descriptor < 0) {
        return NULL;
    }
    struct cw_watch *watch = NULL;
    if (ftruncate(descriptor, (off_t)shared_bytes(rank_count)) == 0) {
        watch = watch_map(descriptor, UINT32_MAX, rank_count);
    }
    if (watch == NULL) {
        close(descriptor);
        return NULL;
    }
    watch->shared->magic = MAGIC;
    watch->shared->version = VERSION;
    watch->shared->rank_count = rank_count;
    return watch;
}

int cw_watch_descriptor(const struct cw_watch *watch)
{
    return watch->descriptor;
}

void cw_watch_query(struct cw_watch *watch)
{
    atomic_fetch_add(&watch->shared->asked, 1);
}

bool cw_watch_is_open(const struct cw_watch *watch, uint32_t rank, int *process)
{
    *process = atomic_load(&watch->shared->slots[rank].process);
    return *process > 0;
}

bool cw_watch_has_answered(const struct cw_watch *watch, uint32_t rank)
{
    uint32_t asked = cw_watch_query_number(watch);
    /* pairs with the release in cw_watch_reply */
    return asked > 0 && atomic_load_explicit(&watch->shared->slots[rank].answered, memory_order_acquire) == asked;
}

static void text_clean(char *text, size_t bytes)
{
    text[bytes - 1] = '\0';
    for (; *text != '\0'; text++) {
        /* bytes from 0x80 on may be letters of UTF-8 */
        *text = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;
    }
}

void cw_watch_clean(struct cw_watch_answer *answer, uint32_t rank_count)
{
    const uint8_t *moved = (const uint8_t *)&answer->has_moved; /* may be no bool yet */
    answer->has_moved = *moved != 0;
    text_clean(answer->where, sizeof(answer->where));
    text_clean(answer->brief, sizeof(answer->brief));
    text_clean(answer->text, sizeof(answer->text));
    uint32_t count = 0;
    for (uint32_t i = 0; i < CW_WATCH_AWAITED_MAX && i < answer->awaited_count; i++) {
        if (answer->awaited[i] < rank_count) {
            answer->awaited[count++] = answer->awaited[i];
        }
    }
    answer->awaited_count = count;
}

void cw_watch_read(const struct cw_watch *watch, uint32_t rank, struct cw_watch_answer *answer)
{
    memcpy(answer, &watch->shared->slots[rank].answer, sizeof(*answer));
    cw_watch_clean(answer, watch->shared->rank_count);
}

/* ---- a rank ---- */

struct cw_watch *cw_watch_open(uint32_t rank, uint32_t rank_count)
{
    int descriptor = cw_inherited_find(CW_SETTING_WATCH_FD, shared_bytes(rank_count));
    struct cw_watch *watch = descriptor < 0 ? NULL : watch_map(descriptor, rank, rank_count);
    if (watch == NULL) {
        return NULL;
    }
    const struct watch_shared *shared = watch->shared;
    if (shared->magic != MAGIC || shared->version != VERSION || shared->rank_count != rank_count ||
        rank >= rank_count) {
        munmap(watch->shared, watch->bytes);
        free(watch);
        return NULL;
    }
    close(descriptor); /* child processes do not use it */
    watch->descriptor = -1;
    atomic_store(&watch->shared->slots[rank].process, getpid());
    return watch;
}

uint32_t cw_watch_query_number(const struct cw_watch *watch)
{
    return atomic_load_explicit(&watch->shared->asked, memory_order_relaxed);
}

void cw_watch_reply(struct cw_watch *watch, uint32_t asked, const struct cw_watch_answer *answer)
{
    struct watch_slot *slot = &watch->shared->slots[watch->rank];
    slot->answer = *answer;
    /* pairs with the acquire in cw_watch_has_answered */
    atomic_store_explicit(&slot->answered, asked, memory_order_release);
}

uint32_t cw_watch_alarm_raise(struct cw_watch *watch)
{
    return atomic_fetch_add(&watch->shared->alarms, 1) + 1;
}

uint32_t cw_watch_alarms(const struct cw_watch *watch)
{
    return atomic_load_explicit(&watch->shared->alarms, memory_order_relaxed);
}

void cw_watch_close(struct cw_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    if (watch->rank != UINT32_MAX) {
        atomic_store(&watch->shared->slots[watch->rank].process, 0);
    }
    munmap(watch->shared, watch->bytes);
    if (watch->descriptor >= 0) {
        close(watch->descriptor);
    }
    free(watch);
}
