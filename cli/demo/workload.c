/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of workloads: whole jobs, from the CPU's input to the CPU's reading
 * of the output, the default way and ours, both held against plain C.
 *
 * The default way: the input is made in the program's memory and written to a
 * buffer, kernels run on buffers, the output is read back. Ours: the input is
 * made in a block, kernels run on views, the output is read where it is.
 * Weights and constant inputs are in place beforehand in both.
 */
#include "clock.h"
#include "demo/demo.h"
#include "demo/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 7 }; /* after one that is not counted; more than the least only as long as they are quick */
#define QUICK_NS UINT64_C(1000000000)

/* A job: a network, trained or of one operation, with where its tensors are in each way. */
typedef struct job {
    demo *d;
    const network *net;
    const network_data *data; /* NULL: the input is made up */
    demo_workload *row;
    float *plain[NETWORK_TENSORS_MAX]; /* the program's own memory */
    float *blocks[NETWORK_TENSORS_MAX];
    runner_buffer buffers[NETWORK_TENSORS_MAX];
    float *expected; /* output of the reference */
} job;

static size_t tensor_bytes(const job *j, size_t i) {
    return j->net->tensors[i].floats * sizeof(float);
}

static void make_input(const job *j, size_t i, float *to) {
    if (j->data) {
        network_fill_input(j->data, j->net->images, to);
        return;
    }
    for (size_t k = 0; k < j->net->tensors[i].floats; k++)
        to[k] = (float)((k * 7919 + i * 31) % 256) / 128.0f - 1.0f;
}

/* The largest difference so far goes to the row. A number that is none counts as infinitely wrong. */
static void compare(job *j, const float *output) {
    for (size_t k = 0; k < j->net->tensors[j->net->output].floats; k++) {
        double error = fabs((double)output[k] - (double)j->expected[k]);
        if (!(error <= j->row->max_error)) j->row->max_error = error < INFINITY ? error : INFINITY;
    }
}

/* The count that the row keeps is of a run that went wrong, if any did. */
static void count_answers(job *j, const float *output) {
    if (!j->data) return;
    size_t right = network_count_correct(j->data, j->net->images, output);
    if (!j->row->answered || right != j->row->expected) j->row->right = right;
    j->row->answered = true;
}

/* ---------------------------------------------------------------- kernels, in either way */

static bool launch_steps(job *j, bool ours) {
    for (size_t s = 0; s < j->net->step_count; s++) {
        const network_step *step = &j->net->steps[s];
        const char *signature = kernel_get(step->kernel)->signature;
        runner_argument arguments[KERNEL_ARGUMENTS_MAX];
        for (size_t a = 0; signature[a]; a++) {
            uint32_t value = step->arguments[a];
            arguments[a] = signature[a] == 'u' ? NUMBER(value)
                           : ours              ? BLOCK(j->blocks[value])
                                               : BUFFER(&j->buffers[value]);
        }
        if (!runner_launch(&j->d->run, step->kernel, step->items, arguments)) return false;
    }
    return true;
}

/* ---------------------------------------------------------------- the default way */

static bool run_default(job *j) {
    runner *r = &j->d->run;
    for (size_t i = 0; i < j->net->tensor_count; i++) {
        if (j->net->tensors[i].role != NETWORK_INPUT) continue;
        make_input(j, i, j->plain[i]);
        if (!r->ops->buffer_write(r, &j->buffers[i], j->plain[i])) return false;
    }
    return launch_steps(j, false) && r->ops->buffer_read(r, &j->buffers[j->net->output], j->plain[j->net->output]);
}

static bool set_up_default(job *j) {
    runner *r = &j->d->run;
    for (size_t i = 0; i < j->net->tensor_count; i++) {
        network_role role = j->net->tensors[i].role;
        j->buffers[i].size = tensor_bytes(j, i);
        if (!r->ops->buffer_create(r, &j->buffers[i])) {
            j->buffers[i].size = 0;
            return false;
        }
        j->row->default_bytes += tensor_bytes(j, i);
        if (role == NETWORK_INPUT || role == NETWORK_OUTPUT) j->row->default_bytes += tensor_bytes(j, i);
        /* Through plain memory, as the file's bytes have no particular alignment. */
        if (role == NETWORK_WEIGHT && !r->ops->buffer_write(r, &j->buffers[i], j->plain[i])) return false;
    }
    return true;
}

