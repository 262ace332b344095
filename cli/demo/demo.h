/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: six checks that CPU and device really share memory, and two tables
 * that hold the library against the driver's default way. session.c runs them
 * in order, check_*.c, transfer.c and workload.c are the parts, report.c prints.
 */
#ifndef DEMO_DEMO_H
#define DEMO_DEMO_H

#include "demo/runner.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* For what drivers finish on threads of their own a moment after the work has ended. */
#define DEMO_PATIENCE_NS UINT64_C(5000000000)
#define DEMO_PAUSE_NS UINT64_C(1000000)

typedef struct demo_check {
    const char *name;
    bool ok;
    char detail[512]; /* what was done, or why it failed */
} demo_check;

/* Microseconds; default is what the driver's own buffers take. */
typedef struct demo_transfer {
    size_t bytes;
    double to_device_default, to_device_ours, to_host_default, to_host_ours;
    bool ok; /* every value that was handed over arrived */
} demo_transfer;

typedef struct demo_workload {
    const char *name;
    double default_us, ours_us;
    uint64_t default_bytes, ours_bytes; /* memory for its tensors, at most at once */
    double max_error, allowed_error;    /* against the reference in plain C, of both ways */
    size_t images, right, expected;     /* of a network: answers; expected are those known. 0 images: no network */
    bool answered;                      /* `right` is known */
    bool ok;
} demo_workload;

enum { DEMO_CHECKS = 6, DEMO_TRANSFERS_MAX = 12, DEMO_WORKLOADS_MAX = 8 };

/* How much work is in the checks and tables. */
typedef struct demo_load {
    size_t largest;         /* block, in bytes */
    size_t alias_touches;   /* bytes of a block that change sides in one turn */
    size_t vector;          /* numbers that vector_add gets, at most */
    size_t words;           /* of each block that is freed and reused in the queue's order */
    size_t numbers, rounds; /* of shared_access */
    size_t images;          /* of the test images, that the networks see */
    size_t operation;       /* numbers that single operations get */
    uint32_t side;          /* of matrices */
    size_t repeats;         /* of each job, at least */
} demo_load;

/* For devices, for simulators (minutes become one), and for tests that run the demo many times. */
extern const demo_load demo_load_full, demo_load_simulator, demo_load_test;

typedef struct demo {
    /* The request. */
    const char *device_id; /* NULL: the best */
    const demo_fault *fault;
    const demo_load *load; /* NULL: as the device is */
    bool checks_only;      /* leave the tables out */
    bool print_log;        /* the library's log lines go to standard error */
    /* While it runs. */
    onuma_runtime *runtime;
    onuma_device *device;
    onuma_device_info info;
    onuma_pool *pool;        /* of memory that CPU and device share */
    runner run;              /* its error tells why something failed */
    const char *default_way; /* what the tables compare with */
    size_t largest;          /* block that the device is asked for */
    size_t leaks;            /* that the runtime reported at its end */
    /* What came of it. */
    demo_check checks[DEMO_CHECKS];
    demo_transfer transfers[DEMO_TRANSFERS_MAX];
    demo_workload workloads[DEMO_WORKLOADS_MAX];
    size_t check_count, transfer_count, workload_count;
    char table_error[512]; /* why a table ended early; "" if it did not */
} demo;

/* Run everything. Fails only if there is no such device; whatever else goes wrong is in the results. */
onuma_result demo_run(demo *d);

/* Each check: true, and `detail` says what held; false, and run.error says what did not. */
typedef bool demo_check_function(demo *d, char *detail, size_t detail_size);
demo_check_function demo_check_initialize, demo_check_allocate, demo_check_operate, demo_check_alias,
    demo_check_shared_access, demo_check_release;

/* Fill the tables. False: run.error says why no further rows could be had. */
bool demo_measure_transfer(demo *d);
bool demo_measure_workload(demo *d);

/* Allocate from the shared pool. */
bool demo_alloc(demo *d, size_t size, void **out);

/*
 * Trim the pool to nothing. The driver says a moment later than the work ends that it has ended, and until then
 * freed blocks count as pending: waits for that, a few seconds at most.
 */
bool demo_settle(demo *d, onuma_pool *pool);

/* The middle of n times, which are sorted. */
double demo_median_us(uint64_t *ns, size_t n);

bool demo_all_held(const demo *d);
void demo_print_json(const demo *d);
void demo_print_text(const demo *d);

#endif
