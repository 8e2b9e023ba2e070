/* Do the hosts of a job reach each other? The first ranks of all hosts check this at the start, so that a firewall, a
 * wrong subnet or a narrow tunnel is reported at once, and no collective hangs because of it. Of each two, the one with
 * the lower number sets up a session, which tests both directions; then it searches the path MTU. */
#include "control/job/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/net/route.h"
#include "dataplane/base/clock.h"
#include "dataplane/loop/loop.h"
#include "dataplane/path/path.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    HOSTS_ALL = 64, /* up to this number, each two of them; of more, those whose distance is a power of two */
    NAMED_MAX = 3,  /* hosts in one line */
    LINE_BYTES = 700,
    STAGGERED = 20, /* hosts */
};

#define BOUND_NS   7000000000ull /* and the diagnosis on top of it: all within 10 s */
#define STAGGER_NS 100000000ull  /* the first of the hosts with the same finding reports it */
#define MTU_NS     2500000000ull /* for the path MTU: as long as the search takes where large packets get lost */
#define NAP_MIN_NS 50000ull      /* asleep on the port, twice as long each time: many hosts may share a core */
#define NAP_MAX_NS 2000000ull

/* This rank's part of the check. */
struct reach {
    uint32_t *ranks; /* the first of each further host that this one asks */
    uint32_t *peers;
    struct cw_peer_info *infos;
    bool *is_missing;
    uint32_t count;
    uint32_t up;    /* have a session */
    uint32_t found; /* ... and their path MTU */
    bool seals;     /* sessions may have to be sealed later, and existing sessions cannot be */
};

static bool is_same_host(const struct cw_path_card *one, const struct cw_path_card *other)
{
    return memcmp(one->host, other->host, sizeof(one->host)) == 0;
}

bool job_is_first(const struct job_card *cards, uint32_t rank)
{
    for (uint32_t other = 0; other < rank; other++) {
        if (is_same_host(&cards[other].path, &cards[rank].path)) {
            return false;
        }
    }
    return true;
}

/* How far each is. */
static int look(struct cw_endpoint *endpoint, void *context)
{
    struct reach *reach = context;
    reach->up = reach->found = 0;
    for (uint32_t i = 0; i < reach->count; i++) {
        struct cw_peer_info *info = &reach->infos[i];
        if (cw_peer_query(endpoint, reach->peers[i], info) == CW_OK && info->state == CW_PEER_ESTABLISHED) {
            (void)cw_peer_measure_mtu(endpoint, reach->peers[i]);
            (void)cw_peer_query(endpoint, reach->peers[i], info);
            reach->up++;
            reach->found += info->path_mtu_found;
        }
    }
    return CW_OK;
}

static int peers_connect(struct cw_endpoint *endpoint, void *context)
{
    const struct reach *reach = context;
    int status = CW_OK;
    for (uint32_t i = 0; i < reach->count && status == CW_OK; i++) {
        if (reach->seals) {
            (void)cw_peer_encrypt(endpoint, reach->peers[i],
                                  true); /* an unsealable session is reported when sealing is required */
        }
        status = cw_peer_connect(endpoint, reach->peers[i]);
    }
    return status;
}

/* Chooses the hosts that this rank checks. Returns the place of its host among all. */
static uint32_t choose(struct reach *reach, const struct cw_job *job, const struct job_card *cards)
{
    uint32_t place = 0, order = 0;
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        if (!job_is_first(cards, rank)) {
            continue;
        }
        if (rank <= job->info.rank) {
            order = place++;
            continue;
        }
        uint32_t distance = place++ - order;
        bool is_near = distance < HOSTS_ALL || (distance & (distance - 1)) == 0;
        uint32_t peer;
        if (is_near && cw_paths_wire_peer(job->paths, rank, &peer) == CW_OK) {
            reach->ranks[reach->count] = rank;
            reach->peers[reach->count++] = peer;
        }
    }
    return order;
}

/* ---- reports ---- */

