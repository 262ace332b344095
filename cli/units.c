/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <stdio.h>

/* Three significant digits, but never an exponent: 9.87, 98.7, 987. Rounding decides the digits (9.996 is 10.0). */
static cli_unit_text with_unit(double value, const char *unit) {
    cli_unit_text out;
    int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(out.text, sizeof out.text, "%.*f %s", digits, value, unit);
    return out;
}

cli_unit_text cli_bytes(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    cli_unit_text out;
    if (bytes < 1024) {
        snprintf(out.text, sizeof out.text, "%u B", (unsigned)bytes);
        return out;
    }
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    return with_unit(value, units[unit]);
}

cli_unit_text cli_nanoseconds(double ns) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    while (ns >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        ns /= 1000;
        unit++;
    }
    return with_unit(ns, units[unit]);
}
