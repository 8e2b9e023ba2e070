/* A rank's recorder: forms by their digest, calls as they come. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "collectives/file/recording.h"

enum { SLOTS_FIRST = 256, CONTEXTS_FIRST = 8 };

/* Hash table of forms and communicators by their contents; open addressing, `index` + 1, 0: free. */
struct slot {
    uint64_t digest[2];
    uint32_t index;
};

struct cw_recorder {
    size_t bytes_max;
    struct cw_packer comms, forms, calls;
    struct cw_packer scratch; /* the form that is looked for */
    uint32_t comm_count, form_count;
    uint64_t call_count, dropped;
    uint32_t ordinal; /* of the last call */
    uint64_t *contexts;
    uint32_t context_room;
    struct slot *slots;
    uint32_t slot_count; /* a power of two */
};

struct cw_recorder *cw_recorder_create(size_t bytes_max)
{
    struct cw_recorder *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->bytes_max = bytes_max;
    made->slot_count = SLOTS_FIRST;
    made->slots = calloc(SLOTS_FIRST, sizeof(*made->slots));
    if (made->slots == NULL) {
        free(made);
        return NULL;
    }
    return made;
}

void cw_recorder_destroy(struct cw_recorder *recorder)
{
    if (recorder != NULL) {
        free(recorder->comms.bytes);
        free(recorder->forms.bytes);
        free(recorder->calls.bytes);
        free(recorder->scratch.bytes);
        free(recorder->contexts);
        free(recorder->slots);
        free(recorder);
    }
}

static bool has_room(const struct cw_recorder *recorder, size_t more)
{
    const struct cw_packer *parts[] = {&recorder->comms, &recorder->forms, &recorder->calls};
    size_t used = recorder->slot_count * sizeof(struct slot) + recorder->context_room * sizeof(uint64_t) + more;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i]->failed) {
            return false;
        }
        used += parts[i]->length;
    }
    return used <= recorder->bytes_max;
}

uint32_t cw_recorder_comm(struct cw_recorder *recorder, const struct cw_recording_comm *comm)
{
    for (uint32_t i = recorder->comm_count; i > 0; i--) { /* the newest is the likeliest */
        if (recorder->contexts[i - 1] == comm->context) {
            return i - 1;
        }
    }
    if (!has_room(recorder, 10ull * comm->size + 40)) {
        return UINT32_MAX;
    }
    if (recorder->comm_count == recorder->context_room) {
        uint32_t room = recorder->context_room == 0 ? CONTEXTS_FIRST : 2 * recorder->context_room;
        uint64_t *grown = realloc(recorder->contexts, room * sizeof(*grown));
        if (grown == NULL) {
            return UINT32_MAX;
        }
        recorder->contexts = grown;
        recorder->context_room = room;
    }
    cw_pack_number(&recorder->comms, comm->context);
    cw_pack_number(&recorder->comms, comm->size);
    cw_pack_number(&recorder->comms, comm->flags);
    cw_pack_ranks(&recorder->comms, comm->members, comm->size);
    recorder->contexts[recorder->comm_count] = comm->context;
    return recorder->comm_count++;
}

static void form_pack(struct cw_packer *packer, const struct cw_recording_form *form, uint32_t comm_size)
{
    cw_pack_number(packer, form->comm);
    cw_pack_number(packer, form->collective);
    cw_pack_number(packer, form->flags);
    cw_pack_number(packer, form->root);
    cw_pack_number(packer, form->element_bytes);
    cw_pack_number(packer, form->count);
    if ((form->flags & CW_RECORDING_COUNTS) != 0) {
        cw_pack_list(packer, form->counts, comm_size);
    }
    if ((form->flags & CW_RECORDING_ROWS) != 0) {
        cw_pack_number(packer, form->sends_count);
        cw_pack_number(packer, form->expects_count);
        cw_pack_list(packer, form->sends, form->sends_count);
        cw_pack_list(packer, form->expects, form->expects_count);
    }
    cw_pack_text(packer, form->algorithm);
}