/* The names of hosts that are missing, some of them; returns the first of these; UINT32_MAX: none is. */
static uint32_t missing_name(const struct reach *reach, const struct cw_job *job, char line[LINE_BYTES])
{
    uint32_t first = UINT32_MAX, missing = 0;
    int length = 0;
    for (uint32_t i = 0; i < reach->count; i++) {
        if (!reach->is_missing[i]) {
            continue;
        }
        first = first == UINT32_MAX ? i : first;
        if (missing++ < NAMED_MAX) {
            length += snprintf(line + length, LINE_BYTES - (size_t)length, "%s%.64s", missing > 1 ? ", " : "",
                               job->hosts[reach->ranks[i]]);
        }
    }
    if (missing > NAMED_MAX) {
        snprintf(line + length, LINE_BYTES - (size_t)length, " and %" PRIu32 " more", missing - NAMED_MAX);
    }
    return first;
}

/* By a NIC of which the kernel knows nothing, the rank's own or the node's. */
static bool is_past_kernel(const struct cw_job *job)
{
    return job->transport == CW_NET_TRANSPORT_DEVICE ||
           (job->transport == CW_NET_TRANSPORT_NODE && !job->wire.port->info.reports);
}

/* Reports hosts that do not answer, with the network's answer for the first of them. */
static int unreached_report(const struct reach *reach, const struct cw_job *job, char *error, size_t error_bytes)
{
    char line[LINE_BYTES], reason[LINE_BYTES / 2];
    for (uint32_t i = 0; i < reach->count; i++) {
        reach->is_missing[i] = reach->infos[i].state != CW_PEER_ESTABLISHED;
    }
    uint32_t first = missing_name(reach, job, line);
    const struct cw_address *to = &reach->infos[first].address;
    char ip[CW_IP_TEXT_BYTES];
    cw_ip_write(&to->ip, ip);
    if (is_past_kernel(job)) {
        snprintf(reason, sizeof(reason),
                 "are both devices on one network (cable, VLAN), and does a filter of the switch "
                 "or cloud let UDP through?");
    } else {
        cw_route_diagnose(&to->ip, to->udp_port, reason, sizeof(reason));
    }
    return cw_error_text(error, error_bytes, CW_ERROR_TIMEOUT,
                         "host %s (rank %" PRIu32 ") does not reach %s: %s, UDP port %u, has not answered for "
                         "%u s; %s",
                         job->hosts[job->info.rank], job->info.rank, line, ip, to->udp_port,
                         (unsigned)(BOUND_NS / 1000000000), reason);
}

/* Reports hosts to which no frame can be written, because their next hop is unknown. CW_OK: there are none. */
static int hopless_report(const struct reach *reach, const struct cw_job *job, const struct job_card *cards,
                          uint32_t order, char *error, size_t error_bytes)
{
    char line[LINE_BYTES], interface[CW_JOB_INTERFACE_BYTES];
    for (uint32_t i = 0; i < reach->count; i++) {
        reach->is_missing[i] = job_hop_missing(job, &cards[reach->ranks[i]].path) != NULL;
    }
    uint32_t first = missing_name(reach, job, line);
    if (first == UINT32_MAX) {
        return CW_OK;
    }
    (void)nanosleep(&(struct timespec){.tv_sec = order / 10, .tv_nsec = (long)(order % 10 * STAGGER_NS)}, NULL);
    const struct cw_hop *hop = job_hop_missing(job, &cards[reach->ranks[first]].path);
    char own_text[CW_IP_TEXT_BYTES], to_text[CW_IP_TEXT_BYTES], next_text[CW_IP_TEXT_BYTES];
    cw_ip_write(&job->wire.address.ip, own_text);
    cw_ip_write(&hop->ip, to_text);
    cw_ip_write(&hop->next, next_text);
    if (job->transport == CW_NET_TRANSPORT_NODE) {
        snprintf(interface, sizeof(interface), "its NIC");
    } else if (job->transport == CW_NET_TRANSPORT_DEVICE) {
        snprintf(interface, sizeof(interface), "%.31s", job->device.name);
    } else {
        cw_net_interface(&job->wire.address.ip, interface, sizeof(interface));
    }
    return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                         "host %s (rank %" PRIu32 ") does not reach %s: %s, by %s on %s from %s, next hop %s: %s",
                         job->hosts[job->info.rank], job->info.rank, line, to_text,
                         cw_net_transport_name(job->transport), interface, own_text, next_text, hop->reason);
}

