#include "apps/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIGNIFICANT_DIGITS = 6 };

/* jansson fails only when memory is gone or a text is not UTF-8; neither leaves anything to print. */
static void require(bool done)
{
    if (!done) {
        app_error("cannot write JSON", "out of memory, or a text is not UTF-8", NULL);
        exit(APP_EXIT_INTERNAL);
    }
}

json_t *app_json_new(void)
{
    json_t *object = json_object();

    require(object != NULL);
    return object;
}

void app_json_child(json_t *object, const char *key, json_t *child)
{
    require(json_object_set_new(object, key, child) == 0);
}

void app_json_text(json_t *object, const char *key, const char *text)
{
    app_json_child(object, key, json_string(text));
}

void app_json_flag(json_t *object, const char *key, bool flag)
{
    app_json_child(object, key, json_boolean(flag));
}

void app_json_count(json_t *object, const char *key, uint64_t count)
{
    app_json_child(object, key, json_integer((json_int_t)count));
}

void app_json_number(json_t *object, const char *key, double number)
{
    app_json_child(object, key, isfinite(number) ? json_real(number) : json_null());
}

void app_json_emit(json_t *object)
{
    bool done = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(SIGNIFICANT_DIGITS)) == 0;
    require(done || ferror(stdout)); /* main reports what cannot be written */
    fputc('\n', stdout);
    fflush(stdout);
    json_decref(object);
}
