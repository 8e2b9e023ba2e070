/* Cards: descriptions of ranks, exchanged in the launcher's table. A card has what is known before there is a port, by
 * which all choose the transport to other hosts; a place then has where the port is. */
#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/job/private.h"
#include "dataplane/status.h"

enum {
    KEY_HASH_BYTES = 16,
    CARD_VERSION = 10,
    CARD_LENGTH = 1, /* behind the version: of all of it, 16 bits */
    CARD_FLAGS = CARD_LENGTH + 2,
    CARD_NOTE = CARD_FLAGS + 1,
    CARD_MACHINE = CARD_NOTE + CW_JOB_NOTE_BYTES,
    CARD_CORES = CARD_MACHINE + sizeof(uint64_t),
    CARD_KEY = CARD_CORES + sizeof(struct cw_process_cores),
    CARD_PATH = CARD_KEY + KEY_HASH_BYTES,
    CARD_OFFER = CARD_PATH + sizeof(struct cw_path_card), /* with as many addresses as it has; then the host's name */
    CARD_BYTES = CARD_OFFER + sizeof(struct cw_net_offer) + CW_JOB_HOST_BYTES,
    CARD_VARIANT = sodium_base64_VARIANT_URLSAFE_NO_PADDING, /* no '=' and no ';' in it */
    CARD_TEXT_BYTES = sodium_base64_ENCODED_LEN(CARD_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING),
    KEY_BYTES = CW_BOOTSTRAP_KEY_MAX + 1,
};

enum {
    CARD_MAY_SEAL = 1,      /* of its flags: this rank's environment speaks of sealed sessions, or of clusters */
    CARD_MAY_HAVE_RDMA = 2, /* this rank may have an RDMA device */
};

#define CARD_OFFER_BYTES(count) (offsetof(struct cw_net_offer, addresses) + (count) * sizeof(struct cw_net_address))

/* "card-3", or "card-3.1" for its second piece. */
static void key_write(char *key, uint32_t rank, uint32_t piece)
{
    if (piece == 0) {
        snprintf(key, KEY_BYTES, "card-%" PRIu32, rank);
    } else {
        snprintf(key, KEY_BYTES, "card-%" PRIu32 ".%" PRIu32, rank, piece);
    }
}

/* A hash by which ranks compare their keys without revealing them: a key has 128 random bits. Zeros: none yet. */
static void key_hash(const struct cw_job *job, uint8_t hash[KEY_HASH_BYTES])
{
    memset(hash, 0, KEY_HASH_BYTES);
    if (job->has_key) {
        (void)crypto_generichash(hash, KEY_HASH_BYTES, (const uint8_t *)"causeway card", 13, job->key,
                                 sizeof(job->key));
    }
}

/* A card as text: the part of variable length comes last, without its unused room, so that a value of the launcher's
 * table holds most cards. All of it is read by all ranks. */
static void card_write(const struct cw_job *job, const struct cw_net_offer *offer, char text[CARD_TEXT_BYTES])
{
    struct cw_path_card card;
    uint8_t bytes[CARD_BYTES] = {CARD_VERSION};
    char host[CW_JOB_HOST_BYTES] = "";
    memset(&card, 0, sizeof(card)); /* its padding is sent too */
    cw_paths_card(job->paths, &card);
    bytes[CARD_FLAGS] = (cw_wire_may_seal() ? CARD_MAY_SEAL : 0) | (job->may_have_rdma ? CARD_MAY_HAVE_RDMA : 0);
    memcpy(bytes + CARD_NOTE, job->note, sizeof(job->note));
    memcpy(bytes + CARD_MACHINE, &job->machines[job->info.rank], sizeof(*job->machines));
    memcpy(bytes + CARD_CORES, &job->cores[job->info.rank], sizeof(*job->cores));
    key_hash(job, bytes + CARD_KEY);
    memcpy(bytes + CARD_PATH, &card, sizeof(card));
    (void)gethostname(host, sizeof(host) - 1);
    size_t offer_bytes = CARD_OFFER_BYTES(offer->count), host_bytes = strlen(host);
    memcpy(bytes + CARD_OFFER, offer, offer_bytes);
    memcpy(bytes + CARD_OFFER + offer_bytes, host, host_bytes);
    size_t length = CARD_OFFER + offer_bytes + host_bytes;
    bytes[CARD_LENGTH] = (uint8_t)(length >> 8);
    bytes[CARD_LENGTH + 1] = (uint8_t)length;
    sodium_bin2base64(text, CARD_TEXT_BYTES, bytes, length, CARD_VARIANT);
}

