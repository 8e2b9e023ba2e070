/* Process: settings of the kernel for this one. */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "dataplane/base/process.h"
#include "tests/test.h"

static void *thread_run(void *argument)
{
    *(uint64_t *)argument = cw_process_slice_ns();
    return NULL;
}

/* The turn is short, also of threads that come later, and all else as it was. */
static void test_slice(void **state)
{
    struct utsname kernel;
    unsigned int major = 0, minor = 0;
    uint64_t later_ns = 0;
    pthread_t thread;
    assert_int_equal(uname(&kernel), 0);
    assert_int_equal(sscanf(kernel.release, "%u.%u", &major, &minor), 2);
    (void)setpriority(PRIO_PROCESS, 0, 5);
    int policy = sched_getscheduler(0), nice = getpriority(PRIO_PROCESS, 0);
    cw_process_slice_shorten();
    assert_int_equal(pthread_create(&thread, NULL, thread_run, &later_ns), 0);
    pthread_join(thread, NULL);
    assert_int_equal(sched_getscheduler(0), policy);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
    assert_int_equal(later_ns, cw_process_slice_ns());
    if (policy == SCHED_OTHER && (major > 6 || (major == 6 && minor >= 12))) {
        assert_int_equal(cw_process_slice_ns(), CW_PROCESS_SLICE_NS);
    }
}

int main(void)
{
    return TESTS_RUN(test_slice);
}
