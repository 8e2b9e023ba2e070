#include "dataplane/fabric/link.h"
#include "dataplane/limits.h"

#include <assert.h>

static const uint64_t NS_PER_SECOND = 1000000000u;

static bool probability_valid(double probability)
{
    return probability >= 0 && probability <= 1;
}

bool cw_link_config_valid(const struct cw_link_config *config, const char **reason)
{
    const char *wrong = NULL;

    if (config->rate_bps > CW_RATE_MAX_BPS) {
        wrong = "the rate is above 10 Tb/s";
    } else if (config->delay_ns > CW_LINK_DELAY_MAX_NS || config->reorder_delay_max_ns > CW_LINK_DELAY_MAX_NS) {
        wrong = "a delay is longer than an hour";
    } else if (config->queue_limit_bytes > UINT32_MAX) {
        wrong = "the queue limit is above 4 GiB";
    } else if (config->overhead_bytes > 1024) {
        wrong = "the overhead is above 1,024 bytes";
    } else if (!probability_valid(config->loss) || !probability_valid(config->duplicate) ||
               !probability_valid(config->corrupt) || !probability_valid(config->reorder)) {
        wrong = "a probability is not between 0 and 1";
    }
    if (wrong && reason) {
        *reason = wrong;
    }
    return !wrong;
}

/* How long `bytes` take on the line, rounded down. */
static uint64_t line_ns(uint64_t bytes, uint64_t rate_bps)
{
    return (uint64_t)((unsigned __int128)bytes * 8 * NS_PER_SECOND / rate_bps);
}

/* How many bytes pass the line in `time_ns`, rounded to the nearest. */
static uint64_t line_bytes(uint64_t time_ns, uint64_t rate_bps)
{
    return (uint64_t)(((unsigned __int128)time_ns * rate_bps + 4 * NS_PER_SECOND) / (8 * NS_PER_SECOND));
}

static void config_apply(struct cw_link *link, const struct cw_link_config *config)
{
    assert(cw_link_config_valid(config, NULL));
    link->config = *config;
    link->clean = config->loss <= 0 && config->duplicate <= 0 && config->corrupt <= 0 && config->reorder <= 0;
    link->queue_limit_ns = config->queue_limit_bytes > 0 && config->rate_bps > 0
                               ? line_ns(config->queue_limit_bytes, config->rate_bps)
                               : UINT64_MAX;
}

void cw_link_init(struct cw_link *link, const struct cw_link_config *config, uint64_t seed)
{
    *link = (struct cw_link){.down = false};
    cw_random_seed(&link->random, seed);
    config_apply(link, config);
}

static uint64_t queue_bytes_recent(const struct cw_link *link)
{
    uint64_t bytes = link->config.rate_bps == 0 ? 0 : line_bytes(link->queue_ns_recent, link->config.rate_bps);

    return bytes > link->queue_bytes_recent ? bytes : link->queue_bytes_recent;
}

void cw_link_configure(struct cw_link *link, const struct cw_link_config *config)
{
    link->queue_bytes_max_before = cw_link_queue_bytes_max(link);
    link->queue_ns_max = 0;
    link->queue_bytes_recent = queue_bytes_recent(link);
    link->queue_ns_recent = 0;
    link->free_remainder = 0; /* it was a share of the old rate */
    config_apply(link, config);
}

/* Puts the frame behind what waits already; false if the queue has no room for it. */
static bool frame_queue(struct cw_link *link, uint64_t now_ns, uint32_t frame_bytes)
{
    uint64_t rate_bps = link->config.rate_bps;
    uint64_t start_ns = link->free_ns;
    uint64_t remainder = link->free_remainder;
    uint64_t share, leave_ns;

    if (rate_bps == 0) {
        link->free_ns = now_ns;
        return true;
    }
    if (start_ns < now_ns) {
        start_ns = now_ns;
        remainder = 0;
    }
    share = ((uint64_t)frame_bytes + link->config.overhead_bytes) * 8 * NS_PER_SECOND + remainder;
    leave_ns = start_ns + share / rate_bps;
    if (leave_ns - now_ns > link->queue_limit_ns && start_ns > now_ns) {
        return false;
    }
    link->free_ns = leave_ns;
    link->free_remainder = share % rate_bps;
    if (leave_ns - now_ns > link->queue_ns_max) {
        link->queue_ns_max = leave_ns - now_ns;
    }
    if (leave_ns - now_ns > link->queue_ns_recent) {
        link->queue_ns_recent = leave_ns - now_ns;
    }
    return true;
}

