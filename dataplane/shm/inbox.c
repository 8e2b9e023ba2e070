#include "dataplane/shm/inbox.h"

#include "dataplane/base/process.h"
#include "dataplane/base/virtual.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INBOX_MAGIC UINT64_C(0x584f424e49574331) /* "1CWINBOX" as little-endian bytes */

/* One per possible sender, behind the header. */
struct inbox_slot {
    _Alignas(CW_RING_LINE) _Atomic uint32_t ready; /* set last by the sender that claimed it */
    uint32_t sender;
    struct cw_ring_control control;
};

static_assert(sizeof(struct cw_inbox_shared) == 3 * CW_RING_LINE, "layout shared between processes");
static_assert(sizeof(struct inbox_slot) == 2 * CW_RING_LINE, "layout shared between processes");
static_assert(CW_INBOX_RING_BYTES % 4096 == 0, "mapped twice in a row");

struct inbox_ring {
    struct cw_ring_consumer consumer;
    void *mapping; /* NULL: not claimed yet, or */
    int lost;      /* not 0: it could not be mapped: errno */
    uint32_t sender;
};

struct cw_inbox {
    int descriptor;
    int bell[2];   /* a pipe's ends; -1: none */
    uint32_t rung; /* when it was armed */
    uint32_t senders_max;
    bool can_barrier;     /* otherwise senders fence permanently */
    uint64_t armed_ns;    /* when it was armed last */
    uint64_t interval_ns; /* from sleep to sleep, on average */
    size_t header_bytes;
    struct cw_inbox_shared *shared;
    struct inbox_slot *slots;
    struct inbox_ring *rings;
};

static size_t header_bytes(uint32_t senders_max)
{
    size_t bytes = sizeof(struct cw_inbox_shared) + senders_max * sizeof(struct inbox_slot);
    return (bytes + 4095) & ~(size_t)4095;
}

static uint64_t ring_offset(const struct cw_inbox_shared *shared, uint32_t slot)
{
    return shared->rings_offset + (uint64_t)slot * shared->ring_bytes;
}

/* Maps a ring twice in a row; NULL if the system will not. */
static void *ring_map(int descriptor, uint64_t offset, uint64_t bytes)
{
    uint8_t *memory = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    for (int half = 0; half < 2; half++) {
        if (mmap(memory + (uint64_t)half * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
                 (off_t)offset) == MAP_FAILED) {
            munmap(memory, 2 * bytes);
            return NULL;
        }
    }
    return memory;
}

/* Whether the kernel runs a barrier on all cores for a thread that goes to sleep. Registering is for all processes that
 * such a barrier affects. */
static bool barrier_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

int cw_inbox_create(uint32_t senders_max, uint64_t nonce, struct cw_inbox **inbox, char *error, size_t error_bytes)
{
    if (senders_max < 1 || senders_max > CW_INBOX_SLOTS_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "inbox: %u senders, where 1 to %d are possible",
                             senders_max, CW_INBOX_SLOTS_MAX);
    }
    struct cw_inbox *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->rings = calloc(senders_max, sizeof(*made->rings))) == NULL) {
        free(made);
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "inbox: no memory for %u senders%s", senders_max,
                             cw_errno_remedy(ENOMEM));
    }
    made->senders_max = senders_max;
    made->bell[0] = made->bell[1] = -1;
    made->header_bytes = header_bytes(senders_max);
    made->descriptor = memfd_create("causeway-inbox", MFD_CLOEXEC);
    off_t bytes = (off_t)(made->header_bytes + (uint64_t)senders_max * CW_INBOX_RING_BYTES);
    if (made->descriptor < 0 || ftruncate(made->descriptor, bytes) != 0 ||
        (made->shared = mmap(NULL, made->header_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->descriptor, 0)) ==
            MAP_FAILED) {
        int status = cw_error_text(error, error_bytes, cw_status_of_errno(errno),
                                   "inbox: %lld bytes of shared memory (memfd): %s%s", (long long)bytes,
                                   strerror(errno), cw_errno_remedy(errno));
        made->shared = NULL;
        cw_inbox_destroy(made);
        return status;
    }
    made->slots = (struct inbox_slot *)(made->shared + 1);
    made->shared->nonce = nonce;
    made->shared->bell = -1;
    made->shared->version = CW_INBOX_VERSION;
    made->shared->senders_max = senders_max;
    made->shared->ring_bytes = CW_INBOX_RING_BYTES;
    made->shared->rings_offset = made->header_bytes;
    made->shared->virtual_rank = cw_virtual_is_on() ? cw_virtual_page->rank : UINT32_MAX;
    made->can_barrier = !cw_virtual_is_on() && barrier_register();
    made->interval_ns = CW_INBOX_RARELY_NS;
    atomic_init(&made->shared->senders_fence, !made->can_barrier);
    made->shared->magic = INBOX_MAGIC;
    *inbox = made;
    return CW_OK;
}

