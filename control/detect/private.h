/* What the files of detect share: detect.c whom to measure, detect/clusters.c what comes of it, detect/text.c how it is
 * told. */
#pragma once

#include <stdbool.h>

#include "control/detect/detect.h"

struct cw_detect {
    uint32_t hosts;
    uint32_t leader_count;
    uint32_t leaders[CW_DETECT_LEADERS_MAX];
    uint32_t awaited; /* round trips to the last leader that have not been taken */
    bool is_done;
    uint64_t *trips_ns;   /* [host * CW_DETECT_LEADERS_MAX + leader]; 0: not measured */
    uint64_t *sorted_ns;  /* room for all of them */
    uint64_t limit_ns;    /* below: close; UINT64_MAX: all are */
    uint32_t *cluster_of; /* per host, while clusters are made: another host of the same one */
    uint32_t cluster_count;
    uint64_t within_ns;                                                   /* the longest within a cluster; 0: none */
    uint64_t between_ns[CW_DETECT_CLUSTERS_MAX * CW_DETECT_CLUSTERS_MAX]; /* only if there are no more than that */
};

/* All has been measured, and the limit is known. */
void detect_clusters_make(struct cw_detect *detect);
