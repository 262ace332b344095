/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block, or a part of one, as an array of numbers in C order: just enough for other packages to alias it through the
 * buffer protocol, NumPy's array interface and DLPack. To compute, alias it; there is no arithmetic here.
 */
#include "native.h"

#include <stdlib.h>

enum { MOST_DIMENSIONS = 64 }; /* as NumPy 2 */

/* ------------------------------------------------------------------- construction */

/* dtype is what opennuma._dtypes makes: (name, DLPack code, bits, struct format or None, typestr). */
static bool read_element(PyObject *dtype, onumapy_element *element) {
    return PyArg_ParseTuple(dtype, "UbbzU:dtype", &element->name, &element->code, &element->bits, &element->format,
                            &element->typestr);
}

static bool multiply(size_t *product, size_t factor) {
    if (factor && *product > PY_SSIZE_T_MAX / factor) return false;
    *product *= factor;
    return true;
}

/* Fills shape and strides, and bytes. */
static bool lay_out(ArrayObject *self, PyObject *shape) {
    Py_ssize_t count = PyTuple_Size(shape);
    if (count < 0) return false;
    if (count > MOST_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "%zd dimensions are more than %d", count, MOST_DIMENSIONS);
        return false;
    }
    self->extent = malloc((size_t)(2 * count + 1) * sizeof *self->extent);
    if (!self->extent) {
        PyErr_NoMemory();
        return false;
    }
    self->dimensions = (int)count;
    self->bytes = (size_t)(self->element.bits + 7) / 8;
    size_t stride = self->bytes; /* what bytes would be with no dimension of 0: strides must not overflow either */
    for (Py_ssize_t i = count; i-- > 0;) {
        size_t extent;
        if (!onumapy_size_argument(PyTuple_GetItem(shape, i), &extent)) return false;
        self->extent[i] = (Py_ssize_t)extent;
        self->extent[count + i] = (Py_ssize_t)stride;
        if (!multiply(&self->bytes, extent) || !multiply(&stride, extent ? extent : 1)) {
            PyErr_Format(PyExc_ValueError, "shape %R has more bytes than can be addressed", shape);
            return false;
        }
    }
    return true;
}

static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"block", "shape", "dtype", "offset", NULL};
    onumapy_state *state = PyType_GetModuleState(type);
    BlockObject *block;
    PyObject *shape, *dtype;
    size_t offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!|O&:Array", names, state->block, &block, &PyTuple_Type,
                                     &shape, &PyTuple_Type, &dtype, onumapy_size_argument, &offset))
        return NULL;
    ArrayObject *self = (ArrayObject *)onumapy_new_object(type);
    if (!self) return NULL;
    self->block = onumapy_reference(block);
    self->dtype = Py_NewRef(dtype);
    if (!read_element(dtype, &self->element) || !lay_out(self, shape)) goto failed;
    if (offset > block->holding->size || self->bytes > block->holding->size - offset) {
        PyErr_Format(PyExc_ValueError, "%zu bytes from offset %zu on are more than the block's %zu", self->bytes,
                     offset, block->holding->size);
        goto failed;
    }
    self->data = (char *)block->holding->base + offset;
    return (PyObject *)self;
failed:
    onumapy_unreference(self);
    return NULL;
}

static void array_dealloc(PyObject *object) {
    ArrayObject *self = (ArrayObject *)object;
    free(self->extent);
    Py_XDECREF(self->dtype);
    onumapy_unreference(self->block);
    onumapy_free_object(object);
}

/* ---------------------------------------------------------------- buffer protocol */

static bool check_cpu_reaches(ArrayObject *self) {
    if (onumapy_cpu_reaches(self->block->device->core, self->block->holding->kind)) return true;
    PyErr_SetString(PyExc_BufferError, "device memory has no address for the CPU; kind='shared' has one");
    return false;
}

static int array_get_buffer(PyObject *object, Py_buffer *buffer, int flags) {
    ArrayObject *self = (ArrayObject *)object;
    buffer->obj = NULL;
    if (!check_cpu_reaches(self)) return -1;
    if (self->block->holding->read_only && (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "the memory is read-only");
        return -1;
    }
    if (!self->element.format && (flags & PyBUF_FORMAT)) {
        PyErr_Format(PyExc_BufferError, "the buffer protocol has no format for %U; DLPack has", self->element.name);
        return -1;
    }
    *buffer = (Py_buffer){
        .obj = Py_NewRef(object),
        .buf = self->data,
        .len = (Py_ssize_t)self->bytes,
        .itemsize = (self->element.bits + 7) / 8,
        .readonly = self->block->holding->read_only,
        .ndim = flags & PyBUF_ND ? self->dimensions : 1,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)self->element.format : NULL,
        .shape = flags & PyBUF_ND ? self->extent : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->extent + self->dimensions : NULL,
    };
    return 0;
}

