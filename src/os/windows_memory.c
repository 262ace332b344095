/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory, which on Windows is reserved and committed apart by nature, and how much memory there is. */
#include "os/windows_private.h"

#include "base/checked.h"

static onuma_result fail_last(const char *what, const void *p, size_t size) {
    DWORD code = GetLastError();
    bool memory = code == ERROR_NOT_ENOUGH_MEMORY || code == ERROR_COMMITMENT_LIMIT || code == ERROR_OUTOFMEMORY;
    return onuma__fail(memory ? ONUMA_ERROR_OUT_OF_MEMORY : ONUMA_ERROR_INTERNAL, "%s %zu bytes at %p: %s%s", what,
                       size, p, onuma__os_error_text(code).text,
                       memory ? "; free memory or enlarge the page file" : "");
}

/*
 * A reservation can be given back only whole, so its ends cannot be trimmed. Instead a place that is large enough is
 * found, given up and taken again at the aligned address within; another thread may take it first, hence the turns.
 */
void *onuma__os_place(size_t size, size_t align, bool committed) {
    enum { TURNS = 64 };
    size_t granule = onuma__os_abilities_get()->reserve_granule;
    size_t span;
    if (!onuma__add(size, align - granule, &span)) {
        onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "%zu bytes aligned to %zu are more than all addresses", size, align);
        return NULL;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        void *place = align == granule ? NULL : VirtualAlloc(NULL, span, MEM_RESERVE, PAGE_NOACCESS);
        if (align != granule) {
            if (!place) break;
            VirtualFree(place, 0, MEM_RELEASE);
            place = (char *)place + (size_t)(-(uintptr_t)place & (align - 1));
        }
        void *p = VirtualAlloc(place, size, committed ? MEM_RESERVE | MEM_COMMIT : MEM_RESERVE,
                               committed ? PAGE_READWRITE : PAGE_NOACCESS);
        if (p) return p;
        if (GetLastError() != ERROR_INVALID_ADDRESS) break;
    }
    fail_last("mapping", NULL, span);
    return NULL;
}

onuma_result onuma__os_commit(void *p, size_t size) {
    onuma_result r = onuma__os_check_pages("committing", p, size);
    if (r != ONUMA_OK) return r;
    if (!VirtualAlloc(p, size, MEM_COMMIT, PAGE_READWRITE)) return fail_last("committing", p, size);
    return ONUMA_OK;
}

onuma_result onuma__os_decommit(void *p, size_t size) {
    onuma_result r = onuma__os_check_pages("decommitting", p, size);
    if (r != ONUMA_OK) return r;
    if (!VirtualFree(p, size, MEM_DECOMMIT)) return fail_last("decommitting", p, size);
    return ONUMA_OK;
}

onuma_result onuma__os_discard(void *p, size_t size) {
    onuma_result r = onuma__os_check_pages("discarding", p, size);
    if (r != ONUMA_OK) return r;
    if (!VirtualAlloc(p, size, MEM_RESET, PAGE_READWRITE)) return fail_last("discarding", p, size);
    return ONUMA_OK;
}

void onuma__os_release(void *p, size_t size) {
    size_t whole = 0;
    if (!onuma__align_up(size, onuma__os_abilities_get()->page_size, &whole)) whole = 0;
    if (onuma__os_check_pages("releasing", p, whole) != ONUMA_OK) return;
    if (!VirtualFree(p, 0, MEM_RELEASE)) fail_last("releasing", p, whole);
}

onuma_result onuma__os_protect(void *p, size_t size, onuma__os_protection protection) {
    static const DWORD flags[] = {[ONUMA__PROTECT_NONE] = PAGE_NOACCESS,
                                  [ONUMA__PROTECT_READ] = PAGE_READONLY,
                                  [ONUMA__PROTECT_READ_WRITE] = PAGE_READWRITE};
    onuma_result r = onuma__os_check_pages("protecting", p, size);
    if (r != ONUMA_OK) return r;
    if ((unsigned)protection >= sizeof flags / sizeof *flags)
        return onuma__fail(ONUMA_ERROR_INTERNAL, "protecting %p: no such protection as %d", p, (int)protection);
    DWORD before;
    if (!VirtualProtect(p, size, flags[protection], &before)) return fail_last("protecting", p, size);
    return ONUMA_OK;
}

/*
 * What VirtualQuery says is free is not always: drivers that Wine hands calls on to have memory that it does not know.
 * There the answer comes from a load whose fault is caught. IsBadReadPtr has a bad name for what it does to guard pages of
 * stacks, which are known to VirtualQuery and so never reach it.
 */
bool onuma__os_can_read(const void *p) {
    MEMORY_BASIC_INFORMATION info;
    if (p == NULL || (uintptr_t)p % sizeof(void *) != 0 || VirtualQuery(p, &info, sizeof info) == 0) return false;
    if (info.State != MEM_FREE) return info.State == MEM_COMMIT && (info.Protect & (PAGE_NOACCESS | PAGE_GUARD)) == 0;
    return !IsBadReadPtr(p, sizeof(void *));
}

void onuma__os_exclude_from_fork(void *p, size_t size) {
    /* No fork here; the arguments are checked all the same, so that a defect shows on every system. */
    onuma__os_check_pages("excluding from fork", p, size);
}

void onuma__os_memory(uint64_t *total, uint64_t *available) {
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    if (!GlobalMemoryStatusEx(&status)) {
        *total = *available = 0;
        return;
    }
    *total = status.ullTotalPhys;
    /* What may still be committed can be less than what is free. */
    *available = status.ullAvailPhys < status.ullAvailPageFile ? status.ullAvailPhys : status.ullAvailPageFile;
}
