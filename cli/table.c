/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

enum { MOST_COLUMNS = 16, GAP = 2 };

struct cli_table {
    size_t columns, rows, room;
    char align[MOST_COLUMNS];
    size_t width[MOST_COLUMNS];
    char **cells; /* rows * columns; the first row is the headings */
};

/* Terminal columns of a text: characters, not bytes. Wide and combining characters do not occur in drivers' names. */
static size_t text_width(const char *text) {
    size_t width = 0;
    for (const char *c = text; *c; c++)
        width += ((unsigned char)*c & 0xC0) != 0x80;
    return width;
}

static void add_row(cli_table *table, va_list texts) {
    if (table->rows == table->room) {
        table->room = table->room ? table->room * 2 : 8;
        table->cells = cli_reallocate(table->cells, table->room * table->columns * sizeof *table->cells);
    }
    for (size_t c = 0; c < table->columns; c++) {
        const char *text = va_arg(texts, const char *);
        char *cell = cli_copy_text(text ? text : "");
        for (char *at = cell; *at; at++)
            if ((unsigned char)*at < ' ' || *at == 127) *at = ' ';
        if (table->rows == 0) {
            table->align[c] = cell[0];
            memmove(cell, cell + 1, strlen(cell));
        }
        size_t width = text_width(cell);
        if (width > table->width[c]) table->width[c] = width;
        table->cells[table->rows * table->columns + c] = cell;
    }
    table->rows++;
}

cli_table *cli_table_create(size_t columns, ...) {
    cli_table *table = cli_allocate(sizeof *table);
    *table = (cli_table){.columns = columns < MOST_COLUMNS ? columns : MOST_COLUMNS};
    va_list headings;
    va_start(headings, columns);
    add_row(table, headings);
    va_end(headings);
    return table;
}

void cli_table_row(cli_table *table, ...) {
    va_list texts;
    va_start(texts, table);
    add_row(table, texts);
    va_end(texts);
}

void cli_table_print(cli_table *table, int indent) {
    for (size_t r = 0; r < table->rows; r++) {
        /* Blanks wait until something follows them, so that no line ends with any. */
        size_t blanks = (size_t)indent;
        for (size_t c = 0; c < table->columns; c++) {
            char *cell = table->cells[r * table->columns + c];
            size_t padding = table->width[c] - text_width(cell);
            bool right = table->align[c] == '>';
            if (right) blanks += padding;
            if (cell[0]) {
                printf("%*s%s", (int)blanks, "", cell);
                blanks = 0;
            }
            blanks += GAP + (right ? 0 : padding);
            free(cell);
        }
        putchar('\n');
    }
    free(table->cells);
    free(table);
}
