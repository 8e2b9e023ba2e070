#include "control/launch/link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum {
    READ_BYTES = 65536,
    TEXT_BYTES = 512,
    NOISE_MAX = 65536, /* that shells may say before the agent's line */
    SAID_MAX = 4096,
    END_MS = 300,    /* between the end of a command's output and its own */
    LAST_READS = 64, /* reads of the rest that an ended command left in a pipe: other writers may never stop */
};

#define ANSWER_NS UINT64_C(10000000000)

static const char agent_word[] = "causeway-agent ";

uint64_t launch_ping_ns(uint64_t bound_ns)
{
    uint64_t pause_ns = bound_ns / 5;
    return bound_ns == 0 ? UINT64_MAX : pause_ns < 2000000000 ? pause_ns : 2000000000;
}

static const char *host_name(const struct launch_link *link)
{
    return link->config.work->host_names[link->hosts[0]];
}

/* ---- up ---- */

static void report(struct launch_link *link, enum launch_frame_type type, int32_t value, const char *text)
{
    const struct launch_frame frame = {
        .type = type, .rank = link->hosts[0], .value = value, .bytes = text, .count = (uint32_t)strlen(text)};
    link->config.up.receive(link->config.up.context, &frame);
}

static void files_close(struct launch_link *link)
{
    int *files[] = {&link->in, &link->out, &link->errors, &link->handle};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (*files[i] >= 0) {
            close(*files[i]); /* leaves the epoll set by that */
            *files[i] = -1;
        }
    }
}

__attribute__((format(printf, 3, 4))) static void fail(struct launch_link *link, int code, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    if (link->state >= LAUNCH_LINK_DONE) {
        return;
    }
    link->state = LAUNCH_LINK_FAILED;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    files_close(link);
    if (link->process > 0) {
        kill(link->process, SIGTERM);
        kill(link->process, SIGCONT);
    }
    if (!link->is_over) {
        report(link, LAUNCH_FAIL, code, text);
    }
}

/* ---- other output of the command ---- */

static bool has_more(int file)
{
    return poll(&(struct pollfd){.fd = file, .events = POLLIN}, 1, 0) > 0;
}

/* Its end is kept. */
static void errors_trim(struct launch_link *link)
{
    if (launch_bytes_count(&link->said) > SAID_MAX) {
        launch_bytes_drop(&link->said, launch_bytes_count(&link->said) - SAID_MAX);
    }
}

static void errors_read(struct launch_link *link)
{
    char bytes[SAID_MAX];
    ssize_t got = read(link->errors, bytes, sizeof(bytes));
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        close(link->errors);
        link->errors = -1;
        return;
    }
    if (got < 0 || launch_bytes_add(&link->said, bytes, (size_t)got) != CW_OK) {
        return;
    }
    errors_trim(link);
    const char *begin, *end;
    while (link->state == LAUNCH_LINK_OPEN && launch_bytes_count(&link->said) > 0 &&
           (end = memchr(begin = launch_bytes_front(&link->said), '\n', launch_bytes_count(&link->said))) != NULL) {
        char line[TEXT_BYTES];
        snprintf(line, sizeof(line), "%.*s", (int)(end - begin), begin);
        launch_bytes_drop(&link->said, (size_t)(end - begin) + 1);
        report(link, LAUNCH_SAY, 0, line);
    }
}

/* The last line of the command's output, or of the output before the agent's; ": " in front. "" if there is none. */
static void last_line(struct launch_link *link, char *line, size_t bytes)
{
    const struct launch_bytes *sources[] = {&link->said, &link->received};
    line[0] = 0;
    for (size_t i = 0; i < 2 && line[0] == 0; i++) {
        const char *text = launch_bytes_front(sources[i]);
        size_t end = launch_bytes_count(sources[i]);
        while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\r')) {
            end--;
        }
        size_t begin = end;
        while (begin > 0 && text[begin - 1] != '\n') {
            begin--;
        }
        if (end > begin && (i == 0 || link->state == LAUNCH_LINK_ASKED)) {
            snprintf(line, bytes, ": %.*s", (int)(end - begin < 200 ? end - begin : 200), text + begin);
            for (char *at = line; *at != 0; at++) {
                *at = *at < ' ' ? ' ' : *at;
            }
        }
    }
}

/* ---- the end of the command ---- */