static void tear_down_default(job *j) {
    runner *r = &j->d->run;
    r->ops->finish(r);
    for (size_t i = 0; i < j->net->tensor_count; i++)
        if (j->buffers[i].size) r->ops->buffer_destroy(r, &j->buffers[i]);
}

/* ---------------------------------------------------------------- our way */

static bool fill_block(job *j, size_t i, const float *weights) {
    runner *r = &j->d->run;
    if (!runner_acquire(r, j->blocks[i], tensor_bytes(j, i), ONUMA_ACCESS_WRITE)) return false;
    if (weights)
        memcpy(j->blocks[i], weights, tensor_bytes(j, i));
    else
        make_input(j, i, j->blocks[i]);
    return runner_release(r, j->blocks[i], tensor_bytes(j, i), ONUMA_ACCESS_WRITE);
}

/* The output stays acquired, for the caller to read and release. */
static bool run_ours(job *j) {
    runner *r = &j->d->run;
    for (size_t i = 0; i < j->net->tensor_count; i++)
        if (j->net->tensors[i].role == NETWORK_INPUT && !fill_block(j, i, NULL)) return false;
    runner_batch_begin(r);
    bool launched = launch_steps(j, true);
    return runner_batch_end(r) && launched &&
           runner_acquire(r, j->blocks[j->net->output], tensor_bytes(j, j->net->output), ONUMA_ACCESS_READ);
}

static bool set_up_ours(job *j) {
    for (size_t i = 0; i < j->net->tensor_count; i++) {
        if (!demo_alloc(j->d, tensor_bytes(j, i), (void **)&j->blocks[i])) return false;
        if (j->net->tensors[i].role == NETWORK_WEIGHT && !fill_block(j, i, j->plain[i])) return false;
    }
    return true;
}

static bool tear_down_ours(job *j) {
    runner *r = &j->d->run;
    bool good = true;
    for (size_t i = 0; i < j->net->tensor_count; i++)
        good = runner_check(r, onuma_free(j->blocks[i], r->queue), "onuma_free") && good;
    return good;
}

/* ---------------------------------------------------------------- measuring */

typedef struct stopwatch {
    size_t least; /* laps */
    uint64_t times[REPEATS_MAX], begun, total;
    size_t laps;
    bool warm; /* the first lap, which is not counted, is over */
} stopwatch;

/* False: enough. */
static bool lap_begin(stopwatch *w) {
    if (w->laps == REPEATS_MAX || (w->laps >= w->least && w->total > QUICK_NS)) return false;
    w->begun = cli_now();
    return true;
}

static void lap_end(stopwatch *w) {
    uint64_t time = cli_now() - w->begun;
    if (w->warm) w->total += w->times[w->laps++] = time;
    w->warm = true;
}

static bool measure_default(job *j) {
    stopwatch watch = {.least = j->d->load->repeats};
    bool good = set_up_default(j);
    while (good && lap_begin(&watch)) {
        good = run_default(j);
        lap_end(&watch);
        if (!good) break;
        compare(j, j->plain[j->net->output]);
        count_answers(j, j->plain[j->net->output]);
    }
    if (good) j->row->default_us = demo_median_us(watch.times, watch.laps);
    tear_down_default(j);
    return good;
}

static bool measure_ours(job *j) {
    runner *r = &j->d->run;
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    stopwatch watch = {.least = j->d->load->repeats};
    bool good = runner_check(r, onuma_pool_trim(j->d->pool, 0, NULL), "onuma_pool_trim") &&
                runner_check(r, onuma_pool_reset_peak(j->d->pool), "onuma_pool_reset_peak") && set_up_ours(j);
    float *output = j->blocks[j->net->output];
    while (good && lap_begin(&watch)) {
        good = run_ours(j);
        lap_end(&watch);
        if (!good) break;
        compare(j, output);
        count_answers(j, output);
        good = runner_release(r, output, tensor_bytes(j, j->net->output), ONUMA_ACCESS_READ);
    }
    if (good) j->row->ours_us = demo_median_us(watch.times, watch.laps);
    good = good && runner_check(r, onuma_pool_get_stats(j->d->pool, &stats), "onuma_pool_get_stats");
    j->row->ours_bytes = stats.in_use_bytes_peak;
    return tear_down_ours(j) && good;
}

