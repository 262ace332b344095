/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers' libraries come from the system's folder alone; texts and variables are UTF-8. */
#include "../unit/support.h"

#include "os/private.h"

#include <string.h>
#include <wchar.h>
#include <windows.h>

static void paths_are_refused(void **state) {
    (void)state;
    const char *names[] = {"C:\\windows\\system32\\version.dll",
                           ".\\version.dll",
                           "..\\version.dll",
                           "a/version.dll",
                           "c:version.dll",
                           "\\\\host\\x.dll",
                           "version.dll:stream",
                           "",
                           NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char why[128] = "";
        assert_null(onuma__os_library_open(names[i], why, sizeof why));
        assert_non_null(strstr(why, "bare file name"));
    }
}

static void a_system_library_gives_symbols(void **state) {
    (void)state;
    char why[256] = "x";
    void *library = onuma__os_library_open("version.dll", why, sizeof why);
    if (!library) fail_msg("%s", why);
    assert_non_null(onuma__os_library_symbol(library, "GetFileVersionInfoW"));
    assert_null(onuma__os_library_symbol(library, "onuma_no_such_symbol"));
    assert_null(onuma__os_library_symbol(NULL, "GetFileVersionInfoW"));
    assert_null(onuma__os_library_of_process("GetFileVersionInfoW"));
}

static void write_file(const wchar_t *path, const void *bytes, DWORD size) {
    HANDLE file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
    DWORD written = 0;
    assert_ptr_not_equal(file, INVALID_HANDLE_VALUE);
    assert_true(WriteFile(file, bytes, size, &written, NULL));
    CloseHandle(file);
}

/* In the working folder, beside the program and in a folder on PATH: none of them is looked at. */
static void other_folders_are_not_searched(void **state) {
    (void)state;
    wchar_t folder[MAX_PATH], here[MAX_PATH], system[MAX_PATH], good[MAX_PATH + 16], path[MAX_PATH + 32];
    assert_true(GetTempPathW(MAX_PATH, folder) != 0);
    assert_true(GetCurrentDirectoryW(MAX_PATH, here) != 0);
    assert_true(GetSystemDirectoryW(system, MAX_PATH) != 0);
    wcscpy(good, system);
    wcscat(good, L"\\version.dll");
    wcscpy(path, folder);
    wcscat(path, L"onuma_planted.dll");
    assert_true(CopyFileW(good, path, FALSE));
    assert_true(SetCurrentDirectoryW(folder));
    assert_true(SetEnvironmentVariableW(L"PATH", folder));
    HMODULE loadable = LoadLibraryW(L"onuma_planted.dll"); /* what a plain LoadLibrary would take */
    assert_non_null(loadable);
    char why[256] = "x";
    assert_null(onuma__os_library_open("onuma_planted.dll", why, sizeof why));
    assert_string_equal(why, "");
    FreeLibrary(loadable);
    SetCurrentDirectoryW(here);
    DeleteFileW(path);
}

static void absence_is_quiet_and_damage_is_told(void **state) {
    (void)state;
    char why[256] = "something";
    onuma__fail(ONUMA_OK, "untouched");
    assert_null(onuma__os_library_open("opennuma-no-such-driver.dll", why, sizeof why));
    assert_string_equal(why, "");
    assert_string_equal(onuma_last_error(), "untouched");

    wchar_t path[MAX_PATH + 32];
    assert_true(GetSystemDirectoryW(path, MAX_PATH) != 0);
    wcscat(path, L"\\onuma_test_broken.dll");
    write_file(path, "This is no library.\n", 20);
    assert_null(onuma__os_library_open("onuma_test_broken.dll", why, sizeof why));
    assert_non_null(strstr(why, "onuma_test_broken.dll: "));
    char cut[8] = "";
    assert_null(onuma__os_library_open("onuma_test_broken.dll", cut, sizeof cut));
    assert_int_equal(strlen(cut), sizeof cut - 1);
    DeleteFileW(path);
}

static void variables_are_utf8(void **state) {
    (void)state;
    assert_null(onuma__os_getenv("ONUMA_TEST_NOT_SET"));
    SetEnvironmentVariableW(L"ONUMA_TEST_SET", L"gr\u00fc\u00df \u6f22\u5b57 \U0001f9ee");
    const char *value = onuma__os_getenv("ONUMA_TEST_SET");
    assert_string_equal(value, "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\xa7\xae");
    assert_ptr_equal(onuma__os_getenv("ONUMA_TEST_SET"), value);
    SetEnvironmentVariableW(L"ONUMA_TEST_SET", L"other");
    assert_string_equal(onuma__os_getenv("ONUMA_TEST_SET"), "other");
    assert_true(strncmp(value, "gr", 2) == 0); /* whoever got it may keep it */
    static wchar_t large[30000];
    wmemset(large, L'x', sizeof large / sizeof *large - 1);
    SetEnvironmentVariableW(L"ONUMA_TEST_SET", large);
    assert_int_equal(strlen(onuma__os_getenv("ONUMA_TEST_SET")), sizeof large / sizeof *large - 1);
    SetEnvironmentVariableW(L"ONUMA_TEST_SET", NULL);
    assert_null(onuma__os_getenv("ONUMA_TEST_SET"));
    assert_null(onuma__os_getenv("\xff"));
}

static void errors_and_addresses_have_names(void **state) {
    (void)state;
    const onuma__os_error known = onuma__os_error_text(ERROR_ACCESS_DENIED);
    assert_true(strlen(known.text) > 5);
    assert_null(strchr(known.text, '\n'));
    assert_string_equal(onuma__os_error_text(0x3fffffff).text, "error 1073741823");
    char text[160];
    void (*code)(void) = (void (*)(void))onuma__os_yield;
    void *address;
    memcpy(&address, &code, sizeof address);
    onuma__os_describe_code(address, text, sizeof text);
    assert_non_null(strstr(text, "test_windows_library.exe+0x"));
    onuma__os_describe_code((void *)(uintptr_t)16, text, sizeof text);
    assert_true(strlen(text) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_refused),
        cmocka_unit_test(a_system_library_gives_symbols),
        cmocka_unit_test(other_folders_are_not_searched),
        cmocka_unit_test(absence_is_quiet_and_damage_is_told),
        cmocka_unit_test(variables_are_utf8),
        cmocka_unit_test(errors_and_addresses_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
