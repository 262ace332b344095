/* SPDX-License-Identifier: Apache-2.0 */
/* A segment source for tests of the engine: real memory or bare addresses, which can be told to fail, and checks what the engine asks of it. */
#ifndef ONUMA_TESTS_POOL_SOURCE_H
#define ONUMA_TESTS_POOL_SOURCE_H

#include "os/os.h"
#include "pool/pool.h"

typedef struct test_source {
    /* Set before the first call. */
    bool real;           /* memory one can touch; else addresses from `next` on */
    uintptr_t next;      /* 0: an address of its own choice */
    size_t misalign;     /* spans start this far off their alignment and are that much shorter than the memory behind */
    size_t most_address; /* reservations larger than this fail; 0: none do */
    size_t page;         /* of commitment; 0: as the engine likes */
    size_t limit;        /* bytes held beyond which calls fail with LIMIT; 0: none */
    onuma__os_lock lock;
    /* Guarded by lock. */
    uint64_t fail_at; /* the call with this number (from 1) fails with OUT_OF_MEMORY; 0: none */
    uint64_t calls;   /* acquire, reserve and commit */
    uint64_t acquires, reserves, commits, decommits, releases;
    size_t held;       /* bytes acquired or committed */
    size_t spans;      /* not released */
    uint64_t delay_ns; /* that each call takes */
    bool broken;       /* the engine asked for something it must not ask for; says what on stderr */
} test_source;

onuma__source test_source_of(test_source *source);

#endif
