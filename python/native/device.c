/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

#include <string.h>

PyObject *onumapy_device_object(onumapy_state *state, onumapy_device *core) {
    DeviceObject *self = (DeviceObject *)onumapy_new_object(state->device);
    if (!self) {
        onumapy_device_drop(core);
        return NULL;
    }
    self->core = core;
    return (PyObject *)self;
}

static void device_dealloc(PyObject *self) {
    onumapy_device *core = ((DeviceObject *)self)->core;
    if (core) onumapy_device_drop(core);
    onumapy_free_object(self);
}

/* ----------------------------------------------------------------- description */

static bool read_info(PyObject *self, onuma_device_info *info) {
    onuma_result result;
    onuma_device *device = ((DeviceObject *)self)->core->device;
    Py_BEGIN_ALLOW_THREADS /* asks the driver how much memory is free */
        result = onuma_device_get_info(device, info);
    Py_END_ALLOW_THREADS if (result != ONUMA_OK) onumapy_raise(result);
    return result == ONUMA_OK;
}

static const char *type_name(onuma_device_type type) {
    static const char *const names[] = {"integrated", "discrete", "cpu", "host"};
    return type < sizeof names / sizeof *names ? names[type] : "unknown";
}

static PyObject *kinds_tuple(uint32_t bits) {
    PyObject *list = PyList_New(0);
    for (onuma_kind kind = ONUMA_KIND_HOST; list && kind <= ONUMA_KIND_DEVICE; kind++) {
        if (!(bits & 1u << kind)) continue;
        PyObject *name = PyUnicode_FromString(onumapy_kind_name(kind));
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

/* The members of onuma_device_info that Python sees: X(member, how it becomes an object). */
#define TEXT(value) PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "replace")
#define NUMBER(value) PyLong_FromUnsignedLongLong(value)
#define TRUTH(value) PyBool_FromLong(value)
#define TYPE(value) PyUnicode_FromString(type_name(value))
#define DEVICE_MEMBERS(X)                                                                                              \
    X(id, TEXT, "Names the device here: 'opencl:0', 'host'.")                                                          \
    X(name, TEXT, "As the driver calls it.")                                                                           \
    X(backend, TEXT, "The driver interface: 'opencl', 'host'.")                                                        \
    X(type, TYPE, "'integrated', 'discrete', 'cpu' or 'host'.")                                                        \
    X(driver, TEXT, "Name and version of the driver.")                                                                 \
    X(physical, TEXT, "Names the chip: equal for two devices on one chip.")                                            \
    X(shared_via, TEXT, "How CPU and device share: 'pointer', 'usm', 'svm_fine', 'svm_coarse', 'import', or ''.")      \
    X(sharing_detail, TEXT, "Which ways to share were tried, and why one was turned down.")                            \
    X(kinds, kinds_tuple, "The kinds of memory it has, of 'host', 'shared' and 'device'.")                             \
    X(coherent, TRUTH, "Whether CPU and device see each other's writes without map and unmap.")                        \
    X(simulator, TRUTH, "A checking or emulating device, not meant for speed.")                                        \
    X(memory_total, NUMBER, "Bytes; 0 if the driver does not tell.")                                                   \
    X(memory_free, NUMBER, "Bytes, asked anew each time; 0 if the driver does not tell.")                              \
    X(max_block, NUMBER, "Bytes of the largest block; 0 if no limit is known.")                                        \
    X(alignment, NUMBER, "Bytes, of every block at least.")                                                            \
    X(native_context, NUMBER, "The driver's handle of the context, as an integer; 0 before the device's first pool.")  \
    X(native_device, NUMBER, "The driver's handle of the device, as an integer; 0 before the device's first pool.")

#define GETTER(member, convert, text)                                                                                  \
    static PyObject *get_##member(PyObject *self, void *closure) {                                                     \
        onuma_device_info info = ONUMA_DEVICE_INFO_INIT;                                                               \
        return read_info(self, &info) ? convert(info.member) : NULL;                                                   \
    }
DEVICE_MEMBERS(GETTER)

#define ENTRY(member, convert, text) {#member, get_##member, NULL, text, NULL},
static PyGetSetDef device_members[] = {DEVICE_MEMBERS(ENTRY){NULL, NULL, NULL, NULL, NULL}};

static PyObject *device_repr(PyObject *self) {
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    if (!read_info(self, &info)) return NULL;
    return PyUnicode_FromFormat("<opennuma.Device %s: %s, shares through %s>", info.id, info.name,
                                *info.shared_via ? info.shared_via : "nothing");
}

/* ------------------------------------------------------- equality: of the device */

static PyObject *device_compare(PyObject *self, PyObject *other, int operation) {
    if (Py_TYPE(self) != Py_TYPE(other) || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    bool same = ((DeviceObject *)self)->core->device == ((DeviceObject *)other)->core->device;
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static Py_hash_t device_hash(PyObject *self) {
    return (Py_hash_t)((uintptr_t)((DeviceObject *)self)->core->device >> 1); /* never -1 */
}

static PyType_Slot device_slots[] = {
    {Py_tp_doc, "A device with its driver's context. Get one from devices() or device()."},
    {Py_tp_dealloc, (void *)device_dealloc},
    {Py_tp_repr, (void *)device_repr},
    {Py_tp_getset, device_members},
    {Py_tp_richcompare, (void *)device_compare},
    {Py_tp_hash, (void *)device_hash},
    {0, NULL},
};

static PyType_Spec device_spec = {
    .name = "opennuma.Device",
    .basicsize = sizeof(DeviceObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = device_slots,
};

int onumapy_device_type(PyObject *module, onumapy_state *state) {
    return onumapy_add_type(module, &device_spec, &state->device);
}
