/* Notifications of this kernel about memory that a program frees. */
#include <pthread.h>
#include <sys/mman.h>

#include "dataplane/register/memory_watch.h"
#include "dataplane/status.h"
#include "tests/skip.h"
#include "tests/test.h"

enum { PAGES = 64, ROUNDS = 2000 };

static struct cw_memory_watch watch;
static size_t page_bytes;

static uint8_t *pages_map(void *at, size_t count)
{
    uint8_t *mapped = mmap(at, count * page_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    memset(mapped, 1, count * page_bytes);
    return mapped;
}

static bool is_same(const uint8_t *at, size_t count)
{
    return watch.is_same(watch.context, (uintptr_t)at, (uintptr_t)at + count * page_bytes);
}

static bool removed(uintptr_t *first, uintptr_t *end)
{
    return watch.removed(watch.context, first, end);
}

static void begin(const uint8_t *at, size_t count)
{
    assert_int_equal(watch.begin(watch.context, (uintptr_t)at, (uintptr_t)at + count * page_bytes), CW_OK);
}

static void end(const uint8_t *at, size_t count)
{
    watch.end(watch.context, (uintptr_t)at, (uintptr_t)at + count * page_bytes);
}

static void test_it_stays_the_same(void **state)
{
    uint8_t *memory = pages_map(NULL, PAGES);
    assert_false(is_same(memory, PAGES)); /* nobody has begun */
    begin(memory, PAGES);
    begin(memory + 3 * page_bytes, 2);
    memset(memory, 2, PAGES * page_bytes);
    assert_true(is_same(memory, PAGES));
    assert_true(is_same(memory + 3 * page_bytes, 2));
    assert_int_equal(mprotect(memory, page_bytes, PROT_READ), 0); /* the same memory */
    assert_int_equal(mprotect(memory, page_bytes, PROT_READ | PROT_WRITE), 0);
    assert_true(is_same(memory, PAGES));
    end(memory, PAGES);
    assert_false(is_same(memory, PAGES));
    munmap(memory, PAGES * page_bytes);
}

static void test_mapped_anew(void **state)
{
    uintptr_t first, last;
    uint8_t *memory = pages_map(NULL, PAGES);
    begin(memory, PAGES);
    munmap(memory + page_bytes, page_bytes);
    /* kernels differ about a hole: no send from it is possible */
    assert_true(is_same(memory, 1) && is_same(memory + 2 * page_bytes, PAGES - 2));
    pages_map(memory + page_bytes, 1);
    assert_false(is_same(memory, PAGES)); /* filled by other memory */
    begin(memory, PAGES);
    assert_true(is_same(memory, PAGES));
    pages_map(memory + 5 * page_bytes, 2); /* over what is there */
    assert_false(is_same(memory, PAGES));
    begin(memory, PAGES);
    uint8_t *elsewhere = pages_map(NULL, 1);
    assert_ptr_equal(mremap(elsewhere, page_bytes, page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory + 9 * page_bytes),
                     memory + 9 * page_bytes);
    assert_false(is_same(memory, PAGES)); /* moved to there */
    munmap(memory, PAGES * page_bytes);
    memory = pages_map(NULL, PAGES);
    begin(memory, PAGES);
    elsewhere = mremap(memory, PAGES * page_bytes, 2 * PAGES * page_bytes, MREMAP_MAYMOVE);
    assert_ptr_not_equal(elsewhere, MAP_FAILED);
    if (elsewhere != memory) {
        pages_map(memory, PAGES);
        assert_false(is_same(memory, PAGES)); /* moved from there */
        munmap(memory, PAGES * page_bytes);
    }
    assert_false(removed(&first, &last)); /* of none of that an event came */
    munmap(elsewhere, 2 * PAGES * page_bytes);
}

static void test_released_by_advice(void **state)
{
    static const int advice[] = {MADV_DONTNEED, MADV_FREE};
    uintptr_t first, last;
    uint8_t *memory = pages_map(NULL, PAGES);
    begin(memory, PAGES);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(madvise(memory + 2 * page_bytes, 3 * page_bytes, advice[i]), 0);
        assert_true(removed(&first, &last)); /* told before the call returned */
        assert_int_equal(first, (uintptr_t)memory + 2 * page_bytes);
        assert_int_equal(last, (uintptr_t)memory + 5 * page_bytes);
        assert_false(removed(&first, &last));
        assert_true(is_same(memory, PAGES));
    }
    for (int i = 0; i < ROUNDS; i++) { /* more than are kept */
        assert_int_equal(madvise(memory, page_bytes, MADV_DONTNEED), 0);
    }
    bool is_told = false;
    while (removed(&first, &last)) {
        is_told = is_told || (first <= (uintptr_t)memory && last >= (uintptr_t)memory + page_bytes);
    }
    assert_true(is_told);
    munmap(memory, PAGES * page_bytes);
}

/* Memory that malloc frees is noticed, by any of its methods. */
static void test_heap(void **state)
{
    uintptr_t first, last;
    uint32_t again = 0;
    for (int round = 0; round < 200; round++) {
        size_t bytes = ((size_t)round % 40 + 1) * 64 * 1024;
        uint8_t *memory = malloc(bytes);
        assert_non_null(memory);
        memset(memory, round, bytes);
        uintptr_t from = (uintptr_t)memory & ~(page_bytes - 1), to = ((uintptr_t)memory + bytes) & ~(page_bytes - 1);
        if (from < to && watch.begin(watch.context, from, to) == CW_OK) {
            assert_true(watch.is_same(watch.context, from, to));
            watch.end(watch.context, from, to);
            again++;
        }
        free(memory);
    }
    while (removed(&first, &last)) {
    }
    assert_true(again > 0);
}

static void *advise(void *argument)
{
    uint8_t *memory = argument;
    for (int i = 0; i < ROUNDS; i++) {
        memory[0] = 1;
        assert_int_equal(madvise(memory, page_bytes, MADV_DONTNEED), 0);
    }
    return NULL;
}

/* Another thread frees memory all the time: no thread waits forever. */
static void test_beside_a_thread(void **state)
{
    pthread_t thread;
    uintptr_t first, last;
    uint8_t *memory = pages_map(NULL, 2 * PAGES);
    begin(memory, 2 * PAGES);
    assert_int_equal(pthread_create(&thread, NULL, advise, memory), 0);
    for (int i = 0; i < ROUNDS; i++) {
        (void)removed(&first, &last);
        (void)is_same(memory + PAGES * page_bytes, PAGES);
    }
    pthread_join(thread, NULL);
    while (removed(&first, &last)) {
    }
    assert_true(is_same(memory, 2 * PAGES));
    munmap(memory, 2 * PAGES * page_bytes);
}

static void test_of_a_file_cannot_be_watched(void **state)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (off_t)page_bytes), 0);
    void *mapped = mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    (void)watch.begin(watch.context, (uintptr_t)mapped, (uintptr_t)mapped + page_bytes); /* a tmpfs's may be */
    munmap(mapped, page_bytes);
    mapped = pages_map(mapped, 1);
    assert_false(is_same(mapped, 1));
    munmap(mapped, page_bytes);
    fclose(file);
}

int main(void)
{
    char error[256], reason[300];
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (cw_memory_watch_open(&watch, error, sizeof(error)) != CW_OK) {
        snprintf(reason, sizeof(reason), "machine: %s", error);
        test_skip(reason);
    }
    int failed = TESTS_RUN(test_it_stays_the_same, test_mapped_anew, test_released_by_advice, test_heap,
                           test_beside_a_thread, test_of_a_file_cannot_be_watched);
    cw_memory_watch_close(&watch);
    return failed;
}
