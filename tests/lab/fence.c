/* Puts values into the launcher's table, and gets those of all ranks behind a fence; several times. */
#include <stdio.h>
#include <string.h>

#include "control/bootstrap/bootstrap.h"
#include "dataplane/status.h"

enum { FENCES = 4, TEXT_BYTES = 200 };

/* Another one for each, and of another length. */
static void text_write(char text[TEXT_BYTES], uint32_t rank, int fence)
{
    size_t length = (rank * 37 + (uint32_t)fence * 11) % 120;
    snprintf(
        text, TEXT_BYTES, "value-%u-%d-%.*s", rank, fence, (int)length,
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
        "678901234567890123456789");
}

static int wrong(struct cw_bootstrap *bootstrap, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, cw_bootstrap_failure(bootstrap));
    return 1;
}

int main(void)
{
    struct cw_bootstrap *bootstrap;
    char error[256], key[64], text[TEXT_BYTES], got[256];
    if (cw_bootstrap_open(&bootstrap, error, sizeof(error)) != CW_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    struct cw_bootstrap_info info = cw_bootstrap_info(bootstrap);
    for (int fence = 0; fence < FENCES; fence++) {
        snprintf(key, sizeof(key), "key-%u-%d", info.rank, fence);
        text_write(text, info.rank, fence);
        if (cw_bootstrap_put(bootstrap, key, text) != CW_OK || cw_bootstrap_fence(bootstrap) != CW_OK) {
            return wrong(bootstrap, "put");
        }
        for (uint32_t rank = 0; rank < info.size; rank++) {
            snprintf(key, sizeof(key), "key-%u-%d", rank, fence);
            text_write(text, rank, fence);
            if (cw_bootstrap_get(bootstrap, key, got, sizeof(got)) != CW_OK) {
                return wrong(bootstrap, "get");
            }
            if (strcmp(got, text) != 0) {
                fprintf(stderr, "rank %u has '%s' of rank %u, not '%s'\n", info.rank, got, rank, text);
                return 1;
            }
        }
    }
    printf("%u of %u: all found\n", info.rank, info.size);
    cw_bootstrap_close(bootstrap);
    return 0;
}
