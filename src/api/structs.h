/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public structs, whose size tells the version that the program was compiled
 * with. Smaller is older: what is missing has its default, or is not written.
 * Larger is newer: what we do not know must be zero in what we read, since it
 * asks for something, and is left alone in what we write.
 */
#ifndef ONUMA_API_STRUCTS_H
#define ONUMA_API_STRUCTS_H

#include "base/result.h"

/* One kind of public struct, for the two functions below. */
typedef struct onuma__struct {
    const char *name; /* "onuma_pool_desc" */
    size_t size;      /* in this version */
    size_t least;     /* with the first member after struct_size */
} onuma__struct;

#define ONUMA__STRUCT(type, first)                                                                                     \
    (&(const onuma__struct){#type, sizeof(type), offsetof(type, first) + sizeof(((type *)0)->first)})

/* Whether `from`, which may not be NULL, has a believable size. INVALID_ARGUMENT. */
onuma_result onuma__struct_check(const onuma__struct *type, const void *from, const char *function);

/* Read the program's struct into `to`, which holds the defaults. `from` NULL: they stay. INVALID_ARGUMENT, NOT_SUPPORTED. */
onuma_result onuma__struct_read(const onuma__struct *type, const void *from, void *to, const char *function);

/* Write `from` to the program's struct, which was checked: all but its struct_size. */
void onuma__struct_write(const onuma__struct *type, const void *from, void *to);

#endif
