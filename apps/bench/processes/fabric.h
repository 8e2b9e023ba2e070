/* Bench fabric: a network between two processes of this machine, made for one benchmark and taken away afterwards.
 *
 * Order of calls: bench_fabric_create (before the fork), bench_fabric_open in each process, bench_fabric_destroy in the
 * first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/port/ethdev.h"

/* A wait for another process of a benchmark ends after this time, in nanoseconds. Only a hang lasts so long: a process
 * that ends ends the waits for it, and a busy machine may keep a process from a core for many seconds. */
#define BENCH_HANG_NS 600000000000ull

enum bench_fabric_kind {
    BENCH_FABRIC_MEMIF,
    BENCH_FABRIC_SWITCH,
    BENCH_FABRIC_DEVICES, /* the user's, which reach each other */
};

struct bench_fabric {
    enum bench_fabric_kind kind;
    uint32_t mtu_bytes;
    char folder[64];        /* of sockets; "" if none */
    char socket[96];        /* memif */
    const char *devices[2]; /* of each side (control/net/device.h); NULL: none are named */
    int switch_output;
    pid_t switch_process; /* 0: none */
    pid_t cleaner;        /* takes everything away if this process cannot; 0: none */
    int cleaner_end;      /* of a pipe to it */
};

/* Makes the common parts of both sides. `options`: of a switch, ended by NULL; NULL: none. One of enum app_exit; an
 * error has been reported. */
int bench_fabric_create(struct bench_fabric *fabric, enum bench_fabric_kind kind, uint32_t mtu_bytes,
                        const char *const *options);

/* The same of two devices of the user's, which are taken as they are. */
void bench_fabric_devices(struct bench_fabric *fabric, const char *const devices[2], uint32_t mtu_bytes);

/* Opens the port of a side. Side 0 first: it is the server of a memif. One of enum app_exit; an error has been
 * reported. */
int bench_fabric_open(const struct bench_fabric *fabric, uint32_t side, bool doorbell, struct cw_port **port);

/* Waits until the link is up, at most 30 s. One of enum app_exit; an error has been reported. */
int bench_fabric_await(struct cw_port *port);

/* False once the switch has ended; true without one. The process that called bench_fabric_create. */
bool bench_fabric_lives(struct bench_fabric *fabric);

/* Takes everything away. */
void bench_fabric_destroy(struct bench_fabric *fabric);
