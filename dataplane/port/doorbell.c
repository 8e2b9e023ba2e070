#include "dataplane/port/doorbell.h"

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DOORBELL_MAGIC UINT64_C(0x4c4c454257434a31) /* "1JCWBELL" as little-endian bytes */

enum { WORD_AWAKE = 0, WORD_ASLEEP = 1 };
enum { LOCK_WAIT_MS = 10000 };

/* A cache line each: a ring of one participant must not slow down its neighbour. */
struct doorbell_word {
    _Alignas(64) _Atomic uint32_t state;
};

struct doorbell_file {
    uint64_t magic; /* written last by the creator, under the file lock */
    uint32_t version;
    uint32_t word_count;
    struct doorbell_word words[CW_DOORBELL_WORDS];
};

static_assert(sizeof(struct doorbell_word) == 64, "one cache line per word");
static_assert(sizeof(struct doorbell_file) == 64 + 64 * CW_DOORBELL_WORDS, "layout shared between processes");
static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "the kernel compares the plain word");

struct cw_doorbell {
    struct doorbell_file *file;
    struct doorbell_word *own;
};

/* Lays the file out if it is new (empty, or left all zero by a creator that died), else checks it. The caller holds the
 * lock. */
static int doorbell_file_prepare(int descriptor, const char *path, char *error, size_t error_bytes)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "doorbell %s: fstat: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "doorbell %s: not a regular file; give the path of a file that does not exist yet", path);
    }
    if (status.st_size == 0) { /* a hole that the disk has no room for would be a bus error later */
        int failure = posix_fallocate(descriptor, 0, sizeof(struct doorbell_file));
        if (failure != 0) {
            return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "doorbell %s: fallocate: %s", path,
                                 strerror(failure));
        }
    }
    if (status.st_size != 0 && status.st_size != sizeof(struct doorbell_file)) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_UNSUPPORTED,
            "doorbell %s: %lld bytes where a doorbell file has %zu; remove the file or choose another path", path,
            (long long)status.st_size, sizeof(struct doorbell_file));
    }
    return CW_OK;
}

static int doorbell_header_check(struct doorbell_file *file, const char *path, char *error, size_t error_bytes)
{
    if (file->magic == 0 && file->version == 0 && file->word_count == 0) {
        file->version = CW_DOORBELL_FILE_VERSION;
        file->word_count = CW_DOORBELL_WORDS;
        file->magic = DOORBELL_MAGIC;
        return CW_OK;
    }
    if (file->magic != DOORBELL_MAGIC) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "doorbell %s: not a doorbell file; remove the file or choose another path", path);
    }
    if (file->version != CW_DOORBELL_FILE_VERSION || file->word_count != CW_DOORBELL_WORDS) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_UNSUPPORTED,
            "doorbell %s: version %u with %u words, this program knows version %d with %d; remove the file and "
            "start all processes from the same build",
            path, file->version, file->word_count, CW_DOORBELL_FILE_VERSION, CW_DOORBELL_WORDS);
    }
    return CW_OK;
}

/* The holder of the lock lays out the file, and may be stopped in there. False: it did not release it. */
static bool doorbell_lock(int descriptor)
{
    for (int tries = 0; flock(descriptor, LOCK_EX | LOCK_NB) != 0; tries++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || tries == LOCK_WAIT_MS) {
            return false;
        }
        usleep(1000);
    }
    return true;
}

/* Maps the file behind `descriptor`, preparing it under the lock: of several that come at once the first lays it
 * out. */
static int doorbell_map(int descriptor, const char *path, struct doorbell_file **file, char *error, size_t error_bytes)
{
    if (!doorbell_lock(descriptor)) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "doorbell %s: flock: %s%s", path, strerror(errno),
                             errno == EWOULDBLOCK ? " (is a process that opens it stopped?)" : "");
    }
    int status = doorbell_file_prepare(descriptor, path, error, error_bytes);
    struct doorbell_file *mapped = MAP_FAILED;
    if (status == CW_OK) {
        mapped = mmap(NULL, sizeof(struct doorbell_file), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (mapped == MAP_FAILED) {
            status = cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "doorbell %s: mmap: %s", path, strerror(errno));
        } else {
            status = doorbell_header_check(mapped, path, error, error_bytes);
        }
    }
    flock(descriptor, LOCK_UN);
    if (status != CW_OK) {
        if (mapped != MAP_FAILED) {
            munmap(mapped, sizeof(struct doorbell_file));
        }
        return status;
    }
    *file = mapped;
    return CW_OK;
}