void cw_inbox_destroy(struct cw_inbox *inbox)
{
    if (inbox == NULL) {
        return;
    }
    for (uint32_t slot = 0; slot < inbox->senders_max; slot++) {
        if (inbox->rings[slot].mapping != NULL) {
            munmap(inbox->rings[slot].mapping, 2 * CW_INBOX_RING_BYTES);
        }
    }
    if (inbox->shared != NULL) {
        munmap(inbox->shared, inbox->header_bytes);
    }
    if (inbox->descriptor >= 0) {
        close(inbox->descriptor);
    }
    for (int end = 0; end < 2; end++) {
        if (inbox->bell[end] >= 0) {
            close(inbox->bell[end]);
        }
    }
    free(inbox->rings);
    free(inbox);
}

int cw_inbox_bell_open(struct cw_inbox *inbox, char *error, size_t error_bytes)
{
    if (pipe2(inbox->bell, O_NONBLOCK | O_CLOEXEC) != 0) {
        inbox->bell[0] = inbox->bell[1] = -1;
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "inbox: pipe: %s", strerror(errno));
    }
    inbox->shared->bell = inbox->bell[1];
    return CW_OK;
}

struct cw_inbox_place cw_inbox_place(const struct cw_inbox *inbox)
{
    return (struct cw_inbox_place){
        .pid = getpid(),
        .number = cw_process_number(),
        .descriptor = inbox->descriptor,
        .nonce = inbox->shared->nonce,
        .probe = (uint64_t)(uintptr_t)&inbox->shared->nonce,
    };
}

/* Maps the ring of a claimed slot. False: its sender is not ready yet. */
static bool ring_open(struct cw_inbox *inbox, uint32_t slot)
{
    struct inbox_ring *ring = &inbox->rings[slot];
    if (ring->lost != 0) {
        return true;
    }
    /* pairs with the release in slot_claim: `sender` */
    if (atomic_load_explicit(&inbox->slots[slot].ready, memory_order_acquire) == 0) {
        return false;
    }
    ring->mapping = ring_map(inbox->descriptor, ring_offset(inbox->shared, slot), CW_INBOX_RING_BYTES);
    ring->lost = ring->mapping == NULL ? errno : 0;
    ring->sender = inbox->slots[slot].sender;
    ring->consumer = (struct cw_ring_consumer){
        .memory = ring->mapping,
        .control = &inbox->slots[slot].control,
        .bytes = CW_INBOX_RING_BYTES,
    };
    return true;
}

bool cw_inbox_next(struct cw_inbox *inbox, struct cw_inbox_cursor *at)
{
    uint32_t claimed = atomic_load_explicit(&inbox->shared->claimed, memory_order_relaxed);
    while (at->next < claimed && at->next < inbox->senders_max) {
        struct inbox_ring *ring = &inbox->rings[at->next];
        at->slot = at->next++;
        if (ring->mapping != NULL || ring_open(inbox, at->slot)) {
            at->sender = ring->sender;
            at->ring = ring->lost == 0 ? &ring->consumer : NULL;
            return true;
        }
    }
    return false;
}

