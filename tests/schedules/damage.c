/* damage IN OUT: writes the plan in IN (of a bundle its first one) so that the checker refuses it, with a checksum that
 * fits. */
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
        if (cw_check_refuse(plan, error, sizeof(error)) == CW_ERROR_ARGUMENT) {
            return true;
        }
    }
    return false;
}

/* Its bytes, to be freed; NULL: none. */
static void *damaged(const char *bytes, size_t length, size_t *out_length)
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
        if (plan_damage(plan)) {
            (void)cw_plan_encode(plan, &out, out_length);
        }
        cw_plan_destroy(plan);
    }
    return out;
}

int main(int argc, char **argv)
{
    size_t length = 0;
    size_t out_length = 0;
    char *bytes = argc == 3 ? cw_settings_read(argv[1], FILE_MAX, &length) : NULL;
    void *out = bytes != NULL ? damaged(bytes, length, &out_length) : NULL;
    bool written = out != NULL && cw_settings_write(argv[2], out, out_length);
    free(bytes);
    free(out);
    if (!written) {
        fprintf(stderr, "usage: damage IN OUT, IN a plan or a bundle that can be damaged\n");
    }
    return written ? 0 : 2;
}
