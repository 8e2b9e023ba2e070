/* Doorbell: attaching, refusing foreign files, and that no ring is lost. */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dataplane/port/doorbell.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { TEXT_BYTES = 256, ROUNDS = 20000, OPENERS = 8 };
#define NS_PER_HOUR UINT64_C(3600000000000) /* a lost ring hangs until the alarm */
#define LOCK_US     10000000                /* after which a doorbell no longer waits for its lock */

/* The time that a doorbell waits for its lock is virtual. */
static uint64_t slept_us;

int usleep(useconds_t microseconds)
{
    slept_us += microseconds;
    return sched_yield();
}

static char folder[] = "/tmp/causeway-doorbell-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static struct cw_doorbell *bell_open(const char *path, uint32_t index)
{
    char error[TEXT_BYTES] = "";
    struct cw_doorbell *bell = NULL;
    int status = cw_doorbell_open(path, index, &bell, error, sizeof(error));
    assert_true_msg(status == CW_OK, "%d: %s", status, error);
    return bell;
}

static void test_file(void **state)
{
    const char *path = path_of("file");
    mode_t mask = umask(0);
    struct cw_doorbell *bell = bell_open(path, 0);
    umask(mask);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_size, 64 + 64 * CW_DOORBELL_WORDS);
    struct cw_doorbell *second = bell_open(path, CW_DOORBELL_WORDS - 1);
    cw_doorbell_close(second);
    cw_doorbell_close(bell);
    cw_doorbell_close(NULL);
}

static void file_write(const char *path, size_t bytes, const void *head, size_t head_bytes)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(ftruncate(descriptor, (off_t)bytes), 0);
    assert_int_equal(pwrite(descriptor, head, head_bytes, 0), (ssize_t)head_bytes);
    close(descriptor);
}

/* A file that is no doorbell file is rejected, with its name in the text, and not changed. */
static void test_rejected(void **state)
{
    enum { WHOLE = 64 + 64 * CW_DOORBELL_WORDS };
    const uint64_t magic = UINT64_C(0x4c4c454257434a31);
    struct {
        uint64_t magic;
        uint32_t version;
        uint32_t count;
    } head = {magic, 99, CW_DOORBELL_WORDS};
    static const struct {
        const char *name;
        size_t bytes;
        bool magic;
    } rows[] = {{"short", 100, false}, {"long", WHOLE + 1, false}, {"foreign", WHOLE, false}, {"version", WHOLE, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *path = path_of(rows[i].name);
        char error[TEXT_BYTES] = "";
        struct cw_doorbell *bell = NULL;
        const void *content = rows[i].magic ? (const void *)&head : "foreign content!";
        file_write(path, rows[i].bytes, content, sizeof(head));
        assert_int_equal(cw_doorbell_open(path, 0, &bell, error, sizeof(error)), CW_ERROR_UNSUPPORTED);
        assert_null(bell);
        assert_non_null(strstr(error, path));
        struct stat status;
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, (off_t)rows[i].bytes);
    }
}

