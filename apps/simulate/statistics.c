#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/links/rows.h"
#include "apps/simulate/simulate.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

struct simulate_statistics {
    const struct simulate_network *network;
    FILE *file;
    uint64_t interval_ns;
    uint64_t due_ns;          /* the next sample */
    uint64_t skipped_ns;      /* the last sample that was not written; 0: the last one was */
    bool is_quiet;            /* no link had traffic or a queue in the last interval */
    struct links_row *before; /* of each link, as last written */
    struct links_row *now;
};

int simulate_statistics_open(const struct simulate_config *config, const struct simulate_network *network,
                             struct simulate_statistics **statistics, char *error, size_t error_bytes)
{
    struct simulate_statistics *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        *made = (struct simulate_statistics){
            .network = network,
            .interval_ns = config->statistics_interval_ns,
            .due_ns = config->statistics_interval_ns,
            .before = calloc(network->link_count, sizeof(*made->before)),
            .now = calloc(network->link_count, sizeof(*made->now)),
            .file = fopen(config->statistics, "we"),
        };
    }
    *statistics = made;
    if (made == NULL || made->before == NULL || made->now == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the statistics of %u links",
                             network->link_count);
    }
    if (made->file == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "stats=%s: %s", config->statistics, strerror(errno));
    }
    links_rows_begin(made->file);
    return CW_OK;
}

static void sample_write(struct simulate_statistics *statistics, uint64_t time_ns, const struct links_row *rows)
{
    for (uint32_t i = 0; i < statistics->network->link_count; i++) {
        const struct simulate_link *link = &statistics->network->links[i];
        links_row_write(statistics->file, time_ns, link->name, link->direction, &rows[i], &statistics->before[i]);
    }
}

/* A time without traffic on any link has one sample at its beginning and one at its end. */
static void sample_record(struct simulate_statistics *statistics, uint64_t time_ns, bool is_last)
{
    bool is_quiet = true;
    for (uint32_t i = 0; i < statistics->network->link_count; i++) {
        struct links_row *row = &statistics->now[i];
        *row = links_row_read(statistics->network->links[i].link, time_ns);
        is_quiet = is_quiet && row->fields[LINKS_QUEUE_MAX_BYTES] == 0 &&
                   memcmp(row->fields, statistics->before[i].fields, LINKS_COUNTS * sizeof(row->fields[0])) == 0;
    }
    if (!is_quiet && statistics->skipped_ns != 0) {
        sample_write(statistics, statistics->skipped_ns, statistics->before);
    }
    statistics->skipped_ns = is_quiet && statistics->is_quiet && !is_last ? time_ns : 0;
    if (statistics->skipped_ns == 0) {
        sample_write(statistics, time_ns, statistics->now);
    }
    statistics->is_quiet = is_quiet;
}

void simulate_statistics_until(struct simulate_statistics *statistics, uint64_t time_ns)
{
    while (statistics->due_ns <= time_ns) {
        sample_record(statistics, statistics->due_ns, false);
        /* nothing happens before `time_ns`: after a sample without traffic, only the last one of them is of use */
        uint64_t more = statistics->is_quiet ? (time_ns - statistics->due_ns) / statistics->interval_ns : 0;
        statistics->due_ns += (more > 1 ? more : 1) * statistics->interval_ns;
    }
}

bool simulate_statistics_close(struct simulate_statistics *statistics, uint64_t end_ns)
{
    if (statistics == NULL) {
        return true;
    }
    bool has_failed = false;
    if (statistics->file != NULL) {
        sample_record(statistics, end_ns, true);
        has_failed = ferror(statistics->file) != 0;
        has_failed = fclose(statistics->file) != 0 || has_failed;
    }
    free(statistics->before);
    free(statistics->now);
    free(statistics);
    return !has_failed;
}
