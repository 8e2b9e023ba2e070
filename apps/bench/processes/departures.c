#include "apps/bench/processes/departures.h"

#include <math.h>
#include <stdlib.h>

#include "dataplane/base/clock.h"
#include "dataplane/fabric/link.h"
#include "dataplane/limits.h"
#include "dataplane/statistics.h"
#include "dataplane/status.h"

struct departure {
    uint64_t time_ns;
    uint64_t line_bytes;
};

/* Operations of a port, of which two are ours. */
struct departures {
    struct cw_port_ops ops; /* first */
    const struct cw_port_ops *before;
    struct departure *list;
    uint64_t count;
    uint64_t count_max;
    uint64_t forgotten;
};

static struct departures *departures_of(const struct cw_port *port)
{
    return (struct departures *)(uintptr_t)port->ops;
}

/* ---- the port ---- */

static uint64_t line_bytes(const struct cw_transmit *packet)
{
    uint64_t bytes = packet->length + CW_ETHERNET_OVERHEAD_BYTES;
    for (uint32_t i = 0; i < packet->piece_count; i++) {
        bytes += packet->pieces[i].length;
    }
    return bytes;
}

static uint32_t note_transmit(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    struct departures *departures = departures_of(port);
    uint64_t lengths[CW_PORT_BURST_MAX];
    for (uint32_t i = 0; i < count; i++) {
        lengths[i] = line_bytes(&packets[i]); /* while they are ours */
    }
    uint64_t now_ns = cw_clock_ns();
    uint32_t taken = departures->before->transmit(port, packets, count);
    for (uint32_t i = 0; i < taken; i++) {
        if (departures->count == departures->count_max) {
            departures->forgotten++;
            continue;
        }
        departures->list[departures->count++] = (struct departure){.time_ns = now_ns, .line_bytes = lengths[i]};
    }
    return taken;
}

static void note_close(struct cw_port *port)
{
    struct departures *departures = departures_of(port);
    departures->before->close(port);
    free(departures->list);
    free(departures);
}

int bench_departures_note(struct cw_port *port, uint64_t count_max)
{
    struct departures *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->list = malloc(count_max * sizeof(*made->list))) == NULL) {
        free(made);
        return CW_ERROR_MEMORY;
    }
    made->before = port->ops;
    made->ops = *port->ops;
    made->ops.transmit = note_transmit;
    made->ops.close = note_close;
    made->count_max = count_max;
    port->ops = &made->ops;
    return CW_OK;
}

/* ---- what they say ---- */

void bench_departures_begin(struct cw_port *port)
{
    struct departures *departures = departures_of(port);
    departures->count = 0;
    departures->forgotten = 0;
}

static int gaps_judge(const struct departures *departures, uint64_t rate_bps, struct bench_departures *result)
{
    uint64_t count = departures->count - 1;
    double *deviations = malloc(count * sizeof(*deviations));
    if (deviations == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint64_t i = 0; i < count; i++) {
        const struct departure *one = &departures->list[i];
        double right_ns = (double)one->line_bytes * 8e9 / (double)rate_bps;
        deviations[i] = fabs((double)(one[1].time_ns - one->time_ns) - right_ns);
    }
    result->gap_p50_ns = cw_statistics_median(deviations, count);
    result->gap_p99_ns = cw_statistics_percentile(deviations, count, 0.99);
    result->gap_max_ns = deviations[count - 1];
    free(deviations);
    return CW_OK;
}

int bench_departures_judge(const struct cw_port *port, uint64_t rate_bps, struct bench_departures *result)
{
    const struct departures *departures = departures_of(port);
    *result = (struct bench_departures){.frames = departures->count, .forgotten = departures->forgotten};
    if (departures->count < 2) {
        return CW_OK;
    }
    double bytes = 0, level = 0;
    uint64_t last_ns = departures->list[0].time_ns;
    for (uint64_t i = 0; i < departures->count; i++) {
        const struct departure *one = &departures->list[i];
        double drained = (double)(one->time_ns - last_ns) * (double)rate_bps / 8e9;
        level = level > drained ? level - drained : 0;
        result->burst_bytes =
            level > result->burst_bytes ? level : result->burst_bytes; /* before this frame: what is one too many */
        level += (double)one->line_bytes;
        bytes += i + 1 < departures->count ? (double)one->line_bytes : 0;
        last_ns = one->time_ns;
    }
    result->rate_bps = bytes * 8e9 / (double)(last_ns - departures->list[0].time_ns);
    return gaps_judge(departures, rate_bps, result);
}
