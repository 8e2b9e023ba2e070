#include "mpi/collective/choice/common.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/point/internal.h"

static int room_allocate(struct mpi_common *common, size_t count)
{
    char *room = malloc(count + 1);
    if (room == NULL) {
        return CW_ERROR_MEMORY;
    }
    room[count] = '\0';
    free(common->bytes);
    *common = (struct mpi_common){.bytes = room, .count = count};
    return CW_OK;
}

int mpi_common_make(struct mpi_common *common, const char *word, const char *text, size_t text_bytes)
{
    size_t word_bytes = (word == NULL ? 0 : strlen(word)) + 1;
    mpi_common_free(common);
    if (word_bytes == 1 && text_bytes == 0) {
        return CW_OK;
    }
    if (room_allocate(common, word_bytes + text_bytes) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    memcpy(common->bytes, word == NULL ? "" : word, word_bytes);
    if (text_bytes > 0) {
        memcpy(common->bytes + word_bytes, text, text_bytes);
    }
    return CW_OK;
}

int mpi_common_bcast(struct mpi_common *common)
{
    struct mpi_comm *world = mpi_comm_world;
    uint64_t count = common->count;
    int code = mpi_internal_bcast(world, world->group, MPI_TAG_CREATE_GROUP, &count, sizeof(count));
    if (code == MPI_SUCCESS && world->rank != 0 && room_allocate(common, (size_t)count) != CW_OK) {
        return MPI_ERR_NO_MEM;
    }
    if (code != MPI_SUCCESS || count == 0) {
        return code;
    }
    return mpi_internal_bcast(world, world->group, MPI_TAG_CREATE_GROUP, common->bytes, common->count);
}

const char *mpi_common_word(const struct mpi_common *common)
{
    return common->count == 0 ? "" : common->bytes;
}

const char *mpi_common_text(const struct mpi_common *common, size_t *text_bytes)
{
    size_t word_bytes = common->count == 0 ? 0 : strnlen(common->bytes, common->count - 1) + 1;
    *text_bytes = common->count - word_bytes;
    return common->count == 0 ? "" : common->bytes + word_bytes;
}

void mpi_common_free(struct mpi_common *common)
{
    free(common->bytes);
    *common = (struct mpi_common){.bytes = NULL};
}
