#include "dataplane/port/eal.h"

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

#define PROGRAM_NAME "causeway" /* EAL's name in its messages */

enum {
    LOG_TEXT_BYTES = 1024,
    OWN_ARGUMENTS_MAX = 12,
    ARGUMENT_BYTES = 64,
    CAPTURE_BYTES = 2048, /* of EAL's output while it starts */
    CAUSE_BYTES = 200,
};

static struct {
    pthread_mutex_t lock;
    bool started;
    bool huge_pages;
    bool pci;
    uint32_t memory_mb;
    size_t argument_count;
    char *arguments[CW_EAL_ARGUMENTS_MAX];
} eal_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    size_t length;
    char text[LOG_TEXT_BYTES]; /* the first that was logged since the last clear */
} eal_log = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- log ---- */

static ssize_t eal_log_write(void *cookie, const char *text, size_t length)
{
    (void)cookie;
    if (rte_log_cur_msg_loglevel() > (int)RTE_LOG_ERR) {
        return (ssize_t)length;
    }
    pthread_mutex_lock(&eal_log.lock);
    size_t room = sizeof(eal_log.text) - 1 - eal_log.length;
    size_t taken = length < room ? length : room;
    memcpy(eal_log.text + eal_log.length, text, taken);
    eal_log.length += taken;
    pthread_mutex_unlock(&eal_log.lock);
    return (ssize_t)length;
}

void cw_eal_log_clear(void)
{
    pthread_mutex_lock(&eal_log.lock);
    eal_log.length = 0;
    pthread_mutex_unlock(&eal_log.lock);
}

/* Copies the first line that says something, without "EAL: " and "function(): " in front. */
static void line_copy(const char *text, size_t length, char *line, size_t line_bytes)
{
    size_t start = 0;
    while (start < length && isspace((unsigned char)text[start])) {
        start++;
    }
    size_t end = start;
    while (end < length && text[end] != '\n') {
        end++;
    }
    while (end > start && (isspace((unsigned char)text[end - 1]) || text[end - 1] == '.')) {
        end--;
    }
    if (end - start > 5 && memcmp(text + start, "EAL: ", 5) == 0) {
        start += 5;
    }
    const char *function = memmem(text + start, end - start, "(): ", 4);
    if (function != NULL) {
        start = (size_t)(function + 4 - text);
    }
    snprintf(line, line_bytes, "%.*s", (int)(end - start), text + start);
}

void cw_eal_log_first(char *text, size_t text_bytes)
{
    pthread_mutex_lock(&eal_log.lock);
    line_copy(eal_log.text, eal_log.length, text, text_bytes);
    pthread_mutex_unlock(&eal_log.lock);
}

/* Keeps what DPDK logs instead of printing it, unless the user set a log level and so wants to read it. */
static void log_capture(void)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = eal_log_write});
    if (stream != NULL) {
        rte_openlog_stream(stream);
    }
}

/* ---- arguments ---- */

struct argument_list {
    int count;
    char *texts[OWN_ARGUMENTS_MAX + CW_EAL_ARGUMENTS_MAX + 1];
    int own_count;
    char own[OWN_ARGUMENTS_MAX][ARGUMENT_BYTES];
};

/* True if the user's arguments contain one of the blank-separated option names, in the forms -mN, --name and
 * --name=value. */
static bool user_gave(const struct cw_eal_config *config, const char *options)
{
    for (size_t i = 0; i < config->argument_count; i++) {
        const char *given = config->arguments[i];
        size_t length = strncmp(given, "--", 2) == 0 ? strcspn(given, "=") : strlen(given) < 2 ? strlen(given) : 2;
        for (const char *option = options; *option != '\0';) {
            size_t option_length = strcspn(option, " ");
            if (length == option_length && memcmp(given, option, length) == 0) {
                return true;
            }
            option += option_length + strspn(option + option_length, " ");
        }
    }
    return false;
}

__attribute__((format(printf, 2, 3))) static void own_add(struct argument_list *list, const char *format, ...)
{
    assert(list->own_count < OWN_ARGUMENTS_MAX);
    char *text = list->own[list->own_count++];
    va_list values;
    va_start(values, format);
    vsnprintf(text, ARGUMENT_BYTES, format, values);
    va_end(values);
    list->texts[list->count++] = text;
}