int cw_inbox_lost(const struct cw_inbox *inbox, uint32_t slot, char *error, size_t error_bytes)
{
    assert(slot < inbox->senders_max);
    const struct inbox_ring *ring = &inbox->rings[slot];
    if (ring->lost == 0) {
        return CW_OK;
    }
    return cw_error_text(error, error_bytes, cw_status_of_errno(ring->lost),
                         "own inbox: map the ring of a sender: %s%s", strerror(ring->lost),
                         cw_errno_remedy(ring->lost));
}

/* Chooses the side that pays for the barriers from now on: by how often the owner has slept of late, one long rest
 * counting as one. */
static void payer_choose(struct cw_inbox *inbox, uint64_t now_ns)
{
    uint64_t since_ns = now_ns - inbox->armed_ns;
    inbox->armed_ns = now_ns;
    since_ns = since_ns < 16 * CW_INBOX_RARELY_NS ? since_ns : 16 * CW_INBOX_RARELY_NS;
    inbox->interval_ns = (inbox->interval_ns * 15 + since_ns) / 16;
    bool senders_pay = atomic_load_explicit(&inbox->shared->senders_fence, memory_order_relaxed) != 0;
    if (senders_pay ? inbox->interval_ns > CW_INBOX_RARELY_NS : inbox->interval_ns < CW_INBOX_OFTEN_NS) {
        atomic_store_explicit(&inbox->shared->senders_fence, !senders_pay, memory_order_relaxed);
    }
}

void cw_inbox_arm(struct cw_inbox *inbox, uint64_t now_ns)
{
    inbox->rung = atomic_load_explicit(&inbox->shared->rung, memory_order_relaxed);
    bool senders_paid = atomic_load_explicit(&inbox->shared->senders_fence, memory_order_relaxed) != 0;
    atomic_store_explicit(&inbox->shared->asleep, 1, memory_order_relaxed);
    if (inbox->can_barrier) {
        payer_choose(inbox, now_ns);
        bool senders_pay = atomic_load_explicit(&inbox->shared->senders_fence, memory_order_relaxed) != 0;
        /* senders that have not seen yet that they pay are hit by this barrier, which comes after they are asked and
         * before the owner looks */
        if (!senders_paid || !senders_pay) {
            (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0,
                          0); /* cannot fail once it has been registered for */
            return;
        }
    }
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in cw_inbox_ring */
}

struct cw_port_alarm cw_inbox_alarm(const struct cw_inbox *inbox)
{
    return (struct cw_port_alarm){.word = {.at = &inbox->shared->rung, .value = inbox->rung},
                                  .descriptor = inbox->bell[0]};
}

void cw_inbox_sleep(struct cw_inbox *inbox, uint64_t timeout_ns)
{
    struct cw_port_alarm alarm = cw_inbox_alarm(inbox);
    cw_words_wait(&alarm.word, &(struct cw_word){0}, timeout_ns);
}

void cw_inbox_disarm(struct cw_inbox *inbox)
{
    atomic_store_explicit(&inbox->shared->asleep, 0, memory_order_relaxed);
}

void cw_inbox_place_on(struct cw_inbox *inbox, uint32_t core)
{
    if (atomic_load_explicit(&inbox->shared->core, memory_order_relaxed) != core + 1) {
        atomic_store_explicit(&inbox->shared->core, core + 1, memory_order_relaxed);
    }
}

bool cw_inbox_owner_is_on(const struct cw_inbox_sender *end, uint32_t core)
{
    return atomic_load_explicit(&end->shared->core, memory_order_relaxed) == core + 1 &&
           atomic_load_explicit(&end->shared->asleep, memory_order_relaxed) == 0;
}

