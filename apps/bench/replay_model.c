/* Replay model: what inequality (3) says of a whole program. Each message takes what the inequality has for it, on
 * links that carry one after the other; a rank goes on when what it waits for is there. So savings add up along the
 * chains of messages that make the time of the program, and do not where ranks wait for something else. */
#include <stdlib.h>

#include "apps/bench/collectives/wan.h"
#include "apps/bench/replay.h"
#include "dataplane/wire/wire.h"

struct model {
    const struct replay *replay;
    const double *byte_ns; /* by pair */
    double delay_ns;
    double packet_ns;   /* of a packet without data */
    uint32_t *at;       /* by rank: step */
    double *now_ns;     /* ... when it has done all before */
    double *out_ns;     /* ... from when on its link is free, out */
    double *in_ns;      /* ... and in */
    double *arrived_ns; /* by message; below 0: not yet */
};

double replay_byte_ns(const struct replay_case *of)
{
    return 8e9 / bench_wan_payload_bps(of->rate_bps);
}

static void message_send(struct model *model, uint32_t number, double now_ns)
{
    const struct replay_message *message = &model->replay->messages[number];
    double *out_ns = &model->out_ns[message->from], *in_ns = &model->in_ns[message->to];
    double byte_ns = model->byte_ns[message->from * model->replay->ranks + message->to];
    double takes_ns = model->packet_ns + byte_ns * (double)message->bytes;
    double begin_ns = now_ns > *out_ns ? now_ns : *out_ns;
    double end_ns = begin_ns + takes_ns + model->delay_ns;
    *out_ns = begin_ns + takes_ns;
    *in_ns = end_ns > *in_ns + takes_ns ? end_ns : *in_ns + takes_ns;
    model->arrived_ns[number] = *in_ns;
}

/* When a rank could do its next step; below 0: not before others have done theirs. */
static double step_ns(const struct model *model, uint32_t rank)
{
    const struct replay_rank *of = &model->replay->rank[rank];
    if (model->at[rank] == of->count) {
        return -1;
    }
    const struct replay_step *step = &of->steps[model->at[rank]];
    double ns = model->now_ns[rank] + (double)step->compute_ns;
    double arrived_ns = model->arrived_ns[step->message];
    if (step->kind == REPLAY_RECEIVE) {
        return arrived_ns < 0 || arrived_ns > ns ? arrived_ns : ns;
    }
    if (step->kind == REPLAY_SENT && model->replay->messages[step->message].bytes > REPLAY_EAGER_BYTES) {
        return arrived_ns + model->delay_ns > ns ? arrived_ns + model->delay_ns : ns;
    }
    return ns;
}

/* The step that comes first, of all ranks. False: there is none any more. */
static bool step_next(struct model *model)
{
    uint32_t first = 0;
    double first_ns = -1;
    for (uint32_t rank = 0; rank < model->replay->ranks; rank++) {
        double ns = step_ns(model, rank);
        if (ns >= 0 && (first_ns < 0 || ns < first_ns)) {
            first = rank;
            first_ns = ns;
        }
    }
    if (first_ns < 0) {
        return false;
    }
    const struct replay_step *step = &model->replay->rank[first].steps[model->at[first]++];
    model->now_ns[first] = first_ns;
    if (step->kind == REPLAY_SEND) {
        message_send(model, step->message, first_ns);
    }
    return true;
}

double replay_model_ns(const struct replay *replay, const struct replay_case *of, const double *byte_ns)
{
    uint32_t ranks = replay->ranks;
    double *times = calloc(3 * (size_t)ranks + replay->count + 1, sizeof(double));
    struct model model = {
        .replay = replay,
        .byte_ns = byte_ns,
        .delay_ns = (double)of->delay_ns,
        .packet_ns = (replay_byte_ns(of) - 8e9 / (double)of->rate_bps) * cw_wire_part_bytes(1500),
        .at = calloc(ranks, sizeof(uint32_t)),
    };
    double last_ns = -1;
    if (times != NULL && model.at != NULL) {
        model.now_ns = times;
        model.out_ns = times + ranks;
        model.in_ns = times + 2 * (size_t)ranks;
        model.arrived_ns = times + 3 * (size_t)ranks;
        for (uint32_t i = 0; i <= replay->count; i++) {
            model.arrived_ns[i] = -1;
        }
        while (step_next(&model)) {
        }
        for (uint32_t rank = 0; rank < ranks; rank++) {
            last_ns = model.now_ns[rank] > last_ns ? model.now_ns[rank] : last_ns;
        }
    }
    free(times);
    free(model.at);
    return last_ns;
}
