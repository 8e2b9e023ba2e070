/* Lists and files of hosts that somebody has damaged: refused with one line, or sound: every name is one for ssh, and
 * slots add up. CW_TEST_PACKETS (100,000) / 5 texts. */
#include <stdlib.h>
#include <string.h>

#include "control/launch/allocation.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/fuzz/fuzz_text.h"
#include "tests/test.h"

static const char *const samples[] = {
    "node[01-03,7]:2,me@a.example.org:4,r[1-2]n[8-9],[fd77::1]:3,b",
    "# hosts\na:4\nb slots=4 max_slots=8 # two\n[fd77::1] slots=2\nnode[1-2]\n",
    "node[01-03,7],x",
};
enum { LIST, LINES, SLURM, KINDS, TEXT_BYTES = 256 };

static const char *const words[] = {"0",  "-1", "4294967296", "[", "]", "[0-9999]", ":", "::", ",",
                                    "=8", "@",  "-",          "#", " ", "\n",       "(", "x",  "slots=1"};

static size_t word_replace(struct cw_random *random, char *text, size_t length, size_t room)
{
    const char *word = words[cw_random_below(random, sizeof(words) / sizeof(words[0]))];
    return fuzz_text_splice(text, length, room, (size_t)cw_random_below(random, length), 1, word);
}

static size_t damage(struct cw_random *random, char *text)
{
    size_t length = strlen(text);
    for (uint64_t wounds = cw_random_below(random, 4); wounds > 0 && length > 0; wounds--) {
        length = fuzz_text_damage(random, text, length, TEXT_BYTES, 6, word_replace);
    }
    return length;
}

/* In memory of its own, so that reading beyond the end is seen. */
static char *exact_copy(const char *text, size_t bytes)
{
    char *exact = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    return exact;
}

static void sound(const struct cw_launch_allocation *allocation)
{
    uint32_t slots = 0;
    assert_in_range(allocation->count, 1, CW_LAUNCH_HOSTS_MAX);
    for (uint32_t i = 0; i < allocation->count; i++) {
        const struct cw_launch_host *host = &allocation->hosts[i];
        assert_non_null(memchr(host->name, 0, sizeof(host->name)));
        assert_true(host->name[0] != 0 && host->name[0] != '-');
        assert_null(strpbrk(host->name, " \t\n,;&|$`'\"\\/()[]{}<>*?!#="));
        assert_true(host->slots > 0);
        slots += host->slots;
    }
    assert_int_equal(slots, allocation->slots);
    assert_in_range(slots, allocation->count, CW_LAUNCH_SLOTS_MAX);
}

static void damaged_texts_are_refused_or_sound(void **state)
{
    uint64_t texts = test_count("CW_TEST_PACKETS", 100000) / 5;
    uint64_t taken = 0;
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (uint64_t i = 0; i < texts; i++) {
        char text[TEXT_BYTES] = {0}, tasks[TEXT_BYTES] = "2(x3),1,4", error[256] = "";
        struct cw_launch_allocation allocation = {0};
        uint32_t kind = (uint32_t)cw_random_below(&random, KINDS);
        memcpy(text, samples[kind], strlen(samples[kind]));
        size_t length = damage(&random, text);
        text[length] = tasks[damage(&random, tasks)] = 0;
        char *exact = exact_copy(text, kind == LINES ? length : strlen(text) + 1);
        char *exact_tasks = exact_copy(tasks, strlen(tasks) + 1);
        int status = kind == LIST    ? cw_launch_hosts_list(&allocation, "list", exact, error, sizeof(error))
                     : kind == LINES ? cw_launch_hosts_lines(&allocation, "file", exact, length, error, sizeof(error))
                                     : cw_launch_hosts_slurm(&allocation, exact, exact_tasks, error, sizeof(error));
        free(exact);
        free(exact_tasks);
        if (status != CW_OK) {
            assert_true((status == CW_ERROR_ARGUMENT || status == CW_ERROR_LIMIT) && error[0] != 0);
            assert_true(allocation.hosts == NULL && allocation.count == 0);
            continue;
        }
        taken++;
        sound(&allocation);
        cw_launch_allocation_dispose(&allocation);
    }
    print_message("%llu of %llu damaged texts make sense\n", (unsigned long long)taken, (unsigned long long)texts);
    assert_in_range(taken, 1, texts - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_texts_are_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