/* Wakes the owner; `bell`: its pipe, or -1. */
static void wake(struct cw_inbox_shared *shared, int bell)
{
    /* only who finds it armed pays for the calls to the kernel */
    if (atomic_exchange_explicit(&shared->asleep, 0, memory_order_relaxed) == 0) {
        return;
    }
    /* pairs with the acquire in cw_word_has_changed */
    atomic_fetch_add_explicit(&shared->rung, 1, memory_order_release);
    if (shared->virtual_rank != UINT32_MAX) {
        cw_virtual_wake(shared->virtual_rank);
        return;
    }
    syscall(SYS_futex, &shared->rung, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (bell >= 0) {
        ssize_t written = write(bell, "", 1);
        (void)written; /* fails only if it is full, and so readable, or has no reader any more */
    }
}

void cw_inbox_ring(struct cw_inbox_sender *end)
{
    if (atomic_load_explicit(&end->shared->senders_fence, memory_order_relaxed) != 0) {
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in cw_inbox_arm */
    } else {
        atomic_signal_fence(memory_order_seq_cst); /* the owner's membarrier turns this into a real one */
    }
    if (atomic_load_explicit(&end->shared->asleep, memory_order_relaxed) != 0) {
        wake(end->shared, end->bell);
    }
}

void cw_inbox_ring_own(struct cw_inbox *inbox)
{
    wake(inbox->shared, inbox->bell[1]);
}

/* Opens the pipe of an owner that has one. False: errno tells. */
static bool bell_open(struct cw_inbox_sender *end, const struct cw_inbox_place *place)
{
    char path[64];
    if (end->shared->bell < 0) {
        return true;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->number, end->shared->bell);
    end->bell = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return end->bell >= 0;
}

/* Whether a process that runs has no place in /proc. One that has ended leaves /proc before its number is free. */
static bool proc_hides(const struct cw_inbox_place *place)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", place->number);
    return access(path, F_OK) != 0 && (kill(place->pid, 0) == 0 || errno == EPERM);
}

/* Whether a process is of our user, and hidden from it all the same: its files in /proc are the superuser's then. */
static bool is_hidden(const struct cw_inbox_place *place)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%d/fd", place->number);
    return stat(path, &status) == 0 && status.st_uid == 0 && geteuid() != 0 && kill(place->pid, 0) == 0;
}

/* Opens the memfd; which process it is of is checked by its nonce. */
static int place_open(const struct cw_inbox_place *place, int *descriptor, char *error, size_t error_bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->number, place->descriptor);
    *descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (*descriptor >= 0) {
        return CW_OK;
    }
    int reason = errno;
    bool is_elsewhere = reason == ENOENT && proc_hides(place);
    int code = is_elsewhere ? CW_ERROR_PERMISSION : cw_status_of_errno(reason);
    return cw_error_text(error, error_bytes, code, "inbox of process %d: %s: %s%s", place->pid, path, strerror(reason),
                         is_elsewhere ? "; the process is there: mount the /proc of its PID namespace, without hidepid"
                         : code != CW_ERROR_PERMISSION ? cw_errno_remedy(reason)
                         : is_hidden(place) ? "; the kernel hides it from its own user (prctl PR_SET_DUMPABLE, or "
                                              "another user since): do that before MPI_Init, which then uses packets"
                                            : "; processes of one job on one host must run as the same user");
}

static int shared_check(const struct cw_inbox_shared *shared, const struct cw_inbox_place *place, uint64_t file_bytes,
                        char *error, size_t error_bytes)
{
    if (shared->magic != INBOX_MAGIC || shared->nonce != place->nonce) {
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "inbox of process %d: the process is gone and another one has its number", place->pid);
    }
    if (shared->version != CW_INBOX_VERSION || shared->ring_bytes != CW_INBOX_RING_BYTES || shared->senders_max < 1 ||
        shared->senders_max > CW_INBOX_SLOTS_MAX || shared->rings_offset != header_bytes(shared->senders_max) ||
        file_bytes != shared->rings_offset + shared->senders_max * shared->ring_bytes) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_UNSUPPORTED,
            "inbox of process %d: version %u, this program has %d; start all processes with the same library",
            place->pid, shared->version, CW_INBOX_VERSION);
    }
    return CW_OK;
}

