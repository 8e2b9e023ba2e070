#include "mpi/transport/rendezvous.h"

#include <stdlib.h>

#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"
#include "mpi/transport/outbox.h"

/* ---- registrations that the path still uses ---- */

struct deregistered {
    struct deregistered *next;
    uint32_t rank;
    struct cw_registration registration;
    void (*then)(void *context);
    void *context;
};

static struct deregistered *deregistered_first;
static uint32_t awaited; /* of them */
enum { TURNS_BETWEEN = 1024, TURNS_BETWEEN_AWAITED = 8 };

void mpi_deregister(uint32_t rank, const struct cw_registration *registration, void (*then)(void *context),
                    void *context)
{
    bool is_held = cw_paths_deregister(mpi_process.paths, rank, registration) == CW_ERROR_AGAIN;
    struct deregistered *kept = is_held ? malloc(sizeof(*kept)) : NULL;
    if (kept != NULL) { /* else the memory stays registered: a leak, without other effects */
        *kept = (struct deregistered){
            .next = deregistered_first, .rank = rank, .registration = *registration, .then = then, .context = context};
        deregistered_first = kept;
        awaited += then != NULL;
        mpi_progress_is_blind = awaited > 0;
        mpi_progress_is_due = true;
    } else if (then != NULL) {
        then(context);
    }
}

/* Removes the next one that the path does not use any more from the list; NULL: none. */
static struct deregistered *released_pop(void)
{
    for (struct deregistered **link = &deregistered_first; *link != NULL; link = &(*link)->next) {
        struct deregistered *kept = *link;
        if (cw_paths_deregister(mpi_process.paths, kept->rank, &kept->registration) != CW_ERROR_AGAIN) {
            *link = kept->next;
            return kept;
        }
    }
    return NULL;
}

/* Tries again to deregister, in some of its calls. */
static void deregister_progress(void)
{
    static uint32_t calls;
    if (++calls % (awaited > 0 ? TURNS_BETWEEN_AWAITED : TURNS_BETWEEN) != 0) {
        return;
    }
    struct deregistered *kept;
    while ((kept = released_pop()) != NULL) { /* `then` may add further ones */
        if (kept->then != NULL) {
            awaited--;
            kept->then(kept->context);
        }
        free(kept);
    }
    mpi_progress_is_blind = awaited > 0;
}

/* ---- offers ---- */

int mpi_offered_begin(struct mpi_offered *offered, uint32_t rank, const void *data, uint64_t bytes,
                      struct mpi_offer *offer)
{
    offered->numbered.rank = rank;
    if (offered->numbered.number == 0 && !mpi_number_make(&offered->numbered)) {
        return CW_ERROR_LIMIT;
    }
    int status = cw_paths_register(mpi_process.paths, rank, (void *)(uintptr_t)data, bytes,
                                   CW_REGION_READ | CW_REGION_KEPT, &offered->registration);
    if (status != CW_OK) {
        mpi_number_free(&offered->numbered);
        return status;
    }
    *offer =
        (struct mpi_offer){.number = offered->numbered.number, .bytes = bytes, .registration = offered->registration};
    return CW_OK;
}

static void offered_released(void *context)
{
    struct mpi_offered *offered = context;
    offered->done(offered, offered->code);
}

void mpi_offered_end(struct mpi_offered *offered, int code)
{
    const struct cw_registration registration = offered->registration;
    mpi_number_free(&offered->numbered);
    offered->code = code;
    mpi_deregister(offered->numbered.rank, &registration, offered_released, offered);
}

/* ---- offers of calls ---- */

struct mpi_call_offer_open {
    struct mpi_offered offered;
    struct mpi_call_offer_open *next;
    struct mpi_call_offers *offers;
    uint64_t context;
};

static void call_offer_done(struct mpi_offered *offered, int code)
{
    struct mpi_call_offer_open *offer = (struct mpi_call_offer_open *)offered;
    struct mpi_call_offers *offers = offer->offers;
    uint64_t context = offer->context;
    free(offer);
    offers->ended(offers, context, code);
}

static void call_offer_end(struct mpi_call_offer_open *offer, int code)
{
    struct mpi_call_offer_open **link = &offer->offers->first;
    while (*link != offer) {
        link = &(*link)->next;
    }
    *link = offer->next;
    mpi_offered_end(&offer->offered, code);
}

