#include "control/settings/units.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A unit's name and how much it is of the base unit. */
struct unit {
    const char *name;
    double factor;
};

/* Reads a plain decimal number: no sign, no exponent, no hexadecimal, no "inf". *rest is the text after it. */
static bool number_read(const char *text, double *number, const char **rest)
{
    size_t length = strspn(text, "0123456789.");
    char digits[32];
    char *end;

    if (length == 0 || length >= sizeof(digits) || !isdigit((unsigned char)text[0])) {
        return false;
    }
    memcpy(digits, text, length);
    digits[length] = 0;
    *number = strtod(digits, &end);
    *rest = text + length;
    return *end == 0;
}

static bool quantity_read(const char *text, const struct unit *units, size_t unit_count, double *quantity)
{
    const char *rest;
    double number;

    if (!number_read(text, &number, &rest)) {
        return false;
    }
    for (size_t i = 0; i < unit_count; i++) {
        if (strcmp(rest, units[i].name) == 0) {
            *quantity = number * units[i].factor;
            return true;
        }
    }
    return false;
}

/* Whole units only: 1.5K is 1536 bytes, 1.0001 bytes is a mistake. */
static bool whole_read(const char *text, const struct unit *units, size_t unit_count, uint64_t *whole)
{
    double quantity;

    if (!quantity_read(text, units, unit_count, &quantity) || quantity >= 9e18 ||
        fabs(quantity - rint(quantity)) > 1e-6) {
        return false;
    }
    *whole = (uint64_t)llrint(quantity);
    return true;
}

#define UNIT_COUNT(units) (sizeof(units) / sizeof((units)[0]))

bool cw_units_bytes(const char *text, uint64_t *bytes)
{
    static const struct unit units[] = {
        {"", 1},         {"B", 1},      {"K", 0x1p10},   {"KiB", 0x1p10}, {"KB", 1e3},
        {"kB", 1e3},     {"M", 0x1p20}, {"MiB", 0x1p20}, {"MB", 1e6},     {"G", 0x1p30},
        {"GiB", 0x1p30}, {"GB", 1e9},   {"T", 0x1p40},   {"TiB", 0x1p40}, {"TB", 1e12},
    };

    return whole_read(text, units, UNIT_COUNT(units), bytes);
}

bool cw_units_rate(const char *text, uint64_t *rate_bps)
{
    static const struct unit units[] = {
        {"", 1},       {"bps", 1},    {"bit", 1},  {"k", 1e3},     {"K", 1e3},     {"kbps", 1e3},
        {"Kbps", 1e3}, {"kbit", 1e3}, {"M", 1e6},  {"Mbps", 1e6},  {"Mbit", 1e6},  {"G", 1e9},
        {"Gbps", 1e9}, {"Gbit", 1e9}, {"T", 1e12}, {"Tbps", 1e12}, {"Tbit", 1e12},
    };

    return whole_read(text, units, UNIT_COUNT(units), rate_bps);
}

bool cw_units_duration(const char *text, uint64_t *duration_ns)
{
    static const struct unit units[] = {
        {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9},
    };

    if (strcmp(text, "0") == 0) {
        *duration_ns = 0;
        return true;
    }
    return whole_read(text, units, UNIT_COUNT(units), duration_ns);
}

bool cw_units_percent(const char *text, double *fraction)
{
    static const struct unit units[] = {{"%", 0.01}};
    double quantity;

    if (strcmp(text, "0") == 0) {
        *fraction = 0;
        return true;
    }
    if (!quantity_read(text, units, UNIT_COUNT(units), &quantity) || quantity > 1) {
        return false;
    }
    *fraction = quantity;
    return true;
}
