/* Fields: data as the programs of the paper send it, and other kinds. The seed is fixed. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/codec.h"
#include "apps/cli/cli.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"

enum {
    SEED = 20041106,
    ROW = 512, /* numbers in a row of a plane */
    MODES = 96,
    MEMBERS = 5,
};

static const double noise = 1e-6;

/* A smooth function of two of three coordinates; `which` distinguishes the fields of a record. */
static double smooth_at(uint64_t index, double which)
{
    double x = (double)(index % ROW) / ROW, y = (double)(index / ROW) / ROW, z = 0.3 + 0.1 * which;
    return 2 + which + sin(2 * M_PI * x + which) * cos(2 * M_PI * (y + z)) + 0.3 * sin(6 * M_PI * (x + 2 * y - z)) +
           0.2 * x * y * z;
}

/* Within +-1/2. */
static double jitter(struct cw_random *random)
{
    return cw_random_fraction(random) - 0.5;
}

static void smooth_make(struct cw_random *random, double *numbers, uint64_t count)
{
    (void)random;
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = smooth_at(i, 0);
    }
}

static void noisy_make(struct cw_random *random, double *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = smooth_at(i, 0) * (1 + 2 * noise * jitter(random));
    }
}

/* Adds a mode to a row: its phase turns by `step` from number to number. */
static void mode_add(double *row, uint64_t count, double amplitude, double phase, double step)
{
    double re = amplitude * cos(phase), im = amplitude * sin(phase), turn_re = cos(step), turn_im = sin(step);
    for (uint64_t i = 0; i < count; i++) {
        row[i] += re;
        double next = re * turn_re - im * turn_im;
        im = re * turn_im + im * turn_re;
        re = next;
    }
}

/* Energy falls with the wave number to the power of -5/3, so amplitudes with half of that. */
static void turbulent_make(struct cw_random *random, double *numbers, uint64_t count)
{
    memset(numbers, 0, count * sizeof(*numbers));
    for (uint32_t mode = 1; mode <= MODES; mode++) {
        double angle = 2 * M_PI * cw_random_fraction(random), phase = 2 * M_PI * cw_random_fraction(random);
        double step_x = 2 * M_PI * mode * cos(angle) / ROW, step_y = 2 * M_PI * mode * sin(angle) / ROW;
        for (uint64_t at = 0; at < count; at += ROW) {
            mode_add(numbers + at, count - at < ROW ? count - at : ROW, pow(mode, -5.0 / 6),
                     phase + step_y * (double)(at / ROW), step_x);
        }
    }
}

/* Density, momenta and energy of a cell, next to each other. */
static void records_make(struct cw_random *random, double *numbers, uint64_t count)
{
    static const double scales[MEMBERS] = {1, 0.1, 0.02, 0.003, 40};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t member = i % MEMBERS;
        numbers[i] = scales[member] * smooth_at(i / MEMBERS, (double)member) * (1 + 2 * noise / 1000 * jitter(random));
    }
}

/* Quiet gas: stretches of the same number, and others that rounding has touched. */
static void lastbits_make(struct cw_random *random, double *numbers, uint64_t count)
{
    static const double quiet = 1.4;
    uint64_t bits, left = 0;
    bool is_touched = true;
    memcpy(&bits, &quiet, sizeof(bits));
    for (uint64_t i = 0; i < count; i++) {
        if (left == 0) {
            left = cw_random_between(random, 50, 800);
            is_touched = !is_touched;
        }
        left--;
        uint64_t value = bits + (is_touched ? cw_random_below(random, 8) : 0);
        memcpy(&numbers[i], &value, sizeof(value));
    }
}

static float single_at(struct cw_random *random, uint64_t index)
{
    return (float)(smooth_at(index, 0) * (1 + 2 * noise * jitter(random)));
}

static void single_make(struct cw_random *random, double *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = (double)single_at(random, i);
    }
}

static void floats_fill(struct cw_random *random, uint8_t *data, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        float number = single_at(random, i);
        memcpy(data + i * sizeof(number), &number, sizeof(number));
    }
}

/* Keys: rising, with gaps, and some that are not in their order. */
static void integers_fill(struct cw_random *random, uint8_t *data, uint64_t bytes)
{
    uint32_t key = 0;
    for (uint64_t i = 0; i < bytes / sizeof(key); i++) {
        key += (uint32_t)cw_random_below(random, cw_random_chance(random, 0.01) ? 4000 : 16);
        uint32_t value = cw_random_chance(random, 0.02) ? key - (uint32_t)cw_random_below(random, 64) : key;
        memcpy(data + i * sizeof(value), &value, sizeof(value));
    }
}

