/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the extension module share. It is written for CPython's limited API of 3.11, so one build serves
 * all later versions. Objects do not change after they are made, but for what atomics and locks of their own protect;
 * no call into the library that may wait is made with the interpreter's lock held.
 */
#ifndef ONUMAPY_NATIVE_H
#define ONUMAPY_NATIVE_H

#include <Python.h>

#include "lifetime.h"

/* The types live in the module, not in static variables: each interpreter has its own. */
typedef struct onumapy_state {
    PyTypeObject *device, *pool, *block, *array, *queue, *host_access, *view;
} onumapy_state;

typedef struct {
    PyObject_HEAD onumapy_device *core;
} DeviceObject;

typedef struct {
    PyObject_HEAD onumapy_pool *core;
    DeviceObject *device;
} PoolObject;

typedef struct {
    PyObject_HEAD onumapy_holding *holding;
    DeviceObject *device;
    PyObject *weak_references;
} BlockObject;

/* How one element is named by the protocols. `format` (of struct) and `typestr` (of NumPy) are borrowed from `dtype`. */
typedef struct {
    PyObject *name;
    const char *format; /* NULL where struct has no letter for it */
    PyObject *typestr;
    uint8_t code, bits; /* DLPack's */
} onumapy_element;

typedef struct {
    PyObject_HEAD BlockObject *block;
    PyObject *dtype; /* the tuple that `element` is read from */
    onumapy_element element;
    char *data;
    size_t bytes;
    int dimensions;
    Py_ssize_t *extent; /* shape, then strides in bytes */
} ArrayObject;

/* Another reference to one of the objects above, or to any. */
static inline void *onumapy_reference(void *object) {
    return Py_NewRef((PyObject *)object);
}

static inline void onumapy_unreference(void *object) {
    Py_XDECREF((PyObject *)object);
}

/* errors.c: raise what a failed call of the library means in Python, with its text. Always NULL. */
PyObject *onumapy_raise(onuma_result result);

/* module.c */
onumapy_state *onumapy_state_of(PyObject *self);
/* The process's runtime, made at first use. NULL with an exception set. */
onuma_runtime *onumapy_runtime(void);

/* Add a type made from spec to the module, and keep it in *slot. -1 with an exception set. */
int onumapy_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **slot);
/* The object without its type's tp_alloc having been called by Python; NULL with an exception set. */
PyObject *onumapy_new_object(PyTypeObject *type);
void onumapy_free_object(PyObject *self);

/* arguments.c: converters for PyArg_Parse ("O&"). */
int onumapy_kind_argument(PyObject *value, void *kind);      /* "host", "shared", "device" to onuma_kind */
int onumapy_mode_argument(PyObject *value, void *mode);      /* "r", "w", "rw" to onuma_access */
int onumapy_api_argument(PyObject *value, void *api);        /* "opencl", ... to onuma_api */
int onumapy_size_argument(PyObject *value, void *size);      /* an integer from 0 to size_t */
int onumapy_address_argument(PyObject *value, void *handle); /* an integer from 0 to uint64_t */
int onumapy_timeout_argument(PyObject *value, void *ns);     /* seconds, None for ever, to nanoseconds */
const char *onumapy_kind_name(onuma_kind kind);

/* Each adds its type or types to the module. -1 with an exception set. */
int onumapy_device_type(PyObject *module, onumapy_state *state);
int onumapy_pool_type(PyObject *module, onumapy_state *state);
int onumapy_block_types(PyObject *module, onumapy_state *state);
int onumapy_array_type(PyObject *module, onumapy_state *state);
int onumapy_queue_type(PyObject *module, onumapy_state *state);
int onumapy_host_access_type(PyObject *module, onumapy_state *state);

/* device.c, pool.c, block.c: objects from what lies behind them. They take over the reference, on failure too. */
PyObject *onumapy_device_object(onumapy_state *state, onumapy_device *core);
PyObject *onumapy_block_object(onumapy_state *state, onumapy_holding *holding, DeviceObject *device);
/* Drop a holding with the interpreter's lock held. */
void onumapy_drop_holding(onumapy_holding *holding);
void onumapy_drop_pool(onumapy_pool *pool);

/* queue.c: what a Queue object wraps. NULL with an exception set if it is none, or was closed. */
onuma_queue *onumapy_queue_of(onumapy_state *state, PyObject *queue);

/* host_access.c: what `on_host` returns: target is entered, the block's bytes from data on are held meanwhile. */
PyObject *onumapy_host_access(onumapy_state *state, PyObject *target, onumapy_holding *holding, void *data,
                              size_t bytes, PyObject *args, PyObject *keywords);

/* dlpack.c */
PyObject *onumapy_array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *onumapy_array_dlpack_device(PyObject *self, PyObject *ignored);

/* device.c, queue.c, file.c, numpy_memory.c: functions of the module. */
PyObject *onumapy_map_file(PyObject *module, PyObject *args);
PyObject *onumapy_numpy_handler(PyObject *module, PyObject *args);
PyObject *onumapy_numpy_set_handler(PyObject *module, PyObject *handler);

#endif
