/* `causeway gateway`: joins the networks of two sites across a wide area. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "apps/cli/cli.h"
#include "apps/cli/process.h"
#include "apps/gateway/site.h"

static void ready_print(const struct gateway_config *config)
{
    printf("ready: %s to %s by %s, %u streams, %s\n", config->inner.text, config->peer_text, config->outer.text,
           (unsigned)config->stream_count, config->encrypts ? "sealed" : "not sealed");
    fflush(stdout);
}

static int forward(struct gateway_site *site, const struct gateway_config *config)
{
    sigset_t before;
    struct app_signals *signals = app_signals_hold(&before);
    int code = app_pin(config->core);
    if (code == APP_EXIT_SUCCESS) {
        code = gateway_site_open(site, config);
    }
    if (code == APP_EXIT_SUCCESS) {
        prctl(PR_SET_TIMERSLACK, 1000ul); /* sleeps end in time for packets that are due */
        ready_print(config);
        sigprocmask(SIG_SETMASK, &before, NULL);
        code = gateway_site_run(site, signals);
        int written = gateway_site_close(site);
        code = code == APP_EXIT_SUCCESS ? written : code;
    }
    return code;
}

int gateway_main(int argc, char **argv)
{
    struct gateway_config config;
    struct gateway_site site;
    int code;
    if (!gateway_config_parse(&config, argc, argv, &code)) {
        return code;
    }
    return forward(&site, &config);
}