static struct slot *slot_find(struct slot *slots, uint32_t slot_count, const uint64_t digest[2])
{
    uint32_t at = (uint32_t)digest[0] & (slot_count - 1);
    while (slots[at].index != 0 && (slots[at].digest[0] != digest[0] || slots[at].digest[1] != digest[1])) {
        at = (at + 1) & (slot_count - 1);
    }
    return &slots[at];
}

/* False: no memory; the table is as it was. */
static bool slots_grow(struct cw_recorder *recorder)
{
    uint32_t count = 2 * recorder->slot_count;
    struct slot *slots = calloc(count, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < recorder->slot_count; i++) {
        if (recorder->slots[i].index != 0) {
            *slot_find(slots, count, recorder->slots[i].digest) = recorder->slots[i];
        }
    }
    free(recorder->slots);
    recorder->slots = slots;
    recorder->slot_count = count;
    return true;
}

/* The form's index; UINT32_MAX: no room for another one. */
static uint32_t form_find(struct cw_recorder *recorder, const struct cw_recording_form *form, uint32_t comm_size)
{
    recorder->scratch.length = 0;
    form_pack(&recorder->scratch, form, comm_size);
    if (recorder->scratch.failed) {
        return UINT32_MAX;
    }
    XXH128_hash_t hash = XXH3_128bits(recorder->scratch.bytes, recorder->scratch.length);
    const uint64_t digest[2] = {hash.low64, hash.high64};
    struct slot *slot = slot_find(recorder->slots, recorder->slot_count, digest);
    if (slot->index != 0) {
        return slot->index - 1;
    }
    if (!has_room(recorder, recorder->scratch.length)) {
        return UINT32_MAX;
    }
    if (2 * (recorder->form_count + 1) > recorder->slot_count) {
        if (!slots_grow(recorder)) {
            return UINT32_MAX;
        }
        slot = slot_find(recorder->slots, recorder->slot_count, digest);
    }
    cw_pack_bytes(&recorder->forms, recorder->scratch.bytes, recorder->scratch.length);
    if (recorder->forms.failed) {
        return UINT32_MAX;
    }
    *slot = (struct slot){{digest[0], digest[1]}, ++recorder->form_count};
    return recorder->form_count - 1;
}

bool cw_recorder_call(struct cw_recorder *recorder, const struct cw_recording_form *form, uint32_t comm_size,
                      uint32_t ordinal, uint32_t run, uint64_t took_ns)
{
    enum { CALL_BYTES_MAX = 5 + 10 + 5 + 10 };
    /* once full, always full: a later call that is short would leave a gap */
    uint32_t index = recorder->dropped > 0 || !has_room(recorder, CALL_BYTES_MAX) || form->comm == UINT32_MAX
                         ? UINT32_MAX
                         : form_find(recorder, form, comm_size);
    if (index == UINT32_MAX) {
        recorder->dropped++;
        return false;
    }
    cw_pack_number(&recorder->calls, index);
    cw_pack_signed(&recorder->calls, (int64_t)ordinal - recorder->ordinal);
    cw_pack_number(&recorder->calls, run);
    cw_pack_number(&recorder->calls, took_ns);
    recorder->ordinal = ordinal;
    recorder->call_count++;
    return true;
}

uint64_t cw_recorder_calls(const struct cw_recorder *recorder)
{
    return recorder->call_count;
}

uint64_t cw_recorder_dropped(const struct cw_recorder *recorder)
{
    return recorder->dropped;
}

void cw_recorder_part(const struct cw_recorder *recorder, struct cw_packer *part)
{
    const bool is_whole = !recorder->comms.failed && !recorder->forms.failed && !recorder->calls.failed;
    cw_pack_number(part, is_whole ? recorder->comm_count : 0);
    if (is_whole) {
        cw_pack_bytes(part, recorder->comms.bytes, recorder->comms.length);
    }
    cw_pack_number(part, is_whole ? recorder->form_count : 0);
    if (is_whole) {
        cw_pack_bytes(part, recorder->forms.bytes, recorder->forms.length);
    }
    cw_pack_number(part, is_whole ? recorder->call_count : 0);
    if (is_whole) {
        cw_pack_bytes(part, recorder->calls.bytes, recorder->calls.length);
    }
    cw_pack_number(part, recorder->dropped + (is_whole ? 0 : recorder->call_count));
}
