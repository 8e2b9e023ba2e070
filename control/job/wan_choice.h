/* WAN choice: what the environment says of the way to ranks of other clusters. In a job rank 0's words count for all.
 *
 * CAUSEWAY_PACING
 *   on      (default) each rank keeps to its share of the links on the way (topology/clusters.h)
 *   off     as fast as the port takes it; to compare with
 *   found   at a rate that is found out, as if nothing were known of the links
 * CAUSEWAY_RELAYS
 *   off     (default) each rank sends across itself
 *   found   by way of as many ranks of the own cluster as it takes to fill the way out
 *   N       by way of so many, 1 to CW_CLUSTERS_RELAYS_MAX
 * CAUSEWAY_ENCRYPT
 *   wide    (default) what crosses links that the topology has encrypted, which they are unless it says otherwise
 *   all     whatever travels in packets, within clusters, too
 *   off     nothing
 *
 * Thread: any; cw_wan_words: one at a time (the environment). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cw_pacing { CW_PACING_ON = 0, CW_PACING_OFF = 1, CW_PACING_FOUND = 2 };
enum cw_wan_encryption { CW_WAN_ENCRYPT_WIDE = 0, CW_WAN_ENCRYPT_ALL = 1, CW_WAN_ENCRYPT_OFF = 2 };

/* Zeroed: the defaults. */
struct cw_wan_choice {
    enum cw_pacing pacing;
    uint32_t relays; /* as struct cw_clusters_request has it */
    enum cw_wan_encryption encryption;
};

enum { CW_WAN_VARIABLES = 3, CW_WAN_WORD_BYTES = 48, CW_WAN_WORDS_BYTES = CW_WAN_VARIABLES * CW_WAN_WORD_BYTES };

struct cw_wan_variable {
    const char *name;
    const char *wanted; /* "on, off or found" */
    const char *what;   /* it is about, for people */
};
extern const struct cw_wan_variable cw_wan_variables[CW_WAN_VARIABLES];

/* Takes a variable's word into the choice; "" and NULL are the default. False: it makes no sense, and the choice is as
 * before. */
bool cw_wan_take(uint32_t variable, const char *word, struct cw_wan_choice *choice);
/* The word for what the choice has. */
void cw_wan_word(uint32_t variable, const struct cw_wan_choice *choice, char word[CW_WAN_WORD_BYTES]);

/* All words of the environment in one line of text, to be sent and parsed; "": none is set. */
void cw_wan_words(char words[CW_WAN_WORDS_BYTES]);
/* False: a line in `error` says which word is wrong. */
bool cw_wan_parse(const char *words, struct cw_wan_choice *choice, char *error, size_t error_bytes);
