#include "dataplane/base/virtual.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"
#include "dataplane/base/random.h"

enum { EXIT_ALONE = 1, LOOK_MS = 200 };

struct cw_virtual_page *cw_virtual_page;

/* The rest of this process's part. */
static struct {
    int socket;      /* to the simulator; it is closed when the simulator ends */
    uint64_t cpu_ns; /* CPU time of the thread up to which virtual time has passed */
    void *device;    /* memory of the rank's RDMA device; NULL: none */
    bool has_acted;  /* it has sent a frame or woken a rank since it was resumed */
    struct cw_random random;
    void (*gathered)(void *context); /* called once; NULL: none */
    void *gathered_context;
    uint32_t gathered_seen;
} own;

static _Thread_local bool is_joined_here;
static uint64_t hook_now_ns(void);
static struct cw_virtual_hooks hooks = {
    .now_ns = hook_now_ns, .is_mine = cw_virtual_is_here, .sleep_ns = cw_virtual_spend};

static void clock_set(const struct cw_virtual_hooks *by)
{
    cw_virtual_clock_set *set;
    *(void **)&set = dlsym(RTLD_DEFAULT, CW_VIRTUAL_CLOCK);
    if (set != NULL) {
        set(by);
    }
}

/* A child of the rank has no part in the simulation: it must not give the turn of its parent away. */
static void child_leave(void)
{
    if (cw_virtual_page != NULL) {
        clock_set(NULL);
        cw_virtual_page = NULL;
    }
}

static uint64_t cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

uint64_t cw_virtual_cpu_ns(void)
{
    uint64_t time_ns = cpu_ns();
    return cw_virtual_is_on() ? (uint64_t)(((unsigned __int128)time_ns * cw_virtual_page->cpu_scale) >> 20) : time_ns;
}

static void cpu_mark(void)
{
    if (cw_virtual_page->cpu_scale != 0) {
        own.cpu_ns = cpu_ns();
    }
}

/* ---- handing over ---- */

/* The simulator keeps its end of the socket open for as long as it lives. */
static bool simulator_lives(void)
{
    char byte;
    return recv(own.socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0;
}

static void turn_await(void)
{
    struct cw_virtual_page *page = cw_virtual_page;
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    /* pairs with the release of the simulator: its writes into the page, and frames */
    while (atomic_load_explicit(&page->turn, memory_order_acquire) != CW_VIRTUAL_RANK) {
        long result = syscall(SYS_futex, &page->turn, FUTEX_WAIT, CW_VIRTUAL_SIMULATOR, &look, NULL, 0);
        if (result != 0 && errno == ETIMEDOUT && !simulator_lives()) {
            _exit(EXIT_ALONE); /* the launcher reports that the simulator has ended */
        }
    }
    own.has_acted = false;
    cpu_mark();
    if (own.gathered != NULL && own.gathered_seen != cw_virtual_gathered()) {
        void (*gathered)(void *context) = own.gathered;
        own.gathered = NULL;
        gathered(own.gathered_context);
    }
}

static void turn_release(enum cw_virtual_state state, uint64_t deadline_ns)
{
    struct cw_virtual_page *page = cw_virtual_page;
    page->state = state;
    page->deadline_ns = deadline_ns;
    /* pairs with the acquire of the simulator */
    atomic_store_explicit(&page->turn, CW_VIRTUAL_SIMULATOR, memory_order_release);
    syscall(SYS_futex, &page->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint64_t after(uint64_t duration_ns)
{
    uint64_t now_ns = cw_virtual_page->now_ns;
    return duration_ns < CW_VIRTUAL_NEVER - now_ns ? now_ns + duration_ns : CW_VIRTUAL_NEVER;
}

/* ---- joining ---- */

static int hello_send(uint32_t rank, int memory)
{
    struct cw_virtual_hello hello = {.rank = rank, .process = cw_process_number()};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec data = {.iov_base = &hello, .iov_len = sizeof(hello)};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};
    control.head =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(&control.head), &memory, sizeof(memory));
    return sendmsg(own.socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(hello) ? 0 : errno;
}

/* The descriptor of all pages; it comes when all ranks have joined. Negative: an errno. */
static int pages_receive(void)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};
    ssize_t got;
    do {
        got = recvmsg(own.socket, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    const struct cmsghdr *head = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head == NULL || head->cmsg_type != SCM_RIGHTS) {
        return got < 0 ? -errno : -ECONNRESET;
    }
    int pages;
    memcpy(&pages, CMSG_DATA(head), sizeof(pages));
    return pages;
}

/* 0, or an errno. */
static int device_map(const struct cw_virtual_page *page, int pages)
{
    if (page->device_bytes == 0) {
        return 0;
    }
    void *device =
        mmap(NULL, page->device_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pages, (off_t)page->device_offset);
    own.device = device != MAP_FAILED ? device : NULL;
    return device != MAP_FAILED ? 0 : errno;
}

int cw_virtual_join(const char *path, uint32_t rank, int memory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path) || rank >= CW_VIRTUAL_RANKS_MAX) {
        return EINVAL;
    }
    strcpy(address.sun_path, path);
    own.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (own.socket < 0) {
        return errno;
    }
    int failed = connect(own.socket, (const struct sockaddr *)&address, sizeof(address)) != 0 ? errno : 0;
    failed = failed == 0 ? hello_send(rank, memory) : failed;
    int pages = failed == 0 ? pages_receive() : -failed;
    if (pages < 0) {
        close(own.socket);
        return -pages;
    }
    void *page = mmap(NULL, CW_VIRTUAL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pages,
                      (off_t)rank * CW_VIRTUAL_PAGE_BYTES);
    failed = page == MAP_FAILED ? errno : device_map(page, pages);
    close(pages);
    if (failed != 0) {
        close(own.socket);
        return failed;
    }
    cw_virtual_page = page;
    cw_random_seed(&own.random, cw_virtual_page->seed);
    cw_clock_follow(&cw_virtual_page->now_ns);
    is_joined_here = true;
    (void)pthread_atfork(NULL, NULL, child_leave);
    turn_await();
    return 0;
}