/* Its exit code, 256 + signal, or -1: it is running, or unknown. */
static int command_ended(const struct launch_link *link)
{
    siginfo_t info = {.si_pid = 0};
    for (int waited_ms = 0; link->process > 0 && waited_ms <= END_MS; waited_ms += 10) {
        if (waitid(P_PID, (id_t)link->process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
            return info.si_code == CLD_EXITED ? info.si_status : LAUNCH_ENDED_SIGNAL + info.si_status;
        }
        (void)poll(NULL, 0, 10);
    }
    return -1;
}

/* Whether the dynamic loader failed: its exit code is that of a shell without the program. */
static bool lacks_library(const struct launch_link *link)
{
    static const char words[] = "error while loading shared libraries: ";
    const char *said = launch_bytes_front(&link->said);
    return said != NULL && memmem(said, launch_bytes_count(&link->said), words, strlen(words)) != NULL;
}

static void end_report(struct launch_link *link)
{
    char line[256], how[64] = "has closed its output";
    const char *launcher = link->config.work->launcher, *host = host_name(link);
    int code = command_ended(link);
    for (int i = 0; i < LAST_READS && link->errors >= 0 && has_more(link->errors); i++) {
        errors_read(link);
    }
    last_line(link, line, sizeof(line));
    if (code >= LAUNCH_ENDED_SIGNAL) {
        const char *name = sigabbrev_np(code - LAUNCH_ENDED_SIGNAL);
        snprintf(how, sizeof(how), "was ended by SIG%s", name != NULL ? name : "?");
    } else if (code >= 0) {
        snprintf(how, sizeof(how), "ended with exit code %d", code);
    }
    if (link->state == LAUNCH_LINK_OPEN) {
        fail(link, CW_LAUNCH_EXIT_FAILED, "host %s: its agent is gone (`%s %s` %s%s): ending all ranks", host, launcher,
             host, how, line);
    } else if (code == CW_LAUNCH_EXIT_NOT_FOUND && lacks_library(link)) {
        fail(
            link, CW_LAUNCH_EXIT_NOT_FOUND,
            "host %s: causeway is there, and lacks a shared library (`%s %s` %s%s): install the packages that it needs "
            "there (`./setup run`)",
            host, launcher, host, how, line);
    } else if (code == CW_LAUNCH_EXIT_NOT_FOUND || code == CW_LAUNCH_EXIT_NOT_EXECUTABLE) {
        fail(link, CW_LAUNCH_EXIT_NOT_FOUND,
             "host %s: there is no causeway, neither as %s nor in PATH (`%s %s` %s%s): install the same version there",
             host, link->config.work->executable, launcher, host, how, line);
    } else {
        fail(link, CW_LAUNCH_EXIT_MACHINE,
             "host %s: no agent could be started (`%s %s` %s%s): `%s %s true` has to work without a question", host,
             launcher, host, how, line, launcher, host);
    }
}

/* ---- frames ---- */

static void out_flush(struct launch_link *link)
{
    while (link->out >= 0 && launch_bytes_count(&link->waiting) > 0) {
        ssize_t done = write(link->out, launch_bytes_front(&link->waiting), launch_bytes_count(&link->waiting));
        if (done > 0) {
            launch_bytes_drop(&link->waiting, (size_t)done);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            close(link->out); /* its end comes by its output, which says more */
            link->out = -1;
        }
    }
    bool blocked = link->out >= 0 && launch_bytes_count(&link->waiting) > 0;
    if (blocked && !link->out_blocked) {
        launch_watch(link->config.set, link->out, EPOLLOUT, LAUNCH_LINK_OUT, link->config.index);
    } else if (!blocked && link->out_blocked && link->out >= 0) {
        launch_unwatch(link->config.set, link->out);
    }
    link->out_blocked = blocked;
}

void launch_link_send(struct launch_link *link, const struct launch_frame *order)
{
    link->is_over = link->is_over || order->type == LAUNCH_END;
    if (link->state >= LAUNCH_LINK_DONE) {
        return;
    }
    if (launch_frame_write(&link->waiting, order) != CW_OK) {
        fail(link, CW_LAUNCH_EXIT_MACHINE, "host %s: no memory for a message to it", host_name(link));
        return;
    }
    link->sent_ns = cw_clock_ns();
    out_flush(link);
}

static void frames_parse(struct launch_link *link)
{
    struct launch_frame frame;
    size_t used;
    int status = 0;
    while (link->state == LAUNCH_LINK_OPEN && (status = launch_frame_read(&link->received, &frame, &used)) == 1) {
        if (frame.type == LAUNCH_DONE && link->is_over) {
            link->state = LAUNCH_LINK_DONE;
        } else if (frame.type == LAUNCH_DONE || !launch_frame_is_report(&frame)) {
            status = CW_ERROR_ARGUMENT; /* or the job's end was not reported */
            break;
        } else {
            link->config.up.receive(link->config.up.context, &frame);
        }
        if (link->state == LAUNCH_LINK_OPEN) {
            launch_bytes_drop(&link->received, used);
        }
    }
    if (status < 0) {
        fail(link, CW_LAUNCH_EXIT_FAILED, "host %s: invalid message from its agent: ending all ranks", host_name(link));
    }
}

/* Throws away what came before the agent: a shell's own words, of which the end is kept for messages. */
static void noise_drop(struct launch_link *link, size_t count)
{
    (void)launch_bytes_add(&link->said, launch_bytes_front(&link->received), count);
    errors_trim(link);
    launch_bytes_drop(&link->received, count);
    link->noise += count;
}

/* Looks for the agent's line: it may begin behind words that a shell has written without a newline. True: it is
 * there. */
static bool line_find(struct launch_link *link)
{
    const char *begin, *end;
    while (launch_bytes_count(&link->received) > 0 && (end = memchr(begin = launch_bytes_front(&link->received), '\n',
                                                                    launch_bytes_count(&link->received))) != NULL) {
        char line[TEXT_BYTES];
        size_t length = (size_t)(end - begin);
        const char *word = memmem(begin, length, agent_word, strlen(agent_word));
        noise_drop(link, word != NULL ? (size_t)(word - begin) : length + 1);
        if (word == NULL) {
            continue;
        }
        length = (size_t)(end - word);
        snprintf(line, sizeof(line), "%.*s", (int)(length < sizeof(line) ? length : sizeof(line) - 1), word);
        launch_bytes_drop(&link->received, length + 1);
        char *version = line + strlen(agent_word);
        char *identity = strchr(version, ' ');
        if (identity != NULL) {
            *identity++ = 0;
        }
        if (identity == NULL || strcmp(version, CW_VERSION) != 0) {
            fail(link, CW_LAUNCH_EXIT_MACHINE,
                 "host %s has Causeway %.40s, and this is %s: install the same version on all hosts", host_name(link),
                 version, CW_VERSION);
            return false;
        }
        link->state = LAUNCH_LINK_OPEN;
        launch_bytes_drop(&link->said, launch_bytes_count(&link->said));
        report(link, LAUNCH_HERE, 0, identity);
        return true;
    }
    if (link->noise + launch_bytes_count(&link->received) > NOISE_MAX) {
        fail(link, CW_LAUNCH_EXIT_MACHINE, "host %s: a shell there says too much, and no agent answers",
             host_name(link));
    }
    return false;
}

static void in_receive(struct launch_link *link)
{
    char *room = launch_bytes_room(&link->received, READ_BYTES);
    ssize_t got = room == NULL ? -1 : read(link->in, room, READ_BYTES);
    if (room == NULL) {
        fail(link, CW_LAUNCH_EXIT_MACHINE, "host %s: no memory for its messages", host_name(link));
        return;
    }
    if (got > 0) {
        launch_bytes_added(&link->received, (size_t)got);
        link->heard_ns = cw_clock_ns();
        if (link->state == LAUNCH_LINK_OPEN || (link->state == LAUNCH_LINK_ASKED && line_find(link))) {
            frames_parse(link);
        }
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_report(link);
    }
}

void launch_link_event(struct launch_link *link, enum launch_source source)
{
    if (source == LAUNCH_LINK_IN && link->in >= 0) {
        in_receive(link);
    } else if (source == LAUNCH_LINK_OUT && link->out >= 0) {
        out_flush(link);
    } else if (source == LAUNCH_LINK_ERRORS && link->errors >= 0) {
        errors_read(link);
    } else if (source == LAUNCH_LINK_COMMAND && link->handle >= 0) {
        for (int i = 0; i < LAST_READS && link->state < LAUNCH_LINK_DONE && link->in >= 0 && has_more(link->in); i++) {
            in_receive(link); /* its last words */
        }
        if (link->state < LAUNCH_LINK_DONE) {
            end_report(link); /* another process still has its output */
        }
    }
    if (link->state == LAUNCH_LINK_DONE) {
        files_close(link);
    }
}

void launch_link_ping(struct launch_link *link, uint64_t now_ns)
{
    uint64_t ping_ns = launch_ping_ns(link->bound_ns);
    if (ping_ns != UINT64_MAX && now_ns >= link->sent_ns + ping_ns && launch_bytes_count(&link->waiting) == 0) {
        launch_link_send(link, &(struct launch_frame){.type = LAUNCH_PING});
    }
}

/* How long an agent has to answer from the time it was asked for: at least as long as it may be silent later. */
static uint64_t answer_ns(const struct launch_link *link)
{
    return link->bound_ns > ANSWER_NS ? link->bound_ns : ANSWER_NS;
}

uint64_t launch_link_turn(struct launch_link *link, uint64_t now_ns)
{
    char line[256];
    uint64_t silent_ns = UINT64_MAX, ping_ns = launch_ping_ns(link->bound_ns);
    uint64_t absent_ns = link->looked_ns == 0 ? 0 : now_ns - link->looked_ns;
    link->looked_ns = now_ns;
    if (link->state >= LAUNCH_LINK_DONE) {
        return UINT64_MAX;
    }
    if (link->state == LAUNCH_LINK_ASKED) {
        silent_ns = link->bound_ns == 0 ? UINT64_MAX : link->opened_ns + answer_ns(link);
    } else if (link->bound_ns != 0) {
        silent_ns = link->heard_ns + link->bound_ns;
    }
    if (now_ns >= silent_ns && link->state == LAUNCH_LINK_ASKED) {
        last_line(link, line, sizeof(line));
        fail(link, CW_LAUNCH_EXIT_MACHINE,
             "host %s does not answer within %d s (`%s %s`%s): `%s %s true` has to work without a question",
             host_name(link), (int)(answer_ns(link) / 1000000000), link->config.work->launcher, host_name(link), line,
             link->config.work->launcher, host_name(link));
        return UINT64_MAX;
    }
    if (now_ns >= silent_ns && absent_ns >= link->bound_ns) {
        fail(link, CW_LAUNCH_EXIT_FAILED,
             "host %s: its agent has ended: the launcher was stopped for %" PRIu64 " s, and agents wait %" PRIu64
             " s without a message (CAUSEWAY_FAILURE_TIMEOUT=0: no limit)",
             host_name(link), absent_ns / 1000000000, link->bound_ns / 1000000000);
        return UINT64_MAX;
    }
    if (now_ns >= silent_ns) {
        fail(link, CW_LAUNCH_EXIT_FAILED,
             "host %s: its agent is silent for %" PRIu64 " s: ending all ranks (CAUSEWAY_FAILURE_TIMEOUT)",
             host_name(link), link->bound_ns / 1000000000);
        return UINT64_MAX;
    }
    launch_link_ping(link, now_ns);
    uint64_t next_ns = ping_ns == UINT64_MAX ? UINT64_MAX : now_ns + ping_ns;
    return silent_ns < next_ns ? silent_ns : next_ns;
}

/* ---- from start to end ---- */

static bool start_send(struct launch_link *link)
{
    struct launch_bytes payload = {.start = NULL};
    int status = launch_work_write(link->config.work, link->hosts, link->config.host_count, &payload);
    if (status == CW_OK) {
        launch_link_send(link, &(struct launch_frame){.type = LAUNCH_START,
                                                      .bytes = launch_bytes_front(&payload),
                                                      .count = (uint32_t)launch_bytes_count(&payload)});
    }
    launch_bytes_dispose(&payload);
    return status == CW_OK;
}

void launch_link_open(struct launch_link *link, const struct launch_link_config *config)
{
    const char *origin;
    *link = (struct launch_link){.config = *config, .handle = -1, .in = -1, .out = -1, .errors = -1};
    (void)cw_settings_failure_timeout(&link->bound_ns, &origin); /* the ranks report an invalid value */
    link->opened_ns = link->heard_ns = link->sent_ns = cw_clock_ns();
    link->hosts = calloc((size_t)config->host_count + 1, sizeof(*link->hosts));
    if (link->hosts == NULL) {
        link->state = LAUNCH_LINK_FAILED;
        const struct launch_frame frame = {.type = LAUNCH_FAIL,
                                           .rank = config->hosts[0],
                                           .value = CW_LAUNCH_EXIT_MACHINE,
                                           .bytes = "out of memory",
                                           .count = 13};
        config->up.receive(config->up.context, &frame);
        return;
    }
    memcpy(link->hosts, config->hosts, config->host_count * sizeof(*link->hosts));
    link->config.hosts = link->hosts;
    if (!launch_link_command(link, host_name(link))) {
        fail(link, CW_LAUNCH_EXIT_MACHINE, "host %s: `%s` cannot be started: %s", host_name(link),
             config->work->launcher, strerror(errno));
    } else {
        fcntl(link->in, F_SETFL, O_NONBLOCK);
        fcntl(link->out, F_SETFL, O_NONBLOCK);
        fcntl(link->errors, F_SETFL, O_NONBLOCK);
        launch_watch(config->set, link->in, EPOLLIN, LAUNCH_LINK_IN, config->index);
        launch_watch(config->set, link->errors, EPOLLIN, LAUNCH_LINK_ERRORS, config->index);
        link->handle = pidfd_open(link->process, 0);
        if (link->handle >= 0) {
            launch_watch(config->set, link->handle, EPOLLIN, LAUNCH_LINK_COMMAND, config->index);
        }
        if (!start_send(link)) {
            fail(link, CW_LAUNCH_EXIT_MACHINE, "host %s: out of memory", host_name(link));
        }
    }
}

void launch_link_listen(struct launch_link *link)
{
    link->opened_ns = link->heard_ns = cw_clock_ns();
}

void launch_link_close(struct launch_link *link)
{
    files_close(link);
    launch_bytes_dispose(&link->received);
    launch_bytes_dispose(&link->waiting);
    launch_bytes_dispose(&link->said);
    free(link->hosts);
    link->hosts = NULL;
}
