/* Reading and writing recordings. */
#include "collectives/file/recording.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

static const struct cw_pack_kind kind = {"CWTRACE\n", "trace", CW_RECORDING_VERSION};

enum { FORM_FLAGS = 127, COMM_FLAGS = 7 };

int cw_recording_encode(const struct cw_recording *head, const uint8_t *const *parts, const uint64_t *lengths,
                        void **bytes, size_t *length)
{
    struct cw_packer packer = {0};
    cw_pack_text(&packer, head->program);
    cw_pack_number(&packer, head->ranks);
    cw_pack_number(&packer, head->eager_max_bytes);
    cw_pack_number(&packer, head->multicast_eager_max_bytes);
    for (uint32_t rank = 0; rank < head->ranks; rank++) {
        cw_pack_number(&packer, lengths[rank]);
        cw_pack_bytes(&packer, parts[rank], lengths[rank]);
    }
    int status = cw_pack_file(&kind, &packer, bytes, length);
    free(packer.bytes);
    return status;
}

static void *entries_make(struct cw_unpacker *unpacker, uint64_t count, size_t entry_bytes)
{
    void *entries = calloc(count + 1, entry_bytes);
    if (entries == NULL) {
        cw_unpack_no_memory(unpacker);
    }
    return entries;
}

static void comms_read(struct cw_unpacker *unpacker, struct cw_recording_rank *of, uint32_t ranks)
{
    uint32_t count = (uint32_t)cw_unpack_count(unpacker, UINT32_MAX, 4, "has more communicators than it can hold");
    of->comms = entries_make(unpacker, count, sizeof(*of->comms));
    while (unpacker->status == CW_OK && of->comm_count < count) {
        struct cw_recording_comm *comm = &of->comms[of->comm_count++];
        comm->context = cw_unpack_number(unpacker);
        comm->size = (uint32_t)cw_unpack_limited(unpacker, ranks, "has a communicator of more ranks than there are");
        comm->flags = (uint32_t)cw_unpack_limited(unpacker, COMM_FLAGS, "has unknown flags of a communicator");
        comm->members = cw_unpack_ranks(unpacker, comm->size, ranks - 1);
        if (comm->size == 0) {
            cw_unpack_fail(unpacker, "has a communicator without ranks");
        }
    }
}

static void form_read(struct cw_unpacker *unpacker, const struct cw_recording_rank *of, struct cw_recording_form *form)
{
    form->comm = (uint32_t)cw_unpack_number(unpacker);
    if (unpacker->status != CW_OK || form->comm >= of->comm_count) {
        cw_unpack_fail(unpacker, "has a call on an unknown communicator");
        return;
    }
    uint32_t size = of->comms[form->comm].size;
    form->collective =
        (enum cw_collective)cw_unpack_limited(unpacker, CW_COLLECTIVE_COUNT - 1, "has an unknown collective");
    form->flags = (uint32_t)cw_unpack_limited(unpacker, FORM_FLAGS, "has unknown flags of a call");
    form->root = (uint32_t)cw_unpack_limited(unpacker, size - 1, "has a root that is no rank");
    form->element_bytes = (uint32_t)cw_unpack_limited(unpacker, CW_ELEMENT_BYTES_MAX, "has an element too large");
    form->count = cw_unpack_number(unpacker);
    if ((form->flags & CW_RECORDING_COUNTS) != 0) {
        form->counts = cw_unpack_list(unpacker, size);
    }
    if ((form->flags & CW_RECORDING_ROWS) != 0) {
        form->sends_count = (uint32_t)cw_unpack_limited(unpacker, size, "has a row longer than its communicator");
        form->expects_count = (uint32_t)cw_unpack_limited(unpacker, size, "has a row longer than its communicator");
        form->sends = cw_unpack_list(unpacker, form->sends_count);
        form->expects = cw_unpack_list(unpacker, form->expects_count);
    }
    cw_unpack_text(unpacker, form->algorithm, sizeof(form->algorithm), "has a garbled name of an algorithm");
    if ((form->flags & CW_RECORDING_ROWS) != 0 && form->collective == CW_ALLTOALL &&
        (form->sends_count != size || form->expects_count != size)) {
        cw_unpack_fail(unpacker, "has an all-to-all-v without a count per rank");
    }
}

