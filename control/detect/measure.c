#include "control/detect/measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/job/wire.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum { SAMPLES_NEAR = 3, SAMPLES_FAR = 12, KEY_BYTES = 48 };

#define NEAR_NS   (CW_DETECT_FAR_NS / 2) /* a LAN's beyond doubt */
#define FAR_NS    UINT64_C(5000000)      /* no LAN's, however busy its hosts are */
#define LEAST_NS  UINT64_C(200000000)    /* what is far is measured for so long */
#define MOST_NS   UINT64_C(500000000)    /* ... and no longer, if something has come */
#define DOUBT_NS  UINT64_C(1000000000)   /* what lies between: until a busy host has answered at once, perhaps */
#define RESEND_NS UINT64_C(250000000)    /* a probe may be lost; on top of the round trip */
#define LOOK_NS   UINT64_C(200000)       /* answers are no events: they are looked for */

/* ---- one round trip ---- */

struct measurement {
    struct cw_paths *paths;
    uint32_t rank;
    uint32_t peer;
    uint32_t number; /* of the session to measure by */
    struct cw_peer_info info;
    uint64_t probe_ns; /* when the last probe was sent */
    uint32_t samples;
};

static int session_open(struct cw_endpoint *endpoint, void *context)
{
    struct measurement *of = context;
    int status = cw_peer_stream(endpoint, of->peer, CW_WIRE_STREAM_MEASURE, &of->number);
    return status == CW_OK ? cw_peer_connect(endpoint, of->number) : status;
}

/* Takes what has come, and probes again when the last one was answered, or lost. */
static int session_look(struct cw_endpoint *endpoint, void *context)
{
    struct measurement *of = context;
    uint64_t now_ns = cw_clock_ns();
    int status = cw_peer_query(endpoint, of->number, &of->info);
    if (status != CW_OK || of->info.state != CW_PEER_ESTABLISHED) {
        return status;
    }
    bool is_answered = of->probe_ns > 0 && of->info.heard_ns >= of->probe_ns && of->info.round_trip_min_ns > 0;
    of->samples += is_answered;
    if (is_answered || now_ns - of->probe_ns > RESEND_NS + 2 * of->info.round_trip_ns) {
        of->probe_ns = cw_peer_probe(endpoint, of->number) == CW_OK ? now_ns : of->probe_ns;
    }
    return CW_OK;
}

static bool is_enough(const struct measurement *of, uint64_t elapsed_ns)
{
    if (of->info.round_trip_min_ns < NEAR_NS) {
        return of->samples >= SAMPLES_NEAR;
    }
    if (of->info.round_trip_min_ns < FAR_NS) {
        return of->samples > 0 && elapsed_ns >= DOUBT_NS;
    }
    return of->samples > 0 && ((of->samples >= SAMPLES_FAR && elapsed_ns >= LEAST_NS) || elapsed_ns >= MOST_NS);
}

/* 0: it does not answer. */
static uint64_t round_trip_measure(struct cw_job *job, uint32_t rank)
{
    struct measurement of = {.paths = cw_job_paths(job), .rank = rank};
    struct cw_loop *loop = cw_paths_loop(of.paths);
    uint64_t since_ns = 0;
    if (loop == NULL || cw_paths_wire_peer(of.paths, rank, &of.peer) != CW_OK ||
        cw_loop_call(loop, session_open, &of) != CW_OK) {
        return 0;
    }
    for (;;) {
        if (cw_paths_poll(cw_job_paths(job)) == 0) {
            cw_paths_wait(of.paths, LOOK_NS, NULL, NULL);
        }
        if (cw_loop_call(loop, session_look, &of) != CW_OK || of.info.state == CW_PEER_FAILED ||
            of.info.state == CW_PEER_CLOSED) {
            return 0;
        }
        if (of.info.state == CW_PEER_ESTABLISHED) {
            uint64_t now_ns = cw_clock_ns();
            since_ns = since_ns == 0 ? now_ns : since_ns;
            if (is_enough(&of, now_ns - since_ns)) {
                return of.info.round_trip_min_ns;
            }
        }
    }
}

/* ---- hosts ---- */

struct hosts {
    const struct cw_detect_job *of;
    struct cw_detect *detect; /* of rank 0 */
    uint32_t rank;
    uint32_t ranks;
    uint32_t count;
    uint32_t *first; /* rank of each host */
    char *why;
    char *error;
    size_t error_bytes;
};

static int hosts_list(struct hosts *hosts)
{
    const struct cw_paths *paths = cw_job_paths(hosts->of->job);
    hosts->first = calloc(hosts->ranks, sizeof(*hosts->first));
    if (hosts->first == NULL) {
        return cw_error_text(hosts->error, hosts->error_bytes, CW_ERROR_MEMORY, "no memory for the hosts of the job");
    }
    for (uint32_t rank = 0; rank < hosts->ranks; rank++) {
        uint32_t host = 0;
        while (host < hosts->count &&
               memcmp(cw_paths_host(paths, hosts->first[host]), cw_paths_host(paths, rank), 16)) {
            host++;
        }
        if (host == hosts->count) {
            hosts->first[hosts->count++] = rank;
        }
    }
    return CW_OK;
}

static const char *host_name(void *context, uint32_t host)
{
    const struct hosts *hosts = context;
    return hosts->of->host_name(hosts->of->context, hosts->first[host]);
}

/* ---- what ranks tell each other ---- */

static int table_failed(const struct hosts *hosts, int status)
{
    return cw_error_text(hosts->error, hosts->error_bytes, status, "round trips cannot be exchanged: %s",
                         cw_status_text(status));
}

