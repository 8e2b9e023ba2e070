#include "apps/bench/processes/testpmd.h"

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES = 256,
    SAMPLES_DEFAULT = 5,
    SAMPLES_MAX = 60,
    SAMPLES_WARMUP = 2, /* seconds with traffic that are not counted */
    START_TIMEOUT_S = 20,
    END_TIMEOUT_MS = 3000,
    BUFFERS = 8192,
    EXIT_NOT_STARTED = 127,
};

struct testpmd {
    pid_t process;
    int output; /* its stdout and stderr */
    size_t length;
    char line[LINE_BYTES];  /* what has come of the current line */
    char cause[LINE_BYTES]; /* the last line that looked like an error */
};

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the processes ---- */

/* Buffers as our ports have them: a frame in one piece, as long as af_packet's slots where those are larger. */
static uint32_t buffer_bytes(uint32_t frame_bytes)
{
    enum { HEADROOM = 128, SLOT = 4096, SLOT_HEADER = 96 };
    if (frame_bytes <= 2048 - SLOT_HEADER) {
        return 2048 + HEADROOM;
    }
    return (frame_bytes + SLOT_HEADER + SLOT - 1) / SLOT * SLOT + HEADROOM;
}

static _Noreturn void testpmd_become(const struct bench_testpmd_settings *settings, bool receives, int output)
{
    char cores[64];
    char device[1024];
    char buffers[32];
    char size[32];
    char lengths[32];
    uint32_t core = receives ? settings->receive_core : settings->transmit_core;
    /* Its main thread prints once a second, on either core. */
    snprintf(cores, sizeof(cores), "--lcores=0@(%u,%u),1@%u", settings->receive_core, settings->transmit_core, core);
    snprintf(device, sizeof(device), "--vdev=%s", receives ? settings->receive_device : settings->transmit_device);
    snprintf(buffers, sizeof(buffers), "--total-num-mbufs=%d", BUFFERS);
    snprintf(size, sizeof(size), "--mbuf-size=%u", buffer_bytes(settings->frame_bytes));
    snprintf(lengths, sizeof(lengths), "--txpkts=%u", settings->frame_bytes);
    const char *arguments[] = {"dpdk-testpmd",
                               "--no-huge",
                               "--no-shconf",
                               "--no-telemetry",
                               "--no-pci",
                               "--iova-mode=va",
                               "-m",
                               "512",
                               cores,
                               device,
                               "--",
                               receives ? "--forward-mode=rxonly" : "--forward-mode=txonly",
                               "--stats-period=1",
                               "--no-mlockall",
                               "--no-lsc-interrupt",
                               "--burst=32",
                               buffers,
                               size,
                               lengths,
                               NULL};
    int input = open("/dev/null", O_RDONLY);
    dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(EXIT_NOT_STARTED);
}

static int testpmd_start(const struct bench_testpmd_settings *settings, bool receives, struct testpmd *testpmd)
{
    int ends[2];
    *testpmd = (struct testpmd){.process = -1, .output = -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return CW_ERROR_SYSTEM;
    }
    pid_t parent = getpid();
    testpmd->process = fork();
    if (testpmd->process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int network = receives ? settings->receive_network : settings->transmit_network;
        if (getppid() == parent && (network < 0 || setns(network, CLONE_NEWNET) == 0)) {
            testpmd_become(settings, receives, ends[1]);
        }
        _exit(EXIT_NOT_STARTED);
    }
    close(ends[1]);
    if (testpmd->process < 0) {
        close(ends[0]);
        return CW_ERROR_SYSTEM;
    }
    testpmd->output = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return CW_OK;
}

/* Ends one process: by request, then by force. memif's driver may crash when its other side goes: that is no failure of
 * ours. */
static void testpmd_end(struct testpmd *testpmd)
{
    uint64_t end = clock_ms() + END_TIMEOUT_MS;
    while (testpmd->process > 0 && waitpid(testpmd->process, NULL, WNOHANG) == 0) {
        char rest[1024];
        while (read(testpmd->output, rest, sizeof(rest)) > 0) {
            /* a full pipe would keep it from ending */
        }
        if (clock_ms() > end) {
            kill(testpmd->process, SIGKILL);
            waitpid(testpmd->process, NULL, 0);
            break;
        }
        usleep(10000);
    }
    testpmd->process = -1;
    if (testpmd->output >= 0) {
        close(testpmd->output);
        testpmd->output = -1;
    }
}

/* ---- what it prints ---- */

/* Takes note of a whole line; true if it gives a rate. */
static bool line_parse(struct testpmd *testpmd, double *packets_per_s)
{
    testpmd->line[testpmd->length] = '\0';
    testpmd->length = 0;
    const char *rate = strstr(testpmd->line, "Rx-pps:");
    if (rate != NULL) {
        *packets_per_s = strtod(rate + strlen("Rx-pps:"), NULL);
        return true;
    }
    if (strstr(testpmd->line, "Cause:") != NULL || strstr(testpmd->line, "rror") != NULL ||
        strstr(testpmd->line, "ailed") != NULL) {
        snprintf(testpmd->cause, sizeof(testpmd->cause), "%s", testpmd->line + strspn(testpmd->line, " "));
    }
    return false;
}

