/* Which ranks share memory with this one, and which ranks share cores with each other. */
#include "control/job/private.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "control/settings/setting.h"
#include "dataplane/base/machine.h"
#include "dataplane/base/process.h"
#include "dataplane/base/virtual.h"
#include "dataplane/status.h"

static int boot_read(char boot[CW_MACHINE_BOOT_BYTES], const struct job_report *report)
{
    return cw_machine_boot(boot) ? CW_OK
                                 : FAIL(report, cw_status_of_errno(errno), "%s: %s%s", CW_MACHINE_BOOT_PATH,
                                        strerror(errno), errno == ENOENT ? " (mount /proc)" : cw_errno_remedy(errno));
}

/* Whether the kernel keeps this process from others of its user (prctl(2), PR_SET_DUMPABLE): they cannot get to its
 * memory. Programs that their user may run and not read are so, and those with file capabilities. */
static bool is_hidden(void)
{
    return geteuid() != 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1;
}

int job_host_identify(const struct cw_bootstrap_info *info, uint8_t host[16], uint64_t *own_machine, int *emulated,
                      const struct job_report *report)
{
    struct {
        char boot[CW_MACHINE_BOOT_BYTES];
        uint64_t processes; /* the namespace that process numbers are from */
        uint64_t numbers;   /* the /proc that has other ones; 0: it has these */
        uint64_t user;
        uint64_t hidden; /* the process, if others of its user cannot look into its /proc; else 0 */
        int emulated;
    } machine;
    struct stat status;
    const char *word = cw_setting(CW_SETTING_HOST);
    memset(&machine, 0, sizeof(machine));
    int failed = boot_read(machine.boot, report);
    if (failed != CW_OK) {
        return failed;
    }
    if (stat("/proc/self/ns/pid", &status) != 0) {
        return FAIL(report, CW_ERROR_SYSTEM, "/proc/self/ns/pid: %s (mount /proc)", strerror(errno));
    }
    machine.processes = status.st_ino;
    machine.numbers = cw_process_number() != getpid() && stat("/proc", &status) == 0 ? status.st_dev : 0;
    machine.user = geteuid();
    machine.hidden = is_hidden() ? (uint64_t)getpid() : 0;
    failed = cw_wire_host(info->rank, info->size, &machine.emulated, report->text, report->bytes);
    if (failed != CW_OK) {
        return failed;
    }
    *emulated = machine.emulated;
    uint8_t boot[crypto_generichash_BYTES_MIN];
    (void)crypto_generichash(boot, sizeof(boot), (const uint8_t *)machine.boot, sizeof(machine.boot), NULL, 0);
    memcpy(own_machine, boot, sizeof(*own_machine));
    crypto_generichash_state state;
    if (crypto_generichash_init(&state, NULL, 0, 16) != 0 ||
        crypto_generichash_update(&state, (const uint8_t *)&machine, sizeof(machine)) != 0 ||
        crypto_generichash_update(&state, (const uint8_t *)(word != NULL ? word : ""),
                                  word != NULL ? strlen(word) : 0) != 0 ||
        crypto_generichash_final(&state, host, 16) != 0) {
        return FAIL(report, CW_ERROR_SYSTEM, "libsodium cannot hash the host's identity");
    }
    return CW_OK;
}

struct place_of {
    uint64_t machine;
    struct cw_process_cores cores;
};

static int machines_compare(const void *one, const void *other)
{
    uint64_t left = ((const struct place_of *)one)->machine, right = ((const struct place_of *)other)->machine;
    return left < right ? -1 : left > right;
}

int job_crowding_find(struct cw_job *job, const struct job_report *report)
{
    uint32_t ranks = job->info.size;
    job->crowding = 1;
    if (cw_virtual_is_on()) {
        return CW_OK; /* each rank has a simulated core */
    }
    struct place_of *places = calloc(ranks, sizeof(*places));
    if (places == NULL) {
        return FAIL(report, CW_ERROR_MEMORY, "no memory for the job");
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        places[rank] = (struct place_of){.machine = job->machines[rank], .cores = job->cores[rank]};
    }
    qsort(places, ranks, sizeof(*places), machines_compare);
    for (uint32_t first = 0, next; first < ranks; first = next) {
        for (next = first; next < ranks && places[next].machine == places[first].machine; next++) {
        }
        for (uint32_t at = first; at < next; at++) {
            uint32_t crowding = cw_process_crowding(next - first, places[at].cores);
            job->crowding = crowding > job->crowding ? crowding : job->crowding;
        }
    }
    free(places);
    return CW_OK;
}

static struct cw_dedicate_place place_find(const struct cw_job *job, bool are_all_here)
{
    struct cw_dedicate_place place = {.number = job->info.rank, .count = job->info.size, .cores = cw_process_cores()};
    CPU_ZERO(&place.allowed);
    (void)sched_getaffinity(0, sizeof(place.allowed), &place.allowed);
    if (!are_all_here) {
        place.number = place.count = 0;
        for (uint32_t rank = 0; rank < job->info.size; rank++) {
            bool is_here = job->machines[rank] == job->machines[job->info.rank];
            place.number += is_here && rank < job->info.rank;
            place.count += is_here;
        }
    }
    return place;
}

int job_dedicate(struct cw_job *job, bool are_all_here, const struct job_report *report)
{
    const char *told = cw_setting(CW_SETTING_DEDICATED_CORE);
    struct cw_dedicate_wish wish;
    char wrong[2 * CW_DEDICATE_TEXT_BYTES];
    if (told != NULL && told[0] != 0) {
        return cw_dedicate_parse(told, &job->dedicated) == CW_OK
                   ? CW_OK
                   : FAIL(report, CW_ERROR_ARGUMENT,
                          "CAUSEWAY_DEDICATED_CORE is '%.60s': `causeway run` sets it; set CAUSEWAY_DEDICATED instead",
                          told);
    }
    if (cw_dedicate_read(cw_setting(CW_SETTING_DEDICATED), &wish, wrong, sizeof(wrong)) != CW_OK) {
        return FAIL(report, CW_ERROR_ARGUMENT, "CAUSEWAY_DEDICATED: %s", wrong);
    }
    struct cw_dedicate_place place = place_find(job, are_all_here);
    cpu_set_t rest;
    cw_dedicate_choose(&wish, &place, &rest, &job->dedicated);
    if (job->dedicated.count > 0 && !CPU_EQUAL(&rest, &place.allowed)) {
        (void)sched_setaffinity(0, sizeof(rest), &rest); /* else they share it, which is slow but right */
    }
    return CW_OK;
}
