/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `with block.on_host("r"):` The library waits for queues while other threads of Python run, in short turns, so that
 * Ctrl-C is heard. An access that is entered belongs to one `with`; a second entry is refused, since the library counts.
 */
#include "native.h"

typedef struct {
    PyObject_HEAD PyObject *target; /* what `as` gives; keeps the holding */
    onumapy_holding *holding;
    void *data;
    size_t bytes;
    onuma_access mode;
    uint64_t timeout_ns;
    bool entered; /* under the interpreter's lock; on builds without one, an access is for one thread like a file is */
} HostAccessObject;

static const uint64_t turn_ns = 100000000u;

PyObject *onumapy_host_access(onumapy_state *state, PyObject *target, onumapy_holding *holding, void *data,
                              size_t bytes, PyObject *args, PyObject *keywords) {
    static char *names[] = {"mode", "timeout", NULL};
    onuma_access mode = ONUMA_ACCESS_READ_WRITE;
    uint64_t timeout_ns = ONUMA_TIMEOUT_INFINITE;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O&O&:on_host", names, onumapy_mode_argument, &mode,
                                     onumapy_timeout_argument, &timeout_ns))
        return NULL;
    if (holding->read_only && mode != ONUMA_ACCESS_READ) {
        PyErr_SetString(PyExc_ValueError, "the memory is read-only; mode 'r' is possible");
        return NULL;
    }
    HostAccessObject *self = (HostAccessObject *)onumapy_new_object(state->host_access);
    if (!self) return NULL;
    self->target = Py_NewRef(target);
    self->holding = onumapy_holding_keep(holding);
    self->data = data;
    self->bytes = bytes;
    self->mode = mode;
    self->timeout_ns = timeout_ns;
    return (PyObject *)self;
}

static PyObject *host_access_enter(PyObject *object, PyObject *ignored) {
    HostAccessObject *self = (HostAccessObject *)object;
    if (self->entered) {
        PyErr_SetString(PyExc_RuntimeError, "this access is entered already; call on_host again for another");
        return NULL;
    }
    onuma_result result = ONUMA_ERROR_TIMEOUT;
    uint64_t left_ns = self->timeout_ns;
    do {
        uint64_t wait_ns = left_ns < turn_ns ? left_ns : turn_ns;
        Py_BEGIN_ALLOW_THREADS result = onuma_host_acquire(self->data, self->bytes, self->mode, wait_ns);
        Py_END_ALLOW_THREADS if (left_ns != ONUMA_TIMEOUT_INFINITE) left_ns -= wait_ns;
        if (result == ONUMA_ERROR_TIMEOUT && PyErr_CheckSignals() < 0) return NULL;
    } while (result == ONUMA_ERROR_TIMEOUT && left_ns > 0);
    if (result != ONUMA_OK) return onumapy_raise(result);
    self->entered = true;
    return Py_NewRef(self->target);
}

static onuma_result leave(HostAccessObject *self) {
    onuma_result result;
    self->entered = false;
    Py_BEGIN_ALLOW_THREADS /* an incoherent device's driver works here */
        result = onuma_host_release(self->data, self->bytes, self->mode);
    Py_END_ALLOW_THREADS return result;
}

static PyObject *host_access_exit(PyObject *object, PyObject *ignored) {
    HostAccessObject *self = (HostAccessObject *)object;
    if (!self->entered) {
        PyErr_SetString(PyExc_RuntimeError, "this access is not entered");
        return NULL;
    }
    onuma_result result = leave(self);
    if (result != ONUMA_OK) return onumapy_raise(result);
    Py_RETURN_NONE;
}

static void host_access_dealloc(PyObject *object) {
    HostAccessObject *self = (HostAccessObject *)object;
    if (self->entered) (void)leave(self); /* __exit__ was never called; the block must not stay held for ever */
    if (self->holding) onumapy_drop_holding(self->holding);
    Py_XDECREF(self->target);
    onumapy_free_object(object);
}

static PyMethodDef host_access_methods[] = {
    {"__enter__", host_access_enter, METH_NOARGS, NULL},
    {"__exit__", host_access_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot host_access_slots[] = {
    {Py_tp_doc, "What on_host returns: enter it with `with`."},
    {Py_tp_dealloc, (void *)host_access_dealloc},
    {Py_tp_methods, host_access_methods},
    {0, NULL},
};

static PyType_Spec host_access_spec = {
    .name = "opennuma.HostAccess",
    .basicsize = sizeof(HostAccessObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = host_access_slots,
};

int onumapy_host_access_type(PyObject *module, onumapy_state *state) {
    return onumapy_add_type(module, &host_access_spec, &state->host_access);
}
