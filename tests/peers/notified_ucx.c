/* A put that its target learns of, by UCX: ucp_put_nbx of the bytes, ucp_worker_fence, ucp_put_nbx of a flag that the
 * target looks at. Two processes in turn; prints "latency bytes us", half a round trip, for each size of the arguments.
 * TRIPS round trips each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#define NEED(condition)                                                   \
    do {                                                                  \
        if (!(condition)) {                                               \
            fprintf(stderr, "line %d: %s fails\n", __LINE__, #condition); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

struct side {
    int line; /* to the other process */
    ucp_worker_h worker;
    ucp_ep_h other;
    ucp_rkey_h key;
    uint8_t *own, *source; /* `bytes`, and a flag */
    uint64_t remote;
};

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Sends a block and gets the other's, to be freed. */
static void *exchange(int line, const void *block, size_t bytes, size_t *got)
{
    NEED(write(line, &bytes, sizeof(bytes)) == sizeof(bytes) && write(line, block, bytes) == (ssize_t)bytes);
    NEED(recv(line, got, sizeof(*got), MSG_WAITALL) == sizeof(*got));
    void *its = malloc(*got);
    NEED(its != NULL && recv(line, its, *got, MSG_WAITALL) == (ssize_t)*got);
    return its;
}

static void finish(const struct side *side, ucs_status_ptr_t request)
{
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(side->worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    NEED(!UCS_PTR_IS_ERR(request));
}

static void value_send(const struct side *side, size_t bytes, uint64_t trip)
{
    const ucp_request_param_t none = {0};
    memset(side->source, (int)trip, bytes);
    memcpy(side->source + bytes, &trip, sizeof(trip));
    ucs_status_ptr_t put = ucp_put_nbx(side->other, side->source, bytes, side->remote, side->key, &none);
    NEED(ucp_worker_fence(side->worker) == UCS_OK);
    ucs_status_ptr_t flag =
        ucp_put_nbx(side->other, side->source + bytes, sizeof(trip), side->remote + bytes, side->key, &none);
    finish(side, put);
    finish(side, flag);
}

static void value_receive(const struct side *side, size_t bytes, uint64_t trip)
{
    uint64_t flag;
    do {
        ucp_worker_progress(side->worker);
        memcpy(&flag, (const void *)(side->own + bytes), sizeof(flag));
        __asm__ volatile("" ::: "memory");
    } while (flag != trip);
    NEED(side->own[0] == (uint8_t)trip && side->own[bytes - 1] == (uint8_t)trip);
}

static void connect_worker(struct side *side, ucp_context_h context)
{
    const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_address_t *address;
    size_t bytes, got;
    NEED(ucp_worker_create(context, &single, &side->worker) == UCS_OK);
    NEED(ucp_worker_get_address(side->worker, &address, &bytes) == UCS_OK);
    ucp_address_t *its = exchange(side->line, address, bytes, &got);
    const ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = its};
    NEED(ucp_ep_create(side->worker, &to, &side->other) == UCS_OK);
    free(its);
}

static void measure(struct side *side, ucp_context_h context, size_t bytes, int trips, int is_first)
{
    size_t all = bytes + sizeof(uint64_t), got;
    const ucp_mem_map_params_t wanted = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                         .length = all,
                                         .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t made = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    ucp_mem_h memory;
    void *packed;
    size_t packed_bytes;
    NEED(ucp_mem_map(context, &wanted, &memory) == UCS_OK && ucp_mem_query(memory, &made) == UCS_OK);
    side->own = made.address;
    side->source = malloc(all);
    memset(side->own, 0, all);
    NEED(ucp_rkey_pack(context, memory, &packed, &packed_bytes) == UCS_OK);
    void *key = exchange(side->line, packed, packed_bytes, &got);
    uint64_t place = (uintptr_t)side->own, *remote = exchange(side->line, &place, sizeof(place), &got);
    side->remote = *remote;
    NEED(ucp_ep_rkey_unpack(side->other, key, &side->key) == UCS_OK);
    double begun_us = 0;
    for (int trip = 1; trip <= trips + trips / 10; trip++) {
        begun_us = trip == trips / 10 + 1 ? now_us() : begun_us;
        if (is_first) {
            value_send(side, bytes, (uint64_t)trip);
            value_receive(side, bytes, (uint64_t)trip);
        } else {
            value_receive(side, bytes, (uint64_t)trip);
            value_send(side, bytes, (uint64_t)trip);
        }
    }
    if (is_first) {
        printf("latency %zu %.3f\n", bytes, (now_us() - begun_us) / trips / 2);
    }
    size_t end = 0;
    free(exchange(side->line, &end, sizeof(end), &got)); /* both are done with the memory */
    ucp_rkey_destroy(side->key);
    free(remote);
    free(key);
    free(side->source);
    ucp_rkey_buffer_release(packed);
    NEED(ucp_mem_unmap(context, memory) == UCS_OK);
}

int main(int argc, char **argv)
{
    int lines[2];
    int trips = atoi(getenv("TRIPS"));
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, lines) == 0);
    int is_first = fork() != 0;
    struct side side = {.line = lines[is_first]};
    const ucp_params_t puts = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
    ucp_config_t *config;
    ucp_context_h context;
    NEED(ucp_config_read(NULL, NULL, &config) == UCS_OK && ucp_init(&puts, config, &context) == UCS_OK);
    connect_worker(&side, context);
    for (int i = 1; i < argc; i++) {
        measure(&side, context, (size_t)atol(argv[i]), trips, is_first);
    }
    return 0;
}
