#include "apps/plogp/arithmetic.h"

#include <math.h>
#include <stdlib.h>

double plogp_noise(double *times_ns, size_t count)
{
    double median_ns = cw_statistics_median(times_ns, count);
    return count == 0 ? 1 : median_ns / fmax(times_ns[0], 1);
}

void plogp_solve(const struct plogp_sample *samples, uint32_t count, double stream_gap_ns, struct cw_plogp *plogp)
{
    double empty_ns = samples[0].trip_ns;
    double gap0_ns =
        fmin(fmax(stream_gap_ns, 1), empty_ns / 2); /* a stream cannot be slower than questions and answers */
    struct cw_plogp_point before = {0};
    plogp->latency_ns = empty_ns / 2 - gap0_ns;
    plogp->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct cw_plogp_point *point = &plogp->points[i];
        point->bytes = samples[i].bytes;
        point->gap_ns = fmax(samples[i].trip_ns - empty_ns + gap0_ns, fmax(before.gap_ns, gap0_ns));
        point->send_ns = fmin(fmax(samples[i].send_ns, before.send_ns), point->gap_ns);
        point->receive_ns = fmin(fmax(samples[i].receive_ns, before.receive_ns), point->gap_ns);
        before = *point;
    }
}

uint64_t plogp_next_size(const struct plogp_sample *samples, uint32_t count)
{
    double worst = 0.1;
    uint64_t size = 0;
    for (uint32_t i = 1; i + 1 < count; i++) {
        const struct plogp_sample *low = &samples[i - 1], *middle = &samples[i], *high = &samples[i + 1];
        double share = (double)(middle->bytes - low->bytes) / (double)(high->bytes - low->bytes);
        double line_ns = low->trip_ns + share * (high->trip_ns - low->trip_ns);
        double miss = fabs(line_ns - middle->trip_ns) / middle->trip_ns;
        bool left = middle->bytes > 2 * low->bytes + 64;
        bool right = high->bytes > 2 * middle->bytes + 64;
        if (miss > worst && (left || right)) {
            const struct plogp_sample *begin = right ? middle : low;
            const struct plogp_sample *end = right ? high : middle;
            worst = miss;
            size = (uint64_t)sqrt((double)(begin->bytes + 1) * (double)end->bytes);
        }
    }
    return size;
}

double plogp_contention(const struct cw_plogp *plogp, uint32_t ranks, uint64_t bytes, double time_ns)
{
    double others = (double)ranks - 1;
    double receive_ns = others * cw_plogp_receive(plogp, bytes) + plogp->latency_ns;
    double lower_ns = others * cw_plogp_send(plogp, bytes) + receive_ns;
    double upper_ns = others * cw_plogp_gap(plogp, bytes) + receive_ns;
    return upper_ns > lower_ns ? fmin(fmax((time_ns - lower_ns) / (upper_ns - lower_ns), 0), 1) : 1;
}

uint32_t plogp_ports(const struct cw_measured_concurrent *tests, uint32_t count)
{
    uint32_t ports = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t sizes = 0, quick = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (tests[k].puts == tests[i].puts) {
                sizes++;
                quick += tests[k].all_ns < 1.5 * tests[k].one_ns;
            }
        }
        if (tests[i].puts > ports && 2 * quick > sizes) {
            ports = tests[i].puts;
        }
    }
    return ports < CW_NETWORK_PORTS_MAX ? ports : CW_NETWORK_PORTS_MAX;
}
