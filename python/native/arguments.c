/* SPDX-License-Identifier: Apache-2.0 */
/* How values of Python become those of the library. A converter returns 1, or 0 with an exception that names the value. */
#include "native.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    uint32_t value;
} word;

static const word kinds[] = {{"host", ONUMA_KIND_HOST}, {"shared", ONUMA_KIND_SHARED}, {"device", ONUMA_KIND_DEVICE}};
static const word modes[] = {{"r", ONUMA_ACCESS_READ}, {"w", ONUMA_ACCESS_WRITE}, {"rw", ONUMA_ACCESS_READ_WRITE}};
static const word apis[] = {
    {"host", ONUMA_API_HOST},    {"opencl", ONUMA_API_OPENCL}, {"level_zero", ONUMA_API_LEVEL_ZERO},
    {"sycl", ONUMA_API_SYCL},    {"cuda", ONUMA_API_CUDA},     {"hip", ONUMA_API_HIP},
    {"vulkan", ONUMA_API_VULKAN}};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static int word_argument(PyObject *value, const word *words, size_t count, const char *what, uint32_t *out) {
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(words[i].name, text) == 0) {
            *out = words[i].value;
            return 1;
        }
    }
    if (PyErr_Occurred()) return 0;
    PyObject *names = PyUnicode_FromString(words[0].name);
    for (size_t i = 1; names && i < count; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U, %s", names, words[i].name);
        Py_DECREF(names);
        names = longer;
    }
    if (names) PyErr_Format(PyExc_ValueError, "%s is %R; it is one of: %U", what, value, names);
    Py_XDECREF(names);
    return 0;
}

int onumapy_kind_argument(PyObject *value, void *kind) {
    return word_argument(value, kinds, COUNT(kinds), "kind", kind);
}

int onumapy_mode_argument(PyObject *value, void *mode) {
    return word_argument(value, modes, COUNT(modes), "mode", mode);
}

int onumapy_api_argument(PyObject *value, void *api) {
    return word_argument(value, apis, COUNT(apis), "api", api);
}

const char *onumapy_kind_name(onuma_kind kind) {
    return kind < COUNT(kinds) ? kinds[kind].name : "unknown";
}

/* Integers that do not fit are wrong values: ValueError, where Python itself would say OverflowError. */
int onumapy_address_argument(PyObject *value, void *handle) {
    PyObject *integer = PyNumber_Index(value);
    if (!integer) return 0;
    unsigned long long number = PyLong_AsUnsignedLongLong(integer);
    Py_DECREF(integer);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%R is not between 0 and 2**64 - 1", value);
        return 0;
    }
    *(uint64_t *)handle = number;
    return 1;
}

int onumapy_size_argument(PyObject *value, void *size) {
    uint64_t number;
    if (!onumapy_address_argument(value, &number)) return 0;
    if (number > SIZE_MAX) {
        PyErr_Format(PyExc_ValueError, "%R is more than this machine can address", value);
        return 0;
    }
    *(size_t *)size = (size_t)number;
    return 1;
}

int onumapy_timeout_argument(PyObject *value, void *ns) {
    if (value == Py_None) {
        *(uint64_t *)ns = ONUMA_TIMEOUT_INFINITE;
        return 1;
    }
    double seconds = PyFloat_AsDouble(value);
    if (PyErr_Occurred()) return 0;
    if (isnan(seconds) || seconds < 0) {
        PyErr_Format(PyExc_ValueError, "timeout is %R; it is seconds from 0, or None to wait without end", value);
        return 0;
    }
    *(uint64_t *)ns = seconds < 9e9 ? (uint64_t)(seconds * 1e9) : ONUMA_TIMEOUT_INFINITE;
    return 1;
}