/* The reference's result, computed in the program's memory. */
static bool compute_expected(job *j) {
    for (size_t i = 0; i < j->net->tensor_count; i++) {
        j->plain[i] = malloc(tensor_bytes(j, i));
        if (!j->plain[i]) return runner_fail(&j->d->run, "no memory for %zu bytes", tensor_bytes(j, i));
        if (j->net->tensors[i].role == NETWORK_INPUT) make_input(j, i, j->plain[i]);
        if (j->net->tensors[i].role == NETWORK_WEIGHT) memcpy(j->plain[i], j->net->tensors[i].data, tensor_bytes(j, i));
    }
    j->expected = malloc(tensor_bytes(j, j->net->output));
    if (!j->expected) return runner_fail(&j->d->run, "no memory for the expected output");
    network_run_reference(j->net, (void *const *)j->plain);
    memcpy(j->expected, j->plain[j->net->output], tensor_bytes(j, j->net->output));
    memset(j->plain[j->net->output], 0, tensor_bytes(j, j->net->output));
    return true;
}

static bool measure_job(demo *d, const network *net, const network_data *data, double allowed_error) {
    demo_workload *row = &d->workloads[d->workload_count++];
    *row = (demo_workload){.name = net->name, .allowed_error = allowed_error};
    job j = {.d = d, .net = net, .data = data, .row = row};
    bool good = compute_expected(&j);
    if (good && data) {
        /* Of fewer images than training counted, those that the reference answers right. */
        row->images = net->images;
        row->expected = net->images == net->known_images ? net->known_correct
                                                         : network_count_correct(data, net->images, j.expected);
    }
    good = good && measure_default(&j) && measure_ours(&j);
    row->ok = good && row->max_error <= allowed_error && row->right == row->expected;
    for (size_t i = 0; i < net->tensor_count; i++)
        free(j.plain[i]);
    free(j.expected);
    return good;
}

/* ---------------------------------------------------------------- the jobs */

static bool measure_network(demo *d, size_t which, const network_data *data) {
    network net;
    size_t images = d->load->images < data->images ? d->load->images : data->images;
    if (!network_open(&net, which, images, d->run.error, sizeof d->run.error)) return false;
    bool good = measure_job(d, &net, data, 1e-4);
    network_close(&net);
    return good;
}

static bool measure_networks(demo *d) {
    network_data data;
    if (!network_data_open(&data, d->run.error, sizeof d->run.error)) return false;
    bool good = true;
    for (size_t which = 0; which < NETWORK_COUNT && good; which++)
        good = measure_network(d, which, &data);
    network_data_close(&data);
    return good;
}

/* Single operations, as networks of one step; the last tensor is the output. */
static bool measure_operations(demo *d) {
    size_t numbers = d->load->operation;
    uint32_t side = d->load->side;
    const network add = {
        .name = "vector_add",
        .tensors = {{NETWORK_INPUT, numbers, NULL}, {NETWORK_INPUT, numbers, NULL}, {NETWORK_OUTPUT, numbers, NULL}},
        .steps = {{KERNEL_vector_add, numbers, {0, 1, 2}}},
        .tensor_count = 3,
        .step_count = 1,
        .output = 2};
    const network reduce = {.name = "reduce_sum",
                            .tensors = {{NETWORK_INPUT, numbers, NULL}, {NETWORK_OUTPUT, numbers / KERNEL_GROUP, NULL}},
                            .steps = {{KERNEL_reduce_sum, numbers, {0, 1}}},
                            .tensor_count = 2,
                            .step_count = 1,
                            .output = 1};
    size_t square = (size_t)side * side;
    const network multiply = {
        .name = "matmul",
        .tensors = {{NETWORK_INPUT, square, NULL}, {NETWORK_INPUT, square, NULL}, {NETWORK_OUTPUT, square, NULL}},
        .steps = {{KERNEL_matmul, square, {0, 1, 2, side}}},
        .tensor_count = 3,
        .step_count = 1,
        .output = 2};
    return measure_job(d, &add, NULL, 0) && measure_job(d, &reduce, NULL, 1e-4) &&
           measure_job(d, &multiply, NULL, 1e-3);
}

bool demo_measure_workload(demo *d) {
    return measure_networks(d) && measure_operations(d);
}
