/* damage IN OUT [KIND SITE]: changes the plan in IN (of a bundle the first one) so that the checker refuses it, and
 * writes it to OUT with a checksum that fits. Prints the fault that the checker finds. Without KIND and SITE
 * (tests/schedules/mutate.h) the first op whose absence is a fault is left out. Exit codes: 0, 1 if that change is no
 * fault, 2 wrong usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/check/check.h"
#include "collectives/file/bundle.h"
#include "collectives/file/plan_file.h"
#include "control/settings/settings.h"
#include "dataplane/status.h"
#include "tests/schedules/mutate.h"

enum { FILE_MAX = 1 << 24 };

/* The first op whose absence the checker minds. */
static bool plan_damage(struct cw_plan *plan)
{
    char error[500];
    bool changed = false;
    for (uint32_t site = 0; plan_mutate(plan, MUTATE_DROP_OP, site, &changed); site++) {
        if (cw_check_validate(plan, error, sizeof(error)) == CW_ERROR_ARGUMENT) {
            return true;
        }
    }
    return false;
}

/* Whether the plan has this site, the change there is a fault, and a file can hold the plan. */
static bool plan_damage_at(struct cw_plan *plan, enum mutation kind, uint32_t site)
{
    char error[400];
    struct cw_check_report report;
    struct cw_plan *read = NULL;
    void *bytes = NULL;
    size_t length;
    bool changed = false;
    if (!plan_mutate(plan, kind, site, &changed) || !changed || cw_check(plan, &report) != CW_OK ||
        report.fault == CW_CHECK_PASSED || report.fault == CW_CHECK_INVALID) {
        return false;
    }
    bool fits = cw_plan_encode(plan, &bytes, &length) == CW_OK &&
                cw_plan_decode(bytes, length, &read, error, sizeof(error)) == CW_OK;
    cw_plan_destroy(read);
    free(bytes);
    if (fits) {
        puts(cw_check_fault_name(report.fault));
    }
    return fits;
}

/* Its bytes, to be freed; NULL: none. */
static void *damaged(const char *bytes, size_t length, char *const *at, size_t *out_length)
{
    char error[400];
    void *out = NULL;
    struct cw_plan *plan = NULL;
    struct cw_bundle *bundle = NULL;
    if (cw_bundle_is(bytes, length)) {
        if (cw_bundle_decode(bytes, length, &bundle, error, sizeof(error)) == CW_OK && bundle->plan_count > 0 &&
            plan_damage(bundle->plans[0].plan)) {
            (void)cw_bundle_encode(bundle, &out, out_length);
        }
        cw_bundle_destroy(bundle);
    } else if (cw_plan_decode(bytes, length, &plan, error, sizeof(error)) == CW_OK) {
        if (at == NULL ? plan_damage(plan) : plan_damage_at(plan, (enum mutation)atoi(at[0]), (uint32_t)atoi(at[1]))) {
            (void)cw_plan_encode(plan, &out, out_length);
        }
        cw_plan_destroy(plan);
    }
    return out;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 5) {
        fprintf(stderr, "usage: damage IN OUT [KIND SITE], IN a plan or a bundle\n");
        return 2;
    }
    size_t length = 0;
    size_t out_length = 0;
    char *bytes = cw_settings_read(argv[1], FILE_MAX, &length);
    void *out = bytes != NULL ? damaged(bytes, length, argc == 5 ? argv + 3 : NULL, &out_length) : NULL;
    bool written = out != NULL && cw_settings_write(argv[2], out, out_length);
    free(bytes);
    free(out);
    return written ? 0 : 1;
}
