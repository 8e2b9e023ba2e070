/* Inside of neighbour/: answers to single frames. */
#pragma once

#include "dataplane/neighbour/neighbour.h"

/* Writes the answer to a frame that asks `config`'s address. ANSWERED, with its bytes; FOREIGN, DAMAGED. */
enum cw_neighbour_verdict cw_answer_arp(const struct cw_neighbour_config *config, const uint8_t *frame, uint32_t bytes,
                                        uint8_t *answer, uint32_t *answer_bytes);
enum cw_neighbour_verdict cw_answer_v4(const struct cw_neighbour_config *config, const uint8_t *frame, uint32_t bytes,
                                       uint8_t *answer, uint32_t *answer_bytes);
enum cw_neighbour_verdict cw_answer_v6(const struct cw_neighbour_config *config, const uint8_t *frame, uint32_t bytes,
                                       uint8_t *answer, uint32_t *answer_bytes);
