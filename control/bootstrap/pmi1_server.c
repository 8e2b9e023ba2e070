#include "control/bootstrap/pmi1_server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/bootstrap/pmi1_table.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum { NOBODY = -1, OUTPUT_BYTES_FIRST = 256, FAILURE_BYTES = 160 };

struct client {
    enum cw_pmi1_client_state state;
    uint32_t app_number;
    bool in_barrier;
    bool listed;         /* between first_ready and last_ready */
    bool in_spawn;       /* inside the lines of mcmd=spawn */
    int32_t next_ready;  /* a client, or NOBODY */
    size_t line_used;    /* characters of an incomplete line */
    char *line;          /* CW_PMI1_LINE_MAX + 1 of them, from the first byte on */
    size_t output_bytes; /* allocated */
    size_t output_begin; /* not yet sent: from here */
    size_t output_end;
    char *output;
};

struct cw_pmi1_server {
    uint32_t client_count;
    uint32_t job_size; /* of all servers */
    bool is_held;      /* all clients wait for those of other servers */
    uint32_t universe_size;
    uint32_t counts[4]; /* clients by state */
    uint32_t in_barrier;
    int32_t first_ready;
    int32_t last_ready;
    int32_t abort_client; /* NOBODY: none has asked */
    int abort_code;
    struct pmi1_table table;
    struct client *clients;
    struct cw_pmi1_writer answer;
    char job[CW_PMI1_SERVER_JOB_BYTES];
    char failure[FAILURE_BYTES];
};

/* ---- answers ---- */

static void state_set(struct cw_pmi1_server *server, uint32_t client, enum cw_pmi1_client_state state)
{
    server->counts[server->clients[client].state]--;
    server->clients[client].state = state;
    server->counts[state]++;
}

static void barrier_leave(struct cw_pmi1_server *server, uint32_t client)
{
    if (server->clients[client].in_barrier) {
        server->clients[client].in_barrier = false;
        server->in_barrier--;
    }
}

#define FAIL(server, client, status, ...) client_fail((server), (client), (status), __VA_ARGS__)

__attribute__((format(printf, 4, 5))) static int client_fail(struct cw_pmi1_server *server, uint32_t client, int status,
                                                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(server->failure, sizeof(server->failure), format, arguments);
    va_end(arguments);
    barrier_leave(server, client);
    state_set(server, client, CW_PMI1_CLIENT_FAILED);
    return status;
}

static void ready_append(struct cw_pmi1_server *server, uint32_t client)
{
    struct client *at = &server->clients[client];
    if (at->listed) {
        return;
    }
    at->listed = true;
    at->next_ready = NOBODY;
    if (server->last_ready == NOBODY) {
        server->first_ready = (int32_t)client;
    } else {
        server->clients[server->last_ready].next_ready = (int32_t)client;
    }
    server->last_ready = (int32_t)client;
}

static bool output_reserve(struct client *client, size_t bytes)
{
    if (client->output_begin == client->output_end) {
        client->output_begin = client->output_end = 0;
    }
    size_t wanted = client->output_bytes > 0 ? client->output_bytes : OUTPUT_BYTES_FIRST;
    while (wanted - client->output_end < bytes) {
        wanted *= 2;
    }
    if (wanted != client->output_bytes) {
        char *grown = realloc(client->output, wanted);
        if (grown == NULL) {
            return false;
        }
        client->output = grown;
        client->output_bytes = wanted;
    }
    return true;
}

/* Sends the line in server->answer. */
static int answer_send(struct cw_pmi1_server *server, uint32_t client)
{
    struct client *at = &server->clients[client];
    int status = cw_pmi1_end(&server->answer);
    assert(status == CW_OK); /* answers consist of our own text and of parts of a shorter command */
    (void)status;
    if (!output_reserve(at, server->answer.length)) {
        return FAIL(server, client, CW_ERROR_MEMORY, "no memory for an answer");
    }
    memcpy(at->output + at->output_end, server->answer.text, server->answer.length);
    at->output_end += server->answer.length;
    ready_append(server, client);
    return CW_OK;
}

