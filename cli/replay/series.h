/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool held and what lived in it, over the operations of a replay; as a picture, as JSON, as SVG. */
#ifndef CLI_REPLAY_SERIES_H
#define CLI_REPLAY_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"

enum { SERIES_POINTS = 480 };

typedef struct series_point {
    uint64_t operation, live, reserved; /* after so many operations: bytes */
} series_point;

typedef struct series {
    size_t count;
    series_point points[SERIES_POINTS + 1];
} series;

/* Whether a point is due after `done` of `all` operations: SERIES_POINTS of them, evenly spread, and the end. */
bool series_due(const series *s, size_t done, size_t all);
void series_add(series *s, size_t operation, uint64_t live, uint64_t reserved);

/* To standard output. */
void series_draw(const series *s);
/* "series": [[operation, live, reserved], ...] */
void series_json(const series *s, cJSON *object);
/* false, and errno, if the file cannot be written. */
bool series_write_svg(const series *s, const char *path);

#endif
