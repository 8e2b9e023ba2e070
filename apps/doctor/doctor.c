/* causeway doctor: lists the capabilities of this machine, the choices of Causeway with their reasons, and the problems
 * with their remedies. */
#include "apps/doctor/doctor.h"

#include <inttypes.h>
#include <stdio.h>

#include "apps/cli/cli.h"
#include "control/net/device.h"
#include "dataplane/dataplane.h"
#include "dataplane/loop/loop.h"

static void setting_count(struct doctor *doctor, const char *name, uint64_t value, const char *meaning)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    doctor_setting(doctor, name, text, "default", meaning);
}

static void settings_report(struct doctor *doctor)
{
    struct cw_endpoint_config config;
    cw_endpoint_config_init(&config);
    setting_count(doctor, "peer_count_max", config.peer_count_max, "peers of an endpoint");
    setting_count(doctor, "region_count_max", config.region_count_max, "registered regions");
    setting_count(doctor, "operation_count_max", config.operation_count_max, "puts, gets and messages in progress");
    setting_count(doctor, "reassembly_count_max", config.reassembly_count_max,
                  "puts that arrived in part, or wait for their turn in the lane");
    setting_count(doctor, "event_count_max", config.event_count_max, "events that the application has not read yet");
    setting_count(doctor, "get_count_max", config.get_count_max, "gets in progress");
    setting_count(doctor, "pool_slot_count", config.pool_slot_count, "small messages in the receive pool");
    setting_count(doctor, "pool_slot_bytes", config.pool_slot_bytes, "longest small message, in bytes");
    setting_count(doctor, "sent_chunk_count", config.sent_chunk_count, "blocks of 64 records of packets in flight");
    setting_count(doctor, "window_block_count", config.window_block_count,
                  "blocks of 1 KiB for packets that arrive out of order");
    setting_count(doctor, "congestion_window_max_bytes", config.congestion_window_max_bytes,
                  "bytes in flight to one peer");
    setting_count(doctor, "failure_timeout_ns", config.failure_timeout_ns,
                  "silence after which a peer is declared failed");
    struct cw_loop_config loop;
    cw_loop_config_init(&loop);
    setting_count(doctor, "loop.command_count", loop.command_count, "commands queued for the owner of the loop");
    setting_count(doctor, "loop.yield_ns", loop.yield_ns,
                  "time to yield the core before sleeping; shorter if yields take long");
    setting_count(doctor, "ack_delay_ns", CW_ACK_DELAY_NS, "delay that combines several acknowledgements");
    setting_count(doctor, "probe_spin_ns", CW_PROBE_SPIN_NS, "shortest time-out before a probe to a peer that polls");
    setting_count(doctor, "probe_sleep_ns", CW_PROBE_SLEEP_NS,
                  "shortest time-out before a probe to a peer that packets wake");
    setting_count(doctor, "probe_nap_ns", CW_PROBE_NAP_NS,
                  "shortest time-out before a probe to a peer that polls now and then");
    doctor_choices(doctor);
}

enum { HOSTS_MAX = 64 };

#define HELP_INDENT "                               "

/* Devices of this host, then other hosts. Returns an exit code. */
static int transport_report(struct doctor *doctor, char *const *names, int count)
{
    char *hosts[HOSTS_MAX];
    int host_count = 0, code = APP_EXIT_SUCCESS;
    for (int i = 0; i < count; i++) {
        if (cw_device_is_named(names[i])) {
            int found = doctor_device(doctor, names[i]);
            code = found != APP_EXIT_SUCCESS ? found : code;
        } else {
            hosts[host_count++] = names[i];
        }
    }
    uint32_t missing = doctor->missing;
    int reached = host_count > 0 ? doctor_hosts(doctor, hosts, host_count) : APP_EXIT_SUCCESS;
    reached = reached == APP_EXIT_SUCCESS && doctor->missing > missing ? APP_EXIT_MACHINE : reached;
    return reached != APP_EXIT_SUCCESS ? reached : code;
}

int doctor_main(int argc, char **argv)
{
    struct doctor doctor = {0};
    bool mpi = false, transport = false, rank = false;
    const struct app_option options[] = {
        OPTION_JSON(" for each finding", &doctor.json),
        OPTION_FLAG("mpi", "list only the missing MPI functions", &mpi),
        OPTION_FLAG("transport",
                    "test sockets to these hosts, and these devices, only. Each host is tried by UDP\n" HELP_INDENT
                    "sockets; CAUSEWAY_TRANSPORT names the interface. Each device, such as\n" HELP_INDENT
                    "0000:03:00.0, is opened for a moment, as a rank does. If it cannot be used, or a\n" HELP_INDENT
                    "host cannot be reached, the exit code is 3",
                    &transport),
        OPTION_FLAG("rank", "internal: a rank of the job that `doctor --transport` starts", &rank),
        {0},
    };
    int code;
    int first = app_options_parse(
        "doctor [OPTION...]\n       causeway doctor --transport HOST|DEVICE...\n\nLists the capabilities of this "
        "machine, the choices of Causeway with their reasons, and all settings.\nA problem is "
        "marked with ! and followed by its remedy.",
        options, HOSTS_MAX, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (rank) {
        return doctor_rank();
    }
    if (transport == (first == argc)) {
        app_error(transport ? "no host or device is named" : "unexpected argument",
                  transport ? "--transport" : argv[first], "usage: causeway doctor --transport HOST|DEVICE...");
        return APP_EXIT_USAGE;
    }
    if (transport) {
        return transport_report(&doctor, argv + first, argc - first);
    }
    if (mpi) {
        doctor_mpi(&doctor);
        return APP_EXIT_SUCCESS;
    }
    doctor_machine(&doctor);
    doctor_rights(&doctor);
    doctor_network(&doctor);
    doctor_choice(&doctor);
    settings_report(&doctor);
    if (!doctor.json) {
        printf("%u problem%s\n", doctor.missing, doctor.missing == 1 ? "" : "s");
    }
    return APP_EXIT_SUCCESS;
}