/* Answers with a result code and a message, which has no blank. */
static int result_send(struct cw_pmi1_server *server, uint32_t client, const char *command, long code,
                       const char *message)
{
    cw_pmi1_begin(&server->answer, command);
    cw_pmi1_add_number(&server->answer, "rc", code);
    cw_pmi1_add(&server->answer, "msg", message);
    return answer_send(server, client);
}

/* ---- commands ---- */

static int handle_init(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    long version = 0;
    bool known = cw_pmi1_number(line, "pmi_version", 1, 1, &version);
    if (known) {
        state_set(server, client, CW_PMI1_CLIENT_ACTIVE);
    }
    cw_pmi1_begin(&server->answer, "response_to_init");
    cw_pmi1_add_number(&server->answer, "pmi_version", 1);
    cw_pmi1_add_number(&server->answer, "pmi_subversion", 1);
    cw_pmi1_add_number(&server->answer, "rc", known ? 0 : -1);
    return answer_send(server, client);
}

static int handle_get_maxes(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    (void)line;
    cw_pmi1_begin(&server->answer, "maxes");
    cw_pmi1_add_number(&server->answer, "kvsname_max", CW_PMI1_SERVER_JOB_BYTES);
    cw_pmi1_add_number(&server->answer, "keylen_max", CW_PMI1_SERVER_KEY_BYTES);
    cw_pmi1_add_number(&server->answer, "vallen_max", CW_PMI1_SERVER_VALUE_BYTES);
    cw_pmi1_add_number(&server->answer, CW_PMI1_BATCH, CW_PMI1_BATCH_MAX);
    return answer_send(server, client);
}

static int handle_get_appnum(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    (void)line;
    cw_pmi1_begin(&server->answer, "appnum");
    cw_pmi1_add_number(&server->answer, "appnum", server->clients[client].app_number);
    return answer_send(server, client);
}

static int handle_get_my_kvsname(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    (void)line;
    cw_pmi1_begin(&server->answer, "my_kvsname");
    cw_pmi1_add(&server->answer, "kvsname", server->job);
    return answer_send(server, client);
}

static int handle_get_universe_size(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    (void)line;
    cw_pmi1_begin(&server->answer, "universe_size");
    cw_pmi1_add_number(&server->answer, "size", server->universe_size);
    return answer_send(server, client);
}

/* The error in the table's name or the key of a put or get; NULL: none. */
static const char *place_check(const struct cw_pmi1_server *server, const struct cw_pmi1_line *line)
{
    const char *name = cw_pmi1_value(line, "kvsname");
    const char *key = cw_pmi1_value(line, "key");
    if (name == NULL || strcmp(name, server->job) != 0) {
        return "no_such_table";
    }
    return key == NULL || key[0] == 0 || strlen(key) >= CW_PMI1_SERVER_KEY_BYTES ? "bad_key" : NULL;
}

static int handle_put(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    const char *value = cw_pmi1_value(line, "value");
    const char *refused = place_check(server, line);
    if (refused == NULL && (value == NULL || strlen(value) >= CW_PMI1_SERVER_VALUE_BYTES)) {
        refused = "bad_value";
    }
    int status = refused == NULL ? pmi1_table_put(&server->table, cw_pmi1_value(line, "key"), value, true) : CW_OK;
    if (status != CW_OK) {
        refused = status == CW_ERROR_LIMIT ? "table_full" : "no_memory";
    }
    return result_send(server, client, "put_result", refused == NULL ? 0 : -1, refused == NULL ? "success" : refused);
}

