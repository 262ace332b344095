/* SPDX-License-Identifier: Apache-2.0 */
#include "character.h"

#include <stdbool.h>
#include <stdint.h>

size_t cli_character_length(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    size_t length;
    uint32_t code, least;
    if (c[0] < 0x80) return 1;
    if ((c[0] & 0xE0) == 0xC0) {
        length = 2, code = c[0] & 0x1Fu, least = 0x80;
    } else if ((c[0] & 0xF0) == 0xE0) {
        length = 3, code = c[0] & 0x0Fu, least = 0x800;
    } else if ((c[0] & 0xF8) == 0xF0) {
        length = 4, code = c[0] & 0x07u, least = 0x10000;
    } else {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xC0) != 0x80) return 0; /* the terminating zero too */
        code = code << 6 | (c[i] & 0x3Fu);
    }
    bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < least || surrogate || code > 0x10FFFF ? 0 : length;
}

void cli_make_printable(char *text) {
    for (char *c = text; *c;) {
        const unsigned char *bytes = (const unsigned char *)c;
        size_t length = cli_character_length(c);
        bool control = bytes[0] < ' ' || bytes[0] == 0x7f;
        bool late_control = bytes[0] == 0xC2 && bytes[1] < 0xA0; /* U+0080 to U+009F */
        if (length == 0 || late_control) *c = '?';
        if (control) *c = ' ';
        c += length == 0 || late_control ? 1 : length;
    }
}