static void calls_read(struct cw_unpacker *unpacker, struct cw_recording_rank *of)
{
    uint32_t count = (uint32_t)cw_unpack_count(unpacker, UINT32_MAX, 4, "has more calls than it can hold");
    uint32_t ordinal = 0;
    of->calls = entries_make(unpacker, count, sizeof(*of->calls));
    while (unpacker->status == CW_OK && of->call_count < count) {
        struct cw_recording_call *call = &of->calls[of->call_count++];
        call->form = (uint32_t)cw_unpack_number(unpacker);
        ordinal += (uint32_t)cw_unpack_signed(unpacker);
        call->ordinal = ordinal;
        call->run = (uint32_t)cw_unpack_limited(unpacker, UINT32_MAX, "has a run out of range");
        call->took_ns = cw_unpack_number(unpacker);
        if (call->form >= of->form_count) {
            cw_unpack_fail(unpacker, "has a call of an unknown form");
        }
    }
}

static void part_read(struct cw_unpacker *unpacker, struct cw_recording_rank *of, uint32_t ranks)
{
    comms_read(unpacker, of, ranks);
    uint32_t count = (uint32_t)cw_unpack_count(unpacker, UINT32_MAX, 7, "has more forms of calls than it can hold");
    of->forms = entries_make(unpacker, count, sizeof(*of->forms));
    while (unpacker->status == CW_OK && of->form_count < count) {
        form_read(unpacker, of, &of->forms[of->form_count++]);
    }
    calls_read(unpacker, of);
    of->dropped = cw_unpack_number(unpacker);
}

static void recording_read(struct cw_unpacker *unpacker, struct cw_recording *recording)
{
    cw_unpack_text(unpacker, recording->program, sizeof(recording->program), "has a garbled name of a program");
    recording->ranks = (uint32_t)cw_unpack_number(unpacker);
    recording->eager_max_bytes = cw_unpack_number(unpacker);
    recording->multicast_eager_max_bytes = cw_unpack_number(unpacker);
    if (recording->ranks == 0 || recording->ranks > CW_RANKS_MAX ||
        recording->ranks > unpacker->length - unpacker->position) {
        recording->ranks = 0;
        cw_unpack_fail(unpacker, "has no ranks, or more than it can hold");
        return;
    }
    recording->of = entries_make(unpacker, recording->ranks, sizeof(*recording->of));
    for (uint32_t rank = 0; unpacker->status == CW_OK && rank < recording->ranks; rank++) {
        uint64_t length = cw_unpack_number(unpacker);
        const uint8_t *bytes = cw_unpack_bytes(unpacker, length);
        if (bytes == NULL) {
            return;
        }
        struct cw_unpacker part = *unpacker;
        part.bytes = bytes;
        part.length = length;
        part.position = 0;
        part_read(&part, &recording->of[rank], recording->ranks);
        cw_unpack_end(&part);
        unpacker->status = part.status;
    }
    cw_unpack_end(unpacker);
}

int cw_recording_decode(const void *bytes, size_t length, struct cw_recording **recording, char *error,
                        size_t error_bytes)
{
    struct cw_unpacker unpacker;
    uint8_t *content;
    int status = cw_unpack_file(&kind, bytes, length, &content, &unpacker, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_recording *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        recording_read(&unpacker, made);
        status = unpacker.status;
    } else {
        cw_unpack_no_memory(&unpacker);
        status = CW_ERROR_MEMORY;
    }
    free(content);
    if (status != CW_OK) {
        cw_recording_destroy(made);
        return status;
    }
    *recording = made;
    return CW_OK;
}

static void rank_dispose(struct cw_recording_rank *of)
{
    for (uint32_t i = 0; i < of->comm_count; i++) {
        free(of->comms[i].members);
    }
    for (uint32_t i = 0; i < of->form_count; i++) {
        free(of->forms[i].counts);
        free(of->forms[i].sends);
        free(of->forms[i].expects);
    }
    free(of->comms);
    free(of->forms);
    free(of->calls);
}

void cw_recording_destroy(struct cw_recording *recording)
{
    if (recording == NULL) {
        return;
    }
    for (uint32_t rank = 0; recording->of != NULL && rank < recording->ranks; rank++) {
        rank_dispose(&recording->of[rank]);
    }
    free(recording->of);
    free(recording);
}
