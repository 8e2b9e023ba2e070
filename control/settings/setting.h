/* Setting: everything that a user, a file or the launcher sets in Causeway by name, in one table. Nothing else reads or
 * changes the environment.
 *
 * A setting has the value of, in this order:
 *   command line   an option of `causeway run` and other commands (cw_setting_set)
 *   environment    CAUSEWAY_NAME=VALUE
 *   file           a line NAME=VALUE of $CAUSEWAY_SETTINGS, else $XDG_CONFIG_HOME/causeway/settings, else
 *                  $HOME/.config/causeway/settings (CAUSEWAY_SETTINGS=none: no file); # begins a comment line
 *   default        the value is NULL, and the reader has a default
 *
 * A launcher calls cw_settings_export, so that all processes of a job have the values of its file.
 *
 * Thread: any for cw_setting; the others one at a time, before there are threads that read (setenv(3)). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, kind, default, meaning). The names are those of the environment without CAUSEWAY_. */
#define CW_SETTING_LIST(X)                                                                                       \
    X(ALGORITHM, USER, "none", "algorithms by name, instead of the choice of MPI")                               \
    X(COMPRESSION, USER, "auto", "compression in flight: auto (if it shortens delivery), off, on, or a codec")   \
    X(CONGESTION, COMPARE, "delay", "loss: congestion control as in the TCP of 2003, to compare with")           \
    X(COPY, COMPARE, "once", "twice: processes of a host do not read each other's memory")                       \
    X(DEDICATED, USER, "none", "cores for dataplane threads")                                                    \
    X(EAL, USER, "none", "options of DPDK's EAL, for a NIC of the rank's own")                                   \
    X(ENCRYPT, USER, "wide", "packets that are encrypted: wide (between clusters), all, or off")                 \
    X(EXPLAIN, USER, "0", "1: each rank reports paths, algorithms and counters at the end")                      \
    X(FAILURE_TIMEOUT, USER, "10 s",                                                                             \
      "maximum silence of a rank that has requests outstanding, before it is declared failed")                   \
    X(HOST, COMPARE, "none", "a name for the host of a rank, in place of its own")                               \
    X(INTEGRITY, USER, "auto", "end-to-end: compute CRCs even if NICs, kernels or memory make them unnecessary") \
    X(JOB_KEY, USER, "made by the launcher", "32 hexadecimal digits that all ranks of a job share")              \
    X(MULTICAST, USER, "on", "off: collectives do not use multicast groups")                                     \
    X(MULTICAST_FILTERS, USER, "20", "multicast addresses that a port accepts at a time, 2 to 64")               \
    X(PACING, USER, "on", "send rate between clusters: on (a share of the links), off, or found (measured)")     \
    X(PLAN, USER, "none", "file of plans for recurring collective calls")                                        \
    X(PLOGP, USER, "none", "file of measured parameters, from which MPI chooses algorithms")                     \
    X(PORTS, USER, "none", "UDP ports that ranks may use between hosts")                                         \
    X(RDMA, USER, "auto", "RDMA device: auto (the one that has the address of the rank), off, or a name")        \
    X(RECORD, USER, "none", "file that records the collective calls of a run")                                   \
    X(SETTINGS, USER, "none", "file of settings; none: no file")                                                 \
    X(TELEMETRY, USER, "off", "on: DPDK serves its telemetry, for dpdk-telemetry")                               \
    X(TOPOLOGY, USER, "none", "file of the clusters, hosts and links of a wide area")                            \
    X(TRANSPORT, USER, "none", "transport, interface, address or subnet for packets to other hosts")             \
    X(WATCHDOG, USER, "60 s", "duration of an MPI wait after which all ranks report the call that blocks them")  \
    X(DEDICATED_CORE, LAUNCHER, "", "the cores of this rank's dataplane threads")                                \
    X(EMULATE, LAUNCHER, "", "the emulated or simulated network")                                                \
    X(JOB_KEY_FD, LAUNCHER, "", "a descriptor of the job's key")                                                 \
    X(MESSAGES, LAUNCHER, "", "where the kernels' message counts go")                                            \
    X(MESSAGES_COUNT, LAUNCHER, "", "which of them are counted")                                                 \
    X(SEED, LAUNCHER, "", "the seed of a simulation, for the program")                                           \
    X(SIMULATION_SEED, LAUNCHER, "", "the seed of a repetition")                                                 \
    X(WATCH_FD, LAUNCHER, "", "a descriptor that ends with the launcher")                                        \
    X(WORKER, LAUNCHER, "", "the process from which all ranks of a host descend")

enum cw_setting {
#define X(name, kind, standard, meaning) CW_SETTING_##name,
    CW_SETTING_LIST(X)
#undef X
        CW_SETTINGS
};

enum cw_setting_kind {
    CW_SETTING_USER,     /* for users */
    CW_SETTING_COMPARE,  /* for tests and comparisons */
    CW_SETTING_LAUNCHER, /* from the launcher to other processes of the job: not for users */
};

/* The value; NULL: none, or an empty one. Valid until the setting changes. */
const char *cw_setting(enum cw_setting setting);
/* "default", "environment", "command line", or the name of the file. */
const char *cw_setting_origin(enum cw_setting setting);
/* The name in the environment. */
const char *cw_setting_name(enum cw_setting setting);
const char *cw_setting_meaning(enum cw_setting setting);
/* The default, as text. */
const char *cw_setting_default(enum cw_setting setting);
enum cw_setting_kind cw_setting_kind(enum cw_setting setting);

/* Sets the value, by an option, for this process and its children. False: there is no memory. */
bool cw_setting_set(enum cw_setting setting, const char *value);
/* The same of "CAUSEWAY_NAME=VALUE", or of another variable. */
bool cw_environment_set(const char *name, const char *value);
/* No value, here and in children; a value of the file does not count either. */
void cw_setting_clear(enum cw_setting setting);
/* The children have the values of the file, and read no file of their own: processes of one job agree. */
void cw_settings_export(void);

/* Calls `complain` with a line for each variable CAUSEWAY_... that is no setting, for each line of the file that is
 * none, and for a file that was named and cannot be read. */
void cw_settings_check(void (*complain)(void *context, const char *line), void *context);

/* A variable of others, such as HOME; NULL: not set. */
char *cw_environment(const char *name);
void cw_environment_clear(const char *name);
