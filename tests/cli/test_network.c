/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's networks in plain C: they answer as training recorded, and a wrong kernel is noticed. */
#include "demo/network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t right_answers(size_t which, size_t images, kernel_id replaced, kernel_id by, size_t *known) {
    char error[160] = "";
    network net;
    network_data data;
    void *tensors[NETWORK_TENSORS_MAX];
    assert_true(network_data_open(&data, error, sizeof error));
    assert_true(network_open(&net, which, images, error, sizeof error));
    assert_true(images <= data.images);
    for (size_t i = 0; i < net.step_count; i++)
        if (net.steps[i].kernel == replaced) net.steps[i].kernel = by;
    for (size_t i = 0; i < net.tensor_count; i++) {
        tensors[i] = malloc(net.tensors[i].floats * sizeof(float));
        assert_non_null(tensors[i]);
        if (net.tensors[i].role == NETWORK_WEIGHT)
            memcpy(tensors[i], net.tensors[i].data, net.tensors[i].floats * sizeof(float));
    }
    network_fill_input(&data, images, tensors[net.input]);
    network_run_reference(&net, tensors);
    const float *output = tensors[net.output];
    for (size_t i = 0; i < images; i++) {
        float sum = 0;
        for (size_t k = 0; k < NETWORK_CLASSES; k++)
            sum += output[i * NETWORK_CLASSES + k];
        assert_true(fabsf(sum - 1) < 1e-5f);
    }
    size_t right = network_count_correct(&data, images, output);
    *known = net.known_correct;
    for (size_t i = 0; i < net.tensor_count; i++)
        free(tensors[i]);
    assert_int_equal(net.known_images, data.images);
    network_close(&net);
    network_data_close(&data);
    return right;
}

static void answers_as_recorded(void **state) {
    (void)state;
    for (size_t which = 0; which < NETWORK_COUNT; which++) {
        size_t known, right = right_answers(which, 360, KERNEL_COUNT, KERNEL_COUNT, &known);
        assert_int_equal(right, known);
        assert_true(right > 350);
    }
}

static void a_wrong_kernel_costs_answers(void **state) {
    (void)state;
    size_t known;
    assert_true(right_answers(1, 360, KERNEL_vector_add, KERNEL_vector_add_wrong, &known) < known);
}

static void runs_fewer_images(void **state) {
    (void)state;
    size_t known;
    assert_int_equal(right_answers(0, 1, KERNEL_COUNT, KERNEL_COUNT, &known), 1);
}

/* One value of each kernel worked out by hand or from its definition. */
static void kernels_compute_what_they_say(void **state) {
    (void)state;
    float a[16], b[16], out[64] = {0};
    for (int i = 0; i < 16; i++)
        a[i] = (float)i, b[i] = 1;
    kernel_get(KERNEL_maxpool)->reference((kernel_value[]){{a}, {out}, {.number = 4}, {.number = 4}}, 4);
    assert_true(out[0] == 5 && out[1] == 7 && out[2] == 13 && out[3] == 15);
    float nines[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, bias[1] = {0.5f};
    kernel_get(KERNEL_conv2d)
        ->reference(
            (kernel_value[]){{a}, {nines}, {bias}, {out}, {.number = 1}, {.number = 1}, {.number = 4}, {.number = 4}},
            16);
    assert_true(out[0] == 0 + 1 + 4 + 5 + 0.5f);
    assert_true(out[5] == 0 + 1 + 2 + 4 + 5 + 6 + 8 + 9 + 10 + 0.5f);
    assert_true(out[15] == 10 + 11 + 14 + 15 + 0.5f);
    kernel_get(KERNEL_layer_norm)->reference((kernel_value[]){{a}, {b}, {bias}, {out}, {.number = 1}}, 1);
    assert_true(out[0] == 0.5f);
    kernel_get(KERNEL_softmax)->reference((kernel_value[]){{b}, {out}, {.number = 4}}, 1);
    assert_true(out[3] == 0.25f);
    kernel_get(KERNEL_mean_rows)->reference((kernel_value[]){{a}, {out}, {.number = 4}, {.number = 4}}, 4);
    assert_true(out[0] == 6 && out[3] == 9);
    kernel_get(KERNEL_matmul)->reference((kernel_value[]){{a}, {b}, {out}, {.number = 4}}, 16);
    assert_true(out[0] == 6 && out[15] == 54);
    /* One token attends to itself alone. */
    kernel_get(KERNEL_attention_mix)
        ->reference((kernel_value[]){{b}, {a}, {out}, {.number = 1}, {.number = 2}, {.number = 4}}, 4);
    assert_true(out[0] == 8 && out[3] == 11);
    kernel_get(KERNEL_attention_scores)
        ->reference((kernel_value[]){{a}, {out}, {.number = 1}, {.number = 1}, {.number = 4}}, 1);
    assert_true(out[0] == (0 * 4 + 1 * 5 + 2 * 6 + 3 * 7) / 2.0f);
}

static void turn_touches_the_ends(void **state) {
    (void)state;
    for (size_t n = 1; n < 40; n++)
        for (size_t stride = 1; stride < 45; stride++) {
            unsigned char bytes[40];
            uint32_t wrong = 0;
            size_t items = kernel_turn_items(n, stride), changed = 0;
            for (uint32_t i = 0; i < n; i++)
                bytes[i] = kernel_pattern(i, 1);
            kernel_get(KERNEL_turn)
                ->reference((kernel_value[]){{bytes},
                                             {&wrong},
                                             {.number = (uint32_t)n},
                                             {.number = (uint32_t)stride},
                                             {.number = 1},
                                             {.number = 2}},
                            items);
            assert_int_equal(wrong, 0);
            assert_int_equal(bytes[0], kernel_pattern(0, 2));
            assert_int_equal(bytes[n - 1], kernel_pattern((uint32_t)n - 1, 2));
            for (uint32_t i = 0; i < n; i++)
                changed += i % stride == 0 || i == n - 1;
            assert_int_equal(items, changed);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_as_recorded),   cmocka_unit_test(a_wrong_kernel_costs_answers),
        cmocka_unit_test(runs_fewer_images),     cmocka_unit_test(kernels_compute_what_they_say),
        cmocka_unit_test(turn_touches_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
