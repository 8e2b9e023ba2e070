/* work: a host's part of a job: programs, places of ranks, variables, the key.
 *
 * The launcher makes it from its configuration; an agent takes it from the payload of LAUNCH_START.
 *
 * Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/launch/frame.h"
#include "control/launch/launch.h"

enum { LAUNCH_JOB_NAME_BYTES = 64, LAUNCH_FANOUT = 32, LAUNCH_KEY_BYTES = 16 };

struct launch_work {
    char name[LAUNCH_JOB_NAME_BYTES]; /* of the job */
    uint32_t rank_count;
    struct cw_launch_program *programs; /* ranks are theirs in order */
    size_t program_count;
    uint32_t *host_of; /* per rank */
    uint32_t host_count;
    bool is_elsewhere; /* no rank runs on the launcher's host */
    const char **host_names;
    const char *launcher;   /* as cw_launch_config has it */
    const char *executable; /* this command, as other hosts may have it */
    const char *binding;    /* "none", "core", "numa", "hwthread" */
    bool by_numa;           /* the binding goes around the NUMA domains */
    const char *directory;  /* of ranks whose program has none */
    int64_t stdin_rank;
    char **variables; /* NAME=VALUE of the launcher, for ranks of other hosts; NULL last */
    bool has_key;
    uint8_t key[LAUNCH_KEY_BYTES];
    struct launch_bytes text; /* the buffer of the other fields, if it was received */
};

/* The program of a rank. */
const struct cw_launch_program *launch_work_program(const struct launch_work *work, uint32_t rank);
/* Ranks of a host. */
uint32_t launch_work_count(const struct launch_work *work, uint32_t host);
/* Whether ranks run on other hosts than the launcher's: they are named in messages, and may be out of reach. Of the
 * launcher's work only. */
bool launch_work_is_spread(const struct launch_work *work);
/* "(vector,(0,2,4))", as PMI-1 knows it, if it fits: where ranks run. False: it does not. */
bool launch_work_mapping(const struct launch_work *work, char *text, size_t bytes);

/* Appends what an agent on `hosts[0]` needs, which starts those on the others itself. CW_OK, CW_ERROR_MEMORY. */
int launch_work_write(const struct launch_work *work, const uint32_t *hosts, uint32_t count, struct launch_bytes *out);
/* Parses it: the caller frees *hosts and disposes of *work. CW_OK; CW_ERROR_UNSUPPORTED: another version, in *version;
 * CW_ERROR_ARGUMENT; CW_ERROR_MEMORY. */
int launch_work_read(const struct launch_frame *frame, struct launch_work *work, uint32_t **hosts, uint32_t *count,
                     const char **version);
void launch_work_dispose(struct launch_work *work);
