/* SPDX-License-Identifier: Apache-2.0 */
/* Views: arithmetic where there is an address, one handle a block where there is none. */
#include "sync_support.h"

#define BLOCK ((size_t)1 << 16)

static onuma_result get(fixture *f, void *p, uint32_t flags, onuma_view *view) {
    onuma_view fresh = ONUMA_VIEW_INIT;
    *view = fresh;
    view->flags = flags;
    return onuma__view_get(p, f->device, ONUMA_API_HOST, view);
}

static void an_address_is_arithmetic(void **state) {
    fixture *f = *state;
    char *p = take(f, BLOCK, NULL);
    onuma_view view;
    onuma__block block;
    assert_int_equal(onuma__engine_find(p, &block), ONUMA_OK);
    assert_int_equal(get(f, p + 24, 0, &view), ONUMA_OK);
    assert_int_equal(view.via, ONUMA_VIA_POINTER);
    assert_int_equal(view.pointer, (uintptr_t)p + 24);
    assert_int_equal(view.handle, 0);
    assert_int_equal(view.offset, 0);
    assert_int_equal(view.size, block.size - 24);
    assert_int_equal(fake.views_made, 0);
    assert_int_equal(onuma__engine_find(p, &block), ONUMA_OK);
    assert_false(block.special); /* its free stays cheap */
}

static void a_handle_is_made_once_and_interior_pointers_are_offsets(void **state) {
    fixture *f = *state;
    gives_handles(f);
    char *p = take(f, BLOCK, NULL), *other = take(f, BLOCK, NULL);
    onuma_view view, inside;
    assert_int_equal(get(f, p, 0, &view), ONUMA_OK);
    assert_int_equal(get(f, p + 100, 0, &inside), ONUMA_OK);
    assert_int_equal(view.via, ONUMA_VIA_HANDLE);
    assert_int_equal(view.pointer, 0);
    assert_int_not_equal(view.handle, 0);
    assert_int_equal(view.offset, 0);
    assert_int_equal(inside.handle, view.handle);
    assert_int_equal(inside.offset, 100);
    assert_int_equal(inside.size, view.size - 100);
    assert_int_equal(fake.views_made, 1);
    assert_int_equal(get(f, other, 0, &inside), ONUMA_OK);
    assert_int_not_equal(inside.handle, view.handle);
}

static void a_handle_dies_with_its_block_and_not_before(void **state) {
    fixture *f = *state;
    gives_handles(f);
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, q), *idle = take(f, BLOCK, NULL);
    onuma_view view;
    assert_int_equal(get(f, p, 0, &view), ONUMA_OK);
    assert_int_equal(get(f, idle, 0, &view), ONUMA_OK);
    submit(&f->a);
    assert_int_equal(onuma__sync_free(idle, NULL), ONUMA_OK);
    assert_int_equal(fake.views_released, 1); /* nothing uses it */
    assert_int_equal(onuma__sync_free(p, q), ONUMA_OK);
    assert_false(onuma__sync_poll(f->engine));
    assert_int_equal(fake.views_released, 1);
    assert_int_equal(get(f, p, 0, &view), ONUMA_ERROR_INVALID_POINTER);
    complete(&f->a);
    assert_true(onuma__sync_poll(f->engine));
    assert_int_equal(fake.views_released, 2);
}

static void handles_of_blocks_that_live_go_with_their_engine(void **state) {
    fixture *f = *state;
    gives_handles(f);
    onuma_view view;
    assert_int_equal(get(f, take(f, BLOCK, NULL), 0, &view), ONUMA_OK);
    assert_true(onuma__sync_drop_engine(f->engine, 0));
    assert_int_equal(fake.views_released, 1);
}

static void handles_that_a_queue_may_still_use_are_left_alone(void **state) {
    fixture *f = *state;
    gives_handles(f);
    onuma__queue *q = wrap(f, &f->a, ONUMA_QUEUE_IN_ORDER);
    void *p = take(f, BLOCK, NULL);
    onuma_view view;
    assert_int_equal(get(f, p, 0, &view), ONUMA_OK);
    assert_int_equal(use(q, p, ONUMA_ACCESS_READ), ONUMA_OK);
    submit(&f->a);
    assert_false(onuma__sync_drop_engine(f->engine, 1000000));
    assert_int_equal(fake.views_released, 0);
}

