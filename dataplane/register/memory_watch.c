#include "dataplane/register/memory_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/base/thread.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum {
    REMOVALS = 256,       /* that are kept; more at a time: all is taken to have been removed */
    CHANGES_TRIES = 1000, /* while another thread changes mappings */
};

struct range {
    uintptr_t first, end;
};

struct watcher {
    int file; /* the userfaultfd */
    int stop; /* an eventfd */
    uintptr_t page_bytes;
    pthread_t thread;
    atomic_uint reading; /* the thread reads, and has not reported all of it */
    atomic_uint written; /* removals, ever */
    atomic_bool is_full; /* one found no place */
    atomic_uint taken;
    struct range removals[REMOVALS];
};

/* ---- what madvise gives back ---- */

static void removal_add(struct watcher *watcher, struct range range)
{
    unsigned written = atomic_load_explicit(&watcher->written, memory_order_relaxed);
    /* one slot stays free: the reader may be at the oldest */
    if (written - atomic_load_explicit(&watcher->taken, memory_order_acquire) >= REMOVALS - 1) {
        atomic_store_explicit(&watcher->is_full, true, memory_order_release);
        return;
    }
    watcher->removals[written % REMOVALS] = range;
    atomic_store_explicit(&watcher->written, written + 1, memory_order_release); /* pairs with watch_removed */
}

static void events_read(struct watcher *watcher)
{
    struct uffd_msg message;
    /* before the read, which resumes the caller of madvise: a later check sees this, or the report */
    atomic_store(&watcher->reading, 1);
    while (read(watcher->file, &message, sizeof(message)) == (ssize_t)sizeof(message)) {
        if (message.event == UFFD_EVENT_REMOVE) {
            removal_add(watcher,
                        (struct range){(uintptr_t)message.arg.remove.start, (uintptr_t)message.arg.remove.end});
        }
    }
    atomic_store(&watcher->reading, 0);
}

static void *watcher_run(void *argument)
{
    struct watcher *watcher = argument;
    struct pollfd files[2] = {{.fd = watcher->file, .events = POLLIN}, {.fd = watcher->stop, .events = POLLIN}};
    pthread_setname_np(pthread_self(), "cw-memory");
    while (files[1].revents == 0) {
        if (poll(files, 2, -1) > 0 && files[0].revents != 0) {
            events_read(watcher);
        }
    }
    return NULL;
}

static bool watch_removed(void *context, uintptr_t *first, uintptr_t *end)
{
    struct watcher *watcher = context;
    unsigned taken = atomic_load_explicit(&watcher->taken, memory_order_relaxed);
    while (atomic_load(&watcher->reading) != 0) {
        sched_yield();
    }
    if (atomic_exchange_explicit(&watcher->is_full, false, memory_order_acquire)) {
        *first = 0;
        *end = UINTPTR_MAX;
        return true;
    }
    if (taken == atomic_load_explicit(&watcher->written, memory_order_acquire)) {
        return false;
    }
    struct range range = watcher->removals[taken % REMOVALS];
    atomic_store_explicit(&watcher->taken, taken + 1, memory_order_release);
    *first = range.first;
    *end = range.end;
    return true;
}

/* ---- new mappings ---- */

static int watch_begin(void *context, uintptr_t first, uintptr_t end)
{
    const struct watcher *watcher = context;
    struct uffdio_register request = {.range = {.start = first, .len = end - first}, .mode = UFFDIO_REGISTER_MODE_WP};
    return ioctl(watcher->file, UFFDIO_REGISTER, &request) == 0 ? CW_OK : CW_ERROR_UNSUPPORTED;
}

/* A question to the kernel about a range, without effect: 0, or an errno. Zeroes for pages that are missing: it looks
 * at the mapping, then finds that the first page is there (EEXIST). Huge pages know no such zeroes: there it is asked
 * to protect nothing, which takes a look at each page (80 ns). */