static int slot_claim(struct cw_inbox_sender *end, int descriptor, uint32_t sender, char *error, size_t error_bytes)
{
    /* mapped before it is claimed: a place claimed without a mapping could not be returned */
    uint32_t slot = atomic_load_explicit(&end->shared->claimed, memory_order_relaxed);
    for (;;) {
        if (slot >= end->shared->senders_max) {
            return cw_error_text(
                error, error_bytes, CW_ERROR_LIMIT,
                "inbox of process %d: all %u slots for senders are taken; one is a process's that is no rank, "
                "as a child that a rank has forked and that calls MPI",
                end->pid, end->shared->senders_max);
        }
        void *mapping = ring_map(descriptor, ring_offset(end->shared, slot), CW_INBOX_RING_BYTES);
        if (mapping == NULL) {
            return cw_error_text(error, error_bytes, cw_status_of_errno(errno), "inbox of process %d: map a ring: %s%s",
                                 end->pid, strerror(errno), cw_errno_remedy(errno));
        }
        if (atomic_compare_exchange_strong_explicit(&end->shared->claimed, &slot, slot + 1, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            end->mapping = mapping;
            break;
        }
        munmap(mapping, 2 * CW_INBOX_RING_BYTES);
    }
    struct inbox_slot *claimed = (struct inbox_slot *)(end->shared + 1) + slot;
    claimed->sender = sender;
    end->slot = slot;
    end->ring = (struct cw_ring_producer){
        .memory = end->mapping,
        .control = &claimed->control,
        .bytes = CW_INBOX_RING_BYTES,
    };
    /* pairs with the acquire in ring_open */
    atomic_store_explicit(&claimed->ready, 1, memory_order_release);
    return CW_OK;
}

int cw_inbox_attach(const struct cw_inbox_place *place, uint32_t sender, struct cw_inbox_sender *end, char *error,
                    size_t error_bytes)
{
    int descriptor;
    struct stat file;
    int status = place_open(place, &descriptor, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    *end = (struct cw_inbox_sender){.pid = place->pid, .bell = -1};
    size_t map_bytes = header_bytes(CW_INBOX_SLOTS_MAX);
    if (fstat(descriptor, &file) != 0 || file.st_size < (off_t)header_bytes(1)) {
        status = cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND, "inbox of process %d: the process is gone",
                               place->pid);
    } else {
        end->shared = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (end->shared == MAP_FAILED) {
            end->shared = NULL;
            status = cw_error_text(error, error_bytes, cw_status_of_errno(errno), "inbox of process %d: mmap: %s%s",
                                   place->pid, strerror(errno), cw_errno_remedy(errno));
        }
    }
    if (status == CW_OK) {
        status = shared_check(end->shared, place, (uint64_t)file.st_size, error, error_bytes);
    }
    if (status == CW_OK && !bell_open(end, place)) {
        status = cw_error_text(error, error_bytes, cw_status_of_errno(errno), "inbox of process %d: its pipe: %s%s",
                               place->pid, strerror(errno), cw_errno_remedy(errno));
    }
    if (status == CW_OK) {
        (void)barrier_register(); /* the owner's barrier must reach this process, too */
        status = slot_claim(end, descriptor, sender, error, error_bytes);
    }
    close(descriptor);
    if (status != CW_OK) {
        cw_inbox_detach(end);
    }
    return status;
}

void cw_inbox_detach(struct cw_inbox_sender *end)
{
    if (end->mapping != NULL) {
        munmap(end->mapping, 2 * CW_INBOX_RING_BYTES);
    }
    if (end->shared != NULL) {
        if (end->bell >= 0) {
            close(end->bell);
        }
        munmap(end->shared, header_bytes(CW_INBOX_SLOTS_MAX));
    }
    *end = (struct cw_inbox_sender){.bell = -1};
}
