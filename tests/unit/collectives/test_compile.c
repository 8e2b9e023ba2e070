/* A reader finds all that recorders note. Recurring calls get plans, others do not; the groups used most are opened at
 * once, within the budget. */
#include "recording_sample.h"

#include "collectives/compile/compile.h"

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

static struct cw_compiled compile(struct cw_recording *recording, bool all, uint64_t least, uint32_t filters)
{
    const struct cw_recording *const recordings[] = {recording};
    struct cw_compiled compiled;
    char error[400] = "";
    const struct cw_compile_request request = {
        .recordings = recordings, .recording_count = 1, .calls_least = least, .all = all, .filter_budget = filters};
    assert_true_msg(cw_compile(&request, &compiled, error, sizeof(error)) == CW_OK, "%s", error);
    cw_recording_destroy(recording);
    return compiled;
}

static const struct cw_compile_row *row_of(const struct cw_compiled *compiled, enum cw_collective collective,
                                           uint64_t bytes)
{
    for (uint32_t i = 0; i < compiled->row_count; i++) {
        if (compiled->rows[i].collective == collective && (bytes == 0 || compiled->rows[i].bytes == bytes)) {
            return &compiled->rows[i];
        }
    }
    fail_msg("no row of %s, %llu bytes", cw_collective_name(collective), (unsigned long long)bytes);
    return NULL;
}

static void rows_become_a_matrix(void **state)
{
    struct sample sample;
    sample_create(&sample, CW_RECORDING_WIRE);
    sample_many(&sample, 0, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX);
    sample_many(&sample, 0, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX);
    sample_many(&sample, 5, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX); /* once, but an all-to-all-v recurs */
    struct cw_compiled compiled = compile(sample_recording(&sample), true, 3, 20);
    assert_int_equal(compiled.bundle->plan_count, 2);
    assert_int_equal(compiled.calls, 3);
    assert_int_equal(compiled.unjoined, 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct cw_problem *problem = compiled.bundle->plans[i].plan->problem;
        assert_int_equal(compiled.bundle->plans[i].calls, 2 - i);
        for (uint32_t pair = 0; pair < 16; pair++) {
            assert_int_equal(problem->counts[pair], sample_bytes(pair / 4, pair % 4, 5 * i));
        }
    }
    cw_compile_dispose(&compiled);
}

static void what_does_not_fit_together_is_left(void **state)
{
    struct sample sample;
    sample_create(&sample, 0);
    sample_many(&sample, 0, 0, CW_RECORDING_BY_PAIRS, 2);
    sample_many(&sample, 0, 0, CW_RECORDING_BY_PAIRS, 2);
    struct cw_compiled compiled = compile(sample_recording(&sample), true, 2, 20);
    assert_int_equal(compiled.bundle->plan_count, 0);
    assert_int_equal(compiled.rows[0].verdict, CW_COMPILE_MISMATCH);
    cw_compile_dispose(&compiled);
}

static void only_what_is_sooner_is_planned(void **state)
{
    struct sample sample;
    sample_create(&sample, CW_RECORDING_WIRE);
    for (int i = 0; i < 3; i++) {
        sample_bcast(&sample, 100000, "flat"); /* worse than a chain */
        sample_bcast(&sample, 300, "host");    /* nobody knows */
        sample_many(&sample, 0, CW_RECORDING_EXCHANGED, "all-to-all-based", UINT32_MAX);
        sample_many(&sample, 1, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX); /* the agreement alone would make it slower */
    }
    sample_bcast(&sample, 77, "flat");
    struct cw_compiled compiled = compile(sample_recording(&sample), false, 2, 20);
    const struct cw_compile_row *longest = row_of(&compiled, CW_BCAST, 100000);
    assert_int_equal(longest->verdict, CW_COMPILE_SERVED);
    assert_true(longest->then_ns < longest->now_ns && longest->then_ns > 0);
    assert_int_equal(row_of(&compiled, CW_BCAST, 300)->verdict, CW_COMPILE_UNKNOWN);
    assert_int_equal(row_of(&compiled, CW_BCAST, 77)->verdict, CW_COMPILE_RARE);
    assert_int_equal(row_of(&compiled, CW_ALLTOALL, 18640)->verdict, CW_COMPILE_SERVED); /* level 1 */
    assert_int_equal(row_of(&compiled, CW_ALLTOALL, 18641)->verdict, CW_COMPILE_SLOWER);
    assert_int_equal(compiled.bundle->plan_count, 2);
    cw_compile_dispose(&compiled);
}

/* Shared memory, queue pairs and packets have figures of their own: an algorithm gains more or less by them. */
static void plans_are_priced_by_what_carries_them(void **state)
{
    static const uint32_t flags[] = {0, CW_RECORDING_WIRE | CW_RECORDING_RDMA, CW_RECORDING_WIRE};
    double gains[3];
    for (uint32_t i = 0; i < 3; i++) {
        struct sample sample;
        sample_create(&sample, flags[i]);
        sample_bcast(&sample, 100000, "flat");
        sample_bcast(&sample, 100000, "flat");
        struct cw_compiled compiled = compile(sample_recording(&sample), true, 2, 20);
        const struct cw_compile_row *row = row_of(&compiled, CW_BCAST, 100000);
        gains[i] = row->now_ns / row->then_ns;
        cw_compile_dispose(&compiled);
    }
    assert_true(gains[0] > 1 && gains[1] > 1 && gains[2] > 1);
    assert_true(gains[0] != gains[1] && gains[1] != gains[2]);
}

