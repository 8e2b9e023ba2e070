/* AES-128-GCM: the vectors of the specification, bursts in place, and that nothing which was altered opens. */
#include "dataplane/base/random.h"
#include "dataplane/crypt/aead.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { BYTES_MAX = 9000, READABLE = 16, BURST = 64 };

static uint32_t from_hex(const char *hex, uint8_t *bytes)
{
    uint32_t count = 0;
    for (; hex[0] != 0; hex += 2) {
        unsigned value;
        assert_int_equal(sscanf(hex, "%2x", &value), 1);
        bytes[count++] = (uint8_t)value;
    }
    return count;
}

/* A key for both directions. */
struct pair {
    struct cw_aead_key *seal;
    struct cw_aead_key *unseal;
};

static void pair_create(const uint8_t *bytes, const uint8_t *salt, uint32_t readable_bytes, struct pair *pair)
{
    assert_int_equal(cw_aead_key_create(CW_AEAD_SEAL, bytes, salt, readable_bytes, &pair->seal), CW_OK);
    assert_int_equal(cw_aead_key_create(CW_AEAD_UNSEAL, bytes, salt, readable_bytes, &pair->unseal), CW_OK);
}

static void pair_destroy(struct pair *pair)
{
    cw_aead_key_destroy(pair->seal);
    cw_aead_key_destroy(pair->unseal);
}

/* McGrew, Viega: The Galois/Counter Mode of Operation (GCM), appendix B, the cases of a key of 128 bits and a nonce of
 * 96. */
struct vector {
    const char *key, *nonce, *readable, *plain, *sealed, *mac;
};

