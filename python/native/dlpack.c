/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays as DLPack capsules. What a capsule points to is one piece of C memory that keeps the holding. A consumer renames
 * the capsule and calls the deleter when its tensor dies, on any thread, perhaps when the interpreter is gone already;
 * a capsule that nobody consumed keeps its name and calls the deleter itself.
 */
#include "native.h"

#include "dlpack_abi.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    union {
        dlpack_managed old;
        dlpack_managed_versioned versioned;
    } managed;
    onumapy_holding *holding;
    int64_t extent[]; /* shape, then strides */
} export;

static void delete_old(dlpack_managed *managed) {
    export *exported = managed->context;
    onumapy_holding_drop_anywhere(exported->holding);
    free(exported);
}

static void delete_versioned(dlpack_managed_versioned *managed) {
    export *exported = managed->context;
    onumapy_holding_drop_anywhere(exported->holding);
    free(exported);
}

static void destroy_old(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    delete_old(PyCapsule_GetPointer(capsule, "dltensor"));
}

static void destroy_versioned(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
    delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static dlpack_tensor describe(const ArrayObject *array, void *data, int64_t *extent) {
    const int bytes = (array->element.bits + 7) / 8;
    for (int i = 0; i < array->dimensions; i++) {
        extent[i] = array->extent[i];
        extent[array->dimensions + i] = array->extent[array->dimensions + i] / bytes;
    }
    return (dlpack_tensor){.data = data,
                           .device_type = DLPACK_CPU,
                           .ndim = array->dimensions,
                           .code = array->element.code,
                           .bits = array->element.bits,
                           .lanes = 1,
                           .shape = extent,
                           .strides = extent + array->dimensions};
}

/* Takes over the reference to the holding. */
static PyObject *capsule_of(const ArrayObject *array, onumapy_holding *holding, void *data, bool versioned,
                            uint64_t flags) {
    export *exported = malloc(sizeof *exported + 2 * (size_t)array->dimensions * sizeof(int64_t));
    if (!exported) {
        onumapy_drop_holding(holding);
        return PyErr_NoMemory();
    }
    exported->holding = holding;
    dlpack_tensor tensor = describe(array, data, exported->extent);
    PyObject *capsule;
    if (versioned) {
        exported->managed.versioned = (dlpack_managed_versioned){.major = DLPACK_MAJOR,
                                                                 .minor = DLPACK_MINOR,
                                                                 .context = exported,
                                                                 .deleter = delete_versioned,
                                                                 .flags = flags,
                                                                 .tensor = tensor};
        capsule = PyCapsule_New(&exported->managed.versioned, "dltensor_versioned", destroy_versioned);
    } else {
        exported->managed.old = (dlpack_managed){.tensor = tensor, .context = exported, .deleter = delete_old};
        capsule = PyCapsule_New(&exported->managed.old, "dltensor", destroy_old);
    }
    if (!capsule) {
        onumapy_drop_holding(holding);
        free(exported);
    }
    return capsule;
}

/* Of the same pool; imports have none, and then there is nothing to copy into. NULL with an exception set. */
static onumapy_holding *copy_of(const ArrayObject *array) {
    onumapy_pool *pool = array->block->holding->pool;
    if (!pool) {
        PyErr_SetString(PyExc_BufferError, "memory that no pool serves cannot be copied by DLPack; copy the alias");
        return NULL;
    }
    void *base = NULL;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS result = onuma_alloc(pool->pool, array->bytes, 0, NULL, &base);
    if (result == ONUMA_OK) memcpy(base, array->data, array->bytes);
    Py_END_ALLOW_THREADS if (result != ONUMA_OK) {
        onumapy_raise(result);
        return NULL;
    }
    onumapy_holding *copy = onumapy_holding_new(&(onumapy_holding){.base = base,
                                                                   .size = array->bytes,
                                                                   .kind = pool->kind,
                                                                   .pool = onumapy_pool_keep(pool),
                                                                   .device = pool->device});
    if (copy) return copy;
    onuma_free(base, NULL);
    onumapy_drop_pool(pool);
    PyErr_NoMemory();
    return NULL;
}

static bool check_device(ArrayObject *self) {
    if (onumapy_cpu_reaches(self->block->device->core, self->block->holding->kind)) return true;
    PyErr_SetString(PyExc_BufferError, "device memory cannot be exported for the CPU; kind='shared' can");
    return false;
}

/* What a consumer may ask for and an alias of the CPU's view can answer. */
static bool check_request(ArrayObject *self, PyObject *stream, PyObject *dl_device, bool versioned, bool copy) {
    if (!check_device(self)) return false;
    if (stream != Py_None && PyLong_AsLong(stream) != -1) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_BufferError, "stream is %R; the CPU has none, so it must be None", stream);
        return false;
    }
    if (dl_device != Py_None) {
        int type, id;
        if (!PyTuple_Check(dl_device) || !PyArg_ParseTuple(dl_device, "ii:dl_device", &type, &id)) {
            PyErr_Format(PyExc_ValueError, "dl_device is %R; it is a tuple of two integers", dl_device);
            return false;
        }
        if (type != DLPACK_CPU || id != 0) {
            PyErr_Format(PyExc_BufferError, "dl_device is %R; this array can be given to the CPU, (1, 0), alone",
                         dl_device);
            return false;
        }
    }
    if (self->block->holding->read_only && !versioned && !copy) {
        PyErr_SetString(PyExc_BufferError, "read-only memory needs a consumer that knows DLPack 1.0 (max_version)");
        return false;
    }
    return true;
}

PyObject *onumapy_array_dlpack(PyObject *object, PyObject *args, PyObject *keywords) {
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    ArrayObject *self = (ArrayObject *)object;
    PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy_object = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &max_version, &dl_device,
                                     &copy_object))
        return NULL;
    int major = 0, minor = 0;
    if (max_version != Py_None &&
        (!PyTuple_Check(max_version) || !PyArg_ParseTuple(max_version, "ii", &major, &minor))) {
        PyErr_Format(PyExc_ValueError, "max_version is %R; it is a tuple of two integers", max_version);
        return NULL;
    }
    const bool versioned = major >= DLPACK_MAJOR, copy = copy_object == Py_True;
    if (!check_request(self, stream, dl_device, versioned, copy)) return NULL;
    if (!copy)
        return capsule_of(self, onumapy_holding_keep(self->block->holding), self->data, versioned,
                          self->block->holding->read_only ? DLPACK_READ_ONLY : 0);
    onumapy_holding *holding = copy_of(self);
    return holding ? capsule_of(self, holding, holding->base, versioned, DLPACK_COPIED) : NULL;
}

PyObject *onumapy_array_dlpack_device(PyObject *self, PyObject *ignored) {
    return check_device((ArrayObject *)self) ? Py_BuildValue("(ii)", DLPACK_CPU, 0) : NULL;
}