int cw_doorbell_open(const char *path, uint32_t own_index, struct cw_doorbell **bell, char *error, size_t error_bytes)
{
    if (path == NULL || path[0] == '\0') {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "doorbell: no path given");
    }
    if (own_index >= CW_DOORBELL_WORDS) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "doorbell %s: index %u, allowed are 0 to %d", path,
                             own_index, CW_DOORBELL_WORDS - 1);
    }
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (descriptor < 0) {
        int status = errno == ENOENT ? CW_ERROR_SYSTEM : cw_status_of_errno(errno);
        return cw_error_text(error, error_bytes, status, "doorbell %s: open: %s%s", path, strerror(errno),
                             status == CW_ERROR_LIMIT
                                 ? cw_errno_remedy(errno)
                                 : "; its folder must exist and be writable, and the file belong to this user");
    }
    struct cw_doorbell *created = calloc(1, sizeof(*created));
    int status = created == NULL
                     ? cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "doorbell %s: out of memory", path)
                     : doorbell_map(descriptor, path, &created->file, error, error_bytes);
    close(descriptor);
    if (status != CW_OK) {
        free(created);
        return status;
    }
    created->own = &created->file->words[own_index];
    *bell = created;
    return CW_OK;
}

static void word_ring(struct doorbell_word *word)
{
    _Atomic uint32_t *state = &word->state;
    /* Pairs with the fence in cw_doorbell_arm: either the load below sees that the owner sleeps, or the owner's look at
     * its receive queue after that fence sees the packets that were sent before this one. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(state, memory_order_relaxed) != WORD_ASLEEP) {
        return;
    }
    /* Acquire-release pairs with the exchange of other ringers: one of them makes the system call, the rest are
     * done. */
    if (atomic_exchange_explicit(state, WORD_AWAKE, memory_order_acq_rel) == WORD_ASLEEP) {
        syscall(SYS_futex, state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void cw_doorbell_ring(struct cw_doorbell *bell, uint32_t index)
{
    if (index < CW_DOORBELL_WORDS) {
        word_ring(&bell->file->words[index]);
    }
}

void cw_doorbell_ring_own(struct cw_doorbell *bell)
{
    word_ring(bell->own);
}

void cw_doorbell_arm(struct cw_doorbell *bell)
{
    atomic_store_explicit(&bell->own->state, WORD_ASLEEP, memory_order_relaxed);
    /* Pairs with the fence in cw_doorbell_ring. */
    atomic_thread_fence(memory_order_seq_cst);
}

bool cw_doorbell_wait(struct cw_doorbell *bell, uint64_t timeout_ns)
{
    return cw_doorbell_wait_either(bell, &(struct cw_word){0}, timeout_ns);
}

bool cw_doorbell_wait_either(struct cw_doorbell *bell, const struct cw_word *other, uint64_t timeout_ns)
{
    /* The kernel compares the word with WORD_ASLEEP before it sleeps, so a ring between arm and here returns at
     * once. */
    cw_words_wait(&(struct cw_word){.at = &bell->own->state, .value = WORD_ASLEEP}, other, timeout_ns);
    /* Acquire pairs with the release half of the exchange in cw_doorbell_ring. */
    return atomic_load_explicit(&bell->own->state, memory_order_acquire) != WORD_ASLEEP;
}

void cw_doorbell_disarm(struct cw_doorbell *bell)
{
    atomic_store_explicit(&bell->own->state, WORD_AWAKE, memory_order_relaxed);
}

void cw_doorbell_close(struct cw_doorbell *bell)
{
    if (bell == NULL) {
        return;
    }
    munmap(bell->file, sizeof(*bell->file));
    free(bell);
}
