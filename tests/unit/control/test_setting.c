/* Settings: which of several values counts, files with any content, and names that are misspelt. */
#include <sys/wait.h>

#include "control/settings/setting.h"
#include "dataplane/base/random.h"
#include "tests/test.h"

enum { LINES_MAX = 64, LINE_BYTES = 2048 };

struct complaints {
    uint32_t count;
    char lines[LINES_MAX][LINE_BYTES];
};

static void complain(void *context, const char *line)
{
    struct complaints *complaints = context;
    assert_true(complaints->count < LINES_MAX);
    snprintf(complaints->lines[complaints->count++], LINE_BYTES, "%s", line);
}

/* A file is read once in a process: each case has one of its own, with no variable of ours but the file's name. */
static void in_child(const char *content, size_t bytes, void (*look)(const char *path))
{
    char path[] = "/tmp/causeway-settings-XXXXXX";
    int file = mkstemp(path), status;
    assert_true(file >= 0 && write(file, content, bytes) == (ssize_t)bytes);
    close(file);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (uint32_t i = 0; i < CW_SETTINGS; i++) {
            unsetenv(cw_setting_name((enum cw_setting)i));
        }
        setenv("CAUSEWAY_SETTINGS", path, 1);
        look(path);
        _exit(0); /* a failed assertion ends elsewhere */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void check_setting(enum cw_setting setting, const char *value, const char *origin)
{
    const char *found = cw_setting(setting);
    bool is_same = found == NULL || value == NULL ? found == value : strcmp(found, value) == 0;
    if (!is_same || strcmp(cw_setting_origin(setting), origin) != 0) {
        fprintf(stderr, "%s: %s by %s, not %s by %s\n", cw_setting_name(setting), found, cw_setting_origin(setting),
                value, origin);
        _exit(1);
    }
}

static void look_at_order(const char *path)
{
    setenv("CAUSEWAY_RDMA", "", 1); /* as if it were not set */
    setenv("CAUSEWAY_TRANSPORT", "lo", 1);
    check_setting(CW_SETTING_TRANSPORT, "lo", "environment");
    check_setting(CW_SETTING_RDMA, "off", path);
    check_setting(CW_SETTING_WATCHDOG, "5", path);
    check_setting(CW_SETTING_PLAN, NULL, "default");
    check_setting(CW_SETTING_EMULATE, NULL, "default"); /* no file contains the launcher's settings */
    (void)cw_setting_set(CW_SETTING_TRANSPORT, "eth0");
    (void)cw_environment_set("CAUSEWAY_WATCHDOG", "7");
    check_setting(CW_SETTING_TRANSPORT, "eth0", "command line");
    check_setting(CW_SETTING_WATCHDOG, "7", "command line");
    cw_setting_clear(CW_SETTING_RDMA);
    check_setting(CW_SETTING_RDMA, NULL, "default");
    cw_settings_export();
    const char *multicast = getenv("CAUSEWAY_MULTICAST"), *settings = getenv("CAUSEWAY_SETTINGS");
    if (multicast == NULL || strcmp(multicast, "off") != 0 || strcmp(settings, "none") != 0 ||
        getenv("CAUSEWAY_RDMA") != NULL) {
        _exit(2);
    }
}

static void options_precede_the_environment_which_precedes_the_file(void **state)
{
    static const char content[] =
        "# a comment\n\nTRANSPORT=any\n  CAUSEWAY_WATCHDOG=5\nRDMA=off\r\nMULTICAST=off\nPLAN=\n"
        "EMULATE=4,memif,/x\nno value\n";
    in_child(content, strlen(content), look_at_order);
}

static void look_at_complaints(const char *path)
{
    static const char *const wanted[] = {"CAUSEWAY_ALGORITHM is meant?", "doctor", "WATCHDOG is meant?", "'EMULATE'",
                                         "'no value'"};
    static struct complaints complaints;
    setenv("CAUSEWAY_ALGORITM", "x", 1);
    setenv("CAUSEWAY_NO_SUCH_THING_AT_ALL", "x", 1);
    cw_settings_check(complain, &complaints);
    for (uint32_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        bool is_there = false;
        for (uint32_t k = 0; k < complaints.count; k++) {
            is_there = is_there || strstr(complaints.lines[k], wanted[i]) != NULL;
        }
        if (!is_there || complaints.count != 5 || strstr(complaints.lines[4], path) == NULL) {
            fprintf(stderr, "%u complaints, none with %s\n", complaints.count, wanted[i]);
            _exit(1);
        }
    }
}

static void unknown_names_are_reported_with_the_nearest(void **state)
{
    static const char content[] = "WATCHDGO=5\nTRANSPORT=lo\nEMULATE=x\nno value\n";
    in_child(content, strlen(content), look_at_complaints);
}

static void look_at_anything(const char *path)
{
    static struct complaints complaints;
    for (uint32_t i = 0; i < CW_SETTINGS; i++) {
        (void)cw_setting((enum cw_setting)i);
    }
    complaints.count = 0;
    cw_settings_check(complain, &complaints);
}

static void files_may_have_any_content(void **state)
{
    static const char *const words[] = {"TRANSPORT", "CAUSEWAY_", "=", "\n", "#", " ", "\r", "WATCHDOG=", "A", "\t"};
    struct test_seeds seeds = test_seeds(1, 100);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct cw_random random;
        char content[400];
        size_t bytes = 0;
        cw_random_seed(&random, seed);
        for (uint32_t i = 0; i < 30; i++) {
            const char *word = words[cw_random_below(&random, sizeof(words) / sizeof(words[0]))];
            size_t length = strlen(word);
            memcpy(content + bytes, word, length);
            bytes += length;
            content[bytes] = (char)cw_random_below(&random, 256);
            bytes += cw_random_below(&random, 8) == 0; /* any byte, zeros among them */
        }
        in_child(content, bytes, look_at_anything);
    }
}

int main(void)
{
    return TESTS_RUN(options_precede_the_environment_which_precedes_the_file,
                     unknown_names_are_reported_with_the_nearest, files_may_have_any_content);
}
