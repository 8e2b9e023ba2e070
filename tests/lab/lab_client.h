/* A client of the switch, in a process of its own: forwards commands to its port and counts what it receives. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    FRAME_BYTES = 100,
    MARKER_AT = 50, /* the byte by which frames are counted */
    FENCE_AT = 52,  /* the number of a fence, a uint32_t; 0 in all other frames */
    MARKERS = 256,
};

struct command {
    bool send; /* else: asks for the tally */
    uint32_t count;
    uint32_t length;
    uint8_t frame[FRAME_BYTES];
};

struct tally {
    uint64_t total;
    uint64_t marked[MARKERS];
    uint32_t fence; /* the greatest number that has come */
};

/* Opens port `index` of the switch at `path`, says so on `control`, and answers each struct command that comes there
 * with a struct tally, until `control` is closed. Ends the process. */
_Noreturn void lab_client_run(const char *path, uint32_t index, int control);
