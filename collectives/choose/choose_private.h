/* Shared by the files of choose/: the price of one candidate. */
#pragma once

#include "collectives/choose/choose.h"

/* Prices the candidate's algorithm with its parameters; fills in time_ns and priced. CW_OK; CW_ERROR_UNSUPPORTED if it
 * cannot be priced; CW_ERROR_MEMORY. */
int choose_price(const struct cw_choose_request *request, struct cw_candidate *candidate);

/* Replaces an estimate by the interpreter's result, if the plan is small. CW_OK or CW_ERROR_MEMORY. */
int choose_refine(const struct cw_choose_request *request, struct cw_candidate *candidate);

/* Finds the best parameters for the candidate's algorithm, and its price with them. Errors as choose_price. */
int choose_search(const struct cw_choose_request *request, struct cw_candidate *candidate);

/* Bytes of the vector, or of a rank's block, that a pipeline cuts into segments. */
uint64_t choose_vector_bytes(const struct cw_problem *problem);
