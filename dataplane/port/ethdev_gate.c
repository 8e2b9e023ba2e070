/* The gate between memif's control thread and the threads that send and receive.
 *
 * When the other side of a memif goes away, its driver (22.11) unmaps the packet memory on EAL's interrupt thread, at
 * any time: a burst in progress on the owner's thread then reads unmapped memory and the process dies. The driver has
 * no lock for that, but all of its callbacks run on one thread. So, as long as a memif link is up, that thread is
 * parked in a callback of ours, and released only when EAL has work for it: a peer that connects or leaves.
 *
 *    gate open    the interrupt thread is in EAL, runs callbacks, waits for events; owners leave the driver alone
 *    gate closed  the interrupt thread is parked in gate_callback; owners may call the driver
 *
 * An owner marks itself `inside` before it checks whether the gate is closed; the interrupt thread opens the gate
 * before it waits until no owner is inside. Since one is done a million times as often as the other, the fence that
 * this needs on both sides is made by the interrupt thread alone, with membarrier(2).
 *
 * EAL's epoll descriptor shows whether EAL has work; it is found in /proc by a descriptor that it watches: our eventfd.
 * Without /proc the gate opens every now and then instead. */
#define ALLOW_EXPERIMENTAL_API /* rte_intr_instance_alloc and its kin: in DPDK since 21.11 */
#include "dataplane/port/ethdev_private.h"

#include <dirent.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_pause.h>

enum {
    GATE_PERIOD_MS = 20, /* between openings, if EAL's epoll descriptor is not to be found */
    GATE_PAUSES = 256,   /* checks whether the owners are outside before sleeping in between */
    GATE_LEAVE_US = 20,  /* ... and that sleep */
    GATE_REFUSALS =
        256, /* an owner that is kept out as often in a row makes room: the interrupt thread may need its core */
    GATE_PATH_BYTES = 64,
};

/* EAL has one interrupt thread per process, so there is one gate. */
static struct {
    pthread_mutex_t lock; /* of the next fields, down to `ports` */
    pthread_cond_t closed;
    bool installed;
    struct rte_intr_handle *handle; /* lives as long as the process, as EAL does */
    uint32_t holders;               /* threads that wait for the gate to be closed and want it to stay so */
    struct ethdev_port *ports;
    int descriptor;          /* eventfd: readable while the interrupt thread is to come to the gate */
    bool fences;             /* no membarrier here: owners fence */
    _Atomic uint32_t called; /* the descriptor is readable, or the interrupt thread is at the gate */
    _Alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .closed = PTHREAD_COND_INITIALIZER, .descriptor = -1, .open = 1};

static const _Atomic uint32_t never_barred = 0;

static void descriptor_raise(void)
{
    uint64_t one = 1;
    ssize_t written = write(gate.descriptor, &one, sizeof(one));
    (void)written; /* cannot fail: it counts to 2^64 - 2 */
}

static void descriptor_lower(void)
{
    uint64_t count;
    ssize_t taken = read(gate.descriptor, &count, sizeof(count));
    (void)taken; /* it may be down already */
}

/* Has the interrupt thread come to the gate. */
static void gate_call(void)
{
    if (atomic_exchange_explicit(&gate.called, 1, memory_order_acq_rel) == 0) {
        descriptor_raise();
    }
}

/* ---- the interrupt thread ---- */

static bool any_link_is_up(void)
{
    for (const struct ethdev_port *port = gate.ports; port != NULL; port = port->gate_next) {
        if (ethdev_link_is_up(port)) {
            return true;
        }
    }
    return false;
}