static int handle_get(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    const char *refused = place_check(server, line);
    const char *value = refused == NULL ? pmi1_table_value(&server->table, cw_pmi1_value(line, "key")) : NULL;
    if (refused == NULL && value == NULL) {
        refused = "key_not_found";
    }
    cw_pmi1_begin(&server->answer, "get_result");
    cw_pmi1_add_number(&server->answer, "rc", refused == NULL ? 0 : -1);
    cw_pmi1_add(&server->answer, "msg", refused == NULL ? "success" : refused);
    cw_pmi1_add(&server->answer, "value", value != NULL ? value : "unknown");
    return answer_send(server, client);
}

/* A client that cannot be notified fails. */
static void barrier_out(struct cw_pmi1_server *server)
{
    server->is_held = false;
    for (uint32_t i = 0; i < server->client_count; i++) {
        if (server->clients[i].in_barrier) {
            barrier_leave(server, i);
            cw_pmi1_begin(&server->answer, "barrier_out");
            cw_pmi1_add_number(&server->answer, "rc", 0);
            (void)answer_send(server, i);
        }
    }
}

static int handle_barrier_in(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    (void)line;
    server->clients[client].in_barrier = true;
    if (++server->in_barrier < server->client_count) {
        return CW_OK;
    }
    server->is_held = server->job_size > server->client_count;
    if (!server->is_held) {
        barrier_out(server);
    }
    return server->clients[client].state == CW_PMI1_CLIENT_FAILED ? CW_ERROR_MEMORY : CW_OK;
}

static int handle_abort(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    long code = 1;
    cw_pmi1_number(line, "exitcode", -0x80000000l, 0x7fffffff, &code);
    if (server->abort_client == NOBODY) {
        server->abort_client = (int32_t)client;
        server->abort_code = (code & 0xff) == 0 && code != 0 ? 255 : (int)(code & 0xff);
    }
    return CW_OK;
}

static int handle_finalize(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line)
{
    (void)line;
    state_set(server, client, CW_PMI1_CLIENT_FINISHED);
    cw_pmi1_begin(&server->answer, "finalize_ack");
    cw_pmi1_add_number(&server->answer, "rc", 0);
    return answer_send(server, client);
}

/* Commands that are known but rejected, each with the name of its answer. */
static int handle_unsupported(struct cw_pmi1_server *server, uint32_t client, const char *command)
{
    static const struct {
        const char *command;
        const char *answer;
    } table[] = {
        {"spawn", "spawn_result"},
        {"publish_name", "publish_result"},
        {"unpublish_name", "unpublish_result"},
        {"lookup_name", "lookup_result"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(command, table[i].command) == 0) {
            return result_send(server, client, table[i].answer, -1, "not_supported_by_causeway_run");
        }
    }
    return FAIL(server, client, CW_ERROR_ARGUMENT, "asks for '%.40s', which PMI-1 does not have", command);
}

static int command_dispatch(struct cw_pmi1_server *server, uint32_t client, const char *command,
                            const struct cw_pmi1_line *line)
{
    static const struct {
        const char *command;
        int (*receive)(struct cw_pmi1_server *server, uint32_t client, const struct cw_pmi1_line *line);
    } table[] = {
        {"get", handle_get},
        {"put", handle_put},
        {"barrier_in", handle_barrier_in},
        {"get_maxes", handle_get_maxes},
        {"get_appnum", handle_get_appnum},
        {"get_my_kvsname", handle_get_my_kvsname},
        {"get_universe_size", handle_get_universe_size},
        {"finalize", handle_finalize},
        {"abort", handle_abort},
    };
    struct client *at = &server->clients[client];
    if (at->in_barrier) {
        return FAIL(server, client, CW_ERROR_ARGUMENT, "asks for '%.40s' while it waits in a barrier", command);
    }
    if (strcmp(command, "init") == 0) {
        return handle_init(server, client, line);
    }
    if (at->state != CW_PMI1_CLIENT_ACTIVE) {
        return FAIL(server, client, CW_ERROR_ARGUMENT, "asks for '%.40s' %s", command,
                    at->state == CW_PMI1_CLIENT_NEW ? "before init" : "after finalize");
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(command, table[i].command) == 0) {
            return table[i].receive(server, client, line);
        }
    }
    return handle_unsupported(server, client, command);
}