/* A read of the clock takes time, so that a program that waits for a time does not wait forever. */
static uint64_t hook_now_ns(void)
{
    cw_virtual_spend(cw_virtual_page->poll_ns);
    return cw_clock_ns();
}

bool cw_virtual_is_here(void)
{
    return is_joined_here && cw_virtual_page != NULL;
}

void cw_virtual_sleep_by(void (*sleep_ns)(uint64_t duration_ns))
{
    hooks.sleep_ns = sleep_ns;
    clock_set(&hooks);
}

void cw_virtual_leave(void)
{
    if (cw_virtual_page != NULL) {
        clock_set(NULL);
        turn_release(CW_VIRTUAL_LEFT, CW_VIRTUAL_NEVER);
        cw_virtual_page = NULL; /* the page stays mapped: it is the clock */
    }
}

void *cw_virtual_device(void)
{
    return cw_virtual_is_on() ? own.device : NULL;
}

/* ---- time ---- */

uint64_t cw_virtual_computed_ns(void)
{
    if (cw_virtual_page->cpu_scale == 0) {
        return 0;
    }
    return (uint64_t)((unsigned __int128)(cpu_ns() - own.cpu_ns) * cw_virtual_page->cpu_scale >> 20);
}

static void spend(uint64_t duration_ns)
{
    uint64_t until_ns = after(duration_ns);
    if (!own.has_acted && until_ns < cw_virtual_page->horizon_ns) {
        cw_virtual_page->now_ns = until_ns;
        cpu_mark();
        return;
    }
    turn_release(CW_VIRTUAL_COMPUTES, until_ns);
    turn_await();
}

void cw_virtual_spend(uint64_t duration_ns)
{
    duration_ns += cw_virtual_computed_ns();
    if (duration_ns > 0) {
        spend(duration_ns);
    }
}

void cw_virtual_copy(uint64_t bytes)
{
    cw_virtual_spend((uint64_t)((unsigned __int128)bytes * cw_virtual_page->copy_scale >> 20));
}

void cw_virtual_wait(uint64_t timeout_ns)
{
    uint64_t computed_ns = cw_virtual_computed_ns();
    if (computed_ns > 0) {
        spend(computed_ns);
        timeout_ns = timeout_ns > computed_ns ? timeout_ns - computed_ns : 0;
    }
    turn_release(CW_VIRTUAL_WAITS, after(timeout_ns));
    turn_await();
}

void cw_virtual_wait_until(uint64_t until_ns)
{
    if (!own.has_acted && until_ns < cw_virtual_page->horizon_ns) {
        cw_virtual_page->now_ns = until_ns > cw_virtual_page->now_ns ? until_ns : cw_virtual_page->now_ns;
        cpu_mark();
        return;
    }
    turn_release(CW_VIRTUAL_WAITS, until_ns);
    turn_await();
}

void cw_virtual_send(void)
{
    uint64_t computed_ns = cw_virtual_computed_ns();
    if (computed_ns > 0) {
        spend(computed_ns);
    }
    own.has_acted = true;
}

void cw_virtual_call(void)
{
    cw_virtual_send();
    turn_release(CW_VIRTUAL_COMPUTES, cw_virtual_page->now_ns);
    turn_await();
}

void cw_virtual_wake(uint32_t rank)
{
    cw_virtual_send();
    cw_virtual_page->wakes[rank / 64] |= UINT64_C(1) << rank % 64;
}

/* ---- the world outside ---- */

void cw_virtual_gather(void (*gathered)(void *context), void *context)
{
    own.gathered = gathered;
    own.gathered_context = context;
    own.gathered_seen = cw_virtual_gathered();
    cw_virtual_page->gathers = 1;
    own.has_acted = true; /* the simulator has to see it before time passes */
}

void cw_virtual_outside_begin(void)
{
    turn_release(CW_VIRTUAL_OUTSIDE, CW_VIRTUAL_NEVER);
}

void cw_virtual_outside_end(void)
{
    /* pairs with the acquire of the simulator */
    atomic_store_explicit(&cw_virtual_page->is_back, 1, memory_order_release);
    syscall(SYS_futex, &cw_virtual_page->is_back, FUTEX_WAKE, 1, NULL, NULL, 0);
    turn_await();
}

void cw_virtual_random(void *bytes, size_t count)
{
    cw_random_fill(&own.random, bytes, count);
}