static const char *const words[][12] = {
    {"the ", "a ", "this ", "every ", "no ", "one ", "that ", "some ", "each ", "another ", "any ", "its "},
    {"old ", "quiet ", "narrow ", "green ", "broken ", "distant ", "warm ", "heavy ", "early ", "tidal ", "salt ", ""},
    {"island", "road", "harbour", "traveller", "sea", "bridge", "message", "village", "tide", "lamp", "stone", "boat"},
    {" crosses ", " follows ", " carries ", " sees ", " leaves ", " reaches ", " keeps ", " hides ", " finds ",
     " answers ", " waits for ", " passes "},
};

/* Article, adjective, noun, verb, article, adjective, noun. */
static void text_fill(struct cw_random *random, uint8_t *data, uint64_t bytes)
{
    static const uint8_t sentence[] = {0, 1, 2, 3, 0, 1, 2};
    uint64_t at = 0;
    for (uint32_t place = 0; at < bytes; place++) {
        const char *word = place % 8 == 7 ? ".\n" : words[sentence[place % 8]][cw_random_below(random, 12)];
        for (; *word != '\0' && at < bytes; word++) {
            data[at++] = (uint8_t)*word;
        }
    }
}

static void random_fill(struct cw_random *random, uint8_t *data, uint64_t bytes)
{
    cw_random_fill(random, data, bytes);
}

/* Fields of doubles are made by `make`, others by `fill`; without either it is zeros. */
static const struct built_in {
    const char *name;
    enum cw_element element;
    bool is_counted;
    void (*make)(struct cw_random *random, double *numbers, uint64_t count);
    void (*fill)(struct cw_random *random, uint8_t *data, uint64_t bytes);
} built_in[] = {
    {"smooth", CW_ELEMENT_DOUBLE, true, smooth_make, NULL},
    {"noisy", CW_ELEMENT_DOUBLE, true, noisy_make, NULL},
    {"turbulent", CW_ELEMENT_DOUBLE, true, turbulent_make, NULL},
    {"records", CW_ELEMENT_DOUBLE, true, records_make, NULL},
    {"lastbits", CW_ELEMENT_DOUBLE, true, lastbits_make, NULL},
    {"single", CW_ELEMENT_DOUBLE, true, single_make, NULL},
    {"floats", CW_ELEMENT_FLOAT, false, NULL, floats_fill},
    {"integers", CW_ELEMENT_INTEGER_4, false, NULL, integers_fill},
    {"text", CW_ELEMENT_BYTES, false, NULL, text_fill},
    {"random", CW_ELEMENT_DOUBLE, false, NULL, random_fill},
    {"zeros", CW_ELEMENT_DOUBLE, false, NULL, NULL},
};

enum { BUILT_IN = sizeof(built_in) / sizeof(built_in[0]) };

void codec_fields_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < BUILT_IN && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", built_in[i].name);
    }
}

int codec_fields_make(struct codec_fields *fields, const char *name, uint64_t bytes)
{
    bool is_found = false;
    for (uint32_t i = 0; i < BUILT_IN && fields->count < CODEC_FIELDS_MAX; i++) {
        const struct built_in *kind = &built_in[i];
        if (name != NULL && strcmp(name, kind->name) != 0) {
            continue;
        }
        is_found = true;
        uint8_t *data = calloc(bytes / sizeof(double) + 1, sizeof(double));
        if (data == NULL) {
            return CW_ERROR_MEMORY;
        }
        struct cw_random random;
        cw_random_seed(&random, cw_random_derive(SEED, i));
        if (kind->make != NULL) {
            kind->make(&random, (double *)(void *)data, bytes / sizeof(double));
        } else if (kind->fill != NULL) {
            kind->fill(&random, data, bytes);
        }
        fields->fields[fields->count++] =
            (struct codec_field){kind->name, kind->element, data, bytes, kind->is_counted};
    }
    return is_found ? CW_OK : CW_ERROR_NOT_FOUND;
}

int codec_fields_read(struct codec_fields *fields, const char *path, enum cw_element element)
{
    if (fields->count == CODEC_FIELDS_MAX) {
        app_error("too many files", path, "give fewer at a time");
        return APP_EXIT_USAGE;
    }
    uint64_t bytes = 0;
    uint8_t *data = app_file_read(path, CODEC_FILE_MAX, &bytes);
    int error = errno;
    if (data == NULL || bytes < CW_CHUNK_RAW_MIN) {
        free(data);
        app_error(data == NULL ? "the file cannot be read" : "the file has too little in it", path,
                  data == NULL ? strerror(error) : "64 bytes at least");
        return APP_EXIT_USAGE;
    }
    fields->fields[fields->count++] = (struct codec_field){path, element, data, bytes, element == CW_ELEMENT_DOUBLE};
    return APP_EXIT_SUCCESS;
}

void codec_fields_dispose(struct codec_fields *fields)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        free(fields->fields[i].data);
    }
    fields->count = 0;
}