static int range_query(const struct watcher *watcher, uintptr_t first, uintptr_t end)
{
    struct uffdio_zeropage zeroes = {.range = {.start = first, .len = end - first},
                                     .mode = UFFDIO_ZEROPAGE_MODE_DONTWAKE};
    struct uffdio_writeprotect nothing = {.range = {.start = first, .len = end - first},
                                          .mode = UFFDIO_WRITEPROTECT_MODE_DONTWAKE};
    if (ioctl(watcher->file, UFFDIO_ZEROPAGE, &zeroes) == 0 || errno == EEXIST) {
        return 0;
    }
    if (errno == EINVAL) {
        return ioctl(watcher->file, UFFDIO_WRITEPROTECT, &nothing) == 0 ? 0 : errno;
    }
    return errno;
}

/* False if the kernel knows it is another's, or several mappings lie in it. */
static bool range_is_same(const struct watcher *watcher, uintptr_t first, uintptr_t end)
{
    int answer = EAGAIN;
    for (int tries = 0; tries < CHANGES_TRIES && answer == EAGAIN; tries++) {
        answer = range_query(watcher, first, end);
        if (answer == EAGAIN) {
            sched_yield();
        }
    }
    return answer == 0;
}

/* Kernels accept one mapping at a time: a range with several is halved. */
static bool watch_is_same(void *context, uintptr_t first, uintptr_t end)
{
    const struct watcher *watcher = context;
    if (range_is_same(watcher, first, end)) {
        return true;
    }
    uintptr_t pages = (end - first) / watcher->page_bytes, middle = first + pages / 2 * watcher->page_bytes;
    return pages > 1 && watch_is_same(context, first, middle) && watch_is_same(context, middle, end);
}

static void watch_end(void *context, uintptr_t first, uintptr_t end)
{
    const struct watcher *watcher = context;
    struct uffdio_range range = {.start = first, .len = end - first};
    (void)ioctl(watcher->file, UFFDIO_UNREGISTER, &range); /* a range that is gone needs none */
}

/* ---- open and close ---- */

static int files_open(struct watcher *watcher, char *error, size_t error_bytes)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    watcher->file = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (watcher->file < 0) {
        return cw_error_text(error, error_bytes, errno == EPERM ? CW_ERROR_PERMISSION : CW_ERROR_UNSUPPORTED,
                             "userfaultfd: %s%s", strerror(errno),
                             errno == EPERM ? " (a container's seccomp profile?)" : " (a kernel without it)");
    }
    if (ioctl(watcher->file, UFFDIO_API, &api) != 0 || (api.ioctls & ((__u64)1 << _UFFDIO_REGISTER)) == 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "userfaultfd: this kernel does not report freed memory: %s", strerror(errno));
    }
    watcher->stop = eventfd(0, EFD_CLOEXEC);
    return watcher->stop >= 0 ? CW_OK
                              : cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "eventfd: %s", strerror(errno));
}

static void watcher_free(struct watcher *watcher)
{
    if (watcher->file >= 0) {
        close(watcher->file);
    }
    if (watcher->stop >= 0) {
        close(watcher->stop);
    }
    free(watcher);
}

int cw_memory_watch_open(struct cw_memory_watch *watch, char *error, size_t error_bytes)
{
    struct watcher *watcher = calloc(1, sizeof(*watcher));
    *watch = (struct cw_memory_watch){.context = NULL};
    if (watcher == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory to watch memory");
    }
    watcher->file = watcher->stop = -1;
    watcher->page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    int status = files_open(watcher, error, error_bytes);
    if (status == CW_OK && cw_thread_start(&watcher->thread, -1, false, watcher_run, watcher) != 0) {
        status = cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "no thread can be started (`ulimit -u`)");
    }
    if (status != CW_OK) {
        watcher_free(watcher);
        return status;
    }
    *watch = (struct cw_memory_watch){
        .context = watcher, .begin = watch_begin, .is_same = watch_is_same, .removed = watch_removed, .end = watch_end};
    return CW_OK;
}

void cw_memory_watch_close(struct cw_memory_watch *watch)
{
    struct watcher *watcher = watch->context;
    if (watcher == NULL) {
        return;
    }
    (void)eventfd_write(watcher->stop, 1);
    pthread_join(watcher->thread, NULL);
    watcher_free(watcher); /* all ranges end with the file */
    *watch = (struct cw_memory_watch){.context = NULL};
}
