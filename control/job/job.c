#include "control/job/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <sodium.h>

#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/base/process.h"
#include "dataplane/base/virtual.h"
#include "dataplane/port/port.h"
#include "dataplane/rdma/rdma.h"
#include "dataplane/status.h"

/* ---- what comes ---- */

static void control_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    const struct cw_job *job = context;
    (void)lane_tag;
    if (job->groups != NULL) {
        cw_groups_receive(job->groups, rank, data, bytes);
    }
}

static void down_receive(void *context, uint32_t rank)
{
    const struct cw_job *job = context;
    if (job->groups != NULL && rank != job->info.rank) { /* groups need no inbox to reach their own rank */
        cw_groups_down(job->groups, rank);
    }
}

static uint32_t groups_poll(void *context)
{
    struct cw_job *job = context;
    uint32_t count = cw_groups_poll(job->groups);
    job->watcher.is_due = cw_groups_is_busy(job->groups);
    return count;
}

/* ---- groups ---- */

static int control_send(void *context, uint32_t rank, const void *data, uint32_t bytes)
{
    struct cw_job *job = context;
    return cw_paths_send(job->paths, rank, cw_lane_tag(1, CW_JOB_TAG), data, bytes, NULL, 0, CW_ELEMENT_BYTES);
}

static int control_peer(void *context, uint32_t rank, uint32_t *peer)
{
    struct cw_job *job = context;
    return cw_paths_wire_peer(job->paths, rank, peer);
}

static void control_probe(void *context, uint32_t rank)
{
    struct cw_job *job = context;
    cw_paths_probe(job->paths, rank);
}

struct owner_call {
    int (*function)(void *argument);
    void *argument;
};

static int owner_run(struct cw_endpoint *endpoint, void *context)
{
    const struct owner_call *call = context;
    (void)endpoint;
    return call->function(call->argument);
}

static int control_run(void *context, int (*function)(void *argument), void *argument)
{
    struct cw_job *job = context;
    struct owner_call call = {.function = function, .argument = argument};
    return cw_loop_call(job->wire.loop, owner_run, &call);
}

static bool device_has_groups(void *context)
{
    const struct cw_job *job = context;
    return cw_rdma_has_groups(job->wire.endpoint);
}

static int groups_open(struct cw_job *job, const struct job_report *report)
{
    if (job->wire.mcast == NULL || !cw_paths_all_multicast(job->paths)) {
        return CW_OK;
    }
    const struct cw_groups_config config = {
        .rank = job->info.rank,
        .address_base = job->wire.multicast_base,
        .filter_budget = job->wire.filter_budget,
        .seed = job->wire.seed,
        .mcast = job->wire.mcast,
        .links =
            {
                .context = job,
                .send = control_send,
                .peer = control_peer,
                .probe = control_probe,
                .has_device = device_has_groups,
                .run = control_run,
                .is_due = &job->watcher.is_due,
            },
    };
    int status = cw_groups_create(&config, &job->groups);
    return status == CW_OK ? CW_OK : FAIL(report, status, "no memory for multicast groups");
}

uint64_t cw_job_failure_timeout(const struct cw_job *job)
{
    return job->wire.failure_timeout_ns;
}

bool cw_job_node_is_away(const struct cw_job *job)
{
    return job->wire.lease != NULL && !cw_port_link_up(job->wire.port);
}

/* ---- open, close ---- */

/* Whether a debugger holds a rank, as far as this machine's /proc tells: others may be silent since they wait for it.
 * */
static bool is_excused(void *context, uint32_t peer)
{
    struct cw_job *job = context;
    (void)peer;
    for (uint32_t rank = 0; job->paths != NULL && rank < job->info.size; rank++) {
        bool may_be_seen =
            job->machines[rank] == job->machines[job->info.rank] &&
            cw_paths_transport(job->paths, rank) == CW_PATH_TRANSPORT_PACKETS; /* a rank of an emulated host */
        int process = may_be_seen ? cw_paths_process(job->paths, rank) : 0;
        if (process == 0 || !cw_process_is_traced(process)) {
            continue;
        }
        if (!job->has_told_traced) {
            job->has_told_traced = true;
            fprintf(stderr, "causeway: rank %u: a debugger holds rank %u (process %d): it is waited for\n",
                    job->info.rank, rank, process);
        }
        return true;
    }
    return false;
}

