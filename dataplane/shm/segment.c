#include "dataplane/shm/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/base/process.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#define SEGMENT_MAGIC UINT64_C(0x4452414f42574331) /* "1CWBOARD" as little-endian bytes */

static_assert(sizeof(struct cw_segment_line) == CW_SEGMENT_LINE, "layout shared between processes");
static_assert(sizeof(struct cw_segment_counter) == CW_SEGMENT_LINE, "layout shared between processes");
static_assert(sizeof(struct cw_segment_shared) == 3 * CW_SEGMENT_LINE + CW_SEGMENT_WHY_BYTES,
              "layout shared between processes");
static_assert(CW_SEGMENT_SHORT_STRIDE % CW_SEGMENT_LINE == 0 &&
                  CW_SEGMENT_SHORT_STRIDE >= CW_SEGMENT_SHORT_BYTES + sizeof(struct cw_segment_flag),
              "a slot has its own lines");
static_assert(CW_SEGMENT_LONG_SLOTS <= CW_SEGMENT_ROUNDS, "a round has a flag of its own as long as its long slot");
static_assert(CW_SEGMENT_ARRIVE_EVERY < CW_SEGMENT_ROUNDS, "members arrive before the short slots are used up");
static_assert(CW_SEGMENT_MEMBERS_MAX < 1 << CW_SEGMENT_COUNT_BITS, "a counter counts all");

/* Where the parts lie; the descriptor and the mapping are left alone. */
static void layout(struct cw_segment *segment, uint32_t member, uint32_t member_count)
{
    segment->member = member;
    segment->member_count = member_count;
    segment->group_count = (member_count + CW_SEGMENT_GROUP - 1) / CW_SEGMENT_GROUP;
    size_t lines = sizeof(struct cw_segment_shared);
    size_t counters = lines + member_count * sizeof(struct cw_segment_line);
    size_t slots = counters + CW_SEGMENT_ROUNDS * (segment->group_count + 1) * sizeof(struct cw_segment_counter);
    slots = (slots + 4095) & ~(size_t)4095;
    size_t long_slots = slots + (member_count + 1) * (size_t)CW_SEGMENT_ROUNDS * CW_SEGMENT_SHORT_STRIDE;
    long_slots = (long_slots + 4095) & ~(size_t)4095;
    segment->bytes = long_slots + (member_count + 1) * (size_t)CW_SEGMENT_LONG_SLOTS * CW_SEGMENT_LONG_BYTES;
    if (segment->shared != NULL) {
        uint8_t *memory = (uint8_t *)segment->shared;
        segment->lines = (struct cw_segment_line *)(void *)(memory + lines);
        segment->counters = (struct cw_segment_counter *)(void *)(memory + counters);
        segment->slots = memory + slots;
        segment->long_slots = memory + long_slots;
    }
}

/* False: errno tells. */
static bool map(struct cw_segment *segment)
{
    void *memory = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->descriptor, 0);
    segment->shared = memory == MAP_FAILED ? NULL : memory;
    return memory != MAP_FAILED;
}

int cw_segment_create(uint32_t member_count, uint64_t nonce, struct cw_segment *segment, char *error,
                      size_t error_bytes)
{
    if (member_count < 2 || member_count > CW_SEGMENT_MEMBERS_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "segment: %u members, where 2 to %d are possible",
                             member_count, CW_SEGMENT_MEMBERS_MAX);
    }
    struct cw_segment made = {.descriptor = memfd_create("causeway-segment", MFD_CLOEXEC)};
    layout(&made, 0, member_count);
    if (made.descriptor < 0 || ftruncate(made.descriptor, (off_t)made.bytes) != 0 || !map(&made)) {
        int status = cw_error_text(error, error_bytes, cw_status_of_errno(errno),
                                   "segment: %zu bytes of shared memory (memfd): %s%s", made.bytes, strerror(errno),
                                   cw_errno_remedy(errno));
        cw_segment_close(&made);
        return status;
    }
    layout(&made, 0, member_count);
    made.shared->nonce = nonce;
    made.shared->version = CW_SEGMENT_VERSION;
    made.shared->member_count = member_count;
    made.shared->magic = SEGMENT_MAGIC;
    *segment = made;
    return CW_OK;
}

