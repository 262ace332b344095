/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL backend's parts that need no driver: the loader and the meaning of codes. */
#define _GNU_SOURCE /* system.h */
#include "backend/context.h"
#include "backend/opencl/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "system.h"

static onuma_backend_host host;

static void loader_that_is_not_there_is_quiet(void **state) {
    (void)state;
    const char *const names[] = {"libonuma_no_such_opencl.so.1", "libonuma_nor_this_one.so", NULL};
    onuma__cl cl;
    memset(&cl, 0x5a, sizeof cl);
    const onuma__cl before = cl;
    assert_int_equal(onuma__cl_load(&host, names, &cl), ONUMA_ERROR_NOT_FOUND);
    assert_non_null(strstr(onuma_last_error(), "libonuma_nor_this_one.so"));
    assert_memory_equal(&cl, &before, sizeof cl);
}

/* A library that loads and is no OpenCL loader, in the place of a later name too. */
static void loader_that_lacks_functions_is_loud(void **state) {
    (void)state;
    const char *const names[] = {"libonuma_no_such_opencl.so.1", SYSTEM_LIBRARY, NULL};
    onuma__cl cl;
    assert_int_equal(onuma__cl_load(&host, names, &cl), ONUMA_ERROR_INTERNAL);
    assert_non_null(strstr(onuma_last_error(), SYSTEM_LIBRARY));
    assert_non_null(strstr(onuma_last_error(), "clGetPlatformIDs"));
}

static void codes_have_names_results_and_remedies(void **state) {
    (void)state;
    const struct {
        cl_int code;
        onuma_result result;
        const char *name;
    } codes[] = {
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, ONUMA_ERROR_OUT_OF_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {CL_OUT_OF_RESOURCES, ONUMA_ERROR_OUT_OF_MEMORY, "CL_OUT_OF_RESOURCES"},
        {CL_INVALID_BUFFER_SIZE, ONUMA_ERROR_OUT_OF_MEMORY, "CL_INVALID_BUFFER_SIZE"},
        {CL_DEVICE_NOT_AVAILABLE, ONUMA_ERROR_DEVICE_LOST, "CL_DEVICE_NOT_AVAILABLE"},
        {-9999, ONUMA_ERROR_DEVICE_LOST, "-9999"},
        {CL_INVALID_CONTEXT, ONUMA_ERROR_INVALID_ARGUMENT, "CL_INVALID_CONTEXT"},
        {-1001, ONUMA_ERROR_NOT_FOUND, "CL_PLATFORM_NOT_FOUND_KHR"},
        {-4242, ONUMA_ERROR_INTERNAL, "-4242"},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_int_equal(onuma__cl_fail(&host, codes[i].code, "trying %d things", 7), codes[i].result);
        assert_non_null(strstr(onuma_last_error(), "trying 7 things"));
        assert_non_null(strstr(onuma_last_error(), codes[i].name));
    }
    assert_string_equal(onuma__cl_code_name(CL_MAP_FAILURE), "CL_MAP_FAILURE");
    assert_string_equal(onuma__cl_code_name(-4242), "unknown error");
}

static void backends_read_their_configuration(void **state) {
    (void)state;
    assert_string_equal(host.config(&host, "opencl.share"), "svm_coarse");
    assert_string_equal(host.config(&host, "backends"), "all");
    assert_string_equal(host.config(&host, "pool.cache"), "16777216");
    assert_null(host.config(&host, "opencl"));
}

static char heard[256];

static void hear(void *user, onuma_log_level level, const char *line) {
    (void)user, (void)level;
    snprintf(heard, sizeof heard, "%s", line);
}

static void backends_write_to_the_log(void **state) {
    (void)state;
    onuma__config config;
    onuma__config_init(&config);
    const onuma__log log = {.level = ONUMA_LOG_WARN, .callback = hear};
    onuma__backend_context *context;
    assert_int_equal(onuma__backend_context_create(&config, &log, &context), ONUMA_OK);
    onuma_backend_host logging;
    onuma__backend_context_host(context, &logging);
    logging.log(&logging, ONUMA_LOG_INFO, "not %s", "this");
    assert_string_equal(heard, "");
    logging.log(&logging, ONUMA_LOG_WARN, "but %s %%d", "this");
    assert_non_null(strstr(heard, "but this %d"));
    onuma__backend_context_destroy(context);
}

int main(void) {
    onuma__config config;
    onuma__backend_context *context = NULL;
    onuma__config_init(&config);
    if (onuma__config_parse(&config, "opencl.share:svm_coarse", "test") != ONUMA_OK ||
        onuma__backend_context_create(&config, NULL, &context) != ONUMA_OK)
        return 1;
    onuma__backend_context_host(context, &host);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loader_that_is_not_there_is_quiet),
        cmocka_unit_test(loader_that_lacks_functions_is_loud),
        cmocka_unit_test(codes_have_names_results_and_remedies),
        cmocka_unit_test(backends_read_their_configuration),
        cmocka_unit_test(backends_write_to_the_log),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    onuma__backend_context_destroy(context);
    return failed;
}