/* The endpoint of the wire, for the paths. */
static int wire_open(struct cw_job *job, struct cw_wire_request *request, struct cw_paths_config *config,
                     const struct job_report *report)
{
    request->rank = job->info.rank;
    request->size = job->info.size;
    request->bound_ns = config->stopped_timeout_ns;
    request->is_excused = is_excused;
    request->excuse_context = job;
    request->multicast = &job->handler.multicast;
    request->key = job->has_key ? job->key : NULL;
    request->dedicated = &job->dedicated;
    request->job = job->info.job;
    int status = cw_wire_open(request, &job->wire, report->text, report->bytes);
    if (status == CW_OK) {
        config->set = cw_wire_set(&job->wire);
        config->address = cw_endpoint_address(job->wire.endpoint);
        config->message_bytes_max = job->wire.message_bytes_max;
        config->messages_registered = job->wire.messages_registered;
        config->multicasts = job->wire.mcast != NULL;
    }
    return status;
}

static int config_make(struct cw_job *job, struct cw_paths_config *config, const struct job_report *report)
{
    const char *copy = cw_setting(CW_SETTING_COPY), *origin;
    *config = (struct cw_paths_config){
        .rank = job->info.rank,
        .rank_count = job->info.size,
        .copy_twice = copy != NULL && strcmp(copy, "twice") == 0,
        .ancestor = cw_setting(CW_SETTING_WORKER),
        .handler = job->handler.path,
        .watcher = &job->watcher,
    };
    job->watcher = (struct cw_path_watcher){.context = job, .down = down_receive, .poll = groups_poll};
    config->handler.listeners[CW_JOB_TAG] = (struct cw_path_listener){.context = job, .message = control_receive};
    if (copy != NULL && copy[0] != 0 && !config->copy_twice) {
        return FAIL(report, CW_ERROR_ARGUMENT, "CAUSEWAY_COPY is '%.40s': the only word it knows is 'twice'; unset it",
                    copy);
    }
    if (!cw_settings_failure_timeout(&config->stopped_timeout_ns, &origin)) {
        return FAIL(report, CW_ERROR_ARGUMENT,
                    "CAUSEWAY_FAILURE_TIMEOUT is '%.40s': seconds are wanted, 1 or more, or 0 for never",
                    cw_setting(CW_SETTING_FAILURE_TIMEOUT));
    }
    if (getrandom(&config->nonce, sizeof(config->nonce), 0) != sizeof(config->nonce)) {
        return FAIL(report, CW_ERROR_SYSTEM, "the kernel gives no random numbers: %s", strerror(errno));
    }
    return CW_OK;
}

/* *offer: the addresses of this host; none if hosts are emulated: then the wire is open when this returns. */
static int paths_open(struct cw_job *job, struct cw_paths_config *config, struct cw_net_offer *offer,
                      const struct job_report *report)
{
    int emulated = -1, has_key = 0;
    int status = config_make(job, config, report);
    memset(offer, 0, sizeof(*offer));
    if (status == CW_OK) {
        job->cores[job->info.rank] = cw_process_cores();
        status = job_host_identify(&job->info, config->host, &job->machines[job->info.rank], &emulated, report);
    }
    if (status == CW_OK) { /* needed or not: no child is to have it */
        status = cw_job_key_read(job->key, &has_key, report->text, report->bytes);
        job->has_key = has_key != 0;
    }
    bool is_simulated = cw_wire_is_simulated();
    if (status == CW_OK && emulated >= 0 && !is_simulated) {
        status = job_dedicate(job, true, report);
    }
    if (status == CW_OK && emulated >= 0) {
        struct cw_wire_request request = {.own = NULL, .may_seal = !is_simulated || cw_wire_may_seal()};
        status = wire_open(job, &request, config, report);
        job->all_have_rdma = job->wire.has_rdma; /* simulated hosts: all, or none */
    } else if (status == CW_OK && job->info.size > 1) {
        const char *node;
        status = job_nic_is_named()         ? job_nic_offer(job, offer, report)
                 : job_node_is_named(&node) ? job_node_offer(offer, report)
                                            : cw_net_offer_make(offer, report->text, report->bytes);
        status = status == CW_OK ? cw_wire_rdma_may(offer, &job->may_have_rdma, report->text, report->bytes) : status;
    }
    return status == CW_OK ? cw_paths_create(config, &job->paths, report->text, report->bytes) : status;
}

/* ---- where ranks of other hosts are ---- */

