/* Netlink answers of the kernel, made by hand: messages of attributes, one after the other. */
#pragma once

#include <linux/rtnetlink.h>

#include "dataplane/base/random.h"
#include "dataplane/ip.h"
#include "tests/test.h"

enum { ANSWER_BYTES = 1024 };

static inline struct cw_ip ip_of(const char *text)
{
    struct cw_ip ip;
    assert_true(cw_ip_read(text, &ip));
    return ip;
}

/* All zero: an empty one. */
struct answer {
    _Alignas(struct nlmsghdr) uint8_t bytes[ANSWER_BYTES];
    uint32_t length;
    uint32_t begin; /* of the last message */
};

static inline void length_write(struct answer *answer)
{
    uint32_t length = answer->length - answer->begin;
    memcpy(answer->bytes + answer->begin, &length, sizeof(length)); /* nlmsg_len */
}

/* Adds a message, with the header before its attributes. */
static inline void message_add(struct answer *answer, uint16_t type, const void *body, uint32_t bytes)
{
    const struct nlmsghdr header = {.nlmsg_type = type};
    answer->begin = answer->length;
    memcpy(answer->bytes + answer->begin, &header, sizeof(header));
    memcpy(answer->bytes + answer->begin + NLMSG_HDRLEN, body, bytes);
    answer->length += NLMSG_SPACE(bytes);
    length_write(answer);
}

/* To the last one. */
static inline void attribute_add(struct answer *answer, uint16_t type, const void *data, uint16_t bytes)
{
    const struct rtattr attribute = {.rta_len = (uint16_t)(sizeof(attribute) + bytes), .rta_type = type};
    memcpy(answer->bytes + answer->length, &attribute, sizeof(attribute));
    memcpy(answer->bytes + answer->length + sizeof(attribute), data, bytes);
    answer->length += RTA_ALIGN(attribute.rta_len);
    length_write(answer);
}

/* Its first `length` bytes, some of them damaged, in memory of their own length, so that the sanitizer sees who reads
 * on. To be freed. */
static inline uint8_t *broken_copy(const struct answer *answer, uint32_t length, struct cw_random *random)
{
    uint8_t *copy = malloc(length + 1);
    memcpy(copy, answer->bytes, length);
    for (uint64_t flips = cw_random_below(random, 4); flips > 0 && length > 0; flips--) {
        copy[cw_random_below(random, length)] = (uint8_t)cw_random_next(random);
    }
    return copy;
}
