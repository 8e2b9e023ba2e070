/* Replay run: simulated hosts do what the traces say. The program of a rank and its dataplane have a core each: steps
 * go on while the dataplane is busy with codecs, but for what they wait for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/replay.h"
#include "apps/cli/cli.h"
#include "apps/testbed/hosts.h"
#include "dataplane/base/clock.h"

enum {
    EVENTS = 64,
    QUEUE_BYTES = 1 << 20,
};

#define CONNECT_NS 10000000000ull

/* What has happened to a message: when, 0: not yet. */
struct passage {
    uint64_t arrived_ns;
    uint64_t completed_ns;
};

/* Counters of an endpoint, as they were before a turn. */
struct codec_counters {
    uint64_t chunks_out;
    uint64_t raw_out;
    uint64_t chunks_in;
    uint64_t raw_in;
};

struct run;

struct runner {
    struct run *run;
    const struct replay_rank *rank;
    uint32_t at;          /* step */
    bool computes;        /* its time is part of now_ns */
    uint64_t now_ns;      /* of the program: when it has done all before */
    uint64_t busy_ns;     /* until when codecs have the dataplane */
    double codec_rest_ns; /* less than one */
    struct codec_counters counters;
    uint64_t source;   /* region of the file */
    uint32_t *arrived; /* by sender: messages */
    uint32_t *peers;
};

struct run {
    const struct replay *replay;
    const struct replay_case *of;
    struct sim_hosts hosts;
    struct runner *runners;
    struct passage *passages;
    uint8_t *zeros;
    bool has_begun; /* all are connected */
    uint32_t ended; /* ranks */
    int code;       /* the first thing that went wrong */
};

static void failed(struct run *run, uint32_t rank, const char *what)
{
    char text[160];
    if (run->code == APP_EXIT_SUCCESS) {
        snprintf(text, sizeof(text), "rank %u: %s", rank, what);
        app_error(text, run->replay->folder, "this is a bug");
        run->code = APP_EXIT_INTERNAL;
    }
}

/* ---- what codecs cost ---- */

/* What went in chunks, as it was and as it travelled. */
struct pair_bytes {
    double raw;
    double chunks;
};

/* Adds the speeds of the codecs that one rank's data to another one has gone by, times its bytes. */
static void speeds_add(const struct run *run, uint32_t from, uint32_t to, struct cw_codec_speed *sums,
                       struct pair_bytes *bytes)
{
    static const enum cw_element elements[] = {CW_ELEMENT_BYTES, CW_ELEMENT_DOUBLE};
    struct cw_compression_report report;
    for (uint32_t i = 0; i < 2; i++) {
        if (cw_peer_compression(run->hosts.list[from].endpoint, run->runners[from].peers[to], elements[i], &report)) {
            const struct cw_codec_speed *speed = &run->of->compression.speeds[report.codec];
            float share = (float)report.raw_bytes;
            sums->fill_ns += share * speed->fill_ns;
            sums->expand_ns += share * speed->expand_ns;
            sums->fixed_ns += share * speed->fixed_ns;
            bytes->raw += (double)report.raw_bytes;
            bytes->chunks += (double)report.chunk_bytes;
        }
    }
}

/* The mean, by bytes, of all that a rank has sent, or others have sent to it: packets do not tell of their codecs. Runs
 * count as what the codec takes that goes with them. */
static struct cw_codec_speed speeds_mean(const struct run *run, uint32_t rank, bool out)
{
    struct cw_codec_speed sums = {0, 0, 0};
    struct pair_bytes all = {0, 0};
    for (uint32_t other = 0; other < run->replay->ranks; other++) {
        if (other != rank) {
            speeds_add(run, out ? rank : other, out ? other : rank, &sums, &all);
        }
    }
    float bytes = (float)all.raw;
    return bytes == 0 ? sums
                      : (struct cw_codec_speed){sums.fill_ns / bytes, sums.expand_ns / bytes, sums.fixed_ns / bytes};
}

static struct codec_counters counters_of(const struct cw_endpoint *endpoint)
{
    return (struct codec_counters){
        .chunks_out = cw_endpoint_counter(endpoint, CW_COUNTER_CHUNKS_OUT),
        .raw_out = cw_endpoint_counter(endpoint, CW_COUNTER_CHUNK_RAW_OUT),
        .chunks_in = cw_endpoint_counter(endpoint, CW_COUNTER_CHUNKS_IN),
        .raw_in = cw_endpoint_counter(endpoint, CW_COUNTER_CHUNK_RAW_IN),
    };
}

/* Nanoseconds that codecs take for what the last turn has sent and taken; of what a chunk costs beside its bytes each
 * end has half. */
