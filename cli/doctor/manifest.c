/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

static const char blanks[] = " \t\r\n\v\f";

/* The name without what surrounds it. */
static void strip(const char *text, char *out, size_t size) {
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3;
    text += strspn(text, blanks);
    size_t length = strcspn(text, "\r\n");
    while (length && strchr(blanks, text[length - 1]))
        length--;
    snprintf(out, size, "%.*s", (int)length, text);
}

static manifest_oddity oddity_of(const manifest *m) {
    size_t length = strlen(m->library);
    if (!m->meant[0]) return MANIFEST_EMPTY;
    if (strchr(m->library, '\n')) return MANIFEST_MORE_LINES;
    if (m->library[length - 1] == '\r') return MANIFEST_CRLF;
    if (strcmp(m->library, m->meant) != 0) return MANIFEST_BLANKS;
    if (m->library[0] != '/' && strchr(m->library, '/')) return MANIFEST_RELATIVE;
    return MANIFEST_PLAIN;
}

void manifest_read(manifest *m, bool first_line_alone) {
    m->library[0] = m->meant[0] = m->why[0] = '\0';
    errno = 0;
    FILE *file = fopen(m->path, "rb");
    size_t length = file ? fread(m->library, 1, sizeof m->library - 1, file) : 0;
    bool failed = !file || ferror(file);
    int error = errno;
    if (file) fclose(file);
    if (failed) {
        m->oddity = MANIFEST_UNREADABLE;
        snprintf(m->why, sizeof m->why, "%s", strerror(error));
        return;
    }
    m->library[length] = '\0'; /* a zero byte in the file ends the name, as it does for loaders */
    char *end = first_line_alone ? strchr(m->library, '\n') : NULL;
    length = strlen(m->library);
    if (!end && length && m->library[length - 1] == '\n') end = m->library + length - 1;
    if (end) *end = '\0';
    strip(m->library, m->meant, sizeof m->meant);
    m->oddity = oddity_of(m);
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const manifest *)a)->path, ((const manifest *)b)->path);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

manifest *manifests_in(const char *folder, size_t *count, int *why) {
    *count = 0;
    DIR *dir = opendir(folder);
    if (!dir) {
        *why = errno;
        return NULL;
    }
    manifest *list = cli_allocate(sizeof *list);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (!ends_with(entry->d_name, ".icd")) continue;
        list = cli_reallocate(list, (*count + 1) * sizeof *list);
        list[*count] = (manifest){.oddity = MANIFEST_PLAIN};
        snprintf(list[*count].path, sizeof list[*count].path, "%s/%s", folder, entry->d_name);
        ++*count;
    }
    closedir(dir);
    qsort(list, *count, sizeof *list, by_path);
    *why = 0;
    return list;
}
