/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of what a pool still held when it was destroyed: one summary line
 * that is always right, then the first blocks, enough to find the mistake and
 * few enough to read.
 */
#include <inttypes.h>
#include <stdio.h>

#include "track/track.h"

void onuma__leaks_add(onuma__leaks *leaks, const void *block, size_t requested) {
    if (leaks->count < ONUMA__LEAKS_SHOWN) {
        leaks->first[leaks->count].block = block;
        leaks->first[leaks->count].size = requested;
    }
    leaks->count++;
    leaks->bytes += requested;
}

/* ", allocated 1.250 s ago by thread 3 at 0x55d0..."; "" if that is not known. */
static void describe_site(const onuma__leaks *leaks, const void *block, char *text, size_t size) {
    onuma__site site;
    text[0] = '\0';
    if (leaks->sites == NULL || !onuma__sites_find(leaks->sites, block, &site)) return;
    uint64_t age_ms = (onuma__os_now() - site.time) / 1000000;
    char code[160];
    onuma__os_describe_code(site.caller, code, sizeof code);
    (void)snprintf(text, size, ", allocated %" PRIu64 ".%03u s ago by thread %" PRIu64 " at %s", age_ms / 1000,
                   (unsigned)(age_ms % 1000), site.thread, code);
}

void onuma__leaks_report(const onuma__leaks *leaks) {
    if (leaks->count == 0 || !onuma__log_wants(leaks->log, ONUMA_LOG_WARN)) return;
    onuma__log_write(leaks->log, ONUMA_LOG_WARN,
                     "leak: pool \"%s\": %" PRIu64 " block%s, %" PRIu64 " bytes not freed%s", leaks->pool, leaks->count,
                     leaks->count == 1 ? "" : "s", leaks->bytes, leaks->hint != NULL ? leaks->hint : "");
    uint64_t shown = leaks->count < ONUMA__LEAKS_SHOWN ? leaks->count : ONUMA__LEAKS_SHOWN;
    for (uint64_t i = 0; i < shown; i++) {
        char site[256];
        describe_site(leaks, leaks->first[i].block, site, sizeof site);
        onuma__log_write(leaks->log, ONUMA_LOG_WARN, "leak: pool \"%s\": block %p of %zu bytes%s", leaks->pool,
                         leaks->first[i].block, leaks->first[i].size, site);
    }
    if (leaks->count > shown)
        onuma__log_write(leaks->log, ONUMA_LOG_WARN, "leak: pool \"%s\": and %" PRIu64 " more", leaks->pool,
                         leaks->count - shown);
    uint64_t unknown = leaks->sites == NULL ? 0 : onuma__sites_unknown(leaks->sites);
    if (unknown != 0)
        onuma__log_write(leaks->log, ONUMA_LOG_WARN,
                         "leak: pool \"%s\": %" PRIu64 " allocations could not be tracked for lack of memory",
                         leaks->pool, unknown);
}
