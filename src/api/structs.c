/* SPDX-License-Identifier: Apache-2.0 */
#include "api/structs.h"

#include <string.h>

/* No struct of ours will ever be larger: what says so is not initialised, and reading that far could crash. */
#define LARGEST 4096

static size_t size_of(const void *object) {
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

onuma_result onuma__struct_check(const onuma__struct *type, const void *from, const char *function) {
    if (from == NULL)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: a pointer to %s is NULL", function, type->name);
    size_t size = size_of(from);
    if (size >= type->least && size <= LARGEST) return ONUMA_OK;
    return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT,
                       "%s: %s has struct_size %zu, and %zu is its size; set it up with its _INIT initialiser",
                       function, type->name, size, type->size);
}

onuma_result onuma__struct_read(const onuma__struct *type, const void *from, void *to, const char *function) {
    if (from == NULL) return ONUMA_OK;
    onuma_result r = onuma__struct_check(type, from, function);
    if (r != ONUMA_OK) return r;
    size_t size = size_of(from);
    const unsigned char *bytes = from;
    for (size_t i = type->size; i < size; i++)
        if (bytes[i] != 0)
            return onuma__fail(ONUMA_ERROR_NOT_SUPPORTED,
                               "%s: byte %zu of %s is %u: it belongs to a member that this version (%s) does not know",
                               function, i, type->name, bytes[i], onuma_version());
    memcpy((char *)to + sizeof size, bytes + sizeof size, smaller(size, type->size) - sizeof size);
    return ONUMA_OK;
}

void onuma__struct_write(const onuma__struct *type, const void *from, void *to) {
    size_t size = smaller(size_of(to), type->size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, size - sizeof size);
}