static uint64_t codec_ns(struct runner *runner, uint32_t rank, const struct cw_endpoint *endpoint)
{
    struct codec_counters now = counters_of(endpoint), before = runner->counters;
    runner->counters = now;
    double ns = runner->codec_rest_ns;
    if (now.chunks_out > before.chunks_out) {
        struct cw_codec_speed speed = speeds_mean(runner->run, rank, true);
        ns += (double)(now.raw_out - before.raw_out) * (double)speed.fill_ns +
              (double)(now.chunks_out - before.chunks_out) * (double)speed.fixed_ns / 2;
    }
    if (now.chunks_in > before.chunks_in) {
        struct cw_codec_speed speed = speeds_mean(runner->run, rank, false);
        ns += (double)(now.raw_in - before.raw_in) * (double)speed.expand_ns +
              (double)(now.chunks_in - before.chunks_in) * (double)speed.fixed_ns / 2;
    }
    uint64_t whole = (uint64_t)ns;
    runner->codec_rest_ns = ns - (double)whole;
    return whole;
}

/* ---- steps ---- */

/* False: the endpoint takes no more for now. */
static bool message_post(struct runner *runner, struct sim_host *host, uint32_t number)
{
    struct run *run = runner->run;
    const struct replay_message *message = &run->replay->messages[number];
    struct cw_put put = {
        .peer = runner->peers[message->to],
        .lane_tag = cw_lane_tag(1, 0),
        .region = run->hosts.list[message->to].token,
        .offset = message->place,
        .source = {.element = message->element,
                   .region = message->data != NULL ? runner->source : 0,
                   .contiguous = {.data = message->data != NULL ? message->data : run->zeros, .bytes = message->bytes}},
        .context = number,
        .flags = CW_SIGNAL,
    };
    int status = cw_put(host->endpoint, &put);
    if (status != CW_OK && status != CW_ERROR_AGAIN) {
        failed(run, host->node, cw_status_text(status));
    }
    return status == CW_OK;
}

static void message_verify(const struct runner *runner, const struct sim_host *host, uint32_t number)
{
    const struct replay_message *message = &runner->run->replay->messages[number];
    if (message->data != NULL && memcmp(host->memory + message->place, message->data, message->bytes) != 0) {
        failed(runner->run, host->node, "a message has come with other bytes than were sent");
    }
}

/* Whether a step that waits is done, and when it was. */
static bool awaited(const struct runner *runner, const struct replay_step *step, uint64_t *ns)
{
    const struct passage *passage = &runner->run->passages[step->message];
    bool is_eager = runner->run->replay->messages[step->message].bytes <= REPLAY_EAGER_BYTES;
    bool is_sent = step->kind == REPLAY_SENT;
    *ns = !is_sent ? passage->arrived_ns : is_eager ? runner->now_ns : passage->completed_ns;
    return *ns > 0;
}

/* The program goes on until its time has come to `now_ns`, or it waits. */
static void advance(struct runner *runner, struct sim_host *host, uint64_t now_ns)
{
    while (runner->at < runner->rank->count) {
        const struct replay_step *step = &runner->rank->steps[runner->at];
        uint64_t ns = 0;
        if (!runner->computes) {
            runner->now_ns += step->compute_ns;
            runner->computes = true;
        }
        if (runner->now_ns > now_ns) {
            return;
        }
        if (step->kind == REPLAY_SEND && !message_post(runner, host, step->message)) {
            return;
        }
        if (step->kind == REPLAY_SENT || step->kind == REPLAY_RECEIVE) {
            if (!awaited(runner, step, &ns)) {
                return;
            }
            if (step->kind == REPLAY_RECEIVE) {
                message_verify(runner, host, step->message);
            }
        }
        runner->now_ns = ns > runner->now_ns ? ns : runner->now_ns;
        runner->computes = false;
        runner->at++;
        runner->run->ended += runner->at == runner->rank->count;
    }
}

/* ---- turns ---- */

static void put_arrived(struct runner *runner, struct sim_host *host, const struct cw_event *event, uint64_t now_ns)
{
    struct run *run = runner->run;
    uint32_t from = 0;
    while (from < run->replay->ranks && (from == host->node || runner->peers[from] != event->peer)) {
        from++;
    }
    const struct replay_list *pair =
        from < run->replay->ranks ? &run->replay->pairs[from * run->replay->ranks + host->node] : NULL;
    if (pair == NULL || runner->arrived[from] >= pair->count) {
        failed(run, host->node, "a message of nobody has come");
        return;
    }
    uint32_t number = pair->numbers[runner->arrived[from]++];
    const struct replay_message *message = &run->replay->messages[number];
    if (event->offset != message->place || event->bytes != message->bytes) {
        failed(run, host->node, "a message has come out of order");
    }
    run->passages[number].arrived_ns = now_ns;
}