static void call_offer_answered(struct mpi_numbered *numbered, enum mpi_sent kind, const struct mpi_answer *answer,
                                const void *data, uint32_t bytes)
{
    (void)data, (void)bytes;
    if (kind == MPI_SENT_DONE && answer->status == MPI_SUCCESS) {
        call_offer_end((struct mpi_call_offer_open *)numbered, MPI_SUCCESS);
    }
}

int mpi_call_offers_send(struct mpi_call_offers *offers, uint32_t rank, const struct mpi_call_head *head,
                         const void *data, uint64_t bytes, uint64_t offset, uint64_t context)
{
    struct {
        struct mpi_call_head head;
        struct mpi_call_offer call;
    } message = {.head = *head, .call = {.offset = offset}};
    struct mpi_call_offer_open *offer = malloc(sizeof(*offer));
    if (offer == NULL) {
        return CW_ERROR_MEMORY;
    }
    *offer = (struct mpi_call_offer_open){
        .offered = {.numbered = {.answered = call_offer_answered}, .done = call_offer_done},
        .next = offers->first,
        .offers = offers,
        .context = context,
    };
    int status = mpi_offered_begin(&offer->offered, rank, data, bytes, &message.call.offer);
    if (status == CW_OK) {
        status = cw_paths_send(mpi_process.paths, rank, mpi_lane_tag(head->envelope.context, MPI_SENT_CALL), &message,
                               sizeof(message), NULL, 0, CW_ELEMENT_BYTES);
        if (status == CW_OK) {
            offers->first = offer;
            return CW_OK;
        }
        mpi_number_free(&offer->offered.numbered); /* no rank knows the offer */
        mpi_deregister(rank, &offer->offered.registration, NULL, NULL);
    }
    free(offer);
    return status == CW_ERROR_LIMIT ? CW_ERROR_AGAIN : status;
}

void mpi_call_offers_withdraw(struct mpi_call_offers *offers)
{
    while (offers->first != NULL) {
        call_offer_end(offers->first, MPI_ERR_OTHER);
    }
}

/* ---- gets ---- */

static struct mpi_get *gets_waiting; /* for room */
static struct mpi_get **gets_end = &gets_waiting;

static void get_end(struct mpi_get *get, int status)
{
    uint32_t rank = get->rank, lane_tag = get->answer;
    struct mpi_answer answer = {.number = get->number};
    answer.status = get->done(get, status);
    if (answer.status != MPI_NO_ANSWER) {
        (void)mpi_notify(rank, lane_tag, &answer, sizeof(answer));
    }
}

static void get_done(struct mpi_operation *operation, int status)
{
    get_end((struct mpi_get *)operation, status == CW_ERROR_REMOTE_ACCESS ? CW_ERROR_CLOSED : status);
}

static void get_try(struct mpi_get *get)
{
    int status = cw_paths_get(mpi_process.paths, get->rank, &get->registration, 0, get->to, get->bytes, get->element,
                              (uint64_t)(uintptr_t)&get->operation);
    if (status == CW_ERROR_AGAIN) {
        get->next = NULL;
        *gets_end = get;
        gets_end = &get->next;
        mpi_progress_is_due = true;
    } else if (status != CW_OK) {
        get_end(get, status == CW_PATHS_DONE ? CW_OK : status);
    }
}

void mpi_get_start(struct mpi_get *get)
{
    get->operation = (struct mpi_operation){.done = get_done};
    get_try(get);
}

static uint32_t gets_progress(void)
{
    struct mpi_get *get = gets_waiting;
    gets_waiting = NULL;
    gets_end = &gets_waiting;
    uint32_t count = 0;
    while (get != NULL) {
        struct mpi_get *next = get->next;
        get_try(get);
        get = next;
        count++;
    }
    return gets_waiting == NULL ? count : 0;
}

uint32_t mpi_rendezvous_progress(void)
{
    uint32_t count = gets_waiting != NULL ? gets_progress() : 0;
    if (deregistered_first != NULL) {
        deregister_progress();
    }
    mpi_progress_is_due = mpi_progress_is_due || deregistered_first != NULL || gets_waiting != NULL;
    return count;
}
