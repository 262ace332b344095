/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

enum { LEAST_ALIGNMENT = 64 }; /* JAX, for one, copies without a word what is aligned to less */

void onumapy_drop_pool(onumapy_pool *pool) {
    if (!onumapy_pool_drop(pool)) return;
    Py_BEGIN_ALLOW_THREADS onumapy_pool_destroy(pool);
    Py_END_ALLOW_THREADS
}

static onuma_result create_pool(onuma_device *device, onuma_pool_desc *desc, onuma_pool **out) {
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    onuma_result result = onuma_device_get_info(device, &info);
    if (result != ONUMA_OK) return result;
    size_t least = info.alignment > LEAST_ALIGNMENT ? info.alignment : LEAST_ALIGNMENT;
    if (desc->alignment < least) desc->alignment = least;
    return onuma_pool_create(device, desc, out);
}

static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"device", "kind", "limit", "alignment", "segment_size", "name", NULL};
    onumapy_state *state = PyType_GetModuleState(type);
    DeviceObject *device;
    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|$O&O&O&O&z:Pool", names, state->device, &device,
                                     onumapy_kind_argument, &desc.kind, onumapy_size_argument, &desc.limit_bytes,
                                     onumapy_size_argument, &desc.alignment, onumapy_size_argument, &desc.segment_bytes,
                                     &desc.name))
        return NULL;
    PoolObject *self = (PoolObject *)onumapy_new_object(type);
    if (!self) return NULL;

    onuma_pool *pool;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS /* the device's first use opens it */
        result = create_pool(device->core->device, &desc, &pool);
    Py_END_ALLOW_THREADS if (result != ONUMA_OK) {
        onumapy_unreference(self);
        return onumapy_raise(result);
    }
    self->core = onumapy_pool_new(pool, onumapy_device_keep(device->core), desc.kind);
    if (!self->core) {
        onuma_pool_destroy(pool);
        onumapy_device_drop(device->core);
        onumapy_unreference(self);
        return PyErr_NoMemory();
    }
    self->device = onumapy_reference(device);
    return (PyObject *)self;
}

static void pool_dealloc(PyObject *object) {
    PoolObject *self = (PoolObject *)object;
    if (self->core) onumapy_drop_pool(self->core);
    onumapy_unreference(self->device);
    onumapy_free_object(object);
}

/* ------------------------------------------------------------------- allocation */

static PyObject *pool_allocate(PyObject *object, PyObject *args, PyObject *keywords) {
    static char *names[] = {"size", "alignment", "zeroed", "queue", NULL};
    onumapy_state *state = onumapy_state_of(object);
    PoolObject *self = (PoolObject *)object;
    size_t size, alignment = 0;
    int zeroed = 0;
    PyObject *queue_object = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|$O&pO:allocate", names, onumapy_size_argument, &size,
                                     onumapy_size_argument, &alignment, &zeroed, &queue_object))
        return NULL;
    onuma_queue *queue = NULL;
    if (queue_object != Py_None && !(queue = onumapy_queue_of(state, queue_object))) return NULL;

    void *base;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS /* may get memory from the driver, or wait for queues */
        result = (zeroed ? onuma_alloc_zeroed : onuma_alloc)(self->core->pool, size, alignment, queue, &base);
    Py_END_ALLOW_THREADS if (result != ONUMA_OK) return onumapy_raise(result);
    onumapy_holding *holding = onumapy_holding_new(&(onumapy_holding){.base = base,
                                                                      .size = size,
                                                                      .kind = self->core->kind,
                                                                      .pool = onumapy_pool_keep(self->core),
                                                                      .device = self->core->device});
    if (!holding) {
        onuma_free(base, NULL);
        onumapy_drop_pool(self->core);
        return PyErr_NoMemory();
    }
    return onumapy_block_object(state, holding, self->device);
}

static PyObject *pool_trim(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"keep", NULL};
    size_t keep = 0, released = 0;
    onuma_result result;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O&:trim", names, onumapy_size_argument, &keep)) return NULL;
    Py_BEGIN_ALLOW_THREADS result = onuma_pool_trim(((PoolObject *)self)->core->pool, keep, &released);
    Py_END_ALLOW_THREADS return result == ONUMA_OK ? PyLong_FromSize_t(released) : onumapy_raise(result);
}

static PyObject *none_or_raise(onuma_result result) {
    if (result != ONUMA_OK) return onumapy_raise(result);
    Py_RETURN_NONE;
}

