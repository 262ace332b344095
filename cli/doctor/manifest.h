/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files through which an OpenCL loader finds its drivers: NAME.icd, whose first line names a library. What a
 * loader reads in one is taken to the byte, a carriage return and a leading blank included, because that is
 * what it then hands to dlopen; what is odd about it is told apart.
 */
#ifndef CLI_DOCTOR_MANIFEST_H
#define CLI_DOCTOR_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    MANIFEST_PLAIN,
    MANIFEST_UNREADABLE, /* `why` has the system's words */
    MANIFEST_EMPTY,      /* no bytes, or none in its first line */
    MANIFEST_CRLF,       /* the line ends as Windows ends lines */
    MANIFEST_BLANKS,     /* blanks or a byte order mark around the name */
    MANIFEST_MORE_LINES, /* harmless to ocl-icd; Khronos' loader takes all lines for one name */
    MANIFEST_RELATIVE    /* a path that depends on the folder a program is started in */
} manifest_oddity;

typedef struct manifest {
    char path[1024];
    char library[1024]; /* what the loader hands to dlopen */
    char meant[1024];   /* what was meant: the name without oddities */
    manifest_oddity oddity;
    char why[128];
} manifest;

/* Read the file at m->path as ocl-icd (its first line) or as Khronos' loader (all but a last line end) would. */
void manifest_read(manifest *m, bool first_line_alone);

/* The .icd files of a folder, sorted by name; to be freed. *why becomes an errno and NULL is returned if it cannot be
 * listed. */
manifest *manifests_in(const char *folder, size_t *count, int *why);

#endif
