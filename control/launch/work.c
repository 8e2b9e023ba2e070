#include "control/launch/work.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

enum { PROGRAMS_MAX = 4096, WORDS_MAX = 1 << 20 };

const struct cw_launch_program *launch_work_program(const struct launch_work *work, uint32_t rank)
{
    const struct cw_launch_program *program = work->programs;
    while (rank >= program->count) {
        rank -= program->count;
        program++;
    }
    return program;
}

uint32_t launch_work_count(const struct launch_work *work, uint32_t host)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < work->rank_count; rank++) {
        count += work->host_of[rank] == host;
    }
    return count;
}

bool launch_work_is_spread(const struct launch_work *work)
{
    return work->host_count > 1 || work->is_elsewhere;
}

bool launch_work_mapping(const struct launch_work *work, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "(vector");
    uint32_t rank = 0;
    while (rank < work->rank_count && used < bytes) {
        /* a block: this number of hosts in sequence, with equally many ranks each */
        uint32_t first = work->host_of[rank], each = 0, hosts = 0;
        while (rank + each < work->rank_count && work->host_of[rank + each] == first) {
            each++;
        }
        for (bool fits = true; fits; hosts += fits) {
            uint32_t begin = rank + hosts * each;
            fits = begin + each <= work->rank_count &&
                   (begin + each == work->rank_count || work->host_of[begin + each] != first + hosts);
            for (uint32_t i = 0; i < each && fits; i++) {
                fits = work->host_of[begin + i] == first + hosts;
            }
        }
        used += (size_t)snprintf(text + used, bytes - used, ",(%u,%u,%u)", first, hosts, each);
        rank += hosts * each;
    }
    if (used < bytes) {
        used += (size_t)snprintf(text + used, bytes - used, ")");
    }
    return used < bytes;
}

/* ---- to an agent ---- */

/* Writes of which one failed. */
struct writer {
    struct launch_bytes *out;
    int status;
};

static void number(struct writer *writer, uint64_t value)
{
    writer->status = writer->status == CW_OK ? launch_put_number(writer->out, value) : writer->status;
}

static void text(struct writer *writer, const char *value)
{
    writer->status = writer->status == CW_OK ? launch_put_text(writer->out, value) : writer->status;
}

/* NULL last. */
static void texts(struct writer *writer, char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        text(writer, *list);
    }
    text(writer, NULL);
}

int launch_work_write(const struct launch_work *work, const uint32_t *hosts, uint32_t count, struct launch_bytes *out)
{
    struct writer writer = {.out = out};
    char key[2 * LAUNCH_KEY_BYTES + 1];
    text(&writer, CW_VERSION);
    number(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        number(&writer, hosts[i]);
    }
    text(&writer, work->name);
    number(&writer, work->program_count);
    for (size_t i = 0; i < work->program_count; i++) {
        number(&writer, work->programs[i].count);
        texts(&writer, work->programs[i].arguments);
        text(&writer, work->programs[i].directory);
        texts(&writer, work->programs[i].variables);
    }
    number(&writer, work->host_count);
    for (uint32_t i = 0; i < work->host_count; i++) {
        text(&writer, work->host_names[i]);
    }
    number(&writer, work->rank_count);
    for (uint32_t i = 0; i < work->rank_count; i++) {
        number(&writer, work->host_of[i]);
    }
    text(&writer, work->launcher);
    text(&writer, work->executable);
    text(&writer, work->binding);
    number(&writer, work->by_numa);
    text(&writer, work->directory);
    number(&writer, (uint64_t)work->stdin_rank);
    texts(&writer, work->variables);
    sodium_bin2hex(key, sizeof(key), work->key, sizeof(work->key));
    text(&writer, work->has_key ? key : NULL);
    sodium_memzero(key, sizeof(key));
    return writer.status;
}

/* ---- in an agent ---- */

static char **texts_read(struct launch_reader *reader)
{
    size_t count = 0, room = 8;
    char **list = calloc(room, sizeof(*list));
    const char *next;
    if (list == NULL) {
        reader->failed = true;
        return NULL;
    }
    while ((next = launch_get_text(reader)) != NULL && count < WORDS_MAX) {
        if (count + 1 == room) {
            char **grown = realloc(list, 2 * room * sizeof(*list));
            if (grown == NULL) {
                reader->failed = true;
                break;
            }
            list = grown;
            room *= 2;
        }
        list[count++] = (char *)(uintptr_t)next; /* into work->text, which is ours */
        list[count] = NULL;
    }
    return list;
}

/* Reads an array of numbers below `limit`. To be freed. */
static uint32_t *numbers_read(struct launch_reader *reader, uint32_t count, uint32_t limit)
{
    uint32_t *list = calloc((size_t)count + 1, sizeof(*list));
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        list[i] = (uint32_t)launch_get_number(reader, limit - 1);
    }
    reader->failed = reader->failed || list == NULL;
    return list;
}

