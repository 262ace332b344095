/* SPDX-License-Identifier: Apache-2.0 */
/* Which call fails next, and what the library did wrong. */
#include "fault.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    onuma__os_lock lock; /* guards all of this */
    bool armed;
    fault_plan plan;
    uint64_t fired, fired_last, calls[FAULT_SITES];
    bool violated;
    char violation[512];
} state;

const char *fault_site_name(fault_site site) {
    static const char *const names[] = {
#define X(name) [FAULT_##name] = #name,
        FAULT_DRIVER_SITES(X) FAULT_SYSTEM_SITES(X)
#undef X
            [FAULT_driver] = "driver",
    };
    return names[site];
}

void fault_arm(const fault_plan *plan) {
    onuma__os_lock_acquire(&state.lock);
    state.armed = plan != NULL;
    if (plan != NULL) state.plan = *plan;
    state.fired_last = state.fired;
    state.fired = 0;
    for (size_t i = 0; i < FAULT_SITES; i++)
        state.calls[i] = 0;
    onuma__os_lock_release(&state.lock);
}

bool fault_for_good(void) {
    onuma__os_lock_acquire(&state.lock);
    const bool for_good = state.armed && state.plan.times == UINT64_MAX && state.fired != 0;
    onuma__os_lock_release(&state.lock);
    return for_good;
}

uint64_t fault_fired(void) {
    onuma__os_lock_acquire(&state.lock);
    const uint64_t fired = state.fired;
    onuma__os_lock_release(&state.lock);
    return fired;
}

uint64_t fault_fired_last(void) {
    onuma__os_lock_acquire(&state.lock);
    const uint64_t fired = state.fired_last;
    onuma__os_lock_release(&state.lock);
    return fired;
}

uint64_t fault_calls(fault_site site) {
    onuma__os_lock_acquire(&state.lock);
    const uint64_t calls = state.calls[site];
    onuma__os_lock_release(&state.lock);
    return calls;
}

/* Under the lock. */
static bool hits(fault_site site) {
    const uint64_t at = ++state.calls[site];
    return state.armed && state.plan.site == site && at >= state.plan.nth && at - state.plan.nth < state.plan.times;
}

bool fault_due(fault_site site, fault_plan *how) {
    onuma__os_lock_acquire(&state.lock);
    bool due = hits(site);
    if (site < FAULT_driver && hits(FAULT_driver)) due = true;
    if (due) {
        state.fired++;
        *how = state.plan;
    }
    onuma__os_lock_release(&state.lock);
    return due;
}

void fault_violate(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    onuma__os_lock_acquire(&state.lock);
    if (!state.violated) vsnprintf(state.violation, sizeof state.violation, format, arguments);
    state.violated = true;
    onuma__os_lock_release(&state.lock);
    va_end(arguments);
}

const char *fault_violation(void) {
    onuma__os_lock_acquire(&state.lock);
    const bool violated = state.violated;
    state.violated = false;
    onuma__os_lock_release(&state.lock);
    return violated ? state.violation : NULL;
}

fault_books fault_books_now(void) {
    fault_books books = {0};
    fault_driver_books(&books);
    fault_os_books(&books);
    return books;
}
