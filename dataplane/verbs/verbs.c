/* Loads libcauseway_verbs.so when the first device is wanted. */
#include <pthread.h>
#include <stdio.h>

#include "dataplane/status.h"
#include "dataplane/verbs/module.h"

#if defined(CW_HAVE_VERBS)
#define REMEDY "apt-get install libibverbs1 ibverbs-providers"
#else
#define REMEDY "this build has no verbs: install libibverbs-dev and build again"
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct cw_verbs_module *table;
static char obstacle[CW_VERBS_ERROR_BYTES];

static void load(void)
{
    table = (const struct cw_verbs_module *)cw_module_load(CW_VERBS_LIBRARY, CW_VERBS_TABLE, CW_VERBS_BUILD, obstacle,
                                                           sizeof(obstacle)); /* its first member */
}

int cw_verbs_open(const struct cw_verbs_config *config, struct cw_verbs_device **device, char *error,
                  size_t error_bytes)
{
    pthread_once(&once, load);
    if (table == NULL) {
        snprintf(error, error_bytes, "RDMA needs libibverbs: %s; " REMEDY, obstacle);
        return CW_ERROR_UNSUPPORTED;
    }
    return table->open(config, device, error, error_bytes);
}
