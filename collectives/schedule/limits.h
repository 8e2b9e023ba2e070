/* All limits of collectives/ in one place. */
#pragma once

enum {
    CW_RANKS_MAX = 1 << 20,
    CW_CLUSTERS_MAX = 4096,
    CW_OPS_MAX = 1 << 24,          /* of one rank */
    CW_DEPENDENCIES_MAX = 1 << 26, /* of one rank */
    CW_PHASES_MAX = 65535,
    CW_PHASES_APART_MAX = 2,
    CW_BACK_MAX = 63,      /* iterations that a dependency may reach back */
    CW_REPEAT_WINDOW = 64, /* an op's iteration i starts only when its iteration i - 64 has completed */
    CW_REPEAT_COUNT_MAX = 1 << 17,
    CW_BARRIERS_MAX = 4096,    /* of one schedule */
    CW_HOST_OPS_MAX = 64,      /* of one schedule */
    CW_SCHEDULE_TAG_BITS = 20, /* payload of a notified put in addition to its lane (dataplane/limits.h) */
    CW_LONG_PUT_BYTES =
        16384, /* shorter ones leave an endpoint in one piece even if several flows have something to send */
    CW_ELEMENT_BYTES_MAX = 1 << 16,
    CW_COUNT_MATRIX_MESSAGES_MAX = 1 << 25, /* of an all-to-all in phases: all pairs of 5,793 ranks */
    CW_ALGORITHM_NAME_MAX = 48,             /* bytes with the final zero */
};

/* Bytes of one buffer of one rank. */
#define CW_BUFFER_BYTES_MAX (1ull << 46)

/* Memory of all schedules of a plan. */
#define CW_PLAN_BYTES_MAX (4ull << 30)

/* ... of a plan from a file: this constant, and this multiple of the file's length. A plan that compresses better is
 * stored as it is. */
#define CW_PLAN_FILE_FREE_BYTES (64ull << 20)
#define CW_PLAN_FILE_FACTOR     256ull