static void take_events(struct runner *runner, struct sim_host *host, uint64_t now_ns)
{
    struct cw_event events[EVENTS];
    uint32_t count;
    while ((count = cw_endpoint_events(host->endpoint, events, EVENTS)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            if (events[i].kind == CW_EVENT_PUT) {
                put_arrived(runner, host, &events[i], now_ns);
            } else if (events[i].kind == CW_EVENT_COMPLETE && events[i].status == CW_OK) {
                runner->run->passages[events[i].context].completed_ns = now_ns;
            } else if (events[i].kind == CW_EVENT_COMPLETE || events[i].kind == CW_EVENT_PEER_DOWN) {
                failed(runner->run, host->node, cw_status_text(events[i].status));
            }
        }
    }
}

static void program_turn(struct runner *runner, struct sim_host *host, uint64_t now_ns)
{
    take_events(runner, host, now_ns);
    if (runner->run->has_begun) {
        cw_endpoint_clock(host->endpoint, now_ns);
        advance(runner, host, now_ns);
    }
}

/* A turn that has had codecs work is over, and what it brought is there, when they have done it. */
static uint64_t turn(struct sim_host *host, uint64_t now_ns)
{
    struct run *run = host->hosts->config.owner;
    struct runner *runner = &run->runners[host->node];
    if (now_ns < runner->busy_ns) {
        return runner->busy_ns;
    }
    program_turn(runner, host, now_ns);
    (void)cw_endpoint_turn(host->endpoint, now_ns);
    uint64_t took_ns = codec_ns(runner, host->node, host->endpoint);
    if (took_ns > 0) {
        cw_endpoint_busy(host->endpoint, took_ns);
        runner->busy_ns = now_ns + took_ns;
        return runner->busy_ns;
    }
    program_turn(runner, host, now_ns);
    uint64_t deadline_ns = cw_endpoint_deadline(host->endpoint);
    bool computes = runner->at < runner->rank->count && runner->now_ns > now_ns;
    return computes && runner->now_ns < deadline_ns ? runner->now_ns : deadline_ns;
}

/* ---- a run ---- */

static int hosts_create(struct run *run)
{
    const struct replay *replay = run->replay;
    struct sim_hosts_config config;
    char error[200] = "";
    sim_hosts_config_init(&config, replay->ranks);
    config.seed = run->of->seed;
    config.node.up.rate_bps = config.node.down.rate_bps = run->of->rate_bps;
    config.node.up.delay_ns = run->of->delay_ns / 2;
    config.node.down.delay_ns = run->of->delay_ns - run->of->delay_ns / 2;
    config.memory_bytes = 0;
    for (uint32_t rank = 0; rank < replay->ranks; rank++) {
        uint64_t bytes = replay->rank[rank].region_bytes;
        config.memory_bytes = bytes > config.memory_bytes ? bytes : config.memory_bytes;
    }
    config.owner = run;
    config.turn = turn;
    int status = sim_hosts_create(&run->hosts, &config, error, sizeof(error));
    for (uint32_t rank = 0; rank < replay->ranks && status == CW_OK; rank++) {
        struct runner *runner = &run->runners[rank];
        struct cw_endpoint *endpoint = run->hosts.list[rank].endpoint;
        status = cw_region_register(endpoint, replay->rank[rank].file, replay->rank[rank].file_bytes, CW_REGION_LOCAL,
                                    &runner->source);
        status = status == CW_OK ? cw_endpoint_compress(endpoint, &run->of->compression) : status;
        runner->peers = sim_hosts_peers(&run->hosts, rank, replay->ranks);
        status = runner->peers == NULL ? CW_ERROR_MEMORY : status;
    }
    return status == CW_OK ? APP_EXIT_SUCCESS
                           : app_error_status(status, error[0] != 0 ? error : "no memory to replay", replay->folder);
}

/* All ranks have sessions with each other. */
static bool is_connected(const struct run *run)
{
    bool all = true;
    for (uint32_t rank = 0; rank < run->replay->ranks; rank++) {
        for (uint32_t other = 0; other < run->replay->ranks; other++) {
            struct cw_peer_info info;
            all = all && (other == rank || (cw_peer_query(run->hosts.list[rank].endpoint,
                                                          run->runners[rank].peers[other], &info) == CW_OK &&
                                            info.state == CW_PEER_ESTABLISHED));
        }
    }
    return all;
}

