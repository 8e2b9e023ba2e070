/* An artificial recording of four ranks, for tests of recordings and compiling. */
#pragma once

#include "collectives/file/recording.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { SAMPLE_RANKS = 4, SAMPLE_HALF = 7 /* context of ranks 0 and 2 */ };

/* Bytes from one rank to another in pattern `pattern`. */
static inline uint64_t sample_bytes(uint32_t from, uint32_t to, uint32_t pattern)
{
    return 1000 + 100 * from + 10 * to + (from == 1 && to == 2 ? pattern : 0);
}

struct sample {
    struct cw_recorder *recorders[SAMPLE_RANKS];
    uint32_t flags; /* of the communicators */
    uint32_t ordinal;
};

static inline uint32_t sample_world(struct sample *sample, uint32_t rank)
{
    static uint32_t members[SAMPLE_RANKS] = {0, 1, 2, 3};
    const struct cw_recording_comm comm = {1, SAMPLE_RANKS, sample->flags, members};
    return cw_recorder_comm(sample->recorders[rank], &comm);
}

static inline void sample_create(struct sample *sample, uint32_t flags)
{
    *sample = (struct sample){.flags = flags};
    for (uint32_t rank = 0; rank < SAMPLE_RANKS; rank++) {
        sample->recorders[rank] = cw_recorder_create(CW_RECORDER_BYTES_MAX);
        assert_non_null(sample->recorders[rank]);
    }
}

static inline void sample_bcast(struct sample *sample, uint64_t bytes, const char *algorithm)
{
    sample->ordinal++;
    for (uint32_t rank = 0; rank < SAMPLE_RANKS; rank++) {
        struct cw_recording_form form = {
            .comm = sample_world(sample, rank), .collective = CW_BCAST, .root = 1, .element_bytes = 1, .count = bytes};
        snprintf(form.algorithm, sizeof(form.algorithm), "%s", algorithm);
        assert_true(cw_recorder_call(sample->recorders[rank], &form, SAMPLE_RANKS, sample->ordinal, 0, 1000 + rank));
    }
}

/* `odd`: this rank expects something else than the others send it; UINT32_MAX: none. */
static inline void sample_many(struct sample *sample, uint32_t pattern, uint32_t flags, const char *algorithm,
                               uint32_t odd)
{
    sample->ordinal++;
    for (uint32_t rank = 0; rank < SAMPLE_RANKS; rank++) {
        uint64_t sends[SAMPLE_RANKS], expects[SAMPLE_RANKS];
        for (uint32_t other = 0; other < SAMPLE_RANKS; other++) {
            sends[other] = sample_bytes(rank, other, pattern);
            expects[other] = sample_bytes(other, rank, pattern) + (rank == odd);
        }
        struct cw_recording_form form = {
            .comm = sample_world(sample, rank),
            .collective = CW_ALLTOALL,
            .flags = flags | CW_RECORDING_ROWS,
            .element_bytes = 1,
            .sends_count = SAMPLE_RANKS,
            .expects_count = SAMPLE_RANKS,
            .sends = sends,
            .expects = expects,
        };
        snprintf(form.algorithm, sizeof(form.algorithm), "%s", algorithm);
        assert_true(cw_recorder_call(sample->recorders[rank], &form, SAMPLE_RANKS, sample->ordinal, 0, 50000));
    }
}

/* The file; frees the recorders. */
static inline void *sample_file(struct sample *sample, size_t *length)
{
    struct cw_packer parts[SAMPLE_RANKS] = {{0}};
    const uint8_t *bytes[SAMPLE_RANKS];
    uint64_t lengths[SAMPLE_RANKS];
    const struct cw_recording head = {
        .program = "sample", .ranks = SAMPLE_RANKS, .eager_max_bytes = 8192, .multicast_eager_max_bytes = 4000};
    void *file;
    for (uint32_t rank = 0; rank < SAMPLE_RANKS; rank++) {
        cw_recorder_part(sample->recorders[rank], &parts[rank]);
        bytes[rank] = parts[rank].bytes;
        lengths[rank] = parts[rank].length;
        cw_recorder_destroy(sample->recorders[rank]);
    }
    assert_int_equal(cw_recording_encode(&head, bytes, lengths, &file, length), CW_OK);
    for (uint32_t rank = 0; rank < SAMPLE_RANKS; rank++) {
        free(parts[rank].bytes);
    }
    return file;
}

static inline struct cw_recording *sample_recording(struct sample *sample)
{
    size_t length;
    char error[400] = "";
    struct cw_recording *recording = NULL;
    void *file = sample_file(sample, &length);
    assert_true_msg(cw_recording_decode(file, length, &recording, error, sizeof(error)) == CW_OK, "%s", error);
    free(file);
    return recording;
}
