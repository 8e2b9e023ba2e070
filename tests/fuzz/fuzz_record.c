/* Recordings, plans and bundles of plans: refused with a reason, or sound: a recording is compiled, a bundle is written
 * and read again, and a plan runs. The executor may stall or fail, but touches nothing beyond its buffers. An input is
 * the content of a file, behind a byte that names its kind. The target closes the file, so that its checksum is right.
 * */
#include "tests/fuzz/fuzz.h"

#include "collectives/algorithms/build.h"
#include "collectives/check/check.h"
#include "collectives/compile/compile.h"
#include "collectives/file/plan_file.h"
#include "tests/schedules/trial.h"
#include "tests/unit/collectives/recording_sample.h"

enum { BYTES_MAX = 1 << 16, RANKS = 4, MEMORY_MAX = 1 << 20, TRACE = 0, BUNDLE, PLAN, KINDS };

static const struct cw_pack_kind kinds[KINDS] = {[TRACE] = {"CWTRACE\n", "trace", CW_RECORDING_VERSION},
                                                 [BUNDLE] = {"CWBOOK\r\n", "bundle of plans", CW_BUNDLE_VERSION},
                                                 [PLAN] = {"CWPLAN\r\n", "plan", CW_PLAN_VERSION}};
static uint64_t accepted[KINDS], compiled_count, runs, runs_failed;

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

/* The plan of an algorithm, with eager messages or without; NULL: it cannot be built for this problem. */
static void *plan_file_make(const struct cw_algorithm *algorithm, bool is_eager, size_t *length)
{
    const struct cw_problem_request request = {
        .collective = algorithm->collective,
        .ranks = RANKS,
        .element_bytes = 2,
        .ordered = cw_collective_reduces(algorithm->collective) && (algorithm->needs & CW_NEEDS_COMMUTATIVE) == 0,
        .count = algorithm->collective == CW_BARRIER ? 0 : 40,
    };
    const struct cw_parameters parameters = {.segment_bytes = 10, .eager_max_bytes = is_eager ? CW_EAGER_ALL : 0};
    struct cw_problem *problem = NULL;
    struct cw_plan *plan = NULL;
    char error[200];
    void *file;
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
    if (cw_algorithm_fits(algorithm, problem, error, sizeof(error)) != CW_OK ||
        cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error)) != CW_OK) {
        cw_problem_destroy(problem);
        return NULL;
    }
    assert_int_equal(cw_plan_encode(plan, &file, length), CW_OK);
    cw_plan_destroy(plan);
    return file;
}

/* Half of the seeds are a trace and a bundle, in turns; each other one is a plan of the next algorithm. */
static size_t seed(uint32_t index, uint8_t *bytes)
{
    static void *samples[PLAN];
    static size_t sample_bytes[PLAN];
    const struct cw_algorithm *algorithm = cw_algorithm_at(index / 4);
    uint32_t kind = index % 2 == 0 ? PLAN : index / 2 % 2;
    size_t length = 0;
    if (algorithm == NULL) {
        return 0;
    }
    void *file = kind == PLAN ? plan_file_make(algorithm, index / 2 % 2 == 0, &length) : NULL;
    if (file == NULL) {
        kind = kind == PLAN ? TRACE : kind;
        samples[kind] = samples[kind] == NULL ? file_make(kind, &sample_bytes[kind]) : samples[kind];
    }
    struct cw_unpacker unpacker;
    uint8_t *content;
    char error[400];
    assert_int_equal(cw_unpack_file(&kinds[kind], file != NULL ? file : samples[kind],
                                    file != NULL ? length : sample_bytes[kind], &content, &unpacker, error,
                                    sizeof(error)),
                     CW_OK);
    bytes[0] = (uint8_t)kind;
    length = 1 + unpacker.length;
    assert_true(length <= BYTES_MAX);
    memcpy(bytes + 1, content, unpacker.length);
    free(content);
    free(file);
    return length;
}

/* ---- files ---- */

/* Larger ones take too long. */
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

static bool is_runnable(const struct cw_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t rank = 0; rank < plan->problem->ranks && plan->problem->ranks <= 2 * RANKS; rank++) {
        bytes += plan->schedules[rank].scratch_bytes + cw_problem_buffer_bytes(plan->problem, rank, CW_BUFFER_SEND) +
                 cw_problem_buffer_bytes(plan->problem, rank, CW_BUFFER_RECEIVE);
    }
    return plan->problem->ranks <= 2 * RANKS && bytes <= MEMORY_MAX;
}

/* A valid plan is checked, and runs whatever the checker says. */
static bool plan_is_accepted(const void *file, size_t length)
{
    static const uint32_t buffers[] = {0, 1, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    char error[800] = "";
    struct cw_plan *plan = NULL;
    struct cw_check_report report;
    struct plan_trial *trial;
    if (cw_plan_decode(file, length, &plan, error, sizeof(error)) != CW_OK) {
        assert_true(error[0] != '\0' && plan == NULL);
        return false;
    }
    assert_int_equal(cw_plan_validate(plan, error, sizeof(error)), CW_OK);
    if (is_runnable(plan) && cw_check(plan, &report) == CW_OK &&
        plan_trial_create(plan, 1, &trial, error, sizeof(error)) == 0) {
        for (uint32_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++, runs++) {
            runs_failed += plan_trial_run(trial, runs, buffers[i], error, sizeof(error)) != 0;
        }
        plan_trial_destroy(trial);
    }
    cw_plan_destroy(plan);
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
    accepted[kind] += kind == TRACE    ? trace_is_accepted(file, length)
                      : kind == BUNDLE ? bundle_is_accepted(file, length)
                                       : plan_is_accepted(file, length);
    free(content.bytes);
    free(file);
    return 0;
}

static void end(uint64_t inputs)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        assert_in_range(accepted[kind], 1, inputs - 1);
    }
    assert_true(compiled_count > 0);
    assert_in_range(runs_failed, inputs / 100, runs - 1);
}

const struct fuzz_target fuzz_target = {.seed = seed, .bytes_max = BYTES_MAX, .packets = 5, .end = end};