/* Puts the number of this round, of `rank`, or of all if that is `hosts->ranks`. */
static int number_tell(const struct hosts *hosts, uint32_t round, uint32_t rank, uint64_t number)
{
    char key[KEY_BYTES], text[24];
    snprintf(key, sizeof(key), "detect-%" PRIu32 "-%" PRIu32, round, rank);
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return cw_job_tell(hosts->of->job, key, text);
}

static int number_learn(const struct hosts *hosts, uint32_t round, uint32_t rank, uint64_t *number)
{
    char key[KEY_BYTES];
    char *text;
    snprintf(key, sizeof(key), "detect-%" PRIu32 "-%" PRIu32, round, rank);
    int status = cw_job_learn(hosts->of->job, key, &text);
    if (status == CW_OK) {
        *number = strtoull(text, NULL, 10);
        free(text);
    }
    return status;
}

/* ---- rounds ---- */

/* Rank 0 takes what all have measured. */
static int round_take(struct hosts *hosts, uint32_t round, uint32_t leader)
{
    for (uint32_t host = 0; host < hosts->count; host++) {
        uint64_t trip_ns = 0;
        int status = host == leader ? CW_OK : number_learn(hosts, round, hosts->first[host], &trip_ns);
        if (status != CW_OK) {
            return table_failed(hosts, status);
        }
        if (host != leader && trip_ns == 0) {
            return cw_error_text(hosts->error, hosts->error_bytes, CW_ERROR_PEER_FAILED,
                                 "rank %" PRIu32 " cannot reach rank %" PRIu32
                                 " to measure the round trip: the way between their hosts is down, or does not let "
                                 "packets pass",
                                 hosts->first[host], hosts->first[leader]);
        }
        if (host != leader) {
            cw_detect_take(hosts->detect, host, trip_ns);
        }
    }
    return CW_OK;
}

/* One round. *leader: CW_DETECT_NONE when there are no more. */
static int round_run(struct hosts *hosts, uint32_t round, uint32_t *leader)
{
    uint64_t number = hosts->rank == 0 ? cw_detect_leader(hosts->detect) : 0;
    int status = hosts->rank == 0 ? number_tell(hosts, round, hosts->ranks, number) : CW_OK;
    status = status == CW_OK ? cw_job_fence(hosts->of->job) : status;
    status = status == CW_OK ? number_learn(hosts, round, hosts->ranks, &number) : status;
    if (status != CW_OK || number == CW_DETECT_NONE) {
        *leader = CW_DETECT_NONE;
        return status == CW_OK ? CW_OK : table_failed(hosts, status);
    }
    *leader = (uint32_t)number < hosts->count ? (uint32_t)number : 0;
    for (uint32_t host = 0; host < hosts->count && status == CW_OK; host++) {
        if (hosts->first[host] == hosts->rank && host != *leader) {
            status = number_tell(hosts, round, hosts->rank, round_trip_measure(hosts->of->job, hosts->first[*leader]));
        }
    }
    status = status == CW_OK ? cw_job_fence(hosts->of->job) : status;
    if (status != CW_OK) {
        return table_failed(hosts, status);
    }
    return hosts->rank == 0 ? round_take(hosts, round, *leader) : CW_OK;
}

/* ---- the whole ---- */

static int result_make(struct hosts *hosts, char **text)
{
    cw_detect_why(hosts->detect, hosts->why, CW_DETECT_WHY_BYTES);
    if (cw_detect_count(hosts->detect) == 1) {
        *text = strdup("");
        return *text == NULL ? CW_ERROR_MEMORY : CW_OK;
    }
    return cw_detect_encode(hosts->detect, host_name, hosts, text, hosts->error, hosts->error_bytes);
}

/* What rank 0 has found all have. */
static int result_bcast(const struct hosts *hosts, char **text)
{
    static const char text_key[] = "detect-text", why_key[] = "detect-why";
    struct cw_job *job = hosts->of->job;
    char *why = NULL;
    int status = hosts->rank == 0 ? cw_job_tell(job, text_key, *text) : CW_OK;
    status = hosts->rank == 0 && status == CW_OK ? cw_job_tell(job, why_key, hosts->why) : status;
    status = status == CW_OK ? cw_job_fence(job) : status;
    if (hosts->rank != 0 && status == CW_OK) {
        status = cw_job_learn(job, why_key, &why);
        status = status == CW_OK ? cw_job_learn(job, text_key, text) : status;
        snprintf(hosts->why, CW_DETECT_WHY_BYTES, "%s", why == NULL ? "" : why);
        free(why);
    }
    return status == CW_OK ? CW_OK : table_failed(hosts, status);
}

int cw_detect_job(const struct cw_detect_job *of, char **text, char *why, char *error, size_t error_bytes)
{
    const struct cw_bootstrap_info info = cw_job_info(of->job);
    struct hosts hosts = {
        .of = of, .rank = info.rank, .ranks = info.size, .why = why, .error = error, .error_bytes = error_bytes};
    char *made = NULL;
    uint32_t leader = 0;
    int status = hosts_list(&hosts);
    if (status == CW_OK && hosts.rank == 0 && cw_detect_create(hosts.count, &hosts.detect) != CW_OK) {
        status = cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for round trips");
    }
    for (uint32_t round = 0; status == CW_OK && leader != CW_DETECT_NONE; round++) {
        status = round_run(&hosts, round, &leader);
    }
    status = status == CW_OK && hosts.rank == 0 ? result_make(&hosts, &made) : status;
    status = status == CW_OK ? result_bcast(&hosts, &made) : status;
    cw_detect_destroy(hosts.detect);
    free(hosts.first);
    if (status != CW_OK) {
        free(made);
        return status;
    }
    *text = made;
    return CW_OK;
}
