/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand, under the library and above the real parts: drivers (driver.c decorates the table of any
 * backend), the system and the allocator (os.c, which redirect.h puts between). One plan at a time says which call
 * fails, and how. With no plan everything is passed on.
 *
 * All of it keeps books of what the library holds, and watches how it calls: nothing destroyed twice, used after its
 * end or destroyed before what lives in it, no lock held in a driver, no driver called from a forked child. So a
 * run without any fault is a test too.
 */
#ifndef ONUMA_TESTS_FAULT_H
#define ONUMA_TESTS_FAULT_H

#include "backend/device.h"

/* X(name): where a fault can be. Those of the driver come first. */
#define FAULT_DRIVER_SITES(X)                                                                                          \
    X(open)                                                                                                            \
    X(describe)                                                                                                        \
    X(device_count)                                                                                                    \
    X(device_query)                                                                                                    \
    X(device_open)                                                                                                     \
    X(device_info)                                                                                                     \
    X(memory_free)                                                                                                     \
    X(device_adopt)                                                                                                    \
    X(device_from_queue)                                                                                               \
    X(segment_create)                                                                                                  \
    X(segment_reserve)                                                                                                 \
    X(segment_commit)                                                                                                  \
    X(segment_decommit)                                                                                                \
    X(import_host)                                                                                                     \
    X(view_create)                                                                                                     \
    X(host_map)                                                                                                        \
    X(host_unmap)                                                                                                      \
    X(queue_open)                                                                                                      \
    X(marker_record)                                                                                                   \
    X(marker_wrap)                                                                                                     \
    X(marker_poll)                                                                                                     \
    X(queue_wait_marker)
#define FAULT_SYSTEM_SITES(X)                                                                                          \
    X(memory) /* malloc, calloc, realloc */                                                                            \
    X(os_map)                                                                                                          \
    X(os_map_large)                                                                                                    \
    X(os_reserve)                                                                                                      \
    X(os_commit)                                                                                                       \
    X(os_decommit)                                                                                                     \
    X(os_protect)                                                                                                      \
    X(os_library)                                                                                                      \
    X(os_symbol)                                                                                                       \
    X(os_thread)                                                                                                       \
    X(os_barrier)                                                                                                      \
    X(os_capacity)                                                                                                     \
    X(os_can_read)                                                                                                     \
    X(os_cache) /* the user's cache folder */                                                                          \
    X(os_clock)

typedef enum fault_site {
#define X(name) FAULT_##name,
    FAULT_DRIVER_SITES(X) FAULT_driver, /* any call of the driver that can fail: counted together */
    FAULT_SYSTEM_SITES(X) FAULT_SITES
#undef X
} fault_site;

/* How. Sites that do not know a manner take it for FAIL. */
typedef enum fault_manner {
    FAULT_FAIL,      /* with the plan's result */
    FAULT_SHORT,     /* a segment smaller than asked */
    FAULT_UNALIGNED, /* a good segment at an odd address */
    FAULT_NOWHERE,   /* a segment at NULL */
    FAULT_WRAPS,     /* a segment that ends beyond all addresses */
    FAULT_OVERLAPS,  /* a segment on one that lives */
    FAULT_SURPLUS,   /* a segment larger than asked */
    FAULT_ABSURD,    /* information that cannot be true; the plan's `which` says which */
    FAULT_MORE,      /* more devices than there are */
    FAULT_NOT_YET,   /* a marker that has passed says that it has not */
    FAULT_FORWARD,   /* the clock is an hour ahead from here on; to fail is to read 0 */
    FAULT_BACKWARD,  /* it falls back by ten seconds, though no clock should */
    FAULT_MANNERS
} fault_manner;

#define FAULT_ABSURDITIES 13u
#define FAULT_BELIEVED 3u /* the first of them are possible */

typedef struct fault_plan {
    fault_site site;
    uint64_t nth;   /* the first call that fails, from 1 */
    uint64_t times; /* how many from there on; UINT64_MAX: for good */
    fault_manner manner;
    onuma_result result;
    unsigned which;
} fault_plan;

/* ---- plan.c */
const char *fault_site_name(fault_site site);
/* From now on; counts begin anew. NULL: no faults. */
void fault_arm(const fault_plan *plan);
uint64_t fault_fired(void);                       /* faults since then */
bool fault_for_good(void);                        /* what fails now never works again, so waits for it are in vain */
uint64_t fault_fired_last(void);                  /* those of the plan before: NULL was armed since */
uint64_t fault_calls(fault_site site);            /* calls since then */
bool fault_due(fault_site site, fault_plan *how); /* for the sites: whether this call fails */

/* The first thing that the library did and must not; NULL if there was none since it was asked last. */
const char *fault_violation(void);
void fault_violate(const char *format, ...) ONUMA__PRINTF(1, 2);

/* ---- driver.c, os.c: the books, of what lives now */
#define FAULT_BOOKS(X)                                                                                                 \
    X(instances)                                                                                                       \
    X(devices)                                                                                                         \
    X(segments) X(imports) X(views) X(queues) X(markers) X(mapped) X(segment_bytes) X(os_ranges) X(os_bytes) X(blocks)

typedef struct fault_books {
#define X(name) uint64_t name;
    FAULT_BOOKS(X)
#undef X
} fault_books;

void fault_driver_books(fault_books *out);
void fault_driver_forget(void); /* what was destroyed need not be recognised any more */
void fault_os_books(fault_books *out);
fault_books fault_books_now(void);

/* Which backends the next runtime finds: the host's, and OpenCL's if wanted. Once, before all else. */
void fault_start(void);

/* Locks of the library that the calling thread holds. */
unsigned fault_locks_held(void);

/* Sleep at most this long in truth, while the library's clock goes on as it wished. */
void fault_shorten_sleep(uint64_t most_ns);

#endif
