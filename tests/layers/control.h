/* SPDX-License-Identifier: Apache-2.0 */
/* How a test speaks with the layers that OPENCL_LAYERS has loaded into it. */
#ifndef ONUMA_TESTS_LAYER_CONTROL_H
#define ONUMA_TESTS_LAYER_CONTROL_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of the (one) layer in use; NULL unless the loader has loaded it, which the first OpenCL call does. */
static inline void *layer_symbol(const char *name) {
    const char *path = getenv("OPENCL_LAYERS");
    void *layer = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *symbol = layer ? dlsym(layer, name) : NULL;
    if (layer) dlclose(layer);
    return symbol;
}

static inline void layer_set(const char *settings) {
    void (*configure)(const char *);
    void *symbol = layer_symbol("layer_configure");
    if (!symbol) {
        fprintf(stderr, "the layer %s is not loaded\n", getenv("OPENCL_LAYERS"));
        abort();
    }
    memcpy(&configure, &symbol, sizeof symbol);
    configure(settings);
}

#endif
