/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/series.h"

#include <errno.h>
#include <stdio.h>

#include "units.h"

bool series_due(const series *s, size_t done, size_t all) {
    return s->count <= SERIES_POINTS && (done == all || done >= s->count * all / SERIES_POINTS);
}

void series_add(series *s, size_t operation, uint64_t live, uint64_t reserved) {
    if (s->count <= SERIES_POINTS) s->points[s->count++] = (series_point){operation, live, reserved};
}

static uint64_t highest(const series *s) {
    uint64_t top = 1;
    for (size_t i = 0; i < s->count; i++) {
        if (s->points[i].reserved > top) top = s->points[i].reserved;
        if (s->points[i].live > top) top = s->points[i].live;
    }
    return top;
}

/* ----------------------------------------------------------------- picture */

enum { COLUMNS = 72, ROWS = 16 };

/* The largest values of the points of one column. */
static series_point column_of(const series *s, size_t column) {
    series_point most = {0, 0, 0};
    const size_t from = column * s->count / COLUMNS;
    size_t to = (column + 1) * s->count / COLUMNS;
    if (to == from) to = from + 1;
    for (size_t i = from; i < to && i < s->count; i++) {
        if (s->points[i].live > most.live) most.live = s->points[i].live;
        if (s->points[i].reserved > most.reserved) most.reserved = s->points[i].reserved;
    }
    return most;
}

static char mark(const series_point *point, double level) {
    return (double)point->live > level ? '#' : (double)point->reserved > level ? '.' : ' ';
}

void series_draw(const series *s) {
    const uint64_t top = highest(s);
    printf("\n%11s\n", cli_bytes(top).text);
    for (unsigned row = ROWS; row-- > 0;) {
        char line[COLUMNS + 1];
        for (size_t column = 0; column < COLUMNS; column++) {
            const series_point point = column_of(s, column);
            line[column] = mark(&point, (double)top * row / (double)ROWS);
        }
        line[COLUMNS] = '\0';
        printf("%11s|%s|\n", "", line);
    }
    printf("%11s 0%*llu operations\n%11s # live   . reserved\n", "", COLUMNS - 12,
           (unsigned long long)s->points[s->count - 1].operation, "");
}

/* -------------------------------------------------------------------- JSON */

void series_json(const series *s, cJSON *object) {
    cJSON *rows = cJSON_AddArrayToObject(object, "series");
    for (size_t i = 0; i < s->count; i++) {
        const series_point *point = &s->points[i];
        const double numbers[] = {(double)point->operation, (double)point->live, (double)point->reserved};
        cJSON_AddItemToArray(rows, cJSON_CreateDoubleArray(numbers, sizeof numbers / sizeof *numbers));
    }
}

/* --------------------------------------------------------------------- SVG */

enum { WIDTH = 720, HEIGHT = 320, LEFT = 80, RIGHT = 16, TOP = 28, BOTTOM = 40 };

static void write_area(FILE *file, const series *s, bool live, const char *color) {
    const double top = (double)highest(s), last = (double)s->points[s->count - 1].operation;
    const double wide = WIDTH - LEFT - RIGHT, high = HEIGHT - TOP - BOTTOM;
    fprintf(file, "<path fill=\"%s\" d=\"M%d %d", color, LEFT, HEIGHT - BOTTOM);
    for (size_t i = 0; i < s->count; i++) {
        const double x = last > 0 ? (double)s->points[i].operation / last : 0;
        const double y = (double)(live ? s->points[i].live : s->points[i].reserved) / top;
        fprintf(file, "L%.1f %.1f", (double)LEFT + x * wide, (double)(HEIGHT - BOTTOM) - y * high);
    }
    fprintf(file, "L%d %dZ\"/>\n", WIDTH - RIGHT, HEIGHT - BOTTOM);
}

bool series_write_svg(const series *s, const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        WIDTH, HEIGHT);
    write_area(file, s, false, "#e3a857");
    write_area(file, s, true, "#2f6f9f");
    fprintf(
        file,
        "<path fill=\"none\" stroke=\"black\" d=\"M%d %dV%dH%d\"/>\n"
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n"
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%llu operations</text>\n"
        "<text x=\"%d\" y=\"18\" fill=\"#2f6f9f\">live</text><text x=\"%d\" y=\"18\" fill=\"#b97a1f\">reserved</text>\n"
        "</svg>\n",
        LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, LEFT - 6, TOP + 5, cli_bytes(highest(s)).text, LEFT - 6,
        HEIGHT - BOTTOM + 5, WIDTH - RIGHT, HEIGHT - BOTTOM + 20, (unsigned long long)s->points[s->count - 1].operation,
        LEFT, LEFT + 50);
    const bool written = ferror(file) == 0;
    return (fclose(file) == 0) && written;
}
