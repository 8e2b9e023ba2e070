#include "apps/plogp/noise.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/plogp/arithmetic.h"

/* Of all processors: a desktop at rest takes a few hundredths, one program that computes half of two. */
#define OTHERS_MAX 0.1

enum { FIELDS = 8 }; /* user, nice, system, idle, iowait, irq, softirq, steal */

struct plogp_machine plogp_machine_look(void)
{
    struct plogp_machine machine = {.total_s = 0};
    struct rusage usage;
    uint64_t ticks[FIELDS];
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");
    int found =
        file == NULL
            ? 0
            : fscanf(file,
                     "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                     &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]);
    for (int i = 0; found == FIELDS && i < FIELDS; i++) {
        machine.total_s += (double)ticks[i] * tick_s;
        machine.busy_s += i == 3 || i == 4 ? 0 : (double)ticks[i] * tick_s;
    }
    if (file != NULL) {
        fclose(file);
    }
    if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
        machine.own_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    }
    return machine;
}

double plogp_machine_others(const struct plogp_machine *before, const struct plogp_machine *after)
{
    double total_s = after->total_s - before->total_s;
    double others_s = after->busy_s - before->busy_s - (after->own_s - before->own_s);
    return before->total_s <= 0 || total_s <= 0 || others_s < 0 ? 0 : others_s / total_s;
}

bool plogp_is_quiet(double noise, double others)
{
    return noise <= PLOGP_NOISE_MAX && others <= OTHERS_MAX;
}

void plogp_noise_report(enum cw_measured_path path, uint32_t ranks, double noise, double others, const char *what_now)
{
    char what[200];
    if (others > OTHERS_MAX) {
        snprintf(what, sizeof(what),
                 "%s, %" PRIu32 " ranks: other programs had %.0f %% of the processors, %.0f %% are bearable",
                 cw_measured_path_name(path), ranks, others * 100, OTHERS_MAX * 100);
    } else {
        snprintf(what, sizeof(what),
                 "%s, %" PRIu32 " ranks: half of the messages of a kind took %.0f times the least or longer, %.0f is "
                 "bearable",
                 cw_measured_path_name(path), ranks, noise, PLOGP_NOISE_MAX);
    }
    app_error("the measurement is noise", what, what_now);
}