static void a_retained_view_is_given_back_once(void **state) {
    fixture *f = *state;
    gives_handles(f);
    void *p = take(f, BLOCK, NULL);
    onuma_view view, plain, copy;
    assert_int_equal(get(f, p, 0, &plain), ONUMA_OK);
    assert_int_equal(onuma__view_release(&plain), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(get(f, p, ONUMA_VIEW_RETAIN, &view), ONUMA_OK);
    copy = view;
    assert_int_equal(fake.views_retained, 1);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    assert_int_equal(fake.views_released, 1); /* the library's own */
    assert_int_equal(onuma__view_release(&view), ONUMA_OK);
    assert_int_equal(fake.views_released, 2);
    assert_int_equal(onuma__view_release(&view), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(onuma__view_release(&copy), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fake.views_released, 2);
}

static void a_retained_view_of_a_device_that_is_gone_is_refused(void **state) {
    fixture *f = *state;
    gives_handles(f);
    onuma_view view;
    assert_int_equal(get(f, take(f, BLOCK, NULL), ONUMA_VIEW_RETAIN, &view), ONUMA_OK);
    onuma__queues_drop_device(f->device, 0);
    assert_int_equal(onuma__view_release(&view), ONUMA_ERROR_INVALID_ARGUMENT);
}

static void a_retained_address_is_given_back_too(void **state) {
    fixture *f = *state;
    onuma_view view;
    assert_int_equal(get(f, take(f, BLOCK, NULL), ONUMA_VIEW_RETAIN, &view), ONUMA_OK);
    assert_int_equal(onuma__view_release(&view), ONUMA_OK);
    assert_int_equal(onuma__view_release(&view), ONUMA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fake.views_retained + fake.views_released, 0);
}

static void a_view_that_cannot_be_made_is_tried_again(void **state) {
    fixture *f = *state;
    gives_handles(f);
    void *p = take(f, BLOCK, NULL);
    onuma_view view;
    atomic_store(&fake.view, ONUMA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(get(f, p, 0, &view), ONUMA_ERROR_OUT_OF_MEMORY);
    atomic_store(&fake.view, ONUMA_OK);
    assert_int_equal(get(f, p, 0, &view), ONUMA_OK);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    assert_int_equal(fake.views_made, 1);
    assert_int_equal(fake.views_released, 1);
}

typedef struct request {
    fixture *f;
    void *p;
    uint64_t handle;
} request;

static void get_it(void *user) {
    request *r = user;
    onuma_view view;
    assert_int_equal(get(r->f, r->p, 0, &view), ONUMA_OK);
    r->handle = view.handle;
}

static void threads_that_ask_at_once_get_one_handle(void **state) {
    fixture *f = *state;
    gives_handles(f);
    atomic_store(&fake.view_gate, true);
    request requests[4];
    helper *threads[4];
    void *p = take(f, BLOCK, NULL);
    for (size_t i = 0; i < 4; i++) {
        requests[i] = (request){f, p, 0};
        threads[i] = start(get_it, &requests[i]);
    }
    while (atomic_load(&fake.view_waiters) == 0)
        onuma__os_yield();
    atomic_store(&fake.view_gate, false);
    for (size_t i = 0; i < 4; i++) {
        join(threads[i]);
        assert_int_equal(requests[i].handle, requests[0].handle);
    }
    assert_int_equal(fake.views_made, 1);
}

static void a_block_freed_while_its_view_is_made_takes_the_view_along(void **state) {
    fixture *f = *state;
    gives_handles(f);
    atomic_store(&fake.view_gate, true);
    request r = {f, take(f, BLOCK, NULL), 0};
    helper *thread = start(get_it, &r);
    while (atomic_load(&fake.view_waiters) == 0)
        onuma__os_yield();
    assert_int_equal(onuma__sync_free(r.p, NULL), ONUMA_OK); /* the user's fault; must do no harm */
    assert_int_equal(onuma__sync_pending(f->engine), 1);
    atomic_store(&fake.view_gate, false);
    join(thread);
    assert_true(onuma__sync_poll(f->engine));
    assert_int_equal(fake.views_released, 1);
}

static void a_block_resized_in_place_gets_a_view_of_its_new_size(void **state) {
    fixture *f = *state;
    gives_handles(f);
    void *p = take(f, BLOCK, NULL);
    onuma_view view, smaller;
    assert_int_equal(get(f, p, 0, &view), ONUMA_OK);
    if (onuma__engine_resize(p, BLOCK / 4) != ONUMA_OK) return;
    assert_int_equal(get(f, p, 0, &smaller), ONUMA_OK);
    assert_int_equal(fake.views_made, smaller.size == view.size ? 1 : 2);
    assert_int_equal(onuma__sync_free(p, NULL), ONUMA_OK);
    assert_int_equal(fake.views_released, fake.views_made);
}

static void what_the_device_cannot_see_is_not_supported(void **state) {
    fixture *f = *state;
    void *p = take(f, BLOCK, NULL);
    onuma_view view = ONUMA_VIEW_INIT;
    onuma__device other = {.ops = f->device->ops, .id = "other"};
    assert_int_equal(onuma__view_get(p, f->device, ONUMA_API_OPENCL, &view), ONUMA_ERROR_NOT_SUPPORTED);
    assert_int_equal(onuma__view_get(p, &other, ONUMA_API_HOST, &view), ONUMA_ERROR_NOT_SUPPORTED);
    assert_int_equal(onuma__view_get(&view, f->device, ONUMA_API_HOST, &view), ONUMA_ERROR_INVALID_POINTER);
    view.flags = 2;
    assert_int_equal(onuma__view_get(p, f->device, ONUMA_API_HOST, &view), ONUMA_ERROR_INVALID_ARGUMENT);
    f->owner.segment = NULL;
    assert_int_equal(get(f, p, 0, &view), ONUMA_ERROR_NOT_SUPPORTED);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sync_set_up, sync_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_address_is_arithmetic),
        TEST(a_handle_is_made_once_and_interior_pointers_are_offsets),
        TEST(a_handle_dies_with_its_block_and_not_before),
        TEST(handles_of_blocks_that_live_go_with_their_engine),
        TEST(handles_that_a_queue_may_still_use_are_left_alone),
        TEST(a_retained_view_is_given_back_once),
        TEST(a_retained_view_of_a_device_that_is_gone_is_refused),
        TEST(a_retained_address_is_given_back_too),
        TEST(a_view_that_cannot_be_made_is_tried_again),
        TEST(threads_that_ask_at_once_get_one_handle),
        TEST(a_block_freed_while_its_view_is_made_takes_the_view_along),
        TEST(a_block_resized_in_place_gets_a_view_of_its_new_size),
        TEST(what_the_device_cannot_see_is_not_supported),
    };
    return cmocka_run_group_tests_name("sync_view", tests, NULL, NULL);
}
