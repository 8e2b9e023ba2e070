/* Messages of the launcher, and the order that ends a job. */
#include "control/launch/private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "dataplane/base/clock.h"

void launch_output_print(struct launch_job *job, const char *format, ...)
{
    char text[LAUNCH_TEXT_BYTES];
    int used = snprintf(text, sizeof(text), "%s: ", job->config->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
    va_end(arguments);
    launch_sink_line(&job->output.sinks[job->output.joined ? 0 : 1], text);
}

void launch_order_all(struct launch_job *job, enum launch_frame_type type, int32_t value)
{
    launch_tree_order(&job->tree, &(struct launch_frame){.type = type, .value = value});
}

void launch_fail(struct launch_job *job, int code, const char *format, ...)
{
    if (job->ending) {
        return;
    }
    job->ending = true;
    job->code = code;
    job->kill_ns = cw_clock_ns() + LAUNCH_GRACE_NS;
    if (format != NULL) {
        char text[LAUNCH_TEXT_BYTES];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        launch_output_print(job, "%s", text);
    }
    launch_order_all(job, LAUNCH_SIGNAL, SIGTERM);
    launch_order_all(job, LAUNCH_SIGNAL, SIGCONT); /* stopped ranks receive it, too */
}

const char *launch_who(const struct launch_job *job, uint32_t rank)
{
    static char text[LAUNCH_TEXT_BYTES];
    bool spread = launch_work_is_spread(&job->work);
    snprintf(text, sizeof(text), "rank %" PRIu32 " (process %d%s%.200s)", rank, job->ranks[rank].process,
             spread ? " on " : "", spread ? job->work.host_names[job->work.host_of[rank]] : "");
    return text;
}