static void arguments_build(const struct cw_eal_config *config, struct argument_list *list)
{
    list->count = 0;
    list->own_count = 0;
    own_add(list, PROGRAM_NAME);
    /* The user's first: EAL (22.11) can be started again after it has refused an argument, but not once it has taken
     * the cores. */
    for (size_t i = 0; i < eal_state.argument_count; i++) {
        list->texts[list->count++] = eal_state.arguments[i];
    }
    if (config->telemetry) {
        own_add(list, "--file-prefix=causeway-%d", (int)getpid()); /* its socket is below a folder of that name */
    } else if (!user_gave(config, "--telemetry")) {
        own_add(list, "--no-telemetry");
    }
    if (!user_gave(config, "--iova-mode")) {
        own_add(list, config->physical ? "--iova-mode=pa" : "--iova-mode=va");
    }
    if (!user_gave(config, "-l -c --lcores")) {
        int core = config->core == CW_EAL_CORE_CALLER ? sched_getcpu() : config->core;
        /* By mapping, as EAL has a limited range of lcore numbers and CPUs may have higher ones. */
        own_add(list, "--lcores=0@%d", core < 0 ? 0 : core);
    }
    if (config->huge_pages) {
        own_add(list, "--in-memory");
    } else if (!user_gave(config, "--in-memory --no-huge --socket-mem --huge-dir --legacy-mem")) {
        own_add(list, "--no-huge");
        own_add(list, "--no-shconf");
    }
    if (!user_gave(config, "-m --socket-mem") && (config->memory_mb != 0 || !config->huge_pages)) {
        own_add(list, "-m");
        own_add(list, "%u", config->memory_mb != 0 ? config->memory_mb : (uint32_t)CW_EAL_MEMORY_DEFAULT_MB);
    }
    if (config->pci_only != NULL) {
        own_add(list, "-a");
        own_add(list, "%s", config->pci_only);
    } else if (!user_gave(config, "-a --allow -b --block --no-pci")) {
        own_add(list, "--no-pci");
    }
    list->texts[list->count] = NULL;
}

/* ---- start ---- */

static bool huge_pages_free(void)
{
    DIR *folder = opendir("/sys/kernel/mm/hugepages");
    if (folder == NULL) {
        return false;
    }
    bool found = false;
    for (struct dirent *entry = readdir(folder); entry != NULL && !found; entry = readdir(folder)) {
        char path[512];
        snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/free_hugepages", entry->d_name);
        FILE *file = fopen(path, "re");
        unsigned long count = 0;
        if (file != NULL) {
            found = fscanf(file, "%lu", &count) == 1 && count > 0;
            fclose(file);
        }
    }
    closedir(folder);
    return found;
}

/* Redirects stdout and stderr to a scratch file, since EAL prints errors that it should return. For short stretches
 * only: it affects all threads. */
struct quiet {
    int file;
    int saved[2];
};

static void quiet_begin(struct quiet *quiet)
{
    fflush(stdout);
    fflush(stderr);
    quiet->file = memfd_create("eal-output", MFD_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        quiet->saved[i] = quiet->file < 0 ? -1 : fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
        if (quiet->saved[i] >= 0) {
            dup2(quiet->file, i + 1);
        }
    }
}

/* `text` gets the beginning of the output. */
static void quiet_end(struct quiet *quiet, char *text, size_t text_bytes)
{
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        if (quiet->saved[i] >= 0) {
            dup2(quiet->saved[i], i + 1);
            close(quiet->saved[i]);
        }
    }
    ssize_t length = quiet->file < 0 ? 0 : pread(quiet->file, text, text_bytes - 1, 0);
    text[length < 0 ? 0 : length] = '\0';
    if (quiet->file >= 0) {
        close(quiet->file);
    }
}

static int start_failed(int code, const struct cw_eal_config *config, const char *printed, char *error,
                        size_t error_bytes)
{
    char cause[CAUSE_BYTES];
    cw_eal_log_first(cause, sizeof(cause));
    /* The message of getopt names the option; EAL's later one reports only that there was one. */
    if (cause[0] == '\0' || strncmp(printed, PROGRAM_NAME ": ", sizeof(PROGRAM_NAME) + 1) == 0) {
        line_copy(printed, strlen(printed), cause, sizeof(cause));
    }
    char given[CAUSE_BYTES] = "";
    size_t length = 0;
    for (size_t i = 0; i < config->argument_count && length < sizeof(given); i++) {
        length +=
            (size_t)snprintf(given + length, sizeof(given) - length, "%s%s", i == 0 ? "" : " ", config->arguments[i]);
    }
    if (config->argument_count > 0 && (code == EINVAL || code == ENODEV)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "EAL refuses its arguments '%s': %s; dpdk-testpmd --help lists what EAL knows", given,
                             cause);
    }
    int status = cw_status_of_errno(code);
    const char *remedy = status == CW_ERROR_LIMIT ? cw_errno_remedy(code) : "; free memory, or ask for less EAL memory";
    return cw_error_text(error, error_bytes, status, "EAL does not start (%s): %s%s", rte_strerror(code), cause,
                         remedy);
}