/* In as many pieces as the launcher's values need; the first one contains the total length. */
int job_card_put(struct cw_job *job, const struct cw_net_offer *offer, const struct job_report *report)
{
    char text[CARD_TEXT_BYTES], key[KEY_BYTES], value[CW_BOOTSTRAP_VALUE_MAX + 1];
    card_write(job, offer, text);
    uint32_t piece = 0;
    for (size_t at = 0; text[at] != 0; piece++) {
        size_t length = strnlen(text + at, job->info.value_max);
        memcpy(value, text + at, length);
        value[length] = 0;
        key_write(key, job->info.rank, piece);
        int status = cw_bootstrap_put(job->bootstrap, key, value);
        if (status != CW_OK) {
            return FAIL(report, status, "cannot publish where this rank is: %s", cw_bootstrap_failure(job->bootstrap));
        }
        at += length;
    }
    return CW_OK;
}

static int card_parse(struct cw_job *job, uint32_t rank, const char *text, struct job_card *card,
                      const struct job_report *report)
{
    uint8_t bytes[CARD_BYTES] = {0};
    size_t count = 0;
    if (sodium_base642bin(bytes, sizeof(bytes), text, strlen(text), NULL, &count, NULL, CARD_VARIANT) != 0 ||
        count < CARD_OFFER + CARD_OFFER_BYTES(0) || bytes[0] != CARD_VERSION) {
        return FAIL(report, CW_ERROR_UNSUPPORTED,
                    "rank %" PRIu32 " runs another version of Causeway: build all programs of a job with the same one",
                    rank);
    }
    uint8_t hash[KEY_HASH_BYTES];
    key_hash(job, hash);
    if (!sodium_is_zero(hash, sizeof(hash)) && !sodium_is_zero(bytes + CARD_KEY, sizeof(hash)) &&
        memcmp(hash, bytes + CARD_KEY, sizeof(hash)) != 0) {
        return FAIL(report, CW_ERROR_ARGUMENT,
                    "rank %" PRIu32 " has another key of the job than rank %" PRIu32
                    ": is CAUSEWAY_JOB_KEY set, and not the same everywhere? Unset it: launchers hand over a key",
                    rank, job->info.rank);
    }
    job->notes_differ = job->notes_differ || memcmp(bytes + CARD_NOTE, job->note, sizeof(job->note)) != 0;
    memcpy(&job->machines[rank], bytes + CARD_MACHINE, sizeof(*job->machines));
    memcpy(&job->cores[rank], bytes + CARD_CORES, sizeof(*job->cores));
    memcpy(&card->path, bytes + CARD_PATH, sizeof(card->path));
    memcpy(&card->offer, bytes + CARD_OFFER, CARD_OFFER_BYTES(0));
    card->may_seal = (bytes[CARD_FLAGS] & CARD_MAY_SEAL) != 0;
    card->may_have_rdma = (bytes[CARD_FLAGS] & CARD_MAY_HAVE_RDMA) != 0;
    size_t host = CARD_OFFER + CARD_OFFER_BYTES((size_t)card->offer.count);
    if (card->offer.count > CW_NET_ADDRESSES || host > count || count - host >= CW_JOB_HOST_BYTES) {
        return FAIL(report, CW_ERROR_ARGUMENT, "rank %" PRIu32 ": its card is invalid", rank);
    }
    memcpy(card->offer.addresses, bytes + CARD_OFFER + CARD_OFFER_BYTES(0), host - CARD_OFFER - CARD_OFFER_BYTES(0));
    memcpy(job->hosts[rank], bytes + host, count - host);
    return CW_OK;
}