/* A job that no launcher of ours has started has no key yet: rank 0 makes one, and the launcher's table brings it. */
static int key_put(struct cw_job *job, const struct job_report *report)
{
    char text[2 * CW_JOB_KEY_BYTES + 1];
    if (job->has_key || job->info.rank != 0 || job->info.size == 1) {
        return CW_OK;
    }
    int status = cw_job_key_make(job->key, report->text, report->bytes);
    if (status != CW_OK) {
        return status;
    }
    job->has_key = true;
    sodium_bin2hex(text, sizeof(text), job->key, sizeof(job->key));
    status = cw_bootstrap_put(job->bootstrap, "key-0", text);
    sodium_memzero(text, sizeof(text));
    return status == CW_OK
               ? CW_OK
               : FAIL(report, status, "cannot hand over the key of the job: %s", cw_bootstrap_failure(job->bootstrap));
}

static int key_get(struct cw_job *job, const struct job_report *report)
{
    char text[CW_BOOTSTRAP_VALUE_MAX + 1] = "";
    size_t count = 0;
    if (job->has_key) {
        return CW_OK;
    }
    int status = cw_bootstrap_get(job->bootstrap, "key-0", text, sizeof(text));
    job->has_key = status == CW_OK &&
                   sodium_hex2bin(job->key, sizeof(job->key), text, strlen(text), NULL, &count, NULL) == 0 &&
                   count == sizeof(job->key);
    sodium_memzero(text, sizeof(text));
    return job->has_key ? CW_OK
                        : FAIL(report, CW_ERROR_NOT_FOUND,
                               "rank 0 has a key of the job and this rank has none: CAUSEWAY_JOB_KEY is for all ranks");
}

/* Waits for all ranks; nothing is polled meanwhile. */
static int fence_plain(struct cw_job *job)
{
    return cw_virtual_is_on() ? job_fence_early(job) : cw_bootstrap_fence(job->bootstrap);
}

static int fence(struct cw_job *job, const struct job_report *report)
{
    int status = fence_plain(job);
    return status == CW_OK
               ? CW_OK
               : FAIL(report, status, "waiting for the other ranks: %s", cw_bootstrap_failure(job->bootstrap));
}

/* The ranks are on several hosts: a port to the others, and where theirs are. */
static int wire_join(struct cw_job *job, struct cw_paths_config *config, struct job_card *cards,
                     const struct job_report *report)
{
    struct cw_net_address own = {0};
    struct cw_wire_request request = {.own = &own};
    char interface[CW_JOB_INTERFACE_BYTES];
    int status = key_get(job, report);
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        request.may_seal = request.may_seal || cards[rank].may_seal;
        request.may_have_rdma = request.may_have_rdma || cards[rank].may_have_rdma;
    }
    status = status == CW_OK ? job_transport_choose(job, cards, &own, interface, &request, report->text, report->bytes)
                             : status;
    status = status == CW_OK ? wire_open(job, &request, config, report) : status;
    if (status == CW_OK) {
        job_transport_describe(job, &request);
        job->nodes = job_nodes_count(job, cards);
    }
    status = status == CW_OK ? cw_paths_connect(job->paths, config, report->text, report->bytes) : status;
    status = status == CW_OK ? job_place_put(job, config, report) : status;
    status = status == CW_OK ? fence(job, report) : status;
    status = status == CW_OK ? job_places_get(job, cards, report) : status;
    job->all_have_rdma = status == CW_OK;
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        job->all_have_rdma = job->all_have_rdma && cards[rank].has_rdma;
    }
    return status == CW_OK ? job_hops_find(job, &request, cards, report->text, report->bytes) : status;
}

