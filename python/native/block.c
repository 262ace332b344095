/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

#include <string.h>
#include <structmember.h>

void onumapy_drop_holding(onumapy_holding *holding) {
    onumapy_pool *pool = onumapy_holding_drop(holding);
    if (!pool) return;
    Py_BEGIN_ALLOW_THREADS onumapy_pool_destroy(pool);
    Py_END_ALLOW_THREADS
}

PyObject *onumapy_block_object(onumapy_state *state, onumapy_holding *holding, DeviceObject *device) {
    BlockObject *self = (BlockObject *)onumapy_new_object(state->block);
    if (!self) {
        onumapy_drop_holding(holding);
        return NULL;
    }
    self->holding = holding;
    self->device = onumapy_reference(device);
    return (PyObject *)self;
}

static void block_dealloc(PyObject *object) {
    BlockObject *self = (BlockObject *)object;
    if (self->weak_references) PyObject_ClearWeakRefs(object);
    if (self->holding) onumapy_drop_holding(self->holding);
    onumapy_unreference(self->device);
    onumapy_free_object(object);
}

/* ------------------------------------------------------------- the bytes themselves */

static int block_get_buffer(PyObject *object, Py_buffer *buffer, int flags) {
    BlockObject *self = (BlockObject *)object;
    onumapy_holding *holding = self->holding;
    buffer->obj = NULL;
    if (!onumapy_cpu_reaches(self->device->core, holding->kind)) {
        PyErr_SetString(PyExc_BufferError, "device memory has no address for the CPU; kind='shared' has one");
        return -1;
    }
    return PyBuffer_FillInfo(buffer, object, holding->base, (Py_ssize_t)holding->size, holding->read_only, flags);
}

static PyObject *block_on_host(PyObject *object, PyObject *args, PyObject *keywords) {
    onumapy_holding *holding = ((BlockObject *)object)->holding;
    return onumapy_host_access(onumapy_state_of(object), object, holding, holding->base, holding->size, args, keywords);
}

/* --------------------------------------------------------------------------- views */

static PyObject *view_object(onumapy_state *state, const onuma_view *view) {
    static const char *const ways[] = {"pointer", "svm", "usm", "handle"};
    PyObject *self = PyStructSequence_New(state->view);
    if (!self) return NULL;
    PyObject *items[] = {
        PyUnicode_FromString(view->via < sizeof ways / sizeof *ways ? ways[view->via] : "unknown"),
        PyLong_FromUnsignedLongLong(view->pointer),
        PyLong_FromUnsignedLongLong(view->handle),
        PyLong_FromSize_t(view->offset),
        PyLong_FromSize_t(view->size),
    };
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        PyStructSequence_SetItem(self, (Py_ssize_t)i, items[i]);
    if (PyErr_Occurred()) Py_CLEAR(self);
    return self;
}

static PyObject *block_view(PyObject *object, PyObject *args, PyObject *keywords) {
    static char *names[] = {"api", "offset", NULL};
    BlockObject *self = (BlockObject *)object;
    onuma_api api = ONUMA_API_OPENCL;
    size_t offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|O&:view", names, onumapy_api_argument, &api,
                                     onumapy_size_argument, &offset))
        return NULL;
    if (offset > self->holding->size) {
        PyErr_Format(PyExc_ValueError, "offset %zu is beyond the block's %zu bytes", offset, self->holding->size);
        return NULL;
    }
    onuma_view view = ONUMA_VIEW_INIT;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS /* the first view of a block makes the driver's handle */
        result = onuma_view_get((char *)self->holding->base + offset, self->device->core->device, api, &view);
    Py_END_ALLOW_THREADS return result == ONUMA_OK ? view_object(onumapy_state_of(object), &view)
                                                   : onumapy_raise(result);
}

/* ---------------------------------------------------------------------- attributes */

static PyObject *block_get_pointer(PyObject *self, void *closure) {
    return PyLong_FromUnsignedLongLong((uintptr_t)((BlockObject *)self)->holding->base);
}

static PyObject *block_get_nbytes(PyObject *self, void *closure) {
    return PyLong_FromSize_t(((BlockObject *)self)->holding->size);
}

static PyObject *block_get_kind(PyObject *self, void *closure) {
    return PyUnicode_FromString(onumapy_kind_name(((BlockObject *)self)->holding->kind));
}

static PyObject *block_get_read_only(PyObject *self, void *closure) {
    return PyBool_FromLong(((BlockObject *)self)->holding->read_only);
}

static PyObject *block_get_device(PyObject *self, void *closure) {
    return onumapy_reference(((BlockObject *)self)->device);
}

static PyObject *block_repr(PyObject *object) {
    onumapy_holding *holding = ((BlockObject *)object)->holding;
    return PyUnicode_FromFormat("<opennuma.Block of %zu bytes at %p, %s memory>", holding->size, holding->base,
                                onumapy_kind_name(holding->kind));
}

static PyMethodDef block_methods[] = {
    {"view", (PyCFunction)(void (*)(void))block_view, METH_VARARGS | METH_KEYWORDS,
     "view($self, /, api, offset=0)\n--\n\n"
     "How the block's device addresses it from that byte on, for api 'opencl' and so on: a View. Valid while the\n"
     "bytes live. NotImplementedError where the device does not speak that api."},
    {"on_host", (PyCFunction)(void (*)(void))block_on_host, METH_VARARGS | METH_KEYWORDS,
     "on_host($self, /, mode='rw', timeout=None)\n--\n\n"
     "A context in which the CPU may read ('r'), write ('w') or do both. Entering waits for the announced work of\n"
     "queues that is in the way, at most timeout seconds (TimeoutError)."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef block_members[] = {
    {"pointer", block_get_pointer, NULL, "Address of the first byte, which names the block in the C library.", NULL},
    {"nbytes", block_get_nbytes, NULL, "Bytes, as asked for.", NULL},
    {"kind", block_get_kind, NULL, "'host', 'shared' or 'device'.", NULL},
    {"read_only", block_get_read_only, NULL, "Whether its bytes may not be written.", NULL},
    {"device", block_get_device, NULL, "The Device that it is memory of.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef block_offsets[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(BlockObject, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot block_slots[] = {
    {Py_tp_doc,
     "Memory that CPU and device have in common, with the buffer protocol. Its bytes live as long as any alias."},
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_tp_repr, (void *)block_repr},
    {Py_tp_methods, block_methods},
    {Py_tp_getset, block_members},
    {Py_tp_members, block_offsets},
    {Py_bf_getbuffer, (void *)block_get_buffer},
    {0, NULL},
};

static PyType_Spec block_spec = {
    .name = "opennuma.Block",
    .basicsize = sizeof(BlockObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = block_slots,
};

static PyStructSequence_Field view_fields[] = {
    {"via", "How to bind it to a kernel: 'pointer', 'svm', 'usm' or 'handle'."},
    {"pointer", "The device's address of the byte asked for; 0 if there is none."},
    {"handle", "The driver's handle of exactly this block (a cl_mem, say); 0 if there is none."},
    {"offset", "Bytes from the handle's start to the byte asked for."},
    {"size", "Bytes from the byte asked for to the block's end."},
    {NULL, NULL},
};

static PyStructSequence_Desc view_desc = {"opennuma.View", "How a device addresses a block.", view_fields, 5};

int onumapy_block_types(PyObject *module, onumapy_state *state) {
    if (onumapy_add_type(module, &block_spec, &state->block) < 0) return -1;
    state->view = PyStructSequence_NewType(&view_desc);
    return state->view ? PyModule_AddObjectRef(module, "View", (PyObject *)state->view) : -1;
}
