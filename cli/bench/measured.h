/* SPDX-License-Identifier: Apache-2.0 */
/* What benches have in common: rounds of which the median counts, and the options that say how many and how long. */
#ifndef CLI_BENCH_MEASURED_H
#define CLI_BENCH_MEASURED_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bench_figures {
    double median, min, max; /* ns */
} bench_figures;

/* Of the rounds' numbers, at least one, which it sorts. */
bench_figures bench_figures_of(double *numbers, size_t count);

/* Whether it is a whole number from 1 to `most`; else that is reported, and *status is the command's. */
bool bench_is_whole(const char *option, double number, unsigned most, int *status);
/* The same of --milliseconds, which may be a fraction. */
bool bench_is_duration(double milliseconds, int *status);

#endif