static int paths_add(struct cw_job *job, struct cw_paths_config *config, const struct job_report *report)
{
    struct job_card *cards = calloc(job->info.size, sizeof(*cards));
    int status =
        cards == NULL ? FAIL(report, CW_ERROR_MEMORY, "no memory for the job") : job_cards_get(job, cards, report);
    bool is_spread = false;
    status = status == CW_OK ? job_crowding_find(job, report) : status;
    if (status == CW_OK && job->wire.loop == NULL) {
        status = job_dedicate(job, false, report);
    }
    for (uint32_t rank = 0; rank < job->info.size && status == CW_OK; rank++) {
        is_spread = is_spread || memcmp(cards[rank].path.host, cards[0].path.host, sizeof(cards[0].path.host)) != 0;
    }
    if (status == CW_OK && is_spread && job->wire.loop == NULL) {
        status = wire_join(job, config, cards, report);
    }
    if (status == CW_OK && job->wire.loop != NULL) {
        status = cw_wire_compress(&job->wire, job->crowding, report->text, report->bytes);
    }
    for (uint32_t rank = 0; rank < job->info.size && status == CW_OK; rank++) {
        status = cw_paths_add(job->paths, rank, &cards[rank].path, report->text, report->bytes);
    }
    if (status == CW_OK && job->transport_text[0] != '\0') {
        status = job_reach(job, cards, config->stopped_timeout_ns, report->text, report->bytes);
        status = status == CW_OK ? job_mtu_put(job, cards, report) : status;
        if (status == CW_OK && job_fence_early(job) != CW_OK) { /* others still ask this rank whether it is there */
            status =
                FAIL(report, CW_ERROR_CLOSED, "waiting for the other ranks: %s", cw_bootstrap_failure(job->bootstrap));
        }
        status = status == CW_OK ? job_mtu_agree(job, cards, report) : status;
    }
    free(cards);
    return status;
}

int cw_job_open(const struct cw_job_handler *handler, const uint8_t note[CW_JOB_NOTE_BYTES], struct cw_job **job,
                char *error, size_t error_bytes)
{
    const struct job_report report = {.text = error, .bytes = error_bytes};
    struct cw_paths_config config;
    struct cw_net_offer offer;
    struct cw_job *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return FAIL(&report, CW_ERROR_MEMORY, "no memory for the job");
    }
    memcpy(made->note, note, sizeof(made->note));
    made->handler = *handler;
    made->handler.multicast.laggard = cw_group_laggard;
    made->handler.multicast.unreached = cw_group_unreached;
    int status = cw_bootstrap_open(&made->bootstrap, error, error_bytes);
    if (status == CW_OK) {
        made->info = cw_bootstrap_info(made->bootstrap);
        made->hosts = calloc(made->info.size, sizeof(*made->hosts));
        made->machines = calloc(made->info.size, sizeof(*made->machines));
        made->cores = calloc(made->info.size, sizeof(*made->cores));
        status = made->hosts == NULL || made->machines == NULL || made->cores == NULL
                     ? FAIL(&report, CW_ERROR_MEMORY, "no memory for the job")
                     : paths_open(made, &config, &offer, &report);
    }
    if (status == CW_OK) {
        status = key_put(made, &report);
    }
    if (status == CW_OK) {
        status = job_card_put(made, &offer, &report);
    }
    if (status == CW_OK) {
        status = fence(made, &report);
    }
    if (status == CW_OK) {
        status = paths_add(made, &config, &report);
    }
    sodium_memzero(made->key, sizeof(made->key)); /* the endpoint has its own */
    if (status == CW_OK) {
        status = groups_open(made, &report);
    }
    status = status == CW_OK ? job_statistics_open(made, &report) : status;
    if (status != CW_OK) {
        cw_paths_destroy(made->paths);
        cw_wire_close(&made->wire);
        cw_bootstrap_drop(made->bootstrap); /* no goodbye: the others would wait for us */
        free(made->hops);
        free(made->hosts);
        free(made->machines);
        free(made->cores);
        free(made);
        return status;
    }
    *job = made;
    return CW_OK;
}

int cw_job_attend(struct cw_job *job, const struct cw_control_config *config, struct cw_control **control, char *error,
                  size_t error_bytes)
{
    struct cw_control_config own = *config;
    own.loop = job->wire.loop;
    own.has_core = job->dedicated.count > 0;
    own.core = job->dedicated.cores[0];
    int status = cw_control_create(&own, &job->control, error, error_bytes);
    if (status == CW_OK) {
        *control = job->control;
    }
    return status;
}

void cw_job_close(struct cw_job *job)
{
    if (job == NULL) {
        return;
    }
    cw_control_quiet(job->control);
    cw_groups_destroy(job->groups);
    job->groups = NULL;
    job->watcher.is_due = false;
    (void)fence_plain(job);           /* no rank reads our memory any more; if the launcher is gone, so are they */
    cw_control_destroy(job->control); /* others may have wanted acknowledgements until then */
    cw_paths_destroy(job->paths);
    cw_wire_quiet(&job->wire);
    if (job->has_devices) {
        cw_bootstrap_fence(job->bootstrap); /* no rank sends a goodbye any more to ports that are closed afterwards */
    }
    cw_wire_close(&job->wire);
    cw_bootstrap_close(job->bootstrap);
    cw_statistics_page_close(job->page);
    free(job->hops);
    free(job->hosts);
    free(job->machines);
    free(job->cores);
    free(job);
}

