#include "control/launch/tree.h"

#include <stdlib.h>

#include "dataplane/base/clock.h"
#include "dataplane/status.h"

/* ---- up ---- */

static uint32_t parts(const struct launch_tree *tree)
{
    return tree->link_count + tree->has_local;
}

/* One part's ranks all wait: when all parts' do, all their entries are reported upwards. Much of it goes up before. */
static void fence_add(struct launch_tree *tree, const struct launch_frame *frame)
{
    (void)launch_bytes_add(&tree->entries, frame->bytes,
                           frame->count); /* a missing entry is reported when it is requested */
    tree->fenced += frame->value == 0;
    bool goes_on = tree->fenced < parts(tree);
    if (goes_on && launch_bytes_count(&tree->entries) < LAUNCH_FENCE_PIECE) {
        return;
    }
    struct launch_bytes entries = tree->entries;
    const struct launch_frame joined = {
        .type = LAUNCH_FENCE,
        .value = goes_on,
        .bytes = launch_bytes_front(&entries),
        .count = (uint32_t)launch_bytes_count(&entries),
    };
    tree->fenced = goes_on ? tree->fenced : 0;
    tree->entries = (struct launch_bytes){.start = NULL};
    tree->config.up.receive(tree->config.up.context, &joined);
    launch_bytes_dispose(&entries);
}

static void report_dispatch(void *context, const struct launch_frame *frame)
{
    struct launch_tree *tree = context;
    switch ((enum launch_frame_type)frame->type) {
    case LAUNCH_FENCE:
        fence_add(tree, frame);
        break;
    case LAUNCH_LOOKED:
        if (++tree->looked == parts(tree)) {
            tree->looked = 0;
            tree->config.up.receive(tree->config.up.context, frame);
        }
        break;
    case LAUNCH_PING:
    case LAUNCH_DONE:
        break; /* the link's own */
    default:
        tree->config.up.receive(tree->config.up.context, frame);
    }
}

/* ---- down ---- */

static void rank_order(struct launch_tree *tree, const struct launch_frame *order)
{
    if (order->rank >= tree->config.work->rank_count) {
        return;
    }
    uint32_t link = tree->link_of[tree->config.work->host_of[order->rank]];
    if (link != UINT32_MAX) {
        launch_link_send(&tree->links[link], order);
    } else if (tree->has_local) {
        launch_local_order(&tree->local, order);
    }
}

void launch_tree_order(struct launch_tree *tree, const struct launch_frame *order)
{
    if (order->type == LAUNCH_INPUT) {
        rank_order(tree, order);
        return;
    }
    tree->looked = order->type == LAUNCH_LOOK ? 0 : tree->looked;
    for (uint32_t i = 0; i < tree->link_count; i++) {
        launch_link_send(&tree->links[i], order);
    }
    if (tree->has_local) {
        launch_local_order(&tree->local, order);
    }
}

void launch_tree_event(struct launch_tree *tree, enum launch_source source, uint32_t index)
{
    if (source >= LAUNCH_LINK_IN) {
        launch_link_event(&tree->links[index], source);
    } else if (tree->has_local) {
        launch_local_event(&tree->local, source, index);
    }
}

uint64_t launch_tree_turn(struct launch_tree *tree, uint64_t now_ns)
{
    uint64_t due_ns = tree->has_local ? launch_local_turn(&tree->local, now_ns) : UINT64_MAX;
    for (uint32_t i = 0; i < tree->link_count; i++) {
        uint64_t link_ns = launch_link_turn(&tree->links[i], now_ns);
        due_ns = link_ns < due_ns ? link_ns : due_ns;
    }
    return due_ns;
}

/* ---- start, end ---- */

/* Each link's agent gets every LAUNCH_FANOUT-th of the hosts behind its own. */
static int links_open(struct launch_tree *tree, const uint32_t *hosts, uint32_t count)
{
    uint32_t links = count < LAUNCH_FANOUT ? count : LAUNCH_FANOUT;
    uint32_t *part = calloc((size_t)count + 1, sizeof(*part));
    tree->links = calloc((size_t)links + 1, sizeof(*tree->links));
    if (part == NULL || tree->links == NULL) {
        free(part);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < links; i++) {
        uint32_t part_count = 0;
        for (uint32_t j = i; j < count; j += links) {
            tree->link_of[hosts[j]] = i;
            part[part_count++] = hosts[j];
        }
        tree->link_count = i + 1;
        launch_link_open(&tree->links[i], &(struct launch_link_config){
                                              .work = tree->config.work,
                                              .hosts = part,
                                              .host_count = part_count,
                                              .up = {.context = tree, .receive = report_dispatch},
                                              .set = tree->config.local.set,
                                              .index = i,
                                          });
    }
    free(part);
    return CW_OK;
}

int launch_tree_open(struct launch_tree *tree, const struct launch_tree_config *config, bool *all)
{
    int status = CW_OK;
    *tree = (struct launch_tree){.config = *config, .local = {.outputs = -1}};
    *all = true;
    tree->link_of = calloc((size_t)config->work->host_count + 1, sizeof(*tree->link_of));
    if (tree->link_of == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < config->work->host_count; i++) {
        tree->link_of[i] = UINT32_MAX;
    }
    if (config->has_own) {
        struct launch_local_config local = config->local;
        local.work = config->work;
        local.host = config->hosts[0];
        local.up = (struct launch_receiver){.context = tree, .receive = report_dispatch};
        status = launch_local_open(&tree->local, &local);
        tree->has_local = true;
    }
    if (status == CW_OK) {
        status = links_open(tree, config->hosts + config->has_own, config->host_count - config->has_own);
    }
    if (status == CW_OK && tree->has_local) {
        *all = launch_local_start(&tree->local);
    }
    for (uint32_t i = 0; i < tree->link_count; i++) {
        launch_link_listen(&tree->links[i]);
    }
    return status;
}

void launch_tree_ping(struct launch_tree *tree)
{
    for (uint32_t i = 0; i < tree->link_count; i++) {
        launch_link_ping(&tree->links[i], cw_clock_ns());
    }
}

void launch_tree_pause(struct launch_tree *tree, bool stops)
{
    for (uint32_t i = 0; i < tree->link_count; i++) {
        launch_link_listen(&tree->links[i]);
        launch_link_send(&tree->links[i], &(struct launch_frame){.type = LAUNCH_PING, .value = stops});
    }
}

bool launch_tree_reaches(const struct launch_tree *tree, uint32_t host)
{
    uint32_t link = tree->link_of[host];
    return link == UINT32_MAX ? tree->has_local : tree->links[link].state < LAUNCH_LINK_DONE;
}

bool launch_tree_is_done(const struct launch_tree *tree)
{
    for (uint32_t i = 0; i < tree->link_count; i++) {
        if (tree->links[i].state < LAUNCH_LINK_DONE) {
            return false;
        }
    }
    return true;
}

void launch_tree_end_own(struct launch_tree *tree)
{
    if (tree->has_local) {
        launch_local_end(&tree->local);
    }
}

void launch_tree_close(struct launch_tree *tree)
{
    for (uint32_t i = 0; i < tree->link_count; i++) {
        launch_link_close(&tree->links[i]);
    }
    if (tree->has_local) {
        launch_local_close(&tree->local);
    }
    launch_bytes_dispose(&tree->entries);
    free(tree->links);
    free(tree->link_of);
}