static const struct vector vectors[] = {
    {"00000000000000000000000000000000", "000000000000000000000000", "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    {"00000000000000000000000000000000", "000000000000000000000000", "", "00000000000000000000000000000000",
     "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
     "b16aedf5aa0de657ba637b391aafd255",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05"
     "1ba30b396a0aac973d58e091473f5985",
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
     "b16aedf5aa0de657ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05"
     "1ba30b396a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
};

static void check_vector(const struct vector *vector)
{
    uint8_t key[16], nonce[12], readable[CW_AEAD_READABLE_MAX], plain[80], sealed[80], mac[16], data[96];
    (void)from_hex(vector->key, key);
    (void)from_hex(vector->nonce, nonce);
    uint32_t readable_bytes = from_hex(vector->readable, readable);
    uint32_t bytes = from_hex(vector->plain, plain);
    (void)from_hex(vector->sealed, sealed);
    (void)from_hex(vector->mac, mac);
    struct pair pair;
    pair_create(key, nonce, readable_bytes, &pair);
    struct cw_aead_packet packet = {.readable = readable, .data = data, .bytes = bytes};
    memcpy(&packet.count, nonce + 4, 8);
    memcpy(data, plain, bytes);
    cw_aead_seal(pair.seal, &packet, 1);
    assert_true(packet.good);
    assert_memory_equal(data, sealed, bytes);
    assert_memory_equal(data + bytes, mac, sizeof(mac));
    cw_aead_unseal(pair.unseal, &packet, 1);
    assert_true(packet.good);
    assert_memory_equal(data, plain, bytes);
    pair_destroy(&pair);
}

static void vectors_of_the_specification(void **state)
{
    for (size_t v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
        check_vector(&vectors[v]);
    }
}

/* A burst of packets of all lengths: each as 16 readable bytes and data behind them. */
struct burst {
    uint8_t *bytes;
    struct cw_aead_packet packets[BURST];
};

enum { PITCH = READABLE + BYTES_MAX + CW_AEAD_MAC_BYTES + 16 };

static void burst_create(struct burst *burst)
{
    struct cw_random random;
    cw_random_seed(&random, 7);
    burst->bytes = malloc((size_t)BURST * PITCH);
    cw_random_fill(&random, burst->bytes, (size_t)BURST * PITCH);
    for (uint32_t i = 0; i < BURST; i++) {
        uint8_t *at = burst->bytes + (size_t)i * PITCH + cw_random_below(&random, 16);
        uint32_t bytes = (uint32_t)cw_random_between(&random, 24, i % 2 == 0 ? 100 : BYTES_MAX);
        burst->packets[i] = (struct cw_aead_packet){
            .readable = at, .data = at + READABLE, .bytes = bytes, .count = cw_random_next(&random)};
    }
}

static void bursts_are_sealed_and_opened_in_place(void **state)
{
    static const uint8_t key[16] = "sixteen letters.";
    static const uint8_t salt[4] = {1, 2, 3, 4};
    struct burst plain, burst;
    struct pair pair;
    burst_create(&plain);
    burst_create(&burst);
    pair_create(key, salt, READABLE, &pair);
    cw_aead_seal(pair.seal, burst.packets, BURST);
    for (uint32_t k = 0; k < BURST; k++) {
        const struct cw_aead_packet *packet = &burst.packets[k];
        assert_true(packet->good);
        assert_memory_not_equal(packet->data, plain.packets[k].data, packet->bytes);
    }
    cw_aead_unseal(pair.unseal, burst.packets, BURST);
    for (uint32_t k = 0; k < BURST; k++) {
        const struct cw_aead_packet *packet = &burst.packets[k];
        assert_true(packet->good);
        /* without the MACs behind the data; all else is unchanged */
        memcpy(packet->data + packet->bytes, plain.packets[k].data + packet->bytes, CW_AEAD_MAC_BYTES);
    }
    assert_memory_equal(burst.bytes, plain.bytes, (size_t)BURST * PITCH);
    pair_destroy(&pair);
    free(plain.bytes);
    free(burst.bytes);
}

static void what_was_altered_does_not_open(void **state)
{
    static const uint8_t key[16] = "sixteen letters.";
    static const uint8_t other[16] = "sixteen letters!";
    static const uint8_t salt[4] = {9};
    enum { DATA = 40, WHOLE = READABLE + DATA + CW_AEAD_MAC_BYTES };
    struct pair pair, stranger;
    pair_create(key, salt, READABLE, &pair);
    pair_create(other, salt, READABLE, &stranger);
    uint8_t sealed[WHOLE] = {0};
    struct cw_aead_packet packet = {.readable = sealed, .data = sealed + READABLE, .bytes = DATA, .count = 5};
    cw_aead_seal(pair.seal, &packet, 1);
    /* a burst in which one packet in two has one bit of it turned, each bit once */
    for (uint32_t bit = 0; bit < WHOLE * 8; bit++) {
        uint8_t copies[2][WHOLE];
        struct cw_aead_packet two[2];
        for (uint32_t k = 0; k < 2; k++) {
            memcpy(copies[k], sealed, WHOLE);
            two[k] =
                (struct cw_aead_packet){.readable = copies[k], .data = copies[k] + READABLE, .bytes = DATA, .count = 5};
        }
        copies[bit % 2][bit / 8] ^= (uint8_t)(1u << (bit % 8));
        cw_aead_unseal(pair.unseal, two, 2);
        assert_true(two[1 - bit % 2].good);
        assert_false(two[bit % 2].good);
    }
    struct cw_aead_packet changed = packet;
    uint8_t copy[WHOLE];
    memcpy(copy, sealed, WHOLE);
    changed.readable = copy;
    changed.data = copy + READABLE;
    changed.count = 6;
    cw_aead_unseal(pair.unseal, &changed, 1);
    assert_false(changed.good);
    memcpy(copy, sealed, WHOLE);
    changed.count = 5;
    cw_aead_unseal(stranger.unseal, &changed, 1);
    assert_false(changed.good);
    pair_destroy(&pair);
    pair_destroy(&stranger);
}

static void bounds_and_names(void **state)
{
    uint8_t bytes[16] = {0};
    struct cw_aead_key *key = NULL;
    assert_int_equal(cw_aead_key_create(CW_AEAD_SEAL, bytes, bytes, CW_AEAD_READABLE_MAX + 1, &key), CW_ERROR_ARGUMENT);
    assert_null(key);
    cw_aead_key_destroy(NULL);
    assert_non_null(strstr(cw_aead_version(), "OpenSSL"));
}

int main(void)
{
    char error[200] = "";
    if (cw_aead_load(error, sizeof(error)) != CW_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    return TESTS_RUN(vectors_of_the_specification, bursts_are_sealed_and_opened_in_place,
                     what_was_altered_does_not_open, bounds_and_names);
}
