/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "doctor/files.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

file_path path_of(const char *root, const char *format, ...) {
    file_path path;
    int used = snprintf(path.text, sizeof path.text, "%s", root);
    va_list arguments;
    va_start(arguments, format);
    if (used >= 0 && (size_t)used < sizeof path.text)
        vsnprintf(path.text + used, sizeof path.text - (size_t)used, format, arguments);
    va_end(arguments);
    return path;
}

bool path_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool read_line(const char *path, char *line, size_t size) {
    line[0] = '\0';
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (!got) line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return got;
}

bool file_mentions(const char *path, const char *text) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    char line[4096];
    bool found = false;
    while (!found && fgets(line, sizeof line, file))
        found = strstr(line, text) != NULL;
    fclose(file);
    return found;
}

void link_target(const char *path, char *name, size_t size) {
    char target[512];
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(name, size, "%s", slash ? slash + 1 : target);
}

void first_entry(const char *folder, const char *prefix, char *name, size_t size) {
    name[0] = '\0';
    DIR *dir = opendir(folder);
    if (!dir) return;
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        if (!name[0] || strcmp(entry->d_name, name) < 0) snprintf(name, size, "%s", entry->d_name);
    }
    closedir(dir);
}