static void delivery_add(struct cw_link *link, struct cw_link_verdict *verdict)
{
    struct cw_link_delivery *delivery = &verdict->deliveries[verdict->delivery_count++];

    delivery->arrival_ns = verdict->departure_ns + link->config.delay_ns;
    delivery->corrupt = false;
    if (link->clean) {
        return;
    }
    if (cw_random_chance(&link->random, link->config.corrupt)) {
        delivery->corrupt = true;
        link->counters.corrupted++;
    }
    if (cw_random_chance(&link->random, link->config.reorder)) {
        delivery->arrival_ns += cw_random_between(&link->random, 0, link->config.reorder_delay_max_ns);
        link->counters.reordered++;
    }
}

void cw_link_offer(struct cw_link *link, uint64_t now_ns, uint32_t frame_bytes, struct cw_link_verdict *verdict)
{
    struct cw_link_counters *counters = &link->counters;

    assert(frame_bytes <= CW_LINK_FRAME_MAX_BYTES);
    verdict->delivery_count = 0;
    counters->offered++;
    counters->offered_bytes += frame_bytes;
    if (link->down) {
        verdict->fate = CW_LINK_DROP_DOWN;
        counters->dropped_down++;
        return;
    }
    if (link->config.frame_bytes_max > 0 && frame_bytes > link->config.frame_bytes_max) {
        verdict->fate = CW_LINK_DROP_LENGTH;
        counters->dropped_length++;
        return;
    }
    if (!frame_queue(link, now_ns, frame_bytes)) {
        verdict->fate = CW_LINK_DROP_QUEUE;
        counters->dropped_queue++;
        return;
    }
    verdict->departure_ns = link->free_ns;
    if (!link->clean && cw_random_chance(&link->random, link->config.loss)) {
        verdict->fate = CW_LINK_DROP_LOSS;
        counters->lost++;
        return;
    }
    verdict->fate = CW_LINK_DELIVERED;
    counters->delivered++;
    counters->delivered_bytes += frame_bytes;
    delivery_add(link, verdict);
    if (!link->clean && cw_random_chance(&link->random, link->config.duplicate)) {
        counters->duplicated++;
        delivery_add(link, verdict);
    }
}

void cw_link_corrupt(struct cw_link *link, uint8_t *frame, uint32_t length)
{
    /* An odd number: should a bit be drawn twice, not all of them cancel out. */
    uint64_t bit_count = 1 + 2 * cw_random_below(&link->random, (CW_LINK_CORRUPT_BITS_MAX + 1) / 2);

    assert(length > 0);
    for (uint64_t i = 0; i < bit_count; i++) {
        uint64_t bit = cw_random_below(&link->random, (uint64_t)length * 8);

        frame[bit / 8] = (uint8_t)(frame[bit / 8] ^ (1u << (bit % 8)));
    }
}

uint64_t cw_link_queue_bytes(const struct cw_link *link, uint64_t now_ns)
{
    if (link->config.rate_bps == 0 || link->free_ns <= now_ns) {
        return 0;
    }
    return line_bytes(link->free_ns - now_ns, link->config.rate_bps);
}

uint64_t cw_link_queue_bytes_max(const struct cw_link *link)
{
    uint64_t now_max = link->config.rate_bps == 0 ? 0 : line_bytes(link->queue_ns_max, link->config.rate_bps);

    return now_max > link->queue_bytes_max_before ? now_max : link->queue_bytes_max_before;
}

uint64_t cw_link_queue_bytes_recent(struct cw_link *link, uint64_t now_ns)
{
    uint64_t bytes = queue_bytes_recent(link);

    link->queue_bytes_recent = 0;
    link->queue_ns_recent = link->free_ns > now_ns ? link->free_ns - now_ns : 0;
    return bytes;
}

void cw_link_reject(struct cw_link *link, uint32_t frame_bytes)
{
    link->counters.offered++;
    link->counters.offered_bytes += frame_bytes;
    link->counters.dropped_queue++;
}
