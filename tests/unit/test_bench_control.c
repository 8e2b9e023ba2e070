/* The control channel of the benchmarks: whole messages, barriers, time-outs, and an end that is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "apps/bench/control.h"
#include "dataplane/status.h"

#define SECOND_NS UINT64_C(1000000000)

static void pair_make(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void test_messages(void **state)
{
    (void)state;
    enum { MESSAGE_BYTES = 1 << 20 }; /* more than the socket takes at once */
    static uint8_t sent[MESSAGE_BYTES];
    static uint8_t received[MESSAGE_BYTES];
    int ends[2];
    pair_make(ends);
    for (size_t i = 0; i < sizeof(sent); i++) {
        sent[i] = (uint8_t)(i * 7);
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(bench_control_send(ends[1], sent, sizeof(sent), 20 * SECOND_NS) == CW_OK ? 0 : 1);
    }
    assert_int_equal(bench_control_receive(ends[0], received, sizeof(received), 20 * SECOND_NS), CW_OK);
    assert_memory_equal(sent, received, sizeof(sent));
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
}

static void test_barrier(void **state)
{
    (void)state;
    int ends[2];
    pair_make(ends);
    pid_t child = fork();
    if (child == 0) {
        for (uint32_t phase = 0; phase < 100; phase++) {
            if (bench_control_barrier(ends[1], phase, 20 * SECOND_NS) != CW_OK) {
                _exit(1);
            }
        }
        _exit(bench_control_barrier(ends[1], 7, 20 * SECOND_NS) == CW_ERROR_ARGUMENT ? 0 : 1);
    }
    for (uint32_t phase = 0; phase < 100; phase++) {
        assert_int_equal(bench_control_barrier(ends[0], phase, 20 * SECOND_NS), CW_OK);
    }
    assert_int_equal(bench_control_barrier(ends[0], 8, 20 * SECOND_NS), CW_ERROR_ARGUMENT);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
}

static void test_failures(void **state)
{
    (void)state;
    int ends[2];
    uint64_t message = 0;
    pair_make(ends);
    assert_int_equal(bench_control_receive(ends[0], &message, sizeof(message), 1000), CW_ERROR_TIMEOUT);
    assert_int_equal(bench_control_barrier(ends[0], 1, 1000), CW_ERROR_TIMEOUT);
    close(ends[1]);
    assert_int_equal(bench_control_receive(ends[0], &message, sizeof(message), SECOND_NS), CW_ERROR_CLOSED);
    assert_int_equal(bench_control_send(ends[0], &message, sizeof(message), SECOND_NS), CW_ERROR_CLOSED);
    close(ends[0]);
    assert_int_equal(bench_control_send(ends[0], &message, sizeof(message), SECOND_NS), CW_ERROR_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests_name("bench_control", tests, NULL, NULL);
}