/* --------------------------------------------------------------------- attributes */

static PyObject *array_get_shape(PyObject *object, void *closure) {
    ArrayObject *self = (ArrayObject *)object;
    PyObject *shape = PyTuple_New(self->dimensions);
    for (int i = 0; shape && i < self->dimensions; i++) {
        PyObject *extent = PyLong_FromSsize_t(self->extent[i]);
        if (!extent || PyTuple_SetItem(shape, i, extent) < 0) Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *array_get_interface(PyObject *object, void *closure) {
    ArrayObject *self = (ArrayObject *)object;
    if (!check_cpu_reaches(self)) { /* hasattr asks, and wants to hear it thus */
        PyErr_SetString(PyExc_AttributeError, "device memory has no __array_interface__");
        return NULL;
    }
    PyObject *shape = array_get_shape(object, NULL);
    if (!shape) return NULL;
    return Py_BuildValue("{s:N,s:O,s:(KO),s:O,s:i}", "shape", shape, "typestr", self->element.typestr, "data",
                         (unsigned long long)(uintptr_t)self->data,
                         self->block->holding->read_only ? Py_True : Py_False, "strides", Py_None, "version", 3);
}

static PyObject *array_get_dtype(PyObject *self, void *closure) {
    return Py_NewRef(((ArrayObject *)self)->element.name);
}

static PyObject *array_get_nbytes(PyObject *self, void *closure) {
    return PyLong_FromSize_t(((ArrayObject *)self)->bytes);
}

static PyObject *array_get_pointer(PyObject *self, void *closure) {
    return PyLong_FromUnsignedLongLong((uintptr_t)((ArrayObject *)self)->data);
}

static PyObject *array_get_block(PyObject *self, void *closure) {
    return onumapy_reference(((ArrayObject *)self)->block);
}

static PyObject *array_on_host(PyObject *object, PyObject *args, PyObject *keywords) {
    ArrayObject *self = (ArrayObject *)object;
    return onumapy_host_access(onumapy_state_of(object), object, self->block->holding, self->data, self->bytes, args,
                               keywords);
}

static PyObject *array_repr(PyObject *object) {
    ArrayObject *self = (ArrayObject *)object;
    PyObject *shape = array_get_shape(object, NULL);
    if (!shape) return NULL;
    PyObject *text =
        PyUnicode_FromFormat("<opennuma.Array of shape %R, %U, at %p, %s memory>", shape, self->element.name,
                             self->data, onumapy_kind_name(self->block->holding->kind));
    Py_DECREF(shape);
    return text;
}

static PyMethodDef array_methods[] = {
    {"on_host", (PyCFunction)(void (*)(void))array_on_host, METH_VARARGS | METH_KEYWORDS,
     "on_host($self, /, mode='rw', timeout=None)\n--\n\n"
     "A context in which the CPU may read ('r'), write ('w') or do both. Entering waits for the announced work of\n"
     "queues that is in the way, at most timeout seconds (TimeoutError)."},
    {"__dlpack__", (PyCFunction)(void (*)(void))onumapy_array_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule of the CPU's view. It does not wait for queues: that is what on_host is for. BufferError for\n"
     "what it cannot give: another device, or read-only memory to a consumer that is older than DLPack 1.0."},
    {"__dlpack_device__", onumapy_array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(1, 0), DLPack's name of the CPU. BufferError for memory that the CPU does "
     "not reach."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef array_members[] = {
    {"shape", array_get_shape, NULL, "Extents, outermost first.", NULL},
    {"dtype", array_get_dtype, NULL, "The name of the element type, 'float32' say.", NULL},
    {"nbytes", array_get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"pointer", array_get_pointer, NULL, "Address of the first element.", NULL},
    {"block", array_get_block, NULL, "The Block that the elements lie in.", NULL},
    {"__array_interface__", array_get_interface, NULL, "NumPy's array interface, version 3.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot array_slots[] = {
    {Py_tp_doc,
     "Array(block, shape, dtype, offset=0)\n--\n\n"
     "Part of a block as numbers in C order. Alias it to compute: numpy.asarray, torch.from_dlpack, memoryview."},
    {Py_tp_new, (void *)array_new},
    {Py_tp_dealloc, (void *)array_dealloc},
    {Py_tp_repr, (void *)array_repr},
    {Py_tp_methods, array_methods},
    {Py_tp_getset, array_members},
    {Py_bf_getbuffer, (void *)array_get_buffer},
    {0, NULL},
};

static PyType_Spec array_spec = {
    .name = "opennuma.Array",
    .basicsize = sizeof(ArrayObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = array_slots,
};

int onumapy_array_type(PyObject *module, onumapy_state *state) {
    return onumapy_add_type(module, &array_spec, &state->array);
}
