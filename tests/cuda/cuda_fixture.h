/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the CUDA backend on the stand-in (standin.h). */
#ifndef ONUMA_TESTS_CUDA_FIXTURE_H
#define ONUMA_TESTS_CUDA_FIXTURE_H

#include "standin.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

/* A GPU as they are today, with little memory. */
static const standin_settings usual = {
    .devices = 1, .memory = 64 * MIB, .virtual_memory = true, .host_virtual = true, .managed = true, .registers = true};

/* The library that the backend opens, because it has that name already. */
static inline const standin *driver(void) {
    static const standin *found;
    if (found == NULL) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        if (library == NULL) fail_msg("%s", dlerror());
        found = dlsym(library, STANDIN_SYMBOL);
        if (found == NULL) fail_msg("libcuda.so.1 is not the stand-in; is LD_LIBRARY_PATH set?");
    }
    return found;
}

static inline standin_live alive(void) {
    standin_live now;
    driver()->live(&now);
    return now;
}

/* All is given back, and the thread is as it was. */
static inline void expect_nothing_alive(const char *when) {
    const standin_live now = alive();
    if (now.contexts + now.current + (size_t)now.mode + now.reserved + now.mapped + now.handles + now.allocated +
            now.registered + now.streams + now.events + now.broken !=
        0)
        fail_msg("%s: contexts %zu, current %zu, mode %d, reserved %zu, mapped %zu, handles %zu, allocated %zu, "
                 "registered %zu, streams %zu, events %zu, broken %zu",
                 when, now.contexts, now.current, now.mode, now.reserved, now.mapped, now.handles, now.allocated,
                 now.registered, now.streams, now.events, now.broken);
}

#endif
