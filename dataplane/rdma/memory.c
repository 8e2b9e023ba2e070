#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dataplane/rdma/rdma_state.h"

/* ---- receive buffers ---- */

void rdma_buffer_release(struct rdma *rdma, uint32_t buffer)
{
    rdma->idle_buffers[rdma->idle_count++] = buffer;
}

void rdma_buffers_post(struct rdma *rdma)
{
    while (rdma->idle_count > 0) {
        struct cw_verbs_buffer buffers[CW_VERBS_BURST];
        uint32_t count = rdma->idle_count < CW_VERBS_BURST ? rdma->idle_count : CW_VERBS_BURST;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t buffer = rdma->idle_buffers[rdma->idle_count - count + i];
            buffers[i] = (struct cw_verbs_buffer){.id = buffer,
                                                  .data = rdma_buffer(rdma, buffer),
                                                  .bytes = rdma->buffer_bytes - 64 + sizeof(struct rdma_header),
                                                  .memory = &rdma->registered};
        }
        uint32_t taken = cw_verbs_receive_post(rdma->device, buffers, count);
        for (uint32_t i = taken; i < count; i++) { /* the others keep their places */
            rdma->idle_buffers[rdma->idle_count - count + i - taken] = buffers[i].id;
        }
        rdma->idle_count -= taken;
        if (taken < count) {
            return;
        }
    }
}

void rdma_slot_released(struct cw_rdma *base, uint32_t slot)
{
    struct rdma *rdma = (struct rdma *)base;
    uint32_t buffer = rdma->buffer_of_slot[slot];
    if (buffer != RDMA_NO_BUFFER) { /* else its message came by packets */
        rdma->buffer_of_slot[slot] = RDMA_NO_BUFFER;
        rdma_buffer_release(rdma, buffer);
        if (rdma->idle_count >= rdma->idle_most) {
            rdma_buffers_post(rdma); /* there may be no turn soon */
        }
    }
}

/* ---- staging blocks ---- */

uint16_t rdma_block_acquire(struct rdma *rdma, const struct rdma_pair *pair)
{
    return rdma->free_block_count > pair->blocks_held ? rdma->free_blocks[--rdma->free_block_count] : RDMA_NO_BLOCK;
}

void rdma_block_release(struct rdma *rdma, uint16_t block)
{
    rdma->free_blocks[rdma->free_block_count++] = block;
}

/* ---- all of it ---- */

