#include "apps/crowding.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIGURES_BYTES = 96 };

void cw_crowding_init(struct cw_crowding *crowding)
{
    *crowding = (struct cw_crowding){.descriptor = -1, .retreat_ns = CW_CROWDING_RETREAT_MIN_NS};
}

void cw_crowding_dispose(struct cw_crowding *crowding)
{
    if (crowding->descriptor >= 0) {
        close(crowding->descriptor);
        crowding->descriptor = -1;
    }
}

/* The second of three figures: nanoseconds that the calling thread was runnable without running. */
static bool read_delay(struct cw_crowding *crowding, uint64_t *delay_ns)
{
    pid_t thread = gettid();
    if (thread != crowding->thread) {
        cw_crowding_dispose(crowding);
        crowding->thread = thread;
        crowding->since_ns = 0;
        crowding->descriptor = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    }
    char figures[FIGURES_BYTES];
    ssize_t bytes = crowding->descriptor < 0 ? -1 : pread(crowding->descriptor, figures, sizeof(figures) - 1, 0);
    if (bytes <= 0) {
        return false;
    }
    figures[bytes] = 0;
    char *rest;
    (void)strtoull(figures, &rest, 10);
    *delay_ns = strtoull(rest, NULL, 10);
    return true;
}

void cw_crowding_judge(struct cw_crowding *crowding, uint64_t now_ns, uint64_t delay_ns)
{
    bool judged = crowding->since_ns != 0 && !crowding->crowded; /* it was a trial */
    uint64_t waited_ns = delay_ns - crowding->delay_ns;
    bool crowded = judged && waited_ns > (now_ns - crowding->since_ns) / CW_CROWDING_SHARE;
    uint64_t retreat_ns = crowding->retreat_ns;
    if (crowded) {
        bool longest = 2 * retreat_ns > CW_CROWDING_RETREAT_MAX_NS;
        crowding->retreat_ns = longest ? CW_CROWDING_RETREAT_MAX_NS : 2 * retreat_ns;
    } else if (judged) {
        crowding->retreat_ns = CW_CROWDING_RETREAT_MIN_NS;
    }
    crowding->crowded = crowded;
    crowding->since_ns = now_ns;
    crowding->delay_ns = delay_ns;
    crowding->look_ns = now_ns + (crowded ? retreat_ns : CW_CROWDING_TRIAL_NS);
}

void cw_crowding_refresh(struct cw_crowding *crowding, uint64_t now_ns)
{
    uint64_t delay_ns;
    if (read_delay(crowding, &delay_ns)) {
        cw_crowding_judge(crowding, now_ns, delay_ns);
    } else {
        crowding->crowded = false;
        crowding->look_ns = UINT64_MAX;
    }
}
