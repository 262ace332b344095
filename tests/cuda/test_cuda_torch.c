/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's callbacks, called as PyTorch calls them, on the stand-in. One process has one state, so the order matters. */
#include "../unit/api/api.h"
#include "cuda_fixture.h"

#include <pthread.h>

#include <opennuma/torch.h>

static int set_up(void **state) {
    standin_settings settings = usual;
    settings.devices = 2;
    driver()->reset(&settings);
    *state = NULL;
    return 0;
}

static uint64_t reserved(void) {
    return api_stats(onuma_torch_cuda_pool(0)).reserved_bytes;
}

static void *first_use(void *stream) {
    void *block = onuma_torch_cuda_alloc(1000, 0, stream);
    onuma_torch_cuda_free(block, 1000, 0, stream);
    return block;
}
static void racing_threads_make_one_state(void **state) {
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, first_use, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        void *block;
        assert_int_equal(pthread_join(threads[i], &block), 0);
        assert_non_null(block);
    }
    assert_int_equal(alive().contexts, 1);
    assert_int_equal(api_stats(onuma_torch_cuda_pool(0)).in_use_blocks, 0);
    onuma_torch_cuda_init(2);
    assert_int_equal(alive().contexts, 2);
    assert_ptr_not_equal(onuma_torch_cuda_pool(0), onuma_torch_cuda_pool(1));
}

static void bad_devices_and_pointers_have_nothing(void **state) {
    (void)state;
    assert_null(onuma_torch_cuda_alloc(1, 2, NULL));
    assert_non_null(strstr(onuma_last_error(), "cuda:2"));
    assert_null(onuma_torch_cuda_alloc(1, -1, NULL));
    assert_null(onuma_torch_cuda_alloc(1, 1000, NULL));
    assert_null(onuma_torch_cuda_pool(-1));
    assert_null(onuma_torch_cuda_alloc(1, 0, (void *)4711));
    onuma_torch_cuda_free(NULL, 0, 0, NULL);
    onuma_torch_cuda_free(NULL, 0, 99, NULL);
    size_t size = 1;
    assert_null(onuma_torch_cuda_base_alloc(&size, &size));
    assert_int_equal(size, 0);
}

static void blocks_are_as_pytorch_wants_them(void **state) {
    (void)state;
    void *stream = driver()->stream(false);
    char *block = onuma_torch_cuda_alloc(5 * MIB + 1, 0, stream), *none = onuma_torch_cuda_alloc(0, 0, stream);
    size_t size = 0;
    assert_int_equal((uintptr_t)block % 512, 0);
    assert_ptr_equal(onuma_torch_cuda_base_alloc(block + MIB, &size), block);
    assert_true(size >= 5 * MIB + 1);
    onuma_torch_cuda_free(block, 5 * MIB + 1, 0, stream);
    onuma_torch_cuda_free(none, 0, 0, stream);
    assert_true(reserved() > 0);
    onuma_torch_cuda_reset();
    assert_int_equal(reserved(), 0);
    driver()->drop_stream(stream);
}

static void other_streams_are_waited_for(void **state) {
    (void)state;
    void *first = driver()->stream(false), *second = driver()->stream(false);
    void *block = onuma_torch_cuda_alloc(4 * MIB, 0, first);
    onuma_torch_cuda_record_stream(block, second);
    driver()->hold(second); /* also what it is given after that and before the free */
    onuma_torch_cuda_free(block, 4 * MIB, 0, first);
    void *again = onuma_torch_cuda_alloc(4 * MIB, 0, first);
    assert_ptr_not_equal(again, block);
    driver()->let_go(second);
    onuma_torch_cuda_free(again, 4 * MIB, 0, first);
    onuma_torch_cuda_reset();
    assert_int_equal(reserved(), 0);
    /* The same stream alone is not waited for, recorded or not. */
    block = onuma_torch_cuda_alloc(4 * MIB, 0, first);
    driver()->hold(first);
    onuma_torch_cuda_free(block, 4 * MIB, 0, first);
    assert_ptr_equal(onuma_torch_cuda_alloc(4 * MIB, 0, first), block);
    onuma_torch_cuda_free(block, 4 * MIB, 0, first);
    driver()->let_go(first);
    onuma_torch_cuda_reset();
    assert_int_equal(reserved(), 0);
}

static void memory_has_a_bound(void **state) {
    (void)state;
    onuma_torch_cuda_memory_fraction(0.25, 0); /* of 64 MiB */
    void *block = onuma_torch_cuda_alloc(10 * MIB, 0, NULL);
    assert_non_null(block);
    assert_null(onuma_torch_cuda_alloc(10 * MIB, 0, NULL));
    assert_non_null(strstr(onuma_last_error(), "limit"));
    onuma_torch_cuda_memory_fraction(1, 0);
    void *other = onuma_torch_cuda_alloc(10 * MIB, 0, NULL);
    assert_non_null(other);
    assert_null(onuma_torch_cuda_alloc(60 * MIB, 0, NULL)); /* that is all there is */
    onuma_torch_cuda_free(other, 10 * MIB, 0, NULL);
    onuma_torch_cuda_free(block, 10 * MIB, 0, NULL);
    onuma_torch_cuda_reset();
    assert_int_equal(reserved(), 0);
    assert_int_equal(alive().current, 0);
    assert_int_equal(alive().broken, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(racing_threads_make_one_state),
        cmocka_unit_test(bad_devices_and_pointers_have_nothing),
        cmocka_unit_test(blocks_are_as_pytorch_wants_them),
        cmocka_unit_test(other_streams_are_waited_for),
        cmocka_unit_test(memory_has_a_bound),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