static void ways_of_one_problem_are_one_plan(void **state)
{
    struct sample sample;
    sample_create(&sample, 0);
    sample_bcast(&sample, 300, "binomial"); /* before there is a segment */
    sample_bcast(&sample, 300, "host");
    sample_bcast(&sample, 300, "host");
    struct cw_compiled compiled = compile(sample_recording(&sample), true, 2, 20);
    assert_int_equal(compiled.row_count, 1);
    assert_int_equal(compiled.rows[0].calls, 3);
    assert_string_equal(compiled.rows[0].now, "host");
    assert_int_equal(compiled.bundle->plan_count, 1);
    cw_compile_dispose(&compiled);
}

/* Calls on communicators of ranks 0 and 2, which multicast: context 100 + i comes i + 1 times. */
static void groups_note(struct sample *sample, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t rank = 0; rank < SAMPLE_RANKS; rank += 2) {
            uint32_t members[2] = {0, 2};
            const struct cw_recording_comm comm = {100 + i, 2, CW_RECORDING_WIRE | CW_RECORDING_MULTICASTS, members};
            struct cw_recording_form form = {.comm = cw_recorder_comm(sample->recorders[rank], &comm),
                                             .collective = CW_BCAST,
                                             .element_bytes = 1,
                                             .count = 100,
                                             .algorithm = "multicast"};
            for (uint32_t call = 0; call <= i; call++) {
                assert_true(cw_recorder_call(sample->recorders[rank], &form, 2, call + 1, 0, 1000));
            }
        }
    }
}

static void the_budget_goes_to_the_groups_used_most(void **state)
{
    struct sample sample;
    size_t opened = 0;
    sample_create(&sample, 0);
    groups_note(&sample, 6);
    struct cw_compiled compiled = compile(sample_recording(&sample), false, 2, 5);
    assert_int_equal(compiled.group_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(compiled.groups[i].uses, 6 - i);
        assert_int_equal(compiled.groups[i].at_once, i < 3); /* two addresses are shared by all groups */
        opened += compiled.bundle->comms[i].opens_group;
    }
    assert_int_equal(opened, 3);
    cw_compile_dispose(&compiled);
}

static void other_runs_are_distinguished(void **state)
{
    struct sample sample;
    struct cw_recording *recordings[2];
    struct cw_compiled compiled;
    char error[400];
    for (int i = 0; i < 2; i++) {
        sample_create(&sample, 0);
        sample_bcast(&sample, 300, "flat");
        recordings[i] = sample_recording(&sample);
    }
    const struct cw_compile_request request = {.recordings = (const struct cw_recording *const *)recordings,
                                               .recording_count = 2,
                                               .calls_least = 2,
                                               .all = true,
                                               .filter_budget = 20};
    assert_int_equal(cw_compile(&request, &compiled, error, sizeof(error)), CW_OK);
    assert_int_equal(compiled.bundle->plan_count, 1); /* once in each run */
    cw_compile_dispose(&compiled);
    recordings[1]->program[0] = 'x';
    assert_int_equal(cw_compile(&request, &compiled, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "program sample"));
    recordings[0]->ranks--;
    assert_int_equal(cw_compile(&request, &compiled, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "ranks"));
    recordings[0]->ranks++;
    cw_recording_destroy(recordings[0]);
    cw_recording_destroy(recordings[1]);
}

static void bundles_are_read_as_written(void **state)
{
    struct sample sample;
    struct cw_bundle *bundle = NULL;
    void *file;
    size_t length;
    char error[400] = "";
    sample_create(&sample, CW_RECORDING_WIRE | CW_RECORDING_MULTICASTS);
    for (int i = 0; i < 2; i++) {
        sample_bcast(&sample, 300, "multicast");
        sample_many(&sample, 0, 0, CW_RECORDING_BY_PAIRS, UINT32_MAX);
    }
    struct cw_compiled compiled = compile(sample_recording(&sample), true, 2, 20);
    assert_int_equal(cw_bundle_encode(compiled.bundle, &file, &length), CW_OK);
    assert_int_equal(cw_bundle_decode(file, length, &bundle, error, sizeof(error)), CW_OK);
    assert_string_equal(bundle->program, "sample");
    assert_int_equal(bundle->ranks, SAMPLE_RANKS);
    assert_int_equal(bundle->plan_count, 2);
    assert_true(bundle->comms[0].opens_group);
    for (uint32_t i = 0; i < bundle->plan_count; i++) {
        assert_true(cw_bundle_same(bundle->plans[i].plan->problem, compiled.bundle->plans[i].plan->problem));
        assert_int_equal(bundle->plans[i].now_ns, compiled.bundle->plans[i].now_ns);
    }
    cw_bundle_destroy(bundle);
    cw_compile_dispose(&compiled);
    ((uint8_t *)file)[length - 1] ^= 1;
    assert_int_equal(cw_bundle_decode(file, length, &bundle, error, sizeof(error)), CW_ERROR_ARGUMENT);
    free(file);
}

int main(void)
{
    return TESTS_RUN(
        what_is_noted_is_read, a_full_recorder_counts, rows_become_a_matrix, what_does_not_fit_together_is_left,
        only_what_is_sooner_is_planned, plans_are_priced_by_what_carries_them, ways_of_one_problem_are_one_plan,
        the_budget_goes_to_the_groups_used_most, other_runs_are_distinguished, bundles_are_read_as_written);
}
