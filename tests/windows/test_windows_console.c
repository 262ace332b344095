/* SPDX-License-Identifier: Apache-2.0 */
/* The command tells its console that it writes UTF-8, and gives the console its own code page back. Needs a console: see
 * on_terminal.py. */
#include "../unit/support.h"

#include <stdbool.h>
#include <windows.h>

#define OF_THE_SHELL 437u

static bool console_becomes(UINT code_page) {
    for (int i = 0; i < 600; i++) {
        if (GetConsoleOutputCP() == code_page) return true;
        Sleep(50);
    }
    return false;
}

static void console_is_utf8_while_the_command_runs(void **state) {
    (void)state;
    if (!SetConsoleOutputCP(OF_THE_SHELL))
        fail_msg("SetConsoleOutputCP: error %lu, now %u", GetLastError(), GetConsoleOutputCP());

    /* The command waits for its trace on standard input, and so can be looked at. */
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    HANDLE read_end, write_end;
    assert_true(CreatePipe(&read_end, &write_end, &inherited, 0));
    assert_true(SetHandleInformation(write_end, HANDLE_FLAG_INHERIT, 0));
    HANDLE nowhere = CreateFileW(L"NUL", GENERIC_WRITE, 0, &inherited, OPEN_EXISTING, 0, NULL);
    assert_ptr_not_equal(nowhere, INVALID_HANDLE_VALUE);
    STARTUPINFOW start = {.cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES};
    start.hStdInput = read_end, start.hStdOutput = nowhere, start.hStdError = nowhere;
    PROCESS_INFORMATION command;
    wchar_t line[] = L"opennuma.exe replay -";
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &command))
        fail_msg("opennuma.exe: error %lu", GetLastError());
    CloseHandle(read_end);

    const bool was_utf8 = console_becomes(CP_UTF8);
    CloseHandle(write_end);
    assert_int_equal(WaitForSingleObject(command.hProcess, 60000), WAIT_OBJECT_0);
    assert_true(was_utf8);
    assert_int_equal(GetConsoleOutputCP(), OF_THE_SHELL);
    CloseHandle(command.hThread);
    CloseHandle(command.hProcess);
    CloseHandle(nowhere);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(console_is_utf8_while_the_command_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
