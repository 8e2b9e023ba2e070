/* Damage to text files: bytes changed, cut out, doubled, and words put in the place of others. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "dataplane/base/random.h"

/* Puts a word in the place of something in the text; returns its new length, `room` - 1 at the most. */
typedef size_t (*fuzz_text_replace)(struct cw_random *random, char *text, size_t length, size_t room);

/* Puts `word` in the place of `gone` bytes at `at`, where they are all within the text, and it fits. */
static inline size_t fuzz_text_splice(char *text, size_t length, size_t room, size_t at, size_t gone, const char *word)
{
    if (at + gone > length || gone == 0 || length - gone + strlen(word) + 1 > room) {
        return length;
    }
    memmove(text + at + strlen(word), text + at + gone, length - at - gone + 1);
    memcpy(text + at, word, strlen(word));
    return length - gone + strlen(word);
}

/* One wound: in all but three of `kinds` cases a word replaced. `length` above 0; returns the new one. */
static inline size_t fuzz_text_damage(struct cw_random *random, char *text, size_t length, size_t room, uint32_t kinds,
                                      fuzz_text_replace replace)
{
    size_t at = (size_t)cw_random_below(random, length);
    size_t bytes = (size_t)cw_random_below(random, 40);
    bytes = bytes > length - at ? length - at : bytes;
    switch (cw_random_below(random, kinds)) {
    case 0:
        text[at] = (char)cw_random_below(random, 256);
        return length;
    case 1:
        memmove(text + at, text + at + bytes, length - at - bytes + 1);
        return length - bytes;
    case 2:
        if (length + bytes + 1 <= room) {
            memmove(text + at + bytes, text + at, length - at + 1);
            return length + bytes;
        }
        return length;
    default:
        return replace(random, text, length, room);
    }
}
