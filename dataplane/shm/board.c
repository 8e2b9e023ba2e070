#include "dataplane/shm/board.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/core/process.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#define BOARD_MAGIC UINT64_C(0x4452414f42574331) /* "1CWBOARD" as little-endian bytes */

static_assert(sizeof(struct cw_board_line) == CW_BOARD_LINE, "layout shared between processes");
static_assert(sizeof(struct cw_board_counter) == CW_BOARD_LINE, "layout shared between processes");
static_assert(sizeof(struct cw_board_shared) == 3 * CW_BOARD_LINE + CW_BOARD_WHY_BYTES,
              "layout shared between processes");
static_assert(CW_BOARD_SHORT_STRIDE % CW_BOARD_LINE == 0 &&
                  CW_BOARD_SHORT_STRIDE >= CW_BOARD_SHORT_BYTES + sizeof(struct cw_board_flag),
              "a slot has its own lines");
static_assert(CW_BOARD_LONG_SLOTS <= CW_BOARD_ROUNDS, "a round has a flag of its own as long as its long slot");
static_assert(CW_BOARD_ARRIVE_EVERY < CW_BOARD_ROUNDS, "members arrive before the short slots are used up");
static_assert(CW_BOARD_MEMBERS_MAX < 1 << CW_BOARD_COUNT_BITS, "a counter counts all");

/* Where the parts lie; the descriptor and the mapping are left alone. */
static void layout(struct cw_board *board, uint32_t member, uint32_t member_count)
{
    board->member = member;
    board->member_count = member_count;
    board->group_count = (member_count + CW_BOARD_GROUP - 1) / CW_BOARD_GROUP;
    size_t lines = sizeof(struct cw_board_shared);
    size_t counters = lines + member_count * sizeof(struct cw_board_line);
    size_t slots = counters + CW_BOARD_ROUNDS * (board->group_count + 1) * sizeof(struct cw_board_counter);
    slots = (slots + 4095) & ~(size_t)4095;
    size_t long_slots = slots + (member_count + 1) * (size_t)CW_BOARD_ROUNDS * CW_BOARD_SHORT_STRIDE;
    long_slots = (long_slots + 4095) & ~(size_t)4095;
    board->bytes = long_slots + (member_count + 1) * (size_t)CW_BOARD_LONG_SLOTS * CW_BOARD_LONG_BYTES;
    if (board->shared != NULL) {
        uint8_t *memory = (uint8_t *)board->shared;
        board->lines = (struct cw_board_line *)(void *)(memory + lines);
        board->counters = (struct cw_board_counter *)(void *)(memory + counters);
        board->slots = memory + slots;
        board->long_slots = memory + long_slots;
    }
}

/* False: errno tells. */
static bool map(struct cw_board *board)
{
    void *memory = mmap(NULL, board->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board->descriptor, 0);
    board->shared = memory == MAP_FAILED ? NULL : memory;
    return memory != MAP_FAILED;
}

int cw_board_create(uint32_t member_count, uint64_t nonce, struct cw_board *board, char *error, size_t error_bytes)
{
    if (member_count < 2 || member_count > CW_BOARD_MEMBERS_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "board: %u members, where 2 to %d are possible",
                             member_count, CW_BOARD_MEMBERS_MAX);
    }
    struct cw_board made = {.descriptor = memfd_create("causeway-board", MFD_CLOEXEC)};
    layout(&made, 0, member_count);
    if (made.descriptor < 0 || ftruncate(made.descriptor, (off_t)made.bytes) != 0 || !map(&made)) {
        int status = cw_error_text(error, error_bytes, cw_status_of_errno(errno),
                                   "board: %zu bytes of shared memory (memfd): %s%s", made.bytes, strerror(errno),
                                   cw_errno_remedy(errno));
        cw_board_close(&made);
        return status;
    }
    layout(&made, 0, member_count);
    made.shared->nonce = nonce;
    made.shared->version = CW_BOARD_VERSION;
    made.shared->member_count = member_count;
    made.shared->magic = BOARD_MAGIC;
    *board = made;
    return CW_OK;
}

struct cw_board_place cw_board_place(const struct cw_board *board)
{
    return (struct cw_board_place){
        .pid = cw_process_number(), .descriptor = board->descriptor, .nonce = board->shared->nonce};
}

int cw_board_open(const struct cw_board_place *place, uint32_t member, uint32_t member_count, struct cw_board *board,
                  char *error, size_t error_bytes)
{
    char path[64];
    struct stat file;
    assert(member < member_count && member_count <= CW_BOARD_MEMBERS_MAX);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->descriptor);
    struct cw_board made = {.descriptor = open(path, O_RDWR | O_CLOEXEC)};
    layout(&made, member, member_count);
    if (made.descriptor < 0) {
        return cw_error_text(error, error_bytes, cw_status_of_errno(errno), "board of process %d: %s: %s%s", place->pid,
                             path, strerror(errno), cw_errno_remedy(errno));
    }
    int status = CW_OK;
    if (fstat(made.descriptor, &file) != 0 || file.st_size != (off_t)made.bytes) {
        status = cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                               "board of process %d: it is not one of %u members", place->pid, member_count);
    } else if (!map(&made)) {
        status = cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "board of process %d: mmap: %s", place->pid,
                               strerror(errno));
    } else if (made.shared->magic != BOARD_MAGIC || made.shared->nonce != place->nonce ||
               made.shared->version != CW_BOARD_VERSION || made.shared->member_count != member_count) {
        status = cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                               "board of process %d: of another version, or another job's", place->pid);
    }
    if (status != CW_OK) {
        cw_board_close(&made);
        return status;
    }
    layout(&made, member, member_count);
    cw_board_seal(&made);
    *board = made;
    return CW_OK;
}

void cw_board_seal(struct cw_board *board)
{
    close(board->descriptor);
    board->descriptor = -1;
}

void cw_board_close(struct cw_board *board)
{
    if (board->shared != NULL) {
        munmap(board->shared, board->bytes);
        if (board->descriptor >= 0) {
            close(board->descriptor);
        }
    } else if (board->descriptor > 0) {
        close(board->descriptor);
    }
    *board = (struct cw_board){.descriptor = -1};
}

void cw_board_break(struct cw_board *board, int32_t code, const char *why)
{
    uint32_t whole = CW_BOARD_WHOLE;
    if (atomic_compare_exchange_strong(&board->shared->broken, &whole, CW_BOARD_BREAKING)) {
        snprintf(board->shared->why, sizeof(board->shared->why), "%s", why);
        board->shared->why_code = code;
        atomic_store(&board->shared->broken, CW_BOARD_BROKEN);
    }
}

int32_t cw_board_why(const struct cw_board *board, char *text, size_t text_bytes)
{
    enum { LOOKS = 1000 }; /* who breaks it is between two stores, unless it has died there */
    for (int look = 0; look < LOOKS && atomic_load(&board->shared->broken) == CW_BOARD_BREAKING; look++) {
        sched_yield();
    }
    bool is_told = atomic_load(&board->shared->broken) == CW_BOARD_BROKEN;
    /* others can write there: it ends nevertheless */
    snprintf(text, text_bytes, "%.*s", is_told ? CW_BOARD_WHY_BYTES - 1 : 0, board->shared->why);
    return is_told ? board->shared->why_code : 0;
}
