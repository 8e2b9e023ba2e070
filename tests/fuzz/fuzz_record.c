/* Recordings and bundles that somebody has damaged behind the checksum's back: refused with a reason, or sound: what is
 * read is compiled, or written and read again. Bytes of the content are changed, cut and doubled, and the file is
 * closed again as if nothing had happened. CW_TEST_PACKETS (100,000) / 10 files of each. */
#include "tests/unit/collectives/recording_sample.h"

#include <string.h>

#include "collectives/compile/compile.h"
#include "dataplane/base/random.h"

static uint64_t file_count(void)
{
    return test_count("CW_TEST_PACKETS", 100000) / 10;
}

static void damage(struct cw_random *random, struct cw_packer *content)
{
    size_t at = (size_t)cw_random_below(random, content->length);
    size_t bytes = (size_t)cw_random_below(random, 20);
    bytes = bytes > content->length - at ? content->length - at : bytes;
    switch (cw_random_below(random, 6)) {
    case 0:
        content->length = at + 1;
        break;
    case 1:
        memmove(content->bytes + at, content->bytes + at + bytes, content->length - at - bytes);
        content->length -= bytes;
        break;
    case 2:
        for (size_t i = 0; i < bytes; i++) {
            content->bytes[at + i] = 0xff;
        }
        break;
    case 3:
        content->bytes[at]++;
        break;
    default:
        content->bytes[at] = (uint8_t)cw_random_below(random, 256);
    }
}

/* A damaged copy of a file, with the right checksum. */
static void *damaged(struct cw_random *random, const struct cw_pack_kind *kind, const void *file, size_t length,
                     size_t *made_length)
{
    struct cw_unpacker unpacker;
    struct cw_packer content = {0};
    uint8_t *bytes;
    char error[400];
    void *made;
    assert_int_equal(cw_unpack_file(kind, file, length, &bytes, &unpacker, error, sizeof(error)), CW_OK);
    cw_pack_bytes(&content, bytes, unpacker.length);
    free(bytes);
    uint32_t changes = 1 + (uint32_t)cw_random_below(random, 3);
    for (uint32_t i = 0; i < changes && content.length > 0; i++) {
        damage(random, &content);
    }
    assert_int_equal(cw_pack_file(kind, &content, &made, made_length), CW_OK);
    free(content.bytes);
    return made;
}

static void *sample_trace(size_t *length)
{
    struct sample sample;
    sample_create(&sample, CW_RECORDING_WIRE | CW_RECORDING_MULTICASTS);
    for (int i = 0; i < 2; i++) {
        sample_bcast(&sample, 300, "multicast");
        sample_many(&sample, 0, CW_RECORDING_EXCHANGED, "greedy", UINT32_MAX);
        sample_many(&sample, 3, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX);
    }
    return sample_file(&sample, length);
}

static bool compiles(const struct cw_recording *recording, struct cw_compiled *compiled)
{
    const struct cw_recording *const recordings[] = {recording};
    char error[400] = "";
    const struct cw_compile_request request = {
        .recordings = recordings, .recording_count = 1, .calls_least = 1, .all = true, .filter_budget = 20};
    int status = cw_compile(&request, compiled, error, sizeof(error));
    assert_true(status == CW_OK || error[0] != '\0');
    return status == CW_OK;
}

/* What nobody would wait for. */
static bool is_small(const struct cw_recording *recording)
{
    for (uint32_t rank = 0; rank < recording->ranks; rank++) {
        for (uint32_t i = 0; i < recording->of[rank].form_count; i++) {
            if (recording->of[rank].forms[i].count > 1 << 20) {
                return false;
            }
        }
    }
    return recording->ranks <= 16;
}

static void damaged_recordings_are_refused_or_compiled(void **state)
{
    static const struct cw_pack_kind kind = {"CWTRACE\n", "trace", CW_RECORDING_VERSION};
    size_t length;
    void *file = sample_trace(&length);
    struct cw_random random;
    uint64_t taken = 0, made = 0;
    cw_random_seed(&random, 1);
    for (uint64_t i = 0; i < file_count(); i++) {
        size_t bad_length;
        char error[400] = "";
        struct cw_recording *recording = NULL;
        struct cw_compiled compiled;
        void *bad = damaged(&random, &kind, file, length, &bad_length);
        if (cw_recording_decode(bad, bad_length, &recording, error, sizeof(error)) != CW_OK) {
            assert_true(error[0] != '\0' && recording == NULL);
        } else {
            taken++;
            if (taken % 16 == 0 && is_small(recording) && compiles(recording, &compiled)) {
                made++;
                cw_compile_dispose(&compiled);
            }
            cw_recording_destroy(recording);
        }
        free(bad);
    }
    free(file);
    print_message("%llu damaged traces make sense; %llu of each 16th were compiled\n", (unsigned long long)taken,
                  (unsigned long long)made);
}

static void damaged_bundles_are_refused_or_sound(void **state)
{
    static const struct cw_pack_kind kind = {"CWBOOK\r\n", "bundle of plans", CW_BUNDLE_VERSION};
    size_t length;
    char error[400] = "";
    struct cw_recording *recording;
    struct cw_compiled compiled;
    struct cw_random random;
    uint64_t taken = 0;
    void *trace = sample_trace(&length);
    assert_int_equal(cw_recording_decode(trace, length, &recording, error, sizeof(error)), CW_OK);
    assert_true(compiles(recording, &compiled));
    cw_recording_destroy(recording);
    free(trace);
    void *file;
    assert_int_equal(cw_bundle_encode(compiled.bundle, &file, &length), CW_OK);
    cw_compile_dispose(&compiled);
    cw_random_seed(&random, 2);
    for (uint64_t i = 0; i < file_count(); i++) {
        size_t bad_length, again_length;
        struct cw_bundle *bundle = NULL, *again = NULL;
        void *bad = damaged(&random, &kind, file, length, &bad_length), *written;
        if (cw_bundle_decode(bad, bad_length, &bundle, error, sizeof(error)) == CW_OK) {
            taken++;
            assert_int_equal(cw_bundle_encode(bundle, &written, &again_length), CW_OK);
            assert_int_equal(cw_bundle_decode(written, again_length, &again, error, sizeof(error)), CW_OK);
            free(written);
            cw_bundle_destroy(again);
            cw_bundle_destroy(bundle);
        } else {
            assert_true(error[0] != '\0' && bundle == NULL);
        }
        free(bad);
    }
    free(file);
    print_message("%llu of %llu damaged bundles make sense\n", (unsigned long long)taken,
                  (unsigned long long)file_count());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_recordings_are_refused_or_compiled),
        cmocka_unit_test(damaged_bundles_are_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