static void test_errors(void **state)
{
    char missing[160];
    char link[160];
    snprintf(missing, sizeof(missing), "%s/missing/bell", folder);
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(symlink("/tmp/elsewhere", link), 0);
    const struct {
        const char *path;
        uint32_t index;
        int status;
    } rows[] = {{NULL, 0, CW_ERROR_ARGUMENT},
                {"", 0, CW_ERROR_ARGUMENT},
                {path_of("index"), CW_DOORBELL_WORDS, CW_ERROR_ARGUMENT},
                {missing, 0, CW_ERROR_SYSTEM},
                {link, 0, CW_ERROR_SYSTEM},
                {"/dev/null", 0, CW_ERROR_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char error[TEXT_BYTES] = "";
        struct cw_doorbell *bell = NULL;
        assert_int_equal(cw_doorbell_open(rows[i].path, rows[i].index, &bell, error, sizeof(error)), rows[i].status);
        assert_null(bell);
        assert_true(strlen(error) > 10);
    }
}

/* A creator that died before it had written the header leaves zeros behind. */
static void test_half_made(void **state)
{
    const char *path = path_of("half");
    file_write(path, 64 + 64 * CW_DOORBELL_WORDS, "", 0);
    cw_doorbell_close(bell_open(path, 3));
    cw_doorbell_close(bell_open(path, 3));
}

/* The process that has the lock may be stopped. */
static void test_locked(void **state)
{
    struct cw_doorbell *bell = NULL;
    char error[TEXT_BYTES] = "";
    char path[] = "/tmp/causeway-doorbell-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(flock(file, LOCK_EX), 0);
    slept_us = 0;
    assert_int_equal(cw_doorbell_open(path, 0, &bell, error, sizeof(error)), CW_ERROR_SYSTEM);
    assert_non_null(strstr(error, "stopped"));
    assert_int_equal(slept_us, LOCK_US);
    close(file);
    unlink(path);
}

/* Many processes open a new file at the same time. */
static void test_open_race(void **state)
{
    const char *path = path_of("race");
    for (int round = 0; round < 50; round++) {
        unlink(path);
        pid_t children[OPENERS];
        for (uint32_t i = 0; i < OPENERS; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                struct cw_doorbell *bell = NULL;
                _exit(cw_doorbell_open(path, i, &bell, NULL, 0) == CW_OK ? 0 : 1);
            }
        }
        for (int i = 0; i < OPENERS; i++) {
            int status = -1;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
        }
    }
}

/* An armed word that was rung before the wait does not block; a timed wait ends; indices outside are ignored. */
static void test_ring_before_wait(void **state)
{
    struct cw_doorbell *bell = bell_open(path_of("before"), 5);
    cw_doorbell_arm(bell);
    cw_doorbell_ring(bell, 5);
    assert_true(cw_doorbell_wait(bell, NS_PER_HOUR));
    cw_doorbell_arm(bell);
    cw_doorbell_ring_own(bell);
    assert_true(cw_doorbell_wait(bell, NS_PER_HOUR));
    cw_doorbell_arm(bell);
    cw_doorbell_ring(bell, 6);
    cw_doorbell_ring(bell, CW_DOORBELL_WORDS);
    cw_doorbell_ring(bell, UINT32_MAX);
    assert_false(cw_doorbell_wait(bell, 1000));
    cw_doorbell_disarm(bell);
    cw_doorbell_close(bell);
}

/* Two processes hand a token to and fro through shared memory, each asleep until it is its turn. */
static void pass_token(const char *path, uint32_t own, _Atomic uint32_t *token)
{
    struct cw_doorbell *bell = NULL;
    if (cw_doorbell_open(path, own, &bell, NULL, 0) != CW_OK) {
        _exit(1);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t mine = 2 * round + own;
        while (atomic_load_explicit(token, memory_order_acquire) != mine) {
            cw_doorbell_arm(bell);
            if (atomic_load_explicit(token, memory_order_acquire) != mine) {
                cw_doorbell_wait(bell, NS_PER_HOUR);
            }
            cw_doorbell_disarm(bell);
        }
        atomic_store_explicit(token, mine + 1, memory_order_release);
        cw_doorbell_ring(bell, 1 - own);
    }
    cw_doorbell_close(bell);
}

static void test_no_ring_lost(void **state)
{
    const char *path = path_of("token");
    _Atomic uint32_t *token = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(token, MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        alarm(TEST_HANG_S);
        pass_token(path, 1, token);
        _exit(0);
    }
    pass_token(path, 0, token);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(*token, 2 * ROUNDS);
    munmap(token, 4096);
}

static int folder_remove(void)
{
    static const char *const names[] = {"file", "short", "long",   "foreign", "version", "link",
                                        "half", "race",  "before", "token",   "index"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unlink(path_of(names[i]));
    }
    return rmdir(folder);
}

int main(void)
{
    alarm(TEST_HANG_S);
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    int failed = TESTS_RUN(test_file, test_rejected, test_errors, test_half_made, test_locked, test_open_race,
                           test_ring_before_wait, test_no_ring_lost);
    return failed + (folder_remove() != 0);
}
