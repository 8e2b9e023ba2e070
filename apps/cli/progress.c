#include "apps/cli/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/base/thread.h"

#define NS_PER_S 1000000000ull
#define TICK_NS  500000000ull

enum { LEFT_LEAST_S = 2 };

static struct {
    pid_t owner; /* 0: there is none */
    pthread_t drawer;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t over;
    bool is_over;
    bool is_shown;
    const char *what;
    char step[APP_PROGRESS_BYTES];
    uint64_t done, all, done_ns, start_ns;
    uint64_t hidden_ns; /* when it was hidden */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

void app_progress_text(char text[APP_PROGRESS_BYTES], const char *what, const char *step, uint64_t done, uint64_t all,
                       uint64_t done_ns, uint64_t elapsed_ns)
{
    char share[16] = "", left[48] = "";
    uint64_t elapsed_s = elapsed_ns / NS_PER_S;
    if (all > 0) {
        snprintf(share, sizeof(share), "%" PRIu64 " %%, ", (uint64_t)((double)done * 100 / (double)all));
    }
    double left_s = done > 0 ? ((double)done_ns / (double)done * (double)all - (double)elapsed_ns) / 1e9 : 0;
    if (left_s >= 1 && elapsed_s >= LEFT_LEAST_S) { /* before that it would be a guess */
        snprintf(left, sizeof(left), left_s < 90 ? ", about %.0f s left" : ", about %.0f min left",
                 left_s < 90 ? left_s : left_s / 60);
    }
    snprintf(text, APP_PROGRESS_BYTES, "%s: %s%s%s%" PRIu64 " s%s", what, step, step[0] != '\0' ? ": " : "", share,
             elapsed_s, left);
}

/* At once, and past the buffers of stdio, which a fork would copy. */
static void put(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* a terminal that is gone is no reason to end */
}

static void draw(uint64_t now_ns)
{
    char text[APP_PROGRESS_BYTES], line[APP_PROGRESS_BYTES + 8];
    app_progress_text(text, progress.what, progress.step, progress.done, progress.all, progress.done_ns,
                      now_ns - progress.start_ns);
    snprintf(line, sizeof(line), "\r\033[K%s", text);
    put(line);
    progress.is_shown = true;
}

static void erase(void)
{
    if (progress.is_shown) {
        put("\r\033[K");
        progress.is_shown = false;
    }
}

static void *drawer_run(void *context)
{
    pthread_mutex_lock(&progress.lock);
    while (!progress.is_over) {
        uint64_t now_ns = cw_clock_ns(), next_ns = now_ns + TICK_NS;
        if (now_ns - progress.start_ns >= TICK_NS && now_ns - progress.hidden_ns >= TICK_NS) {
            draw(now_ns);
        }
        const struct timespec until = {.tv_sec = (time_t)(next_ns / NS_PER_S), .tv_nsec = (long)(next_ns % NS_PER_S)};
        (void)pthread_cond_clockwait(&progress.over, &progress.lock, CLOCK_MONOTONIC, &until);
    }
    pthread_mutex_unlock(&progress.lock);
    return context;
}

static bool is_mine(void)
{
    return progress.owner != 0 && progress.owner == getpid();
}

void app_progress_begin(const char *what, bool quiet)
{
    static bool is_registered;
    if (quiet || progress.owner != 0 || isatty(STDERR_FILENO) == 0) {
        return;
    }
    progress.what = what;
    progress.step[0] = '\0';
    progress.done = progress.all = progress.done_ns = progress.hidden_ns = 0;
    progress.start_ns = cw_clock_ns();
    progress.is_over = false;
    draw(progress.start_ns);
    /* signals are for the thread that works */
    bool is_begun = cw_thread_start(&progress.drawer, -1, false, drawer_run, NULL) == 0;
    progress.owner = is_begun ? getpid() : 0;
    if (!is_begun) {
        erase();
    } else {
        is_registered = is_registered || atexit(app_progress_end) == 0;
    }
}

void app_progress_step(uint64_t done, uint64_t all, const char *step)
{
    if (is_mine()) {
        pthread_mutex_lock(&progress.lock);
        progress.done = done;
        progress.all = all;
        progress.done_ns = cw_clock_ns() - progress.start_ns;
        snprintf(progress.step, sizeof(progress.step), "%s", step);
        pthread_mutex_unlock(&progress.lock);
    }
}

void app_progress_hide(void)
{
    if (is_mine()) {
        pthread_mutex_lock(&progress.lock);
        progress.hidden_ns = cw_clock_ns();
        erase();
        pthread_mutex_unlock(&progress.lock);
    }
}

void app_progress_end(void)
{
    if (is_mine()) {
        pthread_mutex_lock(&progress.lock);
        progress.is_over = true;
        pthread_cond_signal(&progress.over);
        pthread_mutex_unlock(&progress.lock);
        pthread_join(progress.drawer, NULL);
        erase();
        progress.owner = 0;
    }
}