static PyObject *pool_set_limit(PyObject *self, PyObject *limit) {
    size_t bytes;
    if (!onumapy_size_argument(limit, &bytes)) return NULL;
    return none_or_raise(onuma_pool_set_limit(((PoolObject *)self)->core->pool, bytes));
}

static PyObject *pool_reset_peak(PyObject *self, PyObject *ignored) {
    return none_or_raise(onuma_pool_reset_peak(((PoolObject *)self)->core->pool));
}

/* ------------------------------------------------------------------- statistics */

static bool put_number(PyObject *dictionary, const char *key, uint64_t value) {
    PyObject *number = PyLong_FromUnsignedLongLong(value);
    bool put = number && PyDict_SetItemString(dictionary, key, number) == 0;
    Py_XDECREF(number);
    return put;
}

static PyObject *pool_statistics(PyObject *self, PyObject *ignored) {
    onuma_pool_stats stats = ONUMA_POOL_STATS_INIT;
    onuma_result result = onuma_pool_get_stats(((PoolObject *)self)->core->pool, &stats);
    if (result != ONUMA_OK) return onumapy_raise(result);
    PyObject *dictionary = PyDict_New();
    bool complete = dictionary != NULL;
#define ONUMA_X(name, unit, text)                                                                                      \
    complete = complete && put_number(dictionary, #name, stats.name) &&                                                \
               put_number(dictionary, #name "_peak", stats.name##_peak);
    ONUMA_POOL_GAUGES(ONUMA_X)
#undef ONUMA_X
#define ONUMA_X(name, unit, text) complete = complete && put_number(dictionary, #name, stats.name);
    ONUMA_POOL_COUNTERS(ONUMA_X)
#undef ONUMA_X
    if (!complete) Py_CLEAR(dictionary);
    return dictionary;
}

static PyObject *pool_get_kind(PyObject *self, void *closure) {
    return PyUnicode_FromString(onumapy_kind_name(((PoolObject *)self)->core->kind));
}

static PyObject *pool_get_device(PyObject *self, void *closure) {
    return onumapy_reference(((PoolObject *)self)->device);
}

static PyMethodDef pool_methods[] = {
    {"allocate", (PyCFunction)(void (*)(void))pool_allocate, METH_VARARGS | METH_KEYWORDS,
     "allocate($self, /, size, *, alignment=0, zeroed=False, queue=None)\n--\n\n"
     "A Block of size bytes, whose contents are undefined unless zeroed. With a queue, memory that was freed on\n"
     "it may be reused at once. MemoryError if the device has no more, or the pool's limit is reached."},
    {"trim", (PyCFunction)(void (*)(void))pool_trim, METH_VARARGS | METH_KEYWORDS,
     "trim($self, /, keep=0)\n--\n\nGive free memory back to the system until at most keep bytes are reserved. Returns "
     "the bytes given back."},
    {"set_limit", pool_set_limit, METH_O,
     "set_limit($self, limit, /)\n--\n\nThe most bytes that may be reserved, 0 for no limit. Below what is reserved "
     "now, only growth is refused."},
    {"reset_peak", pool_reset_peak, METH_NOARGS,
     "reset_peak($self, /)\n--\n\nPeaks start again from the present values."},
    {"statistics", pool_statistics, METH_NOARGS,
     "statistics($self, /)\n--\n\nEvery statistic by its name in the C library: bytes, blocks and calls."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef pool_members[] = {
    {"kind", pool_get_kind, NULL, "'host', 'shared' or 'device'.", NULL},
    {"device", pool_get_device, NULL, "The Device whose memory it serves.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot pool_slots[] = {
    {Py_tp_doc, "NativePool(device, *, kind='shared', limit=0, alignment=0, segment_size=0, name=None)\n--\n\n"
                "Serves blocks of one kind of memory on one device. Lives until it and all its blocks are gone."},
    {Py_tp_new, (void *)pool_new},
    {Py_tp_dealloc, (void *)pool_dealloc},
    {Py_tp_methods, pool_methods},
    {Py_tp_getset, pool_members},
    {0, NULL},
};

static PyType_Spec pool_spec = {
    .name = "opennuma._native.NativePool",
    .basicsize = sizeof(PoolObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pool_slots,
};

int onumapy_pool_type(PyObject *module, onumapy_state *state) {
    return onumapy_add_type(module, &pool_spec, &state->pool);
}
