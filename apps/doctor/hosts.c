/* Tries sockets to other hosts, with a job that has a rank on each host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/job.h"
#include "apps/doctor/doctor.h"
#include "control/launch/launch.h"
#include "control/net/transport.h"
#include "control/settings/setting.h"

enum { LINE_BYTES = 512, PATH_BYTES = 512 };

static const char sockets[] = "UDP sockets";
static const char here[] = "this machine: shared memory, no network";

/* "localhost,a,b": one rank here and one on each other host. Names of this machine are left out, since its rank is the
 * first. NULL: no memory. */
static char *list_make(char *const *hosts, int count, int *others)
{
    size_t bytes = sizeof("localhost");
    *others = 0;
    for (int i = 0; i < count; i++) {
        bytes += strlen(hosts[i]) + 1;
    }
    char *list = malloc(bytes);
    if (list != NULL) {
        (void)stpcpy(list, "localhost");
        for (int i = 0; i < count; i++) {
            if (!cw_launch_host_is_here(hosts[i])) {
                strcat(strcat(list, ","), hosts[i]);
                ++*others;
            }
        }
    }
    return list;
}

/* Prints the finding of one line of the output of the job (doctor_rank). */
static void line_report(struct doctor *doctor, const char *line)
{
    char host[128], ip[64], value[LINE_BYTES];
    double trip_ns;
    unsigned mtu;
    int cover = 0;
    if (sscanf(line, "host %127s %63s %lf %u %n", host, ip, &trip_ns, &mtu, &cover) == 4 && cover > 0) {
        snprintf(value, sizeof(value), "%s at %s: round trip %.0f us, packets up to %u bytes, checked by %s", sockets,
                 ip, trip_ns / 1000, mtu, line + cover);
        doctor_report(doctor, "host", host, DOCTOR_GOOD, value, NULL);
    } else if (sscanf(line, "here %127s", host) == 1) {
        doctor_report(doctor, "host", host, DOCTOR_NOTE, here, NULL);
    } else if (strncmp(line, "transport ", strlen("transport ")) == 0) {
        doctor_report(doctor, "transport", sockets, DOCTOR_GOOD, line + strlen("transport "), NULL);
    }
}

/* Prints the first line of the failed job, which is the reason. */
static void failure_report(struct doctor *doctor, char *text)
{
    static const char *const prefixes[] = {"causeway run: ", "causeway: "};
    char *line = text + strspn(text, "\n");
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t length = strlen(prefixes[i]);
        line += strncmp(line, prefixes[i], length) == 0 ? length : 0;
    }
    doctor_report(doctor, "transport", sockets, DOCTOR_MISSING,
                  line[0] != '\0' ? line : "the job ended without a message",
                  "docs/cluster.md, \"What to do if\", lists the remedies");
}

/* Runs the job, on the interface, address or subnet of CAUSEWAY_TRANSPORT. Returns the exit code. */
static int job_try(struct doctor *doctor, char *list, char *self)
{
    char name[LINE_BYTES];
    const char *what = cw_setting(CW_SETTING_TRANSPORT);
    if (what != NULL) {
        (void)cw_net_transport_read(what, &what);
    }
    bool has_what = what != NULL && what[0] != '\0';
    snprintf(name, sizeof(name), "udp%s%s", has_what ? ":" : "", has_what ? what : "");
    char *const arguments[] = {"causeway", "run",     "--hosts", list, "--transport", name,     "--timeout",
                               "60",       "--stdin", "none",    self, "doctor",      "--rank", NULL};
    size_t length;
    int code;
    char *text = app_job_output(arguments, &length, &code);
    if (text == NULL) {
        return code;
    }
    if (code != 0) {
        failure_report(doctor, text);
    }
    for (char *line = strtok(text, "\n"); line != NULL && code == 0; line = strtok(NULL, "\n")) {
        line_report(doctor, line);
    }
    free(text);
    return APP_EXIT_SUCCESS;
}

int doctor_hosts(struct doctor *doctor, char *const *hosts, int count)
{
    char self[PATH_BYTES];
    int others;
    char *list = list_make(hosts, count, &others);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int code = list == NULL || length < 0 ? APP_EXIT_MACHINE : APP_EXIT_SUCCESS;
    self[length < 0 ? 0 : length] = '\0';
    for (int i = 0; i < count && others < count; i++) {
        if (cw_launch_host_is_here(hosts[i])) {
            doctor_report(doctor, "host", hosts[i], DOCTOR_NOTE, here, NULL);
        }
    }
    if (others > 0 && code == APP_EXIT_SUCCESS) {
        code = job_try(doctor, list, self);
    }
    free(list);
    return code;
}