/* True if the epoll descriptor watches our eventfd. */
static bool epoll_is_eals(const char *number)
{
    char path[GATE_PATH_BYTES];
    char line[160];
    int watched = -1;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%.16s", number);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        found = sscanf(line, "tfd: %d", &watched) == 1 && watched == gate.descriptor;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* EAL makes a new one whenever the set of its interrupt sources changes, so it is looked for each time. -1: not
 * found. */
static int epoll_find(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int found = -1;
    for (struct dirent *entry = NULL; folder != NULL && found < 0 && (entry = readdir(folder)) != NULL;) {
        char target[GATE_PATH_BYTES] = "";
        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0 &&
            strcmp(target, "anon_inode:[eventpoll]") == 0 && epoll_is_eals(entry->d_name)) {
            found = atoi(entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

/* Stays here until EAL has something to do. Our own eventfd is down, so another event makes EAL's set readable. */
static void gate_park(void)
{
    struct pollfd set = {.fd = epoll_find(), .events = POLLIN};
    poll(&set, 1, set.fd < 0 ? GATE_PERIOD_MS : -1);
}

/* Opens the gate and waits until no owner is in the driver. */
static void gate_open(void)
{
    atomic_store_explicit(&gate.open, 1, memory_order_seq_cst);
    if (!gate.fences) {
        /* A full fence on every running thread of this process: pairs with the compiler's fence in
         * ethdev_gate_enter. */
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    for (struct ethdev_port *port = gate.ports; port != NULL; port = port->gate_next) {
        /* Acquire pairs with the release in ethdev_gate_leave: the owner's work in the driver is done. */
        for (int looks = 0; atomic_load_explicit(&port->inside, memory_order_acquire) != 0; looks++) {
            if (looks < GATE_PAUSES) {
                rte_pause();
            } else {
                usleep(GATE_LEAVE_US); /* the owner may have been interrupted in there, on this very core */
            }
        }
    }
}

static void gate_callback(void *context)
{
    (void)context;
    descriptor_lower();
    pthread_mutex_lock(&gate.lock);
    if (any_link_is_up() || gate.holders > 0) {
        /* Release pairs with the acquire in ethdev_gate_enter: the owner finds the driver as its callbacks left it. */
        atomic_store_explicit(&gate.open, 0, memory_order_release);
        pthread_cond_broadcast(&gate.closed);
        do {
            /* Threads that hold the gate do so now. */
            pthread_mutex_unlock(&gate.lock);
            gate_park();
            pthread_mutex_lock(&gate.lock);
        } while (gate.holders > 0);
        descriptor_raise(); /* to come back once EAL is done */
        gate_open();
    } else {
        /* Nothing to protect: stay in EAL until an owner sees its link up. Release: the next gate_call raises it
         * again. */
        atomic_store_explicit(&gate.called, 0, memory_order_release);
    }
    pthread_mutex_unlock(&gate.lock);
}

/* ---- the owners ---- */

static int gate_install(char *error, size_t error_bytes)
{
    gate.fences = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
    gate.descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    if (gate.descriptor < 0 || handle == NULL || rte_intr_fd_set(handle, gate.descriptor) != 0 ||
        rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
        rte_intr_callback_register(handle, gate_callback, NULL) != 0) {
        if (gate.descriptor >= 0) {
            close(gate.descriptor);
        }
        rte_intr_instance_free(handle);
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                             "port: no callback on EAL's interrupt thread; are there "
                             "file descriptors left (ulimit -n)?");
    }
    gate.handle = handle;
    gate.installed = true;
    return CW_OK;
}

void ethdev_gate_init(struct ethdev_port *port)
{
    port->barred = &never_barred;
}

int ethdev_gate_add(struct ethdev_port *port, char *error, size_t error_bytes)
{
    pthread_mutex_lock(&gate.lock);
    int status = gate.installed ? CW_OK : gate_install(error, error_bytes);
    if (status == CW_OK) {
        port->gate_next = gate.ports;
        gate.ports = port;
        port->barred = &gate.open;
        port->fences = gate.fences;
    }
    pthread_mutex_unlock(&gate.lock);
    return status;
}

void ethdev_gate_hold(const struct ethdev_port *port)
{
    if (port->barred == &never_barred) {
        return;
    }
    pthread_mutex_lock(&gate.lock);
    gate.holders++;
    gate_call();
    while (atomic_load_explicit(&gate.open, memory_order_acquire) != 0) {
        pthread_cond_wait(&gate.closed, &gate.lock);
    }
    gate.holders--;
}

void ethdev_gate_let_go(const struct ethdev_port *port)
{
    if (port->barred != &never_barred) {
        pthread_mutex_unlock(&gate.lock);
    }
}

void ethdev_gate_remove(struct ethdev_port *port)
{
    if (port->barred == &never_barred) {
        return;
    }
    for (struct ethdev_port **link = &gate.ports; *link != NULL;) {
        if ((*link)->first == port) {
            *link = (*link)->gate_next;
        } else {
            link = &(*link)->gate_next;
        }
    }
}

bool ethdev_gate_barred(struct ethdev_port *port)
{
    ethdev_gate_leave(port);
    bool up = ethdev_link_is_up(port);
    if (up) {
        gate_call();
        if (++port->refusals >= GATE_REFUSALS) {
            usleep(GATE_LEAVE_US);
        }
    }
    return up;
}

bool ethdev_link_up(struct cw_port *base)
{
    struct ethdev_port *port = ethdev_of(base);
    bool up = ethdev_link_is_up(port);
    if (up && atomic_load_explicit(port->barred, memory_order_relaxed) != 0) {
        gate_call();
    }
    return up;
}
