/* SPDX-License-Identifier: Apache-2.0 */
/* What tells one state of the system from another is UTF-8, whatever letters are in it. */
#include "../unit/support.h"

#include "os/os.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#define WIDE L"gr\u00fc\u00df \u6f22\u5b57 \U0001f9ee"
#define UTF8 "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\xa7\xae"

static void look_for(void *user, const char *variable) {
    if (strcmp(variable, "ONUMA_TEST_" UTF8 "=" UTF8) == 0) ++*(int *)user;
    if (strncmp(variable, "ONUMA_TEST_LARGE=", 17) == 0 && strlen(variable) == 17 + 20000) ++*(int *)user;
}

static void each_variable_is_utf8(void **state) {
    (void)state;
    static wchar_t large[20001];
    wmemset(large, L'x', 20000);
    assert_true(SetEnvironmentVariableW(L"ONUMA_TEST_" WIDE, WIDE));
    assert_true(SetEnvironmentVariableW(L"ONUMA_TEST_LARGE", large));
    int found = 0;
    onuma__os_each_variable(look_for, &found);
    assert_int_equal(found, 2);
    SetEnvironmentVariableW(L"ONUMA_TEST_" WIDE, NULL);
    SetEnvironmentVariableW(L"ONUMA_TEST_LARGE", NULL);
}

static void files_are_found_by_any_letters(void **state) {
    (void)state;
    wchar_t path[MAX_PATH], folder[MAX_PATH];
    char name[3 * MAX_PATH], first[1000], second[1000];
    assert_true(GetTempPathW(MAX_PATH - 60, folder) != 0);
    swprintf(path, MAX_PATH, L"%lsonuma " WIDE L" %lu", folder, GetCurrentProcessId());
    assert_true(WideCharToMultiByte(CP_UTF8, 0, path, -1, name, sizeof name, NULL, NULL) != 0);
    onuma__os_file_identity(name, first, sizeof first);
    assert_string_equal(first, "");
    for (int i = 0; i < 2; i++) {
        HANDLE file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
        DWORD written = 0;
        assert_ptr_not_equal(file, INVALID_HANDLE_VALUE);
        assert_true(WriteFile(file, "some bytes", i ? 10 : 5, &written, NULL));
        CloseHandle(file);
        onuma__os_file_identity(name, i ? second : first, sizeof first);
    }
    assert_non_null(strstr(first, UTF8));
    assert_non_null(strstr(first, ":5 bytes"));
    assert_string_not_equal(first, second);
    onuma__os_file_identity("\xff", first, sizeof first);
    assert_string_equal(first, "");
    DeleteFileW(path);
}

static void code_and_machine_have_an_identity(void **state) {
    (void)state;
    char text[1000];
    void (*code)(void) = (void (*)(void))onuma__os_yield;
    void *address;
    memcpy(&address, &code, sizeof address);
    onuma__os_code_identity(address, text, sizeof text);
    assert_non_null(strstr(text, "test_windows_identity.exe "));
    onuma__os_code_identity(NULL, text, sizeof text);
    assert_string_equal(text, "");
    onuma__os_machine_identity(text, sizeof text);
    assert_non_null(strstr(text, " Windows "));
    assert_non_null(strstr(text, "ntoskrnl.exe "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_variable_is_utf8),
        cmocka_unit_test(files_are_found_by_any_letters),
        cmocka_unit_test(code_and_machine_have_an_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