/* One whole line, without its end. */
static int line_dispatch(struct cw_pmi1_server *server, uint32_t client, char *text, size_t length)
{
    struct client *at = &server->clients[client];
    struct cw_pmi1_line line;
    int status = cw_pmi1_parse(text, length, &line);
    if (status != CW_OK) {
        return FAIL(server, client, status, "sends a line that PMI-1 does not have");
    }
    if (at->in_spawn) {
        if (strcmp(line.words[0].name, "endcmd") != 0) {
            return CW_OK;
        }
        at->in_spawn = false;
        return handle_unsupported(server, client, "spawn");
    }
    if (at->state == CW_PMI1_CLIENT_ACTIVE && cw_pmi1_value(&line, "mcmd") != NULL) {
        at->in_spawn = true;
        return CW_OK;
    }
    const char *command = cw_pmi1_value(&line, "cmd");
    if (command == NULL) {
        return FAIL(server, client, CW_ERROR_ARGUMENT, "sends a line without a command");
    }
    return command_dispatch(server, client, command, &line);
}

/* ---- the calls ---- */

int cw_pmi1_server_receive(struct cw_pmi1_server *server, uint32_t client, const char *bytes, size_t count)
{
    assert(client < server->client_count);
    struct client *at = &server->clients[client];
    int status = CW_OK;
    if (at->state == CW_PMI1_CLIENT_FAILED) {
        return CW_ERROR_ARGUMENT;
    }
    if (at->line == NULL && (at->line = malloc(CW_PMI1_LINE_MAX + 1)) == NULL) {
        return FAIL(server, client, CW_ERROR_MEMORY, "no memory for a line");
    }
    while (count > 0 && status == CW_OK) {
        const char *end = memchr(bytes, '\n', count);
        size_t length = end != NULL ? (size_t)(end - bytes) : count;
        if (at->line_used + length > CW_PMI1_LINE_MAX) {
            return FAIL(server, client, CW_ERROR_LIMIT, "sends a line of more than %d characters", CW_PMI1_LINE_MAX);
        }
        memcpy(at->line + at->line_used, bytes, length);
        at->line_used += length;
        bytes += length;
        count -= length;
        if (end != NULL) {
            size_t used = at->line_used;
            at->line_used = 0;
            bytes++;
            count--;
            status = line_dispatch(server, client, at->line, used);
        }
    }
    return status;
}

const char *cw_pmi1_server_failure(const struct cw_pmi1_server *server)
{
    return server->failure;
}

bool cw_pmi1_server_next(struct cw_pmi1_server *server, uint32_t *client)
{
    if (server->first_ready == NOBODY) {
        return false;
    }
    struct client *at = &server->clients[server->first_ready];
    *client = (uint32_t)server->first_ready;
    server->first_ready = at->next_ready;
    if (server->first_ready == NOBODY) {
        server->last_ready = NOBODY;
    }
    at->listed = false;
    return true;
}

size_t cw_pmi1_server_pending(const struct cw_pmi1_server *server, uint32_t client, const char **bytes)
{
    const struct client *at = &server->clients[client];
    *bytes = at->output + at->output_begin;
    return at->output_end - at->output_begin;
}

void cw_pmi1_server_sent(struct cw_pmi1_server *server, uint32_t client, size_t count)
{
    struct client *at = &server->clients[client];
    assert(count <= at->output_end - at->output_begin);
    at->output_begin += count;
}

enum cw_pmi1_client_state cw_pmi1_server_state(const struct cw_pmi1_server *server, uint32_t client)
{
    return server->clients[client].state;
}

uint32_t cw_pmi1_server_count(const struct cw_pmi1_server *server, enum cw_pmi1_client_state state)
{
    return server->counts[state];
}

