/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with several mappings: a section of the page file without a name, so nobody else can open it. */
#include "os/windows_private.h"

static onuma_result fail_last(const char *what, size_t size) {
    const DWORD code = GetLastError();
    return onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY, "%s %zu bytes: %s; free memory or enlarge the page file", what, size,
                       onuma__os_error_text(code).text);
}

onuma_result onuma__os_shared_create(size_t size, onuma__os_shared *out) {
    const size_t granule = onuma__os_abilities_get()->reserve_granule;
    if (size == 0 || size % granule != 0)
        return onuma__fail(ONUMA_ERROR_INTERNAL, "sharing %zu bytes: not whole granules of %zu bytes", size, granule);
    HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, (DWORD)((uint64_t)size >> 32),
                                        (DWORD)(size & 0xffffffffu), NULL);
    if (!section) return fail_last("sharing", size);
    *out = (onuma__os_shared){.handle = (intptr_t)section, .size = size};
    return ONUMA_OK;
}

void *onuma__os_shared_map(const onuma__os_shared *shared, size_t offset, size_t size) {
    if (!onuma__os_check_window(shared, offset, size)) return NULL;
    void *p = MapViewOfFile((HANDLE)shared->handle, FILE_MAP_READ | FILE_MAP_WRITE, (DWORD)((uint64_t)offset >> 32),
                            (DWORD)(offset & 0xffffffffu), size);
    if (!p) fail_last("mapping shared", size);
    return p;
}

void onuma__os_shared_unmap(void *p, size_t size) {
    if (onuma__os_check_pages("unmapping", p, size) != ONUMA_OK) return;
    if (!UnmapViewOfFile(p))
        onuma__fail(ONUMA_ERROR_INTERNAL, "unmapping %zu bytes at %p: %s", size, p,
                    onuma__os_error_text(GetLastError()).text);
}

void onuma__os_shared_close(onuma__os_shared *shared) {
    if (shared->size == 0) return;
    CloseHandle((HANDLE)shared->handle);
    *shared = (onuma__os_shared){0};
}
