/* A build without DPDK: nothing can be sealed, and who asks for it is told. */
#include "dataplane/crypt/aead.h"

#include <stdlib.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

const char *cw_aead_driver_name(uint32_t index)
{
    (void)index;
    return NULL;
}

int cw_aead_open(const char *driver, struct cw_aead **aead, char *error, size_t error_bytes)
{
    (void)driver;
    (void)aead;
    return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                         "encryption: this build has no DPDK; install libdpdk-dev and build again");
}

/* No driver was ever opened, so nobody comes here. */

const char *cw_aead_driver(const struct cw_aead *aead)
{
    (void)aead;
    return "";
}

void cw_aead_why(const struct cw_aead *aead, char *text, size_t text_bytes)
{
    (void)aead;
    if (text_bytes > 0) {
        text[0] = 0;
    }
}

int cw_aead_key_create(struct cw_aead *aead, enum cw_aead_direction direction, const uint8_t bytes[CW_AEAD_KEY_BYTES],
                       const uint8_t salt[CW_AEAD_SALT_BYTES], uint32_t readable_bytes, struct cw_aead_key **key)
{
    (void)aead;
    (void)direction;
    (void)bytes;
    (void)salt;
    (void)readable_bytes;
    (void)key;
    return CW_ERROR_UNSUPPORTED;
}

void cw_aead_key_destroy(struct cw_aead_key *key)
{
    (void)key;
}

void cw_aead_seal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    (void)key;
    (void)packets;
    (void)count;
    abort();
}

void cw_aead_unseal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    (void)key;
    (void)packets;
    (void)count;
    abort();
}
