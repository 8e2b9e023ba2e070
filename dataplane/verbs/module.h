/* The inside of libcauseway_verbs.so, which has what needs libibverbs (ibverbs.c): its table. */
#pragma once

#include "dataplane/base/module.h"
#include "dataplane/verbs/device.h"

struct cw_verbs_module {
    struct cw_module module; /* of CW_VERBS_BUILD */
    int (*open)(const struct cw_verbs_config *config, struct cw_verbs_device **device, char *error, size_t error_bytes);
    int (*find)(const struct cw_verbs_config *config, struct cw_verbs_port *port, char *error, size_t error_bytes);
    int (*list)(struct cw_verbs_port *ports, uint32_t count_max, uint32_t *count, char *error, size_t error_bytes);
};

#define CW_VERBS_LIBRARY "libcauseway_verbs.so"
#define CW_VERBS_TABLE   "cw_verbs_table"
#define CW_VERBS_BUILD   "causeway " CW_VERSION " verbs 3" /* another number for another table */
