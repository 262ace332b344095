/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times as people read them, and numbers. */
#ifndef CLI_UNITS_H
#define CLI_UNITS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_unit_text {
    char text[32];
} cli_unit_text;

/* "0 B", "512 B", "1.50 GiB": three significant digits, binary units. Use as cli_bytes(n).text. */
cli_unit_text cli_bytes(uint64_t bytes);

/* "0.00 ns", "12.3 us", "4.56 s": three significant digits. */
cli_unit_text cli_nanoseconds(double ns);

/* isfinite, whose macro in MinGW's header converts to float and so draws a warning wherever it is used. */
static inline bool cli_is_finite(double number) {
    return fabs(number) <= DBL_MAX;
}

#endif
