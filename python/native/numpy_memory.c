/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy's own arrays from a pool, through NEP 49: NumPy takes a capsule with four functions, and each array keeps the
 * capsule that it was allocated with. So the pool lives as long as any such array.
 *
 * NumPy's headers are not needed: the struct below and the two places in its table of functions are part of its binary
 * interface, the same from 1.22 on.
 */
#include "native.h"

#include <stdlib.h>

enum { SET_HANDLER = 304 };

typedef struct {
    void *context;
    void *(*allocate)(void *context, size_t size);
    void *(*allocate_zeroed)(void *context, size_t count, size_t size);
    void *(*resize)(void *context, void *pointer, size_t size);
    void (*release)(void *context, void *pointer, size_t size);
} numpy_allocator;

typedef struct {
    char name[127];
    uint8_t version;
    numpy_allocator allocator;
} numpy_handler;

static const char capsule_name[] = "mem_handler";

/* ------------------------------------------------ NumPy calls these; the context is the onumapy_pool */

static void *allocate(void *context, size_t size) {
    void *out;
    return onuma_alloc(((onumapy_pool *)context)->pool, size, 0, NULL, &out) == ONUMA_OK ? out : NULL;
}

static void *allocate_zeroed(void *context, size_t count, size_t size) {
    void *out;
    if (size && count > SIZE_MAX / size) return NULL;
    return onuma_alloc_zeroed(((onumapy_pool *)context)->pool, count * size, 0, NULL, &out) == ONUMA_OK ? out : NULL;
}

static void *resize(void *context, void *pointer, size_t size) {
    void *out;
    if (!pointer) return allocate(context, size);
    return onuma_realloc(pointer, size, NULL, &out) == ONUMA_OK ? out : NULL;
}

static void release(void *context, void *pointer, size_t size) {
    (void)onuma_free(pointer, NULL);
}

static void destroy_handler(PyObject *capsule) {
    numpy_handler *handler = PyCapsule_GetPointer(capsule, capsule_name);
    if (!handler) return;
    onumapy_drop_pool(handler->allocator.context);
    free(handler);
}

PyObject *onumapy_numpy_handler(PyObject *module, PyObject *args) {
    onumapy_state *state = PyModule_GetState(module);
    PoolObject *pool;
    if (!PyArg_ParseTuple(args, "O!:numpy_handler", state->pool, &pool)) return NULL;
    if (!onumapy_cpu_reaches(pool->core->device, pool->core->kind)) {
        PyErr_SetString(PyExc_ValueError,
                        "NumPy computes on the CPU, which does not reach device memory; use kind='shared'");
        return NULL;
    }
    numpy_handler *handler = malloc(sizeof *handler);
    if (!handler) return PyErr_NoMemory();
    *handler = (numpy_handler){.name = "opennuma",
                               .version = 1,
                               .allocator = {.context = onumapy_pool_keep(pool->core),
                                             .allocate = allocate,
                                             .allocate_zeroed = allocate_zeroed,
                                             .resize = resize,
                                             .release = release}};
    PyObject *capsule = PyCapsule_New(handler, capsule_name, destroy_handler);
    if (!capsule) {
        onumapy_drop_pool(pool->core);
        free(handler);
    }
    return capsule;
}

/* NumPy's table of C functions, of 2.x or 1.x. NULL with an exception set. */
static void **numpy_functions(void) {
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!module) {
        PyErr_Clear();
        module = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
    Py_XDECREF(module);
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(capsule); /* NumPy is never unloaded */
    return table;
}

PyObject *onumapy_numpy_set_handler(PyObject *module, PyObject *handler) {
    void **functions = numpy_functions();
    if (!functions) return NULL;
    if (handler != Py_None && !PyCapsule_IsValid(handler, capsule_name)) {
        PyErr_Format(PyExc_TypeError, "%R is no memory handler of NumPy", handler);
        return NULL;
    }
    PyObject *(*set)(PyObject *) = (PyObject * (*)(PyObject *)) functions[SET_HANDLER];
    return set(handler == Py_None ? NULL : handler);
}
