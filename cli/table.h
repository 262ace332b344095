/* SPDX-License-Identifier: Apache-2.0 */
/* A table whose columns are as wide as their widest cell. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>

typedef struct cli_table cli_table;

/*
 * Headings, each with '<' (left) or '>' (right) before it to say how its column is aligned:
 * cli_table_create(3, "<device", "<name", ">memory"). At most 16 columns.
 */
cli_table *cli_table_create(size_t columns, ...);

/* A row of as many texts (copied; NULL is an empty cell). Control characters become spaces. */
void cli_table_row(cli_table *table, ...);

/* Print to standard output, each line behind `indent` spaces, and destroy. */
void cli_table_print(cli_table *table, int indent);

#endif
