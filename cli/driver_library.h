/* SPDX-License-Identifier: Apache-2.0 */
/* A driver's library, opened by the command itself when it is first needed. Never closed: drivers leave threads and exit
 * handlers behind. */
#ifndef CLI_DRIVER_LIBRARY_H
#define CLI_DRIVER_LIBRARY_H

#include <stddef.h>

/* By bare name, from the system's own places; NULL, and `why` filled, if that fails. */
void *cli_library_open(const char *name, char *why, size_t size);

/* The process itself as a library, if it has this symbol; else NULL. */
void *cli_library_of_process(const char *symbol);

/* The address of a function, stored at `to`, which is a pointer to a function: ISO C converts no object pointer to one.
 * NULL is stored where there is none. */
void cli_library_find(void *library, const char *name, void *to);

#endif