static int eal_init(const struct cw_eal_config *config, char *error, size_t error_bytes)
{
    cpu_set_t affinity;
    bool affinity_known = pthread_getaffinity_np(pthread_self(), sizeof(affinity), &affinity) == 0;
    struct argument_list list;
    arguments_build(config, &list);
    if (!user_gave(config, "--log-level --syslog")) {
        log_capture();
    }
    cw_eal_log_clear();

    /* EAL prints, too: getopt and its alerts on stderr, its usage on stdout. */
    struct quiet quiet;
    char printed[CAPTURE_BYTES];
    quiet_begin(&quiet);
    int result = rte_eal_init(list.count, list.texts);
    int code = rte_errno;
    quiet_end(&quiet, printed, sizeof(printed));

    if (affinity_known) {
        pthread_setaffinity_np(pthread_self(), sizeof(affinity), &affinity);
    }
    return result < 0 ? start_failed(code, config, printed, error, error_bytes) : CW_OK;
}

static void arguments_clear(void)
{
    for (size_t i = 0; i < eal_state.argument_count; i++) {
        free(eal_state.arguments[i]);
    }
    eal_state.argument_count = 0;
}

static int arguments_keep(const struct cw_eal_config *config)
{
    for (size_t i = 0; i < config->argument_count; i++) {
        eal_state.arguments[i] = strdup(config->arguments[i]);
        if (eal_state.arguments[i] == NULL) {
            arguments_clear();
            return CW_ERROR_MEMORY;
        }
        eal_state.argument_count++;
    }
    return CW_OK;
}

/* A setting at its default is compatible with any value. */
static const char *difference_find(const struct cw_eal_config *config)
{
    if (config->huge_pages && !eal_state.huge_pages) {
        return "without huge pages";
    }
    if (config->pci_only != NULL && !eal_state.pci) {
        return "without PCI devices";
    }
    if (config->memory_mb > eal_state.memory_mb && eal_state.memory_mb != 0) {
        return "with less memory";
    }
    bool same = config->argument_count == eal_state.argument_count;
    for (size_t i = 0; same && i < config->argument_count; i++) {
        same = strcmp(config->arguments[i], eal_state.arguments[i]) == 0;
    }
    return same || config->argument_count == 0 ? NULL : "with other arguments";
}

static int start_locked(const struct cw_eal_config *config, char *error, size_t error_bytes)
{
    if (eal_state.started) {
        const char *difference = difference_find(config);
        if (difference == NULL) {
            return CW_OK;
        }
        return cw_error_text(
            error, error_bytes, CW_ERROR_BUSY,
            "EAL already runs in this process, %s; give the first port that is opened the settings of all", difference);
    }
    if (config->huge_pages && !huge_pages_free()) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_NOT_FOUND,
            "huge pages were asked for but none is free; as root: sysctl vm.nr_hugepages=512, or do without");
    }
    if (arguments_keep(config) != CW_OK) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "out of memory for the EAL arguments");
    }
    int status = eal_init(config, error, error_bytes);
    if (status != CW_OK) {
        arguments_clear();
        return status;
    }
    eal_state.started = true;
    eal_state.huge_pages = config->huge_pages;
    eal_state.pci = config->pci_only != NULL || user_gave(config, "-a --allow -b --block");
    eal_state.memory_mb = config->memory_mb != 0 ? config->memory_mb
                          : config->huge_pages   ? 0
                                                 : (uint32_t)CW_EAL_MEMORY_DEFAULT_MB;
    return CW_OK;
}

int cw_eal_start(const struct cw_eal_config *config, char *error, size_t error_bytes)
{
    if (config->argument_count > CW_EAL_ARGUMENTS_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "%zu EAL arguments, at most %d are taken",
                             config->argument_count, CW_EAL_ARGUMENTS_MAX);
    }
    char path[64];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", config->core);
    if (config->core != CW_EAL_CORE_CALLER && access(path, F_OK) != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "EAL core %d: this machine has no such CPU; lscpu lists them", config->core);
    }
    pthread_mutex_lock(&eal_state.lock);
    int status = start_locked(config, error, error_bytes);
    pthread_mutex_unlock(&eal_state.lock);
    return status;
}

/* ---- threads ---- */

static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

static void thread_ended(void *registered)
{
    (void)registered;
    rte_thread_unregister();
}

static void thread_key_make(void)
{
    if (pthread_key_create(&thread_key, thread_ended) != 0) {
        thread_key = (pthread_key_t)-1;
    }
}

void cw_eal_thread_register(void)
{
    static _Thread_local bool tried;
    if (tried) {
        return;
    }
    tried = true;
    pthread_once(&thread_key_once, thread_key_make);
    if (thread_key != (pthread_key_t)-1 && rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) {
        pthread_setspecific(thread_key, &thread_key);
    }
}