/* Readers of cards: all first pieces, then the second pieces of longer cards, and so on. */
struct card_reader {
    struct cw_job *job;
    const struct job_report *report;
    struct job_card *cards;
    char (*texts)[CARD_TEXT_BYTES];
    uint32_t *ranks; /* of cards that have more pieces */
    uint32_t count;
    uint32_t piece;
    uint32_t left; /* have more after this piece */
};

static void card_key(void *context, uint32_t index, char key[CW_BOOTSTRAP_KEY_MAX + 1])
{
    const struct card_reader *reader = context;
    key_write(key, reader->ranks[index], reader->piece);
}

/* Characters of the whole card; 0: it is none of this version. */
static size_t card_characters(const char *text)
{
    char head[4 + 1];
    uint8_t bytes[CARD_LENGTH + 2] = {0};
    size_t count = 0;
    snprintf(head, sizeof(head), "%.4s", text); /* only its first 3 bytes are needed */
    return sodium_base642bin(bytes, sizeof(bytes), head, strlen(head), NULL, &count, NULL, CARD_VARIANT) == 0 &&
                   count == sizeof(bytes) && bytes[0] == CARD_VERSION
               ? sodium_base64_encoded_len((size_t)bytes[CARD_LENGTH] << 8 | bytes[CARD_LENGTH + 1], CARD_VARIANT) - 1
               : 0;
}

static int card_append(void *context, uint32_t index, const char *value)
{
    struct card_reader *reader = context;
    uint32_t rank = reader->ranks[index];
    char *text = reader->texts[rank];
    size_t length = strlen(text);
    snprintf(text + length, CARD_TEXT_BYTES - length, "%s", value);
    if (value[0] != 0 && strlen(text) < card_characters(text) && strlen(text) < CARD_TEXT_BYTES - 1) {
        reader->ranks[reader->left++] = rank; /* not beyond `index` */
        return CW_OK;
    }
    return card_parse(reader->job, rank, text, &reader->cards[rank], reader->report);
}

int job_cards_get(struct cw_job *job, struct job_card *cards, const struct job_report *report)
{
    struct card_reader reader = {.job = job, .report = report, .cards = cards, .count = job->info.size};
    reader.texts = calloc(job->info.size, sizeof(*reader.texts));
    reader.ranks = calloc(job->info.size, sizeof(*reader.ranks));
    int status =
        reader.texts == NULL || reader.ranks == NULL ? FAIL(report, CW_ERROR_MEMORY, "no memory for the job") : CW_OK;
    for (uint32_t rank = 0; rank < job->info.size && status == CW_OK; rank++) {
        reader.ranks[rank] = rank;
    }
    const struct cw_bootstrap_reader each = {.context = &reader, .key = card_key, .receive = card_append};
    for (; status == CW_OK && reader.count > 0; reader.piece++, reader.count = reader.left) {
        reader.left = 0;
        report->text[0] = 0;
        status = cw_bootstrap_get_each(job->bootstrap, reader.count, &each);
        if (status != CW_OK && report->text[0] == 0) { /* otherwise a card is invalid */
            status = FAIL(report, status, "cannot learn where the other ranks are: %s",
                          cw_bootstrap_failure(job->bootstrap));
        }
    }
    free(reader.texts);
    free(reader.ranks);
    return status;
}

/* ---- places ---- */

/* Description of a rank's endpoint. */
struct place {
    struct cw_address address;
    uint8_t multicasts;
    uint8_t loops;
    uint8_t has_rdma;
};

int job_place_put(struct cw_job *job, const struct cw_paths_config *config, const struct job_report *report)
{
    struct place place;
    char key[KEY_BYTES], text[2 * sizeof(place) + 1];
    memset(&place, 0, sizeof(place));
    place.address = config->address;
    place.multicasts = config->multicasts;
    place.loops = (uint8_t)config->set.count;
    place.has_rdma = job->wire.has_rdma;
    sodium_bin2hex(text, sizeof(text), (const uint8_t *)&place, sizeof(place));
    snprintf(key, sizeof(key), "place-%" PRIu32, job->info.rank);
    int status = cw_bootstrap_put(job->bootstrap, key, text);
    return status == CW_OK
               ? CW_OK
               : FAIL(report, status, "cannot publish where this rank is: %s", cw_bootstrap_failure(job->bootstrap));
}

