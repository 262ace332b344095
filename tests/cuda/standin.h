/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for NVIDIA's driver library, for faults only: it lets every call of the CUDA backend fail, on a machine
 * without a GPU, and checks that the backend keeps to the driver's rules. It computes nothing, so nothing that it shows
 * says how a GPU behaves; what does was run on one (docs/results/).
 *
 * It is built as libcuda.so.1 (nothing else is that), where LD_LIBRARY_PATH of these tests alone points. A test opens it
 * once more by that name, which gives the same library, and steers it through these functions. All but `live` are for one
 * thread, while no other is in the driver.
 *
 * Rules that it enforces: calls that need a context fail without one (201). While a capture in a strict mode is under way
 * on this thread, calls outside the relaxed mode fail (900) and are counted as broken. Ranges are reserved, mapped and
 * unmapped as whole pages; what is not the driver's is refused (1).
 */
#ifndef ONUMA_TESTS_CUDA_STANDIN_H
#define ONUMA_TESTS_CUDA_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the driver is; set before the library opens it. */
typedef struct standin_settings {
    int init;            /* what cuInit answers; 0: success */
    int devices;         /* 0: none */
    size_t memory;       /* bytes on each device */
    bool virtual_memory; /* on the device */
    bool host_virtual;   /* on the host's nodes */
    bool managed;        /* concurrently */
    bool registers;      /* memory of the program */
    bool incoherent;     /* what the device writes to the host's virtual memory never arrives */
    bool integrated;
} standin_settings;

/* What is alive. */
typedef struct standin_live {
    size_t contexts;   /* references to primary ones */
    size_t current;    /* depth of the calling thread's stack */
    int mode;          /* of capture, the calling thread's */
    size_t reserved;   /* bytes of addresses */
    size_t mapped;     /* bytes in them */
    size_t handles;    /* of memory, not released */
    size_t allocated;  /* bytes of segments of every sort */
    size_t registered; /* bytes */
    size_t streams, events;
    size_t calls;  /* of all functions, since the reset */
    size_t broken; /* rules broken since the reset */
} standin_live;

typedef struct standin {
    /* As a new process would find it; nothing may be alive. */
    void (*reset)(const standin_settings *settings);
    void (*live)(standin_live *out);
    /* The n-th call from now on (1: the next) answers `code`, and does nothing; with `ever`, so do all after it. 0: none. */
    void (*refuse)(size_t n, int code, bool ever);
    /* Whether that call has come; the name of its function. */
    const char *(*failed)(void);
    /* Work submitted to the stream from now on is not done, until it is let go. */
    void (*hold)(void *stream);
    void (*let_go)(void *stream);
    /* Capture a graph on the stream, in the strictest mode, on this thread. */
    void (*capture)(void *stream, bool on);
    /* A stream in device 0's context, or one in a context of nobody's. */
    void *(*stream)(bool foreign);
    void (*drop_stream)(void *stream);
    /* Pop a context that was left on the thread. */
    void (*unwind)(void);
} standin;

/* The one exported name that is not the driver's: gives a `const standin *`. */
#define STANDIN_SYMBOL "onuma_standin"

#endif