struct cw_segment_place cw_segment_place(const struct cw_segment *segment)
{
    return (struct cw_segment_place){
        .pid = cw_process_number(), .descriptor = segment->descriptor, .nonce = segment->shared->nonce};
}

int cw_segment_open(const struct cw_segment_place *place, uint32_t member, uint32_t member_count,
                    struct cw_segment *segment, char *error, size_t error_bytes)
{
    char path[64];
    struct stat file;
    assert(member < member_count && member_count <= CW_SEGMENT_MEMBERS_MAX);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->descriptor);
    struct cw_segment made = {.descriptor = open(path, O_RDWR | O_CLOEXEC)};
    layout(&made, member, member_count);
    if (made.descriptor < 0) {
        return cw_error_text(error, error_bytes, cw_status_of_errno(errno), "segment of process %d: %s: %s%s",
                             place->pid, path, strerror(errno), cw_errno_remedy(errno));
    }
    int status = CW_OK;
    if (fstat(made.descriptor, &file) != 0 || file.st_size != (off_t)made.bytes) {
        status = cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                               "segment of process %d: it is not one of %u members", place->pid, member_count);
    } else if (!map(&made)) {
        status = cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "segment of process %d: mmap: %s", place->pid,
                               strerror(errno));
    } else if (made.shared->magic != SEGMENT_MAGIC || made.shared->nonce != place->nonce ||
               made.shared->version != CW_SEGMENT_VERSION || made.shared->member_count != member_count) {
        status = cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                               "segment of process %d: of another version, or another job's", place->pid);
    }
    if (status != CW_OK) {
        cw_segment_close(&made);
        return status;
    }
    layout(&made, member, member_count);
    cw_segment_seal(&made);
    *segment = made;
    return CW_OK;
}

void cw_segment_seal(struct cw_segment *segment)
{
    close(segment->descriptor);
    segment->descriptor = -1;
}

void cw_segment_close(struct cw_segment *segment)
{
    if (segment->shared != NULL) {
        munmap(segment->shared, segment->bytes);
        if (segment->descriptor >= 0) {
            close(segment->descriptor);
        }
    } else if (segment->descriptor > 0) {
        close(segment->descriptor);
    }
    *segment = (struct cw_segment){.descriptor = -1};
}

void cw_segment_break(struct cw_segment *segment, uint64_t call, int32_t code, const char *why)
{
    uint32_t whole = CW_SEGMENT_WHOLE;
    if (atomic_compare_exchange_strong(&segment->shared->broken, &whole, CW_SEGMENT_BREAKING)) {
        snprintf(segment->shared->why, sizeof(segment->shared->why), "%s", why);
        segment->shared->why_code = code;
        segment->shared->why_call = call;
        atomic_store(&segment->shared->broken, CW_SEGMENT_BROKEN);
    }
}

int32_t cw_segment_why(const struct cw_segment *segment, uint64_t *call, char *text, size_t text_bytes)
{
    enum { LOOKS = 1000 }; /* a process that breaks it is between two stores, unless it has died there */
    for (int look = 0; look < LOOKS && atomic_load(&segment->shared->broken) == CW_SEGMENT_BREAKING; look++) {
        sched_yield();
    }
    bool is_told = atomic_load(&segment->shared->broken) == CW_SEGMENT_BROKEN;
    /* others can write there: it ends nevertheless */
    snprintf(text, text_bytes, "%.*s", is_told ? CW_SEGMENT_WHY_BYTES - 1 : 0, segment->shared->why);
    *call = is_told ? segment->shared->why_call : UINT64_MAX;
    return is_told ? segment->shared->why_code : 0;
}
