/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text on Windows. The command is UTF-8 inside, as everywhere; Windows' own functions are called in their wide form,
 * since the narrow one takes the code page of the machine, in which most names cannot be written.
 */
#ifndef CLI_WINDOWS_TEXT_H
#define CLI_WINDOWS_TEXT_H

#include <stdbool.h>
#include <wchar.h>

/* Never NULL; freed by the caller. What is no character becomes U+FFFD. */
wchar_t *cli_utf16(const char *utf8);
char *cli_utf8(const wchar_t *utf16);

/* Replace main's arguments by those that the process was really given. They live to its end. */
bool cli_arguments_in_utf8(int *argc, char ***argv);

#endif