static void programs_read(struct launch_reader *reader, struct launch_work *work)
{
    uint64_t ranks = 0;
    work->program_count = launch_get_number(reader, PROGRAMS_MAX);
    work->programs = calloc(work->program_count + 1, sizeof(*work->programs));
    reader->failed = reader->failed || work->programs == NULL;
    for (size_t i = 0; i < work->program_count && !reader->failed; i++) {
        struct cw_launch_program *program = &work->programs[i];
        program->count = (uint32_t)launch_get_number(reader, CW_LAUNCH_RANKS_MAX);
        program->arguments = texts_read(reader);
        program->directory = launch_get_text(reader);
        program->variables = texts_read(reader);
        ranks += program->count;
        reader->failed = reader->failed || program->arguments[0] == NULL;
    }
    reader->failed = reader->failed || ranks == 0 || ranks > CW_LAUNCH_RANKS_MAX;
    work->rank_count = (uint32_t)ranks;
}

static void hosts_read(struct launch_reader *reader, struct launch_work *work)
{
    work->host_count = (uint32_t)launch_get_number(reader, CW_LAUNCH_HOSTS_MAX);
    work->host_names = calloc((size_t)work->host_count + 1, sizeof(*work->host_names));
    reader->failed = reader->failed || work->host_names == NULL || work->host_count == 0;
    for (uint32_t i = 0; i < work->host_count && !reader->failed; i++) {
        work->host_names[i] = launch_get_text(reader);
        reader->failed = reader->failed || work->host_names[i] == NULL;
    }
    uint64_t ranks = launch_get_number(reader, CW_LAUNCH_RANKS_MAX);
    reader->failed = reader->failed || ranks != work->rank_count;
    if (!reader->failed) {
        work->host_of = numbers_read(reader, work->rank_count, work->host_count);
    }
}

static void rest_read(struct launch_reader *reader, struct launch_work *work)
{
    size_t count = 0;
    work->launcher = launch_get_text(reader);
    work->executable = launch_get_text(reader);
    work->binding = launch_get_text(reader);
    work->by_numa = launch_get_number(reader, 1) != 0;
    work->directory = launch_get_text(reader);
    work->stdin_rank = (int64_t)launch_get_number(reader, UINT64_MAX);
    work->variables = texts_read(reader);
    const char *key = launch_get_text(reader);
    work->has_key = key != NULL;
    reader->failed =
        reader->failed || work->launcher == NULL || work->executable == NULL || work->binding == NULL ||
        (key != NULL && (sodium_hex2bin(work->key, sizeof(work->key), key, strlen(key), NULL, &count, NULL) != 0 ||
                         count != sizeof(work->key)));
}

int launch_work_read(const struct launch_frame *frame, struct launch_work *work, uint32_t **hosts, uint32_t *count,
                     const char **version)
{
    *work = (struct launch_work){.rank_count = 0};
    *hosts = NULL;
    if (launch_bytes_add(&work->text, frame->bytes, frame->count) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    struct launch_frame own = {.bytes = launch_bytes_front(&work->text), .count = frame->count};
    struct launch_reader reader = launch_reader_of(&own);
    *version = launch_get_text(&reader);
    if (*version == NULL || strcmp(*version, CW_VERSION) != 0) {
        return *version == NULL ? CW_ERROR_ARGUMENT : CW_ERROR_UNSUPPORTED;
    }
    *count = (uint32_t)launch_get_number(&reader, CW_LAUNCH_HOSTS_MAX);
    *hosts = numbers_read(&reader, *count, CW_LAUNCH_HOSTS_MAX);
    const char *name = launch_get_text(&reader);
    snprintf(work->name, sizeof(work->name), "%s", name != NULL ? name : "");
    programs_read(&reader, work);
    if (!reader.failed) {
        hosts_read(&reader, work);
    }
    if (!reader.failed) {
        rest_read(&reader, work);
    }
    for (uint32_t i = 0; i < *count && !reader.failed; i++) {
        reader.failed = (*hosts)[i] >= work->host_count;
    }
    return reader.failed || *count == 0 || reader.at != reader.end ? CW_ERROR_ARGUMENT : CW_OK;
}

void launch_work_dispose(struct launch_work *work)
{
    for (size_t i = 0; work->text.start != NULL && work->programs != NULL && i < work->program_count; i++) {
        free((void *)(uintptr_t)work->programs[i].arguments);
        free(work->programs[i].variables);
    }
    free(work->programs);
    free(work->host_names);
    free(work->host_of);
    free(work->variables);
    sodium_memzero(work->key, sizeof(work->key));
    if (work->text.start != NULL) {
        sodium_memzero(work->text.start, work->text.allocated);
    }
    launch_bytes_dispose(&work->text);
    *work = (struct launch_work){.rank_count = 0};
}
