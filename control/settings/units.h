/* Units: rates, durations, byte counts and shares as people write them, in options and in files alike.
 *
 * Invariants
 *  - Whole units only: 1.5K is 1536 bytes, 1.0001 bytes is a mistake. Nothing may stand before or behind the quantity;
 *    there are no signs, exponents or hexadecimal digits.
 *  - False: the text is no such quantity, or it is 9e18 or more of the base unit; the result is untouched then.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 1500, 64K, 1M, 1.5G: powers of 1024, as K = KiB; KB, MB, GB, TB are powers of 1000; KiB, MiB, ... of 1024; B may be
 * written behind a plain number. */
bool cw_units_bytes(const char *text, uint64_t *bytes);

/* 10Gbps, 2.5G, 100Mbit, 64kbps: powers of 1000, bits per second. */
bool cw_units_rate(const char *text, uint64_t *rate_bps);

/* 20us, 1.5ms, 3s, 2min, 100ns; the unit is required, except for 0. */
bool cw_units_duration(const char *text, uint64_t *duration_ns);

/* 1%, 0.01%; the sign is required, except for 0. Gives a fraction: 0.01 for 1%. */
bool cw_units_percent(const char *text, double *fraction);
