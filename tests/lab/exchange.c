/* exchange [ROUNDS | abort CODE | wait]: ranks learn values of each other by the launcher's table, and nothing else.
 *
 *   ROUNDS      (2) each puts two keys in each round, one of them as long as a value may be; all get all of them after
 *               a fence. Then each writes its number, and says goodbye
 *   abort CODE  rank 1 has the launcher end the job; the others wait for it in a fence
 *   wait        once all are there, all but rank 0 wait in a fence, for ever; rank 0 says so, and looks whether the
 *               launcher is gone */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control/bootstrap/bootstrap.h"
#include "dataplane/status.h"

enum {
    CUT = 7, /* exit code: the launcher is gone */
    SHORT_VARIES = 120,
};

static struct cw_bootstrap *bootstrap;

static void must(int status, const char *what)
{
    if (status != CW_OK) {
        fprintf(stderr, "exchange: %s: %d: %s\n", what, status, cw_bootstrap_failure(bootstrap));
        exit(1);
    }
}

/* As long as it may be; another one for each rank and round. */
static void long_value(char *value, uint32_t rank, uint32_t round, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        value[i] = (char)('a' + (rank + round + i) % 26);
    }
    value[length] = 0;
}

/* Of another length for each rank and round, and with characters that launchers' lines use. */
static void short_value(char *value, uint32_t rank, uint32_t round)
{
    int begun = snprintf(value, CW_BOOTSTRAP_VALUE_MAX, "%%x,/(%" PRIu32 ")", rank);
    long_value(value + begun, rank, round, (rank * 37 + round * 11) % SHORT_VARIES);
}

static void round_run(const struct cw_bootstrap_info *info, uint32_t round)
{
    char key[CW_BOOTSTRAP_KEY_MAX + 1], value[CW_BOOTSTRAP_VALUE_MAX + 1], expected[CW_BOOTSTRAP_VALUE_MAX + 1];
    snprintf(key, sizeof(key), "card-%" PRIu32 ".%" PRIu32, info->rank, round);
    long_value(value, info->rank, round, info->value_max);
    must(cw_bootstrap_put(bootstrap, key, value), "put");
    snprintf(key, sizeof(key), "short-%" PRIu32 "-%" PRIu32, round, info->rank);
    short_value(value, info->rank, round);
    must(cw_bootstrap_put(bootstrap, key, value), "put");
    must(cw_bootstrap_fence(bootstrap), "fence");
    for (uint32_t rank = 0; rank < info->size; rank++) {
        snprintf(key, sizeof(key), "card-%" PRIu32 ".%" PRIu32, rank, round);
        must(cw_bootstrap_get(bootstrap, key, value, sizeof(value)), key);
        long_value(expected, rank, round, info->value_max);
        must(strcmp(value, expected) == 0 ? CW_OK : CW_ERROR_SYSTEM, "a long value");
        snprintf(key, sizeof(key), "short-%" PRIu32 "-%" PRIu32, round, rank);
        must(cw_bootstrap_get(bootstrap, key, value, sizeof(value)), key);
        short_value(expected, rank, round);
        must(strcmp(value, expected) == 0 ? CW_OK : CW_ERROR_SYSTEM, "a short value");
    }
    if (cw_bootstrap_get(bootstrap, "nobody", value, sizeof(value)) != CW_ERROR_NOT_FOUND) {
        must(CW_ERROR_SYSTEM, "a key that no rank has put");
    }
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "2";
    char error[512] = "";
    int status = cw_bootstrap_open(&bootstrap, error, sizeof(error));
    if (status != CW_OK) {
        fprintf(stderr, "exchange: %d: %s\n", status, error);
        return 2;
    }
    struct cw_bootstrap_info info = cw_bootstrap_info(bootstrap);
    bool aborts = strcmp(what, "abort") == 0;
    bool waits = strcmp(what, "wait") == 0;
    if (aborts || waits) {
        must(cw_bootstrap_fence(bootstrap), "fence");
    }
    if (aborts && info.rank == 1) {
        cw_bootstrap_abort(bootstrap, count > 2 ? (int)strtol(arguments[2], NULL, 10) : 1, "aborts");
    }
    if (waits && info.rank == 0) {
        printf("waiting %d\n", getpid());
        fflush(stdout);
        while (!cw_bootstrap_is_cut(bootstrap)) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
        return CUT;
    }
    if (aborts || waits) {
        status = cw_bootstrap_fence(bootstrap);
        fprintf(stderr, "exchange: fence: %d: %s\n", status, cw_bootstrap_failure(bootstrap));
        return status == CW_ERROR_CLOSED ? CUT : 1;
    }
    uint32_t rounds = (uint32_t)strtoul(what, NULL, 10);
    for (uint32_t round = 0; round < rounds; round++) {
        round_run(&info, round);
    }
    printf("rank %" PRIu32 " of %" PRIu32 " universe %" PRIu32 " app %d by %s\n", info.rank, info.size,
           info.universe_size, info.app_number, info.launcher);
    cw_bootstrap_close(bootstrap);
    return 0;
}
