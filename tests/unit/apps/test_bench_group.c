/* Two members of a benchmark's group end their phases together, and one sees that the other has ended its own. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/bench/processes/group_shared.h"
#include "tests/test.h"

enum { PHASES = 200 };

/* Counts its phases in `counts`, and finds that the other one's are equal at each meeting. */
static int phases_run(struct bench_member *member, _Atomic uint32_t counts[2])
{
    for (uint32_t phase = 1; phase <= PHASES; phase++) {
        if (member->index == 1) {
            while (!bench_member_marked(member, 1)) { /* the other one ends this phase first */
                sched_yield();
            }
        }
        atomic_fetch_add(&counts[member->index], 1);
        bench_member_meet(member);
        if (counts[0] != phase || counts[1] != phase) {
            return 1;
        }
        bench_member_meet(member);
    }
    return 0;
}

static void test_members_meet(void **state)
{
    struct bench_group group = {.config = {.count = 2}};
    size_t bytes = sizeof(*group.shared) + 2 * sizeof(uint32_t);
    group.shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(group.shared != MAP_FAILED);
    _Atomic uint32_t *counts = (_Atomic uint32_t *)(void *)group.shared->results;
    struct bench_member member = {.count = 2, .group = &group};
    pid_t child = fork();
    if (child == 0) {
        member.index = 1;
        _exit(phases_run(&member, counts));
    }
    assert_int_equal(phases_run(&member, counts), 0);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    munmap(group.shared, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_members_meet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
