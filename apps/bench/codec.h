/* Bench codec: shared by the files of `causeway bench codec`.
 *
 * Order of calls: codec_fields_make and codec_fields_read gather the data; a bench for the longest of it measures each
 * by each method. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/bench/bench.h"
#include "dataplane/codec/codec.h"

enum {
    CODEC_STREAM = CW_CODECS, /* DFCM with one predictor for a whole field, as between the sockets of the paper */
    CODEC_METHODS,
    CODEC_FIELDS_MAX = 64,
    CODEC_FILE_MAX = 256 << 20, /* bytes */
};

/* Data to be compressed. */
struct codec_field {
    const char *name; /* of a file its path */
    enum cw_element element;
    uint8_t *data;
    uint64_t bytes;
    bool is_counted; /* in the means: numbers of a simulation */
};

struct codec_fields {
    struct codec_field fields[CODEC_FIELDS_MAX];
    uint32_t count;
};

/* Adds the built-in fields, or the one of that name: the same bytes in each run. CW_ERROR_MEMORY; CW_ERROR_NOT_FOUND:
 * there is none of that name. */
int codec_fields_make(struct codec_fields *fields, const char *name, uint64_t bytes);

/* Adds a file of raw elements; `path` is kept. One of enum app_exit, after reporting. */
int codec_fields_read(struct codec_fields *fields, const char *path, enum cw_element element);

void codec_fields_dispose(struct codec_fields *fields);

/* The names of the built-in fields, with commas between. */
void codec_fields_names(char *text, size_t size);

/* Results of a method for a field. */
struct codec_figures {
    bool is_there;    /* the method takes such elements */
    double ratio;     /* bytes of the field / bytes sent, those of packets without a chunk included */
    double fill_ns;   /* a byte of the field */
    double expand_ns; /* a byte of the field */
    double expanded;  /* the part of the field that was in chunks */
    uint64_t packets; /* 0: a stream */
    uint64_t raw_packets;
};

/* Buffers for fields of up to that many bytes. */
struct codec_bench;
struct codec_bench *codec_bench_create(uint64_t bytes_max);
void codec_bench_destroy(struct codec_bench *bench);

/* Measures all methods that take the field, in turn in each round, at most BENCH_ROUNDS_MAX. False: expanded data
 * differs from the original; *culprit is the method. */
bool codec_bench_run(struct codec_bench *bench, const struct codec_field *field, uint32_t chunk_bytes, uint64_t rounds,
                     struct codec_figures figures[CODEC_METHODS], const char **culprit);

/* "lorenzo", and "dfcm stream". */
const char *codec_method_name(uint32_t method);

/* The rate of a link in bits a second below which the method shortens messages, by (4) of Ke, Burtscher and Speight
 * (2004); 0: there is none. */
double codec_break_even_bps(const struct codec_figures *figures);

/* "310 Mb/s", "2.50 Gb/s". */
void codec_rate_text(double rate_bps, char *text, size_t size);
