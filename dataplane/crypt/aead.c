#include "dataplane/crypt/aead.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sodium.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#define LIBRARY "libcrypto.so.3"
enum { NONCE_BYTES = 12 };

/* The functions used from the library, under their names there. */
#define CALLS(CALL)           \
    CALL(OPENSSL_init_crypto) \
    CALL(OpenSSL_version)     \
    CALL(EVP_CIPHER_fetch)    \
    CALL(EVP_CIPHER_CTX_new)  \
    CALL(EVP_CIPHER_CTX_free) \
    CALL(EVP_CIPHER_CTX_ctrl) \
    CALL(EVP_CipherInit_ex)   \
    CALL(EVP_CipherUpdate)    \
    CALL(EVP_CipherFinal_ex)

#define POINTER(name) __typeof__(name) *name;
static struct {
    CALLS(POINTER)
} crypto;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_CIPHER *cipher; /* NULL: there is none, for the reason in `obstacle` */
static char obstacle[192];

struct cw_aead_key {
    EVP_CIPHER_CTX *context;
    enum cw_aead_direction direction;
    uint32_t readable_bytes;
    uint8_t salt[CW_AEAD_SALT_BYTES];
};

/* ---- the library ---- */

static bool find(void *library, const char *name, void *pointer)
{
    void *found = dlsym(library, name);
    memcpy(pointer, &found, sizeof(found));
    return found != NULL;
}

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)cw_error_text(obstacle, sizeof(obstacle), 0, "%s", dlerror());
        return;
    }
    bool is_whole = true;
#define FIND(name) is_whole = is_whole && find(library, #name, &crypto.name);
    CALLS(FIND)
    /* no clean-up at exit, while threads may still use the cipher; a program that has begun to use the library itself
     * decides this, and the reference to the cipher keeps it */
    if (is_whole && crypto.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1) {
        cipher = crypto.EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    }
    if (cipher == NULL) {
        (void)cw_error_text(obstacle, sizeof(obstacle), 0, LIBRARY " has no AES-128-GCM");
    }
}

int cw_aead_load(char *error, size_t error_bytes)
{
    pthread_once(&once, load);
    return cipher != NULL ? CW_OK
                          : cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                                          "encryption needs OpenSSL: %s; apt-get install libssl3", obstacle);
}

const char *cw_aead_version(void)
{
    return crypto.OpenSSL_version(OPENSSL_VERSION);
}

/* ---- keys ---- */

int cw_aead_key_create(enum cw_aead_direction direction, const uint8_t bytes[CW_AEAD_KEY_BYTES],
                       const uint8_t salt[CW_AEAD_SALT_BYTES], uint32_t readable_bytes, struct cw_aead_key **key)
{
    if (readable_bytes > CW_AEAD_READABLE_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_aead_key *made = malloc(sizeof(*made));
    EVP_CIPHER_CTX *context = crypto.EVP_CIPHER_CTX_new();
    if (made == NULL || context == NULL ||
        crypto.EVP_CipherInit_ex(context, cipher, NULL, bytes, NULL, direction == CW_AEAD_SEAL) != 1) {
        crypto.EVP_CIPHER_CTX_free(context);
        free(made);
        return CW_ERROR_MEMORY;
    }
    *made = (struct cw_aead_key){.context = context, .direction = direction, .readable_bytes = readable_bytes};
    memcpy(made->salt, salt, sizeof(made->salt));
    *key = made;
    return CW_OK;
}

void cw_aead_key_destroy(struct cw_aead_key *key)
{
    if (key != NULL) {
        crypto.EVP_CIPHER_CTX_free(key->context); /* overwrites its key, too */
        sodium_memzero(key, sizeof(*key));
        free(key);
    }
}

/* ---- packets ---- */

/* Bytes that are authenticated (`out` NULL), or encrypted or decrypted as well. */
static bool update(EVP_CIPHER_CTX *context, uint8_t *out, const uint8_t *in, uint32_t bytes)
{
    int done;
    return bytes == 0 || crypto.EVP_CipherUpdate(context, out, &done, in, (int)bytes) == 1;
}

static bool process(struct cw_aead_key *key, const struct cw_aead_packet *packet)
{
    EVP_CIPHER_CTX *context = key->context;
    uint8_t nonce[NONCE_BYTES], *mac = packet->data + packet->bytes;
    int done;
    memcpy(nonce, key->salt, CW_AEAD_SALT_BYTES);
    memcpy(nonce + CW_AEAD_SALT_BYTES, &packet->count, sizeof(packet->count));
    bool is_seal = key->direction == CW_AEAD_SEAL;
    return crypto.EVP_CipherInit_ex(context, NULL, NULL, NULL, nonce, -1) == 1 &&
           update(context, NULL, packet->readable, key->readable_bytes) &&
           update(context, packet->data, packet->data, packet->bytes) &&
           (is_seal || crypto.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, CW_AEAD_MAC_BYTES, mac) == 1) &&
           crypto.EVP_CipherFinal_ex(context, mac, &done) == 1 &&
           (!is_seal || crypto.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, CW_AEAD_MAC_BYTES, mac) == 1);
}

void cw_aead_seal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    assert(key->direction == CW_AEAD_SEAL);
    for (uint32_t i = 0; i < count; i++) {
        packets[i].good = process(key, &packets[i]);
        if (!packets[i].good) {
            memset(packets[i].data, 0, packets[i].bytes + CW_AEAD_MAC_BYTES);
        }
    }
}

void cw_aead_unseal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    assert(key->direction == CW_AEAD_UNSEAL);
    for (uint32_t i = 0; i < count; i++) {
        packets[i].good = process(key, &packets[i]);
    }
}