static void connect_all(struct run *run)
{
    for (uint32_t rank = 0; rank < run->replay->ranks; rank++) {
        for (uint32_t other = 0; other < run->replay->ranks; other++) {
            if (other != rank) {
                (void)cw_peer_connect(run->hosts.list[rank].endpoint, run->runners[rank].peers[other]);
            }
        }
        sim_host_wake(&run->hosts.list[rank]);
    }
    while (!is_connected(run) && sim_hosts_now(&run->hosts) < CONNECT_NS) {
        sim_hosts_run(&run->hosts, 1000000);
    }
}

/* What a byte from one rank to another has taken by inequality (3): the link for what travelled, codecs for what went
 * through them. */
static double byte_ns(const struct run *run, uint32_t from, uint32_t to)
{
    const struct replay_list *pair = &run->replay->pairs[from * run->replay->ranks + to];
    struct cw_codec_speed sums = {0, 0, 0};
    struct pair_bytes packed = {0, 0};
    double bytes = 0, link_ns = replay_byte_ns(run->of);
    for (uint32_t i = 0; i < pair->count; i++) {
        bytes += (double)run->replay->messages[pair->numbers[i]].bytes;
    }
    speeds_add(run, from, to, &sums, &packed);
    double taken_ns = (double)sums.fill_ns + (double)sums.expand_ns;
    return bytes == 0 ? link_ns : link_ns * (bytes - packed.raw + packed.chunks) / bytes + taken_ns / bytes;
}

static double model_ns(const struct run *run)
{
    uint32_t ranks = run->replay->ranks;
    double *times = calloc((size_t)ranks * ranks, sizeof(double));
    if (times == NULL) {
        return -1;
    }
    for (uint32_t pair = 0; pair < ranks * ranks; pair++) {
        times[pair] = pair / ranks == pair % ranks ? 0 : byte_ns(run, pair / ranks, pair % ranks);
    }
    double ns = replay_model_ns(run->replay, run->of, times);
    free(times);
    return ns;
}

static void result_take(const struct run *run, uint64_t start_ns, struct replay_result *result)
{
    *result = (struct replay_result){.time_ns = 0};
    for (uint32_t rank = 0; rank < run->replay->ranks; rank++) {
        const struct cw_endpoint *endpoint = run->hosts.list[rank].endpoint;
        uint64_t ns = run->runners[rank].now_ns - start_ns;
        struct codec_counters counters = counters_of(endpoint);
        result->time_ns = ns > result->time_ns ? ns : result->time_ns;
        result->raw_bytes += counters.raw_out;
        result->chunk_bytes += cw_endpoint_counter(endpoint, CW_COUNTER_CHUNK_BYTES_OUT);
    }
    result->model_ns = model_ns(run);
}

static int ranks_run(struct run *run, struct replay_result *result)
{
    connect_all(run);
    if (!is_connected(run)) {
        failed(run, 0, "the hosts do not reach each other");
    }
    uint64_t start_ns = sim_hosts_now(&run->hosts);
    run->has_begun = true;
    for (uint32_t rank = 0; rank < run->replay->ranks; rank++) {
        run->runners[rank].now_ns = start_ns;
        sim_host_wake(&run->hosts.list[rank]);
    }
    while (run->ended < run->replay->ranks && run->code == APP_EXIT_SUCCESS) {
        if (!cw_simulator_step(run->hosts.simulator)) {
            failed(run, 0, "time stands still");
        }
    }
    result_take(run, start_ns, result);
    return run->code;
}

int replay_run(const struct replay *replay, const struct replay_case *of, struct replay_result *result)
{
    struct run run = {.replay = replay, .of = of, .code = APP_EXIT_SUCCESS};
    run.runners = calloc(replay->ranks, sizeof(*run.runners));
    run.passages = calloc((size_t)replay->count + 1, sizeof(*run.passages));
    run.zeros = calloc(1, replay->zeros_bytes + 1);
    bool has_memory = run.runners != NULL && run.passages != NULL && run.zeros != NULL;
    for (uint32_t rank = 0; rank < replay->ranks && has_memory; rank++) {
        run.runners[rank] = (struct runner){.run = &run, .rank = &replay->rank[rank]};
        run.runners[rank].arrived = calloc(replay->ranks, sizeof(uint32_t));
        has_memory = run.runners[rank].arrived != NULL;
    }
    int code = has_memory ? hosts_create(&run) : app_error_status(CW_ERROR_MEMORY, "no memory to replay", NULL);
    code = code == APP_EXIT_SUCCESS ? ranks_run(&run, result) : code;
    sim_hosts_destroy(&run.hosts);
    for (uint32_t rank = 0; rank < replay->ranks && run.runners != NULL; rank++) {
        free(run.runners[rank].arrived);
        free(run.runners[rank].peers);
    }
    free(run.runners);
    free(run.passages);
    free(run.zeros);
    return code;
}
