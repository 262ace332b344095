/* SPDX-License-Identifier: Apache-2.0 */
/* Small reads of the files in which a kernel describes the machine. `root` goes before each path: "" for this machine. */
#ifndef CLI_DOCTOR_FILES_H
#define CLI_DOCTOR_FILES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct file_path {
    char text[512];
} file_path;

/* root/..., formatted; what is too long is cut and then names nothing. */
file_path path_of(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool path_exists(const char *path);

/* The file's first line without its end. false and "": it cannot be read. */
bool read_line(const char *path, char *line, size_t size);

/* Whether any line of the file holds this text. */
bool file_mentions(const char *path, const char *text);

/* The last part of where a symbolic link leads; "" if it is none. */
void link_target(const char *path, char *name, size_t size);

/* The first entry of a folder, by name, that begins with `prefix`; "" if there is none. */
void first_entry(const char *folder, const char *prefix, char *name, size_t size);

#endif
