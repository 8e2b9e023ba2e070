#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "dataplane/base/clock.h"
#include "tests/lab/lab_net.h"
#include "tests/test.h"

enum {
    MARKER_FENCE = 255,
    CHUNK = 200, /* less than any ring holds, so that only the switch's own loss takes frames away */
};

struct tally lab_query(struct client *client, const struct command *command)
{
    struct tally tally;
    assert_int_equal(send(client->control, command, sizeof(*command), 0), sizeof(*command));
    assert_int_equal(recv(client->control, &tally, sizeof(tally), 0), sizeof(tally));
    client->sent += command->send ? command->count : 0;
    return tally;
}

/* ---- the switch ---- */

void lab_switch_start(struct lab *lab, const char *ports, const char *const *more)
{
    const char *arguments[24] = {"causeway", "switch", "--memif", lab->path, "--json"};
    size_t count = 5;
    if (ports != NULL) {
        arguments[count++] = "--ports";
        arguments[count++] = ports;
    }
    for (; more != NULL && *more != NULL; more++) {
        arguments[count++] = *more;
    }
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    lab->process = fork();
    assert_true(lab->process >= 0);
    if (lab->process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        execv(getenv("CW_CAUSEWAY"), (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(ends[1]);
    lab->output = fdopen(ends[0], "r");
    char line[LAB_LINE_BYTES];
    assert_non_null(fgets(line, sizeof(line), lab->output));
    assert_ptr_equal(strstr(line, "ready: "), line);
}

void lab_clients_start(struct lab *lab, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        lab->clients[i] = (struct client){.process = fork(), .control = ends[0]};
        assert_true(lab->clients[i].process >= 0);
        if (lab->clients[i].process == 0) {
            for (uint32_t j = 0; j <= i; j++) {
                close(lab->clients[j].control);
            }
            lab_client_run(lab->path, i, ends[1]);
        }
        close(ends[1]);
        uint32_t ready;
        assert_int_equal(recv(ends[0], &ready, sizeof(ready), 0), sizeof(ready));
    }
}

void lab_clients_end(struct lab *lab)
{
    for (uint32_t i = 0; i < LAB_PORTS_MAX; i++) {
        if (lab->clients[i].process > 0) {
            int status;
            close(lab->clients[i].control);
            assert_int_equal(waitpid(lab->clients[i].process, &status, 0), lab->clients[i].process);
            assert_int_equal(status, 0);
        }
    }
}

uint64_t lab_count(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    assert_true_msg(json_is_integer(value), "no count '%s'", key);
    return (uint64_t)json_integer_value(value);
}

void lab_switch_end(struct lab *lab, json_t *lines[LAB_PORTS_MAX], json_t *report)
{
    char text[LAB_LINE_BYTES];
    int status;
    assert_int_equal(kill(lab->process, SIGTERM), 0);
    while (fgets(text, sizeof(text), lab->output) != NULL) {
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        if (report != NULL) {
            json_array_append(report, line);
        }
        if (strcmp(json_string_value(json_object_get(line, "kind")), "port") == 0 && lines != NULL) {
            uint64_t port = lab_count(line, "port");
            assert_true(port < LAB_PORTS_MAX);
            lines[port] = line;
        } else {
            json_decref(line);
        }
    }
    fclose(lab->output);
    assert_int_equal(waitpid(lab->process, &status, 0), lab->process);
    assert_int_equal(status, 0);
    /* nothing is left, or the folder would not go */
    assert_int_equal(rmdir(lab->folder), 0);
}

/* ---- traffic ---- */

void lab_mac(uint32_t port, uint8_t mac[6])
{
    const uint8_t address[6] = {0x02, 0, 0, 0, 0, (uint8_t)(port + 1)};
    memcpy(mac, address, 6);
}

void lab_command_fill(struct command *command, uint32_t from, const uint8_t to[6], uint8_t marker, uint32_t count)
{
    *command = (struct command){.send = true, .count = count, .length = FRAME_BYTES};
    memcpy(command->frame, to, 6);
    lab_mac(from, command->frame + 6);
    /* as much of IPv4 and UDP as a switch looks at: other protocols' multicast is not snooped */
    command->frame[12] = 0x08;
    command->frame[14] = 0x45;
    command->frame[17] = FRAME_BYTES - 14;
    command->frame[23] = 17;
    command->frame[30] = 239; /* a group is known by its IPv4 address, as far as there is one */
    memcpy(command->frame + 31, to + 3, 3);
    command->frame[MARKER_AT] = marker;
}

uint64_t lab_marked(struct lab *lab, uint32_t port, uint8_t marker)
{
    const struct command ask = {.send = false};
    return lab_query(&lab->clients[port], &ask).marked[marker];
}

void lab_fence(struct lab *lab, uint32_t from, uint32_t clients)
{
    struct command command;
    uint32_t number = ++lab->fences;
    lab_command_fill(&command, from, broadcast, MARKER_FENCE, 1);
    memcpy(command.frame + FENCE_AT, &number, sizeof(number));
    const struct command ask = {.send = false};
    for (uint32_t port = 0; port < clients; port++) {
        uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
        while (port != from && lab_query(&lab->clients[port], &ask).fence < number) {
            assert_true(cw_clock_ns() < until_ns);
            lab_query(&lab->clients[from], &command);
            usleep(200);
        }
    }
}

void lab_send(struct lab *lab, uint32_t from, const uint8_t to[6], uint8_t marker, uint32_t count, uint32_t clients)
{
    for (uint32_t done = 0; done < count; done += CHUNK) {
        struct command command;
        lab_command_fill(&command, from, to, marker, count - done < CHUNK ? count - done : CHUNK);
        lab_query(&lab->clients[from], &command);
        lab_fence(lab, from, clients);
    }
}

/* ---- all of it ---- */

void lab_start(struct lab *lab, const char *ports, const char *const *more, uint32_t clients)
{
    *lab = (struct lab){.folder = "/tmp/causeway-lab-switch-XXXXXX"};
    assert_non_null(mkdtemp(lab->folder));
    snprintf(lab->path, sizeof(lab->path), "%s/s", lab->folder);
    lab_switch_start(lab, ports, more);
    lab_clients_start(lab, clients);
    lab_fence(lab, 0, clients); /* a link is up at the client's end first */
}