bool cw_pmi1_server_is_held(const struct cw_pmi1_server *server)
{
    return server->is_held;
}

void cw_pmi1_server_fresh(struct cw_pmi1_server *server,
                          void (*receive)(void *context, const char *key, const char *value), void *context)
{
    pmi1_table_fresh(&server->table, receive, context);
}

int cw_pmi1_server_add(struct cw_pmi1_server *server, const char *key, const char *value)
{
    if (!cw_pmi1_text_fits(key, true) || strlen(key) >= CW_PMI1_SERVER_KEY_BYTES || !cw_pmi1_text_fits(value, false) ||
        strlen(value) >= CW_PMI1_SERVER_VALUE_BYTES) {
        return CW_ERROR_ARGUMENT;
    }
    return pmi1_table_put(&server->table, key, value, false);
}

void cw_pmi1_server_release(struct cw_pmi1_server *server)
{
    barrier_out(server);
}

bool cw_pmi1_server_waits(const struct cw_pmi1_server *server, uint32_t client)
{
    return server->clients[client].in_barrier;
}

bool cw_pmi1_server_aborted(const struct cw_pmi1_server *server, uint32_t *client, int *code)
{
    if (server->abort_client == NOBODY) {
        return false;
    }
    *client = (uint32_t)server->abort_client;
    *code = server->abort_code;
    return true;
}

/* ---- create, destroy ---- */

static int mapping_put(struct cw_pmi1_server *server, const char *mapping)
{
    char own[64];
    /* (first host, hosts, processes each) */
    snprintf(own, sizeof(own), "(vector,(0,1,%u))", server->client_count);
    return cw_pmi1_server_add(server, "PMI_process_mapping", mapping != NULL ? mapping : own);
}

static int server_fill(struct cw_pmi1_server *server, const struct cw_pmi1_server_config *config)
{
    server->job_size = config->job_size > 0 ? config->job_size : config->client_count;
    server->client_count = config->client_count;
    server->table.count_max = (size_t)server->job_size * CW_PMI1_SERVER_KEYS;
    server->universe_size = config->universe_size;
    server->counts[CW_PMI1_CLIENT_NEW] = config->client_count;
    server->first_ready = server->last_ready = server->abort_client = NOBODY;
    snprintf(server->job, sizeof(server->job), "%s", config->job);
    server->clients = calloc(config->client_count, sizeof(*server->clients));
    if (server->clients == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < config->client_count; i++) {
        server->clients[i].app_number = config->app_numbers != NULL ? config->app_numbers[i] : 0;
    }
    return mapping_put(server, config->process_mapping);
}

int cw_pmi1_server_create(const struct cw_pmi1_server_config *config, struct cw_pmi1_server **server)
{
    const char *mapping = config->process_mapping;
    if (config->client_count == 0 || config->client_count > CW_PMI1_SERVER_CLIENTS_MAX ||
        (config->job_size > 0 && config->job_size < config->client_count) || config->job == NULL ||
        !cw_pmi1_text_fits(config->job, true) || strlen(config->job) >= CW_PMI1_SERVER_JOB_BYTES ||
        (mapping != NULL && (!cw_pmi1_text_fits(mapping, false) || strlen(mapping) >= CW_PMI1_SERVER_VALUE_BYTES))) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_pmi1_server *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    int status = server_fill(made, config);
    if (status != CW_OK) {
        cw_pmi1_server_destroy(made);
        return status;
    }
    *server = made;
    return CW_OK;
}

void cw_pmi1_server_destroy(struct cw_pmi1_server *server)
{
    if (server == NULL) {
        return;
    }
    for (uint32_t i = 0; server->clients != NULL && i < server->client_count; i++) {
        free(server->clients[i].line);
        free(server->clients[i].output);
    }
    pmi1_table_dispose(&server->table);
    free(server->clients);
    free(server);
}
