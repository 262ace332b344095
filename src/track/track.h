/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracking beside the engine's own counters: with track:full a table of where
 * and when each live block was allocated; and the report of what leaked.
 */
#ifndef ONUMA_TRACK_TRACK_H
#define ONUMA_TRACK_TRACK_H

#include "base/log.h"
#include "os/os.h"

/* Where and when blocks were allocated. One per pool, only with track:full. Any thread may call. */
typedef struct onuma__sites onuma__sites;

typedef struct onuma__site {
    uint64_t time; /* onuma__os_now at allocation */
    void *caller;  /* return address into the program */
    uint64_t thread;
} onuma__site;

onuma__sites *onuma__sites_create(void);        /* NULL and a detail when memory is out */
void onuma__sites_destroy(onuma__sites *sites); /* NULL ok */
/* Memory out is not an error: the block is then simply not known, and the report says how many are not. */
void onuma__sites_add(onuma__sites *sites, const void *block, const onuma__site *site);
void onuma__sites_remove(onuma__sites *sites, const void *block);
bool onuma__sites_find(onuma__sites *sites, const void *block, onuma__site *out);
uint64_t onuma__sites_unknown(onuma__sites *sites); /* how many had no room */

/* Collects leaked blocks and writes the report. */
#define ONUMA__LEAKS_SHOWN 10
typedef struct onuma__leaks {
    const char *pool; /* its name */
    const onuma__log *log;
    onuma__sites *sites; /* NULL: no age, no call site */
    const char *hint;    /* ends the summary; NULL: none */
    uint64_t count, bytes;
    struct {
        const void *block;
        size_t size;
    } first[ONUMA__LEAKS_SHOWN];
} onuma__leaks;

void onuma__leaks_add(onuma__leaks *leaks, const void *block, size_t requested);
/* Nothing if nothing leaked; else a summary line and the first blocks, each line "leak: ..." at level warn. */
void onuma__leaks_report(const onuma__leaks *leaks);

#endif