/* Waits for the next line with a rate. CW_OK, CW_ERROR_TIMEOUT, CW_ERROR_CLOSED (the process has ended). */
static int rate_next(struct testpmd *testpmd, uint64_t end_ms, double *packets_per_s)
{
    for (;;) {
        char byte;
        ssize_t count = read(testpmd->output, &byte, 1);
        if (count == 0) {
            return CW_ERROR_CLOSED;
        }
        if (count == 1) {
            if (byte == '\n' || testpmd->length == LINE_BYTES - 1) {
                if (line_parse(testpmd, packets_per_s)) {
                    return CW_OK;
                }
            } else {
                testpmd->line[testpmd->length++] = byte;
            }
            continue;
        }
        uint64_t now = clock_ms();
        if (now >= end_ms) {
            return CW_ERROR_TIMEOUT;
        }
        struct pollfd set = {.fd = testpmd->output, .events = POLLIN};
        poll(&set, 1, (int)(end_ms - now));
    }
}

static void output_discard(struct testpmd *testpmd)
{
    double ignored;
    while (rate_next(testpmd, 0, &ignored) == CW_OK) {
    }
}

/* ---- the measurement ---- */

/* The best of the receiver's rates, counted from the first one that is not 0. */
static int samples_take(struct testpmd *receiver, struct testpmd *sender, uint32_t count, double *best)
{
    *best = 0;
    uint32_t seen = 0;
    uint64_t end = clock_ms() + 1000 * (uint64_t)(count + START_TIMEOUT_S);
    while (seen < count + SAMPLES_WARMUP) {
        double rate = 0;
        int status = rate_next(receiver, end, &rate);
        if (status != CW_OK) {
            return status;
        }
        output_discard(sender); /* so that its pipe never fills up */
        if (seen > 0 || rate > 0) {
            if (seen >= SAMPLES_WARMUP && rate > *best) {
                *best = rate;
            }
            seen++;
        } else if (clock_ms() > end - 1000 * (uint64_t)count) {
            return CW_ERROR_TIMEOUT;
        }
    }
    return CW_OK;
}

static int run_failed(int status, const struct testpmd *receiver, const struct testpmd *sender, char *error,
                      size_t error_bytes)
{
    int code = 0;
    const struct testpmd *both[] = {receiver, sender};
    for (int i = 0; i < 2; i++) {
        siginfo_t ended = {0};
        if (both[i]->process > 0 && waitid(P_PID, (id_t)both[i]->process, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            ended.si_code == CLD_EXITED && ended.si_status == EXIT_NOT_STARTED) {
            code = EXIT_NOT_STARTED;
        }
    }
    if (code == EXIT_NOT_STARTED) {
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "dpdk-testpmd is not installed: the raw figures are held against nothing; as root: "
                             "apt-get install dpdk-dev");
    }
    const char *cause = receiver->cause[0] != '\0' ? receiver->cause : sender->cause;
    if (status == CW_ERROR_TIMEOUT) {
        return cw_error_text(error, error_bytes, status,
                             "dpdk-testpmd received nothing%s%s; do the two devices see each other?",
                             cause[0] != '\0' ? ": " : "", cause);
    }
    return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                         "dpdk-testpmd ended early: %s; run it by hand with the same --vdev",
                         cause[0] != '\0' ? cause : "it does not say why");
}

int bench_testpmd_run(const struct bench_testpmd_settings *settings, double *packets_per_s, char *error,
                      size_t error_bytes)
{
    uint32_t samples = settings->samples != 0 ? settings->samples : SAMPLES_DEFAULT;
    if (samples > SAMPLES_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "dpdk-testpmd: %u samples, at most %d", samples,
                             SAMPLES_MAX);
    }
    struct testpmd receiver;
    struct testpmd sender = {.process = -1, .output = -1};
    double rate = 0;
    int status = testpmd_start(settings, true, &receiver);
    if (status == CW_OK) {
        /* It prints its first rates once its device is there, which the sender's may need. */
        status = rate_next(&receiver, clock_ms() + 1000 * START_TIMEOUT_S, &rate);
    }
    if (status == CW_OK) {
        status = testpmd_start(settings, false, &sender);
    }
    if (status == CW_OK) {
        status = samples_take(&receiver, &sender, samples, &rate);
    }
    if (status != CW_OK) {
        usleep(100000); /* one that is about to end can be asked for its exit code then */
        output_discard(&sender);
        status = run_failed(status, &receiver, &sender, error, error_bytes);
    }
    for (int i = 0; i < 2; i++) {
        struct testpmd *each = i == 0 ? &receiver : &sender;
        if (each->process > 0) {
            kill(each->process, SIGINT);
        }
    }
    testpmd_end(&receiver);
    testpmd_end(&sender);
    if (status == CW_OK) {
        *packets_per_s = rate;
    }
    return status;
}
