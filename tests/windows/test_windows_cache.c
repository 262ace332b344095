/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's cache folder on Windows: below %LOCALAPPDATA%, whatever letters are in its name; the user's alone, whatever the
 * folder above it allows; and nothing is read that somebody else could have written.
 */
#include "../unit/support.h"

#include "os/os.h"

#include <windows.h>

#include <aclapi.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define NAME "sharing-test"

static wchar_t home[MAX_PATH], folder[MAX_PATH], file[MAX_PATH];

static int fresh_home(void **state) {
    (void)state;
    static unsigned count;
    wchar_t temporary[MAX_PATH];
    if (!GetTempPathW(MAX_PATH - 60, temporary)) return -1;
    swprintf(home, MAX_PATH, L"%lsgr\u00fc\u00df \u6f22\u5b57 \U0001f9ee %lu-%u", temporary, GetCurrentProcessId(),
             count++);
    swprintf(folder, MAX_PATH, L"%ls\\opennuma", home);
    swprintf(file, MAX_PATH, L"%ls\\" NAME, folder);
    SetEnvironmentVariableW(L"LOCALAPPDATA", home);
    return CreateDirectoryW(home, NULL) ? 0 : -1;
}

static int remove_home(void **state) {
    (void)state;
    WIN32_FIND_DATAW found;
    wchar_t pattern[MAX_PATH], path[MAX_PATH];
    swprintf(pattern, MAX_PATH, L"%ls\\*", folder);
    HANDLE search = FindFirstFileW(pattern, &found);
    while (search != INVALID_HANDLE_VALUE) {
        swprintf(path, MAX_PATH, L"%ls\\%ls", folder, found.cFileName);
        if (!DeleteFileW(path)) RemoveDirectoryW(path);
        if (!FindNextFileW(search, &found)) break;
    }
    if (search != INVALID_HANDLE_VALUE) FindClose(search);
    RemoveDirectoryW(folder);
    DeleteFileW(folder);
    swprintf(path, MAX_PATH, L"%ls\\second", home);
    DeleteFileW(path);
    return RemoveDirectoryW(home) ? 0 : -1;
}

static onuma_result read_it(char bytes[64]) {
    size_t length = 0;
    memset(bytes, 0, 64);
    return onuma__os_cache_read(NAME, bytes, 64, &length);
}

static void write_it(const char *text) {
    if (onuma__os_cache_write(NAME, text, strlen(text)) != ONUMA_OK) fail_msg("%s", onuma_last_error());
}

static void check_read(const char *expected) {
    char bytes[64];
    if (read_it(bytes) != ONUMA_OK) fail_msg("%s", onuma_last_error());
    assert_string_equal(bytes, expected);
}

static PSID everyone(void) {
    static unsigned char sid[SECURITY_MAX_SID_SIZE];
    DWORD size = sizeof sid;
    assert_true(CreateWellKnownSid(WinWorldSid, NULL, sid, &size));
    return sid;
}

/* The rights that everybody has to this path, as its list of rights says. */
static ACCESS_MASK rights_of_everyone(wchar_t *path) {
    ACL *list = NULL;
    PSECURITY_DESCRIPTOR descriptor = NULL;
    ACCESS_MASK mask = 0;
    assert_int_equal(
        GetNamedSecurityInfoW(path, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL, NULL, &list, NULL, &descriptor),
        ERROR_SUCCESS);
    assert_non_null(list);
    for (DWORD i = 0; i < list->AceCount; i++) {
        ACCESS_ALLOWED_ACE *entry;
        assert_true(GetAce(list, i, (void **)&entry));
        if (entry->Header.AceType == ACCESS_ALLOWED_ACE_TYPE && EqualSid(&entry->SidStart, everyone()))
            mask |= entry->Mask;
    }
    LocalFree(descriptor);
    return mask;
}

static void open_to_everyone(wchar_t *path) {
    EXPLICIT_ACCESSW all = {.grfAccessPermissions = FILE_ALL_ACCESS, .grfAccessMode = SET_ACCESS};
    all.Trustee.TrusteeForm = TRUSTEE_IS_SID;
    all.Trustee.ptstrName = everyone();
    ACL *list = NULL;
    assert_int_equal(SetEntriesInAclW(1, &all, NULL, &list), ERROR_SUCCESS);
    assert_int_equal(SetNamedSecurityInfoW(path, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL, NULL, list, NULL),
                     ERROR_SUCCESS);
    LocalFree(list);
    assert_true((rights_of_everyone(path) & FILE_WRITE_DATA) != 0);
}

