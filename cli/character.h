/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, as far as a program must know it that passes on texts from drivers, files and arguments. */
#ifndef CLI_CHARACTER_H
#define CLI_CHARACTER_H

#include <stddef.h>

/* Bytes of the well-formed character at `c`, 0 if there is none (RFC 3629: no overlong forms, no surrogates). */
size_t cli_character_length(const char *c);

/* Make a text fit for a terminal where it stands: control characters become blanks, what is no UTF-8 a question mark. */
void cli_make_printable(char *text);

#endif
