/* What recorders note is what a reader finds; what does not fit is counted; what is not a recording is refused. */
#include "recording_sample.h"

#include <string.h>

static void what_is_noted_is_read(void **state)
{
    struct sample sample;
    sample_create(&sample, CW_RECORDING_WIRE);
    sample_bcast(&sample, 100, "binomial");
    sample_many(&sample, 0, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX);
    sample_bcast(&sample, 100, "binomial");
    struct cw_recording *recording = sample_recording(&sample);
    assert_string_equal(recording->program, "sample");
    assert_int_equal(recording->ranks, SAMPLE_RANKS);
    assert_int_equal(recording->eager_max_bytes, 8192);
    for (uint32_t rank = 0; rank < SAMPLE_RANKS; rank++) {
        const struct cw_recording_rank *of = &recording->of[rank];
        assert_int_equal(of->comm_count, 1);
        assert_int_equal(of->comms[0].members[3], 3);
        assert_int_equal(of->form_count, 2); /* the broadcast once */
        assert_int_equal(of->call_count, 3);
        assert_int_equal(of->calls[2].form, 0);
        assert_int_equal(of->calls[2].ordinal, 3);
        assert_int_equal(of->calls[2].took_ns, 1000 + rank);
        assert_int_equal(of->forms[1].sends[2], sample_bytes(rank, 2, 0));
        assert_int_equal(of->forms[1].expects[2], sample_bytes(2, rank, 0));
        assert_string_equal(of->forms[0].algorithm, "binomial");
    }
    cw_recording_destroy(recording);
}

static void a_full_recorder_counts(void **state)
{
    struct cw_recorder *recorder = cw_recorder_create(12000);
    uint32_t members[1] = {0};
    const struct cw_recording_comm comm = {2, 1, 0, members};
    struct cw_packer part = {0};
    uint64_t taken = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        const struct cw_recording_form form = {
            .comm = cw_recorder_comm(recorder, &comm), .element_bytes = 1, .count = i % 1000, .algorithm = "x"};
        taken += cw_recorder_call(recorder, &form, 1, i + 1, 0, 1);
    }
    assert_true(taken > 100 && taken < 5000);
    assert_int_equal(cw_recorder_calls(recorder), taken);
    assert_int_equal(cw_recorder_dropped(recorder), 5000 - taken);
    cw_recorder_part(recorder, &part);
    assert_true(part.length < 12000);
    free(part.bytes);
    cw_recorder_destroy(recorder);
}

static void expect_refused(const uint8_t *file, size_t length, const char *words)
{
    struct cw_recording *recording = NULL;
    char error[400] = "";
    assert_int_not_equal(cw_recording_decode(file, length, &recording, error, sizeof(error)), CW_OK);
    if (strstr(error, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error, words);
    }
}

static void what_is_no_recording_is_refused(void **state)
{
    struct sample sample;
    size_t length;
    sample_create(&sample, 0);
    sample_bcast(&sample, 100, "binomial");
    uint8_t *file = sample_file(&sample, &length);
    expect_refused(file, 0, "this is no trace");
    expect_refused((const uint8_t *)"CWPLAN\r\n", 8, "this is no trace");
    expect_refused(file, 20, "cut off");
    expect_refused(file, length - 1, "checksum");
    file[length / 2] ^= 1;
    expect_refused(file, length, "checksum");
    file[length / 2] ^= 1;
    file[8] = 99;
    expect_refused(file, length, "version 99");
    free(file);
}

int main(void)
{
    return TESTS_RUN(what_is_noted_is_read, a_full_recorder_counts, what_is_no_recording_is_refused);
}