static void files_are_the_users_alone_and_replaced_whole(void **state) {
    (void)state;
    char bytes[64];
    size_t length = 0;
    assert_int_equal(read_it(bytes), ONUMA_ERROR_NOT_FOUND);
    open_to_everyone(home); /* what lies in it is closed all the same */
    write_it("first");
    write_it("second one");
    check_read("second one");
    assert_true(GetFileAttributesW(file) != INVALID_FILE_ATTRIBUTES);
    assert_int_equal(rights_of_everyone(folder), 0);
    assert_int_equal(rights_of_everyone(file), 0);
    assert_int_equal(onuma__os_cache_read(NAME, bytes, 5, &length), ONUMA_ERROR_INVALID_ARGUMENT);
    WIN32_FIND_DATAW found;
    wchar_t hidden[MAX_PATH];
    swprintf(hidden, MAX_PATH, L"%ls\\.*", folder);
    HANDLE search = FindFirstFileW(hidden, &found);
    for (bool more = search != INVALID_HANDLE_VALUE; more; more = FindNextFileW(search, &found))
        assert_true(wcscmp(found.cFileName, L".") == 0 ||
                    wcscmp(found.cFileName, L"..") == 0); /* nothing half written */
    if (search != INVALID_HANDLE_VALUE) FindClose(search);
}

static void put_writable(void) {
    write_it("planted");
    open_to_everyone(file);
}
static void put_open_folder(void) {
    write_it("planted");
    open_to_everyone(folder);
}
static void put_hard_link(void) {
    wchar_t second[MAX_PATH];
    write_it("planted");
    swprintf(second, MAX_PATH, L"%ls\\second", home);
    assert_true(CreateHardLinkW(second, file, NULL));
}
static void put_folder(void) {
    write_it("planted");
    assert_true(DeleteFileW(file));
    assert_true(CreateDirectoryW(file, NULL));
}

static void what_others_could_have_written_is_refused(void **state) {
    void (*const plants[])(void) = {put_writable, put_open_folder, put_hard_link, put_folder};
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        char bytes[64];
        plants[i]();
        const onuma_result r = read_it(bytes);
        if (r == ONUMA_OK) fail_msg("plant %zu was read: %s", i, bytes);
        assert_true(strlen(onuma_last_error()) > 0);
        assert_int_equal(remove_home(state), 0);
        assert_int_equal(fresh_home(state), 0);
    }
}

/* A file that others could have written is not believed, but is replaced by one of ours. */
static void such_a_file_is_replaced(void **state) {
    (void)state;
    put_writable();
    write_it("ours again");
    check_read("ours again");
    assert_int_equal(rights_of_everyone(file), 0);
}

static void what_cannot_be_written_is_an_error(void **state) {
    (void)state;
    char bytes[64];
    HANDLE as_file = CreateFileW(folder, GENERIC_WRITE, 0, NULL, CREATE_NEW, 0, NULL);
    assert_ptr_not_equal(as_file, INVALID_HANDLE_VALUE);
    CloseHandle(as_file);
    assert_int_not_equal(onuma__os_cache_write(NAME, "x", 1), ONUMA_OK);
    assert_int_not_equal(read_it(bytes), ONUMA_OK);
    const wchar_t *const nowhere[] = {NULL, L"", L"relative", L"\\\\host\\share", L"C:\\nonexistent\\a\\b"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        SetEnvironmentVariableW(L"LOCALAPPDATA", nowhere[i]);
        assert_int_not_equal(onuma__os_cache_write(NAME, "x", 1), ONUMA_OK);
        assert_int_not_equal(read_it(bytes), ONUMA_OK);
        assert_true(strlen(onuma_last_error()) > 0);
    }
}

static DWORD WINAPI write_often(void *argument) {
    char text[40];
    memset(text, *(char *)argument, sizeof text);
    for (int i = 0; i < 50; i++) {
        /* A reader that has the old file open may hold up its replacing; what is there stays whole. */
        const onuma_result r = onuma__os_cache_write(NAME, text, sizeof text);
        if (r != ONUMA_OK && r != ONUMA_ERROR_IO) return 1;
    }
    return 0;
}

static void readers_see_one_writer_or_the_other(void **state) {
    (void)state;
    static char names[] = "ab";
    HANDLE writers[2];
    write_it("");
    for (size_t i = 0; i < 2; i++)
        assert_non_null(writers[i] = CreateThread(NULL, 0, write_often, &names[i], 0, NULL));
    unsigned seen = 0;
    for (int i = 0; i < 200; i++) {
        char bytes[64];
        if (read_it(bytes) != ONUMA_OK) continue;
        const size_t length = strlen(bytes);
        assert_true(length == 0 || length == 40);
        assert_int_equal(strspn(bytes, length && bytes[0] == 'a' ? "a" : "b"), length);
        seen++;
    }
    assert_true(seen > 0);
    for (size_t i = 0; i < 2; i++) {
        DWORD code = 1;
        assert_int_equal(WaitForSingleObject(writers[i], 60000), WAIT_OBJECT_0);
        assert_true(GetExitCodeThread(writers[i], &code));
        assert_int_equal(code, 0);
        CloseHandle(writers[i]);
    }
    char last[64];
    assert_int_equal(read_it(last), ONUMA_OK);
    assert_int_equal(strlen(last), 40);
}

#define IN_HOME(test) cmocka_unit_test_setup_teardown(test, fresh_home, remove_home)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_HOME(files_are_the_users_alone_and_replaced_whole),
        IN_HOME(what_others_could_have_written_is_refused),
        IN_HOME(such_a_file_is_replaced),
        IN_HOME(what_cannot_be_written_is_an_error),
        IN_HOME(readers_see_one_writer_or_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
