#include "apps/links/rows.h"

static const char columns[] =
    "time_ns,name,direction,offered_frames,offered_bytes,delivered_frames,delivered_bytes,lost_frames,queue_frames,"
    "down_frames,pool_frames,oversize_frames,port_frames,queue_bytes,queue_max_bytes,rate_bps,queue_limit_bytes\n";

struct links_row links_row_read(struct cw_link *link, uint64_t now_ns)
{
    const struct cw_link_counters *counters = &link->counters;
    return (struct links_row){{
        [LINKS_OFFERED] = counters->offered,
        [LINKS_OFFERED_BYTES] = counters->offered_bytes,
        [LINKS_DELIVERED] = counters->arrived,
        [LINKS_DELIVERED_BYTES] = counters->arrived_bytes,
        [LINKS_LOST] = counters->lost,
        [LINKS_QUEUE] = counters->dropped_queue,
        [LINKS_DOWN] = counters->dropped_down,
        [LINKS_OVERSIZE] = counters->dropped_length,
        [LINKS_QUEUE_BYTES] = cw_link_queue_bytes(link, now_ns),
        [LINKS_QUEUE_MAX_BYTES] = cw_link_queue_bytes_recent(link, now_ns),
        [LINKS_RATE_BPS] = link->config.rate_bps,
        [LINKS_QUEUE_LIMIT_BYTES] = link->config.queue_limit_bytes,
    }};
}

void links_rows_begin(FILE *file)
{
    fputs(columns, file);
}

char *links_number_write(char *to, uint64_t number)
{
    char digits[LINKS_DIGITS];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *to++ = digits[--count];
    }
    return to;
}

void links_row_write(FILE *file, uint64_t time_ns, const char *name, const char *direction, const struct links_row *row,
                     struct links_row *before)
{
    char text[(LINKS_FIELDS + 1) * (LINKS_DIGITS + 1)];
    char *end = links_number_write(text, time_ns);
    fwrite(text, 1, (size_t)(end - text), file);
    fputc(',', file);
    fputs(name, file);
    fputc(',', file);
    fputs(direction, file);
    end = text;
    for (int field = 0; field < LINKS_FIELDS; field++) {
        *end++ = ',';
        end = links_number_write(end, row->fields[field] - (field < LINKS_COUNTS ? before->fields[field] : 0));
    }
    *end++ = '\n';
    fwrite(text, 1, (size_t)(end - text), file);
    *before = *row;
}
