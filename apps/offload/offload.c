/* causeway offload: the offloads of a NIC, the active ones, and the reasons for the others. */
#include <stdio.h>
#include <string.h>

#include "apps/cli/report.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/port/offload/offload.h"
#include "dataplane/status.h"

static const char usage[] =
    "offload DEVICE[,ARGUMENTS] [OPTION...]\n"
    "\n"
    "Opens a port, requests all offloads from its NIC, and lists those that it has, those that are on,\n"
    "their replacements in software, and the reasons.\n"
    "\n"
    "DEVICE[,ARGUMENTS] is the argument of DPDK's --vdev or -a: 0000:03:00.0, or net_tap0,iface=x.";

static void row_print(struct app_report *report, const struct cw_offload_report *row)
{
    const struct app_cell cells[] = {
        app_text("offload", "offload", 16, cw_offload_name(row->offload)),
        app_flag("has", NULL, row->has),
        app_flag("used", NULL, row->used),
        app_text(NULL, "has", 3, row->has ? "yes" : "no"),
        app_text(NULL, "used", 4, row->used ? "yes" : "no"),
        app_text("meaning", NULL, 0, cw_offload_meaning(row->offload)),
        app_text("software", "else", 30, cw_offload_software(row->offload)),
        app_text("why", "how, or why not", 0, row->why),
    };
    APP_REPORT(report, cells);
}

static int device_list(const char *text, struct cw_port_ethdev_config *config, struct app_report *report)
{
    char name[CW_PORT_ETHDEV_ARGUMENTS_BYTES], error[CW_PORT_TEXT_BYTES] = "";
    size_t length = strcspn(text, ",");
    if (length == 0 || strlen(text) >= sizeof(name)) {
        app_error("bad device", text, "DEVICE[,ARGUMENTS] is wanted");
        return APP_EXIT_USAGE;
    }
    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    config->device = name;
    config->device_arguments = text[length] == ',' ? text + length + 1 : NULL;
    struct cw_port *port;
    int status = cw_port_ethdev_open(config, &port, error, sizeof(error));
    if (status != CW_OK) {
        return app_error_status(status, error, NULL);
    }
    struct cw_offload_report rows[CW_PORT_OFFLOADS];
    cw_port_ethdev_offloads(port, rows);
    if (!report->json) {
        printf("%s, driver %s\n", text, port->info.driver);
    }
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        row_print(report, &rows[i]);
    }
    cw_port_close(port);
    return APP_EXIT_SUCCESS;
}

int offload_main(int argc, char **argv)
{
    struct app_report report = {.form = APP_REPORT_TABLE};
    struct cw_port_ethdev_config config;
    const char *words = "all";
    uint64_t mtu_bytes = 1500;
    const struct app_option options[] = {
        OPTION_TEXT("offloads", "auto|off|all|NAMES", "the requested offloads (all)", &words),
        OPTION_BYTES("mtu", "largest IP packet (1500)", &mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX),
        OPTION_JSON(" a line", &report.json),
        {0},
    };
    int code;
    int first = app_options_parse(usage, options, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (first == argc) {
        app_error("no device given", NULL, "causeway offload 0000:03:00.0, or net_tap0,iface=x");
        return APP_EXIT_USAGE;
    }
    char error[CW_PORT_TEXT_BYTES] = "";
    cw_port_ethdev_config_init(&config);
    config.mtu_bytes = (uint32_t)mtu_bytes;
    if (cw_offload_read(words, &config.offloads, error, sizeof(error)) != CW_OK) {
        app_error(error, "--offloads", NULL);
        return APP_EXIT_USAGE;
    }
    return device_list(argv[first], &config, &report);
}
