/* asked: algorithms that somebody asks for by name, for measuring and for trying out.
 *
 *   bcast=binomial,allreduce=ring,allgather=concurrent:concurrency=4,bcast=segmented-chain:segment=65536
 *
 * Parameters: segment (bytes), degree, concurrency. The last word about a collective counts. What fits no call (an operation that does not commute, counts that
 * differ) is passed over there.
 */
#ifndef CW_ASKED_H
#define CW_ASKED_H

#include "collectives/build.h"

struct cw_asked {
    struct {
        char name[CW_ALGORITHM_NAME_MAX]; /* "": whatever is best */
        struct cw_parameters parameters;
    } of[CW_COLLECTIVE_COUNT];
};

/* Names beside those of the registry, of algorithms that are no schedules; may be NULL. */
typedef bool (*cw_asked_known)(enum cw_collective collective, const char *name);

/* CW_OK; CW_ERROR_ARGUMENT with a line in `error`, which lists what there is. */
int cw_asked_parse(const char *text, cw_asked_known known, struct cw_asked *asked, char *error, size_t error_bytes);

/* The word for one algorithm with its parameters, as above. */
void cw_asked_write(const struct cw_algorithm *algorithm, const struct cw_parameters *parameters, char *text,
                    size_t text_bytes);

#endif
