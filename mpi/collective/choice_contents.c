#include "mpi/collective/choice_contents.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings.h"
#include "dataplane/status.h"
#include "mpi/collective/choice.h"
#include "mpi/point/internal.h"
#include "mpi/runtime/process.h"

/* The words, a zero, and the text, in one piece: what the digest is of, and what travels. */
static char *contents;
static size_t contents_bytes; /* 0: neither words nor text */
static char place[CW_SETTINGS_PATH_BYTES + 64];
static char failure[512]; /* of rank 0 only it counts: others get what rank 0 has */

/* NULL: there is none, or it cannot be read: `failure` says so. */
static char *text_read(const struct cw_settings_place *from, size_t *text_bytes)
{
    *text_bytes = 0;
    failure[0] = '\0';
    char *text = from->path[0] == '\0' ? NULL : cw_settings_read(from->path, CW_MEASURED_TEXT_MAX, text_bytes);
    bool is_absent = from->path[0] == '\0' || (!from->is_wanted && (errno == ENOENT || errno == ENOTDIR));
    if (text == NULL && !is_absent) {
        snprintf(failure, sizeof(failure),
                 "%.300s (%s): %s; `causeway plogp -o FILE` makes one, CAUSEWAY_PLOGP=none does without", from->path,
                 from->origin, strerror(errno));
    }
    return text;
}

int mpi_choice_prepare(uint8_t note[CW_JOB_NOTE_BYTES])
{
    const char *words = getenv("CAUSEWAY_ALGORITHM");
    struct cw_settings_place from;
    size_t text_bytes;
    memset(note, 0, CW_JOB_NOTE_BYTES);
    cw_settings_plogp(&from);
    char *text = text_read(&from, &text_bytes);
    words = words == NULL ? "" : words;
    size_t words_bytes = strlen(words) + 1;
    if (words_bytes == 1 && text_bytes == 0) {
        free(text);
        return CW_OK;
    }
    contents_bytes = words_bytes + text_bytes;
    contents = malloc(contents_bytes + 1);
    if (contents == NULL) {
        free(text);
        contents_bytes = 0;
        return CW_ERROR_MEMORY;
    }
    memcpy(contents, words, words_bytes);
    if (text_bytes > 0) {
        memcpy(contents + words_bytes, text, text_bytes);
        snprintf(place, sizeof(place), "%s (%s)", from.path, from.origin);
    }
    contents[contents_bytes] = '\0';
    free(text);
    crypto_generichash(note, CW_JOB_NOTE_BYTES, (const uint8_t *)contents, contents_bytes, NULL, 0);
    return CW_OK;
}

/* Rank 0's contents take the place of all others. */
static int contents_spread(void)
{
    struct mpi_comm *world = mpi_comm_world;
    uint64_t bytes = contents_bytes;
    int code = mpi_internal_spread(world, world->group, MPI_TAG_CREATE_GROUP, &bytes, sizeof(bytes));
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (world->rank != 0) {
        char *room = malloc((size_t)bytes + 1);
        if (room == NULL) {
            return MPI_ERR_NO_MEM;
        }
        room[bytes] = '\0';
        free(contents);
        contents = room;
        contents_bytes = (size_t)bytes;
        snprintf(place, sizeof(place), "rank 0's file");
    }
    return bytes == 0 ? MPI_SUCCESS
                      : mpi_internal_spread(world, world->group, MPI_TAG_CREATE_GROUP, contents, contents_bytes);
}

int mpi_contents_settle(const char **words, const char **text, size_t *text_bytes, char *error, size_t error_bytes)
{
    if (mpi_process.rank == 0 && failure[0] != '\0') {
        snprintf(error, error_bytes, "%s", failure);
        return MPI_ERR_NO_SUCH_FILE;
    }
    int code = cw_job_notes_agree(mpi_process.job) ? MPI_SUCCESS : contents_spread();
    if (code != MPI_SUCCESS) {
        snprintf(error, error_bytes, "rank 0's parameters of collectives cannot be had");
        return code;
    }
    *words = contents_bytes == 0 ? "" : contents;
    size_t words_bytes = contents_bytes == 0 ? 0 : strnlen(contents, contents_bytes - 1) + 1;
    *text = contents_bytes == 0 ? "" : contents + words_bytes;
    *text_bytes = contents_bytes - words_bytes;
    return MPI_SUCCESS;
}

const char *mpi_contents_place(void)
{
    return place;
}

void mpi_contents_forget(void)
{
    free(contents);
    contents = NULL;
    contents_bytes = 0;
    place[0] = '\0';
}