/* Paths that pass no packets as large as the ports take. Where no probe has been answered yet, by hosts with much to
 * do, the path is not narrow for that. */
static void narrow_note(const struct reach *reach, struct cw_job *job, uint32_t mtu_bytes)
{
    for (uint32_t i = 0; i < reach->count; i++) {
        const struct cw_peer_info *info = &reach->infos[i];
        bool is_known = info->path_mtu_found || info->path_mtu_bytes > CW_PATH_MTU_BASE;
        if (is_known && info->path_mtu_bytes < mtu_bytes && job->narrow[0] == '\0') {
            snprintf(
                job->narrow, sizeof(job->narrow),
                "packets to %.64s arrive up to %" PRIu32 " bytes, and not up to %" PRIu32
                " as the interfaces take them: smaller ones are sent; is the MTU of a link, switch or tunnel on the "
                "way less?",
                job->hosts[reach->ranks[i]], info->path_mtu_bytes, mtu_bytes);
        }
    }
}

/* That all paths of this rank are known to pass, or are taken to. */
static uint32_t least_mtu(const struct reach *reach, uint32_t mtu_bytes)
{
    for (uint32_t i = 0; i < reach->count; i++) {
        const struct cw_peer_info *info = &reach->infos[i];
        mtu_bytes = info->path_mtu_bytes < mtu_bytes ? info->path_mtu_bytes : mtu_bytes;
    }
    return mtu_bytes;
}

static void reach_free(const struct reach *reach)
{
    free(reach->ranks);
    free(reach->peers);
    free(reach->infos);
    free(reach->is_missing);
}

int job_reach(struct cw_job *job, const struct job_card *cards, uint64_t bound_ns, char *error, size_t error_bytes)
{
    struct reach reach = {0};
    if (!job_is_first(cards, job->info.rank) || bound_ns == 0) {
        return CW_OK;
    }
    reach.ranks = calloc(job->info.size, sizeof(*reach.ranks));
    reach.peers = calloc(job->info.size, sizeof(*reach.peers));
    reach.infos = calloc(job->info.size, sizeof(*reach.infos));
    reach.is_missing = calloc(job->info.size, sizeof(*reach.is_missing));
    if (reach.ranks == NULL || reach.peers == NULL || reach.infos == NULL || reach.is_missing == NULL) {
        reach_free(&reach);
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the job");
    }
    uint32_t order = choose(&reach, job, cards);
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        reach.seals = reach.seals || cards[rank].may_seal;
    }
    int status = hopless_report(&reach, job, cards, order < STAGGERED ? order : STAGGERED, error, error_bytes);
    status = status == CW_OK ? cw_loop_call(job->wire.loop, peers_connect, &reach) : status;
    uint64_t begin_ns = cw_clock_ns();
    uint64_t most_ns =
        (bound_ns < BOUND_NS ? bound_ns : BOUND_NS) + (order < STAGGERED ? order : STAGGERED) * STAGGER_NS;
    uint64_t up_ns = 0; /* since all have answered */
    uint64_t nap_ns = NAP_MIN_NS;
    while (status == CW_OK && reach.found < reach.count && cw_clock_ns() - begin_ns < most_ns &&
           (up_ns == 0 || cw_clock_ns() - up_ns < MTU_NS)) {
        (void)cw_loop_wait(job->wire.loop, NULL, 0, nap_ns);
        nap_ns = nap_ns < NAP_MAX_NS ? 2 * nap_ns : nap_ns;
        (void)cw_loop_call(job->wire.loop, look, &reach);
        up_ns = reach.up < reach.count ? 0 : up_ns != 0 ? up_ns : cw_clock_ns();
    }
    if (status == CW_OK && reach.up < reach.count) {
        status = unreached_report(&reach, job, error, error_bytes);
    } else if (status == CW_OK) {
        narrow_note(&reach, job, job->wire.port->info.mtu_bytes);
        job->path_mtu_bytes = least_mtu(&reach, job->wire.port->info.mtu_bytes);
    }
    reach_free(&reach);
    return status;
}
