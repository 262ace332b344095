/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large pages. Windows gives them to users who may lock pages in memory (a right that the machine's administrator
 * grants; nobody has it at first), and to processes that have switched it on. They are committed at once, never paged out, and
 * can be given back only whole.
 */
#include "os/windows_private.h"

static bool switch_on_right(void) {
    HANDLE token;
    TOKEN_PRIVILEGES wanted = {.PrivilegeCount = 1};
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token)) return false;
    wanted.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
    /* It succeeds where the user lacks the right, too, and then says so in the error. */
    const bool on = LookupPrivilegeValueW(NULL, L"SeLockMemoryPrivilege", &wanted.Privileges[0].Luid) &&
                    AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL) && GetLastError() == ERROR_SUCCESS;
    CloseHandle(token);
    return on;
}

size_t onuma__os_find_large_pages(const char **why) {
    const size_t size = GetLargePageMinimum();
    if (size == 0) {
        *why = "the processor has none";
        return 0;
    }
    if (switch_on_right()) return size;
    *why = "the user may not lock pages in memory (Local Security Policy, User Rights Assignment)";
    return 0;
}

void *onuma__os_place_large(size_t size, size_t large) {
    (void)large; /* which is the only size that there is */
    void *p = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES, PAGE_READWRITE);
    if (p) return p;
    const DWORD code = GetLastError();
    onuma__fail(ONUMA_ERROR_OUT_OF_MEMORY,
                "mapping %zu bytes in large pages: %s; the machine's memory is in small pieces", size,
                onuma__os_error_text(code).text);
    return NULL;
}
