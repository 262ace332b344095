/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_access: CPU and device take turns on one tensor, each adding 1 to a
 * part of it, for many rounds; in each the CPU compares every number with what
 * it must be. Before that, the CPU must not be let in while the device's work
 * is held back: that proves the waiting also where memory is coherent and
 * kernels are too quick to be caught. (Not on a simulator: Oclgrind runs work
 * when it is flushed, on the caller's thread, and would wait there for ever.)
 */
#include "demo/demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool clear(demo *d, uint32_t *tensor, size_t numbers) {
    if (!runner_acquire(&d->run, tensor, numbers * sizeof *tensor, ONUMA_ACCESS_WRITE)) return false;
    memset(tensor, 0, numbers * sizeof *tensor);
    return runner_release(&d->run, tensor, numbers * sizeof *tensor, ONUMA_ACCESS_WRITE);
}

static bool device_is_waited_for(demo *d, uint32_t *tensor, size_t numbers) {
    runner *r = &d->run;
    if (!clear(d, tensor, numbers) || !runner_finish(r) || !r->ops->gate_close(r)) return false;
    bool good = runner_launch(r, KERNEL_increment, numbers, ARGUMENTS(BLOCK(tensor)));
    onuma_result early = good ? runner_try_acquire(r, tensor, sizeof *tensor, ONUMA_ACCESS_READ, 0) : ONUMA_OK;
    uint32_t seen = early == ONUMA_OK ? tensor[0] : 1;
    r->ops->gate_open(r);
    if (!good) return false;
    if (early != ONUMA_ERROR_TIMEOUT) {
        runner_finish(r);
        return runner_fail(r, "the CPU was let in (%s) while the device had still to write, and read %u",
                           onuma_result_name(early), (unsigned)seen);
    }
    if (!runner_acquire(r, tensor, numbers * sizeof *tensor, ONUMA_ACCESS_READ)) return false;
    seen = tensor[numbers - 1];
    if (!runner_release(r, tensor, numbers * sizeof *tensor, ONUMA_ACCESS_READ)) return false;
    return seen == 1 ? true : runner_fail(r, "the CPU waited for the device and still read %u, not 1", (unsigned)seen);
}

static bool play_round(demo *d, uint32_t *tensor, uint32_t *expected, size_t numbers, size_t round) {
    runner *r = &d->run;
    size_t half = numbers / 2, cpu_from = round * 7 % half, device_from = round * 13 % half;
    if (!runner_acquire(r, tensor, numbers * sizeof *tensor, ONUMA_ACCESS_READ_WRITE)) return false;
    size_t wrong = 0;
    while (wrong < numbers && tensor[wrong] == expected[wrong])
        wrong++;
    uint32_t seen = wrong < numbers ? tensor[wrong] : 0;
    for (size_t i = 0; i < half; i++)
        tensor[cpu_from + i]++, expected[cpu_from + i]++;
    if (!runner_release(r, tensor, numbers * sizeof *tensor, ONUMA_ACCESS_READ_WRITE)) return false;
    if (wrong < numbers)
        return runner_fail(r, "round %zu: number %zu is %u, not %u", round, wrong, (unsigned)seen,
                           (unsigned)expected[wrong]);
    for (size_t i = 0; i < half; i++)
        expected[device_from + i]++;
    return runner_launch(r, KERNEL_increment, half, ARGUMENTS(BLOCK(tensor + device_from)));
}

bool demo_check_shared_access(demo *d, char *detail, size_t detail_size) {
    size_t numbers = d->load->numbers, rounds = d->load->rounds;
    void *tensor;
    if (!demo_alloc(d, numbers * sizeof(uint32_t), &tensor)) return false;
    uint32_t *expected = cli_allocate(numbers * sizeof *expected);
    memset(expected, 0, numbers * sizeof *expected);
    bool good = (d->info.simulator || device_is_waited_for(d, tensor, numbers)) && clear(d, tensor, numbers);
    /* The last round is there for its comparison. */
    for (size_t round = 0; round <= rounds && good; round++)
        good = play_round(d, tensor, expected, numbers, round);
    free(expected);
    onuma_free(tensor, d->run.queue);
    snprintf(detail, detail_size,
             "%zu rounds of CPU and device in turn on %zu numbers, each number right in every round%s", rounds, numbers,
             d->info.simulator ? "" : "; the CPU waited for a device that was held back");
    return good;
}