static uint32_t round_up(uint32_t bytes, uint32_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

int rdma_memory_init(struct rdma *rdma, char *error, size_t error_bytes)
{
    const struct cw_endpoint_config *config = &rdma->endpoint->config;
    uint32_t slots = config->pool_slot_count;
    uint32_t most = rdma->device->info.receive_max;
    if (most < slots + RDMA_BUFFERS_LEAST) {
        snprintf(error, error_bytes,
                 "%s: its shared receive queue takes %u buffers, of which messages want %u and %d are "
                 "for the rest; lower pool_slot_count",
                 rdma->device->info.port.name, most, slots, RDMA_BUFFERS_LEAST);
        return CW_ERROR_LIMIT;
    }
    rdma->buffer_count = most < slots + RDMA_BUFFERS_SPARE ? most : slots + RDMA_BUFFERS_SPARE;
    uint32_t spare = rdma->buffer_count - slots; /* those of slots are reserved for their borrowers */
    rdma->idle_most = spare / 2 < CW_VERBS_BURST ? spare / 2 : CW_VERBS_BURST;
    uint32_t slot_bytes = config->pool_slot_bytes > 64 ? config->pool_slot_bytes : 64;
    rdma->buffer_bytes = 64 + round_up(slot_bytes, 64);
    rdma->block_bytes = round_up(slot_bytes + sizeof(struct rdma_header), 4096);
    rdma->block_bytes = rdma->block_bytes > RDMA_BLOCK_BYTES ? rdma->block_bytes : RDMA_BLOCK_BYTES;
    uint64_t buffers_bytes = ((uint64_t)rdma->buffer_count * rdma->buffer_bytes + 4095) & ~4095ull;
    rdma->memory_bytes = buffers_bytes + (uint64_t)RDMA_BLOCKS * rdma->block_bytes;
    void *memory = mmap(NULL, rdma->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rdma->memory = memory == MAP_FAILED ? NULL : memory;
    rdma->buffer_of_slot = malloc((slots + 1) * sizeof(*rdma->buffer_of_slot));
    rdma->idle_buffers = malloc(rdma->buffer_count * sizeof(*rdma->idle_buffers));
    rdma->notices = malloc(rdma->buffer_count * sizeof(*rdma->notices));
    if (rdma->memory == NULL || rdma->buffer_of_slot == NULL || rdma->idle_buffers == NULL || rdma->notices == NULL) {
        snprintf(error, error_bytes, "%s: no memory for its receive buffers", rdma->device->info.port.name);
        return CW_ERROR_MEMORY;
    }
    int status =
        cw_verbs_memory_register(rdma->device, rdma->memory, rdma->memory_bytes, CW_VERBS_LOCAL, &rdma->registered);
    if (status != CW_OK) {
        snprintf(error, error_bytes, "%s: %llu KiB of receive buffers cannot be registered: %s",
                 rdma->device->info.port.name, (unsigned long long)rdma->memory_bytes >> 10,
                 status == CW_ERROR_LIMIT ? "no more may be locked in memory (ulimit -l)" : cw_status_text(status));
        return status;
    }
    rdma->blocks = rdma->memory + buffers_bytes;
    for (uint32_t i = RDMA_BLOCKS; i-- > 0;) {
        rdma_block_release(rdma, (uint16_t)i);
    }
    for (uint32_t i = 0; i < slots; i++) {
        rdma->buffer_of_slot[i] = RDMA_NO_BUFFER;
    }
    for (uint32_t i = rdma->buffer_count; i-- > 0;) {
        rdma_buffer_release(rdma, i);
    }
    rdma_buffers_post(rdma);
    return CW_OK;
}

void rdma_memory_dispose(struct rdma *rdma)
{
    if (rdma->registered.handle != NULL) {
        cw_verbs_memory_unregister(rdma->device, &rdma->registered);
    }
    if (rdma->memory != NULL) {
        munmap(rdma->memory, rdma->memory_bytes);
    }
    if (rdma->has_cache) {
        cw_cache_dispose(&rdma->cache);
        cw_memory_watch_close(&rdma->watch);
    }
    free(rdma->buffer_of_slot);
    free(rdma->idle_buffers);
    free(rdma->notices);
}

/* ---- registrations that are kept ---- */

static int kept_add(void *context, struct cw_pages *pages, uintptr_t first, uintptr_t end)
{
    struct rdma *rdma = context;
    struct cw_verbs_memory *registered = malloc(sizeof(*registered));
    int status = registered == NULL ? CW_ERROR_MEMORY
                                    : cw_verbs_memory_register(rdma->device, (void *)first, end - first,
                                                               pages->kind | CW_VERBS_FILL, registered);
    if (status != CW_OK) {
        free(registered);
        return status == CW_ERROR_LIMIT || status == CW_ERROR_MEMORY ? status : CW_ERROR_ARGUMENT;
    }
    *pages = (struct cw_pages){.first = first, .end = end, .handle = registered, .kind = pages->kind};
    return CW_OK;
}

static void kept_remove(void *context, struct cw_pages *pages)
{
    struct rdma *rdma = context;
    cw_verbs_memory_unregister(rdma->device, pages->handle);
    free(pages->handle);
}

/* With the first of them. Memory of simulated devices is not watched: threads of the kernel's have no place there. */
static void cache_open(struct rdma *rdma)
{
    const struct cw_registrar registrar = {.context = rdma, .add = kept_add, .remove = kept_remove};
    char error[CW_VERBS_ERROR_BYTES];
    if (rdma->device->info.port.kind != CW_VERBS_SIMULATED) {
        (void)cw_memory_watch_open(&rdma->watch, error, sizeof(error)); /* without one nothing is kept */
    }
    cw_cache_init(&rdma->cache, registrar, &rdma->watch, (uintptr_t)sysconf(_SC_PAGESIZE));
    rdma->has_cache = true;
}

/* Peers reach what lies on the pages of the region, and nothing of an own one. */
static bool kept_register(struct rdma *rdma, struct cw_region *region, void *memory, uint64_t bytes, bool has_peers)
{
    static_assert(CW_VERBS_LOCAL == 0, "kind 0 of the cache");
    if (!rdma->has_cache) {
        cache_open(rdma);
    }
    uintptr_t place = (uintptr_t)memory % rdma->cache.page_bytes;
    if ((has_peers && place >= RDMA_BASE_MAX) || /* a token has no room for it */
        cw_cache_get(&rdma->cache, memory, bytes, has_peers ? CW_VERBS_READ : CW_VERBS_LOCAL, &region->cached) !=
            CW_OK) {
        region->cached = NULL;
        return false;
    }
    region->verbs = *(const struct cw_verbs_memory *)cw_cache_pages(region->cached)->handle;
    region->verbs.remote_base += place;                            /* means nothing without peers */
    if (has_peers && region->verbs.remote_base >= RDMA_BASE_MAX) { /* as simulated devices have it */
        cw_cache_put(&rdma->cache, region->cached);
        region->cached = NULL;
        return false;
    }
    return true;
}

/* ---- regions ---- */

static bool own_register(struct rdma *rdma, struct cw_region *region, void *memory, uint64_t bytes, uint32_t rights)
{
    uint32_t granted =
        ((rights & CW_REGION_WRITE) != 0 ? CW_VERBS_WRITE : 0) | ((rights & CW_REGION_READ) != 0 ? CW_VERBS_READ : 0);
    int status = cw_verbs_memory_register(rdma->device, memory, bytes, granted, &region->verbs);
    if (status == CW_ERROR_LIMIT && rdma->has_cache && cw_cache_trim(&rdma->cache)) {
        status = cw_verbs_memory_register(rdma->device, memory, bytes, granted, &region->verbs);
    }
    return status == CW_OK;
}

bool rdma_memory_register(struct cw_rdma *base, struct cw_region *region, void *memory, uint64_t bytes, uint32_t rights,
                          uint64_t *key)
{
    struct rdma *rdma = (struct rdma *)base;
    if (rdma->has_failed) {
        return false;
    }
    bool is_kept = rights == CW_REGION_LOCAL || rights == (CW_REGION_READ | CW_REGION_KEPT);
    if (!(is_kept && kept_register(rdma, region, memory, bytes, rights != CW_REGION_LOCAL)) &&
        !own_register(rdma, region, memory, bytes, rights)) {
        region->verbs.handle = NULL;
        cw_count(rdma->endpoint, CW_COUNTER_RDMA_UNREGISTERED, 1);
        return false;
    }
    *key = rdma_token_key(rdma, region->verbs.remote_key, region->verbs.remote_base);
    return true;
}

bool rdma_means_key(const struct cw_rdma *base, uint64_t bits)
{
    uint32_t key;
    uint64_t first;
    return rdma_token_read((const struct rdma *)base, bits << 16, &key, &first);
}

bool rdma_memory_is_busy(const struct cw_rdma *base, const struct cw_region *region)
{
    return region->cached != NULL && ((const struct rdma *)base)->spent_first != NULL;
}

void rdma_memory_unregister(struct cw_rdma *base, struct cw_region *region)
{
    struct rdma *rdma = (struct rdma *)base;
    if (region->cached != NULL) {
        cw_cache_put(&rdma->cache, region->cached);
        region->cached = NULL;
    } else {
        cw_verbs_memory_unregister(rdma->device, &region->verbs);
    }
}