struct cw_bootstrap_info cw_job_info(const struct cw_job *job)
{
    return job->info;
}

const char *cw_job_host(const struct cw_job *job, uint32_t rank)
{
    return job->hosts[rank];
}

bool cw_job_shares_machine(const struct cw_job *job, uint32_t one, uint32_t other)
{
    return job->machines[one] == job->machines[other];
}

uint32_t cw_job_nodes(const struct cw_job *job)
{
    return job->nodes;
}

uint32_t cw_job_crowding(const struct cw_job *job)
{
    return job->crowding;
}

void cw_job_registrations(const struct cw_job *job, char *text, size_t text_bytes)
{
    const struct cw_port *port = job->wire.port;
    text[0] = 0;
    if (port != NULL && port->info.registrations != NULL) {
        const struct cw_cache_counters *counters = port->info.registrations;
        snprintf(text, text_bytes,
                 "%" PRIu64 " registrations of memory at the NIC, %" PRIu64 " times it knew it already, %" PRIu64
                 " times it was another by then%s%s",
                 counters->registered, counters->found, counters->stale,
                 port->info.unwatched[0] != 0 ? "; none is kept: " : "", port->info.unwatched);
    }
}

void cw_job_rdma(const struct cw_job *job, char *text, size_t text_bytes)
{
    const struct cw_endpoint *endpoint = job->wire.endpoint;
    text[0] = 0;
    if (job->wire.has_rdma) {
        const char *why = cw_rdma_without_groups(endpoint);
        const struct cw_cache_counters *counters = cw_rdma_registrations(endpoint);
        uint64_t by_packets = cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_UNREGISTERED);
        snprintf(text, text_bytes,
                 "%" PRIu64 " queue pairs came up, %" PRIu64 " broke; %" PRIu64 " work requests, %" PRIu64
                 " notifications and messages by them; %" PRIu64 " registrations of memory, %" PRIu64
                 " times it was known already; %" PRIu64 " regions the device did not take%s; %" PRIu64
                 " packets to groups and %" PRIu64 " from them by datagrams%s%s%s",
                 cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_UP),
                 cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_BROKEN),
                 cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_WORK), cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_IN),
                 counters->registered, counters->found, by_packets, by_packets > 0 ? " (is `ulimit -l` enough?)" : "",
                 cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_DATAGRAMS_OUT),
                 cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_DATAGRAMS_IN), why[0] != 0 ? ", since " : "", why,
                 cw_rdma_has_failed(endpoint) ? "; the device has failed, and packets carried all from then on" : "");
    }
}

bool cw_job_all_have_rdma(const struct cw_job *job)
{
    return job->all_have_rdma;
}

bool cw_job_is_busy(const struct cw_job *job)
{
    return job->watcher.is_due;
}

const struct cw_dedicated *cw_job_dedicated(const struct cw_job *job)
{
    return &job->dedicated;
}

const char *cw_job_undivided(const struct cw_job *job)
{
    return job->wire.undivided;
}

uint32_t cw_job_threads(const struct cw_job *job)
{
    return job->dedicated.count == 0 ? 0 : 1 + job->wire.further_count;
}

const char *cw_job_transport(const struct cw_job *job)
{
    return job->transport_text;
}

const char *cw_job_narrow(const struct cw_job *job)
{
    return job->narrow;
}

bool cw_job_notes_agree(const struct cw_job *job)
{
    return !job->notes_differ;
}

struct cw_bootstrap_traffic cw_job_exchanged(const struct cw_job *job)
{
    return cw_bootstrap_traffic(job->bootstrap);
}

struct cw_groups *cw_job_groups(const struct cw_job *job)
{
    return job->groups;
}

struct cw_paths *cw_job_paths(const struct cw_job *job)
{
    return job->paths;
}

bool cw_job_is_cut(const struct cw_job *job)
{
    return cw_bootstrap_is_cut(job->bootstrap);
}

_Noreturn void cw_job_abort(struct cw_job *job, int code, const char *text)
{
    cw_bootstrap_abort(job->bootstrap, code, text);
}
