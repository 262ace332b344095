/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/places.h"

#include <stdio.h>
#include <string.h>

static void take_text(loader_places *out, const char *text) {
    static const char vendors[] = "OpenCL/vendors";
    size_t length = strlen(text);
    if (length && text[length - 1] == '/') length--;
    size_t end = sizeof vendors - 1;
    if (text[0] == '/' && length >= end && strncmp(text + length - end, vendors, end) == 0 && !out->folder[0])
        snprintf(out->folder, sizeof out->folder, "%.*s", (int)length, text);
    if (strcmp(text, "OCL_ICD_ASSUME_ICD_EXTENSION") == 0) out->ocl_icd = true;
    if (strcmp(text, "OCL_ICD_FILENAMES") == 0) out->reads_filenames = true;
    if (strcmp(text, "OPENCL_VENDOR_PATH") == 0) out->reads_vendor_path = true;
}

void loader_places_read(loader_places *out, const char *library) {
    *out = (loader_places){.folder = ""};
    FILE *file = fopen(library, "rb");
    if (!file) return;
    char text[256];
    size_t length = 0;
    int c;
    while ((c = getc(file)) != EOF) {
        if (c >= ' ' && c <= '~') {
            if (length < sizeof text - 1) text[length++] = (char)c;
            continue;
        }
        text[length] = '\0';
        if (c == '\0' && length) take_text(out, text);
        length = 0;
    }
    fclose(file);
}
