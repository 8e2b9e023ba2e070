#include "apps/bench/processes/testpmd.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    LINE_BYTES = 256,
    SAMPLES = 3,        /* seconds that are measured */
    SAMPLES_WARMUP = 2, /* seconds with traffic before */
    BUFFERS = 8192,
    EXIT_NOT_STARTED = 127,
};

#define LIMIT "40" /* seconds, after which a testpmd that hangs is ended */

struct testpmd {
    pid_t process;
    FILE *output;           /* stdout and stderr */
    char cause[LINE_BYTES]; /* the last line that looked like an error */
};

/* Buffers as our ports have them: a frame in one piece, as long as af_packet's slots where those are larger. */
static uint32_t buffer_bytes(uint32_t frame_bytes)
{
    enum { HEADROOM = 128, SLOT = 4096, SLOT_HEADER = 96 };
    if (frame_bytes <= 2048 - SLOT_HEADER) {
        return 2048 + HEADROOM;
    }
    return (frame_bytes + SLOT_HEADER + SLOT - 1) / SLOT * SLOT + HEADROOM;
}

/* In the place of this process. */
static _Noreturn void testpmd_become(const struct bench_testpmd_settings *settings, bool receives)
{
    const struct bench_testpmd_side *side = &settings->sides[receives ? 0 : 1];
    char cores[64], device[1024], buffers[32], size[32], lengths[32];
    /* Its main thread prints once a second, on either core. */
    snprintf(cores, sizeof(cores), "--lcores=0@(%u,%u),1@%u", settings->sides[0].core, settings->sides[1].core,
             side->core);
    snprintf(device, sizeof(device), "--vdev=%s", side->device);
    snprintf(buffers, sizeof(buffers), "--total-num-mbufs=%d", BUFFERS);
    snprintf(size, sizeof(size), "--mbuf-size=%u", buffer_bytes(settings->frame_bytes));
    snprintf(lengths, sizeof(lengths), "--txpkts=%u", settings->frame_bytes);
    const char *arguments[] = {"timeout",
                               "--kill-after=3",
                               LIMIT,
                               "dpdk-testpmd",
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
    if (side->network < 0 || setns(side->network, CLONE_NEWNET) == 0) {
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    }
    _exit(EXIT_NOT_STARTED);
}

/* The sender's output is not read. */
static int testpmd_start(const struct bench_testpmd_settings *settings, bool receives, struct testpmd *testpmd)
{
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return CW_ERROR_SYSTEM;
    }
    testpmd->process = fork();
    if (testpmd->process == 0) {
        int input = open("/dev/null", O_RDWR);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(input, 0);
        dup2(receives ? ends[1] : input, 1);
        dup2(receives ? ends[1] : input, 2);
        if (getppid() == parent) {
            testpmd_become(settings, receives);
        }
        _exit(EXIT_NOT_STARTED);
    }
    close(ends[1]);
    testpmd->output = fdopen(ends[0], "r");
    return testpmd->process < 0 || testpmd->output == NULL ? CW_ERROR_SYSTEM : CW_OK;
}

/* Ends one process, and returns how it ended. memif's driver may crash when its other side goes: that is no failure of
 * ours. */
static int testpmd_end(struct testpmd *testpmd)
{
    int status = 0;
    if (testpmd->process > 0) {
        kill(testpmd->process, SIGTERM);
        waitpid(testpmd->process, &status, 0);
    }
    if (testpmd->output != NULL) {
        fclose(testpmd->output);
    }
    return status;
}

/* Reads up to the next line with a rate. False: the process has ended. */
static bool rate_next(struct testpmd *testpmd, double *packets_per_s)
{
    char line[LINE_BYTES];
    while (fgets(line, sizeof(line), testpmd->output) != NULL) {
        const char *rate = strstr(line, "Rx-pps:");
        if (rate != NULL) {
            *packets_per_s = strtod(rate + strlen("Rx-pps:"), NULL);
            return true;
        }
        if (strstr(line, "Cause:") != NULL || strstr(line, "rror") != NULL || strstr(line, "ailed") != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(testpmd->cause, sizeof(testpmd->cause), "%s", line + strspn(line, " "));
        }
    }
    return false;
}

int bench_testpmd_run(const struct bench_testpmd_settings *settings, double *packets_per_s, char *error,
                      size_t error_bytes)
{
    struct testpmd receiver = {.process = -1}, sender = {.process = -1};
    double rate = 0, best = 0;
    int status = testpmd_start(settings, true, &receiver);
    /* It prints its first rates once its device is there, which the sender's may need. */
    if (status == CW_OK && rate_next(&receiver, &rate)) {
        status = testpmd_start(settings, false, &sender);
    }
    for (uint32_t seen = 0; status == CW_OK && seen < SAMPLES_WARMUP + SAMPLES && rate_next(&receiver, &rate);) {
        seen += seen > 0 || rate > 0;
        best = seen > SAMPLES_WARMUP && rate > best ? rate : best;
    }
    (void)testpmd_end(&sender);
    int end = testpmd_end(&receiver);
    if (status == CW_OK && best > 0) {
        *packets_per_s = best;
        return CW_OK;
    }
    if (WIFEXITED(end) && WEXITSTATUS(end) == EXIT_NOT_STARTED) {
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "dpdk-testpmd is not installed: the raw figures are held against nothing; as root: "
                             "apt-get install dpdk-dev");
    }
    return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                         "dpdk-testpmd ended early, or received nothing: %s; run it by hand with the same --vdev",
                         receiver.cause[0] != '\0' ? receiver.cause : "it does not say why");
}
