/* A network for tests: `causeway switch` in a folder of its own, and clients on its memif ports, each in a process of
 * its own. Everything that fails fails the test. Nothing is timed: see lab_switch.c. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "tests/lab/lab_client.h"

enum { LAB_PORTS_MAX = 8, LAB_LINE_BYTES = 4096 };

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct client {
    pid_t process;
    int control;
    uint64_t sent;
};

struct lab {
    char folder[64];
    char path[80];
    pid_t process;
    FILE *output;
    struct client clients[LAB_PORTS_MAX];
    uint32_t fences; /* numbers given so far */
};

/* Makes the folder, starts the switch with `more` (ended by NULL) behind the options for socket and ports (NULL: no
 * --ports), and the clients. */
void lab_start(struct lab *lab, const char *ports, const char *const *more, uint32_t clients);
void lab_switch_start(struct lab *lab, const char *ports, const char *const *more);
void lab_clients_start(struct lab *lab, uint32_t count);
void lab_clients_end(struct lab *lab);

/* Ends the switch; its last word on each port goes to `lines`, all that it says to the list `report`; both may be
 * NULL. */
void lab_switch_end(struct lab *lab, json_t *lines[LAB_PORTS_MAX], json_t *report);
uint64_t lab_count(const json_t *line, const char *key);

struct tally lab_query(struct client *client, const struct command *command);
void lab_mac(uint32_t port, uint8_t mac[6]);
/* Frames with the source address of `from`. */
void lab_command_fill(struct command *command, uint32_t from, const uint8_t to[6], uint8_t marker, uint32_t count);
uint64_t lab_marked(struct lab *lab, uint32_t port, uint8_t marker);

/* Returns once all earlier frames of `from` have arrived, or are lost: a broadcast frame, with a number that none
 * before it had, has come through. */
void lab_fence(struct lab *lab, uint32_t from, uint32_t clients);
/* Sends, with a fence after each few frames. */
void lab_send(struct lab *lab, uint32_t from, const uint8_t to[6], uint8_t marker, uint32_t count, uint32_t clients);
