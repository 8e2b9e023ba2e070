#include "collectives/file/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/file/plan_file.h"
#include "dataplane/status.h"

static const struct cw_pack_kind kind = {"CWBOOK\r\n", "bundle of plans", CW_BUNDLE_VERSION};

bool cw_bundle_is(const void *bytes, size_t length)
{
    return cw_pack_is(&kind, bytes, length);
}

bool cw_bundle_same(const struct cw_problem *a, const struct cw_problem *b)
{
    if (a->collective != b->collective || a->ranks != b->ranks || a->root != b->root ||
        a->element_bytes != b->element_bytes || a->ordered != b->ordered || a->count != b->count ||
        a->has_counts != b->has_counts) {
        return false;
    }
    uint64_t entries = a->collective == CW_ALLTOALL ? (uint64_t)a->ranks * a->ranks : a->ranks;
    return !a->has_counts || memcmp(a->counts, b->counts, entries * sizeof(*a->counts)) == 0;
}

int cw_bundle_encode(const struct cw_bundle *bundle, void **bytes, size_t *length)
{
    struct cw_packer packer = {0};
    int status = CW_OK;
    cw_pack_text(&packer, bundle->program);
    cw_pack_number(&packer, bundle->ranks);
    cw_pack_number(&packer, bundle->comm_count);
    for (uint32_t i = 0; i < bundle->comm_count; i++) {
        const struct cw_bundle_comm *comm = &bundle->comms[i];
        cw_pack_number(&packer, comm->context);
        cw_pack_number(&packer, comm->size);
        cw_pack_number(&packer, comm->opens_group);
        cw_pack_ranks(&packer, comm->members, comm->size);
    }
    cw_pack_number(&packer, bundle->plan_count);
    for (uint32_t i = 0; status == CW_OK && i < bundle->plan_count; i++) {
        const struct cw_bundle_plan *plan = &bundle->plans[i];
        void *file;
        size_t file_bytes;
        status = cw_plan_encode(plan->plan, &file, &file_bytes);
        if (status != CW_OK) {
            break;
        }
        cw_pack_number(&packer, plan->comm);
        cw_pack_number(&packer, plan->calls);
        cw_pack_number(&packer, plan->now_ns);
        cw_pack_number(&packer, plan->then_ns);
        cw_pack_number(&packer, file_bytes);
        cw_pack_bytes(&packer, file, file_bytes);
        free(file);
    }
    status = status == CW_OK ? cw_pack_file(&kind, &packer, bytes, length) : status;
    free(packer.bytes);
    return status;
}

static void comms_read(struct cw_unpacker *unpacker, struct cw_bundle *bundle)
{
    uint32_t count = (uint32_t)cw_unpack_count(unpacker, UINT32_MAX, 4, "has more communicators than it can hold");
    bundle->comms = calloc(count + 1u, sizeof(*bundle->comms));
    if (bundle->comms == NULL) {
        cw_unpack_no_memory(unpacker);
    }
    while (unpacker->status == CW_OK && bundle->comm_count < count) {
        struct cw_bundle_comm *comm = &bundle->comms[bundle->comm_count++];
        comm->context = cw_unpack_number(unpacker);
        comm->size =
            (uint32_t)cw_unpack_limited(unpacker, bundle->ranks, "has a communicator of more ranks than there are");
        comm->opens_group = cw_unpack_limited(unpacker, 1, "is garbled where a group is opened") != 0;
        comm->members = cw_unpack_ranks(unpacker, comm->size, bundle->ranks - 1);
    }
}

static void plan_read(struct cw_unpacker *unpacker, struct cw_bundle *bundle, struct cw_bundle_plan *plan)
{
    char reason[300], what[400];
    plan->comm = (uint32_t)cw_unpack_number(unpacker);
    plan->calls = cw_unpack_number(unpacker);
    plan->now_ns = cw_unpack_number(unpacker);
    plan->then_ns = cw_unpack_number(unpacker);
    uint64_t length = cw_unpack_number(unpacker);
    const uint8_t *bytes = cw_unpack_bytes(unpacker, length);
    if (bytes == NULL) {
        return;
    }
    int status = cw_plan_decode(bytes, length, &plan->plan, reason, sizeof(reason));
    if (status == CW_ERROR_MEMORY) {
        cw_unpack_no_memory(unpacker);
    } else if (status != CW_OK) {
        snprintf(what, sizeof(what), "has a plan that is damaged: %s", reason);
        cw_unpack_fail(unpacker, what);
    } else if (plan->comm >= bundle->comm_count || bundle->comms[plan->comm].size != plan->plan->problem->ranks) {
        cw_unpack_fail(unpacker, "has a plan for another communicator than it says");
    }
    for (const struct cw_bundle_plan *other = bundle->plans; unpacker->status == CW_OK && other < plan; other++) {
        if (other->comm == plan->comm && cw_bundle_same(other->plan->problem, plan->plan->problem)) {
            cw_unpack_fail(unpacker, "has two plans for the same calls");
        }
    }
}

static void bundle_read(struct cw_unpacker *unpacker, struct cw_bundle *bundle)
{
    cw_unpack_text(unpacker, bundle->program, sizeof(bundle->program), "has a garbled name of a program");
    bundle->ranks = (uint32_t)cw_unpack_limited(unpacker, CW_RANKS_MAX, "has too many ranks");
    if (unpacker->status == CW_OK && bundle->ranks == 0) {
        cw_unpack_fail(unpacker, "has no ranks");
    }
    if (unpacker->status != CW_OK) {
        return;
    }
    comms_read(unpacker, bundle);
    uint32_t count = (uint32_t)cw_unpack_count(unpacker, CW_BUNDLE_PLANS_MAX, 32, "has more plans than it can hold");
    bundle->plans = calloc(count + 1u, sizeof(*bundle->plans));
    if (bundle->plans == NULL) {
        cw_unpack_no_memory(unpacker);
    }
    while (unpacker->status == CW_OK && bundle->plan_count < count) {
        plan_read(unpacker, bundle, &bundle->plans[bundle->plan_count++]);
    }
    cw_unpack_end(unpacker);
}

int cw_bundle_decode(const void *bytes, size_t length, struct cw_bundle **bundle, char *error, size_t error_bytes)
{
    struct cw_unpacker unpacker;
    uint8_t *content;
    int status = cw_unpack_file(&kind, bytes, length, &content, &unpacker, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_bundle *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        cw_unpack_no_memory(&unpacker);
    } else {
        bundle_read(&unpacker, made);
    }
    free(content);
    if (unpacker.status != CW_OK) {
        cw_bundle_destroy(made);
        return unpacker.status;
    }
    *bundle = made;
    return CW_OK;
}

void cw_bundle_destroy(struct cw_bundle *bundle)
{
    if (bundle == NULL) {
        return;
    }
    for (uint32_t i = 0; i < bundle->comm_count; i++) {
        free(bundle->comms[i].members);
    }
    for (uint32_t i = 0; i < bundle->plan_count; i++) {
        cw_plan_destroy(bundle->plans[i].plan);
    }
    free(bundle->comms);
    free(bundle->plans);
    free(bundle);
}
