/* Writes the file of measured parameters (measured_decode.c): a line for each network and each test, so that people can
 * read and compare it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/measured.h"

static void network_write(FILE *out, const struct cw_measured_network *row)
{
    const struct cw_plogp *plogp = &row->network.paths[CW_PATH_LAN];
    fprintf(out, "{\"path\": \"%s\", \"ranks\": %" PRIu32 ", \"latency_ns\": %.6g, \"points\": [",
            cw_measured_path_name(row->path), row->ranks, plogp->latency_ns);
    for (uint32_t i = 0; i < plogp->count; i++) {
        const struct cw_plogp_point *point = &plogp->points[i];
        fprintf(out, "%s[%" PRIu64 ", %.6g, %.6g, %.6g]", i == 0 ? "" : ", ", point->bytes, point->gap_ns,
                point->send_ns, point->receive_ns);
    }
    fprintf(out,
            "], \"ports\": %" PRIu32 ", \"copy_ns_per_byte\": %.6g, \"reduce_ns_per_byte\": %.6g, \"contention\": %.6g",
            row->network.ports, row->network.copy_ns_per_byte, row->network.reduce_ns_per_byte,
            row->network.contention);
    fprintf(out, ", \"concurrent\": [");
    for (uint32_t i = 0; i < row->concurrent_count; i++) {
        const struct cw_measured_concurrent *test = &row->concurrent[i];
        fprintf(out, "%s[%" PRIu64 ", %" PRIu32 ", %.6g, %.6g, %.6g]", i == 0 ? "" : ", ", test->bytes, test->puts,
                test->one_ns, test->all_ns, test->first_ns);
    }
    fprintf(out, "]}");
}

static uint64_t parameter_of(const struct cw_measured_test *test, uint32_t index)
{
    return index == 0   ? test->parameters.segment_bytes
           : index == 1 ? test->parameters.degree
                        : test->parameters.concurrency;
}

/* A parameter of those tests that have it. */
static void parameter_write(FILE *out, const struct cw_measured_test *begin, const struct cw_measured_test *end,
                            uint32_t index)
{
    static const char *const names[] = {"segment_bytes", "degree", "concurrency"};
    bool any = false;
    for (const struct cw_measured_test *test = begin; test < end; test++) {
        if (parameter_of(test, index) > 0) {
            if (!any) {
                fprintf(out, ", \"%s\": {", names[index]);
            }
            fprintf(out, "%s\"%s\": %" PRIu64, any ? ", " : "", test->algorithm, parameter_of(test, index));
            any = true;
        }
    }
    if (any) {
        fprintf(out, "}");
    }
}

/* The tests of one question; returns the first of the next. */
static const struct cw_measured_test *tests_write(FILE *out, const struct cw_measured_test *begin,
                                                  const struct cw_measured_test *last)
{
    const struct cw_measured_test *end = begin;
    fprintf(out, "{\"path\": \"%s\", \"collective\": \"%s\", \"ranks\": %" PRIu32 ", \"bytes\": %" PRIu64 ", \"ns\": {",
            cw_measured_path_name(begin->path), cw_collective_name(begin->collective), begin->ranks, begin->bytes);
    for (; end < last && end->path == begin->path && end->collective == begin->collective &&
           end->ranks == begin->ranks && end->bytes == begin->bytes;
         end++) {
        fprintf(out, "%s\"%s\": %.5g", end == begin ? "" : ", ", end->algorithm, end->time_ns);
    }
    fprintf(out, "}");
    for (uint32_t index = 0; index < 3; index++) {
        parameter_write(out, begin, end, index);
    }
    fprintf(out, "}");
    return end;
}

char *cw_measured_encode(const struct cw_measured *measured)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return NULL;
    }
    fprintf(out, "{\"causeway-plogp\": %d,\n\"made_by\": \"causeway plogp %s\",\n\"networks\": [", CW_MEASURED_VERSION,
            CW_VERSION);
    for (uint32_t i = 0; i < measured->network_count; i++) {
        fprintf(out, i == 0 ? "\n" : ",\n");
        network_write(out, &measured->networks[i]);
    }
    fprintf(out, "],\n\"tests\": [");
    const struct cw_measured_test *last = measured->tests == NULL ? NULL : measured->tests + measured->test_count;
    for (const struct cw_measured_test *test = measured->tests; test < last;) {
        fprintf(out, test == measured->tests ? "\n" : ",\n");
        test = tests_write(out, test, last);
    }
    fprintf(out, "]}\n");
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
