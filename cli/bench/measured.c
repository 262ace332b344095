/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/measured.h"

#include <stdlib.h>

#include "output.h"

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_figures bench_figures_of(double *numbers, size_t count) {
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return (bench_figures){.median = count % 2 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2,
                           .min = numbers[0],
                           .max = numbers[count - 1]};
}

bool bench_is_whole(const char *option, double number, unsigned most, int *status) {
    if (number >= 1 && number <= most && number == (unsigned)number) return true;
    *status = cli_bad_request("--%s cannot be %g; it is a whole number from 1 to %u", option, number, most);
    return false;
}

bool bench_is_duration(double milliseconds, int *status) {
    if (milliseconds <= 60000) return true;
    *status = cli_bad_request("--milliseconds cannot be %g; it is at most 60000", milliseconds);
    return false;
}
