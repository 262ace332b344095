/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opennuma._native: the library's objects as Python objects, and their lifetimes. What is convenient rather than necessary
 * is written in Python, above it. Importing it touches no driver: the runtime is made when somebody first asks for devices.
 */
#include "native.h"

/* -------------------------------------------------------------------- the runtime */

static PyThread_type_lock runtime_lock; /* made when the module is; held while drivers are looked for */
static onuma_runtime *runtime;          /* under runtime_lock; never destroyed, see lifetime.h */

onuma_runtime *onumapy_runtime(void) {
    onuma_result result = ONUMA_OK;
    onuma_runtime *found;
    Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(runtime_lock, WAIT_LOCK);
    if (!runtime) result = onuma_runtime_create(NULL, &runtime);
    found = runtime;
    PyThread_release_lock(runtime_lock);
    Py_END_ALLOW_THREADS if (result != ONUMA_OK) onumapy_raise(result);
    return found;
}

/* *result tells why there is no object, where that was the library. */
static PyObject *runtime_device(onumapy_state *state, onuma_device *device, bool adopted, onuma_result *result) {
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    *result = onuma_device_get_info(device, &info);
    onumapy_device *core = *result == ONUMA_OK ? onumapy_device_new(device, info.type, adopted) : NULL;
    if (core) return onumapy_device_object(state, core);
    if (adopted) onuma_device_release(device);
    return *result == ONUMA_OK ? PyErr_NoMemory() : onumapy_raise(*result);
}

static PyObject *module_devices(PyObject *module, PyObject *ignored) {
    onuma_runtime *rt = onumapy_runtime();
    PyObject *list = rt ? PyList_New(0) : NULL;
    size_t count = list ? onuma_device_count(rt) : 0;
    for (size_t i = 0; list && i < count; i++) {
        onuma_result result;
        PyObject *device = runtime_device(PyModule_GetState(module), onuma_device_at(rt, i), false, &result);
        if (!device && result == ONUMA_ERROR_FORKED) { /* a child of fork has the host alone */
            PyErr_Clear();
            continue;
        }
        if (!device || PyList_Append(list, device) < 0) Py_CLEAR(list);
        Py_XDECREF(device);
    }
    return list;
}

static PyObject *module_adopt(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"api", "context", "device", NULL};
    onuma_native_device native = ONUMA_NATIVE_DEVICE_INIT;
    onuma_api api;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&O&|O&:adopt", names, onumapy_api_argument, &api,
                                     onumapy_address_argument, &native.context, onumapy_address_argument,
                                     &native.device))
        return NULL;
    onuma_runtime *rt = onumapy_runtime();
    if (!rt) return NULL;
    onuma_device *device;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS result = onuma_device_adopt(rt, api, &native, &device);
    Py_END_ALLOW_THREADS return result == ONUMA_OK ? runtime_device(PyModule_GetState(module), device, true, &result)
                                                   : onumapy_raise(result);
}

static PyObject *module_find_block(PyObject *module, PyObject *address) {
    uint64_t pointer;
    if (!onumapy_address_argument(address, &pointer)) return NULL;
    onumapy_holding *holding = onumapy_holding_find((const void *)(uintptr_t)pointer);
    if (!holding) {
        PyErr_Format(PyExc_LookupError, "no block of this package contains the address %p", (void *)(uintptr_t)pointer);
        return NULL;
    }
    onumapy_state *state = PyModule_GetState(module);
    onumapy_device *core = onumapy_device_keep(holding->pool ? holding->pool->device : holding->device);
    PyObject *device = onumapy_device_object(state, core);
    if (!device) {
        onumapy_drop_holding(holding);
        return NULL;
    }
    PyObject *block = onumapy_block_object(state, holding, (DeviceObject *)device);
    Py_DECREF(device);
    return block;
}

static PyObject *module_live_blocks(PyObject *module, PyObject *ignored) {
    return PyLong_FromSize_t(onumapy_holding_count());
}

static PyObject *module_version(PyObject *module, PyObject *ignored) {
    return PyUnicode_FromString(onuma_version());
}

static PyMethodDef module_functions[] = {
    {"devices", module_devices, METH_NOARGS, "devices($module, /)\n--\n\nAll devices of this machine, best first."},
    {"adopt", (PyCFunction)(void (*)(void))module_adopt, METH_VARARGS | METH_KEYWORDS,
     "adopt($module, /, api, context, device=0)\n--\n\nThe Device of a context that the program made, by the driver's "
     "handles."},
    {"find_block", module_find_block, METH_O,
     "find_block($module, pointer, /)\n--\n\nThe live Block that contains the address. LookupError if there is none."},
    {"live_blocks", module_live_blocks, METH_NOARGS,
     "live_blocks($module, /)\n--\n\nHow many blocks live, whoever holds them."},
    {"version", module_version, METH_NOARGS, "version($module, /)\n--\n\nThe version of the C library."},
    {"map_file", onumapy_map_file, METH_VARARGS,
     "map_file($module, device, descriptor, offset, nbytes, /)\n--\n\n"
     "The file's bytes as a read-only Block, which begins at the page of offset, and offset's place in it."},
    {"numpy_handler", onumapy_numpy_handler, METH_VARARGS,
     "numpy_handler($module, pool, /)\n--\n\nA memory handler for NumPy."},
    {"numpy_set_handler", onumapy_numpy_set_handler, METH_O,
     "numpy_set_handler($module, handler, /)\n--\n\nInstall a handler in this context, None for NumPy's own. Returns "
     "the one before."},
    {NULL, NULL, 0, NULL},
};

/* ---------------------------------------------------------------------- the types */

onumapy_state *onumapy_state_of(PyObject *self) {
    return PyType_GetModuleState(Py_TYPE(self));
}

int onumapy_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **slot) {
    *slot = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *slot ? PyModule_AddType(module, *slot) : -1;
}

PyObject *onumapy_new_object(PyTypeObject *type) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return allocate(type, 0);
}

void onumapy_free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static int module_execute(PyObject *module) {
    onumapy_state *state = PyModule_GetState(module);
    if (!runtime_lock) runtime_lock = PyThread_allocate_lock();
    if (!runtime_lock || !onumapy_lifetime_init()) {
        PyErr_NoMemory();
        return -1;
    }
    int (*const types[])(PyObject *, onumapy_state *) = {
        onumapy_device_type, onumapy_pool_type,  onumapy_block_types,
        onumapy_array_type,  onumapy_queue_type, onumapy_host_access_type,
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i](module, state) < 0) return -1;
    return 0;
}

/* The types of the state, for the collector: X(member). */
#define STATE_TYPES(X) X(device) X(pool) X(block) X(array) X(queue) X(host_access) X(view)

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    onumapy_state *state = PyModule_GetState(module);
#define VISIT(member) Py_VISIT(state->member);
    STATE_TYPES(VISIT)
#undef VISIT
    return 0;
}

static int module_clear(PyObject *module) {
    onumapy_state *state = PyModule_GetState(module);
#define CLEAR(member) Py_CLEAR(state->member);
    STATE_TYPES(CLEAR)
#undef CLEAR
    return 0;
}

static void module_free(void *module) {
    module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)module_execute}, {0, NULL}};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "opennuma._native",
    .m_doc = "The C library's objects and their lifetimes.",
    .m_size = sizeof(onumapy_state),
    .m_methods = module_functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void) {
    return PyModuleDef_Init(&module_definition);
}
