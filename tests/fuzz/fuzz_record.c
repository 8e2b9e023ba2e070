/* Recordings and bundles of plans: refused with a reason, or sound: what is read is compiled, or written and read again.
 * An input is the content of a file, behind a byte that says which of the two it is. The target closes the file, so that
 * its checksum is right. */
#include "tests/fuzz/fuzz.h"

#include "collectives/compile/compile.h"
#include "tests/unit/collectives/recording_sample.h"

enum { BYTES_MAX = 1 << 16, TRACE = 0, BUNDLE = 1, KINDS };

static const struct cw_pack_kind kinds[KINDS] = {[TRACE] = {"CWTRACE\n", "trace", CW_RECORDING_VERSION},
                                                 [BUNDLE] = {"CWBOOK\r\n", "bundle of plans", CW_BUNDLE_VERSION}};
static uint64_t accepted[KINDS], compiled_count;

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

/* ---- seeds ---- */

static void *file_make(uint32_t kind, size_t *length)
{
    struct sample sample;
    struct cw_compiled compiled;
    void *file;
    sample_create(&sample, CW_RECORDING_WIRE | CW_RECORDING_MULTICASTS);
    for (int i = 0; i < 2; i++) {
        sample_bcast(&sample, 300, "multicast");
        sample_many(&sample, 0, CW_RECORDING_EXCHANGED, "greedy", UINT32_MAX);
        sample_many(&sample, 3, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX);
    }
    if (kind == TRACE) {
        return sample_file(&sample, length);
    }
    struct cw_recording *recording = sample_recording(&sample);
    assert_true(compiles(recording, &compiled));
    assert_int_equal(cw_bundle_encode(compiled.bundle, &file, length), CW_OK);
    cw_compile_dispose(&compiled);
    cw_recording_destroy(recording);
    return file;
}

static size_t seed(uint32_t index, uint8_t *bytes)
{
    static uint8_t contents[KINDS][BYTES_MAX];
    static size_t lengths[KINDS];
    if (index < KINDS && lengths[index] == 0) {
        struct cw_unpacker unpacker;
        uint8_t *content;
        char error[400];
        size_t file_bytes;
        void *file = file_make(index, &file_bytes);
        assert_int_equal(cw_unpack_file(&kinds[index], file, file_bytes, &content, &unpacker, error, sizeof(error)),
                         CW_OK);
        contents[index][0] = (uint8_t)index;
        lengths[index] = 1 + unpacker.length;
        assert_true(lengths[index] <= BYTES_MAX);
        memcpy(contents[index] + 1, content, unpacker.length);
        free(content);
        free(file);
    }
    if (index >= KINDS) {
        return 0;
    }
    memcpy(bytes, contents[index], lengths[index]);
    return lengths[index];
}

/* ---- files ---- */

/* Nobody would wait for larger ones. */
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

static bool trace_is_accepted(const void *file, size_t length)
{
    char error[400] = "";
    struct cw_recording *recording = NULL;
    struct cw_compiled compiled;
    if (cw_recording_decode(file, length, &recording, error, sizeof(error)) != CW_OK) {
        assert_true(error[0] != '\0' && recording == NULL);
        return false;
    }
    if (accepted[TRACE] % 16 == 0 && is_small(recording) && compiles(recording, &compiled)) {
        compiled_count++;
        cw_compile_dispose(&compiled);
    }
    cw_recording_destroy(recording);
    return true;
}

static bool bundle_is_accepted(const void *file, size_t length)
{
    char error[400] = "";
    struct cw_bundle *bundle = NULL, *again = NULL;
    void *written;
    size_t again_length;
    if (cw_bundle_decode(file, length, &bundle, error, sizeof(error)) != CW_OK) {
        assert_true(error[0] != '\0' && bundle == NULL);
        return false;
    }
    assert_int_equal(cw_bundle_encode(bundle, &written, &again_length), CW_OK);
    assert_int_equal(cw_bundle_decode(written, again_length, &again, error, sizeof(error)), CW_OK);
    free(written);
    cw_bundle_destroy(again);
    cw_bundle_destroy(bundle);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cw_packer content = {0};
    size_t length;
    void *file;
    if (size == 0) {
        return 0;
    }
    uint32_t kind = data[0] % KINDS;
    cw_pack_bytes(&content, data + 1, size - 1);
    assert_int_equal(cw_pack_file(&kinds[kind], &content, &file, &length), CW_OK);
    accepted[kind] += kind == TRACE ? trace_is_accepted(file, length) : bundle_is_accepted(file, length);
    free(content.bytes);
    free(file);
    return 0;
}

static void end(uint64_t inputs)
{
    assert_in_range(accepted[TRACE], 1, inputs / 2 - 1);
    assert_in_range(accepted[BUNDLE], 1, inputs / 2 - 1);
    assert_true(compiled_count > 0);
}

const struct fuzz_target fuzz_target = {.seed = seed, .bytes_max = BYTES_MAX, .packets = 5, .end = end};
