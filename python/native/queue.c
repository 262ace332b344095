/* SPDX-License-Identifier: Apache-2.0 */
/* A device's stream of work, wrapped so that the library knows what uses which block, and until when. */
#include "native.h"

typedef struct {
    PyObject_HEAD onuma_queue *queue;
    DeviceObject *device;
    PyObject *native; /* what owns the driver's queue, which must outlive ours; None if the caller sees to that */
} QueueObject;

onuma_queue *onumapy_queue_of(onumapy_state *state, PyObject *object) {
    if (Py_TYPE(object) == state->queue) return ((QueueObject *)object)->queue;
    PyErr_Format(PyExc_TypeError, "%R is no opennuma queue", object);
    return NULL;
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"device", "api", "handle", "keep", NULL};
    onumapy_state *state = PyType_GetModuleState(type);
    DeviceObject *device;
    onuma_api api;
    uint64_t handle;
    PyObject *native = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O&O&|O:NativeQueue", names, state->device, &device,
                                     onumapy_api_argument, &api, onumapy_address_argument, &handle, &native))
        return NULL;
    QueueObject *self = (QueueObject *)onumapy_new_object(type);
    if (!self) return NULL;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS result = onuma_queue_wrap(device->core->device, api, handle, NULL, &self->queue);
    Py_END_ALLOW_THREADS if (result != ONUMA_OK) {
        onumapy_unreference(self);
        return onumapy_raise(result);
    }
    self->device = onumapy_reference(device);
    onumapy_device_keep(device->core);
    self->native = Py_NewRef(native);
    return (PyObject *)self;
}

static void queue_dealloc(PyObject *object) {
    QueueObject *self = (QueueObject *)object;
    if (self->queue) {
        (void)onuma_queue_release(self->queue);
        onumapy_device_drop(self->device->core);
    }
    Py_XDECREF(self->native);
    onumapy_unreference(self->device);
    onumapy_free_object(object);
}

static PyObject *none_or_raise(onuma_result result) {
    if (result != ONUMA_OK) return onumapy_raise(result);
    Py_RETURN_NONE;
}

/* The announcement of one block, by the pointer that names it. */
static PyObject *queue_use(PyObject *object, PyObject *args) {
    onumapy_state *state = onumapy_state_of(object);
    BlockObject *block;
    onuma_access mode;
    if (!PyArg_ParseTuple(args, "O!O&:use", state->block, &block, onumapy_mode_argument, &mode)) return NULL;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS result = onuma_use(((QueueObject *)object)->queue, block->holding->base, mode);
    Py_END_ALLOW_THREADS return none_or_raise(result);
}

static PyObject *queue_submitted(PyObject *object, PyObject *args) {
    onuma_native_event event = ONUMA_NATIVE_EVENT_INIT;
    event.api = ONUMA_API_OPENCL;
    if (!PyArg_ParseTuple(args, "|O&O&:submitted", onumapy_api_argument, &event.api, onumapy_address_argument,
                          &event.handle))
        return NULL;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS result = onuma_submitted(((QueueObject *)object)->queue, event.handle ? &event : NULL);
    Py_END_ALLOW_THREADS return none_or_raise(result);
}

static PyObject *queue_wait(PyObject *object, PyObject *other) {
    onuma_queue *on = onumapy_queue_of(onumapy_state_of(object), other);
    if (!on) return NULL;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS result = onuma_queue_wait(((QueueObject *)object)->queue, on, NULL);
    Py_END_ALLOW_THREADS return none_or_raise(result);
}

static PyObject *queue_get_device(PyObject *self, void *closure) {
    return onumapy_reference(((QueueObject *)self)->device);
}

static PyMethodDef queue_methods[] = {
    {"use", queue_use, METH_VARARGS,
     "use($self, block, mode, /)\n--\n\nAnnounce that work about to be submitted reads ('r') or writes ('w', 'rw') the "
     "block.\n"
     "BufferError while the CPU holds it in a way that does not go with that."},
    {"submitted", queue_submitted, METH_VARARGS,
     "submitted($self, api='opencl', event=0, /)\n--\n\nThe announced work is on its way; with an event's handle, it "
     "ends with that event; 0: the library marks the queue."},
    {"wait", queue_wait, METH_O,
     "wait($self, other, /)\n--\n\nLater work of this queue runs after the other queue's earlier work."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef queue_members[] = {
    {"device", queue_get_device, NULL, "The Device that it belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot queue_slots[] = {
    {Py_tp_doc, "NativeQueue(device, api, handle, keep=None)\n--\n\nThe driver's queue of that handle; keep owns it."},
    {Py_tp_new, (void *)queue_new},
    {Py_tp_dealloc, (void *)queue_dealloc},
    {Py_tp_methods, queue_methods},
    {Py_tp_getset, queue_members},
    {0, NULL},
};

static PyType_Spec queue_spec = {
    .name = "opennuma._native.NativeQueue",
    .basicsize = sizeof(QueueObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = queue_slots,
};

int onumapy_queue_type(PyObject *module, onumapy_state *state) {
    return onumapy_add_type(module, &queue_spec, &state->queue);
}
