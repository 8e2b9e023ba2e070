/* Statistics of this process for `causeway top` (control/statistics/statistics_page.h). */
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "control/job/private.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

int job_statistics_open(struct cw_job *job, const struct job_report *report)
{
    struct cw_statistics_page_identity identity = {.rank = job->info.rank, .size = job->info.size};
    snprintf(identity.job, sizeof(identity.job), "%.63s", job->info.job);
    (void)gethostname(identity.host, sizeof(identity.host) - 1);
    (void)prctl(PR_GET_NAME, identity.program); /* of this thread, which is the program's first mostly */
    return cw_statistics_page_open(&identity, &job->page, report->text, report->bytes);
}

static bool is_drop(enum cw_counter counter)
{
    return strncasecmp(cw_counter_name(counter), "drop_", 5) == 0;
}

struct look {
    struct cw_statistics_page_figures *figures;
    uint64_t round_trips_ns; /* over this number of sessions: */
    uint64_t measured;
};

/* As owner of one of the endpoints. */
static int endpoint_look(struct cw_endpoint *endpoint, void *context)
{
    struct look *look = context;
    struct cw_statistics_page_figures *figures = look->figures;
    struct cw_peer_info info;
    uint32_t peers = 0;
    figures->bytes_in += cw_endpoint_counter(endpoint, CW_COUNTER_BYTES_IN);
    figures->bytes_out += cw_endpoint_counter(endpoint, CW_COUNTER_BYTES_OUT);
    figures->packets_in += cw_endpoint_counter(endpoint, CW_COUNTER_PACKETS_IN);
    figures->packets_out += cw_endpoint_counter(endpoint, CW_COUNTER_PACKETS_OUT);
    figures->data_packets_out += cw_endpoint_counter(endpoint, CW_COUNTER_DATA_OUT);
    figures->retransmitted += cw_endpoint_counter(endpoint, CW_COUNTER_RETRANSMITTED);
    for (enum cw_counter counter = 0; counter < CW_COUNTER_COUNT; counter++) {
        figures->dropped += is_drop(counter) ? cw_endpoint_counter(endpoint, counter) : 0;
    }
    for (uint32_t peer = 0; cw_peer_query(endpoint, peer, &info) == CW_OK; peer++) {
        if (info.state == CW_PEER_ESTABLISHED) {
            peers++;
            figures->in_flight_bytes += info.in_flight_bytes;
            figures->unsent_bytes += info.unsent_bytes;
            look->round_trips_ns += info.round_trip_ns;
            look->measured += info.round_trip_ns != 0;
        }
    }
    figures->peers = peers > figures->peers ? peers : figures->peers; /* the loops have mostly the same ones */
    return CW_OK;
}

uint64_t cw_job_moved(const struct cw_job *job)
{
    struct cw_paths_counters counters = cw_paths_counters(job->paths);
    uint64_t moved = counters.messages_sent + counters.messages_received + counters.copies_single +
                     counters.copies_streamed + counters.puts_wire + counters.gets_wire;
    if (job->wire.endpoint != NULL) {
        moved += cw_endpoint_counter(job->wire.endpoint, CW_COUNTER_DATA_OUT) +
                 cw_endpoint_counter(job->wire.endpoint, CW_COUNTER_RDMA_WORK) +
                 cw_endpoint_counter(job->wire.endpoint, CW_COUNTER_RDMA_IN);
    }
    for (uint32_t i = 0; i < job->wire.further_count; i++) {
        moved += cw_endpoint_counter(job->wire.further[i].endpoint, CW_COUNTER_DATA_OUT);
    }
    return job->wire.mcast == NULL ? moved : moved + cw_mcast_counters(job->wire.mcast).data_out;
}

void cw_job_show(struct cw_job *job)
{
    struct cw_paths_counters counters = cw_paths_counters(job->paths);
    uint64_t moved = cw_job_moved(job);
    bool is_same = moved == job->page_moved && job->page_figures.time_ns != 0;
    /* an idle process is not disturbed, except for a last look at operations in progress */
    if (!is_same || job->page_is_fresh) {
        struct cw_statistics_page_figures figures = {.messages_sent = counters.messages_sent,
                                                     .messages_received = counters.messages_received};
        struct look look = {.figures = &figures};
        for (uint32_t i = 0; job->wire.loop != NULL && i <= job->wire.further_count; i++) {
            (void)cw_loop_call(cw_wire_set(&job->wire).loops[i], endpoint_look, &look);
        }
        figures.round_trip_ns = look.measured == 0 ? 0 : look.round_trips_ns / look.measured;
        job->page_figures = figures;
        job->page_is_fresh = !is_same;
        job->page_moved = moved;
    }
    job->page_figures.time_ns = cw_clock_ns();
    cw_statistics_page_write(job->page, &job->page_figures);
}
