/* WAN choice: the settings of the environment for packets to other clusters. In a job, the settings of rank 0 apply to
 * all ranks.
 *
 * CAUSEWAY_PACING
 *   on      (default) each rank sends at its share of the rate of the links (topology/clusters.h).
 *   off     Each rank sends as fast as its port accepts packets, for comparison.
 * CAUSEWAY_ENCRYPT
 *   wide    (default) packets over links of the topology, except those with "encrypt": false.
 *   all     all packets, also within clusters.
 *   off     no packets.
 *
 * Thread: any; cw_wan_words: one at a time (the environment). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/settings/setting.h"

enum cw_pacing { CW_PACING_ON = 0, CW_PACING_OFF = 1 };
enum cw_wan_encryption { CW_WAN_ENCRYPT_WIDE = 0, CW_WAN_ENCRYPT_ALL = 1, CW_WAN_ENCRYPT_OFF = 2 };

/* Zeroed: the defaults. */
struct cw_wan_choice {
    enum cw_pacing pacing;
    enum cw_wan_encryption encryption;
};

enum { CW_WAN_VARIABLES = 2, CW_WAN_WORD_BYTES = 48, CW_WAN_WORDS_BYTES = CW_WAN_VARIABLES * CW_WAN_WORD_BYTES };

struct cw_wan_variable {
    enum cw_setting setting;
    const char *wanted; /* "on or off" */
};
extern const struct cw_wan_variable cw_wan_variables[CW_WAN_VARIABLES];

/* Parses the value of a variable into the choice; "" and NULL are the default. False: the value is invalid, and the
 * choice is unchanged. */
bool cw_wan_value_set(uint32_t variable, const char *word, struct cw_wan_choice *choice);
/* Writes all values of the environment as one line, for cw_wan_parse at another rank. "": none is set. */
void cw_wan_words(char words[CW_WAN_WORDS_BYTES]);
/* False: a line in `error` names the invalid value. */
bool cw_wan_parse(const char *words, struct cw_wan_choice *choice, char *error, size_t error_bytes);
