/* A rank of the job that `causeway doctor --transport` starts, one on each host. Rank 0 prints a line "transport TEXT",
 * then for each other rank "host NAME ADDRESS ROUND_TRIP_NS MTU", or "here NAME" on the same host. */
#include "apps/doctor/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "control/job/job.h"
#include "dataplane/base/clock.h"
#include "dataplane/loop/loop.h"
#include "dataplane/statistics.h"

enum { PROBES = 101 };
#define PATIENCE_NS 200000000ull /* for one answer */

struct probing {
    uint32_t peer;
    bool asks;
    struct cw_peer_info info;
};

static void nothing_arrived(void *context, uint32_t rank, uint32_t lane_tag)
{
    (void)context, (void)rank, (void)lane_tag;
}

static void nothing_complete(void *context, uint64_t operation, int status)
{
    (void)context, (void)operation, (void)status;
}

static void nobody_down(void *context, uint32_t rank, int status)
{
    (void)context, (void)rank, (void)status; /* the launcher ends the job */
}

static int look(struct cw_endpoint *endpoint, void *context)
{
    struct probing *probing = context;
    int status = probing->asks ? cw_peer_probe(endpoint, probing->peer) : CW_OK;
    probing->asks = false;
    return status == CW_OK ? cw_peer_query(endpoint, probing->peer, &probing->info) : status;
}

/* The median round trip of small packets in ns; 0: no answer. */
static double round_trip(struct cw_job *job, struct probing *probing)
{
    struct cw_loop *loop = cw_paths_loop(cw_job_paths(job));
    double trips[PROBES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < PROBES; i++) {
        uint64_t begin_ns = cw_clock_ns(), now_ns = begin_ns;
        probing->asks = true;
        int status = cw_loop_call(loop, look, probing);
        while (status == CW_OK && probing->info.heard_ns < begin_ns && now_ns - begin_ns < PATIENCE_NS) {
            (void)cw_paths_poll(cw_job_paths(job));
            now_ns = cw_clock_ns();
            status = cw_loop_call(loop, look, probing);
        }
        if (status == CW_OK && probing->info.heard_ns >= begin_ns) {
            trips[count++] = (double)(probing->info.heard_ns - begin_ns);
        }
    }
    return count == 0 ? 0 : cw_statistics_median(trips, count);
}

static void hosts_print(struct cw_job *job)
{
    struct cw_paths *paths = cw_job_paths(job);
    printf("transport %s\n", cw_job_transport(job));
    for (uint32_t rank = 1; rank < cw_job_info(job).size; rank++) {
        struct probing probing = {.asks = false};
        char ip[CW_IP_TEXT_BYTES];
        if (cw_paths_is_here(paths, rank)) {
            printf("here %s\n", cw_job_host(job, rank));
        } else if (cw_paths_wire_peer(paths, rank, &probing.peer) == CW_OK) {
            double trip_ns = round_trip(job, &probing);
            cw_ip_write(&probing.info.address.ip, ip);
            printf("host %s %s %.0f %" PRIu32 " %s\n", cw_job_host(job, rank), ip, trip_ns, probing.info.path_mtu_bytes,
                   cw_cover_text(probing.info.cover));
        }
    }
}

int doctor_rank(void)
{
    const struct cw_job_handler handler = {
        .path = {.arrived = nothing_arrived, .complete = nothing_complete, .down = nobody_down},
    };
    static const uint8_t note[CW_JOB_NOTE_BYTES];
    struct cw_job *job;
    char error[512];
    if (cw_job_open(&handler, note, &job, error, sizeof(error)) != CW_OK) {
        fprintf(stderr, "%s\n", error);
        return APP_EXIT_FAILURE;
    }
    if (cw_job_info(job).size == 1) {
        cw_job_close(job);
        app_error("this process is not a rank of a job", "--rank", "`causeway doctor --transport HOST...` starts one");
        return APP_EXIT_USAGE;
    }
    if (cw_job_info(job).rank == 0) {
        hosts_print(job);
    }
    int status = cw_job_fence(job);
    cw_job_close(job);
    return status == CW_OK ? APP_EXIT_SUCCESS : APP_EXIT_FAILURE;
}
