/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the public interface share. They see the public header
 * alone and are linked with the shared library, as programs are.
 *
 * OPENNUMA_TEST_DEVICE names the device that they run on ("host" if unset), so
 * that the same tests prove other backends.
 */
#ifndef TESTS_UNIT_API_API_H
#define TESTS_UNIT_API_API_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opennuma/opennuma.h>

/* The call succeeds; else the test fails with the library's own words. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        onuma_result ok_ = (call);                                                                                     \
        if (ok_ != ONUMA_OK) fail_msg("%s: %s: %s", #call, onuma_result_name(ok_), onuma_last_error());                \
    } while (0)

/* The call fails with this result, and the detail holds `part`. */
#define FAILS(expected, part, call)                                                                                    \
    do {                                                                                                               \
        onuma_result fails_ = (call);                                                                                  \
        if (fails_ != ONUMA_ERROR_##expected)                                                                          \
            fail_msg("%s: %s instead of %s (%s)", #call, onuma_result_name(fails_), #expected, onuma_last_error());    \
        if (strstr(onuma_last_error(), (part)) == NULL)                                                                \
            fail_msg("%s: no \"%s\" in \"%s\"", #call, (part), onuma_last_error());                                    \
        api_refusals++;                                                                                                \
    } while (0)

static unsigned api_refusals __attribute__((unused));

typedef struct api_lines {
    atomic_size_t count;
    char text[64][512];
} api_lines;

static inline void api_collect(void *user, onuma_log_level level, const char *line) {
    api_lines *lines = user;
    (void)level;
    size_t i = atomic_fetch_add(&lines->count, 1);
    if (i < 64) snprintf(lines->text[i], sizeof lines->text[0], "%s", line);
}

/* How many collected lines hold `part`. */
static inline size_t api_count_lines(const api_lines *lines, const char *part) {
    size_t found = 0;
    for (size_t i = 0; i < lines->count && i < 64; i++)
        found += strstr(lines->text[i], part) != NULL;
    return found;
}

/* With the drivers that the device under test needs: none for the host, so that their own leaks and threads stay out. */
static inline onuma_runtime *api_runtime(const char *config, api_lines *lines) {
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    onuma_runtime *rt;
    char text[128];
    snprintf(text, sizeof text, "backends:%s,%s", getenv("OPENNUMA_TEST_DEVICE") != NULL ? "all" : "host",
             config != NULL ? config : "");
    desc.config = text;
    if (lines != NULL) {
        memset(lines, 0, sizeof *lines);
        desc.log = api_collect;
        desc.log_user = lines;
    }
    OK(onuma_runtime_create(&desc, &rt));
    return rt;
}

static inline onuma_device *api_device(const onuma_runtime *rt) {
    const char *id = getenv("OPENNUMA_TEST_DEVICE");
    onuma_device *device;
    OK(onuma_device_find(rt, id != NULL ? id : "host", &device));
    return device;
}

static inline onuma_device *api_host(const onuma_runtime *rt) {
    onuma_device *device;
    OK(onuma_device_find(rt, "host", &device));
    return device;
}

static inline onuma_pool *api_pool(onuma_device *device, size_t limit) {
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    onuma_pool *pool;
    desc.limit_bytes = limit;
    desc.name = "test";
    OK(onuma_pool_create(device, &desc, &pool));
    return pool;
}

static inline onuma_pool_stats api_stats(onuma_pool *pool) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    OK(onuma_pool_get_stats(pool, &stats));
    return stats;
}

/* Fill and check a block through the CPU, as a program does on any device. */
static inline void api_fill(void *block, size_t size, unsigned char value) {
    if (size == 0) return;
    OK(onuma_host_acquire(block, size, ONUMA_ACCESS_WRITE, ONUMA_TIMEOUT_INFINITE));
    memset(block, value, size);
    OK(onuma_host_release(block, size, ONUMA_ACCESS_WRITE));
}

static inline void api_check(void *block, size_t size, unsigned char value) {
    if (size == 0) return;
    OK(onuma_host_acquire(block, size, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
    const unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value) fail_msg("byte %zu of %zu at %p is %u instead of %u", i, size, block, bytes[i], value);
    OK(onuma_host_release(block, size, ONUMA_ACCESS_READ));
}

/* An onuma_import_deleter, and what it was called with. */
typedef struct api_deletion {
    unsigned calls;
    void *memory;
} api_deletion;

static inline void api_count_deletion(void *user, void *memory) {
    api_deletion *d = user;
    d->calls++;
    d->memory = memory;
}

#endif
