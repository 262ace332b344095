/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the OpenCL loader at hand looks for drivers. The folder is built into the loader (a distribution's looks
 * in /etc, one of a conda environment in that environment), and the loaders differ in the variables they read: so both
 * are read from the loader's own file, where such names stand as plain text.
 */
#ifndef CLI_DOCTOR_PLACES_H
#define CLI_DOCTOR_PLACES_H

#include <stdbool.h>

typedef struct loader_places {
    bool ocl_icd;         /* it is the loader of that name: takes one .icd file or one library in OCL_ICD_VENDORS too */
    bool reads_filenames; /* OCL_ICD_FILENAMES: Khronos' loader does */
    bool reads_vendor_path; /* OPENCL_VENDOR_PATH: newer ocl-icd does */
    char folder[256];       /* built in; "" if none was found in the file */
} loader_places;

/* What the library in this file tells of itself. */
void loader_places_read(loader_places *out, const char *library);

#endif