static void place_key(void *context, uint32_t index, char key[CW_BOOTSTRAP_KEY_MAX + 1])
{
    (void)context;
    snprintf(key, KEY_BYTES, "place-%" PRIu32, index);
}

static int place_parse(void *context, uint32_t index, const char *value)
{
    struct job_card *card = (struct job_card *)context + index;
    struct place place;
    size_t count = 0;
    if (sodium_hex2bin((uint8_t *)&place, sizeof(place), value, strlen(value), NULL, &count, NULL) != 0 ||
        count != sizeof(place)) {
        return CW_ERROR_ARGUMENT;
    }
    card->path.address = place.address;
    card->path.multicasts = place.multicasts;
    card->path.loops = place.loops;
    card->has_rdma = place.has_rdma != 0;
    return CW_OK;
}

int job_places_get(struct cw_job *job, struct job_card *cards, const struct job_report *report)
{
    const struct cw_bootstrap_reader each = {.context = cards, .key = place_key, .receive = place_parse};
    int status = cw_bootstrap_get_each(job->bootstrap, job->info.size, &each);
    return status == CW_OK
               ? CW_OK
               : FAIL(report, status, "cannot learn where the other ranks are: %s",
                      status == CW_ERROR_ARGUMENT ? "an entry is invalid" : cw_bootstrap_failure(job->bootstrap));
}

/* ---- path MTUs ---- */

int job_mtu_put(struct cw_job *job, const struct job_card *cards, const struct job_report *report)
{
    char key[KEY_BYTES], text[16];
    if (!job_is_first(cards, job->info.rank)) {
        return CW_OK;
    }
    snprintf(key, sizeof(key), "mtu-%" PRIu32, job->info.rank);
    snprintf(text, sizeof(text), "%" PRIu32, job->path_mtu_bytes);
    int status = cw_bootstrap_put(job->bootstrap, key, text);
    return status == CW_OK ? CW_OK
                           : FAIL(report, status, "cannot publish the largest packet size: %s",
                                  cw_bootstrap_failure(job->bootstrap));
}

/* Values from the first ranks of all hosts. */
struct mtu_reader {
    uint32_t *ranks;
    uint32_t least; /* 0: nobody knows any */
};

static void mtu_key(void *context, uint32_t index, char key[CW_BOOTSTRAP_KEY_MAX + 1])
{
    const struct mtu_reader *reader = context;
    snprintf(key, KEY_BYTES, "mtu-%" PRIu32, reader->ranks[index]);
}

static int mtu_parse(void *context, uint32_t index, const char *value)
{
    struct mtu_reader *reader = context;
    uint32_t mtu_bytes = (uint32_t)strtoul(value, NULL, 10);
    (void)index;
    reader->least = mtu_bytes != 0 && (reader->least == 0 || mtu_bytes < reader->least) ? mtu_bytes : reader->least;
    return CW_OK;
}

int job_mtu_agree(struct cw_job *job, const struct job_card *cards, const struct job_report *report)
{
    struct mtu_reader reader = {.ranks = calloc(job->info.size, sizeof(*reader.ranks))};
    const struct cw_bootstrap_reader each = {.context = &reader, .key = mtu_key, .receive = mtu_parse};
    uint32_t count = 0;
    for (uint32_t rank = 0; reader.ranks != NULL && rank < job->info.size; rank++) {
        if (job_is_first(cards, rank)) {
            reader.ranks[count++] = rank;
        }
    }
    int status = reader.ranks == NULL ? CW_ERROR_MEMORY : cw_bootstrap_get_each(job->bootstrap, count, &each);
    free(reader.ranks);
    if (status != CW_OK) {
        return FAIL(report, status, "cannot learn how large packets may be: %s",
                    status == CW_ERROR_MEMORY ? "no memory" : cw_bootstrap_failure(job->bootstrap));
    }
    if (job->wire.mcast != NULL && reader.least != 0) {
        cw_mcast_mtu(job->wire.mcast, reader.least);
    }
    return CW_OK;
}
